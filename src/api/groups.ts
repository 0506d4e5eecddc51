/** The endpoints of groups of tasks: group/*. */
import * as z from "zod/mini";
import {
  type Group,
  type GroupCounts,
  ownedGroup,
  tasksIn,
  unfinishedIn,
} from "../domain/task/facet/group.ts";
import { toLux } from "../domain/lux.ts";
import { TASK_STATUSES } from "../domain/model.ts";
import { isoTime } from "../lib/clock.ts";
import { GROUPS_LISTED_MAX, MICRO_PER_LUX } from "../domain/limits.ts";
import type { GroupPage, GroupStep } from "../service/groups.ts";
import type { Variant } from "../variant/variant.ts";
import { type Endpoint, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import {
  count,
  encodeSpending,
  encodeTaskState,
  spendingSchema,
  statusWord,
  taskStateSchema,
  time,
} from "./response-schemas.ts";

const countsSchema = (variant: Variant) => ({
  group: z.string(),
  done: z.boolean(),
  total: count(),
  unfinished: count(),
  in_review: z.optional(count()),
  cancelled: z.optional(count()),
  by_status: z.record(statusWord(variant), count()),
  first_created_at: time(),
  last_created_at: time(),
  last_updated_at: time(),
  lux_reward: z.number(),
  lux_paid: z.number(),
});

export const groupSchema = (variant: Variant) =>
  z.strictObject({
    ...countsSchema(variant),
    usage: z.nullable(spendingSchema()),
    failures: z.array(taskStateSchema(variant)),
  });

const list = readEndpoint({
  path: "/api/v1/group/list",
  readsMany: true,
  auth: "public",
  summary: "Groups by name, with their counts",
  rejections: [],
  input: () =>
    z.object({
      q: z.optional(field.groupPrefix()),
      limit: z.optional(field.queryCount(GROUPS_LISTED_MAX)),
      cursor: z.optional(field.groupPrefix()),
    }),
  answer: (variant) =>
    z.strictObject({
      groups: z.array(z.strictObject(countsSchema(variant))),
      next_cursor: z.nullable(z.string()),
    }),
  handle: ({ services }, { q = "", limit = GROUPS_LISTED_MAX, cursor = "" }) =>
    services.groups.list(q, cursor, limit),
  encode: ({ groups, next }: GroupPage, variant) => ({
    groups: groups.map((group) => encodeCounts(group, variant)),
    next_cursor: next,
  }),
});

const get = readEndpoint({
  path: "/api/v1/group/:group",
  auth: "public",
  summary: "A group of tasks: counts, times, failures; may wait for its end",
  once: true,
  rejections: ["group_not_found"],
  input: () => z.object({ group: field.group(), wait: z.optional(field.queryWaitSeconds()) }),
  answer: groupSchema,
  handle: async ({ services, hold, boundTo }, { group, wait = 0 }) => {
    const name = await services.groups.named(group, boundTo);
    return wait === 0 ? services.groups.get(name) : hold((signal) => services.groups.end(name, wait, signal));
  },
  encode: encodeGroupState,
});

function encodeGroupState(group: Group, variant: Variant) {
  return {
    ...encodeCounts(group, variant),
    usage: group.spent && encodeSpending(group.spent),
    failures: group.failures.map((task) => encodeTaskState(task, variant)),
  };
}

function encodeCounts({ name, totals }: GroupCounts, variant: Variant) {
  const { inReview, cancelled } = totals;
  const byStatus: Record<string, number> = {};
  for (const word of variant.statusWords) byStatus[word] = 0;
  for (const status of TASK_STATUSES) {
    const word = variant.statusWord(status);
    byStatus[word] = (byStatus[word] ?? 0) + totals[status];
  }
  const unfinished = unfinishedIn(totals);
  return {
    group: name,
    done: unfinished === 0,
    total: tasksIn(totals),
    unfinished,
    ...(inReview > 0 && { in_review: inReview }),
    ...(cancelled > 0 && { cancelled }),
    by_status: byStatus,
    first_created_at: isoTime(totals.firstCreatedAt),
    last_created_at: isoTime(totals.lastCreatedAt),
    last_updated_at: isoTime(totals.lastUpdatedAt),
    lux_reward: toLux(totals.lux * MICRO_PER_LUX + totals.luxMicro),
    lux_paid: toLux(totals.paid * MICRO_PER_LUX + totals.paidMicro),
  };
}

const cancel = writeEndpoint({
  method: "POST",
  path: "/api/v1/group/cancel",
  auth: "secret",
  strict: "bound",
  summary: "Cancels unfinished tasks of a group, which then fail",
  rejections: ["group_not_found", "node_not_found", "key_bound_to_other_node"],
  input: () =>
    z.object({
      group: field.group(),
      node_id: z.optional(field.nodeId()),
      reason: z.optional(field.reason()),
    }),
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({ group: z.string(), cancelled: count(), left: count() }),
  handle: ({ services, transact, nodeOfKey }, { group, node_id, reason }) =>
    services.groups.cancel(transact, {
      group: ownedGroup(group, nodeOfKey),
      nodeId: node_id ?? null,
      reason: reason ?? null,
      boundTo: nodeOfKey,
    }),
  encode: ({ group, changed, left }: GroupStep) => ({ group, cancelled: changed, left }),
});

const retry = writeEndpoint({
  method: "POST",
  path: "/api/v1/group/retry",
  auth: "secret",
  summary: "Opens the failed tasks of a group again",
  rejections: ["group_not_found"],
  input: () => z.object({ group: field.group(), cursor: z.optional(field.groupCursor()) }),
  answer: () =>
    z.strictObject({
      group: z.string(),
      retried: count(),
      left: count(),
      next_cursor: z.nullable(z.string()),
    }),
  handle: ({ services, transact, nodeOfKey }, { group, cursor = 0 }) =>
    services.groups.retry(transact, {
      group: ownedGroup(group, nodeOfKey),
      after: cursor,
      boundTo: nodeOfKey,
    }),
  encode: ({ group, changed, left, next }: GroupStep) => ({
    group,
    retried: changed,
    left,
    next_cursor: next === null ? null : String(next),
  }),
});

export const GROUP_ENDPOINTS: readonly Endpoint[] = [list, get, cancel, retry];
