/**
 * Sample values for the tests of the rules, of which a test overrides only the fields that it is about. And sketches: a
 * decision's answer and changes as short strings, for use in tables.
 */
import type { Change } from "../../src/domain/change.ts";
import type { Decision, RejectionCode, Undecided } from "../../src/domain/decision.ts";
import {
  type Delivery,
  type DeliveryStub,
  type Message,
  type Moment,
  type Node,
  type Question,
  type Task,
} from "../../src/domain/model.ts";
import type { NodeProfile } from "../../src/domain/node.ts";
import type { TaskDraft } from "../../src/domain/task/new-task.ts";
import { DEFAULT_TERMS } from "../../src/domain/task/template.ts";
import { usesFeatures } from "../../src/store/sql/features.ts";

/** The moment at which the tests decide; samples are older. */
export const NOW = Date.UTC(2025, 5, 15, 12);
export const EARLIER = NOW - 60_000;
/** A reading of the steady clock, apart from the wall clock so that a mix-up shows. */
export const STEADY = 7_000_000;
export const AT: Moment = { now: NOW, steady: STEADY };

export function profile(nodeId: string, patch: Partial<NodeProfile> = {}): NodeProfile {
  return {
    nodeId,
    name: `Name of ${nodeId}`,
    host: null,
    port: null,
    capabilities: [],
    variant: "B",
    maxTasks: null,
    autoAssign: true,
    ...patch,
  };
}

export function node(nodeId: string, patch: Partial<Node> = {}): Node {
  return {
    ...profile(nodeId),
    resources: {},
    used: {},
    draining: false,
    online: true,
    hasLeases: false,
    registeredAt: EARLIER,
    lastHeartbeatAt: EARLIER,
    leaseUntil: STEADY + 1,
    tasksAssigned: 0,
    tasksCompleted: 0,
    luxEarnedMicro: 0n,
    idleSince: EARLIER,
    entries: 0,
    balanceMicro: 0n,
    ...patch,
  };
}

/** A tally with what most of them leave as it is. */
export function tally(patch: Pick<Tally, "nodeId"> & Partial<Tally>): Tally {
  const nothing = {
    assigned: 0,
    completed: 0,
    luxEarnedMicro: 0,
    entries: 0,
    balanceMicro: 0,
    idleSince: 1,
  };
  return { kind: "node.tallied", ...nothing, ...patch };
}

type Tally = Extract<Change, { kind: "node.tallied" }>;

/** A task that may be done at any time, as often as the defaults allow. */
export const UNSCHEDULED = {
  ...DEFAULT_TERMS,
  notBefore: null,
  expiresAt: null,
  dependsOn: [],
};

export function draft(patch: Partial<TaskDraft> = {}): TaskDraft {
  return {
    ...UNSCHEDULED,
    title: "Title",
    description: "Description",
    creatorVerified: false,
    creatorKey: null,
    schedule: null,
    balanced: false,
    ...patch,
  };
}

export function task(taskId: string, patch: Partial<Task> = {}): Task {
  const made: Omit<Task, "hasFeatures"> = {
    ...draft(),
    lane: patch.taskType ?? "",
    countsFor: null,
    uniqueKey: null,
    uniqueUntil: null,
    onDependency: "fail",
    seq: 0,
    taskId,
    status: "open",
    assignedNode: null,
    result: null,
    resultVerified: false,
    paidSeq: null,
    revokedFrom: null,
    attempts: 0,
    failures: 0,
    restarts: 0,
    runUntil: null,
    leaseUntil: null,
    epoch: patch.assignedNode == null ? 0 : 1,
    unmet: 0,
    hasDependents: false,
    hasLeases: false,
    scheduled: false,
    startedAt: null,
    progress: null,
    failure: null,
    earlierFailures: [],
    checkpointBytes: 0,
    hasOutput: false,
    questions: null,
    review: null,
    quorum: null,
    child: null,
    notNodes: [],
    spent: null,
    createdAt: EARLIER,
    updatedAt: EARLIER,
    files: [],
    keptBytes: 0,
    lentBytes: 0,

    outputs: [],
    ...patch,
  };
  return { ...made, hasFeatures: patch.hasFeatures ?? usesFeatures(made) };
}

export function message(messageId: string, patch: Partial<Message> = {}): Message {
  return {
    messageId,
    fromNode: "sender",
    toNode: "n1",
    type: "text",
    content: "secret words",
    requireAck: false,
    replyTo: null,
    thread: null,
    verified: false,
    sentAt: EARLIER,
    ...patch,
  };
}

