/**
 * The output of a task while it runs: text that the worker of an attempt appends piece by piece, at offsets in bytes of
 * UTF-8. An attempt keeps the beginning and the end of its output, and a task the output of its newest attempts.
 *
 * The text is in blocks: block n has the characters whose first byte is at n * OUTPUT_BLOCK_BYTES or later, and before
 * the next block. So which blocks are kept follows from the length alone, and no block ends within a character.
 *
 * Invariant: the first `headBytes` of an attempt and its last `tailBytes` are stored.
 */
import { assert } from "../../lib/assert.ts";
import type { Change } from "../change.ts";
import { type Decision, type Rejected, accept, reject } from "../decision.ts";
import { KEPT_OUTPUT_BYTES, OUTPUT_ATTEMPTS_KEPT, OUTPUT_BLOCK_BYTES } from "../limits.ts";
import type { Moment, Node, OutputAttempt, OutputBlock, Task } from "../model.ts";
import { heldBy } from "./holder.ts";
import type { HolderRequest } from "./request.ts";

export type OutputWindow = { readonly headBytes: number; readonly tailBytes: number };

/** `attempt`: the epoch of the dispatch. */
export type Appended = { readonly taskId: string; readonly attempt: number; readonly nextOffset: number };

/** A character of UTF-8 has at most so many bytes after its first. */
const CONTINUATION_MAX = 3;

/**
 * What is at these offsets already stays and is not compared: it may no longer be kept. So a repeat changes nothing,
 * and a piece that begins before the end adds its rest.
 * @param attempts those of the task that have output, oldest first
 */
export function appendOutput(
  task: Task | null,
  node: Node | null,
  attempts: readonly OutputAttempt[],
  request: HolderRequest & { readonly offset: number; readonly data: string },
  window: OutputWindow,
  at: Moment,
): Decision<Appended> {
  const held = heldBy(task, node, request);
  if ("code" in held) return held;
  const { taskId, epoch } = held;
  const before = attempts.find((attempt) => attempt.epoch === epoch) ?? null;
  const size = before?.bytes ?? 0;
  const data = Buffer.from(request.data);
  const known = size - request.offset;
  if (known < 0) return wrongOffset(taskId, size);
  if (known >= data.length) return accept({ taskId, attempt: epoch, nextOffset: size });
  if (isWithinCharacter(data, known)) return wrongOffset(taskId, size);
  const bytes = request.offset + data.length;
  const countedBytes = bytesKept(bytes, window);
  const changes: Change[] = [];
  if (before === null) {
    if (!held.hasOutput) changes.push({ kind: "task.moved", task: { ...held, hasOutput: true } });
    const attempt = { epoch, nodeId: request.nodeId, bytes, keptBytes: 0, begunAt: at.now, at: at.now };
    changes.push({ kind: "output.begun", taskId, attempt, countedBytes }, ...withoutOldest(taskId, attempts));
  } else {
    const keptBytes = before.keptBytes === 0 ? 0 : countedBytes;
    changes.push({ kind: "output.grown", taskId, epoch, bytes, keptBytes, at: at.now });
    const addedBytes = keptBytes - before.keptBytes;
    if (addedBytes !== 0)
      changes.push({ kind: "usage.tallied", nodeId: before.nodeId, tasks: 0, bytes: addedBytes });
  }
  const head = headEnd(window);
  const tail = tailBegin(bytes, window);
  for (const block of blocksOf(data.subarray(known), size))
    if (block.n < head || block.n >= tail) changes.push({ kind: "output.appended", taskId, epoch, ...block });
  if (tail > tailBegin(size, window))
    changes.push({ kind: "output.cut", taskId, epoch, first: head, end: tail });
  return accept({ taskId, attempt: epoch, nextOffset: bytes }, changes);
}

export function blockAt(offset: number): number {
  return Math.floor(offset / OUTPUT_BLOCK_BYTES);
}

function headEnd({ headBytes }: OutputWindow): number {
  return Math.ceil(headBytes / OUTPUT_BLOCK_BYTES);
}

/** From the beginning on, while nothing is dropped between them. */
function tailBegin(bytes: number, window: OutputWindow): number {
  // A block may begin up to three bytes late, after the last character of the one before.
  const first = bytes - window.tailBytes - CONTINUATION_MAX;
  return Math.max(headEnd(window), blockAt(Math.max(0, first)));
}

/** At most what the kept output takes: it is not less when something is dropped, so it never shrinks. */
function bytesKept(bytes: number, { headBytes, tailBytes }: OutputWindow): number {
  return KEPT_OUTPUT_BYTES + Math.min(bytes, headBytes + tailBytes + 2 * OUTPUT_BLOCK_BYTES);
}

function blocksOf(data: Buffer, offset: number): readonly OutputBlock[] {
  const blocks: OutputBlock[] = [];
  for (let from = 0; from < data.length;) {
    const start = offset + from;
    const n = blockAt(start);
    let end = Math.min(data.length, (n + 1) * OUTPUT_BLOCK_BYTES - offset);
    while (isWithinCharacter(data, end)) end++;
    blocks.push({ n, start, data: data.toString("utf8", from, end) });
    from = end;
  }
  return blocks;
}

function isWithinCharacter(data: Uint8Array, index: number): boolean {
  return ((data[index] ?? 0) & 0b1100_0000) === 0b1000_0000;
}

function withoutOldest(taskId: string, attempts: readonly OutputAttempt[]): readonly Change[] {
  const dropped = attempts.slice(0, Math.max(0, attempts.length + 1 - OUTPUT_ATTEMPTS_KEPT));
  const upTo = dropped.at(-1)?.epoch;
  if (upTo === undefined) return [];
  return [
    ...dropped.flatMap(({ nodeId, keptBytes }): readonly Change[] =>
      keptBytes === 0 ? [] : [{ kind: "usage.tallied", nodeId, tasks: 0, bytes: -keptBytes }],
    ),
    { kind: "output.removed", taskId, upTo },
    { kind: "output.erased", taskId, upTo },
  ];
}

// ---- Reading

/** Without a gap. */
export type OutputText = {
  readonly from: number;
  readonly data: string;
  readonly nextOffset: number;
  /** Before `from`: no longer kept. */
  readonly dropped: number;
};

/**
 * Up to the next gap. `blocks`: from the one of the offset on. An offset within a character begins with the next one;
 * one beyond the end is the end.
 */
export function textFrom(blocks: readonly OutputBlock[], offset: number, size: number): OutputText {
  let from = Math.min(offset, size);
  let end = from;
  let text = "";
  for (const { start, data } of blocks) {
    const bytes = Buffer.from(data);
    if (start + bytes.length <= from) continue;
    if (text !== "" && start !== end) break;
    if (text === "") {
      let first = Math.max(0, from - start);
      while (first < bytes.length && isWithinCharacter(bytes, first)) first++;
      if (first === bytes.length) continue;
      from = start + first;
      text = bytes.toString("utf8", first);
    } else text += data;
    end = start + bytes.length;
  }
  assert(end <= size, "no block ends after the output");
  return { from, data: text, nextOffset: end, dropped: Math.max(0, from - offset) };
}

function wrongOffset(taskId: string, expected: number): Rejected {
  const detail = `The output of this attempt of task ${taskId} continues at offset ${expected}. Send what comes from there on.`;
  return { ...reject("wrong_offset", detail), expected };
}
