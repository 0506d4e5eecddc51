/** The reads, writes and facts of the mailboxes. */
import {
  ANSWER_UNCOUNTED_MAX_BYTES,
  MESSAGES_ANSWER_MAX_BYTES,
  THREAD_SCANNED_MAX,
  WAITING_PART_MAX,
} from "../../domain/limits.ts";
import type { Registered, UnfinishedBroadcast } from "../../domain/message.ts";
import type { Change } from "../../domain/change.ts";
import type { Delivery, DeliveryStub, Message, MessageFate } from "../../domain/model.ts";
import type { Query, Row } from "../store.ts";
import { type ConflictKey, keyOf } from "./conflict-keys.ts";
import {
  type Sized,
  type Slice,
  always,
  byKey,
  count,
  many,
  one,
  padded,
  placeholders,
  query,
  sizes,
  countRows,
} from "./query.ts";
import { toDelivery, toDeliveryStub, toMessage } from "./rows.ts";
import type { Columns } from "./table.ts";
import { BROADCASTS, DELIVERIES, MESSAGES } from "./tables.ts";
import type { Of, Write, Writes } from "./write.ts";
import {
  type Statement,
  add,
  added,
  customStatement,
  drop,
  insert,
  text,
  update,
  upsert,
  whole,
} from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

const MAIL_READ: readonly ConflictKey[] = ["deliveries", "messages"];
const HISTORY_READ: readonly ConflictKey[] = [...MAIL_READ, "publications"];

const MESSAGE_HEAD = `
  m.message_id, m.from_node, m.to_node, m.type, m.require_ack, m.reply_to, m.thread, m.verified, m.sent_at`;
const MESSAGE = `${MESSAGE_HEAD}, m.content`;
const DELIVERY = `d.seq, d.to_node AS delivered_to, d.state, d.deliveries, d.lease_until, d.broadcast`;
const STUB = `m.message_id, m.from_node, ${DELIVERY}`;

/** A broadcast is invisible until all its deliveries are written. */
const UNFINISHED = `SELECT seq FROM broadcasts WHERE write_until IS NOT NULL`;
const IS_WHOLE = `seq NOT IN (${UNFINISHED})`;
/** For readers with a cursor: the cursor must not pass an unfinished broadcast. */
const IS_SETTLED = `seq < (SELECT coalesce(min(seq), ${Number.MAX_SAFE_INTEGER}) FROM (${UNFINISHED}) AS unfinished)`;

// A subquery reads the seqs, which the index of waiting deliveries covers. If it read whole rows, SQLite would scan all
// deliveries that the node ever got. CROSS JOIN makes SQLite go from these few messages to their deliveries.
const delivered = (seqs: string, content = "m.content"): string => `
  SELECT ${MESSAGE_HEAD}, ${content} AS content, ${DELIVERY} FROM messages m CROSS JOIN deliveries d
  WHERE m.seq IN (${seqs}) AND d.seq = m.seq AND d.to_node = $1
  ORDER BY m.seq`;
const waitingSeqs = (condition: string): string => `
  SELECT seq FROM deliveries WHERE to_node = $1 AND state = 'waiting' AND ${condition} ORDER BY seq LIMIT $2`;
const WAITING_SEQS = waitingSeqs(IS_WHOLE);
/**
 * The oldest waiting deliveries whose contents fit into one answer; always at least one. Only the lengths of the
 * others' contents, which may be 256 MiB together, are read.
 */
const fitting = (seqs: string): string => `
  SELECT seq FROM (
    SELECT seq, sum(bytes) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
    FROM (SELECT seq, octet_length(content) AS bytes FROM messages WHERE seq IN (${seqs})) AS measured
  ) AS sized WHERE bytes_before < $3`;
const WAITING = byKey(["text", "bigint", "bigint"], delivered(fitting(WAITING_SEQS)), true);
const WAITING_AFTER = delivered(fitting(waitingSeqs(`seq > $4 AND ${IS_WHOLE}`)));
/**
 * A content larger than its share of a small answer ($3) is NULL, unless all contents together make a small answer. The
 * sum is computed only when there is such a content. Its subquery has a LIMIT, so that SQLite reads only the lengths.
 */
