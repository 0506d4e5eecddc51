/**
 * The schema of each resource's JSON (tests check the answers against it) and its encoding in a variant: ISO 8601 for
 * epoch milliseconds, LUX for millionths.
 */
import * as z from "zod/mini";
import { type LoggedEvent, EVENT_KINDS, authorOf } from "../domain/event.ts";
import { OUTPUT_POINTER } from "../domain/compare.ts";
import { toLux } from "../domain/lux.ts";
import { isVerified } from "../domain/file.ts";
import { KEY_STATES, stateOf } from "../domain/key.ts";
import { FAILURE_KINDS } from "../domain/failure-kinds.ts";
import {
  type Delivery,
  type DeliveryState,
  type Failure,
  type FileRecord,
  type KeyRecord,
  type Lease,
  type Message,
  type MessageFate,
  type Moment,
  type Node,
  type Question,
  type Quorum,
  type Receipt,
  type Review,
  type Spending,
  type Task,
  type TaskResult,
  type TaskState,
  type TaskStatus,
  type TaskSummary,
  type Usage,
  ATTACHMENTS,
  BROADCAST_TYPES,
  KEY_ROLES,
  ON_REVIEW_TIMEOUT,
  QUESTION_STATES,
  QUORUM_STATES,
  REVIEW_STATES,
  SEND_TYPES,
  TASK_STATUSES,
} from "../domain/model.ts";
import { threadOf } from "../domain/message.ts";
import { isAsking } from "../domain/task/facet/questions.ts";
import { isInReview } from "../domain/task/state.ts";
import { isReady } from "../domain/task/facets.ts";
import { isSealed, shownFailure, summaryLine } from "../domain/task/failure.ts";
import { costOf, toUsd } from "../domain/task/facet/spending.ts";
import { must } from "../lib/assert.ts";
import { parseExact } from "../lib/exact-json.ts";
import { DAY_MS, isoTime, SECOND_MS } from "../lib/clock.ts";
import type { CursorPage, Page } from "../service/list-pages.ts";
import type { ChainedEntry } from "../store/sql/lux.ts";
import type { Variant } from "../variant/variant.ts";
import { type JsonAnswer, JsonFields } from "./answer.ts";
import { about, flag, maybeNumber, maybeString, nullable, number, optional, string, whole } from "./about.ts";
import { encodeCursor } from "./request-fields.ts";
import {
  type ShownAlways,
  encodeResources,
  resourcesSchema,
  shownFields,
  withFewTerms,
} from "./task-fields.ts";

export const time = () => z.iso.datetime({ precision: 3 });
export const maybeTime = (epochMs: number | null): string | null =>
  epochMs === null ? null : isoTime(epochMs);
export const count = () => z.int().check(z.minimum(0));
export const dayText = (day: number): string => isoTime(day * DAY_MS).slice(0, 10);

export const nodeSchema = (variant: Variant) =>
  z.strictObject({
    node_id: z.string(),
    name: z.string(),
    status: about(
      z.enum(["online", "offline"]),
      "`offline` when the heartbeats of the node stopped, or the node left.",
    ),
    host: z.nullable(z.string()),
    port: z.nullable(z.int()),
    capabilities: about(
      typeof variant.capabilityWords([]) === "string" ? z.string() : z.array(z.string()),
      "The task types that the node takes; empty means all.",
    ),
    resources: optional(
      resourcesSchema(),
      "What the node has; left out if the node registered no resources.",
    ),
    resources_used: optional(resourcesSchema(), "How much of each resource the node's unfinished tasks use."),
    max_tasks: z.nullable(z.int()),
    auto_assign: z.boolean(),
    draining: flag("Whether the node drains: a draining node gets no new tasks."),
    registered_at: about(time(), "When the node first registered."),
    last_heartbeat: time(),
    lux_balance: z.number(),
    tasks_assigned: count(),
    tasks_completed: about(count(), "How many tasks the node has completed."),
  });

export function encodeNode(node: Node, variant: Variant): JsonAnswer {
  return {
    node_id: node.nodeId,
    name: node.name,
    status: node.online ? "online" : "offline",
    host: node.host,
    port: node.port,
    capabilities: variant.capabilityWords(node.capabilities),
    ...(Object.keys(node.resources).length > 0 && {
      resources: encodeResources(node.resources),
      resources_used: encodeResources(node.used),
    }),
    max_tasks: node.maxTasks,
    auto_assign: node.autoAssign,
    draining: node.draining,
    registered_at: isoTime(node.registeredAt),
    last_heartbeat: isoTime(node.lastHeartbeatAt),
    lux_balance: toLux(node.balanceMicro),
    tasks_assigned: node.tasksAssigned,
    tasks_completed: node.tasksCompleted,
  };
}

