/** The endpoints of the hub itself: status, events, poll and pg/diagnostic. */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import { MINUTE_MS, SECOND_MS, isoTime } from "../lib/clock.ts";
import type { EventBatch } from "../service/feed.ts";
import { RANGES } from "../service/history.ts";
import { takesHalf } from "../service/system.ts";
import { toLux } from "../domain/lux.ts";
import { PAUSE_SCOPES } from "../domain/model.ts";
import type { DurationSummary, Summary } from "../service/minutes.ts";
import { type Endpoint, readEndpoint } from "./endpoint.ts";
import { invalidField } from "./input.ts";
import * as field from "./request-fields.ts";
import { count, encodeEvent, eventSchema, time } from "./response-schemas.ts";
import {
  about,
  flag,
  maybeNumber,
  maybeString,
  maybeWhole,
  number,
  optional,
  string,
  whole,
} from "./about.ts";
import { copySchema, encodeCopy } from "./copies.ts";
import { isCopied } from "../service/copies.ts";
import { eventFilter, filterOf } from "./stream.ts";

const HALF_OF_THE_DISK =
  "The database and the files take half of the disk. Delete finished tasks and files, or start the hub with --retain-tasks and --retain-files.";

const status = readEndpoint({
  path: "/api/v1/status",
  auth: "public",
  summary: "The health of the hub, and the numbers of its nodes and tasks",
  input: () => z.object({}),
  answer: ({ name, version }) =>
    z.strictObject({
      status: about(z.enum(["ok", "degraded"]), "`degraded` while the hub cannot write."),
      version: about(z.literal(version), "The version of the specification that the variant follows."),
      uptime: number("Seconds since the hub started."),
      nodes_count: whole("How many nodes are registered."),
      tasks_count: whole("How many tasks there are."),
      software: string("The program and its version."),
      name: maybeString("What people call this hub (`--name`); null for a hub without a name."),
      variant: about(z.literal(name), "The variant of the response."),
      transport: z.string(),
      paused: optional(
        z.array(
          z.strictObject({
            scope: about(
              z.enum(PAUSE_SCOPES),
              "What is paused: the whole hub, or a type, a limit key or a creator of tasks.",
            ),
            value: maybeString(
              "The type, the limit key or the creator; null: the hub, or tasks without a type.",
            ),
          }),
        ),
        "What is paused; left out if nothing is.",
      ),
      storage: about(
        z.strictObject({
          database_bytes: whole("The size of the database, at most 10 s old."),
          files_bytes: whole("The bytes of all files."),
          finished_tasks: whole("Tasks that are completed or have failed."),
          free_bytes: maybeWhole(
            "Free space on the disk of the data directory; null if the database is on another machine.",
          ),
          warning: maybeString(
            "What to do, when the database and the files take half of the disk; else null.",
          ),
        }),
        "How much space the hub's data takes.",
      ),
      copy: optional(copySchema(), "The second copy of the hub; only if there is one."),
      webhooks_suspended: optional(z.int(), "How many webhooks are suspended; only if there are any."),
    }),
  handle: async ({ services }) => ({
    ...(await services.system.status()),
    suspended: await services.webhooks.suspended(),
    copy: services.copies.report(),
  }),
  encode: (hub, variant) => ({
    ...(hub.suspended === 0 ? {} : { webhooks_suspended: hub.suspended }),
    ...(hub.copy !== null && isCopied(hub.copy) && { copy: encodeCopy(hub.copy) }),
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

export const eventBatchSchema = () =>
  z.strictObject({ events: about(z.array(eventSchema()), "The events, oldest first."), cursor: z.int() });

function encodeBatch({ events, cursor }: EventBatch) {
  return { events: events.map(encodeEvent), cursor };
}

const events = readEndpoint({
  path: "/api/v1/events",
  readsMany: true,
  auth: "public",
  summary: "The event log after a cursor, oldest first; without one, the newest",
  input: () =>
    z.object({
      since: optional(
        field.eventCursor(),
        "The id of the last event read; 0: from the beginning; if left out, the newest events.",
      ),
      since_time: optional(field.date(), "In place of `since`: only events at or after this time."),
      limit: z.optional(field.queryCount(limit.EVENTS_MAX)),
      ...eventFilter(),
    }),
  answer: eventBatchSchema,
  handle: async ({ services: { feed }, boundTo }, { since, since_time: from, ...input }) => {
    const { limit: most = limit.EVENTS_DEFAULT, ...filter } = input;
    if (since !== undefined && from !== undefined)
      throw invalidField("since_time", "must not be sent together with since");
    const after = from === undefined ? (since ?? null) : await feed.idBefore(from);
    return feed.events(after, filterOf(filter, boundTo), most);
  },
  encode: encodeBatch,
});

export const durationsSchema = () =>
  z.strictObject({
    count: whole("How many durations there are."),
    sum_s: number("The sum of the durations, in seconds."),
    p50_s: z.nullable(z.number()),
    p95_s: z.nullable(z.number()),
  });

const numbersSchema = () => ({
  tasks_created: z.int(),
  tasks_started: z.int(),
  tasks_completed: whole("How many tasks were completed."),
  attempts_failed: z.int(),
  tasks_failed: z.int(),
  tasks_cancelled: z.int(),
  lux_paid: number("LUX paid, including daily bonuses."),
  messages_sent: z.int(),
  time_to_start: durationsSchema(),
  time_to_finish: durationsSchema(),
});

export const minuteSchema = () =>
  z.strictObject({ at: about(time(), "When the minute begins."), ...numbersSchema() });
export const minutesTotalSchema = () => z.strictObject(numbersSchema());

const minutes = readEndpoint({
  path: "/api/v1/stats/minutes",
  auth: "public",
  summary: "For charts: counts and durations of the last hour, day or month",
  input: () =>
    z.object({
      last: optional(
        field.queryCount(limit.MINUTES_KEPT),
        "How many minutes, including the current one; 60 if left out.",
      ),
      range: optional(
        field.word(["hour", "day", "month"]),
        "`hour` (if left out): by minute; `day`: 24 hours by ten minutes; `month`: 30 days by hour.",
      ),
    }),
  answer: () =>
    z.strictObject({
      step_s: about(count(), "How many seconds each entry takes: 60, 600 or 3,600."),
      minutes: about(z.array(minuteSchema()), "The minutes, oldest first."),
      total: about(minutesTotalSchema(), "The sum of the entries."),
    }),
  handle: async ({ services }, { last, range = "hour" }) => {
    if (range === "hour")
      return { ...(await services.minutes.last(last ?? limit.MINUTES_KEPT)), stepMs: MINUTE_MS };
    if (last !== undefined) throw invalidField("last", "must not be sent together with range");
    return { ...(await services.history.read(RANGES[range])), stepMs: RANGES[range].stepMs };
  },
  encode: (statistics) => ({
    step_s: statistics.stepMs / SECOND_MS,
    minutes: statistics.minutes.map((minute) => ({ at: isoTime(minute.at), ...encodeNumbers(minute) })),
    total: encodeNumbers(statistics.total),
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
  input: () => z.object({}),
  answer: () =>
    z.strictObject({
      total: whole("How many nodes are registered."),
      by_status: about(
        z.strictObject({
          online: whole("Online nodes, including draining ones."),
          offline: whole("Nodes that left or whose heartbeats stopped."),
        }),
        "How many nodes there are in each state.",
      ),
      draining: whole("Online nodes that take no new tasks."),
      lux_balance: number("The sum of the balances of all nodes."),
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
  input: () =>
    z.object({
      since: optional(field.eventCursor(), "The id of the last event read; if left out, only new events."),
      timeout: z.optional(field.queryWaitSeconds()),
    }),
  answer: eventBatchSchema,
  handle: async (
    call,
    { since = null, timeout: waitMs = limit.POLL_TIMEOUT_DEFAULT_SECONDS * SECOND_MS },
  ) => {
    const { feed } = call.services;
    if (since !== null) {
      // There may be a thousand: a large read like those of the log.
      const batch = await call.backpressure.runRead(call, () => feed.taskEvents(since));
      if (batch.events.length > 0) return batch;
    }
    return call.hold((signal) => feed.poll(since, waitMs, signal));
  },
  encode: encodeBatch,
});

const diagnostic = readEndpoint({
  path: "/api/v1/pg/diagnostic",
  auth: "public",
  summary: "The state of the hub's store",
  input: () => z.object({}),
  answer: () =>
    z.strictObject({
      engine: about(z.enum(["sqlite", "postgresql"]), "The engine of the store: `sqlite` or `postgresql`."),
      connected: flag("Whether the store responds."),
      latency_ms: maybeNumber("The duration of a read, in milliseconds."),
      engine_version: maybeString("The version of the store's engine."),
      size_bytes: maybeWhole("How large the database is."),
      migration: maybeWhole("The version of the schema."),
      queued: maybeWhole("How many writes wait for their commit; each request of a batch counts."),
      details: about(
        z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
        "What else the engine reports.",
      ),
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
