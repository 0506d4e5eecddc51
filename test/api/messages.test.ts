/**
 * Messages: one mailbox for each node, used by message/* and agent/*; delivery, ACKs, history. concurrency.test.ts tests
 * waiting receives and simultaneous ones.
 */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { type TestHub, newDataDir, onlyOnce, startHub } from "../support/hub.ts";
import { ISO, NO_ID, VARIANTS, badFields, list, ok, pick, refused, until } from "./scene.ts";

const once = onlyOnce(import.meta.url);

const ACK_MS = 30_000;
const DAY_MS = 86_400_000;

async function contentsOf(hub: TestHub, path: string): Promise<unknown[]> {
  return pick(await ok(hub.get(path)), "messages", "content");
}

async function received(hub: TestHub, nodeId: string, fields: Readonly<Record<string, unknown>> = {}) {
  return (await hub.receive(nodeId, fields)).map((message) => message["content"]);
}

describe.each(["/message/send", "/agent/message"])("%s", (path) => {
  test("puts a message into the recipient's mailbox", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const asked = { from_node: "op", to_node: "n1", content: "hello", type: "task", require_ack: true };
    const { message_id, ...rest } = await ok(hub.post(path, asked));
    expect(message_id).toBeString();
    expect(rest).toEqual({ success: true, transport: hub.transport });
    const body = await ok(hub.post("/message/receive", { node_id: "n1" }));
    expect(body).toMatchObject({ success: true, count: 1, transport: hub.transport });
    const [message = {}] = list(body, "messages");
    const { sent_at, ...shown } = message;
    expect(shown).toEqual({
      ...asked,
      id: message_id,
      reply_to: null,
      thread: message_id,
      verified: false,
      redelivered: false,
      deliveries: 1,
    });
    expect(sent_at).toMatch(ISO);
  });

  once.test("defaults to type text and no ACK", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await ok(hub.post(path, { from_node: "op", to_node: "n1", content: "x" }));
    const [message] = await hub.receive("n1");
    expect(message).toMatchObject({ type: "text", require_ack: false });
  });

  test("requires a registered recipient; the sender may be any valid node_id", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const message = { from_node: "ghost", to_node: "n1", content: "x" };
    await ok(hub.post(path, message));
    await refused(hub.post(path, { ...message, to_node: "ghost" }), 404, "node_not_found");
    await badFields(hub.post(path, { ...message, from_node: "a b" }), ["from_node"]);
  });

  once.test("names every bad field", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    const good = { from_node: "op", to_node: "n1", content: "x" };
    await badFields(hub.post(path, {}), ["from_node", "to_node", "content"]);
    for (const type of ["broadcast", "alert", "update", "", "TEXTS", 5, true]) {
      await badFields(hub.post(path, { ...good, type }), ["type"]);
    }
    for (const require_ack of ["true", 1, 0]) {
      await badFields(hub.post(path, { ...good, require_ack }), ["require_ack"]);
    }
    for (const content of [
      5,
      null,
      ["x"],
      { a: 1 },
      "x".repeat(256 * 1024 + 1),
      "ä".repeat(128 * 1024 + 1),
    ]) {
      await badFields(hub.post(path, { ...good, content }), ["content"]);
    }
    expect(await hub.receive("n1")).toEqual([]);
  });
});

