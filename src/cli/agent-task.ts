/**
 * Does one task of `luxhub worker --agent`: its directory, the program and its session, the result. Must not: report the
 * task to the hub; the typed client's worker does.
 *
 * The directory keeps its path and its content until the task has ended, because programs find a session by the
 * directory in which it began: node-ID/agent-TASK/work. Everything in work/ is the agent's, and may change at any time:
 * no link in it is followed, and nothing is written below it. What the worker writes it makes next to work/, which the
 * agent's sandbox does not let it write, and renames into work/.
 */
import { isUtf8 } from "node:buffer";
import {
  closeSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { firstLineOf, fitted, isSaid, resultOf } from "../client/result.ts";
import { FatalError, type Task, type TaskContext, type TaskResult, WorkerOutage } from "../client/index.ts";
import { assert } from "../lib/assert.ts";
import { DAY_MS, systemClock } from "../lib/clock.ts";
import { parseExact } from "../lib/exact-json.ts";
import type { Log } from "../lib/log.ts";
import { decodeUtf8 } from "../lib/utf8.ts";
import { AgentOutput, type Counters, isCount, isSessionId } from "./agent-output.ts";
import { RESULT_FILE, noResultPrompt, promptOf } from "./agent-prompt.ts";
import { type Agent, argumentsOf, readsPromptFromInput, withHubServer } from "./agents.ts";
import { FILE_FLAGS } from "./output-files.ts";
import { CONTEXT, OUT, fetchFile, upload, uploadFiles, writeContext } from "./task-files.ts";
import type { Run } from "./worker-process.ts";
import {
  EX_DATAERR,
  type TaskOptions,
  dataIn,
  refuseFailure,
  removeDir,
  runForTask,
  withChanges,
  withoutSecrets,
  withoutSecretsIn,
} from "./worker-task.ts";
import { OWN_DIR } from "./repository.ts";
import { type Checkout, inWorktree } from "./task-repository.ts";

const DIR = "agent-";
const INPUTS = "inputs";
const WORK = "work";
/** The beginning of directories that only the worker writes, next to work/. */
const NEW = "new-";
const PROMPT = "prompt.txt";
/** The session and the counters, which the next attempt needs. */
const SESSION = "session";
/** The report file: within the sandbox of the agent. */
const REPORT = ".luxhub-report";
const RESULT_MAX_BYTES = 1024 * 1024;
/** Of tasks that have not ended here the newest directories are kept, none for longer than this. */
const KEPT_MAX = 100;
const KEPT_MS = 7 * DAY_MS;

type Kept = {
  readonly agent: string;
  readonly session: string;
  readonly counters: Counters;
};

/** The longest string among the arguments of a program is 128 KiB on Linux: a longer prompt goes through a file. */
const PROMPT_ARGUMENT_MAX_BYTES = 120 * 1024;
const ANSWER_SHOWN_MAX_CHARS = 1_000;
/** What an error says of a provider that wants fewer requests. */
const RATE_LIMIT = /\b(?:429|529)\b|rate.?limit|too many requests|overloaded|quota|usage limit/i;

/** Runs whose model said something, and how many these were when a task was silent: others work, it does not. */
let spokenRuns = 0;
const silentAt = new Map<string, number>();
const SILENT_TASKS_MAX = 1_000;

/**
 * @throws {FatalError} when it failed permanently; {Error} when the attempt failed; the signal's reason when it aborted
 */
export async function doAgentTask(
  task: Task,
  given: TaskContext,
  agent: Agent,
  options: TaskOptions,
): Promise<TaskResult> {
  const { repository, mask } = options;
  assert(options.workDir !== null, "an agent has a work directory");
  const context = withoutSecrets(given, mask);
  const dir = join(options.workDir, `${DIR}${directoryName(task.task_id)}`);
  const work = join(dir, WORK);
  inUse.add(dir);
  try {
    const about = { task, context, agent, dir, work };
    const result =
      repository === null
        ? await attempt({ ...about, ownDir: work, checkout: null }, options)
        : await inWorktree(task, context, work, repository, options, (checkout) =>
            attempt({ ...about, ownDir: join(work, OWN_DIR), checkout }, options),
          );
    removeDir(dir, options.log);
    return mask.value(result);
  } catch (error) {
    if (error instanceof FatalError) removeDir(dir, options.log);
    throw withoutSecretsIn(error, mask);
  } finally {
    inUse.delete(dir);
    cleanAgentDirs(options.workDir, options.log);
  }
}

const inUse = new Set<string>();

/** Of tasks whose end this worker has not seen; the oldest first. */
export function cleanAgentDirs(workDir: string, log: Log): void {
  const now = systemClock().now();
  const unused = readdirSync(workDir)
    .filter((name) => name.startsWith(DIR))
    .map((name) => join(workDir, name))
    .filter((path) => !inUse.has(path))
    .map((path) => ({ path, modifiedMs: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? now }))
    .toSorted((a, b) => b.modifiedMs - a.modifiedMs);
  unused.forEach(({ path, modifiedMs }, i) => {
    if (i >= KEPT_MAX || now - modifiedMs > KEPT_MS) removeDir(path, log);
  });
}

type Attempt = {
  readonly task: Task;
  readonly context: TaskContext;
  readonly agent: Agent;
  readonly dir: string;
  readonly work: string;
  /** work/ itself or, in a repository, the directory in it that no commit has. */
  readonly ownDir: string;
  readonly checkout: Checkout | null;
};

async function attempt(given: Attempt, options: TaskOptions): Promise<TaskResult> {
  const { task, context, dir, ownDir, checkout } = given;
  const { signal } = context;
  mkdirSync(given.work, { recursive: true, mode: 0o700 });
  const agent = withServerOf(given, options);
  const about = { ...given, agent };
  const files = await fillDirectory(about, options);
  const start = { ...about, files };
  const before = readKept(dir, agent);
  let ran = await runAgent({ ...start, before }, options);
  if (before !== null && ran.isSilent) {
    // As on a new machine, or when the session is too long for the model.
    const reason = ran.output.text("error") ?? firstLineOf(ran.run.lastLines);
    options.log.warn("the session cannot be resumed: a new one begins", { task: task.task_id, reason });
    ran = await runAgent({ ...start, before: null }, options);
    if (ran.isSilent) keep(dir, before);
  }
  refuseRun(ran, task);
  let written = writtenBy(ran, ownDir, agent);
  const runs = [ran];
  const session = readKept(dir, agent);
  if (written === null && session !== null) {
    options.log.info(`the agent left no ${RESULT_FILE}: it is asked once more`, { task: task.task_id });
    ran = await runAgent({ ...start, before: session, prompt: noResultPrompt(pathOf(about)) }, options);
    runs.push(ran);
    refuseRun(ran, task);
    written = writtenBy(ran, ownDir, agent);
  }
  if (written === null) throw noResult(runs);
  if (isSaid(written["ask"])) await checkout?.save();
  await askIfWanted(written, context);
  const { failed, retry, ...fields } = written;
  if (isSaid(failed)) throw retry === false ? new FatalError(failed) : new Error(failed);
  await uploadFiles(task, context.epoch, join(ownDir, OUT), signal, options);
  const author = { agent: { name: agent.name, session: ran.output.text("session") } };
  const result = { ...resultOf(fields, task.title, ran.output.text("answer") ?? ""), ...author };
  const changes = checkout && (await checkout.save());
  const whole = await fitted({ ...result, ...changes }, (content, name, type) =>
    upload(content, name, type, { task_id: task.task_id, epoch: context.epoch }, signal, options),
  );
  if (changes === null) return { ...whole, ...author };
  const others = Object.entries(whole).filter(([name]) => !(name in changes));
  const { problem, improvement, lesson } = whole;
  return withChanges({ ...Object.fromEntries(others), ...author, problem, improvement, lesson }, changes);
}

function withServerOf({ agent, task, dir, work }: Attempt, { mcpServer }: TaskOptions): Agent {
  if (mcpServer === null) return agent;
  const { agent: connected, config } = withHubServer(agent, mcpServer(task.task_id));
  if (agent.mcp?.file === undefined) return connected;
  const [directory, name] = agent.mcp.file;
  const made = mkdtempSync(join(dir, NEW));
  writeFileSync(join(made, name), config, { mode: 0o600 });
  remove(join(work, directory));
  renameSync(made, join(work, directory));
  return connected;
}

type AgentRun = Attempt & {
  readonly files: readonly string[];
  readonly before: Kept | null;
  /** In place of that of the task. */
  readonly prompt?: string;
};

type Ran = {
  readonly run: Run;
  readonly output: AgentOutput;
  /** The run failed before the model said anything: not the fault of the task. */
  readonly isSilent: boolean;
};

async function runAgent(about: AgentRun, options: TaskOptions): Promise<Ran> {
  const { task, context, agent, dir, work, ownDir, files, before, checkout, prompt: given } = about;
  const session = before?.session ?? null;
  const counters = before?.counters ?? {};
  // At once: the worker may be killed.
  const kept = { agent: agent.name, counters };
  const output = new AgentOutput(
    agent.reads,
    (id) => keep(dir, { ...kept, session: id }),
    options.sendsOutput ? context.output : () => {},
  );
  const run = await runForTask(task, context, options, {
    cwd: work,
    ownPrefix: join(dir, NEW),
    reportPath: join(ownDir, REPORT),
    prepare: (reportPath) => {
      const { instructions } = agent;
      const isResumed = session !== null;
      const needsFile = agent.reads.answer !== undefined;
      const [path, repository] = [
        pathOf(about),
        checkout && { branch: checkout.worktree.branch, start: checkout.start },
      ];
      const parts = {
        task,
        context,
        files,
        instructions,
        reportPath,
        isResumed,
        needsFile,
        path,
        repository,
      };
      const prompt = given ?? promptOf(parts);
      const isInput = readsPromptFromInput(agent);
      const argument = isInput ? "" : promptArgument(prompt, about);
      const [program = ""] = options.command;
      const command = [program, ...argumentsOf(agent, argument, session)];
      return { command, input: isInput ? prompt : "", env: agent.env };
    },
    onOutput: (bytes) => output.add(bytes),
    isOutputText: agent.reads.answer === undefined,
  });
  output.end();
  const now = output.text("session");
  const model = agent.model ?? agent.name;
  const usage = output.usage(counters, model);
  const isSilent = canSpeak(agent) && hasFailed(run, output) && !output.hasSpoken(counters);
  if (!isSilent) spokenRuns++;
  // A run without printed usage is not free: its cost is unknown.
  const isUnknown = usage === null && !isSilent && agent.reads.input_tokens !== undefined;
  const used = isUnknown ? { model, input_tokens: 0, output_tokens: 0 } : usage;
  // With the report of the attempt: the cost limit must not lose a result that is there.
  if (used !== null) await context.reportUsage(used, { later: true });
  if (now !== null) keep(dir, { ...kept, session: now, counters: { ...counters, ...output.counters() } });
  options.log.info("the agent ended", {
    task: task.task_id,
    ...(now !== null && { session: now, resumed: session !== null }),
    ...usage,
  });
  context.signal.throwIfAborted();
  return { run, output, isSilent };
}

function promptArgument(prompt: string, { dir, ownDir, work }: Attempt): string {
  if (Buffer.byteLength(prompt) <= PROMPT_ARGUMENT_MAX_BYTES) return prompt;
  const made = join(dir, `${NEW}${PROMPT}`);
  writeFileSync(made, prompt, { mode: 0o600 });
  renameSync(made, join(ownDir, PROMPT));
  return `Your prompt is in the file ${pathOf({ ownDir, work })}${PROMPT} of this directory: read it first, and do what it says.`;
}

/** Its lines can show that a model has produced something. */
function canSpeak({ reads }: Agent): boolean {
  return reads.answer !== undefined || reads.output_tokens !== undefined;
}

/** By itself: no signal and no time limit has ended it. */
function hasFailed({ exitCode, overtime }: Run, output: AgentOutput): boolean {
  const isOver = exitCode !== null && exitCode !== EX_DATAERR && overtime === null;
  return isOver && (exitCode !== 0 || output.text("error") !== null);
}

/**
 * The errors of most programs are in their output, not in standard error.
 * @throws {WorkerOutage} when the model said nothing, unless it does for other tasks
 */
function refuseRun({ run, output, isSilent }: Ran, { task_id }: Task): void {
  const error = output.text("error");
  const parts = [error ?? "", run.lastLines || (error === null ? output.plainText() : "")];
  const lastLines = parts.filter((part) => part !== "").join("\n");
  const silentBefore = silentAt.get(task_id);
  if (!isSilent) silentAt.delete(task_id);
  else if (silentBefore === undefined || silentBefore === spokenRuns) {
    if (silentAt.size >= SILENT_TASKS_MAX) silentAt.clear();
    silentAt.set(task_id, spokenRuns);
    const reason = lastLines === "" ? `exit status ${run.exitCode}` : lastLines;
    throw new WorkerOutage(reason, { isRateLimit: RATE_LIMIT.test(reason) });
  }
  refuseFailure({ ...run, lastLines });
  if (error !== null) throw new Error(error);
}

/** The error of an attempt that ended without a result, with what it lacked, as far as its program says. */
function noResult(runs: readonly Ran[]): Error {
  const lastSaid = (name: "answer" | "denied"): string =>
    runs.map(({ output }) => (output.text(name) ?? "").trim()).findLast((text) => text !== "") ?? "";
  const [answer, denied] = [lastSaid("answer"), lastSaid("denied")];
  const parts = [
    `no_result: the agent ended without ${RESULT_FILE}.`,
    denied === "" ? "" : `It was denied: ${denied}`,
    answer === "" ? "It said nothing." : `Its last message: ${answer.slice(0, ANSWER_SHOWN_MAX_CHARS)}`,
    ...runs.map(({ run }) => Bun.stripANSI(run.lastLines)),
  ];
  return new Error(parts.filter((part) => part !== "").join("\n"));
}

// ---- The directory of a task

/** The agent's own files stay. Returns the names of those in inputs/. */
async function fillDirectory(
  { task, context, dir, ownDir }: Attempt,
  { hub }: TaskOptions,
): Promise<readonly string[]> {
  // Of a worker that was killed; below work/ also of an older version.
  for (const name of readdirSync(dir)) if (name.startsWith(NEW)) remove(join(dir, name));
  for (const name of readdirSync(ownDir)) if (name.startsWith(REPORT)) remove(join(ownDir, name));
  remove(join(ownDir, RESULT_FILE));
  const made = mkdtempSync(join(dir, NEW));
  await writeContext(context, made, hub);
  mkdirSync(join(made, INPUTS));
  const files: string[] = [];
  // With a number: programs take files of certain names for instructions of their user.
  for (const [i, fileId] of task.inputs.entries())
    files.push(
      await fetchFile(fileId, join(made, INPUTS), (name) => `${i + 1}-${name}`, context.signal, hub),
    );
  for (const name of [CONTEXT, INPUTS]) {
    remove(join(ownDir, name));
    renameSync(join(made, name), join(ownDir, name)); // fails if the agent has put anything there meanwhile
  }
  remove(made);
  if (!lstatSync(join(ownDir, OUT), { throwIfNoEntry: false })?.isDirectory()) {
    remove(join(ownDir, OUT));
    mkdirSync(join(ownDir, OUT));
  }
  return files;
}

/** Where the agent finds the files of the worker, from the directory in which it runs. */
function pathOf({ ownDir, work }: Pick<Attempt, "ownDir" | "work">): string {
  return ownDir === work ? "" : `${OWN_DIR}/`;
}

function remove(path: string): void {
  rmSync(path, { recursive: true, force: true });
}

function directoryName(taskId: string): string {
  if (/^[\w-]{1,128}$/.test(taskId)) return taskId;
  throw new Error(`the task id ${JSON.stringify(taskId)} is not a valid directory name`);
}

function keep(dir: string, kept: Kept): void {
  writeFileSync(join(dir, SESSION), JSON.stringify(kept), { mode: 0o600 });
}

function readKept(dir: string, agent: Agent): Kept | null {
  if (agent.resume === null) return null;
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(join(dir, SESSION), "utf8"));
  } catch {
    return null; // the first attempt here, or the worker was killed while it wrote
  }
  if (typeof value !== "object" || value === null) return null;
  const { agent: name, session, counters }: Record<string, unknown> = { ...value };
  if (name !== agent.name || typeof session !== "string" || !isSessionId(session)) return null;
  const entries = typeof counters === "object" && counters !== null ? Object.entries(counters) : [];
  return {
    agent: name,
    session,
    counters: Object.fromEntries(entries.filter(([, n]) => isCount(n))),
  };
}

