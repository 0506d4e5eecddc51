/**
 * The idle workers: how many of them a commit wakes, which ones, and in what order. API tests see only the worker that
 * gets the task; these tests also see the workers that were woken in vain.
 */
import { describe, expect, jest, test } from "bun:test";
import type { Notified } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import type { EventKind } from "../../src/domain/event.ts";
import { laneNameOf } from "../../src/domain/lane.ts";
import type { Node, Task } from "../../src/domain/model.ts";
import { saved } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { Takes } from "../../src/service/blocked-calls.ts";
import { type Found, type IdleWorker, IdleWorkers } from "../../src/service/idle-workers.ts";
import { KnownLanes } from "../../src/service/known-lanes.ts";
import { NextService } from "../../src/service/next.ts";
import { NodeService } from "../../src/service/nodes.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../src/store/store.ts";
import { draft, node, task } from "../domain/samples.ts";
import { costRatio, cpuOf } from "../support/cost.ts";
import { type Dice, dice } from "../support/dice.ts";
import { losingOutcome } from "../support/lost-outcome.ts";

const SECOND = 1_000;
/** The tests call the listeners themselves. */
const NO_STORE = { onDecision: () => undefined, onCommit: () => undefined };

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

  /** @param short the special lanes for which its node has too little left of a resource */
  reads(short: readonly string[] = []): void {
    this.worker.beginRead(this.#types, "A", { special: short, short, keys: [] });
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
    await notify(idle, { kind: "work.offered", offer: { kind: "open", taskType: "y" }, count: 3 });
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
    x?.reads([" gpu"]);
    y?.reads();
    z?.reads([" disk"]);
    for (const one of all) one.sleeps(true);
    await notify(idle, event("task.completed", "n"));
    expect(woken(all)).toEqual([2, 1, 2]); // the first for the room, the last for its resource
    x?.reads([" gpu"]);
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
/** Two special lanes. A node has the resources for one task of each at a time. */
const LANES = new Map(
  [["gpu", "x"] as const, ["disk", "y"] as const].map(([resource, taskType]) => {
    const requires = { capabilities: [], resources: { [resource]: 1 } };
    return [` ${resource}`, { name: ` ${resource}`, taskType, requires, limitKey: null, creatorNode: null }];
  }),
);
/** What a node has for them. */
const ABLE = { resources: { gpu: 1, disk: 1 } };
const NO_GATE = { day: 0, budgets: [], pauses: [], limits: [], closed: null, opensAt: null };
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
      ...{ nodeId, types: this.#someTypes(), version: 0, maxTasks: 1 + random(4), running: [], gifts: 0 },
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

  /** At another hub, whose notification may be lost. */
  #createElsewhere(lane: string): void {
    const count = 1 + this.#random(2);
    this.#add(count, lane);
    const offered = { kind: "work.offered", offer: { kind: "open", taskType: lane }, count } as const;
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
    node.running.splice(this.#random(node.running.length), 1);
    this.#commit(event("task.completed", node.nodeId));
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
        const special = this.#known.awaitedBy(theNode(node), asked);
        const known = lanesOf(call.types).filter((lane) => this.#known.lanes.has(lane));
        const short = known.filter((lane) => node.running.includes(lane));
        worker.beginRead(call.types, "A", { special, short, keys: [] });
        const found = await this.#read(call, node.version, known, short);
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

  /** As NextService: it looks for tasks of the lanes that it knows, and reads again if others have opened or closed. */
  async #read(
    call: Call,
    version: number,
    known: readonly string[],
    short: readonly string[],
  ): Promise<Read> {
    const { node } = call;
    await this.#gate();
    if (this.#random(8) === 0) throw new StoreUnavailable("the store is unavailable");
    const ready = lanesOf(call.types).filter((lane) => (this.open.get(lane) ?? 0) > 0);
    const lanes = [...LANES.values()].filter(({ name }) => (this.open.get(name) ?? 0) > 0);
    this.#known.learn(NO_GATE, new Map(lanes.map((lane) => [lane.name, lane])));
    const isFree = (lane: string): boolean => !node.running.includes(lane);
    const hasOpened = ready.some((lane) => isFree(lane) && (!known.includes(lane) || short.includes(lane)));
    let found: Read = node.version === version && !hasOpened ? this.#take(call) : "the node has changed";
    const isShorter = known.some((lane) => !isFree(lane) && !short.includes(lane));
    if (found !== "the node has changed" && found.task === null && isShorter) found = "the node has changed";
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
    this.#commit(createdIn(lane), event("task.released", node.nodeId));
  }

  /** An open task that the node could take, by its lane. */
  #anyOpen(node: TestNode, types: readonly string[] | null): string | undefined {
    const free = lanesOf(types).filter((lane) => !node.running.includes(lane));
    return this.#anyOf([...(types ?? TYPES), ...free].filter((lane) => (this.open.get(lane) ?? 0) > 0));
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
  return task("t", special ? { taskType: special.taskType, lane } : { taskType: lane });
};

const theNode = ({ nodeId, types }: TestNode): Node =>
  node(nodeId, { capabilities: types?.length === 0 ? ["none"] : [...(types ?? [])], ...ABLE });

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

test("1,500 random interleavings: no call sleeps beside a task that it could take, the first is woken, and nothing is left", async () => {
  jest.useFakeTimers();
  try {
    const seen = { full: 0, besideTasks: 0, woken: 0 };
    for (let seed = 1; seed <= 1_500; seed++) {
      const random = dice(seed);
      const backlog = new Backlog(random);
      for (let steps = 20 + random(80); steps > 0; steps--) {
        backlog.step();
        if (random(3) === 0) await settlePromises();
      }
      await quiesce(backlog);
      // Once more, because few tasks come to calls that have all gone to sleep.
      for (const lane of LANES.keys()) {
        backlog.create(1, lane);
        await quiesce(backlog);
      }
      for (const call of backlog.calls) {
        if (!call.asleep || backlog.isServable(call))
          throw new Error(
            `seed ${seed}: a call of ${call.node.nodeId} waits beside a task that it could take`,
          );
        if (call.isOver) throw new Error(`seed ${seed}: a call waits although its node left`);
        if (call.asleep.isFull) seen.full++;
        if ([...backlog.open.values()].some((count) => count > 0)) seen.besideTasks++;
      }

      const taskType = TYPES[random(TYPES.length)] ?? "";
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
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(150);
  } finally {
    jest.useRealTimers();
  }
});
