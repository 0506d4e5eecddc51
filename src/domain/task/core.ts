/**
 * Task rules and state diagram (specification 3, Task).
 *
 *             create                  dispatch                  complete
 *   (none) -----------> open ----------------------> assigned -----------> completed
 *      |                ^  |                          |  |  ^
 *      |                |  |                          |  +--+ resume, without maxAttempts
 *      |                |  |  return to open          |
 *      |                +--|--------------------------+
 *      |                |  |                          |
 *      |          retry |  | cancel, expired,         | cancel, expired; fail, timeout or node offline
 *      |                |  v dependency               v with the last attempt
 *      +--------------> failed <----------------------+
 *        dependency
 *   any --delete--> (none)       open --update--> open       completed, in review --rejected--> open or failed
 *
 *   dependency       a task that it depends on has failed or is deleted, unless it runs however they end
 *                    (onDependency); also at once, when it is created or retried
 *   dispatch         next, claim, assign, balancer, the second step of revoke with a node, and on B complete
 *   resume           next hands a node again what it has started; with maxAttempts that ends the attempt
 *   return to open   release, revoke, node left or deleted, caller of next gone, a question that parks it (question.ts):
 *                    the attempts stay
 *                    fail, timeout: one attempt more, and not ready before the backoff is over
 *                    node offline, restart with maxAttempts: one attempt more
 *
 * An open task is ready when its start time has come (`notBefore`, a delayed job), its dependencies are completed
 * (`unmet` is 0) and it is not parked by a question. Until then it is not handed out. `epoch` is a fencing token: it
 * counts each dispatch and each return to open.
 *
 * A node that takes a task itself (next, claim) also says that it works on it (`startedAt`). What was assigned to it by
 * others, and not started, is a gift: next hands it out before any open task.
 *
 * Every transition is a step(): the row, what the facets of the task add at their places (facet/facet.ts), and the running
 * totals (totals.ts), together. What spans two tasks is a mark that a chore looks at later. Not a step():
 *
 *   create, takeToComplete   transit() runs the hooks: the row is written once, by create or by the completion
 *   deletion, discard        no row is left: deletion() runs the hooks at the end
 *   addCopies, appendOutput  quorum.ts, output.ts: no transition, only the kept bytes or a flag of the row
 *
 * Must not: know a feature that the diagram does not show. What a feature adds to a step is in its facet; what its
 * requests do is in a file beside this, which calls step().
 */
import { type Candidate, pick } from "../balancer.ts";
import type { Change } from "../change.ts";
import { isSameResult } from "../compare.ts";
import {
  type Accepted,
  type Decision,
  type Rejected,
  accept,
  nodeNotFound,
  preceded,
  taskNotFound,
} from "../decision.ts";
import { afterUsage, gateWithout, isClosed, refusedByGate } from "../gate.ts";
import { couldTake, hasFree } from "../lane.ts";
import type { Claimant, NewEntry } from "../lux.ts";
import type { Failure, LedgerEntry, Moment, Node, Task } from "../model.ts";
import { grown, recharged } from "../quota.ts";
import { assert } from "../../lib/assert.ts";
import { HOOKS, isReady, refusesNode, refusesResult } from "./facets.ts";
import { type Dependency, waitOf } from "./facet/dependencies.ts";
import type { Ending } from "./facet/facet.ts";
import { extended } from "./facet/lease.ts";
import { isUsedUp, nextStart, withAttempt } from "./facet/retry.ts";
import { type Completion, completionOf } from "./facet/reward.ts";
import type { KnownUsage } from "./facet/spending.ts";
import { ATTEMPT_EVENTS, type EndOfAttempt, attemptData, failedBy, shownText } from "./failure.ts";
import { type Report, endOfOverspent, holdKey, isStale, reportedBy, takeReport } from "./holder.ts";
import { failedEvent, taskEvent } from "./log.ts";
import { type TaskDraft, newTask } from "./new-task.ts";
import * as refuse from "./refusals.ts";

import type { CheckpointRequest, CompleteRequest, ReturnRequest } from "./request.ts";
import { assertSound, hasEnded, isFinished } from "./state.ts";
import { tallies } from "./totals.ts";

// ---- The step