export const statusWord = (variant: Variant) => z.enum(variant.statusWords);

export function encodeTotals(totals: Readonly<Record<TaskStatus, number>>, variant: Variant) {
  const byWord = new Map<string, number>(variant.statusWords.map((word) => [word, 0]));
  for (const status of TASK_STATUSES) {
    const word = variant.statusWord(status);
    byWord.set(word, must(byWord.get(word), "a status has a word of the variant") + totals[status]);
  }
  return Object.fromEntries(byWord);
}

export const resultSchema = () =>
  z.looseObject({ problem: z.string(), improvement: z.string(), lesson: z.string() });

export const failureSchema = () =>
  z.strictObject({
    kind: about(
      z.enum(FAILURE_KINDS),
      "`failed`, `stalled`, `timed_out`, `offline`, `rejected`: why an attempt ended; `cancelled`, `expired`, `dependency`, `budget`, `no_quorum`: why the task ended.",
    ),
    message: maybeString("The `error` of the node, or the `reason` of the cancellation."),
    node_id: maybeString(
      "The node that held the task or, if the task was cancelled, the node that cancelled it.",
    ),
    at: time(),
  });

export const spendingSchema = () =>
  z.strictObject({
    input_tokens: count(),
    output_tokens: count(),
    cached_tokens: count(),
    cost_usd: maybeNumber("The sum of the known costs; null if no cost is known."),
    reports: count(),
    without_cost: count(),
  });

export function encodeSpending(spending: Spending) {
  const cost = costOf(spending);
  return {
    input_tokens: spending.inputTokens,
    output_tokens: spending.outputTokens,
    cached_tokens: spending.cachedTokens,
    cost_usd: cost === null ? null : toUsd(cost),
    reports: spending.reports,
    without_cost: spending.unpriced,
  };
}

export const reviewSchema = () =>
  z.strictObject({
    by: string("Who checks: `creator`, `node:<node_id>` or `capability:<word>`."),
    within_s: number("Seconds that a result waits for its review."),
    on_timeout: about(z.enum(ON_REVIEW_TIMEOUT), "What happens when nobody has reviewed the result in time."),
    state: nullable(z.enum(REVIEW_STATES), "The state of the last result; null until there is one."),
    epoch: nullable(count(), "The epoch of the dispatch that led to the result: send it with task/review."),
    until: nullable(time(), "The deadline of the review."),
    note: maybeString("What the reviewer wrote."),
    reviewed_by: z.nullable(z.string()),
    reviewed_at: z.nullable(time()),
    timed_out: flag("Whether the deadline decided."),
  });

export function encodeReview({ by, withinMs, onTimeout, check }: Review) {
  const result: Partial<NonNullable<typeof check>> = check ?? {};
  const { state = null, epoch = null, until = null, note = null } = result;
  const { decidedBy = null, decidedAt = null, timedOut = false } = result;
  return {
    by,
    within_s: withinMs / SECOND_MS,
    on_timeout: onTimeout,
    state,
    epoch,
    until: maybeTime(until),
    note,
    reviewed_by: decidedBy,
    reviewed_at: maybeTime(decidedAt),
    timed_out: timedOut,
  };
}

export const quorumSchema = () =>
  z.strictObject({
    results: count(),
    of: count(),
    compare: z.string(),
    state: about(z.enum(QUORUM_STATES), "`failed`: the results cannot agree any more."),
    copies: about(z.array(z.string()), "The ids of the copies of the task: tasks with `parent_task`."),
    agreed: about(z.array(z.string()), "The nodes whose results agree, the first to complete first."),
  });

export function encodeQuorum({ results, of, compare, state, copies, agreed }: Quorum) {
  return { results, of, compare: comparedWord(compare), state, copies, agreed };
}

export function comparedWord(pointers: readonly string[]): string {
  const isOutput = pointers.length === 1 && pointers[0] === OUTPUT_POINTER;
  return isOutput ? "output" : `json:${pointers.join(",")}`;
}

const scheduleOf = () =>
  optional(
    z.strictObject({ name: z.string(), at: z.nullable(time()) }),
    "The schedule that created the task; only on such tasks.",
  );

