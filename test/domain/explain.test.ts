/** Reasons of an explanation, in words: the place of a ready task in its lane, and what a task that backs off waits after. */
import { expect, test } from "bun:test";
import { NO_TAKERS, explain } from "../../src/domain/explain.ts";
import { gateAt } from "../../src/domain/gate.ts";
import { POSITION_COUNTED_MAX } from "../../src/domain/limits.ts";
import { NOW, task } from "./samples.ts";

const gate = gateAt({ day: 0, budgets: [], pauses: [], limits: [] }, NOW);

test.each([
  [0, 1, "It is the next of its lane."],
  [1, 2, "One task of its lane comes before it."],
  [POSITION_COUNTED_MAX - 1, POSITION_COUNTED_MAX, "999 tasks of its lane come before it."],
  [POSITION_COUNTED_MAX, POSITION_COUNTED_MAX + 1, "1000 or more tasks of its lane come before it."],
])("behind %i tasks it is number %i", (ahead, position, detail) => {
  const known = { gate, takers: { ...NO_TAKERS, free: 1 }, waitsFor: [], inReview: [], ahead };
  expect(explain(task("t1", { status: "open" }), known, NOW)).toEqual({
    ready: true,
    position,
    reasons: [{ code: "in_line", detail, until: null }],
  });
});

test.each([
  [
    "the failure of a backoff",
    5_000,
    "Its backoff after failed attempt 2 is not over (failed: no such page).",
  ],
  ["a start time that somebody chose", 5_001, "Its start time has not come."],
])("%s", (_, afterMs, detail) => {
  const failure = { kind: "failed", message: "no such page\nat line 1", nodeId: "n1", at: NOW } as const;
  const until = NOW + afterMs;
  const waiting = task("t1", { status: "open", attempts: 2, backoffMs: 2_500, failure, notBefore: until });
  const known = { gate, takers: { ...NO_TAKERS, free: 1 }, waitsFor: [], inReview: [], ahead: 0 };
  expect(explain(waiting, known, NOW)).toEqual({
    ready: false,
    position: null,
    reasons: [{ code: "not_before", detail, until }],
  });
});
