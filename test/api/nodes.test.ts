/**
 * Nodes: registration, heartbeats, listing. offline.test.ts tests missing heartbeats, variants.test.ts the differences
 * between the variants.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ENDPOINTS } from "../../src/api/routes.ts";
import { DAY_MS, MINUTE_MS } from "../../src/lib/clock.ts";
import { type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { ISO, VARIANTS, badFields, list, ok, pick, record, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);

/** No node may be called so: GET node/<id> would not reach it. */
const RESERVED = ["list", "register", "heartbeat", "leave", "drain", "delete", ".", ".."];

/** The events about one node, without those of messages: kind and data. */
async function eventsOf(hub: TestHub, nodeId: string): Promise<readonly unknown[]> {
  const events = list(await ok(hub.get("/events?since=0&limit=1000")), "events");
  return events.filter((one) => one["node_id"] === nodeId).map(({ kind, data }) => [kind, data]);
}

describe("register", () => {
  test("creates a node, online at once, and answers the whole node", async () => {
    await using hub = await startHub();
    const limits = { max_tasks: 3, auto_assign: true };
    const asked = { node_id: "n1", name: "Node One", host: "10.0.0.1", port: 8080, ...limits };
    const body = await hub.addNode("n1", { ...asked, capabilities: "coding, research" });
    const { node, ...head } = body;
    expect(head).toEqual({
      success: true,
      node_id: "n1",
      status: "online",
      created: true,
      heartbeat_interval: 60,
      offline_after: 180,
    });
    const { registered_at, last_heartbeat, ...rest } = record(node);
    expect(rest).toEqual({
      ...asked,
      capabilities: "coding,research",
      status: "online",
      draining: false,
      lux_balance: 0,
      tasks_assigned: 0,
      tasks_completed: 0,
    });
    expect(registered_at).toMatch(ISO);
    expect(last_heartbeat).toMatch(ISO);
    expect(await hub.nodeOf("n1")).toEqual(record(node));
    expect(await hub.eventKinds()).toEqual([...hub.startsOf(), "node.registered", "node.online"]);
  });

  once.test("requires only a node_id and a name", async () => {
    await using hub = await startHub();
    const body = await ok(hub.post("/node/register", { node_id: "n1", name: "n" }));
    expect(body["node"]).toMatchObject({ host: null, port: null, capabilities: "", max_tasks: null });
  });

  test("a second time updates the node and keeps its LUX and counters", async () => {
    await using hub = await startHub();
    await hub.addNode("n1", { name: "old", host: "old", port: 1, capabilities: "a", max_tasks: 9 });
    await ok(hub.complete(await hub.addTaskOf("n1", { lux_reward: 2 }), "n1"));
    await hub.addTaskOf("n1");
    await hub.send("op", "n1");
    const before = await hub.nodeOf("n1");
    hub.clock.pass(5_000);
    const body = await hub.addNode("n1", { name: "new", capabilities: ["b"] });
    expect(body).toMatchObject({ created: false, status: "online" });
    const { last_heartbeat, ...node } = record(body["node"]);
    const { last_heartbeat: lastBefore, ...rest } = before;
    // What a registration leaves out is not set any more.
    const changed = { name: "new", host: null, port: null, capabilities: "b", max_tasks: null };
    expect(node).toEqual({ ...rest, ...changed });
    expect(node).toMatchObject({ lux_balance: 2, tasks_assigned: 1, tasks_completed: 1 });
    expect(Date.parse(String(last_heartbeat))).toBeGreaterThan(Date.parse(String(lastBefore)));
    expect(await ok(hub.post("/node/heartbeat", { node_id: "n1" }))).toMatchObject({ messages_waiting: 1 });
    expect(await ok(hub.get("/status"))).toMatchObject({ nodes_count: 1 });
    expect((await hub.eventKinds()).filter((kind) => kind === "node.registered")).toHaveLength(1);
  });

  once.test("accepts any valid node_id and any name of up to 200 characters", async () => {
    await using hub = await startHub();
    const ids = ["a", "0", "A-z_0.9:x", "x".repeat(128), "...", "List", "__proto__", "null"];
    const name = "🦊".repeat(100);
    for (const nodeId of ids) expect(await hub.addNode(nodeId, { name })).toMatchObject({ node_id: nodeId });
    const nodes = list(await ok(hub.get("/node/list")), "nodes");
    expect(nodes.map((node) => node["node_id"]).toSorted()).toEqual(ids.toSorted());
    expect(new Set(nodes.map((node) => node["name"]))).toEqual(new Set([name]));
  });

  once.test.each(VARIANTS)("on %s names every bad field", async (variant) => {
    await using hub = await startHub({ variants: [variant] });
    const attempt = (body: unknown) => hub.post("/node/register", body, { variant });
    const good = { node_id: "n1", name: "n" };
    await badFields(attempt({}), ["node_id", "name"]);
    for (const node_id of ["", " ", "a b", "a/b", "ä", "a\n", "x".repeat(129), 5, null, ["n1"]]) {
      await badFields(attempt({ ...good, node_id }), ["node_id"]);
    }
    for (const node_id of RESERVED) await badFields(attempt({ ...good, node_id }), ["node_id"]);
    for (const name of ["", "  ", "x".repeat(201), 5, null])
      await badFields(attempt({ ...good, name }), ["name"]);
    for (const port of ["80", -1, 65_536, 1.5]) await badFields(attempt({ ...good, port }), ["port"]);
    for (const host of [5, ["h"]]) await badFields(attempt({ ...good, host }), ["host"]);
    for (const max_tasks of [0, -1, 1.5, "3"]) {
      await badFields(attempt({ ...good, max_tasks }), ["max_tasks"]);
    }
    for (const auto_assign of [0, "true", []]) {
      await badFields(attempt({ ...good, auto_assign }), ["auto_assign"]);
    }
    expect(await ok(hub.get("/node/list", { variant }))).toMatchObject({ nodes: [] });
  });

  once.test("every path under node/ is a word that no node may be called", () => {
    const words = ENDPOINTS.map(({ path }) => /^\/api\/v1\/node\/([^:/]+)$/.exec(path)?.[1] ?? "list");
    expect(RESERVED).toEqual(expect.arrayContaining(words));
  });

  once.test("takes a port from 0 to 65535", async () => {
    await using hub = await startHub();
    for (const port of [0, 65_535]) {
      expect(record((await hub.addNode("n1", { port }))["node"])["port"]).toBe(port);
    }
  });

  once.test(
    "again with another profile is an event that names the fields, and without a change none",
    async () => {
      await using hub = await startHub();
      await hub.addNode("n1", { port: 1, capabilities: "a" });
      await hub.addNode("n1", { port: 1, capabilities: ["a"] });
      await hub.addNode("n1", { name: "new", host: "h", max_tasks: 2, auto_assign: false }, "B");
      const changed = "name,host,port,capabilities,variant,max_tasks,auto_assign";
      expect(await eventsOf(hub, "n1")).toEqual([
        ["node.registered", { name: "n1" }],
        ["node.online", { name: "n1" }],
        ["node.updated", { name: "new", changed }],
      ]);
    },
  );

  test("simultaneous registrations of one node create one node", async () => {
    await using hub = await startHub();
    const bodies = await Promise.all(Array.from({ length: 20 }, () => hub.addNode("n1")));
    expect(bodies.filter((body) => body["created"])).toHaveLength(1);
    expect(list(await ok(hub.get("/node/list")), "nodes")).toHaveLength(1);
  });
});

