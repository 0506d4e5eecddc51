/**
 * Commit notifications: the change feed of this hub's commits and of those of the other hubs on the same database, in the
 * order of the log.
 *
 * The commits of this hub are notified from memory. Those of other hubs are read from the log by cursor: when they send a
 * NOTIFY, when an own commit shows that others came before it, when the listening connection is open again, and on a slow
 * timer. A NOTIFY only says when to read the log, and wakes a receive before that: if it is lost, that costs time, never
 * data.
 *
 * Must not: notify an event twice, or before one with a smaller id: a stream's cursor would pass the later one.
 */
import type { SQL } from "bun";
import type { Change, Notified, Offer } from "../../domain/change.ts";
import type { NewEvent } from "../../domain/event.ts";
import { EVENTS_MAX } from "../../domain/limits.ts";
import { offersOf } from "../../domain/task/next.ts";
import { broken, must } from "../../lib/assert.ts";
import { type DecidedGroup, type Written, callEach } from "../pending-transaction.ts";
import { eventsAfter, lastEventId } from "../sql/events.ts";
import { allKeys } from "../sql/keys.ts";
import { many } from "../sql/query.ts";
import type { WriteStatement } from "../sql/write-statement.ts";
import { type CommitListener, type Origin, type Query, StoreUnavailable } from "../store.ts";
import type { Batch } from "./bulk-statements.ts";
import { openPool } from "./connection.ts";

/** The payload of a NOTIFY: the hub, and what its commit did that is not in the log. */
type Notice = {
  readonly from: string;
  readonly mailboxes?: readonly string[];
  readonly offers?: readonly Offered[];
  readonly keys?: boolean;
  /** Not in the log. */
  readonly outputs?: readonly string[];
  /** In the log: they wake a receive before the log is read. */
  readonly sent?: readonly Sent[];
};

type Sent = readonly [eventId: number, nodeId: string];

type Offered = { readonly offer: Offer; readonly count: number };

const PAYLOAD_MAX_BYTES = 7_999;
/** What fits into a payload: a node_id has at most 128 bytes, and a task type in JSON 600. */
const MAILBOXES_PER_NOTICE = 50;
const OFFERS_PER_NOTICE = 10;
const SENT_PER_NOTICE = 40;
const OUTPUTS_PER_NOTICE = 40;

const NOTIFY: WriteStatement = {
  sql: `SELECT pg_notify($1, $2)`,
  types: ["text", "text"],
  bulk: (rows) => `SELECT pg_notify(p.a1, p.a2) FROM ${rows}`,
  isSelect: true,
};

/** Mailboxes that hold something: for when a NOTIFY may have been lost. */
const FILLED_MAILBOXES: Query<readonly string[]> = many(
  `SELECT DISTINCT to_node FROM deliveries WHERE state = 'waiting'`,
  [],
  (row) => String(row["to_node"]),
  ["deliveries"],
);

/** Its events come after this id. */
export type OwnGroup = { readonly after: number };

export type FeedParts = {
  readonly url: string;
  readonly hubId: string;
  readonly channel: string;
  readonly read: <R>(query: Query<R>) => Promise<R>;
  /** With what a listener throws, and when the log cannot be read. */
  readonly onFault: (error: unknown) => void;
};

export class CommitNotifications {
  readonly #parts: FeedParts;
  /** How the payloads of this hub begin: its own connection gets them too. */
  readonly #ownPrefix: string;
  readonly #listeners: CommitListener[] = [];
  #cursor = 0;
  /** The newest event that was read: one after the cursor may be an own one, or another hub's behind an own one. */
  #newestRead = 0;
  /** Own groups that hold the write lock or wait to be notified: log ids after the first one's may be our own. */
  readonly #own: OwnGroup[] = [];
  /** After the cursor, by the ids of their events. */
  readonly #woken = new Set<number>();
  #queue: Promise<void> = Promise.resolve();
  #subscription: SQL | null = null;
  #isLost = false;
  #hasMissed = false;
  #isCatchUpQueued = false;

  constructor(parts: FeedParts) {
    this.#parts = parts;
    this.#ownPrefix = JSON.stringify({ from: parts.hubId } satisfies Notice).slice(0, -1);
  }

  async start(): Promise<void> {
    this.#cursor = await this.#parts.read(lastEventId());
  }

