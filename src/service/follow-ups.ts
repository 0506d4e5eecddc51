/**
 * What follows a commit that has ended or opened tasks: their dependents are updated, ended groups are logged, families are
 * looked at, and the balancer runs. The commit is on disk, so no failure here is reported: the periodic work does the same
 * (task-chores.ts).
 */
import type { Notified } from "../domain/change.ts";
import type { Task } from "../domain/model.ts";
import type { Store } from "../store/store.ts";

/** Each handles a part of what is to be done, and returns how many it handled. */
type FollowUpSteps = {
  readonly updateDependents: () => Promise<number>;
  readonly endGroups: () => Promise<number>;
  readonly checkFamilies: () => Promise<number>;
  readonly balance: () => Promise<unknown>;
};

export class FollowUps {
  readonly #steps: FollowUpSteps;
  /** Steps that have not begun. */
  readonly #following = new Map<string, Promise<void>>();

  constructor(store: Store, steps: FollowUpSteps) {
    this.#steps = steps;
    store.onCommit((changes) => {
      if (changes.some(({ kind }) => kind === "group.touched")) void this.endGroups();
      if (changes.some(({ kind }) => kind === "family.touched")) void this.#checkFamilies();
      if (changes.some(hasLeftLimit)) void this.balance(); // under the limit of a key there is room
    });
  }

  async ofMany(): Promise<void> {
    await this.updateDependents();
    await this.endGroups();
    await this.balance();
  }

  async ofFailed(task: Task): Promise<void> {
    if (task.hasDependents && task.status === "failed") await this.updateDependents();
  }

  updateDependents(): Promise<void> {
    return this.together("dependents", async () => {
      if ((await this.#steps.updateDependents()) > 0) await this.#steps.balance();
    });
  }

  endGroups(): Promise<void> {
    return this.together("groups", this.#steps.endGroups);
  }

  balance(): Promise<void> {
    return this.together("balance", this.#steps.balance);
  }

  #checkFamilies(): Promise<void> {
    return this.together("families", async () => {
      if ((await this.#steps.checkFamilies()) === 0) return;
      await this.updateDependents();
      await this.balance();
    });
  }

  /**
   * Runs a step once for all callers that ask before it begins (single-flight), such as the requests of one batch after
   * its commit. A failure is not reported.
   */
  together(name: string, step: () => Promise<unknown>): Promise<void> {
    const begun = this.#following.get(name);
    if (begun) return begun;
    const following = Promise.resolve()
      .then(async () => {
        this.#following.delete(name);
        await step();
      })
      .catch(() => {});
    this.#following.set(name, following);
    return following;
  }
}

function hasLeftLimit(change: Notified): boolean {
  if (change.kind === "task.deleted") return change.frees !== undefined;
  return change.kind === "task.moved" && change.task.countsFor !== null && change.task.status !== "assigned";
}
