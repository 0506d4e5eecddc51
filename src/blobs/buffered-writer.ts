/**
 * The base class of both engines' blob writers: counts, hashes and buffers the bytes.
 *
 * Invariant: after finish(), discard() or a failed operation, a write throws. discard() waits for a running operation.
 * Must not: hold more than one buffer in memory.
 */
import type { BlobWriter, FinishedBlob } from "./blobs.ts";
import { assert } from "../lib/assert.ts";

export type WriterEvents = {
  /** Bytes were made durable, or an operation has failed. */
  readonly onWritten: (succeeded: boolean) => void;
  readonly onEnd: () => void;
};

export abstract class BufferedWriter implements BlobWriter {
  readonly blobId: string;
  readonly #events: WriterEvents;
  readonly #hash = new Bun.CryptoHasher("sha256");
  readonly #buffer: Uint8Array;
  #bufferedBytes = 0;
  #size = 0;
  #state: "open" | "broken" | "ended" = "open";
  /** discard() waits for it. */
  #operation: Promise<unknown> = Promise.resolve();
  #discarding: Promise<void> | null = null;

  constructor(blobId: string, bufferBytes: number, events: WriterEvents) {
    this.blobId = blobId;
    this.#buffer = new Uint8Array(bufferBytes);
    this.#events = events;
  }

  /** The buffer is overwritten after this has resolved. */
  protected abstract append(bytes: Uint8Array): Promise<void>;

  protected abstract complete(last: Uint8Array, size: number): Promise<void>;

  protected abstract abandon(): Promise<void>;

  get size(): number {
    return this.#size;
  }

  write(chunk: Uint8Array): Promise<void> | void {
    this.#assertOpen();
    this.#hash.update(chunk);
    this.#size += chunk.byteLength;
    if (this.#bufferedBytes + chunk.byteLength >= this.#buffer.byteLength)
      return this.#run(() => this.#spill(chunk));
    this.#push(chunk);
  }

  finish(): Promise<FinishedBlob> {
    this.#assertOpen();
    return this.#run(async () => {
      await this.complete(this.#takeBuffered(), this.#size);
      assert(this.#bufferedBytes === 0, "nothing is written while it finishes");
      this.#state = "ended";
      this.#events.onWritten(true);
      this.#events.onEnd();
      return { sha256: this.#hash.digest("hex"), size: this.#size };
    });
  }

  discard(): Promise<void> {
    this.#discarding ??= this.#discard();
    return this.#discarding;
  }

  /** `store` must make all bytes so far durable. More may be written after it. */
  protected flush(store: (bytes: Uint8Array) => Promise<void>): Promise<void> {
    this.#assertOpen();
    return this.#run(async () => {
      await store(this.#takeBuffered());
      this.#events.onWritten(true);
    });
  }

  async #discard(): Promise<void> {
    await this.#operation.catch(() => {}); // the caller of the operation gets the error
    if (this.#state === "ended") return;
    this.#state = "ended";
    try {
      await this.abandon();
    } finally {
      this.#events.onEnd();
    }
  }

  #assertOpen(): void {
    if (this.#state !== "open" || this.#discarding)
      throw new Error(`blob ${this.blobId} accepts no more bytes`);
  }

  async #run<T>(start: () => Promise<T>): Promise<T> {
    const operation = start();
    this.#operation = operation;
    try {
      return await operation;
    } catch (error) {
      this.#state = "broken";
      this.#events.onWritten(false);
      throw error;
    }
  }

  async #spill(chunk: Uint8Array): Promise<void> {
    for (let offset = 0; offset < chunk.byteLength;) {
      const bytes = chunk.subarray(offset, offset + this.#buffer.byteLength - this.#bufferedBytes);
      this.#push(bytes);
      offset += bytes.byteLength;
      if (this.#bufferedBytes === this.#buffer.byteLength) await this.append(this.#takeBuffered());
    }
  }

  #push(bytes: Uint8Array): void {
    assert(this.#bufferedBytes + bytes.byteLength <= this.#buffer.byteLength, "the buffer has room for them");
    this.#buffer.set(bytes, this.#bufferedBytes);
    this.#bufferedBytes += bytes.byteLength;
  }

  /** The bytes stay valid until the next push. */
  #takeBuffered(): Uint8Array {
    const bytes = this.#buffer.subarray(0, this.#bufferedBytes);
    this.#bufferedBytes = 0;
    return bytes;
  }
}
