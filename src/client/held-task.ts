/**
 * A task that a worker holds: its lease, and what its handler reports, asks and saves while it runs.
 *
 * A task belongs to the worker while the hub accepts its epoch (fencing token). When the hub refuses it, because the
 * epoch is old or the task was ended or taken away, the task is lost: its handler's signal aborts, and the result is
 * dropped. A hub that was restored, or a copy that took over, has raised all epochs: then the worker goes on with the
 * new epoch of the lease that it has.
 */
import { assert } from "./assert.ts";
import type { AnswerOf, Call, RequestOf } from "./call.ts";
import type { UsageReport, Used, WorkerEvent } from "./handler.ts";
import { LuxHubError, sleep, sleepUnlessAborted } from "./http.ts";
import { OutputSender } from "./output.ts";
import type { Context, Lease, Task, TaskInput, Variant } from "./types.ts";

/** The pause before a call that the hub could not answer is repeated. */
export const PAUSE_MS = 1_000;
/** The worker waits for an unavailable hub, however long. */
export const FOREVER = { forMs: Number.POSITIVE_INFINITY };
/** A hub raises all epochs by a multiple of this when it goes on from what it was before. */
export const EPOCHS_RAISED_BY = 1_000_000;
/** Usage reports in one request. */
export const USAGE_TOGETHER = 20;
/** The longest that a question waits for its answer. */
const QUESTION_MAX_S = 604_800;
/** Inputs of a task in one response. */
const INPUTS_TOGETHER = 100;
/** The codes with which the hub refuses the usage of a request. */
const WRONG_USAGE: readonly string[] = ["invalid_request", "usage_limit"];
/** The codes with which the hub refuses a task that is no longer this worker's. */
const LOST: readonly string[] = [
  "stale_lease",
  "not_assigned_to_node",
  "task_not_assigned",
  "task_completed",
  "task_failed",
  "task_not_found",
];

export type Given<V extends Variant> = {
  readonly task: Task<V>;
  readonly lease: Lease;
  readonly context?: Context<V> | undefined;
};

export type Holder = { readonly task_id: string; readonly node_id: string; readonly epoch: number };

/** The worker, as the tasks know it. */
export type HolderOf<V extends Variant> = {
  readonly call: Call<V>;
  readonly nodeId: string;
  readonly emit: (event: WorkerEvent<V>) => void;
};

type Extension = Pick<RequestOf<"task/extend">, "note" | "checkpoint" | "usage">;

/** The modes of a held task. A running one alone can be lost. */
type Mode =
  | { readonly kind: "running" }
  /** A question gives the task back. */
  | { readonly kind: "parking" }
  /** The handler has ended after such a question. */
  | { readonly kind: "parked" }
  /** The hub has refused the task. */
  | { readonly kind: "lost"; readonly refusal: LuxHubError }
  /** The handler has ended, and its outcome is being reported: a loss shows in the refusal of the report. */
  | { readonly kind: "ending" };

export class HeldTask<V extends Variant> {
  readonly task: Task<V>;
  readonly context: Context<V>;
  readonly output: OutputSender;
  /** Aborts when the result is no longer wanted. */
  readonly abort = new AbortController();
  /** Aborts when the outcome has been reported, or can no longer be. */
  readonly end: AbortController;
  readonly #worker: HolderOf<V>;
  #mode: Mode = { kind: "running" };
  #epoch: number;
  /** Usage that has not reached the hub, oldest first. */
  #unsent: readonly UsageReport[] = [];
  /** Dollars that the task may still cost, as the hub said last; null: it has no limit. */
  #budgetLeft: number | null = null;
  /** How many steps have reported usage. */
  #steps = 0;

