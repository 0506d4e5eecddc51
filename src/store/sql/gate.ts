/**
 * The reads of the gate (domain/gate.ts) and of the special lanes (domain/lane.ts), in the SQL that SQLite 3.35+ and
 * PostgreSQL 15+ share.
 */
import { periodOf } from "../../domain/budget.ts";
import { gateAfter, gateAt } from "../../domain/gate.ts";
import { type Head, type ReadyLane, isBetter } from "../../domain/lane.ts";
import { LANES_MAX } from "../../domain/limits.ts";
import type { BudgetState, Gate, Hold, LimitState, Pause } from "../../domain/model.ts";
import { dayOf } from "../../domain/task/facet/spending.ts";
import type { Change } from "../../domain/change.ts";
import type { Param, Query, Row } from "../store.ts";
import { bind, count, one, query, union } from "./query.ts";
import { decodeRequires } from "./rows.ts";
import { SUMS, toSpending } from "./spending.ts";

/** The three kinds of rows have the same columns, most of them NULL. The budgets come first: they say the types. */
const GATE = `
  SELECT 'budget' AS what, b.scope, b.value, b.per, b.cost_micro AS limit_micro, b.tokens, b.on_limit, b.warned_in,
    b.exceeded_in, ${SUMS("s")}, CAST(NULL AS TEXT) AS reason, CAST(NULL AS BIGINT) AS at, CAST(NULL AS BIGINT) AS running,
    CAST(NULL AS BIGINT) AS per_minute, CAST(NULL AS BIGINT) AS held_until, CAST(NULL AS BIGINT) AS in_use,
    CAST(NULL AS TEXT) AS uses, CAST(NULL AS TEXT) AS held_by, CAST(NULL AS BIGINT) AS held_at
  FROM budgets b LEFT JOIN usage_sums s ON s.scope = b.scope AND s.value = b.value AND s.day <= $1
    AND s.day >= CASE b.per WHEN 'day' THEN $1 WHEN 'month' THEN $2 ELSE 0 END
  GROUP BY b.scope, b.value, b.per, b.cost_micro, b.tokens, b.on_limit, b.warned_in, b.exceeded_in
  UNION ALL
  SELECT 'pause', scope, value, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, reason, at,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM pauses
  UNION ALL
  SELECT 'limit', 'limit_key', limit_key, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, running, per_minute, held_until,
    CASE WHEN running IS NULL THEN 0 ELSE (
      SELECT count(*) FROM tasks WHERE status = 'assigned' AND counts_for = limits.limit_key) END,
    CASE WHEN per_minute IS NULL THEN NULL ELSE (
      SELECT string_agg(second || ':' || uses, ',') FROM limit_uses u WHERE u.limit_key = limits.limit_key) END, held_by,
    held_at
  FROM limits
  ORDER BY what, scope, value, per`;

/** What all gates of one day share. Every dispatch needs one, so it is made once a day. */
let today: { readonly params: readonly number[]; readonly id: string } = { params: [], id: "" };

/** All budgets, pauses and limits, and what of them is used. While there are none, no engine reads for it. */
export function gateOn(now: number): Query<Gate> {
  const day = dayOf(now);
  if (today.params[0] !== day) today = { params: [day, periodOf("month", day)], id: String(day) };
  const shape: Query<Gate>["shape"] = (rows) => {
    const of = (what: string): readonly Row[] => rows.filter((row) => row["what"] === what);
    const budgets = of("budget").map(toBudget);
    return gateAt({ day, budgets, pauses: of("pause").map(toPause), limits: of("limit").map(toLimit) }, now);
  };
  return {
    sql: GATE,
    params: today.params,
    shape,
    reads: GATE_READS,
    patch: (gate, change) => patchGate(gate, change, now),
    cached: { as: "gate", id: today.id },
    needs: "gate",
  };
}

const GATE_READS = ["budgets", "usage_sums", "pauses", "limits", "limit_uses", "tasks"] as const;
const OF_TASKS: ReadonlySet<Change["kind"]> = new Set([
  "task.created",
  "task.moved",
  "task.edited",
  "task.deleted",
]);

