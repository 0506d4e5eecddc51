/** Requests of the creator of a task, and of an administrator: cancel, update, retry; of one task, or of a group. */
import type { Candidate } from "../balancer.ts";
import type { Change } from "../change.ts";
import { type Accepted, type Decision, accept, nodeNotFound, preceded, taskNotFound } from "../decision.ts";
import type { EventData } from "../event.ts";
import { isForOther, laneOf } from "../lane.ts";
import type { Failure, Moment, Node, Task } from "../model.ts";
import { each } from "./chores.ts";
import { assignIfBalanced, end, returned, step } from "./core.ts";
import { withoutCheckpoint } from "./facet/checkpoint.ts";
import {
  type Dependencies,
  type Dependency,
  asDependency,
  byId,
  firstFailure,
  settlement,
  waitFor,
} from "./facet/dependencies.ts";
import { nextRound, quorate } from "./facet/quorum.ts";
import { isOverspent } from "./facet/spending.ts";
import { failedBy } from "./failure.ts";
import { type FieldsWith, TASK_FIELDS, type TaskField, type TaskFields } from "./fields.ts";
import { failedEvent, taskEvent } from "./log.ts";
import * as refuse from "./refusals.ts";
import type { CreatorRequest } from "./request.ts";
import { isFinished } from "./state.ts";

export function mayDecide(task: Task, { boundTo }: Pick<CreatorRequest, "boundTo">): boolean {
  return boundTo === null || task.creatorNode === boundTo;
}

type Cancellation = { readonly nodeId: string | null; readonly reason: string | null };

export function cancel(
  task: Task | null,
  node: Node | null,
  request: CreatorRequest & Cancellation,
  at: Moment,
): Decision<Task> {
  if (!task) return taskNotFound(request.taskId);
  if (request.nodeId !== null && !node) return nodeNotFound(request.nodeId);
  if (!mayDecide(task, request)) return refuse.notTheirCreation(task, request);
  if (isFinished(task)) return refuse.finishedAlready(task);
  return end(task, cancelledBy(request, at), at);
}

function cancelledBy(
  { nodeId, boundTo, reason }: Cancellation & Pick<CreatorRequest, "boundTo">,
  at: Moment,
): Failure {
  return { kind: "cancelled", message: reason, nodeId: nodeId ?? boundTo, at: at.now };
}

// ---- Update

type PatchName = FieldsWith<{ readonly key: string; readonly patch: string }>;

export type TaskPatch = Partial<Pick<Task, TaskFields[PatchName]["key"]>>;

/** Only an administrator takes back what was promised. */
export type UpdateRequest = CreatorRequest & { readonly patch: TaskPatch; readonly mayLower: boolean };

/** If the task is ready then and the balancer may assign it, it goes to a candidate. */
export function update(
  task: Task | null,
  candidates: readonly Candidate[],
  request: UpdateRequest,
  at: Moment,
): Decision<Task> {
  if (!task) return taskNotFound(request.taskId);
  if (!mayDecide(task, request)) return refuse.notTheirCreation(task, request);
  if (isFinished(task)) return refuse.finishedAlready(task);
  if (task.status === "assigned") return refuse.heldAlready(task);
  const { patch, mayLower, boundTo } = request;
  if (!mayLower && (patch.luxRewardMicro ?? Infinity) < task.luxRewardMicro) return refuse.lowerReward(task);
  if (patch.limitKey && boundTo !== null && isForOther(task, boundTo)) return refuse.noKeyForOther(task);
  const changed = PATCH_FIELDS.filter(
    ({ key }) => patch[key] !== undefined && !Bun.deepEquals(patch[key], task[key]),
  ).map(({ name }) => name);
  if (changed.length === 0) return accept(task); // a repeat changes nothing
  const limitKey = patch.limitKey === undefined ? task.limitKey : patch.limitKey;
  const lane = laneOf({ ...task, limitKey }, at.isFair ?? false);
  // Only another key moves it to another lane: it may have been created before dispatches were fair.
  const inLane = limitKey === task.limitKey ? patch : { ...patch, lane };
  const data = { changed: changed.join(",") };
  const event = taskEvent("task.updated", { ...task, ...patch }, task.creatorNode, at.now, data);
  const updated = step(task, inLane, at, [event]);
  const raisedMicro = Math.max(0, updated.answer.luxRewardMicro - task.luxRewardMicro);
  const edited: Change = { kind: "task.edited", task: updated.answer, raisedMicro };
  return assignIfBalanced(preceded([edited], updated), candidates, at);
}

