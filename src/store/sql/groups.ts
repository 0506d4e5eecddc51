/** The reads, writes and facts of groups of tasks (domain/task/facet/group.ts). */
import type { GroupCounts, TouchedGroup } from "../../domain/task/facet/group.ts";
import { FAILURE_KINDS, isCancelled } from "../../domain/failure-kinds.ts";
import type { GroupTotals, Task, TaskState, TaskStatus } from "../../domain/model.ts";
import type { Param, Query, Row } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { bind, many, one, union, countRows } from "./query.ts";
import { TASK_COLUMNS, isFailedAs, toTask, toTaskState } from "./rows.ts";
import { TASKS_READ, UNFINISHED } from "./tasks.ts";
import { soundTotals } from "../../domain/sound.ts";
import { addTotals } from "../../domain/task/facet/group.ts";
import type { Columns } from "./table.ts";
import { GROUP_ENDINGS, GROUP_TOTALS } from "./tables.ts";
import type { Of, Writes } from "./write.ts";
import { type Statement, adding, drop, insert, mark, remove, update, whole } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

/** The condition that a failed task was cancelled, or expired. */
export const IS_CANCELLED = `(${FAILURE_KINDS.filter(isCancelled).map(isFailedAs).join(" OR ")})`;

const toTotals: (row: Row) => GroupTotals = GROUP_TOTALS.reader(
  ...(["open", "assigned", "completed", "failed", "cancelled", "in_review", "lux", "lux_micro"] as const),
  ...(["paid", "paid_micro", "first_created_at", "last_created_at", "last_updated_at"] as const),
).to(soundTotals);

export function groupTotals(group: string): Query<GroupTotals | null> {
  return one(`SELECT * FROM group_totals WHERE task_group = $1`, [group], toTotals, [keyOf.group(group)]);
}

export function touchedGroups(limit: number): Query<readonly TouchedGroup[]> {
  const sql = `
    SELECT t.*, g.marked FROM (SELECT task_group AS marked FROM group_endings ORDER BY task_group LIMIT $1) g
    LEFT JOIN group_totals t ON t.task_group = g.marked ORDER BY g.marked`;
  const toTouched = (row: Row): TouchedGroup => ({
    group: String(row["marked"]),
    totals: row["task_group"] === null ? null : toTotals(row),
  });
  return many(sql, [limit], toTouched, ["group_endings", "group_totals"]);
}

/** By name, after `after`. */
export function groupPage(prefix: string, after: string, limit: number): Query<readonly GroupCounts[]> {
  // The names with a prefix are next to one another: behind them nothing is read.
  const sql = `
    SELECT * FROM (
      SELECT * FROM group_totals WHERE task_group > $1 AND task_group >= $2 ORDER BY task_group LIMIT $3) AS page
    WHERE substr(task_group, 1, length($2)) = $2 ORDER BY task_group`;
  const toCounts = (row: Row): GroupCounts => ({ name: String(row["task_group"]), totals: toTotals(row) });
  return many(sql, [after, prefix, limit], toCounts, ["group_totals"]);
}

/** Newest first. */
export function groupFailures(group: string, limit: number): Query<readonly TaskState[]> {
  const sql = `
    SELECT task_id, title, t.status, t.assigned_node, progress, failure, child, t.updated_at
    FROM task_features f CROSS JOIN tasks t
    WHERE f.task_group = $1 AND f.status = 'failed' AND t.seq = f.task_seq AND NOT ${IS_CANCELLED}
    ORDER BY f.updated_at DESC LIMIT $2`;
  return many(sql, [group, limit], toTaskState, ["tasks"]);
}

/** `creatorNode` null is any. */
export type GroupTasks = {
  readonly group: string;
  readonly status: TaskStatus;
  readonly creatorNode: string | null;
};

/** Oldest first. */
export function tasksOfGroup(which: GroupTasks, after: number, limit: number): Query<readonly Task[]> {
  const params: Param[] = [limit];
  const first = `SELECT f.task_seq ${ofGroup(which, after, params)} ORDER BY f.task_seq LIMIT $1`;
  const sql = `SELECT ${TASK_COLUMNS} FROM task_rows t WHERE seq IN (${first}) ORDER BY seq`;
  return many(sql, params, toTask, TASKS_READ);
}

/** Newest first: so those that depend on others come first. */
export function unfinishedOfGroup(
  which: Pick<GroupTasks, "group" | "creatorNode">,
  limit: number,
): Query<readonly Task[]> {
  const params: Param[] = [limit];
  const ranges = UNFINISHED.map((status) => {
    const tasks = ofGroup({ ...which, status }, 0, params);
    return `SELECT f.task_seq AS seq ${tasks} ORDER BY f.task_seq DESC LIMIT $1`;
  });
  const newest = `SELECT seq FROM (${union(ranges)}) AS hits ORDER BY seq DESC LIMIT $1`;
  // DISTINCT and the last LIMIT: see pageRows().
  const sql = `
    SELECT ${TASK_COLUMNS} FROM task_rows t
    WHERE seq IN (SELECT DISTINCT seq FROM (${newest}) AS newest ORDER BY seq DESC LIMIT $1) ORDER BY seq DESC`;
  return many(sql, params, toTask, TASKS_READ);
}

