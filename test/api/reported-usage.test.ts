/** What a node reports with a key of its own, and the numbers of reports. usage.test.ts has the rest. */
import { SUMS_OF_NODE_MAX, USAGE_TOGETHER_MAX } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

const DAY_MS = 86_400_000;
const report = (seq: number, more = ""): string =>
  `{seq: ${seq}, model: large, input_tokens: 1000, output_tokens: 200, cost_usd: 0.25, ${more}}`;

/** A key that is bound to n1; n2 has none. */
const BOUND = `
  k = admin key/add n1 {name: k}
  as $k node/register n1 {name: n1}
  nodes n2`;

/** A task of somebody that n1 claims and completes with its key. */
const spend = (usage: string, fields = "", creator = ""): string => `
  t = ${creator}task/create {${fields}}
  as $k task/claim $t n1
  as $k task/complete $t n1 {usage: [${usage}]}`;

/** How many dollars count after two reports of 2 dollars, of which the cap takes a part. */
const CAPPED: readonly (readonly [fields: string, creator: string, counted: number])[] = [
  ["", "", 3],
  ["max_cost_usd: 3.5", "", 3.5],
  ["max_cost_usd: 1", "", 1],
  ["max_cost_usd: 3.5", "as $k ", 3], // who creates the task may say anything
  ["max_cost_usd: 1", "as $k ", 1],
];
const SUM = CAPPED.reduce((sum, [, , counted]) => sum + counted, 0);

const WRONG = [
  "seq: -1",
  'model: " "',
  "input_tokens: 1.5",
  "output_tokens: 1000000001",
  "cost_usd: -0.1",
  "cost_usd: 10001",
  'cached_tokens: "1"',
];

const NAMES = SUMS_OF_NODE_MAX + 5;

