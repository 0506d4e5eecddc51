/** The rules of output: offsets, blocks, and what of an attempt and of a task is kept. A reader sees a model's text. */
import { describe, expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { KEPT_OUTPUT_BYTES, OUTPUT_ATTEMPTS_KEPT, OUTPUT_BLOCK_BYTES } from "../../src/domain/limits.ts";
import type { OutputAttempt, OutputBlock } from "../../src/domain/model.ts";
import { appendOutput, blockAt, textFrom } from "../../src/domain/task/output.ts";
import { dice } from "../support/dice.ts";
import { AT, node, task } from "./samples.ts";

const BLOCK = OUTPUT_BLOCK_BYTES;
const HELD = task("t", { status: "assigned", assignedNode: "n1", epoch: 3 });
const WINDOW = { headBytes: 2 * BLOCK, tailBytes: 3 * BLOCK };

/** The stored output of one task, as the statements of the store would leave it. */
class Stored {
  attempts: readonly OutputAttempt[] = [];
  readonly blocks = new Map<number, OutputBlock>();
  readonly window;
  held = HELD;

  constructor(window = WINDOW) {
    this.window = window;
  }

  get size(): number {
    return this.attempts.at(-1)?.bytes ?? 0;
  }

  append(data: string, offset = this.size) {
    const asked = { taskId: "t", nodeId: "n1", epoch: this.held.epoch, offset, data };
    const decision = appendOutput(this.held, node("n1"), this.attempts, asked, this.window, AT);
    if (decision.kind === "accepted") for (const change of decision.changes) this.#apply(change);
    return decision;
  }

  read(from: number) {
    const first = [...this.blocks.values()].filter(({ n }) => n >= blockAt(from));
    return textFrom(
      first.toSorted((a, b) => a.n - b.n),
      from,
      this.size,
    );
  }

  #apply(change: Change): void {
    if (change.kind === "task.moved") this.held = change.task;
    else if (change.kind === "output.begun") this.attempts = [...this.attempts, change.attempt];
    else if (change.kind === "output.removed")
      this.attempts = this.attempts.filter(({ epoch }) => epoch > change.upTo);
    else if (change.kind === "output.grown")
      this.attempts = this.attempts.map((one) => (one.epoch === change.epoch ? { ...one, ...change } : one));
    else if (change.kind === "output.cut") {
      for (const n of this.blocks.keys()) if (n >= change.first && n < change.end) this.blocks.delete(n);
    } else if (change.kind === "output.appended") {
      const before = this.blocks.get(change.n);
      const data = (before?.data ?? "") + change.data;
      this.blocks.set(change.n, { n: change.n, start: before?.start ?? change.start, data });
    }
  }
}

const next = (decision: ReturnType<Stored["append"]>) =>
  decision.kind === "accepted" ? decision.answer.nextOffset : decision.code;

describe("an append", () => {
  test("continues where the last one ended; a repeat changes nothing, and what overlaps adds its rest", () => {
    const stored = new Stored();
    expect(next(stored.append("ab"))).toBe(2);
    expect(stored.append("ab", 0)).toMatchObject({ answer: { nextOffset: 2 }, changes: [] });
    expect(stored.append("b", 1)).toMatchObject({ answer: { nextOffset: 2 }, changes: [] });
    expect(next(stored.append("abcd", 0))).toBe(4);
    expect(stored.read(0)).toEqual({ from: 0, data: "abcd", nextOffset: 4, dropped: 0 });
  });

  test("after a gap, or within a character of other text, is refused with the offset that is expected", () => {
    const stored = new Stored();
    stored.append("ab");
    expect(stored.append("d", 3)).toMatchObject({ code: "wrong_offset", expected: 2 });
    expect(stored.append("aé!", 0)).toMatchObject({ code: "wrong_offset", expected: 2 });
    expect(stored.read(0).data).toBe("ab");
  });

  test("is the holder's, in its lease", () => {
    const append = (patch: Partial<typeof HELD>, nodeId = "n1", epoch: number | null = 3) =>
      appendOutput(
        { ...HELD, ...patch },
        node(nodeId),
        [],
        { taskId: "t", nodeId, epoch, offset: 0, data: "x" },
        WINDOW,
        AT,
      );
    const code = (decision: ReturnType<typeof append>) => decision.kind === "rejected" && decision.code;
    expect(code(append({}, "n1", 2))).toBe("stale_lease");
    expect(code(append({}, "n2"))).toBe("not_assigned_to_node");
    expect(code(append({ status: "open", assignedNode: null }))).toBe("task_not_assigned");
    expect(code(append({ status: "completed" }))).toBe("task_completed");
    expect(append({}, "n1", null)).toMatchObject({ answer: { attempt: 3, nextOffset: 1 } });
  });

  test("marks the task once, and counts for its node only if its attempt began with a bound key", () => {
    const stored = new Stored();
    const first = stored.append("ab");
    expect(first).toMatchObject({
      changes: [
        { kind: "task.moved", task: { hasOutput: true } },
        { kind: "output.begun", countedBytes: KEPT_OUTPUT_BYTES + 2 },
        { kind: "output.appended", n: 0, start: 0, data: "ab" },
      ],
    });
    const kinds = (decision: ReturnType<Stored["append"]>) =>
      decision.kind === "accepted" ? decision.changes.map(({ kind }) => kind) : decision.code;
    expect(kinds(stored.append("c"))).toEqual(["output.grown", "output.appended"]);
    stored.attempts = stored.attempts.map((one) => ({ ...one, keptBytes: KEPT_OUTPUT_BYTES + 3 }));
    expect(stored.append("de")).toMatchObject({
      changes: [{ kind: "output.grown" }, { kind: "usage.tallied", nodeId: "n1", bytes: 2 }, {}],
    });
  });
});

