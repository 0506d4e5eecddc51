/**
 * The idle workers: how many of them a commit wakes, which ones, and in what order. API tests see only the worker that
 * gets the task; these tests also see the workers that were woken in vain.
 */
import { describe, expect, test } from "bun:test";
import type { Notified } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import type { EventKind } from "../../src/domain/event.ts";
import { saved } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { type IdleWorker, IdleWorkers } from "../../src/service/idle-workers.ts";
import { NextService } from "../../src/service/next.ts";
import { NodeService } from "../../src/service/nodes.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { OutcomeUnknown } from "../../src/store/store.ts";
import { draft, node, task } from "../domain/samples.ts";
import { costRatio } from "../support/cost.ts";
import { losingOutcome } from "../support/lost-outcome.ts";

const SECOND = 1_000;

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

  reads(): void {
    this.worker.beginRead(this.#types, "A");
  }

  sleeps(isFull = false): void {
    void this.worker
      .sleep(isFull, 60 * SECOND, this.#hangUp.signal)
      .then((outcome) => this.outcomes.push(outcome));
  }

  takes(taskType: string): void {
    this.worker.leave({ task: task("t", { taskType }), from: "open" });
  }

  hangsUp(): void {
    this.#hangUp.abort();
    this.worker.leave(null);
  }
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
};

let ids = 0;
const created = (taskType = ""): Notified => ({
  kind: "task.created",
  task: task(`t${++ids}`, { taskType, status: "open" }),
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
    const idle = new IdleWorkers();
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
    for (const { worker } of all) worker.leave(null);
  });

  test("of many of one commit each wakes one", async () => {
    const idle = new IdleWorkers();
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
    for (const { worker } of all) worker.leave(null);
  });

  test("goes to the next when the woken one leaves without it, or takes something else", async () => {
    const idle = new IdleWorkers();
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
    for (const { worker } of all) worker.leave(null);
  });

  test("that no sleeper takes makes the awake workers that take it read again", async () => {
    const idle = new IdleWorkers();
    const [x, y] = [new Sleeper(idle, "a", ["x"]), new Sleeper(idle, "b", ["y"])];
    await notify(idle, created("x"), created("y"));
    for (const one of [x, y]) one.reads();
    await notify(idle, created("x"));
    for (const one of [x, y]) one.sleeps();
    await settle();
    expect(woken([x, y])).toEqual([2, 1]);
    for (const { worker } of [x, y]) worker.leave(null);
  });
});

describe("a node", () => {
  test("that is full sleeps for gifts and room alone; room wakes its calls one by one", async () => {
    const idle = new IdleWorkers();
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
    first?.worker.leave({ task: task("t"), from: "gifts" });
    await notify(idle, event("task.completed", "n"));
    expect(woken(all)).toEqual([2, 2, 1, 1]);
    second?.takes("x");
    await settle();
    expect(woken(all)).toEqual([2, 2, 2, 1]); // there may be more room
    third?.reads();
    third?.sleeps(true);
    await notify(idle, event("task.completed", "m"));
    expect(woken(all)).toEqual([2, 2, 2, 1]);
    for (const { worker } of all) worker.leave(null);
  });

  test("that has room wakes its next call when the first finds no task of its types", async () => {
    const idle = new IdleWorkers();
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
    for (const { worker } of all) worker.leave(null);
  });

  test("that leaves, drains, changes or is deleted wakes all its calls; other events none", async () => {
    const idle = new IdleWorkers();
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
    expect(all.map(({ worker }) => worker.hasLeft)).toEqual([true, true, false]);
    await notify(idle, { kind: "work.missed" });
    expect(woken(all)).toEqual([times, times, 1]);
    for (const { worker } of all) worker.leave(null);
  });
});

test("a hand-out whose outcome is unknown says so, and takes no second task", async () => {
  const store = openSqlite(":memory:", (error) => {
    throw error;
  });
  const clock = systemClock();
  const tasks = new TaskService(store, clock, newId);
  const idle = new IdleWorkers();
  store.onDecision((changes) => idle.decided(changes));
  const next = new NextService(store, clock, new NodeService(store, clock, tasks), tasks, idle);
  await store.transact({}, () => accept(null, saved(node("n1"))));
  const lost = losingOutcome(store);
  const asked = { nodeId: "n1", taskTypes: null, resume: false, inBatch: false };
  const signal = new AbortController().signal;
  const ask = (waitMs: number) =>
    next.next(lost.transact, asked, { waitMs, signal, repeatable: true }).catch((error: unknown) => error);
  const blocked = ask(60 * SECOND);
  await settle(); // it sleeps
  lost.next();
  await tasks.create(store.transact, draft());
  const second = await tasks.create(store.transact, draft());
  expect(await blocked).toBeInstanceOf(OutcomeUnknown);
  expect(await ask(0)).toMatchObject({ task: { taskId: second.taskId } });
  await store.close();
});

test("waking one of 4,000 costs about as much as waking one of 100", async () => {
  const cost = (count: number) => async (): Promise<number> => {
    const idle = new IdleWorkers();
    const all = Array.from({ length: count }, (_, i) => new Sleeper(idle, `n${i}`, ["x", `own${i}`]));
    const started = performance.now();
    for (let i = 0; i < 100; i++) {
      idle.wakeFor({ kind: "open", taskType: "x" });
      all[i]?.sleeps();
    }
    const took = performance.now() - started;
    for (const { worker } of all) worker.leave(null);
    return took;
  };
  expect(await costRatio(cost(100), cost(4_000))).toBeLessThan(15);
});
