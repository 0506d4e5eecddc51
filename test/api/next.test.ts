/**
 * A worker's next task (task/next): the choice of the task and of the waiting worker, wake-ups, and the call as a
 * heartbeat. hang-ups.test.ts has the callers that meet, and those that hang up.
 */
import { transcripts } from "../support/transcript.ts";

/** w waits for a task of whatever type, and other holds one. */
const blocked = (fields = "") => `
  nodes w {capabilities: [y]}
  nodes other {auto_assign: false}
  held = task/create {${fields}}
  task/claim $held other
  call = & task/next w {wait: 300}`;

transcripts(`
== gifts first, best first, then the best open one; each is handed out once
  nodes n1 n2
  low = task/create {priority: 2}
  open = task/create {priority: 1, timeout_s: 60}
  high = task/create {priority: 0}
  gift = task/create {priority: 2}
  best = task/create {priority: 1}
  task/assign $<gift|best> n1
  task/next n1 -> {lease: {epoch: 2, expires_at: null}, drain: false}
  -> task {task_id: $best, status: assigned, assigned_node: n1, attempts: 0, started_at: *}
  task/next n1 -> task.task_id $<gift|high>
  task/next n2 -> {task: {task_id: $open}, lease: {epoch: 1, expires_at: *}}
  task/next n2 -> task.task_id $low
  task/next n2 -> {task: null, lease: null}
  task $open -> assigned_node n2
  events $best -> [task.created, task.assigned]
  GET events?since=0&task_id=$open&kind=task.assigned -> events [{node_id: n2, data: {by: next}}]
  task/complete $best n1 {epoch: 1} -> 409 stale_lease
  task/complete $best n1 {epoch: 2}
  task/next nobody -> 404 node_not_found

-- capabilities and task_types limit the open ones only
  nodes coder {capabilities: [code, test]}
  nodes any
  code = task/create {task_type: code}
  tests = task/create {task_type: test}
  paint = task/create {task_type: paint}
  untyped = task/create
  gift = task/create {task_type: paint}
  task/assign $gift coder
  task/next coder {task_types: [test]} -> task.task_id $gift
  task/next coder {task_types: [paint]} -> task null
  task/next coder {task_types: [paint, " test "]} -> task.task_id $tests
  task/next any {task_types: [paint, code]} -> task.task_id $code
  task/next any {task_types: [test]} -> task null
  task/next coder -> task.task_id $untyped
  task/next coder -> task null
  task/next any -> task.task_id $paint

== only ready tasks, also one that the node itself released
  nodes n1 {auto_assign: false}
  first = B task/create
  task/create {delay_s: 60}
  task/create {depends_on: [$first]}
  task/next n1 -> task.task_id $first
  task/next n1 -> task null
  task/release $first n1
  task/next n1 -> task.task_id $first

== resume hands out what was started, oldest first, each time under a new epoch
  nodes n1 n2
  a = task/create {timeout_s: 100}
  b, open = task/create
  tick 1s; task/claim $<b|a> n1
  gift = task/create
  task/assign $gift n1
  task/next n2 {resume: true} -> task.task_id $open
  tick 1s; task/next n1 {resume: true} -> {task: {task_id: $<b|a|b|a>}, lease: {epoch: <2|2|3|3>}}
  GET events?task_id=$a&kind=task.assigned&since=0 -> events.data.by [claim, resume, resume]
  task/fail $a n1 {epoch: 2} -> 409 stale_lease
  task/complete $<a|b> n1
  task/next n1 {resume: true} -> task.task_id $gift
  task/next n1 -> task null

-- resume counts restarts, which are attempts of a task with max_attempts, and the last one fails it
  nodes n1 {max_tasks: 1}
  poison = task/create {max_attempts: 3, priority: 0}
  after = task/create {depends_on: [$poison]}
  next = task/create
  c = task/next n1 {resume: true} ->
    task {task_id: $poison, restarts: <0|1|2>, attempts: <0|1|2>, status: assigned};
  task/extend $poison n1 {epoch: $c.lease.epoch}
  task/extend $poison n1 {epoch: 1} -> 409 stale_lease
  task/next n1 {resume: true} -> task.task_id $next
  task $poison -> {status: failed, attempts: 3, restarts: 3}
  -> failure {kind: offline, node_id: n1, message: ~restart}
  events $poison -> [task.created, task.assigned, task.requeued, task.assigned, task.requeued, task.assigned, task.requeued, task.failed]
  task $after -> failure.kind dependency
  task/retry $poison -> task {attempts: 0, restarts: 0, status: open}

-- without max_attempts a restart is no attempt and never ends the task
  nodes n1
  t = task/create
  task/next n1 {resume: true} -> task {task_id: $t, restarts: <0|1|2|3|4|5|6|7|8|9|10|11|12|13|14>, attempts: 0}

-- a restart has a new timeout, and what is left of max_run_s unless it is another attempt
  nodes n1
  t = task/create {timeout_s: 50, max_run_s: 60, max_attempts: <null|9>};
  task/next n1 -> task.task_id $t;
  tick 30s;
  task/next n1 {resume: true} -> lease.expires_at +<30|50>s;
  task/complete $t n1

-- a restart that ends the task answers at once, and waits when there is no other
  nodes n1 {max_tasks: 1}
  poison = task/create {max_attempts: 1}
  task/next n1 -> task.task_id $poison
  call = & task/next n1 {resume: true, wait: 60}
  until task $poison -> status failed
  # Its node has room again.
  next = task/create
  $call -> task.task_id $next

-- wrong types are 400
  nodes n1
  task/next {node_id: "a b", wait: -1} -> 400 node_id wait
  task/next n1 {wait: 301, resume: yes} -> 400 wait resume
  task/next n1 {wait: "5", task_types: code} -> 400 wait task_types
  task/next n1 {task_types: []} -> 400 task_types
  task/next n1 {task_types: ["", 1, ${"x".repeat(101)}]} -> 400 task_types.0 task_types.1 task_types.2
  task/next n1 {task_types: [${'"x", '.repeat(65)}]} -> 400 task_types
  task/next {} -> 400 node_id
  task/next n1 {wait: null, task_types: null, resume: null}
  task/next n1 {wait: 0, task_types: [${Array.from({ length: 64 }, (_, i) => "x".repeat(100 - i))}]}
  GET task/next -> 405 method_not_allowed

-- a blocked worker is woken by a new task
  ${blocked()}
  t = task/create
  $call -> task.task_id $t

-- a blocked worker is woken by a <release|retry|revocation|revocation in its favour|timeout|node that leaves|node that is deleted|backoff that ends|node that goes offline>
  ${blocked("timeout_s: 500, backoff_s: 5")}
  $call waits
  <task/release $held other|task/cancel $held; task/retry $held|admin task/revoke $held|admin task/revoke $held w|pass 501s w|node/leave other|admin node/delete other|task/fail $held other; tick 6s; sweep|pass 190s w>
  <sweep|sweep|sweep|sweep|tick 6s|sweep|sweep|sweep|sweep>
  until task $held -> assigned_node w
  $call -> task.task_id $held

-- a blocked worker is woken by a task whose <time has come|dependency is completed>, which <is not|is> held
  ${blocked()}
  t = task/create <{delay_s: 5}|{depends_on: [$held]}>
  <tick 6s; sweep|task/complete $held other>
  $call -> task.task_id $t

-- a blocked worker is woken by <an assignment|the balancer|a capability that it gets>
  ${blocked()}
  t = <task/create {task_type: x}|B task/create {task_type: y}|task/create {task_type: x}>
  <task/assign $t w|sweep|nodes w {capabilities: [x, y]}>
  $call -> task.task_id $t

= blocked workers are served in order of arrival, each with a task that it takes
  nodes painter {capabilities: paint}
  nodes n1 n2 n3
  painter = & task/next painter {wait: 120}
  <a|b|c> = & task/next <n1|n2|n3> {wait: 120}
  t = task/create {task_type: code}; $<a|b|c> -> task.task_id $t
  $painter waits
  again = & task/next n1 {wait: 120}
  t = task/create {task_type: paint}
  $painter -> task.task_id $t
  $again waits
  t = task/create
  $again -> task.task_id $t

-- several calls of one node get a task each
  nodes n1
  <a|b|c> = & task/next n1 {wait: 120}
  gift = task/create {task_type: x, delay_s: 0}
  $a -> task.task_id $gift
  <t|u> = task/create; $<b|c> -> task.task_id $<t|u>

= a node at its limit waits for room, and takes its gifts
  nodes n1 {max_tasks: 1}
  first, open = task/create
  task/next n1 -> task.task_id $first
  <a|b> = & task/next n1 {wait: 120}
  gift = task/create {task_type: x}
  task/assign $gift n1
  $a -> task.task_id $gift
  task/fail $gift n1 {retry: false}
  $b waits
  task/complete $first n1
  $b -> task.task_id $open
  # More room by a new registration.
  more = & task/next n1 {wait: 120}
  next = task/create
  nodes n1 {max_tasks: 2}
  $more -> task.task_id $next
  # Room for two wakes two, and leaving ends the third call.
  <a|b|c> = & task/next n1 {wait: 120}
  x, y, z = task/create
  task/complete $<open|next> n1
  until node n1 -> tasks_assigned 2
  node/leave n1
  $<a|b|c> -> success true

== a draining node gets its gifts and then answers at once
  nodes n1 n2
  gift = task/create
  task/assign $gift n1
  node/drain n1 {drain: true}
  task/create {priority: 2}
  task/next n1 {wait: 300} -> {task: {task_id: $gift}, drain: true}
  task/next n1 {wait: 300} -> {task: null, lease: null, drain: true}
  task/next n1 {resume: true} -> {task: {task_id: $gift}, drain: true}
  task/next n2
  call = & task/next n2 {wait: 120}
  node/drain n2 {drain: true}
  $call -> {task: null, lease: null, drain: true}
  node/drain n2 {drain: false}
  task/next n2 -> drain false

-- calls of a node that leaves are answered null, of one that is deleted 404
  nodes n1 n2 n3
  <a|b> = & task/next n1 {wait: 120}
  node/leave n1
  $<a|b> -> task null
  node n1 -> status offline
  c = & task/next n2 {wait: 120}
  admin node/delete n2
  $c -> 404 node_not_found
  task/create
  node n1 -> {status: offline, tasks_assigned: 0}

-- calls are answered 401 and take nothing when their key is revoked
  nodes n1 n2
  robot = admin key/add n1 {name: robot}
  as $robot task/next n2 -> 403 key_bound_to_other_node
  a = & as $robot task/next n1 {wait: 120}
  b = & as $robot key k task/next n1 {wait: 120}
  c = & task/next n2 {wait: 120}
  admin key/revoke {name: robot}
  $<a|b> -> 401 unauthorized
  t = task/create
  $c -> task.task_id $t
  GET events?since=0&kind=task.released -> events []

-- calls are answered null when the wait is over
  nodes n1
  task/next n1 {wait: 0.05} -> task null

-- a node of <A|B> stays online as long as its call waits
  <|B >nodes w silent {capabilities: none}
  call = & task/next w {wait: 300}
  ${"tick 20s\n  sweep\n  ".repeat(12)}
  node silent -> status offline
  node w -> {status: online, last_heartbeat: +0s}
  t = task/create
  $call -> task.task_id $t

== a call puts an offline node online, which gets tasks from the balancer
  B nodes n1
  node/leave n1
  t = B task/create
  task/next n1 -> task.task_id $t
  node n1 -> {status: online, tasks_assigned: 1}

-- a call counts as a heartbeat whether it gets a task or not
  nodes n1
  tick 1m; task/create; task/next n1 <|{task_types: [none]}>; node n1 -> last_heartbeat +0s

== in a batch it sees the requests before it, and must not wait
  nodes n1
  batch {requests: [
    {path: node/register, body: {node_id: n2, name: n2, capabilities: x}},
    {path: task/create, body: {title: t, description: d, task_type: x}},
    {path: task/next, body: {node_id: n2}}, {path: task/next, body: {node_id: n2}},
    {path: task/next, body: {node_id: n1, wait: 1}},
    {path: node/leave, body: {node_id: n2}}, {path: task/next, body: {node_id: n2}}]} ->
    answers [*, *, {body: {task: {assigned_node: n2}}}, {body: {task: null}}, {body: {error: invalid_request}}, *, *]

== in a batch puts an offline node online, which gets tasks from the balancer
  B nodes n1 {max_tasks: 2}
  node/leave n1
  low = B task/create {priority: low}
  high, open = B task/create {priority: high}
  batch {requests: [${"{path: task/next, body: {node_id: n1}}, ".repeat(3)}]} ->
    answers.body.task [{task_id: $high}, {task_id: $open}, null]
  node n1 -> {status: online, tasks_assigned: 2}
  task $low -> assigned_node null
  GET events?since=0&node_id=n1 -> [node.registered, node.online, node.left, node.offline, node.online, task.assigned, task.assigned]
`);
