/**
 * The idle workers: how many of them a commit wakes, which ones, and in what order. API tests see only the worker that
 * gets the task; these tests also see the workers that were woken in vain.
 */
import { describe, expect, jest, test } from "bun:test";
import type { Change, Notified } from "../../src/domain/change.ts";
import { accept, Rejection } from "../../src/domain/decision.ts";
import type { EventKind } from "../../src/domain/event.ts";
import { gateAt } from "../../src/domain/gate.ts";
import { type Position, type Lane, type ReadyLane, isSpecial, NO_HEAD } from "../../src/domain/lane.ts";
import type { Gate, Node, Task } from "../../src/domain/model.ts";
import { saved } from "../../src/domain/node.ts";
import type { Next, TakenFrom } from "../../src/domain/task/next.ts";
import { comesFirst } from "../../src/domain/task/order.ts";
import { LANES_REREADS, WAKE_UPS_TOGETHER } from "../../src/domain/limits.ts";
import { InvariantBroken } from "../../src/lib/assert.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { Takes } from "../../src/service/blocked-calls.ts";
import {
  type Awaited,
  type IdleWorker,
  IdleWorkers,
  NOTHING_AWAITED,
  STALE_MS,
} from "../../src/service/idle-workers.ts";
import { KnownLanes } from "../../src/service/known-lanes.ts";
import { NextService } from "../../src/service/next.ts";
import { NodeService } from "../../src/service/nodes.ts";
import {
  type Candidates,
  type Looked,
  type TaskSource,
  type Wanted,
  TaskSearch,
} from "../../src/service/task-search.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { WaitAborted } from "../../src/service/waiters.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { taskById } from "../../src/store/sql/tasks.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../src/store/store.ts";
import { draft, node, NOW, STEADY, task } from "../domain/samples.ts";
import { costRatio, cpuOf } from "../support/cost.ts";
import { brokenDuring } from "../support/invariants.ts";
import { type Dice, dice } from "../support/dice.ts";
import { losingOutcome } from "../support/lost-outcome.ts";
import { cases } from "../support/long.ts";

const SECOND = 1_000;
/** The tests call the listeners themselves. */
const NO_STORE = { onDecision: () => undefined, onCommit: () => undefined };

/** A worker that sleeps, and how often it was woken. */
class Sleeper {
  readonly worker: IdleWorker;
  readonly outcomes: string[] = [];
  readonly #hangUp = new AbortController();
  readonly #types: readonly string[] | null;
  #isReading = false;

  constructor(idle: IdleWorkers, nodeId: string, types: readonly string[] | null = null) {
    this.worker = idle.join(nodeId);
    this.#types = types;
    this.reads();
    this.sleeps();
  }

  /** @param keys the limit keys that are closed */
  reads(lanes: Partial<Awaited> = {}, keys: readonly string[] = []): void {
    this.worker.beginRead("A", { ...NOTHING_AWAITED, ...lanes, types: this.#types, keys });
    this.#isReading = true;
  }

  /** Without a read since the last sleep: reads again, and finds nothing. */
  sleeps(isFull = false): void {
    if (!this.#isReading) this.reads();
    this.#isReading = false;
    this.worker.endRead({ task: null, isFull });
    void this.worker.wait(60 * SECOND, this.#hangUp.signal).then((outcome) => this.outcomes.push(outcome));
  }

  takes(taskType: string, from: TakenFrom = "open"): void {
    this.reads();
    this.worker.endRead({ task: task("t", { taskType }), from });
    this.worker.leave();
  }

  hangsUp(): void {
    this.#hangUp.abort();
    this.worker.leave();
  }
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
};

let ids = 0;
const created = (taskType = "", lane = taskType): Notified => ({
  kind: "task.created",
  task: task(`t${++ids}`, { taskType, lane, status: "open" }),
});
const event = (kind: EventKind, nodeId: string | null): Notified => ({
  kind: "event.logged",
  event: { kind, at: 0, nodeId, taskId: null, data: {} },
});

const given = (nodeId: string): Notified => ({
  kind: "task.moved",
  task: task(`t${++ids}`, { status: "assigned", assignedNode: nodeId, startedAt: null }),
});

/** How often each was woken so far. */
const woken = (sleepers: readonly Sleeper[]): number[] => sleepers.map(({ outcomes }) => outcomes.length);

async function notify(idle: IdleWorkers, ...changes: Notified[]): Promise<void> {
  idle.decided(changes);
  idle.notify(changes);
  await settle();
}

describe("a new task", () => {
  test("wakes one worker: the first in order of arrival that takes its type", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = [
      new Sleeper(idle, "a", ["x"]),
      new Sleeper(idle, "b"),
      new Sleeper(idle, "c", ["y", ""]),
      new Sleeper(idle, "d", ["y"]),
    ];
    await notify(idle, created("y"));
    expect(woken(all)).toEqual([0, 1, 0, 0]);
    await notify(idle, created("y"));
    expect(woken(all)).toEqual([0, 1, 1, 0]);
    await notify(idle, created("z"), created("x"));
    expect(woken(all)).toEqual([1, 1, 1, 0]);
    await notify(idle, { kind: "work.offered", offer: { kind: "open", lane: "y" }, count: 3 });
    expect(woken(all)).toEqual([1, 1, 1, 1]);
    for (const { worker } of all) worker.leave();
  });

  test("of many of one commit each wakes one", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = Array.from({ length: 6 }, (_, i) => new Sleeper(idle, `n${i}`));
    await notify(idle, created(), created(), created());
    expect(woken(all)).toEqual([1, 1, 1, 0, 0, 0]);
    // One that changed twice, and is assigned in the end, is for nobody.
    const moved = task("t", { status: "open" });
    await notify(
      idle,
      { kind: "task.moved", task: moved },
      { kind: "task.moved", task: { ...moved, status: "assigned", startedAt: 1 } },
    );
    expect(woken(all)).toEqual([1, 1, 1, 0, 0, 0]);
    // Who found nothing goes back to its place.
    all[1]?.sleeps();
    await notify(idle, created());
    expect(woken(all)).toEqual([1, 2, 1, 0, 0, 0]);
    for (const { worker } of all) worker.leave();
  });

  test("goes to the next when the woken one leaves without it, or takes something else", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = Array.from({ length: 4 }, (_, i) => new Sleeper(idle, `n${i}`));
    await notify(idle, created("x"));
    all[0]?.hangsUp();
    await settle();
    expect(woken(all)).toEqual([1, 1, 0, 0]);
    all[1]?.takes("y");
    await settle();
    expect(woken(all)).toEqual([1, 1, 1, 0]);
    all[2]?.takes("x");
    await settle();
    expect(woken(all)).toEqual([1, 1, 1, 0]);
    for (const { worker } of all) worker.leave();
  });

  test("that no sleeper takes makes the awake workers that take it read again", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const [x, y] = [new Sleeper(idle, "a", ["x"]), new Sleeper(idle, "b", ["y"])];
    await notify(idle, created("x"), created("y"));
    for (const one of [x, y]) one.reads();
    await notify(idle, created("x"));
    for (const one of [x, y]) one.sleeps();
    await settle();
    expect(woken([x, y])).toEqual([2, 1]);
    for (const { worker } of [x, y]) worker.leave();
  });
});

