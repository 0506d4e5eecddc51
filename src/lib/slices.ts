/**
 * Spreads many small steps over ticks of the event loop, in FIFO order and a few in each tick, so that requests are served
 * in between.
 */
export class Slices {
  readonly #perTick: number;
  #queue: (() => void)[] = [];
  #scheduled = false;

  constructor(perTick: number) {
    this.#perTick = perTick;
  }

  /** Runs `step` in this or a later tick, after the caller has returned. `step` must not throw. */
  run(step: () => void): void {
    this.#queue.push(step);
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#runSome());
  }

  #runSome(): void {
    const queue = this.#queue;
    this.#queue = [];
    for (const step of queue.slice(0, this.#perTick)) step();
    this.#queue = [...queue.slice(this.#perTick), ...this.#queue];
    this.#scheduled = this.#queue.length > 0;
    if (this.#scheduled) setImmediate(() => this.#runSome());
  }
}
