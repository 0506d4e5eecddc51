/**
 * The feed: reading the event log by cursor, and waking who follows it.
 *
 * Correctness comes from the cursors over stored rows; a wake-up only says when to look. So a reader may be woken for
 * nothing, or late, but misses nothing and sees nothing twice.
 */
import type { Change } from "../domain/change.ts";
import { type EventKind, type LoggedEvent, TASK_EVENT_KINDS, isTaskEvent } from "../domain/event.ts";
import { EVENTS_MAX } from "../domain/limits.ts";
import type { Message } from "../domain/model.ts";
import type { Clock } from "../lib/clock.ts";
import { messageById } from "../store/sql/messages.ts";
import {
  eventsAfter,
  eventsById,
  firstEventId,
  lastEventId,
  newestEvents,
  nodeEventsIn,
} from "../store/sql/events.ts";
import type { Store } from "../store/store.ts";
import { Waiters } from "./wait-queue.ts";

/** Events, oldest first, and the id from which to go on. */
export type EventBatch = { readonly events: readonly LoggedEvent[]; readonly cursor: number };

/** One piece of a node's stream: an event of its tasks, or a message with its content. */
export type StreamItem =
  | { readonly kind: "task"; readonly event: LoggedEvent }
  | { readonly kind: "message"; readonly eventId: number; readonly message: Message };

/** A part of the log of a node, where to go on, and whether there is nothing after it at this moment. */
export type LogPart = EventBatch & { readonly atEnd: boolean };

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
  /** Looks for task events that are under way, by cursor, since the last commit that logged one. */
  readonly #looks = new Map<number, Promise<EventBatch>>();
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
      const lastId = await this.lastId(); // first: of what is committed meanwhile the cursor must not be past
      const events = await this.#store.read(newestEvents(kind, limit));
      return { events, cursor: events.at(-1)?.id ?? lastId };
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
        const batch = await this.#lookForTasks(cursor);
        if (batch.events.length > 0) return batch;
        const outcome = await waiter.wait(deadline - this.#clock.steady(), signal);
        if (outcome !== "woken") return { events: [], cursor };
      }
    } finally {
      waiter.leave();
    }
  }

  /** Those who are woken together and wait from one cursor, as all do who were answered together, look once. */
  #lookForTasks(cursor: number): Promise<EventBatch> {
    const under = this.#looks.get(cursor);
    if (under) return under;
    const look = this.#readTasks(cursor).finally(() => {
      if (this.#looks.get(cursor) === look) this.#looks.delete(cursor);
    });
    this.#looks.set(cursor, look);
    return look;
  }

  async #readTasks(cursor: number): Promise<EventBatch> {
    const events = await this.#store.read(eventsAfter(cursor, TASK_EVENT_KINDS, EVENTS_MAX));
    return { events, cursor: events.at(-1)?.id ?? cursor };
  }

  /** The next part of a node's log after a cursor; `cursor` moves past what is not the node's. */
  async catchUp(nodeId: string, since: number, limit: number): Promise<LogPart> {
    const lastId = await this.lastId();
    const after = Math.max(since, (await this.#store.read(firstEventId())) - 1); // what is pruned need not be walked
    const window = { after, upTo: Math.min(after + LOG_WINDOW, lastId) };
    const events = await this.#store.read(nodeEventsIn(nodeId, window, limit));
    const cursor = events.length < limit ? Math.max(since, window.upTo) : (events.at(-1)?.id ?? since);
    return { events, cursor, atEnd: cursor >= lastId };
  }

  /** Certain events of a node's log, by the ids that its follower was told. */
  eventsById(ids: readonly number[]): Promise<readonly LoggedEvent[]> {
    return this.#store.read(eventsById(ids));
  }

  /** What a stream shows of an event; null for what it does not show, or for a message that is past its time. */
  async itemOf(event: LoggedEvent): Promise<StreamItem | null> {
    if (isTaskEvent(event.kind)) return { kind: "task", event };
    if (event.kind !== "message.sent") return null;
    const found = await this.#store.read(messageById(String(event.data["message_id"])));
    return found && { kind: "message", eventId: event.id, message: found.message };
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
    if (!tasks) return;
    this.#looks.clear(); // what was read before does not have it
    this.#tasks.wakeAll(EVERYONE);
  }
}
