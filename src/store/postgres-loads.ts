/**
 * What a group of transactions looks at: each different query once, loaded together, and loaded again when a change of
 * the group has touched what it reads.
 */
import type { Change } from "../domain/change.ts";
import type { Statements } from "./postgres-batch.ts";
import type { Connection } from "./postgres-connection.ts";
import type { Load, Param, Query } from "./store.ts";
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
  /** By a query's text, and then by its parameters. */
  readonly #cells = new Map<string, Map<string, Cell>>();
  readonly #byRead = new Map<string, Cell[]>();

  look(load: Load): Look {
    return Object.entries(load).map(([name, query]) => [name, this.#cellOf(query)]);
  }

  /** Sends what is to be loaded for these looks, and promises that it is there. */
  async fetch(connection: Connection, statements: Statements, looks: readonly Look[]): Promise<void> {
    const stale = new Set<Cell>();
    for (const look of looks) for (const [, cell] of look) if (!cell.isFresh) stale.add(cell);
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
      if (touched === EVERYTHING) this.#touchAll();
      else for (const cell of this.#byRead.get(touched) ?? NOBODY) cell.isFresh = false;
    }
  }

  #touchAll(): void {
    for (const cells of this.#cells.values()) for (const cell of cells.values()) cell.isFresh = false;
  }

  #cellOf(query: Query<unknown>): Cell {
    let ofText = this.#cells.get(query.sql);
    if (!ofText) this.#cells.set(query.sql, (ofText = new Map()));
    const key = keyOf(query.params);
    let cell = ofText.get(key);
    if (!cell) {
      cell = new Cell(query);
      ofText.set(key, cell);
      for (const read of readsOf(query)) {
        const readers = this.#byRead.get(read);
        if (readers) readers.push(cell);
        else this.#byRead.set(read, [cell]);
      }
    }
    return cell;
  }
}

const NOBODY: readonly Cell[] = [];

/** Tells the parameters of one statement apart, which are of the same types wherever it is run. */
function keyOf(params: readonly Param[]): string {
  const [first] = params;
  if (params.length === 1 && typeof first === "string") return first;
  return JSON.stringify(params, (_, value: Param) => (typeof value === "bigint" ? String(value) : value));
}

/** Whether a look holds what is true now. */
export function isFresh(look: Look): boolean {
  return look.every(([, cell]) => cell.isFresh);
}

/** The loaded values by their names. */
export function valuesOf(look: Look): never {
  const values: Record<string, unknown> = {};
  for (const [name, cell] of look) values[name] = cell.value;
  return values as never; // Loaded<L>: the names and shapes are those of the caller's load
}
