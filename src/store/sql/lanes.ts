/**
 * The reads of lanes (domain/lane.ts). A plain lane is read by its
 * type, so that its tasks are in no index but those of the backlog; a special one by its name.
 */
import { type Position, type ReadyLane, isSpecial } from "../../domain/lane.ts";
import { LANES_MAX } from "../../domain/limits.ts";
import type { Change } from "../../domain/change.ts";
import { comesFirst } from "../../domain/task/order.ts";
import type { Param, Query, Row } from "../store.ts";
import { bind, count, query, union, countRows } from "./query.ts";
import { textOrNull, toPosition } from "./rows.ts";
import { TASK_FEATURES } from "./tables.ts";

/** Open, not waiting for its time or for other tasks, and in a plain or a special lane: in the words of the indexes. */
export const READY_PLAIN = `ready = 1`;
export const READY_SPECIAL = `ready = 2`;

/** `value`: SQL for the name of the lane. */
export function isReadyIn(name: string, value: string): string {
  return isSpecial(name) ? `${READY_SPECIAL} AND lane = ${value}` : `${READY_PLAIN} AND task_type = ${value}`;
}

/** By name. */
export type Lanes = ReadonlyMap<string, ReadyLane>;

/** The names of the lanes after each other: one index lookup each. */
const names = (table: string, where: string): string => `
  ${table} (lane) AS (
    SELECT (SELECT min(lane) FROM tasks WHERE ${where})
    UNION ALL SELECT (SELECT min(lane) FROM tasks WHERE ${where} AND lane > ${table}.lane) FROM ${table} WHERE lane IS NOT NULL)`;
const firstOf = (balanced: 0 | 1): string => `
  SELECT n.lane, t.task_type, t.limit_key, t.requires, t.creator_node, t.priority, t.seq FROM lanes${balanced} n CROSS JOIN task_rows t
  WHERE n.lane IS NOT NULL AND t.seq = (
    SELECT seq FROM tasks WHERE ${READY_SPECIAL} AND balanced = ${balanced} AND lane = n.lane ORDER BY priority, seq LIMIT 1)`;
const LANES = `
  WITH RECURSIVE ${names("lanes0", `${READY_SPECIAL} AND balanced = 0`)},
    ${names("lanes1", `${READY_SPECIAL} AND balanced = 1`)}
  ${firstOf(0)} UNION ALL ${firstOf(1)}`;

/**
 * The special lanes with ready tasks, and maybe others that had some. While no unfinished task is in a special lane, no
 * engine reads for it.
 */
export const readyLanes = (): Query<Lanes> => READY_LANES;

/** Undefined: there are too many that may be empty. */
export function patchLanes(lanes: Lanes, change: Change): Lanes | undefined {
  if (change.kind !== "task.created" && change.kind !== "task.moved")
    return change.kind === "tasks.counted" || "taskId" in change || change.kind === "task.edited"
      ? lanes
      : undefined;
  const { task } = change;
  if (!isSpecial(task.lane) || task.status !== "open" || task.scheduled) return lanes;
  const { priority, seq } = task;
  const known = lanes.get(task.lane);
  if (known && comesFirst(task, known.head)) known.head = { priority, seq };
  if (known) return lanes;
  if (lanes.size >= 2 * LANES_MAX) return undefined;
  const { taskType, limitKey, requires, creatorNode } = task;
  const lane = { name: task.lane, taskType, limitKey, requires, creatorNode, head: { priority, seq } };
  return new Map(lanes).set(task.lane, lane);
}

const READY_LANES: Query<Lanes> = {
  ...query(LANES, [], toLanes, ["tasks"]),
  patch: patchLanes,
  cached: { as: "lanes", id: "" },
  needs: "lanes",
};

/** Of a lane with tasks of the balancer and others there are two rows. */
function toLanes(rows: readonly Row[]): Lanes {
  const lanes = new Map<string, ReadyLane>();
  for (const row of rows) {
    const lane = toLane(row);
    const known = lanes.get(lane.name);
    if (known === undefined || comesFirst(lane.head, known.head)) lanes.set(lane.name, lane);
  }
  return lanes;
}

