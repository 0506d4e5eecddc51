/**
 * Retention: counts and deletes expired rows. Both use the same conditions, which is why they are in one file.
 * Only the `limit` oldest rows of each table are read, so that a step is short however many rows there are. Rows that a
 * wrong clock dated later than now are skipped: their age is unknown, and they must not block the others.
 */
import type { Change } from "../../domain/change.ts";
import { ANSWERS_TRIMMED_MIN, ANSWER_MIN_BYTES } from "../../domain/limits.ts";
import type { DeliveryStub, FileRecord } from "../../domain/model.ts";
import type { Query, Row } from "../store.ts";
import type { Table } from "./conflict-keys.ts";
import { NO_ROWS, always, many, padded, placeholders, countRows } from "./query.ts";
import { toDeliveryStub, toFile } from "./rows.ts";
import { IN_REVIEW } from "./tasks.ts";
import { type Statement, customStatement, text, whole } from "./write-statement.ts";
import { keyOf } from "./conflict-keys.ts";
import { ANSWERS } from "./tables.ts";
import type { Writes } from "./write.ts";
import { save } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

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

const OLD_ANSWERS = `SELECT scope FROM answers WHERE stored_at < $1 ORDER BY stored_at, scope LIMIT $2`;

const LIMITS = [whole(({ before }: OldAnswers) => before), whole(({ limit }: OldAnswers) => limit)];

type UncachedTable = "deliveries" | "messages" | "broadcasts" | "events";