export const taskSchema = (variant: Variant) =>
  z.strictObject({
    task_id: z.string(),
    ...shownFields("task", variant),
    creator_verified: z.boolean(),
    status: statusWord(variant),
    assigned_node: z.nullable(z.string()),
    result: nullable(resultSchema(), "The result as the node sent it; null until the task is completed."),
    result_verified: z.boolean(),
    paid_seq: z.optional(z.int()),
    ready: z.boolean(),
    attempts: count(),
    restarts: count(),
    usage: z.nullable(spendingSchema()),
    not_before: z.nullable(time()),
    expires_at: z.nullable(time()),
    depends_on: z.array(z.string()),
    started_at: z.nullable(time()),
    progress: z.nullable(z.string()),
    waiting_for: z.nullable(z.enum(["answer", "review"])),
    review: optional(reviewSchema(), "How the results of the task are checked; only on tasks with a review."),
    quorum: optional(
      quorumSchema(),
      "How many nodes do the task, and whether their results agree; only on tasks with a quorum.",
    ),
    parent_task: z.optional(z.string()),
    made_for: z.optional(z.enum(["review", "copy"])),
    sealed: z.optional(z.literal(true)),
    background: optional(
      z.literal(true),
      "Background work (`p5`), whose `priority` A shows as 2; only on such tasks.",
    ),
    failure: z.nullable(failureSchema()),
    files: about(z.array(z.string()), "The ids of the files that are attached to the task, oldest first."),
    inputs: z.array(z.string()),
    outputs: z.array(z.string()),
    schedule: scheduleOf(),
    unique_key: z.optional(z.string()),
    unique_until: z.optional(time()),
    on_dependency: z.optional(z.literal("run")),
    created_at: time(),
    updated_at: time(),
  });

/** What few tasks have is undefined in the others, and so not in the JSON: spreads would cost more than all the rest. */
export function encodeTask(task: Task, variant: Variant, { now }: Pick<Moment, "now">): JsonAnswer {
  const record: ShownAlways = {
    task_id: task.taskId,
    title: task.title,
    description: task.description,
    task_type: task.taskType === "" ? null : task.taskType,
    priority: variant.priorityWord(task.priority),
    creator_node: task.creatorNode,
    creator_verified: task.creatorVerified,
    status: variant.statusWord(task.status),
    lux_reward: toLux(task.luxRewardMicro),
    assigned_node: task.assignedNode,
    result: task.result && !isSealed(task) ? encodeResult(task.result) : null,
    result_verified: task.resultVerified,
    paid_seq: task.paidSeq ?? undefined,
    ready: isReady(task, now),
    attempts: task.attempts,
    max_attempts: task.maxAttempts,
    restarts: task.restarts,
    timeout_s: task.timeoutMs === null ? null : task.timeoutMs / SECOND_MS,
    max_run_s: task.maxRunMs === null ? null : task.maxRunMs / SECOND_MS,
    max_cost_usd: task.maxCostMicro === null ? null : toUsd(task.maxCostMicro),
    backoff_s: task.backoffMs / SECOND_MS,
    usage: task.spent && encodeSpending(task.spent),
    not_before: maybeTime(task.notBefore),
    expires_at: maybeTime(task.expiresAt),
    depends_on: task.dependsOn,
    started_at: maybeTime(task.startedAt),
    progress: task.progress,
    waiting_for: waitingFor(task),
    review: task.review ? encodeReview(task.review) : undefined,
    quorum: task.quorum ? encodeQuorum(task.quorum) : undefined,
    parent_task: task.child?.of,
    made_for: task.child?.as,
    sealed: isSealed(task) || undefined,
    background: task.priority === 5 || undefined,
    failure: encodeLastFailure(task),
    files: task.files,
    inputs: inputsOf(task),
    outputs: task.outputs,
    schedule: task.schedule ? { name: task.schedule.name, at: maybeTime(task.schedule.at) } : undefined,
    unique_key: task.uniqueKey ?? undefined,
    unique_until: task.uniqueUntil === null ? undefined : isoTime(task.uniqueUntil),
    on_dependency: task.onDependency === "run" ? task.onDependency : undefined,
    created_at: isoTime(task.createdAt),
    updated_at: isoTime(task.updatedAt),
  };
  return withFewTerms("task", record, task, variant);
}