describe.each(["/message/broadcast", "/agent/broadcast"])("%s", (path) => {
  test("goes to every online node except the sender", async () => {
    await using hub = await startHub();
    await hub.addNodes(["a", "b", "c"]);
    const body = await ok(hub.post(path, { from_node: "b", content: "all" }));
    expect(body).toMatchObject({ success: true, transport: hub.transport });
    expect((body["receivers"] as string[]).toSorted()).toEqual(["a", "c"]);
    for (const nodeId of ["a", "c"]) {
      const [message, ...more] = await hub.receive(nodeId);
      expect(message).toMatchObject({ from_node: "b", content: "all", type: "broadcast" });
      expect(more).toEqual([]);
    }
    expect(await hub.receive("b")).toEqual([]);
  });

  test("has no recipients if no other node is online, and does not reach nodes that come online later", async () => {
    await using hub = await startHub();
    await hub.addNode("a");
    expect(await ok(hub.post(path, { from_node: "a", content: "x" }))).toMatchObject({ receivers: [] });
    await hub.addNode("late");
    expect(await hub.receive("late")).toEqual([]);
  });

  once.test("names every bad field", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const good = { from_node: "op", content: "x" };
    await badFields(hub.post(path, {}), ["from_node", "content"]);
    for (const type of ["text", "task", "status", "", 5]) {
      await badFields(hub.post(path, { ...good, type }), ["type"]);
    }
    for (const type of ["broadcast", "alert", "update"]) await ok(hub.post(path, { ...good, type }));
  });
});

describe("receive", () => {
  test("takes messages out in order, 10 by default", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const sent = Array.from({ length: 13 }, (_, i) => `m${i}`);
    for (const content of sent) await hub.send("op", "n1", { content });
    expect(await received(hub, "n1", { count: 2 })).toEqual(sent.slice(0, 2));
    expect(await received(hub, "n1")).toEqual(sent.slice(2, 12));
    expect(await received(hub, "n1", { count: 1000 })).toEqual(sent.slice(12));
    expect(await ok(hub.post("/message/receive", { node_id: "n1" }))).toEqual({
      success: true,
      count: 0,
      messages: [],
      transport: hub.transport,
    });
  });

  test("does not change other mailboxes", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    await hub.send("op", "n1");
    expect(await hub.receive("n2")).toEqual([]);
    expect(await hub.receive("n1")).toHaveLength(1);
  });

  once.test.each(VARIANTS)("refuses values out of range on %s", async (variant) => {
    await using hub = await startHub({ variants: [variant] });
    const attempt = (fields: object) =>
      hub.post("/message/receive", { node_id: "n1", ...fields }, { variant });
    for (const count of [0, -1, 1001, 1.5, "5", true]) await badFields(attempt({ count }), ["count"]);
    for (const timeout of [-1, 301, 300.001, "5"]) await badFields(attempt({ timeout }), ["timeout"]);
    for (const blocking of ["true", 1, 0]) await badFields(attempt({ blocking }), ["blocking"]);
    await badFields(hub.post("/message/receive", {}, { variant }), ["node_id"]);
    await refused(attempt({ count: 1000, timeout: 300 }), 404, "node_not_found");
    await refused(attempt({ blocking: true, timeout: 300 }), 404, "node_not_found");
  });

  test("does not block by default, nor with a timeout of 0", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    expect(await hub.receive("n1", { timeout: 300 })).toEqual([]); // no test has so long
    expect(await hub.receive("n1", { blocking: true, timeout: 0 })).toEqual([]);
  });

  test("blocks until its timeout or until a message arrives", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const started = performance.now();
    expect(await hub.receive("n1", { blocking: true, timeout: 0.1 })).toEqual([]);
    expect(performance.now() - started).toBeGreaterThanOrEqual(90);
    const waiting = hub.receive("n1", { blocking: true, timeout: 300 });
    await hub.send("op", "n1", { content: "now" });
    expect(await waiting).toMatchObject([{ content: "now" }]);
  });

  test("does not block when there is a message", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await hub.send("op", "n1");
    expect(await hub.receive("n1", { blocking: true, timeout: 300, count: 5 })).toHaveLength(1);
  });

  test("returns contents of 256 KiB unchanged", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const content = "ä".repeat(128 * 1024);
    for (let i = 0; i < 3; i++) await hub.send("op", "n1", { content });
    const messages = await hub.receive("n1");
    expect(messages.map((message) => message["content"] === content)).toEqual([true, true, true]);
  });

  test("returns strange contents unchanged", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const contents = ['{"a":1}', " \n\t", "🦊\u2028", "\u0001", "' OR 1=1 --", "a".repeat(10_000)];
    for (const content of contents) await hub.send("op", "n1", { content });
    expect(await received(hub, "n1")).toEqual(contents);
  });
});

