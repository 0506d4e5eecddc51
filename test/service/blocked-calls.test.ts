/** The loop of blocked calls, and the put-backs of those that take: what their deadline and a store that refuses do. */
import { expect, test } from "bun:test";
import { Takes, untilFound } from "../../src/service/blocked-calls.ts";
import { WaitAborted, Waiters } from "../../src/service/waiters.ts";

const KEY = "k";
const WAIT_MS = 15;

/** A find that takes a while, during which rows are signalled. Returns how often it has read. */
function slowFind(findMs: number, signals: number, foundAt: number) {
  const queue = new Waiters();
  let now = 0;
  let reads = 0;
  const find = async (): Promise<string | null> => {
    reads++;
    now += findMs;
    if (reads <= signals) queue.wakeAll(KEY);
    return reads === foundAt ? "found" : null;
  };
  const { signal } = new AbortController();
  const clock = { steady: () => now };
  return { found: untilFound(queue.join(KEY), find, { waitMs: WAIT_MS, signal }, clock), reads: () => reads };
}

test("a call whose first read takes longer than it may wait reads again what it has missed", async () => {
  const { found, reads } = slowFind(2 * WAIT_MS, 1, 2);
  expect(await found).toBe("found");
  expect(reads()).toBe(2);
});

test("a call past its deadline reads no more, however many signals come", async () => {
  const { found, reads } = slowFind(WAIT_MS - 5, 100, 100);
  expect(await found).toBe(null);
  expect(reads()).toBe(2);
});

test("a put-back that the store refuses is kept, also when it is refused again, and so are those after it", async () => {
  const takes = new Takes({ socketsPolled: async () => {} }, { steady: () => 0 });
  const hungUp = AbortSignal.abort();
  let isDown = true;
  const put: string[] = [];
  for (const name of ["a", "b"]) {
    const putBack = async (): Promise<void> => {
      if (isDown) throw new Error("down");
      put.push(name);
    };
    const delivered = takes.deliver(name, { signal: hungUp, repeatable: false }, putBack);
    expect(await delivered.catch((error: unknown) => error)).toBeInstanceOf(WaitAborted);
  }
  expect(await takes.retryPutBacks().catch((error: unknown) => error)).toMatchObject({ message: "down" });
  isDown = false;
  await takes.retryPutBacks();
  expect(put).toEqual(["a", "b"]);
});
