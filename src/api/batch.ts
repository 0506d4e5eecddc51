/**
 * The batch endpoint: runs the requests of one call in order and in one transaction. Each gets the answer that it would
 * get alone.
 *
 * Atomicity: each handler runs as usual, but its Transact hands the transaction in. When every handler has handed one
 * in or has ended, all become the parts of one transaction of the store (store/store.ts), with the stored answer for
 * the batch's Idempotency-Key. Only then do the handlers continue with what follows a commit. So a batch needs no rules
 * of its own, and no transaction is open while a handler runs.
 *
 * An undecided transaction needs other rows: nothing is committed, the handlers of all undecided ones hand in their
 * next one, and the batch is decided again. A handler that reads before its transaction sees the last commit: a batch
 * must not change such data, or the rule must check it again.
 *
 * Others wait while a batch is decided and written: the rest of its requests is refused (503 batch_full) beyond the
 * limits of its answers, of its rows, or of its time. The time counts from the first decision; a store that decides
 * again begins anew.
 *
 * References: the id of a task with a `ref` is made, and put into the bodies that write {"$ref": …}, before anything
 * runs. Nothing is written of a graph that does not fit: in another batch its refs mean nothing.
 *
 * A refused request does not stop the others. A fault (a 500, a full disk, a lost database) undoes the whole batch and
 * is its only answer.
 *
 * Must not: know any other endpoint, but that task/create creates a task.
 */
import * as z from "zod/mini";
import { rowsOf } from "../domain/change.ts";
import {
  type Decision,
  type Rejected,
  Rejection,
  UNDECIDED,
  type Undecided,
  accept,
  isStored,
  reject,
} from "../domain/decision.ts";
import {
  BATCH_ANSWERS_MAX_BYTES,
  BATCH_DECIDE_MS,
  BATCH_REF_MAX_CHARS,
  BATCH_REQUESTS_MAX,
  BATCH_ROWS_MAX,
  BATCH_TURN_MS,
  ERRORS_MAX,
  LIGHT_MAX,
} from "../domain/limits.ts";
import { type JsonObject, LARGE_REQUESTS } from "../http/json-body.ts";
import { type FieldError, type Problem, invalidRequest } from "../http/problem.ts";
import { assert, broken, must } from "../lib/assert.ts";
import { BatchFields } from "./answer.ts";
import { reasonOf } from "../lib/reason.ts";
import { type Committed, type Load, type Part, type Transact, withAround } from "../store/store.ts";
import { type Call, type Endpoint, type ReadCall, writeEndpoint } from "./endpoint.ts";
import { batchIsFull, problemOf, refusedBefore } from "./error-table.ts";
import { about, optional, string, whole } from "./about.ts";

type Sent = { readonly path: string; readonly body: JsonObject; readonly ref?: unknown };
type Linked = {
  readonly path: string;
  readonly body: JsonObject;
  readonly newTaskId: string | null;
  readonly needs: readonly number[];
};

function isSent(value: unknown): value is Sent {
  if (typeof value !== "object" || value === null || !("path" in value) || !("body" in value)) return false;
  const { path, body } = value;
  return typeof path === "string" && typeof body === "object" && body !== null && !Array.isArray(body);
}

