/**
 * The type of an endpoint. A JSON endpoint reads the request only through its schema, and decides nothing: it calls a
 * use case. jsonEndpoint() is the one place where a request of JSON is parsed, checked, run and encoded, whether it
 * comes by HTTP, in a batch or from an adapter (MCP).
 */
import type * as z from "zod/mini";
import type { RejectionCode } from "../domain/decision.ts";
import type { KeyRecord, Moment, Task } from "../domain/model.ts";
import type { BodyRoom } from "../http/json-body.ts";
import type { Exchange } from "../http/exchange.ts";
import type { JsonObject } from "../http/json-body.ts";
import { broken } from "../lib/assert.ts";
import type { Log } from "../lib/log.ts";
import type { Redeemed } from "../service/tickets.ts";
import type { Answer, Around, Transact } from "../store/store.ts";
import { type JsonAnswer, encodeInPieces, encodeSuccess } from "./answer.ts";
import type { Access, Strict } from "./auth.ts";
import type { Share } from "./caller-shares.ts";
import type { Idempotency } from "./idempotency.ts";
import { ignoredFieldsFinder, inputParser, namesOfIgnored, withoutAbsent } from "./input.ts";
import type { Hold } from "./long-poll.ts";
import type { Body, Encoded, ResponseBackpressure } from "./response-backpressure.ts";
import type { Services } from "../service/services.ts";
import { withContext } from "./task-context.ts";
import type { Variant } from "../variant/variant.ts";

export type ReadCall = {
  readonly services: Services;
  readonly variant: Variant;
  readonly at: Moment;
  readonly clock: () => Moment;
  readonly work: () => number;
  readonly key: KeyRecord | null;
  readonly nodeOfKey: string | null;
  /** Even if no key was needed. */
  readonly boundTo: string | null;
  readonly ticket: Redeemed | null;
  /** Around each write of the caller's key; `transact` has them already. */
  readonly arounds: readonly (Around | null)[];
  /** The answer is stored for a repeat (Idempotency-Key): a write is not wasted when the client has hung up. */
  readonly repeatable: boolean;
  /** Part of a batch: it must not wait, and must write in one transaction. */
  readonly inBatch: boolean;
  /** The id of the task that a request of a batch creates, if its other requests refer to it (batch.ts). */
  readonly newTaskId?: string;
  readonly part: (path: string, body: JsonObject) => JsonRequest | Promise<JsonRequest>;
  readonly invoke: (call: Call, invocation: Invocation) => Promise<InvocationResult>;
  readonly log: Log;
  readonly idempotency: Idempotency;
  readonly backpressure: ResponseBackpressure;
  readonly bodyRoom: () => BodyRoom;
  readonly exchange: Exchange;
  readonly checkActsFor: (
    nodeIds: readonly (string | null | undefined)[],
    strict: Strict | undefined,
  ) => Promise<void> | undefined;
  readonly hasAdminKey: () => Promise<boolean>;
  /** Counts a wrong token as a wrong secret of the caller's address. @throws {Problem} 429 after too many */
  readonly countWrongSecret: () => void;
  readonly hold: Hold;
  /** Calls `onLoss` once if the key that the caller showed is revoked or expires. Returns the way to unsubscribe. */
  readonly watchKey: (onLoss: () => void) => () => void;
  readonly share: () => Share;
};

/** A call that may write. Every write must go through `transact`: its response is encoded from an Out. */
export type Call<Out = unknown> = ReadCall & { readonly transact: Transact<Out> };

export type CallFor = <Out>(encode: (out: Out) => string) => Call<Out>;

/** A request to an endpoint from within the process, by an adapter (MCP, A2A) that has authenticated the caller. */
export type Invocation = {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** Of a GET the query and the parameters of the path, as texts. */
  readonly input: JsonObject;
  readonly idempotency?: { readonly key: string; readonly implicit: boolean };
};

/** Numbers are those of parseExact() in lib/exact-json.ts. */
export type InvocationResult = {
  readonly status: number;
  readonly body: JsonObject;
  readonly replayed: boolean;
};

