/**
 * The keys that are valid now, found by the hash of their secret. Read from the store again and again, so that a key
 * that was added, pinned or revoked by another process holds without a restart.
 */
import {
  type KeyRecord,
  type KeyRole,
  PRIMARY_ADMIN_KEY_ID,
  PRIMARY_KEY_ID,
  isValid,
} from "../domain/key.ts";
import type { Clock } from "../lib/clock.ts";
import { allKeys } from "../store/queries.ts";
import type { Store } from "../store/store.ts";

/** The two secrets that the hub was started with. */
export type PrimarySecrets = { readonly secret: string; readonly adminKey: string };

export class KeyRing {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #primary: readonly KeyRecord[];
  #byHash: ReadonlyMap<string, KeyRecord>;

  constructor(store: Store, clock: Clock, secrets: PrimarySecrets) {
    this.#store = store;
    this.#clock = clock;
    this.#primary = primaryKeys(secrets);
    this.#byHash = indexed(this.#primary);
  }

  /** Reads the keys again. A stored row of a primary key's id replaces it: so it can be pinned, expired or revoked. */
  async refresh(): Promise<void> {
    const stored = await this.#store.read(allKeys());
    this.#byHash = indexed([...this.#primary, ...stored]);
  }

  /** The valid key of this role with this secret. */
  find(secret: string, role: KeyRole): KeyRecord | null {
    const hash = hashSecret(secret);
    // Looking up a hash tells an attacker nothing of the secret; the comparison that decides takes constant time.
    const key = this.#byHash.get(hash);
    if (!key || key.role !== role || !crypto.timingSafeEqual(Buffer.from(hash), Buffer.from(key.hash))) return null;
    return isValid(key, this.#clock.now()) ? key : null;
  }
}

/** Lower-case hex SHA-256. Made secrets carry 192 random bits, so that a slow hash would add nothing. */
export function hashSecret(secret: string): string {
  return Bun.SHA256.hash(secret, "hex");
}

/** The records that stand for the secrets the hub was started with. */
export function primaryKeys({ secret, adminKey }: PrimarySecrets): readonly [KeyRecord, KeyRecord] {
  const base = { variant: null, nodeId: null, createdAt: 0, expiresAt: null, revokedAt: null };
  return [
    { ...base, keyId: PRIMARY_KEY_ID, role: "secret", hash: hashSecret(secret) },
    { ...base, keyId: PRIMARY_ADMIN_KEY_ID, role: "admin", hash: hashSecret(adminKey) },
  ];
}

function indexed(keys: readonly KeyRecord[]): ReadonlyMap<string, KeyRecord> {
  return new Map(keys.map((key) => [key.hash, key]));
}
