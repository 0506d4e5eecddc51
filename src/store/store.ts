/**
 * The store's port. Its comments are the contract that every engine is tested against.
 * The store loads and saves; it never decides.
 */
import type { Change, Notified } from "../domain/change.ts";
import {
  type Accepted,
  type Also,
  type Decision,
  type Rejected,
  Rejection,
  type Undecided,
} from "../domain/decision.ts";

export type Param = string | number | bigint | null;

export type Row = Readonly<Record<string, Param>>;

/** The type of a parameter in a bulk statement. Whole numbers are BIGINT, whatever the column's type is. */
export type ParamType = "text" | "bigint";

/** A read that many transactions run with different parameters: an engine may load it for all of them at once. */
export type ReadByKey = {
  readonly sql: string;
  readonly types: readonly ParamType[];
  readonly isOrdered: boolean;
};

/** Which optional things there are: Query.needs. */
export type Needed = { readonly gate: boolean; readonly lanes: boolean };

/** A named read: one statement, its parameters ($1, $2, …), and how its rows become a value of the domain. */
export type Query<R> = {
  readonly sql: string;
  readonly params: readonly Param[];
  readonly shape: (rows: readonly Row[]) => R;
  /**
   * Its read set, in conflict keys (store/sql/conflict-keys.ts): an engine may load it before earlier transactions are
   * written, if none of them writes one of these keys. On SQLite, what is gathered is written before the query only then.
   */
  readonly reads: readonly string[];
  /**
   * What it answers after a change that writes one of these keys, as a new value; undefined when the change does not say
   * that: then it must be loaded again. For a query that many transactions of one group would make stale.
   */
  patch?(value: R, change: Change): R | undefined;
  readonly byKey?: ReadByKey;
  /**
   * Set if an engine that is the only writer may keep the answer in memory (store/sqlite/row-cache.ts). `as` and `id`
   * together name all that the answer depends on: two queries with the same pair have the same answer.
   */
  readonly cached?: {
    readonly as: "task" | "node" | "candidates" | "ready" | "usage" | "gate" | "gift" | "lanes" | "ledger";
    readonly id: string;
  };
  /**
   * It has no row while there are none of these, and an engine need not run it then: `gate`: budgets, pauses or limits;
   * `lanes`: unfinished tasks in special lanes.
   */
  readonly needs?: keyof Needed;
  /** SQLite runs this instead, for the same rows. */
  readonly onSqlite?: SqliteQuery & {
    /** Runs if that finds no row, when the nodes of these types are ranked (store/sqlite/capability-index.ts). */
    readonly otherwise?: SqliteQuery & { readonly ranks: readonly string[] };
  };
};

type SqliteQuery = { readonly sql: string; readonly params: readonly Param[] };

export type Read = <R>(query: Query<R>) => Promise<R>;

export type Load = Readonly<Record<string, Query<unknown>>>;

export type Loaded<L extends Load> = { readonly [K in keyof L]: L[K] extends Query<infer R> ? R : never };

export type Part = {
  /**
   * Pure, but that it may depend on what the parts before it have decided. It is called when the transaction is queued, to
   * weigh it, and again before each decision of the part: only the last call counts.
   */
  readonly load: () => Load;
  readonly decide: (rows: never) => Decision<unknown> | Undecided;
};

declare class OfTransaction {
  readonly #isOnDisk: true; // private, so that neither a literal nor a copy of the object has it
}

/** What a transaction decided and committed: only transact returns it. (What is no object needs no such proof.) */
export type Committed<A> = A extends object ? A & OfTransaction : A;

declare const takes: unique symbol;

declare class OfNoTransaction {
  readonly #isRepeatedOtherwise: true;
}

/** What a use case returns that writes: what its transaction decided, or what it says of itself with uncommitted(). */
export type Answer<A> = Committed<A> | (A extends object ? A & OfNoTransaction : A);

/** An answer that no transaction decided: a repeat with the same Idempotency-Key does not get this one. */
export function uncommitted<A>(answer: A): Answer<A> {
  return answer as Answer<A>; // the types of this file tell such answers apart; at run time they are the same
}

