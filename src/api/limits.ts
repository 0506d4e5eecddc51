/** The endpoints that say what is handed out: hub/pause, hub/resume, hub/pauses, limit/*, and why a task does not run. */
import * as z from "zod/mini";
import { REASON_CODES, type Reason } from "../domain/task/facet/facet.ts";
import { lasts, usesIn } from "../domain/gate.ts";
import { BOUND_HOLD_MAX_SECONDS } from "../domain/limits.ts";
import {
  type KeyRecord,
  type LimitState,
  type Moment,
  PAUSE_SCOPES,
  type Pause,
  type PauseKey,
} from "../domain/model.ts";
import { must } from "../lib/assert.ts";
import { SECOND_MS, isoTime } from "../lib/clock.ts";
import { type Endpoint, BY_NODE, readEndpoint, writeEndpoint } from "./endpoint.ts";
import { invalidField } from "./input.ts";
import * as field from "./request-fields.ts";
import { encodePage, maybeTime, pageSchema, time } from "./response-schemas.ts";
import { about, flag, maybeString, maybeWhole, nullable, optional, string, whole } from "./about.ts";

// ---- Pauses

export const pauseSchema = () =>
  z.strictObject({
    scope: about(
      z.enum(PAUSE_SCOPES),
      "What is paused: the whole hub, or a type, a limit key or a creator of tasks.",
    ),
    value: maybeString("The type, the limit key or the creator; null: the hub, or tasks without a type."),
    reason: maybeString("Why."),
    at: about(time(), "Since when."),
  });

export function encodePause({ scope, value, reason, at }: Pause) {
  return { scope, value: value === "" ? null : value, reason, at: isoTime(at) };
}

const pauseFields = () => ({
  type: optional(
    field.taskType(),
    "The type of the tasks; without `type`, `limit_key` and `creator_node`: all tasks.",
  ),
  limit_key: optional(field.limitKey(), "The limit key of the tasks."),
  creator_node: optional(field.nodeId(), "The creator of the tasks."),
});

type PauseFields = z.infer<z.ZodMiniObject<ReturnType<typeof pauseFields>>>;

function pauseKeyOf({ type, limit_key, creator_node }: PauseFields): PauseKey {
  const named = [
    { scope: "type", path: "type", value: type },
    { scope: "limit_key", path: "limit_key", value: limit_key },
    { scope: "creator", path: "creator_node", value: creator_node },
  ] as const;
  const sent = named.filter(({ value }) => value !== undefined);
  const [first, second] = sent;
  if (second) throw invalidField(second.path, `must not be sent together with ${first?.path}`);
  return first
    ? { scope: first.scope, value: must(first.value, "it was sent") }
    : { scope: "hub", value: "" };
}

const PAUSE_ANSWER = {
  answer: () => z.strictObject({ pause: pauseSchema() }),
  encode: (pause: Pause) => ({ pause: encodePause(pause) }),
} as const;

const pause = writeEndpoint({
  ...PAUSE_ANSWER,
  path: "/api/v1/hub/pause",
  auth: "admin",
  summary: "Pauses the tasks of a type, a limit key or a creator, or all tasks",
  rejections: ["pauses_limit"],
  input: () =>
    z.object({
      ...pauseFields(),
      reason: optional(field.reason(), "Why; everybody who asks why a task does not run can read it."),
    }),
  handle: ({ services, transact }, { reason = null, ...key }) =>
    services.limits.pause(transact, { ...pauseKeyOf(key), reason }),
});

const resume = writeEndpoint({
  ...PAUSE_ANSWER,
  path: "/api/v1/hub/resume",
  auth: "admin",
  summary: "Ends a pause",
  rejections: ["pause_not_found"],
  input: () => z.object(pauseFields()),
  handle: ({ services, transact }, key) => services.limits.resume(transact, pauseKeyOf(key)),
});

const pauses = readEndpoint({
  path: "/api/v1/hub/pauses",
  auth: "admin",
  summary: "What is paused",
  input: () => z.object(field.paging()),
  answer: () =>
    z.strictObject({
      pauses: about(z.array(pauseSchema()), "What is paused, by scope and value."),
      ...pageSchema(),
    }),
  handle: ({ services, variant }, paging) =>
    services.limits.pauses(field.pageRequest(paging, variant.unpaged)),
  encode: (page) => encodePage("pauses", page, encodePause),
});

// ---- Limits

export const limitSchema = () =>
  z.strictObject({
    key: string("The limit key; empty for tasks without a type."),
    running: maybeWhole("How many tasks of the key may be assigned at once; null: any number."),
    per_minute: maybeWhole("How many tasks of the key may be handed out in any 60 s; null: any number."),
    held_until: maybeString("Until then no task of the key is handed out; null: the key is not held."),
    held_by: maybeString("The node that holds the key; null: the key is not held, or no node was named."),
    running_now: whole("How many tasks of the key are assigned; 0 without `running`."),
    last_minute: whole(
      "How many tasks of the key were handed out in the last minute; 0 without `per_minute`.",
    ),
  });

function encodeLimit(limit: LimitState, { now }: Pick<Moment, "now">) {
  const { key, running, perMinute, inUse } = limit;
  const hold = lasts(limit.hold, now) ? limit.hold : null;
  return {
    key,
    running,
    per_minute: perMinute,
    held_until: hold && isoTime(hold.until),
    held_by: hold && hold.by,
    running_now: inUse,
    last_minute: usesIn(limit, now),
  };
}

