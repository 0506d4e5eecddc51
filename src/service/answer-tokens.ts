/**
 * Answer tokens: a token answers one question with one of its choices, without a secret, until the deadline of the
 * question. A button in a notification (ntfy) carries one.
 *
 * An answer token is a signed token. That it works once is the rule of questions: the first answer counts.
 */
import { ANSWER_TOKEN_MAX_CHARS } from "../domain/limits.ts";
import type { Question } from "../domain/model.ts";
import { type Clock, SECOND_MS } from "../lib/clock.ts";
import type { KeyRing } from "./keys.ts";
import { SignedTokens } from "./signed-tokens.ts";

/** `choice`: from 0. */
type AnswerGrant = { readonly taskId: string; readonly questionId: string; readonly choice: number };

type Claims = readonly [taskId: string, questionId: string, choice: number, expires: number];

export class AnswerTokens {
  readonly #tokens: SignedTokens<Claims>;
  readonly #clock: Pick<Clock, "now">;

  constructor(keys: Pick<KeyRing, "derive">, clock: Pick<Clock, "now">) {
    this.#tokens = new SignedTokens(keys, "luxhub answer tokens", ANSWER_TOKEN_MAX_CHARS);
    this.#clock = clock;
  }

  issue(
    { taskId, questionId, until }: Pick<Question, "taskId" | "questionId" | "until">,
    choice: number,
  ): Promise<string> {
    return this.#tokens.sign([taskId, questionId, choice, Math.ceil(until / SECOND_MS)]);
  }

  /** Null for a token that this hub has not made, or that has expired. */
  async redeem(token: string): Promise<AnswerGrant | null> {
    const signed = await this.#tokens.verify(token);
    if (signed === null) return null;
    const [taskId, questionId, choice, expires] = signed.claims;
    return expires * SECOND_MS <= this.#clock.now() ? null : { taskId, questionId, choice };
  }
}
