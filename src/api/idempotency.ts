/**
 * Idempotency-Key (decisions.md, Envelope): the first answer to a POST is stored in the commit of its change and given
 * again to whoever repeats the request within 24 h. While the first still runs, the second waits for it. Of two at two
 * hubs on one database the first to commit is the first: the other finds its answer when it is about to decide.
 */
import { type Accepted, type Decision, Rejection, type Undecided, accept } from "../domain/decision.ts";
import {
  IDEMPOTENCY_KEY_MAX_CHARS,
  IDEMPOTENCY_RETAIN_MS,
  JSON_DEPTH_MAX,
  WAITERS_MAX,
} from "../domain/limits.ts";
import { isNestedDeeper } from "../http/body.ts";
import { type Exchange, NO_SNIFF, allowSilence } from "../http/exchange.ts";
import { Problem, invalidRequest } from "../http/problem.ts";
import type { Clock } from "../lib/clock.ts";
import { type PastAnswer, storedAnswer } from "../store/sql/keys.ts";
import type { Load, Loaded, Query, Store, Transact } from "../store/store.ts";
import type { Caller } from "./auth.ts";
import type { Body, Encoded, ResponseBackpressure } from "./response-backpressure.ts";
import { overloaded, problemOf } from "./error-table.ts";

const SANE_KEY = /^[\x21-\x7e]+$/;

/** A request that may be a repeat: whose it is, what it asked, and itself, for it may have to wait. */
export type Attempt = { readonly scope: string; readonly asked: string; readonly exchange: Exchange };

/**
 * Answers are as private as the key that asked for them, so they are kept apart by key; and by path: that of the
 * endpoint, for the request's URL holds the Host, which is the caller's word. Each variant answers in words of its own,
 * so the variant is part of what was asked: the same body in the other one is not done twice, and not replayed.
 * `bodyHash` is hex.
 */
export function attemptBy(
  { key, variant }: Caller,
  exchange: Exchange,
  path: string,
  idempotencyKey: string,
  bodyHash: string,
): Attempt {
  const scope = [key?.keyId ?? "", path, idempotencyKey].join(" ");
  return { scope, asked: `${variant.name} ${bodyHash}`, exchange };
}

/** The Idempotency-Key of a request, or null. @throws {Problem} 400 for one that is no key */
export function idempotencyKeyOf(headers: Headers): string | null {
  const key = headers.get("idempotency-key");
  if (key === null) return null;
  if (key.length <= IDEMPOTENCY_KEY_MAX_CHARS && SANE_KEY.test(key)) return key;
  const message = `must be 1 to ${IDEMPOTENCY_KEY_MAX_CHARS} visible ASCII characters`;
  throw invalidRequest([{ path: "Idempotency-Key", message }]);
}

/**
 * What was asked, whatever the order of its names and its spaces: SHA-256 of the JSON value, keys sorted.
 * @throws {Problem} 400 for one that is nested too deep to be compared
 */
export function hashJson(value: unknown): string {
  if (isNestedDeeper(value, JSON_DEPTH_MAX)) {
    throw invalidRequest([{ path: "", message: `must not be nested deeper than ${JSON_DEPTH_MAX}` }]);
  }
  return Bun.SHA256.hash(JSON.stringify(sorted(value)), "hex");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return { fields: fields.map(([name, inner]) => [name, sorted(inner)]) }; // an object still differs from a list
}

/** luxhub 0.1.0 stored the hash without the variant: after an update its answers still are those of their requests. */
function isSame(stored: string, asked: string): boolean {
  return stored === asked || asked.endsWith(` ${stored}`);
}

/** Beside what the use case loads; no name of its own has a space. */
const STORED = "stored answer";

/** Another hub has answered this request while it was on its way here: nothing was decided. */
class AnsweredElsewhere extends Error {
  override readonly name = "AnsweredElsewhere";
}

export class Idempotency {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #backpressure: ResponseBackpressure;
  /** Who is at it, by scope; resolves when he has ended, however that was. */
  readonly #running = new Map<string, Promise<unknown>>();
  #waiting = 0;

  constructor(store: Store, clock: Clock, backpressure: ResponseBackpressure) {
    this.#store = store;
    this.#clock = clock;
    this.#backpressure = backpressure;
  }

