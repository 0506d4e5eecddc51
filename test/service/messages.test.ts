/**
 * A receive whose caller hangs up during the commit loses no message; one that is blocked shares the commit of the
 * send.
 */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accept } from "../../src/domain/decision.ts";
import { register } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { EmbeddedMail } from "../../src/mail/embedded.ts";
import { Takes } from "../../src/service/blocked-calls.ts";
import { Feed } from "../../src/service/feed.ts";
import { MessageService } from "../../src/service/messages.ts";
import { WaitAborted } from "../../src/service/waiters.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { OutcomeUnknown } from "../../src/store/store.ts";
import { losingOutcome } from "../support/lost-outcome.ts";

const PROFILE = {
  nodeId: "n1",
  name: "n",
  host: null,
  port: null,
  capabilities: [],
  maxTasks: null,
  autoAssign: false,
} as const;
const DRAFT = {
  fromNode: "op",
  toNode: "n1",
  type: "text",
  content: "hello",
  requireAck: false,
  replyTo: null,
  thread: null,
  verified: false,
} as const;

test("a hang-up that is noticed only after the commit loses no message", async () => {
  const dir = mkdtempSync(join(tmpdir(), "luxhub-messages-"));
  const clock = systemClock();
  const store = openSqlite(join(dir, "luxhub.db"), (error) => {
    throw error;
  });
  try {
    const feed = new Feed(store, clock);
    const messages = new MessageService(
      store,
      new EmbeddedMail(store),
      clock,
      newId,
      feed.receivers,
      new Takes(store, clock),
    );
    const beat = { now: clock.now(), steady: clock.steady(), leaseMs: 60_000 };
    await store.transact({}, () => register({ ...PROFILE, variant: "A" }, null, [], beat));
    await messages.send(store.transact, DRAFT);
    const caller = new AbortController();
    // The hang-up stands in the sockets while the commit runs: the loop sees it in the turn after.
    store.onCommit((changes) => {
      if (changes.some((change) => change.kind === "delivery.moved")) setImmediate(() => caller.abort());
    });
    const patience = { waitMs: 0, signal: caller.signal, repeatable: false };
    await expect(messages.receive(store.transact, "n1", 10, patience)).rejects.toThrow(WaitAborted);
    const next = await messages.receive(store.transact, "n1", 10, {
      waitMs: 0,
      signal: new AbortController().signal,
      repeatable: false,
    });
    expect(next.deliveries.map((delivery) => delivery.message.content)).toEqual(["hello"]);
  } finally {
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  }
});

/**
 * A receive that blocks at a store whose commits throw while `disk.fault` is set; `loseNextOutcome()` commits its next
 * take and loses the outcome.
 */
async function openBlocked() {
  const dir = mkdtempSync(join(tmpdir(), "luxhub-messages-"));
  const clock = systemClock();
  const disk: { fault: Error | null } = { fault: null };
  const store = openSqlite(
    join(dir, "luxhub.db"),
    (error) => {
      throw error;
    },
    (commit) => {
      if (disk.fault) throw disk.fault;
      commit();
    },
  );
  const feed = new Feed(store, clock);
  const messages = new MessageService(
    store,
    new EmbeddedMail(store),
    clock,
    newId,
    feed.receivers,
    new Takes(store, clock),
  );
  const beat = { now: clock.now(), steady: clock.steady(), leaseMs: 60_000 };
  await store.transact({}, () => register({ ...PROFILE, variant: "A" }, null, [], beat));
  const caller = new AbortController();
  const lost = losingOutcome(store);
  const receive = (signal: AbortSignal, waitMs: number) =>
    messages
      .receive(lost.transact, "n1", 10, { waitMs, signal, repeatable: false })
      .then(({ deliveries }) => deliveries.map(({ message }) => message.content));
  const blocked = receive(caller.signal, 60_000);
  await store.transact({}, () => accept(null)); // in the group of its first take
  return {
    ...{ store, disk, caller, blocked, loseNextOutcome: lost.next },
    send: (content: string) => messages.send(store.transact, { ...DRAFT, content }),
    receiveNow: () => receive(new AbortController().signal, 0),
    async [Symbol.asyncDispose]() {
      await store.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

test("a send and the receive that it wakes share a commit", async () => {
  await using scene = await openBlocked();
  const groups: number[] = [];
  scene.store.onGroup((transactions) => groups.push(transactions));
  const [received] = await Promise.all([scene.blocked, scene.send("hello")]);
  expect(received).toEqual(["hello"]);
  expect(groups).toEqual([2]);
});

test("when that commit fails, the receive waits for the next message", async () => {
  await using scene = await openBlocked();
  scene.disk.fault = new Error("the disk");
  const sent = scene.send("lost").catch((error: unknown) => {
    scene.disk.fault = null;
    return error;
  });
  expect(await sent).toEqual(new Error("the disk"));
  await scene.send("hello");
  expect(await scene.blocked).toEqual(["hello"]);
  expect(await scene.receiveNow()).toEqual([]);
});

test("a receive whose outcome is unknown says so, and takes no second message", async () => {
  await using scene = await openBlocked();
  const blocked = scene.blocked.catch((error: unknown) => error);
  scene.loseNextOutcome();
  await scene.send("first");
  await scene.send("second");
  expect(await blocked).toBeInstanceOf(OutcomeUnknown);
  expect(await scene.receiveNow()).toEqual(["second"]);
});

test("a transaction that fails in the same group stops neither", async () => {
  await using scene = await openBlocked();
  const sent = scene.send("hello");
  const broken = scene.store
    .transact({}, (): never => {
      throw new Error("a bug");
    })
    .catch((error: unknown) => error);
  await sent;
  expect(await broken).toEqual(new Error("a bug"));
  expect(await scene.blocked).toEqual(["hello"]);
  expect(await scene.receiveNow()).toEqual([]);
});

test("a caller who hangs up after the wake-up loses no message", async () => {
  await using scene = await openBlocked();
  scene.store.onDecision((changes) => {
    if (changes.some(({ kind }) => kind === "delivery.queued")) scene.caller.abort();
  });
  const blocked = scene.blocked.catch((error: unknown) => error);
  await scene.send("hello");
  expect(await blocked).toBeInstanceOf(WaitAborted);
  expect(await scene.receiveNow()).toEqual(["hello"]);
});
