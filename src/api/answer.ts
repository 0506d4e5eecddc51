/** The envelope of a success, and the JSON of answers with a list that is loaded in parts. */
import { type NextPart, Rows } from "../service/list-pages.ts";
import type { JsonAnswer } from "./endpoint.ts";
import type { Encoded } from "./response-backpressure.ts";

/** The JSON of a success. */
export function encodeSuccess(answer: JsonAnswer): string {
  return `{"success":true${rest(JSON.stringify(answer))}`;
}

/** What follows `{"success":true` when the answer's own fields come after it. */
function rest(json: string): string {
  return json === "{}" ? "}" : `,${json.slice(1)}`;
}

/** The JSON of a success, whose list may be loaded in parts. */
export function encodeInPieces(answer: JsonAnswer): Encoded {
  const whole = encodeSuccess(answer); // with the first part of the list
  for (const [name, rows] of Object.entries(answer)) {
    if (!(rows instanceof Rows) || rows.next === null) continue;
    const field = `"${name}":[]`; // found once: within a text its quotes would be escaped
    const empty = encodeSuccess({ ...answer, [name]: [] });
    const end = empty.slice(empty.indexOf(field) + field.length - 1);
    const first = whole.slice(0, -end.length);
    return { first, next: nextPieces(rows.next, rows.first.length > 0 ? "," : "", end) };
  }
  return { first: whole, next: null };
}

/** The other parts of a list, then what follows the list. */
function nextPieces(nextPart: NextPart<unknown>, before: string, end: string): Encoded["next"] {
  let separator = before;
  let isEnded = false;
  return async () => {
    for (let part; !isEnded;) {
      part = await nextPart();
      if (part === null) {
        isEnded = true;
        return end;
      }
      if (part.length === 0) continue; // its rows were deleted since the list was measured
      const piece = separator + JSON.stringify(part).slice(1, -1);
      separator = ",";
      return piece;
    }
    return null;
  };
}
