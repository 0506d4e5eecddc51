/**
 * The hub's clocks. Nothing else may call Date.now() or performance.now().
 *
 * A wall clock can jump (NTP, an operator, a board without a battery). `now` is for the times that people see;
 * `steady`, which never jumps, is for leases and deadlines.
 */

export interface Clock {
  /** Wall clock, epoch milliseconds. Hubs on PostgreSQL share the database's. */
  now(): number;
  /**
   * Starts at the wall clock's time and runs with the monotonic clock. It does not advance while the machine is
   * suspended.
   */
  steady(): number;
  /**
   * As `steady`, but this machine's own, where several hubs share a steady clock. The wall clock moves against it when it
   * is set, or when the machine sleeps.
   */
  machine(): number;
  /** Of setTimeout: a timer that fires late shows that the process was suspended or blocked. */
  timers(): number;
  /**
   * Processor time of this thread: a busy machine cuts no batch short that a quiet one does. In tests work takes no
   * time.
   */
  work(): number;
}

/** For a machine that is alone, or a browser. */
export const machineClock: Pick<Clock, "now" | "timers"> = {
  now: () => Date.now(),
  timers: () => performance.now(),
};

/** @param work processor-time.ts has it for a hub */
export function systemClock(work = machineClock.timers): Clock {
  const offset = Date.now() - performance.now();
  const steady = (): number => Math.trunc(offset + performance.now());
  return { ...machineClock, steady, machine: steady, work };
}

/** An earlier wall time means that the clock is not set: a board without a battery starts in 1970. */
const NEVER_BEFORE = /* @__PURE__ */ Date.UTC(2026, 0, 1);

/**
 * Continues from `past` while the machine's clock is not set, so that new rows are not dated before old ones. @param
 * past a wall time that has passed, epoch milliseconds
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
    machine: () => clock.machine(),
    timers: () => clock.timers(),
    work: () => clock.work(),
  };
}

let encodedMs = Number.NaN;
let encoded = "";

/** Caches the last result: under load consecutive times are often equal. */
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

export function utcDayStart(epochMs: number): number {
  return Math.floor(epochMs / DAY_MS) * DAY_MS;
}
