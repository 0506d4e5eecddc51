/**
 * The result of a tool: JSON, which the client gets twice, as structured content and as text, because many clients show a
 * model only one of the two. `say`, `error` and `cut` are words of the hub: what happened, and what to do next. All else
 * may be written by others. So it is data, in which characters that nobody sees are escapes.
 *
 * A content that may be long is a Foreign. Where it is too long it is cut, and `cut` has the calls that read on.
 *
 * Invariant: a result has at most MCP_RESULT_MAX_BYTES.
 */
import { MCP_LINE_MAX_BYTES, MCP_RESULT_MAX_BYTES } from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import { must } from "../lib/assert.ts";
import { isRawNumber } from "../lib/exact-json.ts";
import { visible } from "../lib/printable.ts";

/** The call that reads on where a Foreign is cut: a tool, and its arguments but for the offset. */
export type ReadOn = { readonly call: string } & JsonObject;

type ForeignOptions = {
  /** Null: the rest cannot be read. */
  readonly readOn?: ReadOn | null;
  /** It is cut here at the latest. */
  readonly mostBytes?: number | undefined;
  /** Where `value` begins in the whole, and how long the whole is: in characters, but for a file in bytes. */
  readonly part?: { readonly offset: number; readonly total: number; readonly unit: "characters" | "bytes" };
};

/** A text or a JSON value of any length that another node wrote. */
export class Foreign {
  readonly value: unknown;
  readonly options: ForeignOptions;
  readonly text: string;

  constructor(value: unknown, options: ForeignOptions = {}) {
    this.value = value;
    this.options = options;
    this.text = typeof value === "string" ? value : JSON.stringify(value);
  }
}

/**
 * What a tool answers. Its values are those of JSON, numbers of lib/exact-json.ts, and Foreign. What is undefined is left
 * out, and in a record within it what is null.
 */
export type ToolResult = { readonly say: string } & JsonObject;

const CUT = "Some of it is cut: each entry of cut names the call that reads on.";

/** @param isBrief whether its plain texts are as short as can be */
export function shownResult(result: ToolResult, isBrief = false): JsonObject {
  const whole = shownAt(result, MCP_RESULT_MAX_BYTES);
  if (fits(whole)) return whole;
  const none = shownAt(result, 0);
  const lengths = foreignsIn(result).map(lengthInJson);
  for (let room = MCP_RESULT_MAX_BYTES - bytesOf(none); room > 0; room = Math.floor(room * 0.8)) {
    const shown = shownAt(result, levelFor(lengths, room));
    if (fits(shown)) return shown;
  }
  if (fits(none)) return none;
  const { say, ...fields } = result;
  return shownResult(isBrief ? withFewerRows(result) : { say, ...Object(briefed(fields)) }, true);
}

/** The longest that a content may be, so that all of these lengths have room together. */
function levelFor(lengths: readonly number[], room: number): number {
  let roomLeft = room;
  const sorted = lengths.toSorted((a, b) => a - b);
  for (const [i, length] of sorted.entries()) {
    const share = Math.floor(roomLeft / (sorted.length - i));
    if (length > share) return share;
    roomLeft -= length;
  }
  return room;
}

function briefed(value: unknown): unknown {
  if (typeof value === "string") return brief(value, MCP_LINE_MAX_BYTES);
  if (Array.isArray(value)) return value.map(briefed);
  if (!isFields(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, briefed(inner)]));
}

/** Without the second half of its longest list; `NAME_count` says how long that is. */
function withFewerRows(result: ToolResult): ToolResult {
  const sizeOf = (list: readonly unknown[]): number => bytesOf(shownAt({ say: "", list }, 0));
  const longest = listsIn(result).toSorted((a, b) => sizeOf(b) - sizeOf(a))[0];
  return halved(result, must(longest, "a result is too long by its rows")) as ToolResult; // its fields keep their names
}

function listsIn(value: unknown): readonly (readonly unknown[])[] {
  if (Array.isArray(value)) return [...(value.length > 1 ? [value] : []), ...value.flatMap(listsIn)];
  return isFields(value) ? Object.values(value).flatMap(listsIn) : [];
}