function prune(table: UncachedTable, where: string): Statement<OldRows, UncachedTable> {
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

/** Takes what the removed rows count off the usage of their nodes. */
function refund(table: Table, payer: string, where: string): Statement<OldRows, "quota_usage"> {
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
export const REFUND_EVENTS = refund("events", "coalesce(kept_by, node_id)", `id IN (${OLD_EVENTS})`);
export const PRUNE_ANSWERS = customStatement(
  "answers",
  `DELETE FROM answers WHERE scope IN (${OLD_ANSWERS})`,
  LIMITS,
);

type Trimmed = Pick<Change & { readonly kind: "answers.trimmed" }, "keyId" | "maxBytes" | "storedBytes">;

/**
 * Deletes the oldest stored answers of a table expression `of`, beyond $1 bytes of `total`: at most $2 answers, and
 * roughly $3 bytes, so that a step is short. It reads no answer while there are no more bytes.
 */
const trim = (of: string, total: string): string => `
  DELETE FROM answers WHERE scope IN (
    SELECT scope FROM (
      SELECT scope, sum(bytes) OVER (ORDER BY stored_at, scope) - bytes AS older FROM (
        SELECT scope, stored_at, bytes FROM ${of} ORDER BY stored_at, scope
        LIMIT CASE WHEN ${total} > CAST($1 AS BIGINT) THEN CAST($2 AS BIGINT) ELSE 0 END) AS oldest) AS summed
    WHERE older < ${total} - CAST($1 AS BIGINT) AND older < CAST($3 AS BIGINT))`;
const LIMITS_OF_TRIM = [
  whole(({ maxBytes }: Trimmed) => maxBytes),
  // Each stored answer has ANSWER_MIN_BYTES or more, so that this many have at least the bytes that the commit stores.
  whole(({ storedBytes }: Trimmed) => ANSWERS_TRIMMED_MIN + Math.ceil(storedBytes / ANSWER_MIN_BYTES)),
  whole(({ storedBytes }: Trimmed) => 2 * storedBytes),
];
export const TRIM_ANSWERS = customStatement(
  "answers",
  trim("answers", "(SELECT coalesce(sum(bytes), 0) FROM answer_totals)"),
  LIMITS_OF_TRIM,
);
export const TRIM_ANSWERS_OF_KEY = customStatement(
  "answers",
  trim("answers WHERE key_id = $4", "(SELECT bytes FROM answer_totals WHERE key_id = $4)"),
  [...LIMITS_OF_TRIM, text(({ keyId }: Trimmed) => keyId)],
);

/** A key whose stored answers have more bytes than `maxBytes` (null: none has), and whether all together have too many. */
export function excessAnswers(
  maxBytes: number,
  maxBytesOfAll: number,
): Query<{ readonly keyId: string | null; readonly isTooMany: boolean }> {
  const sql = `
    SELECT (SELECT min(key_id) FROM answer_totals WHERE bytes > $1) AS key_id,
      CASE WHEN (SELECT coalesce(sum(bytes), 0) FROM answer_totals) > $2 THEN 1 ELSE 0 END AS too_many`;
  const excess = (row: Row) => ({
    keyId: row["key_id"] == null ? null : String(row["key_id"]),
    isTooMany: row["too_many"] === 1,
  });
  return always(sql, [maxBytes, maxBytesOfAll], excess, ["answers", "answer_totals"]);
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
  return countRows(OLD_ANSWERS, [before, limit], ["answers"]);
}

function counting(rows: string, { before, limit, now }: OldRows, reads: readonly Table[]): Query<number> {
  return countRows(rows, [before, limit, now], reads);
}

// ---- Finished tasks and files (service/retention.ts)

/** It may be old enough to be deleted. */
export type Aged = {
  readonly seq: number;
  readonly id: string;
  /** Of a file. */
  readonly taskId: string | null;
  readonly createdAt: number;
  /** When its retention began; null: it is kept for another reason. */
  readonly endedAt: number | null;
  readonly hasDependents: boolean;
};

function toAged(row: Row): Aged {
  const taskId = row["task_id"];
  const endedAt = row["ended_at"];
  return {
    seq: Number(row["seq"]),
    id: String(row["id"]),
    taskId: taskId == null ? null : String(taskId),
    createdAt: Number(row["created_at"]),
    endedAt: endedAt == null ? null : Number(endedAt),
    hasDependents: Number(row["has_dependents"]) === 1,
  };
}

const AGED_TASK = `seq, task_id AS id, NULL AS task_id, created_at, updated_at AS ended_at, has_dependents`;

/** Those that have a retention of their own, or hold a unique key, have no end. */
export function finishedFrom(
  status: "completed" | "failed",
  now: number,
  from: number,
  limit: number,
): Query<readonly Aged[]> {
  const isKept = `retain_ms IS NOT NULL OR unique_until > $4`;
  const ended = `CASE WHEN ${isKept} THEN NULL ELSE updated_at END AS ended_at`;
  const sql = `SELECT ${AGED_TASK.replace("updated_at AS ended_at", ended)} FROM task_rows
    WHERE status = $1 AND seq > $2 ORDER BY seq LIMIT $3`;
  return many(sql, [status, from, limit, now], toAged, ["tasks"]);
}

export type PastRetention = Aged & { readonly retainUntil: number };

export type RetentionPlace = Pick<PastRetention, "retainUntil" | "seq">;

/** Without those that hold a unique key. */
export function pastTheirRetention(
  now: number,
  from: RetentionPlace,
  limit: number,
): Query<readonly PastRetention[]> {
  const sql = `
    SELECT seq, task_id AS id, NULL AS task_id, created_at, t.updated_at AS ended_at, has_dependents, f.retain_until
    FROM task_features f CROSS JOIN tasks t
    WHERE f.retain_until <= $1 AND f.retain_until >= $2 AND (f.retain_until > $2 OR f.task_seq > $3)
      AND (f.unique_until IS NULL OR f.unique_until <= $1) AND t.seq = f.task_seq
    ORDER BY f.retain_until, f.task_seq LIMIT $4`;
  const toPast = (row: Row): PastRetention => ({ ...toAged(row), retainUntil: Number(row["retain_until"]) });
  return many(sql, [now, from.retainUntil, from.seq, limit], toPast, ["tasks"]);
}

/** A task depends on it that is unfinished, or whose result waits for its review. */
export function dependedOn(taskIds: readonly string[]): Query<readonly string[]> {
  if (taskIds.length === 0) return NO_ROWS;
  const ids = padded(taskIds);
  const hasDependent = (which: string): string =>
    `EXISTS (SELECT 1 FROM task_rows d WHERE d.${which} AND d.depends_on LIKE '%' || t.task_id || '%')`;
  const sql = `
    SELECT t.task_id FROM tasks t WHERE t.task_id IN (${placeholders(ids)})
      AND (${hasDependent("status IN ('open', 'assigned')")} OR ${hasDependent(IN_REVIEW)})`;
  return many(sql, ids, (row) => String(row["task_id"]), ["tasks"]);
}

export function filesOf(taskIds: readonly string[]): Query<readonly FileRecord[]> {
  const ids = padded(taskIds);
  const sql = `SELECT * FROM files WHERE task_id IN (${placeholders(ids)})`;
  return many(sql, ids, toFile, ["files"]);
}

export function filesFrom(from: number, limit: number): Query<readonly Aged[]> {
  const sql = `
    SELECT f.seq, f.file_id AS id, f.task_id, f.uploaded_at AS created_at, 0 AS has_dependents,
      CASE WHEN t.task_id IS NULL THEN f.uploaded_at
        WHEN t.status IN ('completed', 'failed') AND t.updated_at > f.uploaded_at THEN t.updated_at
        WHEN t.status IN ('completed', 'failed') THEN f.uploaded_at END AS ended_at
    FROM files f LEFT JOIN tasks t ON t.task_id = f.task_id WHERE f.seq > $1 ORDER BY f.seq LIMIT $2`;
  return many(sql, [from, limit], toAged, ["files", "tasks"]);
}

export const RETENTION_WRITES = {
  "answer.stored": {
    row: ({ answer }) => keyOf.answer(answer.scope),
    // Not an insert: an expired answer may not be deleted yet.
    statement: save(ANSWERS, ({ answer }) => answer),
  },
  "answers.shifted": {
    isSweep: true,
    statement: customStatement(
      "answers",
      `UPDATE answers SET stored_at = stored_at + $3 WHERE stored_at > $1 AND stored_at <= $2`,
      [whole(({ after }) => after), whole(({ upTo }) => upTo), whole(({ movedMs }) => movedMs)],
    ),
  },
  "broadcasts.pruned": { isSweep: true, frees: true, statement: PRUNE_BROADCAST_COUNTS },
  "deliveries.pruned": {
    isSweep: true,
    frees: true,
    statement: PRUNE_DELIVERIES,
    instead: ({ broadcast }) => (broadcast ? PRUNE_BROADCASTS : null),
  },
  "messages.refunded": { cache: (rows) => rows.clearUsage(), isSweep: true, statement: REFUND_MESSAGES },
  "messages.pruned": { isSweep: true, frees: true, statement: PRUNE_MESSAGES },
  "events.refunded": { cache: (rows) => rows.clearUsage(), isSweep: true, statement: REFUND_EVENTS },
  "events.pruned": { isSweep: true, frees: true, statement: PRUNE_EVENTS },
  "answers.pruned": { isSweep: true, frees: true, statement: PRUNE_ANSWERS },
  // Once for all answers of a key that a group stores. It leaves the newest, which the group may read.
  "answers.trimmed": {
    frees: "alone", // beside a new answer it makes room only for that
    row: ({ keyId }) => keyOf.answersOf(keyId),
    after: ({ scope }) => keyOf.answer(scope),
    statement: TRIM_ANSWERS,
    instead: ({ keyId }) => (keyId === null ? null : TRIM_ANSWERS_OF_KEY),
    sum: (earlier, later) => ({ ...later, storedBytes: earlier.storedBytes + later.storedBytes }),
  },
} satisfies Partial<Writes>;

export const ANSWER_FACTS: readonly Fact[] = [
  {
    name: "answers",
    holds: "the totals of the stored answers are their bytes",
    sql: `
      SELECT 'the answers of a key have ' || counted.bytes || ' bytes, and not ' || coalesce(said.bytes, 0)
      FROM (SELECT key_id, sum(bytes) AS bytes FROM answers GROUP BY key_id) counted
      LEFT JOIN answer_totals said USING (key_id) WHERE counted.bytes <> coalesce(said.bytes, 0)
      UNION ALL
      SELECT 'a key has no answers, and not ' || bytes || ' bytes' FROM answer_totals
      WHERE bytes <> 0 AND key_id NOT IN (SELECT key_id FROM answers)
      LIMIT ${SHOWN}`,
  },
];
