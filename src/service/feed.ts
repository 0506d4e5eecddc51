/**
 * The feed: reading the event log by cursor, and waking who follows it.
 *
 * Correctness comes from the cursors over stored rows; a wake-up only says when to look. So a reader may be woken for
 * nothing, or late, but misses nothing and sees nothing twice.
 */
import type { Change } from "../domain/change.ts";
import { type EventKind, type LoggedEvent, TASK_EVENT_KINDS, isTaskEvent } from "../domain/event.ts";
import { EVENTS_MAX } from "../domain/limits.ts";
import type { Message } from "../domain/message.ts";
import type { Clock } from "../lib/clock.ts";
import { messagesById } from "../store/mail-queries.ts";
import {
  eventsAfter,
  eventsById,
  firstEventId,
  lastEventId,
  newestEvents,
  nodeEventsIn,
} from "../store/queries.ts";
import type { Store } from "../store/store.ts";
import { Waiters } from "./waiters.ts";

/** Events, oldest first, and the id from which to go on. */
export type EventBatch = { readonly events: readonly LoggedEvent[]; readonly cursor: number };

/** One piece of a node's stream: an event of its tasks, or a message with its content. */
export type StreamItem =
  | { readonly kind: "task"; readonly event: LoggedEvent }
  | { readonly kind: "message"; readonly eventId: number; readonly message: Message };

/** A part of a node's stream, and where to go on. */
export type StreamBatch = { readonly items: readonly StreamItem[]; readonly cursor: number };

export type Follower = (eventId: number) => void;

const EVERYONE = "";
const NOBODY: readonly Follower[] = [];
/** How much of the log one step of catching up looks through: a millisecond's worth. */
const LOG_WINDOW = 2_000;

export class Feed {
  /** Who waits for a mailbox, by node_id: blocked receives. */
  readonly mail = new Waiters();
  /** Who waits for task events: polls. */
  readonly #tasks = new Waiters();
  /** Who follows a node, by node_id: streams. */
  readonly #followers = new Map<string, Set<Follower>>();
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    store.onCommit((changes, eventIds) => this.#wake(changes, eventIds));
  }

  /**
   * `since` exclusive; null gives the newest. A cursor beyond the log is one from before a backup was restored: nothing
   * comes after it, and the answer's cursor is where the log ends, so that whoever goes on from there misses nothing more.
   */
  async events(since: number | null, kind: EventKind | null, limit: number): Promise<EventBatch> {
    if (since === null) {
      const events = await this.#store.read(newestEvents(kind, limit));
      return { events, cursor: events.at(-1)?.id ?? (await this.lastId()) };
    }
    const events = await this.#store.read(eventsAfter(since, kind === null ? [] : [kind], limit));
    return { events, cursor: events.at(-1)?.id ?? Math.min(since, await this.lastId()) };
  }

  /**
   * Task events after `since` (null: from now), at once if there are any, else when the first comes. A cursor beyond the
   * log is answered at once, like by `events`: what it waits for may have come and gone by then.
   */
  async poll(since: number | null, waitMs: number, signal: AbortSignal): Promise<EventBatch> {
    const lastId = await this.lastId();
    const cursor = since ?? lastId;
    if (cursor > lastId) return { events: [], cursor: lastId };
    const deadline = this.#clock.steady() + waitMs;
    const waiter = this.#tasks.join(EVERYONE);
    try {
      for (;;) {
        const events = await this.#store.read(eventsAfter(cursor, TASK_EVENT_KINDS, EVENTS_MAX));
        const last = events.at(-1);
        if (last) return { events, cursor: last.id };
        const outcome = await waiter.wait(deadline - this.#clock.steady(), signal);
        if (outcome !== "woken") return { events: [], cursor };
      }
    } finally {
      waiter.leave();
    }
  }

  /**
   * The next part of a node's stream after a cursor, read from the log. `cursor` moves past what the stream does not
   * show; `atEnd` says that there is nothing after it at this moment.
   */
  async catchUp(nodeId: string, since: number, limit: number): Promise<StreamBatch & { atEnd: boolean }> {
    const lastId = await this.lastId();
    const after = Math.max(since, (await this.#store.read(firstEventId())) - 1); // what is pruned need not be walked
    const window = { after, upTo: Math.min(after + LOG_WINDOW, lastId) };
    const events = await this.#store.read(nodeEventsIn(nodeId, window, limit));
    const cursor = events.length < limit ? Math.max(since, window.upTo) : (events.at(-1)?.id ?? since);
    return { items: await this.#itemsOf(events), cursor, atEnd: cursor >= lastId };
  }

  /** Certain events of a node's stream, by the ids that its follower was told. */
  async itemsById(ids: readonly number[]): Promise<readonly StreamItem[]> {
    return this.#itemsOf(await this.#store.read(eventsById(ids)));
  }

  async #itemsOf(events: readonly LoggedEvent[]): Promise<readonly StreamItem[]> {
    const sent = events.filter((event) => event.kind === "message.sent");
    const messages = sent.length === 0 ? [] : await this.#store.read(messagesById(sent.map(messageIdOf)));
    const byId = new Map(messages.map((message) => [message.messageId, message]));
    return events.flatMap((event): StreamItem[] => {
      if (isTaskEvent(event.kind)) return [{ kind: "task", event }];
      const message = event.kind === "message.sent" ? byId.get(messageIdOf(event)) : undefined;
      return message ? [{ kind: "message", eventId: event.id, message }] : [];
    });
  }

  /**
   * Tells a follower the id of each event of a node, in order, after its commit. Called in the middle of the news of a
   * commit: a follower reads afterwards. Returns what ends it.
   */
  follow(nodeId: string, follower: Follower): () => void {
    const followers = this.#followers.get(nodeId) ?? new Set();
    this.#followers.set(nodeId, followers.add(follower));
    return () => {
      followers.delete(follower);
      if (followers.size === 0 && this.#followers.get(nodeId) === followers) this.#followers.delete(nodeId);
    };
  }

  lastId(): Promise<number> {
    return this.#store.read(lastEventId());
  }

  /** Everyone who waits gets an empty answer, now and from now on. */
  drain(): void {
    this.mail.drain();
    this.#tasks.drain();
  }

  /** How many calls wait, over all kinds. */
  get waiting(): number {
    return this.mail.size + this.#tasks.size;
  }

  #wake(changes: readonly Change[], eventIds: readonly number[]): void {
    let tasks = false;
    let logged = 0;
    for (const change of changes) {
      if (change.kind === "delivery.queued") this.mail.wakeOne(change.toNode);
      else if (change.kind === "delivery.moved" && change.state === "waiting")
        this.mail.wakeOne(change.toNode);
      else if (change.kind === "event.logged") {
        const { kind, nodeId } = change.event;
        const eventId = eventIds[logged++] ?? 0;
        if (nodeId !== null) for (const tell of this.#followers.get(nodeId) ?? NOBODY) tell(eventId);
        tasks ||= isTaskEvent(kind);
      }
    }
    if (tasks) this.#tasks.wakeAll(EVERYONE);
  }
}

function messageIdOf(event: LoggedEvent): string {
  return String(event.data["message_id"]);
}
