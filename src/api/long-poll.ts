/**
 * Long polls: limits the number of waiting calls, keeps their connections from being closed as idle, and ends a wait
 * when the client hangs up or its key is revoked or expires.
 */
import * as limit from "../domain/limits.ts";
import { type Exchange, disableIdleTimeout } from "../http/exchange.ts";
import type { KeyRing } from "../service/keys.ts";
import type { Caller } from "./auth.ts";
import type { Share } from "./caller-shares.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { keyLost } from "./error-table.ts";

/** Runs a call that waits. `signal` aborts when the caller is gone; then `wait` must take nothing, and reject. */
export type Hold = <T>(wait: (signal: AbortSignal) => Promise<T>) => Promise<T>;

export class LongPolls {
  readonly #keys: KeyRing;
  readonly #limit = new ConcurrencyLimit(limit.WAIT_SHARES, "long polls wait");

  constructor(keys: KeyRing) {
    this.#keys = keys;
  }

  get waiting(): ConcurrencyLimit["size"] {
    return this.#limit.size;
  }

  /**
   * Starts `wait` synchronously, so that no wake-up is lost between the caller's check and the wait.
   * @throws {Problem} 503 or 429 when too many calls wait; 401 when the caller's key was lost meanwhile
   */
  async hold<T>(
    exchange: Exchange,
    { shownKey }: Pick<Caller, "shownKey">,
    share: Share,
    wait: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    using _place = this.#limit.enter(share);
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
}