const limitAnswer = (text: string) => ({
  answer: () => z.strictObject({ limit: about(limitSchema(), text) }),
  encode: (limit: LimitState, _: unknown, at: Moment) => ({ limit: encodeLimit(limit, at) }),
});

const set = writeEndpoint({
  ...limitAnswer("The limit, and how much of it is used."),
  path: "/api/v1/limit/set",
  auth: "admin",
  summary: "Limits how many tasks of a limit key run at once, or start per minute",
  rejections: ["limits_limit"],
  input: () =>
    z
      .object({
        key: about(
          field.limitKey(),
          "The limit key; the key of a task is its `limit_key` or, if it has none, its `task_type`.",
        ),
        running: optional(
          field.limitRunning(),
          "How many tasks of the key may be assigned at once; left out: any number.",
        ),
        per_minute: optional(
          field.limitPerMinute(),
          "How many tasks of the key may be handed out in any 60 s; left out: any number.",
        ),
      })
      .check(
        z.refine(({ running, per_minute }) => running !== undefined || per_minute !== undefined, {
          path: ["running"],
          message: "must be sent, or per_minute, or both",
        }),
      ),
  handle: ({ services, transact }, { key, running = null, per_minute: perMinute = null }) =>
    services.limits.set(transact, { key, running, perMinute }),
});

const list = readEndpoint({
  path: "/api/v1/limit/list",
  auth: "admin",
  summary: "All limits and holds, each with its current use",
  input: () => z.object(field.paging()),
  answer: () =>
    z.strictObject({
      limits: about(z.array(limitSchema()), "All limits and holds, by key."),
      ...pageSchema(),
    }),
  handle: ({ services, variant }, paging) => services.limits.list(field.pageRequest(paging, variant.unpaged)),
  encode: (page, _, at) => encodePage("limits", page, (limit) => encodeLimit(limit, at)),
});

const remove = writeEndpoint({
  ...limitAnswer("The limit before the deletion."),
  path: "/api/v1/limit/delete",
  auth: "admin",
  summary: "Deletes the limit of a limit key, and ends a hold on the key",
  rejections: ["limit_not_found"],
  input: () => z.object({ key: about(field.limitKey(), "The limit key.") }),
  handle: ({ services, transact }, { key }) => services.limits.delete(transact, key),
});

const hold = writeEndpoint({
  ...BY_NODE,
  ...limitAnswer("The limit of the key, or only its hold."),
  path: "/api/v1/limit/hold",
  summary: "Holds a limit key: none of its tasks is handed out for a time",
  rejections: ["limits_limit", "not_assigned_to_node"],
  input: () =>
    z.object({
      key: about(field.limitKey(), "The limit key."),
      for_s: about(
        field.holdSeconds(),
        "For how many seconds no task of the key is handed out; a longer hold stays. At most 600 with a key that is bound to a node.",
      ),
      node_id: optional(
        field.nodeId(),
        "The node that asks for the hold, which then shows the node as `held_by`. A bound key fills in its node.",
      ),
    }),
  handle: (
    { services, transact, key: caller, nodeOfKey },
    { key, for_s: forMs, node_id: nodeId = nodeOfKey },
  ) => {
    checkHold(caller, "for_s", forMs);
    return services.limits.hold(transact, { key, forMs, nodeId }, nodeOfKey);
  },
});

/** @throws {Problem} 400 when a key that is bound to a node holds for longer than it may */
export function checkHold(caller: KeyRecord | null, path: string, forMs: number | null): void {
  if (caller?.nodeId == null || forMs === null || forMs <= BOUND_HOLD_MAX_SECONDS * SECOND_MS) return;
  throw invalidField(path, `must be at most ${BOUND_HOLD_MAX_SECONDS} with a key that is bound to a node`);
}

// ---- Why a task does not run

export const reasonSchema = () =>
  z.strictObject({
    code: about(z.enum(REASON_CODES), "What keeps the task back."),
    detail: string("The reason in a sentence."),
    until: nullable(time(), "When the reason ends by itself; null: this is not known."),
    task_ids: optional(
      z.array(z.string()),
      "Only of `depends_on`, and of `review` for a dependency: the first 20 tasks for which the task waits.",
    ),
    missing: optional(z.array(z.string()), "Only of `no_node`: what the closest node lacks."),
  });

function encodeReason({ code, detail, until, waitsFor, missing }: Reason) {
  const until_ = maybeTime(until);
  return {
    code,
    detail,
    until: until_,
    ...(waitsFor && { task_ids: waitsFor }),
    ...(missing && { missing }),
  };
}

const explain = readEndpoint({
  path: "/api/v1/task/:task_id/explain",
  auth: "public",
  readsMany: true,
  summary: "Why a task does not run: all reasons; the position of a ready task",
  rejections: ["task_not_found"],
  input: () => z.object({ task_id: z.string() }),
  answer: () =>
    z.strictObject({
      ready: flag("Whether the task may be handed out to a node that fits."),
      reasons: about(
        z.array(reasonSchema()),
        "All reasons; the last one of a task that is ready is `in_line`.",
      ),
      position: maybeWhole(
        "The position of the task in its lane, up to 1,001; null if the task is not ready.",
      ),
    }),
  handle: ({ services }, { task_id }) => services.explanations.of(task_id),
  encode: ({ ready, reasons, position }) => ({ ready, reasons: reasons.map(encodeReason), position }),
});

export const LIMIT_ENDPOINTS: readonly Endpoint[] = [pause, resume, pauses, set, list, remove, hold, explain];
