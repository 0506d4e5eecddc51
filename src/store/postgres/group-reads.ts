/**
 * The reads of a group commit: each different query is loaded once for all transactions of the group, and reloaded after
 * a change of the group has written one of its conflict keys. A query that can patch its answer is reloaded only when that
 * fails.
 */
import type { Change } from "../../domain/change.ts";
import { EVERYTHING } from "../sql/conflict-keys.ts";
import { writeSetOf } from "../sql/statements.ts";
import type { Load, Param, Query, Row } from "../store.ts";
import { readMany } from "./bulk-statements.ts";
import { type Connection, query } from "./connection.ts";

/** One query, and what it answered. */
type LoadedQuery = {
  readonly query: Query<unknown>;
  value: unknown;
  /** The number of the fetch that loaded it; 0: none did. */
  loadedBy: number;
};

/** The queries of one transaction's load, by their names. */
export type JobReads = readonly (readonly [name: string, loaded: LoadedQuery])[];

export class GroupReads {
  /** By a query's text, and then by its parameters. */
  readonly #queries = new Map<string, Map<string, LoadedQuery>>();
  /** Those of them that patch what they answered. */
  readonly #patching: LoadedQuery[] = [];
  /** By conflict key: what this fetch loaded, or one before it, is out of date. */
  readonly #writtenAfter = new Map<string, number>();
  #fetches = 0;

  of(load: Load): JobReads {
    return Object.entries(load).map(([name, query]) => [name, this.#loadedOf(query)] as const);
  }

  isCurrent(reads: JobReads): boolean {
    return reads.every(([, loaded]) => this.#isCurrent(loaded));
  }

  /** Sends the queries that are not loaded or out of date, and resolves when all are loaded. */
  async fetch(connection: Connection, reads: readonly JobReads[]): Promise<void> {
    const number = ++this.#fetches;
    const stale = new Set(reads.flatMap((each) => each.map(([, loaded]) => loaded)));
    for (const loaded of stale) if (this.#isCurrent(loaded)) stale.delete(loaded);
    const byText = Map.groupBy(stale, (loaded) => loaded.query.sql);
    await Promise.all(
      Array.from(byText.values(), async (same) => {
        const found = await loadAll(
          connection,
          same.map((loaded) => loaded.query),
        );
        same.forEach((loaded, i) => {
          loaded.value = loaded.query.shape(found[i] ?? []);
          loaded.loadedBy = number;
        });
      }),
    );
  }

  /** A change was decided: the queries that read what it writes are patched, or out of date. */
  invalidate(change: Change): void {
    for (const key of writeSetOf(change)) this.#writtenAfter.set(key, this.#fetches);
    for (const loaded of this.#patching) {
      if (loaded.loadedBy === 0) continue;
      const value = loaded.query.patch?.(loaded.value, change) ?? null;
      if (value === null) loaded.loadedBy = 0;
      else loaded.value = value;
    }
  }

  #isCurrent({ loadedBy, query }: LoadedQuery): boolean {
    const isNewer = (key: string): boolean => loadedBy > (this.#writtenAfter.get(key) ?? 0);
    return isNewer(EVERYTHING) && query.reads.every(isNewer);
  }

  #loadedOf(query: Query<unknown>): LoadedQuery {
    let ofText = this.#queries.get(query.sql);
    if (!ofText) this.#queries.set(query.sql, (ofText = new Map()));
    const key = keyOf(query.params);
    let loaded = ofText.get(key);
    if (!loaded) {
      ofText.set(key, (loaded = { query, value: undefined, loadedBy: 0 }));
      if (query.patch) this.#patching.push(loaded);
    }
    return loaded;
  }
}

/** Runs queries of one text: at once if they are reads by key. */
function loadAll(
  connection: Connection,
  queries: readonly Query<unknown>[],
): Promise<readonly (readonly Row[])[]> {
  const sets = queries.map(({ params }) => params);
  const [first] = queries;
  if (first?.byKey && sets.length > 1) return readMany(connection, first.byKey, sets);
  return Promise.all(queries.map(({ sql, params }) => query(connection, sql, params)));
}

/** Identifies the parameters among those of one statement, which have the same types in every query. */
function keyOf(params: readonly Param[]): string {
  const [first] = params;
  if (params.length === 1 && typeof first === "string") return first;
  return JSON.stringify(params, (_, value: Param) => (typeof value === "bigint" ? String(value) : value));
}

/** The loaded values by their names. */
export function valuesOf(reads: JobReads): never {
  const values: Record<string, unknown> = {};
  for (const [name, { value }] of reads) values[name] = value;
  return values as never; // Loaded<L>: the names and shapes are those of the caller's load
}
