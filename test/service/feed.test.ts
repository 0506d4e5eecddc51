/** The feed over a real store: a node's log from a cursor, its subscribers, long polls, and reading by cursor. */
import { afterEach, describe, expect, mock, spyOn, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Change } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import {
  EVENT_KINDS,
  type EventKind,
  type LoggedEvent,
  type NewEvent,
  isTaskEvent,
} from "../../src/domain/event.ts";
import { EVENTS_MAX, RECENT_EVENTS_MAX, RECENT_EVENTS_MAX_WEIGHT } from "../../src/domain/limits.ts";
import { markVerified } from "../../src/domain/key.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { Feed } from "../../src/service/feed.ts";
import type { StreamItem } from "../../src/service/recent-events.ts";
import { WaitAborted } from "../../src/service/waiters.ts";
import { eventsAfter } from "../../src/store/sql/events.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { message } from "../domain/samples.ts";
import { until } from "../e2e/program.ts";
import { standIn } from "../support/stand-in.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function openScene() {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-feed-"));
  closing.push(() => rm(folder, { recursive: true }));
  const faults: unknown[] = [];
  const store = openSqlite(join(folder, "db"), (error) => faults.push(error));
  closing.push(() => store.close());
  const feed = new Feed(store, systemClock());
  const commit = (...changes: readonly Change[]): Promise<null> =>
    store.transact({}, () => accept(null, changes));
  return { store, feed, commit, faults };
}

type Scene = Awaited<ReturnType<typeof openScene>>;

function logged(
  nodeId: string | null,
  kind: EventKind = "task.created",
  data: NewEvent["data"] = {},
): Change {
  return { kind: "event.logged", event: { kind, at: 1, nodeId, taskId: null, data } };
}

/** A message on its way, as domain/message.ts writes it. */
function sent(messageId: string, toNode: string): readonly Change[] {
  return [
    { kind: "message.stored", message: message(messageId, { toNode }) },
    { kind: "delivery.queued", messageId, toNode },
    logged(toNode, "message.sent", { message_id: messageId }),
  ];
}

const many = (count: number, of: (i: number) => Change): Change[] =>
  Array.from({ length: count }, (_, i) => of(i));

function words(item: StreamItem): string {
  return item.kind === "event"
    ? `${item.event.id} ${item.event.kind}`
    : `${item.eventId} message ${item.message.messageId}`;
}

type Step = { readonly items: readonly string[]; readonly cursor: number; readonly atEnd: boolean };

async function catchUp({ feed }: Scene, since: number, limit = 32): Promise<Step> {
  const { events, cursor, atEnd } = await feed.catchUp("n1", since, limit);
  return { items: (await shown(feed, events)).map(words), cursor, atEnd };
}

/** What a stream shows of these events. */
async function shown(feed: Feed, events: readonly LoggedEvent[]): Promise<readonly StreamItem[]> {
  const items = await Promise.all(events.map((event) => feed.itemOf(event, "n1")));
  return items.filter((item) => item !== null);
}

/** Goes on from cursor to cursor to the end; says what was found and checks that each step moves. */
async function walk(scene: Scene, since: number, limit: number): Promise<{ found: string[]; steps: number }> {
  const found: string[] = [];
  const lastId = await scene.feed.lastId();
  let cursor = since;
  for (let steps = 1; ; steps++) {
    const step = await catchUp(scene, cursor, limit);
    expect(step.items.length).toBeLessThanOrEqual(limit);
    expect(step.atEnd).toBe(step.cursor >= lastId);
    found.push(...step.items);
    if (step.atEnd) return { found, steps };
    expect(step.cursor).toBeGreaterThan(cursor);
    cursor = step.cursor;
  }
}

const of = (kind: EventKind | null) => ({
  kinds: kind === null ? [] : [kind],
  taskId: null,
  nodeId: null,
  groups: null,
  tag: null,
});

