/** The envelope of a success, and whose answer it is when it is stored for a repeat (decisions.md, Envelope). */
import { type Exchange, NO_SNIFF } from "../http/exchange.ts";
import type { JsonAnswer } from "./endpoint.ts";

/**
 * Answers are as private as the key that asked for them, so they are kept apart by key, then by path: that of the
 * endpoint, for the request's URL holds the Host, which is the caller's word.
 */
export function scopeOf(path: string, keyId: string | undefined, idempotencyKey: string): string {
  return [keyId ?? "", path, idempotencyKey].join(" ");
}

/** A 200 with a JSON object. The request id is given at once: to add a header to a Response costs more than to make it. */
export function success({ requestId }: Exchange, body: string | ReadableStream): Response {
  const headers = { ...NO_SNIFF, "Content-Type": "application/json", "X-Request-Id": requestId };
  return new Response(body, { headers });
}

export function encodeSuccess(answer: JsonAnswer): string {
  return `{"success":true${rest(JSON.stringify(answer))}`;
}

/** What follows `{"success":true` when the answer's own fields come after it. */
function rest(json: string): string {
  return json === "{}" ? "}" : `,${json.slice(1)}`;
}