export const BATCH_ENDPOINT: Endpoint = writeEndpoint({
  path: "/api/v1/batch",
  auth: "secret",
  summary: "Runs many requests in order and in one transaction",
  rejections: ["graph_too_large"],
  input: () =>
    z.object({
      requests: z
        .array(z.custom<Sent>(isSent, "must be an object with a path (a string) and a body (an object)"))
        .check(z.minLength(1), z.maxLength(BATCH_REQUESTS_MAX)),
    }),
  inputOf: () =>
    z.object({
      requests: z
        .array(
          z.object({
            path: string("The path of a POST of JSON without `/api/v1/`, such as `task/claim`."),
            body: about(z.looseObject({}), "The body of the request."),
            ref: optional(
              z.string(),
              'Of a task/create: a name for the new task. Later requests of the batch write `{"$ref": …}` in place of its id.',
            ),
          }),
        )
        .check(z.minLength(1), z.maxLength(BATCH_REQUESTS_MAX)),
    }),
  exactNumbers: true,
  notInBatch: "must not be a batch itself",
  answer: () =>
    z.strictObject({
      answers: about(
        z.array(
          z.strictObject({
            status: whole("The status of the response, as if the request had been sent alone."),
            body: about(z.looseObject({}), "The body of the response."),
          }),
        ),
        "The responses, in the order of the requests.",
      ),
    }),
  handle: async (call, { requests }) => {
    const linked = new Linker(() => call.services.tasks.newTaskId()).link(requests);
    if (requests.length > LIGHT_MAX) await LARGE_REQUESTS.next();
    return new Batch(call, linked).run();
  },
  // Concatenated, the texts are copied once, when the answer is sent; join() would copy them twice.
  encode: ({ answers, ignored }: Done) =>
    new BatchFields(`"answers":[${answers.reduce((list, answer) => `${list},${answer}`)}]`, ignored),
});

type Done = { readonly answers: readonly string[]; readonly ignored: readonly string[] };

const CREATES_TASK = "task/create";
const TASK_FIELDS = ["task_id", "depends_on"] as const;

class Linker {
  readonly #newId: () => string;
  readonly #named = new Map<string, { readonly at: number; readonly taskId: string }>();
  readonly #errors: FieldError[] = [];

  constructor(newId: () => string) {
    this.#newId = newId;
  }

  link(requests: readonly Sent[]): readonly Linked[] {
    const linked = requests.map((request, at): Linked => {
      const needs: number[] = [];
      const body = this.#resolved(request.body, at, needs);
      return { path: request.path, body, needs, newTaskId: this.#name(request, at) };
    });
    if (this.#errors.length > 0) throw invalidRequest(this.#errors);
    return linked;
  }

  #name({ path, body, ref }: Sent, at: number): string | null {
    if (ref == null) return null;
    const refuse = (message: string): null => this.#refuse(`requests.${at}.ref`, message);
    if (typeof ref !== "string" || ref === "" || ref.length > BATCH_REF_MAX_CHARS)
      return refuse(`must be a string of 1 to ${BATCH_REF_MAX_CHARS} characters`);
    if (path !== CREATES_TASK) return refuse(`must be left out: only ${CREATES_TASK} creates a task`);
    if (body["unique_key"] != null)
      return refuse("must not be sent together with unique_key: the task may be one that has another id");
    if (this.#named.has(ref)) return refuse("must not be the ref of another request");
    const taskId = this.#newId();
    this.#named.set(ref, { at, taskId });
    return taskId;
  }

  #resolved(body: JsonObject, at: number, needs: number[]): JsonObject {
    let resolved = body;
    for (const field of TASK_FIELDS) {
      const value = body[field];
      const place = `requests.${at}.body.${field}`;
      const list: readonly unknown[] | null = Array.isArray(value) ? value : null;
      if (!(list ?? [value]).some(isReference)) continue;
      const ids =
        list?.map((element, i) => this.#idOf(element, `${place}.${i}`, needs)) ??
        this.#idOf(value, place, needs);
      resolved = { ...resolved, [field]: ids };
    }
    return resolved;
  }

  #idOf(value: unknown, place: string, needs: number[]): unknown {
    if (!isReference(value)) return value;
    const named = typeof value.$ref === "string" ? this.#named.get(value.$ref) : undefined;
    if (!named) return this.#refuse(`${place}.$ref`, "must be the ref of an earlier request");
    needs.push(named.at);
    return named.taskId;
  }

  #refuse(path: string, message: string): null {
    if (this.#errors.length < ERRORS_MAX) this.#errors.push({ path, message });
    return null;
  }
}

function isReference(value: unknown): value is { readonly $ref: unknown } {
  return typeof value === "object" && value !== null && "$ref" in value;
}

class Batch {
  readonly #call: Call<Done>;
  readonly #items: readonly Item[];
  readonly #isGraph: boolean;
  #running: number;
  #ready = Promise.withResolvers<void>();
  #turnMs: number;
  #decidingSinceMs: number | null = null;

