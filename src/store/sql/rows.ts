/** Decodes rows into values of the domain. The columns are those of tables.ts. */
import type { Outcome } from "../../domain/change.ts";
import type { LoggedEvent } from "../../domain/event.ts";
import { TREASURY } from "../../domain/lux.ts";
import type {
  Checkpoint,
  Child,
  Delivery,
  DeliveryStub,
  Failure,
  FileRecord,
  Invitation,
  Kept,
  KeyRecord,
  Lease,
  LedgerEntry,
  Message,
  MessageFate,
  Node,
  Note,
  NoteHead,
  PendingReview,
  Pulse,
  Question,
  Quorum,
  Requirements,
  Resources,
  Review,
  Schedule,
  Task,
  TaskOrigin,
  TaskState,
  TaskSummary,
  Usage,
  Webhook,
} from "../../domain/model.ts";
import { addResources } from "../../domain/lane.ts";
import {
  soundCheckpoint,
  soundChild,
  soundDelivery,
  soundEntry,
  soundFile,
  soundInvitation,
  soundKey,
  soundLease,
  soundMessage,
  soundNode,
  soundNote,
  soundProgress,
  soundQuestion,
  soundQuorum,
  soundReview,
  soundSchedule,
  soundUsage,
} from "../../domain/sound.ts";
import type { Dependency } from "../../domain/task/facet/dependencies.ts";
import { shownFailure } from "../../domain/task/failure.ts";
import { DEFAULT_TERMS } from "../../domain/task/template.ts";
import { assert, must } from "../../lib/assert.ts";
import { fewTermsOf, fewTermsOfSummary } from "./few-terms.ts";
import type { Param, Row } from "../store.ts";

const NAMED = "a row has every column that it is decoded from";

// The casts below are safe: the tables are STRICT, and only the rules write to them.
const text = (value: Param | undefined): string => column(value) as string;
const maybeText = (value: Param | undefined): string | null => maybe(value) as string | null;
const whole = (value: Param | undefined): number => Number(column(value));
const maybeWhole = (value: Param | undefined): number | null => {
  const stored = maybe(value);
  return stored === null ? null : Number(stored);
};
const big = (value: Param | undefined): bigint => BigInt(column(value));
const flag = (value: Param | undefined): boolean => column(value) === 1;

/** Of a column that a query must name and that is not NULL. */
function column(value: Param | undefined): string | number | bigint {
  return must(value, NAMED);
}

/** Of a column that a query must name. */
function maybe(value: Param | undefined): Param {
  assert(value !== undefined, NAMED);
  return value;
}

/** ",a,b,", so that a search for ",a," finds a capability; "" for no capabilities. */
export function encodeCapabilities(capabilities: readonly string[]): string {
  return capabilities.length === 0 ? "" : `,${capabilities.join(",")},`;
}

function decodeCapabilities(stored: string): readonly string[] {
  return stored === "" ? [] : stored.slice(1, -1).split(",");
}

/** The capabilities of a node, from their column. */
export function capabilitiesOf(row: Row): readonly string[] {
  return decodeCapabilities(text(row["capabilities"]));
}

const NO_RESOURCES: Pick<Node, "resources" | "used"> = { resources: {}, used: {} };

/** The resources of a node, and what its unfinished tasks use of them: USED of nodes.ts. */
export function resourcesOf(row: Row): Pick<Node, "resources" | "used"> {
  const resources = maybeText(row["resources"]);
  if (resources === null) return NO_RESOURCES;
  const held = maybeText(row["used"]);
  const used = (held === null ? [] : held.split("\n")).reduce<Resources>((sum, line) => {
    const at = line.indexOf(" ");
    const { resources: each } = JSON.parse(line.slice(at + 1)) as Requirements;
    const times = Number(line.slice(0, at));
    return addResources(sum, Object.fromEntries(Object.entries(each).map(([name, n]) => [name, n * times])));
  }, {});
  return { resources: JSON.parse(resources) as Resources, used };
}

/** NULL for none. */
export function encodeResources(resources: Resources): string | null {
  return Object.keys(resources).length === 0 ? null : JSON.stringify(resources);
}

export function decodeRequires(stored: string | null): Requirements | null {
  return stored === null ? null : (JSON.parse(stored) as Requirements);
}

/** Encodes the ids of tasks as one text; NULL for none. */
export function encodeDependsOn(taskIds: readonly string[]): string | null {
  return taskIds.length === 0 ? null : taskIds.join(",");
}

