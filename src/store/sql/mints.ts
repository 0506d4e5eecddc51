/** The reads of what keys have promised as rewards (domain/mint.ts). */
import type { Minted } from "../../domain/model.ts";
import type { Query } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { byKey, query } from "./query.ts";

const MINTED = byKey(["text", "bigint"], `SELECT micro FROM mints WHERE key_id = $1 AND day = $2`);

/** What a key has promised on a UTC day. */
export function mintedBy(keyId: string, day: number): Query<Minted> {
  const shape: Query<Minted>["shape"] = ([row]) => ({ keyId, day, micro: Number(row?.["micro"] ?? 0) });
  return query(MINTED, [keyId, day], shape, [keyOf.mint(keyId, day)]);
}
