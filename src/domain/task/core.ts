/**
 * Task rules and state diagram (specification 3, Task).
 *
 *             create                  dispatch                  complete
 *   (none) -----------> open ----------------------> assigned -----------> completed
 *      |                ^  |                          |  |  ^
 *      |                |  |                          |  +--+ revoke with another node
 *      |                |  |  return to open          |
 *      |                +--|--------------------------+
 *      |                |  |                          |
 *      |          retry |  | cancel, expired,         | cancel, expired; fail, timeout or node offline
 *      |                |  v dependency               v with the last attempt
 *      +--------------> failed <----------------------+
 *        dependency
 *   any --delete--> (none)       open --update--> open       completed, in review --rejected--> open or failed
 *
 *   dependency       a task that it depends on has failed or is deleted, unless it runs however they end
 *                    (onDependency); also at once, when it is created or retried
 *   dispatch         next, claim, assign, balancer, revoke with a node, and on B complete
 *   return to open   release, revoke, node left or deleted, caller of next gone, a question that parks it (question.ts):
 *                    the attempts stay
 *                    fail, timeout: one attempt more, and not ready before the backoff is over
 *                    node offline, restart with maxAttempts: one attempt more
 *
 * An open task is ready when its start time has come (`notBefore`, a delayed job), its dependencies are completed
 * (`unmet` is 0) and it is not parked by a question. Until then it is not handed out. `epoch` is a fencing token: it
 * counts each dispatch and each return to open.
 *
 * A node that takes a task itself (next, claim) also says that it works on it (`startedAt`). What was assigned to it by
 * others, and not started, is a gift: next hands it out before any open task.
 *
 * Every transition returns the change of the task and the changes of the running totals together (`tallies`).
 */
import { type Candidate, hasRoom, pick } from "../balancer.ts";
import type { Change, Notified, Offer, Outcome } from "../change.ts";
import {
  type Accepted,
  type Decision,
  type Rejected,
  accept,
  nodeNotFound,
  reject,
  taskNotFound,
} from "../decision.ts";
import { type EventData, type EventKind, isOfCreator } from "../event.ts";
import { type FieldsWith, TASK_FIELDS, type TaskField, type TaskFields } from "./fields.ts";
import { withTerms } from "./template.ts";
import { attach, upload } from "../file.ts";
import {
  afterUsage,
  countedFor,
  gateAt,
  gateWithout,
  isClosed,
  refusedByGate,
  spendWithin,
} from "../gate.ts";
import { couldTake, hasFree, isForOther, limitKeyOf, laneOf, takesType, wordOf } from "../lane.ts";
import { groupTally, ownedGroup, ownerOf } from "./facet/group.ts";
import { hold } from "../limit.ts";
import {
  BACKOFF_MAX_SECONDS,
  FAILED_ATTEMPTS_KEPT,
  FAILURES_DEFAULT_MAX,
  GIFTS_OF_GIVER_MAX,
  SUMMARY_LINE_MAX_CHARS,
} from "../limits.ts";
import {
  type Claimant,
  type NewEntry,
  holdReward,
  isUnpaid,
  payReward,
  receiptOf,
  returnHeld,
} from "../lux.ts";
import { missingIn } from "../compare.ts";
import { grown, recharged, usageTally } from "../quota.ts";
import { type Known, type Spent, isOverspent, overspentMessage } from "./facet/spending.ts";
import { assert, must } from "../../lib/assert.ts";
import { SECOND_MS } from "../../lib/clock.ts";
import { isSameJson } from "../../lib/exact-json.ts";
import {
  type Checkpoint,
  type Child,
  type Failure,
  type FileRecord,
  type LedgerEntry,
  type Moment,
  type Node,
  type OnDependency,
  type Quorum,
  type Receipt,
  type Review,
  type Task,
  type TaskOrigin,
  type TaskQuestions,
  type TaskResult,
  type TaskStatus,
  type TaskTemplate,
  type UsageReport,
  VERDICTS,
  type Verdict,
} from "../model.ts";

/** The fields of a task that its creator sets. */
export type TaskDraft = TaskTemplate &
  Pick<Task, "notBefore" | "expiresAt" | "dependsOn" | "schedule"> & {
    /** Left out: "fail". */
    readonly onDependency?: OnDependency;
    /** Left out: it has none. */
    readonly unique?: Unique | null;
    /** Of a task that the hub creates for another one; and the nodes that may not have it. */
    readonly child?: Child | null;
    readonly notNodes?: readonly string[];
  };

/**
 * The unique key of a new task. `forMs`: how long from its creation it holds the key, finished or not; null: while it
 * is unfinished.
 */
export type Unique = { readonly key: string; readonly forMs: number | null };

/** A new task, or the one that had its unique key already. */
export type Created = Task & { readonly deduplicated?: true };

/** The fields of a task that those depending on it read. */
export type Dependency = Pick<Task, "taskId" | "status" | "hasDependents"> & {
  /** Whether its result waits for a review; left out: no. */
  readonly inReview?: boolean;
  /**
   * Of a task that failed through its dependencies: the one at the root of it, which failed in another way or was
   * deleted. A retry of that one can open all of them again.
   */
  readonly brokenBy: string | null;
};

export type AssignedBy = "next" | "claim" | "assign" | "balancer" | "complete" | "revoke";

/** Whether nothing of its own keeps a task from being handed out now: its time, its dependencies, a question. */
export function isReady(
  task: Pick<Task, "status" | "unmet" | "notBefore" | "questions" | "quorum">,
  now: number,
): boolean {
  if (task.status !== "open" || task.questions?.state === "parked") return false;
  return task.quorum === null && !isWaiting(task, now); // of a quorum, only the copies are handed out
}

/** Whether it waits for its time or for other tasks. */
function isWaiting({ unmet, notBefore }: Pick<Task, "unmet" | "notBefore">, now: number): boolean {
  return unmet > 0 || (notBefore !== null && notBefore > now);
}

/**
 * Creates an open task, or a failed one if it depends on what has failed. If it is ready and the balancer may assign it,
 * it goes to the best of `candidates` at once.
 * @param dependencies those of `draft.dependsOn` that there are
 * @param files its inputs
 */
export function create(
  draft: TaskDraft,
  taskId: string,
  candidates: readonly Candidate[],
  at: Moment,
  dependencies: readonly Dependency[] = [],
  files: readonly string[] = [],
): Accepted<Task> {
  const { unique = null, reviewTerms = null, quorumTerms = null, child = null, notNodes = [] } = draft;
  const { dependsOn, onDependency = "fail" } = draft;
  const wait = waitFor({ taskId, dependsOn, onDependency, child }, byId(dependencies), at);
  const uniqueFor = unique?.forMs ?? null;
  const terms = draft.group === null ? draft : { ...draft, group: ownedGroup(draft.group, ownerOf(draft)) };
  // Each field by its name: spreads of so many cost more than all else here.
  const blank: Task = withTerms(
    {
      seq: 0,
      taskId,
      creatorVerified: draft.creatorVerified,
      creatorKey: draft.creatorKey,
      status: wait.patch.status ?? "open",
      assignedNode: null,
      result: null,
      resultVerified: false,
      paidSeq: null,
      balanced: draft.balanced,
      revokedFrom: null,
      attempts: 0,
      failures: 0,
      restarts: 0,
      runUntil: null,
      leaseUntil: null,
      epoch: 0,
      notBefore: draft.notBefore,
      expiresAt: draft.expiresAt,
      dependsOn,
      unmet: wait.patch.unmet ?? 0,
      hasDependents: false,
      scheduled: false,
      startedAt: null,
      progress: null,
      failure: wait.patch.failure ?? null,
      earlierFailures: [],
      checkpointBytes: 0,
      hasOutput: false,
      questions: null,
      review: reviewTerms && { ...reviewTerms, check: null },
      quorum: quorumTerms && { ...quorumTerms, state: "pending", round: 0, copies: [], agreed: [] },
      child,
      notNodes,
      schedule: draft.schedule,
      lane: laneOf(draft, at.isFair ?? false),
      countsFor: null,
      uniqueKey: unique?.key ?? null,
      uniqueUntil: uniqueFor === null ? null : at.now + uniqueFor,
      onDependency,
      spent: null,
      hasLeases: false,
      createdAt: at.now,
      updatedAt: at.now,
      files,
      outputs: [],
      keptBytes: 0, // charge() of quota.ts sets it
      lentBytes: 0,
      hasFeatures: false, // the store sets it
    },
    terms,
  );
  const task = withSchedule(blank, at.now);
  const node = pickFor(task, candidates, at);
  const counted = countedFor(node && at.gate, task, at.now);
  const created: Task = node ? { ...task, ...handedOut(task, node.nodeId, at) } : task;
  const changes: Change[] = [
    { kind: "task.created", task: created },
    ...(created.review ? [reviewed(created.taskId, created.review)] : []),
    ...(created.quorum ? [quorate(taskId, created.quorum)] : []),
    ...(child ? [{ kind: "task.related", taskId, child, notNodes } as const] : []),
    ...nowCopied(created, at.now),
    ...tallies(null, created, at.now),
    ...wait.changes,
    taskEvent("task.created", task, task.creatorNode, at.now, { title: task.title }),
  ];
  changes.push(...counted.changes);
  if (node) changes.push(taskEvent("task.assigned", created, node.nodeId, at.now, { by: "balancer" }));
  if (wait.patch.failure) changes.push(failedEvent(created, null, wait.patch.failure));
  return accept(created, changes);
}

