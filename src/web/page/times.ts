/** Times as people read and type them: in the zone of the browser, or in UTC if the user chose that on this device. */
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