/** ",a,b,", so that a search for ",a," finds a tag, which has no comma; NULL for none. */
export function encodeTags(tags: readonly string[]): string | null {
  return tags.length === 0 ? null : encodeCapabilities(tags);
}

/** Encodes the choices of a question as one text; NULL for none. */
export function encodeChoices(choices: readonly string[]): string | null {
  return choices.length === 0 ? null : JSON.stringify(choices);
}

export function encodeOriginIds({ contextId, messageId }: TaskOrigin): string {
  return JSON.stringify({ context: contextId, message: messageId });
}

/** Decodes each different list once, for a caller that reads the same nodes repeatedly. */
export class CapabilityLists {
  readonly #decoded = new Map<string, readonly string[]>();

  decode(stored: string): readonly string[] {
    let list = this.#decoded.get(stored);
    if (!list) this.#decoded.set(stored, (list = decodeCapabilities(stored)));
    return list;
  }
}

export function toNode(row: Row): Node {
  return soundNode({
    nodeId: text(row["node_id"]),
    name: text(row["name"]),
    host: maybeText(row["host"]),
    port: maybeWhole(row["port"]),
    capabilities: capabilitiesOf(row),
    ...resourcesOf(row),
    variant: text(row["variant"]) as Node["variant"],
    maxTasks: maybeWhole(row["max_tasks"]),
    autoAssign: flag(row["auto_assign"]),
    draining: flag(row["draining"]),
    online: flag(row["online"]),
    hasLeases: flag(row["has_leases"]),
    registeredAt: whole(row["registered_at"]),
    lastHeartbeatAt: whole(row["last_heartbeat_at"]),
    leaseUntil: whole(row["lease_until"]),
    tasksAssigned: whole(row["tasks_assigned"]),
    tasksCompleted: whole(row["tasks_completed"]),
    luxEarnedMicro: big(row["lux_earned"]),
    idleSince: whole(row["idle_since"]),
    entries: whole(row["entries"]),
    balanceMicro: big(row["balance"]),
  });
}

export function toPulse(row: Row): Pulse {
  return {
    nodeId: text(row["node_id"]),
    variant: text(row["variant"]) as Node["variant"],
    online: flag(row["online"]),
    draining: flag(row["draining"]),
    tasksAssigned: whole(row["tasks_assigned"]),
  };
}

const OLD_TEMPLATE: Partial<Schedule["task"]> = { ...DEFAULT_TERMS, creatorKey: null };
const NO_FILES: Pick<Task, "files" | "outputs"> = { files: [], outputs: [] };
/** Follows the id of an output in the list of a task's files. */
export const OUTPUT_MARK = "+";

function decodeFiles(stored: string): Pick<Task, "files" | "outputs"> {
  const files: string[] = [];
  const outputs: string[] = [];
  for (const marked of stored.split(",")) {
    const isOutput = marked.endsWith(OUTPUT_MARK);
    const fileId = isOutput ? marked.slice(0, -OUTPUT_MARK.length) : marked;
    files.push(fileId);
    if (isOutput) outputs.push(fileId);
  }
  return { files, outputs };
}

export function toChild(stored: Param | undefined): Task["child"] {
  const child = maybeText(stored);
  return child === null ? null : soundChild(JSON.parse(child) as Child);
}

function toReview(stored: string | null): Task["review"] {
  return stored === null ? null : soundReview(JSON.parse(stored) as Review);
}

function toQuorum(stored: string | null): Task["quorum"] {
  return stored === null ? null : soundQuorum(JSON.parse(stored) as Quorum);
}

/** The condition that the failure of a task, stored as JSON.stringify of a Failure, is of this kind. */
export function isFailedAs(kind: Failure["kind"]): string {
  const begins = `{"kind":"${kind}",`;
  return `substr(failure, 1, ${begins.length}) = '${begins}'`;
}

/** The code of `ready` of an open task that waits (encodeReady()). */
const WAITS = 0;

