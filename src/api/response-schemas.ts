/**
 * Response schemas and encoders: for each resource the zod schema of its JSON (tests check the answers against it) and
 * its encoding in a variant. Encoding turns epoch milliseconds into ISO 8601, and millionths into LUX.
 */
import * as z from "zod/mini";
import { type LoggedEvent, EVENT_KINDS } from "../domain/event.ts";
import { OUTPUT_POINTER } from "../domain/compare.ts";
import { toLux } from "../domain/lux.ts";
import { isVerified } from "../domain/file.ts";
import { KEY_STATES, stateOf } from "../domain/key.ts";
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
  type TaskSummary,
  type Usage,
  ATTACHMENTS,
  BROADCAST_TYPES,
  FAILURE_KINDS,
  KEY_ROLES,
  ON_REVIEW_TIMEOUT,
  QUESTION_STATES,
  QUORUM_STATES,
  REVIEW_STATES,
  SEND_TYPES,
} from "../domain/model.ts";
import { threadOf } from "../domain/message.ts";
import { isAsking } from "../domain/task/facet/questions.ts";
import { isInReview } from "../domain/task/state.ts";
import { isReady } from "../domain/task/facets.ts";
import { isSealed, shownFailure, summaryLine } from "../domain/task/failure.ts";
import { costOf, toUsd } from "../domain/task/facet/spending.ts";
import { parseExact } from "../lib/exact-json.ts";
import { DAY_MS, isoTime, SECOND_MS } from "../lib/clock.ts";
import { JsonFields } from "../lib/json-text.ts";
import type { CursorPage, Page } from "../service/list-pages.ts";
import type { ChainedEntry } from "../store/sql/lux.ts";
import type { Variant } from "../variant/variant.ts";
import type { JsonAnswer } from "./answer.ts";
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
/** The date of a day (spending.ts). */
export const dayText = (day: number): string => isoTime(day * DAY_MS).slice(0, 10);

export const nodeSchema = (variant: Variant) =>
  z.strictObject({
    node_id: z.string(),
    name: z.string(),
    status: z.enum(["online", "offline"]),
    host: z.nullable(z.string()),
    port: z.nullable(z.int()),
    capabilities: typeof variant.capabilityWords([]) === "string" ? z.string() : z.array(z.string()),
    resources: z.optional(resourcesSchema()),
    resources_used: z.optional(resourcesSchema()),
    max_tasks: z.nullable(z.int()),
    auto_assign: z.boolean(),
    draining: z.boolean(),
    registered_at: time(),
    last_heartbeat: time(),
    lux_balance: z.number(),
    tasks_assigned: count(),
    tasks_completed: count(),
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

/** The further keys are those that the worker sent. */
export const resultSchema = () =>
  z.looseObject({ problem: z.string(), improvement: z.string(), lesson: z.string() });

export const failureSchema = () =>
  z.strictObject({
    kind: z.enum(FAILURE_KINDS),
    message: z.nullable(z.string()),
    node_id: z.nullable(z.string()),
    at: time(),
  });

/** `cost_usd` is null when no report had a cost. */
export const spendingSchema = () =>
  z.strictObject({
    input_tokens: count(),
    output_tokens: count(),
    cached_tokens: count(),
    cost_usd: z.nullable(z.number()),
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

/** The check of a task's results. What says something of the last one is null until there is one. */
export const reviewSchema = () =>
  z.strictObject({
    by: z.string(),
    within_s: z.number(),
    on_timeout: z.enum(ON_REVIEW_TIMEOUT),
    state: z.nullable(z.enum(REVIEW_STATES)),
    epoch: z.nullable(count()),
    until: z.nullable(time()),
    note: z.nullable(z.string()),
    reviewed_by: z.nullable(z.string()),
    reviewed_at: z.nullable(time()),
    timed_out: z.boolean(),
  });

export function encodeReview({ by, withinMs, onTimeout, check }: Review) {
  return {
    by,
    within_s: withinMs / SECOND_MS,
    on_timeout: onTimeout,
    state: check?.state ?? null,
    epoch: check?.epoch ?? null,
    until: maybeTime(check?.until ?? null),
    note: check?.note ?? null,
    reviewed_by: check?.decidedBy ?? null,
    reviewed_at: maybeTime(check?.decidedAt ?? null),
    timed_out: check?.timedOut ?? false,
  };
}

export const quorumSchema = () =>
  z.strictObject({
    results: count(),
    of: count(),
    compare: z.string(),
    state: z.enum(QUORUM_STATES),
    copies: z.array(z.string()),
    agreed: z.array(z.string()),
  });

export function encodeQuorum({ results, of, compare, state, copies, agreed }: Quorum) {
  return { results, of, compare: comparedWord(compare), state, copies, agreed };
}

/** As it is in a request. */
export function comparedWord(pointers: readonly string[]): string {
  const isOutput = pointers.length === 1 && pointers[0] === OUTPUT_POINTER;
  return isOutput ? "output" : `json:${pointers.join(",")}`;
}

export const taskSchema = (variant: Variant) =>
  z.strictObject({
    task_id: z.string(),
    ...shownFields("task", variant),
    creator_verified: z.boolean(),
    status: statusWord(variant),
    assigned_node: z.nullable(z.string()),
    result: z.nullable(resultSchema()),
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
    review: z.optional(reviewSchema()),
    quorum: z.optional(quorumSchema()),
    parent_task: z.optional(z.string()),
    made_for: z.optional(z.enum(["review", "copy"])),
    sealed: z.optional(z.literal(true)),
    failure: z.nullable(failureSchema()),
    files: z.array(z.string()),
    inputs: z.array(z.string()),
    outputs: z.array(z.string()),
    schedule: z.optional(z.strictObject({ name: z.string(), at: z.nullable(time()) })),
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

/** A task without its long texts: what a row of a list shows. */
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
    unmet_count: count(),
    started_at: z.nullable(time()),
    progress: z.nullable(z.string()),
    waiting_for: z.nullable(z.enum(["answer", "review"])),
    parent_task: z.optional(z.string()),
    made_for: z.optional(z.enum(["review", "copy"])),
    failure: z.nullable(failureSchema()),
    schedule: z.optional(z.strictObject({ name: z.string(), at: z.nullable(time()) })),
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

/** A task with those that it waits for: only the answer with a single task shows them. */
export const waitingTaskSchema = (variant: Variant) =>
  z.extend(taskSchema(variant), {
    unmet: z.strictObject({ count: count(), task_ids: z.array(z.string()) }),
  });

/** What task/wait shows of each task. */
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
    name: z.string(),
    node_id: z.string(),
    task_id: z.nullable(z.string()),
    shared: z.boolean(),
    fencing: z.int(),
    ttl_s: z.number(),
    acquired_at: time(),
    until: time(),
  });

/** The lease runs on the steady clock; the response shows wall-clock time. */
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

export const leaseSchema = () => z.strictObject({ epoch: count(), expires_at: z.nullable(time()) });

/** The lease runs on the steady clock; the answer shows wall-clock time. */
export function encodeLease({ epoch, leaseUntil }: Task, { now, steady }: Moment): JsonAnswer {
  return { epoch, expires_at: maybeTime(leaseUntil === null ? null : now + leaseUntil - steady) };
}

/** @param shorten of its message */
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
    question: z.string(),
    choices: z.array(z.string()),
    schema: z.nullable(z.record(z.string(), z.unknown())),
    asked_by: z.string(),
    asked_at: time(),
    until: time(),
    state: z.enum(QUESTION_STATES),
    answer: z.unknown(),
    answered_by: z.nullable(z.string()),
    answered_at: z.nullable(time()),
    verified: z.boolean(),
  });

/** `answer` is null until there is one; `verified` is about who answered. */
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
    to_node: z.nullable(z.string()),
    content: z.string(),
    type: messageType(),
    require_ack: z.boolean(),
    reply_to: z.nullable(z.string()),
    thread: z.string(),
    verified: z.boolean(),
    sent_at: time(),
  });

