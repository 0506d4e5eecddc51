/** The reads of tasks. */
import { FILE_ID_BYTES } from "../../domain/file.ts";
import { PER_PAGE_MAX } from "../../domain/limits.ts";
import type { Change, Outcome } from "../../domain/change.ts";
import type { EventKind } from "../../domain/event.ts";
import { WAIT_CODES, type WaitCode } from "../../domain/held.ts";
import {
  type Failure,
  type Task,
  type TaskState,
  type TaskStatus,
  type TaskSummary,
  PRIORITIES,
  TASK_STATUSES,
} from "../../domain/model.ts";
import { ownerOf } from "../../domain/task/facet/group.ts";
import type { Dependency } from "../../domain/task/facet/dependencies.ts";
import { isInReview } from "../../domain/task/state.ts";
import type { Param, Query, Row } from "../store.ts";
import { type ConflictKey, keyOf } from "./conflict-keys.ts";
import {
  type Sized,
  type Slice,
  always,
  bind,
  byKey,
  count,
  many,
  NO_ROWS,
  one,
  orderOf,
  padded,
  pageRows,
  placeholders,
  query,
  rowsBySeq,
  sizes,
  union,
  countRows,
} from "./query.ts";
import {
  SUMMARY_COLUMNS,
  TASK,
  TASK_COLUMNS,
  isFailedAs,
  toShownFailure,
  toTask,
  toTaskState,
  toTaskSummary,
  textOrNull,
} from "./rows.ts";
import { isReadyIn } from "./lanes.ts";
import { type Reader, reader } from "./table.ts";
import { SETTLEMENTS, TASK_TOTALS } from "./tables.ts";

/** Roughly the size of a TaskSummary in JSON. */
export const SUMMARY_BYTES = 1_024;

export type TaskTotals = Readonly<Record<TaskStatus, number>>;

export const TASKS_READ: readonly ConflictKey[] = ["tasks", "files"];

const TASK_BY_ID = byKey(["text"], `SELECT ${TASK_COLUMNS} FROM task_rows t WHERE task_id = $1`);

export function taskById(taskId: string): Query<Task | null> {
  return {
    ...one(TASK_BY_ID, [taskId], toTask, [keyOf.task(taskId), keyOf.filesOfTask(taskId)]),
    cached: { as: "task", id: taskId },
    patch: (_, change) => (change.kind === "task.moved" ? change.task : undefined),
  };
}

export function tasksById(taskIds: readonly string[]): Query<readonly Task[]> {
  if (taskIds.length === 0) return NO_ROWS;
  const ids = padded(taskIds);
  const sql = `SELECT ${TASK_COLUMNS} FROM task_rows t WHERE task_id IN (${placeholders(ids)})`;
  return many(sql, ids, toTask, TASKS_READ);
}

/** Without their long texts. */
export function taskStates(taskIds: readonly string[]): Query<readonly TaskState[]> {
  const ids = padded(taskIds);
  const sql = `
    SELECT ${toTaskState.list} FROM task_rows
    WHERE task_id IN (${placeholders(ids)})`;
  return many(sql, ids, toTaskState, ["tasks"]);
}

const readTotals: Reader<TaskTotals> = TASK_TOTALS.reader("open", "assigned", "completed", "failed");

export function taskTotals(): Query<TaskTotals> {
  const sql = `SELECT ${readTotals.list} FROM task_totals`;
  return always(sql, [], readTotals, ["task_totals"]);
}

/** Those that are ready, and have been since `before` or earlier, and have no event of the kind. */
export function unsaidAmong(
  kind: EventKind,
  seqs: readonly number[],
  before: number,
): Query<readonly Task[]> {
  const params: Param[] = [kind, before];
  const numbers = padded(seqs).map((seq) => bind(params, seq));
  const sql = `
    SELECT ${TASK_COLUMNS} FROM task_rows t
    WHERE t.seq IN (${numbers.join(", ")}) AND t.updated_at <= $2 AND (not_before IS NULL OR not_before <= $2)
      AND NOT EXISTS (SELECT 1 FROM events WHERE events.task_id = t.task_id AND events.kind = $1)
    ORDER BY t.seq`;
  const shape = (rows: readonly Row[]): readonly Task[] =>
    rows.map(toTask).filter(({ status, scheduled }) => status === "open" && !scheduled);
  return query(sql, params, shape, [...TASKS_READ, "events"]);
}

/** Some nodes may not have it. */
export type ChoosyTask = Pick<Task, "seq" | "taskId" | "taskType" | "requires" | "notNodes">;

const toChoosyTask = reader(TASK, ["seq", "task_id", "task_type", "requires", "not_nodes"]);

/** Unchanged since `before` or earlier. */
export function choosyAfter(seq: number, limit: number, before: number): Query<readonly ChoosyTask[]> {
  const sql = `
    SELECT ${toChoosyTask.list} FROM task_features f CROSS JOIN tasks t
    WHERE f.status = 'open' AND not_nodes IS NOT NULL AND task_seq > $1 AND t.seq = f.task_seq AND ready >= 1
      AND t.updated_at <= $3
    ORDER BY task_seq LIMIT $2`;
  return many(sql, [seq, limit, before], toChoosyTask, ["tasks"]);
}

