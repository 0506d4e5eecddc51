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
import { isoTime } from "../lib/clock.ts";
import { GROUPS_LISTED_MAX, MICRO_PER_LUX } from "../domain/limits.ts";
import type { GroupPage, GroupStep } from "../service/groups.ts";
import type { Variant } from "../variant/variant.ts";
import { type Endpoint, BY_NODE, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import {
  count,
  encodeSpending,
  encodeTaskState,
  encodeTotals,
  spendingSchema,
  statusWord,
  taskStateSchema,
  time,
} from "./response-schemas.ts";
import { about, flag, maybeString, nullable, number, optional } from "./about.ts";

const countsSchema = (variant: Variant) => ({
  group: z.string(),
  done: flag("Whether no task of the group is unfinished."),
  total: count(),
  unfinished: count(),
  in_review: z.optional(count()),
  cancelled: z.optional(count()),
  by_status: z.record(statusWord(variant), count()),
  first_created_at: time(),
  last_created_at: time(),
  last_updated_at: time(),
  lux_reward: number("The rewards of all tasks of the group."),
  lux_paid: number(
    "What the completed tasks of the group have paid; a task that waits for its review has paid nothing.",
  ),
});

export const groupSchema = (variant: Variant) =>
  z.strictObject({
    ...countsSchema(variant),
    usage: nullable(
      spendingSchema(),
      "What the tasks of the group have used, including deleted tasks; null: no worker has reported any usage.",
    ),
    failures: z.array(taskStateSchema(variant)),
  });

const list = readEndpoint({
  path: "/api/v1/group/list",
  readsMany: true,
  auth: "public",
  summary: "Groups by name, with their counts",
  input: () =>
    z.object({
      q: optional(field.groupPrefix(), "The beginning of the name."),
      limit: optional(field.queryCount(GROUPS_LISTED_MAX), "How many groups to return at most."),
      cursor: optional(field.groupPrefix(), "The `next_cursor` of the previous page."),
    }),
  answer: (variant) =>
    z.strictObject({
      groups: about(z.array(z.strictObject(countsSchema(variant))), "The groups, by name."),
      next_cursor: maybeString("Send this value as `cursor` to get the next groups; null at the end."),
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
  input: () =>
    z.object({
      group: field.group(),
      wait: optional(
        field.queryWaitSeconds(),
        "Seconds to wait until no task of the group is unfinished; 0, the default, returns at once.",
      ),
    }),
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
  const unfinished = unfinishedIn(totals);
  return {
    group: name,
    done: unfinished === 0,
    total: tasksIn(totals),
    unfinished,
    ...(inReview > 0 && { in_review: inReview }),
    ...(cancelled > 0 && { cancelled }),
    by_status: encodeTotals(totals, variant),
    first_created_at: isoTime(totals.firstCreatedAt),
    last_created_at: isoTime(totals.lastCreatedAt),
    last_updated_at: isoTime(totals.lastUpdatedAt),
    lux_reward: toLux(totals.lux * MICRO_PER_LUX + totals.luxMicro),
    lux_paid: toLux(totals.paid * MICRO_PER_LUX + totals.paidMicro),
  };
}

const cancel = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/group/cancel",
  summary: "Cancels unfinished tasks of a group, which then fail",
  rejections: ["group_not_found", "node_not_found", "key_bound_to_other_node"],
  input: () =>
    z.object({
      group: field.group(),
      node_id: optional(field.nodeId(), "The node that cancels the tasks."),
      reason: z.optional(field.reason()),
    }),
  answer: () => z.strictObject({ group: z.string(), cancelled: count(), left: count() }),
  handle: ({ services, transact, nodeOfKey: boundTo }, { group, node_id: nodeId = null, reason = null }) =>
    services.groups.cancel(transact, { group: ownedGroup(group, boundTo), nodeId, reason, boundTo }),
  encode: ({ group, changed, left }: GroupStep) => ({ group, cancelled: changed, left }),
});

const retry = writeEndpoint({
  path: "/api/v1/group/retry",
  auth: "secret",
  summary: "Opens the failed tasks of a group again",
  rejections: ["group_not_found"],
  input: () =>
    z.object({
      group: field.group(),
      cursor: optional(field.numberCursor(15), "The `next_cursor` of the call before."),
    }),
  answer: () =>
    z.strictObject({
      group: z.string(),
      retried: about(count(), "How many tasks were opened again."),
      left: about(count(), "How many failed tasks the call did not examine, at most 100,000."),
      next_cursor: maybeString(
        "Send this value as `cursor` to examine the remaining tasks; null at the end.",
      ),
    }),
  handle: ({ services, transact, nodeOfKey: boundTo }, { group, cursor: after = 0 }) =>
    services.groups.retry(transact, { group: ownedGroup(group, boundTo), after, boundTo }),
  encode: ({ group, changed, left, next }: GroupStep) => ({
    group,
    retried: changed,
    left,
    next_cursor: next === null ? null : String(next),
  }),
});

export const GROUP_ENDPOINTS: readonly Endpoint[] = [list, get, cancel, retry];
