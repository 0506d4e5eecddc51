/**
 * Facet: the tasks that were created with the same `group` are followed, cancelled and retried as one. A group exists
 * while it has a task: its row has what its tasks add up to. The groups of a node's keys are its own.
 *
 * A group ends when the last of its unfinished tasks ends; one whose result waits for a review has not ended. The commit
 * that ends a task marks its group. Then one transaction looks whether the totals of the group have an unfinished task,
 * logs group.ended if they have none, and removes the mark. So a crash between the two loses no event.
 *
 * Invariant: the totals are the sums over the rows of the tasks (consistency.ts).
 */
import type { Change } from "../../change.ts";
import { type Rejected, reject } from "../../decision.ts";
import { MICRO_PER_LUX } from "../../limits.ts";
import { isCancelled } from "../../failure-kinds.ts";
import type { GroupTotals, Spending, Task, TaskState, TaskStatus } from "../../model.ts";
import { hasEnded, isInReview } from "../state.ts";
import type { Facet } from "./facet.ts";

export const group: Facet = {
  name: "group",
  created: (task) => (task.group !== null && hasEnded(task) ? { changes: [touched(task.group)] } : null),
  ended(before, after) {
    if (before.group === null || hasEnded(before) || (after !== null && !hasEnded(after))) return null;
    return { changes: [touched(before.group)] };
  },
};

const touched = (name: string): Change => ({ kind: "group.touched", group: name });

/**
 * The owner of its group and unique key: the node of a bound key, or null, the hub. So no node can use up a name of the
 * hub or of another node, nor keep their groups from an end.
 */
export function ownerOf(task: Pick<Task, "creatorNode" | "creatorVerified">): string | null {
  return task.creatorVerified ? task.creatorNode : null;
}

/** NAME/NODE of an owner, NAME of the hub. No other name has a slash. */
export function ownedGroup(name: string, owner: string | null): string {
  return owner === null || name.includes("/") ? name : `${name}/${owner}`;
}

/** A bound key means the group of its node, and the hub's. */
export function groupsNamed(name: string | undefined, boundTo: string | null): readonly string[] | null {
  if (name === undefined) return null;
  const owned = ownedGroup(name, boundTo);
  return owned === name ? [name] : [owned, name];
}

export type GroupCounts = { readonly name: string; readonly totals: GroupTotals };

/** Null: the group has no task any more. */
export type TouchedGroup = { readonly group: string; readonly totals: GroupTotals | null };

export type Group = GroupCounts & {
  readonly failures: readonly TaskState[];
  /** With the deleted tasks. */
  readonly spent: Spending | null;
};

export function checkGroups(marked: readonly TouchedGroup[], at: number): readonly Change[] {
  return marked.flatMap(({ group, totals }): readonly Change[] => {
    const checked: Change = { kind: "group.checked", group };
    if (totals !== null && unfinishedIn(totals) > 0) return [checked];
    const { completed, failed, cancelled } = totals ?? NO_ENDS;
    const data = { group, completed, failed, cancelled };
    const event = { kind: "group.ended", at, nodeId: null, taskId: null, data } as const;
    return [checked, { kind: "event.logged", event }];
  });
}

const NO_ENDS = { completed: 0, failed: 0, cancelled: 0 };

export function unfinishedIn({ open, assigned, inReview }: GroupTotals): number {
  return open + assigned + inReview;
}

export function tasksIn({ open, assigned, completed, failed, cancelled }: GroupTotals): number {
  return open + assigned + completed + failed + cancelled;
}

/**
 * `after` null: no task. The totals decide when a group has ended, so every step comes here, through tallies() or
 * sums() of totals.ts.
 */
export function groupTally(before: Task | null, after: Task | null): readonly Change[] {
  const task = after ?? before;
  if (task === null || task.group === null) return [];
  const step = (value: (task: Task) => number): number =>
    (after ? value(after) : 0) - (before ? value(before) : 0);
  const inState = (state: TaskStatus): number =>
    step((counted) => Number(counted.status === state && !wasCancelled(counted)));
  const counts = {
    open: inState("open"),
    assigned: inState("assigned"),
    completed: inState("completed"),
    failed: inState("failed"),
    cancelled: step((counted) => Number(wasCancelled(counted))),
    inReview: step((counted) => Number(isInReview(counted))),
    lux: step(({ luxRewardMicro }) => wholeLux(luxRewardMicro)),
    luxMicro: step(({ luxRewardMicro }) => luxRewardMicro % MICRO_PER_LUX),
    paid: step((counted) => wholeLux(paidFor(counted))),
    paidMicro: step((counted) => paidFor(counted) % MICRO_PER_LUX),
  };
  const { group, createdAt, updatedAt } = task;
  if (before?.updatedAt === updatedAt && Object.values(counts).every((count) => count === 0)) return [];
  const times = { firstCreatedAt: createdAt, lastCreatedAt: createdAt, lastUpdatedAt: updatedAt };
  const change = { kind: "group.tallied", group, adds: before === null, removes: after === null } as const;
  return [{ ...change, ...counts, ...times }];
}

export function addTotals(a: GroupTotals, b: GroupTotals): GroupTotals {
  return {
    open: a.open + b.open,
    assigned: a.assigned + b.assigned,
    completed: a.completed + b.completed,
    failed: a.failed + b.failed,
    cancelled: a.cancelled + b.cancelled,
    inReview: a.inReview + b.inReview,
    lux: a.lux + b.lux,
    luxMicro: a.luxMicro + b.luxMicro,
    paid: a.paid + b.paid,
    paidMicro: a.paidMicro + b.paidMicro,
    firstCreatedAt: Math.min(a.firstCreatedAt, b.firstCreatedAt),
    lastCreatedAt: Math.max(a.lastCreatedAt, b.lastCreatedAt),
    lastUpdatedAt: Math.max(a.lastUpdatedAt, b.lastUpdatedAt),
  };
}

const wholeLux = (micro: number): number => Math.floor(micro / MICRO_PER_LUX);

function wasCancelled({ status, failure }: Task): boolean {
  return status === "failed" && isCancelled(failure?.kind);
}

/** Of a quorum, to those whose copies agree. */
function paidFor({ status, paidSeq, luxRewardMicro, quorum }: Task): number {
  if (status !== "completed") return 0;
  return paidSeq === null ? (quorum?.paidMicro ?? 0) : luxRewardMicro;
}

export function groupNotFound(group: string): Rejected {
  const detail = `No task belongs to the group ${group}. A task joins a group when it is created with that group.`;
  return reject("group_not_found", detail);
}
