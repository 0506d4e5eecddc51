/**
 * GET agent/sse (specification 6, decisions.md Events): a node's messages and the events of its tasks, as they come.
 *
 * A stream is a cursor in the event log. A wake-up only says when to look; what is read after the cursor is sent, in
 * order, once. A client that does not take what it is sent is not read for any further until it does.
 */
import * as z from "zod";
import * as limit from "../domain/limits.ts";
import type { Exchange } from "../http/exchange.ts";
import { queryOf } from "../http/exchange.ts";
import { Heartbeats, type SseStream, frame, openEventStream } from "../http/sse.ts";
import type { Log } from "../lib/log.ts";
import type { Feed, StreamItem } from "../service/feed.ts";
import { type Call, type Endpoint, rawEndpoint } from "./endpoint.ts";
import * as field from "./fields.ts";
import { checkActsFor, parseInput } from "./input.ts";
import { overloaded } from "./problems.ts";
import { encodeEvent, encodeMessage } from "./shapes.ts";

const query = z.object({ node_id: field.nodeId });

/** Sent first: how long a client waits before it comes back after a break. */
const RETRY = "retry: 3000\n\n";

/** All open streams of the hub. */
export class StreamRoom {
  readonly endpoint: Endpoint;
  readonly #feed: Feed;
  readonly #log: Log;
  readonly #heartbeats = new Heartbeats();
  readonly #open = new Set<NodeStream>();
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
    const { node_id: nodeId } = parseInput(query, queryOf(exchange.request));
    checkActsFor(call, nodeId);
    await services.nodes.get(nodeId);
    const cursor = lastEventIdOf(exchange) ?? (await this.#feed.lastId());
    if (this.#open.size >= limit.STREAMS_MAX) throw overloaded("The hub has as many streams open as it can.");
    const { response, stream } = openEventStream(exchange.request, exchange.server, {
      maxBacklogBytes: limit.STREAM_BACKLOG_MAX_BYTES,
      heartbeats: this.#heartbeats,
      onClose: () => {
        unfollow();
        this.#open.delete(nodeStream);
      },
    });
    const nodeStream = new NodeStream(nodeId, cursor, stream, this.#feed, this.#log);
    const unfollow = this.#feed.follow(nodeId, () => nodeStream.wake());
    this.#open.add(nodeStream);
    stream.send(RETRY);
    nodeStream.wake();
    // HEAD is answered with the head of the stream alone.
    if (this.#closed || exchange.request.method === "HEAD") stream.close();
    return response;
  }
}

class NodeStream {
  readonly #nodeId: string;
  readonly #stream: SseStream;
  readonly #feed: Feed;
  readonly #log: Log;
  #cursor: number;
  #reading = false;
  #woken = false;

  constructor(nodeId: string, cursor: number, stream: SseStream, feed: Feed, log: Log) {
    this.#nodeId = nodeId;
    this.#cursor = cursor;
    this.#stream = stream;
    this.#feed = feed;
    this.#log = log;
  }

  /** Something may have come. Called in the middle of a commit's news, so the reading is left for afterwards. */
  wake(): void {
    this.#woken = true;
    if (this.#reading) return;
    this.#reading = true;
    queueMicrotask(() => this.#read());
  }

  close(): void {
    this.#stream.close();
  }

  async #read(): Promise<void> {
    try {
      while (this.#woken && !this.#stream.closed) {
        this.#woken = false;
        await this.#sendNext();
      }
    } catch (error) {
      this.#log.error("stream failed", { node_id: this.#nodeId, cause: String(error) });
      this.#stream.close(); // the client comes back with Last-Event-ID
    } finally {
      this.#reading = false;
    }
  }

  async #sendNext(): Promise<void> {
    const batch = await this.#feed.stream(this.#nodeId, this.#cursor, limit.STREAM_BATCH);
    for (const item of batch.items) {
      // Piece by piece as the client takes them: a slow one is waited for, and never cut for what it was just sent.
      if (this.#stream.backlogBytes > 0 && !(await this.#stream.drained())) return;
      if (!this.#stream.send(framed(item))) return;
      this.#cursor = idOf(item);
    }
    this.#cursor = batch.cursor;
    if (batch.more) this.#woken = true;
  }
}

function idOf(item: StreamItem): number {
  return item.kind === "task" ? item.event.id : item.eventId;
}

function framed(item: StreamItem): string {
  if (item.kind === "task") {
    const { event } = item;
    return frame({ id: event.id, event: event.kind, data: JSON.stringify(encodeEvent(event)) });
  }
  return frame({ id: item.eventId, event: "message", data: JSON.stringify(encodeMessage(item.message)) });
}

/** Where a client that comes back goes on; null for a new one, or for an id that is none of ours. */
function lastEventIdOf({ request }: Exchange): number | null {
  const parsed = field.eventCursor.safeParse(request.headers.get("last-event-id") ?? undefined);
  return parsed.success ? parsed.data : null;
}
