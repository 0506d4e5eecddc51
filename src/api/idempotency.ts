/**
 * Idempotency (the header Idempotency-Key, docs/api.md): the answer to a POST is stored in the same commit as its
 * change, and replayed for 24 hours. That commit also deletes the oldest answers beyond the limits of bytes. A repeat
 * waits while the first request runs. If two hubs on one database run the same request, the first to commit wins: the
 * other one finds the answer in its transaction.
 */
import type { Change } from "../domain/change.ts";
import { Rejection, isStored } from "../domain/decision.ts";
import {
  ANSWER_MARK_ROUNDS,
  ANSWERS_OF_KEY_MAX_BYTES,
  IDEMPOTENCY_KEY_MAX_CHARS,
  JSON_DEPTH_MAX,
  MCP_REPEAT_WINDOW_MS,
} from "../domain/limits.ts";
import { PRIMARY_KEY_ID } from "../domain/key.ts";
import { isNestedDeeper } from "../http/json-body.ts";
import { type Exchange, UNCACHED } from "../http/exchange.ts";
import { Problem } from "../http/problem.ts";
import { assert } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import { canonicalText } from "../lib/exact-json.ts";
import type { KeyRing } from "../service/keys.ts";
import { WaitAborted, Waiters } from "../service/waiters.ts";
import { type PastAnswer, storedAnswer } from "../store/sql/keys.ts";
import { bytesOf, keyIdOf } from "../store/sql/tables.ts";
import { type Around, type Query, type Store, type Transact, around, withAround } from "../store/store.ts";
import type { Caller } from "./auth.ts";
import type { Hold } from "./long-poll.ts";
import type { Share } from "./caller-shares.ts";
import type { Body, Encoded, ResponseBackpressure } from "./response-backpressure.ts";
import { invalidField } from "./input.ts";
import { overloaded, problemOf } from "./error-table.ts";

const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/**
 * Two requests are the same if their `scope` and their `asked` (a fingerprint of the variant and the body) are equal.
 */
export type Attempt = {
  readonly scope: string;
  readonly asked: string;
  readonly exchange: Exchange;
  readonly hold: Hold;
  readonly share: () => Share;
  readonly transact: Transact;
  /**
   * The request itself is the key. Only a success is replayed, and only for MCP_REPEAT_WINDOW_MS: a later request is
   * meant as a new one.
   */
  readonly implicit?: boolean;
  /** The hub's own secret may be replaced under the same name. */
  readonly isPrimary: boolean;
  /** Adds to a stored success what is not stored with it. */
  readonly complete?: (stored: string) => Promise<string>;
};

/** `inner`: what is nearer to the use case. */
export type TransactFor = <A>(encode: (answer: A) => string, inner?: Around<A> | null) => Transact<A>;

/**
 * The scope contains the caller's key, so that no other key can read a stored answer, and the endpoint's path: the
 * request's URL contains the Host, which the client can choose. Each dialect (A, B, MCP) encodes answers differently,
 * so it is part of the fingerprint.
 * @param bodyHash hex
 */
export function attemptBy(
  {
    key,
    variant,
    exchange,
    hold,
    share,
    transact,
  }: Pick<Caller, "key" | "variant"> & Pick<Attempt, "exchange" | "hold" | "share" | "transact">,
  path: string,
  idempotencyKey: string,
  bodyHash: string,
): Attempt {
  const scope = [key?.keyId ?? "", path, idempotencyKey].join(" ");
  const isPrimary = key?.keyId === PRIMARY_KEY_ID; // the names of all other keys are never used again
  return { scope, asked: `${variant.joins} ${bodyHash}`, exchange, hold, share, transact, isPrimary };
}

export function idempotencyKeyOf(headers: Headers): string | null {
  const key = headers.get("idempotency-key");
  if (key === null) return null;
  if (key.length <= IDEMPOTENCY_KEY_MAX_CHARS && VISIBLE_ASCII.test(key)) return key;
  throw invalidField("Idempotency-Key", `must be 1 to ${IDEMPOTENCY_KEY_MAX_CHARS} visible ASCII characters`);
}

/**
 * White space and the order of names do not change it.
 * @throws {Problem} 400 for a value that is nested too deep
 */
export function hashJson(value: unknown): string {
  if (isNestedDeeper(value, JSON_DEPTH_MAX)) {
    throw invalidField("", `must not be nested deeper than ${JSON_DEPTH_MAX}`);
  }
  return Bun.SHA256.hash(canonicalText(value), "hex");
}

/** luxhub 0.1.0 stored the hash alone: its stored answers must still match after an update. */
function isSameRequest(stored: string, asked: string): boolean {
  return stored === asked || asked.endsWith(` ${stored}`);
}

/** Enough to tell secrets apart, and too little to know one by. */
const MARK_BYTES = 4;

/** The names of the use case's queries have no space. */
const STORED = "stored answer";

class AnsweredElsewhere extends Error {
  override readonly name = "AnsweredElsewhere";
}

