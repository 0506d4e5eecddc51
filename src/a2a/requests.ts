/** Validates the requests of A2A clients (its specification, 3.2): the parameters of each operation. */
import { TaskState, taskStateFromJSON } from "@a2a-js/sdk";
import * as z from "zod/mini";
import { inputParser, withoutAbsent } from "../api/input.ts";
import * as limit from "../domain/limits.ts";
import { type JsonObject, isNestedDeeper } from "../http/json-body.ts";
import { isRawNumber } from "../lib/exact-json.ts";
import { isHeaderValue } from "../lib/header-value.ts";
import type { Place } from "../service/a2a-tasks.ts";
import { date, webhookUrl } from "../api/request-fields.ts";
import { malformed } from "./fault.ts";

/** Their JSON is the client's own. */
const FREE_FIELDS: readonly string[] = ["data", "metadata"];
/** No field of the protocol is deeper. */
const NAMES_DEPTH_MAX = 6;

/**
 * The fields by their names in JSON: ProtoJSON has a parser take those of the proto file too (`task_id`).
 * @throws {Fault} for a field that is there by both names
 */
export function withJsonNames(fields: JsonObject, depth = 0): JsonObject {
  const inner = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null || isRawNumber(value) || depth === NAMES_DEPTH_MAX)
      return value;
    if (Array.isArray(value)) return value.map((item: unknown) => (Array.isArray(item) ? item : inner(item)));
    return withJsonNames({ ...value }, depth + 1);
  };
  const named = new Map<string, unknown>();
  for (const [given, value] of Object.entries(fields)) {
    const name = given.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    if (named.has(name)) throw malformed(name, "is there by both of its names");
    named.set(name, FREE_FIELDS.includes(name) ? value : inner(value));
  }
  return Object.fromEntries(named);
}

const text = (max: number) =>
  z.string().check(
    z.minLength(1, "must not be empty"),
    z.maxLength(max, `must be at most ${max} characters`),
    z.refine(
      (value) => value.isWellFormed() && !value.includes("\0"),
      "must be well-formed Unicode without NUL",
    ),
  );

/** A field that may be left out, also as null or, as in Protocol Buffers, as "". */
const maybeText = (max: number) => z.nullish(z.union([z.literal(""), text(max)]));

const taskId = () => text(limit.ID_MAX_CHARS);
const historyLength = () => z.nullish(z.int().check(z.minimum(0)));

const CONTENTS = ["text", "raw", "url", "data"] as const;

const part = () =>
  z
    .object({
      text: z.optional(z.string()),
      raw: z.optional(z.string().check(z.refine(isBase64, "must be base64"))),
      url: z.optional(z.string().check(z.refine((value) => URL.canParse(value), "must be a URL"))),
      data: z.optional(
        z
          .unknown()
          .check(
            z.refine(
              (value) => !isNestedDeeper(value, limit.JSON_DEPTH_MAX),
              `must not be nested deeper than ${limit.JSON_DEPTH_MAX}`,
            ),
          ),
      ),
      filename: z.nullish(z.string()),
      mediaType: z.nullish(z.string()),
    })
    .check(
      z.refine(
        (value) => CONTENTS.filter((content) => value[content] !== undefined).length === 1,
        "must have one of text, raw, url and data",
      ),
    );

function isBase64(value: string): boolean {
  try {
    Uint8Array.fromBase64(value);
    return true;
  } catch {
    return false;
  }
}

const configId = () =>
  text(limit.PUSH_CONFIG_ID_MAX_CHARS).check(
    z.regex(/^[\w.:~-]*$/, "must be characters of A-Z a-z 0-9 . _ : ~ -"),
  );

