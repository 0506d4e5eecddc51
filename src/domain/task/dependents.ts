/** How dependents hear of an end, and how they are opened again with what they depend on. */
import type { Candidate } from "../balancer.ts";
import type { Change, Outcome } from "../change.ts";
import { type Accepted, type Decision, accept, taskNotFound } from "../decision.ts";
import type { Moment, Task } from "../model.ts";
import { each } from "./chores.ts";
import { end, step } from "./core.ts";
import { type RetryRequest, mayDecide, reopen, retry } from "./creator.ts";
import {
  type Dependency,
  asDependency,
  broken,
  byId,
  dependencyFailure,
  firstFailure,
  isBroken,
} from "./facet/dependencies.ts";
import * as refuse from "./refusals.ts";

/** `root`: Dependency.brokenBy. */
export function updateDependents(
  tasks: readonly Task[],
  dependsOn: string,
  outcome: Outcome,
  at: Moment,
  root = dependsOn,
): Accepted<readonly Task[]> {
  return each(tasks, (task) => {
    if (outcome !== "completed" && task.onDependency === "fail") {
      const { answer: failed, changes } = end(task, dependencyFailure(dependsOn, outcome, at.now), at);
      return accept(failed, [...changes, broken(task, root)]);
    }
    const met: Change = { kind: "dependency.met", taskId: task.taskId, dependsOn };
    return step(task, { unmet: task.unmet - 1 }, at, [met]);
  });
}

type Retried = { readonly task: Task; readonly opened: number };

/**
 * With what failed only because of the task. A task that is not failed any more stays as it is: a repeat, or a retry
 * without its dependents, came before.
 * @param dependents what failed through the task, oldest first: so what they depend on comes before them
 * @param dependencies those of the task and of all `dependents`
 */
export function retryWithDependents(
  task: Task | null,
  dependents: readonly Task[],
  dependencies: readonly Dependency[],
  candidates: readonly Candidate[],
  request: RetryRequest,
  at: Moment,
): Decision<Retried> {
  if (!task) return taskNotFound(request.taskId);
  if (!mayDecide(task, request)) return refuse.notTheirCreation(task, request);
  const isFailed = task.status === "failed";
  if (!isFailed && dependents.length === 0) return refuse.notFailed(task);
  const root = isFailed ? retry(task, dependencies, candidates, request, at) : accept(task);
  if (root.kind === "rejected") return root;
  const changes: Change[] = [...root.changes];
  if (root.answer.status === "failed") return accept({ task: root.answer, opened: 0 }, changes);
  const known = new Map(byId(dependencies));
  known.set(task.taskId, asDependency(root.answer, null));
  let opened = 0;
  for (const dependent of dependents) {
    if (!isBroken(dependent) || dependent.status !== "failed" || !mayDecide(dependent, request)) continue;
    const cause = firstFailure(dependent, known);
    if (cause !== null) {
      changes.push(broken(dependent, cause.brokenBy));
      known.set(dependent.taskId, asDependency(dependent, cause.brokenBy));
      continue;
    }
    const reopened = reopen(dependent, known, at, { retried_with: task.taskId });
    changes.push(...reopened.changes);
    known.set(dependent.taskId, asDependency(reopened.answer, null));
    opened++;
  }
  return accept({ task: root.answer, opened }, changes);
}
