/** The tools about tasks: those of a worker, and those of a creator. */
import { MCP_RESULT_MAX_BYTES, MCP_TASKS_MAX, PER_PAGE_MAX, RELEASED_REST_MS } from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import { invalidRequest } from "../http/problem.ts";
import { MINUTE_MS } from "../lib/clock.ts";
import { type Args, offsetOf, someOf, textOf, textsOf } from "./arguments.ts";
import { Inputs } from "./files.ts";
import { REST_BYTES, countThatFits, listed } from "./pages.ts";
import { refusalIn } from "./refusals.ts";
import { type ToolResult, brief, lengthOf } from "./result.ts";
import { type Session, codeOf, once, onceTold } from "./session.ts";
import {
  TASK_PARTS,
  answerDetail,
  isRecord,
  lessonRow,
  linesOf,
  partText,
  plural,
  recordOf,
  recordsOf,
  reviewRow,
  sentences,
  taskDetail,
  taskRow,
  textFrom,
  waitedRow,
} from "./shapes.ts";

// ---- For a worker

const END_IT = "End it with task_complete, task_fail or task_release.";
const IT_IS_YOURS = `This task is yours. ${END_IT}`;
const AGAIN = `You hold this task, and have said nothing of it yet. ${END_IT} For another one besides, call task_progress for it first.`;
const YOUR_OWN =
  "You created it yourself: to have its result, leave it to others (task_release) and use task_wait.";

/** A task as its worker or its creator sees it. */
export async function shownTask(session: Session, task: JsonObject, context?: unknown): Promise<JsonObject> {
  const { task_id, files } = task;
  if (!Array.isArray(files) || files.length === 0) return taskDetail(task, [], context);
  const page = await session.ask("GET", "file/list", { task_id, per_page: String(PER_PAGE_MAX) });
  return taskDetail(task, recordsOf(page["files"]), context);
}

/** A task that the caller got. */
async function givenTask(
  session: Session,
  say: string,
  answer: JsonObject,
  drain = answer["drain"],
): Promise<ToolResult> {
  const task = recordOf(answer["task"]);
  const isOwn = task["creator_node"] === session.self;
  const shown = await shownTask(session, task, answer["context"]);
  return { say: sentences(say, isOwn && YOUR_OWN), task: shown, drain: drain === true || undefined };
}

export async function taskNext(session: Session, args: Args, beat: JsonObject | null): Promise<ToolResult> {
  const { call, self } = session;
  const { task_id, task_types, wait_s } = args;
  const drain = beat?.["drain"];
  if (task_id !== undefined) {
    const claimed = await session.ask("POST", "task/claim", { task_id, node_id: self });
    return givenTask(session, IT_IS_YOURS, claimed, drain);
  }
  const held = await call.services.next.unacknowledged(self);
  if (held !== null) {
    const query = { task_id: held.taskId, context: "1" };
    return givenTask(session, AGAIN, await session.ask("GET", "task/:task_id", query), drain);
  }
  const request = { node_id: self, wait: session.waitFor(wait_s), task_types };
  const answer = await session.ask("POST", "task/next", request);
  return isRecord(answer["task"])
    ? givenTask(session, IT_IS_YOURS, answer)
    : noTask(session, textsOf(task_types));
}

async function noTask({ call, self, maxWait }: Session, asked: readonly string[]): Promise<ToolResult> {
  const node = await call.services.nodes.get(self);
  const { capabilities: takes, draining: drain, maxTasks, tasksAssigned } = node;
  const others = await call.services.next.notTaken(node, asked.length === 0 ? null : asked);
  const fields = {
    task: null,
    drain,
    takes: linesOf(takes),
    asked: linesOf(asked),
    others: linesOf(others.filter((type) => type !== "")),
  };
  const isUntaken = takes.length > 0 && asked.some((type) => !takes.includes(type));
  const noType = others.includes("") ? ", or of none," : "";
  const say = drain
    ? "No task: you drain, so you get nothing new. Finish what you hold."
    : maxTasks !== null && tasksAssigned >= maxTasks
      ? `No task: you hold ${plural(tasksAssigned, "task")}, and your max_tasks is ${maxTasks}. End one first.`
      : sentences(
          "No task for you now.",
          isUntaken && "You asked for types that are not among your capabilities (takes).",
          others.length > 0 &&
            `Tasks of other types${noType} wait (others): leave task_types out, or node_update {capabilities}.`,
          `Call task_next with wait_s: ${maxWait} to wait for one, or stop.`,
        );
  return { say, ...fields };
}

