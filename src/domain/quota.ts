/**
 * Quotas: what the keys that are bound to one node may leave behind (docs/quotas.md). Other keys have none.
 *
 * The usage of a node is two running totals, in bytes and in unfinished tasks. A row that a request with a bound key
 * stores records what it counts and for whom: for the node of that key, whatever the row is about. charge() adds that to
 * the usage in the same commit. Whoever changes or removes the row later, the rule that does so changes the usage by the
 * same number. So the usage is the sum over the stored rows at every commit (store/sql/consistency.ts), and there is no
 * counter that leaks.
 *
 * A task counts against its creator, its result included. What others add to it (a checkpoint, questions, errors, usage)
 * counts against them until it ends (Task.lentBytes), then against its creator too. So do its children (family.ts),
 * which the hub creates, when there is nobody to refuse: until it has ended, a task holds the places of its children,
 * and the bytes of the copies that there are not yet. A file counts against its node; the output of an attempt against
 * the node that sends it; a message with all its deliveries against its sender. What has a small limit of its own counts
 * for nobody: stored answers, advisory leases, holds, the profile of a node; and the ledger, which nobody can delete.
 *
 * Must not: refuse what ends something. A node that was offline may use more than its quota to come back, as often as
 * twice the quota allows.
 */
import { assert } from "../lib/assert.ts";
import type { Change } from "./change.ts";
import { type Decision, type QuotaFault, type Rejected, changesOf, reject } from "./decision.ts";
import type { EventKind, NewEvent } from "./event.ts";
import {
  KEPT_BLOCK_BYTES,
  KEPT_DELIVERY_BYTES,
  KEPT_DEPENDENCY_BYTES,
  KEPT_DEPENDENCY_ID_BYTES,
  KEPT_EVENT_BYTES,
  KEPT_FILE_BYTES,
  KEPT_MESSAGE_BYTES,
  KEPT_REPORT_BYTES,
  KEPT_ROW_BYTES,
  KEPT_TASK_BYTES,
  QUOTA_TIMES_BEYOND,
} from "./limits.ts";
import { hasEnded } from "./task/state.ts";
import type { FileRecord, Kept, KeyRecord, Task, Usage } from "./model.ts";

export type Quotas = Usage;

export const NO_USAGE: Usage = { tasks: 0, bytes: 0 };

/** Undefined for a key that has no quota, or stores nothing. */
export function usageBy(
  { role, nodeId }: Pick<KeyRecord, "role" | "nodeId">,
  usages: ReadonlyMap<string, Usage>,
): Usage | undefined {
  return nodeId === null || role !== "full" ? undefined : (usages.get(nodeId) ?? NO_USAGE);
}

// ---- What a row counts

function taskBytes(task: Task): number {
  return ownBytes(task) + Math.max(0, addedBytes(task) - task.lentBytes) + heldBytes(task);
}

/** What the copies of a quorum that may still come will count at first. */
function heldBytes(task: Task): number {
  const { quorum, title, description, dependsOn, tags } = task;
  if (quorum === null || hasEnded(task)) return 0;
  let copy = KEPT_TASK_BYTES + Buffer.byteLength(title) + Buffer.byteLength(description);
  copy += (1 + dependsOn.length) * KEPT_DEPENDENCY_ID_BYTES;
  for (const tag of tags) copy += Buffer.byteLength(tag);
  const missing = quorum.of - quorum.copies.length;
  assert(missing >= 0, "a quorum has no more copies than it may");
  return missing * copy;
}

function ownBytes({ title, description, result, dependsOn, unmet, group, tags, uniqueKey }: Task): number {
  let bytes = KEPT_TASK_BYTES + Buffer.byteLength(title) + Buffer.byteLength(description);
  bytes += Buffer.byteLength(uniqueKey ?? "");
  bytes += dependsOn.length * KEPT_DEPENDENCY_ID_BYTES + unmet * KEPT_DEPENDENCY_BYTES;
  for (const text of [result?.problem, result?.improvement, result?.lesson, result?.extra])
    if (text) bytes += Buffer.byteLength(text);
  for (const word of group === null ? tags : [group, ...tags]) bytes += Buffer.byteLength(word);
  return bytes;
}

