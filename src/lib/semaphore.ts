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
   * @throws {AcquireTimeout} after `withinMs`, or when the semaphore is closed; then nothing is acquired
   */
  acquire(amount: number, withinMs?: number): Promise<void> {
    if (this.tryAcquire(amount)) return Promise.resolve();
    if (this.#isClosed) return Promise.reject(new AcquireTimeout());
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const refuse = (): void => {
      this.#remove(waiter);
      reject(new AcquireTimeout());
      this.#grant(); // smaller amounts may have waited behind this one
    };
    const timer = withinMs === undefined ? undefined : setTimeout(refuse, withinMs);
    const waiter: Waiter = { amount, timer, grant: resolve, refuse };
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
    this.#waiters.delete(waiter);
  }

  #fits(amount: number): boolean {
    return this.#held === 0 || this.#held + amount <= this.#limit;
  }
}

type Waiter = {
  readonly amount: number;
  readonly timer: Timer | undefined;
  readonly grant: () => void;
  readonly refuse: () => void;
};

/** The amount was not free in time. */
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
