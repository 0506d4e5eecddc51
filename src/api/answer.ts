/** The envelope of a success, and whose answer it is when it is stored for a repeat (decisions.md, Envelope). */
import type { Caller } from "./auth.ts";
import type { JsonAnswer } from "./endpoint.ts";

/**
 * Answers are as private as the key that asked for them, so they are kept apart by key; by variant, for each has words
 * of its own; and by path: that of the endpoint, for the request's URL holds the Host, which is the caller's word.
 */
export function scopeOf({ key, variant }: Caller, path: string, idempotencyKey: string): string {
  return [key?.keyId ?? "", variant.name, path, idempotencyKey].join(" ");
}

/** The JSON of a success. */
export function encodeSuccess(answer: JsonAnswer): string {
  return `{"success":true${rest(JSON.stringify(answer))}`;
}

/** What follows `{"success":true` when the answer's own fields come after it. */
function rest(json: string): string {
  return json === "{}" ? "}" : `,${json.slice(1)}`;
}
