/** Output as plain text: what a terminal obeys is removed, wherever the pieces end. */
import { expect, test } from "bun:test";
import { PlainOutput } from "../../src/lib/plain-output.ts";

const ESC = "\u001b";

test.each([
  ["colours", `${ESC}[1;31mred${ESC}[0m`, "red"],
  ["cursor movements", `a${ESC}[2K${ESC}[1Gb${ESC}7${ESC}=c`, "abc"],
  ["a title, ended by BEL", `${ESC}]0;title\u0007text`, "text"],
  ["a link, ended by ST", `${ESC}]8;;https://x.org${ESC}\\link${ESC}]8;;${ESC}\\`, "link"],
  ["line breaks", "a\r\nb\rc\td\n", "a\nb\nc\td\n"],
  ["what reverses a line, and other controls", "a\u202eb\u009b1mc\u0008", "a\ufffdb\ufffd1mc\ufffd"],
  ["emoji", "👩‍💻 ok", "👩‍💻 ok"],
  ["an escape that does not end", `${ESC}[${"1;".repeat(9)}`, `\ufffd[${"1;".repeat(9)}`],
])("%s", (_, text, plain) => {
  const whole = new PlainOutput();
  expect(whole.add(text) + whole.end()).toBe(plain);
  const units = new PlainOutput();
  const points = [...text].map((char) => units.add(char));
  expect(points.join("") + units.end()).toBe(plain);
});

test("an endless string does not hold the text back for ever", () => {
  const output = new PlainOutput();
  const text = output.add(`${ESC}]0;${"x".repeat(10_000)}`);
  expect(text).toHaveLength(10_004);
});
