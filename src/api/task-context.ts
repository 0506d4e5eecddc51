/** The context of a task in responses: its schema and its encoding. */
import * as z from "zod/mini";
import type { Lesson } from "../domain/lesson.ts";
import { ATTACHMENTS, type Checkpoint } from "../domain/model.ts";
import { isoTime } from "../lib/clock.ts";
import { parseExact } from "../lib/exact-json.ts";
import type { TaskContext, TaskInput } from "../service/task-context.ts";
import type { Variant } from "../variant/variant.ts";
import type { JsonAnswer } from "./answer.ts";
import {
  encodeFailure,
  encodeQuestion,
  encodeResult,
  failureSchema,
  maybeTime,
  questionSchema,
  resultSchema,
  statusWord,
  time,
} from "./response-schemas.ts";
import { about, flag, maybeString, nullable, optional, string, whole } from "./about.ts";

export const inputFileSchema = () =>
  z.strictObject({
    file_id: z.string(),
    name: z.string(),
    size: z.int(),
    attached: z.enum(ATTACHMENTS),
  });

export const inputSchema = (variant: Variant) =>
  z.strictObject({
    task_id: string("The task that must be completed first."),
    title: maybeString("Null if the task was deleted."),
    status: nullable(statusWord(variant), "Null if the task was deleted."),
    assigned_node: z.nullable(z.string()),
    result: nullable(resultSchema(), "Null if the task has none, or `omitted` is true."),
    result_verified: z.boolean(),
    files: z.array(inputFileSchema()),
    omitted: optional(
      z.literal(true),
      "True if the result or some of the files were left out, because there was no room.",
    ),
  });

export const checkpointSchema = () =>
  z.strictObject({
    data: about(z.unknown(), "The checkpoint as the worker sent it."),
    epoch: whole("The epoch of the lease of the worker."),
    node_id: string("The node that sent the checkpoint."),
    at: time(),
  });

export const lessonSchema = () =>
  z.strictObject({
    task_id: z.string(),
    title: z.string(),
    task_type: z.nullable(z.string()),
    node_id: string("The node that completed the task."),
    verified: flag("Whether the result came with a key that is bound to that node."),
    at: about(time(), "When the task was completed."),
    lesson: string("The first 2,000 characters of `lesson` in the result of the task."),
    truncated: optional(z.literal(true), "True if the `lesson` is longer than what is shown."),
  });

/** Without the keys that have nothing. */
export const contextSchema = (variant: Variant) =>
  z.strictObject({
    inputs: optional(
      z.array(inputSchema(variant)),
      "The tasks in `depends_on`, in that order. The results have at most 256 KiB together; task/<task_id>/inputs has all results.",
    ),
    checkpoint: z.optional(checkpointSchema()),
    answers: optional(
      z.array(questionSchema()),
      "The newest questions about the task with their answers, oldest first: at most 20.",
    ),
    review: optional(
      z.strictObject({
        note: maybeString("What the reviewer wrote."),
        reviewed_by: z.nullable(z.string()),
        reviewed_at: z.nullable(time()),
      }),
      "Why the last result was rejected.",
    ),
    failures: optional(z.array(failureSchema()), "The last 5 attempts that failed, oldest first."),
    lessons: optional(
      z.array(lessonSchema()),
      "What the last 5 completed tasks of the same type have taught, newest first: at most 2 KiB together, and of the same text the newest. Not for a task without a type.",
    ),
  });

export function encodeInput(
  { taskId, task, result, files, omitted }: TaskInput,
  variant: Variant,
): JsonAnswer {
  const known: Partial<NonNullable<typeof task>> = task ?? {};
  const { title = null, assignedNode = null, resultVerified = false } = known;
  return {
    task_id: taskId,
    title,
    status: task && variant.statusWord(task.status),
    assigned_node: assignedNode,
    result: result && encodeResult(result),
    result_verified: resultVerified,
    files: files.map((file) => ({
      file_id: file.fileId,
      name: file.name,
      size: file.sizeBytes,
      attached: file.attached,
    })),
    ...(omitted && { omitted }),
  };
}

function encodeCheckpoint({ data, epoch, nodeId, at }: Checkpoint): JsonAnswer {
  return { data: parseExact(data), epoch, node_id: nodeId, at: isoTime(at) };
}

export function encodeLesson(lesson: Lesson): JsonAnswer {
  const { taskId, title, taskType, nodeId, verified, at, text, truncated } = lesson;
  return {
    task_id: taskId,
    title,
    task_type: taskType === "" ? null : taskType,
    node_id: nodeId,
    verified,
    at: isoTime(at),
    lesson: text,
    ...(truncated && { truncated }),
  };
}

export function encodeContext(
  { inputs, checkpoint, failures, answers, review, lessons }: TaskContext,
  variant: Variant,
): JsonAnswer {
  return {
    ...(inputs.length > 0 && { inputs: inputs.map((input) => encodeInput(input, variant)) }),
    ...(checkpoint && { checkpoint: encodeCheckpoint(checkpoint) }),
    ...(answers.length > 0 && { answers: answers.map(encodeQuestion) }),
    ...(review && {
      review: {
        note: review.note,
        reviewed_by: review.decidedBy,
        reviewed_at: maybeTime(review.decidedAt),
      },
    }),
    ...(failures.length > 0 && { failures: failures.map(encodeFailure) }),
    ...(lessons.length > 0 && { lessons: lessons.map(encodeLesson) }),
  };
}

export function withContext(text: string, context: TaskContext | null, variant: Variant): string {
  if (context === null) return text;
  return `${text.slice(0, -1)},"context":${JSON.stringify(encodeContext(context, variant))}}`;
}
