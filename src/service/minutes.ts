/**
 * The statistics of the last hour, minute by minute: what was created, handed out, completed, paid and sent, and how
 * long tasks took (docs/statistics.md, stats/minutes).
 *
 * Each hub counts its own commits in memory and upserts a row for each minute, so a request reads a few rows and no
 * event. A row belongs to one run of one hub; the numbers of all runs are summed when they are read. A crash loses the
 * counts since the last save.
 */
import type { Notified } from "../domain/change.ts";
import { accept } from "../domain/decision.ts";
import { MINUTES_KEPT, MINUTE_TYPES_MAX } from "../domain/limits.ts";
import { paidBy } from "../domain/lux.ts";
import { type Task, isCancelled } from "../domain/model.ts";
import { must } from "../lib/assert.ts";
import { type Clock, DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/clock.ts";
import { Histogram, type StoredHistogram } from "../lib/histogram.ts";
import { minutesBetween } from "../store/sql/minutes.ts";
import type { Origin, Store } from "../store/store.ts";
import type { TypeMetrics } from "./type-metrics.ts";

/** The upper bounds of the histogram's buckets in milliseconds, inclusive; the last bucket has no bound. */
const BOUNDS_MS: readonly number[] = [
  ...[10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 20, 30].map((s) => s * SECOND_MS),
  ...[1, 2, 5, 10, 20, 30].map((min) => min * MINUTE_MS),
  ...[1, 2, 6, 12].map((h) => h * HOUR_MS),
  ...[1, 7].map((days) => days * DAY_MS),
];

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

type Counters = Record<(typeof COUNTERS)[number], number>;

/** What one type of tasks adds to a minute. `toStart`: how long its tasks waited, at each dispatch. */
type TypeNumbers = { created: number; completed: number; failed: number; readonly toStart: Histogram };

/**
 * The numbers of one minute, stored as JSON. `types`: at most MINUTE_TYPES_MAX, the first ones of the minute; left out if
 * there is none.
 */
export type Numbers = Counters & {
  readonly toStart: Histogram;
  readonly toFinish: Histogram;
  types?: Record<string, TypeNumbers>;
};

/** p50 and p95 are interpolated within a bucket; null without durations. */
export type DurationSummary = {
  readonly count: number;
  readonly sumMs: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
};

export type Summary = Readonly<Counters> & {
  readonly toStart: DurationSummary;
  readonly toFinish: DurationSummary;
};

/** Minutes or longer periods, oldest first, and their sum. The last one is not over yet. */
export type LastMinutes = {
  readonly minutes: readonly (Summary & { readonly at: number })[];
  readonly total: Summary;
};

export type TypeSummary = {
  readonly created: number;
  readonly completed: number;
  readonly failed: number;
  readonly toStart: DurationSummary;
};

/** A task as a commit writes it. A new one that is assigned at once has not waited. */
type Moved = { readonly task: Task; readonly waitedMs?: number };

export class Minutes {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #hub: string;
  /** This hub's numbers, by the beginning of the minute. */
  readonly #own = new Map<number, Numbers>();
  readonly #unsaved = new Set<number>();
  readonly #types: TypeMetrics;
  #isSaving = true;

  constructor(store: Store, clock: Clock, hub: string, types: TypeMetrics) {
    this.#types = types;
    this.#store = store;
    this.#clock = clock;
    this.#hub = hub;
    store.onCommit((changes, _, origin) => this.#note(changes, origin));
  }

  async save(): Promise<void> {
    const unsaved = [...this.#unsaved];
    if (unsaved.length === 0) return;
    this.#unsaved.clear();
    const rows = unsaved.flatMap((at) => {
      const numbers = this.#own.get(at);
      return numbers
        ? [{ kind: "minute.saved", at, hub: this.#hub, numbers: JSON.stringify(numbers) } as const]
        : [];
    });
    try {
      await this.#store.transact({}, () => accept(null, rows));
      this.#isSaving = true;
    } catch (error) {
      this.#isSaving = false;
      for (const at of unsaved) this.#unsaved.add(at);
      throw error;
    }
  }

  /** Saves a last time, unless the previous save failed: the end of the hub must not wait for a failing store. */
  async close(): Promise<void> {
    if (this.#isSaving) await this.save().catch(() => {}); // as after a crash: some numbers are lost
  }

  /** Returns the last `count` minutes, MINUTES_KEPT at most. */
  async last(count: number): Promise<LastMinutes> {
    return seriesOf(await this.#lastNumbers(count));
  }

  /** The numbers of the minutes that begin from a time to another one, as far as they are kept. */
  async between(from: number, to: number): Promise<ReadonlyMap<number, Numbers>> {
    const stored = await this.#storedBetween(from, to, (hub) => hub !== this.#hub);
    for (const [at, numbers] of this.#own) if (at >= from && at <= to) addTo(sumAt(stored, at), numbers);
    return stored;
  }

  /** The numbers of these minutes as far as they are stored: without this hub's newest. */
  storedBetween(from: number, to: number): Promise<ReadonlyMap<number, Numbers>> {
    return this.#storedBetween(from, to, () => true);
  }

  async #storedBetween(
    from: number,
    to: number,
    isWanted: (hub: string) => boolean,
  ): Promise<Map<number, Numbers>> {
    const sums = new Map<number, Numbers>();
    for (const { at, hub, numbers } of await this.#store.read(minutesBetween(from, to)))
      if (isWanted(hub)) addTo(sumAt(sums, at), parseNumbers(numbers));
    return sums;
  }

  /** Returns what each type of tasks did in the minutes that are kept; "" is no type. */
  async types(): Promise<ReadonlyMap<string, TypeSummary>> {
    const total = nothing();
    for (const numbers of (await this.#lastNumbers(MINUTES_KEPT)).values()) addTo(total, numbers);
    return new Map(
      Object.entries(total.types ?? {}).map(([type, { toStart, ...counts }]) => [
        type,
        { ...counts, toStart: summarize(toStart) },
      ]),
    );
  }

  async #lastNumbers(count: number): Promise<ReadonlyMap<number, Numbers>> {
    const last = minuteOf(this.#clock.now());
    const first = last - (count - 1) * MINUTE_MS;
    const found = await this.between(first, last);
    const byMinute = new Map<number, Numbers>();
    for (let at = first; at <= last; at += MINUTE_MS) byMinute.set(at, found.get(at) ?? nothing());
    return byMinute;
  }

  #note(changes: readonly Notified[], origin: Origin): void {
    if (origin !== "own") return;
    let moved: Moved | null = null;
    let numbers: Numbers | null = null;
    for (let i = 0; i < changes.length; i++) {
      const change = changes[i];
      if (change === undefined) continue;
      if (change.kind === "task.created" || change.kind === "task.moved") moved = change;
      else if (change.kind === "lux.entered") (numbers ??= this.#current()).luxMicro += paidBy(change.entry);
      else if (change.kind === "event.logged") {
        const { kind, taskId, at } = change.event;
        if (kind === "task.created") {
          numbers ??= this.#current();
          numbers.created++;
          if (moved?.task.taskId === taskId) ofType(numbers, moved.task.taskType).created++;
        } else if (kind === "message.sent") (numbers ??= this.#current()).messages++;
        else if (kind === "task.failed") {
          numbers ??= this.#current();
          if (isCancelled(change.event.data["kind"])) {
            numbers.cancelled++;
            continue;
          }
          numbers.failed++;
          const own = moved?.task.taskId === taskId ? moved : movedAfter(changes, i, taskId);
          if (own !== null) ofType(numbers, own.task.taskType).failed++;
        } else if (kind === "task.attempt_failed" || kind === "task.timed_out" || kind === "task.requeued")
          (numbers ??= this.#current()).attemptsFailed++;
        else if (kind === "task.assigned" && change.event.data["by"] === "resume") continue;
        else if (kind === "task.assigned" || kind === "task.completed") {
          numbers ??= this.#current();
          // The change of the task precedes its event, except when a node completes an open task.
          const isMoved = moved?.task.taskId === taskId && moved.task.status !== "open";
          const { task, waitedMs = 0 } = must(isMoved ? moved : movedAfter(changes, i, taskId), MOVED);
          if (kind === "task.completed") {
            numbers.completed++;
            ofType(numbers, task.taskType).completed++;
            numbers.toFinish.observe(Math.max(0, at - dueAt(task)));
            if (task.startedAt !== null) this.#types.ran(task.taskType, Math.max(0, at - task.startedAt));
          } else {
            numbers.started++;
            if (task.epoch === 1) numbers.toStart.observe(waitedMs);
            this.#types.waited(task.taskType, waitedMs);
            ofType(numbers, task.taskType).toStart.observe(waitedMs);
          }
        }
      }
    }
  }

  #current(): Numbers {
    const at = minuteOf(this.#clock.now());
    this.#unsaved.add(at);
    const known = this.#own.get(at);
    if (known) return known;
    for (const old of this.#own.keys())
      if (Math.abs(at - old) >= MINUTES_KEPT * MINUTE_MS) {
        this.#own.delete(old);
        this.#unsaved.delete(old);
      }
    const numbers = nothing();
    this.#own.set(at, numbers);
    return numbers;
  }
}

function minuteOf(now: number): number {
  return now - (now % MINUTE_MS);
}

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

const times = (stored?: StoredHistogram): Histogram => new Histogram(BOUNDS_MS, stored);

function noTypes(): Record<string, TypeNumbers> {
  return Object.create(null) as Record<string, TypeNumbers>; // any name is a type
}

/** The numbers of a type in a minute; of one more than MINUTE_TYPES_MAX, numbers that nobody keeps. */
function ofType(numbers: Numbers, taskType: string): TypeNumbers {
  const types = (numbers.types ??= noTypes());
  const known = types[taskType];
  if (known) return known;
  const made: TypeNumbers = { created: 0, completed: 0, failed: 0, toStart: times() };
  if (Object.keys(types).length < MINUTE_TYPES_MAX) types[taskType] = made;
  return made;
}

export function seriesOf(numbers: ReadonlyMap<number, Numbers>): LastMinutes {
  const total = nothing();
  for (const one of numbers.values()) addTo(total, one);
  return {
    minutes: [...numbers].map(([at, one]) => ({ at, ...summaryOf(one) })),
    total: summaryOf(total),
  };
}

export function sumAt(sums: Map<number, Numbers>, at: number): Numbers {
  const sum = sums.get(at) ?? nothing();
  sums.set(at, sum);
  return sum;
}

export function nothing(): Numbers {
  return {
    created: 0,
    started: 0,
    completed: 0,
    attemptsFailed: 0,
    failed: 0,
    cancelled: 0,
    luxMicro: 0,
    messages: 0,
    toStart: times(),
    toFinish: times(),
  };
}

/** Only save() writes them; those of an older build lack the counters that came later. */
export function parseNumbers(json: string): Numbers {
  const { types = {}, toStart, toFinish, ...counters } = JSON.parse(json) as Stored;
  const numbers = { ...nothing(), ...counters, toStart: times(toStart), toFinish: times(toFinish) };
  for (const [type, stored] of Object.entries(types))
    (numbers.types ??= noTypes())[type] = { created: 0, ...stored, toStart: times(stored.toStart) };
  return numbers;
}

type Stored = Partial<Counters> & {
  readonly toStart?: StoredHistogram;
  readonly toFinish?: StoredHistogram;
  readonly types?: Readonly<
    Record<string, { created?: number; completed: number; failed: number; toStart: StoredHistogram }>
  >;
};

export function addTo(sum: Numbers | undefined, numbers: Numbers): void {
  if (!sum) return;
  for (const counter of COUNTERS) sum[counter] += numbers[counter];
  sum.toStart.add(numbers.toStart);
  sum.toFinish.add(numbers.toFinish);
  for (const [type, { created, completed, failed, toStart }] of Object.entries(numbers.types ?? {})) {
    const own = ofType(sum, type);
    own.created += created;
    own.completed += completed;
    own.failed += failed;
    own.toStart.add(toStart);
  }
}

function summaryOf({ toStart, toFinish, types: _, ...counters }: Numbers): Summary {
  return { ...counters, toStart: summarize(toStart), toFinish: summarize(toFinish) };
}

function summarize(times: Histogram): DurationSummary {
  return {
    count: times.count,
    sumMs: times.sum,
    p50Ms: times.quantile(0.5),
    p95Ms: times.quantile(0.95),
  };
}
