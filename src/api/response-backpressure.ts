/**
 * Response backpressure: the bound on what is held for callers that read their answers slowly or not at all. A semaphore
 * over bytes counts what is held of all large answers together; an answer releases its bytes when it has been read, when
 * its caller hangs up, and when it has not moved on for a while and is cut off.
 *
 * Invariant: a read that finds no room drops what it has loaded, waits without holding anything, and loads again. What
 * was written cannot be loaded again: its answer is counted without waiting. A receive, which may take much out, waits
 * before it does (mail/embedded.ts). A small answer is not counted: the socket takes it at once.
 */
import * as limit from "../domain/limits.ts";
import type { Exchange } from "../http/exchange.ts";
import { Deadlines } from "../http/deadlines.ts";
import { type Semaphore, TickQueue } from "../lib/semaphore.ts";

/** The JSON of an answer: the first piece, and how to make the next, which is null at the end; `next` is null: that is all. */
export type Encoded = { readonly first: string; readonly next: (() => Promise<string | null>) | null };

export type Body = string | ReadableStream<Uint8Array>;

const NOTHING = Buffer.alloc(0);
/** An answer that ends in an error does not close a connection that is stuck: its idle timeout does. */
const CUT_IDLE_SECONDS = 1;

export class ResponseBackpressure {
  readonly #held: Semaphore;
  readonly #waitMs: number;
  readonly #context: Context;

  /** @param held bytes held of large answers; callers that must not crowd out others get a semaphore of their own */
  constructor(
    held: Semaphore,
    { stallMs, waitMs } = { stallMs: limit.ANSWER_STALL_MS, waitMs: limit.ANSWER_WAIT_MS },
  ) {
    this.#held = held;
    this.#waitMs = waitMs;
    this.#context = { held, loads: new TickQueue(), deadlines: new Deadlines(), stallMs };
  }

  /**
   * The body of what `load` reads. It is called again when there was no room for what it read.
   * @throws {AcquireTimeout} when no room was made in time
   */
  async ofRead(exchange: Exchange, load: () => Promise<Encoded>): Promise<Body> {
    const loaded = await load();
    if (isSmall(loaded)) return loaded.first;
    if (exchange.request.method === "HEAD") return headOnly();
    const bytes = Buffer.byteLength(loaded.first);
    if (this.#held.tryAcquire(bytes)) return this.#stream(exchange, loaded, bytes);
    return this.#reload(exchange, load, bytes);
  }

  /** The body of what was written. */
  ofWrite(exchange: Exchange, text: string): Body {
    const encoded = { first: text, next: null };
    return isSmall(encoded) ? text : this.#stream(exchange, encoded, 0);
  }

  /** A separate method, so the data of the first load can be freed while this one waits. */
  async #reload(exchange: Exchange, load: () => Promise<Encoded>, bytes: number): Promise<Body> {
    await this.#held.acquire(bytes, this.#waitMs);
    try {
      if (!exchange.request.signal.aborted) return this.#stream(exchange, await load(), bytes);
    } catch (error) {
      this.#held.release(bytes);
      throw error;
    }
    this.#held.release(bytes);
    return ""; // the caller has hung up
  }

  /** @param acquired what was acquired for it before it was loaded */
  #stream(exchange: Exchange, encoded: Encoded, acquired: number): ReadableStream<Uint8Array> {
    const body = new AnswerBody(exchange, encoded, this.#context);
    this.#held.release(acquired);
    return new ReadableStream(body, { highWaterMark: 0 });
  }
}

/** What all answers share. */
type Context = {
  readonly held: Semaphore;
  /** Pieces are loaded one per tick, whoever reads them. */
  readonly loads: TickQueue;
  readonly deadlines: Deadlines;
  readonly stallMs: number;
};

/** The body stream of one large answer: pulled by the socket slice by slice, and holding one piece at a time. */
class AnswerBody {
  readonly #exchange: Exchange;
  readonly #next: Encoded["next"];
  readonly #context: Context;
  /** What is counted; `#sent`: how much of it the socket has been given. */
  #piece: Buffer = NOTHING;
  #sent = 0;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #deadline: ReturnType<Deadlines["add"]> | null = null;
  #isOver = false;

  constructor(exchange: Exchange, { first, next }: Encoded, context: Context) {
    this.#exchange = exchange;
    this.#next = next;
    this.#context = context;
    this.#hold(Buffer.from(first));
    this.#startStallTimer(); // the answer may not even be begun
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

  /** The next piece takes the place of this one; at the end there is an empty one. */
  async #loadNext(): Promise<void> {
    try {
      if (this.#next) await this.#context.loads.next();
      const text = this.#isOver ? null : await this.#next?.();
      if (!this.#isOver) this.#hold(text ? Buffer.from(text) : NOTHING);
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  /** Counts the new piece before the old one is released: nobody else is granted what it needs. */
  #hold(piece: Buffer): void {
    this.#context.held.overdraw(piece.length);
    this.#context.held.release(this.#piece.length);
    this.#piece = piece;
    this.#sent = 0;
  }

  #startStallTimer(): void {
    this.#deadline = this.#context.deadlines.add(this.#context.stallMs, () => {
      this.#end();
      this.#exchange.server.timeout(this.#exchange.request, CUT_IDLE_SECONDS);
      this.#controller?.error(new Error("the answer was not read"));
    });
  }

  #stopStallTimer(): void {
    if (this.#deadline) this.#context.deadlines.delete(this.#deadline);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopStallTimer();
    this.#hold(NOTHING);
  }
}

/** In characters, each of which is at least one byte: counting bytes would cost every small answer time. */
function isSmall({ first, next }: Encoded): boolean {
  return next === null && first.length <= limit.ANSWER_UNCOUNTED_MAX_BYTES;
}

/** HEAD is answered with the head alone, without the length of what would be streamed. */
function headOnly(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.close() }, { highWaterMark: 0 });
}
