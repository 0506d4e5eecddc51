/**
 * Retention: counts and deletes expired rows. Both use the same conditions, which is why they are in one file.
 * Only the `limit` oldest rows of each table are read, so that a step is short however many rows there are. Rows that a
 * wrong clock dated later than now are skipped: their age is unknown, and they must not block the others.
 */
import type { DeliveryStub } from "../../domain/model.ts";
import type { Query, Row } from "../store.ts";
import type { Table } from "./conflict-keys.ts";
import { count, many } from "./query.ts";
import { toDeliveryStub } from "./rows.ts";
import { type Statement, customStatement, text, whole } from "./write-statement.ts";

/** Rows older than `before` (epoch ms), among the oldest `limit` of those not dated after `now`. */
export type OldRows = OldAnswers & { readonly now: number };
type OldAnswers = { readonly before: number; readonly limit: number };

const OLD_MESSAGES = `
  SELECT seq FROM (SELECT seq, sent_at FROM messages WHERE sent_at <= $3 ORDER BY seq LIMIT $2) AS oldest
  WHERE sent_at < $1`;

// The newest event stays for ever: the next id follows from it.
const OLD_EVENTS = `
  SELECT id FROM (SELECT id, at FROM events WHERE at <= $3 ORDER BY id LIMIT $2) AS oldest
  WHERE at < $1 AND id < (SELECT max(id) FROM events)`;

const OLD_ANSWERS = `SELECT scope FROM answers WHERE stored_at < $1 ORDER BY stored_at LIMIT $2`;

const LIMITS = [whole(({ before }: OldAnswers) => before), whole(({ limit }: OldAnswers) => limit)];

function prune(table: Table, where: string): Statement<OldRows> {
  const now = whole(({ now }: OldRows) => now);
  return customStatement(table, `DELETE FROM ${table} WHERE ${where}`, [...LIMITS, now]);
}

const OLD_DELIVERIES = `SELECT to_node, seq FROM messages WHERE to_node IS NOT NULL AND seq IN (${OLD_MESSAGES})`;
export const PRUNE_DELIVERIES = prune("deliveries", `(to_node, seq) IN (${OLD_DELIVERIES})`);

// A broadcast may have a delivery for each node, so the limit is on the number of deliveries, not of messages.
// Ordered, so that the same rows are counted and deleted.
const OLD_BROADCASTS = `
  SELECT to_node, seq FROM deliveries WHERE broadcast = 1 AND seq IN (${OLD_MESSAGES}) ORDER BY seq, to_node LIMIT $2`;
export const PRUNE_BROADCASTS = prune("deliveries", `(to_node, seq) IN (${OLD_BROADCASTS})`);
/** A message is deleted after the last of its deliveries. */
const REMOVABLE_MESSAGES = `seq IN (${OLD_MESSAGES})
    AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.broadcast = 1 AND d.seq = messages.seq)`;
export const PRUNE_MESSAGES = prune("messages", REMOVABLE_MESSAGES);
/** Before the messages: they are found through them. */
export const PRUNE_BROADCAST_COUNTS = prune(
  "broadcasts",
  `seq IN (${OLD_MESSAGES})
    AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.broadcast = 1 AND d.seq = broadcasts.seq)`,
);
export const PRUNE_EVENTS = prune("events", `id IN (${OLD_EVENTS})`);

/** Takes what the rows to be removed count off the usage of their nodes. */
function refund(table: Table, payer: string, where: string): Statement<OldRows> {
  const now = whole(({ now }: OldRows) => now);
  const freed = `
    SELECT ${payer} AS payer, CAST(sum(kept_bytes) AS BIGINT) AS bytes FROM ${table}
    WHERE kept_bytes > 0 AND ${where} GROUP BY ${payer}`;
  return customStatement(
    "quota_usage",
    `UPDATE quota_usage SET bytes = quota_usage.bytes - freed.bytes FROM (${freed}) AS freed
     WHERE quota_usage.node_id = freed.payer`,
    [...LIMITS, now],
  );
}

