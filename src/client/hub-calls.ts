/**
 * What calls a hub, typed from the API's own declarations: each operation by its path, with its retries and its waits.
 * POSTs take effect once: each carries an Idempotency-Key. Runs on Bun, Node 20 and later, and in browsers. luxhub.ts
 * adds a method for each operation; the dashboard leaves those out, because they are a part of its size.
 * Must not: cache anything of the hub.
 */
import { type EventFilter, readLog } from "./events.ts";
import { type CallOptions, Http, type HttpOptions, newIdempotencyKey, now, readJson } from "./http.ts";
import type { AnswerOf, Arguments, BatchAnswer, BatchOperation, Operation, RequestOf } from "./call.ts";
import { type Event, type FileRecord, METHODS, type Variant } from "./types.ts";
import { type FileContent, type UploadFields, multipart } from "./upload.ts";
import { type OutputOptions, type OutputPart, readOutput } from "./output-reader.ts";

export type LuxHubOptions = HttpOptions & {
  /**
   * Splits a longer wait into calls of this many seconds, because most proxies cut a connection that is silent for a
   * minute. By default 50; the hub accepts at most 300.
   */
  readonly longestAskS?: number | undefined;
  /**
   * Called when the hub has not read some fields of a request, for a log: one may be misspelt, or the hub may be older
   * than the client.
   */
  readonly onIgnored?: ((fields: readonly string[], operation: Operation) => void) | undefined;
};

/** A hub. `V` is the variant in which it answers. */
export class HubCalls<V extends Variant = "A"> {
  protected readonly http: Http;
  readonly #longestAskS: number;
  readonly #onIgnored: LuxHubOptions["onIgnored"];

  constructor({ longestAskS = 50, onIgnored, ...options }: LuxHubOptions) {
    this.http = new Http(options);
    this.#longestAskS = longestAskS;
    this.#onIgnored = onIgnored;
  }

  /** Runs the requests in order, in one transaction. A refusal does not stop the others: check each answer. */
  async batch<const O extends readonly BatchOperation[]>(
    requests: { readonly [I in keyof O]: { readonly path: O[I]; readonly body: RequestOf<O[I], V> } },
    options?: CallOptions,
  ): Promise<{ readonly [I in keyof O]: BatchAnswer<O[I], V> }> {
    const { answers } = await this.#ask("batch", { requests }, 0, options);
    return answers as { readonly [I in keyof O]: BatchAnswer<O[I], V> }; // one for each request, in its order
  }

  /** Yields the events of the hub's log, from now or from `since` on, as they arrive, until its signal aborts. */
  events(filter: EventFilter = {}): AsyncGenerator<Event, void, undefined> {
    return readLog<V>(this.http, this.call.bind(this), filter);
  }

  /** Yields the output of a task; with `follow` also what comes, until the task is finished. */
  output(taskId: string, options: OutputOptions = {}): AsyncGenerator<OutputPart<V>, void, undefined> {
    return readOutput<V>(this.call.bind(this), taskId, options);
  }

  /**
   * Calls any operation that takes and answers JSON, by its path without `/api/v1/`: `call("task/claim", {…})`.
   * @throws {LuxHubError} when the hub refuses the call
   * @throws {HubUnreachable} when no answer arrives
   */
  async call<O extends Operation>(
    operation: O,
    ...[request, options]: Arguments<O, V>
  ): Promise<AnswerOf<O, V>> {
    const fields: Fields = { ...request };
    if (operation === "task/ask") return (await this.#askQuestion(fields, options)) as AnswerOf<O, V>; // its answer
    const wait = waitOf(operation, fields);
    if (wait === null) return this.#ask(operation, fields, 0, options);
    const until = now() + wait.seconds * 1_000;
    for (;;) {
      const askedAt = now();
      const seconds = Math.max(0, Math.min(this.#longestAskS, (until - askedAt) / 1_000));
      const asked = { ...fields, [wait.field]: Math.round(seconds * 1_000) / 1_000 };
      const answer = await this.#ask(operation, asked, seconds, options);
      const isEarly = now() - askedAt < seconds * 1_000 - EARLY_MS;
      if (isEarly || now() >= until || !isEmpty(operation, answer)) return answer;
    }
  }

  async #ask<O extends Operation>(
    operation: O,
    { ...fields }: Fields,
    waitSeconds: number,
    options: CallOptions = {},
  ): Promise<AnswerOf<O, V>> {
    const method = NOT_POST[operation] ?? "POST";
    const path = operation.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      const value = String(fields[name]);
      delete fields[name];
      return encodeURIComponent(value);
    });
    const answer = await this.http.send(
      method === "POST"
        ? {
            method,
            path: `/api/v1/${path}`,
            headers: { "Content-Type": "application/json", ...keyHeader(operation, options) },
            body: () => JSON.stringify(fields),
            isRepeatable: !NOT_REPEATABLE.has(operation),
            waitMs: waitSeconds * 1_000,
          }
        : {
            method,
            path: `/api/v1/${withQuery(path, fields)}`,
            isRepeatable: true,
            waitMs: waitSeconds * 1_000,
          },
      readJson,
      options,
    );
    if ("ignored" in answer && Array.isArray(answer.ignored))
      this.#onIgnored?.(answer.ignored.map(String), operation);
    return answer as AnswerOf<O, V>; // the hub answers as it declares
  }