transcripts(`
-- a usage report: is exact to a millionth of a dollar
  nodes n1
  t = task/create
  task/claim $t n1
  # Ten times 0.1 is 1, and what is finer is rounded.
  task/extend $t n1 {usage: [${Array.from({ length: 10 }, (_, i) => report(i, "cost_usd: 0.1")).join(", ")}]}
  task $t -> usage.cost_usd 1
  task/extend $t n1 {usage: [${report(10, "cost_usd: 0.30000000000000004")}, ${report(11, "cost_usd: 0.0000006")}]}
  task $t -> usage.cost_usd 1.300001
  task/extend '{"task_id":"$t","node_id":"n1","usage":[{"seq":12,"model":"m","input_tokens":1,"output_tokens":1,
    "cost_usd":0.12345640000000000000000001}]}'
  task $t -> usage.cost_usd 1.423457

-- a usage report: has limits
  nodes n1
  t = task/create
  task/claim $t n1
  task/extend $t n1 {usage: [${WRONG.map((wrong, i) => report(i, wrong)).join(", ")}]} ->
  400 ${WRONG.map((wrong, i) => `usage.${i}.${wrong.split(":")[0]}`).join(" ")}
  # Numbers that no double has are rounded, as everywhere.
  task/extend '{"task_id":"$t","node_id":"n1","usage":[{"seq":8.0000000000000000001,"model":"m","input_tokens":1e-400,
    "output_tokens":1,"cached_tokens":1e-400}]}'
  task/extend $t n1 {usage: [${Array.from({ length: USAGE_TOGETHER_MAX + 1 }, (_, i) => report(i)).join(", ")}]} -> 400 usage

== what a node reports with a key of its own: counts up to max_cost_usd, or else --report-max {reportMaxUsd: 3}
  ${BOUND}
  ${CAPPED.map(
    (
      [fields, creator, counted],
      i,
    ) => `${spend(`${report(1, "cost_usd: 2")}, ${report(2, "cost_usd: 2, model: small")}`, fields, creator)}
  task $t -> usage.cost_usd 4
  GET usage -> all.cost_usd ${CAPPED.slice(0, i + 1).reduce((sum, [, , one]) => sum + one, 0)}
  GET events?kind=usage.capped&limit=1 -> events [{node_id: n1, data: {cost_usd: 4, counted_usd: ${counted}}}]`,
  ).join("\n")}
  GET usage?by=<node|type> -> usage [{cost_usd: ${SUM}}]
  GET usage?by=model -> usage #2
  # Any other key is trusted.
  t = task/create
  task/claim $t n1
  task/complete $t n1 {usage: [${report(1, "cost_usd: 50")}]}
  GET usage -> all.cost_usd ${SUM + 50}
  GET events?since=0&kind=usage.capped -> events #${CAPPED.length}

== what a node reports with a key of its own: counts for its quota by name, and has few names a day
  ${BOUND}
  admin budget/set {scope: group, value: g-last, per: day, cost_usd: 100}
  ${Array.from({ length: NAMES }, (_, i) => spend(report(1, `model: m${i}`), `group: ${i === NAMES - 1 ? "g-last" : `g${i}`}`)).join("")}
  GET usage?by=model&per_page=50 -> {total: ${SUMS_OF_NODE_MAX + 1}, usage: [{name: other, reports: 5}, ${"*, ".repeat(Math.min(49, SUMS_OF_NODE_MAX))}]}
  GET usage?by=group&per_page=50 -> {total: ${SUMS_OF_NODE_MAX + 2}, usage: [{name: other, reports: 4}, ${"*, ".repeat(Math.min(49, SUMS_OF_NODE_MAX + 1))}]}
  admin GET key/list -> keys.2.used.bytes ${2 * SUMS_OF_NODE_MAX * 320}..10000000

== what a node reports with a key of its own: is void when an administrator says so, as if it had never been
  ${BOUND}
  admin budget/set {scope: hub, per: total, cost_usd: 10}
  t = task/create {task_type: t, group: g}
  task/claim $t n2
  task/complete $t n2 {usage: [${report(1)}]}
  <day|node|creator|type|model|group> = GET usage?by=<day|node|creator|type|model|group>
  ${`${spend(`${report(1, "cost_usd: 60")}, ${report(2, "model: x")}`, "task_type: t, group: g")}
  waiting = task/create
  task/claim $waiting n2 -> 409 budget_exceeded
  admin usage/void n1 {reason: cents} -> {node_id: n1, voided: {reports: 2, cost_usd: 60.25}}
  GET usage?by=<day|node|creator|type|model|group> -> usage $<day|node|creator|type|model|group>.usage
  task/claim $waiting n2
  admin usage/void n1 -> 404 usage_not_found\n`.repeat(2)}
  # It says so again.
  GET events?since=0&kind=budget.exceeded -> events #2
  GET events?since=0&kind=usage.voided -> events [{node_id: n1, data: {reports: 2, cost_usd: 60.25, reason: cents}}, {node_id: n1}]
  admin GET key/list -> keys.2.used.bytes 0..8000
  usage/void n2 -> 403 admin_key_required
  admin usage/void n2 {day: 2030-01-01} -> 404 usage_not_found

= what a node reports with a key of its own: a counter does not go down when it is void
  ${BOUND}
  ${spend(report(1, "cost_usd: 60"))}
  admin usage/void n1
  metrics -> text "~luxhub_cost_usd_total 60\\n"

== what a node reports with a key of its own: goes after --retain-usage, but for budgets of all time {retainUsageMs: ${3 * DAY_MS}}
  ${BOUND}
  admin budget/set {scope: type, value: kept, per: total, cost_usd: 100}
  ${spend(report(1), "task_type: kept")}
  ${spend(report(1), "task_type: gone")}
  full = admin GET key/list
  ${"tick 1d; sweep\n".repeat(5)}
  GET usage?by=type -> usage.name [kept]
  GET usage?by=model -> usage []
  GET usage?by=day -> usage #1
  admin GET key/list -> keys.2.used.bytes !$full.keys.2.used.bytes
`);
