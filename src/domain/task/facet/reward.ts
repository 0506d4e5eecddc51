/**
 * Facet: the reward of a task is paid with its result, once; of a task with a review it is held until the verdict
 * (../review.ts). What is held of a task that is deleted goes back.
 */
import { assert, must } from "../../../lib/assert.ts";
import { holdReward, isUnpaid, payReward, receiptOf, refusesLux, returnHeld } from "../../lux.ts";
import type { LedgerEntry, Receipt, Task } from "../../model.ts";
import { isInReview } from "../state.ts";
import type { Facet } from "./facet.ts";

export const reward: Facet = {
  name: "reward",
  completing(task, { node, request }) {
    if (task.luxRewardMicro === 0 || task.review !== null) return null;
    return isUnpaid(task, node, request) ? null : refusesLux(node, task.luxRewardMicro);
  },
  ended(before, after, at, { completing, entry }) {
    if (before.luxRewardMicro === 0) return null;
    if (after === null) {
      if (!isInReview(before)) return null;
      return { changes: returnHeld(asHeld(before), must(entry, "what is held is returned"), at.now) };
    }
    if (!completing || isUnpaid(before, completing.node, completing.request)) return null;
    const { node, request } = completing;
    if (before.review !== null) return { follows: holdReward(before, request, at.now) };
    const paid = payReward(node, before, request, at.now);
    assert(
      paid.kind === "accepted" && paid.answer !== null,
      "a reward that cannot be paid was refused before",
    );
    return { patch: { paidSeq: paid.answer.seq }, follows: paid.changes };
  },
};

export type Completion = {
  readonly taskId: string;
  readonly receipt: Receipt | null;
  /** Null: the task has no review. */
  readonly luxHeldMicro: number | null;
  /** The balancer may have a task for the node. */
  readonly madeRoom: boolean;
  readonly hasDependents: boolean;
};

export function completionOf(task: Task, paid: LedgerEntry | null, madeRoom: boolean): Completion {
  const { taskId, hasDependents, review } = task;
  const luxHeldMicro = review && (isInReview(task) ? asHeld(task).luxRewardMicro : 0);
  return { taskId, receipt: paid && receiptOf(paid), luxHeldMicro, madeRoom, hasDependents };
}

export function asHeld(task: Task): Task {
  return task.review?.check?.unpaid ? { ...task, luxRewardMicro: 0 } : task;
}
