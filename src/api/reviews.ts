/** The endpoints of reviews: task/review, reviews. */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import { toLux } from "../domain/lux.ts";
import { VERDICTS } from "../domain/model.ts";
import { type Endpoint, BY_NODE, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { encodeReview, reviewSchema } from "./response-schemas.ts";
import { encodeTaskAnswer, nameOfKey, taskAnswer } from "./tasks.ts";
import { about, number, optional } from "./about.ts";

const review = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/task/review",
  summary: "Passes or rejects a result: pays the reward, or opens the task again",
  rejections: [
    "task_not_found",
    "node_not_found",
    "own_work",
    "not_reviewer",
    "not_in_review",
    "review_decided",
    "stale_lease",
    "lux_balance_limit",
  ],
  input: () =>
    z.object({
      task_id: field.id(),
      node_id: optional(field.nodeId(), "The node that reviews."),
      verdict: about(
        field.word(VERDICTS),
        "`pass` pays the reward. `reject` opens the task again, or fails the task after its last attempt.",
      ),
      note: optional(
        field.reviewNote(),
        "For the next worker of the task, who gets the note in `context.review`.",
      ),
      epoch: optional(
        field.epoch(),
        "`review.epoch` of the result that was checked: if the task has a newer result, 409 `stale_lease`.",
      ),
    }),
  answer: taskAnswer,
  handle: (
    { services, transact, key, nodeOfKey: boundTo },
    { task_id: taskId, node_id: nodeId = null, verdict, note = null, epoch = null },
  ) => {
    const checked = { taskId, nodeId, verdict, note, epoch, boundTo, keyId: nameOfKey(key) };
    return services.tasks.reviews.review(transact, checked);
  },
  encode: encodeTaskAnswer,
});

export const pendingReviewSchema = () =>
  z.strictObject({
    task_id: z.string(),
    title: z.string(),
    creator_node: z.nullable(z.string()),
    assigned_node: z.nullable(z.string()),
    lux_held: number("The reward that is held until the review."),
    review: about(reviewSchema(), "How the result is checked, and until when."),
  });

const pending = readEndpoint({
  path: "/api/v1/reviews",
  auth: "secret",
  summary: "The results that wait for a review, the most urgent first",
  readsMany: true,
  input: () =>
    z.object({
      cursor: optional(field.openCursor(), "The `next_cursor` of the page before."),
      limit: z.optional(field.queryCount(limit.REVIEWS_PER_PAGE_MAX)),
    }),
  answer: () =>
    z.strictObject({
      reviews: about(z.array(pendingReviewSchema()), "The results that wait, the most urgent first."),
      total: z.int(),
      next_cursor: z.nullable(z.string()),
    }),
  handle: ({ services }, { cursor = null, limit: most = limit.REVIEWS_PER_PAGE_DEFAULT }) =>
    services.tasks.reviews.pending(cursor, most),
  encode: ({ reviews, total, next }) => ({
    reviews: reviews.map((pending) => ({
      task_id: pending.taskId,
      title: pending.title,
      creator_node: pending.creatorNode,
      assigned_node: pending.assignedNode,
      lux_held: toLux(pending.luxRewardMicro),
      review: encodeReview(pending.review),
    })),
    total,
    next_cursor: next && field.encodeOpenCursor(next),
  }),
});

export const REVIEW_ENDPOINTS: readonly Endpoint[] = [review, pending];
