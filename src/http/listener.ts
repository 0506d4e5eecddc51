/**
 * One listening socket: routes a request, gives every answer a request id, turns a thrown error into a problem (RFC
 * 9457) and writes the access log. Must not know an endpoint.
 */
import type { BunRequest, DirectUnderlyingSource, Server } from "bun";
import { type BlockList, callerKey, canonicalIp, isListed } from "../lib/ip.ts";
import { Turns } from "../lib/event-loop.ts";
import { type Log, causeOf } from "../lib/log.ts";
import type { AccessLog } from "./access-log.ts";
import { clientAddress, clientIp } from "./client-address.ts";
import { CONNECTION_GUARD } from "./connection-guard.ts";
import {
  CODINGS,
  COMPRESSED_MIN_CHARS,
  type Coding,
  codingFor,
  compressStream,
  compressText,
} from "./compression.ts";
import { closeStalled } from "./connections.ts";
import type { CrossOrigin } from "./cross-origin.ts";
import {
  type Exchange,
  type Handler,
  type Method,
  type Route,
  UNCACHED,
  restoreIdleTimeout,
} from "./exchange.ts";
import { lingerOver } from "./lingering-close.ts";
import { Problem, notFoundIfDeleted } from "./problem.ts";
import type { RequestMetrics } from "./request-metrics.ts";

export type Address = {
  readonly host: string;
  readonly port: number;
  readonly tls: Tls | null;
};

export type Tls = { readonly cert: string; readonly key: string };

export type Listening = {
  readonly address: Address;
  readonly routes: readonly Route[];
  /** Null: a fault of the hub itself. */
  readonly problemOf: (error: unknown) => Problem | null;
  readonly newRequestId: () => string;
  readonly log: Log;
  readonly accessLog: AccessLog;
  readonly metrics: RequestMetrics;
  /** Their X-Forwarded-For is believed. */
  readonly trustedProxies: BlockList;
  readonly crossOrigin: CrossOrigin;
  /** How old what is read here is, in seconds; null: it is not a copy. */
  readonly lagSeconds: () => number | null;
};

/** Ports of the other ends from which requests came; null without TLS. */
type Requested = Set<number> | null;

export type Listener = {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  /** Open connections keep theirs. @throws like openListener() */
  renewTls(tls: Tls): void;
  /** Resolves when the last answer has been sent. `force` closes open connections. */
  stop(force: boolean): Promise<void>;
};

/**
 * Suites of TLS 1.2, all with forward secrecy (ECDHE) and authenticated encryption (AEAD). Older versions have no such
 * suites; TLS 1.3 has no others.
 */
const CIPHERS = ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"]
  .flatMap((suite) => [`ECDHE-ECDSA-${suite}`, `ECDHE-RSA-${suite}`])
  .join(":");

const VALID_REQUEST_ID = /^[\x21-\x7e]{1,128}$/; // visible characters (RFC 9110 5.5); our own limit on the length
const IDLE_SECONDS = 60;

/** @throws what Bun.serve throws: EADDRINUSE, EACCES, a bad certificate */
export async function openListener(listening: Listening): Promise<Listener> {
  const { host, port, tls } = listening.address;
  if (tls === null) return asListener(listening, port, null);
  // To renew a certificate, Bun 1.4.5 must open the port a second time, which needs SO_REUSEPORT: with it another hub
  // could open the port too, unnoticed. So first a probe without it.
  const probe = Bun.serve({ hostname: host, port, reusePort: false, fetch: () => new Response() });
  const free = probe.port ?? port;
  await probe.stop(true);
  return asListener(listening, free, tls);
}