describe("heartbeat", () => {
  test("answers its time of arrival, and the number of the node's tasks and messages", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await hub.addTaskOf("n1");
    await hub.addTaskOf("n1");
    await ok(hub.complete(await hub.addTaskOf("n1"), "n1"));
    await hub.addTask();
    for (let i = 0; i < 3; i++) await hub.send("op", "n1");
    hub.clock.pass(50_000);
    const { last_heartbeat, ...rest } = await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    expect(rest).toEqual({
      success: true,
      node_id: "n1",
      status: "online",
      drain: false,
      heartbeat_interval: 60,
      tasks_assigned: 2,
      messages_waiting: 3,
    });
    expect(last_heartbeat).toMatch(ISO);
    const node = await hub.nodeOf("n1");
    expect(node["last_heartbeat"]).toBe(last_heartbeat);
    const silentMs = Date.parse(String(last_heartbeat)) - Date.parse(String(node["registered_at"]));
    expect(silentMs).toBeGreaterThanOrEqual(50_000);
    expect((await hub.eventKinds()).filter((kind) => kind === "node.online")).toHaveLength(1);
  });

  once.test("of an unknown node is 404, with the advice to register", async () => {
    await using hub = await startHub();
    const { body } = await refused(hub.post("/node/heartbeat", { node_id: "ghost" }), 404, "node_not_found");
    expect(body["detail"]).toMatch(/register/i);
    expect(await ok(hub.get("/status"))).toMatchObject({ nodes_count: 0 });
  });

  once.test("requires a node_id", async () => {
    await using hub = await startHub({ variants: ["A"] });
    for (const body of [{}, { node_id: 5 }, { node_id: "a b" }, { node_id: "" }]) {
      await badFields(hub.post("/node/heartbeat", body), ["node_id"]);
    }
  });
});

