/** The reads of tasks, in the SQL that SQLite 3.35+ and PostgreSQL 15+ share. */
import { FILE_ID_BYTES } from "../../domain/file.ts";
import { PER_PAGE_MAX } from "../../domain/limits.ts";
import type { Task, TaskStatus } from "../../domain/model.ts";
import type { Param, Query } from "../store.ts";
import { type ConflictKey, keyOf } from "./conflict-keys.ts";
import {
  type Sized,
  type Slice,
  NOTHING,
  bind,
  byKey,
  filledUp,
  many,
  one,
  orderOf,
  pageRows,
  places,
  query,
  rowsBySeq,
  sizes,
  union,
} from "./query.ts";
import { toTask } from "./rows.ts";

/** The columns of tasks t. */
export const TASK_COLUMNS = `
  t.seq, task_id, title, description, task_type, priority, creator_node, status, lux_reward_micro, assigned_node,
  balanced, revoked_from, attempts, created_at, updated_at, problem, improvement, lesson, result_extra,
  (SELECT string_agg(file_id, ',') FROM (
    SELECT file_id FROM files f WHERE f.task_id = t.task_id ORDER BY f.seq) AS own) AS files`;

export type TaskTotals = Readonly<Record<TaskStatus, number>>;

/** The read set of a query with TASK_COLUMNS. */
const TASKS_READ: readonly ConflictKey[] = ["tasks", "files"];

const TASK_BY_ID = byKey(["text"], `SELECT ${TASK_COLUMNS} FROM tasks t WHERE task_id = $1`);

export function taskById(taskId: string): Query<Task | null> {
  return one(TASK_BY_ID, [taskId], toTask, [keyOf.task(taskId), keyOf.filesOfTask(taskId)]);
}

export function tasksById(taskIds: readonly string[]): Query<readonly Task[]> {
  const ids = filledUp(taskIds);
  const sql = `SELECT ${TASK_COLUMNS} FROM tasks t WHERE task_id IN (${places(ids)})`;
  return many(sql, ids, toTask, TASKS_READ);
}

export function taskTotals(): Query<TaskTotals> {
  const shape: Query<TaskTotals>["shape"] = ([row]) => ({
    open: Number(row?.["open"]),
    assigned: Number(row?.["assigned"]),
    completed: Number(row?.["completed"]),
  });
  return query(`SELECT open, assigned, completed FROM task_totals`, [], shape, ["task_totals"]);
}

/** The sizes of the open tasks that a node with these capabilities could take, best first; openTasks() loads them. */
export function claimableSizes(capabilities: readonly string[], limit: number): Query<readonly Sized[]> {
  const { best, params } = bestOpen([0, 1], capabilities, null, limit);
  const sql = `SELECT seq, octet_length(description) AS bytes FROM tasks WHERE seq IN (${best}) ORDER BY priority, seq`;
  return sizes(sql, params, ["tasks"]);
}

/** The open tasks that the balancer may assign to this node, best first; empty if it may assign none. */
export function waitingFor(
  node: { nodeId: string; capabilities: readonly string[]; autoAssign: boolean },
  limit: number,
): Query<readonly Task[]> {
  const { best, params } = bestOpen([1], node.capabilities, node.nodeId, node.autoAssign ? limit : 0);
  const sql = `SELECT ${TASK_COLUMNS} FROM tasks t WHERE seq IN (${best}) ORDER BY priority, seq`;
  return many(sql, params, toTask, TASKS_READ);
}

