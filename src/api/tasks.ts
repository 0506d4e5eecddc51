/** The endpoints of tasks: task/*. */
import * as z from "zod/mini";
import { isForOther } from "../domain/lane.ts";
import { groupsNamed } from "../domain/task/facet/group.ts";
import * as limit from "../domain/limits.ts";
import { toLux } from "../domain/lux.ts";
import { traceOf } from "../domain/trace.ts";
import { OUTPUT_POINTER } from "../domain/compare.ts";
import { PRIMARY_KEY_ID } from "../domain/key.ts";
import {
  type KeyRecord,
  type Moment,
  type Task,
  type TaskStatus,
  type TaskSummary,
  type UsageReport,
  TASK_STATUSES,
} from "../domain/model.ts";
import { budgetLeft, toUsd } from "../domain/task/facet/spending.ts";
import type { Completion } from "../domain/task/facet/reward.ts";
import type { Created } from "../domain/task/creation.ts";
import type { HolderRequest } from "../domain/task/request.ts";
import { PATCH_FIELDS } from "../domain/task/creator.ts";
import type { TaskDraft } from "../domain/task/new-task.ts";
import { isSealed } from "../domain/task/failure.ts";
import type { RejectionCode } from "../domain/decision.ts";
import { type FieldError, Problem, invalidRequest } from "../http/problem.ts";
import { assert } from "../lib/assert.ts";
import { SECOND_MS } from "../lib/clock.ts";
import {
  type BalanceReport,
  type BatchItem,
  type Creation,
  type References,
  type RetryOutcome,
  UnusableReferences,
} from "../service/tasks.ts";
import type { NextAnswer } from "../service/next.ts";
import type { PageRequest } from "../service/list-pages.ts";
import {
  type ChangePage,
  type TaskLists,
  type TaskPage,
  type TaskQuery,
  isSearch,
} from "../service/task-lists.ts";
import type { Committed } from "../store/store.ts";
import type { Variant } from "../variant/variant.ts";
import type { JsonAnswer, JsonFields } from "./answer.ts";
import {
  type Call,
  type Endpoint,
  type ReadCall,
  BY_NODE,
  MUST_NOT_WAIT,
  readEndpoint,
  writeEndpoint,
} from "./endpoint.ts";
import { checkHold } from "./limits.ts";
import * as field from "./request-fields.ts";
import { CLEARABLE, createFields, newTaskFields, patchFields, patchIn, termsIn } from "./task-fields.ts";
import { faultsIn, inputParser, invalidField } from "./input.ts";
import { keyBoundElsewhere } from "./error-table.ts";
import { contextSchema, encodeContext, encodeInput, inputSchema } from "./task-context.ts";
import {
  count,
  cursorPageSchema,
  encodeCursorPage,
  encodeLease,
  encodeReceipt,
  encodeTask,
  encodeTaskState,
  encodeTaskSummary,
  encodeTotals,
  leaseSchema,
  receiptSchema,
  statusWord,
  taskSchema,
  taskStateSchema,
  taskSummarySchema,
  waitingTaskSchema,
} from "./response-schemas.ts";
import {
  about,
  flag,
  maybeNumber,
  maybeString,
  maybeWhole,
  nullable,
  number,
  optional,
  whole,
} from "./about.ts";

const DISPATCH_REJECTIONS = [
  "node_not_found",
  "node_offline",
  "node_draining",
  "requirements_not_met",
  "budget_exceeded",
  "paused",
  "limit_reached",
] as const;
const HAS_ENDED = ["task_completed", "task_failed"] as const;

export const taskAnswer = (variant: Variant) =>
  z.strictObject({
    task_id: z.string(),
    status: statusWord(variant),
    assigned_node: z.nullable(z.string()),
    lease: leaseSchema(),
    task: taskSchema(variant),
  });

export function encodeTaskAnswer(task: Task, variant: Variant, at: Moment): JsonAnswer {
  return {
    task_id: task.taskId,
    status: variant.statusWord(task.status),
    assigned_node: task.assignedNode,
    lease: encodeLease(task, at),
    task: encodeTask(task, variant, at),
  };
}

const create = writeEndpoint({
  path: "/api/v1/task/create",
  auth: "secret",
  strict: "bound",
  summary: "Creates a task; on B the hub assigns it at once if a node is available",
  rejections: [
    ...DISPATCH_REJECTIONS,
    "mint_limit",
    "key_bound_to_other_node",
    "task_not_ready",
    "too_many_lanes",
    "gifts_limit",
  ],
  input: () =>
    z.object(createFields()).check(
      z.refine(({ unique_key, unique_for_s }) => unique_for_s === undefined || unique_key !== undefined, {
        path: ["unique_for_s"],
        message: "must not be sent without unique_key",
      }),
    ),
  unread: ["assigned_node"],
  actsFor: (input) => [input.creator_node],
  answer: (variant) =>
    z.extend(taskAnswer(variant), {
      deduplicated: optional(
        z.literal(true),
        "Only if true: no task was created, because this task has the `unique_key`.",
      ),
    }),
  handle: async (call, { for_node: nodeId, unique_key: key, unique_for_s: forMs = null, ...input }) => {
    const unique = key === undefined ? null : { key, forMs };
    const { tasks } = call.services;
    if (nodeId !== undefined) await checkMaySendTo(call, nodeId, input);
    return withDraft(call, input, (draft, references) => {
      const uniqueDraft = { ...draft, unique };
      const creation = { ...references, taskId: call.newTaskId };
      return nodeId === undefined
        ? tasks.create(call.transact, uniqueDraft, creation)
        : tasks.createSent(call.transact, uniqueDraft, creation, { origin: null, nodeId, files: [] });
    });
  },
  encode: (created: Created, variant: Variant, at: Moment) => {
    const answer = encodeTaskAnswer(created, variant, at);
    return created.deduplicated ? { ...answer, deduplicated: true } : answer;
  },
});

