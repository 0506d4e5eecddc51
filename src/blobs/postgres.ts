/**
 * Blob storage in PostgreSQL, shared by all hubs of a database: one row for each blob, and its bytes in rows of
 * CHUNK_BYTES, written and read one at a time.
 *
 * Invariant: a blob without a size is unfinished and invisible. finish() returns after a synchronous commit, which makes
 * the chunks written before it durable too.
 * Must not: hold more than one chunk per writer or reader in memory, or sweep an upload that its hub still touches: each
 * hub updates touched_at of its unfinished blobs every TOUCH_MS.
 */
import type { SQL } from "bun";
import { ANSWER_UNCOUNTED_MAX_BYTES, FILE_CONNECTIONS, FILE_PIECE_MAX_BYTES } from "../domain/limits.ts";
import {
  type Connection,
  isFull,
  openPool,
  query,
  toStoreError,
  withTimeout,
} from "../store/postgres/connection.ts";
import { type BlobContent, type BlobWriter, type Blobs, BlobsFull, checkedBlobId } from "./blobs.ts";
import { BufferedWriter, type WriterEvents } from "./buffered-writer.ts";

const CHUNK_BYTES = FILE_PIECE_MAX_BYTES;
const TOUCH_MS = 10_000;
/** A crash has left an unfinished blob that no hub has touched for so long. */
const ABANDONED_AFTER = "60 seconds";

const BEGIN = `INSERT INTO blobs (blob_id, touched_at) VALUES ($1, clock_timestamp())`;
const TOUCH = `UPDATE blobs SET touched_at = clock_timestamp() WHERE size_bytes IS NULL AND blob_id = ANY($1)`;
const WRITE = `INSERT INTO blob_chunks (blob_id, n, bytes) VALUES ($1, $2, $3)`;
const FINISH = `UPDATE blobs SET size_bytes = $2, touched_at = clock_timestamp() WHERE blob_id = $1`;
const SIZE = `SELECT size_bytes FROM blobs WHERE blob_id = $1 AND size_bytes IS NOT NULL`;
const READ = `SELECT bytes FROM blob_chunks WHERE blob_id = $1 AND n = $2`;
/** Of a blob finished less than this ago, its hub may not have recorded the id yet. */
const RECENT_MS = 3_600_000;
const LIST = `
  SELECT blob_id FROM blobs
  WHERE right(blob_id, 2) = $1 AND size_bytes IS NOT NULL AND touched_at < clock_timestamp() - make_interval(secs => $2)`;
// A foreign key deletes the chunks.
const REMOVE = `DELETE FROM blobs WHERE blob_id = $1 AND size_bytes IS NOT NULL`;
const DISCARD = `DELETE FROM blobs WHERE blob_id = $1 AND size_bytes IS NULL`;
const SWEEP = `
  DELETE FROM blobs WHERE size_bytes IS NULL AND touched_at < clock_timestamp() - interval '${ABANDONED_AFTER}'
    AND blob_id <> ALL($1)`;

/** The store creates the tables (store/postgres/schema.ts). */
export function openPostgresBlobs(url: string, recentMs = RECENT_MS): Blobs {
  // A chunk's own commit need not be durable: the synchronous commit of finish() flushes all commits before it.
  return new PostgresBlobs(openPool(url, FILE_CONNECTIONS, { synchronous_commit: "off" }), recentMs);
}

class PostgresBlobs implements Blobs {
  readonly #pool: SQL;
  readonly #recentMs: number;
  readonly #live = new Map<string, PostgresWriter>();
  /** The ids in a shard end in the same two hex digits. */
  readonly shards = 256;
  #writable = true;
  readonly #touching: Timer;
  #closed: Promise<void> | null = null;

  constructor(pool: SQL, recentMs: number) {
    this.#pool = pool;
    this.#recentMs = recentMs;
    this.#touching = setInterval(() => void this.#touch(), TOUCH_MS);
  }

  get writable(): boolean {
    return this.#writable;
  }

