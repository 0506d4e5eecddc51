/**
 * Giving memory back. The engine collects garbage as it allocates: a hub that ten thousand callers have just left, and
 * that nobody asks for anything, would keep what they took. So when work was done and it has become quiet, garbage is
 * collected and the freed pages go back to the system. It costs a few milliseconds for each 10 MiB in use, at a moment
 * when hardly anybody waits.
 */
import { COLLECT_AFTER_CPU_MS, QUIET_CPU_SHARE } from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";

/** What the process has used and can do; a double in tests. */
export type Machine = {
  /** Processor time of this process so far, in milliseconds. */
  cpuMs(): number;
  collect(): void;
};

const THIS_PROCESS: Machine = {
  cpuMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
  collect: () => Bun.gc(true),
};

export class MemoryKeeper {
  readonly #clock: Clock;
  readonly #machine: Machine;
  #seenAt: number;
  #seenCpuMs: number;
  #collectedCpuMs: number;

  constructor(clock: Clock, machine = THIS_PROCESS) {
    this.#clock = clock;
    this.#machine = machine;
    this.#seenAt = clock.steady();
    this.#seenCpuMs = machine.cpuMs();
    this.#collectedCpuMs = this.#seenCpuMs;
  }

  /** Collects if it has been quiet since the last look and there was work since the last collection. */
  look(): void {
    const cpuMs = this.#machine.cpuMs();
    const now = this.#clock.steady();
    const isQuiet = cpuMs - this.#seenCpuMs <= (now - this.#seenAt) * QUIET_CPU_SHARE;
    if (isQuiet && cpuMs - this.#collectedCpuMs >= COLLECT_AFTER_CPU_MS) {
      this.#machine.collect();
      this.#collectedCpuMs = this.#machine.cpuMs();
    }
    this.#seenAt = now;
    this.#seenCpuMs = this.#machine.cpuMs();
  }
}