const SMALL_CONTENT = `
  CASE WHEN octet_length(m.content) <= $3 THEN m.content
    WHEN (
      SELECT sum(bytes) FROM (
        SELECT octet_length(content) AS bytes FROM messages WHERE seq IN (${WAITING_SEQS}) LIMIT $2) AS measured
    ) <= ${ANSWER_UNCOUNTED_MAX_BYTES} THEN m.content END`;
const IF_SMALL = delivered(WAITING_SEQS, SMALL_CONTENT);

const WAITING_IF_SMALL = byKey(["text", "bigint", "bigint"], IF_SMALL, true);
/** Differs because SQLite needs no temporary table for it: a short mailbox takes a third of the time. */
const IF_SMALL_ON_SQLITE = `
  SELECT ${MESSAGE_HEAD}, ${SMALL_CONTENT} AS content, ${DELIVERY}
  FROM deliveries d INDEXED BY deliveries_waiting CROSS JOIN messages m
  WHERE d.to_node = $1 AND d.state = 'waiting' AND m.seq = d.seq
    AND NOT EXISTS (SELECT 1 FROM broadcasts b WHERE b.seq = d.seq AND b.write_until IS NOT NULL)
  ORDER BY d.seq LIMIT $2`;

/** Oldest first: no further content once there are `bytes`. */
export function waitingDeliveries(
  nodeId: string,
  limit: number,
  bytes: number = MESSAGES_ANSWER_MAX_BYTES,
): Query<readonly Delivery[]> {
  return {
    ...many(WAITING, [nodeId, limit, bytes], toDelivery, mailboxReads(nodeId)),
    patch: (waiting, change) => patchWaiting(waiting, change, limit, bytes),
  };
}

/** As waitingDeliveries() returns them. */
export function waitingAfter(
  nodeId: string,
  after: number,
  limit: number,
  bytes: number,
): Query<readonly Delivery[]> {
  return many(WAITING_AFTER, [nodeId, limit, bytes, after], toDelivery, mailboxReads(nodeId));
}

const mailboxReads = (nodeId: string): readonly ConflictKey[] => [keyOf.mailbox(nodeId), "publications"];

/** Null: they make no small response; large contents are not read. */
export function waitingDeliveriesIfSmall(nodeId: string, limit: number): Query<readonly Delivery[] | null> {
  const shape = (rows: readonly Row[]): readonly Delivery[] | null =>
    rows.some((row) => row["content"] === null) ? null : rows.map(toDelivery);
  const params = [nodeId, limit, Math.floor(ANSWER_UNCOUNTED_MAX_BYTES / limit)];
  return {
    ...query(WAITING_IF_SMALL, params, shape, mailboxReads(nodeId)),
    onSqlite: { sql: IF_SMALL_ON_SQLITE, params },
    patch: (waiting, change) =>
      waiting === null ? undefined : patchWaiting(waiting, change, limit, Infinity),
  };
}

/**
 * Undefined when others may wait that are not known.
 * `limit` and `bytes` are those of the query.
 */
function patchWaiting(
  waiting: readonly Delivery[],
  change: Change,
  limit: number,
  bytes: number,
): readonly Delivery[] | undefined {
  if (change.kind === "delivery.queued") return waiting.length === limit ? waiting : undefined; // it is the newest
  if (change.kind !== "delivery.moved" || change.state === "waiting") return undefined;
  const remaining = waiting.filter(({ message }) => message.messageId !== change.messageId);
  if (remaining.length === waiting.length) return waiting;
  let known = 0;
  for (const { message } of waiting) known += Buffer.byteLength(message.content);
  const areAll = waiting.length < limit && known < bytes;
  return areAll ? remaining : undefined;
}

/** `last`: the seq of the last one counted. */
export type WaitingPart = { readonly count: number; readonly last: number };

const WAITING_PART = byKey(
  ["text", "bigint"],
  `SELECT count(*) AS n, max(seq) AS last FROM (
    SELECT seq FROM deliveries WHERE to_node = $1 AND state = 'waiting' AND seq > $2 AND ${IS_WHOLE}
    ORDER BY seq LIMIT ${WAITING_PART_MAX}
  ) AS part`,
);

/** After a seq (0: from the first), up to WAITING_PART_MAX. */
export function waitingPart(nodeId: string, after: number): Query<WaitingPart> {
  const part = ({ n, last }: Row): WaitingPart => ({ count: Number(n), last: Number(last ?? after) });
  return always(WAITING_PART, [nodeId, after], part, mailboxReads(nodeId));
}

