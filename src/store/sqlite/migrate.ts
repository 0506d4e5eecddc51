/**
 * Runs the schema migrations of a SQLite file, forward only. Before an older database is changed, a copy is kept.
 *
 * Invariant: a step is one transaction, so a database has the old schema or the new one. The copy is complete and on
 * disk before the step.
 */
import type { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { must } from "../../lib/assert.ts";
import { type Schema, ageOf, stepFrom } from "../sql/schema.ts";
import { noteScript } from "./change-log.ts";

/** `copy`: its path. */
export type Migration = { readonly from: number; readonly to: number; readonly copy: string };

/** 0 for an empty database. */
export function schemaVersion(db: Database): number {
  const row = db.query<{ user_version: number }, []>("PRAGMA user_version").get();
  return must(row, "a pragma returns a row").user_version;
}

export function schemaOf(db: Database): string {
  const sql = `SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name`;
  return JSON.stringify(db.query(sql).values());
}

/**
 * Whether version and schema have the checksum that the last migration stored in the file. Without it, a start must make
 * a new database in memory to compare with it, which takes 3 MiB for the life of the process.
 */
export function isAsMigrated(db: Database): boolean {
  return db.query("PRAGMA application_id").values()[0]?.[0] === checksumOf(db);
}

/** PRAGMA application_id is signed. */
export const checksumOf = (db: Database): number =>
  Bun.hash.crc32(`${schemaVersion(db)} ${schemaOf(db)}`) | 0;

/**
 * Brings the database in `path` to the schema; null when no older database was migrated.
 * @throws {Error} one line when the schema has no step from that of the database, or the step fails; then nothing has
 * changed
 */
export function migrate(db: Database, path: string, schema: Schema): Migration | null {
  const version = schemaVersion(db);
  const copy = ageOf(schema, version) === "older" ? keepCopy(db, `${path}.schema-${version}.bak`) : null;
  // Read again inside the transaction: another process may open the same new file at the same moment.
  db.transaction(() => {
    const step = stepFrom(schema, schemaVersion(db));
    if (step === "") return;
    db.run(step);
    db.run(`PRAGMA user_version = ${schema.version}`);
    db.run(`PRAGMA application_id = ${checksumOf(db)}`);
    noteScript(db, step, schema.version);
  }).immediate();
  return copy === null ? null : { from: version, to: schema.version, copy };
}

/** Complete or not at all. A copy of an earlier try makes room for it first. */
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
