/** The envelope of a success, and whose answer it is when it is stored for a repeat (decisions.md, Envelope). */
import type { JsonAnswer } from "./endpoint.ts";

/**
 * Answers are as private as the key that asked for them, so they are kept apart by key, then by path: that of the
 * endpoint, for the request's URL holds the Host, which is the caller's word.
 */
export function scopeOf(path: string, keyId: string | undefined, idempotencyKey: string): string {
  return [keyId ?? "", path, idempotencyKey].join(" ");
}

/** The JSON of a success. */
export function encodeSuccess(answer: JsonAnswer): string {
  return `{"success":true${rest(JSON.stringify(answer))}`;
}

/** What follows `{"success":true` when the answer's own fields come after it. */
function rest(json: string): string {
  return json === "{}" ? "}" : `,${json.slice(1)}`;
}
