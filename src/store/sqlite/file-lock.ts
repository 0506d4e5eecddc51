/**
 * File locks between processes on one data directory. Each is the lock of an open transaction on a file of its own: the
 * system releases it when the process ends, however it ends, so no lock is ever left behind.
 */
import { Database } from "bun:sqlite";
import { lchownSync, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { StoreFull } from "../store.ts";
import { codeOf } from "../../lib/reason.ts";

export type Lock = { release(): void };

/** isHeld() holds the lock for a moment: takeLock() waits that long. */
const BRIEF_WAIT_MS = 250;

/** Takes the exclusive lock; null when another process has it, or a shared one. @throws {StoreFull} when there is no room for it */
export function takeLock(path: string): Lock | null {
  return begin(path, BRIEF_WAIT_MS, ["BEGIN EXCLUSIVE"]);
}

/** Takes a shared lock; null when a process has the exclusive one. */
export function takePin(path: string): Lock | null {
  return begin(path, BRIEF_WAIT_MS, ["BEGIN", "SELECT count(*) FROM sqlite_schema"]);
}

/** Whether any process holds the lock, exclusive or shared. */
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
    db.run("PRAGMA journal_mode = MEMORY"); // nothing is ever written: a journal on disk would only need room
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

/** Made by root, it is the directory's owner's all the same, as SQLite does with its own: the hub must be able to take it. */
function giveToOwner(path: string): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  lchownSync(path, uid, gid);
}
