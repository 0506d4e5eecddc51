/** The reads of the mailboxes, in the SQL that SQLite 3.35+ and PostgreSQL 15+ share. */
import {
  ANSWER_UNCOUNTED_MAX_BYTES,
  MESSAGES_ANSWER_MAX_BYTES,
  WAITING_PART_MAX,
} from "../../domain/limits.ts";
import type { Registered } from "../../domain/message.ts";
import type { Delivery, DeliveryStub, Message } from "../../domain/model.ts";
import type { Query, Row } from "../store.ts";
import { type ConflictKey, keyOf } from "./conflict-keys.ts";
import { type Sized, byKey, filledUp, many, one, places, query, rowsBySeq, sizes } from "./query.ts";
import { toDelivery, toDeliveryStub, toMessage } from "./rows.ts";

const MAIL_READ: readonly ConflictKey[] = ["deliveries", "messages"];

const MESSAGE_HEAD = `m.message_id, m.from_node, m.to_node, m.type, m.require_ack, m.sent_at`;
const MESSAGE = `${MESSAGE_HEAD}, m.content`;
const DELIVERY = `d.seq, d.to_node AS delivered_to, d.state, d.deliveries, d.lease_until`;

// A subquery reads the seqs, which the index of waiting deliveries covers. If it read whole rows, SQLite would scan all
// deliveries that the node ever got. CROSS JOIN makes SQLite go from these few messages to their deliveries.
const delivered = (seqs: string, content = "m.content"): string => `
  SELECT ${MESSAGE_HEAD}, ${content} AS content, ${DELIVERY} FROM messages m CROSS JOIN deliveries d
  WHERE m.seq IN (${seqs}) AND d.seq = m.seq AND d.to_node = $1
  ORDER BY m.seq`;
const WAITING_SEQS = `SELECT seq FROM deliveries WHERE to_node = $1 AND state = 'waiting' ORDER BY seq LIMIT $2`;
/**
 * The oldest waiting deliveries whose contents fit into one answer; always at least one. Only the lengths of the
 * others' contents, which may be 256 MiB together, are read.
 */
const WAITING = byKey(
  ["text", "bigint"],
  delivered(`
  SELECT seq FROM (
    SELECT seq, sum(bytes) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
    FROM (SELECT seq, octet_length(content) AS bytes FROM messages WHERE seq IN (${WAITING_SEQS})) AS measured
  ) AS sized WHERE bytes_before < ${MESSAGES_ANSWER_MAX_BYTES}`),
  true,
);
/**
 * A content larger than its share of a small answer ($3) is NULL, unless all contents together make a small answer. The
 * sum is computed only when there is such a content. Its subquery has a LIMIT, so that SQLite reads only the lengths.
 */
const IF_SMALL = delivered(
  WAITING_SEQS,
  `CASE WHEN octet_length(m.content) <= $3 THEN m.content
    WHEN (
      SELECT sum(bytes) FROM (
        SELECT octet_length(content) AS bytes FROM messages WHERE seq IN (${WAITING_SEQS}) LIMIT $2) AS measured
    ) <= ${ANSWER_UNCOUNTED_MAX_BYTES} THEN m.content END`,
);

const WAITING_IF_SMALL = byKey(["text", "bigint", "bigint"], IF_SMALL, true);

/** The waiting deliveries of a node, oldest first: at most `limit`, and no more content than one answer carries. */
export function waitingDeliveries(nodeId: string, limit: number): Query<readonly Delivery[]> {
  return many(WAITING, [nodeId, limit], toDelivery, [keyOf.mailbox(nodeId)]);
}

/** The same, if they make a small answer; else null, and then large contents are not read. */
export function waitingDeliveriesIfSmall(nodeId: string, limit: number): Query<readonly Delivery[] | null> {
  return query(
    WAITING_IF_SMALL,
    [nodeId, limit, Math.floor(ANSWER_UNCOUNTED_MAX_BYTES / limit)],
    (rows) => (rows.some((row) => row["content"] === null) ? null : rows.map(toDelivery)),
    [keyOf.mailbox(nodeId)],
  );
}

/** A count of some waiting deliveries of a node, and the seq of the last one counted. */
export type WaitingPart = { readonly count: number; readonly last: number };

const WAITING_PART = byKey(
  ["text", "bigint"],
  `SELECT count(*) AS n, max(seq) AS last FROM (
    SELECT seq FROM deliveries WHERE to_node = $1 AND state = 'waiting' AND seq > $2 ORDER BY seq LIMIT ${WAITING_PART_MAX}
  ) AS part`,
);

