/**
 * Response backpressure: bounds the memory of answers that callers read slowly or not at all. A semaphore counts the
 * unread bytes of all large answers, until they are read, their caller hangs up, or they made no progress for
 * ANSWER_STALL_MS. A second semaphore counts the reads that may take long. Each caller has a share of both, and a few
 * such reads run in each tick, in turn for each caller: so one that asks for much and reads nothing delays only itself.
 *
 * Invariant: a read that finds no room drops its rows, waits without holding anything, and loads them again. The
 * answer of a write cannot be loaded again, so it is counted without waiting. A receive acquires room before it takes
 * messages (mail/embedded.ts). A small answer is not counted: the socket takes it at once.
 */
import * as limit from "../domain/limits.ts";
import type { Exchange } from "../http/exchange.ts";
import { Deadlines } from "../http/deadlines.ts";
import { assert } from "../lib/assert.ts";
import { systemClock } from "../lib/clock.ts";
import { type Acquirable, FairTickQueue } from "../lib/semaphore.ts";
import { type Share, SharedSemaphore } from "./caller-shares.ts";

/** `next` returns null at the end, and is null when there is only one piece. */
export type Pieces<P extends string | Uint8Array> = {
  readonly first: P;
  readonly next: (() => Promise<P | null>) | null;
  /** Frees what `next` reads from, once the answer is over. */
  readonly close?: () => void;
};

export type WatchKey = (onLoss: () => void) => () => void;

export type Encoded = Pieces<string>;

export type Body = string | ReadableStream<Uint8Array>;

type Asked = { readonly exchange: Exchange; readonly share: () => Share };

const NOTHING = Buffer.alloc(0);
/** The idle timeout that closes the connection of an answer that is cut off: the error of its stream does not. */
const CUT_IDLE_SECONDS = 1;
const STREAM_IDLE_SECONDS = 30;

type Bounds = {
  readonly bytes: Pick<SharedSemaphore, "of" | "close">;
  readonly reads: Pick<SharedSemaphore, "of">;
  readonly stallMs: number;
  readonly waitMs: number;
};

export class ResponseBackpressure {
  readonly #bounds: Bounds;
  readonly #context: Omit<Context, "held" | "name">;

