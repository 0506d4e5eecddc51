/** Output as plain text: what a terminal obeys is removed, wherever the pieces end. */
import { expect, test } from "bun:test";
import { PlainOutput, TerminalOutput } from "../../src/lib/plain-output.ts";

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

/** What stands on the screen: `look[text]`. */
function screenOf(pieces: readonly string[]): string {
  const output = new TerminalOutput();
  let screen: { text: string; look: string }[] = [];
  for (const { text, look, overwrites } of pieces.flatMap((piece) => output.add(piece))) {
    const lineStart = screen.findLastIndex((cell) => cell.text === "\n") + 1;
    if (overwrites) screen = screen.slice(0, lineStart);
    screen.push(...[...text].map((char) => ({ text: char, look })));
  }
  return screen.map(({ text, look }) => (look === "" ? text : `${look}[${text}]`)).join("");
}

test.each([
  ["a line that is begun anew", "1 %\r2 %\r\r3 %\nb", "3 %\nb"],
  ["a break of two characters", "a\r\nb\r\n", "a\nb\n"],
  ["colours, bold, and their ends", `${ESC}[1;31ma${ESC}[22mb${ESC}[39mc`, "ansi-red bold[a]ansi-red[b]c"],
  ["bright, and none", `${ESC}[96ma${ESC}[mb`, "ansi-cyan bright[a]b"],
  ["colours beyond the 16", `${ESC}[38;5;31ma${ESC}[48;2;31;32;33mb`, "ab"],
  ["other sequences, and controls", `${ESC}]0;t\u0007${ESC}[2Ka\u202e`, "a\ufffd"],
])("on a terminal: %s", (_, text, screen) => {
  expect(screenOf([text, "."])).toBe(`${screen}.`);
  expect(screenOf([...text, "."])).toBe(`${screen}.`);
});
