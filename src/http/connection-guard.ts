/**
 * Keeps file descriptors free, since every connection takes one and Bun.serve accepts whatever comes. The fewer are
 * free, the more the guard does: it keeps no connection of an address that has a large share, admits no long calls,
 * closes idle and stalled connections, and at last stops listening for a moment, so that the hub can still open files,
 * and Bun does not retry a failing accept without a pause.
 *
 * One for the process, as the table of descriptors is. Must not close a connection on which a request runs.
 */
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { type Clock, systemClock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { limitOfFiles } from "./connections.ts";
import { Problem, closing } from "./problem.ts";

/** The part of the descriptors that is free when a measure begins. */
const FREE_SHARE = { addresses: 0.5, longCalls: 0.25, idle: 0.15, accept: 0.03 } as const;
/** The hub's own files get them while the hub does not listen. */
const RESERVED = 16;
/** While half of the descriptors are in use. */
const ADDRESS_SHARE = 0.25;
/** Seldom while there is room. */
const LOOK_SELDOM_MS = 100;
const LOOK_OFTEN_MS = 10;
/** The search takes one part of so many of the time: there may be a million descriptors. */
const LOOK_PAUSE_FACTOR = 10;
/** Requests or new long calls: a crowd comes within milliseconds. */
const LOOK_AFTER_REQUESTS = 128;
const LOOK_AFTER_CALLS = 32;
const PAUSE_MIN_MS = 250;
const WARN_EVERY_MS = 60_000;
/** Beyond it the one that was silent longest is forgotten. */
const ADDRESSES_MAX = 10_000;
/** An idle connection is closed by then (IDLE_SECONDS of the listener, and the coarseness of its timer). */
const FORGOTTEN_AFTER_MS = 70_000;

export type Guarded = {
  /**
   * Of those that stall, below the descriptor `limit`; if there are fewer, all on which no request runs. Returns how
   * many.
   */
  closeUnused(count: number, limit: number): number;
  pause(): void;
  /** @throws when the port cannot be opened now */
  resume(): void;
};

export type Descriptors = {
  /** Infinite where the system does not tell: then only a failing open tells. */
  readonly limit: number;
  /** At least; `limit` when none is free. */
  count(): number;
  reserve(count: number): () => void;
};

export class ConnectionGuard {
  readonly #descriptors: Descriptors;
  readonly #limit: number;
  readonly #clock: Pick<Clock, "steady">;
  readonly #guarded = new Map<Guarded, Log>();
  readonly #addresses = new Addresses();
  #free: number;
  #timer: Timer | undefined;
  #pausedAt: number | null = null;
  readonly #warnedAt = new Map<string, number>();
  #callsSinceLook = 0;
  #requestsSinceLook = 0;
  #release: (() => void) | null = null;

  constructor(descriptors: Descriptors, clock: Pick<Clock, "steady">) {
    this.#descriptors = descriptors;
    this.#limit = descriptors.limit;
    this.#clock = clock;
    this.#free = descriptors.limit;
  }

  watch(guarded: Guarded, log: Log): () => void {
    this.#guarded.set(guarded, log);
    this.#release ??= this.#descriptors.reserve(RESERVED);
    this.#look();
    return () => {
      this.#guarded.delete(guarded);
      if (this.#guarded.size > 0) return;
      clearTimeout(this.#timer);
      this.#release?.();
      this.#release = null;
      this.#pausedAt = null;
    };
  }

  /** It may keep its connection for hours. @throws {Problem} 503 */
  admitLongCall(): void {
    if (++this.#callsSinceLook >= LOOK_AFTER_CALLS) this.#measure();
    if (!this.#isBelow(FREE_SHARE.longCalls)) return;
    const headers = { "Retry-After": "1" };
    const detail =
      "The hub has almost reached its limit of open files and connections. Try again in a second.";
    throw closing(new Problem(503, "overloaded", "Service unavailable", detail, { headers }));
  }

  /** Returns whether its connection must be counted, by mustClose(). */
  noteRequest(): boolean {
    if (++this.#requestsSinceLook >= LOOK_AFTER_REQUESTS) {
      this.#measure();
      if (this.#isFilling) setImmediate(() => this.#look());
    }
    return this.#isFilling;
  }

  /** Because its address keeps too many. */
  mustClose(address: string, port: number): boolean {
    return this.#addresses.note(address, port, this.#clock.steady()) > this.#limit * ADDRESS_SHARE;
  }

  get #isFilling(): boolean {
    return this.#isBelow(FREE_SHARE.addresses);
  }

  /** Never of an unknown limit, until no descriptor is free. */
  #isBelow(freeShare: number): boolean {
    return this.#free === 0 || this.#free < this.#limit * freeShare;
  }

  #measure(): void {
    this.#callsSinceLook = 0;
    this.#requestsSinceLook = 0;
    const used = this.#descriptors.count();
    this.#free = used >= this.#limit ? 0 : this.#limit - used;
  }

  #look(): void {
    clearTimeout(this.#timer);
    if (this.#guarded.size === 0) return;
    const startedMs = this.#clock.steady();
    this.#measure();
    if (this.#pausedAt === null) this.#shed();
    else this.#resume(this.#pausedAt);
    if (!this.#isFilling) this.#addresses.clear();
    const isBusy = this.#isFilling || this.#pausedAt !== null;
    const pauseMs = LOOK_PAUSE_FACTOR * (this.#clock.steady() - startedMs);
    const nextMs = isBusy ? Math.max(LOOK_OFTEN_MS, pauseMs) : LOOK_SELDOM_MS;
    this.#timer = setTimeout(() => this.#look(), nextMs).unref();
  }

  #shed(): void {
    if (!this.#isBelow(FREE_SHARE.idle)) return;
    const closed = this.#closeUnused(); // their descriptors are free only at the next look
    if (this.#isBelow(FREE_SHARE.accept) && this.#free + closed < this.#neededToResume) {
      this.#pausedAt = this.#clock.steady();
      for (const guarded of this.#guarded.keys()) guarded.pause();
      this.#release?.(); // only now, else the next connection would get them
      this.#release = null;
      const text = "almost out of file descriptors: no new connection is accepted for a moment";
      this.#warn(text, { limit: this.#limit });
    }
  }

  /** Until half of the descriptors are free. Returns how many it closed. */
  #closeUnused(): number {
    let closed = 0;
    for (const guarded of this.#guarded.keys()) {
      const wanted = Math.ceil(this.#limit * FREE_SHARE.addresses - this.#free - closed);
      if (wanted > 0) closed += guarded.closeUnused(wanted, this.#limit);
    }
    if (closed > 0) this.#warn("closed unused connections: few file descriptors are free", { closed });
    return closed;
  }

  #resume(pausedAt: number): void {
    if (this.#isBelow(FREE_SHARE.idle)) this.#closeUnused();
    if (this.#clock.steady() - pausedAt < PAUSE_MIN_MS || this.#free < this.#neededToResume) return;
    this.#release ??= this.#descriptors.reserve(RESERVED);
    const failures: unknown[] = [];
    for (const guarded of this.#guarded.keys()) {
      try {
        guarded.resume();
      } catch (error) {
        failures.push(error);
      }
    }
    // Else the next look tries again.
    if (failures.length === 0) this.#pausedAt = null;
    else this.#warn("a port could not be opened again", { cause: reasonOf(failures[0]) });
  }

  /** One where the limit is unknown: then all that is known is whether a file can be opened. */
  get #neededToResume(): number {
    const needed = 2 * Math.max(this.#limit * FREE_SHARE.accept, RESERVED);
    return Number.isFinite(needed) ? needed : 1;
  }

  #warn(text: string, fields: Readonly<Record<string, string | number>>): void {
    const now = this.#clock.steady();
    if (now - (this.#warnedAt.get(text) ?? Number.NEGATIVE_INFINITY) < WARN_EVERY_MS) return;
    this.#warnedAt.set(text, now);
    const [log] = this.#guarded.values();
    log?.warn(text, fields);
  }
}

/** Connections that were seen with a request. */
class Addresses {
  /** By address and port, when the last request was; the longest ago first. */
  readonly #seen = new Map<string, Map<number, number>>();

  /** Returns how many the address has. */
  note(address: string, port: number, now: number): number {
    const ports = this.#seen.get(address) ?? new Map<number, number>();
    this.#seen.delete(address);
    this.#seen.set(address, ports);
    const [unseen] = this.#seen.keys();
    if (this.#seen.size > ADDRESSES_MAX && unseen !== undefined) this.#seen.delete(unseen);
    ports.delete(port);
    ports.set(port, now);
    for (const [oldest, lastMs] of ports) {
      if (now - lastMs < FORGOTTEN_AFTER_MS) break;
      ports.delete(oldest);
    }
    return ports.size;
  }

  clear(): void {
    this.#seen.clear();
  }
}

function openOne(): number | null {
  try {
    return openSync(devNull, "r");
  } catch (error) {
    if (codeOf(error) === "EMFILE" || codeOf(error) === "ENFILE") return null;
    throw error;
  }
}

function ofThisProcess(): Descriptors {
  const limit = limitOfFiles();
  return {
    limit,
    count() {
      // The system gives the lowest descriptor that is free, so all below it are in use.
      const lowest = openOne();
      if (lowest !== null) closeSync(lowest);
      return lowest ?? limit;
    },
    reserve(count) {
      const reserved = Array.from({ length: count }, openOne).filter((descriptor) => descriptor !== null);
      return () => reserved.splice(0).forEach((descriptor) => closeSync(descriptor));
    },
  };
}

export const CONNECTION_GUARD = new ConnectionGuard(ofThisProcess(), systemClock());
