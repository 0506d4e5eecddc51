/**
 * Writes and reads the tar archive of a backup, in one pass, one file after the other. modern-tar handles the format
 * (POSIX ustar; a file above 8 GiB has a pax header); this file handles the order and the checksums, and
 * backup-target.ts where the archive is written to.
 *
 * Invariant: memory use does not grow with the size of a file.
 */
import { type FileHandle, open } from "node:fs/promises";
import { type ParsedTarEntry, createTarDecoder, createTarPacker } from "modern-tar";
import { reasonOf } from "../lib/reason.ts";
import type { ArchiveSink } from "./backup-target.ts";

const CHUNK_BYTES = 1024 * 1024;
const FILE_MODE = 0o600;

/** A copied file. `sha256` is lower-case hex; `whole` is false when the file could not be read to its end. */
export type Copied = { readonly size: number; readonly sha256: string; readonly whole: boolean };

/** Called with the number of bytes of each chunk; may throw to cancel the copy. */
export type OnBytes = (bytes: number) => void;

export class ArchiveWriter {
  readonly #sink: ArchiveSink;
  readonly #modifiedAt: Date;
  readonly #packer = createTarPacker();
  /** Resolves when the sink has taken the packer's output; rejects when a write fails. */
  readonly #written: Promise<void>;
  #size = 0;

  /** `modifiedAt`: epoch milliseconds, for every entry. */
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
    this.#written.catch(() => {}); // end() awaits it
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Appends a file. Unreadable bytes are replaced by zeros, because the header already has the size.
   * @throws the system's error when the file cannot be opened
   */
  async addFile(name: string, path: string, onBytes: OnBytes): Promise<Copied> {
    const source = await open(path, "r");
    try {
      const { size } = await source.stat();
      const body = this.#add(name, size);
      const hash = new Bun.CryptoHasher("sha256");
      let whole = true;
      for (let left = size; left > 0;) {
        const buffer = new Uint8Array(Math.min(left, CHUNK_BYTES)); // not reused: the packer keeps a reference
        const read: number = whole ? await readSome(source, buffer, size - left) : 0;
        whole = read > 0;
        const chunk = whole ? buffer.subarray(0, read) : buffer;
        hash.update(chunk);
        await body.write(chunk);
        left -= chunk.length;
        onBytes(chunk.length);
      }
      await body.close();
      return { size, sha256: hash.digest("hex"), whole };
    } finally {
      await source.close();
    }
  }

  async addBytes(name: string, bytes: Uint8Array): Promise<void> {
    const body = this.#add(name, bytes.length);
    await body.write(bytes);
    await body.close();
  }

  /** Ends the archive. The sink has all its bytes afterwards, but has not finished. */
  async end(): Promise<void> {
    this.#packer.controller.finalize();
    await this.#written;
  }

  /** Stops the archive and abandons the sink, unless that has finished. */
  async close(): Promise<void> {
    this.#packer.controller.error(new Error("the archive is closed")); // has no effect after end()
    await this.#written.catch(() => {}); // the sink must not be abandoned during a write
    await this.#sink.abandon();
  }

  #add(name: string, size: number): WritableStreamDefaultWriter<Uint8Array> {
    const header = { name, size, mtime: this.#modifiedAt, mode: FILE_MODE };
    const body = this.#packer.controller.add(header).getWriter();
    body.closed.catch(() => {}); // write() and close() reject with the same error
    return body;
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;)
    done += (await file.write(bytes, done, bytes.length - done)).bytesWritten;
}

/** The number of bytes read; 0 at the end of the file and on a read error. */
async function readSome(file: FileHandle, into: Uint8Array, at: number): Promise<number> {
  try {
    return (await file.read(into, 0, into.length, at)).bytesRead;
  } catch {
    return 0;
  }
}

/** An entry of an archive; next() returns only plain files. */
export type Entry = ParsedTarEntry;

/** Reads an archive in order: next(), then copyTo() or bytes() for that entry, and so on. */
export class ArchiveReader {
  readonly #file: FileHandle;
  readonly #entries: ReturnType<typeof entriesOf>;

  private constructor(file: FileHandle) {
    this.#file = file;
    this.#entries = bytesOf(file)
      .pipeThrough(createTarDecoder({ strict: true }))
      .getReader();
  }

  static async open(path: string): Promise<ArchiveReader> {
    return new ArchiveReader(await open(path, "r"));
  }

  /** The next entry; null at the archive's end. @throws {Error} when the archive is damaged or cut short */
  async next(): Promise<Entry | null> {
    const { value, done } = await this.#entries.read();
    if (done) return null;
    if (value.header.type !== "file") throw new Error("it holds something other than plain files");
    return value;
  }

  /** Copies an entry into a new file that only its owner can read; returns when it is on disk. */
  async copyTo(path: string, { header, body }: Entry, onBytes: OnBytes): Promise<Copied> {
    const hash = new Bun.CryptoHasher("sha256");
    const target = await open(path, "wx", FILE_MODE);
    try {
      for await (const chunk of body) {
        hash.update(chunk);
        await writeAll(target, chunk);
        onBytes(chunk.length);
      }
      await target.datasync();
    } finally {
      await target.close();
    }
    return { size: header.size, sha256: hash.digest("hex"), whole: true };
  }

  /** Reads a small entry into memory. @throws {Error} if it is larger than `maxBytes` */
  async bytes({ header, body }: Entry, maxBytes: number): Promise<Uint8Array> {
    if (header.size > maxBytes) throw new Error("it is damaged");
    return new Uint8Array(await new Response(body).arrayBuffer());
  }

  async close(): Promise<void> {
    await this.#entries.cancel().catch(() => {});
    await this.#file.close();
  }
}

function entriesOf(file: FileHandle) {
  return bytesOf(file)
    .pipeThrough(createTarDecoder({ strict: true }))
    .getReader();
}

/**
 * Reads a file as a stream. Its errors have no code, which distinguishes them from errors about other files
 * (restore.ts).
 */
function bytesOf(file: FileHandle): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull: async (controller) => {
      const buffer = new Uint8Array(CHUNK_BYTES);
      const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, null).catch((error: unknown) => {
        throw new Error(reasonOf(error), { cause: error });
      });
      if (bytesRead === 0) controller.close();
      else controller.enqueue(buffer.subarray(0, bytesRead));
    },
  });
}
