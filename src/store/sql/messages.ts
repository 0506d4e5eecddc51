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
import { type Sized, byKey, filledUp, many, one, places, query, toSized } from "./query.ts";
import { toDelivery, toDeliveryStub, toMessage } from "./rows.ts";

const MAIL_READ: readonly ConflictKey[] = ["deliveries", "messages"];

const MESSAGE_HEAD = `m.message_id, m.from_node, m.to_node, m.type, m.require_ack, m.sent_at`;
const MESSAGE = `${MESSAGE_HEAD}, m.content`;
const DELIVERY = `d.seq, d.to_node AS delivered_to, d.state, d.deliveries, d.lease_until`;

// The seqs first, by themselves: they are all in the index of what waits. Asked for whole rows, SQLite would rather walk
// through all that the node ever got. CROSS, for it to go from these few to their deliveries and not the other way.
const delivered = (seqs: string, content = "m.content"): string => `
  SELECT ${MESSAGE_HEAD}, ${content} AS content, ${DELIVERY} FROM messages m CROSS JOIN deliveries d
  WHERE m.seq IN (${seqs}) AND d.seq = m.seq AND d.to_node = $1
  ORDER BY m.seq`;
const WAITING_SEQS = `SELECT seq FROM deliveries WHERE to_node = $1 AND state = 'waiting' ORDER BY seq LIMIT $2`;
const WAITING = byKey(["text", "bigint"], delivered(WAITING_SEQS), true);
const WAITING_MEASURED = byKey(["text", "bigint"], delivered(oneAnswerOf(WAITING_SEQS, "ASC")), true);
/**
 * Without the contents that pass their share of a small answer ($3), if all together pass it. That is looked at only when
 * one does; and in a list of its own, with a limit, for SQLite to look at the lengths alone.
 */
const LIGHT = delivered(
  WAITING_SEQS,
  `CASE WHEN octet_length(m.content) <= $3 THEN m.content
    WHEN (
      SELECT sum(bytes) FROM (
        SELECT octet_length(content) AS bytes FROM messages WHERE seq IN (${WAITING_SEQS}) LIMIT $2) AS measured
    ) <= ${ANSWER_UNCOUNTED_MAX_BYTES} THEN m.content END`,
);

const WAITING_LIGHT = byKey(["text", "bigint", "bigint"], LIGHT, true);

/** This many messages of the largest size stay under MESSAGES_ANSWER_MAX_BYTES without being measured. */
const UNMEASURED_MAX = 32;

/** What waits for a node, oldest first: at most `limit` messages, and at most one answer's worth of content. */
export function waitingDeliveries(nodeId: string, limit: number): Query<readonly Delivery[]> {
  const read = limit <= UNMEASURED_MAX ? WAITING : WAITING_MEASURED;
  return many(read, [nodeId, limit], toDelivery, [keyOf.mailbox(nodeId)]);
}

/**
 * What waits for a node, as waitingDeliveries(), if all of it makes a small answer; null if not. What is too large for
 * that is not read: its length stands beside it.
 */
export function lightDeliveries(nodeId: string, limit: number): Query<readonly Delivery[] | null> {
  return query(
    WAITING_LIGHT,
    [nodeId, limit, Math.floor(ANSWER_UNCOUNTED_MAX_BYTES / limit)],
    (rows) => (rows.some((row) => row["content"] === null) ? null : rows.map(toDelivery)),
    [keyOf.mailbox(nodeId)],
  );
}

/** A part of what waits for a node: how many, and the place in the order of the last of them. */
export type WaitingPart = { readonly count: number; readonly last: number };

const WAITING_PART = byKey(
  ["text", "bigint"],
  `SELECT count(*) AS n, max(seq) AS last FROM (
    SELECT seq FROM deliveries WHERE to_node = $1 AND state = 'waiting' AND seq > $2 ORDER BY seq LIMIT ${WAITING_PART_MAX}
  ) AS part`,
);

/** Counts what waits for a node after a place in the order (0: from its beginning), up to WAITING_PART_MAX of it. */
export function waitingPart(nodeId: string, after: number): Query<WaitingPart> {
  const shape: Query<WaitingPart>["shape"] = ([row]) => ({
    count: Number(row?.["n"]),
    last: Number(row?.["last"] ?? after),
  });
  return query(WAITING_PART, [nodeId, after], shape, [keyOf.mailbox(nodeId)]);
}

