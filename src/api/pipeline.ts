/**
 * The request pipeline: authenticates the caller, validates the input, replays the stored answer to a repeat
 * (idempotency), and runs the request (endpoint.ts). The first failing step decides the error
 * (docs/errors-and-limits.md).
 */
import type { Moment } from "../domain/model.ts";
import { type BodyRoom, type JsonObject, readJsonObject } from "../http/json-body.ts";
import { type Exchange, type Handler, type Route, isTls, queryOf } from "../http/exchange.ts";
import type { Problem } from "../http/problem.ts";
import { assert } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import { parseExact, withRoundedNumbers } from "../lib/exact-json.ts";
import type { Log } from "../lib/log.ts";
import { urlFor } from "../service/copies.ts";
import { type Store, StoreReadOnly, withAround } from "../store/store.ts";
import type { Variant } from "../variant/variant.ts";
import { type AccessPolicy, type Caller, Authenticator, signing } from "./auth.ts";
import type { Call, Endpoint, Invocation, InvocationResult, JsonEndpoint, JsonRequest } from "./endpoint.ts";
import { problemOf, readOnly } from "./error-table.ts";
import { type Attempt, Idempotency, attemptBy, hashJson, idempotencyKeyOf } from "./idempotency.ts";
import { JSON_BODY_LIMITS, invalidField } from "./input.ts";
import { LongPolls } from "./long-poll.ts";
import { RequestBodies } from "./request-bodies.ts";
import type { Body, Encoded, ResponseBackpressure } from "./response-backpressure.ts";
import type { KeyRing } from "../service/keys.ts";
import type { Services } from "../service/services.ts";

export type PipelineParts = AccessPolicy & {
  readonly services: Services;
  readonly store: Store;
  readonly keys: KeyRing;
  readonly clock: Clock;
  readonly log: Log;
  readonly maxAnswersBytes: number;
  readonly backpressure: ResponseBackpressure;
};

type Served = { readonly variant: Variant; readonly endpoints: ReadonlyMap<string, Endpoint> };

export class Pipeline {
  readonly #services: Services;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #keys: KeyRing;
  readonly #longPolls: LongPolls;
  readonly #bodies = new RequestBodies();
  readonly #authenticator: Authenticator;
  readonly #idempotency: Idempotency;
  readonly #backpressure: ResponseBackpressure;

  constructor({
    services,
    store,
    keys,
    clock,
    log,
    maxAnswersBytes,
    backpressure,
    ...policy
  }: PipelineParts) {
    this.#services = services;
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#keys = keys;
    this.#authenticator = new Authenticator(keys, services.tickets, clock, policy);
    this.#longPolls = new LongPolls(keys);
    this.#backpressure = backpressure;
    this.#idempotency = new Idempotency(store, clock, backpressure, keys, maxAnswersBytes);
  }

  get waiting(): LongPolls["waiting"] {
    return this.#longPolls.waiting;
  }

