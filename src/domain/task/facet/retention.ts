/** Facet: how long a task is kept after its end. It is deleted by discard() of the core. */
import type { Task } from "../../model.ts";
import { isSealed } from "../failure.ts";
import { hasEnded } from "../state.ts";
import { holdsKey } from "./unique.ts";

/** Whether a task has ended, and its retention is over. `before`: ended before it; null: tasks are kept forever. */
export function isPastRetention(task: Task, before: number | null, now: number): boolean {
  if (!hasEnded(task) || isSealed(task) || holdsKey(task, now)) return false;
  const until = retainUntil(task);
  return until === null ? before !== null && task.updatedAt < before : until <= now;
}

/** When the retention of its own ends; null: it has none, or has not ended. */
export function retainUntil(task: Task): number | null {
  return task.retainMs !== null && hasEnded(task) ? task.updatedAt + task.retainMs : null;
}
