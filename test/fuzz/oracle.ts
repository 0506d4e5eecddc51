/**
 * The test oracle: checks an answer against the request and the declaration of its endpoint. Returns a sentence that
 * names the fault, or null.
 *
 * Where the declaration determines the answer (the secret, the schema), only that answer is correct; where the hub's
 * state does, every answer that the endpoint declares.
 */
import { Rejection, reject, REJECTION_CODES } from "../../src/domain/decision.ts";
import { JSON_BODY_MAX_BYTES, JSON_DEPTH_MAX, JSON_VALUES_MAX } from "../../src/domain/limits.ts";
import { problemOf } from "../../src/api/error-table.ts";
import { withoutAbsent } from "../../src/api/input.ts";
import type { VariantName } from "../../src/domain/model.ts";
import { hasMoreValues, isNestedDeeper } from "../../src/http/json-body.ts";
import { answerFault } from "../support/answers.ts";
import { TARGETS, type Target } from "./requests.ts";
import { type Sent, objectOf } from "./sent.ts";
import type { WireAnswer } from "./wire.ts";

/** The status of every code that these requests may get; 5xx are always faults. */
const STATUS: ReadonlyMap<string, number> = new Map([
  ...REJECTION_CODES.map((code) => [code, problemOf(new Rejection(reject(code, "")))?.status ?? 0] as const),
  ["invalid_request", 400],
  ["unauthorized", 401],
  ["admin_key_required", 403],
  ["key_bound_to_other_node", 403],
  ["not_found", 404],
  ["method_not_allowed", 405],
  ["body_too_large", 413],
  ["unsupported_media_type", 415],
  ["range_not_satisfiable", 416],
  ["idempotency_key_reused", 422],
  ["too_many_wrong_secrets", 429],
]);

const SANE_REQUEST_ID = /^[\x21-\x7e]{1,128}$/;
const SANE_IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/** "ok" or the code of a problem. */
type Outcome = string;

export function faultOf(sent: Sent, answer: WireAnswer): string | null {
  const given = sent.headers.get("x-request-id") ?? "";
  const requestId = answer.headers.get("x-request-id");
  if (!requestId) return "no X-Request-Id";
  if (SANE_REQUEST_ID.test(given) && requestId !== given) return `X-Request-Id is ${requestId}, not ${given}`;
  const expected = expectedOf(sent);
  if (sent.request.method === "HEAD") {
    const statuses = [...expected].map((code) => STATUS.get(code) ?? 200);
    const fits = statuses.includes(answer.status) || (expected.has("ok") && answer.status < 400);
    return fits ? null : `HEAD has ${answer.status}`;
  }
  if (answer.status < 400) {
    if (!expected.has("ok")) return `succeeded, where ${[...expected].join(", ")} is right`;
    return successFault(targetOf(sent), answer, variantOf(sent));
  }
  const body = objectOf(answer.body.toString());
  const code = String(body?.["error"]);
  if (!body || STATUS.get(code) !== answer.status)
    return `no problem of the hub: ${answer.body.subarray(0, 300)}`;
  if (!expected.has(code)) return `${code}, where ${[...expected].join(", ")} is right`;
  return problemFault(answer, body);
}

export function wasRefused({ status }: WireAnswer): boolean {
  return status >= 400;
}

function problemFault(answer: WireAnswer, body: Readonly<Record<string, unknown>>): string | null {
  if (answer.headers.get("content-type") !== "application/problem+json")
    return "a problem of another content type";
  if (body["success"] !== false || body["status"] !== answer.status)
    return "a problem without success: false or its status";
  for (const name of ["type", "title", "detail"]) {
    if (typeof body[name] !== "string" || body[name] === "") return `a problem without ${name}`;
  }
  const { errors } = body;
  if ((answer.status === 400) !== Array.isArray(errors))
    return "a 400 without errors, or errors without a 400";
  for (const error of Array.isArray(errors) ? errors : []) {
    if (typeof error?.path !== "string" || !/\w/.test(String(error?.message)))
      return "an error without path or message";
  }
  if (answer.status === 401 && !answer.headers.has("www-authenticate")) return "401 without WWW-Authenticate";
  if (answer.status === 405 && !answer.headers.has("allow")) return "405 without Allow";
  if (answer.status === 429 && !answer.headers.has("retry-after")) return "429 without Retry-After";
  return null;
}

function successFault(target: Target | undefined, answer: WireAnswer, variant: VariantName): string | null {
  if (!target) return "a success of no endpoint";
  if (target.kind === "raw" && target.method === "GET") return null; // bytes, or an endless stream
  const body = objectOf(answer.body.toString());
  if (answer.status !== 200 || body?.["success"] !== true)
    return `a success that does not say so: ${answer.status}`;
  const path = target.path.replaceAll(/:\w+/g, "x");
  return answerFault(variant, target.method, path, answer.status, body);
}

function expectedOf(sent: Sent): ReadonlySet<Outcome> {
  const { request, path } = sent;
  if (targetsAt(path).length === 0) return new Set(["not_found"]);
  const target = targetOf(sent);
  if (!target) return new Set(["method_not_allowed"]);
  const barred = barredBy(sent, target);
  if (barred) return barred;
  const bad = target.kind === "json" ? badInput(sent, target) : rawOutcomes(sent, target);
  if (bad) return bad;
  const outcomes = new Set<Outcome>(["ok", ...target.rejections]);
  if (target.path === "/api/v1/join") outcomes.add("too_many_wrong_secrets"); // a wrong token counts as one
  if (request.secret === "bound") outcomes.add("key_bound_to_other_node");
  if (target.method === "POST" && sent.headers.has("idempotency-key")) outcomes.add("idempotency_key_reused");
  if (CHECKED_FURTHER.has(target.path)) outcomes.add("invalid_request");
  if (target.path === "/api/v1/task/answer-by-token") outcomes.add("unauthorized"); // by its token
  return outcomes;
}

