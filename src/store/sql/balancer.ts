/** The reads of the balancer: the nodes that it may give to, and the pool, best first, without the texts of its tasks. */
import type { Candidate } from "../../domain/balancer.ts";
import type { Node, Task } from "../../domain/model.ts";
import type { Param, Query, Row } from "../store.ts";
import { NODES, NODES_READ, NODE_COLUMNS } from "./nodes.ts";
import { bind, byKey, filledUp, many, places, query, union } from "./query.ts";
import { type KnownCapabilities, toNode, toTask } from "./rows.ts";
import { TASK_COLUMNS } from "./tasks.ts";

// ---- Nodes

const AVAILABLE = `online = 1 AND (max_tasks IS NULL OR tasks_assigned < max_tasks)`;
const BALANCER_ORDER = `ORDER BY tasks_assigned, idle_since, node_id`;
/** Stands in no list of capabilities, for none in it is empty. */
const NO_CAPABILITY = ",,";

const CANDIDATES = byKey(
  ["text", "text", "text"],
  `SELECT ${NODE_COLUMNS} FROM ${NODES}
  WHERE ${AVAILABLE} AND node_id <> $1
    AND ($2 = '' OR capabilities = '' OR replace(capabilities, $3, '') <> capabilities)
  ${BALANCER_ORDER} LIMIT 1`,
);

/** So many takers of a type are all looked at; of more, the first in the balancer's order is soon met. */
const TAKERS_FEW = 16;
const TAKERS = `FROM takers WHERE capability IN ($2, '')`;

// Differs because SQLite keeps a list of who takes what (store/sqlite/capability-index.ts), by which the nodes need not be walked through.
const CANDIDATES_ON_SQLITE = `
  SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE seq = CASE
    WHEN $2 <> '' AND (SELECT count(*) FROM (SELECT 1 ${TAKERS} LIMIT ${TAKERS_FEW} + 1) AS some) <= ${TAKERS_FEW}
    THEN (
      SELECT seq FROM nodes WHERE seq IN (SELECT seq ${TAKERS}) AND +${AVAILABLE} AND node_id <> $1
      ${BALANCER_ORDER} LIMIT 1)
    ELSE (
      SELECT seq FROM nodes WHERE ${AVAILABLE} AND node_id <> $1
        AND ($2 = '' OR EXISTS (SELECT 1 ${TAKERS} AND takers.seq = nodes.seq))
      ${BALANCER_ORDER} LIMIT 1)
  END`;

/** The node that the balancer would pick for a task: at most one row, so that a fleet is not read for each task. */
export function candidatesFor(taskType: string, notNode: string | null): Query<readonly Node[]> {
  // A capability holds no comma: a type that does is nobody's, and must not match two that stand side by side.
  const needle = taskType.includes(",") ? NO_CAPABILITY : `,${taskType},`;
  const onSqlite = { sql: CANDIDATES_ON_SQLITE, params: [notNode ?? "", taskType] };
  return { ...many(CANDIDATES, [notNode ?? "", taskType, needle], toNode, NODES_READ), onSqlite };
}

const CANDIDATE_COLUMNS = `node_id, capabilities, online, max_tasks, tasks_assigned, idle_since`;

/** Everybody to whom the balancer may give a task. `known` is the caller's, for all that it reads of them. */
export function availableNodes(known: KnownCapabilities): Query<readonly Candidate[]> {
  const sql = `SELECT ${CANDIDATE_COLUMNS} FROM nodes WHERE ${AVAILABLE}`;
  return many(sql, [], (row) => toCandidate(row, known), ["nodes"]);
}

/** Some of them, in the order of their ids, after one ("" is before all). */
export function availableAfter(
  nodeId: string,
  limit: number,
  known: KnownCapabilities,
): Query<readonly Candidate[]> {
  const sql = `
    SELECT ${CANDIDATE_COLUMNS} FROM nodes WHERE node_id > $1 AND ${AVAILABLE} ORDER BY node_id LIMIT $2`;
  return many(sql, [nodeId, limit], (row) => toCandidate(row, known), ["nodes"]);
}

