/**
 * Compares a database of SQLite with a copy that has run each entry of its change log: table by table, they have the same
 * rows.
 */
import { Database } from "bun:sqlite";
import { ChangeLog, applyEntries } from "../../src/store/sqlite/change-log.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";
import type { Entry } from "../../src/store/store.ts";

const TABLE_NAMES = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`;

export function catchUp(copy: Database, original: Database): void {
  const connection = new Connection(copy, new ChangeLog(copy));
  const last = Number(copy.query("SELECT max(n) FROM changes").values()[0]?.[0]);
  const entries = original
    .query<Entry, [number]>("SELECT n, at, body FROM changes WHERE n > ? ORDER BY n")
    .all(last);
  applyEntries(copy, entries, (sql, params) => void connection.run(sql, params));
}

/** The tables in which the two differ, each with the first rows that only one has. */
export function differences(left: Database, right: Database): readonly string[] {
  const names = [left, right].flatMap((db) => db.query(TABLE_NAMES).values().map(String));
  return [...new Set(names)].flatMap((name) => {
    const [ours, theirs] = [rowsOf(left, name), rowsOf(right, name)];
    if (Bun.deepEquals(ours, theirs)) return [];
    const only = [...new Set(ours).symmetricDifference(new Set(theirs))];
    return [`${name}: ${ours.length} and ${theirs.length} rows; ${only.slice(0, 4).join(" | ")}`];
  });
}

function rowsOf(db: Database, table: string): readonly string[] {
  const key = db.query(`SELECT name FROM pragma_table_info('${table}') WHERE pk > 0 ORDER BY pk`).values();
  const order = key.length > 0 ? key.join(", ") : "rowid";
  return db
    .query(`SELECT * FROM ${table} ORDER BY ${order}`)
    .values()
    .map((row) => JSON.stringify(row.map(exact)));
}

const exact = (value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

export function inMemory(file: Buffer): Database {
  const bytes = Buffer.from(file);
  bytes.fill(1, 18, 20); // without a write-ahead log, which is a file
  return Database.deserialize(bytes, { strict: true });
}

/**
 * Unless the database keeps no log. @throws {Error} when a copy that begins with these bytes becomes another database than
 * the one in `path`
 */
export function checkCopy(base: Buffer, path: string): void {
  using original = new Database(path, { readonly: true });
  if (original.query("SELECT 1 FROM changes").get() === null) return;
  using copy = inMemory(base);
  catchUp(copy, original);
  const found = differences(original, copy);
  if (found.length > 0) throw new Error(`A copy that has run each entry differs: ${found.join("; ")}`);
}
