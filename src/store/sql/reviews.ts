/**
 * The reads of reviews (domain/review.ts) and of families of tasks (domain/family.ts), in the SQL that SQLite 3.35+ and
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

const DUE = `FROM tasks t WHERE ${IN_REVIEW} AND review_until <= $1 ORDER BY review_until, seq LIMIT $2`;

/** The nodes that did the work of dueReviews(), also deleted ones. */
export function workersOfDueReviews(now: number, limit: number): Query<readonly Node[]> {
  const due = `SELECT due.assigned_node FROM (SELECT t.assigned_node ${DUE}) AS due`;
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
    SELECT seq, task_id, title, creator_node, assigned_node, lux_reward_micro, review FROM tasks
    WHERE ${IN_REVIEW} AND review_until >= $1 AND (review_until > $1 OR seq > $2)
    ORDER BY review_until, seq LIMIT $3`;
  return many(sql, [until, seq, limit], toPendingReview, ["tasks"]);
}

/** How many results wait for a verdict, counted up to `most`. */
export function reviewCount(most: number): Query<number> {
  const some = `SELECT 1 AS one FROM tasks WHERE ${IN_REVIEW} LIMIT $1`;
  return count(`SELECT count(*) AS n FROM (${some}) AS found`, [most], ["tasks"]);
}

// ---- Families

const MARKED = `SELECT f.task_id FROM (SELECT task_id FROM family_checks ORDER BY task_id LIMIT $1) AS f`;

/** The marked families, by the id of the parent. */
export function markedFamilies(limit: number): Query<readonly string[]> {
  return many(`${MARKED} ORDER BY f.task_id`, [limit], (row) => String(row["task_id"]), ["family_checks"]);
}

/** Their parents and children. */
export function familyMembers(limit: number): Query<readonly Task[]> {
  const sql = `
    SELECT ${TASK_COLUMNS} FROM tasks t
    WHERE t.task_id IN (${MARKED}) OR t.parent_task IN (${MARKED}) ORDER BY t.seq`;
  return many(sql, [limit], toTask, ["family_checks", ...TASKS_READ]);
}

/** The nodes that completed them, also deleted ones. */
export function familyWorkers(limit: number): Query<readonly Node[]> {
  const members = `
    SELECT t.assigned_node FROM tasks t WHERE t.task_id IN (${MARKED}) OR t.parent_task IN (${MARKED})`;
  const sql = `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id IN (${members})`;
  return many(sql, [limit], toNode, ["family_checks", "tasks", ...NODES_READ]);
}