export const PATCH_FIELDS = Object.entries<TaskField>(TASK_FIELDS)
  .filter(([, { patch }]) => patch !== undefined)
  .map(([name, { key, kind, patch }]) => ({
    // As their types say.
    name: name as PatchName,
    key: key as keyof TaskPatch,
    kind,
    canClear: patch === "clearable",
  }));

// ---- Retry

/** `maxCostMicro`: all attempts together; null: as before. */
export type RetryRequest = CreatorRequest & {
  readonly keepCheckpoint?: boolean;
  readonly maxCostMicro?: number | null;
};

/**
 * As if it had not been tried; an `expires_at` that has passed is gone. It waits or fails as a new task does.
 * Dependents that its failure has not reached yet (updateDependents()) go on waiting for it.
 */
export function retry(
  task: Task | null,
  dependencies: readonly Dependency[],
  candidates: readonly Candidate[],
  request: RetryRequest,
  at: Moment,
): Decision<Task> {
  if (!task) return taskNotFound(request.taskId);
  if (!mayDecide(task, request)) return refuse.notTheirCreation(task, request);
  if (task.status !== "failed") return refuse.notFailed(task);
  const maxCostMicro = request.maxCostMicro ?? task.maxCostMicro;
  if (isOverspent({ ...task, maxCostMicro })) return refuse.overspent(task);
  const removed = request.keepCheckpoint === false ? withoutCheckpoint(task) : null;
  const renewed: Task = { ...task, maxCostMicro, ...removed?.patch };
  const { answer: after, changes } = reopen(renewed, byId(dependencies), at);
  return assignIfBalanced(accept(after, [...changes, ...(removed?.changes ?? [])]), candidates, at);
}

/** Or failed again at once, if a dependency has failed. `because`: data of the event. */
export function reopen(
  task: Task,
  dependencies: Dependencies,
  at: Moment,
  because: EventData = {},
): Accepted<Task> {
  const { failure, unmet, changes } = waitFor(task, dependencies, at);
  const newRound = task.quorum && nextRound(task.quorum);
  const patch: Partial<Task> = {
    ...returned(task),
    attempts: 0,
    failures: 0,
    restarts: 0,
    unmet,
    quorum: newRound,
    expiresAt: task.expiresAt !== null && task.expiresAt <= at.now ? null : task.expiresAt,
    ...(failure && { status: "failed", ...failedBy(task, failure) }),
  };
  return step(task, patch, at, [
    ...changes,
    ...(newRound ? [quorate(task.taskId, newRound)] : []),
    taskEvent("task.retried", task, task.creatorNode, at.now, because),
    ...(failure ? [...settlement(task, "failed"), failedEvent(task, null, failure)] : []),
  ]);
}

// ---- Groups

export type GroupRequest = { readonly group: string; readonly boundTo: string | null };

/** Those first that depend on others. */
export function cancelGroup(
  tasks: readonly Task[],
  node: Node | null,
  request: GroupRequest & Cancellation,
  at: Moment,
): Decision<readonly Task[]> {
  if (request.nodeId !== null && !node) return nodeNotFound(request.nodeId);
  return each(tasks, (task) => end(task, cancelledBy(request, at), at));
}

/**
 * One whose dependencies have failed, or that has cost more than it may, stays as it is.
 * @param tasks oldest first: so what they depend on comes before them
 * @param dependencies those of all of them
 */
export function retryGroup(
  tasks: readonly Task[],
  dependencies: readonly Dependency[],
  at: Moment,
): Accepted<readonly Task[]> {
  const known = new Map(byId(dependencies));
  const opened: Task[] = [];
  const changes: Change[] = [];
  for (const task of tasks) {
    if (isOverspent(task) || firstFailure(task, known) !== null) continue;
    const reopened = reopen(task, known, at);
    known.set(task.taskId, asDependency(reopened.answer, null));
    opened.push(reopened.answer);
    changes.push(...reopened.changes);
  }
  return accept(opened, changes);
}
