/**
 * The scheduler of the periodic work (periodic-work.ts) decides when each chore runs, and on which of several hubs.
 *
 * The chores run one after the other, each with a budget of time: what it leaves is done in the next round, which
 * follows at once. A chore that does not stop in time is left running, and is not started again before it has ended.
 * So no chore can keep another from running, however much it finds to do. A failure is logged once for each cause, and
 * the chore runs again when it is next due. If several hubs share a database, only the leader runs the chores, except
 * those marked `onEveryHub`.
 */
import { CHORE_BUDGET_MS, CHORE_OVERRUN_MS } from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type Store, StoreFull } from "../store/store.ts";

/**
 * It may run at any time and any number of times, because what it does depends only on the stored rows and the clock.
 * It works in bounded steps, and stops after a step when
 * `signal` is aborted: the hub stops, or the chore has used its budget. It does at least one step, so that it gets on.
 */
export type Chore = {
  readonly name: string;
  readonly everyMs: number;
  readonly onEveryHub?: boolean;
  /** It writes no row: a standby runs it too. */
  readonly onCopies?: boolean;
  /** `lateMs` returns how long the process stood still since the last call of it. */
  readonly run: (signal: AbortSignal, lateMs: () => number) => Promise<ChoreEnd>;
};

/** "cut short": it would have found more to do. */
export type ChoreEnd = "cut short" | void;

/** The store runs the election (store/postgres/leader-election.ts). A single hub always is the leader. */
export class Leadership {
  readonly #election: Pick<Store, "lead">;
  readonly #renewLeases: () => Promise<void>;
  #isLeading = false;
  /** Elected after a time without a leader, and has not renewed the leases yet. */
  #afterGap = false;

  /**
   * @param renewLeases runs after a time without a leader: perhaps no hub accepted heartbeats then, so the silence of
   * the nodes must not count
   */
  constructor(election: Pick<Store, "lead">, renewLeases: () => Promise<void>) {
    this.#election = election;
    this.#renewLeases = renewLeases;
  }

  /** When it resolves to true, the leases can be trusted. */
  async isLeader(): Promise<boolean> {
    const result = await this.#election.lead();
    this.#isLeading = result !== "follower";
    if (!this.#isLeading) return false;
    this.#afterGap ||= result === "elected after a gap"; // kept, because the store reports it once and renewing may fail
    if (this.#afterGap) {
      await this.#renewLeases();
      this.#afterGap = false;
    }
    return true;
  }

  /** The last election is at most about a second old. */
  get isLeading(): boolean {
    return this.#isLeading;
  }
}

export type ChoreRuns = {
  readonly name: string;
  /** Wall clock; null: never. */
  readonly succeededAt: number | null;
  readonly failures: number;
};

type SchedulerParts = {
  readonly clock: Clock;
  readonly log: Log;
  readonly leadership: Pick<Leadership, "isLeader">;
  readonly chores: readonly Chore[];
  /** A tick during a sweep does not start another. */
  readonly pauseMs: number;
  /** `lateMs`: the lag of the event loop. */
  readonly onTick?: (lateMs: number) => void;
  /** After that the sweep waits for the end of its step. */
  readonly budgetMs?: number;
  readonly overrunMs?: number;
};

type Entry = {
  readonly chore: Chore;
  dueAt: number;
  lastError: string | null;
  succeededAt: number | null;
  failures: number;
  isCutShort: boolean;
  running: Promise<void> | null;
  /** After the step that it is in. */
  stopping: AbortController | null;
};

export class Scheduler {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #leadership: Pick<Leadership, "isLeader">;
  readonly #chores: readonly Entry[];
  readonly #pauseMs: number;
  readonly #budgetMs: number;
  readonly #overrunMs: number;
  #isStopping = false;
  /** Also runs during a sweep, so that its lateness reveals a standstill at any time. */
  #timer: Timer | null = null;
  #timerDueAt = Number.POSITIVE_INFINITY;
  #lateMs = 0;
  #sweeps = 0;
  readonly #onTick: (lateMs: number) => void;
  #running: Promise<void> = Promise.resolve();

