/**
 * Reports the outcome of a task to the hub, with the usage that has not been sent, however long the hub is unavailable or
 * its disk full. Rejects when the hub refuses the outcome, or nothing more may be reported.
 */
import type { Call, RequestOf } from "./call.ts";
import { AttemptStalled, FatalError, type UsageReport, type WorkerEvent } from "./handler.ts";
import {
  FOREVER,
  type HeldTask,
  type Holder,
  PAUSE_MS,
  USAGE_TOGETHER,
  isLoss,
  isWrongUsage,
} from "./held-task.ts";
import { type CallOptions, LuxHubError, newIdempotencyKey, sleep } from "./http.ts";
import { fitted, resultOf } from "./result.ts";
import type { FileRecord, TaskResult, Variant } from "./types.ts";
import type { FileContent, UploadFields } from "./upload.ts";

const ERROR_MAX_CHARS = 4_000;

export type Reporting<V extends Variant> = {
  readonly call: Call<V>;
  readonly upload: (content: FileContent, fields: UploadFields, options: CallOptions) => Promise<FileRecord>;
  readonly emit: (event: WorkerEvent<V>) => void;
};

export class OutcomeReport<V extends Variant> {
  readonly #held: HeldTask<V>;
  readonly #call: Call<V>;
  readonly #upload: Reporting<V>["upload"];
  readonly #emit: Reporting<V>["emit"];

  constructor(held: HeldTask<V>, { call, upload, emit }: Reporting<V>) {
    this.#held = held;
    this.#call = call;
    this.#upload = upload;
    this.#emit = emit;
  }

  async complete(given: unknown): Promise<void> {
    const { task } = this.#held;
    try {
      this.#emit({ kind: "completed", task, luxPaid: await this.#complete(given) });
    } catch (error) {
      if (this.isFinal(error)) throw error;
      await this.fail(error); // the hub refuses this result
    }
  }

  async #complete(given: unknown): Promise<number> {
    const { task, end } = this.#held;
    const whole = resultOf(given, task.title);
    const idempotencyKey = newIdempotencyKey();
    const resultFor = ({ task_id, node_id: node }: Holder): Promise<TaskResult> =>
      fitted(whole, async (content, name, type) => {
        const options = { signal: end.signal, retry: FOREVER, idempotencyKey };
        const fields = { name, type, metadata: { task_id, node } };
        return (await this.#upload(content, fields, options)).file_id;
      });
    let made: { readonly epoch: number; readonly result: TaskResult } | undefined;
    const { lux_paid } = await this.#conclude(async (holder, usage, options) => {
      // Where the epoch is another one, a copy has taken over: it may lack the newest files.
      if (made?.epoch !== holder.epoch) made = { epoch: holder.epoch, result: await resultFor(holder) };
      return this.#call("task/complete", { ...holder, result: made.result, usage }, options);
    });
    return lux_paid;
  }

  async fail(cause: unknown): Promise<void> {
    const { task } = this.#held;
    const retry = !(cause instanceof FatalError);
    const kind = cause instanceof AttemptStalled ? ("stalled" as const) : undefined;
    const error = textOf(cause).slice(0, ERROR_MAX_CHARS).toWellFormed();
    await this.#conclude((holder, usage, options) =>
      this.#call("task/fail", { ...holder, error, kind, retry, usage }, options),
    );
    this.#emit({ kind: "failed", task, error: cause });
  }

  async giveBack(fields: Pick<RequestOf<"task/release">, "reason" | "hold_s"> = {}): Promise<void> {
    const { task } = this.#held;
    await this.#conclude((holder, usage, options) =>
      this.#call("task/release", { ...holder, ...fields, usage }, options),
    );
    this.#emit({ kind: "released", task });
  }

  /** Whether the task is lost, or nothing more may be reported. */
  isFinal(error: unknown): boolean {
    return isLoss(error) || this.#held.end.signal.aborted;
  }

  /** Reports with the usage that is not sent yet; without it if the hub refuses that. */
  async #conclude<T>(
    report: (holder: Holder, usage: UsageReport[] | undefined, options: CallOptions) => Promise<T>,
  ): Promise<T> {
    const usage = await this.#lastUsage();
    try {
      return await this.#insist((holder, options) => report(holder, usage, options));
    } catch (error) {
      if (usage === undefined || !isWrongUsage(error)) throw error;
      this.#emit({ kind: "fault", error });
      return this.#insist((holder, options) => report(holder, undefined, options));
    }
  }

  /** Sends usage until the rest fits into one request, and returns the rest. */
  async #lastUsage(): Promise<UsageReport[] | undefined> {
    const held = this.#held;
    while (held.unsent.length > USAGE_TOGETHER) {
      const usage = held.unsent.slice(0, USAGE_TOGETHER);
      try {
        await this.#insist((holder, options) => this.#call("task/extend", { ...holder, usage }, options));
      } catch (error) {
        if (!isWrongUsage(error)) throw error;
        this.#emit({ kind: "fault", error });
      }
      held.markSent(usage);
    }
    return held.unsent.length === 0 ? undefined : [...held.unsent];
  }

  async #insist<T>(report: (holder: Holder, options: CallOptions) => Promise<T>): Promise<T> {
    const { signal } = this.#held.end;
    for (;;) {
      try {
        return await this.#held.asHolder((holder) => report(holder, { signal, retry: FOREVER }));
      } catch (error) {
        if (!(error instanceof LuxHubError) || error.status < 500) throw error;
        this.#emit({ kind: "fault", error });
        await sleep(PAUSE_MS, signal);
      }
    }
  }
}

/** The message of an error, as the hub takes it. */
export function textOf(error: unknown): string {
  const text = (error instanceof Error ? error.message : String(error)).toWellFormed().replaceAll("\0", "");
  return text.trim() === "" ? "The handler failed." : text;
}