describe("what is kept", () => {
  test("is the beginning and the end of an attempt; a reader in the dropped part is told, and goes on with the end", () => {
    const stored = new Stored();
    const text = Array.from({ length: 40_000 }, (_, i) => `line ${i}\n`).join("");
    for (let at = 0; at < text.length; at += 10_000) stored.append(text.slice(at, at + 10_000));
    const head = stored.read(0);
    expect(head).toMatchObject({ from: 0, dropped: 0, nextOffset: WINDOW.headBytes });
    expect(head.data).toBe(text.slice(0, WINDOW.headBytes));
    const tail = stored.read(head.nextOffset);
    expect(tail.data.length).toBeWithin(WINDOW.tailBytes, WINDOW.tailBytes + 2 * BLOCK);
    expect(text.endsWith(tail.data)).toBeTrue();
    expect(tail.dropped).toBe(tail.from - head.nextOffset);
    expect(tail.dropped + head.data.length + tail.data.length).toBe(text.length);
    expect(stored.read(tail.from - 5)).toMatchObject({ from: tail.from, dropped: 5 });
    expect(stored.blocks.size).toBeLessThanOrEqual(2 + 3 + 2);
  });

  test("never ends within a character, however the text is cut into pieces", () => {
    const below = dice(20_261_123);
    const characters = ["a", "é", "€", "𝄞"];
    for (let round = 0; round < 30; round++) {
      const stored = new Stored({ headBytes: 1 + below(2 * BLOCK), tailBytes: 1 + below(3 * BLOCK) });
      const { headBytes, tailBytes } = stored.window;
      let text = "";
      for (let i = 0; i < 40; i++) {
        const piece = (characters[below(characters.length)] ?? "").repeat(1 + below(3_000));
        text += piece;
        expect(next(stored.append(piece))).toBe(Buffer.byteLength(text));
        const bytes = Buffer.from(text);
        // Both ends are there, and every byte that is read is the one that was sent.
        let at = 0;
        while (at < bytes.length) {
          const part = stored.read(at);
          expect(bytes.toString("utf8", part.from, part.nextOffset)).toBe(part.data);
          expect(part.nextOffset).toBeGreaterThan(at);
          if (part.dropped > 0) {
            expect(at).toBeGreaterThanOrEqual(headBytes);
            expect(part.from).toBeLessThanOrEqual(Math.max(headBytes, bytes.length - tailBytes));
          }
          at = part.nextOffset;
        }
      }
      const blocks = Math.ceil(headBytes / BLOCK) + Math.ceil(tailBytes / BLOCK) + 2;
      expect(stored.blocks.size).toBeLessThanOrEqual(blocks);
    }
  });

  test("an offset within a character begins with the next one, and one beyond the end is the end", () => {
    const stored = new Stored();
    stored.append("é!");
    expect(stored.read(1)).toMatchObject({ from: 2, data: "!" });
    expect(stored.read(99)).toEqual({ from: 3, data: "", nextOffset: 3, dropped: 0 });
  });

  test("are the newest attempts, and what is dropped is given back", () => {
    const stored = new Stored();
    for (let epoch = 3; epoch < 13; epoch += 2) {
      stored.held = { ...stored.held, epoch };
      const { attempts } = stored;
      const decision = stored.append("x", 0);
      const refunds = decision.kind === "accepted" ? decision.changes : [];
      expect(refunds.some(({ kind }) => kind === "usage.tallied")).toBe(
        attempts.length === OUTPUT_ATTEMPTS_KEPT,
      );
      stored.attempts = stored.attempts.map((one) => ({ ...one, keptBytes: 1 }));
    }
    expect(stored.attempts.map(({ epoch }) => epoch)).toEqual([7, 9, 11]);
  });
});
