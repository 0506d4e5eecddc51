/**
 * JSON without loss of digits. JSON.parse rounds a number that a double cannot represent; here such a number stays in
 * its source text (JSON.rawJSON), which JSON.stringify writes unchanged.
 */
import { must } from "./assert.ts";

/**
 * Part of ECMAScript, but not of TypeScript's type library: "JSON.parse source text access". Browsers have it since 2025;
 * in an older one, parseExact() rounds.
 */
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
 * Matches every text that has a number which a double may not represent: 16 digits or more, or an exponent. A number
 * follows a colon, a comma, a bracket or white space, so the digits of an id in quotes do not match.
 */
const MAY_BE_INEXACT = /(?:^|[\s:,[])-?(?:[\d.]{16}|[\d.]+[eE])/;

/** A longer number is kept as text without checking whether a double represents it. */
const COMPARED_MAX_CHARS = 400;

const MAY_BE_NEGATIVE_ZERO = /(?:^|[\s:,[])-0/;

/** Parses JSON as JSON.parse does, except that -0 is 0, as in a database and in JSON.stringify. @throws {SyntaxError} */
export function parsePlain(text: string): unknown {
  if (!MAY_BE_NEGATIVE_ZERO.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value: unknown) => (value === 0 ? 0 : value));
}

/**
 * Parses JSON as parsePlain() does, except that a number which a double cannot represent becomes a raw JSON object.
 * @throws {SyntaxError}
 */
export function parseExact(text: string): unknown {
  if (rawJSON === undefined || !MAY_BE_INEXACT.test(text)) return parsePlain(text);
  return parse(text, (_, value, { source }) => {
    if (typeof value !== "number" || source === undefined) return value;
    return isExact(value, source) ? value + 0 : rawJSON(source);
  });
}

/** Whether a value is a number in its source text. */
export function isRawNumber(value: unknown): boolean {
  return isRawJSON(value);
}

/** Rounds the raw numbers among the fields of an object from parseExact(). Leaves those in nested lists and objects. */
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

/** Whether two JSON texts have the same value: neither the order of names nor the notation of a number matters. */
export function isSameJson(a: string, b: string): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b);
}

/** Returns a text that is equal for all JSON texts of one value. */
export function canonicalJson(text: string): string {
  return canonicalText(parseExact(text));
}

/** As canonicalJson(), of a value from a parser of this file. It must not be nested deeper than the call stack allows. */
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

/** A double if it has the value, as a very long text of one may have. */
function canonicalNumber(text: string): unknown {
  const double = Number(text);
  const exact = decimal(text);
  return Number.isFinite(double) && decimal(String(double)) === exact ? double + 0 : { number: exact };
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** Normalises a JSON number to sign, digits and power of ten: 100, 1e2 and 100.0 all become "1e2". */
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

/** A longer exponent is compared as text: its digits would take milliseconds to become a number. */
const EXPONENT_MAX_CHARS = 15;

/** Returns an exponent plus `by`, as text. */
function shifted(exponent: string, by: number): string {
  const [, minus = "", magnitude = ""] = must(/^([+-]?)0*(\d*)$/.exec(exponent), "an exponent is digits");
  if (magnitude.length > EXPONENT_MAX_CHARS) return `${minus === "-" ? "-" : ""}${magnitude}+${by}`;
  return String(Number(`${minus}${magnitude || "0"}`) + by);
}
