/**
 * The hub's clocks. Nothing else may call Date.now() or performance.now().
 *
 * A wall clock jumps (NTP, an operator, a board without a battery), and a lease must not: so what people see is dated
 * by `now`, and leases and deadlines run by `steady`.
 */

export interface Clock {
  /** Wall clock, epoch milliseconds: for stored dates and calendar days. */
  now(): number;
  /**
   * Milliseconds that never jump: starts at the wall clock's time and then runs with the monotonic clock.
   * For leases and deadlines. It does not advance while the machine is suspended.
   */
  steady(): number;
  /** Milliseconds by the clock of the timers: a timer that fires late shows that the process stood still. */
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

/** A clock that shows less is not set: a board without a battery starts in 1970, until the network sets it. */
const NEVER_BEFORE = Date.UTC(2026, 0, 1);

/**
 * A clock whose wall time continues from `past` while the machine's clock is not set. So new rows are not dated before old
 * ones, and what had expired stays expired.
 * @param past a wall time that has passed, epoch milliseconds
 */
export function notBefore(clock: Clock, past: number): Clock {
  const startedAt = clock.steady();
  const floor = Math.max(past, NEVER_BEFORE);
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
 * ISO 8601 UTC with milliseconds, the form of every time in an answer. The last result is cached: under load many times
 * in a row fall into the same millisecond.
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

/** The start of the UTC day in which `epochMs` falls. */
export function utcDayStart(epochMs: number): number {
  return Math.floor(epochMs / DAY_MS) * DAY_MS;
}
