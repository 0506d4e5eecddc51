/**
 * Blocked calls (long polls). A waiter joins the queues of some keys, reads the store, sleeps, is woken, reads again, and
 * leaves. It keeps its place in each queue, asleep or awake. The caller signals what may be new in the store: on SQLite
 * already before the commit, for a row that one waiter takes.
 *
 * wakeAll() makes every waiter of a queue read again. wakeOne() announces one row that one waiter takes: the first
 * sleeper carries the announcement while it reads (Carried). Without a sleeper, the waiters awake in these queues read
 * again before they sleep.
 *
 * Invariant: no waiter stays asleep beside a row for it that was announced and that no woken waiter is about to read.
 * test/service/waiters.test.ts has the races in one queue, idle-workers.test.ts those in several.
 *
 * Must not: touch the store, hold data, or be trusted for correctness. A lost wake-up costs time only: until the
 * next one, or the deadline, at which the call ends empty and its caller asks again.
 */
import { WAKE_UPS_TOGETHER } from "../domain/limits.ts";
import { assert, broken } from "../lib/assert.ts";
import { Slices } from "../lib/slices.ts";
import { type Place, WaitQueue } from "./wait-queue.ts";

/** How a sleep ended. "aborted": by the caller's signal, or a leave() meanwhile. */
export type Outcome = "woken" | "timeout" | "aborted" | "drained";

export class WaitAborted extends Error {
  override readonly name = "WaitAborted";

  constructor() {
    super("The caller of a long poll has hung up.");
  }
}

/** The longest delay of a timer (24 days). */
const MAX_TIMER_MS = 2 ** 31 - 1;

export type Announcement = {
  readonly key: string;
  /** A queue whose waiters take such rows too. */
  readonly orKey?: string | null;
  /** Queues whose waiters may take the row: used if nobody sleeps in the other two. */
  readonly elseKeys?: readonly string[];
};

/** The announcement that has woken a waiter, until it is used up or passed on. */
type Carried = {
  readonly row: Announcement;
  /** The queues in one of which it slept. */
  readonly wokenIn: readonly string[];
};

/** The caller bounds the number of waiters (see `size`). */
export class Waiters {
  readonly #queues = new Map<string, WaitQueue<Waiter>>();
  readonly #slices = new Slices(WAKE_UPS_TOGETHER);
  #arrivals = 0;
  size = 0;
  /** A logical clock: it advances with each signal that waiters awake must notice. */
  now = 0;
  isDrained = false;

