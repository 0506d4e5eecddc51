/**
 * The tools: each with what a model reads of it, and the endpoints that it calls. Arguments are named as the fields of
 * HTTP; the caller's node is never one. The list is part of every conversation of every agent, so each word of it costs.
 *
 * Every tool may be called again with the same arguments when its answer was lost: where the endpoint alone is not safe to
 * repeat, the call has a key for its repeats (see `once`), or the answer says what has become of the task.
 */
import type { CallToolResult, Tool } from "@modelcontextprotocol/server";
import { encodeDelivery, encodeNode, encodeTask } from "../api/response-schemas.ts";
import * as limit from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import { type FieldError, invalidRequest } from "../http/problem.ts";
import { problemOf } from "../api/error-table.ts";
import { hashJson } from "../api/idempotency.ts";
import { SECOND_MS } from "../lib/clock.ts";
import { causeOf } from "../lib/log.ts";
import { getFile, putFile } from "./files.ts";
import { Refused, type Session } from "./session.ts";
import {
  type ToolAnswer,
  compact,
  compactTask,
  isRecord,
  messageText,
  nodeLine,
  recordOf,
  recordsOf,
  refusalText,
  plural,
  taskLine,
  taskText,
} from "./texts.ts";

type Args = JsonObject;
type Property = {
  readonly type?: "string" | "integer" | "number" | "boolean" | "array";
  readonly description?: string;
  readonly items?: { readonly type: "string" };
  readonly enum?: string[];
};

type Declared = {
  readonly description: string;
  readonly properties: Readonly<Record<string, Property>>;
  readonly required?: readonly string[];
  /** It changes nothing but the lease of its node. */
  readonly readOnly?: true;
  readonly run: (session: Session, args: Args, beat: JsonObject | null) => Promise<ToolAnswer>;
};

const STRING = { type: "string" } as const;
const INTEGER = { type: "integer" } as const;
const NUMBER = { type: "number" } as const;
const BOOLEAN = { type: "boolean" } as const;
const STRINGS = { type: "array", items: STRING } as const;
const WAIT = { type: "number", description: "Seconds to wait, at most 25" } as const;
const PRIORITY: Property = { type: "string", enum: ["high", "medium", "low", "p5"] };
const KEY = { ...STRING, description: "Set it to repeat an identical call on purpose" } as const;
const TASK_ID = { task_id: STRING } as const;

