/** The endpoints of schedules: schedule/*. */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import {
  CATCH_UPS,
  type Moment,
  ON_DEPENDENCY,
  OVERLAPS,
  type Schedule,
  type ScheduledTask,
  type Task,
} from "../domain/model.ts";
import { type FieldError, invalidRequest } from "../http/problem.ts";
import { must } from "../lib/assert.ts";
import { SECOND_MS } from "../lib/clock.ts";
import type { Variant } from "../variant/variant.ts";
import type { JsonAnswer } from "./answer.ts";
import { type Endpoint, readEndpoint, writeEndpoint } from "./endpoint.ts";
import { invalidField, parseInput } from "./input.ts";
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
import { draftOf, nameOfKey, termsOf } from "./tasks.ts";
import { about, maybeString, nullable, optional, string } from "./about.ts";

const UTC = "UTC";
const NAME = "The name of the schedule.";
const REPLACES = "The name of the schedule; replaces a schedule of this name.";
const UNTIL = "The schedule creates no task after this time.";

/** Without what names a moment, another task, a file, a node or a unique key. */
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

const REF = "The name by which tasks after it need this one.";
const NEEDS = "The names of the tasks before it that it waits for.";
const HOWEVER = "As for task/create.";

const pipelineStep = <Task>(task: z.ZodMiniType<Task>) =>
  z.strictObject({
    ref: about(z.string().check(z.regex(/^.{1,64}$/, "must be 1 to 64 characters")), REF),
    needs: optional(z.array(z.string()), NEEDS),
    on_dependency: optional(z.enum(ON_DEPENDENCY), HOWEVER),
    task,
  });

/** So a listed schedule can be sent back. */
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
    task: optional(task, "The task to create, as for task/create."),
    tasks: optional(
      z.array(pipelineStep(task)).check(z.minLength(1), z.maxLength(limit.SCHEDULE_PIPELINE_TASKS_MAX)),
      "The tasks to create together, in a group of their own each time, in place of `task`.",
    ),
    overlap: z._default(field.word(OVERLAPS), "skip"),
    catch_up: z._default(field.word(CATCH_UPS), "one"),
    jitter_s: z._default(field.jitter(), 0),
    until: optional(field.date(), UNTIL),
    paused: z._default(z.boolean(), false),
  });

const put = writeEndpoint({
  path: "/api/v1/schedule/put",
  auth: "secret",
  strict: "bound",
  summary: "Creates or replaces a schedule, which creates a task at certain times",
  rejections: ["key_bound_to_other_node", "schedules_limit"],
  input: () => putSchema(z.pipe(z.transform(withoutNulls), scheduledTask())),
  inputOf: () => putSchema(scheduledTask()),
  actsFor: ({ task, tasks = [] }) => [task?.creator_node, ...tasks.map((step) => step.task.creator_node)],
  answer: (variant) =>
    z.strictObject({
      name: string(REPLACES),
      schedule: scheduleSchema(variant),
    }),
  handle: (call, input) => {
    const draft = draftIn(input, (task) => ({ ...draftOf(call, task), creatorKey: nameOfKey(call.key) }));
    return call.services.schedules.put(call.transact, draft, call.nodeOfKey);
  },
  encode: encodeNamed,
});

/** What a request says, with the defaults: equal for two requests that save the same. @throws {Problem} 400 */
export function scheduleIn(raw: unknown): object {
  return draftIn(parseInput(put.input(), raw) as SentSchedule, termsOf); // the schema is that of the endpoint
}

type SentTask = z.infer<ReturnType<typeof scheduledTask>>;
type SentStep = z.infer<ReturnType<typeof pipelineStep<SentTask>>>;
type SentSchedule = z.infer<ReturnType<typeof putSchema<SentTask>>>;

function draftIn<T extends object>(
  { task, tasks, catch_up: catchUp, jitter_s: jitterMs, ...input }: SentSchedule,
  draft: (task: SentTask) => T,
) {
  const { name, overlap, paused, until = null } = input;
  const timing = timingOf(input);
  const drafted = tasks === undefined ? draftOfTask(task, draft) : draftOfPipeline(task, tasks, draft);
  return { name, timing, task: drafted, overlap, catchUp, jitterMs, until, paused };
}

type Drafted<T> = T & {
  readonly delayMs: number;
  readonly pipeline?: readonly (T & Pick<ScheduledTask, "ref" | "needs" | "onDependency">)[];
};

