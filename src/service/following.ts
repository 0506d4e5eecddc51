/**
 * A standby: follows its first hub, entry by entry, and can be promoted. Each entry is committed here with its number, so
 * that the standby goes on exactly where it was after any crash; the bytes of files come before the entry that names
 * them.
 */
import type { Blobs } from "../blobs/blobs.ts";
import {
  CHANGES_KEPT,
  PROMOTION_MAX_MS,
  PROMOTION_RETRY_MS,
  STANDBY_LOST_MS,
  STANDBY_RETRY_MS,
} from "../domain/limits.ts";
import { Rejection, reject } from "../domain/decision.ts";
import { must } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { reasonOf } from "../lib/reason.ts";
import { type ChangeLogStore, StoreReadOnly } from "../store/store.ts";
import {
  type Copies,
  type CopyReport,
  type HubUrls,
  type Piece,
  type Position,
  type Promoted,
  type UrlFor,
  shownUrl,
  urlFor,
} from "./copies.ts";

/** The first hub, as its standby calls it. Each call rejects when that hub cannot be reached or refuses. */
export interface Original {
  /** Of the hub that answered last. */
  readonly urls: HubUrls;
  /** @throws {BaseNeeded} */
  entriesAfter(position: Omit<Position, "name">, signal: AbortSignal): Promise<Piece>;
  /** `take` is not called when the first hub has no bytes of it: it was deleted meanwhile, or they are lost there too. */
  file(
    fileId: string,
    take: (bytes: AsyncIterable<Uint8Array>) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void>;
  /** Tells it that this standby is promoted now. Resolves with its last entry. */
  promoted(term: number, urls: HubUrls, signal: AbortSignal): Promise<number>;
}

/** The first hub no longer has the entries that come next, or has others. */
export class BaseNeeded extends Error {
  override readonly name = "BaseNeeded";
}

/** It answers, and refuses what it is asked. */
export class OriginalRefuses extends Error {
  override readonly name = "OriginalRefuses";
  readonly code: string;

  constructor(code: string, words: string) {
    super(words);
    this.code = code;
  }
}

/** Another hub of this history has a higher term, or another standby was promoted. */
export const isOutdone = (error: unknown): error is OriginalRefuses =>
  error instanceof OriginalRefuses && error.code === "stale_term";

export type Turn = "promoted" | "base needed";

type FollowingParts = {
  readonly changes: ChangeLogStore;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly log: Log;
  readonly original: Original;
  /** This hub's own. */
  readonly urls: () => HubUrls;
  /** Called once: the hub must be opened again in its new role. */
  readonly onTurn: (turn: Turn) => void;
};

const NEVER = new AbortController().signal;
const NEWER =
  "The first hub runs a newer luxhub, which has changed the schema: install that one here too, and start it.";

export class Following implements Copies {
  readonly #parts: FollowingParts;
  #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #fault: string | null = null;
  #isFollowing = false;
  #since: number;
  /** The last entry that the first hub had when it last answered. */
  #lastOfFirst: number;
  /** This standby has all that the first hub had then; steady clock. */
  #currentAt: number;
  #promotion: Promise<Promoted> | null = null;
  /** Files whose bytes may be here, and whose records are not. */
  readonly #arriving = new Set<string>();

  constructor(parts: FollowingParts) {
    this.#parts = parts;
    this.#since = parts.clock.now();
    this.#currentAt = parts.clock.steady();
    this.#lastOfFirst = this.#n;
    parts.changes.refuse(isStandby());
  }

  get #n(): number {
    return must(this.#parts.changes.standing().n, "a copy has the entry at which it stands");
  }

  start(): void {
    this.#stopping = new AbortController();
    this.#running = this.#follow(this.#stopping.signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  hubs(caller: UrlFor): readonly string[] {
    const { original, urls } = this.#parts;
    return [original.urls, urls()].flatMap((of) => urlFor(of, caller) ?? []);
  }

  report(): CopyReport {
    const { changes, original } = this.#parts;
    const { term, n } = changes.standing();
    const copy = {
      name: "this hub",
      url: null,
      isFollowing: this.#isFollowing,
      lagEntries: Math.max(0, this.#lastOfFirst - this.#n),
      lagMs: this.lagMs,
      since: this.#since,
      fault: this.#fault,
    };
    return { role: "standby", term, entry: n, hub: original.urls, copies: [copy] };
  }

  get lagMs(): number {
    const ms = this.#parts.clock.steady() - this.#currentAt;
    return this.#isFollowing && ms < STANDBY_LOST_MS && this.#lastOfFirst <= this.#n ? 0 : ms;
  }

  checkWrites(): void {
    throw isStandby();
  }

  prepare(): void {
    throw isStandby();
  }

  entriesAfter(): Promise<Piece> {
    return Promise.reject(isStandby());
  }

  supersede(): Promise<number> {
    return Promise.reject(isStandby());
  }

  isArriving(fileId: string): boolean {
    return this.#arriving.has(fileId);
  }

  /** Applies what the first hub still hands out, if it can be reached, and makes this hub the first. */
  promote(): Promise<Promoted> {
    // A caller that has lost its connection asks again.
    this.#promotion ??= this.#promote().catch((error: unknown) => {
      this.#promotion = null;
      throw error;
    });
    return this.#promotion;
  }