/**
 * One step of a task: its row, the running totals, what its facets add, and what the step tells (`tells`: its event).
 * `stored`: the row, if the step begins where another one ended that was not written.
 */
export function step(
  before: Task,
  patch: Partial<Task>,
  at: Moment,
  tells: readonly Change[] = [],
  ending: Ending = NO_ENDING,
  stored = before,
): Accepted<Task> {
  const transition = transit(before, patch, at, ending);
  const after = recharged(transition.after);
  assertSound(after);
  const changes: Change[] = [movedFrom(stored, after, at.now)];
  for (const change of tallies(stored, after, at.now)) changes.push(change);
  for (const change of transition.changes) changes.push(change);
  for (const change of tells) changes.push(change);
  for (const change of transition.follows) changes.push(change);
  return accept(after, changes);
}

const NO_ENDING: Ending = {};

type Transition = {
  readonly after: Task;
  readonly changes: readonly Change[];
  readonly follows: readonly Change[];
};

function transit(before: Task, patch: Partial<Task>, at: Moment, ending: Ending = NO_ENDING): Transition {
  const after: Task = { ...before, updatedAt: at.now, ...patch };
  const changes: Change[] = [];
  const follows: Change[] = [];
  for (const hook of hooksOf(before, after)) {
    const effect = hook(before, after, at, ending);
    if (effect === null) continue;
    Object.assign(after, effect.patch);
    for (const change of effect.changes ?? []) changes.push(change);
    for (const change of effect.follows ?? []) follows.push(change);
  }
  const scheduled = after.status === "open" && !isReady(after, at.now);
  if (scheduled !== after.scheduled) Object.assign(after, { scheduled });
  return { after, changes, follows };
}

function hooksOf(before: Task, after: Task): readonly (typeof HOOKS.opened)[number][] {
  if (after.status === "open") return HOOKS.opened;
  if (after.status === "assigned") return after.epoch === before.epoch ? NO_HOOKS : HOOKS.dispatched;
  return hasEnded(before) ? NO_HOOKS : HOOKS.ended;
}

const NO_HOOKS: typeof HOOKS.opened = [];

function movedFrom(before: Task, task: Task, now: number): Change {
  if (before.status !== "open" || task.assignedNode === null) return { kind: "task.moved", task };
  // An open task is last updated when it is opened, when a dependency is met, or when its time has come.
  const readyAt = Math.max(before.updatedAt, before.notBefore ?? 0);
  return { kind: "task.moved", task, waitedMs: Math.max(0, now - readyAt) };
}

// ---- Create

/**
 * If it is ready and the balancer may assign it, it goes to the best of `candidates` at once.
 * @param dependencies those of `draft.dependsOn` that there are
 */
export function create(
  draft: TaskDraft,
  taskId: string,
  candidates: readonly Candidate[],
  at: Moment,
  dependencies: readonly Dependency[] = [],
  files: readonly string[] = [],
): Accepted<Task> {
  const wait = waitOf(draft, taskId, dependencies, at);
  const blank = newTask(draft, taskId, wait, files, at);
  const isScheduled = blank.status === "open" && !isReady(blank, at.now);
  const waiting = isScheduled ? { ...blank, scheduled: true } : blank;
  const node = pickFor(waiting, candidates, at);
  const dispatch = node && transit(waiting, dispatchTo(waiting, node.nodeId), at);
  const task = dispatch?.after ?? waiting;
  assertSound(task);
  const changes: Change[] = [{ kind: "task.created", task }];
  for (const created of HOOKS.created) changes.push(...(created(task, at)?.changes ?? []));
  changes.push(...tallies(null, task, at.now), ...wait.changes);
  changes.push(taskEvent("task.created", task, task.creatorNode, at.now, { title: task.title }));
  if (node) changes.push(...(dispatch?.changes ?? []), assignedEvent(task, node.nodeId, "balancer", at));
  if (wait.failure) changes.push(failedEvent(task, null, wait.failure));
  return accept(task, changes);
}

// ---- Dispatch

type AssignedBy = "next" | "claim" | "assign" | "balancer" | "complete" | "revoke" | "resume";

