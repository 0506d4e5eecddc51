/**
 * The tools: each with what a model reads of it, and the function that calls the endpoints. Arguments are named as the
 * fields of HTTP; the caller's node is never one. The list is part of every conversation of every agent, so each word
 * of it costs.
 *
 * Every tool may be called again with the same arguments when its result was lost: where the endpoint alone is not safe to
 * repeat, the call has a key for its repeats (once() of session.ts), or the result says what has become of the task.
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
import { type ToolResult, shownResult } from "./result.ts";
import type { Session } from "./session.ts";
import { plural, recordOf, sentences } from "./shapes.ts";
import { taskAnswer, taskAsk } from "./question-tools.ts";
import { LEASE_ACTIONS, NOTE_ACTIONS, lease, note } from "./share-tools.ts";
import * as taskTools from "./task-tools.ts";

type Declared = {
  readonly description: string;
  /** The names of its arguments: a star marks the required ones, a plus those that are unless `tasks` is sent. */
  readonly args: string;
  /** Arguments that are something else than in the other tools. */
  readonly own?: Properties;
  /** Words for the search of Claude Code that its description lacks. */
  readonly hint?: string;
  readonly run: (session: Session, args: Args, beat: JsonObject | null) => Promise<ToolResult>;
};

/** What an argument is, in every tool that has it; the others are strings. */
const ARGUMENTS: Properties = {
  ...named(BOOLEAN, "online auto_assign drain park retry lessons with_dependents require_ack all shared"),
  ...named(INTEGER, "limit offset max_tasks max_attempts if_version"),
  ...named(NUMBER, "timeout_s max_run_s delay_s lux_reward max_cost_usd ttl_s wait_s"),
  ...named(STRINGS, "capabilities task_types choices depends_on files task_ids message_ids tags"),
  ...named({ anyOf: [{ type: "object" }, STRING] }, "checkpoint answer"), // any JSON is taken
  output: ANY_JSON,
  priority: { type: "string", enum: ["high", "medium", "low", "p5"] },
  status: { type: "string", enum: ["open", "assigned", "completed", "failed", "in_review", "cancelled"] },
  until: { type: "string", enum: ["all", "any"] },
  verdict: { type: "string", enum: ["pass", "reject"] },
  encoding: { type: "string", enum: ["text", "base64"] },
  requires: { type: "object", properties: { capabilities: STRINGS } },
  tasks: { type: "array", items: { type: "object", properties: named(STRING, "ref title description") } },
};

/** They change nothing but the lease of their node. */
const READ_ONLY = ["hub_status", "node_list", "task_list", "task_get", "task_wait", "mail_check", "file_get"];
/** Claude Code shows them without a search. */
const CORE = [
  "task_next",
  "task_progress",
  "task_complete",
  "task_create",
  "task_wait",
  "mail_send",
  "mail_check",
];
/** They also take `usage`, of programs that know it. A model does not know what it uses, and would invent it. */
const REPORTS = ["task_progress", "task_complete", "task_fail", "task_release"];

const TASK_ARGS =
  "title+ description+ node_id task_type priority depends_on files timeout_s max_run_s delay_s max_attempts lux_reward max_cost_usd review group tags requires unique_key";