describe("catching up", () => {
  test("an empty log is at its end", async () => {
    expect(await catchUp(await openScene(), 0)).toEqual({ items: [], cursor: 0, atEnd: true });
  });

  test("a long log with few events of the node: in steps, all found, the cursor moves past the rest", async () => {
    const scene = await openScene();
    const mine = [1, 2, 1_999, 2_000, 2_001, 4_700, 8_999];
    await scene.commit(...many(9_000, (i) => logged(mine.includes(i + 1) ? "n1" : i % 2 ? "n2" : null)));
    for (const limit of [1, 2, 3, 32]) {
      const { found, steps } = await walk(scene, 0, limit);
      expect(found).toEqual(mine.map((id) => `${id} task.created`));
      expect(steps).toBeGreaterThan(3); // no step looks through the whole log
      expect(steps).toBeLessThan(20);
    }
    for (const [i, id] of mine.entries())
      expect((await walk(scene, id, 32)).found).toEqual(mine.slice(i + 1).map((at) => `${at} task.created`));
  });

  test("a node without events reaches the end", async () => {
    const scene = await openScene();
    await scene.commit(...many(5_000, () => logged("n2")));
    expect((await walk(scene, 0, 32)).found).toEqual([]);
    expect(await catchUp(scene, 4_999)).toEqual({ items: [], cursor: 5_000, atEnd: true });
  });

  test("a full batch ends at its last event, however many follow", async () => {
    const scene = await openScene();
    await scene.commit(...many(10, () => logged("n1")), logged("n2"));
    const ids = (from: number, to: number) => many(to - from + 1, () => logged(null)).map((_, i) => from + i);
    const items = (from: number, to: number) => ids(from, to).map((id) => `${id} task.created`);
    expect(await catchUp(scene, 0, 5)).toEqual({ items: items(1, 5), cursor: 5, atEnd: false });
    expect(await catchUp(scene, 5, 5)).toEqual({ items: items(6, 10), cursor: 10, atEnd: false });
    expect(await catchUp(scene, 10, 5)).toEqual({ items: [], cursor: 11, atEnd: true });
    expect(await catchUp(scene, 5, 6)).toEqual({ items: items(6, 10), cursor: 11, atEnd: true });
  });

  test("a full batch that ends with the log is at the end", async () => {
    const scene = await openScene();
    await scene.commit(...many(4, () => logged("n1")));
    expect(await catchUp(scene, 2, 2)).toMatchObject({ cursor: 4, atEnd: true });
    expect(await catchUp(scene, 1, 2)).toMatchObject({ cursor: 3, atEnd: false });
  });

  test("the node's events that no stream shows are skipped, a whole batch of them too", async () => {
    const scene = await openScene();
    const quiet = EVENT_KINDS.filter((kind) => !isTaskEvent(kind) && kind !== "message.sent");
    await scene.commit(...quiet.map((kind) => logged("n1", kind)), logged("n1"));
    expect(await catchUp(scene, 0, 3)).toEqual({ items: [], cursor: 3, atEnd: false });
    const last = quiet.length + 1;
    expect((await walk(scene, 0, 3)).found).toEqual([`${last} task.created`]);
    expect(await catchUp(scene, 0, last + 1)).toEqual({
      items: [`${last} task.created`],
      cursor: last,
      atEnd: true,
    });
  });

  test("every kind of task event is shown", async () => {
    const scene = await openScene();
    const kinds = EVENT_KINDS.filter(isTaskEvent);
    await scene.commit(...kinds.map((kind) => logged("n1", kind)));
    expect((await catchUp(scene, 0)).items).toEqual(kinds.map((kind, i) => `${i + 1} ${kind}`));
  });

  test("from beyond the end: no events, and the cursor stays", async () => {
    const scene = await openScene();
    await scene.commit(...many(3, () => logged("n1")));
    for (const since of [3, 4, 1_000_000])
      expect(await catchUp(scene, since)).toEqual({ items: [], cursor: since, atEnd: true });
  });

  test("messages come with their content, in order with the task events; a pruned one is left out", async () => {
    const scene = await openScene();
    await scene.commit(...sent("m1", "n1"), logged("n1"), ...sent("m2", "n2"), ...sent("m3", "n1"));
    const items = await shown(scene.feed, (await scene.feed.catchUp("n1", 0, 32)).events);
    expect(items.map(words)).toEqual(["1 message m1", "2 task.created", "4 message m3"]);
    expect(items[0]).toEqual({ kind: "message", eventId: 1, message: message("m1") });
    await scene.commit({
      kind: "messages.pruned",
      before: Number.MAX_SAFE_INTEGER,
      limit: 1,
      now: Number.MAX_SAFE_INTEGER,
    });
    expect((await catchUp(scene, 0)).items).toEqual(["2 task.created", "4 message m3"]);
  });

  test("a log whose beginning was pruned", async () => {
    const scene = await openScene();
    await scene.commit(...many(6_000, (i) => logged(i === 5_500 ? "n1" : "n2")));
    await scene.commit({ kind: "events.pruned", before: 2, limit: 5_000, now: 2 });
    expect((await walk(scene, 0, 32)).found).toEqual(["5501 task.created"]);
  });

  test("catching up ends at the last commit that it reads, and continues from there", async () => {
    const scene = await openScene();
    await scene.commit(logged("n1"));
    const first = await catchUp(scene, 0);
    await scene.commit(logged("n2"), logged("n1"));
    expect(first).toEqual({ items: ["1 task.created"], cursor: 1, atEnd: true });
    expect(await catchUp(scene, first.cursor)).toEqual({ items: ["3 task.created"], cursor: 3, atEnd: true });
  });
});

