/**
 * POST batch: requests run in order and in one transaction, each answered as if sent alone. test/e2e/crash.test.ts
 * tests a kill in the middle.
 */
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { rmSync } from "node:fs";
import { fileEndpoints } from "../../src/api/files.ts";
import { ENDPOINTS } from "../../src/api/routes.ts";
import { BATCH_TURN_MS } from "../../src/domain/limits.ts";
import { LARGE_REQUESTS } from "../../src/http/json-body.ts";
import {
  ADMIN_KEY,
  type Answer,
  type CallOptions,
  type TestHub,
  newDataDir,
  onlyOnce,
  startHub,
} from "../support/hub.ts";
import { addKey, as } from "./key-commands.ts";
import { NO_ID, RESULT, badFields, list, ok, pick, record, until } from "./scene.ts";

const once = onlyOnce(import.meta.url);

type Fields = Readonly<Record<string, unknown>>;
type Asked = readonly [path: string, body: Fields];
type Item = { readonly status: number; readonly body: Record<string, unknown> };

const keyed = (key: string, more: CallOptions = {}): CallOptions => ({
  ...more,
  headers: { "Idempotency-Key": key, ...more.headers },
});

function post(hub: TestHub, asked: readonly Asked[], options: CallOptions = {}): Promise<Answer> {
  return hub.post("/batch", { requests: asked.map(([path, body]) => ({ path, body })) }, options);
}

function items(body: Answer["body"]): readonly Item[] {
  return list(body, "answers").map((one) => ({ status: Number(one["status"]), body: record(one["body"]) }));
}

async function batch(hub: TestHub, asked: readonly Asked[], options: CallOptions = {}) {
  return items(await ok(post(hub, asked, options)));
}

/** Each answer in short: "ok", or the code of its problem. */
function shortly(answers: readonly Item[]): readonly unknown[] {
  return answers.map(({ status, body }) => {
    expect(body["success"]).toBe(status === 200);
    if (status !== 200) expect(body["status"]).toBe(status);
    return status === 200 ? "ok" : body["error"];
  });
}

const CREATE: Asked = ["task/create", { title: "t", description: "d" }];
const claim = (taskId: string, nodeId = "n1"): Asked => ["task/claim", { task_id: taskId, node_id: nodeId }];
const finish = (taskId: string, nodeId = "n1", more: Fields = {}): Asked => [
  "task/complete",
  { task_id: taskId, node_id: nodeId, result: { ...RESULT, ...more } },
];
const beat = (nodeId: string): Asked => ["node/heartbeat", { node_id: nodeId }];
const take = (nodeId: string, more: Fields = {}): Asked => ["message/receive", { node_id: nodeId, ...more }];
const letter = (to: string, content = "hello"): Asked => [
  "message/send",
  { from_node: "op", to_node: to, content },
];

