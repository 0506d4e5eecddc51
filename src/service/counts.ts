/**
 * What a hub counts of its own commits: the one place where a change becomes numbers.
 *
 * Since the hub began, for /metrics (metrics.ts): events by kind, LUX, and the times of each type. By minute, for
 * stats/minutes and stats/types (minutes.ts, history.ts, type-stats.ts): Numbers.
 */
import type { Notified } from "../domain/change.ts";
import type { EventKind, NewEvent } from "../domain/event.ts";
import { METRICS_TYPES_MAX, MINUTE_TYPES_MAX } from "../domain/limits.ts";
import { paidBy } from "../domain/lux.ts";
import { isCancelled } from "../domain/failure-kinds.ts";
import type { Task } from "../domain/model.ts";
import { must } from "../lib/assert.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/clock.ts";
import { Histogram, type StoredHistogram } from "../lib/histogram.ts";
import type { Store } from "../store/store.ts";

/** Milliseconds. */
const BOUNDS_MS: readonly number[] = [
  ...[10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 20, 30].map((s) => s * SECOND_MS),
  ...[1, 2, 5, 10, 20, 30].map((min) => min * MINUTE_MS),
  ...[1, 2, 6, 12].map((h) => h * HOUR_MS),
  ...[1, 7].map((days) => days * DAY_MS),
];
/** Of Prometheus; seconds. */
const BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600, 86_400];

/** `toStart`: at each dispatch. */
type TypeNumbers = { created: number; completed: number; failed: number; readonly toStart: Histogram };

type StoredTypes = Readonly<
  Record<string, { created?: number; completed: number; failed: number; toStart: StoredHistogram }>
>;
type StoredNumbers = Partial<Counters> & {
  readonly toStart?: StoredHistogram;
  readonly toFinish?: StoredHistogram;
  readonly types?: StoredTypes;
};

export type Counters = Record<(typeof COUNTERS)[number], number>;

const COUNTERS = [
  "created",
  "started",
  "completed",
  "attemptsFailed",
  "failed",
  "cancelled",
  "luxMicro",
  "messages",
] as const;

/** The counter that an event adds to, whatever its data. */
const COUNTER_OF: { readonly [K in EventKind]?: (typeof COUNTERS)[number] } = {
  "task.created": "created",
  "message.sent": "messages",
  "task.attempt_failed": "attemptsFailed",
  "task.timed_out": "attemptsFailed",
  "task.requeued": "attemptsFailed",
};

/** Of a minute or of a longer period. */
export class Numbers implements Counters {
  created = 0;
  started = 0;
  completed = 0;
  attemptsFailed = 0;
  failed = 0;
  cancelled = 0;
  luxMicro = 0;
  messages = 0;
  readonly toStart: Histogram;
  readonly toFinish: Histogram;
  /** At most MINUTE_TYPES_MAX, the first ones. */
  readonly types = new Map<string, TypeNumbers>();

  /** `json`: what toJSON() made, in an older build without the counters that came later. */
  constructor(json = "{}") {
    const { types = {}, toStart, toFinish, ...counters } = JSON.parse(json) as StoredNumbers;
    Object.assign(this, counters);
    this.toStart = times(toStart);
    this.toFinish = times(toFinish);
    for (const [type, stored] of Object.entries(types))
      this.types.set(type, { created: 0, ...stored, toStart: times(stored.toStart) });
  }

  add(other: Numbers): void {
    for (const counter of COUNTERS) this[counter] += other[counter];
    this.toStart.add(other.toStart);
    this.toFinish.add(other.toFinish);
    for (const [type, { created, completed, failed, toStart }] of other.types) {
      const sum = this.type(type);
      sum.created += created;
      sum.completed += completed;
      sum.failed += failed;
      sum.toStart.add(toStart);
    }
  }

  /** The numbers of a type; of one more than MINUTE_TYPES_MAX, numbers that nobody keeps. */
  type(taskType: string): TypeNumbers {
    const known = this.types.get(taskType);
    if (known) return known;
    const numbers: TypeNumbers = { created: 0, completed: 0, failed: 0, toStart: times() };
    if (this.types.size < MINUTE_TYPES_MAX) this.types.set(taskType, numbers);
    return numbers;
  }

  toJSON(): unknown {
    const { types, ...numbers } = this;
    return types.size === 0 ? numbers : { ...numbers, types: Object.fromEntries(types) };
  }
}

const times = (stored?: StoredHistogram): Histogram => new Histogram(BOUNDS_MS, stored);

