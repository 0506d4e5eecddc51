/**
 * A ballast file: room that the hub sets aside beside its database, to be given up when the disk is full. SQLite cannot
 * open a database, even to read it, without room for its -shm file; so a hub that is started on a full disk gives the
 * ballast up, and serves reads.
 *
 * Must not: throw, or hold a start up. Without ballast a start on a full disk is refused, as it is where there never was any.
 */
import { closeSync, fstatSync, openSync, rmSync, writeSync } from "node:fs";

/** A -shm file has 32 KiB for each 16 MiB of the log; the rest is for what a start writes. */
const BALLAST_BYTES = 256 * 1024;
const CHUNK_BYTES = 4_096;
const FILE_MODE = 0o600;

/** Fills the file up to its size, as far as there is room. Zeros would do, but that a file system may store none of them. */
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
    // What has been written stays: on a full disk it is what there was.
  }
}

/** Whether there was any. */
export function releaseBallast(path: string): boolean {
  try {
    rmSync(path);
    return true;
  } catch {
    return false;
  }
}
