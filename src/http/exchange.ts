/** The types that the HTTP layer and the endpoints share. */
import type { BunRequest, Server } from "bun";
import { CONNECTION_GUARD } from "./connection-guard.ts";

export type Method = "GET" | "POST" | "DELETE";

export type Exchange = {
  readonly request: BunRequest;
  readonly server: Server<undefined>;
  /** The client's X-Request-Id if it is valid, else a new one. */
  readonly requestId: string;
  /** The connection has no idle timeout; the listener sets it again before the response. */
  isUntimed?: true;
};

/** A string or a stream is the JSON of a success; the listener wraps it in a Response. */
export type Handler = (exchange: Exchange) => Promise<Response | string | ReadableStream<Uint8Array>>;

/** `handle` throws a Problem, or an error that `Listening.problemOf` knows. */
export type Route = {
  readonly method: Method;
  /** `/api/v1/node/:node_id`; a literal path takes precedence over a parameter. */
  readonly path: string;
  readonly handle: Handler;
};

export const NO_SNIFF = { "X-Content-Type-Options": "nosniff" } as const;

/** The secret decides the content and the variant. */
export const UNCACHED = {
  ...NO_SNIFF,
  "Cache-Control": "no-store",
  Vary: "X-Matrix-Secret, Authorization, Accept-Encoding",
} as const;

/**
 * For a long poll, until the response. @throws {Problem} 503 when too few file descriptors are free for connections that
 * last
 */
export function disableIdleTimeout(exchange: Exchange): void {
  CONNECTION_GUARD.admitLongCall();
  exchange.isUntimed = true;
  exchange.server.timeout(exchange.request, 0);
}

/** Before the response: the connection would stay open for ever after it. */
export function restoreIdleTimeout({ isUntimed, server, request }: Exchange, seconds: number): void {
  if (isUntimed) server.timeout(request, seconds);
}

/** Whether the listener speaks TLS; a proxy in front of it may speak it in its place. */
export function isTls({ server }: Exchange): boolean {
  return server.protocol === "https";
}

/** Of several with one name, the last. Never parses the whole URL: its host is untrusted. */
export function queryOf(request: Request): Record<string, string> {
  const queryStart = request.url.indexOf("?");
  return queryStart === -1 ? {} : Object.fromEntries(new URLSearchParams(request.url.slice(queryStart + 1)));
}

/** Decoded; "" if the path has none of this name. */
export function pathParameter({ request }: Exchange, name: string): string {
  const params: Readonly<Record<string, string | undefined>> = request.params;
  return params[name] ?? "";
}
