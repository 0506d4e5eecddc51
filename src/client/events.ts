/**
 * The event log and the event stream (SSE) as async iterators that resume after a fault: no event is missed or given
 * twice. Both are cursors in the hub's log. Must not: keep events.
 */
import { type CallOptions, type Http, HubUnreachable, linked, sleep } from "./http.ts";
import type { Call } from "./call.ts";
import type { Event, EventBatch, EventKind, Message, Variant } from "./types.ts";

export type EventFilter = CallOptions & {
  /** The id of the last event that you have seen; 0: from the oldest that is kept. Left out: from now on. */
  readonly since?: number | undefined;
  readonly kinds?: readonly EventKind[] | undefined;
  readonly taskId?: string | undefined;
  readonly nodeId?: string | undefined;
};

/** An iterator waits for a hub that is away until its signal ends it. */
const FOREVER = { forMs: Number.POSITIVE_INFINITY };
/** The most events that the hub answers at once. */
const PAGE = 1_000;
const POLL_S = 50;
/** A poll ends for task events only. For other kinds the log is read this often. */
const LOOK_EVERY_S = 2;
/** A hub that shuts down answers each poll at once. */
const AFTER_EMPTY_POLL_MS = 100;

/** The events of the log that match, oldest first, and then those that come. */
export async function* readLog<V extends Variant>(
  call: Call<V>,
  { since, kinds = [], taskId, nodeId, ...given }: EventFilter,
): AsyncGenerator<Event, void, undefined> {
  const options = { ...given, retry: { ...FOREVER, ...given.retry } };
  const isWanted = (event: Event): boolean =>
    (kinds.length === 0 || kinds.includes(event.kind)) &&
    (taskId === undefined || event.task_id === taskId) &&
    (nodeId === undefined || event.node_id === nodeId);
  const onlyTasks = kinds.length > 0 && kinds.every((kind) => kind.startsWith("task."));
  const where = { kind: kinds.length === 1 ? kinds[0] : undefined, task_id: taskId, node_id: nodeId };

  let cursor = since ?? (await call("events", { limit: 1 }, options)).cursor;
  let isAtEnd = false;
  for (;;) {
    const page: EventBatch =
      isAtEnd && onlyTasks
        ? await call("poll", { since: cursor, timeout: POLL_S }, options)
        : await call("events", { since: cursor, limit: PAGE, ...where }, options);
    for (const event of page.events) if (isWanted(event)) yield event;
    const isEmpty = page.cursor === cursor;
    cursor = page.cursor; // it may have gone back: the hub was restored from a backup
    isAtEnd = isEmpty || (isAtEnd && onlyTasks);
    if (!isEmpty) continue;
    if (onlyTasks) await sleep(AFTER_EMPTY_POLL_MS, given.signal);
    else await call("poll", { timeout: LOOK_EVERY_S }, options);
  }
}

/** What a node's stream gives. `id` is the cursor to resume from. */
export type StreamItem =
  | { readonly id: number; readonly event: "message"; readonly data: Message }
  | { readonly id: number; readonly event: EventKind; readonly data: Event }
  /** Events after `after` and before `resumed_at` are no longer kept: look for yourself what they changed. */
  | {
      readonly id: number;
      readonly event: "gap";
      readonly data: { readonly after: number; readonly resumed_at: number };
    };

export type StreamOptions = CallOptions & {
  /** The `id` of the last item that you have seen. Left out: from now on. */
  readonly lastEventId?: number | undefined;
};

/** The hub sends a comment every 15 s: a stream that is silent for longer is dead. */
const SILENCE_MS = 45_000;
const RECONNECT_MS = 3_000;

/** Follows a node's stream. fetch instead of EventSource, which cannot send the secret in a header. */
export async function* readStream<V extends Variant>(
  http: Http,
  call: Call<V>,
  nodeId: string,
  { lastEventId, ...given }: StreamOptions,
): AsyncGenerator<StreamItem, void, undefined> {
  const options = { ...given, retry: { ...FOREVER, ...given.retry } };
  // Known before the first connection, so that one which is lost before the first event can be resumed too.
  let cursor = lastEventId ?? (await call("events", { limit: 1 }, options)).cursor;
  for (;;) {
    const connection = linked(given.signal);
    try {
      const body = await http.send(
        {
          method: "GET",
          path: `/api/v1/agent/sse?node_id=${encodeURIComponent(nodeId)}`,
          headers: { "Last-Event-ID": String(cursor) },
          isRepeatable: true,
          isStreamed: true,
        },
        async (response) => response.body,
        { ...options, signal: connection.signal },
      );
      for await (const frame of readFrames(body, connection)) {
        cursor = frame.id;
        // The hub's declared forms; the event names which.
        yield { id: frame.id, event: frame.event, data: JSON.parse(frame.data) } as StreamItem;
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

/** The frames of an event stream until it ends. @throws {HubUnreachable} when it breaks or falls silent */
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

/** Null for a comment and for what carries no event. */
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
