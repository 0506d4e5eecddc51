/** Texts of others, made safe to print on a terminal. */
import { expect, test } from "bun:test";
import { printable, printableJson, printableLine } from "../../src/lib/printable.ts";

const EVIL = "a\u001b[2J\u009b31m\u202eb\n\tc\u2028d\ue000\ud800\u{e0041}\u007f";

test("control and format characters are replaced, except those that are kept", () => {
  expect(printable(EVIL)).toBe("a�[2J�31m�b��c�d����");
  expect(printable("a\n\tb\r", "\n\t")).toBe("a\n\tb�");
  expect(printable("Grüße 漢字 👩‍🚀")).toBe("Grüße 漢字 👩‍🚀");
  expect(printableLine("a\r\nb\u009bc\u202ed")).toBe("a b c�d");
});

test("JSON has them as escapes, and parses to the same value", () => {
  const value = { [EVIL]: [EVIL, { n: 1, text: "👩‍🚀" }] };
  for (const indent of [0, 2]) {
    const text = printableJson(value, indent);
    expect(JSON.parse(text)).toEqual(value);
    expect(text.replaceAll("\n", "")).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
  }
  expect(printableJson("\u009b\u{e0041}")).toBe(String.raw`"\u009b\udb40\udc41"`);
});
