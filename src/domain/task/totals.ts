/**
 * The running totals: what each step of a task adds to the counts of tasks by state, to its nodes, to its group and to the
 * usage of its creator. They must equal the counts and sums of the rows, so every step comes here.
 */
import type { Change } from "../change.ts";
import type { Task, TaskStatus } from "../model.ts";
import { usageTally } from "../quota.ts";
import { groupTally } from "./facet/group.ts";
import { hasEnded } from "./state.ts";

/** `before`, `after` null: no task. Its node has been paid its reward if `paidSeq` is new. */
export function tallies(before: Task | null, after: Task | null, now: number): Change[] {
  const changes: Change[] = [];
  if (before?.status !== after?.status) changes.push(byState(before, after));
  const giver = before?.assignedNode ?? null;
  const taker = after?.assignedNode ?? null;
  if (giver !== null && giver !== taker) changes.push(ofNode(giver, before, after, now));
  if (taker !== null && !isKept(before, after)) changes.push(ofNode(taker, before, after, now));
  for (const change of usageTally(before, after)) changes.push(change);
  for (const change of groupTally(before, after)) changes.push(change);
  return changes;
}

export function byState(before: Task | null, after: Task | null): Change {
  const step = (status: TaskStatus): number =>
    Number(after?.status === status) - Number(before?.status === status);
  return {
    kind: "tasks.tallied",
    open: step("open"),
    assigned: step("assigned"),
    completed: step("completed"),
    failed: step("failed"),
  };
}

/** Of its creator's usage and of its group alone. */
export function sums(before: Task | null, after: Task | null): readonly Change[] {
  return [...usageTally(before, after), ...groupTally(before, after)];
}

function isKept(before: Task | null, after: Task | null): boolean {
  if (before === null || after === null || before.status !== after.status) return false;
  if (before.assignedNode !== after.assignedNode || before.paidSeq !== after.paidSeq) return false;
  return hasEnded(before) === hasEnded(after);
}

function ofNode(nodeId: string, before: Task | null, after: Task | null, now: number): Change {
  const step = (status: TaskStatus): number => holds(nodeId, after, status) - holds(nodeId, before, status);
  const isPaid = after !== null && after.paidSeq !== null && before?.paidSeq === null;
  const paidMicro = isPaid ? after.luxRewardMicro : 0;
  return {
    kind: "node.tallied",
    nodeId,
    assigned: step("assigned"),
    completed: step("completed"),
    luxEarnedMicro: paidMicro,
    entries: Number(isPaid),
    balanceMicro: paidMicro,
    idleSince: now,
  };
}

function holds(nodeId: string, task: Task | null, status: TaskStatus): number {
  return Number(task?.assignedNode === nodeId && task.status === status);
}
