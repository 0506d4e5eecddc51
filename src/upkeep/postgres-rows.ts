/**
 * The rows of a hub in a PostgreSQL database, and the bytes of its files: a snapshot that is read while hubs write, the
 * database of stopped hubs, or an empty database that is written.
 *
 * Invariant: what is written is one transaction, from the first table to the last row.
 * Must not: show the URL of the database.
 */
import { LEADER_LEASE_MS } from "../domain/limits.ts";
import { SECOND_MS } from "../lib/clock.ts";
import {
  type Session,
  checkServer,
  isLockTimeout,
  leaveOutRefused,
  openPool,
  query,
  toOpenError,
} from "../store/postgres/connection.ts";
import {
  LOCK,
  SESSION_WRITE_LOCK,
  TRY_BACKUP_LOCK,
  hasTable,
  isHubRunning,
  migrateWithin,
  refuseOtherSchema,
} from "../store/postgres/migrate.ts";
import { StoreBusy, StoreFull } from "../store/store.ts";
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

/** Their sizes decide how many rows the next batch has. */
const FIRST_ROWS = 50;

/** A lock that it does not get within 5 s is held by a hub, a restore or a move. */
const SETTINGS = [
  "SET idle_in_transaction_session_timeout = 0",
  "SET idle_session_timeout = 0",
  "SET statement_timeout = 0",
  "SET lock_timeout = '5s'",
  "SET synchronous_commit = on",
];

export class PostgresRows implements RowTarget {
  readonly session: Session;
  readonly #close: () => Promise<void>;

  private constructor(session: Session, close: () => Promise<void>) {
    this.session = session;
    this.#close = close;
  }

  /**
   * Opens the database as of now; hubs go on writing. A migration waits until close().
   * @throws {StoreUnavailable}; {Error} one line: no hub, another schema
   */
  static snapshot(url: string): Promise<PostgresRows> {
    return PostgresRows.#open(url, beginSnapshot);
  }

  /** Opens the database of stopped hubs, and keeps them from writing until close(). @throws as snapshot(); a running hub */
  static ofStopped(url: string): Promise<PostgresRows> {
    return PostgresRows.#open(url, async (session) => {
      await query(session, SESSION_WRITE_LOCK);
      if ((await hasTable(session, "turn")) && (await isHubRunning(session))) {
        const seconds = LEADER_LEASE_MS / SECOND_MS;
        throw new Error(
          `a hub is running on the database: stop it first (a killed hub counts as running for ${seconds} s)`,
        );
      }
      await beginSnapshot(session);
    });
  }

  /**
   * Creates the tables in an empty database or schema, in a transaction that commit() ends.
   * @param identity the hub that is to be written
   * @throws {StoreUnavailable}; {Error} one line: the database is not empty
   */
  static intoEmpty(url: string, identity: string | null = null): Promise<PostgresRows> {
    return PostgresRows.#open(url, async (session) => {
      await query(session, "BEGIN");
      await query(session, LOCK.migrate);
      if (await hasTable(session, "schema_version")) {
        const isSame = identity !== null && (await identityIn(session)) === identity;
        const advice = isSame ? "Start the hub with LUXHUB_DATABASE, or name" : "Name";
        throw new Error(
          `the database already holds ${isSame ? "this" : "a"} hub: nothing was done. ${advice} an empty database or schema`,
        );
      }
      await migrateWithin(session);
      for (const table of SINGLETONS) await query(session, `DELETE FROM ${table}`);
    });
  }

  static async #open(url: string, begin: (session: Session) => Promise<void>): Promise<PostgresRows> {
    const { session, close } = await connect(url);
    try {
      await begin(session);
      return new PostgresRows(session, close);
    } catch (error) {
      await close();
      throw toDatabaseError(error, url);
    }
  }

  /** The server finds the next batch meanwhile. */
  async *batches(table: Table): AsyncGenerator<readonly TextRow[]> {
    const cursor = `reading_${table.name}`;
    const columns = columnsOf(table);
    await query(this.session, `DECLARE ${cursor} NO SCROLL CURSOR FOR ${selectText(table, columns)}`);
    // The cast is safe: selectText() casts every value to text.
    const fetch = (rows: number): Promise<readonly TextRow[]> =>
      query(this.session, `FETCH ${rows} FROM ${cursor}`) as Promise<readonly TextRow[]>;
    let batch = await fetch(FIRST_ROWS);
    for (let rows = FIRST_ROWS; batch.length > 0;) {
      const chars = batch.reduce((sum, row) => sum + sizeOf(row), 1);
      const fitting = Math.floor((batch.length * BATCH_CHARS) / chars);
      rows = Math.max(1, Math.min(fitting, rows * 2, BATCH_ROWS));
      const next = fetch(rows);
      next.catch(() => {}); // the await throws it
      yield batch;
      batch = await next;
    }
    await query(this.session, `CLOSE ${cursor}`);
  }

  async insert(table: Table, rows: readonly TextRow[]): Promise<void> {
    const columns = columnsOf(table).join(", ");
    const sql = `INSERT INTO ${table.name} (${columns}) OVERRIDING SYSTEM VALUE
      SELECT ${columns} FROM json_populate_recordset(NULL::${table.name}, $1::text::json)`;
    await query(this.session, sql, [JSON.stringify(rows)]);
  }

  async commit(): Promise<void> {
    for (const { name } of TABLES) await this.#setSequences(name);
    const { command } = await query(this.session, "COMMIT");
    if (command !== "COMMIT") throw new Error(`the database answered COMMIT with ${command}`);
  }

  close(): Promise<void> {
    return this.#close();
  }

  /** Also analyses the table for the planner. */
  async #setSequences(table: string): Promise<void> {
    const sql = `SELECT attname AS name FROM pg_attribute
      WHERE attrelid = $1::text::regclass AND attidentity <> '' AND NOT attisdropped`;
    for (const { name } of await query(this.session, sql, [table])) {
      const next = `SELECT setval(pg_get_serial_sequence($1, $2), max(${name})) FROM ${table} HAVING max(${name}) > 0`;
      await query(this.session, next, [table, name]);
    }
    await query(this.session, `ANALYZE ${table}`);
  }
}

