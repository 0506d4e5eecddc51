/**
 * Progress of work that may take long, on standard error: on a terminal one line that is written over, elsewhere a line
 * every few seconds. And how such work is ended before it is done.
 */
import { writeSync } from "node:fs";
import { SECOND_MS, systemClock } from "../lib/clock.ts";
import type { Tools } from "../upkeep/upkeep.ts";
import { endingSignals } from "./signals.ts";

const TERMINAL_EVERY_MS = 200;
const LINE_EVERY_MS = 5 * SECOND_MS;
const STANDARD_ERROR = 2;
const CLEAR_LINE = "\r\x1b[K";

/** Runs work with what it needs; a signal ends it in order. `left` says what is left of it then. */
export async function withProgress<T>(
  work: (tools: Tools) => Promise<T>,
  left = "nothing was left behind",
): Promise<T> {
  const clock = systemClock();
  const terminal = process.stderr.isTTY; // not node:tty: the bundler would have the hub that serves load it
  const everyMs = terminal ? TERMINAL_EVERY_MS : LINE_EVERY_MS;
  let toldAt = terminal ? 0 : clock.steady(); // what is soon done needs no words
  const tell = (text: string): void => {
    if (clock.steady() - toldAt < everyMs) return;
    toldAt = clock.steady();
    write(terminal ? `${CLEAR_LINE}${text}` : `${text}\n`);
  };
  const ending = new AbortController();
  const end = (): void => ending.abort(new Error(`ended before it was done; ${left}`));
  const signals = endingSignals();
  for (const signal of signals) process.once(signal, end);
  try {
    return await work({ clock, tell, signal: ending.signal });
  } finally {
    if (terminal) write(CLEAR_LINE);
    for (const signal of signals) process.off(signal, end);
  }
}

/** Progress that nobody sees any more is no reason to end the work, nor to call it failed. */
function write(text: string): void {
  try {
    writeSync(STANDARD_ERROR, text);
  } catch {
    // The terminal is gone, or the pipe has no reader.
  }
}
