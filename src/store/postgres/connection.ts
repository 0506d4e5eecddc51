/**
 * Connections to PostgreSQL. Must not: log or show more of the address than host, port and database, because it has the
 * password.
 */
import type { ReservedSQL, SQL } from "bun";
import { DATABASE_ANSWER_MAX_MS } from "../../domain/limits.ts";
import { SECOND_MS } from "../../lib/clock.ts";
import { type Row, StoreBusy, StoreFull, StoreUnavailable } from "../store.ts";

const OLDEST_SERVER = 150_000;
const CONNECT_SECONDS = 3;

const SESSION: Readonly<Record<string, string>> = {
  application_name: "luxhub",
  // Whatever the database's default: after a wait for a lock, a transaction must see what it waited for.
  default_transaction_isolation: "read committed",
  // A statement of ours takes well under a millisecond: compiling it would take more.
  jit: "off",
  // A hub that stops in the middle of a transaction must not stop the others.
  idle_in_transaction_session_timeout: "5s",
  lock_timeout: "10s",
  // The server notices a hub that vanished within 12 s.
  tcp_keepalives_idle: "6",
  tcp_keepalives_interval: "2",
  tcp_keepalives_count: "3",
};

/** By address: settings that a pooler in front of the server refuses at the connect. */
const REFUSED = new Map<string, Map<string, string>>();
/** PgBouncer's words; it names one at a time. */
const UNSUPPORTED = /unsupported startup parameter\D*: (\w+)/;

export function refusedSettings(url: string): ReadonlyMap<string, string> {
  return REFUSED.get(url) ?? new Map();
}

/** A pooler refuses a setting, which is left out from now on: try again. */
export function leaveOutRefused(url: string, error: unknown): boolean {
  const [, name = ""] = UNSUPPORTED.exec(error instanceof Error ? error.message : "") ?? [];
  const value = SESSION[name];
  if (value === undefined || refusedSettings(url).has(name)) return false;
  REFUSED.set(url, new Map([...refusedSettings(url), [name, value]]));
  return true;
}

/** `count`: how many rows it returned or changed. */
export type Result = readonly Row[] & { readonly command: string | null; readonly count: number };

export type Warn = (message: string, fields?: Readonly<Record<string, string | number>>) => void;

export type Connection = Pick<SQL, "unsafe">;

/**
 * A reserved connection. The driver prepares, and so pipelines, what has parameters and what is sent as a template. It
 * sends any other statement alone, after the answers to all before it.
 */
export type Session = Connection & ((text: TemplateStringsArray) => SQL.Query<Result>);

/** None is opened before it is needed. */
export function openPool(
  url: string,
  max: number,
  session: Readonly<Record<string, string>> = {},
  onclose: () => void = () => {},
): SQL {
  const refused = refusedSettings(url);
  // A pooler that refuses one setting refuses `session` too, without which the hub is only slower.
  const wanted = refused.size > 0 ? SESSION : { ...SESSION, ...session };
  const accepted = Object.entries(wanted).filter(([name]) => !refused.has(name));
  const connection = Object.fromEntries(accepted);
  // Not imported as a value: the bundler would have every hub load the driver, which takes 4 MiB.
  return new Bun.SQL(url, {
    adapter: "postgres",
    max,
    connectionTimeout: CONNECT_SECONDS,
    connection,
    onclose,
  });
}

/** Its connections may lead nowhere, which TCP has not noticed yet. */
export class RenewablePool implements Connection {
  readonly #open: () => SQL;
  #current: SQL;

  constructor(first: SQL, open: () => SQL) {
    this.#current = first;
    this.#open = open;
  }

  readonly unsafe: SQL["unsafe"] = (text, values) => this.#current.unsafe(text, values);

  reserve(): Promise<ReservedSQL> {
    return this.#current.reserve();
  }

  /** Each statement sees what is committed before it, whatever the database's default. */
  begin<T>(work: (transaction: Connection) => Promise<T>): Promise<T> {
    return this.#current.begin("ISOLATION LEVEL READ COMMITTED", work);
  }

  /** Running statements may still be answered, for a time. */
  renew(): void {
    const old = this.#current;
    this.#current = this.#open();
    void old.close({ timeout: DATABASE_ANSWER_MAX_MS / SECOND_MS }).catch(() => {});
  }

  close(): Promise<void> {
    return this.#current.close({ timeout: 0 });
  }
}

/** Sends a statement now: one connection runs its statements in the order of sending, pipelined. */
export function query(connection: Connection, sql: string, params: readonly unknown[] = []): Promise<Result> {
  // The cast is the boundary to the driver: the columns are those of store/sql/tables.ts.
  return connection.unsafe(sql, params.map(storable)).execute() as Promise<Result>;
}

