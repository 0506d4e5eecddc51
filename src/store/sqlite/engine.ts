/**
 * The store on SQLite: one file, one connection, one writer.
 *
 * Group commit: the transactions of one event-loop tick are decided in order, written in one commit (write-ahead log,
 * synchronous=FULL) and answered after it, so that they share one flush to disk. There are no savepoints: a rejection
 * writes nothing, and if a transaction throws, the group is rolled back, that transaction is refused, and the others
 * run again as a group. When BEGIN, COMMIT or ROLLBACK fails, or any statement with an I/O error, no transaction is at
 * fault. If the disk was full and the log can be truncated, the group runs again; otherwise all are refused. If the
 * COMMIT failed, they get OutcomeUnknown: the log may have the commit until the next one overwrites it.
 *
 * Invariant: between groups no transaction is open, nothing is gathered, and the row cache holds committed rows only.
 *
 * What a decision of the group wakes (onDecision), such as a blocked receive, joins the group: a message and its taking
 * share one flush. When the group runs again, whatever has joined stays in it, and its decisions are announced again: a
 * blocked call that was woken for nothing reads once more, and waits on.
 *
 * Recently used tasks and nodes are read from memory (row-cache.ts). Some writes of a group wait until a part reads
 * them, or for the commit (gathered-writes.ts). If a gathered write fails, the group runs again with each change in its
 * place, which shows the faulty transaction. Whether writes succeed is a state of its own (write-state.ts).
 *
 * Must not: hold a transaction open across an await, or decide anything. Its guards: test/contract/sqlite.test.ts, and
 * store-faults.test.ts for groups that fail, joining, and full disks.
 */
import { Database, type Statement } from "bun:sqlite";
import type { Change } from "../../domain/change.ts";
import { type Decision, UNDECIDED, type Undecided, changesOf } from "../../domain/decision.ts";
import { GROUP_MAX_MS } from "../../domain/limits.ts";
import { assert, broken, must } from "../../lib/assert.ts";
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
  type DecidedTransaction,
  type Written,
  answer,
  callEach,
} from "../pending-transaction.ts";
import { type Migration, migrate, schemaVersion } from "./migrate.ts";
import { SQLITE_SCHEMA } from "./schema.ts";
import { createCapabilityIndex } from "./capability-index.ts";
import { Connection } from "./connection.ts";
import { GatherFault, GatheredWrites } from "./gathered-writes.ts";
import { RowCache } from "./row-cache.ts";
import { STATE_AFTER, type WriteEnd, type WriteState } from "./write-state.ts";
import { refuseOldSqlite, sqliteVersion } from "./version.ts";
import { markFeatures } from "../sql/features.ts";
import { writeOf } from "../sql/statements.ts";
import {
  type CommitListener,
  type Committed,
  type DecisionListener,
  type Diagnosis,
  type ElectionResult,
  type GroupListener,
  type Load,
  OutcomeUnknown,
  type Part,
  type Param,
  type Query,
  type Read,
  type Row,
  type Store,
  StoreBusy,
  StoreDamaged,
  StoreFull,
  type Transact,
} from "../store.ts";

const CACHE_KIB = 16 * 1024;
/** A checkpoint every 16 MiB of log: a page that changes in every commit is then rarely written back. */
const CHECKPOINT_PAGES = 4_096;
const BUSY_TIMEOUT_MS = 5_000;
/** How often the log may be truncated while writes are refused. */
const TRUNCATE_EVERY_MS = 1_000;
const BUSY_RETRY_MS = 20;

const NOT_ROLLED_BACK =
  "A group of transactions could not be rolled back: until it is, the database is not used.";
const A_ROW = "a pragma returns a row with a value";

/** Whether the disk has more free space than must remain: see data-dir.ts. */
type HasRoom = () => boolean;

/** Runs the COMMIT it is given. Tests inject one that fails, because there most errors of a disk show. */
export type Commit = (commit: () => void) => void;

const machineCommit: Commit = (commit) => commit();

/**
 * Opens the database in one file; creates or migrates it if necessary.
 * @param onFault gets an error that a listener of whatever kind throws: the group goes on, and is answered
 * @throws {StoreFull} when there is no room to open it; {StoreDamaged}, {StoreBusy}; {Error} one line
 */
export function openSqlite(
  path: string,
  onFault: (error: unknown) => void,
  commit: Commit = machineCommit,
  hasRoom: HasRoom = () => true,
): SqliteStore {
  try {
    return new SqliteStore(path, "owner", onFault, commit, hasRoom);
  } catch (error) {
    throw withDatabasePath(path, toStoreError(error));
  }
}

