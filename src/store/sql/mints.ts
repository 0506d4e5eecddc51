/** The reads and writes of what keys have promised as rewards (domain/mint.ts). */
import type { Minted } from "../../domain/model.ts";
import type { Query } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { byKey, query } from "./query.ts";
import { MINTS } from "./tables.ts";
import type { Writes } from "./write.ts";
import { tally } from "./write-statement.ts";

const MINTED = byKey(["text", "bigint"], `SELECT micro FROM mints WHERE key_id = $1 AND day = $2`);

export function mintedBy(keyId: string, day: number): Query<Minted> {
  const shape: Query<Minted>["shape"] = ([row]) => ({ keyId, day, micro: Number(row?.["micro"] ?? 0) });
  return query(MINTED, [keyId, day], shape, [keyOf.mint(keyId, day)]);
}

export const MINT_WRITES = {
  "lux.minted": {
    row: ({ keyId, day }) => keyOf.mint(keyId, day),
    statement: tally(MINTS, (change) => change),
    sum: (earlier, later) => ({ ...earlier, micro: earlier.micro + later.micro }),
  },
} satisfies Partial<Writes>;
