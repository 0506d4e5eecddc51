/** A weighted semaphore: callers share a bounded amount; an acquire of more than is free waits in FIFO order. */
export class Semaphore {
  readonly #limit: number;
  #held = 0;
  readonly #waiters = new Set<Waiter>();
  #isClosed = false;

  constructor(limit: number) {
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

  /** Acquires the amount if it is free and no caller waits. */
  tryAcquire(amount: number): boolean {
    if (this.#waiters.size > 0 || !this.#fits(amount)) return false;
    this.#held += amount;
    return true;
  }

  /** Acquires without waiting, even beyond the limit: for data that is already in memory. */
  overdraw(amount: number): void {
    this.#held += amount;
  }

  release(amount: number): void {
    this.#held -= amount;
    this.#grant();
  }

  /** Refuses all waiting and later waits. A free amount can still be acquired. */
  close(): void {
    this.#isClosed = true;
    for (const { refuse } of [...this.#waiters].toReversed()) refuse(); // last first, so that no refusal grants to another waiter
  }

  /** Whether a caller waits. */
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

/** What can be acquired and released: a semaphore, or a share of one. */
export type Acquirable = Pick<Semaphore, "acquire" | "tryAcquire" | "overdraw" | "release">;

/** Shares of one semaphore, by name: the holders under one name together acquire at most `limitEach`. */
export class SemaphoreShares {
  readonly #whole: Semaphore;
  readonly #limitEach: number;
  /** The shares that are held or waited for; idle ones are deleted. */
  readonly #byName = new Map<string, Semaphore>();

  constructor(limit: number, limitEach: number) {
    this.#whole = new Semaphore(limit);
    this.#limitEach = limitEach;
  }

  of(name: string): Acquirable {
    const whole = this.#whole;
    const own = (): Semaphore => {
      const known = this.#byName.get(name) ?? new Semaphore(this.#limitEach);
      this.#byName.set(name, known);
      return known;
    };
    const release = (amount: number): void => {
      whole.release(amount);
      this.#release(name, amount);
    };
    return {
      acquire: async (amount, withinMs) => {
        await own()
          .acquire(amount, withinMs)
          .catch((error: unknown) => {
            this.#release(name, 0);
            throw error;
          });
        await whole.acquire(amount, withinMs).catch((error: unknown) => {
          this.#release(name, amount);
          throw error;
        });
      },
      tryAcquire: (amount) => {
        if (!own().tryAcquire(amount)) return false;
        if (whole.tryAcquire(amount)) return true;
        this.#release(name, amount);
        return false;
      },
      overdraw: (amount) => {
        own().overdraw(amount);
        whole.overdraw(amount);
      },
      release,
    };
  }

  /** Refuses all waiting and later waits. */
  close(): void {
    for (const share of [...this.#byName.values(), this.#whole]) share.close();
  }

  /** How many shares are held or waited for. */
  get size(): number {
    return this.#byName.size;
  }

  #release(name: string, amount: number): void {
    const share = this.#byName.get(name);
    share?.release(amount);
    if (share?.held === 0 && !share.contended) this.#byName.delete(name);
  }
}

type Waiter = {
  readonly amount: number;
  readonly timer: Timer | undefined;
  readonly grant: () => void;
  readonly refuse: () => void;
  /** Removes the listener from the caller's signal. */
  readonly unsubscribe: () => void;
};

/** Nothing was acquired: the time was over, the caller aborted, or the semaphore was closed. */
export class AcquireTimeout extends Error {
  override readonly name = "AcquireTimeout";
}

/** A FIFO queue that lets one caller continue per tick of the event loop, so that other requests are served in between. */
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