describe("many tasks", () => {
  const joined = (idle: IdleWorkers, count: number): readonly Sleeper[] =>
    Array.from({ length: count }, (_, i) => new Sleeper(idle, `n${i}`));

  test("of another hub wake one worker each", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = joined(idle, 4);
    await notify(idle, { kind: "work.offered", offer: { kind: "open", lane: "y" }, count: 3 });
    expect(woken(all)).toEqual([1, 1, 1, 0]);
    for (const { worker } of all) worker.leave();
  });

  test.each([{ kind: "some" }, { kind: "open", lane: " new" }] as const)(
    "of another hub for which all must read again wake all: %p",
    async (offer) => {
      const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
      const all = joined(idle, 3);
      await notify(idle, { kind: "work.offered", offer, count: 1 });
      expect(woken(all)).toEqual([1, 1, 1]);
      for (const { worker } of all) worker.leave();
    },
  );

  test("of one decision: the first wake-ups come within it, the others after it", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const { signal } = new AbortController();
    let begun = 0;
    const workers = Array.from({ length: WAKE_UPS_TOGETHER + 5 }, (_, i) => {
      const worker = idle.join(`n${i}`);
      worker.beginRead("A", { ...NOTHING_AWAITED, types: null });
      worker.endRead({ task: null, isFull: false });
      void worker.wait(60 * SECOND, signal, () => begun++);
      return worker;
    });
    idle.decided(workers.map(() => created()));
    expect(begun).toBe(WAKE_UPS_TOGETHER);
    await settle();
    expect(begun).toBe(workers.length);
    for (const worker of workers) worker.leave();
  });

  test("for which all must read again, as copies of a quorum, wake each worker once", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = joined(idle, 3);
    const copies = Array.from({ length: 100 }, (_, i) => task(`c${i}`, { status: "open", child: COPY }));
    await notify(idle, ...copies.map((copy): Notified => ({ kind: "task.created", task: copy })));
    expect(woken(all)).toEqual([1, 1, 1]);
    for (const { worker } of all) worker.leave();
  });
});

