/**
 * The reads of reviews (domain/task/review.ts) and of families of tasks (domain/task/family.ts), in the SQL that SQLite 3.35+ and
 * PostgreSQL 15+ share.
 */
import type { Node, PendingReview, Task } from "../../domain/model.ts";
import type { Query } from "../store.ts";
import { NODES, NODES_READ, NODE_COLUMNS } from "./nodes.ts";
import { count, many } from "./query.ts";
import { toNode, toPendingReview, toTask } from "./rows.ts";
import { IN_REVIEW, TASKS_READ, TASK_COLUMNS } from "./tasks.ts";

/** Tasks whose review has reached its deadline. */
export function dueReviews(now: number, limit: number): Query<readonly Task[]> {
  return many(`SELECT ${TASK_COLUMNS} ${DUE}`, [now, limit], toTask, TASKS_READ);
}

const DUE = `
  FROM task_rows t WHERE t.seq IN (
    SELECT task_seq FROM task_features WHERE ${IN_REVIEW} AND review_until <= $1 ORDER BY review_until, task_seq LIMIT $2)
  ORDER BY t.review_until, t.seq`;

/** The nodes that did the work of dueReviews(), also deleted ones. */
export function workersOfDueReviews(now: number, limit: number): Query<readonly Node[]> {
  const due = `SELECT workers.assigned_node FROM (SELECT t.assigned_node ${DUE}) AS workers`;
  const sql = `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id IN (${due})`;
  return many(sql, [now, limit], toNode, ["tasks", ...NODES_READ]);
}

/** A place in the list of the results that wait for a verdict. */
export type ReviewPosition = { readonly until: number; readonly seq: number };

/** The results that wait, after a place, the most urgent first. */
export function pendingReviews(
  { until, seq }: ReviewPosition,
  limit: number,
): Query<readonly PendingReview[]> {
  const sql = `
    SELECT seq, task_id, title, creator_node, t.assigned_node, t.lux_reward_micro, review
    FROM task_features f CROSS JOIN tasks t
    WHERE ${IN_REVIEW} AND review_until >= $1 AND (review_until > $1 OR task_seq > $2) AND t.seq = f.task_seq
    ORDER BY review_until, task_seq LIMIT $3`;
  return many(sql, [until, seq, limit], toPendingReview, ["tasks"]);
}

/** How many results wait for a verdict, counted up to `most`. */
export function reviewCount(most: number): Query<number> {
  const some = `SELECT 1 AS one FROM task_features WHERE ${IN_REVIEW} LIMIT $1`;
  return count(`SELECT count(*) AS n FROM (${some}) AS found`, [most], ["tasks"]);
}

// ---- Families

const MARKED = `SELECT f.task_id FROM (SELECT task_id FROM family_checks ORDER BY task_id LIMIT $1) AS f`;

const MEMBERS = `
  SELECT seq FROM tasks WHERE task_id IN (${MARKED})
  UNION ALL SELECT task_seq FROM task_features WHERE parent_task IN (${MARKED})`;

/** The marked families, by the id of the parent. */
export function markedFamilies(limit: number): Query<readonly string[]> {
  return many(`${MARKED} ORDER BY f.task_id`, [limit], (row) => String(row["task_id"]), ["family_checks"]);
}

/** Their parents and children. */
export function familyMembers(limit: number): Query<readonly Task[]> {
  const sql = `
    SELECT ${TASK_COLUMNS} FROM task_rows t WHERE t.seq IN (${MEMBERS}) ORDER BY t.seq`;
  return many(sql, [limit], toTask, ["family_checks", ...TASKS_READ]);
}

/** The nodes that completed them, also deleted ones. */
export function familyWorkers(limit: number): Query<readonly Node[]> {
  const members = `SELECT t.assigned_node FROM tasks t WHERE t.seq IN (${MEMBERS})`;
  const sql = `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id IN (${members})`;
  return many(sql, [limit], toNode, ["family_checks", "tasks", ...NODES_READ]);
}
