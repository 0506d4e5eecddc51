/**
 * The PostgreSQL end of a move. All rows are read or written in one transaction; files are copied before it.
 *
 * Invariant: a move holds the write lock of the hubs, so no hub can start on the database meanwhile. From the first write
 * to an empty database until the commit of the rows, the table `moving` exists, and no hub starts while it does.
 * Must not: show the URL of the database, or change rows that it has not written.
 */
import { LEADER_LEASE_MS } from "../domain/limits.ts";
import { SECOND_MS } from "../lib/clock.ts";
import { isLockTimeout, checkServer, openPool, query, toOpenError } from "../store/postgres/connection.ts";
import {
  SESSION_WRITE_LOCK,
  LOCK,
  POSTGRES_MIGRATIONS,
  hasTable,
  isMoveUnfinished,
  isHubRunning,
  migrate,
} from "../store/postgres/migrations.ts";
import { StoreBusy } from "../store/store.ts";
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

/** Rows in the first batch of a table. Their sizes decide how many rows the next batch has. */
const FIRST_ROWS = 50;

/** A move has no time limit, but a lock that it does not get within 5 s is held by a hub or by another move. */
const SESSION = {
  idle_in_transaction_session_timeout: "0",
  idle_session_timeout: "0",
  statement_timeout: "0",
  lock_timeout: "5s",
  synchronous_commit: "on",
} as const;

type Pool = ReturnType<typeof openPool>;
type Held = Awaited<ReturnType<Pool["reserve"]>>;

/** The content of a database: nothing, the rows of a hub, or an unfinished move into it. */
export type Found =
  | { readonly kind: "empty" }
  | { readonly kind: "hub"; readonly identity: string; readonly schema: number }
  | { readonly kind: "half moved"; readonly identity: string };

export class PostgresEnd implements Target {
  readonly #pool: Pool;
  readonly #held: Held;
  readonly #columns: ReadonlyMap<string, readonly string[]>;

  private constructor(pool: Pool, held: Held, columns: ReadonlyMap<string, readonly string[]>) {
    this.#pool = pool;
    this.#held = held;
    this.#columns = columns;
  }

  /**
   * Connects, and keeps every hub from writing until close().
   * @param columns the columns of each table, in order
   * @throws {StoreUnavailable}; {Error} one line: a server that cannot be used, a running hub or another move
   */
  static async open(url: string, columns: ReadonlyMap<string, readonly string[]>): Promise<PostgresEnd> {
    const pool = openPool(url, 2, SESSION); // one connection holds the lock, the other migrates the schema
    try {
      await checkServer(pool);
      const held = await pool.reserve();
      await query(held, SESSION_WRITE_LOCK);
      const end = new PostgresEnd(pool, held, columns);
      await end.#refuseHub();
      return end;
    } catch (error) {
      await pool.close({ timeout: 0 });
      throw toMoveError(error, url);
    }
  }

