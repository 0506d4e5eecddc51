/**
 * The copies of this hub's database. A _first_ hands the entries of its change log to its standbys, which follow by long
 * poll; the position that a standby asks from is on its disk. A _superseded_ first accepts no writes any more, and hands
 * out what its promoted standby may still lack. What a standby does is in following.ts.
 *
 * Invariant: the log is kept while there is a key of the role `standby`, or an archive wants it, and no entry is deleted
 * that one of them still needs, unless the log has become larger than CHANGES_KEPT_MAX_BYTES.
 */
import { Rejection, reject } from "../domain/decision.ts";
import {
  CHANGES_KEPT,
  CHANGES_KEPT_MAX_BYTES,
  CHANGES_PIECE_BYTES,
  STANDBY_LOST_MS,
} from "../domain/limits.ts";
import type { KeyRecord, VariantName } from "../domain/model.ts";
import { isValid } from "../domain/key.ts";
import { must } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import {
  type ChangeLogStore,
  type Entry,
  EntryMissing,
  OutcomeUnknown,
  type Standing,
  StoreReadOnly,
} from "../store/store.ts";
import { Waiters } from "./waiters.ts";

export const LISTENER_KINDS = ["A", "A_tls", "B", "B_tls"] as const;

/** The base URLs of a hub, by the variant of the listener, and by whether it speaks TLS. */
export type HubUrls = Readonly<Partial<Record<(typeof LISTENER_KINDS)[number], string>>>;

/** Whom a URL is for. A caller without TLS may trust no certificate, and one with TLS must not go on without. */
export type UrlFor = { readonly variant: VariantName; readonly isTls: boolean };

/** How far a copy is behind. `url` null: not known. */
export type CopyLag = {
  readonly name: string;
  readonly url: string | null;
  readonly isFollowing: boolean;
  readonly lagEntries: number;
  readonly lagMs: number;
  /** Since when it follows, or does not; epoch milliseconds; null: it never followed this hub. */
  readonly since: number | null;
  /** Why it does not follow, as far as this hub knows. */
  readonly fault: string | null;
};

export type CopyReport = {
  readonly role: "first" | "standby" | "superseded";
  readonly term: number;
  readonly entry: number | null;
  /** The hub that accepts writes, if it is another one. */
  readonly hub: HubUrls | null;
  /** What follows this hub; of a standby, the standby itself. */
  readonly copies: readonly CopyLag[];
};

/** `after`, `at`: the last entry that the standby has on its disk. `term`: its own. */
export type Position = {
  readonly name: string;
  readonly after: number;
  readonly at: number;
  readonly term: number;
  readonly urls: HubUrls;
};

/** `n`: of the last entry that there is. */
export type Piece = Standing & {
  readonly entries: readonly Entry[];
  /** This hub, then its standbys: one of them goes on when this one is gone. */
  readonly hubs: readonly HubUrls[];
};

export type Promoted = {
  readonly entry: number;
  readonly at: number;
  /** The entries that the first had and this one has not; null: the first did not answer. */
  readonly missing: number | null;
  /** How far behind it was when it last heard of the first. */
  readonly lagMs: number;
};

export interface Copies {
  hubs(caller: UrlFor): readonly string[];
  /** Null on PostgreSQL, which has its own replication. */
  report(): CopyReport | null;
  /** @throws {StoreReadOnly} when another hub accepts the writes */
  checkWrites(): void;
  /**
   * Keeps the log from now on, if it can be kept. @param standby takes a base now, and will need the entries after it
   * @throws {Rejection} entries_missing; {StoreReadOnly}
   */
  prepare(standby?: string): void;
  /** @throws {Rejection} entries_missing, stale_term; {StoreReadOnly} */
  entriesAfter(position: Position, waitMs: number, signal: AbortSignal): Promise<Piece>;
  /** A standby was promoted. Resolves with the last entry of this hub. @throws {Rejection} stale_term */
  supersede(by: Superseder): Promise<number>;
  /** @throws {Rejection} not_a_standby; stale_term: another standby was promoted */
  promote(): Promise<Promoted>;
  /** Of a standby: the bytes of the file come before its record. */
  isArriving(fileId: string): boolean;
}

export type Superseder = {
  /** The name of its key. */
  readonly name: string;
  readonly term: number;
  readonly urls: HubUrls;
  /** What makes this hub the standby of the other one: the argument of `luxhub join`. */
  readonly line: string;
};

export const NO_COPIES: Copies = {
  hubs: () => [],
  report: () => null,
  checkWrites: () => {},
  prepare: () => {
    throw notKept();
  },
  entriesAfter: () => Promise.reject(notKept()),
  supersede: () => Promise.reject(notKept()),
  promote: () => Promise.reject(notStandby()),
  isArriving: () => false,
};