function addedBytes({ progress, failure, earlierFailures, review, checkpointBytes, questions, spent }: Task) {
  let bytes = checkpointBytes + (questions?.bytes ?? 0) + (spent?.reports ?? 0) * KEPT_REPORT_BYTES;
  for (const text of [progress, failure?.message, review?.check?.note])
    if (text) bytes += Buffer.byteLength(text);
  for (const { message } of earlierFailures) bytes += Buffer.byteLength(message ?? "");
  return bytes;
}

export function fileBytes({
  sizeBytes,
  name,
  metadata,
}: Pick<FileRecord, "sizeBytes" | "name" | "metadata">) {
  const blocks = Math.max(1, Math.ceil(sizeBytes / KEPT_BLOCK_BYTES));
  return KEPT_FILE_BYTES + Buffer.byteLength(name) + Buffer.byteLength(metadata) + blocks * KEPT_BLOCK_BYTES;
}

export function messageBytes(content: string, recipients: number): number {
  return KEPT_MESSAGE_BYTES + Buffer.byteLength(content) + recipients * KEPT_DELIVERY_BYTES;
}

function eventBytes({ data }: NewEvent): number {
  return KEPT_EVENT_BYTES + Buffer.byteLength(JSON.stringify(data));
}

/** Of any other kind. */
function rowBytes(row: object): number {
  return KEPT_ROW_BYTES + Buffer.byteLength(JSON.stringify(row));
}

export function refund(row: { readonly kept?: Kept } | null): readonly Change[] {
  const kept = row?.kept;
  return kept ? [{ kind: "usage.tallied", nodeId: kept.by, tasks: 0, bytes: -kept.bytes }] : [];
}

/** When it has ended, what others have added counts against its creator. */
export function recharged(task: Task): Task {
  const hasReturned = task.lentBytes > 0 && hasEnded(task);
  const after = hasReturned ? { ...task, lentBytes: 0 } : task;
  return isCounted(after) ? { ...after, keptBytes: taskBytes(after) } : after;
}

/** `before` null: no task. For the creator and others. */
export function usageTally(before: Task | null, after: Task | null): readonly Change[] {
  const returned = returnedCharges(before, after);
  const tally = creatorTally(before, after);
  return returned.length === 0 ? tally : [...returned, ...tally];
}

function returnedCharges(before: Task | null, after: Task | null): readonly Change[] {
  if (before === null || before.lentBytes === 0 || (after !== null && after.lentBytes > 0)) return [];
  const { taskId } = before;
  return [
    { kind: "charges.refunded", taskId },
    { kind: "charges.removed", taskId },
  ];
}

function creatorTally(before: Task | null, after: Task | null): readonly Change[] {
  const nodeId = (after ?? before)?.creatorNode ?? null;
  if (nodeId === null || (!isCounted(before) && !isCounted(after))) return [];
  const tasks = placesOf(after) - placesOf(before);
  const bytes = (after?.keptBytes ?? 0) - (before?.keptBytes ?? 0);
  return tasks === 0 && bytes === 0 ? [] : [{ kind: "usage.tallied", nodeId, tasks, bytes }];
}

/** For the last move of a task. A checkpoint that grows again costs nothing. */
export function grown<A>(before: Task | null, decision: Decision<A>): Decision<A> {
  if (before === null || decision.kind === "rejected") return decision;
  const { changes } = decision;
  const last = changes.findLastIndex(
    (change) => change.kind === "task.moved" && change.task.taskId === before.taskId,
  );
  const moved = changes[last];
  if (moved?.kind !== "task.moved" || hasEnded(moved.task)) return decision;
  const grew = addedBytes(moved.task) - Math.max(addedBytes(before), before.lentBytes);
  return grew <= 0 ? decision : { ...decision, changes: changes.with(last, { ...moved, grew }) };
}

