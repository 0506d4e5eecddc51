/** The use cases of the hub itself: how it is, and how its store is. */
import type { Blobs } from "../blobs/blobs.ts";
import type { Clock } from "../lib/clock.ts";
import type { Mail } from "../mail/mail.ts";
import { nodesCount, taskTotals } from "../store/queries.ts";
import type { Diagnosis, Store } from "../store/store.ts";

export type HubStatus = {
  /** False while the database or the files refuse writes: their last one failed. Reads go on. */
  readonly writable: boolean;
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
  readonly #blobs: Blobs;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #software: string;

  /** `software` names the program and its version. */
  constructor(store: Store, mail: Mail, blobs: Blobs, clock: Clock, software: string) {
    this.#store = store;
    this.#mail = mail;
    this.#blobs = blobs;
    this.#clock = clock;
    this.#software = software;
    this.#startedAt = clock.steady();
  }

  async status(): Promise<HubStatus> {
    const { open, assigned, completed } = await this.#store.read(taskTotals());
    return {
      writable: this.#store.writable && this.#blobs.writable,
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
