/**
 * Delivers webhooks (domain/webhook.ts): the leader sends each event of the log that a webhook wants to its URL, signed
 * as Standard Webhooks 1.0.
 *
 * A webhook is a reader of the log with a cursor, as a stream is: what a commit notifies of says only when to read, and
 * what is sent comes from the stored rows. Each has one message under way at most, in the order of the log; a message that
 * fails is sent again after a while, and nothing overtakes it. The cursor is stored after each 2xx: a hub that is killed
 * between the two sends that message again, with the same `webhook-id`.
 *
 * Bounds: WEBHOOK_DELIVERIES_MAX deliveries at once, in turns of WEBHOOK_TURN_MS; for each of them WEBHOOK_READ_EVENTS
 * events in memory; for every other webhook only its row. The webhooks of administrators come first; push configs of A2A
 * have PUSH_DELIVERIES_MAX, of which the key that has the fewest gets the next. What times out for one key at one host
 * makes all push configs of that key at that host wait.
 *
 * Must not: read or write anything while there is no webhook.
 */
import type { Notified } from "../domain/change.ts";
import { type Accepted, UNDECIDED } from "../domain/decision.ts";
import type { LoggedEvent, NewEvent } from "../domain/event.ts";
import * as limit from "../domain/limits.ts";
import type { Webhook } from "../domain/model.ts";
import { TASK_ENDS, callerOf, delivered, ended, failed, isSame, passed, passes } from "../domain/webhook.ts";
import { assert } from "../lib/assert.ts";
import { type Clock, SECOND_MS } from "../lib/clock.ts";
import { type Log, causeOf } from "../lib/log.ts";
import { eventsIn, firstEventId, lastEventId } from "../store/sql/events.ts";
import { webhookByName, webhooksAfter } from "../store/sql/webhooks.ts";
import type { Store } from "../store/store.ts";
import type { Gap } from "./feed.ts";
import type { KeyRing } from "./keys.ts";
import { SECRET_PREFIX, changedWebhooks } from "./webhooks.ts";

export type Happened =
  | { readonly kind: "event"; readonly event: LoggedEvent }
  | { readonly kind: "gap"; readonly gap: Gap; readonly at: number }
  | { readonly kind: "test"; readonly id: string; readonly at: number };

export type Content = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** Several messages, or none if the format of the webhook does not tell of what happened. */
export type Encode = (webhook: Webhook, happened: Happened) => Promise<readonly Content[]>;

type Posted =
  | { readonly status: number; readonly retryAfter: string | null }
  | { readonly status: null; readonly error: string };

/** http/outbound.ts */
export type Post = (
  request: Content & { readonly sender: "webhook" | "push"; readonly signal: AbortSignal },
) => Promise<Posted>;

/** `status` null: there was no response. */
export type Attempt = {
  readonly isDelivered: boolean;
  readonly status: number | null;
  readonly error: string | null;
  readonly retryAfterMs: number | null;
  readonly ms: number;
};

type CourierParts = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly post: Post;
  readonly encode: Encode;
  /** Of this name, or every key of this node. */
  readonly isRevoked: KeyRing["isRevoked"];
  readonly random?: () => number;
};

export type CourierCounts = Readonly<Record<"delivered" | "failed" | Webhook["state"], number>>;

type Line = {
  webhook: Webhook;
  /** Everything up to here was sent and stored, or needs not be sent; at least the cursor. */
  searched: number;
  /** There may be more to send. */
  hasNews: boolean;
  isRunning: boolean;
  /** The host of a push config, as its key sees it: no key makes another one wait. Null: of an administrator. */
  readonly host: string | null;
  /** The ids of the messages after `searched` that were sent: an event may have several, and storing may fail. */
  readonly sent: Set<string>;
};

type Found = { readonly happened: readonly Happened[]; readonly upTo: number; readonly atEnd: boolean };

