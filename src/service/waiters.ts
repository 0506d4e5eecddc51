/**
 * Blocked calls (long polls): FIFO wait queues by key, where a call sleeps until there may be new rows for it. The caller
 * signals them: on SQLite for a row that one waiter takes already before its commit, else after it.
 *
 * A waiter joins, reads the store, sleeps, is woken, reads again, and leaves. From join() to leave(), asleep or awake, it
 * stands in the queue of each of its keys, in order of arrival. wakeAll() makes every waiter of a queue read again.
 * wakeOne() announces one row that one waiter takes. The life of such a wake-up:
 *   1. The first sleeper of the queue gets it, carries it, and reads. If none sleeps there, it ends at once: the waiters
 *      awake in the queue may have read too early, so each reads again before it sleeps.
 *   2. It is used up when its waiter took the row (markServed), or sleeps in the queue again: it read, and nothing was
 *      there.
 *   3. If its waiter leaves, or sleeps in other queues only, the next sleeper gets it, as in 1.
 *
 * Invariant: no waiter stays asleep beside a row for it that was announced and that no woken waiter is about to read.
 *
 * A linked list is longer than a Set in insertion order, and faster: with 20,000 waiters, removing the first from a Set
 * costs 8 us and adding it again 39 us; here a wake-up costs 0.2 to 1.6 us and a leave at most 0.5 us.
 *
 * Must not: touch the store, hold data, or be trusted for correctness. A lost wake-up costs time only: until the
 * next one, or the deadline, at which the call ends empty and its caller asks again.
 */
import { WAKE_UPS_TOGETHER } from "../domain/limits.ts";
import { assert, broken } from "../lib/assert.ts";
import { Slices } from "../lib/slices.ts";

/** How a sleep ended: a wake-up, its deadline, the caller's signal (or a leave() meanwhile), or the end of all waiting. */
export type Outcome = "woken" | "timeout" | "aborted" | "drained";

/** The caller of a blocked call hung up before there was anything to answer. */
export class WaitAborted extends Error {
  override readonly name = "WaitAborted";

  constructor() {
    super("The caller of a long poll has hung up.");
  }
}

/** The longest delay of a timer (24 days); a longer wait is cut to it. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Announces one row. It is in the queue `key`; the waiters in the queue `orKey` take such rows too. */
type WakeUp = { readonly key: string; readonly orKey: string | null };

/** The queues of one kind of blocked call. The caller bounds the number of waiters (see `size`). */
export class Waiters {
  readonly #queues = new Map<string, Queue>();
  readonly #slices = new Slices(WAKE_UPS_TOGETHER);
  #arrivals = 0;
  /** Waiters in all queues. */
  size = 0;
  /** A logical clock, which orders reads and signals: it advances with each signal that waiters awake must notice. */
  now = 0;
  isDrained = false;