describe("events by id", () => {
  test("in the order of the log, messages with their content, without hidden kinds and missing ids", async () => {
    const { feed, commit } = await openScene();
    await commit(...sent("m1", "n1"), logged("n1"), logged("n1", "node.online"), ...sent("m2", "n1"));
    const items = async (...ids: number[]) => (await shown(feed, await feed.eventsById(ids))).map(words);
    expect(await items(4, 2, 1)).toEqual(["1 message m1", "2 task.created", "4 message m2"]);
    expect(await items(3)).toEqual([]);
    expect(await items(2, 99)).toEqual(["2 task.created"]);
    expect(await items()).toEqual([]);
  });

  test("as many as a stream reads at once", async () => {
    const { feed, commit } = await openScene();
    const ids = Array.from({ length: 45 }, (_, i) => i + 1);
    await commit(...ids.map((id) => `m${id}`).flatMap((id) => sent(id, "n1")));
    expect((await shown(feed, await feed.eventsById(ids))).map(words)).toEqual(
      ids.map((id) => `${id} message m${id}`),
    );
  });
});

describe("subscribing", () => {
  test("notifies of the ids of the node's events, in order, after they are on disk", async () => {
    const { feed, store, commit, faults } = await openScene();
    const told: number[] = [];
    const readable: boolean[] = [];
    feed.subscribe("n1", (eventId) => {
      told.push(eventId);
      void store
        .read(eventsAfter(eventId - 1, [], 1))
        .then(([event]) => readable.push(event?.id === eventId && event.nodeId === "n1"));
    });
    await commit(logged("n2"), logged("n1"), logged(null), logged("n1", "node.online"));
    await Promise.all([
      commit(logged("n1")),
      commit(...sent("m1", "n2")),
      commit(...sent("m2", "n1"), logged("n2"), logged("n1")),
    ]);
    expect(told).toEqual([2, 4, 5, 7, 9]);
    await until(() => readable.length === told.length);
    expect(readable).toEqual([true, true, true, true, true]);
    expect(faults).toEqual([]);
  });

  test("does not notify of earlier events, nor of other changes", async () => {
    const { feed, commit } = await openScene();
    await commit(logged("n1"));
    const told: number[] = [];
    feed.subscribe("n1", (eventId) => told.push(eventId));
    await commit({ kind: "task.deleted", taskId: "t" }, { kind: "node.offline", nodeId: "n1" });
    expect(told).toEqual([]);
  });

  test("all subscribers of a node are notified, until each unsubscribes", async () => {
    const { feed, commit } = await openScene();
    const told: string[] = [];
    const unsubscribe = ["a", "b", "c"].map((name) =>
      feed.subscribe("n1", (id) => told.push(`${name}${id}`)),
    );
    const other = feed.subscribe("n2", (id) => told.push(`other${id}`));
    await commit(logged("n1"));
    unsubscribe[1]?.();
    await commit(logged("n1"));
    unsubscribe[0]?.();
    unsubscribe[2]?.();
    await commit(logged("n1"));
    feed.subscribe("n1", (id) => told.push(`d${id}`));
    await commit(logged("n1"), logged("n2"));
    other();
    await commit(logged("n2"));
    expect(told).toEqual(["a1", "b1", "c1", "a2", "c2", "d4", "other5"]);
  });

  test("a subscriber that unsubscribes during a notification gets no more of that commit", async () => {
    const { feed, commit, faults } = await openScene();
    const told: string[] = [];
    const end = feed.subscribe("n1", (id) => {
      told.push(`a${id}`);
      end();
    });
    feed.subscribe("n1", (id) => told.push(`b${id}`));
    await commit(logged("n1"), logged("n1"));
    expect({ told, faults }).toEqual({ told: ["a1", "b1", "b2"], faults: [] });
  });
});

