/**
 * The balancer's reads: the available nodes, and the backlog as a k-way merge of one sorted index range for each task
 * type. AVAILABLE, BALANCER_ORDER and the match of a type repeat the rule of domain/balancer.ts in SQL, so that the node
 * for one task is found without loading all nodes.
 */
import type { Position } from "../../domain/lane.ts";
import { type Candidate, comesBefore, fits, isAvailable } from "../../domain/balancer.ts";
import type { Change } from "../../domain/change.ts";
import { CANDIDATES_READ } from "../../domain/limits.ts";
import type { Task } from "../../domain/model.ts";
import type { Param, Query, Row } from "../store.ts";
import { READY_PLAIN, READY_SPECIAL, isReadyIn } from "./lanes.ts";
import { RESOURCES } from "./nodes.ts";
import { bind, byKey, NO_ROW, many, padded, placeholders, query, union } from "./query.ts";
import { TASK_COLUMNS, CapabilityLists, resourcesOf, toTask, toPosition } from "./rows.ts";

// ---- Nodes

export const AVAILABLE = `
  online = 1 AND auto_assign = 1 AND draining = 0 AND (max_tasks IS NULL OR tasks_assigned < max_tasks)`;
const BALANCER_ORDER = `ORDER BY tasks_assigned, idle_since, node_id`;
/** Matches no list of capabilities, because no capability is empty. */
const NO_CAPABILITY = ",,";

const CANDIDATE_COLUMNS = `node_id, capabilities, ${RESOURCES}, online, auto_assign, draining, max_tasks, tasks_assigned, idle_since`;

const CANDIDATES = byKey(
  ["text", "text", "text"],
  `SELECT ${CANDIDATE_COLUMNS}, 1 AS all_seen FROM nodes
  WHERE ${AVAILABLE} AND node_id <> $1
    AND ($2 = '' OR capabilities = '' OR replace(capabilities, $3, '') <> capabilities)
  ${BALANCER_ORDER} LIMIT ${CANDIDATES_READ}`,
  true,
);

// Differs because only SQLite has indexes by capability (store/sqlite/capability-index.ts), and because SQLite must not
// read all nodes: the hub stands still meanwhile. Usually one of the first nodes takes the type.
const NODES_FIRST = CANDIDATES_READ;
/** @param allSeen whether no available node was left out of `found`: an expression */
const bestOf = (found: string, allSeen: string): string => `
  SELECT ${CANDIDATE_COLUMNS}, ${allSeen} AS all_seen FROM nodes WHERE seq IN (
    SELECT seq FROM (${found}) ${BALANCER_ORDER} LIMIT ${CANDIDATES_READ}) ${BALANCER_ORDER}`;
const CANDIDATES_ON_SQLITE = `
  WITH first AS (
    SELECT seq, tasks_assigned, idle_since, node_id FROM nodes WHERE ${AVAILABLE} ${BALANCER_ORDER} LIMIT ${NODES_FIRST})
  ${bestOf(
    `SELECT * FROM first WHERE node_id <> $1 AND ($2 = '' OR EXISTS (
      SELECT 1 FROM takers WHERE capability IN ($2, '') AND takers.seq = first.seq))`,
    `(SELECT count(*) < ${NODES_FIRST} FROM first)`,
  )}`;

/** By its ranking, or of all of them if they are so few that there is none. */
const bestWith = (capability: string): readonly string[] => [
  `SELECT tasks_assigned, idle_since, node_id, seq FROM ranked
    WHERE type = ${capability} AND node_id <> $1 ${BALANCER_ORDER} LIMIT ${CANDIDATES_READ}`,
  `SELECT tasks_assigned, idle_since, node_id, seq FROM nodes
    WHERE seq IN (SELECT seq FROM takers WHERE capability = ${capability}
      AND NOT EXISTS (SELECT 1 FROM ranked_types WHERE type = ${capability}))
      AND +${AVAILABLE} AND node_id <> $1`,
];
const RANKED_ON_SQLITE = bestOf(union([...bestWith("$2"), ...bestWith("''")]), "1");

