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
  STRING,
  STRINGS,
  named,
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
  /** The names of its arguments; a star marks the required ones. */
  readonly args: string;
  /** Arguments that are something else than in the other tools. */
  readonly own?: Properties;
  /** It changes nothing but the lease of its node. */
  readonly readOnly?: true;
  /** What it ends cannot be had back. */
  readonly destructive?: true;
  readonly run: (session: Session, args: Args, beat: JsonObject | null) => Promise<ToolResult>;
};

/** What an argument is, in every tool that has it; the others are strings. */
const ARGUMENTS: Properties = {
  ...named(BOOLEAN, "online auto_assign drain park retry lessons with_dependents require_ack all shared"),
  ...named(INTEGER, "limit offset max_tasks max_attempts if_version"),
  ...named(NUMBER, "timeout_s max_run_s delay_s lux_reward ttl_s"),
  ...named(STRINGS, "capabilities task_types choices depends_on files task_ids message_ids"),
  ...named(ANY_JSON, "checkpoint answer output"),
  wait_s: { type: "number", description: "At most 50" },
  priority: { type: "string", enum: ["high", "medium", "low", "p5"] },
  status: { type: "string", enum: ["open", "assigned", "completed", "failed"] },
  until: { type: "string", enum: ["all", "any"] },
  encoding: { type: "string", enum: ["text", "base64"] },
  /** One report; task_progress says of what. */
  usage: { type: "object" },
};

const TOOLS = {
  hub_status: {
    description: "Says who you are, what waits for you, and how the hub is.",
    args: "",
    readOnly: true,
    run: hubStatus,
  },
  node_list: {
    description:
      "Lists the nodes (workers), what each takes and holds. capability: who takes this task_type.",
    args: "online capability limit cursor",
    readOnly: true,
    run: nodeList,
  },
  node_update: {
    description:
      "Changes your profile: the task types you take (none: all), whether the hub may assign you tasks unasked, drain: " +
      "nothing new for you.",
    args: "name capabilities max_tasks auto_assign drain",
    run: nodeUpdate,
  },
  task_next: {
    description:
      "Gives you your next task, yours alone until you complete, fail or release it. Repeats your task until you " +
      "end it or call task_progress. task_types narrows your capabilities. task_id: this open task. For " +
      "results of tasks that you created use task_wait.",
    args: "wait_s task_types task_id",
    run: taskNext,
  },
  task_progress: {
    description:
      "Restarts the time limit of your task; its creator sees the note. Call it every few minutes. checkpoint: what the " +
      "next worker needs if you do not finish. usage: what it cost, {seq: 1, 2, …, model, input_tokens, output_tokens, " +
      "cost_usd?}.",
    args: "task_id* note* checkpoint usage",
    run: taskProgress,
  },
  task_ask: {
    description:
      "Asks a person about your task, and waits. No answer yet: call again, or park: the task goes back until then.",
    args: "task_id* question* choices park wait_s",
    own: { wait_s: NUMBER },
    run: taskAsk,
  },
  task_answer: {
    description: "Answers a question about a task (task_get shows it).",
    args: "task_id* question_id* answer*",
    run: taskAnswer,
  },
  task_complete: {
    description:
      "Ends your task. problem: what was asked. improvement: what you did, and the answer in words. lesson: what the next " +
      'worker should know, or "none". output: the answer as data (any JSON, 64 KiB). Files first: file_put with task_id.',
    args: "task_id* problem* improvement* lesson* output usage",
    run: taskComplete,
  },
  task_fail: {
    description:
      "Your attempt failed, and why. It is tried again, unless retry is false or its attempts are used up.",
    args: "task_id* error* retry usage",
    run: taskFail,
  },
  task_release: {
    description: "Gives your task back untried; another node takes it.",
    args: "task_id* reason usage",
    run: taskRelease,
  },
  task_create: {
    description:
      "Creates a task for another node. Write it for a worker that knows nothing else. node_id: only this online " +
      "node gets it. task_type: only nodes that take it (node_list). priority: medium unless set, p5 last. " +
      "depends_on: task_ids to complete first; their results go with it. files: file_ids of file_put. timeout_s: how " +
      "long a worker may be silent (else a dead one may hold it for 15 min); max_run_s: how long it may take.",
    args: "title* description* node_id task_type priority depends_on files timeout_s max_run_s delay_s max_attempts lux_reward key",
    run: taskCreate,
  },
  task_list: {
    description:
      "Lists tasks, newest first, without results (task_get). node_id: held by that node; creator_node: created by it; " +
      '"me" is you; q: words of the title. lessons: what their workers learned, by task_type and q.',
    args: "lessons status node_id creator_node task_type q limit cursor",
    readOnly: true,
    run: taskList,
  },
  task_get: {
    description:
      "Shows one task with description, progress, result, failure. wait_s: until it has ended. part with offset reads on " +
      "in what was cut.",
    args: "task_id* wait_s part offset",
    readOnly: true,
    run: taskGet,
  },
  task_wait: {
    description: "Waits until all (or any) of up to 50 tasks have ended, and shows their results.",
    args: "task_ids* until wait_s",
    readOnly: true,
    run: taskWait,
  },
  task_retry: {
    description: "Opens a failed task again; with_dependents: and what failed because of it.",
    args: "task_id* with_dependents",
    run: taskRetry,
  },
  task_cancel: {
    description: "Ends an unfinished task: it has failed, and its worker must drop it.",
    args: "task_id* reason",
    destructive: true,
    run: taskCancel,
  },
  mail_send: {
    description:
      'Sends a message. to_node: a node, or "*": all online; capability: all that take this task_type; ' +
      "reply_to: the message_id that you answer. For work use task_create. require_ack: " +
      "mail_check {message_id} shows whether it was acknowledged.",
    args: "to_node capability reply_to thread content* require_ack key",
    run: mailSend,
  },
  mail_check: {
    description:
      "Shows the messages that wait for you, oldest first, until you mail_ack them. all, or thread " +
      "(one conversation): what you sent and got, newest first, with its state (parked: never acknowledged). message_id with " +
      "offset: one message.",
    args: "wait_s all thread limit cursor message_id offset",
    readOnly: true,
    run: mailCheck,
  },
  mail_ack: {
    description: "Removes messages that you have dealt with from your mailbox.",
    args: "message_ids*",
    run: mailAck,
  },
  file_put: {
    description:
      "Stores a file (64 KiB); task_id attaches it to that task. For a larger one leave content out: you get an upload URL.",
    args: "name* content encoding task_id key",
    run: putFile,
  },
  file_get: {
    description:
      "Reads a file: a text in parts (offset), anything else by a URL that needs no key. Without file_id: lists the files " +
      "(of task_id).",
    args: "file_id offset task_id limit cursor",
    readOnly: true,
    run: getFile,
  },
  note: {
    description:
      "Shared memory of all nodes: short texts by key. put: if_version writes only if the note has that version (0: " +
      "none). search: text are its words. list, search: key is a prefix.",
    args: "action* key text if_version offset limit cursor",
    own: { action: { type: "string", enum: NOTE_ACTIONS } },
    run: note,
  },
  lease: {
    description:
      "Keeps others away from what you work on: acquire a name or paths (src/**, relative to the repository) " +
      "before you edit, release after. It ends with your task task_id, or after ttl_s (300).",
    args: "action* name task_id ttl_s shared cursor",
    own: { action: { type: "string", enum: LEASE_ACTIONS } },
    run: lease,
  },
} satisfies Readonly<Record<string, Declared>>;