const MAILBOX_OWNER = byKey(["text"], `SELECT node_id FROM nodes WHERE node_id = $1 AND deleted = 0`);

/** Reads only an index. */
export function mailboxOwner(nodeId: string): Query<Registered | null> {
  const toOwner = (row: Row): Registered => ({ nodeId: String(row["node_id"]) });
  return one(MAILBOX_OWNER, [nodeId], toOwner, [keyOf.registration(nodeId)]);
}

const EMPTY_MAILBOX = byKey(
  ["text"],
  `SELECT 1 AS one FROM nodes WHERE node_id = $1 AND deleted = 0
    AND NOT EXISTS (SELECT 1 FROM deliveries WHERE to_node = $1 AND state = 'waiting')`,
);

export function hasEmptyMailbox(nodeId: string): Query<boolean> {
  const reads = [keyOf.registration(nodeId), keyOf.mailbox(nodeId)];
  return query(EMPTY_MAILBOX, [nodeId], (rows) => rows.length > 0, reads);
}

export function deliveriesOf(nodeId: string, seqs: readonly number[]): Query<readonly DeliveryStub[]> {
  const filled = padded(seqs);
  const sql = `
    SELECT ${STUB} FROM deliveries d JOIN messages m ON m.seq = d.seq
    WHERE d.to_node = $1 AND d.seq IN (${placeholders(filled, 2)})`;
  return many(sql, [nodeId, ...filled], toDeliveryStub, [keyOf.mailbox(nodeId)]);
}

const DELIVERY_OF = byKey(
  ["text", "text"],
  `SELECT ${STUB} FROM deliveries d JOIN messages m ON m.seq = d.seq
    WHERE m.message_id = $1 AND d.to_node = $2`,
);

export function deliveryOf(messageId: string, nodeId: string): Query<DeliveryStub | null> {
  return {
    ...one(DELIVERY_OF, [messageId, nodeId], toDeliveryStub, [keyOf.mailbox(nodeId)]),
    patch: (stub, change) => {
      if (change.kind !== "delivery.moved" && change.kind !== "delivery.queued") return undefined;
      if (change.messageId !== messageId) return stub;
      if (stub === null || change.kind === "delivery.queued") return undefined;
      const { state, deliveries, leaseUntil } = change;
      return { ...stub, state, deliveries, leaseUntil };
    },
  };
}

export function expiredDeliveries(steady: number, limit: number): Query<readonly DeliveryStub[]> {
  const sql = `
    SELECT ${STUB} FROM deliveries d JOIN messages m ON m.seq = d.seq
    WHERE d.state = 'leased' AND d.lease_until <= $1 ORDER BY d.lease_until LIMIT $2`;
  return many(sql, [steady, limit], toDeliveryStub, MAIL_READ);
}

export type PlacedMessage = { readonly message: Message; readonly seq: number };

const MESSAGE_BY_ID = byKey(["text"], `SELECT m.seq, ${MESSAGE} FROM messages m WHERE m.message_id = $1`);

export function messageById(messageId: string): Query<PlacedMessage | null> {
  return one(MESSAGE_BY_ID, [messageId], toPlaced, [keyOf.message(messageId)]);
}

/** Exclusive; null is no bound. */
export type Between = { readonly since: number | null; readonly before: number | null };

/** Newest first; with `thread`, those of this thread, among its newest THREAD_SCANNED_MAX. */
export function historySizes(
  nodeId: string,
  before: number | null,
  limit: number,
  thread: string | null = null,
): Query<readonly Sized[]> {
  const params = [nodeId, limit, before ?? Number.MAX_SAFE_INTEGER];
  if (thread !== null) return sizes(messageSizes(SEQS_OF_THREAD, "DESC"), [...params, thread], HISTORY_READ);
  const newest = (rows: string): string =>
    `SELECT seq FROM ${rows} = $1 AND seq < $3 AND ${IS_WHOLE} ORDER BY seq DESC LIMIT $2`;
  const seqs = `
    SELECT seq FROM (
      SELECT seq FROM (${newest("messages WHERE from_node")}) AS sent
      UNION SELECT seq FROM (${newest("deliveries WHERE to_node")}) AS got
    ) AS hits ORDER BY seq DESC LIMIT $2`;
  return sizes(messageSizes(seqs, "DESC"), params, HISTORY_READ);
}

