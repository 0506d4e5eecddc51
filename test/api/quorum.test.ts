/**
 * Quorums: several nodes do the same task, and the result is the one on which enough of them agree. quorum-secrets.test.ts
 * has what nobody sees before it is decided.
 */
import { transcripts } from "../support/transcript.ts";

const THREE = "quorum: {results: 2, of: 3}, lux_reward: 1.000001, backoff_s: 0, creator_node: boss";
const TWO = THREE.replace("of: 3", "of: 2");
const copies = (count: number) => `until task $t -> quorum.copies #${count}`;
const done = (name: string, output: string) => `task/complete $${name} ${name} {result: {output: ${output}}}`;
const decided = "until task $t -> status completed";

transcripts(`
== a quorum completes with the result on which two of three agree, who share the reward
  nodes a b c
  t = task/create {${THREE}, group: checked}
  task $t -> {status: open, ready: false}
  -> quorum {results: 2, of: 3, compare: output, agreed: []}
  task/claim $t a -> 409 task_not_ready
  ${copies(2)}
  a = task/next a -> task.parent_task $t
  b = task/next b -> task.task_id !$a
  GET task/$t/explain -> reasons.code [quorum]
  task/next a -> task null
  ${done("a", "{y: 1, x: [1.0]}")}
  ${done("b", "{x: [1], y: 2}")}
  ${copies(3)}
  c = task/next c -> task.parent_task $t
  ${done("c", "{x: [1], y: 1.0}")}
  ${decided}
  task $t -> {assigned_node: a, result: {output: {x: [1], y: 1}}, quorum: {state: agreed, agreed: [a, c]}}
  node <a|b|c> -> lux_balance <0.500001|0|0.5>
  ${done("a", "{x: [1], y: 1}")} -> lux_paid 0.500001
  GET group/checked -> {total: 1, done: true, lux_reward: 1.000001, lux_paid: 1.000001}
  task $b -> result.output {y: 2}

== a quorum fails when its copies are used up without agreement, and a retry starts again
  nodes a b c
  t = task/create {${TWO}}
  after = task/create {depends_on: [$t]}
  ${copies(2)}
  q = task $t
  a = task $q.quorum.copies.0
  b = task $q.quorum.copies.1
  task/claim $a a
  task/claim $b a -> 409 node_excluded
  node/drain <b|c> {drain: true}
  GET task/$b/explain -> reasons.code [nodes_draining, in_line]
  node/drain b {drain: false}
  task/claim $b b
  task/complete $a a -> 409 compared_value_missing
  ${done("a", "1")}
  task/fail $b b {retry: false}
  until task $t -> {status: failed, failure: {kind: no_quorum}, quorum: {state: failed}}
  until task $after -> status failed
  task/retry $t
  until task $t -> quorum.copies [!$a, *]
  a = task/next a
  b = task/next b
  ${done("a", "5")}
  ${done("b", "5")}
  ${decided}

== the copies of a quorum end with it
  nodes a
  gone = task/create {${THREE}}
  t = task/create {${THREE}}
  ${copies(2)}
  until task $gone -> quorum.copies #2
  <q|r> = task $<t|gone>
  task/claim a {task_id: $q.quorum.copies.0}
  task/cancel $t
  admin task/delete $gone
  until task $<q|r>.quorum.copies.0 -> {status: failed, sealed: absent}
  until task $<q|r>.quorum.copies.1 -> {status: failed, sealed: absent}

-- a quorum waits for its time and for other tasks before it has copies
  nodes a b
  first = task/create
  t = task/create {${THREE}, depends_on: [$first], delay_s: 60}
  task/claim $first a
  task/complete $first a {result: {output: "the input"}}
  sweep
  task $t -> quorum.copies []
  tick 61s
  node/heartbeat a
  sweep
  ${copies(2)}
  task/next a -> context.inputs [{task_id: $t}, {result: {output: "the input"}}]

-- a quorum compares the values that it names
  nodes a b
  t = task/create {quorum: {results: 2, compare: "json:/output/answer,/lesson"}}
  task $t -> quorum {of: 3, compare: "json:/output/answer,/lesson"}
  ${copies(2)}
  a = task/next a
  b = task/next b
  ${done("a", "{answer: 100.0, time: 3}")}
  ${done("b", "{time: 9, answer: 100}")}
  ${decided}

== on B the balancer gives the copies of a quorum to different nodes
  B nodes a b
  t = B task/create {${THREE}}
  until node <a|b> -> tasks_assigned 1
  task $t -> assigned_node null

-- a quorum does not pay its creator where the hub pays no tasks of one's own {selfReward: false}
  nodes boss b
  t = task/create {${THREE}, lux_reward: 2}
  ${copies(2)}
  boss = task/next boss
  ${done("boss", "1")}
  b = task/next b
  ${done("b", "1")}
  ${decided}
  node <boss|b> -> lux_balance <0|1>

== one batch-assign does not give a node two copies of a quorum
  nodes a
  t = task/create {${THREE}}
  ${copies(2)}
  q = task $t
  task/batch-assign {assignments: [
    {task_id: $q.quorum.copies.0, node_id: a}, {task_id: $q.quorum.copies.1, node_id: a}]} -> results.error [null, node_excluded]

-- a quorum refuses numbers and words that make no sense
  task/create {quorum: {results: 1}} -> 400 quorum.results
  task/create {quorum: {results: 3, of: 2}} -> 400 quorum.of
  task/create {quorum: {results: 2, of: 16}} -> 400 quorum.of
  task/create {quorum: {results: 2, compare: all}} -> 400 quorum.compare
  task/create {quorum: {results: 2}, review: creator} -> 400 review
`);
