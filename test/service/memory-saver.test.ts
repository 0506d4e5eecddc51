/** When garbage is collected (once, when the hub becomes quiet after work), and when code is compiled. */
import { expect, test } from "bun:test";
import {
  COLLECT_AFTER_CPU_MS,
  MEMORY_EVERY_MS,
  QUIET_CPU_SHARE,
  QUIET_JIT_RELUCTANCE,
} from "../../src/domain/limits.ts";
import { MemorySaver } from "../../src/service/memory-saver.ts";
import { TestClock } from "../support/hub.ts";

/** A memory saver, and a way to let a period pass in which the process works for so long; says how often it collected. */
function scene(reluctances: number[] = []): (workMs: number) => number {
  const clock = new TestClock();
  let cpuMs = 5_000;
  let collections = 0;
  const saver = new MemorySaver(clock, {
    cpuMs: () => cpuMs,
    collect: () => void collections++,
    setJitThreshold: (times) => void reluctances.push(times),
  });
  return (workMs) => {
    clock.pass(MEMORY_EVERY_MS);
    cpuMs += workMs;
    saver.adjust();
    return collections;
  };
}

const QUIET = MEMORY_EVERY_MS * QUIET_CPU_SHARE;

test("not while there is work, once when it is over", () => {
  const pass = scene();
  expect([pass(QUIET + 100), pass(MEMORY_EVERY_MS), pass(QUIET + 100)]).toEqual([0, 0, 0]);
  expect([pass(0), pass(0), pass(1)]).toEqual([1, 1, 1]);
});

test("not for the small work of an idle hub, until it has added up", () => {
  const pass = scene();
  const little = COLLECT_AFTER_CPU_MS / 5;
  expect(little).toBeLessThan(QUIET);
  expect([1, 2, 3, 4, 5, 6].map(() => pass(little))).toEqual([0, 0, 0, 0, 1, 1]);
});

test("not for the CPU time of the start", () => {
  const pass = scene();
  expect([pass(0), pass(0)]).toEqual([0, 0]);
});

test("the JIT threshold is set when work begins and when it is over, and not in between", () => {
  const reluctances: number[] = [];
  const pass = scene(reluctances);
  for (const workMs of [0, 1, MEMORY_EVERY_MS, QUIET + 100, 0, 1, QUIET + 1]) pass(workMs);
  expect(reluctances).toEqual([1, QUIET_JIT_RELUCTANCE, 1]);
});
