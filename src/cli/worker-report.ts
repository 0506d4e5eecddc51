/**
 * The report file of a worker's command (LUXHUB_REPORT): the command appends lines of JSON, `{"note": …}`,
 * `{"checkpoint": …}`, `{"usage": …}` and `{"ask": {"question": …}}`, and the worker sends them to the hub. The answers
 * are in another file (LUXHUB_ANSWERS), which is replaced at each answer.
 *
 * The report file is opened by its path each time, because the tools of AI agents replace a file or write it anew. Of a
 * file that is not the continuation of what was read, each usage and question that was not there yet counts, and the
 * last note and checkpoint. Must not: trust a line, follow a link, or write where the command can put one.
 */
import { isUtf8 } from "node:buffer";
import { closeSync, fstatSync, openSync, readSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sleepUnlessAborted } from "../client/http.ts";
import type { AskOptions, TaskContext, Used } from "../client/index.ts";
import {
  CHECKPOINT_MAX_BYTES,
  NOTE_MAX_CHARS,
  OPEN_QUESTIONS_OF_TASK_MAX,
  USAGE_OF_TASK_MAX,
} from "../domain/limits.ts";
import { parseExact } from "../lib/exact-json.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { decodeUtf8 } from "../lib/utf8.ts";
import { DIRECTORY_FLAGS, FILE_FLAGS, pathOfOpen } from "./output-files.ts";

const POLL_MS = 500;
/** The end of a command waits so long until its last question has parked the task. */
const PARK_MS = 10_000;
/** A checkpoint with what is around it; escapes may make it longer than its value. */
const LINE_MAX_BYTES = 2 * CHECKPOINT_MAX_BYTES;
/** A command that writes without end must not keep the worker from its heartbeats. */
const FILE_MAX_BYTES = 16 * 1024 * 1024;
/** Usage, questions, and wrong lines. */
const COUNTED_MAX = USAGE_OF_TASK_MAX;
const NEWLINE = 10;

/** The last note and checkpoint, and all usage, that the command has reported since the last look; undefined: none. */
type Report = {
  readonly note?: string | undefined;
  readonly checkpoint?: unknown;
  readonly usage?: readonly Used[] | undefined;
};

type Asked = { readonly question: string } & AskOptions;
type Line = Report & { readonly ask?: Asked };
/** Of `context.answers`, or of a question that the command asked. */
type Answered = { readonly question: string; readonly state: string; readonly answer: unknown };

export class ReportFile {
  readonly path: string;
  /** A JSON array of questions with their answers. */
  readonly answersPath: string;
  readonly #dir: string;
  /** Open on Linux, so that nobody can put a link in its place. */
  readonly #dirFd: number | null;
  readonly #onWrong: (reason: string) => void;
  #answers: readonly Answered[] = [];
  readonly #questions: Asked[] = [];
  /** At the last look: the file's identity, and what was read of it. */
  #state = "";
  #at = 0;
  #hash = Bun.hash("");
  #sent: Report = {};
  /** How often each line that counts once was there: in the file as it is, and at most. */
  #lines = new Map<string, number>();
  readonly #counted = new Map<string, number>();
  readonly #limits = new Set<string>();
  #isClosed = false;

  /**
   * @param dir an empty directory for the files, which close() removes @param onWrong hears of a line that is no report,
   * and of a report that the hub refuses
   */
  constructor(dir: string, onWrong: (reason: string) => void, path = join(dir, "report")) {
    this.#dir = dir;
    this.path = path;
    this.answersPath = join(dir, "answers.json");
    this.#onWrong = onWrong;
    writeFileSync(path, "", { flag: "wx", mode: 0o600 });
    this.#dirFd = process.platform === "linux" ? openSync(dir, DIRECTORY_FLAGS) : null;
  }

  /** Until `ended`, and then the rest. Never rejects. */
  async follow(context: TaskContext, ended: Promise<unknown>): Promise<void> {
    const parking: Promise<void>[] = [];
    const over = new AbortController();
    const end = (): void => over.abort();
    ended.then(end, end);
    for (let isRunning = true; isRunning;) {
      isRunning = await sleepUnlessAborted(POLL_MS, over.signal);
      await this.#sendAll(context, !isRunning);
      for (const question of this.#questions.splice(0)) {
        // A command that has ended waits for no answer; but it may have parked its task by its last words.
        if (!isRunning && question.park !== true) continue;
        const asking = this.#ask(question, context);
        if (question.park === true) parking.push(asking);
      }
    }
    if (parking.length > 0)
      await Promise.race([Promise.all(parking), sleepUnlessAborted(PARK_MS, context.signal)]);
  }

