/**
 * Compares a database of SQLite with a copy that has run each entry of its change log: table by table, they have the same
 * rows.
 *
 * A copy returns the rows of a SELECT in reverse unless it names their order, and no statement may read a clock. So a
 * statement that depends on either is found, though both databases have the same plans and ran it in the same second.
 */
import { Database } from "bun:sqlite";
import { must } from "../../src/lib/assert.ts";
import {
  ChangeLog,
  applyEntries,
  entriesAfter,
  raiseEpochs,
  standingOf,
} from "../../src/store/sqlite/change-log.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";
import { schemaOf } from "../../src/store/sqlite/schema-version.ts";

const TABLE_NAMES = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_stat%' ORDER BY name`;
const CLOCK =
  /\b(?:(?:date|time|datetime|julianday|unixepoch|strftime)\(|current_(?:date|time|timestamp)\b)/i;
/** Of the entries that one commit applies. */
const BYTES_AT_ONCE = 2 ** 24;
const KEPT = "a copy keeps the log";
/** Of each table. */
const ROWS_SHOWN = 4;

export function catchUp(copy: Database, original: Database): void {
  copy.run("PRAGMA reverse_unordered_selects = ON");
  const connection = new Connection(copy, new ChangeLog(copy));
  for (;;) {
    const { n, at } = standingOf(copy);
    const entries = entriesAfter(original, { n: must(n, KEPT), at: must(at, KEPT) }, BYTES_AT_ONCE);
    if (entries.length === 0) return;
    applyEntries(copy, entries, (sql, params) => {
      if (CLOCK.test(sql)) throw new Error(`a statement reads a clock: ${sql}`);
      connection.run(sql, params);
    });
  }
}

/** The tables in which the two differ, each with the first rows that only one has. */
export function differences(left: Database, right: Database): readonly string[] {
  const [ours, theirs] = [schemaOf(left), schemaOf(right)];
  if (ours !== theirs) return [`the schemas: ${ours} and ${theirs}`];
  const names = left.query<{ name: string }, []>(TABLE_NAMES).all();
  return names.flatMap(({ name }) => {
    const only = differingRows(rowsOf(left, name), rowsOf(right, name));
    if (only.length === 0) return [];
    const [count, other] = [left, right].map((db) => db.query(`SELECT count(*) FROM ${name}`).values());
    return [`${name}: ${count} and ${other} rows; ${only.slice(0, ROWS_SHOWN).join(" | ")}`];
  });
}

/** Makes of it what a restore makes. */
export function asRestored(db: Database): Database {
  raiseEpochs(db);
  db.run("DELETE FROM changes; DELETE FROM change_texts");
  return db;
}

/** Up to the first rows that differ: a table may be larger than the memory. */
function differingRows(ours: Iterator<string, undefined>, theirs: Iterator<string, undefined>): string[] {
  const only: string[] = [];
  while (only.length < ROWS_SHOWN) {
    const [row, other] = [ours.next().value, theirs.next().value];
    if (row === undefined && other === undefined) break;
    if (row !== other) only.push(...[row, other].filter((each) => each !== undefined));
  }
  return only;
}

/** In the order of the key. Each whole number is text, which is exact. */
function* rowsOf(db: Database, table: string): Generator<string, undefined> {
  const columns = db
    .query<{ name: string; type: string; pk: number }, []>(
      `SELECT name, type, pk FROM pragma_table_info('${table}')`,
    )
    .all();
  const key = columns.filter(({ pk }) => pk > 0).toSorted((a, b) => a.pk - b.pk);
  const order = key.length > 0 ? key.map(({ name }) => `t.${name}`).join(", ") : "t.rowid";
  const exact = { INTEGER: "CAST($ AS TEXT)", BLOB: "hex($)", TEXT: "$" };
  const values = columns.map(
    ({ name, type }) => `${exact[type as keyof typeof exact].replace("$", `t.${name}`)} AS ${name}`,
  );
  for (const row of db.query(`SELECT ${values.join(", ")} FROM ${table} AS t ORDER BY ${order}`).iterate())
    yield JSON.stringify(row);
}

export function inMemory(file: Buffer): Database {
  const bytes = Buffer.from(file);
  bytes.fill(1, 18, 20); // without a write-ahead log, which is a file
  return Database.deserialize(bytes, { strict: true });
}

/** @throws {Error} when a copy that begins with these bytes becomes another database than the one in `path` */
export function checkCopy(base: Buffer, path: string): void {
  using original = new Database(path, { readonly: true });
  using copy = inMemory(base);
  catchUp(copy, original);
  const found = differences(original, copy);
  if (found.length > 0) throw new Error(`A copy that has run each entry differs: ${found.join("; ")}`);
}