export type ToolName = keyof typeof TOOLS;

export function hasTool(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}

function schemaOf({ args, own = {} }: Declared) {
  const names = args.split(" ").filter((name) => name !== "");
  const properties = names.map((form) => {
    const name = form.replace("*", "");
    return [name, own[name] ?? ARGUMENTS[name] ?? STRING] as const;
  });
  const required = names.flatMap((name) => (name.endsWith("*") ? [name.slice(0, -1)] : []));
  return { properties: Object.fromEntries(properties), required };
}

/**
 * As the agents get it, always in this order. A client that finds a hint missing takes the worst: it would ask its user
 * before each call, or refuse it.
 */
export const TOOL_LIST: readonly Tool[] = Object.entries<Declared>(TOOLS).map(([name, tool]) => {
  const { properties, required } = schemaOf(tool);
  return {
    name,
    description: tool.description,
    inputSchema: { type: "object", properties, ...(required.length > 0 && { required }) },
    annotations: {
      readOnlyHint: tool.readOnly === true,
      destructiveHint: tool.destructive === true,
      idempotentHint: true,
      openWorldHint: false,
    },
  };
});

/** Runs a tool. A refusal is a result with `isError`, which says what to do next. */
export async function callTool(session: Session, name: ToolName, args: Args): Promise<CallToolResult> {
  const tool: Declared = TOOLS[name];
  try {
    const { properties, required } = schemaOf(tool);
    const given = readArguments(properties, required, args);
    const beat = await session.beat();
    const { text, structured } = formsOf(await tool.run(session, given, beat));
    return { content: [{ type: "text", text }], structuredContent: { ...structured } };
  } catch (error) {
    const { text, structured } = refusalOf(session, name, error);
    return { isError: true, content: [{ type: "text", text }], structuredContent: { ...structured } };
  }
}
