/** The pages of lists, in the SQL that SQLite 3.35+ and PostgreSQL 15+ share: what is on one, and how much that is. */
import { FILE_ID_BYTES, type FileRecord } from "../domain/file.ts";
import { PER_PAGE_MAX } from "../domain/limits.ts";
import type { Node } from "../domain/node.ts";
import type { Task, TaskStatus } from "../domain/task.ts";
import { NOTHING, TASK_COLUMNS, bind, union } from "./queries.ts";
import { count, filledUp, many, places, toFile, toSized, toTask } from "./rows.ts";
import type { Param, Query } from "./store.ts";

/**
 * A part of a list: how many rows to skip and how many to give, counted from one of its ends. Rows are given newest
 * first whichever end it is. What is skipped costs time: callers count from the end that is nearer.
 */
export type Slice = { readonly from: "newest" | "oldest"; readonly limit: number; readonly offset: number };

/** The order in which a slice is counted. */
const orderOf = ({ from }: Slice): string => `ORDER BY seq ${from === "newest" ? "DESC" : "ASC"}`;

/**
 * The rows of a slice, newest first, of all whose numbers `numbers` holds. $1 is the slice's limit, $2 its offset.
 * The second LIMIT and DISTINCT, which the numbers are anyway, are for PostgreSQL: it plans without a look at $1 and $2,
 * and would expect so many rows that it walked through the table for them.
 */
function rowsOf(numbers: string, slice: Slice): string {
  const page = `SELECT seq FROM ${numbers} ${orderOf(slice)} LIMIT $1 OFFSET $2`;
  return `
    WHERE seq IN (SELECT DISTINCT seq FROM (${page}) AS page ORDER BY seq DESC LIMIT $1)
    ORDER BY seq DESC`;
}

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

const TASK_BYTES = [
  ...["title", "description", "problem", "improvement", "lesson"].map(
    (column) => `coalesce(octet_length(${column}), 0)`,
  ),
  `${FILE_ID_BYTES} * (SELECT count(*) FROM files f WHERE f.task_id = t.task_id)`,
].join(" + ");

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

/**
 * Which tasks are on a page, newest first; null if there can be none.
 *
 * Each range is in the order of an index that holds all it reads, and no task is in two of them: so they are merged as
 * they are read, from one end as far as the page, with nothing sorted and hardly a task looked at that is not on it.
 */
function pageOfTasks(
  statuses: readonly TaskStatus[],
  node: TasksOf | null,
  slice: Slice,
): { readonly where: string; readonly params: readonly Param[] } | null {
  const params: Param[] = [slice.limit, slice.offset];
  const ranges = node ? rangesOfNode(statuses, node, params) : rangesOfAll(statuses, slice);
  if (ranges.length === 0) return null;
  // SQLite knows that the ranges are in order; PostgreSQL merges them if they say so.
  const inOrder = ranges.map((range) => `${range} ${orderOf(slice)}`);
  return { where: rowsOf(`(${union(inOrder)}) AS hits`, slice), params };
}

/**
 * The states are written out, for the indexes of one state to be seen. The first pages of all tasks, which most ask for,
 * are read from the table itself: of a few rows one range is cheaper than three, though each is all of a task.
 */
function rangesOfAll(statuses: readonly TaskStatus[], { offset }: Slice): readonly string[] {
  if (statuses.length === 3 && offset <= PER_PAGE_MAX) return ["SELECT seq FROM tasks"];
  return statuses.map((status) => `SELECT seq FROM tasks WHERE status = '${status}'`);
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
    const ofNode = `assigned_node = ${node}`;
    ranges.push(`SELECT seq FROM tasks WHERE status = 'assigned' AND listed = 1 AND ${ofNode}`);
    // A task that was taken from the node and given back may be listed, and still be named.
    if (held.length > 0) ranges.push(`${named(held)} AND status = 'assigned' AND listed = 0`);
  }
  if (statuses.includes("completed")) {
    ranges.push(`SELECT seq FROM completions WHERE node_id = ${node}`);
    if (unfiled.length > 0) ranges.push(`${named(unfiled)} AND status = 'completed'`);
  }
  return ranges;
}

// ---- Files

export function filePage(slice: Slice): Query<readonly FileRecord[]> {
  const sql = `SELECT * FROM files ${rowsOf("files", slice)}`;
  return many(sql, [slice.limit, slice.offset], toFile);
}

/** What is on a page of files. */
export function fileSizes(slice: Slice): Query<readonly Sized[]> {
  const sql = `
    SELECT file_id AS id, octet_length(metadata) + octet_length(name) AS bytes FROM files
    ${rowsOf("files", slice)}`;
  return many(sql, [slice.limit, slice.offset], toSized);
}

export function filesById(fileIds: readonly string[]): Query<readonly FileRecord[]> {
  const ids = filledUp(fileIds);
  return many(`SELECT * FROM files WHERE file_id IN (${places(ids)})`, ids, toFile);
}

export function filesCount(): Query<number> {
  return count(`SELECT count(*) AS n FROM files`, []);
}
