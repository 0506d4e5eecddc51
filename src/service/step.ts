/** A step of the periodic work: a part of what is due, in one commit, so that no caller waits long for it. */
import type { Accepted } from "../domain/decision.ts";
import type { Moment, Task } from "../domain/model.ts";
import type { Query, Store } from "../store/store.ts";

export type StepResult = { readonly moved: number; readonly isMore: boolean };

/** Returns the tasks that it has changed. */
export type Rule = (tasks: readonly Task[], at: Moment) => Accepted<readonly Task[]>;

/** Returns how many there were. `at`: read when the transaction is decided. */
export async function applyRule(
  store: Store,
  at: () => Moment,
  queryAt: (at: Moment) => Query<readonly Task[]>,
  rule: Rule,
): Promise<number> {
  const moved = await store.transact({ tasks: queryAt(at()) }, ({ tasks }) => rule(tasks, at()));
  return moved.length;
}