/** SQL for the numbers of the best open tasks. Each range has a LIMIT, because SQLite sorts the ranges below an IN. */
function bestOpen(
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

/** Unfinished tasks whose node is offline. */
export function strandedTasks(limit: number): Query<readonly Task[]> {
  return many(stranded(0), [limit], toTask, ["nodes", ...TASKS_READ]);
}

/** Unfinished tasks whose node was deleted. */
export function tasksOfDeleted(limit: number): Query<readonly Task[]> {
  return many(stranded(1), [limit], toTask, ["nodes", ...TASKS_READ]);
}

/** CROSS JOIN makes SQLite go from the few nodes to their tasks. */
const stranded = (deleted: 0 | 1): string => `
  SELECT ${TASK_COLUMNS} FROM nodes CROSS JOIN tasks t
  WHERE online = 0 AND tasks_assigned > 0 AND deleted = ${deleted} AND t.assigned_node = nodes.node_id
    AND t.status = 'assigned'
  LIMIT $1`;

const TASKS_HELD = `
  SELECT ${TASK_COLUMNS} FROM tasks t WHERE t.assigned_node = $1 AND t.status = 'assigned' ORDER BY t.seq LIMIT $2`;

/** The assigned tasks of a node, oldest first. */
export function tasksHeld(nodeId: string, limit: number): Query<readonly Task[]> {
  return many(TASKS_HELD, [nodeId, limit], toTask, TASKS_READ);
}

const TASK_BYTES = [
  ...["title", "description", "problem", "improvement", "lesson", "result_extra"].map(
    (column) => `coalesce(octet_length(${column}), 0)`,
  ),
  `${FILE_ID_BYTES} * (SELECT count(*) FROM files f WHERE f.task_id = t.task_id)`,
].join(" + ");

/** The sizes of the tasks in any of `statuses` (of one node, if given), newest first. */
export function taskSizes(
  statuses: readonly TaskStatus[],
  nodeId: string | null,
  slice: Slice,
): Query<readonly Sized[]> {
  const found = pageOfTasks(statuses, nodeId, slice);
  if (!found) return { ...NOTHING, shape: () => [] };
  return sizes(`SELECT seq, ${TASK_BYTES} AS bytes FROM tasks t ${found.where}`, found.params, TASKS_READ);
}

/** Newest first. */
export function tasksBySeq(seqs: readonly number[]): Query<readonly Task[]> {
  return rowsBySeq(`SELECT ${TASK_COLUMNS} FROM tasks t`, seqs, "seq DESC", toTask, TASKS_READ);
}

const UNFINISHED: readonly TaskStatus[] = ["open", "assigned"];
const UNFINISHED_FIRST = `CASE WHEN status IN ('${UNFINISHED.join("', '")}') THEN 0 ELSE 1 END, seq DESC`;

/** As taskSizes(), but the unfinished ones come first: only the first page is read so. */
export function unfinishedFirstSizes(
  statuses: readonly TaskStatus[],
  nodeId: string | null,
  limit: number,
): Query<readonly Sized[]> {
  const params: Param[] = [limit];
  const node = nodeId === null ? null : bind(params, nodeId);
  const parts = [true, false].flatMap((unfinished, rank) => {
    const own = statuses.filter((status) => UNFINISHED.includes(status) === unfinished);
    const ranges = node === null ? own.map(rangeOf) : rangesOfNode(own, node);
    if (ranges.length === 0) return [];
    const newest = union(ranges.map((range) => `${range} ORDER BY seq DESC`));
    return [`SELECT seq, ${rank} AS place FROM (${newest}) AS hits ORDER BY seq DESC LIMIT $1`];
  });
  if (parts.length === 0) return { ...NOTHING, shape: () => [] };
  const page = `SELECT seq FROM (${union(parts)}) AS halves ORDER BY place, seq DESC LIMIT $1`;
  // DISTINCT and the second LIMIT: see pageRows().
  const numbers = `SELECT DISTINCT seq FROM (${page}) AS page ORDER BY seq DESC LIMIT $1`;
  const sql = `
    SELECT seq, ${TASK_BYTES} AS bytes FROM tasks t WHERE seq IN (${numbers}) ORDER BY ${UNFINISHED_FIRST}`;
  return sizes(sql, params, TASKS_READ);
}

/** Some tasks, as unfinishedFirstSizes() orders them. */
export function unfinishedFirstBySeq(seqs: readonly number[]): Query<readonly Task[]> {
  return rowsBySeq(`SELECT ${TASK_COLUMNS} FROM tasks t`, seqs, UNFINISHED_FIRST, toTask, TASKS_READ);
}

/**
 * The condition for the tasks of a page, newest first; null if there can be none.
 *
 * Each range follows a covering index, and no task is in two ranges. So the database merges them as it reads, from one
 * end up to the page, and sorts nothing.
 */
function pageOfTasks(
  statuses: readonly TaskStatus[],
  nodeId: string | null,
  slice: Slice,
): { readonly where: string; readonly params: readonly Param[] } | null {
  const params: Param[] = [slice.limit, slice.offset];
  const ranges =
    nodeId === null ? rangesOfAll(statuses, slice) : rangesOfNode(statuses, bind(params, nodeId));
  if (ranges.length === 0) return null;
  // SQLite knows the order of the ranges; PostgreSQL merges them only if each states its order.
  const inOrder = ranges.map((range) => `${range} ${orderOf(slice)}`);
  return { where: pageRows(`(${union(inOrder)}) AS hits`, slice), params };
}

/**
 * The states are literals, so that the planner uses the index of each state. The first pages of all tasks, the most
 * frequent ones, are read from the table: for a few rows one range is cheaper than three, though the rows are longer.
 */
function rangesOfAll(statuses: readonly TaskStatus[], { offset }: Slice): readonly string[] {
  if (statuses.length === 3 && offset <= PER_PAGE_MAX) return ["SELECT seq FROM tasks"];
  return statuses.map(rangeOf);
}

const rangeOf = (status: TaskStatus): string => `SELECT seq FROM tasks WHERE status = '${status}'`;

/** An open task has no node. The states are literals, so that the planner uses the partial index of each. */
function rangesOfNode(statuses: readonly TaskStatus[], node: string): readonly string[] {
  return statuses
    .filter((status) => status !== "open")
    .map((status) => `SELECT seq FROM tasks WHERE status = '${status}' AND assigned_node = ${node}`);
}
