/**
 * FIFO wait queues, one for each key: long polls and blocking receives sleep here until a commit may have written rows
 * for them.
 *
 * A waiter joins, reads the store, sleeps, is woken, reads again, and leaves. It keeps its position from join() to
 * leave(), however often it sleeps. wakeOne() wakes the first sleeper in the queue.
 *
 * Invariant: no waiter stays asleep while there is a row for it for which wakeOne() was called. That call
 *   - woke a sleeper, which then reads the store, or passes the wake-up on to the next sleeper when it leaves; or
 *   - found no sleeper: the waiters awake may have read too early, so the next wait() of each returns "woken" at once.
 *
 * A linked list is longer than a Set in insertion order, and faster: with 20,000 waiters, removing the first from a Set
 * costs 8 us and adding it again 39 us; here a wake-up costs 0.2 to 1.6 us and a leave at most 0.5 us.
 *
 * Must not: touch the store, hold data, or be trusted for correctness. A lost wake-up costs time only.
 */
import { WAKE_UPS_TOGETHER } from "../domain/limits.ts";
import { Slices } from "../lib/slices.ts";

/** How a wait ended: a wake-up, its deadline, the caller's signal (or a leave() meanwhile), or the hub shutting down. */
export type Outcome = "woken" | "timeout" | "aborted" | "drained";

/** The caller of a waiting call hung up before there was anything to answer. */
export class WaitAborted extends Error {
  override readonly name = "WaitAborted";

  constructor() {
    super("The caller of a waiting call is gone.");
  }
}

export type Waiter = Pick<QueuedWaiter, "wait" | "markServed" | "leave">;

/** The longest delay of a timer (24 days); a longer wait is cut to it. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** The queues of one kind of wait. The caller bounds the number of waiters (see `size`). */
export class WaitQueue {
  readonly #queues = new Map<string, Queue>();
  readonly #slices = new Slices(WAKE_UPS_TOGETHER);
  #drained = false;
  #size = 0;

  /** Joins the end of a queue. Must precede the read of the store, so that no wake-up is lost in between. */
  join(key: string): Waiter {
    let queue = this.#queues.get(key);
    if (!queue) this.#queues.set(key, (queue = new Queue(key, this.#slices, this.#drained)));
    this.#size++;
    return new QueuedWaiter(queue, this.#onLeave);
  }

  readonly #onLeave = ({ queue, carriesWakeUp }: QueuedWaiter): void => {
    this.#size--;
    if (queue.first === undefined) this.#queues.delete(queue.key);
    else if (carriesWakeUp) queue.wakeOne();
  };

  /** Wakes the first sleeper, for a new row that one waiter takes. O(1) amortised. */
  wakeOne(key: string): void {
    this.#queues.get(key)?.wakeOne();
  }

  /**
   * Wakes the first sleeper of each key, for a new row for each, as after a broadcast. It does so in slices, so that
   * other requests are served between the reads of the woken waiters. A waiter that joins later reads the row at once.
   */
  wakeOneOfEach(): void {
    for (const key of this.#queues.keys()) this.#slices.run(() => this.wakeOne(key));
  }

  /**
   * Wakes all waiters of a key, for a new row that every waiter reads: in slices, one per tick, so that requests are
   * served in between.
   */
  wakeAll(key: string): void {
    this.#queues.get(key)?.wakeAll();
  }

  /** Ends every wait with "drained", now and from now on. */
  drain(): void {
    this.#drained = true;
    for (const queue of this.#queues.values()) {
      queue.drain();
    }
  }

  /** Waiters in all queues. */
  get size(): number {
    return this.#size;
  }

  /** Queues with a waiter. */
  get keys(): number {
    return this.#queues.size;
  }
}

/** All waiters of a key, asleep or awake: a doubly linked list in the order of joining. */
class Queue {
  readonly key: string;
  readonly #slices: Slices;
  drained: boolean;
  first: QueuedWaiter | undefined;
  last: QueuedWaiter | undefined;
  /** No waiter before this one sleeps; undefined: no waiter sleeps. */
  firstAsleep: QueuedWaiter | undefined;
  /** The waiter at which wakeAll() continues in the next tick. */
  nextToWake: QueuedWaiter | undefined;
  /** Counts wake-ups that found no sleeper, so that a waiter notices one that occurred while it was awake. */
  missedWakeUps = 0;

  constructor(key: string, slices: Slices, drained: boolean) {
    this.key = key;
    this.#slices = slices;
    this.drained = drained;
  }

