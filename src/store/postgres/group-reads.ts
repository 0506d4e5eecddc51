/**
 * The reads of a group commit: each different query is loaded once for all transactions of the group. After a change of
 * the group has written one of its conflict keys, its answer is patched in memory, or else it is reloaded.
 */
import type { Change } from "../../domain/change.ts";
import { isSpecial } from "../../domain/lane.ts";
import { must } from "../../lib/assert.ts";
import { EVERYTHING } from "../sql/conflict-keys.ts";
import { NO_ROW } from "../sql/query.ts";
import { writeSetOf } from "../sql/statements.ts";
import type { Load, Needed, Param, Query, Row } from "../store.ts";
import { readMany } from "./bulk-statements.ts";
import { type Connection, query } from "./connection.ts";
import type { PlacedChange } from "./group-writes.ts";

type LoadedQuery = {
  readonly query: Query<unknown>;
  value: unknown;
  isCurrent: boolean;
  /** The number of the change. */
  change: number;
};

export type PartReads = readonly { readonly name: string; readonly loaded: LoadedQuery }[];

export class GroupReads {
  /** By a query's text, and then by its parameters. */
  readonly #queries = new Map<string, Map<string, LoadedQuery>>();
  /** By conflict key. */
  readonly #readers = new Map<string, LoadedQuery[]>();
  #changes = 0;
  /** What there is (Query.needs); as long as the group does not know, what the last one knew. */
  #there: Needed;

  constructor(there: Needed) {
    this.#there = there;
  }

  /** What the group knows since it has the write lock: what was not read, though it has rows, is read again. */
  learn(there: Needed): void {
    const before = this.#there;
    this.#there = there;
    for (const loaded of this.#all()) {
      const { needs } = loaded.query;
      if (needs !== undefined && there[needs] && !before[needs]) loaded.isCurrent = false;
    }
  }

  of(load: Load): PartReads {
    return Object.entries(load).map(([name, query]) => ({ name, loaded: this.#loadedOf(query) }));
  }

  isCurrent(reads: PartReads): boolean {
    return reads.every(({ loaded }) => loaded.isCurrent);
  }

  /** Resolves when all are loaded. */
  async fetch(connection: Connection, reads: readonly PartReads[]): Promise<void> {
    const stale = new Set<LoadedQuery>();
    for (const each of reads)
      for (const { loaded } of each) if (!loaded.isCurrent && !this.#isEmpty(loaded)) stale.add(loaded);
    const byText = Map.groupBy(stale, (loaded) => loaded.query.sql);
    await Promise.all(
      Array.from(byText.values(), async (same) => {
        const rowSets = await loadAll(
          connection,
          same.map((loaded) => loaded.query),
        );
        same.forEach((loaded, i) => {
          loaded.value = loaded.query.shape(must(rowSets[i], "a group read returns rows for each query"));
          loaded.isCurrent = true;
        });
      }),
    );
  }

  /** A query that has no row, because there is nothing of what it needs. */
  #isEmpty(loaded: LoadedQuery): boolean {
    if (loaded.query.needs === undefined || this.#there[loaded.query.needs]) return false;
    loaded.value = loaded.query.shape([]);
    loaded.isCurrent = true;
    return true;
  }

  /** A change was decided: the queries that read what it writes are patched, or out of date. */
  apply({ change, row }: PlacedChange): void {
    if (this.#queries.size === 0) return;
    this.#changes++;
    this.#there = {
      gate: this.#there.gate || OPENS_GATE.has(change.kind),
      lanes: this.#there.lanes || isInLane(change),
    };
    for (const key of writeSetOf(change, row)) {
      const readers = key === EVERYTHING ? this.#all() : this.#readers.get(key);
      if (readers) for (const loaded of readers) this.#patch(loaded, change);
    }
  }

  *#all(): Iterable<LoadedQuery> {
    for (const ofText of this.#queries.values()) yield* ofText.values();
  }

  #patch(loaded: LoadedQuery, change: Change): void {
    if (!loaded.isCurrent || loaded.change === this.#changes) return; // it may read several of the keys
    loaded.change = this.#changes;
    const value = loaded.query.patch?.(loaded.value, change);
    if (value === undefined) loaded.isCurrent = false;
    else loaded.value = value;
  }

  #loadedOf(query: Query<unknown>): LoadedQuery {
    // Queries that find no row have one text, and each its own value for that.
    if (query.sql === NO_ROW.sql) return { query, value: query.shape([]), isCurrent: true, change: 0 };
    let ofText = this.#queries.get(query.sql);
    if (!ofText) this.#queries.set(query.sql, (ofText = new Map()));
    const key = keyOf(query.params);
    let loaded = ofText.get(key);
    if (!loaded) {
      ofText.set(key, (loaded = { query, value: undefined, isCurrent: false, change: 0 }));
      for (const written of query.reads) this.#addReader(written, loaded);
    }
    return loaded;
  }

  #addReader(key: string, loaded: LoadedQuery): void {
    const readers = this.#readers.get(key);
    if (readers) readers.push(loaded);
    else this.#readers.set(key, [loaded]);
  }
}

const OPENS_GATE: ReadonlySet<Change["kind"]> = new Set(["budget.saved", "pause.saved", "limit.saved"]);

function isInLane(change: Change): boolean {
  return (change.kind === "task.created" || change.kind === "task.moved") && isSpecial(change.task.lane);
}

/** At once if they are reads by key. */
function loadAll(
  connection: Connection,
  queries: readonly Query<unknown>[],
): Promise<readonly (readonly Row[])[]> {
  const sets = queries.map(({ params }) => params);
  const [first] = queries;
  if (first?.byKey && sets.length > 1) return readMany(connection, first.byKey, sets);
  return Promise.all(queries.map(({ sql, params }) => query(connection, sql, params)));
}

/** Of one statement, whose parameters have the same types in every query. */
function keyOf(params: readonly Param[]): string {
  const [first] = params;
  if (params.length === 1 && typeof first === "string") return first;
  return JSON.stringify(params, (_, value: Param) => (typeof value === "bigint" ? String(value) : value));
}

export function valuesOf(reads: PartReads): never {
  const values: Record<string, unknown> = {};
  for (const { name, loaded } of reads) values[name] = loaded.value;
  return values as never; // Loaded<L>: the names and shapes are those of the caller's load
}
