/**
 * The worker's and the producer's commands besides claim and complete: release, fail, extend, cancel, retry, delay,
 * dependencies, and waiting for the end of a task. Nodes that leave and drain.
 */
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

const FAR = "2100-01-01T00:00:00Z";

transcripts(`
== release: gives a task back, with its attempts, and it can be claimed again
  nodes n1 n2
  t = task/create
  c = task/claim $t n1
  task/release $t n1 {epoch: $c.lease.epoch, reason: "too hard"}
  -> {task_id: $t, status: open, assigned_node: null, lease: {epoch: $c.lease.epoch+1, expires_at: null}}
  -> task {attempts: 0, ready: true, started_at: null, failure: null}
  task/release $t n1 -> 409 task_not_assigned
  task/claim $t n2 -> lease.epoch $c.lease.epoch+2
  task/release $t n1 -> 403 not_assigned_to_node
  task/release $t nobody -> 404 node_not_found
  task/release n1 {task_id: ${NO_ID}} -> 404 task_not_found
  GET events?since=0&kind=task.released -> events [{node_id: n1, task_id: $t, data: {reason: "too hard"}}]

-- release: the balancer gives it to another node, not straight back
  B nodes n1
  t = B task/create
  task/release $t n1 -> assigned_node null
  B nodes n2
  task $t -> assigned_node n2
  task/release $t n2 -> assigned_node n1

== fail: a failed attempt is open again after the backoff, which doubles
  nodes n1 {max_tasks: 1}
  t = task/create {backoff_s: 20}
  task/claim $t n1;
  task/fail $t n1 {error: "disk full"} -> task {status: open, ready: false, not_before: +<20|40>s,
    attempts: <1|2>, failure: {kind: failed, message: "disk full", node_id: n1}};
  task/claim $t n1 -> 409 task_not_ready;
  GET task/pull?node_id=n1 -> tasks [];
  pass <20|40>s n1;
  GET task/pull?node_id=n1 -> tasks.task_id [$t]

-- fail: the last attempt fails the task, and B says so
  nodes n1
  t = task/create {max_attempts: 1, lux_reward: 5}
  task/claim $t n1
  B task/fail $t n1
  -> {status: failed, assigned_node: null, task: {attempts: 1, ready: false}}
  task/<claim|release|extend|fail|complete> $t n1 -> 409 task_failed
  task/cancel $t -> 409 task_failed
  B task/complete $t n1 -> 409 task_failed
  admin task/revoke $t -> 409 task_failed
  node n1 -> {lux_balance: 0, tasks_assigned: 0, tasks_completed: 0}
  GET task/list?status=failed -> tasks.task_id [$t]
  B GET task/list -> tasks.status [failed]
  GET task/stats -> {total: 1, by_status: {failed: 1, completed: 0}}
  GET status -> tasks_count 1
  events $t -> [task.created, task.assigned, task.attempt_failed, task.failed]

== fail: retry: false fails the task at once; retry opens it again
  nodes n1
  t = task/create
  task/retry $t -> 409 task_not_failed
  c = task/claim $t n1
  task/fail $t n1 {retry: false}
  task/retry $t -> {status: open, task: {attempts: 0, ready: true}}
  task/claim $t n1 -> lease.epoch !$c.lease.epoch
  task/complete $t n1
  task/retry $t -> 409 task_not_failed
  task/cancel $t -> 409 task_completed
  events $t -> [task.created, task.assigned, task.attempt_failed, task.failed, task.retried, task.assigned, task.completed]

-- fail: a node that goes offline ends a task only if it has max_attempts
  nodes n1
  endless = task/create
  limited = task/create {max_attempts: 1}
  task/assign $endless n1
  task/assign $limited n1
  pass 200s
  task $endless -> {status: open, ready: true, attempts: 1, failure: {kind: offline, node_id: n1}}
  task $limited -> {status: failed, attempts: 1, failure: {kind: offline, node_id: n1}}
  events $limited -> [task.created, task.assigned, task.requeued, task.failed]

-- fail: and the other steps refuse what is no request of theirs
  task/fail n1 {task_id: t, error: null} -> 400 error
  task/fail n1 {task_id: t, error: " "} -> 400 error
  task/fail n1 {task_id: t, error: ${"x".repeat(4_001)}, retry: no} -> 400 error retry
  task/fail n1 {task_id: t, epoch: -1} -> 400 epoch
  task/release n1 {task_id: t, epoch: "1", reason: 1} -> 400 epoch reason
  task/extend n1 {task_id: t, note: ${"x".repeat(1_001)}, epoch: 1.5} -> 400 note epoch
  task/extend {task_id: t} -> 400 node_id
  task/cancel {task_id: t, node_id: "a b", reason: ${"x".repeat(501)}} -> 400 node_id reason
  task/retry {task_id: ""} -> 400 task_id

== leases and epochs: a timeout takes the task back, and its late holder is refused
  nodes slow fast
  t = task/create {timeout_s: 60, backoff_s: 0, lux_reward: 3}
  c = task/claim $t slow -> {lease: {expires_at: +60s}, task: {timeout_s: 60}}
  pass 30s slow fast
  task $t -> {status: assigned, attempts: 0}
  pass 60s slow fast
  task $t -> {status: open, attempts: 1, failure: {kind: timed_out, node_id: slow}}
  task/claim $t fast
  task/<complete|fail|release|extend> $t slow {epoch: $c.lease.epoch} -> 409 stale_lease
  task/complete $t fast
  node fast -> lux_balance 3
  node slow -> lux_balance 0
  events $t -> [task.created, task.assigned, task.timed_out, task.assigned, task.completed, lux.paid]

-- leases and epochs: a node that claims its task again holds it under another epoch
  nodes n1
  t = task/create {timeout_s: 10, backoff_s: 0}
  first = task/claim $t n1
  pass 11s
  second = task/claim $t n1 -> lease.epoch !$first.lease.epoch
  # A repeat is no dispatch.
  task/claim $t n1 -> lease.epoch $second.lease.epoch
  task/complete $t n1 {epoch: $first.lease.epoch} -> 409 stale_lease
  task/complete $t n1 {epoch: $second.lease.epoch}
  task/complete $t n1 {epoch: $second.lease.epoch}

== leases and epochs: extend keeps the lease, and shows a note
  nodes n1
  t = task/create {timeout_s: 60}
  c = task/claim $t n1
  pass 50s n1;
  task/extend $t n1 {epoch: $c.lease.epoch, note: "<a third|two thirds>"} -> lease.epoch $c.lease.epoch;
  task $t -> {status: assigned, progress: "<a third|two thirds>", attempts: 0}
  GET events?since=0&kind=task.progress -> events.data.note ["a third", "two thirds"]
  pass 70s n1
  task $t -> {status: open, progress: null, attempts: 1}

== leases and epochs: max_run_s ends an attempt, however often it is extended, and each attempt has it whole
  nodes n1
  t = task/create {timeout_s: 60, max_run_s: 100, backoff_s: 0, max_attempts: 2}
  task/claim $t n1 -> lease.expires_at +60s; pass 50s n1;
  task/extend $t n1 -> lease.expires_at +50s; pass 30s n1;
  task/extend $t n1 -> lease.expires_at +20s;
  task $t -> {status: assigned, attempts: <0|1>}; pass 30s n1;
  task $t -> {status: <open|failed>, attempts: <1|2>, max_run_s: 100,
    failure: {kind: timed_out, message: ~max_run_s}}
  events $t -> [task.created, ${"task.assigned, task.timed_out, ".repeat(2)} task.failed]

-- leases and epochs: max_run_s needs no timeout_s, an extend does not move it, and a jump of the wall clock ends it no more than a lease
  nodes n1
  t = task/create {max_run_s: 60, backoff_s: 0}
  short = task/create {timeout_s: 60}
  task/claim $t n1 -> lease.expires_at +60s
  pass 30s n1
  task/claim $short n1
  task/extend $t n1 {note: half} -> lease.expires_at +30s
  jump 1h
  sweep
  task $t -> status assigned
  task $short -> status assigned
  task/claim $short n1 -> lease.expires_at +60s
  pass 70s n1
  task $t -> {status: open, failure: {kind: timed_out}}

-- leases and epochs: claim sets started_at, assign does not, and a claim of an assigned task does
  nodes n1
  t = task/create
  task/assign $t n1 -> task.started_at null
  c = task/claim $t n1 -> task.started_at *
  task/claim $t n1 -> task.started_at $c.task.started_at
  admin task/revoke $t
  task $t -> started_at null

== cancel ends an open and an assigned task, and records the node and the reason
  nodes n1 boss
  open = task/create
  held = task/create
  task/assign $held n1
  task/cancel $open
  task/cancel $held boss {reason: "not needed"} -> {status: failed, assigned_node: null}
  task $open -> failure {kind: cancelled, message: null, node_id: null}
  task $held -> failure {kind: cancelled, message: "not needed", node_id: boss}
  task/complete $held n1 -> 409 task_failed
  other = task/create
  task/cancel $other nobody -> 404 node_not_found
  node n1 -> tasks_assigned 0

== delay and expiry: a delayed task is not handed out before its time
  B nodes n1
  delayed = B task/create {delay_s: 90}
  at = task/create {not_before: +90s}
  past = task/create {not_before: -1d}
  task $delayed -> {status: open, ready: false, assigned_node: null}
  task $past -> ready true
  task/claim $at n1 -> 409 task_not_ready
  task/assign $at n1 -> 409 task_not_ready
  B task/complete $at n1 -> 409 task_not_ready
  task/complete $at n1 -> 409 task_not_assigned
  GET task/pull?node_id=n1 -> tasks.task_id [$past]
  B task/batch-assign -> assigned 1
  pass 60s n1
  task $delayed -> assigned_node null
  pass 40s n1
  # The balancer gives away what was created through B.
  task $delayed -> assigned_node n1
  GET task/pull?node_id=n1 -> tasks.task_id [$at]
  task/claim $at n1

== delay and expiry: a task that is not completed by expires_at fails
  nodes n1
  open, held, done = task/create {expires_at: +60s}
  task/assign $held n1
  task/assign $done n1
  task/complete $done n1
  pass 70s n1
  task $open -> {status: failed, attempts: 0, expires_at: *, failure: {kind: expired, node_id: null}}
  task $held -> {status: failed, failure: {kind: expired, node_id: n1}}
  task $done -> status completed
  # It would expire again at once.
  task/retry $open -> {status: open, task: {expires_at: null}}

-- delay and expiry: create refuses what makes no sense
  task/create {max_attempts: 0, backoff_s: -1, timeout_s: 0} -> 400 max_attempts backoff_s timeout_s
  task/create {max_run_s: 0} -> 400 max_run_s
  task/create {max_run_s: 2_592_001} -> 400 max_run_s
  task/create {max_attempts: 101, backoff_s: 3_601, timeout_s: 604_801} -> 400 max_attempts backoff_s timeout_s
  task/create {max_attempts: 1.5, backoff_s: "5"} -> 400 max_attempts backoff_s
  task/create {delay_s: 1, not_before: 2030-01-01T00:00:00Z} -> 400 delay_s
  task/create {delay_s: -1, not_before: tomorrow, expires_at: 5} -> 400 delay_s not_before expires_at
  task/create {expires_at: 2020-01-01T00:00:00Z} -> 400 expires_at
  task/create {expires_at: 2030-01-01T00:00:00} -> 400 expires_at
  task/create {expires_at: ${FAR}, not_before: ${FAR}} -> 400 expires_at not_before
  task/create {depends_on: ${NO_ID}} -> 400 depends_on
  task/create {depends_on: [1, ""]} -> 400 depends_on.0 depends_on.1

== depends_on: a task is handed out once all its dependencies are completed
  nodes n1
  a, b = task/create
  last = task/create {depends_on: [$a, $b, $a]}
  task $last -> {depends_on: [$a, $b], status: open, ready: false}
  task/claim $last n1 -> 409 task_not_ready
  task/claim $a n1
  task/complete $a n1
  task $last -> ready false
  task/claim $b n1
  task/complete $b n1
  task $last -> ready true
  task/claim $last n1
  task/create {depends_on: [$a]} -> task.ready true

-- depends_on: the balancer gets it as soon as it is ready
  B nodes n1
  first = B task/create
  second = B task/create {depends_on: [$first]}
  task $second -> assigned_node null
  task/complete $first n1
  task $second -> assigned_node n1

== depends_on: a task fails when a dependency fails or is deleted, and so do its dependents
  a, b = task/create
  after = task/create {depends_on: [$a, $b]}
  more = task/create {depends_on: [$after]}
  other = task/create {depends_on: [$b]}
  task/cancel $a
  task $after -> {status: failed, failure: {kind: dependency, node_id: null}}
  task $more -> {status: failed, failure: {kind: dependency, node_id: null}}
  task $other -> status open
  admin task/delete $b
  task $other -> {status: failed, failure: {kind: dependency}}
  late = B task/create {depends_on: [$a]} -> {status: failed, task: {failure: {kind: dependency}}}
  events $late -> [task.created, task.failed]
  task/create {depends_on: [$a, $b]} -> 400 depends_on.1

-- depends_on: after a retry of both, the task waits for its dependency again
  nodes n1
  first = task/create
  second = task/create {depends_on: [$first]}
  task/cancel $first
  task/retry $second -> status failed
  task/retry $first
  task/retry $second -> {status: open, task: {ready: false}}
  task/claim $first n1
  task/complete $first n1
  task $second -> ready true

== depends_on: hundreds of tasks that depend on one are all updated when it ends
  nodes n1
  first = task/create
  ${`batch {requests: [${"{path: task/create, body: {title: t, description: d, depends_on: [$first]}}, ".repeat(250)}]}
  `.repeat(4)}
  last = task/create {depends_on: [$first]}
  task/claim $first n1
  task/complete $first n1
  # The first hear of it at once, the others from periodic work, which may take several sweeps.
  until task $last -> ready true
  GET task/pull?node_id=n1&limit=1000 -> tasks #1000

-- GET task: answers one task in either variant
  t = task/create
  GET task/$t -> task {task_id: $t, status: open}
  B GET task/$t -> task {task_id: $t, status: pending}
  <B GET|GET> task/${NO_ID} -> 404 task_not_found
  GET task/$t?wait=<-1|301|x> -> 400 wait
  GET task/create -> 405 method_not_allowed
== GET task: waits until it is <completed|failed>
  nodes n1
  t = task/create
  task/assign $t n1
  w = & GET task/$t?wait=60
  task/extend $t n1 {note: half}
  $w waits
  task/<complete $t n1|cancel $t>
  $w -> task.status <completed|failed>
  GET task/$t?wait=60 -> task.status <completed|failed>

-- GET task: answers the current task when the wait is over, and 404 when it is deleted meanwhile
  t = task/create
  GET task/$t?wait=0.05 -> task.status open
  w = & GET task/$t?wait=60
  admin task/delete $t
  $w -> 404 task_not_found

== GET events selects the events of one task and of one node
  nodes n1 n2
  first, second = task/create
  task/assign $first n1
  task/assign $second n2
  task/complete $first n1
  end = GET events?limit=1
  events $first -> [task.created, task.assigned, task.completed]
  -> cursor $end.cursor
  GET events?task_id=$first -> [task.created, task.assigned, task.completed]
  GET events?since=0&node_id=n2 -> [node.registered, node.online, task.assigned]
  GET events?since=0&node_id=n2&kind=task.assigned&task_id=$second -> [task.assigned]
  GET events?task_id=$first&limit=2 -> [task.assigned, task.completed]
  begin = GET events?since=0&task_id=$first&limit=2 -> [task.created, task.assigned]
  GET events?since=$begin.cursor&task_id=$first -> [task.completed]
  -> cursor $end.cursor
  GET events?since=1000&task_id=$first -> {events: [], cursor: $end.cursor}
  GET events?node_id=a%20b -> 400 node_id

== leave and drain: a node that leaves is offline at once and gives its tasks back
  nodes n1
  held = task/create
  task/assign $held n1
  node/leave n1 -> {node_id: n1, status: offline, tasks_released: 1}
  node n1 -> {status: offline, tasks_assigned: 0}
  task $held -> {status: open, attempts: 0}
  node/leave n1 -> tasks_released 0
  GET events?since=0&node_id=n1 ->
  [node.registered, node.online, task.assigned, task.released, node.left, node.offline]
  node/leave nobody -> 404 node_not_found
  node/heartbeat n1
  node n1 -> status online

-- leave and drain: the balancer assigns the tasks that it leaves to another node
  B nodes n1
  held = B task/create
  B nodes n2
  task $held -> assigned_node n1
  node/leave n1
  task $held -> assigned_node n2

== leave and drain: a draining node finishes its tasks and gets no new ones
  B nodes n1
  held, other = task/create
  task/assign $held n1
  node/drain n1 {drain: true} -> {node_id: n1, drain: true, tasks_assigned: 1}
  node n1 -> {status: online, draining: true}
  node/heartbeat n1 -> drain true
  task/claim $other n1 -> 409 node_draining
  task/assign $other n1 -> 409 node_draining
  task/claim $held n1
  GET task/pull?node_id=n1 -> tasks []
  waits = B task/create
  task $waits -> assigned_node null
  nodes n2 {auto_assign: false}
  revoked = task/create
  task/assign $revoked n2
  admin task/revoke $revoked n1 -> 409 node_draining
  task/complete $held n1
  node/drain n1 {drain: false}
  task $waits -> assigned_node n1
  node/heartbeat n1 -> drain false
  GET events?since=0&kind=node.draining -> events.data.draining [true, false]
  node/drain n1 -> 400 drain

-- leave and drain: registering again keeps the drain; leaving ends it
  nodes n1
  node/drain n1 {drain: true}
  nodes n1
  node n1 -> draining true
  node/leave n1
  nodes n1
  node n1 -> draining false
`);
