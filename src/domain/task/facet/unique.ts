/**
 * While a task is unfinished, or for a time from its creation, no other task is created with its unique key.
 * No hooks: TaskService asks holderOfKey() before it creates a task.
 */
import type { Moment, Task } from "../../model.ts";
import { hasEnded } from "../state.ts";

/**
 * The unique key of a new task. `forMs`: how long from its creation it holds the key, finished or not; null: while it
 * is unfinished.
 */
export type Unique = { readonly key: string; readonly forMs: number | null };

export function uniqueAt(unique: Unique | null, now: number): Pick<Task, "uniqueKey" | "uniqueUntil"> {
  const forMs = unique?.forMs ?? null;
  return { uniqueKey: unique?.key ?? null, uniqueUntil: forMs === null ? null : now + forMs };
}

/** Whether it holds its key until a time, although it may be finished. */
export function holdsKey({ uniqueUntil }: Pick<Task, "uniqueUntil">, now: number): boolean {
  return uniqueUntil !== null && uniqueUntil > now;
}

/** The task that keeps another from being created with its unique key; `tasks` have the key. */
export function holderOfKey(tasks: readonly Task[], { now }: Pick<Moment, "now">): Task | null {
  return tasks.find((task) => !hasEnded(task) || holdsKey(task, now)) ?? null;
}