  async begin(blobId: string = Bun.randomUUIDv7()): Promise<BlobWriter> {
    if (this.#closed) throw new Error("the blob store is closed");
    checkedBlobId(blobId);
    await withTimeout(query(this.#pool, BEGIN, [blobId])).catch((error: unknown) => {
      this.#writable = false;
      return toBlobsError(error);
    });
    const writer = new PostgresWriter(blobId, this.#pool, {
      onWritten: (succeeded) => (this.#writable = succeeded),
      onEnd: () => this.#live.delete(blobId),
    });
    this.#live.set(blobId, writer);
    // close() may have been called while the row was being inserted.
    if (this.#closed) await writer.discard();
    return writer;
  }

  async open(blobId: string, start: number, endExclusive: number): Promise<BlobContent | null> {
    checkedBlobId(blobId);
    const [row] = await withTimeout(query(this.#pool, SIZE, [blobId])).catch(toBlobsError);
    if (!row || Number(row["size_bytes"]) < endExclusive) return null;
    const stream = this.#stream(blobId, start, endExclusive);
    // Bun 1.4.5 drops the Content-Length of a stream, but not that of a Blob.
    return endExclusive - start > ANSWER_UNCOUNTED_MAX_BYTES ? stream : new Response(stream).blob();
  }

  async remove(blobId: string): Promise<boolean> {
    checkedBlobId(blobId);
    const { count } = await withTimeout(query(this.#pool, REMOVE, [blobId])).catch(toBlobsError);
    return count > 0;
  }

  async list(shard: number): Promise<string[]> {
    const digits = shard.toString(16).padStart(2, "0");
    const rows = await withTimeout(query(this.#pool, LIST, [digits, this.#recentMs / 1_000])).catch(
      toBlobsError,
    );
    return Array.from(rows, (row) => String(row["blob_id"]));
  }

  async probe(): Promise<void> {
    const writer = await this.begin();
    try {
      await writer.write(new Uint8Array(CHUNK_BYTES));
      await writer.finish();
    } finally {
      await writer.discard(); // first, because it cannot fail: a writer left in #live would be touched for ever
      await this.remove(writer.blobId);
    }
  }

  async sweepUnfinished(): Promise<number> {
    const { count } = await withTimeout(query(this.#pool, SWEEP, [[...this.#live.keys()]])).catch(
      toBlobsError,
    );
    return count;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    clearInterval(this.#touching);
    await Promise.allSettled([...this.#live.values()].map((writer) => writer.discard()));
    await this.#pool.close({ timeout: 0 });
  }

  async #touch(): Promise<void> {
    if (this.#live.size === 0) return;
    await query(this.#pool, TOUCH, [[...this.#live.keys()]]).catch(() => {}); // the timer tries again
  }

  /** Buffers no chunk. */
  #stream(blobId: string, start: number, endExclusive: number): ReadableStream<Uint8Array> {
    let position = start;
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      if (position >= endExclusive) return controller.close();
      const n = Math.floor(position / CHUNK_BYTES);
      const [row] = await withTimeout(query(this.#pool, READ, [blobId, n])).catch(toBlobsError);
      const bytes: unknown = row?.["bytes"];
      if (!(bytes instanceof Uint8Array)) throw new Error(`a chunk of blob ${blobId} is missing`);
      const first = n * CHUNK_BYTES;
      controller.enqueue(bytes.subarray(position - first, endExclusive - first));
      position = first + bytes.byteLength;
    };
    return new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 });
  }
}

abstract class ChunkWriter extends BufferedWriter {
  #chunks = 0;

  constructor(blobId: string, events: WriterEvents) {
    super(blobId, CHUNK_BYTES, events);
  }

  protected async writeChunk(connection: Connection, bytes: Uint8Array): Promise<void> {
    await query(connection, WRITE, [this.blobId, this.#chunks++, bytes]);
  }

  protected async writeLast(connection: Connection, last: Uint8Array, size: number): Promise<void> {
    if (last.byteLength > 0) await this.writeChunk(connection, last);
    const { count } = await query(connection, FINISH, [this.blobId, size]);
    if (count !== 1) throw new Error("the upload was swept: no hub had touched it for a minute");
  }
}

class PostgresWriter extends ChunkWriter {
  readonly #pool: SQL;

  constructor(blobId: string, pool: SQL, events: WriterEvents) {
    super(blobId, events);
    this.#pool = pool;
  }

  protected async append(bytes: Uint8Array): Promise<void> {
    await withTimeout(this.writeChunk(this.#pool, bytes)).catch(toBlobsError);
  }

  protected async complete(last: Uint8Array, size: number): Promise<void> {
    const transaction = this.#pool.begin(async (tx) => {
      await query(tx, "SET LOCAL synchronous_commit = on");
      await this.writeLast(tx, last, size);
    });
    await withTimeout(transaction).catch(toBlobsError);
  }

  /** If the delete fails, a later sweep removes the blob. */
  protected async abandon(): Promise<void> {
    await query(this.#pool, DISCARD, [this.blobId]).catch(() => {});
  }
}

/** Durable and visible when the transaction of the session commits. */
export async function beginBlobWithin(session: Connection, blobId: string): Promise<BlobWriter> {
  await query(session, BEGIN, [checkedBlobId(blobId)]);
  return new TransactionWriter(blobId, session);
}

class TransactionWriter extends ChunkWriter {
  readonly #session: Connection;

  constructor(blobId: string, session: Connection) {
    super(blobId, { onWritten: () => {}, onEnd: () => {} });
    this.#session = session;
  }

  protected append(bytes: Uint8Array): Promise<void> {
    return this.writeChunk(this.#session, bytes);
  }

  protected complete(last: Uint8Array, size: number): Promise<void> {
    return this.writeLast(this.#session, last, size);
  }

  /** The owner of the transaction rolls it back. */
  protected async abandon(): Promise<void> {}
}

/** As the transaction of the session sees it; null: no blob. */
export async function readBlobWithin(
  session: Connection,
  blobId: string,
): Promise<{ readonly size: number; readonly chunks: AsyncIterable<Uint8Array> } | null> {
  const [row] = await query(session, SIZE, [checkedBlobId(blobId)]);
  return row ? { size: Number(row["size_bytes"]), chunks: chunksWithin(session, blobId) } : null;
}

/** The server finds the next chunk meanwhile. */
async function* chunksWithin(session: Connection, blobId: string): AsyncGenerator<Uint8Array> {
  const read = (n: number) => query(session, READ, [blobId, n]);
  let nextRows = read(0);
  for (let n = 1; ; n++) {
    const bytes: unknown = (await nextRows)[0]?.["bytes"];
    if (!(bytes instanceof Uint8Array)) return;
    nextRows = read(n);
    nextRows.catch(() => {}); // the await throws it
    yield bytes;
  }
}

/** For catch(): instead of the driver's errors. */
function toBlobsError(error: unknown): never {
  throw isFull(error) ? new BlobsFull(error) : toStoreError(error);
}
