// What a load client counts in one job, shared by its workers: latencies in buckets of a hundredth of a millisecond.
import type { Measurement } from "./job.ts";

const BUCKET_MS = 0.01;
const BUCKETS = 200_000;

export class Tally {
  requests = 0;
  cycles = 0;
  cyclesInAll = 0;
  failures = 0;
  failure: string | null = null;
  readonly #latencies = new Uint32Array(BUCKETS);

  answered(latencyMs: number): void {
    this.requests++;
    const bucket = Math.min(Math.floor(latencyMs / BUCKET_MS), BUCKETS - 1);
    this.#latencies[bucket] = (this.#latencies[bucket] ?? 0) + 1;
  }

  failed(what: string): void {
    this.failures++;
    this.failure ??= what;
  }

  /** Has the work done, which begins nothing after `untilMs`, and measures it with this process's own use of a core. */
  async measure(windowMs: number, work: (untilMs: number) => Promise<unknown>): Promise<Measurement> {
    const cpuBefore = process.cpuUsage();
    const startMs = performance.now();
    await work(startMs + windowMs);
    const { user, system } = process.cpuUsage(cpuBefore);
    return this.#found(windowMs, (user + system) / 1_000 / (performance.now() - startMs));
  }

  #found(windowMs: number, clientCpu: number): Measurement {
    const { requests, cycles, cyclesInAll, failures, failure } = this;
    return {
      requests,
      cycles,
      cyclesInAll,
      requestsPerSecond: (requests * 1_000) / windowMs,
      cyclesPerSecond: (cycles * 1_000) / windowMs,
      p50Ms: this.#percentileMs(0.5),
      p99Ms: this.#percentileMs(0.99),
      failures,
      failure,
      clientCpu,
    };
  }

  #percentileMs(share: number): number {
    let left = Math.ceil(this.requests * share);
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      left -= this.#latencies[bucket] ?? 0;
      if (left <= 0) return (bucket + 0.5) * BUCKET_MS;
    }
    return BUCKETS * BUCKET_MS;
  }
}