/** A claim also says that the node works on the task; of a gift it says only that. */
export function take(
  task: Task | null,
  node: Node | null,
  request: { taskId: string; nodeId: string; by: "claim" | "assign" },
  at: Moment,
): Decision<Task> {
  if (!task) return taskNotFound(request.taskId);
  if (!node) return nodeNotFound(request.nodeId);
  if (isFinished(task)) return refuse.finishedAlready(task);
  if (task.assignedNode === node.nodeId) {
    if (request.by === "assign" || task.startedAt !== null) return accept(task);
    return step(task, { startedAt: at.now, updatedAt: task.updatedAt }, at);
  }
  if (task.status === "assigned") return refuse.notOpen(task);
  if (!isReady(task, at.now)) return refuse.notReady(task);
  const refused = refuse.unavailable(node) ?? refusesNode(task, node) ?? keptBack(task, node, at);
  if (refused) return refused;
  return assignTo(task, node.nodeId, request.by, at);
}

/** The caller has checked that the node may have the task. */
export function assignTo(task: Task, nodeId: string, by: AssignedBy, at: Moment): Accepted<Task> {
  assert(task.status === "open", "only an open task is assigned");
  const startedAt = by === "claim" || by === "next" ? at.now : null;
  const patch = { ...dispatchTo(task, nodeId), startedAt };
  return step(task, patch, at, [assignedEvent(task, nodeId, by, at)]);
}

/** A gift, or what it has started. */
export function startAgain(
  held: Task,
  nodeId: string,
  at: Moment,
  tells: readonly Change[] = [],
): Accepted<Task> {
  return step(held, { ...dispatchTo(held, nodeId), startedAt: at.now }, at, tells);
}

function dispatchTo(task: Task, nodeId: string) {
  const epoch = task.epoch + 1;
  return { status: "assigned", assignedNode: nodeId, revokedFrom: null, epoch } as const;
}

export function assignedEvent(task: Task, nodeId: string, by: AssignedBy, at: Moment): Change {
  return taskEvent("task.assigned", task, nodeId, at.now, { by });
}

function pickFor(task: Task, candidates: readonly Candidate[], at: Moment): Candidate | null {
  if (!task.balanced || !isReady(task, at.now)) return null;
  const closed = at.gate?.closed ?? null;
  if (closed === null) return pick(task, candidates);
  return pick(
    task,
    candidates.filter(({ nodeId }) => !isClosed(closed, task, nodeId)),
  );
}

/** A task that is open after a step goes to the best of `candidates`, if the balancer may assign it. */
export function assignIfBalanced(
  opened: Accepted<Task>,
  candidates: readonly Candidate[],
  at: Moment,
): Accepted<Task> {
  const node = pickFor(opened.answer, candidates, at);
  return node ? preceded(opened.changes, assignTo(opened.answer, node.nodeId, "balancer", at)) : opened;
}

/** The type of the task is no reason. */
function keptBack(task: Task, node: Node, { gate, now }: Moment): Rejected | null {
  if (gate && isClosed(gate.closed, task, node.nodeId)) return refusedByGate(gate, task, node.nodeId, now);
  const { requires } = task;
  const isFit = requires === null || (couldTake(node, { taskType: "", requires }) && hasFree(node, requires));
  return isFit ? null : refuse.requirementsNotMet(task, node);
}

// ---- Return

/** The balancer does not assign it to the same node at once. */
export function release(
  task: Task | null,
  node: Node | null,
  candidates: readonly Candidate[],
  request: ReturnRequest & { reason: string | null },
  at: Moment,
  known: KnownUsage | null = null,
): Decision<Task> {
  const report = reportedBy(task, node, request, known, at);
  if ("code" in report) return report;
  return giveBack(report, candidates, request, at, null, (held) => {
    const holder = held.assignedNode;
    const reason = shownText(held, request.reason);
    const event = taskEvent("task.released", held, holder, at.now, { reason });
    return step(held, { ...returned(held), revokedFrom: holder }, at, [event]);
  });
}

export function fail(
  task: Task | null,
  node: Node | null,
  candidates: readonly Candidate[],
  request: ReturnRequest & { error: string; retry: boolean; kind?: "failed" | "stalled" },
  at: Moment,
  known: KnownUsage | null = null,
): Decision<Task> {
  const report = reportedBy(task, node, request, known, at);
  if ("code" in report) return report;
  const { error, retry, kind = "failed" } = request;
  return giveBack(report, candidates, request, at, error, (held) =>
    endAttempt(held, { kind, message: error, retry }, at),
  );
}

