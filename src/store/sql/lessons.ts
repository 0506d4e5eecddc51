/** The reads of lessons. */
import type { Lesson } from "../../domain/lesson.ts";
import { LESSON_SHOWN_MAX_CHARS } from "../../domain/limits.ts";
import type { Param, Query, Row } from "../store.ts";
import { bind, many, padded, placeholders } from "./query.ts";

/** `lesson` is null if it is not of the type. */
export type ExaminedTask = { readonly seq: number; readonly lesson: Lesson | null };

/** The lesson stands behind long texts in its row: it is read only under the condition. */
const columns = (condition: string): string => `
  seq, task_id, title, task_type, assigned_node, result_verified, updated_at, octet_length(lesson) AS bytes,
  CASE WHEN ${condition} THEN substr(lesson, 1, ${LESSON_SHOWN_MAX_CHARS}) END AS beginning`;

/** Newest first, with the lessons of those of a type; null is every type. */
export function lessonsBelow(
  taskType: string | null,
  before: number,
  limit: number,
): Query<readonly ExaminedTask[]> {
  const params: Param[] = [limit, before];
  const wanted = taskType === null ? "1 = 1" : `task_type = ${bind(params, taskType)}`;
  const sql = `
    SELECT ${columns(wanted)} FROM task_rows
    WHERE status = 'completed' AND review_until IS NULL AND parent_task IS NULL AND seq < $2 ORDER BY seq DESC LIMIT $1`;
  return many(sql, params, toExamined, ["tasks"]);
}

/** Of those that are completed. */
export function lessonsOf(taskIds: readonly string[]): Query<readonly ExaminedTask[]> {
  const ids = padded(taskIds);
  const sql = `
    SELECT ${columns("1 = 1")} FROM task_rows
    WHERE task_id IN (${placeholders(ids)}) AND status = 'completed' AND review_until IS NULL AND parent_task IS NULL`;
  return many(sql, ids, toExamined, ["tasks"]);
}

function toExamined(row: Row): ExaminedTask {
  const seq = Number(row["seq"]);
  if (row["beginning"] == null) return { seq, lesson: null };
  const beginning = String(row["beginning"]);
  const lesson = {
    taskId: String(row["task_id"]),
    title: String(row["title"]),
    taskType: String(row["task_type"]),
    nodeId: String(row["assigned_node"]),
    verified: row["result_verified"] === 1,
    at: Number(row["updated_at"]),
    text: beginning.trim(),
    truncated: Number(row["bytes"]) > Buffer.byteLength(beginning),
  };
  return { seq, lesson };
}
