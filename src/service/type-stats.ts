/**
 * The statistics of tasks by type: what is open, waits and runs now, what the last hour brought, which nodes could take
 * more; and what holds tasks back.
 *
 * Stored rows are counted in bounded steps with other work in between, and each count is kept for STATS_KEPT_MS, however
 * many ask.
 */
import type { Takers } from "../domain/explain.ts";
import { type HeldBy, type HeldCode, takersOf } from "../domain/held.ts";
import { plainLane } from "../domain/lane.ts";
import {
  METRICS_PART,
  METRICS_TYPES_READ_MAX,
  STATS_CAUSES_MAX,
  STATS_KEPT_MS,
  STATS_TASKS_MAX,
  STATS_TYPES_MAX,
} from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";
import { partsOf } from "../lib/pages.ts";
import { waitingOfType, waitingTypes } from "../store/sql/stats.ts";
import type { Store } from "../store/store.ts";
import { countByType, countsOf, earlier } from "./census.ts";
import type { HeldTasks } from "./held-tasks.ts";
import type { Minutes, TypeSummary } from "./minutes.ts";
import { ANY_TASK, TASK_SUMMARIES, TaskLists } from "./task-lists.ts";
import { UseCases } from "./use-cases.ts";

/**
 * `taskType` "" is none. `open`: ready tasks. `oldestOpenAt`: since when the oldest of these is ready. `held`: how many of
 * them something holds back that holds their lane, and what holds the most of these.
 */
export type TypeStats = {
  readonly taskType: string;
  readonly open: number;
  readonly waiting: number;
  readonly assigned: number;
  readonly oldestOpenAt: number | null;
  readonly held: number;
  readonly heldBy: HeldBy | null;
  readonly takers: Takers;
  readonly lastHour: TypeSummary;
};

/** Tasks of a type (null: of any) that are held back alike. */
type Cause = { readonly taskType: string | null; readonly detail: string | null; readonly count: number };

/** The tasks that are held back under one code; `isExact` false: there may be more. */
export type HeldStats = {
  readonly code: HeldCode;
  readonly count: number;
  readonly isExact: boolean;
  readonly oldestAt: number | null;
  readonly causes: readonly Cause[];
};

/** `types`: those with the most tasks first; `others`: how many types there are beside them. */
type TypesAt = {
  readonly at: number;
  readonly types: readonly TypeStats[];
  readonly others: number;
  readonly held: readonly HeldStats[];
  /** The open tasks that nothing holds back. */
  readonly free: Pick<HeldStats, "count" | "isExact">;
};

const NOTHING_LATELY: TypeSummary = {
  created: 0,
  completed: 0,
  failed: 0,
  toStart: { count: 0, sumMs: 0, p50Ms: null, p95Ms: null },
};

/** Adds up what is held back. */
class HeldCounts {
  readonly #byCode = new Map<HeldCode, HeldStats>();
  readonly #byType = new Map<string, { readonly sum: number; readonly most: number; readonly by: HeldBy }>();

  add(code: HeldCode, cause: Cause, oldestAt: number | null, isExact: boolean): void {
    if (cause.count === 0 && isExact) return;
    const known = this.#byCode.get(code);
    this.#byCode.set(code, {
      code,
      count: (known?.count ?? 0) + cause.count,
      isExact: isExact && known?.isExact !== false,
      oldestAt: earlier(known?.oldestAt ?? null, oldestAt),
      causes: joined(known?.causes ?? [], cause),
    });
  }

  addToType(taskType: string, count: number, by: HeldBy): void {
    const known = this.#byType.get(taskType);
    const isMost = known === undefined || count > known.most;
    const sum = (known?.sum ?? 0) + count;
    this.#byType.set(taskType, isMost ? { sum, most: count, by } : { ...known, sum });
  }

  ofType(taskType: string): Pick<TypeStats, "held" | "heldBy"> {
    const known = this.#byType.get(taskType);
    return { held: known?.sum ?? 0, heldBy: known?.by ?? null };
  }

  get largestFirst(): readonly HeldStats[] {
    return [...this.#byCode.values()]
      .map((held) => ({ ...held, causes: held.causes.toSorted(mostFirst).slice(0, STATS_CAUSES_MAX) }))
      .toSorted(mostFirst);
  }
}

/** Those that are alike in all but their number are one. */
function joined(causes: readonly Cause[], added: Cause): readonly Cause[] {
  const isAlike = ({ taskType, detail }: Cause): boolean =>
    taskType === added.taskType && detail === added.detail;
  const known = causes.find(isAlike);
  if (known === undefined) return [...causes, added];
  return causes.map((cause) => (cause === known ? { ...known, count: known.count + added.count } : cause));
}

