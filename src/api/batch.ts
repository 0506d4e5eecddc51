/**
 * The batch endpoint: runs the requests of one call in order and in one transaction. Each gets the answer that it would
 * get alone.
 *
 * Atomicity: each handler runs as usual, but its Transact hands the transaction in instead of committing it. When every
 * handler has handed one in or has ended, all become the parts of one transaction of the store (store/store.ts). The
 * store decides them in the order of the requests, each sees the writes of those before it, and they commit together,
 * with the stored answer for the batch's Idempotency-Key. Only then do the handlers continue with the work that follows
 * a commit, such as settlements and the balancer. So a batch needs no rules of its own, and no transaction is open
 * while a handler runs.
 *
 * An undecided transaction needs other rows: then nothing is committed, the handlers of all undecided ones continue and
 * hand in their next one, and the batch is decided again. A handler that reads before its transaction sees the last
 * commit, not the earlier requests of the batch: a batch must not change such data, or the rule must check it again.
 *
 * A batch is bounded by what it costs, because others wait while it is decided and written: the rest of its requests is
 * refused (503 batch_full) once its answers or the rows that it reads and writes have reached their limit.
 *
 * A refused request does not stop the others. A fault (a 500, a full disk, a lost database) undoes the whole batch and
 * is its only answer.
 *
 * Must not: know any other endpoint.
 */
import * as z from "zod/mini";
import { rowsOf } from "../domain/change.ts";
import { type Decision, Rejection, UNDECIDED, type Undecided, accept, isStored } from "../domain/decision.ts";
import { BATCH_ANSWERS_MAX_BYTES, BATCH_REQUESTS_MAX, BATCH_ROWS_MAX, LIGHT_MAX } from "../domain/limits.ts";
import type { JsonObject } from "../http/json-body.ts";
import type { Problem } from "../http/problem.ts";
import { broken, must } from "../lib/assert.ts";
import { JsonFields } from "../lib/json-text.ts";
import { reasonOf } from "../lib/reason.ts";
import type { Committed, Load, Part, Transact } from "../store/store.ts";
import { type Call, type Endpoint, type ReadCall, writeEndpoint } from "./endpoint.ts";
import { batchIsFull, problemOf } from "./error-table.ts";

type Asked = { readonly path: string; readonly body: JsonObject };

/** One error for the whole element, whatever is wrong with it. */
function isAsked(value: unknown): value is Asked {
  if (typeof value !== "object" || value === null || !("path" in value) || !("body" in value)) return false;
  const { path, body } = value;
  return typeof path === "string" && typeof body === "object" && body !== null && !Array.isArray(body);
}

export const BATCH_ENDPOINT: Endpoint = writeEndpoint({
  method: "POST",
  path: "/api/v1/batch",
  auth: "secret",
  summary: "Runs many requests in order and in one transaction",
  rejections: [],
  input: () =>
    z.object({
      requests: z
        .array(z.custom<Asked>(isAsked, "must be an object with a path (a string) and a body (an object)"))
        .check(z.minLength(1), z.maxLength(BATCH_REQUESTS_MAX)),
    }),
  inputOf: () =>
    z.object({
      requests: z
        .array(z.object({ path: z.string(), body: z.looseObject({}) }))
        .check(z.minLength(1), z.maxLength(BATCH_REQUESTS_MAX)),
    }),
  exactNumbers: true,
  notInBatch: "must not be a batch itself",
  answer: () =>
    z.strictObject({ answers: z.array(z.strictObject({ status: z.int(), body: z.looseObject({}) })) }),
  handle: async (call, { requests }) => {
    if (requests.length > LIGHT_MAX) await call.services.batches.next();
    return new Batch(call, requests).run();
  },
  // Concatenated, the texts are copied once, when the answer is sent; join() would copy them twice.
  encode: (answers: readonly string[]) =>
    new JsonFields(`"answers":[${answers.reduce((list, one) => `${list},${one}`)}]`),
});

class Batch {
  readonly #call: Call<readonly string[]>;
  readonly #items: readonly Item[];
  /** How many handlers have neither handed in a transaction nor ended. */
  #running: number;
  #ready = Promise.withResolvers<void>();

