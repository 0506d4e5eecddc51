/**
 * The client of a hub: a method for each operation. The worker is added in index.ts. Must not: cache anything of the hub.
 */
import { type StreamItem, type StreamOptions, readStream } from "./events.ts";
import type { AnswerOf, Arguments, Operation } from "./call.ts";
import { type FileContent, type UploadFields, multipart } from "./upload.ts";
import { type CallOptions, type Fields, now, sleep } from "./http.ts";
import type { FileRecord, Variant } from "./types.ts";
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

  readonly nodes = {
    register: this.#method("node/register"),
    heartbeat: this.#method("node/heartbeat"),
    leave: this.#method("node/leave"),
    drain: this.#method("node/drain"),
    delete: this.#method("node/delete"),
    /** All nodes; with any of the fields, a page. */
    list: this.#method("node/list"),
    stats: this.#method("stats/nodes"),
    get: this.#method("node/{node_id}"),
  };

  readonly tasks = {
    create: this.#method("task/create"),
    /** Hands the node its next task. Waits up to `wait` seconds, however many. */
    next: this.#method("task/next"),
    assign: this.#method("task/assign"),
    claim: this.#method("task/claim"),
    complete: this.#method("task/complete"),
    release: this.#method("task/release"),
    fail: this.#method("task/fail"),
    extend: this.#method("task/extend"),
    /** Asks about a task that the node holds. Waits up to `wait` seconds for the answer, however many. */
    ask: this.#method("task/ask"),
    answer: this.#method("task/answer"),
    /** Passes or rejects the result of a task that was created with `review`. */
    review: this.#method("task/review"),
    /** The results that wait for a review. */
    inReview: this.#method("reviews"),
    retry: this.#method("task/retry"),
    cancel: this.#method("task/cancel"),
    /** Changes a task that nobody holds. */
    update: this.#method("task/update"),
    revoke: this.#method("task/revoke"),
    batchAssign: this.#method("task/batch-assign"),
    delete: this.#method("task/delete"),
    list: this.#method("task/list"),
    /** The same list without descriptions, results and other long texts. */
    summaries: this.#method("task/list?fields=summary"),
    /** How many tasks match the filters of the list. */
    count: this.#method("task/count"),
    /** Counts the tasks of each type, and the nodes for them. */
    byType: this.#method("stats/types"),
    /** Why tasks failed lately, by message. */
    failures: this.#method("stats/failures"),
    pull: this.#method("task/pull"),
    stats: this.#method("task/stats"),
    /** With `wait`: waits up to that many seconds until the task is completed or has failed. */
    get: this.#method("task/{task_id}"),
    /** Lists the tasks on which a task depends, with their results. */
    inputs: this.#method("task/{task_id}/inputs"),
    /** Why it does not run. */
    explain: this.#method("task/{task_id}/explain"),
    /** What a task depends on, in layers, and what waits for it. */
    graph: this.#method("task/{task_id}/graph"),
    /** Searches what the workers of completed tasks have learned. */
    lessons: this.#method("lessons"),
    /**
     * Appends output while the task runs. A worker's handler has `output(text)`, which keeps the offsets.
     */
    output: this.#method("task/output"),
    /** With `wait`: waits up to that many seconds for more output, or the end of the attempt. */
    readOutput: this.#method("task/{task_id}/output"),
    /** Lists the questions of a task. With `wait`: waits at most 300 seconds until one changes. */
    questions: this.#method("task/{task_id}/questions"),
    /** Lists the open questions of all tasks, the most urgent first. */
    openQuestions: this.#method("questions"),
    /** Waits up to `wait` seconds until all of the tasks, or any of them, are completed or have failed. */
    wait: this.#method("task/wait"),
  };

  readonly messages = {
    send: this.#method("message/send"),
    broadcast: this.#method("message/broadcast"),
    /** With `blocking`: waits up to `timeout` seconds for the first message, however many. */
    receive: this.#method("message/receive"),
    ack: this.#method("message/ack"),
    history: this.#method("message/history"),
    parked: this.#method("message/parked"),
    redrive: this.#method("message/redrive"),
    /** Lists the messages that a node got, without taking them out of its mailbox. */
    mailbox: this.#method("agent/messages"),
  };

  readonly notes = {
    put: this.#method("note/put"),
    get: this.#method("note/get"),
    list: this.#method("note/list"),
    search: this.#method("note/search"),
    delete: this.#method("note/delete"),
  };

  readonly leases = {
    acquire: this.#method("lease/acquire"),
    renew: this.#method("lease/renew"),
    release: this.#method("lease/release"),
    list: this.#method("lease/list"),
  };

  readonly lux = {
    signIn: this.#method("signin"),
    ledger: this.#method("lux/ledger"),
    /** The nodes that earned the most since a time. */
    top: this.#method("lux/top"),
    /** The ledger of all nodes, oldest first. */
    entries: this.#method("lux/entries"),
    head: this.#method("lux/head"),
  };

  /** What is handed out, and what is not. */
  readonly limits = {
    set: this.#method("limit/set"),
    list: this.#method("limit/list"),
    delete: this.#method("limit/delete"),
    /** Lets a limit key rest, for example after a provider has returned 429. */
    hold: this.#method("limit/hold"),
    pause: this.#method("hub/pause"),
    resume: this.#method("hub/resume"),
    pauses: this.#method("hub/pauses"),
  };

  readonly costs = {
    /** Sums up what work has cost, by day, node, creator, type or model. */
    usage: this.#method("usage"),
    setBudget: this.#method("budget/set"),
    budgets: this.#method("budget/list"),
    deleteBudget: this.#method("budget/delete"),
    voidUsage: this.#method("usage/void"),
  };

  readonly files = {
    upload: (content: FileContent, fields: UploadFields, options?: CallOptions): Promise<FileRecord> =>
      this.#upload(content, fields, options),
    /** Returns the bytes as the body of a response. `range` as in HTTP, for example `bytes=0-1023`. */
    download: (
      file: { readonly file_id: string; readonly range?: string | undefined },
      options?: CallOptions,
    ): Promise<Response> => this.download(file, options),
    list: this.#method("file/list"),
    delete: this.#method("file/delete"),
    /** Makes a URL that downloads a file without a secret, for 10 minutes. */
    downloadUrl: this.#method("file/download-url"),
    /** Makes a URL that uploads one file without a secret, for 10 minutes. */
    uploadUrl: this.#method("file/upload-url"),
  };

  readonly groups = {
    /** By name; those whose name begins with `q`. */
    list: this.#method("group/list"),
    /** With `wait`: waits up to that many seconds until none of the group's tasks is unfinished. */
    get: this.#method("group/{group}"),
    /** Cancels up to 1,000 unfinished tasks: repeat it while `left` is not 0. */
    cancel: this.#method("group/cancel"),
    /** Opens up to 1,000 failed tasks again: repeat it with `next_cursor` while there is one. */
    retry: this.#method("group/retry"),
  };

  readonly schedules = {
    /** Creates or replaces the schedule of this name. */
    put: this.#method("schedule/put"),
    list: this.#method("schedule/list"),
    /** Creates a task of the schedule now. */
    run: this.#method("schedule/run"),
    delete: this.#method("schedule/delete"),
  };

  readonly webhooks = {
    /** Creates or replaces the webhook of this name. Not retried after a fault: the hub shows a secret only once. */
    put: this.#method("webhook/put"),
    list: this.#method("webhook/list"),
    /** Sends a test message now. */
    test: this.#method("webhook/test"),
    /** Delivers again, from the cursor or after another event. */
    resume: this.#method("webhook/resume"),
    delete: this.#method("webhook/delete"),
  };

  readonly keys = {
    list: this.#method("key/list"),
    /** Not retried after a fault: the hub does not store the secret, so it cannot repeat the response. */
    add: this.#method("key/add"),
    revoke: this.#method("key/revoke"),
  };

  readonly invitations = {
    /** Not retried after a fault, because only the response has the line. */
    create: this.#method("invitation/create"),
    list: this.#method("invitation/list"),
    delete: this.#method("invitation/delete"),
  };

  /** Turns an invitation into a key. `key_hash`: the SHA-256 of the secret that the caller has made. */
  readonly join = this.#method("join");

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
    const wait = waitOf(operation, fields);
    if (wait === null) return this.ask(operation, fields, Number(fields["wait"] ?? 0), options);
    const until = now() + wait.seconds * 1_000;
    for (;;) {
      const askedAt = now();
      const seconds = Math.max(0, Math.min(this.#longestAskS, (until - askedAt) / 1_000));
      const asked = { ...fields, [wait.field]: Math.round(seconds * 1_000) / 1_000 };
      const answer = await this.ask(operation, asked, seconds, options);
      const isEarly = now() - askedAt < seconds * 1_000 - EARLY_MS;
      if (isEarly || now() >= until || !isEmpty(operation, answer)) return answer;
    }
  }

  protected override check(operation: string, request: Fields): void {
    refuseUnknownFields(operation, request);
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
    const left = (): number => Math.max(0, Math.min(this.#longestAskS, (until - now()) / 1_000));
    const seconds = left();
    let answer = await this.ask("task/ask", { ...fields, wait: seconds }, seconds, options);
    while (answer.question.state === "open" && left() > 0) {
      const { task_id, question_id } = answer.question;
      const [askedAt, waited] = [now(), left()];
      const signal = options?.signal && { signal: options.signal };
      const read = { task_id, question_id, wait: waited };
      const { questions } = await this.ask("task/{task_id}/questions", read, waited, signal);
      const [question] = questions;
      if (question) answer = { ...answer, question };
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

/** Whether a response does not contain what the call waits for. */
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
