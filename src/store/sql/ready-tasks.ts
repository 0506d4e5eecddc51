/**
 * The reads of ready tasks that a dispatch, the balancer or a pull chooses from. Tasks of plain lanes come from one index range for each type, or one for all types; of special
 * lanes only the best task is looked up.
 */
import { closedTypes } from "../../domain/gate.ts";
import { type Lane, isSpecial, typesFor } from "../../domain/lane.ts";
import { CACHED_BACKLOG_QUERIES, CACHED_BACKLOG_TASKS, CACHED_TASK_MAX_CHARS } from "../../domain/limits.ts";
import type { Change } from "../../domain/change.ts";
import type { Closed, Task } from "../../domain/model.ts";
import type { Resting } from "../../domain/task/facet/exclusion.ts";
import { type TurnOf, comesFirst, lanesByPlace, NO_TURNS } from "../../domain/task/order.ts";
import type { Param, Query, Row } from "../store.ts";
import { isReadyIn, READY_PLAIN, READY_SPECIAL } from "./lanes.ts";
import { type Sized, bind, many, NO_ROWS, padded, query, sizes, union, countRows } from "./query.ts";
import { TASK_COLUMNS, charsOf, toTask } from "./rows.ts";
import { TASKS_READ } from "./tasks.ts";

// ---- What is left out

/** Which ready tasks are left out. They are read and skipped. */
type LeftOut = {
  readonly closed?: Closed | null;
  readonly butFor?: string | null;
  readonly notRevokedFrom?: string;
  /** What a node gave back a short time ago. */
  readonly resting?: Resting | null;
};

/** The source of tasks, with their features only if a condition names one, and the conditions. */
function without(
  params: Param[],
  { closed = null, butFor = null, notRevokedFrom, resting = null }: LeftOut,
): { readonly source: string; readonly where: string } {
  const creators = [...(closed?.creators ?? [])];
  const groups = [...(closed?.groups ?? [])];
  const needsFeatures = butFor !== null || groups.length > 0;
  let where = "";
  if (notRevokedFrom !== undefined)
    where += ` AND (revoked_from IS NULL OR revoked_from <> ${bind(params, notRevokedFrom)})`;
  if (resting !== null)
    where += ` AND (revoked_from IS NULL OR revoked_from <> ${bind(params, resting.nodeId)} OR updated_at <= ${bind(params, resting.since)})`;
  if (butFor !== null)
    where += ` AND (not_nodes IS NULL OR replace(not_nodes, ${bind(params, `,${butFor},`)}, '') = not_nodes)`;
  if (creators.length > 0) where += butValues(params, "creator_node", creators);
  if (groups.length > 0) where += butGroups(params, groups);
  return { source: needsFeatures ? "task_rows tasks" : "tasks", where };
}

function butValues(params: Param[], column: string, values: readonly string[]): string {
  return ` AND coalesce(${column}, '') NOT IN (${values.map((value) => bind(params, value)).join(", ")})`;
}

/** Neither a task nor the one for which the hub created it is in a closed group (payingGroup). */
function butGroups(params: Param[], groups: readonly string[]): string {
  const names = groups.map((group) => bind(params, group)).join(", ");
  const ofChild = `SELECT 1 FROM task_rows p WHERE p.task_id = tasks.parent_task AND p.task_group IN (${names})`;
  return ` AND coalesce(task_group, '') NOT IN (${names}) AND (parent_task IS NULL OR NOT EXISTS (${ofChild}))`;
}

// ---- Plain lanes

/** `types` null: of every type. Each range has a LIMIT, because SQLite sorts the ranges below an IN. */
function bestPlain(
  flags: readonly number[],
  types: readonly string[] | null,
  limit: number,
  leftOut: LeftOut = {},
): { readonly best: string; readonly params: readonly Param[] } {
  const params: Param[] = [limit];
  const { source, where } = without(params, leftOut);
  const { closed = null } = leftOut;
  const closedPlain = types === null && closed !== null ? [...closedTypes(closed)] : [];
  const butTypes = closedPlain.length === 0 ? "" : butValues(params, "task_type", closedPlain);
  const ranges = flags.flatMap((flag) =>
    (types ? [...new Set(types)] : [null]).map((type) => {
      const ofType = type === null ? "" : ` AND task_type = ${bind(params, type)}`;
      return `
        SELECT seq, priority FROM ${source}
        WHERE ${READY_PLAIN} AND balanced = ${flag}${ofType}${where}${butTypes}
        ORDER BY priority, seq LIMIT $1`;
    }),
  );
  const best = `SELECT seq FROM (${union(ranges)}) AS hits ORDER BY priority, seq LIMIT $1`;
  return { best, params };
}

const tasksIn = (best: string): string =>
  `SELECT ${TASK_COLUMNS} FROM task_rows t WHERE seq IN (${best}) ORDER BY priority, seq`;

/** Best first; empty if the balancer may assign none. */
export function waitingFor(
  node: { nodeId: string; capabilities: readonly string[]; autoAssign: boolean },
  limit: number,
): Query<readonly Task[]> {
  const types = typesFor(node, null);
  const { best, params } = bestPlain([1], types, node.autoAssign ? limit : 0, {
    notRevokedFrom: node.nodeId,
  });
  return many(tasksIn(best), params, toTask, TASKS_READ);
}

