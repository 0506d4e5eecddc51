/**
 * Slows down who guesses secrets: counts the wrong ones by address over a minute.
 * The memory is bounded; when it is full the oldest address is forgotten.
 */
export class Throttle {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #maxAddresses: number;
  readonly #windows = new Map<string, { count: number; endsAt: number }>();

  constructor(limit: number, windowMs: number, maxAddresses: number) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#maxAddresses = maxAddresses;
  }

  /**
   * Counts one wrong guess. Answers 0 while the address is under the limit, else the milliseconds until its window
   * ends. `now` is a reading of a clock that does not jump.
   */
  strike(address: string, now: number): number {
    let window = this.#windows.get(address);
    if (!window || window.endsAt <= now) {
      this.#windows.delete(address);
      if (this.#windows.size >= this.#maxAddresses) this.#forgetOldest();
      window = { count: 0, endsAt: now + this.#windowMs };
      this.#windows.set(address, window);
    }
    window.count += 1;
    return window.count < this.#limit ? 0 : window.endsAt - now;
  }

  /** Addresses that are remembered. */
  get size(): number {
    return this.#windows.size;
  }

  #forgetOldest(): void {
    const oldest = this.#windows.keys().next();
    if (!oldest.done) this.#windows.delete(oldest.value);
  }
}
