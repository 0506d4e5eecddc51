/**
 * The order of the reads and writes of a group commit. Some writes can wait: new events and ledger entries, the changed
 * states of tasks, and running totals, which are summed by row. So a group writes the totals of all tasks once, and runs
 * each statement many times in a row, which is faster than in turns with others. What is gathered is written before a
 * query reads one of its rows, before another write of a task, before a sweep, and before the commit.
 *
 * Invariant: what is gathered commutes with what is written meanwhile (`sum` in store/sql/write.ts; #isBefore() here).
 */
import { assert } from "../../lib/assert.ts";
import type { Change } from "../../domain/change.ts";
import { writeOf, writeSetOf } from "../sql/statements.ts";
import type { Query } from "../store.ts";
import type { Connection } from "./connection.ts";

/** An event, and where its id goes when it is written. */
type GatheredEvent = { readonly change: Change; readonly eventIds: number[] };

/** A gathered change could not be written: it is not known whose it was. */
export class GatherFault extends Error {
  override readonly name = "GatherFault";

  constructor(cause: unknown) {
    super("A gathered change could not be written.", { cause });
  }
}

export class GatheredWrites {
  readonly #connection: Connection;
  readonly #events: GatheredEvent[] = [];
  readonly #entries: Change[] = [];
  readonly #moves: Change[] = [];
  /** By row; of a table with one row, by the kind of the change. */
  readonly #sums = new Map<string, Change>();
  /** Gathered changes (no events) whose write sets are not in #writtenKeys yet: few groups ask for those. */
  readonly #added: Change[] = [];
  readonly #writtenKeys = new Set<string>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get isEmpty(): boolean {
    return this.#events.length + this.#entries.length + this.#moves.length + this.#sums.size === 0;
  }

  read<R>(query: Query<R>): R {
    if (this.#isReadBy(query)) this.flush();
    return this.#connection.read(query);
  }

  writeInOrder(change: Change, eventIds: number[]): number {
    if (this.#isBefore(change)) this.flush();
    const rowId = this.#connection.write(change);
    if (change.kind === "event.logged") eventIds.push(rowId);
    return rowId;
  }

  /**
   * Takes a change if it can wait. `eventIds` gets the id of an event once it is written. No heartbeat: it would gain
   * nothing, and its row is that of `node.tallied`, with which it would be merged.
   */
  add(change: Change, eventIds: number[]): boolean {
    if (change.kind === "event.logged") {
      this.#events.push({ change, eventIds });
      return true;
    }
    const { sum, row } = writeOf(change);
    if (sum && change.kind !== "node.beaten") {
      const key = row?.(change) ?? change.kind;
      const earlier = this.#sums.get(key);
      assert(!earlier || earlier.kind === change.kind, "no two kinds of changes that are summed share a row");
      const total = earlier ? sum(earlier, change) : change;
      if (total === null) this.flush(); // too large a sum
      this.#sums.set(key, total ?? change);
    } else if (change.kind === "lux.entered") this.#entries.push(change);
    else if (change.kind === "task.moved") this.#moves.push(change);
    else return false;
    this.#added.push(change);
    return true;
  }

  /** The change cannot wait. */
  #isBefore(change: Change): boolean {
    const { isSweep, statement } = writeOf(change);
    return (
      isSweep === true ||
      (this.#moves.length > 0 && statement.table === "tasks" && change.kind !== "task.created")
    );
  }

  #isReadBy({ reads }: Query<unknown>): boolean {
    if (reads.length === 0) return false;
    if (this.#events.length > 0 && reads.includes("events")) return true;
    for (const change of this.#added) for (const key of writeSetOf(change)) this.#writtenKeys.add(key);
    this.#added.length = 0;
    return this.#writtenKeys.size > 0 && reads.some((key) => this.#writtenKeys.has(key));
  }

  /** @throws {GatherFault} */
  flush(): void {
    try {
      for (const sum of this.#sums.values()) this.#connection.write(sum);
      for (const move of this.#moves) this.#connection.write(move);
      for (const entry of this.#entries) this.#connection.write(entry);
      for (const { change, eventIds } of this.#events) eventIds.push(this.#connection.write(change));
    } catch (error) {
      throw new GatherFault(error);
    }
    this.clear();
  }

  clear(): void {
    this.#sums.clear();
    this.#moves.length = 0;
    this.#entries.length = 0;
    this.#events.length = 0;
    this.#added.length = 0;
    this.#writtenKeys.clear();
  }
}
