/**
 * The output of a command without the sequences and characters that a terminal obeys: as plain text, or in runs of one
 * colour. Text comes in pieces, which may end within a sequence.
 */
import { printable } from "./printable.ts";

/** ECMA-48: control sequences (colours, cursor), strings (titles, links), and the other escapes. */
const ESCAPE =
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-OQ-WYZ\\`-~])/g;
/** An escape that does not end within this is none. */
const ESCAPE_MAX_CHARS = 4_096;

class Complete {
  /** Perhaps the beginning of a sequence, or of a line break. */
  #rest = "";

  /** What is complete. */
  take(piece: string): string {
    const text = this.#rest + piece;
    const end = endOfComplete(text);
    this.#rest = text.slice(end);
    return text.slice(0, end);
  }

  end(): string {
    const unfinished = this.#rest;
    this.#rest = "";
    return unfinished;
  }
}

export class PlainOutput {
  readonly #complete = new Complete();

  /** Returns what is complete. A line that a carriage return overwrites stays, and the next one follows it. */
  add(piece: string): string {
    return plain(this.#complete.take(piece));
  }

  end(): string {
    return plain(this.#complete.end());
  }
}

function plain(text: string): string {
  return printable(text.replaceAll(ESCAPE, "").replaceAll(/\r\n?/g, "\n"), "\n\t");
}

// ---- As a terminal shows it

/** What follows, in one look. `overwrites`: in place of what stands in the last line. */
type Run = { readonly text: string; readonly look: string; readonly overwrites: boolean };

/** The 16 colours of a terminal. */
const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

/** Output with its colours, where a carriage return begins its line anew. */
export class TerminalOutput {
  readonly #complete = new Complete();
  #colour = "";
  #isBold = false;
  /** The next character of the line overwrites it. */
  #isReturned = false;

  add(piece: string): readonly Run[] {
    const runs: Run[] = [];
    const text = this.#complete.take(piece).replaceAll("\r\n", "\n");
    let from = 0;
    for (const sequence of text.matchAll(ESCAPE)) {
      this.#draw(text.slice(from, sequence.index), runs);
      from = sequence.index + sequence[0].length;
      const [, codes] = /^\u001b\[([\d;]*)m$/.exec(sequence[0]) ?? [];
      if (codes !== undefined) this.#paint(codes.split(";").map(Number));
    }
    this.#draw(text.slice(from), runs);
    return runs;
  }

  #draw(text: string, runs: Run[]): void {
    for (const [part] of text.matchAll(/\r+|[^\r]+/g)) {
      if (part.startsWith("\r")) {
        this.#isReturned = true;
        continue;
      }
      const look = [this.#colour, this.#isBold && "bold"].filter(Boolean).join(" ");
      const overwrites = this.#isReturned && !part.startsWith("\n");
      this.#isReturned = false;
      runs.push({ text: printable(part, "\n\t"), look, overwrites });
    }
  }

  #paint(codes: readonly number[]): void {
    for (let i = 0; i < codes.length; i++) {
      const code = codes[i] ?? 0;
      if (code === 0) [this.#colour, this.#isBold] = ["", false];
      if (code === 1 || code === 22) this.#isBold = code === 1;
      // A colour of 256, or of all, is none of the 16: its numbers are passed over.
      if (code === 38 || code === 48) i += codes[i + 1] === 2 ? 4 : 2;
      if (code === 39) this.#colour = "";
      const [dark, bright] = [COLOURS[code - 30], COLOURS[code - 90]];
      if (dark !== undefined) this.#colour = `ansi-${dark}`;
      if (bright !== undefined) this.#colour = `ansi-${bright} bright`;
    }
  }
}

// ---- Pieces

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
  return text.search(ESCAPE) === 0;
}

/** Returns `at` if no string is open. */
function stringBefore(text: string, escapeStart: number): number {
  const before = text.lastIndexOf("\u001b", escapeStart - 1);
  if (escapeStart === 0 || before === -1 || escapeStart - before > ESCAPE_MAX_CHARS) return escapeStart;
  return /^[\]PX^_][^\u0007]*$/.test(text.slice(before + 1, escapeStart)) ? before : escapeStart;
}