/** Null: another process does so for the same database, as of several hubs that make backups by schedule. */
export async function withBackupLock<T>(url: string, work: () => Promise<T>): Promise<T | null> {
  const { session, close } = await connect(url);
  try {
    const [row] = await query(session, TRY_BACKUP_LOCK);
    return row?.["taken"] ? await work() : null;
  } finally {
    await close();
  }
}

type Connected = { readonly session: Session; readonly close: () => Promise<void> };

/** @throws {StoreUnavailable}; {Error} one line: a server that cannot be used */
async function connect(url: string): Promise<Connected> {
  for (;;) {
    const pool = openPool(url, 1);
    const close = (): Promise<void> => pool.close({ timeout: 0 });
    try {
      await checkServer(pool);
      const session = await pool.reserve();
      for (const setting of SETTINGS) await query(session, setting);
      return { session, close };
    } catch (error) {
      await close();
      if (!leaveOutRefused(url, error)) throw toDatabaseError(error, url);
    }
  }
}

/** The locks, which keep a migration out, must precede the snapshot, which the first read takes. */
async function beginSnapshot(session: Session): Promise<void> {
  await refuseOtherSchema(session);
  await query(session, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  const tables = [...TABLES.map(({ name }) => name), "blobs", "blob_chunks"];
  await query(session, `LOCK TABLE ${tables.join(", ")} IN ACCESS SHARE MODE`);
  await refuseOtherSchema(session); // a migration may have been first
}

async function identityIn(session: Session): Promise<string | null> {
  if (!(await hasTable(session, "identity"))) return null;
  const [row] = await query(session, "SELECT database_id FROM identity");
  return String(row?.["database_id"]);
}

export function toDatabaseError(error: unknown, url: string): unknown {
  if (!(error instanceof Bun.SQL.PostgresError)) return error;
  const known = toOpenError(error, url);
  if (known instanceof StoreFull)
    return new Error("the disk of the database is full: make room, then run it again", { cause: error });
  if (!isLockTimeout(error) && !(known instanceof StoreBusy)) return known;
  return new Error("another luxhub is using the database: stop it first", { cause: error });
}
