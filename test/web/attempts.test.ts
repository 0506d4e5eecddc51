/** What the dashboard makes of the events of a task. */
import { expect, test } from "bun:test";
import type { Event } from "../../src/client/luxhub.ts";
import { attemptsOf } from "../../src/web/page/attempts.ts";

const T0 = Date.parse("2026-01-01T00:00:00Z");

function events(
  ...steps: readonly (readonly [
    after: number,
    kind: Event["kind"],
    node: string | null,
    data?: Event["data"],
  ])[]
): readonly Event[] {
  return steps.map(([after, kind, node_id, data = {}], id) => ({
    ...{ id, kind, node_id, data, task_id: "t", by: null, verified: false },
    at: new Date(T0 + after).toISOString(),
  }));
}

test("each dispatch is an attempt, with its notes, its end and what was said", () => {
  const story = events(
    [0, "task.created", null, { title: "t" }],
    [10, "task.assigned", "a", { by: "next" }],
    [20, "task.progress", "a", { note: "half" }],
    [30, "task.attempt_failed", "a", { attempts: 1, error: "boom\n at x" }],
    [40, "task.assigned", "b"],
    [50, "task.timed_out", "b", { attempts: 2 }],
    [60, "task.assigned", "c"],
    [70, "task.requeued", "c"],
    [80, "task.assigned", "d"],
    [90, "task.released", "d", { reason: "shutdown" }],
    [100, "task.assigned", "e"],
    [110, "task.revoked", "e"],
    [110, "task.assigned", "f", { by: "revoke" }],
    [120, "task.completed", "f"],
  );
  const shown = attemptsOf(story).map(({ node, from, to, word, tone, text, notes }) => [
    ...[node, from - T0, (to ?? 0) - T0, word, tone, text],
    notes.map((note) => [note.at - T0, note.text]),
  ]);
  expect(shown).toEqual([
    ["a", 10, 30, "failed", "bad", "boom\n at x", [[20, "half"]]],
    ["b", 40, 50, "timed out", "wait", "", []],
    ["c", 60, 70, "node offline", "wait", "", []],
    ["d", 80, 90, "given back", "quiet", "shutdown", []],
    ["e", 100, 110, "taken back", "wait", "", []],
    ["f", 110, 120, "completed", "good", "", []],
  ]);
});

test("what runs has no end; what fails without a holder is no attempt; a later dispatch ends the one before", () => {
  const running = attemptsOf(
    events([0, "task.assigned", "a"], [5, "task.assigned", "b"], [9, "task.assigned", "b", { by: "resume" }]),
  );
  expect(running.map(({ node, to, word }) => [node, to, word])).toEqual([
    ["a", T0 + 5, "handed on"],
    ["b", T0 + 9, "worker restarted"],
    ["b", null, "running"],
  ]);
  const cancelled = events(
    [0, "task.assigned", "a"],
    [9, "task.failed", null, { kind: "cancelled", message: "no" }],
  );
  expect(attemptsOf(cancelled)).toMatchObject([{ to: T0 + 9, word: "cancelled", tone: "bad", text: "no" }]);
  expect(
    attemptsOf(events([0, "task.created", null], [9, "task.failed", null, { kind: "expired" }])),
  ).toEqual([]);
  expect(attemptsOf(events([0, "task.progress", "a", { note: "lost" }]))).toEqual([]);
});