export const REFUND_MESSAGES = refund("messages", "from_node", REMOVABLE_MESSAGES);
export const REFUND_EVENTS = refund("events", "node_id", `id IN (${OLD_EVENTS})`);
export const PRUNE_ANSWERS = customStatement(
  "answers",
  `DELETE FROM answers WHERE scope IN (${OLD_ANSWERS})`,
  LIMITS,
);

type Evicted = { readonly keyId: string | null; readonly count: number };

const OLDEST_ANSWERS = `FROM answers ORDER BY stored_at, scope LIMIT`;
const OLDEST_ANSWERS_OF_KEY = `FROM answers WHERE key_id = $1 ORDER BY stored_at, scope LIMIT`;
const COUNT = whole(({ count }: Evicted) => count);
export const EVICT_OLDEST_ANSWERS = customStatement(
  "answers",
  `DELETE FROM answers WHERE scope IN (SELECT scope ${OLDEST_ANSWERS} $1)`,
  [COUNT],
);
export const EVICT_OLDEST_ANSWERS_OF_KEY = customStatement(
  "answers",
  `DELETE FROM answers WHERE scope IN (SELECT scope ${OLDEST_ANSWERS_OF_KEY} $2)`,
  [text(({ keyId }: Evicted) => keyId), COUNT],
);

/** The bytes of the oldest `limit` stored answers, of one key or of all (null), oldest first. */
export function oldestAnswers(keyId: string | null, limit: number): Query<readonly number[]> {
  const [from, params] =
    keyId === null ? [`${OLDEST_ANSWERS} $1`, [limit]] : [`${OLDEST_ANSWERS_OF_KEY} $2`, [keyId, limit]];
  return many(`SELECT bytes ${from}`, params, (row) => Number(row["bytes"]), ["answers"]);
}

/** The first key after `keyId` (null: of all) that has stored answers, and the bytes of these; null: there is none. */
export function nextAnswers(
  keyId: string | null,
): Query<{ readonly keyId: string; readonly bytes: number } | null> {
  const [where, params] = keyId === null ? ["", []] : ["WHERE key_id > $1", [keyId]];
  const sql = `
    SELECT key_id, sum(bytes) AS bytes FROM answers
    WHERE key_id = (SELECT min(key_id) FROM answers ${where}) GROUP BY key_id`;
  const of = (row: Row) => ({ keyId: String(row["key_id"]), bytes: Number(row["bytes"]) });
  return {
    sql,
    params,
    shape: ([row]) => (row ? of(row) : null),
    reads: ["answers"],
  };
}

export function oldMessages(old: OldRows): Query<number> {
  return counting(OLD_MESSAGES, old, ["messages"]);
}

/** What `deliveries.pruned` removes: deliveries of old broadcasts, or of old messages to one node. */
export function oldDeliveries(
  { before, limit, now }: OldRows,
  broadcast: boolean,
): Query<readonly DeliveryStub[]> {
  const sql = `
    SELECT m.message_id, m.from_node, d.seq, d.to_node AS delivered_to, d.state, d.deliveries, d.lease_until,
      d.broadcast
    FROM deliveries d JOIN messages m ON m.seq = d.seq
    WHERE (d.to_node, d.seq) IN (${broadcast ? OLD_BROADCASTS : OLD_DELIVERIES}) ORDER BY d.seq, d.to_node`;
  return many(sql, [before, limit, now], toDeliveryStub, ["deliveries", "messages"]);
}

export function oldEvents(old: OldRows): Query<number> {
  return counting(OLD_EVENTS, old, ["events"]);
}

export function oldAnswers({ before, limit }: OldAnswers): Query<number> {
  return count(`SELECT count(*) AS n FROM (${OLD_ANSWERS}) AS old`, [before, limit], ["answers"]);
}

function counting(rows: string, { before, limit, now }: OldRows, reads: readonly Table[]): Query<number> {
  return count(`SELECT count(*) AS n FROM (${rows}) AS old`, [before, limit, now], reads);
}
