/**
 * The tools: each with what a model reads of it, and the function that calls the endpoints. Arguments are named as the
 * fields of HTTP; the caller's node is never one. The list is part of every conversation of every agent, so each word
 * of it costs.
 *
 * Every tool may be called again with the same arguments when its result was lost: where the endpoint alone is not safe to
 * repeat, the call has a key for its repeats (once() of task-tools.ts), or the result says what has become of the task.
 */
import type { CallToolResult, Tool } from "@modelcontextprotocol/server";
import type { JsonObject } from "../http/json-body.ts";
import {
  ANY_JSON,
  type Args,
  BOOLEAN,
  INTEGER,
  NUMBER,
  type Properties,
  type Property,
  STRING,
  STRINGS,
  readArguments,
} from "./arguments.ts";
import { getFile, putFile } from "./files.ts";
import { mailAck, mailCheck, mailSend } from "./mail-tools.ts";
import { hubStatus, nodeList, nodeUpdate } from "./node-tools.ts";
import { refusalOf } from "./refusals.ts";
import { type ToolResult, formsOf } from "./result.ts";
import type { Session } from "./session.ts";
import { taskAnswer, taskAsk } from "./question-tools.ts";
import { LEASE_ACTIONS, NOTE_ACTIONS, lease, note } from "./share-tools.ts";
import {
  taskCancel,
  taskComplete,
  taskCreate,
  taskFail,
  taskGet,
  taskList,
  taskNext,
  taskProgress,
  taskRelease,
  taskRetry,
  taskWait,
} from "./task-tools.ts";

type Declared = {
  readonly description: string;
  readonly properties: Properties;
  readonly required?: readonly string[];
  /** It changes nothing but the lease of its node. */
  readonly readOnly?: true;
  /** What it ends cannot be had back. */
  readonly destructive?: true;
  readonly run: (session: Session, args: Args, beat: JsonObject | null) => Promise<ToolResult>;
};

const WAIT = { type: "number", description: "At most 50" } as const;
const PRIORITY: Property = { type: "string", enum: ["high", "medium", "low", "p5"] };
const TASK_ID = { task_id: STRING } as const;
/** One report; task_progress says of what. */
const USAGE = { usage: { type: "object" } } as const;
const PAGE = { limit: INTEGER, cursor: STRING } as const;

