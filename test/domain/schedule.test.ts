/**
 * Schedules: when they fire, whether hubs run or not, over changes of daylight-saving time, restarts, weeks off and
 * jumps of the clock. Each case walks the clock and lists the nominal times of the tasks.
 */
import { describe, expect, test } from "bun:test";
import { SCHEDULE_LATE_MS } from "../../src/domain/limits.ts";
import type { Schedule, ScheduleDraft } from "../../src/domain/model.ts";
import { type Fired, fire, putSchedule, rewind, skip } from "../../src/domain/schedule.ts";
import { must } from "../../src/lib/assert.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, isoTime } from "../../src/lib/clock.ts";
import { lastCron, nextCron } from "../../src/lib/cron.ts";
import { task } from "./samples.ts";

const NONE = { all: 0, ofNode: 0 };

function draftOf(patch: Partial<ScheduleDraft> = {}): ScheduleDraft {
  const { notBefore: _, expiresAt: __, dependsOn: ___, schedule: ____, ...fields } = task("t", {});
  return {
    name: "s",
    timing: { cron: "0 9 * * *", tz: "UTC" },
    task: { ...fields, delayMs: 0 },
    overlap: "queue",
    catchUp: "one",
    jitterMs: 0,
    until: null,
    paused: false,
    ...patch,
  };
}

function put(draft: ScheduleDraft, now: number, before: Schedule | null = null): Schedule {
  const decision = putSchedule(draft, before, NONE, null, now);
  if (decision.kind === "rejected") throw new Error(decision.detail);
  return decision.answer;
}

/** Fires what is due at `now`, as the chore does: the nominal times of the tasks, and the schedule afterwards. */
function fireAll(schedule: Schedule, now: number, isRunning = false): [readonly string[], Schedule] {
  const fired: string[] = [];
  let next = schedule;
  while (next.nextAt !== null && next.nextAt <= now) {
    const { answer, changes } = fire(
      next,
      { isRunning, taskIds: ["t1"], candidates: [] },
      { now, steady: now },
    );
    fired.push(nameOf(answer));
    const saved = changes.flatMap((change) => (change.kind === "schedule.saved" ? [change.schedule] : []));
    expect(saved).toHaveLength(1);
    next = saved[0] ?? next;
  }
  return [fired, next];
}

function nameOf(fired: Fired): string {
  if ("skipped" in fired) return fired.skipped;
  return isoTime(fired.task.schedule?.at ?? 0);
}

/** Every hub is off from `off[0]` to `off[1]`; otherwise a sweep comes every `everyMs`. */
function walk(schedule: Schedule, from: number, to: number, everyMs: number, off: readonly number[] = []) {
  const all: string[] = [];
  let current = schedule;
  for (let now = from; now <= to; now += everyMs) {
    if (off.length === 2 && now >= Number(off[0]) && now < Number(off[1])) continue;
    const [fired, next] = fireAll(current, now);
    all.push(...fired);
    current = next;
  }
  return all;
}

const at = (text: string): number => Date.parse(text);

