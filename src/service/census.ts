/** A count of a table's rows that is cheap to ask for again and again: bounded steps, and a result that is kept. */
import type { EventKind } from "../domain/event.ts";
import { METRICS_PART } from "../domain/limits.ts";
import { type NodeCounts, type Part, nodeCounts } from "../store/sql/metrics.ts";
import type { Query, Store } from "../store/store.ts";

/** Events after which the number of nodes in each state may be another. */
export const NODE_KINDS: ReadonlySet<EventKind> = new Set([
  "node.registered",
  "node.online",
  "node.offline",
  "node.draining",
  "node.left",
  "node.deleted",
]);

/** Counts a table part by part, with other work in between, and keeps the result until it is stale. */
export class Census<Counts extends object> {
  readonly #store: Store;
  readonly #part: (after: number, limit: number) => Query<Part<Counts>>;
  readonly #none: Counts;
  readonly #add: (a: Counts, b: Counts) => Counts;
  #counted: Promise<Counts> | null = null;
  /** What is counted may have changed since the last count began. */
  isStale = true;

  constructor(
    store: Store,
    part: (after: number, limit: number) => Query<Part<Counts>>,
    none: Counts,
    add: (a: Counts, b: Counts) => Counts,
  ) {
    this.#store = store;
    this.#part = part;
    this.#none = none;
    this.#add = add;
  }

  count(): Promise<Counts> {
    if (this.#counted !== null && !this.isStale) return this.#counted;
    this.isStale = false; // first: what changes meanwhile is counted the next time
    this.#counted = this.#count().catch((error: unknown) => {
      this.isStale = true;
      throw error;
    });
    return this.#counted;
  }

  async #count(): Promise<Counts> {
    let counted = this.#none;
    for (let after: number | null = 0; after !== null;) {
      const part: Part<Counts> = await this.#store.read(this.#part(after, METRICS_PART));
      counted = this.#add(counted, part);
      after = part.next;
      if (after !== null) await new Promise((resolve) => setImmediate(resolve));
    }
    return counted;
  }
}

/** Of the nodes. */
export function nodeCensus(store: Store): Census<NodeCounts> {
  const none = { online: 0, draining: 0, offline: 0, luxMicro: 0n };
  return new Census(store, nodeCounts, none, (a, b) => ({
    online: a.online + b.online,
    draining: a.draining + b.draining,
    offline: a.offline + b.offline,
    luxMicro: a.luxMicro + b.luxMicro,
  }));
}
