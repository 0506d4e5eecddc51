/**
 * Does one task of `luxhub worker`: fetches its files, runs the command, uploads the command's files, and turns the
 * exit code and the output into a result or an error. Must not: report the task to the hub; the typed client's worker
 * does.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../config.ts";
import { FatalError, type LuxHub, type Task, type TaskContext, type TaskResult } from "../client/index.ts";
import { TimeLimit } from "../client/time-limit.ts";
import { RESULT_EXTRA_MAX_BYTES, RESULT_TEXT_MAX_BYTES } from "../domain/limits.ts";
import { parseExact } from "../lib/exact-json.ts";
import type { Log } from "../lib/log.ts";
import { reasonOf } from "../lib/reason.ts";
import { OUT, TooManyFiles, fetchFile, ownName, upload, uploadFiles, writeContext } from "./task-files.ts";
import { ReportFile } from "./worker-report.ts";
import { OUTPUT_KEPT_BYTES, type Run, runCommand } from "./worker-process.ts";

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

/** The command cannot be started, whatever the task. */
export class CommandMissing extends Error {
  override readonly name = "CommandMissing";
}

/** sysexits(3): the input data is wrong, so a retry is useless. All other codes, EX_TEMPFAIL (75) too, are retried. */
const EX_DATAERR = 65;
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
    return await resultOf(task, context, run, options);
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
 * @throws {CommandMissing} when it cannot be started; the signal's reason when it aborted before that
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
    throw new CommandMissing(`cannot run ${command[0]}: ${reasonOf(error)}`, { cause: error });
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
    ? `timed out after ${secondsText(timeoutMs ?? 0)}`
    : exitCode === null
      ? `ended by ${endedBy}`
      : "";
  const said = [reason, lastLines].filter((part) => part !== "").join("\n");
  const text = said === "" ? `exit status ${exitCode}` : said;
  throw exitCode === EX_DATAERR && !isTimedOut ? new FatalError(text) : new Error(text);
}

// ---- The result

/**
 * The object that the command printed, or its text as `output`. Uploads an output that is too large as a file.
 */
export async function resultOf(
  task: Task,
  { epoch, signal }: TaskContext,
  run: Run,
  options: TaskOptions,
): Promise<TaskResult> {
  const text = new TextDecoder().decode(run.output).replaceAll("\0", "\ufffd");
  const isWhole = run.outputBytes <= OUTPUT_KEPT_BYTES;
  const object = isWhole ? resultIn(text) : null;
  const { problem, improvement, lesson, ...extra } = object ?? {
    problem: task.title,
    improvement: firstLineOf(text),
    lesson: "none",
    output: text.trimEnd(),
  };
  const texts = { problem, improvement, lesson };
  const isTextFitting = Object.values(texts).every(
    (part) => Buffer.byteLength(part) <= RESULT_TEXT_MAX_BYTES,
  );
  if (isWhole && isTextFitting && bytesOf(extra) <= RESULT_EXTRA_MAX_BYTES) return { ...texts, ...extra };
  const [name, type] = object ? ["output.json", "application/json"] : ["output.txt", "text/plain"];
  const file = await upload(run.output, name, type, { task_id: task.task_id, epoch }, signal, options);
  const missing = isWhole ? "" : ` up to byte ${OUTPUT_KEPT_BYTES}`;
  return {
    problem: cut(problem, RESULT_TEXT_MAX_BYTES),
    improvement: cut(improvement, RESULT_TEXT_MAX_BYTES),
    lesson: cut(lesson, RESULT_TEXT_MAX_BYTES),
    // An object that is too large is not cut: a part of it is not JSON.
    ...(object === null && { output: cut(text, RESULT_EXTRA_MAX_BYTES - NOTE_BYTES) }),
    output_file: file,
    output_note: `The output has ${run.outputBytes} bytes, too many for a result: file ${file} has them${missing}.`,
  };
}

/** Parses a JSON object with the three texts; null for anything else. */
export function resultIn(text: string): TaskResult | null {
  let value: unknown;
  try {
    value = parseExact(text);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const { problem, improvement, lesson, ...extra }: Record<string, unknown> = { ...value };
  return isSaid(problem) && isSaid(improvement) && isSaid(lesson)
    ? { problem, improvement, lesson, ...extra }
    : null;
}

export function isSaid(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

const FIRST_LINE_MAX_CHARS = 1_000;

export function firstLineOf(text: string): string {
  const line = /\S.*/.exec(text)?.[0].trimEnd() ?? "no output";
  return line.length > FIRST_LINE_MAX_CHARS ? `${line.slice(0, FIRST_LINE_MAX_CHARS).toWellFormed()}…` : line;
}

/** Room for output_file and output_note next to a cut output. */
const NOTE_BYTES = 1_024;

/** The size as JSON, which may be longer than the text. */
function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Cuts a text so that it has at most `maxBytes` bytes as JSON. */
function cut(text: string, maxBytes: number): string {
  let end = maxBytes;
  for (;;) {
    const part = end >= text.length ? text : `${text.slice(0, end).toWellFormed()}…`;
    const bytes = bytesOf(part);
    if (bytes <= maxBytes) return part;
    end = Math.floor(Math.min(end, text.length) * Math.min(0.99, maxBytes / bytes));
  }
}

function secondsText(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`;
}
