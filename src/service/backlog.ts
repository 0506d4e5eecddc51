/**
 * A walk through the pool of open tasks, best first (priority, then age), over the types that somebody takes. What nobody
 * takes is not read, however much of it there is: each type's tasks stand together in an index, and the walk merges them.
 */
import {
  POOL_LOOK_FIRST,
  POOL_LOOK_NEXT,
  POOL_PARTS_TOGETHER,
  POOL_TYPES_TOGETHER,
} from "../domain/limits.ts";
import { Heap } from "../lib/heap.ts";
import { type PoolCursor, type PoolPart, POOL_START, poolParts, poolTypes } from "../store/sql/balancer.ts";
import type { Store } from "../store/store.ts";

/** One part of the pool: what of it has been looked at, and where it goes on. */
type Run = {
  readonly part: PoolPart;
  ahead: readonly PoolCursor[];
  at: number;
  /** Whether there was nothing behind what has been looked at. */
  isWhole: boolean;
};

export class PoolWalk {
  readonly #store: Pick<Store, "read">;
  readonly #runs = new Heap<Run>([], isBetter);
  /** The task that was given out last. */
  cursor: PoolCursor;

  private constructor(store: Pick<Store, "read">, cursor: PoolCursor) {
    this.#store = store;
    this.cursor = cursor;
  }

  /** @param types the types to walk over; null: all tasks. The walk begins after `cursor`. */
  static async begin(
    store: Pick<Store, "read">,
    onlyBalanced: boolean,
    types: readonly string[] | null,
    cursor: PoolCursor = POOL_START,
  ): Promise<PoolWalk> {
    const walk = new PoolWalk(store, cursor);
    const parts = (types ?? [null]).flatMap((taskType) =>
      flagsOf(onlyBalanced).map((balanced): PoolPart => ({ balanced, taskType })),
    );
    for (let at = 0; at < parts.length; at += POOL_PARTS_TOGETHER) {
      const together = parts.slice(at, at + POOL_PARTS_TOGETHER);
      // Filled up, so that the statements are few: what the fillers find is not looked at.
      const filled = together.length === 1 ? together : fillUp(together);
      const asked = filled.map((part) => ({ part, after: cursor }));
      const found = await store.read(poolParts(asked, POOL_LOOK_FIRST));
      together.forEach((part, i) => walk.#add(part, found[i] ?? [], POOL_LOOK_FIRST));
      await othersTurn();
    }
    return walk;
  }

  /**
   * The next tasks, by their numbers; fewer than `limit` is the end.
   * @param isTaken whether somebody takes tasks of a type (null: of every type); if not, its tasks are passed over
   */
  async next(limit: number, isTaken: (taskType: string | null) => boolean): Promise<readonly number[]> {
    const seqs: number[] = [];
    while (seqs.length < limit) {
      const run = this.#runs.first;
      const best = run?.ahead[run.at];
      if (!run || !best) break;
      if (!isTaken(run.part.taskType)) {
        this.#runs.takeFirst();
        continue;
      }
      seqs.push(best.seq);
      this.cursor = best;
      run.at += 1;
      if (run.at < run.ahead.length) this.#runs.sinkFirst();
      else await this.#lookOn(run, best);
    }
    return seqs;
  }

  /** The first run has come to the end of what was looked at of it. */
  async #lookOn({ part, isWhole }: Run, after: PoolCursor): Promise<void> {
    this.#runs.takeFirst();
    if (isWhole) return;
    const [ahead] = await this.#store.read(poolParts([{ part, after }], POOL_LOOK_NEXT));
    this.#add(part, ahead ?? [], POOL_LOOK_NEXT);
  }

  #add(part: PoolPart, ahead: readonly PoolCursor[], limit: number): void {
    if (ahead.length > 0) this.#runs.put({ part, ahead, at: 0, isWhole: ahead.length < limit });
  }
}

/** The types of the tasks in the pool, a number at a time; "", which is none, is the first. */
export async function* typesInPool(store: Store, onlyBalanced: boolean): AsyncGenerator<readonly string[]> {
  yield [""];
  for (const balanced of flagsOf(onlyBalanced)) {
    for (let after: string | undefined = ""; after !== undefined;) {
      const types: readonly string[] = await store.read(poolTypes(balanced, after, POOL_TYPES_TOGETHER));
      await othersTurn();
      yield types;
      after = types.length < POOL_TYPES_TOGETHER ? undefined : types.at(-1);
    }
  }
}

/** Lets go of the event loop, so that requests are served between two steps. */
export function othersTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function flagsOf(onlyBalanced: boolean): readonly boolean[] {
  return onlyBalanced ? [true] : [false, true];
}

function fillUp(parts: readonly PoolPart[]): readonly PoolPart[] {
  const [first] = parts;
  return first ? [...parts, ...new Array<PoolPart>(POOL_PARTS_TOGETHER - parts.length).fill(first)] : parts;
}

function isBetter(a: Run, b: Run): boolean {
  const [one, other] = [a.ahead[a.at], b.ahead[b.at]];
  if (!one || !other) return one !== undefined;
  return one.priority !== other.priority ? one.priority < other.priority : one.seq < other.seq;
}
