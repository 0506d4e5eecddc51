/**
 * Runs a group of transactions in one transaction of SQLite: decides them in order, writes what they decide, and commits.
 * On any error nothing is written, and the group may run again, which decides again.
 *
 * What a decision wakes (DecisionListener), such as a blocked receive, may queue transactions that join the group: a
 * message and its taking share one flush. When the group runs again, whatever has joined stays in it, and its decisions
 * are announced again: a blocked call that was woken for nothing reads once more, and waits on.
 *
 * Invariant: between groups no transaction is open, nothing is gathered, and the row cache holds committed rows only.
 */
import type { Database, Statement } from "bun:sqlite";
import type { Change } from "../../domain/change.ts";
import { type Decision, UNDECIDED, type Undecided, changesOf } from "../../domain/decision.ts";
import { soundDecision } from "../../domain/sound.ts";
import { GROUP_MAX_MS } from "../../domain/limits.ts";
import { assert, broken, must } from "../../lib/assert.ts";
import { systemClock } from "../../lib/clock.ts";
import {
  type DecidedTransaction,
  type Group,
  type Line,
  type Transaction,
  TransactionFault,
  type Written,
  callEach,
} from "../pending-transaction.ts";
import { markFeatures } from "../sql/features.ts";
import { writeOf } from "../sql/statements.ts";
import {
  type DecisionListener,
  type Load,
  OutcomeUnknown,
  type Param,
  type Part,
  type Query,
  type Row,
} from "../store.ts";
import type { ChangeLog } from "./change-log.ts";
import type { Connection } from "./connection.ts";
import { isDamage, mayBeLogged, noRoom } from "./faults.ts";
import { GatherFault, GatheredWrites } from "./gathered-writes.ts";
import { RowCache } from "./row-cache.ts";

/** Runs the COMMIT it is given. Tests inject one that fails, because there most errors of a disk show. */
export type Commit = (commit: () => void) => void;

const NOT_ROLLED_BACK =
  "A group of transactions could not be rolled back: until it is, the database is not used.";

type WrittenPart = Written & { readonly transaction: Transaction };

/** One run of a group, which is returned only when its commit is on disk. */
export type CommitGroup = {
  readonly hasRoom: boolean;
  readonly gathers: boolean;
  readonly outcomes: DecidedTransaction[];
  readonly written: WrittenPart[];
  /** They have written nothing. */
  readonly withoutRoom: Transaction[];
  /** They are not decided. */
  late: readonly Transaction[];
  /** Its number in the change log; null without one. */
  entry: number | null;
};

/** SQLite's transaction: that of a group, which ends with the group or, when its ROLLBACK fails, is left open. */
type TransactionMode = "none" | "of a group" | "left open";

export class GroupRunner {
  readonly #db: Database;
  readonly #begin: Statement;
  readonly #commit: () => void;
  /** `PRAGMA data_version`: it changes when another process commits. */
  readonly #dataVersion: Statement<Row, Param[]>;
  #seenVersion: Param | undefined;
  readonly #gathered: GatheredWrites;
  readonly #log: ChangeLog;
  /** During a group it also has what is not committed yet. */
  readonly #cache: RowCache;
  readonly #light: Line;
  readonly #onFault: (error: unknown) => void;
  readonly #clock = systemClock();
  readonly #decisionListeners: DecisionListener[] = [];
  #transaction: TransactionMode = "none";

  constructor(
    db: Database,
    connection: Connection,
    {
      light,
      log,
      commit,
      onFault,
    }: { light: Line; log: ChangeLog; commit: Commit; onFault: (error: unknown) => void },
  ) {
    this.#db = db;
    this.#log = log;
    this.#light = light;
    this.#onFault = onFault;
    const gathered = new GatheredWrites(connection);
    this.#gathered = gathered;
    this.#cache = new RowCache((query) => gathered.read(query));
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#dataVersion = db.prepare<Row, Param[]>("PRAGMA data_version");
    const statement = db.prepare("COMMIT");
    this.#commit = () => commit(() => statement.run());
  }

  onDecision(listener: DecisionListener): void {
    this.#decisionListeners.push(listener);
  }

  read<R>(query: Query<R>): R {
    return this.#cache.load(query);
  }

  /** Reads would see what was never committed. */
  get isLeftOpen(): boolean {
    return this.#transaction === "left open";
  }

  /** Something beside the groups has written. */
  forget(): void {
    this.#cache.clear();
    this.#log.forget();
  }