/** Creates a task that has free files as its inputs. `boundTo`: see attach() (domain/file.ts). */
export function createWith(
  draft: TaskDraft,
  taskId: string,
  rows: {
    readonly candidates: readonly Candidate[];
    readonly dependencies: readonly Dependency[];
    readonly files: readonly FileRecord[];
  },
  boundTo: string | null,
  at: Moment,
): Decision<Task> {
  const attached = attach(rows.files, taskId, boundTo);
  if (attached.kind === "rejected") return attached;
  const files = rows.files.map(({ fileId }) => fileId);
  const created = create(draft, taskId, rows.candidates, at, rows.dependencies, files);
  return accept(created.answer, [...created.changes, ...attached.changes]);
}

/** The task that keeps another from being created with its unique key; `tasks` have the key. */
export function holderOfKey(tasks: readonly Task[], { now }: Pick<Moment, "now">): Task | null {
  const isHeld = (task: Task): boolean => !hasEnded(task) || (task.uniqueUntil ?? 0) > now;
  return tasks.find(isHeld) ?? null;
}

/** The data of a task that is created for one node or through A2A, besides its draft. */
export type Sent = {
  /** Of a task sent through A2A. */
  readonly origin: TaskOrigin | null;
  /** The node that gets it; null: any. */
  readonly nodeId: string | null;
  /**
   * Null: the node has the task at once. Else a key of another node sends it, and how many of its tasks wait for the
   * node: the task is open and waits too, in line with the others (reservedFor()).
   */
  readonly gifts?: number | null;
  /** The files in the message: their bytes are on disk. */
  readonly files: readonly FileRecord[];
};

/** A task that only this node takes. A node to which the balancer gives tasks gets this one from it too. */
export function reservedFor(draft: TaskDraft, nodeId: string, node: Node | null): TaskDraft {
  const requires = { capabilities: [wordOf(nodeId)], resources: {} };
  return { ...draft, requires, balanced: draft.balanced || (node?.autoAssign ?? false) };
}

/** Why a key of another node may not send a node a task. */
function refusesGift(node: Node, { taskType }: TaskDraft, gifts: number): Rejected | null {
  if (!takesType(node, taskType)) {
    const detail = `Node ${node.nodeId} does not take the type ${taskType}. Send it a task of a type that it takes, or leave the task to any node.`;
    return reject("requirements_not_met", detail);
  }
  if (gifts < GIFTS_OF_GIVER_MAX) return refusesTasks(node);
  const detail = `${GIFTS_OF_GIVER_MAX} tasks that you have sent to ${node.nodeId} wait there, which is the most. Wait until it has taken some, or leave the task to any node.`;
  return reject("gifts_limit", detail);
}

/** Creates a task with its files, and assigns it to the node that it was sent to. */
export function createSent(
  draft: TaskDraft,
  { origin, nodeId, files, gifts = null }: Sent,
  taskId: string,
  rows: Parameters<typeof createWith>[2] & { readonly node: Node | null },
  boundTo: string | null,
  at: Moment,
): Decision<Task> {
  const candidates = nodeId === null ? rows.candidates : [];
  const created = createWith(draft, taskId, { ...rows, candidates }, boundTo, at);
  if (created.kind === "rejected") return created;
  const changes: Change[] = [...created.changes];
  if (origin) changes.push({ kind: "task.sent", taskId, origin });
  let task = created.answer;
  for (const file of files) {
    const owner = file.nodeId === null ? null : { nodeId: file.nodeId };
    // Nobody holds the task yet, so each file is an input.
    const attached = upload({ ...file, taskId }, { ...task, assignedNode: null }, owner);
    if (attached.kind === "rejected") return attached;
    changes.push(...attached.changes);
    task = { ...task, files: [...task.files, file.fileId] };
  }
  if (nodeId === null) return accept(task, changes);
  if (rows.node && !isReady(task, at.now)) return notReadyForNode();
  if (gifts !== null) {
    const refused = rows.node ? refusesGift(rows.node, draft, gifts) : nodeNotFound(nodeId);
    return refused ?? accept(task, changes);
  }
  const taken = take(task, rows.node, { taskId, nodeId, by: "assign" }, at);
  if (taken.kind === "rejected") return taken;
  // The row is written once, as it is after the assignment.
  const assigned = changes.map((change): Change =>
    change.kind === "task.created" ? { ...change, task: taken.answer } : change,
  );
  return accept(taken.answer, [...assigned, ...taken.changes.filter(({ kind }) => kind !== "task.moved")]);
}

/**
 * Assigns an open task: to the node that asks for it (claim), or to one that an administrator names (assign). A claim
 * also says that the node works on it; one of what was assigned to it before says only that.
 */
export function take(
  task: Task | null,
  node: Node | null,
  asked: { taskId: string; nodeId: string; by: "claim" | "assign" },
  at: Moment,
): Decision<Task> {
  if (!task) return taskNotFound(asked.taskId);
  if (!node) return nodeNotFound(asked.nodeId);
  if (isFinished(task)) return finishedAlready(task);
  if (task.assignedNode === node.nodeId) {
    if (asked.by === "assign" || task.startedAt !== null) return accept(task); // a repeat changes nothing
    const started: Task = { ...task, startedAt: at.now };
    return accept(started, [{ kind: "task.moved", task: started }]);
  }
  if (task.status === "assigned") return notOpen(task);
  if (!isReady(task, at.now)) return notReady(task);
  const refused = refusesTasks(node) ?? notForNode(task, node) ?? keptBack(task, node, at);
  if (refused) return refused;
  const { after, changes } = assignTo(task, node.nodeId, asked.by, at);
  return accept(after, changes);
}

// ---- The next task of a worker

/** The previous state of a task that `next` hands out: open, a gift of the node, or started by it before. */
export type TakenFrom = "open" | "gifts" | "started";

/**
 * The answer of `next`: a task, or none because the node drains, has its `maxTasks`, or no task is available.
 * `ended`: what the node had started, and whose attempts were used up by this restart.
 */
export type Next =
  | { readonly task: Task; readonly from: TakenFrom; readonly draining: boolean; readonly ended: Task | null }
  | {
      readonly task: null;
      readonly isFull: boolean;
      readonly draining: boolean;
      readonly ended: Task | null;
    };

/** The candidates of `next`: the best task of each kind, null if there is none; of open tasks several, in the order of offers. */
export type NextTasks = {
  readonly started: Task | null;
  readonly gifts: Task | null;
  readonly open: readonly Task[];
};

/**
 * Hands an online node a task: one that it has started, if loaded and its attempts are not used up; else its best gift;
 * else the best open task. The answer that there is none is not stored: a repeat asks again.
 */
export function next(node: Node, found: NextTasks, at: Moment): Accepted<Next> {
  const { nodeId, draining } = node;
  const again = found.started && restart(found.started, nodeId, at);
  if (again?.after.status === "assigned")
    return accept<Next>({ task: again.after, from: "started", draining, ended: null }, again.changes);
  const ended = again?.after ?? null;
  const before = again?.changes ?? [];
  if (found.gifts) {
    const after = startAgain(found.gifts, nodeId, at);
    const moved: Change = { kind: "task.moved", task: after };
    const changes = [...before, moved, ...sums(found.gifts, after)];
    return accept<Next>({ task: after, from: "gifts", draining, ended }, changes);
  }
  const isFull = !hasRoom(ended ? { ...node, tasksAssigned: node.tasksAssigned - 1 } : node);
  const best = draining || isFull ? null : bestFor(node, found, at);
  if (!best) return { ...accept<Next>({ task: null, isFull, draining, ended }, before), isStored: false };
  const { after, changes } = assignTo(best, nodeId, "next", at);
  return accept<Next>({ task: after, from: "open", draining, ended }, [...before, ...changes]);
}

/** The best open task that the node may have now. */
function bestFor(node: Node, { open }: NextTasks, { gate }: Moment): Task | null {
  const mayHave = (task: Task): boolean =>
    !isClosed(gate?.closed, task, node.nodeId) &&
    !isExcluded(task, node.nodeId) &&
    hasFree(node, task.requires);
  return open.find(mayHave) ?? null;
}

/**
 * Hands a node again what it has started: its worker ended without a result. If the task has `maxAttempts` that ended an
 * attempt, and the task fails after the last one: a poison task, which kills its workers, must not come back for ever.
 */
function restart(started: Task, nodeId: string, at: Moment): Step {
  const task: Task = { ...started, restarts: started.restarts + 1 };
  if (task.maxAttempts === null) {
    const { runUntil } = task; // it is the same attempt
    const after = { ...startAgain(task, nodeId, at), runUntil, leaseUntil: leaseFrom(task, runUntil, at) };
    const event = taskEvent("task.assigned", after, nodeId, at.now, { by: "resume" });
    return { after, changes: [{ kind: "task.moved", task: after }, ...sums(task, after), event] };
  }
  const message = `The worker ended without a result, and asked for the task again (restart ${task.restarts}).`;
  const ended = endAttempt(task, { kind: "offline", message, retry: true }, at);
  if (ended.after.status === "failed") return ended;
  const { after, changes } = assignTo(ended.after, nodeId, "next", at);
  return { after, changes: [...ended.changes, ...changes] };
}

/** What the node holds already, handed out by `next`. */
function startAgain(held: Task, nodeId: string, at: Moment): Task {
  return { ...held, ...handedOut(held, nodeId, at), startedAt: at.now, updatedAt: at.now };
}

/** A gift whose dispatch could not be answered is a gift again, unless it was handed out or taken back meanwhile. */
export function returnGift(task: Task | null, asked: HolderRequest): Accepted<null> {
  if (!task || task.status !== "assigned" || task.assignedNode !== asked.nodeId || isStale(task, asked))
    return accept(null);
  return accept(null, [{ kind: "task.moved", task: { ...task, startedAt: null } }]);
}