  /** Must precede the waiter's read of the store, so that it misses no signal. */
  join(...keys: readonly string[]): Waiter {
    this.size++;
    const waiter = new Waiter(this, ++this.#arrivals);
    waiter.standIn(keys);
    return waiter;
  }

  wakeOne(row: Announcement): void {
    const { key, orKey, elseKeys = [] } = row;
    if (this.#wakeFirst(orKey == null ? [key] : [key, orKey], row)) return;
    if (elseKeys.length > 0) this.#wakeFirst(elseKeys, row);
  }

  /** Wakes the first sleeper of some queues. If nobody sleeps there, the waiters awake in these queues read again. */
  #wakeFirst(keys: readonly string[], row: Announcement): boolean {
    let first: Waiter | undefined;
    for (const key of keys) first = earlier(first, this.#queues.get(key)?.findFirstSleeper());
    if (first) {
      first.wake({ row, wokenIn: keys });
      return true;
    }
    this.now++;
    for (const key of keys) {
      const queue = this.#queues.get(key);
      if (queue) queue.missedAt = this.now;
    }
    return false;
  }

  /** In slices, so that other requests are served between the reads of the woken waiters. */
  wakeOneLater(row: Announcement): void {
    this.#slices.run(() => this.wakeOne(row));
  }

  /** For a new row in each queue, as after a broadcast, in slices. A waiter that joins later reads the row at once. */
  wakeOneOfEach(): void {
    for (const key of this.#queues.keys()) this.wakeOneLater({ key });
  }

  /** In slices, for a row that every waiter of the queue reads. */
  wakeAll(key: string): void {
    this.#queues.get(key)?.wakeAll(++this.now, this.#slices);
  }

  wakeAllOfEach(): void {
    for (const key of this.#queues.keys()) this.wakeAll(key);
  }

  /** With "drained", for ever. */
  end(key: string): void {
    this.#queues.get(key)?.end();
  }

  /** With "drained", now and from now on. */
  drain(): void {
    this.isDrained = true;
    for (const queue of this.#queues.values()) queue.end();
  }

  get keys(): number {
    return this.#queues.size;
  }

  enter(waiter: Waiter, key: string): Place<Waiter> {
    let queue = this.#queues.get(key);
    if (!queue) this.#queues.set(key, (queue = new WaitQueue(key)));
    return queue.enter(waiter);
  }

  exit(place: Place<Waiter>): void {
    place.queue.exit(place);
    if (place.queue.isEmpty) this.#queues.delete(place.queue.key);
  }
}

function earlier(a: Waiter | undefined, b: Waiter | undefined): Waiter | undefined {
  return a && b ? (a.arrival < b.arrival ? a : b) : (a ?? b);
}

type Mode =
  /** It reads, or is about to. */
  | { readonly kind: "awake"; readonly carried: Carried | null }
  /** Its wait() is pending: it has read, and found nothing. */
  | { readonly kind: "asleep"; readonly resolve: (outcome: Outcome) => void }
  /** It has left. */
  | { readonly kind: "gone" };

const AWAKE: Mode = { kind: "awake", carried: null };

export class Waiter {
  readonly arrival: number;
  readonly #waiters: Waiters;
  readonly #places: Place<Waiter>[] = [];
  #mode: Mode = AWAKE;
  /** Its last read saw all signals up to this time. */
  #readAt = 0;
  #isDrained = false;

  constructor(waiters: Waiters, arrival: number) {
    this.#waiters = waiters;
    this.arrival = arrival;
  }

  get readAt(): number {
    return this.#readAt;
  }

  /**
   * Stands in these queues from now on. Must precede the read of the store that looks for what they announce. Keys that
   * stay should come first: from the first other key on, the waiter enters the queues again.
   */
  standIn(keys: readonly string[]): void {
    assert(this.#mode.kind === "awake", "a waiter enters queues only while it is awake");
    this.#readAt = this.#waiters.now;
    let kept = 0;
    while (kept < keys.length && this.#places[kept]?.queue.key === keys[kept]) kept++;
    while (this.#places.length > kept) this.#exitLast();
    for (const key of kept === 0 ? keys : keys.slice(kept)) this.#places.push(this.#waiters.enter(this, key));
  }

  /**
   * Called after a read that found nothing. Sleeps until a wake-up, the end of `remainingMs`, an abort of `signal`, or the
   * drain. Returns "woken" at once if there was a signal that the read may have missed. Rejects only if the waiter
   * sleeps already. After "aborted" or "drained" the caller must leave(): only that passes on what the waiter may
   * still carry. After "timeout" it carries nothing, and may read and wait again.
   * @param onWake called at once by the wake-up, before wait() resolves; must not throw
   * @param sleepsIn whether its read would have found what is announced in the queue of a key: only there it sleeps, and
   *   is woken. Without it: in all its queues
   */
  wait(
    remainingMs: number,
    signal?: AbortSignal,
    onWake?: () => void,
    sleepsIn?: (key: string) => boolean,
  ): Promise<Outcome> {
    if (this.#mode.kind === "asleep") return Promise.reject(broken("a waiter waits once at a time"));
    if (this.#mode.kind === "gone") return Promise.resolve("aborted");
    if (this.isEnded) return Promise.resolve("drained");
    if (signal?.aborted) return Promise.resolve("aborted");
    const places = sleepsIn ? this.#places.filter(({ queue }) => sleepsIn(queue.key)) : this.#places;
    this.#settleCarried(places);
    if (places.some(({ queue }) => queue.hasMissed(this))) {
      this.#readAt = this.#waiters.now;
      onWake?.();
      return Promise.resolve("woken");
    }
    if (!(remainingMs > 0)) return Promise.resolve("timeout");
    return this.#fallAsleep(places, remainingMs, signal, onWake);
  }

  /** Uses up what the waiter carries, if that announced a row in the queue `key`: the waiter took one. */
  markServed(key: string): void {
    if (this.#carried?.row.key === key) this.#enter(AWAKE);
  }

  /**
   * Gives what the waiter carries to the next sleeper. If none sleeps there, those awake read again before they sleep in
   * these queues, this waiter too.
   */
  passOn(): void {
    const carried = this.#carried;
    if (carried === null) return;
    this.#enter(AWAKE);
    this.#waiters.wakeOne(carried.row);
  }

  /** Leaves all queues, and passes on what it carries; a running wait ends with "aborted". Idempotent. */
  leave(): void {
    if (this.#mode.kind === "gone") return;
    this.#wakeUp("aborted", null);
    const carried = this.#carried;
    while (this.#places.length > 0) this.#exitLast();
    this.#enter({ kind: "gone" });
    this.#waiters.size--;
    if (carried) this.#waiters.wakeOne(carried.row);
  }

  get isEnded(): boolean {
    return this.#mode.kind === "gone" || this.#isDrained || this.#waiters.isDrained;
  }

  get #carried(): Carried | null {
    return this.#mode.kind === "awake" ? this.#mode.carried : null;
  }

  wake(carried: Carried): void {
    this.#wakeUp("woken", carried);
  }

  wakeToRead(): void {
    this.#wakeUp("woken", null);
  }

  end(): void {
    this.#isDrained = true;
    this.#wakeUp("drained", null);
  }

  /** The only place where the mode changes. */
  #enter(mode: Mode): void {
    const before = this.#mode;
    assert(before.kind !== "gone", "who has left does not come back");
    switch (mode.kind) {
      case "asleep":
        assert(before.kind === "awake", "only who is awake falls asleep");
        assert(before.carried === null, "a sleeper carries nothing");
        assert(!this.isEnded, "who is drained does not sleep");
        break;
      case "awake":
        assert(mode.carried === null || before.kind === "asleep", "an announcement goes to a sleeper");
        break;
      case "gone":
        assert(before.kind === "awake", "a waiter wakes up before it leaves");
        assert(this.#places.length === 0, "who has left stands in no queue");
        break;
    }
    this.#mode = mode;
  }

  #fallAsleep(
    places: readonly Place<Waiter>[],
    remainingMs: number,
    signal: AbortSignal | undefined,
    onWake: (() => void) | undefined,
  ): Promise<Outcome> {
    return new Promise((resolve) => {
      const onAbort = (): void => this.#wakeUp("aborted", null);
      const timer = setTimeout(() => this.#wakeUp("timeout", null), Math.min(remainingMs, MAX_TIMER_MS));
      signal?.addEventListener("abort", onAbort);
      const awaken = (outcome: Outcome): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        if (outcome === "woken") onWake?.();
        resolve(outcome);
      };
      this.#enter({ kind: "asleep", resolve: awaken });
      for (const place of places) place.queue.sleep(place);
    });
  }

  #wakeUp(outcome: Outcome, carried: Carried | null): void {
    if (this.#mode.kind !== "asleep") {
      assert(carried === null, "an announcement goes to a sleeper");
      return;
    }
    const { resolve } = this.#mode;
    this.#enter({ kind: "awake", carried });
    for (const place of this.#places) place.isAsleep = false;
    this.#readAt = this.#waiters.now; // what it reads from now on has all that was signalled before
    resolve(outcome); // last, because onWake may begin the next read, and enter other queues
  }

  #exitLast(): void {
    const place = this.#places.pop();
    if (place) this.#waiters.exit(place);
  }

  /**
   * Before a sleep in these places. If it sleeps again where it was woken, its read looked for the row, and the row is
   * gone: the announcement is used up. Otherwise the row may be there, for another waiter.
   */
  #settleCarried(places: readonly Place<Waiter>[]): void {
    const carried = this.#carried;
    if (carried === null) return;
    if (places.some(({ queue }) => carried.wokenIn.includes(queue.key))) this.#enter(AWAKE);
    else this.passOn();
  }
}
