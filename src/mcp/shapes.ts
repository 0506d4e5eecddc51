/**
 * The shapes in which the tools show what the endpoints of HTTP answer: the same fields under the same names, without those
 * that are null, and with each long text that another node wrote as a Foreign (result.ts).
 */
import {
  MCP_ANSWERS_MAX,
  MCP_INPUTS_MAX,
  MCP_LINE_MAX_BYTES,
  MCP_NAMED_MAX,
  MCP_PREVIEW_MAX_BYTES,
} from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import { isRawNumber } from "../lib/exact-json.ts";
import { Foreign, type ReadOn, brief } from "./result.ts";

export function isRecord(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

export function recordOf(value: unknown): JsonObject {
  return isRecord(value) ? value : {};
}

export function recordsOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** What a tool says: the sentences that there are. */
export function sentences(...said: readonly (string | false | null)[]): string {
  return said.filter((sentence) => sentence !== false && sentence !== null).join(" ");
}

export function plural(amount: unknown, thing: string): string {
  return amount === 1 ? `1 ${thing}` : `${amount} ${thing}s`;
}

/**
 * Who created, answered or uploaded something with a key that is bound to no node, and named none. No node can have this
 * id, because of its space.
 */
const OPERATOR = "the operator";

/** Whose work a record is, under `name`, and whether the hub knows that by the key (docs/security.md). */
function authorIn(record: JsonObject, name: string, verified: string): JsonObject {
  const node = record[name];
  return typeof node === "string" ? { [name]: node, [verified]: record[verified] } : { [name]: OPERATOR };
}

/**
 * The fields of a record that `form` names. After a name, `~` cuts a text that others wrote to a line (`~60`: to 60 bytes),
 * and `?` keeps only what is true.
 */
function pick(record: JsonObject, form: string): JsonObject {
  const fields = form.split(" ").map((field) => {
    const [, name = "", mark, most] = /^(\w+)([~?])?(\d+)?$/.exec(field) ?? [];
    const value = record[name];
    if (mark === "~") return [name, line(value, most === undefined ? MCP_LINE_MAX_BYTES : Number(most))];
    return [name, mark === "?" && value !== true ? null : value];
  });
  return Object.fromEntries(fields);
}

/** A text of one line that others wrote, where many have to fit. */
function line(text: unknown, most: number = MCP_LINE_MAX_BYTES): unknown {
  return typeof text === "string" ? brief(text, most) : text;
}

export const linesOf = (texts: unknown): readonly unknown[] => listOf(texts).map((text) => line(text));

/** A text from an offset on, and the call that reads on. */
export function textFrom(text: string, offset: number, readOn: ReadOn, mostBytes?: number): Foreign {
  const part = { offset, total: text.length, unit: "characters" } as const;
  return new Foreign(text.slice(offset), { readOn, part, mostBytes });
}

// ---- Records of any depth

/** The parts of a task on which task_get reads on, by the name of the field, or of its record and the field. */
const TEXTS = ["title", "description", "problem", "improvement", "lesson", "output", "others"];
const PARTS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(TEXTS.map((name) => [name, name])),
  "failure.message": "failure",
  "checkpoint.data": "checkpoint",
};
export const TASK_PARTS: readonly string[] = Object.values(PARTS);

/** What else others wrote at any length. */
const LONG: readonly string[] = ["progress", "note", "message", "question", "choices", "schema", "answer"];
const NO_NEWS: readonly string[] = ["attempts", "restarts", "lux_reward"];

/**
 * A record with its long texts as Foreign, without empty lists, and with the first MCP_NAMED_MAX of a longer one. `of`: its
 * name in the record of the task `taskId`.
 */
function detail(record: JsonObject, of = "", taskId: unknown = null): JsonObject {
  const task_id = record["task_id"] ?? taskId;
  const fields = Object.entries(record).flatMap(([name, value]): [string, unknown][] => {
    if (value === null || value === undefined || (value === 0 && NO_NEWS.includes(name))) return [];
    const part = PARTS[`${of}.${name}`] ?? PARTS[name];
    if (part !== undefined)
      return [[name, new Foreign(value, { readOn: { call: "task_get", task_id, part } })]];
    if (Array.isArray(value) && value.length === 0) return [];
    if (LONG.includes(name)) return [[name, new Foreign(value)]];
    if (isRecord(value)) return [[name, detail(value, name, task_id)]];
    if (!Array.isArray(value)) return [[name, value]];
    const shown = value.slice(0, name === "inputs" ? MCP_INPUTS_MAX : MCP_NAMED_MAX);
    const rows = shown.map((item: unknown) => (isRecord(item) ? detail(item, name, task_id) : item));
    return [
      [name, rows],
      ...(rows.length < value.length ? [[`${name}_count`, value.length] satisfies [string, unknown]] : []),
    ];
  });
  return Object.fromEntries(fields);
}

// ---- Tasks

export function taskRow(task: JsonObject): JsonObject {
  const isHeld = task["status"] === "open" && task["ready"] === false;
  const { kind, message, node_id } = recordOf(task["failure"]);
  return {
    ...pick(task, "task_id status"),
    ...(isHeld ? { ready: false } : {}),
    ...pick(task, "title~ priority task_type assigned_node creator_node progress~ waiting_for"),
    failure: kind,
    failure_message: line(message),
    failed_at_node: node_id,
    updated_at: task["updated_at"],
  };
}

/**
 * All that a worker or a creator wants to know. `files`: the records of those of the task; `context`: what other tasks and
 * earlier attempts have left (docs/dispatch.md).
 */
