/**
 * A tar archive on disk, written and read in one pass, one file after the other.
 *
 * Invariant: one buffer is held, whatever the size of a file; an archive is closed only when all of it is on disk.
 */
import { type FileHandle, open } from "node:fs/promises";
import { reasonOf } from "../lib/reason.ts";
import { TAR_BLOCK_BYTES, type TarHead, decodeTarHead, encodeTarHead, tarPadding } from "../lib/tar.ts";

const BUFFER_BYTES = 1024 * 1024;
const FILE_MODE = 0o600;

/** What was copied: its SHA-256 in lower-case hex. `whole` is false when it could not be read to its end. */
export type Copied = { readonly size: number; readonly sha256: string; readonly whole: boolean };

/** Told of bytes as they are copied; throws to end the copying. */
export type OnBytes = (bytes: number) => void;

/** The archive cannot be written; the cause is the system's error. */
export class ArchiveUnwritten extends Error {
  override readonly name = "ArchiveUnwritten";

  constructor(cause: unknown) {
    super("the archive cannot be written", { cause });
  }
}

function unwritten(error: unknown): never {
  throw new ArchiveUnwritten(error);
}

export class ArchiveWriter {
  readonly #file: FileHandle;
  readonly #modifiedAt: number;
  readonly #buffer = new Uint8Array(BUFFER_BYTES);
  #size = 0;

  private constructor(file: FileHandle, modifiedAt: number) {
    this.#file = file;
    this.#modifiedAt = modifiedAt;
  }

  /**
   * Starts one in a new file, for its owner only. `modifiedAt`: epoch milliseconds, for everything in it.
   * @throws {ArchiveUnwritten} as every method that writes
   */
  static async create(path: string, modifiedAt: number): Promise<ArchiveWriter> {
    return new ArchiveWriter(await open(path, "wx", FILE_MODE).catch(unwritten), modifiedAt);
  }

  /** Bytes so far. */
  get size(): number {
    return this.#size;
  }

  /**
   * Appends a file; what cannot be read of it any more is filled up with zeros.
   * @throws the system's error when the file cannot be opened
   */
  async addFile(name: string, path: string, onBytes: OnBytes): Promise<Copied> {
    const source = await open(path, "r");
    try {
      const { size } = await source.stat();
      await this.#write(encodeTarHead({ name, size, modifiedAt: this.#modifiedAt }));
      return await this.#copy(source, size, onBytes);
    } finally {
      await source.close();
    }
  }

  /** Appends a file of these bytes. */
  async addBytes(name: string, bytes: Uint8Array): Promise<void> {
    await this.#write(encodeTarHead({ name, size: bytes.length, modifiedAt: this.#modifiedAt }));
    await this.#write(bytes);
    await this.#write(new Uint8Array(tarPadding(bytes.length)));
  }

  /** Ends the archive and returns when it is on disk. */
  async finish(): Promise<void> {
    await this.#write(new Uint8Array(2 * TAR_BLOCK_BYTES));
    await this.#file.sync().catch(unwritten);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #copy(source: FileHandle, size: number, onBytes: OnBytes): Promise<Copied> {
    const hash = new Bun.CryptoHasher("sha256");
    let whole = true;
    for (let left = size; left > 0;) {
      const wanted = this.#buffer.subarray(0, Math.min(left, BUFFER_BYTES));
      const read: number = whole ? await readSome(source, wanted, size - left) : 0;
      whole = read > 0;
      const chunk = whole ? wanted.subarray(0, read) : wanted.fill(0);
      hash.update(chunk);
      await this.#write(chunk);
      left -= chunk.length;
      onBytes(chunk.length);
    }
    await this.#write(new Uint8Array(tarPadding(size)));
    return { size, sha256: hash.digest("hex"), whole };
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      done += (await this.#file.write(bytes, done, bytes.length - done).catch(unwritten)).bytesWritten;
    }
    this.#size += bytes.length;
  }
}

/** How much was read; 0 when there is no more, or the disk does not give it. */
async function readSome(file: FileHandle, into: Uint8Array, at: number): Promise<number> {
  try {
    return (await file.read(into, 0, into.length, at)).bytesRead;
  } catch {
    return 0;
  }
}

/** Reads an archive from its beginning: next(), then one of the others for the file it told of, and so on. */
export class ArchiveReader {
  readonly #file: FileHandle;
  readonly #buffer = new Uint8Array(BUFFER_BYTES);

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  static async open(path: string): Promise<ArchiveReader> {
    return new ArchiveReader(await open(path, "r"));
  }

  /** The next file; null at the archive's end. @throws {Error} when the archive is damaged or cut short */
  async next(): Promise<TarHead | null> {
    const block = this.#buffer.subarray(0, TAR_BLOCK_BYTES);
    await this.#fill(block);
    return decodeTarHead(block);
  }

  /** Copies the bytes of the file into a new one, for its owner only, and returns when they are on disk. */
  async copyTo(path: string, { size }: TarHead, onBytes: OnBytes): Promise<Copied> {
    const hash = new Bun.CryptoHasher("sha256");
    const target = await open(path, "wx", FILE_MODE);
    try {
      for (let left = size; left > 0;) {
        const chunk = this.#buffer.subarray(0, Math.min(left, BUFFER_BYTES));
        await this.#fill(chunk);
        hash.update(chunk);
        for (let done = 0; done < chunk.length;) {
          done += (await target.write(chunk, done, chunk.length - done)).bytesWritten;
        }
        left -= chunk.length;
        onBytes(chunk.length);
      }
      await target.datasync();
    } finally {
      await target.close();
    }
    await this.#fill(this.#buffer.subarray(0, tarPadding(size)));
    return { size, sha256: hash.digest("hex"), whole: true };
  }

  /** The bytes of a small file. */
  async bytes({ size }: TarHead, maxBytes: number): Promise<Uint8Array> {
    if (size > maxBytes) throw new Error("it is damaged");
    const bytes = new Uint8Array(size);
    await this.#fill(bytes);
    await this.#fill(this.#buffer.subarray(0, tarPadding(size)));
    return bytes;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #fill(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      const reading = this.#file.read(bytes, done, bytes.length - done);
      const { bytesRead } = await reading.catch((error: unknown) => {
        throw new Error(reasonOf(error), { cause: error });
      });
      if (bytesRead === 0) throw new Error("it is cut short");
      done += bytesRead;
    }
  }
}