  /** The first listener opens the connection for NOTIFY: a command has none. */
  listen(listener: CommitListener): void {
    this.#listeners.push(listener);
    if (this.#listeners.length === 1) void this.#subscribe();
  }

  /** An own group has the write lock, and the log ends at `lastId`. Ends with publish() or ended(). */
  granted(lastId: number): OwnGroup {
    const own = { after: lastId };
    this.#own.push(own);
    return own;
  }

  /** It belongs into the commit. */
  noticesOf(written: readonly Written[]): Batch {
    let keys = false;
    const filled = new Set<string>(); // without an event: what is redelivered or put back
    const offered = new Map<string, { readonly offer: Offer; count: number }>();
    const sent: Sent[] = [];
    const outputs = new Set<string>();
    for (const { changes, eventIds } of written) {
      let logged = 0;
      for (const offer of offersOf(changes)) {
        const key = JSON.stringify(offer);
        const known = offered.get(key);
        if (known) known.count++;
        else offered.set(key, { offer, count: 1 });
      }
      for (const change of changes) {
        if (change.kind === "key.saved") keys = true;
        else if (change.kind === "output.appended") outputs.add(change.taskId);
        else if (change.kind === "event.logged") {
          const eventId = must(eventIds[logged++], "each logged event has an id");
          const mailbox = mailboxOf(change.event);
          if (mailbox !== null) sent.push([eventId, mailbox]);
        } else if (change.kind === "delivery.moved" && change.state === "waiting") filled.add(change.toNode);
      }
    }
    const payloads = payloadsOf({
      from: this.#parts.hubId,
      ...(keys && { keys }),
      ...(filled.size > 0 && { mailboxes: [...filled] }),
      ...(offered.size > 0 && { offers: [...offered.values()] }),
      ...(sent.length > 0 && { sent }),
      ...(outputs.size > 0 && { outputs: [...outputs] }),
    });
    return { statement: NOTIFY, columns: [payloads.map(() => this.#parts.channel), payloads] };
  }

  /** It is on disk. Other hubs' earlier writes are notified first. */
  publish({ written }: DecidedGroup, own: OwnGroup): Promise<void> {
    return this.#enqueue(async () => {
      const last = written.findLast(({ eventIds }) => eventIds.length > 0)?.eventIds.at(-1) ?? own.after;
      if (this.#listeners.length === 0 || (await this.#catchUp(own.after))) {
        if (last < this.#cursor) broken("no event is notified before one with a smaller id");
        for (const { changes, eventIds } of written) this.#notify(changes, eventIds, "own");
        this.#cursor = last;
      } else {
        this.#hasMissed = true; // it will be read from the log, with what comes before it
      }
      this.ended(own);
    });
  }

  /** The group that had the lock wrote nothing, or its outcome is unknown. */
  ended(own: OwnGroup): void {
    const at = this.#own.indexOf(own);
    if (at >= 0) this.#own.splice(at, 1);
    if (this.#newestRead > this.#cursor) void this.#enqueueCatchUp(); // it could not be told whose that was
  }

  /** The outcome of an own commit is unknown: what it did that is not in the log may have been missed. */
  missed(): void {
    this.#hasMissed = true;
  }

  /** Called again and again. */
  async tick(): Promise<void> {
    if (this.#listeners.length === 0) return;
    if (!this.#isLost) return this.#enqueueCatchUp();
    this.#isLost = false;
    await this.#subscribe();
  }

  /** The database does not answer: the listening connection may lead nowhere, and nobody would notice. */
  suspect(): void {
    if (this.#subscription) this.#lost(this.#subscription);
  }

  async close(): Promise<void> {
    const client = this.#subscription;
    this.#subscription = null;
    await this.#queue;
    await client?.close({ timeout: 0 });
  }

  /**
   * Opens a new listening connection: the driver would reconnect too, but after a long outage only within half a
   * minute.
   */
  async #subscribe(): Promise<void> {
    const client = openPool(this.#parts.url, 1, {}, () => this.#lost(client));
    this.#subscription = client;
    try {
      await client.listen(this.#parts.channel, (payload) => this.#receive(payload));
    } catch {
      this.#lost(client);
    }
    await this.#enqueueCatchUp();
  }

  /** A NOTIFY that was sent while nobody listened is gone. The next tick opens another connection. */
  #lost(client: SQL): void {
    if (client !== this.#subscription || this.#isLost) return;
    this.#isLost = true;
    this.#hasMissed = true;
    void client.close({ timeout: 0 }); // prevents its automatic reconnect
  }

  #receive(payload: string): void {
    if (payload.startsWith(this.#ownPrefix)) return;
    // The boundary to the channel: other hubs of this program write it.
    const notice = JSON.parse(payload) as Notice;
    if (notice.sent) this.#wake(notice.sent);
    // Offers have no place in the order of the log, so they need not wait for it to be read.
    if (notice.offers) this.#notify(notice.offers.map((offered) => ({ kind: "work.offered", ...offered })));
    if (notice.outputs) this.#notify(notice.outputs.map((taskId) => ({ kind: "output.changed", taskId })));
    if (!notice.mailboxes && !notice.keys) return void this.#enqueueCatchUp();
    void this.#enqueue(async () => {
      await this.#catchUp(null);
      if (notice.mailboxes) this.#notify(notice.mailboxes.map(filled));
      if (notice.keys) await this.#notifyKeys();
    });
  }

  /** Each message wakes once: now, or when its event is read from the log, whichever comes first. */
  #wake(sent: readonly Sent[]): void {
    for (const [eventId, mailbox] of sent) {
      if (eventId <= this.#cursor) continue;
      this.#woken.add(eventId);
      this.#notify([filled(mailbox)]);
    }
  }

  async #enqueueCatchUp(): Promise<void> {
    if (this.#isCatchUpQueued) return;
    this.#isCatchUpQueued = true;
    await this.#enqueue(async () => {
      this.#isCatchUpQueued = false; // what is committed from here on may be too late for this read
      const hasMissed = this.#hasMissed;
      if (!(await this.#catchUp(null)) || !hasMissed) return;
      this.#hasMissed = false;
      try {
        this.#notify([{ kind: "work.missed" }]);
        this.#notify((await this.#parts.read(FILLED_MAILBOXES)).map(filled));
        await this.#notifyKeys();
      } catch (error) {
        this.#hasMissed = true;
        throw error;
      }
    });
  }

  async #notifyKeys(): Promise<void> {
    const keys = await this.#parts.read(allKeys());
    this.#notify(keys.map((key) => ({ kind: "key.saved", key })));
  }

  /** Up to an id, or all that other hubs wrote. False: it could not be read. */
  async #catchUp(id: number | null): Promise<boolean> {
    try {
      while (id === null || this.#cursor < id) {
        const events = await this.#parts.read(eventsAfter(this.#cursor, [], EVENTS_MAX));
        const end = id ?? this.#own[0]?.after ?? Number.POSITIVE_INFINITY; // after the read: see #own
        this.#newestRead = Math.max(this.#newestRead, events.at(-1)?.id ?? 0);
        const others = events.filter((event) => event.id <= end);
        this.#notify(
          others.flatMap((event) => changesOf(event, this.#woken.delete(event.id))),
          others.map((event) => event.id),
        );
        this.#cursor = others.at(-1)?.id ?? this.#cursor;
        if (others.length === EVENTS_MAX) continue;
        if (id !== null) this.#cursor = Math.max(this.#cursor, id);
        break;
      }
      return true;
    } catch (error) {
      this.#report(error);
      return false;
    }
  }

  #enqueue(step: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue.then(step).catch((error: unknown) => this.#report(error));
    return this.#queue;
  }

  /** When the database is unavailable, the requests report that often enough. */
  #report(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) this.#parts.onFault(error);
  }

  #notify(changes: readonly Notified[], eventIds: readonly number[] = [], origin: Origin = "remote"): void {
    if (changes.length > 0) callEach(this.#listeners, this.#parts.onFault, changes, eventIds, origin);
  }
}

/** As one payload, as nearly always, or as several. */
function payloadsOf(notice: Notice): readonly string[] {
  const payload = JSON.stringify(notice);
  if (Buffer.byteLength(payload) <= PAYLOAD_MAX_BYTES) return [payload];
  const { from, keys, mailboxes = [], offers = [], sent = [], outputs = [] } = notice;
  const parts: Notice[] = keys ? [{ from, keys }] : [{ from }];
  for (let at = 0; at < mailboxes.length; at += MAILBOXES_PER_NOTICE)
    parts.push({ from, mailboxes: mailboxes.slice(at, at + MAILBOXES_PER_NOTICE) });
  for (let at = 0; at < offers.length; at += OFFERS_PER_NOTICE)
    parts.push({ from, offers: offers.slice(at, at + OFFERS_PER_NOTICE) });
  for (let at = 0; at < sent.length; at += SENT_PER_NOTICE)
    parts.push({ from, sent: sent.slice(at, at + SENT_PER_NOTICE) });
  for (let at = 0; at < outputs.length; at += OUTPUTS_PER_NOTICE)
    parts.push({ from, outputs: outputs.slice(at, at + OUTPUTS_PER_NOTICE) });
  return parts.map((part) => JSON.stringify(part));
}

type LogEvent = ReturnType<ReturnType<typeof eventsAfter>["shape"]>[number];

/** As far as the log says. `hasWoken`: the message has woken a receive already. */
function changesOf(event: LogEvent, hasWoken: boolean): readonly Change[] {
  const logged: Change = { kind: "event.logged", event };
  const mailbox = mailboxOf(event);
  return mailbox === null || hasWoken ? [logged] : [logged, filled(mailbox)];
}

/** Of a broadcast the event itself tells. */
function mailboxOf({ kind, nodeId }: Pick<NewEvent, "kind" | "nodeId">): string | null {
  return kind === "message.sent" ? nodeId : null;
}

/** It may hold something new. */
function filled(nodeId: string): Change {
  return { kind: "delivery.queued", messageId: "", toNode: nodeId };
}
