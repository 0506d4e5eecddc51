/**
 * The store on PostgreSQL: any number of hubs on one database are one hub.
 *
 * Transactions wait in a queue for the group commit (group-commit.ts). They are answered when the server has the commit on
 * disk; while one group is notified (commit-notifications.ts) and answered, the next one runs.
 *
 * When the connection is lost before the commit is sent, nothing was written. When it is lost during the commit, the hub
 * must ask the server: each commit writes the number of its group to the hub's row, and for COMMIT_OUTCOME_WAIT_MS the
 * hub tries to read that row, under the write lock, which proves that the lost transaction has ended. (A transaction id
 * would not do: a server that crashed gives it out again.)
 *
 * A server that does not answer within DATABASE_ANSWER_MAX_MS, because it is frozen or a table is locked, counts as lost:
 * its connection is closed, and all transactions that wait are refused. A group that was given up sends nothing more.
 *
 * Must not: decide anything, or show the address of the database, which has the password.
 */
import type { ReservedSQL, SQL } from "bun";
import {
  DATABASE_ANSWER_MAX_MS,
  COMMIT_OUTCOME_WAIT_MS,
  HUB_FORGOTTEN_MS,
  HUB_SILENT_MS,
  ABANDONED_READS_MAX,
  READ_CONNECTIONS,
} from "../../domain/limits.ts";
import { must } from "../../lib/assert.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import {
  type DecidedGroup,
  type Transaction,
  TransactionFault,
  TransactionQueue,
  Turns,
  answer,
  callEach,
} from "../pending-transaction.ts";
import { upsert, text, whole } from "../sql/write-statement.ts";
import {
  type Warn,
  type Connection,
  AnswerTimeout,
  RenewablePool,
  checkServer,
  leaveOutRefused,
  refusedSettings,
  withTimeout,
  isConflict,
  isLockTimeout,
  isConnectionLost,
  openPool,
  query,
  toOpenError,
  toStoreError,
} from "./connection.ts";
import { ReadsTogether } from "./bulk-statements.ts";
import { type GroupWatch, runGroup } from "./group-commit.ts";
import { LOCK, SCHEMA, hasTable, migrate, refuseOtherSchema, schemaIsMigrated } from "./migrate.ts";
import { POSTGRES_SCHEMA } from "./schema.ts";
import { CommitNotifications, type OwnGroup } from "./commit-notifications.ts";
import { type Ask, LeaderElection } from "./leader-election.ts";
import { WriteSession, endVanishedWriter } from "./write-session.ts";
import {
  type CommitListener,
  type Committed,
  type DecisionListener,
  type Diagnosis,
  type ElectionResult,
  type GroupListener,
  type Load,
  type Part,
  OutcomeUnknown,
  type Query,
  type Read,
  type Row,
  type Store,
  StoreBusy,
  StoreFull,
  StoreUnavailable,
  type Transact,
} from "../store.ts";

const FATE_RETRY_MS = 100;
const SILENT = { info: () => {}, warn: () => {} };

/**
 * Opens (and if need be makes and migrates) the tables in the first schema of the connection's search_path.
 * @param onFault gets what a commit listener throws, and the errors that no request can report
 * @param log gets lines for the operator
 * @param emptyError thrown when no hub has written to the database yet; null: an empty one is fine
 * @throws {StoreUnavailable} when the server cannot be reached; {Error} when the database cannot be used
 */
export function openPostgres(
  url: string,
  base: Clock,
  onFault: (error: unknown) => void,
  log: Readonly<Record<"info" | "warn", Warn>> = SILENT,
  emptyError: string | null = null,
): Promise<PostgresStore> {
  const warn: Warn = (message, fields) => log.warn(message, fields);
  return open(base, { url, onFault, warn }, async (pool) => {
    if (emptyError !== null && !(await hasTable(pool, "schema_version"))) throw new Error(emptyError);
    await migrate(pool, base, (message, fields) => log.info(message, fields));
    await query(pool, FORGET_HUBS);
  });
}

/**
 * Opens the database of running hubs for a command: leaves the tables to the hubs.
 * @throws as openPostgres; {Error} when there is no hub in it, or one of another schema
 */
export function joinPostgres(url: string, base: Clock): Promise<PostgresStore> {
  return open(base, { url, onFault: () => {}, warn: SILENT.warn }, refuseOtherSchema); // a command has no listeners
}

/** False: a pooler refuses a setting, which the next pool leaves out. @throws as checkServer */
async function isAccepted(pool: SQL, url: string): Promise<boolean> {
  try {
    await checkServer(pool);
    return true;
  } catch (error) {
    if (leaveOutRefused(url, error)) return false;
    throw error;
  }
}

