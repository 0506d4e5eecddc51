/** How much fits into a POST batch: the answers, the rows and the time of a hub; and that each POST is done in one. */
import { expect, spyOn, test } from "bun:test";
import { fileEndpoints } from "../../src/api/files.ts";
import { ENDPOINTS } from "../../src/api/routes.ts";
import { BATCH_TURN_MS } from "../../src/domain/limits.ts";
import { LARGE_REQUESTS } from "../../src/http/json-body.ts";
import { type CallOptions, type TestHub, startHub } from "../support/hub.ts";
import { play } from "../support/transcript.ts";
import { list, ok, record } from "./scene.ts";

type Fields = Readonly<Record<string, unknown>>;
type Request = { readonly path: string; readonly body: Fields; readonly ref?: string };

const task = (fields: Fields = {}): Request => ({
  path: "task/create",
  body: { title: "t", description: "d", ...fields },
});

/** The bodies of the answers before the first that is `batch_full`, as all after it are. */
async function done(
  hub: TestHub,
  requests: readonly Request[],
  options: CallOptions = {},
): Promise<readonly Fields[]> {
  const bodies = list(await ok(hub.post("/batch", { requests }, options)), "answers").map(({ body }) =>
    record(body),
  );
  const codes = bodies.map((body) => body["error"] ?? "ok");
  const count = codes.indexOf("batch_full");
  expect(count).toBeGreaterThan(1);
  expect(codes).toEqual(codes.map((_, i) => (i < count ? "ok" : "batch_full")));
  return bodies.slice(0, count);
}

test("requests after 2 MiB of answers are 503 and not done", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const ids = await hub.addTasks(15, { description: "y".repeat(60_000) });
  const [last = ""] = await hub.addTasks(1);
  const claims = [...Array.from({ length: 180 }, (_, i) => ids[i % 15]), last].map((task_id) => ({
    path: "task/claim",
    body: { task_id, node_id: "n1" },
  }));
  const bytes = (await done(hub, claims)).reduce((sum, body) => sum + JSON.stringify(body).length, 0);
  expect(bytes).toBeWithin(2 * 2 ** 20 - 10_000, 2 * 2 ** 20 + 70_000);
  expect(await hub.taskOf(last)).toMatchObject({ status: "open" });
});

test("requests after 6,000 rows are 503 and not done; what a request does counts, not what it sends", async () => {
  await using hub = await startHub();
  const before = await hub.addTasks(100);
  const made = await done(
    hub,
    Array.from({ length: 120 }, () => task({ depends_on: before })),
  );
  expect(made.length).toBeWithin(10, 100);
  for (const path of ["task/cancel", "task/retry"])
    await hub.inBatches(
      path,
      made.map(({ task_id }) => ({ task_id })),
    );
});

test("requests after 50 ms of decisions are 503 and not done; a graph is refused whole", async () => {
  await using hub = await startHub();
  hub.clock.workMs = 5;
  const requests = Array.from({ length: 40 }, () => task());
  const options = { headers: { "Idempotency-Key": "k" } };
  const made = await done(hub, requests, options);
  expect(await done(hub, requests, options)).toEqual(made);
  const graph = requests.map((request, i) => ({ ...request, ref: `r${i}` }));
  const refused = await hub.post("/batch", { requests: [...graph, task({ depends_on: [{ $ref: "r0" }] })] });
  expect(refused).toMatchObject({ status: 413, body: { error: "graph_too_large" } });
  expect((await ok(hub.get("/task/stats")))["total"]).toBe(made.length);
});

test("its requests are parsed in turns, between which others are served", async () => {
  await using hub = await startHub();
  const turns = spyOn(LARGE_REQUESTS, "next");
  hub.clock.workMs = BATCH_TURN_MS;
  try {
    const requests = Array.from({ length: 10 }, () => task());
    await done(hub, requests); // the decisions take as long, too
    expect(turns.mock.calls.length).toBeGreaterThanOrEqual(requests.length);
  } finally {
    turns.mockRestore();
  }
});

test("500 new tasks fit where the balancer deals them out, to the least busy first", async () => {
  await using hub = await startHub();
  const nodes = Array.from({ length: 20 }, (_, i) => `n${i}`);
  await hub.addNodes(nodes);
  const made = await hub.inBatches(
    "task/create",
    Array.from({ length: 500 }, () => task().body),
    "B",
  );
  for (let i = 0; i < made.length; i += nodes.length)
    expect(new Set(made.slice(i, i + nodes.length).map((body) => body["assigned_node"])).size).toBe(20);
  for (const nodeId of nodes) expect(await hub.nodeOf(nodeId)).toMatchObject({ tasks_assigned: 25 });
});

