/**
 * A concurrency limit: bounds how many calls of one kind run or wait at once, in total and for each caller, so that one
 * caller cannot exclude the others.
 */
import { overloaded, tooManyCalls } from "./error-table.ts";

export type Bounds = {
  readonly most: number;
  readonly mostOfOne: number;
  /** Subject and verb of the error, in the plural: "calls wait". */
  readonly what: string;
};

export class ConcurrencyLimit {
  readonly #bounds: Bounds;
  readonly #byCaller = new Map<string, number>();
  #size = 0;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /**
   * Counts one more call until the returned object is disposed. `caller`: null if only the total bound applies.
   * @throws {Problem} 503 when the total bound is reached; 429 when the bound of this caller is
   */
  enter(caller: string | null): Disposable {
    const { most, mostOfOne, what } = this.#bounds;
    const ofCaller = caller === null ? 0 : (this.#byCaller.get(caller) ?? 0);
    if (ofCaller >= mostOfOne)
      throw tooManyCalls(`${mostOfOne} of your ${what} at once, which is the limit.`);
    if (this.#size >= most) throw overloaded(`As many ${what} as the hub can hold.`);
    this.#size++;
    if (caller !== null) this.#byCaller.set(caller, ofCaller + 1);
    return { [Symbol.dispose]: () => this.#leave(caller) };
  }

  get size(): number {
    return this.#size;
  }

  #leave(caller: string | null): void {
    this.#size--;
    if (caller === null) return;
    const left = (this.#byCaller.get(caller) ?? 1) - 1;
    if (left > 0) this.#byCaller.set(caller, left);
    else this.#byCaller.delete(caller);
  }
}
