/** The number and the checksum of the schema, which a SQLite file keeps in its header. */
import type { Database } from "bun:sqlite";
import { must } from "../../lib/assert.ts";

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

/** In a transaction of the caller. `version`: of the schema that the step makes. */
export function runStep(db: Database, step: string, version: number): void {
  db.run(step);
  db.run(`PRAGMA user_version = ${version}`);
  db.run(`PRAGMA application_id = ${checksumOf(db)}`);
}