describe("a batch", () => {
  let hub: TestHub;
  beforeAll(async () => {
    hub = await startHub();
    // They do not take tasks of every type.
    for (const nodeId of ["n1", "n2", "n3"]) await hub.addNode(nodeId, { capabilities: ["usual"] });
  });
  afterAll(() => hub.close());

  test("answers in order, as if each request were sent alone; a refusal does not stop the others", async () => {
    const taskId = await hub.addTask({ lux_reward: 2 });
    const answers = await batch(hub, [
      finish(taskId),
      claim(taskId),
      claim(taskId, "n2"),
      finish(taskId, "n2"),
      finish(taskId),
      finish(taskId),
      finish(taskId, "n1", { lesson: "another" }),
      claim(NO_ID),
      ["task/claim", { task_id: taskId }],
      beat("nobody"),
    ]);
    expect(shortly(answers)).toEqual([
      "task_not_assigned",
      "ok",
      "task_not_open",
      "not_assigned_to_node",
      "ok",
      "ok",
      "task_completed",
      "task_not_found",
      "invalid_request",
      "node_not_found",
    ]);
    expect(answers[1]?.body).toMatchObject({ task_id: taskId, assigned_node: "n1", task: { title: "t" } });
    const receipt = expect.objectContaining({ amount: 2 });
    const paid = { success: true, status: "completed", lux_paid: 2, receipt, task_id: taskId };
    expect(answers[4]?.body).toEqual(paid);
    expect(list(answers[8]?.body ?? {}, "errors")).toMatchObject([{ path: "node_id" }]);
    expect(await hub.eventKinds(taskId)).toEqual([
      "task.created",
      "task.assigned",
      "task.completed",
      "lux.paid",
    ]);
    const alone = await hub.post("/task/claim", { task_id: taskId, node_id: "n2" });
    expect(items({ answers: [{ status: alone.status, body: alone.body }] })).toEqual(
      await batch(hub, [claim(taskId, "n2")]),
    );
  });

  test("each request sees the changes of those before it", async () => {
    const answers = await batch(hub, [
      letter("n1", "first"),
      letter("n1", "second"),
      beat("n1"),
      take("n1", { count: 1 }),
      take("n1"),
      take("n1"),
      beat("n1"),
    ]);
    expect(shortly(answers)).toEqual(answers.map(() => "ok"));
    expect(answers[2]?.body).toMatchObject({ messages_waiting: 2 });
    expect(answers.slice(3, 6).map(({ body }) => pick(body, "messages", "content"))).toEqual([
      ["first"],
      ["second"],
      [],
    ]);
    expect(answers[6]?.body).toMatchObject({ messages_waiting: 0 });
    expect(await hub.receive("n1")).toEqual([]);
  });

  test("sees the requests before it even where a handler reads ahead of its transaction", async () => {
    const [gone, kept] = [await hub.addTask(), await hub.addTask()];
    const answers = await batch(
      hub,
      [
        ["task/delete", { task_id: gone }],
        ["task/create", { title: "t", description: "d", depends_on: [kept, gone] }],
        ["task/create", { title: "t", description: "d", depends_on: [kept] }],
        ["node/leave", { node_id: "n3" }],
        beat("n3"),
        ["node/register", { node_id: "n5", name: "new" }],
        claim(kept, "n5"),
        ["task/release", { task_id: kept, node_id: "n5" }],
        ["node/leave", { node_id: "n5" }],
        ["node/leave", { node_id: "nobody" }],
      ],
      { headers: { "X-Admin-Key": ADMIN_KEY } },
    );
    expect(shortly(answers)).toEqual([
      "ok",
      "invalid_request",
      "ok",
      "ok",
      "ok",
      "ok",
      "ok",
      "ok",
      "ok",
      "node_not_found",
    ]);
    expect(list(answers[1]?.body ?? {}, "errors")).toMatchObject([{ path: "depends_on.1" }]);
    expect(answers[8]?.body).toMatchObject({ tasks_released: 0 });
    expect(await hub.nodeOf("n3")).toMatchObject({ status: "online" });
    expect(await hub.nodeOf("n5")).toMatchObject({ status: "offline" });
  });

  test("the balancer gives a task that the batch handed out and revoked to another node", async () => {
    for (const nodeId of ["b1", "b2"]) await hub.addNode(nodeId, { capabilities: "rare" }, "B");
    await ok(hub.post("/node/drain", { node_id: "b1", drain: true }));
    await ok(hub.post("/node/drain", { node_id: "b2", drain: true }));
    const taskId = await hub.addTask({ task_type: "rare" }, "B");
    const [, , , revoked] = await batch(
      hub,
      [
        ["node/drain", { node_id: "b1", drain: false }],
        claim(taskId, "b1"),
        ["node/register", { node_id: "b3", name: "b3", capabilities: ["rare"], auto_assign: true }],
        ["task/revoke", { task_id: taskId }],
      ],
      { headers: { "X-Admin-Key": ADMIN_KEY } },
    );
    expect(revoked?.body).toMatchObject({ assigned_node: "b3" });
  });

  once.test("accepts 500 requests, and refuses 501", async () => {
    const before = Number((await ok(hub.get("/task/stats")))["total"]);
    const answers = await batch(
      hub,
      Array.from({ length: 500 }, () => CREATE),
    );
    expect(new Set(answers.map(({ body }) => body["task_id"])).size).toBe(500);
    expect((await ok(hub.get("/task/stats")))["total"]).toBe(before + 500);
    await badFields(
      post(
        hub,
        Array.from({ length: 501 }, () => CREATE),
      ),
      ["requests"],
    );
    await badFields(post(hub, []), ["requests"]);
  });

  once.test("an element that is not a request refuses the whole batch, and is named", async () => {
    const before = await hub.eventKinds();
    const good = { path: "task/create", body: CREATE[1] };
    const bad = [
      null,
      5,
      "task/create",
      [],
      {},
      { path: "signin" },
      { path: 5, body: {} },
      { path: "x", body: [] },
    ];
    for (const one of [...bad, { path: "x", body: null }, { body: {} }]) {
      await badFields(hub.post("/batch", { requests: [good, one, good] }), ["requests.1"]);
    }
    await badFields(
      hub.post("/batch", { requests: bad }),
      bad.map((_, i) => `requests.${i}`),
    );
    await badFields(hub.post("/batch", { requests: good }), ["requests"]);
    await badFields(hub.post("/batch", {}), ["requests"]);
    expect(await hub.eventKinds()).toEqual(before);
  });

  once.test(
    "a path that is unknown, waits or is written in several commits is 400 for that request alone",
    async () => {
      const refused = [
        ["batch", { requests: [{ path: "signin", body: { node_id: "n1" } }] }],
        ["message/broadcast", { from_node: "op", content: "c" }],
        ["agent/broadcast", {}],
        ["task/batch-assign", {}],
        ["message/receive", { node_id: "n1", blocking: true }],
        ["message/receive", { node_id: "n1", blocking: true, timeout: 1 }],
        ["task/next", { node_id: "n1", wait: 1 }],
        ["file/upload", {}],
        ["task/list", {}],
        ["", {}],
        ["/task/create", CREATE[1]],
        ["/api/v1/task/create", CREATE[1]],
        ["task/create?x=1", CREATE[1]],
        ["../v1/task/create", CREATE[1]],
        ["__proto__", {}],
      ] as const satisfies readonly Asked[];
      const taken: readonly Asked[] = [
        ["message/receive", { node_id: "n1", blocking: true, timeout: 0 }],
        ["message/receive", { node_id: "n1", timeout: 300 }],
      ];
      const answers = await batch(hub, [...refused, ...taken, CREATE]);
      expect(shortly(answers)).toEqual([...refused.map(() => "invalid_request"), "ok", "ok", "ok"]);
      for (const { body } of answers.slice(0, refused.length))
        expect(list(body, "errors")).toMatchObject([{ path: "path" }]);
    },
  );

  once.test(
    "numbers in a result keep all digits, and other numbers are rounded as in single requests",
    async () => {
      const taskId = await hub.addTaskOf("n1");
      const result = `{"problem":"p","improvement":"i","lesson":"l","exact":12345678901234567890.12345678901234567890}`;
      const text = `{"requests":[
      {"path":"task/complete","body":{"task_id":"${taskId}","node_id":"n1","result":${result}}},
      {"path":"task/create","body":{"title":"t","description":"d","lux_reward":2.50000000000000000000}},
      {"path":"task/create","body":{"title":"t","description":"d","lux_reward":1e400}}]}`;
      const answers = items(await ok(hub.post("/batch", text)));
      expect(shortly(answers)).toEqual(["ok", "ok", "invalid_request"]);
      expect(answers[1]?.body["task"]).toMatchObject({ lux_reward: 2.5 });
      const shown = await fetch(`${hub.base()}/api/v1/task/${taskId}`);
      expect(await shown.text()).toContain(`"exact":12345678901234567890.12345678901234567890`);
    },
  );

  once.test("null means a field left out, and a receive takes the messages that fit", async () => {
    const content = "x".repeat(200_000);
    for (let i = 0; i < 3; i++) await hub.send("op", "n2", { content });
    const answers = await batch(hub, [take("n2", { count: null, blocking: null }), take("n2"), take("n2")]);
    expect(answers.map(({ body }) => body["count"])).toEqual([2, 1, 0]);
  });

  once.test("requests after 2 MiB of answers are 503 and not done", async () => {
    const description = "y".repeat(60_000);
    const ids: string[] = [];
    for (let i = 0; i < 15; i++) ids.push(await hub.addTask({ description }));
    const asked = Array.from({ length: 180 }, (_, i) => claim(ids[i % 15] ?? ""));
    const last = await hub.addTask();
    const answers = await batch(hub, [...asked, claim(last)]);
    const done = answers.findIndex(({ status }) => status === 503);
    expect(done).toBeGreaterThan(30);
    expect(new Set(shortly(answers.slice(0, done)))).toEqual(new Set(["ok"]));
    expect(new Set(shortly(answers.slice(done)))).toEqual(new Set(["batch_full"]));
    const bytes = answers.slice(0, done).reduce((sum, { body }) => sum + JSON.stringify(body).length, 0);
    expect(bytes).toBeGreaterThan(2 * 2 ** 20 - 10_000);
    expect(bytes).toBeLessThan(2 * 2 ** 20 + 70_000);
    expect(record((await ok(hub.get(`/task/${last}`)))["task"])).toMatchObject({ status: "open" });
  });

  once.test(
    "requests after 6,000 rows are 503 and not done, and the rest runs in another batch",
    async () => {
      const before: string[] = [];
      for (let i = 0; i < 100; i++) before.push(await hub.addTask());
      const asked = Array.from({ length: 120 }, (): Asked => [
        "task/create",
        { title: "t", description: "d", depends_on: before },
      ]);
      const answers = await batch(hub, asked);
      const done = answers.findIndex(({ status }) => status === 503);
      expect(done).toBeGreaterThan(10);
      expect(done).toBeLessThan(100);
      expect(new Set(shortly(answers.slice(0, done)))).toEqual(new Set(["ok"]));
      expect(new Set(shortly(answers.slice(done)))).toEqual(new Set(["batch_full"]));
      const ids = answers.slice(0, done).map(({ body }) => String(body["task_id"]));
      const undone = (path: string): readonly Asked[] => ids.map((id) => [path, { task_id: id }]);
      // Not what a request sends counts, but what it does: to cancel a task costs as many rows as it waits for.
      expect(shortly(await batch(hub, undone("task/cancel")))).not.toContain("batch_full");
      expect(shortly(await batch(hub, undone("task/retry")))).not.toContain("batch_full");
    },
  );

  test("requests after 50 ms of decisions are 503 and not done", async () => {
    await using hub = await startHub();
    hub.clock.workMs = 5;
    const asked = Array.from({ length: 40 }, (): Asked => ["task/create", { title: "t", description: "d" }]);
    const answers = await batch(hub, asked, keyed("k"));
    const done = answers.findIndex(({ status }) => status === 503);
    expect(done).toBeGreaterThan(1);
    expect(new Set(shortly(answers.slice(0, done)))).toEqual(new Set(["ok"]));
    expect(new Set(shortly(answers.slice(done)))).toEqual(new Set(["batch_full"]));
    expect(await batch(hub, asked, keyed("k"))).toEqual([...answers]);
    expect((await ok(hub.get("/task/stats")))["total"]).toBe(done);
    const graph = asked.map(([path, body], i) => ({ path, body, ref: `r${i}` }));
    const last = {
      path: "task/create",
      body: { title: "t", description: "d", depends_on: [{ $ref: "r0" }] },
    };
    const refused = await hub.post("/batch", { requests: [...graph, last] });
    expect(refused).toMatchObject({ status: 413, body: { error: "graph_too_large" } });
    expect((await ok(hub.get("/task/stats")))["total"]).toBe(done);
  });

  once.test("each answer is in the variant of the request", async () => {
    const taskId = await hub.addTaskOf("n1", { priority: "low" });
    const asked: readonly Asked[] = [
      claim(taskId),
      ["task/create", { title: "t", description: "d", priority: "p5", task_type: "nobody's" }],
    ];
    const [a, b] = [await batch(hub, asked), await batch(hub, asked, { variant: "B" })];
    expect([a, b].map((one) => one[0]?.body["status"])).toEqual(["assigned", "pending"]);
    expect([a, b].map((one) => record(one[1]?.body["task"])["priority"])).toEqual([2, "p5"]);
  });

  once.test("the headers of the batch hold for each request: the administrator key", async () => {
    const taskId = await hub.addTaskOf("n1");
    const asked: readonly Asked[] = [["task/delete", { task_id: taskId }], ["task/delete", {}], CREATE];
    const refused = ["admin_key_required", "admin_key_required", "ok"];
    expect(shortly(await batch(hub, asked))).toEqual(refused);
    expect(shortly(await batch(hub, asked, { headers: { "X-Admin-Key": "wrong" } }))).toEqual(refused);
    expect(shortly(await batch(hub, asked, { headers: { "X-Admin-Key": ADMIN_KEY } }))).toEqual([
      "ok",
      "invalid_request",
      "ok",
    ]);
    expect((await post(hub, asked, { headers: { "X-Matrix-Secret": null } })).status).toBe(401);
  });

  once.test("a key that is bound to a node acts for it alone", async () => {
    const secret = await addKey(hub, "of-n1", { node_id: "n1" });
    const taskId = await hub.addTask();
    const answers = await batch(hub, [claim(taskId, "n2"), claim(taskId), CREATE], as(secret));
    expect(shortly(answers)).toEqual(["key_bound_to_other_node", "ok", "ok"]);
    expect(answers[2]?.body["task"]).toMatchObject({ creator_node: "n1" });
  });

  test("wakes a blocked receive and a waiting task", async () => {
    const taskId = await hub.addTask();
    const received = hub.post("/message/receive", { node_id: "n1", blocking: true, timeout: 300 });
    const ended = hub.get(`/task/${taskId}?wait=300`);
    await batch(hub, [letter("n1", "wake up"), claim(taskId), finish(taskId)]);
    expect(pick(await ok(received), "messages", "content")).toEqual(["wake up"]);
    expect((await ok(ended))["task"]).toMatchObject({ status: "completed" });
  });

  test("after the commit dependents are settled and the balancer fills the room", async () => {
    await hub.addNode("m1", { max_tasks: 1, capabilities: ["m"] }, "B");
    const first = await hub.addTask({ task_type: "m" }, "B");
    const second = await hub.addTask({ task_type: "m" }, "B");
    const dependent = await hub.addTask({ depends_on: [first], task_type: "none" });
    expect(await hub.taskOf(second)).toMatchObject({ status: "open" });
    await batch(hub, [finish(first, "m1")]);
    expect(await hub.taskOf(second)).toMatchObject({ status: "assigned", assigned_node: "m1" });
    expect(await hub.taskOf(dependent)).toMatchObject({ ready: true });
  });

  test("is replayed as a whole for its Idempotency-Key, even if every request in it was refused", async () => {
    const taskId = await hub.addTask();
    const asked = [CREATE, claim(taskId), claim(taskId, "n2")];
    const first = await post(hub, asked, keyed("b1"));
    const again = await post(hub, asked, keyed("b1"));
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.body).toEqual(first.body);
    expect((await post(hub, [CREATE], keyed("b1"))).status).toBe(422);
    const [refused, then] = [await post(hub, [claim(taskId, "n2")], keyed("b2")), finish(taskId)];
    await batch(hub, [then]);
    expect((await post(hub, [claim(taskId, "n2")], keyed("b2"))).body).toEqual(refused.body);
    const both = await Promise.all([1, 2, 3].map(() => post(hub, [CREATE, CREATE], keyed("b3"))));
    expect(new Set(both.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  });

  test("of simultaneous batches that claim the same tasks, each task goes to one", async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, () => hub.addTask()));
    const answers = await Promise.all(
      ["n1", "n2", "n3"].map((nodeId) =>
        batch(
          hub,
          ids.map((taskId) => claim(taskId, nodeId)),
        ),
      ),
    );
    for (const [i] of ids.entries()) expect(answers.filter((one) => one[i]?.status === 200)).toHaveLength(1);
    expect(answers.filter((one) => one.every(({ status }) => status === 200))).toHaveLength(1);
  });
});

