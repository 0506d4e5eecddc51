/** The steps of the connection guard as descriptors run out, with a table of descriptors that the test sets. */
import { beforeEach, describe, expect, test } from "bun:test";
import { ConnectionGuard } from "../../src/http/connection-guard.ts";
import { openLog } from "../../src/lib/log.ts";
import { until } from "../e2e/program.ts";

const LIMIT = 1_000;
const LOG = openLog({ format: "json", level: "error", colour: false }, Date.now, () => {});

let used = 0;
let limit = LIMIT;
let reserved = 0;
let unused = 0;
let steps: string[] = [];
const descriptors = {
  get limit() {
    return limit;
  },
  count: () => used,
  reserve: (count: number) => {
    reserved += count;
    return () => {
      reserved -= count;
    };
  },
};
const guarded = {
  closeUnused: () => {
    steps.push("closeUnused");
    return unused;
  },
  pause: () => void steps.push("pause"),
  resume: () => void steps.push("resume"),
};

function open(): ConnectionGuard & Disposable {
  const guard = new ConnectionGuard(descriptors, { steady: () => performance.now() });
  const unwatch = guard.watch(guarded, LOG);
  return Object.assign(guard, { [Symbol.dispose]: unwatch });
}

beforeEach(() => {
  used = 0;
  limit = LIMIT;
  unused = 0;
  steps = [];
});

const admits = (guard: ConnectionGuard): boolean => {
  try {
    guard.admitLongCall();
    return true;
  } catch (error) {
    expect(error).toMatchObject({ status: 503, code: "overloaded" });
    return false;
  }
};

describe("the first look", () => {
  const rows = [
    { used: 400, counts: false, admits: true, steps: [] },
    { used: 501, counts: true, admits: true, steps: [] },
    { used: 751, counts: true, admits: false, steps: [] },
    { used: 851, counts: true, admits: false, steps: ["closeUnused"] },
    { used: 971, counts: true, admits: false, steps: ["closeUnused", "pause"] },
    { used: 1_000, counts: true, admits: false, steps: ["closeUnused", "pause"] },
  ];
  for (const row of rows)
    test(`${row.used} of ${LIMIT} in use`, () => {
      used = row.used;
      using guard = open();
      expect(steps).toEqual(row.steps);
      expect([guard.noteRequest(), admits(guard)]).toEqual([row.counts, row.admits]);
    });
});

test("a hub without a free descriptor goes on to listen if it closes enough unused connections", () => {
  used = LIMIT;
  unused = 100;
  using _guard = open();
  expect(steps).toEqual(["closeUnused"]);
});

test("a pause gives the reserved descriptors to the hub, and ends when there is room", async () => {
  using guard = open();
  expect(reserved).toBeGreaterThan(0);
  used = LIMIT;
  await until(() => {
    guard.noteRequest();
    return steps.includes("pause");
  });
  expect(reserved).toBe(0);
  used = 100;
  await until(() => steps.includes("resume"));
  expect(steps.filter((step) => step === "resume")).toEqual(["resume"]);
  expect(reserved).toBeGreaterThan(0);
});

test("an address that keeps more than a quarter of the descriptors must close, and no other", () => {
  used = 600;
  using guard = open();
  const closing = Array.from({ length: 300 }, (_, port) => guard.mustClose("192.0.2.1", port));
  expect(closing.indexOf(true)).toBe(LIMIT / 4);
  expect(guard.mustClose("192.0.2.1", 0)).toBe(true);
  expect(guard.mustClose("192.0.2.2", 0)).toBe(false);
});

test("an unknown limit: nothing is done until no descriptor is free", () => {
  limit = Number.POSITIVE_INFINITY;
  used = 100_000;
  {
    using guard = open();
    expect([guard.noteRequest(), admits(guard), steps]).toEqual([false, true, []]);
  }
  used = Number.POSITIVE_INFINITY;
  using guard = open();
  expect([admits(guard), steps]).toEqual([false, ["closeUnused", "pause"]]);
});
