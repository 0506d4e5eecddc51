/** The endpoints of schedules: schedule/*. */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import { CATCH_UPS, type Moment, OVERLAPS, type Schedule, type Task } from "../domain/model.ts";
import { type FieldError, invalidRequest } from "../http/problem.ts";
import { must } from "../lib/assert.ts";
import { SECOND_MS } from "../lib/clock.ts";
import type { Variant } from "../variant/variant.ts";
import type { JsonAnswer } from "./answer.ts";
import { type Endpoint, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import {
  comparedWord,
  encodePage,
  encodeTask,
  maybeTime,
  pageSchema,
  taskSchema,
  time,
} from "./response-schemas.ts";
import { encodeTerms, scheduledFields, shownFields } from "./task-fields.ts";
import { draftOf, nameOfKey } from "./tasks.ts";
import { about, maybeString, nullable, optional, string } from "./about.ts";

const UTC = "UTC";
const NAME = "The name of the schedule.";
const REPLACES = "The name of the schedule; replaces a schedule of this name.";
const UNTIL = "The schedule creates no task after this time.";

/**
 * The task of a schedule: as for task/create, without what names a moment, another task, a file, a node or a unique
 * key.
 */
const scheduledTask = () => {
  const fields = scheduledFields();
  const max = limit.SCHEDULE_DESCRIPTION_MAX_BYTES;
  const isShort = (text: string): boolean => Buffer.byteLength(text) <= max;
  return z
    .strictObject({
      ...fields,
      description: fields.description.check(z.refine(isShort, `must be at most ${max} bytes of UTF-8`)),
    })
    .check(
      z.refine(({ review, quorum }) => review === undefined || quorum === undefined, {
        path: ["review"],
        message: "must not be sent together with quorum",
      }),
    );
};

/** Its fields that are null count as left out, as those of a body do: so a listed schedule can be sent back. */
const withoutNulls = (task: unknown): unknown =>
  typeof task === "object" && task !== null && !Array.isArray(task)
    ? Object.fromEntries(Object.entries(task).filter(([, value]) => value !== null))
    : task;

const putSchema = <Task>(task: z.ZodMiniType<Task>) =>
  z.object({
    name: about(field.scheduleName(), REPLACES),
    cron: z.optional(field.cron()),
    every_s: z.optional(field.scheduleInterval()),
    tz: z.optional(field.timeZone()),
    task: about(task, "The task to create, as for task/create."),
    overlap: z._default(field.word(OVERLAPS), "skip"),
    catch_up: z._default(field.word(CATCH_UPS), "one"),
    jitter_s: z._default(field.jitter(), 0),
    until: optional(field.date(), UNTIL),
    paused: z._default(z.boolean(), false),
  });

const put = writeEndpoint({
  method: "POST",
  path: "/api/v1/schedule/put",
  auth: "secret",
  strict: "bound",
  summary: "Creates or replaces a schedule, which creates a task at certain times",
  rejections: ["key_bound_to_other_node", "schedules_limit"],
  input: () => putSchema(z.pipe(z.transform(withoutNulls), scheduledTask())),
  inputOf: () => putSchema(scheduledTask()),
  actsFor: ({ task }) => [task.creator_node],
  answer: (variant) =>
    z.strictObject({
      name: string(REPLACES),
      schedule: scheduleSchema(variant),
    }),
  handle: (call, { task, ...input }) => {
    return call.services.schedules.put(
      call.transact,
      {
        name: input.name,
        timing: timingOf(input),
        task: { ...draftOf(call, task), creatorKey: nameOfKey(call.key), delayMs: task.delay_s ?? 0 },
        overlap: input.overlap,
        catchUp: input.catch_up,
        jitterMs: input.jitter_s,
        until: input.until ?? null,
        paused: input.paused,
      },
      call.nodeOfKey,
    );
  },
  encode: (schedule: Schedule, variant: Variant) => ({
    name: schedule.name,
    schedule: encodeSchedule(schedule, variant),
  }),
});

type AskedTiming = {
  readonly cron?: string | undefined;
  readonly every_s?: number | undefined;
  readonly tz?: string | undefined;
};

/** @throws {Problem} 400 */
function timingOf({ cron, every_s: everyMs, tz }: AskedTiming): Schedule["timing"] {
  const errors: FieldError[] = [];
  if (cron === undefined && everyMs === undefined)
    errors.push({ path: "cron", message: "is required, or every_s" });
  if (cron !== undefined && everyMs !== undefined)
    errors.push({ path: "every_s", message: "must not be sent together with cron" });
  if (tz !== undefined && cron === undefined) errors.push({ path: "tz", message: "needs cron" });
  if (errors.length > 0) throw invalidRequest(errors);
  if (cron !== undefined) return { cron, tz: tz ?? UTC };
  return { everyMs: must(everyMs, "a timing has a cron expression or an interval") };
}

const list = readEndpoint({
  path: "/api/v1/schedule/list",
  readsMany: true,
  auth: "secret",
  summary: "All schedules, by name",
  rejections: [],
  input: () => z.object(field.paging()),
  answer: (variant) =>
    z.strictObject({
      schedules: about(z.array(scheduleSchema(variant)), "The schedules, by name."),
      ...pageSchema(),
    }),
  handle: ({ services, variant }, paging) =>
    services.schedules.list(field.pageRequest(paging, variant.unpaged)),
  encode: (page, variant) => encodePage("schedules", page, (schedule) => encodeSchedule(schedule, variant)),
});

const run = writeEndpoint({
  method: "POST",
  path: "/api/v1/schedule/run",
  auth: "secret",
  summary: "Creates a task of a schedule now; the next time does not change",
  rejections: ["mint_limit", "key_bound_to_other_node", "schedule_not_found"],
  input: () => z.object({ name: about(field.scheduleName(), NAME) }),
  answer: (variant) => z.strictObject({ task_id: z.string(), task: taskSchema(variant) }),
  handle: ({ services, transact, nodeOfKey }, { name }) =>
    services.schedules.run(transact, { name, boundTo: nodeOfKey }),
  encode: (task: Task, variant: Variant, at: Moment) => ({
    task_id: task.taskId,
    task: encodeTask(task, variant, at),
  }),
});

const remove = writeEndpoint({
  method: "POST",
  path: "/api/v1/schedule/delete",
  auth: "secret",
  summary: "Deletes a schedule; its tasks stay",
  rejections: ["key_bound_to_other_node", "schedule_not_found"],
  input: () => z.object({ name: about(field.scheduleName(), NAME) }),
  answer: (variant) => z.strictObject({ name: string(NAME), schedule: scheduleSchema(variant) }),
  handle: ({ services, transact, nodeOfKey }, { name }) =>
    services.schedules.delete(transact, { name, boundTo: nodeOfKey }),
  encode: (schedule: Schedule, variant: Variant) => ({
    name: schedule.name,
    schedule: encodeSchedule(schedule, variant),
  }),
});

export const scheduleSchema = (variant: Variant) =>
  z.strictObject({
    name: string(NAME),
    cron: z.nullable(z.string()),
    tz: z.nullable(z.string()),
    every_s: z.nullable(z.number()),
    task: about(z.strictObject(shownFields("schedule", variant)), "The task that the schedule creates."),
    overlap: z.enum(OVERLAPS),
    catch_up: z.enum(CATCH_UPS),
    jitter_s: z.number(),
    until: nullable(time(), UNTIL),
    paused: z.boolean(),
    next_at: nullable(time(), "The next time; null while the schedule is paused, and after the last time."),
    last_task_id: maybeString("The last task that the schedule created."),
    last_at: nullable(time(), "When the schedule created its last task."),
    created_at: time(),
    updated_at: time(),
  });

function encodeSchedule(schedule: Schedule, variant: Variant): JsonAnswer {
  const { timing } = schedule;
  return {
    name: schedule.name,
    cron: "cron" in timing ? timing.cron : null,
    tz: "cron" in timing ? timing.tz : null,
    every_s: "cron" in timing ? null : timing.everyMs / SECOND_MS,
    task: encodeDraft(schedule.task, variant),
    overlap: schedule.overlap,
    catch_up: schedule.catchUp,
    jitter_s: schedule.jitterMs / SECOND_MS,
    until: maybeTime(schedule.until),
    paused: schedule.paused,
    next_at: maybeTime(schedule.nextAt),
    last_task_id: schedule.lastTaskId,
    last_at: maybeTime(schedule.lastAt),
    created_at: maybeTime(schedule.createdAt),
    updated_at: maybeTime(schedule.updatedAt),
  };
}

function encodeDraft(draft: Schedule["task"], variant: Variant): JsonAnswer {
  const { reviewTerms, quorumTerms, delayMs } = draft;
  return {
    ...encodeTerms(draft, variant),
    ...(reviewTerms && {
      review: reviewTerms.by,
      review_within_s: reviewTerms.withinMs / SECOND_MS,
      on_review_timeout: reviewTerms.onTimeout,
    }),
    ...(quorumTerms && { quorum: { ...quorumTerms, compare: comparedWord(quorumTerms.compare) } }),
    delay_s: delayMs / SECOND_MS,
  };
}

export const SCHEDULE_ENDPOINTS: readonly Endpoint[] = [put, list, run, remove];
