/** The reads, writes and facts of the event log. */
import { type EventKind, FATE_KINDS, type LoggedEvent, TASK_EVENT_KINDS } from "../../domain/event.ts";
import { EVENT_IDS_RAISED_BY } from "../../domain/limits.ts";
import { TASK_ENDS } from "../../domain/webhook.ts";
import type { Param, Query, Row } from "../store.ts";
import { bind, count, many, one, padded, placeholders, union } from "./query.ts";
import { EVENTS } from "./tables.ts";
import type { Of, Writes } from "./write.ts";
import { flag, insert } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

const toEvent = EVENTS.reader();

export function firstEventId(): Query<number> {
  return count(`SELECT coalesce(min(id), 1) AS n FROM events`, [], ["events"]);
}

export function lastEventId(): Query<number> {
  return count(`SELECT coalesce(max(id), 0) AS n FROM events`, [], ["events"]);
}

/** 0 when there is none. */
export function endEventOf(taskId: string): Query<number> {
  const kinds = TASK_ENDS.map((kind) => `'${kind}'`).join(", ");
  const sql = `SELECT coalesce(max(id), 0) AS n FROM events WHERE task_id = $1 AND kind IN (${kinds})`;
  return count(sql, [taskId], ["events"]);
}

/** Oldest first: one entry for each task. */
export function lastEventOf(kind: EventKind): Query<number> {
  return count(`SELECT coalesce(max(id), 0) AS n FROM events WHERE kind = $1`, [kind], ["events"]);
}

/** Only of `kinds`, unless that is empty. */
export function completersAfter(eventId: number, limit: number): Query<readonly string[]> {
  const sql = `
    SELECT node_id FROM events WHERE kind = 'task.completed' AND id > $1 ORDER BY id LIMIT $2`;
  return many(sql, [eventId, limit], (row) => String(row["node_id"]), ["events"]);
}

/** Only of `kinds`, unless that is empty. */
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

/** The nodes of the newest events of a kind in a part of the log, newest first. */
export function nodesOfEvents(
  kind: EventKind,
  { after, upTo }: LogWindow,
  limit: number,
): Query<readonly { readonly id: number; readonly nodeId: string }[]> {
  const sql = `
    SELECT id, node_id FROM events WHERE kind = $1 AND id > $2 AND id <= $3 AND node_id IS NOT NULL
    ORDER BY id DESC LIMIT $4`;
  const of = (row: Row) => ({ id: Number(row["id"]), nodeId: String(row["node_id"]) });
  return many(sql, [kind, after, upTo, limit], of, ["events"]);
}

/** The newest events, in ascending order; only of `kinds`, unless that is empty. */
export function newestEvents(kinds: readonly EventKind[], limit: number): Query<readonly LoggedEvent[]> {
  const params: Param[] = [limit];
  const newest = (where: string): string => `SELECT * FROM events ${where} ORDER BY id DESC LIMIT $1`;
  const ranges = kinds.map((kind) => newest(`WHERE kind = ${bind(params, kind)}`));
  const events =
    ranges.length > 1 ? `SELECT * FROM (${union(ranges)}) AS hits ORDER BY id DESC LIMIT $1` : null;
  const sql = `SELECT * FROM (${events ?? ranges[0] ?? newest("")}) AS newest ORDER BY id`;
  return many(sql, params, toEvent, ["events"]);
}

/** Besides their place in the log. */
export type LogWindow = { readonly after: number; readonly upTo: number };

export type EventFilter = {
  readonly kinds: readonly EventKind[];
  readonly taskId: string | null;
  readonly nodeId: string | null;
  readonly groups: readonly string[] | null;
  /** After an event, or before it with `newest`; null when there are fewer. */
  readonly tag: string | null;
};

/** Oldest first; `newest`: the last of them, else the first. */
export function nthEventOfTask(
  taskId: string,
  from: number,
  n: number,
  newest: boolean,
): Query<number | null> {
  const sql = newest
    ? `SELECT id FROM events WHERE task_id = $1 AND id <= $2 ORDER BY id DESC LIMIT 1 OFFSET $3`
    : `SELECT id FROM events WHERE task_id = $1 AND id > $2 ORDER BY id LIMIT 1 OFFSET $3`;
  return one(sql, [taskId, from, n - 1], (row) => Number(row["id"]), ["events"]);
}

