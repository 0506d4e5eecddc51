/**
 * The write lock of the hubs on one database: what ends the session of a hub that holds it and has vanished, and by which
 * clock those decide who have waited for it. Links that go down: `bun run torture --only vanished-hub`.
 */
import { SQL } from "bun";
import { describe, expect, test } from "bun:test";
import { CLOCK_NOISE_MS, HUB_VANISHED_MS } from "../../src/domain/limits.ts";
import { query } from "../../src/store/postgres/connection.ts";
import { LOCK } from "../../src/store/postgres/migrate.ts";
import { WriteSession } from "../../src/store/postgres/write-session.ts";
import { list, ok, record, refused, until } from "../api/scene.ts";
import { type TestHub, startHub } from "../support/hub.ts";
import { longTest } from "../support/long.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;
const suite = POSTGRES_MISSING === null ? describe : describe.skip;
if (POSTGRES_MISSING === null) await sharedServer();

/** Holds the write lock in a transaction, under the name of a program. */
class Holder implements AsyncDisposable {
  readonly #sql: SQL;
  readonly #watch: SQL;
  #pid = 0;

  private constructor(url: string, name: string) {
    this.#sql = new SQL(url, { max: 1, connection: { application_name: name } });
    this.#watch = new SQL(url, { max: 1 });
  }

  static async open(hub: TestHub, name: string): Promise<Holder> {
    const holder = new Holder(hub.database ?? "", name);
    await holder.#sql.unsafe("BEGIN");
    await holder.#sql.unsafe(LOCK.write);
    [{ pid: holder.#pid }] = await holder.#sql`SELECT pg_backend_pid() AS pid`;
    return holder;
  }

  /** Whether the session still lives, and with it the lock. */
  async isAlive(): Promise<boolean> {
    return (await this.#watch`SELECT 1 FROM pg_stat_activity WHERE pid = ${this.#pid}`).length === 1;
  }

  /** Resolves when so many sessions wait for the lock. */
  hasWaiters(count: number): Promise<void> {
    return until(`${count} wait for the lock`, async () => {
      const [row] = await this.#watch`SELECT count(*) AS n FROM pg_locks
        WHERE NOT granted AND locktype = 'advisory' AND objid = current_schema()::regnamespace::oid`;
      return Number(row.n) >= count;
    });
  }

  /** The database's clock, epoch milliseconds. */
  async now(): Promise<number> {
    const [row] = await this.#watch`SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now`;
    return Number(row.now);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sql.close({ timeout: 0 });
    await this.#watch.close({ timeout: 0 });
  }
}

suite(`the write lock${reason}`, () => {
  const start = async (): Promise<TestHub> => startHub({ database: (await newSchema()).url });
  const create = (hub: TestHub) => hub.post("/task/create", { title: "t", description: "d" });

  test.concurrent("the session that writes is ended by the server when its hub has vanished", async () => {
    const { url } = await newSchema();
    const warnings: string[] = [];
    const writer = await WriteSession.open(url, (message) => warnings.push(message));
    const [row] = await query(
      writer.session,
      `SELECT current_setting('tcp_user_timeout') AS unconfirmed,
         current_setting('idle_in_transaction_session_timeout') AS idle,
         current_setting('tcp_keepalives_idle')::int
           + current_setting('tcp_keepalives_interval')::int * current_setting('tcp_keepalives_count')::int AS silent`,
    );
    const seconds = HUB_VANISHED_MS / 1_000;
    expect(row).toEqual({ unconfirmed: String(HUB_VANISHED_MS), idle: `${seconds}s`, silent: seconds });
    expect(warnings).toEqual([]);
    await writer.close();
  });

  test.concurrent("a hub that waited in vain for the lock ends the hub's session that holds it", async () => {
    await using hub = await start();
    await using vanished = await Holder.open(hub, "luxhub writer");
    await refused(create(hub), 503, "database_unavailable");
    await until("writes go on", async () => (await create(hub)).status === 200);
    expect(await vanished.isAlive()).toBe(false);
    const line = "ended the session of a hub that held the write lock";
    await until("the log says so", async () => hub.logged.join("").includes(line));
  });

  longTest("and no other program's session", async () => {
    await using hub = await start();
    await using other = await Holder.open(hub, "luxhub");
    await refused(create(hub), 503, "database_unavailable");
    await refused(create(hub), 503, "database_unavailable"); // the first has tried to end it by then
    expect(await other.isAlive()).toBe(true);
  });

  test.concurrent("who waited for the lock decides by the time at which it was granted", async () => {
    await using hub = await start();
    await hub.addNodes(["n1"]);
    const taskId = await hub.addTask({ delay_s: 1 });
    const task = record((await ok(hub.get(`/task/${taskId}`)))["task"]);
    const notBefore = Date.parse(String(task["not_before"]));
    const holder = await Holder.open(hub, "a test");
    const claiming = hub.post("/task/claim", { task_id: taskId, node_id: "n1" });
    await holder.hasWaiters(1);
    // Also by the hub's clock, which is the database's as exactly as a busy machine lets it be read.
    await until("its time has come", async () => (await holder.now()) > notBefore + 10 * CLOCK_NOISE_MS);
    await holder[Symbol.asyncDispose]();
    await ok(claiming);
    const events = list(await ok(hub.get(`/events?task_id=${taskId}&kind=task.assigned`)), "events");
    expect(events).toHaveLength(1);
    expect(Date.parse(String(events[0]?.["at"]))).toBeGreaterThanOrEqual(notBefore);
  });
});