function draftOfTask<T extends object>(task: SentTask | undefined, draft: (task: SentTask) => T): Drafted<T> {
  if (task === undefined) throw invalidField("task", "is required, or tasks");
  return { ...draft(task), delayMs: task.delay_s ?? 0 };
}

function draftOfPipeline<T extends object>(
  task: SentTask | undefined,
  steps: readonly SentStep[],
  draft: (task: SentTask) => T,
): Drafted<T> {
  const errors: FieldError[] = [];
  if (task !== undefined) errors.push({ path: "task", message: "must not be sent together with tasks" });
  const numbers = new Map<string, number>();
  let needed = 0;
  const pipeline = steps.map((step, i) => {
    const { ref, needs = [], on_dependency: onDependency = "fail", task: fields } = step;
    for (const name of needs.filter((other) => !numbers.has(other)))
      errors.push({ path: `tasks.${i}.needs`, message: `has ${name}, which is no task before this one` });
    if (numbers.has(ref))
      errors.push({ path: `tasks.${i}.ref`, message: "must not be that of another task" });
    if (i > 0 && (fields.delay_s ?? 0) > 0)
      errors.push({ path: `tasks.${i}.task.delay_s`, message: "only the first task may have a delay" });
    numbers.set(ref, i);
    needed += needs.length;
    return { ...draft(fields), ref, needs: needs.flatMap((name) => numbers.get(name) ?? []), onDependency };
  });
  const max = limit.SCHEDULE_PIPELINE_NEEDS_MAX;
  if (needed > max) errors.push({ path: "tasks", message: `must have at most ${max} needs together` });
  if (errors.length > 0) throw invalidRequest(errors);
  const first = must(steps[0], "tasks has at least one").task;
  return { ...draftOfTask(first, draft), pipeline };
}

type SentTiming = Pick<z.infer<ReturnType<typeof putSchema>>, "cron" | "every_s" | "tz">;

function timingOf({ cron, every_s: everyMs, tz }: SentTiming): Schedule["timing"] {
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
  path: "/api/v1/schedule/delete",
  auth: "secret",
  summary: "Deletes a schedule; its tasks stay",
  rejections: ["key_bound_to_other_node", "schedule_not_found"],
  input: () => z.object({ name: about(field.scheduleName(), NAME) }),
  answer: (variant) => z.strictObject({ name: string(NAME), schedule: scheduleSchema(variant) }),
  handle: ({ services, transact, nodeOfKey }, { name }) =>
    services.schedules.delete(transact, { name, boundTo: nodeOfKey }),
  encode: encodeNamed,
});

export const scheduleSchema = (variant: Variant) =>
  z.strictObject({
    name: string(NAME),
    cron: z.nullable(z.string()),
    tz: z.nullable(z.string()),
    every_s: z.nullable(z.number()),
    task: about(z.strictObject(shownFields("schedule", variant)), "The task that the schedule creates."),
    tasks: optional(
      z.array(
        z.strictObject({
          ref: about(z.string(), REF),
          needs: about(z.array(z.string()), NEEDS),
          on_dependency: about(z.enum(ON_DEPENDENCY), HOWEVER),
          task: z.strictObject(shownFields("schedule", variant)),
        }),
      ),
      "All tasks of a pipeline, of which `task` is the first; only on a schedule with a pipeline.",
    ),
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

function encodeNamed(schedule: Schedule, variant: Variant): JsonAnswer {
  return { name: schedule.name, schedule: encodeSchedule(schedule, variant) };
}

function encodeSchedule(schedule: Schedule, variant: Variant): JsonAnswer {
  const { timing } = schedule;
  return {
    name: schedule.name,
    cron: "cron" in timing ? timing.cron : null,
    tz: "cron" in timing ? timing.tz : null,
    every_s: "cron" in timing ? null : timing.everyMs / SECOND_MS,
    task: encodeDraft(schedule.task, variant),
    ...(schedule.task.pipeline && { tasks: encodePipeline(schedule.task, schedule.task.pipeline, variant) }),
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

function encodePipeline(
  { delayMs }: Schedule["task"],
  pipeline: readonly ScheduledTask[],
  variant: Variant,
): readonly JsonAnswer[] {
  return pipeline.map((step, i) => ({
    ref: step.ref,
    needs: step.needs.map((number) => must(pipeline[number], "a pipeline has what it needs").ref),
    on_dependency: step.onDependency,
    task: encodeDraft({ ...step, delayMs: i === 0 ? delayMs : 0 }, variant),
  }));
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
