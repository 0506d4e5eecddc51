/** The counts by minute over a real store: the counted changes, their minute, and the sum of several runs of hubs. */
import { expect, test } from "bun:test";
import { MINUTES_KEPT } from "../../src/domain/limits.ts";
import { accept } from "../../src/domain/decision.ts";
import { saved } from "../../src/domain/node.ts";
import { MINUTE_MS, SECOND_MS } from "../../src/lib/clock.ts";
import { type DurationSummary, Minutes } from "../../src/service/minutes.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { minutesBetween } from "../../src/store/sql/minutes.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { StoreFull } from "../../src/store/store.ts";
import { NOW, STEADY, draft, node } from "../domain/samples.ts";
import { standIn } from "../support/stand-in.ts";

const RESULT = { problem: "p", improvement: "i", lesson: "l", extra: null };

async function openScene() {
  const store = openSqlite(":memory:", (error) => {
    throw error;
  });
  let passed = SECOND_MS; // since the beginning of a minute
  const clock = {
    now: () => NOW + passed,
    steady: () => STEADY + passed,
    machine: () => STEADY + passed,
    timers: () => passed,
    work: () => 0,
    pass: (ms: number): void => void (passed += ms),
  };
  const minutes = new Minutes(store, clock, "h1");
  const tasks = new TaskService(store, clock, () => Bun.randomUUIDv7());
  await store.transact({}, () => accept(null, saved(node("n1", { leaseUntil: Number.MAX_SAFE_INTEGER }))));
  const create = async (patch: Parameters<typeof draft>[0] = {}): Promise<string> =>
    (await tasks.create(store.transact, draft(patch))).taskId;
  const claim = (taskId: string) => tasks.take(store.transact, "claim", { taskId, nodeId: "n1" });
  const complete = (taskId: string) =>
    tasks.complete(store.transact, {
      taskId,
      nodeId: "n1",
      result: RESULT,
      epoch: null,
      claimOnComplete: true,
    });
  /** The metric of the waits of a type: their number, and their sum in seconds. */
  const waits = (type: string): readonly (number | undefined)[] => {
    const wait = minutes.counts.typeTimes.get(type)?.wait;
    return [wait?.count, wait?.sum];
  };
  return { store, clock, minutes, tasks, create, claim, complete, waits };
}

/** Within the step of the histogram that has the true value. */
function expectAbout({ p50Ms }: DurationSummary, from: number, to: number): void {
  expect(p50Ms).toBeGreaterThanOrEqual(from);
  expect(p50Ms).toBeLessThanOrEqual(to);
}

test("counts in the minute of the commit, and sums the minutes", async () => {
  const { clock, minutes, create, claim, complete } = await openScene();
  const first = await create({ luxRewardMicro: 2_500_000 });
  const second = await create();
  clock.pass(15 * SECOND_MS);
  await claim(first);
  clock.pass(MINUTE_MS);
  await complete(first);
  await complete(second); // it was open
  const { minutes: found, total } = await minutes.last(3);
  expect(found.map(({ at }) => at)).toEqual([0, 1, 2].map((n) => (found[0]?.at ?? 0) + n * MINUTE_MS));
  expect(found.map(({ created, started, completed }) => [created, started, completed])).toEqual([
    [0, 0, 0],
    [2, 1, 0],
    [0, 1, 2],
  ]);
  expect(found.map(({ luxMicro }) => luxMicro)).toEqual([0, 0, 2_500_000]);
  expect(total).toMatchObject({ created: 2, started: 2, completed: 2, failed: 0, luxMicro: 2_500_000 });
  expect(found[1]?.toStart).toMatchObject({ count: 1, sumMs: 15 * SECOND_MS });
  expectAbout(found[1]?.toStart ?? total.toStart, 10 * SECOND_MS, 20 * SECOND_MS);
  expect(total.toStart).toMatchObject({ count: 2, sumMs: 90 * SECOND_MS });
  expect(total.toFinish).toMatchObject({ count: 2, sumMs: 150 * SECOND_MS });
  expectAbout(total.toFinish, 60 * SECOND_MS, 120 * SECOND_MS);
  expect(found[0]?.toStart).toEqual({ count: 0, sumMs: 0, p50Ms: null, p95Ms: null });
});

