/** The tools about tasks: those of a worker, and those of a creator. */
import { encodeTask } from "../api/response-schemas.ts";
import { hashJson } from "../api/idempotency.ts";
import {
  MCP_LINE_MAX_CHARS,
  MCP_LIST_DEFAULT,
  MCP_LIST_MAX,
  MCP_WAITED_MAX,
  MCP_WAITED_RESULTS_MAX,
  MCP_WAIT_MAX_SECONDS,
} from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import { invalidRequest } from "../http/problem.ts";
import { type Args, countOf, textOf, textsOf } from "./arguments.ts";
import { listed, pageThatFits } from "./pages.ts";
import { Foreign, type ToolResult, brief } from "./result.ts";
import { Refused, type Session } from "./session.ts";
import {
  TASK_PARTS,
  firstLines,
  isRecord,
  lessonRow,
  partText,
  plural,
  recordOf,
  recordsOf,
  taskDetail,
  taskRow,
  waitedRow,
} from "./shapes.ts";

/** An identical call within MCP_REPEAT_WINDOW_MS is a repeat, unless its `key` differs. */
export function once({ nodeId }: Session, args: Args) {
  return { key: `${nodeId ?? ""}:${hashJson(args)}`, implicit: true };
}

export const REPEATED =
  "You made this very call before: this is its result, and nothing was done again. To do it again on purpose, add key. ";

// ---- For a worker

const END_IT = "End it with task_complete, task_fail or task_release.";
const IT_IS_YOURS = `This task is yours. ${END_IT}`;
const AGAIN = `You hold this task, and have said nothing of it yet. ${END_IT} For another one besides, call task_progress for it first.`;

export async function taskNext(session: Session, args: Args, beat: JsonObject | null): Promise<ToolResult> {
  const drain = beat?.["drain"] === true;
  if (args["task_id"] !== undefined) return taskClaim(session, args, drain);
  const { call, self } = session;
  const held = await call.services.next.unacknowledged(self);
  if (held !== null) return handedOut(session, recordOf(encodeTask(held, call.variant, call.at)), drain);
  const request = { node_id: self, wait: session.waitFor(args["wait_s"]), task_types: args["task_types"] };
  const answer = await session.ask("POST", "task/next", request);
  if (isRecord(answer["task"])) {
    const task = taskDetail(answer["task"], answer["context"]);
    return { say: IT_IS_YOURS, task, drain: answer["drain"] };
  }
  return noTask(session, textsOf(args["task_types"]));
}

async function noTask({ call, self }: Session, asked: readonly string[]): Promise<ToolResult> {
  const node = await call.services.nodes.get(self);
  const { capabilities: takes, draining: drain, maxTasks, tasksAssigned } = node;
  const others = await call.services.next.notTaken(node, asked.length === 0 ? null : asked);
  const fields = {
    task: null,
    drain,
    ...firstLines("takes", takes),
    ...firstLines("asked", asked),
    others: others.map((type) => (type === "" ? "(no type)" : brief(type, MCP_LINE_MAX_CHARS))),
  };
  const untaken = takes.length === 0 ? [] : asked.filter((type) => !takes.includes(type));
  if (drain) return { say: "No task: you drain, so you get nothing new. Finish what you hold.", ...fields };
  if (maxTasks !== null && tasksAssigned >= maxTasks) {
    const say = `No task: you hold ${plural(tasksAssigned, "task")}, and your max_tasks is ${maxTasks}. End one first.`;
    return { say, ...fields };
  }
  const hints = [
    untaken.length === 0 ? [] : ["You asked for types that are not among your capabilities (takes)."],
    others.length === 0
      ? []
      : ["Tasks of other types wait (others): leave task_types out, or node_update {capabilities}."],
  ].flat();
  const again = `Call task_next with wait_s: ${MCP_WAIT_MAX_SECONDS} to wait for one, or stop.`;
  return { say: ["No task for you now.", ...hints, again].join(" "), ...fields };
}

async function handedOut(session: Session, task: JsonObject, drain: boolean): Promise<ToolResult> {
  const query = { task_id: task["task_id"], context: "1" };
  const { context } = await session.ask("GET", "task/:task_id", query);
  return { say: AGAIN, task: taskDetail(task, context), drain };
}

async function taskClaim(session: Session, args: Args, drain: boolean): Promise<ToolResult> {
  const answer = await session.ask("POST", "task/claim", { task_id: args["task_id"], node_id: session.self });
  return { say: IT_IS_YOURS, task: taskDetail(recordOf(answer["task"]), answer["context"]), drain };
}

