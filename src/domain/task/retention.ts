/** How long a task is kept after its end, and its deletion then. */
import type { Change } from "../change.ts";
import type { Task } from "../model.ts";
import { deletion } from "./core.ts";
import { holdsKey } from "./facet/unique.ts";
import { isSealed } from "./failure.ts";
import { taskEvent } from "./log.ts";
import { hasEnded } from "./state.ts";
import { byState, sums } from "./totals.ts";

/** `before`: ended before it; null: tasks are kept forever. */
export function isPastRetention(task: Task, before: number | null, now: number): boolean {
  if (!hasEnded(task) || isSealed(task) || holdsKey(task, now)) return false;
  const until = retainUntil(task);
  return until === null ? before !== null && task.updatedAt < before : until <= now;
}

/** Null: the task has none of its own, or has not ended. */
export function retainUntil(task: Task): number | null {
  return task.retainMs !== null && hasEnded(task) ? task.updatedAt + task.retainMs : null;
}

/** Unlike a task that an administrator deletes, it stays among the completed tasks of its node. */
export function discard(task: Task, now: number): readonly Change[] {
  const event = taskEvent("task.deleted", task, null, now, { title: task.title, reason: "retention" });
  return [...deletion(task, now), byState(task, null), ...sums(task, null), event];
}
