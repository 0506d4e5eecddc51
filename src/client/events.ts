/**
 * The event log and the event stream (SSE) as async iterators that resume after a fault: no event is missed or
 * repeated. Both resume from a cursor in the hub's log. Must not: buffer events.
 */
import {
  type CallOptions,
  type Http,
  HubUnreachable,
  linkedController,
  notAHub,
  sleep,
  withQuery,
} from "./http.ts";
import type { Call } from "./call.ts";
import type { Event, EventKind, Message, Variant } from "./types.ts";

export type EventFilter = CallOptions & {
  /** The id of the last event that you have seen; 0: from the oldest that is stored. By default from now on. */
  readonly since?: number | undefined;
  readonly kinds?: readonly EventKind[] | undefined;
  readonly taskId?: string | undefined;
  readonly nodeId?: string | undefined;
  /** The events of the tasks of this group, and its end. */
  readonly group?: string | undefined;
  /** The events of tasks with this tag. */
  readonly tag?: string | undefined;
};

const FOREVER = { forMs: Number.POSITIVE_INFINITY };

/** Yields the matching events of the log, oldest first, and then new ones as they arrive. */
export async function* readLog<V extends Variant>(
  http: Http,
  call: Call<V>,
  { since, kinds = [], taskId, nodeId, group, tag, ...given }: EventFilter,
): AsyncGenerator<Event, void, undefined> {
  const filter = { kind: kinds.join() || undefined, task_id: taskId, node_id: nodeId, group, tag };
  const path = `/api/v1/${withQuery("events/stream", filter)}`;
  for await (const { event, data } of follow(http, call, path, since, given))
    if (event !== "gap") yield http.parse(data) as Event; // as the hub declares it
}

/** An item of a node's stream. `id` is the cursor to resume from. */
export type StreamItem =
  | { readonly id: number; readonly event: "message"; readonly data: Message }
  | { readonly id: number; readonly event: EventKind; readonly data: Event }
  /** Events after `after` and before `resumed_at` are no longer stored: reload what they may have changed. */
  | {
      readonly id: number;
      readonly event: "gap";
      readonly data: { readonly after: number; readonly resumed_at: number };
    };

export type StreamOptions = CallOptions & {
  /** The `id` of the last item that you have seen. By default from now on. */
  readonly lastEventId?: number | undefined;
};

/** The hub sends a comment every 15 s: a stream that is silent for longer is dead. */
const SILENCE_MS = 45_000;
const RECONNECT_MS = 3_000;

export async function* readStream<V extends Variant>(
  http: Http,
  call: Call<V>,
  nodeId: string,
  { lastEventId, ...given }: StreamOptions,
): AsyncGenerator<StreamItem, void, undefined> {
  const path = `/api/v1/agent/sse?node_id=${encodeURIComponent(nodeId)}`;
  for await (const { id, event, data } of follow(http, call, path, lastEventId, given))
    yield { id, event, data: http.parse(data) } as StreamItem; // as the hub declares it for this `event`
}

/**
 * Yields the frames of a stream after a cursor (by default from now on), and reconnects after faults. Uses fetch,
 * because EventSource cannot send the secret in a header.
 */
async function* follow<V extends Variant>(
  http: Http,
  call: Call<V>,
  path: string,
  after: number | undefined,
  given: CallOptions,
): AsyncGenerator<Frame, void, undefined> {
  const options = { ...given, retry: { ...FOREVER, ...given.retry } };
  // Read before the first connection, so that a connection that breaks before its first event can be resumed too.
  let cursor = after ?? (await call("events", { limit: 1 }, options)).cursor;
  for (;;) {
    const connection = linkedController(given.signal);
    try {
      const body = await http.send(
        {
          method: "GET",
          path,
          headers: { "Last-Event-ID": String(cursor) },
          isRepeatable: true,
          isStreamed: true,
        },
        async (response) => {
          const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
          if (!isStream) throw notAHub(response, "is not an event stream of a hub");
          return response.body;
        },
        { ...options, signal: connection.signal },
      );
      for await (const frame of readFrames(body, connection)) {
        cursor = frame.id;
        yield frame;
      }
    } catch (error) {
      given.signal?.throwIfAborted();
      if (!(error instanceof HubUnreachable)) throw error;
    } finally {
      connection.abort();
    }
    await sleep(RECONNECT_MS * (0.5 + Math.random() / 2), given.signal);
  }
}

type Frame = { readonly id: number; readonly event: string; readonly data: string };

/** Yields the frames of an event stream until it ends. @throws {HubUnreachable} when it breaks or falls silent */
async function* readFrames(
  body: ReadableStream<Uint8Array> | null,
  connection: AbortController,
): AsyncGenerator<Frame, void, undefined> {
  if (body === null) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const silence = setTimeout(() => connection.abort(new Error("the stream fell silent")), SILENCE_MS);
    const read = await reader
      .read()
      .catch((cause: unknown) => {
        throw new HubUnreachable("the stream broke", { cause });
      })
      .finally(() => clearTimeout(silence));
    if (read.done) return;
    const frames = (text + decoder.decode(read.value, { stream: true })).split(/\r?\n\r?\n/);
    text = frames.pop() ?? "";
    for (const frame of frames) {
      const parsed = parseFrame(frame);
      if (parsed !== null) yield parsed;
    }
  }
}

function parseFrame(text: string): Frame | null {
  const fields = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const [, name = "", value = ""] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    fields.set(name, name === "data" && fields.has(name) ? `${fields.get(name)}\n${value}` : value);
  }
  const [id, event, data] = [fields.get("id"), fields.get("event"), fields.get("data")];
  return id === undefined || event === undefined || data === undefined
    ? null
    : { id: Number(id), event, data };
}