export async function taskProgress(session: Session, args: Args): Promise<ToolResult> {
  const { task_id, note } = args;
  const saved = args["checkpoint"] === undefined ? {} : { checkpoint: session.exactArgument("checkpoint") };
  const request = { task_id, note, ...saved, ...usageOf(args), node_id: session.self };
  const answer = await session.ask("POST", "task/extend", request);
  const task = rowOf(answer);
  const { budget_left_usd } = answer;
  if (task["status"] === "failed")
    return { say: "The task has cost more than it may, and has failed: drop it.", task, budget_left_usd };
  const { expires_at } = recordOf(answer["lease"]);
  const until = expires_at === null ? "" : " Its time limit (expires_at) started again.";
  const budget = budget_left_usd === null ? "" : ` It may cost ${Number(budget_left_usd)} USD more.`;
  return { say: `Noted; the task stays yours.${until}${budget}`, task, expires_at, budget_left_usd };
}

/** HTTP takes a list of reports. */
function usageOf({ usage }: Args): JsonObject {
  if (usage === undefined) return {};
  return { usage: Array.isArray(usage) ? usage : [usage] };
}

export async function taskComplete(session: Session, args: Args): Promise<ToolResult> {
  const { task_id, problem, improvement, lesson } = args;
  const output = args["output"] === undefined ? {} : { output: session.exactArgument("output") };
  const result = { problem, improvement, lesson, ...output };
  const request = { task_id, node_id: session.self, result, ...usageOf(args) };
  const answer = await session.ask("POST", "task/complete", request);
  const { status, lux_paid, lux_held } = answer;
  const waits = lux_held === undefined ? "" : " The result waits for its review.";
  return { say: `Completed.${waits} Call task_next for the next task.`, task_id, status, lux_paid };
}

/**
 * A repeat while nobody has the task changes nothing: the epoch tells it. That of a dispatch which was given back is one less
 * than the task's, or the same when the task has failed with it. While the node has the task again, the call is about the
 * new dispatch, because agents do not know of epochs.
 */
async function giveBack(
  session: Session,
  path: "task/fail" | "task/release",
  args: Args,
): Promise<ToolResult> {
  const { call, self } = session;
  const taskId = String(args["task_id"]);
  const { status, assignedNode, epoch: current } = await call.services.feed.task(taskId);
  const isHeld = status === "assigned" && assignedNode === self;
  const epoch = isHeld || status === "failed" ? current : current - 1;
  const repeats = { key: `${self}:${taskId}:${epoch}`, implicit: false };
  const request = { ...args, ...usageOf(args), node_id: self, epoch };
  const answer = await session.ask("POST", path, request, repeats);
  const task = rowOf(answer);
  const isFree = path === "task/release" && task["status"] !== "failed";
  const what = isFree ? "The task is free again." : "Your attempt is recorded as failed.";
  return { say: `${what} Call task_next for another task.`, task };
}

export const taskFail = (session: Session, args: Args): Promise<ToolResult> =>
  giveBack(session, "task/fail", args);

export const taskRelease = (session: Session, args: Args): Promise<ToolResult> =>
  giveBack(session, "task/release", args);

function rowOf(answer: JsonObject): JsonObject {
  return taskRow(recordOf(answer["task"]));
}

// ---- For a creator

export async function taskCreate(session: Session, args: Args): Promise<ToolResult> {
  const { key: _, node_id: forNode, ...fields } = args;
  const creator = session.nodeId === null ? {} : { creator_node: session.nodeId };
  const draft = { ...fields, ...(forNode === undefined ? {} : { for_node: forNode }), ...creator };
  const answer = await session.ask("POST", "task/create", draft, once(session, args));
  const repeated = answer["repeated"] === true;
  const { task_id } = answer;
  const task = rowOf(answer);
  const warning = await warningOf(session, task);
  const then = `Its result: task_get {task_id, wait_s: ${MCP_WAIT_MAX_SECONDS}}, or task_wait for several tasks.`;
  const say = `${repeated ? REPEATED : "Created. "}${warning === null ? "" : `${warning} `}${then}`;
  return { say, task_id, task, warning, ...(repeated ? { repeated } : {}) };
}

/** The creator itself is no worker of its own task. */
async function warningOf(
  { call, nodeId }: Session,
  { status, task_type }: JsonObject,
): Promise<string | null> {
  if (status !== "open") return null;
  const taking = textOf(task_type);
  const query = { state: "online", prefix: "", taking, order: "id" } as const;
  const { nodes } = await call.services.nodes.lists.page(query, { page: 1, perPage: 2 });
  if (nodes.some((node) => node.nodeId !== nodeId)) return null;
  return taking === null
    ? "No other node is online: the task waits."
    : "No other node that is online takes this task_type: the task waits. node_list shows what they take.";
}

