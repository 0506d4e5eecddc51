/**
 * Keys: who may speak to the hub (specification 5, decisions.md Keys).
 * A key is known by the SHA-256 of its secret; the secret itself is shown once, when it is made.
 */
import type { KeyRecord } from "./model.ts";

/** The ids of the two keys that come from the environment or the data directory. */
export const PRIMARY_KEY_ID = "primary";
export const PRIMARY_ADMIN_KEY_ID = "primary-admin";

/** Neither revoked nor expired. */
export function isValid(key: KeyRecord, now: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || key.expiresAt > now);
}