  constructor(call: Call<readonly string[]>, requests: readonly Asked[]) {
    this.#call = call;
    const onReady = (): void => {
      if (--this.#running === 0) this.#ready.resolve();
    };
    this.#items = requests.map((asked) => new Item(call, asked, onReady));
    this.#running = requests.length;
  }

  /** The answers as JSON, in the order of the requests. */
  async run(): Promise<Committed<readonly string[]>> {
    const handlers = this.#items.map((item) => item.run());
    try {
      for (;;) {
        await this.#ready.promise;
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

  /** Null: nothing was committed, because undecided transactions go on. */
  async #commit(): Promise<Committed<readonly string[]> | null> {
    for (const { fault } of this.#items) if (fault !== null) throw fault.error;
    const waiting = this.#items.filter((item) => item.isWaiting);
    const parts = waiting.map((item) => this.#partOf(item));
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
  #partOf(item: Item): Part {
    const isFull = (): boolean => this.#isFullBefore(item);
    let isLoaded = true;
    return {
      load: () => {
        isLoaded = !isFull();
        return isLoaded ? item.load : {};
      },
      decide: (rows) => (isLoaded && !isFull() ? item.decide(rows) : item.skip()),
    };
  }

  /** The batch's own decision, after those of its requests. */
  #decide(waiting: readonly Item[]): Decision<readonly string[]> {
    if (waiting.some((item) => item.isUndecided)) throw new HasUndecided();
    return {
      ...accept(this.#items.map(({ answer }) => answer)),
      isStored: waiting.some((item) => item.isWorthStoring),
    };
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

/** Undoes the transaction of a batch that is not decided yet. */
class HasUndecided extends Error {
  override readonly name = "HasUndecided";
}

/** How many rows were loaded: a value that is a list has one for each of its elements. */
function rowsRead(loaded: Readonly<Record<string, unknown>>): number {
  return sumOf(Object.values(loaded), (value) => (Array.isArray(value) ? value.length : 1));
}

function sumOf<T>(list: readonly T[], size: (one: T) => number): number {
  return list.reduce((sum, one) => sum + size(one), 0);
}

/** A transaction that a handler has handed in, and the handler that waits for it. */
type Waiting = {
  readonly load: Load;
  readonly decide: Part["decide"];
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
};

/** One for all: a batch may refuse hundreds of requests. */
const FULL = batchIsFull();
const FULL_BODY = JSON.stringify(FULL);

const HANDED_IN = "what a batch decides was handed in by a handler that runs";

/** One request of a batch: its handler, the transaction that the handler waits for, and its answer. */
class Item {
  readonly #call: ReadCall;
  readonly #asked: Asked;
  /** Called when the handler has handed in a transaction, or has ended without one. */
  readonly #onReady: () => void;
  #waiting: Waiting | null = null;
  /** What was decided last; "skipped": the batch was full. An engine may decide several times. */
  #outcome: Decision<unknown> | Undecided | "skipped" = UNDECIDED;
  /** The outcome of the batch. */
  #end: "committed" | "undone" | null = null;
  /** Set when the handler ended before the commit with an error that no client may know about. */
  fault: { readonly error: unknown } | null = null;
  answer = "";
  bytes = 0;
  /** How many rows its transaction read and wrote; before it is decided, how many its queries look up. */
  rows = 0;

  constructor(call: ReadCall, asked: Asked, onReady: () => void) {
    this.#call = call;
    this.#asked = asked;
    this.#onReady = onReady;
  }

  get isWaiting(): boolean {
    return this.#waiting !== null;
  }

  get load(): Load {
    return must(this.#waiting, HANDED_IN).load;
  }

  get isUndecided(): boolean {
    return this.#outcome !== "skipped" && this.#outcome.kind === "undecided";
  }

  /** Whether the answer is stored for a repeat: that of a change or of a refusal, as for a single request. */
  get isWorthStoring(): boolean {
    if (this.#outcome === "skipped" || this.#outcome.kind === "undecided") return false;
    return this.#outcome.kind === "rejected" || this.#outcome.changes.length > 0 || isStored(this.#outcome);
  }

  /** Runs the handler to its end. Never rejects. */
  async run(): Promise<void> {
    try {
      const { charged } = this.#call;
      const request = await this.#call.part(this.#asked.path, this.#asked.body);
      await request.checkNodes(this.#call);
      const { first } = await request.run((encode) => ({
        ...this.#call,
        transact: charged(this.#transactFor(encode)),
        inBatch: true,
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

  /** Hands a transaction in. After the commit another one is an error, because it cannot join the batch. */
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
        // What it resolves with is the answer of this `decide`, committed.
        this.#waiting = { load, decide: decideAndAnswer, resolve: resolve as Waiting["resolve"], reject };
        this.rows = sumOf(Object.values(load), ({ params }) => params.length);
      });
    };
  }

  decide(rows: never): Decision<unknown> | Undecided {
    const outcome = must(this.#waiting, HANDED_IN).decide(rows);
    this.#outcome = outcome;
    this.rows = rowsRead(rows) + (outcome.kind === "accepted" ? sumOf(outcome.changes, rowsOf) : 0);
    if (outcome.kind === "undecided") this.bytes = 0;
    else if (outcome.kind === "rejected") {
      const problem = problemOf(new Rejection(outcome));
      if (problem) this.#refuse(problem);
    }
    return outcome;
  }

  /** Decides nothing, because the batch is full. */
  skip(): Undecided {
    this.#outcome = "skipped";
    this.rows = 0;
    this.#answer(FULL.status, FULL_BODY);
    return UNDECIDED;
  }

  /** Its transaction was undecided and nothing was committed: the handler hands in another. */
  goOn(): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.resolve(undefined);
  }

  /** The batch is on disk. */
  finish(): void {
    this.#end = "committed";
    const outcome = this.#outcome;
    if (outcome === "skipped") this.#waiting?.reject(FULL);
    else if (outcome.kind === "accepted") this.#waiting?.resolve(outcome.answer);
    else if (outcome.kind === "rejected") this.#waiting?.reject(new Rejection(outcome));
  }

  /** Nothing of the batch is committed. */
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

  /** Logs an error after the commit, which changes neither the writes nor the answer. */
  #reportLate(error: unknown): void {
    const { exchange, log } = this.#call;
    log.error("a request of a batch failed after its commit", {
      request_id: exchange.requestId,
      path: this.#asked.path,
      cause: reasonOf(error),
    });
  }
}