const TOOLS = {
  hub_status: {
    description: "Says who you are, what waits for you, and how the hub is.",
    args: "",
    run: hubStatus,
  },
  node_list: {
    description: "Lists the nodes (agents), what each takes and holds. capability: who takes this task_type.",
    args: "online capability limit cursor",
    run: nodeList,
  },
  node_update: {
    description:
      "Changes your profile: the task types you take (none: all), auto_assign: the hub may assign you tasks, drain: nothing new.",
    args: "name capabilities max_tasks auto_assign drain",
    run: nodeUpdate,
  },
  task_next: {
    description:
      "Claims your next task (work) from the queue, yours alone until you end it. Repeats it until then, or until task_progress. task_types narrows your capabilities. task_id: this open task. For results of your subtasks: task_wait.",
    args: "wait_s task_types task_id",
    run: taskTools.taskNext,
  },
  task_progress: {
    description:
      "Reports progress on your task (note) and restarts its time limit. Call it every few minutes. checkpoint: what the next worker needs if you do not finish.",
    args: "task_id* note* checkpoint",
    run: taskTools.taskProgress,
  },
  task_ask: {
    description:
      "Asks a human (person) a question about your task, and waits. No answer yet: call again, or park the task until then.",
    args: "task_id* question* choices park wait_s",
    run: taskAsk,
  },
  task_answer: {
    description: "Answers a question about a task (task_get shows it).",
    args: "task_id* question_id* answer*",
    run: taskAnswer,
  },
  task_complete: {
    description:
      'Finishes your task with its result. problem: what was asked. improvement: what you did, and the answer in words. lesson: what the next worker should know, or "none". output: the answer as data (any JSON, 64 KiB). Files first: file_put with task_id.',
    args: "task_id* problem* improvement* lesson* output",
    run: taskTools.taskComplete,
  },
  task_fail: {
    description:
      "Your attempt failed, and why. It is tried again, unless retry is false or no attempt is left.",
    args: "task_id* error* retry",
    run: taskTools.taskFail,
  },
  task_release: {
    description: "Gives your task back untried; not offered to you for 10 minutes.",
    args: "task_id* reason",
    run: taskTools.taskRelease,
  },
  task_create: {
    description:
      'Creates a task (subtask) for another agent. Write it for a worker that knows nothing else. node_id: only for that one, online. task_type: only nodes that take it (node_list). depends_on: task_ids it needs, whose results go with it. files: input file_ids. timeout_s: how long a worker may be silent (else 15 min). max_cost_usd: its budget. review: who checks the result: "creator", "node:ID" or "capability:WORD". tasks: up to 50 at once, each with these arguments and a ref for depends_on of later ones.',
    args: `${TASK_ARGS} tasks key`,
    run: (session, args) => taskTools.taskCreate(session, withTasksRead(args)),
  },
  task_list: {
    description:
      'Lists tasks, newest first; results: task_get. node_id holds, creator_node created them; "me" is you; q: title words; held: by a code of hub_status. lessons: learned, by task_type, q.',
    args: "lessons status held node_id creator_node task_type group tag q limit cursor",
    run: taskTools.taskList,
  },
  task_get: {
    description:
      "Shows one task with description, progress, result, failure. wait_s: until it has ended. part, offset: reads on in what was cut.",
    args: "task_id* wait_s part offset",
    run: taskTools.taskGet,
  },
  task_wait: {
    description: "Waits for the results of tasks (subtasks): until all (or any) of up to 50 have ended.",
    args: "task_ids* until wait_s",
    run: taskTools.taskWait,
  },
  task_review: {
    description:
      "Reviews a result: pass or reject it; note: what is wrong. Without task_id: lists what waits for review.",
    args: "task_id verdict note",
    run: taskTools.taskReview,
  },
  task_retry: {
    description: "Opens a failed task again; with_dependents: and what failed because of it.",
    args: "task_id* with_dependents",
    run: taskTools.taskRetry,
  },
  task_cancel: {
    description: "Ends an unfinished task as failed; its worker drops it.",
    args: "task_id* reason",
    run: taskTools.taskCancel,
  },
  mail_send: {
    description:
      'Sends a message (mail) to another agent. to_node: a node, or "*": all online; capability: all that take this task_type; reply_to: the message_id that you answer. Work: task_create. require_ack: mail_check {message_id} shows its state.',
    args: "to_node capability reply_to thread content* require_ack key",
    run: mailSend,
  },
  mail_check: {
    description:
      "Shows the messages (mail) that wait for you, until you mail_ack them. all, or thread: what you sent and got, newest first, with its state. message_id with offset: one message.",
    args: "wait_s all thread limit cursor message_id offset",
    run: mailCheck,
  },
  mail_ack: {
    description: "Removes messages (mail) from your mailbox.",
    args: "message_ids*",
    run: mailAck,
  },
  file_put: {
    description: "Stores a file (64 KiB); task_id attaches it to that task. Without content: an upload URL.",
    args: "name* content encoding task_id key",
    run: putFile,
  },
  file_get: {
    description:
      "Reads a file: a text in parts (offset), anything else by a URL. Without file_id: lists files (of task_id).",
    args: "file_id offset task_id limit cursor",
    run: getFile,
  },
  note: {
    description:
      "Shared memory of all nodes: short texts by key. put: if_version writes only if the note has that version (0: none). search: notes that have all the words of text. list, search: key is a prefix.",
    args: "action* key text if_version offset limit cursor",
    own: { action: { type: "string", enum: NOTE_ACTIONS } },
    run: note,
  },
  lease: {
    description:
      "Locks names or paths (src/** for a directory) against edits by other agents: acquire before you edit, release after. With task_id: until that task ends; else ttl_s (300).",
    args: "action* name task_id ttl_s shared cursor",
    own: { action: { type: "string", enum: LEASE_ACTIONS } },
    hint: "lock file path directory before edit, avoid conflict",
    run: lease,
  },
} satisfies Readonly<Record<string, Declared>>;