type StoreParts = {
  readonly url: string;
  readonly onFault: (error: unknown) => void;
  readonly warn: Warn;
};

function openReadPool(url: string): SQL {
  return openPool(url, READ_CONNECTIONS);
}

async function open(
  base: Clock,
  parts: StoreParts,
  prepare: (pool: SQL) => Promise<void>,
): Promise<PostgresStore> {
  const { url, warn } = parts;
  let pool = openReadPool(url);
  try {
    while (!(await isAccepted(pool, url))) {
      await pool.close({ timeout: 0 });
      pool = openReadPool(url);
    }
    const refused = [...refusedSettings(url).keys()].join(", ");
    if (refused !== "")
      warn("a pooler refuses settings of sessions (docs/postgresql-failures.md)", { settings: refused });
    await prepare(pool);
    const [row] = await query(pool, `SELECT 'luxhub_' || current_schema()::regnamespace::oid AS channel`);
    const store = new PostgresStore(pool, String(row?.["channel"]), base, parts);
    await store.start();
    return store;
  } catch (error) {
    await pool.close({ timeout: 0 });
    throw toOpenError(error, url);
  }
}

/** Those that are known before it has the lock, and all, taken once it has the lock. */
type Source = { waiting(): readonly Transaction[]; take(): readonly Transaction[] };

type Progress = {
  readonly number: number;
  /** The transactions of the group; null until it has the lock. */
  transactions: readonly Transaction[] | null;
  own: OwnGroup | null;
  committing: DecidedGroup | null;
  /** When it began, then when it was last reloaded, then when it began to commit; steady clock. */
  since: number;
  isGivenUp: boolean;
};

const KNOWN = "a group that had the lock has its transactions";

/** A hub that runs and has written nothing for so long does not need its row. */
const FORGET_HUBS = `
  DELETE FROM hubs WHERE seen_at < clock_timestamp() - interval '${HUB_FORGOTTEN_MS} milliseconds'`;

const MARK = upsert<{ hubId: string; group: number }, "hubs">(
  "hubs",
  { hub_id: text(({ hubId }) => hubId) },
  { last_group: whole(({ group }) => group), seen_at: "clock_timestamp()" },
);

/** Leaves the hub's marks with its row, unless another luxhub has migrated the database. */
const LEAVE_MARKS = `
  INSERT INTO hubs (hub_id, last_group, seen_at, marks)
  SELECT $1, 0, clock_timestamp(), $2 WHERE ${SCHEMA} = ${POSTGRES_SCHEMA.version}
  ON CONFLICT (hub_id) DO UPDATE SET seen_at = excluded.seen_at, marks = excluded.marks`;
const OTHER_MARKS = `
  SELECT DISTINCT marks FROM hubs WHERE hub_id <> $1 AND marks IS NOT NULL
    AND seen_at > clock_timestamp() - interval '${HUB_SILENT_MS} milliseconds'`;
const TAKE_MARKS = `UPDATE hubs SET marks = NULL WHERE hub_id = $1`;

export class PostgresStore implements Store {
  readonly engine = "postgresql";
  readonly changes = null;
  readonly #pool: RenewablePool;
  readonly #url: string;
  readonly #warn: Warn;
  readonly #readsTogether: ReadsTogether;
  readonly #notifications: CommitNotifications;
  readonly #election: LeaderElection;
  readonly #hubId = Bun.randomUUIDv7();
  readonly #machine = systemClock();
  readonly #groupListeners: GroupListener[] = [];
  readonly #onFault: (error: unknown) => void;
  #writer: WriteSession | null = null;
  #groups = 0;
  readonly #queue = new TransactionQueue();
  readonly #turns = new Turns(this.#queue);
  #writable = true;
  #hasMarks = false;
  #running: Promise<void> | null = null;
  /** Nobody came while the last group waited for the lock. Otherwise loading early would only load in two parts. */
  #isQuiet = true;
  #renewedAt = Number.NEGATIVE_INFINITY;
  /** Reads that were given up and that the server has not answered yet. */
  #readsGivenUp = 0;
  /** The newest group that is on disk: notified and answered. */
  #published: Promise<void> = Promise.resolve();
  #closed: Promise<void> | null = null;