describe.concurrent("a message that requires an ACK", () => {
  test("stays with its receiver for 30 s, then is redelivered, marked", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const id = await hub.send("op", "n1", { require_ack: true });
    expect(await hub.receive("n1")).toMatchObject([{ id, redelivered: false, deliveries: 1 }]);
    hub.clock.pass(ACK_MS - 10_000);
    expect(await hub.receive("n1", { blocking: true, timeout: 0.1 })).toEqual([]);
    await hub.sweep();
    expect(await hub.receive("n1")).toEqual([]);
    hub.clock.pass(10_000); // redelivered without a request
    const back = await hub.receive("n1", { blocking: true, timeout: 10 });
    expect(back).toMatchObject([{ id, redelivered: true, deliveries: 2, require_ack: true }]);
  });

  test("is not redelivered once it is acked", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const acked = await hub.send("op", "n1", { require_ack: true, content: "acked" });
    await hub.send("op", "n1", { require_ack: true, content: "not acked" });
    await hub.receive("n1");
    expect(await ok(hub.post("/message/ack", { node_id: "n1", message_id: acked }))).toEqual({
      success: true,
    });
    hub.clock.pass(ACK_MS);
    let back: readonly unknown[] = [];
    await until("the other comes back", async () => {
      await hub.sweep();
      back = await received(hub, "n1");
      return back.length > 0;
    });
    expect(back).toEqual(["not acked"]);
    expect(await hub.receive("n1")).toEqual([]);
    expect((await hub.eventKinds()).filter((kind) => kind === "message.acked")).toHaveLength(1);
  });

  test("is redelivered 5 times, then parked, and an event says so", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const id = await hub.send("op", "n1", { require_ack: true, content: "stubborn" });
    await hub.receive("n1");
    const deliveries = [];
    for (let i = 0; i < 5; i++) {
      hub.clock.pass(ACK_MS);
      await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
      let messages: readonly Record<string, unknown>[] = [];
      // Of two hubs, the one that leads may be at another sweep just now: then the message comes with its next.
      await until("the message comes back", async () => {
        await hub.sweep();
        messages = await hub.receive("n1");
        return messages.length > 0;
      });
      deliveries.push(messages[0]?.["deliveries"]);
    }
    expect(deliveries).toEqual([2, 3, 4, 5, 6]);
    hub.clock.pass(ACK_MS);
    let parked: unknown;
    await until("the message is parked", async () => {
      await hub.sweep();
      [parked] = list(await ok(hub.get("/events?since=0&kind=message.parked")), "events");
      return parked !== undefined;
    });
    expect(parked).toMatchObject({ node_id: "n1", data: { message_id: id } });
    expect(await hub.receive("n1")).toEqual([]);
    expect(await contentsOf(hub, "/message/history?node_id=n1")).toEqual(["stubborn"]);
    await ok(hub.post("/message/ack", { node_id: "n1", message_id: id }));
  });

  test("without require_ack a message is gone once it is handed out", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await hub.send("op", "n1", { content: "once" });
    await hub.send("op", "n1", { content: "again", require_ack: true });
    await hub.receive("n1");
    hub.clock.pass(ACK_MS);
    let again: readonly unknown[] = [];
    await until("the message comes back", async () => {
      await hub.sweep();
      again = await received(hub, "n1");
      return again.length > 0;
    });
    expect(again).toEqual(["again"]);
  });

  test("history is kept for 7 days, or for --retain", async () => {
    await using week = await startHub();
    await using hour = await startHub({ variants: ["A"], retainMs: 3_600_000 });
    for (const hub of [week, hour]) {
      await hub.addNode("n1");
      await hub.send("op", "n1", { content: "taken" });
      await hub.receive("n1");
      await hub.send("op", "n1", { content: "waits" });
      hub.clock.pass(3_700_000);
      await hub.send("op", "n1", { content: "later" });
    }
    const left = (hub: TestHub) => contentsOf(hub, "/message/history?node_id=n1");
    await hour.sweep();
    expect(await left(hour)).toEqual(["later"]);
    expect(await received(hour, "n1")).toEqual(["later"]);
    week.clock.pass(7 * DAY_MS - 2 * 3_600_000);
    await week.sweep();
    expect(await left(week)).toEqual(["later", "waits", "taken"]);
    week.clock.pass(3_600_000);
    await week.sweep();
    expect(await left(week)).toEqual(["later"]);
  });
});

