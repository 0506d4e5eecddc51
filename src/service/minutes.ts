/**
 * The statistics of the last hour, minute by minute: what was created, handed out, completed, paid and sent, and how
 * long tasks took (docs/statistics.md, stats/minutes).
 *
 * Each hub counts its own commits in memory and upserts a row for each minute, so a request reads a few rows and no
 * event. A row belongs to one run of one hub; the numbers of all runs are summed when they are read. A crash loses the
 * counts since the last save.
 */
import { accept } from "../domain/decision.ts";
import { MINUTES_KEPT } from "../domain/limits.ts";
import { type Clock, MINUTE_MS } from "../lib/clock.ts";
import type { Histogram } from "../lib/histogram.ts";
import { minutesBetween } from "../store/sql/minutes.ts";
import type { Store } from "../store/store.ts";
import { type Counters, Counts, Numbers } from "./counts.ts";
import { UseCases } from "./use-cases.ts";

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

/** Oldest first. The last one is not over yet. */
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

export class Minutes extends UseCases {
  readonly counts: Counts;
  readonly #hub: string;
  /** By the beginning of the minute. */
  readonly #own = new Map<number, Numbers>();
  readonly #unsaved = new Set<number>();
  #isSaving = true;

  constructor(store: Store, clock: Clock, hub: string) {
    super(store, clock);
    this.#hub = hub;
    this.counts = new Counts(store, () => this.#current());
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
      await this.store.transact({}, () => accept(null, rows));
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

  /** MINUTES_KEPT at most. */
  async last(count: number): Promise<LastMinutes> {
    return seriesOf(await this.#lastNumbers(count));
  }

  /** As far as they are kept. */
  async between(from: number, to: number): Promise<ReadonlyMap<number, Numbers>> {
    const stored = await this.#storedBetween(from, to, (hub) => hub !== this.#hub);
    for (const [at, numbers] of this.#own) if (at >= from && at <= to) sumAt(stored, at).add(numbers);
    return stored;
  }

  /** Without this hub's newest. */
  storedBetween(from: number, to: number): Promise<ReadonlyMap<number, Numbers>> {
    return this.#storedBetween(from, to, () => true);
  }

  async #storedBetween(
    from: number,
    to: number,
    isWanted: (hub: string) => boolean,
  ): Promise<Map<number, Numbers>> {
    const sums = new Map<number, Numbers>();
    for (const { at, hub, numbers } of await this.store.read(minutesBetween(from, to)))
      if (isWanted(hub)) sumAt(sums, at).add(new Numbers(numbers));
    return sums;
  }

  /** In the minutes that are kept; "" is no type. */
  async types(): Promise<ReadonlyMap<string, TypeSummary>> {
    const total = sumOf(await this.#lastNumbers(MINUTES_KEPT));
    return new Map(
      [...total.types].map(([type, { toStart, ...counts }]) => [
        type,
        { ...counts, toStart: summarize(toStart) },
      ]),
    );
  }

  async #lastNumbers(count: number): Promise<ReadonlyMap<number, Numbers>> {
    const last = minuteOf(this.clock.now());
    const first = last - (count - 1) * MINUTE_MS;
    const found = await this.between(first, last);
    const byMinute = new Map<number, Numbers>();
    for (let at = first; at <= last; at += MINUTE_MS) byMinute.set(at, found.get(at) ?? new Numbers());
    return byMinute;
  }

  #current(): Numbers {
    const at = minuteOf(this.clock.now());
    this.#unsaved.add(at);
    const known = this.#own.get(at);
    if (known) return known;
    for (const old of this.#own.keys())
      if (Math.abs(at - old) >= MINUTES_KEPT * MINUTE_MS) {
        this.#own.delete(old);
        this.#unsaved.delete(old);
      }
    const numbers = new Numbers();
    this.#own.set(at, numbers);
    return numbers;
  }
}

function minuteOf(now: number): number {
  return now - (now % MINUTE_MS);
}

export function seriesOf(numbers: ReadonlyMap<number, Numbers>): LastMinutes {
  return {
    minutes: [...numbers].map(([at, ofMinute]) => ({ at, ...summaryOf(ofMinute) })),
    total: summaryOf(sumOf(numbers)),
  };
}

function sumOf(numbers: ReadonlyMap<number, Numbers>): Numbers {
  const total = new Numbers();
  for (const ofMinute of numbers.values()) total.add(ofMinute);
  return total;
}

export function sumAt(sums: Map<number, Numbers>, at: number): Numbers {
  const sum = sums.get(at) ?? new Numbers();
  sums.set(at, sum);
  return sum;
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