/**
 * Opens a database for a command while a hub may be running on it. It is neither created nor migrated. A command has no
 * listeners, and may use the space that must remain, because it writes little.
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

/** What one part of a transaction has written. */
type WrittenPart = Written & { readonly transaction: Transaction };

/** One run of a group, which may fail and be repeated. It is returned only when its commit is on disk. */
type GroupRun = {
  /** Whether the disk has more free space than must remain (--min-free). */
  readonly hasRoom: boolean;
  /** Whether some writes may wait (gathered-writes.ts). */
  readonly gathers: boolean;
  readonly outcomes: DecidedTransaction[];
  readonly written: WrittenPart[];
  /** Transactions that would have taken room where there is none. They have written nothing. */
  readonly withoutRoom: Transaction[];
  /** Transactions of the group for which it had no time: they are not decided. */
  late: readonly Transaction[];
};

/**
 * Only the owner creates and migrates the database, checkpoints its log and has the capability index: a guest cannot ask
 * for the takers of a type. While no hub runs, SQLite itself checkpoints the log when the last guest closes.
 */
type Role = "owner" | "guest";

/** SQLite's transaction: that of a group, which ends with the group or, when its ROLLBACK fails, is left open. */
type TransactionMode = "none" | "of a group" | "left open";

export class SqliteStore implements Store {
  readonly engine = "sqlite";
  /** The migration that ran at opening; null when there was none, or the database is new. */
  readonly migration: Migration | null;
  readonly #db: Database;
  readonly #role: Role;
  readonly #connection: Connection;
  readonly #begin: Statement;
  readonly #commit: () => void;
  readonly #listeners: CommitListener[] = [];
  readonly #decisionListeners: DecisionListener[] = [];
  readonly #groupListeners: GroupListener[] = [];
  readonly #clock = systemClock();
  readonly #onFault: (error: unknown) => void;
  readonly #hasRoom: HasRoom;
  readonly #queue = new TransactionQueue();
  readonly #gathered: GatheredWrites;
  /** During a group it also has what is not committed yet. */
  readonly #cache: RowCache;
  /** `PRAGMA data_version`: it changes when another process commits. */
  readonly #dataVersion: Statement<Row, Param[]>;
  #seenVersion: Param | undefined;
  /** Whether a group of light transactions will be committed at the end of this tick of the event loop. */
  #isLightDue = false;
  /** Whether a group of heavy transactions will be committed after the sockets have been polled. */
  #isHeavyDue = false;
  /**
   * Resolves when the sockets have been polled since the last group: dropped at the start of each group, and made by the
   * first who asks after it. Without the drop, a caller who hung up during the commit would pass for present.
   */
  #polled: Promise<void> | null = null;
  #state: WriteState = "open";
  /** When the log was truncated last, or that was tried. */
  #truncatedAtMs = -Infinity;
  #transaction: TransactionMode = "none";
  #closed = false;
  /** The first sign of damage. It is final: no transaction is written any more. */
  #damage: StoreDamaged | null = null;
  #isLeader = false;