function halved(value: unknown, list: readonly unknown[]): unknown {
  if (Array.isArray(value)) return value.map((inner) => halved(inner, list));
  if (!isFields(value)) return value;
  const fields = Object.entries(value).map(([name, inner]) =>
    inner === list ? [name, list.slice(0, Math.ceil(list.length / 2))] : [name, halved(inner, list)],
  );
  const counts = Object.entries(value).filter(([, inner]) => inner === list);
  return Object.fromEntries([...counts.map(([name]) => [`${name}_count`, list.length]), ...fields]);
}

function foreignsIn(value: unknown): readonly Foreign[] {
  if (value instanceof Foreign) return [value];
  if (Array.isArray(value)) return value.flatMap(foreignsIn);
  return isFields(value) ? Object.values(value).flatMap(foreignsIn) : [];
}

function lengthInJson({ text, options }: Foreign): number {
  const most = Math.min(options.mostBytes ?? MCP_RESULT_MAX_BYTES, MCP_RESULT_MAX_BYTES);
  let length = 0;
  for (const char of text) {
    length += shownLength(char);
    if (length >= most) return most;
  }
  return length;
}

function fits(shown: JsonObject): boolean {
  return bytesOf(shown) <= MCP_RESULT_MAX_BYTES;
}

function bytesOf(shown: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(shown));
}

/** How long a part of a result is. */
export function lengthOf(part: JsonObject): number {
  return bytesOf(shownAt({ say: "", part }, MCP_RESULT_MAX_BYTES));
}

function shownAt({ say, ...fields }: ToolResult, level: number): JsonObject {
  const cut: JsonObject[] = [];
  const shown = shownFields(fields, null, (value) => showAt(value, level, cut));
  return cut.length === 0 ? { say, ...shown } : { say: `${say} ${CUT}`, ...shown, cut };
}

function showAt(value: unknown, level: number, cut: JsonObject[]): unknown {
  if (value instanceof Foreign) return escaped(beginningOf(value, level, cut));
  if (Array.isArray(value)) return value.map((inner) => showAt(inner, level, cut));
  return isFields(value)
    ? shownFields(value, undefined, (inner) => showAt(inner, level, cut))
    : escaped(value);
}

/** @param blank what a field has for null; undefined leaves it out */
function shownFields(
  fields: JsonObject,
  blank: null | undefined,
  of: (value: unknown) => unknown,
): JsonObject {
  const shown = Object.entries(fields).map(([name, value]) => [
    visible(name),
    value === null ? blank : of(value),
  ]);
  return Object.fromEntries(shown.filter(([, value]) => value !== undefined));
}

function escaped(value: unknown): unknown {
  if (typeof value === "string") return visible(value);
  if (Array.isArray(value)) return value.map(escaped);
  return isFields(value) ? shownFields(value, null, escaped) : value;
}

function beginningOf({ value, text, options }: Foreign, level: number, cut: JsonObject[]): unknown {
  const { readOn = null, part = { offset: 0, total: text.length, unit: "characters" } } = options;
  const end = beginningWithin(text, Math.min(level, options.mostBytes ?? level));
  const shown = text.slice(0, end);
  const offset = part.offset + (part.unit === "bytes" ? Buffer.byteLength(shown) : end);
  if (offset < part.total && readOn !== null) cut.push({ ...readOn, offset, left: part.total - offset });
  if (end === text.length) return value;
  return readOn === null ? `${shown}…` : shown;
}

/** The beginning of a text that others wrote, where many have to fit: of so many bytes in JSON. */
export function brief(text: string, most: number): string {
  const end = beginningWithin(text, most);
  return end === text.length ? text : `${text.slice(0, end)}…`;
}

/** How much of a text takes at most so many bytes in JSON; never half of a surrogate pair. */
function beginningWithin(text: string, most: number): number {
  let cost = 0;
  let end = 0;
  for (const char of text) {
    cost += shownLength(char);
    if (cost > most) return end;
    end += char.length;
  }
  return end;
}

/** In bytes. */
function shownLength(char: string): number {
  if (char >= " " && char <= "~") return char === '"' || char === "\\" ? 2 : 1;
  return Buffer.byteLength(JSON.stringify(visible(char))) - 2;
}

function isFields(value: unknown): value is JsonObject {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && !(value instanceof Foreign) && !isRawNumber(value);
}
