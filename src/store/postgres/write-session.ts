/**
 * The session that a hub writes through, and what ends one whose hub has vanished.
 *
 * A hub holds the write lock while it loads and writes a group. If its machine loses its power or its link then, nothing
 * tells the server: it waits for the hub, or for the confirmation of what it sent, for as long as TCP tries (about a
 * quarter of an hour), and no other hub can write. So the server is asked to end such a session itself. Where it cannot
 * (a pooler that refuses the settings, a server that does not run on Linux), the hub that waited in vain for the write
 * lock ends the session that holds it.
 *
 * Must not: end a session that the server is working for, or one that is not a hub's.
 */
import type { ReservedSQL, SQL } from "bun";
import { DATABASE_LOCK_MAX_MS, HUB_VANISHED_MS } from "../../domain/limits.ts";
import { SECOND_MS } from "../../lib/clock.ts";
import {
  type Warn,
  type Connection,
  AnswerTimeout,
  isConnectionLost,
  openPool,
  query,
  refusedSettings,
  withTimeout,
} from "./connection.ts";
import { WRITE_LOCK } from "./migrate.ts";

/** No other command of luxhub has it. */
const NAME = "luxhub writer";

/** Of the keepalives: five of them are as long as a hub may be silent. */
const PROBE_SECONDS = HUB_VANISHED_MS / SECOND_MS / 5;

/**
 * How the server notices a hub that vanished: what it sent is not confirmed (tcp_user_timeout, which also ends a wait for
 * a hub that does not read), the hub is silent within a message (keepalives), or between two messages
 * (idle_in_transaction_session_timeout). On a Unix socket the hub's own end closes the session.
 */
const GUARDS: Readonly<Record<string, string>> = {
  tcp_user_timeout: String(HUB_VANISHED_MS),
  tcp_keepalives_idle: String(2 * PROBE_SECONDS),
  tcp_keepalives_interval: String(PROBE_SECONDS),
  tcp_keepalives_count: "3",
  idle_in_transaction_session_timeout: String(HUB_VANISHED_MS),
  application_name: NAME,
};

/**
 * A group reads and writes rows by key. A plan that was made when a table was small would still scan the whole table when
 * it has grown, until the server has analyzed it again. And each statement is planned once: PostgreSQL would plan a bulk
 * statement of few rows again each time, which takes as long as running it.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  lock_timeout: String(DATABASE_LOCK_MAX_MS),
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  plan_cache_mode: "force_generic_plan",
};

/** A commit that is answered must be on disk; stricter settings stay. */
const ON_DISK = `SELECT set_config('synchronous_commit', 'on', false)
  WHERE current_setting('synchronous_commit') = 'off'`;

/** It can be dropped whatever the server does. */
export class WriteSession {
  readonly session: ReservedSQL;
  readonly #pool: SQL;

  private constructor(pool: SQL, session: ReservedSQL) {
    this.#pool = pool;
    this.session = session;
  }

  /** @throws {AnswerTimeout} and what the server throws */
  static async open(url: string, warn: Warn): Promise<WriteSession> {
    const pool = openPool(url, 1);
    const open = async (): Promise<WriteSession> => {
      const session = await pool.reserve();
      await query(session, ON_DISK);
      const settings = new Map([...refusedSettings(url), ...Object.entries(SETTINGS)]);
      await Promise.all(Array.from(settings, ([name, value]) => set(session, name, value)));
      await guard(session, warn);
      return new WriteSession(pool, session);
    };
    try {
      return await withTimeout(open());
    } catch (error) {
      void pool.close({ timeout: 0 }).catch(() => {});
      throw error;
    }
  }

  /** Closes a connection that cannot be used any more; its server may never answer that. */
  drop(): void {
    void this.#pool.close({ timeout: 0 }).catch(() => {});
  }

  async close(): Promise<void> {
    await this.#pool.close({ timeout: 0 });
  }
}

/** Sent in one round trip with the others: the driver pipelines what has parameters. */
function set(session: Connection, name: string, value: string): Promise<unknown> {
  return query(session, "SELECT set_config($1, $2, false)", [name, value]);
}

/** Asks the server to end the session when the hub has vanished; a pooler may refuse that. */
async function guard(session: Connection, warn: Warn): Promise<void> {
  const refused: string[] = [];
  const setting = Object.entries(GUARDS).map(([name, value]) =>
    set(session, name, value).catch((error: unknown) => {
      if (isConnectionLost(error)) throw error;
      refused.push(name);
    }),
  );
  await Promise.all(setting);
  if (refused.length === 0) return;
  warn("PostgreSQL refuses settings by which it notices a hub that vanished (docs/postgresql-failures.md)", {
    settings: refused.join(", "),
  });
}

/**
 * Ends the sessions of hubs that have held the write lock of this schema for longer than a write waits for it, while the
 * server waits for the hub: also if the server's clock was set back meanwhile. It hits no other session: not one that the server works for, and no other program's.
 * PostgreSQL allows it for sessions of the same user (or with pg_signal_backend) and shows others as NULL.
 */
const END_VANISHED = `
  SELECT count(*) FILTER (WHERE pg_terminate_backend(a.pid)) AS ended
  FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
  WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.classid = $1::int::oid AND l.objid = current_schema()::regnamespace::oid
    AND a.application_name = '${NAME}' AND a.usename = current_user AND a.wait_event_type = 'Client'
    AND abs(extract(epoch FROM clock_timestamp() - a.state_change)) * 1000 > ${HUB_VANISHED_MS}`;

/** Called when the write lock was not granted in time. Never throws: if it fails, TCP ends the session some time. */
export async function endVanishedWriter(connection: Connection, warn: Warn): Promise<void> {
  try {
    const [row] = await withTimeout(query(connection, END_VANISHED, WRITE_LOCK.params));
    if (Number(row?.["ended"]) > 0)
      warn("ended the session of a hub that held the write lock and did not answer PostgreSQL");
  } catch (error) {
    if (error instanceof AnswerTimeout || isConnectionLost(error)) return;
    const cause = error instanceof Error ? error.message : String(error);
    warn("cannot end the session of a hub that holds the write lock", { cause });
  }
}
