/**
 * Requests of the node that holds a task: whether it holds it, and what they bring besides their purpose: usage, a
 * checkpoint, a rest for its limit key. A task that has cost more than it may fails, whatever the request is about; only a
 * result counts nevertheless.
 */
import type { Change } from "../change.ts";
import { type Rejected, nodeNotFound, taskNotFound } from "../decision.ts";
import { gateAt, spendWithin } from "../gate.ts";
import { limitKeyOf } from "../lane.ts";
import { hold } from "../limit.ts";
import type { Moment, Node, Task } from "../model.ts";
import { saveCheckpoint } from "./facet/checkpoint.ts";
import { type KnownUsage, type Spent, isOverspent, overspentMessage } from "./facet/spending.ts";
import type { EndOfAttempt } from "./failure.ts";
import * as refuse from "./refusals.ts";
import type { CheckpointRequest, HolderRequest, ReturnRequest } from "./request.ts";

/** With its current epoch, or none. */
export function heldBy(task: Task | null, node: Node | null, request: HolderRequest): Task | Rejected {
  if (!task) return taskNotFound(request.taskId);
  if (!node) return nodeNotFound(request.nodeId);
  if (task.status === "failed") return refuse.finishedAlready(task);
  if (isStale(task, request)) return refuse.staleLease(task);
  if (task.status === "open") return refuse.notAssigned(task, "Stop working on it, or claim it first.");
  if (task.assignedNode !== node.nodeId) return refuse.notYours(task, node);
  return task.status === "completed" ? refuse.finishedAlready(task) : task;
}

export function isStale(task: Task, { epoch }: Pick<HolderRequest, "epoch">): boolean {
  return epoch !== null && epoch !== task.epoch;
}

/** As the row is, and as it is with what the request brings (`held`). */
export type Report = Spent & { readonly task: Task };

export function takeReport(
  task: Task,
  { checkpoint = null, nodeId, usage = [] }: CheckpointRequest,
  known: KnownUsage | null,
  at: Moment,
): Report | Rejected {
  const spent = spendWithin(task, nodeId, usage, known, at);
  if ("code" in spent) return spent;
  const { held, saved } = spent;
  if (checkpoint === null) return { task, held, saved };
  const { patch, change } = saveCheckpoint(task, nodeId, checkpoint, at);
  return { task, held: { ...held, ...patch }, saved: [...saved, change] };
}

export function reportedBy(
  task: Task | null,
  node: Node | null,
  request: CheckpointRequest,
  known: KnownUsage | null,
  at: Moment,
): Report | Rejected {
  const held = heldBy(task, node, request);
  return "code" in held ? held : takeReport(held, request, known, at);
}

/** Null: it has not. `error`: of the worker, if it fails anyway. */
export function endOfOverspent({ held }: Report, error: string | null): EndOfAttempt | null {
  if (!isOverspent(held)) return null;
  const message = overspentMessage(held) + (error === null ? "" : ` The worker's error: ${error}`);
  return { kind: "budget", message, retry: false };
}

/** Of a task that is given back; `at`: with the gate after that. */
export function holdKey(
  task: Task,
  { holdMs = null, nodeId }: ReturnRequest,
  at: Moment,
): { readonly at: Moment; readonly changes: readonly Change[] } | Rejected {
  if (holdMs === null || !at.gate) return { at, changes: [] };
  const { taskId } = task;
  const held = hold(at.gate, { key: limitKeyOf(task), forMs: holdMs, nodeId, taskId }, at.now);
  if (held.kind === "rejected") return held;
  const others = at.gate.limits.filter(({ key }) => key !== held.answer.key);
  const gate = gateAt({ ...at.gate, limits: [...others, held.answer] }, at.now);
  return { at: { ...at, gate }, changes: held.changes };
}
