/**
 * Authentication: identifies the caller by its secret, chooses the variant of the answer, and limits wrong secrets
 * (docs/security.md). The key ring (service/keys.ts) compares hashes in constant time.
 */
import { markVerified, sign } from "../domain/key.ts";
import * as limit from "../domain/limits.ts";
import type { KeyRecord } from "../domain/model.ts";
import { type Exchange, type Method, pathParameter, queryOf } from "../http/exchange.ts";
import { Problem } from "../http/problem.ts";
import { clientAddress } from "../http/client-address.ts";
import { RateLimiter } from "../http/rate-limiter.ts";
import { type Clock, SECOND_MS } from "../lib/clock.ts";
import { type BlockList, type Network, blockListOf, canonicalIp, isListed } from "../lib/ip.ts";
import type { KeyHeader, KeyRing } from "../service/keys.ts";
import type { Grant, Redeemed, Tickets } from "../service/tickets.ts";
import { type Around, around } from "../store/store.ts";
import type { Variant } from "../variant/variant.ts";
import { VARIANTS } from "../variant/by-name.ts";
import { type Share, shareOfAddress, shareOfKey } from "./caller-shares.ts";
import { keyBoundElsewhere, keyLost, keyNotBound, unauthorized, viewerNotAllowed } from "./error-table.ts";

/**
 * `public` needs no secret on variant A, unless the hub is private, but does on B; `admin` needs the administrator key
 * too; `standby` a key of that role. `open` needs nothing, and reads no header. Of X-Matrix-Secret and a bearer token (RFC 6750), X-Matrix-Secret
 * counts.
 */
export type Auth = "public" | "secret" | "admin" | "standby" | "open";

/**
 * What a hub with --strict requires of a call that acts for a node (docs/security.md). `bound`: a key that is bound to
 * the node. `administrator`: that, or the administrator key.
 */
export type Strict = "bound" | "administrator";

export type Access = {
  readonly method: Method;
  readonly auth: Auth;
  readonly strict?: Strict;
  readonly showsMessages?: boolean;
  readonly ticket?: Grant["kind"];
};

export type Caller = {
  readonly variant: Variant;
  /** Null on a public endpoint. */
  readonly key: KeyRecord | null;
  /** Even if none was needed. */
  readonly shownKey: KeyRecord | null;
  /** Its `key` is the key that it was made with. */
  readonly ticket?: Redeemed;
};

export type AccessPolicy = {
  readonly trustedProxies: readonly Network[];
  /** Null: no proxy says who a person is. */
  readonly userHeader: string | null;
  readonly isPrivate: boolean;
  readonly isStrict: boolean;
};

