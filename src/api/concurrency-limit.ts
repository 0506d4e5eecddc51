/**
 * A concurrency limit: how many calls of one kind run or wait at once, in all and of one caller. So one greedy caller
 * cannot shut out the others.
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
   * Counts one more call, until the answer is disposed. `caller`: null for one whose calls are bounded only in all.
   * @throws {Problem} 503 when there are as many calls as there may be; 429 when they are all of this caller
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