function notKept(): Rejection {
  return new Rejection(
    reject("entries_missing", "This hub keeps no change log: a hub on PostgreSQL has no standby."),
  );
}

export function notStandby(): Rejection {
  return new Rejection(
    reject("not_a_standby", "This hub is no standby, so it cannot be promoted. Call the standby."),
  );
}

export type Sync = "off" | "on" | "strict";

type FirstParts = {
  readonly changes: ChangeLogStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Every key of the hub. */
  readonly keys: () => readonly KeyRecord[];
  readonly urls: () => HubUrls;
  readonly sync: Sync;
  readonly isArchived: boolean;
  /** The standbys that the hub knew when it last ran. */
  readonly known: KnownStandbys;
  readonly remember: (known: KnownStandbys) => void;
  readonly rememberSuperseder: (by: Superseder) => void;
  /** Called once: the hub must be opened again, as one that writes nothing. */
  readonly onSuperseded: () => void;
  /** Set: it was superseded before it started. */
  readonly supersededBy: Superseder | null;
  readonly report: (event: "standby.following" | "standby.lost", standby: string, lagEntries: number) => void;
};

/** By name. */
export type KnownStandbys = Readonly<Record<string, HubUrls>>;

type Standby = {
  urls: HubUrls;
  /** Before it has asked: the last entry when this hub began, of which it may lack some. */
  after: number;
  /** It needs the entries after this one; 0: it has not said so since this hub began; null: it takes a base first. */
  needsAfter: number | null;
  /** When it last had an entry more, or all; steady clock; Infinity while it waits for an entry. */
  heardAt: number;
  isFollowing: boolean;
  since: number | null;
};

type Unconfirmed = {
  readonly n: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
};

/** The queue of those who wait for an entry. */
const ENTRIES = "entries";

export class First implements Copies {
  readonly #parts: FirstParts;
  readonly #waiters = new Waiters();
  readonly #standbys = new Map<string, Standby>();
  #unconfirmed: Unconfirmed[] = [];
  #archivedUpTo = 0;
  #supersededBy: Superseder | null;
  /** It was superseded, and is opened again when its promoted standby has confirmed the writes that wait. */
  #isLeaving = false;
  #isDraining = false;
  #checkedSizeAt = Number.NEGATIVE_INFINITY;

