/**
 * The periodic work of the hub, each piece with a name and a period. One runs at a time; a piece that fails is logged
 * and comes again. Each piece works in bounded steps, so that requests are not kept waiting, and asks its signal between
 * them whether to go on, so that the hub can end.
 */
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";

export type Chore = {
  readonly name: string;
  readonly everyMs: number;
  /** Of several hubs on one database each does it for itself, whoever's turn it is. */
  readonly ofEveryHub?: boolean;
  /** `lateMs`: how much later than planned the sweep began; 0 when it was asked for. */
  readonly run: (signal: AbortSignal, lateMs: number) => Promise<void>;
};

export class Sweeper {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #chores: { chore: Chore; dueAt: number; failing: string | null }[];
  readonly #tickMs: number;
  readonly #stopping = new AbortController();
  #timer: Timer | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(clock: Clock, log: Log, tickMs: number, chores: readonly Chore[]) {
    this.#clock = clock;
    this.#log = log;
    this.#tickMs = tickMs;
    this.#chores = chores.map((chore) => ({ chore, dueAt: clock.steady() + chore.everyMs, failing: null }));
  }

  start(): void {
    const dueAt = this.#clock.timers() + this.#tickMs;
    this.#timer = setTimeout(() => {
      void this.#next(this.#clock.timers() - dueAt).finally(() => {
        if (this.#timer !== null) this.start();
      });
    }, this.#tickMs);
  }

  /** Runs what is due now, after a sweep that is running. */
  sweep(): Promise<void> {
    return this.#next(0);
  }

  #next(lateMs: number): Promise<void> {
    this.#running = this.#running.then(() => this.#runDue(lateMs));
    return this.#running;
  }

  async #runDue(lateMs: number): Promise<void> {
    for (const entry of this.#chores) {
      if (this.#stopping.signal.aborted) return;
      if (entry.dueAt > this.#clock.steady()) continue;
      entry.dueAt = this.#clock.steady() + entry.chore.everyMs;
      try {
        await entry.chore.run(this.#stopping.signal, lateMs);
        entry.failing = null;
      } catch (error) {
        const cause = String(error);
        // Once, not once a second: what it meets may last, as a full disk or a damaged database does.
        if (cause !== entry.failing)
          this.#log.error("periodic work failed", { chore: entry.chore.name, cause });
        entry.failing = cause;
      }
    }
  }

  /** Starts nothing more, and waits for what runs to end its step. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#running;
  }
}
