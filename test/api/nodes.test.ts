/**
 * Nodes: registration, heartbeats, listing. offline.test.ts tests missing heartbeats, variants.test.ts the differences
 * between the variants.
 */
import { describe, expect, test } from "bun:test";
import { startHub } from "../support/hub.ts";
import {
  ISO,
  VARIANTS,
  addNode,
  addNodes,
  addTask,
  addTaskOf,
  badFields,
  complete,
  eventKinds,
  list,
  nodeOf,
  ok,
  pick,
  record,
  refused,
  send,
  startsOf,
} from "./scene.ts";

describe("register", () => {
  test("creates a node, online at once, and answers the whole node", async () => {
    await using hub = await startHub();
    const asked = { node_id: "n1", name: "Node One", host: "10.0.0.1", port: 8080, max_tasks: 3 };
    const body = await addNode(hub, "n1", { ...asked, capabilities: "coding, research" });
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
      lux_balance: 0,
      tasks_assigned: 0,
      tasks_completed: 0,
    });
    expect(registered_at).toMatch(ISO);
    expect(last_heartbeat).toMatch(ISO);
    expect(await nodeOf(hub, "n1")).toEqual(record(node));
    expect(await eventKinds(hub)).toEqual([...startsOf(hub), "node.registered", "node.online"]);
  });

  test("requires only a node_id and a name", async () => {
    await using hub = await startHub();
    const body = await ok(hub.post("/node/register", { node_id: "n1", name: "n" }));
    expect(body["node"]).toMatchObject({ host: null, port: null, capabilities: "", max_tasks: null });
  });

  test("a second time updates the node and keeps its LUX and counters", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { name: "old", host: "old", port: 1, capabilities: "a", max_tasks: 9 });
    await ok(complete(hub, await addTaskOf(hub, "n1", { lux_reward: 2 }), "n1"));
    await addTaskOf(hub, "n1");
    await send(hub, "op", "n1");
    const before = await nodeOf(hub, "n1");
    hub.clock.pass(5_000);
    const body = await addNode(hub, "n1", { name: "new", capabilities: ["b"] });
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
    expect((await eventKinds(hub)).filter((kind) => kind === "node.registered")).toHaveLength(1);
  });

  test("accepts any valid node_id and any name of up to 200 characters", async () => {
    await using hub = await startHub();
    const ids = ["a", "0", "A-z_0.9:x", "x".repeat(128), "...", "list", "__proto__", "null"];
    const name = "🦊".repeat(100);
    for (const nodeId of ids) expect(await addNode(hub, nodeId, { name })).toMatchObject({ node_id: nodeId });
    const nodes = list(await ok(hub.get("/node/list")), "nodes");
    expect(nodes.map((node) => node["node_id"]).toSorted()).toEqual(ids.toSorted());
    expect(new Set(nodes.map((node) => node["name"]))).toEqual(new Set([name]));
  });

  test.each(VARIANTS)("on %s names every bad field", async (variant) => {
    await using hub = await startHub({ variants: [variant] });
    const attempt = (body: unknown) => hub.post("/node/register", body, { variant });
    const good = { node_id: "n1", name: "n" };
    await badFields(attempt({}), ["node_id", "name"]);
    for (const node_id of ["", " ", "a b", "a/b", "ä", "a\n", "x".repeat(129), 5, null, ["n1"]]) {
      await badFields(attempt({ ...good, node_id }), ["node_id"]);
    }
    for (const name of ["", "  ", "x".repeat(201), 5, null])
      await badFields(attempt({ ...good, name }), ["name"]);
    for (const port of ["80", 0, -1, 65_536, 1.5, null])
      await badFields(attempt({ ...good, port }), ["port"]);
    for (const host of [5, null, ["h"]]) await badFields(attempt({ ...good, host }), ["host"]);
    for (const max_tasks of [0, -1, 1.5, "3", null]) {
      await badFields(attempt({ ...good, max_tasks }), ["max_tasks"]);
    }
    expect(await ok(hub.get("/node/list", { variant }))).toMatchObject({ nodes: [] });
  });

  test("simultaneous registrations of one node create one node", async () => {
    await using hub = await startHub();
    const bodies = await Promise.all(Array.from({ length: 20 }, () => addNode(hub, "n1")));
    expect(bodies.filter((body) => body["created"])).toHaveLength(1);
    expect(list(await ok(hub.get("/node/list")), "nodes")).toHaveLength(1);
  });
});

