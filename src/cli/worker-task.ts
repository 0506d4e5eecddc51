/**
 * Does one task of `luxhub worker`: its files, its command, and what the exit code and the output mean. Must not: report
 * the task to the hub; the typed client's worker does.
 */
import { isUtf8 } from "node:buffer";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../config.ts";
import {
  AttemptStalled,
  FatalError,
  type LuxHub,
  type Task,
  type TaskContext,
  type TaskResult,
} from "../client/index.ts";
import { fitted, resultOf } from "../client/result.ts";
import { TimeLimit } from "../client/time-limit.ts";
import { parseExact } from "../lib/exact-json.ts";
import type { Log } from "../lib/log.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import type { Server } from "./mcp-clients.ts";
import { OUT, TooManyFiles, fetchFile, ownName, upload, uploadFiles, writeContext } from "./task-files.ts";
import { type Around, between, wrapped } from "./around.ts";
import { type Changes, OWN_DIR, type Repository, keepOwnDir } from "./repository.ts";
import type { SecretMask } from "./secret-mask.ts";
import { inWorktree } from "./task-repository.ts";
import { ReportFile } from "./worker-report.ts";
import { type Run, lastLinesOf, runCommand } from "./worker-process.ts";

export type TaskOptions = {
  readonly hub: LuxHub;
  readonly nodeId: string;
  readonly command: readonly string[];
  /** Without the variables of the task. */
  readonly env: Environment;
  /** Of each task's directory; null: the command runs in the current one, and no files are transferred. */
  readonly workDir: string | null;
  /** Of the worker alone, for what a run needs where there is no workDir. */
  readonly runsDir: string;
  readonly timeoutMs: number | null;
  /** An attempt that is silent for so long has stalled; null: no limit. */
  readonly idleMs: number | null;
  readonly graceMs: number;
  /** Whether the hub gets what the command prints while it runs. */
  readonly sendsOutput: boolean;
  /** The repository in which the tasks work; null: they do not. */
  readonly repository: Repository | null;
  /** The MCP server of the hub for the agent of a task; null: it gets none. */
  readonly mcpServer: ((taskId: string) => Server) | null;
  readonly around: Around;
  readonly mask: SecretMask;
  readonly log: Log;
};

/** The program has disappeared, or may no longer be run. */
export class CommandMissing extends Error {
  override readonly name = "CommandMissing";
}

/** sysexits(3): the input data is wrong, so a retry is useless. */
export const EX_DATAERR = 65;
const TASK_DIR = "task-";
const WORKTREE = "work";
const STALLED = "stalled";
const REPORT = ".luxhub-report";

/**
 * @throws {FatalError} when it failed permanently; {Error} when the attempt failed; the signal's reason when it aborted
 */
export async function doTask(task: Task, given: TaskContext, options: TaskOptions): Promise<TaskResult> {
  const { workDir, repository, mask } = options;
  const context = withoutSecrets(given, mask);
  const dir = workDir === null ? null : mkdtempSync(join(workDir, TASK_DIR));
  try {
    if (repository === null || dir === null)
      return mask.value(await attempt(task, context, dir, dir, options));
    const path = join(dir, WORKTREE);
    return await inWorktree(task, context, path, repository, options, async ({ save }) => {
      const result = await attempt(task, context, path, join(path, OWN_DIR), options);
      return mask.value(withChanges(result, await save()));
    });
  } catch (error) {
    throw withoutSecretsIn(error, mask);
  } finally {
    if (dir !== null) removeDir(dir, options.log);
  }
}

/** In `cwd`, with the files of the task in `dir`; null: in the current directory, without files. */
async function attempt(
  task: Task,
  context: TaskContext,
  cwd: string | null,
  dir: string | null,
  options: TaskOptions,
): Promise<TaskResult> {
  const { signal } = context;
  const { command, workDir, hub, runsDir } = options;
  try {
    if (dir !== null) {
      await writeContext(context, dir, hub);
      mkdirSync(join(dir, OUT));
      for (const fileId of task.inputs) await fetchFile(fileId, dir, ownName, signal, hub);
    }
    const { inputs, checkpoint, failures, answers, lessons } = context;
    const run = await runForTask(task, context, options, {
      cwd,
      ownPrefix: join(workDir ?? runsDir, TASK_DIR),
      // A sandbox may let the command write nowhere else.
      reportPath: dir !== null && options.around.wrap.length > 0 ? join(dir, REPORT) : undefined,
      prepare: () => ({
        command,
        input: `${JSON.stringify({ ...task, context: { inputs, checkpoint, failures, answers, lessons } })}\n`,
      }),
      isOutputText: true,
    });
    signal.throwIfAborted();
    refuseFailure(run);
    if (dir !== null) await uploadFiles(task, context.epoch, join(dir, OUT), signal, options);
    return await resultOfOutput(task, context, run, options);
  } catch (error) {
    // The command would make them again.
    throw error instanceof TooManyFiles ? new FatalError(error.message, { cause: error }) : error;
  }
}

