/**
 * Groups of tasks: all tasks that were created with the same `group` are followed, cancelled and retried as one. A group
 * has no row of its own: it is its tasks. The groups of a node's keys are its own.
 *
 * A group ends when the last of its unfinished tasks ends; one whose result waits for a review has not ended. The
 * commit that ends a task marks its group (touchedGroup() of task.ts). Then one transaction looks whether any task of
 * the group is unfinished, logs group.ended if none is, and removes the mark. So no counter can leak, a crash between
 * the two loses no event, and a task without a group costs nothing.
 */
import type { Change } from "./change.ts";
import { type Rejected, reject } from "./decision.ts";
import type { Spending, Task, TaskState, TaskStatus } from "./model.ts";

/**
 * To whom the names of a task belong, its group and its unique key: the node with whose key it was created, or null, the
 * hub. So no node can use up a name of the hub or of another node, nor keep their groups from an end.
 */
export function ownerOf(task: Pick<Task, "creatorNode" | "creatorVerified">): string | null {
  return task.creatorVerified ? task.creatorNode : null;
}

/** The name of a group as it is stored: NAME/NODE of an owner, NAME of the hub. No other name has a slash. */
export function ownedGroup(name: string, owner: string | null): string {
  return owner === null || name.includes("/") ? name : `${name}/${owner}`;
}

/** The groups that a caller means: with a key that is bound to a node, its own of this name, and the hub's. */
export function groupsNamed(name: string | undefined, boundTo: string | null): readonly string[] | null {
  if (name === undefined) return null;
  const owned = ownedGroup(name, boundTo);
  return owned === name ? [name] : [owned, name];
}

/** A marked group. `ends`: how many of its tasks ended how, if it has ended; each counted up to GROUP_COUNTED_MAX. */
export type TouchedGroup = { readonly group: string; readonly ends: GroupEnds | null };

export type GroupEnds = { readonly completed: number; readonly failed: number; readonly cancelled: number };

/** What the tasks of a group in one state add up to. */
export type GroupPart = {
  readonly status: TaskStatus;
  readonly count: number;
  /** Of the failed ones, those that were cancelled, or expired. */
  readonly cancelled: number;
  readonly luxRewardMicro: number;
  /** Of the completed ones, those whose result waits for a review. */
  readonly inReview: number;
  /** What was paid for them, the shares of their copies included. */
  readonly luxPaidMicro: number;
  readonly firstCreatedAt: number;
  readonly lastCreatedAt: number;
  readonly lastUpdatedAt: number;
};

/** The counts of a group at one moment. */
export type GroupCounts = {
  readonly name: string;
  /** The states of its tasks; at least one. */
  readonly parts: readonly GroupPart[];
};

/** A group at one moment. */
export type Group = GroupCounts & {
  /** Its newest failures first. */
  readonly failures: readonly TaskState[];
  /** What was reported of its tasks, those that are deleted included; null: nothing. */
  readonly spent: Spending | null;
};

export function checkGroups(touched: readonly TouchedGroup[], at: number): readonly Change[] {
  return touched.flatMap(({ group, ends }): readonly Change[] => {
    const checked: Change = { kind: "group.checked", group };
    if (ends === null) return [checked];
    const event = { kind: "group.ended", at, nodeId: null, taskId: null, data: { group, ...ends } } as const;
    return [checked, { kind: "event.logged", event }];
  });
}

/** Without those that were cancelled, or expired: cancelledIn() has them. */
export function countOf({ parts }: GroupCounts, status: TaskStatus): number {
  const part = parts.find((found) => found.status === status);
  return part === undefined ? 0 : part.count - part.cancelled;
}

export function cancelledIn({ parts }: GroupCounts): number {
  return parts.reduce((sum, { cancelled }) => sum + cancelled, 0);
}

export function unfinishedIn(group: GroupCounts): number {
  return countOf(group, "open") + countOf(group, "assigned") + inReviewIn(group);
}

export function inReviewIn({ parts }: GroupCounts): number {
  return parts.reduce((sum, { inReview }) => sum + inReview, 0);
}

export function groupNotFound(group: string): Rejected {
  const detail = `No task belongs to the group ${group}. A task joins a group when it is created with that group.`;
  return reject("group_not_found", detail);
}
