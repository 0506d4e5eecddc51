/** The contract of a handler: what it gets for a task, and what it may throw; and what becomes of the task (WorkerEvent). */
import type { LuxHubError } from "./http.ts";
import type { RequestOf } from "./call.ts";
import type { Failure, Lesson, Question, Task, TaskInput, Variant } from "./types.ts";

/**
 * Does one task and returns its result: an object with `problem`, `improvement`, `lesson` or `output`, in which the rest
 * is filled in, or any other JSON, which is the `output`. If it throws, the attempt has failed; the hub retries the task,
 * except after a FatalError.
 */
export type Handler<V extends Variant = "A"> = (task: Task<V>, context: TaskContext<V>) => unknown;

export type TaskContext<V extends Variant = "A"> = {
  /**
   * Aborts when the result is no longer wanted: the task was taken away, its time is over, or the worker gives it back.
   */
  readonly signal: AbortSignal;
  /** The fencing token of this attempt. */
  readonly epoch: number;
  /** Extends the lease, and records a progress note. The worker also extends the lease periodically. */
  readonly extend: (note?: string) => Promise<void>;
  /** The tasks on which it depends, in that order, with their whole results and files. */
  readonly inputs: readonly TaskInput<V>[];
  /** What the last worker of the task has saved for this one; undefined: nothing. */
  readonly checkpoint: unknown;
  /** The last attempts that failed, oldest first. */
  readonly failures: readonly Failure[];
  /** What the last completed tasks of its type have taught, newest first. */
  readonly lessons: readonly Lesson[];
  /**
   * Adds to the output of this attempt, which people can read while it runs. Sent every second, and before the result.
   * Never waits: while the hub is too slow or away, what exceeds 256 KiB is dropped, oldest first.
   */
  readonly output: (text: string) => void;
  /** The questions of earlier attempts with their answers, oldest first. */
  readonly answers: readonly Question[];
  /**
   * Asks a person, or another agent, and waits for the answer: any JSON, or null when there was none in time. While the
   * question is open, the time limits of the task and of the handler do not run; afterwards both begin again in full. A
   * question that an earlier attempt asked in the same words is not asked again. With `park` the task goes back to the
   * hub until the answer is there, and the handler ends: the next attempt asks again, and gets the answer at once.
   */
  readonly ask: (question: string, options?: AskOptions) => Promise<unknown>;
  /** Saves any JSON of at most 64 KiB for the next attempt, if this one does not finish. Extends the lease. */
  readonly saveCheckpoint: (data: unknown) => Promise<void>;
  /**
   * Reports what steps of the work have used: each model call once. Do not repeat it: what cannot be sent now is sent
   * with the next request about the task. Returns the dollars that the task may still cost; null if it has no limit, or
   * the hub cannot be reached. A task that has cost too much is lost.
   */
  readonly reportUsage: (
    used: Used | readonly Used[],
    /** `later`: with the next request about the task, so that a result that is there is not lost to its limit. */
    options?: { readonly later?: boolean },
  ) => Promise<number | null>;
};

export type AskOptions = {
  /** Answers to choose from; others are possible too. */
  readonly choices?: readonly string[] | undefined;
  /** The JSON Schema of the answer; the hub shows it. */
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
  /** How long the question waits, in seconds; by default a day. */
  readonly within?: number | undefined;
  readonly park?: boolean | undefined;
};
/** What one step of the work has used; the worker numbers the steps. */
export type Used = Omit<UsageReport, "seq">;
export type UsageReport = NonNullable<RequestOf<"task/extend">["usage"]>[number];

/** Thrown by a handler if no worker can do the task: the task fails permanently, without a retry. */
export class FatalError extends Error {
  override readonly name = "FatalError";
}

/** Thrown by a handler if it has ended its attempt because nothing was heard of it: the failure is of the kind `stalled`. */
export class AttemptStalled extends Error {
  override readonly name = "AttemptStalled";
}

/**
 * Thrown by a handler if the fault is the worker's and not the task's, such as a login that has expired: the task goes
 * back to the hub, the attempt does not count, and the worker pauses, each time for longer.
 */
export class WorkerOutage extends Error {
  override readonly name = "WorkerOutage";
  /** Whether the limit key of the task rests as long as the worker: its provider wants fewer requests. */
  readonly isRateLimit: boolean;

  constructor(message: string, { isRateLimit = false }: { readonly isRateLimit?: boolean } = {}) {
    super(message);
    this.isRateLimit = isRateLimit;
  }
}

export type WorkerEvent<V extends Variant = "A"> =
  | { readonly kind: "registered"; readonly nodeId: string }
  | { readonly kind: "started"; readonly task: Task<V>; readonly epoch: number }
  | { readonly kind: "completed"; readonly task: Task<V>; readonly luxPaid: number }
  | { readonly kind: "failed"; readonly task: Task<V>; readonly error: unknown }
  | { readonly kind: "released"; readonly task: Task<V> }
  /** After an outage: the worker takes no task for so long. */
  | {
      readonly kind: "resting";
      readonly error: unknown;
      readonly forMs: number;
    }
  /** A question of its handler gave the task back until there is an answer. */
  | { readonly kind: "parked"; readonly task: Task<V> }
  /** The task was taken away; the error is the hub's refusal. */
  | { readonly kind: "lost"; readonly task: Task<V>; readonly error: LuxHubError }
  /** A fault that the worker survives. */
  | { readonly kind: "fault"; readonly error: unknown }
  | { readonly kind: "left"; readonly nodeId: string };
