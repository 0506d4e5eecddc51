/**
 * Concurrency: one of many claims wins, each message has one receiver, waiters are woken in the order of arrival, and a
 * client that hangs up while it waits loses nothing. Waiting requests use raw sockets: fetch allows only 256 at once.
 */
import { describe, expect, test } from "bun:test";
import { ADMIN_KEY, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { as } from "./key-commands.ts";
import { type Held, RESULT, hold, list, ok, pick, rawPost, record } from "./scene.ts";

const once = onlyOnce(import.meta.url);

/** A receive that waits; what came after it is handled after it. */
async function holdReceive(hub: TestHub, nodeId: string, fields: object = {}): Promise<Held> {
  const body = { node_id: nodeId, count: 1, blocking: true, timeout: 60, ...fields };
  return hold(hub.port(), rawPost("/message/receive", body));
}

/** Every request that was sent before this has been looked at when it resolves. */
async function settled(hub: TestHub): Promise<void> {
  for (let i = 0; i < 2; i++) await ok(hub.get("/status"));
}

async function contentsOf(held: Held): Promise<unknown[]> {
  const answer = await held.answered;
  expect(answer.status).toBe(200);
  return pick(record(JSON.parse(answer.text)), "messages", "content");
}

async function statuses(calls: readonly Promise<{ status: number; body: Record<string, unknown> }>[]) {
  const answers = await Promise.all(calls);
  const counts: Record<string, number> = {};
  for (const { status, body } of answers) {
    const word = status === 200 ? "200" : `${status} ${body["error"]}`;
    counts[word] = (counts[word] ?? 0) + 1;
  }
  return counts;
}

test("of 10,000 creates with one unique key at once, one makes a task and all answer with it", async () => {
  await using hub = await startHub();
  const body = { title: "t", description: "d", unique_key: "the only one" };
  const requests = Array.from({ length: 490 }, () => ({ path: "task/create", body }));
  const batches = Array.from({ length: 20 }, () => hub.post("/batch", { requests }));
  const single = Array.from({ length: 200 }, () => hub.post("/task/create", body));
  const inBatch = (await Promise.all(batches)).flatMap((answer) => list(answer.body, "answers"));
  const alone = await Promise.all(single);
  const answers = [...inBatch.map((answer) => record(answer["body"])), ...alone.map(({ body }) => body)];
  expect(answers).toHaveLength(10_000);
  expect(answers.filter(({ success }) => success !== true)).toEqual([]);
  expect(new Set(answers.map((answer) => answer["task_id"])).size).toBe(1);
  expect(answers.filter((answer) => answer["deduplicated"] !== true)).toHaveLength(1);
  expect((await ok(hub.get("/task/stats")))["total"]).toBe(1);
}, 60_000); // on PostgreSQL it takes seconds

describe("quotas", () => {
  test("of 60 simultaneous creations with the keys of one node, as many pass as its quota has room for", async () => {
    await using hub = await startHub({ quotaTasks: 7 });
    const secrets: string[] = [];
    for (const name of ["k1", "k2"]) {
      const asked = { name, node_id: "n1" };
      const added = await ok(hub.post("/key/add", asked, { headers: { "X-Admin-Key": ADMIN_KEY } }));
      secrets.push(String(added["secret"]));
    }
    const create = (i: number) =>
      hub.post("/task/create", { title: "t", description: "d" }, as(secrets[i % secrets.length] ?? null));
    expect(await statuses(Array.from({ length: 60 }, (_, i) => create(i)))).toEqual({
      200: 7,
      "429 quota_exceeded": 53,
    });
    expect((await ok(hub.get("/task/stats")))["total"]).toBe(7);
  });
});

test("of 20 simultaneous creations with one file exactly one gets it", async () => {
  await using hub = await startHub();
  const form = new FormData();
  form.set("file", new File(["content"], "a.txt"));
  const { file_id } = await ok(hub.post("/file/upload", form));
  const create = () => hub.post("/task/create", { title: "t", description: "d", files: [file_id] });
  expect(await statuses(Array.from({ length: 20 }, create))).toEqual({ "200": 1, "400 invalid_request": 19 });
  expect((await ok(hub.get("/task/stats")))["total"]).toBe(1);
});

test("of 20 nodes that acquire overlapping leases at once exactly one wins", async () => {
  await using hub = await startHub();
  const nodes = Array.from({ length: 20 }, (_, i) => `n${i}`);
  for (const nodeId of nodes) await hub.addNode(nodeId);
  const acquire = (node_id: string, i: number) =>
    hub.post("/lease/acquire", { name: i % 2 ? "a/*" : "a/b", node_id });
  const answers = await Promise.all(nodes.map(acquire));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
});

test("of 20 writes of a note with one version exactly one wins", async () => {
  await using hub = await startHub();
  await ok(hub.post("/note/put", { key: "counter", text: "0" }));
  const put = (i: number) =>
    hub.post("/note/put", { key: "counter", text: `${i}`, if_version: 1, node_id: `n${i}` });
  const puts = Array.from({ length: 20 }, (_, i) => put(i));
  expect(await statuses(puts)).toEqual({
    "200": 1,
    "409 note_version_conflict": 19,
  });
});

test("20 simultaneous registrations of one node create one node", async () => {
  await using hub = await startHub();
  const bodies = await Promise.all(Array.from({ length: 20 }, () => hub.addNode("n1")));
  expect(bodies.filter((body) => body["created"])).toHaveLength(1);
  expect(list(await ok(hub.get("/node/list")), "nodes")).toHaveLength(1);
});

test("30 simultaneous sign-ins pay once", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  await Promise.all(Array.from({ length: 30 }, () => hub.post("/signin", { node_id: "n1" })));
  expect(await hub.nodeOf("n1")).toMatchObject({ lux_balance: 10 });
});