  /** Asks once, and then waits for the answer to this question: the same question after an answer would be a new one. */
  async #askQuestion(
    { wait: asked, ...fields }: Fields,
    options?: CallOptions,
  ): Promise<AnswerOf<"task/ask", V>> {
    const until = now() + Number(asked ?? 0) * 1_000;
    const left = (): number => Math.max(0, Math.min(this.#longestAskS, (until - now()) / 1_000));
    const seconds = left();
    let answer = await this.#ask("task/ask", { ...fields, wait: seconds }, seconds, options);
    while (answer.question.state === "open" && left() > 0) {
      const { task_id, question_id } = answer.question;
      const waited = left();
      const signal = options?.signal && { signal: options.signal };
      const read = { task_id, question_id, wait: waited };
      const { questions } = await this.#ask("task/{task_id}/questions", read, waited, signal);
      const [question] = questions;
      if (question) answer = { ...answer, question };
    }
    return answer;
  }

  async upload(content: FileContent, fields: UploadFields, options: CallOptions = {}): Promise<FileRecord> {
    const { headers, ...upload } = multipart(content, fields);
    const answer = await this.http.send(
      {
        method: "POST",
        path: "/api/v1/file/upload",
        headers: { ...headers, ...keyHeader("file/upload", options) },
        waitMs: Number.POSITIVE_INFINITY,
        ...upload,
      },
      readJson,
      options,
    );
    return answer as FileRecord; // the hub answers as it declares
  }

  /** Returns the bytes as the body of a response. `range` as in HTTP, for example `bytes=0-1023`. */
  download(
    { file_id, range }: { readonly file_id: string; readonly range?: string | undefined },
    options: CallOptions = {},
  ): Promise<Response> {
    return this.http.send(
      {
        method: "GET",
        path: `/api/v1/file/download/${encodeURIComponent(file_id)}`,
        headers: range === undefined ? {} : { Range: range },
        isRepeatable: true,
        isStreamed: true,
      },
      async (response) => response,
      options,
    );
  }
}

const NOT_POST: { readonly [O in Operation]?: string } = METHODS;

type Fields = Record<string, unknown>;

/** The hub does not store an answer with a secret in it: it would refuse a repeat, and the secret would be lost. */
const NOT_REPEATABLE: ReadonlySet<string> = new Set(["key/add", "invitation/create", "webhook/put"]);
/**
 * Harmless to repeat: a heartbeat is frequent, so the hub need not store its answers, output has its offset, the hub does
 * not store an answer with a ticket, and who joins has no key yet.
 */
const NEEDS_NO_KEY: ReadonlySet<string> = new Set([
  "node/heartbeat",
  "task/output",
  "file/download-url",
  "file/upload-url",
  "join",
]);

function keyHeader(operation: string, { idempotencyKey }: CallOptions): Readonly<Record<string, string>> {
  if (NEEDS_NO_KEY.has(operation) || NOT_REPEATABLE.has(operation)) return {};
  return { "Idempotency-Key": idempotencyKey ?? newIdempotencyKey() };
}

/** The name of an operation may have a query of its own. */
function withQuery(path: string, fields: Fields): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined && value !== null) query.append(name, String(value));
  if (query.size === 0) return path;
  return `${path}${path.includes("?") ? "&" : "?"}${query}`;
}

/** An empty answer that arrives this much too early ends the wait: the node leaves or drains, or the hub stops. */
const EARLY_MS = 500;

/** Returns how long the request asks the hub to wait, and in which field; null if it asks for no wait. */
function waitOf(
  operation: Operation,
  fields: Fields,
): { readonly field: string; readonly seconds: number } | null {
  const wait = (field: string, unasked: number): { field: string; seconds: number } | null => {
    const seconds = Number(fields[field] ?? unasked);
    return seconds > 0 ? { field, seconds } : null;
  };
  if (operation === "task/next" || operation === "task/{task_id}" || operation === "task/wait")
    return wait("wait", 0);
  if (operation === "task/{task_id}/output" || operation === "group/{group}") return wait("wait", 0);
  if (operation === "poll") return wait("timeout", 25);
  if (operation === "message/receive" && fields["blocking"] === true) return wait("timeout", 5);
  return null;
}

/** Whether an answer does not contain what the call waits for. */
function isEmpty(operation: Operation, answer: object): boolean {
  const { task, messages, events, done, data, ended }: Fields = { ...answer };
  if (operation === "task/wait" || operation === "group/{group}") return done !== true;
  if (operation === "task/{task_id}/output") return data === "" && ended !== true;
  if (operation === "task/{task_id}") return !isFinished(Object(task));
  return [messages, events].some((list) => Array.isArray(list) && list.length === 0) || task === null;
}

function isFinished({ status }: { readonly status?: unknown }): boolean {
  return status === "completed" || status === "failed";
}
