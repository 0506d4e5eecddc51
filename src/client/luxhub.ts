/**
 * The client of a hub: a method for each operation. The worker is added in index.ts. Must not: cache anything of the hub.
 */
import { type StreamItem, type StreamOptions, readStream } from "./events.ts";
import type { AnswerOf, Arguments, Operation } from "./call.ts";
import { type FileContent, type UploadFields, multipart } from "./upload.ts";
import { type CallOptions, type Fields, LuxHubError, now, sleep } from "./http.ts";
import { type FileRecord, RESOURCES, type Variant } from "./types.ts";
import { refuseUnknownFields } from "./unknown-fields.ts";
import { HubCalls, type HubCallsOptions, keyHeader } from "./hub-calls.ts";

export type * from "./call.ts";
export type * from "./types.ts";
export { type CallOptions, type FieldError, HubUnreachable, LuxHubError, type RetryPolicy } from "./http.ts";
export type { FileContent, UploadFields } from "./upload.ts";
export type { OutputOptions, OutputPart } from "./output-reader.ts";
export type { EventFilter, StreamItem, StreamOptions } from "./events.ts";

export type LuxHubOptions = HubCallsOptions & {
  /**
   * Splits a longer wait into calls of this many seconds, because most proxies cut a connection that is silent for a
   * minute. By default 50; the hub accepts at most 300.
   */
  readonly longestAskS?: number | undefined;
};

type Methods<Names extends Readonly<Record<string, Operation>>, V extends Variant> = {
  readonly [Name in keyof Names]: (...args: Arguments<Names[Name], V>) => Promise<AnswerOf<Names[Name], V>>;
};

/**
 * A hub. Each method takes the fields of the endpoint of the same name, and returns the response. `V` is the variant of
 * the responses: `new LuxHub<"B">(…)` for a listener, or a key, of variant B.
 */
export class LuxHub<V extends Variant = "A"> extends HubCalls<V> {
  readonly #longestAskS: number;

  constructor({ longestAskS = 50, ...options }: LuxHubOptions) {
    super(options);
    this.#longestAskS = longestAskS;
  }

  readonly nodes = this.#methods(RESOURCES.nodes);
  readonly tasks = this.#methods(RESOURCES.tasks);
  readonly messages = this.#methods(RESOURCES.messages);
  readonly notes = this.#methods(RESOURCES.notes);
  readonly leases = this.#methods(RESOURCES.leases);
  readonly lux = this.#methods(RESOURCES.lux);
  /** What is handed out, and what is not. */
  readonly limits = this.#methods(RESOURCES.limits);
  readonly costs = this.#methods(RESOURCES.costs);
  readonly groups = this.#methods(RESOURCES.groups);
  readonly schedules = this.#methods(RESOURCES.schedules);
  readonly webhooks = this.#methods(RESOURCES.webhooks);
  readonly keys = this.#methods(RESOURCES.keys);
  readonly invitations = this.#methods(RESOURCES.invitations);
  readonly files = {
    ...this.#methods(RESOURCES.files),
    upload: (content: FileContent, fields: UploadFields, options?: CallOptions): Promise<FileRecord> =>
      this.#upload(content, fields, options),
    /** Returns the bytes as the body of a response. `range` as in HTTP, for example `bytes=0-1023`. */
    download: (
      file: { readonly file_id: string; readonly range?: string | undefined },
      options?: CallOptions,
    ): Promise<Response> => this.download(file, options),
  };

  /** Turns an invitation into a key. `key_hash`: the SHA-256 of the secret that the caller has made. */
  readonly join = this.#method("join");

  /** Makes a key for a standby, and the line with which its machine joins. */
  readonly inviteStandby = this.#method("standby/invite");
  /** Makes this standby the hub that accepts writes. */
  readonly promote = this.#method("promote");

  readonly status = this.#method("status");
  /** Returns the counts and durations of the last minutes. */
  readonly minutes = this.#method("stats/minutes");
  readonly diagnostic = this.#method("pg/diagnostic");

  /**
   * Yields a node's messages and the events of its tasks as they arrive (Server-Sent Events), until its signal aborts.
   */
  stream(nodeId: string, options: StreamOptions = {}): AsyncGenerator<StreamItem, void, undefined> {
    return readStream<V>(this.http, this.call.bind(this), nodeId, options);
  }

