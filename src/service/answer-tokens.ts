/**
 * Answer tokens: a token answers one question with one of its choices, without a secret, until the deadline of the
 * question. A button in a notification (ntfy) carries one.
 *
 * A token is its claims and a MAC over them, so the hub stores nothing, and every hub on one database takes the tokens of
 * the others. That it works once is the rule of questions: the first answer counts.
 *
 * Must not: log or store a token.
 */
import { ANSWER_TOKEN_MAX_CHARS, TICKET_MAC_BYTES, TICKET_MAC_ROUNDS } from "../domain/limits.ts";
import type { Question } from "../domain/model.ts";
import { type Clock, SECOND_MS } from "../lib/clock.ts";
import type { KeyRing } from "./keys.ts";

/** Which question a token answers, and with which of its choices, from 0. */
export type AnswerGrant = { readonly taskId: string; readonly questionId: string; readonly choice: number };

type Claims = readonly [taskId: string, questionId: string, choice: number, expires: number];

export class AnswerTokens {
  readonly #keys: Pick<KeyRing, "derive">;
  readonly #clock: Pick<Clock, "now">;
  #macKey: Promise<string> | null = null;

  constructor(keys: Pick<KeyRing, "derive">, clock: Pick<Clock, "now">) {
    this.#keys = keys;
    this.#clock = clock;
  }

  async issue(
    { taskId, questionId, until }: Pick<Question, "taskId" | "questionId" | "until">,
    choice: number,
  ): Promise<string> {
    const claims: Claims = [taskId, questionId, choice, Math.ceil(until / SECOND_MS)];
    const said = Buffer.from(JSON.stringify(claims)).toString("base64url");
    return `${said}.${await this.#mac(said)}`;
  }

  /** Null for a token that this hub has not made, and for one that has expired. */
  async redeem(token: string): Promise<AnswerGrant | null> {
    const [said, mac, ...rest] = token.length <= ANSWER_TOKEN_MAX_CHARS ? token.split(".") : [];
    if (said === undefined || mac === undefined || rest.length > 0) return null;
    const expected = Buffer.from(await this.#mac(said));
    const shown = Buffer.from(mac);
    if (shown.length !== expected.length || !crypto.timingSafeEqual(shown, expected)) return null;
    // The MAC shows that the hub has written them.
    const [taskId, questionId, choice, expires] = JSON.parse(
      Buffer.from(said, "base64url").toString(),
    ) as Claims;
    return expires * SECOND_MS <= this.#clock.now() ? null : { taskId, questionId, choice };
  }

  async #mac(said: string): Promise<string> {
    this.#macKey ??= this.#keys.derive("luxhub answer tokens", TICKET_MAC_ROUNDS, 32);
    const mac = new Bun.CryptoHasher("sha256", await this.#macKey).update(said).digest();
    return mac.subarray(0, TICKET_MAC_BYTES).toString("base64url");
  }
}