function giveBack(
  report: Report,
  candidates: readonly Candidate[],
  request: ReturnRequest,
  at: Moment,
  error: string | null,
  giveUp: (held: Task) => Accepted<Task>,
): Decision<Task> {
  const { held, saved } = report;
  const overspent = endOfOverspent(report, error);
  if (overspent) return endReported(report, overspent, at);
  const hold = holdKey(held, request, at);
  if ("code" in hold) return hold;
  const opened = preceded([...saved, ...hold.changes], giveUp(held));
  return grown(report.task, assignIfBalanced(opened, candidates, afterUsage(hold.at, saved)));
}

/** Revoking to the node that holds it changes nothing. */
export function revoke(
  task: Task | null,
  target: Node | null,
  candidates: readonly Candidate[],
  request: { taskId: string; nodeId: string | null; reason: string | null },
  at: Moment,
): Decision<Task> {
  if (!task) return taskNotFound(request.taskId);
  if (request.nodeId !== null && !target) return nodeNotFound(request.nodeId);
  if (isFinished(task)) return refuse.finishedAlready(task);
  if (task.status === "open")
    return refuse.notAssigned(task, "Give it to one with POST /api/v1/task/assign.");
  const holder = task.assignedNode;
  if (target && target.nodeId === holder) return accept(task);
  const asFreed = at.gate ? { ...at, gate: gateWithout(at.gate, task, at.now) } : at;
  const refused = target && (refuse.unavailable(target) ?? keptBack(task, target, asFreed));
  if (refused) return refused;
  const event = taskEvent("task.revoked", task, holder, at.now, { reason: request.reason });
  const freed = step(task, { ...returned(task), revokedFrom: holder }, at, [event]);
  if (!target) return assignIfBalanced(freed, candidates, asFreed);
  return preceded(freed.changes, assignTo(freed.answer, target.nodeId, "revoke", asFreed));
}

export function returned(task: Task) {
  const epoch = task.epoch + 1;
  return { status: "open", assignedNode: null, startedAt: null, progress: null, epoch } as const;
}

export function endAttempt(
  task: Task,
  ended: EndOfAttempt,
  at: Moment,
  patch: Partial<Task> = {},
): Accepted<Task> {
  const { kind, message, retry } = ended;
  const nodeId = task.assignedNode;
  const failure: Failure = { kind, message, nodeId, at: at.now };
  const counts = withAttempt(task, kind);
  const counted: Task = { ...task, ...counts };
  const event = taskEvent(ATTEMPT_EVENTS[kind], task, nodeId, at.now, attemptData(counted, failure, ended));
  if (!retry || isUsedUp(counted)) return end(task, failure, at, { ...patch, ...counts }, [event]);
  const notBefore = nextStart(counted, kind, at);
  const opened = { ...patch, ...counts, ...returned(task), ...failedBy(task, failure), notBefore };
  return step(task, opened, at, [event]);
}

// ---- The holder goes on, or completes

/** A note becomes its `progress`. A task that has cost more than it may fails. */
export function extend(
  task: Task | null,
  node: Node | null,
  request: CheckpointRequest & { note: string | null },
  at: Moment,
  known: KnownUsage | null = null,
): Decision<Task> {
  const report = reportedBy(task, node, request, known, at);
  if ("code" in report) return report;
  const { held, saved } = report;
  const overspent = endOfOverspent(report, null);
  if (overspent) return endReported(report, overspent, at);
  if (request.note === null && saved.length === 0 && held.timeoutMs === null) return accept(held);
  const note = shownText(held, request.note);
  const updatedAt = request.note === null ? held.updatedAt : at.now;
  const progress = note ?? held.progress;
  const event = note === null ? [] : [taskEvent("task.progress", held, request.nodeId, at.now, { note })];
  const going = step(held, { ...extended(held, at), progress, updatedAt }, at, event);
  return grown(task, preceded(saved, going));
}

/**
 * `claimOnComplete` (variant B, which has no claim) lets a registered node complete an open task. A task that has cost
 * too much completes nevertheless: the result is there, and it is paid.
 * @param request `paid` is the entry that `paidSeq` names: a repeat gets its receipt
 */
