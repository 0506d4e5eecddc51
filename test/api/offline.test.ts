/**
 * Missing heartbeats: when a node goes offline, what happens to its tasks, and how it comes back online. The tests set
 * the hub's clock. The first tests wait for the hub's periodic work, which runs each second; the others start it.
 */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { TestClock, type TestHub, newDataDir, onlyOnce, startHub } from "../support/hub.ts";
import {
  RESULT,
  type VariantName,
  addNode,
  addNodes,
  addTask,
  addTaskOf,
  complete,
  eventKinds,
  list,
  nodeOf,
  ok,
  pick,
  receive,
  refused,
  send,
  taskOf,
  until,
} from "./scene.ts";

const once = onlyOnce(import.meta.url);

const OFFLINE_AFTER_MS = { A: 180_000, B: 90_000 } as const;
/** The hub's clock keeps running, and on a busy machine a test is slow. */
const MARGIN_MS = 30_000;

function beat(hub: TestHub, nodeId: string) {
  return ok(hub.post("/node/heartbeat", { node_id: nodeId }));
}

async function statusOf(hub: TestHub, nodeId: string): Promise<unknown> {
  return (await nodeOf(hub, nodeId))["status"];
}

/** Has the hub do its periodic work. */
async function isOffline(hub: TestHub, nodeId: string): Promise<void> {
  await hub.sweep();
  expect([nodeId, await statusOf(hub, nodeId)]).toEqual([nodeId, "offline"]);
}

/** Lets so much time pass that the node goes offline, while the others send their heartbeats. */
async function silence(hub: TestHub, nodeId: string, others: readonly string[] = []): Promise<void> {
  for (let i = 0; i < 4; i++) {
    hub.clock.pass(OFFLINE_AFTER_MS.A / 4);
    for (const other of others) await beat(hub, other);
  }
  await isOffline(hub, nodeId);
}

describe.concurrent("a node goes offline", () => {
  once.test.each(["A", "B"] as const)(
    "after its lease in %s has expired, and not before",
    async (variant) => {
      await using hub = await startHub();
      const offlineAfterMs = OFFLINE_AFTER_MS[variant];
      await addNode(hub, "silent", {}, variant);
      hub.clock.pass(MARGIN_MS);
      await addNode(hub, "younger", {}, variant);
      await send(hub, "op", "younger", { require_ack: true });
      await receive(hub, "younger");
      const lastHeartbeat = (await nodeOf(hub, "silent"))["last_heartbeat"];
      hub.clock.pass(offlineAfterMs - 2 * MARGIN_MS); // the silent one stays that much below the limit
      // The message that was not confirmed comes back: a sweep has looked at the nodes, too.
      await until("a sweep", async () => (await beat(hub, "younger"))["messages_waiting"] === 1);
      expect(await statusOf(hub, "silent")).toBe("online");
      hub.clock.pass(MARGIN_MS);
      await until("the silent one is offline", async () => (await statusOf(hub, "silent")) === "offline");
      expect(await nodeOf(hub, "silent")).toMatchObject({ status: "offline", last_heartbeat: lastHeartbeat });
      expect(await statusOf(hub, "younger")).toBe("online");
      const [event, ...more] = list(await ok(hub.get("/events?kind=node.offline")), "events");
      expect([event?.["node_id"], more]).toEqual(["silent", []]);
      const nodes = list(await ok(hub.get("/node/list")), "nodes");
      expect(Object.fromEntries(nodes.map((node) => [node["node_id"], node["status"]]))).toEqual({
        silent: "offline",
        younger: "online",
      });
    },
  );

  once.test(
    "after the silence of the variant it registered in, whichever variant it uses later",
    async () => {
      await using hub = await startHub();
      for (const variant of ["A", "B"] as const) await addNode(hub, `of-${variant}`, {}, variant);
      const heartbeat = (nodeId: string, variant: VariantName) =>
        ok(hub.post("/node/heartbeat", { node_id: nodeId }, { variant }));
      await heartbeat("of-A", "B");
      await heartbeat("of-B", "A");
      hub.clock.pass(OFFLINE_AFTER_MS.B + MARGIN_MS);
      await isOffline(hub, "of-B");
      expect(await statusOf(hub, "of-A")).toBe("online");
    },
  );

  once.test("not while it sends its heartbeats", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["beats", "silent"]);
    await silence(hub, "silent", ["beats"]);
    await silence(hub, "silent", ["beats"]);
    expect(await statusOf(hub, "beats")).toBe("online");
  });

  once.test("not because the wall clock jumps", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    hub.clock.jump(86_400_000);
    const jumps = () => hub.logged.join("").split("the clock jumped").length - 1;
    await until("the hub has seen the jump", async () => jumps() === 1);
    hub.clock.jump(-2 * 86_400_000);
    await until("the hub has seen the jump back", async () => jumps() === 2);
    expect(await statusOf(hub, "n1")).toBe("online");
    expect(await eventKinds(hub)).not.toContain("node.offline");
  });
});

