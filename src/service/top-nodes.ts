/**
 * The leaderboard of task/stats: the nodes with the most completed tasks. It is cached, because an index of this order
 * would cost a write for every completed task, and is rarely read.
 *
 * Invariant: the answer is current. The event log shows which tasks were completed since the last read, and a completed
 * task can only move its own node up. After the deletion of a task or node, all nodes are read again.
 */
import { TOP_NODES_MAX, TOP_NODES_STEPS_MAX } from "../domain/limits.ts";
import type { Node } from "../domain/model.ts";
import { completersAfter, firstEventId, lastEventId, lastEventOf } from "../store/sql/events.ts";
import { deletedNodesCount, nodesById, topNodes } from "../store/sql/nodes.ts";
import type { Store } from "../store/store.ts";

/** `nodes` is read last. */
type Cached = {
  /** Of the newest task.completed and of the newest event. */
  readonly completed: number;
  readonly last: number;
  /** Changes when a task or node is deleted, and when a deleted node registers again. */
  readonly deleted: string;
  readonly nodes: readonly Node[];
};

export class TopNodes {
  readonly #store: Store;
  #cached: Cached | null = null;

  constructor(store: Store) {
    this.#store = store;
  }

  /** By completed tasks, then LUX; without nodes that completed none. */
  async read(): Promise<readonly Node[]> {
    const last = await this.#store.read(lastEventId());
    const completed = await this.#store.read(lastEventOf("task.completed"));
    const deleted = [
      await this.#store.read(lastEventOf("task.deleted")),
      await this.#store.read(lastEventOf("node.deleted")),
      await this.#store.read(deletedNodesCount()),
    ].join();
    const cached = await this.#current();
    const same = cached?.completed === completed && cached.deleted === deleted ? cached.nodes : null;
    const nodes =
      same ??
      (cached?.deleted === deleted ? await this.#updated(cached) : null) ??
      (await this.#store.read(topNodes(TOP_NODES_MAX)));
    this.#cached = { completed, deleted, last, nodes };
    return nodes;
  }

  /** Null if events since then were pruned, which may have changed the order. */
  async #current(): Promise<Cached | null> {
    const cached = this.#cached;
    return cached && (await this.#store.read(firstEventId())) <= cached.last + 1 ? cached : null;
  }

  /** Null when too many nodes completed a task since. */
  async #updated({ last, nodes }: Cached): Promise<readonly Node[] | null> {
    const completers = await this.#store.read(completersAfter(last, TOP_NODES_STEPS_MAX));
    if (completers.length === TOP_NODES_STEPS_MAX) return null;
    const ids = new Set([...nodes.map(({ nodeId }) => nodeId), ...completers]);
    const found = await this.#store.read(nodesById([...ids]));
    return found.toSorted(byRank).slice(0, TOP_NODES_MAX);
  }
}

/** As in the query topNodes. */
function byRank(a: Node, b: Node): number {
  return (
    b.tasksCompleted - a.tasksCompleted ||
    Number(b.luxEarnedMicro - a.luxEarnedMicro) ||
    (a.nodeId < b.nodeId ? -1 : 1)
  );
}
