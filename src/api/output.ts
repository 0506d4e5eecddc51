/** The endpoints of a task's output while it runs: task/output, task/<task_id>/output and its stream. */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import type { OutputAttempt } from "../domain/model.ts";
import type { Appended } from "../domain/task/output.ts";
import { queryOf, pathParameter } from "../http/exchange.ts";
import { type SseStream, frame } from "../http/sse.ts";
import { must } from "../lib/assert.ts";
import { isoTime } from "../lib/clock.ts";
import type { Acquirable } from "../lib/semaphore.ts";
import type { OutputPart, OutputPlace, Outputs } from "../service/output.ts";
import type { Variant } from "../variant/variant.ts";
import type { JsonAnswer } from "./answer.ts";
import { type Call, type Endpoint, BY_NODE, rawEndpoint, readEndpoint, writeEndpoint } from "./endpoint.ts";
import { ignoredFieldsFinder, inputParser, withoutAbsent } from "./input.ts";
import * as field from "./request-fields.ts";
import { statusWord, time } from "./response-schemas.ts";
import { type EventStreams, ignoredText } from "./stream.ts";
import { HOLDER_REJECTIONS, holderOf, ofHolder } from "./tasks.ts";
import { about, flag, maybeWhole, optional, string, whole } from "./about.ts";

const append = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/task/output",
  summary: "Appends output of a running task",
  rejections: [...HOLDER_REJECTIONS, "wrong_offset"],
  input: () =>
    z.extend(ofHolder(), {
      offset: about(
        field.outputOffset(),
        "The offset of the first byte of `data` in the output of this attempt, in bytes of UTF-8. A repeat of what was sent changes nothing.",
      ),
      data: about(field.outputData(), "1 to 65,536 bytes of text, without NUL."),
    }),
  answer: () =>
    z.strictObject({
      task_id: z.string(),
      attempt: whole("The attempt: the epoch of the lease."),
      next_offset: whole("Where the next piece begins."),
    }),
  handle: ({ services, transact }, { offset, data, ...holder }) =>
    services.outputs.append(transact, { ...holderOf(holder), offset, data }),
  encode: ({ taskId, attempt, nextOffset }: Appended) => ({
    task_id: taskId,
    attempt,
    next_offset: nextOffset,
  }),
});

export const outputAttemptSchema = () =>
  z.strictObject({
    attempt: whole("The epoch of the lease."),
    node_id: string("The node that sent the output."),
    size: whole("The bytes that were sent, kept or not."),
    begun_at: about(time(), "When the first output came."),
    updated_at: about(time(), "When the last output came."),
  });

function encodeAttempt({ epoch, nodeId, bytes, begunAt, at }: OutputAttempt): JsonAnswer {
  return {
    attempt: epoch,
    node_id: nodeId,
    size: bytes,
    begun_at: isoTime(begunAt),
    updated_at: isoTime(at),
  };
}

const ATTEMPT =
  "The attempt: the epoch of its lease. In a query: if left out, the newest attempt with output; if this attempt has none, the next attempt with output. In a response null: no attempt has output.";

const read = readEndpoint({
  path: "/api/v1/task/:task_id/output",
  auth: "secret",
  readsMany: true,
  once: true,
  summary: "The output of an attempt of a task; may wait for more",
  rejections: ["task_not_found"],
  input: () =>
    z.object({
      task_id: field.id(),
      attempt: optional(field.queryOffset(), ATTEMPT),
      from: optional(field.queryOffset(), "The offset to read from: 0 if left out."),
      wait: optional(
        field.queryWaitSeconds(),
        "Seconds to wait until there is more, or the attempt or the task has ended.",
      ),
    }),
  answer: (variant) =>
    z.strictObject({
      task_id: z.string(),
      status: statusWord(variant),
      attempt: maybeWhole(ATTEMPT),
      offset: whole("The offset of the first byte of `data`."),
      data: string("The text from `offset` on: at most 256 KiB, up to a part that is no longer kept."),
      next_offset: whole("The offset to read from next."),
      dropped: whole("How many bytes between `from` and `offset` are no longer kept."),
      size: z.int(),
      ended: flag("Whether this attempt sends no more; without an attempt: whether the task is finished."),
      attempts: about(z.array(outputAttemptSchema()), "The attempts whose output is kept, oldest first."),
    }),
  handle: ({ services, hold }, { task_id, attempt = null, from = 0, wait = 0 }) => {
    const { outputs } = services;
    const place = { attempt, from };
    if (wait === 0) return outputs.read(task_id, place);
    return hold((signal) => outputs.next(task_id, place, { waitMs: wait, signal }));
  },
  encode: (part, variant) => ({
    task_id: part.task.taskId,
    status: variant.statusWord(part.task.status),
    attempt: part.attempt?.epoch ?? null,
    offset: part.from,
    data: part.data,
    next_offset: part.nextOffset,
    dropped: part.dropped,
    size: part.attempt?.bytes ?? 0,
    ended: part.hasEnded,
    attempts: part.attempts.map(encodeAttempt),
  }),
});

export const OUTPUT_ENDPOINTS: readonly Endpoint[] = [append, read];

