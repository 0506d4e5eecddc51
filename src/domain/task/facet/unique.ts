/**
 * While a task is unfinished, or for a time from its creation, no other task is created with its unique key.
 * No hooks: TaskService asks holderOfKey() before it creates a task.
 */
import type { Moment, Task } from "../../model.ts";
import { hasEnded } from "../state.ts";

/** `forMs`: from its creation, finished or not; null: while it is unfinished. */
export type Unique = { readonly key: string; readonly forMs: number | null };

export function uniqueAt(unique: Unique | null, now: number): Pick<Task, "uniqueKey" | "uniqueUntil"> {
  const forMs = unique?.forMs ?? null;
  return { uniqueKey: unique?.key ?? null, uniqueUntil: forMs === null ? null : now + forMs };
}

export function holdsKey({ uniqueUntil }: Pick<Task, "uniqueUntil">, now: number): boolean {
  return uniqueUntil !== null && uniqueUntil > now;
}

/** `tasks` have the key. */
export function holderOfKey(tasks: readonly Task[], { now }: Pick<Moment, "now">): Task | null {
  return tasks.find((task) => !hasEnded(task) || holdsKey(task, now)) ?? null;
}
