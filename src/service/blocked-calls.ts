/**
 * The loop of every blocked call: it looks for what its caller asked for, or waits (waiters.ts) and looks again. Some calls
 * only read; others take (a receive its messages, a task/next its task).
 *
 * Invariant: a caller who hangs up loses nothing. What was taken, and can no longer be answered, is put back: at once or,
 * when the store refuses that, by the periodic work.
 *
 * A hang-up between the last poll of the sockets and the write of the answer cannot be noticed: Bun reports no failed
 * write.
 */
import type { Clock } from "../lib/clock.ts";
import { type Store, joinGroup } from "../store/store.ts";
import { WaitAborted, type Waiter } from "./waiters.ts";

export type Patience = {
  readonly waitMs: number;
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal;
};

export type TakerPatience = Patience & {
  /** Its transaction stores the answer for a repeat, so a hang-up loses nothing. */
  readonly repeatable: boolean;
};

/**
 * At once, and after each wake-up. Null when the wait is over.
 * @param waiter joined before the first `find`, leaves at the end; null: the call does not wait
 * @param atWakeUp begins the next `find` within the wake-up, and may call it twice (joinGroup)
 * @throws {WaitAborted} when the caller is gone
 */
export async function untilFound<T>(
  waiter: Pick<Waiter, "wait" | "leave"> | null,
  find: () => Promise<T | null>,
  { waitMs, signal }: Patience,
  clock: Pick<Clock, "steady">,
  atWakeUp?: (find: () => Promise<T | null>) => Promise<T | null>,
): Promise<T | null> {
  const deadline = clock.steady() + waitMs;
  /** Before wait() resolves. */
  let begun: Promise<T | null> | null = null;
  const onWake = atWakeUp && (() => (begun = atWakeUp(find)));
  try {
    for (let isFirst = true; ; isFirst = false) {
      const result: T | null = await (begun ?? find());
      begun = null;
      if (result !== null) return result;
      const leftMs = deadline - clock.steady();
      // A call past its deadline does not wait again, even if it was woken: leave() passes on what it was woken for. The
      // first round always comes to wait(), which says whether the first find may have missed something.
      const isOver = waiter === null || (!isFirst && leftMs <= 0);
      const outcome = isOver ? "timeout" : await waiter.wait(leftMs, signal, onWake);
      if (outcome === "woken") continue;
      if (signal.aborted || outcome === "aborted") throw new WaitAborted();
      return null;
    }
  } finally {
    waiter?.leave();
  }
}

export class Takes {
  readonly #store: Pick<Store, "socketsPolled">;
  readonly #clock: Pick<Clock, "steady">;
  /** Put-backs that the store refused. Few: something is taken only while it accepts writes. */
  readonly #failedPutBacks: (() => Promise<void>)[] = [];

  constructor(store: Pick<Store, "socketsPolled">, clock: Pick<Clock, "steady">) {
    this.#store = store;
    this.#clock = clock;
  }

  /** A wake-up begins the next take at once: on SQLite its transaction shares the commit that made the wake-up. */
  untilTaken<T>(
    waiter: Pick<Waiter, "wait" | "leave"> | null,
    take: () => Promise<T | null>,
    patience: Patience,
  ): Promise<T | null> {
    return untilFound(waiter, take, patience, this.#clock, joinGroup);
  }

  /**
   * Puts back what was taken when the caller has hung up during the commit. A `putBack` that fails is kept.
   * @throws {WaitAborted} when the caller is gone
   */
  async deliver<T>(
    taken: T,
    { signal, repeatable }: Omit<TakerPatience, "waitMs">,
    putBack: () => Promise<void>,
  ): Promise<T> {
    if (repeatable) return taken;
    await this.#store.socketsPolled();
    if (!signal.aborted) return taken;
    try {
      await putBack();
    } catch {
      this.#failedPutBacks.push(putBack); // the periodic work reports it if it fails there too
    }
    throw new WaitAborted();
  }

  /** Stops at the first failure, and keeps the rest. */
  async retryPutBacks(): Promise<void> {
    for (;;) {
      const [putBack] = this.#failedPutBacks;
      if (!putBack) return;
      await putBack();
      this.#failedPutBacks.shift();
    }
  }
}