describe("list and get", () => {
  test("show all nodes with their tasks and LUX", async () => {
    await using hub = await startHub();
    await hub.addNodes(["b", "a", "c"]);
    await ok(hub.complete(await hub.addTaskOf("a", { lux_reward: 1.5 }), "a"));
    await hub.addTaskOf("b");
    await ok(hub.post("/signin", { node_id: "c" }));
    const nodes = list(await ok(hub.get("/node/list")), "nodes");
    expect(nodes.map((node) => node["node_id"]).toSorted()).toEqual(["a", "b", "c"]);
    const owned = { a: [1.5, 0, 1], b: [0, 1, 0], c: [10, 0, 0] } as const;
    for (const [nodeId, [lux_balance, tasks_assigned, tasks_completed]] of Object.entries(owned)) {
      const expected = { lux_balance, tasks_assigned, tasks_completed, status: "online" };
      expect(nodes.find((node) => node["node_id"] === nodeId)).toMatchObject(expected);
      expect(await hub.nodeOf(nodeId)).toEqual(nodes.find((node) => node["node_id"] === nodeId) ?? {});
    }
  });

  once.test("show none on an empty hub", async () => {
    await using hub = await startHub();
    expect(await ok(hub.get("/node/list"))).toEqual({ success: true, nodes: [] });
  });

  once.test.each(VARIANTS)("an unknown node is 404 on %s", async (variant) => {
    await using hub = await startHub({ variants: [variant] });
    await refused(hub.get("/node/ghost", { variant }), 404, "node_not_found");
  });

  once.test("lists hundreds of nodes completely", async () => {
    await using hub = await startHub();
    const ids = Array.from({ length: 300 }, (_, i) => `n${i}`);
    await hub.inBatches(
      "node/register",
      ids.map((node_id) => ({ node_id, name: node_id })),
    );
    const listed = pick(await ok(hub.get("/node/list")), "nodes", "node_id");
    expect(listed.toSorted()).toEqual(ids.toSorted());
    expect(await ok(hub.get("/status"))).toMatchObject({ nodes_count: 300 });
  });
});

test("the list shows on request what the nodes of a page do", async () => {
  await using hub = await startHub();
  await hub.addNodes(["n1", "n2", "n3"]);
  const held: string[] = [];
  for (let i = 0; i < 4; i++) held.push(await hub.addTaskOf("n1", { title: `of n1, ${i}` }));
  const other = await hub.addTaskOf("n3");
  const page = await ok(hub.get("/node/list?tasks=1"));
  expect(pick(page, "nodes", "node_id")).toEqual(["n1", "n2", "n3"]);
  expect(pick(page, "tasks", "task_id")).toEqual([...held.slice(0, 3), other]);
  expect(list(page, "tasks")[3]).toMatchObject({ assigned_node: "n3", status: "assigned" });
  const third = await ok(hub.get("/node/list?tasks=1&per_page=2&page=2"));
  expect(pick(third, "tasks", "task_id")).toEqual([other]);
  expect(await ok(hub.get("/node/list?tasks=0"))).not.toContainKey("tasks");
});