/** The events in a part of the log that pass a filter, oldest first; `newest`: the last of them, else the first. */
export function eventsIn(
  { after, upTo }: LogWindow,
  { kinds, taskId, nodeId, groups, tag }: EventFilter,
  limit: number,
  newest: boolean,
): Query<readonly LoggedEvent[]> {
  const params: Param[] = [after, upTo, limit];
  const wanted: string[] = [];
  if (taskId !== null) wanted.push(` AND task_id = ${bind(params, taskId)}`);
  if (nodeId !== null) wanted.push(` AND +node_id = ${bind(params, nodeId)}`);
  if (groups !== null)
    wanted.push(` AND data ->> 'group' IN (${groups.map((group) => bind(params, group)).join(", ")})`);
  // The tags of a task are "a,b": no tag has a comma.
  const tags = "',' || (data ->> 'tags') || ','";
  if (tag !== null) wanted.push(` AND replace(${tags}, ${bind(params, `,${tag},`)}, '') <> ${tags}`);
  if (kinds.length > 0) wanted.push(` AND +kind IN (${kinds.map((kind) => bind(params, kind)).join(", ")})`);
  // + keeps SQLite in the window: of one kind there may be many more.
  const sql = (texts: readonly string[]): string => `
    SELECT * FROM (
      SELECT * FROM events WHERE id > $1 AND id <= $2${texts.join("")}
      ORDER BY id ${newest ? "DESC" : "ASC"} LIMIT $3) AS found ORDER BY id`;
  // Oldest first: its own, broadcasts, the delivery of messages that it sent, and the tasks that it created. There is
  // no index by node: the range bounds the work.
  const onPostgres = wanted.map((text) => text.replace("+", "").replaceAll("data ->>", "data::json ->>"));
  const query = many(sql(onPostgres), params, toEvent, ["events"]);
  return { ...query, onSqlite: { sql: sql(wanted), params } };
}

/**
 * The events in a range of the log that a node's stream may show, oldest first: its own, broadcasts, the delivery of
 * messages that it sent, and the tasks that it created. There is no index by node: the range bounds the work.
 */
export function nodeEventsIn(
  nodeId: string,
  window: LogWindow,
  limit: number,
): Query<readonly LoggedEvent[]> {
  const params = [window.after, window.upTo, nodeId, limit];
  const query = many(nodeEvents("data::json ->>"), params, toEvent, ["events"]);
  return { ...query, onSqlite: { sql: nodeEvents("data ->>"), params } };
}

/** Except its id. */
const nodeEvents = (field: string): string => `
  SELECT * FROM events WHERE id > $1 AND id <= $2 AND (
    node_id = $3 OR (kind = 'message.sent' AND node_id IS NULL)
    OR (kind IN (${quoted(FATE_KINDS)}) AND ${field} 'from_node' = $3)
    OR (kind IN (${quoted(TASK_EVENT_KINDS)}) AND ${field} 'creator_node' = $3))
  ORDER BY id LIMIT $4`;

function quoted(kinds: readonly EventKind[]): string {
  return kinds.map((kind) => `'${kind}'`).join(", ");
}

export function eventsById(ids: readonly number[]): Query<readonly LoggedEvent[]> {
  const filled = padded(ids);
  const sql = `SELECT * FROM events WHERE id IN (${placeholders(filled)}) ORDER BY id`;
  return many(sql, filled, toEvent, ["events"]);
}

type OfEvent = Pick<Of<"event.logged">, "event">;
/** The columns of an event, except its id. */
export const EVENT = {
  ...EVENTS.set(
    ({ event }: OfEvent) => event,
    ...(["at", "kind", "node_id", "task_id", "data", "kept_bytes", "kept_by"] as const),
  ),
  verified: flag(({ event }: OfEvent) => event.verified === true),
};

export const EVENT_WRITES = {
  "event.logged": {
    keys: ({ event }) => (event.kind === "node.registered" ? ["registrations"] : []),
    statement: insert("events", EVENT),
  },
} satisfies Partial<Writes>;

export const EVENT_FACTS: readonly Fact[] = [
  {
    name: "events",
    holds: "the event log has no gap, but before a promotion",
    sql: `
      SELECT 'of the events ' || min(id) || ' to ' || max(id) || ' there are ' || count(*) FROM events
      HAVING count(*) > 0 AND max(id) - min(id) + 1 <> count(*) + ${EVENT_IDS_RAISED_BY - 1} *
        (SELECT count(*) FROM events WHERE kind = 'hub.promoted' AND id > (SELECT min(id) FROM events))
      UNION ALL
      SELECT 'event ' || id || ' cannot be read' FROM events WHERE NOT json_valid(data)
      LIMIT ${SHOWN}`,
  },
];
