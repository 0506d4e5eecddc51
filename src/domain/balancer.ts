/**
 * The balancer: which available node gets which task. Pure: it decides and does not write.
 *
 * The rule: of the nodes that are online, do not drain, accept assigned tasks, have room and take the task's type, the one
 * with the fewest unfinished tasks; of those, the one that has been idle longest. Never the node that the task was just
 * revoked from.
 * store/sql/balancer.ts says the same in SQL to find the node for one task; the store's contract test compares the two.
 */
import { must } from "../lib/assert.ts";
import { gateAfterHandOut, isClosed } from "./gate.ts";
import { type Able, type Lane, addResources, couldTake, hasFree, meets, takesType } from "./lane.ts";
import type { Gate, Node, Resources, Task } from "./model.ts";

export type Candidate = Pick<
  Node,
  | "nodeId"
  | "online"
  | "draining"
  | "autoAssign"
  | "capabilities"
  | "resources"
  | "used"
  | "maxTasks"
  | "tasksAssigned"
  | "idleSince"
>;

export type WaitingTask = Pick<
  Task,
  | "taskType"
  | "revokedFrom"
  | "lane"
  | "requires"
  | "limitKey"
  | "creatorNode"
  | "group"
  | "notNodes"
  | "child"
>;

export type Assignment<T> = { readonly task: T; readonly nodeId: string };

/** By its type, and what it requires if that is known. */
export function fits(
  node: Pick<Node, "capabilities"> & Partial<Able>,
  { taskType, requires = null }: Pick<Task, "taskType"> & Partial<Pick<Task, "requires">>,
): boolean {
  if (requires === null) return takesType(node, taskType);
  const able = { nodeId: null, resources: {}, used: {}, ...node };
  return couldTake(able, { taskType, requires }) && hasFree(able, requires);
}

export function isAvailable(node: Omit<Candidate, "capabilities" | "resources" | "used">): boolean {
  return node.online && !node.draining && node.autoAssign && hasRoom(node);
}

export function hasRoom({ maxTasks, tasksAssigned }: Pick<Node, "maxTasks" | "tasksAssigned">): boolean {
  return maxTasks === null || tasksAssigned < maxTasks;
}

export function pick<C extends Candidate>(task: WaitingTask, candidates: readonly C[]): C | null {
  const fitting = candidates.filter((candidate) => fits(candidate, task));
  return firstOf(task, fitting);
}

/**
 * As if `pick` ran for one task after the other: each assignment counts for the next.
 *
 * Candidates are sorted once, and each lane keeps a shortlist. At most `tasks.length` nodes move, and only back, and
 * one node is excluded for a task, and those that it names (`notNodes`), so the right node is always among the first so
 * many. Any node for a lane with requirements may be short of a resource: its shortlist has all of them.
 */
export function balance<T extends WaitingTask>(
  tasks: readonly T[],
  nodes: readonly Candidate[],
  now: number,
  gate: Gate | null = null,
): readonly Assignment<T>[] {
  const isOpen = ({ nodeId }: Candidate): boolean => !gate?.closed?.nodes.has(nodeId);
  const shortlists = shortlistsOf(
    tasks,
    nodes.filter((node) => isAvailable(node) && isOpen(node)),
  );
  const given: Assignment<T>[] = [];
  const copied = new Map<string, string[]>();
  let current = gate;
  for (const task of tasks) {
    if (isClosed(current?.closed, task, null)) continue;
    const shortlist = must(shortlists.get(task.lane), "each lane has a shortlist").nodes;
    const parent = task.child?.as === "copy" ? task.child.of : null;
    const others = parent === null ? [] : (copied.get(parent) ?? []);
    const allowed = others.length === 0 ? task : { ...task, notNodes: [...task.notNodes, ...others] };
    const node = firstOf(allowed, shortlist);
    if (!node) continue;
    if (parent !== null) copied.set(parent, [...others, node.nodeId]);
    node.tasksAssigned += 1;
    node.idleSince = now;
    if (task.requires) node.used = addResources(node.used, task.requires.resources);
    if (current) current = gateAfterHandOut(current, task, now);
    given.push({ task, nodeId: node.nodeId });
  }
  return given;
}

export function untaken<L extends Lane>(lanes: Iterable<L>, nodes: readonly Candidate[]): readonly L[] {
  const byType = Map.groupBy(lanes, ({ taskType }) => taskType);
  for (const node of nodes.filter(isAvailable))
    for (const type of typesOf(node, byType)) narrow(byType, type, (lane) => !fits(node, lane));
  return [...byType.values()].flat();
}

/** Those among the keys of a map if the node takes every type. The map may lose keys meanwhile. */
function typesOf({ capabilities }: Candidate, byType: ReadonlyMap<string, unknown>): Iterable<string> {
  return capabilities.length === 0 ? byType.keys() : ["", ...capabilities];
}

function narrow<L>(byType: Map<string, L[]>, type: string, isKept: (lane: L) => boolean): void {
  const kept = byType.get(type)?.filter(isKept);
  if (kept === undefined) return;
  if (kept.length > 0) byType.set(type, kept);
  else byType.delete(type);
}

/** `balance` counts its load up. */
type Loaded = Candidate & { tasksAssigned: number; idleSince: number; used: Resources };

type LaneNodes = Pick<Task, "taskType" | "requires"> & { readonly nodes: Loaded[] };

/** A node on several shortlists is one object. */
function shortlistsOf(
  tasks: readonly WaitingTask[],
  nodes: readonly Candidate[],
): ReadonlyMap<string, LaneNodes> {
  const length = tasks.length + 1 + Math.max(0, ...tasks.map(({ notNodes }) => notNodes.length));
  const isFull = (lane: LaneNodes): boolean => lane.requires === null && lane.nodes.length >= length;
  const shortlists = new Map<string, LaneNodes>();
  for (const { lane, taskType, requires } of tasks) shortlists.set(lane, { taskType, requires, nodes: [] });
  const open = Map.groupBy(shortlists.values(), ({ taskType }) => taskType);
  for (const node of nodes
    .map((candidate): Loaded => ({ ...candidate }))
    .toSorted((a, b) => (comesBefore(a, b) ? -1 : 1))) {
    if (open.size === 0) break;
    for (const type of typesOf(node, open)) {
      const lanes = open.get(type);
      if (lanes === undefined) continue;
      let isOneFull = false;
      for (const lane of lanes) {
        if (meets(node, lane.requires)) lane.nodes.push(node);
        if (isFull(lane)) isOneFull = true;
      }
      if (isOneFull) narrow(open, type, (lane) => !isFull(lane));
    }
  }
  return shortlists;
}

function firstOf<C extends Candidate>(task: WaitingTask, nodes: readonly C[]): C | null {
  let first: C | null = null;
  for (const node of nodes) {
    if (!isAvailable(node) || node.nodeId === task.revokedFrom) continue;
    if (task.notNodes.length > 0 && task.notNodes.includes(node.nodeId)) continue;
    if (!hasFree(node, task.requires)) continue;
    if (first === null || comesBefore(node, first)) first = node;
  }
  return first;
}

export function comesBefore(a: Candidate, b: Candidate): boolean {
  if (a.tasksAssigned !== b.tasksAssigned) return a.tasksAssigned < b.tasksAssigned;
  if (a.idleSince !== b.idleSince) return a.idleSince < b.idleSince;
  return a.nodeId < b.nodeId;
}
