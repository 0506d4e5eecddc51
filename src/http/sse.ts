/**
 * Event streams (Server-Sent Events, WHATWG HTML section 9.2): frames, one open answer, and the heartbeats of all.
 *
 * Invariant: a stream holds at most its backlog limit, or one piece if that alone is larger; its onClose runs exactly
 * once, whatever ended it. Must not: know what it carries, or remember what a slow client missed. A client that was cut
 * comes back with Last-Event-ID, and whoever feeds the stream goes on from there.
 *
 * A "direct" ReadableStream, because on Bun 1.4.5 it is the lightest: 4.2 KiB a stream at 10,000 (4.7 with a queue), a
 * third of the work for each event, and its write() tells when the socket is full. An async generator is not told of a
 * hang-up while it waits.
 */
import type { Server } from "bun";
import { NO_SNIFF } from "./exchange.ts";

/** One event as the wire has it. `id` and `event` hold no line break; `retry` is in milliseconds. */
export type SseEvent = {
  readonly id?: number | string;
  readonly event?: string;
  readonly data: string;
  readonly retry?: number;
};

export type SseStream = {
  /**
   * Appends one framed piece (see frame()); pieces of one event-loop tick leave together. False when the stream is closed, or was
   * cut by this: pieces were waiting already, and with this one they would pass the limit.
   */
  send(text: string): boolean;
  /** Resolves when nothing waits any more: true, or false as soon as the stream is closed. Never rejects. */
  drained(): Promise<boolean>;
  /** Bytes sent but not yet taken by the socket; an upper bound, for a piece counts until the whole of it is taken. */
  readonly backlogBytes: number;
  /** Sends a comment so that both ends see life; cuts the stream when nothing has moved for the last beats. */
  beat(): void;
  /** Ends the chunked body cleanly, after what still waits; the socket has 10 s to take that. Idempotent. */
  close(): void;
  readonly closed: boolean;
};

export type SseOptions = {
  readonly maxBacklogBytes: number;
  /** Where the stream gets its beats from, as long as it is open. */
  readonly heartbeats?: Heartbeats;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether others wait for the memory that is held for slow readers: then a stalled stream is cut sooner. */
  readonly isContended?: () => boolean;
  /** Runs once: on hang-up, cut or close(). Never before openEventStream has returned. Must not throw. */
  readonly onClose: () => void;
};

/** Comments are no events: a client's parser drops them. */
const COMMENT = ":\n\n";
const STALLED_BEATS_MAX = 4;
const STALLED_BEATS_MAX_WHEN_CONTENDED = 2;
/** Set before the end, else Bun would keep a stalled connection for ever (the stream itself has no idle timeout). */
const CLOSE_IDLE_SECONDS = 10;
const LINE_BREAK = /\r\n|\r|\n/;

/** An event in WHATWG framing, one data line for each line of `data`. @throws RangeError for what would break it */
export function frame(event: SseEvent): string {
  let text = "";
  if (event.id !== undefined) text += `id: ${singleLine(String(event.id))}\n`;
  if (event.event !== undefined) text += `event: ${singleLine(event.event)}\n`;
  if (event.retry !== undefined) text += `retry: ${wholeNumber(event.retry)}\n`;
  for (const line of event.data.split(LINE_BREAK)) text += `data: ${line}\n`;
  return `${text}\n`;
}

function singleLine(text: string): string {
  if (/[\r\n\0]/.test(text)) throw new RangeError("a line break or NUL in an event's id or name");
  return text;
}

function wholeNumber(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new RangeError("retry is a whole number of milliseconds");
  return value;
}

/**
 * Opens an event stream. Return `response` as the answer to `request`; what is sent before that waits for it.
 * If the answer is never returned, close() the stream (heartbeats would cut it after a minute).
 */
export function openEventStream(
  request: Request,
  server: Server<undefined>,
  options: SseOptions,
): { response: Response; stream: SseStream } {
  server.timeout(request, 0);
  const stream = new EventStream(request, server, options);
  const body = new ReadableStream({
    type: "direct",
    pull: (sink) => stream.attach(sink),
    cancel: () => stream.detach(),
  });
  const headers = {
    ...NO_SNIFF,
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
    ...options.headers,
  };
  return { response: new Response(body, { headers }), stream };
}

const NEVER_CONTENDED = (): boolean => false;

class EventStream implements SseStream {
  readonly #request: Request;
  readonly #server: Server<undefined>;
  readonly #maxBacklogBytes: number;
  readonly #isContended: () => boolean;
  readonly #onClose: () => void;
  readonly #onAbort = () => this.detach();
  readonly #stopBeats: (() => void) | undefined;
  /** How it ended: "closed" still lets what waits leave; "cut" and "gone" drop it. */
  #end: "closed" | "cut" | "gone" | undefined;
  /** Where to write, from the moment the answer is on its way. */
  #sink: ReadableStreamDirectController | undefined;
  /** What waits for the sink, or for the sink to take the last write. */
  #held = "";
  #heldBytes = 0;
  #inFlightBytes = 0;
  #stalledBeats = 0;
  #drained: PromiseWithResolvers<boolean> | undefined;