  constructor(worker: HolderOf<V>, { task, lease, context = {} }: Given<V>, end: AbortController) {
    this.#worker = worker;
    this.task = task;
    this.context = context;
    this.#epoch = lease.epoch;
    this.end = end;
    const options = { signal: end.signal, retry: { forMs: 0 } };
    this.output = new OutputSender(
      (offset, data) =>
        this.asHolder(async (holder) => {
          const { next_offset } = await worker.call("task/output", { ...holder, offset, data }, options);
          return next_offset;
        }),
      end.signal,
    );
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Sends a request of the holder; if the hub has raised the epoch of the lease meanwhile, again with the new one. */
  async asHolder<T>(send: (holder: Holder) => Promise<T>): Promise<T> {
    for (;;) {
      const epoch = this.#epoch;
      try {
        return await send({ task_id: this.task.task_id, node_id: this.#worker.nodeId, epoch });
      } catch (error) {
        const isStale = error instanceof LuxHubError && error.code === "stale_lease";
        if (!isStale || !(await this.#isRaised(epoch))) throw error;
      }
    }
  }

  /** Learns the new epoch. A dispatch would have begun the task again, at another time. */
  async #isRaised(epoch: number): Promise<boolean> {
    if (this.#epoch !== epoch) return true; // another request has learnt it
    const { task_id, started_at } = this.task;
    const options = { signal: this.end.signal, retry: FOREVER };
    try {
      const current = { task_id, node_id: this.#worker.nodeId };
      const { task, lease } = await this.#worker.call("task/extend", current, options);
      const isSame = isRaised(epoch, lease.epoch) && task.started_at === started_at;
      if (isSame) this.#epoch = lease.epoch;
      return isSame;
    } catch (error) {
      if (isLoss(error)) return false;
      throw error;
    }
  }

  get unsent(): readonly UsageReport[] {
    return this.#unsent;
  }

  /** The only place where the mode changes. */
  #enter(mode: Mode): void {
    const before = this.#mode.kind;
    switch (mode.kind) {
      case "running":
      case "parked":
        assert(before === "parking", `a task that is ${before} is not ${mode.kind} next`);
        break;
      case "parking":
        assert(before === "running" || before === "parking", "only a running task asks a question");
        break;
      case "lost":
      case "ending":
        assert(before === "running", `a task that is ${before} is not ${mode.kind} next`);
        break;
    }
    this.#mode = mode;
  }

  /** The handler has ended. Returns the mode in which it leaves the task. */
  endHandler(): Extract<Mode, { readonly kind: "parked" | "lost" | "ending" }> {
    if (this.#mode.kind === "parking") this.#enter({ kind: "parked" });
    if (this.#mode.kind === "running") this.#enter({ kind: "ending" });
    const mode = this.#mode;
    assert(mode.kind !== "running" && mode.kind !== "parking", "the handler has ended");
    return mode;
  }

  // ---- The lease

  /** Extends the lease of a task with a timeout until the end. */
  async keepLease(): Promise<void> {
    const { timeout_s } = this.task;
    if (timeout_s === null) return;
    const everyMs = (timeout_s * 1_000) / 3;
    while (!this.#isLost && (await sleepUnlessAborted(everyMs, this.end.signal))) await this.check();
  }

  /** Asks the hub whether a running task is still this worker's. */
  async check(): Promise<void> {
    if (this.#mode.kind !== "running") return;
    const error = await this.#extend();
    // A refusal of the task is its loss, or the outcome was faster.
    if (error === null || isLoss(error) || this.#isLost || this.end.signal.aborted) return;
    this.#worker.emit({ kind: "fault", error });
  }

  get #isLost(): boolean {
    return this.#mode.kind === "lost";
  }

  lose(refusal: LuxHubError): void {
    if (this.#mode.kind !== "running") return;
    this.#enter({ kind: "lost", refusal });
    this.output.stop();
    this.abort.abort(refusal);
    this.#worker.emit({ kind: "lost", task: this.task, error: refusal });
  }

  /** Extends the lease. Returns the error, or null; the task may be lost by it. */
  async #extend(fields: Extension = {}): Promise<unknown> {
    try {
      const options = { signal: this.end.signal };
      const answer = await this.asHolder((holder) =>
        this.#worker.call("task/extend", { ...holder, ...fields }, options),
      );
      if (answer.status === "failed") throw spentTooMuch(answer.task.failure?.message ?? null);
      this.#budgetLeft = answer.budget_left_usd;
      return null;
    } catch (error) {
      if (isLoss(error)) this.lose(error);
      return error;
    }
  }

  // ---- What the handler sends

  /** Extends the lease with a note or a checkpoint. Rejects when the hub does not take it. */
  async send(fields: Extension): Promise<void> {
    const error = await this.#extend(fields);
    if (error !== null) throw error;
  }

  /** Sends usage, and what could not be sent before. Rejects only if the hub refuses it. */
  async reportUsage(used: Used | readonly Used[], isLater = false): Promise<number | null> {
    const reports = [used].flat().map((step) => ({ ...step, seq: ++this.#steps }));
    this.#unsent = [...this.#unsent, ...reports];
    if (isLater) return this.#budgetLeft;
    while (this.#unsent.length > 0) {
      const usage = this.#unsent.slice(0, USAGE_TOGETHER);
      const error = await this.#extend({ usage });
      const isRefused = isLoss(error) || isWrongUsage(error);
      if (error !== null && !isRefused) return null; // it is sent later
      this.markSent(usage);
      if (isRefused) throw error;
    }
    return this.#budgetLeft;
  }

  /** The hub has these reports, or refuses them. A call at the same time may have sent some of them, too. */
  markSent(usage: readonly UsageReport[]): void {
    const sent = new Set(usage.map(({ seq }) => seq));
    this.#unsent = this.#unsent.filter(({ seq }) => !sent.has(seq));
  }

  /** Returns the answer; null: there was none in time. Rejects when the task is lost or parked. */
  async ask({
    park = false,
    ...fields
  }: Omit<RequestOf<"task/ask">, keyof Holder | "wait">): Promise<unknown> {
    const { signal } = this.abort;
    signal.throwIfAborted();
    if (park) {
      // The task is no longer this worker's after that: what is not sent now is lost.
      await this.reportUsage([]);
      while (this.#unsent.length > 0) {
        await sleep(PAUSE_MS, signal);
        await this.reportUsage([]);
      }
      await this.output.end();
      this.#enter({ kind: "parking" }); // before the call: the event of the release may be faster than its response
    }
    try {
      const question = { ...fields, park, wait: park ? 0 : QUESTION_MAX_S };
      const asked = await this.asHolder((holder) =>
        this.#worker.call("task/ask", { ...holder, ...question }, { signal, retry: FOREVER }),
      );
      if (!park) return asked.question.answer;
    } catch (error) {
      if (this.#mode.kind === "parking") this.#enter({ kind: "running" });
      if (isLoss(error)) this.lose(error);
      throw error;
    }
    this.abort.abort(new DOMException("The task is parked until its question is answered.", "AbortError"));
    throw signal.reason;
  }

  /** The inputs of the task, whole: what had no room in its context is read page by page. */
  async inputs(): Promise<readonly TaskInput<V>[]> {
    const given = this.context.inputs ?? [];
    const from = given.findIndex(({ omitted }) => omitted === true);
    if (from === -1) return given;
    const inputs = given.slice(0, from);
    const options = { signal: this.abort.signal, retry: FOREVER };
    for (let cursor: string | null = String(from); cursor !== null;) {
      const page: AnswerOf<"task/{task_id}/inputs", V> = await this.#worker.call(
        "task/{task_id}/inputs",
        { task_id: this.task.task_id, cursor, limit: INPUTS_TOGETHER },
        options,
      );
      inputs.push(...page.inputs);
      cursor = page.next_cursor;
    }
    return inputs;
  }
}

/** Whether the hub has raised an epoch, and has not handed the task out since. */
export function isRaised(epoch: number, current: number): boolean {
  return current > epoch && (current - epoch) % EPOCHS_RAISED_BY === 0;
}

function spentTooMuch(message: string | null): LuxHubError {
  return new LuxHubError({ status: 409, code: "task_failed", detail: message ?? "The task has failed." });
}

export function isWrongUsage(error: unknown): boolean {
  return error instanceof LuxHubError && WRONG_USAGE.includes(error.code);
}

/** Whether the hub refuses a task because it is no longer this worker's. */
export function isLoss(error: unknown): error is LuxHubError {
  return error instanceof LuxHubError && LOST.includes(error.code);
}
