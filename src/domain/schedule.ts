/**
 * Schedules (cron jobs): a task that the hub creates again and again, at the times of a cron expression or at a fixed
 * interval.
 *
 * `nextAt` is the nominal time of the next task; null while the schedule is paused, and after its last time. fire()
 * handles exactly that time: it creates the task or skips it, and moves `nextAt` in the same commit.
 *
 * Invariant: each nominal time is handled once, however many hubs and restarts there are, because only the commit that
 * moves `nextAt` handles it. After the clock was set back by hours, days or years its times come again (rewind()).
 *
 * A time is missed when no hub could handle it for SCHEDULE_LATE_MS. Of the missed times of a schedule, catch-up "one"
 * makes up for the last, and "none" skips all.
 */
import type { Candidate } from "./balancer.ts";
import { lastCron, nextCron } from "../lib/cron.ts";
import type { Change } from "./change.ts";
import { type Accepted, type Decision, accept, reject } from "./decision.ts";
import type { EventData, EventKind } from "./event.ts";
import { SCHEDULE_LATE_MS, SCHEDULE_REWOUND_MS, SCHEDULE_SKIPS_LOGGED_EVERY_MS } from "./limits.ts";
import type { Moment, Schedule, ScheduleDraft, ScheduledTask, Task, Timing } from "./model.ts";
import { assert, must } from "../lib/assert.ts";
import { asDependency } from "./task/facet/dependencies.ts";
import { refund } from "./quota.ts";
import { type HubCounts, HUB_LIMITS, refusesMore } from "./shares.ts";
import type { TaskDraft } from "./task/new-task.ts";
import { create } from "./task/core.ts";

export type SkipReason = "overlap" | "missed" | "quota_exceeded" | "mint_limit" | "key_revoked";

/**
 * The next time moves only if the timing changes, or the pause ends.
 * `boundTo`: the node to which the caller's key is bound; null: any key.
 */
export function putSchedule(
  draft: ScheduleDraft,
  before: Schedule | null,
  counts: HubCounts,
  boundTo: string | null,
  now: number,
): Decision<Schedule> {
  const refused = before ? refusesOther(before, boundTo) : refusesMore(HUB_LIMITS.schedules, counts, boundTo);
  if (refused) return refused;
  const keepsTime = before !== null && before.nextAt !== null && isSame(before.timing, draft.timing);
  const schedule: Schedule = {
    ...draft,
    nextAt: keepsTime ? before.nextAt : timeAfter(draft.timing, now, now),
    lastTaskId: before?.lastTaskId ?? null,
    lastAt: before?.lastAt ?? null,
    skipLoggedAt: before?.skipLoggedAt ?? null,
    createdAt: before?.createdAt ?? now,
    updatedAt: now,
  };
  const saved = { ...schedule, nextAt: draft.paused ? null : upTo(draft.until, schedule.nextAt) };
  if (before && isSame({ ...before, updatedAt: now, kept: undefined }, { ...saved, kept: undefined }))
    return accept(before);
  return accept(saved, [
    ...refund(before),
    { kind: "schedule.saved", schedule: saved },
    logged("schedule.saved", saved, now, { paused: saved.paused }),
  ]);
}

export function deleteSchedule(
  name: string,
  schedule: Schedule | null,
  boundTo: string | null,
  now: number,
): Decision<Schedule> {
  if (!schedule) return scheduleNotFound(name);
  const refused = refusesOther(schedule, boundTo);
  if (refused) return refused;
  return accept(schedule, [
    ...refund(schedule),
    { kind: "schedule.deleted", name },
    logged("schedule.deleted", schedule, now, {}),
  ]);
}

/** Also of a paused schedule; the next time stays. */
export function runSchedule(
  name: string,
  schedule: Schedule | null,
  rows: { readonly taskIds: readonly string[]; readonly candidates: readonly Candidate[] },
  boundTo: string | null,
  at: Moment,
): Decision<Task> {
  if (!schedule) return scheduleNotFound(name);
  return refusesOther(schedule, boundTo) ?? createFor(schedule, null, rows, at);
}

