/** Observing allocates nothing. */
import { assert, must } from "./assert.ts";

const BUCKET = "a histogram has a bucket for each bound and one more";

export type StoredHistogram = { readonly sumMs: number; readonly buckets: readonly number[] };

export class Histogram {
  readonly #bounds: readonly number[];
  /** Not cumulative; the last bucket has no bound. */
  readonly #buckets: number[];
  #sum: number;

  /** `bounds`: inclusive and ascending. */
  constructor(bounds: readonly number[], { sumMs, buckets }: Partial<StoredHistogram> = {}) {
    this.#bounds = bounds;
    this.#buckets = buckets ? [...buckets] : new Array<number>(bounds.length + 1).fill(0);
    this.#sum = sumMs ?? 0;
    assert(this.#buckets.length === bounds.length + 1, BUCKET);
    assert(this.#sum >= 0, "nothing lasts less than no time");
  }

  observe(value: number): void {
    let i = 0;
    while (i < this.#bounds.length && value > must(this.#bounds[i], BUCKET)) i++;
    this.#buckets[i] = must(this.#buckets[i], BUCKET) + 1;
    this.#sum += value;
  }

  add(other: Histogram): void {
    assert(other.#bounds === this.#bounds, "histograms with the same bounds are added");
    for (const [i, count] of other.#buckets.entries())
      this.#buckets[i] = must(this.#buckets[i], BUCKET) + count;
    this.#sum += other.#sum;
  }

  get count(): number {
    return this.#buckets.reduce((total, count) => total + count, 0);
  }

  get sum(): number {
    return this.#sum;
  }

  /** Spread evenly over each bucket; null without observations. */
  quantile(share: number): number | null {
    const rank = share * this.count;
    let below = 0;
    for (const [i, count] of this.#buckets.entries()) {
      if (count > 0 && below + count >= rank) {
        const from = i === 0 ? 0 : must(this.#bounds[i - 1], BUCKET);
        const to = this.#bounds[i] ?? from; // the last bucket has no bound
        return from + ((to - from) * (rank - below)) / count;
      }
      below += count;
    }
    return null;
  }

  /** As Prometheus counts: for each bound, how many observations do not exceed it. */
  cumulative(): readonly (readonly [bound: string, count: number])[] {
    let total = 0;
    return Array.from(this.#buckets, (count, i) => [String(this.#bounds[i] ?? "+Inf"), (total += count)]);
  }

  toJSON(): StoredHistogram {
    return { sumMs: this.#sum, buckets: this.#buckets };
  }
}