  constructor(parts: FirstParts) {
    this.#parts = parts;
    this.#supersededBy = parts.supersededBy;
    const { changes, clock, known, sync } = parts;
    for (const [name, urls] of Object.entries(known))
      // It gets its time to come back before a write goes on without it.
      this.#standbys.set(name, {
        urls,
        after: changes.standing().n ?? 0,
        needsAfter: 0,
        heardAt: clock.steady(),
        isFollowing: true,
        since: clock.now(),
      });
    if (this.#supersededBy) changes.refuse(superseded());
    else if (sync !== "off") changes.confirmBy((n) => this.#confirmed(n));
    this.check();
  }

  hubs(caller: UrlFor): readonly string[] {
    const [own = {}, ...others] = this.#hubs;
    const known = others.flatMap((urls) => urlFor(urls, caller) ?? []);
    return known.length === 0 ? [] : [...new Set([urlFor(own, caller) ?? [], known].flat())];
  }

  get #hubs(): readonly HubUrls[] {
    const standbys = [...this.#standbys.values()].map(({ urls }) => urls);
    return [this.#parts.urls(), ...(this.#supersededBy ? [this.#supersededBy.urls] : standbys)];
  }

  report(): CopyReport {
    if (!this.#supersededBy) this.#noteKeys();
    const { term, n } = this.#parts.changes.standing();
    return {
      role: this.#supersededBy ? "superseded" : "first",
      term,
      entry: n,
      hub: this.#supersededBy?.urls ?? null,
      copies: [...this.#standbys].map(([name, standby]) => this.#lagOf(name, standby)),
    };
  }

  #lagOf(name: string, { urls, after, isFollowing, since }: Standby): CopyLag {
    const { changes, clock } = this.#parts;
    const { n } = changes.standing();
    const lagEntries = since === null ? 0 : Math.max(0, (n ?? 0) - after);
    const oldest = lagEntries === 0 ? null : changes.timeAfter(after);
    return {
      name,
      url: shownUrl(urls),
      isFollowing,
      lagEntries,
      lagMs: oldest === null ? 0 : Math.max(0, clock.now() - oldest),
      since,
      fault: null,
    };
  }

  checkWrites(): void {
    if (this.#supersededBy) throw superseded();
  }

  prepare(name?: string): void {
    this.checkWrites();
    const { changes } = this.#parts;
    changes.keep(true);
    this.#noteKeys();
    const standby = name === undefined ? undefined : this.#standbys.get(name);
    if (standby !== undefined) standby.needsAfter = must(changes.standing().n, "the log is kept");
  }

  async entriesAfter(position: Position, waitMs: number, signal: AbortSignal): Promise<Piece> {
    const { changes, clock } = this.#parts;
    const { after, at, term } = position;
    const own = changes.standing().term;
    if (term > own)
      throw new Rejection(
        reject("stale_term", `The standby is of term ${term}, and this hub of ${own}: it was superseded.`),
      );
    const read = (): readonly Entry[] => {
      try {
        return changes.after({ n: after, at }, CHANGES_PIECE_BYTES);
      } catch (error) {
        if (error instanceof EntryMissing) throw entriesMissing();
        throw error;
      }
    };
    const waiter = this.#waiters.join(ENTRIES);
    let entries = read();
    const standby = this.#heardOf(position, entries.length === 0);
    try {
      const until = clock.timers() + waitMs;
      while (entries.length === 0 && clock.timers() < until && !signal.aborted) {
        if (this.#supersededBy) throw superseded(); // it has all, and follows another hub from now on
        standby.heardAt = Number.POSITIVE_INFINITY;
        const woken = await waiter.wait(until - clock.timers(), signal).finally(() => {
          standby.heardAt = clock.steady();
        });
        if (woken !== "woken") break;
        entries = read();
      }
      return { ...changes.standing(), entries, hubs: this.#hubs };
    } finally {
      waiter.leave();
    }
  }

  /** One that asks for the same entries again, as when its disk is full, does not follow. */
  #heardOf({ name, after, urls }: Position, hasAll: boolean): Standby {
    const { clock, report } = this.#parts;
    const known = this.#standbys.get(name);
    const standby: Standby = known ?? {
      urls,
      after,
      needsAfter: null,
      heardAt: 0,
      isFollowing: false,
      since: null,
    };
    const isNew = standby.since === null || !Bun.deepEquals(standby.urls, urls);
    const advances = hasAll || standby.since === null || standby.needsAfter === 0 || after > standby.after;
    Object.assign(standby, { urls, after, needsAfter: after, ...(advances && { heardAt: clock.steady() }) });
    this.#standbys.set(name, standby);
    if (advances && !standby.isFollowing) {
      standby.isFollowing = true;
      standby.since = clock.now();
      this.#refuseWithoutStandby(); // first: the event is a write
      report("standby.following", name, 0);
    }
    if (isNew) this.#remember();
    this.#settle();
    return standby;
  }

  #remember(): void {
    const followers = [...this.#standbys].filter(([, { since }]) => since !== null);
    this.#parts.remember(Object.fromEntries(followers.map(([name, { urls }]) => [name, urls])));
  }

  /** Of a commit of this hub. */
  noteCommit(): void {
    this.#waiters.wakeAll(ENTRIES);
  }

  /** The archive has all entries up to this one. */
  archived(n: number): void {
    this.#archivedUpTo = n;
  }

  /** Called again and again: notices lost standbys and revoked keys, and deletes entries that nobody needs. */
  check(): void {
    if (this.#supersededBy) return this.#leave();
    const { changes, clock, isArchived, log, report } = this.#parts;
    this.#noteKeys();
    const isKept = this.#standbys.size > 0 || isArchived;
    if (isKept !== (changes.standing().n !== null)) changes.keep(isKept);
    for (const [name, standby] of this.#standbys) {
      if (!standby.isFollowing || clock.steady() - standby.heardAt < STANDBY_LOST_MS) continue;
      standby.isFollowing = false;
      standby.since = clock.now();
      const { lagEntries } = this.#lagOf(name, standby);
      log.error("a standby does not follow any more", { standby: name, lag_entries: lagEntries });
      report("standby.lost", name, lagEntries);
    }
    this.#refuseWithoutStandby();
    this.#settle();
    if (isKept) this.#forgetEntries();
  }

  /** Whoever has a valid key is a standby. One whose key is lost is not asked at the next start whether it was promoted. */
  #noteKeys(): void {
    const { clock, keys } = this.#parts;
    const names = new Set(
      keys().flatMap((key) => (key.role === "standby" && isValid(key, clock.now()) ? [key.keyId] : [])),
    );
    const lost = [...this.#standbys.keys()].filter((name) => !names.has(name));
    for (const name of lost) this.#standbys.delete(name);
    if (lost.length > 0) this.#remember();
    for (const name of names)
      if (!this.#standbys.has(name))
        this.#standbys.set(name, {
          urls: {},
          after: 0,
          needsAfter: null,
          heardAt: 0,
          isFollowing: false,
          since: null,
        });
  }

  #forgetEntries(): void {
    const { changes, clock, isArchived } = this.#parts;
    const n = must(changes.standing().n, "the log is kept");
    const needed = Math.min(
      n,
      ...[...this.#standbys.values()].flatMap(({ needsAfter }) => needsAfter ?? []),
      ...(isArchived ? [this.#archivedUpTo] : []),
    );
    // One that asks again after a promotion may need a few of those before.
    changes.forgetBefore(needed - CHANGES_KEPT);
    if (n - needed <= CHANGES_KEPT || clock.steady() - this.#checkedSizeAt < STANDBY_LOST_MS) return;
    this.#checkedSizeAt = clock.steady();
    changes.forgetBeyond(CHANGES_KEPT_MAX_BYTES);
  }

  #refuseWithoutStandby(): void {
    if (this.#parts.sync !== "strict" || this.#supersededBy) return;
    this.#parts.changes.refuse(this.#isFollowed ? null : withoutStandby());
  }

  get #isFollowed(): boolean {
    return [...this.#standbys.values()].some(({ isFollowing }) => isFollowing);
  }

  #confirmed(n: number): Promise<void> | null {
    if (!this.#isFollowed) return null;
    if (this.#isDraining) return Promise.reject(unconfirmed());
    return new Promise((resolve, reject) => this.#unconfirmed.push({ n, resolve, reject }));
  }

  #leave(): void {
    if (this.#isLeaving) this.#parts.onSuperseded();
    this.#isLeaving = false;
  }

  /** Answers the writes that a standby has on its disk, or that no standby will get. */
  #settle(): void {
    if (this.#unconfirmed.length === 0) return;
    const following = [...this.#standbys.values()].filter(({ isFollowing }) => isFollowing);
    const upTo = following.length === 0 ? Infinity : Math.max(...following.map(({ after }) => after));
    const settled = this.#unconfirmed.filter(({ n }) => n <= upTo);
    this.#unconfirmed = this.#unconfirmed.filter(({ n }) => n > upTo);
    const isLost = following.length === 0 && this.#parts.sync === "strict";
    for (const { resolve, reject } of settled)
      if (isLost) reject(new OutcomeUnknown("It was written here, and no standby has it."));
      else resolve();
    if (this.#unconfirmed.length === 0) this.#leave();
  }

  async supersede(by: Superseder): Promise<number> {
    const { changes, log, rememberSuperseder } = this.#parts;
    const { term, n } = changes.standing();
    if (by.term <= term)
      throw new Rejection(
        reject("stale_term", `This hub is of term ${term} already, not of an earlier one.`),
      );
    const known = this.#supersededBy;
    // One that was only found by its term has not said how to join it.
    if (known !== null && known.line !== "" && known.name !== by.name && by.term <= known.term)
      throw new Rejection(
        reject(
          "stale_term",
          `Another standby of this hub was promoted: ${known.name} (${shownUrl(known.urls)}).`,
        ),
      );
    if (known === null) {
      this.#isLeaving = true;
      changes.refuse(superseded());
      log.error("superseded: a standby of this hub was promoted, and this hub refuses writes", {
        by: shownUrl(by.urls) ?? "",
      });
    }
    this.#supersededBy = by;
    rememberSuperseder(by);
    if (this.#unconfirmed.length === 0) this.#leave();
    return n ?? 0;
  }

  promote(): Promise<Promoted> {
    return Promise.reject(notStandby());
  }

  isArriving(): boolean {
    return false;
  }

  /** Ends the calls that wait: nobody would notice any more that a standby is lost. */
  drain(): void {
    this.#isDraining = true;
    this.#waiters.drain();
    for (const { reject } of this.#unconfirmed.splice(0)) reject(unconfirmed());
  }
}

/** Whether there is, or was, a second copy. */
export function isCopied({ role, term, copies }: CopyReport): boolean {
  return role !== "first" || term > 1 || copies.length > 0;
}

/** For a caller that goes on there: of the same variant. */
export function urlFor(urls: HubUrls, { variant, isTls }: UrlFor): string | null {
  const [plain, secured] = [urls[variant], urls[`${variant}_tls`]];
  return (isTls ? (secured ?? plain) : (plain ?? secured)) ?? null;
}

/** For people. */
export function shownUrl({ A, A_tls, B, B_tls }: HubUrls): string | null {
  return A_tls ?? A ?? B_tls ?? B ?? null;
}

const unconfirmed = (): OutcomeUnknown =>
  new OutcomeUnknown("It was written here; whether the standby has it is unknown.");

function entriesMissing(): Rejection {
  return new Rejection(
    reject(
      "entries_missing",
      "This hub no longer has the entries after that one, or never had that one. Take a new base.",
    ),
  );
}

export function superseded(): StoreReadOnly {
  return new StoreReadOnly(
    "superseded",
    "This hub is superseded: a standby of it was promoted, and it answers reads only.",
  );
}

function withoutStandby(): StoreReadOnly {
  return new StoreReadOnly(
    "no_standby",
    "No standby follows this hub, and it was started with --sync=strict. Bring the standby back, or start the hub with --sync alone, also to invite another.",
  );
}
