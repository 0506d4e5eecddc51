/**
 * What work has cost: usage that workers report, its sums (GET usage), and max_cost_usd. reported-usage.test.ts has what a
 * node reports with a key of its own.
 */
import { USAGE_OF_TASK_MAX, USAGE_TOGETHER_MAX } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

const report = (seq: number, fields = "cost_usd: 0.25") =>
  `{seq: ${seq}, model: large, input_tokens: 1000, output_tokens: 200, ${fields}}`;
const usage = (...reports: readonly string[]) => `usage: [${reports.join()}]`;
const cost = (usd: string) => usage(report(1, `cost_usd: ${usd}`));
/** A task that n1 holds. */
const claimed = (fields = "", name = "t") => `${name} = task/create {backoff_s: 0, ${fields}}
  task/claim $${name} n1`;
const all = Array.from({ length: USAGE_OF_TASK_MAX / USAGE_TOGETHER_MAX }, (_, n) => {
  const reports = Array.from({ length: USAGE_TOGETHER_MAX }, (_, i) => report(n * USAGE_TOGETHER_MAX + i));
  return `{path: task/extend, body: {task_id: $t, node_id: n1, ${usage(...reports)}}}`;
});

transcripts(`
== a usage report counts once, in every request that can carry it, and failed attempts count
  nodes n1
  ${claimed()}
  task $t -> usage null
  task/extend $t n1 {${usage(report(1))}}
  # A repeat, with a new one.
  task/extend $t n1 {${usage(report(1), report(2, "cost_usd: 0.5"))}}
  # The first one counts.
  task/extend $t n1 {${usage(report(2, "cost_usd: 7"), report(2, "cost_usd: 8"))}}
  task $t -> usage {input_tokens: 2000, output_tokens: 400, cost_usd: 0.75, reports: 2}
  task/fail $t n1 {${usage(report(3))}}
  task/claim $t n1
  # Another attempt: its numbers are its own.
  task/release $t n1 {${usage(report(1))}}
  task/claim $t n1
  <|>task/complete $t n1 {${usage(report(1, "cost_usd: 0.25, cached_tokens: 900"))}}
  task $t -> usage {input_tokens: 5000, output_tokens: 1000, cached_tokens: 900, cost_usd: 1.5, reports: 5, without_cost: 0}
  GET usage -> usage [{cost_usd: 1.5, reports: 5}]

-- a usage report is refused from a late worker, and changes nothing
  nodes n1
  ${claimed()}
  e = task/extend $t n1
  task/<release|claim> $t n1
  task/<extend|release> $t n1 {epoch: $e.lease.epoch, ${usage(report(1))}} -> 409 stale_lease
  task $t -> usage null
  GET usage -> usage []

-- a usage report without a cost is counted as such, and not as zero
  nodes n1
  ${claimed()}
  task/extend $t n1 {${cost("null")}}
  task $t -> usage {cost_usd: null, reports: 1, without_cost: 1}
  task/extend $t n1 {${usage(report(2, "cost_usd: null"), report(3))}}
  task $t -> usage {cost_usd: 0.25, reports: 3, without_cost: 2}
  GET usage -> {all: {cost_usd: 0.25, reports: 3, without_cost: 2}}

-- a usage report is refused when its task has too many, and the request works without
  nodes n1
  ${claimed()}
  ${Array.from({ length: Math.ceil(all.length / 50) }, (_, i) => `batch {requests: [${all.slice(50 * i, 50 * i + 50).join()}]} -> answers.status !~4`).join("\n")}
  task $t -> usage.reports ${USAGE_OF_TASK_MAX}
  task/complete $t n1 {${usage(report(USAGE_OF_TASK_MAX))}} -> 409 usage_limit
  task/complete $t n1

== GET usage sums by node, creator, type, model and day, and keeps what deleted tasks have cost
  nodes n1 n2 boss
  ${claimed("task_type: translate, creator_node: boss", "first")}
  ${claimed("", "second")}
  third = task/create {task_type: translate}
  task/claim $third n2
  task/extend $first n1 {${usage(report(1), report(2).replace("large", "small"))}}
  task/extend $second n1 {${cost("1")}}
  task/extend $third n2 {${cost("5")}}
  admin task/delete $third
  GET usage?by=node -> usage [{name: n2, cost_usd: 5, reports: 1}, {name: n1, cost_usd: 1.5, reports: 3}]
  GET usage?by=creator -> usage [{name: null, cost_usd: 6, reports: 2}, {name: boss, cost_usd: 0.5, reports: 2}]
  GET usage?by=type -> usage [{name: translate, cost_usd: 5.5, reports: 3}, {name: null, cost_usd: 1, reports: 1}]
  GET usage?by=model -> usage [{name: large, cost_usd: 6.25, reports: 3}, {name: small, cost_usd: 0.25, reports: 1}]
  GET usage?by=day -> usage [{name: ~-, cost_usd: 6.5, reports: 4}]
  GET usage?by=node&page=2&per_page=1 -> {total: 2, pages: 2, by: node, all: {cost_usd: 6.5}, usage: [{name: n1, cost_usd: 1.5}]}

== GET usage selects UTC days, both included
  day 23:00:00
  nodes n1
  ${claimed()}
  task/extend $t n1 {${usage(report(1))}}
  first = GET usage -> usage #1
  jump 2h
  task/extend $t n1 {${usage(report(2))}}
  second = GET usage -> usage [{name: !$first.usage.0.name}, {name: $first.usage.0.name}]
  GET usage?since=$second.usage.0.name -> usage.name [$second.usage.0.name]
  GET usage?until=$first.usage.0.name -> usage.name [$first.usage.0.name]
  GET usage?since=2030-02-30&by=week&until=now -> 400 by since until
  GET usage?since=2030-02-02&until=2030-02-01 -> 400 since
  GET usage?since=2020-02-02 -> 400 since

== max_cost_usd ends the attempt that passes it permanently
  nodes n1
  ${claimed("max_cost_usd: 1")}
  task/extend $t n1 {${cost("0.4")}} -> {budget_left_usd: 0.6, task: {max_cost_usd: 1}}
  task/extend $t n1 {${usage(report(2, "cost_usd: 0.6"))}} -> {budget_left_usd: 0, status: assigned}
  task/extend $t n1 {${usage(report(3, "cost_usd: 0.000001"))}} -> {budget_left_usd: 0, status: failed}
  -> task {attempts: 1, failure: {kind: budget, node_id: n1, message: ~1.000001}}
  task/extend $t n1 -> 409 task_failed
  events $t -> [task.created, task.assigned, task.attempt_failed, task.failed]
  # What was spent stays spent, so a retry needs a larger limit.
  task/retry $t -> 409 budget_exceeded
  task/retry $t {max_cost_usd: 1} -> 409 budget_exceeded
  task/retry $t {max_cost_usd: 2}
  task/claim $t n1
  task/extend $t n1 {${usage(report(4, "cost_usd: 0.5"))}} -> {budget_left_usd: 0.499999, task: {max_cost_usd: 2}}

-- max_cost_usd also ends an attempt that fails or is released; one that completes is completed
  nodes n1
  ${claimed("max_cost_usd: 1")}
  task/fail $t n1 {error: "Out of ideas.", ${cost("2")}} -> {status: failed, task: {failure: {kind: budget, message: "~Out of ideas."}}}
  ${claimed("max_cost_usd: 1")}
  task/release $t n1 {${cost("2")}} -> {status: failed, task: {failure: {kind: budget}, attempts: 1}}
  ${claimed("max_cost_usd: 1")}
  task/complete $t n1 {${cost("2")}}
  task $t -> usage.cost_usd 2

-- max_cost_usd is not touched by costs that are not known
  nodes n1
  ${claimed("max_cost_usd: 0")}
  task/extend $t n1 {${cost("null")}} -> status assigned
  ${claimed()}
  task/extend $t n1 -> budget_left_usd null
`);