/** Seconds. `wait`: at each dispatch, since the task was ready. `run`: of a completed task, since its last start. */
type Times = { readonly wait: Histogram; readonly run: Histogram };

/** A new task that is assigned at once has not waited. */
type Moved = { readonly task: Task; readonly waitedMs?: number };

export class Counts {
  readonly events = new Map<EventKind, number>();
  /** At most METRICS_TYPES_MAX, and OTHER. A type stays, so that its numbers fall to 0 instead of vanishing. */
  readonly typeTimes = new Map<string, Times>();
  luxMicro = 0;
  readonly #minute: () => Numbers;

  /** `minute`: called before each count that belongs to a minute. */
  constructor(store: Pick<Store, "onCommit">, minute: () => Numbers) {
    this.#minute = minute;
    store.onCommit((changes, _, origin) => {
      if (origin === "own") this.#note(changes);
    });
  }

  labelOf(taskType: string): string {
    const label = this.typeTimes.has(taskType) || this.typeTimes.size < METRICS_TYPES_MAX ? taskType : OTHER;
    if (!this.typeTimes.has(label))
      this.typeTimes.set(label, { wait: new Histogram(BOUNDS), run: new Histogram(BOUNDS) });
    return label;
  }

  #timesOf(taskType: string): Times {
    return must(this.typeTimes.get(this.labelOf(taskType)), "a label has times");
  }

  #note(changes: readonly Notified[]): void {
    let moved: Moved | null = null;
    for (let i = 0; i < changes.length; i++) {
      const change = changes[i];
      if (change === undefined) continue;
      if (change.kind === "task.created" || change.kind === "task.moved") moved = change;
      else if (change.kind === "lux.entered") {
        this.luxMicro += paidBy(change.entry);
        this.#minute().luxMicro += paidBy(change.entry);
      } else if (change.kind === "event.logged") {
        this.events.set(change.event.kind, (this.events.get(change.event.kind) ?? 0) + 1);
        this.#count(change.event, moved, (taskId) => movedAfter(changes, i, taskId));
      }
    }
  }

  /** `before`, `after`: the change of a task that the commit has before the event, and one after it. */
  #count(
    { kind, taskId, at, data }: NewEvent,
    before: Moved | null,
    after: (taskId: string | null) => Moved | null,
  ): void {
    const counter = COUNTER_OF[kind];
    if (kind === "task.created" && before?.task.taskId === taskId)
      this.#minute().type(before.task.taskType).created++;
    if (counter !== undefined) this.#minute()[counter]++;
    else if (kind === "task.failed") {
      const minute = this.#minute();
      if (isCancelled(data["kind"])) return void minute.cancelled++;
      minute.failed++;
      const moved = before?.task.taskId === taskId ? before : after(taskId);
      if (moved !== null) minute.type(moved.task.taskType).failed++;
    } else if (kind === "task.completed" || (kind === "task.assigned" && data["by"] !== "resume")) {
      const minute = this.#minute();
      // The change of the task precedes its event, except when a node completes an open task.
      const isMoved = before?.task.taskId === taskId && before.task.status !== "open";
      const { task, waitedMs = 0 } = must(isMoved ? before : after(taskId), MOVED);
      const [type, typeTimes] = [minute.type(task.taskType), this.#timesOf(task.taskType)];
      if (kind === "task.completed") {
        minute.completed++;
        type.completed++;
        minute.toFinish.observe(Math.max(0, at - dueAt(task)));
        if (task.startedAt !== null) typeTimes.run.observe(Math.max(0, at - task.startedAt) / SECOND_MS);
      } else {
        minute.started++;
        if (task.epoch === 1) minute.toStart.observe(waitedMs);
        type.toStart.observe(waitedMs);
        typeTimes.wait.observe(waitedMs / SECOND_MS);
      }
    }
  }
}

const OTHER = "other";

const MOVED = "the commit that assigns or completes a task writes it";

function movedAfter(changes: readonly Notified[], i: number, taskId: string | null): Moved | null {
  for (let next = i + 1; next < changes.length; next++) {
    const change = changes[next];
    if (change?.kind === "task.moved" && change.task.taskId === taskId) return change;
  }
  return null;
}

/**
 * Returns when a task could first be handed out: its creation, or its `not_before`. A backoff also sets `not_before`,
 * and does not count.
 */
function dueAt({ createdAt, notBefore, attempts }: Task): number {
  return attempts === 0 && notBefore !== null ? Math.max(createdAt, notBefore) : createdAt;
}
