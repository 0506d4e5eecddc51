/**
 * The nodes that have completed the most, kept from one question to the next: an index of their order would be written
 * to by every task that is completed, and is read by few.
 *
 * Invariant: the answer is what the store holds now. The log tells what happened since the last one: a task that was
 * completed can only bring its own node forward; after one that was deleted all are looked at again.
 */
import { TOP_NODES_MAX, TOP_NODES_STEPS_MAX } from "../domain/limits.ts";
import type { Node } from "../domain/model.ts";
import { completersAfter, firstEventId, lastEventId, lastEventOf } from "../store/sql/events.ts";
import { nodesById, topNodes } from "../store/sql/nodes.ts";
import type { Store } from "../store/store.ts";

/** `completed`, `deleted`, `last`: the newest events of those kinds and of all when the nodes were read, or ones before. */
type Known = {
  readonly completed: number;
  readonly deleted: number;
  readonly last: number;
  readonly nodes: readonly Node[];
};

export class TopNodes {
  readonly #store: Store;
  #known: Known | null = null;

  constructor(store: Store) {
    this.#store = store;
  }

  /** By completed tasks, then LUX; without who completed nothing. */
  async read(): Promise<readonly Node[]> {
    const last = await this.#store.read(lastEventId());
    const completed = await this.#store.read(lastEventOf("task.completed"));
    const deleted = await this.#store.read(lastEventOf("task.deleted"));
    const known = await this.#toldOn();
    const same = known?.completed === completed && known.deleted === deleted ? known.nodes : null;
    const nodes =
      same ??
      (known?.deleted === deleted ? await this.#after(known) : null) ??
      (await this.#store.read(topNodes(TOP_NODES_MAX)));
    this.#known = { completed, deleted, last, nodes };
    return nodes;
  }

  /** What was known, if all that happened since is still in the log: what was pruned may have changed it. */
  async #toldOn(): Promise<Known | null> {
    const known = this.#known;
    return known && (await this.#store.read(firstEventId())) <= known.last + 1 ? known : null;
  }

  /** What was known, with the nodes that completed a task since; null when those are many. */
  async #after({ last, nodes }: Known): Promise<readonly Node[] | null> {
    const completers = await this.#store.read(completersAfter(last, TOP_NODES_STEPS_MAX));
    if (completers.length === TOP_NODES_STEPS_MAX) return null;
    const ids = new Set([...nodes.map(({ nodeId }) => nodeId), ...completers]);
    const found = await this.#store.read(nodesById([...ids]));
    return found.toSorted(byRank).slice(0, TOP_NODES_MAX);
  }
}

/** The order of the query topNodes. */
function byRank(a: Node, b: Node): number {
  return (
    b.tasksCompleted - a.tasksCompleted ||
    Number(b.luxEarnedMicro - a.luxEarnedMicro) ||
    (a.nodeId < b.nodeId ? -1 : 1)
  );
}