test("20 simultaneous heartbeats bring a node online once", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  await ok(hub.post("/node/leave", { node_id: "n1" }));
  const taskId = await hub.addTask({}, "B");
  await Promise.all(Array.from({ length: 20 }, () => hub.post("/node/heartbeat", { node_id: "n1" })));
  expect((await hub.eventKinds()).filter((kind) => kind === "node.online")).toHaveLength(2);
  expect(await hub.eventKinds(taskId)).toEqual(["task.created", "task.assigned"]);
});

describe("tasks", () => {
  test("of 50 simultaneous claims exactly one wins", async () => {
    await using hub = await startHub();
    const nodes = Array.from({ length: 50 }, (_, i) => `n${i}`);
    await hub.inBatches(
      "node/register",
      nodes.map((node_id) => ({ node_id, name: node_id })),
    );
    for (let round = 0; round < 3; round++) {
      const taskId = await hub.addTask();
      const claims = nodes.map((node_id) => hub.post("/task/claim", { task_id: taskId, node_id }));
      expect(await statuses(claims)).toEqual({ "200": 1, "409 task_not_open": 49 });
      const answers = await Promise.all(claims);
      const winner = answers.find((answer) => answer.status === 200)?.body["assigned_node"];
      expect(await hub.taskOf(taskId)).toMatchObject({ status: "assigned", assigned_node: winner });
      expect(await hub.eventKinds(taskId)).toEqual(["task.created", "task.assigned"]);
    }
    const nodesNow = list(await ok(hub.get("/node/list")), "nodes");
    const assigned = nodesNow.reduce((sum, node) => sum + Number(node["tasks_assigned"]), 0);
    expect(assigned).toBe(3);
  });

  test("of 50 nodes that complete an open task of B at once, one succeeds and is paid once", async () => {
    await using hub = await startHub();
    const taskId = await hub.addTask({ lux_reward: 5 });
    const nodes = Array.from({ length: 50 }, (_, i) => `n${i}`);
    await Promise.all(nodes.map((nodeId) => hub.addNode(nodeId)));
    const calls = nodes.map((nodeId) => hub.complete(taskId, nodeId, { variant: "B" }));
    expect(await statuses(calls)).toEqual({ "200": 1, "403 not_assigned_to_node": 49 });
    const balances = list(await ok(hub.get("/node/list")), "nodes").map((node) =>
      Number(node["lux_balance"]),
    );
    expect(balances.reduce((sum, balance) => sum + balance, 0)).toBe(5);
  });

  test("a node that completes 30 times at once is paid once", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTaskOf("n1", { lux_reward: 5 });
    const calls = Array.from({ length: 30 }, () => hub.complete(taskId, "n1"));
    expect(await statuses(calls)).toEqual({ "200": 30 });
    expect(await hub.nodeOf("n1")).toMatchObject({ lux_balance: 5, tasks_completed: 1 });
  });

  test("simultaneous complete, revoke and delete are serialised", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    let paid = 0;
    for (let round = 0; round < 10; round++) {
      const task_id = await hub.addTaskOf("n1", { lux_reward: 1 });
      const [completed, revoked, deleted] = await Promise.all([
        hub.complete(task_id, "n1"),
        hub.admin("/task/revoke", { task_id }),
        hub.admin("/task/delete", { task_id }),
      ]);
      expect(deleted.status).toBe(200);
      expect(completed.status === 200 && revoked.status === 200).toBe(false);
      paid += completed.status === 200 ? 1 : 0;
    }
    expect(await hub.nodeOf("n1")).toMatchObject({ tasks_assigned: 0, lux_balance: paid });
    expect(await ok(hub.get("/task/stats"))).toMatchObject({
      total: 0,
      by_status: { open: 0, assigned: 0, completed: 0 },
    });
  });

  test("200 tasks created at once on B are spread evenly", async () => {
    await using hub = await startHub();
    const nodes = ["a", "b", "c", "d"];
    for (const nodeId of nodes) await hub.addNode(nodeId);
    await Promise.all(Array.from({ length: 200 }, () => hub.addTask({}, "B")));
    for (const nodeId of nodes) expect(await hub.nodeOf(nodeId)).toMatchObject({ tasks_assigned: 50 });
  });

  test("simultaneous runs of the balancer assign each task once", async () => {
    await using hub = await startHub();
    const ids = await Promise.all(Array.from({ length: 100 }, () => hub.addTask()));
    for (const nodeId of ["a", "b"]) await hub.addNode(nodeId, { max_tasks: 40 });
    const runs = await Promise.all(
      Array.from({ length: 8 }, () =>
        ok(hub.post("/task/batch-assign", { assignments: null }, { variant: "B" })),
      ),
    );
    const given = runs.flatMap((run) => pick(run, "assignments", "task_id"));
    expect(given).toHaveLength(80);
    expect(new Set(given).size).toBe(80);
    for (const taskId of given) expect(ids).toContain(String(taskId));
    expect(await hub.nodeOf("a")).toMatchObject({ tasks_assigned: 40 });
  });
});