const TOOLS = {
  hub_status: {
    description: "Says who you are, what waits for you, and how the hub is.",
    properties: {},
    readOnly: true,
    run: hubStatus,
  },
  node_list: {
    description: "Lists the nodes (workers): who is online, what each takes and holds.",
    properties: { online: BOOLEAN, limit: INTEGER },
    readOnly: true,
    run: nodeList,
  },
  node_update: {
    description:
      "Changes your own profile: display name, the task types you take (none: all), whether the hub may assign you " +
      "tasks unasked, and drain: nothing new for you.",
    properties: {
      name: STRING,
      capabilities: STRINGS,
      max_tasks: INTEGER,
      auto_assign: BOOLEAN,
      drain: BOOLEAN,
    },
    run: nodeUpdate,
  },
  task_next: {
    description:
      "Gives you your next task: best priority first, yours alone until you complete, fail or release it. Answers no " +
      "task when the wait is over. Repeats your task until you end it or call task_progress. Start here to work.",
    properties: { wait_s: WAIT, task_types: STRINGS },
    run: taskNext,
  },
  task_claim: {
    description: "Takes one open task that you chose yourself. Prefer task_next.",
    properties: TASK_ID,
    required: ["task_id"],
    run: taskClaim,
  },
  task_progress: {
    description:
      "Says that you still work on your task: restarts its time limit; its creator sees the note. Call it every few minutes.",
    properties: { ...TASK_ID, note: STRING },
    required: ["task_id", "note"],
    run: taskProgress,
  },
  task_complete: {
    description:
      "Ends your task with its result: problem (what was to be solved), improvement (what you did), lesson (what others " +
      "should know), output (any JSON, 64 KiB). Files first: file_put.",
    properties: { ...TASK_ID, problem: STRING, improvement: STRING, lesson: STRING, output: {} },
    required: ["task_id", "problem", "improvement", "lesson"],
    run: taskComplete,
  },
  task_fail: {
    description:
      "Says that your attempt failed, and why. The task is tried again, unless retry is false or its attempts are used up.",
    properties: { ...TASK_ID, error: STRING, retry: BOOLEAN },
    required: ["task_id", "error"],
    run: (session, args) => giveBack(session, "task/fail", args),
  },
  task_release: {
    description: "Gives your task back untried; another node takes it.",
    properties: { ...TASK_ID, reason: STRING },
    required: ["task_id"],
    run: (session, args) => giveBack(session, "task/release", args),
  },
  task_create: {
    description:
      "Creates a task for other nodes. Write the description for a worker that knows nothing else. depends_on: task_ids " +
      "to be completed before. files: file_ids of file_put. timeout_s: how long a worker may be silent; max_run_s: how long it may take in all. Then task_get with wait_s for the result.",
    properties: {
      title: STRING,
      description: STRING,
      task_type: STRING,
      priority: PRIORITY,
      depends_on: STRINGS,
      files: STRINGS,
      timeout_s: NUMBER,
      max_run_s: NUMBER,
      delay_s: NUMBER,
      max_attempts: INTEGER,
      lux_reward: NUMBER,
      key: KEY,
    },
    required: ["title", "description"],
    run: taskCreate,
  },
  task_list: {
    description:
      "Lists tasks, newest first. node_id: held by that node; creator_node: created by it; q: words of the title; " +
      "cursor: next_cursor of the answer before.",
    properties: {
      status: { type: "string", enum: ["open", "assigned", "completed", "failed"] },
      node_id: STRING,
      creator_node: STRING,
      task_type: STRING,
      q: STRING,
      limit: INTEGER,
      cursor: STRING,
    },
    readOnly: true,
    run: taskList,
  },
  task_get: {
    description: "Shows one task with description, progress, result, failure. wait_s: until it has ended.",
    properties: { ...TASK_ID, wait_s: WAIT },
    required: ["task_id"],
    readOnly: true,
    run: taskGet,
  },
  task_cancel: {
    description: "Ends an unfinished task for good: it counts as failed, and its worker must drop it.",
    properties: { ...TASK_ID, reason: STRING },
    required: ["task_id"],
    run: taskCancel,
  },
  mail_send: {
    description:
      "Sends a message to one node; it waits there until it is read. require_ack: you learn whether it was confirmed.",
    properties: { to_node: STRING, content: STRING, require_ack: BOOLEAN, key: KEY },
    required: ["to_node", "content"],
    run: mailSend,
  },
  mail_check: {
    description:
      "Shows the messages that wait for you, oldest first, and leaves them there until you mail_ack them.",
    properties: { wait_s: WAIT },
    readOnly: true,
    run: mailCheck,
  },
  mail_ack: {
    description: "Removes messages from your mailbox that you have dealt with.",
    properties: { message_ids: STRINGS },
    required: ["message_ids"],
    run: mailAck,
  },
  file_put: {
    description:
      "Stores a file of at most 64 KiB: content as text, or base64 with encoding base64; task_id attaches it to that " +
      "task. For a larger one leave content out: you are told how to upload it.",
    properties: {
      name: STRING,
      content: STRING,
      encoding: { type: "string", enum: ["text", "base64"] },
      ...TASK_ID,
      key: KEY,
    },
    required: ["name"],
    run: putFile,
  },
  file_get: {
    description: "Reads a file: its content if it has at most 64 KiB, else the URL to download it from.",
    properties: { file_id: STRING },
    required: ["file_id"],
    readOnly: true,
    run: getFile,
  },
} satisfies Readonly<Record<string, Declared>>;

type ToolName = keyof typeof TOOLS;

export function hasTool(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}

