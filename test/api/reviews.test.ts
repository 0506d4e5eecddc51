/**
 * Reviews: the result of a task is checked before its reward is paid: task/review, reviews, and what waits while a result
 * waits.
 */
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

/** w1 has done a task, whose result waits for its review. */
const inReview = (fields = "") => `
  nodes boss w1
  t = task/create {creator_node: boss, lux_reward: 3, review: creator, backoff_s: 0, ${fields}}
  task/claim $t w1
  task/complete $t w1`;

transcripts(`
== a task with a review: holds its reward until the verdict, and pass pays it once
  ${inReview()} -> {status: completed, lux_paid: 0, lux_held: 3}
  task/complete $t w1 -> {lux_paid: 0, lux_held: 3}
  task $t -> {status: completed, waiting_for: review}
  -> review {by: creator, state: pending, within_s: 604800, note: null, reviewed_by: null, until: *}
  node w1 -> lux_balance 0
  GET reviews -> {total: 1, reviews: [{task_id: $t, assigned_node: w1, creator_node: boss, lux_held: 3}]}
  task/review $t boss {verdict: pass, note: Good.} -> task {status: completed, waiting_for: null}
  -> task.review {state: passed, note: Good., reviewed_by: boss, timed_out: false}
  task/review $t boss {verdict: pass}
  task/review $t boss {verdict: reject} -> 409 review_decided
  node w1 -> lux_balance 3
  task/complete $t w1 -> {lux_paid: 3, lux_held: 0}
  GET reviews -> {total: 0, reviews: []}
  events $t -> [task.created, task.assigned, task.completed, task.review_requested, task.review_passed, lux.paid]

== a task with a review: by a node that there is not is refused, until the node registers
  key k task/create {review: "node:later"} -> 404 node_not_found
  nodes later
  key k task/create {review: "node:later"} -> task {status: open}

== a task with a review: is open again after reject, with the note for the next worker, and pays nothing
  ${inReview()}
  nodes w2
  task/review $t {verdict: reject, note: Blue.} -> task {status: open, attempts: 1, result: null}
  -> task.failure {kind: rejected, message: Blue., node_id: w1}
  -> task.review {state: rejected, note: Blue.}
  task/next w2 -> context {review: {note: Blue., reviewed_by: null}, failures: [{kind: rejected}]}
  task/complete $t w2
  task/review $t {verdict: pass}
  node w1 -> lux_balance 0
  node w2 -> lux_balance 3

-- a task with a review: of one's own is not paid after its review either, if the hub pays none of these { selfReward: false }
  ${inReview("creator_node: w1")} -> {lux_paid: 0, lux_held: 0}
  task/review $t {verdict: pass}
  node w1 -> lux_balance 0

== a task with a review: a rejected result is handed out again at once only if no pause keeps it back
  B node/register {node_id: w1, name: w1}
  t = B task/create {review: creator, backoff_s: 0, task_type: x} -> assigned_node w1
  B task/complete $t w1
  admin hub/pause {type: x}
  B task/review $t {verdict: reject} -> task {status: pending, assigned_node: null}
  admin hub/resume {type: x}
  tick 10s
  sweep
  B GET task/$t -> task.assigned_node w1
  B task/complete $t w1 {result: {problem: p, improvement: again, lesson: l}}
  B task/review $t {verdict: reject} -> task.assigned_node w1

== a task with a review: fails when its last attempt is rejected, and then what depends on it
  ${inReview("max_attempts: 1")}
  after = task/create {depends_on: [$t]}
  task/review $t {verdict: reject}
  task $t -> {status: failed, failure: {kind: rejected}}
  task $after -> {status: failed, failure: {kind: dependency}}

== a task with a review: keeps what depends on it waiting until it has passed
  nodes boss w1
  t = task/create {review: creator, creator_node: boss}
  before = task/create {depends_on: [$t]}
  task/claim $t w1
  task/complete $t w1
  after = task/create {depends_on: [$t]}
  task $<before|after> -> {ready: false, unmet: {count: 1, task_ids: [$t]}};
  GET task/$<before|after>?context=1 -> context.inputs [{task_id: $t, result: null}];
  task/claim $<before|after> w1 -> 409 task_not_ready
  GET task/$before/explain -> reasons [{code: depends_on}, {code: review, task_ids: [$t]}]
  GET task/$t/explain -> {ready: false, reasons: [{code: review, until: *}]}
  task/review $t {verdict: pass}
  task $before -> ready true
  task $after -> ready true
  task/claim $before w1 -> context.inputs [{task_id: $t, result: {lesson: *}}]

== a task with a review: keeps its group from its end, and itself from retention
  ${inReview("group: g, retain_s: 0")}
  GET group/g -> {done: false, unfinished: 1, in_review: 1, lux_reward: 3, lux_paid: 0}
  tick 2m
  sweep
  task $t -> waiting_for review
  task/review $t {verdict: pass}
  GET group/g?wait=5 -> {done: true, unfinished: 0, lux_paid: 3, in_review: absent}
  tick 2m
  sweep
  task $t -> 404 task_not_found
  GET events?since=0&kind=group.ended -> events #1

== a task with a review: that is deleted while it waits pays nothing, and fails what depends on it
  ${inReview()}
  after = task/create {depends_on: [$t]}
  admin task/delete $t
  sweep
  task $after -> status failed
  node w1 -> lux_balance 0

-- a task with a review: is neither retried nor cancelled while it waits, keeps its unique key, and teaches nobody
  ${inReview("unique_key: k, task_type: paint")}
  task/retry $t -> 409 task_not_failed
  task/cancel $t -> 409 task_completed
  task/complete $t w1 {result: {lesson: another}} -> 409 task_completed
  task/create {unique_key: k} -> task_id $t
  GET lessons?task_type=paint -> lessons []
  task/review $t {verdict: pass}
  task/create {unique_key: k} -> task_id !$t
  GET lessons?task_type=paint -> lessons #1

== the deadline of a review: with <pay|reject> the result has passed or not
  ${inReview("review_within_s: 60, on_review_timeout: <pay|reject>")}
  jump 59s
  sweep
  task $t -> review.state pending
  jump 2s
  sweep
  sweep
  task $t -> review {state: <passed|rejected>, reviewed_by: null, timed_out: true, note: null}
  node w1 -> lux_balance <3|0>
  GET events?since=0&task_id=$t&kind=task.review_<passed|rejected> -> events #1

== the deadline of a review: pays a node that was deleted meanwhile, and one node for many results
  ${inReview("review_within_s: 60").repeat(3)}
  admin node/delete w1
  jump 61s
  sweep
  GET lux/ledger?node_id=w1 -> entries.amount [3, 3, 3]

-- who reviews: a node that is named, and no other
  nodes w2 judge
  task/create {review: node:nobody} -> 404 node_not_found
  ${inReview("review: node:judge")}
  task/review $t w1 {verdict: pass} -> 403 own_work
  task/review $t w2 {verdict: pass} -> 403 not_reviewer
  task/review $t boss {verdict: pass} -> 403 not_reviewer
  task/review $t judge {verdict: pass, epoch: 99} -> 409 stale_lease
  r = task $t
  task/review $t judge {verdict: pass, epoch: $r.review.epoch}
  GET events?since=0&kind=task.review_requested ->
  events [{node_id: judge, data: {by: node:judge, creator_node: boss}}]

== who reviews: never the node or the key that did the work, nor a key of another node
  nodes boss w1 w2
  shared = admin key/add {name: shared, role: full}
  bound = admin key/add w1 {name: own, role: full}
  other = admin key/add w2 {name: other, role: full}
  boss = admin key/add boss {name: boss, role: full}
  t = task/create {review: creator, creator_node: boss}
  as $shared task/claim $t w1
  as $shared task/complete $t w1
  as $shared task/review $t {verdict: pass} -> 403 own_work
  as $shared task/review $t w2 {verdict: pass} -> 403 own_work
  as $bound task/review $t {verdict: pass} -> 403 own_work
  as $other task/review $t {verdict: pass} -> 403 not_reviewer
  as $boss task/review $t {verdict: pass}

-- who reviews: a result that was not asked to be reviewed, or is not there
  plain = task/create
  task/review $plain {verdict: pass} -> 409 not_in_review
  t = task/create {review: creator}
  task/review $t {verdict: pass} -> 409 not_in_review
  task/review {task_id: ${NO_ID}, verdict: pass} -> 404 task_not_found
  task/review $plain {verdict: maybe} -> 400 verdict
  task/create {review: <nobody|node:|capability:|"capability:a,b"|"node:a b">} -> 400 review

== a review by a capability: is a task of that type for another node, whose result has the verdict
  nodes judge {capabilities: review}
  ${inReview("review: capability:review, description: Green.")}
  task/next w1 -> task null
  r = task/next judge {wait: 60} -> context.inputs [{task_id: $t, result: {lesson: *}}]
  -> task {task_type: review, parent_task: $t, made_for: review, lux_reward: 0, description: ~Green.}
  task/complete $r judge -> 409 verdict_missing
  task/complete $r judge {result: {verdict: reject, note: Blue.}}
  until task $t -> {status: open, review: {state: rejected, note: Blue., reviewed_by: judge}}
  task/claim $t w1
  task/complete $t w1
  again = task/next judge {wait: 60}
  task/complete $again judge {result: {output: {verdict: pass}}}
  until node w1 -> lux_balance 3

== a review by a capability: reaches the node that waits for work behind the one that did it
  nodes w1
  nodes judge {capabilities: review}
  t = task/create {review: "capability: review"}
  task/claim $t w1
  first = & task/next w1 {wait: 120}
  second = & task/next judge {wait: 120}
  task/complete $t w1
  $second -> task.parent_task $t
  other = task/create
  $first -> task.task_id $other

-- a review by a capability: cannot be taken by the node that did the work, nor assigned to it
  ${inReview("review: capability:review")}
  until GET task/list?task_type=review -> tasks #1
  r = GET task/list?task_type=review
  task/claim w1 {task_id: $r.tasks.0.task_id} -> 409 node_excluded
  task/assign w1 {task_id: $r.tasks.0.task_id} -> 409 node_excluded
  task/review $t {verdict: pass}
  until GET task/list?task_type=review -> tasks.status [failed]

== a review by a capability: is assigned to another node at once on B
  B nodes w1
  t = B task/create {review: capability:review}
  B task/complete $t w1
  B nodes w2
  until GET task/list?node_id=w2 -> tasks.parent_task [$t]
  GET task/list?node_id=w1 -> tasks #1

-- a review by a capability: does not hide the task behind it from the node that may not have it
  ${inReview("review: capability:review, priority: 0").repeat(40)}
  until GET task/list?task_type=review -> total 40
  t = task/create {priority: 2}
  task/next w1 -> task.task_id $t

== a batch passes and rejects in one commit
  ${inReview()}
  a = task $t
  ${inReview()}
  batch {requests: [
  {path: task/review, body: {task_id: $a, verdict: pass}},
  {path: task/review, body: {task_id: $t, verdict: reject}},
  {path: task/review, body: {task_id: $a, verdict: reject}}]} -> answers.status [200, 200, 409]
  node w1 -> lux_balance 3
`);