describe("a node", () => {
  test("that is full sleeps for gifts and room alone; room wakes its calls one by one", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = [
      new Sleeper(idle, "n"),
      new Sleeper(idle, "n"),
      new Sleeper(idle, "n"),
      new Sleeper(idle, "m"),
    ];
    const [first, second, third] = all;
    await notify(idle, created("x"), created("x"), created("x"));
    for (const one of [first, second, third]) {
      one?.reads();
      one?.sleeps(true);
    }
    await settle();
    expect(woken(all)).toEqual([1, 1, 1, 1]); // the last one for one of the three
    await notify(idle, created("x"));
    expect(woken(all)).toEqual([1, 1, 1, 1]);
    await notify(idle, { kind: "work.offered", offer: { kind: "gift", nodeId: "n" }, count: 1 });
    expect(woken(all)).toEqual([2, 1, 1, 1]);
    first?.takes("", "gifts");
    await notify(idle, event("task.completed", "n"));
    expect(woken(all)).toEqual([2, 2, 1, 1]);
    second?.takes("x");
    await settle();
    expect(woken(all)).toEqual([2, 2, 2, 1]); // there may be more room
    third?.reads();
    third?.sleeps(true);
    await notify(idle, event("task.completed", "m"));
    expect(woken(all)).toEqual([2, 2, 2, 1]);
    for (const { worker } of all) worker.leave();
  });

  test("that has room wakes its next call when the first finds no task of its types", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = [new Sleeper(idle, "n", ["x"]), new Sleeper(idle, "n", ["y"]), new Sleeper(idle, "n", ["z"])];
    await notify(idle, created("x"), created("y"), created("z"));
    for (const one of all) {
      one.reads();
      one.sleeps(true);
    }
    await notify(idle, event("task.completed", "n"));
    expect(woken(all)).toEqual([2, 1, 1]);
    all[0]?.reads();
    all[0]?.sleeps();
    await settle();
    expect(woken(all)).toEqual([2, 2, 1]);
    all[1]?.reads();
    all[1]?.sleeps(true); // it is full again
    await settle();
    expect(woken(all)).toEqual([2, 2, 1]);
    for (const { worker } of all) worker.leave();
  });

  test("that is short of a resource passes its room on to a call of other types; what ends wakes all that are short", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = ["x", "y", "z"].map((type) => new Sleeper(idle, "n", [type]));
    await notify(idle, created("x"), created("y"), created("z"));
    const [x, y, z] = all;
    x?.reads({ isShort: true });
    y?.reads();
    z?.reads({ isShort: true });
    for (const one of all) one.sleeps(true);
    await notify(idle, event("task.completed", "n"));
    expect(woken(all)).toEqual([2, 1, 2]); // the first for the room, the last for its resource
    x?.reads({ isShort: true });
    x?.sleeps();
    await settle();
    expect(woken(all)).toEqual([2, 2, 2]);
    for (const { worker } of all) worker.leave();
  });

  test("that ends a task wakes all its calls that are short of a resource", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = ["x", "y", "z"].map((type) => new Sleeper(idle, "n", [type]));
    await notify(idle, created("x"), created("y"), created("z"));
    for (const one of all) {
      one.reads({ isShort: true });
      one.sleeps();
    }
    await notify(idle, event("task.completed", "n"));
    expect(woken(all)).toEqual([2, 2, 2]);
    for (const { worker } of all) worker.leave();
  });

  test("that resumes what it had started leaves its gift to its next call", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const [first, second] = [new Sleeper(idle, "n"), new Sleeper(idle, "n")];
    await notify(idle, given("n"));
    expect(woken([first, second])).toEqual([1, 0]);
    first.takes("", "started");
    await settle();
    expect(woken([first, second])).toEqual([1, 1]);
    second.worker.leave();
  });

  test("that leaves, drains, changes or is deleted wakes all its calls; other events none", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = [new Sleeper(idle, "n"), new Sleeper(idle, "n"), new Sleeper(idle, "m")];
    await notify(idle, event("node.online", "n"), event("task.assigned", "n"), event("task.completed", "n"));
    expect(woken(all)).toEqual([0, 0, 0]);
    let times = 0;
    for (const kind of [
      "node.updated",
      "node.draining",
      "node.deleted",
      "node.offline",
      "node.left",
    ] as const) {
      await notify(idle, event(kind, "n"));
      times++;
      expect(woken(all)).toEqual([times, times, 0]);
      if (kind === "node.left") break;
      for (const one of all.slice(0, 2)) {
        one.reads();
        one.sleeps();
      }
    }
    expect(all.map(({ worker }) => worker.isEnded)).toEqual([true, true, false]);
    await notify(idle, { kind: "work.missed" });
    expect(woken(all)).toEqual([times, times, 1]);
    for (const { worker } of all) worker.leave();
  });
});

/** A store with a node that takes every type, and a way to ask for its next task. */
async function openNode(beforeDelivery: () => Promise<void> = async () => {}) {
  const store = openSqlite(":memory:", (error) => {
    throw error;
  });
  const clock = systemClock();
  const tasks = new TaskService(store, clock, newId);
  const idle = new IdleWorkers(store, tasks.knownLanes);
  const takes = new Takes({ socketsPolled: beforeDelivery }, clock);
  const next = new NextService(store, clock, new NodeService(store, clock, tasks), tasks, idle, takes);
  await store.transact({}, () => accept(null, saved(node("n1"))));
  const lost = losingOutcome(store);
  const asked = { nodeId: "n1", taskTypes: null, resume: false, inBatch: false, restMs: 0 };
  const hangUp = new AbortController();
  const { signal } = hangUp;
  return {
    ...{ store, tasks, takes, hangUp },
    askOnce: () => next.next(store.transact, asked, { waitMs: 0, signal, repeatable: false }),
    loseNextOutcome: lost.next,
    ask: (waitMs: number) => next.next(lost.transact, asked, { waitMs, signal, repeatable: true }),
    create: () => tasks.create(store.transact, draft()),
    [Symbol.asyncDispose]: () => store.close(),
  };
}

test("a task and the hand-out that it wakes share a commit", async () => {
  await using scene = await openNode();
  const blocked = scene.ask(60 * SECOND);
  await settle(); // it sleeps
  const groups: number[] = [];
  scene.store.onGroup((transactions) => groups.push(transactions));
  const { taskId } = await scene.create();
  expect(await blocked).toMatchObject({ task: { taskId } });
  expect(groups).toEqual([2]);
});

test("a hand-out that cannot be delivered is put back, unless the task was taken from the node meanwhile", async () => {
  for (const isTaken of [false, true]) {
    const ids: string[] = [];
    await using scene = await openNode(async () => {
      scene.hangUp.abort();
      const cancel = { taskId: ids[0] ?? "", nodeId: null, reason: null, boundTo: null };
      if (isTaken) await scene.tasks.cancel(scene.store.transact, cancel);
    });
    ids.push((await scene.create()).taskId);
    expect(await scene.askOnce().catch((error: unknown) => error)).toBeInstanceOf(WaitAborted);
    await scene.takes.retryPutBacks(); // nothing is left to put back
    const left = await scene.store.read(taskById(ids[0] ?? ""));
    expect(left?.status).toBe(isTaken ? "failed" : "open");
  }
});

test("a hand-out whose outcome is unknown says so, and takes no second task", async () => {
  await using scene = await openNode();
  const blocked = scene.ask(60 * SECOND).catch((error: unknown) => error);
  await settle(); // it sleeps
  scene.loseNextOutcome();
  await scene.create();
  const second = await scene.create();
  expect(await blocked).toBeInstanceOf(OutcomeUnknown);
  expect(await scene.ask(0)).toMatchObject({ task: { taskId: second.taskId } });
});