test("a node with 500 tasks leaves alone, because that takes several commits", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const claims = (await hub.addTasks(500)).map((task_id) => ({ task_id, node_id: "n1" }));
  await hub.inBatches("task/claim", claims);
  await play(
    hub,
    `batch
    + node/heartbeat n1
    + node/leave n1 -> 400 path
    node n1 -> {status: online, tasks_assigned: 500}
    node/leave n1 -> tasks_released 500`,
  );
});

test("numbers in a result keep all digits, and other numbers are rounded as in single requests", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const taskId = await hub.addTaskOf("n1");
  const exact = `"exact":12345678901234567890.12345678901234567890`;
  const result = `{"problem":"p","improvement":"i","lesson":"l",${exact}}`;
  const text = `{"requests":[
    {"path":"task/complete","body":{"task_id":"${taskId}","node_id":"n1","result":${result}}},
    {"path":"task/create","body":{"title":"t","description":"d","lux_reward":2.50000000000000000000}},
    {"path":"task/create","body":{"title":"t","description":"d","lux_reward":1e400}}]}`;
  const answers = list(await ok(hub.post("/batch", text)), "answers");
  expect(answers).toMatchObject([
    { status: 200 },
    { status: 200, body: { task: { lux_reward: 2.5 } } },
    { status: 400 },
  ]);
  const shown = await fetch(`${hub.base()}/api/v1/task/${taskId}`);
  expect(await shown.text()).toContain(exact);
});

/** Each POST, in an order in which it succeeds. */
const EACH = `
  + node/register n1 {name: n1}
  + node/heartbeat n1
  + node/drain n1 {drain: false}
  + task/create
  + task/claim $open n1
  + task/extend $open n1 {note: half, usage: [{seq: 1, model: m, input_tokens: 1, output_tokens: 1}]}
  + task/release $open n1
  + task/assign $open n1
  + task/revoke $open
  + task/claim $open n1
  + task/fail $open n1 {retry: false}
  + task/retry $open
  + task/update $open {title: new}
  + task/cancel $open
  + task/next n1
  + task/delete $open
  + task/output $held n1 {offset: 0, data: line}
  + task/ask $held n1
  + task/answer $held {question_id: $question, answer: 1}
  + task/complete $held n1
  + task/review $held {verdict: pass}
  + task/create {group: g}
  + group/cancel {group: g}
  + group/retry {group: g}
  + schedule/put {name: s, every_s: 60, task: {title: t, description: d}}
  + schedule/run {name: s}
  + schedule/delete {name: s}
  + webhook/resume {name: w}
  + webhook/delete {name: w}
  + note/put {key: k, text: x}
  + note/delete {key: k}
  + lease/acquire n1 {name: a}
  + lease/renew n1 {name: a}
  + lease/release n1 {name: a}
  + usage/void n1
  + budget/set {scope: hub, per: day, tokens: 1}
  + budget/delete {scope: hub, per: day}
  + hub/pause {type: none}
  + hub/resume {type: none}
  + limit/set {key: k, running: 1}
  + limit/hold {key: k, for_s: 1}
  + limit/delete {key: k}
  + message/send op n1
  + agent/message op n1
  + message/receive n1
  + message/ack n1 {message_id: $message}
  + agent/ack n1 {message_id: $message}
  + message/redrive n1 {message_id: $parked}
  + signin n1
  + file/delete {file_id: $file}
  + key/revoke {name: spare}
  + node/leave n1
  + node/delete n1`;

/** They are refused in a batch, whatever the body. */
const NEVER =
  `batch message/broadcast agent/broadcast task/batch-assign file/download-url file/upload file/upload-url
  key/add webhook/put webhook/test task/answer-by-token`.split(/\s+/);

test("every POST is done in a batch, or refused there", async () => {
  const posts = [...ENDPOINTS, ...fileEndpoints(1)].filter(({ method }) => method === "POST");
  const known = [...EACH.matchAll(/\+ (\S+)/g)].map(([, path = ""]) => path);
  const paths = posts.map(({ path }) => path.replace("/api/v1/", ""));
  expect(paths.toSorted()).toEqual([...new Set([...known, ...NEVER])].toSorted());
  await using hub = await startHub();
  const redelivered = "message/receive n1 -> messages #1\npass 31s n1\n";
  await play(
    hub,
    `nodes n1
    admin key/add {name: spare}
    admin webhook/put {name: w, url: "https://receiver.test/"}
    file = upload a.txt
    open = task/create
    held = task/create {review: creator}
    task/assign $held n1
    parked = message/send op n1 {require_ack: true}
    ${`until ${redelivered}`.repeat(6)}
    message = message/send op n1 {require_ack: true}
    message/receive n1
    question = task/ask $held n1
    admin batch
    ${EACH}
    admin batch
    ${NEVER.map((path) => `+ ${path} {} -> 400 path`).join("\n")}`,
  );
  expect(hub.logged.filter((line) => line.includes("after its commit"))).toEqual([]);
});