/** No secret of the worker goes through it to the hub. */
export function withoutSecrets(context: TaskContext, mask: SecretMask): TaskContext {
  if (mask.isEmpty) return context;
  return {
    ...context,
    extend: (note) => context.extend(note === undefined ? note : mask.text(note)),
    saveCheckpoint: (data) => context.saveCheckpoint(mask.value(data)),
    reportUsage: (usage, reportOptions) => context.reportUsage(mask.value(usage), reportOptions),
    ask: (question, askOptions) => context.ask(mask.text(question), mask.value(askOptions)),
  };
}

/** Its text goes to the hub. */
export function withoutSecretsIn(error: unknown, mask: SecretMask): unknown {
  if (error instanceof Error && !mask.isEmpty) {
    const text = mask.text(error.message);
    if (text !== error.message) error.message = text;
  }
  return error;
}

/** What the attempt has changed, and as `answer` what it has put out itself; the hub looks for a verdict beside that. */
export function withChanges(result: TaskResult, changes: Changes): TaskResult {
  const { output, ...others } = result;
  const { verdict, note }: Record<string, unknown> = Object(output);
  const ofReview = verdict === undefined ? {} : { verdict, note };
  return { ...ofReview, ...others, output: { ...changes, ...(output !== undefined && { answer: output }) } };
}

/** Removes the directories of tasks that a killed worker left. */
export function cleanWorkDir(dir: string, log: Log): void {
  for (const name of readdirSync(dir)) if (name.startsWith(TASK_DIR)) removeDir(join(dir, name), log);
}

export function removeDir(dir: string, log: Log): void {
  try {
    rmSync(dir, { recursive: true, force: true });
  } catch (error) {
    log.warn("a directory of a task could not be removed", { dir, cause: reasonOf(error) });
  }
}

export type TaskRun = {
  /** Null: the current directory. */
  readonly cwd: string | null;
  /** Of a directory that is made for the run, which an agent's sandbox must not let it write. */
  readonly ownPrefix: string;
  /** Undefined: in that directory. */
  readonly reportPath?: string | undefined;
  /** Called when the path of the report file is known. */
  readonly prepare: (reportPath: string) => {
    readonly command: readonly string[];
    readonly input: string;
    readonly env?: Environment;
  };
  readonly onOutput?: (bytes: Uint8Array) => void;
  /** It is sent to the hub as the output of the attempt. */
  readonly isOutputText: boolean;
};

function variablesOf(task: Task, epoch: number): Environment {
  const { task_id, title, task_type, description, traceparent, tracestate } = task;
  return {
    LUXHUB_TASK_ID: task_id,
    LUXHUB_TASK_TITLE: title,
    LUXHUB_TASK_TYPE: task_type ?? "",
    LUXHUB_TASK_DESCRIPTION: description,
    LUXHUB_TASK_EPOCH: String(epoch),
    TRACEPARENT: traceparent, // without one not that of whoever started the worker
    TRACESTATE: tracestate,
  };
}

/**
 * With the variables of the task and what the operator puts around it; sends its reports to the hub. @throws
 * {CommandMissing} when there is no such program; {Error} when it cannot be started; the signal's reason when it aborted
 * before that
 */
export function runForTask(
  task: Task,
  context: TaskContext,
  options: TaskOptions,
  taskRun: TaskRun,
): Promise<Run> {
  const { around, idleMs, graceMs, mask, log } = options;
  const { cwd } = taskRun;
  const env = { ...options.env, ...variablesOf(task, context.epoch) };
  const place = { cwd, env, idleMs, graceMs, mask, log, taskId: task.task_id };
  return between(around, place, context.signal, () => runWithReport(task, context, options, taskRun));
}

