/**
 * The key ring: finds a valid key by its secret, comparing hashes in constant time, and notifies the open calls and
 * streams of a key that was revoked or has expired.
 *
 * Other processes also write keys. The ring reloads them twice a second, so that a revoked key is refused within a second.
 * It looks up an unknown secret in the store, so that a new key is valid as soon as it is written.
 */
import { accept } from "../domain/decision.ts";
import {
  PRIMARY_ADMIN_KEY_ID,
  PRIMARY_KEY_ID,
  actingFor,
  addKey,
  isValid,
  revokeKey,
} from "../domain/key.ts";
import { KEY_LOOKUPS_MAX } from "../domain/limits.ts";
import type { KeyRecord } from "../domain/model.ts";
import { must } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import { makeSecret } from "../lib/ids.ts";
import { slowHash } from "../lib/slow-hash.ts";
import { allKeys, keysByHash } from "../store/sql/keys.ts";
import type { Committed, Store, Transact } from "../store/store.ts";
import { type Page, type PageRequest, pageOfAll } from "./list-pages.ts";
import { UseCases } from "./use-cases.ts";

export type PrimarySecrets = { readonly secret: string; readonly adminKey: string };

export type KeyHeader = "secret" | "admin";

type KeyDraft = Pick<KeyRecord, "keyId" | "role" | "variant" | "nodeId" | "mintMicro" | "expiresAt">;

/** `secret` is in plain text, and is not kept. */
export type NewKey = { readonly key: KeyRecord; readonly secret: string };

export class KeyRing extends UseCases {
  readonly #secret: string;
  readonly #primary: readonly KeyRecord[];
  #index: KeyIndex;
  /** By id. */
  readonly #holders = new Map<string, { readonly key: KeyRecord; readonly listeners: Set<() => void> }>();
  /** The lookup that has not begun. */
  #nextLookup: Lookup | null = null;
  #lastLookup: Promise<void> = Promise.resolve();

  /** @param onFault called when the keys cannot be read after a commit that changed one */
  constructor(store: Store, clock: Clock, secrets: PrimarySecrets, onFault: (error: unknown) => void) {
    super(store, clock);
    this.#secret = secrets.secret;
    this.#primary = primaryKeys(secrets);
    this.#index = indexed(this.#primary);
    store.onCommit((changes) => {
      if (changes.some(({ kind }) => kind === "key.saved")) this.refresh().catch(onFault);
    });
  }

  async refresh(): Promise<void> {
    try {
      const stored = await this.store.read(allKeys());
      this.#index = indexed(everyKey(this.#primary, stored));
    } finally {
      this.#notifyLosses(); // a key expires by the clock, also while the store cannot be read
    }
  }

