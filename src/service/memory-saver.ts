/**
 * Saves memory while the hub is idle.
 *
 * Garbage collection: the JavaScript engine collects as it allocates, so after ten thousand callers have left, a hub would
 * keep their memory until the next requests. When the hub becomes quiet after work, this collects garbage and returns
 * freed pages to the system. It costs a few milliseconds for each 10 MiB in use.
 *
 * JIT compilation: the compiler for hot code costs some 8 MiB for the life of the process, and the periodic work of an
 * idle hub would start it sooner or later. While the hub is quiet, as it is at the start (cli/cold-start.ts), only code
 * that runs very often is compiled; once there is work, the engine's own threshold applies.
 */
import { COLLECT_AFTER_CPU_MS, QUIET_CPU_SHARE, QUIET_JIT_RELUCTANCE } from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";

/** Injectable for tests. */
export type Machine = {
  /** In milliseconds. */
  cpuMs(): number;
  collect(): void;
  /** `times` (at least 1): as many runs as usual. */
  setJitThreshold(times: number): void;
};

const THIS_PROCESS: Machine = {
  cpuMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
  collect: () => Bun.gc(true),
  setJitThreshold: (times) => Bun.unsafe.setJITPolicy(times),
};

export class MemorySaver {
  readonly #clock: Clock;
  readonly #machine: Machine;
  #seenAt: number;
  #seenCpuMs: number;
  #collectedCpuMs: number;
  #wasQuiet = true;

  constructor(clock: Clock, machine = THIS_PROCESS) {
    this.#clock = clock;
    this.#machine = machine;
    this.#seenAt = clock.steady();
    this.#seenCpuMs = machine.cpuMs();
    this.#collectedCpuMs = this.#seenCpuMs;
  }

  /** If the hub was quiet since the last call and worked since the last collection. */
  adjust(): void {
    const cpuMs = this.#machine.cpuMs();
    const now = this.#clock.steady();
    const isQuiet = cpuMs - this.#seenCpuMs <= (now - this.#seenAt) * QUIET_CPU_SHARE;
    if (isQuiet !== this.#wasQuiet) this.#machine.setJitThreshold(isQuiet ? QUIET_JIT_RELUCTANCE : 1);
    this.#wasQuiet = isQuiet;
    if (isQuiet && cpuMs - this.#collectedCpuMs >= COLLECT_AFTER_CPU_MS) {
      this.#machine.collect();
      this.#collectedCpuMs = this.#machine.cpuMs();
    }
    this.#seenAt = now;
    this.#seenCpuMs = this.#machine.cpuMs();
  }
}