/**
 * Who gives a task to a node does not act for it: with a bound key it may do so for any node. On a strict hub another key
 * must be allowed to assign tasks. What a bound key sends to another node waits in a lane of the node (reservedFor()).
 * @throws {Problem} 403; 400 for what would make other lanes
 */
export async function checkMaySendTo(
  call: Pick<Call, "nodeOfKey" | "checkActsFor">,
  nodeId: string | null,
  draft: Pick<NewTask, "requires" | "limit_key">,
) {
  const boundTo = call.nodeOfKey;
  if (boundTo === null) return call.checkActsFor([nodeId], "administrator");
  if (nodeId === null || nodeId === boundTo) return;
  const paths = (["requires", "limit_key"] as const).filter((path) => draft[path] !== undefined);
  const message = "must not be sent with a task for another node, with a key that is bound to a node";
  if (paths.length > 0) throw invalidRequest(paths.map((path) => ({ path, message })));
}

const newTask = () => z.object(newTaskFields());
export type NewTask = z.infer<ReturnType<typeof newTask>>;

export const parseNewTask: (raw: unknown) => NewTask = inputParser(newTask);

export function faultsOfNewTask(raw: unknown): readonly FieldError[] {
  return faultsIn(() => parseNewTask(raw));
}

export async function withDraft<T>(
  {
    services,
    variant,
    key,
    nodeOfKey,
    at,
    exchange,
  }: Pick<Call, "services" | "variant" | "key" | "nodeOfKey" | "at" | "exchange">,
  sent: NewTask,
  create: (draft: TaskDraft, creation: Creation) => Promise<T>,
): Promise<T> {
  const { headers } = exchange.request;
  const trace = traceOf(headers.get("traceparent") ?? "", headers.get("tracestate") ?? "");
  const input = sent.traceparent === undefined ? { ...trace, ...sent } : sent;
  const { depends_on: dependsOn = [], files: fileIds = [], expires_at: expiresAt = null } = input;
  const named = { dependsOn, fileIds };
  const errors = schedulingErrors(input, at);
  if (errors.length > 0) {
    // Otherwise the transaction finds what cannot be named.
    const isAny = named.dependsOn.length > 0 || named.fileIds.length > 0;
    const unusable = isAny ? await services.tasks.unusable(named) : named;
    throw invalidRequest([...errors, ...unusableErrors(named, unusable)]);
  }
  const draft: TaskDraft = {
    ...draftOf({ services, variant, key, nodeOfKey }, input),
    notBefore: input.not_before ?? (input.delay_s === undefined ? null : at.now + input.delay_s),
    expiresAt,
    dependsOn: [...new Set(named.dependsOn)],
    onDependency: input.on_dependency ?? "fail",
    schedule: null,
  };
  try {
    return await create(draft, { fileIds: [...new Set(named.fileIds)], boundTo: nodeOfKey });
  } catch (error) {
    if (!(error instanceof UnusableReferences)) throw error;
    throw invalidRequest(unusableErrors(named, error.references));
  }
}

export function draftOf(
  { services, variant, key, nodeOfKey }: Pick<Call, "services" | "variant" | "key" | "nodeOfKey">,
  input: Omit<NewTask, "not_before" | "expires_at" | "depends_on" | "files">,
): Omit<TaskDraft, "notBefore" | "expiresAt" | "dependsOn" | "schedule"> {
  const boundTo = nodeOfKey;
  const { creator_node: creatorNode = boundTo, requires = null } = input;
  if (boundTo !== null && isForOther({ requires }, boundTo)) {
    throw invalidField(
      "requires.capabilities",
      "must not name another node with a key that is bound to a node: send for_node instead",
    );
  }
  const [, groupOwner] = input.group?.split("/") ?? [];
  if (groupOwner !== undefined && groupOwner !== boundTo)
    throw invalidField("group", "must not be a group of the keys of another node");
  return {
    ...termsOf(input),
    creatorNode,
    creatorVerified: creatorNode !== null && creatorNode === key?.nodeId,
    creatorKey: services.mints.creatorKeyOf(key),
    balanced: variant.autoAssign,
  };
}

/** What a draft has from its request alone, with the defaults. */
export function termsOf(
  input: Omit<NewTask, "not_before" | "expires_at" | "depends_on" | "files">,
): Pick<TaskDraft, "reviewTerms" | "quorumTerms"> & ReturnType<typeof termsIn> {
  return {
    ...termsIn(input),
    ...(input.review !== undefined && {
      reviewTerms: {
        by: input.review,
        withinMs: input.review_within_s ?? limit.REVIEW_DEFAULT_SECONDS * SECOND_MS,
        onTimeout: input.on_review_timeout ?? "pay",
      },
    }),
    ...(input.quorum !== undefined && {
      quorumTerms: {
        results: input.quorum.results,
        // So many that a majority of them can agree.
        of: input.quorum.of ?? Math.min(2 * input.quorum.results - 1, limit.QUORUM_COPIES_MAX),
        compare: input.quorum.compare ?? [OUTPUT_POINTER],
      },
    }),
  };
}

