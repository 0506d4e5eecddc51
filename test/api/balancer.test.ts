/**
 * The balancer: which node gets a task, when, and which tasks it must not assign. offline.test.ts tests how it assigns
 * the tasks of a node that went offline, test/domain/balancer.test.ts the choice.
 */
import { transcripts } from "../support/transcript.ts";

/** Tasks on B, which go to these nodes. */
const give = (fields: string, ...nodeIds: readonly string[]) =>
  nodeIds.map((nodeId) => `t = B task/create {${fields}} -> assigned_node ${nodeId}`).join("\n  ");

transcripts(`
-- the balancer picks the node with the fewest unfinished tasks
  nodes a b c
  t = task/create; task/assign $t <a|b>
  ${give("", "c")}
  ${"B task/create\n".repeat(6)}
  node <a|b|c> -> tasks_assigned 3

== among equals, the balancer picks the node that has been idle longest
  nodes a; tick 1s; nodes b; tick 1s; nodes c; tick 1s
  ${give("", "a")}
  tick 1s
  # a works and is done: now b has been idle longest, then c, then a.
  task/complete $t a
  tick 1s
  ${give("", "b", "c", "a")}

-- the balancer picks a node whose capabilities include the task's type; a node without capabilities, or a task without a type, fits all
  nodes coder {capabilities: "coding,review"}
  nodes painter {capabilities: [painting]}
  ${give("task_type: painting", "painter", "painter")}
  ${give("task_type: review", "coder")}
  ${give("", "coder")}
  ${give("task_type: cooking", "null")}
  ${give("task_type: paint", "null")}
  nodes any
  # any was given both that waited.
  ${give("task_type: coding", "coder")}

-- the balancer picks a node with auto_assign, which only nodes of B have by default, at each registration
  node/register claims {name: claims} -> node.auto_assign false
  B node/register alone {name: alone, auto_assign: false} -> node.auto_assign false
  w = B task/create -> assigned_node null
  node/heartbeat claims
  B task/batch-assign -> assigned 0
  sweep
  task $w -> assigned_node null
  # It looks for its work itself, and finds that of B too.
  GET task/pull?node_id=claims -> tasks.task_id [$w]
  task/claim $w claims
  v = B task/create -> assigned_node null
  B node/register worker {name: worker} -> node.auto_assign true
  node worker -> {auto_assign: true, tasks_assigned: 1}
  ${give("", "worker")}
  nodes claims
  task/complete $w claims
  ${give("", "claims")}
  # What a registration leaves out is not set any more.
  node/register claims {name: claims} -> node.auto_assign false
  ${give("", "worker")}

== the balancer picks by the exact spelling of the task type, and for one with a comma the node that takes every type
  nodes coder {capabilities: "coding_100%,x,y"}
  ${give("task_type: Coding_100%", "null")}
  ${give("task_type: codingX100%", "null")}
  ${give("task_type: coding_100%", "coder")}
  ${give('task_type: "x,y"', "null")}
  nodes any {max_tasks: 4}
  ${give('task_type: "x,y"', "any")}

-- the balancer picks a node below its max_tasks, which limits no claims
  nodes small {max_tasks: 1}
  nodes large {max_tasks: 3}
  ${"B task/create\n".repeat(6)}
  node <small|large> -> tasks_assigned <1|3>
  t = task/create
  task/claim $t small
  node small -> {tasks_assigned: 2, max_tasks: 1}

-- an open task is assigned as soon as a node registers
  t = B task/create -> assigned_node null
  B node/register n1 {name: n1} -> node.tasks_assigned 1
  task $t -> assigned_node n1
  events $t -> [task.created, task.assigned]

== open tasks are assigned as soon as a node that fits registers, best task first, up to its max_tasks
  <low|background|other|high> = B task/create {<priority: low|priority: p5|priority: high, task_type: other|priority: high, task_type: mine>}
  B nodes n1 {capabilities: [mine], max_tasks: 2}
  task $<high|low|background|other> -> assigned_node <n1|n1|null|null>

-- an open task is assigned as soon as a node registers again with a higher max_tasks or more capabilities
  B nodes n1 {max_tasks: 1, capabilities: [x]}
  <first|second|typed> = B task/create {<||task_type: y>}
  task $<first|second> -> assigned_node <n1|null>
  B nodes n1 {max_tasks: 2, capabilities: [x]}
  task $<second|typed> -> assigned_node <n1|null>
  B nodes n1 {capabilities: [x, y]}
  task $typed -> assigned_node n1

== an open task is assigned as soon as the node's load falls: a task is completed, revoked or deleted
  B nodes n1 {max_tasks: 1}
  first, second, third = B task/create
  B task/complete $first n1
  task $<second|third> -> assigned_node <n1|null>
  admin task/delete $second
  task $third -> assigned_node n1
  fourth = B task/create
  admin task/revoke $third
  task $<third|fourth> -> assigned_node <null|n1>

-- a revoked task is not assigned to the same node at once
  nodes n1
  t = B task/create
  B admin task/revoke $t -> {status: pending, assigned_node: null}
  B task/batch-assign
  nodes n1 {name: again}
  task $t -> assigned_node null

-- a revoked task goes to another node, and the previous node may claim it
  nodes n1
  t = B task/create
  admin task/revoke $t
  task/claim $t n1
  admin task/revoke $t
  nodes n2
  task $t -> assigned_node n2

-- the balancer assigns tasks created through A only on request: not when a node registers, gains room or loses a task, nor in its round
  t = task/create
  B nodes n1 {max_tasks: 1}
  b = B task/create -> assigned_node n1
  task/complete $b n1
  task $t -> assigned_node null
  nodes n2
  task/claim $t n1
  B admin task/revoke $t -> {status: pending, assigned_node: null}
  pass 180s n1 n2
  node <n1|n2> -> {status: online, tasks_assigned: 0}

== batch-assign of B assigns all open tasks, best first, evenly, and counts the rest
  typed = task/create {task_type: "none has it"}
  <low|high> = task/create {priority: <2|0>}
  b = B task/create
  # n1 takes the one of B at once.
  nodes <n1|n2> {capabilities: [x], max_tasks: <2|1>}
  task $b -> assigned_node n1
  B task/batch-assign -> {assigned: 2, pending: 1, assignments: [{task_id: $high, node_id: n2}, {task_id: $low, node_id: n1}]}
  task $typed -> assigned_node null
  B task/batch-assign -> {assigned: 0, pending: 1, assignments: []}

-- batch-assign of B prefers the node with the fewest tasks, then the longest idle
  p, q, r, s = task/create
  nodes d; tick 1s; nodes c; tick 1s; nodes b; tick 1s; nodes a; tick 1s
  t = task/create
  task/assign $t c
  # All have one then; since when they have been idle in between is the hub's to say.
  B task/batch-assign {assignments: null} ->
    assignments [{task_id: $p, node_id: d}, {task_id: $q, node_id: b}, {task_id: $r, node_id: a}, {task_id: $s}]

-- batch-assign of B assigns nothing without nodes
  task/create
  B task/batch-assign -> {assigned: 0, pending: 1, assignments: []}

== batch-assign of B assigns more tasks than fit into one step
  ${`batch {requests: [${"{path: task/create, body: {title: t, description: d}}, ".repeat(310)}]}\n`.repeat(2)}
  nodes n1 n2
  B task/batch-assign -> {assigned: 620, pending: 0}
  node <n1|n2> -> tasks_assigned 310

-- an open task of B that a node completes without a claim counts for that node
  B nodes n1 {capabilities: [x]}
  t = B task/create {task_type: y, lux_reward: 1}
  B task/complete $t n1
  node n1 -> {tasks_assigned: 0, tasks_completed: 1}
  events $t -> [task.created, task.assigned, task.completed, lux.paid]
`);