export class Authenticator {
  readonly #keys: KeyRing;
  readonly #tickets: Tickets;
  readonly #clock: Clock;
  readonly #isPrivate: boolean;
  readonly #isStrict: boolean;
  readonly #trustedProxies: BlockList;
  readonly #userHeader: string | null;
  readonly #wrongSecrets = new RateLimiter(
    limit.WRONG_SECRETS_PER_MINUTE,
    limit.WRONG_SECRET_WINDOW_MS,
    limit.WATCHED_ADDRESSES_MAX,
  );

  constructor(
    keys: KeyRing,
    tickets: Tickets,
    clock: Clock,
    { trustedProxies, userHeader, isPrivate, isStrict }: AccessPolicy,
  ) {
    this.#tickets = tickets;
    this.#isPrivate = isPrivate;
    this.#isStrict = isStrict;
    this.#keys = keys;
    this.#clock = clock;
    this.#trustedProxies = blockListOf(trustedProxies);
    this.#userHeader = userHeader;
  }

  /**
   * On a public path of variant A a wrong secret is counted, and otherwise ignored; a key that is bound to a variant
   * still selects it.
   * @throws {Problem} 401; 429 after too many wrong secrets; 403 without the administrator key, or for a viewer
   */
  async authenticate(exchange: Exchange, access: Access, listenerVariant: Variant): Promise<Caller> {
    const { auth } = access;
    if (auth === "open") return { variant: listenerVariant, key: null, shownKey: null };
    const { headers } = exchange.request;
    const secret = headers.get("x-matrix-secret") || bearerToken(headers);
    const isOpen = auth === "public" && listenerVariant.publicEndpoints && !this.#isPrivate;
    const found = await (isOpen ? this.#findIfAny(exchange, secret) : this.#find(secret, "secret"));
    const key = found && this.#keys.actingFor(found, headers.get("x-node-id"));
    const variant = key?.variant ? VARIANTS[key.variant] : listenerVariant;
    if (auth === "public" && variant.publicEndpoints && !this.#isPrivate)
      return { variant, key: null, shownKey: key };
    if (!key && !secret && access.ticket) {
      const ticket = await this.#redeem(exchange, access.ticket);
      if (ticket) return callerOf(ticket, listenerVariant);
    }
    if (!key) throw this.#unauthorized(exchange, secret);
    if (auth === "standby") checkStandby(key);
    else if (key.role === "viewer" || key.role === "standby") checkViewerMay(access);
    if (auth === "admin") await this.#checkAdmin(headers.get("x-admin-key"));
    return { variant, key, shownKey: key };
  }

  /** Checks the key again after a slow body. @throws {Problem} 401 when it was revoked or has expired meanwhile */
  checkStillValid({ key }: Caller): void {
    if (key && !this.#keys.isInForce(key)) throw keyLost();
  }

  /**
   * Returns a promise only on a strict hub.
   * @throws {Problem} 403 when the caller's key may not act for one of these nodes
   */
  checkActsFor(
    exchange: Exchange,
    caller: Pick<Caller, "key">,
    nodeIds: readonly (string | null | undefined)[],
    strict: Strict | undefined,
  ): Promise<void> | undefined {
    for (const nodeId of nodeIds) checkActsFor(caller, nodeId);
    if (!this.#isStrict || strict === undefined || caller.key?.nodeId != null) return undefined;
    const nodeId = nodeIds.find((named) => named != null);
    return nodeId == null ? undefined : this.#checkStrict(exchange, nodeId, strict);
  }

  async #checkStrict({ request }: Exchange, nodeId: string, strict: Strict): Promise<void> {
    const adminKey = strict === "administrator" ? request.headers.get("x-admin-key") : null;
    if (!(await this.#find(adminKey, "admin"))) throw keyNotBound(nodeId, strict === "administrator");
  }

  async hasAdminKey({ request }: Exchange): Promise<boolean> {
    return (await this.#find(request.headers.get("x-admin-key"), "admin")) !== null;
  }

  shareOf(exchange: Exchange, { shownKey }: Pick<Caller, "shownKey">): Share {
    return shownKey === null ? shareOfAddress(this.addressOf(exchange)) : shareOfKey(shownKey);
  }

  /** The person whom a trusted proxy names; "" without one. From other senders the header is ignored. */
  personOf({ server, request }: Exchange): string {
    const name = this.#userHeader === null ? null : request.headers.get(this.#userHeader);
    if (!name) return "";
    const peer = canonicalIp(server.requestIP(request)?.address ?? "");
    if (peer === null || !isListed(peer, this.#trustedProxies)) return "";
    return name.slice(0, limit.PERSON_MAX_CHARS).toWellFormed();
  }

  addressOf({ server, request }: Exchange): string {
    const peer = server.requestIP(request)?.address ?? "";
    return clientAddress(peer, request.headers, this.#trustedProxies);
  }

  /**
   * An address at the limit causes no query of the store, so there a key that another process has just written is
   * unknown until the next refresh.
   */
  async #findIfAny(exchange: Exchange, secret: string | null): Promise<KeyRecord | null> {
    if (secret === null || secret === "") return null;
    const known = secret.length > limit.SECRET_MAX_CHARS ? null : this.#keys.find(secret, "secret");
    if (known) return known;
    const address = this.addressOf(exchange);
    if (this.#wrongSecrets.isExceeded(address, this.#clock.steady())) return null;
    const key = await this.#find(secret, "secret");
    if (!key) this.#wrongSecrets.recordFailure(address, this.#clock.steady());
    return key;
  }

  async #find(secret: string | null, header: KeyHeader): Promise<KeyRecord | null> {
    if (secret === null || secret === "" || secret.length > limit.SECRET_MAX_CHARS) return null;
    return this.#keys.find(secret, header) ?? (await this.#keys.findNew(secret, header));
  }

  async #checkAdmin(adminKey: string | null): Promise<void> {
    if (await this.#find(adminKey, "admin")) return;
    const detail = !adminKey
      ? "Send the administrator key in the header X-Admin-Key."
      : "The administrator key in the header X-Admin-Key is unknown, expired or revoked.";
    throw new Problem(403, "admin_key_required", "Forbidden", detail);
  }

  /**
   * Null when there is no ticket. @throws {Problem} 401 for a wrong one, which counts as a wrong secret, and an expired
   * one
   */
  async #redeem(exchange: Exchange, kind: Grant["kind"]): Promise<Redeemed | null> {
    const { ticket } = queryOf(exchange.request);
    if (ticket === undefined) return null;
    const redeemed = await this.#tickets.redeem(ticket, { kind, fileId: pathParameter(exchange, "file_id") });
    if (redeemed === "expired")
      throw unauthorized(`This URL has expired. Get a new one (POST /api/v1/file/${kind}-url).`);
    if (redeemed !== null) return redeemed;
    this.recordWrongSecret(exchange);
    throw unauthorized(
      `The ticket of this URL is wrong, or its key was revoked. Get a new URL (POST /api/v1/file/${kind}-url).`,
    );
  }

  #unauthorized(exchange: Exchange, secret: string | null): Problem {
    const isMissing = secret === null || secret === "";
    if (!isMissing) this.recordWrongSecret(exchange);
    const detail = isMissing
      ? "Send the hub's secret in the header X-Matrix-Secret or Authorization: Bearer."
      : "The secret in the header X-Matrix-Secret or Authorization: Bearer is unknown, expired or revoked.";
    return unauthorized(detail);
  }

  recordWrongSecret(exchange: Exchange): void {
    const waitMs = this.#wrongSecrets.recordFailure(this.addressOf(exchange), this.#clock.steady());
    if (waitMs === 0) return;
    const seconds = Math.ceil(waitMs / SECOND_MS);
    const detail = `Too many wrong secrets came from this address. Try again in ${seconds} seconds.`;
    const headers = { "Retry-After": String(seconds) };
    throw new Problem(429, "too_many_wrong_secrets", "Too many requests", detail, { headers });
  }
}

/** HEAD counts as GET. */
function checkViewerMay({ method, showsMessages }: Access): void {
  if (method !== "GET") throw viewerNotAllowed("change anything: it may only GET and HEAD");
  if (showsMessages) throw viewerNotAllowed("read the contents of messages");
}

function checkStandby({ role }: KeyRecord): void {
  if (role === "standby") return;
  const detail = "Only a standby calls this, with the key that luxhub invite --standby has made.";
  throw new Problem(403, "standby_key_required", "Forbidden", detail);
}

function callerOf(ticket: Redeemed, listenerVariant: Variant): Caller {
  const { key } = ticket;
  const variant = key.variant ? VARIANTS[key.variant] : listenerVariant;
  return { variant, key, shownKey: key, ticket };
}

function bearerToken(headers: Headers): string | null {
  return /^Bearer +(\S+)$/i.exec(headers.get("authorization") ?? "")?.[1] ?? null;
}

export function checkActsFor({ key }: Pick<Caller, "key">, nodeId: string | null | undefined): void {
  if (key?.nodeId == null || nodeId === undefined || nodeId === null) return;
  if (key.nodeId !== nodeId) throw keyBoundElsewhere(key.nodeId);
}

/** What a caller writes says with which key and, of a bound key, that its node is verified. */
export function signing({ key }: Pick<Caller, "key">, person: string): Around | null {
  if (key === null) return null;
  const { nodeId, keyId } = key;
  return around(
    () => ({}),
    (decision) => {
      if (decision.kind === "rejected") return decision;
      const changes = sign(`${person}@${keyId}`, decision.changes);
      return { ...decision, changes: nodeId === null ? changes : markVerified(nodeId, changes) };
    },
  );
}