function asListener(listening: Listening, wantedPort: number, tls: Tls | null): Listener {
  const { host } = listening.address;
  const requested: Requested = tls === null ? null : new Set();
  const opened = serve(listening, wantedPort, tls, requested);
  const port = opened.port ?? wantedPort;
  let certificate = tls;
  /** Null while the guard pauses it. */
  let current: Server<undefined> | null = opened;
  /** Servers that no longer listen, until their last connection ends. */
  const ending = new Set<Server<undefined>>();
  const end = (server: Server<undefined>): void => {
    ending.add(server);
    void server.stop(false).finally(() => ending.delete(server));
  };
  const unwatch = CONNECTION_GUARD.watch(
    {
      closeUnused(count, limit) {
        const stalled = closeStalled({ port, limit, busy: peersOfRunning, requested, count });
        return stalled < count ? stalled + (current?.closeIdleConnections() ?? 0) : stalled;
      },
      pause() {
        if (current !== null) end(current);
        current = null;
      },
      resume() {
        current ??= serve(listening, port, certificate, requested);
      },
    },
    listening.log,
  );
  return {
    host,
    port,
    tls: tls !== null,
    renewTls(renewed) {
      certificate = renewed;
      if (current === null) return; // when it resumes
      const before = current;
      current = serve(listening, port, renewed, requested); // first, so that the port is open all the time
      end(before);
    },
    async stop(force) {
      unwatch();
      const servers = current === null ? [...ending] : [current, ...ending];
      await Promise.all(servers.map((server) => server.stop(force)));
    },
  };
}

function serve(listening: Listening, port: number, tls: Tls | null, requested: Requested): Server<undefined> {
  const respond = (table: MethodTable, request: BunRequest, server: Server<undefined>): Promise<Response> => {
    requested?.add(server.requestIP(request)?.port ?? 0);
    return answer(listening, table, request, server);
  };
  const paths = byPath(listening.routes, listening.metrics);
  const noRoutes: MethodTable = { allow: "", routes: {}, counts: {} };
  return Bun.serve({
    hostname: listening.address.host,
    port,
    idleTimeout: IDLE_SECONDS,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER, // each route has a limit and an error of its own
    development: false,
    reusePort: tls !== null, // development: false turns it on, and two hubs would then share a port unnoticed
    ...(tls ? { tls: { ...tls, ciphers: CIPHERS } } : {}),
    routes: Object.fromEntries(
      [...paths].map(([path, table]) => [
        path,
        (request: BunRequest, server: Server<undefined>) => respond(table, request, server),
      ]),
    ),
    fetch: (request, server) =>
      // A BunRequest adds path parameters, and outside the routes there are none to read.
      respond(noRoutes, request as BunRequest, server),
    // For errors after a route has answered, when Bun opens the file of a response body.
    error: (error) => faultAnswer(listening, notFoundIfDeleted(error), listening.newRequestId()),
  });
}

type Counts = ReturnType<RequestMetrics["of"]>;

type MethodTable = {
  readonly allow: string;
  readonly routes: Partial<Record<string, Route>>;
  readonly counts: Partial<Record<string, Counts>>;
};

/** HEAD works wherever GET does. */
function byPath(routes: readonly Route[], metrics: RequestMetrics): Map<string, MethodTable> {
  const tables = new Map<string, Partial<Record<Method | "HEAD", Route>>>();
  for (const route of routes) {
    const table = tables.get(route.path) ?? {};
    table[route.method] = route;
    if (route.method === "GET") table.HEAD = route;
    tables.set(route.path, table);
  }
  return new Map(
    [...tables].map(([path, table]) => [
      path,
      {
        allow: Object.keys(table).toSorted().join(", "),
        routes: table,
        counts: Object.fromEntries(
          Object.entries(table).map(([method, route]) => [method, metrics.of(route)]),
        ),
      },
    ]),
  );
}

/**
 * A response that closes its connection gets a turn of its own. Bun 1.4.5 closes within the microtask that resolves the
 * handler's promise, and runs the next microtasks from there: some 2,500 such responses are so many native calls within
 * each other, exhaust the stack, and end the process (exit code 7).
 */
const CLOSING = new Turns(100);

/** The response to the last request is in a turn of its own already. */
let lastTicket = 0;

/** Requests without a response, of all listeners, and for a moment those of whose response Bun opens the file. */
const RUNNING = new Set<Exchange>();
const OPENING_MS = 1_000;

function peersOfRunning(): Set<number> {
  const ports = Array.from(RUNNING, ({ request, server }) => server.requestIP(request)?.port ?? 0);
  return new Set(ports);
}

/**
 * Bun begins all requests that have arrived on a connection in one tick of the event loop: pipelining thousands keeps
 * everybody else waiting. Looks at two requests of so many.
 */
const PIPELINE_MAX = 64;

/** The port of the connection that is looked at, until this tick ends. */
let sampledPort: number | null = null;

