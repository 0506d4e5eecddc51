/** How often a task is tried, and the wait between attempts: no hooks, because the core asks when an attempt ends. */
import { SECOND_MS } from "../../../lib/clock.ts";
import { BACKOFF_MAX_SECONDS, FAILURES_DEFAULT_MAX } from "../../limits.ts";
import type { Failure, Moment, Task } from "../../model.ts";
import { shownFailure } from "../failure.ts";

/** An attempt whose node went offline is no failure of the task. */
export function withAttempt({ attempts, failures }: Task, kind: Failure["kind"]) {
  return { attempts: attempts + 1, failures: failures + Number(kind !== "offline") };
}

/** Without `maxAttempts`, nodes that go offline never end a task. */
export function isUsedUp({ maxAttempts, attempts, failures }: Task): boolean {
  return maxAttempts === null ? failures >= FAILURES_DEFAULT_MAX : attempts >= maxAttempts;
}

export function nextStart(task: Task, kind: Failure["kind"], at: Moment): number | null {
  return kind === "offline" ? task.notBefore : at.now + backoffOf(task);
}

function backoffOf({ backoffMs, attempts }: Task): number {
  const doublings = Math.min(attempts - 1, 30); // a number that stays finite
  return Math.min(backoffMs * 2 ** doublings, BACKOFF_MAX_SECONDS * SECOND_MS);
}

/** Null: somebody has chosen the start time. */
export function failureBackingOff(task: Task): Failure | null {
  const { failure, notBefore } = task;
  return failure !== null && notBefore === failure.at + backoffOf(task) ? shownFailure(task) : null;
}