async function runWithReport(
  task: Task,
  context: TaskContext,
  { env, timeoutMs, idleMs, graceMs, sendsOutput, around, repository, mask, log }: TaskOptions,
  { cwd, ownPrefix, reportPath, prepare, onOutput, isOutputText }: TaskRun,
): Promise<Run> {
  const { task_id } = task;
  const { epoch, signal, answers } = context;
  const onWrong = (reason: string): void => log.warn("a report was not sent", { task: task_id, reason });
  const overtime = new AbortController();
  const limit = new TimeLimit(timeoutMs, () =>
    overtime.abort(`timed out after ${secondsText(timeoutMs ?? 0)}`),
  );
  const idle = new TimeLimit(idleMs, () =>
    overtime.abort(`${STALLED}: no output, note, usage or question for ${secondsText(idleMs ?? 0)}`),
  );
  const heard =
    <A extends readonly unknown[], R>(call: (...given: A) => R) =>
    (...given: A): R => {
      idle.restart();
      return call(...given);
    };
  const asking: TaskContext = {
    ...context,
    extend: heard(context.extend),
    saveCheckpoint: heard(context.saveCheckpoint),
    reportUsage: heard(context.reportUsage),
    ask: async (...question) => {
      limit.pause();
      idle.pause();
      try {
        return await context.ask(...question);
      } finally {
        limit.resume();
        idle.resume();
      }
    },
  };
  const report = new ReportFile(mkdtempSync(`${ownPrefix}run-`), onWrong, reportPath);
  const { command, input, env: runEnv } = prepare(report.path);
  const [program = ""] = around.wrap.length > 0 ? around.wrap : command;
  try {
    report.begin(answers);
    const running = runCommand(wrapped(command, around, cwd ?? process.cwd(), repository?.commonDir ?? ""), {
      cwd,
      env: {
        ...env,
        ...runEnv,
        ...variablesOf(task, epoch),
        LUXHUB_REPORT: report.path,
        LUXHUB_ANSWERS: report.answersPath,
      },
      input,
      timeout: overtime.signal,
      graceMs,
      signal,
      onOutput,
      onActivity: () => idle.restart(),
      onText: sendsOutput && isOutputText ? context.output : null,
      onErrorLine: (line) => log.info("stderr", { task: task_id, line }),
      mask,
    });
    limit.resume();
    idle.resume();
    await report.follow(asking, running);
    return await running;
  } catch (error) {
    signal.throwIfAborted();
    const text = `cannot run ${program}: ${reasonOf(error)}`;
    // Another fault may be this task's, or pass.
    const isMissing = ["ENOENT", "EACCES"].includes(codeOf(error)) && Bun.which(program) === null;
    throw isMissing ? new CommandMissing(text, { cause: error }) : new Error(text, { cause: error });
  } finally {
    limit.end();
    idle.end();
    report.close();
    if (repository !== null && cwd !== null) keepOwnDir(cwd);
  }
}

/** The last lines of standard error, preceded by the time limit or the signal that ended the run. */
export function refuseFailure({ exitCode, endedBy, overtime, lastLines, output }: Run): void {
  if (exitCode === 0 && overtime === null) return;
  const reason = overtime ?? (exitCode === null ? `ended by ${endedBy}` : "");
  // Many programs say on standard output why they fail.
  const lines = lastLines === "" ? lastLinesOf(output) : lastLines;
  const text = [reason, lines].filter((part) => part !== "").join("\n") || `exit status ${exitCode}`;
  if (overtime?.startsWith(STALLED)) throw new AttemptStalled(text);
  throw exitCode === EX_DATAERR && overtime === null ? new FatalError(text) : new Error(text);
}

// ---- The result

/** The JSON object or array that was printed, or the text as `output`; the hub takes no NUL in a string. */
function resultOfOutput(
  task: Task,
  { epoch, signal }: TaskContext,
  { output, outputBytes }: Run,
  options: TaskOptions,
): Promise<TaskResult> {
  const text = new TextDecoder().decode(output).replaceAll("\0", "\ufffd");
  const value = outputBytes > output.length ? null : dataIn(text);
  return fitted(
    resultOf(value ?? text.trimEnd(), task.title),
    (content, name, type) => upload(content, name, type, { task_id: task.task_id, epoch }, signal, options),
    { bytes: output, total: outputBytes, isText: isUtf8(output) && !output.includes(0) },
  );
}

/** Null for any other text. */
export function dataIn(text: string): object | null {
  try {
    const value = parseExact(text);
    return typeof value === "object" && /^\s*[[{]/.test(text) ? value : null;
  } catch {
    return null;
  }
}

function secondsText(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`;
}
