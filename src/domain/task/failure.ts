/** The failures of a task: which are kept, and what everybody may read of them. */
import { FAILED_ATTEMPTS_KEPT, SUMMARY_LINE_MAX_CHARS } from "../limits.ts";
import type { EventData } from "../event.ts";
import type { Failure, Task } from "../model.ts";

export const ATTEMPT_EVENTS = {
  failed: "task.attempt_failed",
  stalled: "task.attempt_failed",
  timed_out: "task.timed_out",
  offline: "task.requeued",
  budget: "task.attempt_failed",
  rejected: "task.review_rejected",
} as const;

export type EndOfAttempt = {
  readonly kind: keyof typeof ATTEMPT_EVENTS;
  readonly message: string;
  readonly retry: boolean;
  readonly data?: EventData;
};

const isAttempt = ({ kind }: Failure): boolean => kind in ATTEMPT_EVENTS;

/** The next worker can learn from them. */
export function failedAttempts({
  failure,
  earlierFailures,
}: Pick<Task, "failure" | "earlierFailures">): readonly Failure[] {
  return failure !== null && isAttempt(failure) ? [...earlierFailures, failure] : earlierFailures;
}

export function failedBy(task: Task, failure: Failure): Pick<Task, "failure" | "earlierFailures"> {
  const keptBefore = isAttempt(failure) ? FAILED_ATTEMPTS_KEPT - 1 : FAILED_ATTEMPTS_KEPT;
  return { failure, earlierFailures: failedAttempts(task).slice(-keptBefore) };
}

/** A copy of a quorum that is not decided. */
export function isSealed({ child }: Pick<Task, "child">): boolean {
  return child?.sealed === true;
}

const SEALED_TEXT = "Shown when the quorum is decided.";

const isWorkersText = (kind: Failure["kind"]): boolean => ["failed", "stalled", "budget"].includes(kind);

export function shownFailure({ child, failure }: Pick<Task, "child" | "failure">): Failure | null {
  const isHidden = failure !== null && isSealed({ child }) && isWorkersText(failure.kind);
  return isHidden ? { ...failure, message: SEALED_TEXT } : failure;
}

/** Of a sealed copy, nothing. */
export function shownText(task: Pick<Task, "child">, text: string | null): string | null {
  return isSealed(task) ? null : text;
}

export function attemptData(task: Task, failure: Failure, { kind, data }: EndOfAttempt): EventData {
  const error = isWorkersText(kind) ? { error: shownFailure({ ...task, failure })?.message ?? null } : {};
  return { attempts: task.attempts, ...error, ...data };
}

/** The first line that is not blank. */
export function summaryLine(text: string | null): string | null {
  const line = text === null ? null : (/\S.*/.exec(text)?.[0].trimEnd() ?? "");
  if (line === null || line.length <= SUMMARY_LINE_MAX_CHARS) return line;
  return `${line.slice(0, SUMMARY_LINE_MAX_CHARS - 1).toWellFormed()}…`;
}