type Scheduling = {
  readonly [F in "review" | "quorum" | "delay_s" | "not_before" | "expires_at"]?: NewTask[F] | null;
};

function schedulingErrors(input: Scheduling, { now }: Moment): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (input.review !== undefined && input.quorum !== undefined)
    errors.push({ path: "review", message: "must not be sent together with quorum" });
  if (input.delay_s !== undefined && input.not_before !== undefined)
    errors.push({ path: "delay_s", message: "must not be sent together with not_before" });
  const latest = now + limit.TASK_AHEAD_MAX_SECONDS * SECOND_MS;
  for (const path of ["not_before", "expires_at"] as const)
    if (input[path] != null && input[path] > latest)
      errors.push({ path, message: `must be at most ${limit.TASK_AHEAD_MAX_SECONDS} s ahead` });
  if (input.expires_at != null && input.expires_at <= now)
    errors.push({ path: "expires_at", message: "must be in the future" });
  return errors;
}

function unusableErrors(named: References, unusable: References): readonly FieldError[] {
  const errorsOf = (field: string, ids: readonly string[], wrong: readonly string[], message: string) => {
    const isWrong = new Set(wrong);
    return ids.flatMap((id, i) => (isWrong.has(id) ? [{ path: `${field}.${i}`, message }] : []));
  };
  return [
    ...errorsOf("depends_on", named.dependsOn, unusable.dependsOn, "must be the id of a task"),
    ...errorsOf("files", named.fileIds, unusable.fileIds, "must be the id of a file that belongs to no task"),
  ].slice(0, limit.ERRORS_MAX);
}

const taskAndNode = () => z.object({ task_id: field.id(), node_id: field.nodeId() });

const next = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/task/next",
  summary: "Hands a worker its next task, and may wait for one",
  rejections: ["node_not_found"],
  input: () =>
    z.object({
      node_id: field.nodeId(),
      wait: optional(field.waitSeconds(), "Seconds to wait for a task; 0, the default, returns at once."),
      task_types: optional(
        field.taskTypes(),
        "Only open tasks of these types; tasks that are already assigned to the node are handed out in any case.",
      ),
      resume: optional(
        z.boolean(),
        "Whether to hand out first, again and with a new epoch, the tasks that the node had started and not finished. Each time counts in `restarts` and, if the task has `max_attempts`, as an attempt.",
      ),
    }),
  notInBatch: ({ wait = 0 }) => (wait > 0 ? MUST_NOT_WAIT : null),
  answer: (variant) =>
    z.strictObject({
      task: nullable(taskSchema(variant), "The handed-out task; null if there was none within `wait`."),
      lease: nullable(leaseSchema(), "The node's hold on the task; null without a task."),
      drain: flag("Whether the node drains: a draining node gets no new tasks."),
      context: z.optional(contextSchema(variant)),
    }),
  handsOut: ({ task }) => task,
  handle: (
    { services, transact, variant, exchange, repeatable, inBatch, hold },
    { node_id: nodeId, wait = 0, task_types: taskTypes = null, resume = false },
  ) => {
    const { restMs } = variant;
    const search = { nodeId, taskTypes, resume, inBatch, restMs };
    const take = (signal: AbortSignal) =>
      services.next.next(transact, search, { waitMs: wait, signal, repeatable });
    return wait > 0 ? hold(take) : take(exchange.request.signal);
  },
  encode: ({ task, draining }: NextAnswer, variant: Variant, at: Moment) => {
    assert(task === null || task.status === "assigned", "a task that is handed out is assigned");
    const lease = task && encodeLease(task, at);
    return { task: task && encodeTask(task, variant, at), lease, drain: draining };
  },
});

const CLAIM_ANSWER = {
  answer: (variant: Variant) =>
    z.extend(taskAnswer(variant), { context: z.optional(contextSchema(variant)) }),
  handsOut: (task: Task) => task,
} as const;

function takeEndpoint(by: "assign" | "claim", summary: string): Endpoint {
  return writeEndpoint({
    path: `/api/v1/task/${by}`,
    auth: "secret",
    strict: by === "assign" ? "administrator" : "bound",
    summary,
    rejections: [
      ...DISPATCH_REJECTIONS,
      ...HAS_ENDED,
      "task_not_found",
      "task_not_open",
      "task_not_ready",
      "node_excluded",
    ],
    input: taskAndNode,
    actsFor: (input) => [input.node_id],
    ...(by === "claim" ? CLAIM_ANSWER : { answer: taskAnswer }),
    handle: ({ services, transact }, { task_id: taskId, node_id: nodeId }) =>
      services.tasks.take(transact, by, { taskId, nodeId }),
    encode: encodeTaskAnswer,
  });
}

const attemptUsage = () =>
  optional(
    field.usage(),
    "What the attempt has used, in at most 20 reports; counted once, and also if the attempt fails.",
  );

export const ofHolder = () => z.extend(taskAndNode(), { epoch: z.optional(field.epoch()) });

type Holder = z.infer<ReturnType<typeof ofHolder>>;

export function holderOf(holder: Holder): HolderRequest {
  const { task_id: taskId, node_id: nodeId, epoch = null } = holder;
  return { taskId, nodeId, epoch };
}

export const HOLDER_REJECTIONS: readonly RejectionCode[] = [
  "usage_limit",
  "task_not_found",
  "node_not_found",
  "not_assigned_to_node",
  "task_not_assigned",
  "task_completed",
  "task_failed",
  "stale_lease",
];