/**
 * The only way to write: loads, decides, and saves the decision's changes in one commit.
 *
 * - Resolves with the decision's answer only when the changes are on disk: 200 means on disk.
 * - `decide` is synchronous and pure, but that it may read the clock: a transaction may wait long for its turn, and is
 *   decided by the time at which it has it. An engine may call `decide` more than once for one transaction: the last call
 *   counts, and what a use case needs besides the answer, the decision carries (transactAlso).
 * - Transactions are serialisable, over all hubs on one database. Those of one engine are decided in order of arrival,
 *   except that light ones overtake heavy ones (store/pending-transaction.ts), and each sees the changes of all before it.
 * - A rejection throws Rejection, and writes nothing but what stores it for a repeat. Undecided resolves with undefined and writes nothing.
 * - The parts `before` share its transaction, all or nothing: they are decided and written first, in order, and each
 *   sees the changes of all before it. A part that is rejected or undecided writes nothing and stops nothing; an error
 *   in one of them is an error in the whole. Their decisions are not returned: their `decide` may keep them.
 * - An error in `decide` or in the store rejects only this transaction. A failed commit, or an I/O error of SQLite in one
 *   of them, rejects the transactions that share the commit, and no other; none of their changes is visible, and no
 *   CommitListener is notified. Except after OutcomeUnknown, none of their changes is there after a restart either.
 * - `Transact<A>` takes only decisions whose answer is an A: whoever passes it on knows how to encode that answer.
 * @throws {StoreBusy} when the queue is full.
 * @throws {StoreFull} when there is no room for the changes.
 * @throws {StoreDamaged} when the database is damaged.
 * @throws {StoreUnavailable} when the database cannot be reached: nothing was written.
 * @throws {OutcomeUnknown} when the connection was lost during the commit: the changes may be on disk or not. On SQLite,
 *   when the commit failed: the changes are not visible, but may be there after a restart before the next commit.
 */
export type Transact<A = unknown> = {
  <L extends Load, T extends A>(
    load: L,
    decide: (rows: Loaded<L>) => Decision<T>,
    before?: readonly Part[],
  ): Promise<Committed<T>>;
  <L extends Load, T extends A>(
    load: L,
    decide: (rows: Loaded<L>) => Decision<T> | Undecided,
    before?: readonly Part[],
  ): Promise<Committed<T> | undefined>;
  /** Only a type: the compiler compares overloads without their type parameters, and so needs this to compare A. */
  readonly [takes]?: (answer: A) => void;
};

/** A decision that may carry something for its use case. */
type Carrying<D, E> = (D & Partial<Also<E>>) | Rejected;

/** As `transact`; resolves also with what the decision carries. */
export function transactAlso<A, L extends Load, T extends A, E>(
  transact: Transact<A>,
  load: L,
  decide: (rows: Loaded<L>) => Carrying<Accepted<T>, E>,
): Promise<{ readonly answer: Committed<T> } & Partial<Also<E>>>;
export function transactAlso<A, L extends Load, T extends A, E>(
  transact: Transact<A>,
  load: L,
  decide: (rows: Loaded<L>) => Carrying<Accepted<T> | Undecided, E>,
): Promise<{ readonly answer: Committed<T> | undefined } & Partial<Also<E>>>;
export async function transactAlso<A, L extends Load, T extends A, E>(
  transact: Transact<A>,
  load: L,
  decide: (rows: Loaded<L>) => Carrying<Accepted<T> | Undecided, E>,
): Promise<{ readonly answer: Committed<T> | undefined } & Partial<Also<E>>> {
  let carried: Partial<Also<E>> = {}; // the only variable that a decision writes: its last call counts
  const answer = await transact(load, (rows) => {
    const decision = decide(rows);
    carried = decision.kind === "rejected" ? {} : decision;
    return decision;
  });
  return { answer, ...("also" in carried ? { also: carried.also } : {}) };
}

/** Makes of a transaction one that loads more, and whose decision is changed or refused. Its answer stays. */
export type Around<A = unknown> = <B extends A>(transact: Transact<B>) => Transact<B>;

/**
 * @param more what else is loaded: under names with a space, which those of use cases have not
 * @param change what becomes of a decision. An undecided transaction stays so.
 */
export function around<A, R extends Load>(
  more: () => R,
  change: <T extends A>(decision: Decision<T>, rows: Loaded<R>) => Decision<T>,
): Around<A> {
  return <B extends A>(transact: Transact<B>): Transact<B> => {
    function changed<L extends Load, T extends B>(
      load: L,
      decide: (rows: Loaded<L>) => Decision<T>,
      before?: readonly Part[],
    ): Promise<Committed<T>>;
    function changed<L extends Load, T extends B>(
      load: L,
      decide: (rows: Loaded<L>) => Decision<T> | Undecided,
      before?: readonly Part[],
    ): Promise<Committed<T> | undefined>;
    function changed<T extends B>(
      load: Load,
      decide: (rows: Loaded<Load>) => Decision<T> | Undecided,
      before?: readonly Part[],
    ): Promise<Committed<T> | undefined> {
      const both: Load & R = { ...load, ...more() };
      return transact(
        both,
        (rows) => {
          const decision = decide(rows);
          return decision.kind === "undecided" ? decision : change(decision, rows);
        },
        before,
      );
    }
    return changed;
  };
}

