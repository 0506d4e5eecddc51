/**
 * The endpoint /mcp: the Model Context Protocol over streamable HTTP, in its revisions 2026-07-28 (stateless) and
 * 2025-11-25 (docs/mcp.md). It authenticates the caller, reads the body and sends the answer, as the pipeline does for
 * the other endpoints. The protocol and its packages are loaded at the first call, so that an idle hub does not hold
 * them.
 */
import { type Call, type Endpoint, rawEndpoint } from "../api/endpoint.ts";
import { keyLost } from "../api/error-table.ts";
import { JSON_BODY_LIMITS } from "../api/input.ts";
import type { Body } from "../api/response-backpressure.ts";
import type { CrossOrigin } from "../http/cross-origin.ts";
import { NO_SNIFF } from "../http/exchange.ts";
import { type JsonObject, readJsonObject } from "../http/json-body.ts";
import { Problem } from "../http/problem.ts";
import { parsePlain } from "../lib/exact-json.ts";
import { inMcp } from "../variant/mcp.ts";
import { type Serve, Session, type Shared } from "./session.ts";
import { isRecord, recordOf } from "./shapes.ts";

/** Loads the protocol. Tests replace it, to run the same endpoint with other tools. */
export type LoadServer = () => Promise<{ readonly serve: Serve }>;

export type McpParts = Pick<Shared, "publicUrl"> & {
  readonly crossOrigin: CrossOrigin;
  readonly loadServer?: LoadServer | undefined;
};

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;
/** The protocol's package calls parameters of the wrong type an internal error, and lists what is wrong with them. */
const WRONG_PARAMETERS =
  /^((?:event: message\n)?(?:data: )?\{"jsonrpc":"2\.0","id":(?:\d+|"[^"]*"),"error":\{"code":)-32603(,"message":"\[\\n)/;

/** Some clients end the URL that they are given with a slash. */
const PATHS = ["/mcp", "/mcp/"] as const;

export function mcpEndpoints({
  publicUrl,
  crossOrigin,
  loadServer = ownServer,
}: McpParts): readonly Endpoint[] {
  const shared: Shared = { publicUrl };
  const endpointAt = (path: string): Endpoint =>
    rawEndpoint({
      method: "POST",
      path,
      auth: "secret",
      summary: "The Model Context Protocol, for AI agents",
      rejections: [],
      handle: async (call) => {
        crossOrigin.checkOrigin(call.exchange.request);
        call.services.copies.checkWrites(); // each call is a heartbeat, and the bridge goes on at the other hub
        return answer(call, shared, loadServer);
      },
    });
  return PATHS.map(endpointAt);
}

const ownServer: LoadServer = () => import("./server.ts");

async function answer(call: Call, shared: Shared, loadServer: LoadServer): Promise<Response | Body> {
  const { request } = call.exchange;
  const hungUp = new AbortController();
  const callInMcp = { ...call, variant: inMcp(call.variant), repeatable: true };
  const session = new Session(callInMcp, shared, hungUp.signal);
  const sent = await readMessage(request, session);
  if (sent instanceof Response) return sent;
  if (call.key && !call.services.keys.isInForce(call.key)) throw keyLost(); // a body may arrive slowly
  const message = withoutNulls(sent);
  const inexact = [message["id"], progressTokenOf(message)].some(isInexact);
  if (inexact) return rpcError(400, INVALID_REQUEST, INEXACT_ID, null);
  // A stream of changes to lists that never change: it would only hold a connection.
  if (message["method"] === "subscriptions/listen")
    return rpcError(404, METHOD_NOT_FOUND, "Method not found", message["id"]);
  const { serve } = await loadServer();
  const response = await serve(acceptingBoth(request), message, session);
  const headers = new Headers(response.headers);
  headers.set("Cache-Control", "no-store");
  for (const [name, value] of Object.entries(NO_SNIFF)) headers.set(name, value);
  const readsStream = accepts(request, EVENT_STREAM);
  const wantsProgress = progressTokenOf(message) !== undefined;
  if (response.body !== null && readsStream && wantsProgress && isEventStream(response)) {
    const body = call.backpressure.ofStream(call, response.body, () => hungUp.abort());
    return new Response(body, { status: response.status, headers });
  }
  // Whole, and not as a stream: what a slow reader leaves unread is bounded with the answers of the other endpoints.
  let text = await response.text();
  if (isEventStream(response) && !readsStream) {
    headers.set("Content-Type", JSON_TYPE);
    text = text.slice(text.lastIndexOf("\ndata: ") + "\ndata: ".length).trimEnd(); // the response is the last event
  }
  text = text.replace(WRONG_PARAMETERS, `$1${INVALID_PARAMS}$2`);
  const body = text === "" ? null : call.backpressure.ofWrite(call, text);
  return new Response(body, { status: response.status, headers });
}

const JSON_TYPE = "application/json";
const EVENT_STREAM = "text/event-stream";

/** Whether the client reads a type. Without Accept it reads all. */
function accepts(request: Request, type: string): boolean {
  const accept = (request.headers.get("accept") ?? "*/*").toLowerCase();
  return accept.includes("*/*") || accept.includes(type);
}

/** The protocol wants both types by name, and some clients name one. */
function acceptingBoth(request: Request): Request {
  if (!accepts(request, JSON_TYPE) && !accepts(request, EVENT_STREAM)) return request;
  const headers = new Headers(request.headers);
  headers.set("Accept", `${JSON_TYPE}, ${EVENT_STREAM}`);
  return new Request(request.url, { method: request.method, headers, signal: request.signal });
}

/** Some clients send null for what they leave out: the parameters, one of them, or a field of `_meta`. */
function withoutNulls({ params, ...message }: JsonObject): JsonObject {
  if (params === undefined || params === null) return message;
  if (!isRecord(params)) return { ...message, params }; // the protocol refuses it
  const { _meta: meta, ...given } = present(params);
  return { ...message, params: isRecord(meta) ? { ...given, _meta: present(meta) } : present(params) };
}

const present = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

function progressTokenOf({ params }: JsonObject): unknown {
  return recordOf(recordOf(params)["_meta"])["progressToken"];
}

const INEXACT_ID = `id and progressToken must be integers from -${Number.MAX_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}, or strings`;

/** A number that JSON.parse may have rounded: the client would not know it in the response. */
function isInexact(id: unknown): boolean {
  return typeof id === "number" && !Number.isSafeInteger(id);
}

function isEventStream({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("text/event-stream") === true;
}

async function readMessage(request: Request, session: Session): Promise<JsonObject | Response> {
  let code = PARSE_ERROR;
  const parse = (text: string): unknown => {
    const value = parsePlain((session.text = text));
    code = INVALID_REQUEST; // a list of messages, for example
    return value;
  };
  try {
    return await readJsonObject(request, JSON_BODY_LIMITS, session.call.bodyRoom, undefined, parse);
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 400 || !request.bodyUsed) throw error;
    return rpcError(400, code, error.message, null);
  }
}

function rpcError(status: number, code: number, message: string, id: unknown): Response {
  const headers = { "Cache-Control": "no-store", ...NO_SNIFF };
  const known = typeof id === "string" || typeof id === "number" ? id : null; // anything else is no id
  return Response.json({ jsonrpc: "2.0", id: known, error: { code, message } }, { status, headers });
}
