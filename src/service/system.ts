/** The use cases of the hub itself: how it is, and how its store is. */
import type { Clock } from "../lib/clock.ts";
import type { Mail } from "../mail/mail.ts";
import { nodesCount, taskTotals } from "../store/queries.ts";
import type { Diagnosis, Store } from "../store/store.ts";

export type HubStatus = {
  /** Whether something keeps the hub from writing. */
  readonly degraded: boolean;
  readonly uptimeMs: number;
  readonly nodesCount: number;
  readonly tasksCount: number;
  readonly software: string;
  readonly transport: string;
};

export type StoreReport = Diagnosis & { readonly engine: Store["engine"]; readonly latencyMs: number };

export class SystemService {
  readonly #store: Store;
  readonly #mail: Mail;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #software: string;

  /** `software` names the program and its version. */
  constructor(store: Store, mail: Mail, clock: Clock, software: string) {
    this.#store = store;
    this.#mail = mail;
    this.#clock = clock;
    this.#software = software;
    this.#startedAt = clock.steady();
  }

  async status(): Promise<HubStatus> {
    const { open, assigned, completed } = await this.#store.read(taskTotals());
    return {
      degraded: this.#store.damaged,
      uptimeMs: this.#clock.steady() - this.#startedAt,
      nodesCount: await this.#store.read(nodesCount()),
      tasksCount: open + assigned + completed,
      software: this.#software,
      transport: this.#mail.transport,
    };
  }

  async diagnose(): Promise<StoreReport> {
    const started = performance.now();
    await this.#store.read(taskTotals());
    const latencyMs = performance.now() - started;
    return { ...(await this.#store.diagnose()), engine: this.#store.engine, latencyMs };
  }
}