describe("times", () => {
  test("a cron schedule fires at each of its times, none before", () => {
    const start = at("2026-11-23T08:00:00Z");
    const schedule = put(draftOf(), start);
    expect(schedule.nextAt).toBe(at("2026-11-23T09:00:00Z"));
    expect(walk(schedule, start, start + 3 * DAY_MS, MINUTE_MS)).toEqual([
      "2026-11-23T09:00:00.000Z",
      "2026-11-24T09:00:00.000Z",
      "2026-11-25T09:00:00.000Z",
    ]);
  });

  test("over both changes of daylight-saving time it keeps the hour of its zone", () => {
    const zone = { timing: { cron: "30 2 * * *", tz: "Europe/Berlin" } };
    const spring = at("2027-03-27T00:00:00Z");
    expect(walk(put(draftOf(zone), spring), spring, spring + 3 * DAY_MS, MINUTE_MS)).toEqual([
      "2027-03-27T01:30:00.000Z",
      "2027-03-28T01:30:00.000Z", // 2:30 does not exist: 3:30
      "2027-03-29T00:30:00.000Z",
    ]);
    const autumn = at("2026-10-24T12:00:00Z");
    expect(walk(put(draftOf(zone), autumn), autumn, autumn + 2 * DAY_MS, MINUTE_MS)).toEqual([
      "2026-10-25T00:30:00.000Z", // the first of the two
      "2026-10-26T01:30:00.000Z",
    ]);
    const hourly = { timing: { cron: "0 * * * *", tz: "Europe/Berlin" } };
    const night = at("2026-10-24T22:30:00Z");
    expect(walk(put(draftOf(hourly), night), night, night + 5 * HOUR_MS, MINUTE_MS)).toHaveLength(5);
  });

  test("an interval begins with the schedule, and does not drift when sweeps are late", () => {
    const start = at("2026-11-23T08:00:00Z");
    const schedule = put(draftOf({ timing: { everyMs: 90 * SECOND_MS } }), start);
    const fired = walk(schedule, start, start + 10 * MINUTE_MS, 7 * SECOND_MS);
    expect(fired).toEqual([90, 180, 270, 360, 450, 540].map((s) => isoTime(start + s * SECOND_MS)));
  });

  test("an interval shorter than the distance of the sweeps fires each of its times", () => {
    const start = at("2026-11-23T08:00:00Z");
    const schedule = put(draftOf({ timing: { everyMs: 1 * SECOND_MS } }), start);
    expect(walk(schedule, start, start + 10 * SECOND_MS, 3_500)).toHaveLength(7);
  });

  test("no time comes after `until`", () => {
    const start = at("2026-11-23T08:00:00Z");
    const until = at("2026-11-24T09:00:00Z");
    expect(walk(put(draftOf({ until }), start), start, start + 5 * DAY_MS, MINUTE_MS)).toHaveLength(2);
    expect(put(draftOf({ until: start }), start).nextAt).toBeNull();
  });

  test("the last time before another is found, near or far", () => {
    const until = at("2026-11-23T08:59:59Z");
    for (const [cron, last] of [
      ["* * * * *", "2026-11-23T08:59:00.000Z"],
      ["0 9 * * *", "2026-11-22T09:00:00.000Z"],
      ["0 0 29 2 *", "2024-02-29T00:00:00.000Z"],
    ] as const)
      expect(isoTime(lastCron(cron, "UTC", until) ?? 0)).toBe(last);
    expect(lastCron("0 9 * * *", "UTC", at("2026-11-23T09:00:00Z"))).toBe(at("2026-11-23T09:00:00Z"));
    expect(nextCron("0 0 30 2 *", "UTC", until)).toBeNull();
  });
});

