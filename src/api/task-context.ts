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

export const inputFileSchema = () =>
  z.strictObject({
    file_id: z.string(),
    name: z.string(),
    size: z.int(),
    attached: z.enum(ATTACHMENTS),
  });

export const inputSchema = (variant: Variant) =>
  z.strictObject({
    task_id: z.string(),
    title: z.nullable(z.string()),
    status: z.nullable(statusWord(variant)),
    assigned_node: z.nullable(z.string()),
    result: z.nullable(resultSchema()),
    result_verified: z.boolean(),
    files: z.array(inputFileSchema()),
    omitted: z.optional(z.literal(true)),
  });

export const checkpointSchema = () =>
  z.strictObject({ data: z.unknown(), epoch: z.int(), node_id: z.string(), at: time() });

export const lessonSchema = () =>
  z.strictObject({
    task_id: z.string(),
    title: z.string(),
    task_type: z.nullable(z.string()),
    node_id: z.string(),
    verified: z.boolean(),
    at: time(),
    lesson: z.string(),
    truncated: z.optional(z.literal(true)),
  });

/** Without the keys that have nothing. */
export const contextSchema = (variant: Variant) =>
  z.strictObject({
    inputs: z.optional(z.array(inputSchema(variant))),
    checkpoint: z.optional(checkpointSchema()),
    answers: z.optional(z.array(questionSchema())),
    review: z.optional(
      z.strictObject({
        note: z.nullable(z.string()),
        reviewed_by: z.nullable(z.string()),
        reviewed_at: z.nullable(time()),
      }),
    ),
    failures: z.optional(z.array(failureSchema())),
    lessons: z.optional(z.array(lessonSchema())),
  });

export function encodeInput(
  { taskId, task, result, files, omitted }: TaskInput,
  variant: Variant,
): JsonAnswer {
  return {
    task_id: taskId,
    title: task?.title ?? null,
    status: task && variant.statusWord(task.status),
    assigned_node: task?.assignedNode ?? null,
    result: result && encodeResult(result),
    result_verified: task?.resultVerified ?? false,
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

/** Adds the context to the JSON of a success. */
export function withContext(text: string, context: TaskContext | null, variant: Variant): string {
  if (context === null) return text;
  return `${text.slice(0, -1)},"context":${JSON.stringify(encodeContext(context, variant))}}`;
}