describe("what was committed just now", () => {
  /** A feed with a stream, which remembers, and one that asks the store for everything. */
  async function openPair() {
    const scene = await openScene();
    return { ...scene, remembering: scene.feed, forgetful: new Feed(scene.store, systemClock()) };
  }

  /** What the streams of some nodes show of the whole log: from memory as far as that goes, else from the store. */
  async function shownTo(feed: Feed, nodeIds: readonly string[]): Promise<readonly (StreamItem | null)[]> {
    const events = await feed.eventsById(many(await feed.lastId(), () => logged(null)).map((_, i) => i + 1));
    const items: (StreamItem | null)[] = [];
    for (const nodeId of nodeIds) {
      const selection = feed.ofNode(nodeId);
      for (const event of events) {
        if (event.kind === "message.sent" && ![nodeId, null].includes(event.nodeId)) continue; // no stream of it is notified
        const item = await selection.itemOf(event);
        const recent = selection.recentItem(event.id);
        if (recent !== undefined) expect(recent).toEqual(item);
        items.push(item);
      }
    }
    return items;
  }

  const toAll = (messageId: string, content = ""): Change => ({
    kind: "message.stored",
    message: message(messageId, { toNode: null, content }),
  });
  const queued = (messageId: string, ...toNodes: readonly string[]): Change => ({
    kind: "deliveries.queued",
    messageId,
    toNodes,
  });
  const published = (messageId: string, receivers: number): readonly Change[] => [
    { kind: "broadcast.saved", messageId, writeUntil: null, waiting: receivers },
    logged(null, "message.sent", { message_id: messageId, receivers }),
  ];

  test("is shown as the store has it, without a query", async () => {
    const { store, commit, remembering, forgetful } = await openPair();
    remembering.subscribe("n1", () => {});
    await commit(...EVENT_KINDS.filter((kind) => kind !== "message.sent").map((kind) => logged("n1", kind)));
    await commit(logged("n2", "message.acked", { message_id: "m0", from_node: "n1", more: 1, not: null }));
    await commit(...markVerified("n1", [logged("n1"), ...sent("m1", "n1")]), ...sent("m2", "n2"));
    await commit(toAll("m3"), queued("m3", "n1", "n2"), ...published("m3", 2));
    await commit(toAll("m4"), queued("m4", "n2"));
    await commit(...sent("m5", "n1"));
    await commit(queued("m4", "n3"));
    await commit(...published("m4", 2));
    await commit(toAll("m6"), ...published("m6", 0));
    const nodeIds = ["n1", "n2", "n3"];
    const fromStore = await shownTo(forgetful, nodeIds);
    const reads = spyOn(store, "read");
    expect(await shownTo(remembering, nodeIds)).toEqual([...fromStore]);
    expect(reads).toHaveBeenCalledTimes(1); // the id of the last event
  });

  test("is read from the store when it is not all known, or no longer", async () => {
    const { commit, remembering, forgetful } = await openPair();
    await commit(toAll("m1"), queued("m1", "n2"));
    remembering.subscribe("n1", () => {}); // in the middle of a broadcast
    await commit(queued("m1", "n1"));
    await commit(...published("m1", 2));
    await commit(toAll("m2"), queued("m2", "n1"));
    for (const id of ["m3", "m4", "m5"]) await commit(toAll(id)); // more than are ever being written
    await commit(...published("m2", 1));
    const large = "x".repeat(RECENT_EVENTS_MAX_WEIGHT);
    await commit(toAll("m6", large), queued("m6", "n1"), ...published("m6", 1));
    expect(await shownTo(remembering, ["n1", "n2"])).toEqual([...(await shownTo(forgetful, ["n1", "n2"]))]);
    expect(remembering.ofNode("n1").recentItem(1)).toBeUndefined();
    expect(remembering.ofNode("n1").recentItem(3)).toMatchObject({ message: { messageId: "m6" } });
    await commit(...many(RECENT_EVENTS_MAX, () => logged("n1")));
    expect(remembering.ofNode("n1").recentItem(3)).toBeUndefined();
    expect(remembering.ofNode("n1").recentItem(4)).toMatchObject({ kind: "event" });
  });
});

