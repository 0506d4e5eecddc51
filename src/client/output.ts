/**
 * Sends the output of a task while its handler runs: every second, or as soon as there are 16 KiB. The handler never waits
 * for the hub: what cannot be sent in time is dropped, oldest first, and the output says how much.
 *
 * Invariant: one request at a time, each at the offset where the last one ended, so that a repeat after a fault changes
 * nothing. Must not: hold more than PENDING_MAX_BYTES, or throw into the handler.
 */
import { HubUnreachable, LuxHubError, isTemporary, linkedController, sleepUnlessAborted } from "./http.ts";

/** Appends text at an offset of the attempt's output. Resolves with the next offset; must not retry by itself. */
export type AppendOutput = (offset: number, data: string) => Promise<number>;

const EVERY_MS = 1_000;
const SOON_BYTES = 16 * 1024;
/** The hub takes so much at once. */
const SENT_MAX_BYTES = 64 * 1024;
/** What may wait for the hub. */
const PENDING_MAX_BYTES = 256 * 1024;
/** A piece has at most three bytes for each of these. */
const PIECE_MAX_CHARS = 8 * 1024;
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 10_000;

type Piece = { text: string; bytes: number };

export class OutputSender {
  readonly #append: AppendOutput;
  readonly #signal: AbortSignal;
  readonly #pending: Piece[] = [];
  #pendingBytes = 0;
  #dropped = 0;
  #offset = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<void> | null = null;
  /** Between two requests, while there are less than SOON_BYTES. */
  #isGathering = false;
  #endPause = (): void => {};
  /** The rest is being sent: what the hub refuses now is not tried again. */
  #isEnding = false;
  #isOver = false;

  /** @param signal aborts when nothing more may be sent */
  constructor(append: AppendOutput, signal: AbortSignal) {
    this.#append = append;
    this.#signal = signal;
  }

  /** Takes text. Never waits. What the hub cannot store, NUL and lone surrogates, is replaced by U+FFFD. */
  write(text: string): void {
    if (this.#isOver || this.#isEnding || text === "") return;
    for (const piece of piecesOf(text.toWellFormed().replaceAll("\0", "\ufffd"))) this.#add(piece);
    while (this.#pendingBytes > PENDING_MAX_BYTES) this.#dropped += this.#shift()?.bytes ?? 0;
    const isSoon = this.#pendingBytes >= SOON_BYTES;
    if (isSoon && this.#isGathering) this.#endPause();
    if (this.#sending !== null) return;
    if (isSoon) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), EVERY_MS);
  }

  /** Sends the rest, and waits for a hub that cannot be reached until the signal aborts. Never rejects. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.#endPause();
    if (!this.#isOver && this.#pending.length > 0) this.#send();
    await this.#sending;
    this.stop();
  }

  stop(): void {
    this.#isOver = true;
    this.#endPause();
    clearTimeout(this.#timer);
    this.#pending.length = 0;
    this.#pendingBytes = 0;
  }

  #add(text: string): void {
    const bytes = bytesOf(text);
    const last = this.#pending.at(-1);
    this.#pendingBytes += bytes;
    if (last && last.text.length + text.length <= PIECE_MAX_CHARS) {
      last.text += text;
      last.bytes += bytes;
    } else this.#pending.push({ text, bytes });
  }

  #shift(): Piece | undefined {
    const piece = this.#pending.shift();
    this.#pendingBytes -= piece?.bytes ?? 0;
    return piece;
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
  }

  /** Sends what is pending: until the end one request a second, or one as soon as there are 16 KiB. */
  async #sendAll(): Promise<void> {
    for (let data = this.#take(); data !== "" && !this.#isOver; data = this.#take()) {
      if (!(await this.#sendOne(data))) return this.stop();
      if (this.#isEnding || this.#pendingBytes === 0 || this.#pendingBytes >= SOON_BYTES) continue;
      this.#isGathering = true;
      const goesOn = await this.#pause(EVERY_MS);
      this.#isGathering = false;
      if (!goesOn) return;
    }
  }

  #take(): string {
    let data = "";
    if (this.#dropped > 0) data = `\n[${this.#dropped} bytes of output were dropped: the hub was too slow]\n`;
    this.#dropped = 0;
    for (let bytes = bytesOf(data); this.#pending[0] && bytes + this.#pending[0].bytes <= SENT_MAX_BYTES;) {
      const piece = this.#shift();
      bytes += piece?.bytes ?? 0;
      data += piece?.text ?? "";
    }
    return data;
  }

  /** Moves the offset on. Returns false when the hub refuses the data, or the signal aborts. */
  async #sendOne(data: string): Promise<boolean> {
    let rest = data;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      try {
        this.#offset = await this.#append(this.#offset, rest);
        return true;
      } catch (error) {
        // A copy that has taken over may lack the newest.
        const expected =
          error instanceof LuxHubError && error.code === "wrong_offset" ? error.problem["expected"] : null;
        if (typeof expected === "number" && expected < this.#offset) {
          rest = `\n[${this.#offset - expected} bytes of output were lost with the hub]\n${data}`;
          this.#offset = expected;
          continue;
        }
        const isAway = error instanceof HubUnreachable || (error instanceof LuxHubError && isAwayBy(error));
        const mayPass = isAway || isTemporary(error) || (error instanceof LuxHubError && error.status >= 500);
        if (this.#isOver || !mayPass || (this.#isEnding && !isAway)) return false;
        const retryAfterMs = error instanceof LuxHubError ? (error.retryAfterMs ?? 0) : 0;
        if (!(await this.#pause(Math.max(retryAfterMs, pauseMs)))) return false;
      }
    }
  }

  /** Returns false when nothing more may be sent. */
  async #pause(ms: number): Promise<boolean> {
    const pause = linkedController(this.#signal);
    this.#endPause = () => pause.abort();
    await sleepUnlessAborted(ms, pause.signal);
    pause.abort();
    return !this.#signal.aborted && !this.#isOver;
  }
}

/** The hub, or its database, cannot be reached: nothing else gets through either. */
function isAwayBy({ status }: LuxHubError): boolean {
  return [502, 503, 504].includes(status);
}

function piecesOf(text: string): readonly string[] {
  const pieces: string[] = [];
  for (let from = 0; from < text.length;) {
    let end = Math.min(text.length, from + PIECE_MAX_CHARS);
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end--;
    pieces.push(text.slice(from, end));
    from = end;
  }
  return pieces;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

const encoder = new TextEncoder();

function bytesOf(text: string): number {
  return encoder.encode(text).length;
}
