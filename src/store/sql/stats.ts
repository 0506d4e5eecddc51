/** The reads of the statistics of types and failures (service/type-stats.ts, service/failure-stats.ts). Each is bounded. */
import { type NodesAlike, type WaitCode, WAIT_CODES } from "../../domain/held.ts";
import type { Failure } from "../../domain/model.ts";
import type { Query, Row } from "../store.ts";
import { many, query } from "./query.ts";
import { capabilitiesOf, resourcesOf, toShownFailure } from "./rows.ts";
import { type ChangePosition, WAITING } from "./tasks.ts";
import { must } from "../../lib/assert.ts";

/** Waiting tasks of a part of those of a type, and where the next part begins; null: this was the last. */
export type WaitingPart = {
  /** `oldestAt`: when the first of them was created. */
  readonly waiting: readonly { readonly code: WaitCode; readonly count: number; readonly oldestAt: number }[];
  readonly next: number | null;
};

/** Counts `limit` waiting tasks of a type after a place in the order of creation (0: from its beginning). */
export function waitingOfType(taskType: string, after: number, limit: number): Query<WaitingPart> {
  const codes = WAIT_CODES.map((code) => `WHEN ${WAITING[code]} THEN '${code}'`);
  const sql = `
    SELECT code, count(*) AS n, min(created_at) AS oldest, max(seq) AS last FROM (
      SELECT seq, created_at, CASE ${codes.join(" ")} END AS code
      FROM tasks t LEFT JOIN task_features f ON f.task_seq = t.seq
      WHERE ready = 0 AND task_type = $1 AND seq > $2 ORDER BY seq LIMIT $3) AS part
    GROUP BY code`;
  const codeOf = ({ code }: Row): WaitCode =>
    must(
      WAIT_CODES.find((word) => word === code),
      "a task that is not ready waits for something",
    );
  const shape = (rows: readonly Row[]): WaitingPart => {
    const counted = rows.reduce((sum, { n }) => sum + Number(n), 0);
    return {
      waiting: rows.map((row) => ({
        code: codeOf(row),
        count: Number(row["n"]),
        oldestAt: Number(row["oldest"]),
      })),
      next: counted < limit ? null : Math.max(...rows.map(({ last }) => Number(last))),
    };
  };
  return query(sql, [taskType, after, limit], shape, ["tasks"]);
}

/** The types of waiting tasks, sorted: one index lookup each. */
export function waitingTypes(limit: number): Query<readonly string[]> {
  const next = (which: string): string => `(SELECT min(task_type) FROM tasks WHERE ready = 0${which})`;
  const sql = `
    WITH RECURSIVE types (task_type) AS (
      SELECT ${next("")}
      UNION ALL SELECT ${next(" AND task_type > types.task_type")} FROM types WHERE task_type IS NOT NULL)
    SELECT task_type FROM types WHERE task_type IS NOT NULL LIMIT $1`;
  return many(sql, [limit], (row) => String(row["task_type"]), ["tasks"]);
}

export type NodesAlikePart = { readonly alike: readonly NodesAlike[]; readonly next: number | null };

/** After a place in the order of registration (0: from its beginning). */
export function nodesByAbilities(after: number, limit: number): Query<NodesAlikePart> {
  const sql = `
    SELECT capabilities, resources, NULL AS used, count(*) AS looked, max(seq) AS last,
      sum(1 - deleted) AS registered, sum((1 - deleted) * online) AS online,
      sum((1 - deleted) * online * (1 - draining)) AS open,
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
          open: Number(row["open"]),
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
