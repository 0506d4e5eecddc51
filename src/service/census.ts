/** The numbers of nodes, which are cheap to ask for again and again: counted in bounded steps, and kept while they hold. */
import type { EventKind } from "../domain/event.ts";
import { METRICS_PART } from "../domain/limits.ts";
import { partsOf } from "../lib/pages.ts";
import { type NodeCounts, nodeCounts } from "../store/sql/metrics.ts";
import type { Store } from "../store/store.ts";

/** Events that may change the number of nodes in a state. */
export const NODE_KINDS: ReadonlySet<EventKind> = new Set([
  "node.registered",
  "node.online",
  "node.offline",
  "node.draining",
  "node.left",
  "node.deleted",
]);

/** Counts the nodes part by part, with other work in between, and keeps the result until it is stale. */
export class NodeCensus {
  readonly #store: Store;
  #counted: Promise<NodeCounts> | null = null;
  /** What is counted may have changed since the last count began. */
  isStale = true;

  constructor(store: Store) {
    this.#store = store;
  }

  count(): Promise<NodeCounts> {
    if (this.#counted !== null && !this.isStale) return this.#counted;
    this.isStale = false; // first: what changes meanwhile is counted the next time
    this.#counted = this.#count().catch((error: unknown) => {
      this.isStale = true;
      throw error;
    });
    return this.#counted;
  }

  async #count(): Promise<NodeCounts> {
    let counted: NodeCounts = { online: 0, draining: 0, offline: 0, luxMicro: 0n };
    for await (const part of partsOf((after) => this.#store.read(nodeCounts(after, METRICS_PART))))
      counted = {
        online: counted.online + part.online,
        draining: counted.draining + part.draining,
        offline: counted.offline + part.offline,
        luxMicro: counted.luxMicro + part.luxMicro,
      };
    return counted;
  }
}