/**
 * These can refuse what their declared schema takes: batch-assign validates the items of its list after it, create and
 * update look at the clock, create at the tasks there are, key/add and the presigned URLs for an Idempotency-Key,
 * key/add at the clock, schedule/put whether its fields go together, webhook/put whether its URL may be called,
 * the lists whether their fields go together, and of task/<id> a query can be invalid beside a path that is any text.
 */
const CHECKED_FURTHER: ReadonlySet<string> = new Set([
  "/api/v1/limit/hold", // a key of a node holds for 10 minutes at most
  "/api/v1/task/release",
  "/api/v1/task/fail",
  "/api/v1/task/batch-assign",
  "/api/v1/task/create",
  "/api/v1/task/update",
  "/api/v1/schedule/put",
  "/api/v1/key/add",
  "/api/v1/invitation/create",
  "/api/v1/join",
  "/api/v1/webhook/put",
  "/api/v1/task/list",
  "/api/v1/stats/minutes",
  "/api/v1/events",
  "/api/v1/task/count",
  "/api/v1/file/list",
  "/api/v1/file/download-url",
  "/api/v1/file/upload-url",
  "/api/v1/node/list",
  "/api/v1/usage",
  "/api/v1/budget/set",
  "/api/v1/budget/delete",
  "/api/v1/hub/pause",
  "/api/v1/hub/resume",
  "/api/v1/limit/set",
  "/api/v1/task/:task_id",
  "/api/v1/task/:task_id/inputs",
  "/api/v1/task/:task_id/graph",
  "/api/v1/task/:task_id/output",
  "/api/v1/task/:task_id/questions",
  "/api/v1/group/:group",
]);

/** The endpoint that answers. It is not request.target when a path parameter makes the path that of another endpoint. */
function targetOf({ path, request }: Sent): Target | undefined {
  const method = request.method === "HEAD" ? "GET" : request.method;
  return targetsAt(path).find((target) => target.method === method);
}

function targetsAt(path: string): readonly Target[] {
  const literal = TARGETS.filter((target) => target.path === path);
  if (literal.length > 0) return literal;
  return TARGETS.filter((target) => {
    const [before = "", parameter, after = ""] = target.path.split(/:(\w+)/);
    if (parameter === undefined || !path.startsWith(before) || !path.endsWith(after)) return false;
    return /^[^/]+$/.test(path.slice(before.length, path.length - after.length));
  });
}

/** The variant that answers: the pinned key is pinned to B. */
function variantOf({ request }: Pick<Sent, "request">): VariantName {
  return request.secret === "pinned" ? "B" : request.variant;
}

function barredBy({ request }: Sent, { auth }: Target): ReadonlySet<Outcome> | null {
  if (auth === "open" || (auth === "public" && variantOf({ request }) === "A")) return null;
  if (request.secret === "missing") return new Set(["unauthorized"]);
  if (request.secret === "wrong") return new Set(["unauthorized", "too_many_wrong_secrets"]);
  if (auth === "admin" && request.adminKey !== "right") return new Set(["admin_key_required"]);
  return null;
}

/** The refusals of an invalid request; null for a valid one. */
function badInput(sent: Sent, target: Target): ReadonlySet<Outcome> | null {
  const bad = new Set<Outcome>(["invalid_request"]);
  if (target.method !== "POST") {
    // A path parameter may be any text: only a query can be invalid.
    if (target.path.includes(":")) return null;
    const query = Object.fromEntries(new URLSearchParams(sent.query));
    return target.input?.safeParse(withoutAbsent(query, "")).success ? null : bad;
  }
  const type = sent.headers.get("content-type") ?? "";
  if (type.startsWith("multipart/")) return new Set(["unsupported_media_type"]);
  if ((sent.body?.length ?? 0) > JSON_BODY_MAX_BYTES) return new Set(["body_too_large"]);
  if (sent.body && hasMoreValues(sent.body, JSON_VALUES_MAX)) return bad;
  const body = bodyOf(sent, target);
  const present = body && withoutAbsent(body, null, target.clearable);
  if (!present || !target.input?.safeParse(present).success) return bad;
  const key = sent.headers.get("idempotency-key");
  if (key === undefined) return null;
  if (!SANE_IDEMPOTENCY_KEY.test(key)) return new Set(["invalid_request", "key_bound_to_other_node"]);
  return isNestedDeeper(body, JSON_DEPTH_MAX)
    ? new Set(["invalid_request", "key_bound_to_other_node"])
    : null;
}

function bodyOf({ body }: Sent, { emptyBody }: Target): Record<string, unknown> | null {
  if (!body || body.length === 0) return emptyBody ? {} : null;
  try {
    return objectOf(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    return null;
  }
}

function rawOutcomes(sent: Sent, target: Target): ReadonlySet<Outcome> | null {
  const outcomes = new Set<Outcome>(["ok", ...target.rejections, "invalid_request"]);
  if (target.path.includes("download")) return outcomes.add("range_not_satisfiable");
  if (sent.request.secret === "bound") outcomes.add("key_bound_to_other_node");
  if (target.method === "GET") return outcomes;
  if (sent.headers.has("idempotency-key")) outcomes.add("idempotency_key_reused");
  return outcomes.add("unsupported_media_type").add("body_too_large");
}
