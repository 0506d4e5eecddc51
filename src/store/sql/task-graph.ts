/** The reads of a task's neighbours: what it depends on, and what waits for it; in the SQL that both engines share. */
import type { TaskStatus } from "../../domain/model.ts";
import type { Query, Row } from "../store.ts";
import { count, many, padded, placeholders } from "./query.ts";

/** A task as a graph shows it. */
export type GraphTask = {
  readonly taskId: string;
  readonly title: string;
  readonly status: TaskStatus;
  readonly assignedNode: string | null;
  readonly dependsOn: readonly string[];
  /** How many of `dependsOn` have not ended as they must. */
  readonly unmet: number;
};

const COLUMNS = `task_id, title, status, assigned_node, depends_on, unmet`;

export function graphTasks(taskIds: readonly string[]): Query<readonly GraphTask[]> {
  const ids = padded(taskIds);
  const sql = `SELECT ${COLUMNS} FROM tasks WHERE task_id IN (${placeholders(ids)}) ORDER BY seq`;
  return many(sql, ids, toGraphTask, ["tasks"]);
}

/** The ids of unfinished tasks that wait for a task, and of those that failed because of it. */
const DEPENDENTS = `
  SELECT task_id FROM dependencies WHERE depends_on = $1
  UNION SELECT task_id FROM tasks WHERE broken_by = $1`;

export function dependentsOf(taskId: string, limit: number): Query<readonly GraphTask[]> {
  const sql = `
    SELECT ${COLUMNS} FROM tasks WHERE task_id IN (SELECT task_id FROM (${DEPENDENTS} LIMIT $2) AS d) ORDER BY seq`;
  return many(sql, [taskId, limit], toGraphTask, ["dependencies", "tasks"]);
}

/** How many there are; `most` if there are more. */
export function dependentCount(taskId: string, most: number): Query<number> {
  const sql = `SELECT count(*) AS n FROM (${DEPENDENTS} LIMIT $2) AS d`;
  return count(sql, [taskId, most], ["dependencies", "tasks"]);
}

function toGraphTask(row: Row): GraphTask {
  const dependsOn = row["depends_on"];
  return {
    taskId: String(row["task_id"]),
    title: String(row["title"]),
    status: String(row["status"]) as TaskStatus, // only the rules write it
    assignedNode: row["assigned_node"] == null ? null : String(row["assigned_node"]),
    dependsOn: dependsOn == null ? [] : String(dependsOn).split(","),
    unmet: Number(row["unmet"]),
  };
}