export type Fired = { readonly task: Task } | { readonly skipped: SkipReason };

/** @param isRunning whether a task of the schedule is unfinished */
export function fire(
  schedule: Schedule,
  rows: {
    readonly isRunning: boolean;
    readonly taskIds: readonly string[];
    readonly candidates: readonly Candidate[];
  },
  at: Moment,
): Accepted<Fired> {
  const nominal = dueTime(schedule, at.now);
  if (nominal === null) return skip(schedule, at.now, "missed");
  if (rows.isRunning && schedule.overlap === "skip") return skip(schedule, at.now, "overlap");
  const { answer: task, changes } = createFor(schedule, nominal, rows, at);
  return accept({ task }, changes);
}

/** An event of it at most once in SCHEDULE_SKIPS_LOGGED_EVERY_MS. */
export function skip(schedule: Schedule, now: number, reason: SkipReason, isLogged = true): Accepted<Fired> {
  const { nextAt, skipLoggedAt } = schedule;
  const sinceLogged = nextAt === null || skipLoggedAt === null ? Infinity : nextAt - skipLoggedAt;
  // After the clock was set back, the last one lies ahead.
  const isDue = isLogged && (sinceLogged >= SCHEDULE_SKIPS_LOGGED_EVERY_MS || sinceLogged < 0);
  const next = {
    ...schedule,
    nextAt: timeAfterDue(schedule, now),
    skipLoggedAt: isDue ? nextAt : skipLoggedAt,
  };
  const skippedAt = nextAt === null ? null : new Date(nextAt).toISOString();
  return accept({ skipped: reason }, [
    { kind: "schedule.saved", schedule: next },
    ...(isDue ? [logged("schedule.skipped", schedule, now, { reason, at: skippedAt })] : []),
  ]);
}

/**
 * If it lies so far ahead that the clock must have been set back since it was computed. After smaller corrections
 * (SCHEDULE_REWOUND_MS) it stays, because its times up to then were handled already. Null: it is right.
 */
export function rewind(schedule: Schedule, now: number): Schedule | null {
  const { timing, nextAt, until } = schedule;
  if (nextAt === null) return null;
  const first = timeFrom(timing, nextAt, now);
  const second = first === null ? null : timeAfter(timing, first, first);
  if (first === null || second === null || nextAt <= second || nextAt - first <= SCHEDULE_REWOUND_MS)
    return null;
  return { ...schedule, nextAt: upTo(until, first) };
}

function timeFrom(timing: Timing, known: number, now: number): number | null {
  if ("cron" in timing) return timeAfter(timing, now, now);
  return known - Math.floor((known - now - 1) / timing.everyMs) * timing.everyMs;
}

/** See rewind(). Answers whether it did. */
export function rewindStored(schedule: Schedule | null, now: number): Accepted<boolean> {
  const rewound = schedule && rewind(schedule, now);
  if (!rewound) return accept(false);
  return accept(true, [{ kind: "schedule.saved", schedule: rewound }]);
}

export function tasksOf({ task }: Pick<Schedule, "task">): number {
  return task.pipeline?.length ?? 1;
}

