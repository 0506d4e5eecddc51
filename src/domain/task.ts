/**
 * Task rules and state diagram (specification 3, Task).
 *
 *            create                 claim, assign, balancer            complete
 *   (none) ---------> open -------------------------------> assigned ----------> completed
 *                      ^                                     |   |  ^
 *                      | revoke, node offline or deleted     |   |  | revoke with another node
 *                      +-------------------------------------+   +--+
 *   any --delete--> (none)
 *
 * Every transition returns the change of the task and the changes of the running totals together (`tallies`).
 */
import { pick } from "./balancer.ts";
import type { Change } from "./change.ts";
import {
  type Accepted,
  type Decision,
  type Rejected,
  accept,
  nodeNotFound,
  reject,
  taskNotFound,
} from "./decision.ts";
import type { EventData, EventKind } from "./event.ts";
import { payReward } from "./lux.ts";
import type { Node, Task, TaskResult, TaskStatus } from "./model.ts";
import { isSameJson } from "../lib/exact-json.ts";

/** The fields of a task that its creator sets. */
export type TaskDraft = Pick<
  Task,
  "title" | "description" | "taskType" | "priority" | "creatorNode" | "luxRewardMicro" | "balanced"
>;

export type AssignedBy = "claim" | "assign" | "balancer" | "complete" | "revoke";

/** Creates an open task. If the balancer may assign it, it goes to the best of `candidates` at once. */
export function create(
  draft: TaskDraft,
  taskId: string,
  candidates: readonly Node[],
  now: number,
): Accepted<Task> {
  const task: Task = {
    ...draft,
    seq: 0,
    taskId,
    status: "open",
    assignedNode: null,
    result: null,
    revokedFrom: null,
    attempts: 0,
    createdAt: now,
    updatedAt: now,
    files: [],
  };
  const node = task.balanced ? pick(task, candidates) : null;
  const created: Task = node ? { ...task, status: "assigned", assignedNode: node.nodeId } : task;
  const changes: Change[] = [
    { kind: "task.created", task: created },
    ...tallies(null, created, now),
    taskEvent("task.created", task, task.creatorNode, now, { title: task.title }),
  ];
  if (node) changes.push(taskEvent("task.assigned", created, node.nodeId, now, { by: "balancer" }));
  return accept(created, changes);
}

/** Assigns an open task: to the node that asks for it (claim), or to one that an administrator names (assign). */
export function take(
  task: Task | null,
  node: Node | null,
  asked: { taskId: string; nodeId: string; by: "claim" | "assign" },
  now: number,
): Decision<Task> {
  if (!task) return taskNotFound(asked.taskId);
  if (!node) return nodeNotFound(asked.nodeId);
  if (task.status === "completed") return completedAlready(task);
  if (task.assignedNode === node.nodeId) return accept(task); // a repeated call succeeds and changes nothing
  if (task.status === "assigned") return notOpen(task);
  if (!node.online) return offline(node);
  const { after, changes } = assignTo(task, node.nodeId, asked.by, now);
  return accept(after, changes);
}

export type Completion = {
  readonly taskId: string;
  readonly luxPaidMicro: number;
  /** The node has a task limit and one task less: the balancer may have one for it. */
  readonly madeRoom: boolean;
};

/**
 * Completes a task and pays its reward once. `claimOnComplete` (variant B, which has no claim) lets a registered node
 * complete an open task. A repeat with the same result succeeds and pays nothing more.
 */
export function complete(
  task: Task | null,
  node: Node | null,
  asked: { taskId: string; nodeId: string; result: TaskResult; claimOnComplete: boolean; entryId: string },
  now: number,
): Decision<Completion> {
  if (!task) return taskNotFound(asked.taskId);
  if (!node) return nodeNotFound(asked.nodeId);
  if (task.status !== "open" && task.assignedNode !== node.nodeId) return notYours(task, node);
  if (task.status === "completed") {
    return sameResult(task.result, asked.result) ? accept(completion(task, false)) : completedAlready(task);
  }
  const changes: Change[] = [];
  let before = task;
  if (task.status === "open") {
    if (!asked.claimOnComplete) return notAssigned(task, "Claim or assign it first.");
    before = { ...task, status: "assigned", assignedNode: node.nodeId };
    changes.push(taskEvent("task.assigned", before, node.nodeId, now, { by: "complete" }));
  }
  const payment = payReward(node, task, asked.entryId, now);
  if (payment.kind === "rejected") return payment;
  const after: Task = { ...before, status: "completed", result: asked.result, updatedAt: now };
  changes.push({ kind: "task.moved", task: after });
  changes.push(...tallies(task, after, now, task.luxRewardMicro));
  changes.push(taskEvent("task.completed", after, node.nodeId, now, {}));
  changes.push(...payment.changes);
  return accept(completion(after, node.maxTasks !== null), changes);
}

/**
 * Takes an assigned task from its node, or gives it to another. Revoking to the node that holds it changes nothing.
 * If the balancer may assign the freed task, it goes to the best of `candidates`.
 */
export function revoke(
  task: Task | null,
  target: Node | null,
  candidates: readonly Node[],
  asked: { taskId: string; nodeId: string | null; reason: string | null },
  now: number,
): Decision<Task> {
  if (!task) return taskNotFound(asked.taskId);
  if (asked.nodeId !== null && !target) return nodeNotFound(asked.nodeId);
  if (task.status === "completed") return completedAlready(task);
  if (task.status === "open" || task.assignedNode === null) {
    return notAssigned(task, "Give it to one with POST /api/v1/task/assign.");
  }
  if (target && target.nodeId === task.assignedNode) return accept(task);
  if (target && !target.online) return offline(target);
  const from = task.assignedNode;
  const freed = move(task, { status: "open", assignedNode: null, revokedFrom: from }, now);
  const changes = [...freed.changes];
  changes.push(taskEvent("task.revoked", freed.after, from, now, { reason: asked.reason }));
  const next = target ?? (task.balanced ? pick(freed.after, candidates) : null);
  if (!next) return accept(freed.after, changes);
  const given = assignTo(freed.after, next.nodeId, target ? "revoke" : "balancer", now);
  return accept(given.after, [...changes, ...given.changes]);
}