export const OUTPUT_STREAM_QUERY = () =>
  z.object({
    task_id: field.id(),
    attempt: optional(
      field.queryOffset(),
      "The attempt to begin with: the newest that has output if left out.",
    ),
    from: optional(field.queryOffset(), "The offset to begin at: 0 if left out."),
  });

const parseQuery = inputParser(OUTPUT_STREAM_QUERY);
const ignoredOf = ignoredFieldsFinder(OUTPUT_STREAM_QUERY);

export const OUTPUT_STREAM = {
  method: "GET",
  path: "/api/v1/task/:task_id/output/stream",
  auth: "secret",
  summary: "Streams the output of a task until it is finished (Server-Sent Events)",
  rejections: ["task_not_found"],
} as const;

export function outputStreamEndpoint(streams: EventStreams): Endpoint {
  return rawEndpoint({ ...OUTPUT_STREAM, handle: (call) => openStream(call, streams) });
}

/** The id of an event: the offset after its text, and the attempt. A client may also send an offset alone. */
const EVENT_ID = /^(\d{1,16})(?:\.(\d{1,16}))?$/;

async function openStream(call: Call, streams: EventStreams): Promise<Response> {
  const { exchange, services, variant } = call;
  const query = withoutAbsent(
    { ...queryOf(exchange.request), task_id: pathParameter(exchange, "task_id") },
    "",
  );
  const { task_id: taskId, attempt = null, from = 0 } = parseQuery(query);
  const [, offset, epoch] = EVENT_ID.exec(exchange.request.headers.get("last-event-id") ?? "") ?? [];
  const place = {
    attempt: epoch === undefined ? attempt : Number(epoch),
    from: offset === undefined ? from : Number(offset),
  };
  await services.feed.task(taskId);
  return streams.begin(call, ignoredText(ignoredOf(query)), (stream, held) => {
    const ending = new AbortController();
    const follower = new Follower(services.outputs, stream, held, variant);
    follower.follow(taskId, place, ending.signal).catch((error: unknown) => {
      if (!ending.signal.aborted) call.log.error("stream failed", { cause: String(error) });
      stream.close(); // the client reconnects with Last-Event-ID; of a deleted task it learns then
    });
    return () => ending.abort();
  });
}

const BLOCKS = 4;
/** What they take as JSON at most: a control character takes six bytes. */
const FRAME_MAX_BYTES = 6 * BLOCKS * limit.OUTPUT_BLOCK_BYTES;

class Follower {
  readonly #outputs: Outputs;
  readonly #stream: SseStream;
  readonly #held: Acquirable;
  readonly #variant: Variant;

  constructor(outputs: Outputs, stream: SseStream, held: Acquirable, variant: Variant) {
    this.#outputs = outputs;
    this.#stream = stream;
    this.#held = held;
    this.#variant = variant;
  }

  async follow(taskId: string, place: OutputPlace, signal: AbortSignal): Promise<void> {
    const waiter = this.#outputs.join(taskId);
    try {
      for (let { attempt, from } = place; !this.#stream.closed;) {
        if (this.#stream.backlogBytes > 0 && !(await this.#stream.drained())) return;
        const part = await this.#sendNext(taskId, { attempt, from });
        if (part === null) return;
        from = part.nextOffset;
        attempt = part.attempt?.epoch ?? attempt;
        if (part.data !== "") continue;
        if (part.hasEnded && part.attempt !== null) {
          attempt = part.attempt.epoch + 1; // the next one, whichever number it gets
          from = 0;
          continue;
        }
        if (part.hasEnded) return this.#end(part);
        if ((await waiter.wait(limit.OUTPUT_REREAD_MS, signal)) === "aborted") return;
      }
    } finally {
      waiter.leave();
    }
  }

  /** Loads it when there is room for the largest; it counts until the socket has it. Null when the client is gone. */
  async #sendNext(taskId: string, place: OutputPlace): Promise<OutputPart | null> {
    const held = this.#held;
    await held.acquire(FRAME_MAX_BYTES);
    try {
      if (this.#stream.closed) return null;
      const part = await this.#outputs.read(taskId, place, BLOCKS);
      if (part.data !== "") this.#send(part);
      return this.#stream.closed ? null : part;
    } finally {
      held.release(FRAME_MAX_BYTES);
    }
  }

  #send({ attempt, from, nextOffset, dropped, data }: OutputPart): void {
    const held = this.#held;
    const { epoch, nodeId } = must(attempt, "output is of an attempt");
    const piece = { attempt: epoch, node_id: nodeId, offset: from, next_offset: nextOffset, dropped, data };
    const text = frame({ id: `${nextOffset}.${epoch}`, event: "output", data: JSON.stringify(piece) });
    this.#stream.send(text);
    if (this.#stream.backlogBytes === 0) return;
    const bytes = Buffer.byteLength(text);
    held.overdraw(bytes);
    void this.#stream.drained().then(() => held.release(bytes));
  }

  #end({ task }: OutputPart): void {
    const status = this.#variant.statusWord(task.status);
    this.#stream.send(frame({ event: "end", data: JSON.stringify({ status }) }));
    this.#stream.close();
  }
}