const HELD = `SELECT ${TASK_COLUMNS} FROM task_rows t WHERE t.assigned_node = $1 AND t.status = 'assigned'`;
const BEST_GIFT = byKey(["text"], `${HELD} AND t.started_at IS NULL ORDER BY t.priority, t.seq LIMIT 1`);
const FIRST_STARTED = byKey(
  ["text"],
  `${HELD} AND t.started_at IS NOT NULL ORDER BY t.started_at, t.seq LIMIT 1`,
);

/** Not started. */
export function bestGift(nodeId: string): Query<Task | null> {
  return {
    ...one(BEST_GIFT, [nodeId], toTask, heldReads(nodeId)),
    cached: { as: "gift", id: nodeId },
    patch: (gift, change) => patchHeld(gift, change, ({ startedAt }) => startedAt === null),
  };
}

export function firstStarted(nodeId: string): Query<Task | null> {
  return {
    ...one(FIRST_STARTED, [nodeId], toTask, heldReads(nodeId)),
    patch: (first, change) => patchHeld(first, change, ({ startedAt }) => startedAt !== null),
  };
}

const FIRST_UNACKNOWLEDGED = `
  ${HELD} AND t.started_at IS NOT NULL AND t.progress IS NULL ORDER BY t.started_at, t.seq LIMIT 1`;

/** Those for which the node has sent no note since. */
export function firstUnacknowledged(nodeId: string): Query<Task | null> {
  return one(FIRST_UNACKNOWLEDGED, [nodeId], toTask, heldReads(nodeId));
}

/** A task that the node gets or loses changes its totals. */
function heldReads(nodeId: string): readonly ConflictKey[] {
  return [keyOf.node(nodeId), keyOf.held(nodeId), keyOf.dependents, "files"];
}

/** Undefined after a change that may have added or removed one. */
function patchHeld(
  first: Task | null,
  change: Change,
  isOfKind: (task: Task) => boolean,
): Task | null | undefined {
  if (change.kind === "node.beaten") return first;
  if (change.kind === "node.tallied") return first === null || change.assigned >= 0 ? first : undefined;
  if (change.kind !== "task.moved") return undefined;
  const { task } = change;
  return (task.status === "assigned" && isOfKind(task)) || task.taskId === first?.taskId ? undefined : first;
}

export function strandedTasks(limit: number): Query<readonly Task[]> {
  return many(stranded(0), [limit], toTask, ["nodes", ...TASKS_READ]);
}

export function tasksOfDeleted(limit: number): Query<readonly Task[]> {
  return many(stranded(1), [limit], toTask, ["nodes", ...TASKS_READ]);
}

/** CROSS JOIN makes SQLite go from the few nodes to their tasks. */
const stranded = (deleted: 0 | 1): string => `
  SELECT ${TASK_COLUMNS} FROM nodes CROSS JOIN task_rows t
  WHERE online = 0 AND tasks_assigned > 0 AND deleted = ${deleted} AND t.assigned_node = nodes.node_id
    AND t.status = 'assigned'
  LIMIT $1`;

const TASKS_HELD = `${HELD} ORDER BY t.seq LIMIT $2`;

/** Oldest first. */
export function tasksHeld(nodeId: string, limit: number): Query<readonly Task[]> {
  return many(TASKS_HELD, [nodeId, limit], toTask, TASKS_READ);
}

/** Oldest first, without their long texts. */
export function heldSummaries(nodeIds: readonly string[], each: number): Query<readonly TaskSummary[]> {
  const params: Param[] = [each];
  const ranges = padded(nodeIds).map((nodeId) => {
    const node = bind(params, nodeId);
    return `SELECT seq FROM tasks WHERE status = 'assigned' AND assigned_node = ${node} ORDER BY seq LIMIT $1`;
  });
  if (ranges.length === 0) return NO_ROWS;
  const sql = `SELECT ${SUMMARY_COLUMNS} FROM task_rows t WHERE seq IN (${union(ranges)}) ORDER BY seq`;
  return many(sql, params, toTaskSummary, ["tasks"]);
}

// ---- What time and other tasks do to a task

/** By the steady clock. */
export function timedOutTasks(steady: number, limit: number): Query<readonly Task[]> {
  const sql = `SELECT ${TASK_COLUMNS} FROM task_rows t WHERE ${LEASED} AND lease_until <= $1 ORDER BY lease_until LIMIT $2`;
  return many(sql, [steady, limit], toTask, TASKS_READ);
}

/** Tasks that the clock changes now (dueAt of domain/task/facet/start-time.ts), the longest due first. */
export function dueTasks(now: number, limit: number): Query<readonly Task[]> {
  const sql = `SELECT ${TASK_COLUMNS} FROM task_rows t WHERE ${DUE} AND due_at <= $1 ORDER BY due_at LIMIT $2`;
  return many(sql, [now, limit], toTask, TASKS_READ);
}

