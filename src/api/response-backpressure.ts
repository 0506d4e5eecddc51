/**
 * Large answers on their way. What a caller has not taken yet is held, and callers that take nothing are many at no cost
 * of theirs: so all that is held of large answers together has a budget, whose share an answer gives back when it has
 * been taken, when its caller hangs up, or when it has not moved on for a while and is cut off.
 *
 * Invariant: a read that finds no room drops what it has loaded, waits for its turn without holding anything, and loads
 * anew. What was written cannot be loaded anew, so its answer is counted without waiting; a receive, which may take much
 * out, waits before it does (mail/embedded.ts). A small answer goes out as it is: the socket takes it at once.
 */
import * as limit from "../domain/limits.ts";
import type { Exchange } from "../http/exchange.ts";
import { Deadlines } from "../http/deadlines.ts";
import { Budget } from "../lib/budget.ts";
import { type Pieces, inParts } from "./parts.ts";

/** The JSON of an answer, or its first part and the way to the others. */
export type Worded = { readonly first: string; readonly rest: AsyncGenerator<string> | null };

export type Body = string | ReadableStream<Uint8Array>;

type Controller = ReadableStreamDefaultController<Uint8Array>;

type Desk = {
  readonly budget: Budget;
  readonly deadlines: Deadlines;
  readonly stallMs: number;
  /** Sees to it that the connection is closed although it has still something to send. */
  readonly cut: () => void;
};

const NOTHING = Buffer.alloc(0);
/** An answer that ends in an error does not close a connection that is stuck: its idle timeout does. */
const CUT_IDLE_SECONDS = 1;

export class Outbox {
  readonly #budget: Budget;
  readonly #patience: { readonly stallMs: number; readonly turnMs: number };
  readonly #deadlines = new Deadlines();
  /** Whose turn it is to load a part of a long answer. */
  readonly #turn = new Budget(1);

  /** @param budget in bytes */
  constructor(budget: Budget, patience = { stallMs: limit.ANSWER_STALL_MS, turnMs: limit.ANSWER_TURN_MS }) {
    this.#budget = budget;
    this.#patience = patience;
  }

  /**
   * The body of what `load` reads; called again when there was no room for what it had read.
   * @throws {BudgetSpent} when no room was made in time
   */
  async ofRead(exchange: Exchange, load: () => Promise<Worded>): Promise<Body> {
    const loaded = await load();
    if (isSmall(loaded)) return loaded.first;
    if (exchange.request.method === "HEAD") return headOnly();
    const bytes = Buffer.byteLength(loaded.first);
    if (this.#budget.takeNow(bytes)) return this.#stream(exchange, loaded, bytes);
    return this.#inTurn(exchange, load, bytes);
  }

  /** The body of what was written. */
  ofWrite(exchange: Exchange, text: string): Body {
    const worded = { first: text, rest: null };
    return isSmall(worded) ? text : this.#stream(exchange, worded, 0);
  }

  /** Beside the first try, for what that has loaded not to be held while this one waits. */
  async #inTurn(exchange: Exchange, load: () => Promise<Worded>, bytes: number): Promise<Body> {
    await this.#budget.takeWithin(bytes, this.#patience.turnMs);
    try {
      if (!exchange.request.signal.aborted) return this.#stream(exchange, await load(), bytes);
    } catch (error) {
      this.#budget.give(bytes);
      throw error;
    }
    this.#budget.give(bytes);
    return ""; // nobody hears it
  }

  /** @param taken how much of the budget is its own already */
  #stream(exchange: Exchange, { first, rest }: Worded, taken: number): ReadableStream<Uint8Array> {
    const pieces = rest === null ? { first: Buffer.from(first), rest } : inParts(first, rest, this.#turn);
    this.#budget.give(taken - pieces.first.length);
    const cut = (): void => exchange.server.timeout(exchange.request, CUT_IDLE_SECONDS);
    const { stallMs } = this.#patience;
    const desk = { budget: this.#budget, deadlines: this.#deadlines, stallMs, cut };
    const dispatch = new Dispatch(pieces, desk);
    return new ReadableStream(dispatch, { highWaterMark: 0 });
  }
}

/** One answer on its way: handed to the socket slice by slice, the next when the last was taken. */
class Dispatch {
  readonly #desk: Desk;
  readonly #rest: Pieces["rest"];
  /** What is counted and has not been taken whole; `#at`: how much of it the socket has been handed. */
  #piece: Buffer;
  #at = 0;
  #controller: Controller | null = null;
  #deadline: ReturnType<Deadlines["add"]> | null = null;
  #isOver = false;

  constructor({ first, rest }: Pieces, desk: Desk) {
    this.#piece = first;
    this.#rest = rest;
    this.#desk = desk;
    this.#wait(); // also for the answer to be begun at all
  }

  start(controller: Controller): void {
    this.#controller = controller;
  }

  async pull(controller: Controller): Promise<void> {
    this.#stopWaiting();
    if (this.#at === this.#piece.length && !(await this.#next())) {
      if (this.#isOver) return;
      this.#end();
      controller.close();
      return;
    }
    if (this.#isOver) return;
    controller.enqueue(this.#piece.subarray(this.#at, (this.#at += limit.ANSWER_SLICE_BYTES)));
    this.#at = Math.min(this.#at, this.#piece.length);
    this.#wait();
  }

  cancel(): void {
    this.#end();
  }

  async #next(): Promise<boolean> {
    try {
      const next = await this.#rest?.next();
      if (next === undefined || next.done || this.#isOver) return false;
      this.#desk.budget.give(this.#piece.length - next.value.length); // below 0: a part is there already
      this.#piece = next.value;
      this.#at = 0;
      return true;
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  #wait(): void {
    this.#deadline = this.#desk.deadlines.add(this.#desk.stallMs, () => {
      this.#end();
      this.#desk.cut();
      this.#controller?.error(new Error("the answer was not taken"));
    });
  }

  #stopWaiting(): void {
    if (this.#deadline) this.#desk.deadlines.delete(this.#deadline);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopWaiting();
    this.#desk.budget.give(this.#piece.length);
    this.#piece = NOTHING;
    this.#rest?.return(undefined).catch(() => {}); // it holds nothing but its place
  }
}

/** In characters, of which each is a byte at least: the hot path does not look at them. */
function isSmall({ first, rest }: Worded): boolean {
  return rest === null && first.length <= limit.ANSWER_UNCOUNTED_MAX_BYTES;
}

/** HEAD is answered with the head alone; the length of what comes in pieces is not told. */
function headOnly(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.close() }, { highWaterMark: 0 });
}