  async #promote(): Promise<Promoted> {
    const { changes, clock, log, onTurn, original, urls } = this.#parts;
    const lagMs = clock.steady() - this.#currentAt;
    await this.stop();
    const { term } = changes.standing();
    let isTold = false;
    try {
      this.#lastOfFirst = await original.promoted(term + 1, urls(), AbortSignal.timeout(PROMOTION_MAX_MS));
      isTold = true;
      await this.#takeTheRest();
    } catch (error) {
      if (isOutdone(error)) {
        this.start();
        throw new Rejection(reject("stale_term", error.message));
      }
      log.warn("promoted without all that the first hub has", { cause: reasonOf(error) });
    }
    const { n, at } = changes.standing();
    const lacking = Math.max(0, this.#lastOfFirst - this.#n);
    const missing = isTold || lacking > 0 ? lacking : null;
    onTurn("promoted");
    return { entry: n ?? 0, at: at ?? clock.now(), missing, lagMs: missing === 0 ? 0 : lagMs };
  }

  /** While the first hub hands it out: it is opened again meanwhile, as one that writes nothing. */
  async #takeTheRest(): Promise<void> {
    const { clock } = this.#parts;
    let succeededAt = clock.timers();
    while (this.#n < this.#lastOfFirst) {
      try {
        await this.#step(NEVER); // a file may take long
        succeededAt = clock.timers();
      } catch (error) {
        if (clock.timers() - succeededAt > PROMOTION_MAX_MS) throw error;
        await Bun.sleep(PROMOTION_RETRY_MS);
      }
    }
    // With --sync writes of the first hub wait for its standby to say that it has them.
    await this.#step(AbortSignal.timeout(PROMOTION_MAX_MS)).catch(() => {});
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { clock, log, onTurn } = this.#parts;
    const ending = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => ending.resolve());
    while (!signal.aborted) {
      try {
        await this.#step(signal);
        if (!this.#isFollowing) {
          this.#isFollowing = true;
          this.#since = clock.now();
          this.#fault = null;
          log.info("this standby follows", { first: shownUrl(this.#parts.original.urls) ?? "" });
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof BaseNeeded) return onTurn("base needed");
        this.#stopped(reasonOf(error));
        await Promise.race([Bun.sleep(STANDBY_RETRY_MS), ending.promise]); // a promotion does not wait
      }
    }
  }

  #stopped(reason: string): void {
    const { clock, log } = this.#parts;
    if (this.#fault !== reason) log.error("this standby does not follow", { cause: reason });
    if (this.#isFollowing || this.#fault === null) this.#since = clock.now();
    this.#isFollowing = false;
    this.#fault = reason;
  }

  async #step(signal: AbortSignal): Promise<void> {
    const { changes, clock, original, urls } = this.#parts;
    const { term, n, at } = changes.standing();
    const askedAt = clock.steady();
    const position = { after: n ?? 0, at: at ?? 0, term, urls: urls() };
    const { entries, ...of } = await original.entriesAfter(position, signal);
    this.#lastOfFirst = of.n ?? 0;
    if (entries.length > 0) {
      const also = entries.map((entry) => changes.alsoIn(entry));
      const migration = also.findIndex(({ migrates }) => migrates);
      const usable = migration === -1 ? entries.length : migration;
      for (const fileId of also.slice(0, usable).flatMap(({ files }) => files)) {
        this.#arriving.add(fileId);
        await fetchFile(fileId, this.#parts, signal);
      }
      changes.apply(entries.slice(0, usable));
      this.#arriving.clear();
      changes.forgetBefore(this.#n - CHANGES_KEPT);
      if (migration !== -1) throw new Error(NEWER);
    }
    if (this.#n >= this.#lastOfFirst) this.#currentAt = askedAt;
  }
}

/** The bytes of a file, before its record. */
export async function fetchFile(
  fileId: string,
  { blobs, original }: { readonly blobs: Blobs; readonly original: Pick<Original, "file"> },
  signal: AbortSignal,
): Promise<void> {
  if ((await blobs.open(fileId, 0, 0)) !== null) return; // it was here already when a crash came between
  const take = async (bytes: AsyncIterable<Uint8Array>): Promise<void> => {
    const writer = await blobs.begin(fileId);
    try {
      for await (const chunk of bytes) await writer.write(chunk);
      await writer.finish();
    } finally {
      await writer.discard(); // does nothing after finish()
    }
  };
  await original.file(fileId, take, signal);
}

export function isStandby(): StoreReadOnly {
  return new StoreReadOnly("standby", "This hub is a standby: it answers reads only.");
}