describe("pages of the list", () => {
  let hub: TestHub;
  const page = async (query: string) => ok(hub.get(`/node/list?${query}`));
  const idsOf = async (query: string): Promise<readonly unknown[]> =>
    pick(await page(query), "nodes", "node_id");

  /** All that a list shows by cursor, and the sizes of its pages. */
  async function walk(query: string, perPage: number): Promise<{ ids: unknown[]; sizes: number[] }> {
    const ids: unknown[] = [];
    const sizes: number[] = [];
    for (let cursor: unknown = ""; cursor !== null;) {
      const body = await page(`${query}&per_page=${perPage}&cursor=${String(cursor)}`);
      sizes.push(list(body, "nodes").length);
      ids.push(...pick(body, "nodes", "node_id"));
      cursor = body["next_cursor"];
    }
    return { ids, sizes };
  }

  beforeAll(async () => {
    hub = await startHub();
    await hub.addNodes(["c", "a", "e", "b", "d", "gone"]);
    await hub.addNode("f", { name: "Über Alpha" });
    await ok(hub.admin("/node/delete", { node_id: "gone" }));
    for (const [nodeId, tasks] of [
      ["b", 2],
      ["d", 3],
      ["e", 2],
    ] as const)
      for (let i = 0; i < tasks; i++) await hub.addTaskOf(nodeId);
    for (const nodeId of ["c", "e"]) await ok(hub.post("/signin", { node_id: nodeId }));
    await ok(hub.post("/node/leave", { node_id: "c" }));
    await ok(hub.post("/node/drain", { node_id: "d", drain: true }));
  });
  afterAll(() => hub.close());

  test("are in the order of ids, of load or of LUX", async () => {
    const body = await page("per_page=4");
    expect(body).toMatchObject({ page: 1, per_page: 4, total: 6, pages: 2 });
    expect(pick(body, "nodes", "node_id")).toEqual(["a", "b", "c", "d"]);
    expect(list(body, "nodes")[1]).toEqual(await hub.nodeOf("b"));
    expect(await page("per_page=4&page=2")).toMatchObject({ page: 2, next_cursor: null });
    expect(await idsOf("per_page=4&page=2")).toEqual(["e", "f"]);
    expect(await idsOf("page=3")).toEqual([]);
    const orders = {
      id: ["a", "b", "c", "d", "e", "f"],
      busy: ["d", "b", "e", "a", "f", "c"], // c is offline
      lux: ["c", "e", "a", "b", "d", "f"],
    };
    for (const [order, ids] of Object.entries(orders)) {
      expect(await idsOf(`order=${order}`)).toEqual(ids);
      expect(await idsOf(`order=${order}&per_page=2&page=2`)).toEqual(ids.slice(2, 4));
      for (const perPage of [1, 2, 4, 6])
        expect(await walk(`order=${order}`, perPage)).toEqual({
          ids,
          sizes: Array.from({ length: Math.ceil(6 / perPage) }, (_, i) => Math.min(perPage, 6 - i * perPage)),
        });
    }
  });

  test("are selected by state, and by the beginning of the node_id or the name", async () => {
    for (const [query, ids, order = "id"] of [
      ["status=online", ["a", "b", "d", "e", "f"]],
      ["status=offline", ["c"]],
      ["status=draining", ["d"]],
      ["status=Online", ["d", "b", "e", "a", "f"], "busy"],
      ["q=%C3%BCBER", ["f"]],
      ["q=A", ["a"]],
      ["q=alpha", []],
      ["q=b&status=offline", []],
      ["q=b&status=online", ["b"], "lux"],
    ] as const) {
      const body = await page(`${query}&order=${order}`);
      expect([query, pick(body, "nodes", "node_id")]).toEqual([query, [...ids]]);
      expect([query, body["total"], body["next_cursor"]]).toEqual([query, ids.length, null]);
      expect((await walk(`${query}&order=${order}`, 1)).ids).toEqual([...ids]);
    }
  });

  test("are counted by stats/nodes", async () => {
    const counts = { total: 6, by_status: { online: 5, offline: 1 }, draining: 1, lux_balance: 20 };
    expect(await ok(hub.get("/stats/nodes"))).toEqual({ success: true, ...counts });
    await using other = await startHub();
    const none = { total: 0, by_status: { online: 0, offline: 0 }, draining: 0, lux_balance: 0 };
    expect(await ok(other.get("/stats/nodes"))).toEqual({ success: true, ...none });
    await other.addNode("n1");
    expect(await ok(other.get("/stats/nodes"))).toMatchObject({ total: 1, by_status: { online: 1 } });
    await ok(other.complete(await other.addTaskOf("n1", { lux_reward: 0.5 }), "n1"));
    await ok(other.post("/node/leave", { node_id: "n1" }));
    const after = { total: 1, by_status: { online: 0, offline: 1 }, lux_balance: 0.5 };
    expect(await ok(other.get("/stats/nodes"))).toMatchObject(after);
  });

  once.test("bad fields are named", async () => {
    const { next_cursor } = await page("per_page=1&order=busy");
    for (const [query, field] of [
      ["status=busy", "status"],
      ["order=name", "order"],
      [`q=${"x".repeat(201)}`, "q"],
      ["page=0", "page"],
      ["per_page=0", "per_page"],
      ["per_page=50&page=201", "page"],
      ["cursor=x", "cursor"],
      [`cursor=${Buffer.from("busy 9223372036854775808 a").toString("base64url")}`, "cursor"],
      [`cursor=${String(next_cursor)}`, "cursor"], // of another order
      [`order=busy&page=1&cursor=${String(next_cursor)}`, "page"],
    ] as const)
      await badFields(hub.get(`/node/list?${query}`), [field]);
    expect(await page("per_page=50&page=200")).toMatchObject({ nodes: [] });
    expect(Object.keys(await page("per_page=&q="))).toEqual(["success", "nodes"]);
  });
});