/** As the agents get it, always in this order. */
export const TOOL_LIST: readonly Tool[] = Object.entries<Declared>(TOOLS).map(([name, tool]) => ({
  name,
  description: tool.description,
  inputSchema: {
    type: "object",
    properties: { ...tool.properties },
    ...(tool.required ? { required: [...tool.required] } : {}),
  },
  ...(tool.readOnly ? { annotations: { readOnlyHint: true } } : {}),
}));

/** Runs a tool. A refusal is an answer with `isError`, which says what to do next. */
export async function callTool(session: Session, name: ToolName, args: Args): Promise<CallToolResult> {
  const tool: Declared = TOOLS[name];
  try {
    checkArguments(tool, args);
    const beat = await session.beat();
    const { text, data, more = [] } = await tool.run(session, args, beat);
    return { content: [{ type: "text", text }, ...more], structuredContent: { ...data } };
  } catch (error) {
    return refusalOf(session, error);
  }
}

function refusalOf({ call }: Session, error: unknown): CallToolResult {
  let body = error instanceof Refused ? error.body : problemOf(error)?.toJSON();
  if (body === undefined) {
    const { requestId } = call.exchange;
    call.log.error("request failed", { request_id: requestId, cause: causeOf(error) });
    const detail = `The hub failed to process this call. Call again; if it fails again, give the operator the request id ${requestId}.`;
    body = { error: "internal_error", status: 500, detail };
  }
  body = inArguments(body);
  const { error: code, status, detail, errors } = body;
  const structuredContent = { error: code, status, detail, ...(errors === undefined ? {} : { errors }) };
  return { isError: true, content: [{ type: "text", text: refusalText(body) }], structuredContent };
}

/** Where an argument is not called as the field of HTTP. */
function inArguments(body: JsonObject): JsonObject {
  if (body["error"] !== "invalid_request") return body;
  const named = recordsOf(body["errors"]).map((one): FieldError => {
    const path = String(one["path"]).replace(/^result\./, "");
    return {
      path: path === "wait" ? "wait_s" : path === "per_page" ? "limit" : path,
      message: String(one["message"]),
    };
  });
  return named.length === 0 ? body : invalidRequest(named).toJSON();
}

/** What the schema says of the arguments; the endpoints check the rest. @throws {Problem} 400 */
function checkArguments({ properties, required = [] }: Declared, args: Args): void {
  const errors: FieldError[] = [];
  for (const name of required)
    if (args[name] === undefined || args[name] === null) errors.push({ path: name, message: "is required" });
  for (const [name, value] of Object.entries(args)) {
    const property = properties[name];
    if (property === undefined) {
      const known = Object.keys(properties).join(", ");
      const message = `is not an argument of this tool; its arguments are: ${known === "" ? "none" : known}`;
      errors.push({ path: name, message });
    } else if (value !== null && !isOfType(property, value))
      errors.push({ path: name, message: mustBe(property) });
  }
  if (errors.length > 0) throw invalidRequest(errors);
}

function isOfType(property: Property, value: unknown): boolean {
  const words = property.enum;
  if (words) return words.some((word) => word === value);
  switch (property.type) {
    case "array":
      return Array.isArray(value) && value.every((item) => typeof item === "string");
    case "integer":
      return Number.isInteger(value);
    case undefined:
      return true;
    default:
      return typeof value === property.type;
  }
}

function mustBe(property: Property): string {
  const words = property.enum;
  if (words) return `must be one of ${words.join(", ")}`;
  return property.type === "array" ? "must be a list of strings" : `must be of the type ${property.type}`;
}

// ---- What the tools do.

/** At most MCP_WAIT_MAX_SECONDS: a longer wait would run into the time limit of the agent's client. */
function waitOf(args: Args): number {
  const asked = args["wait_s"];
  return typeof asked === "number" ? Math.min(Math.max(asked, 0), limit.MCP_WAIT_MAX_SECONDS) : 0;
}

/** The arguments without those that are left out, and `key`, which only tells two calls apart. */
function given({ key: _, ...args }: Args): JsonObject {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null));
}

