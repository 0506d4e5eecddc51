/**
 * A blob that is being written, as both engines write one: counted, hashed, and gathered to parts. What becomes of a
 * part is the engine's.
 *
 * Invariant: after finish() or discard(), and after a step that failed, nothing more is taken; discard() waits for the
 * step that runs.
 * Must not: hold more than one part in memory.
 */
import type { BlobWriter, FinishedBlob } from "./blobs.ts";

export type WriterNews = {
  /** Whether something was made durable, or could not be. */
  readonly onWritten: (succeeded: boolean) => void;
  readonly onEnd: () => void;
};

export abstract class PartWriter implements BlobWriter {
  readonly blobId: string;
  readonly #news: WriterNews;
  readonly #hash = new Bun.CryptoHasher("sha256");
  readonly #part: Uint8Array;
  #gathered = 0;
  #size = 0;
  #state: "open" | "broken" | "ended" = "open";
  /** What the engine is doing now. */
  #working: Promise<unknown> = Promise.resolve();
  #discarding: Promise<void> | null = null;

  constructor(blobId: string, partBytes: number, news: WriterNews) {
    this.blobId = blobId;
    this.#part = new Uint8Array(partBytes);
    this.#news = news;
  }

  /** Keeps a part, which is no longer the engine's when it has answered. */
  protected abstract append(part: Uint8Array): Promise<void>;

  /** Keeps what is left, makes all of it durable, and the blob one that can be opened. */
  protected abstract complete(last: Uint8Array, size: number): Promise<void>;

  /** Takes away what was kept, also after a step that failed. */
  protected abstract abandon(): Promise<void>;

  get size(): number {
    return this.#size;
  }

  write(chunk: Uint8Array): Promise<void> | void {
    this.#assertOpen();
    this.#hash.update(chunk);
    this.#size += chunk.byteLength;
    if (this.#gathered + chunk.byteLength >= this.#part.byteLength)
      return this.#work(() => this.#spill(chunk));
    this.#gather(chunk);
  }

  finish(): Promise<FinishedBlob> {
    this.#assertOpen();
    return this.#work(async () => {
      await this.complete(this.#takePart(), this.#size);
      this.#state = "ended";
      this.#news.onWritten(true);
      this.#news.onEnd();
      return { sha256: this.#hash.digest("hex"), size: this.#size };
    });
  }

  discard(): Promise<void> {
    this.#discarding ??= this.#discard();
    return this.#discarding;
  }

  /** What was written so far goes through `step`, and is durable when that has answered. More may follow. */
  protected persist(step: (part: Uint8Array) => Promise<void>): Promise<void> {
    this.#assertOpen();
    return this.#work(async () => {
      await step(this.#takePart());
      this.#news.onWritten(true);
    });
  }

  async #discard(): Promise<void> {
    await this.#working.catch(() => {}); // its caller has that error
    if (this.#state === "ended") return;
    this.#state = "ended";
    try {
      await this.abandon();
    } finally {
      this.#news.onEnd();
    }
  }

  #assertOpen(): void {
    if (this.#state !== "open" || this.#discarding) throw new Error(`blob ${this.blobId} takes no more`);
  }

  async #work<T>(step: () => Promise<T>): Promise<T> {
    const working = step();
    this.#working = working;
    try {
      return await working;
    } catch (error) {
      this.#state = "broken";
      this.#news.onWritten(false);
      throw error;
    }
  }

  /** Fills the part and hands it over, as often as the bytes do. */
  async #spill(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.byteLength;) {
      const bytes = chunk.subarray(at, at + this.#part.byteLength - this.#gathered);
      this.#gather(bytes);
      at += bytes.byteLength;
      if (this.#gathered === this.#part.byteLength) await this.append(this.#takePart());
    }
  }

  #gather(bytes: Uint8Array): void {
    this.#part.set(bytes, this.#gathered);
    this.#gathered += bytes.byteLength;
  }

  #takePart(): Uint8Array {
    const part = this.#part.subarray(0, this.#gathered);
    this.#gathered = 0;
    return part;
  }
}
