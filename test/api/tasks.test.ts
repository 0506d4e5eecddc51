/**
 * Tasks: creation, rewards, assign, complete, revoke, delete, lists, pull and stats. test/domain/task.test.ts has every
 * command in every state, task-texts.test.ts what is kept as it was sent, variants.test.ts the differences between the
 * variants, balancer.test.ts the balancer.
 */
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

const nothing = Array.from({ length: 500 }, () => `{task_id: ${NO_ID}, node_id: n1}`);

transcripts(`
-- create fills in defaults, and makes a new task at every call
  t = task/create -> task {priority: 1, lux_reward: 0, task_type: null, creator_node: null}
  task/create -> task_id !$t
  GET status -> tasks_count 2

-- create stores a reward exactly
  t = task/create {lux_reward: <0|0.000001|0.1|0.3|1.1|123456.789012|999999999.999999|1000000000>};
  task $t -> lux_reward <0|0.000001|0.1|0.3|1.1|123456.789012|999999999.999999|1000000000>

== a node that is not registered is 404
  t = task/create
  task/<assign|claim|complete> $t ghost -> 404 node_not_found
  nodes n1
  task/claim $t n1
  task/complete $t ghost -> 404 node_not_found
  admin task/revoke $t ghost -> 404 node_not_found
  task $t -> {status: assigned, assigned_node: n1}

-- <assign|claim> answers as create does, and a repeat answers the same
  nodes n1
  t = task/create
  c = task/<assign|claim> $t n1 -> {task_id: $t, status: assigned, assigned_node: n1}
  task $t -> $c.task
  tick 5s
  task/<assign|claim> $t n1 -> task $c.task
  events $t -> [task.created, task.assigned]
  node n1 -> {tasks_assigned: 1, tasks_completed: 0}

-- <assign|claim> names every bad field
  task/<assign|claim> {} -> 400 task_id node_id
  task/<assign|claim> {task_id: 1, node_id: 2} -> 400 task_id node_id
  task/<assign|claim> {task_id: "", node_id: ""} -> 400 task_id node_id
  task/<assign|claim> {task_id: "x\\u0000", node_id: a/b} -> 400 task_id node_id
  task/<assign|claim> {task_id: ${NO_ID}, node_id: ${"x".repeat(129)}} -> 400 node_id

-- any string is a valid task_id to ask for, and a node may claim a task outside its capabilities
  nodes n1 {capabilities: research}
  task/claim n1 {task_id: "<x|' OR 1=1 --|ä 🦊>"} -> 404 task_not_found
  t = task/create {task_type: coding}
  task/claim $t n1

== complete stores the result, pays the reward and answers both
  nodes n1
  t = task/create {lux_reward: 2.000001}
  task/assign $t n1
  tick 60s
  task/complete $t n1 -> {task_id: $t, status: completed, lux_paid: 2.000001}
  -> receipt {entry_id: *, amount: 2.000001, hash: *}
  task $t -> {status: completed, assigned_node: n1, attempts: 0, updated_at: +0s, created_at: -60s}
  -> result {problem: *, improvement: *, lesson: *}
  node n1 -> {lux_balance: 2.000001, tasks_assigned: 0, tasks_completed: 1}
  events $t -> [task.created, task.assigned, task.completed, lux.paid]

-- complete again with the same result answers the same and pays nothing more
  nodes n1
  t = task/create {lux_reward: 5}
  task/assign $t n1
  first = task/complete $t n1
  before = task $t
  <|B >task/complete $t n1 -> {lux_paid: 5, receipt: $first.receipt}
  task/complete $t n1 {result: {<problem|improvement|lesson>: other}} -> 409 task_completed
  task $t -> updated_at $before.updated_at
  node n1 -> {lux_balance: 5, tasks_completed: 1}
  GET events?since=0&kind=lux.paid -> events #1

-- complete without a reward pays nothing
  nodes n1
  t = task/create
  task/<assign|complete> $t n1
  task/complete $t n1 -> {lux_paid: 0, receipt: null}
  GET lux/ledger?node_id=n1 -> entries []
  events $t -> [task.created, task.assigned, task.completed]

== revoke reopens the task for the next claim
  nodes n1 n2
  t = task/create
  task/assign $t n1
  admin task/revoke $t {reason: "too slow"} -> {task_id: $t, status: open, assigned_node: null}
  -> task {status: open, assigned_node: null}
  node n1 -> tasks_assigned 0
  task/complete $t n1 -> 409 task_not_assigned
  task/claim $t n2
  events $t -> [task.created, task.assigned, task.revoked, task.assigned]
  GET events?since=0&kind=task.revoked -> events [{node_id: n1, task_id: $t, data: {reason: "too slow"}}]
  task $t -> attempts 0

-- revoke reassigns the task to another node in one step, and names every bad field
  nodes n1 n2
  t = task/create
  task/assign $t n1
  admin task/revoke $t n2 -> {status: assigned, assigned_node: n2, task: {assigned_node: n2}}
  node <n1|n2> -> tasks_assigned <0|1>
  task/complete $t n1 -> 403 not_assigned_to_node
  task/complete $t n2
  admin task/revoke -> 400 task_id
  admin task/revoke {task_id: 5, node_id: "a b", reason: 7} -> 400 task_id node_id reason

== delete deletes the task in any state; LUX stays paid
  nodes n1
  open, assigned, done = task/create {lux_reward: 4}
  task/assign $<assigned|done> n1
  task/complete $done n1
  admin task/delete $<open|assigned|done>
  admin task/delete $<open|assigned|done> -> 404 task_not_found
  events $<open|assigned> -> [task.created, <task.deleted|task.assigned, task.deleted>]
  GET task/list -> {tasks: [], total: 0, pages: 0}
  GET task/stats -> {total: 0, by_status: {open: 0, assigned: 0, completed: 0}}
  node n1 -> {tasks_assigned: 0, lux_balance: 4}
  GET lux/ledger?node_id=n1 -> entries.task_id [$done]
  admin task/delete {task_id: <null|5>} -> 400 task_id

== batch-assign of A answers for each item, in the order of the request
  nodes n1 n2
  open, taken, later, done = task/create
  task/assign $<taken|done> <n2|n1>
  task/complete $done n1
  task/batch-assign {assignments: [{task_id: $later, node_id: n2}, {task_id: $taken, node_id: n1}, {task_id: ${NO_ID}, node_id: n1},
    {task_id: $open, node_id: ghost}, {task_id: $done, node_id: n1}, {task_id: $open, node_id: n1}, {task_id: $open, node_id: n1},
    {task_id: $open, node_id: n2}, {task_id: $taken, node_id: n2}]}
  -> results.error [null, task_not_open, task_not_found, node_not_found, task_completed, null, null, task_not_open, null]
  -> results.success [true, false, false, false, false, true, true, false, true]
  -> results.0 {task_id: $later, node_id: n2}
  task $open -> assigned_node n1
  node <n1|n2> -> tasks_assigned <1|2>
  events $open -> [task.created, task.assigned]

-- batch-assign of A accepts 1 to 500, and names bad items by index
  nodes n1
  task/batch-assign {assignments: [${nothing.join()}]} -> results #500
  task/batch-assign {assignments: [<|${nothing.join()}, ${nothing[0]}>]} -> 400 assignments
  task/batch-assign {assignments: ${nothing[0]}} -> 400 assignments
  task/batch-assign {assignments: [${nothing[0]}, {task_id: 1}, x, {task_id: ${NO_ID}, node_id: "a b"}]} ->
    400 assignments.1.task_id assignments.1.node_id assignments.2 assignments.3.node_id

-- the list is newest first, also when an older task changes, and has pages without overlaps and gaps
  nodes n1
  a, b, c, d, e = task/create
  task/claim $a n1
  GET task/list -> tasks.task_id [$e, $d, $c, $b, $a]
  GET task/list?page=<1|2|3|4>&per_page=2 -> {total: 5, pages: 3, tasks: [<{task_id: $e}, {task_id: $d}|{task_id: $c}, {task_id: $b}|{task_id: $a}|>]}

== the list filters by node, also together with a status, and counts the matching tasks
  nodes n1 n2
  open, assigned, done, other = task/create
  task/assign $<assigned|done|other> <n1|n1|n2>
  task/complete $done n1
  GET task/list -> tasks.task_id [$other, $done, $assigned, $open]
  GET task/list?node_id=n1 -> {total: 2, pages: 1, tasks: [{task_id: $done}, {task_id: $assigned}]}
  GET task/list?node_id=n1&status=<assigned|pending|completed> -> tasks.task_id [$<assigned|assigned|done>]
  GET task/list?node_id=n1&status=open -> {tasks: [], total: 0, pages: 0}
  # In a filter an unknown node is no error.
  GET task/list?node_id=ghost -> tasks []
  GET task/list?status=completed&unknown=1 -> tasks.task_id [$done]
  GET task/list?node_id=a%20b -> 400 node_id

== the list is never stale: it contains every acknowledged task
  nodes n1
  t = task/create <|||||||||>; GET task/list -> tasks.0 {task_id: $t, status: open};
  task/claim $t n1; B GET task/list?node_id=n1&status=assigned&per_page=1 -> tasks.0 {task_id: $t, assigned_node: n1}

== pull lists the tasks that the node could claim, by priority, then by age
  nodes any
  nodes coder {capabilities: "coding, review"}
  nodes painter {capabilities: [painting]}
  low = task/create {priority: 2}
  back = task/create {priority: p5, task_type: coding}
  medium = task/create {task_type: review}
  more = task/create
  high = task/create {priority: 0, task_type: coding}
  given = task/create {priority: 0}
  task/assign $given any
  GET task/pull?node_id=<any|coder> -> tasks.task_id [$high, $medium, $more, $low, $back]
  GET task/pull?node_id=painter -> tasks.task_id [$more, $low]
  GET task/pull?node_id=any&limit=2 -> tasks.task_id [$high, $medium]
  task/claim $high coder
  GET task/pull?node_id=any&limit=2 -> tasks.task_id [$medium, $more]

-- pull answers 20 by default, and requires a registered node and a limit above 0
  nodes n1
  ${"task/create\n".repeat(25)}
  GET task/pull?node_id=n1<|&limit=25> -> tasks #<20|25>
  GET task/pull?node_id=ghost -> 404 node_not_found
  GET task/pull -> 400 node_id
  GET task/pull?limit=0 -> 400 node_id limit
  GET task/pull?node_id=n1&limit=x -> 400 limit
  <|B >task/pull {} -> 405 method_not_allowed

== stats rank at most ten nodes by completed tasks, then by LUX from rewards
  nodes two-rich three two-poor idle
  t = task/create {lux_reward: <5|5.5|0|0|0|1|0>}; task/assign $t <two-rich|two-rich|three|three|three|two-poor|two-poor>;
  task/complete $t <two-rich|two-rich|three|three|three|two-poor|two-poor>
  signin <three|idle>
  GET task/stats -> {total: 7, by_status: {open: 0, assigned: 0, completed: 7, failed: 0}}
  -> top_nodes [{node_id: three, completed: 3, lux_earned: 0}, {node_id: two-rich, completed: 2, lux_earned: 10.5},
    {node_id: two-poor, completed: 2, lux_earned: 1}]
  nodes one-<0|1|2|3|4|5|6|7|8>; t = task/create {lux_reward: <0|1|2|3|4|5|6|7|8>};
  task/assign $t one-<0|1|2|3|4|5|6|7|8>; task/complete $t one-<0|1|2|3|4|5|6|7|8>
  until GET task/stats -> top_nodes.node_id [three, two-rich, two-poor, one-8, one-7, one-6, one-5, one-4, one-3, one-2]
`);