export function toTask(row: Row): Task {
  const storedFiles = maybeText(row["files"]);
  const { files, outputs } = storedFiles === null ? NO_FILES : decodeFiles(storedFiles);
  const dependsOn = maybeText(row["depends_on"]);
  const failure = maybeText(row["failure"]);
  const earlierFailures = maybeText(row["earlier_failures"]);
  const questions = maybeText(row["questions"]);
  const spent = maybeText(row["spent"]);
  const review = maybeText(row["review"]);
  const quorum = maybeText(row["quorum"]);
  const notNodes = maybeText(row["not_nodes"]);
  return {
    seq: whole(row["seq"]),
    taskId: text(row["task_id"]),
    title: text(row["title"]),
    description: text(row["description"]),
    taskType: text(row["task_type"]),
    priority: whole(row["priority"]) as Task["priority"],
    creatorNode: maybeText(row["creator_node"]),
    creatorVerified: flag(row["creator_verified"]),
    creatorKey: maybeText(row["creator_key"]),
    status: text(row["status"]) as Task["status"],
    luxRewardMicro: whole(row["lux_reward_micro"]),
    assignedNode: maybeText(row["assigned_node"]),
    result: toResult(row),
    resultVerified: flag(row["result_verified"]),
    paidSeq: maybeWhole(row["paid_seq"]),
    balanced: flag(row["balanced"]),
    revokedFrom: maybeText(row["revoked_from"]),
    attempts: whole(row["attempts"]),
    failures: whole(row["failures"]),
    restarts: whole(row["restarts"]),
    maxAttempts: maybeWhole(row["max_attempts"]),
    backoffMs: whole(row["backoff_ms"]),
    timeoutMs: maybeWhole(row["timeout_ms"]),
    maxRunMs: maybeWhole(row["max_run_ms"]),
    runUntil: maybeWhole(row["run_until"]),
    leaseUntil: maybeWhole(row["lease_until"]),
    epoch: whole(row["epoch"]),
    notBefore: maybeWhole(row["not_before"]),
    expiresAt: maybeWhole(row["expires_at"]),
    dependsOn: dependsOn === null ? [] : dependsOn.split(","),
    unmet: whole(row["unmet"]),
    hasDependents: flag(row["has_dependents"]),
    scheduled: maybeWhole(row["ready"]) === WAITS,
    startedAt: maybeWhole(row["started_at"]),
    progress: maybeText(row["progress"]),
    failure: failure === null ? null : (JSON.parse(failure) as Task["failure"]),
    earlierFailures: earlierFailures === null ? [] : (JSON.parse(earlierFailures) as Task["earlierFailures"]),
    checkpointBytes: whole(row["checkpoint_bytes"]),
    hasOutput: flag(row["has_output"]),
    questions: questions === null ? null : (JSON.parse(questions) as Task["questions"]),
    review: toReview(review),
    quorum: toQuorum(quorum),
    child: toChild(row["child"]),
    notNodes: notNodes === null ? [] : decodeCapabilities(notNodes),
    schedule:
      row["schedule"] == null ? null : { name: text(row["schedule"]), at: maybeWhole(row["schedule_at"]) },
    limitKey: maybeText(row["limit_key"]),
    lane: maybeText(row["lane"]) ?? String(row["task_type"]),
    countsFor: maybeText(row["counts_for"]),
    uniqueKey: maybeText(row["unique_key"]),
    uniqueUntil: maybeWhole(row["unique_until"]),
    onDependency: row["on_dependency"] === "run" ? "run" : "fail",
    spent: spent === null ? null : (JSON.parse(spent) as Task["spent"]),
    hasLeases: flag(row["has_leases"]),
    createdAt: whole(row["created_at"]),
    updatedAt: whole(row["updated_at"]),
    files,
    outputs,
    hasFeatures: maybe(row["features_of"]) !== null,
    lentBytes: whole(row["lent_bytes"]),
    ...fewTermsOf(row),
    keptBytes: whole(row["kept_bytes"]),
  };
}

export function toSchedule(row: Row): Schedule {
  return soundSchedule({
    name: text(row["name"]),
    timing: JSON.parse(text(row["timing"])) as Schedule["timing"],
    // One that was stored before there was a field has none.
    task: { ...OLD_TEMPLATE, ...(JSON.parse(text(row["task"])) as Schedule["task"]) },
    overlap: text(row["overlap"]) as Schedule["overlap"],
    catchUp: text(row["catch_up"]) as Schedule["catchUp"],
    jitterMs: whole(row["jitter_ms"]),
    until: maybeWhole(row["until"]),
    paused: flag(row["paused"]),
    nextAt: maybeWhole(row["next_at"]),
    lastTaskId: maybeText(row["last_task_id"]),
    lastAt: maybeWhole(row["last_at"]),
    skipLoggedAt: maybeWhole(row["skip_logged_at"]),
    ...keptOf(row),
    createdAt: whole(row["created_at"]),
    updatedAt: whole(row["updated_at"]),
  });
}

