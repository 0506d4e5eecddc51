/** Spreads many small steps over ticks of the event loop in FIFO order, so that requests are served in between. */
import { assert } from "./assert.ts";

export class Slices {
  readonly #perTick: number;
  #queue: (() => void)[] = [];
  #next = 0;
  #scheduled = false;

  constructor(perTick: number) {
    assert(perTick > 0, "a tick runs at least one step");
    this.#perTick = perTick;
  }

  /** After the caller has returned. `step` must not throw; it may add steps. */
  run(step: () => void): void {
    this.#queue.push(step);
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#runSome());
  }

  #runSome(): void {
    for (let remaining = this.#perTick; remaining > 0 && this.#next < this.#queue.length; remaining--)
      this.#queue[this.#next++]?.();
    this.#scheduled = this.#next < this.#queue.length;
    if (this.#scheduled) {
      setImmediate(() => this.#runSome());
      return;
    }
    this.#queue = [];
    this.#next = 0;
  }
}
