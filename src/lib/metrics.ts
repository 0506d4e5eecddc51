/**
 * Metrics in the text format of Prometheus (exposition format 0.0.4), made for each scrape.
 *
 * Label values must come from a closed set, or from one that the caller of this file bounds: each value takes memory until
 * the process ends.
 */
import type { Histogram } from "./histogram.ts";

export type Labels = Readonly<Record<string, string>>;

/** Omits a family without samples. */
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
    const labelled = typeof samples === "number" ? [[{}, samples] as const] : [...samples];
    this.#add(name, type, help, labelled.map(([labels, value]) => sample(name, labels, value)).join(""));
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
