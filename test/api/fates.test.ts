/**
 * The delivery status of messages (docs/messages.md Messages, docs/events.md): states in history, paging back, parked
 * messages and redrive, retention, the events for the sender, and a stream that resumes too late.
 */
import { describe, expect, test } from "bun:test";
import { SECRET, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import {
  NO_ID,
  addNode,
  addNodes,
  badFields,
  inBatches,
  list,
  ok,
  pick,
  receive,
  refused,
  send,
} from "./scene.ts";
import { HANG_MS } from "../support/hang.ts";

const once = onlyOnce(import.meta.url);

const ACK_MS = 30_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

type Fields = Readonly<Record<string, unknown>>;

async function history(hub: TestHub, nodeId: string, query = ""): Promise<readonly Fields[]> {
  return list(await ok(hub.get(`/message/history?node_id=${nodeId}${query}`)), "messages");
}

async function mailbox(hub: TestHub, nodeId: string, query = ""): Promise<readonly Fields[]> {
  return list(await ok(hub.get(`/agent/messages?node_id=${nodeId}${query}`)), "messages");
}

const ack = (hub: TestHub, nodeId: string, messageId: string) =>
  ok(hub.post("/message/ack", { node_id: nodeId, message_id: messageId }));

/** Takes what waits for a node and never confirms it, until nothing comes back any more. */
async function wearOut(hub: TestHub, nodeId: string): Promise<void> {
  for (let i = 0; i < 6; i++) {
    await receive(hub, nodeId, { count: 1000 });
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

describe("the state of a message", () => {
  test("follows it, for its sender and its recipient alike", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const id = await send(hub, "n2", "n1", { require_ack: true });
    const seen = async (): Promise<readonly unknown[]> => {
      const all = [await history(hub, "n2"), await history(hub, "n1"), await mailbox(hub, "n1")];
      return all.map(([message]) => [message?.["state"], message?.["deliveries"], message?.["recipients"]]);
    };
    const thrice = (state: string, deliveries: number) => Array(3).fill([state, deliveries, null]);
    expect(await seen()).toEqual(thrice("waiting", 0));
    await receive(hub, "n1");
    expect(await seen()).toEqual(thrice("delivered", 1));
    hub.clock.pass(ACK_MS);
    await hub.sweep();
    expect(await seen()).toEqual(thrice("waiting", 1));
    await receive(hub, "n1");
    await ack(hub, "n1", id);
    expect(await seen()).toEqual(thrice("acked", 2));
  });

  test("is delivered when it wanted no ACK, parked when it was never confirmed", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    await send(hub, "n2", "n1");
    await send(hub, "n2", "n1", { require_ack: true });
    await wearOut(hub, "n1");
    expect((await history(hub, "n2")).map(({ state, deliveries }) => [state, deliveries])).toEqual([
      ["parked", 6],
      ["delivered", 1],
    ]);
  });

  test("of a broadcast is that of the node that asks; its sender counts the recipients", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2", "n3", "op"]);
    const { message_id } = await ok(hub.post("/message/broadcast", { from_node: "op", content: "x" }));
    await receive(hub, "n1");
    await receive(hub, "n2");
    await ack(hub, "n2", String(message_id));
    const of = async (nodeId: string) => {
      const [message] = await history(hub, nodeId);
      return [message?.["state"], message?.["deliveries"], message?.["recipients"]];
    };
    expect(await of("n1")).toEqual(["delivered", 1, null]);
    expect(await of("n2")).toEqual(["acked", 1, null]);
    expect(await of("n3")).toEqual(["waiting", 0, null]);
    expect(await of("op")).toEqual([null, null, { waiting: 1, delivered: 1, acked: 1, parked: 0 }]);
  });
});