  /**
   * Calls any operation that takes and returns JSON, by its path without `/api/v1/`: `call("task/claim", {…})`.
   * @throws {LuxHubError} when the hub refuses the call
   * @throws {HubUnreachable} when no response arrives
   */
  override async call<O extends Operation>(
    operation: O,
    ...[request, options]: Arguments<O, V>
  ): Promise<AnswerOf<O, V>> {
    const fields: Fields = { ...request };
    if (operation === "task/ask") return (await this.#askQuestion(fields, options)) as AnswerOf<O, V>; // its answer
    const wait =
      operation === "message/receive" && fields["blocking"] !== true ? undefined : WAITS[operation];
    const waited = Number(fields[wait?.field ?? "wait"] ?? wait?.unasked) || 0;
    if (wait === undefined || waited <= 0) return this.ask(operation, fields, waited, options);
    const until = now() + waited * 1_000;
    for (;;) {
      const askedAt = now();
      const seconds = Math.max(0, Math.min(this.#longestAskS, (until - askedAt) / 1_000));
      const step = { ...fields, [wait.field]: Math.round(seconds * 1_000) / 1_000 };
      const answer = await this.ask(operation, step, seconds, options);
      const isEarly = now() - askedAt < seconds * 1_000 - EARLY_MS;
      if (isEarly || now() >= until || !wait.isEmpty({ ...answer })) return answer;
    }
  }

  protected override check(operation: string, request: Fields): void {
    refuseUnknownFields(operation, request);
  }

  #methods<Names extends Readonly<Record<string, Operation>>>(names: Names): Methods<Names, V> {
    const methods = Object.entries(names).map(([name, operation]) => [name, this.#method(operation)]);
    return Object.fromEntries(methods) as Methods<Names, V>;
  }

  #method<O extends Operation>(operation: O): (...args: Arguments<O, V>) => Promise<AnswerOf<O, V>> {
    return (...args) => this.call(operation, ...args);
  }

  /** Asks once, and then waits for the answer to this question: the same question after an answer would be a new one. */
  async #askQuestion(
    { wait: asked, ...fields }: Fields,
    options?: CallOptions,
  ): Promise<AnswerOf<"task/ask", V>> {
    const until = now() + Number(asked ?? 0) * 1_000;
    const nextWait = (): number => Math.max(0, Math.min(this.#longestAskS, (until - now()) / 1_000));
    const seconds = nextWait();
    let answer = await this.ask("task/ask", { ...fields, wait: seconds }, seconds, options);
    while (answer.question.state === "open" && nextWait() > 0) {
      const { task_id, question_id } = answer.question;
      const [askedAt, waited] = [now(), nextWait()];
      const signal = options?.signal && { signal: options.signal };
      const read = { task_id, question_id, wait: waited };
      try {
        const { questions } = await this.ask("task/{task_id}/questions", read, waited, signal);
        const [question] = questions;
        if (question) answer = { ...answer, question };
      } catch (error) {
        if (!(error instanceof LuxHubError && error.code === "question_not_found")) throw error;
        answer = await this.ask("task/ask", { ...fields, wait: waited }, waited, signal); // a copy took over without it
      }
      const isAtOnce = now() - askedAt < EARLY_MS; // the wait is almost over, or the hub stops
      if (isAtOnce && answer.question.state === "open") await sleep(EARLY_MS, options?.signal);
    }
    return answer;
  }

  async #upload(content: FileContent, fields: UploadFields, options: CallOptions = {}): Promise<FileRecord> {
    const { headers, ...upload } = multipart(content, fields);
    const answer = await this.http.send(
      {
        method: "POST",
        path: "/api/v1/file/upload",
        headers: { ...headers, ...keyHeader("file/upload", options) },
        waitMs: Number.POSITIVE_INFINITY,
        ...upload,
      },
      this.http.readJson,
      options,
    );
    return answer as FileRecord; // the hub returns what it declares
  }
}

/** An empty response that arrives this much too early ends the wait: the node leaves or drains, or the hub stops. */
const EARLY_MS = 500;

type Wait = {
  /** The field that says how long to wait, and how many seconds that is without it. */
  readonly field: "wait" | "timeout";
  readonly unasked: number;
  /** Whether a response does not contain what the call waits for. */
  readonly isEmpty: (answer: Fields) => boolean;
};

const UNTIL_DONE: Wait = { field: "wait", unasked: 0, isEmpty: ({ done }) => done !== true };
const isNone = (list: unknown): boolean => Array.isArray(list) && list.length === 0;

const WAITS: { readonly [O in Operation]?: Wait } = {
  "task/next": { field: "wait", unasked: 0, isEmpty: ({ task }) => task === null },
  "task/{task_id}": { field: "wait", unasked: 0, isEmpty: ({ task }) => !isFinished(Object(task)) },
  "task/{task_id}/output": {
    field: "wait",
    unasked: 0,
    isEmpty: ({ data, ended }) => data === "" && ended !== true,
  },
  "task/wait": UNTIL_DONE,
  "group/{group}": UNTIL_DONE,
  poll: { field: "timeout", unasked: 25, isEmpty: ({ events }) => isNone(events) },
  /** With `blocking`. */
  "message/receive": { field: "timeout", unasked: 5, isEmpty: ({ messages }) => isNone(messages) },
};

function isFinished({ status }: { readonly status?: unknown }): boolean {
  return status === "completed" || status === "failed";
}
