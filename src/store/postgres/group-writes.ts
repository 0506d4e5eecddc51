/**
 * The writes of a group commit: changes gathered into as few statements as their order allows. Changes of one statement
 * go into one batch; a change of a row that an earlier batch writes goes into a batch behind that. Running totals are
 * summed first, since every task that moves changes the same row of them.
 *
 * Invariant: the rows of one batch differ.
 */
import type { Change } from "../../domain/change.ts";
import type { NewEvent } from "../../domain/event.ts";
import { assert } from "../../lib/assert.ts";
import type { ConflictKey } from "../sql/conflict-keys.ts";
import { EVENT } from "../sql/events.ts";
import { statementsOf } from "../sql/statements.ts";
import type { Write } from "../sql/write.ts";
import { type WriteStatement, insert, whole } from "../sql/write-statement.ts";
import type { Param } from "../store.ts";
import { type Batch, writeAlone, writeTogether } from "./bulk-statements.ts";
import type { Connection } from "./connection.ts";

/** `place`: in the order of the batches. `isIndependent`: it builds on no batch before it. */
type OrderedBatch = Batch & {
  readonly columns: readonly Param[][];
  readonly place: number;
  isIndependent: boolean;
};

export type PlacedChange = {
  readonly change: Change;
  readonly write: Write<Change>;
  readonly row: ConflictKey | undefined;
};

/** Differs from SQLite's because the hub gives the ids of the log here (group-commit.ts says why). */
const LOG_EVENT = insert<{ id: number; event: NewEvent }, "events">("events", {
  id: whole(({ id }) => id),
  ...EVENT,
});

export class GroupWrites {
  readonly #batches: OrderedBatch[] = [];
  readonly #batchesOf = new Map<WriteStatement, OrderedBatch[]>();
  readonly #lastOfRow = new Map<ConflictKey, number>();
  /** Every change from now on goes behind this batch. */
  #lastSweep = -1;
  readonly #sums = new Map<Write<Change>, Map<ConflictKey | undefined, Change>>();

  /** `eventId` is the id of an `event.logged`. */
  add(placed: PlacedChange, eventId: number): void {
    const { change, write, row } = placed;
    if (change.kind === "event.logged") {
      const { columns } = this.#batchBehind(this.#lastSweep, LOG_EVENT);
      return LOG_EVENT.addRow(columns, { id: eventId, event: change.event });
    }
    if (write.isSweep) this.#placeSums();
    if (!write.sum) return this.#place(placed);
    let sums = this.#sums.get(write);
    if (!sums) this.#sums.set(write, (sums = new Map()));
    const earlier = sums.get(row);
    const total = earlier ? write.sum(earlier, change) : change;
    if (earlier && total === null) this.#place({ ...placed, change: earlier });
    sums.set(row, total ?? change);
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
    for (const [write, sums] of this.#sums)
      for (const [row, change] of sums) this.#place({ change, write, row });
    this.#sums.clear();
  }

  #place({ change, write, row }: PlacedChange): void {
    /** The last batch that it must follow. */
    let floor = write.isSweep ? this.#batches.length - 1 : this.#lastSweep;
    if (row !== undefined) floor = Math.max(floor, this.#lastOfRow.get(row) ?? -1);
    if (write.after) floor = Math.max(floor, this.#lastOfRow.get(write.after(change)) ?? -1);
    for (const statement of statementsOf(change).all) {
      const { columns, place } = this.#batchBehind(floor, statement);
      assert(place > floor, "the rows of one batch differ");
      statement.addRow(columns, change);
      floor = place;
    }
    if (row !== undefined) this.#lastOfRow.set(row, floor);
    if (write.isSweep) this.#lastSweep = floor;
  }

  /** For one more row. */
  #batchBehind(floor: number, statement: WriteStatement): OrderedBatch {
    let ofStatement = this.#batchesOf.get(statement);
    if (!ofStatement) this.#batchesOf.set(statement, (ofStatement = []));
    let batch = ofStatement.find(({ place }) => place > floor);
    if (!batch) {
      const columns = statement.types.map((): Param[] => []);
      batch = { statement, columns, place: this.#batches.length, isIndependent: true };
      this.#batches.push(batch);
      ofStatement.push(batch);
    }
    if (floor >= 0) batch.isIndependent = false;
    return batch;
  }
}
