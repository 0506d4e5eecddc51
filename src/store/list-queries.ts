/** The pages of lists, in the SQL that SQLite 3.35+ and PostgreSQL 15+ share: what is on one, and how much that is. */
import type { FileRecord } from "../domain/file.ts";
import type { Node } from "../domain/node.ts";
import type { Task, TaskStatus } from "../domain/task.ts";
import { NOTHING, type Slice, TASK_COLUMNS, bind, union } from "./queries.ts";
import { count, filledUp, many, places, toFile, toSized, toTask } from "./rows.ts";
import type { Param, Query } from "./store.ts";

/** A row of a list and about how much it holds, in bytes. */
export type Sized = { readonly id: string; readonly bytes: number };

// ---- Tasks

/** Whose tasks are listed. */
export type TasksOf = Pick<Node, "nodeId" | "held" | "unfiled">;

/** Tasks in any of `statuses` (of one node, if given), newest first. */
export function taskPage(
  statuses: readonly TaskStatus[],
  node: TasksOf | null,
  slice: Slice,
): Query<readonly Task[]> {
  const found = pageOfTasks(statuses, node, slice);
  if (!found) return { ...NOTHING, shape: () => [] };
  return many(`SELECT ${TASK_COLUMNS} FROM tasks t ${found.where}`, found.params, toTask);
}

const TASK_BYTES = ["title", "description", "problem", "improvement", "lesson"]
  .map((column) => `coalesce(octet_length(${column}), 0)`)
  .join(" + ");

/** What is on a page of tasks. */
export function taskSizes(
  statuses: readonly TaskStatus[],
  node: TasksOf | null,
  slice: Slice,
): Query<readonly Sized[]> {
  const found = pageOfTasks(statuses, node, slice);
  if (!found) return { ...NOTHING, shape: () => [] };
  return many(
    `SELECT task_id AS id, ${TASK_BYTES} AS bytes FROM tasks t ${found.where}`,
    found.params,
    toSized,
  );
}

/** Which tasks are on a page, newest first; null if there can be none. */
function pageOfTasks(
  statuses: readonly TaskStatus[],
  node: TasksOf | null,
  slice: Slice,
): { readonly where: string; readonly params: readonly Param[] } | null {
  const params: Param[] = [slice.limit, slice.offset, slice.limit + slice.offset];
  // One read an index range, then merged: a list in two states must not sort the whole table.
  const ranges = node ? rangesOfNode(statuses, node, params) : rangesOfAll(statuses);
  if (ranges.length === 0) return null;
  const where = `
    WHERE seq IN (SELECT DISTINCT seq FROM (${union(ranges)}) AS hits ORDER BY seq DESC LIMIT $1 OFFSET $2)
    ORDER BY seq DESC`;
  return { where, params };
}

// The states are written out, for the indexes of one state to be seen.

function rangesOfAll(statuses: readonly TaskStatus[]): readonly string[] {
  if (statuses.length === 3) return [`SELECT seq FROM tasks ORDER BY seq DESC LIMIT $3`];
  return statuses.map(
    (status) => `SELECT seq FROM tasks WHERE status = '${status}' ORDER BY seq DESC LIMIT $3`,
  );
}

/** An open task has no node; the others stand in the lists by node, but for the newest, which the node names. */
function rangesOfNode(
  statuses: readonly TaskStatus[],
  { nodeId, held, unfiled }: TasksOf,
  params: Param[],
): readonly string[] {
  const node = bind(params, nodeId);
  const named = (seqs: readonly number[]): string => {
    const places = filledUp(seqs).map((seq) => bind(params, seq));
    return `SELECT seq FROM tasks WHERE seq IN (${places.join()}) AND assigned_node = ${node}`;
  };
  const ranges: string[] = [];
  if (statuses.includes("assigned")) {
    ranges.push(`
      SELECT seq FROM tasks WHERE status = 'assigned' AND listed = 1 AND assigned_node = ${node}
      ORDER BY seq DESC LIMIT $3`);
    if (held.length > 0) ranges.push(`${named(held)} AND status = 'assigned'`);
  }
  if (statuses.includes("completed")) {
    ranges.push(`SELECT seq FROM completions WHERE node_id = ${node} ORDER BY seq DESC LIMIT $3`);
    if (unfiled.length > 0) ranges.push(`${named(unfiled)} AND status = 'completed'`);
  }
  return ranges;
}

// ---- Files

export function filePage(slice: Slice): Query<readonly FileRecord[]> {
  return many(
    `SELECT * FROM files ORDER BY seq DESC LIMIT $1 OFFSET $2`,
    [slice.limit, slice.offset],
    toFile,
  );
}

/** What is on a page of files. */
export function fileSizes(slice: Slice): Query<readonly Sized[]> {
  const sql = `
    SELECT file_id AS id, octet_length(metadata) + octet_length(name) AS bytes FROM files
    ORDER BY seq DESC LIMIT $1 OFFSET $2`;
  return many(sql, [slice.limit, slice.offset], toSized);
}

export function filesById(fileIds: readonly string[]): Query<readonly FileRecord[]> {
  const ids = filledUp(fileIds);
  return many(`SELECT * FROM files WHERE file_id IN (${places(ids)})`, ids, toFile);
}

export function filesCount(): Query<number> {
  return count(`SELECT count(*) AS n FROM files`, []);
}
