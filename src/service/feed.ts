/**
 * The event feed: reads the event log by cursor, serves long polls (which wait in waiters.ts and share reads by
 * single-flight), and notifies the subscribers (SSE streams) and blocking receives that a commit concerns.
 *
 * Correctness comes from cursors over stored rows; a wake-up only says when to read. So a reader may be woken in vain,
 * or late, but misses nothing and sees nothing twice.
 */
import type { Notified } from "../domain/change.ts";
import {
  type EventData,
  type EventKind,
  type LoggedEvent,
  type NewEvent,
  creatorOf,
  isBroadcast,
  isTaskEvent,
  senderOf,
  TASK_EVENT_KINDS,
} from "../domain/event.ts";
import { EVENTS_MAX, EVENTS_SCANNED_MAX } from "../domain/limits.ts";
import { Rejection, taskNotFound } from "../domain/decision.ts";
import type { Task, TaskState } from "../domain/model.ts";
import { isFinished } from "../domain/task/state.ts";
import { must } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import { deliveryOf, messageById } from "../store/sql/messages.ts";
import {
  type EventFilter,
  type LogWindow,
  eventsAfter,
  eventsById,
  eventsIn,
  firstEventId,
  lastEventId,
  newestEvents,
  nodeEventsIn,
  nthEventOfTask,
} from "../store/sql/events.ts";
import { taskById, taskStates } from "../store/sql/tasks.ts";
import type { Origin, Query, Store } from "../store/store.ts";
import { untilFound } from "./blocked-calls.ts";
import { type RecentEvent, type StreamItem, RecentEvents } from "./recent-events.ts";
import { Waiters } from "./waiters.ts";
import { UseCases } from "./use-cases.ts";

/** The next batch comes after `cursor`. */
export type EventBatch = { readonly events: readonly LoggedEvent[]; readonly cursor: number };

/** The first event that is kept has the id `resumedAt`. */
export type Gap = { readonly after: number; readonly resumedAt: number };

/** `atEnd`: the log ends at `cursor` at this moment. */
type LogPart = EventBatch & { readonly atEnd: boolean; readonly gap: Gap | null };

/** `done`: all, or any, have ended, as the caller asked. */
type TaskEnds = { readonly tasks: readonly TaskState[]; readonly done: boolean };

type Subscriber = (eventId: number) => void;

/** catchUp() reads the log, subscribe() notifies of what comes. */
export type Selection = {
  readonly catchUp: (since: number, limit: number) => Promise<LogPart>;
  readonly eventsById: (ids: readonly number[]) => Promise<readonly LoggedEvent[]>;
  readonly itemOf: (event: LoggedEvent) => Promise<StreamItem | null>;
  /** From memory; undefined when the store must be asked. */
  readonly recentItem: (eventId: number) => StreamItem | null | undefined;
  readonly subscribe: (subscriber: Subscriber) => () => void;
};

type Follower = { readonly filter: EventFilter; readonly notify: Subscriber };

/** All polls wait in one queue, because each waits for any task event. No task has this id. */
const POLLS = "";
/** No task has this id. */
const ANY_TASK = "";
/** No task has such an id. */
const queueOf = (group: string): string => `group ${group}`;
/** What may end a wait for a task: for its end (through A2A after its review), or for a change of its questions. */
const TASK_NEWS: ReadonlySet<EventKind> = new Set([
  "task.completed",
  "task.review_passed",
  "task.failed",
  "task.deleted",
  "task.asked",
  "task.answered",
  "task.question_timed_out",
]);
/** About a millisecond. */
const LOG_WINDOW = 2_000;

export class Feed extends UseCases {
  readonly receivers = new Waiters();
  readonly #readers = new Waiters();
  /** By cursor (single-flight); emptied by each commit that logs a task event. */
  readonly #inFlight = new Map<number, Promise<EventBatch>>();
  /** By node_id. */
  readonly #subscribers = new Map<string, Set<Subscriber>>();
  /** By the task that they show; those of any task under ANY_TASK. */
  readonly #followers = new Map<string, Set<Follower>>();
  readonly #recent = new RecentEvents();

