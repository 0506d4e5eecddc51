/**
 * The statistics of tasks by type: what is open, waits and runs now, what the last hour brought, and which nodes could
 * take more.
 *
 * Stored rows are counted in bounded steps with other work in between, and each count is kept for STATS_KEPT_MS, however
 * many ask.
 */
import { fits } from "../domain/balancer.ts";
import { METRICS_PART, STATS_KEPT_MS, STATS_TASKS_MAX, STATS_TYPES_MAX } from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";
import { runningByType } from "../store/sql/metrics.ts";
import {
  type NodesAlike,
  type NodesAlikePart,
  nodesByCapabilities,
  waitingByType,
} from "../store/sql/stats.ts";
import type { Store } from "../store/store.ts";
import type { Minutes, TypeSummary } from "./minutes.ts";
import { readyByType } from "./type-metrics.ts";

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

/** `types`: those with the most tasks first; `others`: how many types there are beside them. */
export type TypesAt = { readonly at: number; readonly types: readonly TypeStats[]; readonly others: number };

type Stored = { open: number; waiting: number; assigned: number; oldestOpenAt: number | null };

const NOTHING_LATELY: TypeSummary = {
  completed: 0,
  failed: 0,
  toStart: { count: 0, sumMs: 0, p50Ms: null, p95Ms: null },
};

export class TypeStatistics {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #minutes: Minutes;
  #counted: Promise<TypesAt> | null = null;
  #countedSteady = 0;

  constructor(store: Store, clock: Clock, minutes: Minutes) {
    this.#store = store;
    this.#clock = clock;
    this.#minutes = minutes;
  }

  read(): Promise<TypesAt> {
    const now = this.#clock.steady();
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
    const at = this.#clock.now();
    const stored = await this.#countTasks();
    const lastHour = await this.#minutes.types();
    for (const taskType of lastHour.keys()) storedOf(stored, taskType);
    const nodes = await this.#countNodes();
    const sizeOf = ([taskType, { open, waiting, assigned }]: readonly [string, Stored]): number =>
      open +
      waiting +
      assigned +
      (lastHour.get(taskType)?.completed ?? 0) +
      (lastHour.get(taskType)?.failed ?? 0);
    const sorted = [...stored]
      .filter((one) => sizeOf(one) > 0)
      .toSorted((a, b) => sizeOf(b) - sizeOf(a) || (a[0] < b[0] ? -1 : 1));
    const types = sorted.slice(0, STATS_TYPES_MAX).map(([taskType, counts]): TypeStats => ({
      taskType,
      ...counts,
      takers: takersOf(taskType, nodes),
      lastHour: lastHour.get(taskType) ?? NOTHING_LATELY,
    }));
    return { at, types, others: sorted.length - types.length };
  }

  async #countTasks(): Promise<Map<string, Stored>> {
    const stored = new Map<string, Stored>();
    for (const [taskType, { count, oldestAt }] of await readyByType(this.#store, STATS_TASKS_MAX)) {
      const of = storedOf(stored, taskType);
      of.open = count;
      of.oldestOpenAt = oldestAt;
    }
    for (const { taskType, count } of await this.#store.read(waitingByType(STATS_TASKS_MAX)))
      storedOf(stored, taskType).waiting = count;
    for (let after: number | null = 0, counted = 0; after !== null && counted < STATS_TASKS_MAX;) {
      await nextTick();
      const part: readonly { taskType: string; count: number; last: number }[] = await this.#store.read(
        runningByType(after, METRICS_PART),
      );
      for (const { taskType, count } of part) storedOf(stored, taskType).assigned += count;
      const inPart = part.reduce((sum, { count }) => sum + count, 0);
      counted += inPart;
      after = inPart < METRICS_PART ? null : Math.max(...part.map(({ last }) => last));
    }
    return stored;
  }

  /** The nodes by their capabilities. */
  async #countNodes(): Promise<readonly NodesAlike[]> {
    const all: NodesAlike[] = [];
    for (let after: number | null = 0; after !== null;) {
      const part: NodesAlikePart = await this.#store.read(nodesByCapabilities(after, METRICS_PART));
      all.push(...part.alike);
      after = part.next;
      if (after !== null) await nextTick();
    }
    return all;
  }
}

function storedOf(stored: Map<string, Stored>, taskType: string): Stored {
  const known = stored.get(taskType) ?? { open: 0, waiting: 0, assigned: 0, oldestOpenAt: null };
  stored.set(taskType, known);
  return known;
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

function nextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
