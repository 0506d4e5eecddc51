/**
 * Runs what many asked for at once, a few of them in each tick of the event loop, in the order of asking: so that others
 * are served in between.
 */
export class Slices {
  readonly #perTick: number;
  #queue: (() => void)[] = [];
  /** The steps before this one have run. */
  #next = 0;
  #scheduled = false;

  constructor(perTick: number) {
    this.#perTick = perTick;
  }

  /** Runs `step` later: with the first few, after the caller has ended. It must not throw; it may ask for more steps. */
  run(step: () => void): void {
    this.#queue.push(step);
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#runSome());
  }

  #runSome(): void {
    for (let left = this.#perTick; left > 0 && this.#next < this.#queue.length; left--)
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
