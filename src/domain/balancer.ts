/**
 * The balancer: which available node gets which task. Pure: it decides and does not write.
 *
 * The rule: of the nodes that are online, do not drain, accept assigned tasks, have room and take the task's type, the one
 * with the fewest unfinished tasks; of those, the one that has been idle longest. Never the node that the task was just
 * revoked from.
 * store/sql/balancer.ts says the same in SQL to find the node for one task; the store's contract test compares the two.
 */
import { must } from "../lib/assert.ts";
import type { Node, Task } from "./model.ts";

/** What the balancer reads of a node. */
export type Candidate = Pick<
  Node,
  | "nodeId"
  | "online"
  | "draining"
  | "autoAssign"
  | "capabilities"
  | "maxTasks"
  | "tasksAssigned"
  | "idleSince"
>;

/** What the balancer reads of an open task. */
export type WaitingTask = Pick<Task, "taskType" | "revokedFrom" | "notNodes" | "child">;

export type Assignment<T> = { readonly task: T; readonly nodeId: string };

/** A task without a type fits every node; a node without capabilities takes every task. */
export function fits(node: Pick<Node, "capabilities">, task: Pick<Task, "taskType">): boolean {
  return task.taskType === "" || node.capabilities.length === 0 || node.capabilities.includes(task.taskType);
}

/** The types of tasks that a node takes ("" is no type), or those of `asked` among them; null is every type. */
export function typesFor(
  { capabilities }: Pick<Node, "capabilities">,
  asked: readonly string[] | null,
): readonly string[] | null {
  if (capabilities.length === 0) return asked;
  return asked === null ? ["", ...capabilities] : asked.filter((type) => capabilities.includes(type));
}

/** Whether the balancer may assign the node one more task. */
export function isAvailable(node: Omit<Candidate, "capabilities">): boolean {
  return node.online && !node.draining && node.autoAssign && hasRoom(node);
}

/** Whether the node holds fewer tasks than it may. */
export function hasRoom({ maxTasks, tasksAssigned }: Pick<Node, "maxTasks" | "tasksAssigned">): boolean {
  return maxTasks === null || tasksAssigned < maxTasks;
}

/** The node for a task; null when no candidate may have it. */
export function pick<C extends Candidate>(task: WaitingTask, candidates: readonly C[]): C | null {
  const fitting = candidates.filter((candidate) => fits(candidate, task));
  return firstOf(task, fitting);
}

/**
 * Assigns each task to its node, in order, as if `pick` ran for one after the other: each assignment counts for the next.
 *
 * Candidates are sorted once, and each type keeps a shortlist. At most `tasks.length` nodes move, and only back, and one
 * node is excluded for a task, and those that it names (`notNodes`), so the right node is always among the first so many
 * that take the type.
 */
export function balance<T extends WaitingTask>(
  tasks: readonly T[],
  nodes: readonly Candidate[],
  now: number,
): readonly Assignment<T>[] {
  const shortlists = shortlistsOf(tasks, nodes);
  const given: Assignment<T>[] = [];
  /** The nodes that get a copy of a task now, by the task. */
  const copied = new Map<string, string[]>();
  for (const task of tasks) {
    const shortlist = must(shortlists.get(task.taskType), "each type has a shortlist");
    const parent = task.child?.as === "copy" ? task.child.of : null;
    const others = parent === null ? [] : (copied.get(parent) ?? []);
    const node = firstOf(
      others.length === 0 ? task : { ...task, notNodes: [...task.notNodes, ...others] },
      shortlist,
    );
    if (!node) continue;
    if (parent !== null) copied.set(parent, [...others, node.nodeId]);
    node.tasksAssigned += 1;
    node.idleSince = now;
    given.push({ task, nodeId: node.nodeId });
  }
  return given;
}

/** The waiting types ("" is no type) that an available node takes. */
export function typesTaken(waiting: ReadonlySet<string>, nodes: readonly Candidate[]): ReadonlySet<string> {
  const taken = new Set<string>();
  for (const node of nodes) {
    if (!isAvailable(node)) continue;
    if (node.capabilities.length === 0) return waiting;
    for (const type of ["", ...node.capabilities]) if (waiting.has(type)) taken.add(type);
  }
  return taken;
}

/** A copy of a candidate whose load `balance` counts up. */
type Loaded = Candidate & { tasksAssigned: number; idleSince: number };

/** For each type among the tasks, the first nodes that take it; a node on several shortlists is one object. */
function shortlistsOf(
  tasks: readonly WaitingTask[],
  nodes: readonly Candidate[],
): ReadonlyMap<string, readonly Loaded[]> {
  const length = tasks.length + 1 + Math.max(0, ...tasks.map(({ notNodes }) => notNodes.length));
  const shortlists = new Map<string, Loaded[]>(tasks.map(({ taskType }) => [taskType, []]));
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
  }
  for (const [type, shortlist] of shortlists) if (type !== "") shortlist.push(...takersOfAll);
  return shortlists;
}

/** The first available node in the balancer's order, among nodes that take the task's type. */
function firstOf<C extends Candidate>(
  { revokedFrom, notNodes }: WaitingTask,
  fitting: readonly C[],
): C | null {
  let first: C | null = null;
  for (const node of fitting) {
    if (!isAvailable(node) || node.nodeId === revokedFrom) continue;
    if (notNodes.length > 0 && notNodes.includes(node.nodeId)) continue;
    if (first === null || comesBefore(node, first)) first = node;
  }
  return first;
}

/** The balancer's order: fewest unfinished tasks, longest idle, then by id. */
function comesBefore(a: Candidate, b: Candidate): boolean {
  if (a.tasksAssigned !== b.tasksAssigned) return a.tasksAssigned < b.tasksAssigned;
  if (a.idleSince !== b.idleSince) return a.idleSince < b.idleSince;
  return a.nodeId < b.nodeId;
}