export async function taskProgress(session: Session, args: Args): Promise<ToolResult> {
  const request = {
    ...args,
    checkpoint: session.exactArgument("checkpoint"),
    usage: usageOf(args),
    node_id: session.self,
  };
  const answer = await session.ask("POST", "task/extend", request);
  const task = rowOf(answer);
  const { budget_left_usd } = answer;
  if (task["status"] === "failed")
    return { say: "The task has cost more than it may, and has failed: drop it.", task, budget_left_usd };
  const { expires_at } = recordOf(answer["lease"]);
  const say = sentences(
    "Noted; the task stays yours.",
    expires_at !== null && "Its time limit (expires_at) started again.",
    budget_left_usd !== null && `It may cost ${Number(budget_left_usd)} USD more.`,
  );
  return { say, task, expires_at: expires_at ?? undefined, budget_left_usd: budget_left_usd ?? undefined };
}

/** HTTP takes a list of reports. */
function usageOf({ usage }: Args): unknown {
  return usage === undefined || Array.isArray(usage) ? usage : [usage];
}

export async function taskComplete(session: Session, args: Args): Promise<ToolResult> {
  const { task_id, problem, improvement, lesson } = args;
  const output = session.exactArgument("output") ?? undefined;
  const result = { problem, improvement, lesson, ...(output === undefined ? {} : { output }) };
  const request = { task_id, node_id: session.self, result, usage: usageOf(args) };
  const answer = await session.ask("POST", "task/complete", request);
  const { status, lux_paid, lux_held } = answer;
  const waits = lux_held !== undefined && "The result waits for its review.";
  const say = sentences("Completed.", waits, "Call task_next for the next task.");
  return { say, task_id, status, lux_paid };
}

/**
 * A repeat while nobody has the task changes nothing: the epoch tells it. That of a dispatch which was given back is one less
 * than the task's, or the same when the task has failed with it. While the node has the task again, the call is about the
 * new dispatch, because agents do not know of epochs.
 */
const givesBack = (path: "task/fail" | "task/release") => async (session: Session, args: Args) => {
  const { call, self } = session;
  const taskId = String(args["task_id"]);
  const { status, assignedNode, epoch: current } = await call.services.feed.task(taskId);
  const isHeld = status === "assigned" && assignedNode === self;
  const epoch = isHeld || status === "failed" ? current : current - 1;
  const repeats = { key: `${self}:${taskId}:${epoch}`, implicit: false };
  const request = { ...args, usage: usageOf(args), node_id: self };
  const refusal = (): Promise<JsonObject> => session.ask("POST", path, request); // it says why the node holds nothing
  const mayRepeat = status !== "completed" && epoch > 0;
  const answer = mayRepeat
    ? await session.ask("POST", path, { ...request, epoch }, repeats).catch((error: unknown) => {
        if (isHeld || codeOf(error) !== "stale_lease") throw error;
        return refusal();
      })
    : await refusal();
  const task = rowOf(answer);
  const isFree = path === "task/release" && task["status"] !== "failed";
  const what = isFree ? RELEASED : "Your attempt is recorded as failed.";
  return { say: `${what} Call task_next for another task.`, task };
};

const RELEASED = `The task is free again, for others: you are not offered it for ${RELEASED_REST_MS / MINUTE_MS} minutes.`;

export const taskFail = givesBack("task/fail");
export const taskRelease = givesBack("task/release");

function rowOf(answer: JsonObject): JsonObject {
  return taskRow(recordOf(answer["task"]));
}

// ---- For a creator

export async function taskCreate(session: Session, args: Args): Promise<ToolResult> {
  await using inputs = new Inputs(session);
  const { tasks } = args;
  if (tasks !== undefined) return await createMany(session, args, recordsOf(tasks), inputs);
  return await createTask(session, args, inputs);
}

async function createTask(session: Session, args: Args, inputs: Inputs): Promise<ToolResult> {
  const draft = await draftOf(session, args, inputs);
  const answer = await session.ask("POST", "task/create", draft, once(session, args));
  const { task_id } = answer;
  const task = rowOf(answer);
  const isOld = answer["deduplicated"] === true;
  const what = isOld ? "A task with this unique_key is there already: nothing was created." : "Created.";
  const then = `Its result: task_wait {task_ids, wait_s: ${session.maxWait}}.`;
  return onceTold(answer, sentences(what, await warningOf(session, [task]), then), { task_id, task });
}

/** The request of a task. Its creator is the caller. */
async function draftOf(
  session: Session,
  { key: _, ref: _ref, node_id: forNode, files, ...fields }: Args,
  inputs: Inputs,
): Promise<JsonObject> {
  const fileIds = files === undefined ? files : await inputs.idsOf(textsOf(files));
  return { ...fields, files: fileIds, for_node: forNode, creator_node: session.nodeId };
}

