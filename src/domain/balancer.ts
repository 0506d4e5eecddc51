/**
 * The balancer: which available node gets which task (specification 1, decisions.md Tasks).
 * It picks; it does not write. The SQL that preselects candidates orders them the same way only to load few. For many
 * tasks at once there is domain/balancer-queue.ts.
 */
import type { Node, Task } from "./model.ts";

/** What the balancer looks at in a node. */
export type Candidate = Pick<
  Node,
  "nodeId" | "online" | "capabilities" | "maxTasks" | "tasksAssigned" | "idleSince"
>;

/** What the order of nodes goes by. */
export type Standing = Pick<Candidate, "nodeId" | "tasksAssigned" | "idleSince">;

/** A task with no type fits every node; a node with no capabilities takes every task. */
export function fits(node: Pick<Node, "capabilities">, task: Pick<Task, "taskType">): boolean {
  return task.taskType === "" || node.capabilities.length === 0 || node.capabilities.includes(task.taskType);
}

/** Online and with room for one more task. */
export function isAvailable(node: Candidate): boolean {
  return node.online && (node.maxTasks === null || node.tasksAssigned < node.maxTasks);
}

/** The available, fitting node with the fewest unfinished tasks, then the longest idle; null when there is none. */
export function pick<C extends Candidate>(task: Task, candidates: readonly C[]): C | null {
  let best: C | null = null;
  for (const candidate of candidates) {
    if (!isAvailable(candidate) || !fits(candidate, task)) continue;
    if (candidate.nodeId === task.revokedFrom) continue; // never straight back to whom it was taken from
    if (best === null || comesBefore(candidate, best)) best = candidate;
  }
  return best;
}

/** The order of nodes: the fewest unfinished tasks, then the longest idle; by name when nothing else tells. */
export function comesBefore(a: Standing, b: Standing): boolean {
  if (a.tasksAssigned !== b.tasksAssigned) return a.tasksAssigned < b.tasksAssigned;
  if (a.idleSince !== b.idleSince) return a.idleSince < b.idleSince;
  return a.nodeId < b.nodeId;
}