  constructor(call: Call<Done>, requests: readonly Linked[]) {
    this.#call = call;
    this.#turnMs = call.work();
    const onReady = (): void => {
      assert(this.#running > 0, "a handler that is ready was counted as running");
      if (--this.#running === 0) this.#ready.resolve();
    };
    const items: Item[] = [];
    for (const request of requests) {
      const needs = request.needs.map((place) => must(items[place], "a reference is to an earlier request"));
      items.push(new Item(call, request, needs, onReady));
    }
    this.#items = items;
    this.#isGraph = requests.some(({ needs }) => needs.length > 0);
    this.#running = requests.length;
  }

  async run(): Promise<Committed<Done>> {
    const handlers: Promise<void>[] = [];
    try {
      for (const item of this.#items) {
        await this.#turn();
        handlers.push(item.run());
      }
      for (;;) {
        await this.#ready.promise;
        await this.#turn();
        const answers = await this.#commit();
        if (answers) return answers;
      }
    } catch (error) {
      for (const item of this.#items) item.abort(error);
      throw error;
    } finally {
      await Promise.all(handlers);
    }
  }

  #turn(): Promise<void> | undefined {
    if (this.#call.work() - this.#turnMs < BATCH_TURN_MS) return undefined;
    return LARGE_REQUESTS.next().then(() => void (this.#turnMs = this.#call.work()));
  }

  /** Null: nothing was committed, because undecided transactions go on. */
  async #commit(): Promise<Committed<Done> | null> {
    for (const { fault } of this.#items) if (fault !== null) throw fault.error;
    const waiting = this.#items.filter((item) => item.isWaiting);
    const parts = waiting.map((item, at) => this.#partOf(item, at === 0));
    try {
      const answers = await this.#call.transact({}, () => this.#decide(waiting), parts);
      for (const item of waiting) item.finish();
      return answers;
    } catch (error) {
      if (!(error instanceof HasUndecided)) throw error;
      const undecided = waiting.filter((item) => item.isUndecided);
      this.#running = undecided.length;
      this.#ready = Promise.withResolvers();
      for (const item of undecided) item.goOn();
      return null;
    }
  }

  /** A full batch loads nothing more. An engine may load a part before it decides the parts before it. */
  #partOf(item: Item, isFirst: boolean): Part {
    const isFull = (): boolean => this.#isOverdue || this.#isFullBefore(item);
    let isLoaded = true;
    return {
      load: () => {
        if (isFirst) this.#decidingSinceMs = null;
        isLoaded = !isFull();
        return isLoaded ? item.load : {};
      },
      decide: (rows) => {
        if (isFirst) this.#decidingSinceMs = this.#call.work();
        if (!isLoaded || isFull()) return item.skip();
        return item.lacks ? item.refuseAsLacking() : item.decide(rows);
      },
    };
  }

  #decide(waiting: readonly Item[]): Decision<Done> {
    if (waiting.some((item) => item.isUndecided)) throw new HasUndecided();
    const end = this.#isGraph ? this.#items.findIndex((item) => item.isSkipped) : -1;
    if (end >= 0) throw new Rejection(graphTooLarge(end));
    return {
      ...accept({
        answers: this.#items.map(({ answer }) => answer),
        ignored: this.#items.flatMap(({ ignored }, at) =>
          ignored.map((name) => `requests.${at}.body.${name}`),
        ),
      }),
      isStored: waiting.some((item) => item.isWorthStoring),
    };
  }

  get #isOverdue(): boolean {
    const since = this.#decidingSinceMs;
    return since !== null && this.#call.work() - since > BATCH_DECIDE_MS;
  }

  #isFullBefore(item: Item): boolean {
    let bytes = 0;
    let rows = 0;
    for (const earlier of this.#items) {
      if (earlier === item) break;
      bytes += earlier.bytes;
      rows += earlier.rows;
    }
    return bytes > BATCH_ANSWERS_MAX_BYTES || rows > BATCH_ROWS_MAX;
  }
}

class HasUndecided extends Error {
  override readonly name = "HasUndecided";
}

function graphTooLarge(end: number): Rejected {
  const detail = `Nothing of this batch was written: its first ${end} requests took the time of a batch, or read, wrote and returned all that it may. Send fewer tasks or dependencies at once, and name the tasks of an earlier batch by their ids.`;
  return reject("graph_too_large", detail);
}

/** How many rows were loaded: a list has one for each of its elements, if no engine keeps it in memory. */
function rowsRead(load: Load, loaded: Readonly<Record<string, unknown>>): number {
  return sumOf(Object.entries(loaded), ([name, value]) =>
    Array.isArray(value) && !load[name]?.cached ? value.length : Number(value !== null),
  );
}

function sumOf<T>(list: readonly T[], size: (element: T) => number): number {
  return list.reduce((sum, element) => sum + size(element), 0);
}

type Waiting = {
  readonly load: Load;
  readonly decide: Part["decide"];
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
};

const FULL = batchIsFull();
const FULL_BODY = JSON.stringify(FULL);
const LACKING = refusedBefore();

const HANDED_IN = "what a batch decides was handed in by a handler that runs";

class Item {
  readonly #call: ReadCall;
  readonly #request: Linked;
  readonly #needs: readonly Item[];
  readonly #onReady: () => void;
  #waiting: Waiting | null = null;
  /**
   * What was decided last; "skipped": the batch was full; "lacking": a request that it refers to was refused. An engine
   * may decide several times.
   */
  #outcome: Decision<unknown> | Undecided | "skipped" | "lacking" = UNDECIDED;
  #end: "committed" | "undone" | null = null;
  /** Set when the handler ended before the commit with an error that no client may know about. */
  fault: { readonly error: unknown } | null = null;
  answer = "";
  ignored: readonly string[] = [];
  bytes = 0;
  /** Before its transaction is decided, how many rows its queries look up. */
  rows = 0;