describe("a limit key that is closed", () => {
  const freed: Notified = { kind: "work.offered", offer: { kind: "key", key: "k" }, count: 1 };
  const lanes = [{ name: " k" }];

  test("of a special lane: all its calls come to know, and each end of a task wakes one", async () => {
    const idle = new IdleWorkers(NO_STORE, { announce: () => false });
    const all = ["n1", "n2"].map((nodeId) => new Sleeper(idle, nodeId, ["z"]));
    idle.wakeAll();
    await settle();
    for (const one of all) {
      one.reads({ special: lanes });
      one.sleeps();
    }
    await notify(idle, created("z", " k"));
    expect(woken(all)).toEqual([2, 1]);
    all[0]?.reads({}, ["k"]);
    all[0]?.sleeps();
    await settle();
    expect(woken(all)).toEqual([2, 2]); // the first one did not look in the lane
    all[1]?.reads({}, ["k"]);
    all[1]?.sleeps();
    await notify(idle, created("z", " k"), freed);
    expect(woken(all)).toEqual([3, 2]);
    await notify(idle, freed);
    expect(woken(all)).toEqual([3, 3]);
    for (const { worker } of all) worker.leave();
  });

  test("used up: a call that takes a task of the key wakes no other", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = [new Sleeper(idle, "n1", ["k"]), new Sleeper(idle, "n2", ["k"])];
    await notify(idle, created("k"), created("k"));
    for (const one of all) {
      one.reads({}, ["k"]);
      one.sleeps();
    }
    await notify(idle, freed);
    expect(woken(all)).toEqual([2, 1]);
    all[0]?.takes("k");
    await settle();
    expect(woken(all)).toEqual([2, 1]);
    all[1]?.worker.leave();
  });

  test("of a type: the calls that take every type are woken, even if they have not met the key", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = [new Sleeper(idle, "n1"), new Sleeper(idle, "n2")];
    await notify(idle, created("k"));
    expect(woken(all)).toEqual([1, 0]);
    all[0]?.reads({}, ["k"]);
    all[0]?.sleeps();
    await notify(idle, freed);
    expect(woken(all)).toEqual([2, 0]);
    await notify(idle, freed);
    expect(woken(all)).toEqual([2, 1]);
    for (const { worker } of all) worker.leave();
  });

  test("of a type: a call that takes only the type is woken, even if another one has met the key instead", async () => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const [every, typed] = [new Sleeper(idle, "n1"), new Sleeper(idle, "n2", ["k"])];
    await notify(idle, created("k"));
    expect(woken([every, typed])).toEqual([1, 0]);
    every.reads({}, ["k"]);
    every.sleeps();
    await settle();
    every.hangsUp();
    await notify(idle, freed);
    expect(woken([typed])).toEqual([1]);
    typed.worker.leave();
  });
});

describe("a woken call that finds no task", () => {
  const calm = gateAt({ day: 0, budgets: [], pauses: [], limits: [] }, NOW);
  const closing = (value: string): Gate => {
    const pause = { scope: "type", value, reason: null, at: NOW } as const;
    return gateAt({ day: 0, budgets: [], pauses: [pause], limits: [] }, NOW);
  };
  const common = {
    started: null,
    gifts: null,
    special: [],
    heads: null,
    waiting: [],
    lanes: new Map<string, ReadyLane>(),
  };
  const changes: [string, (look: number) => { gate: Gate; used?: Record<string, number> }, number, number][] =
    [
      ["looks once, and keeps the wake-up", () => ({ gate: calm }), 1, 0],
      [
        "passes it on if other types are closed each time",
        (look) => ({ gate: closing(`${look}`) }),
        LANES_REREADS + 1,
        1,
      ],
      [
        "passes it on if its node uses something else each time",
        (look) => ({ gate: calm, used: { gpu: look } }),
        LANES_REREADS + 1,
        1,
      ],
    ];

  test.each(changes)("%s", async (_, rowsAt, looks, passed) => {
    const knownLanes = new KnownLanes(false);
    const idle = new IdleWorkers(NO_STORE, knownLanes);
    const { signal } = new AbortController();
    const worker = idle.join("n1");
    let looked = 0;
    const source: TaskSource<Next> = {
      readNode: async () => node("n1", { variant: "A" }),
      typesBut: async () => ["x"],
      handOut: async (_wanted, decide) => {
        const { gate, used = {} } = rowsAt(looked++);
        const rows = { ...common, open: { tasks: [], isAll: true }, gate };
        const decision = decide({ ...rows, node: node("n1", { variant: "A", used }) });
        return { answer: decision.kind === "accepted" ? decision.answer : undefined, also: decision.also };
      },
    };
    const search = new TaskSearch({
      ...{ nodeId: "n1", taskTypes: null, signal, worker, knownLanes, clock: CLOCK, source },
    });
    expect(await search.take()).toBe(null);
    const next = new Sleeper(idle, "n2", ["x"]);
    const woken = worker.wait(60 * SECOND, signal);
    await notify(idle, created("x"));
    expect(await woken).toBe("woken");
    looked = 0;
    expect(await search.take()).toBe(null);
    void worker.wait(60 * SECOND, signal);
    await settle();
    expect({ looked, passed: next.outcomes.length }).toEqual({ looked: looks, passed });
    for (const one of [worker, next.worker]) one.leave();
  });
});