  constructor(path: string, role: Role, onFault: (error: unknown) => void, commit: Commit, hasRoom: HasRoom) {
    this.#onFault = onFault;
    this.#hasRoom = hasRoom;
    this.#role = role;
    this.#db = new Database(path, { readwrite: true, create: role === "owner", strict: true });
    const connection = new Connection(this.#db);
    const gathered = new GatheredWrites(connection);
    this.#connection = connection;
    this.#gathered = gathered;
    this.#cache = new RowCache((query) => gathered.read(query));
    try {
      this.#prepareConnection();
      this.migration = role === "owner" ? this.#prepareDatabase(path) : null;
      if (role === "guest") refuseOtherSchema(schemaVersion(this.#db));
    } catch (error) {
      this.#db.close(true);
      throw error;
    }
    this.#begin = this.#db.prepare("BEGIN IMMEDIATE");
    this.#dataVersion = this.#db.prepare<Row, Param[]>("PRAGMA data_version");
    const statement = this.#db.prepare("COMMIT");
    this.#commit = () => commit(() => statement.run());
  }

  get writable(): boolean {
    return this.#damage === null && this.#state === "open";
  }

  readonly transact: Transact = <A>(
    load: Load,
    decide: Part["decide"],
    before: readonly Part[] = [],
  ): Promise<Committed<A>> => {
    if (this.#damage) return Promise.reject(this.#damage);
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

  /** Reads between groups. What another process has written is seen from the next group on, if the row is cached. */
  async read<R>(query: Query<R>): Promise<R> {
    this.#endLeftOpen(); // the read would see what was never committed
    try {
      return this.#cache.load(query);
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
    this.#decisionListeners.push(listener);
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

  /** The only hub on the file is its leader. */
  async lead(): Promise<ElectionResult> {
    if (this.#isLeader) return "leader";
    this.#isLeader = true;
    return "elected after a gap";
  }

  async diagnose(): Promise<Diagnosis> {
    this.#endLeftOpen(); // the size would be that of what was never committed
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
      if (this.#role === "owner" && !this.#damage && this.#transaction === "none")
        this.#db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch (error) {
      // On a full or failing disk the log stays as it is: the next start reads it.
      if (!(toStoreError(error) instanceof StoreFull || DISK_FAULT.test(codeOf(error)))) throw error;
    } finally {
      this.#db.close(true);
    }
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

  /**
   * Plans the commit of what waits: light transactions at the end of the tick, heavy ones after the sockets were polled. A
   * heavy group takes some 50 ms: light transactions that arrived during the last one are committed before the next.
   */
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

  /** Commits these as one group. When that fails, refuses whoever is at fault and tries again with the others. */
  #flush(transactions: readonly Transaction[]): void {
    let group = new Group(transactions);
    while (group.size > 0) {
      const startedMs = this.#clock.timers();
      let run: GroupRun;
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

  /**
   * Refuses the transaction that is at fault for a failed commit and returns the group of the others, which are not
   * written yet. If no transaction is at fault, but the disk or the file, refuses all and returns an empty group.
   */
  #refuse(group: Group, error: unknown): Group {
    const cause = error instanceof TransactionFault ? error.cause : error;
    const isOfDisk = DISK_FAULT.test(codeOf(cause)); // in whichever transaction it shows
    const atFault = error instanceof TransactionFault && !isOfDisk ? error.transaction : null;
    const reason = this.#noteError(cause);
    // A bug in one transaction does not change the state. One that found no room does, until the group of the others is
    // written.
    if (atFault === null || reason instanceof StoreFull) this.#enter("could not write");
    for (const transaction of atFault ? [atFault] : group) transaction.reject(reason);
    return atFault ? group.without(atFault) : new Group([]);
  }

  /**
   * While writes are refused, once in a while: each of many writes to a full disk must not cause a checkpoint, but the
   * reader that has kept the log from being truncated may have ended.
   */
  get #mayTruncate(): boolean {
    if (this.#role !== "owner") return false;
    return this.#state !== "failing" || this.#clock.timers() - this.#truncatedAtMs >= TRUNCATE_EVERY_MS;
  }

  #enter(end: WriteEnd): void {
    this.#state = STATE_AFTER[end];
  }

  /**
   * Commits a group. A disk can lack room in two ways: it has less free space than --min-free, which is known before the
   * group runs, or it is really full, which a failed write shows. Either time, truncating the log may free enough.
   * @throws {TransactionFault} when one of its transactions throws. It is at fault, unless the cause is an I/O error.
   *   Every other error is of the disk or of the file, and no transaction is at fault. Nothing of the group is written.
   * @throws {OutcomeUnknown} when the commit failed, and the group may be there after a restart
   */
  #commitGroup(group: Group): GroupRun {
    this.#polled = null;
    if (this.#damage) throw this.#damage;
    this.#endLeftOpen();
    const hasRoom = this.#hasRoom() || (this.#mayTruncate && this.#truncateLog() && this.#hasRoom());
    try {
      return this.#runGroup(group, hasRoom);
    } catch (error) {
      const isWrapped = error instanceof TransactionFault || error instanceof OutcomeUnknown;
      const cause = isWrapped ? error.cause : error;
      const isFull = toStoreError(cause) instanceof StoreFull;
      if (hasRoom && isFull && this.#mayTruncate && this.#truncateLog())
        return this.#runGroup(group, hasRoom);
      throw error;
    }
  }

  /**
   * Writes the log back into the database and truncates it. False when that fails: a reader uses the log, or the disk has
   * no room for it. Only the owner does this.
   */
  #truncateLog(): boolean {
    assert(this.#transaction === "none", "no checkpoint within a transaction");
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

  /**
   * As #runOnce(): with gathered writes and, if one of those fails, again without, to find the faulty transaction. For
   * damage no transaction is at fault.
   */
  #runGroup(group: Group, hasRoom: boolean): GroupRun {
    try {
      return this.#runOnce(group, hasRoom, true);
    } catch (error) {
      if (!(error instanceof GatherFault)) throw error;
      if (DAMAGE.test(codeOf(error.cause))) throw error.cause;
      return this.#runOnce(group, hasRoom, false);
    }
  }

  /**
   * Decides and writes a group in one commit; on any error nothing is written, and the caller may run the group again,
   * which decides again.
   *
   * The decision listeners run inside the open transaction. What they queue before they return is light, and joins the
   * group if the light line was empty when the run began, because a join takes the whole line, however long. After a join it
   * is empty again, so that a second run may join too. A listener must not read, and what it does after an `await` or
   * in a slice (lib/slices.ts) comes after the commit. The group cannot grow without end: a blocked call joins it once
   * at most, because the call hears of its result only after the commit.
   *
   * Others are served only between groups: after GROUP_MAX_MS the next transaction and those after it are left for the
   * next group.
   * @param gathers some writes may wait (gathered-writes.ts)
   * @throws {GatherFault} when one of those fails; otherwise as #commitGroup()
   */
  #runOnce(group: Group, hasRoom: boolean, gathers: boolean): GroupRun {
    const { light } = this.#queue;
    const mayJoin = light.isEmpty;
    const run: GroupRun = { hasRoom, gathers, outcomes: [], written: [], withoutRoom: [], late: [] };
    const untilMs = this.#clock.timers() + GROUP_MAX_MS;
    let isCommitting = false;
    this.#assertBetweenGroups();
    this.#begin.run();
    this.#transaction = "of a group";
    try {
      this.#noticeOtherWriters();
      for (const transaction of group) {
        if (run.outcomes.length > 0 && this.#clock.timers() > untilMs) {
          run.late = group.from(transaction);
          break;
        }
        for (const { changes } of this.#runTransaction(transaction, run))
          callEach(this.#decisionListeners, this.#onFault, changes);
        if (mayJoin && !light.isEmpty) group.join(light.take(Infinity));
      }
      this.#gathered.flush();
      for (const part of run.written) checkEventIds(part);
      isCommitting = true;
      this.#commit();
      this.#transaction = "none";
    } catch (error) {
      this.#gathered.clear();
      this.#cache.clear();
      // Comes after these, because it may throw. After a COMMIT that failed on I/O it finds no transaction, and does nothing.
      this.#rollBack();
      if (!isCommitting || !LOGGED_FAULT.test(codeOf(error))) throw error;
      this.#noteError(error);
      throw new OutcomeUnknown("The commit failed, and may be in the log of the database.", { cause: error });
    }
    return run;
  }

  /**
   * Ends the transaction of a failed group. After some errors SQLite has done that by itself.
   * @throws {Error} when ROLLBACK fails, as it does without memory; the next group or read begins with another. This error
   *   replaces the group's own, and refuses all of the group, because none of it could run again.
   */
  #rollBack(): void {
    assert(this.#transaction !== "none", "a group that failed had begun");
    try {
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
      this.#transaction = "none";
    } catch (cause) {
      this.#transaction = "left open";
      throw new Error(NOT_ROLLED_BACK, { cause });
    }
  }

  /** Precedes what must see committed rows only. */
  #endLeftOpen(): void {
    if (this.#transaction === "left open") this.#rollBack();
    this.#assertBetweenGroups();
  }

  #assertBetweenGroups(): void {
    assert(this.#transaction === "none", "a listener of decisions does not read");
    assert(!this.#db.inTransaction, "SQLite's transaction ends with its group");
    assert(this.#gathered.isEmpty, "nothing is gathered between groups");
  }

  /**
   * Decides and writes the parts of a transaction in order, and returns what they have written. A transaction that would
   * take room where there is none is set aside, and the group goes on without it.
   * @throws {TransactionFault} when it throws, or is without room although an earlier part of it has written: the whole
   *   transaction must go
   */
  #runTransaction(transaction: Transaction, run: GroupRun): readonly WrittenPart[] {
    const written: WrittenPart[] = [];
    let decision: DecidedTransaction["decision"] = UNDECIDED;
    for (const part of transaction.parts) {
      decision = this.#decide(transaction, part);
      if (changesOf(decision).length === 0) continue;
      const changes = markFeatures(changesOf(decision));
      if (!run.hasRoom && !mayUseReserve(changes)) {
        if (written.length > 0) throw new TransactionFault(transaction, noRoom());
        run.withoutRoom.push(transaction);
        return [];
      }
      written.push({ transaction, changes, eventIds: this.#write(transaction, changes, run.gathers) });
    }
    run.outcomes.push({ transaction, decision });
    run.written.push(...written);
    return written;
  }

  /** Converts an error of SQLite into one of the store. After the first sign of damage no transaction is written any more. */
  #noteError(error: unknown): unknown {
    const known = toStoreError(error);
    if (known instanceof StoreDamaged) this.#damage ??= known;
    return known;
  }

  #decide(transaction: Transaction, { load, decide }: Part): Decision<unknown> | Undecided {
    try {
      return decide(this.#load(load()));
    } catch (error) {
      throw faultOf(transaction, error);
    }
  }

  /** After the commit: notes whether writes succeed, refuses who was without room, notifies the listeners, then answers. */
  #publish({ outcomes, written, withoutRoom, hasRoom }: GroupRun): void {
    if (withoutRoom.length > 0) this.#enter("could not write");
    else if (written.length > 0) this.#enter(hasRoom ? "wrote" : "used the reserve");
    for (const transaction of withoutRoom) transaction.reject(noRoom());
    for (const { changes, eventIds } of written)
      callEach(this.#listeners, this.#onFault, changes, eventIds, "own");
    for (const outcome of outcomes) answer(outcome);
  }

  #load(load: Load): never {
    const rows: Record<string, unknown> = {};
    for (const name in load)
      rows[name] = this.#cache.load(must(load[name], "a load has a query under each of its names"));
    return rows as never; // the Loaded<L> of the caller's load, whose L a Part does not know
  }

  /** Writes the changes of one decision. Returns the ids of its events, which it may get only before the commit. */
  #write(transaction: Transaction, changes: readonly Change[], gathers: boolean): readonly number[] {
    const eventIds: number[] = [];
    try {
      for (const change of changes) {
        const isGathered = gathers && this.#gathered.add(change, eventIds);
        this.#cache.apply(change, isGathered ? 0 : this.#gathered.writeInOrder(change, eventIds));
      }
    } catch (error) {
      throw faultOf(transaction, error);
    }
    return eventIds;
  }

  /**
   * Notices commits of other processes. A process that joins the database (joinSqlite) writes no task and no node. An
   * operator with a shell may write tasks, but no nodes: the capability index would not notice. Called after BEGIN
   * IMMEDIATE: until COMMIT no other process can write.
   */
  #noticeOtherWriters(): void {
    const version = this.#dataVersion.get()?.["data_version"];
    if (version !== this.#seenVersion) this.#cache.clear();
    this.#seenVersion = version;
  }
}

/** Runs a step when the sockets have been polled: an immediate that is queued in an immediate comes after the next poll. */
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

/** Before the commit: the listeners tell the events of a transaction by the order of their ids. */
function checkEventIds({ transaction, changes, eventIds }: WrittenPart): void {
  let logged = 0;
  for (const { kind } of changes) if (kind === "event.logged") logged++;
  if (eventIds.length !== logged)
    throw new TransactionFault(transaction, broken("each logged event has one id"));
}

/** Whether a part with these changes frees space: on a full disk it may use the space that must remain. */
function mayUseReserve(changes: readonly Change[]): boolean {
  return changes.some((change) => {
    const { frees } = writeOf(change);
    return frees === "alone" ? changes.length === 1 : frees === true;
  });
}

/** The fault of a transaction, unless what failed was gathered from several. */
function faultOf(transaction: Transaction, error: unknown): Error {
  return error instanceof GatherFault ? error : new TransactionFault(transaction, error);
}

function noRoom(): StoreFull {
  return new StoreFull("The disk has less free space than --min-free.");
}

function refuseOtherSchema(version: number): void {
  const known = SQLITE_SCHEMA.version;
  if (version === known) return;
  throw new Error(
    `the database is of schema ${version}, and this luxhub knows ${known}: use the one that the hub runs`,
  );
}

const DAMAGE = /^SQLITE_(?:CORRUPT|NOTADB|IOERR_CORRUPTFS)/;
/** The operating system could not read or write. */
const DISK_FAULT = /^SQLITE_IOERR/;
/**
 * A COMMIT that failed so may be whole in the log: SQLite first writes it there, then flushes the log, then extends the
 * -shm file. If it was SQLITE_FULL, its last page is missing in the log.
 */
const LOGGED_FAULT = /^SQLITE_(?:IOERR|NOMEM)/;
/** SHMSIZE: SQLite could not extend its -shm file. */
const FULL_CODES: ReadonlySet<string> = new Set(["SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"]);

function toStoreError(error: unknown): unknown {
  const code = codeOf(error);
  if (DAMAGE.test(code)) return new StoreDamaged(error);
  if (FULL_CODES.has(code)) return new StoreFull("The disk is full.", { cause: error });
  if (code === "SQLITE_BUSY")
    return new StoreBusy("The database is locked by another process.", { cause: error });
  return error;
}
