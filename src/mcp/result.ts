/**
 * The result of a tool, in its two forms: structured content, and text. Many clients show a model only one of them. So each
 * form has every fact of the other, and begins with `say`, which tells the model what to do next.
 *
 * What other nodes wrote is a Foreign. In the text a fence with a random number encloses it, or quotes do, so that it
 * cannot pass for words of the hub. Where it is too long it is cut, and `cut` has the calls that read on.
 *
 * Invariant: neither form has more than MCP_RESULT_MAX_CHARS characters.
 */
import { MCP_RESULT_MAX_CHARS } from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import { assert } from "../lib/assert.ts";
import { isRawNumber } from "../lib/exact-json.ts";
import { printableJson } from "../lib/printable.ts";

/** Who wrote something, and whether the hub knows it by the key (docs/security.md). */
export type Author = {
  readonly node: string | null;
  /** Null: the hub does not record it. */
  readonly verified: boolean | null;
};

/** The call that reads on where a Foreign is cut: a tool, and its arguments but for the offset. */
export type ReadOn = { readonly call: string } & JsonObject;

type ForeignOptions = {
  readonly by: Author;
  /** Null: the rest cannot be read. */
  readonly readOn: ReadOn | null;
  /** It is cut here at the latest. */
  readonly mostChars?: number;
  /** Where `value` begins in the whole, and how long the whole is: in characters, but for a file in bytes. */
  readonly part?: { readonly offset: number; readonly total: number; readonly unit: "characters" | "bytes" };
};

/** A text or a JSON value that another node wrote. */
export class Foreign {
  readonly value: unknown;
  readonly options: ForeignOptions;
  readonly text: string;

  constructor(value: unknown, options: ForeignOptions) {
    this.value = value;
    this.options = options;
    this.text = typeof value === "string" ? value : printableJson(value);
  }
}

/** What a tool answers. Its values are those of JSON, numbers of lib/exact-json.ts, and Foreign. */
export type ToolResult = { readonly say: string } & JsonObject;

export type Forms = { readonly text: string; readonly structured: JsonObject };

class Shown {
  readonly value: unknown;
  readonly text: string;
  readonly by: Author;

  constructor(value: unknown, text: string, by: Author) {
    this.value = value;
    this.text = text;
    this.by = by;
  }
}

const CUT = "Some of it is cut: each entry of cut names the call that reads on.";

/** What the quotes or the fence around a content take. */
const FENCE_CHARS = 40;

export function formsOf(result: ToolResult): Forms {
  const whole = formsAt(result, MCP_RESULT_MAX_CHARS);
  if (fits(whole)) return whole;
  const none = formsAt(result, 0);
  assert(fits(none), "a tool answers no more than fits without the contents of others");
  const lengths = foreignsIn(result).map(lengthInJson);
  let room = MCP_RESULT_MAX_CHARS - sizeOf(none) - FENCE_CHARS * lengths.length;
  for (; room > 0; room = Math.floor(room * 0.8)) {
    const forms = formsAt(result, levelFor(lengths, room));
    if (fits(forms)) return forms;
  }
  return none;
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

function foreignsIn(value: unknown): readonly Foreign[] {
  if (value instanceof Foreign) return [value];
  if (Array.isArray(value)) return value.flatMap(foreignsIn);
  return isFields(value) ? Object.values(value).flatMap(foreignsIn) : [];
}

function lengthInJson({ text, options }: Foreign): number {
  const most = Math.min(options.mostChars ?? MCP_RESULT_MAX_CHARS, MCP_RESULT_MAX_CHARS);
  let length = 0;
  for (const char of text) {
    length += escapedLength(char);
    if (length >= most) return most;
  }
  return length;
}

function fits(forms: Forms): boolean {
  return sizeOf(forms) <= MCP_RESULT_MAX_CHARS;
}

function sizeOf({ text, structured }: Forms): number {
  return Math.max(text.length, JSON.stringify(structured).length);
}

/** How long a part of a result is, in the form in which it is longer. */
export function lengthOf(part: JsonObject): number {
  return sizeOf(formsAt({ say: "", ...part }, MCP_RESULT_MAX_CHARS));
}

function formsAt({ say, ...fields }: ToolResult, level: number): Forms {
  const cut: JsonObject[] = [];
  const shown = showAt(fields, level, cut) as JsonObject; // an object stays one
  const told = cut.length === 0 ? { say, ...shown } : { say: `${say} ${CUT}`, ...shown, cut };
  return { text: textOf(told), structured: plain(told) as JsonObject }; // the same
}

function showAt(value: unknown, level: number, cut: JsonObject[]): unknown {
  if (value instanceof Foreign) return showForeign(value, level, cut);
  return mapped(value, (inner) => showAt(inner, level, cut));
}

function showForeign({ value, text, options }: Foreign, level: number, cut: JsonObject[]): Shown {
  const { by, readOn, part = { offset: 0, total: text.length, unit: "characters" } } = options;
  const most = Math.min(level, options.mostChars ?? level);
  const end = beginningWithin(text, most);
  const shown = text.slice(0, end);
  const offset = part.offset + (part.unit === "bytes" ? Buffer.byteLength(shown) : end);
  if (offset < part.total && readOn !== null)
    cut.push({ ...readOn, offset, left: part.total - offset, unit: part.unit });
  if (end === text.length) return new Shown(value, text, by);
  return new Shown(readOn === null ? `${shown}…` : shown, readOn === null ? `${shown}…` : shown, by);
}

/** The beginning of a text that others wrote, where many have to fit: of so many characters in JSON. */
export function brief(text: string, most: number): string {
  const end = beginningWithin(text, most);
  return end === text.length ? text : `${text.slice(0, end)}…`;
}

/** How much of a text takes at most so many characters in JSON; never half of a surrogate pair. */
function beginningWithin(text: string, most: number): number {
  let cost = 0;
  let end = 0;
  for (const char of text) {
    cost += escapedLength(char);
    if (cost > most) return end;
    end += char.length;
  }
  return end;
}

function escapedLength(char: string): number {
  if (char === '"' || char === "\\") return 2;
  if (char >= " ") return char.isWellFormed() ? char.length : 6;
  return "\b\t\n\f\r".includes(char) ? 2 : 6;
}

function plain(value: unknown): unknown {
  return value instanceof Shown ? value.value : mapped(value, plain);
}

function mapped(value: unknown, of: (inner: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(of);
  if (!isFields(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => (inner === undefined ? [] : [[name, of(inner)]])),
  );
}

function isFields(value: unknown): value is JsonObject {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Shown) &&
    !(value instanceof Foreign) &&
    !isRawNumber(value)
  );
}

