/**
 * What a group of transactions looks at: each different query once, loaded together, and loaded again when a change of
 * the group has touched what it reads.
 */
import type { Change } from "../domain/change.ts";
import type { Statements } from "./postgres-batch.ts";
import type { Connection } from "./postgres-connection.ts";
import type { Load, Query } from "./store.ts";
import { EVERYTHING, readsOf, touchesOf } from "./touches.ts";

/** One query and its value, while that holds. */
class Cell {
  readonly query: Query<unknown>;
  value: unknown;
  isFresh = false;

  constructor(query: Query<unknown>) {
    this.query = query;
  }
}

/** The cells of one transaction's load, by its names. */
export type Look = readonly (readonly [name: string, cell: Cell])[];

export class Loads {
  readonly #cells = new Map<string, Cell>();
  readonly #byRead = new Map<string, Cell[]>();

  look(load: Load): Look {
    return Object.entries(load).map(([name, query]) => [name, this.#cellOf(query)]);
  }

  /** Sends what is to be loaded for these looks, and promises that it is there. */
  async fetch(connection: Connection, statements: Statements, looks: readonly Look[]): Promise<void> {
    const stale = new Set(
      looks.flatMap((look) => look.map(([, cell]) => cell)).filter((cell) => !cell.isFresh),
    );
    const bySql = Map.groupBy(stale, (cell) => cell.query.sql);
    await Promise.all(
      Array.from(bySql, async ([sql, cells]) => {
        const sets = cells.map((cell) => cell.query.params);
        const found = await statements.read(connection, sql, sets);
        cells.forEach((cell, i) => {
          cell.value = cell.query.shape(found[i] ?? []);
          cell.isFresh = true;
        });
      }),
    );
  }

  /** A change was decided: whoever reads what it touches must look again. */
  touch(change: Change): void {
    for (const touched of touchesOf(change)) {
      const cells = touched === EVERYTHING ? this.#cells.values() : (this.#byRead.get(touched) ?? []);
      for (const cell of cells) cell.isFresh = false;
    }
  }

  #cellOf(query: Query<unknown>): Cell {
    const key = JSON.stringify([query.sql, ...query.params.map(String)]);
    let cell = this.#cells.get(key);
    if (!cell) {
      cell = new Cell(query);
      this.#cells.set(key, cell);
      for (const read of readsOf(query)) {
        const readers = this.#byRead.get(read);
        if (readers) readers.push(cell);
        else this.#byRead.set(read, [cell]);
      }
    }
    return cell;
  }
}

/** Whether a look holds what is true now. */
export function isFresh(look: Look): boolean {
  return look.every(([, cell]) => cell.isFresh);
}

/** The loaded values by their names. */
export function valuesOf(look: Look): never {
  // Loaded<L>: the names and shapes are those of the caller's load
  return Object.fromEntries(look.map(([name, cell]) => [name, cell.value])) as never;
}