/** Of a pipeline all tasks; `at` null: a run by hand. Returns the last. */
function createFor(
  schedule: Schedule,
  nominal: number | null,
  rows: { readonly taskIds: readonly string[]; readonly candidates: readonly Candidate[] },
  at: Moment,
): Accepted<Task> {
  const { delayMs, pipeline, ...fields } = schedule.task;
  assert(rows.taskIds.length === tasksOf(schedule), "each task of a schedule has an id");
  const startAt = (nominal ?? at.now) + delayMs + (nominal === null ? 0 : jitterOf(schedule, nominal));
  const notBefore = startAt > at.now ? startAt : null;
  const first: ScheduledTask = { ...fields, ref: "", needs: [], onDependency: "fail" };
  const group = pipeline === undefined ? fields.group : groupOf(schedule, nominal ?? at.now);
  const made: Task[] = [];
  const changes: Change[] = [];
  for (const [i, { ref, needs, onDependency, ...template }] of (pipeline ?? [first]).entries()) {
    const needed = needs.map((number) =>
      must(made[number], "a task of a pipeline needs only those before it"),
    );
    const draft: TaskDraft = {
      ...template,
      group,
      notBefore: needs.length === 0 ? notBefore : null,
      expiresAt: null,
      dependsOn: needed.map(({ taskId }) => taskId),
      onDependency,
      schedule: { name: schedule.name, at: nominal },
    };
    const taskId = must(rows.taskIds[i], "each task of a schedule has an id");
    const candidates = i === 0 ? rows.candidates : [];
    const created = create(
      draft,
      taskId,
      candidates,
      at,
      needed.map((task) => asDependency(task, null)),
    );
    for (const number of needs) made[number] = { ...must(made[number], "it is there"), hasDependents: true };
    made.push(created.answer);
    changes.push(...created.changes);
  }
  const last = must(made.at(-1), "a schedule has a task");
  const saved: Schedule = {
    ...schedule,
    nextAt: nominal === null ? schedule.nextAt : timeAfterDue(schedule, at.now),
    lastTaskId: last.taskId,
    lastAt: at.now,
  };
  return accept(last, [...changes, { kind: "schedule.saved", schedule: saved }]);
}

/** nightly-20261129T013000Z */
function groupOf({ name, task }: Schedule, at: number): string {
  const [base = name] = (task.group ?? name).split("/");
  return `${base}-${new Date(at).toISOString().replaceAll(/[-:]|\.\d+/g, "")}`;
}

// ---- Times

const missedBefore = (now: number): number => now - SCHEDULE_LATE_MS;

/** Null: the due times are missed, and none is caught up. */
function dueTime({ timing, nextAt, catchUp, until }: Schedule, now: number): number | null {
  if (nextAt === null || nextAt >= missedBefore(now)) return nextAt;
  return catchUp === "none" ? null : lastMissed(timing, nextAt, Math.min(missedBefore(now), until ?? now));
}

/** Or after all missed ones. */
function timeAfterDue({ timing, nextAt, until }: Schedule, now: number): number | null {
  if (nextAt === null) return null;
  // Not after the last missed: a time that is late but not missed still comes.
  const after = Math.max(nextAt, missedBefore(now) - 1);
  return upTo(until, timeAfter(timing, after, nextAt));
}

/** The first time after `after`; an interval is counted from the time `from`. */
function timeAfter(timing: Timing, after: number, from: number): number | null {
  if ("cron" in timing) return nextCron(timing.cron, timing.tz, after);
  return from + (Math.floor((after - from) / timing.everyMs) + 1) * timing.everyMs;
}

/** `first` is one of its times. */
function lastMissed(timing: Timing, first: number, end: number): number {
  if ("cron" in timing) return Math.max(first, lastCron(timing.cron, timing.tz, end - 1) ?? first);
  return first + Math.floor(Math.max(0, end - 1 - first) / timing.everyMs) * timing.everyMs;
}

function upTo(until: number | null, at: number | null): number | null {
  return at === null || (until !== null && at > until) ? null : at;
}

/** Always the same for one time of one schedule. */
function jitterOf({ name, jitterMs }: Schedule, nominal: number): number {
  return Number(Bun.hash(`${name} ${nominal}`) % BigInt(jitterMs + 1));
}

// ---- Refusals and events

function refusesOther({ name, task }: Schedule, boundTo: string | null) {
  if (boundTo === null || task.creatorNode === boundTo) return null;
  return reject(
    "key_bound_to_other_node",
    `This key acts for ${boundTo} only, and ${boundTo} did not create the schedule ${name}.`,
  );
}

function scheduleNotFound(name: string) {
  return reject(
    "schedule_not_found",
    `There is no schedule ${name}. Look its name up with GET /api/v1/schedule/list.`,
  );
}

function logged(kind: EventKind, { name, task }: Schedule, at: number, data: EventData): Change {
  const event = { kind, at, nodeId: task.creatorNode, taskId: null, data: { name, ...data } };
  return { kind: "event.logged", event };
}

function isSame(one: unknown, other: unknown): boolean {
  return Bun.deepEquals(one, other, true);
}