export const taskSummarySchema = (variant: Variant) =>
  z.strictObject({
    task_id: z.string(),
    ...shownFields("summary", variant),
    status: statusWord(variant),
    assigned_node: z.nullable(z.string()),
    ready: z.boolean(),
    attempts: count(),
    not_before: z.nullable(time()),
    expires_at: z.nullable(time()),
    unmet_count: about(count(), "How many tasks in `depends_on` are not completed yet."),
    started_at: z.nullable(time()),
    progress: maybeString("The first line of the last note, at most 200 characters."),
    waiting_for: z.nullable(z.enum(["answer", "review"])),
    parent_task: z.optional(z.string()),
    made_for: z.optional(z.enum(["review", "copy"])),
    failure: z.nullable(failureSchema()),
    schedule: scheduleOf(),
    created_at: time(),
    updated_at: time(),
  });

export function encodeTaskSummary(
  task: TaskSummary,
  variant: Variant,
  { now }: Pick<Moment, "now">,
): JsonAnswer {
  const record = {
    task_id: task.taskId,
    title: task.title,
    task_type: task.taskType === "" ? null : task.taskType,
    priority: variant.priorityWord(task.priority),
    creator_node: task.creatorNode,
    status: variant.statusWord(task.status),
    lux_reward: toLux(task.luxRewardMicro),
    assigned_node: task.assignedNode,
    ready: isReady(task, now),
    attempts: task.attempts,
    max_attempts: task.maxAttempts,
    not_before: maybeTime(task.notBefore),
    expires_at: maybeTime(task.expiresAt),
    unmet_count: task.unmet,
    started_at: maybeTime(task.startedAt),
    progress: summaryLine(task.progress),
    waiting_for: waitingFor(task),
    parent_task: task.child?.of,
    made_for: task.child?.as,
    failure: encodeLastFailure(task, summaryLine),
    ...(task.schedule && { schedule: { name: task.schedule.name, at: maybeTime(task.schedule.at) } }),
    created_at: isoTime(task.createdAt),
    updated_at: isoTime(task.updatedAt),
  };
  return withFewTerms("summary", record, task, variant);
}

function waitingFor(task: Pick<Task, "questions" | "review">): "answer" | "review" | null {
  if (isAsking(task)) return "answer";
  return isInReview(task) ? "review" : null;
}

function inputsOf({ files, outputs }: Task): readonly string[] {
  return outputs.length === 0 ? files : files.filter((fileId) => !outputs.includes(fileId));
}

/** Only the answer with a single task shows them. */
export const waitingTaskSchema = (variant: Variant) =>
  z.extend(taskSchema(variant), {
    unmet: about(
      z.strictObject({
        count: about(count(), "How many of the tasks in `depends_on` are not completed yet."),
        task_ids: about(z.array(z.string()), "The ids of the first 20 of these tasks, oldest first."),
      }),
      "The tasks in `depends_on` that are not completed yet.",
    ),
  });

export const taskStateSchema = (variant: Variant) =>
  z.strictObject({
    task_id: z.string(),
    title: z.string(),
    status: statusWord(variant),
    assigned_node: z.nullable(z.string()),
    progress: z.nullable(z.string()),
    failure: z.nullable(failureSchema()),
    updated_at: time(),
  });

export function encodeTaskState(task: TaskState, variant: Variant): JsonAnswer {
  return {
    task_id: task.taskId,
    title: task.title,
    status: variant.statusWord(task.status),
    assigned_node: task.assignedNode,
    progress: task.progress,
    failure: encodeLastFailure(task),
    updated_at: isoTime(task.updatedAt),
  };
}

export const advisoryLeaseSchema = () =>
  z.strictObject({
    name: string("The name or glob."),
    node_id: string("The node that has the lease."),
    task_id: maybeString("The task that the lease ends with; null: none."),
    shared: flag("Whether other nodes may have a shared lease on the same name."),
    fencing: whole(
      "The fencing number: larger than the number of every earlier lease. Send the number to the system that the lease protects, which refuses smaller numbers.",
    ),
    ttl_s: number("Seconds from an acquire or renew to the deadline."),
    acquired_at: about(time(), "When the lease was acquired."),
    until: about(time(), "The deadline, at which the lease ends."),
  });

export function encodeAdvisoryLease(lease: Lease, { now, steady }: Moment): JsonAnswer {
  return {
    name: lease.name,
    node_id: lease.nodeId,
    task_id: lease.taskId,
    shared: lease.shared,
    fencing: lease.fencing,
    ttl_s: lease.ttlMs / SECOND_MS,
    acquired_at: isoTime(lease.acquiredAt),
    until: isoTime(now + lease.leaseUntil - steady),
  };
}

