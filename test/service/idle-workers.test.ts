/**
 * The idle workers: how many of them a commit wakes, which ones, and in what order. API tests see only the worker that
 * gets the task; these tests also see the workers that were woken in vain.
 */
import { describe, expect, jest, test } from "bun:test";
import type { Notified } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import type { EventKind } from "../../src/domain/event.ts";
import { type Lane, laneNameOf } from "../../src/domain/lane.ts";
import type { Node, Task } from "../../src/domain/model.ts";
import { saved } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { Takes } from "../../src/service/blocked-calls.ts";
import {
  type AwaitedLanes,
  type Found,
  type IdleWorker,
  IdleWorkers,
} from "../../src/service/idle-workers.ts";
import { KnownLanes, type Seen } from "../../src/service/known-lanes.ts";
import { NextService } from "../../src/service/next.ts";
import { NodeService } from "../../src/service/nodes.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../src/store/store.ts";
import { draft, node, task } from "../domain/samples.ts";
import { costRatio, cpuOf } from "../support/cost.ts";
import { type Dice, dice } from "../support/dice.ts";
import { losingOutcome } from "../support/lost-outcome.ts";
import { cases } from "../support/long.ts";

const SECOND = 1_000;
/** The tests call the listeners themselves. */
const NO_STORE = { onDecision: () => undefined, onCommit: () => undefined };

const NO_LANES: AwaitedLanes = { special: [], short: [], closed: [] };

/** A worker that sleeps, and how often it was woken. */
class Sleeper {
  readonly worker: IdleWorker;
  readonly outcomes: string[] = [];
  readonly #hangUp = new AbortController();
  readonly #types: readonly string[] | null;

  constructor(idle: IdleWorkers, nodeId: string, types: readonly string[] | null = null) {
    this.worker = idle.join(nodeId);
    this.#types = types;
    this.reads();
    this.sleeps();
  }

