/**
 * Blob storage as files: `<data>/files/<last two hex digits of the id>/<id>`; unfinished ones are in `.partial/`.
 *
 * Invariant: a file outside .partial is complete and on disk: fdatasync of the file, rename, fsync of the directory.
 * Must not: build a path from anything but a UUID, or hold more than one buffer per writer in memory.
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
import { FILE_UNCUT_MAX_BYTES } from "../domain/limits.ts";
import { BufferedWriter, type WriterEvents } from "./buffered-writer.ts";
import { fileStream } from "./file-stream.ts";
import { codeOf } from "../lib/reason.ts";

/** A write of 64 KiB costs Bun nearly as much as one of 256 KiB. */
const BUFFER_BYTES = 256 * 1024;
/** The probe writes as much as one write of an upload. */
const PROBE_BYTES = BUFFER_BYTES;
const FILE_MODE = 0o600;
const DIR_MODE = 0o700;
/** A full disk, a full quota and RLIMIT_FSIZE. */
const FULL_CODES = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

const FOLDER = "files";
const SHARDS = 256;

/** A failing disk of a test replaces these. */
export type DiskIo = {
  /** Fewer than `bytes` are possible. */
  write(file: FileHandle, bytes: Uint8Array): Promise<number>;
  datasync(file: FileHandle): Promise<void>;
};

type HasRoom = (bytes: number) => boolean;

const systemIo: DiskIo = {
  write: async (file, bytes) => (await file.write(bytes)).bytesWritten,
  datasync: (file) => file.datasync(),
};

/** Creates all shard directories (mode 0700), so that no upload has to. Rejects with BlobsFull or the system's error. */
export async function openDiskBlobs(
  dataDir: string,
  io: DiskIo = systemIo,
  hasRoom: HasRoom = () => true,
): Promise<Blobs> {
  const root = join(dataDir, FOLDER);
  const partial = join(root, ".partial");
  try {
    makeDirs(dataDir, root, partial);
  } catch (error) {
    rethrowFull(error);
  }
  return new DiskBlobs(dataDir, partial, io, hasRoom);
}

/** Synchronous, at the start, and takes 2 ms; 256 asynchronous calls would leave 2 MiB allocated in their threads. */
function makeDirs(dataDir: string, root: string, partial: string): void {
  mkdirSync(partial, { recursive: true, mode: DIR_MODE });
  for (let shard = 0; shard < SHARDS; shard++) {
    mkdirSync(join(root, shardName(shard)), { recursive: true, mode: DIR_MODE });
  }
  for (const path of [root, dataDir]) flushDirectorySync(path);
}

function shardName(shard: number): string {
  return shard.toString(16).padStart(2, "0");
}

/** Relative to the data directory. @throws {TypeError} if `blobId` is not a blob id */
export function blobFileOf(blobId: string): string {
  // A UUIDv7 begins with the time and ends with random digits: only these spread evenly.
  return `${FOLDER}/${checkedBlobId(blobId).slice(-2)}/${blobId}`;
}

class DiskBlobs implements Blobs {
  readonly shards = SHARDS;
  readonly #dataDir: string;
  readonly #partial: string;
  readonly #io: DiskIo;
  readonly #hasRoom: HasRoom;
  readonly #live = new Map<string, DiskWriter>();
  /** The file may exist before its writer is in #live. */
  readonly #opening = new Set<string>();
  #writable = true;
  #closed = false;

