/** Assertions: what they throw, count and report. */
import { expect, test } from "bun:test";
import {
  InvariantBroken,
  assert,
  broken,
  invariantsBroken,
  must,
  onInvariantBroken,
} from "../../src/lib/assert.ts";
import { Semaphore } from "../../src/lib/semaphore.ts";
import { brokenDuring } from "../support/invariants.ts";

test("what holds is neither counted nor reported", () => {
  const before = invariantsBroken();
  assert(true, "never");
  expect([must(0, "never"), must("", "never"), must(false, "never")]).toEqual([0, "", false]);
  expect(invariantsBroken()).toBe(before);
});

test("each break is thrown, counted, and reported as long as somebody listens", async () => {
  const before = invariantsBroken();
  const heard: string[] = [];
  const stop = onInvariantBroken((error) => heard.push(error.message));
  const places = await brokenDuring(() => {
    expect(() => assert(false, "one")).toThrow(InvariantBroken);
    expect(() => must(null, "two")).toThrow("two");
    expect(() => must(undefined, "three")).toThrow("three");
    stop();
    expect(broken("four")).toBeInstanceOf(InvariantBroken);
  });
  expect(heard).toEqual(["one", "two", "three"]);
  expect(places).toEqual(["one", "two", "three", "four"]);
  expect(invariantsBroken() - before).toBe(4);
});

test("a semaphore of which too much is released reports it, and keeps its limit", async () => {
  const semaphore = new Semaphore(10);
  semaphore.overdraw(4);
  expect(await brokenDuring(() => semaphore.release(5))).toEqual(["what is released was acquired"]);
  expect([semaphore.held, semaphore.tryAcquire(10), semaphore.tryAcquire(1)]).toEqual([0, true, false]);
});
