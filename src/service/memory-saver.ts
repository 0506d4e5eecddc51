/**
 * Sparing memory, by how much work there is.
 *
 * Giving it back: the engine collects garbage as it allocates: a hub that ten thousand callers have just left, and
 * that nobody asks for anything, would keep what they took. So when work was done and it has become quiet, garbage is
 * collected and the freed pages go back to the system. It costs a few milliseconds for each 10 MiB in use, at a moment
 * when hardly anybody waits.
 *
 * Not taking it: the compiler that makes hot code fast costs some 8 MiB for the life of the process, and would sooner or
 * later be used for no more than the sweeps of an idle hub. While it is quiet, as it is from the start on
 * (cli/cold-start.ts), only what runs very often is compiled; as soon as there is work, everything as usual.
 */
import { COLLECT_AFTER_CPU_MS, QUIET_CPU_SHARE, QUIET_JIT_RELUCTANCE } from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";

/** What the process has used and can do; a double in tests. */
export type Machine = {
  /** Processor time of this process so far, in milliseconds. */
  cpuMs(): number;
  collect(): void;
  /** How many times as often as usual code must have run before it is compiled; at least 1. */
  setReluctance(times: number): void;
};

const THIS_PROCESS: Machine = {
  cpuMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
  collect: () => Bun.gc(true),
  setReluctance: (times) => Bun.unsafe.setJITPolicy(times),
};

export class MemoryKeeper {
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

  /** Collects if it has been quiet since the last look and there was work since the last collection; sets the compiler. */
  look(): void {
    const cpuMs = this.#machine.cpuMs();
    const now = this.#clock.steady();
    const isQuiet = cpuMs - this.#seenCpuMs <= (now - this.#seenAt) * QUIET_CPU_SHARE;
    if (isQuiet !== this.#wasQuiet) this.#machine.setReluctance(isQuiet ? QUIET_JIT_RELUCTANCE : 1);
    this.#wasQuiet = isQuiet;
    if (isQuiet && cpuMs - this.#collectedCpuMs >= COLLECT_AFTER_CPU_MS) {
      this.#machine.collect();
      this.#collectedCpuMs = this.#machine.cpuMs();
    }
    this.#seenAt = now;
    this.#seenCpuMs = this.#machine.cpuMs();
  }
}