const TOOLS = {
  hub_status: {
    description: "Says who you are, what waits for you, and how the hub is.",
    properties: {},
    readOnly: true,
    run: hubStatus,
  },
  node_list: {
    description:
      "Lists the nodes (workers), what each takes and holds. capability: who takes this task_type.",
    properties: { online: BOOLEAN, capability: STRING, ...PAGE },
    readOnly: true,
    run: nodeList,
  },
  node_update: {
    description:
      "Changes your profile: the task types you take (none: all), whether the hub may assign you tasks unasked, drain: " +
      "nothing new for you.",
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
      "Gives you your next task, yours alone until you complete, fail or release it. Repeats your task until you " +
      "end it or call task_progress. task_types narrows your capabilities. task_id: this open task. For " +
      "results of tasks that you created use task_wait.",
    properties: { wait_s: WAIT, task_types: STRINGS, ...TASK_ID },
    run: taskNext,
  },
  task_progress: {
    description:
      "Restarts the time limit of your task; its creator sees the note. Call it every few minutes. checkpoint: what the " +
      "next worker needs if you do not finish. usage: what it cost, {seq: 1, 2, …, model, input_tokens, output_tokens, " +
      "cost_usd?}.",
    properties: { ...TASK_ID, note: STRING, checkpoint: ANY_JSON, ...USAGE },
    required: ["task_id", "note"],
    run: taskProgress,
  },
  task_ask: {
    description:
      "Asks a person about your task, and waits. No answer yet: call again, or park: the task goes back until then.",
    properties: {
      ...TASK_ID,
      question: STRING,
      choices: STRINGS,
      park: BOOLEAN,
      wait_s: NUMBER,
    },
    required: ["task_id", "question"],
    run: taskAsk,
  },
  task_answer: {
    description: "Answers a question about a task (task_get shows it).",
    properties: { ...TASK_ID, question_id: STRING, answer: ANY_JSON },
    required: ["task_id", "question_id", "answer"],
    run: taskAnswer,
  },
  task_complete: {
    description:
      "Ends your task. problem: what was asked. improvement: what you did, and the answer in words. lesson: what the next " +
      'worker should know, or "none". output: the answer as data (any JSON, 64 KiB). Files first: file_put with task_id.',
    properties: {
      ...TASK_ID,
      problem: STRING,
      improvement: STRING,
      lesson: STRING,
      output: ANY_JSON,
      ...USAGE,
    },
    required: ["task_id", "problem", "improvement", "lesson"],
    run: taskComplete,
  },
  task_fail: {
    description:
      "Your attempt failed, and why. It is tried again, unless retry is false or its attempts are used up.",
    properties: { ...TASK_ID, error: STRING, retry: BOOLEAN, ...USAGE },
    required: ["task_id", "error"],
    run: taskFail,
  },
  task_release: {
    description: "Gives your task back untried; another node takes it.",
    properties: { ...TASK_ID, reason: STRING, ...USAGE },
    required: ["task_id"],
    run: taskRelease,
  },
  task_create: {
    description:
      "Creates a task for another node. Write it for a worker that knows nothing else. node_id: only this online " +
      "node gets it. task_type: only nodes that take it (node_list). priority: medium unless set, p5 last. " +
      "depends_on: task_ids to complete first; their results go with it. files: file_ids of file_put. timeout_s: how " +
      "long a worker may be silent (else a dead one may hold it for 15 min); max_run_s: how long it may take.",
    properties: {
      title: STRING,
      description: STRING,
      node_id: STRING,
      task_type: STRING,
      priority: PRIORITY,
      depends_on: STRINGS,
      files: STRINGS,
      timeout_s: NUMBER,
      max_run_s: NUMBER,
      delay_s: NUMBER,
      max_attempts: INTEGER,
      lux_reward: NUMBER,
      key: STRING,
    },
    required: ["title", "description"],
    run: taskCreate,
  },
  task_list: {
    description:
      "Lists tasks, newest first, without results (task_get). node_id: held by that node; creator_node: created by it; " +
      '"me" is you; q: words of the title. lessons: what their workers learned, by task_type and q.',
    properties: {
      lessons: BOOLEAN,
      status: { type: "string", enum: ["open", "assigned", "completed", "failed"] },
      node_id: STRING,
      creator_node: STRING,
      task_type: STRING,
      q: STRING,
      ...PAGE,
    },
    readOnly: true,
    run: taskList,
  },
  task_get: {
    description:
      "Shows one task with description, progress, result, failure. wait_s: until it has ended. part with offset reads on " +
      "in what was cut.",
    properties: { ...TASK_ID, wait_s: WAIT, part: STRING, offset: INTEGER },
    required: ["task_id"],
    readOnly: true,
    run: taskGet,
  },
  task_wait: {
    description: "Waits until all (or any) of up to 50 tasks have ended, and shows their results.",
    properties: { task_ids: STRINGS, until: { type: "string", enum: ["all", "any"] }, wait_s: WAIT },
    required: ["task_ids"],
    readOnly: true,
    run: taskWait,
  },
  task_retry: {
    description: "Opens a failed task again; with_dependents: and what failed because of it.",
    properties: { ...TASK_ID, with_dependents: BOOLEAN },
    required: ["task_id"],
    run: taskRetry,
  },
  task_cancel: {
    description: "Ends an unfinished task: it has failed, and its worker must drop it.",
    properties: { ...TASK_ID, reason: STRING },
    required: ["task_id"],
    destructive: true,
    run: taskCancel,
  },
  mail_send: {
    description:
      'Sends a message. to_node: a node, or "*": all online; capability: all that take this task_type; ' +
      "reply_to: the message_id that you answer. For work use task_create. require_ack: " +
      "mail_check {message_id} shows whether it was acknowledged.",
    properties: {
      to_node: STRING,
      capability: STRING,
      reply_to: STRING,
      thread: STRING,
      content: STRING,
      require_ack: BOOLEAN,
      key: STRING,
    },
    required: ["content"],
    run: mailSend,
  },
  mail_check: {
    description:
      "Shows the messages that wait for you, oldest first, until you mail_ack them. all, or thread " +
      "(one conversation): what you sent and got, newest first, with its state (parked: never acknowledged). message_id with " +
      "offset: one message.",
    properties: { wait_s: WAIT, all: BOOLEAN, thread: STRING, ...PAGE, message_id: STRING, offset: INTEGER },
    readOnly: true,
    run: mailCheck,
  },
  mail_ack: {
    description: "Removes messages that you have dealt with from your mailbox.",
    properties: { message_ids: STRINGS },
    required: ["message_ids"],
    run: mailAck,
  },
  file_put: {
    description:
      "Stores a file (64 KiB); task_id attaches it to that task. For a larger one leave content out: you get an upload URL.",
    properties: {
      name: STRING,
      content: STRING,
      encoding: { type: "string", enum: ["text", "base64"] },
      ...TASK_ID,
      key: STRING,
    },
    required: ["name"],
    run: putFile,
  },
  file_get: {
    description:
      "Reads a file: a text in parts (offset), anything else by a URL that needs no key. Without file_id: lists the files " +
      "(of task_id).",
    properties: { file_id: STRING, offset: INTEGER, ...TASK_ID, ...PAGE },
    readOnly: true,
    run: getFile,
  },
  note: {
    description:
      "Shared memory of all nodes: short texts by key. put: if_version writes only if the note has that version (0: " +
      "none). search: text are its words. list, search: key is a prefix.",
    properties: {
      action: { type: "string", enum: NOTE_ACTIONS },
      key: STRING,
      text: STRING,
      if_version: INTEGER,
      offset: INTEGER,
      ...PAGE,
    },
    required: ["action"],
    run: note,
  },
  lease: {
    description:
      "Keeps others away from what you work on: acquire a name or paths (src/**, relative to the repository) " +
      "before you edit, release after. It ends with your task task_id, or after ttl_s (300).",
    properties: {
      action: { type: "string", enum: LEASE_ACTIONS },
      name: STRING,
      ...TASK_ID,
      ttl_s: NUMBER,
      shared: BOOLEAN,
      cursor: STRING,
    },
    required: ["action"],
    run: lease,
  },
} satisfies Readonly<Record<string, Declared>>;

