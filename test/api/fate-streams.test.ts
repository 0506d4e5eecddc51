/**
 * The delivery status of messages in streams: the events for the sender, and a stream that resumes too late.
 * fates.test.ts has the rest.
 */
import { describe, expect, test } from "bun:test";
import { SECRET, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { list, ok, pick } from "./scene.ts";
import { HANG_MS } from "../support/hang.ts";

const once = onlyOnce(import.meta.url);

const ACK_MS = 30_000;
const HOUR_MS = 3_600_000;

type Fields = Readonly<Record<string, unknown>>;

const ack = (hub: TestHub, nodeId: string, messageId: string) =>
  ok(hub.post("/message/ack", { node_id: nodeId, message_id: messageId }));

/** Takes what waits for a node and never confirms it, until nothing comes back any more. */
async function wearOut(hub: TestHub, nodeId: string): Promise<void> {
  for (let i = 0; i < 6; i++) {
    await hub.receive(nodeId, { count: 1000 });
    hub.clock.pass(ACK_MS);
    await hub.sweep();
  }
}

async function messageEvents(hub: TestHub, kind: string): Promise<readonly Fields[]> {
  return list(await ok(hub.get(`/events?since=0&limit=1000&kind=${kind}`)), "events");
}

/** The frames of a node's stream after an event id, up to `count` of them. */
async function frames(
  hub: TestHub,
  nodeId: string,
  after: number,
  count: number,
): Promise<readonly Fields[]> {
  const headers = { "X-Matrix-Secret": SECRET, "Last-Event-ID": String(after) };
  const hangUp = AbortSignal.timeout(HANG_MS);
  const url = `${hub.base()}/api/v1/agent/sse?node_id=${nodeId}`;
  const response = await fetch(url, { headers, signal: hangUp });
  const found: Fields[] = [];
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += new TextDecoder().decode(chunk);
    const pieces = text.split("\n\n");
    text = pieces.pop() ?? "";
    for (const piece of pieces) {
      const [, id, event, data] = /^id: (\d+)\nevent: (\S+)\ndata: (.*)$/.exec(piece) ?? [];
      if (data !== undefined) found.push({ id: Number(id), event, data: JSON.parse(data) });
    }
    if (found.length >= count) break;
  }
  return found;
}

describe("the sender's stream", () => {
  test("has the events of its messages: acked, parked, expired; the recipient's does not", async () => {
    await using hub = await startHub({ retainMs: HOUR_MS });
    await hub.addNodes(["n1", "n2"]);
    const acked = await hub.send("n2", "n1", { require_ack: true });
    await hub.receive("n1");
    await ack(hub, "n1", acked);
    const parked = await hub.send("n2", "n1", { require_ack: true });
    await wearOut(hub, "n1");
    hub.clock.pass(HOUR_MS - 100_000);
    const expired = await hub.send("n2", "n1");
    const events = async (nodeId: string, count: number) =>
      (await frames(hub, nodeId, 0, count)).map(({ event, data }) => {
        const { message_id } = { message_id: null, ...((data as Fields)["data"] as object) };
        return [event, message_id ?? (data as Fields)["id"]];
      });
    const before = await events("n2", 2);
    expect(before).toEqual([
      ["message.acked", acked],
      ["message.parked", parked],
    ]);
    const cursor = Number((await ok(hub.get("/events?limit=1")))["cursor"]);
    hub.clock.pass(HOUR_MS + 60_000);
    await hub.sweep();
    const after = await frames(hub, "n2", cursor, 2);
    expect(after.map(({ event, data }) => [event, (data as Fields)["node_id"]])).toEqual([
      ["message.expired", "n1"],
      ["message.expired", "n1"],
    ]);
    expect(await messageEvents(hub, "message.expired")).toMatchObject([
      { node_id: "n1", data: { message_id: parked, from_node: "n2" } },
      { node_id: "n1", data: { message_id: expired, from_node: "n2" } },
    ]);
  });
});

test("retention tells of every recipient of a broadcast to many, in bounded steps", async () => {
  await using hub = await startHub({ retainMs: HOUR_MS });
  const nodes = Array.from({ length: 700 }, (_, i) => ({ node_id: `n${i}`, name: "x" }));
  await hub.inBatches("node/register", nodes);
  await ok(hub.post("/message/broadcast", { from_node: "n0", content: "x" }));
  hub.clock.pass(HOUR_MS + 60_000);
  await hub.sweep();
  const told = pick(
    await ok(hub.get("/events?since=0&limit=1000&kind=message.expired")),
    "events",
    "node_id",
  );
  expect(told).toHaveLength(699);
  expect(new Set(told).size).toBe(699);
});

describe("a stream that comes back from before the kept log", () => {
  once.test("begins with a gap that says so, and then goes on without one", async () => {
    await using hub = await startHub({ retainMs: HOUR_MS });
    await hub.addNodes(["n1", "n2"]);
    for (let i = 0; i < 5; i++) await hub.send("n2", "n1");
    hub.clock.pass(HOUR_MS + 60_000);
    await hub.sweep();
    const kept = list(await ok(hub.get("/events?since=0&limit=1000")), "events");
    const first = Number(kept[0]?.["id"]);
    expect(first).toBeGreaterThan(3);
    await hub.send("n2", "n1", { content: "new" });
    const [gap, ...rest] = await frames(hub, "n1", 2, 2);
    expect(gap).toEqual({ id: first - 1, event: "gap", data: { after: 2, resumed_at: first } });
    expect(rest).toMatchObject([{ event: "message", data: { content: "new" } }]);
    // From the gap's own id there is none, and none where the log goes on seamlessly.
    for (const after of [first - 1, first])
      expect((await frames(hub, "n1", after, 1)).map(({ event }) => event)).not.toContain("gap");
  });
});
