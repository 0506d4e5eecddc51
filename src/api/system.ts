/** The endpoints of the hub itself: status, the event log (events), its long poll (poll), and pg/diagnostic. */
import * as z from "zod/mini";
import { groupsNamed } from "../domain/task/facet/group.ts";
import * as limit from "../domain/limits.ts";
import { invalidRequest } from "../http/problem.ts";
import { MINUTE_MS, SECOND_MS, isoTime } from "../lib/clock.ts";
import { RANGES } from "../service/history.ts";
import { takesHalf } from "../service/system.ts";
import { toLux } from "../domain/lux.ts";
import { PAUSE_SCOPES } from "../domain/model.ts";
import type { DurationSummary, Summary } from "../service/minutes.ts";
import { type Endpoint, readEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { count, encodeEvent, eventSchema, time } from "./response-schemas.ts";

const HALF_OF_THE_DISK =
  "The database and the files take half of the disk. Delete finished tasks and files, or start the hub with --retain-tasks and --retain-files.";

const status = readEndpoint({
  path: "/api/v1/status",
  auth: "public",
  summary: "The health of the hub, and the numbers of its nodes and tasks",
  rejections: [],
  input: () => z.object({}),
  answer: ({ name, version }) =>
    z.strictObject({
      status: z.enum(["ok", "degraded"]),
      version: z.literal(version),
      uptime: z.number(),
      nodes_count: z.int(),
      tasks_count: z.int(),
      software: z.string(),
      name: z.nullable(z.string()),
      variant: z.literal(name),
      transport: z.string(),
      paused: z.optional(
        z.array(z.strictObject({ scope: z.enum(PAUSE_SCOPES), value: z.nullable(z.string()) })),
      ),
      storage: z.strictObject({
        database_bytes: z.int(),
        files_bytes: z.int(),
        finished_tasks: z.int(),
        free_bytes: z.nullable(z.int()),
        warning: z.nullable(z.string()),
      }),
      webhooks_suspended: z.optional(z.int()),
    }),
  handle: async ({ services }) => ({
    ...(await services.system.status()),
    suspended: await services.webhooks.suspended(),
  }),
  encode: (hub, variant) => ({
    ...(hub.suspended === 0 ? {} : { webhooks_suspended: hub.suspended }),
    status: hub.writable ? "ok" : "degraded",
    version: variant.version,
    uptime: Math.floor(hub.uptimeMs / SECOND_MS),
    nodes_count: hub.nodesCount,
    tasks_count: hub.tasksCount,
    software: hub.software,
    name: hub.name,
    variant: variant.name,
    transport: hub.transport,
    ...(hub.pauses.length > 0 && {
      paused: hub.pauses.map(({ scope, value }) => ({ scope, value: value === "" ? null : value })),
    }),
    storage: {
      database_bytes: hub.storage.databaseBytes,
      files_bytes: hub.storage.filesBytes,
      finished_tasks: hub.storage.finishedTasks,
      free_bytes: hub.storage.freeBytes,
      warning: takesHalf(hub.storage) ? HALF_OF_THE_DISK : null,
    },
  }),
});

export const eventBatchSchema = () => z.strictObject({ events: z.array(eventSchema()), cursor: z.int() });

const events = readEndpoint({
  path: "/api/v1/events",
  readsMany: true,
  auth: "public",
  summary: "The event log after a cursor, oldest first; without one, the newest",
  rejections: [],
  input: () =>
    z.object({
      since: z.optional(field.eventCursor()),
      limit: z.optional(field.queryCount(limit.EVENTS_MAX)),
      kind: z.optional(field.eventKinds()),
      task_id: z.optional(field.id()),
      node_id: z.optional(field.nodeId()),
      group: z.optional(field.group()),
      tag: z.optional(field.tag()),
    }),
  answer: eventBatchSchema,
  handle: ({ services, boundTo }, { since, limit: most, ...filter }) =>
    services.feed.events(
      since ?? null,
      {
        kinds: filter.kind ?? [],
        taskId: filter.task_id ?? null,
        nodeId: filter.node_id ?? null,
        groups: groupsNamed(filter.group, boundTo),
        tag: filter.tag ?? null,
      },
      most ?? limit.EVENTS_DEFAULT,
    ),
  encode: (batch) => ({ events: batch.events.map(encodeEvent), cursor: batch.cursor }),
});

export const durationsSchema = () =>
  z.strictObject({
    count: z.int(),
    sum_s: z.number(),
    p50_s: z.nullable(z.number()),
    p95_s: z.nullable(z.number()),
  });

const numbersSchema = () => ({
  tasks_created: z.int(),
  tasks_started: z.int(),
  tasks_completed: z.int(),
  attempts_failed: z.int(),
  tasks_failed: z.int(),
  tasks_cancelled: z.int(),
  lux_paid: z.number(),
  messages_sent: z.int(),
  time_to_start: durationsSchema(),
  time_to_finish: durationsSchema(),
});

export const minuteSchema = () => z.strictObject({ at: time(), ...numbersSchema() });
export const minutesTotalSchema = () => z.strictObject(numbersSchema());

const minutes = readEndpoint({
  path: "/api/v1/stats/minutes",
  auth: "public",
  summary: "For charts: counts and durations of the last hour, day or month",
  rejections: [],
  input: () =>
    z.object({
      last: z.optional(field.queryCount(limit.MINUTES_KEPT)),
      range: z.optional(field.statsRange()),
    }),
  answer: () =>
    z.strictObject({ step_s: count(), minutes: z.array(minuteSchema()), total: minutesTotalSchema() }),
  handle: async ({ services }, { last, range = "hour" }) => {
    if (range === "hour")
      return { ...(await services.minutes.last(last ?? limit.MINUTES_KEPT)), stepMs: MINUTE_MS };
    if (last !== undefined)
      throw invalidRequest([{ path: "last", message: "must not be sent together with range" }]);
    return { ...(await services.history.read(RANGES[range])), stepMs: RANGES[range].stepMs };
  },
  encode: (found) => ({
    step_s: found.stepMs / SECOND_MS,
    minutes: found.minutes.map((minute) => ({ at: isoTime(minute.at), ...encodeNumbers(minute) })),
    total: encodeNumbers(found.total),
  }),
});

function encodeNumbers(numbers: Summary) {
  return {
    tasks_created: numbers.created,
    tasks_started: numbers.started,
    tasks_completed: numbers.completed,
    attempts_failed: numbers.attemptsFailed,
    tasks_failed: numbers.failed,
    tasks_cancelled: numbers.cancelled,
    lux_paid: toLux(numbers.luxMicro),
    messages_sent: numbers.messages,
    time_to_start: encodeDurations(numbers.toStart),
    time_to_finish: encodeDurations(numbers.toFinish),
  };
}

export function encodeDurations({ count, sumMs, p50Ms, p95Ms }: DurationSummary) {
  const seconds = (ms: number): number => Math.round(ms) / SECOND_MS;
  return {
    count,
    sum_s: seconds(sumMs),
    p50_s: p50Ms === null ? null : seconds(p50Ms),
    p95_s: p95Ms === null ? null : seconds(p95Ms),
  };
}

const nodeStats = readEndpoint({
  path: "/api/v1/stats/nodes",
  auth: "public",
  summary: "The number of nodes by status, and the sum of their LUX",
  rejections: [],
  input: () => z.object({}),
  answer: () =>
    z.strictObject({
      total: z.int(),
      by_status: z.strictObject({ online: z.int(), offline: z.int() }),
      draining: z.int(),
      lux_balance: z.number(),
    }),
  handle: ({ services }) => services.nodes.lists.counts(),
  encode: ({ online, draining, offline, luxMicro }) => ({
    total: online + draining + offline,
    by_status: { online: online + draining, offline },
    draining,
    lux_balance: toLux(luxMicro),
  }),
});

const poll = readEndpoint({
  path: "/api/v1/poll",
  auth: "public",
  summary: "Waits for task events after a cursor",
  once: true,
  rejections: [],
  input: () =>
    z.object({ since: z.optional(field.eventCursor()), timeout: z.optional(field.queryWaitSeconds()) }),
  answer: eventBatchSchema,
  handle: async (call, { since, timeout }) => {
    const { feed } = call.services;
    if (since !== undefined) {
      // There may be a thousand: a large read like those of the log.
      const batch = await call.backpressure.runRead(call, () => feed.taskEvents(since));
      if (batch.events.length > 0) return batch;
    }
    const waitMs = timeout ?? limit.POLL_TIMEOUT_DEFAULT_SECONDS * SECOND_MS;
    return call.hold((signal) => feed.poll(since ?? null, waitMs, signal));
  },
  encode: (batch) => ({ events: batch.events.map(encodeEvent), cursor: batch.cursor }),
});

const diagnostic = readEndpoint({
  path: "/api/v1/pg/diagnostic",
  auth: "public",
  summary: "The state of the hub's store",
  rejections: [],
  input: () => z.object({}),
  answer: () =>
    z.strictObject({
      engine: z.enum(["sqlite", "postgresql"]),
      connected: z.boolean(),
      latency_ms: z.nullable(z.number()),
      engine_version: z.nullable(z.string()),
      size_bytes: z.nullable(z.int()),
      migration: z.nullable(z.int()),
      queued: z.nullable(z.int()),
      details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
    }),
  handle: ({ services }) => services.system.diagnose(),
  encode: ({ engine, found, fault }) => ({
    engine,
    connected: found !== null,
    latency_ms: found && Math.round(found.latencyMs * 1_000) / 1_000,
    engine_version: found && found.engineVersion,
    size_bytes: found && found.sizeBytes,
    migration: found && found.migration,
    queued: found && found.queued,
    details: found ? found.details : { fault },
  }),
});

export const SYSTEM_ENDPOINTS: readonly Endpoint[] = [status, events, poll, minutes, nodeStats, diagnostic];
