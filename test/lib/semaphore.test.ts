/** The weighted semaphore: FIFO, and never above its limit, except by a single holder. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  AcquireTimeout,
  FairTickQueue,
  Semaphore,
  SemaphoreShares,
  TickQueue,
} from "../../src/lib/semaphore.ts";

/** Who has acquired so far, by number. */
function ask(semaphore: Semaphore, amounts: readonly number[]): readonly number[] {
  const served: number[] = [];
  for (const [i, amount] of amounts.entries()) void semaphore.acquire(amount).then(() => served.push(i));
  return served;
}

test("grants the free amount, then queues callers in order, small amounts behind large ones", async () => {
  const semaphore = new Semaphore(10);
  const served = ask(semaphore, [6, 4, 5, 1, 1]);
  await Bun.sleep(0);
  expect([served, semaphore.held, semaphore.contended]).toEqual([[0, 1], 10, true]);
  semaphore.release(4);
  await Bun.sleep(0);
  expect([served, semaphore.held]).toEqual([[0, 1], 6]); // 5 do not fit yet, and 1 does not go before them
  semaphore.release(1);
  await Bun.sleep(0);
  expect([served, semaphore.held, semaphore.contended]).toEqual([[0, 1, 2], 10, true]);
  semaphore.release(6);
  await Bun.sleep(0);
  expect([served, semaphore.held, semaphore.contended]).toEqual([[0, 1, 2, 3, 4], 6, false]);
});

test("an amount above the limit is granted when nothing else is held", async () => {
  const semaphore = new Semaphore(10);
  const served = ask(semaphore, [50, 1]);
  await Bun.sleep(0);
  expect([served, semaphore.held]).toEqual([[0], 50]);
  semaphore.release(50);
  await Bun.sleep(0);
  expect([served, semaphore.held]).toEqual([[0, 1], 1]);
});

test("an overdraft is counted without waiting", async () => {
  const semaphore = new Semaphore(10);
  ask(semaphore, [2]);
  semaphore.overdraw(100);
  const served = ask(semaphore, [1]);
  await Bun.sleep(0);
  expect([served, semaphore.held]).toEqual([[], 102]);
  semaphore.release(102);
  await Bun.sleep(0);
  expect([served, semaphore.held]).toEqual([[0], 1]);
});

test("tryAcquire acquires at once or not at all, and never before a waiter", async () => {
  const semaphore = new Semaphore(10);
  expect([semaphore.tryAcquire(8), semaphore.tryAcquire(3), semaphore.tryAcquire(2)]).toEqual([
    true,
    false,
    true,
  ]);
  const served = ask(semaphore, [5]);
  semaphore.release(4);
  expect([semaphore.tryAcquire(1), semaphore.held]).toEqual([false, 6]);
  semaphore.release(1);
  await Bun.sleep(0);
  expect([served, semaphore.held]).toEqual([[0], 10]);
});

test("a waiter with a time limit acquires in time or not at all; then the next one is granted", async () => {
  const semaphore = new Semaphore(10);
  await semaphore.acquire(8, 1);
  const late = semaphore.acquire(5, 10);
  const next = semaphore.acquire(2, 10_000);
  await expect(late).rejects.toBeInstanceOf(AcquireTimeout);
  await next;
  expect([semaphore.held, semaphore.contended]).toEqual([10, false]);
  const last = semaphore.acquire(10, 10_000);
  semaphore.release(10);
  await last;
  expect(semaphore.held).toBe(10);
});

test("when closed, refuses all waiters and grants the free amount", async () => {
  const semaphore = new Semaphore(10);
  await semaphore.acquire(8);
  const waiters = [semaphore.acquire(5), semaphore.acquire(2), semaphore.acquire(2, 10_000)];
  semaphore.close();
  const ends = await Promise.allSettled(waiters);
  expect(ends.map((end) => end.status === "rejected" && end.reason)).toEqual(
    new Array(3).fill(expect.any(AcquireTimeout)),
  );
  await expect(semaphore.acquire(3, 10_000)).rejects.toBeInstanceOf(AcquireTimeout);
  await semaphore.acquire(2);
  expect([semaphore.held, semaphore.contended]).toEqual([10, false]);
});

test("after any sequence of acquire and release, all are granted and nothing stays held", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 15 }), { maxLength: 40 }), async (amounts) => {
      const semaphore = new Semaphore(10);
      let most = 0;
      await Promise.all(
        amounts.map(async (amount) => {
          await semaphore.acquire(amount);
          if (semaphore.held !== amount) most = Math.max(most, semaphore.held);
          await Bun.sleep(0);
          semaphore.release(amount);
        }),
      );
      expect(most).toBeLessThanOrEqual(10);
      expect([semaphore.held, semaphore.contended]).toEqual([0, false]);
    }),
    { numRuns: 50, seed: 1 },
  );
});