  begin(answers: readonly Answered[]): void {
    this.#write(answers);
  }

  async #ask({ question, ...options }: Asked, { signal, ask }: TaskContext): Promise<void> {
    try {
      const answer = await ask(question, options);
      const state = answer === null ? "timed_out" : "answered";
      this.#write([...this.#answers, { question, state, answer }]);
    } catch (error) {
      if (!signal.aborted && !this.#isClosed) this.#onWrong(reasonOf(error));
    }
  }

  #write(answers: readonly Answered[]): void {
    if (this.#isClosed) return;
    this.#answers = answers;
    const dir = this.#dirFd === null ? this.#dir : pathOfOpen(this.#dirFd, this.#dir);
    const target = join(dir, "answers.json");
    rmSync(`${target}.new`, { force: true });
    writeFileSync(`${target}.new`, `${JSON.stringify(answers)}\n`, { flag: "wx", mode: 0o600 });
    renameSync(`${target}.new`, target);
  }

  async #sendAll(context: TaskContext, isLast: boolean): Promise<void> {
    const { usage, ...last } = this.#read(isLast);
    await this.#send({ usage }, context);
    await this.#send(last, context);
  }

  close(): void {
    this.#isClosed = true;
    if (this.#dirFd !== null) closeSync(this.#dirFd);
    for (const path of [this.path, this.#dir]) rmSync(path, { recursive: true, force: true });
  }

  async #send(
    { note, checkpoint, usage }: Report,
    { signal, extend, saveCheckpoint, reportUsage }: TaskContext,
  ): Promise<void> {
    try {
      if (usage !== undefined && !signal.aborted) await reportUsage(usage);
      if (note !== undefined && !signal.aborted) await extend(note);
      if (checkpoint !== undefined && !signal.aborted) await saveCheckpoint(checkpoint);
    } catch (error) {
      if (!signal.aborted) this.#onWrong(reasonOf(error)); // a lost task aborts the signal
    }
  }

  /** `isLast`: the command has ended, and the last line may lack its end. */
  #read(isLast: boolean): Report {
    const bytes = this.#content(isLast);
    if (bytes === null) return {};
    const isContinued = this.#at <= bytes.length && Bun.hash(bytes.subarray(0, this.#at)) === this.#hash;
    if (!isContinued) this.#lines = new Map();
    const from = isContinued ? this.#at : 0;
    const end = Math.max(from, bytes.lastIndexOf(NEWLINE) + 1);
    const lastLine = bytes.subarray(end);
    const isLine = isLast || (lastLine.length <= LINE_MAX_BYTES && lineIn(textOf(lastLine)) !== null);
    const isWhole = isLine && bytes.length < FILE_MAX_BYTES;
    this.#at = isWhole ? bytes.length : end;
    this.#hash = Bun.hash(bytes.subarray(0, this.#at));
    const usage: Used[] = [];
    let last: Report = {};
    for (const line of linesOf(bytes.subarray(from, this.#at))) {
      const { usage: steps, ask, ...others } = this.#lineOf(line);
      last = { ...last, ...others };
      usage.push(...(steps ?? []));
      if (ask === undefined) continue;
      if (this.#questions.length < OPEN_QUESTIONS_OF_TASK_MAX) this.#questions.push(ask);
      else
        this.#onWrong(
          `not asked, because ${OPEN_QUESTIONS_OF_TASK_MAX} questions came before it: ${ask.question}`,
        );
    }
    // A file that was written anew repeats what was sent.
    if (!isContinued && last.note === this.#sent.note) last = { checkpoint: last.checkpoint };
    if (!isContinued && isSame(last.checkpoint, this.#sent.checkpoint)) last = { note: last.note };
    this.#sent = { note: last.note ?? this.#sent.note, checkpoint: last.checkpoint ?? this.#sent.checkpoint };
    return { ...last, ...(usage.length > 0 && { usage }) };
  }

  /** Up to FILE_MAX_BYTES; null: it has not changed, or is not to be read. */
  #content(isLast: boolean): Uint8Array | null {
    let fd: number;
    try {
      fd = openSync(this.path, FILE_FLAGS);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") this.#refuse(`the report file cannot be read: ${reasonOf(error)}`);
      return null; // it is being replaced
    }
    try {
      const stat = fstatSync(fd, { bigint: true });
      if (!stat.isFile() || stat.nlink !== 1n) {
        this.#refuse("the report file is a link or no regular file, and is not read");
        return null;
      }
      const state = [stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join();
      if (state === this.#state && !isLast) return null;
      this.#state = state;
      if (stat.size > FILE_MAX_BYTES)
        this.#refuse(`the report file has ${FILE_MAX_BYTES} bytes, and is read no further`);
      const bytes = new Uint8Array(Math.min(Number(stat.size), FILE_MAX_BYTES));
      return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0));
    } finally {
      closeSync(fd);
    }
  }

  /** Usage and questions count once, also when the file is written anew with them. */
  #lineOf(text: string): Line {
    const line = Buffer.byteLength(text) > LINE_MAX_BYTES ? null : lineIn(text);
    if (line !== null && line.ask === undefined && line.usage === undefined) return line;
    const { ask: _ask, usage: _usage, ...others } = line ?? {};
    const key = String(Bun.hash(text));
    const times = (this.#lines.get(key) ?? 0) + 1;
    this.#lines.set(key, times);
    if (times <= (this.#counted.get(key) ?? 0)) return others;
    if (this.#counted.size >= COUNTED_MAX) {
      this.#refuse(
        `the report file has had ${COUNTED_MAX} lines with usage and questions, and no more are read`,
      );
      return others;
    }
    this.#counted.set(key, times);
    if (line === null)
      this.#onWrong(
        'a line of the report file is no {"note": "text"}, {"checkpoint": JSON}, {"usage": {…}} or {"ask": {"question": "text"}}',
      );
    return line ?? {};
  }

  /** Says once what is not read. */
  #refuse(reason: string): void {
    if (!this.#limits.has(reason)) this.#onWrong(reason);
    this.#limits.add(reason);
  }
}

/** Of bytes that are not UTF-8 a text that is no report: what they stand for must not be sent. */
function textOf(bytes: Uint8Array): string {
  return isUtf8(bytes) ? decodeUtf8(bytes) : "not UTF-8";
}

function linesOf(bytes: Uint8Array): readonly string[] {
  const lines: string[] = [];
  for (let from = 0, end = 0; from < bytes.length; from = end + 1) {
    end = bytes.indexOf(NEWLINE, from);
    if (end === -1) end = bytes.length;
    lines.push(textOf(bytes.subarray(from, end)).trim());
  }
  return lines.filter((line) => line !== "");
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Null: no report. */
function lineIn(line: string): Line | null {
  let value: unknown;
  try {
    value = parseExact(line);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const note = "note" in value ? value.note : undefined;
  const checkpoint = "checkpoint" in value ? (value.checkpoint ?? undefined) : undefined;
  const ask = "ask" in value ? askedIn(value.ask) : undefined;
  const usage = "usage" in value ? stepsIn(value.usage) : undefined;
  if (ask === null || usage === null) return null;
  if ([note, checkpoint, ask, usage].every((part) => part === undefined)) return null;
  if (note !== undefined && (typeof note !== "string" || note.trim() === "")) return null;
  return {
    ...(note !== undefined && { note: note.slice(0, NOTE_MAX_CHARS).toWellFormed() }),
    ...(checkpoint !== undefined && { checkpoint }),
    ...(ask !== undefined && { ask }),
    ...(usage !== undefined && { usage }),
  };
}

/** As task/ask takes it; the hub checks its other fields. Null: no question. */
function askedIn(value: unknown): Asked | null {
  if (typeof value === "string") return value.trim() === "" ? null : { question: value };
  if (typeof value !== "object" || value === null) return null;
  const { question, choices, schema, within_s, park }: Partial<Record<string, unknown>> = { ...value };
  if (typeof question !== "string" || question.trim() === "") return null;
  return {
    question,
    ...(Array.isArray(choices) && { choices: choices.map(String) }),
    ...(typeof schema === "object" && schema !== null && { schema: { ...schema } }),
    ...(typeof within_s === "number" && { within: within_s }),
    ...(park === true && { park }),
  };
}

/** One step or a list; the hub checks their fields. Null: no step. */
function stepsIn(value: unknown): readonly Used[] | null {
  const steps: readonly unknown[] = Array.isArray(value) ? value : [value];
  return steps.every(isObject) ? (steps as readonly Used[]) : null;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
