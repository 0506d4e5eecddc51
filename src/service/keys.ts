/**
 * The keys that are valid now, found by the hash of their secret. Read from the store again and again, so that a key
 * that was added, pinned or revoked by another process holds without a restart.
 */
import { PRIMARY_ADMIN_KEY_ID, PRIMARY_KEY_ID, isValid } from "../domain/key.ts";
import type { KeyRecord, KeyRole } from "../domain/model.ts";
import type { Clock } from "../lib/clock.ts";
import { allKeys } from "../store/sql/keys.ts";
import type { Store } from "../store/store.ts";

/** The two secrets that the hub was started with. */
export type PrimarySecrets = { readonly secret: string; readonly adminKey: string };

export class KeyRing {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #primary: readonly KeyRecord[];
  #byStart: KeyIndex;

  constructor(store: Store, clock: Clock, secrets: PrimarySecrets) {
    this.#store = store;
    this.#clock = clock;
    this.#primary = primaryKeys(secrets);
    this.#byStart = indexed(this.#primary);
  }

  /** Reads the keys again. A stored row of a primary key's id replaces it: so it can be pinned, expired or revoked. */
  async refresh(): Promise<void> {
    const stored = await this.#store.read(allKeys());
    this.#byStart = indexed(everyKey(this.#primary, stored));
  }

  /** The valid key of this role with this secret. */
  find(secret: string, role: KeyRole): KeyRecord | null {
    // Where a hash starts tells an attacker nothing of the secret; the comparison that decides takes constant time.
    Bun.SHA256.hash(secret, HASH);
    for (const { key, bytes } of this.#byStart.get(startOf(HASH)) ?? []) {
      if (key.role !== role || !crypto.timingSafeEqual(HASH, bytes)) continue;
      return isValid(key, this.#clock.now()) ? key : null;
    }
    return null;
  }
}

/** Lower-case hex SHA-256. Made secrets carry 192 random bits, so that a slow hash would add nothing. */
export function hashSecret(secret: string): string {
  return Bun.SHA256.hash(secret, "hex");
}

/** The records that stand for the secrets the hub was started with, of those that are known. */
export function primaryKeys({ secret, adminKey }: Partial<PrimarySecrets>): readonly KeyRecord[] {
  const base = { variant: null, nodeId: null, createdAt: 0, expiresAt: null, revokedAt: null };
  const keys: KeyRecord[] = [];
  if (secret !== undefined) {
    keys.push({ ...base, keyId: PRIMARY_KEY_ID, role: "secret", hash: hashSecret(secret) });
  }
  if (adminKey !== undefined) {
    keys.push({ ...base, keyId: PRIMARY_ADMIN_KEY_ID, role: "admin", hash: hashSecret(adminKey) });
  }
  return keys;
}

/**
 * The stored keys and the primary ones. A stored row stands for a primary key as long as the secret is the same: so a
 * primary key can be pinned, expired or revoked, and one with a new secret starts afresh.
 */
export function everyKey(primary: readonly KeyRecord[], stored: readonly KeyRecord[]): readonly KeyRecord[] {
  const current = primary.map(
    (key) => stored.find((other) => other.keyId === key.keyId && other.hash === key.hash) ?? key,
  );
  return [...current, ...stored.filter((other) => !primary.some((key) => key.keyId === other.keyId))];
}

type KeyIndex = ReadonlyMap<number, readonly { readonly key: KeyRecord; readonly bytes: Uint8Array }[]>;

/** Where a secret is hashed to; read before the next is. */
const HASH = new Uint8Array(32);

function indexed(keys: readonly KeyRecord[]): KeyIndex {
  const hashed = keys.map((key) => ({ key, bytes: Uint8Array.fromHex(key.hash) }));
  return Map.groupBy(hashed, ({ bytes }) => startOf(bytes));
}

function startOf(hash: Uint8Array): number {
  return (hash[0] ?? 0) * 256 + (hash[1] ?? 0);
}
