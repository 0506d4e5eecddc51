/** Waiting for several tasks (task/wait), and tasks that are created for one node (for_node). */
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

transcripts(`
== task/wait: answers at once when the tasks have ended, in the words of the variant
  nodes n1
  a, b, c = task/create
  task/claim $<a|b> n1
  task/complete $a n1
  task/fail $b n1 {error: "no luck", retry: false}
  <|B >GET task/wait?task_ids=$c,$b,$a -> {done: false, tasks: [
    {task_id: $c, status: <open|pending>, assigned_node: null, failure: null},
    {task_id: $b, status: failed, failure: {kind: failed, message: "no luck"}},
    {task_id: $a, status: completed, title: t, assigned_node: n1}]}
  GET task/wait?task_ids=$c,$b,$a&until=any&wait=30 -> done true
  GET task/wait?task_ids=$a,%20$b,$a&wait=30 -> {done: true, tasks: #2}

== task/wait: waits for any, and for all
  nodes n1
  a, b = task/create
  task/claim $<a|b> n1
  any = & GET task/wait?task_ids=$a,$b&until=any&wait=60
  all = & GET task/wait?task_ids=$a,$b&until=all&wait=60
  task/complete $a n1
  $any -> tasks.status [completed, assigned]
  $all waits
  task/cancel $b
  $all -> {done: true, tasks: [{status: completed}, {status: failed}]}

== task/wait: refuses what there is not, and too many
  t = task/create
  GET task/wait?task_ids=$t,${NO_ID} -> 404 task_not_found
  w = & GET task/wait?task_ids=$t&wait=60
  admin task/delete $t
  $w -> 404 task_not_found
  GET task/wait?task_ids=${Array.from({ length: 101 }, (_, i) => `t${i}`).join()} -> 400 task_ids
  GET task/wait -> 400 task_ids
  GET task/wait?task_ids=$t&until=some&wait=301 -> 400 until wait

== for_node: on a strict hub needs a bound key, of any node, or the administrator key {isStrict: true}
  k1 = admin key/add n1 {name: k1}
  k2 = admin key/add n2 {name: k2}
  as $k1 node/register n1 {name: One}
  task/create {for_node: n1} -> 403 key_not_bound
  as $k2 task/create {for_node: n1, creator_node: n1} -> 403 key_bound_to_other_node
  admin task/create {for_node: n1} -> assigned_node n1
  as $k1 task/create {for_node: n1, creator_node: n1} -> assigned_node n1
  # This one waits in line.
  as $k2 task/create {for_node: n1} -> assigned_node null

== for_node: assigns the task to the node in the commit that creates it, on <A|B>
  nodes n1 n2
  t = <|B >task/create {task_type: any, for_node: n2} -> {assigned_node: n2, task: {assigned_node: n2, started_at: null}}
  events $t -> [task.created, task.assigned]
  task/next n1 -> task null
  task/next n2 -> task.task_id $t

== for_node: needs a node that is online and takes tasks, and a task that is ready; else nothing is created
  nodes gone full n1
  node/leave gone
  node/drain full {drain: true}
  task/create {for_node: nobody} -> 404 node_not_found
  task/create {for_node: gone} -> 409 node_offline
  task/create {for_node: full} -> 409 node_draining
  task/create {for_node: n1, delay_s: 60} -> 409 task_not_ready
  GET task/stats -> total 0
  before = task/create
  task/create {for_node: n1, depends_on: [$before]} -> 409 task_not_ready
  t = key once task/create {for_node: n1}
  replay
  -> {task_id: $t, task: {creator_verified: false}}
`);