  constructor(call: ReadCall, request: Linked, needs: readonly Item[], onReady: () => void) {
    this.#call = call;
    this.#request = request;
    this.#needs = needs;
    this.#onReady = onReady;
  }

  get isWaiting(): boolean {
    return this.#waiting !== null;
  }

  get load(): Load {
    return must(this.#waiting, HANDED_IN).load;
  }

  get isUndecided(): boolean {
    return typeof this.#outcome !== "string" && this.#outcome.kind === "undecided";
  }

  get isSkipped(): boolean {
    return this.#outcome === "skipped";
  }

  get lacks(): boolean {
    return this.#needs.some((item) => !item.#isAccepted);
  }

  get #isAccepted(): boolean {
    return this.isWaiting && typeof this.#outcome !== "string" && this.#outcome.kind === "accepted";
  }

  /** As for a single request: that of a change or of a refusal. */
  get isWorthStoring(): boolean {
    if (this.#outcome === "lacking") return true;
    if (this.#outcome === "skipped" || this.#outcome.kind === "undecided") return false;
    const hasChanges = this.#outcome.kind === "accepted" && this.#outcome.changes.length > 0;
    return hasChanges || isStored(this.#outcome);
  }

  async run(): Promise<void> {
    try {
      const request = await this.#call.part(this.#request.path, this.#request.body);
      this.ignored = request.ignored;
      await request.checkNodes(this.#call);
      const { first } = await request.run((encode) => ({
        ...this.#call,
        transact: withAround(this.#transactFor(encode), this.#call.arounds),
        inBatch: true,
        ...(this.#request.newTaskId !== null && { newTaskId: this.#request.newTaskId }),
      }));
      if (this.#end === null) this.#answer(200, first);
    } catch (error) {
      const problem = problemOf(error);
      if (this.#end === null && problem && problem.status < 500) this.#refuse(problem);
      else if (this.#end === null) this.fault = { error };
      else if (this.#end === "committed" && !problem) this.#reportLate(error);
    }
    if (this.#waiting === null) this.#onReady();
  }

  /** After the commit another transaction is an error, because it cannot join the batch. */
  #transactFor<A>(encode: (answer: A) => string): Transact<A> {
    return <T extends A>(
      load: Load,
      decide: (rows: never) => Decision<T> | Undecided,
    ): Promise<Committed<T>> => {
      if (this.#end !== null) return Promise.reject(broken("a request of a batch writes in one transaction"));
      const decideAndAnswer = (rows: never): Decision<T> | Undecided => {
        const outcome = decide(rows);
        if (outcome.kind === "accepted") this.#answer(200, encode(outcome.answer));
        return outcome;
      };
      return new Promise<Committed<T>>((resolve, reject) => {
        if (this.#waiting === null) this.#onReady();
        // The answer of this `decide`, committed.
        this.#waiting = { load, decide: decideAndAnswer, resolve: resolve as Waiting["resolve"], reject };
        this.rows = sumOf(Object.values(load), ({ params }) => params.length);
      });
    };
  }

  decide(rows: never): Decision<unknown> | Undecided {
    const { load, decide } = must(this.#waiting, HANDED_IN);
    const outcome = decide(rows);
    this.#outcome = outcome;
    this.rows = rowsRead(load, rows) + (outcome.kind === "accepted" ? sumOf(outcome.changes, rowsOf) : 0);
    if (outcome.kind === "undecided") this.bytes = 0;
    else if (outcome.kind === "rejected") {
      const problem = problemOf(new Rejection(outcome));
      if (problem) this.#refuse(problem);
    }
    return outcome;
  }

  skip(): Undecided {
    this.#outcome = "skipped";
    this.rows = 0;
    this.#answer(FULL.status, FULL_BODY);
    return UNDECIDED;
  }

  refuseAsLacking(): Undecided {
    this.#outcome = "lacking";
    this.rows = 0;
    this.#refuse(LACKING);
    return UNDECIDED;
  }

  goOn(): void {
    const { resolve } = must(this.#waiting, HANDED_IN);
    this.#waiting = null;
    resolve(undefined);
  }

  finish(): void {
    const { resolve, reject } = must(this.#waiting, HANDED_IN);
    assert(this.#end === null && !this.isUndecided, "a request ends once, when it is decided");
    this.#end = "committed";
    const outcome = this.#outcome;
    if (outcome === "skipped") reject(FULL);
    else if (outcome === "lacking") reject(LACKING);
    else if (outcome.kind === "accepted") resolve(outcome.answer);
    else if (outcome.kind === "rejected") reject(new Rejection(outcome));
  }

  abort(error: unknown): void {
    this.#end = "undone";
    this.#waiting?.reject(error);
  }

  #refuse(problem: Problem): void {
    this.#answer(problem.status, JSON.stringify(problem));
  }

  #answer(status: number, body: string): void {
    this.answer = `{"status":${status},"body":${body}}`;
    this.bytes = Buffer.byteLength(body) + this.answer.length - body.length; // what is around the body is ASCII
  }

  #reportLate(error: unknown): void {
    const { exchange, log } = this.#call;
    log.error("a request of a batch failed after its commit", {
      request_id: exchange.requestId,
      path: this.#request.path,
      cause: reasonOf(error),
    });
  }
}
