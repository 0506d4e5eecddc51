/** One read says which chores of tasks have something to do; each has its step in its own file. */
import { SWEEP_BATCH } from "../domain/limits.ts";
import type { Moment, Task } from "../domain/model.ts";
import { expireOrStart, timeOut } from "../domain/task/chores.ts";
import type { Clock } from "../lib/clock.ts";
import { dueTasks, taskWork, timedOutTasks } from "../store/sql/tasks.ts";
import type { Query, Store } from "../store/store.ts";
import { updateSomeDependents } from "./dependencies.ts";
import { endGroups } from "./groups.ts";
import { timeOutSome } from "./questions.ts";
import type { ReviewService } from "./reviews.ts";
import { type Rule, type StepResult, applyRule } from "./step.ts";

/** Each handles about SWEEP_BATCH tasks. */
export async function dueSteps(
  store: Store,
  clock: Clock,
  reviews: ReviewService,
): Promise<readonly (() => Promise<StepResult>)[]> {
  const at = (): Moment => ({ now: clock.now(), steady: clock.steady() });
  const { now, steady } = at();
  const work = await store.read(taskWork(now, steady));
  const upTo = (most: number, moved: number): StepResult => ({ moved, isMore: moved >= most });
  const step = (queryAt: (at: Moment) => Query<readonly Task[]>, rule: Rule) => async () =>
    upTo(SWEEP_BATCH, await applyRule(store, at, queryAt, rule));
  const steps: (() => Promise<StepResult>)[] = [];
  if (work.due) steps.push(step((moment) => dueTasks(moment.now, SWEEP_BATCH), expireOrStart));
  if (work.timedOut) steps.push(step((moment) => timedOutTasks(moment.steady, SWEEP_BATCH), timeOut));
  // After the steps that end tasks, because others may depend on those.
  if (work.settled || steps.length > 0) steps.push(() => updateSomeDependents(store, at));
  if (work.questions) steps.push(async () => upTo(SWEEP_BATCH, await timeOutSome(store, at)));
  if (work.reviews) steps.push(async () => upTo(SWEEP_BATCH, await reviews.timeOut()));
  if (work.families) steps.push(async () => upTo(1, await reviews.checkFamilies()));
  if (work.groups) steps.push(() => endGroups(store, clock));
  return steps;
}
