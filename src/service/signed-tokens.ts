/**
 * Signed tokens: claims and a MAC over them, so the hub stores nothing, and every hub on one database takes the tokens of
 * the others. Tokens of one kind have a MAC key of their own.
 *
 * Must not: log or store a token.
 */
import { TICKET_MAC_BYTES, TICKET_MAC_ROUNDS } from "../domain/limits.ts";
import type { KeyRing } from "./keys.ts";

export class SignedTokens<Claims extends readonly unknown[]> {
  readonly #keys: Pick<KeyRing, "derive">;
  readonly #kind: string;
  readonly #maxChars: number;
  #macKey: Promise<string> | null = null;

  constructor(keys: Pick<KeyRing, "derive">, kind: string, maxChars: number) {
    this.#keys = keys;
    this.#kind = kind;
    this.#maxChars = maxChars;
  }

  /** `about`: what else the MAC covers. */
  async sign(claims: Claims, about?: string): Promise<string> {
    const encoded = Buffer.from(JSON.stringify(claims)).toString("base64url");
    return `${encoded}.${await this.#mac(encoded, about)}`;
  }

  /** Null for a token that no hub has made with this kind and `about`. */
  async verify(
    token: string,
    about?: string,
  ): Promise<{ readonly claims: Claims; readonly mac: string } | null> {
    const [encoded, mac, ...others] = token.length <= this.#maxChars ? token.split(".") : [];
    if (encoded === undefined || mac === undefined || others.length > 0) return null;
    const expected = Buffer.from(await this.#mac(encoded, about));
    const shown = Buffer.from(mac);
    if (shown.length !== expected.length || !crypto.timingSafeEqual(shown, expected)) return null;
    const claims = JSON.parse(Buffer.from(encoded, "base64url").toString()) as Claims; // the MAC shows who wrote them
    return { claims, mac };
  }

  async #mac(encoded: string, about: string | undefined): Promise<string> {
    this.#macKey ??= this.#keys.derive(this.#kind, TICKET_MAC_ROUNDS, 32);
    const text = about === undefined ? encoded : `${encoded} ${about}`;
    const mac = new Bun.CryptoHasher("sha256", await this.#macKey).update(text).digest();
    return mac.subarray(0, TICKET_MAC_BYTES).toString("base64url");
  }
}