/** The words of the partial indexes, by which SQLite recognises them. */
const LEASED = "lease_until IS NOT NULL";
const DUE = "due_at IS NOT NULL";
export const IN_REVIEW = "review_until IS NOT NULL";

/** Also ended tasks whose dependents must still be updated. */
export type TaskWork = {
  readonly timedOut: boolean;
  readonly due: boolean;
  readonly settled: boolean;
  readonly groups: boolean;
  readonly questions: boolean;
  readonly reviews: boolean;
  readonly families: boolean;
};

/**
 * Whether the first time in an index has come. Not as EXISTS: PostgreSQL, which plans without the values, expects a third
 * of the tasks to be due, and would scan the table until it finds one.
 */
const hasCome = (column: string, where: string, now: string): string =>
  `(SELECT min(${column}) FROM tasks WHERE ${where}) <= ${now}`;
const oneIf = (condition: string): string => `CASE WHEN ${condition} THEN 1 ELSE 0 END`;

export function taskWork(now: number, steady: number): Query<TaskWork> {
  const sql = `
    SELECT ${oneIf(hasCome("lease_until", LEASED, "$2"))} AS timed_out,
      ${oneIf(hasCome("due_at", DUE, "$1"))} AS due,
      ${oneIf("EXISTS (SELECT 1 FROM settlements)")} AS settled,
      ${oneIf("EXISTS (SELECT 1 FROM group_endings)")} AS groups,
      ${oneIf("(SELECT min(until) FROM questions WHERE state = 'open') <= $1")} AS questions,
      ${oneIf(`(SELECT min(review_until) FROM task_features WHERE ${IN_REVIEW}) <= $1`)} AS reviews,
      ${oneIf("EXISTS (SELECT 1 FROM family_checks)")} AS families`;
  const work = (row: Row): TaskWork => ({
    timedOut: row["timed_out"] === 1,
    due: row["due"] === 1,
    settled: row["settled"] === 1,
    groups: row["groups"] === 1,
    questions: row["questions"] === 1,
    reviews: row["reviews"] === 1,
    families: row["families"] === 1,
  });
  const read = ["tasks", "settlements", "group_endings", "questions", "family_checks"] as const;
  return always(sql, [now, steady], work, read);
}

const toDependency = reader(TASK, ["task_id", "status", "has_dependents", "broken_by"], {
  inReview: (row) => row["review_until"] !== null,
});

/** The fields that its rules read. */
export function dependenciesById(taskIds: readonly string[]): Query<readonly Dependency[]> {
  if (taskIds.length === 0) return NO_ROWS;
  const ids = padded(taskIds);
  const sql = `
    SELECT ${toDependency.list}, review_until FROM task_rows WHERE task_id IN (${placeholders(ids)})`;
  const wanted = new Set(taskIds);
  return {
    ...many(sql, ids, toDependency, ["tasks"]),
    patch: (known, change) => patchDependencies(known, change, wanted),
  };
}

/** So a graph that is created in one commit need not load them again for each of its tasks. */
function patchDependencies(
  known: readonly Dependency[],
  change: Change,
  wanted: ReadonlySet<string>,
): readonly Dependency[] | undefined {
  if (change.kind === "task.created" || change.kind === "task.moved") {
    const { taskId, status, hasDependents } = change.task;
    if (!wanted.has(taskId)) return known;
    if (change.kind === "task.created") return [...known, { taskId, status, hasDependents, brokenBy: null }];
    const inReview = isInReview(change.task);
    return known.map((task) => (task.taskId === taskId ? { ...task, status, inReview } : task));
  }
  if (!("taskId" in change)) return undefined;
  const { taskId } = change;
  if (taskId === null || !wanted.has(taskId)) return known;
  if (change.kind === "task.depended")
    return known.map((task) => (task.taskId === taskId ? { ...task, hasDependents: true } : task));
  return undefined;
}

/**
 * The tasks that may hold a unique key: the oldest in each unfinished state and of those in review, and the one that
 * holds it longest from its creation. The words are those of the partial indexes. Each owner has at most one task in each
 * range, so what others own is a few rows.
 */
const OWN = `CASE WHEN creator_verified = 1 THEN creator_node ELSE '' END = $2`;
const ofKey = (which: string, order = "task_seq"): string => `
  SELECT task_seq FROM task_features f JOIN tasks t ON t.seq = f.task_seq
  WHERE unique_key = $1 AND ${OWN} AND ${which} ORDER BY ${order} LIMIT 1`;
const OF_UNIQUE_KEY = union([
  ofKey("f.status = 'open'"),
  ofKey("f.status = 'assigned'"),
  ofKey("review_until IS NOT NULL"),
  ofKey("unique_until > $3", "unique_until DESC"),
]);
const BY_UNIQUE_KEY = `
  SELECT ${TASK_COLUMNS} FROM task_rows t WHERE seq IN (SELECT task_seq FROM (${OF_UNIQUE_KEY}) AS own) ORDER BY seq`;

