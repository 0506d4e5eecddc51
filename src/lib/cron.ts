/**
 * The times of a schedule: a cron expression in a time zone (Bun.cron.parse: five fields, or a nickname such as @daily).
 *
 * At a change of daylight-saving time, the first time in the hour that is left out comes an hour later, and the others
 * in it do not come. A time in the hour that comes twice comes once; `*` in the minute or hour takes part in both.
 */
import { DAY_MS, MINUTE_MS } from "./clock.ts";

/** Bun looks 8 years ahead. */
const AHEAD_MS = 8 * 366 * DAY_MS;

/** Whether it is a cron expression that has a next time. */
export function isCron(text: string): boolean {
  try {
    return Bun.cron.parse(text, 0, { tz: "UTC" }) !== null;
  } catch {
    return false;
  }
}

/** Whether it names a time zone (IANA). */
export function isTimeZone(name: string): boolean {
  try {
    return Bun.cron.parse("@daily", 0, { tz: name }) !== null;
  } catch {
    return false;
  }
}

/** The first time after `after`, in epoch milliseconds; null: none within 8 years. */
export function nextCron(cron: string, tz: string, after: number): number | null {
  return Bun.cron.parse(cron, after, { tz })?.getTime() ?? null;
}

/** The last time at or before `until`; null: none in the 8 years before it. */
export function lastCron(cron: string, tz: string, until: number): number | null {
  // Looks back twice as far each time, so that few times lie between the first found and the last.
  for (let backMs = MINUTE_MS; backMs <= AHEAD_MS; backMs *= 2) {
    let last: number | null = null;
    for (let at = nextCron(cron, tz, until - backMs); at !== null && at <= until; at = nextCron(cron, tz, at))
      last = at;
    if (last !== null) return last;
  }
  return null;
}
