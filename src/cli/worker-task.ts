/**
 * Does one task of `luxhub worker`: fetches its files, runs the command, uploads the command's files, and turns the
 * exit code and the output into a result or an error. Must not: report the task to the hub; the typed client's worker
 * does.
 */
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../config.ts";
import {
  FatalError,
  HubUnreachable,
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
import { fileNameFrom, pipeToSink } from "./file.ts";
import { outputFilesIn } from "./output-files.ts";
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
const EX_DATAERR = 65;
/** The worker waits for an unavailable hub, however long. */
const FOREVER = { forMs: Number.POSITIVE_INFINITY };
const PAUSE_MS = 1_000;
const TASK_DIR = "task-";
export const OUT = "out";
export const CONTEXT = "context";

/**
 * Does a task.
 * @throws {FatalError} when it failed permanently; {Error} when the attempt failed; the signal's reason when it aborted
 */
export async function doTask(task: Task, context: TaskContext, options: TaskOptions): Promise<TaskResult> {
  const { signal } = context;
  const { command, workDir } = options;
  const dir = workDir === null ? null : mkdtempSync(join(workDir, TASK_DIR));
  try {
    if (dir !== null) {
      await writeContext(context, dir);
      mkdirSync(join(dir, OUT));
      await fetchFiles(task, dir, signal, options.hub);
    }
    const { inputs, checkpoint, failures, answers, lessons } = context;
    const run = await runForTask(task, context, options, {
      cwd: dir,
      reportPrefix: workDir === null ? join(tmpdir(), "luxhub-") : join(workDir, TASK_DIR),
      prepare: () => ({
        command,
        input: `${JSON.stringify({ ...task, context: { inputs, checkpoint, failures, answers, lessons } })}\n`,
      }),
      isOutputText: true,
    });
    signal.throwIfAborted();
    refuseFailure(run, options.timeoutMs);
    if (dir !== null) await uploadFiles(task, join(dir, OUT), signal, options);
    return await resultOfOutput(task, run, signal, options);
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
  /** The beginning of the path of the report file. */
  readonly reportPrefix: string;
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
  { cwd, reportPrefix, prepare, onOutput, isOutputText }: TaskRun,
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
  const report = new ReportFile(`${reportPrefix}report-`, onWrong);
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
    ? `timed out after ${secondsText(timeoutMs ?? 0)}`
    : exitCode === null
      ? `ended by ${endedBy}`
      : "";
  const said = [reason, lastLines].filter((part) => part !== "").join("\n");
  const text = said === "" ? `exit status ${exitCode}` : said;
  throw exitCode === EX_DATAERR && !isTimedOut ? new FatalError(text) : new Error(text);
}

// ---- Files

/**
 * Writes context/inputs/1.json, 2.json, … in the order of `depends_on`, and context/checkpoint.json and
 * context/answers.json and context/lessons.json if there are any.
 */
export async function writeContext(
  { inputs, checkpoint, answers, lessons }: TaskContext,
  dir: string,
): Promise<void> {
  const own = join(dir, CONTEXT);
  for (const [i, input] of inputs.entries())
    await Bun.write(join(own, "inputs", `${i + 1}.json`), `${JSON.stringify(input)}\n`);
  if (checkpoint !== undefined)
    await Bun.write(join(own, "checkpoint.json"), `${JSON.stringify(checkpoint)}\n`);
  if (lessons.length > 0) await Bun.write(join(own, "lessons.json"), `${JSON.stringify(lessons)}\n`);
  if (answers.length > 0) await Bun.write(join(own, "answers.json"), `${JSON.stringify(answers)}\n`);
}

/** Downloads the task's inputs into the directory, under their names; the outputs of earlier attempts are no inputs. */
async function fetchFiles({ inputs }: Task, dir: string, signal: AbortSignal, hub: LuxHub): Promise<void> {
  const taken = new Set([OUT, CONTEXT]);
  const nameOf = (fileId: string, given: string): string => {
    const unique = taken.has(given) ? `${fileId}-${given}` : given;
    return isFileName(unique) ? unique : fileId;
  };
  for (const fileId of inputs) taken.add(await fetchFile(fileId, dir, nameOf, signal, hub));
}

/** Downloads one file, and again when the connection broke. Returns its name. */
export async function fetchFile(
  fileId: string,
  dir: string,
  nameOf: (fileId: string, given: string) => string,
  signal: AbortSignal,
  hub: LuxHub,
): Promise<string> {
  if (!/^[\w-]+$/.test(fileId)) throw new Error(`the file id ${fileId} is not a valid file name`);
  for (;;) {
    try {
      return await download(fileId, dir, nameOf, signal, hub);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof HubUnreachable)) throw error;
      await Bun.sleep(PAUSE_MS); // the connection broke
    }
  }
}

/** Downloads a file and returns its name. @throws {HubUnreachable} when bytes are missing */
async function download(
  fileId: string,
  dir: string,
  nameOf: (fileId: string, given: string) => string,
  signal: AbortSignal,
  hub: LuxHub,
): Promise<string> {
  const { headers, body } = await hub.files.download({ file_id: fileId }, { signal, retry: FOREVER });
  const name = nameOf(fileId, fileNameFrom(headers.get("content-disposition"), fileId));
  const path = join(dir, name);
  await Bun.write(path, "");
  const bytes = body ? await pipeToSink(body, Bun.file(path).writer()) : 0;
  if (bytes !== Number(headers.get("content-length") ?? bytes))
    throw new HubUnreachable(`the download of ${fileId} broke off after ${bytes} bytes`);
  return name;
}

/** The limit of most file systems. */
const NAME_MAX_BYTES = 255;

export function isFileName(name: string): boolean {
  return Buffer.byteLength(name) <= NAME_MAX_BYTES;
}

/** Uploads the regular files below a directory. The hub stores no paths: a directory's name is put before its files'. */
export async function uploadFiles(
  task: Task,
  out: string,
  signal: AbortSignal,
  options: TaskOptions,
): Promise<void> {
  if (!lstatSync(out, { throwIfNoEntry: false })) return; // the command removed it
  const skipped: string[] = [];
  for await (const { path, content } of outputFilesIn(out, (other) => skipped.push(other)))
    await upload(content, path.replaceAll("/", "-"), Bun.file(path).type, task, signal, options);
  const [first] = skipped;
  if (first !== undefined)
    options.log.warn("did not upload symbolic links and special files of out/", {
      task: task.task_id,
      skipped: skipped.length,
      first,
    });
}

export async function upload(
  content: Parameters<LuxHub["files"]["upload"]>[0],
  name: string,
  type: string,
  { task_id }: Task,
  signal: AbortSignal,
  { hub, nodeId, log }: TaskOptions,
): Promise<string> {
  const about = { name, type, metadata: { task_id, node: nodeId } };
  const { file_id, size } = await hub.files.upload(content, about, { signal, retry: FOREVER });
  log.info("uploaded", { task: task_id, name, bytes: size, file: file_id });
  return file_id;
}

// ---- The result

/** The JSON object or array that the command printed, or its text as `output`. */
function resultOfOutput(
  task: Task,
  { output, outputBytes }: Run,
  signal: AbortSignal,
  options: TaskOptions,
): Promise<TaskResult> {
  const text = new TextDecoder().decode(output).replaceAll("\0", "\ufffd");
  const value = outputBytes > output.length ? null : dataIn(text);
  return fitted(
    resultOf(value ?? text.trimEnd(), task.title),
    (content, name, type) => upload(content, name, type, task, signal, options),
    { bytes: output, total: outputBytes },
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
