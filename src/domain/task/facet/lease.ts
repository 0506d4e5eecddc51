/**
 * Facet: the lease of a dispatch. A task with a timeout comes back when its node neither completes nor extends it in time;
 * one with `maxRunMs` when the attempt has taken so long in all. The clocks stand still while a question is open.
 *
 * Invariant: only an assigned task has a lease, which never ends after the attempt may (`runUntil`).
 */
import { must } from "../../../lib/assert.ts";
import { SECOND_MS } from "../../../lib/clock.ts";
import type { Effect, Facet } from "./facet.ts";
import type { Moment, Task } from "../../model.ts";

export const lease: Facet = {
  name: "lease",
  dispatched(before, after, at) {
    if (after.timeoutMs === null && after.maxRunMs === null) return null;
    const isSameAttempt = before.status === "assigned" && before.startedAt !== null;
    return { patch: isSameAttempt ? extended(before, at) : newLease(after, at) };
  },
  opened: withoutLease,
  ended: withoutLease,
};

export const NO_LEASE = { leaseUntil: null, runUntil: null } as const;

function withoutLease({ leaseUntil, runUntil }: Task, after: Task | null): Effect | null {
  return after === null || (leaseUntil === null && runUntil === null) ? null : { patch: NO_LEASE };
}

type Leased = Pick<Task, "timeoutMs" | "maxRunMs" | "questions">;
type Lease = Pick<Task, "leaseUntil" | "runUntil">;

export function newLease(task: Leased, at: Moment): Lease {
  if (task.questions?.state === "open") return NO_LEASE;
  const runUntil = task.maxRunMs === null ? null : at.steady + task.maxRunMs;
  return { runUntil, leaseUntil: leaseFrom(task, runUntil, at) };
}

export function extended(task: Leased & Pick<Task, "runUntil">, at: Moment): Lease {
  return { runUntil: task.runUntil, leaseUntil: leaseFrom(task, task.runUntil, at) };
}

/** Never after the attempt may end. */
function leaseFrom({ timeoutMs, questions }: Leased, runUntil: number | null, at: Moment): number | null {
  if (questions?.state === "open") return null;
  if (timeoutMs === null) return runUntil;
  const timeoutAt = at.steady + timeoutMs;
  return runUntil === null ? timeoutAt : Math.min(timeoutAt, runUntil);
}

export function whyTimedOut({ timeoutMs, maxRunMs, leaseUntil, runUntil }: Task): string {
  if (maxRunMs !== null && leaseUntil === runUntil)
    return `The attempt was not completed within its max_run_s of ${maxRunMs / SECOND_MS} s.`;
  const limitMs = must(timeoutMs, "a task with a lease has timeout_s or max_run_s");
  return `The node neither completed nor extended it within ${limitMs / SECOND_MS} s.`;
}