/** Returns the tasks that the changes of one part of a transaction may have made available to workers. */
export function offersOf(changes: readonly Notified[]): readonly Offer[] {
  const written: Task[] = [];
  const offers: Offer[] = [];
  for (const change of changes)
    if (change.kind === "task.created" || change.kind === "task.moved") written.push(change.task);
    else if (change.kind === "task.deleted" && change.frees !== undefined)
      offers.push({ kind: "key", key: change.frees });
  // One transaction may move a task twice.
  const after = written.length < 2 ? written : new Map(written.map((task) => [task.taskId, task])).values();
  for (const task of after) {
    const { status, scheduled, assignedNode, startedAt, countsFor } = task;
    // It ran under a limit, and runs no more: another task of the key may be handed out.
    if (countsFor !== null && status !== "assigned") offers.push({ kind: "key", key: countsFor });
    if (status === "open" && !scheduled && task.child !== null) offers.push({ kind: "some" });
    else if (status === "open" && !scheduled) offers.push({ kind: "open", lane: task.lane });
    else if (status === "assigned" && startedAt === null && assignedNode !== null)
      offers.push({ kind: "gift", nodeId: assignedNode });
  }
  return offers;
}

export type Completion = {
  readonly taskId: string;
  /** What was paid; null: nothing. */
  readonly receipt: Receipt | null;
  /** The reward, while the result waits for its review; null: the task has no review. */
  readonly luxHeldMicro: number | null;
  /** The node has a task limit, or used resources, and has one task less: the balancer may have one for it. */
  readonly madeRoom: boolean;
  /** Tasks wait for this one. */
  readonly hasDependents: boolean;
};

/**
 * `claimOnComplete`: an open task is taken for the node first. `keyId`: the name of the caller's key; null: the secret
 * that all share.
 */
export type CompleteRequest = UsageRequest & {
  readonly result: TaskResult;
  readonly claimOnComplete: boolean;
  readonly keyId?: string | null;
};

/**
 * Completes a task and pays its reward once. `claimOnComplete` (variant B, which has no claim) lets a registered node
 * complete an open task. A repeat with the same result succeeds and pays nothing more. A task that has cost more than it
 * may with this completes nevertheless: the result is there, and it is paid. The reward of a task with a review is held
 * until the verdict (review.ts).
 * @param asked `paid` is the entry that the task's `paidSeq` names: a repeat gets its receipt
 */
export function complete(
  task: Task | null,
  node: Node | null,
  asked: CompleteRequest & NewEntry & Claimant & { readonly paid: LedgerEntry | null },
  at: Moment,
  known: Known | null = null,
): Decision<Completion> {
  if (!task) return taskNotFound(asked.taskId);
  if (!node) return nodeNotFound(asked.nodeId);
  if (task.status === "failed") return finishedAlready(task);
  if (isStale(task, asked)) return staleLease(task);
  if (task.status !== "open" && task.assignedNode !== node.nodeId) return notYours(task, node);
  if (task.status === "completed") {
    if (!sameResult(task.result, asked.result)) return finishedAlready(task);
    assert(task.paidSeq === (asked.paid?.seq ?? null), "a repeat knows the entry that paid the task");
    return accept(completion(task, asked.paid, false));
  }
  const changes: Change[] = [];
  let before = task;
  if (task.status === "open") {
    if (!asked.claimOnComplete) return notAssigned(task, "Claim or assign it first.");
    if (!isReady(task, at.now)) return notReady(task);
    const excluded = notForNode(task, node);
    if (excluded) return excluded;
    before = { ...task, ...handedOut(task, node.nodeId, at) };
    changes.push(...noOtherCopy(task, node.nodeId));
    changes.push(taskEvent("task.assigned", before, node.nodeId, at.now, { by: "complete" }));
  }
  const unfit = task.child && unfitResult(task, task.child, asked);
  if (unfit) return unfit;
  const unpaid = isUnpaid(task, node, asked);
  const review = beginReview(before, asked.keyId ?? null, unpaid, at);
  const pay = () => (review ? holdReward(task, asked, at.now) : payReward(node, task, asked, at.now));
  const payment = unpaid ? accept(null) : pay();
  if (payment.kind === "rejected") return payment;
  const spent = spendWithin(before, node.nodeId, asked.usage ?? [], known, at);
  if ("code" in spent) return spent;
  const after = recharged({
    ...spent.held,
    status: "completed",
    scheduled: false, // its time has come, and perhaps the periodic work has not seen that
    result: asked.result,
    review,
    paidSeq: review ? null : (payment.answer?.seq ?? null),
    ...NO_LEASE,
    checkpointBytes: 0,
    questions: settledQuestions(task),
    hasLeases: false,
    updatedAt: at.now,
  });
  changes.push(...spent.saved, movedFrom(task, after, at.now));
  changes.push(...withoutCheckpoint(task), ...withoutLeases(task, after));
  changes.push(...closedQuestions(task, at.now));
  if (unpaid) changes.push(...unpaidCopy(task));
  changes.push(...tallies(task, after, at.now, payment.answer?.amountMicro ?? 0));
  if (!review) changes.push(...settlement(after, "completed"));
  changes.push(taskEvent("task.completed", after, node.nodeId, at.now, {}));
  if (review) changes.push(...reviewRequested(after, review, at));
  changes.push(...payment.changes);
  const isBounded = node.maxTasks !== null || task.requires !== null;
  return accept(completion(after, payment.answer, isBounded), changes);
}

// ---- Requests of the node that holds the task

/** `epoch` is that of the lease, or null if the request names none. */
export type HolderRequest = {
  readonly taskId: string;
  readonly nodeId: string;
  readonly epoch: number | null;
};

/** A request with which a worker may report what it has used. */
export type UsageRequest = HolderRequest & {
  readonly usage?: readonly UsageReport[];
  /** Whether the key of the request is bound to the node. */
  readonly isBound?: boolean;
};

/** A request with which a worker may leave a checkpoint, the text of a JSON value, and report its usage. */
export type CheckpointRequest = UsageRequest & { readonly checkpoint?: string | null };

/** A request that gives a task back. `holdMs`: also holds its limit key so long (limit.ts); null: it does not. */
export type ReturnRequest = CheckpointRequest & { readonly holdMs?: number | null };

/** Reopens a task; its attempts stay. The balancer does not assign it to the same node at once. */
export function release(
  task: Task | null,
  node: Node | null,
  candidates: readonly Candidate[],
  asked: ReturnRequest & { reason: string | null },
  at: Moment,
  known: Known | null = null,
): Decision<Task> {
  const found = heldBy(task, node, asked);
  if ("code" in found) return found;
  const left = leave(found, asked, known, at);
  if ("code" in left) return left;
  const { held, saved } = left;
  if (isOverspent(held)) return endOverspent(left, null, at);
  const resting = rest(held, asked, at);
  if ("code" in resting) return resting;
  const freed = move(held, { ...returned(held), revokedFrom: held.assignedNode }, at.now);
  const data = { reason: isSealed(held) ? null : asked.reason }; // the others could read it
  const event = taskEvent("task.released", freed.after, held.assignedNode, at.now, data);
  const changes = [...saved, ...resting.changes, ...freed.changes, event];
  return grown(task, assignIfBalanced(freed.after, candidates, changes, afterUsage(resting.at, saved)));
}

/** Ends an attempt without a result. Without `retry` it was the last one. */
export function fail(
  task: Task | null,
  node: Node | null,
  candidates: readonly Candidate[],
  asked: ReturnRequest & { error: string; retry: boolean },
  at: Moment,
  known: Known | null = null,
): Decision<Task> {
  const found = heldBy(task, node, asked);
  if ("code" in found) return found;
  const left = leave(found, asked, known, at);
  if ("code" in left) return left;
  const { held, saved } = left;
  if (isOverspent(held)) return endOverspent(left, asked.error, at);
  const resting = rest(held, asked, at);
  if ("code" in resting) return resting;
  const ended = endAttempt(held, { kind: "failed", message: asked.error, retry: asked.retry }, at);
  const changes = [...saved, ...resting.changes, ...ended.changes];
  return grown(task, assignIfBalanced(ended.after, candidates, changes, afterUsage(resting.at, saved)));
}

/** Holds the limit key of a task that is given back; `at`: the moment with the gate after that. */
function rest(
  task: Task,
  { holdMs = null, nodeId }: ReturnRequest,
  at: Moment,
): { readonly at: Moment; readonly changes: readonly Change[] } | Rejected {
  if (holdMs === null || !at.gate) return { at, changes: [] };
  const { taskId } = task;
  const held = hold(at.gate, { key: limitKeyOf(task), forMs: holdMs, nodeId, taskId }, at.now);
  if (held.kind === "rejected") return held;
  const others = at.gate.limits.filter(({ key }) => key !== held.answer.key);
  const gate = gateAt({ ...at.gate, limits: [...others, held.answer] }, at.now);
  return { at: { ...at, gate }, changes: held.changes };
}

/**
 * Restarts the lease of a task that has a timeout, at most to the end of its `maxRunMs`. A note becomes its `progress`.
 * A task that has cost more than it may fails.
 */
export function extend(
  task: Task | null,
  node: Node | null,
  asked: CheckpointRequest & { note: string | null },
  at: Moment,
  known: Known | null = null,
): Decision<Task> {
  const before = heldBy(task, node, asked);
  if ("code" in before) return before;
  const left = leave(before, asked, known, at);
  if ("code" in left) return left;
  const { held, saved } = left;
  if (isOverspent(held)) return endOverspent(left, null, at);
  if (asked.note === null && saved.length === 0 && before.timeoutMs === null) return accept(before);
  const note = isSealed(held) ? null : asked.note; // the others could read it
  const after = recharged({
    ...held,
    leaseUntil: leaseFrom(held, held.runUntil, at),
    progress: note ?? held.progress,
    updatedAt: asked.note === null ? held.updatedAt : at.now,
  });
  const changes: Change[] = [...saved, { kind: "task.moved", task: after }, ...sums(before, after)];
  if (note !== null) changes.push(taskEvent("task.progress", after, asked.nodeId, at.now, { note }));
  return grown(task, accept(after, changes));
}