  /** @param keys the limit keys that are closed */
  reads(lanes: Partial<AwaitedLanes> = {}, keys: readonly string[] = []): void {
    this.worker.beginRead(this.#types, "A", { ...NO_LANES, ...lanes }, new Set(keys));
  }

  sleeps(isFull = false): void {
    this.worker.endRead({ task: null, isFull });
    void this.worker.wait(60 * SECOND, this.#hangUp.signal).then((outcome) => this.outcomes.push(outcome));
  }

  takes(taskType: string): void {
    this.worker.endRead({ task: task("t", { taskType }), from: "open" });
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
const created = (taskType = "", lane: string | null = null): Notified => ({
  kind: "task.created",
  task: task(`t${++ids}`, { taskType, lane, status: "open" }),
});
const event = (kind: EventKind, nodeId: string): Notified => ({
  kind: "event.logged",
  event: { kind, at: 0, nodeId, taskId: null, data: {} },
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
    first?.worker.endRead({ task: task("t"), from: "gifts" });
    first?.worker.leave();
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
    x?.reads({ short: [{ name: " gpu" }] });
    y?.reads();
    z?.reads({ short: [{ name: " disk" }] });
    for (const one of all) one.sleeps(true);
    await notify(idle, event("task.completed", "n"));
    expect(woken(all)).toEqual([2, 1, 2]); // the first for the room, the last for its resource
    x?.reads({ short: [{ name: " gpu" }] });
    x?.sleeps();
    await settle();
    expect(woken(all)).toEqual([2, 2, 2]);
    for (const { worker } of all) worker.leave();
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
async function openNode() {
  const store = openSqlite(":memory:", (error) => {
    throw error;
  });
  const clock = systemClock();
  const tasks = new TaskService(store, clock, newId);
  const idle = new IdleWorkers(store, tasks.known);
  const takes = new Takes(store, clock);
  const next = new NextService(store, clock, new NodeService(store, clock, tasks), tasks, idle, takes);
  await store.transact({}, () => accept(null, saved(node("n1"))));
  const lost = losingOutcome(store);
  const asked = { nodeId: "n1", taskTypes: null, resume: false, inBatch: false };
  const signal = new AbortController().signal;
  return {
    store,
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
    const idle = new IdleWorkers(NO_STORE, { mustAnnounce: () => false });
    const all = ["n1", "n2"].map((nodeId) => new Sleeper(idle, nodeId, ["z"]));
    idle.wakeAll();
    await settle();
    for (const one of all) {
      one.reads({ special: lanes });
      one.sleeps();
    }
    await notify(idle, created("z", " k"));
    expect(woken(all)).toEqual([2, 1]);
    all[0]?.reads({ closed: lanes }, ["k"]);
    all[0]?.sleeps();
    await settle();
    expect(woken(all)).toEqual([2, 2]); // the first one did not look in the lane
    all[1]?.reads({ closed: lanes }, ["k"]);
    all[1]?.sleeps();
    await notify(idle, created("z", " k"), freed);
    expect(woken(all)).toEqual([3, 2]);
    await notify(idle, freed);
    expect(woken(all)).toEqual([3, 3]);
    for (const { worker } of all) worker.leave();
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
  /** Counts the changes of `types`, and that the node left. */
  version: number;
  readonly maxTasks: number;
  /** The lanes of the tasks that it has started. */
  readonly running: string[];
  gifts: number;
};
/** A blocked call. `asleep`: what its last read found, while it sleeps. */
type Call = {
  readonly node: TestNode;
  readonly asked: readonly string[] | null;
  readonly hangUp: AbortController;
  types: readonly string[] | null;
  asleep: { readonly isFull: boolean } | null;
  /** Its node has left. */
  isOver: boolean;
};
type TakenTask = Found & { readonly task: Task };
type Read = Found | "the node has changed";

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
/** Limit keys of which so many tasks may run at a time. */
const LIMITED: readonly string[] = ["x", "k"];
const LIMIT = 2;

const keyOf = (name: string): string => LANES.get(name)?.limitKey ?? LANES.get(name)?.taskType ?? name;

const WAIT_MS = SECOND;

/** Tasks and nodes, and blocked calls whose every read of them begins and ends when the test says so. */
class Backlog {
  readonly #known = new KnownLanes(false);
  readonly idle = new IdleWorkers(NO_STORE, this.#known);
  readonly gates: (() => void)[] = [];
  /** In order of arrival. */
  readonly calls = new Set<Call>();
  /** The open tasks by the names of their lanes. */
  readonly open = new Map([...TYPES, ...LANES.keys()].map((lane) => [lane, 0]));
  readonly nodes: readonly TestNode[];
  readonly #random: Dice;
  #now = 0;
  readonly #takes = new Takes({ socketsPolled: () => this.#gate() }, { steady: () => this.#now });

  constructor(random: Dice) {
    this.#random = random;
    this.nodes = ["n1", "n2", "n3"].map((nodeId) => ({
      ...{ nodeId, types: this.#someTypes(), version: 0, maxTasks: 2 + random(6), running: [], gifts: 0 },
    }));
  }

  get sleepers(): readonly Call[] {
    return [...this.calls].filter(({ asleep }) => asleep);
  }

  step(): void {
    const kind = this.#random(74);
    const [node, lane] = [this.#anyOf(this.nodes), this.#anyOf([...this.open.keys()])];
    if (!node || lane === undefined) throw new Error("there are nodes and lanes");
    if (kind < 14) void this.#call(node);
    else if (kind < 50) this.openOneGate();
    else if (kind < 54) this.create(1 + this.#random(2), lane);
    else if (kind < 55) this.#createElsewhere(lane);
    else if (kind < 57) this.#give(node);
    else if (kind < 65) this.#complete(node);
    else if (kind < 68) this.#anyOf([...this.calls])?.hangUp.abort();
    else if (kind < 69) this.#passTime(WAIT_MS / 2);
    else if (kind < 73) this.#update(node);
    else if (kind < 74) this.#leave(node);
  }

  /** A call comes, a task ends, or one is created: mostly in one lane, so that its limit closes and opens. */
  stepAtRest(lane: string): void {
    const [node, other = ""] = [this.#anyOf(this.nodes), this.#anyOf([...this.open.keys()])];
    if (!node) return;
    const kind = this.#random(10);
    if (kind < 4) void this.#call(node);
    else if (kind < 7) this.create(1, kind === 4 ? other : lane);
    else this.#complete(node);
  }

  #passTime(ms: number): void {
    this.#now += ms;
    jest.advanceTimersByTime(ms);
  }

  openOneGate(): void {
    this.gates.splice(this.#random(this.gates.length || 1), 1)[0]?.();
  }

  create(count: number, lane: string): void {
    this.#add(count, lane);
    this.#commit(...Array.from({ length: count }, () => createdIn(lane)));
  }

  /** Whether a call could take a task now. */
  isServable({ node, asked }: Call): boolean {
    return node.gifts > 0 || (hasRoom(node) && this.#anyOpen(node, both(node.types, asked)) !== undefined);
  }

  /** The limit keys of which as many tasks run as may. */
  get #closed(): ReadonlySet<string> {
    const running = this.nodes.flatMap((node) => node.running.map(keyOf));
    return new Set(LIMITED.filter((key) => running.filter((one) => one === key).length >= LIMIT));
  }

  /** At another hub, whose notification may be lost. */
  #createElsewhere(lane: string): void {
    const count = 1 + this.#random(2);
    this.#add(count, lane);
    const offered = { kind: "work.offered", offer: { kind: "open", lane }, count } as const;
    this.#commit(this.#random(3) === 0 ? { kind: "work.missed" } : offered);
  }

  #add(count: number, lane: string): void {
    this.open.set(lane, (this.open.get(lane) ?? 0) + count);
  }

  #give(node: TestNode): void {
    node.gifts++;
    this.#commit(given(node.nodeId));
  }

  #complete(node: TestNode): void {
    if (node.running.length === 0) return;
    const [name = ""] = node.running.splice(this.#random(node.running.length), 1);
    this.#commit(ended(name, "completed"), event("task.completed", node.nodeId));
  }

  #update(node: TestNode): void {
    node.types = this.#someTypes();
    node.version++;
    this.#commit(event("node.updated", node.nodeId));
  }

  /** Ends the calls of the node; a later call brings it back. */
  #leave(node: TestNode): void {
    node.version++;
    for (const call of this.calls) call.isOver ||= call.node === node;
    this.#commit(event("node.left", node.nodeId), event("node.offline", node.nodeId));
  }

  #commit(...changes: readonly Notified[]): void {
    this.idle.decided(changes);
    this.idle.notify(changes);
  }

  /** As NextService: what it takes it puts back when the caller has hung up. */
  async #call(node: TestNode): Promise<void> {
    const asked = this.#someTypes();
    const call: Call = { node, asked, hangUp: new AbortController(), types: [], asleep: null, isOver: false };
    const { signal } = call.hangUp;
    this.calls.add(call);
    const worker = this.idle.join(node.nodeId);
    let isKnown = false;
    const take = async (): Promise<TakenTask | null> => {
      call.asleep = null;
      if (!isKnown) await this.#gate(); // it reads its node
      isKnown = true;
      while (!signal.aborted && !worker.isEnded) {
        call.types = both(node.types, asked);
        const { closed } = this.#known;
        const open = call.types?.filter((type) => !closed?.keys.has(type)) ?? null;
        const seen = this.#known.openTo(theNode(node), asked);
        worker.beginRead(open, "A", this.#known.awaitedBy(theNode(node), asked), closed?.keys);
        const found = await this.#read(call, node.version, seen);
        if (found === "the node has changed") continue;
        worker.endRead(found);
        if (found.task) return found;
        call.asleep = found;
        return null;
      }
      return null;
    };
    try {
      const taken = await this.#takes.untilTaken(worker, take, { waitMs: WAIT_MS, signal });
      const putBack = async (): Promise<void> => {
        if (taken) this.#putBack(node, taken);
      };
      await this.#takes.deliver(taken, { signal, repeatable: false }, putBack);
    } catch {
      return; // it hung up, or a read failed: its wake-up must go on to the next call
    } finally {
      this.calls.delete(call);
    }
  }

  /** As NextService: reads again if other lanes have opened, or if it found nothing and the node has less left. */
  async #read(call: Call, version: number, before: Seen): Promise<Read> {
    const { node, asked } = call;
    await this.#gate();
    if (this.#random(8) === 0) throw new StoreUnavailable("the store is unavailable");
    const ready = [...LANES].filter(([name]) => (this.open.get(name) ?? 0) > 0);
    const keys = this.#closed;
    const none: ReadonlySet<string> = new Set();
    const others = { hub: false, nodes: none, creators: none, types: none, groups: none };
    const closed = keys.size === 0 ? null : { ...others, keys };
    const gate = { day: 0, budgets: [], pauses: [], limits: [], closed, opensAt: null };
    this.#known.learn(gate, new Map(ready));
    let found: Read = "the node has changed";
    if (node.version === version && !this.#known.hasOpened(theNode(node), asked, before))
      found = this.#take(call);
    const isOther = !Bun.deepEquals(theNode(node).used, before.node.used);
    if (found !== "the node has changed" && found.task === null && !found.isFull && isOther)
      found = "the node has changed";
    await this.#gate();
    return found;
  }

  #take({ node, types, hangUp }: Call): Found {
    const isFull = !hasRoom(node);
    if (hangUp.signal.aborted) return { task: null, isFull };
    if (node.gifts > 0) {
      node.gifts--;
      node.running.push("");
      return { task: task("t"), from: "gifts" };
    }
    const lane = isFull ? undefined : this.#anyOpen(node, types);
    if (lane === undefined) return { task: null, isFull };
    this.#add(-1, lane);
    node.running.push(lane);
    return { task: taskIn(lane), from: "open" };
  }

  #putBack(node: TestNode, { task, from }: TakenTask): void {
    const lane = from === "gifts" ? "" : laneNameOf(task);
    node.running.splice(node.running.indexOf(lane), 1);
    if (from === "gifts") return this.#give(node);
    this.#add(1, lane);
    this.#commit(ended(lane, "open"), event("task.released", node.nodeId));
  }

  /** An open task that the node could take, by its lane. */
  #anyOpen(node: TestNode, types: readonly string[] | null): string | undefined {
    const closed = this.#closed;
    const free = lanesOf(types).filter((name) => name === " key" || !node.running.includes(name));
    const open = [...(types ?? TYPES), ...free].filter((name) => !closed.has(keyOf(name)));
    return this.#anyOf(open.filter((name) => (this.open.get(name) ?? 0) > 0));
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

const given = (nodeId: string): Notified => ({
  kind: "task.moved",
  task: task(`t${++ids}`, { status: "assigned", assignedNode: nodeId, startedAt: null }),
});

const hasRoom = ({ running, gifts, maxTasks }: TestNode): boolean => running.length + gifts < maxTasks;

/** The special lanes of tasks of these types. */
const lanesOf = (types: readonly string[] | null): readonly string[] =>
  [...LANES.values()]
    .filter(({ taskType }) => types === null || types.includes(taskType))
    .map(({ name }) => name);

const createdIn = (lane: string): Notified => {
  const special = LANES.get(lane);
  return special ? created(special.taskType, lane) : created(lane);
};

const taskIn = (lane: string): Task => {
  const special = LANES.get(lane);
  return task(
    "t",
    special ? { taskType: special.taskType, limitKey: special.limitKey, lane } : { taskType: lane },
  );
};

/** After it ran. */
const ended = (name: string, status: "completed" | "open"): Notified => ({
  kind: "task.moved",
  task: { ...taskIn(name), status, countsFor: LIMITED.includes(keyOf(name)) ? keyOf(name) : null },
});

const theNode = ({ nodeId, types, running }: TestNode): Node => {
  const used = { gpu: Number(running.includes(" gpu")), disk: Number(running.includes(" disk")) };
  const capabilities = types?.length === 0 ? ["none"] : [...(types ?? [])];
  return node(nodeId, { capabilities, resources: { gpu: 1, disk: 1 }, used });
};

function both(types: readonly string[] | null, asked: readonly string[] | null): readonly string[] | null {
  if (types === null || asked === null) return types ?? asked;
  return types.filter((type) => asked.includes(type));
}

const takes = ({ types }: Call, type: string): boolean => types === null || types.includes(type);

/** Lets every promise that can settle do so; no timer fires. */
async function settlePromises(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}

/** Lets every read end, until all calls have left or sleep. */
async function quiesce(backlog: Backlog): Promise<void> {
  await settlePromises();
  while (backlog.gates.length > 0) {
    backlog.openOneGate();
    await settlePromises();
  }
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
      const lane = [...backlog.open.keys()][random(backlog.open.size)] ?? "";
      for (let steps = 25; steps >= 0; steps--) {
        for (const call of backlog.calls) {
          if (!call.asleep || backlog.isServable(call))
            throw new Error(
              `seed ${seed}: a call of ${call.node.nodeId} waits beside a task that it could take`,
            );
          if (call.isOver) throw new Error(`seed ${seed}: a call waits although its node left`);
          if (call.asleep.isFull) seen.full++;
          if ([...backlog.open.values()].some((count) => count > 0)) seen.besideTasks++;
        }
        if (steps > 0) backlog.stepAtRest(lane);
        await quiesce(backlog);
      }

      const taskType = random(2) === 0 ? "y" : "z"; // no limit keeps these back
      const { sleepers } = backlog;
      const first = sleepers.find((call) => !call.asleep?.isFull && takes(call, taskType));
      backlog.create(1, taskType);
      const woken = sleepers.filter(({ asleep }) => !asleep);
      if (woken[0] !== first || woken.length > 1)
        throw new Error(`seed ${seed}: ${woken.length} were woken, or not the first in order of arrival`);
      seen.woken += woken.length;

      for (const { hangUp } of backlog.calls) hangUp.abort();
      await quiesce(backlog);
      const left = { calls: backlog.calls.size, timers: jest.getTimerCount() };
      if (left.calls + left.timers + backlog.idle.nodesOf("A").length > 0)
        throw new Error(`seed ${seed}: left behind ${JSON.stringify(left)}`);
    }
    // Else the checks would have had nothing to see.
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(100);
  } finally {
    jest.useRealTimers();
  }
});