/** In the tick of the sampled request before it. */
function isPipelined(ticket: number, request: Request, server: Server<undefined>): boolean {
  if (ticket % PIPELINE_MAX === 0) {
    sampledPort = server.requestIP(request)?.port ?? null;
    setImmediate(() => (sampledPort = null));
    return false;
  }
  if (sampledPort === null || ticket % PIPELINE_MAX !== 1) return false;
  return server.requestIP(request)?.port === sampledPort;
}

async function answer(
  listening: Listening,
  table: MethodTable,
  request: BunRequest,
  server: Server<undefined>,
): Promise<Response> {
  const started = performance.now();
  const ticket = ++lastTicket;
  listening.metrics.begin();
  const given = request.headers.get("x-request-id");
  const requestId = given !== null && VALID_REQUEST_ID.test(given) ? given : listening.newRequestId();
  const { method } = request;
  const { accessLog, crossOrigin, metrics } = listening;
  const route = table.routes[method];
  const exchange: Exchange = { request, server, requestId };
  const mustClose = isPipelined(ticket, request, server);
  RUNNING.add(exchange);
  let response: Response;
  let isClosing = false;
  let isString = true;
  try {
    crossOrigin.checkHost(request);
    const answered = await handle(listening, table, exchange);
    response = toResponse(answered, request, requestId);
    isString = typeof answered === "string";
  } catch (error) {
    const isUnread = hasUnreadBody(request);
    if (isUnread) {
      const peer = peerOf(request, server);
      await lingerOver(request, clientAddress(peer, request.headers, listening.trustedProxies));
    }
    response = faultAnswer(listening, error, requestId);
    // Without it Bun would read the body to its end; the body of a CONNECT has no end.
    if (isUnread || method === "CONNECT") response.headers.set("Connection", "close");
    isClosing = response.headers.has("Connection");
  }
  restoreIdleTimeout(exchange, IDLE_SECONDS);
  if ((CONNECTION_GUARD.noteRequest() && isOfCrowd(listening, request, server)) || mustClose) {
    response.headers.set("Connection", "close");
    isClosing = true;
  }
  if (isClosing && ticket !== lastTicket) await CLOSING.next();
  crossOrigin.open(request, response);
  const lag = listening.lagSeconds();
  if (lag !== null) response.headers.set("LuxHub-Lag", lag.toFixed(3));
  metrics.end(table.counts[method] ?? metrics.unmatched, response.status, performance.now() - started);
  if (accessLog.wants(response.status)) {
    const from = clientIp(peerOf(request, server), request.headers, listening.trustedProxies);
    const target = targetOf(request, route);
    accessLog.write({ method, target, status: response.status, startedMs: started, requestId, from });
  }
  if (isString) RUNNING.delete(exchange);
  else setTimeout(() => RUNNING.delete(exchange), OPENING_MS).unref();
  return response;
}

/** Nobody has begun to read it. */
function hasUnreadBody({ bodyUsed, headers }: Request): boolean {
  if (bodyUsed) return false;
  return headers.has("transfer-encoding") || Number(headers.get("content-length")) > 0;
}

/** Those of a trusted proxy are of many callers. */
function isOfCrowd({ trustedProxies }: Listening, request: Request, server: Server<undefined>): boolean {
  const peer = server.requestIP(request);
  const address = peer && canonicalIp(peer.address);
  if (peer === null || address === null || isListed(address, trustedProxies)) return false;
  return CONNECTION_GUARD.mustClose(callerKey(address), peer.port);
}

/** "" when the connection is closed already. */
function peerOf(request: Request, server: Server<undefined>): string {
  return server.requestIP(request)?.address ?? "";
}

/** A CORS preflight has no route and is answered here. */
function handle({ crossOrigin }: Listening, table: MethodTable, exchange: Exchange): ReturnType<Handler> {
  const { request } = exchange;
  const route = table.routes[request.method];
  if (route) return route.handle(exchange);
  const preflight = crossOrigin.preflight(request, table.allow);
  if (preflight) return Promise.resolve(preflight);
  throw noSuchRoute(table, request.method);
}

/** A query parameter whose name contains one of these may be a secret. */
const SECRET_WORD = /secret|key|token|ticket|passw/i;

/**
 * For the access log. Never the host: the client can send any. Of a POST only the path: reading `request.url` makes Bun
 * build the whole URL.
 */