  wakeOne(): void {
    let waiter = this.firstAsleep;
    while (waiter && !waiter.endSleep) waiter = waiter.next;
    this.firstAsleep = waiter?.next;
    if (!waiter) {
      this.missedWakeUps++;
      return;
    }
    waiter.carriesWakeUp = true;
    waiter.endSleep?.("woken");
  }

  wakeAll(): void {
    this.missedWakeUps++; // for the waiters that are awake
    const isUnderWay = this.nextToWake !== undefined;
    this.nextToWake = this.first; // from the first, because woken waiters may sleep again
    if (!isUnderWay) this.#slices.run(() => this.#wakeNext());
  }

  /** Wakes the next sleeper. Skips waiters that fell asleep after the last wakeAll(), because they have read since. */
  #wakeNext(): void {
    let waiter = this.nextToWake;
    while (waiter && !(waiter.endSleep && waiter.missedWakeUp)) waiter = waiter.next;
    this.nextToWake = waiter?.next;
    waiter?.endSleep?.("woken");
    if (this.nextToWake) this.#slices.run(() => this.#wakeNext());
  }

  drain(): void {
    this.drained = true;
    this.nextToWake = undefined;
    for (let waiter = this.first; waiter; waiter = waiter.next) waiter.endSleep?.("drained");
  }
}

class QueuedWaiter {
  readonly queue: Queue;
  readonly position: number;
  previous: QueuedWaiter | undefined;
  next: QueuedWaiter | undefined;
  /** Set while it sleeps. */
  endSleep: ((outcome: Outcome) => void) | undefined;
  /** Whether wakeOne() woke it, and since then it has neither found a row nor waited again. */
  carriesWakeUp = false;
  #missedBefore: number;
  #left = false;
  readonly #onLeave: (waiter: QueuedWaiter) => void;

  constructor(queue: Queue, onLeave: (waiter: QueuedWaiter) => void) {
    this.queue = queue;
    this.#onLeave = onLeave;
    this.#missedBefore = queue.missedWakeUps;
    this.position = (queue.last?.position ?? 0) + 1;
    this.previous = queue.last;
    queue.last = this;
    if (this.previous) this.previous.next = this;
    else queue.first = this;
  }

  /**
   * Sleeps until a wake-up, the end of `remainingMs`, an abort of `signal`, or the drain. Returns "woken" at once if a
   * wake-up found no sleeper since the waiter joined or last woke. Rejects only if the waiter sleeps already.
   * @param onWake called at once by the wake-up, which the waiter hears of later
   */
  wait(remainingMs: number, signal?: AbortSignal, onWake?: () => void): Promise<Outcome> {
    if (this.endSleep) return Promise.reject(new Error("the waiter is waiting already"));
    if (this.queue.drained) return Promise.resolve("drained");
    if (this.#left || signal?.aborted) return Promise.resolve("aborted");
    this.carriesWakeUp = false; // it has read since, and found nothing
    if (this.missedWakeUp) {
      this.#missedBefore = this.queue.missedWakeUps;
      onWake?.();
      return Promise.resolve("woken");
    }
    if (!(remainingMs > 0)) return Promise.resolve("timeout");
    return new Promise((resolve) => {
      const onAbort = () => this.endSleep?.("aborted");
      const timer = setTimeout(() => this.endSleep?.("timeout"), Math.min(remainingMs, MAX_TIMER_MS));
      signal?.addEventListener("abort", onAbort);
      this.endSleep = (outcome) => {
        this.endSleep = undefined;
        this.#missedBefore = this.queue.missedWakeUps;
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        if (outcome === "woken") onWake?.();
        resolve(outcome);
      };
      const { firstAsleep } = this.queue;
      if (!firstAsleep || this.position < firstAsleep.position) this.queue.firstAsleep = this;
    });
  }

  /** Whether there was a wake-up since the waiter joined or last woke. */
  get missedWakeUp(): boolean {
    return this.#missedBefore < this.queue.missedWakeUps;
  }

  /**
   * Records that the waiter found a row, so that leave() does not pass its wake-up on. Optional: without it the next
   * sleeper reads once in vain. Correct only if wakeOne() is called for each row.
   */
  markServed(): void {
    this.carriesWakeUp = false;
  }

  /** Leaves the queue; a running wait ends with "aborted". Idempotent. */
  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.endSleep?.("aborted");
    const { queue, previous, next } = this;
    if (queue.firstAsleep === this) queue.firstAsleep = next;
    if (queue.nextToWake === this) queue.nextToWake = next;
    if (previous) previous.next = next;
    else queue.first = next;
    if (next) next.previous = previous;
    else queue.last = previous;
    this.#onLeave(this);
  }
}
