/**
 * Missing heartbeats: when a node goes offline, what happens to its tasks, and how it comes back online. A node of A is
 * offline after 180 s of silence, one of B after 90 s.
 */
import { transcripts } from "../support/transcript.ts";

transcripts(`
-- a node goes offline after its lease in <A|B> has expired, and not before
  <|B >nodes silent
  tick 30s
  <|B >nodes younger
  before = node silent
  pass <120|30>s
  node silent -> status online
  pass 31s
  node silent -> {status: offline, last_heartbeat: $before.last_heartbeat}
  node younger -> status online
  GET events?since=0&kind=node.offline -> events.node_id [silent]
  GET node/list -> nodes [{node_id: silent, status: offline}, {node_id: younger, status: online}]

-- after the silence of the variant it registered in, whichever variant it uses later
  nodes of-A
  B nodes of-B
  B node/heartbeat of-A
  node/heartbeat of-B
  pass 120s
  node <of-A|of-B> -> status <online|offline>

-- not while it sends its heartbeats, nor because the wall clock jumps
  nodes beats silent
  pass 360s beats
  node <beats|silent> -> status <online|offline>
  jump 1d; sweep
  node beats -> status online
  GET events?since=0&kind=node.offline -> events.node_id [silent]

== its unfinished tasks are requeued with their attempts counted; completed tasks stay
  nodes n1 n2
  done = task/create {lux_reward: 1}
  first, second, other = task/create
  task/assign $<done|first|second|other> <n1|n1|n1|n2>
  task/complete $done n1
  pass 190s n2
  GET task/list?status=open -> total 2
  task $<first|second> -> {status: open, assigned_node: null, attempts: 1, result: null}
  events $<first|second> -> [task.created, task.assigned, task.requeued]
  task $done -> {status: completed, assigned_node: n1, attempts: 0}
  task $other -> {assigned_node: n2, attempts: 0}
  node n1 -> {status: offline, tasks_assigned: 0, tasks_completed: 1, lux_balance: 1}
  GET events?since=0&kind=task.requeued -> events.node_id [n1, n1]
  task/complete $first n1 -> 409 task_not_assigned
  GET task/pull?node_id=n2 -> tasks #2
  task/claim $first n2
  task/complete $first n1 -> 403 not_assigned_to_node
  task/complete $first n2
  node/heartbeat n1
  task/claim $second n1
  pass 190s n2
  task $second -> attempts 2

-- its unfinished tasks created on B are assigned again, those of A are not
  nodes n1
  b, c = B task/create
  a = task/create
  task/assign $a n1
  nodes n2
  pass 190s n2
  node n2 -> tasks_assigned 2
  task $<b|c> -> {assigned_node: n2, attempts: 1}
  events $<b|c> -> [task.created, task.assigned, task.requeued, task.assigned]
  task $a -> {status: open, attempts: 1}

-- its unfinished tasks of B stay open when no node is left, and go to the first that returns
  B nodes n1
  t = B task/create
  pass 190s
  task $t -> status open
  node/heartbeat n1 -> {status: online, tasks_assigned: 1}
  task $t -> {assigned_node: n1, attempts: 1}

-- its unfinished tasks stay assigned when the hub is configured to keep them {offlineTasks: keep}
  nodes n1 n2
  t = task/create
  task/assign $t n1
  pass 380s n2
  task $t -> {status: assigned, assigned_node: n1, attempts: 0}
  task/claim $t n2 -> 409 task_not_open
  task/complete $t n1
  GET events?since=0&kind=task.requeued -> events []

-- an offline node gets no task, but keeps its mailbox and may complete its tasks
  nodes n1 n2
  held = task/create
  task/assign $held n2
  pass 190s n2
  t = task/create
  task/<assign|claim> $t n1 -> 409 node_offline
  admin task/revoke $held n1 -> 409 node_offline
  task $held -> assigned_node n2
  task/batch-assign {assignments: [{task_id: $t, node_id: n1}]} -> results [{success: false, error: node_offline}]
  B task/create -> assigned_node n2
  message/broadcast {from_node: op, content: x} -> receivers [n2]
  message/send {from_node: op, to_node: n1, content: later}
  node n1 -> status offline
  node/heartbeat n1
  message/receive n1 -> messages.content [later]

-- an offline node is online again with its first heartbeat
  nodes n1
  pass 190s
  b = node/heartbeat n1
  node n1 -> {status: online, last_heartbeat: $b.last_heartbeat}
  GET events?since=0&node_id=n1 -> [node.registered, node.online, node.offline, node.online]
  t = task/create
  task/claim $t n1

-- an offline node is online again when it registers
  nodes n1
  pass 190s
  t = B task/create
  node/register n1 {name: n1, auto_assign: true} -> {created: false, status: online}
  task $t -> assigned_node n1

== a hub that was down does not count its own downtime against its nodes
  nodes n1 n2
  t = task/create
  task/assign $t n1
  tick 10h
  restart
  node n1 -> status online
  B nodes signal
  pass 120s n2
  node <signal|n1> -> status <offline|online>
  pass 70s n2
  node <n1|n2> -> status <offline|online>

-- a hub that was down leaves offline nodes offline, and requeues their tasks if it is now configured to {offlineTasks: keep}
  nodes n1
  t = task/create
  task/assign $t n1
  pass 190s
  restart {offlineTasks: requeue}
  node n1 -> status offline
  sweep
  task $t -> {status: open, attempts: 1}
  # It listens first: however much there is to take up, it does not keep the hub from serving.
  GET events?limit=2 -> [hub.started, task.requeued]
  task/complete $t n1 -> 409 task_not_assigned
`);