/** `isWhole`: no other available node takes the task. */
export type Takers = { readonly best: readonly Candidate[]; readonly isWhole: boolean };

/**
 * The candidates for a task, whose type and `balanced` never change; none for a task that the balancer may not assign. A
 * node that has what a task requires is found in the balancer's rounds.
 */
export function candidatesIfBalanced(
  task: Pick<Task, "balanced" | "requires" | "taskType"> | null,
  notNode: string | null,
): Query<Takers> {
  if (task?.balanced && task.requires === null) return candidatesFor(task.taskType, notNode);
  return { ...NO_ROW, shape: () => ({ best: [], isWhole: true }) };
}

/**
 * The first CANDIDATES_READ nodes for a task of a type, in the balancer's order, so that creating a task does not read all
 * nodes. The balancer picks the first; the next ones are for the tasks after it (patchTakers).
 */
export function candidatesFor(taskType: string, notNode: string | null): Query<Takers> {
  // No capability contains a comma. A type that does has no taker, and must not match two adjacent capabilities.
  const needle = taskType.includes(",") ? NO_CAPABILITY : `,${taskType},`;
  const params = [notNode ?? "", taskType];
  const otherwise = { sql: RANKED_ON_SQLITE, params, ranks: [taskType, ""] };
  const onSqlite = { sql: CANDIDATES_ON_SQLITE, params, ...(taskType === "" ? {} : { otherwise }) };
  const lists = new CapabilityLists();
  const shape = (rows: readonly Row[]): Takers => ({
    best: rows.map((row) => toCandidate(row, lists)),
    isWhole: rows.length < CANDIDATES_READ && rows.every((row) => row["all_seen"] === 1),
  });
  return {
    ...query(CANDIDATES, [notNode ?? "", taskType, needle], shape, ["nodes"]),
    onSqlite,
    ...(notNode === null ? { cached: { as: "candidates", id: taskType } as const } : {}),
    patch: (takers, change) =>
      change.kind === "node.tallied" && change.nodeId === notNode
        ? takers
        : patchTakers(takers, change, { taskType }),
  };
}

/**
 * The first takers as they are after a change; undefined if the list does not tell. A node that moves behind the last one
 * of a list that is not whole leaves it, because others may come before it.
 * @param known the node of the change, after it, if its row is in memory
 */
export function patchTakers(
  takers: Takers,
  change: Change,
  task: Pick<Task, "taskType">,
  known: Candidate | null = null,
): Takers | undefined {
  if (change.kind !== "node.tallied") return undefined;
  const { best, isWhole } = takers;
  const { nodeId, assigned, idleSince } = change;
  const before = best.find((candidate) => candidate.nodeId === nodeId);
  if (before && !known && Object.keys(before.resources).length > 0) return undefined; // what it uses has changed
  if (!before && !known) return assigned > 0 ? takers : undefined; // with more tasks it only moves back
  const after = known ?? (before && { ...before, tasksAssigned: before.tasksAssigned + assigned, idleSince });
  const others = before ? best.filter((candidate) => candidate !== before) : best;
  const last = others.at(-1);
  if (!after || (!last && !isWhole)) return undefined;
  if (!isAvailable(after) || !fits(after, task)) return { best: others, isWhole };
  if (!isWhole && last && comesBefore(last, after)) return { best: others, isWhole };
  const index = others.findIndex((candidate) => comesBefore(after, candidate));
  const list = others.toSpliced(index < 0 ? others.length : index, 0, after);
  return { best: list.slice(0, CANDIDATES_READ), isWhole: isWhole && list.length <= CANDIDATES_READ };
}

export function availableNodes(lists: CapabilityLists): Query<readonly Candidate[]> {
  const sql = `SELECT ${CANDIDATE_COLUMNS} FROM nodes WHERE ${AVAILABLE}`;
  return many(sql, [], (row) => toCandidate(row, lists), ["nodes"]);
}

/** Ordered by id, after one id ("" is before all). */
export function availableAfter(
  nodeId: string,
  limit: number,
  lists: CapabilityLists,
): Query<readonly Candidate[]> {
  const sql = `
    SELECT ${CANDIDATE_COLUMNS} FROM nodes WHERE node_id > $1 AND ${AVAILABLE} ORDER BY node_id LIMIT $2`;
  return many(sql, [nodeId, limit], (row) => toCandidate(row, lists), ["nodes"]);
}

