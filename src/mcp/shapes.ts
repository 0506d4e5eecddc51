/**
 * The shapes in which the tools show what the endpoints of HTTP answer: the same fields under the same names, without those
 * that are null, and with each text that another node wrote as a Foreign (result.ts).
 */
import {
  MCP_ANSWERS_MAX,
  MCP_INPUTS_MAX,
  MCP_LINE_MAX_CHARS,
  MCP_MESSAGE_MAX_CHARS,
  MCP_NAMED_MAX,
} from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import { type Author, Foreign, type ReadOn, brief } from "./result.ts";

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
 * The fields of a record that `form` names, without those that are null. After a name, `~` cuts a text that others wrote to a
 * line (`~60`: to 60 characters), `?` keeps only what is true, and `*` marks what the author wrote, as a Foreign.
 */
function pick(record: JsonObject, form: string, by: Author = NOBODY): JsonObject {
  const fields = form.split(" ").map((field) => {
    const [, name = "", mark, most] = /^(\w+)([~?*])?(\d+)?$/.exec(field) ?? [];
    const value = record[name];
    if (mark === "~") return [name, line(value, most === undefined ? MCP_LINE_MAX_CHARS : Number(most))];
    if (mark === "?") return [name, value === true ? true : null];
    return [name, mark === "*" ? foreign(value, by) : value];
  });
  return without(Object.fromEntries(fields));
}

const NOBODY: Author = { node: null, verified: null };