test("a tick queue lets one caller through per tick, in order", async () => {
  const queue = new TickQueue();
  const passed: (readonly [caller: number, tick: number])[] = [];
  let tick = 0;
  const callers = Array.from({ length: 5 }, (_, i) => queue.next().then(() => passed.push([i, tick])));
  expect(queue.waiting).toBe(4);
  const count = (): unknown => passed.length < 5 && setImmediate(() => (tick++, count()));
  count();
  await Promise.all(callers);
  expect(passed.map(([caller]) => caller)).toEqual([0, 1, 2, 3, 4]);
  expect(new Set(passed.map(([, at]) => at)).size).toBe(5);
});

test("a fair tick queue lets one caller through per tick, in turn for each name", async () => {
  const queue = new FairTickQueue(1, 1, () => 0);
  const passed: string[] = [];
  const ticks = new Set<number>();
  let tick = 0;
  const ask = (name: string) =>
    queue.next(name[0] ?? "").then(() => {
      passed.push(name);
      ticks.add(tick);
    });
  const count = (): unknown => passed.length < 8 && setImmediate(() => (tick++, count()));
  count();
  const callers = ["a1", "a2", "a3", "a4", "b1", "b2", "c1"].map(ask);
  callers.push(callers[4]?.then(() => ask("d1")) ?? Promise.reject(new Error("none")));
  await Promise.all(callers);
  expect(passed).toEqual(["a1", "a2", "b1", "c1", "a3", "b2", "d1", "a4"]);
  expect(ticks.size).toBe(8);
});

test("a fair tick queue lets more through after short ticks, and one after a long one", async () => {
  const inTick: number[] = [];
  const run = async (queue: FairTickQueue): Promise<void> => {
    inTick.length = 0;
    let tick = 0;
    const count = (): unknown => tick < 12 && setImmediate(() => (tick++, count()));
    count();
    const passed = () => void (inTick[tick] = (inTick[tick] ?? 0) + 1);
    await Promise.all(Array.from({ length: 10 }, () => queue.next("a").then(passed)));
  };
  let nowMs = 0;
  await run(new FairTickQueue(3, 1, () => 0));
  expect(inTick.filter((passed) => passed > 0)).toEqual([1, 2, 3, 3, 1]);
  await run(new FairTickQueue(3, 1, () => nowMs++)); // every tick takes as long
  expect(inTick.filter((passed) => passed > 0)).toEqual(new Array(10).fill(1));
});

test("a share is bounded by itself and by the whole, and is forgotten when it is idle", async () => {
  const shares = new SemaphoreShares(10);
  const share = (name: string) => shares.of(name, 4);
  const held: string[] = [];
  const ask = (name: string, amount: number): void =>
    void share(name)
      .acquire(amount, 10_000)
      .then(() => held.push(`${name}${amount}`));
  ask("a", 4);
  ask("a", 1); // waits for its own share
  ask("b", 4);
  ask("c", 3); // waits for the whole
  await Bun.sleep(1);
  expect([held, shares.size]).toEqual([["a4", "b4"], 3]);
  expect(share("b").tryAcquire(1)).toBe(false);
  expect(share("d").tryAcquire(1)).toBe(false); // c waits before it
  expect(shares.size).toBe(3);
  share("a").release(4);
  await Bun.sleep(1);
  expect(held).toEqual(["a4", "b4", "c3", "a1"]);
  for (const [name, amount] of [
    ["a", 1],
    ["b", 4],
    ["c", 3],
  ] as const)
    share(name).release(amount);
  expect(shares.size).toBe(0);
});

test("an acquire that the share or the whole refuses holds nothing", async () => {
  const shares = new SemaphoreShares(4);
  const share = (name: string) => shares.of(name, 3);
  share("a").overdraw(3);
  await expect(share("a").acquire(1, 1)).rejects.toThrow(AcquireTimeout);
  await expect(share("b").acquire(2, 1)).rejects.toThrow(AcquireTimeout);
  expect(shares.size).toBe(1);
  const waits = Promise.allSettled([share("a").acquire(1), share("b").acquire(2)]);
  shares.close();
  expect((await waits).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  share("a").release(3);
  expect(shares.size).toBe(0);
});
