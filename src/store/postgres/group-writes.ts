/**
 * The writes of a group commit: changes gathered into as few statements as their order allows. Changes of one statement
 * go into one batch; a change of a row that an earlier batch writes goes into a batch behind that. Running totals are
 * summed first, since every task that moves changes the same row of them.
 *
 * Invariant: the rows of one batch differ.
 */
import type { Change } from "../../domain/change.ts";
import type { NewEvent } from "../../domain/event.ts";
import type { ConflictKey } from "../sql/conflict-keys.ts";
import { EVENT, statementOf, writeOf } from "../sql/statements.ts";
import { type WriteStatement, insert, whole } from "../sql/write-statement.ts";
import type { Param } from "../store.ts";
import { type Batch, writeAlone, writeTogether } from "./bulk-statements.ts";
import type { Connection } from "./connection.ts";

/** `isIndependent`: it builds on no batch before it. */
type OrderedBatch = Batch & { readonly rows: (readonly Param[])[]; isIndependent: boolean };

/** Differs from SQLite's because the hub gives the ids of the log here (group-commit.ts says why). */
const LOG_EVENT = insert<{ id: number; event: NewEvent }>("events", { id: whole(({ id }) => id), ...EVENT });

export class GroupWrites {
  readonly #batches: OrderedBatch[] = [];
  /** In order. */
  readonly #batchesOf = new Map<WriteStatement, number[]>();
  readonly #lastOfRow = new Map<ConflictKey, number>();
  /** Every change from now on goes behind this batch. */
  #lastSweep = -1;
  /** Sums, by row. */
  readonly #sums = new Map<string, Change>();

  /** `eventId` is the id of an `event.logged`. */
  add(change: Change, eventId: number): void {
    const { sum, row, isSweep } = writeOf(change);
    if (isSweep) this.#placeSums();
    if (change.kind === "event.logged") {
      this.#place(change, LOG_EVENT, LOG_EVENT.params({ id: eventId, event: change.event }));
    } else if (sum) {
      const key = `${change.kind} ${row?.(change)}`;
      const earlier = this.#sums.get(key);
      const total = earlier ? sum(earlier, change) : change;
      if (earlier && total === null) this.#placeChange(earlier);
      this.#sums.set(key, total ?? change);
    } else this.#placeChange(change);
  }

  /**
   * Sends everything, and `more`, which builds on nothing: first, as one message, what builds on nothing. The promises
   * are for the answers, which the caller awaits together.
   */
  send(connection: Connection, more: readonly Batch[] = []): readonly Promise<unknown>[] {
    this.#placeSums();
    const [independent = [], dependent = []] = [true, false].map((which) =>
      this.#batches.filter(({ isIndependent }) => isIndependent === which),
    );
    return [
      ...writeTogether(connection, [...independent, ...more]),
      ...dependent.flatMap((batch) => writeAlone(connection, batch)),
    ];
  }

  #placeSums(): void {
    for (const sum of this.#sums.values()) this.#placeChange(sum);
    this.#sums.clear();
  }

  #placeChange(change: Change): void {
    const statement = statementOf(change);
    this.#place(change, statement, statement.params(change));
  }

  #place(change: Change, statement: WriteStatement, params: readonly Param[]): void {
    const { row, after, isSweep } = writeOf(change);
    const newest = this.#batches.length - 1;
    const ofStatement = this.#batchesOf.get(statement) ?? [];
    const own = row?.(change);
    /** The last batch that it must follow. */
    let floor = isSweep ? newest : this.#lastSweep;
    for (const key of [own, after?.(change)])
      if (key !== undefined) floor = Math.max(floor, this.#lastOfRow.get(key) ?? -1);
    const at = ofStatement.find((place) => place > floor) ?? newest + 1;
    const batch = this.#batches[at] ?? { statement, rows: [], isIndependent: true };
    if (at > newest) {
      this.#batches.push(batch);
      this.#batchesOf.set(statement, [...ofStatement, at]);
    }
    batch.rows.push(params);
    if (floor >= 0) batch.isIndependent = false;
    if (own !== undefined) this.#lastOfRow.set(own, at);
    if (isSweep) this.#lastSweep = at;
  }
}
