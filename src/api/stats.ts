/** The statistics of types and failures: stats/types and stats/failures. */
import * as z from "zod/mini";
import { HELD_CODES } from "../domain/held.ts";
import * as limit from "../domain/limits.ts";
import { FAILURE_KINDS } from "../domain/failure-kinds.ts";
import { SECOND_MS, isoTime } from "../lib/clock.ts";
import { type Endpoint, readEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { count, maybeTime, time } from "./response-schemas.ts";
import { durationsSchema, encodeDurations } from "./system.ts";
import { about, flag, maybeString, nullable, optional, string } from "./about.ts";

export const typeStatsSchema = () =>
  z.strictObject({
    task_type: maybeString("The type; null for tasks without a type."),
    open: about(
      count(),
      "Tasks that wait for nothing of their own, counted up to 50,000. Left out are the types beyond 1,000, and tasks beyond 1,000 lanes with requirements or a limit key of their own.",
    ),
    oldest_open_at: nullable(
      time(),
      "Since when the oldest open task may be handed out; null if there is none.",
    ),
    waiting: about(
      count(),
      "Open tasks that wait for their time, other tasks or an answer; of all types together counted up to 50,000.",
    ),
    assigned: about(count(), "Tasks that a node holds; of all types together counted up to 50,000."),
    held: about(
      count(),
      "How many of the open tasks a pause, a limit, a budget or the lack of a node holds back. Left out are pauses and budgets of creators and groups.",
    ),
    held_by: nullable(z.enum(HELD_CODES), "What holds the most of these tasks back."),
    created: about(count(), "Tasks created in the last hour."),
    completed: about(count(), "Tasks completed in the last hour."),
    failed: about(count(), "Tasks that failed in the last hour."),
    time_to_start: about(
      durationsSchema(),
      "How long tasks waited in the last hour until they were handed out, counted for each dispatch.",
    ),
    takers: about(
      count(),
      "Nodes that could take a task of this type now: online, not draining and with room.",
    ),
    nodes_online: about(count(), "Online nodes that take tasks of this type."),
    nodes_registered: about(count(), "Nodes, online or not, that take tasks of this type."),
  });

export const heldStatsSchema = () =>
  z.strictObject({
    code: about(
      z.enum(HELD_CODES),
      "What holds the tasks back, in the words of task/<task_id>/explain. Each task counts once, under the first that applies.",
    ),
    count: about(count(), "How many open tasks: as many as task/list lists with this code as `held`."),
    exact: flag("False: there may be more, because a count ends at 50,000."),
    oldest_at: nullable(
      time(),
      "Since when the oldest of the tasks could run without this, or, if it waits for something of its own, when it was created.",
    ),
    causes: about(
      z.array(
        z.strictObject({
          task_type: maybeString("The type of the tasks; null for tasks without a type, and of any type."),
          count: count(),
          detail: maybeString("What holds them back, in a sentence; null if the code says it all."),
        }),
      ),
      "The 10 largest causes, the largest first.",
    ),
  });

const types = readEndpoint({
  path: "/api/v1/stats/types",
  readsMany: true,
  auth: "public",
  summary: "Task types: counts of tasks, times to start, and nodes for each type",
  input: () => z.object({}),
  answer: () =>
    z.strictObject({
      at: about(time(), "When the tasks were counted: at most 2 s ago."),
      types: about(
        z.array(typeStatsSchema()),
        "The 100 types with the most tasks, the type with the most first.",
      ),
      others: about(count(), "How many other types there are."),
      held: about(z.array(heldStatsSchema()), "What holds open tasks back, the most tasks first."),
      free: about(
        z.strictObject({ count: count(), exact: flag("False: there may be more.") }),
        "How many open tasks nothing holds back: as many as task/list lists with `held=none`.",
      ),
    }),
  handle: ({ services }) => services.typeStats.read(),
  encode: ({ at, types: all, others, held, free }) => ({
    at: isoTime(at),
    types: all.map(({ taskType, takers, lastHour, ...now }) => ({
      task_type: taskType === "" ? null : taskType,
      open: now.open,
      oldest_open_at: maybeTime(now.oldestOpenAt),
      waiting: now.waiting,
      assigned: now.assigned,
      held: now.held,
      held_by: now.heldBy?.code ?? null,
      created: lastHour.created,
      completed: lastHour.completed,
      failed: lastHour.failed,
      time_to_start: encodeDurations(lastHour.toStart),
      takers: takers.free,
      nodes_online: takers.online,
      nodes_registered: takers.able,
    })),
    others,
    held: held.map(({ code, count: of, isExact, oldestAt, causes }) => ({
      code,
      count: of,
      exact: isExact,
      oldest_at: maybeTime(oldestAt),
      causes: causes.map(({ taskType, ...cause }) => ({ task_type: taskType || null, ...cause })),
    })),
    free: { count: free.count, exact: free.isExact },
  }),
});

export const failureGroupSchema = () =>
  z.strictObject({
    group: string(
      "The id of the group: `failure_group` of task/list and task/count selects the tasks of the group.",
    ),
    task_type: maybeString("The type of the tasks; null for tasks without a type."),
    kind: about(z.enum(FAILURE_KINDS), "The kind of the failures."),
    message: string(
      "The first line of the newest message. The messages of a group differ only in numbers and ids.",
    ),
    count: about(count(), "How many tasks of the group have failed."),
    nodes: about(count(), "At how many nodes the tasks failed."),
    node_ids: about(
      z.array(z.string()),
      "The first 5 of the nodes at which the tasks failed, the node with the most failures first.",
    ),
    last_at: about(time(), "When the last task failed."),
    task_id: string("The task that failed last."),
  });

const failures = readEndpoint({
  path: "/api/v1/stats/failures",
  readsMany: true,
  auth: "public",
  summary: "Recent failures, grouped by message, and the nodes with the most",
  input: () =>
    z.object({
      last: optional(
        field.queryCount(limit.FAILURES_LAST_MAX_SECONDS),
        "Of how many seconds; 3,600 if left out.",
      ),
    }),
  answer: () =>
    z.strictObject({
      failures: about(
        z.array(failureGroupSchema()),
        "The 50 largest groups of failed tasks, the largest first.",
      ),
      by_node: about(
        z.array(
          z.strictObject({
            node_id: z.string(),
            count: about(count(), "How many tasks failed at this node."),
            attempts: about(
              count(),
              "How many attempts failed at this node, as the `attempts` of tasks count them: also of tasks that others completed.",
            ),
          }),
        ),
        "The 50 nodes at which the most attempts failed, of the newest 10,000 of each kind.",
      ),
      total: about(count(), "How many failed tasks were examined."),
      exact: flag("False: more tasks have failed, because one call examines the newest 10,000."),
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
    by_node: byNode.map(({ nodeId, count: of, attempts }) => ({ node_id: nodeId, count: of, attempts })),
    total,
    exact: isExact,
  }),
});

export const STATS_ENDPOINTS: readonly Endpoint[] = [types, failures];
