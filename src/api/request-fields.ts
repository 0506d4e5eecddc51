/**
 * The schemas of request fields. Values are not coerced, except priority, capabilities, the case of words, and numbers
 * in a query.
 */
import * as z from "zod/mini";
import { EVENT_KINDS } from "../domain/event.ts";
import { HELD_CODES } from "../domain/held.ts";
import { WITH_SESSIONS } from "../domain/key.ts";
import * as limit from "../domain/limits.ts";
import { OUTPUT_POINTER } from "../domain/compare.ts";
import { toMicro } from "../domain/lux.ts";
import { TRACEPARENT } from "../domain/trace.ts";
import { FAILURE_KINDS } from "../domain/failure-kinds.ts";
import type { Priority, Requirements, Resources, Reviewer, UsageReport } from "../domain/model.ts";
import { dayOf, toMicroUsd } from "../domain/task/facet/spending.ts";
import { must } from "../lib/assert.ts";
import { cronFault, isTimeZone } from "../lib/cron.ts";
import { DAY_FORM, INSTANT_FORM, isRealDay } from "../lib/duration.ts";
import { isRawNumber } from "../lib/exact-json.ts";
import { HEADER_VALUE } from "../lib/header-value.ts";
import { wordsOf } from "../lib/word-search.ts";
import type { PageRequest, Position } from "../service/list-pages.ts";
import { NODE_ORDERS, type NodeOrder, type NodePosition } from "../service/node-lists.ts";
import type { OpenPosition } from "../store/sql/questions.ts";
import type { ChangePosition } from "../store/sql/tasks.ts";
import { isNestedDeeper } from "../http/json-body.ts";
import { PRIORITY_WORDS, STATUS_FILTERS, type StatusFilter } from "../variant/variant.ts";
import { optional } from "./about.ts";
import { invalidField } from "./input.ts";

/** The stores cannot return NUL or a lone surrogate unchanged. */
function isStorable(value: string): boolean {
  return value.isWellFormed() && !value.includes("\0");
}

const NOT_STORABLE = "must be well-formed Unicode without NUL";

function chars(max: number) {
  return z
    .string()
    .check(z.maxLength(max, `must be at most ${max} characters`), z.refine(isStorable, NOT_STORABLE));
}

function bytes(max: number) {
  // A UTF-16 unit takes at most 3 bytes: short strings need no counting.
  const fits = (value: string): boolean => value.length * 3 <= max || Buffer.byteLength(value) <= max;
  const tooLong = `must be at most ${max} bytes of UTF-8`;
  return z
    .string()
    .check(z.maxLength(max, tooLong), z.refine(fits, tooLong), z.refine(isStorable, NOT_STORABLE));
}

/** A text that `parse` turns into its value; null: it is wrong. */
function parsed<T>(max: number, parse: (text: string) => T | null, message: string) {
  return z.pipe(
    chars(max),
    z.transform((text: string, { issues }): T => {
      const value = parse(text);
      if (value !== null) return value;
      issues.push({ code: "custom", message, input: text });
      return z.NEVER;
    }),
  );
}

const notBlank = () => z.regex(/\S/, "must not be blank");
const NODE_ID = new RegExp(`^[A-Za-z0-9._:-]{1,${limit.NODE_ID_MAX_CHARS}}$`);

export const nodeId = () =>
  z
    .string()
    .check(z.regex(NODE_ID, `must be 1 to ${limit.NODE_ID_MAX_CHARS} characters of A-Z a-z 0-9 . _ : -`));

/** What a key is bound to: a node, or with `.*` also its sessions. */
export const keyNode = () =>
  z
    .string()
    .check(
      z.regex(
        new RegExp(`${NODE_ID.source.slice(0, -1)}(?:\\.\\*)?$`),
        `must be a node_id, or a node_id with ${WITH_SESSIONS} for its sessions too`,
      ),
    );

/** `GET node/<id>` has to reach it. */
export const newNodeId = () =>
  nodeId().check(
    z.refine(
      (value) => !limit.RESERVED_NODE_IDS.has(value),
      `must not be ${[...limit.RESERVED_NODE_IDS].join(", ")}: these are paths of the hub`,
    ),
  );

