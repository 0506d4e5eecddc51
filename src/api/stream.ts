/**
 * The event streams (docs/events.md): Server-Sent Events of the log. A stream is a cursor in the log, and loads nothing
 * more while its client does not read.
 */
import * as z from "zod/mini";
import { groupsNamed } from "../domain/task/facet/group.ts";
import type { LoggedEvent } from "../domain/event.ts";
import * as limit from "../domain/limits.ts";
import { queryOf } from "../http/exchange.ts";
import { KeepAlive, type SseStream, frame, openEventStream } from "../http/sse.ts";
import { must } from "../lib/assert.ts";
import type { Log } from "../lib/log.ts";
import { type Acquirable, TickQueue } from "../lib/semaphore.ts";
import { Slices } from "../lib/slices.ts";
import type { Feed, Gap, Selection } from "../service/feed.ts";
import type { StreamItem } from "../service/recent-events.ts";
import { type Call, type Endpoint, rawEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { checkActsFor } from "./auth.ts";
import { SharedSemaphore } from "./caller-shares.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { ignoredFieldsFinder, inputParser, withoutAbsent } from "./input.ts";
import { encodeEvent, encodeMessage } from "./response-schemas.ts";
import { optional } from "./about.ts";

const parseLastEventId = inputParser(() => z.catch(z.nullable(field.eventCursor()), null));

/**
 * Null for a new client, and for what is not an event id. One past the end of the log comes from before a backup was
 * restored.
 */
export function lastEventIdOf({ headers }: Request): number | null {
  return parseLastEventId(headers.get("last-event-id"));
}

const NODE_STREAM_QUERY = () => z.object({ node_id: field.nodeId() });

export const eventFilter = () => ({
  kind: optional(field.eventKinds(), "Only events of this kind, or of several, comma-separated."),
  task_id: optional(field.id(), "Only events about this task."),
  node_id: optional(field.nodeId(), "Only events about this node."),
  group: optional(field.group(), "Only events of the tasks of this group, and the end of the group."),
  tag: optional(field.tag(), "Only events of tasks with this tag."),
});

type Filter = z.infer<z.ZodMiniObject<ReturnType<typeof eventFilter>>>;

export function filterOf({ group, ...filter }: Filter, boundTo: string | null) {
  const { kind: kinds = [], task_id: taskId = null, node_id: nodeId = null, tag = null } = filter;
  return { kinds, taskId, nodeId, groups: groupsNamed(group, boundTo), tag };
}

export const LOG_STREAM_QUERY = () =>
  z.object({
    since: optional(
      field.eventCursor(),
      "The id of the last event read, if no `Last-Event-ID` is sent; 0: from the beginning; if left out, only new events.",
    ),
    ...eventFilter(),
  });

const parseNode = inputParser(NODE_STREAM_QUERY);
const parseFilter = inputParser(LOG_STREAM_QUERY);
const ignoredOfNode = ignoredFieldsFinder(NODE_STREAM_QUERY);
const ignoredOfLog = ignoredFieldsFinder(LOG_STREAM_QUERY);

/** As JSON, which has no line break of the caller's. */
export function ignoredText(names: readonly string[]): StreamText {
  const text = names.length === 0 ? "" : `: ${JSON.stringify({ ignored: names })}\n\n`;
  return { text, isLast: false };
}

const RETRY = "retry: 3000\n\n";

export const NODE_STREAM = {
  method: "GET",
  path: "/api/v1/agent/sse",
  auth: "secret",
  summary: "Streams a node's messages and its tasks' events (Server-Sent Events)",
  showsMessages: true,
  rejections: ["node_not_found", "key_bound_to_other_node"],
} as const;

export const LOG_STREAM = {
  method: "GET",
  path: "/api/v1/events/stream",
  auth: "public",
  summary: "Streams the event log (Server-Sent Events)",
  rejections: [],
} as const;

type Shared = {
  readonly wakeUps: Slices;
  /** Of the streams that are far behind, one reads in each tick. */
  readonly catchUps: TickQueue;
  readonly frames: Frames;
  readonly log: Log;
};

export type StreamText = { readonly text: string; readonly isLast: boolean };

export type Opening = {
  readonly selection: Selection;
  readonly cursor: number;
  readonly gatherMs: number;
  readonly first?: StreamText;
  readonly endsWithLog?: boolean;
  /** Null: the item is not shown. Without it, as the event or message that it is. */
  readonly textOf?: (item: StreamItem) => Promise<StreamText | null>;
};

export type Follow = (stream: SseStream, held: Acquirable) => () => void;

export class EventStreams {
  readonly endpoints: readonly Endpoint[];
  readonly #feed: Feed;
  readonly #keepAlive = new KeepAlive();
  readonly #open = new Set<SseStream>();
  readonly #shared: Shared;
  readonly #held = new SharedSemaphore(limit.STREAM_BYTES_SHARES);
  readonly #limit = new ConcurrencyLimit(limit.STREAM_SHARES, "streams are open");
  #closed = false;

  constructor(feed: Feed, log: Log) {
    this.#feed = feed;
    this.#shared = {
      wakeUps: new Slices(limit.WAKE_UPS_TOGETHER),
      catchUps: new TickQueue(),
      frames: new Frames(),
      log,
    };
    this.endpoints = [
      rawEndpoint({ ...NODE_STREAM, handle: (call) => this.#answerNode(call) }),
      rawEndpoint({ ...LOG_STREAM, handle: (call) => this.#answerLog(call) }),
    ];
  }

  get size(): number {
    return this.#open.size;
  }

  close(): void {
    this.#closed = true;
    for (const stream of this.#open) stream.close();
  }

  async #answerNode(call: Call): Promise<Response> {
    const query = queryOf(call.exchange.request);
    const { node_id: nodeId } = parseNode(query);
    checkActsFor(call, nodeId);
    await call.services.nodes.get(nodeId);
    const cursor = await this.#cursor(call, null);
    const first = ignoredText(ignoredOfNode(query));
    return this.open(call, { selection: this.#feed.ofNode(nodeId), cursor, gatherMs: 0, first });
  }

  async #answerLog(call: Call): Promise<Response> {
    const query = withoutAbsent(queryOf(call.exchange.request), "");
    const { since = null, ...filter } = parseFilter(query);
    const selection = this.#feed.ofLog(filterOf(filter, call.boundTo));
    const cursor = await this.#cursor(call, since);
    const first = ignoredText(ignoredOfLog(query));
    return this.open(call, { selection, cursor, gatherMs: limit.LOG_STREAM_GATHER_MS, first });
  }

  async #cursor({ exchange }: Call, since: number | null): Promise<number> {
    const lastId = await this.#feed.lastId();
    return Math.min(lastEventIdOf(exchange.request) ?? since ?? lastId, lastId);
  }

  open(call: Call, opening: Opening): Response {
    return this.begin(call, opening.first, (stream, held) => {
      const eventStream = new EventStream(opening, stream, held, this.#shared);
      const unsubscribe = opening.selection.subscribe((eventId) => eventStream.notify(eventId));
      eventStream.start();
      return unsubscribe;
    });
  }

  begin(call: Call, first: StreamText | undefined, follow: Follow): Response {
    const { exchange } = call;
    const share = call.share();
    const place = this.#limit.enter(share);
    const held = this.#held.of(share);
    let unwatchKey = (): void => {};
    let unfollow = (): void => {};
    const { response, stream } = openEventStream(exchange.request, exchange.server, {
      maxBacklogBytes: limit.STREAM_BACKLOG_MAX_BYTES,
      keepAlive: this.#keepAlive,
      isContended: () => held.contended,
      onClose: () => {
        place[Symbol.dispose]();
        unwatchKey();
        unfollow();
        this.#open.delete(stream);
      },
    });
    this.#open.add(stream);
    unwatchKey = call.watchKey(() => stream.cut());
    stream.send(RETRY + (first?.text ?? ""));
    unfollow = follow(stream, held);
    // A HEAD request gets the headers only.
    const isWhole = first?.isLast === true || exchange.request.method === "HEAD";
    if (this.#closed || isWhole) stream.close();
    return response;
  }
}

/**
 * A stream either catches up (reads the log from its cursor) or follows (reads the events it is notified of). With more
 * notifications pending than it keeps, because the client is slow, it catches up again.
 */
class EventStream {
  readonly #selection: Selection;
  readonly #gatherMs: number;
  readonly #textOf: Opening["textOf"];
  readonly #endsWithLog: boolean;
  readonly #stream: SseStream;
  readonly #held: Acquirable;
  readonly #shared: Shared;
  #cursor: number;
  #catchingUp = true;
  #pending: number[] = [];
  /** Pending ids were dropped since it last began to read the log. */
  #droppedIds = false;
  #reading = false;
  #gathering = false;

  constructor(opening: Opening, stream: SseStream, held: Acquirable, shared: Shared) {
    this.#selection = opening.selection;
    this.#gatherMs = opening.gatherMs;
    this.#textOf = opening.textOf;
    this.#endsWithLog = opening.endsWithLog ?? false;
    this.#cursor = opening.cursor;
    this.#stream = stream;
    this.#held = held;
    this.#shared = shared;
  }

  start(): void {
    this.#readLater();
  }

  /**
   * The store has not ended its notification, so the event is read later. It may have been read from the log already,
   * if another hub committed it.
   */
  notify(eventId: number): void {
    if (eventId <= this.#cursor) return;
    this.#pending.push(eventId);
    if (this.#pending.length > limit.STREAM_PENDING_MAX) this.#catchUpAgain();
    this.#readLater();
  }

  #catchUpAgain(): void {
    this.#catchingUp = true;
    this.#droppedIds = true;
    this.#pending = [];
  }

  #readLater(): void {
    if (this.#reading || this.#gathering) return;
    this.#reading = true;
    this.#shared.wakeUps.run(() => {
      if (this.#gatherMs === 0 && !this.#catchingUp && !this.#textOf) this.#sendRecent();
      if (this.#catchingUp || this.#pending.length > 0) void this.#read();
      else this.#reading = false;
    });
  }

  #gather(): void {
    this.#gathering = true;
    setTimeout(() => {
      this.#gathering = false;
      if (this.#catchingUp || this.#pending.length > 0) this.#readLater();
    }, this.#gatherMs);
  }

  async #read(): Promise<void> {
    try {
      while (!this.#stream.closed && (this.#catchingUp || this.#pending.length > 0)) {
        if (this.#catchingUp) await this.#sendFromLog();
        else await this.#sendPending();
        if (this.#gatherMs > 0 && this.#pending.length < limit.STREAM_BATCH && !this.#catchingUp) break;
      }
    } catch (error) {
      this.#shared.log.error("stream failed", { cause: String(error) });
      this.#stream.close(); // the client reconnects with Last-Event-ID
    } finally {
      this.#reading = false;
    }
    if (this.#gatherMs > 0 && !this.#stream.closed) this.#gather();
  }

  /**
   * From memory, without a query and without waiting. It stops at an event that is not in memory, and when the client
   * or the memory for slow clients is behind.
   */
  #sendRecent(): void {
    const held = this.#held;
    let count = 0;
    for (const id of this.#pending) {
      const item = this.#selection.recentItem(id);
      if (item === undefined || this.#stream.backlogBytes > 0) break;
      if (item !== null) {
        if (!held.tryAcquire(limit.CONTENT_MAX_BYTES)) break;
        this.#give(item);
        held.release(limit.CONTENT_MAX_BYTES);
      }
      this.#cursor = Math.max(this.#cursor, id);
      count++;
    }
    this.#pending.splice(0, count);
  }

  async #sendFromLog(): Promise<void> {
    this.#droppedIds = false;
    const { events, cursor, atEnd, gap } = await this.#selection.catchUp(this.#cursor, limit.STREAM_BATCH);
    if (gap !== null) this.#stream.send(framedGap(gap));
    if (!(await this.#send(events))) return;
    this.#cursor = cursor;
    if (atEnd && !this.#droppedIds) {
      // So the pending ids are complete.
      this.#pending = this.#pending.filter((id) => id > cursor);
      this.#catchingUp = false;
      if (this.#endsWithLog) this.#stream.close();
    } else {
      await this.#shared.catchUps.next(); // catching up may take many steps: lets other work in between
    }
  }

  async #sendPending(): Promise<void> {
    const ids = this.#pending.splice(0, limit.STREAM_BATCH);
    const lastId = must(ids.at(-1), "a stream sends what is pending");
    if (await this.#send(await this.#selection.eventsById(ids)))
      this.#cursor = Math.max(this.#cursor, lastId);
  }

  /** One at a time: so a slow client never exceeds its backlog. */
  async #send(events: readonly LoggedEvent[]): Promise<boolean> {
    for (const event of events) {
      if (this.#stream.backlogBytes > 0 && !(await this.#stream.drained())) return false;
      if (!(await this.#sendOne(event))) return false;
      this.#cursor = event.id;
    }
    return true;
  }

  /** Loaded when there is room for the largest; counts until the socket has it. */
  async #sendOne(event: LoggedEvent): Promise<boolean> {
    const held = this.#held;
    await held.acquire(limit.CONTENT_MAX_BYTES);
    try {
      const item = this.#stream.closed ? null : await this.#selection.itemOf(event);
      if (item !== null && this.#textOf) await this.#giveText(item, this.#textOf);
      else if (item !== null) this.#give(item);
    } finally {
      held.release(limit.CONTENT_MAX_BYTES);
    }
    return !this.#stream.closed;
  }

  #give(item: StreamItem): void {
    this.#sendFramed(this.#shared.frames.of(item));
  }

  async #giveText(item: StreamItem, textOf: NonNullable<Opening["textOf"]>): Promise<void> {
    const shown = await textOf(item);
    if (shown === null) return;
    this.#sendFramed({ text: shown.text, bytes: Buffer.byteLength(shown.text) });
    if (shown.isLast) this.#stream.close();
  }

  #sendFramed({ text, bytes }: Framed): void {
    const held = this.#held;
    this.#stream.send(text);
    if (this.#stream.backlogBytes === 0) return;
    held.overdraw(bytes);
    void this.#stream.drained().then(() => held.release(bytes));
  }
}

/** Its id is the beginning of the log, so a client that resumes from it has no gap. */
function framedGap({ after, resumedAt }: Gap): string {
  const data = JSON.stringify({ after, resumed_at: resumedAt });
  return frame({ id: resumedAt - 1, event: "gap", data });
}

type Framed = { readonly text: string; readonly bytes: number };

class Frames {
  readonly #byItem = new WeakMap<StreamItem, Framed>();

  of(item: StreamItem): Framed {
    const known = this.#byItem.get(item);
    if (known) return known;
    const text = framed(item);
    const frame = { text, bytes: Buffer.byteLength(text) };
    this.#byItem.set(item, frame);
    return frame;
  }
}

function framed(item: StreamItem): string {
  if (item.kind === "event") {
    const { event } = item;
    return frame({ id: event.id, event: event.kind, data: JSON.stringify(encodeEvent(event)) });
  }
  return frame({ id: item.eventId, event: "message", data: JSON.stringify(encodeMessage(item.message)) });
}
