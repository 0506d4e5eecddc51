/**
 * A new SQLite database for a test, as a copy of one that the run migrates once: the migrations take longer than most
 * tests.
 */
import { Database } from "bun:sqlite";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { sharedAddress } from "./keeper.ts";

/** The database id in the template, as long as a real one. */
const TEMPLATE_ID = "template".repeat(4);

let template: Promise<Buffer> | null = null;

/** Puts a new database there, with an id of its own. Leaves a database that exists alone. */
export async function provideDatabase(path: string): Promise<void> {
  if (existsSync(path)) return;
  template ??= sharedAddress("sqlite", migrateNew).then((shared) => readFileSync(shared));
  const copy = Buffer.from(await template);
  copy.write(randomBytes(16).toString("hex"), copy.indexOf(TEMPLATE_ID), "latin1");
  writeFileSync(path, copy, { mode: 0o600 });
}

async function migrateNew(folder: string): Promise<string> {
  const path = join(folder, "new.db");
  await openSqlite(path, () => {}).close();
  const db = new Database(path);
  db.run("UPDATE identity SET database_id = ?", [TEMPLATE_ID]);
  db.close(true);
  return path;
}
