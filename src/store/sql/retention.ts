/**
 * Rows past their time: how they are counted and how they are removed stand together, so that they cannot differ.
 * Of each table only the `limit` oldest rows are looked at: a step is short however many rows there are. Rows that a
 * wrong clock has dated ahead of now are passed over: their age is unknown, and they must not stand before the others.
 */
import type { DeliveryStub } from "../../domain/model.ts";
import { count, many } from "./query.ts";
import { toDeliveryStub } from "./rows.ts";
import type { Query } from "../store.ts";

/** Rows older than `before` (epoch ms), among the oldest `limit` of those not dated after `now`. */
export type OldRows = { readonly before: number; readonly limit: number; readonly now: number };

const OLD_MESSAGES = `
  SELECT seq FROM (SELECT seq, sent_at FROM messages WHERE sent_at <= $3 ORDER BY seq LIMIT $2) AS oldest
  WHERE sent_at < $1`;

// The newest event stays for ever: the next id follows from it.
const OLD_EVENTS = `
  SELECT id FROM (SELECT id, at FROM events WHERE at <= $3 ORDER BY id LIMIT $2) AS oldest
  WHERE at < $1 AND id < (SELECT max(id) FROM events)`;

const OLD_ANSWERS = `SELECT scope FROM answers WHERE stored_at < $1 ORDER BY stored_at LIMIT $2`;

const OLD_DELIVERIES = `SELECT to_node, seq FROM messages WHERE to_node IS NOT NULL AND seq IN (${OLD_MESSAGES})`;
export const PRUNE_DELIVERIES = `DELETE FROM deliveries WHERE (to_node, seq) IN (${OLD_DELIVERIES})`;

// A broadcast may have a delivery for each node of the fleet: they are bounded by themselves, not by their message.
// In order, so that the same ones are read and removed.
const OLD_BROADCASTS = `
  SELECT to_node, seq FROM deliveries WHERE broadcast = 1 AND seq IN (${OLD_MESSAGES}) ORDER BY seq, to_node LIMIT $2`;
export const PRUNE_BROADCASTS = `DELETE FROM deliveries WHERE (to_node, seq) IN (${OLD_BROADCASTS})`;
/** A message goes when the last of its deliveries has gone. */
export const PRUNE_MESSAGES = `
  DELETE FROM messages WHERE seq IN (${OLD_MESSAGES})
    AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.broadcast = 1 AND d.seq = messages.seq)`;
/** Before the messages: they are found through them. */
export const PRUNE_BROADCAST_COUNTS = `
  DELETE FROM broadcasts WHERE seq IN (${OLD_MESSAGES})
    AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.broadcast = 1 AND d.seq = broadcasts.seq)`;
export const PRUNE_EVENTS = `DELETE FROM events WHERE id IN (${OLD_EVENTS})`;
export const PRUNE_ANSWERS = `DELETE FROM answers WHERE scope IN (${OLD_ANSWERS})`;

export function oldMessages(old: OldRows): Query<number> {
  return counting(OLD_MESSAGES, old);
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
    WHERE (d.to_node, d.seq) IN (${broadcast ? OLD_BROADCASTS : OLD_DELIVERIES})`;
  return many(sql, [before, limit, now], toDeliveryStub);
}

export function oldEvents(old: OldRows): Query<number> {
  return counting(OLD_EVENTS, old);
}

export function oldAnswers({ before, limit }: Omit<OldRows, "now">): Query<number> {
  return count(`SELECT count(*) AS n FROM (${OLD_ANSWERS}) AS old`, [before, limit]);
}

function counting(rows: string, { before, limit, now }: OldRows): Query<number> {
  return count(`SELECT count(*) AS n FROM (${rows}) AS old`, [before, limit, now]);
}