export function toWebhook(row: Row): Webhook {
  const push = maybeText(row["push"]);
  return soundProgress({
    name: text(row["name"]),
    webhookId: text(row["webhook_id"]),
    revision: whole(row["revision"]),
    url: text(row["url"]),
    format: text(row["format"]) as Webhook["format"],
    filter: JSON.parse(text(row["filter"])) as Webhook["filter"],
    push: push === null ? null : (JSON.parse(push) as Webhook["push"]),
    secret: maybeText(row["secret"]),
    cursor: whole(row["cursor_id"]),
    state: text(row["state"]) as Webhook["state"],
    attempts: whole(row["attempts"]),
    failingSince: maybeWhole(row["failing_since"]),
    nextAt: maybeWhole(row["next_at"]),
    lastError: maybeText(row["last_error"]),
    deliveredAt: maybeWhole(row["delivered_at"]),
    ...keptOf(row),
    createdAt: whole(row["created_at"]),
    updatedAt: whole(row["updated_at"]),
  });
}

export function toTaskSummary(row: Row): TaskSummary {
  const failure = maybeText(row["failure"]);
  const questions = maybeText(row["questions"]);
  const review = maybeText(row["review"]);
  const quorum = maybeText(row["quorum"]);
  return {
    seq: whole(row["seq"]),
    taskId: text(row["task_id"]),
    title: text(row["title"]),
    taskType: text(row["task_type"]),
    priority: whole(row["priority"]) as Task["priority"],
    creatorNode: maybeText(row["creator_node"]),
    status: text(row["status"]) as Task["status"],
    luxRewardMicro: whole(row["lux_reward_micro"]),
    assignedNode: maybeText(row["assigned_node"]),
    attempts: whole(row["attempts"]),
    maxAttempts: maybeWhole(row["max_attempts"]),
    notBefore: maybeWhole(row["not_before"]),
    expiresAt: maybeWhole(row["expires_at"]),
    unmet: whole(row["unmet"]),
    startedAt: maybeWhole(row["started_at"]),
    progress: maybeText(row["progress"]),
    failure: failure === null ? null : (JSON.parse(failure) as Task["failure"]),
    questions: questions === null ? null : (JSON.parse(questions) as Task["questions"]),
    review: toReview(review),
    quorum: toQuorum(quorum),
    child: toChild(row["child"]),
    schedule:
      row["schedule"] == null ? null : { name: text(row["schedule"]), at: maybeWhole(row["schedule_at"]) },
    ...fewTermsOfSummary(row),
    createdAt: whole(row["created_at"]),
    updatedAt: whole(row["updated_at"]),
  };
}

export function toChoosyTask(row: Row): Pick<Task, "seq" | "taskId" | "taskType" | "requires" | "notNodes"> {
  return {
    seq: whole(row["seq"]),
    taskId: text(row["task_id"]),
    taskType: text(row["task_type"]),
    requires: decodeRequires(maybeText(row["requires"])),
    notNodes: decodeCapabilities(text(row["not_nodes"])),
  };
}

export function toTaskState(row: Row): TaskState {
  const failure = maybeText(row["failure"]);
  return {
    taskId: text(row["task_id"]),
    title: text(row["title"]),
    status: text(row["status"]) as Task["status"],
    assignedNode: maybeText(row["assigned_node"]),
    progress: maybeText(row["progress"]),
    failure: failure === null ? null : (JSON.parse(failure) as Task["failure"]),
    child: toChild(row["child"]),
    updatedAt: whole(row["updated_at"]),
  };
}

/** The failure of a task that has one, as everybody may read it. */
export function toShownFailure(row: Row): Failure {
  const failure = JSON.parse(text(row["failure"])) as Failure; // the rules write it
  return must(shownFailure({ failure, child: toChild(row["child"]) }), "it has one");
}

export function toResult(row: Row): Task["result"] {
  const problem = maybeText(row["problem"]);
  if (problem === null) return null;
  return {
    problem,
    improvement: text(row["improvement"]),
    lesson: text(row["lesson"]),
    extra: maybeText(row["result_extra"]),
  };
}

export function toNoteHead(row: Row): NoteHead {
  return soundNote({
    key: text(row["key"]),
    version: whole(row["version"]),
    nodeId: maybeText(row["node_id"]),
    verified: flag(row["verified"]),
    bytes: whole(row["bytes"]),
    createdAt: whole(row["created_at"]),
    updatedAt: whole(row["updated_at"]),
  });
}

