/**
 * The two bindings of A2A: JSON-RPC (section 9 of its specification) and HTTP+JSON (section 11). Both read a call, run the
 * same operation, and answer in their own form. Loaded at the first call.
 */
import { keyLost } from "../api/error-table.ts";
import { JSON_BODY_LIMITS } from "../api/input.ts";
import { NO_SNIFF, pathParameter, queryOf } from "../http/exchange.ts";
import { type JsonObject, readJsonObject } from "../http/json-body.ts";
import { Problem } from "../http/problem.ts";
import { isRawNumber, parseExact, withRoundedNumbers } from "../lib/exact-json.ts";
import { PROTOCOL_VERSION, answerCard } from "./card.ts";
import type { Session } from "./session.ts";
import { Fault, faultOf, httpErrorOf, rpcErrorOf } from "./fault.ts";
import { OPERATIONS, type OperationName } from "./operations.ts";
import { withJsonNames } from "./requests.ts";

export { answerCard };

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const METHOD_NOT_FOUND = -32_601;

const JSON_TYPE = "application/json";
const A2A_TYPE = "application/a2a+json";

/** Ignores the patch version. A client that names no version speaks 0.3 (3.6.2). @throws {Fault} */
function checkVersion(request: Request): void {
  const version = request.headers.get("a2a-version") || queryOf(request)["A2A-Version"] || "0.3";
  if (/^\d+\.\d+/.exec(version.trim())?.[0] === PROTOCOL_VERSION) return;
  const what = `A2A ${version.slice(0, 20)} is not spoken here: send the header A2A-Version: ${PROTOCOL_VERSION}.`;
  throw new Fault("VersionNotSupportedError", what);
}

// ---- JSON-RPC

export async function answerRpc(session: Session): Promise<Response> {
  let id: unknown = null;
  const respond = (body: JsonObject, status = 200): Response =>
    answerWith(session, JSON_TYPE, status, { jsonrpc: "2.0", id, ...body });
  try {
    const message = await readBody(session);
    const { jsonrpc, method, params = {} } = message;
    const given = idOf(message);
    if (jsonrpc !== "2.0" || typeof method !== "string" || given === undefined)
      return respond({ error: { code: INVALID_REQUEST, message: "Invalid request" } });
    id = given;
    checkVersion(session.call.exchange.request);
    if (!isOperation(method))
      return respond({ error: { code: METHOD_NOT_FOUND, message: `There is no method ${method}.` } });
    if (!isObject(params)) throw new Fault("RequestMalformedError", "params must be an object.");
    const wrap = (result: unknown) => ({ jsonrpc: "2.0", id, result });
    const result = await OPERATIONS[method](session, withJsonNames(params), wrap);
    return result instanceof Response ? result : respond({ result });
  } catch (error) {
    if (error instanceof NotJson)
      return respond({ error: { code: PARSE_ERROR, message: error.message } }, 400);
    const fault = faultOf(error);
    if (!fault) throw error;
    return respond({ error: rpcErrorOf(fault) });
  }
}

const isOperation = (method: unknown): method is OperationName =>
  typeof method === "string" && Object.hasOwn(OPERATIONS, method);

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The id of a call, with all its digits: null if there is none; undefined if it is invalid. */
function idOf({ id = null }: JsonObject): unknown {
  const isInteger = Number.isInteger(id) || (isRawNumber(id) && /^-?\d+$/.test(JSON.stringify(id)));
  return id === null || typeof id === "string" || isInteger ? id : undefined;
}

// ---- HTTP+JSON

export async function answerHttp(session: Session, named: OperationName): Promise<Response> {
  try {
    const { request } = session.call.exchange;
    const isBody = request.method === "POST";
    const body = isBody
      ? withJsonNames(withRoundedNumbers(await readBody(session, {})))
      : numbersOf(withJsonNames(queryOf(request)));
    checkVersion(request);
    const { operation, params } = target(session, named);
    const result = await OPERATIONS[operation](session, { ...body, ...params }, (response) => response);
    return result instanceof Response ? result : answerWith(session, A2A_TYPE, 200, result);
  } catch (error) {
    const fault =
      error instanceof NotJson ? new Fault("RequestMalformedError", error.message) : faultOf(error);
    if (!fault) throw error;
    const { status, body } = httpErrorOf(fault);
    return answerWith(session, A2A_TYPE, status, body);
  }
}

/** Finds the operation that the path names: `/tasks/<id>` is a task, `/tasks/<id>:cancel` an operation on it. */
function target({ call }: Session, named: OperationName): { operation: OperationName; params: JsonObject } {
  const path = pathParameter(call.exchange, "task_id");
  const [, taskId = path, verb = ""] = /^(.*):(cancel|subscribe)$/.exec(path) ?? [];
  if (named !== "GetTask" && named !== "CancelTask")
    return { operation: named, params: { ...(path === "" ? {} : { taskId: path }), ...configOf(call) } };
  const params = { id: taskId };
  if (verb === "subscribe") return { operation: "SubscribeToTask", params };
  if ((verb === "cancel") === (named === "CancelTask")) return { operation: named, params };
  const detail =
    "A POST here is /tasks/<id>:cancel or /tasks/<id>:subscribe, and a GET /tasks/<id> or /tasks/<id>:subscribe.";
  throw new Problem(404, "not_found", "Not found", detail);
}

function configOf({ exchange }: Session["call"]): JsonObject {
  const id = pathParameter(exchange, "config_id");
  return id === "" ? {} : { id };
}

function numbersOf(query: JsonObject): JsonObject {
  const typed = (name: string, value: unknown): unknown => {
    if (name === "includeArtifacts") return value === "true" ? true : value === "false" ? false : value;
    if (name !== "pageSize" && name !== "historyLength") return value;
    return /^-?\d{1,15}$/.test(String(value)) ? Number(value) : value;
  };
  return Object.fromEntries(
    Object.entries(query)
      .filter(([, value]) => value !== "")
      .map(([name, value]) => [name, typed(name, value)]),
  );
}

// ---- Both

class NotJson extends Error {
  override readonly name = "NotJson";
}

/** The body, with its numbers as parseExact() has them. */
async function readBody({ call }: Session, emptyAs?: JsonObject): Promise<JsonObject> {
  const { request } = call.exchange;
  try {
    const body = await readJsonObject(request, JSON_BODY_LIMITS, call.bodyRoom, emptyAs, parseExact);
    if (call.key && !call.services.keys.isInForce(call.key)) throw keyLost(); // a body may arrive slowly
    return body;
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 400) throw error;
    throw new NotJson(error.message);
  }
}

function answerWith({ call }: Session, type: string, status: number, value: unknown): Response {
  const body = call.backpressure.ofWrite(call, JSON.stringify(value));
  const headers = { ...NO_SNIFF, "Cache-Control": "no-store", "Content-Type": type };
  return new Response(body, { status, headers });
}
