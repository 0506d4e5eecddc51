/**
 * A ballast file: disk space that the hub reserves next to its database. SQLite cannot open a database, even to read it,
 * without room for its -shm file. So a hub that starts on a full disk deletes the ballast, and can serve reads.
 *
 * Must not: throw, or delay a start. Without a ballast file, a start on a full disk is refused.
 */
import { closeSync, fstatSync, openSync, rmSync, writeSync } from "node:fs";

/** A -shm file has 32 KiB for each 16 MiB of the log; the start writes a little more. */
const BALLAST_BYTES = 256 * 1024;
const CHUNK_BYTES = 4_096;
const FILE_MODE = 0o600;

/** As far as there is room; not with zeros, which some file systems do not store. */
export function fillBallast(path: string): void {
  try {
    const file = openSync(path, "a", FILE_MODE);
    try {
      const chunk = crypto.getRandomValues(new Uint8Array(CHUNK_BYTES));
      for (let size = fstatSync(file).size; size < BALLAST_BYTES;) size += writeSync(file, chunk);
    } finally {
      closeSync(file);
    }
  } catch {
    // The disk is full: the file keeps what was written.
  }
}

export function releaseBallast(path: string): boolean {
  try {
    rmSync(path);
    return true;
  } catch {
    return false;
  }
}
