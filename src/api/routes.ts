/**
 * The index of the API: all endpoints, except those of files.ts, invitations.ts and stream.ts, which need what is
 * configured.
 */
import { matchesEtag } from "../http/download.ts";
import { NO_SNIFF } from "../http/exchange.ts";
import { BUDGET_ENDPOINTS } from "./budgets.ts";
import { BATCH_ENDPOINT } from "./batch.ts";
import { copyEndpoints } from "./copies.ts";
import { type Declared, type Endpoint, rawEndpoint } from "./endpoint.ts";
import { fileEndpoints } from "./files.ts";
import { GROUP_ENDPOINTS } from "./groups.ts";
import { type PlaceFor, invitationEndpoints } from "./invitations.ts";
import { KEY_ENDPOINTS } from "./keys.ts";
import { LEASE_ENDPOINTS } from "./leases.ts";
import { TASK_GRAPH_ENDPOINTS } from "./task-graph.ts";
import { LESSON_ENDPOINTS } from "./lessons.ts";
import { LIMIT_ENDPOINTS } from "./limits.ts";
import { LUX_ENDPOINTS } from "./lux.ts";
import { MESSAGE_ENDPOINTS } from "./messages.ts";
import { NODE_ENDPOINTS } from "./nodes.ts";
import { OUTPUT_ENDPOINTS, OUTPUT_STREAM } from "./output.ts";
import { SCHEDULE_ENDPOINTS } from "./schedules.ts";
import { NOTE_ENDPOINTS } from "./notes.ts";
import { LOG_STREAM, NODE_STREAM } from "./stream.ts";
import { QUESTION_ENDPOINTS } from "./questions.ts";
import { REVIEW_ENDPOINTS } from "./reviews.ts";
import { STATS_ENDPOINTS } from "./stats.ts";
import { SYSTEM_ENDPOINTS } from "./system.ts";
import { TASK_ENDPOINTS } from "./tasks.ts";
import { USAGE_ENDPOINTS } from "./usage.ts";
import { WEBHOOK_ENDPOINTS } from "./webhooks.ts";

const openApiDocument = rawEndpoint({
  path: "/api/v1/openapi.json",
  auth: "public",
  summary: "This API as an OpenAPI 3.1 document, in the variant of the caller",
  handle: async (call) => {
    const { variant, backpressure } = call;
    const { encodedOpenApi } = await import("./openapi.ts");
    return backpressure.ofRead(call, async () => ({
      first: encodedOpenApi(variant, DECLARED),
      next: null,
    }));
  },
});

export const ENDPOINTS: readonly Endpoint[] = [
  ...NODE_ENDPOINTS,
  ...TASK_ENDPOINTS,
  ...TASK_GRAPH_ENDPOINTS,
  ...LESSON_ENDPOINTS,
  ...OUTPUT_ENDPOINTS,
  ...QUESTION_ENDPOINTS,
  ...REVIEW_ENDPOINTS,
  ...MESSAGE_ENDPOINTS,
  ...NOTE_ENDPOINTS,
  ...LEASE_ENDPOINTS,
  ...LUX_ENDPOINTS,
  ...GROUP_ENDPOINTS,
  ...SCHEDULE_ENDPOINTS,
  ...WEBHOOK_ENDPOINTS,
  ...USAGE_ENDPOINTS,
  ...BUDGET_ENDPOINTS,
  ...LIMIT_ENDPOINTS,
  ...KEY_ENDPOINTS,
  ...STATS_ENDPOINTS,
  ...SYSTEM_ENDPOINTS,
  BATCH_ENDPOINT,
  openApiDocument,
];

const placeFor: PlaceFor = () => ({ url: "", otherUrls: [], pin: null });

export const DECLARED: readonly (Endpoint | Declared)[] = [
  ...ENDPOINTS,
  ...fileEndpoints(1),
  ...invitationEndpoints(placeFor),
  ...copyEndpoints(placeFor, async () => new ReadableStream()),
  NODE_STREAM,
  LOG_STREAM,
  OUTPUT_STREAM,
];

export const PYTHON_CLIENT: Endpoint = rawEndpoint({
  path: "/client/luxhub.py",
  auth: "open",
  summary: "The client for Python",
  handle: async (call) => {
    const { exchange, backpressure } = call;
    const { PYTHON_CLIENT_ETAG, PYTHON_CLIENT_TEXT } = await import("./python-client.ts");
    const validators = { ETag: PYTHON_CLIENT_ETAG, "Cache-Control": "no-cache" };
    const known = exchange.request.headers.get("if-none-match");
    if (known !== null && matchesEtag(known, PYTHON_CLIENT_ETAG))
      return new Response(null, { status: 304, headers: validators });
    const body = await backpressure.ofRead(call, async () => ({ first: PYTHON_CLIENT_TEXT, next: null }));
    const headers = { ...NO_SNIFF, ...validators, "Content-Type": "text/x-python; charset=utf-8" };
    return new Response(body, { headers });
  },
});