/** An identical call within MCP_REPEAT_WINDOW_MS is a repeat, unless its `key` differs. */
function once({ nodeId }: Session, args: Args) {
  return { key: `${nodeId ?? ""}:${hashJson(args)}`, implicit: true };
}

const REPEATED =
  "You made this very call before: this is its answer, and nothing was done again. To do it again on purpose, add key. ";

function said(answer: JsonObject, text: string): string {
  return answer["repeated"] === true ? REPEATED + text : text;
}

async function hubStatus(session: Session, _: Args, beat: JsonObject | null): Promise<ToolAnswer> {
  const hub = await session.ask("GET", "status", {});
  const { by_status: byStatus } = await session.ask("GET", "task/stats", {});
  const tasks = Object.entries(recordOf(byStatus)).map(([word, count]) => `${count} ${word}`);
  const who =
    beat === null
      ? "Your key is bound to no node and you sent no X-Node-Id: you can look, but not work."
      : `You are the node ${beat["node_id"]}: you hold ${plural(beat["tasks_assigned"], "task")}, and ${plural(beat["messages_waiting"], "message")} ${beat["messages_waiting"] === 1 ? "waits" : "wait"} for you.`;
  const { software, status, nodes_count } = hub;
  const text = `${who}\n${software}, ${status}; ${plural(nodes_count, "node")}; tasks: ${tasks.join(", ")}.`;
  const you = beat && {
    node_id: beat["node_id"],
    tasks_assigned: beat["tasks_assigned"],
    messages_waiting: beat["messages_waiting"],
  };
  return { text, data: compact({ software, status, nodes_count, tasks: byStatus, you }) };
}

async function nodeList({ call, nodeId }: Session, args: Args): Promise<ToolAnswer> {
  const query = {
    state: args["online"] === true ? "online" : null,
    prefix: "",
    taking: null,
    order: "id",
  } as const;
  const page = await call.services.nodes.lists.page(query, { page: 1, perPage: countOf(args) });
  const nodes = page.nodes.map((node) => recordOf(encodeNode(node, call.variant)));
  const more = page.next === null ? [] : ["There are more nodes."];
  const lines = [...nodes.map((node) => nodeLine(node, nodeId)), ...more];
  const data = { nodes: nodes.map(compact), complete: more.length === 0 };
  return { text: lines.length === 0 ? "No nodes." : lines.join("\n"), data };
}

function countOf(args: Args, fallback: number = limit.PER_PAGE_DEFAULT): number {
  const asked = args["limit"];
  return typeof asked === "number" ? Math.min(Math.max(asked, 1), limit.MCP_LIST_MAX) : fallback;
}

/** Registers the whole profile, and takes fields that the call leaves out from the current one. */
async function nodeUpdate(session: Session, args: Args): Promise<ToolAnswer> {
  const { self } = session;
  const { drain, ...changes } = given(args);
  const before = recordOf((await session.ask("GET", "node/:node_id", { node_id: self }))["node"]);
  const { name, host, port, capabilities, max_tasks, auto_assign } = before;
  const profile = { name, host, port, capabilities, max_tasks, auto_assign, ...changes, node_id: self };
  if (Object.keys(changes).length > 0) await session.ask("POST", "node/register", profile);
  if (drain !== undefined) await session.ask("POST", "node/drain", { node_id: self, drain });
  const node = recordOf((await session.ask("GET", "node/:node_id", { node_id: self }))["node"]);
  return { text: nodeLine(node, self), data: { node: compact(node) } };
}

async function taskNext(session: Session, args: Args): Promise<ToolAnswer> {
  const { call, self } = session;
  const held = await call.services.next.unacknowledged(self);
  if (held !== null) return handedOut(session, recordOf(encodeTask(held, call.variant, call.at)), AGAIN);
  const asked = { node_id: self, wait: waitOf(args), task_types: args["task_types"] ?? null };
  const answer = await session.ask("POST", "task/next", asked);
  if (isRecord(answer["task"])) return handedOut(session, answer["task"], "");
  const text =
    answer["drain"] === true
      ? "No task: you drain, so you get nothing new. Finish what you hold."
      : "No task for you now. Call task_next again with wait_s: 25 to wait for one.";
  return { text, data: { drain: answer["drain"] } };
}