const NEVER = new AbortController().signal;

describe("poll", () => {
  test("answers at once with the events after the cursor, and a new cursor", async () => {
    const { feed, commit } = await openScene();
    await commit(
      logged("n1"),
      logged(null, "node.online"),
      logged("n2", "task.completed"),
      logged(null, "lux.paid"),
    );
    const kinds = async (since: number) => {
      const { events, cursor } = await feed.poll(since, 0, NEVER);
      return [...events.map((event) => `${event.id} ${event.kind}`), cursor];
    };
    expect(await kinds(0)).toEqual(["1 task.created", "3 task.completed", 3]);
    expect(await kinds(1)).toEqual(["3 task.completed", 3]);
    expect(await kinds(3)).toEqual([3]);
    expect(await kinds(50)).toEqual([4]);
    expect(feed.waiting).toBe(0);
  });

  test("a batch has at most EVENTS_MAX events, and the next one continues after them", async () => {
    const { feed, commit } = await openScene();
    await commit(...many(EVENTS_MAX + 5, () => logged("n1")));
    const first = await feed.poll(0, 0, NEVER);
    expect({ length: first.events.length, cursor: first.cursor }).toEqual({
      length: EVENTS_MAX,
      cursor: EVENTS_MAX,
    });
    expect((await feed.poll(first.cursor, 0, NEVER)).events).toHaveLength(5);
  });

  test("polls that wait on the same cursor share one query, others have their own", async () => {
    const { store, feed, commit } = await openScene();
    await commit(logged("n1"), logged("n1"));
    const polls = [...new Array<number>(100).fill(2), 1, 1].map((since) => feed.poll(since, 5_000, NEVER));
    await Promise.all(polls.slice(100));
    expect(feed.waiting).toBe(100);
    const reads = spyOn(store, "read");
    await commit(logged("n2"));
    const late = feed.poll(2, 5_000, NEVER);
    const batches = await Promise.all([...polls.slice(0, 100), late]);
    for (const { events, cursor } of batches)
      expect([events[0]?.id, events.length, cursor]).toEqual([3, 1, 3]);
    expect(reads.mock.calls.length).toBeLessThanOrEqual(3); // theirs, and the two of the poll that came late
    const next = feed.poll(3, 5_000, NEVER);
    await commit(logged("n2"));
    expect((await next).cursor).toBe(4);
  });

  test("a read that began before a commit is not shared with a poll that comes after it", async () => {
    const { store, feed, commit } = await openScene();
    await commit(logged("n1"));
    const held = Promise.withResolvers<void>();
    const read = store.read.bind(store);
    spyOn(store, "read").mockImplementation(async (query) => {
      const rows = await read(query);
      if (query.sql.includes("kind")) await held.promise;
      return rows;
    });
    const early = feed.poll(1, 5_000, NEVER);
    await Bun.sleep(0);
    await commit(logged("n1"));
    mock.restore();
    expect((await feed.poll(1, 0, NEVER)).cursor).toBe(2);
    held.resolve();
    expect((await early).cursor).toBe(2);
  });

  test("waits for the first task event, whosever it is; other events do not end it", async () => {
    const { feed, commit } = await openScene();
    await commit(logged("n1"));
    let answered = 0;
    const polls = [feed.poll(null, 5_000, NEVER), feed.poll(1, 5_000, NEVER), feed.poll(0, 5_000, NEVER)];
    for (const poll of polls) void poll.then(() => answered++);
    await commit(...sent("m", "n1"), logged("n1", "node.online"));
    await until(() => answered > 0 && feed.waiting === 2);
    expect(answered).toBe(1);
    await commit(logged("n2", "task.deleted"), logged(null, "task.created"));
    const [now, later, before] = await Promise.all(polls);
    expect(before?.events.map(({ id }) => id)).toEqual([1]);
    for (const poll of [now, later]) {
      expect(poll?.events.map(({ id }) => id)).toEqual([4, 5]);
      expect(poll?.cursor).toBe(5);
    }
    expect(feed.waiting).toBe(0);
  });

  test("a commit during the read is not missed", async () => {
    const { feed, commit } = await openScene();
    for (let i = 0; i < 200; i++) {
      const cursor = await feed.lastId();
      const poll = feed.poll(cursor, 2_000, NEVER);
      if (i % 3) for (let turn = 0; turn < i % 7; turn++) await Promise.resolve();
      void commit(logged("n1"));
      expect((await poll).events.map(({ id }) => id)).toEqual([cursor + 1]);
    }
  });

  test("a task event at any position in its commit wakes polls", async () => {
    const { feed, commit } = await openScene();
    const [task, other] = [logged("n1", "task.completed"), logged("n1", "lux.paid")];
    for (const changes of [
      [task, other],
      [other, task],
      [other, task, other],
    ]) {
      const poll = feed.poll(null, 2_000, NEVER);
      await until(() => feed.waiting === 1);
      await commit(...changes);
      expect((await poll).events.map(({ kind }) => kind)).toEqual(["task.completed"]);
    }
  });

  test("after the deadline: an empty answer with the given cursor, else the end of the log at the start of the poll", async () => {
    const { feed, commit } = await openScene();
    await commit(logged("n1"), logged("n1"));
    const started = performance.now();
    expect(await feed.poll(2, 30, NEVER)).toEqual({ events: [], cursor: 2 });
    expect(await feed.poll(null, 30, NEVER)).toEqual({ events: [], cursor: 2 });
    expect(performance.now() - started).toBeGreaterThanOrEqual(55);
    expect(feed.waiting).toBe(0);
  });

  test("a cursor past the end of the log: answered at once, with the end of the log as cursor", async () => {
    const { feed, commit } = await openScene();
    await commit(logged("n1"));
    const far = Number.MAX_SAFE_INTEGER;
    const { cursor, events } = await feed.poll(99, far, NEVER);
    expect([events, cursor]).toEqual([[], 1]);
    const next = feed.poll(cursor, far, NEVER);
    await commit(logged("n1", "task.completed"));
    expect(await next).toMatchObject({ events: [{ id: 2, kind: "task.completed" }], cursor: 2 });
  });

  test("the poll ends when its caller hangs up", async () => {
    const { feed } = await openScene();
    const caller = new AbortController();
    const poll = feed.poll(0, 60_000, caller.signal);
    await until(() => feed.waiting === 1);
    caller.abort();
    await expect(poll).rejects.toThrow(WaitAborted);
    expect(feed.waiting).toBe(0);
  });

  test("drained: waiting polls and later ones get an empty answer, but events that are there are still returned", async () => {
    const { feed, commit } = await openScene();
    await commit(logged("n1"));
    const waits = [feed.poll(1, 60_000, NEVER), feed.poll(null, 60_000, NEVER)];
    const mail = feed.receivers.join("n1");
    const received = mail.wait(60_000);
    await until(() => feed.waiting === waits.length + 1); // and the receive
    feed.drain();
    expect(await Promise.all(waits)).toEqual([
      { events: [], cursor: 1 },
      { events: [], cursor: 1 },
    ]);
    expect(await received).toBe("drained");
    mail.leave();
    expect(await feed.poll(1, 60_000, NEVER)).toEqual({ events: [], cursor: 1 });
    expect((await feed.poll(0, 60_000, NEVER)).events).toHaveLength(1);
    expect(feed.waiting).toBe(0);
  });
});