describe("messages", () => {
  test("hundreds of sends wake as many blocked receives, each with exactly one message", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const count = hub.engine === "sqlite" ? 400 : 150;
    await hub.addNode("n1");
    const held = await Promise.all(Array.from({ length: count }, () => holdReceive(hub, "n1")));
    await settled(hub);
    const sent = Array.from({ length: count }, (_, i) => `m${i}`);
    await Promise.all(sent.map((content) => hub.send("op", "n1", { content })));
    const got = await Promise.all(held.map(contentsOf));
    expect(got.filter((contents) => contents.length !== 1)).toEqual([]);
    expect(got.flat().toSorted()).toEqual(sent.toSorted());
    expect(await hub.receive("n1")).toEqual([]);
  });

  once.test("the receive that has waited longest is served first", async () => {
    await using hub = await startHub({ variants: ["A"], alone: "firstCome" });
    await hub.addNode("n1");
    const expected = Array.from({ length: 10 }, (_, i) => [`m${i}`]);
    for (let round = 0; round < 2; round++) {
      const held: Held[] = [];
      for (let i = 0; i < 10; i++) {
        held.push(await holdReceive(hub, "n1"));
        await settled(hub);
      }
      for (const [content] of expected) await hub.send("op", "n1", { content });
      expect(await Promise.all(held.map(contentsOf))).toEqual(expected);
    }
  });

  test("a broadcast wakes one waiter of each node", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const held: Held[] = [];
    for (let i = 0; i < 20; i++) {
      await hub.addNode(`n${i}`);
      held.push(await holdReceive(hub, `n${i}`));
    }
    await settled(hub);
    await ok(hub.post("/message/broadcast", { from_node: "op", content: "all" }));
    for (const one of held) expect(await contentsOf(one)).toEqual(["all"]);
  });

  test("simultaneous receives share the messages: none twice, none lost, each in order", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    const total = 200;
    const letters = new Array(total).fill({ from_node: "op", to_node: "n1", content: "hello" });
    const sent = await hub.inBatches("message/send", letters);
    const order = sent.map((body) => body["message_id"]);
    const taken: unknown[] = [];
    const taker = async () => {
      for (;;) {
        const ids = (await hub.receive("n1", { count: 3 })).map((message) => message["id"]);
        if (ids.length === 0) return;
        expect(ids).toEqual(order.filter((id) => ids.includes(id)));
        taken.push(...ids);
      }
    };
    await Promise.all(Array.from({ length: 20 }, taker));
    expect(taken).toHaveLength(total);
    expect(taken.toSorted()).toEqual(order.toSorted());
  });

  once.test("simultaneous senders each keep their order", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    const senders = ["a", "b", "c", "d"];
    const sendTen = async (from: string) => {
      for (let i = 0; i < 10; i++) await hub.send(from, "n1", { content: `${from}${i}` });
    };
    await Promise.all(senders.map(sendTen));
    const messages = await hub.receive("n1", { count: 1000 });
    for (const from of senders) {
      const own = messages.filter((message) => message["from_node"] === from);
      expect(own.map((message) => message["content"])).toEqual(
        Array.from({ length: 10 }, (_, i) => `${from}${i}`),
      );
    }
  });
});

