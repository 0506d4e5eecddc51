/**
 * The reads of nodes, tasks, LUX, files and events, in the SQL that SQLite 3.35+ and PostgreSQL 15+ share.
 * Each is a function from its parameters to a Query. Those of the mailboxes stand in mail-queries.ts, the pages of lists
 * in list-queries.ts, what the balancer alone reads in balancer-queries.ts, keys and stored answers in key-queries.ts.
 */
import type { EventKind, LoggedEvent } from "../domain/event.ts";
import type { FileRecord } from "../domain/file.ts";
import { PULL_ANSWER_MAX_BYTES } from "../domain/limits.ts";
import type { LedgerEntry } from "../domain/lux.ts";
import type { Node, Pulse } from "../domain/node.ts";
import type { Task, TaskStatus } from "../domain/task.ts";
import {
  count,
  filledUp,
  many,
  one,
  places,
  toEvent,
  toFile,
  toLedgerEntry,
  toNode,
  toPulse,
  toSized,
  toTask,
} from "./rows.ts";
import type { Sized } from "./list-queries.ts";
import type { Param, Query } from "./store.ts";
import { rowsOf } from "./touches.ts";

/** Finds nothing: for what a caller did not name. */
export const NOTHING: Query<null> = { sql: `SELECT 1 AS none WHERE 1 = 0`, params: [], shape: () => null };

// ---- Nodes

// LUX sums may pass 2^53, where the drivers' numbers are no longer exact: they travel as text.
export const NODE_COLUMNS = `
  node_id, name, host, port, capabilities, variant, max_tasks, online, registered_at, last_heartbeat_at,
  lease_until, tasks_assigned, tasks_completed, CAST(lux_earned_micro AS TEXT) AS lux_earned, idle_since, held, unfiled,
  last_entry, entries, CAST(balance_micro AS TEXT) AS balance`;
/** Every node has its row in beats, from its registration on. */
export const NODES = `nodes JOIN beats USING (seq)`;

// The texts of the queries that requests run are put together once: a statement is found by its text.
const NODE_BY_ID = `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id = $1`;

export function nodeById(nodeId: string): Query<Node | null> {
  return one(NODE_BY_ID, [nodeId], toNode, [rowsOf.node(nodeId)]);
}

const PULSE = `SELECT node_id, variant, online, tasks_assigned FROM nodes WHERE node_id = $1`;

/** What a heartbeat looks at: little, for nothing is asked more often. */
export function pulseOf(nodeId: string): Query<Pulse | null> {
  return one(PULSE, [nodeId], toPulse, [rowsOf.node(nodeId)]);
}

/** Nodes in the order of their ids, after one of them ("" is before all). */
export function nodesAfter(after: string, limit: number): Query<readonly Node[]> {
  const sql = `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id > $1 ORDER BY node_id LIMIT $2`;
  return many(sql, [after, limit], toNode);
}

const HOLDER = `
  SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id = (SELECT assigned_node FROM tasks WHERE task_id = $1)`;

/** The node that has a task, or had it when it was completed. */
export function holderOf(taskId: string): Query<Node | null> {
  return one(HOLDER, [taskId], toNode);
}

export function nodesById(nodeIds: readonly string[]): Query<readonly Node[]> {
  const ids = filledUp(nodeIds);
  return many(`SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id IN (${places(ids)})`, ids, toNode);
}

export function nodesCount(): Query<number> {
  return count(`SELECT count(*) AS n FROM nodes`, []);
}

export function onlineNodeIds(): Query<readonly string[]> {
  return many(`SELECT node_id FROM nodes WHERE online = 1 ORDER BY node_id`, [], (row) =>
    String(row["node_id"]),
  );
}

export function expiredNodes(steady: number, limit: number): Query<readonly Node[]> {
  const sql = `
    SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE online = 1 AND lease_until <= $1 ORDER BY lease_until, node_id LIMIT $2`;
  return many(sql, [steady, limit], toNode);
}

/** When the first of the leases that still run ends, by the steady clock; null when none runs. */
export function nextLeaseEnd(steady: number): Query<number | null> {
  const sql = `SELECT min(lease_until) AS at FROM ${NODES} WHERE online = 1 AND lease_until > $1`;
  return one(sql, [steady], ({ at }) => (at == null ? null : Number(at)));
}

export function topNodes(limit: number): Query<readonly Node[]> {
  const sql = `
    SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE tasks_completed > 0
    ORDER BY tasks_completed DESC, lux_earned_micro DESC, node_id LIMIT $1`;
  return many(sql, [limit], toNode);
}

// ---- Tasks

/** The columns of tasks t. */
export const TASK_COLUMNS = `
  t.seq, task_id, title, description, task_type, priority, creator_node, status, lux_reward_micro, assigned_node, listed,
  balanced, revoked_from, attempts, created_at, updated_at, problem, improvement, lesson,
  (SELECT string_agg(file_id, ',') FROM (
    SELECT file_id FROM files f WHERE f.task_id = t.task_id ORDER BY f.seq) AS own) AS files`;

