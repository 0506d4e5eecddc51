/** The envelope of a success, and whose answer it is when it is stored for a repeat (decisions.md, Envelope). */
import type { Exchange } from "../http/exchange.ts";
import type { JsonAnswer } from "./endpoint.ts";

const JSON_HEADERS = { "Content-Type": "application/json" };

/** Answers are as private as the key that asked for them, so they are kept apart by key, then by path. */
export function scopeOf(exchange: Exchange, keyId: string | undefined, idempotencyKey: string): string {
  const { pathname } = new URL(exchange.request.url);
  return [keyId ?? "", pathname, idempotencyKey].join(" ");
}

/** A 200 with a JSON object. */
export function success(body: string): Response {
  return new Response(body, { headers: JSON_HEADERS });
}

export function encodeSuccess(answer: JsonAnswer): string {
  return JSON.stringify({ success: true, ...answer });
}