  routes(endpoints: readonly Endpoint[], variant: Variant): readonly Route[] {
    const byName = new Map(endpoints.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint]));
    const served = { variant, endpoints: byName };
    return endpoints.map((endpoint): Route => {
      const { method, path } = endpoint;
      const handle: Handler =
        endpoint.kind === "json"
          ? (exchange) => this.#runJson(endpoint, exchange, served)
          : async (exchange) => {
              const caller = await this.#authenticator.authenticate(exchange, endpoint, variant);
              return endpoint.handle(this.#call(exchange, caller, served));
            };
      return {
        method,
        path,
        handle: (exchange) => handle(exchange).catch((error) => this.#namingHub(error, exchange, variant)),
      };
    });
  }

  /** Of a write that another hub accepts, the error says which. */
  #namingHub(error: unknown, exchange: Exchange, { name }: Variant): never {
    if (!(error instanceof StoreReadOnly)) throw error;
    const hub = this.#services.copies.report()?.hub ?? null;
    throw readOnly(error, hub && urlFor(hub, { variant: name, isTls: isTls(exchange) }));
  }

  async #runJson(endpoint: JsonEndpoint, exchange: Exchange, served: Served): ReturnType<Handler> {
    const caller = await this.#authenticator.authenticate(exchange, endpoint, served.variant);
    const raw =
      endpoint.method === "POST"
        ? await readBody(endpoint, exchange, () =>
            this.#bodies.roomOf(this.#authenticator.shareOf(exchange, caller)),
          )
        : readParameters(endpoint, exchange);
    this.#authenticator.checkStillValid(caller); // a body may arrive slowly
    const query = endpoint.method === "GET" ? [] : Object.keys(queryOf(exchange.request)); // only GET reads it
    const request = endpoint.parse(raw, caller.variant, query);
    const call = this.#call(exchange, caller, served);
    await request.checkNodes(call);
    const alone = (): Call => call;
    const attempt = endpoint.method === "POST" ? attemptOf(call, endpoint, raw) : null;
    if (attempt) return this.#runOnce(request, call, attempt);
    if (endpoint.method !== "GET" || endpoint.once === true)
      return this.#backpressure.ofWrite(call, (await request.run(alone)).first);
    const load = (): Promise<Encoded> => request.run(alone);
    return endpoint.readsMany
      ? this.#backpressure.ofLargeRead(call, load)
      : this.#backpressure.ofRead(call, load);
  }

  readonly #at = (): Moment => ({ now: this.#clock.now(), steady: this.#clock.steady() });

  #call(exchange: Exchange, caller: Caller, served: Served): Call {
    const { variant, key, shownKey, ticket } = caller;
    const { mints, quotas } = this.#services;
    const nodeOfKey = key?.nodeId ?? null;
    const person = this.#authenticator.personOf(exchange);
    const arounds = [signing(caller, person), mints.limiting(key?.keyId ?? null), quotas.charging(nodeOfKey)];
    const call: Call = {
      services: this.#services,
      idempotency: this.#idempotency,
      backpressure: this.#backpressure,
      bodyRoom: () => this.#bodies.roomOf(this.#authenticator.shareOf(exchange, caller)),
      variant,
      at: this.#at(),
      clock: this.#at,
      work: () => this.#clock.work(),
      key,
      nodeOfKey,
      boundTo: shownKey?.nodeId ?? null,
      ticket: ticket ?? null,
      transact: withAround(this.#store.transact, arounds),
      arounds,
      repeatable: false,
      inBatch: false,
      part: (path, body) => this.#part(call, served, path, body),
      invoke: (caller, invocation) => this.#invoke(caller, served, invocation),
      log: this.#log,
      exchange,
      checkActsFor: (nodeIds, strict) => this.#authenticator.checkActsFor(exchange, caller, nodeIds, strict),
      hasAdminKey: () => this.#authenticator.hasAdminKey(exchange),
      countWrongSecret: () => this.#authenticator.recordWrongSecret(exchange),
      hold: (wait) => this.#longPolls.hold(exchange, caller, call.share(), wait),
      watchKey: (onLoss) => (shownKey === null ? () => {} : this.#keys.hold(shownKey, onLoss)),
      share: () => this.#authenticator.shareOf(exchange, caller),
    };
    return call;
  }

  #runOnce(request: JsonRequest, call: Call, attempt: Attempt): Promise<Response | Body> {
    const complete = (stored: string): Promise<string> => request.complete(call, stored);
    return this.#idempotency.run({ ...attempt, complete }, async (transactFor) => {
      const { first } = await request.run((encode) => ({
        ...call,
        repeatable: true,
        transact: transactFor(encode),
      }));
      return first;
    });
  }

  /** Returns a refusal as an answer. @throws a fault of the hub */
  async #invoke(call: Call, served: Served, invocation: Invocation): Promise<InvocationResult> {
    const endpoint = served.endpoints.get(`${invocation.method} ${invocation.path}`);
    assert(
      endpoint?.kind === "json" && endpoint.auth !== "admin",
      "an endpoint that another one calls takes JSON, and no administrator key",
    );
    try {
      return await this.#invokeJson(endpoint, call, invocation);
    } catch (error) {
      const problem = problemOf(error);
      if (problem === null) throw error;
      return { status: problem.status, body: problem.toJSON(), replayed: false };
    }
  }

  async #invokeJson(
    endpoint: JsonEndpoint,
    call: Call,
    { path, input, idempotency }: Invocation,
  ): Promise<InvocationResult> {
    const request = endpoint.parse(input, call.variant);
    await request.checkNodes(call);
    if (idempotency === undefined) {
      const load = async (): Promise<string> => wholeOf(await request.run(() => call));
      const text = await (endpoint.readsMany ? this.#backpressure.runRead(call, load) : load());
      return { status: 200, body: parseObject(text), replayed: false };
    }
    const attempt = {
      // Of an implicit one the key says what is asked.
      ...attemptBy(call, path, idempotency.key, idempotency.implicit ? "" : hashJson(input)),
      implicit: idempotency.implicit,
    };
    const answer = await this.#runOnce(request, call, attempt);
    const replayed = answer instanceof Response;
    const response = replayed ? answer : new Response(answer);
    return { status: response.status, body: parseObject(await response.text()), replayed };
  }

  /** The checks are those of a single request, in the same order; `body` has exact numbers. */
  #part(call: Call, served: Served, path: string, body: JsonObject): JsonRequest | Promise<JsonRequest> {
    const endpoint = served.endpoints.get(`POST /api/v1/${path}`);
    if (endpoint?.kind !== "json")
      throw notInBatch("must be the path of a POST of JSON, without a query, such as task/claim");
    const prepare = (): JsonRequest => {
      if (endpoint.answersSecret) throw notInBatch("must be sent alone: its response has a secret");
      if (typeof endpoint.notInBatch === "string") throw notInBatch(endpoint.notInBatch);
      const request = endpoint.parse(endpoint.exactNumbers ? body : withRoundedNumbers(body), call.variant);
      if (request.notInBatch !== null) throw notInBatch(request.notInBatch);
      return request;
    };
    if (endpoint.auth !== "admin") return prepare();
    return this.#authenticator.authenticate(call.exchange, endpoint, served.variant).then(prepare);
  }
}

