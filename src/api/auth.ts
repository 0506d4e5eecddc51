/**
 * Who is calling, and in which variant the answer goes (specification 5, decisions.md Keys).
 * Secrets are looked at in two headers and nowhere else, and never leave this file.
 */
import * as limit from "../domain/limits.ts";
import type { KeyRecord } from "../domain/model.ts";
import type { Exchange } from "../http/exchange.ts";
import { Problem } from "../http/problem.ts";
import { callerOf } from "../http/caller.ts";
import { Throttle } from "../http/wrong-secret-throttle.ts";
import { type Clock, SECOND_MS } from "../lib/clock.ts";
import { type Network, blockListOf } from "../lib/ip.ts";
import type { KeyRing } from "../service/keys.ts";
import type { Variant } from "../variant/variant.ts";
import { VARIANTS } from "../variant/by-name.ts";
import { keyBoundElsewhere } from "./error-table.ts";

/** Who may call: `public` is open on variant A, unless the hub is private, and behind the secret on B; `admin` also wants the admin key. */
export type Auth = "public" | "secret" | "admin";

export type Caller = { readonly variant: Variant; readonly key: KeyRecord | null };

export class Gate {
  readonly #keys: KeyRing;
  readonly #clock: Clock;
  readonly #isPrivate: boolean;
  readonly #trustedProxies: ReturnType<typeof blockListOf>;
  readonly #throttle = new Throttle(
    limit.WRONG_SECRETS_PER_MINUTE,
    limit.WRONG_SECRET_WINDOW_MS,
    limit.WATCHED_ADDRESSES_MAX,
  );

  constructor(keys: KeyRing, clock: Clock, trustedProxies: readonly Network[], isPrivate: boolean) {
    this.#isPrivate = isPrivate;
    this.#keys = keys;
    this.#clock = clock;
    this.#trustedProxies = blockListOf(trustedProxies);
  }

  /**
   * Lets a request in, or throws the Problem that keeps it out: 401, 429 after many wrong secrets, 403 for the admin
   * key. On a public path of A a secret is not looked at, but that a pinned key still sets the variant.
   */
  admit(exchange: Exchange, auth: Auth, ofListener: Variant): Caller {
    const { headers } = exchange.request;
    const secret = headers.get("x-matrix-secret");
    const key =
      secret === null || secret.length > limit.SECRET_MAX_CHARS ? null : this.#keys.find(secret, "secret");
    const variant = key?.variant ? VARIANTS[key.variant] : ofListener;
    if (auth === "public" && variant.publicEndpoints && !this.#isPrivate) return { variant, key: null };
    if (!key) throw this.#unauthorized(exchange, secret);
    if (auth === "admin") this.#checkAdmin(headers.get("x-admin-key"));
    return { variant, key };
  }

  #checkAdmin(adminKey: string | null): void {
    const sane = adminKey !== null && adminKey.length <= limit.SECRET_MAX_CHARS;
    if (sane && this.#keys.find(adminKey, "admin")) return;
    throw new Problem(
      403,
      "admin_key_required",
      "Forbidden",
      "Send the administrator key in the header X-Admin-Key.",
    );
  }

  #unauthorized(exchange: Exchange, secret: string | null): Problem {
    if (secret !== null && secret !== "") this.#strike(exchange); // an empty one is missing, not wrong
    const detail = "Send the hub's secret in the header X-Matrix-Secret.";
    const headers = { "WWW-Authenticate": 'X-Matrix-Secret realm="luxhub"' };
    return new Problem(401, "unauthorized", "Unauthorized", detail, { headers });
  }

  #strike({ server, request }: Exchange): void {
    const caller = callerOf(server.requestIP(request)?.address ?? "", request.headers, this.#trustedProxies);
    const waitMs = this.#throttle.strike(caller, this.#clock.steady());
    if (waitMs === 0) return;
    const seconds = Math.ceil(waitMs / SECOND_MS);
    const detail = `Too many wrong secrets came from this address. Try again in ${seconds} seconds.`;
    const headers = { "Retry-After": String(seconds) };
    throw new Problem(429, "too_many_wrong_secrets", "Too many requests", detail, { headers });
  }
}

/** 403 when the caller's key is bound to another node than the one it acts for. */
export function checkActsFor({ key }: Pick<Caller, "key">, nodeId: string | null | undefined): void {
  if (key?.nodeId == null || nodeId === undefined || nodeId === null) return;
  if (key.nodeId !== nodeId) throw keyBoundElsewhere(key.nodeId);
}