/** `to_node` is null for a broadcast. */
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
  z.extend(messageSchema(), { redelivered: z.boolean(), deliveries: z.int().check(z.minimum(1)) });

export function encodeDelivery({ message, deliveries }: Delivery): JsonAnswer {
  return { ...encodeMessage(message), redelivered: deliveries > 1, deliveries };
}

export const stateWord = () => z.enum(["waiting", "delivered", "acked", "parked"]);

export const fateSchema = () =>
  z.extend(messageSchema(), {
    state: z.nullable(stateWord()),
    deliveries: z.nullable(count()),
    recipients: z.nullable(
      z.strictObject({ waiting: count(), delivered: count(), acked: count(), parked: count() }),
    ),
  });

/** `state` and `deliveries` are null for a broadcast that the node sent, `recipients` for every other message. */
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
    seq: z.int(),
    id: z.string(),
    node_id: z.nullable(z.string()),
    from: z.string(),
    to: z.string(),
    amount: z.number(),
    kind: z.enum(["reward", "signin", "hold", "return"]),
    task_id: z.nullable(z.string()),
    at: time(),
    prev_hash: z.nullable(z.string()),
    hash: z.nullable(z.string()),
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

export const ledgerHeadSchema = () => z.strictObject({ seq: z.int(), hash: z.nullable(z.string()) });

export const receiptSchema = () =>
  z.strictObject({ entry_id: z.string(), amount: z.number(), hash: z.nullable(z.string()) });

export function encodeReceipt({ entryId, amountMicro, hash }: Receipt): JsonAnswer {
  return { entry_id: entryId, amount: toLux(amountMicro), hash };
}

export const fileSchema = () =>
  z.strictObject({
    file_id: z.string(),
    name: z.string(),
    size: count(),
    sha256: z.string(),
    content_type: z.string(),
    metadata: z.record(z.string(), z.unknown()),
    node_id: z.nullable(z.string()),
    verified: z.boolean(),
    task_id: z.nullable(z.string()),
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
    name: z.string(),
    role: z.enum(KEY_ROLES),
    state: z.enum(KEY_STATES),
    variant: z.nullable(z.enum(["A", "B"])),
    node_id: z.nullable(z.string()),
    mint_per_day: z.nullable(z.number()),
    created_at: z.nullable(time()),
    expires_at: z.nullable(time()),
    revoked_at: z.nullable(time()),
    used: z.optional(usageSchema()),
  });

const usageSchema = () => z.strictObject({ tasks: z.int(), bytes: z.int() });

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
    id: z.int().check(z.minimum(1)),
    kind: z.enum(EVENT_KINDS),
    at: time(),
    node_id: z.nullable(z.string()),
    task_id: z.nullable(z.string()),
    verified: z.boolean(),
    data: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  });

export function encodeEvent(event: LoggedEvent): JsonAnswer {
  return {
    id: event.id,
    kind: event.kind,
    at: isoTime(event.at),
    node_id: event.nodeId,
    task_id: event.taskId,
    verified: event.verified,
    data: event.data,
  };
}

export const pageSchema = () => ({
  page: z.int().check(z.minimum(1)),
  per_page: z.int().check(z.minimum(1)),
  total: count(),
  pages: count(),
});

/** One page of a list; `name` is the field that has the items. */
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