function targetOf(request: Request, route: Route | undefined): string {
  if (route?.method === "POST" && !route.path.includes(":")) return route.path;
  const { url } = request;
  const path = url.startsWith("/") ? url : url.slice(url.indexOf("/", url.indexOf("//") + 2));
  const query = path.indexOf("?") + 1;
  return query === 0 ? path : path.slice(0, query) + redactSecrets(path.slice(query));
}

/**
 * Secrets go in headers, but a client that cannot set one may try the query. Linear time on any query: anybody can send
 * one.
 */
function redactSecrets(query: string): string {
  const parameters = query.split("&").map((parameter) => {
    const word = parameter.search(SECRET_WORD);
    const equals = word === -1 ? -1 : parameter.indexOf("=", word);
    return equals === -1 ? parameter : `${parameter.slice(0, equals)}=*`;
  });
  return parameters.join("&");
}

/** A Response copies them; copying a Headers object is cheaper than parsing a record. */
const JSON_HEADERS = new Headers({ ...UNCACHED, "Content-Type": "application/json" });

/** Adding a header to a finished Response costs more than making one. */
function toResponse(
  answer: Awaited<ReturnType<Handler>>,
  { method, headers }: Request,
  requestId: string,
): Response {
  if (answer instanceof Response) {
    answer.headers.set("X-Request-Id", requestId);
    return answer;
  }
  JSON_HEADERS.set("X-Request-Id", requestId);
  // Of reads alone: the secrets that the hub makes are in answers to POST, and what workers do costs nothing more.
  if (method === "GET" && (typeof answer !== "string" || answer.length >= COMPRESSED_MIN_CHARS)) {
    const coding = codingFor(headers.get("accept-encoding"), CODINGS);
    if (coding !== null) return compressed(answer, coding);
  }
  // HEAD gets the length of a text, but not that of a stream.
  const body = typeof answer === "string" && method !== "HEAD" ? sentWithHeader(answer) : answer;
  return new Response(body, { headers: JSON_HEADERS });
}

function compressed(body: string | ReadableStream<Uint8Array>, coding: Coding): Response {
  const headers = new Headers(JSON_HEADERS);
  headers.set("Content-Encoding", coding);
  const coded = typeof body === "string" ? compressText(body, coding) : compressStream(body, coding);
  return new Response(coded, { headers });
}

/** Such a body fits, with its header, into Bun's send buffer of 16 KiB. */
const BUFFERED_BYTES = 15_000;

/**
 * When the handler is asynchronous, Bun 1.4.5 sends the header of a longer text in some 30 system calls of a few bytes:
 * 20 KB take 206 us instead of 38. A direct stream that ends below its highWaterMark is sent as a whole, with a
 * Content-Length.
 */
function sentWithHeader(text: string): string | ReadableStream {
  const isShort = text.length * 3 <= BUFFERED_BYTES; // a character has at most three bytes
  const bytes = isShort ? 0 : Buffer.byteLength(text);
  if (bytes <= BUFFERED_BYTES) return text;
  const source: DirectUnderlyingSource = {
    type: "direct",
    pull(sink) {
      sink.write(text);
      void sink.end();
    },
  };
  return new ReadableStream(source, { highWaterMark: bytes + 1 });
}

function noSuchRoute(table: MethodTable, method: string): Problem {
  if (table.allow === "") {
    return new Problem(
      404,
      "not_found",
      "Not found",
      "There is no such path. The paths of the API begin with /api/v1; the page /docs/api-reference lists them.",
    );
  }
  const detail = `This path does not support ${method}. Use ${table.allow}.`;
  return new Problem(405, "method_not_allowed", "Method not allowed", detail, {
    headers: { Allow: table.allow },
  });
}

function faultAnswer(listening: Listening, error: unknown, requestId: string): Response {
  let problem = error instanceof Problem ? error : listening.problemOf(error);
  const isLogged = !problem || (problem !== error && problem.status === 500);
  if (isLogged) listening.log.error("request failed", { request_id: requestId, cause: causeOf(error) });
  if (!problem) {
    const detail = `The hub failed to process this request. Try again; if it fails again, give the operator the request id ${requestId}.`;
    problem = new Problem(500, "internal_error", "Internal server error", detail);
  }
  const headers = {
    ...UNCACHED,
    "Content-Type": "application/problem+json",
    "X-Request-Id": requestId,
    ...problem.extras.headers,
  };
  return new Response(JSON.stringify(problem), { status: problem.status, headers });
}