/** `owner`: ownerOf() the new task. */
export function tasksByUniqueKey(key: string, owner: string | null, now: number): Query<readonly Task[]> {
  const isOfKey = (task: Task): boolean => task.uniqueKey === key && ownerOf(task) === owner;
  return {
    ...many(BY_UNIQUE_KEY, [key, owner ?? "", now], toTask, TASKS_READ),
    patch: (tasks, change) => patchOfKey(tasks, change, isOfKey),
  };
}

/** Undefined: another task may hold the key now. */
function patchOfKey(
  tasks: readonly Task[],
  change: Change,
  isOfKey: (task: Task) => boolean,
): readonly Task[] | undefined {
  if (change.kind === "task.created") return isOfKey(change.task) ? [...tasks, change.task] : tasks;
  if (change.kind === "task.moved") return isOfKey(change.task) ? undefined : tasks;
  if (!("taskId" in change)) return undefined;
  return tasks.some(({ taskId }) => taskId === change.taskId) ? undefined : tasks;
}

/** Oldest first: the ids grow with the time of creation. */
export function unmetOf(taskId: string, limit: number): Query<readonly string[]> {
  const sql = `SELECT depends_on FROM dependencies WHERE task_id = $1 ORDER BY depends_on LIMIT $2`;
  return many(sql, [taskId, limit], (row) => String(row["depends_on"]), ["dependencies"]);
}

/**
 * Tasks that failed through their dependencies, and at whose root is `brokenBy` (Dependency).
 * `after`: a number; `creatorNode`: null is any.
 */
export type BrokenTasks = {
  readonly brokenBy: string;
  readonly after: number;
  readonly creatorNode: string | null;
};

/** Oldest first: a task comes after those that it depends on. */
export function brokenTasks(which: BrokenTasks, limit: number): Query<readonly Task[]> {
  const params: Param[] = [limit];
  const first = `SELECT task_seq ${broken(which, params)} ORDER BY task_seq LIMIT $1`;
  const sql = `SELECT ${TASK_COLUMNS} FROM task_rows t WHERE seq IN (${first}) ORDER BY seq`;
  return many(sql, params, toTask, TASKS_READ);
}

/** Counted up to `most`. */
export function brokenCount(which: BrokenTasks, most: number): Query<number> {
  const params: Param[] = [most];
  const counted = `SELECT 1 AS one ${broken(which, params)} LIMIT $1`;
  return countRows(counted, params, ["tasks"]);
}

function broken({ brokenBy, after, creatorNode }: BrokenTasks, params: Param[]): string {
  const where = `f.broken_by = ${bind(params, brokenBy)} AND f.task_seq > ${bind(params, after)}`;
  if (creatorNode === null) return `FROM task_features f WHERE ${where}`;
  return `
    FROM task_features f CROSS JOIN tasks t
    WHERE ${where} AND t.seq = f.task_seq AND t.creator_node = ${bind(params, creatorNode)}`;
}

/** `root`: of a failure (Dependency). */
export type Settlement = { readonly taskId: string; readonly outcome: Outcome; readonly root: string };

const readSettlement = SETTLEMENTS.reader();

function toSettlement(row: Row): Settlement {
  const settlement = readSettlement(row);
  return { ...settlement, root: textOrNull(row["broken_by"]) ?? settlement.taskId };
}

const FIRST_SETTLEMENT = `SELECT task_id, outcome FROM settlements ORDER BY task_id LIMIT 1`;
const FIRST_SETTLEMENT_ROOT = `
  SELECT s.task_id, s.outcome, t.broken_by FROM (${FIRST_SETTLEMENT}) AS s LEFT JOIN task_rows t USING (task_id)`;

export function firstSettlement(): Query<Settlement | null> {
  return one(FIRST_SETTLEMENT_ROOT, [], toSettlement, ["settlements", "tasks"]);
}

/** Oldest first. */
export function firstDependents(limit: number): Query<readonly Task[]> {
  const sql = `
    SELECT ${TASK_COLUMNS} FROM dependencies d JOIN task_rows t USING (task_id)
    WHERE d.depends_on = (SELECT task_id FROM (${FIRST_SETTLEMENT}) AS first) ORDER BY t.seq LIMIT $1`;
  return many(sql, [limit], toTask, ["settlements", "dependencies", ...TASKS_READ]);
}

export const TASK_BYTES = [
  ...["title", "description", "problem", "improvement", "lesson", "result_extra", "depends_on", "tags"].map(
    (column) => `coalesce(octet_length(${column}), 0)`,
  ),
  `${FILE_ID_BYTES} * (SELECT count(*) FROM files f WHERE f.task_id = t.task_id)`,
].join(" + ");

/** Of one node, if given; newest first. */
export function taskSizes(
  statuses: readonly TaskStatus[],
  nodeId: string | null,
  slice: Slice,
): Query<readonly Sized[]> {
  const page = pageOfTasks(statuses, nodeId, slice);
  if (!page) return NO_ROWS;
  return sizes(`SELECT seq, ${TASK_BYTES} AS bytes FROM task_rows t ${page.where}`, page.params, TASKS_READ);
}

export const UNFINISHED: readonly TaskStatus[] = ["open", "assigned"];

