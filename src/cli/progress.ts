/**
 * Progress of long work on standard error: on a terminal one line that is overwritten, elsewhere a line every few seconds.
 * A signal aborts the work.
 */
import { writeSync } from "node:fs";
import { SECOND_MS, systemClock } from "../lib/clock.ts";
import type { Tools } from "../upkeep/upkeep.ts";
import { endingSignals } from "./signals.ts";

const TERMINAL_EVERY_MS = 200;
const LINE_EVERY_MS = 5 * SECOND_MS;
const STANDARD_ERROR = 2;
const CLEAR_LINE = "\r\x1b[K";

export async function withProgress<T>(work: (tools: Tools) => Promise<T>): Promise<T> {
  const clock = systemClock();
  const terminal = process.stderr.isTTY; // not node:tty: as bundled, `luxhub serve` would load it too
  const everyMs = terminal ? TERMINAL_EVERY_MS : LINE_EVERY_MS;
  let reportedAt = terminal ? 0 : clock.steady(); // short work reports nothing
  const onProgress = (text: string): void => {
    if (clock.steady() - reportedAt < everyMs) return;
    reportedAt = clock.steady();
    write(terminal ? `${CLEAR_LINE}${text}` : `${text}\n`);
  };
  const ending = new AbortController();
  const end = (): void => ending.abort(new Error("ended before it was done; nothing was left behind"));
  const signals = endingSignals();
  for (const signal of signals) process.once(signal, end);
  try {
    return await work({ clock, onProgress, signal: ending.signal });
  } finally {
    if (terminal) write(CLEAR_LINE);
    for (const signal of signals) process.off(signal, end);
  }
}

/** The work must not fail because its progress cannot be shown. */
function write(text: string): void {
  try {
    writeSync(STANDARD_ERROR, text);
  } catch {
    // The terminal is gone, or the pipe has no reader.
  }
}
