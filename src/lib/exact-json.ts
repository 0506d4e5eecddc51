/**
 * JSON without loss: JSON.parse reads it, and what it would change stays in its source text (JSON.rawJSON), which
 * JSON.stringify writes unchanged. So stays a number that a double cannot represent, and every value of compactJson().
 */
import { must } from "./assert.ts";

/** In ECMAScript, but not in TypeScript's type library. An older browser than of 2025 rounds in parseExact(). */
type ExactJson = {
  readonly rawJSON?: (text: string) => object;
  readonly isRawJSON: (value: unknown) => value is { readonly rawJSON: string };
  readonly parse: (
    text: string,
    reviver: (name: string, value: unknown, context: { readonly source?: string }) => unknown,
  ) => unknown;
};

const { rawJSON, isRawJSON, parse } = JSON as unknown as ExactJson;

/**
 * Each pattern that a text has costs time, so the cheap ones come first. A number follows a colon, a comma, a bracket or
 * white space; the digits of an id in quotes do not.
 */
const LONG_NUMBER = /[\d.]{16}/;
const EXPONENT = /\d[eE][-+\d]/;
const MAY_BE_INEXACT = /(?:^|[\s:,[])-?(?:[\d.]{16}|[\d.]+[eE])/;
const MAY_BE_NEGATIVE_ZERO = /(?:^|[\s:,[])-0/;

/** A longer number is kept as text without a check. */
const COMPARED_MAX_CHARS = 400;

/** -0 is 0, as in a database and in JSON.stringify. @throws {SyntaxError} */
export function parsePlain(text: string): unknown {
  if (!text.includes("-0") || !MAY_BE_NEGATIVE_ZERO.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value: unknown) => (value === 0 ? 0 : value));
}

/** A number which a double cannot represent becomes a raw JSON object. @throws {SyntaxError} */
export function parseExact(text: string): unknown {
  if (rawJSON === undefined || !mayBeInexact(text)) return parsePlain(text);
  return parse(text, (_, value, { source }) => {
    if (typeof value !== "number" || source === undefined) return value;
    return isExact(value, source) ? value + 0 : rawJSON(source);
  });
}

function mayBeInexact(text: string): boolean {
  return (LONG_NUMBER.test(text) || EXPONENT.test(text)) && MAY_BE_INEXACT.test(text);
}

const STRING = /"([^"\\]*(?:\\.[^"\\]*)*")/g;
const MARKED = /"#([^"\\]*(?:\\.[^"\\]*)*")/g;

/**
 * Valid JSON without white space: values keep their text, and names their order. Of two fields with one name it keeps the
 * last, in the place of the first, as JSON.parse does.
 */
export function compactJson(text: string): string {
  if (JSON.stringify(JSON.parse(text)) === text) return text;
  const keep = must(rawJSON, "the hub's runtime has JSON.rawJSON");
  // JSON.parse moves names that look like numbers to the front; with a mark none does.
  const marked = text.replaceAll(STRING, '"#$1');
  const value = parse(marked, (_, value, { source }) => (source === undefined ? value : keep(source)));
  return JSON.stringify(value).replaceAll(MARKED, '"$1');
}

export function isRawNumber(value: unknown): boolean {
  return isRawJSON(value);
}

/** Leaves raw numbers in nested lists and objects. */
export function withRoundedNumbers(
  fields: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  if (!Object.values(fields).some(isRawJSON)) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      isRawJSON(value) ? Number(value.rawJSON) + 0 : value,
    ]),
  );
}

function isExact(value: number, source: string): boolean {
  const shown = String(value);
  if (shown === source) return true;
  return source.length <= COMPARED_MAX_CHARS && Number.isFinite(value) && decimal(shown) === decimal(source);
}

/** Neither the order of names nor the notation of a number matters. */
export function isSameJson(a: string, b: string): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b);
}

/** Equal for all JSON texts of one value. */
export function canonicalJson(text: string): string {
  return canonicalText(parseExact(text));
}

/** The value must not be nested deeper than the call stack allows. */
export function canonicalText(value: unknown): string {
  return JSON.stringify(canonicalValue(value));
}

function canonicalValue(value: unknown): unknown {
  if (isRawJSON(value)) return canonicalNumber(value.rawJSON);
  if (Array.isArray(value)) return value.map(canonicalValue);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).toSorted(([x], [y]) => (x < y ? -1 : 1));
  return { fields: fields.map(([name, inner]) => [name, canonicalValue(inner)]) }; // an object differs from a list
}

/** A very long text may still be a double. */
function canonicalNumber(text: string): unknown {
  const double = Number(text);
  const exact = decimal(text);
  return Number.isFinite(double) && decimal(String(double)) === exact ? double + 0 : { number: exact };
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** Sign, digits and power of ten: 100, 1e2 and 100.0 all become "1e2". */
function decimal(text: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = must(
    NUMBER.exec(text),
    "a number of JSON",
  );
  const digits = whole + fraction;
  let start = 0;
  while (digits[start] === "0") start++;
  if (start === digits.length) return "0";
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  return `${sign}${digits.slice(start, end)}e${shifted(exponent, digits.length - end - fraction.length)}`;
}

/** A longer exponent is compared as text: to make a number of it would take milliseconds. */
const EXPONENT_MAX_CHARS = 15;

function shifted(exponent: string, addend: number): string {
  const [, minus = "", magnitude = ""] = must(/^([+-]?)0*(\d*)$/.exec(exponent), "an exponent is digits");
  if (magnitude.length > EXPONENT_MAX_CHARS) return `${minus === "-" ? "-" : ""}${magnitude}+${addend}`;
  return String(Number(`${minus}${magnitude || "0"}`) + addend);
}
