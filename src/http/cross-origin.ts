/**
 * Decides what pages of other origins may do (CORS, the Fetch standard), and which host names the hub answers to
 * (against DNS rebinding). By default no page, and every host name.
 *
 * Secrets travel in headers that a page must set itself, never in cookies, so no origin may send credentials.
 */
import { isIP } from "../lib/ip.ts";
import { Problem, invalidRequest } from "./problem.ts";

export const ANY_ORIGIN = "*";

export type CrossOriginOptions = {
  readonly origins: readonly string[];
  /** When empty, any Host is allowed. */
  readonly hosts: readonly string[];
};

/** Besides the safelisted ones. */
const REQUEST_HEADERS =
  "Content-Type, X-Matrix-Secret, X-Admin-Key, Authorization, Idempotency-Key, X-Request-Id, Last-Event-ID, " +
  "Range, If-None-Match, If-Modified-Since, X-Node-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, A2A-Version, " +
  "A2A-Extensions";

/** Besides the safelisted ones. */
const ANSWER_HEADERS =
  "X-Request-Id, Retry-After, Idempotent-Replayed, WWW-Authenticate, Allow, Content-Disposition, Content-Range, " +
  "Content-Length, Accept-Ranges, ETag";

const PREFLIGHT_SECONDS = 600;

export class CrossOrigin {
  readonly #options: CrossOriginOptions;

  constructor(options: CrossOriginOptions) {
    this.#options = options;
  }

  /**
   * Bun joins several Hosts with commas; which of them a proxy has looked at is unknown. @throws {Problem} 400 when
   * there are several (RFC 9112 3.2); 403 when it is neither an address, nor localhost, nor an allowed name
   */
  checkHost(request: Request): void {
    const { hosts } = this.#options;
    const host = request.headers.get("host");
    if (host === null) return; // every browser sends one
    if (host.includes(",")) throw invalidRequest([{ path: "Host", message: "must be sent once" }]);
    if (hosts.length === 0) return;
    const [, inBrackets, bare = ""] = /^(?:\[([^\]]*)\]|([^:]+))(?::\d{1,5})?$/.exec(host) ?? [];
    const name = bare.toLowerCase().replace(/\.$/, "");
    if (isIP(inBrackets ?? name) !== 0 || name === "localhost" || hosts.includes(name)) return;
    const detail = "Call the hub by its address, or ask its operator to allow this name with --allowed-host.";
    throw new Problem(403, "host_not_allowed", "Host not allowed", detail);
  }

  /**
   * For a path that a page of another origin must not call at all. The hub's own origin counts only by address, as
   * localhost, or by an allowed name: any other name may be rebound to the hub's address. @throws {Problem} 403
   */
  checkOrigin(request: Request): void {
    const origin = request.headers.get("origin");
    if (origin === null || this.#allowed(request) !== null) return;
    const url = URL.parse(origin);
    const name = (url?.hostname ?? "").replace(/^\[|\]$/g, "");
    const isNamed = isIP(name) !== 0 || name === "localhost" || this.#options.hosts.includes(name);
    if (isNamed && url?.host === request.headers.get("host")) return;
    const detail =
      "Pages of this origin may not call the hub at this path. The operator can allow the origin with --cors.";
    throw new Problem(403, "origin_not_allowed", "Origin not allowed", detail);
  }

  /** Null for any other request, and for an origin that is not allowed. */
  preflight(request: Request, allowedMethods: string): Response | null {
    if (request.method !== "OPTIONS" || !request.headers.has("access-control-request-method")) return null;
    if (allowedMethods === "" || this.#allowed(request) === null) return null;
    const headers = {
      "Access-Control-Allow-Methods": allowedMethods,
      "Access-Control-Allow-Headers": REQUEST_HEADERS,
      "Access-Control-Max-Age": String(PREFLIGHT_SECONDS),
    };
    return new Response(null, { status: 204, headers });
  }

  open(request: Request, { headers }: Response): void {
    if (this.#options.origins.length === 0) return;
    if (!this.#options.origins.includes(ANY_ORIGIN)) headers.append("Vary", "Origin");
    const allowed = this.#allowed(request);
    if (allowed === null) return;
    headers.set("Access-Control-Allow-Origin", allowed);
    headers.set("Access-Control-Expose-Headers", ANSWER_HEADERS);
  }

  #allowed(request: Request): string | null {
    const { origins } = this.#options;
    const origin = origins.length === 0 ? null : request.headers.get("origin");
    if (origin === null) return null;
    return origins.includes(ANY_ORIGIN) ? ANY_ORIGIN : origins.includes(origin) ? origin : null;
  }
}
