/**
 * The readiness check: the hub is ready if it has started, does not drain, and a write to its store succeeds. This
 * write changes nothing; all callers within READINESS_KEPT_MS share one.
 */
import { accept } from "../domain/decision.ts";
import { DIAGNOSIS_MAX_MS, READINESS_KEPT_MS } from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";
import { type Store, StoreUnavailable } from "../store/store.ts";
import { PROBE } from "./periodic-work.ts";

/** `fault`: the error of the write. */
export type Verdict =
  | { readonly state: "ready" | "starting" | "draining" }
  | { readonly state: "failing"; readonly fault: unknown };

export class Readiness {
  readonly #store: Pick<Store, "transact">;
  readonly #clock: Clock;
  #phase: "starting" | "serving" | "draining" = "starting";
  #probe: Promise<Verdict> | null = null;
  #probedAt = 0;

  constructor(store: Pick<Store, "transact">, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  start(): void {
    this.#phase = "serving";
  }

  drain(): void {
    this.#phase = "draining";
  }

  /** Resolves within DIAGNOSIS_MAX_MS, even when the database is unavailable. */
  async check(): Promise<Verdict> {
    if (this.#phase !== "serving") return { state: this.#phase };
    const now = this.#clock.steady();
    if (this.#probe === null || now - this.#probedAt >= READINESS_KEPT_MS) {
      this.#probedAt = now;
      this.#probe = this.#write();
    }
    return this.#probe;
  }

  async #write(): Promise<Verdict> {
    const { promise: timeIsUp, reject } = Promise.withResolvers<never>();
    const late = new StoreUnavailable("The database did not answer in time.");
    const timer = setTimeout(reject, DIAGNOSIS_MAX_MS, late);
    try {
      await Promise.race([this.#store.transact({}, () => accept(null, [PROBE])), timeIsUp]);
      return { state: "ready" };
    } catch (fault) {
      return { state: "failing", fault };
    } finally {
      clearTimeout(timer);
    }
  }
}