test("heartbeats of nodes that were offline, in one batch", async () => {
  await using hub = await startHub();
  const nodes = Array.from({ length: 40 }, (_, i) => `n${i}`);
  await batch(
    hub,
    nodes.map((nodeId): Asked => ["node/register", { node_id: nodeId, name: nodeId }]),
  );
  await batch(
    hub,
    nodes.map((nodeId): Asked => ["node/leave", { node_id: nodeId }]),
  );
  await batch(hub, [letter("n0"), letter("n1")]);
  const answers = await batch(hub, [letter("n1"), ...nodes.map(beat), letter("n0"), beat("n0")]);
  expect(shortly(answers)).toEqual(answers.map(() => "ok"));
  expect(answers.map(({ body }) => body["messages_waiting"] ?? null)).toEqual([
    ...[null, 1, 2],
    ...nodes.slice(2).map(() => 0),
    ...[null, 2],
  ]);
  const kinds = await hub.eventKinds();
  const back = kinds.slice(kinds.lastIndexOf("node.left")).filter((kind) => kind === "node.online");
  expect(back).toHaveLength(nodes.length);
});

test("the requests of a batch are parsed in turns, between which others are served", async () => {
  await using hub = await startHub();
  const turns = spyOn(LARGE_REQUESTS, "next");
  hub.clock.workMs = BATCH_TURN_MS;
  try {
    const answers = await batch(
      hub,
      Array.from({ length: 10 }, () => CREATE),
    );
    expect(shortly(answers)[0]).toBe("ok"); // the decisions take as long, too
    expect(turns.mock.calls.length).toBeGreaterThanOrEqual(answers.length);
  } finally {
    turns.mockRestore();
  }
});