export function taskDetail(
  task: JsonObject,
  files: readonly JsonObject[] = [],
  context: unknown = undefined,
): JsonObject {
  const { inputs, outputs, ready, result_verified, creator_node: _, creator_verified: _v, ...rest } = task;
  const filesIn = (ids: unknown): readonly JsonObject[] =>
    listOf(ids).map((id) =>
      pick(files.find(({ file_id }) => file_id === id) ?? { file_id: id }, "file_id name~60 size"),
    );
  return detail({
    ...withOthers(rest),
    ...authorIn(task, "creator_node", "creator_verified"),
    ready: rest["status"] === "open" ? ready : null,
    result_verified: rest["result"] === null ? null : result_verified,
    files: filesIn(inputs),
    outputs: filesIn(outputs),
    context: isRecord(context) ? contextOf(context) : null,
  });
}

/** What a worker sent besides the three texts and `output` is in one field: it may have any names. */
function withOthers(task: JsonObject): JsonObject {
  if (!isRecord(task["result"])) return task;
  const { problem, improvement, lesson, output, ...others } = task["result"];
  const known = { problem, improvement, lesson, output };
  return { ...task, result: Object.keys(others).length === 0 ? known : { ...known, others } };
}

function contextOf({ inputs, answers, ...rest }: JsonObject): JsonObject {
  const newest = recordsOf(answers).slice(-MCP_ANSWERS_MAX).map(questionFields);
  return { inputs: recordsOf(inputs).map(withOthers), ...rest, answers: newest };
}

/** A part of a task, as text. Null: the task has no such part. */
export function partText(task: JsonObject, checkpoint: unknown, part: string): string | null {
  const { result, failure, title, description } = withOthers(task);
  const parts: JsonObject = {
    ...recordOf(result),
    title,
    description,
    failure: recordOf(failure)["message"],
    checkpoint: recordOf(checkpoint)["data"],
  };
  const value = TASK_PARTS.includes(part) ? (parts[part] ?? null) : null;
  return value === null ? null : new Foreign(value).text;
}

function questionFields(question: JsonObject): JsonObject {
  const isAnswered = question["state"] === "answered";
  return {
    ...pick(question, "question_id state asked_by question choices schema answer"),
    until: question["state"] === "open" ? question["until"] : null,
    ...(isAnswered ? authorIn(question, "answered_by", "verified") : {}),
  };
}

export const questionDetail = (question: JsonObject): JsonObject => detail(questionFields(question));

export const lessonRow = (record: JsonObject): JsonObject =>
  detail(pick(record, "task_id title~80 task_type node_id verified at lesson"));

export function reviewRow(record: JsonObject): JsonObject {
  const { note: _, ...review } = recordOf(record["review"]);
  return { ...pick(record, "task_id title~80 creator_node assigned_node"), review };
}

export function waitedRow(task: JsonObject): JsonObject {
  const { kind, message } = recordOf(task["failure"]);
  return { ...pick(task, "task_id status title~40"), failure: kind, failure_message: line(message, 80) };
}

/** The answer of a completed task; task_get shows the rest of its result. */
export function answerDetail({ task_id, result }: JsonObject): JsonObject {
  const { improvement, output } = recordOf(result);
  const shown = (value: unknown, part: string): unknown =>
    value === undefined
      ? value
      : new Foreign(value, {
          readOn: { call: "task_get", task_id, part },
          mostBytes: MCP_PREVIEW_MAX_BYTES,
        });
  return { improvement: shown(improvement, "improvement"), output: shown(output, "output") };
}

// ---- Nodes

export function nodeRow(node: JsonObject, self: string | null): JsonObject {
  return {
    ...pick(node, "node_id"),
    you: node["node_id"] === self || null,
    ...pick(node, "name~ status draining?"),
    capabilities: linesOf(node["capabilities"]),
    ...pick(node, "tasks_assigned max_tasks tasks_completed"),
  };
}

// ---- Messages

/** `to_node` is "*" for a broadcast, as in mail_send. */
export function messageDetail(message: JsonObject, offset = 0, mostBytes?: number): JsonObject {
  const { id, to_node, content } = message;
  return {
    message_id: id,
    ...pick(message, "from_node verified"),
    to_node: to_node ?? "*",
    ...pick(message, "sent_at reply_to thread require_ack? redelivered? state recipients"),
    content: textFrom(String(content), offset, { call: "mail_check", message_id: id }, mostBytes),
  };
}

/** The same in a list: no content takes the room of the others. */
export const messageRow = (message: JsonObject): JsonObject =>
  messageDetail(message, 0, MCP_PREVIEW_MAX_BYTES);

// ---- Notes, leases and files

/** A note in a list. Its key is whole: the next call names it. */
export const noteRow = (note: JsonObject): JsonObject =>
  pick(note, "key version node_id verified bytes updated_at excerpt");

export function noteText(note: JsonObject, offset: number): JsonObject {
  const readOn = { call: "note", action: "get", key: note["key"] };
  return { ...noteRow(note), text: textFrom(String(note["text"]), offset, readOn) };
}

export const leaseRow = (lease: JsonObject): JsonObject =>
  pick(lease, "name node_id task_id shared? fencing until");

export const fileRow = (file: JsonObject): JsonObject => ({
  ...pick(file, "file_id name size content_type"),
  ...authorIn(file, "node_id", "verified"),
  ...pick(file, "task_id attached uploaded_at"),
});

export function fileDetail(file: JsonObject): JsonObject {
  const { sha256, metadata } = file;
  const isEmpty = Object.keys(recordOf(metadata)).length === 0;
  return { ...fileRow(file), sha256, metadata: isEmpty ? null : new Foreign(metadata) };
}
