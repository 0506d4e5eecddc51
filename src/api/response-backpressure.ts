/**
 * Response backpressure: bounds the memory of answers that callers read slowly or not at all. A semaphore over bytes
 * counts the unread bytes of all large answers. An answer releases its bytes when it has been read, when its caller
 * hangs up, and when it is cut off because it made no progress for ANSWER_STALL_MS.
 *
 * Invariant: a read that finds no room drops its rows, waits without holding anything, and loads them again. The answer of
 * a write cannot be loaded again, so it is counted without waiting. A receive, whose answer may be large, acquires room
 * before it takes messages (mail/embedded.ts). A small answer is not counted: the socket takes it at once.
 */
import * as limit from "../domain/limits.ts";
import type { Exchange } from "../http/exchange.ts";
import { Deadlines } from "../http/deadlines.ts";
import { type Acquirable, Semaphore, SemaphoreShares, TickQueue } from "../lib/semaphore.ts";

/**
 * The first piece of an answer, and a function that makes the next, null at the end. `next` is null when there is only
 * one piece.
 */
export type Pieces<P extends string | Uint8Array> = {
  readonly first: P;
  readonly next: (() => Promise<P | null>) | null;
  /** Frees what `next` reads from, once the answer is over. */
  readonly close?: () => void;
};

/** Calls `onLoss` when the caller's key is lost. Returns the way to unsubscribe. */
export type WatchKey = (onLoss: () => void) => () => void;

export type Encoded = Pieces<string>;

export type Body = string | ReadableStream<Uint8Array>;

/** Makes the semaphores over the unread bytes of large answers. */
export function answerSemaphores() {
  return {
    answers: new Semaphore(limit.ANSWERS_HELD_MAX_BYTES),
    anonymousAnswers: new SemaphoreShares(
      limit.ANONYMOUS_ANSWERS_HELD_MAX_BYTES,
      limit.ANONYMOUS_ADDRESS_HELD_MAX_BYTES,
    ),
  };
}

const NOTHING = Buffer.alloc(0);
/** The idle timeout that closes the connection of an answer that is cut off: the error of its stream does not. */
const CUT_IDLE_SECONDS = 1;

/** Returns the semaphore that counts the bytes of the caller of this request. */
export type HeldFor = (exchange: Exchange) => Acquirable;

export class ResponseBackpressure {
  readonly #heldFor: HeldFor;
  readonly #waitMs: number;
  readonly #context: Omit<Context, "held">;

  constructor(
    heldFor: HeldFor,
    { stallMs, waitMs } = { stallMs: limit.ANSWER_STALL_MS, waitMs: limit.ANSWER_WAIT_MS },
  ) {
    this.#heldFor = heldFor;
    this.#waitMs = waitMs;
    this.#context = { loads: new TickQueue(), deadlines: new Deadlines(), stallMs };
  }

  /**
   * Returns the body of an answer that `load` reads. Calls `load` again after a wait for room.
   * @throws {AcquireTimeout} when no room was made in time
   */
  async ofRead(exchange: Exchange, load: () => Promise<Encoded>): Promise<Body> {
    const loaded = await load();
    if (isSmall(loaded)) return loaded.first;
    if (exchange.request.method === "HEAD") return headOnly();
    const bytes = Buffer.byteLength(loaded.first);
    const held = this.#heldFor(exchange);
    if (held.tryAcquire(bytes)) return this.#stream(exchange, loaded, held, bytes);
    return this.#reload(exchange, load, held, bytes);
  }

  /**
   * Returns the body of a file whose bytes pass through this process. `content` must buffer nothing, and each read must
   * return at most FILE_PIECE_MAX_BYTES.
   * @param bytes the length of `content`
   * @param watchKey the answer is cut off when the caller's key is lost; null: it needed no key
   * @throws {AcquireTimeout} when no room was made in time
   */
  async ofFile(
    exchange: Exchange,
    content: ReadableStream<Uint8Array>,
    bytes: number,
    watchKey: WatchKey | null,
  ): Promise<ReadableStream<Uint8Array>> {
    const held = this.#heldFor(exchange);
    const piece = Math.min(bytes, limit.FILE_PIECE_MAX_BYTES);
    await held.acquire(piece, this.#waitMs);
    if (exchange.request.signal.aborted) {
      held.release(piece);
      return content; // nobody will read it
    }
    const reader = content.getReader();
    const next = async (): Promise<Uint8Array | null> => (await reader.read()).value ?? null;
    const close = (): void => void reader.cancel().catch(() => undefined); // it may have failed already
    try {
      const pieces = { first: (await next()) ?? NOTHING, next, close };
      return this.#stream(exchange, pieces, held, piece, watchKey);
    } catch (error) {
      held.release(piece);
      throw error;
    }
  }

  /** Returns the body of the answer to a write, without waiting. */
  ofWrite(exchange: Exchange, text: string): Body {
    const encoded = { first: text, next: null };
    return isSmall(encoded) ? text : this.#stream(exchange, encoded, this.#heldFor(exchange), 0);
  }

  /** A separate method, so the data of the first load can be freed while this one waits. */
  async #reload(
    exchange: Exchange,
    load: () => Promise<Encoded>,
    held: Acquirable,
    bytes: number,
  ): Promise<Body> {
    await held.acquire(bytes, this.#waitMs);
    try {
      if (!exchange.request.signal.aborted) return this.#stream(exchange, await load(), held, bytes);
    } catch (error) {
      held.release(bytes);
      throw error;
    }
    held.release(bytes);
    return ""; // the caller has hung up
  }

  /** @param acquired the bytes that were acquired before it was loaded */
  #stream(
    exchange: Exchange,
    pieces: Pieces<string | Uint8Array>,
    held: Acquirable,
    acquired: number,
    watchKey: WatchKey | null = null,
  ): ReadableStream<Uint8Array> {
    const body = new AnswerBody(exchange, pieces, { ...this.#context, held }, watchKey);
    held.release(acquired);
    return new ReadableStream(body, { highWaterMark: 0 });
  }
}

type Context = {
  readonly held: Acquirable;
  /** Loads one piece per tick, for all answers together. */
  readonly loads: TickQueue;
  readonly deadlines: Deadlines;
  readonly stallMs: number;
};

/** The body stream of one large answer: pulled by the socket slice by slice, and holding one piece at a time. */
class AnswerBody {
  readonly #exchange: Exchange;
  readonly #next: Pieces<string | Uint8Array>["next"];
  readonly #close: (() => void) | undefined;
  readonly #unwatchKey: (() => void) | undefined;
  readonly #context: Context;
  /** The piece that is counted; the socket has got `#sent` of its bytes. */
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
    controller.enqueue(slice);
    this.#startStallTimer();
  }

  cancel(): void {
    this.#end();
  }

  /** Replaces the piece by the next one, at the end by an empty one. */
  async #loadNext(): Promise<void> {
    try {
      if (this.#next) await this.#context.loads.next();
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
      this.#cutOff("the answer was not read"),
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

/** Encodes text. Does not copy bytes. */
function toBuffer(piece: string | Uint8Array): Buffer {
  if (typeof piece === "string") return Buffer.from(piece);
  return Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
}

/** Compares characters, each of which is at least one byte: counting bytes would slow down every small answer. */
function isSmall({ first, next }: Encoded): boolean {
  return next === null && first.length <= limit.ANSWER_UNCOUNTED_MAX_BYTES;
}

/** An empty body: the answer to HEAD does not have the length of the body that GET would stream. */
function headOnly(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.close() }, { highWaterMark: 0 });
}
