/**
 * What holds of the rows of each resource: asserted of each change before it is written, and of each row that is read. Of
 * tasks: task/state.ts. A comparison of several rows is a fact of the doctor (store/sql/consistency.ts).
 *
 * Must not: compare two times of the wall clock, which may be set back.
 */
import type { Change } from "./change.ts";
import { type Decision, type Undecided, changesOf } from "./decision.ts";
import type {
  Budget,
  Checkpoint,
  Child,
  DeliveryStub,
  FileRecord,
  GroupTotals,
  Invitation,
  KeyRecord,
  Lease,
  LedgerEntry,
  Limit,
  Message,
  Node,
  Note,
  OutputAttempt,
  OutputBlock,
  Question,
  Quorum,
  Review,
  Schedule,
  Spending,
  Usage,
  UsageReport,
  WebhookProgress,
} from "./model.ts";
import { assert } from "../lib/assert.ts";

const COUNTED = "a count is not negative";
const BYTES = "a number of bytes is not negative";

export function soundNode(node: Node): Node {
  assert(node.tasksAssigned >= 0 && node.tasksCompleted >= 0, COUNTED);
  assert(node.entries >= 0 && node.luxEarnedMicro >= 0n, "nothing is earned below zero");
  assert(node.maxTasks === null || node.maxTasks >= 1, "a node may hold a task");
  assert(node.nodeId !== "", "a node has an id");
  return node;
}

export function soundReview(review: Review): Review {
  const { check } = review;
  assert(review.withinMs > 0, "a review has a time");
  if (check === null) return review;
  assert((check.state === "pending") === (check.decidedAt === null), "a verdict has a time");
  assert(check.state !== "pending" || !check.timedOut, "what waits has not timed out");
  assert(check.decidedBy === null || !check.timedOut, "nobody decided what timed out");
  assert(check.epoch > 0, "a result is of a dispatch");
  return review;
}

export function soundQuorum(quorum: Quorum): Quorum {
  const { results, of, copies, agreed, state, round } = quorum;
  assert(results >= 2 && results <= of, "a quorum is of several, and can be reached");
  assert(copies.length <= of, "a round has no more copies than it may");
  assert((state === "agreed") === agreed.length > 0, "nodes agree when there is a quorum");
  assert(agreed.length === 0 || agreed.length >= results, "so many agree as must");
  assert(round >= 0, "rounds are counted");
  return quorum;
}

export function soundChild(child: Child): Child {
  assert((child.as === "copy") === (child.compare !== null), "copies are compared");
  assert(!child.sealed || child.as === "copy", "only copies are sealed");
  assert(child.notKey === null || child.as === "review", "a key is excluded from a review");
  return child;
}

export function soundSchedule(schedule: Schedule): Schedule {
  const { timing, nextAt, until } = schedule;
  assert(schedule.jitterMs >= 0 && schedule.task.delayMs >= 0, "a delay is not negative");
  assert(!("everyMs" in timing) || timing.everyMs > 0, "an interval has a length");
  assert(!schedule.paused || nextAt === null, "what is paused has no next time");
  assert(nextAt === null || until === null || nextAt <= until, "no time is due after the last");
  assert((schedule.kept?.bytes ?? 0) >= 0, BYTES);
  return schedule;
}

export function soundProgress<W extends WebhookProgress>(progress: W): W {
  assert(progress.cursor >= 0, "a cursor is the id of an event");
  assert(progress.attempts > 0 === (progress.failingSince !== null), "a failure has a time");
  assert(progress.state === "active" || progress.nextAt === null, "what is suspended is not tried");
  return progress;
}

export function soundLease(lease: Lease): Lease {
  assert(lease.name !== "" && lease.nodeId !== "", "a lease is of a name, and has a holder");
  assert(lease.fencing >= 1, "a lease has a fencing token");
  assert(lease.ttlMs > 0, "a lease has a length");
  return lease;
}

export function soundNote<N extends Pick<Note, "key" | "version" | "verified" | "nodeId">>(note: N): N {
  assert(note.key !== "" && note.version >= 1, "a note has a key, and its versions count from 1");
  assert(!note.verified || note.nodeId !== null, "what is verified names its node");
  return note;
}

export function soundCheckpoint(checkpoint: Checkpoint): Checkpoint {
  assert(checkpoint.epoch > 0 && checkpoint.nodeId !== "", "a checkpoint is of a dispatch");
  return checkpoint;
}

export function soundAttempt(attempt: OutputAttempt): OutputAttempt {
  assert(attempt.epoch > 0 && attempt.nodeId !== "", "output is of a dispatch");
  assert(attempt.bytes >= 0 && attempt.keptBytes >= 0, BYTES);
  return attempt;
}

export function soundBlock<B extends OutputBlock>(block: B): B {
  assert(block.n >= 0 && block.start >= 0, "a block has a place");
  assert(block.data !== "", "a block has text");
  return block;
}

export function soundQuestion(question: Question): Question {
  const { state, answer, answeredBy, answeredAt } = question;
  assert((state === "answered") === (answer !== null), "what is answered has an answer");
  assert((state === "open") === (answeredAt === null), "what is settled has a time");
  assert(answeredBy === null || state === "answered", "somebody has answered only what is answered");
  assert(!question.verified || answeredBy !== null, "what is verified names its node");
  assert(question.epoch > 0, "a question is of a dispatch");
  return question;
}

function assertSoundReport(report: UsageReport): void {
  assert(report.inputTokens >= 0 && report.outputTokens >= 0 && report.cachedTokens >= 0, COUNTED);
  assert(report.costMicro === null || report.costMicro >= 0, "nothing costs less than nothing");
}

