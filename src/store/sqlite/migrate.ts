/**
 * Runs the schema migrations of a SQLite file, forward only. Before an older database is changed, a copy is kept.
 *
 * Invariant: all steps are one transaction, so a database has the old schema or the new one. The copy is complete and on
 * disk before the first step.
 */
import type { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { must } from "../../lib/assert.ts";

/** What a migration did: the schema it found, the new one, and the path of the copy. */
export type Migration = { readonly from: number; readonly to: number; readonly copy: string };

/** The number of steps that have run on a database; 0 for an empty one. */
export function schemaVersion(db: Database): number {
  const row = db.query<{ user_version: number }, []>("PRAGMA user_version").get();
  return must(row, "a pragma returns a row").user_version;
}

/** The tables and indexes, as text. */
export function schemaOf(db: Database): string {
  const sql = `SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name`;
  return JSON.stringify(db.query(sql).values());
}

/**
 * Whether version and schema have the checksum that the last migration stored in the file. Without it, a start must run
 * all steps in memory to know what they make, which takes 3 MiB for the life of the process.
 */
export function isAsMigrated(db: Database): boolean {
  return db.query("PRAGMA application_id").values()[0]?.[0] === checksumOf(db);
}

/** A number for PRAGMA application_id, which is signed. */
const checksumOf = (db: Database): number => Bun.hash.crc32(`${schemaVersion(db)} ${schemaOf(db)}`) | 0;

/**
 * Runs the steps that the database in `path` lacks; null when no older database was migrated.
 * @throws {Error} one line when the database is of a newer luxhub, or a step fails; then nothing has changed
 */
export function migrate(db: Database, path: string, steps: readonly string[]): Migration | null {
  const found = schemaVersion(db);
  const older = found > 0 && found < steps.length;
  const copy = older ? keepCopy(db, `${path}.schema-${found}.bak`) : null;
  // Read again inside the transaction: another process may open the same new file at the same moment.
  db.transaction(() => {
    const version = schemaVersion(db);
    if (version > steps.length) {
      throw new Error(
        `The database is of a newer luxhub (schema ${version}, this one knows ${steps.length}). Run that one.`,
      );
    }
    for (const step of steps.slice(version)) db.run(step);
    if (version === steps.length) return;
    db.run(`PRAGMA user_version = ${steps.length}`);
    db.run(`PRAGMA application_id = ${checksumOf(db)}`);
  }).immediate();
  return copy === null ? null : { from: found, to: steps.length, copy };
}

/** Keeps a copy of the database at `to`, complete or not at all. One of an earlier try makes room for it first. */
function keepCopy(db: Database, to: string): string {
  const partial = `${to}.partial`;
  const clear = (): void => {
    for (const path of [partial, `${partial}-journal`]) rmSync(path, { force: true });
  };
  clear();
  rmSync(to, { force: true });
  try {
    db.run("VACUUM INTO ?", [partial]);
    flushToDisk(partial, "r+"); // Windows flushes only what may be written
    renameSync(partial, to);
    if (process.platform !== "win32") flushToDisk(dirname(to), "r"); // Windows refuses to flush a directory
  } catch (error) {
    clear();
    throw error;
  }
  return to;
}

function flushToDisk(path: string, flags: string): void {
  const file = openSync(path, flags);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