/** Only the first page of a list is read so. */
export function unfinishedFirstSizes(
  statuses: readonly TaskStatus[],
  nodeId: string | null,
  limit: number,
): Query<readonly Sized[]> {
  const params: Param[] = [limit];
  const node = nodeId === null ? null : bind(params, nodeId);
  const parts = [true, false].flatMap((unfinished, rank) => {
    const ofRank = statuses.filter((status) => UNFINISHED.includes(status) === unfinished);
    const ranges = node === null ? ofRank.map(rangeOf) : rangesOfNode(ofRank, node);
    if (ranges.length === 0) return [];
    const newest = union(ranges.map((range) => `${range} ORDER BY seq DESC`));
    return [`SELECT seq, ${rank} AS place FROM (${newest}) AS hits ORDER BY seq DESC LIMIT $1`];
  });
  if (parts.length === 0) return NO_ROWS;
  const page = `SELECT seq FROM (${union(parts)}) AS halves ORDER BY place, seq DESC LIMIT $1`;
  // DISTINCT and the second LIMIT: see pageRows().
  const numbers = `SELECT DISTINCT seq FROM (${page}) AS page ORDER BY seq DESC LIMIT $1`;
  const sql = `
    SELECT seq, ${TASK_BYTES} AS bytes FROM task_rows t WHERE seq IN (${numbers}) ORDER BY ${ORDERS.unfinishedFirst}`;
  return sizes(sql, params, TASKS_READ);
}

export function taskSizesBelow(
  statuses: readonly TaskStatus[],
  nodeId: string | null,
  before: number,
  limit: number,
): Query<readonly Sized[]> {
  const params: Param[] = [limit, before];
  const below = newestBelow(statuses, nodeId, params);
  if (below === null) return NO_ROWS;
  return sizes(`SELECT seq, ${TASK_BYTES} AS bytes FROM task_rows t ${below}`, params, TASKS_READ);
}

/** Null: there can be none. */
function newestBelow(statuses: readonly TaskStatus[], nodeId: string | null, params: Param[]): string | null {
  const isAny = nodeId === null && statuses.length === TASK_STATUSES.length;
  const ranges = nodeId === null ? statuses.map(rangeOf) : rangesOfNode(statuses, bind(params, nodeId));
  return newestIn(isAny ? ["SELECT seq FROM tasks WHERE seq > 0"] : ranges);
}

/** Null: there can be none. */
function newestIn(ranges: readonly string[]): string | null {
  if (ranges.length === 0) return null;
  const newest = ranges.map((range) => `${range} AND seq < $2 ORDER BY seq DESC LIMIT $1`);
  // DISTINCT and the last LIMIT: see pageRows().
  const page = `SELECT seq FROM (${union(newest)}) AS hits ORDER BY seq DESC LIMIT $1`;
  return `
    WHERE seq IN (SELECT DISTINCT seq FROM (${page}) AS page ORDER BY seq DESC LIMIT $1)
    ORDER BY seq DESC`;
}

// ---- Lists that are filtered by creator, type or title: service/task-lists.ts

/** null is any. */
export type TaskFilter = {
  readonly statuses: readonly TaskStatus[];
  /** That holds or completed the task, or at which its last attempt failed. */
  readonly nodeId: string | null;
  readonly creatorNode: string | null;
  readonly taskType: string | null;
  readonly groups: readonly string[] | null;
  readonly tag: string | null;
  /** The kind of the last failure is one of these. */
  readonly failureKinds: readonly Failure["kind"][] | null;
  /** Only results that wait for their review. */
  readonly inReview: true | null;
  /** When it changed last: from `since` on, and before `until`. */
  readonly since: number | null;
  readonly until: number | null;
  readonly held: HeldFilter | null;
};

/** Open tasks that are not ready, by what they wait for first. */
export const WAITING: Readonly<Record<WaitCode, string>> = {
  depends_on: `ready = 0 AND unmet > 0`,
  question: `ready = 0 AND unmet = 0 AND questions LIKE '%"state":"parked"%'`,
  quorum: `ready = 0 AND unmet = 0 AND quorum IS NOT NULL`,
  not_before: `ready = 0 AND unmet = 0 AND quorum IS NULL AND coalesce(questions, '') NOT LIKE '%"state":"parked"%'`,
};

type Owners = Readonly<Record<"creators" | "groups", readonly string[]>>;

/**
 * Open tasks that something holds back (domain/held.ts): those in these lanes, those of these owners in no held lane, and
 * those that wait.
 */
export type HeldFilter = Owners & {
  /** False: those that nothing holds back. */
  readonly isHeld: boolean;
  readonly lanes: readonly string[];
  readonly waits: readonly WaitCode[];
  /** Whatever holds them. */
  readonly all: Owners & { readonly lanes: readonly string[] };
  /** The lanes and the types of waiting tasks in which they are; null: they are looked for among all open tasks. */
  readonly places: { readonly lanes: readonly string[]; readonly waitingTypes: readonly string[] } | null;
};

