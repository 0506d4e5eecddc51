/**
 * Does one task of `luxhub worker`: fetches its files, runs the command, uploads the command's files, and turns the
 * exit code and the output into a result or an error. Must not: report the task to the hub; the typed client's worker
 * does.
 */
import { isUtf8 } from "node:buffer";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../config.ts";
import { FatalError, type LuxHub, type Task, type TaskContext, type TaskResult } from "../client/index.ts";
import { fitted, resultOf } from "../client/result.ts";
import { TimeLimit } from "../client/time-limit.ts";
import { must } from "../lib/assert.ts";
import { parseExact } from "../lib/exact-json.ts";
import type { Log } from "../lib/log.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { OUT, TooManyFiles, fetchFile, ownName, upload, uploadFiles, writeContext } from "./task-files.ts";
import { ReportFile } from "./worker-report.ts";
import { type Run, runCommand } from "./worker-process.ts";

export type TaskOptions = {
  readonly hub: LuxHub;
  readonly nodeId: string;
  readonly command: readonly string[];
  /** The environment of the command, without the variables of the task. */
  readonly env: Environment;
  /** The parent of each task's directory; null: the command runs in the current one, and no files are transferred. */
  readonly workDir: string | null;
  readonly timeoutMs: number | null;
  readonly graceMs: number;
  /** Whether the hub gets what the command prints while it runs. */
  readonly sendsOutput: boolean;
  readonly log: Log;
};

/** The program of the command has disappeared, or may no longer be run. */
export class CommandMissing extends Error {
  override readonly name = "CommandMissing";
}

/** sysexits(3): the input data is wrong, so a retry is useless. All other codes, EX_TEMPFAIL (75) too, are retried. */
export const EX_DATAERR = 65;
const TASK_DIR = "task-";

/**
 * Does a task.
 * @throws {FatalError} when it failed permanently; {Error} when the attempt failed; the signal's reason when it aborted
 */
export async function doTask(task: Task, context: TaskContext, options: TaskOptions): Promise<TaskResult> {
  const { signal } = context;
  const { command, workDir, hub } = options;
  const dir = workDir === null ? null : mkdtempSync(join(workDir, TASK_DIR));
  try {
    if (dir !== null) {
      await writeContext(context, dir, hub);
      mkdirSync(join(dir, OUT));
      for (const fileId of task.inputs) await fetchFile(fileId, dir, ownName, signal, hub);
    }
    const { inputs, checkpoint, failures, answers, lessons } = context;
    const run = await runForTask(task, context, options, {
      cwd: dir,
      ownPrefix: workDir === null ? join(tmpdir(), "luxhub-") : join(workDir, TASK_DIR),
      prepare: () => ({
        command,
        input: `${JSON.stringify({ ...task, context: { inputs, checkpoint, failures, answers, lessons } })}\n`,
      }),
      isOutputText: true,
    });
    signal.throwIfAborted();
    refuseFailure(run, options.timeoutMs);
    if (dir !== null) await uploadFiles(task, context.epoch, join(dir, OUT), signal, options);
    return await resultOfOutput(task, context, run, options);
  } catch (error) {
    // The command would make them again.
    throw error instanceof TooManyFiles ? new FatalError(error.message, { cause: error }) : error;
  } finally {
    if (dir !== null) removeDir(dir, options.log);
  }
}

/** Removes the directories of tasks that a killed worker left. */
export function cleanWorkDir(dir: string, log: Log): void {
  for (const name of readdirSync(dir)) if (name.startsWith(TASK_DIR)) removeDir(join(dir, name), log);
}

function removeDir(dir: string, log: Log): void {
  try {
    rmSync(dir, { recursive: true, force: true });
  } catch (error) {
    log.warn("a directory of a task could not be removed", { dir, cause: reasonOf(error) });
  }
}

