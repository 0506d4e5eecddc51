/**
 * Connections to PostgreSQL: how a session is set up, how a statement is sent, and what an error of the driver means to
 * the store. Must not: log or name more of the address than host, port and database, for it carries the password.
 */
import type { SQL } from "bun";
import { type Row, StoreBusy, StoreFull, StoreUnavailable } from "../store.ts";

const OLDEST_SERVER = 150_000;
const CONNECT_SECONDS = 3;

/** What every session asks of the server. */
const SESSION = {
  application_name: "luxhub",
  // Whatever is the database's default: who has waited for a lock must see what it was waited for.
  default_transaction_isolation: "read committed",
  // A statement of ours takes well under a millisecond: compiling it would take more.
  jit: "off",
  // A hub that stops in the middle of a transaction must not stop the others.
  idle_in_transaction_session_timeout: "5s",
  lock_timeout: "10s",
  // A hub that is gone without a word is noticed within 12 s.
  tcp_keepalives_idle: "6",
  tcp_keepalives_interval: "2",
  tcp_keepalives_count: "3",
} as const;

/** The rows of a result, its command, and what the server said of its parameters. */
export type Result = readonly Row[] & {
  readonly command: string | null;
  readonly count: number;
  readonly statement: { readonly types: readonly number[] } | null;
};

/** What statements are sent through: a pool, a connection that is held, a transaction. */
export type Connection = Pick<SQL, "unsafe">;

/** A pool of at most `max` connections; none is opened before it is needed. */
export function openPool(
  url: string,
  max: number,
  session: Readonly<Record<string, string>> = {},
  onclose: () => void = () => {},
): SQL {
  const connection = { ...SESSION, ...session };
  // Not imported as a value: the bundler would have every hub load the driver, which takes 4 MiB.
  return new Bun.SQL(url, {
    adapter: "postgres",
    max,
    connectionTimeout: CONNECT_SECONDS,
    connection,
    onclose,
  });
}

/** Sends a statement now: those that are sent through one connection run in the order of sending, without a wait between. */
export function query(connection: Connection, sql: string, params: readonly unknown[] = []): Promise<Result> {
  // The cast is the boundary to the driver: the columns are those of store/postgres/migrations.ts.
  return connection.unsafe(sql, params.map(storable)).execute() as Promise<Result>;
}

/**
 * A NUL cannot be in a text of PostgreSQL. None is in what is stored, for none gets past the API; what a caller looks for
 * with one must find nothing, and does with this in its place.
 */
function storable(param: unknown): unknown {
  if (Array.isArray(param)) return param.map(storable);
  return typeof param === "string" && param.includes("\0") ? param.replaceAll("\0", "\ufffd") : param;
}

/** Refuses a server that is too old, or one whose text is not UTF-8. @throws {Error} one line for the operator */
export async function checkServer(pool: SQL): Promise<void> {
  const [row] = await query(
    pool,
    `SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version,
       current_setting('server_encoding') AS encoding, current_schema() AS schema`,
  );
  if (Number(row?.["number"]) < OLDEST_SERVER) {
    throw new Error(`PostgreSQL ${row?.["version"]} is too old: luxhub needs 15 or later.`);
  }
  if (row?.["encoding"] !== "UTF8") {
    throw new Error(
      `The database's encoding is ${row?.["encoding"]}: luxhub needs one that is made with UTF8.`,
    );
  }
  if (row["schema"] === null)
    throw new Error("The database has no schema on the search_path to make tables in.");
}

/** The connection or the server is gone, starting or stopping, or will not take us: a later try may do. */
export function isLost(error: unknown): boolean {
  const { code, state } = codesOf(error);
  return code.startsWith("ERR_POSTGRES_CONNECTION") || LOST_STATES.test(state) || LOST_CODES.has(code);
}

/** Another transaction was in the way: the same may do if it is run again. */
export function isConflict(error: unknown): boolean {
  return CONFLICT_STATES.has(codesOf(error).state);
}

/** There is no room on the server's disk. */
export function isFull(error: unknown): boolean {
  return codesOf(error).state === DISK_FULL;
}

/** What the caller of the store may know of the driver's error. */
export function toStoreError(error: unknown): unknown {
  const { code, state } = codesOf(error);
  if (isLost(error))
    return new StoreUnavailable(`The database cannot be reached (${state || code}).`, { cause: error });
  if (isFull(error)) return new StoreFull("The database's disk is full.", { cause: error });
  if (state === LOCK_NOT_AVAILABLE || isConflict(error))
    return new StoreBusy("Another hub holds the database up.", { cause: error });
  return error;
}

/** What the operator is told, in one line, of a database that cannot be opened. The driver's words name no address. */
export function toOpenError(error: unknown, url: string): unknown {
  const known = toStoreError(error);
  if (!(error instanceof Error) || !("code" in error)) return known; // our own words, or none
  const which = `${error.message} (${placeIn(url)}, of --database or LUXHUB_DATABASE)`;
  return known instanceof StoreUnavailable
    ? new StoreUnavailable(`PostgreSQL cannot be reached: ${which}`, { cause: error })
    : known === error
      ? new Error(`PostgreSQL cannot be used: ${which}`, { cause: error })
      : known;
}

/**
 * HOST:PORT/DATABASE, as far as the address has them. Where a password has a "/", a "?" or a "#" in it that should have
 * been escaped, what is read as the host is a part of it, and is not said.
 */
function placeIn(url: string): string {
  const { host = "", pathname = "" } = URL.parse(url) ?? {};
  const behindPassword = url.slice(Math.max(url.lastIndexOf("@") + 1, url.indexOf("//") + 2));
  return host !== "" && behindPassword.startsWith(host) ? `${host}${pathname}` : "the address";
}

/** Connection failures, shutdown, start-up, a session that was ended, a server that only reads, too many connections. */
const LOST_STATES = /^(?:08...|57P0[1-5]|25P03|25006|53300)$/;
const LOST_CODES = new Set(["ERR_POSTGRES_IDLE_TIMEOUT", "ERR_POSTGRES_LIFETIME_TIMEOUT"]);
const CONFLICT_STATES = new Set(["40001", "40P01"]);
const DISK_FULL = "53100";
const LOCK_NOT_AVAILABLE = "55P03";

function codesOf(error: unknown): { code: string; state: string } {
  if (!(error instanceof Bun.SQL.PostgresError)) return { code: "", state: "" };
  return { code: error.code, state: error.errno ?? "" };
}