  async find(): Promise<Found> {
    if (await isMoveUnfinished(this.#held)) {
      const [mark] = await query(this.#held, "SELECT database_id FROM moving");
      return { kind: "half moved", identity: String(mark?.["database_id"]) };
    }
    if (!(await this.#hasTable("schema_version"))) return { kind: "empty" };
    const [version] = await query(this.#held, "SELECT coalesce(max(version), 0) AS n FROM schema_version");
    const schema = Number(version?.["n"]);
    if (schema === 0 || (await this.#isBare())) return { kind: "empty" };
    const [row] = await query(this.#held, "SELECT database_id FROM identity");
    return { kind: "hub", schema, identity: String(row?.["database_id"]) };
  }

  /** Creates the tables, unless an interrupted run of this move has. From here on no hub starts on the database. */
  async begin(identity: string): Promise<void> {
    if (!(await isMoveUnfinished(this.#held))) {
      // Before the other tables, so that no hub mistakes them for a new database.
      await query(this.#held, "BEGIN");
      await query(this.#held, "CREATE TABLE moving (database_id TEXT NOT NULL)");
      await query(this.#held, "INSERT INTO moving VALUES ($1)", [identity]);
      await query(this.#held, "COMMIT");
    }
    await migrate(this.#pool, true);
    // An interrupted run of this move may have left unfinished files. No hub is running that could own them.
    await query(this.#held, "DELETE FROM blobs WHERE size_bytes IS NULL");
  }

  /** Runs `fill` in the transaction that writes all rows, and drops the table `moving` in it. */
  async fill<T>(fill: () => Promise<T>): Promise<T> {
    await query(this.#held, "BEGIN");
    try {
      await query(this.#held, LOCK.write); // already held, unless the connection was replaced
      if (!(await this.#isBare()))
        throw new Error("another process has written to the database during the move");
      for (const table of SINGLETONS) await query(this.#held, `DELETE FROM ${table}`);
      const answer = await fill();
      for (const { name } of TABLES) await this.#setSequences(name);
      await query(this.#held, "DROP TABLE moving");
      const { command } = await query(this.#held, "COMMIT");
      if (command !== "COMMIT") throw new Error(`the database answered COMMIT with ${command}`);
      return answer;
    } catch (error) {
      await query(this.#held, "ROLLBACK").catch(() => {}); // closing the connection does the same
      throw error;
    }
  }

  /** Begins a snapshot for all later reads. @throws {Error} one line, if the schema is another version's */
  async readAsOfNow(schema: number): Promise<void> {
    const known = POSTGRES_MIGRATIONS.length;
    if (schema !== known) {
      const age = schema < known ? "an older" : "a newer";
      const remedy =
        schema < known ? "start this version on it once, stop it, then move" : "use that version";
      throw new Error(
        `the database is of ${age} luxhub (schema ${schema}, this one knows ${known}): ${remedy}`,
      );
    }
    await query(this.#held, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  }

  async count({ name }: Table): Promise<number> {
    const [row] = await query(this.#held, `SELECT count(*) AS n FROM ${name}`);
    return Number(row?.["n"]);
  }

  /** Yields the rows of a table; only within a transaction. */
  async *batches(table: Table): AsyncGenerator<readonly TextRow[]> {
    const cursor = `moving_${table.name}`;
    const select = selectText(table, this.#columns.get(table.name) ?? []);
    await query(this.#held, `DECLARE ${cursor} NO SCROLL CURSOR FOR ${select}`);
    for (let rows = FIRST_ROWS; ;) {
      // The cast is safe: selectText() casts every value to text.
      const batch = (await query(this.#held, `FETCH ${rows} FROM ${cursor}`)) as readonly TextRow[];
      if (batch.length === 0) break;
      yield batch;
      const chars = batch.reduce((sum, row) => sum + sizeOf(row), 1);
      const fitting = Math.floor((batch.length * BATCH_CHARS) / chars);
      rows = Math.max(1, Math.min(fitting, rows * 2, BATCH_ROWS));
    }
    await query(this.#held, `CLOSE ${cursor}`);
  }

  async insert({ name }: Table, rows: readonly TextRow[]): Promise<void> {
    const columns = (this.#columns.get(name) ?? []).join(", ");
    const sql = `INSERT INTO ${name} (${columns}) OVERRIDING SYSTEM VALUE
      SELECT ${columns} FROM json_populate_recordset(NULL::${name}, $1::text::json)`;
    await query(this.#held, sql, [JSON.stringify(rows)]);
  }

  async close(): Promise<void> {
    await this.#held.close({ timeout: 0 }).catch(() => {}); // it may be closed already
    await this.#pool.close({ timeout: 0 });
  }

  async #refuseHub(): Promise<void> {
    if (!(await this.#hasTable("turn"))) return;
    if (!(await isHubRunning(this.#held))) return;
    const seconds = LEADER_LEASE_MS / SECOND_MS;
    throw new Error(
      `a hub is running on the database: stop it first (a killed hub counts as running for ${seconds} s)`,
    );
  }

  /** Whether the database holds only the rows that every new database has. */
  async #isBare(): Promise<boolean> {
    for (const { name } of TABLES) {
      if (SINGLETONS.has(name) || !(await this.#hasTable(name))) continue;
      const [row] = await query(this.#held, `SELECT EXISTS (SELECT 1 FROM ${name}) AS any`);
      if (row?.["any"]) return false;
    }
    return true;
  }

  /** Sets each sequence past the largest number in use, and analyses the table for the planner. */
  async #setSequences(table: string): Promise<void> {
    const sql = `SELECT attname AS name FROM pg_attribute
      WHERE attrelid = $1::text::regclass AND attidentity <> '' AND NOT attisdropped`;
    for (const { name } of await query(this.#held, sql, [table])) {
      const next = `SELECT setval(pg_get_serial_sequence($1, $2), max(${name})) FROM ${table} HAVING max(${name}) > 0`;
      await query(this.#held, next, [table, name]);
    }
    await query(this.#held, `ANALYZE ${table}`);
  }

  #hasTable(name: string): Promise<boolean> {
    return hasTable(this.#held, name);
  }
}

function toMoveError(error: unknown, url: string): unknown {
  const known = toOpenError(error, url);
  if (!isLockTimeout(error) && !(known instanceof StoreBusy)) return known;
  return new Error("another luxhub is using the database: stop it first", { cause: error });
}