export type JsonRequest = {
  readonly notInBatch: string | null;
  readonly ignored: readonly string[];
  readonly checkNodes: (call: ReadCall) => Promise<void> | undefined;
  readonly run: (callFor: CallFor) => Promise<Encoded>;
  readonly complete: (call: ReadCall, stored: string) => Promise<string>;
};

export type AnswerSchema = (variant: Variant) => z.ZodMiniObject;

export type Declared = Access & {
  readonly path: string;
  readonly summary: string;
  readonly rejections: readonly RejectionCode[];
  /** Its answer has a secret: it must not be stored, so the request takes no Idempotency-Key. */
  readonly answersSecret?: boolean;
};

/**
 * `input` is the schema of a POST's body, of a GET's query and path parameters, or of a DELETE's path parameters; it is
 * made at the first request. `encode` must be pure.
 */
type JsonDeclared<In, Out> = Omit<Declared, "method" | "rejections"> & {
  readonly rejections?: Declared["rejections"];
  readonly input: () => z.ZodMiniType<In>;
  /** Fields in which null is not the same as leaving them out. */
  readonly clearable?: readonly string[];
  /** Fields that the specification names and the hub does not read: the response does not name them. */
  readonly unread?: readonly string[];
  /** Without `success: true` and `ignored`. For tests and documentation: requests never make it. */
  readonly answer: AnswerSchema;
  /** Where `input` leaves a part of it to `handle`. For documentation. */
  readonly inputOf?: (variant: Variant) => z.ZodMiniType;
  readonly actsFor?: (input: In) => readonly (string | null | undefined)[];
  readonly encode: (out: Out, variant: Variant, at: Moment) => JsonAnswer;
};

export type ReadDeclared<In, Out> = JsonDeclared<In, Out> & {
  readonly handle: (call: ReadCall, input: In) => Promise<Out>;
  /** Its read must not be repeated when there is no room for its answer (see response-backpressure.ts). */
  readonly once?: boolean;
  /** One of the caller's running reads (READ_SHARES). */
  readonly readsMany?: boolean;
};

/** With an Idempotency-Key `encode` runs inside the commit, to store the response with the change. */
export type WriteDeclared<In, Out> = JsonDeclared<In, Out> & {
  readonly method?: "POST" | "DELETE";
  readonly handle: (call: Call<Out>, input: In) => Promise<Answer<Out>>;
  /**
   * The task of the response's field `task`. Its context is added after the commit, but not in a batch: there it would
   * be as large as all that the tasks depend on.
   */
  readonly handsOut?: (out: Out) => Task | null;
  readonly emptyBody?: boolean;
  /** Values are stored as they were sent: see lib/exact-json.ts. */
  readonly exactNumbers?: boolean;
  /**
   * Why it may not be part of a batch, or a function that says so of one request: if it waits or needs several commits.
   */
  readonly notInBatch?: string | ((input: In) => string | null);
};

export const MUST_NOT_WAIT = "must not wait in a batch";

export type RawEndpoint = Declared & {
  readonly kind: "raw";
  readonly handle: (call: Call) => Promise<Response | Body>;
};

type IgnoredIn = (raw: JsonObject, variant: Variant) => readonly string[];

export type JsonEndpoint = Declared &
  Pick<JsonDeclared<unknown, unknown>, "input" | "answer" | "inputOf"> &
  Pick<ReadDeclared<never, never>, "once" | "readsMany"> &
  Pick<WriteDeclared<never, never>, "emptyBody" | "exactNumbers" | "notInBatch"> & {
    readonly kind: "json";
    readonly actsFor?: unknown;
    readonly ignoredIn: IgnoredIn;
    /** `unread`: parameters beside `raw`, which nothing reads. */
    readonly parse: (raw: JsonObject, variant: Variant, unread?: readonly string[]) => JsonRequest;
  };

export type Endpoint = RawEndpoint | JsonEndpoint;