export type TaskTotals = Readonly<Record<TaskStatus, number>>;

const TASK_BY_ID = `SELECT ${TASK_COLUMNS} FROM tasks t WHERE task_id = $1`;

export function taskById(taskId: string): Query<Task | null> {
  return one(TASK_BY_ID, [taskId], toTask, [rowsOf.task(taskId), rowsOf.filesOfTask(taskId)]);
}

export function tasksById(taskIds: readonly string[]): Query<readonly Task[]> {
  const ids = filledUp(taskIds);
  return many(`SELECT ${TASK_COLUMNS} FROM tasks t WHERE task_id IN (${places(ids)})`, ids, toTask);
}

export function taskTotals(): Query<TaskTotals> {
  return {
    sql: `SELECT open, assigned, completed FROM task_totals`,
    params: [],
    shape: ([row]) => ({
      open: Number(row?.["open"]),
      assigned: Number(row?.["assigned"]),
      completed: Number(row?.["completed"]),
    }),
  };
}

/**
 * Open tasks that a node with these capabilities could take, best first (priority, then age): at most `limit`, and at
 * most one answer's worth of descriptions.
 */
export function claimable(capabilities: readonly string[], limit: number): Query<readonly Task[]> {
  return poolQuery([0, 1], capabilities, null, limit);
}

/** The same tasks, measured, up to where their descriptions pass what one answer carries; the first is always there. */
export function claimableSizes(capabilities: readonly string[], limit: number): Query<readonly Sized[]> {
  const { best, params } = bestOfPool([0, 1], capabilities, null, limit);
  const sql = `
    SELECT task_id AS id, octet_length(description) AS bytes FROM tasks WHERE seq IN (${oneAnswerOf(best)})
    ORDER BY priority, seq`;
  return many(sql, params, toSized);
}

/** Open tasks that the balancer may give to this node by itself, best first. */
export function waitingFor(
  node: { nodeId: string; capabilities: readonly string[] },
  limit: number,
): Query<readonly Task[]> {
  return poolQuery([1], node.capabilities, node.nodeId, limit);
}

function poolQuery(...asked: Parameters<typeof bestOfPool>): Query<readonly Task[]> {
  const { best, params } = bestOfPool(...asked);
  const sql = `SELECT ${TASK_COLUMNS} FROM tasks t WHERE seq IN (${best}) ORDER BY priority, seq`;
  return many(sql, params, toTask);
}

function bestOfPool(
  balanced: readonly number[],
  capabilities: readonly string[],
  notRevokedFrom: string | null,
  limit: number,
): { readonly best: string; readonly params: readonly Param[] } {
  const params: Param[] = [limit];
  const types = capabilities.length === 0 ? [null] : ["", ...new Set(capabilities)];
  const notRevoked =
    notRevokedFrom === null
      ? ""
      : ` AND (revoked_from IS NULL OR revoked_from <> ${bind(params, notRevokedFrom)})`;
  const ranges = balanced.flatMap((flag) =>
    types.map((type) => {
      const ofType = type === null ? "" : ` AND task_type = ${bind(params, type)}`;
      return `
        SELECT seq, priority FROM tasks
        WHERE status = 'open' AND balanced = ${flag}${ofType}${notRevoked}
        ORDER BY priority, seq LIMIT $1`;
    }),
  );
  const best = `SELECT seq FROM (${union(ranges)}) AS hits ORDER BY priority, seq LIMIT $1`;
  return { best, params };
}

function oneAnswerOf(best: string): string {
  return `
    SELECT seq FROM (
      SELECT seq, sum(bytes) OVER (ORDER BY priority, seq ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
      FROM (SELECT seq, priority, octet_length(description) AS bytes FROM tasks WHERE seq IN (${best})) AS measured
    ) AS sized WHERE bytes_before < ${PULL_ANSWER_MAX_BYTES}`;
}

/** Unfinished tasks whose node is offline. */
export function strandedTasks(limit: number): Query<readonly Task[]> {
  const sql = `
    SELECT ${TASK_COLUMNS} FROM nodes CROSS JOIN tasks t
    WHERE online = 0 AND tasks_assigned > 0 AND t.assigned_node = nodes.node_id AND t.status = 'assigned'
      AND t.listed = 1
    LIMIT $1`; // CROSS, for SQLite to go from the few nodes to their tasks and not the other way
  return many(sql, [limit], toTask);
}

// ---- LUX

// The last n of the page is $2. The walk begins at the next entry from there on that has a mark, or at the newest.
const LEDGER_PAGE = `
  WITH RECURSIVE walk AS (
    SELECT * FROM ledger WHERE entry_id = coalesce(
      (SELECT entry_id FROM ledger WHERE node_id = $1 AND n >= $2 AND n % 64 = 0 ORDER BY n LIMIT 1),
      (SELECT last_entry FROM nodes WHERE node_id = $1))
    UNION ALL
    SELECT l.* FROM walk JOIN ledger l ON l.entry_id = walk.previous WHERE walk.n > $3 AND l.n < walk.n)
  SELECT entry_id, previous, node_id, n, amount_micro, CAST(balance_micro AS TEXT) AS balance, kind, task_id, at
  FROM walk WHERE n <= $2 AND n >= $3 ORDER BY n DESC`;