/** Counts what the hub creates for a task like the task itself. */
export function countedLike(task: Task, created: readonly Change[]): readonly Change[] {
  if (!isCounted(task)) return created;
  return created.flatMap((change): readonly Change[] => {
    if (change.kind !== "task.created") return [change];
    const child = { ...change.task, keptBytes: taskBytes(change.task) };
    return [{ ...change, task: child }, ...usageTally(null, child)];
  });
}

const isCounted = (task: Task | null): boolean => task !== null && task.keptBytes > 0;

/** With the copies that can run at once. */
function placesOf(task: Task | null): number {
  if (task === null || !isCounted(task) || task.child !== null || hasEnded(task)) return 0;
  return 1 + (task.quorum?.results ?? 0);
}

// ---- The decision of a request with a bound key

type Bill = {
  tasks: number;
  bytes: number;
  /** Rows that a rule changed or removed: their `usage.tallied` is among the changes. */
  readonly moved: { tasks: number; bytes: number };
  /** How many times the quota the request may use, as far as its changes say so: Infinity for what ends something. */
  times: number | null;
};

/** `usage`: what is stored already. */
export function charge<A>(decision: Decision<A>, nodeId: string, usage: Usage, quotas: Quotas): Decision<A> {
  if (changesOf(decision).length === 0) return decision;
  const bill: Bill = { tasks: 0, bytes: 0, moved: { tasks: 0, bytes: 0 }, times: null };
  const changes = changesOf(decision).flatMap((change) => charged(change, nodeId, bill));
  const refused = refusal(nodeId, usage, bill, quotas);
  if (refused) return refused;
  const { tasks, bytes } = bill;
  if (tasks === 0 && bytes === 0) return decision;
  return { ...decision, changes: [...changes, { kind: "usage.tallied", nodeId, tasks, bytes }] };
}

function charged(change: Change, nodeId: string, bill: Bill): Change | readonly Change[] {
  switch (change.kind) {
    case "task.moved":
      return lent(change, nodeId, bill);
    case "task.created": {
      if (change.task.creatorNode !== nodeId) return change;
      const task = { ...change.task, keptBytes: taskBytes(change.task) };
      bill.tasks += placesOf(task);
      beginsWith(bill, task.keptBytes);
      return { ...change, task };
    }
    case "file.saved": {
      if (change.file.nodeId !== nodeId) return change;
      const file = { ...change.file, keptBytes: fileBytes(change.file) };
      beginsWith(bill, file.keptBytes);
      return { ...change, file };
    }
    case "output.begun": {
      if (change.attempt.nodeId !== nodeId) return change;
      const attempt = { ...change.attempt, keptBytes: change.countedBytes };
      beginsWith(bill, attempt.keptBytes);
      return { ...change, attempt };
    }
    case "node.summed":
      bill.bytes += change.keptBytes;
      return change;
    case "output.grown":
      bill.times = 1; // its usage.tallied is refused beyond the quota
      return change;
    case "schedule.saved":
      return { ...change, schedule: withKept(change.schedule, nodeId, bill) };
    case "webhook.saved":
      return { ...change, webhook: withKept(change.webhook, nodeId, bill) };
    case "note.saved":
      return { ...change, note: withKept(change.note, nodeId, bill) };
    case "message.stored":
    case "message.charged":
      beginsWith(bill, change.keptBytes ?? 0);
      return change;
    case "usage.tallied":
      if (change.nodeId !== nodeId) return change;
      bill.moved.tasks += change.tasks;
      bill.moved.bytes += change.bytes;
      return change;
    case "event.logged": {
      const { event } = change;
      const keptBytes = eventBytes(event);
      bill.bytes += keptBytes;
      const times = timesFor(event);
      if (times !== null) bill.times = Math.min(bill.times ?? Infinity, times);
      const keptBy = event.nodeId === nodeId ? {} : { keptBy: nodeId };
      return { ...change, event: { ...event, keptBytes, ...keptBy } };
    }
    default:
      return change;
  }
}

