/**
 * The report file of a worker's command (LUXHUB_REPORT): the command appends lines of JSON, `{"note": …}`,
 * `{"checkpoint": …}`, `{"usage": …}` and `{"ask": {"question": …}}`, and the worker sends them to the hub. The answers
 * are in another file (LUXHUB_ANSWERS), which is replaced at each answer. So a command reports and asks without a secret.
 *
 * The file is read through the descriptor with which it was made: what the command puts in its place is not read. Must
 * not: trust a line, or hold more of them than a chunk of the file has.
 */
import { closeSync, mkdtempSync, openSync, readSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sleepUnlessAborted } from "../client/http.ts";
import type { AskOptions, TaskContext, Used } from "../client/index.ts";
import { CHECKPOINT_MAX_BYTES, NOTE_MAX_CHARS, OPEN_QUESTIONS_OF_TASK_MAX } from "../domain/limits.ts";
import { parseExact } from "../lib/exact-json.ts";
import { reasonOf } from "../lib/reason.ts";

const POLL_MS = 500;
/** How long the end of a command waits until its last question has parked the task. */
const PARK_MS = 10_000;
const READ_BYTES = 64 * 1024;
/** A checkpoint with what is around it; its escapes may make it longer than its value. */
const LINE_MAX_BYTES = 2 * CHECKPOINT_MAX_BYTES;
/** What is read of a file: a command that writes without end must not keep the worker from its heartbeats. */
const FILE_MAX_BYTES = 16 * 1024 * 1024;
const NEWLINE = 10;

/** The last note and checkpoint, and all usage, that the command has reported in a chunk; undefined: none. */
type Report = {
  readonly note?: string | undefined;
  readonly checkpoint?: unknown;
  readonly usage?: readonly Used[];
};

/** A question of the command. */
type Asked = { readonly question: string } & AskOptions;
/** What the file of answers has: of `context.answers`, or of a question that the command asked. */
type Answered = { readonly question: string; readonly state: string; readonly answer: unknown };

export class ReportFile {
  readonly path: string;
  /** The questions with their answers: a JSON array. */
  readonly answersPath: string;
  #answers: readonly Answered[] = [];
  readonly #asked: Asked[] = [];
  readonly #dir: string;
  readonly #fd: number;
  readonly #onWrong: (reason: string) => void;
  readonly #chunk = new Uint8Array(READ_BYTES);
  #at = 0;
  /** The beginning of a line that is not complete. */
  #line = new Uint8Array(0);
  #isTooLong = false;
  #isFull = false;
  #isClosed = false;

  /**
   * @param prefix of the directory that is made for the file, and removed by close()
   * @param onWrong hears of a line that is no report, and of a report that the hub refuses
   */
  constructor(prefix: string, onWrong: (reason: string) => void) {
    this.#dir = mkdtempSync(prefix);
    this.path = join(this.#dir, "report");
    this.answersPath = join(this.#dir, "answers.json");
    this.#fd = openSync(this.path, "wx+", 0o600);
    this.#onWrong = onWrong;
  }

  /** Sends reports to the hub until `ended`, and then the rest. Never rejects. */
  async follow(context: TaskContext, ended: Promise<unknown>): Promise<void> {
    const parking: Promise<void>[] = [];
    const over = new AbortController();
    const end = (): void => over.abort();
    ended.then(end, end);
    for (let isRunning = true; isRunning;) {
      isRunning = await sleepUnlessAborted(POLL_MS, over.signal);
      await this.#sendAll(context);
      for (const asked of this.#asked.splice(0)) {
        // A command that has ended waits for no answer; but it may have parked its task by its last words.
        if (!isRunning && asked.park !== true) continue;
        const asking = this.#ask(asked, context);
        if (asked.park === true) parking.push(asking);
      }
    }
    if (parking.length > 0)
      await Promise.race([Promise.all(parking), sleepUnlessAborted(PARK_MS, context.signal)]);
  }

  /** Writes the answers that the command finds when it starts. */
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
    const next = `${this.answersPath}.new`;
    writeFileSync(next, `${JSON.stringify(answers)}\n`, { mode: 0o600 });
    renameSync(next, this.answersPath);
  }

  async #sendAll(context: TaskContext): Promise<void> {
    let last: Report = {};
    for (let report = this.#read(); report !== null; report = this.#read()) {
      const { usage, ...others } = report;
      last = { ...last, ...others };
      if (usage !== undefined) await this.#send({ usage }, context);
    }
    await this.#send(last, context);
  }

  close(): void {
    this.#isClosed = true;
    closeSync(this.#fd);
    rmSync(this.#dir, { recursive: true, force: true });
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

  /** Reads the next chunk; null: there is nothing more now. */
  #read(): Report | null {
    if (this.#at >= FILE_MAX_BYTES) {
      if (!this.#isFull) this.#onWrong(`the report file has ${FILE_MAX_BYTES} bytes, and is read no further`);
      this.#isFull = true;
      return null;
    }
    const bytes = readSync(this.#fd, this.#chunk, 0, READ_BYTES, this.#at);
    if (bytes === 0) return null;
    this.#at += bytes;
    let report: Report = {};
    let rest = this.#chunk.subarray(0, bytes);
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      this.#add(rest.subarray(0, end));
      const { usage = [], ...line } = this.#endLine();
      const all = [...(report.usage ?? []), ...usage];
      report = { ...report, ...line, ...(all.length > 0 && { usage: all }) };
      rest = rest.subarray(end + 1);
    }
    this.#add(rest);
    return report;
  }

  #add(bytes: Uint8Array): void {
    this.#isTooLong ||= this.#line.length + bytes.length > LINE_MAX_BYTES;
    this.#line = this.#isTooLong ? new Uint8Array(0) : Buffer.concat([this.#line, bytes]);
  }

  #endLine(): Report {
    const text = this.#isTooLong ? null : new TextDecoder().decode(this.#line).trim();
    this.#line = new Uint8Array(0);
    this.#isTooLong = false;
    if (text === "") return {};
    const report = text === null ? null : reportIn(text);
    if (report === null)
      this.#onWrong(
        'a line of the report file is no {"note": "text"}, {"checkpoint": JSON}, {"usage": {…}} or {"ask": {"question": "text"}}',
      );
    if (report?.ask && this.#asked.length < OPEN_QUESTIONS_OF_TASK_MAX) this.#asked.push(report.ask);
    return report ?? {};
  }
}

/** Null: the line is no report. */
function reportIn(line: string): (Report & { readonly ask?: Asked }) | null {
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

/** A question as task/ask takes it; the hub checks its other fields. Null: it is none. */
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

/** One step or a list of them; the hub checks their fields. Null: no step. */
function stepsIn(value: unknown): readonly Used[] | null {
  const steps: readonly unknown[] = Array.isArray(value) ? value : [value];
  return steps.every(isObject) ? (steps as readonly Used[]) : null;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
