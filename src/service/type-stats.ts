/**
 * The statistics of tasks by type.
 *
 * Stored rows are counted in bounded steps with other work in between, and each count is kept for STATS_KEPT_MS.
 */
import { fits } from "../domain/balancer.ts";
import { lackedPermanently } from "../domain/explain.ts";
import type { Lane } from "../domain/lane.ts";
import {
  METRICS_PART,
  METRICS_TYPES_READ_MAX,
  STATS_KEPT_MS,
  STATS_STUCK_MAX,
  STATS_TASKS_MAX,
  STATS_TYPES_MAX,
} from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";
import { nextTick } from "../lib/event-loop.ts";
import { partsOf } from "../lib/pages.ts";
import { readyLanes } from "../store/sql/lanes.ts";
import { firstOfLane, readyOfLane } from "../store/sql/metrics.ts";
import { type NodesAlike, nodesByAbilities, waitingByType } from "../store/sql/stats.ts";
import type { Store } from "../store/store.ts";
import type { Minutes, TypeSummary } from "./minutes.ts";
import { countByType, countsOf } from "./census.ts";
import { UseCases } from "./use-cases.ts";

/** The nodes that take a type. `free`: online, not draining, and with room for a task. */
export type Takers = Pick<NodesAlike, "registered" | "online" | "free">;

/** `taskType` "" is none. `open`: may be handed out now. `oldestOpenAt`: since when the oldest of these may be. */
export type TypeStats = {
  readonly taskType: string;
  readonly open: number;
  readonly waiting: number;
  readonly assigned: number;
  readonly oldestOpenAt: number | null;
  readonly takers: Takers;
  readonly lastHour: TypeSummary;
};

/**
 * Open tasks of one type whose requirements no online node meets. `missing`: of the registered node that comes closest;
 * null: a node that is offline has it all, or no node is registered. `taskId`: the best of the tasks.
 */
export type StuckStats = {
  readonly taskType: string;
  readonly open: number;
  readonly oldestOpenAt: number | null;
  readonly registered: number;
  readonly missing: readonly string[] | null;
  readonly taskId: string | null;
};

/**
 * `types`: those with the most tasks first; `others`: how many more there are. `stuck`: the largest lanes with
 * requirements that no online node meets.
 */
type TypesAt = {
  readonly at: number;
  readonly types: readonly TypeStats[];
  readonly others: number;
  readonly stuck: readonly StuckStats[];
};

const NOTHING_LATELY: TypeSummary = {
  completed: 0,
  failed: 0,
  toStart: { count: 0, sumMs: 0, p50Ms: null, p95Ms: null },
};

export class TypeStatistics extends UseCases {
  readonly #minutes: Minutes;
  #counted: Promise<TypesAt> | null = null;
  #countedSteady = 0;

  constructor(store: Store, clock: Clock, minutes: Minutes) {
    super(store, clock);
    this.#minutes = minutes;
  }

  read(): Promise<TypesAt> {
    const now = this.clock.steady();
    if (this.#counted !== null && now - this.#countedSteady < STATS_KEPT_MS) return this.#counted;
    this.#countedSteady = now;
    const counted = this.#count();
    counted.catch(() => {
      if (this.#counted === counted) this.#counted = null;
    });
    this.#counted = counted;
    return counted;
  }

  async #count(): Promise<TypesAt> {
    const at = this.clock.now();
    const counts = await countByType(this.store, STATS_TASKS_MAX);
    const waiting = new Map<string, number>();
    for (const { taskType, count } of await this.store.read(waitingByType(STATS_TASKS_MAX)))
      waiting.set(taskType, count);
    const lastHour = await this.#minutes.types();
    const nodes = await this.#countNodes();
    const sorted = [...new Set([...counts.keys(), ...waiting.keys(), ...lastHour.keys()])]
      .map((taskType): Omit<TypeStats, "takers"> => {
        const { ready, running, oldestAt } = countsOf(counts, taskType);
        return {
          taskType,
          open: ready,
          waiting: waiting.get(taskType) ?? 0,
          assigned: running,
          oldestOpenAt: oldestAt,
          lastHour: lastHour.get(taskType) ?? NOTHING_LATELY,
        };
      })
      .filter((type) => sizeOf(type) > 0)
      .toSorted((a, b) => sizeOf(b) - sizeOf(a) || (a.taskType < b.taskType ? -1 : 1));
    const types = sorted
      .slice(0, STATS_TYPES_MAX)
      .map((type): TypeStats => ({ ...type, takers: takersOf(type.taskType, nodes) }));
    return { at, types, others: sorted.length - types.length, stuck: await this.#findStuck(nodes) };
  }

  /** Looks at the special lanes alone: those of plain lanes need a type, and `types` has the nodes that take it. */
  async #findStuck(nodes: readonly NodesAlike[]): Promise<readonly StuckStats[]> {
    const lanes = (await this.store.read(readyLanes())).values().filter(({ requires }) => requires !== null);
    const stuck: StuckStats[] = [];
    for (const lane of lanes.take(METRICS_TYPES_READ_MAX)) {
      await nextTick();
      const takers = closest(lane, nodes);
      if (takers === null) continue;
      const { count, oldestAt } = await this.store.read(readyOfLane(lane.name, STATS_TASKS_MAX));
      if (count === 0) continue;
      const taskId = await this.store.read(firstOfLane(lane.name));
      stuck.push({ taskType: lane.taskType, open: count, oldestOpenAt: oldestAt, ...takers, taskId });
    }
    return stuck.toSorted((a, b) => b.open - a.open).slice(0, STATS_STUCK_MAX);
  }

  async #countNodes(): Promise<readonly NodesAlike[]> {
    const all: NodesAlike[] = [];
    for await (const { alike } of partsOf((after) => this.store.read(nodesByAbilities(after, METRICS_PART))))
      all.push(...alike);
    return all;
  }
}

function sizeOf({ open, waiting, assigned, lastHour }: Omit<TypeStats, "takers">): number {
  return open + waiting + assigned + lastHour.completed + lastHour.failed;
}

function takersOf(taskType: string, nodes: readonly NodesAlike[]): Takers {
  const takers = { registered: 0, online: 0, free: 0 };
  for (const alike of nodes) {
    if (!fits(alike, { taskType })) continue;
    takers.registered += alike.registered;
    takers.online += alike.online;
    takers.free += alike.free;
  }
  return takers;
}

/** The offline nodes that could take the tasks of a lane, or what is missing at all; null: an online node could. */
function closest(
  lane: Pick<Lane, "taskType" | "requires">,
  nodes: readonly NodesAlike[],
): Pick<StuckStats, "registered" | "missing"> | null {
  let registered = 0;
  let missing: readonly string[] | null = null;
  for (const alike of nodes) {
    const lacks = lackedPermanently(alike, lane);
    if (lacks.length === 0 && alike.online > 0) return null;
    if (lacks.length === 0) registered += alike.registered;
    if (missing === null || lacks.length < missing.length) missing = lacks;
  }
  return { registered, missing: registered > 0 ? null : missing };
}