/** The entries of a node with the numbers `from` to `to`, newest first. */
export function ledgerPage(nodeId: string, from: number, to: number): Query<readonly LedgerEntry[]> {
  return many(LEDGER_PAGE, [nodeId, to, from], toLedgerEntry);
}

/** The latest sign-in of the days before one: `before` is a UTC midnight. */
export function lastSigninAt(nodeId: string, before: number): Query<number | null> {
  const sql = `
    SELECT at FROM ledger WHERE node_id = $1 AND kind = 'signin' AND (at / 86400000) < $2 / 86400000
    ORDER BY (at / 86400000) DESC LIMIT 1`;
  return one(sql, [nodeId, before], (row) => Number(row["at"]), [rowsOf.ledger(nodeId)]);
}

// ---- Files

export function fileById(fileId: string): Query<FileRecord | null> {
  return one(`SELECT * FROM files WHERE file_id = $1`, [fileId], toFile);
}

/** Those of `fileIds` that have a record. */
export function fileIdsAmong(fileIds: readonly string[]): Query<readonly string[]> {
  const ids = filledUp(fileIds);
  return many(`SELECT file_id FROM files WHERE file_id IN (${places(ids)})`, ids, (row) =>
    String(row["file_id"]),
  );
}

// ---- Events

export function firstEventId(): Query<number> {
  return count(`SELECT coalesce(min(id), 1) AS n FROM events`, []);
}

export function lastEventId(): Query<number> {
  return count(`SELECT coalesce(max(id), 0) AS n FROM events`, []);
}

/** The id of the newest event of a kind; 0 when there is none. */
export function lastEventOf(kind: EventKind): Query<number> {
  return count(`SELECT coalesce(max(id), 0) AS n FROM events WHERE kind = $1`, [kind]);
}

/** Who completed a task after a moment of the log: oldest first, once for each task. */
export function completersAfter(eventId: number, limit: number): Query<readonly string[]> {
  const sql = `
    SELECT node_id FROM events WHERE kind = 'task.completed' AND id > $1 ORDER BY id LIMIT $2`;
  return many(sql, [eventId, limit], (row) => String(row["node_id"]));
}

/** Events after the cursor (exclusive), oldest first; of any of `kinds`, of all when there are none. */
export function eventsAfter(
  since: number,
  kinds: readonly EventKind[],
  limit: number,
): Query<readonly LoggedEvent[]> {
  if (kinds.length === 0) {
    return many(`SELECT * FROM events WHERE id > $1 ORDER BY id LIMIT $2`, [since, limit], toEvent);
  }
  const params: Param[] = [since, limit];
  const ranges = kinds.map(
    (kind) => `SELECT id FROM events WHERE kind = ${bind(params, kind)} AND id > $1 ORDER BY id LIMIT $2`,
  );
  const sql = `
    SELECT * FROM events WHERE id IN (SELECT id FROM (${union(ranges)}) AS hits ORDER BY id LIMIT $2) ORDER BY id`;
  return many(sql, params, toEvent);
}

/** The newest events, oldest of them first; of one kind, if given. */
export function newestEvents(kind: EventKind | null, limit: number): Query<readonly LoggedEvent[]> {
  const params: Param[] = [limit];
  const where = kind === null ? "" : `WHERE kind = ${bind(params, kind)}`;
  const sql = `SELECT * FROM (SELECT * FROM events ${where} ORDER BY id DESC LIMIT $1) AS newest ORDER BY id`;
  return many(sql, params, toEvent);
}

/** A part of the log: after one id, up to and with another. */
export type LogWindow = { readonly after: number; readonly upTo: number };

/** A node's events in a part of the log, oldest first. There is no index by node: the window bounds the work. */
export function nodeEventsIn(
  nodeId: string,
  window: LogWindow,
  limit: number,
): Query<readonly LoggedEvent[]> {
  const sql = `SELECT * FROM events WHERE id > $1 AND id <= $2 AND node_id = $3 ORDER BY id LIMIT $4`;
  return many(sql, [window.after, window.upTo, nodeId, limit], toEvent);
}

/** Certain events, oldest first. */
export function eventsById(ids: readonly number[]): Query<readonly LoggedEvent[]> {
  const filled = filledUp(ids);
  return many(`SELECT * FROM events WHERE id IN (${places(filled)}) ORDER BY id`, filled, toEvent);
}

/** Appends a parameter and gives its place. */
export function bind(params: Param[], value: Param): string {
  params.push(value);
  return `$${params.length}`;
}

/** One table from several ordered ranges; each is wrapped, for ORDER BY and LIMIT to stay its own. */
export function union(ranges: readonly string[]): string {
  return ranges.map((range, i) => `SELECT * FROM (${range}) AS r${i}`).join(" UNION ALL ");
}