/** The first message of a thread is known by its id, the others by the column. */
const SEQS_OF_THREAD = `
  SELECT seq FROM (
    SELECT seq FROM (
      SELECT seq FROM messages WHERE thread = $4 AND seq < $3 ORDER BY seq DESC LIMIT ${THREAD_SCANNED_MAX}) AS named
    UNION SELECT seq FROM messages WHERE message_id = $4 AND seq < $3
  ) AS hits
  WHERE ${IS_WHOLE} AND (
    EXISTS (SELECT 1 FROM messages own WHERE own.seq = hits.seq AND own.from_node = $1)
    OR EXISTS (SELECT 1 FROM deliveries got WHERE got.seq = hits.seq AND got.to_node = $1))
  ORDER BY seq DESC LIMIT $2`;

/** Newest first; with `since`, oldest first after this seq. */
export function mailboxSizes(
  nodeId: string,
  { since, before }: Between,
  limit: number,
): Query<readonly Sized[]> {
  const order = since === null ? "DESC" : "ASC";
  const seqs = `
    SELECT seq FROM deliveries WHERE to_node = $1 AND seq > $3 AND seq < $4 AND ${IS_SETTLED}
    ORDER BY seq ${order} LIMIT $2`;
  const params = [nodeId, limit, since ?? 0, before ?? Number.MAX_SAFE_INTEGER];
  return sizes(messageSizes(seqs, order), params, HISTORY_READ);
}

function messageSizes(seqs: string, order: "ASC" | "DESC"): string {
  return `
    SELECT seq, octet_length(content) AS bytes FROM messages WHERE seq IN (${seqs}) ORDER BY seq ${order}`;
}

const PARKED = `deliveries WHERE to_node = $1 AND state = 'parked'`;

export function parkedCount(nodeId: string): Query<number> {
  return count(`SELECT count(*) AS n FROM ${PARKED}`, [nodeId], ["deliveries"]);
}

/** Counted up to `limit`. */
export function allParkedCount(limit: number): Query<number> {
  const parked = `SELECT 1 AS one FROM deliveries WHERE state = 'parked' LIMIT $1`;
  return countRows(parked, [limit], ["deliveries"]);
}

/** Oldest first, as parkedSizes(). */
export function allParkedSizes({ from, limit, offset }: Slice): Query<readonly Sized[]> {
  const order = from === "newest" ? "ASC" : "DESC";
  const seqs = `SELECT seq FROM deliveries WHERE state = 'parked' ORDER BY seq ${order} LIMIT $1 OFFSET $2`;
  return sizes(messageSizes(seqs, "ASC"), [limit, offset], MAIL_READ);
}

/** Among the oldest `scanned` of these messages. */
export function parkedByNode(
  scanned: number,
  limit: number,
): Query<readonly { readonly nodeId: string; readonly count: number }[]> {
  const sql = `
    SELECT to_node, count(*) AS n FROM (
      SELECT to_node FROM deliveries WHERE state = 'parked' ORDER BY seq LIMIT $1) AS parked
    GROUP BY to_node ORDER BY n DESC, to_node LIMIT $2`;
  const of = (row: Row) => ({ nodeId: String(row["to_node"]), count: Number(row["n"]) });
  return many(sql, [scanned, limit], of, ["deliveries"]);
}

/** Oldest first: here the slice's "newest" end is the oldest. */
export function parkedSizes(nodeId: string, { from, limit, offset }: Slice): Query<readonly Sized[]> {
  const order = from === "newest" ? "ASC" : "DESC";
  const seqs = `SELECT seq FROM ${PARKED} ORDER BY seq ${order} LIMIT $2 OFFSET $3`;
  return sizes(messageSizes(seqs, "ASC"), [nodeId, limit, offset], MAIL_READ);
}

const readFate = DELIVERIES.reader("state", "deliveries");
const readRecipients = BROADCASTS.reader("waiting", "delivered", "acked");

const toMessageFate = (row: Row): MessageFate => ({
  message: toMessage(row),
  delivery: row["state"] === null ? null : readFate(row),
  recipients: row["waiting"] === null ? null : readRecipients(row),
});

