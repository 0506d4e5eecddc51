/** The statistics of types and failures: stats/types and stats/failures. */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import { FAILURE_KINDS } from "../domain/model.ts";
import { SECOND_MS, isoTime } from "../lib/clock.ts";
import { type Endpoint, readEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { count, maybeTime, time } from "./response-schemas.ts";
import { durationsSchema, encodeDurations } from "./system.ts";

export const typeStatsSchema = () =>
  z.strictObject({
    task_type: z.nullable(z.string()),
    open: count(),
    oldest_open_at: z.nullable(time()),
    waiting: count(),
    assigned: count(),
    completed: count(),
    failed: count(),
    time_to_start: durationsSchema(),
    takers: count(),
    nodes_online: count(),
    nodes_registered: count(),
  });

export const stuckStatsSchema = () =>
  z.strictObject({
    task_type: z.nullable(z.string()),
    open: count(),
    oldest_open_at: z.nullable(time()),
    nodes_registered: count(),
    missing: z.nullable(z.string()),
    task_id: z.nullable(z.string()),
  });

const types = readEndpoint({
  path: "/api/v1/stats/types",
  readsMany: true,
  auth: "public",
  summary: "Task types: counts of tasks, times to start, and nodes for each type",
  rejections: [],
  input: () => z.object({}),
  answer: () =>
    z.strictObject({
      at: time(),
      types: z.array(typeStatsSchema()),
      others: count(),
      stuck: z.array(stuckStatsSchema()),
    }),
  handle: ({ services }) => services.typeStats.read(),
  encode: ({ at, types: all, others, stuck }) => ({
    at: isoTime(at),
    types: all.map(({ taskType, takers, lastHour, ...now }) => ({
      task_type: taskType === "" ? null : taskType,
      open: now.open,
      oldest_open_at: maybeTime(now.oldestOpenAt),
      waiting: now.waiting,
      assigned: now.assigned,
      completed: lastHour.completed,
      failed: lastHour.failed,
      time_to_start: encodeDurations(lastHour.toStart),
      takers: takers.free,
      nodes_online: takers.online,
      nodes_registered: takers.registered,
    })),
    others,
    stuck: stuck.map(({ taskType, open, oldestOpenAt, registered, missing, taskId }) => ({
      task_type: taskType === "" ? null : taskType,
      open,
      oldest_open_at: maybeTime(oldestOpenAt),
      nodes_registered: registered,
      missing: missing && missing.join(", "),
      task_id: taskId,
    })),
  }),
});

export const failureGroupSchema = () =>
  z.strictObject({
    group: z.string(),
    task_type: z.nullable(z.string()),
    kind: z.enum(FAILURE_KINDS),
    message: z.string(),
    count: count(),
    nodes: count(),
    node_ids: z.array(z.string()),
    last_at: time(),
    task_id: z.string(),
  });

const failures = readEndpoint({
  path: "/api/v1/stats/failures",
  readsMany: true,
  auth: "public",
  summary: "Recent failures, grouped by message, and the nodes with the most",
  rejections: [],
  input: () => z.object({ last: z.optional(field.queryCount(limit.FAILURES_LAST_MAX_SECONDS)) }),
  answer: () =>
    z.strictObject({
      failures: z.array(failureGroupSchema()),
      by_node: z.array(z.strictObject({ node_id: z.string(), count: count() })),
      total: count(),
      exact: z.boolean(),
    }),
  handle: ({ services }, { last = limit.FAILURES_LAST_SECONDS }) =>
    services.failureStats.read(last * SECOND_MS),
  encode: ({ groups, byNode, total, isExact }) => ({
    failures: groups.map((group) => ({
      group: group.group,
      task_type: group.taskType === "" ? null : group.taskType,
      kind: group.kind,
      message: group.message,
      count: group.count,
      nodes: group.nodes,
      node_ids: group.nodeIds,
      last_at: isoTime(group.lastAt),
      task_id: group.taskId,
    })),
    by_node: byNode.map(({ nodeId, count: of }) => ({ node_id: nodeId, count: of })),
    total,
    exact: isExact,
  }),
});

export const STATS_ENDPOINTS: readonly Endpoint[] = [types, failures];