  constructor(pool: SQL, channel: string, base: Clock, { url, onFault, warn }: StoreParts) {
    this.#pool = new RenewablePool(pool, () => openReadPool(url));
    this.#url = url;
    this.#warn = warn;
    this.#onFault = onFault;
    this.#readsTogether = new ReadsTogether(this.#pool);
    const hubId = this.#hubId;
    const read = <R>(wanted: Query<R>): Promise<R> => this.#read(wanted);
    this.#notifications = new CommitNotifications({ url, hubId, channel, read, onFault });
    const ask: Ask = (sql, params) => this.#answered(query(this.#pool, sql, params));
    this.#election = new LeaderElection(ask, hubId, base, () => this.#notifications.tick());
  }

  /** The clock whose `steady` all hubs on the database share. */
  get clock(): Clock {
    return this.#election.clock;
  }

  async start(): Promise<void> {
    await this.#notifications.start();
    await this.#election.start();
  }

  readonly transact: Transact = <A>(
    load: Load,
    decide: Part["decide"],
    before: readonly Part[] = [],
  ): Promise<Committed<A>> => {
    if (this.#closed) return Promise.reject(new StoreBusy("The store is closed."));
    return new Promise<Committed<A>>((resolve, reject) => {
      // The answer's type is the caller's: what goes in as decide comes out as its answer.
      this.#queue.add({
        parts: [...before, { load: () => load, decide }],
        resolve: resolve as Transaction["resolve"],
        reject,
      });
      this.#running ??= this.#run();
    });
  };

  get writable(): boolean {
    return this.#writable && !this.#election.isOutdated;
  }

  async read<R>(wanted: Query<R>): Promise<R> {
    if (this.#closed) throw new StoreBusy("The store is closed.");
    return this.#read(wanted);
  }

  async readTogether<R>(reads: (read: Read) => Promise<R>): Promise<R> {
    if (this.#closed) throw new StoreBusy("The store is closed.");
    this.#refuseIfOutdated();
    const session = await reserve(this.#pool).catch((error: unknown) => {
      throw toStoreError(error);
    });
    const begun = query(session, SNAPSHOT); // on its way with the first read
    begun.catch(() => {}); // what the reads throw comes first
    try {
      const answer = await reads((wanted) => this.#shaped(session, wanted));
      await this.#answered(begun);
      return answer;
    } catch (error) {
      throw toStoreError(error);
    } finally {
      // Not awaited. The pool notices a lost session.
      void query(session, "END")
        .catch(() => {})
        .then(() => session.release());
    }
  }

  onCommit(listener: CommitListener): void {
    this.#notifications.listen(listener);
  }

  onDecision(listener: DecisionListener): void {
    this.onCommit((changes, _, origin) => {
      if (origin === "own") listener(changes);
    });
  }

  onGroup(listener: GroupListener): void {
    this.#groupListeners.push(listener);
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** A commit ends in a poll, whose other sockets may still be unread. The next immediate comes before the next poll. */
  async socketsPolled(): Promise<void> {
    await afterIo();
    await afterIo();
  }

  lead(): Promise<ElectionResult> {
    return this.#election.lead();
  }

  async diagnose(): Promise<Diagnosis> {
    if (this.#closed) throw new StoreBusy("The store is closed.");
    const queued = this.#queue.length;
    const [row] = await this.#answered(query(this.#pool, DIAGNOSIS));
    return {
      engineVersion: String(row?.["version"]),
      sizeBytes: Number(row?.["size"]),
      migration: Number(row?.["migration"]),
      queued,
      details: {
        synchronous_commit: String(row?.["synchronous_commit"]),
        fsync: String(row?.["fsync"]),
        pool_size: READ_CONNECTIONS + 1,
        sessions: Number(row?.["sessions"]),
        sessions_max: Number(row?.["sessions_max"]),
        read_only: Boolean(row?.["read_only"]),
      },
    };
  }

  /** Returns the different marks of the other hubs that run. */
  async shareMarks(marks: string): Promise<readonly string[]> {
    if (this.#closed) throw new StoreBusy("The store is closed.");
    this.#refuseIfOutdated();
    this.#hasMarks = true;
    await this.#answered(query(this.#pool, LEAVE_MARKS, [this.#hubId, marks]));
    const others = await this.#answered(query(this.#pool, OTHER_MARKS, [this.#hubId]));
    return Array.from(others, (row) => String(row["marks"]));
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    while (this.#running) await this.#running;
    await this.#published;
    await this.#election.close();
    await this.#notifications.close();
    if (this.#hasMarks) await withTimeout(query(this.#pool, TAKE_MARKS, [this.#hubId])).catch(() => {}); // they expire
    await this.#writer?.close();
    await this.#pool.close();
  }

  async #read<R>(wanted: Query<R>): Promise<R> {
    this.#refuseIfOutdated();
    const { byKey } = wanted;
    if (!byKey) return this.#shaped(this.#pool, wanted);
    return this.#rowsOf(wanted, () => this.#readsTogether.rowsOf(byKey, wanted.params));
  }

  #shaped<R>(connection: Connection, wanted: Query<R>): Promise<R> {
    return this.#rowsOf(wanted, () => query(connection, wanted.sql, wanted.params));
  }

  async #rowsOf<R>({ shape }: Query<R>, read: () => Promise<readonly Row[]>): Promise<R> {
    if (this.#readsGivenUp >= ABANDONED_READS_MAX) throw new AnswerTimeout();
    return shape(await this.#answered(read()));
  }

  /** @throws {AnswerTimeout} and the errors of the store */
  async #answered<T>(read: Promise<T>): Promise<T> {
    try {
      return await withTimeout(read);
    } catch (error) {
      if (error instanceof AnswerTimeout) {
        this.#renewPool();
        this.#readsGivenUp++;
        const ended = (): void => void this.#readsGivenUp--;
        read.then(ended, ended);
      }
      throw toStoreError(error);
    }
  }

  /**
   * A connection whose other end is gone looks like a slow server: when the network is back, TCP may wait as long again
   * as it was away. At most one old pool is still closing.
   */
  #renewPool(): void {
    const now = this.#machine.steady();
    if (this.#closed || now - this.#renewedAt < DATABASE_ANSWER_MAX_MS) return;
    this.#renewedAt = now;
    this.#pool.renew();
    this.#notifications.suspect();
  }

  #refuseIfOutdated(): void {
    if (this.#election.isOutdated) throw schemaIsMigrated();
  }

  /** Group after group, until nothing waits. */
  async #run(): Promise<void> {
    const queue: Source = { waiting: () => this.#turns.peekGroup(), take: () => this.#turns.takeGroup() };
    await afterIo(); // every request that has arrived by then is in the first group
    while (this.#queue.length > 0) await this.#commit(queue);
    this.#running = null;
  }

  /** Commits a group. When one of its transactions fails it, its halves are tried as groups of their own. */
  async #commit(source: Source): Promise<void> {
    const progress: Progress = {
      number: ++this.#groups,
      transactions: null,
      own: null,
      committing: null,
      since: this.#machine.steady(),
      isGivenUp: false,
    };
    const startedMs = this.#machine.timers();
    try {
      this.#writer ??= await WriteSession.open(this.#url, this.#warn);
      const { session } = this.#writer;
      const group = await this.#withTimeout(progress, runGroup(session, this.#watch(progress, source)));
      const ms = this.#machine.timers() - startedMs;
      callEach(this.#groupListeners, this.#onFault, must(progress.transactions, KNOWN).length, ms);
      if (group.written.length > 0) this.#writable = true;
      await this.#publish(group, progress.own);
    } catch (error) {
      await this.#abort(error);
      progress.transactions ??= source.take();
      if (isLockTimeout(error)) void endVanishedWriter(this.#pool, this.#warn);
      if (error instanceof AnswerTimeout || isLockTimeout(error)) {
        // What has come meanwhile would wait as long for the same.
        for (const transaction of this.#queue.takeAll()) transaction.reject(toStoreError(error));
      }
      if (isConnectionLost(error) && progress.committing)
        await this.#settle(progress, progress.committing, error);
      else {
        if (progress.own) this.#notifications.ended(progress.own);
        await this.#refuse(progress.transactions, error);
      }
    }
  }

  /** Given up when its loads or its commit take too long. */
  async #withTimeout(progress: Progress, run: Promise<DecidedGroup>): Promise<DecidedGroup> {
    for (;;) {
      const { since } = progress;
      try {
        return await withTimeout(run, since + DATABASE_ANSWER_MAX_MS - this.#machine.steady());
      } catch (error) {
        progress.isGivenUp = error instanceof AnswerTimeout && progress.since === since;
        if (progress.isGivenUp || !(error instanceof AnswerTimeout)) throw error;
      }
    }
  }

  async #refuse(transactions: readonly Transaction[], error: unknown): Promise<void> {
    if (error instanceof TransactionFault) {
      error.transaction.reject(error.cause);
      const others = transactions.filter((transaction) => transaction !== error.transaction);
      return others.length > 0 ? this.#commit(only(others)) : undefined;
    }
    const known = toStoreError(error);
    if (isConflict(error)) return this.#commit(only(transactions)); // decide is pure
    if (transactions.length <= 1 || known instanceof StoreUnavailable || known instanceof StoreBusy) {
      if (known instanceof StoreUnavailable || known instanceof StoreFull) this.#writable = false;
      for (const transaction of transactions) transaction.reject(known);
      return;
    }
    const half = transactions.length >> 1;
    await this.#commit(only(transactions.slice(0, half)));
    await this.#commit(only(transactions.slice(half)));
  }

  /** The connection was lost in the middle of a commit: the server knows whether it holds. */
  async #settle({ number, transactions, own }: Progress, group: DecidedGroup, cause: unknown): Promise<void> {
    const holds = group.written.length === 0 || (await this.#holds(number));
    if (holds) return this.#publish(group, own);
    if (own) this.#notifications.ended(own);
    if (holds === null) this.#notifications.missed();
    this.#writable = false;
    const error =
      holds === null
        ? new OutcomeUnknown("The database was lost in the middle of the commit.", { cause })
        : new StoreUnavailable("The database was lost before the commit.", { cause });
    for (const transaction of must(transactions, KNOWN)) transaction.reject(error);
  }

  /** Null: the server did not answer in time. */
  async #holds(number: number): Promise<boolean | null> {
    const clock = systemClock();
    const until = clock.steady() + COMMIT_OUTCOME_WAIT_MS;
    for (; clock.steady() < until; await Bun.sleep(FATE_RETRY_MS)) {
      try {
        const running = this.#pool.begin(async (tx) => {
          await query(tx, LOCK.write);
          const [row] = await query(tx, `SELECT last_group FROM hubs WHERE hub_id = $1`, [this.#hubId]);
          return Number(row?.["last_group"]) === number;
        });
        return await withTimeout(running, until - clock.steady());
      } catch (error) {
        if (!isConnectionLost(error)) return null;
      }
    }
    return null;
  }

  /** First the notifications, then the answers. Resolves when the group before it is answered. */
  #publish(group: DecidedGroup, own: OwnGroup | null): Promise<void> {
    const before = this.#published;
    const notified = own ? this.#notifications.publish(group, own) : Promise.resolve();
    this.#published = notified.then(() => group.outcomes.forEach(answer));
    return before;
  }

  #watch(progress: Progress, source: Source): GroupWatch {
    let known: readonly Transaction[] = [];
    return {
      waiting: () => {
        known = source.waiting();
        return this.#isQuiet ? known : [];
      },
      granted: (lastId) => {
        if (progress.isGivenUp) throw new AnswerTimeout();
        progress.own = this.#notifications.granted(lastId);
        const transactions = source.take();
        this.#isQuiet = transactions.length === known.length;
        return (progress.transactions = transactions);
      },
      reloaded: () => {
        if (progress.isGivenUp) throw new AnswerTimeout();
        progress.since = this.#machine.steady();
      },
      committing: (group) => {
        if (progress.isGivenUp) throw new AnswerTimeout();
        progress.committing = group;
        progress.since = this.#machine.steady();
        if (group.written.length === 0) return [];
        const columns = [[this.#hubId], [progress.number]];
        return [{ statement: MARK, columns }, this.#notifications.noticesOf(group.written)];
      },
    };
  }

  /** Or ends the connection when it cannot be used any more. */
  async #abort(error: unknown): Promise<void> {
    const writer = this.#writer;
    if (!writer) return;
    if (
      !isConnectionLost(error) &&
      (await withTimeout(query(writer.session, "ROLLBACK")).then(
        () => true,
        () => false,
      ))
    )
      return;
    this.#writer = null;
    writer.drop();
  }
}

const DIAGNOSIS = `
  SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS size,
    (SELECT version FROM schema_version) AS migration,
    current_setting('synchronous_commit') AS synchronous_commit, current_setting('fsync') AS fsync,
    (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()) AS sessions,
    current_setting('max_connections') AS sessions_max, pg_is_in_recovery() AS read_only`;

/** A snapshot of the first statement after it. */
const SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/** A connection of our own. One that is granted after it was given up goes back. */
async function reserve(pool: RenewablePool): Promise<ReservedSQL> {
  const granted = pool.reserve();
  try {
    return await withTimeout(granted);
  } catch (error) {
    if (error instanceof AnswerTimeout)
      granted.then(
        (session) => session.release(),
        () => {},
      );
    throw error;
  }
}

function only(transactions: readonly Transaction[]): Source {
  return { waiting: () => transactions, take: () => transactions };
}

function afterIo(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