function toCandidate(row: Row, known: KnownCapabilities): Candidate {
  const nodeId = String(row["node_id"]);
  return {
    nodeId,
    capabilities: known.of(nodeId, String(row["capabilities"])),
    online: row["online"] === 1,
    maxTasks: row["max_tasks"] == null ? null : Number(row["max_tasks"]),
    tasksAssigned: Number(row["tasks_assigned"]),
    idleSince: Number(row["idle_since"]),
  };
}

// ---- The pool

/** Where a walk through the pool stands. */
export type PoolCursor = { readonly priority: number; readonly seq: number };
export const POOL_START: PoolCursor = { priority: -1, seq: 0 };

/** Of the open tasks, those of one type (null: of any), either the balancer's own or the others. */
export type PoolPart = { readonly balanced: boolean; readonly taskType: string | null };

/** The types of the open tasks in the order of their names, after one, but for ""; each is one look at an index. */
export function poolTypes(balanced: boolean, after: string, limit: number): Query<readonly string[]> {
  const next = (type: string): string => `(
    SELECT min(task_type) FROM tasks WHERE status = 'open' AND balanced = $1 AND task_type > ${type})`;
  const sql = `
    WITH RECURSIVE types (task_type) AS (
      SELECT ${next("$2")} UNION ALL SELECT ${next("types.task_type")} FROM types WHERE task_type IS NOT NULL)
    SELECT task_type FROM types WHERE task_type IS NOT NULL LIMIT $3`;
  return many(sql, [Number(balanced), after, limit], (row) => String(row["task_type"]), ["tasks"]);
}

/** The next tasks of some parts of the pool, best first (priority, then age), each after its own cursor: a list a part. */
export function poolParts(
  parts: readonly { readonly part: PoolPart; readonly after: PoolCursor }[],
  limit: number,
): Query<readonly (readonly PoolCursor[])[]> {
  const params: Param[] = [limit];
  const ranges = parts.map(({ part: { balanced, taskType }, after }, i) => {
    const ofType = taskType === null ? "" : ` AND task_type = ${bind(params, taskType)}`;
    const place = `(${bind(params, after.priority)}, ${bind(params, after.seq)})`;
    return `
      SELECT ${i} AS part, priority, seq FROM tasks
      WHERE status = 'open' AND balanced = ${Number(balanced)}${ofType} AND (priority, seq) > ${place}
      ORDER BY priority, seq LIMIT $1`;
  });
  const shape = (rows: readonly Row[]): readonly (readonly PoolCursor[])[] => {
    const found: PoolCursor[][] = parts.map(() => []);
    for (const row of rows)
      found[Number(row["part"])]?.push({ priority: Number(row["priority"]), seq: Number(row["seq"]) });
    return found;
  };
  return query(union(ranges), params, shape, ["tasks"]);
}

/** Whether nothing is open, or nothing that the balancer may give away by itself. */
export function isPoolEmpty(onlyBalanced: boolean): Query<boolean> {
  const own = onlyBalanced ? " AND balanced = 1" : "";
  const sql = `SELECT seq FROM tasks WHERE status = 'open'${own} LIMIT 1`;
  return query(sql, [], (rows) => rows.length === 0, ["tasks"]);
}

/** Those of these tasks that are open, best first. */
export function openBySeq(seqs: readonly number[]): Query<readonly Task[]> {
  const filled = filledUp(seqs);
  const sql = `SELECT ${TASK_COLUMNS} FROM tasks t WHERE t.seq IN (${places(filled)}) ORDER BY priority, t.seq`;
  const shape = (rows: readonly Row[]): readonly Task[] =>
    rows.map(toTask).filter(({ status }) => status === "open");
  return query(sql, filled, shape, ["tasks", "files"]);
}
