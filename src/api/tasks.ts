/** The endpoints of tasks: task/*. */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import { toLux } from "../domain/lux.ts";
import type { Priority, Task, TaskStatus } from "../domain/model.ts";
import type { BalanceReport, BatchItem } from "../service/tasks.ts";
import type { Variant } from "../variant/variant.ts";
import { type Call, type Endpoint, type JsonAnswer, jsonEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { checkActsFor } from "./auth.ts";
import { inputParser } from "./input.ts";
import { keyBoundElsewhere } from "./error-table.ts";
import { encodePage, encodeTask, pageSchema, statusWord, taskSchema } from "./response-schemas.ts";

const DEFAULT_PRIORITY: Priority = 1;
const ALL_STATUSES: readonly TaskStatus[] = ["open", "assigned", "completed"];

const taskAnswer = () =>
  z.strictObject({
    task_id: z.string(),
    status: statusWord(),
    assigned_node: z.nullable(z.string()),
    task: taskSchema(),
  });

function encodeTaskAnswer(task: Task, variant: Variant): JsonAnswer {
  return {
    task_id: task.taskId,
    status: variant.statusWord(task.status),
    assigned_node: task.assignedNode,
    task: encodeTask(task, variant),
  };
}

const create = jsonEndpoint({
  method: "POST",
  path: "/api/v1/task/create",
  auth: "secret",
  summary: "Creates a task; on B the hub assigns it at once when a node is available",
  rejections: [],
  input: () =>
    z.object({
      title: field.title(),
      description: field.description(),
      task_type: z.optional(field.taskType()),
      priority: z.optional(field.priority()),
      creator_node: z.optional(field.nodeId()),
      lux_reward: z.optional(field.luxReward()),
    }),
  actsFor: (input) => [input.creator_node],
  answer: taskAnswer,
  handle: ({ services, variant, transact }, input) =>
    services.tasks.create(transact, {
      title: input.title,
      description: input.description,
      taskType: input.task_type ?? "",
      priority: input.priority ?? DEFAULT_PRIORITY,
      creatorNode: input.creator_node ?? null,
      luxRewardMicro: input.lux_reward ?? 0,
      balanced: variant.autoAssign,
    }),
  encode: encodeTaskAnswer,
});

const taskAndNode = () => z.object({ task_id: field.id(), node_id: field.nodeId() });

function takeEndpoint(by: "assign" | "claim", summary: string): Endpoint {
  return jsonEndpoint({
    method: "POST",
    path: `/api/v1/task/${by}`,
    auth: "secret",
    summary,
    rejections: ["task_not_found", "node_not_found", "task_not_open", "task_completed", "node_offline"],
    input: taskAndNode,
    actsFor: (input) => [input.node_id],
    answer: taskAnswer,
    handle: ({ services, transact }, { task_id, node_id }) =>
      services.tasks.take(transact, by, { taskId: task_id, nodeId: node_id }),
    encode: encodeTaskAnswer,
  });
}

const complete = jsonEndpoint({
  method: "POST",
  path: "/api/v1/task/complete",
  auth: "secret",
  summary: "Completes a task with its result and pays its reward",
  rejections: [
    "task_not_found",
    "node_not_found",
    "not_assigned_to_node",
    "task_not_assigned",
    "task_completed",
    "lux_balance_limit",
  ],
  input: () => z.extend(taskAndNode(), { result: field.result() }),
  exactNumbers: true,
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({ status: z.literal("completed"), lux_paid: z.number(), task_id: z.string() }),
  handle: ({ services, variant, transact }, { task_id, node_id, result }) =>
    services.tasks.complete(transact, {
      taskId: task_id,
      nodeId: node_id,
      result,
      claimOnComplete: variant.claimOnComplete,
    }),
  encode: ({ taskId, luxPaidMicro }) => ({
    status: "completed",
    lux_paid: toLux(luxPaidMicro),
    task_id: taskId,
  }),
});

const revoke = jsonEndpoint({
  method: "POST",
  path: "/api/v1/task/revoke",
  auth: "admin",
  summary: "Takes a task back from its node, or gives it to another",
  rejections: ["task_not_found", "node_not_found", "task_not_assigned", "task_completed", "node_offline"],
  input: () =>
    z.object({
      task_id: field.id(),
      node_id: z.optional(field.nodeId()),
      reason: z.optional(field.reason()),
    }),
  actsFor: (input) => [input.node_id],
  answer: taskAnswer,
  handle: ({ services, transact }, { task_id, node_id, reason }) =>
    services.tasks.revoke(transact, { taskId: task_id, nodeId: node_id ?? null, reason: reason ?? null }),
  encode: encodeTaskAnswer,
});

const remove = jsonEndpoint({
  method: "POST",
  path: "/api/v1/task/delete",
  auth: "admin",
  summary: "Deletes a task for good",
  rejections: ["task_not_found"],
  input: () => z.object({ task_id: field.id() }),
  answer: () => z.strictObject({ task_id: z.string() }),
  handle: ({ services, transact }, { task_id }) => services.tasks.remove(transact, task_id),
  encode: ({ taskId }) => ({ task_id: taskId }),
});

const parseListedBatch = inputParser(() =>
  z.object({
    assignments: z.array(taskAndNode()).check(z.minLength(1), z.maxLength(limit.BATCH_ASSIGN_MAX)),
  }),
);

const batchAssign = jsonEndpoint<{ assignments?: unknown }, readonly BatchItem[] | BalanceReport>({
  method: "POST",
  path: "/api/v1/task/batch-assign",
  auth: "secret",
  summary: "A: assigns each task of a list; B: lets the balancer assign open tasks",
  rejections: [],
  // Only variant A reads the list: on B `assignments` is an unknown field, which is ignored.
  input: () => z.object({ assignments: z.optional(z.unknown()) }),
  emptyBody: true,
  answer: () =>
    z.union([
      z.strictObject({
        results: z.array(
          z.strictObject({
            task_id: z.string(),
            node_id: z.string(),
            success: z.boolean(),
            error: z.nullable(z.string()),
          }),
        ),
      }),
      z.strictObject({
        assigned: z.int(),
        pending: z.int(),
        assignments: z.array(z.strictObject({ task_id: z.string(), node_id: z.string() })),
      }),
    ]),
  handle: (call, input) => (call.variant.listedBatch ? assignListed(call, input) : runBalancer(call)),
  encode: (outcome) => ("assignments" in outcome ? encodeReport(outcome) : encodeItems(outcome)),
});

function assignListed(call: Call, input: unknown): Promise<readonly BatchItem[]> {
  const { assignments } = parseListedBatch(input);
  for (const { node_id } of assignments) checkActsFor(call, node_id);
  const items = assignments.map(({ task_id, node_id }) => ({ taskId: task_id, nodeId: node_id }));
  return call.services.tasks.assignAll(call.transact, items);
}

/** The balancer acts for every node, so a key that is bound to one node may not run it. */
async function runBalancer({ services, transact, key }: Call): Promise<BalanceReport> {
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

const list = jsonEndpoint({
  method: "GET",
  path: "/api/v1/task/list",
  auth: "public",
  summary: "Tasks, newest first",
  rejections: [],
  input: () =>
    z.object({
      status: z.optional(field.statusFilter()),
      node_id: z.optional(field.nodeId()),
      ...field.paging(),
    }),
  answer: () => z.strictObject({ tasks: z.array(taskSchema()), ...pageSchema() }),
  handle: ({ services, variant }, { status, node_id, ...paging }) => {
    const page = field.pageRequest(paging, variant.unpaged);
    const unfinishedFirst = variant.unfinishedFirst && !field.asksForPage(paging);
    return services.tasks.list(status ?? ALL_STATUSES, node_id ?? null, page, unfinishedFirst);
  },
  encode: (page, variant) => encodePage("tasks", page, (task) => encodeTask(task, variant)),
});

const pull = jsonEndpoint({
  method: "GET",
  path: "/api/v1/task/pull",
  auth: "secret",
  summary: "The open tasks that a node could claim, best first",
  rejections: ["node_not_found"],
  input: () => z.object({ node_id: field.nodeId(), limit: z.optional(field.queryCount(limit.PULL_MAX)) }),
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({ tasks: z.array(taskSchema()) }),
  handle: ({ services }, { node_id, limit: most }) =>
    services.tasks.claimable(node_id, most ?? limit.PULL_DEFAULT),
  encode: (tasks, variant) => ({ tasks: tasks.map((task) => encodeTask(task, variant)) }),
});

const stats = jsonEndpoint({
  method: "GET",
  path: "/api/v1/task/stats",
  auth: "public",
  summary: "Tasks counted by status, and the nodes that completed most",
  rejections: [],
  input: () => z.object({}),
  answer: () =>
    z.strictObject({
      total: z.int(),
      by_status: z.partialRecord(statusWord(), z.int()),
      top_nodes: z.array(z.strictObject({ node_id: z.string(), completed: z.int(), lux_earned: z.number() })),
    }),
  handle: ({ services }) => services.tasks.stats(),
  encode: ({ totals, top }, variant) => {
    const byStatus: Record<string, number> = {};
    for (const word of variant.statusWords) byStatus[word] = 0;
    for (const status of ALL_STATUSES) {
      const word = variant.statusWord(status);
      byStatus[word] = (byStatus[word] ?? 0) + totals[status];
    }
    return {
      total: totals.open + totals.assigned + totals.completed,
      by_status: byStatus,
      top_nodes: top.map((node) => ({
        node_id: node.nodeId,
        completed: node.tasksCompleted,
        lux_earned: toLux(node.luxEarnedMicro),
      })),
    };
  },
});

export const TASK_ENDPOINTS: readonly Endpoint[] = [
  create,
  takeEndpoint("assign", "Assigns an open task to a node"),
  takeEndpoint("claim", "A node claims an open task"),
  complete,
  revoke,
  batchAssign,
  remove,
  list,
  pull,
  stats,
];