/** What a worker leaves: its usage, and a checkpoint, of which the last one counts: it replaces an earlier one. */
function leave(
  task: Task,
  { checkpoint: data = null, nodeId, usage = [] }: CheckpointRequest,
  known: Known | null,
  at: Moment,
): Spent | Rejected {
  const spent = spendWithin(task, nodeId, usage, known, at);
  if (data === null || "code" in spent) return spent;
  const checkpoint: Checkpoint = { data, epoch: task.epoch, nodeId, at: at.now };
  return {
    held: { ...spent.held, checkpointBytes: Buffer.byteLength(data) },
    saved: [...spent.saved, { kind: "checkpoint.saved", taskId: task.taskId, checkpoint }],
  };
}

/** Ends a task that has cost more than it may. `error`: of the worker, if it failed anyway. */
function endOverspent({ held, saved }: Spent, error: string | null, at: Moment): Accepted<Task> {
  const message = overspentMessage(held) + (error === null ? "" : ` The worker's error: ${error}`);
  const ended = endAttempt(held, { kind: "budget", message, retry: false }, at);
  return accept(ended.after, [...saved, ...ended.changes]);
}

function withoutUsage({ taskId, spent }: Task): readonly Change[] {
  return spent === null ? [] : [{ kind: "usage.removed", taskId }];
}

function withoutCheckpoint({ taskId, checkpointBytes }: Task): readonly Change[] {
  return checkpointBytes === 0 ? [] : [{ kind: "checkpoint.removed", taskId }];
}

/** All that its attempts have sent. */
function withoutOutput({ taskId, hasOutput, epoch: upTo }: Task): readonly Change[] {
  if (!hasOutput) return [];
  const kinds = ["output.refunded", "output.removed", "output.erased"] as const;
  return kinds.map((kind): Change => ({ kind, taskId, upTo }));
}

/** Whether it waits for the answer to a question. */
export function isAsking({ questions }: Pick<Task, "questions">): boolean {
  return questions !== null && questions.state !== "settled";
}

/** What an ended task knows of its questions: none is open any more. */
function settledQuestions({ questions }: Task): TaskQuestions | null {
  return questions && { ...questions, state: "settled" };
}

/** Nobody can answer the open questions of an ended task. */
function closedQuestions(task: Task, now: number): readonly Change[] {
  return isAsking(task) ? [{ kind: "questions.closed", taskId: task.taskId, at: now }] : [];
}

/** The leases for a task end with the attempt for which its holder has taken them. */
function withoutLeases(before: Task, after: Task | null): readonly Change[] {
  const { taskId } = before;
  if (!before.hasLeases || after?.hasLeases === true) return [];
  const released: Change = { kind: "leases.released", taskId };
  return after === null ? [released] : [released, { kind: "task.leased", taskId, hasLeases: false }];
}

/** The task, if this node holds it and names its current epoch or none. */
export function heldBy(task: Task | null, node: Node | null, asked: HolderRequest): Task | Rejected {
  if (!task) return taskNotFound(asked.taskId);
  if (!node) return nodeNotFound(asked.nodeId);
  if (task.status === "failed") return finishedAlready(task);
  if (isStale(task, asked)) return staleLease(task);
  if (task.status === "open") return notAssigned(task, "Stop working on it, or claim it first.");
  if (task.assignedNode !== node.nodeId) return notYours(task, node);
  return task.status === "completed" ? finishedAlready(task) : task;
}

function isStale(task: Task, asked: HolderRequest): boolean {
  return asked.epoch !== null && asked.epoch !== task.epoch;
}

// ---- Requests of others

/**
 * Takes an assigned task from its node, or gives it to another. Revoking to the node that holds it changes nothing.
 * If the balancer may assign the freed task, it goes to the best of `candidates`.
 */
export function revoke(
  task: Task | null,
  target: Node | null,
  candidates: readonly Candidate[],
  asked: { taskId: string; nodeId: string | null; reason: string | null },
  at: Moment,
): Decision<Task> {
  if (!task) return taskNotFound(asked.taskId);
  if (asked.nodeId !== null && !target) return nodeNotFound(asked.nodeId);
  if (isFinished(task)) return finishedAlready(task);
  if (task.status === "open" || task.assignedNode === null) {
    return notAssigned(task, "Give it to one with POST /api/v1/task/assign.");
  }
  if (target && target.nodeId === task.assignedNode) return accept(task);
  const asFreed = at.gate ? { ...at, gate: gateWithout(at.gate, task, at.now) } : at;
  const refused = target && (refusesTasks(target) ?? keptBack(task, target, asFreed));
  if (refused) return refused;
  const from = task.assignedNode;
  const freed = move(task, { ...returned(task), revokedFrom: from }, at.now);
  const changes = [...freed.changes];
  changes.push(taskEvent("task.revoked", freed.after, from, at.now, { reason: asked.reason }));
  if (!target) return assignIfBalanced(freed.after, candidates, changes, asFreed);
  const given = assignTo(freed.after, target.nodeId, "revoke", asFreed);
  return accept(given.after, [...changes, ...given.changes]);
}

/** `boundTo`: the node of a bound key, which may cancel and retry only tasks that it created; null: any task. */
export type CreatorRequest = { readonly taskId: string; readonly boundTo: string | null };

/**
 * `keepCheckpoint`: whether the next attempt gets the checkpoint of those before it (default true). `maxCostMicro`:
 * what the task may cost from now on, all its attempts together; null: as before.
 */
export type RetryRequest = CreatorRequest & {
  readonly keepCheckpoint?: boolean;
  readonly maxCostMicro?: number | null;
};

/** Ends an unfinished task. `node` is the one that the caller names, if it names one. */
export function cancel(
  task: Task | null,
  node: Node | null,
  asked: CreatorRequest & { nodeId: string | null; reason: string | null },
  at: Moment,
): Decision<Task> {
  if (!task) return taskNotFound(asked.taskId);
  if (asked.nodeId !== null && !node) return nodeNotFound(asked.nodeId);
  if (!mayDecide(task, asked)) return notTheirCreation(task, asked);
  if (isFinished(task)) return finishedAlready(task);
  const nodeId = asked.nodeId ?? asked.boundTo;
  const failure: Failure = { kind: "cancelled", message: asked.reason, nodeId, at: at.now };
  const { after, changes } = end(task, failure, at);
  return accept(after, changes);
}

type PatchName = FieldsWith<{ readonly key: string; readonly patch: string }>;
/** The fields of a task that can change while it waits. Those that are left out stay as they are. */
export type TaskPatch = Partial<Pick<Task, TaskFields[PatchName]["key"]>>;

/** `mayLower`: whether the reward may become less: only an administrator takes back what was promised. */
export type UpdateRequest = CreatorRequest & { readonly patch: TaskPatch; readonly mayLower: boolean };

/** Changes a task that nobody holds. If it is ready then and the balancer may assign it, it goes to a candidate. */
export function update(
  task: Task | null,
  candidates: readonly Candidate[],
  asked: UpdateRequest,
  at: Moment,
): Decision<Task> {
  if (!task) return taskNotFound(asked.taskId);
  if (!mayDecide(task, asked)) return notTheirCreation(task, asked);
  if (isFinished(task)) return finishedAlready(task);
  if (task.status === "assigned") return heldAlready(task);
  const { patch, mayLower } = asked;
  if (!mayLower && (patch.luxRewardMicro ?? Infinity) < task.luxRewardMicro) return lowerReward(task);
  if (patch.limitKey && asked.boundTo !== null && isForOther(task, asked.boundTo)) {
    const detail = `Task ${task.taskId} waits for another node, and gets no limit key: each would be one more line at that node.`;
    return reject("gifts_limit", detail);
  }
  const changed = PATCH_FIELDS.filter(
    ({ key }) => patch[key] !== undefined && !Bun.deepEquals(patch[key], task[key]),
  ).map(({ name }) => name);
  if (changed.length === 0) return accept(task); // a repeat changes nothing
  const limitKey = patch.limitKey === undefined ? task.limitKey : patch.limitKey;
  const lane = laneOf({ ...task, limitKey }, at.isFair ?? false);
  // Only another key moves it to another lane: it may have been created before dispatches were fair.
  const inLane = limitKey === task.limitKey ? patch : { ...patch, lane };
  const { after, changes } = move(task, inLane, at.now);
  const event = taskEvent("task.updated", after, task.creatorNode, at.now, { changed: changed.join(",") });
  const raisedMicro = Math.max(0, after.luxRewardMicro - task.luxRewardMicro);
  const edited: Change = { kind: "task.edited", task: after, raisedMicro };
  return assignIfBalanced(after, candidates, [edited, ...changes, event], at);
}

export const PATCH_FIELDS = Object.entries<TaskField>(TASK_FIELDS)
  .filter(([, { patch }]) => patch !== undefined)
  .map(([name, { key, kind, patch }]) => ({
    // As their types say.
    name: name as PatchName,
    key: key as keyof TaskPatch,
    kind,
    canClear: patch === "clearable",
  }));

/**
 * Opens a failed task again, as if it had not been tried; an `expires_at` that has passed is gone. It waits for what it
 * depends on as a new task does, and fails at once if that has failed. The tasks that depend on it, and that its failure
 * has not reached yet (settle()), go on waiting for it.
 */