  /** Adds a waiter to the end of these queues. Must precede its read of the store, so that it misses no signal. */
  join(...keys: readonly string[]): Waiter {
    this.size++;
    const waiter = new Waiter(this, ++this.#arrivals);
    waiter.standIn(keys);
    return waiter;
  }

  /**
   * Wakes the first sleeper of the queue, or of both queues, for a new row that one waiter takes. If nobody sleeps there:
   * the first sleeper of a third queue.
   */
  wakeOne(key: string, orKey: string | null = null, elseKey: string | null = null): void {
    const queue = this.#queues.get(key);
    const orQueue = orKey === null ? undefined : this.#queues.get(orKey);
    const first = earlier(queue?.firstSleeper, orQueue?.firstSleeper);
    if (first) return first.wake({ key, orKey });
    this.now++;
    for (const missed of [queue, orQueue]) if (missed) missed.missedAt = this.now;
    if (elseKey !== null) this.wakeOne(elseKey);
  }

  /** Wakes as wakeOne(), but in slices, so that other requests are served between the reads of the woken waiters. */
  wakeOneLater(key: string, orKey: string | null = null, elseKey: string | null = null): void {
    this.#slices.run(() => this.wakeOne(key, orKey, elseKey));
  }

  /**
   * Wakes the first sleeper of each queue, for a new row in each, as after a broadcast, in slices. A waiter that joins
   * later reads the row at once.
   */
  wakeOneOfEach(): void {
    for (const key of this.#queues.keys()) this.wakeOneLater(key);
  }

  /** Wakes every waiter of a queue, for a new row that all of them read, in slices. */
  wakeAll(key: string): void {
    this.#queues.get(key)?.wakeAll(++this.now, this.#slices);
  }

  /** Wakes every waiter of every queue, in slices. */
  wakeAllOfEach(): void {
    for (const key of this.#queues.keys()) this.wakeAll(key);
  }

  /** Ends the wait of each waiter that stands in a queue now with "drained", and each further wait of these waiters. */
  end(key: string): void {
    this.#queues.get(key)?.end();
  }

  /** Ends every wait with "drained", now and from now on. */
  drain(): void {
    this.isDrained = true;
    for (const queue of this.#queues.values()) queue.end();
  }

  /** Queues with a waiter. */
  get keys(): number {
    return this.#queues.size;
  }

  /** For the waiters: a place in a queue, and its end. */
  enter(waiter: Waiter, key: string): Place {
    let queue = this.#queues.get(key);
    if (!queue) this.#queues.set(key, (queue = new Queue(key)));
    return queue.enter(waiter);
  }

  exit(place: Place): void {
    place.queue.exit(place);
    if (place.queue.isEmpty) this.#queues.delete(place.queue.key);
  }
}

function earlier(a: Waiter | undefined, b: Waiter | undefined): Waiter | undefined {
  return a && b ? (a.arrival < b.arrival ? a : b) : (a ?? b);
}

/** The place of a waiter in a queue. */
type Place = {
  readonly queue: Queue;
  readonly waiter: Waiter;
  /** Whether the waiter sleeps, and in this queue. */
  isAsleep: boolean;
  previous: Place | undefined;
  next: Place | undefined;
};

/** All waiters of a key, asleep or awake: a doubly linked list in order of arrival. */
class Queue {
  readonly key: string;
  /** The time of the last signal that waiters awake may have missed. */
  missedAt = 0;
  #first: Place | undefined;
  #last: Place | undefined;
  /** No waiter before this place sleeps; undefined: no waiter sleeps. */
  #firstAsleep: Place | undefined;
  /** Where wakeAll() continues in the next slice. */
  #nextToWake: Place | undefined;

  constructor(key: string) {
    this.key = key;
  }

  get isEmpty(): boolean {
    return this.#first === undefined;
  }

  /** O(1) amortised: a place that is passed over is not looked at again before its waiter falls asleep. */
  get firstSleeper(): Waiter | undefined {
    let place = this.#firstAsleep;
    while (place && !place.isAsleep) place = place.next;
    this.#firstAsleep = place;
    return place?.waiter;
  }

  /** The waiter must be awake. Walks from the end, because a waiter mostly enters when it has just arrived. */
  enter(waiter: Waiter): Place {
    const place: Place = { queue: this, waiter, isAsleep: false, previous: undefined, next: undefined };
    let previous = this.#last;
    while (previous && previous.waiter.arrival > waiter.arrival) previous = previous.previous;
    const next = previous ? previous.next : this.#first;
    this.#link(previous, place);
    this.#link(place, next);
    return place;
  }

  exit(place: Place): void {
    if (this.#firstAsleep === place) this.#firstAsleep = place.next;
    if (this.#nextToWake === place) this.#nextToWake = place.next;
    this.#link(place.previous, place.next);
  }

  #link(previous: Place | undefined, next: Place | undefined): void {
    if (previous) previous.next = next;
    else this.#first = next;
    if (next) next.previous = previous;
    else this.#last = previous;
  }

  sleep(place: Place): void {
    place.isAsleep = true;
    if (!this.#firstAsleep || place.waiter.arrival < this.#firstAsleep.waiter.arrival)
      this.#firstAsleep = place;
  }

  wakeAll(now: number, slices: Slices): void {
    this.missedAt = now; // for the waiters that are awake
    const isUnderWay = this.#nextToWake !== undefined;
    this.#nextToWake = this.#first; // from the first, because woken waiters may sleep again
    if (!isUnderWay) slices.run(() => this.#wakeNext(slices));
  }

  /** Wakes the next sleeper. Skips waiters that fell asleep after the last wakeAll(), because they have read since. */
  #wakeNext(slices: Slices): void {
    let place = this.#nextToWake;
    while (place && !(place.isAsleep && place.waiter.hasMissed(this))) place = place.next;
    this.#nextToWake = place?.next;
    place?.waiter.wake(null);
    if (this.#nextToWake) slices.run(() => this.#wakeNext(slices));
  }

  end(): void {
    for (let place = this.#first; place; place = place.next) place.waiter.end();
  }
}

/**
 * A blocked call. It is in one of three states:
 *   awake   it reads, or is about to; it may carry a wake-up (#wakeUp)
 *   asleep  its wait() is pending (#endSleep), and it carries no wake-up: a sleeper has just read and found nothing
 *   gone    it has left, stands in no queue, and carries no wake-up
 */
export class Waiter {
  /** Its position in every queue. */
  readonly arrival: number;
  readonly #all: Waiters;
  /** In the queues of its keys, asleep or awake. */
  readonly #places: Place[] = [];
  /** Its last read saw all signals up to this time. */
  #readAt = 0;
  /** What it was woken for, until that ends or passes to another waiter. */
  #wakeUp: WakeUp | null = null;
  /** Resolves its wait(). */
  #endSleep: ((outcome: Outcome) => void) | null = null;
  /** How each further wait ends at once. */
  #end: "drained" | "aborted" | null = null;

  constructor(all: Waiters, arrival: number) {
    this.#all = all;
    this.arrival = arrival;
  }

  /** Stands in these queues from now on. Must precede the read of the store that looks for what they announce. */
  standIn(keys: readonly string[]): void {
    assert(
      !this.#endSleep && this.#end !== "aborted",
      "a waiter enters a queue only while it is awake and present",
    );
    this.#readAt = this.#all.now;
    let same = 0;
    while (same < keys.length && this.#places[same]?.queue.key === keys[same]) same++;
    while (this.#places.length > same) this.#exitLast();
    for (const key of same === 0 ? keys : keys.slice(same)) this.#places.push(this.#all.enter(this, key));
  }

  /**
   * Called after a read that found nothing. Sleeps until a wake-up, the end of `remainingMs`, an abort of `signal`, or the
   * drain. Returns "woken" at once if there was a signal that the read may have missed. Rejects only if the waiter
   * sleeps already. After any outcome but "woken" the caller must leave(): only that passes on a wake-up that the waiter
   * still carries.
   * @param onWake called at once by the wake-up, which the waiter hears of later; must not throw
   * @param sleepsIn whether it sleeps in the queue of a key: true only if the read looked for what that announces, because
   *   a wake-up for it then ends. In the others it keeps its position, and is not woken there. Without it: sleeps in all
   */
  wait(
    remainingMs: number,
    signal?: AbortSignal,
    onWake?: () => void,
    sleepsIn?: (key: string) => boolean,
  ): Promise<Outcome> {
    if (this.#endSleep) return Promise.reject(broken("a waiter waits once at a time"));
    if (this.#end || this.#all.isDrained) return Promise.resolve(this.#end ?? "drained");
    if (signal?.aborted) return Promise.resolve("aborted");
    const places = sleepsIn ? this.#places.filter(({ queue }) => sleepsIn(queue.key)) : this.#places;
    this.#endWakeUp(places);
    if (places.some(({ queue }) => this.hasMissed(queue))) {
      this.#readAt = this.#all.now;
      onWake?.();
      return Promise.resolve("woken");
    }
    if (!(remainingMs > 0)) return Promise.resolve("timeout");
    return this.#sleep(places, remainingMs, signal, onWake);
  }

  /** Ends the wake-up that the waiter carries, if it is for a row in the queue `key`: the waiter took one. */
  markServed(key: string): void {
    if (this.#wakeUp?.key === key) this.#wakeUp = null;
  }

  /** Leaves all queues; a running wait ends with "aborted". Idempotent. */
  leave(): void {
    if (this.#end === "aborted") return;
    this.#end = "aborted";
    this.#wakeUpWith("aborted");
    while (this.#places.length > 0) this.#exitLast();
    this.#all.size--;
    this.#passOn();
  }

  /** Whether each further wait is "drained" or, after leave(), "aborted". */
  get isEnded(): boolean {
    return this.#end !== null || this.#all.isDrained;
  }

  // What follows is for the queues.

  hasMissed({ missedAt }: Queue): boolean {
    return this.#readAt < missedAt;
  }

  /** Wakes a sleeper, which then carries the wake-up. */
  wake(wakeUp: WakeUp | null): void {
    assert(this.#endSleep !== null && !this.#wakeUp, "a wake-up goes to a sleeper that carries none");
    this.#wakeUp = wakeUp;
    this.#wakeUpWith("woken");
  }

  end(): void {
    this.#end ??= "drained";
    this.#wakeUpWith("drained");
  }

  #sleep(
    places: readonly Place[],
    remainingMs: number,
    signal: AbortSignal | undefined,
    onWake: (() => void) | undefined,
  ): Promise<Outcome> {
    return new Promise((resolve) => {
      const onAbort = (): void => this.#wakeUpWith("aborted");
      const timer = setTimeout(() => this.#wakeUpWith("timeout"), Math.min(remainingMs, MAX_TIMER_MS));
      signal?.addEventListener("abort", onAbort);
      this.#endSleep = (outcome) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        if (outcome === "woken") onWake?.();
        resolve(outcome);
      };
      for (const place of places) place.queue.sleep(place);
    });
  }

  /** Ends the sleep, if it sleeps. */
  #wakeUpWith(outcome: Outcome): void {
    const endSleep = this.#endSleep;
    if (!endSleep) return;
    this.#endSleep = null;
    for (const place of this.#places) place.isAsleep = false;
    this.#readAt = this.#all.now; // what it reads from now on has all that was signalled before
    endSleep(outcome);
  }

  #exitLast(): void {
    const place = this.#places.pop();
    if (place) this.#all.exit(place);
  }

  /**
   * The end of the wake-up that the waiter carries into a sleep. If it will sleep in a queue of the wake-up, its read
   * looked for the row, and the row is gone: the wake-up ends. Otherwise the row may be there, for another waiter.
   */
  #endWakeUp(places: readonly Place[]): void {
    const wakeUp = this.#wakeUp;
    if (!wakeUp) return;
    const hasRead = places.some(({ queue: { key } }) => key === wakeUp.key || key === wakeUp.orKey);
    if (hasRead) this.#wakeUp = null;
    else this.#passOn();
  }

  /** Gives the wake-up that the waiter carries to the next sleeper: never to the waiter itself, which is awake or gone. */
  #passOn(): void {
    const wakeUp = this.#wakeUp;
    this.#wakeUp = null;
    if (wakeUp) this.#all.wakeOne(wakeUp.key, wakeUp.orKey);
  }
}
