/**
 * The port to blob storage, which holds the bytes of files. The comments are the contract of every engine;
 * test/contract/blobs.test.ts checks it.
 *
 * Invariant: a blob is visible either complete or not at all. After finish() it survives a power cut; unfinished blobs
 * can be deleted by a sweep.
 * Must not: know file names, owners or records. A blob has only an id, and no path is built from a client's text.
 */

export interface Blobs {
  /** False after a failed write, until finish() or probe() succeeds. */
  readonly writable: boolean;

  /**
   * Starts a blob. `blobId` must be a new lower-case UUID (default: a new UUIDv7); anything else throws a TypeError.
   * open() does not find the blob before finish().
   */
  begin(blobId?: string): Promise<BlobWriter>;

  /**
   * Opens the bytes from `start` to before `endExclusive`, which are read lazily while a Response sends them. Null if
   * there is no such blob or it is shorter. If the blob is removed meanwhile, an opened content stays readable if the
   * engine can do that. `asStream`: if it is larger than FILE_UNCUT_MAX_BYTES, it is a stream, which can be cancelled.
   */
  open(
    blobId: string,
    start: number,
    endExclusive: number,
    asStream?: "asStream",
  ): Promise<BlobContent | null>;

  remove(blobId: string): Promise<boolean>;

  /** The id of a finished blob determines its shard, so a sweep can list one shard at a time. */
  readonly shards: number;

  /**
   * Of one shard (the first is 0). May contain blobs that are added or removed meanwhile, and omit one that was
   * finished recently: its hub may not have recorded it yet.
   */
  list(shard: number): Promise<string[]>;

  /**
   * Those that a crash has left. An engine of one hub treats every other process's writers as crashed; a shared engine
   * those whose hub has not touched them for a minute.
   */
  sweepUnfinished(): Promise<number>;

  /** Durably writes some bytes and deletes them. Rejects like BlobWriter.write(). */
  probe(): Promise<void>;

  /** Discards every open writer; afterwards begin() rejects. Idempotent. */
  close(): Promise<void>;
}

/**
 * A lazy Blob for a file on disk, a Blob in memory if it is small, else a stream that loads at most
 * FILE_PIECE_MAX_BYTES for each read and nothing in advance.
 */
export type BlobContent = Blob | ReadableStream<Uint8Array>;

/** Only discard() may overlap a call. */
export interface BlobWriter {
  readonly blobId: string;
  readonly size: number;
  /**
   * Appends. Backpressure: if it returns a promise, await it before the next call; the chunk may be reused after that.
   * Rejects with BlobsFull when the disk is full; afterwards only discard() is allowed.
   */
  write(chunk: Uint8Array): Promise<void> | void;
  /** Resolves when the blob is durable and visible. `sha256` is lower-case hex. */
  finish(): Promise<FinishedBlob>;
  /** Idempotent; after finish() it does nothing (use remove()). */
  discard(): Promise<void>;
}

export type FinishedBlob = { readonly sha256: string; readonly size: number };

/** The disk is full, or a quota or the file size limit is reached. */
export class BlobsFull extends Error {
  constructor(cause: unknown) {
    super("no room left for files", { cause });
    this.name = "BlobsFull";
  }
}

/** Lower case only: on a file system that ignores case, two spellings would be one file. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function isBlobId(text: string): boolean {
  return UUID.test(text);
}

export function checkedBlobId(text: string): string {
  if (!isBlobId(text)) throw new TypeError("a blob id must be a lower-case UUID");
  return text;
}
