/** Parses durations, such as 500ms or 1.5h, and points in time. */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "./clock.ts";

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
};

export function durationMs(text: string): number | null {
  const [, amount, unit = ""] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const unitMs = UNIT_MS[unit];
  return amount === undefined || unitMs === undefined ? null : Number(amount) * unitMs;
}

const DAY = String.raw`\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])`;
const TIME = String.raw`(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?`;
const ZONE = String.raw`(?:[Zz]|[+-](?:0\d|1[0-4]):[0-5]\d)`;
/** As RFC 3339 writes them; isRealDay() does the rest. */
export const DAY_FORM = new RegExp(`^${DAY}$`);
export const INSTANT_FORM = new RegExp(`^${DAY}[Tt]${TIME}${ZONE}$`);

/** Date.parse accepts the 31st of any month. */
export function isRealDay(date: string): boolean {
  const [year = 0, month = 0, day = 0] = date.slice(0, 10).split("-").map(Number);
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

export function instantMs(text: string): number | null {
  return INSTANT_FORM.test(text) && isRealDay(text) ? Date.parse(text) : null;
}

export function dayMs(text: string): number | null {
  return DAY_FORM.test(text) && isRealDay(text) ? Date.parse(text) : null;
}

/** Beyond this there is no date in JavaScript. */
const LATEST_MS = 8.64e15;

/** A duration from `now`, an instant or a day. */
export function momentMs(text: string, now: number): number | null {
  const ms = durationMs(text);
  const epochMs = ms === null ? (instantMs(text) ?? dayMs(text)) : now + ms;
  return epochMs !== null && epochMs <= LATEST_MS ? epochMs : null;
}
