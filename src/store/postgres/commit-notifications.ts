/**
 * The news of commits, this hub's own and those of the others on the same database, told in the order of the log.
 *
 * Own news is told from memory. What others wrote is read from the log by cursor: when they notify, when an own commit
 * shows that there is something before it, when the listening connection is back, and on a slow timer. A notification
 * only says when to look: a lost one costs time, never data.
 *
 * Must not: tell an event twice, or one before another with a smaller id: a stream's cursor would pass what comes later.
 */
import type { SQL } from "bun";
import type { Change } from "../../domain/change.ts";
import { EVENTS_MAX } from "../../domain/limits.ts";
import type { Group, Written } from "../pending-transaction.ts";
import type { Write } from "./bulk-statements.ts";
import { openPool } from "./connection.ts";
import { allKeys } from "../sql/keys.ts";
import { eventsAfter, lastEventId } from "../sql/events.ts";
import { type CommitListener, type Query, StoreUnavailable } from "../store.ts";

/** What one hub tells the others of a commit, beside that the log has grown. */
type Notice = { readonly from: string; readonly boxes?: readonly string[]; readonly keys?: boolean };

/** A payload has room for 8000 bytes, and a node_id has at most 128. */
const BOXES_PER_NOTICE = 50;

/** Mailboxes with something in them: for when notices may have been lost. */
const WAITING_BOXES: Query<readonly string[]> = {
  sql: `SELECT DISTINCT to_node FROM deliveries WHERE state = 'waiting'`,
  params: [],
  shape: (rows) => rows.map((row) => String(row["to_node"])),
};

/** A group of this hub's: its events come after this id. */
export type OwnGroup = { readonly after: number };

export type NewsParts = {
  readonly url: string;
  /** This hub's name among the others. */
  readonly hubId: string;
  readonly channel: string;
  readonly read: <R>(query: Query<R>) => Promise<R>;
  /** Hears what a listener throws, and why news could not be read. */
  readonly onFault: (error: unknown) => void;
};

export class News {
  readonly #parts: NewsParts;
  readonly #listeners: CommitListener[] = [];
  /** The newest event that has been told. */
  #seen = 0;
  /** Groups of ours that hold the write lock or wait to be told: what is after the first of them is not all the others'. */
  readonly #own: OwnGroup[] = [];
  /** One piece of news at a time. */
  #line: Promise<void> = Promise.resolve();
  #subscription: SQL | null = null;
  #isLost = false;
  #hasMissed = false;
  #isLookQueued = false;

  constructor(parts: NewsParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    this.#seen = await this.#parts.read(lastEventId());
  }