export function delivery(patch: Partial<Delivery> = {}, of: Partial<Message> = {}): Delivery & DeliveryStub {
  return {
    message: message("m1", of),
    messageId: of.messageId ?? "m1",
    fromNode: of.fromNode ?? "sender",
    broadcast: of.toNode === null,
    seq: 1,
    toNode: "n1",
    state: "waiting",
    deliveries: 0,
    leaseUntil: null,
    ...patch,
  };
}

export function stub(patch: Partial<DeliveryStub> = {}): DeliveryStub {
  return {
    messageId: "m1",
    fromNode: "sender",
    broadcast: false,
    seq: 1,
    toNode: "n1",
    state: "waiting",
    deliveries: 0,
    leaseUntil: null,
    ...patch,
  };
}

/** A code, or what is answered and written, in order. */
export type Sketch = RejectionCode | "undecided" | readonly string[];

/** `answer` puts the answer into words; it stands first. */
export function sketch<A>(decision: Decision<A> | Undecided, answer: (answer: A) => string): Sketch {
  if (decision.kind === "rejected") return decision.code;
  if (decision.kind === "undecided") return "undecided";
  return [`answers ${answer(decision.answer)}`, ...decision.changes.map(sketchChange)];
}

export function sketchTask({ status, assignedNode }: Task): string {
  return assignedNode === null ? status : `${status} ${assignedNode}`;
}

const signed = (...values: readonly number[]): string =>
  values.map((value) => (value > 0 ? `+${value}` : `${value}`)).join(" ");

export function sketchChange(change: Change): string {
  switch (change.kind) {
    case "task.created":
    case "task.moved":
      return `${change.kind} ${sketchTask(change.task)}`;
    case "task.deleted":
    case "task.depended":
    case "dependencies.dropped":
    case "settlement.removed":
      return `${change.kind} ${change.taskId}`;
    case "task.broken":
      return `${change.kind} ${change.taskId} by ${change.brokenBy}`;
    case "file.attached":
      return `${change.kind} ${change.fileId} to ${change.taskId}`;
    case "dependencies.added":
    case "dependency.met":
      return `${change.kind} ${change.taskId} ${change.dependsOn}`;
    case "dependency.settled":
      return `${change.kind} ${change.taskId} ${change.outcome}`;
    case "tasks.tallied":
      return `tasks ${signed(change.open, change.assigned, change.completed, change.failed)}`;
    case "node.tallied": {
      const { nodeId, assigned, completed, luxEarnedMicro } = change;
      return `${nodeId} ${signed(assigned, completed, luxEarnedMicro)}`;
    }
    case "lux.entered": {
      const { nodeId, n, kind, amountMicro, balanceMicro } = change.entry;
      return `ledger ${nodeId} #${n} ${kind} ${amountMicro} ${balanceMicro}`;
    }
    case "event.logged": {
      const { kind, nodeId, taskId, data } = change.event;
      return `${kind} ${nodeId} ${taskId} ${JSON.stringify(data)}`;
    }
    case "node.saved":
    case "node.offline":
    case "node.returned":
    case "node.beaten":
      return `${change.kind} ${change.kind === "node.saved" ? change.node.nodeId : change.nodeId}`;
    case "message.stored":
      return `${change.kind} ${change.message.messageId}`;
    case "delivery.queued":
      return `${change.kind} ${change.messageId} ${change.toNode}`;
    case "deliveries.queued":
      return `${change.kind} ${change.messageId} ${change.toNodes.join()}`;
    case "delivery.moved":
      return `${change.toNode} #${change.seq} ${change.state} ${change.deliveries} ${change.leaseUntil}`;
    case "files.tallied":
      return `files ${signed(change.files, change.bytes)}`;
    case "broadcast.saved":
      return `broadcast ${change.messageId} ${change.writeUntil} ${change.waiting}`;
    case "broadcast.tallied":
      return `broadcast #${change.seq} ${signed(change.waiting, change.delivered, change.acked)}`;
    case "deliveries.pruned":
      return `${change.kind} ${change.broadcast ? "of broadcasts" : "of messages to one node"}`;
    default:
      return change.kind;
  }
}

export function question(questionId: string, patch: Partial<Question> = {}): Question {
  return {
    questionId,
    taskId: "t1",
    question: "?",
    choices: [],
    schema: null,
    askedBy: "n1",
    epoch: 1,
    askedAt: NOW,
    until: NOW + 60_000,
    state: "open",
    answer: null,
    answeredBy: null,
    answeredAt: null,
    verified: false,
    ...patch,
  };
}