export function retry(
  task: Task | null,
  dependencies: readonly Dependency[],
  candidates: readonly Candidate[],
  asked: RetryRequest,
  at: Moment,
): Decision<Task> {
  if (!task) return taskNotFound(asked.taskId);
  if (!mayDecide(task, asked)) return notTheirCreation(task, asked);
  if (task.status !== "failed") return notFailed(task);
  const maxCostMicro = asked.maxCostMicro ?? task.maxCostMicro;
  if (isOverspent({ ...task, maxCostMicro })) return overspent(task);
  const removed = (asked.keepCheckpoint ?? true) ? [] : withoutCheckpoint(task);
  const { checkpointBytes } = removed.length === 0 ? task : { checkpointBytes: 0 };
  const again: Task = { ...task, checkpointBytes, maxCostMicro };
  const { after, changes } = reopen(again, byId(dependencies), at);
  return assignIfBalanced(after, candidates, [...changes, ...removed], at);
}

/** Failed -> open; or failed again at once, if one of its dependencies has failed. */
function reopen(
  task: Task,
  dependencies: ReadonlyMap<string, Dependency>,
  at: Moment,
  because: EventData = {},
): Step {
  const expiresAt = task.expiresAt !== null && task.expiresAt <= at.now ? null : task.expiresAt;
  const uncounted = { attempts: 0, failures: 0, restarts: 0 };
  const { quorum } = task;
  const newRound: Quorum | null = quorum && {
    ...quorum,
    ...{ state: "pending", round: quorum.round + 1, copies: [], agreed: [] },
  };
  const again: Task = { ...task, ...returned(task), ...uncounted, expiresAt, quorum: newRound };
  const wait = waitFor(again, dependencies, at);
  const { failure } = wait.patch;
  const failedAgain = failure ? failedBy(task, failure) : {};
  const { after, changes } = move(task, { ...again, ...wait.patch, ...failedAgain }, at.now);
  const wasBroken = task.failure?.kind === "dependency" && !failure;
  return {
    after,
    changes: [
      ...changes,
      ...wait.changes,
      ...(wasBroken ? [broken(task, null)] : []),
      ...(newRound ? [quorate(task.taskId, newRound)] : []),
      taskEvent("task.retried", after, task.creatorNode, at.now, because),
      ...(failure ? [...settlement(after, "failed"), failedEvent(after, null, failure)] : forget(task)),
    ],
  };
}

/** The end of a task that is open again must not reach those dependents that have not heard of it. */
function forget({ taskId, hasDependents }: Task): readonly Change[] {
  return hasDependents ? [{ kind: "settlement.removed", taskId }] : [];
}

/** The outcome of a retry. `opened`: how many dependents it opened again too. */
export type Retried = { readonly task: Task; readonly opened: number };

/**
 * As retry(), and opens again what failed only because of the task, that is, which depends on nothing else that has
 * failed. A task that is not failed any more stays as it is: a repeat, or a retry without its dependents, came before.
 * @param dependents what failed through the task, oldest first: so what they depend on comes before them
 * @param dependencies those of the task and of all `dependents`
 */
export function retryWithDependents(
  task: Task | null,
  dependents: readonly Task[],
  dependencies: readonly Dependency[],
  candidates: readonly Candidate[],
  asked: RetryRequest,
  at: Moment,
): Decision<Retried> {
  if (!task) return taskNotFound(asked.taskId);
  if (!mayDecide(task, asked)) return notTheirCreation(task, asked);
  const isFailed = task.status === "failed";
  if (!isFailed && dependents.length === 0) return notFailed(task);
  const known = new Map(byId(dependencies));
  const first = isFailed ? retry(task, dependencies, candidates, asked, at) : accept(task);
  if (first.kind === "rejected") return first;
  const changes: Change[] = [...first.changes];
  const remember = (task: Task, brokenBy: string | null): void =>
    void known.set(task.taskId, asDependency(task, brokenBy));
  remember(first.answer, null);
  if (first.answer.status === "failed") return accept({ task: first.answer, opened: 0 }, changes);
  let opened = 0;
  for (const dependent of dependents) {
    if (dependent.failure?.kind !== "dependency" || dependent.status !== "failed") continue;
    if (!mayDecide(dependent, asked)) continue;
    const cause = firstFailure(dependent, known);
    if (cause !== null) {
      changes.push(broken(dependent, cause.brokenBy));
      remember(dependent, cause.brokenBy);
      continue;
    }
    const step = reopen(dependent, known, at, { retried_with: task.taskId });
    changes.push(...step.changes);
    remember(step.after, null);
    opened++;
  }
  return accept({ task: first.answer, opened }, changes);
}

/** Who cancels or retries the tasks of a group. `boundTo`: as in CreatorRequest. */
export type GroupRequest = { readonly group: string; readonly boundTo: string | null };

/** Ends unfinished tasks of a group, those first that depend on others. `node` is the one that the caller names. */
export function cancelGroup(
  tasks: readonly Task[],
  node: Node | null,
  asked: GroupRequest & { nodeId: string | null; reason: string | null },
  at: Moment,
): Decision<readonly Task[]> {
  if (asked.nodeId !== null && !node) return nodeNotFound(asked.nodeId);
  const nodeId = asked.nodeId ?? asked.boundTo;
  return each(tasks, (task) =>
    end(task, { kind: "cancelled", message: asked.reason, nodeId, at: at.now }, at),
  );
}

/**
 * Opens failed tasks of a group again, as retry() does. One whose dependencies have failed, or that has cost more than it
 * may, stays as it is.
 * @param tasks oldest first: so what they depend on comes before them
 * @param dependencies those of all of them
 */
export function retryGroup(
  tasks: readonly Task[],
  dependencies: readonly Dependency[],
  at: Moment,
): Accepted<readonly Task[]> {
  const known = new Map(byId(dependencies));
  const opened: Task[] = [];
  const changes: Change[] = [];
  for (const task of tasks) {
    if (isOverspent(task) || firstFailure(task, known) !== null) continue;
    const step = reopen(task, known, at);
    known.set(step.after.taskId, asDependency(step.after, null));
    opened.push(step.after);
    changes.push(...step.changes);
  }
  return accept(opened, changes);
}

/**
 * Deletes a task in any state. LUX that was paid for it stays paid. `entry`: for what is held of its reward; it may be
 * null for a task that is not in review.
 */
export function remove(
  task: Task | null,
  taskId: string,
  now: number,
  entry: NewEntry | null = null,
): Decision<Task> {
  if (!task) return taskNotFound(taskId);
  const held = isInReview(task)
    ? returnHeld(asHeld(task), must(entry, "what is held is returned"), now)
    : accept(null);
  if (held.kind === "rejected") return held;
  return accept(task, [
    ...held.changes,
    ...withoutTask(task),
    ...withoutLeases(task, null),
    ...tallies(task, null, now),
    ...(task.unmet > 0 ? [noLongerWaits(task)] : []),
    ...(hasEnded(task) ? [] : settlement(task, "deleted")),
    ...(task.review === null && task.quorum === null ? [] : [touchedFamily(task.taskId)]),
    taskEvent("task.deleted", task, task.assignedNode, now, { title: task.title }),
  ]);
}

/** The row of a task, and the rows of other tables that belong to it. */
function withoutTask(task: Task): readonly Change[] {
  const { taskId, status, countsFor } = task;
  const isFreeing = status === "assigned" && countsFor !== null;
  return [
    { kind: "task.deleted", taskId, ...(isFreeing && { frees: countsFor }) },
    ...withoutCheckpoint(task),
    ...withoutOutput(task),
    ...(task.questions === null ? [] : [{ kind: "questions.removed", taskId } as const]),
    ...withoutUsage(task),
  ];
}

/** Whether a task has ended, and its retention is over. `before`: ended before it; null: tasks are kept forever. */
export function isPastRetention(task: Task, before: number | null, now: number): boolean {
  if (!hasEnded(task) || isSealed(task)) return false;
  if (task.uniqueUntil !== null && task.uniqueUntil > now) return false; // it still holds its key
  const until = retainUntil(task);
  return until === null ? before !== null && task.updatedAt < before : until <= now;
}

/** When the retention of its own ends; null: it has none, or has not ended. */
export function retainUntil(task: Task): number | null {
  return task.retainMs !== null && hasEnded(task) ? task.updatedAt + task.retainMs : null;
}

/**
 * Deletes a finished task whose retention is over. Unlike one that an administrator deletes, it stays among the completed
 * tasks of its node.
 */
export function discard(task: Task, now: number): readonly Change[] {
  const { status, title } = task;
  const minus = (one: TaskStatus): number => -Number(status === one);
  return [
    ...withoutTask(task),
    { kind: "tasks.tallied", open: 0, assigned: 0, completed: minus("completed"), failed: minus("failed") },
    ...sums(task, null),
    taskEvent("task.deleted", task, null, now, { title, reason: "retention" }),
  ];
}

export function mayDecide(task: Task, { boundTo }: CreatorRequest): boolean {
  return boundTo === null || task.creatorNode === boundTo;
}

// ---- Steps of the periodic work

/** Reopens the unfinished tasks of offline nodes, or ends those whose attempts are used up. */
export function requeue(tasks: readonly Task[], at: Moment): Accepted<readonly Task[]> {
  return each(tasks, (task) =>
    endAttempt(task, { kind: "offline", message: "The node went offline.", retry: true }, at),
  );
}

/** Takes back the tasks whose lease has run out. */
export function timeOut(tasks: readonly Task[], at: Moment): Accepted<readonly Task[]> {
  return each(tasks, (task) =>
    endAttempt(task, { kind: "timed_out", message: whyTimedOut(task), retry: true }, at),
  );
}

function whyTimedOut({ timeoutMs, maxRunMs, leaseUntil, runUntil }: Task): string {
  if (maxRunMs !== null && leaseUntil === runUntil)
    return `The attempt was not completed within its max_run_s of ${maxRunMs / SECOND_MS} s.`;
  const limitMs = must(timeoutMs, "a task with a lease has timeout_s or max_run_s");
  return `The node neither completed nor extended it within ${limitMs / SECOND_MS} s.`;
}