describe("a caller that hangs up while it waits", () => {
  test("loses no message: the next waiter gets it", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    const held: Held[] = [];
    for (let i = 0; i < 6; i++) held.push(await holdReceive(hub, "n1"));
    await settled(hub);
    for (const [i, one] of held.entries()) if (i % 3 !== 2) one.hangUp();
    await settled(hub);
    await hub.send("op", "n1", { content: "one" });
    await hub.send("op", "n1", { content: "two" });
    const stayed = held.filter((_, i) => i % 3 === 2);
    expect((await Promise.all(stayed.map(contentsOf))).flat().toSorted()).toEqual(["one", "two"]);
  });

  test("leaves the message in the mailbox if no one else waits", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    for (let round = 0; round < 4; round++) {
      const held = await holdReceive(hub, "n1", { count: 5 });
      await settled(hub);
      held.hangUp();
      await settled(hub);
      await hub.send("op", "n1", { content: `m${round}` });
      expect(await hub.receive("n1")).toMatchObject([{ content: `m${round}`, redelivered: false }]);
    }
  });

  test("also by aborting fetch; a message that requires an ACK does not count as delivered", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    const gone = new AbortController();
    const body = { node_id: "n1", blocking: true, timeout: 60 };
    const waiting = hub.post("/message/receive", body, { signal: gone.signal });
    await settled(hub);
    gone.abort();
    await expect(waiting).rejects.toThrow();
    await settled(hub);
    await hub.send("op", "n1", { require_ack: true });
    expect(await hub.receive("n1")).toMatchObject([{ redelivered: false, deliveries: 1 }]);
  });

  once.test("a cancelled poll does not affect other polls", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const request = "GET /api/v1/poll?timeout=60 HTTP/1.1\r\nHost: hub\r\n\r\n";
    const [stays, goes] = [await hold(hub.port(), request), await hold(hub.port(), request)];
    await settled(hub);
    goes.hangUp();
    const taskId = await hub.addTask();
    const answer = record(JSON.parse((await stays.answered).text));
    expect(pick(answer, "events", "task_id")).toEqual([taskId]);
  });
});

describe("a hub that closes", () => {
  test("answers blocked receives and polls with an empty list", async () => {
    const hub = await startHub();
    await hub.addNode("n1");
    const { cursor } = await ok(hub.get("/events"));
    const poll = `GET /api/v1/poll?since=${cursor}&timeout=300 HTTP/1.1\r\nHost: hub\r\n\r\n`;
    const receives = await Promise.all(
      Array.from({ length: 20 }, () => holdReceive(hub, "n1", { timeout: 300 })),
    );
    const polls = await Promise.all(Array.from({ length: 20 }, () => hold(hub.port(), poll)));
    await settled(hub);
    await hub.close(); // cuts a request that is not answered by the drain deadline
    for (const held of receives) {
      const answer = await held.answered;
      expect([answer.status, JSON.parse(answer.text)]).toEqual([
        200,
        { success: true, count: 0, messages: [], transport: hub.transport },
      ]);
    }
    for (const held of polls) {
      const answer = await held.answered;
      expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { success: true, events: [], cursor }]);
    }
    const after = hold(hub.port(), poll);
    if (hub.size === 1) await expect(after).rejects.toThrow();
    else expect(await (await after).answered).toMatchObject({ status: 502 }); // the word of the proxy, which goes on
  });

  test("finishes running requests and keeps what it has acknowledged", async () => {
    const hub = await startHub();
    await hub.addNode("n1");
    const running = Array.from({ length: 50 }, () => hub.addTask());
    await running[0];
    const closing = hub.close();
    const outcomes = await Promise.allSettled(running);
    await closing;
    expect(outcomes.filter((outcome) => outcome.status === "fulfilled").length).toBeGreaterThan(0);
    await hub.close(); // a second time is no fault
  });
});

test("of 20 simultaneous results one is kept", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const taskId = await hub.addTaskOf("n1");
  const results = Array.from({ length: 20 }, (_, i) => ({ ...RESULT, lesson: `lesson ${i}` }));
  const calls = results.map((result) =>
    hub.post("/task/complete", { task_id: taskId, node_id: "n1", result }),
  );
  expect(await statuses(calls)).toEqual({ "200": 1, "409 task_completed": 19 });
  const winner = (await Promise.all(calls)).findIndex((answer) => answer.status === 200);
  expect(await hub.taskOf(taskId)).toMatchObject({ result: results[winner] ?? {} });
});