  constructor(store: Store, clock: Clock) {
    super(store, clock);
    store.onDecision((changes) => {
      for (const change of changes)
        if (change.kind === "delivery.queued") this.receivers.wakeOne({ key: change.toNode });
    });
    store.onCommit((changes, eventIds, origin) => this.#notify(changes, eventIds, origin));
  }

  /**
   * `since` null: the newest. A cursor past the end of the log is from before a backup was restored: the batch is
   * empty, and its cursor is the end of the log.
   */
  async events(since: number | null, filter: EventFilter, limit: number): Promise<EventBatch> {
    const { taskId, nodeId, groups, tag } = filter;
    const isScan = taskId !== null || nodeId !== null || groups !== null || tag !== null;
    if (isScan) return this.#scan(since, filter, limit);
    const { kinds } = filter;
    if (since === null) {
      const lastId = await this.lastId(); // first, so that the cursor does not skip what is committed meanwhile
      const events = await this.store.read(newestEvents(kinds, limit));
      return { events, cursor: events.at(-1)?.id ?? lastId };
    }
    const events = await this.store.read(eventsAfter(since, kinds, limit));
    return { events, cursor: events.at(-1)?.id ?? Math.min(since, await this.lastId()) };
  }

  /** The end of the events before a time. */
  idBefore(time: number): Promise<number> {
    return idBefore(this.store, time);
  }

  /**
   * Among the next EVENTS_SCANNED_MAX: of the task, which an index finds, or else of the whole log. The cursor goes
   * past all that were looked at.
   */
  async #scan(since: number | null, filter: EventFilter, limit: number): Promise<EventBatch> {
    const lastId = await this.lastId();
    if (since === null) {
      const after = await this.#scanEnd(filter, lastId, true);
      const events = await this.store.read(eventsIn({ after, upTo: lastId }, filter, limit, true));
      return { events, cursor: lastId };
    }
    const after = Math.max(Math.min(since, lastId), (await this.store.read(firstEventId())) - 1); // skips what was pruned
    const upTo = Math.min(await this.#scanEnd(filter, after, false), lastId);
    const events = await this.store.read(eventsIn({ after, upTo }, filter, limit, false));
    return { events, cursor: events.length < limit ? upTo : (events.at(-1)?.id ?? after) };
  }

  /** On the way to the end of the log or, with `newest`, to its beginning. */
  async #scanEnd({ taskId }: EventFilter, from: number, newest: boolean): Promise<number> {
    if (taskId === null) return newest ? from - EVENTS_SCANNED_MAX : from + EVENTS_SCANNED_MAX;
    const nth = await this.store.read(nthEventOfTask(taskId, from, EVENTS_SCANNED_MAX, newest));
    if (newest) return nth === null ? 0 : nth - 1;
    return nth ?? Number.POSITIVE_INFINITY;
  }