export const leaseSchema = () =>
  z.strictObject({
    epoch: about(
      count(),
      "The fencing token: counts the dispatches of the task and its returns to open. Send the epoch with complete, fail, release and extend.",
    ),
    expires_at: nullable(
      time(),
      "When the hub takes the task back, unless task/extend or task/complete comes first; null without a `timeout_s` and a `max_run_s`. No extend moves this time past the end of `max_run_s`.",
    ),
  });

/** The lease runs on the steady clock; the answer shows wall-clock time. */
export function encodeLease({ epoch, leaseUntil }: Task, { now, steady }: Moment): JsonAnswer {
  return { epoch, expires_at: maybeTime(leaseUntil === null ? null : now + leaseUntil - steady) };
}

function encodeLastFailure(
  task: Pick<Task, "child" | "failure">,
  shorten = (message: string | null): string | null => message,
): JsonAnswer | null {
  const failure = shownFailure(task);
  return failure && encodeFailure({ ...failure, message: shorten(failure.message) });
}

export function encodeFailure({ kind, message, nodeId, at }: Failure): JsonAnswer {
  return { kind, message, node_id: nodeId, at: isoTime(at) };
}

export function encodeResult({ extra, ...texts }: TaskResult): JsonAnswer {
  return extra === null ? texts : { ...texts, ...(parseExact(extra) as JsonAnswer) }; // it is what JSON.stringify made
}

export const questionSchema = () =>
  z.strictObject({
    question_id: z.string(),
    task_id: z.string(),
    question: string("What the worker wants to know."),
    choices: z.array(z.string()),
    schema: z.nullable(z.record(z.string(), z.unknown())),
    asked_by: z.string(),
    asked_at: time(),
    until: time(),
    state: about(
      z.enum(QUESTION_STATES),
      "`timed_out`: the deadline of the question has passed, or the task ended first.",
    ),
    answer: about(z.unknown(), "The answer; null if there is none."),
    answered_by: z.nullable(z.string()),
    answered_at: z.nullable(time()),
    verified: flag("Whether the answer came with a key that is bound to `answered_by`."),
  });

export function encodeQuestion(question: Question): JsonAnswer {
  return {
    question_id: question.questionId,
    task_id: question.taskId,
    question: question.question,
    choices: question.choices,
    schema: question.schema === null ? null : parseExact(question.schema),
    asked_by: question.askedBy,
    asked_at: isoTime(question.askedAt),
    until: isoTime(question.until),
    state: question.state,
    answer: question.answer === null ? null : parseExact(question.answer),
    answered_by: question.answeredBy,
    answered_at: maybeTime(question.answeredAt),
    verified: question.verified,
  };
}

const messageType = () => z.enum([...SEND_TYPES, ...BROADCAST_TYPES]);

export const messageSchema = () =>
  z.strictObject({
    id: z.string(),
    from_node: z.string(),
    to_node: maybeString("The recipient; null for a broadcast."),
    content: z.string(),
    type: messageType(),
    require_ack: z.boolean(),
    reply_to: maybeString(
      "The id of the message to which this message replies; null if this message is no reply.",
    ),
    thread: z.string(),
    verified: z.boolean(),
    sent_at: time(),
  });

export function encodeMessage(message: Message): JsonAnswer {
  return {
    id: message.messageId,
    from_node: message.fromNode,
    to_node: message.toNode,
    content: message.content,
    type: message.type,
    require_ack: message.requireAck,
    reply_to: message.replyTo,
    thread: threadOf(message),
    verified: message.verified,
    sent_at: isoTime(message.sentAt),
  };
}

export const deliverySchema = () =>
  z.extend(messageSchema(), {
    redelivered: flag("Whether the message was delivered before."),
    deliveries: z.int().check(z.minimum(1)),
  });

export function encodeDelivery({ message, deliveries }: Delivery): JsonAnswer {
  return { ...encodeMessage(message), redelivered: deliveries > 1, deliveries };
}

export const stateWord = () => z.enum(["waiting", "delivered", "acked", "parked"]);