describe("the wait queue of a mailbox", () => {
  test("a delivery that can be received wakes a receive of its node, and no other", async () => {
    const { feed, commit } = await openScene();
    const moved = { messageId: "m", seq: 1, toNode: "n1", deliveries: 1, leaseUntil: null } as const;
    const rows: readonly (readonly [string, readonly Change[], string, string])[] = [
      ["a message for it", sent("m", "n1"), "woken", "timeout"],
      ["a message for another", sent("o", "n2"), "timeout", "woken"],
      ["one that comes back", [{ kind: "delivery.moved", ...moved, state: "waiting" }], "woken", "timeout"],
      [
        "one that is taken",
        [{ kind: "delivery.moved", ...moved, state: "leased", leaseUntil: 1 }],
        "timeout",
        "timeout",
      ],
      ["one that is acked", [{ kind: "delivery.moved", ...moved, state: "acked" }], "timeout", "timeout"],
      ["a task event", [logged("n1")], "timeout", "timeout"],
    ];
    for (const [name, changes, first, second] of rows) {
      const waiters = ["n1", "n2"].map((nodeId) => feed.receivers.join(nodeId));
      await commit(...changes);
      const outcomes = await Promise.all(waiters.map((waiter) => waiter.wait(0)));
      expect([name, ...outcomes]).toEqual([name, first, second]);
      for (const waiter of waiters) waiter.leave();
    }
    expect(feed.waiting).toBe(0);
  });
});

