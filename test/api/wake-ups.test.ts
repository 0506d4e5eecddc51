/** Whatever makes a task available to a node wakes the blocked task/next of the node, also at another hub. */
import { transcripts } from "../support/transcript.ts";

/**
 * What is there before the node n1 waits, and what makes a task available to it. A row has a task type x and a node n1 of
 * its own. The node takes tasks of this type, unless the row says what it is registered with.
 */
type Row = readonly [before: string, act: string, node?: string];

const later = (time: string): string => `tick ${time}; sweep`;
const open = (fields = "") => `t = task/create {task_type: x, ${fields}}`;
/** Another node holds the task. */
const held = (fields = "", holder = "other") => `${open(fields)}; task/claim $t ${holder}`;
const holder = "nodes n1-holder {auto_assign: false}";
const done = (fields = "") => `${open(fields)}; task/claim $t other; task/complete $t other`;
/** A task of the type depends on another one. */
const dependent = (fields = "", first = "") =>
  `t = task/create {task_type: x-first, ${first}}; task/create {task_type: x, depends_on: [$t], ${fields}}`;
/** A task of the type waits behind one that another node holds. */
const limited = (fields = "", by?: string) =>
  `admin limit/set {key: x, running: 1}; ${held(fields, by)}; task/create {task_type: x}`;
/** The node itself holds a task, so that there is no room, or too little of a resource, for another one. */
const busy = (fields = "") =>
  `t = task/create {task_type: x-first, ${fields}}; task/claim $t n1; task/create {task_type: x, ${fields}}`;
const boss = "nodes n1-boss {auto_assign: false}";
const paused = (fields: string) =>
  `${boss}; admin hub/pause {${fields}}; t = task/create {task_type: x, creator_node: n1-boss, limit_key: x-key}`;
const poor = (scope: string) =>
  `${boss}; admin budget/set {${scope}, per: total, tokens: 0}; task/create {task_type: x, creator_node: n1-boss}`;
const scheduled = (seconds: number) =>
  `schedule/put {name: n1, every_s: ${seconds}, task: {title: t, description: d, task_type: x}}`;
const fails = "task/fail $t other";
const rejects = "task/review $t {verdict: reject}";
const reviewed = "review: creator, backoff_s: 0";
const gpu = "requires: {resources: {gpu: 1}}";
const withGpu = "resources: {gpu: 1}";
const full = "max_tasks: 1";