describe.each(["/message/ack", "/agent/ack"])("%s", (path) => {
  test("is for the recipient: 404 for an unknown message or node, 403 for another node; a repeat succeeds", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    const message_id = await hub.send("n2", "n1", { require_ack: true });
    await hub.receive("n1");
    await refused(hub.post(path, { node_id: "n1", message_id: NO_ID }), 404, "message_not_found");
    await refused(hub.post(path, { node_id: "ghost", message_id }), 404, "node_not_found");
    await refused(hub.post(path, { node_id: "n2", message_id }), 403, "not_your_message");
    expect(await ok(hub.post(path, { node_id: "n1", message_id }))).toEqual({ success: true });
    expect(await ok(hub.post(path, { node_id: "n1", message_id }))).toEqual({ success: true });
    expect((await hub.eventKinds()).filter((kind) => kind === "message.acked")).toHaveLength(1);
    await badFields(hub.post(path, {}), ["node_id", "message_id"]);
    await badFields(hub.post(path, { node_id: 1, message_id: "" }), ["node_id", "message_id"]);
  });

  test("is accepted for a broadcast and for a message without require_ack", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    await ok(hub.post("/message/broadcast", { from_node: "op", content: "x" }));
    const [broadcast] = await hub.receive("n1");
    await ok(hub.post(path, { node_id: "n1", message_id: broadcast?.["id"] }));
    const message_id = await hub.send("op", "n1");
    await hub.receive("n1");
    await ok(hub.post(path, { node_id: "n1", message_id }));
    expect(await hub.receive("n2")).toHaveLength(1); // each has its own
  });
});

describe("message/* and agent/* use one mailbox", () => {
  test("a message sent through one is read, received and acked through the other", async () => {
    await using hub = await startHub();
    await hub.addNode("n1", {}, "B");
    const asked = { from_node: "op", to_node: "n1", content: "via A", require_ack: true };
    const { message_id } = await ok(hub.post("/agent/message", asked));
    await ok(hub.post("/message/broadcast", { from_node: "op", content: "via B" }, { variant: "B" }));
    expect(await contentsOf(hub, "/agent/messages?node_id=n1")).toEqual(["via B", "via A"]);
    expect(await received(hub, "n1")).toEqual(["via A", "via B"]);
    await ok(hub.post("/agent/ack", { node_id: "n1", message_id }));
    expect(await contentsOf(hub, "/message/history?node_id=n1")).toEqual(["via B", "via A"]);
  });
});

describe("history", () => {
  test("shows what a node sent and received, newest first, 50 by default", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2", "n3"]);
    await hub.send("n1", "n2", { content: "sent" });
    await hub.send("n2", "n1", { content: "got" });
    await hub.send("n2", "n3", { content: "not mine" });
    await ok(hub.post("/message/broadcast", { from_node: "n3", content: "to all" }));
    await ok(hub.post("/message/broadcast", { from_node: "n1", content: "from me" }));
    await hub.send("n1", "n1", { content: "to myself" });
    await hub.receive("n1");
    const body = await ok(hub.get("/message/history?node_id=n1"));
    expect(body).toMatchObject({ count: 5, transport: hub.transport });
    expect(pick(body, "messages", "content")).toEqual(["to myself", "from me", "to all", "got", "sent"]);
    const [, fromMe = {}, , , sent = {}] = list(body, "messages");
    expect(sent).toMatchObject({ from_node: "n1", to_node: "n2", type: "text" });
    expect(fromMe).toMatchObject({ from_node: "n1", type: "broadcast" });
    expect(await contentsOf(hub, "/message/history?node_id=n1&count=2")).toEqual(["to myself", "from me"]);
    for (let i = 0; i < 50; i++) await hub.send("n2", "n1", { content: `m${i}` });
    expect(await contentsOf(hub, "/message/history?node_id=n1")).toHaveLength(50);
    expect(await contentsOf(hub, "/message/history?node_id=n1&count=1000")).toHaveLength(55);
  });

  once.test("requires a registered node and a count from 1 to 1000", async () => {
    await using hub = await startHub();
    await refused(hub.get("/message/history?node_id=ghost"), 404, "node_not_found");
    await badFields(hub.get("/message/history"), ["node_id"]);
    for (const count of ["0", "1001", "-1", "1.5", "x"]) {
      await badFields(hub.get(`/message/history?count=${count}`), ["node_id", "count"]);
    }
  });
});

