/** The endpoints of the hub itself: status, statistics by the minute, events, poll. hub-itself.test.ts has what it shows of its machine. */
import { transcripts } from "../support/transcript.ts";

/** What every hub has counted so far is saved, and a sweep has seen it. */
const SAVED = "tick 1m; sweep";
const EVENT = "{id: *, at: +0s, verified: false}";

transcripts(`
= stats/minutes: counts changes minute by minute
  nodes n1 n2
  t = task/create {lux_reward: 1.5}
  task/claim $t n1
  task/complete $t n1
  t = task/create
  task/claim $t n2
  task/fail $t n2 {retry: false}
  t = task/create
  task/cancel $t
  message/send n1 n2
  message/broadcast n1
  ${SAVED}
  GET stats/minutes -> {minutes: #60, total: {tasks_created: 3, tasks_started: 2, tasks_completed: 1, attempts_failed: 1,
    tasks_failed: 1, tasks_cancelled: 1, lux_paid: 1.5, messages_sent: 2, time_to_start: {count: 2}, time_to_finish: {count: 1}}}
  -> minutes.59 {at: "~:00.000Z", tasks_created: 0}

-- stats/minutes: is open on A, answers as many minutes as are asked for, forgets old ones, and survives a restart
  task/create
  ${SAVED}
  task/create
  # It is not saved before the hub ends.
  restart
  GET stats/minutes -> total.tasks_created 2
  anon GET stats/minutes?last=5 -> minutes #5
  GET stats/minutes?last=<0|61|x> -> 400 last
  tick 70m; sweep
  GET stats/minutes -> total.tasks_created 0

== status: counts nodes, tasks and uptime
  empty = GET status -> {status: ok, nodes_count: 0, tasks_count: 0, transport: *, software: ~luxhub, name: null, variant: A,
    version: "1.5", storage: *, uptime: 0..60}
  nodes n1 n2
  t = task/create
  task/claim $t n1
  task/complete $t n1
  task/create
  tick 100s
  GET status -> {nodes_count: 2, tasks_count: 2, uptime: 100..199}

-- status: uptime does not follow a clock that jumps
  jump -1h
  GET status -> uptime 0..60

== events: record everything that happens, in one order
  nodes n1
  t = task/create {lux_reward: 1, creator_node: boss}
  task/claim $t n1
  admin task/revoke $t
  task/assign $t n1
  task/complete $t n1
  signin n1
  m = message/send op n1 {require_ack: true}
  message/receive n1
  message/ack n1 {message_id: $m}
  f = upload a.txt
  file/delete {file_id: $f}
  admin task/delete $t
  e = GET events?limit=14 -> [node.registered, node.online, task.created, task.assigned, task.revoked, task.assigned,
    task.completed, lux.paid, lux.signin, message.sent, message.acked, file.uploaded, file.deleted, task.deleted]
  -> events [${`${EVENT}, `.repeat(14)}]
  -> events.task_id [null, null, $t, $t, $t, $t, $t, $t, null, null, null, null, null, $t]
  -> {cursor: $e.events.13.id, events: [*, *, {node_id: boss}, {node_id: n1}, *, *, {node_id: n1}, *, *, {node_id: n1}, *, *, *, *]}

== events: continue after a cursor: exclusive, ascending, no gap, no repeat
  start = GET events?limit=1
  <a|b|c|d|e> = task/create
  one = GET events?since=$start.cursor&limit=2 -> events.task_id [$a, $b]
  two = GET events?since=$one.cursor&limit=2 -> events.task_id [$c, $d]
  three = GET events?since=$two.cursor&limit=2 -> events.task_id [$e]
  GET events?since=$three.cursor&limit=2 -> {events: [], cursor: $three.cursor}
  GET events?since=$start.cursor -> {cursor: $three.cursor, events: #5}

-- events: from a time on, before, between and after all of them
  nodes n1
  at = GET events?limit=1
  tick 60s
  <a|b> = task/create
  tick 60s
  c = task/create
  GET events?since_time=$at.events.0.at&kind=task.created -> events.task_id [$a, $b, $c]
  e = GET events?limit=3 -> events.task_id [$a, $b, $c]
  GET events?since_time=$e.events.<0|2>.at -> {events: #<3|1>, cursor: $e.cursor}
  GET events?since_time=2001-01-01T00:00:00Z&limit=1 -> events.id [1]
  GET events?since_time=2099-01-01T00:00:00Z -> {events: [], cursor: $e.cursor}
  GET events?since_time=noon -> 400 since_time
  GET events?since_time=2099-01-01T00:00:00Z&since=0 -> 400 since_time

-- events: without since are the newest, ascending, 100 by default; they are filtered by kind
  batch
  ${"+ task/create\n".repeat(110)}
  nodes n1
  last = task/create
  task/claim $last n1
  GET events -> events #100
  GET events?limit=2 -> events [{kind: task.created, task_id: $last}, {kind: task.assigned, task_id: $last, node_id: n1}]
  GET events?since=0 -> events #100
  GET events?kind=task.created&limit=1 -> events [{task_id: $last}]
  GET events?since=0&kind=task.assigned -> events.task_id [$last]
  GET events?since=0&kind=node.offline -> {events: [], cursor: 0}

-- events: refuse values out of range (<A|B>)
  <|B >GET events?since=<-1|x|1.5> -> 400 since
  <|B >GET events?limit=<0|1001|-1|x> -> 400 limit
  <|B >GET events?kind=<nope|task|task.*> -> 400 kind
  <|B >GET events?since=999999999&limit=1000&kind=transport.changed

== events: continue with greater ids after a restart, which is an event itself
  t = task/create
  before = GET events?limit=1
  restart
  task/create
  GET events?since=$before.cursor&kind=hub.started -> events !#0
  GET events?since=$before.cursor&kind=task.created -> events #1
  GET events?since=0&kind=task.created -> events #2

== poll: answers existing task events at once, and only task events
  nodes n1
  message/send op n1
  t = task/create
  task/claim $t n1
  signin n1
  p = GET poll?since=0&timeout=60 -> events [{kind: task.created, task_id: $t}, {kind: task.assigned, task_id: $t}]
  GET poll?since=$p.cursor&timeout=0 -> {events: [], cursor: $p.cursor}

== poll: blocks until the first event, from now or from a cursor
  task/create
  e = GET events?limit=1
  a = & GET poll?since=$e.cursor&timeout=60
  b = & B GET poll?since=$e.cursor&timeout=60
  nodes n1
  $<a|b> waits
  t = task/create
  $<a|b> -> events.task_id [$t]

-- poll: without a cursor blocks until the first event from now, or until its timeout
  task/create
  e = GET events?limit=1
  GET poll?timeout=0.1 -> {events: [], cursor: $e.cursor}
  p = & GET poll?timeout=60
  t = task/create
  $p -> events.task_id [$t]
  GET poll?since=-1&timeout=<301|-1|x|300.5> -> 400 since timeout
`);
