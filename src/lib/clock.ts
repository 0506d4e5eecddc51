/**
 * The hub's sense of time. Nothing else may call Date.now() or performance.now().
 *
 * Two readings, because a wall clock jumps (NTP, an operator, a board without a battery) and a lease must not:
 * `now` is for times that people see, `steady` for leases and deadlines.
 */

export interface Clock {
  /** The wall clock, epoch milliseconds: for times that are shown, and for calendar days. */
  now(): number;
  /**
   * Milliseconds that never jump: starts at the wall clock's reading and then runs with the monotonic clock.
   * For leases and deadlines. It does not advance while the machine is suspended.
   */
  steady(): number;
  /** Milliseconds of the clock that timers use: a timer that fires late shows that the process was stopped. */
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

/** An earlier time is wrong: a board without a battery starts in 1970 until the network sets its clock. */
const NEVER_BEFORE = Date.UTC(2026, 0, 1);

/**
 * A clock that goes on from a known past time while the machine's clock is not set. So new rows are not dated before old
 * ones, and what has expired stays expired.
 * @param known a wall time in the past, epoch milliseconds
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
 * ISO 8601 UTC with milliseconds, the form of every time in an answer. The last one is cached: under load many times in a
 * row fall into one millisecond.
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