  /**
   * Slow, so that the value does not help to guess the secret. Not from the hash of the secret: `luxhub keys pin`
   * stores that in the database.
   */
  derive(purpose: string, rounds: number, bytes: number): Promise<string> {
    return slowHash(this.#secret, purpose, rounds, bytes);
  }

  /** The primary ones first. */
  async list(request: PageRequest): Promise<Page<KeyRecord>> {
    return pageOfAll(request, everyKey(this.#primary, await this.store.read(allKeys())));
  }

  /** Valid or not, the primary ones too. */
  get all(): readonly KeyRecord[] {
    return [...this.#index.byId.values()];
  }

  with(stored: readonly KeyRecord[]): readonly KeyRecord[] {
    return everyKey(this.#primary, stored);
  }

  /** The secret is not kept. @param more what else the answer has @throws {Rejection} key_exists, keys_limit */
  add<More extends object>(
    transact: Transact<NewKey & More>,
    draft: KeyDraft,
    more: More,
  ): Promise<Committed<NewKey & More>> {
    const secret = makeSecret();
    const key = { ...draft, hash: hashSecret(secret), createdAt: this.clock.now(), revokedAt: null };
    return transact({ stored: allKeys() }, ({ stored }) => {
      const added = addKey(key, everyKey(this.#primary, stored));
      return added.kind === "accepted" ? accept({ key, secret, ...more }, added.changes) : added;
    });
  }

  /** @throws {Rejection} key_not_found */
  revoke(transact: Transact<KeyRecord>, keyId: string): Promise<Committed<KeyRecord>> {
    const now = this.clock.now();
    return transact({ stored: allKeys() }, ({ stored }) =>
      revokeKey(keyId, everyKey(this.#primary, stored), now),
    );
  }

  /** Once; at once if the key is lost already. Returns the way to unsubscribe. */
  hold(key: KeyRecord, onLoss: () => void): () => void {
    if (!this.isInForce(key)) {
      onLoss();
      return () => {};
    }
    const holders = this.#holders.get(key.keyId) ?? { key, listeners: new Set() };
    this.#holders.set(key.keyId, holders);
    holders.listeners.add(onLoss);
    return () => {
      holders.listeners.delete(onLoss);
      if (holders.listeners.size === 0 && this.#holders.get(key.keyId) === holders)
        this.#holders.delete(key.keyId);
    };
  }

  /** Null when this hub knows none. */
  named(keyId: string): KeyRecord | null {
    const key = this.#index.byId.get(keyId);
    return key && isValid(key, this.clock.now()) ? key : null;
  }

  /** Valid or not; null when this hub knows none. */
  recordOf(keyId: string): KeyRecord | null {
    return this.#index.byId.get(keyId) ?? null;
  }

  /**
   * The key was revoked or has expired, and so have all other keys of the node to which it was bound. `keyId` null: the
   * primary key, whose replacement has the same rights.
   */
  isRevoked(keyId: string | null, boundTo: string | null): boolean {
    const keys = this.all;
    const heirs =
      boundTo === null
        ? keys.filter((key) => key.keyId === keyId)
        : keys.filter((key) => actingFor(key, boundTo).nodeId === boundTo);
    return heirs.length > 0 && !heirs.some((key) => isValid(key, this.clock.now()));
  }

  /** The key as it acts in a request that names a node: for no session that is another key's node. */
  actingFor(key: KeyRecord, named: string | null): KeyRecord {
    const acting = actingFor(key, named);
    const isTaken = (): boolean => this.all.some(({ nodeId }) => nodeId === acting.nodeId);
    return acting.nodeId !== key.nodeId && isTaken() ? actingFor(key, null) : acting;
  }

  isInForce({ keyId, hash }: KeyRecord): boolean {
    const current = this.#index.byId.get(keyId);
    return current?.hash === hash && isValid(current, this.clock.now());
  }

  #notifyLosses(): void {
    for (const { key, listeners } of this.#holders.values()) {
      if (this.isInForce(key)) continue;
      this.#holders.delete(key.keyId);
      for (const onLoss of listeners) onLoss();
    }
  }

  find(secret: string, header: KeyHeader): KeyRecord | null {
    // The timing of the prefix lookup reveals nothing about the secret; the comparison that decides is constant-time.
    Bun.SHA256.hash(secret, HASH);
    for (const { key, bytes } of this.#index.byPrefix.get(prefixOf(HASH)) ?? []) {
      if ((key.role === "admin") !== (header === "admin") || !crypto.timingSafeEqual(HASH, bytes)) continue;
      return isValid(key, this.clock.now()) ? key : null;
    }
    return null;
  }

  /**
   * Another process may just have written the key. One query at a time looks up all secrets that arrived meanwhile.
   * Beyond KEY_LOOKUPS_MAX secrets a key is unknown until the next refresh.
   * @throws {StoreUnavailable} and the other errors of the store: nobody can say whether there is such a key
   */
  async findNew(secret: string, header: KeyHeader): Promise<KeyRecord | null> {
    const lookup = (this.#nextLookup ??= this.#planLookup());
    if (lookup.hashes.size >= KEY_LOOKUPS_MAX) return null;
    lookup.hashes.add(hashSecret(secret));
    await lookup.done;
    return this.find(secret, header);
  }

  #planLookup(): Lookup {
    const hashes = new Set<string>();
    const done = this.#lastLookup.then(() => {
      this.#nextLookup = null; // a later caller may look for a key that is written after this query
      return this.#lookUp([...hashes]);
    });
    this.#lastLookup = done.catch(() => {}); // those who wait for it report its error
    return { hashes, done };
  }

  async #lookUp(hashes: readonly string[]): Promise<void> {
    const stored = await this.store.read(keysByHash(hashes));
    if (stored.some((key) => isValid(key, this.clock.now()))) await this.refresh();
  }
}

type Lookup = { readonly hashes: Set<string>; readonly done: Promise<void> };

/** Generated secrets have 192 random bits, so a slow hash would add nothing. */
export function hashSecret(secret: string): string {
  return Bun.SHA256.hash(secret, "hex");
}

export function primaryKeys({ secret, adminKey }: Partial<PrimarySecrets>): readonly KeyRecord[] {
  const base = {
    variant: null,
    nodeId: null,
    mintMicro: null,
    createdAt: 0,
    expiresAt: null,
    revokedAt: null,
  };
  const keys: KeyRecord[] = [];
  if (secret !== undefined) {
    keys.push({ ...base, keyId: PRIMARY_KEY_ID, role: "full", hash: hashSecret(secret) });
  }
  if (adminKey !== undefined) {
    keys.push({ ...base, keyId: PRIMARY_ADMIN_KEY_ID, role: "admin", hash: hashSecret(adminKey) });
  }
  return keys;
}

/**
 * A stored row with a primary key's id and hash replaces it: so a primary key can be pinned, expired or revoked. With a
 * new secret the primary key is valid again.
 */
export function everyKey(primary: readonly KeyRecord[], stored: readonly KeyRecord[]): readonly KeyRecord[] {
  const current = primary.map(
    (key) => stored.find((other) => other.keyId === key.keyId && other.hash === key.hash) ?? key,
  );
  return [...current, ...stored.filter((other) => !primary.some((key) => key.keyId === other.keyId))];
}

type KeyIndex = {
  readonly byId: ReadonlyMap<string, KeyRecord>;
  /** By the first two bytes of the hash. */
  readonly byPrefix: ReadonlyMap<number, readonly { readonly key: KeyRecord; readonly bytes: Uint8Array }[]>;
};

/** Reused for each hash; safe because find() is synchronous. */
const HASH = new Uint8Array(32);

function indexed(keys: readonly KeyRecord[]): KeyIndex {
  const hashed = keys.map((key) => ({ key, bytes: Uint8Array.fromHex(key.hash) }));
  return {
    byId: new Map(keys.map((key) => [key.keyId, key])),
    byPrefix: Map.groupBy(hashed, ({ bytes }) => prefixOf(bytes)),
  };
}

const HASHED = "the hash of a key is a SHA-256";

function prefixOf(hash: Uint8Array): number {
  return must(hash[0], HASHED) * 256 + must(hash[1], HASHED);
}