const MAILBOX_OWNER = byKey(["text"], `SELECT node_id FROM nodes WHERE node_id = $1`);

/** Whose mailbox it is; null when nobody is registered under this id. It reads one index, and nothing of the node. */
export function mailboxOwner(nodeId: string): Query<Registered | null> {
  const toOwner = (row: Row): Registered => ({ nodeId: String(row["node_id"]) });
  return one(MAILBOX_OWNER, [nodeId], toOwner, [keyOf.registration(nodeId)]);
}

/** The deliveries to one node of certain messages. */
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

/** A message and its place in the order of arrival. */
export type PlacedMessage = { readonly message: Message; readonly seq: number };

const MESSAGE_BY_ID = byKey(["text"], `SELECT m.seq, ${MESSAGE} FROM messages m WHERE m.message_id = $1`);

export function messageById(messageId: string): Query<PlacedMessage | null> {
  return one(MESSAGE_BY_ID, [messageId], toPlaced, [keyOf.message(messageId)]);
}

/** What a node sent or got, newest first, measured: at most `limit` messages, and one answer's worth of content. */
export function history(nodeId: string, limit: number): Query<readonly Sized[]> {
  const seqs = `
    SELECT seq FROM (
      SELECT seq FROM (SELECT seq FROM messages WHERE from_node = $1 ORDER BY seq DESC LIMIT $2) AS sent
      UNION SELECT seq FROM (SELECT seq FROM deliveries WHERE to_node = $1 ORDER BY seq DESC LIMIT $2) AS got
    ) AS hits ORDER BY seq DESC LIMIT $2`;
  return many(measured(seqs, "DESC"), [nodeId, limit], toSized, MAIL_READ);
}

/** What a node got, as history(): the newest (since is null), or the first `limit` after a place in the order. */
export function mailbox(nodeId: string, since: number | null, limit: number): Query<readonly Sized[]> {
  const order = since === null ? "DESC" : "ASC";
  const seqs = `SELECT seq FROM deliveries WHERE to_node = $1 AND seq > $3 ORDER BY seq ${order} LIMIT $2`;
  const found = many(measured(seqs, order), [nodeId, limit, since ?? 0], toSized, MAIL_READ);
  return since === null ? found : { ...found, shape: (rows) => found.shape(rows).toReversed() };
}

/** Some messages, in any order. */
export function messagesById(messageIds: readonly string[]): Query<readonly Message[]> {
  const ids = filledUp(messageIds);
  const sql = `SELECT ${MESSAGE} FROM messages m WHERE m.message_id IN (${places(ids)})`;
  return many(sql, ids, toMessage, ["messages"]);
}

/** The name that this database has among others: made with it, never changed. */
export function databaseId(): Query<string> {
  return query("SELECT database_id FROM identity", [], ([row]) => String(row?.["database_id"]), ["identity"]);
}

function toPlaced(row: Parameters<typeof toMessage>[0]): PlacedMessage {
  return { message: toMessage(row), seq: Number(row["seq"]) };
}

type Order = "ASC" | "DESC";

/** What is in the first of these numbers, up to where they pass what one answer carries, in their order. */
function measured(seqs: string, order: Order): string {
  return `
    SELECT m.message_id AS id, octet_length(m.content) AS bytes FROM messages m
    WHERE m.seq IN (${oneAnswerOf(seqs, order)}) ORDER BY m.seq ${order}`;
}

/**
 * The first of these numbers, up to where their contents pass what one answer carries; the first is always there. It
 * looks at the lengths alone: what is cut off, which may be 256 MiB, is never read.
 */
function oneAnswerOf(seqs: string, order: Order): string {
  return `
    SELECT seq FROM (
      SELECT seq, sum(bytes) OVER (ORDER BY seq ${order} ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
      FROM (SELECT seq, octet_length(content) AS bytes FROM messages WHERE seq IN (${seqs})) AS measured
    ) AS sized WHERE bytes_before < ${MESSAGES_ANSWER_MAX_BYTES}`;
}