async function wholeOf({ first, next }: Encoded): Promise<string> {
  let text = first;
  for (let piece = await next?.(); piece != null; piece = await next?.()) text += piece;
  return text;
}

function parseObject(text: string): JsonObject {
  return parseExact(text) as JsonObject; // every answer is an object
}

function notInBatch(message: string): Problem {
  return invalidField("path", message);
}

function attemptOf(
  call: Call,
  { path, answersSecret }: Pick<Endpoint, "path" | "answersSecret">,
  raw: unknown,
): Attempt | null {
  const idempotencyKey = idempotencyKeyOf(call.exchange.request.headers);
  if (idempotencyKey === null) return null;
  if (answersSecret) throw storesSecret();
  return attemptBy(call, path, idempotencyKey, hashJson(raw));
}

function storesSecret(): Problem {
  return invalidField(
    "Idempotency-Key",
    "must not be sent here, because the hub would store the response, which has a secret",
  );
}

function readBody(
  { emptyBody, exactNumbers }: JsonEndpoint,
  { request }: Exchange,
  roomOf: () => BodyRoom,
): Promise<JsonObject> {
  return readJsonObject(
    request,
    JSON_BODY_LIMITS,
    roomOf,
    emptyBody ? {} : undefined,
    exactNumbers ? parseExact : undefined,
  );
}

function readParameters({ method }: JsonEndpoint, { request }: Exchange): JsonObject {
  return method === "GET" ? { ...queryOf(request), ...request.params } : { ...request.params };
}