const GROUP = new RegExp(`^${NODE_ID.source.slice(1, -1)}(?:/${NODE_ID.source.slice(1, -1)})?$`);

/** `GET group/<name>` has to reach it. */
export const group = () =>
  z.string().check(
    z.regex(
      GROUP,
      `must be 1 to ${limit.NODE_ID_MAX_CHARS} characters of A-Z a-z 0-9 . _ : -, or such a NAME/NODE`,
    ),
    z.refine(
      (value) => !limit.RESERVED_GROUPS.has(value),
      `must not be ${[...limit.RESERVED_GROUPS].join(", ")}: these are paths of the hub`,
    ),
  );

const tagWord = () =>
  chars(limit.TAG_MAX_CHARS).check(z.regex(/^[^,]*[^\s,][^,]*$/, "must not be blank, nor have a comma"));

export const tag = () =>
  z.pipe(
    tagWord(),
    z.transform((value: string) => value.trim()),
  );

export const tags = () =>
  z.pipe(
    z.array(tagWord()).check(z.maxLength(limit.TAGS_MAX)),
    z.transform((words: string[]) => [...new Set(words.map((word) => word.trim()))]),
  );

export const id = () => chars(limit.ID_MAX_CHARS).check(notBlank());
export const ids = (max: number) => z.array(id()).check(z.maxLength(max));
export const line = (max: number) => chars(max).check(notBlank());
export const text = (maxBytes: number) => bytes(maxBytes).check(notBlank());
export const nodeName = () => chars(limit.NODE_NAME_MAX_CHARS).check(notBlank());
export const host = () => chars(limit.HOST_MAX_CHARS);
export const port = () => z.int().check(z.minimum(0), z.maximum(limit.PORT_MAX));
export const maxTasks = () => z.int().check(z.minimum(1), z.maximum(limit.NODE_MAX_TASKS_MAX));
function trimmed(max: number) {
  return z.pipe(
    chars(max),
    z.transform((value: string) => value.trim()),
  );
}
export const taskType = () => trimmed(limit.TASK_TYPE_MAX_CHARS);
/** At least one: with none the call would wait in vain. */
export const taskTypes = () =>
  z.array(taskType().check(notBlank())).check(z.minLength(1), z.maxLength(limit.TASK_TYPES_MAX));
export const reason = () => chars(limit.REASON_MAX_CHARS);
export const error = () => chars(limit.ERROR_MAX_CHARS).check(notBlank());
export const note = () => chars(limit.NOTE_MAX_CHARS).check(notBlank());
export const noteKey = () => chars(limit.NOTE_KEY_MAX_CHARS).check(notBlank());
export const noteText = () => bytes(limit.NOTE_TEXT_MAX_BYTES).check(notBlank());
export const noteVersion = () => z.int().check(z.minimum(0));
export const leaseName = () =>
  chars(limit.LEASE_NAME_MAX_CHARS).check(
    notBlank(),
    z.overwrite(asGlob),
    z.refine(
      (name) => name.split("/").every((segment) => !/^(?:\.\.?)?$|^\s|\s$|\\/.test(segment)),
      "must be a name, or a path relative to the root of what you share, such as src/a.ts in place of /src/a.ts: no / at the beginning, no //, no \\, no . or .. as a segment, and no white space around a segment",
    ),
    z.refine(
      (name) => name.split("/").length <= limit.LEASE_NAME_MAX_SEGMENTS,
      `must have at most ${limit.LEASE_NAME_MAX_SEGMENTS} segments: take the lease on a directory instead`,
    ),
  );
