/**
 * A new SQLite database for a test, as a copy of one that the run migrates once: the migrations take longer than most
 * tests.
 */
import { Database } from "bun:sqlite";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { keepChanges } from "../../src/store/sqlite/change-log.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { sharedAddress } from "./keeper.ts";

/** The database id in the template, as long as a real one. */
const TEMPLATE_ID = "template".repeat(4);

let template: Promise<Buffer> | null = null;
const ids = new Map<string, string>();

/** Puts a new database there, which keeps its change log, with an id of its own. Leaves a database that exists alone. */
export async function provideDatabase(path: string): Promise<void> {
  if (existsSync(path)) return;
  ids.set(path, randomBytes(16).toString("hex"));
  writeFileSync(path, await newDatabaseOf(path), { mode: 0o600 });
}

/** What was in `path` before its first entry; null if it was not provided. */
export async function firstStateOf(path: string): Promise<Buffer | null> {
  return ids.has(path) ? newDatabaseOf(path) : null;
}

/** What the test writes itself is in no entry: so no copy becomes this database. */
export function compareNoMore(path: string): void {
  ids.delete(path);
}

async function newDatabaseOf(path: string): Promise<Buffer> {
  template ??= sharedAddress("sqlite", migrateNew).then((shared) => readFileSync(shared));
  const copy = Buffer.from(await template);
  copy.write(ids.get(path) ?? "", copy.indexOf(TEMPLATE_ID), "latin1");
  return copy;
}

async function migrateNew(folder: string): Promise<string> {
  const path = join(folder, "new.db");
  await openSqlite(path, () => {}).close();
  const db = new Database(path);
  db.run("UPDATE identity SET database_id = ?", [TEMPLATE_ID]);
  keepChanges(db, true, 1);
  db.close(true);
  return path;
}