export const fateSchema = () =>
  z.extend(messageSchema(), {
    state: nullable(stateWord(), "The delivery status: `waiting`, `delivered`, `acked` or `parked`."),
    deliveries: z.nullable(count()),
    recipients: nullable(
      z.strictObject({
        waiting: about(count(), "How many recipients have not received the message yet."),
        delivered: about(count(), "How many recipients have received the message."),
        acked: about(count(), "How many recipients have acknowledged the message."),
        parked: about(count(), "How many recipients never acknowledged the message."),
      }),
      "The recipients of a broadcast that the node sent, counted by state; null for every other message.",
    ),
  });

export function encodeFate({ message, delivery, recipients }: MessageFate): JsonAnswer {
  return {
    ...encodeMessage(message),
    state: delivery && STATE_WORDS[delivery.state],
    deliveries: delivery && delivery.deliveries,
    recipients: recipients && { ...recipients, parked: 0 }, // a broadcast asks for no ACK
  };
}

/** Leased: its ACK may still come. */
const STATE_WORDS: Readonly<Record<DeliveryState, string>> = {
  waiting: "waiting",
  leased: "delivered",
  gone: "delivered",
  acked: "acked",
  parked: "parked",
};

export const entrySchema = () =>
  z.strictObject({
    seq: whole("The number of the entry in the ledger of all nodes: 1, 2, 3, …"),
    id: string("The id of the entry."),
    node_id: maybeString("The node that was paid; null: the entry goes to another account."),
    from: string("The account that pays: `treasury`, or `held:` and the task_id."),
    to: string(
      "The account that gets the LUX: `node:` and the node_id, `held:` and the task_id, or `treasury`.",
    ),
    amount: number("LUX, exact to 6 decimals."),
    kind: about(
      z.enum(["reward", "signin", "hold", "return"]),
      "`reward` of a task, `signin`, `hold` (a reward is held back) or `return` (a reward that was held back goes back to the treasury).",
    ),
    task_id: maybeString("The task of a `reward`, `hold` or `return`; null for a daily bonus."),
    at: time(),
    prev_hash: maybeString(
      "The hash of the previous entry, 64 zeros for the first; null: the entry is older than the hash chain.",
    ),
    hash: maybeString(
      "SHA-256 of the entry and of `prev_hash`, as hex (docs/concepts.md has the bytes); null: the entry is older than the hash chain.",
    ),
  });

export function encodeEntry(entry: ChainedEntry): JsonAnswer {
  return {
    seq: entry.seq,
    id: entry.id,
    node_id: entry.nodeId,
    from: entry.from,
    to: entry.to,
    amount: toLux(entry.amountMicro),
    kind: entry.kind,
    task_id: entry.taskId,
    at: isoTime(entry.at),
    prev_hash: entry.prevHash,
    hash: entry.hash,
  };
}

export const ledgerHeadSchema = () =>
  z.strictObject({
    seq: whole("The number of the newest entry; 0: the ledger has no entry."),
    hash: maybeString(
      "The hash of the newest entry; null: the entry is older than the hash chain, or there is no entry.",
    ),
  });

export const receiptSchema = () =>
  z.strictObject({
    entry_id: string("The id of the ledger entry."),
    amount: number("LUX that were paid."),
    hash: maybeString(
      "The hash of the ledger entry. Nobody can change this entry or an earlier entry without changing the hash. null: the entry is older than the hash chain.",
    ),
  });

export function encodeReceipt({ entryId, amountMicro, hash }: Receipt): JsonAnswer {
  return { entry_id: entryId, amount: toLux(amountMicro), hash };
}

export const fileSchema = () =>
  z.strictObject({
    file_id: z.string(),
    name: string("The last part of the uploaded name."),
    size: count(),
    sha256: z.string(),
    content_type: z.string(),
    metadata: z.record(z.string(), z.unknown()),
    node_id: maybeString("The node that the file is attached to."),
    verified: flag("Whether the file was uploaded with a key that is bound to its node."),
    task_id: maybeString("The task that the file is attached to."),
    attached: z.nullable(z.enum(ATTACHMENTS)),
    uploaded_at: time(),
    url: z.string(),
  });

/**
 * `url` is a path: the hub does not know under which host name the client reaches it. `metadata` is answered as it was
 * sent.
 */
export function encodeFile(file: FileRecord): JsonFields {
  const record = {
    file_id: file.fileId,
    name: file.name,
    size: file.sizeBytes,
    sha256: file.sha256,
    content_type: file.contentType,
    node_id: file.nodeId,
    verified: isVerified(file),
    task_id: file.taskId,
    attached: file.attached,
    uploaded_at: isoTime(file.uploadedAt),
    url: `/api/v1/file/download/${file.fileId}`,
  };
  return new JsonFields(`${JSON.stringify(record).slice(1, -1)},"metadata":${file.metadata}`);
}

