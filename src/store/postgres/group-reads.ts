/**
 * What a group of transactions looks at: each different query once, loaded together, and loaded again when a change of
 * the group has touched what it reads.
 */
import type { Change } from "../../domain/change.ts";
import type { Statements } from "./bulk-statements.ts";
import type { Connection } from "./connection.ts";
import type { Load, Param, Query } from "../store.ts";
import { EVERYTHING, readsOf, touchesOf } from "../sql/conflict-keys.ts";

/** One query and its value. */
class Cell {
  readonly query: Query<unknown>;
  readonly reads: readonly string[];
  value: unknown;
  /** By which fetch it was loaded; 0: by none. */
  loadedBy = 0;

  constructor(query: Query<unknown>) {
    this.query = query;
    this.reads = readsOf(query);
  }
}

/** The cells of one transaction's load, by its names. */
export type Look = readonly (readonly [name: string, cell: Cell])[];

export class Loads {
  /** By a query's text, and then by its parameters. */
  readonly #cells = new Map<string, Map<string, Cell>>();
  /** By a word of store/sql/conflict-keys.ts: what was loaded by this fetch, or one before it, holds no more. */
  readonly #touched = new Map<string, number>();
  #fetches = 0;

  look(load: Load): Look {
    const look: [string, Cell][] = [];
    for (const name in load) {
      const query = load[name];
      if (query) look.push([name, this.#cellOf(query)]);
    }
    return look;
  }

  /** Whether a look holds what is true now. */
  isFresh(look: Look): boolean {
    return look.every(([, cell]) => this.#holds(cell));
  }

  /** Sends what is to be loaded for these looks, and promises that it is there. */
  async fetch(connection: Connection, statements: Statements, looks: readonly Look[]): Promise<void> {
    const number = ++this.#fetches;
    const stale = new Set<Cell>();
    for (const look of looks) for (const [, cell] of look) if (!this.#holds(cell)) stale.add(cell);
    const bySql = Map.groupBy(stale, (cell) => cell.query.sql);
    await Promise.all(
      Array.from(bySql, async ([sql, cells]) => {
        const sets = cells.map((cell) => cell.query.params);
        const found = await statements.read(connection, sql, sets);
        cells.forEach((cell, i) => {
          cell.value = cell.query.shape(found[i] ?? []);
          cell.loadedBy = number;
        });
      }),
    );
  }

  /** A change was decided: whoever reads what it touches must look again. */
  touch(change: Change): void {
    for (const touched of touchesOf(change)) this.#touched.set(touched, this.#fetches);
  }

  #holds({ loadedBy, reads }: Cell): boolean {
    const last = (word: string): number => this.#touched.get(word) ?? 0;
    return loadedBy > last(EVERYTHING) && reads.every((read) => loadedBy > last(read));
  }

  #cellOf(query: Query<unknown>): Cell {
    let ofText = this.#cells.get(query.sql);
    if (!ofText) this.#cells.set(query.sql, (ofText = new Map()));
    const key = keyOf(query.params);
    let cell = ofText.get(key);
    if (!cell) ofText.set(key, (cell = new Cell(query)));
    return cell;
  }
}

/** Tells the parameters of one statement apart, which are of the same types wherever it is run. */
function keyOf(params: readonly Param[]): string {
  const [first] = params;
  if (params.length === 1 && typeof first === "string") return first;
  return JSON.stringify(params, (_, value: Param) => (typeof value === "bigint" ? String(value) : value));
}

/** The loaded values by their names. */
export function valuesOf(look: Look): never {
  const values: Record<string, unknown> = {};
  for (const [name, cell] of look) values[name] = cell.value;
  return values as never; // Loaded<L>: the names and shapes are those of the caller's load
}
