/** `luxhub task …`: creates, lists, changes and waits for tasks. */
import { type AnswerOf, type LuxHub, LuxHubError, type RequestOf, type Task } from "../client/luxhub.ts";
import { isRaised } from "../client/held-task.ts";
import { traceOf } from "../domain/trace.ts";
import { PlainOutput } from "../lib/plain-output.ts";
import { parseExact } from "../lib/exact-json.ts";
import { printableJson } from "../lib/printable.ts";
import { readTextFile } from "../text-file.ts";
import { UsageError, wordAt } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";
import { sizeOf, uploadFrom } from "./file.ts";
import { type Remote, type ClientRuns, forEach, printError, readStandardInput, recordOf } from "./remote.ts";
import { PATCH_RUNS } from "./task-patch.ts";
import { rowsOf } from "./resource.ts";
import { taskLine } from "./rows.ts";
import { plain, print, printJson, printJsonLine, printRecord, printTable, printText } from "./table.ts";
import { writeLine } from "./standard-output.ts";
import { reportUsage } from "./usage.ts";
import { newTaskOf, patchOf } from "./new-task.ts";

async function why({ hub, json, words: [taskId = ""] }: Remote): Promise<number> {
  const { ready, reasons, position } = await hub.tasks.explain({ task_id: taskId });
  if (json) printJson({ ready, reasons, position });
  else
    printTable(
      ["WHY", "UNTIL", "DETAIL"],
      reasons.map(({ code, until, detail }) => [code, until, plain(detail)]),
    );
  return EXIT.OK;
}

export const RUNS: ClientRuns = {
  "task add": add,
  "task why": why,
  "task wait": wait,
  "task logs": logs,
  ...PATCH_RUNS,
  "task complete": complete,
  "task checkpoint": checkpoint,
  "task ask": askQuestion,
  "task answer": answerQuestion,
  "task usage": reportUsage,
  "task retry": (remote) =>
    remote.values.has("with-dependents")
      ? retryAll(remote)
      : change(remote, (task_id) =>
          remote.hub.tasks.retry({ task_id, max_cost_usd: remote.values.number("max-cost") }),
        ),
  "task update": async (remote) => {
    const patch = await patchOf(remote.values);
    return change(remote, (task_id) => remote.hub.tasks.update({ task_id, ...patch }));
  },
};

type Holder = { readonly task_id: string; readonly node_id: string; readonly epoch: number | undefined };

/**
 * The holder is as the flags say, or within luxhub worker the environment: there the worker may have a new epoch by now,
 * because a copy of the hub took over.
 */
async function asHolder<T>({ hub, values, words }: Remote, send: (holder: Holder) => Promise<T>): Promise<T> {
  const [task_id = ""] = words;
  const isOwn = process.env["LUXHUB_TASK_ID"] === task_id;
  const variable = (name: string): string | undefined => (isOwn ? process.env[name] : undefined);
  const given = values.whole("epoch");
  const started = given === undefined ? variable("LUXHUB_TASK_EPOCH") : undefined;
  const node_id = values.text("node") ?? variable("LUXHUB_NODE_ID") ?? values.needed("node");
  try {
    return await send({ task_id, node_id, epoch: started === undefined ? given : Number(started) });
  } catch (error) {
    const isStale = error instanceof LuxHubError && error.code === "stale_lease";
    if (!isStale || started === undefined) throw error;
    const { epoch } = (await hub.tasks.extend({ task_id, node_id })).lease;
    if (!isRaised(Number(started), epoch)) throw error;
    return send({ task_id, node_id, epoch });
  }
}

async function checkpoint(remote: Remote): Promise<number> {
  const data = jsonIn(await readStandardInput(), "standard input", "task checkpoint");
  const { task } = await asHolder(remote, (holder) =>
    remote.hub.tasks.extend({ ...holder, checkpoint: data }),
  );
  return remote.json ? show(task, true) : writeLine(`${task.task_id}  saved`);
}

async function askQuestion(remote: Remote): Promise<number> {
  const { hub, values, json } = remote;
  const schema = values.text("schema");
  const wait = values.seconds("wait");
  const asked = {
    question: wordAt(remote, 1),
    choices: values.has("choice") ? [...values.texts("choice")] : undefined,
    schema: schema === undefined ? undefined : objectIn(readTextFile(schema), schema, "task ask"),
    within_s: values.seconds("within"),
    park: values.has("park"),
    wait,
  };
  const { question } = await asHolder(remote, (holder) => hub.tasks.ask({ ...holder, ...asked }));
  const { state, answer, question_id } = question;
  if (json) printJson(question);
  else if (wait === undefined) writeLine(question_id);
  else if (state === "answered")
    writeLine(typeof answer === "string" ? plain(answer) : printableJson(answer));
  if (wait === undefined || state === "answered") return EXIT.OK;
  printError(state === "open" ? "there is no answer yet" : "there was no answer in time");
  return EXIT.TIMED_OUT;
}

