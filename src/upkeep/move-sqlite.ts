/**
 * The SQLite end of a move: the database of a stopped hub, or a new one under a temporary name.
 * Must not: change a database that it reads.
 */
import { Database } from "bun:sqlite";
import { existsSync, rmSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { flushDirectory } from "../blobs/disk.ts";
import type { DataDir } from "../data-dir.ts";
import { FACTS } from "../store/sql/consistency.ts";
import { inspectDatabase } from "../store/sqlite/integrity-check.ts";
import { migrate } from "../store/sqlite/migrate.ts";
import { SQLITE_MIGRATIONS } from "../store/sqlite/migrations.ts";
import {
  BATCH_CHARS,
  BATCH_ROWS,
  SINGLETONS,
  TABLES,
  type Table,
  type Target,
  type TextRow,
  selectText,
  sizeOf,
} from "./move-tables.ts";
import { type Tools, sizeText } from "./upkeep.ts";

const CACHE_KIB = 64 * 1024;
const BUSY_TIMEOUT_MS = 5_000;

/** The suffixes of the database file and of the files that SQLite keeps next to it. */
const COMPANIONS = ["", "-wal", "-shm", "-journal"];

/** Checks the whole database. @throws {Error} one line: no database, a damaged one, another schema */
export function refuseUnsound(path: string, about: string, tools: Tools): void {
  tools.onProgress(`checking the database (${sizeText(Bun.file(path).size)})`);
  const found = inspectDatabase(path, { wholeMaxBytes: Number.POSITIVE_INFINITY, live: false });
  if (found.kind === "none") throw new Error(`there is no hub in ${about}`);
  if (found.kind === "damaged") throw new Error(`the database ${path} is damaged: ${found.what}`);
  const known = SQLITE_MIGRATIONS.length;
  if (found.schema < known) {
    throw new Error(
      `the database ${path} is of an older luxhub (schema ${found.schema}, this one knows ${known}): ` +
        `start this version on it once, stop it, then move`,
    );
  }
  if (found.schema > known) {
    throw new Error(
      `the database ${path} is of a newer luxhub (schema ${found.schema}, this one knows ${known})`,
    );
  }
}

/** Whether the data directory holds a database, or the remains of one. */
export function hasDatabase(dir: DataDir): boolean {
  return COMPANIONS.some((ending) => existsSync(`${dir.database}${ending}`));
}

export class SqliteEnd implements Target {
  readonly #db: Database;
  readonly #columns = newestColumns();

  private constructor(db: Database) {
    this.#db = db;
  }

  /** Opens an intact database and keeps others from writing to it. @throws {Error} one line */
  static read(path: string): SqliteEnd {
    const db = new Database(path, { readwrite: true, create: false, strict: true });
    try {
      db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
      db.run("PRAGMA cell_size_check = ON");
      db.run("BEGIN IMMEDIATE"); // excludes `luxhub keys`
      return new SqliteEnd(db);
    } catch (error) {
      db.close();
      throw error;
    }
  }

  /** Creates a new database. A power cut before the end may damage it, so the next run creates it again. */
  static create(path: string): SqliteEnd {
    for (const ending of COMPANIONS) rmSync(`${path}${ending}`, { force: true });
    const db = new Database(path, { readwrite: true, create: true, strict: true });
    try {
      db.run("PRAGMA synchronous = OFF");
      db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
      migrate(db, path, SQLITE_MIGRATIONS);
      db.run("BEGIN IMMEDIATE");
      for (const table of SINGLETONS) db.run(`DELETE FROM ${table}`);
      return new SqliteEnd(db);
    } catch (error) {
      db.close();
      throw error;
    }
  }

  identity(): string {
    return this.#text("SELECT database_id FROM identity");
  }

  async count({ name }: Table): Promise<number> {
    return Number(this.#text(`SELECT count(*) FROM ${name}`));
  }

  async *batches(table: Table): AsyncGenerator<readonly TextRow[]> {
    const statement = this.#db.prepare<TextRow, []>(selectText(table, this.#columnsOf(table)));
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
    const columns = this.#columnsOf(table);
    // The tables are STRICT: a column of numbers converts text to a number, or refuses it.
    const statement = this.#db.query(
      `INSERT INTO ${table.name} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
    );
    for (const row of rows) statement.run(...columns.map((column) => row[column] ?? null));
  }

  /** Runs the consistency checks. @throws {Error} one line that names the violations */
  audit({ onProgress, signal }: Tools, hint: string): void {
    for (const { name, sql } of FACTS) {
      signal.throwIfAborted();
      onProgress(`checking the ${name}`);
      const faults = this.#db.query(sql).values().map(String);
      if (faults.length > 0) throw new Error(`the rows do not agree: ${faults.join("; ")}. ${hint}`);
    }
  }

  filesThere(): { readonly files: number; readonly bytes: number } {
    const [files, bytes] = this.#values("SELECT count(*), coalesce(sum(size_bytes), 0) FROM files");
    return { files: Number(files), bytes: Number(bytes) };
  }

  /** The sum of all payments in millionths of a LUX, as decimal text. */
  paidMicro(): string {
    return this.#text("SELECT CAST(coalesce(sum(amount_micro), 0) AS TEXT) FROM ledger");
  }

  commit(): void {
    this.#db.run("COMMIT");
  }

  close(): void {
    this.#db.close();
  }

  #columnsOf({ name }: Table): readonly string[] {
    return this.#columns.get(name) ?? [];
  }

  #values(sql: string): readonly unknown[] {
    return this.#db.query(sql).values()[0] ?? [];
  }

  #text(sql: string): string {
    return String(this.#values(sql)[0] ?? "");
  }
}

/** The columns of each table in the newest schema, which both ends of a move must use. */
export function newestColumns(): ReadonlyMap<string, readonly string[]> {
  const model = new Database(":memory:");
  try {
    for (const step of SQLITE_MIGRATIONS) model.run(step);
    const columns = model.query<{ name: string }, [string]>(
      "SELECT name FROM pragma_table_info(?) ORDER BY cid",
    );
    return new Map(TABLES.map(({ name }) => [name, columns.all(name).map((column) => column.name)]));
  } finally {
    model.close();
  }
}

/** Flushes a finished database and gives it its name. */
export async function putInPlace(dir: DataDir): Promise<void> {
  const file = await open(dir.unfinishedMove, "r+"); // Windows flushes only what may be written
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(dir.unfinishedMove, dir.database);
  await flushDirectory(dir.path);
}
