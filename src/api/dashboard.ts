/** The endpoints of the dashboard: its page at `/`, and the scripts and styles that the page names. They decide nothing. */
import { type Exchange, NO_SNIFF, pathParameter } from "../http/exchange.ts";
import { Problem } from "../http/problem.ts";
import { type Endpoint, rawEndpoint } from "./endpoint.ts";

type DashboardFile = { readonly content: Blob; readonly type: string; readonly etag: string };

/** The built page, loaded at the first request, so that an unused dashboard takes no memory. */
export type LoadDashboard = () => Promise<{
  readonly page: DashboardFile;
  readonly assets: ReadonlyMap<string, DashboardFile>;
}>;

/**
 * The Content-Security-Policy: no other origin, no inline script or style, no framing. Previews of pictures use blob
 * URLs.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' blob: data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const HEADERS = {
  ...NO_SNIFF,
  "Content-Security-Policy": POLICY,
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
};

/** The name of an asset changes with its contents; the page's does not. */
const CACHED = { page: "no-cache", asset: "public, max-age=31536000, immutable" };

export function dashboardEndpoints(load: LoadDashboard): readonly Endpoint[] {
  return [
    rawEndpoint({
      method: "GET",
      path: "/",
      auth: "open",
      summary: "The dashboard",
      rejections: [],
      handle: async ({ exchange }) => respond(exchange, (await load()).page, CACHED.page),
    }),
    rawEndpoint({
      method: "GET",
      path: "/assets/:name",
      auth: "open",
      summary: "A script or style of the dashboard",
      rejections: [],
      handle: async ({ exchange }) => {
        const file = (await load()).assets.get(pathParameter(exchange, "name"));
        if (file === undefined)
          throw new Problem(
            404,
            "not_found",
            "Not found",
            "The dashboard has no such file. Reload the page.",
          );
        return respond(exchange, file, CACHED.asset);
      },
    }),
  ];
}

function respond({ request }: Exchange, { content, type, etag }: DashboardFile, cached: string): Response {
  const headers = { ...HEADERS, "Content-Type": type, ETag: etag, "Cache-Control": cached };
  const known = request.headers.get("if-none-match")?.split(",") ?? [];
  const isKnown = known.some((one) => one.trim().replace(/^W\//, "") === etag);
  return isKnown ? new Response(null, { status: 304, headers }) : new Response(content, { headers });
}
