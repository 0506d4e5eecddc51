/** Bounds how many calls of one kind run or wait at once, in total and for each caller (caller-shares.ts). */
import type { ShareSizes } from "../domain/limits.ts";
import { assert, must } from "../lib/assert.ts";
import type { Share } from "./caller-shares.ts";
import { overloaded, tooManyCalls } from "./error-table.ts";

export class ConcurrencyLimit {
  readonly #sizes: ShareSizes;
  readonly #what: string;
  readonly #keys: Counts = { all: 0, byName: new Map() };
  readonly #addresses: Counts = { all: 0, byName: new Map() };

  /** @param what subject and verb of the error, in the plural: "long polls wait" */
  constructor(sizes: ShareSizes, what: string) {
    this.#sizes = sizes;
    this.#what = what;
  }

  /**
   * Counts one more call until the returned object is disposed.
   * @throws {Problem} 429 when the caller has its whole share; 503 when all callers together have the total
   */
  enter({ kind, name }: Share): Disposable {
    const isAddress = kind === "address";
    const counts = isAddress ? this.#addresses : this.#keys;
    const ofCaller = counts.byName.get(name) ?? 0;
    if (ofCaller >= this.#sizes[kind])
      throw tooManyCalls(`${this.#sizes[kind]} of your ${this.#what} at once, which is the limit.`);
    if (counts.all >= (isAddress ? this.#sizes.addresses : this.#sizes.keys))
      throw overloaded(`As many ${this.#what} as the hub can hold.`);
    counts.all++;
    counts.byName.set(name, ofCaller + 1);
    return { [Symbol.dispose]: () => leave(counts, name) };
  }

  get size(): { readonly known: number; readonly anonymous: number } {
    return { known: this.#keys.all, anonymous: this.#addresses.all };
  }
}

type Counts = { all: number; readonly byName: Map<string, number> };

function leave(counts: Counts, name: string): void {
  counts.all--;
  assert(counts.all >= 0, "a call that leaves was counted");
  const ofCaller = must(counts.byName.get(name), "a call that leaves was counted") - 1;
  if (ofCaller > 0) counts.byName.set(name, ofCaller);
  else counts.byName.delete(name);
}