/** A directory as programs write it: `src/` is all below it, and a `./` at the beginning says nothing. */
const asGlob = (name: string): string => name.replace(/^(?:\.\/)+(?=.)/, "").replace(/(?<=[^/])\/$/, "/**");
export const leaseTtl = () => seconds(1, limit.LEASE_TTL_MAX_SECONDS);
export const fencing = () => z.int().check(z.minimum(1));
export const epoch = () => z.int().check(z.minimum(0));
function nameOf(max: number, punctuation: string) {
  const pattern = new RegExp(`^[A-Za-z0-9${punctuation}-]{1,${max}}$`);
  const shown = [...punctuation, "-"].join(" ");
  return z.string().check(z.regex(pattern, `must be 1 to ${max} characters of A-Z a-z 0-9 ${shown}`));
}
export const keyName = () => nameOf(limit.KEY_NAME_MAX_CHARS, "._");
export const scheduleName = () => nameOf(limit.SCHEDULE_NAME_MAX_CHARS, "._:");
export const webhookName = () => nameOf(limit.WEBHOOK_NAME_MAX_CHARS, "._");
/** Also the name of a push config of A2A, which the hub makes (a2a/push.ts). */
export const anyWebhookName = () => z.string().check(z.maxLength(limit.PUSH_NAME_MAX_CHARS), z.minLength(1));
/** In the form in which it is called: without control characters and blanks. */
export const webhookUrl = () =>
  chars(limit.WEBHOOK_URL_MAX_CHARS).check(
    z.refine(isWebhookUrl, "must be a URL of http or https, without a user name, a password and a fragment"),
    z.overwrite(hrefOf),
  );
function isWebhookUrl(value: string): boolean {
  const url = URL.parse(value);
  if (!url || !["http:", "https:"].includes(url.protocol)) return false;
  return url.username === "" && url.password === "" && !value.includes("#");
}
function hrefOf(value: string): string {
  return URL.parse(value)?.href ?? value;
}
export const webhookSecret = () => chars(limit.WEBHOOK_TOKEN_MAX_CHARS);
export const webhookKinds = () => z.array(word(EVENT_KINDS)).check(z.maxLength(EVENT_KINDS.length));
export const eventId = () => z.int().check(z.minimum(0));
export const answerToken = () => chars(limit.ANSWER_TOKEN_MAX_CHARS);
export const cron = () =>
  chars(limit.CRON_MAX_CHARS).check(
    z.refine((text) => cronFault(text) === null, {
      error: ({ input }) => must(cronFault(String(input)), "it was refused"),
    }),
  );
export const timeZone = () =>
  chars(limit.TIME_ZONE_MAX_CHARS).check(
    z.refine(isTimeZone, "must be a time zone of the IANA database, as Europe/Berlin"),
  );
export const scheduleInterval = () => seconds(1, limit.SCHEDULE_EVERY_MAX_SECONDS);
export const jitter = () => seconds(0, limit.SCHEDULE_JITTER_MAX_SECONDS);
export const variant = () => z.pipe(z.transform(upperCase), z.enum(["A", "B"]));
export const keyLifetime = () => seconds(1, limit.KEY_EXPIRES_MAX_SECONDS);
export const invitationLife = () => seconds(limit.INVITATION_MIN_SECONDS, limit.INVITATION_MAX_SECONDS);
export const invitationToken = () => chars(limit.SECRET_MAX_CHARS).check(notBlank());
export const sha256 = () => z.string().check(z.regex(/^[0-9a-f]{64}$/, "must be 64 characters of 0-9 a-f"));
export const hubUrl = () =>
  z.pipe(
    chars(limit.INVITATION_URL_MAX_CHARS).check(
      z.refine(isHubUrl, "must be a URL such as https://hub.example.org:19443, without a query"),
    ),
    z.transform((text: string) => hrefOf(text).replace(/\/+$/, "")),
  );