  endLeftOpen(): void {
    if (this.isLeftOpen) this.#rollBack();
    this.#assertIdle();
  }

  #assertIdle(): void {
    assert(this.#transaction === "none", "a listener of decisions does not read");
    assert(!this.#db.inTransaction, "SQLite's transaction ends with its group");
    assert(this.#gathered.isEmpty, "nothing is gathered between groups");
  }

  /**
   * Runs a group: with gathered writes and, if one of those fails, again without, to find the faulty transaction.
   * @throws {TransactionFault} when one of its transactions throws; {OutcomeUnknown} when the commit failed, and the group
   *   may be there after a restart; any other error is of the disk or of the file
   */
  run(group: Group, hasRoom: boolean): CommitGroup {
    try {
      return this.#runOnce(group, hasRoom, true);
    } catch (error) {
      if (!(error instanceof GatherFault)) throw error;
      if (isDamage(error.cause)) throw error.cause;
      return this.#runOnce(group, hasRoom, false);
    }
  }

  /** Others are served only between groups: what has not begun after GROUP_MAX_MS is left for the next group. */
  #runOnce(group: Group, hasRoom: boolean, gathers: boolean): CommitGroup {
    // A join takes the whole line, however long: so only if the line was empty when the run began. The group cannot grow
    // without end: a blocked call hears of its result only after the commit, and so joins once at most.
    const mayJoin = this.#light.isEmpty;
    const run: CommitGroup = {
      hasRoom,
      gathers,
      outcomes: [],
      written: [],
      withoutRoom: [],
      late: [],
      entry: null,
    };
    const untilMs = this.#clock.timers() + GROUP_MAX_MS;
    let isCommitting = false;
    this.#assertIdle();
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
        if (mayJoin && !this.#light.isEmpty) group.join(this.#light.take(Infinity));
      }
      this.#gathered.flush();
      for (const part of run.written) checkEventIds(part);
      run.entry = this.#log.write(run.written);
      isCommitting = true;
      this.#commit();
      this.#transaction = "none";
    } catch (error) {
      this.#gathered.clear();
      this.#cache.clear();
      this.#log.clear();
      this.#rollBack(); // last, because it may throw
      if (!isCommitting || !mayBeLogged(error)) throw error;
      throw new OutcomeUnknown("The commit failed, and may be in the log of the database.", { cause: error });
    }
    return run;
  }

  /**
   * Ends the transaction of a failed group. After some errors, as of a COMMIT, SQLite has done that by itself.
   * @throws {Error} when ROLLBACK fails, as it does without memory. This error replaces the group's own, and refuses all of
   *   the group, because none of it could run again.
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

  /**
   * Decides and writes the parts of a transaction in order, and returns what they have written. A transaction that would
   * take room where there is none is set aside; if an earlier part of it has written, it is at fault.
   * @throws {TransactionFault}
   */
  #runTransaction(transaction: Transaction, run: CommitGroup): readonly WrittenPart[] {
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

  #decide(transaction: Transaction, { load, decide }: Part): Decision<unknown> | Undecided {
    try {
      return soundDecision(decide(this.#load(load())));
    } catch (error) {
      throw faultOf(transaction, error);
    }
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
   * Notices commits of other processes, after BEGIN IMMEDIATE: until COMMIT no other process can write. A process that
   * joins the database (joinSqlite) writes no task and no node. An operator with a shell may write tasks, but no nodes:
   * the capability index would not notice.
   */
  #noticeOtherWriters(): void {
    const version = this.#dataVersion.get()?.["data_version"];
    if (version !== this.#seenVersion) this.forget();
    this.#seenVersion = version;
  }
}

/** Before the commit: the listeners tell the events of a transaction by the order of their ids. */
function checkEventIds({ transaction, changes, eventIds }: WrittenPart): void {
  let logged = 0;
  for (const { kind } of changes) if (kind === "event.logged") logged++;
  if (eventIds.length !== logged)
    throw new TransactionFault(transaction, broken("each logged event has one id"));
}

/** On a full disk the part may use the space that must remain. */
function mayUseReserve(changes: readonly Change[]): boolean {
  return changes.some((change) => {
    const { frees } = writeOf(change);
    return frees === "alone" ? changes.length === 1 : frees === true;
  });
}

/** Unless what failed was gathered from several transactions. */
function faultOf(transaction: Transaction, error: unknown): Error {
  return error instanceof GatherFault ? error : new TransactionFault(transaction, error);
}