/** The first is the nearest to the use case: it is the first to get the decision. */
export function withAround<A>(transact: Transact<A>, arounds: readonly (Around<A> | null)[]): Transact<A> {
  return arounds.reduceRight((inner, next) => next?.(inner) ?? inner, transact);
}

/**
 * A commit notification: one part of a transaction that is on disk now, with its changes and the log ids of its
 * `event.logged` changes, in order. A transaction of many parts, such as a batch, is many notifications.
 *
 * Events arrive in the order of their ids, each once, whichever hub wrote them. For the commits of other hubs the changes
 * are derived from the log: each `event.logged`, a `delivery.queued` for each mailbox that may have a new message, and a
 * `key.saved` for every key when one was changed. Beside that, `output.changed` says which tasks have new output,
 * `work.offered` which tasks wait for a worker, and `work.missed` that such a notification may have been lost. `origin`
 * says whether this hub wrote it.
 */
export type CommitListener = (
  changes: readonly Notified[],
  eventIds: readonly number[],
  origin: Origin,
) => void;

/**
 * Hears of the changes of each part of a transaction of this hub when they are decided. On SQLite that is before their
 * commit, and a light transaction that the listener queues at once usually shares that commit (`#runOnce` in
 * sqlite/group-runner.ts); the listener must not read. The commit may fail, or the group be decided again, and then the
 * listener is called again. On PostgreSQL it is called after the commit.
 */
export type DecisionListener = (changes: readonly Notified[]) => void;

/**
 * A group of this hub was committed: how many transactions it had, and how long it took from its beginning until its
 * commit was on disk. Called for each group: it must be cheap.
 */
export type GroupListener = (transactions: number, ms: number) => void;

/** Who wrote a transaction: this hub, or another one on the same database. */
export type Origin = "own" | "remote";

/**
 * `elected after a gap`: this hub is the leader, after a time without one: no hub has held the leader lease since before
 * this store was opened, so no hub could accept a heartbeat, or this store could not reach its database for longer than
 * the lease. Returned once, then `leader`.
 */
export type ElectionResult = "leader" | "elected after a gap" | "follower";

/** What a diagnostic shows of an engine. No path, address or credential. */
export type Diagnosis = {
  readonly engineVersion: string;
  readonly sizeBytes: number;
  readonly migration: number;
  /** Parts of transactions. */
  readonly queued: number;
  /** Further facts about the engine, for finding a fault. */
  readonly details: Readonly<Record<string, string | number | boolean>>;
};

/** One group commit, as a copy of the database runs it again (store/sqlite/change-log.ts). `at`: epoch milliseconds. */
export type Entry = { readonly n: number; readonly at: number; readonly body: string };

/**
 * Where a database stands. `term`: one more than the promotions so far. `n`, `at`: of the last entry; null while no log is
 * kept. Number and time together name an entry: a restored database, or a log that was begun anew, may use numbers again.
 */
export type Standing = {
  readonly term: number;
  readonly n: number | null;
  readonly at: number | null;
};

/** Waits until a copy has an entry; null: nobody asked for that. */
export type Confirmation = (n: number) => Promise<void> | null;

/** The change log of an engine that is copied entry by entry. */
export interface ChangeLogStore {
  standing(): Standing;
  keep(isKept: boolean): void;
  /**
   * Oldest first, as many as `maxBytes` takes, and at least one if there is one.
   * @throws {EntryMissing} when the entry of this number and time is no longer there, or never was
   */
  after(last: Pick<Entry, "n" | "at">, maxBytes: number): readonly Entry[];
  /** When the entry after this one was written; null when it is not there. */
  timeAfter(n: number): number | null;
  /** Whose bytes a copy needs before it has their records, and whether the entry changes the schema. */
  alsoIn(entry: Entry): { readonly files: readonly string[]; readonly migrates: boolean };
  /** Deletes all entries before this one. */
  forgetBefore(n: number): void;
  /** Deletes the oldest entries, so that the others take no more than this. */
  forgetBeyond(bytes: number): void;
  /** On a copy, whose reads and change feed then show them. @throws {EntryMissing} and then changes nothing */
  apply(entries: readonly Entry[]): void;
  /** Makes this copy the original: a new term, epochs that no hub has handed out, and the event hub.promoted. */
  promote(at: number): void;
  /** From now on the answer to a write waits for this, and fails as it fails. */
  confirmBy(confirmation: Confirmation): void;
  /** From now on writes fail with this; null: they succeed again. */
  refuse(reason: Error | null): void;
}

