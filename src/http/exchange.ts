/** One request on its way through the hub, and the routes it can take. The kit knows no task. */
import type { BunRequest, Server } from "bun";

export type Method = "GET" | "POST" | "DELETE";

export type Exchange = {
  readonly request: BunRequest;
  readonly server: Server<undefined>;
  /** The caller's own if it was sane, else made here; every answer and every log line carries it. */
  readonly requestId: string;
};

/** Answers a request; a string or a stream is the JSON of a success, for which the listener makes the Response. */
export type Handler = (exchange: Exchange) => Promise<Response | string | ReadableStream<Uint8Array>>;

/** An endpoint as the listener sees it. Throws Problem (or whatever `Listening.problemOf` knows) for what goes wrong. */
export type Route = {
  readonly method: Method;
  /** As `/api/v1/node/:node_id`; a literal path wins over a parameter. */
  readonly path: string;
  readonly handle: Handler;
};

/** What every answer says to a browser: its type is what it is said to be, and nothing to be guessed at. */
export const NO_SNIFF = { "X-Content-Type-Options": "nosniff" } as const;

/** What every JSON answer says: nobody stores it, because the secret decides what is answered, and in which variant. */
export const UNCACHED = { ...NO_SNIFF, "Cache-Control": "no-store", Vary: "X-Matrix-Secret" } as const;

/** A request that waits or streams: the connection may be silent for as long as it takes. */
export function allowSilence({ server, request }: Exchange): void {
  server.timeout(request, 0);
}

/** The query's parameters, the last of those with the same name; without making a URL of the caller's Host. */
export function queryOf(request: Request): Record<string, string> {
  const at = request.url.indexOf("?");
  return at === -1 ? {} : Object.fromEntries(new URLSearchParams(request.url.slice(at + 1)));
}

/** The value of a path parameter, decoded. */
export function pathParameter({ request }: Exchange, name: string): string {
  const params: Readonly<Record<string, string | undefined>> = request.params;
  return params[name] ?? "";
}
