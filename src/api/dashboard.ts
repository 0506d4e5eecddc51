/** The endpoints of the dashboard: its page at `/`, and the scripts and styles that the page names. */
import { type ServedFile, sendFile } from "../http/coded-file.ts";
import { NO_SNIFF, pathParameter } from "../http/exchange.ts";
import { Problem } from "../http/problem.ts";
import { type Endpoint, rawEndpoint } from "./endpoint.ts";

/** The built page, loaded at the first request, so that an unused dashboard takes no memory. */
export type LoadDashboard = () => Promise<{
  readonly page: (nonce: string) => string;
  readonly assets: ReadonlyMap<string, ServedFile>;
}>;

/**
 * The Content-Security-Policy: no other origin, no inline script or style, no framing. Previews of pictures use blob
 * URLs. The script is allowed by a nonce: the hub also serves uploaded files, so its origin ('self') says nothing about a
 * script, and a path would need the host of the URL, which the caller chooses.
 */
function policyOf(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' blob: data:",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

const NONCE_BYTES = 16;

const HEADERS = {
  ...NO_SNIFF,
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
};

/** The name of an asset changes with its contents. */
const ASSET_HEADERS = {
  ...HEADERS,
  Vary: "Accept-Encoding",
  "Cache-Control": "public, max-age=31536000, immutable",
};

export function dashboardEndpoints(load: LoadDashboard): readonly Endpoint[] {
  return [
    rawEndpoint({
      path: "/",
      auth: "open",
      summary: "The dashboard",
      handle: async () => {
        const { page } = await load();
        const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES)).toBase64();
        const headers = {
          ...HEADERS,
          "Content-Security-Policy": policyOf(nonce),
          "Content-Type": "text/html; charset=utf-8",
          "Cache-Control": "no-cache", // its nonce is another in each response
        };
        return new Response(page(nonce), { headers });
      },
    }),
    rawEndpoint({
      path: "/assets/:name",
      auth: "open",
      summary: "A script or style of the dashboard",
      handle: async ({ exchange }) => {
        const { assets } = await load();
        const file = assets.get(pathParameter(exchange, "name"));
        if (file === undefined)
          throw new Problem(
            404,
            "not_found",
            "Not found",
            "The dashboard has no such file. Reload the page.",
          );
        return sendFile(exchange.request, file, ASSET_HEADERS);
      },
    }),
  ];
}
