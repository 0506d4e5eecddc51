/** The reads, writes and facts of a task's neighbours: what it depends on, and what waits for it. */
import { GRAPH_DEPENDENTS_COUNTED_MAX } from "../../domain/limits.ts";
import type { TaskStatus } from "../../domain/model.ts";
import type { Query, Row } from "../store.ts";
import { many, padded, placeholders, countRows } from "./query.ts";
import { type ConflictKey, keyOf } from "./conflict-keys.ts";
import { TASK } from "./rows.ts";
import { reader } from "./table.ts";
import { DEPENDENCIES, SETTLEMENTS, TASK_FEATURES } from "./tables.ts";
import { setFeature } from "./task-writes.ts";
import { type Of, type Writes, evict } from "./write.ts";
import { type Statement, customStatement, drop, save, text, update } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

export type GraphTask = {
  readonly taskId: string;
  readonly title: string;
  readonly status: TaskStatus;
  readonly assignedNode: string | null;
  readonly dependsOn: readonly string[];
  /** How many of `dependsOn` have not ended as they must. */
  readonly unmet: number;
  /** The task because of which it failed; itself if it did not. */
  readonly brokenBy: string;
};

const readGraphTask = reader(TASK, ["task_id", "title", "status", "assigned_node", "depends_on", "unmet"], {
  brokenBy: (row): string => String(row["broken_by"] ?? row["task_id"]),
});
const toGraphTask: (row: Row) => GraphTask = readGraphTask;
const COLUMNS = `${readGraphTask.list}, broken_by`;

export function graphTasks(taskIds: readonly string[]): Query<readonly GraphTask[]> {
  const ids = padded(taskIds);
  const sql = `SELECT ${COLUMNS} FROM task_rows WHERE task_id IN (${placeholders(ids)}) ORDER BY seq`;
  return many(sql, ids, toGraphTask, ["tasks"]);
}

/** A task, and the task that broke it when it failed through another; itself when it failed on its own. */
type Origin = Pick<GraphTask, "taskId"> & { readonly brokenBy: string };

/**
 * The ids of unfinished tasks that wait for a task, and of those that failed because of it. All that fail because of one
 * name that one, however many tasks are between.
 */
const DEPENDENTS = `
  SELECT task_id FROM dependencies WHERE depends_on = $1
  UNION SELECT task_id FROM (SELECT task_id, depends_on FROM task_rows WHERE broken_by = $2 LIMIT ${GRAPH_DEPENDENTS_COUNTED_MAX}) AS b
    WHERE depends_on LIKE '%' || $1 || '%'`;

const READS = ["dependencies", "tasks"] as const;

export function dependentsOf({ taskId, brokenBy }: Origin, limit: number): Query<readonly GraphTask[]> {
  const sql = `
    SELECT ${COLUMNS} FROM task_rows WHERE task_id IN (SELECT task_id FROM (${DEPENDENTS} LIMIT $3) AS d) ORDER BY seq`;
  return many(sql, [taskId, brokenBy, limit], toGraphTask, READS);
}

/** `most` if there are more. */
export function dependentCount({ taskId, brokenBy }: Origin, most: number): Query<number> {
  return countRows(`${DEPENDENTS} LIMIT $3`, [taskId, brokenBy, most], READS);
}

const ofDependent = ({ taskId }: { readonly taskId: string }): ConflictKey => keyOf.dependencies(taskId);
const addDependencies = (taskId: string, dependsOn: string, from: string): string =>
  `INSERT INTO dependencies (task_id, depends_on) SELECT ${taskId}, ${dependsOn} FROM ${from}`;
/** One statement for all that a task waits for, a JSON array. Differs because each engine reads JSON in its own way. */
const ADD_DEPENDENCIES: Statement<Of<"dependencies.added">, "dependencies"> = {
  ...customStatement("dependencies", addDependencies("$1", "value", "json_each($2)"), [
    text(({ taskId }) => taskId),
    text(({ dependsOn }) => JSON.stringify(dependsOn)),
  ]),
  bulk: (rows) => addDependencies("p.a1", "json_array_elements_text(p.a2::json)", rows),
};

export const GRAPH_WRITES = {
  "task.depended": {
    cache: evict,
    row: ({ taskId }) => keyOf.task(taskId),
    keys: () => [keyOf.dependents],
    statement: update("tasks", { task_id: text(({ taskId }) => taskId) }, { has_dependents: "1" }),
  },
  "task.broken": {
    cache: evict,
    row: ({ taskId }) => keyOf.task(taskId),
    statement: setFeature(TASK_FEATURES.set((change) => change, "broken_by")),
  },
  "dependencies.added": { row: ofDependent, statement: ADD_DEPENDENCIES },
  "dependency.met": { row: ofDependent, statement: drop(DEPENDENCIES, ["task_id", "depends_on"]) },
  "dependencies.dropped": { row: ofDependent, statement: drop(DEPENDENCIES, ["task_id"]) },
  "dependency.settled": {
    row: ({ taskId }) => keyOf.settlement(taskId),
    statement: save(SETTLEMENTS, (change) => change),
  },
  "settlement.removed": {
    row: ({ taskId }) => keyOf.settlement(taskId),
    statement: drop(SETTLEMENTS, ["task_id"]),
  },
} satisfies Partial<Writes>;

export const GRAPH_FACTS: readonly Fact[] = [
  {
    name: "dependencies",
    holds:
      "every task waits for as many others as it counts, all of them unfinished or just ended; one that failed through others knows the cause",
    sql: `
      SELECT 'task ' || task_id || ' waits for ' || unmet || ' others, ' || n || ' are listed' FROM (
        SELECT t.task_id, t.unmet, (SELECT count(*) FROM dependencies d WHERE d.task_id = t.task_id) AS n FROM task_rows t
        WHERE t.depends_on IS NOT NULL)
      WHERE unmet <> n
      UNION ALL
      SELECT 'task ' || d.task_id || ' waits for ' || d.depends_on || ', which will not tell it' FROM dependencies d
      WHERE d.task_id NOT IN (SELECT task_id FROM task_rows) OR NOT EXISTS (
        SELECT 1 FROM task_rows t WHERE t.task_id = d.depends_on AND (status IN ('open', 'assigned') OR review_until IS NOT NULL)
          AND has_dependents = 1
        UNION ALL SELECT 1 FROM settlements s WHERE s.task_id = d.depends_on)
      UNION ALL
      SELECT 'task ' || task_id || ' is ' || status || ', and what its failure comes from is not' FROM task_rows
      WHERE (broken_by IS NOT NULL) <> (status = 'failed' AND json_extract(failure, '$.kind') = 'dependency')
      LIMIT ${SHOWN}`,
  },
];