describe("events", () => {
  test("after a cursor, of all kinds or of one, up to the limit, with a new cursor", async () => {
    const { feed, commit } = await openScene();
    await commit(...many(30, (i) => logged("n1", i % 3 ? "task.created" : "node.online")));
    const ask = async (since: number | null, kind: EventKind | null, limit: number) => {
      const { events, cursor } = await feed.events(since, of(kind), limit);
      return { ids: events.map(({ id }) => id), cursor };
    };
    expect(await ask(0, null, 3)).toEqual({ ids: [1, 2, 3], cursor: 3 });
    expect(await ask(28, null, 100)).toEqual({ ids: [29, 30], cursor: 30 });
    expect(await ask(30, null, 100)).toEqual({ ids: [], cursor: 30 });
    expect(await ask(99, null, 100)).toEqual({ ids: [], cursor: 30 });
    expect(await ask(99, "lux.paid", 100)).toEqual({ ids: [], cursor: 30 });
    expect(await ask(0, "node.online", 2)).toEqual({ ids: [1, 4], cursor: 4 });
    expect(await ask(4, "node.online", 2)).toEqual({ ids: [7, 10], cursor: 10 });
    expect(await ask(28, "node.online", 2)).toEqual({ ids: [], cursor: 28 });
    expect(await ask(0, "lux.paid", 2)).toEqual({ ids: [], cursor: 0 });
  });

  test("the newest, oldest of them first; with none, the cursor is the end of the log", async () => {
    const { feed, commit } = await openScene();
    expect(await feed.events(null, of(null), 10)).toEqual({ events: [], cursor: 0 });
    await commit(...many(30, (i) => logged("n1", i % 3 ? "task.created" : "node.online")));
    const ask = async (kind: EventKind | null, limit: number) => {
      const { events, cursor } = await feed.events(null, of(kind), limit);
      return { ids: events.map(({ id }) => id), cursor };
    };
    expect(await ask(null, 3)).toEqual({ ids: [28, 29, 30], cursor: 30 });
    expect(await ask("task.created", 2)).toEqual({ ids: [29, 30], cursor: 30 });
    expect(await ask("node.online", 2)).toEqual({ ids: [25, 28], cursor: 28 });
    expect(await ask("lux.paid", 2)).toEqual({ ids: [], cursor: 30 });
  });
});

test("the first event of a kind, committed while the newest of that kind are read, is after the cursor", async () => {
  const { store, commit } = await openScene();
  await commit(logged("n1"));
  let reads = 0;
  const busy = standIn(store, {
    read: async (query) => {
      const found = await store.read(query);
      if (++reads === 1) await commit(logged("n1", "file.uploaded")); // as on PostgreSQL, where a read is no moment
      return found;
    },
  });
  const feed = new Feed(busy, systemClock());
  const { events, cursor } = await feed.events(null, of("file.uploaded"), 10);
  const { events: later } = await feed.events(cursor, of("file.uploaded"), 10);
  expect([...events, ...later].map(({ kind }) => kind)).toEqual(["file.uploaded"]);
});