/** When the clock changes a task next: it starts, if it waits for nothing else, or expires; null: never. */
export function dueAt({ status, scheduled, unmet, notBefore, expiresAt }: Task): number | null {
  const isUnfinished = status === "open" || status === "assigned";
  const startsAt = scheduled && unmet === 0 ? notBefore : null;
  const endsAt = isUnfinished ? expiresAt : null;
  return startsAt === null || endsAt === null ? (startsAt ?? endsAt) : Math.min(startsAt, endsAt);
}

/** Ends the tasks whose `expiresAt` has passed, and puts the others, whose time has come, into the backlog. */
export function expireOrStart(tasks: readonly Task[], at: Moment): Accepted<readonly Task[]> {
  return each(tasks, (task) => {
    if (task.expiresAt !== null && task.expiresAt <= at.now) {
      const message = "It was not completed in time.";
      return end(task, { kind: "expired", message, nodeId: task.assignedNode, at: at.now }, at);
    }
    // Of a quorum the copies are created now, and its time must not come again.
    return move(task, task.quorum ? { notBefore: null } : {}, at.now);
  });
}

/**
 * Updates tasks when one that they depend on has ended: one dependency less, or failed (Task.onDependency). `root`: the
 * task at the root of that failure (Dependency.brokenBy).
 */
export function settle(
  tasks: readonly Task[],
  dependsOn: string,
  outcome: Outcome,
  at: Moment,
  root = dependsOn,
): Accepted<readonly Task[]> {
  return each(tasks, (task) => {
    if (outcome !== "completed" && task.onDependency === "fail") {
      const { after, changes } = end(task, dependencyFailure(dependsOn, outcome, at.now), at);
      return { after, changes: [...changes, broken(task, root)] };
    }
    const { after, changes } = move(task, { unmet: task.unmet - 1 }, at.now);
    return { after, changes: [...changes, { kind: "dependency.met", taskId: task.taskId, dependsOn }] };
  });
}

/** Reopens unfinished tasks of a node that leaves or is deleted; their attempts stay. */
export function releaseAll(tasks: readonly Task[], reason: string, at: Moment): Accepted<readonly Task[]> {
  return each(tasks, (task) => {
    const { after, changes } = move(task, returned(task), at.now);
    const event = taskEvent("task.released", after, task.assignedNode, at.now, { reason });
    return { after, changes: [...changes, event] };
  });
}

export type Step = { readonly after: Task; readonly changes: readonly Change[] };

function each(tasks: readonly Task[], step: (task: Task) => Step): Accepted<readonly Task[]> {
  const steps = tasks.map(step);
  return accept(
    steps.map(({ after }) => after),
    steps.flatMap(({ changes }) => changes),
  );
}

// ---- The steps

/** Open -> assigned. The caller has checked that the node may have the task. */
export function assignTo(task: Task, nodeId: string, by: AssignedBy, at: Moment): Step {
  const startedAt = by === "claim" || by === "next" ? at.now : null;
  const { after, changes } = move(task, { ...handedOut(task, nodeId, at), startedAt }, at.now);
  const counted = countedFor(at.gate, task, at.now).changes;
  const event = taskEvent("task.assigned", after, nodeId, at.now, { by });
  return { after, changes: [...changes, ...counted, ...noOtherCopy(task, nodeId), event] };
}

/** The node to which the balancer assigns the task now; null: none, or it may not assign it. */
function pickFor(task: Task, candidates: readonly Candidate[], at: Moment): Candidate | null {
  if (!task.balanced || !isReady(task, at.now)) return null;
  const closed = at.gate?.closed ?? null;
  if (closed === null) return pick(task, candidates);
  return pick(
    task,
    candidates.filter(({ nodeId }) => !isClosed(closed, task, nodeId)),
  );
}

/** Open -> assigned to the best of `candidates`, if the balancer may assign the task. */
export function assignIfBalanced(
  task: Task,
  candidates: readonly Candidate[],
  before: readonly Change[],
  at: Moment,
): Accepted<Task> {
  const node = pickFor(task, candidates, at);
  if (!node) return accept(task, before);
  const { after, changes } = assignTo(task, node.nodeId, "balancer", at);
  return accept(after, [...before, ...changes]);
}

const ATTEMPT_EVENTS = {
  failed: "task.attempt_failed",
  timed_out: "task.timed_out",
  offline: "task.requeued",
  budget: "task.attempt_failed",
  rejected: "task.review_rejected",
} as const;

type EndOfAttempt = {
  readonly kind: keyof typeof ATTEMPT_EVENTS;
  readonly message: string;
  /** Whether another attempt is allowed. */
  readonly retry: boolean;
  /** More of its event. */
  readonly data?: EventData;
};

/** Assigned -> open after a backoff, or failed when it was the last attempt. */
export function endAttempt(task: Task, { kind, message, retry, data: more }: EndOfAttempt, at: Moment): Step {
  const nodeId = task.assignedNode;
  const attempts = task.attempts + 1;
  const failures = task.failures + Number(kind !== "offline");
  const failure: Failure = { kind, message, nodeId, at: at.now };
  const counted: Task = { ...task, attempts, failures };
  const error = isWorkersText(kind) ? { error: shownFailure({ ...task, failure })?.message ?? null } : {};
  const data = { attempts, ...error, ...more };
  const event = taskEvent(ATTEMPT_EVENTS[kind], task, nodeId, at.now, data);
  if (!retry || isUsedUp(counted)) return end(counted, failure, at, [event]);
  const notBefore = kind === "offline" ? task.notBefore : at.now + backoffOf(counted);
  const { after, changes } = move(
    task,
    { ...returned(counted), attempts, failures, ...failedBy(task, failure), notBefore },
    at.now,
  );
  return { after, changes: [...changes, event] };
}

const isAttempt = ({ kind }: Failure): boolean => kind in ATTEMPT_EVENTS;

/** The last FAILED_ATTEMPTS_KEPT failed attempts of a task, oldest first: the next worker can learn from them. */
export function failedAttempts({
  failure,
  earlierFailures,
}: Pick<Task, "failure" | "earlierFailures">): readonly Failure[] {
  return failure !== null && isAttempt(failure) ? [...earlierFailures, failure] : earlierFailures;
}

/** The fields that a new failure sets. */
function failedBy(task: Task, failure: Failure): Pick<Task, "failure" | "earlierFailures"> {
  const kept = isAttempt(failure) ? FAILED_ATTEMPTS_KEPT - 1 : FAILED_ATTEMPTS_KEPT;
  return { failure, earlierFailures: failedAttempts(task).slice(-kept) };
}

/** Without `maxAttempts`, nodes that go offline never end a task. */
function isUsedUp({ maxAttempts, attempts, failures }: Task): boolean {
  return maxAttempts === null ? failures >= FAILURES_DEFAULT_MAX : attempts >= maxAttempts;
}

/** Doubles with each attempt. */
function backoffOf({ backoffMs, attempts }: Task): number {
  const doublings = Math.min(attempts - 1, 30); // a number that stays finite
  return Math.min(backoffMs * 2 ** doublings, BACKOFF_MAX_SECONDS * SECOND_MS);
}

/** The failure whose backoff the start time of an open task is; null: somebody has chosen its start time. */
export function failureBackingOff(task: Task): Failure | null {
  const { failure, notBefore } = task;
  return failure !== null && notBefore === failure.at + backoffOf(task) ? shownFailure(task) : null;
}

/** The first line of a text that is not blank, cut to SUMMARY_LINE_MAX_CHARS. */
export function summaryLine(text: string | null): string | null {
  const line = text === null ? null : (/\S.*/.exec(text)?.[0].trimEnd() ?? "");
  if (line === null || line.length <= SUMMARY_LINE_MAX_CHARS) return line;
  return `${line.slice(0, SUMMARY_LINE_MAX_CHARS - 1).toWellFormed()}…`;
}

/** Ends an unfinished task because it is not needed any more. */
export function endFor(task: Task, message: string, at: Moment): Step {
  return endWith(task, { kind: "cancelled", message, nodeId: null, at: at.now }, at);
}

export function endWith(task: Task, failure: Failure, at: Moment): Step {
  return end(task, failure, at);
}

/** Unfinished -> failed. `before`: the event of the attempt that ended it. */
function end(task: Task, failure: Failure, at: Moment, before: readonly Change[] = []): Step {
  const failed = { status: "failed", assignedNode: null, unmet: 0 } as const;
  const patch = {
    ...NO_LEASE,
    ...failed,
    ...failedBy(task, failure),
    questions: settledQuestions(task),
  };
  const { after, changes } = move(task, patch, at.now);
  return {
    after,
    changes: [
      ...changes,
      ...(task.unmet > 0 ? [noLongerWaits(task)] : []),
      ...closedQuestions(task, at.now),
      ...settlement(task, "failed"),
      ...before,
      failedEvent(after, task.assignedNode, failure),
    ],
  };
}

/** The fields that a dispatch sets. */
function handedOut(task: Task, nodeId: string, at: Moment) {
  return {
    status: "assigned",
    assignedNode: nodeId,
    revokedFrom: null,
    epoch: task.epoch + 1,
    countsFor: countedFor(at.gate, task, at.now).countsFor,
    ...newLease(task, at),
  } as const;
}

/** The fields that a return to open sets. */
export function returned(task: Task) {
  return {
    ...NO_LEASE,
    status: "open",
    assignedNode: null,
    startedAt: null,
    progress: null,
    epoch: task.epoch + 1,
  } as const;
}

export const NO_LEASE = { leaseUntil: null, runUntil: null } as const;

type Leased = Pick<Task, "timeoutMs" | "maxRunMs" | "questions">;

