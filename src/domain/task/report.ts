/**
 * What a request of a worker brings besides its purpose: usage, a checkpoint, a rest for its limit key. A task that has
 * cost more than it may fails, whatever the request is about; only a result counts nevertheless.
 */
import type { Change } from "../change.ts";
import type { Rejected } from "../decision.ts";
import { gateAt, spendWithin } from "../gate.ts";
import { limitKeyOf } from "../lane.ts";
import { hold } from "../limit.ts";
import type { Moment, Task } from "../model.ts";
import { saveCheckpoint } from "./facet/checkpoint.ts";
import { type Known, type Spent, isOverspent, overspentMessage } from "./facet/spending.ts";
import type { EndOfAttempt } from "./failure.ts";
import type { CheckpointRequest, ReturnRequest } from "./request.ts";

/** A task with what a request brings, and the changes that save it. */
export type Report = Spent;

/** @param known what is stored of the usage */
export function takeReport(
  task: Task,
  { checkpoint = null, nodeId, usage = [] }: CheckpointRequest,
  known: Known | null,
  at: Moment,
): Report | Rejected {
  const spent = spendWithin(task, nodeId, usage, known, at);
  if (checkpoint === null || "code" in spent) return spent;
  const { patch, change } = saveCheckpoint(task, nodeId, checkpoint, at);
  return { held: { ...spent.held, ...patch }, saved: [...spent.saved, change] };
}

/** How a task ends that has cost more than it may; null: it has not. `error`: of the worker, if it fails anyway. */
export function endOfOverspent({ held }: Report, error: string | null): EndOfAttempt | null {
  if (!isOverspent(held)) return null;
  const message = overspentMessage(held) + (error === null ? "" : ` The worker's error: ${error}`);
  return { kind: "budget", message, retry: false };
}

/** Holds the limit key of a task that is given back; `at`: the moment with the gate after that. */
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