/** By the name of the lane. */
export function headsOf(lanes: readonly string[]): Query<ReadonlyMap<string, Position>> {
  const sql = (values: string): string => `
    SELECT l.lane, t.priority, t.seq FROM (${union([0, 1].map((balanced) => `SELECT value AS lane, ${balanced} AS flag FROM ${values}`))}) AS l
    CROSS JOIN tasks t WHERE t.seq = (
      SELECT seq FROM tasks WHERE ${READY_SPECIAL} AND balanced = l.flag AND lane = l.lane ORDER BY priority, seq LIMIT 1)`;
  const params = [JSON.stringify(lanes)];
  const shape = (rows: readonly Row[]): ReadonlyMap<string, Position> => {
    const heads = new Map<string, Position>();
    for (const row of rows) {
      const [name, head] = [String(row["lane"]), toPosition(row)];
      const known = heads.get(name);
      if (known === undefined || comesFirst(head, known)) heads.set(name, head);
    }
    return heads;
  };
  return {
    ...query(sql("json_array_elements_text(CAST($1 AS TEXT)::json) AS n (value)"), params, shape, ["tasks"]),
    patch: (heads, change) => {
      if (change.kind === "task.created" || change.kind === "task.moved" || change.kind === "task.edited")
        return lanes.includes(change.task.lane) ? undefined : heads;
      return "taskId" in change ? heads : undefined;
    },
    // Differs because each engine reads JSON in its own way.
    onSqlite: { sql: sql("json_each($1)"), params },
  };
}

const readRequires = TASK_FEATURES.reader("requires");

function toLane(row: Row): ReadyLane {
  return {
    name: String(row["lane"]),
    taskType: String(row["task_type"]),
    limitKey: textOrNull(row["limit_key"]),
    requires: readRequires(row).requires,
    creatorNode: textOrNull(row["creator_node"]),
    head: toPosition(row),
  };
}

/** Counted up to `most`. */
export function readyInLanes(lanes: readonly string[], creatorNode: string, most: number): Query<number> {
  const params: Param[] = [creatorNode, most];
  const names = lanes.map((lane) => bind(params, lane)).join(", ");
  const ready = `SELECT 1 AS one FROM tasks WHERE ${READY_SPECIAL} AND lane IN (${names}) AND creator_node = $1 LIMIT $2`;
  return countRows(ready, params, ["tasks"]);
}

/** In the words of the partial index; SQLite recognises it only by all of them. */
const UNFINISHED = (status: "open" | "assigned"): string =>
  `lane IS NOT NULL AND status IN ('open', 'assigned') AND status = '${status}'`;

/** Of the tasks that keys bound to a node have created. */
const UNFINISHED_OF = `lane IS NOT NULL AND status IN ('open', 'assigned') AND creator_verified = 1 AND creator_node = $4`;

/**
 * Counted up to about `most`: one index lookup each. 0 without counting if this lane has one, or if there are fewer
 * such tasks than `most`: the usual cases, which must not cost as much as there are lanes.
 * @param creator only tasks that keys bound to this node have created
 */
export function otherLanes(name: string, most: number, creator: string | null = null): Query<number> {
  const kinds = creator === null ? [UNFINISHED("open"), UNFINISHED("assigned")] : [UNFINISHED_OF];
  const inLane = kinds.map((where) => `SELECT seq FROM tasks WHERE ${where} AND lane = $2 LIMIT 1`);
  const counted = kinds.map(
    (where, i) => `SELECT seq FROM (SELECT seq FROM tasks WHERE ${where} LIMIT $3) AS tasks_${i}`,
  );
  const lanes = kinds.map(
    (_, i) => `SELECT lane FROM (SELECT lane FROM lanes_${i} LIMIT $1) AS found_${i} WHERE lane IS NOT NULL`,
  );
  const sql = `SELECT CASE
    WHEN EXISTS (${union(inLane)}) THEN 0
    WHEN (SELECT count(*) FROM (${union(counted)}) AS tasks_counted) < $3 THEN 0
    ELSE (
      WITH RECURSIVE ${kinds.map((where, i) => names(`lanes_${i}`, where)).join()}
      SELECT count(*) FROM (${lanes.join(" UNION ")}) AS lanes_counted)
    END AS n`;
  const params = [most + 1, name, most, ...(creator === null ? [] : [creator])];
  return count(sql, params, ["tasks"]);
}