const AGAIN =
  "You hold this task, and have said nothing of it yet. For another one besides, call task_progress for it first.\n";

function handedOut({ self }: Session, task: JsonObject, before: string): ToolAnswer {
  const text = `${before}${taskText(task, self)}\nIt is yours. End it with task_complete, task_fail or task_release.`;
  return { text, data: { task: compactTask(task) } };
}

function taskAnswer({ nodeId }: Session, answer: JsonObject, text: string): ToolAnswer {
  const task = recordOf(answer["task"]);
  const { description: _, ...shown } = compactTask(task);
  const repeated = answer["repeated"] === true ? { repeated: true } : {};
  return { text: said(answer, `${text}\n${taskLine(task, nodeId)}`), data: { task: shown, ...repeated } };
}

async function taskClaim(session: Session, args: Args): Promise<ToolAnswer> {
  const { self } = session;
  const taskId = String(args["task_id"]);
  const answer = await session.ask("POST", "task/claim", { task_id: taskId, node_id: self });
  return handedOut(session, recordOf(answer["task"]), "");
}

async function taskProgress(session: Session, args: Args): Promise<ToolAnswer> {
  const answer = await session.ask("POST", "task/extend", { ...given(args), node_id: session.self });
  return taskAnswer(session, answer, "Noted; the task stays yours.");
}

async function taskComplete(session: Session, args: Args): Promise<ToolAnswer> {
  const { task_id, problem, improvement, lesson } = args;
  const output = args["output"] === undefined ? {} : { output: session.exactArgument("output") };
  const result = { problem, improvement, lesson, ...output };
  const answer = await session.ask("POST", "task/complete", { task_id, node_id: session.self, result });
  const paid = answer["lux_paid"] === 0 ? "" : ` It paid ${answer["lux_paid"]} LUX.`;
  return { text: `Completed.${paid} Call task_next for the next task.`, data: answer };
}

/**
 * A repeat must not fail or release a later hand-out of the task to the same node: the epoch tells them apart. That of a
 * hand-out which was given back is one less than the task's, or the same when the task has failed with it.
 */
async function giveBack(
  session: Session,
  path: "task/fail" | "task/release",
  args: Args,
): Promise<ToolAnswer> {
  const { call, self } = session;
  const {
    taskId,
    status,
    assignedNode,
    epoch: current,
  } = await call.services.feed.task(String(args["task_id"]));
  const isHeld = status === "assigned" && assignedNode === self;
  const epoch = isHeld || status === "failed" ? current : current - 1;
  const repeats = { key: `${self}:${taskId}:${epoch}`, implicit: false };
  const answer = await session.ask("POST", path, { ...given(args), node_id: self, epoch }, repeats);
  const what = path === "task/fail" ? "Your attempt is recorded as failed." : "The task is free again.";
  return taskAnswer(session, { ...answer, repeated: false }, `${what} Call task_next for another task.`);
}

async function taskCreate(session: Session, args: Args): Promise<ToolAnswer> {
  const draft = { ...given(args), ...(session.nodeId === null ? {} : { creator_node: session.nodeId }) };
  const answer = await session.ask("POST", "task/create", draft, once(session, args));
  return taskAnswer(
    session,
    answer,
    `Created. task_get {task_id: "${answer["task_id"]}", wait_s: 25} waits for it.`,
  );
}

async function taskList(session: Session, args: Args): Promise<ToolAnswer> {
  const { limit: _, ...filter } = given(args);
  const query = { ...filter, per_page: String(countOf(args)) };
  const answer = await session.ask("GET", "task/list", query);
  const tasks = recordsOf(answer["tasks"]);
  const { next_cursor, total } = answer;
  const end = next_cursor === null ? [] : [`More: cursor ${next_cursor}`];
  const lines = [...tasks.map((task) => taskLine(task, session.nodeId)), ...end];
  const shown = tasks.map(({ description: _d, result: _r, ...task }) => compactTask(task));
  return {
    text: lines.length === 0 ? "No such tasks." : lines.join("\n"),
    data: compact({ tasks: shown, total, next_cursor }),
  };
}

