/**
 * Texts of others, made safe to print: a terminal obeys control characters (C0, and C1 as U+009B), and characters such as
 * U+202E reverse the order in which a line is read.
 */

/** Control, format, unassigned and private characters, lone surrogates, and the two separators of lines. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;
/** Joins the parts of an emoji. */
const ZERO_WIDTH_JOINER = "\u200d";

/** Replaces unprintable characters, except those of `kept`. */
export function printable(text: string, kept = ""): string {
  return text.replaceAll(UNPRINTABLE, (char) =>
    char === ZERO_WIDTH_JOINER || kept.includes(char) ? char : "\ufffd",
  );
}

/** The same on one line: control characters become spaces. */
export function printableLine(text: string): string {
  return printable(text.replaceAll(/\p{Cc}+/gu, " "));
}

/** Encodes a value as JSON, with unprintable characters as escapes, so that it is equal when it is parsed. */
export function printableJson(value: unknown, indent = 0): string {
  return JSON.stringify(value, null, indent).replaceAll(UNPRINTABLE, (char) =>
    char === "\n" ? char : escaped(char),
  );
}

/** As in JSON: each UTF-16 unit as four hex digits. */
function escaped(char: string): string {
  return Array.from(
    { length: char.length },
    (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, "0")}`,
  ).join("");
}