const report = () => ({ checkpoint: z.optional(field.checkpoint()), usage: attemptUsage() });

const OF_HOLDER = {
  ...BY_NODE,
  rejections: HOLDER_REJECTIONS,
  answer: taskAnswer,
  encode: encodeTaskAnswer,
} as const;

const release = writeEndpoint({
  ...OF_HOLDER,
  path: "/api/v1/task/release",
  rejections: [...HOLDER_REJECTIONS, "limits_limit"],
  summary: "A node gives back a task that it holds",
  input: () =>
    z.extend(ofHolder(), {
      reason: z.optional(field.reason()),
      ...report(),
      hold_s: z.optional(field.holdSeconds()),
    }),
  exactNumbers: true,
  handle: ({ services, transact, key }, { reason = null, hold_s: holdMs = null, ...holder }) => {
    checkHold(key, "hold_s", holdMs);
    return services.tasks.release(transact, { ...reportOf(holder, key), reason, holdMs });
  },
});

const fail = writeEndpoint({
  ...OF_HOLDER,
  path: "/api/v1/task/fail",
  rejections: [...HOLDER_REJECTIONS, "limits_limit"],
  summary: "A node reports that its attempt at a task failed",
  input: () =>
    z.extend(ofHolder(), {
      error: about(field.error(), "What went wrong."),
      kind: optional(
        z.enum(["failed", "stalled"]),
        "`stalled`: the attempt was ended because nothing was heard of it; `failed` if left out.",
      ),
      retry: optional(z.boolean(), "Whether the task may be tried again."),
      ...report(),
      hold_s: z.optional(field.holdSeconds()),
    }),
  exactNumbers: true,
  handle: (
    { services, transact, key },
    { error, kind = "failed", retry = true, hold_s: holdMs = null, ...holder },
  ) => {
    checkHold(key, "hold_s", holdMs);
    return services.tasks.fail(transact, { ...reportOf(holder, key), error, kind, retry, holdMs });
  },
});

const extend = writeEndpoint({
  ...OF_HOLDER,
  path: "/api/v1/task/extend",
  summary: "Extends the lease of a task; can report progress, a checkpoint, usage",
  answer: (variant) =>
    z.extend(taskAnswer(variant), {
      budget_left_usd: maybeNumber("What the task may still cost; null without `max_cost_usd`."),
    }),
  input: () => z.extend(ofHolder(), { note: z.optional(field.note()), ...report() }),
  exactNumbers: true,
  handle: ({ services, transact, key }, { note = null, ...holder }) =>
    services.tasks.extend(transact, { ...reportOf(holder, key), note }),
  encode: (task: Task, variant: Variant, at: Moment) => {
    const budgetMicro = budgetLeft(task);
    const budget_left_usd = budgetMicro === null ? null : toUsd(budgetMicro);
    return { ...encodeTaskAnswer(task, variant, at), budget_left_usd };
  },
});

const retry = writeEndpoint({
  path: "/api/v1/task/retry",
  auth: "secret",
  summary: "Opens a failed task again; can also open its failed dependents",
  rejections: ["task_not_found", "key_bound_to_other_node", "task_not_failed", "budget_exceeded"],
  input: () =>
    z.object({
      task_id: field.id(),
      with_dependents: optional(
        z.boolean(),
        "Also opens, in the same commit, the tasks that failed only because of this task: up to 250 tasks, the oldest first. If the task itself has not failed, it does not change.",
      ),
      keep_checkpoint: optional(
        z.boolean(),
        "False: the checkpoint of earlier attempts is removed. True if left out.",
      ),
      max_cost_usd: optional(
        field.costLimit(),
        "Replaces the `max_cost_usd` of the task: needed if the task has already cost more.",
      ),
    }),
  answer: (variant) =>
    z.extend(taskAnswer(variant), {
      dependents: optional(
        z.strictObject({ opened: whole("How many dependents were opened again."), left: z.int() }),
        "Only with `with_dependents`.",
      ),
    }),
  handle: (
    { services, transact, nodeOfKey: boundTo },
    {
      task_id: taskId,
      with_dependents: withDependents = false,
      keep_checkpoint: keepCheckpoint = true,
      max_cost_usd: maxCostMicro = null,
    },
  ) => {
    const retried = { taskId, boundTo, keepCheckpoint, maxCostMicro };
    return withDependents
      ? services.tasks.retryWithDependents(transact, retried)
      : services.tasks.retry(transact, retried);
  },
  encode: ({ task, dependents }: RetryOutcome, variant: Variant, at: Moment) => ({
    ...encodeTaskAnswer(task, variant, at),
    ...(dependents && { dependents }),
  }),
});

const cancel = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/task/cancel",
  summary: "Cancels an unfinished task, which then fails",
  rejections: [...HAS_ENDED, "task_not_found", "node_not_found", "key_bound_to_other_node"],
  input: () =>
    z.object({
      task_id: field.id(),
      node_id: optional(field.nodeId(), "The node that cancels the task."),
      reason: z.optional(field.reason()),
    }),
  answer: taskAnswer,
  handle: (
    { services, transact, nodeOfKey: boundTo },
    { task_id: taskId, node_id: nodeId = null, reason = null },
  ) => services.tasks.cancel(transact, { taskId, nodeId, reason, boundTo }),
  encode: encodeTaskAnswer,
});

