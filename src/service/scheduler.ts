/**
 * The scheduler of the periodic work (periodic-work.ts): when each chore runs, and on which of several hubs.
 *
 * One chore runs at a time. One that fails is logged, once for a cause, and runs again when it is due next. Of several hubs on one database
 * the leader alone runs the chores, but for those that each hub does for itself.
 */
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type Store, StoreFull } from "../store/store.ts";

/**
 * A piece of periodic work. It may run at any time and any number of times: what it does follows from the stored rows and
 * the clock. It works in bounded steps, so that requests are not kept waiting, and stops between two when `signal` says so.
 */
export type Chore = {
  readonly name: string;
  readonly everyMs: number;
  /** Every hub runs it, not the leader alone. */
  readonly onEveryHub?: boolean;
  /** `lateMs`: for how long the process stood still since it was last asked, as far as the timer shows. */
  readonly run: (signal: AbortSignal, lateMs: () => number) => Promise<void>;
};

/**
 * Whether this hub leads. The store holds the election: of several hubs on one database one is the leader at a time; a hub
 * with a database of its own always is.
 */
export class Leadership {
  readonly #election: Pick<Store, "lead">;
  readonly #renewLeases: () => Promise<void>;
  /** Elected after a time without a leader, and the leases have not been renewed yet. */
  #afterGap = false;

  /** `renewLeases`: without a leader no hub may have been there to hear the nodes, so their silence does not count. */
  constructor(election: Pick<Store, "lead">, renewLeases: () => Promise<void>) {
    this.#election = election;
    this.#renewLeases = renewLeases;
  }

  /** When it resolves to true, the leases are fit to be judged. */
  async isLeader(): Promise<boolean> {
    const result = await this.#election.lead();
    if (result === "follower") return false;
    this.#afterGap ||= result === "elected after a gap"; // the store says so once; renewing may fail and be tried again
    if (this.#afterGap) {
      await this.#renewLeases();
      this.#afterGap = false;
    }
    return true;
  }
}

export type SchedulerParts = {
  readonly clock: Clock;
  readonly log: Log;
  readonly leadership: Pick<Leadership, "isLeader">;
  readonly chores: readonly Chore[];
  /** The period of the sweeps. A tick during a sweep starts no other. */
  readonly pauseMs: number;
};

export class Scheduler {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #leadership: Pick<Leadership, "isLeader">;
  readonly #chores: { readonly chore: Chore; dueAt: number; lastError: string | null }[];
  readonly #pauseMs: number;
  readonly #stopping = new AbortController();
  /** Set during a sweep too: by its lateness a standstill is noticed whenever it happens. */
  #timer: Timer | null = null;
  #timerDueAt = Number.POSITIVE_INFINITY;
  #lateMs = 0;
  #sweeps = 0;
  #running: Promise<void> = Promise.resolve();

  constructor({ clock, log, leadership, chores, pauseMs }: SchedulerParts) {
    this.#clock = clock;
    this.#log = log;
    this.#leadership = leadership;
    this.#chores = chores.map((chore) => ({ chore, dueAt: clock.steady() + chore.everyMs, lastError: null }));
    this.#pauseMs = pauseMs;
  }

  start(): void {
    this.#timerDueAt = this.#clock.timers() + this.#pauseMs;
    this.#timer = setTimeout(() => {
      this.#lateMs = this.#lateness();
      this.start();
      if (this.#sweeps === 0) void this.sweep();
    }, this.#pauseMs);
  }

  /** Runs the chores that are due, after a sweep that is under way. */
  sweep(): Promise<void> {
    this.#sweeps++;
    this.#running = this.#running.then(() => this.#runDue()).finally(() => this.#sweeps--);
    return this.#running;
  }

  /** Counts a timer that should have fired by now, too: after a standstill, other work may continue before it fires. */
  #lateness(): number {
    return Math.max(this.#lateMs, this.#clock.timers() - this.#timerDueAt);
  }

  /** Each standstill is counted once. */
  #takeLateness(): number {
    const lateMs = this.#lateness();
    this.#lateMs = 0;
    this.#timerDueAt = Math.max(this.#timerDueAt, this.#clock.timers());
    return lateMs;
  }

  async #runDue(): Promise<void> {
    for (const entry of this.#chores) {
      if (this.#stopping.signal.aborted) return;
      if (entry.dueAt > this.#clock.steady()) continue;
      const { chore } = entry;
      entry.dueAt = this.#clock.steady() + chore.everyMs;
      try {
        if (chore.onEveryHub || (await this.#leadership.isLeader()))
          await chore.run(this.#stopping.signal, () => this.#takeLateness());
        entry.lastError = null;
      } catch (error) {
        const cause = String(error);
        // Logged once, not every second nor for each chore: a damaged or lost database may last. The chore that watches
        // the database logs a full disk.
        const isKnown =
          error instanceof StoreFull || this.#chores.some(({ lastError }) => lastError === cause);
        if (!isKnown) this.#log.error("periodic work failed", { chore: chore.name, cause });
        entry.lastError = cause;
      }
    }
  }

  /** Starts nothing more, and waits until the running chore has ended its step. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#running;
  }
}