describe("missed times", () => {
  const start = at("2026-11-01T08:00:00Z");
  const off = [at("2026-11-03T00:00:00Z"), at("2026-11-17T10:00:00Z")];
  const end = at("2026-11-18T10:00:00Z");

  test.each([
    ["none", ["2026-11-01", "2026-11-02", "missed", "2026-11-18"]],
    ["one", ["2026-11-01", "2026-11-02", "2026-11-17", "2026-11-18"]],
  ] as const)("two weeks off, catch_up %s", (catchUp, days) => {
    const fired = walk(put(draftOf({ catchUp }), start), start, end, MINUTE_MS, off);
    expect(fired.map((name) => name.slice(0, 10))).toEqual([...days]);
  });

  test.each(["none", "one"] as const)("of every minute, catch_up %s", (catchUp) => {
    const schedule = put(draftOf({ catchUp, timing: { cron: "* * * * *", tz: "UTC" } }), start);
    const now = start + 14 * DAY_MS + 30 * SECOND_MS;
    const [fired] = fireAll(schedule, now);
    // What is at most a minute late is not missed.
    const last = [isoTime(start + 14 * DAY_MS)];
    const missed = catchUp === "one" ? isoTime(start + 14 * DAY_MS - MINUTE_MS) : "missed";
    expect(fired).toEqual([missed, ...last]);
  });

  test("an interval catches up its last missed time, and keeps its beat", () => {
    const schedule = put(draftOf({ timing: { everyMs: HOUR_MS } }), start);
    const now = start + 5 * HOUR_MS + 20 * MINUTE_MS;
    const [fired, next] = fireAll(schedule, now);
    expect(fired).toEqual([isoTime(start + 5 * HOUR_MS)]);
    expect(next.nextAt).toBe(start + 6 * HOUR_MS);
  });

  test("none is missed by restarts more frequent than its interval", () => {
    const schedule = put(draftOf({ catchUp: "none", timing: { everyMs: 10 * MINUTE_MS } }), start);
    const lateMs = SCHEDULE_LATE_MS;
    // A hub that runs for a moment every 59 s.
    const fired = walk(schedule, start, start + HOUR_MS, lateMs - SECOND_MS);
    expect(fired).toEqual([1, 2, 3, 4, 5].map((n) => isoTime(start + n * 10 * MINUTE_MS)));
  });

  test("a time after its `until` is not caught up", () => {
    const until = start + 3 * DAY_MS;
    const schedule = put(draftOf({ until }), start);
    const [fired, next] = fireAll(schedule, start + 14 * DAY_MS);
    expect(fired.map((name) => name.slice(0, 10))).toEqual(["2026-11-03"]);
    expect(next.nextAt).toBeNull();
  });
});

describe("put", () => {
  const now = at("2026-11-23T08:00:00Z");

  test("one that changes nothing writes nothing, and one that changes the task keeps the time", () => {
    const before = put(draftOf({ timing: { everyMs: HOUR_MS } }), now);
    const same = putSchedule(draftOf({ timing: { everyMs: HOUR_MS } }), before, NONE, null, now + MINUTE_MS);
    expect(same).toMatchObject({ kind: "accepted", answer: before, changes: [] });
    const draft = draftOf({ timing: { everyMs: HOUR_MS }, overlap: "skip" });
    expect(put(draft, now + MINUTE_MS, before)).toMatchObject({ nextAt: before.nextAt, overlap: "skip" });
  });

  test("another timing counts from now; a pause has no next time, and none of its times is missed", () => {
    const before = put(draftOf(), now);
    const hourly = { timing: { everyMs: HOUR_MS } };
    expect(put(draftOf(hourly), now + MINUTE_MS, before).nextAt).toBe(now + MINUTE_MS + HOUR_MS);
    const paused = put(draftOf({ paused: true }), now, before);
    expect(paused.nextAt).toBeNull();
    expect(put(draftOf(), now + 10 * DAY_MS, paused).nextAt).toBe(at("2026-12-03T09:00:00Z"));
  });
});

