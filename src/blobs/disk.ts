/**
 * Blobs as files: `<data>/files/<last two hex digits of the id>/<id>`, uploads under way in `<data>/files/.partial/<id>`.
 *
 * Invariant: a file outside .partial is whole and on disk, because it comes there by a rename after its fdatasync and
 * finish() answers after the fsync of the directory.
 * Must not: build a path from anything but a UUID, or hold more than one buffer per writer in memory.
 */
import { closeSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import { type FileHandle, open, readdir, rename, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type BlobContent, type BlobWriter, type Blobs, BlobsFull, type FinishedBlob } from "./blobs.ts";

/** Chunks are gathered to this size: a write of 64 KiB costs Bun nearly as much as one of 256 KiB. */
const BUFFER_BYTES = 256 * 1024;
/** As much as one write to the disk: what is taken of it would be taken of an upload. */
const PROBE_BYTES = BUFFER_BYTES;
const FILE_MODE = 0o600;
const DIR_MODE = 0o700;
/** Lower case only: on a disk that ignores case two spellings would be one file. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Disk, quota, RLIMIT_FSIZE. */
const FULL_CODES = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** Below the data directory. */
const FOLDER = "files";
/** Folders that finished blobs are spread over: the last two hex digits of their ids. */
const SHELVES = 256;

/** The two calls that meet a failing disk, apart so that a test can fail them. */
export type DiskIo = {
  /** Writes at the end of the file; answers how many bytes were taken, which may be fewer. */
  write(file: FileHandle, bytes: Uint8Array): Promise<number>;
  datasync(file: FileHandle): Promise<void>;
};

const machineIo: DiskIo = {
  write: async (file, bytes) => (await file.write(bytes)).bytesWritten,
  datasync: (file) => file.datasync(),
};

/**
 * Opens (and makes, mode 0700) the folders under `dataDir`; all 256 at once and durably, so that no upload has to wait
 * for the folder that another is making. Rejects with BlobsFull or the system's error if it cannot.
 */
export async function openDiskBlobs(dataDir: string, io: DiskIo = machineIo): Promise<Blobs> {
  const root = join(dataDir, FOLDER);
  const partial = join(root, ".partial");
  try {
    makeDirs(dataDir, root, partial);
  } catch (error) {
    fullOr(error);
  }
  return new DiskBlobs(dataDir, partial, io);
}

/** In one go: nobody waits yet, and it takes 2 ms, where 256 calls at once leave 2 MiB with the threads that run them. */
function makeDirs(dataDir: string, root: string, partial: string): void {
  mkdirSync(partial, { recursive: true, mode: DIR_MODE });
  for (let shelf = 0; shelf < SHELVES; shelf++) {
    mkdirSync(join(root, shelfName(shelf)), { recursive: true, mode: DIR_MODE });
  }
  for (const path of [root, dataDir]) {
    const dir = openSync(path, "r");
    try {
      fsyncSync(dir);
    } finally {
      closeSync(dir);
    }
  }
}

function shelfName(shelf: number): string {
  return shelf.toString(16).padStart(2, "0");
}

/** Where the bytes of a finished blob are, below the data directory. @throws {TypeError} for what is no id of a blob */
export function blobFileOf(blobId: string): string {
  // The end of a UUIDv7 is random, its beginning is the time: only the end spreads.
  return `${FOLDER}/${checkedId(blobId).slice(-2)}/${blobId}`;
}

export function isBlobId(text: string): boolean {
  return UUID.test(text);
}

class DiskBlobs implements Blobs {
  readonly shelves = SHELVES;
  readonly #dataDir: string;
  readonly #partial: string;
  readonly #io: DiskIo;
  readonly #live = new Map<string, DiskWriter>();
  /** Ids whose file is being made: it may be there before its writer is. */
  readonly #opening = new Set<string>();
  #writable = true;
  #closed = false;

  constructor(dataDir: string, partial: string, io: DiskIo) {
    this.#dataDir = dataDir;
    this.#partial = partial;
    this.#io = io;
  }

  get writable(): boolean {
    return this.#writable;
  }

  begin(blobId?: string): Promise<BlobWriter> {
    return this.#begin(blobId);
  }

  async #begin(blobId: string = Bun.randomUUIDv7()): Promise<DiskWriter> {
    if (this.#closed) throw new Error("the blob store is closed");
    const path = join(this.#partial, checkedId(blobId));
    this.#opening.add(blobId);
    const writer = await this.#open(blobId, path).finally(() => this.#opening.delete(blobId));
    // close() may have come while the file was being opened.
    if (this.#closed) await writer.discard();
    return writer;
  }

  async #open(blobId: string, path: string): Promise<DiskWriter> {
    // "wx": an id in use is a fault, not a file to write over.
    const file = await open(path, "wx", FILE_MODE).catch((error: unknown) => {
      this.#writable = false;
      return fullOr(error);
    });
    const place: Place = { path, finalPath: this.#pathOf(blobId) };
    const writer = new DiskWriter(blobId, file, place, this.#io, {
      onWritten: (succeeded) => (this.#writable = succeeded),
      onEnd: () => this.#live.delete(blobId),
    });
    this.#live.set(blobId, writer);
    return writer;
  }

  async open(blobId: string, start: number, endExclusive: number): Promise<BlobContent | null> {
    const path = this.#pathOf(blobId);
    const found = await stat(path).catch(nullIfMissing);
    if (found === null || found.size < endExclusive) return null;
    return Bun.file(path).slice(start, endExclusive);
  }

  async remove(blobId: string): Promise<boolean> {
    return unlinkIfThere(this.#pathOf(blobId));
  }

  async list(shelf: number): Promise<string[]> {
    const names = await readdir(join(this.#dataDir, FOLDER, shelfName(shelf)));
    return names.filter((name) => UUID.test(name));
  }

  async sweepUnfinished(): Promise<number> {
    let swept = 0;
    for (const name of await readdir(this.#partial)) {
      if (this.#live.has(name) || this.#opening.has(name)) continue;
      if (await unlinkIfThere(join(this.#partial, name))) swept++;
    }
    return swept;
  }

  async probe(): Promise<void> {
    const writer = await this.#begin();
    try {
      await writer.write(new Uint8Array(PROBE_BYTES));
      await writer.sync();
    } finally {
      await writer.discard();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#live.values()].map((writer) => writer.discard()));
  }

  #pathOf(blobId: string): string {
    return join(this.#dataDir, blobFileOf(blobId));
  }
}

type Place = { readonly path: string; readonly finalPath: string };

type WriterNews = {
  /** Whether something was made durable, or could not be. */
  readonly onWritten: (succeeded: boolean) => void;
  readonly onEnd: () => void;
};

class DiskWriter implements BlobWriter {
  readonly blobId: string;
  readonly #file: FileHandle;
  readonly #place: Place;
  readonly #io: DiskIo;
  readonly #news: WriterNews;
  readonly #hash = new Bun.CryptoHasher("sha256");
  readonly #buffer = new Uint8Array(BUFFER_BYTES);
  #buffered = 0;
  #size = 0;
  #state: "open" | "broken" | "ended" = "open";
  /** What the disk is doing now; discard() lets it end, since closing a file under a write may hit another's. */
  #working: Promise<unknown> = Promise.resolve();
  #discarding: Promise<void> | null = null;

  constructor(blobId: string, file: FileHandle, place: Place, io: DiskIo, news: WriterNews) {
    this.blobId = blobId;
    this.#file = file;
    this.#place = place;
    this.#io = io;
    this.#news = news;
  }

  get size(): number {
    return this.#size;
  }

  write(chunk: Uint8Array): Promise<void> | void {
    this.#assertOpen();
    this.#hash.update(chunk);
    this.#size += chunk.byteLength;
    if (this.#buffered + chunk.byteLength > BUFFER_BYTES) return this.#work(() => this.#spill(chunk));
    this.#buffer.set(chunk, this.#buffered);
    this.#buffered += chunk.byteLength;
  }

  finish(): Promise<FinishedBlob> {
    this.#assertOpen();
    return this.#work(async () => {
      await this.#sync();
      await this.#file.close();
      await this.#moveIntoPlace();
      this.#state = "ended";
      this.#news.onWritten(true);
      this.#news.onEnd();
      return { sha256: this.#hash.digest("hex"), size: this.#size };
    });
  }

  /** Makes durable what was written so far, and goes on. */
  sync(): Promise<void> {
    this.#assertOpen();
    return this.#work(async () => {
      await this.#sync();
      this.#news.onWritten(true);
    });
  }

  discard(): Promise<void> {
    this.#discarding ??= this.#discard();
    return this.#discarding;
  }

  async #discard(): Promise<void> {
    await this.#working.catch(() => {}); // its caller has that error
    if (this.#state === "ended") return;
    this.#state = "ended";
    try {
      await this.#file.close(); // closed already if finish() failed late: Bun and Node take that
    } finally {
      await unlinkIfThere(this.#place.path);
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

  async #sync(): Promise<void> {
    await this.#flush();
    await this.#io.datasync(this.#file).catch(fullOr);
  }

  /** Empties the buffer, then keeps the chunk in it, or writes directly one that is too large for it. */
  async #spill(chunk: Uint8Array): Promise<void> {
    await this.#flush();
    const direct = chunk.byteLength > BUFFER_BYTES ? chunk.byteLength : 0;
    await this.#writeAll(chunk.subarray(0, direct));
    this.#buffer.set(chunk.subarray(direct));
    this.#buffered = chunk.byteLength - direct;
  }

  async #flush(): Promise<void> {
    await this.#writeAll(this.#buffer.subarray(0, this.#buffered));
    this.#buffered = 0;
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.byteLength;) {
      done += await this.#io.write(this.#file, bytes.subarray(done)).catch(fullOr);
    }
  }

  async #moveIntoPlace(): Promise<void> {
    const { path, finalPath } = this.#place;
    await rename(path, finalPath).catch(fullOr);
    try {
      await syncDir(dirname(finalPath));
    } catch (error) {
      // finish() fails, so the blob may not stay.
      await unlinkIfThere(finalPath);
      fullOr(error);
    }
  }
}

function checkedId(blobId: string): string {
  if (!UUID.test(blobId)) throw new TypeError("a blob id must be a lower-case UUID");
  return blobId;
}

/** Makes the names in a directory durable. */
async function syncDir(path: string): Promise<void> {
  const dir = await open(path, "r");
  try {
    await dir.sync();
  } finally {
    await dir.close();
  }
}

async function unlinkIfThere(path: string): Promise<boolean> {
  const failed = await unlink(path).catch(nullIfMissing);
  return failed !== null;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

/** For catch(): a missing file is an answer, all else stays an error. */
function nullIfMissing(error: unknown): null {
  if (codeOf(error) === "ENOENT") return null;
  throw error;
}

/** For catch(): names the full disk, and throws on. */
function fullOr(error: unknown): never {
  const code = codeOf(error);
  throw typeof code === "string" && FULL_CODES.has(code) ? new BlobsFull(error) : error;
}