// ---- The result

/**
 * The task goes back to the hub until somebody answers. @throws {Error} when it asks what is answered already; the
 * signal's reason when the task was given back
 */
async function askIfWanted({ ask, choices }: Written, context: TaskContext): Promise<void> {
  if (!isSaid(ask)) return;
  const given = Array.isArray(choices) ? choices.filter(isSaid) : undefined;
  await context.reportUsage([]); // what was kept for the report, of which there is none
  await context.ask(ask, { choices: given, park: true });
  throw new Error(`the agent asked again what is answered already: ${ask}`);
}

type Written = Readonly<Record<string, unknown>>;

/**
 * result.json, or an answer that is such an object; of a program that prints its answer as text, that text. Null: no
 * result.
 */
function writtenBy({ run, output }: Ran, ownDir: string, agent: Agent): Written | null {
  const written = readResultFile(join(ownDir, RESULT_FILE));
  if (written !== null) return written;
  const isText = agent.reads.answer === undefined;
  const answer = (isText ? printedBy(run) : (output.text("answer") ?? "")).trim();
  const data = dataIn(/^```(?:json)?\n([^]*)\n```$/.exec(answer)?.[1] ?? answer);
  if (data !== null && ANSWER_FIELDS.some((field) => field in data)) return { ...data };
  return isText && answer !== "" ? { output: answer } : null;
}

