/**
 * The hub's sense of time. Nothing else may call Date.now() or performance.now().
 *
 * Two readings, because a wall clock jumps (NTP, an operator, a board without a battery) and a lease must not:
 * what is shown to people is `now`, what is waited for is `steady`.
 */

export interface Clock {
  /** Wall clock, epoch milliseconds: for what is stored to be shown, and for calendar days. */
  now(): number;
  /**
   * Milliseconds that never jump: starts at the wall clock's reading and then runs with the monotonic clock.
   * For leases and deadlines. It does not advance while the machine is suspended.
   */
  steady(): number;
  /** Milliseconds by the clock that timers run by: one that fires late says that the process stood still. */
  timers(): number;
}

/** The machine's clock. */
export function systemClock(): Clock {
  const offset = Date.now() - performance.now();
  return {
    now: () => Date.now(),
    steady: () => Math.trunc(offset + performance.now()),
    timers: () => performance.now(),
  };
}

/** No clock that is right shows less: a board without a battery starts in 1970 until the network tells it the time. */
const NEVER_BEFORE = Date.UTC(2026, 0, 1);

/**
 * A clock whose wall time, while the machine's has not been set, goes on from what is known to be past. So what is
 * written by then is not dated before what was written long ago, and what had expired stays so.
 * @param known a wall time that has been, epoch milliseconds
 */
export function knowing(clock: Clock, known: number): Clock {
  const startedAt = clock.steady();
  const floor = Math.max(known, NEVER_BEFORE);
  return {
    now: () => {
      const wall = clock.now();
      return wall >= NEVER_BEFORE ? wall : floor + (clock.steady() - startedAt);
    },
    steady: () => clock.steady(),
    timers: () => clock.timers(),
  };
}

let encodedMs = Number.NaN;
let encoded = "";

/**
 * ISO 8601 UTC with milliseconds, the form of every time in an answer. The last one is remembered: under load many
 * times that are encoded after one another fall into one millisecond.
 */
export function isoTime(epochMs: number): string {
  if (epochMs !== encodedMs) {
    encoded = new Date(epochMs).toISOString();
    encodedMs = epochMs;
  }
  return encoded;
}

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** The start of the UTC day that holds `epochMs`. */
export function utcDayStart(epochMs: number): number {
  return Math.floor(epochMs / DAY_MS) * DAY_MS;
}