/** Undefined: it must be loaded again. */
function patchGate(gate: Gate, change: Change, now: number): Gate | undefined {
  if (change.kind === "spending.summed") return gateAfter(gate, change, now);
  if (change.kind === "task.created" && change.task.countsFor === null) return gate;
  const isOfTask = OF_TASKS.has(change.kind) || "taskId" in change;
  return isOfTask && gate.limits.every(({ running }) => running === null) ? gate : undefined;
}

const maybe = (value: Row[string] | undefined): number | null => (value == null ? null : Number(value));

function toBudget(row: Row): BudgetState {
  return {
    scope: String(row["scope"]) as BudgetState["scope"],
    value: String(row["value"]),
    per: String(row["per"]) as BudgetState["per"],
    costMicro: maybe(row["limit_micro"]),
    tokens: maybe(row["tokens"]),
    onLimit: String(row["on_limit"]) as BudgetState["onLimit"],
    warnedIn: maybe(row["warned_in"]),
    exceededIn: maybe(row["exceeded_in"]),
    spent: toSpending(row),
  };
}

function toPause(row: Row): Pause {
  return {
    scope: String(row["scope"]) as Pause["scope"],
    value: String(row["value"]),
    reason: row["reason"] == null ? null : String(row["reason"]),
    at: Number(row["at"]),
  };
}

/** A hold of an older hub has no beginning. */
function toHold({ held_at, held_until, held_by }: Row): Hold | null {
  if (held_until == null) return null;
  return {
    at: Number(held_at ?? 0),
    until: Number(held_until),
    by: held_by == null ? null : String(held_by),
  };
}

function toLimit(row: Row): LimitState {
  const uses = row["uses"] == null ? [] : String(row["uses"]).split(",");
  return {
    key: String(row["value"]),
    running: maybe(row["running"]),
    perMinute: maybe(row["per_minute"]),
    hold: toHold(row),
    inUse: Number(row["in_use"]),
    uses: uses.map((use) => {
      const [second, count] = use.split(":");
      return { second: Number(second), count: Number(count) };
    }),
  };
}

/** Whether a node has a task of a limit key; null: it has none. */
export function hasTaskOfKey(nodeId: string, key: string): Query<true | null> {
  const sql = `
    SELECT 1 AS held FROM tasks
    WHERE assigned_node = $1 AND status = 'assigned' AND coalesce(limit_key, task_type) = $2 LIMIT 1`;
  return one(sql, [nodeId, key], () => true, ["tasks"]);
}

// ---- Special lanes

/** Special lanes by name. */
export type Lanes = ReadonlyMap<string, ReadyLane>;

/** In the words of the partial index. */
export const READY_IN_LANE = `ready = 2`;

/** The names of the lanes after each other: one index lookup each. */
const names = (table: string, where: string): string => `
  ${table} (lane) AS (
    SELECT (SELECT min(lane) FROM tasks WHERE ${where})
    UNION ALL SELECT (SELECT min(lane) FROM tasks WHERE ${where} AND lane > ${table}.lane) FROM ${table} WHERE lane IS NOT NULL)`;
const firstOf = (balanced: 0 | 1): string => `
  SELECT n.lane, t.task_type, t.limit_key, t.requires, t.creator_node, t.priority, t.seq FROM lanes${balanced} n CROSS JOIN task_rows t
  WHERE n.lane IS NOT NULL AND t.seq = (
    SELECT seq FROM tasks WHERE ${READY_IN_LANE} AND balanced = ${balanced} AND lane = n.lane ORDER BY priority, seq LIMIT 1)`;