function heldAs({ isHeld, lanes, creators, groups, waits, all }: HeldFilter, params: Param[]): string {
  const isIn = (column: string, values: readonly string[]): string =>
    values.length === 0
      ? "1 = 0"
      : `${column} IN (${padded(values)
          .map((value) => bind(params, value))
          .join(", ")})`;
  const inLanes = (names: readonly string[]): string => isIn("coalesce(lane, task_type)", names);
  const ofCreators = (names: readonly string[]): string => isIn("coalesce(creator_node, '')", names);
  const ofGroups = (names: readonly string[]): string => isIn("coalesce(task_group, '')", names);
  if (!isHeld)
    return `ready >= 1 AND NOT (${inLanes(all.lanes)} OR ${ofCreators(all.creators)} OR ${ofGroups(all.groups)})`;
  const ofOwners = `${ofCreators(creators)} OR (${ofGroups(groups)} AND NOT ${ofCreators(all.creators)})`;
  const ready = `ready >= 1 AND (${inLanes(lanes)} OR (NOT ${inLanes(all.lanes)} AND (${ofOwners})))`;
  // Whatever they wait for: that needs no row but the task's own.
  const waiting = waits.length === WAIT_CODES.length ? ["ready = 0"] : waits.map((code) => WAITING[code]);
  return [ready, ...waiting].join(" OR ");
}

/** How many ranges a statement can have: SQLite takes 500. */
const RANGES_MAX = 480;

/** Null equals no name: a name twice would fill a page with the same tasks. */
function paddedWithNull(names: readonly string[]): readonly (string | null)[] {
  const length = names.length === 0 ? 0 : 2 ** Math.ceil(Math.log2(names.length));
  return [...names, ...new Array<null>(length - names.length).fill(null)];
}

/** The ranges of the places in which held tasks are; null: there are too many. */
function rangesOfHeld({ places }: HeldFilter, params: Param[]): readonly string[] | null {
  if (places === null) return null;
  const { lanes, waitingTypes } = places;
  const ways = [0, 1].flatMap((balanced) =>
    PRIORITIES.map((priority) => `balanced = ${balanced} AND priority = ${priority}`),
  );
  const [laneNames, types] = [paddedWithNull(lanes), paddedWithNull(waitingTypes)];
  if (laneNames.length * ways.length + types.length > RANGES_MAX) return null;
  const ready = laneNames.flatMap((lane) => {
    const isOfLane = isReadyIn(lane ?? "", bind(params, lane));
    return ways.map((way) => `SELECT seq FROM tasks WHERE ${isOfLane} AND ${way}`);
  });
  const waiting = types.map(
    (type) => `SELECT seq FROM tasks WHERE ready = 0 AND task_type = ${bind(params, type)}`,
  );
  return [...ready, ...waiting];
}

/**
 * Tasks in a block of the indexes by creator and by type, as in the migrations of both engines. The key begins with the
 * block, so a commit enters its tasks next to one another, and not on a page for each creator and type. A search looks
 * up each block.
 */
export const TASK_BLOCK = 512;

/** `title` is null if the filter does not match. */
export type Candidate = { readonly seq: number; readonly title: string | null };

/** What comes after it is older. */
export type ChangePosition = { readonly updatedAt: number; readonly seq: number };

/** `failed`: what its group of failures is made of; null if that is not asked for. */
export type FailedCandidate = Candidate &
  ChangePosition & { readonly failed: { readonly taskType: string; readonly failure: Failure } | null };

/** Last changed first, and whether the filter matches. */
export function failedBefore(
  filter: TaskFilter,
  withTitles: boolean,
  withFailures: boolean,
  { updatedAt, seq }: ChangePosition,
  limit: number,
): Query<readonly FailedCandidate[]> {
  const params: Param[] = [updatedAt, seq, filter.since ?? 0, limit];
  const condition = conditionOf({ ...filter, statuses: TASK_STATUSES, since: null, until: null }, params);
  const failure = withFailures ? "task_type, failure, child," : "";
  const sql = `
    SELECT seq, updated_at, ${failure} ${titleIf(condition, withTitles)} FROM task_rows t
    WHERE status = 'failed' AND (updated_at, seq) < ($1, $2) AND updated_at >= $3
    ORDER BY updated_at DESC, seq DESC LIMIT $4`;
  const of = (row: Row): FailedCandidate => {
    const stored = row["title"] == null ? null : row["failure"];
    return {
      ...toCandidate(row),
      updatedAt: Number(row["updated_at"]),
      failed: stored == null ? null : { taskType: String(row["task_type"]), failure: toShownFailure(row) },
    };
  };
  return many(sql, params, of, ["tasks"]);
}

/** null if there is no task. */
export function taskBounds(): Query<{ readonly oldest: number; readonly newest: number } | null> {
  const sql = `SELECT (SELECT min(seq) FROM tasks) AS oldest, (SELECT max(seq) FROM tasks) AS newest`;
  const of = (row: Row) =>
    row["newest"] == null ? null : { oldest: Number(row["oldest"]), newest: Number(row["newest"]) };
  return one(sql, [], of, ["tasks"]);
}