export function complete(
  task: Task | null,
  node: Node | null,
  request: CompleteRequest & NewEntry & Claimant & { readonly paid: LedgerEntry | null },
  at: Moment,
  known: KnownUsage | null = null,
): Decision<Completion> {
  if (!task) return taskNotFound(request.taskId);
  if (!node) return nodeNotFound(request.nodeId);
  if (task.status === "failed") return refuse.finishedAlready(task);
  if (isStale(task, request)) return refuse.staleLease(task);
  if (task.status !== "open" && task.assignedNode !== node.nodeId) return refuse.notYours(task, node);
  if (task.status === "completed") {
    if (!isSameResult(task.result, request.result)) return refuse.finishedAlready(task);
    assert(task.paidSeq === (request.paid?.seq ?? null), "a repeat knows the entry that paid the task");
    return accept(completionOf(task, request.paid, false));
  }
  const taken = task.status === "open" ? takeToComplete(task, node, request, at) : accept(task);
  if (taken.kind === "rejected") return taken;
  const completing = { node, request };
  const refused = refusesResult(task, completing);
  if (refused) return refused;
  const report = takeReport(taken.answer, request, known, at);
  if ("code" in report) return report;
  const patch = { status: "completed", result: request.result } as const;
  const event = taskEvent("task.completed", task, node.nodeId, at.now, {});
  const { answer: after, changes } = step(report.held, patch, at, [event], { completing }, task);
  const madeRoom = node.maxTasks !== null || task.requires !== null;
  const completion = completionOf(after, after.paidSeq === null ? null : entryIn(changes), madeRoom);
  return accept(completion, [...taken.changes, ...report.saved, ...changes]);
}

/** It never ran, so it counts for no limit. */
function takeToComplete(task: Task, node: Node, request: CompleteRequest, at: Moment): Decision<Task> {
  if (!request.claimOnComplete) return refuse.notAssigned(task, "Claim or assign it first.");
  if (!isReady(task, at.now)) return refuse.notReady(task);
  const refused = refusesNode(task, node);
  if (refused) return refused;
  const { after, changes } = transit(task, dispatchTo(task, node.nodeId), { ...at, gate: null });
  return accept(after, [...changes, assignedEvent(task, node.nodeId, "complete", at)]);
}

function entryIn(changes: readonly Change[]): LedgerEntry | null {
  for (const change of changes) if (change.kind === "lux.entered") return change.entry;
  return null;
}

// ---- End

/** `before`: the event of the attempt that ended it. */
export function end(
  task: Task,
  failure: Failure,
  at: Moment,
  patch: Partial<Task> = {},
  before: readonly Change[] = [],
): Accepted<Task> {
  const failed = { ...patch, status: "failed", assignedNode: null, ...failedBy(task, failure) } as const;
  return step(task, failed, at, [...before, failedEvent(task, task.assignedNode, failure)]);
}

export function endFor(task: Task, message: string, at: Moment): Accepted<Task> {
  return end(task, { kind: "cancelled", message, nodeId: null, at: at.now }, at);
}

function endReported(report: Report, ended: EndOfAttempt, at: Moment): Accepted<Task> {
  return preceded(report.saved, endAttempt(report.held, ended, at));
}

/** LUX that was paid for it stays paid. `entry`: for what is held of its reward; null if nothing is. */
export function remove(
  task: Task | null,
  taskId: string,
  now: number,
  entry: NewEntry | null = null,
): Decision<Task> {
  if (!task) return taskNotFound(taskId);
  const event = taskEvent("task.deleted", task, task.assignedNode, now, { title: task.title });
  return accept(task, [...deletion(task, now, { entry }), ...tallies(task, null, now), event]);
}

export function deletion(task: Task, now: number, ending: Ending = NO_ENDING): readonly Change[] {
  const { taskId, status, countsFor } = task;
  const frees = status === "assigned" && countsFor !== null ? { frees: countsFor } : null;
  const changes: Change[] = [{ kind: "task.deleted", taskId, ...frees }];
  for (const ended of HOOKS.ended) changes.push(...(ended(task, null, { now }, ending)?.changes ?? []));
  return changes;
}