/**
 * A text of PostgreSQL cannot have a NUL. The API lets none in, so none is stored; a search for a text with one must find
 * nothing, and does with another character in its place.
 */
function storable(param: unknown): unknown {
  if (Array.isArray(param)) return param.map(storable);
  return typeof param === "string" && param.includes("\0") ? param.replaceAll("\0", "\ufffd") : param;
}

/** The text must be UTF-8. @throws {Error} one line for the operator */
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

/** The server has not answered in time. Its connection is no use any more: an answer may still come, or never. */
export class AnswerTimeout extends StoreUnavailable {
  constructor() {
    super(`The database has not answered for ${DATABASE_ANSWER_MAX_MS / SECOND_MS} s.`);
  }
}

/** Rejects with AnswerTimeout after `limitMs`. A later result is dropped. */
export async function withTimeout<T>(work: Promise<T>, limitMs = DATABASE_ANSWER_MAX_MS): Promise<T> {
  const late = Promise.withResolvers<never>();
  // The sockets are polled once more first: it may be this process that stood still, and the answer may have arrived.
  const timer = setTimeout(() => setImmediate(() => late.reject(new AnswerTimeout())), limitMs);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
    late.promise.catch(() => {}); // rejected after `work` was done
  }
}

/** The connection or the server is gone, starting or stopping, or refuses us: a later try may succeed. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof AnswerTimeout) return true;
  const { code, state } = codesOf(error);
  return code.startsWith("ERR_POSTGRES_CONNECTION") || LOST_STATES.test(state) || LOST_CODES.has(code);
}

/** The transaction may succeed if it is run again. */
export function isConflict(error: unknown): boolean {
  return CONFLICT_STATES.has(codesOf(error).state);
}

export function isLockTimeout(error: unknown): boolean {
  return codesOf(error).state === LOCK_NOT_AVAILABLE;
}

export function isFull(error: unknown): boolean {
  return codesOf(error).state === DISK_FULL;
}

export function toStoreError(error: unknown): unknown {
  const { code, state } = codesOf(error);
  if (isConnectionLost(error))
    return new StoreUnavailable(`The database cannot be reached (${state || code}).`, { cause: error });
  if (isFull(error)) return new StoreFull("The database's disk is full.", { cause: error });
  if (isLockTimeout(error))
    return new StoreUnavailable("A table or the write lock was locked for too long.", { cause: error });
  if (isConflict(error)) return new StoreBusy("Another transaction was in the way.", { cause: error });
  return error;
}

/** The driver's message has no address. */
export function toOpenError(error: unknown, url: string): unknown {
  const known = toStoreError(error);
  if (!(error instanceof Error) || !("code" in error)) return known; // our own message, or none
  const which = `${error.message} (${placeIn(url)}, of --database or LUXHUB_DATABASE)`;
  return known instanceof StoreUnavailable && !isLockTimeout(error)
    ? new StoreUnavailable(`PostgreSQL cannot be reached: ${which}`, { cause: error })
    : known === error
      ? new Error(`PostgreSQL cannot be used: ${which}`, { cause: error })
      : known;
}

/**
 * HOST:PORT/DATABASE, as far as the address has them. If a password has a "/", "?" or "#" that should have been escaped,
 * what parses as the host is a part of the password, and is not shown.
 */
function placeIn(url: string): string {
  const { host = "", pathname = "" } = URL.parse(url) ?? {};
  const behindPassword = url.slice(Math.max(url.lastIndexOf("@") + 1, url.indexOf("//") + 2));
  return host !== "" && behindPassword.startsWith(host) ? `${host}${pathname}` : "the address";
}

/**
 * Connection failures, shutdown, start-up, a session that was ended, a statement that was cancelled, a server that only
 * reads, too many connections.
 */
const LOST_STATES = /^(?:08...|57P0[1-5]|57014|25P03|25006|53300)$/;
const LOST_CODES = new Set(["ERR_POSTGRES_IDLE_TIMEOUT", "ERR_POSTGRES_LIFETIME_TIMEOUT"]);
const CONFLICT_STATES = new Set(["40001", "40P01"]);
const DISK_FULL = "53100";
const LOCK_NOT_AVAILABLE = "55P03";

function codesOf(error: unknown): { code: string; state: string } {
  if (!(error instanceof Bun.SQL.PostgresError)) return { code: "", state: "" };
  return { code: error.code, state: error.errno ?? "" };
}