  /** The first listener is what the connection for notifications is opened for: a command has none. */
  listen(listener: CommitListener): void {
    this.#listeners.push(listener);
    if (this.#listeners.length === 1) void this.#subscribe();
  }

  /** A group of ours has the write lock, and the log ends at `lastId`. Ends with tell() or ended(). */
  granted(lastId: number): OwnGroup {
    const own = { after: lastId };
    this.#own.push(own);
    return own;
  }

  /** What belongs into the commit, for the other hubs to hear of it. */
  noticesOf(written: readonly Written[]): readonly Write[] {
    let keys = false;
    const filledBoxes = new Set<string>(); // without an event: what comes back or is put back
    for (const { changes } of written) {
      for (const change of changes) {
        if (change.kind === "key.saved") keys = true;
        else if (change.kind === "delivery.moved" && change.state === "waiting")
          filledBoxes.add(change.toNode);
      }
    }
    const boxes = [...filledBoxes];
    const notices: Notice[] = [{ from: this.#parts.hubId, ...(keys && { keys }) }];
    for (let at = 0; at < boxes.length; at += BOXES_PER_NOTICE) {
      notices.push({ from: this.#parts.hubId, boxes: boxes.slice(at, at + BOXES_PER_NOTICE) });
    }
    const sets = notices.map((notice) => [this.#parts.channel, JSON.stringify(notice)]);
    return [{ sql: `SELECT pg_notify($1, $2)`, sets }];
  }

  /** Tells of a group of ours that is on disk, after what the others wrote before it. */
  tell({ written }: Group, own: OwnGroup): Promise<void> {
    return this.#inLine(async () => {
      const last = written.findLast(({ eventIds }) => eventIds.length > 0)?.eventIds.at(-1) ?? own.after;
      if (this.#listeners.length === 0 || (await this.#toldUpTo(own.after))) {
        for (const { changes, eventIds } of written) this.#tell(changes, eventIds);
        this.#seen = last;
      } else {
        this.#hasMissed = true; // it will be read from the log, with what is before it
      }
      this.ended(own);
    });
  }

  /** Nothing was written by the group that had the lock, or nobody knows. */
  ended(own: OwnGroup): void {
    const at = this.#own.indexOf(own);
    if (at >= 0) this.#own.splice(at, 1);
  }

  /** Looks whether anything is new; comes again and again. */
  async tick(): Promise<void> {
    if (this.#listeners.length === 0) return;
    if (!this.#isLost) return this.#lookForMore();
    this.#isLost = false;
    await this.#subscribe();
  }

  async close(): Promise<void> {
    const client = this.#subscription;
    this.#subscription = null;
    await this.#line;
    await client?.close({ timeout: 0 });
  }

  /** Opens the listening connection anew: the driver would too, but after a long absence only after half a minute. */
  async #subscribe(): Promise<void> {
    const client = openPool(this.#parts.url, 1, {}, () => this.#lost(client));
    this.#subscription = client;
    try {
      await client.listen(this.#parts.channel, (payload) => this.#heard(payload));
    } catch {
      this.#lost(client);
    }
    await this.#lookForMore();
  }

  /** What was notified while nobody listened is gone. The next tick opens another. */
  #lost(client: SQL): void {
    if (client !== this.#subscription || this.#isLost) return;
    this.#isLost = true;
    this.#hasMissed = true;
    void client.close({ timeout: 0 }); // or it would try on by itself
  }

  #heard(payload: string): void {
    // The boundary to the channel: other hubs of this program write it.
    const notice = JSON.parse(payload) as Notice;
    if (notice.from === this.#parts.hubId) return;
    if (!notice.boxes && !notice.keys) return void this.#lookForMore();
    void this.#inLine(async () => {
      await this.#toldUpTo(null);
      if (notice.boxes) this.#tell(notice.boxes.map(filled), []);
      if (notice.keys) await this.#tellKeys();
    });
  }

  async #lookForMore(): Promise<void> {
    if (this.#isLookQueued) return;
    this.#isLookQueued = true;
    await this.#inLine(async () => {
      this.#isLookQueued = false; // what comes from here on may be too late for this look
      const hasMissed = this.#hasMissed;
      if (!(await this.#toldUpTo(null)) || !hasMissed) return;
      this.#hasMissed = false;
      try {
        this.#tell((await this.#parts.read(WAITING_BOXES)).map(filled), []);
        await this.#tellKeys();
      } catch (error) {
        this.#hasMissed = true;
        throw error;
      }
    });
  }

  async #tellKeys(): Promise<void> {
    this.#tell(
      (await this.#parts.read(allKeys())).map((key) => ({ kind: "key.saved", key })),
      [],
    );
  }

  /** Tells what is in the log and has not been told: up to an id, or all of the others'. False: it could not be read. */
  async #toldUpTo(id: number | null): Promise<boolean> {
    try {
      while (id === null || this.#seen < id) {
        const events = await this.#parts.read(eventsAfter(this.#seen, [], EVENTS_MAX));
        const end = id ?? this.#own[0]?.after ?? Number.POSITIVE_INFINITY; // looked at after the read: see #own
        const others = events.filter((event) => event.id <= end);
        if (others.length > 0)
          this.#tell(
            others.flatMap(changesOf),
            others.map((event) => event.id),
          );
        this.#seen = others.at(-1)?.id ?? this.#seen;
        if (others.length === EVENTS_MAX) continue;
        if (id !== null) this.#seen = Math.max(this.#seen, id);
        break;
      }
      return true;
    } catch (error) {
      this.#report(error);
      return false;
    }
  }

  #inLine(step: () => Promise<void>): Promise<void> {
    this.#line = this.#line.then(step).catch((error: unknown) => this.#report(error));
    return this.#line;
  }

  /** Of a database that is away the requests tell enough. */
  #report(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) this.#parts.onFault(error);
  }

  #tell(changes: readonly Change[], eventIds: readonly number[]): void {
    if (changes.length === 0) return;
    for (const listener of this.#listeners) {
      try {
        listener(changes, eventIds);
      } catch (error) {
        this.#parts.onFault(error);
      }
    }
  }
}

type NewsEvent = ReturnType<ReturnType<typeof eventsAfter>["shape"]>[number];

/** What another hub wrote, as far as the log tells of it. */
function changesOf(event: NewsEvent): readonly Change[] {
  const logged: Change = { kind: "event.logged", event };
  if (event.kind !== "message.sent" || event.nodeId === null) return [logged]; // of a broadcast the event itself tells
  return [logged, filled(event.nodeId)];
}

/** There may be something for this node. */
function filled(nodeId: string): Change {
  return { kind: "delivery.queued", messageId: "", toNode: nodeId, broadcast: false };
}