/** In the filter's states and of its group or node, and whether the rest of it matches. */
export function candidatesBelow(
  filter: TaskFilter,
  withTitles: boolean,
  before: number,
  limit: number,
): Query<readonly Candidate[]> {
  const params: Param[] = [limit, before];
  const { statuses, nodeId } = filter;
  const ranges = rangesBy(filter, params);
  const below = ranges === null ? newestBelow(statuses, nodeId, params) : newestIn(ranges);
  if (below === null) return NO_ROWS;
  const unread = ranges === null ? { nodeId: null } : { groups: null };
  const condition = conditionOf({ ...filter, statuses: TASK_STATUSES, ...unread }, params);
  const sql = `SELECT seq, ${titleIf(condition, withTitles)} FROM task_rows t ${below}`;
  return many(sql, params, toCandidate, ["tasks"]);
}

/** The ranges of a filter whose tasks an index of their own has; null: it has no such filter. */
function rangesBy(
  { groups, statuses, held, inReview }: TaskFilter,
  params: Param[],
): readonly string[] | null {
  if (groups !== null) return groups.flatMap((group) => rangesOfGroup(statuses, bind(params, group)));
  if (inReview !== null)
    return [
      `SELECT seq FROM (SELECT task_seq AS seq FROM task_features WHERE ${IN_REVIEW}) AS own WHERE seq > 0`,
    ];
  return held && rangesOfHeld(held, params);
}

/**
 * How many open tasks a filter by what holds them finds, up to `most`, from the indexes alone: 50,000 take 1 ms instead of
 * 40 ms. Null if its ranges have other tasks too, or there are none.
 */
export function countHeld(held: HeldFilter, most: number): Query<number> | null {
  const params: Param[] = [most];
  const { isHeld, waits, all, places } = held;
  const hasAllThatWait = places?.waitingTypes.length === 0 || waits.length === WAIT_CODES.length;
  const isWhole = hasAllThatWait && (isHeld || all.creators.length + all.groups.length === 0);
  const ranges = isWhole ? rangesOfHeld(held, params) : null;
  if (ranges === null || ranges.length === 0) return null;
  return countRows(`${ranges.join(" UNION ALL ")} LIMIT $1`, params, ["tasks"]);
}

/** Blocks of tasks: both are included. */
export type Blocks = { readonly oldest: number; readonly newest: number };

/** Newest first, and whether the rest of the filter matches. */
export function candidatesInBlocks(
  filter: TaskFilter,
  withTitles: boolean,
  blocks: Blocks,
  before: number,
): Query<readonly Candidate[]> {
  const params: Param[] = [blocks.newest, blocks.oldest, before];
  const tasks = inBlocks(filter, params);
  const condition = conditionOf({ ...filter, creatorNode: null, taskType: null }, params);
  const sql = `${BLOCKS} SELECT seq, ${titleIf(condition, withTitles)} ${tasks} AND seq < $3 ORDER BY seq DESC`;
  return many(sql, params, toCandidate, ["tasks"]);
}

export function countInBlocks(filter: TaskFilter, blocks: Blocks): Query<number> {
  const params: Param[] = [blocks.newest, blocks.oldest];
  return count(`${BLOCKS} SELECT count(*) AS n ${inBlocks(filter, params)}`, params, ["tasks"]);
}

/** The blocks $2 to $1. In a sum, because a column's affinity would keep SQLite from the indexes' expression. */
const BLOCKS = `
  WITH RECURSIVE blocks(n) AS (
    SELECT CAST($1 AS BIGINT) + 0 UNION ALL SELECT n - 1 FROM blocks WHERE n > CAST($2 AS BIGINT))`;

/** In the words of the partial indexes. */
function inBlocks({ creatorNode, taskType }: TaskFilter, params: Param[]): string {
  const creator = creatorNode === null ? "" : ` AND creator_node = ${bind(params, creatorNode)}`;
  const type = taskType === null ? "" : ` AND task_type = ${bind(params, taskType)} AND task_type <> ''`;
  // CROSS JOIN makes SQLite go from the blocks to their tasks.
  return `FROM blocks CROSS JOIN task_rows t WHERE seq / ${TASK_BLOCK} = n${creator}${type}`;
}

const ORDERS = {
  newestFirst: "seq DESC",
  unfinishedFirst: `CASE WHEN status IN ('open', 'assigned') THEN 0 ELSE 1 END, seq DESC`,
  lastChangedFirst: "updated_at DESC, seq DESC",
} as const;
export type TaskOrder = keyof typeof ORDERS;

export function tasksBySeq(
  seqs: readonly number[],
  order: TaskOrder = "newestFirst",
): Query<readonly Task[]> {
  return rowsBySeq(`SELECT ${TASK_COLUMNS} FROM task_rows t`, seqs, ORDERS[order], toTask, TASKS_READ);
}

/** Without the long texts. */
export function summariesBySeq(
  seqs: readonly number[],
  order: TaskOrder = "newestFirst",
): Query<readonly TaskSummary[]> {
  return rowsBySeq(`SELECT ${SUMMARY_COLUMNS} FROM task_rows t`, seqs, ORDERS[order], toTaskSummary, [
    "tasks",
  ]);
}

