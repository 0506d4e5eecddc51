/**
 * From a request to an endpoint and back: admits the caller, reads what is asked, looks for a repeat, runs the endpoint,
 * words the answer. The order of these checks is the order of the errors in decisions.md.
 */
import * as limit from "../domain/limits.ts";
import { type JsonObject, readJsonObject } from "../http/body.ts";
import { type Exchange, type Handler, type Route, queryOf } from "../http/exchange.ts";
import type { Budget } from "../lib/budget.ts";
import type { Clock } from "../lib/clock.ts";
import type { Network } from "../lib/ip.ts";
import type { Store } from "../store/store.ts";
import type { Variant } from "../variant/variant.ts";
import { encodeSuccess } from "./answer.ts";
import { type Caller, Gate, checkActsFor } from "./auth.ts";
import type { Call, Endpoint, JsonEndpoint, Services } from "./endpoint.ts";
import { type Attempt, Idempotency, attemptBy, hashJson, idempotencyKeyOf } from "./idempotency.ts";
import { Outbox, type Worded } from "./response-backpressure.ts";
import type { KeyRing } from "../service/keys.ts";

const BODY_LIMITS = {
  maxBytes: limit.JSON_BODY_MAX_BYTES,
  maxValues: limit.JSON_VALUES_MAX,
  deadlineMs: limit.JSON_BODY_DEADLINE_MS,
};

export type PipelineParts = {
  readonly services: Services;
  readonly store: Store;
  readonly keys: KeyRing;
  readonly clock: Clock;
  readonly trustedProxies: readonly Network[];
  /** Whether A's public paths ask for the secret too. */
  readonly isPrivate: boolean;
  /** What large answers may hold, in bytes. */
  readonly answers: Budget;
};

/** Everything between the sockets and the services, once for all listeners. */
export class Pipeline {
  readonly #services: Services;
  readonly #store: Store;
  readonly #gate: Gate;
  readonly #idempotency: Idempotency;
  readonly #outbox: Outbox;

  constructor({ services, store, keys, clock, trustedProxies, isPrivate, answers }: PipelineParts) {
    this.#services = services;
    this.#store = store;
    this.#gate = new Gate(keys, clock, trustedProxies, isPrivate);
    this.#outbox = new Outbox(answers);
    this.#idempotency = new Idempotency(store, clock, this.#outbox);
  }

  /** The routes of a listener that speaks `variant` unless a key says otherwise. */
  routes(endpoints: readonly Endpoint[], variant: Variant): readonly Route[] {
    return endpoints.map((endpoint): Route => {
      const { method, path } = endpoint;
      if (endpoint.kind === "json") {
        return {
          method,
          path,
          handle: endpoint.bind((json, exchange) => this.#runJson(json, exchange, variant)),
        };
      }
      return {
        method,
        path,
        handle: async (exchange) => {
          const caller = this.#gate.admit(exchange, endpoint.auth, variant);
          return endpoint.handle(this.#call(exchange, caller));
        },
      };
    });
  }

  async #runJson<In, Out>(
    endpoint: JsonEndpoint<In, Out>,
    exchange: Exchange,
    ofListener: Variant,
  ): ReturnType<Handler> {
    const caller = this.#gate.admit(exchange, endpoint.auth, ofListener);
    const raw =
      endpoint.method === "POST" ? await readBody(endpoint, exchange) : readParameters(endpoint, exchange);
    const input = endpoint.parse(raw);
    for (const nodeId of endpoint.actsFor?.(input) ?? []) checkActsFor(caller, nodeId);
    const call = this.#call(exchange, caller);
    // What transact answers is what handle answers.
    const encode = (answer: unknown): string => encodeSuccess(endpoint.encode(answer as Out, call.variant));
    const attempt = endpoint.method === "POST" ? attemptOf(call, endpoint.path, raw) : null;
    if (attempt) {
      return this.#idempotency.run(attempt, encode, async (transact) =>
        encode(await endpoint.handle({ ...call, transact, repeatable: true }, input)),
      );
    }
    const word = (out: Out): Worded => {
      const rest = endpoint.rest?.(out) ?? null;
      return { first: encode(out), rest: rest && encoded(rest, encode) };
    };
    if (endpoint.method === "GET" && endpoint.once !== true) {
      return this.#outbox.ofRead(exchange, async () => word(await endpoint.handle(call, input)));
    }
    return this.#outbox.ofWrite(exchange, encode(await endpoint.handle(call, input)));
  }

  #call(exchange: Exchange, { variant, key }: Caller): Call {
    return {
      services: this.#services,
      idempotency: this.#idempotency,
      variant,
      key,
      transact: this.#store.transact,
      repeatable: false,
      exchange,
    };
  }
}

async function* encoded(parts: AsyncGenerator<unknown>, encode: (part: unknown) => string) {
  for await (const part of parts) yield encode(part);
}

/** What may be a repeat: a request with an Idempotency-Key; null for one without. */
function attemptOf(call: Call, path: string, raw: unknown): Attempt | null {
  const idempotencyKey = idempotencyKeyOf(call.exchange.request.headers);
  if (idempotencyKey === null) return null;
  return attemptBy(call, call.exchange, path, idempotencyKey, hashJson(raw));
}

function readBody<In, Out>(endpoint: JsonEndpoint<In, Out>, { request }: Exchange): Promise<JsonObject> {
  return readJsonObject(request, BODY_LIMITS, endpoint.emptyBody ? {} : undefined);
}

function readParameters<In, Out>({ method }: JsonEndpoint<In, Out>, { request }: Exchange): JsonObject {
  return method === "GET" ? { ...queryOf(request), ...request.params } : { ...request.params };
}
