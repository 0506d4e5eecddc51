/**
 * The store on SQLite: one file, one connection, one writer.
 *
 * Group commit: the transactions of one event-loop tick run as a group (group-runner.ts): one commit (write-ahead log,
 * synchronous=FULL), after which they are answered, so that they share one flush to disk. There are no savepoints: if a
 * transaction throws, it is refused, and the others run again as a group. When the disk or the file fails, no
 * transaction is at fault: if the disk was full and the log can be truncated, the group runs again; otherwise all are
 * refused. If the COMMIT failed, they get OutcomeUnknown: the log may have the commit until the next one overwrites it.
 * Whether writes succeed is a state of its own (write-state.ts).
 *
 * Must not: hold a transaction open across an await, or decide anything. Its guards: test/contract/sqlite.test.ts, and
 * store-faults.test.ts for groups that fail, joining, and full disks.
 */
import { Database } from "bun:sqlite";
import type { Notified } from "../../domain/change.ts";
import { assert, must } from "../../lib/assert.ts";
import { systemClock } from "../../lib/clock.ts";
import { lastInTick } from "../../lib/event-loop.ts";
import { codeOf } from "../../lib/reason.ts";
import { withDatabasePath } from "./integrity-check.ts";
import {
  Group,
  type Line,
  type Transaction,
  TransactionFault,
  TransactionQueue,
  answer,
  callEach,
} from "../pending-transaction.ts";
import { type Migration, migrate } from "./migrate.ts";
import { schemaVersion } from "./schema-version.ts";
import { SQLITE_SCHEMA } from "./schema.ts";
import { createCapabilityIndex } from "./capability-index.ts";
import {
  ChangeLog,
  alsoIn,
  applyEntries,
  entriesAfter,
  keepChanges,
  promoteCopy,
  standingOf,
} from "./change-log.ts";
import { Connection } from "./connection.ts";
import { isDiskFault, noRoom, toStoreError } from "./faults.ts";
import { type Commit, type CommitGroup, GroupRunner } from "./group-runner.ts";
import { STATE_AFTER, type WriteEnd, type WriteState } from "./write-state.ts";
import { refuseOldSqlite, sqliteVersion } from "./version.ts";
import { eventsAfter, lastEventId } from "../sql/events.ts";
import {
  type ChangeLogStore,
  type CommitListener,
  type Committed,
  type Confirmation,
  type DecisionListener,
  type Diagnosis,
  type ElectionResult,
  type Entry,
  type GroupListener,
  type Load,
  OutcomeUnknown,
  type Part,
  type Param,
  type Query,
  type Read,
  type Store,
  StoreBusy,
  StoreDamaged,
  StoreFull,
  StoreReadOnly,
  type Transact,
} from "../store.ts";

const CACHE_KIB = 16 * 1024;
/** A checkpoint every 16 MiB of log: a page that changes in every commit is then rarely written back. */
const CHECKPOINT_PAGES = 4_096;
const BUSY_TIMEOUT_MS = 5_000;
/** While writes are refused. */
const TRUNCATE_EVERY_MS = 1_000;
const BUSY_RETRY_MS = 20;

const TIME_AFTER = "SELECT at FROM changes WHERE n > ? ORDER BY n LIMIT 1";
/** Each time is a flush to disk. */
const FORGOTTEN_TOGETHER = 100;
/** The last entry stays: it says where the log stands. */
const FORGET_ENTRIES = "DELETE FROM changes WHERE n < min(?, (SELECT max(n) FROM changes))";
const ADDED_ENTRIES = "SELECT max(n) AS last, sum(octet_length(body)) AS bytes FROM changes WHERE n > ?";
const OLDEST_ENTRIES = "SELECT n, octet_length(body) AS bytes FROM changes ORDER BY n";

const A_ROW = "a pragma returns a row with a value";

/** data-dir.ts */
type HasRoom = () => boolean;

const machineCommit: Commit = (commit) => commit();

/**
 * Opens the database in one file; creates or migrates it if necessary.
 * @param onFault gets what a listener throws: the group goes on, and is answered
 * @throws {StoreFull} when there is no room to open it; {StoreDamaged}, {StoreBusy}; {Error} one line
 */