/** An entry does not follow the last one of a copy, or is no longer there. */
export class EntryMissing extends Error {
  override readonly name = "EntryMissing";
}

/** What the log says before a migration, which may take minutes. */
export const MIGRATING = "migrating the database; the hub answers when it has ended";

export interface Store {
  /** The engine's name, as pg/diagnostic shows it. */
  readonly engine: "sqlite" | "postgresql";
  readonly transact: Transact;
  /**
   * False after a write that found no room, or a failed commit, until the next commit that writes something. A commit
   * that only a deletion could make, in the space that must remain (--min-free), does not count: it makes this false.
   * Always false once damage was found. Also false while there is no standby, without which nothing may be written; but
   * not of a copy, which another hub writes.
   */
  readonly writable: boolean;
  /** Parts of transactions. */
  readonly queued: number;
  /**
   * Called when a transaction was answered: resolves when the event loop has polled the sockets since its commit, so that
   * a caller who hung up during the commit is known to be gone. Engines differ in where their commits end in the loop.
   */
  socketsPolled(): Promise<void>;
  /** Reads the last committed state. */
  read<R>(query: Query<R>): Promise<R>;
  /**
   * Several reads between which this hub commits nothing, each of which may depend on the one before it. On PostgreSQL they
   * are of one snapshot, which the first read takes; on SQLite only a command beside the hub may commit between them.
   * `reads` must await nothing but its reads, and must not read after it has ended.
   */
  readTogether<R>(reads: (read: Read) => Promise<R>): Promise<R>;
  /**
   * The change feed: the listener is called after each commit for each part in it that has written, in order, before the
   * transactions are answered; and soon after each commit of another hub on the same database. An error of a listener, of
   * whatever kind, is reported, and changes nothing.
   */
  onCommit(listener: CommitListener): void;
  onDecision(listener: DecisionListener): void;
  onGroup(listener: GroupListener): void;
  /** Null on PostgreSQL, which has its own replication. */
  readonly changes: ChangeLogStore | null;
  /**
   * Leader election among the hubs on one database: the leader does the periodic work. There is at most one leader;
   * after it fails, another is elected within 15 s.
   */
  lead(): Promise<ElectionResult>;
  /** @throws {StoreUnavailable} when the database cannot be reached; its message has no path, address or credential */
  diagnose(): Promise<Diagnosis>;
  /** Finishes the queued transactions, then releases everything. Further calls fail. */
  close(): Promise<void>;
}

/** Nothing was written: the queue is full, or others keep the database. The message says which. The caller tries again later. */
export class StoreBusy extends Error {
  override readonly name = "StoreBusy";
}

/** There is no room on the disk: nothing was written. */
export class StoreFull extends Error {
  override readonly name = "StoreFull";
}

/** For the operator, who finds it in the log. */
const AFTER_DAMAGE =
  "Stop the hub, run luxhub doctor to see what is wrong, and restore a backup with luxhub restore.";

/** The database does not hold what was written to it. */
export class StoreDamaged extends Error {
  override readonly name = "StoreDamaged";

  constructor(cause: unknown) {
    const what = cause instanceof Error ? cause.message : String(cause);
    super(`The database is damaged (${what}). ${AFTER_DAMAGE}`, { cause });
  }
}

/** The database cannot be reached: nothing was written, and the caller tries again later. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** Another hub accepts writes: this one is its copy, or was superseded by it. Nothing was written. */
export class StoreReadOnly extends Error {
  override readonly name = "StoreReadOnly";
  readonly code: "standby" | "superseded" | "no_standby";

  constructor(code: StoreReadOnly["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** A commit failed in such a way that the changes may be on disk or not. */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
}

/**
 * Runs, at once, a transaction that joins the group commit of another one (see DecisionListener), and repeats it alone if
 * perhaps only that group failed. Does not repeat it when the database cannot be reached, nor when its outcome is unknown:
 * it may be on disk, and a repeat would take a second message or task.
 */
export async function joinGroup<A>(run: () => Promise<A>): Promise<A> {
  try {
    return await run();
  } catch (error) {
    const isFinal =
      error instanceof Rejection || error instanceof StoreUnavailable || error instanceof OutcomeUnknown;
    if (isFinal) throw error;
    return run();
  }
}
