/**
 * Who may run what, and when: requirements and resources, limits, holds, pauses, fairness, and why a task does not run.
 * many-lanes.test.ts has what is random or large.
 */
import { OPEN_TYPES_MAX } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

const ABOUT = "task_type: dear, creator_node: boss, limit_key: openai";
const GPU = "requires: {capabilities: [cuda], resources: {gpu: 1}}";
const IDLE = "nodes n1 {auto_assign: false}";
const next = (...names: readonly string[]) =>
  names
    .map((name) => `task/next n1 -> ${name === "none" ? "task null" : `task.task_id $${name}`}`)
    .join("\n  ");
const words = (count: number, word: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => word(i)).join();

const types = (count: number, line: (type: string) => string): string =>
  Array.from({ length: count }, (_, i) => line(`t${1_000 + i}`)).join("\n");

transcripts(`
== a pause of the <hub|type|limit_key|creator> keeps its tasks back from every way to hand one out
  nodes n1 boss {auto_assign: false}
  running = task/create {${ABOUT}}
  task/claim $running n1
  p = admin hub/pause {reason: "it is down", <|type: dear|limit_key: openai|creator_node: boss>}
  -> pause {scope: <hub|type|limit_key|creator>, reason: "it is down"}
  admin GET hub/pauses -> pauses [$p.pause]
  t = task/create {${ABOUT}}
  task/next n1 -> task null
  task/claim $t n1 -> 409 paused {detail: "~(it is down)"}
  task/assign $t n1 -> 409 paused
  task/create {for_node: n1, ${ABOUT}} -> 409 paused
  # The balancer: at create, at registration, at a heartbeat, when asked.
  nodes n1
  B task/create {${ABOUT}} -> assigned_node null
  B task/batch-assign
  # What runs already finishes.
  task/complete $running n1
  node/<leave|heartbeat> n1
  sweep
  GET task/stats -> by_status {open: 2, assigned: 0}
  # The end of the pause wakes a worker that waits.
  ${IDLE}
  w = & task/next n1 {wait: 30}
  admin hub/resume {<|type: dear|limit_key: openai|creator_node: boss>}
  $w -> task *
  admin GET hub/pauses -> pauses []
  admin hub/resume {<|type: dear|limit_key: openai|creator_node: boss>} -> 404 pause_not_found

-- a pause keeps nothing else back, and names at most one thing
  ${IDLE}
  admin hub/pause {<type: x|limit_key: k|creator_node: boss>}
  admin hub/pause {type: x, limit_key: k} -> 400 limit_key
  admin hub/pause {limit_key: k, creator_node: boss} -> 400 creator_node
  task/create {<task_type: x|limit_key: k|task_type: k|creator_node: boss>}
  other = task/create {task_type: y, limit_key: x}
  ${next("other", "none")}

== a limit of running tasks counts the assigned tasks of a key, over types, also those that ran before
  ${IDLE}
  first, second, third = task/create {task_type: a, limit_key: k}
  ${next("first")}
  admin limit/set {key: k, running: 2}
  urgent = task/create {task_type: b, limit_key: k, priority: 0}
  ${next("urgent", "none")}
  admin GET limit/list -> limits [{key: k, running: 2, running_now: 2}]
  other = task/create {task_type: a}
  ${next("other")}
  w = & task/next n1 {wait: 30}
  task/complete $urgent n1
  $w -> task *
  ${next("none")}

-- a limit of a type is a limit of its plain lane (<A|B>)
  nodes n1
  admin limit/set {key: t, running: 2}
  ${"<|B >task/create {task_type: t}\n".repeat(5)}
  ${"task/next n1\n".repeat(3)}
  sweep
  l = GET task/stats -> by_status {open: 3, assigned: 2}
  l = GET task/list?status=open
  task/claim n1 {task_id: $l.tasks.0.task_id} -> 409 limit_reached
  admin limit/delete {key: t}
  task/claim n1 {task_id: $l.tasks.0.task_id}
  admin limit/delete {key: t} -> 404 limit_not_found

== a limit has room after the deletion of a task that runs, for a worker that waits and for the balancer
  nodes n1 n2 {auto_assign: false}
  admin limit/set {key: k, running: 1}
  first, second = task/create {limit_key: k}
  ${next("first")}
  w = & task/next n2 {wait: 30}
  admin task/delete $first
  $w -> task.task_id $second
  B nodes n3
  third = B task/create {limit_key: k}
  task $third -> assigned_node null
  admin task/delete $second
  until task $third -> assigned_node n3

-- a limit has room at once for workers that wait when it is raised, and when it is deleted
  nodes n1 n2 {auto_assign: false}
  admin limit/set {key: k, running: 1}
  first, second, third = task/create {limit_key: k}
  ${next("first")}
  w = & task/next n2 {wait: 30}; admin <limit/set {key: k, running: 2}|limit/delete {key: k}>; $w -> task.task_id $<second|third>

== a limit per minute counts dispatches, whatever became of them
  ${IDLE}
  admin limit/set {key: t, per_minute: 2}
  ${"task/create {task_type: t}\n".repeat(4)}
  t = task/next n1 <|>; task/release $t n1
  ${next("none")}
  w = & task/next n1 {wait: 300}
  jump 61s
  sweep
  $w -> task *

== a limit and a hold outlast no clock that was set back
  ${IDLE}
  ${"task/create {limit_key: k}\n".repeat(4)}
  admin limit/set {key: k, per_minute: 1}
  task/next n1 -> task *
  ${next("none")}
  # A little: the minute is not over.
  jump -30s
  ${next("none")}
  jump -1h
  admin GET limit/list -> limits.last_minute [0]
  task/next n1 -> task *
  ${next("none")}
  tick 2m
  limit/hold {key: k, for_s: 60}
  w = & task/next n1 {wait: 300}
  sweep
  jump -59m
  sweep
  $w -> task *
  admin GET limit/list -> limits.held_until [null]
  limit/hold {key: k, for_s: 60}
  tick 2m
  task/next n1 -> task *

== a limit lets an administrator give a running task to another node
  nodes n1 n2 {auto_assign: false}
  admin limit/set {key: k, running: 1}
  t, u = task/create {limit_key: k}
  ${next("t")}
  admin task/revoke $t n2 -> assigned_node n2
  ${next("none")}
  admin GET limit/list -> limits.running_now [1]
  limit/hold {key: k, for_s: 60}
  admin task/revoke $t n1 -> 409 limit_reached

== a limit is lowered below what runs: no task starts until enough have ended
  ${IDLE}
  a, b, c, d, e = task/create {limit_key: k}
  ${next("a", "b", "c")}
  admin limit/set {key: k, running: 2}
  GET task/$e/explain -> reasons.code [limit]
  task/complete $a n1
  ${next("none")}
  task/complete $b n1
  ${next("d", "none")}

== a limit that was only a hold is listed until the hold is over
  limit/hold {key: nobody, for_s: 5}
  admin GET limit/list -> limits.key [nobody]
  tick 6s
  admin GET limit/list -> limits []

-- a hold lets a key rest, and is given with the task in one request
  ${IDLE}
  t, u, v = task/create {task_type: t}
  ${next("t")}
  task/release $t n1 {hold_s: 30}
  ${next("none")}
  # The longer one stays.
  limit/hold n1 {key: t, for_s: 5}
  jump 20s
  ${next("none")}
  w = & task/next n1 {wait: 300}
  jump 10s
  sweep
  $w -> task.task_id $t
  task/fail $t n1 {hold_s: 10}
  ${next("none")}
  admin GET limit/list -> limits [{key: t, running: null}]
  admin limit/delete {key: t}
  task/next n1 -> task *

== limits, pauses and budgets are paged like schedules (<A|B>)
  ${Array.from({ length: 21 }, (_, i) => `k${String(i).padStart(2, "0")}`)
    .map(
      (name) =>
        `admin limit/set {key: ${name}, running: 1}; admin hub/pause {type: ${name}}; admin budget/set {scope: type, value: ${name}, per: day, tokens: 5}`,
    )
    .join("\n")}
  <|B >admin GET limit/list -> {page: 1, per_page: <20|500>, total: 21, limits: #<20|21>}
  <|B >admin GET hub/pauses -> {page: 1, per_page: <20|500>, total: 21, pauses: #<20|21>}
  <|B >admin GET budget/list -> {page: 1, per_page: <20|500>, total: 21, budgets: #<20|21>}
  <|B >admin GET limit/list?page=3&per_page=10 -> {page: 3, per_page: 10, total: 21, pages: 3, limits: [{key: k20}]}
  <|B >admin GET hub/pauses?page=3&per_page=10 -> {pages: 3, pauses: [{value: k20}]}
  <|B >admin GET budget/list?page=3&per_page=10 -> {pages: 3, budgets: [{value: k20}]}
  <|B >admin GET limit/list?page=4&per_page=10 -> limits []
  <|B >admin GET budget/list?page=0 -> 400 page

-- task/update gives a task another limit key, or that of its type
  ${IDLE}
  admin limit/set {key: k, running: 1}
  running, first, second = task/create {task_type: t, limit_key: k}
  ${next("running", "none")}
  # Out of the lane, to a worker that waits.
  w = & task/next n1 {wait: 30}
  task/update $first {limit_key: null} -> task.limit_key absent
  $w -> task.task_id $first
  # Into another.
  task/update $second {limit_key: other} -> task.limit_key other
  GET events?since=0&kind=task.updated -> events.data.changed [limit_key, limit_key]
  ${next("second")}
  # And back under a limit.
  task/release $second n1
  task/update $second {limit_key: k}
  ${next("none")}
  task/claim $second n1 -> 409 limit_reached
  task/complete $running n1
  ${next("second")}
  task/update $second {limit_key: null} -> 409 task_not_open

-- task/update of a task that requires something keeps its requirements
  nodes n1 {auto_assign: false, resources: {gpu: 1}}
  nodes bare {auto_assign: false}
  t = task/create {requires: {resources: {gpu: 1}}, limit_key: k}
  task/update $t {limit_key: null}
  task/next bare -> task null
  ${next("t")}

== requirements are words and resources, which the unfinished tasks of a node use
  nodes plain {auto_assign: false}
  nodes words {auto_assign: false, capabilities: [cuda, t]}
  nodes n1 {auto_assign: false, capabilities: [cuda, t], resources: {gpu: 1.5}}
  first, second = task/create {task_type: t, ${GPU}}
  task/next <plain|words> -> task null
  task/claim $first words -> 409 requirements_not_met
  ${next("first")}
  node n1 -> {resources: {gpu: 1.5}, resources_used: {gpu: 1}}
  ${next("none")}
  half = task/create {task_type: t, requires: {resources: {gpu: 0.5}}}
  ${next("half")}
  w = & task/next n1 {wait: 30}
  task/complete $first n1
  $w -> task.task_id $second

-- requirements that few nodes have come first among equal priorities
  nodes n1 {auto_assign: false, resources: {gpu: 2, cpu: 8}}
  plain = task/create {requires: {resources: {cpu: 1}}}
  rare = task/create {requires: {resources: {gpu: 1}}}
  urgent = task/create {priority: 0}
  ${next("urgent", "rare", "plain")}

-- the balancer finds a node that has what is required, and gives it no more than it has
  ${`B task/create {${GPU}}\n`.repeat(5)}
  B nodes plain
  B nodes <n1|n2> {capabilities: [cuda], resources: {gpu: <2|1>}}
  sweep
  GET node/list -> nodes [{node_id: n1, tasks_assigned: 2}, {node_id: n2, tasks_assigned: 1}, {node_id: plain, tasks_assigned: 0}]
  l = GET task/list?status=assigned&node_id=n1
  task/complete n1 {task_id: $l.tasks.0.task_id}
  sweep
  GET task/list?status=assigned -> tasks #3

-- a worker that waits hears of the first task of a lane
  nodes n1 {auto_assign: false, resources: {gpu: 1}}
  nodes plain {auto_assign: false}
  <able|unable> = & task/next <n1|plain> {wait: 30}
  t = task/create {requires: {resources: {gpu: 1}}}
  $able -> task.task_id $t
  u = task/create
  $unable -> task.task_id $u

== two calls of a node are woken at once: what one of them takes of a resource, the other waits for
  nodes n1 {auto_assign: false, resources: {gpu: 1}}
  <a|b> = & task/next n1 {wait: 30}
  batch {requests: [${"{path: task/create, body: {title: t, description: d, requires: {resources: {gpu: 1}}}}, ".repeat(2)}]}
  until GET task/list?status=assigned -> tasks #1
  l = GET task/list?status=assigned
  task/complete n1 {task_id: $l.tasks.0.task_id}
  $<a|b> -> task *

-- requirements are bounded, and numbers with three decimals
  task/create {requires: {resources: {${words(17, (i) => `r${i}: 1`)}}}} -> 400 requires.resources ~16
  task/create {requires: {resources: []}} -> 400 requires.resources ~object
  task/create {requires: {resources: {gpu: -1}}} -> 400 requires.resources.gpu
  task/create {requires: {capabilities: [${words(17, (i) => `r${i}`)}]}} -> 400 requires.capabilities ~16
  task/create {requires: {capabilities: "${words(17, (i) => `r${i}`)}"}} -> 400 requires.capabilities ~16
  task/create {requires: {capabilities: ["a,b"]}} -> 400 requires.capabilities.0 ~comma
  task/create {requires: {capabilities: "cuda, big,,cuda"}} -> task.requires {capabilities: [cuda, big], resources: {}}
  task/create {requires: {resources: {gpu: 0.3337, none: 0}}, limit_key: k} -> task.limit_key k
  -> task.requires {capabilities: [], resources: {gpu: 0.334, none: absent}}

== what is ready in special lanes is counted, and offered to those who look for work
  nodes n1 {auto_assign: false, capabilities: [a, word], resources: {gpu: 1}}
  admin hub/pause {limit_key: paused}
  first = task/create {requires: {capabilities: [word], resources: {gpu: 1}}, task_type: a, priority: 0}
  plain = task/create {task_type: a}
  last = task/create {task_type: a, limit_key: k, priority: 2}
  task/create {task_type: a, requires: {resources: {gpu: 2}}}
  task/create {task_type: a, limit_key: paused}
  task/create {task_type: b, limit_key: k}
  GET task/pull?node_id=n1 -> tasks.task_id [$first, $plain, $last]
  GET task/pull?node_id=n1&limit=1 -> tasks #1
  ${next("first")}
  task/release $first n1
  tick 20s
  GET stats/types -> types [{task_type: a, open: 5}, {task_type: b, open: 1, oldest_open_at: *}]
  metrics -> text "~luxhub_type_tasks_ready{type=\\"a\\"} 5"
  metrics -> text "~luxhub_type_tasks_ready{type=\\"b\\"} 1"

== why a task does not run is every reason at once, and its position when there is none
  first, second = task/create {task_type: t, ${GPU}}
  later = task/create {task_type: t, ${GPU}, limit_key: k, delay_s: 60, depends_on: [$first]}
  GET task/$first/explain -> reasons.code [no_node, in_line]
  nodes n1 {auto_assign: false, capabilities: [cuda], resources: {gpu: 0.5}}
  GET task/$first/explain -> reasons [{code: no_node, missing: ["the type t", "gpu 1"]}, *]
  nodes n1 {auto_assign: false, capabilities: [cuda, t], resources: {gpu: 1}}
  GET task/$second/explain -> {ready: true, position: 2, reasons: [{code: in_line, until: null}]}
  ${next("first")}
  GET task/$first/explain -> reasons.code [assigned]
  GET task/$second/explain -> reasons.code [nodes_full, in_line]
  node/drain n1 {drain: true}
  GET task/$second/explain -> reasons.code [nodes_draining, in_line]
  node/leave n1
  GET task/$second/explain -> reasons.code [nodes_offline, in_line]
  admin hub/pause {<reason: maintenance|type: t>}
  limit/hold {key: k, for_s: 60}
  admin budget/set {scope: type, value: t, per: day, cost_usd: 0}
  GET task/$later/explain -> {ready: false, position: null}
  -> reasons.code [not_before, depends_on, paused, paused, rate, budget, nodes_offline]
  task/cancel $later
  GET task/$later/explain -> reasons.code [finished]
  GET task/none/explain -> 404 task_not_found

== why a task does not run names the node to which the balancer does not give it back
  B nodes n1
  t = B task/create
  admin task/revoke $t
  GET task/$t/explain -> reasons [{code: in_line, detail: ~n1}]

== why a task does not run is true after a node has registered with fewer resources, or decimals that do not add up
  nodes n1 {auto_assign: false, resources: {gpu: 0.3}}
  a, b, c, d = task/create {requires: {resources: {gpu: 0.1}}}
  # 0.1 + 0.1 + 0.1
  ${next("a", "b", "c", "none")}
  GET task/$d/explain -> reasons.code [nodes_full, in_line]
  nodes n1 {auto_assign: false, resources: {gpu: 0.1}}
  task/release $a n1
  # Two run on what is one.
  ${next("none")}
  GET task/$d/explain -> reasons.code [nodes_full, in_line]
  ${IDLE}
  GET task/$d/explain -> reasons.code [no_node, in_line]

-- status names what is paused, and only then
  GET status -> paused absent
  admin hub/pause {type: t}
  GET status -> paused [{scope: type, value: t}]

-- a task that no registered node could ever take is said so once after --stuck-after, in whatever lane it is
  bare = task/create
  tick 11m; sweep
  GET events?since=0&kind=task.stuck -> events [{task_id: $bare, data: {missing: null}}]
  nodes n1 {auto_assign: false, capabilities: [a, word], resources: {gpu: 1}}
  type = task/create {task_type: b}
  gpus = task/create {requires: {resources: {gpu: 2}}}
  words = task/create {requires: {capabilities: [other]}}
  task/create {task_type: a, requires: {capabilities: [word], resources: {gpu: 1}}}
  task/create {task_type: b, not_before: +15m}
  sweep; tick 9m; sweep
  # None was ready for so long.
  GET events?since=0&kind=task.stuck -> events #1
  # n1 is offline by now.
  tick 2m; sweep; tick 2m; sweep
  GET events?since=0&kind=task.stuck -> events #4
  GET events?since=0&kind=task.stuck&task_id=$<type|gpus|words> -> events.data.missing ["<the type b|gpu 2|the word other>"]
  # The start time of another has come.
  tick 3m; sweep; tick 11m; sweep
  GET events?since=0&kind=task.stuck -> events #5
  # What its only node could take is stuck when that node is deleted.
  admin node/delete n1
  tick 1m; sweep
  GET events?since=0&kind=task.stuck -> events #6

-- the time after which a task is stuck is a setting {stuckAfterMs: 60000}
  t = task/create {task_type: b}
  tick 61s; sweep
  GET events?since=0&kind=task.stuck -> events [{task_id: $t, data: {missing: null}}]

-- a copy that a node may not have hides no task behind it in its lane
  nodes boss n1 {auto_assign: false}
  q = task/create {quorum: {results: 2, of: 3}, creator_node: boss, limit_key: k, priority: 0}
  until task $q -> quorum.copies #2
  task/next n1 -> task.parent_task $q
  behind = task/create {limit_key: k, priority: 2}
  ${next("behind")}

= a fair hub goes round the creators of one priority: a single task waits at most one round {fair: creator}
  ${IDLE}
  ${"task/create {creator_node: greedy}\n".repeat(10)}
  ${"task/create {creator_node: second}\n".repeat(5)}
  task/next n1 -> task.creator_node <greedy|second|greedy|second>
  single = task/create {creator_node: single}
  nobody = task/create
  a = task/next n1; b = task/next n1; c = task/next n1; d = task/next n1
  task $<single|nobody> -> status assigned
  urgent = task/create {creator_node: greedy, priority: 0}
  ${next("urgent")}
  ${"task/next n1 -> task *\n".repeat(9)}
  ${next("none")}

-- a fair hub goes round more creators than one read loads {fair: creator}
  ${IDLE}
  ${words(9, (c) => `task/create {creator_node: c${c}}\n`.repeat(5)).replaceAll(",", "")}
  single = task/create {creator_node: single}
  ${"task/next n1\n".repeat(10)}
  task $single -> status assigned
  GET task/list?status=assigned&creator_node=c<0|1|2|3|4|5|6|7|8> -> total 1

-- a fair hub goes round the creators also within the requests of one batch {fair: creator}
  ${IDLE}
  ${"task/create {creator_node: <a|b|c|d>}\n".repeat(5)}
  batch {requests: [${"{path: task/next, body: {node_id: n1}}, ".repeat(4)}]}; GET task/list?status=assigned&creator_node=<a|b|c|d> -> total <1|2|3|4>

-- so does the balancer of a fair hub {fair: creator}
  ${"B task/create {creator_node: greedy}\n".repeat(20)}
  single = B task/create {creator_node: single}
  B nodes n1 {max_tasks: 2}
  sweep
  GET task/list?status=assigned -> total 2
  task $single -> status assigned

-- a node that takes every type, while many types are paused, finds the one that is open
  ${IDLE}
  ${types(OPEN_TYPES_MAX, (type) => `task/create {task_type: ${type}}; admin hub/pause {type: ${type}}`)}
  t = task/create {task_type: zzz}
  ${next("t")}

-- a node that takes every type finds the best of more than can be named, while one is paused
  ${IDLE}
  task/create {task_type: aaa}
  admin hub/pause {type: aaa}
  ${types(OPEN_TYPES_MAX + 5, (type) => `task/create {task_type: ${type}, priority: 2}`)}
  t = task/create {task_type: zzz, priority: 0}
  ${next("t")}

-- a task that no registered node could ever take may be a copy of a quorum, or a review: explain and the event say the same {stuckAfterMs: 60000}
  nodes n1 {capabilities: [check], auto_assign: false}
  family = task/create {quorum: {results: 2, of: 2}}
  until GET task/list?status=open -> total 3
  first = task/next n1 -> task *
  open = GET task/list?status=open -> tasks #2
  GET events?since=0&kind=task.stuck -> events []
  pass 61s n1
  e = GET events?since=0&kind=task.stuck -> events.data.missing ["the right to it: it must be another node"]
  GET task/$e.events.0.task_id/explain -> reasons [{code: no_node, missing: ["the right to it: it must be another node"]}, {code: in_line}]
  pass 61s n1
  t = task/create {review: "capability:check"}
  task/claim $t n1
  task/complete $t n1
  until GET task/list?status=open -> total 3
  pass 61s n1
  GET events?since=0&kind=task.stuck -> events #2
  nodes n2 {capabilities: [check], auto_assign: false}
  again = task/create {quorum: {results: 2, of: 2}}
  until GET task/$again -> task.quorum.copies #2
  # Two nodes, two copies.
  pass 61s n1
  GET events?since=0&kind=task.stuck -> events #2
`);