test("a call that is over looks no more", async () => {
  let looks = 0;
  const hangUp = new AbortController();
  const source: TaskSource<Next> = {
    readNode: async () => node("n1"),
    typesBut: async () => [],
    handOut: async () => {
      looks++;
      hangUp.abort();
      return { answer: undefined };
    },
  };
  const parts = { nodeId: "n1", taskTypes: null, signal: hangUp.signal, worker: null, clock: CLOCK, source };
  const search = new TaskSearch({ ...parts, knownLanes: new KnownLanes(false) });
  expect([await search.take(), looks]).toEqual([null, 1]);
});

test("a worker ends the read that it began, and sleeps after a read that found no task", async () => {
  const broken = await brokenDuring(async () => {
    const worker = new IdleWorkers(NO_STORE, new KnownLanes(false)).join("n1");
    const sleep = () => worker.wait(SECOND, new AbortController().signal);
    const nothing = { task: null, isFull: false };
    expect(() => worker.endRead(nothing)).toThrow(InvariantBroken);
    worker.beginRead("A", NOTHING_AWAITED);
    await expect(sleep()).rejects.toThrow(InvariantBroken);
    worker.endRead({ task: task("t"), from: "open" });
    await expect(sleep()).rejects.toThrow(InvariantBroken);
    worker.leave();
  });
  expect(broken).toHaveLength(3);
});

test("a call whose read was stale reads again after a second, until one is not", async () => {
  jest.useFakeTimers();
  try {
    const worker = new IdleWorkers(NO_STORE, new KnownLanes(false)).join("n1");
    const outcomes: string[] = [];
    const { signal } = new AbortController();
    for (const isStale of [true, true, false]) {
      worker.beginRead("A", { ...NOTHING_AWAITED, types: null });
      worker.endRead({ task: null, isFull: false }, isStale);
      void worker.wait(60 * SECOND, signal).then((outcome) => outcomes.push(outcome));
      jest.advanceTimersByTime(STALE_MS);
      await settlePromises();
    }
    expect(outcomes).toEqual(["woken", "woken"]);
    jest.advanceTimersByTime(60 * SECOND);
    await settlePromises();
    expect(outcomes).toEqual(["woken", "woken", "timeout"]);
    worker.leave();
  } finally {
    jest.useRealTimers();
  }
});

test("waking one of 4,000 costs about as much as waking one of 100", async () => {
  const cost = (count: number) => async (): Promise<number> => {
    const idle = new IdleWorkers(NO_STORE, new KnownLanes(false));
    const all = Array.from({ length: count }, (_, i) => new Sleeper(idle, `n${i}`, ["x", `own${i}`]));
    const took = await cpuOf(async () => {
      for (let i = 0; i < 100; i++) {
        idle.decided([created("x")]);
        all[0]?.sleeps();
        idle.decided([created(`own${count - 1 - i}`)]);
        all[count - 1 - i]?.sleeps();
      }
    });
    for (const { worker } of all) worker.leave();
    return took;
  };
  expect(await costRatio(cost(100), cost(4_000), 15)).toBeLessThan(20); // a walk along the calls would make it 40
});

type TestNode = {
  readonly nodeId: string;
  types: readonly string[] | null;
  maxTasks: number;
  online: boolean;
  /** What it has started, and what the balancer has assigned to it. */
  readonly running: Task[];
  readonly gifts: Task[];
};
/** A blocked call. `asleep`: what its last read found, while it sleeps. */
type Call = {
  readonly node: TestNode;
  readonly asked: readonly string[] | null;
  readonly hangUp: AbortController;
  found: Next | null;
  asleep: { readonly isFull: boolean } | null;
  /** Its node has left. */
  isOver: boolean;
};

const TYPES = ["x", "y", "z"];
const lane = (name: string, taskType: string, limitKey: string | null, needs?: string): Lane => {
  const requires = needs === undefined ? null : { capabilities: [], resources: { [needs]: 1 } };
  return { name, taskType, limitKey, requires, creatorNode: null };
};
/** Special lanes, by name. A node has the resources for one task of each at a time. */
const LANES = new Map(
  [lane(" gpu", "x", null, "gpu"), lane(" disk", "y", "k", "disk"), lane(" key", "z", "k")].map((one) => [
    one.name,
    one,
  ]),
);
const LANE_NAMES = [...TYPES, ...LANES.keys()];
/** Limit keys of which so many tasks may run at a time. */
const LIMITED: readonly string[] = ["x", "k"];
const LIMIT = 2;
/** Tasks of a lane that one read loads: few, so that others may be behind those that a node may not have. */
const LOADED = 2;

const COPY = {
  of: "t0",
  group: null,
  as: "copy",
  epoch: 1,
  notKey: null,
  sealed: false,
  compare: null,
} as const;
const WAIT_MS = 600 * SECOND;
const CLOCK = { now: () => NOW, steady: () => STEADY };

/**
 * A store of tasks and nodes, and blocked calls of the real search (TaskSearch). Every read and every transaction of a
 * call begins and ends when the test says so.
 */