  constructor(request: Request, server: Server<undefined>, options: SseOptions) {
    this.#request = request;
    this.#server = server;
    this.#maxBacklogBytes = options.maxBacklogBytes;
    this.#isContended = options.isContended ?? NEVER_CONTENDED;
    this.#onClose = options.onClose;
    request.signal.addEventListener("abort", this.#onAbort); // cancel() alone would do on 1.4.5; it has not always
    this.#stopBeats = options.heartbeats?.add(this);
  }

  get closed(): boolean {
    return this.#end !== undefined;
  }

  get backlogBytes(): number {
    return this.#heldBytes + this.#inFlightBytes;
  }

  send(text: string): boolean {
    if (this.#end !== undefined) return false;
    const bytes = Buffer.byteLength(text); // write() answers characters, not bytes, for a Latin-1 string
    const backlogBytes = this.backlogBytes;
    if (backlogBytes > 0 && backlogBytes + bytes > this.#maxBacklogBytes) {
      this.#finish("cut");
      return false;
    }
    this.#held += text;
    this.#heldBytes += bytes;
    if (this.#inFlightBytes === 0) this.#write();
    return this.#end === undefined;
  }

  drained(): Promise<boolean> {
    if (this.#end !== undefined) return Promise.resolve(false);
    if (this.backlogBytes === 0) return Promise.resolve(true);
    this.#drained ??= Promise.withResolvers();
    return this.#drained.promise;
  }

  beat(): void {
    if (this.backlogBytes === 0) return void this.send(COMMENT);
    const most = this.#isContended() ? STALLED_BEATS_MAX_WHEN_CONTENDED : STALLED_BEATS_MAX;
    if (++this.#stalledBeats >= most) this.#finish("cut");
  }

  close(): void {
    this.#finish("closed");
  }

  /** The answer is on its way. Its head leaves with the first byte, so there must be one. */
  attach(sink: ReadableStreamDirectController): void {
    this.#sink = sink;
    if (this.#end !== undefined) return this.#endBody(sink);
    if (this.#heldBytes === 0) this.send(COMMENT);
    else this.#write();
  }

  /** The client has hung up. */
  detach(): void {
    this.#finish("gone");
  }

  /** Hands over all that is held. The sink takes it in any case; a promise says that the socket was full. */
  #write(): void {
    const sink = this.#sink;
    if (sink === undefined || this.#heldBytes === 0) return;
    const text = this.#held;
    this.#inFlightBytes = this.#heldBytes;
    this.#held = "";
    this.#heldBytes = 0;
    const written = sink.write(text);
    if (typeof written === "number") {
      this.#taken();
      return;
    }
    const next = () => {
      this.#taken();
      if (this.#end === undefined) this.#write();
    };
    written.then(next, next);
  }

  #taken(): void {
    this.#inFlightBytes = 0;
    this.#stalledBeats = 0;
    if (this.backlogBytes > 0) return;
    this.#drained?.resolve(this.#end === undefined);
    this.#drained = undefined;
  }

  #finish(end: "closed" | "cut" | "gone"): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#stopBeats?.();
    this.#request.signal.removeEventListener("abort", this.#onAbort);
    if (this.#sink !== undefined) this.#endBody(this.#sink);
    this.#drained?.resolve(false);
    this.#drained = undefined;
    this.#onClose();
  }

  /** A clean end lets the rest leave; a cut resets the connection, which drops what the sink holds as well. */
  #endBody(sink: ReadableStreamDirectController): void {
    if (this.#end === "closed") {
      this.#server.timeout(this.#request, CLOSE_IDLE_SECONDS);
      if (this.#held !== "") void sink.write(this.#held);
      sink.close();
    } else if (this.#end === "cut") {
      sink.close(new Error("the event stream was cut"));
    }
    this.#held = "";
    this.#heldBytes = 0;
    this.#inFlightBytes = 0;
  }
}

/** Runs `tick` every `ms` until what it returns is called. */
export type Every = (ms: number, tick: () => void) => () => void;

const everyInterval: Every = (ms, tick) => {
  const timer = setInterval(tick, ms);
  return () => clearInterval(timer);
};

const SLOTS = 15;

/**
 * The pulse of all open streams: one timer, running while there is a stream. Each is beaten every `intervalMs`, the
 * first time sooner. The streams are spread evenly over 15 slots, one slot a tick, so that 10,000 make no burst.
 */
export class Heartbeats {
  readonly #slots: readonly Set<{ beat(): void }>[] = Array.from({ length: SLOTS }, () => new Set());
  readonly #tickMs: number;
  readonly #every: Every;
  #next = 0;
  #size = 0;
  #stop: (() => void) | undefined;

  constructor(intervalMs = 15_000, every: Every = everyInterval) {
    this.#tickMs = intervalMs / SLOTS;
    this.#every = every;
  }

  /** Beats the stream from now on. Returns what ends it (idempotent). The caller bounds how many there are. */
  add(stream: { beat(): void }): () => void {
    const slot = this.#emptiestSlot();
    slot.add(stream);
    this.#size++;
    this.#stop ??= this.#every(this.#tickMs, () => this.#tick());
    return () => {
      if (!slot.delete(stream)) return;
      this.#size--;
      if (this.#size > 0) return;
      this.#stop?.();
      this.#stop = undefined;
    };
  }

  /** Streams that are beaten; the timer runs while there are any. */
  get size(): number {
    return this.#size;
  }

  #tick(): void {
    const slot = this.#slots[this.#next];
    this.#next = (this.#next + 1) % SLOTS;
    for (const stream of slot ?? []) stream.beat();
  }

  /** Among equals the one that is beaten last. */
  #emptiestSlot(): Set<{ beat(): void }> {
    let emptiest = this.#slots[(this.#next + SLOTS - 1) % SLOTS] ?? new Set();
    for (let back = 2; back <= SLOTS; back++) {
      const slot = this.#slots[(this.#next + SLOTS - back) % SLOTS];
      if (slot !== undefined && slot.size < emptiest.size) emptiest = slot;
    }
    return emptiest;
  }
}