/** @throws {Error} when it has bytes that no result can have, or not all of them were kept */
function printedBy({ output, outputBytes }: Run): string {
  const data = `put data into ${OUT}/`;
  if (outputBytes > output.length) throw new Error(`the agent has printed ${outputBytes} bytes: ${data}`);
  if (!isUtf8(output)) throw new Error(`what the agent has printed is not UTF-8: ${data}`);
  return decodeUtf8(output);
}

const ANSWER_FIELDS = ["improvement", "output", "failed", "ask"] as const;

/** @throws {Error} when it is not a JSON object */
function readResultFile(path: string): Written | null {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) return null;
  const fd = openSync(path, FILE_FLAGS);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile() || stat.size > RESULT_MAX_BYTES)
      throw new Error(`${RESULT_FILE} is larger than ${RESULT_MAX_BYTES} bytes: put data into ${OUT}/`);
    const value = parseExact(decodeUtf8(readFileSync(fd)));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch (error) {
    if (error instanceof SyntaxError) throw new Error(`${RESULT_FILE} is not JSON: ${error.message}`);
    throw error instanceof TypeError ? new Error(`${RESULT_FILE} is not UTF-8`) : error;
  } finally {
    closeSync(fd);
  }
  throw new Error(`${RESULT_FILE} must be a JSON object`);
}