/** As one node may see them. */
export function messageFates(
  nodeId: string,
  seqs: readonly number[],
  order: "newest first" | "oldest first",
): Query<readonly MessageFate[]> {
  const filled = padded(seqs);
  const sql = `
    SELECT ${MESSAGE}, d.state, d.deliveries, b.waiting, b.delivered, b.acked FROM messages m
    LEFT JOIN deliveries d ON d.seq = m.seq AND d.to_node = coalesce(m.to_node, $1)
    LEFT JOIN broadcasts b ON b.seq = m.seq AND m.from_node = $1
    WHERE m.seq IN (${placeholders(filled, 2)}) ORDER BY m.seq ${order === "newest first" ? "DESC" : "ASC"}`;
  return many(sql, [nodeId, ...filled], toMessageFate, [...MAIL_READ, "broadcasts"]);
}

/** Null: it is finished or was dropped. */
export function unfinishedBroadcast(messageId: string): Query<UnfinishedBroadcast | null> {
  const sql = `
    SELECT m.message_id, b.seq, b.write_until FROM messages m JOIN broadcasts b ON b.seq = m.seq
    WHERE m.message_id = $1 AND b.write_until IS NOT NULL`;
  return one(sql, [messageId], toUnfinished, ["publications"]);
}

export function lateBroadcast(steady: number): Query<UnfinishedBroadcast | null> {
  const sql = `
    SELECT m.message_id, b.seq, b.write_until FROM broadcasts b JOIN messages m ON m.seq = b.seq
    WHERE b.write_until <= $1 ORDER BY b.seq LIMIT 1`;
  return one(sql, [steady], toUnfinished, ["publications"]);
}

function toUnfinished(row: Row): UnfinishedBroadcast {
  return {
    messageId: String(row["message_id"]),
    seq: Number(row["seq"]),
    writeUntil: Number(row["write_until"]),
  };
}

/** Counted up to `limit`. */
export function queuedDeliveries(seq: number, limit: number): Query<number> {
  return countRows(`SELECT 1 AS one FROM deliveries WHERE seq = $1 LIMIT $2`, [seq, limit], ["deliveries"]);
}

/** Made with the database and never changed. */
export function databaseId(): Query<string> {
  return always("SELECT database_id FROM identity", [], (row) => String(row["database_id"]), ["identity"]);
}

function toPlaced(row: Parameters<typeof toMessage>[0]): PlacedMessage {
  return { message: toMessage(row), seq: Number(row["seq"]) };
}

const seqOf = (id: string): string => `(SELECT seq FROM messages WHERE message_id = ${id})`;
const MESSAGE_SEQ: Columns<{ readonly messageId: string }> = {
  seq: text(({ messageId }) => messageId, seqOf),
};

/** After its message. */
const OF_DELIVERY: Pick<
  Write<{ readonly toNode: string; readonly messageId: string }>,
  "row" | "keys" | "after"
> = {
  row: ({ toNode, messageId }) => keyOf.delivery(toNode, messageId),
  keys: ({ toNode }) => [keyOf.mailbox(toNode)],
  after: ({ messageId }) => keyOf.message(messageId),
};

const queueBroadcast = (messageId: string, toNodes: string, from: string): string => `
  INSERT INTO deliveries (seq, to_node, state, deliveries, broadcast)
  SELECT ${seqOf(messageId)}, ${toNodes}, 'waiting', 0, 1 FROM ${from}`;
/** One statement for all recipients, who are a JSON array. Differs because each engine reads JSON in its own way. */
const QUEUE_BROADCAST: Statement<Of<"deliveries.queued">, "deliveries"> = {
  ...customStatement("deliveries", queueBroadcast("$1", "value", "json_each($2)"), [
    text(({ messageId }) => messageId),
    text(({ toNodes }) => JSON.stringify(toNodes)),
  ]),
  bulk: (rows) => queueBroadcast("p.a1", "json_array_elements_text(p.a2::json)", rows),
};

