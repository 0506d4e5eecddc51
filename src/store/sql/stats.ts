/** The reads of the statistics of types and failures (service/type-stats.ts, service/failure-stats.ts). Each is bounded. */
import type { Able } from "../../domain/lane.ts";
import type { Failure } from "../../domain/model.ts";
import type { Query, Row } from "../store.ts";
import { many, query } from "./query.ts";
import { capabilitiesOf, resourcesOf, toShownFailure } from "./rows.ts";
import type { ChangePosition } from "./tasks.ts";

/** For their time, other tasks or an answer. */
export type WaitingOfType = { readonly taskType: string; readonly count: number };

export function waitingByType(limit: number): Query<readonly WaitingOfType[]> {
  const sql = `
    SELECT task_type, count(*) AS n FROM (
      SELECT task_type FROM tasks WHERE ready = 0 ORDER BY task_type LIMIT $1) AS waiting
    GROUP BY task_type`;
  const of = (row: Row): WaitingOfType => ({ taskType: String(row["task_type"]), count: Number(row["n"]) });
  return many(sql, [limit], of, ["tasks"]);
}

/** Nodes with the same capabilities and resources. `free`: online, not draining, and with room for a task. */
export type NodesAlike = Able & {
  readonly registered: number;
  readonly online: number;
  readonly free: number;
};

export type NodesAlikePart = { readonly alike: readonly NodesAlike[]; readonly next: number | null };

/** After a place in the order of registration (0: from its beginning). */
export function nodesByAbilities(after: number, limit: number): Query<NodesAlikePart> {
  const sql = `
    SELECT capabilities, resources, NULL AS used, count(*) AS looked, max(seq) AS last,
      sum(1 - deleted) AS registered, sum((1 - deleted) * online) AS online,
      sum(CASE WHEN deleted = 0 AND online = 1 AND draining = 0 AND (max_tasks IS NULL OR tasks_assigned < max_tasks)
        THEN 1 ELSE 0 END) AS free
    FROM (
      SELECT seq, capabilities, resources, deleted, online, draining, max_tasks, tasks_assigned
      FROM nodes WHERE seq > $1 ORDER BY seq LIMIT $2) AS part
    GROUP BY capabilities, resources`;
  const shape = (rows: readonly Row[]): NodesAlikePart => {
    const looked = rows.reduce((sum, row) => sum + Number(row["looked"]), 0);
    return {
      alike: rows
        .filter((row) => Number(row["registered"]) > 0)
        .map((row) => ({
          nodeId: null,
          capabilities: capabilitiesOf(row),
          ...resourcesOf(row),
          registered: Number(row["registered"]),
          online: Number(row["online"]),
          free: Number(row["free"]),
        })),
      next: looked < limit ? null : Math.max(...rows.map((row) => Number(row["last"]))),
    };
  };
  return query(sql, [after, limit], shape, ["nodes"]);
}

export type FailedTask = ChangePosition & {
  readonly taskId: string;
  readonly taskType: string;
  readonly failure: Failure;
};

/** Those that failed last first; not those that failed before `since`. */
export function failuresBefore(
  { updatedAt, seq }: ChangePosition,
  since: number,
  limit: number,
): Query<readonly FailedTask[]> {
  const sql = `
    SELECT seq, task_id, task_type, failure, child, updated_at FROM task_rows
    WHERE status = 'failed' AND (updated_at, seq) < ($1, $2) AND updated_at >= $3 AND failure IS NOT NULL
    ORDER BY updated_at DESC, seq DESC LIMIT $4`;
  const of = (row: Row): FailedTask => ({
    seq: Number(row["seq"]),
    taskId: String(row["task_id"]),
    taskType: String(row["task_type"]),
    failure: toShownFailure(row),
    updatedAt: Number(row["updated_at"]),
  });
  return many(sql, [updatedAt, seq, since, limit], of, ["tasks"]);
}
