/**
 * What calls a hub, typed from the API's own declarations: each operation by its path, with its retries.
 * POSTs take effect once: each carries an Idempotency-Key. Runs on Bun, Node 20 and later, and in browsers. luxhub.ts
 * adds long waits, uploads and a method for each operation; the dashboard does without them, and is smaller.
 * Must not: cache anything of the hub.
 */
import { type EventFilter, readLog } from "./events.ts";
import {
  type CallOptions,
  type Fields,
  Http,
  type HttpOptions,
  newIdempotencyKey,
  notAHub,
  withQuery,
} from "./http.ts";
import { toJson } from "./json.ts";
import type { AnswerOf, Arguments, BatchAnswer, BatchOperation, Operation, RequestOf } from "./call.ts";
import { type Event, METHODS, type Variant } from "./types.ts";
import { type OutputOptions, type OutputPart, readOutput } from "./output-reader.ts";

export type HubCallsOptions = HttpOptions & {
  /**
   * Called when the hub has not read some fields of a request, for a log: one may be misspelt, or the hub may be older
   * than the client.
   */
  readonly onIgnored?: ((fields: readonly string[], operation: Operation) => void) | undefined;
};

/** A hub. `V` is the variant of its responses. */
export class HubCalls<V extends Variant = "A"> {
  protected readonly http: Http;
  readonly #onIgnored: HubCallsOptions["onIgnored"];

  constructor({ onIgnored, ...options }: HubCallsOptions) {
    this.http = new Http(options);
    this.#onIgnored = onIgnored;
  }

  /**
   * Runs the requests in order, in one transaction. An error does not stop the others: check each response. Requests for
   * which a batch has no room follow in another one, which is a transaction of its own.
   */
  async batch<const O extends readonly BatchOperation[]>(
    requests: { readonly [I in keyof O]: { readonly path: O[I]; readonly body: RequestOf<O[I], V> } },
    options?: CallOptions,
  ): Promise<{ readonly [I in keyof O]: BatchAnswer<O[I], V> }> {
    const answersInOrder: AnswerOf<"batch", V>["answers"] = [];
    let unanswered = Array.from(requests, (request, at) => ({ request, at }));
    for (let count = Infinity; unanswered.length > 0 && unanswered.length < count;) {
      const isLater = count < Infinity && options?.idempotencyKey !== undefined;
      const keyed = isLater ? { ...options, idempotencyKey: `${options.idempotencyKey}-${count}` } : options;
      count = unanswered.length;
      const { answers } = await this.ask(
        "batch",
        { requests: unanswered.map(({ request }) => request) },
        0,
        keyed,
      );
      for (const [i, answer] of answers.entries()) answersInOrder[unanswered[i]?.at ?? i] = answer;
      unanswered = unanswered.filter(({ at }) => answersInOrder[at]?.body["error"] === "batch_full");
    }
    return answersInOrder as { readonly [I in keyof O]: BatchAnswer<O[I], V> }; // one for each request, in its order
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
   * Calls an operation that takes and returns JSON, by its path without `/api/v1/`, once: a `wait` is the hub's, which
   * has a limit. luxhub.ts waits as long as it is asked to.
   * @throws {LuxHubError} when the hub refuses the call
   * @throws {HubUnreachable} when no response arrives
   */
  async call<O extends Operation>(
    operation: O,
    ...[request, options]: Arguments<O, V>
  ): Promise<AnswerOf<O, V>> {
    const fields: Fields = { ...request };
    return this.ask(operation, fields, Number(fields["wait"] ?? 0), options);
  }

  /** The URL to which the calls go: of several the one that accepts writes, as far as is known. */
  get url(): string {
    return this.http.url;
  }

  /** @throws {LuxHubError} when the request has a field that its operation does not read */
  protected check(_operation: string, _request: Fields): void {}

  protected async ask<O extends Operation>(
    operation: O,
    { ...fields }: Fields,
    waitSeconds: number,
    options: CallOptions = {},
  ): Promise<AnswerOf<O, V>> {
    this.check(operation, fields);
    const method = NOT_POST[operation] ?? "POST";
    const path = operation.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      const value = String(fields[name]);
      delete fields[name];
      return encodeURIComponent(value);
    });
    // Made once, and before the request: what is not JSON is no failure of the hub that another try can mend.
    const text = method === "POST" ? toJson(fields) : "";
    const answer = await this.http.send(
      method === "POST"
        ? {
            method,
            path: `/api/v1/${path}`,
            headers: { "Content-Type": "application/json", ...keyHeader(operation, options) },
            body: () => text,
            isRepeatable: !NOT_REPEATABLE.has(operation),
            waitMs: waitSeconds * 1_000,
          }
        : {
            method,
            path: `/api/v1/${withQuery(path, fields)}`,
            isRepeatable: true,
            waitMs: waitSeconds * 1_000,
          },
      this.http.readJson,
      options,
    );
    if ("hubs" in answer && Array.isArray(answer.hubs)) this.http.learnHubs(answer.hubs);
    if ("ignored" in answer && Array.isArray(answer.ignored))
      this.#onIgnored?.(answer.ignored.map(String), operation);
    return answer as AnswerOf<O, V>; // the hub returns what it declares
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
      async (response) => {
        const isFile = response.headers.get("content-disposition")?.startsWith("attachment") === true;
        if (!isFile) throw notAHub(response, "is not a file of a hub");
        return response;
      },
      options,
    );
  }
}

const NOT_POST: { readonly [O in Operation]?: string } = METHODS;

/** The hub does not store a response with a secret: it would refuse a repeat, and the secret would be lost. */
const NOT_REPEATABLE: ReadonlySet<string> = new Set([
  "key/add",
  "invitation/create",
  "standby/invite",
  "webhook/put",
]);
/**
 * Harmless to repeat: a heartbeat is frequent, so the hub need not store the responses, output has its offset, the hub
 * does not store a response with a ticket, and who joins has no key yet.
 */
const NEEDS_NO_KEY: ReadonlySet<string> = new Set([
  "node/heartbeat",
  "task/output",
  "file/download-url",
  "file/upload-url",
  "join",
]);

export function keyHeader(
  operation: string,
  { idempotencyKey }: CallOptions,
): Readonly<Record<string, string>> {
  if (NEEDS_NO_KEY.has(operation) || NOT_REPEATABLE.has(operation)) return {};
  return { "Idempotency-Key": idempotencyKey ?? newIdempotencyKey() };
}