function toCandidate(row: Row, lists: CapabilityLists): Candidate {
  return {
    nodeId: String(row["node_id"]),
    capabilities: lists.decode(String(row["capabilities"])),
    ...resourcesOf(row),
    online: row["online"] === 1,
    autoAssign: row["auto_assign"] === 1,
    draining: row["draining"] === 1,
    maxTasks: row["max_tasks"] == null ? null : Number(row["max_tasks"]),
    tasksAssigned: Number(row["tasks_assigned"]),
    idleSince: Number(row["idle_since"]),
  };
}

// ---- The backlog: the open tasks that are ready, best first (priority, then age)

export const BACKLOG_START: Position = { priority: -1, seq: 0 };

/** With `onlyBalanced`, none that the balancer may assign unasked. */
export function isBacklogEmpty(onlyBalanced: boolean): Query<boolean> {
  const balanced = onlyBalanced ? " AND balanced = 1" : " AND balanced >= 0"; // a lookup in the index, for the planner
  const firstOf = (where: string): string => `SELECT seq FROM tasks WHERE ${where}${balanced} LIMIT 1`;
  const sql = `${union([firstOf(READY_PLAIN), firstOf(READY_SPECIAL)])} LIMIT 1`;
  return query(sql, [], (rows) => rows.length === 0, ["tasks"]);
}

/** Sorted; "" (no type) is left out. Each type costs one index lookup. */
export function backlogTypes(balanced: boolean, after: string, limit: number): Query<readonly string[]> {
  const next = (type: string): string => `(
    SELECT min(task_type) FROM tasks WHERE ${READY_PLAIN} AND balanced = $1 AND task_type > ${type})`;
  const sql = `
    WITH RECURSIVE types (task_type) AS (
      SELECT ${next("$2")} UNION ALL SELECT ${next("types.task_type")} FROM types WHERE task_type IS NOT NULL)
    SELECT task_type FROM types WHERE task_type IS NOT NULL LIMIT $3`;
  return many(sql, [Number(balanced), after, limit], (row) => String(row["task_type"]), ["tasks"]);
}

/**
 * The positions of the best tasks of these lanes, by name, after a position: a k-way merge of one index range for each
 * lane. Both engines read no further than the limit, because each range states its order and has no limit of its own.
 */
export function backlogAfter(
  after: Position,
  lanes: readonly string[],
  onlyBalanced: boolean,
  limit: number,
): Query<readonly Position[]> {
  const params: Param[] = [limit, after.priority, after.seq];
  // Padded to a power of two with NULL, which equals no name, so that there are few different statements to prepare.
  const length = 2 ** Math.ceil(Math.log2(lanes.length));
  const filled = [...lanes, ...new Array<null>(length - lanes.length).fill(null)];
  const ranges = filled.flatMap((name) => {
    const where = isReadyIn(name ?? "", bind(params, name));
    return (onlyBalanced ? [1] : [0, 1]).map(
      (balanced) => `
        SELECT priority, seq FROM tasks
        WHERE ${where} AND balanced = ${balanced} AND (priority, seq) > ($2, $3)
        ORDER BY priority, seq`,
    );
  });
  const sql = `SELECT priority, seq FROM (${union(ranges)}) AS ranges ORDER BY priority, seq LIMIT $1`;
  return many(sql, params, toPosition, ["tasks"]);
}

/** Those that are still open and ready, best first. */
export function openTasks(seqs: readonly number[]): Query<readonly Task[]> {
  const filled = padded(seqs);
  const sql = `SELECT ${TASK_COLUMNS} FROM task_rows t WHERE t.seq IN (${placeholders(filled)}) ORDER BY priority, t.seq`;
  const shape = (rows: readonly Row[]): readonly Task[] =>
    rows.map(toTask).filter(({ status, scheduled }) => status === "open" && !scheduled);
  return query(sql, filled, shape, ["tasks", "files"]);
}
