/**
 * GET agent/sse (docs/events.md): Server-Sent Events of a node's messages, of the events of its tasks, and of what became
 * of the messages that it sent.
 *
 * A stream is a cursor in the event log: the events after it are sent in order, each once. While a client does not read,
 * the stream loads nothing more for it.
 */
import * as z from "zod/mini";
import type { LoggedEvent } from "../domain/event.ts";
import * as limit from "../domain/limits.ts";
import { queryOf } from "../http/exchange.ts";
import { KeepAlive, type SseStream, frame, openEventStream } from "../http/sse.ts";
import type { Log } from "../lib/log.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { Slices } from "../lib/slices.ts";
import type { Feed, Gap, StreamItem } from "../service/feed.ts";
import { type Call, type Endpoint, rawEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { checkActsFor } from "./auth.ts";
import { inputParser } from "./input.ts";
import { overloaded } from "./error-table.ts";
import { encodeEvent, encodeMessage } from "./response-schemas.ts";

/** The cursor of a client that reconnects; null for a new client, and for what is not an event id. */
const parseLastEventId = inputParser(() => z.catch(z.nullable(field.eventCursor()), null));

const parseQuery = inputParser(() => z.object({ node_id: field.nodeId() }));

/** Sent first: how long a client waits before it reconnects. */
const RETRY = "retry: 3000\n\n";

/** The endpoint without its handler, which needs the hub's open streams. */
export const STREAM = {
  method: "GET",
  path: "/api/v1/agent/sse",
  auth: "secret",
  summary: "Streams a node's messages and the events of its tasks (Server-Sent Events)",
  showsMessages: true,
  rejections: ["node_not_found", "key_bound_to_other_node"],
} as const;

/** What all streams have in common. */
type Shared = {
  /** Bytes held for streams that are read slowly. */
  readonly held: Semaphore;
  /** A broadcast is read for a few streams in each tick. */
  readonly wakeUps: Slices;
  readonly log: Log;
};

/** All open streams of the hub. */
export class EventStreams {
  readonly endpoint: Endpoint;
  readonly #feed: Feed;
  readonly #keepAlive = new KeepAlive();
  readonly #open = new Set<NodeStream>();
  readonly #shared: Shared;
  #closed = false;

  constructor(feed: Feed, log: Log) {
    this.#feed = feed;
    this.#shared = {
      held: new Semaphore(limit.STREAMS_HELD_MAX_BYTES),
      wakeUps: new Slices(limit.WAKE_UPS_TOGETHER),
      log,
    };
    this.endpoint = rawEndpoint({ ...STREAM, handle: (call) => this.#answer(call) });
  }

  /** How many streams are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Ends every stream; later ones end at once. */
  close(): void {
    this.#closed = true;
    for (const stream of this.#open) stream.close();
  }

  async #answer(call: Call): Promise<Response> {
    const { exchange, services } = call;
    const { node_id: nodeId } = parseQuery(queryOf(exchange.request));
    checkActsFor(call, nodeId);
    await services.nodes.get(nodeId);
    const lastId = await this.#feed.lastId();
    const cursor = Math.min(
      parseLastEventId(exchange.request.headers.get("last-event-id")) ?? lastId,
      lastId,
    ); // an id past the end of the log comes from before a backup was restored
    if (this.#open.size >= limit.STREAMS_MAX) throw overloaded("The hub has as many streams open as it can.");
    const { response, stream } = openEventStream(exchange.request, exchange.server, {
      maxBacklogBytes: limit.STREAM_BACKLOG_MAX_BYTES,
      keepAlive: this.#keepAlive,
      isContended: () => this.#shared.held.contended,
      onClose: () => {
        unwatchKey();
        unsubscribe();
        this.#open.delete(nodeStream);
      },
    });
    const nodeStream = new NodeStream(nodeId, cursor, stream, this.#feed, this.#shared);
    const unsubscribe = this.#feed.subscribe(nodeId, (eventId) => nodeStream.notify(eventId));
    this.#open.add(nodeStream);
    let unwatchKey = (): void => {};
    unwatchKey = call.watchKey(() => stream.cut());
    stream.send(RETRY);
    nodeStream.start();
    // A HEAD request gets the headers only.
    if (this.#closed || exchange.request.method === "HEAD") stream.close();
    return response;
  }
}

/**
 * One stream. It either catches up (reads the log from its cursor on) or follows (reads the events it is notified of).
 * When more notifications are pending than it keeps, because the client is slow, it catches up again.
 */
class NodeStream {
  readonly #nodeId: string;
  readonly #stream: SseStream;
  readonly #feed: Feed;
  readonly #held: Semaphore;
  readonly #wakeUps: Slices;
  readonly #log: Log;
  #cursor: number;
  #catchingUp = true;
  /** Ids of events that it was notified of and has not read yet. */
  #pending: number[] = [];
  /** Pending ids were dropped since it last began to read the log. */
  #droppedIds = false;
  #reading = false;

  constructor(nodeId: string, cursor: number, stream: SseStream, feed: Feed, { held, wakeUps, log }: Shared) {
    this.#nodeId = nodeId;
    this.#cursor = cursor;
    this.#stream = stream;
    this.#feed = feed;
    this.#held = held;
    this.#wakeUps = wakeUps;
    this.#log = log;
  }

  start(): void {
    this.#readLater();
  }

  /**
   * An event of the node was committed. The call comes from within the store's commit notification, so the event is read
   * later. For another hub's commit it may come after the event has been read from the log.
   */
  notify(eventId: number): void {
    if (eventId <= this.#cursor) return;
    this.#pending.push(eventId);
    if (this.#pending.length > limit.STREAM_PENDING_MAX) this.#catchUpAgain();
    this.#readLater();
  }

  close(): void {
    this.#stream.close();
  }

  #catchUpAgain(): void {
    this.#catchingUp = true;
    this.#droppedIds = true;
    this.#pending = [];
  }

  #readLater(): void {
    if (this.#reading) return;
    this.#reading = true;
    this.#wakeUps.run(() => void this.#read());
  }

  async #read(): Promise<void> {
    try {
      while (!this.#stream.closed && (this.#catchingUp || this.#pending.length > 0)) {
        if (this.#catchingUp) await this.#sendFromLog();
        else await this.#sendPending();
      }
    } catch (error) {
      this.#log.error("stream failed", { node_id: this.#nodeId, cause: String(error) });
      this.#stream.close(); // the client reconnects with Last-Event-ID
    } finally {
      this.#reading = false;
    }
  }

  async #sendFromLog(): Promise<void> {
    this.#droppedIds = false;
    const { events, cursor, atEnd, gap } = await this.#feed.catchUp(
      this.#nodeId,
      this.#cursor,
      limit.STREAM_BATCH,
    );
    if (gap !== null) this.#stream.send(framedGap(gap));
    if (!(await this.#send(events))) return;
    this.#cursor = cursor;
    if (atEnd && !this.#droppedIds) {
      // The stream has been notified of all that was committed since that read, so the pending ids are complete.
      this.#pending = this.#pending.filter((id) => id > cursor);
      this.#catchingUp = false;
    } else {
      await Bun.sleep(0); // catching up may take many steps: lets other work in between
    }
  }

  async #sendPending(): Promise<void> {
    const ids = this.#pending.splice(0, limit.STREAM_BATCH);
    if (await this.#send(await this.#feed.eventsById(ids)))
      this.#cursor = Math.max(this.#cursor, ids.at(-1) ?? 0);
  }

  /** Sends one event at a time and waits until the client has read it: so a slow client never exceeds its backlog. */
  async #send(events: readonly LoggedEvent[]): Promise<boolean> {
    for (const event of events) {
      if (this.#stream.backlogBytes > 0 && !(await this.#stream.drained())) return false;
      if (!(await this.#sendOne(event))) return false;
      this.#cursor = event.id;
    }
    return true;
  }

  /** Response backpressure: an event is loaded when there is room for the largest, and counts until the socket has it. */
  async #sendOne(event: LoggedEvent): Promise<boolean> {
    await this.#held.acquire(limit.CONTENT_MAX_BYTES);
    let bytes = 0;
    try {
      const item = this.#stream.closed ? null : await this.#feed.itemOf(event, this.#nodeId);
      if (item !== null) {
        const text = framed(item);
        bytes = Buffer.byteLength(text);
        this.#held.overdraw(bytes);
        this.#stream.send(text);
      }
    } finally {
      this.#held.release(limit.CONTENT_MAX_BYTES);
    }
    if (this.#stream.backlogBytes === 0) this.#held.release(bytes);
    else void this.#stream.drained().then(() => this.#held.release(bytes));
    return !this.#stream.closed;
  }
}

/** Its id is where the log begins: a client that comes back from here has no gap. */
function framedGap({ after, resumedAt }: Gap): string {
  const data = JSON.stringify({ after, resumed_at: resumedAt });
  return frame({ id: resumedAt - 1, event: "gap", data });
}

function framed(item: StreamItem): string {
  if (item.kind === "event") {
    const { event } = item;
    return frame({ id: event.id, event: event.kind, data: JSON.stringify(encodeEvent(event)) });
  }
  return frame({ id: item.eventId, event: "message", data: JSON.stringify(encodeMessage(item.message)) });
}
