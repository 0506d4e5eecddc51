/** Updates the tasks that depend on others, a part at a time. */
import { accept } from "../domain/decision.ts";
import { RETRIED_DEPENDENCIES_MAX, SWEEP_BATCH } from "../domain/limits.ts";
import type { Moment, Task } from "../domain/model.ts";
import { updateDependents } from "../domain/task/dependents.ts";
import { firstDependents, firstSettlement } from "../store/sql/tasks.ts";
import type { Store } from "../store/store.ts";
import type { StepResult } from "./step.ts";

/** The dependents of at most SWEEP_BATCH tasks. */
export async function updateSomeDependents(store: Store, at: () => Moment): Promise<StepResult> {
  let moved = 0;
  for (let ended = 0; ended < SWEEP_BATCH && moved < SWEEP_BATCH; ended++) {
    const load = { settlement: firstSettlement(), tasks: firstDependents(SWEEP_BATCH) };
    const updated = await store.transact(load, ({ settlement, tasks }) => {
      if (!settlement) return accept(null);
      const { taskId, outcome, root } = settlement;
      const { changes } = updateDependents(tasks, taskId, outcome, at(), root);
      if (tasks.length === SWEEP_BATCH) return accept(tasks.length, changes);
      return accept(tasks.length, [...changes, { kind: "settlement.removed", taskId }]);
    });
    if (updated === null) return { moved, isMore: false };
    moved += updated;
  }
  return { moved, isMore: true };
}

/** At least one. */
export function upToDependencies(tasks: readonly Task[]): readonly Task[] {
  let dependencies = 0;
  const end = tasks.findIndex(({ dependsOn }, i) => {
    dependencies += dependsOn.length;
    return i > 0 && dependencies > RETRIED_DEPENDENCIES_MAX;
  });
  return end === -1 ? tasks : tasks.slice(0, end);
}
