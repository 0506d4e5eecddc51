/**
 * The reads, writes and facts of reviews (domain/task/review.ts) and of families of tasks (domain/task/family.ts).
 */
import type { Node, PendingReview, Task } from "../../domain/model.ts";
import type { Query } from "../store.ts";
import { NODES, NODES_READ, NODE_COLUMNS } from "./nodes.ts";
import { many, countRows } from "./query.ts";
import { TASK_COLUMNS, toNode, toTask } from "./rows.ts";
import { json, reader } from "./table.ts";
import { IN_REVIEW, TASKS_READ } from "./tasks.ts";
import { keyOf } from "./conflict-keys.ts";
import { FAMILY_CHECKS, TASKS, TASK_FEATURES } from "./tables.ts";
import { TASK_ID_SEQ } from "./task-writes.ts";
import { type Writes, evict } from "./write.ts";
import { customStatement, drop, mark, remove, text, update } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

export function dueReviews(now: number, limit: number): Query<readonly Task[]> {
  return many(`SELECT ${TASK_COLUMNS} ${DUE}`, [now, limit], toTask, TASKS_READ);
}

const DUE = `
  FROM task_rows t WHERE t.seq IN (
    SELECT task_seq FROM task_features WHERE ${IN_REVIEW} AND review_until <= $1 ORDER BY review_until, task_seq LIMIT $2)
  ORDER BY t.review_until, t.seq`;

/** Also deleted ones. */
export function workersOfDueReviews(now: number, limit: number): Query<readonly Node[]> {
  const due = `SELECT workers.assigned_node FROM (SELECT t.assigned_node ${DUE}) AS workers`;
  const sql = `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id IN (${due})`;
  return many(sql, [now, limit], toNode, ["tasks", ...NODES_READ]);
}

export type ReviewPosition = { readonly until: number; readonly seq: number };

const toPendingReview = reader({ ...TASKS.columns, review: json<PendingReview["review"]>() }, [
  "seq",
  "task_id",
  "title",
  "creator_node",
  "assigned_node",
  "lux_reward_micro",
  "review",
]);

/** The most urgent first. */
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

/** Counted up to `most`. */
export function reviewCount(most: number): Query<number> {
  const waiting = `SELECT 1 AS one FROM task_features WHERE ${IN_REVIEW} LIMIT $1`;
  return countRows(waiting, [most], ["tasks"]);
}

// ---- Families

const MARKED = `SELECT f.task_id FROM (SELECT task_id FROM family_checks ORDER BY task_id LIMIT $1) AS f`;

const MEMBERS = `
  SELECT seq FROM tasks WHERE task_id IN (${MARKED})
  UNION ALL SELECT task_seq FROM task_features WHERE parent_task IN (${MARKED})`;

/** By the id of the parent. */
export function markedFamilies(limit: number): Query<readonly string[]> {
  return many(`${MARKED} ORDER BY f.task_id`, [limit], (row) => String(row["task_id"]), ["family_checks"]);
}

export function familyMembers(limit: number): Query<readonly Task[]> {
  const sql = `
    SELECT ${TASK_COLUMNS} FROM task_rows t WHERE t.seq IN (${MEMBERS}) ORDER BY t.seq`;
  return many(sql, [limit], toTask, ["family_checks", ...TASKS_READ]);
}

/** Also deleted ones. */
export function familyWorkers(limit: number): Query<readonly Node[]> {
  const members = `SELECT t.assigned_node FROM tasks t WHERE t.seq IN (${MEMBERS})`;
  const sql = `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id IN (${members})`;
  return many(sql, [limit], toNode, ["family_checks", "tasks", ...NODES_READ]);
}

