/**
 * What changes leave in the rows, on every engine: retention, nodes that are deleted or register again, leases,
 * heartbeats, stored answers.
 */
import { expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import type { LedgerEntry } from "../../src/domain/model.ts";
import { saved } from "../../src/domain/node.ts";
import * as balancer from "../../src/store/sql/balancer.ts";
import * as keyReads from "../../src/store/sql/keys.ts";
import * as mail from "../../src/store/sql/messages.ts";
import * as retention from "../../src/store/sql/retention.ts";
import * as eventReads from "../../src/store/sql/events.ts";
import * as nodeReads from "../../src/store/sql/nodes.ts";
import * as taskReads from "../../src/store/sql/tasks.ts";
import { NOW, message, node, question, tally, task } from "../domain/samples.ts";
import {
  type Engine,
  ENGINES,
  event,
  names,
  openFresh,
  outcome,
  prepareStores,
  suiteOf,
  write,
} from "./store-engines.ts";
import { HOUR_MS } from "../../src/lib/clock.ts";
import { DAY, idOf } from "./store-rows.ts";

await prepareStores();

const { oldAnswers, oldEvents, oldMessages } = retention;

for (const engine of ENGINES) suiteOf(engine)("writes", () => writesOf(engine));

function writesOf(engine: Engine): void {
  test("the steps of a task wait for no other write of it, whatever stands between them", async () => {
    const { store } = await openFresh(engine);
    const result = { problem: "p", improvement: "i", lesson: "l", extra: null };
    const held = task("t", { status: "assigned", assignedNode: "n", epoch: 1 });
    const done = task("t", { status: "completed", assignedNode: "n", epoch: 1, result });
    const again = task("t", { epoch: 2 });
    await write(
      store,
      { kind: "task.created", task: task("t") },
      { kind: "task.created", task: task("gone") },
      { kind: "task.moved", task: held },
      { kind: "task.moved", task: done },
      { kind: "result.removed", taskId: "t" },
      { kind: "task.moved", task: again },
      { kind: "task.moved", task: task("gone", { epoch: 1 }) },
      { kind: "task.deleted", taskId: "gone" },
    );
    const all = await store.read(taskReads.tasksById(["t", "gone"])); // the cache has no part in it
    expect(all).toMatchObject([{ taskId: "t", status: "open", epoch: 2, result: null }]);
  });

  test("old rows: the same are counted and deleted, oldest first, up to the limit, never the newest event", async () => {
    const { store, place } = await openFresh(engine);
    // Every other one is a broadcast, to three nodes.
    const changes = Array.from({ length: 10 }, (_, i): Change[] => [
      { kind: "message.stored", message: message(`m${i}`, { sentAt: i, toNode: i % 2 ? null : "a" }) },
      i % 2
        ? { kind: "deliveries.queued", messageId: `m${i}`, toNodes: ["a", "b", "c"] }
        : { kind: "delivery.queued", messageId: `m${i}`, toNode: "a" },
      event(`${i}`, { at: i }),
      {
        kind: "answer.stored",
        answer: { scope: `s${9 - i}`, asked: "h", status: 200, body: "{}", storedAt: i },
      },
    ]);
    await write(store, ...changes.flat());
    const counts = async (before: number, limit: number) =>
      Promise.all(
        [oldMessages, oldEvents, oldAnswers].map((query) => store.read(query({ before, limit, now: 100 }))),
      );
    expect(await counts(0, 100)).toEqual([0, 0, 0]);
    expect(await counts(4, 100)).toEqual([4, 4, 4]);
    expect(await counts(4, 3)).toEqual([3, 3, 3]);
    expect(await counts(100, 100)).toEqual([10, 9, 10]);

    const prune = (before: number, limit: number): Promise<null> =>
      write(
        store,
        { kind: "deliveries.pruned", broadcast: false, before, limit, now: 100 },
        { kind: "deliveries.pruned", broadcast: true, before, limit, now: 100 },
        { kind: "messages.pruned", before, limit, now: 100 },
        { kind: "events.pruned", before, limit, now: 100 },
        { kind: "answers.pruned", before, limit },
      );
    const left = async () =>
      Promise.all(
        ["messages", "deliveries", "events", "answers"].map((name) =>
          place.look(`SELECT count(*) AS n FROM ${name}`),
        ),
      );
    expect(await left()).toEqual([10, 20, 10, 10]);
    await prune(4, 3);
    expect(await left()).toEqual([7, 15, 7, 7]);
    expect(await place.look("SELECT min(seq) AS n FROM deliveries")).toBe(4);
    expect(await store.read(mail.messageById("m2"))).toBeNull();
    expect(await store.read(mail.messageById("m3"))).not.toBeNull();
    expect(await store.read(keyReads.storedAnswer("s9", -1))).toBeNull();
    await prune(100, 100);
    expect(await left()).toEqual([0, 0, 1, 0]);
    await write(store, event("next"));
    expect(await store.read(eventReads.lastEventId())).toBe(11);
  });

  test("rows dated later than now stay, and older rows behind them are deleted", async () => {
    const { store, place } = await openFresh(engine);
    const stored = (id: string, at: number): Change[] => [
      { kind: "message.stored", message: message(id, { sentAt: at }) },
      event(id, { at }),
    ];
    await write(store, ...["f1", "f2", "f3"].flatMap((id) => stored(id, 1_000)));
    await write(store, ...["o1", "o2"].flatMap((id) => stored(id, 1)), ...stored("young", 9));
    const limits = { before: 5, limit: 2, now: 10 };
    expect(await store.read(oldMessages(limits))).toBe(2);
    expect(await store.read(oldEvents(limits))).toBe(2);
    await write(store, { kind: "messages.pruned", ...limits }, { kind: "events.pruned", ...limits });
    for (const table of ["messages", "events"])
      expect(await place.look(`SELECT count(*) AS n FROM ${table}`)).toBe(4);
    expect(await store.read(mail.messageById("o2"))).toBeNull();
    expect(await store.read(mail.messageById("f1"))).not.toBeNull();
  });

  test("live stored answers are shifted by a clock jump, the others are not", async () => {
    const { store, place } = await openFresh(engine);
    const ages = { past: 10, live: 11, now: 20, ahead: 21 };
    const answer = { asked: "h", status: 200, body: "{}" };
    const rows = Object.entries(ages);
    await write(
      store,
      ...rows.map(([scope, storedAt]): Change => ({
        kind: "answer.stored",
        answer: { ...answer, scope, storedAt },
      })),
    );
    await write(store, { kind: "answers.shifted", after: 10, upTo: 20, movedMs: -5 });
    const at = async (scope: string) =>
      place.look(`SELECT stored_at AS n FROM answers WHERE scope = '${scope}'`);
    expect(await Promise.all(rows.map(([scope]) => at(scope)))).toEqual([10, 6, 15, 21]);
  });

  test("the deliveries of broadcasts and of other messages are deleted in separate steps", async () => {
    const { store, place } = await openFresh(engine);
    await write(
      store,
      { kind: "message.stored", message: message("one", { toNode: "a", sentAt: 1 }) },
      { kind: "delivery.queued", messageId: "one", toNode: "a" },
      { kind: "message.stored", message: message("all", { toNode: null, sentAt: 2 }) },
      { kind: "deliveries.queued", messageId: "all", toNodes: ["a", "b"] },
      { kind: "message.stored", message: message("young", { toNode: "a", sentAt: 9 }) },
      { kind: "delivery.queued", messageId: "young", toNode: "a" },
    );
    const left = (): Promise<number> =>
      place.look("SELECT sum(seq * 10 + CASE to_node WHEN 'b' THEN 1 ELSE 0 END) AS n FROM deliveries");
    const old = { before: 5, limit: 100, now: 100 };
    expect(await left()).toBe(10 + 20 + 21 + 30);
    await write(store, { kind: "deliveries.pruned", broadcast: false, ...old });
    expect(await left()).toBe(20 + 21 + 30);
    await write(store, { kind: "deliveries.pruned", broadcast: true, ...old });
    expect(await left()).toBe(30);
  });

  test("a delivery of a missing message is refused", async () => {
    const { store } = await openFresh(engine);
    const queued: Change = { kind: "delivery.queued", messageId: "none", toNode: "a" };
    expect(await outcome(write(store, queued, event("never")))).toBeInstanceOf(Error);
    expect(await names(store)).toEqual([]);
  });

  test("a stored answer is found until it is too old, and a newer one replaces it", async () => {
    const { store } = await openFresh(engine);
    const answer = { scope: "s", asked: "h", status: 409, body: '{"ä":1}', storedAt: 50 };
    await write(store, { kind: "answer.stored", answer });
    expect(await store.read(keyReads.storedAnswer("s", 49))).toEqual({
      asked: "h",
      status: 409,
      body: '{"ä":1}',
    });
    expect(await store.read(keyReads.storedAnswer("s", 50))).toBeNull();
    expect(await store.read(keyReads.storedAnswer("t", 0))).toBeNull();
    await write(store, { kind: "answer.stored", answer: { ...answer, asked: "i", storedAt: 90 } });
    expect(await store.read(keyReads.storedAnswer("s", 60))).toMatchObject({ asked: "i" });
  });

  test("hasEmptyMailbox: of a registered node for which nothing waits, also no part of a broadcast", async () => {
    const { store } = await openFresh(engine);
    const isEmpty = () => Promise.all(["n1", "n2"].map((nodeId) => store.read(mail.hasEmptyMailbox(nodeId))));
    expect(await isEmpty()).toEqual([false, false]);
    await write(store, ...saved(node("n1")), ...saved(node("n2")));
    expect(await isEmpty()).toEqual([true, true]);
    await write(
      store,
      { kind: "message.stored", message: message("m1", { toNode: "n1" }) },
      { kind: "delivery.queued", messageId: "m1", toNode: "n1" },
    );
    expect(await isEmpty()).toEqual([false, true]);
    const [delivery] = await store.read(mail.waitingDeliveries("n1", 1));
    const gone = { state: "gone", deliveries: 1, leaseUntil: null } as const;
    await write(store, {
      kind: "delivery.moved",
      messageId: "m1",
      seq: delivery?.seq ?? 0,
      toNode: "n1",
      ...gone,
    });
    expect(await isEmpty()).toEqual([true, true]);
    await write(
      store,
      { kind: "message.stored", message: message("m2", { toNode: null }) },
      { kind: "deliveries.queued", messageId: "m2", toNodes: ["n2"] },
      { kind: "broadcast.saved", messageId: "m2", writeUntil: 1, waiting: 1 },
    );
    expect(await isEmpty()).toEqual([true, false]);
    await write(store, { kind: "node.deleted", nodeId: "n1" });
    expect(await isEmpty()).toEqual([false, false]);
  });

  test("a deleted node is found by no query but its own, keeps its totals, and may register again", async () => {
    const { store } = await openFresh(engine);
    const first = node("n1", { registeredAt: 1, tasksCompleted: 1 });
    const done = task("t1", { status: "assigned", assignedNode: "n1" });
    await write(store, ...saved(first));
    expect(await store.read(mail.mailboxOwner("n1"))).toEqual({ nodeId: "n1" });
    await write(
      store,
      { kind: "task.created", task: done },
      tally({ nodeId: "n1", assigned: 1, completed: 1, entries: 3, idleSince: 44 }),
      { kind: "node.deleted", nodeId: "n1" },
      tally({ nodeId: "n1", balanceMicro: 5, idleSince: 45 }),
    );
    const found = await Promise.all([
      store.read(nodeReads.nodeById("n1")),
      store.read(nodeReads.pulseOf("n1")),
      store.read(nodeReads.nodesAfter("", 10)),
      store.read(nodeReads.nodesById(["n1"])),
      store.read(nodeReads.topNodes(10)),
      store.read(nodeReads.nodePart("", 500)).then(({ online }) => online),
      store.read(nodeReads.nodesCount()),
      store.read(nodeReads.deletedNodesCount()),
      store.read(mail.mailboxOwner("n1")),
      store.read(balancer.candidatesFor("", null)).then(({ best }) => best),
    ]);
    expect(found).toEqual([null, null, [], [], [], [], 0, 1, null, []]);
    const former = await store.read(nodeReads.deletedNode("n1"));
    expect(former).toMatchObject({ online: false, entries: 3, balanceMicro: 5n, tasksCompleted: 1 });
    expect((await store.read(taskReads.tasksOfDeleted(10))).map(idOf)).toEqual(["t1"]);
    expect(await store.read(taskReads.strandedTasks(10))).toEqual([]);
    await write(store, ...saved({ ...first, registeredAt: 9, name: "again" }));
    expect(await store.read(nodeReads.deletedNode("n1"))).toBeNull();
    const again = { registeredAt: 9, name: "again", online: true, entries: 3, balanceMicro: 5n };
    expect(await store.read(nodeReads.nodeById("n1"))).toMatchObject(again);
    expect(await store.read(nodeReads.nodesCount())).toBe(1);
  });

  test("a node that registers again keeps its totals; leases are renewed by variant", async () => {
    const { store } = await openFresh(engine);
    const first = node("n1", { variant: "A", registeredAt: 1 });
    const own = { entries: 7, balanceMicro: 2n ** 53n - 1n };
    await write(
      store,
      ...saved(first),
      ...saved(node("n2", { variant: "B" })),
      ...saved(node("n3", { variant: "A", leaseUntil: 5 })),
      { kind: "node.offline", nodeId: "n3" },
      tally({
        nodeId: "n1",
        assigned: 2,
        completed: 1,
        luxEarnedMicro: 7,
        idleSince: 44,
        entries: 7,
        balanceMicro: 2 ** 53 - 1,
      }),
      tally({ nodeId: "n1", idleSince: 44 }),
      { kind: "node.offline", nodeId: "n1" },
      ...saved({ ...first, name: "New", idleSince: 0 }),
      { kind: "node.leases.renewed", variant: "A", leaseUntil: 1_234 },
    );
    const totals = { tasksAssigned: 2, tasksCompleted: 1, luxEarnedMicro: 7n, idleSince: 44, ...own };
    expect(await store.read(nodeReads.nodeById("n1"))).toEqual({
      ...first,
      ...totals,
      name: "New",
      leaseUntil: 1_234,
    });
    expect(await store.read(nodeReads.nodeById("n2"))).toMatchObject({ leaseUntil: node("n2").leaseUntil });
    expect(await store.read(nodeReads.nodeById("n3"))).toMatchObject({ online: false, leaseUntil: 5 });
    await write(store, { kind: "node.beaten", nodeId: "n3", lastHeartbeatAt: 8, leaseUntil: 9 });
    expect(await store.read(nodeReads.nodeById("n3"))).toMatchObject({
      online: false,
      lastHeartbeatAt: 8,
      leaseUntil: 9,
    });
    await write(store, { kind: "node.returned", nodeId: "n3" });
    expect(await store.read(nodeReads.nodeById("n3"))).toMatchObject({ online: true, lastHeartbeatAt: 8 });
  });

  test("leases of tasks are renewed: the timeout and the whole attempt begin again, and the first to end counts", async () => {
    const { store } = await openFresh(engine);
    const limits = [
      { taskId: "timeout", timeoutMs: 30, maxRunMs: null, leaseUntil: 1_030, runUntil: null },
      { taskId: "run", timeoutMs: null, maxRunMs: 50, leaseUntil: 1_050, runUntil: 1_050 },
      { taskId: "both", timeoutMs: 30, maxRunMs: 50, leaseUntil: 1_030, runUntil: 1_050 },
      { taskId: "short", timeoutMs: 50, maxRunMs: 20, leaseUntil: 1_020, runUntil: 1_020 },
      { taskId: "none", timeoutMs: null, maxRunMs: null, leaseUntil: null, runUntil: null },
    ];
    for (const { taskId, leaseUntil, runUntil, ...given } of limits) {
      const held = { status: "assigned", assignedNode: "n1", restarts: 3 } as const;
      const before = { leaseUntil: leaseUntil && 7, runUntil: runUntil && 9 };
      await write(store, { kind: "task.created", task: task(taskId, { ...held, ...given, ...before }) });
    }
    expect((await store.read(taskReads.timedOutTasks(8, 10))).map(idOf).toSorted()).toEqual(
      limits
        .map(({ taskId }) => taskId)
        .filter((taskId) => taskId !== "none")
        .toSorted(),
    );
    await write(store, { kind: "task.leases.renewed", steady: 1_000 });
    for (const { taskId, leaseUntil, runUntil } of limits)
      expect(await store.read(taskReads.taskById(taskId))).toMatchObject({
        leaseUntil,
        runUntil,
        restarts: 3,
      });
    expect((await store.read(taskReads.timedOutTasks(1_030, 10))).map(idOf)).toEqual([
      "short",
      expect.stringMatching(/^(timeout|both)$/),
      expect.stringMatching(/^(timeout|both)$/),
    ]);
  });

  test("after the clock was set back, the backoffs and the questions that begin in the future begin now", async () => {
    const { store, place } = await openFresh(engine);
    const now = NOW;
    const ahead = NOW + HOUR_MS;
    const waiting = [
      { taskId: "backoff", attempts: 1, updatedAt: ahead, notBefore: ahead + 3_000, expected: now + 3_000 },
      { taskId: "begun", attempts: 1, updatedAt: now - 1, notBefore: now + 3_000, expected: now + 3_000 },
      { taskId: "delayed", attempts: 0, updatedAt: ahead, notBefore: ahead + 3_000, expected: ahead + 3_000 },
    ];
    for (const { expected: _, ...given } of waiting)
      await write(store, { kind: "task.created", task: task(given.taskId, { scheduled: true, ...given }) });
    for (const [questionId, askedAt] of [
      ["ahead", ahead],
      ["begun", now],
    ] as const)
      await write(store, {
        kind: "question.asked",
        question: question(questionId, { taskId: "backoff", askedAt, until: askedAt + 8_000 }),
      });
    const restarted = [
      { kind: "backoffs.restarted", now },
      { kind: "questions.restarted", now },
    ] as const;
    for (let times = 0; times < 2; times++) {
      await write(store, ...restarted);
      for (const { taskId, expected } of waiting)
        expect(await store.read(taskReads.taskById(taskId))).toMatchObject({ notBefore: expected });
      expect(await place.look("SELECT max(until) AS n FROM questions")).toBe(now + 8_000);
    }
  });

  test("the heartbeat of a missing node is refused and changes no row", async () => {
    const { store, place } = await openFresh(engine);
    const beat = { kind: "node.beaten", nodeId: "n1", lastHeartbeatAt: 1, leaseUntil: 2 } as const;
    expect(await outcome(write(store, beat))).toBeInstanceOf(Error);
    await write(store, ...saved(node("n1")), beat);
    expect(await store.read(nodeReads.nodeById("n1"))).toMatchObject({ lastHeartbeatAt: 1, leaseUntil: 2 });
    expect(await place.look("SELECT count(*) AS n FROM beats")).toBe(1);
  });

  test("nodes that register, or send heartbeats, in one commit each get their own last heartbeat", async () => {
    const { store } = await openFresh(engine);
    const ids = Array.from({ length: 40 }, (_, i) => `n${i}`);
    const beat = (nodeId: string, at: number): Change => ({
      kind: "node.beaten",
      nodeId,
      lastHeartbeatAt: at,
      leaseUntil: at + 1_000,
    });
    for (const round of [0, 100, 200]) {
      const registered = round === 0 ? (id: string) => saved(node(id)) : () => [];
      await Promise.all(ids.map((id, i) => write(store, ...registered(id), beat(id, round + i))));
      for (const [i, id] of ids.entries()) {
        const expected = { lastHeartbeatAt: round + i, leaseUntil: round + i + 1_000 };
        expect(await store.read(nodeReads.nodeById(id))).toMatchObject(expected);
      }
    }
  });

  test("a deleted task is gone; a ledger entry and a day's sign-in can be inserted only once", async () => {
    const { store } = await openFresh(engine);
    await write(store, { kind: "task.created", task: task("t") }, { kind: "task.deleted", taskId: "t" });
    expect(await store.read(taskReads.taskById("t"))).toBeNull();
    const amounts = { amountMicro: 1, balanceMicro: 1n };
    const accounts = { from: "treasury", to: "node:n1", nodeId: "n1" } as const;
    const entry = { id: "e", ...accounts, n: 64, ...amounts, taskId: "t", at: 5, hash: null } as const;
    let seq = 0;
    const enter = (patch: Partial<LedgerEntry>) =>
      outcome(
        write(store, { kind: "lux.entered", entry: { seq: ++seq, ...entry, kind: "reward", ...patch } }),
      );
    expect(await enter({})).toBeNull();
    expect(await enter({ seq: 1, n: 65 })).toBeInstanceOf(Error); // two in one place
    expect(await enter({ id: "other" })).toBeInstanceOf(Error); // two with one number
    expect(await enter({ id: "n2's", nodeId: "n2", to: "node:n2" })).toBeNull();
    expect(await enter({ id: "f", n: 65, kind: "signin", taskId: null })).toBeNull();
    expect(await enter({ id: "g", n: 66, kind: "signin", taskId: null, at: DAY - 1 })).toBeInstanceOf(Error);
    expect(await enter({ id: "g", n: 66, kind: "signin", taskId: null, at: DAY })).toBeNull();
    expect(
      await enter({ id: "h", n: 65, nodeId: "n2", to: "node:n2", kind: "signin", taskId: null }),
    ).toBeNull();
  });
}