/** Many tasks, of which later ones name earlier ones by `ref` in depends_on. Each has the other arguments that it lacks. */
async function createMany(
  session: Session,
  args: Args,
  tasks: readonly Args[],
  inputs: Inputs,
): Promise<ToolResult> {
  const { tasks: _, ...common } = args;
  someOf("tasks", tasks, MCP_TASKS_MAX);
  const refs = new Set(tasks.flatMap(({ ref }) => textOf(ref) ?? []));
  const requests: JsonObject[] = [];
  for (const task of tasks) {
    const body = await draftOf(session, { ...common, ...task }, inputs);
    const depends_on = textsOf(body["depends_on"]).map((id) => (refs.has(id) ? { $ref: id } : id));
    requests.push({ path: "task/create", body: { ...body, depends_on }, ref: task["ref"] });
  }
  const answer = await session.ask("POST", "batch", { requests }, once(session, args));
  const bodies = recordsOf(answer["answers"]).map(({ body }) => recordOf(body));
  const created = bodies.filter(({ error }) => error === undefined).map(rowOf);
  const rows = bodies.map((body, i) => {
    const { ref, title } = { ...common, ...tasks[i] };
    const { task_id, status, error } = body;
    const outcome = error === undefined ? { task_id, status } : refusalIn(body, "task_create");
    return { ref, title: brief(String(title ?? ""), 40), ...outcome };
  });
  const refused = rows.length - created.length;
  const say = sentences(
    `Created ${plural(created.length, "task")}.`,
    refused > 0 && `${plural(refused, "task")} not: see error of each; send those again.`,
    await warningOf(session, created),
    `Their results: task_wait {task_ids, wait_s: ${session.maxWait}}.`,
  );
  return onceTold(answer, say, { tasks: rows });
}

/** The creator itself is no worker of its own tasks. */
async function warningOf({ call, nodeId }: Session, tasks: readonly JsonObject[]): Promise<string | null> {
  const open = tasks.filter(({ status }) => status === "open");
  for (const type of new Set(open.map(({ task_type }) => textOf(task_type)))) {
    const query = { state: "online", prefix: "", taking: type, order: "id" } as const;
    const { nodes } = await call.services.nodes.lists.page(query, { page: 1, perPage: 2 });
    if (nodes.some((node) => node.nodeId !== nodeId)) continue;
    return type === null
      ? "No other node is online: the task waits."
      : `No other node that is online takes the task_type ${JSON.stringify(type)}: the task waits. node_list shows what they take.`;
  }
  return null;
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
  });
  if (recordsOf(result["tasks"]).length > 0) return result;
  const unknown: string[] = [];
  for (const nodeId of Object.values(nodes))
    if (typeof nodeId === "string" && !(await session.isNode(nodeId))) unknown.push(nodeId);
  if (unknown.length === 0) return result;
  return { ...result, say: `${result.say} No node is registered as ${unknown.join(" or ")}: see node_list.` };
}

function lessonList(session: Session, args: Args): Promise<ToolResult> {
  const { limit, task_type: type, q, cursor, lessons: _, ...others } = args;
  const message = "does not go with lessons: send task_type, q, limit, cursor";
  const unread = Object.keys(others).map((path) => ({ path, message }));
  if (unread.length > 0) throw invalidRequest(unread);
  return listed(session, {
    path: "lessons",
    query: { type, q, cursor },
    limit,
    size: "limit",
    name: "lessons",
    row: lessonRow,
    none: "No such lessons.",
    thing: "lesson",
    about: ", newest first.",
  });
}