/** Until the task ends. */
function lent(
  change: Change & { readonly kind: "task.moved" },
  nodeId: string,
  bill: Bill,
): readonly Change[] {
  const { task: before, grew = 0 } = change;
  if (grew === 0 || (isCounted(before) && before.creatorNode === nodeId)) return [change];
  bill.bytes += grew;
  const { taskId } = before;
  const task = recharged({ ...before, lentBytes: before.lentBytes + grew });
  const charge: Change = { kind: "task.charged", taskId, nodeId, bytes: grew };
  return [{ ...change, task }, charge, ...creatorTally(before, task)];
}

/** A row that is saved again counts as before. */
function withKept<R extends { readonly kept?: Kept }>(row: R, nodeId: string, bill: Bill): R {
  if (row.kept) return row;
  const bytes = rowBytes(row);
  beginsWith(bill, bytes);
  return { ...row, kept: { by: nodeId, bytes } };
}

function beginsWith(bill: Bill, bytes: number): void {
  bill.bytes += bytes;
  bill.times = 1;
}

const ENDINGS: ReadonlySet<EventKind> = new Set([
  "task.completed",
  "task.review_passed",
  "task.review_rejected",
  "task.attempt_failed",
  "task.failed",
  "task.released",
  "task.revoked",
  "task.deleted",
  "task.answered",
  "message.acked",
  "file.deleted",
  "note.deleted",
  "schedule.deleted",
  "webhook.deleted",
  "node.left",
  "node.offline",
  "node.deleted",
]);

/** What follows from something else, which decides. */
const CONSEQUENCES: ReadonlySet<EventKind> = new Set([
  "task.review_requested",
  "lux.paid",
  "budget.warning",
  "budget.exceeded",
  "usage.capped",
]);

function timesFor({ kind, taskId, data }: NewEvent): number | null {
  // A node that is over its quota may come back, and learn why its schedules do nothing, but not without end.
  if (kind === "node.online" || kind === "schedule.skipped") return QUOTA_TIMES_BEYOND;
  if (ENDINGS.has(kind)) return Infinity;
  // The balancer assigns a task; on variant B, which has no claim, a completion does; a task that is given back is held.
  const isAsked = kind === "task.assigned" ? data["by"] === "next" || data["by"] === "claim" : true;
  return CONSEQUENCES.has(kind) || !isAsked || (kind === "limit.held" && taskId !== null) ? null : 1;
}

function refusal(nodeId: string, used: Usage, bill: Bill, allowed: Quotas): Rejected | null {
  const tasks = bill.tasks + bill.moved.tasks;
  // Without an event: a worker extends its lease, and must be able to say what its task has cost.
  const times = bill.times ?? QUOTA_TIMES_BEYOND;
  if (tasks > 0 && used.tasks + tasks > allowed.tasks * times) {
    return tasksExceeded(nodeId, tasks, { used: used.tasks, allowed: allowed.tasks });
  }
  const bytes = bill.bytes + bill.moved.bytes;
  if (bytes <= 0 || used.bytes + bytes <= allowed.bytes * times) return null;
  return bytesExceeded(nodeId, { used: used.bytes, allowed: allowed.bytes });
}

function tasksExceeded(nodeId: string, taskCount: number, quota: QuotaFault): Rejected {
  const detail = `The keys of ${nodeId} have created ${quota.used} tasks that are not finished, this request needs room for ${taskCount} more, and ${quota.allowed} is their quota. Wait until some are completed, cancel some, or ask the operator for a larger --quota-tasks.`;
  return { ...reject("quota_exceeded", detail), quota };
}

export function bytesExceeded(nodeId: string, quota: QuotaFault): Rejected {
  const detail = `What the keys of ${nodeId} have stored takes ${quota.used} bytes, their quota is ${quota.allowed}, and this request needs more than the rest. Delete files, wait until old messages and events are removed, or ask the operator to delete tasks or for a larger --quota-bytes.`;
  return { ...reject("quota_exceeded", detail), quota };
}
