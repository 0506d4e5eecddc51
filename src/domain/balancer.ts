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
import {
  type Able,
  type Lane,
  addResources,
  couldTake,
  hasFree,
  isSpecial,
  laneNameOf,
  takesType,
} from "./lane.ts";
import type { Gate, Node, Resources, Task } from "./model.ts";

/** What the balancer reads of a node. */
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

/** What the balancer reads of an open task. */
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

/** Whether a node takes a task now: its type, and what it requires, if that is known. */
export function fits(
  node: Pick<Node, "capabilities"> & Partial<Able>,
  { taskType, requires = null }: Pick<Task, "taskType"> & Partial<Pick<Task, "requires">>,
): boolean {
  if (requires === null) return takesType(node, taskType);
  const able = { nodeId: null, resources: {}, used: {}, ...node };
  return couldTake(able, { taskType, requires }) && hasFree(able, requires);
}

/** Whether the balancer may assign the node one more task. */
export function isAvailable(node: Omit<Candidate, "capabilities" | "resources" | "used">): boolean {
  return node.online && !node.draining && node.autoAssign && hasRoom(node);
}

/** Whether the node holds fewer tasks than it may. */
export function hasRoom({ maxTasks, tasksAssigned }: Pick<Node, "maxTasks" | "tasksAssigned">): boolean {
  return maxTasks === null || tasksAssigned < maxTasks;
}

/** The node for a task; null when no candidate may have it. */
export function pick<C extends Candidate>(task: WaitingTask, candidates: readonly C[]): C | null {
  const fitting = candidates.filter((candidate) => fits(candidate, task));
  return firstOf(task, fitting, null);
}

/**
 * Assigns each task to its node, in order, as if `pick` ran for one after the other: each assignment counts for the next,
 * for the load and the resources of its node and for the limits of the gate.
 *
 * Candidates are sorted once, and each plain lane keeps a shortlist. At most `tasks.length` nodes move, and only back, and
 * one node is excluded for a task, and those that it names (`notNodes`), so the right node is always among the first so
 * many that take the type. Of the nodes for a special lane any may be short of a resource, or closed by the gate: all of
 * them are looked at.
 */
export function balance<T extends WaitingTask>(
  tasks: readonly T[],
  nodes: readonly Candidate[],
  now: number,
  gate: Gate | null = null,
): readonly Assignment<T>[] {
  const shortlists = shortlistsOf(tasks, nodes);
  const given: Assignment<T>[] = [];
  /** The nodes that get a copy of a task now, by the task. */
  const copied = new Map<string, string[]>();
  let current = gate;
  for (const task of tasks) {
    if (isClosed(current?.closed, task, null)) continue;
    const shortlist = must(shortlists.get(laneNameOf(task)), "each lane has a shortlist");
    const parent = task.child?.as === "copy" ? task.child.of : null;
    const others = parent === null ? [] : (copied.get(parent) ?? []);
    const allowed = others.length === 0 ? task : { ...task, notNodes: [...task.notNodes, ...others] };
    const node = firstOf(allowed, shortlist, current);
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

/**
 * The waiting lanes that an available node takes.
 * @param special the special lanes among them, by name
 */
export function typesTaken(
  waiting: ReadonlySet<string>,
  nodes: readonly Candidate[],
  special: ReadonlyMap<string, Lane> = new Map(),
): ReadonlySet<string> {
  const taken = new Set<string>();
  for (const node of nodes) {
    if (!isAvailable(node)) continue;
    if (node.capabilities.length === 0 && special.size === 0) return waiting;
    const plain = node.capabilities.length === 0 ? waiting : ["", ...node.capabilities];
    for (const name of plain) if (waiting.has(name) && !isSpecial(name)) taken.add(name);
    for (const [name, lane] of special) if (!taken.has(name) && fits(node, lane)) taken.add(name);
  }
  return taken;
}

/** A copy of a candidate whose load `balance` counts up. */
type Loaded = Candidate & { tasksAssigned: number; idleSince: number; used: Resources };

/** For each lane among the tasks, the first nodes that take it; a node on several shortlists is one object. */
function shortlistsOf(
  tasks: readonly WaitingTask[],
  nodes: readonly Candidate[],
): ReadonlyMap<string, readonly Loaded[]> {
  const length = tasks.length + 1 + Math.max(0, ...tasks.map(({ notNodes }) => notNodes.length));
  const shortlists = new Map<string, Loaded[]>();
  const special = new Map<string, WaitingTask>();
  for (const task of tasks) {
    shortlists.set(laneNameOf(task), []);
    if (task.lane !== null) special.set(task.lane, task);
  }
  const takersOfAll: Loaded[] = [];
  const add = (shortlist: Loaded[] | undefined, node: Loaded): void => {
    if (shortlist && shortlist.length < length) shortlist.push(node);
  };
  const sorted = nodes.filter(isAvailable).map((node): Loaded => ({ ...node }));
  sorted.sort((a, b) => (comesBefore(a, b) ? -1 : 1));
  for (const node of sorted) {
    if (node.capabilities.length === 0) add(takersOfAll, node);
    else for (const type of node.capabilities) add(shortlists.get(type), node);
    add(shortlists.get(""), node);
    for (const [name, task] of special) if (couldTake(node, task)) shortlists.get(name)?.push(node);
  }
  for (const [name, shortlist] of shortlists)
    if (name !== "" && !isSpecial(name)) shortlist.push(...takersOfAll);
  return shortlists;
}

/** The first available node in the balancer's order that may have the task now, of nodes that could take it. */
function firstOf<C extends Candidate>(task: WaitingTask, nodes: readonly C[], gate: Gate | null): C | null {
  let first: C | null = null;
  for (const node of nodes) {
    if (!isAvailable(node) || node.nodeId === task.revokedFrom) continue;
    if (task.notNodes.length > 0 && task.notNodes.includes(node.nodeId)) continue;
    if (!hasFree(node, task.requires) || gate?.closed?.nodes.has(node.nodeId)) continue;
    if (first === null || comesBefore(node, first)) first = node;
  }
  return first;
}

/** The balancer's order: fewest unfinished tasks, longest idle, then by id. */
export function comesBefore(a: Candidate, b: Candidate): boolean {
  if (a.tasksAssigned !== b.tasksAssigned) return a.tasksAssigned < b.tasksAssigned;
  if (a.idleSince !== b.idleSince) return a.idleSince < b.idleSince;
  return a.nodeId < b.nodeId;
}