export const MESSAGE_WRITES = {
  "message.stored": {
    row: ({ message }) => keyOf.message(message.messageId),
    statement: add(MESSAGES, ({ message, keptBytes }) => ({ ...message, keptBytes })),
  },
  "message.charged": {
    row: ({ messageId }) => keyOf.message(messageId),
    statement: update(
      "messages",
      MESSAGES.set((change) => change, "message_id"),
      MESSAGES.set((change) => change, "kept_bytes"),
    ),
  },
  "delivery.queued": {
    ...OF_DELIVERY,
    statement: insert("deliveries", {
      ...MESSAGE_SEQ,
      to_node: text(({ toNode }) => toNode),
      state: "'waiting'",
      deliveries: "0",
      broadcast: "0",
    }),
  },
  "deliveries.queued": { isSweep: true, statement: QUEUE_BROADCAST },
  "delivery.moved": {
    ...OF_DELIVERY,
    statement: update(
      "deliveries",
      DELIVERIES.set((change) => change, "seq", "to_node"),
      DELIVERIES.set((change) => change, "state", "deliveries", "lease_until"),
    ),
  },
  "message.removed": {
    row: ({ messageId }) => keyOf.message(messageId),
    statement: drop(MESSAGES, ["message_id"]),
  },
  "broadcast.saved": {
    row: ({ messageId }) => keyOf.broadcastOf(messageId),
    keys: () => ["publications"],
    after: ({ messageId }) => keyOf.message(messageId),
    statement: upsert(
      "broadcasts",
      MESSAGE_SEQ,
      BROADCASTS.set((change) => change, "write_until", "waiting"),
      { delivered: "0", acked: "0" },
    ),
  },
  // A broadcast is invisible, so its counts cannot change, before the batch that publishes it is sent.
  "broadcast.tallied": {
    row: ({ seq }) => keyOf.broadcast(seq),
    statement: update(
      "broadcasts",
      BROADCASTS.set((change) => change, "seq"),
      {
        waiting: whole(({ waiting }) => waiting, added),
        delivered: whole(({ delivered }) => delivered, added),
        acked: whole(({ acked }) => acked, added),
      },
    ),
    sum: (earlier, later) => ({
      ...later,
      waiting: earlier.waiting + later.waiting,
      delivered: earlier.delivered + later.delivered,
      acked: earlier.acked + later.acked,
    }),
  },
  "broadcast.trimmed": {
    isSweep: true,
    frees: true,
    statement: customStatement(
      "deliveries",
      `DELETE FROM deliveries WHERE (seq, to_node) IN (
        SELECT seq, to_node FROM deliveries WHERE seq = $1 ORDER BY to_node LIMIT $2)`,
      [whole(({ seq }) => seq), whole(({ limit }) => limit)],
    ),
  },
  "broadcast.removed": {
    row: ({ seq }) => keyOf.broadcast(seq),
    keys: () => ["publications"],
    statement: drop(BROADCASTS, ["seq"]),
  },
  "delivery.leases.renewed": {
    isSweep: true,
    statement: customStatement(
      "deliveries",
      `UPDATE deliveries SET lease_until = $1 WHERE state = 'leased'`,
      [whole(({ leaseUntil }) => leaseUntil)],
    ),
  },
  "broadcasts.abandoned": {
    isSweep: true,
    statement: customStatement(
      "broadcasts",
      `UPDATE broadcasts SET write_until = 0 WHERE write_until IS NOT NULL`,
      [],
    ),
  },
} satisfies Partial<Writes>;

export const MESSAGE_FACTS: readonly Fact[] = [
  {
    name: "messages",
    holds: "every message has a delivery, and every delivery has a message",
    sql: `
      SELECT 'a delivery to ' || to_node || ' has no message' FROM deliveries d
      WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.seq = d.seq)
      UNION ALL
      SELECT 'message ' || message_id || ' has no delivery' FROM messages m
      WHERE to_node IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.to_node = m.to_node AND d.seq = m.seq)
      LIMIT ${SHOWN}`,
  },
  {
    name: "broadcasts",
    holds: "every broadcast's counts equal those of its deliveries",
    sql: `
      SELECT 'broadcast ' || m.message_id || ' has no count' FROM messages m
      WHERE m.to_node IS NULL AND m.seq NOT IN (SELECT seq FROM broadcasts)
      UNION ALL
      SELECT 'broadcast ' || b.seq || ': its counts differ from its deliveries' FROM broadcasts b
      LEFT JOIN deliveries d ON d.seq = b.seq
      WHERE b.write_until IS NULL
      GROUP BY b.seq, b.waiting, b.delivered, b.acked
      HAVING b.waiting <> coalesce(sum(d.state = 'waiting'), 0)
        OR b.delivered <> coalesce(sum(d.state = 'gone'), 0) OR b.acked <> coalesce(sum(d.state = 'acked'), 0)
        OR b.seq NOT IN (SELECT seq FROM messages WHERE to_node IS NULL)
      LIMIT ${SHOWN}`,
  },
];