  /**
   * `since` null: from now. A cursor past the end of the log is answered at once, because its next event may already
   * exist.
   * @throws {WaitAborted} when the caller is gone
   */
  async poll(since: number | null, waitMs: number, signal: AbortSignal): Promise<EventBatch> {
    const lastId = await this.lastId();
    const cursor = since ?? lastId;
    if (cursor > lastId) return { events: [], cursor: lastId };
    const read = async (): Promise<EventBatch | null> => {
      const batch = await this.taskEvents(cursor);
      return batch.events.length > 0 ? batch : null;
    };
    const batch = await untilFound(this.#readers.join(POLLS), read, { waitMs, signal }, this.clock);
    return batch ?? { events: [], cursor };
  }

  /** @throws {Rejection} task_not_found */
  async task(taskId: string): Promise<Task> {
    const task = await this.store.read(taskById(taskId));
    if (!task) throw new Rejection(taskNotFound(taskId));
    return task;
  }

  /**
   * In the order of `taskIds`, once all or any of them have ended, or when the wait is over.
   * @throws {Rejection} task_not_found for the first that there is not, also when it is deleted meanwhile
   */
  async taskEnds(
    taskIds: readonly string[],
    until: "all" | "any",
    waitMs: number,
    signal: AbortSignal,
  ): Promise<TaskEnds> {
    const ids = [...new Set(taskIds)];
    const read = async (): Promise<TaskEnds> => {
      const found = await this.store.read(taskStates(ids));
      const byId = new Map(found.map((state) => [state.taskId, state]));
      const tasks = ids.map((taskId) => {
        const state = byId.get(taskId);
        if (!state) throw new Rejection(taskNotFound(taskId));
        return state;
      });
      const done = until === "all" ? tasks.every(isFinished) : tasks.some(isFinished);
      return { tasks, done };
    };
    const find = async (): Promise<TaskEnds | null> => {
      const ends = await read();
      return ends.done ? ends : null;
    };
    const found = await untilFound(this.#readers.join(...ids), find, { waitMs, signal }, this.clock);
    return found ?? read();
  }

  /**
   * Its current state when the wait is over.
   * @throws {Rejection} task_not_found, also when it is deleted meanwhile
   */
  async taskEnd(taskId: string, waitMs: number, signal: AbortSignal): Promise<Task> {
    const read = async (): Promise<Task | null> => {
      const task = await this.task(taskId);
      return task.status === "completed" || task.status === "failed" ? task : null;
    };
    const ended = await untilFound(this.#readers.join(taskId), read, { waitMs, signal }, this.clock);
    return ended ?? this.task(taskId);
  }

  /** After each event that TASK_NEWS names of this task. Null when the wait is over. */
  untilNews<T>(
    taskId: string,
    find: () => Promise<T | null>,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<T | null> {
    return untilFound(this.#readers.join(taskId), find, { waitMs, signal }, this.clock);
  }

  /** After each end of the group. Null when the wait is over. */
  untilGroupEnds<T>(
    group: string,
    find: () => Promise<T | null>,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<T | null> {
    return untilFound(this.#readers.join(queueOf(group)), find, { waitMs, signal }, this.clock);
  }

  /** Polls on the same cursor share one query: a commit wakes them together. */
  taskEvents(cursor: number): Promise<EventBatch> {
    const inFlight = this.#inFlight.get(cursor);
    if (inFlight) return inFlight;
    const read = this.#readTaskEvents(cursor).finally(() => {
      if (this.#inFlight.get(cursor) === read) this.#inFlight.delete(cursor);
    });
    this.#inFlight.set(cursor, read);
    return read;
  }

  async #readTaskEvents(cursor: number): Promise<EventBatch> {
    const events = await this.store.read(eventsAfter(cursor, TASK_EVENT_KINDS, EVENTS_MAX));
    return { events, cursor: events.at(-1)?.id ?? cursor };
  }

  ofNode(nodeId: string): Selection {
    return new NodeSelection(this, nodeId);
  }

  ofLog(filter: EventFilter): Selection {
    return {
      catchUp: (since, limit) =>
        this.#catchUp(since, limit, (window) => eventsIn(window, filter, limit, false)),
      eventsById: (ids) => this.eventsById(ids),
      itemOf: async (event) => this.#recent.get(event.id)?.item ?? { kind: "event", event },
      recentItem: (eventId) => this.#recent.get(eventId)?.item,
      subscribe: (notify) => join(this.#followers, filter.taskId ?? ANY_TASK, { filter, notify }),
    };
  }

  /** The new cursor is past other nodes' events too. */
  catchUp(nodeId: string, since: number, limit: number): Promise<LogPart> {
    return this.#catchUp(since, limit, (window) => nodeEventsIn(nodeId, window, limit));
  }

  async #catchUp(
    since: number,
    limit: number,
    eventsOf: (window: LogWindow) => Query<readonly LoggedEvent[]>,
  ): Promise<LogPart> {
    const lastId = await this.lastId();
    const firstId = await this.store.read(firstEventId());
    const gap = since < firstId - 1 ? { after: since, resumedAt: firstId } : null;
    const after = Math.max(since, firstId - 1);
    const window = { after, upTo: Math.min(after + LOG_WINDOW, lastId) };
    const events = await this.store.read(eventsOf(window));
    const cursor = events.length < limit ? Math.max(since, window.upTo) : (events.at(-1)?.id ?? since);
    return { events, cursor, atEnd: cursor >= lastId, gap };
  }

  async eventsById(ids: readonly number[]): Promise<readonly LoggedEvent[]> {
    return this.#recent.all(ids) ?? (await this.store.read(eventsById(ids)));
  }

  /** Null for an event that it does not show, and for a message that was pruned. */
  async itemOf(event: LoggedEvent, nodeId: string): Promise<StreamItem | null> {
    const known = itemInMemory(event, nodeId, this.#recent.get(event.id));
    if (known !== undefined) return known;
    const messageId = String(event.data["message_id"]);
    if (isBroadcast(event) && !(await this.store.read(deliveryOf(messageId, nodeId)))) return null;
    const found = await this.store.read(messageById(messageId));
    return found && { kind: "message", eventId: event.id, message: found.message };
  }

  /** Undefined when the store must be asked. */
  recentItem(eventId: number, nodeId: string): StreamItem | null | undefined {
    const recent = this.#recent.get(eventId);
    return recent && itemInMemory(recent.item.event, nodeId, recent);
  }

  /**
   * In order, after its commit. The call comes from within the store's commit notification: read later. Returns the way
   * to unsubscribe.
   */
  subscribe(nodeId: string, subscriber: Subscriber): () => void {
    return join(this.#subscribers, nodeId, subscriber);
  }

  lastId(): Promise<number> {
    return this.store.read(lastEventId());
  }

  /** Now and from now on: the hub shuts down. */
  drain(): void {
    this.receivers.drain();
    this.#readers.drain();
  }

  get waiting(): number {
    return this.receivers.size + this.#readers.size;
  }

  #notify(changes: readonly Notified[], eventIds: readonly number[], origin: Origin): void {
    const hasStreams = this.#subscribers.size > 0 || this.#followers.size > 0;
    if (hasStreams) this.#recent.add(changes, eventIds);
    let hasTaskEvent = false;
    let logged = 0;
    for (const change of changes) {
      if (change.kind === "delivery.queued") {
        if (origin === "remote") this.receivers.wakeOne({ key: change.toNode }); // for an own one they were woken (onDecision)
      } else if (change.kind === "delivery.moved" && change.state === "waiting")
        this.receivers.wakeOne({ key: change.toNode });
      else if (change.kind === "event.logged") {
        const { event } = change;
        const eventId = must(eventIds[logged++], "each logged event has an id");
        if (hasStreams) this.#notifyStreams(event, eventId);
        if (isBroadcast(event)) this.receivers.wakeOneOfEach();
        hasTaskEvent ||= isTaskEvent(event.kind);
        if (event.taskId !== null && TASK_NEWS.has(event.kind)) this.#readers.wakeAll(event.taskId);
        if (event.kind === "group.ended") this.#readers.wakeAll(queueOf(String(event.data["group"])));
      }
    }
    if (!hasTaskEvent) return;
    this.#inFlight.clear(); // a read that began before the commit does not have its events
    this.#readers.wakeAll(POLLS);
  }

  #notifyStreams(event: NewEvent, eventId: number): void {
    const { nodeId, taskId } = event;
    const sender = senderOf(event) ?? creatorOf(event);
    if (isBroadcast(event))
      for (const subscribers of this.#subscribers.values()) notifyAll(subscribers, eventId);
    else if (nodeId !== null) notifyAll(this.#subscribers.get(nodeId), eventId);
    if (sender !== null && sender !== nodeId) notifyAll(this.#subscribers.get(sender), eventId);
    for (const name of taskId === null ? [ANY_TASK] : [ANY_TASK, taskId])
      for (const { filter, notify } of this.#followers.get(name) ?? [])
        if (passes(event, filter)) notify(eventId);
  }
}

/** A class, and not an object of functions, because there is one for each of many streams. */
class NodeSelection implements Selection {
  readonly #feed: Feed;
  readonly #nodeId: string;

  constructor(feed: Feed, nodeId: string) {
    this.#feed = feed;
    this.#nodeId = nodeId;
  }

  catchUp(since: number, limit: number): Promise<LogPart> {
    return this.#feed.catchUp(this.#nodeId, since, limit);
  }

  eventsById(ids: readonly number[]): Promise<readonly LoggedEvent[]> {
    return this.#feed.eventsById(ids);
  }

  itemOf(event: LoggedEvent): Promise<StreamItem | null> {
    return this.#feed.itemOf(event, this.#nodeId);
  }

  recentItem(eventId: number): StreamItem | null | undefined {
    return this.#feed.recentItem(eventId, this.#nodeId);
  }

  subscribe(subscriber: Subscriber): () => void {
    return this.#feed.subscribe(this.#nodeId, subscriber);
  }
}

function join<T>(groups: Map<string, Set<T>>, name: string, member: T): () => void {
  const group = groups.get(name) ?? new Set();
  groups.set(name, group.add(member));
  return () => {
    group.delete(member);
    if (group.size === 0 && groups.get(name) === group) groups.delete(name);
  };
}

/** Undefined when that takes a message or a delivery that is not in memory. */
function itemInMemory(
  event: LoggedEvent,
  nodeId: string,
  recent: RecentEvent | undefined,
): StreamItem | null | undefined {
  if (isTaskEvent(event.kind) || senderOf(event) === nodeId) return recent?.item ?? { kind: "event", event };
  if (event.kind !== "message.sent") return null;
  if (!recent?.sent) return undefined;
  return recent.sent.receivers.has(nodeId) ? recent.sent.item : null;
}

function tagsOf({ tags }: EventData): readonly string[] {
  return typeof tags === "string" ? tags.split(",") : [];
}

function passes({ kind, nodeId, taskId, data }: NewEvent, filter: EventFilter): boolean {
  return (
    (filter.kinds.length === 0 || filter.kinds.includes(kind)) &&
    (filter.nodeId === null || filter.nodeId === nodeId) &&
    (filter.taskId === null || filter.taskId === taskId) &&
    (filter.groups === null || filter.groups.some((group) => group === data["group"])) &&
    (filter.tag === null || tagsOf(data).includes(filter.tag))
  );
}

function notifyAll(subscribers: ReadonlySet<Subscriber> | undefined, eventId: number): void {
  for (const notify of subscribers ?? []) notify(eventId);
}

/** The id of the last event before a time. Where the clock was set back, of one of them. */
export async function idBefore(store: Store, time: number): Promise<number> {
  let before = (await store.read(firstEventId())) - 1;
  let upTo = await store.read(lastEventId());
  while (before < upTo) {
    const middle = Math.floor((before + upTo) / 2);
    const [next] = await store.read(eventsAfter(middle, [], 1));
    if (next === undefined || next.at >= time) upTo = middle;
    else before = next.id;
  }
  return before;
}
