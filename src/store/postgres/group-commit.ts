/**
 * Group commit: many transactions in one transaction of the database.
 *
 * One hub writes at a time: a group takes the write lock first and holds it until its commit is on disk. So groups are
 * serial over all hubs, as they are on SQLite: of several claims one wins, a mailbox has one receiver at a time, the
 * balancer and the ledger see the truth, nothing deadlocks and nothing must be repeated. Row locks or SERIALIZABLE would
 * not let more through: nearly every transaction changes the same rows (the totals of all tasks, the end of the log), and
 * would find that out later, by waiting in the middle or by failing.
 *
 * A group is two or three round trips, and one more for each LOAD_AHEAD parts of a large batch, because the driver
 * pipelines what is prepared: the lock, in quiet times with the loads; the loads of the transactions that come until it is
 * granted; all writes and the commit.
 * A group is the transactions that wait when the lock is granted: under load most of them come while another hub holds
 * the lock. Their parts are decided in order, and the changes of each part are applied in memory to the rows that later
 * parts have loaded: a node or a task that many parts change is loaded once. A read that cannot be patched
 * (`Query.patch`) is reloaded, which costs one more round trip.
 *
 * What this is worth, measured in turns with a plainer group commit (two hubs, 64 callers; task cycles per second, and in
 * brackets the processor time of hubs and server for one cycle): with each part loaded in its turn, and each change
 * written by a statement of its own, single requests keep 38 % (1.6 -> 4.0 ms), batches 28 % (1.4 -> 4.9 ms) and
 * task/next 33 %. With conflict keys, but without patches, they keep 47 %, 25 % and 28 %.
 *
 * The ids of the log: under the lock the newest id is what the last group left, and this group's events get the ids that
 * follow. PostgreSQL releases the lock after the commit is visible. So ids become visible in order and without gaps, and
 * a cursor never passes an id that appears later. (A sequence gives its numbers in the order of asking, and one commit
 * may overtake another.)
 */
import { type Decision, type Undecided, changesOf } from "../../domain/decision.ts";
import { soundDecision } from "../../domain/sound.ts";
import { DECIDE_AHEAD, LOAD_AHEAD, PENDING_MAX_CHANGES } from "../../domain/limits.ts";
import {
  type DecidedGroup,
  type DecidedTransaction,
  type Transaction,
  TransactionFault,
  type Written,
} from "../pending-transaction.ts";
import { markFeatures } from "../sql/features.ts";
import { writeOf } from "../sql/statements.ts";
import type { Needed, Part } from "../store.ts";
import type { Batch } from "./bulk-statements.ts";
import { type Session, query } from "./connection.ts";
import { GroupReads, type PartReads, valuesOf } from "./group-reads.ts";
import { GroupWrites } from "./group-writes.ts";
import { SCHEMA, WRITE_LOCK, isMigrated, schemaIsMigrated } from "./migrate.ts";

/** The newest id, the schema, and what there is (Query.needs). The parameter makes the driver prepare it. */
const LAST_ID = `
  SELECT coalesce(max(id), $1::bigint) AS n, ${SCHEMA} AS schema,
    CASE WHEN EXISTS (SELECT 1 FROM budgets) OR EXISTS (SELECT 1 FROM pauses) OR EXISTS (SELECT 1 FROM limits)
      THEN 1 ELSE 0 END AS gate,
    CASE WHEN EXISTS (SELECT 1 FROM tasks WHERE lane IS NOT NULL AND status IN ('open', 'assigned'))
      THEN 1 ELSE 0 END AS lanes
  FROM events`;

/** What the last group of a session found: then the next one loads it early, with the rest. */
const THERE = new WeakMap<Session, Needed>();
const NOTHING: Needed = { gate: false, lanes: false };

export type GroupWatch = {
  /** To load before the lock is granted. */
  waiting(): readonly Transaction[];
  /** What is committed after this id of the log is its own, until it ends. Returns the transactions that wait now. */
  granted(lastId: number): readonly Transaction[];
  /** A group with many reloads may take long in all. */
  reloaded(): void;
  /** Returns what else belongs into it. */
  committing(group: DecidedGroup): readonly Batch[];
};

/**
 * Decides, writes and commits. When it throws, nothing of the group is written, unless the connection was lost after
 * `committing`.
 * @throws {TransactionFault} when a part of a transaction with several throws; else what the first statement that failed
 *   threw
 */
export async function runGroup(session: Session, watch: GroupWatch): Promise<DecidedGroup> {
  const run = new PostgresGroup(session);
  await run.begin(watch);
  while (run.decide()) {
    await run.writeAndReload();
    watch.reloaded();
  }
  await run.commit(watch);
  return run;
}

/** `reads` null: it is not loaded. */
type PendingPart = { readonly transaction: Transaction; readonly part: Part; reads: PartReads | null };