export function openSqlite(
  path: string,
  onFault: (error: unknown) => void,
  commit: Commit = machineCommit,
  hasRoom: HasRoom = () => true,
  role: "owner" | "copy" = "owner",
): SqliteStore {
  try {
    return new SqliteStore(path, role, onFault, commit, hasRoom);
  } catch (error) {
    throw withDatabasePath(path, toStoreError(error));
  }
}

/**
 * Opens a database for a command while a hub may be running on it; neither creates nor migrates it. A command may use the
 * space that must remain, because it writes little.
 * @throws {Error} one line when its schema is not this program's
 */
export function joinSqlite(path: string): SqliteStore {
  try {
    return new SqliteStore(
      path,
      "guest",
      () => {},
      machineCommit,
      () => true,
    );
  } catch (error) {
    throw withDatabasePath(path, error);
  }
}

/**
 * Only the owner creates and migrates the database, checkpoints its log and has the capability index: a guest cannot ask
 * for the takers of a type. While no hub runs, SQLite itself checkpoints the log when the last guest closes. A copy is an
 * owner that writes only the entries of its original.
 */
type Role = "owner" | "copy" | "guest";

export class SqliteStore implements Store {
  readonly engine = "sqlite";
  /** Null when there was none, or the database is new. */
  readonly migration: Migration | null;
  readonly #db: Database;
  readonly #role: Role;
  readonly #connection: Connection;
  readonly #log: ChangeLog;
  readonly #runner: GroupRunner;
  readonly #listeners: CommitListener[] = [];
  readonly #groupListeners: GroupListener[] = [];
  readonly #clock = systemClock();
  readonly #onFault: (error: unknown) => void;
  readonly #hasRoom: HasRoom;
  readonly #queue = new TransactionQueue();
  /** Whether a light group is due at the end of this tick, a heavy one after the sockets were polled. */
  #isLightDue = false;
  #isHeavyDue = false;
  /**
   * Resolves when the sockets have been polled since the last group: dropped at the start of each group, and made by the
   * first who asks after it. Without the drop, a caller who hung up during the commit would pass for present.
   */
  #polled: Promise<void> | null = null;
  #state: WriteState = "open";
  #truncatedAtMs = -Infinity;
  #closed = false;
  /** The first sign of damage: no transaction is written any more. */
  #damage: StoreDamaged | null = null;
  #isLeader = false;
  #confirmation: Confirmation = () => null;
  #forgottenBefore = 0;
  /** The entries from the first to the last of these, and their bytes. */
  readonly #counted = { first: 0, last: 0, bytes: 0 };
  /** While another hub accepts writes. */
  #refusal: Error | null = null;