class Backlog {
  readonly #known = new KnownLanes(false);
  readonly idle = new IdleWorkers(NO_STORE, this.#known);
  readonly gates: (() => void)[] = [];
  /** Calls that ended otherwise than they may. */
  readonly errors: unknown[] = [];
  /** The tasks that a caller got. */
  readonly answered = new Set<string>();
  /** In order of arrival. */
  readonly calls = new Set<Call>();
  readonly open: Task[] = [];
  readonly nodes: readonly TestNode[];
  /** The types that are paused. */
  readonly paused = new Set<string>();
  readonly #random: Dice;
  #now = 0;
  #created = 0;
  /** Their heads lag behind: none of the ready tasks is better. */
  #lanes: ReadonlyMap<string, ReadyLane> = new Map();
  readonly #takes = new Takes({ socketsPolled: () => this.#gate() }, { steady: () => this.#now });

  readonly #rereads: number;

  constructor(random: Dice) {
    this.#random = random;
    this.#rereads = [0, 1, LANES_REREADS][random(3)] ?? 0;
    this.nodes = ["n1", "n2", "n3"].map((nodeId) => ({
      ...{ nodeId, types: this.#someTypes(), maxTasks: 2 + random(6), online: true, running: [], gifts: [] },
    }));
  }

  get sleepers(): readonly Call[] {
    return [...this.calls].filter(({ asleep }) => asleep);
  }

  step(): void {
    const kind = this.#random(78);
    const [node, lane] = [this.#anyOf(this.nodes), this.#anyOf(LANE_NAMES)];
    if (!node || lane === undefined) throw new Error("there are nodes and lanes");
    if (kind < 14) void this.#call(node);
    else if (kind < 50) this.openOneGate();
    else if (kind < 54) this.create(1 + this.#random(2), lane);
    else if (kind < 55) this.#createElsewhere(lane);
    else if (kind < 57) this.#give(node);
    else if (kind < 65) this.#complete(node);
    else if (kind < 68) this.#anyOf([...this.calls])?.hangUp.abort();
    else if (kind < 69) this.passTime(WAIT_MS / 2);
    else if (kind < 73) this.#update(node);
    else if (kind < 74) this.#leave(node);
    else if (kind < 76) this.create(1 + this.#random(LOADED + 1), lane, node.nodeId);
    else this.#pauseOrResume();
  }

  /** A call comes, a task ends, or one is created: mostly in one lane, so that its limit closes and opens. */
  stepAtRest(lane: string): void {
    const [node, other = ""] = [this.#anyOf(this.nodes), this.#anyOf(LANE_NAMES)];
    if (!node) return;
    const kind = this.#random(12);
    if (kind < 4) void this.#call(node);
    else if (kind < 7) this.create(1, kind === 4 ? other : lane);
    else if (kind < 10) this.#complete(node);
    else if (kind < 11) this.create(1, lane, node.nodeId);
    else this.#pauseOrResume();
  }

  passTime(ms: number): void {
    this.#now += ms;
    jest.advanceTimersByTime(ms);
  }

  openOneGate(): void {
    this.gates.splice(this.#random(this.gates.length || 1), 1)[0]?.();
  }

  /** `notFor`: a node that may not have them, as copies of its own quorum. */
  create(count: number, lane: string, notFor: string | null = null): void {
    const tasks = Array.from({ length: count }, () => this.#add(lane, notFor));
    this.#commit(...tasks.map((task): Change => ({ kind: "task.created", task })));
  }

  /** Whether a call could take a task now. */
  isServable(call: Call): boolean {
    return call.node.gifts.length > 0 || this.open.some((task) => this.#mayTake(call, task));
  }

  /** Whether a call may take an open task now. Asks none of the functions under test. */
  #mayTake({ node, asked }: Call, task: Task): boolean {
    const used = [...node.running, ...node.gifts];
    return (
      used.length < node.maxTasks &&
      (node.types?.includes(task.taskType) ?? true) &&
      (asked?.includes(task.taskType) ?? true) &&
      !this.paused.has(task.taskType) &&
      !(LIMITED.includes(keyOf(task)) && this.#runningOf(keyOf(task)) >= LIMIT) &&
      !task.notNodes.includes(node.nodeId) &&
      (task.requires === null || !used.some(({ lane }) => lane === task.lane))
    );
  }

  #runningOf(key: string): number {
    return this.nodes.flatMap(({ running }) => running.filter(({ countsFor }) => countsFor === key)).length;
  }

  /** At another hub, whose notification may be lost. */
  #createElsewhere(lane: string): void {
    const count = 1 + this.#random(2);
    for (let left = count; left > 0; left--) this.#add(lane);
    const offered = { kind: "work.offered", offer: { kind: "open", lane }, count } as const;
    this.#commit(this.#random(3) === 0 ? { kind: "work.missed" } : offered);
  }

  #add(name: string, notFor: string | null = null): Task {
    const special = LANES.get(name);
    const { taskType = name, limitKey = null, requires = null } = special ?? {};
    const child = notFor === null ? null : COPY;
    const notNodes = notFor === null ? [] : [notFor];
    const seq = ++this.#created;
    const kind = { taskType, limitKey, requires, lane: name, child, notNodes };
    const added = task(`t${seq}`, { ...kind, seq });
    this.open.push(added);
    return added;
  }

  #give(node: TestNode): void {
    const seq = ++this.#created;
    const given = task(`t${seq}`, { seq, status: "assigned", assignedNode: node.nodeId, startedAt: null });
    node.gifts.push(given);
    this.#commit({ kind: "task.moved", task: given });
  }

  #complete(node: TestNode): void {
    const [task] = node.running.splice(this.#random(node.running.length || 1), 1);
    if (!task) return;
    const completed = { kind: "task.moved", task: { ...task, status: "completed" } } as const;
    this.#commit(completed, event("task.completed", node.nodeId));
  }

  #update(node: TestNode): void {
    node.types = this.#someTypes();
    node.maxTasks = 2 + this.#random(6);
    this.#commit(event("node.updated", node.nodeId));
  }

  /** Ends the calls of the node; a later call brings it back. */
  #leave(node: TestNode): void {
    if (!node.online) return;
    node.online = false;
    for (const call of this.calls) call.isOver ||= call.node === node;
    this.#commit(event("node.left", node.nodeId), event("node.offline", node.nodeId));
  }

  #pauseOrResume(): void {
    if (this.paused.delete("x")) return this.#commit(event("hub.resumed", null));
    this.paused.add("x");
    this.#commit(event("hub.paused", null));
  }

  #commit(...changes: readonly Notified[]): void {
    this.idle.decided(changes);
    this.idle.notify(changes);
  }

  /** As NextService.next(). */
  async #call(node: TestNode): Promise<void> {
    const asked = this.#someTypes();
    const hangUp = new AbortController();
    const call: Call = { node, asked, hangUp, found: null, asleep: null, isOver: false };
    const { signal } = hangUp;
    this.calls.add(call);
    const worker = this.idle.join(node.nodeId);
    const parts = { nodeId: node.nodeId, taskTypes: asked, signal, worker, clock: CLOCK };
    const source = this.#sourceFor(call);
    const search = new TaskSearch({ ...parts, knownLanes: this.#known, source, lookUps: 1 }, this.#rereads);
    const take = async (): Promise<Next | null> => {
      call.asleep = null;
      const taken = await search.take();
      if (!taken && call.found && !call.found.task) call.asleep = call.found;
      return taken;
    };
    try {
      const taken = await this.#takes.untilTaken(worker, take, { waitMs: WAIT_MS, signal });
      const putBack = async (): Promise<void> => {
        if (taken?.task) this.#putBack(node, taken.task, taken.from);
      };
      await this.#takes.deliver(taken, { signal, repeatable: false }, putBack);
      if (taken?.task) this.answered.add(taken.task.taskId);
    } catch (error) {
      // It hung up, or a read failed: its wake-up must go on to the next call.
      if (!(error instanceof WaitAborted || error instanceof StoreUnavailable)) this.errors.push(error);
    } finally {
      this.calls.delete(call);
    }
  }

  #sourceFor(call: Call): TaskSource<Next> {
    return {
      readNode: async () => {
        await this.#gate();
        return rowOf(call.node);
      },
      typesBut: async (closed) => {
        await this.#gate();
        return TYPES.filter((type) => !closed.has(type));
      },
      handOut: (wanted, decide) => this.#handOut(call, wanted, decide),
    };
  }

  async #handOut(
    call: Call,
    wanted: Wanted,
    decide: (rows: Candidates) => Looked,
  ): ReturnType<TaskSource<Next>["handOut"]> {
    const { node } = call;
    await this.#gate();
    if (this.#random(8) === 0) throw new StoreUnavailable("the store is unavailable");
    if (this.#random(8) === 0) {
      decide(this.#load(node, wanted)); // its group is rolled back, and decided again
      await this.#gate();
    }
    const decision = decide(this.#load(node, wanted));
    if (decision.kind === "undecided") {
      await this.#gate();
      return { answer: undefined, also: decision.also };
    }
    if (decision.kind === "rejected") throw new Rejection(decision);
    const { answer } = decision;
    if (call.isOver) throw new Error(`a call of ${node.nodeId} was served after the node left`);
    if (answer.task && answer.from === "open") {
      const { taskId } = answer.task;
      const before = this.open.find((task) => task.taskId === taskId);
      if (!before || !this.#mayTake(call, before))
        throw new Error(`a call of ${node.nodeId} got task ${taskId}, which it may not have`);
    }
    for (const change of decision.changes) {
      if (change.kind === "node.returned") node.online = true;
      if (change.kind === "task.moved") {
        drop(this.open, change.task);
        drop(node.gifts, change.task);
        node.running.push(change.task);
      }
    }
    this.#commit(...decision.changes);
    call.found = answer;
    await this.#gate();
    return { answer, also: decision.also };
  }

  /** As the queries of NextService do. */
  #load(node: TestNode, { types, special, isPart, closed, leavesOutExcluded }: Wanted): Candidates {
    const mayHave = ({ notNodes }: Task): boolean => !leavesOutExcluded || !notNodes.includes(node.nodeId);
    const ready = this.open.filter(
      (task) => !isSpecial(task.lane) && (types?.includes(task.taskType) ?? true) && mayHave(task),
    );
    const bestOf = ({ name }: Lane): readonly Task[] =>
      this.open.filter(({ lane, notNodes }) => lane === name && !notNodes.includes(node.nodeId)).slice(0, 1);
    const headOf = (name: string): Position | undefined => this.open.find(({ lane }) => lane === name);
    const lanes = new Map(
      [...LANES].flatMap(([name, lane]): [string, ReadyLane][] => {
        const head = headOf(name);
        return head ? [[name, { ...lane, head }]] : [];
      }),
    );
    if (!Bun.deepEquals([...lanes.keys()], [...this.#lanes.keys()])) this.#lanes = lanes;
    for (const [name, { head }] of lanes) {
      const known = this.#lanes.get(name);
      if (known && comesFirst(head, known.head)) known.head = head;
    }
    const heads = new Map(special.map(({ name }) => [name, lanes.get(name)?.head ?? NO_HEAD]));
    return {
      ...{ node: rowOf(node), started: null, gifts: node.gifts[0] ?? null, waiting: [] },
      open: { tasks: ready.slice(0, LOADED), isAll: ready.length < LOADED },
      special: closed?.hub ? [] : special.flatMap(bestOf),
      heads: isPart ? heads : null,
      ...{ lanes: this.#lanes, gate: this.#gateRow() },
    };
  }

  #gateRow(): Gate {
    const limits = LIMITED.map((key) => ({
      ...{
        key,
        running: LIMIT,
        perMinute: null,
        hold: null,
        inUse: this.#runningOf(key),
        uses: [],
      },
    }));
    const pauses = [...this.paused].map(
      (value) => ({ scope: "type", value, reason: null, at: NOW }) as const,
    );
    return gateAt({ day: 0, budgets: [], pauses, limits }, NOW);
  }

  #putBack(node: TestNode, task: Task, from: TakenFrom): void {
    drop(node.running, task);
    const { nodeId } = node;
    if (from === "gifts") {
      const gift = { ...task, startedAt: null };
      node.gifts.push(gift);
      return this.#commit({ kind: "task.moved", task: gift });
    }
    const released: Task = { ...task, status: "open", assignedNode: null, startedAt: null };
    this.open.push({ ...released, countsFor: null });
    this.#commit({ kind: "task.moved", task: released }, event("task.released", nodeId));
  }

  #gate(): Promise<void> {
    return new Promise((open) => this.gates.push(open));
  }

  #someTypes(): readonly string[] | null {
    return this.#random(3) === 0 ? null : TYPES.filter(() => this.#random(2) === 0);
  }

  #anyOf<T>(all: readonly T[]): T | undefined {
    return all[this.#random(all.length || 1)];
  }
}

const keyOf = ({ limitKey, taskType }: Task): string => limitKey ?? taskType;

function drop(tasks: Task[], { taskId }: Task): void {
  const at = tasks.findIndex((task) => task.taskId === taskId);
  if (at !== -1) tasks.splice(at, 1);
}

function rowOf({ nodeId, types, maxTasks, online, running, gifts }: TestNode): Node {
  const held = [...running, ...gifts];
  const used = { gpu: 0, disk: 0 };
  for (const { requires } of held)
    for (const name of ["gpu", "disk"] as const) used[name] += requires?.resources[name] ?? 0;
  const capabilities = types?.length === 0 ? ["none"] : [...(types ?? [])];
  const resources = { gpu: 1, disk: 1 };
  return node(nodeId, {
    ...{ variant: "A", capabilities, resources, used, online, maxTasks, tasksAssigned: held.length },
  });
}

const takes = ({ node, asked }: Call, type: string): boolean =>
  (node.types?.includes(type) ?? true) && (asked?.includes(type) ?? true);

/** Lets every promise that can settle do so; no timer fires. */
async function settlePromises(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}

/** Lets every read end, until all calls have left or sleep, and no read was stale. */
async function quiesce(backlog: Backlog): Promise<void> {
  await settlePromises();
  do {
    while (backlog.gates.length > 0) {
      backlog.openOneGate();
      await settlePromises();
    }
    backlog.passTime(STALE_MS);
    await settlePromises();
  } while (backlog.gates.length > 0);
}

const INTERLEAVINGS = cases(400, 1_500);

test(`${INTERLEAVINGS} random interleavings: no call sleeps beside a task that it could take, the first is woken, and nothing is left`, async () => {
  jest.useFakeTimers();
  try {
    const seen = { full: 0, besideTasks: 0, woken: 0 };
    for (let seed = 1; seed <= INTERLEAVINGS; seed++) {
      const random = dice(seed);
      const backlog = new Backlog(random);
      for (let steps = 20 + random(80); steps > 0; steps--) {
        backlog.step();
        if (random(3) === 0) await settlePromises();
      }
      await quiesce(backlog);
      // Few steps of a busy time come to calls that have all gone to sleep: so some more, each at rest.
      const lane = LANE_NAMES[random(LANE_NAMES.length)] ?? "";
      for (let steps = 25; steps >= 0; steps--) {
        for (const call of backlog.calls) {
          if (!call.asleep || backlog.isServable(call))
            throw new Error(
              `seed ${seed}: a call of ${call.node.nodeId} waits beside a task that it could take`,
            );
          if (call.isOver) throw new Error(`seed ${seed}: a call waits although its node left`);
          if (call.asleep.isFull) seen.full++;
          if (backlog.open.length > 0) seen.besideTasks++;
        }
        // Several at once, and reads that have begun: what comes now must not be lost on who is reading.
        for (let more = steps > 0 ? 1 + random(3) : 0; more > 0; more--) {
          backlog.stepAtRest(lane);
          for (let gates = random(4); gates > 0; gates--) {
            backlog.openOneGate();
            await settlePromises();
          }
        }
        await quiesce(backlog);
      }

      const taskType = random(2) === 0 ? "y" : "z"; // no limit and no pause keeps these back
      const { sleepers } = backlog;
      const first = sleepers.find((call) => !call.asleep?.isFull && takes(call, taskType));
      backlog.create(1, taskType);
      const woken = sleepers.filter(({ asleep }) => !asleep);
      if (woken[0] !== first || woken.length > 1)
        throw new Error(`seed ${seed}: ${woken.length} were woken, or not the first in order of arrival`);
      seen.woken += woken.length;

      for (const { hangUp } of backlog.calls) hangUp.abort();
      await quiesce(backlog);
      const lost = backlog.nodes.flatMap(({ running }) =>
        running.filter(({ taskId }) => !backlog.answered.has(taskId)),
      );
      if (lost.length > 0) throw new Error(`seed ${seed}: nobody got ${lost[0]?.taskId}, which is assigned`);
      if (backlog.errors.length > 0) throw new Error(`seed ${seed}`, { cause: backlog.errors[0] });
      const left = { calls: backlog.calls.size, timers: jest.getTimerCount() };
      if (left.calls + left.timers + backlog.idle.nodesOf("A").length > 0)
        throw new Error(`seed ${seed}: left behind ${JSON.stringify(left)}`);
    }
    // Else the checks would have had nothing to see.
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(50);
  } finally {
    jest.useRealTimers();
  }
});
