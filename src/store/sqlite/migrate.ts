/**
 * Runs the schema migrations of a SQLite file, forward only. Before an older database is changed, a copy is kept.
 *
 * Invariant: a step is one transaction, so a database has the old schema or the new one. The copy is complete and on
 * disk before the step.
 */
import type { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { type Schema, ageOf, stepFrom } from "../sql/schema.ts";
import { noteScript } from "./change-log.ts";
import { runStep, schemaVersion } from "./schema-version.ts";

/** `copy`: its path. */
export type Migration = { readonly from: number; readonly to: number; readonly copy: string };

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
    runStep(db, step, schema.version);
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