export async function taskGet(session: Session, args: Args): Promise<ToolResult> {
  const { task_id } = args;
  if (args["part"] !== undefined) return taskPart(session, args);
  const wait = session.waitFor(args["wait_s"]);
  const query = { task_id, wait: String(wait), context: "1" };
  const answer = await session.ask("GET", "task/:task_id", query);
  const task = recordOf(answer["task"]);
  const detail = await shownTask(session, task, answer["context"]);
  const say = standOf(task, session.nodeId, wait);
  if (task["status"] !== "open") return { say, task: detail };
  const { reasons } = await session.ask("GET", "task/:task_id/explain", { task_id });
  const hindrances = recordsOf(reasons).filter(({ code }) => code !== "in_line");
  if (hindrances.length === 0) return { say, task: detail };
  const why = hindrances.map(({ code }) => String(code));
  const missing = hindrances.flatMap(({ missing: lacking }) => textsOf(lacking)); // by the closest node
  const lacks = missing.length === 0 ? undefined : missing;
  return { say: `${say} Why it does not run: ${why.join(", ")}.`, why, missing: lacks, task: detail };
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

/** Reads on in a part of a task, from an offset on. */
async function taskPart(session: Session, args: Args): Promise<ToolResult> {
  const { task_id } = args;
  const part = String(args["part"]);
  const answer = await session.ask("GET", "task/:task_id", { task_id, context: "1" });
  const { checkpoint } = recordOf(answer["context"]);
  const whole = partText(recordOf(answer["task"]), checkpoint, part);
  if (whole === null) {
    const message = `is no part of this task; the parts are ${TASK_PARTS.join(", ")}, where the task has them`;
    throw invalidRequest([{ path: "part", message }]);
  }
  const total = whole.length;
  const offset = Math.min(offsetOf(args), total);
  const say = `The part of the task from character ${offset} of ${total} on.`;
  return {
    say,
    task_id,
    part,
    offset,
    total,
    text: textFrom(whole, offset, { call: "task_get", task_id, part }),
  };
}

export async function taskWait(session: Session, args: Args): Promise<ToolResult> {
  const { until, wait_s } = args;
  const taskIds = someOf("task_ids", args["task_ids"], MCP_TASKS_MAX);
  const query = { task_ids: taskIds.join(), until, wait: String(session.waitFor(wait_s)) };
  const { done, tasks } = await session.ask("GET", "task/wait", query);
  const rows = recordsOf(tasks).map(waitedRow);
  const shown = rows.slice(0, countThatFits(rows));
  const completed = rows.filter(({ status }) => status === "completed").length;
  const failed = rows.filter(({ status }) => status === "failed").length;
  const without = completed - (await addResults(session, shown));
  const say = sentences(
    `${completed} completed, ${failed} failed, ${rows.length - completed - failed} not ended.`,
    done !== true && "Call again to wait on.",
    failed > 0 && "task_retry opens a failed task again.",
    shown.length < rows.length && `Only ${shown.length} tasks fit: name the others in another call.`,
    without > 0 && `The results of ${without} did not fit: call again with the task_ids without result.`,
    completed > 0 && "task_get shows the rest of a result.",
  );
  return { say, done, tasks: shown };
}

/** Adds results to the rows of completed tasks while they fit, the first one always. Resolves with their number. */
async function addResults(session: Session, rows: JsonObject[]): Promise<number> {
  let [added, bytes] = [0, REST_BYTES + rows.reduce((sum, row) => sum + lengthOf(row), 0)];
  for (const [i, row] of rows.entries()) {
    if (row["status"] !== "completed") continue;
    const { task } = await session.ask("GET", "task/:task_id", { task_id: row["task_id"] });
    const { assigned_node, result_verified } = recordOf(task);
    const result = { assigned_node, result: answerDetail(recordOf(task)), result_verified };
    bytes += lengthOf(result);
    if (bytes > MCP_RESULT_MAX_BYTES && added > 0) break;
    rows[i] = { ...row, ...result };
    added++;
  }
  return added;
}

/** Passes or rejects a result; without a task shows those that wait for that. */
export async function taskReview(session: Session, args: Args): Promise<ToolResult> {
  const { task_id, verdict, note } = args;
  if (task_id === undefined)
    return listed(session, {
      path: "reviews",
      query: {},
      size: "limit",
      name: "reviews",
      row: reviewRow,
      none: "No result waits for a review.",
      thing: "result",
      about:
        ", the most urgent first: task_get shows one, and task_review with verdict passes or rejects it.",
      more: "There are more.",
    });
  const request = { task_id, verdict, note, node_id: session.nodeId };
  const answer = await session.ask("POST", "task/review", request);
  const say = verdict === "pass" ? "Passed: its result counts." : "Rejected: the next worker gets your note.";
  return { say, task: rowOf(answer) };
}

export async function taskRetry(session: Session, args: Args): Promise<ToolResult> {
  const answer = await session.ask("POST", "task/retry", args);
  const { dependents } = answer;
  const hint =
    Number(recordOf(dependents)["left"]) > 0 ? " Call again for the dependents that are left." : "";
  const say = `The task is open again.${hint} task_get with wait_s waits for its end.`;
  return { say, task: rowOf(answer), dependents };
}

/** Without a node in the request: an unbound key may cancel any task, and a bound one its own. */
export async function taskCancel(session: Session, args: Args): Promise<ToolResult> {
  const request = { ...args, node_id: session.nodeId };
  try {
    return {
      say: "Cancelled: it counts as failed, and its worker drops it.",
      task: rowOf(await session.ask("POST", "task/cancel", request)),
    };
  } catch (error) {
    if (codeOf(error) !== "task_failed") throw error;
    const answer = await session.ask("GET", "task/:task_id", { task_id: args["task_id"] });
    if (recordOf(recordOf(answer["task"])["failure"])["kind"] !== "cancelled") throw error;
    return { say: "It is cancelled already.", task: rowOf(answer) };
  }
}