async function answerQuestion({ hub, values, json, words }: Remote): Promise<number> {
  const [task_id = "", given = ""] = words;
  const text = given === "-" ? await readStandardInput() : given;
  const answer = values.has("parse") ? jsonIn(text, "ANSWER", "task answer") : text;
  const { question_id, choices } = await questionOf(hub, task_id, values.text("question"));
  if (choices.length > 0 && !choices.some((choice) => choice === answer) && !values.has("force"))
    throw new UsageError(
      `ANSWER must be ${choices.map((choice) => JSON.stringify(choice)).join(", ")}, or given with --force`,
      "task answer",
    );
  const node_id = values.text("node");
  const { question } = await hub.tasks.answer({ task_id, question_id, answer, node_id });
  if (json) printJson(question);
  else writeLine(`${question_id}  answered`);
  return EXIT.OK;
}

type Question = Pick<AnswerOf<"task/{task_id}/questions">["questions"][number], "question_id" | "choices">;

/** @throws {UsageError} if there is not exactly one */
async function questionOf(hub: LuxHub, task_id: string, id: string | undefined): Promise<Question> {
  const open: Question[] = [];
  for await (const question of rowsOf(
    hub,
    "task/{task_id}/questions",
    { task_id },
    Number.POSITIVE_INFINITY,
  )) {
    if (question.question_id === id) return question;
    if (question.state === "open") open.push(question);
  }
  if (id !== undefined) return { question_id: id, choices: [] }; // the hub says that there is none
  const [question] = open;
  if (question === undefined) throw new UsageError(`task ${task_id} has no open question`, "task answer");
  if (open.length === 1) return question;
  throw new UsageError(
    `task ${task_id} has ${open.length} open questions: choose one with --question (${open.map(({ question_id }) => question_id).join(", ")})`,
    "task answer",
  );
}

const OBJECT = "a JSON object";

function jsonIn(text: string, where: string, command: string, kind = "JSON"): unknown {
  try {
    return parseExact(text);
  } catch {
    throw new UsageError(`${where} must be ${kind}`, command);
  }
}

function objectIn(text: string, file: string, command: string): Record<string, unknown> {
  const value = jsonIn(text, file, command, OBJECT);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw new UsageError(`${file} must be ${OBJECT}`, command);
}

async function add({ hub, values, env, json, words: [title = ""] }: Remote): Promise<number> {
  const trace = traceOf(env["TRACEPARENT"], env["TRACESTATE"]); // of a traced program, also of a worker's command
  const request = { ...(await newTaskOf(title, values)), ...trace };
  const paths = values.texts("file");
  const answer = recordOf(
    await (paths.length === 0 ? hub.tasks.create(request) : addWith(hub, request, paths)),
  );
  return writeLine(json ? printableJson(answer, 2) : answer.task_id);
}

/** The files are deleted again if the hub refuses the task. */
async function addWith(
  hub: LuxHub,
  request: RequestOf<"task/create">,
  paths: readonly string[],
): Promise<AnswerOf<"task/create">> {
  for (const path of paths) sizeOf(path);
  const metadata = request.creator_node === undefined ? {} : { node: request.creator_node };
  const files: string[] = [];
  try {
    for (const path of paths) files.push((await uploadFrom(hub, path, { metadata })).file_id);
    return await hub.tasks.create({ ...request, files });
  } catch (error) {
    const isRefused = error instanceof LuxHubError && error.status < 500;
    if (isRefused) for (const file_id of files) await hub.files.delete({ file_id }).catch(() => {}); // the error is the first
    throw error;
  }
}

function show(task: Task, json: boolean): number {
  if (json) printJson(task);
  else printRecord(task);
  return EXIT.OK;
}

/** The output; of a result without one, the texts. */
function showResult({ output, ...texts }: NonNullable<Task["result"]>): void {
  if (output === undefined || output === null) printRecord(texts);
  else print(typeof output === "string" ? plain(output) : printableJson(output, 2));
}

async function logs({ hub, values, json, words: [taskId = ""] }: Remote): Promise<number> {
  const follow = values.has("follow");
  const isRaw = values.has("raw");
  const named = values.whole("attempt");
  let plainText = new PlainOutput();
  let attempt: number | null = null;
  for await (const part of hub.output(taskId, { attempt: named, follow })) {
    if (json) {
      const { offset, next_offset, dropped, data } = part;
      printJsonLine({ attempt: part.attempt, offset, next_offset, dropped, data });
      continue;
    }
    if (attempt !== part.attempt) {
      const node = part.attempts.find(({ attempt: number }) => number === part.attempt)?.node_id ?? "";
      printText(plainText.end());
      if (attempt !== null || part.attempts.length > 1)
        console.error(`luxhub: attempt ${part.attempt} on ${node}`);
      plainText = new PlainOutput();
      ({ attempt } = part);
    }
    if (part.dropped > 0) console.error(`luxhub: ${part.dropped} bytes here are no longer kept`);
    printText(isRaw ? part.data : plainText.add(part.data));
  }
  if (!json) printText(plainText.end());
  return EXIT.OK;
}

