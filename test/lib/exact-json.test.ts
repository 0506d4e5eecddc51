/** Lossless JSON: parsed values are written with their exact value, and texts are compared by value. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { compactJson, isSameJson, parseExact, parsePlain } from "../../src/lib/exact-json.ts";
import { HANG_MS } from "../support/hang.ts";

describe("parseExact", () => {
  const KEPT = [
    "12345678901234567890",
    "-9007199254740993",
    "0.12345678901234567890123",
    "1e400",
    "-1E-400",
    `1${"0".repeat(500)}1`,
  ];
  for (const number of KEPT)
    test(`keeps ${number.slice(0, 30)}`, () => {
      const texts = [number, `[${number}]`, `[1,${number}]`, `{"a":${number}}`, `{"a":[${number}],"b":"x"}`];
      for (const text of texts) expect(JSON.stringify(parseExact(text))).toBe(text);
      for (const space of [" ", "\t", "\n"])
        expect(JSON.stringify(parseExact(`{"a":${space}${number}${space}}`))).toBe(`{"a":${number}}`);
    });

  test("parses as JSON.parse does what a double represents", () => {
    const text = '{"a":[1,1.50,1e2,0.30000000000000004,0.0,9007199254740992],"1e5":"1234567890123456"}';
    expect(parseExact(text)).toEqual(JSON.parse(text));
  });

  test.each(["-0", " -0.0", "[1,-0]", '{"a":{"b":-0,"c":"x, -0"}}', "[-0,1e2]", "[-0e5]"])(
    "-0 is 0 in %s",
    (text) => {
      for (const parse of [parsePlain, parseExact])
        expect(parse(text)).toStrictEqual(JSON.parse(text.replaceAll(/-0(?!")/g, "0")));
    },
  );

  test("keeps a key that is called __proto__", () => {
    const text = '{"__proto__":{"a":12345678901234567890}}';
    expect(JSON.stringify(parseExact(text))).toBe(text);
  });

  test("throws for invalid JSON", () => {
    for (const text of ["", "{", "1234567890123456789x"]) expect(() => parseExact(text)).toThrow(SyntaxError);
  });
});

describe("isSameJson", () => {
  const SAME = [
    ['{"a":1,"b":[true,null]}', ' { "b" : [ true, null ], "a" : 1 } '],
    ["100", "1e2"],
    ["100.0", "1E+2"],
    ["0", "-0.000e9"],
    ["12345678901234567890", "1234567890123456789e1"],
    ["1e400", "10e399"],
    ["1e0000000000000000000000000000001", "1e+1"],
    [`1e${"9".repeat(64)}`, `1.0e0${"9".repeat(64)}`],
    ['"\\u0061"', '"a"'],
  ];
  for (const [a = "", b = ""] of SAME) test(`${a} is ${b}`, () => expect(isSameJson(a, b)).toBe(true));

  const DIFFERENT = [
    ["12345678901234567890", "12345678901234567891"],
    ["1", '"1"'],
    ["1", "-1"],
    ["[1,2]", "[2,1]"],
    ["[]", "{}"],
    ['{"a":1}', '{"a":1,"b":null}'],
    ['{"number":"1e0"}', "1"],
    ["1e400", "1e401"],
  ];
  for (const [a = "", b = ""] of DIFFERENT)
    test(`${a} is not ${b}`, () => expect(isSameJson(a, b)).toBe(false));

  test("compares exponents of many digits without computing them", () => {
    const numbers = Array.from({ length: 500 }, (_, i) => `1e${"9".repeat(60_000)}${i}`);
    const start = performance.now(); // computing them takes 20 ms each
    for (const number of numbers) expect(isSameJson(number, `${number} `)).toBe(true);
    expect(performance.now() - start).toBeLessThan(HANG_MS);
  });

  test("compares a number of many digits in less than quadratic time", () => {
    const long = `${"9".repeat(300_000)}${"0".repeat(300_000)}1`; // in quadratic time it would take minutes
    const start = performance.now();
    expect(isSameJson(long, `${long}.0`)).toBe(true);
    expect(isSameJson(`1e${"9".repeat(600_000)}`, "1")).toBe(false);
    expect(performance.now() - start).toBeLessThan(HANG_MS);
  });
});

describe("any JSON text", () => {
  const token = fc.oneof(
    fc.constantFrom(
      "null",
      "true",
      "-0",
      "-0.0e5",
      "1.50",
      "1E400",
      "9007199254740993",
      "0.1234567890123456789",
      '"\\ud800\\/é"',
    ),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.bigInt().map(String),
    fc.string({ unit: "binary" }).map((text) => JSON.stringify(text)),
  );
  const name = fc.oneof(
    fc.constantFrom('"__proto__"', '"10"', '"9"', '"a"', '"\\u0061"', '""', '"#"', '"x: \\\\\\""'),
    fc.string().map((text) => JSON.stringify(text)),
  );
  const space = fc.constantFrom("", "", " ", "\n\t");
  const { text: json } = fc.letrec<{ text: string }>((tie) => {
    const spaced = fc.tuple(space, tie("text"), space).map((parts) => parts.join(""));
    const field = fc
      .tuple(space, name, space, spaced)
      .map(([before, key, after, value]) => `${before}${key}${after}:${value}`);
    return {
      text: fc.oneof(
        { withCrossShrink: true, maxDepth: 5 },
        token,
        fc.array(spaced, { maxLength: 4 }).map((items) => `[${items.join()}]`),
        fc.array(field, { maxLength: 4 }).map((fields) => `{${fields.join()}}`),
      ),
    };
  });
  const valueOf = (text: string): unknown =>
    JSON.parse(text, (_, value: unknown) => (value === 0 ? 0 : value));

  test("has the value that JSON.parse reads, in each form", () => {
    fc.assert(
      fc.property(json, (text) => {
        const value = valueOf(text);
        expect(parsePlain(text)).toStrictEqual(value);
        expect(valueOf(JSON.stringify(parseExact(text)))).toStrictEqual(value);
        expect(valueOf(compactJson(text))).toStrictEqual(value);
        expect(isSameJson(text, compactJson(text))).toBe(true);
        expect(compactJson(compactJson(` ${text} `))).toBe(compactJson(text));
      }),
      { numRuns: 500 },
    );
  });

  test("is refused exactly when JSON.parse refuses it", () => {
    const edit = fc.tuple(
      json,
      fc.nat(),
      fc.nat({ max: 2 }),
      fc.constantFrom("", "]", '"', "\\", "0", "\ufeff", "\0", ",", "-"),
    );
    fc.assert(
      fc.property(edit, ([text, place, removed, added]) => {
        const at = place % (text.length + 1);
        const edited = text.slice(0, at) + added + text.slice(at + removed);
        for (const parse of [parsePlain, parseExact, compactJson])
          expect(isRefused(parse, edited)).toBe(isRefused(JSON.parse, edited));
      }),
      { numRuns: 500 },
    );
  });
});

function isRefused(parse: (text: string) => unknown, text: string): boolean {
  try {
    parse(text);
    return false;
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxError);
    return true;
  }
}