export type ToolName = keyof typeof TOOLS;

export function hasTool(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}

function schemaOf({ args, own = {} }: Pick<Declared, "args" | "own">) {
  const forms = args.split(" ").filter((form) => form !== "");
  const properties = forms.map((form) => {
    const name = form.replace(/[*+]/, "");
    return [name, own[name] ?? ARGUMENTS[name] ?? STRING] as const;
  });
  const marked = (mark: string) => forms.flatMap((form) => (form.endsWith(mark) ? [form.slice(0, -1)] : []));
  const [required, unlessTasks] = [marked("*"), marked("+")];
  return { properties: Object.fromEntries(properties), required, unlessTasks };
}

const TASK = schemaOf({ args: `ref ${TASK_ARGS}` });

/** Each of the tasks of task_create with its arguments as they are read. */
function withTasksRead({ tasks, ...args }: Args): Args {
  if (!Array.isArray(tasks)) return args;
  return {
    ...args,
    tasks: tasks.map((task: unknown, i) => readArguments(TASK.properties, [], recordOf(task), `tasks.${i}.`)),
  };
}

/**
 * As the agents get it, always in this order. A client that finds a hint missing takes the worst: it would ask its user
 * before each call, or refuse it.
 */
export const TOOL_LIST: readonly Tool[] = Object.entries<Declared>(TOOLS).map(([name, tool]) => {
  const { properties, required } = schemaOf(tool);
  const meta = {
    ...(CORE.includes(name) && { "anthropic/alwaysLoad": true }),
    ...(tool.hint !== undefined && { "anthropic/searchHint": tool.hint }),
  };
  return {
    name,
    description: tool.description,
    inputSchema: { type: "object", properties, ...(required.length > 0 && { required }) },
    annotations: {
      readOnlyHint: READ_ONLY.includes(name),
      destructiveHint: name === "task_cancel", // what it ends cannot be had back
      idempotentHint: true,
      openWorldHint: false,
    },
    ...(Object.keys(meta).length > 0 && { _meta: meta }),
  };
});

/** Runs a tool. A refusal is a result with `isError`, which says what to do next. */
export async function callTool(session: Session, name: ToolName, args: Args): Promise<CallToolResult> {
  const tool: Declared = TOOLS[name];
  try {
    const { properties, required, unlessTasks } = schemaOf(tool);
    const needed = args["tasks"] == null ? [...required, ...unlessTasks] : required;
    const isReport = REPORTS.includes(name);
    const given = readArguments(isReport ? { ...properties, usage: ANY_JSON } : properties, needed, args);
    const beat = await session.beat();
    const result = await tool.run(session, given, beat);
    if (!isReport && name !== "task_next") return resultOf(result);
    const waiting = Number(beat?.["messages_waiting"] ?? 0); // its caller works, and may look nowhere else
    const mail = `${plural(waiting, "message")} ${waiting === 1 ? "waits" : "wait"}: mail_check.`;
    return resultOf({ ...result, say: sentences(result.say, waiting > 0 && mail) });
  } catch (error) {
    return { isError: true, ...resultOf(refusalOf(session, name, error)) };
  }
}

function resultOf(result: ToolResult): CallToolResult {
  const structuredContent = shownResult(result);
  return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
}
