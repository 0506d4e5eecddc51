/** The use cases of the hub itself. */
import type { Blobs } from "../blobs/blobs.ts";
import { DIAGNOSIS_MAX_MS, STORAGE_SIZE_KEPT_MS } from "../domain/limits.ts";
import type { Pause } from "../domain/model.ts";
import { type Clock, SECOND_MS } from "../lib/clock.ts";
import type { Mail } from "../mail/mail.ts";
import { fileTotals } from "../store/sql/files.ts";
import { gateOn } from "../store/sql/gate.ts";
import { nodesCount } from "../store/sql/nodes.ts";
import { taskTotals } from "../store/sql/tasks.ts";
import { type Diagnosis, type Store, StoreUnavailable } from "../store/store.ts";

export type Storage = {
  readonly databaseBytes: number;
  readonly filesBytes: number;
  readonly finishedTasks: number;
  /** Of the disk of the data directory; null: another machine has the database, or the system does not tell. */
  readonly freeBytes: number | null;
};

/** What they take is at least what is free. */
export function takesHalf({ databaseBytes, filesBytes, freeBytes }: Storage): boolean {
  return freeBytes !== null && databaseBytes + filesBytes >= freeBytes;
}

type HubStatus = {
  readonly storage: Storage;
  /** False while the last write failed (a full disk). Reads still work. */
  readonly writable: boolean;
  readonly uptimeMs: number;
  readonly nodesCount: number;
  readonly tasksCount: number;
  readonly software: string;
  readonly name: string | null;
  readonly transport: string;
  readonly pauses: readonly Pause[];
};

type Found = Diagnosis & { readonly latencyMs: number };

/** `fault`: why the database could not be diagnosed. */
export type StoreReport = { readonly engine: Store["engine"] } & (
  { readonly found: Found; readonly fault: null } | { readonly found: null; readonly fault: string }
);

export class SystemService {
  readonly #store: Store;
  readonly #mail: Mail;
  readonly #blobs: Blobs;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #software: string;
  readonly #diskFree: () => number | null;
  readonly #name: string | null;
  /** Expensive to ask on PostgreSQL. */
  #size: { readonly bytes: number; readonly until: number } | null = null;

  /** `software` names the program and its version, `name` this hub. */
  constructor(
    store: Store,
    mail: Mail,
    blobs: Blobs,
    clock: Clock,
    software: string,
    diskFree: () => number | null,
    name: string | null = null,
  ) {
    this.#name = name;
    this.#diskFree = diskFree;
    this.#store = store;
    this.#mail = mail;
    this.#blobs = blobs;
    this.#clock = clock;
    this.#software = software;
    this.#startedAt = clock.steady();
  }

  async status(): Promise<HubStatus> {
    const { open, assigned, completed, failed } = await this.#store.read(taskTotals());
    return {
      writable: this.#store.writable && this.#blobs.writable,
      uptimeMs: this.#clock.steady() - this.#startedAt,
      nodesCount: await this.#store.read(nodesCount()),
      tasksCount: open + assigned + completed + failed,
      software: this.#software,
      name: this.#name,
      transport: this.#mail.transport,
      pauses: (await this.#store.read(gateOn(this.#clock.now()))).pauses,
      storage: {
        databaseBytes: await this.#databaseBytes(),
        filesBytes: (await this.#store.read(fileTotals())).bytes,
        finishedTasks: completed + failed,
        freeBytes: this.#store.engine === "sqlite" ? this.#diskFree() : null,
      },
    };
  }

  async #databaseBytes(): Promise<number> {
    const now = this.#clock.timers();
    if (this.#size === null || this.#size.until < now) {
      const { sizeBytes } = await this.#store.diagnose();
      this.#size = { bytes: sizeBytes, until: now + STORAGE_SIZE_KEPT_MS };
    }
    return this.#size.bytes;
  }

  /** Within DIAGNOSIS_MAX_MS, also when the database is unavailable. */
  async diagnose(): Promise<StoreReport> {
    const { engine } = this.#store;
    const { promise: timeIsUp, resolve } = Promise.withResolvers<null>();
    const timer = setTimeout(resolve, DIAGNOSIS_MAX_MS, null);
    try {
      const found = await Promise.race([this.#measure(), timeIsUp]);
      if (found) return { engine, found, fault: null };
      return {
        engine,
        found,
        fault: `The database did not answer within ${DIAGNOSIS_MAX_MS / SECOND_MS} s.`,
      };
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      return { engine, found: null, fault: error.message };
    } finally {
      clearTimeout(timer);
    }
  }

  async #measure(): Promise<Found> {
    const started = performance.now();
    await this.#store.read(taskTotals());
    const latencyMs = performance.now() - started;
    return { ...(await this.#store.diagnose()), latencyMs };
  }
}