describe("after the clock was set back", () => {
  const right = at("2026-11-23T08:30:00Z");

  test.each<[string, Partial<ScheduleDraft>, string]>([
    ["each day", {}, "2026-11-23T09:00:00.000Z"],
    ["each minute", { timing: { cron: "* * * * *", tz: "UTC" } }, "2026-11-23T08:31:00.000Z"],
    ["in a time zone", { timing: { cron: "0 9 * * *", tz: "Asia/Tokyo" } }, "2026-11-24T00:00:00.000Z"],
  ])("by years it comes at the first time again: %s", (_, patch, first) => {
    const wrong = put(draftOf(patch), right + 730 * DAY_MS);
    const healed = rewind(wrong, right);
    expect(isoTime(healed?.nextAt ?? 0)).toBe(first);
    expect(healed && rewind(healed, right)).toBeNull(); // and stays
    expect(fireAll(must(healed, "healed"), Date.parse(first))[0]).toEqual([first]);
  });

  test("an interval keeps its beat", () => {
    const wrong = put(draftOf({ timing: { everyMs: HOUR_MS } }), right + 730 * DAY_MS + MINUTE_MS);
    expect(rewind(wrong, right)?.nextAt).toBe(right + MINUTE_MS);
  });

  test("past its end it has no next time", () => {
    const ends = draftOf({ until: right + DAY_MS / 2 });
    const wrong: Schedule = { ...put(ends, right), nextAt: right + 730 * DAY_MS };
    expect(rewind(wrong, right)?.nextAt).toBe(at("2026-11-23T09:00:00Z"));
    expect(rewind({ ...wrong, until: right }, right)?.nextAt).toBeNull();
  });

  test("a little, or to before a time that it has handled, it waits, so that no time comes twice", () => {
    const yearly = draftOf({ timing: { cron: "0 0 1 1 *", tz: "UTC" } });
    for (const [draft, setBackMs] of [
      [draftOf(), 1],
      [draftOf(), 2 * HOUR_MS],
      [yearly, SECOND_MS],
      [draftOf({ timing: { cron: "* * * * *", tz: "UTC" } }), 10 * MINUTE_MS],
      [draftOf({ timing: { everyMs: SECOND_MS } }), 2 * HOUR_MS],
    ] as const) {
      const start = at("2027-01-01T00:00:00Z") - 1;
      const [, handled] = fireAll(put(draft, start), start + 10 * HOUR_MS);
      expect(rewind(handled, start + 10 * HOUR_MS - setBackMs)).toBeNull();
      expect(rewind(handled, start + 10 * HOUR_MS)).toBeNull();
    }
    expect(rewind(put(draftOf({ paused: true }), right), right)).toBeNull();
  });
});

describe("a task of a schedule", () => {
  const start = at("2026-11-23T09:00:00Z");

  test("is skipped while one is unfinished, unless they queue", () => {
    const skipping = put(draftOf({ overlap: "skip" }), start - 1);
    expect(fireAll(skipping, start, true)[0]).toEqual(["overlap"]);
    expect(fireAll(put(draftOf(), start - 1), start, true)[0]).toEqual([isoTime(start)]);
  });

  test("has an event of a time without a task at most once a minute", () => {
    const every = put(draftOf({ timing: { everyMs: 20_000 }, overlap: "skip" }), start);
    let schedule = every;
    const logged: number[] = [];
    for (let n = 1; n <= 7; n++) {
      const now = must(schedule.nextAt, "it has a next time") + n; // a little late, each time more
      for (const change of skip(schedule, now, "overlap").changes)
        if (change.kind === "schedule.saved") schedule = change.schedule;
        else logged.push(n);
    }
    expect(logged).toEqual([1, 4, 7]);
    const early = { ...schedule, nextAt: start }; // the clock was set back
    expect(skip(early, start, "overlap").changes.map(({ kind }) => kind)).toContain("event.logged");
  });

  test("waits for its delay and its jitter, which is the same whoever computes it", () => {
    const startOf = (patch: Partial<ScheduleDraft>): number | null => {
      const schedule = put(draftOf(patch), start - 1);
      const { answer } = fire(
        schedule,
        { isRunning: false, taskIds: ["t1"], candidates: [] },
        { now: start, steady: start },
      );
      return "task" in answer ? answer.task.notBefore : null;
    };
    expect(startOf({})).toBeNull();
    const delayed = { ...draftOf().task, delayMs: 5_000 };
    expect(startOf({ task: delayed })).toBe(start + 5_000);
    const jitters = ["a", "b", "c"].map((name) => startOf({ name, jitterMs: HOUR_MS }));
    expect(jitters).toEqual(["a", "b", "c"].map((name) => startOf({ name, jitterMs: HOUR_MS })));
    expect(new Set(jitters).size).toBe(3);
    for (const jitter of jitters) expect(jitter ?? start).toBeWithin(start, start + HOUR_MS + 1);
  });
});
