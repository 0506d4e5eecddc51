/**
 * POST batch: requests run in order and in one transaction, each answered as if sent alone. batch-bounds.test.ts has how
 * much fits into one, test/e2e/crash.test.ts a kill in the middle.
 */
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

const CREATE = "{path: task/create, body: {title: t, description: d}}";
const NO_REQUESTS = `null 5 task/create [] {} {path:signin} {path:5,body:{}} {path:x,body:[]} {path:x,body:null} {body:{}}`;

transcripts(`
== a batch: answers in order, as if each request were sent alone; a refusal does not stop the others
  nodes n1 n2
  t = task/create {lux_reward: 2}
  batch
  + task/complete $t n1 -> 409 task_not_assigned
  + task/claim $t n1 -> {task_id: $t, assigned_node: n1, task: {title: t}}
  + task/claim $t n2 -> 409 task_not_open
  + task/complete $t n2 -> 403 not_assigned_to_node
  + task/complete $t n1 -> {status: completed, lux_paid: 2, receipt: {amount: 2}, task_id: $t}
  + task/complete $t n1 -> lux_paid 2
  + task/complete $t n1 {result: {lesson: another}} -> 409 task_completed
  + task/claim n1 {task_id: ${NO_ID}} -> 404 task_not_found
  + task/claim $t -> 400 node_id
  + node/heartbeat nobody -> 404 node_not_found
  events $t -> [task.created, task.assigned, task.completed, lux.paid]

== a batch: each request sees the changes of those before it
  nodes n1
  batch
  + message/send op n1 {content: first}
  + message/send op n1 {content: second}
  + node/heartbeat n1 -> messages_waiting 2
  + message/receive n1 {count: 1} -> messages.content [first]
  + message/receive n1 -> messages.content [second]
  + message/receive n1 -> messages []
  + node/heartbeat n1 -> messages_waiting 0
  message/receive n1 -> messages []

== a batch: sees the requests before it even where a handler reads ahead of its transaction
  nodes n1 n3
  gone, kept = task/create
  admin batch
  + task/delete $gone
  + task/create {depends_on: [$kept, $gone]} -> 400 depends_on.1
  + task/create {depends_on: [$kept]}
  + node/leave n3
  + node/heartbeat n3
  + node/register n5 {name: new}
  + task/claim $kept n5
  + task/release $kept n5
  + node/leave n5 -> tasks_released 0
  + node/leave nobody -> 404 node_not_found
  node n3 -> status online
  node n5 -> status offline

== a batch: the balancer gives a task that the batch handed out and revoked to another node
  B nodes b1 b2 {capabilities: rare}
  node/drain <b1|b2> {drain: true}
  t = B task/create {task_type: rare}
  admin batch
  + node/drain b1 {drain: false}
  + task/claim $t b1
  + node/register b3 {name: b3, capabilities: [rare], auto_assign: true}
  + task/revoke $t -> assigned_node b3

-- a batch: has 1 to 500 requests; an element that is none refuses the whole, and is named
  batch {requests: [${CREATE}, <${NO_REQUESTS.replaceAll(" ", "|")}>, ${CREATE}]} -> 400 requests.1
  batch {requests: [5, ${CREATE}, {}]} -> 400 requests.0 requests.2
  batch {requests: ${CREATE}} -> 400 requests
  batch {requests: []} -> 400 requests
  batch {} -> 400 requests
  batch {requests: [${`${CREATE}, `.repeat(501)}]} -> 400 requests
  GET task/stats -> total 0
  batch {requests: [${`${CREATE}, `.repeat(500)}]}
  GET task/stats -> total 500

-- a batch: a path that is unknown, waits or is written in several commits is 400 for that request alone
  nodes n1
  batch
  + batch {requests: [{path: signin, body: {node_id: n1}}]} -> 400 path
  + message/<broadcast op|receive n1 {blocking: true}|receive n1 {blocking: true, timeout: 1}> -> 400 path
  + agent/broadcast {} -> 400 path
  + task/<batch-assign|list|next n1 {wait: 1}|create?x=1> {} -> 400 path
  + file/upload {} -> 400 path
  + </task/create|/api/v1/task/create|../v1/task/create|__proto__> {} -> 400 path
  + message/receive n1 {blocking: true, timeout: 0} -> messages []
  + message/receive n1 {timeout: 300} -> messages []
  + task/create
  batch {requests: [{path: "", body: {}}]} -> answers.status [400]

-- a batch: null means a field left out, and a receive takes the messages that fit
  nodes n1
  message/send op n1 {content: <${Array(3).fill("x".repeat(200_000)).join("|")}>}
  batch
  + message/receive n1 {count: null, blocking: null} -> count 2
  + message/receive n1 -> count 1
  + message/receive n1 -> count 0

-- a batch: each answer is in the variant of the request
  nodes n1
  t = task/create {priority: low}
  task/claim $t n1
  batch
  + task/claim $t n1 -> status assigned
  + task/create {priority: p5, task_type: x} -> task.priority 2
  B batch
  + task/claim $t n1 -> status pending
  + task/create {priority: p5, task_type: x} -> task.priority p5

-- a batch: its headers hold for each request
  nodes n1
  t = task/create
  batch
  + task/delete $t -> 403 admin_key_required
  + task/delete {} -> 403 admin_key_required
  + task/create
  with {X-Admin-Key: wrong} batch
  + task/delete $t -> 403 admin_key_required
  admin batch
  + task/delete $t
  + task/delete {} -> 400 task_id
  with {X-Matrix-Secret: null} batch -> 401 unauthorized
  + task/create

== a batch: with a key that is bound to a node acts for it alone
  nodes n1 n2
  k = admin key/add n1 {name: k}
  t = task/create
  as $k batch
  + task/claim $t n2 -> 403 key_bound_to_other_node
  + task/claim $t n1
  + task/create -> task.creator_node n1

= a batch: wakes a blocked receive and a waiting task
  nodes n1
  t = task/create
  r = & message/receive n1 {blocking: true, timeout: 300}
  w = & GET task/$t?wait=300
  batch
  + message/send op n1 {content: "wake up"}
  + task/claim $t n1
  + task/complete $t n1
  $r -> messages.content ["wake up"]
  $w -> task.status completed

== a batch: after the commit dependents are settled and the balancer fills the room
  B nodes m1 {max_tasks: 1, capabilities: [m]}
  first = B task/create {task_type: m}
  second = B task/create {task_type: m} -> status pending
  after = task/create {depends_on: [$first], task_type: none}
  batch
  + task/complete $first m1
  until task $second -> {status: assigned, assigned_node: m1}
  until task $after -> ready true

== a batch: is replayed as a whole for its Idempotency-Key, even if every request in it was refused
  nodes n1 n2
  t = task/create
  key b1 batch
  + task/create
  + task/claim $t n1
  + task/claim $t n2 -> 409 task_not_open
  replay
  key b1 batch -> 422 idempotency_key_reused
  + task/create
  key b2 batch
  + task/claim $t n2 -> 409 task_not_open
  task/release $t n1
  replay key b2 batch {requests: [{path: task/claim, body: {task_id: $t, node_id: n2}}]}
  at once -> {statuses: {"200": 3}, different: 1, replayed: 2}
  ${"+ key b3 batch {requests: [{path: task/create, body: {title: t, description: d}}]}\n".repeat(3)}
  GET task/stats -> total 3

-- a batch: is replayed after a restart
  nodes n1
  key k batch
  + task/create
  + signin n1
  + task/claim n1 {task_id: ${NO_ID}} -> 404 task_not_found
  restart
  replay
  GET task/stats -> total 1

== a batch: of simultaneous ones that claim the same tasks, each task goes to one
  nodes n1 n2 n3
  <a|b|c> = task/create
  at once
  ${["n1", "n2", "n3"]
    .map((node) => {
      const claims = ["a", "b", "c"].map(
        (task) => `{path: task/claim, body: {task_id: $${task}, node_id: ${node}}}`,
      );
      return `+ ${node} = batch {requests: [${claims.join(", ")}]}`;
    })
    .join("\n")}
  GET task/stats -> by_status.assigned 3
  GET node/list -> nodes.tasks_assigned ~3

== a batch: heartbeats of nodes that were offline
  nodes n0 n1 n2
  node/leave <n0|n1|n2>
  message/send op <n0|n1>
  batch
  + message/send op n1
  + node/heartbeat <n0|n1|n2> -> messages_waiting <1|2|0>
  + message/send op n0
  + node/heartbeat n0 -> messages_waiting 2
  GET events?since=0&kind=node.online -> events.node_id [n0, n1, n2, n0, n1, n2]

== a batch: task/next hands out in order, even to a node that was offline; without a task it answers null
  nodes n1 {auto_assign: false, capabilities: [x]}
  first = task/create
  second = task/create {task_type: x}
  batch
  + task/next n1 -> task {task_id: $first, status: assigned}
  + task/complete $first n1
  + node/leave n1
  + task/next n1 -> task.task_id $second
  + task/complete $second n1
  + task/next n1 -> {task: null, lease: null, drain: false}
  + node/heartbeat n1
  + task/next nobody -> 404 node_not_found
`);