const pushFields = () => ({
  id: z.nullish(z.union([z.literal(""), configId()])),
  url: webhookUrl(),
  token: maybeText(limit.PUSH_TOKEN_MAX_CHARS).check(z.refine(isHeader, NOT_A_HEADER)),
  authentication: z.nullish(
    z.object({
      scheme: text(limit.PUSH_SCHEME_MAX_CHARS).check(
        z.regex(/^[\w!#$%&'*+.^`|~-]+$/, "must be a scheme of HTTP authentication, such as Bearer"),
      ),
      credentials: maybeText(limit.PUSH_TOKEN_MAX_CHARS).check(z.refine(isHeader, NOT_A_HEADER)),
    }),
  ),
});

const NOT_A_HEADER = "must be printable ASCII";
const isHeader = (value: string | null | undefined): boolean => isHeaderValue(value ?? "");

const pushConfig = () => z.object({ taskId: taskId(), ...pushFields() });
export type AskedPush = Omit<z.infer<ReturnType<typeof pushConfig>>, "taskId">;

const sendMessage = () =>
  z.object({
    message: z.object({
      messageId: text(limit.A2A_MESSAGE_ID_MAX_CHARS),
      contextId: maybeText(limit.A2A_CONTEXT_ID_MAX_CHARS),
      taskId: maybeText(limit.ID_MAX_CHARS),
      role: z.literal("ROLE_USER"),
      parts: z.array(part()).check(z.minLength(1), z.maxLength(limit.A2A_PARTS_MAX)),
    }),
    configuration: z.nullish(
      z.object({
        historyLength: historyLength(),
        returnImmediately: z.nullish(z.boolean()),
        taskPushNotificationConfig: z.nullish(z.object(pushFields())),
      }),
    ),
    metadata: z.nullish(z.object({ luxhub: z.nullish(z.record(z.string(), z.unknown())) })),
  });

export type SendMessage = z.infer<ReturnType<typeof sendMessage>>;
export type Part = SendMessage["message"]["parts"][number];

export const parseSendMessage = inputParser(sendMessage);
export const parseGetTask = inputParser(() => z.object({ id: taskId(), historyLength: historyLength() }));
export const parseTaskId = inputParser(() => z.object({ id: taskId() }));

export const parsePushConfig = inputParser(pushConfig);
export const parsePushId = inputParser(() =>
  z.object({ taskId: taskId(), id: text(limit.PUSH_CONFIG_ID_MAX_CHARS) }),
);
export const parseTaskOfPushes = inputParser(() => z.object({ taskId: taskId() }));

const listTasks = () =>
  z.object({
    contextId: maybeText(limit.A2A_CONTEXT_ID_MAX_CHARS),
    status: z.nullish(
      z
        .string()
        .check(
          z.refine(
            (value) => taskStateFromJSON(value) !== TaskState.UNRECOGNIZED,
            "must be the name of a state, such as TASK_STATE_WORKING",
          ),
        ),
    ),
    pageSize: z.nullish(z.int().check(z.minimum(1), z.maximum(limit.A2A_PAGE_MAX))),
    pageToken: z.nullish(z.string()),
    historyLength: historyLength(),
    statusTimestampAfter: z.nullish(date()),
    includeArtifacts: z.nullish(z.boolean()),
  });

const parseListTasksAsIs = inputParser(listTasks);

export function parseListTasks(params: JsonObject) {
  const { contextId, status, pageSize, pageToken, statusTimestampAfter, ...rest } = parseListTasksAsIs(
    withoutAbsent(params, ""),
  );
  const state = taskStateFromJSON(status ?? 0);
  return {
    contextId: contextId || null,
    state: state === TaskState.TASK_STATE_UNSPECIFIED ? null : state,
    pageSize: pageSize ?? limit.A2A_PAGE_DEFAULT,
    from: pageToken ? decodePageToken(pageToken) : null,
    since: statusTimestampAfter ?? 0,
    historyLength: rest.historyLength ?? 0,
    includeArtifacts: rest.includeArtifacts ?? false,
  };
}

export function encodePageToken({ updatedAt, seq }: Place): string {
  return Buffer.from(`${updatedAt}.${seq}`).toString("base64url");
}

function decodePageToken(token: string): Place {
  const [, updatedAt, seq] =
    /^(\d{1,15})\.(\d{1,15})$/.exec(Buffer.from(token, "base64url").toString()) ?? [];
  if (updatedAt === undefined || seq === undefined)
    throw malformed("pageToken", "must be the nextPageToken of an earlier response");
  return { updatedAt: Number(updatedAt), seq: Number(seq) };
}