  constructor(bounds: Partial<Bounds> = {}) {
    this.#bounds = {
      bytes: new SharedSemaphore(limit.ANSWER_BYTES_SHARES),
      reads: new SharedSemaphore(limit.READ_SHARES),
      stallMs: limit.ANSWER_STALL_MS,
      waitMs: limit.ANSWER_WAIT_MS,
      ...bounds,
    };
    const { stallMs } = this.#bounds;
    this.#context = {
      loads: new FairTickQueue(limit.READS_TOGETHER, limit.READS_TICK_MS, systemClock().timers),
      deadlines: new Deadlines(),
      stallMs,
    };
  }

  /**
   * Nobody may read the answers that have the room. A read that waits for other reads runs after them, because those
   * end soon.
   */
  close(): void {
    this.#bounds.bytes.close();
  }

  /** For an answer that must have room before its read, which cannot be repeated. */
  roomFor({ share }: Pick<Asked, "share">): Acquirable {
    return this.#bounds.bytes.of(share());
  }

  /**
   * Calls `load` again after a wait for room.
   * @throws {AcquireTimeout} when no room was made in time
   */
  async ofRead(asked: Asked, load: () => Promise<Encoded>): Promise<Body> {
    const loaded = await load();
    if (isSmall(loaded)) return loaded.first;
    if (asked.exchange.request.method === "HEAD") return headOnly();
    const bytes = Buffer.byteLength(loaded.first);
    const held = this.roomFor(asked);
    if (!held.tryAcquire(bytes)) return this.#reload(asked, load, held, bytes);
    const body = this.#stream(asked, loaded, held);
    held.release(bytes);
    return body;
  }

  /**
   * The read counts as running until its answer has room, and is not loaded in vain while earlier ones of its caller wait for
   * room.
   */
  ofLargeRead(asked: Asked, load: () => Promise<Encoded>): Promise<Body> {
    return this.#runRead(asked, async () => {
      const held = this.roomFor(asked);
      if (!held.contended) await this.#turn(asked);
      if (held.contended) return this.#reload(asked, load, held, limit.LIST_PART_MAX_BYTES);
      return this.ofRead(asked, load);
    });
  }

  /**
   * @throws {AcquireTimeout} when the caller's other reads have not ended in time, and when it has hung up meanwhile
   */
  runRead<T>(asked: Asked, read: () => Promise<T>): Promise<T> {
    return this.#runRead(asked, async () => {
      await this.#turn(asked);
      return read();
    });
  }

  async #runRead<T>({ exchange, share }: Asked, read: () => Promise<T>): Promise<T> {
    const running = this.#bounds.reads.of(share());
    if (!running.tryAcquire(1)) await running.acquire(1, this.#bounds.waitMs, exchange.request.signal);
    try {
      return await read();
    } finally {
      running.release(1);
    }
  }

  #turn({ share }: Asked): Promise<void> {
    return this.#context.loads.next(nameOf(share()));
  }

  /**
   * `content` must buffer nothing, and each read must return at most FILE_PIECE_MAX_BYTES.
   * @param watchKey the answer is cut off when the caller's key is lost; null: it needed no key
   * @throws {AcquireTimeout} when no room was made in time
   */
  async ofFile(
    asked: Asked,
    content: ReadableStream<Uint8Array>,
    bytes: number,
    watchKey: WatchKey | null,
  ): Promise<ReadableStream<Uint8Array>> {
    const held = this.roomFor(asked);
    const piece = Math.min(bytes, limit.FILE_PIECE_MAX_BYTES);
    const { signal } = asked.exchange.request;
    await held.acquire(piece, this.#bounds.waitMs, signal);
    try {
      if (signal.aborted) return content; // nobody will read it
      const reader = content.getReader();
      const next = async (): Promise<Uint8Array | null> => (await reader.read()).value ?? null;
      const close = (): void => void reader.cancel().catch(() => undefined); // it may have failed already
      return this.#stream(asked, { first: (await next()) ?? NOTHING, next, close }, held, watchKey);
    } finally {
      held.release(piece);
    }
  }

  /**
   * Small pieces may come minutes apart, but the connection is not idle.
   * @param onEnd called when the stream is over, or its caller has hung up
   */
  ofStream(asked: Asked, content: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> {
    const { server, request } = asked.exchange;
    const reader = content.getReader();
    const next = async (): Promise<Uint8Array | null> => {
      server.timeout(request, 0);
      const { value } = await reader.read();
      server.timeout(request, STREAM_IDLE_SECONDS);
      return value ?? null;
    };
    const close = (): void => {
      reader.cancel().catch(() => undefined); // it may have failed already
      onEnd();
    };
    return this.#stream(asked, { first: NOTHING, next, close }, this.roomFor(asked));
  }

  ofWrite(asked: Asked, text: string): Body {
    const encoded = { first: text, next: null };
    return isSmall(encoded) ? text : this.#stream(asked, encoded, this.roomFor(asked));
  }

  /** A separate method, so the data of the first load can be freed while this one waits. */
  async #reload(asked: Asked, load: () => Promise<Encoded>, held: Acquirable, bytes: number): Promise<Body> {
    const { signal, method } = asked.exchange.request;
    await held.acquire(bytes, this.#bounds.waitMs, signal);
    try {
      await this.#turn(asked); // what one release makes room for must not load in one tick
      if (signal.aborted) return ""; // nobody will read it
      const loaded = await load();
      if (isSmall(loaded)) return loaded.first;
      return method === "HEAD" ? headOnly() : this.#stream(asked, loaded, held);
    } finally {
      held.release(bytes);
    }
  }

  /** Counts the bytes itself: what was acquired for them before can then be released. */
  #stream(
    { exchange, share }: Asked,
    pieces: Pieces<string | Uint8Array>,
    held: Acquirable,
    watchKey: WatchKey | null = null,
  ): ReadableStream<Uint8Array> {
    const body = new AnswerBody(
      exchange,
      pieces,
      { ...this.#context, held, name: nameOf(share()) },
      watchKey,
    );
    return new ReadableStream(body, { highWaterMark: 0 });
  }
}

type Context = {
  readonly held: Acquirable;
  readonly name: string;
  readonly loads: FairTickQueue;
  readonly deadlines: Deadlines;
  readonly stallMs: number;
};

/** Pulled by the socket slice by slice; holds one piece at a time. */
class AnswerBody {
  readonly #exchange: Exchange;
  readonly #next: Pieces<string | Uint8Array>["next"];
  readonly #close: (() => void) | undefined;
  readonly #unwatchKey: (() => void) | undefined;
  readonly #context: Context;
  #piece: Buffer = NOTHING;
  #sent = 0;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #deadline: ReturnType<Deadlines["add"]> | null = null;
  #isOver = false;

  constructor(
    exchange: Exchange,
    { first, next, close }: Pieces<string | Uint8Array>,
    context: Context,
    watchKey: WatchKey | null,
  ) {
    this.#exchange = exchange;
    this.#next = next;
    this.#close = close;
    this.#context = context;
    this.#hold(toBuffer(first));
    this.#startStallTimer(); // the caller may not even begin to read
    this.#unwatchKey = watchKey?.(() => this.#cutOff("the key of the caller is no longer valid"));
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#stopStallTimer();
    if (this.#sent === this.#piece.length) await this.#loadNext();
    if (this.#isOver) return;
    if (this.#piece.length === 0) {
      this.#end();
      controller.close();
      return;
    }
    const slice = this.#piece.subarray(this.#sent, this.#sent + limit.ANSWER_SLICE_BYTES);
    this.#sent += slice.length;
    assert(slice.length > 0 && this.#sent <= this.#piece.length, "a slice is a part of its piece");
    controller.enqueue(slice);
    this.#startStallTimer();
  }

  cancel(): void {
    this.#end();
  }

  async #loadNext(): Promise<void> {
    try {
      if (this.#next) await this.#context.loads.next(this.#context.name);
      const piece = this.#isOver ? null : await this.#next?.();
      if (!this.#isOver) this.#hold(piece ? toBuffer(piece) : NOTHING);
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  /** Counts the new piece before the old one is released, so that no waiter is granted the difference. */
  #hold(piece: Buffer): void {
    this.#context.held.overdraw(piece.length);
    this.#context.held.release(this.#piece.length);
    this.#piece = piece;
    this.#sent = 0;
  }

  #startStallTimer(): void {
    this.#deadline = this.#context.deadlines.add(this.#context.stallMs, () =>
      this.#cutOff("the response was not read"),
    );
  }

  #cutOff(reason: string): void {
    if (this.#isOver) return;
    this.#end();
    this.#exchange.server.timeout(this.#exchange.request, CUT_IDLE_SECONDS);
    this.#controller?.error(new Error(reason));
  }

  #stopStallTimer(): void {
    if (this.#deadline) this.#context.deadlines.delete(this.#deadline);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopStallTimer();
    this.#hold(NOTHING);
    this.#unwatchKey?.();
    this.#close?.();
  }
}

/** A key may have the name of an address. */
function nameOf({ kind, name }: Share): string {
  return `${kind} ${name}`;
}

function toBuffer(piece: string | Uint8Array): Buffer {
  if (typeof piece === "string") return Buffer.from(piece);
  return Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
}

/** Compares characters, each of which is at least one byte: counting bytes would slow down every small answer. */
function isSmall({ first, next }: Encoded): boolean {
  return next === null && first.length <= limit.ANSWER_UNCOUNTED_MAX_BYTES;
}

/** Without the length of the body that GET would stream. */
function headOnly(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.close() }, { highWaterMark: 0 });
}