describe("delete", () => {
  /** A node with a completed task, one that it holds, a sign-in, and a message that waits for it. */
  async function workedNode(hub: TestHub): Promise<{ done: string; held: string }> {
    await hub.addNode("n1");
    const done = await hub.addTaskOf("n1", { lux_reward: 2 });
    await ok(hub.complete(done, "n1"));
    await ok(hub.post("/signin", { node_id: "n1" }));
    await hub.send("op", "n1");
    return { done, held: await hub.addTaskOf("n1") };
  }

  test.each(VARIANTS)("on %s removes the registration, and gives its tasks back", async (variant) => {
    await using hub = await startHub();
    const { done, held } = await workedNode(hub);
    const body = await ok(hub.admin("/node/delete", { node_id: "n1" }, { variant }));
    expect(body).toEqual({ success: true, node_id: "n1" });
    await refused(hub.get("/node/n1", { variant }), 404, "node_not_found");
    await refused(hub.post("/node/heartbeat", { node_id: "n1" }), 404, "node_not_found");
    await refused(hub.get("/task/pull?node_id=n1"), 404, "node_not_found");
    await refused(hub.post("/message/receive", { node_id: "n1" }), 404, "node_not_found");
    const message = { from_node: "op", to_node: "n1", content: "x" };
    await refused(hub.post("/message/send", message), 404, "node_not_found");
    await refused(hub.admin("/node/delete", { node_id: "n1" }), 404, "node_not_found");
    expect(await ok(hub.get("/node/list"))).toMatchObject({ nodes: [] });
    expect(await ok(hub.get("/status"))).toMatchObject({ nodes_count: 0, tasks_count: 2 });
    expect(await ok(hub.get("/task/stats"))).toMatchObject({ top_nodes: [] });
    expect(await hub.taskOf(held)).toMatchObject({ status: "open", assigned_node: null, attempts: 0 });
    expect(await hub.taskOf(done)).toMatchObject({ status: "completed", assigned_node: "n1" });
    expect((await eventsOf(hub, "n1")).slice(-2)).toEqual([
      ["task.released", { reason: "the node was deleted" }],
      ["node.deleted", { name: "n1" }],
    ]);
  });

  once.test("leaves its ledger and its messages, which still answer", async () => {
    await using hub = await startHub();
    await workedNode(hub);
    await hub.addNode("quiet");
    await ok(hub.admin("/node/delete", { node_id: "n1" }));
    await ok(hub.admin("/node/delete", { node_id: "quiet" }));
    const ledger = await ok(hub.get("/lux/ledger?node_id=n1"));
    expect(pick(ledger, "entries", "amount")).toEqual([10, 2]);
    for (const path of ["/message/history", "/agent/messages"]) {
      expect(pick(await ok(hub.get(`${path}?node_id=n1`)), "messages", "content")).toEqual(["hello"]);
    }
    expect(await ok(hub.get("/lux/ledger?node_id=quiet"))).toMatchObject({ entries: [], total: 0 });
    expect(await ok(hub.get("/message/history?node_id=quiet"))).toMatchObject({ messages: [] });
    await refused(hub.get("/lux/ledger?node_id=ghost"), 404, "node_not_found");
  });

  test("a new registration continues with the earned LUX and the waiting messages", async () => {
    await using hub = await startHub();
    const { held } = await workedNode(hub);
    expect(pick(await ok(hub.get("/task/stats")), "top_nodes", "node_id")).toEqual(["n1"]);
    await ok(hub.admin("/node/delete", { node_id: "n1" }));
    hub.clock.pass(5_000);
    expect(await hub.addNode("n1", { name: "again" })).toMatchObject({ created: true });
    const node = await hub.nodeOf("n1");
    expect(node).toMatchObject({ name: "again", lux_balance: 12, tasks_completed: 1, tasks_assigned: 0 });
    expect(node["registered_at"]).toBe(node["last_heartbeat"]);
    expect(pick(await ok(hub.get("/task/stats")), "top_nodes", "node_id")).toEqual(["n1"]);
    expect(await ok(hub.post("/node/heartbeat", { node_id: "n1" }))).toMatchObject({ messages_waiting: 1 });
    expect(await ok(hub.post("/signin", { node_id: "n1" }))).toMatchObject({ already_signed_in: true });
    await ok(hub.post("/task/claim", { task_id: held, node_id: "n1" }));
    await ok(hub.complete(held, "n1"));
    expect(pick(await ok(hub.get("/lux/ledger?node_id=n1")), "entries", "amount")).toEqual([10, 2]);
  });

  once.test("gives the tasks that came through B to others, however many", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await hub.addTasks(600, {}, "B");
    await hub.addNode("n2");
    await ok(hub.admin("/node/delete", { node_id: "n1" }));
    expect(await hub.nodeOf("n2")).toMatchObject({ tasks_assigned: 600 });
    const logged = async (kind: string) =>
      list(await ok(hub.get(`/events?since=0&limit=1000&kind=${kind}`)), "events").length;
    expect([await logged("task.released"), await logged("task.requeued")]).toEqual([600, 0]);
  });

  once.test("makes room for another node under --max-nodes", async () => {
    await using hub = await startHub({ maxNodes: 2 });
    await hub.addNodes(["n1", "n2"]);
    const third = { node_id: "n3", name: "n3" };
    const full = await hub.post("/node/register", third);
    expect(full.body["success"]).toBe(false);
    await ok(hub.admin("/node/delete", { node_id: "n1" }));
    await ok(hub.post("/node/register", third));
    expect((await hub.post("/node/register", { node_id: "n1", name: "n1" })).status).toBe(full.status);
  });

  once.test("wants the administrator key", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await refused(hub.post("/node/delete", { node_id: "n1" }), 403, "admin_key_required");
    await badFields(hub.admin("/node/delete", {}), ["node_id"]);
    await hub.nodeOf("n1");
  });
});