export function readEndpoint<In, Out>(declared: ReadDeclared<In, Out>): JsonEndpoint {
  return jsonEndpoint({ ...declared, method: "GET" }, async (callFor, input, ignored) => {
    const call: ReadCall = callFor(noResponse); // it has no commit
    const out = await declared.handle(call, input);
    return encodeInPieces(declared.encode(out, call.variant, call.clock()), ignored);
  });
}

export function writeEndpoint<In, Out>(declared: WriteDeclared<In, Out>): JsonEndpoint {
  return jsonEndpoint(
    { method: "POST", ...declared },
    async (callFor, input, ignored) => {
      // Encoded once: the commit that stores the response and the caller get the same text.
      let encoded: { readonly out: Out; readonly text: string } | undefined;
      const encode = (out: Out): string => {
        if (encoded === undefined || encoded.out !== out)
          encoded = { out, text: encodeSuccess(declared.encode(out, call.variant, call.clock()), ignored) };
        return encoded.text;
      };
      const call = callFor(encode);
      const out = await declared.handle(call, input);
      const task = call.inBatch ? null : declared.handsOut?.(out);
      const context = task ? await call.services.contexts.of(task) : null;
      return { first: withContext(encode(out), context, call.variant), next: null };
    },
    declared.handsOut && completeStored,
  );
}

/** The stored response of a hand-out has no context. */
async function completeStored({ services, variant }: ReadCall, stored: string): Promise<string> {
  const { task } = JSON.parse(stored) as { readonly task?: { readonly task_id: string } | null }; // of taskAnswer()
  return task ? withContext(stored, await services.contexts.ofId(task.task_id), variant) : stored;
}

function noResponse(): never {
  throw broken("a read has no commit that uses its response");
}

type Run<In> = (callFor: CallFor, input: In, ignored: readonly string[]) => Promise<Encoded>;

function jsonEndpoint<In, Out>(
  declared: JsonDeclared<In, Out> & Pick<Declared, "method"> & Pick<WriteDeclared<In, Out>, "notInBatch">,
  run: Run<In>,
  complete: JsonRequest["complete"] = async (_, stored) => stored,
): JsonEndpoint {
  const { method, strict, actsFor, notInBatch } = declared;
  const parseInput = inputParser(declared.input);
  const ignoredIn = ignoredFinder(declared);
  const parse = (raw: JsonObject, variant: Variant, unread: readonly string[] = []): JsonRequest => {
    const present = withoutAbsent(raw, method === "GET" ? "" : null, declared.clearable);
    const input = parseInput(present);
    const inBody = ignoredIn(present, variant);
    const ignored = unread.length === 0 ? inBody : namesOfIgnored([...inBody, ...unread]);
    return {
      notInBatch: typeof notInBatch === "function" ? notInBatch(input) : null,
      ignored,
      checkNodes: (call) => actsFor && call.checkActsFor(actsFor(input), strict),
      run: (callFor) => run(callFor, input, ignored),
      complete,
    };
  };
  return { rejections: [], ...declared, kind: "json", ignoredIn, parse };
}

function ignoredFinder<In, Out>({ input, inputOf, unread }: JsonDeclared<In, Out>): IgnoredIn {
  if (!inputOf) return ignoredFieldsFinder(input, unread);
  const finders = new Map<Variant, (raw: JsonObject) => readonly string[]>();
  return (raw, variant) => {
    let find = finders.get(variant);
    if (!find) finders.set(variant, (find = ignoredFieldsFinder(() => inputOf(variant), unread)));
    return find(raw);
  };
}

export function rawEndpoint(
  endpoint: Pick<RawEndpoint, "path" | "auth" | "summary" | "handle"> & Partial<RawEndpoint>,
): Endpoint {
  return { method: "GET", rejections: [], ...endpoint, kind: "raw" };
}

export const BY_NODE = {
  auth: "secret",
  strict: "bound",
  actsFor: ({ node_id }: { readonly node_id?: string | undefined }) => [node_id],
} as const;
