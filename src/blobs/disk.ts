/**
 * Blobs as files: `<data>/files/<last two hex digits of the id>/<id>`, uploads under way in `<data>/files/.partial/<id>`.
 *
 * Invariant: a file outside .partial is whole and on disk, because it comes there by a rename after its fdatasync and
 * finish() answers after the fsync of the directory.
 * Must not: build a path from anything but a UUID, or hold more than one part per writer in memory.
 */
import { closeSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import { type FileHandle, open, readdir, rename, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type BlobContent,
  type BlobWriter,
  type Blobs,
  BlobsFull,
  checkedBlobId,
  isBlobId,
} from "./blobs.ts";
import { PartWriter, type WriterNews } from "./writer.ts";
import { codeOf } from "../lib/reason.ts";

/** A write of 64 KiB costs Bun nearly as much as one of 256 KiB. */
const PART_BYTES = 256 * 1024;
/** As much as one write to the disk: what is taken of it would be taken of an upload. */
const PROBE_BYTES = PART_BYTES;
const FILE_MODE = 0o600;
const DIR_MODE = 0o700;
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
  return `${FOLDER}/${checkedBlobId(blobId).slice(-2)}/${blobId}`;
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
    const path = join(this.#partial, checkedBlobId(blobId));
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
    return names.filter((name) => isBlobId(name));
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

class DiskWriter extends PartWriter {
  readonly #file: FileHandle;
  readonly #place: Place;
  readonly #io: DiskIo;

  constructor(blobId: string, file: FileHandle, place: Place, io: DiskIo, news: WriterNews) {
    super(blobId, PART_BYTES, news);
    this.#file = file;
    this.#place = place;
    this.#io = io;
  }

  /** Makes durable what was written so far, and goes on. */
  sync(): Promise<void> {
    return this.persist((part) => this.#appendDurably(part));
  }

  protected async append(part: Uint8Array): Promise<void> {
    for (let done = 0; done < part.byteLength;) {
      done += await this.#io.write(this.#file, part.subarray(done)).catch(fullOr);
    }
  }

  protected async complete(last: Uint8Array): Promise<void> {
    await this.#appendDurably(last);
    await this.#file.close();
    await this.#moveIntoPlace();
  }

  protected async abandon(): Promise<void> {
    try {
      await this.#file.close(); // closed already if finish() failed late: Bun and Node take that
    } finally {
      await unlinkIfThere(this.#place.path);
    }
  }

  async #appendDurably(part: Uint8Array): Promise<void> {
    await this.append(part);
    await this.#io.datasync(this.#file).catch(fullOr);
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

/** For catch(): a missing file is an answer, all else stays an error. */
function nullIfMissing(error: unknown): null {
  if (codeOf(error) === "ENOENT") return null;
  throw error;
}

/** For catch(): names the full disk, and throws on. */
function fullOr(error: unknown): never {
  throw FULL_CODES.has(codeOf(error)) ? new BlobsFull(error) : error;
}
