/**
 * Metrics in the text format of Prometheus (exposition format 0.0.4): histograms, which requests update, and the text,
 * which is made for each scrape.
 *
 * Invariant: observing allocates nothing. Label values must come from a closed set, or from one that the
 * caller of this file bounds: each value takes memory until the process ends.
 */
import { must } from "./assert.ts";

const BUCKET = "a histogram has a bucket for each bound and one more";

export class Histogram {
  readonly #bounds: readonly number[];
  /** Observations in each bucket, not cumulative; the last bucket has no bound. */
  readonly #buckets: Float64Array;
  #sum = 0;
  #count = 0;

  /** `bounds`: the upper bounds of the buckets, inclusive and ascending. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#buckets = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    let i = 0;
    while (i < this.#bounds.length && value > must(this.#bounds[i], BUCKET)) i++;
    this.#buckets[i] = must(this.#buckets[i], BUCKET) + 1;
    this.#sum += value;
    this.#count++;
  }

  get count(): number {
    return this.#count;
  }

  get sum(): number {
    return this.#sum;
  }

  /** Returns the buckets as Prometheus counts them: for each bound, how many observations do not exceed it. */
  cumulative(): readonly (readonly [bound: string, count: number])[] {
    let total = 0;
    return Array.from(this.#buckets, (count, i) => [String(this.#bounds[i] ?? "+Inf"), (total += count)]);
  }
}

export type Labels = Readonly<Record<string, string>>;

/** Builds the text: metric families, each with its help and type. Omits a family without samples. */
export class MetricsText {
  #text = "";

  counter(name: string, help: string, samples: number | Iterable<readonly [Labels, number]>): void {
    this.#family(name, "counter", help, samples);
  }

  gauge(name: string, help: string, samples: number | Iterable<readonly [Labels, number]>): void {
    this.#family(name, "gauge", help, samples);
  }

  histogram(name: string, help: string, histograms: Iterable<readonly [Labels, Histogram]>): void {
    let samples = "";
    for (const [labels, histogram] of histograms) {
      for (const [le, count] of histogram.cumulative())
        samples += sample(`${name}_bucket`, { ...labels, le }, count);
      samples +=
        sample(`${name}_sum`, labels, histogram.sum) + sample(`${name}_count`, labels, histogram.count);
    }
    this.#add(name, "histogram", help, samples);
  }

  toString(): string {
    return this.#text;
  }

  #family(
    name: string,
    type: "counter" | "gauge",
    help: string,
    samples: number | Iterable<readonly [Labels, number]>,
  ): void {
    const all = typeof samples === "number" ? [[{}, samples] as const] : [...samples];
    this.#add(name, type, help, all.map(([labels, value]) => sample(name, labels, value)).join(""));
  }

  #add(name: string, type: string, help: string, samples: string): void {
    if (samples !== "") this.#text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samples}`;
  }
}

function sample(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`);
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}\n`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
