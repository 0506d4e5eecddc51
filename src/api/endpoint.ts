/**
 * What an endpoint is: declared once, with everything that a caller, the tests and a description of the API need.
 * An endpoint reads nothing of the request by itself but through its schema, and decides nothing.
 */
import type * as z from "zod/mini";
import type { RejectionCode } from "../domain/decision.ts";
import type { KeyRecord } from "../domain/model.ts";
import type { Exchange, Handler, Method } from "../http/exchange.ts";
import type { Feed } from "../service/feed.ts";
import type { FileService } from "../service/files.ts";
import type { LuxService } from "../service/lux.ts";
import type { MessageService } from "../service/messages.ts";
import type { NodeService } from "../service/nodes.ts";
import type { SystemService } from "../service/system.ts";
import type { TaskService } from "../service/tasks.ts";
import type { Transact } from "../store/store.ts";
import type { Auth } from "./auth.ts";
import type { Idempotency } from "./idempotency.ts";
import { inputParser } from "./input.ts";
import type { Body } from "./response-backpressure.ts";
import type { Variant } from "../variant/variant.ts";

/** The use cases that endpoints call. */
export type Services = {
  readonly nodes: NodeService;
  readonly tasks: TaskService;
  readonly messages: MessageService;
  readonly lux: LuxService;
  readonly files: FileService;
  readonly feed: Feed;
  readonly system: SystemService;
};

/** One call of an endpoint: by whom, in which variant, and the way to write. */
export type Call = {
  readonly services: Services;
  readonly variant: Variant;
  /** The key of the caller; null where none was asked for. */
  readonly key: KeyRecord | null;
  /** Writes go through this, so that a stored answer is in the same commit. */
  readonly transact: Transact;
  /** Whether the answer is stored for a repeat: then it may be decided although the caller has hung up. */
  readonly repeatable: boolean;
  readonly idempotency: Idempotency;
  readonly exchange: Exchange;
};

/** A GET may have one list whose value is Rows: what of it is not loaded yet is loaded as the caller reads. */
export type JsonAnswer = Readonly<Record<string, unknown>>;

/** The shape of an answer. */
export type AnswerShape = () => z.ZodMiniObject | z.ZodMiniUnion<readonly z.ZodMiniObject[]>;

type Declared = {
  readonly method: Method;
  readonly path: string;
  readonly auth: Auth;
  /** One line for people. */
  readonly summary: string;
  /** The codes by which the state of things can refuse it. */
  readonly rejections: readonly RejectionCode[];
};

/**
 * An endpoint that answers JSON. `input` reads the body of a POST (with path parameters, the parameters) or the query
 * of a GET; it is made at the first of them. `handle` answers what its transact answered, and `encode` is pure: it may
 * run inside the commit, to store the answer with the change.
 */
export type JsonEndpoint<In, Out> = Declared & {
  readonly kind: "json";
  readonly input: () => z.ZodMiniType<In>;
  /** Reads by `input`. @throws {Problem} 400 */
  readonly parse: (raw: unknown) => In;
  /** The fields of a success beside `success: true`; made when asked for, for it is no part of a request's way. */
  readonly answer: AnswerShape;
  /** Whether a body may be left out. */
  readonly emptyBody?: boolean;
  /** The nodes that the caller acts for: a key bound to another node is refused. */
  readonly actsFor?: (input: In) => readonly (string | null | undefined)[];
  readonly handle: (call: Call, input: In) => Promise<Out>;
  readonly encode: (out: Out, variant: Variant) => JsonAnswer;
  /** Whether a GET answers what another would not find again: then it is not asked for twice, see api/response-backpressure.ts. */
  readonly once?: boolean;
};

/** An endpoint that reads or answers something else than JSON. */
export type RawEndpoint = Declared & {
  readonly kind: "raw";
  readonly handle: (call: Call) => Promise<Response | Body>;
};

/** A JSON endpoint whose types are closed over: all that the pipeline needs. */
export type Endpoint =
  | RawEndpoint
  | (Declared & {
      readonly kind: "json";
      readonly input: () => z.ZodMiniType;
      readonly answer: AnswerShape;
      readonly emptyBody?: boolean;
      readonly bind: (pipeline: JsonPipeline) => Handler;
    });

/** Runs a JSON endpoint of any types; the pipeline implements it. */
export type JsonPipeline = <In, Out>(
  endpoint: JsonEndpoint<In, Out>,
  exchange: Exchange,
) => ReturnType<Handler>;

/** Declares a JSON endpoint; its input and output types stay its own. */
export function jsonEndpoint<In, Out>(endpoint: Omit<JsonEndpoint<In, Out>, "kind" | "parse">): Endpoint {
  const declared: JsonEndpoint<In, Out> = { ...endpoint, kind: "json", parse: inputParser(endpoint.input) };
  return { ...declared, bind: (pipeline) => (exchange) => pipeline(declared, exchange) };
}

/** Declares an endpoint that is no JSON endpoint. */
export function rawEndpoint(endpoint: Omit<RawEndpoint, "kind">): Endpoint {
  return { ...endpoint, kind: "raw" };
}
