/**
 * GET agent/sse (specification 6, decisions.md Events): a node's messages and the events of its tasks, as they come.
 *
 * A stream is a cursor in the event log: what comes after it is sent, in order, once. A client that does not take what
 * it is sent is not read for any further until it does.
 */
import * as z from "zod/mini";
import type { LoggedEvent } from "../domain/event.ts";
import * as limit from "../domain/limits.ts";
import { queryOf } from "../http/exchange.ts";
import { Heartbeats, type SseStream, frame, openEventStream } from "../http/sse.ts";
import type { Log } from "../lib/log.ts";
import { Semaphore } from "../lib/semaphore.ts";
import type { Feed, StreamItem } from "../service/feed.ts";
import { type Call, type Endpoint, rawEndpoint } from "./endpoint.ts";
import * as field from "./fields.ts";
import { checkActsFor } from "./auth.ts";
import { inputParser } from "./input.ts";
import { overloaded } from "./error-table.ts";
import { encodeEvent, encodeMessage } from "./shapes.ts";

/** Where a client that comes back goes on; null for a new one, or for what is no id. */
const parseLastEventId = inputParser(() => z.catch(z.nullable(field.eventCursor()), null));

const parseQuery = inputParser(() => z.object({ node_id: field.nodeId() }));

/** Sent first: how long a client waits before it comes back after a break. */
const RETRY = "retry: 3000\n\n";

/** All open streams of the hub. */
export class StreamRoom {
  readonly endpoint: Endpoint;
  readonly #feed: Feed;
  readonly #log: Log;
  readonly #heartbeats = new Heartbeats();
  readonly #open = new Set<NodeStream>();
  /** Bytes held for streams that are read slowly. */
  readonly #held = new Semaphore(limit.STREAMS_HELD_MAX_BYTES);
  #closed = false;

  constructor(feed: Feed, log: Log) {
    this.#feed = feed;
    this.#log = log;
    this.endpoint = rawEndpoint({
      method: "GET",
      path: "/api/v1/agent/sse",
      auth: "secret",
      summary: "Streams a node's messages and the events of its tasks (Server-Sent Events)",
      rejections: ["node_not_found"],
      handle: (call) => this.#answer(call),
    });
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
    ); // beyond the log it is none of ours
    if (this.#open.size >= limit.STREAMS_MAX) throw overloaded("The hub has as many streams open as it can.");
    const { response, stream } = openEventStream(exchange.request, exchange.server, {
      maxBacklogBytes: limit.STREAM_BACKLOG_MAX_BYTES,
      heartbeats: this.#heartbeats,
      isContended: () => this.#held.contended,
      onClose: () => {
        unfollow();
        this.#open.delete(nodeStream);
      },
    });
    const nodeStream = new NodeStream(nodeId, cursor, stream, this.#feed, this.#held, this.#log);
    const unfollow = this.#feed.follow(nodeId, (eventId) => nodeStream.tell(eventId));
    this.#open.add(nodeStream);
    stream.send(RETRY);
    nodeStream.start();
    // HEAD is answered with the head of the stream alone.
    if (this.#closed || exchange.request.method === "HEAD") stream.close();
    return response;
  }
}

/**
 * One stream. It is either catching up, reading the log from its cursor on, or following, reading the events that it is
 * told of; a client that is too slow for what it is told goes back to catching up.
 */
class NodeStream {
  readonly #nodeId: string;
  readonly #stream: SseStream;
  readonly #feed: Feed;
  readonly #held: Semaphore;
  readonly #log: Log;
  #cursor: number;
  #catchingUp = true;
  /** Ids that it was told of and has not read yet. */
  #told: number[] = [];
  /** It was told of more than it keeps, since the last look into the log. */
  #lostCount = false;
  #reading = false;

  constructor(nodeId: string, cursor: number, stream: SseStream, feed: Feed, held: Semaphore, log: Log) {
    this.#nodeId = nodeId;
    this.#cursor = cursor;
    this.#stream = stream;
    this.#feed = feed;
    this.#held = held;
    this.#log = log;
  }

  start(): void {
    this.#readLater();
  }

  /**
   * An event of the node was committed. Called in the middle of a commit's news, so it is read afterwards. News of
   * another hub's commit may come after the event has been read from the log.
   */
  tell(eventId: number): void {
    if (eventId <= this.#cursor) return;
    this.#told.push(eventId);
    if (this.#told.length > limit.STREAM_TOLD_MAX) this.#fallBack();
    this.#readLater();
  }

  close(): void {
    this.#stream.close();
  }

  #fallBack(): void {
    this.#catchingUp = true;
    this.#lostCount = true;
    this.#told = [];
  }

  #readLater(): void {
    if (this.#reading) return;
    this.#reading = true;
    queueMicrotask(() => this.#read());
  }

  async #read(): Promise<void> {
    try {
      while (!this.#stream.closed && (this.#catchingUp || this.#told.length > 0)) {
        if (this.#catchingUp) await this.#sendFromLog();
        else await this.#sendTold();
      }
    } catch (error) {
      this.#log.error("stream failed", { node_id: this.#nodeId, cause: String(error) });
      this.#stream.close(); // the client comes back with Last-Event-ID
    } finally {
      this.#reading = false;
    }
  }

  async #sendFromLog(): Promise<void> {
    this.#lostCount = false;
    const { events, cursor, atEnd } = await this.#feed.catchUp(
      this.#nodeId,
      this.#cursor,
      limit.STREAM_BATCH,
    );
    if (!(await this.#send(events))) return;
    this.#cursor = cursor;
    if (atEnd && !this.#lostCount) {
      // What was committed since that look has been told, so from here on the ids say all.
      this.#told = this.#told.filter((id) => id > cursor);
      this.#catchingUp = false;
    } else {
      await Bun.sleep(0); // a long way back is gone in steps, others in between
    }
  }

  async #sendTold(): Promise<void> {
    const ids = this.#told.splice(0, limit.STREAM_BATCH);
    if (await this.#send(await this.#feed.eventsById(ids)))
      this.#cursor = Math.max(this.#cursor, ids.at(-1) ?? 0);
  }

  /** Piece by piece as the client takes them: a slow one is waited for, and never cut for what it was just sent. */
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
      const item = this.#stream.closed ? null : await this.#feed.itemOf(event);
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

function framed(item: StreamItem): string {
  if (item.kind === "task") {
    const { event } = item;
    return frame({ id: event.id, event: event.kind, data: JSON.stringify(encodeEvent(event)) });
  }
  return frame({ id: item.eventId, event: "message", data: JSON.stringify(encodeMessage(item.message)) });
}
