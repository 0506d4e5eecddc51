/**
 * Where the rows and the files of a hub come from: a data directory, or a database of PostgreSQL.
 *
 * Invariant: rows and files are of one moment, the one at which the rows are copied, though the hub writes meanwhile. On
 * disk the bytes of a file never change and are not removed while the directory is pinned; on PostgreSQL everything is
 * read in one snapshot.
 */
import { Database } from "bun:sqlite";
import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { blobFileOf } from "../blobs/disk.ts";
import { readBlobWithin } from "../blobs/postgres.ts";
import type { DataDir } from "../data-dir.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { shellWord } from "../lib/shell.ts";
import { lastEntryOf } from "../store/sqlite/change-log.ts";
import { inspectDatabase } from "../store/sqlite/integrity-check.ts";
import { isHeld, takeSharedLock } from "../store/sqlite/file-lock.ts";
import { PostgresRows } from "./postgres-rows.ts";
import { SqliteRows, openStopped } from "./sqlite-rows.ts";
import { copyTables } from "./tables.ts";
import { type Copied, type OnBytes, type StoredBytes, type Tools, sizeText } from "./upkeep.ts";

export type Source = {
  /** What copyRows() copies has the change log up to this entry at least; null: there is no log. */
  readonly entry: number | null;
  /** If it fails, what is there is the caller's to delete. */
  copyRows(path: string, tools: Tools): Promise<void>;
  open(fileId: string): Promise<StoredBytes | null>;
  close(): Promise<void>;
};

/** Also while a hub runs on it. @throws {Error} one line: no hub, a damaged database */
export function directorySource(dir: DataDir): Source {
  const inspection = inspectDatabase(dir.database, { wholeMaxBytes: 0, live: isHeld(dir.lock) });
  if (inspection.kind === "none") throw new Error(`there is no hub in ${dir.path}`);
  if (inspection.kind === "damaged") {
    throw new Error(
      `the database is damaged: ${inspection.what}. See more with: luxhub doctor --data ${shellWord(dir.path)}`,
    );
  }
  const pin = takeSharedLock(dir.pin);
  if (!pin) throw new Error(`${dir.pin} is held by another process; try again`);
  return {
    entry: readingLive(dir.database, (db) => lastEntryOf(db)?.n ?? null),
    copyRows: async (path, { onProgress }) => {
      onProgress(`copying the database (${sizeText(Bun.file(dir.database).size)})`);
      vacuumInto(dir.database, path);
    },
    open: (fileId) => storedAt(join(dir.path, blobFileOf(fileId))),
    close: async () => pin.release(),
  };
}

/** Of a hub that may run: a connection that stayed open might keep it from truncating its write-ahead log. */
export function readingLive<T>(path: string, read: (db: Database) => T): T {
  const db = new Database(path, { readonly: true });
  try {
    return read(db);
  } finally {
    db.close();
  }
}

function vacuumInto(from: string, to: string): void {
  try {
    readingLive(from, (db) => db.run("VACUUM INTO ?", [to]));
  } catch (error) {
    if (codeOf(error) === "SQLITE_FULL") throw error;
    throw new Error(`cannot copy the database ${from}: ${reasonOf(error)}`, { cause: error });
  }
}

const READ_BYTES = 1024 * 1024;

/** The bytes end early where the file cannot be read; null if there is none. */
export async function storedAt(path: string): Promise<StoredBytes | null> {
  const stats = await stat(path).catch(nullIfMissing);
  return stats && { size: stats.size, chunks: chunksOf(path, stats.size) };
}

async function* chunksOf(path: string, size: number): AsyncGenerator<Uint8Array> {
  const file = await open(path, "r").catch(nullIfMissing); // a hub may have removed it since
  if (file === null) return;
  try {
    for (let remaining = size; remaining > 0;) {
      const buffer = new Uint8Array(Math.min(remaining, READ_BYTES)); // not reused: an archive keeps a reference
      const { bytesRead } = await file.read(buffer, 0, buffer.length).catch(() => ({ bytesRead: 0 }));
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
      remaining -= bytesRead;
    }
  } finally {
    await file.close();
  }
}

function nullIfMissing(error: unknown): null {
  if (codeOf(error) === "ENOENT") return null;
  throw error;
}

/**
 * Also while hubs run on it; `stopped` keeps them from writing until close(). @throws {StoreUnavailable}; {Error} one
 * line: no hub, another schema, a hub that is not stopped
 */
export async function postgresSource(url: string, stopped = false): Promise<Source> {
  const rows = await (stopped ? PostgresRows.ofStopped(url) : PostgresRows.snapshot(url));
  return {
    entry: null,
    copyRows: async (path, tools) => {
      const copy = SqliteRows.create(path);
      try {
        await copyTables(rows, copy, tools);
        copy.commit();
      } finally {
        copy.close();
      }
    },
    open: (fileId) => readBlobWithin(rows.session, fileId),
    close: () => rows.close(),
  };
}

type FileRow = { readonly file_id: string; readonly size_bytes: number; readonly sha256: string };

export type CopiedFiles = {
  readonly files: number;
  readonly bytes: number;
  /** Files without bytes, and files whose bytes differ from the upload. */
  readonly missing: string[];
  readonly damaged: string[];
};

export async function copyFiles(
  path: string,
  source: Pick<Source, "open">,
  put: (fileId: string, stored: StoredBytes, onBytes: OnBytes) => Promise<Copied>,
  { onProgress, signal }: Tools,
): Promise<CopiedFiles> {
  const missing: string[] = [];
  const damaged: string[] = [];
  const db = openStopped(path);
  try {
    const sums = `SELECT count(*) AS files, coalesce(sum(size_bytes), 0) AS bytes FROM files`;
    const totals = db.query<{ files: number; bytes: number }, []>(sums).get() ?? { files: 0, bytes: 0 };
    let doneBytes = 0;
    const onBytes = (bytes: number): void => {
      signal.throwIfAborted();
      doneBytes += bytes;
      onProgress(`copying ${totals.files} files: ${sizeText(doneBytes)} of ${sizeText(totals.bytes)}`);
    };
    const sql = "SELECT file_id, size_bytes, sha256 FROM files ORDER BY seq";
    for (const row of db.query<FileRow, []>(sql).iterate()) {
      const stored = await source.open(row.file_id);
      if (stored === null) {
        missing.push(row.file_id);
        continue;
      }
      const { size, sha256 } = await put(row.file_id, stored, onBytes);
      if (size !== row.size_bytes || sha256 !== row.sha256) damaged.push(row.file_id);
    }
    return { ...totals, missing, damaged };
  } finally {
    db.close();
  }
}