/** The lease of a dispatch that begins now. The clocks stand still while a question is open. */
export function newLease(task: Leased, at: Moment): Pick<Task, "leaseUntil" | "runUntil"> {
  if (task.questions?.state === "open") return NO_LEASE;
  const runUntil = task.maxRunMs === null ? null : at.steady + task.maxRunMs;
  return { runUntil, leaseUntil: leaseFrom(task, runUntil, at) };
}

/** The end of a lease that begins now: after the timeout, and never after the attempt may end (`runUntil`). */
function leaseFrom({ timeoutMs, questions }: Leased, runUntil: number | null, at: Moment): number | null {
  const { steady } = at;
  if (questions?.state === "open") return null;
  if (timeoutMs === null) return runUntil;
  return runUntil === null ? steady + timeoutMs : Math.min(steady + timeoutMs, runUntil);
}

function asDependency(task: Task, brokenBy: string | null): Dependency {
  const { taskId, status, hasDependents } = task;
  return { taskId, status, hasDependents, inReview: isInReview(task), brokenBy };
}

function byId(dependencies: readonly Dependency[]): ReadonlyMap<string, Dependency> {
  return new Map(dependencies.map((dependency) => [dependency.taskId, dependency]));
}

/** The first of a task's dependencies that has failed or is gone, and the task at the root of that; null: none. */
function firstFailure(
  { dependsOn, onDependency }: Pick<Task, "dependsOn" | "onDependency">,
  dependencies: ReadonlyMap<string, Dependency>,
): { readonly taskId: string; readonly outcome: Outcome; readonly brokenBy: string } | null {
  if (onDependency === "run") return null;
  for (const taskId of dependsOn) {
    const dependency = dependencies.get(taskId);
    if (!dependency) return { taskId, outcome: "deleted", brokenBy: taskId };
    if (dependency.status === "failed")
      return { taskId, outcome: "failed", brokenBy: dependency.brokenBy ?? taskId };
  }
  return null;
}

/**
 * Waits for those of its dependencies that have not ended; fails when one of them has failed or is gone, unless it runs
 * however they end.
 */
function waitFor(
  task: Pick<Task, "taskId" | "dependsOn" | "onDependency" | "child">,
  dependencies: ReadonlyMap<string, Dependency>,
  at: Moment,
): { readonly patch: Partial<Task>; readonly changes: readonly Change[] } {
  const cause = firstFailure(task, dependencies);
  if (cause !== null) {
    const failure = dependencyFailure(cause.taskId, cause.outcome, at.now);
    return { patch: { status: "failed", failure }, changes: [broken(task, cause.brokenBy)] };
  }
  const unfinished = task.dependsOn.flatMap((taskId) => {
    const dependency = dependencies.get(taskId);
    if (!dependency || task.child?.of === taskId) return []; // its result is what the child checks
    return !isFinished(dependency) || dependency.inReview ? [dependency] : [];
  });
  const changes: Change[] = [];
  if (unfinished.length > 0) {
    const dependsOn = unfinished.map(({ taskId }) => taskId);
    changes.push({ kind: "dependencies.added", taskId: task.taskId, dependsOn });
  }
  // Also of a completed one: its result is an input, so its retention waits for this task.
  for (const dependency of task.dependsOn.map((taskId) => dependencies.get(taskId)))
    if (dependency && !dependency.hasDependents)
      changes.push({ kind: "task.depended", taskId: dependency.taskId });
  return { patch: { unmet: unfinished.length }, changes };
}

function broken({ taskId }: Pick<Task, "taskId">, brokenBy: string | null): Change {
  return { kind: "task.broken", taskId, brokenBy };
}

function dependencyFailure(dependsOn: string, outcome: Outcome, at: number): Failure {
  const what = outcome === "failed" ? "failed" : "was deleted";
  return {
    kind: "dependency",
    message: `Task ${dependsOn}, on which it depends, ${what}.`,
    nodeId: null,
    at,
  };
}

function noLongerWaits({ taskId, unmet }: Task): Change {
  return { kind: "dependencies.dropped", taskId, count: unmet };
}

/** Asks the periodic work to update the tasks that depend on this one. */
export function settlement({ taskId, hasDependents }: Task, outcome: Outcome): readonly Change[] {
  return hasDependents ? [{ kind: "dependency.settled", taskId, outcome }] : [];
}

function withSchedule(task: Task, now: number): Task {
  const scheduled = task.status === "open" && !isReady(task, now);
  return scheduled === task.scheduled ? task : { ...task, scheduled };
}

export function move(before: Task, patch: Partial<Task>, now: number): Step {
  const moved = recharged(withSchedule({ ...before, ...patch, updatedAt: now }, now));
  const after = moved.hasLeases && moved.status !== "assigned" ? { ...moved, hasLeases: false } : moved;
  const leases = before.hasLeases ? withoutLeases(before, after) : [];
  const copied = nowCopied(after, now);
  return {
    after,
    changes: [movedFrom(before, after, now), ...leases, ...tallies(before, after, now), ...copied],
  };
}

function movedFrom(before: Task, task: Task, now: number): Change {
  if (before.status !== "open" || task.assignedNode === null) return { kind: "task.moved", task };
  // An open task is last updated when it is opened, when a dependency is met, or when its time has come (makeReady).
  const readyAt = Math.max(before.updatedAt, before.notBefore ?? 0);
  return { kind: "task.moved", task, waitedMs: Math.max(0, now - readyAt) };
}

/**
 * The changes of the running totals that a step from `before` to `after` means (null: no task), in which its node is
 * paid `rewardMicro`.
 */
export function tallies(before: Task | null, after: Task | null, now: number, rewardMicro = 0): Change[] {
  const step = (status: TaskStatus): number =>
    Number(after?.status === status) - Number(before?.status === status);
  assert(after === null || isSound(after), "a task has a holder exactly when it is assigned or completed");
  const changes: Change[] = [];
  if (before?.status !== after?.status) {
    changes.push({
      kind: "tasks.tallied",
      open: step("open"),
      assigned: step("assigned"),
      completed: step("completed"),
      failed: step("failed"),
    });
  }
  const giver = before?.assignedNode ?? null;
  const taker = after?.assignedNode ?? null;
  if (giver !== null && giver !== taker) changes.push(nodeTally(giver, before, after, now, rewardMicro));
  if (taker !== null) changes.push(nodeTally(taker, before, after, now, rewardMicro));
  changes.push(...sums(before, after), ...touchedGroup(before, after), ...touchedParent(before, after));
  return changes;
}

/**
 * What a step adds to the sums that must be those of the rows: of its creator's usage and of its group. A step that moves
 * no other total comes here itself.
 */
export function sums(before: Task | null, after: Task | null): readonly Change[] {
  return [...usageTally(before, after), ...groupTally(before, after)];
}

/** The end of a task may be the end of its group (group.ts). A new task that has failed at once has ended too. */
function touchedGroup(before: Task | null, after: Task | null): readonly Change[] {
  const group = (after ?? before)?.group ?? null;
  if (group === null || (before !== null && hasEnded(before))) return [];
  return after !== null && !hasEnded(after) ? [] : [{ kind: "group.touched", group }];
}

/** A parent waits for the end of its children, and its own ends theirs (family.ts). */
function touchedParent(before: Task | null, after: Task | null): readonly Change[] {
  if (before === null || (before.child === null && before.quorum === null)) return [];
  if (isFinished(before) || (after !== null && !isFinished(after))) return [];
  return [touchedFamily(before.child?.of ?? before.taskId)];
}

/** The copies of a task are created when it waits for nothing any more. */
function nowCopied(task: Task, now: number): readonly Change[] {
  const isDue = task.quorum !== null && task.status === "open" && !isWaiting(task, now);
  return isDue ? [touchedFamily(task.taskId)] : [];
}

/** A node gets only one copy of a task. */
function noOtherCopy({ child, taskId }: Task, nodeId: string): readonly Change[] {
  return child?.as === "copy" ? [{ kind: "copies.excluded", of: child.of, taskId, nodeId }] : [];
}

/** A copy keeps that it came from the creator's node or key: its share is due when the quorum is decided. */
function unpaidCopy({ taskId, child, notNodes }: Task): readonly Change[] {
  if (child?.as !== "copy") return [];
  return [{ kind: "task.related", taskId, child: { ...child, unpaid: true }, notNodes }];
}

export function quorate(taskId: string, quorum: Quorum): Change {
  return { kind: "task.quorate", taskId, quorum };
}

/** Whether nobody may read its result and what else its worker sends. */
export function isSealed({ child }: Pick<Task, "child">): boolean {
  return child?.sealed === true;
}

/** What is shown in the place of what the worker of a sealed copy wrote. */
const SEALED_TEXT = "Shown when the quorum is decided.";

const isWorkersText = (kind: Failure["kind"]): boolean => kind === "failed" || kind === "budget";

/** The last failure as everybody may read it: without what the worker of a sealed copy wrote. */
export function shownFailure({ child, failure }: Pick<Task, "child" | "failure">): Failure | null {
  const isHidden = failure !== null && isSealed({ child }) && isWorkersText(failure.kind);
  return isHidden ? { ...failure, message: SEALED_TEXT } : failure;
}

export function touchedFamily(taskId: string): Change {
  return { kind: "family.touched", taskId };
}

function isSound({ status, assignedNode }: Task): boolean {
  return (assignedNode !== null) === (status === "assigned" || status === "completed");
}

function nodeTally(
  nodeId: string,
  before: Task | null,
  after: Task | null,
  now: number,
  rewardMicro: number,
): Change {
  const holds = (task: Task | null, status: TaskStatus): number =>
    Number(task?.assignedNode === nodeId && task.status === status);
  return {
    kind: "node.tallied",
    nodeId,
    assigned: holds(after, "assigned") - holds(before, "assigned"),
    completed: holds(after, "completed") - holds(before, "completed"),
    luxEarnedMicro: rewardMicro,
    entries: Number(rewardMicro > 0),
    balanceMicro: rewardMicro,
    idleSince: now,
  };
}