export async function taskList(session: Session, args: Args): Promise<ToolResult> {
  const { limit, node_id, creator_node, lessons, ...filter } = args;
  if (lessons === true) return lessonList(session, args);
  const nodes = { node_id: session.nodeOf(node_id), creator_node: session.nodeOf(creator_node) };
  const result = await listed(session, {
    path: "task/list",
    query: { ...filter, ...nodes },
    limit,
    name: "tasks",
    row: taskRow,
    none: "No such tasks.",
    thing: "task",
    about: ", newest first.",
    more: " There are more: task_list with cursor next_cursor.",
  });
  if (recordsOf(result["tasks"]).length > 0) return result;
  const unknown = await unknownAmong(session, Object.values(nodes));
  if (unknown.length === 0) return result;
  return { ...result, say: `${result.say} No node is registered as ${unknown.join(" or ")}: see node_list.` };
}

async function lessonList(session: Session, args: Args): Promise<ToolResult> {
  const { limit, task_type: type, q, cursor, lessons: _, ...others } = args;
  const unread = Object.keys(others).map((path) => ({
    path,
    message: "does not go with lessons: send task_type, q, limit, cursor",
  }));
  if (unread.length > 0) throw invalidRequest(unread);
  let looked = 0;
  const { rows, next } = await pageThatFits(countOf(limit, MCP_LIST_DEFAULT, MCP_LIST_MAX), async (most) => {
    const page = await session.ask("GET", "lessons", { type, q, cursor, limit: String(most) });
    looked = Number(page["looked"]);
    return { rows: recordsOf(page["lessons"]).map(lessonRow), next: page["next_cursor"] };
  });
  const count = rows.length === 0 ? "No such lessons" : `${plural(rows.length, "lesson")}, newest first`;
  const hint = next === null ? "" : " To look further back, call task_list again with cursor next_cursor.";
  const say = `${count}, from ${plural(looked, "completed task")} that the hub looked at.${hint}`;
  return { say, lessons: rows, next_cursor: next };
}

/** The nodes that a filter names and nobody has registered. */
async function unknownAmong(session: Session, nodeIds: readonly unknown[]): Promise<readonly string[]> {
  const unknown: string[] = [];
  for (const nodeId of nodeIds) {
    if (typeof nodeId !== "string") continue;
    try {
      await session.ask("GET", "node/:node_id", { node_id: nodeId });
    } catch (error) {
      if (!(error instanceof Refused) || error.body["error"] !== "node_not_found") throw error;
      unknown.push(nodeId);
    }
  }
  return unknown;
}

export async function taskGet(session: Session, args: Args): Promise<ToolResult> {
  const { task_id, part, offset } = args;
  if (part !== undefined) return taskPart(session, task_id, String(part), countFrom(offset));
  const wait = session.waitFor(args["wait_s"]);
  const query = { task_id, wait: String(wait), context: "1" };
  const answer = await session.ask("GET", "task/:task_id", query);
  const task = recordOf(answer["task"]);
  const detail = taskDetail(task, answer["context"]);
  const say = standOf(task, session.nodeId, wait);
  if (task["status"] !== "open") return { say, task: detail };
  const { why, missing } = await reasonsOf(session, task_id);
  if (why.length === 0) return { say, task: detail };
  const lacks = missing.length === 0 ? {} : { missing };
  return { say: `${say} Why it does not run: ${why.join(", ")}.`, why, ...lacks, task: detail };
}

/** The codes of what keeps a task back, without its position in line; and what the closest node lacks. */
async function reasonsOf(
  session: Session,
  taskId: unknown,
): Promise<{ readonly why: readonly string[]; readonly missing: readonly string[] }> {
  const { reasons } = await session.ask("GET", "task/:task_id/explain", { task_id: taskId });
  const hindrances = recordsOf(reasons).filter(({ code }) => code !== "in_line");
  return {
    why: hindrances.map(({ code }) => String(code)),
    missing: hindrances.flatMap(({ missing }) => (Array.isArray(missing) ? missing.map(String) : [])),
  };
}

