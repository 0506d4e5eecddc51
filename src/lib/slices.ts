/**
 * Runs what many asked for at once, a few of them in each tick of the event loop, in the order of asking: so that others
 * are served in between.
 */
export class Slices {
  readonly #perTick: number;
  #queue: (() => void)[] = [];
  #scheduled = false;

  constructor(perTick: number) {
    this.#perTick = perTick;
  }

  /** Runs `step` later: with the first few, after the caller has ended. It must not throw. */
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
