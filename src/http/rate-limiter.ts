/**
 * A fixed-window rate limit on the failures of each client address, so that nobody can guess a secret. Memory is
 * bounded: at `maxAddresses` the address whose window began first is dropped.
 */
import { assert } from "../lib/assert.ts";
export class RateLimiter {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #maxAddresses: number;
  readonly #windows = new Map<string, { count: number; endsAt: number }>();

  constructor(limit: number, windowMs: number, maxAddresses: number) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#maxAddresses = maxAddresses;
  }

  /** Returns 0 while the address is under the limit, else the milliseconds until its window ends. `now`: monotonic. */
  recordFailure(address: string, now: number): number {
    let window = this.#windows.get(address);
    if (!window || window.endsAt <= now) {
      this.#windows.delete(address);
      if (this.#windows.size >= this.#maxAddresses) this.#dropOldest();
      window = { count: 0, endsAt: now + this.#windowMs };
      this.#windows.set(address, window);
      assert(this.#windows.size <= this.#maxAddresses, "the number of addresses is bounded");
    }
    window.count += 1;
    return window.count < this.#limit ? 0 : window.endsAt - now;
  }

  isExceeded(address: string, now: number): boolean {
    const window = this.#windows.get(address);
    return window !== undefined && window.endsAt > now && window.count >= this.#limit;
  }

  get size(): number {
    return this.#windows.size;
  }

  #dropOldest(): void {
    const oldest = this.#windows.keys().next();
    if (!oldest.done) this.#windows.delete(oldest.value);
  }
}
