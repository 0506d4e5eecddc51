/**
 * The output of a command as plain text: without the sequences and characters that a terminal obeys. Text comes in pieces,
 * which may end within a sequence.
 */
import { printable } from "./printable.ts";

/** ECMA-48: control sequences (colours, cursor), strings (titles, links), and the other escapes. */
const ESCAPE =
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-OQ-WYZ\\`-~])/g;
/** An escape that does not end within this is none. */
const ESCAPE_MAX_CHARS = 4_096;

export class PlainOutput {
  /** Perhaps the beginning of a sequence, or of a line break. */
  #rest = "";

  /** Returns what is complete. A line that a carriage return overwrites stays, and the next one follows it. */
  add(piece: string): string {
    const text = this.#rest + piece;
    const end = endOfComplete(text);
    this.#rest = text.slice(end);
    return plain(text.slice(0, end));
  }

  end(): string {
    const unfinished = this.#rest;
    this.#rest = "";
    return plain(unfinished);
  }
}

function plain(text: string): string {
  return printable(text.replaceAll(ESCAPE, "").replaceAll(/\r\n?/g, "\n"), "\n\t");
}

function endOfComplete(text: string): number {
  const escapeStart = text.lastIndexOf("\u001b");
  const isOpen =
    escapeStart !== -1 &&
    text.length - escapeStart <= ESCAPE_MAX_CHARS &&
    !startsWithEscape(text.slice(escapeStart));
  // The escape that ends a string begins another one before it.
  if (isOpen) return Math.max(0, stringBefore(text, escapeStart));
  return text.endsWith("\r") ? text.length - 1 : text.length;
}

function startsWithEscape(text: string): boolean {
  ESCAPE.lastIndex = 0;
  return ESCAPE.exec(text)?.index === 0;
}

/** Returns `at` if no string is open. */
function stringBefore(text: string, escapeStart: number): number {
  const before = text.lastIndexOf("\u001b", escapeStart - 1);
  if (escapeStart === 0 || before === -1 || escapeStart - before > ESCAPE_MAX_CHARS) return escapeStart;
  return /^[\]PX^_][^\u0007]*$/.test(text.slice(before + 1, escapeStart)) ? before : escapeStart;
}
