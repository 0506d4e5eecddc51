/**
 * The two variants on one store: both have every endpoint, and differ only as docs/api.md says. A difference that is not
 * tested here is a defect. openapi.test.ts calls every endpoint of both, and compares the answers with those recorded.
 */
import { expect, test } from "bun:test";
import recorded from "../../tools/recorded/openapi-examples.json" with { type: "json" };
import { startHub } from "../support/hub.ts";
import { play, transcripts } from "../support/transcript.ts";
import { ok } from "./scene.ts";

/** The names of all fields, inner ones too: `.task.title`, `.tasks.#.title`. */
function namesIn(value: unknown, path = ""): readonly string[] {
  if (typeof value !== "object" || value === null || path.endsWith(".capabilities")) return [path];
  return Object.entries(value).flatMap(([name, inner]) =>
    namesIn(inner, `${path}.${Array.isArray(value) ? "#" : name}`),
  );
}

test("every endpoint answers the same fields on both, except the words of a status, and batch-assign", () => {
  const without: Readonly<Record<string, RegExp>> = {
    task_stats: /^\.by_status/,
    group_get: /^\.by_status/,
    group_list: /^\.groups\.#\.by_status/,
    node_list: /^\.tasks/, // no node of B has a task at that moment
    task_batch_assign: /./,
  };
  const fieldsOf = (examples: Readonly<Record<string, { readonly answer?: unknown }>>): unknown =>
    Object.entries(examples).map(([id, { answer }]) => [
      id,
      [...new Set(namesIn(answer))].filter((name) => !without[id]?.test(name)).toSorted(),
    ]);
  expect(fieldsOf(recorded.A)).toEqual(fieldsOf(recorded.B));
});

test("B accepts a batch-assign with no body, an empty one and an empty object", async () => {
  await using hub = await startHub();
  for (const body of [undefined, "", "{}"]) {
    const answer = await ok(hub.post("/task/batch-assign", body, { variant: "B" }));
    expect(answer).toEqual({ success: true, assigned: 0, pending: 0, assignments: [] });
  }
  await play(hub, "task/batch-assign -> 400 assignments");
});

const PRIORITIES = [
  ["0", 0, "high"],
  ["1", 1, "medium"],
  ["2", 2, "low"],
  ["high", 0, "high"],
  ["medium", 1, "medium"],
  ["low", 2, "low"],
  ["p0", 0, "high"],
  ["p1", 1, "medium"],
  ["p2", 2, "low"],
  ["p5", 2, "p5"],
  ["P0", 0, "high"],
  ["High", 0, "high"],
  ["LOW", 2, "low"],
  ["null", 1, "medium"],
] as const;

const CAPABILITIES = [
  ['"x,y"', "x,y"],
  ['" x , y "', "x,y"],
  ['""', ""],
  ['","', ""],
  ["x", "x"],
  ["[x, y]", "x,y"],
  ["[]", ""],
  ["null", ""],
] as const;

const creates = (count: number): string =>
  `batch {requests: [${"{path: task/create, body: {title: t, description: d}}, ".repeat(count)}]}`;
/** Tasks that are created and completed in one batch of B. */
const finished = (count: number): string =>
  `B batch {requests: [${Array.from(
    { length: count },
    (_, i) =>
      `{ref: t${i}, path: task/create, body: {title: t, description: d}}, {path: task/complete, body: {task_id: {$ref: t${i}}, node_id: n1, result: {problem: p, improvement: i, lesson: l}}}`,
  ).join()}]}`;

