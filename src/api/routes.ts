/**
 * The index of the API: all endpoints, except those of files.ts (made with the configured limit) and stream.ts. The two
 * that describe the API itself are here, because they describe this index.
 */
import { UNCACHED } from "../http/exchange.ts";
import { BATCH_ENDPOINT } from "./batch.ts";
import { type Declared, type Endpoint, rawEndpoint } from "./endpoint.ts";
import { fileEndpoints } from "./files.ts";
import { KEY_ENDPOINTS } from "./keys.ts";
import { LUX_ENDPOINTS } from "./lux.ts";
import { MESSAGE_ENDPOINTS } from "./messages.ts";
import { NODE_ENDPOINTS } from "./nodes.ts";
import { LOG_STREAM, NODE_STREAM } from "./stream.ts";
import { SYSTEM_ENDPOINTS } from "./system.ts";
import { TASK_ENDPOINTS } from "./tasks.ts";

// The document and the page are made at the first request, by modules that an idle hub does not load.

const openApiDocument = rawEndpoint({
  method: "GET",
  path: "/api/v1/openapi.json",
  auth: "public",
  summary: "This API as an OpenAPI 3.1 document, in the variant of the caller",
  rejections: [],
  handle: async ({ variant, exchange, backpressure }) => {
    const { encodedOpenApi } = await import("./openapi.ts");
    return backpressure.ofRead(exchange, async () => ({
      first: encodedOpenApi(variant, DECLARED),
      next: null,
    }));
  },
});

export const ENDPOINTS: readonly Endpoint[] = [
  ...NODE_ENDPOINTS,
  ...TASK_ENDPOINTS,
  ...MESSAGE_ENDPOINTS,
  ...LUX_ENDPOINTS,
  ...KEY_ENDPOINTS,
  ...SYSTEM_ENDPOINTS,
  BATCH_ENDPOINT,
  openApiDocument,
];

/** Every endpoint under /api/v1, for documentation. */
export const DECLARED: readonly (Endpoint | Declared)[] = [
  ...ENDPOINTS,
  ...fileEndpoints(1),
  NODE_STREAM,
  LOG_STREAM,
];

/** The page that describes the API to people. */
export const DOCS: Endpoint = rawEndpoint({
  method: "GET",
  path: "/docs",
  auth: "open",
  summary: "This API as a page",
  rejections: [],
  handle: async ({ variant, exchange, backpressure }) => {
    const { docsPage } = await import("./docs-page.ts");
    const { html, policy } = docsPage(variant, DECLARED);
    const body = await backpressure.ofRead(exchange, async () => ({ first: html, next: null }));
    const headers = {
      ...UNCACHED,
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": policy,
      "Referrer-Policy": "no-referrer",
    };
    return new Response(body, { headers });
  },
});