/** Those that match the filter now, newest first. */
export function filteredSizes(seqs: readonly number[], filter: TaskFilter): Query<readonly Sized[]> {
  const params: Param[] = [...padded(seqs)];
  const numbers = placeholders(params);
  const sql = `
    SELECT seq, ${TASK_BYTES} AS bytes FROM task_rows t
    WHERE seq IN (${numbers}) AND ${conditionOf(filter, params)} ORDER BY seq DESC`;
  return sizes(sql, params, TASKS_READ);
}

const titleIf = (condition: string, withTitles: boolean): string =>
  `CASE WHEN ${condition} THEN ${withTitles ? "title" : "''"} END AS title`;

function conditionOf(filter: TaskFilter, params: Param[]): string {
  const { statuses, nodeId, creatorNode, taskType, groups, tag, failureKinds, since, until, held } = filter;
  const conditions = ["1 = 1"];
  if (statuses.length < TASK_STATUSES.length)
    conditions.push(`status IN (${statuses.map((status) => `'${status}'`).join(", ")})`);
  if (nodeId !== null) {
    const node = bind(params, nodeId);
    conditions.push(`(assigned_node = ${node} OR failed_node = ${node})`);
  }
  if (creatorNode !== null) conditions.push(`creator_node = ${bind(params, creatorNode)}`);
  if (taskType !== null) conditions.push(`task_type = ${bind(params, taskType)}`);
  if (groups !== null)
    conditions.push(`task_group IN (${groups.map((group) => bind(params, group)).join(", ")})`);
  if (tag !== null) conditions.push(`replace(tags, ${bind(params, `,${tag},`)}, '') <> tags`);
  if (failureKinds !== null) conditions.push(`(${["1 = 0", ...failureKinds.map(isFailedAs)].join(" OR ")})`);
  if (filter.inReview !== null) conditions.push(IN_REVIEW);
  if (since !== null) conditions.push(`updated_at >= ${bind(params, since)}`);
  if (until !== null) conditions.push(`updated_at < ${bind(params, until)}`);
  if (held !== null) conditions.push(`(${heldAs(held, params)})`);
  return conditions.join(" AND ");
}

function toCandidate(row: Row): Candidate {
  const title = row["title"];
  return { seq: Number(row["seq"]), title: title == null ? null : String(title) };
}

/**
 * The condition for the tasks of a page, newest first; null if there can be none.
 *
 * Each range follows a covering index, and no task is in two ranges. So the database merges them as it reads, from one
 * end up to the page, and sorts nothing.
 */
function pageOfTasks(
  statuses: readonly TaskStatus[],
  nodeId: string | null,
  slice: Slice,
): { readonly where: string; readonly params: readonly Param[] } | null {
  const params: Param[] = [slice.limit, slice.offset];
  const ranges =
    nodeId === null ? rangesOfAll(statuses, slice) : rangesOfNode(statuses, bind(params, nodeId));
  if (ranges.length === 0) return null;
  // SQLite knows the order of the ranges; PostgreSQL merges them only if each states its order.
  const inOrder = ranges.map((range) => `${range} ${orderOf(slice)}`);
  return { where: pageRows(`(${union(inOrder)}) AS hits`, slice), params };
}

/**
 * The states are literals, so that the planner uses the index of each state. The first pages of all tasks, the most
 * frequent ones, are read from the table: for a few rows one range is cheaper than four, though the rows are longer.
 */
function rangesOfAll(statuses: readonly TaskStatus[], { offset }: Slice): readonly string[] {
  if (statuses.length === TASK_STATUSES.length && offset <= PER_PAGE_MAX) return ["SELECT seq FROM tasks"];
  return statuses.map(rangeOf);
}

const rangesOfGroup = (statuses: readonly TaskStatus[], group: string): readonly string[] =>
  statuses.map(
    (status) =>
      `SELECT seq FROM (SELECT task_seq AS seq FROM task_features WHERE task_group = ${group} AND status = '${status}') AS own WHERE seq > 0`,
  );

const rangeOf = (status: TaskStatus): string => `SELECT seq FROM tasks WHERE status = '${status}'`;

/** The column with the node of a task in each state; an open task has none. */
const NODE_COLUMN: Readonly<Record<TaskStatus, string | null>> = {
  open: null,
  assigned: "assigned_node",
  completed: "assigned_node",
  failed: "failed_node",
};

/** The states are literals, so that the planner uses the partial index of each. */
function rangesOfNode(statuses: readonly TaskStatus[], node: string): readonly string[] {
  return statuses.flatMap((status) => {
    const column = NODE_COLUMN[status];
    return column === null
      ? []
      : [`SELECT seq FROM tasks WHERE status = '${status}' AND ${column} = ${node}`];
  });
}

/** Counted up to `limit`. */
export function failedOfNode(nodeId: string, limit: number): Query<number> {
  const sql = `
    SELECT count(*) AS n FROM (
      SELECT 1 AS one FROM tasks WHERE status = 'failed' AND failed_node = $1 LIMIT $2) AS counted`;
  return count(sql, [nodeId, limit], ["tasks"]);
}
