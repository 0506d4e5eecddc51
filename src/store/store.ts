/**
 * The store's port. Its comments are the contract that every engine is tested against.
 * The store loads and saves; it never decides.
 */
import type { Change } from "../domain/change.ts";
import type { Decision, Undecided } from "../domain/decision.ts";

export type Param = string | number | bigint | null;

/** A row as the drivers give it: column name to value. */
export type Row = Readonly<Record<string, Param>>;

/** A named read: one statement, its parameters ($1, $2, …), and how its rows become a value of the domain. */
export type Query<R> = {
  readonly sql: string;
  readonly params: readonly Param[];
  readonly shape: (rows: readonly Row[]) => R;
  /**
   * What its rows depend on, in the words of store/sql/conflict-keys.ts: an engine may load it before the transactions ahead of it are
   * written, if they touch none of this. Left out: all the tables that its text names.
   */
  readonly reads?: readonly string[];
  /** What SQLite runs in its place, for the same rows. */
  readonly onSqlite?: { readonly sql: string; readonly params: readonly Param[] };
};

/** Runs a query. */
export type Read = <R>(query: Query<R>) => Promise<R>;

/** What a decision looks at: a query for each name. */
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
 *   that were to share it, and no other; nothing of them can be seen, and no CommitListener hears of them.
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
 * The news of one transaction that is on disk now: what it wrote, and the ids in the log of its `event.logged` changes,
 * in their order. What a listener throws is reported, and changes nothing.
 *
 * Events are told in the order of their ids, each once, whichever hub wrote them. Of what another hub wrote the news is
 * made from the log: its `event.logged`, a `delivery.queued` for each mailbox that may hold something new, and a
 * `key.saved` for every key when one was changed. `origin` says whether this hub wrote it.
 */
export type CommitListener = (
  changes: readonly Change[],
  eventIds: readonly number[],
  origin: "own" | "remote",
) => void;

/**
 * `ours after a gap`: it is ours, and since before this store was opened nobody had it, so that no hub was there whom
 * a heartbeat could have reached; or this store could not reach its database for so long that the turn ran out. Told once.
 */
export type Turn = "ours" | "ours after a gap" | "another's";

/** What a diagnostic can tell of an engine. No path, address or credential. */
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
   * Several reads of one moment, each of which may follow from what the one before it found: all that `reads` asks of its
   * argument is answered as of the first of them, whoever commits meanwhile. It waits for nothing else, and asks for
   * nothing more when it has ended.
   */
  readTogether<R>(reads: (read: Read) => Promise<R>): Promise<R>;
  /**
   * Called after each commit for each transaction in it, in order, before the transactions are answered; and for what
   * other hubs on the same database commit, soon after it.
   */
  onCommit(listener: CommitListener): void;
  /** Whose the periodic work is, of all hubs on the database: one's at a time; of one that is gone, another's in 15 s. */
  turn(): Promise<Turn>;
  /** @throws {StoreUnavailable} when the database is away; its message says how, and no path, address or credential */
  diagnose(): Promise<Diagnosis>;
  /** Finishes what is queued, then lets go of everything. Further calls fail. */
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

/** The database was lost in the middle of a commit: nobody can tell whether it is on disk. */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
}