// ---- The text

/** A longer one gets lines of its own. */
const INLINE_MAX_CHARS = 200;
/** What needs no quotes, because nothing in it can be mistaken for the text around it. */
const BARE = /^[\w.:@/?=&%+~*-]+$/;

function textOf({ say, ...fields }: JsonObject): string {
  const fence = fenceFor(fields);
  return [String(say), ...linesOf(fields, "", fence)].join("\n");
}

/** A number that no content has, because nobody could know it. */
function fenceFor(fields: JsonObject): string {
  for (;;) {
    const fence = crypto.getRandomValues(new Uint8Array(6)).toHex();
    if (!isIn(fence, fields)) return fence;
  }
}

function isIn(fence: string, value: unknown): boolean {
  if (value instanceof Shown) return value.text.includes(fence);
  if (Array.isArray(value)) return value.some((inner) => isIn(fence, inner));
  return isFields(value) && Object.values(value).some((inner) => isIn(fence, inner));
}

function linesOf(fields: JsonObject, indent: string, fence: string): readonly string[] {
  return Object.entries(fields).flatMap(([name, value]): readonly string[] => {
    const inline = inlineOf(value);
    if (inline !== null) return [`${indent}${name}${authorOf(value)}: ${inline}`];
    const head = `${indent}${name}${authorOf(value)}:`;
    if (value instanceof Shown) return [`${head} <<<${fence}`, value.text, `${fence}>>>`];
    if (!Array.isArray(value)) return [head, ...linesOf(value as JsonObject, `${indent}  `, fence)]; // it is nothing else
    return [head, ...value.flatMap((row: unknown) => rowOf(row as JsonObject, indent, fence))]; // as in inlineOf()
  });
}

function rowOf(row: JsonObject, indent: string, fence: string): readonly string[] {
  const fields = Object.entries(row);
  const short = fields.flatMap(([name, value]) => {
    const inline = inlineOf(value);
    return inline === null ? [] : [`${name}${authorOf(value)}: ${inline}`];
  });
  const long = Object.fromEntries(fields.filter(([, value]) => inlineOf(value) === null));
  return [`${indent}- ${short.join("; ")}`, ...linesOf(long, `${indent}  `, fence)];
}

function inlineOf(value: unknown): string | null {
  if (value === null) return "none";
  if (value instanceof Shown) {
    const isShort = value.text.length <= INLINE_MAX_CHARS;
    if (typeof value.value !== "string") return isShort ? value.text : null;
    return isShort && !value.text.includes("\n") ? printableJson(value.text) : null;
  }
  if (Array.isArray(value)) {
    if (value.length === 0) return "none";
    return isFields(value[0]) ? null : value.map(inlineOf).join(", ");
  }
  if (isFields(value)) return null;
  if (typeof value !== "string") return JSON.stringify(value);
  return BARE.test(value) && value !== "none" ? value : printableJson(value);
}

function authorOf(value: unknown): string {
  if (!(value instanceof Shown)) return "";
  const { node, verified } = value.by;
  const known = verified === null ? "" : ` (${verified ? "verified" : "not verified"})`;
  return `, by ${node ?? "an unnamed sender"}${known}`;
}
