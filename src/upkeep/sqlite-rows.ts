/**
 * The rows of a hub in a SQLite database: of a stopped hub, in a backup, or in a new one that is being written.
 * Must not: change a database that it reads.
 */
import { Database } from "bun:sqlite";
import { FACTS } from "../store/sql/consistency.ts";
import { ageOf } from "../store/sql/schema.ts";
import { inspectDatabase } from "../store/sqlite/integrity-check.ts";
import { migrate } from "../store/sqlite/migrate.ts";
import { SQLITE_SCHEMA } from "../store/sqlite/schema.ts";
import { assert, must } from "../lib/assert.ts";
import {
  BATCH_CHARS,
  BATCH_ROWS,
  type RowTarget,
  SINGLETONS,
  TABLES,
  type Table,
  type TextRow,
  columnsOf,
  selectText,
  sizeOf,
} from "./tables.ts";
import { type Tools, sizeText } from "./upkeep.ts";

const CACHE_KIB = 64 * 1024;
const BUSY_TIMEOUT_MS = 5_000;

export class SqliteRows implements RowTarget {
  readonly #db: Database;

  private constructor(db: Database) {
    this.#db = db;
  }

  /** Only an intact database of the newest schema; keeps others from writing to it. */
  static read(path: string): SqliteRows {
    return SqliteRows.#open(path, { readwrite: true, create: false }, (db) => {
      db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
      db.run("PRAGMA cell_size_check = ON");
      db.run("BEGIN IMMEDIATE"); // excludes `luxhub keys`
    });
  }

  /** An interruption, even by an error, leaves it damaged. */
  static create(path: string): SqliteRows {
    return SqliteRows.#open(path, { readwrite: true, create: true }, (db) => {
      db.run("PRAGMA journal_mode = OFF");
      db.run("PRAGMA synchronous = OFF");
      db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
      migrate(db, path, SQLITE_SCHEMA);
      db.run("BEGIN IMMEDIATE");
      for (const table of SINGLETONS) db.run(`DELETE FROM ${table}`);
    });
  }

  static #open(
    path: string,
    mode: { readonly readwrite: boolean; readonly create: boolean },
    prepare: (db: Database) => void,
  ): SqliteRows {
    const db = new Database(path, { ...mode, strict: true });
    try {
      prepare(db);
      return new SqliteRows(db);
    } catch (error) {
      db.close();
      throw error;
    }
  }

  async *batches(table: Table): AsyncGenerator<readonly TextRow[]> {
    const statement = this.#db.prepare<TextRow, []>(selectText(table, columnsOf(table)));
    try {
      let batch: TextRow[] = [];
      let chars = 0;
      for (const row of statement.iterate()) {
        batch.push(row);
        chars += sizeOf(row);
        if (batch.length < BATCH_ROWS && chars < BATCH_CHARS) continue;
        yield batch;
        batch = [];
        chars = 0;
      }
      if (batch.length > 0) yield batch;
    } finally {
      statement.finalize();
    }
  }

  async insert(table: Table, rows: readonly TextRow[]): Promise<void> {
    const columns = columnsOf(table);
    // The tables are STRICT: a column of numbers converts text to a number, or refuses it.
    const statement = this.#db.query(
      `INSERT INTO ${table.name} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
    );
    for (const row of rows)
      statement.run(
        ...columns.map((column) => {
          const value = row[column];
          assert(value !== undefined, "a row has each column of its table");
          return value;
        }),
      );
  }

  commit(): void {
    this.#db.run("COMMIT");
  }

  close(): void {
    this.#db.close();
  }
}

/** Also the rows, by the consistency checks. @throws {Error} one line, which ends with `hint` */
export function refuseUnsound(path: string, hint: string, { onProgress, signal }: Tools): void {
  onProgress(`checking the database (${sizeText(Bun.file(path).size)})`);
  const inspection = inspectDatabase(path, { wholeMaxBytes: Number.POSITIVE_INFINITY, live: false });
  if (inspection.kind === "none") throw new Error(`there is no hub in ${path}`);
  if (inspection.kind === "damaged") throw new Error(`the database ${path} is damaged: ${inspection.what}`);
  const age = ageOf(SQLITE_SCHEMA, inspection.schema);
  if (age !== "newest") {
    const remedy = age === "newer" ? "" : ": start this version on it once, stop it, then move";
    throw new Error(
      `the database ${path} is of ${age === "newer" ? "a newer" : "an older"} luxhub (schema ${inspection.schema}, this one knows ${SQLITE_SCHEMA.version})${remedy}`,
    );
  }
  reading(path, (db) => {
    for (const { name, sql } of FACTS) {
      signal.throwIfAborted();
      onProgress(`checking the ${name}`);
      const faults = db.query(sql).values().map(String);
      if (faults.length > 0) throw new Error(`the rows do not agree: ${faults.join("; ")}. ${hint}`);
    }
  });
}

/** The rows of each table; the sum of all payments in millionths of a LUX, as decimal text. */
export type Summary = {
  readonly tables: readonly (readonly [name: string, rows: number])[];
  readonly paidMicro: string;
};

export function summarize(path: string): Summary {
  return reading(path, (db) => {
    const scalar = (sql: string): string =>
      String(must(db.query(sql).values()[0]?.[0], "an aggregate has a value"));
    return {
      tables: TABLES.map(({ name }) => [name, Number(scalar(`SELECT count(*) FROM ${name}`))]),
      paidMicro: scalar("SELECT CAST(coalesce(sum(amount_micro), 0) AS TEXT) FROM ledger"),
    };
  });
}

/** A read-only connection would leave its -wal and -shm behind. */
export function openStopped(path: string): Database {
  return new Database(path, { readwrite: true, create: false, strict: true });
}

export function identityOf(path: string): string {
  return reading(path, (db) => String(db.query("SELECT database_id FROM identity").values()[0]?.[0]));
}

function reading<T>(path: string, read: (db: Database) => T): T {
  const db = openStopped(path);
  try {
    return read(db);
  } finally {
    db.close();
  }
}