const update = writeEndpoint({
  path: "/api/v1/task/update",
  auth: "secret",
  summary: "Changes a task that nobody holds",
  rejections: [
    ...HAS_ENDED,
    "mint_limit",
    "task_not_found",
    "key_bound_to_other_node",
    "task_not_open",
    "lower_reward",
    "too_many_lanes",
    "gifts_limit",
  ],
  clearable: CLEARABLE,
  input: () =>
    z.object({ task_id: field.id(), ...patchFields() }).check(
      z.refine((input) => Object.keys(patchIn(input)).length > 0, {
        message: `must have one of ${PATCH_FIELDS.map(({ name }) => name).join(", ")}`,
      }),
    ),
  answer: taskAnswer,
  handle: async (
    { services, transact, nodeOfKey: boundTo, at, hasAdminKey },
    { task_id: taskId, ...input },
  ) => {
    const patch = patchIn(input);
    const { not_before, expires_at } = input;
    const errors = schedulingErrors({ not_before, expires_at }, at);
    if (errors.length > 0) throw invalidRequest(errors);
    const mayLower = patch.luxRewardMicro !== undefined && (await hasAdminKey());
    return services.tasks.update(transact, { taskId, boundTo, patch, mayLower });
  },
  encode: encodeTaskAnswer,
});

const complete = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/task/complete",
  summary: "Completes a task with its result and pays its reward",
  rejections: [
    ...HOLDER_REJECTIONS,
    "task_not_ready",
    "lux_balance_limit",
    "own_work",
    "verdict_missing",
    "compared_value_missing",
    "node_excluded",
  ],
  input: () =>
    z.extend(ofHolder(), {
      result: about(
        field.result(),
        "The result of the work: three strings of at most 64 KiB each, and any additional properties, together at most 64 KiB of JSON.",
      ),
      usage: attemptUsage(),
    }),
  exactNumbers: true,
  answer: () =>
    z.strictObject({
      status: about(z.literal("completed"), "The task is completed."),
      lux_paid: number("LUX that the task paid."),
      lux_held: optional(
        z.number(),
        "The reward while the result waits for its review; only on tasks with a review.",
      ),
      receipt: nullable(
        receiptSchema(),
        "The entry of the ledger that paid the task; null if nothing was paid. A repeat gets the same receipt.",
      ),
      task_id: z.string(),
    }),
  handle: ({ services, variant, key, transact }, { result, usage, ...holder }) =>
    services.tasks.complete(transact, {
      ...holderOf(holder),
      result,
      ...usageOf(usage, key),
      claimOnComplete: variant.claimOnComplete,
      keyId: nameOfKey(key),
    }),
  encode: ({ taskId, receipt, luxHeldMicro }: Completion) => ({
    status: "completed",
    lux_paid: toLux(receipt?.amountMicro ?? 0),
    ...(luxHeldMicro !== null && { lux_held: toLux(luxHeldMicro) }),
    receipt: receipt && encodeReceipt(receipt),
    task_id: taskId,
  }),
});

type Report = Holder & z.infer<z.ZodMiniObject<ReturnType<typeof report>>>;

function reportOf(sent: Report, key: KeyRecord | null) {
  const { checkpoint = null, usage, ...holder } = sent;
  return { ...holderOf(holder), checkpoint, ...usageOf(usage, key) };
}

function usageOf(usage: readonly UsageReport[] = [], key: KeyRecord | null) {
  return { usage, isBound: key !== null && key.nodeId !== null };
}

/** What identifies a caller besides its node; null: the secret of the hub, which all may share. */
export function nameOfKey(key: KeyRecord | null): string | null {
  return key === null || key.keyId === PRIMARY_KEY_ID ? null : key.keyId;
}

const revoke = writeEndpoint({
  path: "/api/v1/task/revoke",
  auth: "admin",
  summary: "Takes a task back from its node, or gives it to another",
  rejections: [...DISPATCH_REJECTIONS, ...HAS_ENDED, "task_not_found", "task_not_assigned"],
  input: () =>
    z.object({
      task_id: field.id(),
      node_id: optional(field.nodeId(), "The node that gets the task; if left out, the task is open again."),
      reason: z.optional(field.reason()),
    }),
  actsFor: (input) => [input.node_id],
  answer: taskAnswer,
  handle: ({ services, transact }, { task_id: taskId, node_id: nodeId = null, reason = null }) =>
    services.tasks.revoke(transact, { taskId, nodeId, reason }),
  encode: encodeTaskAnswer,
});

const remove = writeEndpoint({
  path: "/api/v1/task/delete",
  auth: "admin",
  summary: "Deletes a task permanently",
  rejections: ["task_not_found"],
  input: () => z.object({ task_id: field.id() }),
  answer: () => z.strictObject({ task_id: z.string() }),
  handle: ({ services, transact }, { task_id }) => services.tasks.remove(transact, task_id),
  encode: ({ taskId }: Task) => ({ task_id: taskId }),
});

const listedBatch = () =>
  z.object({
    assignments: z.array(taskAndNode()).check(z.minLength(1), z.maxLength(limit.BATCH_ASSIGN_MAX)),
  });

const parseListedBatch = inputParser(listedBatch);

const BATCH_ASSIGN_STRICT = "administrator";