export class WebhookCourier {
  readonly #parts: CourierParts;
  readonly #random: () => number;
  /** By name; null: this hub is not the leader, or has not read them yet. */
  #lines: Map<string, Line> | null = null;
  /** The lines of webhooks for one task, by the task's id, and the lines of all others. */
  readonly #ofTask = new Map<string, Set<Line>>();
  readonly #general = new Set<Line>();
  /**
   * Lines that have something to do, in the order of their turns, by whose they are (ownerOf); lines that wait for their
   * next attempt.
   */
  readonly #ready = new Map<string, Set<Line>>();
  readonly #waiting = new Set<Line>();
  readonly #changed = new Set<string>();
  readonly #running = new Set<Promise<void>>();
  /** By whose they are. */
  readonly #runningOf = new Map<string, number>();
  /** Hosts that did not respond to the push configs of one key, until when these wait. */
  readonly #silent = new Map<string, { readonly times: number; readonly until: number }>();
  readonly #stopping = new AbortController();
  #stopped: Promise<void> | null = null;
  #isLeading = false;
  #isTicking = false;
  #isPumping = false;
  #cursorsSavedAt: number;
  /** By the wall clock. */
  #tickedAt = 0;
  readonly #counts = { delivered: 0, failed: 0 };

  constructor(parts: CourierParts) {
    this.#parts = parts;
    this.#random = parts.random ?? Math.random;
    this.#cursorsSavedAt = parts.clock.steady();
    parts.store.onCommit((changes) => this.#notice(changes));
  }

  /** Each second: becomes or ceases to be the leader, and begins what is due. */
  async tick(isLeading: boolean): Promise<void> {
    this.#isLeading = isLeading && !this.#stopping.signal.aborted;
    if (this.#isTicking) return;
    this.#isTicking = true;
    try {
      if (!this.#isLeading) return this.#forget();
      if (this.#lines === null) await this.#load();
      await this.#reread();
      if (this.#lines?.size === 0) return;
      await this.#saveCursors();
      await this.#removeOfLostKeys();
      const now = this.#parts.clock.now();
      const isSetBack = now < this.#tickedAt - limit.CLOCK_JUMP_MS;
      this.#tickedAt = now;
      for (const line of this.#waiting) {
        const { nextAt } = line.webhook;
        // One that lies too far ahead was stored before the clock was set back, while no hub ran.
        const isAhead = nextAt !== null && nextAt > now && nextAt - now <= limit.WEBHOOK_RETRY_AFTER_MAX_MS;
        if (isAhead && !isSetBack) continue;
        if (this.#isSilent(line, now)) continue;
        this.#waiting.delete(line);
        this.#setReady(line);
      }
      this.#pump();
    } finally {
      this.#isTicking = false;
    }
  }

  /** Sends a message of no event to a webhook, once. */
  async test(webhook: Webhook, id: string, signal: AbortSignal): Promise<Attempt> {
    const at = this.#parts.clock.now();
    const [content] = await this.#parts.encode(webhook, { kind: "test", id, at });
    if (!content)
      return { isDelivered: false, status: null, error: "the format has no test", retryAfterMs: null, ms: 0 };
    return this.#send(webhook, messageIdOf(webhook, { kind: "test", id, at }, 0), content, signal);
  }

  #known(): Iterable<Line> {
    return this.#lines?.values() ?? [];
  }

  /** Since its start; no webhooks unless it leads. */
  counts(): CourierCounts {
    const states = { active: 0, suspended: 0 };
    for (const { webhook } of this.#known()) states[webhook.state]++;
    return { ...this.#counts, ...states };
  }

  /** Those under way have a moment. Idempotent. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop());
  }

  async #stop(): Promise<void> {
    this.#isLeading = false;
    const timer = setTimeout(() => this.#stopping.abort(), limit.WEBHOOK_DRAIN_MS);
    await Promise.all(this.#running);
    clearTimeout(timer);
    this.#stopping.abort();
  }

  // ---- What there is to do

  /** Within the commit notification: it only remembers. */
  #notice(changes: readonly Notified[]): void {
    if (this.#lines === null) return;
    if (this.#lines.size > 0)
      for (const change of changes) if (change.kind === "event.logged") this.#wake(change.event);
    const changed = changedWebhooks(changes);
    for (const name of changed) this.#changed.add(name);
    if (changed.length > 0) queueMicrotask(() => void this.#rereadSoon());
    if (this.#ready.size > 0) this.#pump();
  }

  #wake(event: NewEvent): void {
    for (const line of this.#general) if (passes(event, line.webhook.filter)) this.#tell(line);
    if (event.taskId !== null)
      for (const line of this.#ofTask.get(event.taskId) ?? [])
        if (passes(event, line.webhook.filter)) this.#tell(line);
  }

  #tell(line: Line): void {
    line.hasNews = true;
    if (!line.isRunning && line.webhook.state === "active" && !this.#waiting.has(line)) this.#setReady(line);
  }

  #setReady(line: Line): void {
    const owner = ownerOf(line.webhook);
    this.#ready.set(owner, (this.#ready.get(owner) ?? new Set()).add(line));
  }

  #unsetReady(line: Line): void {
    const owner = ownerOf(line.webhook);
    const lines = this.#ready.get(owner);
    lines?.delete(line);
    if (lines?.size === 0) this.#ready.delete(owner);
  }

  async #load(): Promise<void> {
    const lines = new Map<string, Line>();
    this.#lines = lines;
    for (let after = ""; ;) {
      const webhooks = await this.#parts.store.read(webhooksAfter(after, limit.WEBHOOK_STEP));
      for (const webhook of webhooks) if (!lines.has(webhook.name)) this.#add(webhook);
      if (webhooks.length < limit.WEBHOOK_STEP) return;
      after = webhooks.at(-1)?.name ?? after;
    }
  }

  #add(webhook: Webhook): void {
    const line = {
      webhook,
      searched: webhook.cursor,
      hasNews: true,
      isRunning: false,
      host: hostOf(webhook),
      sent: new Set<string>(),
    };
    this.#lines?.set(webhook.name, line);
    const { taskId } = webhook.filter;
    if (taskId === null) this.#general.add(line);
    else this.#ofTask.set(taskId, (this.#ofTask.get(taskId) ?? new Set()).add(line));
    if (webhook.state !== "active") return;
    if (webhook.nextAt === null) this.#setReady(line);
    else this.#waiting.add(line);
  }

  #remove(line: Line): void {
    const { name, filter } = line.webhook;
    if (this.#lines?.get(name) === line) this.#lines.delete(name);
    this.#general.delete(line);
    this.#unsetReady(line);
    this.#waiting.delete(line);
    const ofTask = filter.taskId === null ? undefined : this.#ofTask.get(filter.taskId);
    ofTask?.delete(line);
    if (filter.taskId !== null && ofTask?.size === 0) this.#ofTask.delete(filter.taskId);
  }

  #forget(): void {
    for (const line of this.#known()) this.#remove(line);
    this.#lines = null;
    this.#changed.clear();
  }

  async #rereadSoon(): Promise<void> {
    if (this.#isTicking || !this.#isLeading) return; // the tick does it
    this.#isTicking = true;
    try {
      await this.#reread();
      this.#pump();
    } catch (error) {
      this.#parts.log.error("webhooks could not be read", { cause: causeOf(error) }); // the next tick does it again
    } finally {
      this.#isTicking = false;
    }
  }

  /** A delivery under way notices the change when it stores its result. */
  async #reread(): Promise<void> {
    for (const name of this.#changed) {
      // Two of its messages must not be under way at once. Its turn ends soon, because it is in #changed.
      if (this.#lines?.get(name)?.isRunning) continue;
      const webhook = await this.#parts.store.read(webhookByName(name));
      this.#changed.delete(name);
      const line = this.#lines?.get(name);
      if (line && webhook && isSame(webhook, line.webhook)) continue; // its own change
      if (line) this.#remove(line);
      if (webhook) this.#add(webhook);
    }
  }

  /** How far the log was searched without anything to send. */
  async #saveCursors(): Promise<void> {
    const { clock } = this.#parts;
    if (clock.steady() - this.#cursorsSavedAt < limit.WEBHOOK_CURSORS_SAVE_MS) return;
    this.#cursorsSavedAt = clock.steady();
    const behind = [...this.#known()].filter(
      ({ webhook, searched, isRunning }) => searched > webhook.cursor && !isRunning,
    );
    for (let i = 0; i < behind.length; i += limit.WEBHOOK_STEP)
      await Promise.all(
        behind
          .slice(i, i + limit.WEBHOOK_STEP)
          .filter(({ isRunning }) => !isRunning)
          .map((line) =>
            this.#store(line, (webhook) => passed(webhook, Math.max(webhook.cursor, line.searched))),
          ),
      );
  }

  // ---- Deliveries

  /** While there is room. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    queueMicrotask(() => {
      this.#isPumping = false;
      while (this.#isLeading) {
        const line = this.#next();
        if (line === null) return;
        this.#begin(line);
      }
    });
  }

  #begin(line: Line): void {
    const owner = ownerOf(line.webhook);
    this.#unsetReady(line);
    line.isRunning = true;
    const count = (by: 1 | -1): void => {
      const n = (this.#runningOf.get(owner) ?? 0) + by;
      assert(n >= 0, "a delivery that ends has begun");
      if (n === 0) this.#runningOf.delete(owner);
      else this.#runningOf.set(owner, n);
    };
    count(1);
    const turn = this.#takeTurn(line).finally(() => {
      this.#running.delete(turn);
      count(-1);
      this.#pump();
    });
    this.#running.add(turn);
  }

  /** Null: there is none, or no room. */
  #next(): Line | null {
    if (this.#running.size >= limit.WEBHOOK_DELIVERIES_MAX) return null;
    const [own] = this.#ready.get(ADMINISTRATORS) ?? [];
    if (own) return own;
    const pushes = this.#running.size - (this.#runningOf.get(ADMINISTRATORS) ?? 0);
    if (pushes >= limit.PUSH_DELIVERIES_MAX) return null;
    let fewest: number = limit.PUSH_DELIVERIES_OF_KEY_MAX;
    let next: Line | null = null;
    for (const [owner, [line]] of this.#ready) {
      const running = this.#runningOf.get(owner) ?? 0;
      if (!line || running >= fewest) continue;
      fewest = running;
      next = line;
    }
    return next;
  }

  // ---- Push configs of A2A

  /** They are revoked or have expired. */
  async #removeOfLostKeys(): Promise<void> {
    const now = this.#parts.clock.now();
    const lost = new Map<string, boolean>();
    for (const line of this.#known()) {
      const owner = ownerOf(line.webhook);
      if (!lost.has(owner)) lost.set(owner, this.#isOfLostKey(line.webhook));
      if (lost.get(owner) && !line.isRunning)
        await this.#store(line, (stored) => ended(stored, "key_revoked", now));
    }
  }

  #isOfLostKey({ push }: Webhook): boolean {
    if (push === null) return false;
    const { keyId, nodeId } = callerOf(push);
    return this.#parts.isRevoked(keyId, nodeId);
  }

  #isSilent({ host }: Line, now: number): boolean {
    const silent = host === null ? undefined : this.#silent.get(host);
    return silent !== undefined && silent.until > now;
  }

  /** It waits the longer the oftener it has timed out. */
  #noteHost({ host }: Line, { status, ms }: Attempt): void {
    if (host === null) return;
    if (status !== null || ms < limit.WEBHOOK_TIMEOUT_MS / 2) return void this.#silent.delete(host);
    const now = this.#parts.clock.now();
    const before = this.#silent.get(host);
    if (before && before.until > now) return; // of the same round
    const times = (before?.times ?? 0) + 1;
    const waitMs = Math.min(limit.WEBHOOK_RETRY_MIN_MS * 2 ** Math.min(times, 30), limit.PUSH_SILENCE_MAX_MS);
    this.#silent.delete(host);
    this.#silent.set(host, { times, until: now + waitMs });
    const [oldest] = this.#silent.keys();
    if (this.#silent.size > limit.PUSH_CONFIGS_MAX && oldest !== undefined) this.#silent.delete(oldest);
  }

  /** Never rejects. */
  async #takeTurn(line: Line): Promise<void> {
    const { clock, log } = this.#parts;
    const until = clock.timers() + limit.WEBHOOK_TURN_MS;
    try {
      if (this.#isSilent(line, clock.now())) {
        line.hasNews = true;
        this.#waiting.add(line);
        return;
      }
      while (this.#isTheirs(line)) {
        line.hasNews = false;
        const { happened, upTo, atEnd } = await this.#read(line);
        for (const one of happened) if (!(await this.#deliver(line, one))) return;
        passTo(line, upTo);
        if (atEnd && !line.hasNews) return;
        line.hasNews ||= !atEnd;
        if (clock.timers() >= until) return;
      }
    } catch (error) {
      line.hasNews = true;
      this.#waiting.add(line); // until the next tick: the store could not be read or written
      log.warn("a webhook could not be delivered", { webhook: line.webhook.name, cause: causeOf(error) });
    } finally {
      line.isRunning = false;
      const mayGoOn = this.#isTheirs(line) && !this.#waiting.has(line);
      if (mayGoOn && line.hasNews) this.#setReady(line);
      if (this.#changed.size > 0) void this.#rereadSoon();
    }
  }

  /** This hub is the leader, and nobody has changed the webhook. */
  #isTheirs(line: Line): boolean {
    const { name, state } = line.webhook;
    const isUnchanged = this.#lines?.get(name) === line && !this.#changed.has(name);
    return this.#isLeading && isUnchanged && state === "active" && !this.#isOfLostKey(line.webhook);
  }

  async #read({ webhook: { filter, cursor }, searched }: Line): Promise<Found> {
    const { store, clock } = this.#parts;
    return store.readTogether(async (read) => {
      const lastId = await read(lastEventId());
      if (searched >= lastId) return { happened: [], upTo: searched, atEnd: true };
      const firstId = await read(firstEventId());
      // Only at the cursor: what was searched is no gap.
      const gap = searched === cursor && cursor < firstId - 1 ? { after: cursor, resumedAt: firstId } : null;
      if (gap) return { happened: [{ kind: "gap", gap, at: clock.now() }], upTo: firstId - 1, atEnd: false };
      const groups = filter.group === null ? null : [filter.group];
      // An index finds the events of a task; of others the window bounds the work.
      const upTo = filter.taskId === null ? Math.min(searched + limit.WEBHOOK_LOG_WINDOW, lastId) : lastId;
      const events = await read(
        eventsIn(
          { after: searched, upTo },
          { ...filter, groups, tag: null },
          limit.WEBHOOK_READ_EVENTS,
          false,
        ),
      );
      const isFull = events.length === limit.WEBHOOK_READ_EVENTS;
      const end = isFull ? (events.at(-1)?.id ?? upTo) : upTo;
      const happened = events
        .filter((event) => passes(event, filter))
        .map((event) => ({ kind: "event" as const, event }));
      return { happened, upTo: end, atEnd: end >= lastId };
    });
  }

  /** Stores the result. Resolves to whether the next may follow at once. */
  async #deliver(line: Line, happened: Happened): Promise<boolean> {
    const { webhook } = line;
    if (happened.kind === "gap" && webhook.push)
      return this.#store(line, (stored) => ended(stored, "gap", this.#parts.clock.now()));
    const contents = await this.#parts.encode(webhook, happened);
    for (const [n, content] of contents.entries()) {
      const id = messageIdOf(webhook, happened, n);
      if (line.sent.has(id)) continue;
      if (!this.#isTheirs(line)) return false;
      const attempt = await this.#send(webhook, id, content, this.#stopping.signal);
      this.#noteHost(line, attempt);
      if (this.#stopping.signal.aborted && !attempt.isDelivered) return false; // it was ended, and has not failed
      if (!attempt.isDelivered) {
        await this.#noteFailure(line, attempt);
        return false;
      }
      line.sent.add(id);
    }
    const cursor =
      happened.kind === "event"
        ? happened.event.id
        : happened.kind === "gap"
          ? happened.gap.resumedAt - 1
          : webhook.cursor;
    const isEnd = happened.kind === "event" && TASK_ENDS.includes(happened.event.kind);
    const isStoredLater = contents.length === 0;
    const now = this.#parts.clock.now();
    // If this throws, the event is read again, and what was sent of it is stored without being sent again.
    if (!isStoredLater && !(await this.#store(line, (stored) => delivered(stored, cursor, isEnd, now))))
      return false;
    passTo(line, cursor);
    return true;
  }

  async #noteFailure(line: Line, attempt: Attempt): Promise<void> {
    const { clock, log } = this.#parts;
    const { name } = line.webhook;
    const error = attempt.error ?? `HTTP ${attempt.status}`;
    const failure = {
      error,
      isGone: attempt.status === 410,
      retryAfterMs: attempt.retryAfterMs,
      random: this.#random(),
    };
    line.hasNews = true;
    if (!(await this.#store(line, (stored) => failed(stored, failure, clock.now())))) return;
    const { state, attempts } = line.webhook;
    if (state === "active") this.#waiting.add(line);
    else log.warn("webhook suspended: resume it with luxhub webhook resume", { webhook: name, error });
    if (attempts === 1) log.warn("webhook fails, and is tried again", { webhook: name, error });
  }

  /**
   * Unless something else has changed the webhook: then it is read again. Resolves to whether it was stored and the
   * webhook is still there.
   */
  async #store(line: Line, decide: (stored: Webhook) => Accepted<Webhook | null>): Promise<boolean> {
    const { name } = line.webhook;
    const after = await this.#parts.store.transact({ stored: webhookByName(name) }, ({ stored }) =>
      isSame(stored, line.webhook) ? decide(stored) : UNDECIDED,
    );
    if (after === undefined) this.#changed.add(name);
    else if (after === null) this.#remove(line);
    else line.webhook = after;
    return Boolean(after);
  }

  async #send(webhook: Webhook, id: string, content: Content, ending: AbortSignal): Promise<Attempt> {
    const { clock, post } = this.#parts;
    const began = clock.timers();
    const signal = AbortSignal.any([ending, AbortSignal.timeout(limit.WEBHOOK_TIMEOUT_MS)]);
    const headers = { ...content.headers, ...signatureOf(webhook, id, content.body, clock.now()) };
    const sender = webhook.push === null ? "webhook" : "push";
    const posted = await post({ ...content, sender, headers, signal });
    const ms = clock.timers() - began;
    const isDelivered = posted.status !== null && posted.status >= 200 && posted.status < 300;
    this.#counts[isDelivered ? "delivered" : "failed"]++;
    if (posted.status === null)
      return { isDelivered, status: null, error: posted.error, retryAfterMs: null, ms };
    const { status, retryAfter } = posted;
    const isRedirect = status >= 300 && status < 400;
    const error = isDelivered
      ? null
      : `HTTP ${status}${isRedirect ? ", a redirect, which is not followed" : ""}`;
    return { isDelivered, status, error, retryAfterMs: delayOf(retryAfter, clock.now()), ms };
  }
}

/** Whose share of the deliveries it takes. */
function ownerOf({ push }: Webhook): string {
  if (push === null) return ADMINISTRATORS;
  const { keyId, nodeId } = callerOf(push);
  return nodeId === null ? `key ${keyId}` : `node ${nodeId}`;
}

const ADMINISTRATORS = "";

function hostOf(webhook: Webhook): string | null {
  return webhook.push && `${ownerOf(webhook)} ${new URL(webhook.url).host}`;
}

function passTo(line: Line, cursor: number): void {
  if (cursor <= line.searched) return;
  line.searched = cursor;
  line.sent.clear();
}

/**
 * The same whenever it is sent again: of the webhook, the event and its time. After a restore the log may use the id of
 * an event for another one.
 */
function messageIdOf({ webhookId }: Webhook, happened: Happened, n: number): string {
  const of =
    happened.kind === "event"
      ? [happened.event.id, happened.event.kind, happened.event.at]
      : happened.kind === "gap"
        ? ["gap", happened.gap.after, happened.gap.resumedAt]
        : ["test", happened.id];
  const hash = new Bun.CryptoHasher("sha256").update(JSON.stringify([webhookId, n, ...of])).digest();
  return `msg_${hash.subarray(0, 18).toString("base64url")}`;
}

/** The signature only with a secret of Standard Webhooks. */
function signatureOf(
  { secret }: Webhook,
  id: string,
  body: string,
  now: number,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(now / SECOND_MS));
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp };
  if (!secret?.startsWith(SECRET_PREFIX)) return headers;
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
  const mac = new Bun.CryptoHasher("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return { ...headers, "webhook-signature": `v1,${mac}` };
}

/** Of the header Retry-After (RFC 9110 10.2.3): seconds, or a date. */
function delayOf(retryAfter: string | null, now: number): number | null {
  if (retryAfter === null) return null;
  if (/^\d{1,9}(?:\.\d+)?$/.test(retryAfter.trim())) return Number(retryAfter) * SECOND_MS; // many send fractions
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
