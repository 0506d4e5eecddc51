/**
 * The port to where the bytes of files are kept. The comments here are the contract that every engine is tested for.
 *
 * Invariant: a blob is there whole or not at all. What finish() has answered for survives a power cut; what was never
 * finished can be swept. Memory stays flat whatever the size of a blob.
 * Must not: know names, owners or records. A blob is known by its id alone, and no path is made from a caller's words.
 */

export interface Blobs {
  /** False from a write that failed, for whatever reason, to the next that succeeded: finish(), or probe(). */
  readonly writable: boolean;

  /**
   * Starts a blob. `blobId` is a fresh lower-case UUID made by the hub (a UUIDv7 is made if none is given);
   * anything else throws a TypeError. Nothing can be opened under it before finish().
   */
  begin(blobId?: string): Promise<BlobWriter>;

  /**
   * The bytes from `start` to before `endExclusive`, read as they are consumed: give it to a Response.
   * Null if there is no such blob or it is shorter than that. What was opened stays readable as long as the engine
   * can help it, also when the blob is removed meanwhile.
   */
  open(blobId: string, start: number, endExclusive: number): Promise<BlobContent | null>;

  /** Deletes a finished blob. False if there was none. */
  remove(blobId: string): Promise<boolean>;

  /** Finished blobs are kept on so many shelves, by their id: what looks at all of them can take its time. */
  readonly shelves: number;

  /** The ids of the finished blobs on one shelf, from 0; those that come or go meanwhile may be among them. Where
   * several hubs share an engine, one that was finished lately may be left out: its hub may be about to record it. */
  list(shelf: number): Promise<string[]>;

  /**
   * Deletes what a crash left unfinished and answers how many there were; writers of this process are left alone.
   * An engine of one hub takes the writers of another process for a crash's; one that several hubs share takes those of
   * which none of them has told for a minute.
   */
  sweepUnfinished(): Promise<number>;

  /** Writes a little, durably, and takes it away again: whether there is room now. Rejects as a writer would. */
  probe(): Promise<void>;

  /** Discards every writer still open. begin() rejects afterwards. Idempotent. */
  close(): Promise<void>;
}

/** Bytes to stream: a lazy Blob where the runtime can send one by itself, else a stream. */
export type BlobContent = Blob | ReadableStream<Uint8Array>;

/** One blob being written: any number of write(), then finish() or discard(). Calls must not overlap, but for discard(). */
export interface BlobWriter {
  readonly blobId: string;
  /** Bytes taken so far. */
  readonly size: number;
  /**
   * Appends. A promise means "no more until it resolves": awaiting it is what keeps memory flat. The chunk is not kept
   * after that. Rejects with BlobsFull when the disk is full; then only discard() is left.
   */
  write(chunk: Uint8Array): Promise<void> | void;
  /** Makes the blob durable and visible, and returns only then. `sha256` is lower-case hex. */
  finish(): Promise<FinishedBlob>;
  /** Leaves nothing behind. Idempotent; after finish() it does nothing (that is what remove() is for). */
  discard(): Promise<void>;
}

export type FinishedBlob = { readonly sha256: string; readonly size: number };

/** There is no room for more bytes (disk full, quota or file size limit reached). */
export class BlobsFull extends Error {
  constructor(cause: unknown) {
    super("no room left for files", { cause });
    this.name = "BlobsFull";
  }
}

/** Lower case only: on a disk that ignores case two spellings would be one file. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function isBlobId(text: string): boolean {
  return UUID.test(text);
}

/** The same text. @throws {TypeError} for what is no id of a blob */
export function checkedBlobId(text: string): string {
  if (!isBlobId(text)) throw new TypeError("a blob id must be a lower-case UUID");
  return text;
}