export function toNote(row: Row): Note {
  const { bytes: _, ...note } = toNoteHead(row);
  return { ...note, text: text(row["content"]), ...keptOf(row) };
}

function keptOf(row: Row): { readonly kept?: Kept } {
  const by = maybeText(row["kept_by"]);
  return by === null ? {} : { kept: { by, bytes: whole(row["kept_bytes"]) } };
}

export function toLease(row: Row): Lease {
  return soundLease({
    name: text(row["name"]),
    nodeId: text(row["node_id"]),
    taskId: text(row["task_id"]) || null,
    shared: flag(row["shared"]),
    fencing: whole(row["fencing"]),
    ttlMs: whole(row["ttl_ms"]),
    leaseUntil: whole(row["lease_until"]),
    acquiredAt: whole(row["acquired_at"]),
  });
}

export function toCheckpoint(row: Row): Checkpoint {
  return soundCheckpoint({
    data: text(row["data"]),
    epoch: whole(row["epoch"]),
    nodeId: text(row["node_id"]),
    at: whole(row["at"]),
  });
}

export function toQuestion(row: Row): Question {
  const choices = maybeText(row["choices"]);
  return soundQuestion({
    questionId: text(row["question_id"]),
    taskId: text(row["task_id"]),
    question: text(row["question"]),
    choices: choices === null ? [] : (JSON.parse(choices) as Question["choices"]),
    schema: maybeText(row["schema"]),
    askedBy: text(row["asked_by"]),
    epoch: whole(row["epoch"]),
    askedAt: whole(row["asked_at"]),
    until: whole(row["until"]),
    state: text(row["state"]) as Question["state"],
    answer: maybeText(row["answer"]),
    answeredBy: maybeText(row["answered_by"]),
    answeredAt: maybeWhole(row["answered_at"]),
    verified: flag(row["verified"]),
  });
}

/** The long texts of a task together: roughly what it takes in memory. */
export function charsOf({ description, progress, failure, earlierFailures, dependsOn, tags }: Task): number {
  const idChars = dependsOn[0]?.length ?? 0;
  return (
    description.length +
    (progress?.length ?? 0) +
    (failure?.message?.length ?? 0) +
    earlierFailures.reduce((sum, { message }) => sum + (message?.length ?? 0), 0) +
    dependsOn.length * idChars +
    tags.reduce((sum, tag) => sum + tag.length, 0)
  );
}

/** A task that was created through A2A. */
export function toSentTask(row: Row): { readonly task: Task; readonly origin: TaskOrigin } {
  return {
    task: toTask(row),
    origin: { caller: text(row["a2a_caller"]), ...decodeOriginIds(text(row["a2a_ids"])) },
  };
}

export function decodeOriginIds(stored: string): Omit<TaskOrigin, "caller"> {
  const { context, message } = JSON.parse(stored) as { context: string; message: string };
  return { contextId: context, messageId: message };
}

export function toDependency(row: Row): Dependency {
  return {
    taskId: text(row["task_id"]),
    status: text(row["status"]) as Task["status"],
    hasDependents: flag(row["has_dependents"]),
    brokenBy: maybeText(row["broken_by"]),
    inReview: maybeWhole(row["review_until"]) !== null,
  };
}

export function toPendingReview(row: Row): PendingReview {
  return {
    seq: whole(row["seq"]),
    taskId: text(row["task_id"]),
    title: text(row["title"]),
    creatorNode: maybeText(row["creator_node"]),
    assignedNode: maybeText(row["assigned_node"]),
    luxRewardMicro: whole(row["lux_reward_micro"]),
    review: JSON.parse(text(row["review"])) as PendingReview["review"],
  };
}

export function toSettlement(row: Row): {
  readonly taskId: string;
  readonly outcome: Outcome;
  /** The task at the root of it: see Dependency. */
  readonly root: string;
} {
  const taskId = text(row["task_id"]);
  return { taskId, outcome: text(row["outcome"]) as Outcome, root: maybeText(row["broken_by"]) ?? taskId };
}

