/**
 * Broadcasts to more nodes than one commit takes, and the bound on nodes (docs/messages.md,
 * docs/errors-and-limits.md).
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BATCH_REQUESTS_MAX, BROADCAST_STEP_NODES } from "../../src/domain/limits.ts";
import { type TestHub, startHub } from "../support/hub.ts";
import { list, ok, pick, refused } from "./scene.ts";

const MANY = BROADCAST_STEP_NODES + 30;

const nodeIds = Array.from({ length: MANY }, (_, i) => `n${i}`);

const broadcast = (hub: TestHub, content: string, headers: Readonly<Record<string, string>> = {}) =>
  hub.post("/message/broadcast", { from_node: "n0", content }, { headers });

describe("a broadcast to many nodes", () => {
  let hub: TestHub;

  beforeAll(async () => {
    hub = await startHub();
    for (let i = 0; i < MANY; i += BATCH_REQUESTS_MAX) {
      const some = nodeIds.slice(i, i + BATCH_REQUESTS_MAX);
      const requests = some.map((node_id) => ({ path: "node/register", body: { node_id, name: node_id } }));
      await ok(hub.post("/batch", { requests }));
    }
  });
  afterAll(() => hub.close());

  test("reaches each of them once, and is one event", async () => {
    const { receivers, message_id } = await ok(broadcast(hub, "to all"));
    expect(receivers).toHaveLength(MANY - 1);
    expect(receivers).not.toContain("n0");
    const got = await Promise.all(
      nodeIds.map(async (nodeId) => pick({ messages: await hub.receive(nodeId) }, "messages", "id")),
    );
    expect(got).toEqual(nodeIds.map((_, i) => (i === 0 ? [] : [message_id])));
    const events = list(await ok(hub.get("/events?since=0&limit=1000&kind=message.sent")), "events");
    expect(events).toMatchObject([{ node_id: null, data: { message_id, receivers: MANY - 1 } }]);
  });

  // Each has an empty mailbox by now.
  test("wakes every receive that waits", async () => {
    const waiting = nodeIds
      .slice(1, 121)
      .map((nodeId) => hub.receive(nodeId, { blocking: true, timeout: 300 }));
    for (const nodeId of nodeIds.slice(1, 121)) expect(await hub.receive(nodeId)).toEqual([]); // the earlier ones wait
    await ok(broadcast(hub, "wake up"));
    for (const messages of await Promise.all(waiting))
      expect(messages).toMatchObject([{ content: "wake up" }]);
  });

  test("is repeated by its Idempotency-Key without being sent again", async () => {
    const headers = { "Idempotency-Key": "once" };
    const first = await broadcast(hub, "x", headers);
    const again = await broadcast(hub, "x", headers);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.body).toEqual(first.body);
    for (const nodeId of ["n1", "n300", `n${MANY - 1}`])
      expect((await hub.receive(nodeId)).filter(({ content }) => content === "x")).toHaveLength(1);
  });

  test("eight at once: all reach all, in one order, and others are served between their steps", async () => {
    let isOver = false;
    let served = 0;
    const all = Promise.all(Array.from({ length: 8 }, (_, i) => ok(broadcast(hub, `${i}`)))).finally(
      () => (isOver = true),
    );
    while (!isOver) {
      await hub.send("op", "n0");
      served++;
    }
    for (const { receivers } of await all) expect(receivers).toHaveLength(MANY - 1);
    expect(served).toBeGreaterThan(2); // if each send waited for all of the broadcasts: one or two
    const orders = new Set<string>();
    for (const nodeId of ["n1", "n300", `n${MANY - 1}`])
      orders.add((await hub.receive(nodeId, { count: 100 })).map(({ content }) => content).join());
    expect(orders.size).toBe(1);
    expect([...orders][0]?.split(",").toSorted()).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"]);
  });
});

describe("--max-nodes", () => {
  test("refuses the registration of one more node, and nothing else", async () => {
    await using hub = await startHub({ maxNodes: 3 });
    for (const nodeId of ["n1", "n2", "n3"]) await hub.addNode(nodeId);
    const register = (node_id: string) => hub.post("/node/register", { node_id, name: "x" });
    await refused(register("n4"), 409, "nodes_limit");
    expect(await hub.addNode("n2")).toMatchObject({ created: false });
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    expect((await ok(hub.get("/status")))["nodes_count"]).toBe(3);
  });

  test("holds when many register at once", async () => {
    await using hub = await startHub({ maxNodes: 5 });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => hub.post("/node/register", { node_id: `n${i}`, name: "x" })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(answers.filter(({ body }) => body["error"] === "nodes_limit")).toHaveLength(15);
  });
});