export const REVIEW_WRITES = {
  "task.reviewed": {
    cache: evict,
    row: ({ taskId }) => keyOf.task(taskId),
    keys: () => [keyOf.dependents],
    statement: update(
      "task_features",
      TASK_ID_SEQ,
      TASK_FEATURES.set((change) => change, "review", "review_until"),
    ),
  },
  "result.removed": {
    cache: evict,
    row: ({ taskId }) => keyOf.task(taskId),
    statement: remove("task_results", TASK_ID_SEQ),
  },
  "task.related": {
    cache: evict,
    row: ({ taskId }) => keyOf.task(taskId),
    statement: update(
      "task_features",
      TASK_ID_SEQ,
      TASK_FEATURES.set((change) => change, "parent_task", "child", "not_nodes"),
    ),
  },
  "task.quorate": {
    cache: evict,
    row: ({ taskId }) => keyOf.task(taskId),
    statement: update(
      "task_features",
      TASK_ID_SEQ,
      TASK_FEATURES.set((change) => change, "quorum"),
    ),
  },
  // Adds a node to those that may not have the other copies, once.
  "copies.excluded": {
    cache: evict,
    isSweep: true,
    statement: customStatement(
      "task_features",
      `UPDATE task_features SET not_nodes = coalesce(not_nodes, ',') || $3 || ','
        WHERE parent_task = $1 AND task_seq <> (SELECT seq FROM tasks WHERE task_id = $2)
          AND replace(coalesce(not_nodes, ''), ',' || $3 || ',', '') = coalesce(not_nodes, '')`,
      [text(({ of }) => of), text(({ taskId }) => taskId), text(({ nodeId }) => nodeId)],
    ),
  },
  "family.touched": {
    row: ({ taskId }) => keyOf.family(taskId),
    statement: mark(FAMILY_CHECKS, (change) => change),
    sum: (_, later) => later,
  },
  "family.checked": {
    isSweep: true, // so that it stays before or behind what is summed
    frees: true,
    statement: drop(FAMILY_CHECKS, ["task_id"]),
  },
} satisfies Partial<Writes>;

const REVIEW = "coalesce(json_extract(review, '$.check.state'), 'none')";

export const REVIEW_FACTS: readonly Fact[] = [
  {
    name: "reviews",
    holds:
      "a task has a deadline of its review exactly while its completed result waits for one, and a rejected one is not completed",
    sql: `
      SELECT 'task ' || task_id || ' is ' || status || ', and its review is ' || ${REVIEW} FROM task_rows
      WHERE review IS NOT NULL AND (
        (review_until IS NOT NULL) <> (${REVIEW} = 'pending')
        OR (status = 'completed') <> (${REVIEW} IN ('pending', 'passed')))
        OR (review IS NULL AND review_until IS NOT NULL)
      UNION ALL
      SELECT 'task ' || t.task_id || ' is ' || t.status || ', and its quorum is ' || json_extract(t.quorum, '$.state') FROM task_rows t
      WHERE t.quorum IS NOT NULL AND ((t.status = 'completed') <> (json_extract(t.quorum, '$.state') = 'agreed')
        OR (t.status = 'open' AND t.ready <> 0) OR t.status = 'assigned')
      UNION ALL
      SELECT 'task ' || c.task_id || ' is sealed, and nobody decides about it any more' FROM task_rows c
      LEFT JOIN task_rows p ON p.task_id = c.parent_task
      WHERE json_extract(c.child, '$.sealed') = 1 AND coalesce(p.status, 'failed') <> 'open'
        AND c.parent_task NOT IN (SELECT task_id FROM family_checks)
      UNION ALL
      SELECT 'the node ' || assigned_node || ' has ' || count(*) || ' copies of task ' || parent_task FROM task_rows
      WHERE json_extract(child, '$.as') = 'copy' AND assigned_node IS NOT NULL
      GROUP BY assigned_node, parent_task, json_extract(child, '$.epoch') HAVING count(*) > 1
      UNION ALL
      SELECT 'task ' || task_id || ' does not say what it was created for' FROM task_rows
      WHERE (child IS NULL) <> (parent_task IS NULL) OR json_extract(child, '$.of') <> parent_task
      LIMIT ${SHOWN}`,
  },
];