/** Counted up to `most`. */
export function countOfGroup(which: GroupTasks, after: number, most: number): Query<number> {
  const params: Param[] = [most];
  const counted = `SELECT 1 AS one ${ofGroup(which, after, params)} LIMIT $1`;
  return countRows(counted, params, ["tasks"]);
}

function ofGroup({ group, status, creatorNode }: GroupTasks, after: number, params: Param[]): string {
  const where = `f.task_group = ${bind(params, group)} AND f.status = '${status}' AND f.task_seq > ${bind(params, after)}`;
  return creatorNode === null
    ? `FROM task_features f WHERE ${where}`
    : `FROM task_features f CROSS JOIN tasks t
        WHERE ${where} AND t.seq = f.task_seq AND t.creator_node = ${bind(params, creatorNode)}`;
}

type OfGroup = Of<"group.tallied">;
const totalsOf = (change: OfGroup): OfGroup => change;
const GROUP = GROUP_TOTALS.set(totalsOf, "task_group");
const COUNTS = GROUP_TOTALS.set(
  totalsOf,
  ...(["open", "assigned", "completed", "failed", "cancelled", "in_review"] as const),
  ...(["lux", "lux_micro", "paid", "paid_micro"] as const),
);
const later = (value: string, column: string): string =>
  `CASE WHEN ${value} > ${column} THEN ${value} ELSE ${column} END`;
/** Of a step that adds a task, which may be the first. */
const ADD_TO_GROUP: Statement<OfGroup> = insert(
  "group_totals",
  {
    ...GROUP,
    ...COUNTS,
    ...GROUP_TOTALS.set(totalsOf, "first_created_at", "last_created_at", "last_updated_at"),
  },
  ` ON CONFLICT (task_group) DO UPDATE SET
    ${Object.keys(COUNTS)
      .map((column) => `${column} = group_totals.${column} + excluded.${column}`)
      .join(", ")},
    last_created_at = excluded.last_created_at,
    last_updated_at = ${later("excluded.last_updated_at", "group_totals.last_updated_at")}`,
);
const EMPTY_GROUP: Columns<OfGroup> = {
  ...GROUP,
  ...{ open: "0", assigned: "0", completed: "0", failed: "0", cancelled: "0" },
};

export const GROUP_WRITES = {
  // Once for all tasks of a group that a group commit ends.
  "group.touched": {
    row: ({ group }) => keyOf.groupEnding(group),
    statement: mark(GROUP_ENDINGS, (change) => change),
    sum: (_, last) => last,
  },
  "group.checked": {
    isSweep: true, // so that it stays before or behind what is summed
    frees: true,
    statement: drop(GROUP_ENDINGS, ["task_group"]),
  },
  "group.tallied": {
    row: ({ group }) => keyOf.group(group),
    statement: update("group_totals", GROUP, {
      ...adding(COUNTS),
      last_updated_at: whole(({ lastUpdatedAt }) => lastUpdatedAt, later),
    }),
    instead: ({ adds }) => (adds ? ADD_TO_GROUP : null),
    beside: [{ when: ({ removes }) => removes, statement: remove("group_totals", EMPTY_GROUP) }],
    sum: (earlier, last) => ({
      ...last,
      ...addTotals(earlier, last),
      adds: earlier.adds || last.adds,
      removes: earlier.removes || last.removes,
    }),
  },
} satisfies Partial<Writes>;

/** With what a task adds to each. */
const GROUPED = {
  open: "status = 'open'",
  assigned: "status = 'assigned'",
  completed: "status = 'completed'",
  failed: "status = 'failed' AND NOT is_cancelled",
  cancelled: "is_cancelled",
  in_review: "review_until IS NOT NULL",
  lux: "lux_reward_micro / 1000000",
  lux_micro: "lux_reward_micro % 1000000",
  paid: "paid / 1000000",
  paid_micro: "paid % 1000000",
};

export const GROUP_FACTS: readonly Fact[] = [
  {
    name: "groups",
    holds: "the totals of every group are the sums over its tasks",
    sql: `
      SELECT 'group ' || task_group || ': its totals are not those of its tasks' FROM (
        SELECT task_group, ${Object.keys(GROUPED).join(", ")} FROM group_totals
        UNION ALL
        SELECT task_group, ${Object.values(GROUPED)
          .map((value) => `-sum(${value})`)
          .join(", ")} FROM (
          SELECT *, status = 'failed' AND ${IS_CANCELLED} AS is_cancelled,
            CASE WHEN status <> 'completed' THEN 0 WHEN paid_seq IS NOT NULL THEN lux_reward_micro
              ELSE coalesce(quorum ->> '$.paidMicro', 0) END AS paid
          FROM task_rows WHERE task_group IS NOT NULL)
        GROUP BY task_group)
      GROUP BY task_group
      HAVING count(*) <> 2 OR ${Object.keys(GROUPED)
        .map((column) => `sum(${column}) IS NOT 0`)
        .join(" OR ")} LIMIT ${SHOWN}`,
  },
];