/** Best first. `isAll`: certainly there are no others. */
export type ReadyTasks = { readonly tasks: readonly Task[]; readonly isAll: boolean };

/** How many tasks bestReady() loads: many transactions share them, and each takes the next one (patchReady). */
const READY_TOGETHER = 8;
/** How many it loads for a batch, whose requests may all be of one node, and where the result stays in memory. */
const READY_LOADED = 32;
/** Those that leave nothing out. */
const READY_QUERIES = new Map<string, Query<ReadyTasks>>();

/**
 * At least one if there is any; `types` null is every type. `closed`: without what the gate keeps back, but for the
 * closed types that are named.
 */
export function bestReady(
  types: readonly string[] | null,
  inBatch = false,
  closed: Closed | null = null,
  leftOut: Pick<LeftOut, "butFor" | "resting"> = {},
): Query<ReadyTasks> {
  const leavesOut = closed !== null && closed.creators.size + closed.groups.size > 0;
  const leavesOutTypes = closed !== null && types === null && closedTypes(closed).size > 0;
  if (types?.length !== 0 && (leftOut.butFor || leavesOut || leavesOutTypes))
    return readyTasks(types, READY_TOGETHER, { closed, ...leftOut });
  const id = types === null ? "" : JSON.stringify(types);
  const name = `${inBatch} ${id}`;
  const known = READY_QUERIES.get(name);
  if (known) return known;
  const built = sharedReady(types, id, inBatch ? READY_LOADED : READY_TOGETHER);
  if (READY_QUERIES.size >= CACHED_BACKLOG_QUERIES) READY_QUERIES.clear();
  READY_QUERIES.set(name, built);
  return built;
}

function readyTasks(types: readonly string[] | null, most: number, leftOut: LeftOut = {}): Query<ReadyTasks> {
  const { best, params } = bestPlain([0, 1], types, most, leftOut);
  const shape = (rows: readonly Row[]): ReadyTasks => ({
    tasks: rows.map(toTask),
    isAll: rows.length < most,
  });
  return query(tasksIn(best), params, shape, TASKS_READ);
}

/** Many transactions share its result, and engines keep it; it reads nothing for no types. */
function sharedReady(types: readonly string[] | null, id: string, most: number): Query<ReadyTasks> {
  const hasTypes = types?.length !== 0;
  const built = readyTasks(hasTypes ? types : null, hasTypes ? most : 0);
  const { sql, params } = built;
  return {
    ...built,
    patch: (ready, change) => patchReady(ready, change, types),
    cached: { as: "ready", id },
    onSqlite: { sql, params: hasTypes ? [READY_LOADED, ...params.slice(1)] : params },
  };
}

/** Undefined: they must be loaded again. */
function patchReady(
  ready: ReadyTasks,
  change: Change,
  types: readonly string[] | null,
): ReadyTasks | undefined {
  if (change.kind === "task.deleted") return withoutTask(ready, change.taskId);
  // A new task has its files, and one that failed is not ready.
  if (change.kind === "file.attached" || change.kind === "task.broken") return ready;
  // What they write is in the task that the same commit creates or moves.
  if (
    change.kind === "task.reviewed" ||
    change.kind === "task.related" ||
    change.kind === "task.quorate" ||
    change.kind === "result.removed"
  )
    return ready;
  if (change.kind !== "task.created" && change.kind !== "task.moved") return undefined;
  const { task } = change;
  const others = change.kind === "task.created" ? ready : withoutTask(ready, task.taskId);
  const { status, scheduled, lane } = task;
  const isOfLanes = types === null ? !isSpecial(lane) : types.includes(lane); // the name of a plain lane is its type
  return others && status === "open" && !scheduled && isOfLanes ? withTask(others, task) : others;
}

/** Undefined: all that are known are gone, and there may be others. */
function withoutTask(ready: ReadyTasks, taskId: string): ReadyTasks | undefined {
  const index = ready.tasks.findIndex((task) => task.taskId === taskId);
  if (index === -1) return ready;
  const tasks = ready.tasks.toSpliced(index, 1);
  return tasks.length > 0 || ready.isAll ? { tasks, isAll: ready.isAll } : undefined;
}

/** Undefined: its place among them is not known, because a new task has no number (`seq`) yet on PostgreSQL. */
function withTask({ tasks, isAll }: ReadyTasks, task: Task): ReadyTasks | undefined {
  const seq = task.seq === 0 ? Infinity : task.seq; // a new one comes after all of its priority
  const place = { priority: task.priority, seq };
  // From the end, because most are new.
  const index = 1 + tasks.findLastIndex((other) => !comesFirst(place, other));
  const isLast = index === tasks.length;
  const isKept = tasks.length < CACHED_BACKLOG_TASKS && charsOf(task) <= CACHED_TASK_MAX_CHARS;
  if (isLast && tasks.length > 0 && !(isAll && isKept && task.seq > 0)) return { tasks, isAll: false };
  if (task.seq === 0) return undefined;
  const known = tasks.toSpliced(index, 0, task);
  if (known.length > CACHED_BACKLOG_TASKS) known.pop();
  return { tasks: known, isAll: isAll && tasks.length < CACHED_BACKLOG_TASKS };
}

