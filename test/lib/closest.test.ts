/** The suggestion for an unknown word. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { closest, editDistance } from "../../src/lib/closest.ts";

describe("the edit distance", () => {
  const rows: readonly (readonly [string, string, number])[] = [
    ["", "", 0],
    ["", "abc", 3],
    ["port", "port", 0],
    ["prot", "port", 1],
    ["por", "port", 1],
    ["ports", "port", 1],
    ["pork", "port", 1],
    ["kitten", "sitting", 3],
    ["ca", "abc", 3],
  ];
  for (const [a, b, edits] of rows)
    test(`${a} ${b}`, () => expect([editDistance(a, b), editDistance(b, a)]).toEqual([edits, edits]));

  test("is 1 for a word and the same without one letter", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.nat(), (word, n) => {
        const at = n % word.length;
        expect(editDistance(word, word.slice(0, at) + word.slice(at + 1))).toBe(1);
      }),
    );
  });
});

describe("the closest word", () => {
  const KNOWN = ["serve", "keys", "backup", "restore", "doctor", "move", "version", "help"];
  const rows: readonly (readonly [string, string | null])[] = [
    ["sevre", "serve"],
    ["bakcup", "backup"],
    ["Backup", "backup"],
    ["key", "keys"],
    ["restor", "restore"],
    ["rest", "restore"],
    ["frobnicate", null],
    ["x", null],
    ["", null],
    ["a".repeat(1_000_000), null],
  ];
  for (const [word, meant] of rows)
    test(`${word.slice(0, 20)} is ${meant}`, () => expect(closest(word, KNOWN)).toBe(meant));
});