/** A value that others wrote; null stays null. */
function foreign(value: unknown, by: Author, readOn: ReadOn | null = null): Foreign | null {
  return value === null || value === undefined ? null : new Foreign(value, { by, readOn });
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
function line(text: unknown, most: number = MCP_LINE_MAX_CHARS): unknown {
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

const creatorOf = (task: JsonObject): Author => authorOf(task["creator_node"], task["creator_verified"]);

function authorOf(node: unknown, verified: unknown): Author {
  return {
    node: typeof node === "string" ? node : null,
    verified: typeof verified === "boolean" ? verified : null,
  };
}

function partOf(taskId: unknown, part: string): ReadOn {
  return { call: "task_get", task_id: taskId, part };
}

/** All that a worker or a creator wants to know. `context`: what other tasks and earlier attempts have left. */
export function taskDetail(task: JsonObject, context: unknown = undefined): JsonObject {
  const {
    task_id: taskId,
    title,
    description,
    depends_on,
    unmet,
    inputs,
    outputs,
    files: _files,
    ...rest
  } = task;
  const { result, result_verified, progress, failure, restarts, attempts, lux_reward, ready, ...plain } =
    rest;
  const isWaiting = Number(recordOf(unmet)["count"]) > 0;
  const holder = authorOf(plain["assigned_node"], result_verified);
  const creator = creatorOf(task);
  return without({
    task_id: taskId,
    title: new Foreign(title, { by: creator, readOn: partOf(taskId, "title") }),
    ...plain,
    ...(plain["status"] === "open" ? { ready } : {}),
    description: new Foreign(description, { by: creator, readOn: partOf(taskId, "description") }),
    ...(Number(lux_reward) > 0 ? { lux_reward } : {}),
    ...(Number(attempts) > 0 ? { attempts } : {}),
    ...(Number(restarts) > 0 ? { restarts } : {}),
    ...firstOf("depends_on", depends_on),
    ...(isWaiting ? { unmet } : {}),
    ...firstOf("inputs", inputs),
    ...firstOf("outputs", outputs),
    progress,
    failure: failure === null ? null : failureDetail(failure, taskId),
    ...(isRecord(result) ? { result: resultDetail(result, taskId, holder), result_verified } : {}),
    ...(isRecord(context) ? { context: contextDetail(context, taskId) } : {}),
  });
}

function failureDetail(failure: unknown, taskId: unknown): JsonObject {
  const { kind, message, node_id, at } = recordOf(failure);
  const text = foreign(message, authorOf(node_id, null), partOf(taskId, "failure"));
  return without({ kind, message: text, node_id, at });
}

/** What a worker sent besides the three texts and `output` is in one field: it may have any names. */
function resultDetail(result: JsonObject, taskId: unknown, by: Author): JsonObject {
  const { problem, improvement, lesson, output, ...others } = result;
  const part = (value: unknown, name: string): unknown =>
    value === undefined ? null : new Foreign(value, { by, readOn: partOf(taskId, name) });
  return without({
    problem: part(problem, "problem"),
    improvement: part(improvement, "improvement"),
    lesson: part(lesson, "lesson"),
    output: part(output, "output"),
    others: Object.keys(others).length === 0 ? null : part(others, "others"),
  });
}

/** The parts of a task that task_get reads on in, as text. Null: the task has no such part. */
export function partText(task: JsonObject, checkpoint: unknown, part: string): Foreign | null {
  const result = recordOf(task["result"]);
  const { problem: _p, improvement: _i, lesson: _l, output: _o, ...others } = result;
  const parts: JsonObject = {
    ...result,
    title: task["title"],
    description: task["description"],
    failure: recordOf(task["failure"])["message"],
    checkpoint: recordOf(checkpoint)["data"],
    others: Object.keys(others).length === 0 ? undefined : others,
  };
  const value = parts[part];
  if (!TASK_PARTS.includes(part) || value === undefined || value === null) return null;
  return new Foreign(value, { by: authorOfPart(task, checkpoint, part), readOn: null });
}

function authorOfPart(task: JsonObject, checkpoint: unknown, part: string): Author {
  switch (part) {
    case "title":
    case "description":
      return creatorOf(task);
    case "checkpoint":
      return authorOf(recordOf(checkpoint)["node_id"], null);
    case "failure":
      return authorOf(recordOf(task["failure"])["node_id"], null);
    default:
      return authorOf(task["assigned_node"], task["result_verified"]);
  }
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
  const { checkpoint } = context;
  const failures = recordsOf(context["failures"]);
  const answers = recordsOf(context["answers"]);
  const lessons = recordsOf(context["lessons"]);
  return {
    ...(inputs.length === 0 ? {} : firstInputs(inputs)),
    ...(isRecord(checkpoint) ? { checkpoint: checkpointDetail(checkpoint, taskId) } : {}),
    ...(answers.length === 0 ? {} : newestAnswers(answers)),
    ...(failures.length === 0 ? {} : { failures: failures.map(failureRow) }),
    ...(lessons.length === 0 ? {} : { lessons: lessons.map(lessonRow) }),
  };
}

function newestAnswers(answers: readonly JsonObject[]): JsonObject {
  const shown = answers.slice(-MCP_ANSWERS_MAX).map(questionDetail);
  return shown.length < answers.length
    ? { answers: shown, answers_count: answers.length }
    : { answers: shown };
}

export function questionDetail(question: JsonObject): JsonObject {
  const { choices, asked_by, state, answer, answered_by, verified } = question;
  const asker = authorOf(asked_by, null);
  return {
    ...pick(question, "question_id state asked_by"),
    ...(state === "open" ? pick(question, "until") : {}),
    ...pick(question, `question*${listOf(choices).length > 0 ? " choices*" : ""} schema*`, asker),
    ...without({ answer: foreign(answer, authorOf(answered_by, verified)) }),
    ...(state === "answered" ? pick(question, "answered_by verified") : {}),
  };
}

export function lessonRow(record: JsonObject): JsonObject {
  const { task_id, node_id, verified, lesson } = record;
  return {
    ...pick(record, "task_id title~80 task_type node_id verified at"),
    lesson: foreign(lesson, authorOf(node_id, verified), partOf(task_id, "lesson")),
  };
}

/** The first of them: of the others task_get shows the results. */
function firstInputs(inputs: readonly JsonObject[]): JsonObject {
  const shown = inputs.slice(0, MCP_INPUTS_MAX).map(inputDetail);
  return shown.length < inputs.length ? { inputs: shown, inputs_count: inputs.length } : { inputs: shown };
}

/** A task that another depends on: its result, of which the rest is read by task_get. */
function inputDetail(input: JsonObject): JsonObject {
  const { task_id: taskId, assigned_node, result, result_verified } = input;
  const files = recordsOf(input["files"]);
  const shown = files.slice(0, MCP_INPUTS_MAX).map((file) => pick(file, "file_id name~60"));
  return without({
    ...pick(input, "task_id title~80 status assigned_node omitted?"),
    files: shown.length === 0 ? null : shown,
    ...(shown.length < files.length ? { files_count: files.length } : {}),
    ...(isRecord(result)
      ? { result: resultDetail(result, taskId, authorOf(assigned_node, result_verified)), result_verified }
      : {}),
  });
}

function checkpointDetail({ data, epoch, node_id, at }: JsonObject, taskId: unknown): JsonObject {
  const author = authorOf(node_id, null);
  return {
    data: new Foreign(data, { by: author, readOn: partOf(taskId, "checkpoint") }),
    epoch,
    node_id,
    at,
  };
}

function failureRow(failure: JsonObject): JsonObject {
  return pick(failure, "kind node_id at message*", authorOf(failure["node_id"], null));
}

export function waitedRow(task: JsonObject): JsonObject {
  const { kind, message } = recordOf(task["failure"]);
  return without({
    ...pick(task, "task_id status title~60"),
    failure: kind,
    failure_message: line(message, 80),
  });
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
export function messageDetail(message: JsonObject, offset = 0): JsonObject {
  const { id, from_node, to_node, content, verified } = message;
  const text = String(content);
  return {
    message_id: id,
    ...pick(message, "from_node verified"),
    to_node: to_node ?? "*",
    ...pick(message, "sent_at reply_to thread require_ack? redelivered? state recipients"),
    content: new Foreign(text.slice(offset), {
      by: authorOf(from_node, verified),
      readOn: { call: "mail_check", message_id: id },
      part: { offset, total: text.length, unit: "characters" },
    }),
  };
}

/** The same in a list: no content takes the room of the others. */
export function messageRow(message: JsonObject): JsonObject {
  const { content, ...head } = messageDetail(message);
  if (!(content instanceof Foreign)) return head;
  return {
    ...head,
    content: new Foreign(content.value, { ...content.options, mostChars: MCP_MESSAGE_MAX_CHARS }),
  };
}

// ---- Notes and leases

/** A note in a list. Its key is whole: the next call names it. */
export function noteRow(note: JsonObject): JsonObject {
  const author = authorOf(note["node_id"], note["verified"]);
  return pick(note, "key* version node_id verified bytes updated_at excerpt*", author);
}

/** A note with its text from an offset on. */
export function noteText(note: JsonObject, offset: number): JsonObject {
  const { key, node_id, verified } = note;
  const text = String(note["text"]);
  const content = new Foreign(text.slice(offset), {
    by: authorOf(node_id, verified),
    readOn: { call: "note", action: "get", key },
    part: { offset, total: text.length, unit: "characters" },
  });
  return { ...noteRow(note), text: content };
}

export function leaseRow(lease: JsonObject): JsonObject {
  return pick(lease, "name* node_id task_id shared fencing until", authorOf(lease["node_id"], null));
}

// ---- Files

export function fileRow(file: JsonObject): JsonObject {
  return pick(file, "file_id name size content_type node_id verified task_id attached uploaded_at");
}

export function fileDetail(file: JsonObject): JsonObject {
  const { metadata, node_id, verified } = file;
  const isEmpty = Object.keys(recordOf(metadata)).length === 0;
  return {
    ...fileRow(file),
    ...pick(file, isEmpty ? "sha256" : "sha256 metadata*", authorOf(node_id, verified)),
  };
}
