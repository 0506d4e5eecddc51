/**
 * The fields that requests are made of, each once (specification 2, decisions.md): what is taken, how long it may be,
 * and what it means inside. Nothing is coerced but priority and capabilities, and numbers in a query.
 */
import * as z from "zod";
import * as limit from "../domain/limits.ts";
import { toMicro } from "../domain/lux.ts";
import { BROADCAST_TYPES, SEND_TYPES } from "../domain/message.ts";
import type { Priority } from "../domain/task.ts";
import { PRIORITY_WORDS, STATUS_FILTERS } from "../variant/variant.ts";

/** NUL and half a surrogate pair cannot be stored and given back unchanged. */
function isStorable(value: string): boolean {
  return value.isWellFormed() && !value.includes("\0");
}

const NOT_STORABLE = "must be well-formed Unicode without NUL";

/** A string counted in characters. */
function chars(max: number) {
  return z.string().max(max, `must be at most ${max} characters`).refine(isStorable, NOT_STORABLE);
}

/** A string counted in bytes of UTF-8. */
function bytes(max: number) {
  // A UTF-16 unit takes at most 3 bytes: short strings need no counting.
  const fits = (value: string): boolean => value.length * 3 <= max || Buffer.byteLength(value) <= max;
  return z.string().refine(fits, `must be at most ${max} bytes of UTF-8`).refine(isStorable, NOT_STORABLE);
}

const isNotBlank = (value: string): boolean => value.trim() !== "";
const NOT_BLANK = "must not be blank";

export const nodeId = z
  .string()
  .regex(
    /^[A-Za-z0-9._:-]{1,128}$/,
    `must be 1 to ${limit.NODE_ID_MAX_CHARS} characters of A-Z a-z 0-9 . _ : -`,
  );
/** An id that the hub made. */
export const id = chars(limit.ID_MAX_CHARS).min(1, NOT_BLANK);
export const nodeName = chars(limit.NODE_NAME_MAX_CHARS).refine(isNotBlank, NOT_BLANK);
export const host = chars(limit.HOST_MAX_CHARS);
export const port = z.int().min(1).max(limit.PORT_MAX);
export const maxTasks = z.int().min(1).max(limit.NODE_MAX_TASKS_MAX);
export const title = chars(limit.TITLE_MAX_CHARS).refine(isNotBlank, NOT_BLANK);
export const description = bytes(limit.DESCRIPTION_MAX_BYTES).refine(isNotBlank, NOT_BLANK);
export const taskType = chars(limit.TASK_TYPE_MAX_CHARS).transform((value) => value.trim());
export const reason = chars(limit.REASON_MAX_CHARS);
export const content = bytes(limit.CONTENT_MAX_BYTES);
export const sendType = z.enum(SEND_TYPES);
export const broadcastType = z.enum(BROADCAST_TYPES);

/** 0, 1, 2 or a word of either variant; inside, the stored number. */
export const priority = z
  .union([z.literal([0, 1, 2]), z.enum(Object.keys(PRIORITY_WORDS) as (keyof typeof PRIORITY_WORDS)[])], {
    error: `must be 0, 1, 2 or one of ${Object.keys(PRIORITY_WORDS).join(", ")}`,
  })
  .transform((value): Priority => (typeof value === "number" ? value : PRIORITY_WORDS[value]));

const capability = chars(limit.CAPABILITY_MAX_CHARS).refine(
  (value) => !value.includes(","),
  "must not hold a comma",
);

/** A comma-separated string or an array; inside, the distinct names in their order. */
export const capabilities = z
  .union([z.string(), z.array(z.unknown())], {
    error: "must be a comma-separated string or an array of strings",
  })
  .transform((value) => (typeof value === "string" ? value.split(",") : value))
  .pipe(z.array(capability))
  .transform((names) => [...new Set(names.map((name) => name.trim()).filter((name) => name !== ""))])
  .refine(
    (names) => names.length <= limit.CAPABILITIES_MAX,
    `must be at most ${limit.CAPABILITIES_MAX} capabilities`,
  );

/** LUX with at most 6 decimals; inside, whole millionths. */
export const luxReward = z
  .number()
  .min(0)
  .max(limit.LUX_REWARD_MAX)
  .transform((lux, context) => {
    const micro = toMicro(lux);
    if (micro !== null) return micro;
    context.addIssue({ code: "custom", message: "must have at most 6 decimals" });
    return z.NEVER;
  });

const resultText = bytes(limit.RESULT_TEXT_MAX_BYTES).refine(isNotBlank, NOT_BLANK);
export const result = z.object({ problem: resultText, improvement: resultText, lesson: resultText });

/** How many, in a JSON body. */
export function howMany(max: number) {
  return z.int().min(1).max(max);
}

/** Seconds to wait, in a JSON body; inside, milliseconds. */
export const waitSeconds = z
  .number()
  .min(0)
  .max(limit.WAIT_MAX_SECONDS)
  .transform((seconds) => Math.round(seconds * 1_000));

// ---- In a query everything is text.

function digits(min: number, max: number) {
  return z
    .string()
    .regex(/^\d{1,16}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(min).max(max));
}

/** How many, in a query. */
export function queryCount(max: number) {
  return digits(1, max);
}

/** An event id to go on from; 0 is the beginning. */
export const eventCursor = digits(0, Number.MAX_SAFE_INTEGER);

/** Seconds to wait, in a query; inside, milliseconds. */
export const queryWaitSeconds = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,6})?$/, "must be a number of seconds")
  .transform(Number)
  .pipe(waitSeconds);

export const statusFilter = z
  .enum(Object.keys(STATUS_FILTERS) as (keyof typeof STATUS_FILTERS)[])
  .transform((word) => STATUS_FILTERS[word]);

/** Paging of every list: `per_page` over its limit is read as the limit, everything else out of range is bad. */
export const paging = {
  page: digits(1, limit.PAGE_MAX).optional(),
  per_page: digits(1, Number.MAX_SAFE_INTEGER)
    .transform((count) => Math.min(count, limit.PER_PAGE_MAX))
    .optional(),
};
