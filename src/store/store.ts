/**
 * The store's port. Its comments are the contract that every engine is tested against.
 * The store loads and saves; it never decides.
 */
import type { Change } from "../domain/change.ts";
import type { Decision, Undecided } from "../domain/decision.ts";

export type Param = string | number | bigint | null;

/** A row as the drivers give it: column name to value. */
export type Row = Readonly<Record<string, Param>>;

/** The type of a parameter, as a statement for many rows declares it. Whole numbers are BIGINT, whatever is the column's type. */
export type ParamType = "text" | "bigint";

/** A statement that many transactions load with different parameters: an engine may load it for all of them at once. */
export type ReadByKey = {
  readonly sql: string;
  readonly types: readonly ParamType[];
  /** Whether it orders its rows. */
  readonly isOrdered: boolean;
};

/** A named read: one statement, its parameters ($1, $2, …), and how its rows become a value of the domain. */
export type Query<R> = {
  readonly sql: string;
  readonly params: readonly Param[];
  readonly shape: (rows: readonly Row[]) => R;
  /**
   * Its read set, in conflict keys (store/sql/conflict-keys.ts): an engine may load it before the transactions ahead of
   * it are written, if none of them writes one of these.
   */
  readonly reads: readonly string[];
  readonly byKey?: ReadByKey;
  /** What SQLite runs in its place, for the same rows. */
  readonly onSqlite?: { readonly sql: string; readonly params: readonly Param[] };
};

/** Runs a query. */
export type Read = <R>(query: Query<R>) => Promise<R>;

/** What a decision needs: a query for each name. */
export type Load = Readonly<Record<string, Query<unknown>>>;

/** The values of a Load, by the same names. */
export type Loaded<L extends Load> = { readonly [K in keyof L]: L[K] extends Query<infer R> ? R : never };

/**
 * The only way to write: loads, decides, and saves the decision's changes in one commit.
 *
 * - Resolves with the decision's answer only when the changes are on disk: 200 means on disk.
 * - `decide` is synchronous and pure; an engine may call it more than once for one transaction.
 * - Transactions are serialisable, over all hubs on one database: of those that arrive at the same engine, the first
 *   asked is the first decided, and each sees the changes of all before it.
 * - A rejection throws Rejection and writes nothing. Undecided resolves with undefined and writes nothing.
 * - What throws in `decide` or in the store rejects this transaction alone. A commit that fails rejects the transactions
 *   that were to share it, and no other; nothing of them can be seen, and no CommitListener is notified.
 * @throws {StoreBusy} when more work waits than the engine takes.
 * @throws {StoreFull} when there is no room for the changes.
 * @throws {StoreDamaged} when what is stored is damaged.
 * @throws {StoreUnavailable} when the database is away: nothing was written.
 * @throws {OutcomeUnknown} when it went away in the middle of the commit: the changes may be on disk or not.
 */
export type Transact = {
  <L extends Load, A>(load: L, decide: (rows: Loaded<L>) => Decision<A>): Promise<A>;
  <L extends Load, A>(load: L, decide: (rows: Loaded<L>) => Decision<A> | Undecided): Promise<A | undefined>;
};

/**
 * A commit notification: one transaction that is on disk now, with the changes it wrote and the log ids of its
 * `event.logged` changes, in their order. What a listener throws is reported, and changes nothing.
 *
 * Events arrive in the order of their ids, each once, whichever hub wrote them. For the commits of other hubs the changes
 * are made from the log: the `event.logged`, a `delivery.queued` for each mailbox that may hold something new, and a
 * `key.saved` for every key when one was changed. `origin` says whether this hub wrote it.
 */
export type CommitListener = (
  changes: readonly Change[],
  eventIds: readonly number[],
  origin: Origin,
) => void;

/** Who wrote a transaction: this hub, or another one on the same database. */
export type Origin = "own" | "remote";

/**
 * `elected after a gap`: this hub is the leader, and there was none before it: nobody had the leader lease since before
 * this store was opened, so that no hub could take a heartbeat, or this store could not reach its database for longer
 * than the lease. Answered once, then `leader`.
 */
export type ElectionResult = "leader" | "elected after a gap" | "follower";

/** What a diagnostic shows of an engine. No path, address or credential. */
export type Diagnosis = {
  readonly engineVersion: string;
  readonly sizeBytes: number;
  readonly migration: number;
  /** Transactions that wait for their commit. */
  readonly queued: number;
  /** More that helps to find a fault, by engine. */
  readonly details: Readonly<Record<string, string | number | boolean>>;
};

export interface Store {
  /** The engine's name, as pg/diagnostic shows it. */
  readonly engine: "sqlite" | "postgresql";
  readonly transact: Transact;
  /**
   * False from a write that failed for lack of room, or a commit that failed for whatever reason, to the next commit
   * that wrote something; for good once what is stored was found to be damaged.
   */
  readonly writable: boolean;
  /** Reads the last committed state. */
  read<R>(query: Query<R>): Promise<R>;
  /**
   * Several reads of one snapshot, each of which may depend on the one before it: the snapshot is that of the first read,
   * whoever commits meanwhile. `reads` awaits nothing else, and reads nothing more when it has ended.
   */
  readTogether<R>(reads: (read: Read) => Promise<R>): Promise<R>;
  /**
   * The change feed: the listener is called after each commit for each transaction in it, in order, before the
   * transactions are answered; and soon after each commit of another hub on the same database.
   */
  onCommit(listener: CommitListener): void;
  /**
   * Leader election among the hubs on one database: the leader does the periodic work. There is one at most at a time;
   * when it is gone, another is elected within 15 s.
   */
  lead(): Promise<ElectionResult>;
  /** @throws {StoreUnavailable} when the database is away; its message says how, and no path, address or credential */
  diagnose(): Promise<Diagnosis>;
  /** Finishes what is queued, then releases everything. Further calls fail. */
  close(): Promise<void>;
}

/** More work waits than is taken: the caller tries again later. */
export class StoreBusy extends Error {
  override readonly name = "StoreBusy";
}

/** There is no room on the disk: nothing was written. */
export class StoreFull extends Error {
  override readonly name = "StoreFull";
}

/** For the operator, who finds it in the log. */
const AFTER_DAMAGE =
  "Stop the hub, see with luxhub doctor what is wrong, and bring a backup back with luxhub restore.";

/** What is stored is not what was written. */
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

/** The database was lost during a commit: the changes may be on disk or not. */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
}