describe("--retain-nodes", () => {
  once.test("deletes nodes that are offline for so long and hold nothing, and no others", async () => {
    await using hub = await startHub({ retainNodesMs: DAY_MS, offlineTasks: "keep" });
    const listed = async (): Promise<unknown> => pick(await ok(hub.get("/node/list")), "nodes", "node_id");
    await hub.addNodes(["alive", "gone", "holder", "reader"]);
    await ok(hub.post("/signin", { node_id: "gone" }));
    await hub.addTaskOf("holder");
    await hub.send("op", "reader");
    hub.clock.pass(DAY_MS / 2);
    await hub.sweep(); // all are offline
    await ok(hub.post("/node/heartbeat", { node_id: "alive" }));
    await hub.sweep();
    expect(await listed()).toEqual(["alive", "gone", "holder", "reader"]);
    hub.clock.pass(DAY_MS / 2 + MINUTE_MS);
    await hub.sweep();
    expect(await listed()).toEqual(["alive", "holder", "reader"]);
    const events = list(await ok(hub.get("/events?since=0&kind=node.deleted")), "events").map(record);
    expect(events).toMatchObject([{ node_id: "gone", data: { name: "gone", reason: "offline" } }]);
    expect(pick(await ok(hub.get("/lux/ledger?node_id=gone")), "entries", "amount")).toEqual([10]);
    // Its next registration finds what it had earned.
    await hub.addNode("gone");
    expect(await hub.nodeOf("gone")).toMatchObject({ lux_balance: 10 });
    await ok(hub.post("/message/receive", { node_id: "reader" }));
    hub.clock.pass(DAY_MS + MINUTE_MS);
    await hub.sweep();
    expect(await listed()).toEqual(["holder"]);
  });
});
