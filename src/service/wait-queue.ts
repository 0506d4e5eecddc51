/**
 * Waiters: everyone who waits for something to change, in arrival order, woken after a commit and never by polling.
 *
 * A *waiter* (blocking receive, poll) joins, looks at the store, waits, looks again, leaves. Event streams do not wait
 * here: they are told what to read (feed.ts).
 *
 * Invariant: a wake of one is a duty to look at the store that somebody in line always carries. It is
 *   given to the first in line who carries none, waiting or not;
 *   discharged when its carrier, having looked, waits again or says took();
 *   passed on when its carrier leaves without either.
 * So when nobody carries a duty, nobody waits beside a row that he could have taken. With nobody in line nothing is
 * remembered: who joins later looks first.
 *
 * Must not: touch the store, hold data, or be trusted for correctness. A lost wake costs time only (see design, Waiting).
 */

/** How a wait ended: a wake, its deadline, the caller's signal (or leave() meanwhile), or the hub going down. */
export type Outcome = "woken" | "timeout" | "aborted" | "drained";

/** The longest a timer can run (24 days): a longer wait is cut to it. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** One place in the line of a key, from join() to leave(). The place is kept over any number of waits. */
export type Waiter = {
  /**
   * Resolves with the first of: a wake (also one that came since join() or since the last wait), `remainingMs` gone by,
   * `signal` aborted, the drain. Never rejects. One wait at a time.
   */
  wait(remainingMs: number, signal?: AbortSignal): Promise<Outcome>;
  /**
   * Says that the look after the last wake found something, so leave() need not pass that wake on.
   * Optional: without it the next in line looks once for nothing. Only right if every row had a wakeOne of its own.
   */
  took(): void;
  /** Gives up the place; passes on a wake that was not used. Ends a wait still running with "aborted". Idempotent. */
  leave(): void;
};

/** The lines of waiters of one kind. The caller bounds their number (see `size`). */
export class Waiters {
  readonly #lines = new Map<string, Line>();
  #size = 0;
  #drained = false;

  /** Takes a place at the end of the line. Join first, then look at the store: so no wake falls in between. */
  join(key: string): Waiter {
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = new Line();
      this.#lines.set(key, line);
    }
    const place = new Place(line, this.#drained, () => this.#left(key, place));
    line.add(place);
    this.#size++;
    return place;
  }

  /** For mailboxes: one more row can be taken. Wakes the longest in line who has not been woken; O(1) amortised. */
  wakeOne(key: string): void {
    this.#lines.get(key)?.giveDuty();
  }

  /** For feeds: everyone in line is to look again. */
  wakeAll(key: string): void {
    this.#lines.get(key)?.callAll();
  }

  /** Ends every wait with "drained", now and from now on. */
  drain(): void {
    this.#drained = true;
    for (const line of this.#lines.values()) line.drain();
  }

  /** Waiters in line, over all keys. */
  get size(): number {
    return this.#size;
  }

  /** Keys with anyone in line: 0 when all have left. */
  get keys(): number {
    return this.#lines.size;
  }

  #left(key: string, place: Place): void {
    const line = place.line;
    line.remove(place);
    this.#size--;
    if (line.count === 0) this.#lines.delete(key);
    else if (place.duty !== "none") line.giveDuty();
  }
}

/**
 * The line of one key: its places in the order of joining, linked, and a pointer to the first who carries no duty.
 * `spare` counts duties for which everyone in line had one already; whoever discharges his own takes one of these.
 */
class Line {
  first: Place | undefined;
  last: Place | undefined;
  free: Place | undefined;
  count = 0;
  spare = 0;
  #joined = 0;

  add(place: Place): void {
    place.order = this.#joined++;
    place.before = this.last;
    if (this.last === undefined) this.first = place;
    else this.last.after = place;
    this.last = place;
    this.free ??= place;
    this.count++;
  }

  remove(place: Place): void {
    if (this.free === place) this.free = firstFree(place.after);
    if (place.before === undefined) this.first = place.after;
    else place.before.after = place.after;
    if (place.after === undefined) this.last = place.before;
    else place.after.before = place.before;
    this.count--;
    this.spare = Math.min(this.spare, this.count);
  }

  giveDuty(): void {
    const place = this.free;
    if (place !== undefined) {
      this.free = firstFree(place.after);
      place.giveDuty();
    } else if (this.spare < this.count) {
      this.spare++; // beyond one for each in line, a duty adds nothing: all of them will look after this moment
    }
  }

  /** The carrier has looked. False when a spare duty comes in place of the one discharged. */
  discharge(place: Place): boolean {
    if (this.spare > 0) {
      this.spare--;
      return false;
    }
    if (this.free === undefined || place.order < this.free.order) this.free = place;
    return true;
  }

  callAll(): void {
    for (let place = this.first; place !== undefined; place = place.after) place.call();
  }

  drain(): void {
    for (let place = this.first; place !== undefined; place = place.after) place.drain();
  }
}

/** Passes over carriers only; they are few and soon gone, which makes a wake O(1) amortised. */
function firstFree(place: Place | undefined): Place | undefined {
  while (place !== undefined && place.duty !== "none") place = place.after;
  return place;
}

/** One waiter. `given`: a duty came while it was not waiting; `owed`: wait() has told of it and the look is to follow. */
class Place implements Waiter {
  readonly line: Line;
  order = 0;
  before: Place | undefined;
  after: Place | undefined;
  duty: "none" | "given" | "owed" = "none";
  #called = false;
  #drained: boolean;
  #left = false;
  #end: ((outcome: Outcome) => void) | undefined;
  readonly #onLeave: () => void;

  constructor(line: Line, drained: boolean, onLeave: () => void) {
    this.line = line;
    this.#drained = drained;
    this.#onLeave = onLeave;
  }

  wait(remainingMs: number, signal?: AbortSignal): Promise<Outcome> {
    if (this.#end !== undefined) return Promise.reject(new Error("a waiter waits once at a time"));
    const known = this.#known(signal);
    if (known !== undefined) return Promise.resolve(known);
    if (!(remainingMs > 0)) return Promise.resolve("timeout");
    return new Promise((resolve) => {
      const onAbort = () => this.#end?.("aborted");
      const timer = setTimeout(() => this.#end?.("timeout"), Math.min(remainingMs, MAX_TIMER_MS));
      signal?.addEventListener("abort", onAbort);
      this.#end = (outcome) => {
        this.#end = undefined;
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        resolve(outcome);
      };
    });
  }

  /** What ends a wait before it begins. A wake given but not told of stays given unless it is what ends it. */
  #known(signal: AbortSignal | undefined): Outcome | undefined {
    if (this.#left) return "aborted";
    if (this.duty === "owed" && this.line.discharge(this)) this.duty = "none";
    else if (this.duty === "owed") this.duty = "given";
    if (this.#drained) return "drained";
    if (signal?.aborted === true) return "aborted";
    if (this.duty === "none" && !this.#called) return undefined;
    if (this.duty === "given") this.duty = "owed";
    this.#called = false;
    return "woken";
  }

  took(): void {
    if (this.#left || this.duty !== "owed") return;
    this.duty = this.line.discharge(this) ? "none" : "given";
  }

  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#end?.("aborted");
    this.#onLeave();
  }

  giveDuty(): void {
    this.duty = this.#end === undefined ? "given" : "owed";
    this.#end?.("woken");
  }

  call(): void {
    if (this.#end === undefined) this.#called = true;
    else this.#end("woken");
  }

  drain(): void {
    this.#drained = true;
    this.#end?.("drained");
  }
}