export class Idempotency {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #backpressure: ResponseBackpressure;
  readonly #maxBytes: number;
  readonly #running = new Set<string>();
  readonly #repeats = new Waiters();
  /**
   * Whoever has a new secret must not get the answers to the former one. A slow hash, because the database holds it;
   * made at the start, so that no request waits.
   */
  readonly #primaryMark: Promise<string>;

  constructor(
    store: Store,
    clock: Clock,
    backpressure: ResponseBackpressure,
    keys: Pick<KeyRing, "derive">,
    maxBytes: number,
  ) {
    this.#primaryMark = keys.derive("luxhub answers", ANSWER_MARK_ROUNDS, MARK_BYTES);
    this.#store = store;
    this.#maxBytes = maxBytes;
    this.#clock = clock;
    this.#backpressure = backpressure;
  }

  async run(
    asAsked: Attempt,
    first: (transactFor: TransactFor) => Promise<string>,
  ): Promise<Response | Body> {
    const { isPrimary, asked } = asAsked;
    const attempt = isPrimary ? { ...asAsked, asked: `${await this.#primaryMark} ${asked}` } : asAsked;
    while (this.#running.has(attempt.scope)) {
      await attempt.hold((signal) => this.#ended(attempt, signal));
      const stored = await this.#replay(attempt); // here, so that all who waited can replay it at once
      if (stored) return stored;
    }
    assert(!this.#running.has(attempt.scope), "one request of a scope runs at a time");
    this.#running.add(attempt.scope);
    try {
      return (
        (await this.#replay(attempt)) ??
        this.#backpressure.ofWrite(
          attempt,
          await first((encode, inner = null) =>
            withAround(attempt.transact, [inner, this.#storing(attempt, encode)]),
          ),
        )
      );
    } catch (error) {
      const replayed = error instanceof AnsweredElsewhere ? await this.#replay(attempt) : null;
      if (!replayed) throw error;
      return replayed;
    } finally {
      this.#running.delete(attempt.scope);
      this.#repeats.wakeAll(attempt.scope);
    }
  }

  async #ended({ scope }: Attempt, signal: AbortSignal): Promise<void> {
    const waiter = this.#repeats.join(scope);
    try {
      if ((await waiter.wait(Number.POSITIVE_INFINITY, signal)) === "aborted") throw new WaitAborted();
    } finally {
      waiter.leave();
    }
  }

  #stored({ scope, implicit = false }: Attempt): Query<PastAnswer | null> {
    // The others last until they are pruned: after a jump of the clock their dates are wrong for a moment.
    return storedAnswer(scope, implicit ? this.#clock.now() - MCP_REPEAT_WINDOW_MS : 0);
  }

  async #replay(attempt: Attempt): Promise<Response | null> {
    const past = await this.#store.read(this.#stored(attempt));
    if (!past) return null;
    if (!isSameRequest(past.asked, attempt.asked)) {
      const detail =
        "This Idempotency-Key was used with another body, in the other variant, or with the hub's former secret. Use a new key for a new request.";
      throw new Problem(422, "idempotency_key_reused", "Idempotency key reused", detail);
    }
    const { status } = past;
    let body: string | null = past.body;
    const load = async (): Promise<Encoded> => {
      const first = body ?? (await this.#store.read(this.#stored(attempt)))?.body;
      body = null;
      if (first === undefined) throw overloaded("The stored response has just expired.");
      const { complete } = attempt;
      return { first: complete && status === 200 ? await complete(first) : first, next: null };
    };
    const contentType = status === 200 ? "application/json" : "application/problem+json";
    const headers = { ...UNCACHED, "Content-Type": contentType, "Idempotent-Replayed": "true" };
    return new Response(await this.#backpressure.ofRead(attempt, load), { status, headers });
  }

  /** The response may be a refusal. */
  #storing<A>(attempt: Attempt, encode: (answer: A) => string): Around<A> {
    const { scope, asked, implicit = false } = attempt;
    const record = (status: number, body: string): readonly Change[] => {
      const answer = { scope, asked, status, body, storedAt: this.#clock.now() };
      const trimmed = { kind: "answers.trimmed", storedBytes: bytesOf(answer), scope } as const;
      return [
        { kind: "answer.stored", answer },
        { ...trimmed, keyId: keyIdOf(answer), maxBytes: ANSWERS_OF_KEY_MAX_BYTES },
        { ...trimmed, keyId: null, maxBytes: this.#maxBytes },
      ];
    };
    const load = () => ({ [STORED]: this.#stored(attempt) });
    return around<A, ReturnType<typeof load>>(load, (decision, rows) => {
      if (rows[STORED] !== null) throw new AnsweredElsewhere();
      // A decision without changes is not stored: a repeat makes it again, with the same outcome.
      if (!isStored(decision)) return decision;
      if (decision.kind === "accepted")
        return { ...decision, changes: [...decision.changes, ...record(200, encode(decision.answer))] };
      const problem = implicit ? null : problemOf(new Rejection(decision));
      return problem ? { ...decision, changes: record(problem.status, JSON.stringify(problem)) } : decision;
    });
  }
}
