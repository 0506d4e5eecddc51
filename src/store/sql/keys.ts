/** The reads and writes of keys and of stored answers (idempotency). */
import type { KeyRecord } from "../../domain/model.ts";
import { soundKey } from "../../domain/sound.ts";
import type { Query, Row } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { byKey, padded, many, one, placeholders } from "./query.ts";
import { ANSWERS, KEYS } from "./tables.ts";
import type { Writes } from "./write.ts";
import { save } from "./write-statement.ts";

const readKey = KEYS.reader();

/** A full key is stored as "secret". */
function toKey(row: Row): KeyRecord {
  const role = String(row["role"]);
  // Only the rules write it.
  return soundKey({ ...readKey(row), role: role === "secret" ? "full" : (role as KeyRecord["role"]) });
}

export function allKeys(): Query<readonly KeyRecord[]> {
  return many(`SELECT * FROM keys ORDER BY created_at, key_id`, [], toKey, ["keys"]);
}

/** Lower-case hex. */
export function keysByHash(hashes: readonly string[]): Query<readonly KeyRecord[]> {
  const params = padded(hashes);
  return many(`SELECT * FROM keys WHERE hash IN (${placeholders(params)})`, params, toKey, ["keys"]);
}

/** `asked` is the hash of the request. */
export type PastAnswer = { readonly asked: string; readonly status: number; readonly body: string };

const toAnswer = ANSWERS.reader("body_hash", "status", "body");
const STORED_ANSWER = byKey(
  ["text", "bigint"],
  `SELECT ${toAnswer.list} FROM answers WHERE scope = $1 AND stored_at > $2`,
);

export function storedAnswer(scope: string, notBefore: number): Query<PastAnswer | null> {
  return one(STORED_ANSWER, [scope, notBefore], toAnswer, [keyOf.answer(scope)]);
}

export const KEY_WRITES = {
  "key.saved": {
    row: ({ key }) => keyOf.key(key.keyId),
    statement: save(KEYS, ({ key }) => key, ["role", "created_at"]),
  },
} satisfies Partial<Writes>;
