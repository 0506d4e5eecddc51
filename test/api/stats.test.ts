/**
 * stats/types and stats/failures, the tasks of a group of failures, lux/top. held-tasks.test.ts has what holds tasks
 * back, and stats/minutes.
 */
import { FAILURE_GROUPS_MAX } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";
import { NO_ID } from "./scene.ts";

/** The statistics are kept for a moment. */
const LATER = "tick 10s";
/** A task of a node that fails with this message. */
const failed = (task: string, error: string, node = "n1", type = "index"): string => `
  ${task} = task/create {task_type: ${type}}
  task/claim $${task} ${node}
  task/fail $${task} ${node} {error: ${JSON.stringify(error)}, retry: false}`;
const FAILURES = `
  nodes n1 n2
  ${failed("a", "Out of memory at page 7\n  at worker.ts:12")}
  ${failed("b", "429 Too Many Requests")}
  ${failed("c", "Out of memory at page 12,004", "n2", "crawl")}
  ${failed("d", `\n Out of memory at page 8\n${"x".repeat(2_000)}`, "n2")}
  ${failed("e", "Out of memory at page 19")}
  # What people cancel is no failure.
  t = task/create
  task/claim $t n1
  task/cancel $t n2`;
const MANY = FAILURE_GROUPS_MAX + 5;
/** Words without a digit, which would count as any other. */
const word = (i: number): string => `x${String.fromCharCode(97 + Math.floor(i / 26), 97 + (i % 26))}`;

transcripts(`
= stats/types: has what is open, waits, runs and has ended, by type
  nodes n1 {capabilities: [x, y]}
  GET stats/types -> {types: [], others: 0}
  first = task/create {task_type: x}
  tick 40s
  task/create {task_type: x}
  task/create {task_type: x, delay_s: 60}
  task/create {task_type: x, depends_on: [$first]}
  task/create
  <a|b|c> = task/create {task_type: y}
  task/claim $<a|b|c> n1
  task/complete $a n1
  task/fail $b n1 {retry: false}
  ${LATER}
  GET stats/types -> types [{task_type: x, open: 2, waiting: 2, assigned: 0, completed: 0, failed: 0, oldest_open_at: -50s},
    {task_type: y, open: 0, oldest_open_at: null, waiting: 0, assigned: 1, completed: 1, failed: 1, time_to_start: {count: 3}},
    {task_type: null, open: 1, takers: 1}]
  # It is kept for a moment, however many ask.
  task/create {task_type: x}
  ${LATER}
  GET stats/types -> types [{task_type: x, open: 3}, *, *]

= stats/types: has how long tasks of a type have waited
  nodes n1
  <a|b|c|d> = task/create {task_type: slow}
  tick 100s
  node/heartbeat n1
  task/claim $<a|b|c|d> n1
  ${LATER}
  GET stats/types -> types [{task_type: slow, time_to_start: {count: 4, p50_s: 60..121, p95_s: 60..121}}]

== stats/types: counts the nodes that take a type: registered, online, and those that could take one now
  nodes any
  nodes full {capabilities: [gpu], max_tasks: 1}
  nodes drains off {capabilities: [gpu]}
  nodes other {capabilities: [cpu]}
  t = task/create {task_type: gpu}
  task/claim $t full
  node/drain drains {drain: true}
  node/leave off
  task/create {task_type: gpu}
  ${LATER}
  GET stats/types -> types [{task_type: gpu, takers: 1, nodes_online: 3, nodes_registered: 4}]
  admin node/delete off
  node/leave any
  ${LATER}
  GET stats/types -> types [{task_type: gpu, takers: 0, nodes_online: 2, nodes_registered: 3}]

== stats/failures: has groups by type and message, without its numbers (<A|B>)
  ${FAILURES}
  f = <|B >GET stats/failures -> {total: 5, exact: true, failures: [
    {task_type: index, message: "Out of memory at page 19", count: 3, kind: failed, nodes: 2, node_ids: [n1, n2], task_id: $e},
    {task_type: crawl, message: "Out of memory at page 12,004", count: 1},
    {task_type: index, message: "429 Too Many Requests", count: 1}],
    by_node: [{node_id: n1, count: 3, attempts: 3}, {node_id: n2, count: 2, attempts: 2}]}
  <|B >GET task/list?failure_group=$f.failures.0.group&fields=summary -> tasks.task_id [$e, $d, $a]
  GET task/count?failure_group=$f.failures.0.group -> {count: 3, exact: true}
  GET task/list?failure_group=$f.failures.0.group&failed_by=n2 -> tasks.task_id [$d]

  # By the words of the messages, also without a group.
  GET task/list?failure_q=<out%20mem|429%20many|page%208|nothing> -> tasks.task_id [<$e, $d, $c, $a|$b|$d|>]
  GET task/list?failure_q=memory&failed_by=n2&task_type=index -> tasks.task_id [$d]
  GET task/count?failure_q=memory -> {count: 4, exact: true}

-- stats/failures: counts the attempts that failed at a node, also of tasks that another completed
  nodes ill well
  t = task/create {backoff_s: 0}
  task/claim $t ill
  task/fail $t ill {error: e}
  task/claim $t well
  task/complete $t well
  GET stats/failures -> {total: 0, failures: [], by_node: [{node_id: ill, count: 0, attempts: 1}]}

-- stats/failures: ids do not tell messages apart, words do
  nodes n1
  ${["3f2a9c81", "0badcafe1", NO_ID, "deadbeef"].map((id) => failed("t", `no file ${id} in store`)).join("")}
  # deadbeef may be a word.
  GET stats/failures -> failures.count [3, 1]

-- stats/failures: only of the time that is asked for, and without what was retried
  ${FAILURES}
  tick 50m
  node/heartbeat n1
  ${failed("late", "late")}
  GET stats/failures?last=60 -> total 1
  GET stats/failures -> total 6
  task/retry $late
  GET stats/failures?last=60 -> {total: 0, failures: [], by_node: [{node_id: n1, count: 0, attempts: 1}]}
  GET stats/failures?last=0 -> 400 last
  GET task/list?failure_group=x -> 400 failure_group
  GET task/list?<failure_group=${"0".repeat(16)}|failure_q=x>&order=created -> 400 order
  GET task/list?<failure_group=${"0".repeat(16)}|failure_q=x>&page=1 -> 400 page

-- stats/failures: has the largest groups
  nodes n1
  ${Array.from({ length: MANY }, (_, i) => failed("t", `${word(i)} is missing`)).join("")}
  GET stats/failures -> {total: ${MANY}, exact: true, failures: #${FAILURE_GROUPS_MAX}}
  -> failures.0 {kind: failed, node_ids: [n1]}

== lux/top: has who earned most since a time
  nodes n1 n2
  <a|b|c|d> = task/create {lux_reward: <5.25|1|1.5|0.000001>}
  task/claim $<a|b> n1
  task/claim $<c|d> n2
  task/complete $a n1
  tick 60s
  t = task/create
  node/heartbeat <n1|n2>
  task/complete $b n1
  task/complete $<c|d> n2
  GET lux/top?since=$t.task.created_at -> {exact: true, nodes: [{node_id: n2, lux_earned: 1.500001, entries: 2},
    {node_id: n1, lux_earned: 1, entries: 1}]}
  GET lux/top?since=2020-01-01T00:00:00Z -> nodes [{node_id: n1, lux_earned: 6.25}, *]
  GET lux/top?since=2050-01-01T00:00:00Z -> {nodes: [], exact: true}
  GET lux/top -> 400 since
  GET lux/top?since=monday -> 400 since
`);
