/**
 * Facet: the result of a task waits for a verdict before it is paid (../review.ts). While it waits the task is completed
 * and has not ended.
 */
import { must } from "../../../lib/assert.ts";
import type { Change } from "../../change.ts";
import { isUnpaid } from "../../lux.ts";
import type { Moment, Review, Task } from "../../model.ts";
import { taskEvent, touchedFamily } from "../log.ts";
import { hasEnded, isInReview } from "../state.ts";
import type { Completing, Facet } from "./facet.ts";

export const review: Facet = {
  name: "review",
  created: (task) => (task.review === null ? null : { changes: [reviewed(task.taskId, task.review)] }),
  ended(before, after, at, { completing }) {
    if (before.review === null) return null;
    if (after === null) return hasEnded(before) ? null : { changes: [touchedFamily(before.taskId)] };
    if (completing === undefined) return null; // it has failed, or its result has passed
    const begun = begin(before, before.review, completing, at);
    return {
      patch: { review: begun },
      changes: [reviewed(before.taskId, begun), ...touchedReviewer(before)],
      follows: [requested(before, begun, at)],
    };
  },
  explains(task) {
    if (!isInReview(task)) return [];
    const { by, check } = must(task.review, "a task in review has terms");
    const { until } = must(check, "a task in review has a check");
    return [{ code: "review", detail: `Its result waits for its review (${by}).`, until }];
  },
};

function begin(task: Task, terms: Review, { node, request }: Completing, at: Pick<Moment, "now">): Review {
  const undecided = { note: null, decidedBy: null, decidedAt: null, timedOut: false };
  const { keyId = null } = request;
  const unpaid = isUnpaid(task, node, request);
  const until = at.now + terms.withinMs;
  return { ...terms, check: { state: "pending", epoch: task.epoch, keyId, until, ...undecided, unpaid } };
}

export function reviewed(taskId: string, review: Review): Change {
  return { kind: "task.reviewed", taskId, review };
}

/** The review by a capability must be created, or is not needed any more. */
export function touchedReviewer({ review, taskId }: Task): readonly Change[] {
  return review?.by.startsWith("capability:") ? [touchedFamily(taskId)] : [];
}

/** The event reaches the stream of the node that is to decide, and that of the creator. */
function requested(task: Task, { by, check }: Review, at: Pick<Moment, "now">): Change {
  const reviewer =
    by === "creator" ? task.creatorNode : by.startsWith("node:") ? by.slice("node:".length) : null;
  const until = new Date(must(check, "a result is in review").until).toISOString();
  return taskEvent("task.review_requested", task, reviewer, at.now, { by, until });
}
