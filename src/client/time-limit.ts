/**
 * The time limit of a task's handler, or of its command. It does not run while a question is open, and begins again in full
 * afterwards, as the hub's limits of the task do.
 */
import { sleepUnlessAborted } from "./http.ts";

/** The time that a task's handler or command may take. */
export class TimeLimit {
  readonly #ms: number | null;
  readonly #onOver: () => void;
  #pauses = 1;
  #running: AbortController | null = null;

  /** @param ms null: there is no limit */
  constructor(ms: number | null, onOver: () => void) {
    this.#ms = ms;
    this.#onOver = onOver;
  }

  pause(): void {
    this.#pauses++;
    this.#running?.abort();
  }

  /** The first call begins it. */
  resume(): void {
    if (--this.#pauses > 0 || this.#ms === null) return;
    this.#running = new AbortController();
    void sleepUnlessAborted(this.#ms, this.#running.signal).then((isOver) => isOver && this.#onOver());
  }

  /** Begins it again, unless it is paused. */
  restart(): void {
    if (this.#pauses > 0) return;
    this.pause();
    this.resume();
  }

  end(): void {
    this.#pauses = Number.POSITIVE_INFINITY;
    this.#running?.abort();
  }
}
