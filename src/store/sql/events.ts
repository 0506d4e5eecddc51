/** The reads of the event log, in the SQL that SQLite 3.35+ and PostgreSQL 15+ share. */
import { type EventKind, FATE_KINDS, type LoggedEvent } from "../../domain/event.ts";
import type { Param, Query } from "../store.ts";
import { bind, count, filledUp, many, places, union } from "./query.ts";
import { toEvent } from "./rows.ts";

export function firstEventId(): Query<number> {
  return count(`SELECT coalesce(min(id), 1) AS n FROM events`, [], ["events"]);
}

export function lastEventId(): Query<number> {
  return count(`SELECT coalesce(max(id), 0) AS n FROM events`, [], ["events"]);
}

/** The id of the newest event of a kind; 0 when there is none. */
export function lastEventOf(kind: EventKind): Query<number> {
  return count(`SELECT coalesce(max(id), 0) AS n FROM events WHERE kind = $1`, [kind], ["events"]);
}

/** The nodes that completed tasks after an event, oldest first: one entry for each task. */
export function completersAfter(eventId: number, limit: number): Query<readonly string[]> {
  const sql = `
    SELECT node_id FROM events WHERE kind = 'task.completed' AND id > $1 ORDER BY id LIMIT $2`;
  return many(sql, [eventId, limit], (row) => String(row["node_id"]), ["events"]);
}

/** Events after the cursor (exclusive), oldest first; only of `kinds`, unless that is empty. */
export function eventsAfter(
  since: number,
  kinds: readonly EventKind[],
  limit: number,
): Query<readonly LoggedEvent[]> {
  if (kinds.length === 0) {
    const sql = `SELECT * FROM events WHERE id > $1 ORDER BY id LIMIT $2`;
    return many(sql, [since, limit], toEvent, ["events"]);
  }
  const params: Param[] = [since, limit];
  const ranges = kinds.map(
    (kind) => `SELECT id FROM events WHERE kind = ${bind(params, kind)} AND id > $1 ORDER BY id LIMIT $2`,
  );
  const sql = `
    SELECT * FROM events WHERE id IN (SELECT id FROM (${union(ranges)}) AS hits ORDER BY id LIMIT $2) ORDER BY id`;
  return many(sql, params, toEvent, ["events"]);
}

/** The newest events, in ascending order; of one kind, if given. */
export function newestEvents(kind: EventKind | null, limit: number): Query<readonly LoggedEvent[]> {
  const params: Param[] = [limit];
  const where = kind === null ? "" : `WHERE kind = ${bind(params, kind)}`;
  const sql = `SELECT * FROM (SELECT * FROM events ${where} ORDER BY id DESC LIMIT $1) AS newest ORDER BY id`;
  return many(sql, params, toEvent, ["events"]);
}

/** A range of the log: `after` is exclusive, `upTo` inclusive. */
export type LogWindow = { readonly after: number; readonly upTo: number };

/**
 * The events in a range of the log that a node's stream may show, oldest first: its own, broadcasts, and the delivery of
 * messages that it sent. There is no index by node: the range bounds the work.
 */
export function nodeEventsIn(
  nodeId: string,
  window: LogWindow,
  limit: number,
): Query<readonly LoggedEvent[]> {
  const params = [window.after, window.upTo, nodeId, limit];
  const query = many(nodeEvents("data::json ->> 'from_node'"), params, toEvent, ["events"]);
  return { ...query, onSqlite: { sql: nodeEvents("data ->> 'from_node'"), params } };
}

/** Differs because PostgreSQL reads JSON only from its own type. */
const nodeEvents = (fromNode: string): string => `
  SELECT * FROM events WHERE id > $1 AND id <= $2 AND (
    node_id = $3 OR (kind = 'message.sent' AND node_id IS NULL)
    OR (kind IN (${FATE_KINDS.map((kind) => `'${kind}'`).join(", ")}) AND ${fromNode} = $3))
  ORDER BY id LIMIT $4`;

export function eventsById(ids: readonly number[]): Query<readonly LoggedEvent[]> {
  const filled = filledUp(ids);
  const sql = `SELECT * FROM events WHERE id IN (${places(filled)}) ORDER BY id`;
  return many(sql, filled, toEvent, ["events"]);
}
