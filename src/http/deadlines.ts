/**
 * Deadlines that are hardly ever met: one timer looks after all of them once a second, for a timer a request costs more
 * than reading its body. A deadline is thus up to a second late, and never early.
 */
const LOOK_MS = 1_000;

type Deadline = { looksLeft: number; readonly onLate: () => void };

export class Deadlines {
  readonly #pending = new Set<Deadline>();
  #timer: Timer | null = null;

  /** Calls `onLate` when `ms` are over, unless the deadline is deleted before. */
  add(ms: number, onLate: () => void): Deadline {
    const deadline = { looksLeft: Math.ceil(ms / LOOK_MS) + 1, onLate }; // the first look may come at once
    this.#pending.add(deadline);
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref();
    return deadline;
  }

  delete(deadline: Deadline): void {
    this.#pending.delete(deadline);
  }

  #look(): void {
    for (const deadline of this.#pending) {
      if (--deadline.looksLeft > 0) continue;
      this.#pending.delete(deadline);
      deadline.onLate();
    }
    if (this.#pending.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}
