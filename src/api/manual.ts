/** The endpoints of the manual, below /docs. They show no stored data, so they need no secret. */
import { MANUAL_QUERY_MAX_CHARS } from "../domain/limits.ts";
import { type ServedFile, sendFile } from "../http/coded-file.ts";
import { NO_SNIFF, UNCACHED, pathParameter, queryOf } from "../http/exchange.ts";
import { Problem } from "../http/problem.ts";
import { type Call, type Endpoint, rawEndpoint } from "./endpoint.ts";
import { invalidField } from "./input.ts";
import { DECLARED } from "./routes.ts";

// The pages are made at the first request for them, by modules that an idle hub does not load.

export const MANUAL_ENDPOINTS: readonly Endpoint[] = [
  rawEndpoint({
    path: "/docs",
    auth: "open",
    summary: "The index of the manual",
    handle: (call) => answerFile(call, ""),
  }),
  rawEndpoint({
    path: "/docs/",
    auth: "open",
    summary: "Leads to the index of the manual",
    handle: async () => new Response(null, { status: 308, headers: { Location: "../docs" } }),
  }),
  rawEndpoint({
    path: "/docs/:name",
    auth: "open",
    summary: "A page of the manual, or a picture in it",
    handle: (call) => answerFile(call, pathParameter(call.exchange, "name")),
  }),
  rawEndpoint({
    path: "/docs/search",
    auth: "open",
    summary: "The sections of the manual that have the words of the query's `q`",
    handle: async (call) => {
      const query = (queryOf(call.exchange.request)["q"] ?? "").trim();
      if (query.length > MANUAL_QUERY_MAX_CHARS)
        throw invalidField("q", `send at most ${MANUAL_QUERY_MAX_CHARS} characters`);
      const { searchPage } = await import("../manual/manual.ts");
      const load = async () => ({ first: await searchPage(query), next: null });
      const body = await call.backpressure.ofLargeRead(call, load);
      return new Response(body, { headers: { ...(await headersOf(HTML)), "Cache-Control": "no-cache" } });
    },
  }),
  rawEndpoint({
    path: "/docs/api-reference",
    auth: "open",
    summary: "This API as a page, in the variant of the caller",
    handle: async (call) => {
      const { apiReference } = await import("./api-reference.ts");
      return answer(call, apiReference(call.variant, DECLARED));
    },
  }),
];

const HTML = "text/html; charset=utf-8";

async function answerFile(call: Call, name: string): Promise<Response> {
  const { manualFile } = await import("../manual/manual.ts");
  const file = await manualFile(name);
  if (file !== null) return answer(call, file);
  throw new Problem(404, "not_found", "Not found", "The manual has no page of this name: /docs lists them.");
}

/** A cache must ask before it uses its copy: the hub may be another version by then. */
async function answer({ exchange }: Call, file: ServedFile): Promise<Response> {
  const headers = { ...(await headersOf(file.type)), "Cache-Control": "no-cache" };
  return sendFile(exchange.request, file, headers);
}

async function headersOf(type: string): Promise<Record<string, string>> {
  const { POLICY } = await import("../manual/frame.ts");
  return {
    ...NO_SNIFF,
    "Content-Type": type,
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    Vary: UNCACHED.Vary, // the API reference is in the variant of the caller
  };
}
