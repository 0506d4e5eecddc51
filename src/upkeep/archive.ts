/**
 * Writes and reads the tar archive of a backup in one pass: its order and its checksums. modern-tar handles the format
 * (POSIX ustar; a file above 8 GiB has a pax header), backup-target.ts where it is written to.
 *
 * Invariant: memory use does not grow with the size of a file.
 */
import { type ParsedTarEntry, createTarDecoder, createTarPacker } from "modern-tar";
import { reasonOf } from "../lib/reason.ts";
import type { ArchiveSink } from "./backup-target.ts";
import {
  ArchiveUnread,
  BadArchive,
  type Copied,
  FILE_MODE,
  type OnBytes,
  type StoredBytes,
} from "./upkeep.ts";

const CHUNK_BYTES = 1024 * 1024;

/** False: the file could not be read to its end. */
export type Archived = Copied & { readonly isWhole: boolean };

export class ArchiveWriter {
  readonly #sink: ArchiveSink;
  readonly #modifiedAt: Date;
  readonly #packer = createTarPacker();
  /** When the sink has taken the packer's output; rejects when a write fails. */
  readonly #written: Promise<void>;
  /** The packer's own error hides it. */
  #failure: unknown = null;
  #size = 0;

  /** Epoch milliseconds, for every entry. */
  constructor(sink: ArchiveSink, modifiedAt: number) {
    this.#sink = sink;
    this.#modifiedAt = new Date(modifiedAt);
    // A failed write fails the packer, and so every later add, with the same error.
    this.#written = this.#packer.readable.pipeTo(
      new WritableStream({
        write: async (bytes) => {
          await sink.write(bytes);
          this.#size += bytes.length;
        },
      }),
    );
    this.#written.catch((error: unknown) => (this.#failure = error)); // end() awaits it
  }

  get size(): number {
    return this.#size;
  }

  /** Zeros replace missing bytes, because the header already has the size. */
  async add(name: string, { size, chunks }: StoredBytes, onBytes: OnBytes): Promise<Archived> {
    const body = this.#add(name, size);
    const hash = new Bun.CryptoHasher("sha256");
    let unread = size;
    const put = async (bytes: Uint8Array): Promise<void> => {
      hash.update(bytes);
      await body.write(bytes).catch(this.#fail);
      unread -= bytes.length;
      onBytes(bytes.length);
    };
    for await (const chunk of chunks) {
      if (unread === 0) break;
      await put(chunk.subarray(0, unread));
    }
    const isWhole = unread === 0;
    while (unread > 0) await put(new Uint8Array(Math.min(unread, CHUNK_BYTES)));
    await body.close().catch(this.#fail);
    return { size, sha256: hash.digest("hex"), isWhole };
  }

  async addText(name: string, text: string): Promise<void> {
    const bytes = new TextEncoder().encode(text);
    const body = this.#add(name, bytes.length);
    await body.write(bytes).catch(this.#fail);
    await body.close().catch(this.#fail);
  }

  /** The sink has all bytes then, but has not finished. */
  async end(): Promise<void> {
    this.#packer.controller.finalize();
    await this.#written;
  }

  /** Abandons the sink, unless that has finished. */
  async close(): Promise<void> {
    this.#packer.controller.error(new Error("the archive is closed")); // has no effect after end()
    await this.#written.catch(() => {}); // the sink must not be abandoned during a write
    await this.#sink.abandon();
  }

  #add(name: string, size: number): WritableStreamDefaultWriter<Uint8Array> {
    const header = { name, size, mtime: this.#modifiedAt, mode: FILE_MODE };
    const body = this.#packer.controller.add(header).getWriter();
    body.closed.catch(() => {}); // write() and close() reject too
    return body;
  }

  readonly #fail = (error: unknown): never => {
    throw this.#failure ?? error;
  };
}

/** next() returns only plain files. */
export type Entry = ParsedTarEntry;

/** In order: next(), then chunks() or text() for that entry, and so on. */
export class ArchiveReader {
  readonly #entries: ReturnType<typeof entriesOf>;

  constructor(bytes: ReadableStream<Uint8Array>) {
    this.#entries = entriesOf(bytes);
  }

  /** Null at the archive's end. @throws {BadArchive | ArchiveUnread} */
  async next(): Promise<Entry | null> {
    const { value, done } = await this.#entries.read().catch(toArchiveError);
    if (done) return null;
    if (value.header.type !== "file") throw new BadArchive("it holds something other than plain files");
    return value;
  }

  /** @throws {BadArchive | ArchiveUnread} */
  async *chunks({ body }: Entry): AsyncGenerator<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      toArchiveError(error);
    }
  }

  /** @throws {BadArchive} if it is larger than `maxBytes` */
  async text(entry: Entry, maxBytes: number): Promise<string> {
    if (entry.header.size > maxBytes) throw new BadArchive("it is damaged");
    return new Response(entry.body).text().catch(toArchiveError);
  }

  async close(): Promise<void> {
    await this.#entries.cancel().catch(() => {});
  }
}

function entriesOf(bytes: ReadableStream<Uint8Array>) {
  return bytes.pipeThrough(createTarDecoder({ strict: true })).getReader();
}

function toArchiveError(error: unknown): never {
  throw error instanceof ArchiveUnread ? error : new BadArchive(reasonOf(error), { cause: error });
}
