/**
 * Tickets of presigned URLs: a URL with a ticket downloads one file, or uploads one, without a secret, for
 * TICKET_LIFE_MS. An AI agent needs them: it does not know its key, which only its client has.
 *
 * A ticket is a signed token. It is valid only while the key is valid that it was made with. That an upload URL stores one
 * file only is the work of its endpoint (api/files.ts).
 */
import { actingFor } from "../domain/key.ts";
import { TICKET_LIFE_MS, TICKET_MAX_CHARS } from "../domain/limits.ts";
import type { KeyRecord } from "../domain/model.ts";
import { type Clock, SECOND_MS } from "../lib/clock.ts";
import type { KeyRing } from "./keys.ts";
import { SignedTokens } from "./signed-tokens.ts";

/** An upload is for a node, and attached to a task. */
export type Grant =
  | { readonly kind: "download"; readonly fileId: string }
  | { readonly kind: "upload"; readonly nodeId: string | null; readonly taskId: string | null };

export type Ticket = { readonly text: string; readonly expiresAt: number };

/** `id`: nobody can make the ticket from it. */
export type Redeemed = { readonly grant: Grant; readonly key: KeyRecord; readonly id: string };

type Asked = { readonly kind: Grant["kind"]; readonly fileId: string };

type Claims = readonly [
  kind: Grant["kind"],
  expires: number,
  keyId: string,
  salt?: string,
  nodeId?: string | null,
  taskId?: string | null,
];

type Keys = Pick<KeyRing, "derive" | "named" | "refresh">;

export class Tickets {
  readonly #keys: Keys;
  readonly #clock: Pick<Clock, "now">;
  readonly #tokens: SignedTokens<Claims>;

  constructor(keys: Keys, clock: Pick<Clock, "now">) {
    this.#tokens = new SignedTokens(keys, "luxhub tickets", TICKET_MAX_CHARS);
    this.#keys = keys;
    this.#clock = clock;
  }

  async issue(grant: Grant, { keyId }: Pick<KeyRecord, "keyId">): Promise<Ticket> {
    const expires = Math.floor((this.#clock.now() + TICKET_LIFE_MS) / SECOND_MS);
    const fileId = grant.kind === "download" ? grant.fileId : "";
    const claims: Claims =
      grant.kind === "download"
        ? [grant.kind, expires, keyId]
        : [grant.kind, expires, keyId, crypto.randomUUID(), grant.nodeId, grant.taskId];
    const text = await this.#tokens.sign(claims, fileId);
    return { text, expiresAt: expires * SECOND_MS };
  }

  /** Null also if its key is no longer valid. */
  async redeem(text: string, { kind, fileId }: Asked): Promise<Redeemed | "expired" | null> {
    const signed = await this.#tokens.verify(text, fileId);
    if (signed === null) return null;
    const [grantedKind, expires, keyId, , nodeId = null, taskId = null] = signed.claims;
    if (grantedKind !== kind) return null;
    if (expires * SECOND_MS <= this.#clock.now()) return "expired";
    const key = await this.#validKey(keyId);
    const grant: Grant = kind === "download" ? { kind, fileId } : { kind, nodeId, taskId };
    return key && { grant, key: actingFor(key, nodeId), id: Bun.SHA256.hash(signed.mac, "hex") };
  }

  /** Another hub may know a new key earlier than this one. */
  async #validKey(keyId: string): Promise<KeyRecord | null> {
    const known = this.#keys.named(keyId);
    if (known) return known;
    await this.#keys.refresh();
    return this.#keys.named(keyId);
  }
}
