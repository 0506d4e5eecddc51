/** Metrics of the requests of all listeners. On the path of every request, so it allocates nothing. */
import { assert } from "../lib/assert.ts";
import { Histogram } from "../lib/histogram.ts";
import type { Labels, MetricsText } from "../lib/metrics.ts";
import type { Route } from "./exchange.ts";

/** Seconds. A long poll may take 300. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const SECOND_MS = 1_000;

type RouteCounts = {
  readonly labels: Labels;
  readonly statuses: Map<number, number>;
  readonly seconds: Histogram;
};

export class RequestMetrics {
  readonly #routes = new Map<string, RouteCounts>();
  /** They share one label, because a label must not have a caller's text. */
  readonly unmatched = newCounts({ method: "other", endpoint: "other" });
  #inFlight = 0;

  /** A HEAD counts as a GET. */
  of({ method, path }: Route): RouteCounts {
    const name = `${method} ${path}`;
    const counts =
      this.#routes.get(name) ?? newCounts({ method, endpoint: path.replaceAll(/\/:(\w+)/g, "/{$1}") });
    this.#routes.set(name, counts);
    return counts;
  }

  begin(): void {
    this.#inFlight++;
  }

  end(counts: RouteCounts, status: number, ms: number): void {
    this.#inFlight--;
    assert(this.#inFlight >= 0, "a request that ends has begun");
    counts.statuses.set(status, (counts.statuses.get(status) ?? 0) + 1);
    counts.seconds.observe(ms / SECOND_MS);
  }

  writeTo(text: MetricsText): void {
    const called = [...this.#routes.values(), this.unmatched].filter(({ seconds }) => seconds.count > 0);
    text.counter(
      "luxhub_http_requests_total",
      "Responses, by endpoint and status.",
      called.flatMap(({ labels, statuses }) =>
        [...statuses].map(([status, count]) => [{ ...labels, status: String(status) }, count] as const),
      ),
    );
    text.histogram(
      "luxhub_http_request_duration_seconds",
      "Time until the response was ready to be sent, including the wait of a long poll.",
      called.map(({ labels, seconds }) => [labels, seconds] as const),
    );
    text.gauge(
      "luxhub_http_requests_in_flight",
      "Requests without a response yet, including long polls.",
      this.#inFlight,
    );
  }
}

function newCounts(labels: Labels): RouteCounts {
  return { labels, statuses: new Map(), seconds: new Histogram(BOUNDS) };
}
