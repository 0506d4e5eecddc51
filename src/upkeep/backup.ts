/**
 * Makes a backup of a data directory, also while a hub runs on it.
 *
 * Invariant: a backup is a snapshot as of the copy of the database. The bytes of a file never change and are not removed
 * while the directory is pinned, so they can be copied after the database.
 * backup-target.ts writes it, and sees to it that nothing under the backup's name is incomplete.
 */
import { Database } from "bun:sqlite";
import { existsSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { blobFileOf } from "../blobs/disk.ts";
import type { DataDir } from "../data-dir.ts";
import { DAY_MS, isoTime } from "../lib/clock.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { shellWord } from "../lib/shell.ts";
import { inspectDatabase } from "../store/sqlite/integrity-check.ts";
import { isHeld, takeSharedLock } from "../store/sqlite/file-lock.ts";
import { ArchiveWriter, type Copied } from "./archive.ts";
import type { ArchiveSink, BackupTarget } from "./backup-target.ts";
import {
  ADMIN_KEY_ENTRY,
  ArchiveUnwritten,
  BACKUP_FORMAT,
  DATABASE_ENTRY,
  MANIFEST_ENTRY,
  type Manifest,
  SECRET_ENTRY,
  type Tools,
  sizeText,
} from "./upkeep.ts";

export type BackupReport = {
  readonly manifest: Manifest;
  readonly sizeBytes: number;
  /** False when the hub gets its secrets from the environment, so that they are not in the backup. */
  readonly hasSecrets: boolean;
};

/**
 * Writes the backup to `to`, and a copy of the database to a temporary file first.
 * @throws {Error} one line: no hub, the backup's name is in use, a damaged database, a full disk
 */
export async function backUp(
  dir: DataDir,
  to: BackupTarget,
  software: string,
  tools: Tools,
): Promise<BackupReport> {
  refuseUnsound(dir);
  const scratch = to.scratch ?? dir.path;
  const copy = join(scratch, `backup-${Bun.randomUUIDv7()}.partial-db`);
  const pin = takeSharedLock(dir.pin);
  if (!pin) throw new Error(`${dir.pin} is held by another process; try again`);
  try {
    const sink = await to.open();
    await removeLeftovers(scratch, tools.clock.now());
    return await writeArchive({ dir, copy, sink, software, at: tools.clock.now() }, tools);
  } catch (error) {
    throw error instanceof ArchiveUnwritten
      ? new Error(`cannot write ${to.name}: ${reasonOf(error.cause)}`, { cause: error })
      : error;
  } finally {
    pin.release();
    await rm(copy, { force: true }).catch(() => {}); // fails only where the copy could not be made either
  }
}

/** What a backup that was killed has left: no running one is that old. */
const LEFTOVER_MS = DAY_MS;
const UNFINISHED = /^backup-[\da-f-]{36}\.partial-db$|\.[\da-f-]{36}\.partial$/;

async function removeLeftovers(folder: string, now: number): Promise<void> {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (UNFINISHED.test(name) && now - Bun.file(path).lastModified > LEFTOVER_MS)
      await rm(path, { force: true });
  }
}

function refuseUnsound(dir: DataDir): void {
  const found = inspectDatabase(dir.database, { wholeMaxBytes: 0, live: isHeld(dir.lock) });
  if (found.kind === "none") throw new Error(`there is no hub in ${dir.path}`);
  if (found.kind === "damaged") {
    throw new Error(
      `the database is damaged: ${found.what}. See more with: luxhub doctor --data ${shellWord(dir.path)}`,
    );
  }
}

/** Copies a snapshot into a new database. The hub may write meanwhile. */
function copyDatabase(from: string, to: string): void {
  const db = new Database(from, { readonly: true });
  try {
    db.run("VACUUM INTO ?", [to]);
  } catch (error) {
    if (codeOf(error) === "SQLITE_FULL") throw new ArchiveUnwritten(new Error("no space left on device"));
    throw new Error(`cannot copy the database ${from}: ${reasonOf(error)}`, { cause: error });
  } finally {
    db.close();
  }
}

type Plan = {
  readonly dir: DataDir;
  /** The copy of the database. */
  readonly copy: string;
  readonly sink: ArchiveSink;
  readonly software: string;
  readonly at: number;
};

async function writeArchive({ dir, copy, sink, software, at }: Plan, tools: Tools): Promise<BackupReport> {
  const archive = new ArchiveWriter(sink, at);
  try {
    tools.onProgress(`copying the database (${sizeText(Bun.file(dir.database).size)})`);
    copyDatabase(dir.database, copy);
    const sha256: Record<string, string> = {};
    const add = async (name: string, path: string): Promise<void> => {
      const copied = await archive.addFile(name, path, () => tools.signal.throwIfAborted());
      if (!copied.whole) throw new Error(`${path} cannot be read`);
      sha256[name] = copied.sha256;
    };
    await add(DATABASE_ENTRY, copy);
    if (existsSync(dir.secretFile)) await add(SECRET_ENTRY, dir.secretFile);
    if (existsSync(dir.adminKeyFile)) await add(ADMIN_KEY_ENTRY, dir.adminKeyFile);
    const files = await addFiles(archive, dir, copy, tools);
    const manifest: Manifest = { format: BACKUP_FORMAT, software, at: isoTime(at), sha256, ...files };
    await archive.addBytes(
      MANIFEST_ENTRY,
      new TextEncoder().encode(`${JSON.stringify(manifest, null, 2)}\n`),
    );
    await archive.end();
    tools.signal.throwIfAborted();
    await sink.finish();
    return {
      manifest,
      sizeBytes: archive.size,
      hasSecrets: SECRET_ENTRY in sha256 && ADMIN_KEY_ENTRY in sha256,
    };
  } finally {
    await archive.close();
  }
}

type FileRow = { readonly file_id: string; readonly size_bytes: number; readonly sha256: string };

async function addFiles(
  archive: ArchiveWriter,
  dir: DataDir,
  copy: string,
  { onProgress, signal }: Tools,
): Promise<Pick<Manifest, "files" | "missing" | "damaged">> {
  const missing: string[] = [];
  const damaged: string[] = [];
  const db = new Database(copy, { readonly: true });
  try {
    const sums = `SELECT count(*) AS files, coalesce(sum(size_bytes), 0) AS bytes FROM files`;
    const all = db.query<{ files: number; bytes: number }, []>(sums).get() ?? { files: 0, bytes: 0 };
    let doneBytes = 0;
    const onBytes = (bytes: number): void => {
      signal.throwIfAborted();
      doneBytes += bytes;
      onProgress(`copying ${all.files} files: ${sizeText(doneBytes)} of ${sizeText(all.bytes)}`);
    };
    for (const row of db
      .query<FileRow, []>("SELECT file_id, size_bytes, sha256 FROM files ORDER BY seq")
      .iterate()) {
      const name = blobFileOf(row.file_id);
      const copied = await archive.addFile(name, `${dir.path}/${name}`, onBytes).catch(nullIfMissing);
      if (copied === null) missing.push(row.file_id);
      else if (!isAsUploaded(copied, row)) damaged.push(row.file_id);
    }
    return { files: all.files, missing, damaged };
  } finally {
    db.close();
  }
}

function isAsUploaded(copied: Copied, row: FileRow): boolean {
  return copied.whole && copied.size === row.size_bytes && copied.sha256 === row.sha256;
}

function nullIfMissing(error: unknown): null {
  if (codeOf(error) === "ENOENT") return null;
  throw error;
}
