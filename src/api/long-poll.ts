/**
 * Long polls: admits calls that wait (blocking receives, polls, repeats of an Idempotency-Key that wait for the first).
 * Their number is limited, their connection is not closed as idle, and a wait ends with its caller: when the client hangs
 * up, and when its key is revoked or expires. The calls sleep in service/wait-queue.ts.
 *
 * Callers without a valid secret (variant A's public paths) have a limit of their own, so they cannot exclude the others.
 */
import * as limit from "../domain/limits.ts";
import { type Exchange, allowSilence } from "../http/exchange.ts";
import type { KeyRing } from "../service/keys.ts";
import type { Caller } from "./auth.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { keyLost } from "./error-table.ts";

/** Runs a call that waits. `signal` aborts when its caller is gone: then `wait` must take nothing, and reject. */
export type Hold = <T>(wait: (signal: AbortSignal) => Promise<T>) => Promise<T>;

export class LongPolls {
  readonly #keys: KeyRing;
  readonly #addressOf: (exchange: Exchange) => string;
  readonly #known = new ConcurrencyLimit({
    most: limit.WAITERS_MAX,
    mostOfOne: limit.WAITERS_PER_NODE_KEY_MAX,
    what: "calls wait",
  });
  readonly #anonymous = new ConcurrencyLimit({
    most: limit.ANONYMOUS_WAITERS_MAX,
    mostOfOne: limit.WAITERS_PER_ADDRESS_MAX,
    what: "calls without a secret wait",
  });

  /** @param addressOf the client's address, as rate limits count it */
  constructor(keys: KeyRing, addressOf: (exchange: Exchange) => string) {
    this.#keys = keys;
    this.#addressOf = addressOf;
  }

  /** How many calls wait now: of callers with a valid secret, and of the others. */
  get waiting(): { readonly known: number; readonly anonymous: number } {
    return { known: this.#known.size, anonymous: this.#anonymous.size };
  }

  /**
   * Runs `wait`: its part before the first await at once, so that no wake-up falls between what the caller checked and
   * the wait.
   * @throws {Problem} 503 or 429 when too many calls wait; 401 when the caller's key was revoked or has expired meanwhile
   */
  async hold<T>(
    exchange: Exchange,
    { shownKey }: Caller,
    wait: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    using _place = this.#enter(exchange, shownKey);
    allowSilence(exchange);
    const ending = new AbortController();
    const hangUp = exchange.request.signal;
    const onHangUp = (): void => ending.abort();
    hangUp.addEventListener("abort", onHangUp);
    if (hangUp.aborted) onHangUp();
    let isKeyLost = false;
    const letGo =
      shownKey &&
      this.#keys.hold(shownKey, () => {
        isKeyLost = true;
        ending.abort();
      });
    try {
      return await wait(ending.signal);
    } catch (error) {
      throw isKeyLost ? keyLost() : error;
    } finally {
      letGo?.();
      hangUp.removeEventListener("abort", onHangUp);
    }
  }

  #enter(exchange: Exchange, key: Caller["shownKey"]): Disposable {
    if (key === null) return this.#anonymous.enter(this.#addressOf(exchange));
    return this.#known.enter(key.nodeId === null ? null : key.keyId);
  }
}
