/**
 * Long polls: admits calls that wait (blocking receives, polls, repeats that wait for the first request with their
 * Idempotency-Key). Limits their number, keeps their connections from being closed as idle, and ends a wait when the
 * client hangs up or its key is revoked or expires. The calls sleep in service/wait-queue.ts.
 *
 * Callers without a valid secret (variant A's public paths) have a limit of their own, so that they cannot exclude the
 * others.
 */
import * as limit from "../domain/limits.ts";
import { type Exchange, disableIdleTimeout } from "../http/exchange.ts";
import type { KeyRing } from "../service/keys.ts";
import type { Caller } from "./auth.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { keyLost } from "./error-table.ts";

/** Runs a call that waits. `signal` aborts when the caller is gone; then `wait` must take nothing, and reject. */
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

  /** @param addressOf returns the key under which a client's address is counted */
  constructor(keys: KeyRing, addressOf: (exchange: Exchange) => string) {
    this.#keys = keys;
    this.#addressOf = addressOf;
  }

  /** How many calls wait now, with a valid secret (`known`) and without (`anonymous`). */
  get waiting(): { readonly known: number; readonly anonymous: number } {
    return { known: this.#known.size, anonymous: this.#anonymous.size };
  }

  /**
   * Runs `wait`. Starts it synchronously, so that no wake-up is lost between the caller's check and the wait.
   * @throws {Problem} 503 or 429 when too many calls wait; 401 when the caller's key was revoked or has expired meanwhile
   */
  async hold<T>(
    exchange: Exchange,
    { shownKey }: Caller,
    wait: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    using _place = this.#enter(exchange, shownKey);
    disableIdleTimeout(exchange);
    const ending = new AbortController();
    const hangUp = exchange.request.signal;
    const onHangUp = (): void => ending.abort();
    hangUp.addEventListener("abort", onHangUp);
    if (hangUp.aborted) onHangUp();
    let isKeyLost = false;
    const unsubscribe =
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
      unsubscribe?.();
      hangUp.removeEventListener("abort", onHangUp);
    }
  }

  #enter(exchange: Exchange, key: Caller["shownKey"]): Disposable {
    if (key === null) return this.#anonymous.enter(this.#addressOf(exchange));
    return this.#known.enter(key.nodeId === null ? null : key.keyId);
  }
}
