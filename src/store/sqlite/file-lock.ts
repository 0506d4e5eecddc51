/**
 * File locks between processes on one data directory. Each is an open transaction on a SQLite file of its own. The system
 * releases it when the process ends, even in a crash, so there are no stale locks.
 */
import { Database } from "bun:sqlite";
import { lchownSync, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { StoreFull } from "../store.ts";
import { codeOf } from "../../lib/reason.ts";

export type Lock = { release(): void };

/** isHeld() takes the lock for a moment; takeExclusiveLock() waits for that. */
const BRIEF_WAIT_MS = 250;

/** Null when another process has an exclusive or a shared lock. @throws {StoreFull} */
export function takeExclusiveLock(path: string): Lock | null {
  return begin(path, BRIEF_WAIT_MS, ["BEGIN EXCLUSIVE"]);
}

/** Null when a process has the exclusive one. */
export function takeSharedLock(path: string): Lock | null {
  return begin(path, BRIEF_WAIT_MS, ["BEGIN", "SELECT count(*) FROM sqlite_schema"]);
}

export function isHeld(path: string): boolean {
  if (!existsSync(path)) return false;
  const lock = begin(path, 0, ["BEGIN EXCLUSIVE"]);
  lock?.release();
  return lock === null;
}

function begin(path: string, waitMs: number, steps: readonly string[]): Lock | null {
  const isNew = !existsSync(path);
  let db: Database | null = null;
  try {
    db = new Database(path, { create: true });
    db.run(`PRAGMA busy_timeout = ${waitMs}`);
    db.run("PRAGMA journal_mode = MEMORY"); // nothing is written: a journal on disk would only need space
    for (const step of steps) db.run(step);
    if (isNew) giveToOwner(path);
    const held = db;
    return { release: () => held.close(true) };
  } catch (error) {
    db?.close();
    const code = codeOf(error);
    if (code === "SQLITE_BUSY") return null;
    if (code === "SQLITE_FULL") throw new StoreFull("The disk is full.", { cause: error });
    const reason = error instanceof Error ? error.message : error;
    throw new Error(`cannot use ${path} as a lock: ${reason}`, { cause: error });
  }
}

/** A file made by root gets the directory's owner, as SQLite does with its own files, so that the hub can lock it. */
function giveToOwner(path: string): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  lchownSync(path, uid, gid);
}