async function taskGet(session: Session, args: Args): Promise<ToolAnswer> {
  const query = { task_id: args["task_id"], wait: String(waitOf(args)) };
  const task = recordOf((await session.ask("GET", "task/:task_id", query))["task"]);
  const isOver = task["status"] === "completed" || task["status"] === "failed";
  const text =
    waitOf(args) > 0 && !isOver
      ? `${taskText(task, session.nodeId)}\nIt has not ended yet: call again to wait on.`
      : taskText(task, session.nodeId);
  return { text, data: { task: compactTask(task) } };
}

/** Without a node in the request: an unbound key may cancel any task, and a bound one its own. */
async function taskCancel(session: Session, args: Args): Promise<ToolAnswer> {
  const taskId = String(args["task_id"]);
  const asked = { ...given(args), ...(session.nodeId === null ? {} : { node_id: session.nodeId }) };
  try {
    return taskAnswer(session, await session.ask("POST", "task/cancel", asked), "Cancelled.");
  } catch (error) {
    if (!(error instanceof Refused) || error.body["error"] !== "task_failed") throw error;
    const answer = await session.ask("GET", "task/:task_id", { task_id: taskId });
    if (recordOf(recordOf(answer["task"])["failure"])["kind"] !== "cancelled") throw error;
    return taskAnswer(session, answer, "It is cancelled already.");
  }
}

async function mailSend(session: Session, args: Args): Promise<ToolAnswer> {
  const draft = { ...given(args), from_node: session.self };
  const answer = await session.ask("POST", "message/send", draft, once(session, args));
  return { text: said(answer, `Sent to ${args["to_node"]} as ${answer["message_id"]}.`), data: answer };
}

const MOST_MAIL = { count: limit.MCP_MAIL_MAX, maxBytes: limit.MCP_MAIL_MAX_BYTES, after: null };

async function mailCheck({ call, self }: Session, args: Args): Promise<ToolAnswer> {
  const waitMs = waitOf(args) * SECOND_MS;
  const peek = (signal: AbortSignal) => call.services.messages.peek(self, MOST_MAIL, { waitMs, signal });
  const waiting = await (waitMs > 0 ? call.hold(peek) : peek(call.exchange.request.signal));
  const messages = waiting.map((delivery) => recordOf(encodeDelivery(delivery)));
  if (messages.length === 0) return { text: "No messages.", data: { messages: [] } };
  const end = "Call mail_ack with the message_ids that you have dealt with; more may wait behind them.";
  return { text: [...messages.map(messageText), end].join("\n\n"), data: { messages } };
}

async function mailAck(session: Session, args: Args): Promise<ToolAnswer> {
  const { self } = session;
  const ids = [...new Set(Array.isArray(args["message_ids"]) ? args["message_ids"].map(String) : [])];
  if (ids.length === 0 || ids.length > limit.MCP_ACKS_MAX) {
    const message = `must hold 1 to ${limit.MCP_ACKS_MAX}`;
    throw invalidRequest([{ path: "message_ids", message }]);
  }
  const refused: JsonObject[] = [];
  for (const messageId of ids) {
    try {
      await session.ask("POST", "message/ack", { node_id: self, message_id: messageId });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refused.push({ message_id: messageId, error: error.body["error"], detail: error.body["detail"] });
    }
  }
  const acked = ids.filter((id) => !refused.some((one) => one["message_id"] === id));
  const lines = [
    `Acknowledged: ${acked.length}.`,
    ...refused.map((one) => `${one["message_id"]}: ${one["detail"]}`),
  ];
  return { text: lines.join("\n"), data: compact({ acked, refused }) };
}
