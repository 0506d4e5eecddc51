/**
 * Makes texts of others safe to print: a terminal obeys control characters, and characters such as U+202E reverse the
 * order in which a line is read.
 */

/** Control, format, unassigned and private characters, lone surrogates, and the two separators of lines. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;
const ZERO_WIDTH_JOINER = "\u200d";

/** Also what a font shows as nothing, such as tags; but not white space, and what belongs to an emoji. */
const INVISIBLE =
  /(?![\n\t\r\ufe0f]|\u200d\p{Extended_Pictographic})[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** With `\u{202e}` for a character that nobody sees, for readers that are no terminal. */
export function visible(text: string): string {
  return text.replaceAll(INVISIBLE, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

/** Except those of `kept`. */
export function printable(text: string, kept = ""): string {
  return text.replaceAll(UNPRINTABLE, (char) =>
    char === ZERO_WIDTH_JOINER || kept.includes(char) ? char : "\ufffd",
  );
}

/** Control characters become spaces. */
export function printableLine(text: string): string {
  return printable(text.replaceAll(/\p{Cc}+/gu, " "));
}

/** With escapes, so that it is equal when it is parsed. */
export function printableJson(value: unknown, indent = 0): string {
  return JSON.stringify(value, null, indent).replaceAll(UNPRINTABLE, (char) =>
    char === "\n" ? char : escaped(char),
  );
}

function escaped(char: string): string {
  return Array.from(
    { length: char.length },
    (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, "0")}`,
  ).join("");
}
