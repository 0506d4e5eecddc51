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
import { Foreign, type ReadOn, brief } from "./result.ts";

export function isRecord(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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

export function plural(amount: unknown, thing: string): string {
  return amount === 1 ? `1 ${thing}` : `${amount} ${thing}s`;
}

function without<T extends JsonObject>(record: T): JsonObject {
  return Object.fromEntries(
    Object.entries(record).filter(([, value]) => value !== null && value !== undefined),
  );
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
 * The fields of a record that `form` names, without those that are null. After a name, `~` cuts a text that others wrote to a
 * line (`~60`: to 60 bytes), `?` keeps only what is true, and `*` marks what is cut only where it does not fit (Foreign).
 */
function pick(record: JsonObject, form: string): JsonObject {
  const fields = form.split(" ").map((field) => {
    const [, name = "", mark, most] = /^(\w+)([~?*])?(\d+)?$/.exec(field) ?? [];
    const value = record[name];
    if (mark === "~") return [name, line(value, most === undefined ? MCP_LINE_MAX_BYTES : Number(most))];
    if (mark === "?") return [name, value === true ? true : null];
    return [name, mark === "*" ? foreign(value) : value];
  });
  return without(Object.fromEntries(fields));
}

/** A value that others wrote; null stays null. */
function foreign(value: unknown, readOn: ReadOn | null = null, mostBytes?: number): Foreign | null {
  if (value === null || value === undefined) return null;
  return new Foreign(value, { readOn, ...(mostBytes === undefined ? {} : { mostBytes }) });
}

/** The first of many ids, with their number if there are more. */
function firstOf(name: string, ids: unknown): JsonObject {
  const list = listOf(ids);
  if (list.length <= MCP_NAMED_MAX) return { [name]: list };
  return { [name]: list.slice(0, MCP_NAMED_MAX), [`${name}_count`]: list.length };
}

export function firstLines(name: string, texts: readonly string[]): JsonObject {
  return firstOf(name, linesOf(texts));
}

/** A text of one line that others wrote, where many have to fit. */
function line(text: unknown, most: number = MCP_LINE_MAX_BYTES): unknown {
  return typeof text === "string" ? brief(text, most) : text;
}

function linesOf(texts: unknown): readonly unknown[] {
  return listOf(texts).map((text) => line(text));
}

// ---- Tasks

export function taskRow(task: JsonObject): JsonObject {
  const isHeld = task["status"] === "open" && task["ready"] === false;
  return {
    ...pick(task, "task_id status"),
    ...(isHeld ? { ready: false } : {}),
    ...pick(task, "title~ priority task_type assigned_node creator_node progress~ waiting_for"),
    ...failureFields(task["failure"]),
    ...pick(task, "updated_at"),
  };
}

function failureFields(failure: unknown): JsonObject {
  const { kind, message, node_id } = recordOf(failure);
  return without({ failure: kind, failure_message: line(message), failed_at_node: node_id });
}

function partOf(taskId: unknown, part: string): ReadOn {
  return { call: "task_get", task_id: taskId, part };
}

/**
 * All that a worker or a creator wants to know. `files`: the records of those of the task; `context`: what other tasks and
 * earlier attempts have left.
 */
export function taskDetail(
  task: JsonObject,
  files: readonly JsonObject[] = [],
  context: unknown = undefined,
): JsonObject {
  const { task_id: taskId, title, description, depends_on, unmet, inputs, outputs, ...rest } = task;
  const { files: _files, creator_node: _node, creator_verified: _verified, ...others } = rest;
  const {
    result,
    result_verified,
    review,
    progress,
    failure,
    restarts,
    attempts,
    lux_reward,
    ready,
    ...plain
  } = others;
  const isWaiting = Number(recordOf(unmet)["count"]) > 0;
  return without({
    task_id: taskId,
    title: foreign(title, partOf(taskId, "title")),
    ...plain,
    ...authorIn(task, "creator_node", "creator_verified"),
    ...(plain["status"] === "open" ? { ready } : {}),
    description: foreign(description, partOf(taskId, "description")),
    ...(Number(lux_reward) > 0 ? { lux_reward } : {}),
    ...(Number(attempts) > 0 ? { attempts } : {}),
    ...(Number(restarts) > 0 ? { restarts } : {}),
    ...firstOf("depends_on", depends_on),
    ...(isWaiting ? { unmet } : {}),
    ...filesAmong("files", files, inputs),
    ...filesAmong("outputs", files, outputs),
    progress: foreign(progress),
    review: isRecord(review) ? without({ ...review, note: foreign(review["note"]) }) : null,
    failure: failure === null ? null : failureDetail(failure, taskId),
    ...(isRecord(result) ? { result: resultDetail(result, taskId), result_verified } : {}),
    ...(isRecord(context) ? { context: contextDetail(context, taskId) } : {}),
  });
}

function filesAmong(name: string, files: readonly JsonObject[], ids: unknown): JsonObject {
  const count = listOf(ids).length;
  const rows = files.filter(({ file_id }) => listOf(ids).includes(file_id)).slice(0, MCP_NAMED_MAX);
  if (count === 0) return {};
  return {
    [name]: rows.map((file) => pick(file, "file_id name~60 size")),
    ...(rows.length < count ? { [`${name}_count`]: count } : {}),
  };
}

function failureDetail(failure: unknown, taskId: unknown): JsonObject {
  const { message, ...fields } = recordOf(failure);
  return without({
    ...pick(fields, "kind node_id at"),
    message: foreign(message, partOf(taskId, "failure")),
  });
}

/** What a worker sent besides the three texts and `output` is in one field: it may have any names. */
function resultDetail(result: JsonObject, taskId: unknown, mostBytes?: number): JsonObject {
  const { problem, improvement, lesson, output, ...others } = result;
  const parts = {
    problem,
    improvement,
    lesson,
    output,
    others: Object.keys(others).length === 0 ? null : others,
  };
  return without(
    Object.fromEntries(
      Object.entries(parts).map(([name, value]) => [name, foreign(value, partOf(taskId, name), mostBytes)]),
    ),
  );
}

/** The parts of a task that task_get reads on in, as text. Null: the task has no such part. */
export function partText(task: JsonObject, checkpoint: unknown, part: string): Foreign | null {
  const { problem, improvement, lesson, output, ...others } = recordOf(task["result"]);
  const parts: JsonObject = {
    problem,
    improvement,
    lesson,
    output,
    title: task["title"],
    description: task["description"],
    failure: recordOf(task["failure"])["message"],
    checkpoint: recordOf(checkpoint)["data"],
    others: Object.keys(others).length === 0 ? undefined : others,
  };
  return TASK_PARTS.includes(part) ? foreign(parts[part]) : null;
}

export const TASK_PARTS: readonly string[] = [
  "title",
  "description",
  "problem",
  "improvement",
  "lesson",
  "output",
  "others",
  "failure",
  "checkpoint",
];

/** What other tasks and earlier attempts leave for the worker of a task (docs/dispatch.md). */
function contextDetail(context: JsonObject, taskId: unknown): JsonObject {
  const inputs = recordsOf(context["inputs"]);
  const { checkpoint, review } = context;
  const failures = recordsOf(context["failures"]);
  const answers = recordsOf(context["answers"]);
  const lessons = recordsOf(context["lessons"]);
  return without({
    ...(inputs.length === 0 ? {} : firstInputs(inputs)),
    checkpoint: isRecord(checkpoint) ? checkpointDetail(checkpoint, taskId) : null,
    review: isRecord(review) ? without({ ...review, note: foreign(review["note"]) }) : null,
    ...(answers.length === 0 ? {} : newestAnswers(answers)),
    failures:
      failures.length === 0 ? null : failures.map((failure) => pick(failure, "kind node_id at message*")),
    lessons: lessons.length === 0 ? null : lessons.map(lessonRow),
  });
}

function newestAnswers(answers: readonly JsonObject[]): JsonObject {
  const shown = answers.slice(-MCP_ANSWERS_MAX).map(questionDetail);
  return shown.length < answers.length
    ? { answers: shown, answers_count: answers.length }
    : { answers: shown };
}

export function questionDetail(question: JsonObject): JsonObject {
  const { choices, state } = question;
  return {
    ...pick(question, "question_id state asked_by"),
    ...(state === "open" ? pick(question, "until") : {}),
    ...pick(question, `question*${listOf(choices).length > 0 ? " choices*" : ""} schema* answer*`),
    ...(state === "answered" ? authorIn(question, "answered_by", "verified") : {}),
  };
}

export function lessonRow(record: JsonObject): JsonObject {
  return {
    ...pick(record, "task_id title~80 task_type node_id verified at"),
    lesson: foreign(record["lesson"], partOf(record["task_id"], "lesson")),
  };
}

/** The first of them: of the others task_get shows the results. */
function firstInputs(inputs: readonly JsonObject[]): JsonObject {
  const shown = inputs.slice(0, MCP_INPUTS_MAX).map(inputDetail);
  return shown.length < inputs.length ? { inputs: shown, inputs_count: inputs.length } : { inputs: shown };
}

/** A task that another depends on: its result, of which the rest is read by task_get. */
function inputDetail(input: JsonObject): JsonObject {
  const { task_id: taskId, result } = input;
  const files = recordsOf(input["files"]);
  const shown = files.slice(0, MCP_INPUTS_MAX).map((file) => pick(file, "file_id name~60 size"));
  return without({
    ...pick(input, "task_id title~80 status assigned_node omitted?"),
    files: shown.length === 0 ? null : shown,
    ...(shown.length < files.length ? { files_count: files.length } : {}),
    ...(isRecord(result) ? { result: resultDetail(result, taskId), ...pick(input, "result_verified") } : {}),
  });
}

function checkpointDetail({ data, epoch, node_id, at }: JsonObject, taskId: unknown): JsonObject {
  return { data: foreign(data, partOf(taskId, "checkpoint")), epoch, node_id, at };
}

export function reviewRow(record: JsonObject): JsonObject {
  const { note: _, ...review } = recordOf(record["review"]);
  return { ...pick(record, "task_id title~80 creator_node assigned_node"), review: without(review) };
}

export function waitedRow(task: JsonObject): JsonObject {
  const { kind, message } = recordOf(task["failure"]);
  return without({
    ...pick(task, "task_id status title~40"),
    failure: kind,
    failure_message: line(message, 80),
  });
}

/** The answer of a completed task; task_get shows the rest of its result. */
export function answerDetail({ task_id, result }: JsonObject): JsonObject {
  const { improvement, output } = recordOf(result);
  return resultDetail(without({ improvement, output }), task_id, MCP_PREVIEW_MAX_BYTES);
}

// ---- Nodes

export function nodeRow(node: JsonObject, self: string | null): JsonObject {
  return {
    ...pick(node, "node_id"),
    ...(node["node_id"] === self ? { you: true } : {}),
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
    content: from(String(content), offset, { call: "mail_check", message_id: id }, mostBytes),
  };
}

/** A text from an offset on. */
function from(text: string, offset: number, readOn: ReadOn, mostBytes?: number): Foreign {
  return new Foreign(text.slice(offset), {
    readOn,
    part: { offset, total: text.length, unit: "characters" },
    ...(mostBytes === undefined ? {} : { mostBytes }),
  });
}

/** The same in a list: no content takes the room of the others. */
export const messageRow = (message: JsonObject): JsonObject =>
  messageDetail(message, 0, MCP_PREVIEW_MAX_BYTES);

// ---- Notes and leases

/** A note in a list. Its key is whole: the next call names it. */
export function noteRow(note: JsonObject): JsonObject {
  return pick(note, "key* version node_id verified bytes updated_at excerpt*");
}

/** A note with its text from an offset on. */
export function noteText(note: JsonObject, offset: number): JsonObject {
  const readOn = { call: "note", action: "get", key: note["key"] };
  return { ...noteRow(note), text: from(String(note["text"]), offset, readOn) };
}

export function leaseRow(lease: JsonObject): JsonObject {
  return pick(lease, "name* node_id task_id shared? fencing until");
}

// ---- Files

export function fileRow(file: JsonObject): JsonObject {
  return {
    ...pick(file, "file_id name size content_type"),
    ...authorIn(file, "node_id", "verified"),
    ...pick(file, "task_id attached uploaded_at"),
  };
}

export function fileDetail(file: JsonObject): JsonObject {
  const isEmpty = Object.keys(recordOf(file["metadata"])).length === 0;
  return { ...fileRow(file), ...pick(file, isEmpty ? "sha256" : "sha256 metadata*") };
}
