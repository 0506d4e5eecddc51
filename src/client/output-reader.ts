/**
 * Reads the output of a task by offset, and follows it while the task runs. A restart of the hub loses and repeats
 * nothing.
 */
import type { AnswerOf, Call } from "./call.ts";
import type { Variant } from "./types.ts";

/** Text of one attempt, after `dropped` bytes that are no longer kept. */
export type OutputPart<V extends Variant = "A"> = AnswerOf<"task/{task_id}/output", V> & {
  readonly attempt: number;
};

export type OutputOptions = {
  /** The attempt to read, or to begin with; without it the newest that has output. */
  readonly attempt?: number | undefined;
  /** The offset to begin at, in bytes. */
  readonly from?: number | undefined;
  /** Goes on with what comes, attempt by attempt, until the task is finished. */
  readonly follow?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
};

/** Most proxies cut a connection that is silent for a minute. */
const WAIT_S = 50;
const FOREVER = { forMs: Number.POSITIVE_INFINITY };

/** The first call fails if the hub or the task does not exist; with `follow` the others wait for a hub that is away. */
export async function* readOutput<V extends Variant>(
  call: Call<V>,
  taskId: string,
  { attempt: first, from: begin, follow = false, signal }: OutputOptions,
): AsyncGenerator<OutputPart<V>, void, undefined> {
  let attempt = first;
  let from = begin;
  for (let isFirst = true; ; isFirst = false) {
    const request = { task_id: taskId, attempt, from, wait: follow && !isFirst ? WAIT_S : undefined };
    const options = { signal, ...(follow && !isFirst && { retry: FOREVER }) };
    const part = await (call as Call<Variant>)("task/{task_id}/output", request, options);
    if (isPart<V>(part)) {
      if (part.data !== "") yield part;
      ({ attempt, next_offset: from } = part);
      if (part.next_offset < part.size) continue;
      if (!follow) return;
      if (part.ended) [attempt, from] = [part.attempt + 1, 0];
    } else if (part.ended || !follow) return;
  }
}

function isPart<V extends Variant>(
  answer: AnswerOf<"task/{task_id}/output", Variant>,
): answer is OutputPart<V> & typeof answer {
  return answer.attempt !== null;
}
