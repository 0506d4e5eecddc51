/** Prints to standard output. */
import { writeSync } from "node:fs";
import { codeOf } from "../lib/reason.ts";

const STANDARD_OUTPUT = 1;
const FULL_PIPE_MS = 10;

/**
 * Not by console, which ignores a failed write: a new secret would be lost unnoticed.
 * @throws {Error} one line, when standard output cannot be written
 */
export function writeLine(text: string): number {
  return writeText(`${text}\n`);
}

export function writeText(text: string): number {
  return writeBytes(new TextEncoder().encode(text));
}

export function writeBytes(bytes: Uint8Array): number {
  for (let done = 0; done < bytes.length;) done += writeSome(bytes.subarray(done));
  return 0;
}

/** A text that can be printed again: a closed pipe (`| head -1`) is no failure. */
export function writeLineUnlessClosed(text: string): number {
  try {
    return writeLine(text);
  } catch (error) {
    if (isBrokenPipe(error)) return 0;
    throw error;
  }
}

export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && codeOf(error.cause) === "EPIPE";
}

function writeSome(bytes: Uint8Array): number {
  try {
    return writeSync(STANDARD_OUTPUT, bytes);
  } catch (error) {
    const code = codeOf(error) || error;
    if (code !== "EAGAIN") throw new Error(`cannot write to standard output: ${code}`, { cause: error });
    Bun.sleepSync(FULL_PIPE_MS); // a full pipe in non-blocking mode
    return 0;
  }
}
