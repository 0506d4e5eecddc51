/**
 * A part of a file as a stream that its reader can cancel at any time. Opens the file for the first read: a stream that
 * nobody reads holds nothing.
 */
import { assert } from "../lib/assert.ts";
import { type FileHandle, open } from "node:fs/promises";
import { FILE_PIECE_MAX_BYTES } from "../domain/limits.ts";

/** Reads from `start` to before `endExclusive`, at most FILE_PIECE_MAX_BYTES for each read and nothing in advance. */
export function fileStream(path: string, start: number, endExclusive: number): ReadableStream<Uint8Array> {
  return new ReadableStream(new FilePart(path, start, endExclusive), { highWaterMark: 0 });
}

class FilePart {
  readonly #path: string;
  readonly #end: number;
  #position: number;
  #file: FileHandle | null = null;
  #isReading = false;
  #isCancelled = false;

  constructor(path: string, start: number, endExclusive: number) {
    assert(0 <= start && start <= endExclusive, "a part of a file begins before it ends");
    this.#path = path;
    this.#position = start;
    this.#end = endExclusive;
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#isReading = true;
    let isOver = true; // at an error too
    try {
      const piece = await this.#read();
      if (this.#isCancelled) return;
      isOver = this.#position === this.#end;
      controller.enqueue(piece);
      if (isOver) controller.close();
    } finally {
      this.#isReading = false;
      if (isOver) await this.#close();
    }
  }

  /** A running read must end before its file may be closed: the system could give the descriptor to another file. */
  async cancel(): Promise<void> {
    this.#isCancelled = true;
    if (!this.#isReading) await this.#close();
  }

  /** @throws {Error} when the file is missing or has become shorter */
  async #read(): Promise<Uint8Array> {
    this.#file ??= await open(this.#path);
    const most = Math.min(this.#end - this.#position, FILE_PIECE_MAX_BYTES);
    const { bytesRead, buffer } = await this.#file.read(new Uint8Array(most), 0, most, this.#position);
    if (bytesRead === 0) throw new Error("a file has become shorter while it was read");
    this.#position += bytesRead;
    return buffer.subarray(0, bytesRead);
  }

  async #close(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }
}
