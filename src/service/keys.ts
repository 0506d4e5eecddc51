/**
 * The key ring: finds a valid key by its secret. The periodic work refreshes it from the store, so that what another
 * process does to keys (adds, pins, revokes) takes effect without a restart.
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
  /** By the first two bytes of the hash. */
  #byPrefix: KeyIndex;

  constructor(store: Store, clock: Clock, secrets: PrimarySecrets) {
    this.#store = store;
    this.#clock = clock;
    this.#primary = primaryKeys(secrets);
    this.#byPrefix = indexed(this.#primary);
  }

  /** Reads the keys again. */
  async refresh(): Promise<void> {
    const stored = await this.#store.read(allKeys());
    this.#byPrefix = indexed(everyKey(this.#primary, stored));
  }

  /** The valid key of this role with this secret. */
  find(secret: string, role: KeyRole): KeyRecord | null {
    // The timing of the prefix lookup reveals nothing about the secret; the comparison that decides is constant-time.
    Bun.SHA256.hash(secret, HASH);
    for (const { key, bytes } of this.#byPrefix.get(prefixOf(HASH)) ?? []) {
      if (key.role !== role || !crypto.timingSafeEqual(HASH, bytes)) continue;
      return isValid(key, this.#clock.now()) ? key : null;
    }
    return null;
  }
}

/** Lower-case hex SHA-256. Generated secrets have 192 random bits, so a slow hash would add nothing. */
export function hashSecret(secret: string): string {
  return Bun.SHA256.hash(secret, "hex");
}

/** The key records of the secrets the hub was started with. */
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
 * The stored keys and the primary keys. A stored row with a primary key's id and hash replaces it: so a primary key can be
 * pinned, expired or revoked. With a new secret the primary key is valid again.
 */
export function everyKey(primary: readonly KeyRecord[], stored: readonly KeyRecord[]): readonly KeyRecord[] {
  const current = primary.map(
    (key) => stored.find((other) => other.keyId === key.keyId && other.hash === key.hash) ?? key,
  );
  return [...current, ...stored.filter((other) => !primary.some((key) => key.keyId === other.keyId))];
}

type KeyIndex = ReadonlyMap<number, readonly { readonly key: KeyRecord; readonly bytes: Uint8Array }[]>;

/** Reused for each hash; safe because find() is synchronous. */
const HASH = new Uint8Array(32);

function indexed(keys: readonly KeyRecord[]): KeyIndex {
  const hashed = keys.map((key) => ({ key, bytes: Uint8Array.fromHex(key.hash) }));
  return Map.groupBy(hashed, ({ bytes }) => prefixOf(bytes));
}

function prefixOf(hash: Uint8Array): number {
  return (hash[0] ?? 0) * 256 + (hash[1] ?? 0);
}