once.test(
  "500 new tasks fit into a batch where the balancer deals them out, to the least busy first",
  async () => {
    await using hub = await startHub();
    const nodes = Array.from({ length: 20 }, (_, i) => `n${i}`);
    await batch(
      hub,
      nodes.map((nodeId): Asked => {
        return ["node/register", { node_id: nodeId, name: nodeId, auto_assign: true, capabilities: "usual" }];
      }),
    );
    const create: Asked = ["task/create", { ...CREATE[1], task_type: "usual" }];
    const made = await batch(
      hub,
      Array.from({ length: 500 }, () => create),
      { variant: "B" },
    );
    expect(made.filter(({ status }) => status === 200)).toHaveLength(500);
    for (const [i, { body }] of made.entries()) {
      const round = made.slice(i - (i % nodes.length), i).map((earlier) => earlier.body["assigned_node"]);
      expect(round).not.toContain(body["assigned_node"]);
    }
    for (const nodeId of nodes) expect(await hub.nodeOf(nodeId)).toMatchObject({ tasks_assigned: 25 });
  },
);

once.test("a node with 500 tasks leaves alone, because that takes several commits", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const made = await batch(
    hub,
    Array.from({ length: 500 }, () => CREATE),
  );
  await batch(
    hub,
    made.map(({ body }) => claim(String(body["task_id"]))),
  );
  const leave: Asked = ["node/leave", { node_id: "n1" }];
  const answers = await batch(hub, [beat("n1"), leave]);
  expect(shortly(answers)).toEqual(["ok", "invalid_request"]);
  expect(await hub.nodeOf("n1")).toMatchObject({ status: "online", tasks_assigned: 500 });
  expect(await ok(hub.post("/node/leave", leave[1]))).toMatchObject({ tasks_released: 500 });
});

