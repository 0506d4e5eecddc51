/**
 * Blocked calls (long polls): FIFO wait queues by key, where a call sleeps until there may be new rows for it. The caller
 * signals them: on SQLite for a row that one waiter takes already before its commit, else after it.
 *
 * A waiter joins, reads the store, sleeps, is woken, reads again, and leaves. From join() to leave(), asleep or awake, it
 * stands in the queue of each of its keys, in order of arrival. wakeAll() makes every waiter of a queue read again.
 * wakeOne() announces one row that one waiter takes. The life of such an announcement:
 *   1. The first sleeper of its queues is woken, carries it, and reads. If none sleeps there, it ends at once: the waiters
 *      awake in these queues may have read too early, so each reads again before it sleeps.
 *   2. It is used up when its waiter took the row (markServed), or sleeps again where it was woken (`key` and `orKey` count
 *      as one queue, `elseKeys` as another): it read, and nothing was there.
 *   3. If its waiter leaves, sleeps in other queues only, or passes it on itself, the next sleeper gets it, as in 1 (passOn).
 *
 * test/service/waiters.test.ts has the races in one queue, idle-workers.test.ts those in several.
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

/** One new row, which one waiter takes. */
export type Announcement = {
  /** The queue of the row. */
  readonly key: string;
  /** A queue whose waiters take such rows too. */
  readonly orKey?: string | null;
  /** Queues whose waiters may take the row: the first of their sleepers is woken if nobody sleeps in the other two. */
  readonly elseKeys?: readonly string[];
};

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

  /** Wakes the first sleeper of `key` and `orKey`; if nobody sleeps there, the first of `elseKeys`. */
  wakeOne(row: Announcement): void {
    const { key, orKey, elseKeys = [] } = row;
    if (this.#wakeFirst(orKey == null ? [key] : [key, orKey], row, false)) return;
    if (elseKeys.length > 0) this.#wakeFirst(elseKeys, row, true);
  }

  /** Wakes the first sleeper of some queues. If nobody sleeps there, the waiters awake in these queues read again. */
  #wakeFirst(keys: readonly string[], row: Announcement, isElse: boolean): boolean {
    let first: Waiter | undefined;
    for (const key of keys) first = earlier(first, this.#queues.get(key)?.findFirstSleeper());
    if (first) {
      first.wake(row, isElse);
      return true;
    }
    this.now++;
    for (const key of keys) {
      const queue = this.#queues.get(key);
      if (queue) queue.missedAt = this.now;
    }
    return false;
  }

  /** Wakes as wakeOne(), but in slices, so that other requests are served between the reads of the woken waiters. */
  wakeOneLater(row: Announcement): void {
    this.#slices.run(() => this.wakeOne(row));
  }

  /**
   * Wakes the first sleeper of each queue, for a new row in each, as after a broadcast, in slices. A waiter that joins
   * later reads the row at once.
   */
  wakeOneOfEach(): void {
    for (const key of this.#queues.keys()) this.wakeOneLater({ key });
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
  findFirstSleeper(): Waiter | undefined {
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
 *   awake   it reads, or is about to; it may carry the announcement that has woken it (#carried)
 *   asleep  its wait() is pending (#sleep), and it carries nothing: a sleeper has just read and found nothing
 *   gone    it has left, stands in no queue, and carries nothing
 */
export class Waiter {
  /** Its position in every queue. */
  readonly arrival: number;
  readonly #all: Waiters;
  /** In the queues of its keys, asleep or awake. */
  readonly #places: Place[] = [];
  /** Its last read saw all signals up to this time. */
  #readAt = 0;
  /** What it was woken for, until that is used up or passes to another waiter. */
  #carried: Announcement | null = null;
  /** Whether it was woken in one of the queues `elseKeys` of what it carries. */
  #isElse = false;
  /** Ends its sleep; null: it is awake. */
  #sleep: ((outcome: Outcome) => void) | null = null;
  /** How each further wait ends at once. */
  #lastOutcome: "drained" | "aborted" | null = null;

  constructor(all: Waiters, arrival: number) {
    this.#all = all;
    this.arrival = arrival;
  }

  /**
   * Stands in these queues from now on. Must precede the read of the store that looks for what they announce. Keys that stay
   * the same should come first: from the first other key on, the waiter enters the queues again.
   */
  standIn(keys: readonly string[]): void {
    assert(
      !this.#sleep && this.#lastOutcome !== "aborted",
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
   * sleeps already. After "aborted" or "drained" the caller must leave(): only that passes on what the waiter may
   * still carry. After "timeout" it carries nothing, and may read and wait again.
   * @param onWake called at once by the wake-up, before wait() resolves; must not throw
   * @param sleepsIn whether it sleeps in the queue of a key: true only if the read would have found whatever is announced
   *   there, because to sleep where it was woken uses up what the waiter carries. In the other queues it is not woken.
   *   Without it: sleeps in all
   */
  wait(
    remainingMs: number,
    signal?: AbortSignal,
    onWake?: () => void,
    sleepsIn?: (key: string) => boolean,
  ): Promise<Outcome> {
    if (this.#sleep) return Promise.reject(broken("a waiter waits once at a time"));
    if (this.#lastOutcome || this.#all.isDrained) return Promise.resolve(this.#lastOutcome ?? "drained");
    if (signal?.aborted) return Promise.resolve("aborted");
    const places = sleepsIn ? this.#places.filter(({ queue }) => sleepsIn(queue.key)) : this.#places;
    this.#settleCarried(places);
    if (places.some(({ queue }) => this.hasMissed(queue))) {
      this.#readAt = this.#all.now;
      onWake?.();
      return Promise.resolve("woken");
    }
    if (!(remainingMs > 0)) return Promise.resolve("timeout");
    return this.#fallAsleep(places, remainingMs, signal, onWake);
  }

  /** Uses up what the waiter carries, if that announced a row in the queue `key`: the waiter took one. */
  markServed(key: string): void {
    if (this.#carried?.key === key) this.#carried = null;
  }

  /**
   * Gives what the waiter carries to the next sleeper. If none sleeps there, those awake read again before they sleep in
   * these queues, this waiter too.
   */
  passOn(): void {
    const carried = this.#carried;
    this.#carried = null;
    if (carried) this.#all.wakeOne(carried);
  }

  /** Leaves all queues; a running wait ends with "aborted". Idempotent. */
  leave(): void {
    if (this.#lastOutcome === "aborted") return;
    this.#lastOutcome = "aborted";
    this.#endSleep("aborted");
    while (this.#places.length > 0) this.#exitLast();
    this.#all.size--;
    this.passOn();
  }

  /** Whether each further wait is "drained" or, after leave(), "aborted". */
  get isEnded(): boolean {
    return this.#lastOutcome !== null || this.#all.isDrained;
  }

  // What follows is for the queues.

  hasMissed({ missedAt }: Queue): boolean {
    return this.#readAt < missedAt;
  }

  /** Wakes a sleeper. It then carries the announcement; null: all are woken. `isElse`: in one of its `elseKeys`. */
  wake(row: Announcement | null, isElse = false): void {
    assert(this.#sleep !== null && !this.#carried, "a wake-up goes to a sleeper that carries nothing");
    this.#carried = row;
    this.#isElse = isElse;
    this.#endSleep("woken");
  }

  end(): void {
    this.#lastOutcome ??= "drained";
    this.#endSleep("drained");
  }

  #fallAsleep(
    places: readonly Place[],
    remainingMs: number,
    signal: AbortSignal | undefined,
    onWake: (() => void) | undefined,
  ): Promise<Outcome> {
    return new Promise((resolve) => {
      const onAbort = (): void => this.#endSleep("aborted");
      const timer = setTimeout(() => this.#endSleep("timeout"), Math.min(remainingMs, MAX_TIMER_MS));
      signal?.addEventListener("abort", onAbort);
      this.#sleep = (outcome) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        if (outcome === "woken") onWake?.();
        resolve(outcome);
      };
      for (const place of places) place.queue.sleep(place);
    });
  }

  /** Ends the sleep, if it sleeps. */
  #endSleep(outcome: Outcome): void {
    const sleep = this.#sleep;
    if (!sleep) return;
    this.#sleep = null;
    for (const place of this.#places) place.isAsleep = false;
    this.#readAt = this.#all.now; // what it reads from now on has all that was signalled before
    sleep(outcome); // last, because onWake may begin the next read, and enter other queues
  }

  #exitLast(): void {
    const place = this.#places.pop();
    if (place) this.#all.exit(place);
  }

  /**
   * Before a sleep. If the waiter will sleep again where it was woken, its read looked for the row, and the row is gone: the
   * announcement is used up. Otherwise the row may be there, for another waiter.
   */
  #settleCarried(places: readonly Place[]): void {
    const row = this.#carried;
    if (!row) return;
    const wokenIn: readonly unknown[] = this.#isElse ? (row.elseKeys ?? []) : [row.key, row.orKey];
    if (places.some(({ queue }) => wokenIn.includes(queue.key))) this.#carried = null;
    else this.passOn();
  }
}