  constructor(path: string, role: Role, onFault: (error: unknown) => void, commit: Commit, hasRoom: HasRoom) {
    this.#onFault = onFault;
    this.#hasRoom = hasRoom;
    this.#role = role;
    this.#db = new Database(path, { readwrite: true, create: role === "owner", strict: true });
    try {
      this.#prepareConnection();
      if (role !== "owner") refuseOtherSchema(schemaVersion(this.#db));
      this.migration = role === "guest" ? null : this.#prepareDatabase(path);
    } catch (error) {
      this.#db.close(true);
      throw error;
    }
    const log = new ChangeLog(this.#db);
    this.#log = log;
    this.#connection = new Connection(this.#db, log);
    const { light } = this.#queue;
    this.#runner = new GroupRunner(this.#db, this.#connection, { light, log, commit, onFault });
  }

  get writable(): boolean {
    const lacksStandby = this.#refusal instanceof StoreReadOnly && this.#refusal.code === "no_standby";
    return this.#damage === null && this.#state === "open" && !lacksStandby;
  }

  readonly transact: Transact = <A>(
    load: Load,
    decide: Part["decide"],
    before: readonly Part[] = [],
  ): Promise<Committed<A>> => {
    const refusal = this.#damage ?? this.#refusal;
    if (refusal) return Promise.reject(refusal);
    if (this.#closed) return Promise.reject(new StoreBusy("The store is closed."));
    return new Promise<Committed<A>>((resolve, reject) => {
      // A is the type of the answer that `decide` returns.
      this.#queue.add({
        parts: [...before, { load: () => load, decide }],
        resolve: resolve as Transaction["resolve"],
        reject,
      });
      this.#schedule();
    });
  };

  /** If the row is cached, what another process has written is seen from the next group on. */
  async read<R>(query: Query<R>): Promise<R> {
    this.#runner.endLeftOpen();
    try {
      return this.#runner.read(query);
    } catch (error) {
      throw this.#noteError(error);
    }
  }

  /** A group commits in an immediate (#schedule), so no group does between reads that await only one another. */
  readTogether<R>(reads: (read: Read) => Promise<R>): Promise<R> {
    return reads((query) => this.read(query));
  }

  onCommit(listener: CommitListener): void {
    this.#listeners.push(listener);
  }

  onDecision(listener: DecisionListener): void {
    this.#runner.onDecision(listener);
  }

  onGroup(listener: GroupListener): void {
    this.#groupListeners.push(listener);
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** A commit runs in an immediate. An immediate that is queued after it comes after the next poll. */
  socketsPolled(): Promise<void> {
    return (this.#polled ??= new Promise((resolve) => setImmediate(resolve)));
  }

  readonly changes: ChangeLogStore = {
    standing: () => standingOf(this.#db),
    keep: (isKept) => {
      keepChanges(this.#db, isKept);
      this.#log.forget();
    },
    after: (last, maxBytes) => entriesAfter(this.#db, last, maxBytes),
    timeAfter: (n) => this.#db.query<{ at: number }, [number]>(TIME_AFTER).get(n)?.at ?? null,
    alsoIn: (entry) => {
      const { files = [], script } = alsoIn(entry);
      return { files, migrates: script !== undefined };
    },
    forgetBefore: (n) => {
      if (n - this.#forgottenBefore < FORGOTTEN_TOGETHER) return;
      this.#db.query(FORGET_ENTRIES).run(n);
      this.#forgottenBefore = n;
    },
    forgetBeyond: (bytes) => this.#forgetBeyond(bytes),
    apply: (entries) => this.#apply(entries),
    promote: (at) => {
      promoteCopy(this.#db, this.#log, at);
      this.#runner.forget();
    },
    confirmBy: (confirmation) => (this.#confirmation = confirmation),
    refuse: (reason) => (this.#refusal = reason),
  };

  async lead(): Promise<ElectionResult> {
    if (this.#isLeader) return "leader";
    this.#isLeader = true;
    return "elected after a gap";
  }

  async diagnose(): Promise<Diagnosis> {
    this.#runner.endLeftOpen();
    const pragma = (name: string): Param =>
      must(Object.values(must(this.#connection.rows(`PRAGMA ${name}`, [])[0], A_ROW))[0], A_ROW);
    const pages = Number(pragma("page_count"));
    const pageSize = Number(pragma("page_size"));
    return {
      engineVersion: sqliteVersion(this.#db),
      sizeBytes: pages * pageSize,
      migration: Number(pragma("user_version")),
      queued: this.#queue.length,
      details: {
        journal_mode: String(pragma("journal_mode")),
        synchronous: pragma("synchronous") === 2 ? "full" : String(pragma("synchronous")),
        page_count: pages,
        page_size: pageSize,
        free_pages: Number(pragma("freelist_count")),
      },
    };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // The groups that are due already will find these lines empty.
    for (const line of [this.#queue.light, this.#queue.heavy]) while (!line.isEmpty) this.#flush(line.take());
    try {
      // SQLite does this by itself when the last connection closes. Here also while a command has the database open; not for
      // a damaged one, which the hub leaves as it is where it can.
      if (this.#role !== "guest" && !this.#damage && !this.#runner.isLeftOpen)
        this.#db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch (error) {
      // On a full or failing disk the log stays as it is: the next start reads it.
      if (!(toStoreError(error) instanceof StoreFull || isDiskFault(error))) throw error;
    } finally {
      this.#db.close(true);
    }
  }

  /** The change feed tells of them as of another hub's commits. */
  #apply(entries: readonly Entry[]): void {
    const last = this.#connection.read(lastEventId());
    try {
      applyEntries(this.#db, entries, (sql, params) => void this.#connection.run(sql, params));
    } catch (error) {
      throw this.#noteError(error);
    } finally {
      this.#runner.forget();
    }
    const outputs = entries.flatMap((entry) => alsoIn(entry).outputs ?? []);
    const events = this.#connection.read(eventsAfter(last, [], Number.MAX_SAFE_INTEGER));
    const changes: Notified[] = [
      ...events.map((event) => ({ kind: "event.logged", event }) as const),
      ...outputs.map((taskId) => ({ kind: "output.changed", taskId }) as const),
    ];
    const ids = events.map((event) => event.id);
    callEach(this.#listeners, this.#onFault, changes, ids, "remote");
  }

  /** Adds what is new to the sum of the last call: that of 256 MiB would take a second. */
  #forgetBeyond(maxBytes: number): void {
    const oldest = this.#db.query<{ n: number; bytes: number }, []>(OLDEST_ENTRIES);
    const counted = this.#counted;
    if (oldest.get()?.n !== counted.first) Object.assign(counted, { last: 0, bytes: 0 });
    const added = must(
      this.#db
        .query<{ last: number | null; bytes: number | null }, [number]>(ADDED_ENTRIES)
        .get(counted.last),
      "an aggregate has a row",
    );
    counted.last = added.last ?? counted.last;
    counted.bytes += added.bytes ?? 0;
    for (const entry of oldest.iterate()) {
      counted.first = entry.n;
      if (counted.bytes <= maxBytes) break;
      counted.bytes -= entry.bytes;
    }
    this.#db.query(FORGET_ENTRIES).run(counted.first);
  }

  #prepareConnection(): void {
    this.#db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    refuseOldSqlite(sqliteVersion(this.#db));
    this.#db.run("PRAGMA synchronous = FULL");
    this.#db.run("PRAGMA cell_size_check = ON"); // finds a damaged page when it is read
    if (this.#role === "guest") this.#db.run("PRAGMA wal_autocheckpoint = 0");
  }

  #prepareDatabase(path: string): Migration | null {
    patiently(() => this.#db.run("PRAGMA journal_mode = WAL"));
    this.#db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
    this.#db.run("PRAGMA temp_store = MEMORY"); // before the capability index: it drops all temporary tables
    this.#db.run(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    const migration = migrate(this.#db, path, SQLITE_SCHEMA);
    if (migration) this.#truncateLog(); // it has become as large as the database
    createCapabilityIndex(this.#db);
    return migration;
  }

  /** A heavy group takes some 50 ms: light transactions that arrived during the last one are committed before the next. */
  #schedule(): void {
    const { light, heavy } = this.#queue;
    const flush = (line: Line): void => {
      this.#flush(line.take()); // nothing, if all have joined another group meanwhile
      this.#schedule();
    };
    if (!light.isEmpty && !this.#isLightDue) {
      this.#isLightDue = true;
      // Requests that ran together share the commit: they queued their transactions before this runs.
      lastInTick(() => {
        this.#isLightDue = false;
        flush(light);
      });
    }
    if (!heavy.isEmpty && !this.#isHeavyDue) {
      this.#isHeavyDue = true;
      afterPoll(() => {
        this.#isHeavyDue = false;
        flush(heavy);
      });
    }
  }

  /** Commits these as one group. Whoever is at fault for a failure is refused, and the others run again. */
  #flush(transactions: readonly Transaction[]): void {
    if (this.#refusal !== null) for (const { reject } of transactions) reject(this.#refusal);
    let group = new Group(this.#refusal === null ? transactions : []);
    while (group.size > 0) {
      const startedMs = this.#clock.timers();
      let run: CommitGroup;
      try {
        run = this.#commitGroup(group);
      } catch (error) {
        group = this.#refuse(group, error);
        continue;
      }
      const ms = this.#clock.timers() - startedMs;
      this.#queue.putBack(run.late);
      callEach(this.#groupListeners, this.#onFault, group.size - run.late.length, ms);
      this.#publish(run);
      return;
    }
  }

  /** All of them if the disk or the file is at fault. */
  #refuse(group: Group, error: unknown): Group {
    const cause = error instanceof TransactionFault ? error.cause : error;
    const isOfDisk = isDiskFault(cause); // in whichever transaction it shows
    const atFault = error instanceof TransactionFault && !isOfDisk ? error.transaction : null;
    const reason = this.#noteError(cause);
    // A bug in one transaction does not change the state. One that found no room does, until the others are written.
    if (atFault === null || reason instanceof StoreFull) this.#enter("could not write");
    for (const transaction of atFault ? [atFault] : group) transaction.reject(reason);
    return atFault ? group.without(atFault) : new Group([]);
  }

  /**
   * While writes are refused, once in a while: each of many writes to a full disk must not cause a checkpoint, but the
   * reader that has kept the log from being truncated may have ended.
   */
  get #mayTruncate(): boolean {
    if (this.#role === "guest") return false;
    return this.#state !== "failing" || this.#clock.timers() - this.#truncatedAtMs >= TRUNCATE_EVERY_MS;
  }

  #enter(end: WriteEnd): void {
    this.#state = STATE_AFTER[end];
  }

  /**
   * Commits a group. A disk can lack room in two ways: it has less free space than --min-free, which is known before the
   * group runs, or it is really full, which a failed write shows. Either time, truncating the log may free enough.
   * @throws as GroupRunner.run()
   */
  #commitGroup(group: Group): CommitGroup {
    this.#polled = null;
    if (this.#damage) throw this.#damage;
    this.#runner.endLeftOpen();
    const hasRoom = this.#hasRoom() || (this.#mayTruncate && this.#truncateLog() && this.#hasRoom());
    try {
      return this.#run(group, hasRoom);
    } catch (error) {
      const isWrapped = error instanceof TransactionFault || error instanceof OutcomeUnknown;
      const cause = isWrapped ? error.cause : error;
      const isFull = toStoreError(cause) instanceof StoreFull;
      if (hasRoom && isFull && this.#mayTruncate && this.#truncateLog()) return this.#run(group, hasRoom);
      throw error;
    }
  }

  #run(group: Group, hasRoom: boolean): CommitGroup {
    try {
      return this.#runner.run(group, hasRoom);
    } catch (error) {
      if (error instanceof OutcomeUnknown) this.#noteError(error.cause); // it may be damage
      throw error;
    }
  }

  /** False when it fails: a reader uses the log, or the disk has no room to write it back. Only the owner does this. */
  #truncateLog(): boolean {
    assert(!this.#db.inTransaction, "no checkpoint within a transaction");
    this.#truncatedAtMs = this.#clock.timers();
    try {
      this.#db.run("PRAGMA busy_timeout = 0"); // does not wait for readers
      const [row] = this.#db.query("PRAGMA wal_checkpoint(TRUNCATE)").values();
      return row?.[0] === 0;
    } catch {
      return false;
    } finally {
      this.#db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    }
  }

  #noteError(error: unknown): unknown {
    const known = toStoreError(error);
    if (known instanceof StoreDamaged) this.#damage ??= known;
    return known;
  }

  /** After the commit: notes whether writes succeed, refuses who was without room, notifies the listeners, then answers. */
  #publish({ outcomes, written, withoutRoom, hasRoom, entry }: CommitGroup): void {
    if (withoutRoom.length > 0) this.#enter("could not write");
    else if (written.length > 0) this.#enter(hasRoom ? "wrote" : "used the reserve");
    for (const transaction of withoutRoom) transaction.reject(noRoom());
    for (const { changes, eventIds } of written)
      callEach(this.#listeners, this.#onFault, changes, eventIds, "own");
    const confirmed = entry === null ? null : this.#confirmation(entry);
    if (confirmed === null) for (const outcome of outcomes) answer(outcome);
    else
      void confirmed.then(
        () => outcomes.forEach(answer),
        (error: unknown) => outcomes.forEach(({ transaction }) => transaction.reject(error)),
      );
  }
}

/** An immediate that is queued in an immediate comes after the next poll. */
function afterPoll(step: () => void): void {
  setImmediate(() => setImmediate(step));
}

/** Retries while another process creates the same new file: SQLite's own timeout does not cover this pragma. */
function patiently(step: () => unknown): void {
  for (let waitedMs = 0; ; waitedMs += BUSY_RETRY_MS) {
    try {
      step();
      return;
    } catch (error) {
      if (codeOf(error) !== "SQLITE_BUSY" || waitedMs >= BUSY_TIMEOUT_MS) throw error;
      Bun.sleepSync(BUSY_RETRY_MS);
    }
  }
}

function refuseOtherSchema(version: number): void {
  const known = SQLITE_SCHEMA.version;
  if (version === known) return;
  throw new Error(
    `the database is of schema ${version}, and this luxhub knows ${known}: use the one that the hub runs`,
  );
}
