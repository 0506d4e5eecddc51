/**
 * Bounded scans: of a list that no index has, the rows are examined in steps of bounded size, and between two steps others
 * are served. A scan that has examined its maximum ends at a position, from which another call continues.
 */
import { LIST_FAR_PAGES_MAX, LIST_SCANNED_MAX } from "../domain/limits.ts";
import { assert, must } from "../lib/assert.ts";
import { TickQueue } from "../lib/semaphore.ts";

/** `next`: the position after which the other rows are; null at the end. */
export type Part<R, P> = { readonly rows: readonly R[]; readonly next: P | null };

/** Fewer than `limit` are the last ones. */
export function partOf<R, P>(rows: readonly R[], limit: number, position: (row: R) => P): Part<R, P> {
  assert(rows.length <= limit, "a query finds no more than its limit");
  return { rows, next: rows.length < limit ? null : position(must(rows.at(-1), "a limit is positive")) };
}

/** One more row than `limit` if the list goes on; else `end` is where it does. */
export function pageOfFound<R, P>(
  found: readonly R[],
  limit: number,
  position: (row: R) => P,
  end: P | null = null,
): Part<R, P> {
  if (found.length <= limit) return { rows: found, next: end };
  return partOf(found.slice(0, limit), limit, position);
}

export class PagesBusy extends Error {
  override readonly name = "PagesBusy";
}

/** One step of all in each tick of the event loop. */
export class Scans {
  readonly #turns = new TickQueue();

  /** @throws {PagesBusy} */
  async turn(): Promise<void> {
    if (this.#turns.waiting >= LIST_FAR_PAGES_MAX) throw new PagesBusy("Too many searches wait.");
    await this.#turns.next();
  }

  /** Until `most` rows are examined. @throws {PagesBusy} */
  async *steps<R, P>(
    from: P,
    read: (from: P) => Promise<Part<R, P>>,
    most = LIST_SCANNED_MAX,
  ): AsyncGenerator<Part<R, P>> {
    let looked = 0;
    for (let at: P | null = from; at !== null && looked < most;) {
      if (looked > 0) await this.turn();
      const step: Part<R, P> = await read(at);
      yield step;
      looked += step.rows.length;
      at = step.next;
    }
  }
}
