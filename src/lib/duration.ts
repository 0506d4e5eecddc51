/** Parses durations with a unit, such as 500ms, 10s, 1.5h or 30d, and moments that are given as one. */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "./clock.ts";

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
};

/** A duration in milliseconds; null for anything else. */
export function durationMs(text: string): number | null {
  const [, amount, unit = ""] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? [];
  const unitMs = UNIT_MS[unit];
  return amount === undefined || unitMs === undefined ? null : Number(amount) * unitMs;
}

/**
 * A moment as epoch milliseconds, given as an ISO 8601 date or time or as a duration from `now`; null for anything
 * else.
 */
export function momentMs(text: string, now: number): number | null {
  const ms = durationMs(text);
  if (ms === null && !/^\d{4}-\d\d-\d\d/.test(text)) return null;
  const at = ms === null ? Date.parse(text) : now + ms;
  return Number.isFinite(new Date(at).getTime()) ? at : null; // beyond the year 275760 there is no date
}