/** Reopens the unfinished tasks of offline nodes; each has one attempt more. */
export function requeue(tasks: readonly Task[], now: number): Accepted<number> {
  const changes = tasks.flatMap((task) => {
    const moved = move(task, { status: "open", assignedNode: null, attempts: task.attempts + 1 }, now);
    const data = { attempts: moved.after.attempts };
    return [...moved.changes, taskEvent("task.requeued", moved.after, task.assignedNode, now, data)];
  });
  return accept(tasks.length, changes);
}

/** Reopens unfinished tasks of a node that gives them back; their attempts stay. */
export function release(tasks: readonly Task[], reason: string, now: number): Accepted<number> {
  const changes = tasks.flatMap((task) => {
    const moved = move(task, { status: "open", assignedNode: null }, now);
    return [...moved.changes, taskEvent("task.released", moved.after, task.assignedNode, now, { reason })];
  });
  return accept(tasks.length, changes);
}

/** Deletes a task in any state. LUX that was paid for it stays paid. */
export function remove(task: Task | null, taskId: string, now: number): Decision<Task> {
  if (!task) return taskNotFound(taskId);
  return accept(task, [
    { kind: "task.deleted", taskId },
    ...tallies(task, null, now),
    taskEvent("task.deleted", task, task.assignedNode, now, { title: task.title }),
  ]);
}

/** Open -> assigned. The caller has checked that the node may have the task. */
export function assignTo(
  task: Task,
  nodeId: string,
  by: AssignedBy,
  now: number,
): { after: Task; changes: readonly Change[] } {
  const given = { status: "assigned", assignedNode: nodeId, revokedFrom: null } as const;
  const { after, changes } = move(task, given, now);
  return { after, changes: [...changes, taskEvent("task.assigned", after, nodeId, now, { by })] };
}

function move(before: Task, patch: Partial<Task>, now: number): { after: Task; changes: readonly Change[] } {
  const after: Task = { ...before, ...patch, updatedAt: now };
  return { after, changes: [{ kind: "task.moved", task: after }, ...tallies(before, after, now)] };
}

/** The changes of the running totals that a step from `before` to `after` means (null: no task), in which its node is paid `rewardMicro`. */
function tallies(before: Task | null, after: Task | null, now: number, rewardMicro = 0): Change[] {
  const step = (status: TaskStatus): number =>
    Number(after?.status === status) - Number(before?.status === status);
  const changes: Change[] = [];
  if (before?.status !== after?.status) {
    changes.push({
      kind: "tasks.tallied",
      open: step("open"),
      assigned: step("assigned"),
      completed: step("completed"),
    });
  }
  const giver = before?.assignedNode ?? null;
  const taker = after?.assignedNode ?? null;
  if (giver !== null && giver !== taker) changes.push(nodeTally(giver, before, after, now, rewardMicro));
  if (taker !== null) changes.push(nodeTally(taker, before, after, now, rewardMicro));
  return changes;
}

function nodeTally(
  nodeId: string,
  before: Task | null,
  after: Task | null,
  now: number,
  rewardMicro: number,
): Change {
  const holds = (task: Task | null, status: TaskStatus): number =>
    Number(task?.assignedNode === nodeId && task.status === status);
  return {
    kind: "node.tallied",
    nodeId,
    assigned: holds(after, "assigned") - holds(before, "assigned"),
    completed: holds(after, "completed") - holds(before, "completed"),
    luxEarnedMicro: rewardMicro,
    entries: Number(rewardMicro > 0),
    balanceMicro: rewardMicro,
    idleSince: now,
  };
}

function completion(task: Task, madeRoom: boolean): Completion {
  return { taskId: task.taskId, luxPaidMicro: task.luxRewardMicro, madeRoom };
}

function sameResult(a: TaskResult | null, b: TaskResult): boolean {
  if (a === null || a.problem !== b.problem || a.improvement !== b.improvement) return false;
  return a.lesson === b.lesson && isSameJson(a.extra ?? "{}", b.extra ?? "{}");
}

function taskEvent(kind: EventKind, task: Task, nodeId: string | null, at: number, data: EventData): Change {
  return { kind: "event.logged", event: { kind, at, nodeId, taskId: task.taskId, data } };
}

function completedAlready(task: Task): Rejected {
  return reject("task_completed", `Task ${task.taskId} is completed and cannot change any more.`);
}

function notOpen(task: Task): Rejected {
  return reject(
    "task_not_open",
    `Task ${task.taskId} is assigned to ${task.assignedNode}. Choose an open one with GET /api/v1/task/pull.`,
  );
}

function notAssigned(task: Task, whatToDo: string): Rejected {
  return reject("task_not_assigned", `Task ${task.taskId} is assigned to no node. ${whatToDo}`);
}

function notYours(task: Task, node: Node): Rejected {
  return reject(
    "not_assigned_to_node",
    `Task ${task.taskId} is not assigned to ${node.nodeId}. Only the node that holds a task can complete it.`,
  );
}

function offline(node: Node): Rejected {
  return reject(
    "node_offline",
    `Node ${node.nodeId} is offline. Let it send a heartbeat, or choose a node that is online.`,
  );
}