const batchAssign = writeEndpoint<{ assignments?: unknown }, readonly BatchItem[] | BalanceReport>({
  path: "/api/v1/task/batch-assign",
  auth: "secret",
  strict: BATCH_ASSIGN_STRICT,
  summary: "A: assigns each task of a list; B: lets the balancer assign open tasks",
  rejections: ["key_bound_to_other_node"],
  notInBatch: "must be sent alone: it is a batch itself",
  // Only variant A reads the list: on B `assignments` is an unknown field, which is ignored.
  input: () => z.object({ assignments: z.optional(z.unknown()) }),
  inputOf: (variant) => (variant.listedBatch ? listedBatch() : z.object({})),
  emptyBody: true,
  answer: (variant) =>
    variant.listedBatch
      ? z.strictObject({
          results: about(
            z.array(
              z.strictObject({
                task_id: z.string(),
                node_id: z.string(),
                success: flag("Whether this assignment succeeded."),
                error: maybeString("The code of the error; null if it succeeded."),
              }),
            ),
            "The result of each assignment, in the same order.",
          ),
        })
      : z.strictObject({
          assigned: whole("How many tasks were assigned."),
          pending: whole("How many open tasks are left."),
          assignments: z.array(z.strictObject({ task_id: z.string(), node_id: z.string() })),
        }),
  handle: (call, input) => (call.variant.listedBatch ? assignListed(call, input) : runBalancer(call)),
  encode: (outcome) => ("assignments" in outcome ? encodeReport(outcome) : encodeItems(outcome)),
});

async function assignListed(
  call: Call<readonly BatchItem[]>,
  input: unknown,
): Promise<Committed<readonly BatchItem[]>> {
  const { assignments } = parseListedBatch(input);
  const nodeIds = assignments.map(({ node_id }) => node_id);
  await call.checkActsFor(nodeIds, BATCH_ASSIGN_STRICT);
  const items = assignments.map(({ task_id, node_id }) => ({ taskId: task_id, nodeId: node_id }));
  return call.services.tasks.assignAll(call.transact, items);
}

/** The balancer acts for every node, so a key that is bound to one node may not run it. */
async function runBalancer({
  services,
  transact,
  key,
}: Call<BalanceReport>): Promise<Committed<BalanceReport>> {
  if (key?.nodeId != null) throw keyBoundElsewhere(key.nodeId);
  return services.tasks.runBalancer(transact);
}

function encodeItems(items: readonly BatchItem[]): JsonAnswer {
  return {
    results: items.map(({ taskId, nodeId, code }) => ({
      task_id: taskId,
      node_id: nodeId,
      success: code === null,
      error: code,
    })),
  };
}

function encodeReport({ assignments, pending }: BalanceReport): JsonAnswer {
  return {
    assigned: assignments.length,
    pending,
    assignments: assignments.map(({ taskId, nodeId }) => ({ task_id: taskId, node_id: nodeId })),
  };
}

const filterFields = () => ({
  status: optional(
    field.statusFilter(),
    "Only tasks of this status, in the words of either variant; also `in_review` (completed, and the result waits for its review) and `cancelled` (failed, because it was cancelled or has expired).",
  ),
  node_id: optional(
    field.nodeId(),
    "Only tasks that this node holds or has completed, or whose last attempt failed at this node.",
  ),
  creator_node: optional(field.nodeId(), "Only tasks that were created with this `creator_node`."),
  task_type: optional(field.taskType(), "Only tasks of this type."),
  group: optional(field.group(), "Only tasks of this group."),
  tag: z.optional(field.tag()),
  failed_by: optional(field.nodeId(), "Only failed tasks whose last attempt failed at this node."),
  failure_kind: optional(
    field.failureKinds(),
    "Only tasks whose last failure is of this kind, or of one of several, comma-separated.",
  ),
  failure_group: optional(
    field.failureGroup(),
    "Only failed tasks of this group of stats/failures, the latest failure first, as with `order=updated`.",
  ),
  failure_q: optional(
    field.search(),
    "Words, each of which must begin a word of the failure's message: only failed tasks, the latest failure first.",
  ),
  since: optional(field.date(), "Only tasks whose `updated_at` is not before this time."),
  until: optional(field.date(), "Only tasks whose `updated_at` is before this time."),
  held: optional(
    field.heldWord(),
    "Only open tasks that are held back: for `any` reason, or counted under this code in stats/types; `none`: only open tasks that nothing holds back.",
  ),
  q: optional(
    field.search(),
    "Words, each of which must begin a word of the title. One call examines 10,000 tasks; continue with next_cursor.",
  ),
});

type FilterFields = z.output<ReturnType<typeof filterObject>>;
const filterObject = () => z.object(filterFields());

/** @throws {Problem} 400 when two filters exclude each other */
async function queryOfFilter(
  filter: FilterFields,
  { services, boundTo }: Pick<ReadCall, "services" | "boundTo">,
): Promise<TaskQuery> {
  const { failed_by, held, tag = null, since = null, until = null } = filter;
  const { creator_node: creatorNode = null, node_id: nodeId = null, q: words = [] } = filter;
  const { failure_kind: kinds = null, failure_group: failureGroup, failure_q: failureWords } = filter;
  if (failed_by !== undefined && nodeId !== null)
    throw invalidField("failed_by", "must not be sent together with node_id");
  const { statuses = TASK_STATUSES, inReview = null, failureKinds = null } = filter.status ?? {};
  const isByFailure = failureGroup !== undefined || failureWords !== undefined;
  const isFailed = failed_by !== undefined || isByFailure;
  const only: TaskStatus | null = isFailed ? "failed" : held !== undefined ? "open" : null;
  return {
    statuses: only === null ? statuses : statuses.filter((word) => word === only),
    inReview,
    nodeId: failed_by ?? nodeId,
    creatorNode,
    taskType: filter.task_type || null,
    groups: groupsNamed(filter.group, boundTo),
    tag,
    failureKinds:
      kinds && failureKinds ? kinds.filter((kind) => failureKinds.includes(kind)) : (kinds ?? failureKinds),
    failure: isByFailure ? { group: failureGroup ?? null, words: failureWords ?? [] } : null,
    since,
    until,
    held: held === undefined ? null : await services.held.filter(held),
    words,
  };
}

