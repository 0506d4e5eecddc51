/** The endpoints of the hub itself: status, the event log (events), its long poll (poll), and pg/diagnostic. */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import { SECOND_MS } from "../lib/clock.ts";
import { type Endpoint, jsonEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { encodeEvent, eventSchema } from "./response-schemas.ts";

const status = jsonEndpoint({
  method: "GET",
  path: "/api/v1/status",
  auth: "public",
  summary: "The health of the hub, and counts",
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
      variant: z.literal(name),
      transport: z.string(),
    }),
  handle: ({ services }) => services.system.status(),
  encode: (hub, variant) => ({
    status: hub.writable ? "ok" : "degraded",
    version: variant.version,
    uptime: Math.floor(hub.uptimeMs / SECOND_MS),
    nodes_count: hub.nodesCount,
    tasks_count: hub.tasksCount,
    software: hub.software,
    variant: variant.name,
    transport: hub.transport,
  }),
});

export const eventBatchSchema = () => z.strictObject({ events: z.array(eventSchema()), cursor: z.int() });

const events = jsonEndpoint({
  method: "GET",
  path: "/api/v1/events",
  auth: "public",
  summary: "The event log after a cursor, oldest first; without one, its newest events",
  rejections: [],
  input: () =>
    z.object({
      since: z.optional(field.eventCursor()),
      limit: z.optional(field.queryCount(limit.EVENTS_MAX)),
      kind: z.optional(field.eventKinds()),
      task_id: z.optional(field.id()),
      node_id: z.optional(field.nodeId()),
    }),
  answer: eventBatchSchema,
  handle: ({ services }, { since, limit: most, ...filter }) =>
    services.feed.events(
      since ?? null,
      { kinds: filter.kind ?? [], taskId: filter.task_id ?? null, nodeId: filter.node_id ?? null },
      most ?? limit.EVENTS_DEFAULT,
    ),
  encode: (batch) => ({ events: batch.events.map(encodeEvent), cursor: batch.cursor }),
});

const poll = jsonEndpoint({
  method: "GET",
  path: "/api/v1/poll",
  auth: "public",
  summary: "Waits for task events after a cursor",
  once: true,
  rejections: [],
  input: () =>
    z.object({ since: z.optional(field.eventCursor()), timeout: z.optional(field.queryWaitSeconds()) }),
  answer: eventBatchSchema,
  handle: ({ services, hold }, { since, timeout }) => {
    const waitMs = timeout ?? limit.POLL_TIMEOUT_DEFAULT_SECONDS * SECOND_MS;
    return hold((signal) => services.feed.poll(since ?? null, waitMs, signal));
  },
  encode: (batch) => ({ events: batch.events.map(encodeEvent), cursor: batch.cursor }),
});

const diagnostic = jsonEndpoint({
  method: "GET",
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

export const SYSTEM_ENDPOINTS: readonly Endpoint[] = [status, events, poll, diagnostic];
