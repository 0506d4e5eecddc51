/**
 * The times of a schedule: a cron expression in a time zone (Bun.cron.parse: five fields, or a nickname such as @daily).
 *
 * At a change of daylight-saving time, the first time in the hour that is left out comes an hour later, and the others
 * in it do not come. A time in the hour that comes twice comes once; `*` in the minute or hour takes part in both.
 */
import { DAY_MS, MINUTE_MS } from "./clock.ts";

/** Bun looks 8 years ahead. */
const AHEAD_MS = 8 * 366 * DAY_MS;

const FIELDS = [
  "minute from 0 to 59",
  "hour from 0 to 23",
  "day of the month from 1 to 31",
  "month from 1 to 12, or JAN to DEC",
  "day of the week from 0 (Sunday) to 7, or SUN to SAT",
];

/** What to send instead; null if it is one. */
export function cronFault(text: string): string | null {
  const next = parsed(text);
  if (next) return null;
  if (next === null) return "must have a time in the next 8 years";
  const fields = text.trim().split(/\s+/);
  if (fields.length !== FIELDS.length || text.trim().startsWith("@"))
    return "must have five fields, minute hour day month weekday, or be @hourly, @daily, @weekly, @monthly or @yearly";
  const wrong = fields.findIndex(
    (_, index) => !parsed(fields.map((field, i) => (i === index ? field : "*")).join(" ")),
  );
  return `must have a ${FIELDS[wrong]} in field ${wrong + 1}: numbers, lists (1,15), ascending ranges (1-5), steps (*/5)`;
}

/** Undefined: no cron expression; null: no next time. */
function parsed(text: string): Date | null | undefined {
  try {
    return Bun.cron.parse(text, 0, { tz: "UTC" });
  } catch {
    return undefined;
  }
}

export function isTimeZone(name: string): boolean {
  try {
    return Bun.cron.parse("@daily", 0, { tz: name }) !== null;
  } catch {
    return false;
  }
}

/** Null: none within 8 years. */
export function nextCron(cron: string, tz: string, after: number): number | null {
  return Bun.cron.parse(cron, after, { tz })?.getTime() ?? null;
}

/** Null: none within 8 years. */
export function lastCron(cron: string, tz: string, until: number): number | null {
  // Few times lie between the first found and the last.
  for (let backMs = MINUTE_MS; backMs <= AHEAD_MS; backMs *= 2) {
    let last: number | null = null;
    for (
      let time = nextCron(cron, tz, until - backMs);
      time !== null && time <= until;
      time = nextCron(cron, tz, time)
    )
      last = time;
    if (last !== null) return last;
  }
  return null;
}