function standOf(
  { status, ready, assigned_node, waiting_for }: JsonObject,
  self: string | null,
  waited: number,
): string {
  if (waiting_for === "review") return "It is completed, and the result waits for its review: see result.";
  if (status === "completed") return "It is completed: see result.";
  if (status === "failed") return "It has failed: see failure. task_retry opens it again.";
  const again = waited > 0 ? " Call again to wait on." : "";
  if (waiting_for === "answer" && assigned_node !== self)
    return `It waits for the answer to a question: see context.answers and task_answer.${again}`;
  if (status === "assigned" && assigned_node === self) return `You hold it. ${END_IT}`;
  if (status === "assigned") return `A node works on it; it has not ended yet.${again}`;
  return `${ready === true ? "No node has taken it yet." : "It is not ready: see not_before and unmet."}${again}`;
}

function countFrom(offset: unknown): number {
  return typeof offset === "number" && offset > 0 ? Math.trunc(offset) : 0;
}

/** Reads on in a part of a task, from an offset on. */
async function taskPart(
  session: Session,
  taskId: unknown,
  part: string,
  offset: number,
): Promise<ToolResult> {
  const answer = await session.ask("GET", "task/:task_id", { task_id: taskId, context: "1" });
  const { checkpoint } = recordOf(answer["context"]);
  const whole = partText(recordOf(answer["task"]), checkpoint, part);
  if (whole === null) {
    const message = `is no part of this task; the parts are ${TASK_PARTS.join(", ")}, where the task has them`;
    throw invalidRequest([{ path: "part", message }]);
  }
  const total = whole.text.length;
  const text = new Foreign(whole.text.slice(offset), {
    ...whole.options,
    readOn: { call: "task_get", task_id: taskId, part },
    part: { offset, total, unit: "characters" },
  });
  const say = `The part of the task from character ${Math.min(offset, total)} of ${total} on.`;
  return { say, task_id: taskId, part, offset, total, text };
}

export async function taskWait(session: Session, args: Args): Promise<ToolResult> {
  const taskIds = textsOf(args["task_ids"]);
  if (taskIds.length === 0 || taskIds.length > MCP_WAITED_MAX)
    throw invalidRequest([{ path: "task_ids", message: `must hold 1 to ${MCP_WAITED_MAX} task_ids` }]);
  const query = {
    task_ids: taskIds.join(),
    until: args["until"],
    wait: String(session.waitFor(args["wait_s"])),
  };
  const { done, tasks } = await session.ask("GET", "task/wait", query);
  const rows = recordsOf(tasks).map(waitedRow);
  const completed = rows.filter(({ status }) => status === "completed");
  const failed = rows.filter(({ status }) => status === "failed").length;
  const withResults = completed.length <= MCP_WAITED_RESULTS_MAX;
  const shown: JsonObject[] = [];
  for (const row of rows)
    shown.push(withResults && row["status"] === "completed" ? await withResult(session, row) : row);
  const pending = rows.length - completed.length - failed;
  const sum = `${completed.length} completed, ${failed} failed, ${pending} not ended.`;
  const say = [
    sum,
    done === true ? "" : "Call again to wait on.",
    failed > 0 ? "task_retry opens a failed task again." : "",
    withResults ? "" : "task_get shows the result of each.",
  ];
  return { say: say.filter((sentence) => sentence !== "").join(" "), done, tasks: shown };
}

async function withResult(session: Session, row: JsonObject): Promise<JsonObject> {
  const { task } = await session.ask("GET", "task/:task_id", { task_id: row["task_id"] });
  const { assigned_node, result, result_verified } = taskDetail(recordOf(task));
  return result === undefined ? row : { ...row, assigned_node, result, result_verified };
}

export async function taskRetry(session: Session, args: Args): Promise<ToolResult> {
  const answer = await session.ask("POST", "task/retry", args);
  const { dependents } = answer;
  const hint =
    Number(recordOf(dependents)["left"]) > 0 ? " Call again for the dependents that are left." : "";
  const say = `The task is open again.${hint} task_get with wait_s waits for its end.`;
  return { say, task: rowOf(answer), ...(dependents === undefined ? {} : { dependents }) };
}

/** Without a node in the request: an unbound key may cancel any task, and a bound one its own. */
export async function taskCancel(session: Session, args: Args): Promise<ToolResult> {
  const request = { ...args, ...(session.nodeId === null ? {} : { node_id: session.nodeId }) };
  try {
    return {
      say: "Cancelled: it counts as failed, and its worker drops it.",
      task: rowOf(await session.ask("POST", "task/cancel", request)),
    };
  } catch (error) {
    if (!(error instanceof Refused) || error.body["error"] !== "task_failed") throw error;
    const answer = await session.ask("GET", "task/:task_id", { task_id: args["task_id"] });
    if (recordOf(recordOf(answer["task"])["failure"])["kind"] !== "cancelled") throw error;
    return { say: "It is cancelled already.", task: rowOf(answer) };
  }
}
