/**
 * Key rules: who may call the hub (specification 5). The hub stores the SHA-256 of a secret; the secret itself is shown
 * once, when it is made.
 */
import type { KeyRecord } from "./model.ts";

/** The ids of the two keys that come from the environment or the data directory. */
export const PRIMARY_KEY_ID = "primary";
export const PRIMARY_ADMIN_KEY_ID = "primary-admin";

/** Neither revoked nor expired. */
export function isValid(key: KeyRecord, now: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || key.expiresAt > now);
}
