/** Facet: an open task is not handed out before its start time: a delayed job, a schedule, or the backoff of a retry. */
import type { Facet } from "./facet.ts";
import type { Task } from "../../model.ts";
import { summaryLine } from "../failure.ts";
import { failureBackingOff } from "./retry.ts";

export const startTime: Facet = {
  name: "start time",
  waits: ({ notBefore }, now) => notBefore !== null && notBefore > now,
  explains: (task, _facts, now) =>
    task.status === "open" && task.notBefore !== null && task.notBefore > now
      ? [{ code: "not_before", detail: explained(task), until: task.notBefore }]
      : [],
};

function explained(task: Task): string {
  const failure = failureBackingOff(task);
  if (failure === null) return "Its start time has not come.";
  const message = summaryLine(failure.message);
  const cause = message === null ? failure.kind : `${failure.kind}: ${message}`;
  return `Its backoff after failed attempt ${task.attempts} is not over (${cause}).`;
}

/** It starts, if it waits for nothing else, or expires; null: never. */
export function dueAt({ status, scheduled, unmet, notBefore, expiresAt }: Task): number | null {
  const isUnfinished = status === "open" || status === "assigned";
  const startsAt = scheduled && unmet === 0 ? notBefore : null;
  const endsAt = isUnfinished ? expiresAt : null;
  return startsAt === null || endsAt === null ? (startsAt ?? endsAt) : Math.min(startsAt, endsAt);
}
