/**
 * Coarse timeouts, which rarely expire: one shared interval checks them all each second. A timer for each request would
 * cost more than reading its body. They expire up to a second late, never early.
 */
import { assert } from "../lib/assert.ts";
const CHECK_INTERVAL_MS = 1_000;

type Deadline = { checksLeft: number; readonly onExpired: () => void };

export class Deadlines {
  readonly #pending = new Set<Deadline>();
  #timer: Timer | null = null;

  /** Unless the deadline is deleted first. */
  add(ms: number, onExpired: () => void): Deadline {
    assert(ms >= 0, "a deadline is not over when it begins");
    const checksLeft = Math.ceil(ms / CHECK_INTERVAL_MS) + 1; // the first check may follow at once
    const deadline = { checksLeft, onExpired };
    this.#pending.add(deadline);
    this.#timer ??= setInterval(() => this.#check(), CHECK_INTERVAL_MS).unref();
    return deadline;
  }

  delete(deadline: Deadline): void {
    this.#pending.delete(deadline);
  }

  #check(): void {
    for (const deadline of this.#pending) {
      if (--deadline.checksLeft > 0) continue;
      this.#pending.delete(deadline);
      deadline.onExpired();
    }
    if (this.#pending.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}