const LANES = `
  WITH RECURSIVE ${names("lanes0", `${READY_IN_LANE} AND balanced = 0`)},
    ${names("lanes1", `${READY_IN_LANE} AND balanced = 1`)}
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
  if (task.lane === null || task.status !== "open" || task.scheduled) return lanes;
  const { priority, seq } = task;
  const known = lanes.get(task.lane);
  if (known && isBetter(task, known.head)) known.head = { priority, seq };
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
    if (known === undefined || isBetter(lane.head, known.head)) lanes.set(lane.name, lane);
  }
  return lanes;
}

const toHead = (row: Row): Head => ({ priority: Number(row["priority"]), seq: Number(row["seq"]) });

/** The best ready tasks of these special lanes, by the name of the lane. */
export function headsOf(lanes: readonly string[]): Query<ReadonlyMap<string, Head>> {
  const sql = (values: string): string => `
    SELECT l.lane, t.priority, t.seq FROM (${union([0, 1].map((balanced) => `SELECT value AS lane, ${balanced} AS flag FROM ${values}`))}) AS l
    CROSS JOIN tasks t WHERE t.seq = (
      SELECT seq FROM tasks WHERE ${READY_IN_LANE} AND balanced = l.flag AND lane = l.lane ORDER BY priority, seq LIMIT 1)`;
  const params = [JSON.stringify(lanes)];
  const shape = (rows: readonly Row[]): ReadonlyMap<string, Head> => {
    const heads = new Map<string, Head>();
    for (const row of rows) {
      const [name, head] = [String(row["lane"]), toHead(row)];
      const known = heads.get(name);
      if (known === undefined || isBetter(head, known)) heads.set(name, head);
    }
    return heads;
  };
  return {
    ...query(sql("json_array_elements_text(CAST($1 AS TEXT)::json) AS n (value)"), params, shape, ["tasks"]),
    patch: (heads, change) => {
      if ("task" in change && OF_TASKS.has(change.kind))
        return change.task.lane !== null && lanes.includes(change.task.lane) ? undefined : heads;
      return "taskId" in change ? heads : undefined;
    },
    // Differs because each engine reads JSON in its own way.
    onSqlite: { sql: sql("json_each($1)"), params },
  };
}

function toLane(row: Row): ReadyLane {
  const text = (name: string): string | null => (row[name] == null ? null : String(row[name]));
  return {
    name: String(row["lane"]),
    taskType: String(row["task_type"]),
    limitKey: text("limit_key"),
    requires: decodeRequires(text("requires")),
    creatorNode: text("creator_node"),
    head: toHead(row),
  };
}

/** How many ready tasks of a creator these lanes have, counted up to `most`. */
export function readyInLanes(lanes: readonly string[], creatorNode: string, most: number): Query<number> {
  const params: Param[] = [creatorNode, most];
  const names = lanes.map((lane) => bind(params, lane)).join(", ");
  const ready = `SELECT 1 AS one FROM tasks WHERE ${READY_IN_LANE} AND lane IN (${names}) AND creator_node = $1 LIMIT $2`;
  return count(`SELECT count(*) AS n FROM (${ready}) AS counted`, params, ["tasks"]);
}

/** In the words of the partial index; SQLite recognises it only by all of them. */
const UNFINISHED = (status: "open" | "assigned"): string =>
  `lane IS NOT NULL AND status IN ('open', 'assigned') AND status = '${status}'`;

/** As UNFINISHED, of the tasks that keys bound to a node have created. */
const UNFINISHED_OF = `lane IS NOT NULL AND status IN ('open', 'assigned') AND creator_verified = 1 AND creator_node = $4`;

/**
 * How many special lanes but this one have unfinished tasks, counted up to about `most`: one index lookup each. 0 without
 * counting if this lane has one, or if there are fewer such tasks than `most`: the usual cases, which must not cost as much
 * as there are lanes.
 * @param creator only tasks that keys bound to this node have created
 */
export function otherLanes(name: string, most: number, creator: string | null = null): Query<number> {
  const kinds = creator === null ? [UNFINISHED("open"), UNFINISHED("assigned")] : [UNFINISHED_OF];
  const inLane = kinds.map((where) => `SELECT seq FROM tasks WHERE ${where} AND lane = $2 LIMIT 1`);
  const counted = kinds.map(
    (where, i) => `SELECT seq FROM (SELECT seq FROM tasks WHERE ${where} LIMIT $3) AS tasks_${i}`,
  );
  const found = kinds.map(
    (_, i) => `SELECT lane FROM (SELECT lane FROM lanes_${i} LIMIT $1) AS found_${i} WHERE lane IS NOT NULL`,
  );
  const sql = `SELECT CASE
    WHEN EXISTS (${union(inLane)}) THEN 0
    WHEN (SELECT count(*) FROM (${union(counted)}) AS tasks_counted) < $3 THEN 0
    ELSE (
      WITH RECURSIVE ${kinds.map((where, i) => names(`lanes_${i}`, where)).join()}
      SELECT count(*) FROM (${found.join(" UNION ")}) AS lanes_counted)
    END AS n`;
  const params = [most + 1, name, most, ...(creator === null ? [] : [creator])];
  return count(sql, params, ["tasks"]);
}
