/**
 * One hub a data directory. The lock is that of an open transaction on a file of its own: the system lets go of it when
 * the process ends, however it ends, so no lock is ever left behind.
 */
import { Database } from "bun:sqlite";
import { StoreFull } from "./store.ts";

export type Lock = { release(): void };

/** Takes the lock, or answers null when another process has it. @throws {StoreFull} when there is no room for it */
export function takeLock(path: string): Lock | null {
  const db = new Database(path, { create: true });
  try {
    db.run("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    const code = error instanceof Error && "code" in error ? error.code : null;
    if (code === "SQLITE_BUSY") return null;
    if (code === "SQLITE_FULL") throw new StoreFull("The disk is full.", { cause: error });
    throw error;
  }
  return { release: () => db.close(true) };
}