/** A program that runs for a task. */
export type TaskRun = {
  /** Null: the current directory. */
  readonly cwd: string | null;
  /** The beginning of the path of a directory that is made for the run. An agent's sandbox must not let it be written. */
  readonly ownPrefix: string;
  /** Where the report file is made; undefined: in that directory. */
  readonly reportPath?: string | undefined;
  /** Makes what is run, when the path of the report file is known. */
  readonly prepare: (reportPath: string) => {
    readonly command: readonly string[];
    readonly input: string;
    readonly env?: Environment;
  };
  readonly onOutput?: (bytes: Uint8Array) => void;
  /** Whether what it prints is sent to the hub as the output of the attempt. */
  readonly isOutputText: boolean;
};

/**
 * Runs a program for a task, with the variables of the task, and sends its reports to the hub.
 * @throws {CommandMissing} when there is no such program; {Error} when it cannot be started; the signal's reason when it
 * aborted before that
 */
export async function runForTask(
  task: Task,
  context: TaskContext,
  { env, timeoutMs, graceMs, sendsOutput, log }: TaskOptions,
  { cwd, ownPrefix, reportPath, prepare, onOutput, isOutputText }: TaskRun,
): Promise<Run> {
  const { task_id, title, task_type, description } = task;
  const { epoch, signal, answers } = context;
  const onWrong = (reason: string): void => log.warn("a report was not sent", { task: task_id, reason });
  const overtime = new AbortController();
  const limit = new TimeLimit(timeoutMs, () => overtime.abort());
  const asking: TaskContext = {
    ...context,
    ask: async (...asked) => {
      limit.pause();
      try {
        return await context.ask(...asked);
      } finally {
        limit.resume();
      }
    },
  };
  const report = new ReportFile(mkdtempSync(`${ownPrefix}run-`), onWrong, reportPath);
  const { command, input, env: more } = prepare(report.path);
  try {
    report.begin(answers);
    const running = runCommand(command, {
      cwd,
      env: {
        ...env,
        ...more,
        LUXHUB_TASK_ID: task_id,
        LUXHUB_TASK_TITLE: title,
        LUXHUB_TASK_TYPE: task_type ?? "",
        LUXHUB_TASK_DESCRIPTION: description,
        LUXHUB_TASK_EPOCH: String(epoch),
        LUXHUB_REPORT: report.path,
        LUXHUB_ANSWERS: report.answersPath,
      },
      input,
      timeout: overtime.signal,
      graceMs,
      signal,
      onOutput,
      onText: sendsOutput && isOutputText ? context.output : null,
      onErrorLine: (line) => log.info("stderr", { task: task_id, line }),
    });
    limit.resume();
    await report.follow(asking, running);
    return await running;
  } catch (error) {
    signal.throwIfAborted();
    const [program = ""] = command;
    const text = `cannot run ${program}: ${reasonOf(error)}`;
    // Any other fault may be that of this task, or pass.
    const isMissing = ["ENOENT", "EACCES"].includes(codeOf(error)) && Bun.which(program) === null;
    throw isMissing ? new CommandMissing(text, { cause: error }) : new Error(text, { cause: error });
  } finally {
    limit.end();
    report.close();
  }
}

/**
 * Throws the error of a failed run: the last lines of standard error, preceded by the timeout or the signal that ended
 * it.
 */
export function refuseFailure(
  { exitCode, endedBy, isTimedOut, lastLines }: Run,
  timeoutMs: number | null,
): void {
  if (exitCode === 0 && !isTimedOut) return;
  const reason = isTimedOut
    ? `timed out after ${secondsText(must(timeoutMs, "only a task with a timeout times out"))}`
    : exitCode === null
      ? `ended by ${endedBy}`
      : "";
  const said = [reason, lastLines].filter((part) => part !== "").join("\n");
  const text = said === "" ? `exit status ${exitCode}` : said;
  throw exitCode === EX_DATAERR && !isTimedOut ? new FatalError(text) : new Error(text);
}

// ---- The result

/** The JSON object or array that the command printed, or its text as `output`; the hub takes no NUL in a string. */
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

/** Parses a JSON object or array; null for any other text. */
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