describe("before", () => {
  test("reaches everything that is kept, in history and agent/messages", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    for (let i = 0; i < 23; i++) await send(hub, i % 3 ? "n2" : "op", "n1", { content: `${i}` });
    for (const [read, size] of [
      [history, "count"],
      [mailbox, "limit"],
    ] as const) {
      const all: unknown[] = [];
      for (let before = ""; ;) {
        const part = await read(hub, "n1", `&${size}=5${before}`);
        if (part.length === 0) break;
        all.push(...part.map(({ content }) => content));
        before = `&before=${part.at(-1)?.["id"]}`;
      }
      expect(all).toEqual(Array.from({ length: 23 }, (_, i) => `${22 - i}`));
    }
  });

  once.test("bounds since from the other side", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const ids: string[] = [];
    for (let i = 0; i < 6; i++) ids.push(await send(hub, "op", "n1", { content: `${i}` }));
    const part = await mailbox(hub, "n1", `&since=${ids[1]}&before=${ids[4]}`);
    expect(part.map(({ content }) => content)).toEqual(["3", "2"]);
  });

  once.test("of a message that is not kept is 404, and an empty one is 400", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    for (const path of ["/message/history", "/agent/messages"]) {
      await refused(hub.get(`${path}?node_id=n1&before=${NO_ID}`), 404, "message_not_found");
      await badFields(hub.get(`${path}?node_id=n1&before=${"x".repeat(200)}`), ["before"]);
    }
  });
});

describe("message/parked and message/redrive", () => {
  test("lists parked messages, oldest first and paged, and redrives them", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await send(hub, "n2", "n1", { require_ack: true }));
    await wearOut(hub, "n1");
    const page = async (query = "") => {
      const body = await ok(hub.get(`/message/parked?node_id=n1${query}`));
      return {
        ids: pick(body, "messages", "id"),
        page: body["page"],
        total: body["total"],
        pages: body["pages"],
      };
    };
    expect(await page()).toEqual({ ids, page: 1, total: 5, pages: 1 });
    expect(await page("&per_page=2&page=1")).toEqual({ ids: ids.slice(0, 2), page: 1, total: 5, pages: 3 });
    expect(await page("&per_page=2&page=3")).toEqual({ ids: ids.slice(4), page: 3, total: 5, pages: 3 });
    expect(await page("&per_page=2&page=4")).toEqual({ ids: [], page: 4, total: 5, pages: 3 });
    const redrive = (message_id: unknown, node_id = "n1") =>
      hub.post("/message/redrive", { node_id, message_id });
    await ok(redrive(ids[0]));
    expect((await page()).ids).toEqual(ids.slice(1));
    const [again] = await receive(hub, "n1");
    expect(again).toMatchObject({ id: ids[0], deliveries: 1, redelivered: false });
    await refused(redrive(ids[0]), 409, "message_not_parked");
    await refused(redrive(ids[1], "n2"), 403, "not_your_message");
    await refused(redrive(NO_ID), 404, "message_not_found");
    await refused(redrive(ids[1], "ghost"), 404, "node_not_found");
    await badFields(redrive(5), ["message_id"]);
    await refused(hub.get("/message/parked?node_id=ghost"), 404, "node_not_found");
  });

  test("of all nodes, oldest first, with the nodes that have the most; a bound key sees its own", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2", "n3"]);
    const ids: string[] = [];
    for (const nodeId of ["n1", "n2", "n1"]) ids.push(await send(hub, "op", nodeId, { require_ack: true }));
    await send(hub, "op", "n3", { require_ack: true });
    await wearOut(hub, "n1");
    await wearOut(hub, "n2");
    const all = await ok(hub.get("/message/parked"));
    expect(pick(all, "messages", "id")).toEqual(ids);
    expect(pick(all, "messages", "to_node")).toEqual(["n1", "n2", "n1"]);
    expect(all).toMatchObject({
      total: 3,
      by_node: [
        { node_id: "n1", count: 2 },
        { node_id: "n2", count: 1 },
      ],
    });
    const second = await ok(hub.get("/message/parked?per_page=2&page=2"));
    expect(pick(second, "messages", "id")).toEqual(ids.slice(2));
    expect(await ok(hub.get("/message/parked?node_id=n1"))).not.toContainKey("by_node");
    const { secret } = await ok(hub.admin("/key/add", { name: "k", node_id: "n2" }));
    const own = await ok(hub.get("/message/parked", { headers: { "X-Matrix-Secret": String(secret) } }));
    expect(pick(own, "messages", "id")).toEqual([ids[1]]);
  });

  test("redrive wakes a receive that waits", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const id = await send(hub, "op", "n1", { require_ack: true });
    await wearOut(hub, "n1");
    const waiting = receive(hub, "n1", { blocking: true, timeout: 300 });
    await receive(hub, "n1"); // came later and has looked: the first one waits
    await ok(hub.post("/message/redrive", { node_id: "n1", message_id: id }));
    expect(await waiting).toMatchObject([{ id }]);
  });
});