export const keySchema = () =>
  z.strictObject({
    name: string("The name of the key."),
    role: about(
      z.enum(KEY_ROLES),
      "What the key may do. A viewer can read all but message contents; `admin` is for `X-Admin-Key`.",
    ),
    state: about(z.enum(KEY_STATES), "Whether the key is `valid`, `expired` or `revoked`."),
    variant: nullable(
      z.enum(["A", "B"]),
      "The variant of the responses to requests with the key; null: the variant of the listener.",
    ),
    node_id: maybeString("The node that the key is bound to: it acts only for this node."),
    mint_per_day: z.nullable(z.number()),
    created_at: nullable(time(), "When the key was made; null for the keys of the first start."),
    expires_at: nullable(time(), "When the key expires; null: never."),
    revoked_at: nullable(time(), "When the key was revoked."),
    used: optional(
      usageSchema(),
      "What counts against the quotas of the node. Only in key/list, for a key of the role `full` that is bound to a node.",
    ),
  });

const usageSchema = () =>
  z.strictObject({
    tasks: whole("Unfinished tasks that the node's keys created."),
    bytes: whole("Bytes that the node's keys have stored."),
  });

/** Omits the hash, from which a short secret could be guessed. `used`: of the node that the key is bound to. */
export function encodeKey(key: KeyRecord, { now }: Pick<Moment, "now">, used?: Usage): JsonAnswer {
  return {
    name: key.keyId,
    role: key.role,
    state: stateOf(key, now),
    variant: key.variant,
    node_id: key.nodeId,
    mint_per_day: key.mintMicro === null ? null : toLux(key.mintMicro),
    created_at: maybeTime(key.createdAt || null), // a primary key has none
    expires_at: maybeTime(key.expiresAt),
    revoked_at: maybeTime(key.revokedAt),
    ...(used && { used }),
  };
}

export const eventSchema = () =>
  z.strictObject({
    id: about(z.int().check(z.minimum(1)), "Increases with each commit."),
    kind: about(z.enum(EVENT_KINDS), "The kind of event."),
    at: time(),
    node_id: maybeString("The node that the event is about."),
    task_id: maybeString("The task that the event is about."),
    by: maybeString(
      "Who did what people do, as `PERSON@KEY`: the name of the key, after the name of the person that a proxy gives (`--user-header`); null for what nodes and the hub do.",
    ),
    verified: flag(
      "Whether the request came with a key that is bound to the acting node: `node_id`, or of `message.sent` the sender.",
    ),
    data: about(
      z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
      "The fields that depend on the kind.",
    ),
  });

export function encodeEvent(event: LoggedEvent): JsonAnswer {
  const { author: _, ...data } = event.data;
  return {
    id: event.id,
    kind: event.kind,
    at: isoTime(event.at),
    node_id: event.nodeId,
    task_id: event.taskId,
    by: authorOf(event),
    verified: event.verified,
    data,
  };
}

export const pageSchema = () => ({
  page: z.int().check(z.minimum(1)),
  per_page: z.int().check(z.minimum(1)),
  total: count(),
  pages: count(),
});

export function encodePage<T>(
  name: string,
  page: Page<T>,
  encode: (item: T) => JsonAnswer | JsonFields,
): JsonAnswer {
  return {
    [name]: page.rows.map(encode),
    page: page.page,
    per_page: page.perPage,
    total: page.total,
    pages: page.pages,
  };
}

/** Of a list that can also be read by cursor: then it has no numbers of pages, and no total. */
export const cursorPageSchema = () => ({
  page: z.nullable(z.int()),
  per_page: z.int(),
  total: z.nullable(z.int()),
  pages: z.nullable(z.int()),
  next_cursor: z.nullable(z.string()),
});

export function encodeCursorPage<T>(
  name: string,
  { rows, page, perPage, total, next }: CursorPage<T>,
  encode: (item: T) => JsonAnswer | JsonFields,
): JsonAnswer {
  return {
    [name]: rows.map(encode),
    page,
    per_page: perPage,
    total,
    pages: total === null ? null : Math.ceil(total / perPage),
    next_cursor: next && encodeCursor(next),
  };
}