describe.concurrent("its unfinished tasks", () => {
  test("are requeued with their attempts counted; completed tasks stay", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const done = await addTaskOf(hub, "n1", { lux_reward: 1 });
    await ok(complete(hub, done, "n1"));
    const mine = [await addTaskOf(hub, "n1"), await addTaskOf(hub, "n1")];
    const others = await addTaskOf(hub, "n2");
    await silence(hub, "n1", ["n2"]);
    expect(await ok(hub.get("/task/list?status=open"))).toMatchObject({ total: 2 });
    for (const taskId of mine) {
      const open = { status: "open", assigned_node: null, attempts: 1, result: null };
      expect(await taskOf(hub, taskId)).toMatchObject(open);
      const life = ["task.created", "task.assigned", "task.requeued"];
      expect(await eventKinds(hub, taskId)).toEqual(life);
    }
    expect(await taskOf(hub, done)).toMatchObject({ status: "completed", assigned_node: "n1", attempts: 0 });
    expect(await taskOf(hub, others)).toMatchObject({ assigned_node: "n2", attempts: 0 });
    expect(await nodeOf(hub, "n1")).toMatchObject({ tasks_assigned: 0, tasks_completed: 1, lux_balance: 1 });
    const requeued = list(await ok(hub.get("/events?kind=task.requeued")), "events");
    expect(requeued.map((event) => event["node_id"])).toEqual(["n1", "n1"]);

    const [first = "", second = ""] = mine;
    await refused(complete(hub, first, "n1"), 409, "task_not_assigned");
    expect(pick(await ok(hub.get("/task/pull?node_id=n2")), "tasks", "task_id").toSorted()).toEqual(
      mine.toSorted(),
    );
    await ok(hub.post("/task/claim", { task_id: first, node_id: "n2" }));
    await refused(complete(hub, first, "n1"), 403, "not_assigned_to_node");
    await ok(complete(hub, first, "n2"));
    await beat(hub, "n1");
    await ok(hub.post("/task/claim", { task_id: second, node_id: "n1" }));
    await silence(hub, "n1", ["n2"]);
    expect(await taskOf(hub, second)).toMatchObject({ attempts: 2 });
  });

  once.test("created on B are assigned again, those of A are not", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const [onB, onB2] = [await addTask(hub, {}, "B"), await addTask(hub, {}, "B")];
    const onA = await addTaskOf(hub, "n1");
    await addNode(hub, "n2");
    await silence(hub, "n1", ["n2"]);
    expect(await nodeOf(hub, "n2")).toMatchObject({ tasks_assigned: 2 });
    for (const taskId of [onB, onB2]) {
      expect(await taskOf(hub, taskId, "B")).toMatchObject({ assigned_node: "n2", attempts: 1 });
      const life = ["task.created", "task.assigned", "task.requeued", "task.assigned"];
      expect(await eventKinds(hub, taskId)).toEqual(life);
    }
    expect(await taskOf(hub, onA)).toMatchObject({ status: "open", attempts: 1 });
  });

  once.test("of B stay open when no node is left, and go to the first that returns", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", {}, "B");
    const taskId = await addTask(hub, {}, "B");
    await silence(hub, "n1");
    expect(await taskOf(hub, taskId)).toMatchObject({ status: "open" });
    expect(await beat(hub, "n1")).toMatchObject({ status: "online", tasks_assigned: 1 });
    expect(await taskOf(hub, taskId)).toMatchObject({ assigned_node: "n1", attempts: 1 });
  });

  once.test("stay assigned when the hub is configured to keep them", async () => {
    await using hub = await startHub({ offlineTasks: "keep" });
    await addNodes(hub, ["n1", "n2"]);
    const taskId = await addTaskOf(hub, "n1");
    await silence(hub, "n1", ["n2"]);
    await addNode(hub, "n3");
    await silence(hub, "n3", ["n2"]); // more sweeps have run since
    expect(await taskOf(hub, taskId)).toMatchObject({ status: "assigned", assigned_node: "n1", attempts: 0 });
    await refused(hub.post("/task/claim", { task_id: taskId, node_id: "n2" }), 409, "task_not_open");
    await ok(complete(hub, taskId, "n1"));
    expect(await eventKinds(hub)).not.toContain("task.requeued");
  });
});