/** Counts the waiting deliveries of a node after a seq (0: from the first), up to WAITING_PART_MAX. */
export function waitingPart(nodeId: string, after: number): Query<WaitingPart> {
  const shape: Query<WaitingPart>["shape"] = ([row]) => ({
    count: Number(row?.["n"]),
    last: Number(row?.["last"] ?? after),
  });
  return query(WAITING_PART, [nodeId, after], shape, [keyOf.mailbox(nodeId)]);
}

const MAILBOX_OWNER = byKey(["text"], `SELECT node_id FROM nodes WHERE node_id = $1`);

/** The owner of a mailbox; null when no node has this id. Reads only an index. */
export function mailboxOwner(nodeId: string): Query<Registered | null> {
  const toOwner = (row: Row): Registered => ({ nodeId: String(row["node_id"]) });
  return one(MAILBOX_OWNER, [nodeId], toOwner, [keyOf.registration(nodeId)]);
}

/** The deliveries of these messages to one node. */
export function deliveriesOf(nodeId: string, seqs: readonly number[]): Query<readonly DeliveryStub[]> {
  const filled = filledUp(seqs);
  const sql = `
    SELECT m.message_id, ${DELIVERY} FROM deliveries d JOIN messages m ON m.seq = d.seq
    WHERE d.to_node = $1 AND d.seq IN (${places(filled, 2)})`;
  return many(sql, [nodeId, ...filled], toDeliveryStub, [keyOf.mailbox(nodeId)]);
}

const DELIVERY_OF = byKey(
  ["text", "text"],
  `SELECT m.message_id, ${DELIVERY} FROM deliveries d JOIN messages m ON m.seq = d.seq
    WHERE m.message_id = $1 AND d.to_node = $2`,
);

export function deliveryOf(messageId: string, nodeId: string): Query<DeliveryStub | null> {
  return one(DELIVERY_OF, [messageId, nodeId], toDeliveryStub, [keyOf.mailbox(nodeId)]);
}

export function expiredDeliveries(steady: number, limit: number): Query<readonly DeliveryStub[]> {
  const sql = `
    SELECT m.message_id, ${DELIVERY} FROM deliveries d JOIN messages m ON m.seq = d.seq
    WHERE d.state = 'leased' AND d.lease_until <= $1 ORDER BY d.lease_until LIMIT $2`;
  return many(sql, [steady, limit], toDeliveryStub, MAIL_READ);
}

/** A message with its number in order of arrival. */
export type PlacedMessage = { readonly message: Message; readonly seq: number };

const MESSAGE_BY_ID = byKey(["text"], `SELECT m.seq, ${MESSAGE} FROM messages m WHERE m.message_id = $1`);

export function messageById(messageId: string): Query<PlacedMessage | null> {
  return one(MESSAGE_BY_ID, [messageId], toPlaced, [keyOf.message(messageId)]);
}

/** The sizes of the messages that a node sent or got, newest first. */
export function historySizes(nodeId: string, limit: number): Query<readonly Sized[]> {
  const seqs = `
    SELECT seq FROM (
      SELECT seq FROM (SELECT seq FROM messages WHERE from_node = $1 ORDER BY seq DESC LIMIT $2) AS sent
      UNION SELECT seq FROM (SELECT seq FROM deliveries WHERE to_node = $1 ORDER BY seq DESC LIMIT $2) AS got
    ) AS hits ORDER BY seq DESC LIMIT $2`;
  return sizes(messageSizes(seqs, "DESC"), [nodeId, limit], MAIL_READ);
}

/** The sizes of the messages that a node got: newest first; with `since`, oldest first after this seq. */
export function mailboxSizes(nodeId: string, since: number | null, limit: number): Query<readonly Sized[]> {
  const order = since === null ? "DESC" : "ASC";
  const seqs = `SELECT seq FROM deliveries WHERE to_node = $1 AND seq > $3 ORDER BY seq ${order} LIMIT $2`;
  return sizes(messageSizes(seqs, order), [nodeId, limit, since ?? 0], MAIL_READ);
}

function messageSizes(seqs: string, order: "ASC" | "DESC"): string {
  return `
    SELECT seq, octet_length(content) AS bytes FROM messages WHERE seq IN (${seqs}) ORDER BY seq ${order}`;
}

/** Newest first. */
export function messagesBySeq(seqs: readonly number[]): Query<readonly Message[]> {
  return rowsBySeq(`SELECT ${MESSAGE} FROM messages m`, seqs, "seq DESC", toMessage, ["messages"]);
}

/** The unique id of this database, made with it and never changed. */
export function databaseId(): Query<string> {
  return query("SELECT database_id FROM identity", [], ([row]) => String(row?.["database_id"]), ["identity"]);
}

function toPlaced(row: Parameters<typeof toMessage>[0]): PlacedMessage {
  return { message: toMessage(row), seq: Number(row["seq"]) };
}
