/**
 * The features that most tasks do not use: a task that uses one has a row for them, in a table with the indexes that begin
 * with their values. A plain task pays for none.
 *
 * Invariant: a task that has the row keeps it until it is deleted, and `hasFeatures` says so.
 */
import type { Change } from "../../domain/change.ts";
import type { Task } from "../../domain/model.ts";
import { hasFewTerms } from "./few-terms.ts";

/** Only that row can hold it. */
export function usesFeatures(task: Omit<Task, "hasFeatures">): boolean {
  return (
    hasFewTerms(task) ||
    task.creatorKey !== null ||
    task.schedule !== null ||
    task.onDependency !== "fail" ||
    task.uniqueKey !== null ||
    task.questions !== null ||
    task.review !== null ||
    task.quorum !== null ||
    task.child !== null ||
    task.notNodes.length > 0 ||
    task.spent !== null ||
    task.hasLeases ||
    task.hasOutput ||
    task.checkpointBytes > 0 ||
    task.earlierFailures.length > 0 ||
    task.keptBytes > 0 ||
    task.lentBytes > 0
  );
}

/** The changes of one decision, in which each task that uses a feature now says that it has the row. */
export function markFeatures(changes: readonly Change[]): readonly Change[] {
  const marked = new Set<string>();
  let after: Change[] | null = null;
  for (const [i, change] of changes.entries()) {
    if (change.kind === "task.sent" || change.kind === "task.leased" || change.kind === "task.broken")
      marked.add(change.taskId); // it makes the row
    if (change.kind !== "task.created" && change.kind !== "task.moved" && change.kind !== "task.edited")
      continue;
    const { task } = change;
    if (task.hasFeatures || !(marked.has(task.taskId) || usesFeatures(task))) continue;
    marked.add(task.taskId);
    after ??= [...changes];
    const first = { task: { ...task, hasFeatures: true } };
    after[i] =
      change.kind === "task.created" ? { ...change, ...first } : { ...change, ...first, isFirst: true };
  }
  return after ?? changes;
}