class PostgresGroup implements DecidedGroup {
  readonly outcomes: DecidedTransaction[] = [];
  readonly written: Written[] = [];
  readonly #session: Session;
  readonly #reads: GroupReads;
  #parts: readonly PendingPart[] = [];
  /** Those of transactions that wait too. */
  readonly #known = new Map<Transaction, readonly PendingPart[]>();
  #writes = new GroupWrites();
  #pending = 0;
  #at = 0;
  #lastId = 0;

  constructor(session: Session) {
    this.#session = session;
    this.#reads = new GroupReads(THERE.get(session) ?? NOTHING);
  }

  async begin(watch: GroupWatch): Promise<void> {
    // Whatever the database's default: each statement behind the lock must see what the lock was waited for.
    const begun = this.#session`BEGIN ISOLATION LEVEL READ COMMITTED`.execute();
    const locked = query(this.#session, WRITE_LOCK.sql, WRITE_LOCK.params);
    const last = query(this.#session, LAST_ID, [0]);
    const early = this.#fetch(firstOf(this.#partsOf(watch.waiting())));
    early.catch(() => {}); // what those before it throw comes first
    await allOf([begun, locked, last]);
    const [row] = await last;
    if (isMigrated(row?.["schema"])) throw schemaIsMigrated(); // it cannot change while we have the lock
    this.#lastId = Number(row?.["n"]);
    const there: Needed = { gate: row?.["gate"] === 1, lanes: row?.["lanes"] === 1 };
    THERE.set(this.#session, there);
    this.#parts = this.#partsOf(watch.granted(this.#lastId));
    await early;
    this.#reads.learn(there);
    await this.#fetch(firstOf(this.#parts));
  }

  /** As long as what they read is current. False: all are decided. */
  decide(): boolean {
    for (const { reads, ...next } of this.#parts.slice(this.#at)) {
      if (reads === null || !this.#reads.isCurrent(reads) || this.#pending > PENDING_MAX_CHANGES) return true;
      this.#decide(next, reads);
      this.#at++;
    }
    return false;
  }

  async writeAndReload(): Promise<void> {
    const count = this.#parts[this.#at]?.reads === null ? LOAD_AHEAD : DECIDE_AHEAD;
    const next = this.#parts.slice(this.#at, this.#at + count);
    await allOf([...this.#send(), this.#fetch(next)]);
  }

  async commit(watch: GroupWatch): Promise<void> {
    const rest = this.#send(watch.committing(this));
    const committed = this.#session`COMMIT`.execute();
    await allOf([...rest, committed]);
    const { command } = await committed;
    if (command !== "COMMIT") throw new Error(`The database answered COMMIT with ${command}.`);
  }

  #decide({ transaction, part }: Omit<PendingPart, "reads">, reads: PartReads): void {
    let decision: Decision<unknown> | Undecided;
    try {
      decision = soundDecision(part.decide(valuesOf(reads)));
    } catch (error) {
      // What its other parts have written must go, too.
      if (transaction.parts.length > 1) throw new TransactionFault(transaction, error);
      transaction.reject(error); // only this transaction is at fault, and it writes nothing
      return;
    }
    if (part === transaction.parts.at(-1)) this.outcomes.push({ transaction, decision });
    if (changesOf(decision).length === 0) return;
    const eventIds: number[] = [];
    const changes = markFeatures(changesOf(decision));
    for (const change of changes) {
      if (change.kind === "event.logged") eventIds.push(++this.#lastId);
      const write = writeOf(change);
      const placed = { change, write, row: write.row?.(change) };
      this.#writes.add(placed, this.#lastId);
      this.#reads.apply(placed);
    }
    this.#pending += changes.length;
    this.written.push({ changes, eventIds });
  }

  #partsOf(transactions: readonly Transaction[]): readonly PendingPart[] {
    return transactions.flatMap((transaction) => {
      let parts = this.#known.get(transaction);
      if (!parts) {
        parts = transaction.parts.map((part) => ({ transaction, part, reads: null }));
        this.#known.set(transaction, parts);
      }
      return parts;
    });
  }

  #fetch(parts: readonly PendingPart[]): Promise<void> {
    return this.#reads.fetch(
      this.#session,
      parts.map((pending) => (pending.reads ??= this.#reads.of(pending.part.load()))),
    );
  }

  #send(more: readonly Batch[] = []): readonly Promise<unknown>[] {
    const sent = this.#writes.send(this.#session, more);
    this.#writes = new GroupWrites();
    this.#pending = 0;
    return sent;
  }
}

/**
 * What a group loads before it decides: all parts, but few of a large batch, whose time may be over before it comes to the
 * others (then these load nothing).
 */
function firstOf(parts: readonly PendingPart[]): readonly PendingPart[] {
  const isOne = parts.every(({ transaction }) => transaction === parts[0]?.transaction);
  return isOne ? parts.slice(0, LOAD_AHEAD) : parts;
}

/** Then throws what the first of them threw: those behind it failed because it did. */
async function allOf(promises: readonly Promise<unknown>[]): Promise<void> {
  for (const end of await Promise.allSettled(promises)) if (end.status === "rejected") throw end.reason;
}
