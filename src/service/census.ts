/** Counts of stored rows, in bounded parts with other work in between. */
import type { EventKind } from "../domain/event.ts";
import { type Lane, plainLane } from "../domain/lane.ts";
import { METRICS_PART, METRICS_TYPES_READ_MAX } from "../domain/limits.ts";
import { nextTick } from "../lib/event-loop.ts";
import { partsOf } from "../lib/pages.ts";
import { backlogTypes } from "../store/sql/balancer.ts";
import { readyLanes } from "../store/sql/lanes.ts";
import {
  type NodeCounts,
  type ReadyOfLane,
  nodeCounts,
  readyOfLane,
  runningByType,
} from "../store/sql/metrics.ts";
import type { Store } from "../store/store.ts";

type Reader = Pick<Store, "read">;

/** `oldestAt`: since when the oldest of them is ready. */
export type TypeCounts = { ready: number; running: number; oldestAt: number | null };

/** The lanes with ready tasks: METRICS_TYPES_READ_MAX plain ones, and as many special ones. */
export async function lanesRead(store: Reader): Promise<readonly Lane[]> {
  const special = (await store.read(readyLanes())).values().take(METRICS_TYPES_READ_MAX);
  return [...(await plainLanes(store)), ...special];
}

/**
 * Counts the tasks by type: the ready ones of these lanes up to `most` each, the running ones up to `most` together.
 * @param note is told of each lane
 */
export async function countByType(
  store: Reader,
  most: number,
  lanes: readonly Lane[],
  note?: (lane: Lane, ready: ReadyOfLane) => void,
): Promise<Map<string, TypeCounts>> {
  const counts = new Map<string, TypeCounts>();
  for (const lane of lanes) {
    const ready = await store.read(readyOfLane(lane.name, most));
    const ofType = countsOf(counts, lane.taskType);
    ofType.ready = Math.min(ofType.ready + ready.count, most);
    ofType.oldestAt = earlier(ofType.oldestAt, ready.oldestAt);
    note?.(lane, ready);
    await nextTick();
  }
  let running = 0;
  for await (const { byType, counted } of partsOf((after) =>
    store.read(runningByType(after, METRICS_PART)),
  )) {
    for (const { taskType, count } of byType) countsOf(counts, taskType).running += count;
    running += counted;
    if (running >= most) break;
  }
  return counts;
}

export function countsOf(counts: Map<string, TypeCounts>, taskType: string): TypeCounts {
  const known = counts.get(taskType) ?? { ready: 0, running: 0, oldestAt: null };
  counts.set(taskType, known);
  return known;
}

/** Null is none. */
export function earlier(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}

/** At most METRICS_TYPES_READ_MAX of each list; also the one without a type. */
export async function plainLanes(store: Reader): Promise<readonly Lane[]> {
  const types = new Set([""]);
  for (const balanced of [false, true])
    for (const type of await store.read(backlogTypes(balanced, "", METRICS_TYPES_READ_MAX))) types.add(type);
  return [...types].map(plainLane);
}

const NODE_KINDS: readonly EventKind[] = [
  "node.registered",
  "node.online",
  "node.offline",
  "node.draining",
  "node.left",
  "node.deleted",
];

/** Kept until they are stale: they are asked for again and again. */
export class NodeCensus {
  readonly #store: Store;
  #counted: Promise<NodeCounts> | null = null;
  /** Since the last count began. */
  #isStale = true;

  /** Besides the events of the nodes. */
  constructor(store: Store, staleBy: readonly EventKind[] = []) {
    this.#store = store;
    const kinds = new Set([...NODE_KINDS, ...staleBy]);
    store.onCommit((changes) => {
      for (const change of changes)
        if (change.kind === "event.logged" && kinds.has(change.event.kind)) this.#isStale = true;
    });
  }

  count(): Promise<NodeCounts> {
    if (this.#counted !== null && !this.#isStale) return this.#counted;
    this.#isStale = false; // first: what changes meanwhile is counted the next time
    this.#counted = this.#count().catch((error: unknown) => {
      this.#isStale = true;
      throw error;
    });
    return this.#counted;
  }

  async #count(): Promise<NodeCounts> {
    let total: NodeCounts = { online: 0, draining: 0, offline: 0, luxMicro: 0n };
    for await (const part of partsOf((after) => this.#store.read(nodeCounts(after, METRICS_PART))))
      total = {
        online: total.online + part.online,
        draining: total.draining + part.draining,
        offline: total.offline + part.offline,
        luxMicro: total.luxMicro + part.luxMicro,
      };
    return total;
  }
}