/** The client splits it into several calls. */
const FOR_EVER_S = 10 * 365 * 86_400;

function wait(remote: Remote): Promise<number> {
  return remote.words.length === 1 ? waitForOne(remote) : waitForAll(remote);
}

async function waitForOne({ hub, values, json, words: [taskId = ""] }: Remote): Promise<number> {
  const seconds = values.seconds("timeout");
  // Fails if the hub or the task does not exist; the next call would wait for a hub that is away.
  const now = await hub.tasks.get({ task_id: taskId });
  const isOver = now.task.status === "completed" || now.task.status === "failed";
  const { task } = isOver
    ? now
    : await hub.tasks.get(
        { task_id: taskId, wait: seconds ?? FOR_EVER_S },
        { retry: { forMs: (seconds ?? FOR_EVER_S) * 1_000 } },
      );
  if (json || values.has("full")) show(task, json);
  else if (task.result !== null) showResult(task.result);
  if (task.status === "completed") return EXIT.OK;
  if (task.status !== "failed") {
    printError(`after ${values.text("timeout")} the task is still ${task.status}`);
    return EXIT.TIMED_OUT;
  }
  const { kind, message } = task.failure ?? { kind: "failed", message: null };
  printError(`the task failed: ${kind}${message === null ? "" : `: ${message}`}`);
  return EXIT.FAILED;
}

/** Only those that end count for the exit code. */
async function waitForAll({ hub, values, json, words }: Remote): Promise<number> {
  const seconds = values.seconds("timeout");
  const until = values.has("any") ? "any" : "all";
  const task_ids = words.join();
  const now = await hub.tasks.wait({ task_ids, until }); // fails if the hub or a task does not exist
  const { done, tasks } = now.done
    ? now
    : await hub.tasks.wait(
        { task_ids, until, wait: seconds ?? FOR_EVER_S },
        { retry: { forMs: (seconds ?? FOR_EVER_S) * 1_000 } },
      );
  if (json) printJson(tasks);
  else
    printTable(
      ["TASK", "STATUS", "NODE", "TITLE"],
      tasks.map(({ task_id, status, assigned_node, title }) => [task_id, status, assigned_node, title]),
    );
  const failed = tasks.filter(({ status }) => status === "failed").length;
  if (failed > 0) {
    printError(`${failed} of ${tasks.length} tasks failed`);
    return EXIT.FAILED;
  }
  if (done) return EXIT.OK;
  printError(`after ${values.text("timeout")} not ${until} of the tasks have ended`);
  return EXIT.TIMED_OUT;
}

async function complete(remote: Remote): Promise<number> {
  const {
    hub,
    values,
    json,
    words: [task_id = ""],
  } = remote;
  const node_id = values.needed("node");
  const file = values.needed("result");
  const text = file === "-" ? await readStandardInput() : readTextFile(file);
  const result = objectIn(text, `the result in ${file === "-" ? "standard input" : file}`, "task complete");
  const answer = recordOf(
    await hub.tasks.complete({
      task_id,
      node_id,
      result: result as RequestOf<"task/complete">["result"], // the hub checks its fields
      epoch: values.whole("epoch"),
    }),
  );
  return writeLine(json ? printableJson(answer, 2) : `${task_id}  completed  ${answer.lux_paid} LUX paid`);
}

/** Retries each task and all its dependents, which the hub opens a number at a time. */
function retryAll(remote: Remote): Promise<number> {
  return change(remote, async (task_id) => {
    let opened = 0;
    for (;;) {
      const { task, dependents } = await remote.hub.tasks.retry({ task_id, with_dependents: true });
      opened += dependents?.opened ?? 0;
      // None was opened: what is left fails for another reason, too.
      if (dependents && dependents.left > 0 && dependents.opened > 0) continue;
      if (!remote.json)
        console.error(
          `${opened} ${opened === 1 ? "task that depends" : "tasks that depend"} on it opened again`,
        );
      return { task };
    }
  });
}

function change(
  { words, json }: Remote,
  act: (taskId: string) => Promise<{ readonly task: Task }>,
): Promise<number> {
  return forEach(words, async (taskId) => {
    const { task } = await act(taskId);
    if (json) printJsonLine(task);
    else writeLine(plain(taskLine(task)));
  });
}