test("a delay is no time to start, and only the first hand-out has one", async () => {
  const { store, clock, minutes, tasks, create, claim } = await openScene();
  const taskId = await create({ notBefore: clock.now() + 30 * SECOND_MS, backoffMs: 0 });
  clock.pass(33 * SECOND_MS);
  await claim(taskId);
  const fail = { taskId, nodeId: "n1", epoch: null, error: "no" };
  await tasks.fail(store.transact, { ...fail, retry: true });
  await claim(taskId);
  await tasks.fail(store.transact, { ...fail, retry: false });
  const { total } = await minutes.last(1);
  expect(total).toMatchObject({ started: 2, attemptsFailed: 2, failed: 1, completed: 0 });
  expect(total.toStart).toMatchObject({ count: 1, sumMs: 3 * SECOND_MS });
});

test("the metric of a type counts the wait of each hand-out, since the task was ready", async () => {
  const { store, clock, tasks, create, claim, complete, waits } = await openScene();
  const taskId = await create({ taskType: "build", backoffMs: 10 * SECOND_MS });
  clock.pass(5 * SECOND_MS);
  await claim(taskId);
  expect(waits("build")).toEqual([1, 5]);
  clock.pass(100 * SECOND_MS); // it works
  await tasks.fail(store.transact, { taskId, nodeId: "n1", epoch: null, error: "no", retry: true });
  clock.pass(14 * SECOND_MS);
  await claim(taskId);
  expect(waits("build")).toEqual([2, 5 + 4]);
  clock.pass(100 * SECOND_MS);
  await tasks.release(store.transact, { taskId, nodeId: "n1", epoch: null, reason: null });
  clock.pass(2 * SECOND_MS);
  await complete(taskId); // as a node of B
  expect(waits("build")).toEqual([3, 5 + 4 + 2]);
});

test("sums the runs of hubs, and a new run begins with the saved counts", async () => {
  const { store, clock, minutes, create } = await openScene();
  await create();
  await minutes.save();
  await create();
  const next = new Minutes(store, clock, "h2");
  expect((await next.last(1)).total.created).toBe(1); // the last save of the other
  expect((await minutes.last(1)).total.created).toBe(2);
  await minutes.close();
  expect((await next.last(1)).total.created).toBe(2);
  expect((await minutes.last(1)).total.created).toBe(2);
});

test("saves only changed minutes, and retries those that could not be saved", async () => {
  const { store, clock, create } = await openScene();
  let saves = 0;
  let isFull = true;
  const refusing = standIn(store, {
    transact: (load, decide) => {
      saves++;
      if (isFull) throw new StoreFull("full");
      return store.transact(load, decide);
    },
  });
  const minutes = new Minutes(refusing, clock, "h3");
  const read = () => store.read(minutesBetween(0, Number.MAX_SAFE_INTEGER));
  await minutes.save();
  expect(saves).toBe(0);
  await create();
  await expect(minutes.save()).rejects.toThrow(StoreFull);
  await minutes.close(); // does not try
  expect(saves).toBe(1);
  isFull = false;
  await minutes.save();
  await minutes.save();
  expect(saves).toBe(2);
  expect(await read()).toMatchObject([{ hub: "h3" }]);
});

test("deletes older minutes than it shows, in memory and in the store", async () => {
  const { store, clock, minutes, create } = await openScene();
  for (let i = 0; i < MINUTES_KEPT + 5; i++) {
    await create();
    await minutes.save();
    clock.pass(MINUTE_MS);
  }
  const { minutes: found, total } = await minutes.last(MINUTES_KEPT);
  expect(found).toHaveLength(MINUTES_KEPT);
  expect(total.created).toBe(MINUTES_KEPT - 1); // nothing yet in the last minute
  const now = clock.now();
  const shown = { first: now - (MINUTES_KEPT + 1) * MINUTE_MS, last: now - 10 * MINUTE_MS };
  await store.transact({}, () => accept(null, [{ kind: "minutes.pruned", ...shown }]));
  const kept = await store.read(minutesBetween(0, Number.MAX_SAFE_INTEGER));
  expect(kept.length).toBeGreaterThan(45);
  expect(kept.every(({ at }) => at >= shown.first && at <= shown.last)).toBe(true);
});
