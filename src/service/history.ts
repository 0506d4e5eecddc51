/**
 * The statistics of the last day, by ten minutes, and of the last 30 days, by hour: sums of the numbers by minute
 * (minutes.ts), which the leader stores when a period is over. So they survive a restart, and are the same at every hub.
 *
 * A period in which nothing happened has no row: there are at most 864 rows. What has not been summed yet is added from
 * the shorter periods when it is read. The numbers of a type are not kept.
 */
import { accept } from "../domain/decision.ts";
import { MINUTES_LATE_MS, PERIODS_OF_DAY, PERIODS_OF_MONTH } from "../domain/limits.ts";
import type { Change } from "../domain/change.ts";
import { type Clock, HOUR_MS, MINUTE_MS } from "../lib/clock.ts";
import { firstMinute, firstPeriod, lastPeriod, periodsBetween } from "../store/sql/minutes.ts";
import type { Store } from "../store/store.ts";
import { Numbers } from "./counts.ts";
import { type LastMinutes, type Minutes, seriesOf, sumAt } from "./minutes.ts";
import { UseCases } from "./use-cases.ts";

export const TEN_MINUTES_MS = 10 * MINUTE_MS;

type Range = { readonly stepMs: number; readonly count: number };

export const RANGES = {
  day: { stepMs: TEN_MINUTES_MS, count: PERIODS_OF_DAY },
  month: { stepMs: HOUR_MS, count: PERIODS_OF_MONTH },
} as const satisfies Record<string, Range>;

export class History extends UseCases {
  readonly #minutes: Minutes;

  constructor(store: Store, clock: Clock, minutes: Minutes) {
    super(store, clock);
    this.#minutes = minutes;
  }

  /** Oldest first. The last period is not over yet. */
  async read({ stepMs, count }: Range): Promise<LastMinutes> {
    const now = this.clock.now();
    const last = startOf(now, stepMs);
    const first = last - (count - 1) * stepMs;
    const sums = new Map<number, Numbers>();
    for (let at = first; at <= last; at += stepMs) sums.set(at, new Numbers());
    for (const { at, numbers } of await this.store.read(periodsBetween(stepMs, first, last)))
      sums.get(at)?.add(new Numbers(numbers));
    let summedUpTo = await this.#summedUpTo(stepMs, now);
    if (stepMs > TEN_MINUTES_MS) {
      for (const { at, numbers } of await this.store.read(periodsBetween(TEN_MINUTES_MS, summedUpTo, now)))
        sums.get(startOf(at, stepMs))?.add(new Numbers(numbers));
      summedUpTo = Math.max(summedUpTo, await this.#summedUpTo(TEN_MINUTES_MS, now));
    }
    for (const [at, numbers] of await this.#minutes.between(summedUpTo, now))
      sums.get(startOf(at, stepMs))?.add(numbers);
    return seriesOf(sums);
  }

  async save(): Promise<void> {
    // A hub may save the numbers of a minute late.
    const now = this.clock.now() - MINUTES_LATE_MS;
    await this.#saveSums(TEN_MINUTES_MS, PERIODS_OF_DAY, now, async (from, to) => {
      const first = await this.store.read(firstMinute());
      if (first === null) return [];
      return [...(await this.#minutes.storedBetween(Math.max(from, first), to))];
    });
    await this.#saveSums(HOUR_MS, PERIODS_OF_MONTH, now, async (from, to) => {
      const first = await this.store.read(firstPeriod(TEN_MINUTES_MS));
      if (first === null) return [];
      const periods = await this.store.read(periodsBetween(TEN_MINUTES_MS, Math.max(from, first), to));
      return periods.map(({ at, numbers }) => [at, new Numbers(numbers)] as const);
    });
  }

  /** Both times are inclusive. */
  async #saveSums(
    stepMs: number,
    count: number,
    now: number,
    read: (from: number, to: number) => Promise<readonly (readonly [at: number, numbers: Numbers])[]>,
  ): Promise<void> {
    const end = startOf(now, stepMs);
    const from = await this.#summedUpTo(stepMs, now);
    if (from >= end) return;
    const sums = new Map<number, Numbers>();
    for (const [at, numbers] of await read(from, end - 1)) sumAt(sums, startOf(at, stepMs)).add(numbers);
    if (sums.size === 0) return;
    const saved = [...sums].map(([at, { types: _, ...numbers }]): Change => ({
      kind: "period.saved",
      stepMs,
      at,
      numbers: JSON.stringify(numbers),
    }));
    const old = { stepMs, first: end - count * stepMs, last: end };
    await this.store.transact({}, () => accept(null, [...saved, { kind: "periods.pruned", ...old }]));
  }

  /** 0 if no period was summed. */
  async #summedUpTo(stepMs: number, now: number): Promise<number> {
    const last = await this.store.read(lastPeriod(stepMs, now));
    return last === null ? 0 : last + stepMs;
  }
}

function startOf(at: number, stepMs: number): number {
  return at - (at % stepMs);
}
