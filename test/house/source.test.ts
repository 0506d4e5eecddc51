/** Tests the source reader itself: a reader that misses code would let every house rule pass. */
import { expect, test } from "bun:test";
import { codeOf, importsOf, sourcesIn } from "./source.ts";

test("codeOf blanks comments and strings", () => {
  const rows: readonly (readonly [string, string])[] = [
    ["a // b", "a     "],
    ["a /* b\nc */ d", "a     \n     d"],
    [`a("b//c")`, `a("    ")`],
    ["a('it\\'s')", "a('     ')"],
    ["`x${y}z`", "    y   "],
    ["`x${ {a: `n${1}`} }z`", "     {a:     1  }    "],
    ["a / b / c", "a / b / c"],
    [`(/"[/]/.test(x))`, "(      .test(x))"],
    ["return /`/;", "return    ;"],
  ];
  for (const [text, code] of rows) expect(codeOf(text)).toBe(code);
});

test("importsOf finds every form of import", () => {
  const text = `
    import a from "one";
    import { b,
      type C } from './two.ts';
    import type { D } from "three";
    import * as e from "four";
    import "five";
    export { f } from "six";
    export * from "seven";
    const g = await import("eight");
    type H = typeof import("nine");
    // import i from "not";
    const j = 'import k from "not"';
    export const l = m("not");
    export function n() { return "not"; }
    export type O = "not";
  `;
  const words = ["one", "./two.ts", "three", "four", "five", "six", "seven", "eight", "nine"];
  expect(importsOf(text)).toEqual(words);
});

test("sourcesIn finds the source files", () => {
  const paths = sourcesIn("src").map(({ path }) => path);
  expect(paths).toContain("src/hub.ts");
  expect(paths).toContain("src/domain/task/core.ts");
});
