/** The envelope of a success, and the JSON of answers with a list that is loaded in parts. */
import { assert } from "../lib/assert.ts";
import { type NextPart, Rows } from "../service/list-pages.ts";
import { namesOfIgnored } from "./input.ts";
import type { Encoded } from "./response-backpressure.ts";

/** Fields as JSON without braces, which go into an answer unchanged. */
export class JsonFields {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A GET may have one list whose value is Rows: its further parts are loaded as the caller reads. */
export type JsonAnswer = Readonly<Record<string, unknown>> | JsonFields;

export class BatchFields extends JsonFields {
  readonly ignored: readonly string[];

  constructor(text: string, ignored: readonly string[]) {
    super(text);
    this.ignored = ignored;
  }
}

export function encodeSuccess(answer: JsonAnswer, unread: readonly string[] = []): string {
  const ignored = answer instanceof BatchFields ? namesOfIgnored([...unread, ...answer.ignored]) : unread;
  const isClean = ignored.length === 0;
  if (answer instanceof JsonFields)
    return `{"success":true,${answer.text}${isClean ? "" : `,"ignored":${JSON.stringify(ignored)}`}}`;
  return JSON.stringify(isClean ? { success: true, ...answer } : { success: true, ...answer, ignored });
}

export function encodeInPieces(answer: JsonAnswer, ignored: readonly string[] = []): Encoded {
  for (const [name, rows] of Object.entries(answer)) {
    if (!(rows instanceof Rows)) continue;
    const field = `"${name}":[]`; // found once: within a text its quotes would be escaped
    const empty = encodeSuccess({ ...answer, [name]: [] }, ignored);
    const bracket = empty.indexOf(field) + field.length - 1;
    const end = empty.slice(bracket);
    const begun = empty.slice(0, bracket) + encodeItems(rows.first);
    if (rows.next === null) return { first: begun + end, next: null };
    return { first: begun, next: nextPieces(rows.next, rows.first.length > 0 ? "," : "", end) };
  }
  return { first: encodeSuccess(answer, ignored), next: null };
}

function encodeItems(items: readonly unknown[]): string {
  if (!(items[0] instanceof JsonFields)) return JSON.stringify(items).slice(1, -1);
  return items
    .map((item) => {
      assert(item instanceof JsonFields, "all items of a list are JsonFields, or none");
      return `{${item.text}}`;
    })
    .join(",");
}

function nextPieces(nextPart: NextPart<unknown>, firstSeparator: string, end: string): Encoded["next"] {
  let separator = firstSeparator;
  let isEnded = false;
  return async () => {
    while (!isEnded) {
      const part = await nextPart();
      if (part === null) {
        isEnded = true;
        return end;
      }
      if (part.length === 0) continue; // its rows were deleted since the list was measured
      const piece = separator + encodeItems(part);
      separator = ",";
      return piece;
    }
    return null;
  };
}
