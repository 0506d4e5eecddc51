/**
 * The metrics of tasks by type, for dashboards and autoscalers: how many are ready and running, how long the oldest has
 * waited, and how long tasks wait and run.
 *
 * Invariant: at most METRICS_TYPES_MAX types have labels of their own; those that come later are counted together as
 * `other`. A type keeps its label until the hub ends, so that its numbers fall to 0 instead of vanishing.
 */
import { METRICS_TASKS_MAX, METRICS_TYPES_MAX } from "../domain/limits.ts";
import { assert } from "../lib/assert.ts";
import { SECOND_MS } from "../lib/clock.ts";
import { Histogram } from "../lib/histogram.ts";
import type { MetricsText } from "../lib/metrics.ts";
import type { Store } from "../store/store.ts";
import { type TypeCounts, countByType, countsOf, earlier, lanesRead } from "./census.ts";

const OTHER = "other";
/** Seconds. */
const BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600, 86_400];

type Times = { readonly wait: Histogram; readonly run: Histogram };

/** The stored tasks by label. */
export type StoredTypes = ReadonlyMap<string, Readonly<TypeCounts>>;

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
    const stored = new Map<string, TypeCounts>();
    for (const label of this.#times.keys()) countsOf(stored, label);
    const counts = await countByType(store, METRICS_TASKS_MAX, await lanesRead(store));
    for (const [taskType, { ready, running, oldestAt }] of counts) {
      const ofLabel = countsOf(stored, this.#labelOf(taskType));
      ofLabel.ready += ready;
      ofLabel.running += running;
      ofLabel.oldestAt = earlier(ofLabel.oldestAt, oldestAt);
    }
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