test("a batch is replayed after a restart", async () => {
  const dataDir = newDataDir();
  try {
    let first: Answer | null = null;
    {
      await using hub = await startHub({ dataDir });
      await hub.addNode("n1");
      first = await post(hub, [CREATE, ["signin", { node_id: "n1" }], claim(NO_ID)], keyed("k"));
    }
    await using hub = await startHub({ dataDir });
    const again = await post(hub, [CREATE, ["signin", { node_id: "n1" }], claim(NO_ID)], keyed("k"));
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.body).toEqual(first.body);
    expect((await ok(hub.get("/task/stats")))["total"]).toBe(1);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

/** What each POST needs to succeed in a batch, in this order. */
const USAGE = [{ seq: 1, model: "m", input_tokens: 1, output_tokens: 1 }];

const EACH: readonly ((ids: Readonly<Record<string, string>>) => Asked)[] = [
  () => ["node/register", { node_id: "n1", name: "n1" }],
  () => beat("n1"),
  () => ["node/drain", { node_id: "n1", drain: false }],
  () => CREATE,
  ({ open = "" }) => claim(open),
  ({ open = "" }) => ["task/extend", { task_id: open, node_id: "n1", note: "half", usage: USAGE }],
  ({ open = "" }) => ["task/release", { task_id: open, node_id: "n1" }],
  ({ open = "" }) => ["task/assign", { task_id: open, node_id: "n1" }],
  ({ open = "" }) => ["task/revoke", { task_id: open }],
  ({ open = "" }) => claim(open),
  ({ open = "" }) => ["task/fail", { task_id: open, node_id: "n1", error: "e", retry: false }],
  ({ open = "" }) => ["task/retry", { task_id: open }],
  ({ open = "" }) => ["task/update", { task_id: open, title: "new" }],
  ({ open = "" }) => ["task/cancel", { task_id: open }],
  () => ["task/next", { node_id: "n1" }],
  ({ open = "" }) => ["task/delete", { task_id: open }],
  ({ held = "" }) => ["task/output", { task_id: held, node_id: "n1", offset: 0, data: "line" }],
  ({ held = "" }) => ["task/ask", { task_id: held, node_id: "n1", question: "?" }],
  ({ held = "", question = "" }) => ["task/answer", { task_id: held, question_id: question, answer: 1 }],
  ({ held = "" }) => finish(held),
  ({ held = "" }) => ["task/review", { task_id: held, verdict: "pass" }],
  () => ["task/create", { title: "t", description: "d", group: "g" }],
  () => ["group/cancel", { group: "g" }],
  () => ["group/retry", { group: "g" }],
  () => ["schedule/put", { name: "s", every_s: 60, task: { title: "t", description: "d" } }],
  () => ["schedule/run", { name: "s" }],
  () => ["schedule/delete", { name: "s" }],
  () => ["webhook/resume", { name: "w" }],
  () => ["webhook/delete", { name: "w" }],
  () => ["note/put", { key: "k", text: "x" }],
  () => ["note/delete", { key: "k" }],
  () => ["lease/acquire", { name: "a", node_id: "n1" }],
  () => ["lease/renew", { name: "a", node_id: "n1" }],
  () => ["lease/release", { name: "a", node_id: "n1" }],
  () => ["usage/void", { node_id: "n1" }],
  () => ["budget/set", { scope: "hub", per: "day", tokens: 1 }],
  () => ["budget/delete", { scope: "hub", per: "day" }],
  () => ["hub/pause", { type: "none" }],
  () => ["hub/resume", { type: "none" }],
  () => ["limit/set", { key: "k", running: 1 }],
  () => ["limit/hold", { key: "k", for_s: 1 }],
  () => ["limit/delete", { key: "k" }],
  () => letter("n1"),
  () => ["agent/message", letter("n1")[1]],
  () => take("n1"),
  ({ message = "" }) => ["message/ack", { node_id: "n1", message_id: message }],
  ({ message = "" }) => ["agent/ack", { node_id: "n1", message_id: message }],
  ({ parked = "" }) => ["message/redrive", { node_id: "n1", message_id: parked }],
  () => ["signin", { node_id: "n1" }],
  ({ file = "" }) => ["file/delete", { file_id: file }],
  () => ["key/revoke", { name: "spare" }],
  () => ["node/leave", { node_id: "n1" }],
  () => ["node/delete", { node_id: "n1" }],
];

/** They are refused in a batch, whatever the body. */
const NEVER: readonly string[] = [
  "batch",
  "message/broadcast",
  "agent/broadcast",
  "task/batch-assign",
  "file/download-url",
  "file/upload",
  "file/upload-url",
  "key/add",
  "webhook/put",
  "webhook/test",
  "task/answer-by-token",
];

once.test("every POST is done in a batch, or refused there", async () => {
  const posts = [...ENDPOINTS, ...fileEndpoints(1)].filter(({ method }) => method === "POST");
  const known = [...EACH.map((ask) => ask({})[0]), ...NEVER];
  const paths = posts.map(({ path }) => path.replace("/api/v1/", ""));
  expect(paths.toSorted()).toEqual([...new Set(known)].toSorted());

  await using hub = await startHub();
  await hub.addNode("n1");
  await ok(hub.admin("/key/add", { name: "spare" }));
  await ok(hub.admin("/webhook/put", { name: "w", url: "https://receiver.test/" }));
  const form = new FormData();
  form.append("file", new Blob(["bytes"]), "a.txt");
  const ids = {
    open: await hub.addTask(),
    held: await hub.addTaskOf("n1", { review: "creator" }),
    parked: await hub.send("op", "n1", { require_ack: true }),
    message: "",
    question: "",
    file: String((await ok(hub.post("/file/upload", form)))["file_id"]),
  };
  for (let i = 0; i <= 5; i++) {
    await until("the message is there", async () => (await hub.receive("n1")).length === 1);
    hub.clock.pass(31_000);
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    await hub.sweep();
  }
  ids.message = await hub.send("op", "n1", { require_ack: true });
  await ok(hub.post("/message/receive", { node_id: "n1" }));
  const asked = await ok(hub.post("/task/ask", { task_id: ids.held, node_id: "n1", question: "?" }));
  ids.question = String(record(asked["question"])["question_id"]);
  const admin = { headers: { "X-Admin-Key": ADMIN_KEY } };
  const answers = await batch(
    hub,
    EACH.map((ask) => ask(ids)),
    admin,
  );
  expect(shortly(answers)).toEqual(EACH.map(() => "ok"));
  expect(hub.logged.filter((line) => line.includes("after its commit"))).toEqual([]);
  const never = await batch(
    hub,
    NEVER.map((path): Asked => [path, {}]),
    admin,
  );
  expect(never.map(({ status }) => status)).toEqual(NEVER.map(() => 400));
});

test("task/next hands out in order, even to a node that was offline; without a task it answers null", async () => {
  await using hub = await startHub();
  await hub.addNode("n1", { auto_assign: false, capabilities: ["x"] });
  const [first, second] = [await hub.addTask(), await hub.addTask({ task_type: "x" })];
  const next: Asked = ["task/next", { node_id: "n1" }];
  const leave: Asked = ["node/leave", { node_id: "n1" }];
  const answers = await batch(hub, [next, finish(first), leave, next, finish(second), next, beat("n1")]);
  expect(shortly(answers)).toEqual(answers.map(() => "ok"));
  const given = [answers[0], answers[3], answers[5]].map((one) => one?.body["task"] ?? null);
  expect(given).toMatchObject([{ task_id: first, status: "assigned" }, { task_id: second }, null]);
  expect(answers[5]?.body).toEqual({ success: true, task: null, lease: null, drain: false });
  expect(shortly(await batch(hub, [["task/next", { node_id: "nobody" }]]))).toEqual(["node_not_found"]);
});
