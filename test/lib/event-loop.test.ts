/** The end of a tick, released in groups, and turns of one's own. */
import { expect, test } from "bun:test";
import { Turns, endOfTick, lastInTick } from "../../src/lib/event-loop.ts";

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("the end of a tick comes for at most 512 callers at once, in order, and for the others in the next ticks", async () => {
  const released: number[] = [];
  for (let i = 0; i < 1_200; i++) void endOfTick().then(() => released.push(i));
  await tick();
  expect(released.length).toBe(512);
  void endOfTick().then(() => released.push(1_200)); // behind those that wait already
  while (released.length < 1_201) {
    const before = released.length;
    await tick();
    expect(released.length - before).toBeLessThanOrEqual(512);
  }
  expect(released).toEqual(Array.from({ length: 1_201 }, (_, i) => i));
});

test("what runs last in a tick runs after all that its end started", async () => {
  const done: string[] = [];
  void endOfTick().then(() => {
    lastInTick(() => done.push("last"));
    done.push("first");
  });
  void endOfTick().then(() => done.push("second"));
  await tick();
  await tick();
  expect(done).toEqual(["first", "second", "last"]);
});

test("each turn is a macrotask of its own, and a tick has a bounded number of them", async () => {
  const turns = new Turns(10);
  const given: number[] = [];
  let inThisTask = 0;
  let most = 0;
  for (let i = 0; i < 25; i++) {
    void turns.next().then(() => {
      given.push(i);
      most = Math.max(most, ++inThisTask);
      process.nextTick(() => (inThisTask = 0)); // after the microtasks that belong to this turn
    });
  }
  const perTick: number[] = [];
  while (given.length < 25) {
    const before = given.length;
    await tick();
    perTick.push(given.length - before);
  }
  expect(most).toBe(1);
  expect(Math.max(...perTick)).toBeLessThanOrEqual(10);
  expect(given).toEqual(Array.from({ length: 25 }, (_, i) => i));
});
