/**
 * Where a restore or a move puts a hub: a data directory without a database, or an empty database of PostgreSQL.
 *
 * Invariant: the last step is atomic: in a directory the database appears last, under its name; in PostgreSQL one
 * transaction has everything. Before it no hub starts on the target, and close() leaves what was there before. A killed
 * process leaves `.restoring` in the data directory, and files that no database names; the next run removes or replaces
 * them.
 */
import { existsSync } from "node:fs";
import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { blobFileOf, flushDirectory } from "../blobs/disk.ts";
import { beginBlobWithin } from "../blobs/postgres.ts";
import type { DataDir } from "../data-dir.ts";
import { codeOf } from "../lib/reason.ts";
import { takeExclusiveLock } from "../store/sqlite/file-lock.ts";
import { migrate } from "../store/sqlite/migrate.ts";
import { SQLITE_SCHEMA } from "../store/sqlite/schema.ts";
import { PostgresRows, toDatabaseError } from "./postgres-rows.ts";
import { SqliteRows, openStopped } from "./sqlite-rows.ts";
import { copyTables } from "./tables.ts";
import { type Copied, type OnBytes, SECRET_ENTRIES, type Tools, writeNewFile } from "./upkeep.ts";

export type Target = {
  /** For the database, until finish(), and for the secrets that the hub brings. */
  readonly folder: string;
  put(fileId: string, chunks: AsyncIterable<Uint8Array>, onBytes: OnBytes): Promise<Copied>;
  /**
   * The secrets in `folder` are taken unless the data directory has its own. Returns when everything is durable and
   * visible.
   */
  finish(path: string, tools: Tools): Promise<void>;
  close(): Promise<void>;
};

const DIR_MODE = 0o700;

/** finish() takes only the database in `folder`. */
export async function directoryTarget(dir: DataDir): Promise<Target> {
  const files = join(dir.path, "files");
  const partial = join(files, ".partial"); // not in `folder`: a disk may be mounted at files/
  const hadFiles = existsSync(files);
  let isFinished = false;
  const close = async (): Promise<void> => {
    await rm(dir.unfinishedRestore, { recursive: true, force: true });
    await rm(isFinished || hadFiles ? partial : files, { recursive: true, force: true });
  };
  try {
    for (const folder of [dir.unfinishedRestore, partial]) await makeEmpty(folder);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    folder: dir.unfinishedRestore,
    put: async (fileId, chunks, onBytes) => {
      const unfinished = join(partial, fileId);
      const copied = await writeNewFile(unfinished, chunks, onBytes);
      const path = join(dir.path, blobFileOf(fileId));
      await mkdir(dirname(path), { recursive: true, mode: DIR_MODE });
      await rename(unfinished, path);
      return copied;
    },
    finish: async (path) => {
      await flushFile(path);
      await flushDirectories(files);
      await putSecrets(dir);
      await rename(path, dir.database);
      isFinished = true;
      await flushDirectory(dir.path);
    },
    close,
  };
}

/**
 * @param identity the hub that is to be written, if it is known @throws {StoreUnavailable}; {Error} one line: the
 * database is not empty
 */
export async function postgresTarget(dir: DataDir, url: string, identity: string | null): Promise<Target> {
  const rows = await PostgresRows.intoEmpty(url, identity);
  const close = async (): Promise<void> => {
    await rows.close();
    await rm(dir.unfinishedRestore, { recursive: true, force: true });
  };
  try {
    await makeEmpty(dir.unfinishedRestore);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    folder: dir.unfinishedRestore,
    put: async (fileId, chunks, onBytes) => {
      const writer = await beginBlobWithin(rows.session, fileId);
      for await (const chunk of chunks) {
        await writer.write(chunk);
        onBytes(chunk.length);
      }
      return writer.finish();
    },
    finish: async (path, tools) => {
      migrateFrom(path);
      const from = SqliteRows.read(path);
      try {
        await copyTables(from, rows, tools);
      } finally {
        from.close();
      }
      await putSecrets(dir);
      await rows.commit();
    },
    close,
  };
}

/** The lock excludes hubs, moves and restores. */
export async function withLock<T>(dir: DataDir, work: () => Promise<T>): Promise<T> {
  const lock = takeExclusiveLock(dir.lock);
  if (!lock) throw new Error(`another luxhub is using the data directory ${dir.path}: stop it first`);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

const FULL = /^(?:SQLITE_(?:FULL|IOERR_SHMSIZE)|ENOSPC|EDQUOT)$/;

export function toTargetError(error: unknown, { path }: DataDir, url: string | null): unknown {
  if (FULL.test(codeOf(error)))
    return new Error(`the disk of ${path} is full: make room, then run it again`, { cause: error });
  return url === null ? error : toDatabaseError(error, url);
}

async function makeEmpty(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true, mode: DIR_MODE });
}

async function flushDirectories(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await flushDirectories(join(path, entry.name));
  }
  await flushDirectory(path);
}

/** From an older luxhub to the schema that the rows of both engines have. */
function migrateFrom(path: string): void {
  const db = openStopped(path);
  try {
    migrate(db, path, SQLITE_SCHEMA);
  } finally {
    db.close();
  }
}

/** Secrets that the data directory has stay. */
async function putSecrets({ path, unfinishedRestore }: DataDir): Promise<void> {
  for (const name of SECRET_ENTRIES) {
    const from = join(unfinishedRestore, name);
    if (existsSync(from) && !existsSync(join(path, name))) await rename(from, join(path, name));
  }
  await flushDirectory(path); // before the database, on disk too
}

async function flushFile(path: string): Promise<void> {
  const file = await open(path, "r+"); // Windows flushes only what may be written
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