type ListedPage<T> = TaskPage<T> | ChangePage<T>;
type Listed =
  | { readonly fields: "all"; readonly page: ListedPage<Task> }
  | { readonly fields: "summary"; readonly page: ListedPage<TaskSummary> };

const listInput = () =>
  z.object({
    ...filterFields(),
    order: optional(
      field.word(["created", "updated"]),
      "`created` (if left out); `updated`: the last change first, which needs `status=failed` or `failed_by`.",
    ),
    fields: optional(
      field.word(["all", "summary"]),
      "`all` (if left out), or `summary`: the tasks without description, result and other long strings (TaskSummary).",
    ),
    ...field.paging(),
    cursor: optional(
      field.taskCursor(),
      "The `next_cursor` of the previous page, with the same filters and without `page`.",
    ),
  });

const list = readEndpoint({
  path: "/api/v1/task/list",
  readsMany: true,
  auth: "public",
  summary: "Tasks, newest first; filters by state, node, type, title and more",
  input: listInput,
  answer: (variant) =>
    z.strictObject({
      tasks: z.union([z.array(taskSchema(variant)), z.array(taskSummarySchema(variant))]),
      ...cursorPageSchema(),
      total: maybeWhole("How many tasks match; null if the hub did not count the tasks."),
      pages: maybeWhole("How many pages there are; null if the hub did not count the tasks."),
    }),
  handle: async (call, input): Promise<Listed> => {
    const { lists, summaries } = call.services.tasks;
    if (input.fields === "summary")
      return { fields: "summary", page: await listedPage(summaries, input, call) };
    return { fields: "all", page: await listedPage(lists, input, call) };
  },
  encode: (listed, variant, at) =>
    listed.fields === "summary"
      ? encodeTaskPage(listed.page, (task) => encodeTaskSummary(task, variant, at))
      : encodeTaskPage(listed.page, (task) => encodeTask(task, variant, at)),
});

async function listedPage<T>(
  lists: TaskLists<T>,
  input: z.output<ReturnType<typeof listInput>>,
  call: Pick<ReadCall, "variant" | "boundTo" | "services">,
): Promise<ListedPage<T>> {
  const { variant } = call;
  const query = await queryOfFilter(input, call);
  const { cursor = null, order } = input;
  const page = field.pageRequest(input, variant.unpaged);
  if (order === "updated" || query.failure !== null) {
    const byFailure = input.failure_group === undefined ? "failure_q" : "failure_group";
    if (order === "created") throw invalidField("order", `must be updated together with ${byFailure}`);
    if (query.statuses.some((status) => status !== "failed"))
      throw invalidField("order", "needs status=failed: only failed tasks are in this order");
    field.refusePageWith(order === "updated" ? "order=updated" : byFailure, input);
    if (cursor !== null && !("updatedAt" in cursor)) throw wrongCursor();
    return lists.failed(query, cursor, page.perPage);
  }
  if (cursor !== null) {
    if ("updatedAt" in cursor) throw wrongCursor();
    field.refusePageWithCursor(input);
    return lists.after(query, cursor, page.perPage);
  }
  if (isSearch(query)) checkReach(page);
  return lists.page(query, page, variant.unfinishedFirst && !field.asksForPage(input));
}

function wrongCursor(): Problem {
  return invalidField("cursor", "must be a next_cursor from a response in the same order");
}

function encodeTaskPage<T>(page: ListedPage<T>, encode: (task: T) => JsonAnswer | JsonFields): JsonAnswer {
  const { next } = page;
  if (next === null || !("updatedAt" in next)) return encodeCursorPage("tasks", { ...page, next }, encode);
  const answer = encodeCursorPage("tasks", { ...page, next: null }, encode);
  return { ...answer, next_cursor: field.encodeChangeCursor(next) };
}

function checkReach({ page, perPage }: PageRequest): void {
  if (page * perPage <= limit.LIST_SCANNED_MAX) return;
  const most = Math.floor(limit.LIST_SCANNED_MAX / perPage);
  throw invalidField(
    "page",
    `must be at most ${most} in a list with filters other than status and node_id: continue with cursor`,
  );
}

const countMatching = readEndpoint({
  path: "/api/v1/task/count",
  readsMany: true,
  auth: "public",
  summary: "How many tasks match the filters of task/list",
  input: filterObject,
  answer: () =>
    z.strictObject({
      count: about(count(), "How many tasks match."),
      exact: flag("False: more tasks may match, because one call examines 50,000 tasks."),
    }),
  handle: async (call, filter) => call.services.tasks.lists.count(await queryOfFilter(filter, call)),
  encode: ({ count: matching, isExact }) => ({ count: matching, exact: isExact }),
});

