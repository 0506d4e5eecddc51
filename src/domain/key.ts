/**
 * Keys: who may speak to the hub (specification 5, decisions.md Keys).
 * A key is known by the SHA-256 of its secret; the secret itself is shown once, when it is made.
 */
import type { VariantName } from "./node.ts";

/** secret: X-Matrix-Secret. admin: X-Admin-Key. */
export type KeyRole = "secret" | "admin";

export type KeyRecord = {
  /** A name that the operator chose. */
  readonly keyId: string;
  readonly role: KeyRole;
  /** Lower-case hex SHA-256 of the secret. */
  readonly hash: string;
  /** Requests with this key are answered in this variant on any listener. */
  readonly variant: VariantName | null;
  /** The key acts for this node only. */
  readonly nodeId: string | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
};

/** The ids of the two keys that come from the environment or the data directory. */
export const PRIMARY_KEY_ID = "primary";
export const PRIMARY_ADMIN_KEY_ID = "primary-admin";

/** Neither revoked nor expired. */
export function isValid(key: KeyRecord, now: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || key.expiresAt > now);
}