/** A change of a stored sum may be less than zero. */
export function soundSpending(spending: Spending): Spending {
  assert(spending.unpriced <= spending.reports, "what has no cost is among what is reported");
  return spending;
}

export function soundBudget<B extends Budget>(budget: B): B {
  assert(budget.costMicro !== null || budget.tokens !== null, "a budget bounds something");
  assert(budget.costMicro === null || budget.costMicro >= 0, "a budget is not negative");
  assert(budget.tokens === null || budget.tokens >= 0, "a budget is not negative");
  assert(budget.scope !== "hub" || budget.value === "", "there is one hub");
  return budget;
}

export function soundLimit<L extends Limit>(limit: L): L {
  assert(limit.running === null || limit.running >= 1, "a limit lets a task run");
  assert(limit.perMinute === null || limit.perMinute >= 1, "a limit lets a task run");
  return limit;
}

export function soundTotals(totals: GroupTotals): GroupTotals {
  assert(totals.open >= 0 && totals.assigned >= 0, COUNTED);
  assert(totals.completed >= 0 && totals.failed >= 0 && totals.cancelled >= 0, COUNTED);
  assert(totals.inReview >= 0 && totals.inReview <= totals.completed, "what is in review is completed");
  return totals;
}

export function soundUsage(usage: Usage): Usage {
  assert(usage.tasks >= 0, COUNTED);
  assert(usage.bytes >= 0, BYTES);
  return usage;
}

export function soundEntry(entry: LedgerEntry): LedgerEntry {
  const { nodeId, n, balanceMicro, hash } = entry;
  assert(entry.seq >= 1, "entries count from 1");
  assert(entry.amountMicro >= 0, "an entry moves no negative amount");
  assert(entry.from !== entry.to, "an entry has two accounts");
  assert((nodeId === null) === (n === null), "the entries of a node are numbered");
  assert((nodeId === null) === (balanceMicro === null), "the entries of a node have its balance");
  assert(n === null || n >= 1, "entries count from 1");
  assert(nodeId === null || entry.to === `node:${nodeId}`, "an entry is of the node that gets it");
  assert(hash !== "", "a hash is no empty text");
  return entry;
}

export function soundMessage(message: Message): Message {
  assert(message.messageId !== "" && message.fromNode !== "", "a message has an id and a sender");
  return message;
}

type Stub = Pick<DeliveryStub, "state" | "deliveries" | "leaseUntil">;

export function soundDelivery<D extends Stub>(delivery: D): D {
  assert(delivery.deliveries >= 0, COUNTED);
  assert(
    (delivery.state === "leased") === (delivery.leaseUntil !== null),
    "a leased delivery has a deadline",
  );
  return delivery;
}

export function soundFile(file: FileRecord): FileRecord {
  assert(file.sizeBytes >= 0 && file.keptBytes >= 0, BYTES);
  assert((file.taskId === null) === (file.attached === null), "a file of a task is its input or its output");
  assert(file.sha256 !== "", "the bytes of a file have a hash");
  return file;
}

export function soundKey(key: KeyRecord): KeyRecord {
  assert(key.keyId !== "" && key.hash !== "", "a key has a name, and the hash of its secret");
  assert(key.mintMicro === null || key.mintMicro >= 0, "a key promises no negative reward");
  return key;
}

export function soundInvitation(invitation: Invitation): Invitation {
  assert(invitation.tokenHash !== "", "an invitation has the hash of its token");
  assert((invitation.usedAt === null) === (invitation.keyId === null), "a used invitation has made a key");
  assert(invitation.nodeId !== "", "an invitation is of a node");
  return invitation;
}

type Rules = { readonly [K in Change["kind"]]?: (change: Extract<Change, { kind: K }>) => unknown };

const RULES: Rules = {
  "node.saved": ({ node }) => soundNode(node),
  "task.reviewed": ({ review }) => soundReview(review),
  "task.quorate": ({ quorum }) => soundQuorum(quorum),
  "schedule.saved": ({ schedule }) => soundSchedule(schedule),
  "webhook.saved": ({ webhook }) => soundProgress(webhook),
  "webhook.moved": ({ progress }) => soundProgress(progress),
  "lease.saved": ({ lease }) => soundLease(lease),
  "note.saved": ({ note }) => soundNote(note),
  "checkpoint.saved": ({ checkpoint }) => soundCheckpoint(checkpoint),
  "output.begun": ({ attempt }) => soundAttempt(attempt),
  "output.appended": soundBlock,
  "question.asked": ({ question }) => soundQuestion(question),
  "question.settled": ({ question }) => soundQuestion(question),
  "usage.reported": ({ reports }) => reports.forEach(assertSoundReport),
  "budget.saved": ({ budget }) => soundBudget(budget),
  "limit.saved": ({ limit }) => soundLimit(limit),
  "lux.entered": ({ entry }) => soundEntry(entry),
  "lux.minted": ({ micro }) => assert(micro >= 0, "a key promises no negative reward"),
  "message.stored": ({ message }) => soundMessage(message),
  "delivery.moved": soundDelivery,
  "file.saved": ({ file }) => soundFile(file),
  "key.saved": ({ key }) => soundKey(key),
  "invitation.saved": ({ invitation }) => soundInvitation(invitation),
  "fencing.drawn": ({ fencing }) => assert(fencing >= 1, "fencing tokens count from 1"),
  "dependencies.dropped": ({ count }) => assert(count >= 0, COUNTED),
  "answer.stored": ({ answer }) => assert(answer.status >= 200, "a stored response has a status"),
};

export function soundDecision<D extends Decision<unknown> | Undecided>(decision: D): D {
  for (const change of changesOf(decision))
    (RULES[change.kind] as ((change: Change) => unknown) | undefined)?.(change); // the rule of its kind
  return decision;
}
