/**
 * A group of transactions in one transaction of the database.
 *
 * One hub writes at a time: a group takes the write lock first and holds it until its commit is on disk. So groups are
 * serial, whichever hub they are of, as they are on SQLite: of any claims one wins, a mailbox has one taker at a time, the
 * balancer and the ledger see what is true, nothing deadlocks and nothing has to be run again. Row locks or SERIALIZABLE
 * would not let more through, because nearly every transaction changes the same rows anyway (the totals of all tasks, the
 * end of the log); they would only find that out later, by waiting in the middle or by failing.
 *
 * What makes this fast is that a group is three round trips, whatever its size: the lock; all loads; all writes and the
 * commit. Its members are those who wait when the lock is granted: under load most of them came while another hub had it.
 * They are decided in order. One that reads what a member before it has changed looks again, which takes a round trip
 * more for it and those behind it.
 *
 * The ids of the log: under the lock the newest id is what the last group left, and this group's events get the ids that
 * follow. PostgreSQL lets go of the lock after the commit can be seen. So ids become visible in their order and without
 * gaps, and a cursor never passes one that comes later. (A sequence would not do: it gives its numbers in the order of
 * asking, and a commit may overtake another.)
 */
import type { Decision, Undecided } from "../../domain/decision.ts";
import { DECIDE_AHEAD, PENDING_MAX_CHANGES } from "../../domain/limits.ts";
import type { Group, Job, Outcome, Written } from "../pending-transaction.ts";
import type { Statements, Write } from "./bulk-statements.ts";
import { type Connection, query } from "./connection.ts";
import { Loads, type Look, valuesOf } from "./group-reads.ts";
import { LOCK, SCHEMA, isMoved, schemaMoved } from "./migrations.ts";
import { Writes } from "./group-writes.ts";

/**
 * Sent as one message, in which each statement sees what was committed when it began: the server goes on by itself when
 * it has the lock. READ COMMITTED whatever is the database's default: the loads must see what the lock was waited for.
 */
const BEGIN = `BEGIN ISOLATION LEVEL READ COMMITTED; ${LOCK.write}`;
/** The newest id, and whose schema it is. With a parameter, for such a statement is planned once. */
const LAST_ID = `SELECT coalesce(max(id), $1::bigint) AS n, ${SCHEMA} AS schema FROM events`;

/** Who hears how far a group is. */
export type GroupWatch = {
  /**
   * The group has the write lock: what is committed after this id of the log is its own, until it ends. Answers the
   * group's members: whoever waits by now.
   */
  granted(lastId: number): readonly Job[];
  /** The commit is about to be sent. Answers what else belongs into it. */
  committing(group: Group): readonly Write[];
};

/**
 * Decides, writes and commits.
 * @throws what the first statement that failed threw; then nothing of the group is written, unless the connection was
 *   lost after `committing`.
 */
export async function runGroup(
  connection: Connection,
  statements: Statements,
  watch: GroupWatch,
): Promise<Group> {
  const run = new GroupRun(connection, statements);
  await run.begin(watch);
  while (run.decideOn()) await run.turn();
  await run.commit(watch);
  return run;
}

class GroupRun implements Group {
  readonly outcomes: Outcome[] = [];
  readonly written: Written[] = [];
  readonly #connection: Connection;
  readonly #statements: Statements;
  readonly #loads = new Loads();
  #jobs: readonly Job[] = [];
  #looks: readonly Look[] = [];
  #writes = new Writes();
  #pending = 0;
  #at = 0;
  #lastId = 0;

  constructor(connection: Connection, statements: Statements) {
    this.#connection = connection;
    this.#statements = statements;
  }

  async begin(watch: GroupWatch): Promise<void> {
    const begun = query(this.#connection, BEGIN);
    const last = query(this.#connection, LAST_ID, [0]);
    await allOf([begun, last]);
    const [row] = await last;
    if (isMoved(row?.["schema"])) throw schemaMoved(); // nobody moves it while we have the lock
    this.#lastId = Number(row?.["n"]);
    this.#jobs = watch.granted(this.#lastId);
    this.#looks = this.#jobs.map(({ load }) => this.#loads.look(load));
    await this.#loads.fetch(this.#connection, this.#statements, this.#looks);
  }

  /** Decides as far as what is loaded holds. False: all are decided. */
  decideOn(): boolean {
    for (; this.#at < this.#jobs.length; this.#at++) {
      const job = this.#jobs[this.#at];
      const look = this.#looks[this.#at];
      if (!job || !look) break;
      if (!this.#loads.isFresh(look) || this.#pending > PENDING_MAX_CHANGES) return true;
      this.#decide(job, look);
    }
    return false;
  }

  /** Writes what was decided, and looks again for those who come next. */
  async turn(): Promise<void> {
    const ahead = this.#looks.slice(this.#at, this.#at + DECIDE_AHEAD);
    await allOf([...this.#send(), this.#loads.fetch(this.#connection, this.#statements, ahead)]);
  }

  async commit(watch: GroupWatch): Promise<void> {
    const rest = this.#send(watch.committing(this));
    const committed = query(this.#connection, "COMMIT");
    await allOf([...rest, committed]);
    const { command } = await committed;
    if (command !== "COMMIT") throw new Error(`The database answered COMMIT with ${command}.`);
  }

  #decide(job: Job, look: Look): void {
    let decision: Decision<unknown> | Undecided;
    try {
      decision = job.decide(valuesOf(look));
    } catch (error) {
      job.reject(error); // a fault of this one alone, and nothing of it is written
      return;
    }
    this.outcomes.push({ job, decision });
    if (decision.kind !== "accepted" || decision.changes.length === 0) return;
    const eventIds: number[] = [];
    for (const change of decision.changes) {
      if (change.kind === "event.logged") eventIds.push(++this.#lastId);
      this.#writes.add(change, this.#lastId);
      this.#loads.touch(change);
    }
    this.#pending += decision.changes.length;
    this.written.push({ changes: decision.changes, eventIds });
  }

  #send(more: readonly Write[] = []): readonly Promise<void>[] {
    const sent = this.#writes.send(this.#connection, this.#statements, more);
    this.#writes = new Writes();
    this.#pending = 0;
    return sent;
  }
}

/** Waits for all, and then throws what the first of them threw: those behind it failed because it did. */
async function allOf(promises: readonly Promise<unknown>[]): Promise<void> {
  for (const end of await Promise.allSettled(promises)) if (end.status === "rejected") throw end.reason;
}