function completion(task: Task, paid: LedgerEntry | null, madeRoom: boolean): Completion {
  const { taskId, hasDependents, review } = task;
  const luxHeldMicro = review && (isInReview(task) ? asHeld(task).luxRewardMicro : 0);
  return { taskId, receipt: paid && receiptOf(paid), luxHeldMicro, madeRoom, hasDependents };
}

// ---- Review: the rest is in review.ts

/** A task in review with what is held of its reward. */
export function asHeld(task: Task): Task {
  return task.review?.check?.unpaid ? { ...task, luxRewardMicro: 0 } : task;
}

/** Whether its result waits for a verdict. */
export function isInReview({ review }: Pick<Task, "review">): boolean {
  return review?.check?.state === "pending";
}

/** Finished, and no verdict can open it again. */
export function hasEnded(task: Pick<Task, "status" | "review">): boolean {
  return isFinished(task) && !isInReview(task);
}

/** The review of a result that comes now; null: the task has none. */
function beginReview(
  { review, epoch }: Task,
  keyId: string | null,
  unpaid: boolean,
  at: Moment,
): Review | null {
  if (review === null) return null;
  const undecided = { note: null, decidedBy: null, decidedAt: null, timedOut: false, unpaid };
  const until = at.now + review.withinMs;
  return { ...review, check: { state: "pending", epoch, keyId, until, ...undecided } };
}

export function reviewed(taskId: string, review: Review): Change {
  return { kind: "task.reviewed", taskId, review };
}

/** The event reaches the stream of the node that is to decide, and that of the creator. */
function reviewRequested(task: Task, review: Review, at: Moment): readonly Change[] {
  const { by, check } = review;
  const { taskId, creatorNode } = task;
  const reviewer = by === "creator" ? creatorNode : by.startsWith("node:") ? by.slice("node:".length) : null;
  const until = new Date(must(check, "a result is in review").until).toISOString();
  return [
    reviewed(taskId, review),
    ...(by.startsWith("capability:") ? [touchedFamily(taskId)] : []),
    taskEvent("task.review_requested", task, reviewer, at.now, { by, until }),
  ];
}

/** The verdict in the result of a task that checks another, and its note; null: it has none. */
export function verdictOf({ extra }: TaskResult): { verdict: Verdict; note: string | null } | null {
  const fields = extra === null ? {} : Object(JSON.parse(extra));
  // Some workers (MCP, commands) can send nothing beside `output`.
  for (const { verdict: said, note } of [fields, Object(fields.output)]) {
    const verdict = VERDICTS.find((word) => word === said);
    if (verdict) return { verdict, note: typeof note === "string" && note !== "" ? note : null };
  }
  return null;
}

/** Why a result cannot be the verdict on that of another task, or be compared with others. */
function unfitResult(task: Task, child: Child, { result, keyId = null }: CompleteRequest): Rejected | null {
  if (child.as === "copy") {
    const missing = missingIn(result, child.compare ?? []);
    if (missing === null) return null;
    const detail = `The results of task ${task.taskId} are compared with those of others: the result must have ${missing}.`;
    return reject("compared_value_missing", detail);
  }
  if (child.notKey !== null && child.notKey === keyId) return ownWork(child.of);
  if (verdictOf(result) !== null) return null;
  const detail = `Task ${task.taskId} checks the result of task ${child.of}: its result, or the output in it, must have verdict, "pass" or "reject".`;
  return reject("verdict_missing", detail);
}

export function ownWork(taskId: string): Rejected {
  const detail = `The result of task ${taskId} came from this node, or with this key: another one must review it.`;
  return reject("own_work", detail);
}

function sameResult(a: TaskResult | null, b: TaskResult): boolean {
  if (a === null || a.problem !== b.problem || a.improvement !== b.improvement) return false;
  return a.lesson === b.lesson && isSameJson(a.extra ?? "{}", b.extra ?? "{}");
}

/**
 * Names the creator too, so that the event reaches its stream, unless the event is about the creator anyway
 * (isOfCreator); and the group and the tags of the task, by which events are selected.
 */
export function taskEvent(
  kind: EventKind,
  task: Task,
  nodeId: string | null,
  at: number,
  data: EventData,
): Change {
  const { taskId, creatorNode, group, tags } = task;
  const isNamed = creatorNode !== null && (creatorNode !== nodeId || !isOfCreator(kind));
  const named = isNamed ? { ...data, creator_node: creatorNode } : data;
  const ofGroup = group === null ? named : { ...named, group };
  const tagged = tags.length === 0 ? ofGroup : { ...ofGroup, tags: tags.join(",") };
  return { kind: "event.logged", event: { kind, at, nodeId, taskId, data: tagged } };
}

function failedEvent(task: Task, holder: string | null, failure: Failure): Change {
  const { kind, at } = failure;
  const message = shownFailure({ ...task, failure })?.message ?? null;
  return taskEvent("task.failed", task, holder, at, { kind, message });
}

// ---- Refusals

/** Whether a node may never have a task, although the task fits. */
export function isExcluded({ notNodes }: Pick<Task, "notNodes">, nodeId: string): boolean {
  return notNodes.length > 0 && notNodes.includes(nodeId);
}

function notForNode(task: Task, { nodeId }: Node): Rejected | null {
  if (!isExcluded(task, nodeId)) return null;
  const why =
    task.child?.as === "copy" ? `${nodeId} has another copy of it` : `it checks what ${nodeId} has done`;
  const detail = `Task ${task.taskId} is not for ${nodeId}: ${why}. Leave it to another node.`;
  return reject("node_excluded", detail);
}

/** Whether a task is completed or has failed. */
export const isFinished = ({ status }: Pick<Task, "status">): boolean =>
  status === "completed" || status === "failed";

function finishedAlready(task: Task): Rejected {
  if (task.status === "failed") {
    const detail = `Task ${task.taskId} has failed. Open it again with POST /api/v1/task/retry.`;
    return reject("task_failed", detail);
  }
  return reject("task_completed", `Task ${task.taskId} is completed and cannot change any more.`);
}

function notOpen(task: Task): Rejected {
  return reject(
    "task_not_open",
    `Task ${task.taskId} is assigned to ${task.assignedNode}. Choose an open one with GET /api/v1/task/pull.`,
  );
}

function heldAlready({ taskId, assignedNode }: Task): Rejected {
  const detail = `Task ${taskId} is assigned to ${assignedNode}. Only a task that nobody holds can change: take it back first with POST /api/v1/task/revoke.`;
  return reject("task_not_open", detail);
}

function lowerReward({ taskId }: Task): Rejected {
  const detail = `The reward of task ${taskId} can only grow. To lower it, send the administrator key in the header X-Admin-Key too.`;
  return reject("lower_reward", detail);
}

function notReady(task: Task): Rejected {
  return reject(
    "task_not_ready",
    task.quorum
      ? `Several nodes do copies of task ${task.taskId}, and it is not handed out itself. Take a copy with POST /api/v1/task/next.`
      : `Task ${task.taskId} waits for its start time, for other tasks or for an answer. Choose another with GET /api/v1/task/pull.`,
  );
}

function notReadyForNode(): Rejected {
  const detail =
    "A task for one node must be ready: leave delay_s and not_before out and name only completed tasks in depends_on, or leave it to any node.";
  return reject("task_not_ready", detail);
}

function notAssigned(task: Task, whatToDo: string): Rejected {
  return reject("task_not_assigned", `Task ${task.taskId} is assigned to no node. ${whatToDo}`);
}

function notYours(task: Task, node: Node): Rejected {
  return reject(
    "not_assigned_to_node",
    `Task ${task.taskId} is not assigned to ${node.nodeId}. Only the node that holds a task can do this.`,
  );
}

function notFailed({ taskId, status }: Task): Rejected {
  return reject("task_not_failed", `Task ${taskId} is ${status}. Only a failed task can be retried.`);
}

function overspent(task: Task): Rejected {
  const detail = `${overspentMessage(task)} Send a larger max_cost_usd with this request to try it again.`;
  return reject("budget_exceeded", detail);
}

export function notTheirCreation(task: Task, { boundTo }: CreatorRequest): Rejected {
  return reject(
    "key_bound_to_other_node",
    `This key acts for ${boundTo} only, and ${boundTo} did not create task ${task.taskId}.`,
  );
}

function staleLease(task: Task): Rejected {
  return reject(
    "stale_lease",
    `Task ${task.taskId} was taken back or handed out again since this lease began. Stop working on it.`,
  );
}

/** Why the gate keeps a task from a node, or the node does not fit. */
function keptBack(task: Task, node: Node, { gate, now }: Moment): Rejected | null {
  if (gate && isClosed(gate.closed, task, node.nodeId)) return refusedByGate(gate, task, node.nodeId, now);
  return unfit(task, node);
}

/** Why a node does not have what a task requires. Its type is no reason: who names a node knows why. */
function unfit(task: Task, node: Node): Rejected | null {
  const { requires, taskId } = task;
  if (requires === null || (couldTake(node, { taskType: "", requires }) && hasFree(node, requires)))
    return null;
  const detail = `Node ${node.nodeId} does not have what task ${taskId} requires, or uses it for other tasks. GET /api/v1/task/${taskId}/explain says what is missing.`;
  return reject("requirements_not_met", detail);
}

/** Why a node cannot be given a task. */
function refusesTasks({ nodeId, online, draining }: Node): Rejected | null {
  if (!online) {
    return reject(
      "node_offline",
      `Node ${nodeId} is offline. Let it send a heartbeat, or choose a node that is online.`,
    );
  }
  if (!draining) return null;
  const detail = `Node ${nodeId} is draining. Choose another, or end the drain with POST /api/v1/node/drain.`;
  return reject("node_draining", detail);
}
