/** Overlap of globs: the rule by examples, and against brute force over all short names. */
import { describe, expect, test } from "bun:test";
import { isGlob, overlap } from "../../src/lib/globs.ts";
import { type Dice, dice } from "../support/dice.ts";

describe("overlap", () => {
  test.each([
    ["src/a.ts", "src/a.ts", true],
    ["src/a.ts", "src/b.ts", false],
    ["src", "src/a.ts", false],
    ["src/*", "src/a.ts", true],
    ["src/*", "src/api/a.ts", false],
    ["src/**", "src/api/a.ts", true],
    ["src/**", "src", true],
    ["src/**", "srcs/a.ts", false],
    ["**", "anything/at/all", true],
    ["**/*.test.ts", "test/api/notes.test.ts", true],
    ["**/*.test.ts", "src/**", true],
    ["src/*.ts", "src/a*", true],
    ["src/*.ts", "src/*.tsx", false],
    ["src/**/index.ts", "src/web/**", true],
    ["src/**/a", "**/b", false],
    ["a*b", "*ab", true],
    ["a*b", "ba*", false],
    ["[id].tsx", "i.tsx", false],
    ["deploy", "Deploy", false],
    ["💾*", "💾x", true],
  ])("%s and %s: %p", (a, b, expected) => {
    expect(overlap(a, b)).toBe(expected);
    expect(overlap(b, a)).toBe(expected);
  });

  test("is what brute force finds: some name of at most 4 segments matches both", () => {
    const roll = dice(20_261_123);
    const names = allNames();
    let overlapping = 0;
    for (let run = 0; run < 1_500; run++) {
      const [a, b] = [randomGlob(roll), randomGlob(roll)];
      const [first, second] = [patternOf(a), patternOf(b)];
      const expected = names.some((name) => first.test(name) && second.test(name));
      expect({ a, b, overlaps: overlap(a, b) }).toEqual({ a, b, overlaps: expected });
      overlapping += Number(expected);
    }
    expect(overlapping).toBeGreaterThan(200);
    expect(overlapping).toBeLessThan(1_300);
  });

  test("is what a search finds that tries everything, also of longer globs", () => {
    const roll = dice(20_261_128);
    for (let run = 0; run < 3_000; run++) {
      const longer = (): string => `${randomGlob(roll)}/${randomGlob(roll)}`;
      const [a, b] = [longer(), longer()];
      const segments = (x: string, y: string): boolean =>
        isFound([...x], [...y], "*", (one, other) => one === other);
      const expected = isFound(a.split("/"), b.split("/"), "**", segments);
      expect({ a, b, overlaps: overlap(a, b) }).toEqual({ a, b, overlaps: expected });
    }
  });

  test("of the two worst of the longest names takes few steps", () => {
    const worst = (end: string): string => `${"a*".repeat(99)}${end}`;
    const before = performance.now();
    expect(overlap(worst("b"), worst("c"))).toBe(false);
    expect(performance.now() - before).toBeLessThan(1_000); // exponential search would not end
  });
});

test("a glob has a star", () => {
  expect(["a", "a/b", "a?", "*", "a/**"].map(isGlob)).toEqual([false, false, false, true, true]);
});

/** The pieces of segments, with two letters: a glob of at most 3 segments of at most 2 pieces. */
const PIECES = ["x", "y", "*", "*"];

function randomGlob(roll: Dice): string {
  const segment = (): string => {
    if (roll(5) === 0) return "**";
    return Array.from({ length: 1 + roll(2) }, () => PIECES[roll(PIECES.length)]).join("");
  };
  return Array.from({ length: 1 + roll(3) }, segment).join("/");
}

/** All names of at most 4 segments of one to two letters: the shortest common name of two such globs is among them. */
function allNames(): readonly string[] {
  const segments = ["x", "y", "xx", "xy", "yx", "yy"];
  let longest = segments;
  const names = [...segments];
  for (let length = 2; length <= 4; length++) {
    longest = longest.flatMap((name) => segments.map((segment) => `${name}/${segment}`));
    names.push(...longest);
  }
  return names;
}

/** Whether two lists of units match a common list: a wild one stands for nothing more, or for one more unit of the other. */
function isFound(
  a: readonly string[],
  b: readonly string[],
  wild: string,
  same: (a: string, b: string) => boolean,
): boolean {
  const [[ofA, ...restA], [ofB, ...restB]] = [a, b];
  if (ofA === wild && (isFound(restA, b, wild, same) || (ofB !== undefined && isFound(a, restB, wild, same))))
    return true;
  if (ofB === wild && (isFound(a, restB, wild, same) || (ofA !== undefined && isFound(restA, b, wild, same))))
    return true;
  if (ofA === undefined || ofB === undefined) return ofA === ofB;
  return ofA !== wild && ofB !== wild && same(ofA, ofB) && isFound(restA, restB, wild, same);
}

/** The definition, as a regular expression over the segments, each followed by a slash. */
function patternOf(glob: string): { test(name: string): boolean } {
  const source = glob
    .split("/")
    .map((segment) => (segment === "**" ? "(?:[^/]+/)*" : `${segment.replaceAll("*", "[^/]*")}/`))
    .join("");
  const pattern = new RegExp(`^${source}$`);
  return { test: (name) => pattern.test(`${name}/`) };
}