const get = readEndpoint({
  path: "/api/v1/task/:task_id",
  auth: "public",
  summary: "One task; may wait until it is completed or has failed",
  once: true,
  rejections: ["task_not_found"],
  input: () =>
    z.object({
      task_id: field.id(),
      wait: optional(field.queryWaitSeconds(), "Seconds to wait until the task is completed or has failed."),
      context: optional(field.queryFlag(), "`1`: the response also has the `context` of the task."),
    }),
  answer: (variant) =>
    z.strictObject({
      task: waitingTaskSchema(variant),
      context: z.optional(contextSchema(variant)),
    }),
  handle: async ({ services, hold }, { task_id, wait = 0, context = false }) => {
    const task =
      wait === 0
        ? await services.feed.task(task_id)
        : await hold((signal) => services.feed.taskEnd(task_id, wait, signal));
    const waiting = await services.tasks.withUnmet(task);
    // What a worker leaves for later attempts could tell the others its result.
    const isShown = context && !isSealed(waiting.task);
    return { ...waiting, context: isShown ? await services.contexts.of(waiting.task) : null };
  },
  encode: ({ task, waitsFor, context }, variant, at) => ({
    task: { ...encodeTask(task, variant, at), unmet: { count: task.unmet, task_ids: waitsFor } },
    ...(context && { context: encodeContext(context, variant) }),
  }),
});

const inputs = readEndpoint({
  path: "/api/v1/task/:task_id/inputs",
  readsMany: true,
  auth: "public",
  summary: "The tasks on which a task depends, with their results and files",
  rejections: ["task_not_found"],
  input: () =>
    z.object({
      task_id: field.id(),
      cursor: optional(field.numberCursor(4), "The `next_cursor` of the page before."),
      limit: z.optional(field.queryCount(limit.INPUTS_PER_PAGE_MAX)),
    }),
  answer: (variant) =>
    z.strictObject({
      inputs: about(z.array(inputSchema(variant)), "The tasks in `depends_on`, in that order."),
      total: z.int(),
      next_cursor: z.nullable(z.string()),
    }),
  handle: ({ services }, { task_id, cursor = 0, limit: most = limit.INPUTS_PER_PAGE_DEFAULT }) =>
    services.contexts.inputs(task_id, cursor, most),
  encode: (page, variant) => ({
    inputs: page.inputs.map((input) => encodeInput(input, variant)),
    total: page.total,
    next_cursor: page.next === null ? null : String(page.next),
  }),
});

const wait = readEndpoint({
  path: "/api/v1/task/wait",
  auth: "public",
  summary: "Waits until all, or any, of several tasks are completed or have failed",
  once: true,
  rejections: ["task_not_found"],
  input: () =>
    z.object({
      task_ids: about(field.taskIds(), "The ids of 1 to 100 tasks, comma-separated."),
      until: optional(
        field.word(["all", "any"]),
        "`all` (the default) or `any`: which of the tasks must have ended.",
      ),
      wait: optional(field.queryWaitSeconds(), "Seconds to wait; 0, the default, returns at once."),
    }),
  answer: (variant) =>
    z.strictObject({
      done: flag("Whether all, or any, of the tasks have ended, as `until` asks."),
      tasks: about(z.array(taskStateSchema(variant)), "The state of each task, in the order of `task_ids`."),
    }),
  handle: (call, { task_ids, until = "all", wait = 0 }) => {
    const ends = (signal: AbortSignal) => call.services.feed.taskEnds(task_ids, until, wait, signal);
    if (wait > 0) return call.hold(ends);
    return call.backpressure.runRead(call, () => ends(call.exchange.request.signal));
  },
  encode: ({ tasks, done }, variant) => ({
    done,
    tasks: tasks.map((task) => encodeTaskState(task, variant)),
  }),
});

const pull = readEndpoint({
  path: "/api/v1/task/pull",
  readsMany: true,
  auth: "secret",
  summary: "The open tasks that a node could claim, best first",
  rejections: ["node_not_found"],
  input: () => z.object({ node_id: field.nodeId(), limit: z.optional(field.queryCount(limit.PULL_MAX)) }),
  actsFor: (input) => [input.node_id],
  answer: (variant) => z.strictObject({ tasks: z.array(taskSchema(variant)) }),
  handle: ({ services }, { node_id, limit: most = limit.PULL_DEFAULT }) =>
    services.tasks.claimable(node_id, most),
  encode: (tasks, variant, at) => ({ tasks: tasks.map((task) => encodeTask(task, variant, at)) }),
});

const stats = readEndpoint({
  path: "/api/v1/task/stats",
  auth: "public",
  summary: "Tasks counted by status, and the nodes that completed the most",
  input: () => z.object({}),
  answer: (variant) =>
    z.strictObject({
      total: z.int(),
      by_status: z.record(statusWord(variant), z.int()),
      top_nodes: about(
        z.array(
          z.strictObject({
            node_id: z.string(),
            completed: whole("How many tasks the node has completed."),
            lux_earned: number("LUX that the node earned with completed tasks."),
          }),
        ),
        "The nodes that completed most, at most 10.",
      ),
    }),
  handle: ({ services }) => services.tasks.stats(),
  encode: ({ totals, top }, variant) => ({
    total: TASK_STATUSES.reduce((sum, status) => sum + totals[status], 0),
    by_status: encodeTotals(totals, variant),
    top_nodes: top.map((node) => ({
      node_id: node.nodeId,
      completed: node.tasksCompleted,
      lux_earned: toLux(node.luxEarnedMicro),
    })),
  }),
});

export const TASK_ENDPOINTS: readonly Endpoint[] = [
  create,
  next,
  takeEndpoint("assign", "Assigns an open task to a node"),
  takeEndpoint("claim", "A node claims an open task"),
  complete,
  release,
  fail,
  extend,
  retry,
  cancel,
  update,
  revoke,
  batchAssign,
  remove,
  list,
  countMatching,
  wait,
  pull,
  stats,
  get,
  inputs,
];
