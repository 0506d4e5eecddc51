/** Times as people read and type them: in the zone of the browser, or in UTC if the user chose that on this device. */
import { now } from "./clock.ts";
import type { Query } from "./route.ts";
import { drawn } from "./shared.ts";

const STORED = "luxhub.zone";

export const isUtc = drawn(localStorage.getItem(STORED) === "UTC");

export function setUtc(is: boolean): void {
  isUtc.value = is;
  if (is) localStorage.setItem(STORED, "UTC");
  else localStorage.removeItem(STORED);
}

type Options = Intl.DateTimeFormatOptions;

const numeric = "numeric";
const WHOLE: Options = {
  ...{ year: numeric, month: numeric, day: numeric },
  ...{ hour: numeric, minute: numeric, second: numeric },
};

/** To make a format takes longer than to use it a hundred times. */
const formats = new Map<string, Intl.DateTimeFormat>();

export function timeOf(at: string | number, options = WHOLE): string {
  const name: Options = options === WHOLE ? { timeZoneName: "short" } : {};
  const given = isUtc.value ? { ...options, ...name, timeZone: "UTC" } : options;
  const key = JSON.stringify(given);
  const format = formats.get(key) ?? new Intl.DateTimeFormat(undefined, given);
  formats.set(key, format);
  return format.format(new Date(at));
}

/** The ISO form, which is right in every zone, of what a field has or the address says; what is no time stays as it is. */
export function isoOf(text: string | undefined): string | undefined {
  const isTyped = /^[\d-]+T[\d:.]+$/.test(text ?? "");
  const time = new Date(isTyped && isUtc.value ? `${text}Z` : (text ?? ""));
  return Number.isNaN(time.getTime()) ? text : time.toISOString();
}

const MINUTE_MS = 60_000;

/** What a field of the type datetime-local shows of a time in the address; empty for what is no time. */
export function typedOf(text: string | undefined): string {
  const time = new Date(isoOf(text) ?? "");
  const zoneMs = isUtc.value ? 0 : time.getTimezoneOffset() * MINUTE_MS;
  return Number.isNaN(time.getTime()) ? "" : new Date(time.getTime() - zoneMs).toISOString().slice(0, 16);
}

const HOUR_S = 3_600;

/** The periods of a filter, in seconds until now. */
export const LASTS = [
  ["", "ever"],
  [String(HOUR_S / 4), "in the last 15 min"],
  [String(HOUR_S), "in the last hour"],
  [String(24 * HOUR_S), "in the last 24 h"],
  [String(7 * 24 * HOUR_S), "in the last 7 days"],
] as const;

/** When the period of the address begins. What is relative in it is relative to now. */
export function sinceOf({ last, since }: Query): string | undefined {
  return last ? new Date(now.value - Number(last) * 1_000).toISOString() : isoOf(since);
}
