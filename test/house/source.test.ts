/** The reader of sources sees what it must and no more: without this the tests of the house could pass over anything. */
import { expect, test } from "bun:test";
import { codeOf, functionsOf, importsOf, sourcesIn } from "./source.ts";

test("code is what is neither comment nor string", () => {
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

test("imports of every form are found", () => {
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

test("functions of every form are found, and blocks that are none are not", () => {
  const text = `
export function declared(a: { b: number }, c = {}): { d: string } {
  if (a) {
  } else {
  }
  return { d: "" };
}

const arrow = (a: number): Promise<void> => {
  for (const b of []) {
  }
};

export function typed(a: string): Thing {
  return a;
}

export class Thing extends Other<string> implements Face {
  readonly #field = { a: 1 };

  constructor(readonly a: string) {
    try {
    } catch {
    }
  }

  async #method<T>(a: T): Promise<T> {
    return a;
  }

  get size(): number {
    return 1;
  }
}

export type Shape = {
  readonly a: string;
};

export interface Face {
  b(): void;
}

const value = { a: 1 };
call(1, () => {
  call();
});
`;
  expect(functionsOf(text).map(({ name, lines }) => `${name} ${lines}`)).toEqual([
    "declared 6",
    "arrow 4",
    "typed 3",
    "constructor 5",
    "#method 3",
    "size 3",
    "call 3",
  ]);
  const long = `function long() {\n${"  work();\n".repeat(80)}}\n`;
  expect(functionsOf(`${text}${long}`).at(-1)).toMatchObject({ name: "long", lines: 82 });
});

test("the sources are there", () => {
  const paths = sourcesIn("src").map(({ path }) => path);
  expect(paths).toContain("src/hub.ts");
  expect(paths).toContain("src/domain/task.ts");
});