const mostFirst = (a: { readonly count: number }, b: { readonly count: number }): number => b.count - a.count;

export class TypeStatistics extends UseCases {
  readonly #minutes: Minutes;
  readonly #held: HeldTasks;
  readonly #lists: TaskLists<unknown>;
  #counted: Promise<TypesAt> | null = null;
  #countedSteady = 0;

  constructor(store: Store, clock: Clock, minutes: Minutes, held: HeldTasks) {
    super(store, clock);
    this.#minutes = minutes;
    this.#held = held;
    this.#lists = new TaskLists(store, TASK_SUMMARIES);
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
    const held = new HeldCounts();
    let free: TypesAt["free"] = { count: 0, isExact: true };
    const { allLanes, nodes, ...holds } = await this.#held.read();
    const counts = await countByType(this.store, STATS_TASKS_MAX, allLanes, ({ name, taskType }, ready) => {
      const by = holds.lanes.get(name);
      const { count, oldestAt } = ready;
      const isExact = count < STATS_TASKS_MAX;
      if (by === undefined) free = { count: free.count + count, isExact: free.isExact && isExact };
      else if (count > 0) {
        held.add(by.code, { taskType, detail: by.detail, count }, oldestAt, isExact);
        held.addToType(taskType, count, by);
      }
    });
    const waiting = await this.#countWaiting(held);
    for (const owners of ["creators", "groups"] as const)
      for (const [owner, by] of [...holds[owners]].slice(0, STATS_CAUSES_MAX)) {
        const { count, isExact } = await this.#countOfOwner(owners, owner, by.code);
        held.add(by.code, { taskType: null, detail: by.detail, count }, null, isExact);
        free = { count: Math.max(0, free.count - count), isExact: free.isExact && isExact };
      }
    const lastHour = await this.#minutes.types();
    const sorted = [...new Set([...counts.keys(), ...waiting.keys(), ...lastHour.keys()])]
      .map((taskType): Omit<TypeStats, "takers"> => {
        const { ready, running, oldestAt } = countsOf(counts, taskType);
        return {
          taskType,
          open: ready,
          waiting: waiting.get(taskType) ?? 0,
          assigned: running,
          oldestOpenAt: oldestAt,
          ...held.ofType(taskType),
          lastHour: lastHour.get(taskType) ?? NOTHING_LATELY,
        };
      })
      .filter((type) => sizeOf(type) > 0)
      .toSorted((a, b) => sizeOf(b) - sizeOf(a) || (a.taskType < b.taskType ? -1 : 1));
    const types = sorted
      .slice(0, STATS_TYPES_MAX)
      .map((type): TypeStats => ({ ...type, takers: takersOf(plainLane(type.taskType), nodes) }));
    return { at, types, others: sorted.length - types.length, held: held.largestFirst, free };
  }

  /** Returns how many tasks of each type wait for something of their own, up to STATS_TASKS_MAX together. */
  async #countWaiting(held: HeldCounts): Promise<ReadonlyMap<string, number>> {
    const byType = new Map<string, number>();
    let total = 0;
    for (const taskType of await this.store.read(waitingTypes(METRICS_TYPES_READ_MAX))) {
      const of = (after: number) => this.store.read(waitingOfType(taskType, after, METRICS_PART));
      for await (const { waiting } of partsOf(of)) {
        for (const { code, count, oldestAt } of waiting) {
          total += count;
          byType.set(taskType, (byType.get(taskType) ?? 0) + count);
          held.add(code, { taskType, detail: null, count }, oldestAt, total < STATS_TASKS_MAX);
        }
        if (total >= STATS_TASKS_MAX) return byType;
      }
    }
    return byType;
  }

  async #countOfOwner(
    owners: "creators" | "groups",
    owner: string,
    code: HeldCode,
  ): ReturnType<TaskLists<unknown>["count"]> {
    const filter = await this.#held.filter(code);
    const held = { ...filter, lanes: [], creators: [], groups: [], waits: [], [owners]: [owner] };
    const indexed = owners === "groups" ? { groups: [owner] } : { creatorNode: owner === "" ? null : owner };
    return this.#lists.count({ ...ANY_TASK, statuses: ["open"], ...indexed, held });
  }
}

function sizeOf({ open, waiting, assigned, lastHour }: Omit<TypeStats, "takers">): number {
  return open + waiting + assigned + lastHour.completed + lastHour.failed;
}
