/**
 * Facet: a task waits for the tasks that it depends on (`unmet` counts those that have not ended), and fails when one of
 * them has failed or is gone, unless it runs however they end (`onDependency`).
 *
 * An end is told to the dependents through a row, the settlement, by a chore (updateDependents() of dependents.ts).
 */
import type { Change, Outcome } from "../../change.ts";
import type { Failure, Moment, Task } from "../../model.ts";
import { hasEnded, isFinished, isInReview } from "../state.ts";
import type { Effect, Facet, Reason } from "./facet.ts";

export const dependencies: Facet = {
  name: "dependencies",
  opened(before) {
    if (before.status !== "failed") return null;
    return { changes: isBroken(before) ? [broken(before, null)] : [], follows: forget(before) };
  },
  ended(before, after) {
    const dropped = before.unmet > 0 ? dropDependencies(before) : null;
    const isSettled = before.hasDependents && !hasEnded(before) && (after === null || hasEnded(after));
    if (!isSettled) return dropped;
    const settled = settlement(before, outcomeOf(after));
    return { ...dropped, changes: [...(dropped?.changes ?? []), ...settled] };
  },
  waits: ({ unmet }) => unmet > 0,
  explains({ status, unmet }, { waitsFor, inReview }) {
    const reasons: Reason[] = [];
    if (status !== "open") return reasons;
    const tasks = unmet === 1 ? "a task" : `${unmet} tasks`;
    const waits = `It waits for ${tasks} on which it depends.`;
    if (unmet > 0) reasons.push({ code: "depends_on", detail: waits, until: null, waitsFor });
    const reviewed = "The result of a task on which it depends waits for its review.";
    if (inReview.length > 0)
      reasons.push({ code: "review", detail: reviewed, until: null, waitsFor: inReview });
    return reasons;
  },
};

export type Dependency = Pick<Task, "taskId" | "status" | "hasDependents"> & {
  readonly inReview?: boolean;
  /** Of a task that failed through its dependencies: the one at the root. Its retry can open all of them again. */
  readonly brokenBy: string | null;
};

export type Dependencies = ReadonlyMap<string, Dependency>;

export function byId(dependencies: readonly Dependency[]): Dependencies {
  return new Map(dependencies.map((dependency) => [dependency.taskId, dependency]));
}

export function asDependency(task: Task, brokenBy: string | null): Dependency {
  const { taskId, status, hasDependents } = task;
  return { taskId, status, hasDependents, inReview: isInReview(task), brokenBy };
}

/** `failure`: the task fails at once. */
export type Wait = {
  readonly unmet: number;
  readonly failure: Failure | null;
  readonly changes: readonly Change[];
};

const NO_WAIT: Wait = { unmet: 0, failure: null, changes: [] };

export function waitFor(
  task: Pick<Task, "taskId" | "dependsOn" | "onDependency" | "child">,
  dependencies: Dependencies,
  at: Moment,
): Wait {
  if (task.dependsOn.length === 0) return NO_WAIT;
  const cause = firstFailure(task, dependencies);
  if (cause !== null) {
    const failure = dependencyFailure(cause.taskId, cause.outcome, at.now);
    return { unmet: 0, failure, changes: [broken(task, cause.brokenBy)] };
  }
  const unfinished = task.dependsOn.filter((taskId) => {
    const dependency = dependencies.get(taskId);
    if (!dependency || task.child?.of === taskId) return false; // its result is what the child checks
    return !isFinished(dependency) || dependency.inReview === true;
  });
  const changes: Change[] = [];
  if (unfinished.length > 0)
    changes.push({ kind: "dependencies.added", taskId: task.taskId, dependsOn: unfinished });
  // Also of a completed one: its result is an input, so its retention waits for this task.
  for (const taskId of task.dependsOn)
    if (dependencies.get(taskId)?.hasDependents === false) changes.push({ kind: "task.depended", taskId });
  return { unmet: unfinished.length, failure: null, changes };
}

export function waitOf(
  {
    dependsOn,
    onDependency = "fail",
    child = null,
  }: Pick<Task, "dependsOn"> & Partial<Pick<Task, "onDependency" | "child">>,
  taskId: string,
  dependencies: readonly Dependency[],
  at: Moment,
): Wait {
  if (dependsOn.length === 0) return NO_WAIT;
  return waitFor({ taskId, dependsOn, onDependency, child }, byId(dependencies), at);
}

/** With the task at the root of that. */
export function firstFailure(
  { dependsOn, onDependency }: Pick<Task, "dependsOn" | "onDependency">,
  dependencies: Dependencies,
): { readonly taskId: string; readonly outcome: Outcome; readonly brokenBy: string } | null {
  if (onDependency === "run") return null;
  for (const taskId of dependsOn) {
    const dependency = dependencies.get(taskId);
    if (!dependency) return { taskId, outcome: "deleted", brokenBy: taskId };
    if (dependency.status === "failed")
      return { taskId, outcome: "failed", brokenBy: dependency.brokenBy ?? taskId };
  }
  return null;
}

export function dependencyFailure(dependsOn: string, outcome: Outcome, at: number): Failure {
  const what = outcome === "failed" ? "failed" : "was deleted";
  return {
    kind: "dependency",
    message: `Task ${dependsOn}, on which it depends, ${what}.`,
    nodeId: null,
    at,
  };
}

export const isBroken = ({ failure }: Pick<Task, "failure">): boolean => failure?.kind === "dependency";

export function broken({ taskId }: Pick<Task, "taskId">, brokenBy: string | null): Change {
  return { kind: "task.broken", taskId, brokenBy };
}

function outcomeOf(after: Task | null): Outcome {
  if (after === null) return "deleted";
  return after.status === "completed" ? "completed" : "failed";
}

export function settlement({ taskId, hasDependents }: Task, outcome: Outcome): readonly Change[] {
  return hasDependents ? [{ kind: "dependency.settled", taskId, outcome }] : [];
}

/** Dependents that were not told go on waiting. */
function forget({ taskId, hasDependents }: Task): readonly Change[] {
  return hasDependents ? [{ kind: "settlement.removed", taskId }] : [];
}

function dropDependencies({ taskId, unmet }: Task): Effect {
  return { patch: { unmet: 0 }, changes: [{ kind: "dependencies.dropped", taskId, count: unmet }] };
}
