/** Runs the handler of a task, within its time limit. */
import type { AskOptions, Handler, TaskContext } from "./handler.ts";
import type { HeldTask } from "./held-task.ts";
import { sleepUnlessAborted } from "./http.ts";
import { TimeLimit } from "./time-limit.ts";
import type { Question, Variant } from "./types.ts";

/** How a handler ended. */
export type Outcome =
  | { readonly kind: "done"; readonly result: unknown }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "timed out"; readonly error: Error }
  /** After its signal, without a result. */
  | { readonly kind: "aborted" };

/**
 * Resolves with the outcome of the handler. It has timed out if it takes too long, whatever it returns then.
 * @param limits `timeoutMs` null: without a limit; `graceMs`: how long it may take to end after its signal
 */
export function runHandler<V extends Variant>(
  held: HeldTask<V>,
  handler: Handler<V>,
  { timeoutMs, graceMs }: { readonly timeoutMs: number | null; readonly graceMs: number },
): Promise<Outcome> {
  const { signal } = held.abort;
  let timeout: Error | null = null;
  const limit = new TimeLimit(timeoutMs, () => {
    if (signal.aborted) return;
    timeout = new DOMException(`The handler timed out after ${(timeoutMs ?? 0) / 1_000} s.`, "TimeoutError");
    held.abort.abort(timeout);
  });
  return new Promise((resolve) => {
    const ended = new AbortController();
    const end = (outcome: Outcome): void => {
      ended.abort();
      limit.end();
      resolve(timeout === null ? outcome : { kind: "timed out", error: timeout });
    };
    const onAbort = async (): Promise<void> => {
      if (await sleepUnlessAborted(graceMs, ended.signal)) end({ kind: "aborted" });
    };
    signal.addEventListener("abort", () => void onAbort(), { signal: ended.signal });
    limit.resume();
    Promise.resolve()
      .then(async () => handler(held.task, contextOf(held, limit, await held.inputs())))
      .then(
        (result) => end({ kind: "done", result }),
        (error: unknown) => end(signal.aborted ? { kind: "aborted" } : { kind: "failed", error }),
      );
  });
}

function contextOf<V extends Variant>(
  held: HeldTask<V>,
  limit: TimeLimit,
  inputs: TaskContext<V>["inputs"],
): TaskContext<V> {
  const { checkpoint, failures = [], answers = [], lessons = [] } = held.context;
  const unused = [...answers];
  return {
    inputs,
    signal: held.abort.signal,
    get epoch() {
      return held.epoch;
    },
    extend: (note) => held.send({ note }),
    checkpoint: checkpoint?.data,
    failures,
    lessons,
    answers,
    ask: async (question, options = {}) => {
      const known = unused.findIndex(
        (answered) => answered.state !== "open" && isSameQuestion(answered, question, options),
      );
      if (known !== -1) return unused.splice(known, 1)[0]?.answer;
      const { choices, schema, within, park } = options;
      limit.pause();
      try {
        return await held.ask({ question, choices, schema, within_s: within, park });
      } finally {
        limit.resume();
      }
    },
    saveCheckpoint: (data) => held.send({ checkpoint: data }),
    output: (text) => held.output.write(text),
    reportUsage: (used, { later = false } = {}) => held.reportUsage(used, later),
  };
}

/** The words of an earlier question: a repeat of it is not asked again. */
function isSameQuestion(known: Question, question: string, { choices = [], schema }: AskOptions): boolean {
  const isSame = known.question === question && known.choices.join("\n") === choices.join("\n");
  return isSame && JSON.stringify(known.schema) === JSON.stringify(schema ?? null);
}