const GROUPS: Readonly<Record<string, readonly Row[]>> = {
  "a task": [
    ["", "task/create {task_type: x}"],
    ["", "batch {requests: [{path: task/create, body: {title: t, description: d, task_type: x}}]}"],
    ["", "task/create {task_type: x, for_node: n1}"],
    ["", open("quorum: {results: 2}")],
    [open("delay_s: 3"), later("4s")],
    [open("delay_s: 500"), "task/update $t {not_before: null}"],
    [held(), "task/release $t other"],
    [held("backoff_s: 0"), fails],
    [held("backoff_s: 3"), `${fails}; ${later("4s")}`],
    [held("timeout_s: 2, backoff_s: 0"), later("3s")],
    [held("max_run_s: 2, backoff_s: 0"), later("3s")],
    [held(), "admin task/revoke $t"],
    [held(), "admin task/revoke $t n1"],
    ["t = task/create {task_type: x-other}", "task/assign $t n1"],
    [`${holder}; ${held("", "n1-holder")}`, "node/leave n1-holder"],
    [`${holder}; ${held("", "n1-holder")}`, "admin node/delete n1-holder"],
    [`${open()}; task/cancel $t`, "task/retry $t"],
    [`${open("group: n1")}; task/cancel $t`, "group/retry {group: n1}"],
    [scheduled(9_999), "schedule/run {name: n1}"],
    [scheduled(3), later("4s")],
  ],
  "a dependency, a review or a question": [
    [dependent(), "task/claim $t other; task/complete $t other"],
    [dependent("on_dependency: run"), "task/cancel $t"],
    [dependent("on_dependency: run"), "admin task/delete $t"],
    [
      dependent("", "review: creator"),
      "task/claim $t other; task/complete $t other; task/review $t {verdict: pass}",
    ],
    [
      dependent(),
      `task/cancel $t; ${later("1s")}; task/retry $t {with_dependents: true}; task/claim $t other; task/complete $t other`,
    ],
    [done(reviewed), rejects],
    [done(`${reviewed}, review_within_s: 2, on_review_timeout: reject`), later("3s")],
    [
      't = task/create {task_type: x-first, review: "capability:x"}',
      "task/claim $t other; task/complete $t other",
    ],
    [held(), "q = task/ask $t other {park: true}; task/answer $t {question_id: $q, answer: a}"],
    [held(), `task/ask $t other {park: true, within_s: 2}; ${later("3s")}`],
  ],
  "a pause, a limit or a budget": [
    ...["type: x", "creator_node: n1-boss", "limit_key: x-key", ""].map((fields): Row => [
      paused(fields),
      `admin hub/resume {${fields}}`,
    ]),
    [paused("limit_key: x-key"), "task/update $t {limit_key: x-free}"],
    ...[
      "task/complete $t other",
      "task/cancel $t",
      "admin task/delete $t",
      "task/ask $t other {park: true}",
    ].map((ends): Row => [limited(), ends]),
    [limited("timeout_s: 2, max_attempts: 1"), later("3s")],
    [`${holder}; ${limited("", "n1-holder")}`, "node/leave n1-holder"],
    [limited(), "admin limit/set {key: x, running: 2}"],
    [limited(), "admin limit/delete {key: x}"],
    [`limit/hold {key: x, for_s: 3}; ${open()}`, later("4s")],
    [`limit/hold {key: x, for_s: 300}; ${open()}`, "admin limit/delete {key: x}"],
    [poor("scope: type, value: x"), "admin budget/set {scope: type, value: x, per: total, tokens: 1}"],
    ...["scope: type, value: x", "scope: creator, value: n1-boss", "scope: node, value: n1"].map(
      (scope): Row => [poor(scope), `admin budget/delete {${scope}, per: total}`],
    ),
  ],
  "a change of the node": [
    [busy(), "task/complete $t n1", full],
    [busy(), "task/cancel $t", full],
    [busy(), "nodes n1 {auto_assign: false, max_tasks: 5}", full],
    ...[
      "task/complete $t n1",
      "task/cancel $t",
      "admin task/delete $t",
      "task/ask $t n1 {park: true}",
      "nodes n1 {auto_assign: false, resources: {gpu: 2}}",
    ].map((act): Row => [busy(gpu), act, withGpu]),
    [busy(`${gpu}, priority: 2`), "admin task/revoke $t other", withGpu],
    [busy(`${gpu}, max_attempts: 1`), "task/fail $t n1", withGpu],
    [busy(`${gpu}, timeout_s: 2, max_attempts: 1`), later("3s"), withGpu],
    [open(), "nodes n1 {auto_assign: false, capabilities: [x]}", "capabilities: [another]"],
    [
      open("requires: {capabilities: [cuda]}"),
      "nodes n1 {auto_assign: false, capabilities: [x, cuda]}",
      "capabilities: [x]",
    ],
  ],
};

const linesOf = ([before, act, node = "capabilities: [x]"]: Row, at: number): string =>
  `nodes other {auto_assign: false, resources: {gpu: 9}}; nodes n1 {auto_assign: false, ${node}}; ${before};
  w = & task/next n1 {wait: 60${node.includes("capabilities") ? "" : ", task_types: [x]"}}; ${act}; $w -> task *`
    .replaceAll(/\bx\b/g, `x${at}`)
    .replaceAll(/\bn1\b/g, `node${at}`);

transcripts(`
${Object.entries(GROUPS)
  .map(([what, rows]) => `== ${what} wakes the blocked task/next\n${rows.map(linesOf).join("\n")}`)
  .join("\n\n")}
`);
