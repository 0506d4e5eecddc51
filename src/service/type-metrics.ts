/**
 * The metrics of tasks by type, for dashboards and autoscalers: how many are ready and running, how long the oldest has
 * waited, and how long tasks wait and run.
 *
 * Invariant: at most METRICS_TYPES_MAX types have labels of their own; those that come later are counted together as
 * `other`. A type keeps its label until the hub ends, so that its numbers fall to 0 instead of vanishing.
 */
import { type Lane, plainLane } from "../domain/lane.ts";
import {
  METRICS_PART,
  METRICS_TASKS_MAX,
  METRICS_TYPES_MAX,
  METRICS_TYPES_READ_MAX,
} from "../domain/limits.ts";
import { assert } from "../lib/assert.ts";
import { SECOND_MS } from "../lib/clock.ts";
import { nextTick } from "../lib/event-loop.ts";
import { partsOf } from "../lib/pages.ts";
import { Histogram, type MetricsText } from "../lib/metrics.ts";
import { backlogTypes } from "../store/sql/balancer.ts";
import { readyLanes } from "../store/sql/lanes.ts";
import { type ReadyOfLane, readyOfLane, runningByType } from "../store/sql/metrics.ts";
import type { Store } from "../store/store.ts";

const OTHER = "other";
/** Seconds. */
const BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600, 86_400];

type Times = { readonly wait: Histogram; readonly run: Histogram };

/** The stored tasks of one label. `oldestAt`: epoch milliseconds; null when none is ready. */
type Stored = { ready: number; running: number; oldestAt: number | null };

/** The stored tasks by label. */
export type StoredTypes = ReadonlyMap<string, Readonly<Stored>>;

export class TypeMetrics {
  readonly #times = new Map<string, Times>();

  /** Counts a dispatch of a task, `ms` after it became ready; a task that is handed out again counts again. */
  waited(taskType: string, ms: number): void {
    this.#timesOf(taskType).wait.observe(ms / SECOND_MS);
  }

  /** Counts a completed task, `ms` after its last start. */
  ran(taskType: string, ms: number): void {
    this.#timesOf(taskType).run.observe(ms / SECOND_MS);
  }

  /** Counts the stored tasks in bounded steps, with other work in between. */
  async read(store: Pick<Store, "read">): Promise<StoredTypes> {
    const stored = new Map<string, Stored>();
    const storedOf = (taskType: string): Stored => {
      const label = this.#labelOf(taskType);
      const known = stored.get(label) ?? { ready: 0, running: 0, oldestAt: null };
      stored.set(label, known);
      return known;
    };
    for (const label of this.#times.keys()) storedOf(label);
    for (const [taskType, { count, oldestAt }] of await readyByType(store, METRICS_TASKS_MAX)) {
      const of = storedOf(taskType);
      of.ready += count;
      of.oldestAt = earlier(of.oldestAt, oldestAt);
    }
    for (const [taskType, count] of await countRunning(store, METRICS_TASKS_MAX))
      storedOf(taskType).running += count;
    return stored;
  }

  /** `now`: epoch milliseconds. `stored` null: only what this hub has counted. */
  write(text: MetricsText, stored: StoredTypes | null, now: number): void {
    const labelled = [...this.#times].map(([type, times]) => ({ labels: { type }, times }));
    if (stored !== null) {
      const rows = [...stored].map(([type, of]) => ({ labels: { type }, of }));
      text.gauge(
        "luxhub_type_tasks_ready",
        `Tasks that may be handed out now, by type; counted up to ${METRICS_TASKS_MAX} each.`,
        rows.map(({ labels, of }) => [labels, of.ready] as const),
      );
      text.gauge(
        "luxhub_type_tasks_running",
        `Tasks that are assigned to a node, by type; counted up to ${METRICS_TASKS_MAX} together.`,
        rows.map(({ labels, of }) => [labels, of.running] as const),
      );
      text.gauge(
        "luxhub_type_oldest_ready_age_seconds",
        "Age of the oldest task of the type that may be handed out now; 0 when there is none.",
        rows.map(({ labels, of: { oldestAt } }) => {
          const waitedMs = oldestAt === null ? 0 : Math.max(0, now - oldestAt);
          return [labels, waitedMs / SECOND_MS] as const;
        }),
      );
    }
    text.histogram(
      "luxhub_type_task_wait_seconds",
      "Time from when a task became ready to when it was handed out, each time, by type.",
      labelled.map(({ labels, times }) => [labels, times.wait] as const),
    );
    text.histogram(
      "luxhub_type_task_run_seconds",
      "Time from the last start of a task to its completion, by type.",
      labelled.map(({ labels, times }) => [labels, times.run] as const),
    );
  }

  #labelOf(taskType: string): string {
    if (!this.#times.has(taskType) && this.#times.size >= METRICS_TYPES_MAX) return OTHER;
    this.#timesOf(taskType);
    return taskType;
  }

  #timesOf(taskType: string): Times {
    const known = this.#times.get(taskType);
    if (known) return known;
    if (this.#times.size >= METRICS_TYPES_MAX && taskType !== OTHER) return this.#timesOf(OTHER);
    const times = { wait: new Histogram(BOUNDS), run: new Histogram(BOUNDS) };
    this.#times.set(taskType, times);
    assert(
      this.#times.size <= METRICS_TYPES_MAX + 1,
      "at most METRICS_TYPES_MAX types have labels, and other",
    );
    return times;
  }
}

/**
 * Counts the ready tasks by type, up to `most` each, in bounded steps with other work in between: those of
 * METRICS_TYPES_READ_MAX plain lanes, and of as many special ones.
 */
export async function readyByType(
  store: Pick<Store, "read">,
  most: number,
): Promise<ReadonlyMap<string, ReadyOfLane>> {
  const plain = await plainLanes(store);
  const special = (await store.read(readyLanes())).values().take(METRICS_TYPES_READ_MAX);
  const ready = new Map<string, ReadyOfLane>();
  for (const { name, taskType } of [...plain, ...special]) {
    const { count, oldestAt } = await store.read(readyOfLane(name, most));
    const known = ready.get(taskType);
    ready.set(taskType, {
      count: Math.min((known?.count ?? 0) + count, most),
      oldestAt: earlier(known?.oldestAt ?? null, oldestAt),
    });
    await nextTick();
  }
  return ready;
}

/** Counts the assigned tasks by type, in bounded steps, up to about `most` in all. */
export async function countRunning(
  store: Pick<Store, "read">,
  most: number,
): Promise<ReadonlyMap<string, number>> {
  const running = new Map<string, number>();
  let counted = 0;
  const parts = partsOf(async (after) => {
    const part = await store.read(runningByType(after, METRICS_PART));
    const inPart = part.reduce((sum, { count }) => sum + count, 0);
    counted += inPart;
    const isLast = inPart < METRICS_PART || counted >= most;
    return { part, next: isLast ? null : Math.max(...part.map(({ last }) => last)) };
  });
  for await (const { part } of parts)
    for (const { taskType, count } of part) running.set(taskType, (running.get(taskType) ?? 0) + count);
  return running;
}

/** The earlier of two times; null is none. */
export function earlier(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}

/** The plain lanes with ready tasks, at most METRICS_TYPES_READ_MAX of each list; also the one without a type. */
export async function plainLanes(store: Pick<Store, "read">): Promise<readonly Lane[]> {
  const types = new Set([""]);
  for (const balanced of [false, true])
    for (const type of await store.read(backlogTypes(balanced, "", METRICS_TYPES_READ_MAX))) types.add(type);
  return [...types].map(plainLane);
}