  constructor({ clock, log, leadership, chores, pauseMs, onTick = () => {}, ...times }: SchedulerParts) {
    this.#clock = clock;
    this.#onTick = onTick;
    this.#log = log;
    this.#leadership = leadership;
    this.#chores = chores.map((chore) => ({
      chore,
      dueAt: clock.steady() + chore.everyMs,
      lastError: null,
      succeededAt: null,
      failures: 0,
      isCutShort: false,
      running: null,
      stopping: null,
    }));
    this.#pauseMs = pauseMs;
    this.#budgetMs = times.budgetMs ?? CHORE_BUDGET_MS;
    this.#overrunMs = times.overrunMs ?? CHORE_OVERRUN_MS;
  }

  start(): void {
    this.#timerDueAt = this.#clock.timers() + this.#pauseMs;
    const dueAt = this.#timerDueAt;
    this.#timer = setTimeout(() => {
      this.#onTick(Math.max(0, this.#clock.timers() - dueAt));
      this.#lateMs = this.#lateness();
      this.start();
      if (this.#sweeps === 0) void this.#sweep();
    }, this.#pauseMs);
  }

  /** Until none has more to do; waits for a running sweep first. */
  async sweep(): Promise<void> {
    do {
      await this.#sweep();
      await this.#ended();
    } while (!this.#isStopping && this.#chores.some(({ isCutShort }) => isCutShort));
  }

  #sweep(): Promise<void> {
    this.#sweeps++;
    this.#running = this.#running.then(() => this.#runDue()).finally(() => this.#sweeps--);
    return this.#running;
  }

  async #ended(): Promise<void> {
    await Promise.all(this.#chores.map(({ running }) => running));
  }

  /** Returns how late the timer is. It may be overdue: after a standstill, other work may run before it fires. */
  #lateness(): number {
    return Math.max(this.#lateMs, this.#clock.timers() - this.#timerDueAt);
  }

  /** Resets it, so that each standstill counts once. */
  #takeLateness(): number {
    const lateMs = this.#lateness();
    this.#lateMs = 0;
    this.#timerDueAt = Math.max(this.#timerDueAt, this.#clock.timers());
    return lateMs;
  }

  /** Also those that are cut short. */
  async #runDue(): Promise<void> {
    do {
      for (const entry of this.#chores) {
        if (this.#isStopping) return;
        if (entry.running === null && this.#isDue(entry)) await this.#runInTime(entry);
      }
    } while (this.#chores.some(({ isCutShort }) => isCutShort));
  }

  /** A chore that was cut short is due; so is one whose next run a clock that was set back has moved too far away. */
  #isDue({ chore, dueAt, isCutShort }: Entry): boolean {
    const inMs = dueAt - this.#clock.steady();
    return isCutShort || inMs <= 0 || inMs > chore.everyMs;
  }

  /** Or until its time is over. */
  async #runInTime(entry: Entry): Promise<void> {
    const stopping = new AbortController();
    entry.stopping = stopping;
    entry.isCutShort = false;
    entry.dueAt = this.#clock.steady() + entry.chore.everyMs;
    entry.running = this.#run(entry, stopping.signal).finally(() => {
      entry.running = null;
      entry.stopping = null;
    });
    const over = Promise.withResolvers<void>();
    let timer = setTimeout(() => {
      stopping.abort();
      timer = setTimeout(over.resolve, this.#overrunMs);
    }, this.#budgetMs);
    await Promise.race([entry.running, over.promise]);
    clearTimeout(timer);
  }

  /** Never rejects. */
  async #run(entry: Entry, signal: AbortSignal): Promise<void> {
    const { chore } = entry;
    try {
      if (chore.onEveryHub || (await this.#leadership.isLeader())) {
        const end = await chore.run(signal, () => this.#takeLateness());
        entry.isCutShort = end === "cut short";
        entry.succeededAt = this.#clock.now();
      }
      entry.lastError = null;
    } catch (error) {
      entry.failures++;
      const cause = String(error);
      // Logs each cause once, not every second and for each chore, because a database may stay damaged for long. The
      // chore that watches the database logs a full disk.
      const isKnown = error instanceof StoreFull || this.#chores.some(({ lastError }) => lastError === cause);
      if (!isKnown) this.#log.error("periodic work failed", { chore: chore.name, cause });
      entry.lastError = cause;
    }
  }

  runs(): readonly ChoreRuns[] {
    return this.#chores.map(({ chore: { name }, succeededAt, failures }) => ({
      name,
      succeededAt,
      failures,
    }));
  }

  /** Waits until the running chores have finished their steps. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const { stopping } of this.#chores) stopping?.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#running;
    await this.#ended();
  }
}