describe.concurrent("an offline node", () => {
  once.test("gets no task, but keeps its mailbox and may complete its tasks", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const held = await addTaskOf(hub, "n2");
    await silence(hub, "n1", ["n2"]);
    const taskId = await addTask(hub);
    const body = { task_id: taskId, node_id: "n1" };
    await refused(hub.post("/task/assign", body), 409, "node_offline");
    await refused(hub.post("/task/claim", body), 409, "node_offline");
    await refused(hub.admin("/task/revoke", { task_id: held, node_id: "n1" }), 409, "node_offline");
    expect(await taskOf(hub, held)).toMatchObject({ assigned_node: "n2" });
    const { results } = await ok(hub.post("/task/batch-assign", { assignments: [body] }));
    expect(results).toEqual([{ ...body, success: false, error: "node_offline" }]);
    expect(await taskOf(hub, await addTask(hub, {}, "B"))).toMatchObject({ assigned_node: "n2" });
    const broadcast = await ok(hub.post("/message/broadcast", { from_node: "op", content: "x" }));
    expect(broadcast).toMatchObject({ receivers: ["n2"] });
    await send(hub, "op", "n1", { content: "for later" });
    expect(await statusOf(hub, "n1")).toBe("offline");
    await beat(hub, "n1");
    expect(await receive(hub, "n1")).toMatchObject([{ content: "for later" }]);
  });

  once.test("is online again with its first heartbeat", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    await silence(hub, "n1");
    const { last_heartbeat } = await beat(hub, "n1");
    expect(await nodeOf(hub, "n1")).toMatchObject({ status: "online", last_heartbeat });
    const kinds = (await eventKinds(hub)).filter((kind) => String(kind).startsWith("node."));
    expect(kinds).toEqual(["node.registered", "node.online", "node.offline", "node.online"]);
    const taskId = await addTask(hub);
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
    await silence(hub, "n1");
  });

  once.test("is online again when it registers", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    await silence(hub, "n1");
    const waits = await addTask(hub, {}, "B");
    expect(await addNode(hub, "n1")).toMatchObject({ created: false, status: "online" });
    expect(await taskOf(hub, waits)).toMatchObject({ assigned_node: "n1" });
  });

  test("simultaneous heartbeats bring it online once", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    await silence(hub, "n1");
    const taskId = await addTask(hub, {}, "B");
    await Promise.all(Array.from({ length: 20 }, () => beat(hub, "n1")));
    expect((await eventKinds(hub)).filter((kind) => kind === "node.online")).toHaveLength(2);
    expect(await eventKinds(hub, taskId)).toEqual(["task.created", "task.assigned"]);
  });
});

describe.concurrent("a hub that was down", () => {
  test("does not count its own downtime against its nodes", async () => {
    const dataDir = newDataDir();
    try {
      const clock = new TestClock();
      {
        await using hub = await startHub({ dataDir, clock });
        await addNodes(hub, ["n1", "n2"]);
        await addTaskOf(hub, "n1");
      }
      clock.pass(36_000_000);
      await using hub = await startHub({ dataDir, clock });
      expect(await statusOf(hub, "n1")).toBe("online");
      await addNode(hub, "signal", {}, "B");
      await beat(hub, "n2");
      hub.clock.pass(OFFLINE_AFTER_MS.B + MARGIN_MS);
      await isOffline(hub, "signal"); // so the hub has looked
      expect(await statusOf(hub, "n1")).toBe("online");
      await beat(hub, "n2");
      hub.clock.pass(OFFLINE_AFTER_MS.B - MARGIN_MS);
      await isOffline(hub, "n1"); // 180 s after the hub is back
      expect(await statusOf(hub, "n2")).toBe("online");
    } finally {
      rmSync(dataDir, { recursive: true });
    }
  });

  once.test("leaves offline nodes offline, and requeues their tasks if it is now configured to", async () => {
    const dataDir = newDataDir();
    try {
      const clock = new TestClock();
      let taskId = "";
      {
        await using hub = await startHub({ dataDir, clock, offlineTasks: "keep" });
        await addNode(hub, "n1");
        taskId = await addTaskOf(hub, "n1");
        await silence(hub, "n1");
      }
      await using hub = await startHub({ dataDir, clock });
      expect(await statusOf(hub, "n1")).toBe("offline");
      await hub.sweep(); // after the one with which it starts
      expect(await taskOf(hub, taskId)).toMatchObject({ status: "open", attempts: 1 });
      // It listens first: however much there is to take up, it does not keep the hub from serving.
      const last = list(await ok(hub.get("/events?limit=2")), "events").map(({ kind }) => kind);
      expect(last).toEqual(["hub.started", "task.requeued"]);
      const body = { task_id: taskId, node_id: "n1", result: RESULT };
      await refused(hub.post("/task/complete", body), 409, "task_not_assigned");
    } finally {
      rmSync(dataDir, { recursive: true });
    }
  });
});
