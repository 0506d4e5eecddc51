/** The rules of notes that the API's tests cannot reach in reasonable time: the limits of all notes together. */
import { describe, expect, test } from "bun:test";
import {
  NOTES_MAX,
  NOTES_MAX_BYTES,
  NOTES_OF_NODE_MAX,
  NOTE_TEXT_MAX_BYTES,
} from "../../src/domain/limits.ts";
import type { Note } from "../../src/domain/model.ts";
import { type NoteTotals, headOf, put } from "../../src/domain/note.ts";

const NOTE: Note = {
  key: "k",
  text: "x".repeat(100),
  version: 4,
  nodeId: "n1",
  verified: false,
  createdAt: 1,
  updatedAt: 2,
};
const FREE: NoteTotals = { all: 1, bytes: headOf(NOTE).bytes, ofNode: 1 };

function codeOf(before: Note | null, totals: Partial<NoteTotals>, text: string, nodeId = "n1"): string {
  const asked = { key: "k", nodeId, verified: false, ifVersion: null, text };
  const decision = put(before, { ...FREE, ...totals }, asked, 9);
  return decision.kind === "rejected" ? decision.code : decision.kind;
}

describe("limits of all notes", () => {
  const longer = "x".repeat(101);

  test("a new note needs room for one more; a new version does not", () => {
    expect(codeOf(null, { all: NOTES_MAX - 1 }, "t")).toBe("accepted");
    expect(codeOf(null, { all: NOTES_MAX }, "t")).toBe("notes_limit");
    expect(codeOf(NOTE, { all: NOTES_MAX }, longer)).toBe("accepted");
  });

  test("bytes of all count what the write replaces", () => {
    expect(codeOf(NOTE, { bytes: NOTES_MAX_BYTES - 1 }, longer)).toBe("accepted");
    expect(codeOf(NOTE, { bytes: NOTES_MAX_BYTES }, longer)).toBe("notes_limit");
  });

  test("one that another node wrote needs room in the share of the node", () => {
    expect(codeOf(NOTE, { ofNode: NOTES_OF_NODE_MAX }, longer)).toBe("accepted");
    expect(codeOf(NOTE, { ofNode: NOTES_OF_NODE_MAX - 1 }, longer, "n2")).toBe("accepted");
    expect(codeOf(NOTE, { ofNode: NOTES_OF_NODE_MAX }, longer, "n2")).toBe("notes_limit");
  });

  test("what becomes shorter is never refused", () => {
    const over = { all: NOTES_MAX + 1, bytes: 2 * NOTES_MAX_BYTES, ofNode: 2 * NOTES_OF_NODE_MAX };
    expect(codeOf(NOTE, over, "shorter")).toBe("accepted");
  });

  test("the notes of the hub have room for many of the longest", () => {
    expect(NOTES_MAX_BYTES / NOTE_TEXT_MAX_BYTES).toBeGreaterThan(1_000);
  });
});
