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

/** Signs in one browser, once: what the link says that the hub prints at its start. */
export class SignInCode {
  readonly #credentials: Credentials;
  #code: string | null = crypto
    .getRandomValues(new Uint8Array(SIGN_IN_CODE_BYTES))
    .toBase64({ alphabet: "base64url" });

  constructor(credentials: Credentials) {
    this.#credentials = credentials;
  }

  /** Null when it has been used. */
  get code(): string | null {
    return this.#code;
  }

  /** Null for any other code. */
  redeem(code: string): Credentials | null {
    const [known, given] = [Buffer.from(this.#code ?? ""), Buffer.from(code)];
    if (this.#code === null || known.length !== given.length || !crypto.timingSafeEqual(known, given))
      return null;
    this.#code = null;
    return this.#credentials;
  }
}

const SIGN_IN_CODE_BYTES = 24;

type Credentials = { readonly secret: string; readonly adminKey: string };

export function dashboardEndpoints(load: LoadDashboard, signIn: SignInCode): readonly Endpoint[] {
  return [
    rawEndpoint({
      method: "POST",
      path: "/sign-in",
      auth: "open",
      summary: "Signs the dashboard in with the code that the hub prints at its start",
      handle: async ({ exchange }) => {
        const credentials = signIn.redeem(exchange.request.headers.get("x-sign-in-code") ?? "");
        if (credentials === null)
          throw new Problem(
            401,
            "unauthorized",
            "Unauthorized",
            "The link has been used, or is of an earlier start of the hub. Sign in with the secret.",
          );
        const { secret, adminKey } = credentials;
        return Response.json(
          { secret, admin_key: adminKey },
          { headers: { ...HEADERS, "Cache-Control": "no-store" } },
        );
      },
    }),
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
