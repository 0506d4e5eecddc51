/** The envelope of a success (decisions.md, Envelope). */
import type { JsonAnswer } from "./endpoint.ts";

/** The JSON of a success. */
export function encodeSuccess(answer: JsonAnswer): string {
  return `{"success":true${rest(JSON.stringify(answer))}`;
}

/** What follows `{"success":true` when the answer's own fields come after it. */
function rest(json: string): string {
  return json === "{}" ? "}" : `,${json.slice(1)}`;
}