  constructor(dataDir: string, partial: string, io: DiskIo, hasRoom: HasRoom) {
    this.#hasRoom = hasRoom;
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
    // close() may have been called while the file was being opened.
    if (this.#closed) await writer.discard();
    return writer;
  }

  async #open(blobId: string, path: string): Promise<DiskWriter> {
    // "wx": fails if the id is in use, instead of overwriting the file.
    const file = await open(path, "wx", FILE_MODE).catch((error: unknown) => {
      this.#writable = false;
      return rethrowFull(error);
    });
    const paths: Paths = { partial: path, final: this.#pathOf(blobId) };
    const writer = new DiskWriter(blobId, file, paths, this.#io, this.#hasRoom, {
      onWritten: (succeeded) => (this.#writable = succeeded),
      onEnd: () => this.#live.delete(blobId),
    });
    this.#live.set(blobId, writer);
    return writer;
  }

  async open(
    blobId: string,
    start: number,
    endExclusive: number,
    asStream?: "asStream",
  ): Promise<BlobContent | null> {
    const path = this.#pathOf(blobId);
    const stats = await stat(path).catch(nullIfMissing);
    if (stats === null || stats.size < endExclusive) return null;
    if (asStream && endExclusive - start > FILE_UNCUT_MAX_BYTES) return fileStream(path, start, endExclusive);
    return Bun.file(path).slice(start, endExclusive);
  }

  async remove(blobId: string): Promise<boolean> {
    return unlinkIfThere(this.#pathOf(blobId));
  }

  async list(shard: number): Promise<string[]> {
    const names = await readdir(join(this.#dataDir, FOLDER, shardName(shard)));
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

type Paths = { readonly partial: string; readonly final: string };

class DiskWriter extends BufferedWriter {
  readonly #file: FileHandle;
  readonly #paths: Paths;
  readonly #io: DiskIo;
  readonly #hasRoom: HasRoom;

  constructor(
    blobId: string,
    file: FileHandle,
    paths: Paths,
    io: DiskIo,
    hasRoom: HasRoom,
    events: WriterEvents,
  ) {
    super(blobId, BUFFER_BYTES, events);
    this.#hasRoom = hasRoom;
    this.#file = file;
    this.#paths = paths;
    this.#io = io;
  }

  sync(): Promise<void> {
    return this.flush((bytes) => this.#appendDurably(bytes));
  }

  protected async append(bytes: Uint8Array): Promise<void> {
    if (!this.#hasRoom(bytes.byteLength)) throw new BlobsFull(new Error("less free space than --min-free"));
    for (let written = 0; written < bytes.byteLength;) {
      written += await this.#io.write(this.#file, bytes.subarray(written)).catch(rethrowFull);
    }
  }

  protected async complete(last: Uint8Array): Promise<void> {
    await this.#appendDurably(last);
    await this.#file.close();
    await this.#moveIntoPlace();
  }

  protected async abandon(): Promise<void> {
    try {
      await this.#file.close(); // a second close, after a failed complete(), has no effect
    } finally {
      await unlinkIfThere(this.#paths.partial);
    }
  }

  async #appendDurably(bytes: Uint8Array): Promise<void> {
    await this.append(bytes);
    await this.#io.datasync(this.#file).catch(rethrowFull);
  }

  async #moveIntoPlace(): Promise<void> {
    const { partial, final } = this.#paths;
    await rename(partial, final).catch(rethrowFull);
    try {
      await flushDirectory(dirname(final));
    } catch (error) {
      // finish() fails, so the blob must not stay visible.
      await unlinkIfThere(final);
      rethrowFull(error);
    }
  }
}

/** Windows refuses to flush a directory. */
const CANNOT_FLUSH_DIRECTORIES = process.platform === "win32";

export async function flushDirectory(path: string): Promise<void> {
  if (CANNOT_FLUSH_DIRECTORIES) return;
  const dir = await open(path, "r");
  try {
    await dir.sync();
  } finally {
    await dir.close();
  }
}

export function flushDirectorySync(path: string): void {
  if (CANNOT_FLUSH_DIRECTORIES) return;
  const dir = openSync(path, "r");
  try {
    fsyncSync(dir);
  } finally {
    closeSync(dir);
  }
}

async function unlinkIfThere(path: string): Promise<boolean> {
  const failed = await unlink(path).catch(nullIfMissing);
  return failed !== null;
}

function nullIfMissing(error: unknown): null {
  if (codeOf(error) === "ENOENT") return null;
  throw error;
}

function rethrowFull(error: unknown): never {
  throw FULL_CODES.has(codeOf(error)) ? new BlobsFull(error) : error;
}