describe("heartbeat", () => {
  test("answers when it arrived and what waits for the node", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    await addTaskOf(hub, "n1");
    await addTaskOf(hub, "n1");
    await ok(complete(hub, await addTaskOf(hub, "n1"), "n1"));
    await addTask(hub);
    for (let i = 0; i < 3; i++) await send(hub, "op", "n1");
    hub.clock.pass(50_000);
    const { last_heartbeat, ...rest } = await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    expect(rest).toEqual({
      success: true,
      node_id: "n1",
      status: "online",
      heartbeat_interval: 60,
      tasks_assigned: 2,
      messages_waiting: 3,
    });
    expect(last_heartbeat).toMatch(ISO);
    const node = await nodeOf(hub, "n1");
    expect(node["last_heartbeat"]).toBe(last_heartbeat);
    const silentMs = Date.parse(String(last_heartbeat)) - Date.parse(String(node["registered_at"]));
    expect(silentMs).toBeGreaterThanOrEqual(50_000);
    expect((await eventKinds(hub)).filter((kind) => kind === "node.online")).toHaveLength(1);
  });

  test("of an unknown node is 404, with the advice to register", async () => {
    await using hub = await startHub();
    const { body } = await refused(hub.post("/node/heartbeat", { node_id: "ghost" }), 404, "node_not_found");
    expect(body["detail"]).toMatch(/register/i);
    expect(await ok(hub.get("/status"))).toMatchObject({ nodes_count: 0 });
  });

  test("requires a node_id", async () => {
    await using hub = await startHub({ variants: ["A"] });
    for (const body of [{}, { node_id: 5 }, { node_id: "a b" }, { node_id: "" }]) {
      await badFields(hub.post("/node/heartbeat", body), ["node_id"]);
    }
  });
});

describe("list and get", () => {
  test("show all nodes with their tasks and LUX", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["b", "a", "c"]);
    await ok(complete(hub, await addTaskOf(hub, "a", { lux_reward: 1.5 }), "a"));
    await addTaskOf(hub, "b");
    await ok(hub.post("/signin", { node_id: "c" }));
    const nodes = list(await ok(hub.get("/node/list")), "nodes");
    expect(nodes.map((node) => node["node_id"]).toSorted()).toEqual(["a", "b", "c"]);
    const owned = { a: [1.5, 0, 1], b: [0, 1, 0], c: [10, 0, 0] } as const;
    for (const [nodeId, [lux_balance, tasks_assigned, tasks_completed]] of Object.entries(owned)) {
      const expected = { lux_balance, tasks_assigned, tasks_completed, status: "online" };
      expect(nodes.find((node) => node["node_id"] === nodeId)).toMatchObject(expected);
      expect(await nodeOf(hub, nodeId)).toEqual(nodes.find((node) => node["node_id"] === nodeId) ?? {});
    }
  });

  test("show none on an empty hub", async () => {
    await using hub = await startHub();
    expect(await ok(hub.get("/node/list"))).toEqual({ success: true, nodes: [] });
  });

  test.each(VARIANTS)("an unknown node is 404 on %s", async (variant) => {
    await using hub = await startHub({ variants: [variant] });
    await refused(hub.get("/node/ghost", { variant }), 404, "node_not_found");
  });

  test("lists hundreds of nodes completely", async () => {
    await using hub = await startHub();
    const ids = Array.from({ length: 300 }, (_, i) => `n${i}`);
    await Promise.all(ids.map((nodeId) => addNode(hub, nodeId)));
    const listed = pick(await ok(hub.get("/node/list")), "nodes", "node_id");
    expect(listed.toSorted()).toEqual(ids.toSorted());
    expect(await ok(hub.get("/status"))).toMatchObject({ nodes_count: 300 });
  });
});