type ToolName = keyof typeof TOOLS;

export function hasTool(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}

/**
 * As the agents get it, always in this order. A client that finds a hint missing takes the worst: it would ask its user
 * before each call, or refuse it.
 */
export const TOOL_LIST: readonly Tool[] = Object.entries<Declared>(TOOLS).map(([name, tool]) => ({
  name,
  description: tool.description,
  inputSchema: {
    type: "object",
    properties: { ...tool.properties },
    ...(tool.required ? { required: [...tool.required] } : {}),
  },
  annotations: {
    readOnlyHint: tool.readOnly === true,
    destructiveHint: tool.destructive === true,
    idempotentHint: true,
    openWorldHint: false,
  },
}));

/** Runs a tool. A refusal is a result with `isError`, which says what to do next. */
export async function callTool(session: Session, name: ToolName, args: Args): Promise<CallToolResult> {
  const tool: Declared = TOOLS[name];
  try {
    const asked = readArguments(tool.properties, tool.required ?? [], args);
    const beat = await session.beat();
    const { text, structured } = formsOf(await tool.run(session, asked, beat));
    return { content: [{ type: "text", text }], structuredContent: { ...structured } };
  } catch (error) {
    const { text, structured } = refusalOf(session, name, error);
    return { isError: true, content: [{ type: "text", text }], structuredContent: { ...structured } };
  }
}
