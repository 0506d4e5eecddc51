/**
 * Brings the schema of a database of PostgreSQL to the newest, and the locks that keep hubs from each other meanwhile.
 */
import type { SQL } from "bun";
import { LEADER_LEASE_MS } from "../../domain/limits.ts";
import { type Clock, SECOND_MS } from "../../lib/clock.ts";
import { stepFrom } from "../sql/schema.ts";
import { type Connection, type Warn, isLockTimeout, query } from "./connection.ts";
import { POSTGRES_SCHEMA } from "./schema.ts";
import { MIGRATING, StoreUnavailable } from "../store.ts";

/** Until the transaction ends. Each schema has its own locks, because a database may have several. */
export const LOCK = { migrate: lockOf(1_819_637_861), write: lockOf(1_819_637_862) } as const;

/** LOCK.write with a parameter, which the driver pipelines. */
export const WRITE_LOCK = { sql: lockOf("$1::int"), params: [1_819_637_862] } as const;

/** Takes the write lock until the connection ends: no one else can write meanwhile. */
export const SESSION_WRITE_LOCK = lockOf(1_819_637_862, "pg_advisory_lock");

function lockOf(purpose: number | string, take = "pg_advisory_xact_lock"): string {
  return `SELECT ${take}(${purpose}, current_schema()::regnamespace::oid::int)`;
}

/** Of the processes that make a backup by schedule, one gets this lock, until its connection ends. */
export const TRY_BACKUP_LOCK = `${lockOf(1_819_637_863, "pg_try_advisory_lock")} AS taken`;

export async function hasTable(connection: Connection, name: string): Promise<boolean> {
  const sql = `SELECT to_regclass(quote_ident(current_schema()) || '.' || $1::text) IS NOT NULL AS there`;
  const [row] = await query(connection, sql, [name]);
  return Boolean(row?.["there"]);
}

/** Whether the leader lease is taken. One that lasts longer than a lease may is of another time: the clock was set back. */
export const IS_TAKEN = `
  (until > clock_timestamp() AND until <= clock_timestamp() + interval '${LEADER_LEASE_MS} milliseconds')`;

/** Then a hub is the leader. */
export async function isHubRunning(connection: Connection): Promise<boolean> {
  const [row] = await query(connection, `SELECT ${IS_TAKEN} AS taken FROM turn`);
  return Boolean(row?.["taken"]);
}

/**
 * Migrates the schema to the newest version. Hubs that start at the same moment wait for one another.
 * A hub of an older luxhub that is frozen counts as gone. When it wakes, it finds another schema (isMigrated()); the write
 * lock is for a group of it that has checked the schema already.
 * @throws {Error} one line: the database is of a newer luxhub, or a hub of an older one runs on it, or a restore
 */
export async function migrate(pool: SQL, clock: Clock, info: Warn): Promise<void> {
  const startedMs = clock.timers();
  const from = await pool.begin((tx) => migrateWithin(tx, info));
  const to = POSTGRES_SCHEMA.version;
  const seconds = Math.round((clock.timers() - startedMs) / SECOND_MS);
  if (from > 0 && from < to) info("the database was migrated", { from, to, seconds });
}

/**
 * In the caller's transaction. Returns the version that it found.
 * @param info gets a line before an older schema is migrated
 * @throws as migrate()
 */
export async function migrateWithin(tx: Connection, info: Warn = () => {}): Promise<number> {
  await query(tx, LOCK.migrate).catch((error: unknown) => {
    if (!isLockTimeout(error)) throw error;
    throw new Error(
      "a restore or a move into the database is running, or another hub migrates it: try again later",
    );
  });
  await tx.unsafe(`CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)`);
  const version = await schemaOf(tx);
  const step = stepFrom(POSTGRES_SCHEMA, version);
  if (step === "") return version;
  const to = POSTGRES_SCHEMA.version;
  if (version > 0) {
    if (await isHubRunning(tx)) {
      throw new Error(
        `a hub of an older luxhub is running on the database: stop all of them first (a killed one counts as running for ${LEADER_LEASE_MS / SECOND_MS} s)`,
      );
    }
    info(MIGRATING, { from: version, to });
    await query(tx, LOCK.write);
  }
  await tx.unsafe(step);
  await query(tx, `INSERT INTO schema_version VALUES ($1)`, [to]);
  return version;
}

/**
 * For a command that opens the database of running hubs; changes nothing. @throws {Error} one line: there is no hub, or
 * one of another schema
 */
export async function refuseOtherSchema(connection: Connection): Promise<void> {
  const version = (await hasTable(connection, "schema_version")) ? await schemaOf(connection) : 0;
  const known = POSTGRES_SCHEMA.version;
  if (version === known) return;
  throw new Error(
    version === 0
      ? "there is no hub in the database; start one on it first"
      : `the database is of schema ${version}, and this luxhub knows ${known}: use the one that the hubs run`,
  );
}

/** As an expression. */
export const SCHEMA = `(SELECT coalesce(max(version), 0) FROM schema_version)`;

async function schemaOf(connection: Connection): Promise<number> {
  const [row] = await query(connection, `SELECT ${SCHEMA} AS version`);
  return Number(row?.["version"]);
}

/** Whether another luxhub has migrated the database while this hub runs. */
export const isMigrated = (schema: unknown): boolean => Number(schema) !== POSTGRES_SCHEMA.version;

/** The operator finds it in the log. */
export function schemaIsMigrated(): StoreUnavailable {
  return new StoreUnavailable(
    "A newer luxhub has migrated the database, and this hub neither reads nor writes it any more. Start the newer one in its place.",
  );
}