  /** Gives the stored answer, or runs `first` with a Transact that stores the answer in the same commit. */
  async run(
    attempt: Attempt,
    encode: (answer: unknown) => string,
    first: (transact: Transact) => Promise<string>,
  ): Promise<Response | Body> {
    for (let other = this.#running.get(attempt.scope); other; other = this.#running.get(attempt.scope)) {
      await this.#afterOther(other, attempt);
      const stored = await this.#replay(attempt); // all who waited find it, none has to go before another
      if (stored) return stored;
    }
    const done = Promise.withResolvers<void>();
    this.#running.set(attempt.scope, done.promise);
    try {
      return (
        (await this.#replay(attempt)) ??
        this.#backpressure.ofWrite(attempt.exchange, await first(this.#recording(attempt, encode)))
      );
    } catch (error) {
      const replayed = error instanceof AnsweredElsewhere ? await this.#replay(attempt) : null;
      if (!replayed) throw error;
      return replayed;
    } finally {
      this.#running.delete(attempt.scope);
      done.resolve();
    }
  }

  /** Waits for another request of the same scope. @throws {Problem} 503 when too many wait already */
  async #afterOther(other: Promise<unknown>, { exchange }: Attempt): Promise<void> {
    if (this.#waiting >= WAITERS_MAX) throw overloaded("As many repeats wait as the hub can hold.");
    allowSilence(exchange);
    this.#waiting++;
    await other.finally(() => this.#waiting--);
  }

  #stored({ scope }: Attempt): Query<PastAnswer | null> {
    return storedAnswer(scope, this.#clock.now() - IDEMPOTENCY_RETAIN_MS);
  }

  async #replay(attempt: Attempt): Promise<Response | null> {
    const past = await this.#store.read(this.#stored(attempt));
    if (!past) return null;
    if (!isSame(past.asked, attempt.asked)) {
      const detail =
        "This Idempotency-Key was used with another body or in the other variant. Use a new key for a new request.";
      throw new Problem(422, "idempotency_key_reused", "Idempotency key reused", detail);
    }
    const { status } = past;
    let body: string | null = past.body;
    const load = async (): Promise<Encoded> => {
      const first = body ?? (await this.#store.read(this.#stored(attempt)))?.body;
      body = null;
      if (first === undefined) throw overloaded("The stored answer has just passed its time.");
      return { first, next: null };
    };
    const contentType = status === 200 ? "application/json" : "application/problem+json";
    const headers = { ...NO_SNIFF, "Content-Type": contentType, "Idempotent-Replayed": "true" };
    return new Response(await this.#backpressure.ofRead(attempt.exchange, load), { status, headers });
  }

  /** A Transact that adds the answer to what its decision writes; a rejection is an answer too. */
  #recording(attempt: Attempt, encode: (answer: unknown) => string): Transact {
    const { scope, asked } = attempt;
    const record = (status: number, body: string) =>
      ({
        kind: "answer.stored",
        answer: { scope, asked, status, body, storedAt: this.#clock.now() },
      }) as const;
    let isOurs = false; // what is stored: a use case may write more than once
    const transact = async (
      load: Load,
      decide: (rows: Loaded<Load>) => Decision<unknown> | Undecided,
    ): Promise<unknown> => {
      const known: Load = { ...load, [STORED]: this.#stored(attempt) };
      const outcome = await this.#store.transact(known, (rows): Accepted<Decision<unknown>> | Undecided => {
        if (rows[STORED] !== null && !isOurs) throw new AnsweredElsewhere();
        const decision = decide(rows);
        if (decision.kind === "undecided") return decision;
        if (decision.kind === "accepted") {
          return accept(decision, [...decision.changes, record(200, encode(decision.answer))]);
        }
        const problem = problemOf(new Rejection(decision));
        return accept(decision, problem ? [record(problem.status, JSON.stringify(problem))] : []);
      });
      isOurs ||= outcome !== undefined;
      if (outcome?.kind === "rejected") throw new Rejection(outcome);
      return outcome?.answer;
    };
    return transact as Transact; // the answer is that of the caller's own decide
  }
}