describe("agent/messages", () => {
  test("reads messages without taking them out", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    await hub.send("n2", "n1", { content: "one" });
    await ok(hub.post("/agent/broadcast", { from_node: "n2", content: "two" }));
    for (let i = 0; i < 2; i++) {
      const body = await ok(hub.get("/agent/messages?node_id=n1"));
      expect(body).toMatchObject({ success: true, count: 2 });
      expect(pick(body, "messages", "content")).toEqual(["two", "one"]);
    }
    expect(await ok(hub.post("/node/heartbeat", { node_id: "n1" }))).toMatchObject({ messages_waiting: 2 });
    expect(await received(hub, "n1")).toEqual(["one", "two"]);
    expect(await contentsOf(hub, "/agent/messages?node_id=n1")).toEqual(["two", "one"]);
  });

  test("continues after a message id, and has a limit", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await hub.send("op", "n1", { content: `m${i}` }));
    const after = (index: number, more = "") =>
      contentsOf(hub, `/agent/messages?node_id=n1&since=${ids[index]}${more}`);
    expect((await after(1)).toSorted()).toEqual(["m2", "m3", "m4"]);
    expect(await after(4)).toEqual([]);
    // A reader that goes on from the newest it has seen must not skip one.
    expect((await after(0, "&limit=2")).toSorted()).toEqual(["m1", "m2"]);
    expect(await contentsOf(hub, "/agent/messages?node_id=n1&limit=2")).toEqual(["m4", "m3"]);
  });

  once.test("requires a registered node and a limit above 0", async () => {
    await using hub = await startHub();
    await refused(hub.get("/agent/messages?node_id=ghost"), 404, "node_not_found");
    await badFields(hub.get("/agent/messages?limit=0&since=%00"), ["node_id", "limit", "since"]);
  });
});

describe("the event log", () => {
  test("names messages, never their content", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    const id = await hub.send("op", "n1", { content: "top secret", require_ack: true });
    await ok(hub.post("/agent/broadcast", { from_node: "op", content: "top secret" }));
    await hub.receive("n1");
    await ok(hub.post("/message/ack", { node_id: "n1", message_id: id }));
    const events = await ok(hub.get("/events?since=0"));
    const kinds = pick(events, "events", "kind").filter((kind) => String(kind).startsWith("message."));
    expect(kinds).toEqual(["message.sent", "message.sent", "message.acked"]);
    expect(JSON.stringify(events)).not.toContain("top secret");
  });
});

test("waiting and leased messages and the history survive a restart", async () => {
  const dataDir = newDataDir();
  try {
    {
      await using hub = await startHub({ dataDir });
      await hub.addNode("n1");
      await hub.send("op", "n1", { content: "taken", require_ack: true });
      await hub.receive("n1");
      await hub.send("op", "n1", { content: "first" });
      await hub.send("op", "n1", { content: "second" });
    }
    await using hub = await startHub({ dataDir });
    expect(await received(hub, "n1")).toEqual(["first", "second"]);
    expect(await contentsOf(hub, "/message/history?node_id=n1")).toEqual(["second", "first", "taken"]);
    hub.clock.pass(ACK_MS);
    expect(await received(hub, "n1", { blocking: true, timeout: 10 })).toEqual(["taken"]);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});
