/** A weighted semaphore, in FIFO order. */
import { assert, broken } from "./assert.ts";
import type { Clock } from "./clock.ts";

export class Semaphore {
  readonly #limit: number;
  #held = 0;
  readonly #waiters = new Set<Waiter>();
  #isClosed = false;

  constructor(limit: number) {
    assert(limit > 0, "a semaphore has something to share");
    this.#limit = limit;
  }

  /**
   * Resolves when the amount is acquired. An amount above the limit is acquired when nothing else is held.
   * @throws {AcquireTimeout} after `withinMs`, when `signal` aborts meanwhile, or when the semaphore is closed; then
   * nothing is acquired
   */
  acquire(amount: number, withinMs?: number, signal?: AbortSignal): Promise<void> {
    if (this.tryAcquire(amount)) return Promise.resolve();
    if (this.#isClosed || signal?.aborted) return Promise.reject(new AcquireTimeout());
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const refuse = (): void => {
      this.#remove(waiter);
      reject(new AcquireTimeout());
      this.#grant(); // smaller amounts may have waited behind this one
    };
    const timer = withinMs === undefined ? undefined : setTimeout(refuse, withinMs);
    const unsubscribe = (): void => signal?.removeEventListener("abort", refuse);
    const waiter: Waiter = { amount, timer, grant: resolve, refuse, unsubscribe };
    signal?.addEventListener("abort", refuse);
    this.#waiters.add(waiter);
    return promise;
  }

  /** Only if no caller waits. */
  tryAcquire(amount: number): boolean {
    assert(amount >= 0, "no negative amount is acquired");
    if (this.#waiters.size > 0 || !this.#fits(amount)) return false;
    this.#held += amount;
    return true;
  }

  /** Beyond the limit too: for data that is already in memory. */
  overdraw(amount: number): void {
    assert(amount >= 0, "no negative amount is acquired");
    this.#held += amount;
  }

  release(amount: number): void {
    this.#held -= amount;
    if (this.#held < 0) {
      broken("what is released was acquired");
      this.#held = 0; // the bound holds again
    }
    this.#grant();
  }

  /** A free amount can still be acquired. */
  close(): void {
    this.#isClosed = true;
    for (const { refuse } of [...this.#waiters].toReversed()) refuse(); // last first, so that no refusal grants to another waiter
  }

  get contended(): boolean {
    return this.#waiters.size > 0;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  get held(): number {
    return this.#held;
  }

  #grant(): void {
    for (const waiter of this.#waiters) {
      if (!this.#fits(waiter.amount)) return;
      this.#remove(waiter);
      this.#held += waiter.amount;
      waiter.grant();
    }
  }

  #remove(waiter: Waiter): void {
    clearTimeout(waiter.timer);
    waiter.unsubscribe();
    this.#waiters.delete(waiter);
  }

  #fits(amount: number): boolean {
    return this.#held === 0 || this.#held + amount <= this.#limit;
  }
}

export type Acquirable = Pick<Semaphore, "acquire" | "tryAcquire" | "overdraw" | "release" | "contended">;

/** The holders under one name together acquire at most the size of their share. */
export class SemaphoreShares {
  readonly #whole: Semaphore;
  /** Idle ones are deleted. */
  readonly #byName = new Map<string, Semaphore>();

  constructor(limit: number) {
    this.#whole = new Semaphore(limit);
  }

  /** @param size the same each time for a name */
  of(name: string, size: number): Acquirable {
    return new SemaphoreShare(this.#whole, this.#byName, name, size);
  }

  close(): void {
    for (const share of [...this.#byName.values(), this.#whole]) share.close();
  }

  get size(): number {
    return this.#byName.size;
  }
}

/** A class, because each of many streams has one. */
class SemaphoreShare implements Acquirable {
  readonly #whole: Semaphore;
  readonly #byName: Map<string, Semaphore>;
  readonly #name: string;
  readonly #size: number;

  constructor(whole: Semaphore, byName: Map<string, Semaphore>, name: string, size: number) {
    this.#whole = whole;
    this.#byName = byName;
    this.#name = name;
    this.#size = size;
  }

  /** First for its own share, then for the whole: it never stands in the way of others. */
  async acquire(amount: number, withinMs?: number, signal?: AbortSignal): Promise<void> {
    await this.#own()
      .acquire(amount, withinMs, signal)
      .catch((error: unknown) => {
        this.#releaseOwn(0);
        throw error;
      });
    await this.#whole.acquire(amount, withinMs, signal).catch((error: unknown) => {
      this.#releaseOwn(amount);
      throw error;
    });
  }

  tryAcquire(amount: number): boolean {
    if (!this.#own().tryAcquire(amount)) return false;
    if (this.#whole.tryAcquire(amount)) return true;
    this.#releaseOwn(amount);
    return false;
  }

  overdraw(amount: number): void {
    this.#own().overdraw(amount);
    this.#whole.overdraw(amount);
  }

  release(amount: number): void {
    this.#whole.release(amount);
    this.#releaseOwn(amount);
  }

  get contended(): boolean {
    return this.#whole.contended || (this.#byName.get(this.#name)?.contended ?? false);
  }

  #own(): Semaphore {
    const known = this.#byName.get(this.#name);
    if (known) return known;
    const made = new Semaphore(this.#size);
    this.#byName.set(this.#name, made);
    return made;
  }

  #releaseOwn(amount: number): void {
    const share = this.#byName.get(this.#name);
    share?.release(amount);
    if (share?.held === 0 && !share.contended) this.#byName.delete(this.#name);
  }
}

type Waiter = {
  readonly amount: number;
  readonly timer: Timer | undefined;
  readonly grant: () => void;
  readonly refuse: () => void;
  readonly unsubscribe: () => void;
};

/** The time was over, the caller aborted, or the semaphore was closed. */
export class AcquireTimeout extends Error {
  override readonly name = "AcquireTimeout";
}

/** One caller per tick of the event loop, so that other requests are served in between. */
export class TickQueue {
  readonly #mutex = new Semaphore(1);

  async next(): Promise<void> {
    await this.#mutex.acquire(1);
    setImmediate(() => this.#mutex.release(1));
  }

  get waiting(): number {
    return this.#mutex.waiting;
  }
}

/**
 * A few callers per tick of the event loop, in turn for each name. Each short tick lets one more through in the next, up
 * to `most`; after one that took `shortMs`, a tick lets one through again.
 */
export class FairTickQueue {
  readonly #most: number;
  readonly #shortMs: number;
  readonly #timers: Clock["timers"];
  /** The name whose turn is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #perTick = 1;
  /** How many more may continue in this tick. */
  #left = 1;
  #isTicking = false;
  #startedMs = 0;

  constructor(most: number, shortMs: number, timers: Clock["timers"]) {
    this.#most = most;
    this.#shortMs = shortMs;
    this.#timers = timers;
  }

  next(name: string): Promise<void> {
    if (this.#left > 0 && this.#waiting.size === 0) {
      this.#use();
      return Promise.resolve();
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const ofName = this.#waiting.get(name);
    if (ofName) ofName.push(resolve);
    else this.#waiting.set(name, [resolve]);
    return promise;
  }

  #use(): void {
    assert(this.#left > 0, "a tick lets through no more callers than it may");
    this.#left--;
    if (this.#isTicking) return;
    this.#isTicking = true;
    this.#startedMs = this.#timers();
    setImmediate(() => this.#nextTick());
  }

  #nextTick(): void {
    this.#isTicking = false;
    const isShort = this.#timers() - this.#startedMs < this.#shortMs;
    this.#perTick = isShort && this.#left === 0 ? Math.min(this.#perTick + 1, this.#most) : 1;
    this.#left = this.#perTick;
    for (const [name, [first, ...others]] of this.#waiting) {
      if (this.#left === 0) return;
      this.#waiting.delete(name);
      if (others.length > 0) this.#waiting.set(name, others); // last: the loop comes to it again
      this.#use();
      first?.();
    }
  }
}
