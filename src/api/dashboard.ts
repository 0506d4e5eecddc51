/** The endpoints of the dashboard: its page at `/`, and the scripts and styles that the page names. They decide nothing. */
import { codingFor } from "../http/compression.ts";
import { type Exchange, NO_SNIFF, pathParameter } from "../http/exchange.ts";
import { Problem } from "../http/problem.ts";
import { type Endpoint, rawEndpoint } from "./endpoint.ts";

type DashboardFile = {
  readonly content: Blob;
  readonly gzip: Blob;
  readonly brotli: Blob;
  readonly type: string;
  readonly etag: string;
};

/** The built page, loaded at the first request, so that an unused dashboard takes no memory. */
export type LoadDashboard = () => Promise<{
  readonly page: DashboardFile;
  readonly assets: ReadonlyMap<string, DashboardFile>;
  /** The hashes of the scripts that the page may run, such as `sha256-…`. */
  readonly scripts: readonly string[];
}>;

/**
 * The Content-Security-Policy: no other origin, no inline script or style, no framing. Previews of pictures use blob
 * URLs. Scripts are allowed by their hashes: the hub also serves uploaded files, so its origin ('self') says nothing
 * about a script, and a path would need the host of the URL, which the caller chooses.
 */
function policyOf(scripts: readonly string[]): string {
  return [
    "default-src 'none'",
    `script-src ${scripts.map((hash) => `'${hash}'`).join(" ")}`,
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' blob: data:",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

const HEADERS = {
  ...NO_SNIFF,
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
      handle: async ({ exchange }) => {
        const { page, scripts } = await load();
        return respond(exchange, page, scripts, CACHED.page);
      },
    }),
    rawEndpoint({
      method: "GET",
      path: "/assets/:name",
      auth: "open",
      summary: "A script or style of the dashboard",
      rejections: [],
      handle: async ({ exchange }) => {
        const { assets, scripts } = await load();
        const file = assets.get(pathParameter(exchange, "name"));
        if (file === undefined)
          throw new Problem(
            404,
            "not_found",
            "Not found",
            "The dashboard has no such file. Reload the page.",
          );
        return respond(exchange, file, scripts, CACHED.asset);
      },
    }),
  ];
}

/** What the page is compressed with, the best first. */
const CODINGS = ["br", "gzip"] as const;

/** The forms of a file are not the same bytes. */
function etagIn(coding: (typeof CODINGS)[number] | null, etag: string): string {
  return coding === null ? etag : etag.replace(/"$/, `-${coding}"`);
}

function respond(
  { request }: Exchange,
  { content, gzip, brotli, type, etag }: DashboardFile,
  scripts: readonly string[],
  cached: string,
): Response {
  const coding = codingFor(request.headers.get("accept-encoding"), CODINGS);
  const headers = {
    ...HEADERS,
    "Content-Security-Policy": policyOf(scripts),
    "Content-Type": type,
    Vary: "Accept-Encoding",
    ...(coding !== null && { "Content-Encoding": coding }),
    ETag: etagIn(coding, etag),
    "Cache-Control": cached,
  };
  const known = request.headers.get("if-none-match")?.split(",") ?? [];
  const forms = [null, ...CODINGS].map((one) => etagIn(one, etag));
  const isKnown = known.some((one) => forms.includes(one.trim().replace(/^W\//, "")));
  return isKnown
    ? new Response(null, { status: 304, headers })
    : new Response(coding === null ? content : coding === "br" ? brotli : gzip, { headers });
}