transcripts(`
-- a task is the same on both, except the words of status and priority
  nodes n1
  t = task/create {title: Title, task_type: coding, creator_node: boss, priority: 0, lux_reward: 1.25}
  task/assign $t n1
  <|B >task $t -> {task_id: $t, title: Title, task_type: coding, creator_node: boss, lux_reward: 1.25, assigned_node: n1};
  -> {result: null, attempts: 0, files: [], status: <assigned|pending>, priority: <0|high>}

-- a node is the same on both, except the form of capabilities
  nodes n1 {host: 10.0.0.1, port: 8080, capabilities: [x, y]}
  <|B >node n1 -> {host: 10.0.0.1, port: 8080, capabilities: <"x,y"|[x, y]>}

== a change through one listener is visible on the other
  B nodes n1
  t = B task/create {lux_reward: 3}
  task $t -> {status: assigned, lux_reward: 3}
  task/complete $t n1 -> {status: completed, lux_paid: 3, receipt: {amount: 3}, task_id: $t}
  B task $t -> {status: completed, result: {lesson: *}}

-- each variant has a version
  <|B >GET status -> {status: ok, version: <"1.5"|"1.0">, variant: <A|B>}

-- a hub may listen for one variant only {variants: [B]}
  B GET status -> variant B

-- each variant encodes the three stored states, and its statistics count in its words, those with none too
  nodes n1
  t = task/create
  task/create
  <|B >task $t -> {status: <open|pending>, assigned_node: null}
  <|B >task/claim $t n1 -> {status: <assigned|pending>, assigned_node: n1, task: {status: <assigned|pending>}}
  <|B >GET task/stats -> {total: 2, top_nodes: [], by_status: <{open: 1, assigned: 1, completed: 0, failed: 0}|{pending: 2, open: absent, completed: 0, failed: 0}>}
  <|B >task/complete $t n1 -> status completed
  <|B >task $t -> {status: completed, assigned_node: n1}

== the list of either filters by the words of both variants
  nodes n1
  open, assigned, completed = task/create
  task/claim $<assigned|completed> n1
  task/complete $completed n1
  <|B >GET task/list?status=<open|assigned|pending|completed|Open> -> tasks.task_id [<$open|$assigned|$assigned, $open|$completed|$open>]
  <|B >GET task/list?status=done -> 400 status
  <|B >GET task/list?status= -> tasks.task_id [<$completed, $assigned, $open|$assigned, $open, $completed>]

-- a priority in any form, each variant answers in its own form
  ${PRIORITIES.map(
    ([given, onA, onB]) => `t = <|B >task/create {priority: ${given}} -> task.priority <${onA}|${onB}>;
    task $t -> priority ${onA}; B task $t -> priority ${onB}`,
  ).join("\n")}
  <|B >task/create {priority: <3|5|-1|1.5|"1"|"0"|HIGHER|urgent|p3|""|true|[1]|{}>} -> 400 priority

-- capabilities in any form, each variant answers in its own form
  ${CAPABILITIES.map(
    ([
      given,
      words,
    ]) => `<|B >node/register n1 {name: n, capabilities: ${given}} -> node.capabilities <"${words}"|[${words}]>;
    node n1 -> capabilities "${words}"; B node n1 -> capabilities [${words}];
    GET node/list -> nodes.capabilities ["${words}"]; B GET node/list -> nodes.capabilities [[${words}]]`,
  ).join("\n")}
  <|B >node/register n1 {name: n, capabilities: <5|true|{}>} -> 400 capabilities
  <|B >node/register n1 {name: n, capabilities: [x, 5, y, null]} -> 400 capabilities.1 capabilities.3

-- what the hub answers can be sent back to it, to either variant as either shows it
  nodes n1 {port: 0, capabilities: "x,y", max_tasks: 2}
  nodes bare {auto_assign: false}
  a = GET node/<n1|bare>; b = B GET node/<n1|bare>; batch {requests: [
    {path: node/register, body: $a.node}, {path: node/register, body: $b.node}]} -> answers.status [200, 200];
  B batch {requests: [{path: node/register, body: $a.node}, {path: node/register, body: $b.node}]} -> answers.status [200, 200];
  node <n1|bare> -> {name: $a.node.name, port: $a.node.port, capabilities: $a.node.capabilities};
  -> {max_tasks: $a.node.max_tasks, auto_assign: $a.node.auto_assign, registered_at: $a.node.registered_at}
  t = task/create <{}|{task_type: x, creator_node: boss, priority: 2, lux_reward: 0.1}>;
  a = GET task/$t; b = B GET task/$t;
  batch {requests: [{path: task/create, body: $a.task}, {path: task/create, body: $b.task}]} -> answers.status [200, 200];
  B batch {requests: [{path: task/create, body: $a.task}, {path: task/create, body: $b.task}]} -> answers.status [200, 200];
  -> answers.body.task.title [t, t]; -> answers.body.task.description [d, d];
  -> answers.body.task.task_type [$a.task.task_type, $a.task.task_type];
  -> answers.body.task.creator_node [$a.task.creator_node, $a.task.creator_node];
  -> answers.body.task.lux_reward [$a.task.lux_reward, $a.task.lux_reward]
  message/send {from_node: op, to_node: n1, content: hi}
  <a|b> = <|B >GET message/history?node_id=n1
  <|B >batch {requests: [{path: message/send, body: $a.messages.0}, {path: message/send, body: $b.messages.0}]} -> answers.status [200, 200]
  <|B >GET task/list?status=&node_id=&page=&per_page= -> total 10
  <|B >message/receive n1 {count: null, blocking: null, timeout: null} -> count <5|0>

-- words are read in any case
  nodes n1
  <|B >message/send {from_node: n1, to_node: n1, content: x, type: TASK}
  <|B >message/broadcast {from_node: op, content: x, type: Alert}
  <|B >GET message/history?node_id=n1 -> messages.type [alert, alert, task, task]
  <|B >GET events?since=0&kind=Node.Online -> events #1

-- A has 20 items a page by default, and up to 50
  ${creates(55)}
  GET task/list -> {tasks: #20, page: 1, per_page: 20, total: 55, pages: 3}
  GET task/list?page=<3|4> -> {tasks: #<15|0>, page: <3|4>, per_page: 20, total: 55, pages: 3}
  GET task/list?per_page=1 -> {tasks: #1, per_page: 1, pages: 55}
  GET task/list?per_page=<50|51|100|1000000|99999999999999999999> -> {tasks: #50, per_page: 50, pages: 2}
  GET task/list?per_page=50&page=2 -> {tasks: #5, page: 2}

-- B has one page of 500 without paging fields, and pages like A with them
  ${creates(400)}
  ${creates(102)}
  B GET task/list -> {tasks: #500, page: 1, per_page: 500, total: 502, pages: 2}
  B GET task/list?status=pending -> {tasks: #500, per_page: 500, total: 502}
  B GET task/list?per_page=<50|400> -> {tasks: #50, per_page: 50, pages: 11}
  B GET task/list?page=2 -> {tasks: #20, page: 2, per_page: 20, pages: 26}

-- B without paging fields lists unfinished tasks first, however many are finished
  nodes n1
  old, held = task/create
  task/claim $held n1
  ${finished(250)}
  ${finished(250)}
  open = task/create
  new = B GET task/list?page=1&per_page=3
  all = B GET task/list -> {tasks: #500, page: 1, per_page: 500, total: 503, pages: 2}
  -> tasks.0.task_id $open; -> tasks.1.task_id $held; -> tasks.2.task_id $old; -> tasks.3.task_id $new.tasks.1.task_id
  mine = B GET task/list?node_id=n1 -> tasks.0.task_id $held; -> tasks.1.task_id $new.tasks.1.task_id
  B GET task/list?status=pending -> tasks.task_id [$open, $held, $old]
  B GET task/list?status=completed -> tasks.0.task_id $new.tasks.1.task_id
  B GET task/list?node_id=ghost -> tasks []
  GET task/list -> tasks.0.task_id $open; -> tasks.1.task_id $new.tasks.1.task_id

-- both refuse a page out of range
  <|B >GET task/list?page=<0|-1|1.5|x|1e3> -> 400 page
  <|B >GET task/list?per_page=<0|-1|1.5|x|1e3> -> 400 per_page
  <|B >GET task/list?page=0&per_page=x&status=x -> 400 page per_page status

-- create on B assigns a task to an available node at once, A leaves it open
  B nodes n1
  task/create -> {status: open, assigned_node: null, task: {assigned_node: null}}
  t = B task/create -> {status: pending, assigned_node: n1, task: {assigned_node: n1}}
  task $t -> status assigned
  nodes n1 {capabilities: [other]}
  <|B >task/create {task_type: this, assigned_node: <n1|nobody|5|null|{a: 1}>} -> assigned_node null

-- batch-assign on A requires assignments, B ignores them
  nodes n1
  t = task/create
  task/batch-assign -> 400 assignments
  B task/batch-assign {assignments: "all of them"} -> {assigned: 1, pending: 0, ignored: [assignments]}
  -> assignments [{task_id: $t, node_id: n1}]

-- complete of an open task: A requires a claim first, and B claims it for the registered node in the same step
  nodes n1 n2
  t = task/create {lux_reward: 7}
  task/complete $t n1 -> 409 task_not_assigned
  B task/complete $t ghost -> 404 node_not_found
  task $t -> {status: open, result: null}
  B task/complete $t n1 -> {status: completed, lux_paid: 7, receipt: {amount: 7}, task_id: $t}
  task $t -> {status: completed, assigned_node: n1}
  node n1 -> {tasks_assigned: 0, tasks_completed: 1, lux_balance: 7}
  t = task/create
  task/claim $t n1
  <|B >task/complete $t n2 -> 403 not_assigned_to_node

-- the interval of heartbeats is that of the variant in which the node registered last
  <|B >node/register n1 {name: n} -> {heartbeat_interval: <60|30>, offline_after: <180|90>};
  node/heartbeat n1 -> heartbeat_interval <60|30>; B node/heartbeat n1 -> heartbeat_interval <60|30>

-- A needs no secret where the specification says Public; B always does
  nodes n1
  anon GET <node/list|node/n1|task/list|task/stats|file/list|status>
  anon B GET <node/list|node/n1|task/list|task/stats|file/list|status> -> 401 unauthorized
`);