describe("the sender's stream", () => {
  test("has the events of its messages: acked, parked, expired; the recipient's does not", async () => {
    await using hub = await startHub({ retainMs: HOUR_MS });
    await addNodes(hub, ["n1", "n2"]);
    const acked = await send(hub, "n2", "n1", { require_ack: true });
    await receive(hub, "n1");
    await ack(hub, "n1", acked);
    const parked = await send(hub, "n2", "n1", { require_ack: true });
    await wearOut(hub, "n1");
    hub.clock.pass(HOUR_MS - 100_000);
    const expired = await send(hub, "n2", "n1");
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

describe("retention", () => {
  test("within a minute after its retention, each unreceived or unconfirmed message has an event", async () => {
    await using hub = await startHub({ retainMs: DAY_MS });
    await addNodes(hub, ["n1", "n2", "n3"]);
    const never = await send(hub, "op", "n1");
    const unconfirmed = await send(hub, "op", "n2", { require_ack: true });
    const taken = await send(hub, "op", "n3");
    const confirmed = await send(hub, "op", "n3", { require_ack: true });
    await receive(hub, "n2");
    await receive(hub, "n3");
    await ack(hub, "n3", confirmed);
    const { message_id } = await ok(hub.post("/message/broadcast", { from_node: "op", content: "x" }));
    await receive(hub, "n3");
    hub.clock.pass(DAY_MS - 30_000); // a slow machine took some of them to come here
    await hub.sweep();
    expect(await messageEvents(hub, "message.expired")).toEqual([]);
    hub.clock.pass(60_000);
    await hub.sweep();
    const told = (await messageEvents(hub, "message.expired")).map(({ node_id, data }) => [
      node_id,
      (data as Fields)["message_id"],
    ]);
    expect(told.toSorted()).toEqual(
      [
        ["n1", never],
        ["n2", unconfirmed],
        ["n1", message_id],
        ["n2", message_id],
      ].toSorted(),
    );
    expect(told.flat()).not.toContain(taken);
    expect(await mailbox(hub, "n1")).toEqual([]);
    expect(await receive(hub, "n1")).toEqual([]);
  });

  test("tells of every recipient of a broadcast to many, in bounded steps", async () => {
    await using hub = await startHub({ retainMs: HOUR_MS });
    const nodes = Array.from({ length: 700 }, (_, i) => ({ node_id: `n${i}`, name: "x" }));
    await inBatches(hub, "node/register", nodes);
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
});

describe("a stream that comes back from before the kept log", () => {
  once.test("begins with a gap that says so, and then goes on without one", async () => {
    await using hub = await startHub({ retainMs: HOUR_MS });
    await addNodes(hub, ["n1", "n2"]);
    for (let i = 0; i < 5; i++) await send(hub, "n2", "n1");
    hub.clock.pass(HOUR_MS + 60_000);
    await hub.sweep();
    const kept = list(await ok(hub.get("/events?since=0&limit=1000")), "events");
    const first = Number(kept[0]?.["id"]);
    expect(first).toBeGreaterThan(3);
    await send(hub, "n2", "n1", { content: "new" });
    const [gap, ...rest] = await frames(hub, "n1", 2, 2);
    expect(gap).toEqual({ id: first - 1, event: "gap", data: { after: 2, resumed_at: first } });
    expect(rest).toMatchObject([{ event: "message", data: { content: "new" } }]);
    // From the gap's own id there is none, and none where the log goes on seamlessly.
    for (const after of [first - 1, first])
      expect((await frames(hub, "n1", after, 1)).map(({ event }) => event)).not.toContain("gap");
  });
});