function isHubUrl(text: string): boolean {
  const url = /^https?:\/\/[^/]/i.test(text) ? URL.parse(text) : null;
  return url !== null && url.username === "" && url.password === "" && !/[?#\s]/.test(text);
}

const COMPARED =
  "must be output, or json: and JSON pointers into the result, separated by commas: json:/output/answer";

function pointersIn(text: string): readonly string[] | null {
  if (text === "output") return [OUTPUT_POINTER];
  const pointers = text.startsWith("json:") ? text.slice("json:".length).split(",") : [];
  const isPointer = (pointer: string): boolean => /^(?:\/(?:[^~/]|~[01])*)+$/.test(pointer);
  const isFew = pointers.length > 0 && pointers.length <= limit.QUORUM_POINTERS_MAX;
  return isFew && pointers.every(isPointer) ? pointers : null;
}

const compared = () => parsed(limit.ID_MAX_CHARS, pointersIn, COMPARED);

export const quorum = () =>
  z
    .object({
      results: z.int().check(z.minimum(2), z.maximum(limit.QUORUM_RESULTS_MAX)),
      of: z.optional(z.int().check(z.minimum(2), z.maximum(limit.QUORUM_COPIES_MAX))),
      compare: z.optional(compared()),
    })
    .check(
      z.refine(({ results, of = results }) => of >= results, {
        path: ["of"],
        message: "must be at least results",
      }),
    );

const REVIEWER = new RegExp(
  `^(?:creator|node:[A-Za-z0-9._:-]{1,${limit.NODE_ID_MAX_CHARS}}|capability:[^,]{1,${limit.TASK_TYPE_MAX_CHARS}})$`,
);

function isReviewer(text: string): text is Reviewer {
  return REVIEWER.test(text) && !/:\s*$/.test(text);
}

export const reviewer = () =>
  z.pipe(
    chars(limit.ID_MAX_CHARS),
    z.pipe(
      // As in other types, no space comes first: it is of the names of lanes (domain/lane.ts).
      z.transform((text: string) => text.trim().replace(/^capability:\s+/, "capability:")),
      z.custom<Reviewer>(
        (text) => typeof text === "string" && isReviewer(text),
        "must be creator, node:<node_id> or capability:<word>",
      ),
    ),
  );
export const reviewNote = () => chars(limit.REVIEW_NOTE_MAX_CHARS).check(notBlank());
const NO_DATE = "must be a time of ISO 8601 with its zone, as 2030-01-31T12:00:00Z";

export const date = () =>
  z.pipe(
    z.string().check(z.regex(INSTANT_FORM, NO_DATE), z.refine(isRealDay, NO_DATE)),
    z.transform((value: string) => Date.parse(value)),
  );
export const content = () => bytes(limit.CONTENT_MAX_BYTES);
export const thread = () => chars(limit.THREAD_MAX_CHARS).check(notBlank());
export const taker = () => taskType().check(z.minLength(1, "must not be blank"));

export function word<const W extends string>(words: readonly W[]) {
  return z.pipe(z.transform(lowerCase), z.enum(words));
}

function lowerCase(value: unknown): unknown {
  return typeof value === "string" ? value.toLowerCase() : value;
}

function upperCase(value: unknown): unknown {
  return typeof value === "string" ? value.toUpperCase() : value;
}

/** Words of these, comma-separated. */
function words<const W extends string>(known: readonly W[]) {
  const isKnown = (text: string): text is W => known.some((word) => word === text);
  return z.pipe(
    z.pipe(
      z.string(),
      z.transform((value: string): readonly string[] => [
        ...new Set(value.split(",").map((text) => text.trim().toLowerCase())),
      ]),
    ),
    z.custom<readonly W[], readonly string[]>(
      (texts) => Array.isArray(texts) && texts.every(isKnown),
      `must be one of ${known.join(", ")}, or several, comma-separated`,
    ),
  );
}

export const eventKinds = () => words(EVENT_KINDS);
export const failureKinds = () => words(FAILURE_KINDS);

export const priority = () =>
  z.pipe(
    z.pipe(
      z.transform(lowerCase),
      z.union([z.literal([0, 1, 2]), z.enum(keysOf(PRIORITY_WORDS))], {
        error: `must be 0, 1, 2 or one of ${keysOf(PRIORITY_WORDS).join(", ")}`,
      }),
    ),
    z.transform((value): Priority => (typeof value === "number" ? value : PRIORITY_WORDS[value])),
  );

const TOO_MANY_CAPABILITIES = `must hold at most ${limit.CAPABILITIES_MAX}`;
const CAPABILITIES_MAX_CHARS = limit.CAPABILITIES_MAX * (limit.CAPABILITY_MAX_CHARS + 2);

function isShortEnough(value: string | readonly unknown[]): boolean {
  return value.length <= (typeof value === "string" ? CAPABILITIES_MAX_CHARS : limit.CAPABILITIES_MAX);
}

const capability = () =>
  chars(limit.CAPABILITY_MAX_CHARS).check(z.refine((value) => !value.includes(","), "must not hold a comma"));

export const capabilities = () =>
  z
    .pipe(
      z.pipe(
        z.pipe(
          z
            .union([z.string(), z.array(z.unknown())], {
              error: "must be a comma-separated string or an array of strings",
            })
            .check(z.refine(isShortEnough, TOO_MANY_CAPABILITIES)), // before parsing each of them
          z.transform((value) => (typeof value === "string" ? value.split(",") : value)),
        ),
        z.array(capability()),
      ),
      z.transform((names) => [...new Set(names.map((name) => name.trim()).filter((name) => name !== ""))]),
    )
    .check(z.refine((names) => names.length <= limit.CAPABILITIES_MAX, TOO_MANY_CAPABILITIES));

export const luxReward = () =>
  z.pipe(
    z.number().check(
      z.minimum(0),
      z.maximum(limit.LUX_REWARD_MAX),
      z.refine((lux) => toMicro(lux) !== null, "must have at most 6 decimals"),
    ),
    z.transform((lux: number) => must(toMicro(lux), "checked to have at most 6 decimals")),
  );

/** A number of JSON, also one with more digits than a double has, which parseExact() keeps as text. */
function rounded(value: unknown): unknown {
  return isRawNumber(value) ? Number(JSON.stringify(value)) + 0 : value;
}

/** What is finer is rounded. */
function usd(max: number) {
  return z.pipe(
    z.pipe(z.transform(rounded), z.number().check(z.minimum(0), z.maximum(max))),
    z.transform(toMicroUsd),
  );
}

export const costLimit = () => usd(limit.COST_LIMIT_MAX_USD);

export const tokenLimit = () => z.int().check(z.minimum(0), z.maximum(limit.BUDGET_TOKENS_MAX));
export const traceparent = () =>
  z
    .string()
    .check(
      z.regex(TRACEPARENT, "must be as the header traceparent of W3C Trace Context: 00-TRACE-SPAN-FLAGS"),
    );

export const tracestate = () =>
  chars(limit.TRACESTATE_MAX_CHARS).check(
    notBlank(),
    z.regex(HEADER_VALUE, "must be printable ASCII without spaces around it"),
  );

export const limitKey = () => trimmed(limit.LIMIT_KEY_MAX_CHARS);
export const limitRunning = () => z.int().check(z.minimum(1), z.maximum(limit.LIMIT_RUNNING_MAX));
export const limitPerMinute = () => z.int().check(z.minimum(1), z.maximum(limit.LIMIT_PER_MINUTE_MAX));
export const holdSeconds = () => seconds(1, limit.HOLD_MAX_SECONDS);
const NAME_OF_RESOURCE = /^[A-Za-z0-9._:-]+$/;
export const resources = () =>
  z.pipe(
    z
      .record(
        z
          .string()
          .check(
            z.maxLength(limit.RESOURCE_NAME_MAX_CHARS),
            z.regex(NAME_OF_RESOURCE, "must be characters of A-Z a-z 0-9 . _ : -"),
          ),
        z.number().check(z.minimum(0), z.maximum(limit.RESOURCE_AMOUNT_MAX)),
      )
      .check(
        z.refine(
          (amounts) => Object.keys(amounts).length <= limit.RESOURCES_MAX,
          `must have at most ${limit.RESOURCES_MAX} names`,
        ),
      ),
    z.transform(toResources),
  );
function toResources(amounts: Readonly<Record<string, number>>): Resources {
  const units = Object.entries(amounts).map(
    ([name, amount]) => [name, Math.round(amount * limit.RESOURCE_UNITS)] as const,
  );
  return Object.fromEntries(units.filter(([, amount]) => amount > 0));
}
export const requires = () =>
  z.pipe(
    z.object({
      capabilities: optional(
        capabilities().check(
          z.refine(
            (words) => words.length <= limit.REQUIRED_WORDS_MAX,
            `must hold at most ${limit.REQUIRED_WORDS_MAX}`,
          ),
        ),
        "Words that must all be among the capabilities of the node.",
      ),
      resources: z.optional(resources()),
    }),
    z.transform(({ capabilities = [], resources = {} }): Requirements | null =>
      capabilities.length === 0 && Object.keys(resources).length === 0 ? null : { capabilities, resources },
    ),
  );
export const budgetValue = () => trimmed(limit.BUDGET_VALUE_MAX_CHARS);

/** Numbers are exact here (parseExact); each is rounded to a double, as everywhere else. */
const reportCount = (most: number) =>
  z.pipe(z.transform(rounded), z.int().check(z.minimum(0), z.maximum(most)));
const tokens = () => reportCount(limit.USAGE_TOKENS_MAX);

export const usage = () =>
  z
    .array(
      z.pipe(
        z.object({
          seq: reportCount(Number.MAX_SAFE_INTEGER),
          model: trimmed(limit.MODEL_MAX_CHARS).check(notBlank()),
          input_tokens: tokens(),
          output_tokens: tokens(),
          cached_tokens: z.nullish(tokens()),
          cost_usd: z.nullish(usd(limit.USAGE_COST_MAX_USD)),
        }),
        z.transform((report): UsageReport => ({
          seq: report.seq,
          model: report.model,
          inputTokens: report.input_tokens,
          outputTokens: report.output_tokens,
          cachedTokens: report.cached_tokens ?? 0,
          costMicro: report.cost_usd ?? null,
        })),
      ),
    )
    .check(z.maxLength(limit.USAGE_TOGETHER_MAX));

const resultText = () => bytes(limit.RESULT_TEXT_MAX_BYTES).check(notBlank());

const RESULT_FORM = "an object with the strings problem, improvement and lesson";

export const result = () =>
  z.pipe(
    z.pipe(
      z.pipe(
        z.custom<object>(isObject, {
          error: ({ input }) =>
            `${input === undefined ? "is required, and must be " : "must be "}${RESULT_FORM}`,
        }),
        z.transform(splitResult),
      ),
      z
        .object({
          problem: resultText(),
          improvement: resultText(),
          lesson: resultText(),
          extra: z.unknown(),
        })
        .check(
          z.refine(
            ({ extra }) => !isTooDeep(extra),
            `must not be nested deeper than ${limit.JSON_DEPTH_MAX}`,
          ),
          z.refine(
            ({ extra }) => isTooDeep(extra) || encodedBytes(extra) <= limit.RESULT_EXTRA_MAX_BYTES,
            `must have at most ${limit.RESULT_EXTRA_MAX_BYTES} bytes of JSON besides problem, improvement and lesson`,
          ),
        ),
    ),
    z.transform(({ extra, ...texts }) => {
      const json = JSON.stringify(extra);
      return { ...texts, extra: json === "{}" ? null : json };
    }),
  );

export const outputOffset = () => z.int().check(z.minimum(0));
export const outputData = () => bytes(limit.OUTPUT_SENT_MAX_BYTES).check(z.minLength(1, "must not be empty"));

function json(maxBytes: number, is: (value: unknown) => boolean, error: string) {
  return z.pipe(
    z.custom<unknown>(is, error).check(
      z.refine((value) => !isTooDeep(value), `must not be nested deeper than ${limit.JSON_DEPTH_MAX}`),
      z.refine(
        (value) => isTooDeep(value) || encodedBytes(value) <= maxBytes,
        `must have at most ${maxBytes} bytes of JSON`,
      ),
    ),
    z.transform((value) => JSON.stringify(value)),
  );
}

const isSent = (value: unknown): boolean => value !== undefined;
export const checkpoint = () => json(limit.CHECKPOINT_MAX_BYTES, isSent, "is required");
export const question = () => chars(limit.QUESTION_MAX_CHARS).check(notBlank());
export const choices = () =>
  z
    .array(chars(limit.CHOICE_MAX_CHARS).check(notBlank()))
    .check(z.maxLength(limit.CHOICES_MAX, `must hold at most ${limit.CHOICES_MAX}`));
export const answerSchema = () => json(limit.ANSWER_SCHEMA_MAX_BYTES, isObject, "must be an object");
export const answer = () => json(limit.ANSWER_MAX_BYTES, isSent, "is required, and must not be null");
export const within = () => seconds(1, limit.QUESTION_MAX_SECONDS);

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** By hand, because a schema for an object of any keys loses one that is called __proto__. */
function splitResult(value: object): Record<string, unknown> {
  const { problem, improvement, lesson, ...extra }: Record<string, unknown> = { ...value };
  return { problem, improvement, lesson, extra };
}

function isTooDeep(value: unknown): boolean {
  return isNestedDeeper(value, limit.JSON_DEPTH_MAX);
}

function encodedBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

export function itemCount(max: number) {
  return z.int().check(z.minimum(1), z.maximum(max));
}

export function seconds(min: number, max: number) {
  return z.pipe(
    z.number().check(z.minimum(min), z.maximum(max)),
    z.transform((value: number) => Math.round(value * 1_000)),
  );
}

export const waitSeconds = () => seconds(0, limit.WAIT_MAX_SECONDS);

// ---- Query parameters: always text.

function digits(min: number, max: number) {
  return z.pipe(
    z.pipe(z.string().check(z.regex(/^\d+$/, "must be a whole number, in digits only")), z.transform(Number)),
    z.number().check(z.minimum(min), z.maximum(max)),
  );
}

export function queryCount(max: number) {
  return digits(1, max);
}

export const eventCursor = () => digits(0, Number.MAX_SAFE_INTEGER);

export const queryOffset = () => digits(0, Number.MAX_SAFE_INTEGER);

export const taskIds = () =>
  z.pipe(
    z.pipe(
      z.string(),
      z.transform((value: string): readonly string[] => [
        ...new Set(value.split(",").map((taskId) => taskId.trim())),
      ]),
    ),
    z
      .array(id())
      .check(z.maxLength(limit.WAITED_TASKS_MAX, `must hold at most ${limit.WAITED_TASKS_MAX} ids`)),
  );

export const queryWaitSeconds = () =>
  z.pipe(
    z.pipe(
      z.string().check(z.regex(/^\d{1,6}(\.\d{1,6})?$/, "must be a number of seconds, not below 0")),
      z.transform(Number),
    ),
    waitSeconds(),
  );

export const statusFilter = () =>
  z.pipe(
    word(keysOf(STATUS_FILTERS)),
    z.transform((status): StatusFilter => STATUS_FILTERS[status]),
  );

const NO_WORD = "must have a letter or a digit";

export const search = () =>
  z
    .pipe(chars(limit.SEARCH_MAX_CHARS), z.transform(wordsOf))
    .check(z.refine((words) => words.length > 0, NO_WORD));

const NOT_A_CURSOR = "must be a next_cursor from a response of this list";
const CURSOR = /^[0-9a-z]{1,11}$/;

export function encodeCursor({ before }: Position): string {
  return Buffer.from(before.toString(36)).toString("base64url");
}

function decodeCursor(text: string): Position | null {
  const digits = Buffer.from(text, "base64url").toString();
  const position = { before: parseInt(digits, 36) };
  return CURSOR.test(digits) && encodeCursor(position) === text ? position : null;
}

export function encodeChangeCursor({ updatedAt, seq }: ChangePosition): string {
  return encodeOpenCursor({ until: updatedAt, seq });
}

function decodeChangeCursor(text: string): ChangePosition | null {
  const position = decodeOpenCursor(text);
  return position && { updatedAt: position.until, seq: position.seq };
}

export const taskCursor = () =>
  parsed(
    limit.ID_MAX_CHARS,
    (text): Position | ChangePosition | null => decodeCursor(text) ?? decodeChangeCursor(text),
    NOT_A_CURSOR,
  );

export const cursor = () => parsed(limit.ID_MAX_CHARS, decodeCursor, NOT_A_CURSOR);

export const numberCursor = (digitsMax: number) =>
  z.pipe(
    z.string().check(z.regex(new RegExp(`^\\d{1,${digitsMax}}$`), NOT_A_CURSOR)),
    z.transform((value) => Number(value)),
  );

const NO_DAY = "must be a day in UTC, as 2030-01-31";

export const utcDay = () =>
  z.pipe(
    z.string().check(z.regex(DAY_FORM, NO_DAY), z.refine(isRealDay, NO_DAY)),
    z.transform((value: string) => dayOf(Date.parse(value))),
  );

export const failureGroup = () =>
  z.string().check(z.regex(/^[0-9a-f]{16}$/, "must be the group of a response of stats/failures"));
export const heldWord = () => word(["any", "none", ...HELD_CODES]);
export const nodeOrder = () => word(NODE_ORDERS);
export const nodePrefix = () =>
  z.pipe(
    chars(limit.NODE_NAME_MAX_CHARS),
    z.transform((text: string) => text.trim().toLowerCase()),
  );

const NODE_CURSOR = new RegExp(
  `^(${NODE_ORDERS.join("|")}) (-?\\d{1,19}) ([A-Za-z0-9._:-]{0,${limit.NODE_ID_MAX_CHARS}})$`,
);
export const groupPrefix = () => chars(2 * limit.NODE_ID_MAX_CHARS + 1);

export const notePrefix = () => chars(limit.NOTE_KEY_MAX_CHARS);

export function encodeNoteCursor(key: string): string {
  return Buffer.from(key).toString("base64url");
}

function decodeNoteCursor(text: string): string | null {
  const key = Buffer.from(text, "base64url").toString();
  return encodeNoteCursor(key) === text && isStorable(key) ? key : null;
}

export const noteCursor = () => parsed(limit.NOTE_CURSOR_MAX_CHARS, decodeNoteCursor, NOT_A_CURSOR);

export const questionsVersion = () => digits(0, 2 * limit.QUESTIONS_OF_TASK_MAX);

const OPEN_CURSOR = /^([0-9a-z]{1,11})\.([0-9a-z]{1,11})$/;

export function encodeOpenCursor({ until, seq }: OpenPosition): string {
  return Buffer.from(`${until.toString(36)}.${seq.toString(36)}`).toString("base64url");
}

function decodeOpenCursor(text: string): OpenPosition | null {
  const [, until = "", seq = ""] = OPEN_CURSOR.exec(Buffer.from(text, "base64url").toString()) ?? [];
  const position = { until: parseInt(until, 36), seq: parseInt(seq, 36) };
  const isPosition = Number.isSafeInteger(position.until) && Number.isSafeInteger(position.seq);
  return isPosition && encodeOpenCursor(position) === text ? position : null;
}

export const openCursor = () => parsed(limit.ID_MAX_CHARS, decodeOpenCursor, NOT_A_CURSOR);

export const queryFlag = () =>
  z.pipe(
    word(["1", "0", "true", "false"]),
    z.transform((value) => value === "1" || value === "true"),
  );

export type NodeCursor = { readonly order: NodeOrder; readonly position: NodePosition };

export function encodeNodeCursor(order: NodeOrder, { rank, nodeId }: NodePosition): string {
  return Buffer.from(`${order} ${rank} ${nodeId}`).toString("base64url");
}

function decodeNodeCursor(text: string): NodeCursor | null {
  const [, word, rank = "", nodeId = ""] = NODE_CURSOR.exec(Buffer.from(text, "base64url").toString()) ?? [];
  const order = NODE_ORDERS.find((known) => known === word);
  if (order === undefined) return null;
  const position = { rank: BigInt(rank), nodeId };
  const isPosition = BigInt.asIntN(64, position.rank) === position.rank;
  return isPosition && encodeNodeCursor(order, position) === text ? { order, position } : null;
}

export const nodeCursor = () => parsed(limit.NODE_CURSOR_MAX_CHARS, decodeNodeCursor, NOT_A_CURSOR);

/** `per_page` over its limit counts as the limit. */
export const paging = () => ({
  page: z.optional(digits(1, limit.PAGE_MAX)),
  per_page: z.optional(
    z.pipe(
      digits(1, Number.MAX_VALUE),
      z.transform((count: number) => Math.min(count, limit.PER_PAGE_MAX)),
    ),
  ),
});

type PagingFields = z.infer<z.ZodMiniObject<ReturnType<typeof paging>>>;

export function asksForPage({ page, per_page }: PagingFields): boolean {
  return page !== undefined || per_page !== undefined;
}

export function refusePageWithCursor({ page }: PagingFields): void {
  if (page !== undefined) throw invalidField("page", "must not be sent together with cursor");
}

export function refusePageWith(other: string, { page }: PagingFields): void {
  if (page === undefined) return;
  throw invalidField("page", `must not be sent together with ${other}: continue with cursor`);
}

export function pageRequest(paging: PagingFields, unpaged: number): PageRequest {
  if (!asksForPage(paging)) return { page: 1, perPage: unpaged };
  return { page: paging.page ?? 1, perPage: paging.per_page ?? limit.PER_PAGE_DEFAULT };
}

function keysOf<K extends string>(words: Readonly<Record<K, unknown>>): K[] {
  return Object.keys(words) as K[]; // the callers' records have exactly these keys
}