export function toLedgerEntry(row: Row): LedgerEntry {
  return soundEntry({
    seq: whole(row["seq"]),
    id: text(row["entry_id"]),
    from: (maybeText(row["from_account"]) ?? TREASURY) as LedgerEntry["from"],
    to: (maybeText(row["to_account"]) ?? `node:${text(row["node_id"])}`) as LedgerEntry["to"],
    nodeId: maybeText(row["node_id"]),
    n: maybeWhole(row["n"]),
    balanceMicro: row["balance"] == null ? null : big(row["balance"]),
    amountMicro: whole(row["amount_micro"]),
    kind: text(row["kind"]) as LedgerEntry["kind"],
    taskId: maybeText(row["task_id"]),
    at: whole(row["at"]),
    hash: maybeText(row["hash"]),
  });
}

export function toMessage(row: Row): Message {
  return soundMessage({
    messageId: text(row["message_id"]),
    fromNode: text(row["from_node"]),
    toNode: maybeText(row["to_node"]),
    type: text(row["type"]) as Message["type"],
    content: text(row["content"]),
    requireAck: flag(row["require_ack"]),
    replyTo: maybeText(row["reply_to"]),
    thread: maybeText(row["thread"]),
    verified: flag(row["verified"]),
    sentAt: whole(row["sent_at"]),
  });
}

export function toDeliveryStub(row: Row): DeliveryStub {
  return soundDelivery({
    messageId: text(row["message_id"]),
    fromNode: text(row["from_node"]),
    broadcast: flag(row["broadcast"]),
    seq: whole(row["seq"]),
    toNode: text(row["delivered_to"]),
    state: text(row["state"]) as DeliveryStub["state"],
    deliveries: whole(row["deliveries"]),
    leaseUntil: maybeWhole(row["lease_until"]),
  });
}

export function toDelivery(row: Row): Delivery {
  return { ...toDeliveryStub(row), message: toMessage(row) };
}

/** The delivery is in the columns of toDeliveryStub(), the counts of a broadcast in `waiting` and so on. */
export function toMessageFate(row: Row): MessageFate {
  const isDelivered = row["state"] != null;
  return {
    message: toMessage(row),
    delivery: isDelivered
      ? { state: text(row["state"]) as Delivery["state"], deliveries: whole(row["deliveries"]) }
      : null,
    recipients:
      row["waiting"] == null
        ? null
        : {
            waiting: whole(row["waiting"]),
            delivered: whole(row["delivered"]),
            acked: whole(row["acked"]),
          },
  };
}

export function toFile(row: Row): FileRecord {
  return soundFile({
    fileId: text(row["file_id"]),
    name: text(row["name"]),
    sizeBytes: whole(row["size_bytes"]),
    sha256: text(row["sha256"]),
    contentType: text(row["content_type"]),
    metadata: text(row["metadata"]),
    nodeId: maybeText(row["node_id"]),
    taskId: maybeText(row["task_id"]),
    attached: row["task_id"] == null ? null : flag(row["output"]) ? "output" : "input",
    uploadedAt: whole(row["uploaded_at"]),
    keptBytes: whole(row["kept_bytes"]),
  });
}

export function toEvent(row: Row): LoggedEvent {
  return {
    id: whole(row["id"]),
    at: whole(row["at"]),
    kind: text(row["kind"]) as LoggedEvent["kind"],
    nodeId: maybeText(row["node_id"]),
    taskId: maybeText(row["task_id"]),
    data: JSON.parse(text(row["data"])) as LoggedEvent["data"],
    verified: flag(row["verified"]),
  };
}

export function toUsage(row: Row): Usage {
  return soundUsage({ tasks: whole(row["tasks"]), bytes: whole(row["bytes"]) });
}

export function toKey(row: Row): KeyRecord {
  return soundKey({
    keyId: text(row["key_id"]),
    role: text(row["role"]) === "secret" ? "full" : (text(row["role"]) as KeyRecord["role"]),
    hash: text(row["hash"]),
    variant: maybeText(row["variant"]) as KeyRecord["variant"],
    nodeId: maybeText(row["node_id"]),
    mintMicro: maybeWhole(row["mint_micro"]),
    createdAt: whole(row["created_at"]),
    expiresAt: maybeWhole(row["expires_at"]),
    revokedAt: maybeWhole(row["revoked_at"]),
  });
}

export function toInvitation(row: Row): Invitation {
  return soundInvitation({
    invitationId: text(row["invitation_id"]),
    tokenHash: text(row["token_hash"]),
    nodeId: text(row["node_id"]),
    createdAt: whole(row["created_at"]),
    expiresAt: whole(row["expires_at"]),
    usedAt: maybeWhole(row["used_at"]),
    keyId: maybeText(row["key_id"]),
  });
}
