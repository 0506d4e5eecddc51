/**
 * Concurrency: each message has one receiver, waiters are woken in the order of arrival, and a
 * client that hangs up while it waits loses nothing. Waiting requests use raw sockets: fetch allows only 256 at once.
 */
import { describe, expect, test } from "bun:test";
import { type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { type Held, hold, ok, pick, rawPost, record } from "./scene.ts";

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