// ---- Special lanes

/** How many of the best tasks of special lanes are loaded: a transaction may find that it may not have the first. */
const HEADS_LOADED = 8;

/** In the order of offers (domain/task/order.ts): of each lane only the best one, by one lookup. */
export function bestOfLanes(
  lanes: readonly Lane[],
  closed: Closed | null,
  options: Omit<LeftOut, "closed"> & {
    readonly turnOf?: TurnOf;
    readonly onlyBalanced?: boolean;
    readonly limit?: number;
  } = {},
): Query<readonly Task[]> {
  if (lanes.length === 0) return NO_ROWS;
  const { turnOf = NO_TURNS, onlyBalanced = false, limit = HEADS_LOADED, ...leftOut } = options;
  // Not a place with each name: to read that from the JSON took SQLite five times as long as the lookups.
  const namesByPlace = lanesByPlace(lanes, turnOf).map((alike) => alike.map(({ name }) => name));
  const params: Param[] = [JSON.stringify(namesByPlace), limit];
  const { source, where } = without(params, { ...leftOut, closed });
  const flags = onlyBalanced ? [1] : [0, 1];
  const sql = (places: string): string => `
    SELECT ${TASK_COLUMNS} FROM (
      SELECT t.seq, l.place
      FROM (${union(flags.map((flag) => `SELECT n.value AS lane, g.place, ${flag} AS flag FROM ${places}`))}) AS l
      CROSS JOIN tasks t
      WHERE t.seq = (
        SELECT seq FROM ${source} WHERE ${READY_SPECIAL} AND balanced = l.flag AND lane = l.lane${where}
        ORDER BY priority, seq LIMIT 1)
      ORDER BY t.priority, l.place, t.seq LIMIT $2) AS best
    CROSS JOIN task_rows t WHERE t.seq = best.seq ORDER BY t.priority, best.place, t.seq`;
  return {
    ...many(
      sql(`json_array_elements(CAST($1 AS TEXT)::json) WITH ORDINALITY AS g (value, place)
        CROSS JOIN json_array_elements_text(g.value) AS n (value)`),
      params,
      toTask,
      TASKS_READ,
    ),
    patch: (tasks, change) => patchHeads(tasks, change, lanes),
    // Differs because each engine reads JSON in its own way.
    onSqlite: {
      sql: sql(`(SELECT value, key AS place FROM json_each($1)) AS g CROSS JOIN json_each(g.value) AS n`),
      params,
    },
  };
}

/** Undefined: another task of a lane may be its best one now. */
function patchHeads(
  tasks: readonly Task[],
  change: Change,
  lanes: readonly Lane[],
): readonly Task[] | undefined {
  if (change.kind === "task.created" || change.kind === "task.moved" || change.kind === "task.edited")
    // It may also have left its lane, by another limit key.
    return lanes.some(({ name }) => name === change.task.lane) ||
      tasks.some(({ taskId }) => taskId === change.task.taskId)
      ? undefined
      : tasks;
  if (!("taskId" in change)) return undefined;
  return tasks.some(({ taskId }) => taskId === change.taskId) ? undefined : tasks;
}

// ---- Both

/**
 * Best first; openTasks() loads them.
 * `nodeId`: without those that this node may not have. `special`: the numbers of the best tasks of the special lanes
 * that it could take.
 */
export function claimableSizes(
  capabilities: readonly string[],
  limit: number,
  nodeId: string | null = null,
  special: readonly number[] = [],
): Query<readonly Sized[]> {
  const leftOut = { butFor: nodeId };
  const plain = bestPlain([0, 1], typesFor({ capabilities }, null), limit, leftOut);
  const params = [...plain.params];
  const ranges = [plain.best];
  if (special.length > 0) {
    const numbers = padded(special).map((seq) => bind(params, seq));
    const { source, where } = without(params, leftOut);
    ranges.push(
      `SELECT seq FROM ${source} WHERE seq IN (${numbers.join(", ")}) AND ${READY_SPECIAL}${where}`,
    );
  }
  const best = ranges.length === 1 ? plain.best : union(ranges);
  const sql = `
    SELECT seq, octet_length(description) + coalesce(octet_length(depends_on), 0) AS bytes
    FROM task_rows WHERE seq IN (${best}) ORDER BY priority, seq LIMIT $1`;
  return sizes(sql, params, ["tasks"]);
}

/** Counted up to `most`. */
export function aheadInLane(task: Task, most: number): Query<number> {
  const params: Param[] = [most, task.lane, task.priority, task.seq];
  const ahead = [0, 1].map(
    (balanced) =>
      `SELECT 1 AS one FROM tasks WHERE ${isReadyIn(task.lane, "$2")} AND balanced = ${balanced} AND (priority, seq) < ($3, $4)`,
  );
  return countRows(`${union(ahead)} LIMIT $1`, params, ["tasks"]);
}
