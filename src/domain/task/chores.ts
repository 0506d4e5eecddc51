/** What the periodic work does with tasks, many at once: each is a step of the core. */
import { type Accepted, accept } from "../decision.ts";
import type { Moment, Task } from "../model.ts";
import { end, endAttempt, returned, step } from "./core.ts";
import { isReady } from "./facets.ts";
import { whyTimedOut } from "./facet/lease.ts";
import { taskEvent } from "./log.ts";

/** Ends those whose attempts are used up. */
export function requeue(tasks: readonly Task[], at: Moment): Accepted<readonly Task[]> {
  return each(tasks, (task) =>
    endAttempt(task, { kind: "offline", message: "The node went offline.", retry: true }, at),
  );
}

export function timeOut(tasks: readonly Task[], at: Moment): Accepted<readonly Task[]> {
  return each(tasks, (task) =>
    endAttempt(task, { kind: "timed_out", message: whyTimedOut(task), retry: true }, at),
  );
}

export function releaseAll(tasks: readonly Task[], reason: string, at: Moment): Accepted<readonly Task[]> {
  return each(tasks, (task) => {
    const event = taskEvent("task.released", task, task.assignedNode, at.now, { reason });
    return step(task, returned(task), at, [event]);
  });
}

/** The others, whose time has come, go into the backlog. */
export function expireOrStart(tasks: readonly Task[], at: Moment): Accepted<readonly Task[]> {
  return each(tasks, (task) => {
    if (task.expiresAt !== null && task.expiresAt <= at.now) {
      const message = "It was not completed in time.";
      return end(task, { kind: "expired", message, nodeId: task.assignedNode, at: at.now }, at);
    }
    // The time of a task that is not handed out itself must not come again.
    return step(task, isReady(task, at.now) ? {} : { notBefore: null }, at);
  });
}

export function each(
  tasks: readonly Task[],
  rule: (task: Task) => Accepted<Task>,
): Accepted<readonly Task[]> {
  const steps = tasks.map(rule);
  return accept(
    steps.map(({ answer }) => answer),
    steps.flatMap(({ changes }) => changes),
  );
}
