/** What every rule asks of a task's state, and what must hold of its row. Must not: know the rule of a feature. */
import type { Task } from "../model.ts";
import { assert } from "../../lib/assert.ts";

export const isFinished = ({ status }: Pick<Task, "status">): boolean =>
  status === "completed" || status === "failed";

export function isInReview({ review }: Pick<Task, "review">): boolean {
  return review?.check?.state === "pending";
}

/** No verdict can open it again. */
export function hasEnded(task: Pick<Task, "status" | "review">): boolean {
  return isFinished(task) && !isInReview(task);
}

export function isWaiting({ unmet, notBefore }: Pick<Task, "unmet" | "notBefore">, now: number): boolean {
  return unmet > 0 || (notBefore !== null && notBefore > now);
}

export function assertSound(task: Task): void {
  const { status, leaseUntil, runUntil, epoch, unmet, attempts, failures } = task;
  const isAssigned = status === "assigned";
  const hasHolder = isAssigned || status === "completed";
  assert((task.assignedNode !== null) === hasHolder, "a task has a node while it is assigned or completed");
  assert((task.result !== null) === (status === "completed"), "a task has a result while it is completed");
  assert(isAssigned || (leaseUntil === null && runUntil === null), "only an assigned task has a lease");
  assert(
    runUntil === null || (leaseUntil !== null && leaseUntil <= runUntil),
    "a lease ends with its attempt",
  );
  assert(!isAssigned || epoch > 0, "each dispatch has a fencing token");
  assert(unmet >= 0 && (unmet === 0 || status === "open"), "only an open task waits for others");
  assert(status === "open" || !task.scheduled, "only an open task is scheduled");
  assert(isAssigned || !task.hasLeases, "advisory leases end with the attempt");
  assert(failures >= 0 && attempts >= failures, "each failure is an attempt");
  assert(!isFinished(task) || (task.questions?.state ?? "settled") === "settled", "nobody waits for answers");
  assert(status === "completed" || task.paidSeq === null, "only a result is paid");
  assert(status === "completed" || !isInReview(task), "only a result is reviewed");
  assert(task.lentBytes >= 0 && task.keptBytes >= 0, "bytes are counted once");
}
