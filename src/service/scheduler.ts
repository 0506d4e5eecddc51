/**
 * The scheduler of the periodic work (periodic-work.ts): when each chore runs, and on which of several hubs.
 *
 * One chore runs at a time. One that fails is logged and runs again when it is due next. Of several hubs on one database
 * the leader alone runs the chores, but for those that each hub does for itself.
 */
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";

/**
 * A piece of periodic work. It may run at any time and any number of times: what it does follows from the stored rows and
 * the clock. It works in bounded steps, so that requests are not kept waiting, and stops between two when `signal` says so.
 */
export type Chore = {
  readonly name: string;
  readonly everyMs: number;
  /** Every hub runs it, not the leader alone. */
  readonly onEveryHub?: boolean;
  /** `lateMs`: how much later than planned the sweep began; 0 when it was asked for. */
  readonly run: (signal: AbortSignal, lateMs: number) => Promise<void>;
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
  /** The time from the end of one sweep to the start of the next. */
  readonly pauseMs: number;
};

export class Scheduler {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #leadership: Pick<Leadership, "isLeader">;
  readonly #chores: { readonly chore: Chore; dueAt: number; lastError: string | null }[];
  readonly #pauseMs: number;
  readonly #stopping = new AbortController();
  #timer: Timer | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor({ clock, log, leadership, chores, pauseMs }: SchedulerParts) {
    this.#clock = clock;
    this.#log = log;
    this.#leadership = leadership;
    this.#chores = chores.map((chore) => ({ chore, dueAt: clock.steady() + chore.everyMs, lastError: null }));
    this.#pauseMs = pauseMs;
  }

  start(): void {
    const dueAt = this.#clock.timers() + this.#pauseMs;
    this.#timer = setTimeout(() => {
      void this.#enqueue(this.#clock.timers() - dueAt).finally(() => {
        if (this.#timer !== null) this.start();
      });
    }, this.#pauseMs);
  }

  /** Runs the chores that are due, after a sweep that is under way. */
  sweep(): Promise<void> {
    return this.#enqueue(0);
  }

  #enqueue(lateMs: number): Promise<void> {
    this.#running = this.#running.then(() => this.#runDue(lateMs));
    return this.#running;
  }

  async #runDue(lateMs: number): Promise<void> {
    for (const entry of this.#chores) {
      if (this.#stopping.signal.aborted) return;
      if (entry.dueAt > this.#clock.steady()) continue;
      const { chore } = entry;
      entry.dueAt = this.#clock.steady() + chore.everyMs;
      try {
        if (chore.onEveryHub || (await this.#leadership.isLeader()))
          await chore.run(this.#stopping.signal, lateMs);
        entry.lastError = null;
      } catch (error) {
        const cause = String(error);
        // Logged once, not every second: a full disk or a damaged database may last.
        if (cause !== entry.lastError) this.#log.error("periodic work failed", { chore: chore.name, cause });
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
