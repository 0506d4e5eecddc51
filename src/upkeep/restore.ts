/**
 * Restores a backup into an empty directory.
 *
 * Invariant: every byte is checked against its checksum before anything is moved into place, and the database is moved
 * last. So a hub finds the complete restore or, after an interrupted one, refuses to start.
 */
import { Database } from "bun:sqlite";
import { mkdir, readdir, rename, rm, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isBlobId } from "../blobs/blobs.ts";
import { blobFileOf, flushDirectory } from "../blobs/disk.ts";
import { type DataDir, makeDataDir } from "../data-dir.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { fetchObject } from "./backup-target.ts";
import { ArchiveReader, type Copied, type Entry } from "./archive.ts";
import {
  ADMIN_KEY_ENTRY,
  DATABASE_ENTRY,
  MANIFEST_ENTRY,
  type Manifest,
  SECRET_ENTRY,
  type Tools,
  manifestSchema,
  sizeText,
} from "./upkeep.ts";

const DIR_MODE = 0o700;
/** Exceeds the number of times that a task can have been handed out since the backup was made. */
const EPOCHS_RAISED_BY = 1_000_000;
/** A manifest names missing and damaged files; a million names fit. */
const MANIFEST_MAX_BYTES = 128 * 1024 * 1024;
/** The entries that are moved into place, in this order. */
const PLACES = ["files", SECRET_ENTRY, ADMIN_KEY_ENTRY, DATABASE_ENTRY] as const;

/**
 * Restores the backup `from` into the directory `path`.
 * @throws {Error} one line: a directory in use, a file that is no backup or is incomplete, a full disk
 */
export async function restore(from: string, path: string, tools: Tools): Promise<Manifest> {
  const archive = await ArchiveReader.open(from).catch((error: unknown) => {
    throw new Error(`cannot read ${from}: ${reasonOf(error)}`);
  });
  try {
    const isNew = await refuseInUse(path);
    const dir = makeDataDir(path);
    try {
      await mkdir(dir.unfinishedRestore, { mode: DIR_MODE });
      const manifest = await unpack(archive, dir.unfinishedRestore, tools).catch((error: unknown) => {
        throw new Error(
          isAboutArchive(error)
            ? `${from} cannot be restored: ${error.message}`
            : `cannot write into ${path}: ${reasonOf(error)}`,
        );
      });
      raiseEpochs(join(dir.unfinishedRestore, DATABASE_ENTRY));
      await putInPlace(dir);
      return manifest;
    } catch (error) {
      await rm(dir.unfinishedRestore, { recursive: true, force: true });
      if (isNew) await rmdir(dir.path).catch(() => {}); // fails if someone else has put a file there
      throw error;
    }
  } finally {
    await archive.close();
  }
}

/**
 * Restores the object `from` (`s3://BUCKET/KEY`). It is fetched into a file beside the directory first, because checksums
 * are verified before anything is moved into place.
 * @throws {Error} one line: as restore(), or a storage that cannot be reached
 */
export async function restoreObject(from: string, path: string, tools: Tools): Promise<Manifest> {
  await refuseInUse(path); // before the long download
  const file = `${path}.${Bun.randomUUIDv7()}.partial`;
  let doneBytes = 0;
  try {
    await fetchObject(from, file, (bytes) => {
      tools.signal.throwIfAborted();
      doneBytes += bytes;
      tools.onProgress(`fetching: ${sizeText(doneBytes)}`);
    });
    return await restore(file, path, tools);
  } finally {
    await rm(file, { force: true });
  }
}

/** Refuses a directory that is not empty. Returns whether the directory is still to be created. */
async function refuseInUse(path: string): Promise<boolean> {
  const names = await readdir(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return null;
    throw new Error(`cannot list ${path}: ${reasonOf(error)}`);
  });
  if (names !== null && names.length > 0) {
    throw new Error(`${path} is not empty; name an empty directory or a new one`);
  }
  return names === null;
}

class Unpacked {
  readonly sha256 = new Map<string, string>();
  /** Files whose bytes do not match the database. */
  readonly differing: string[] = [];
  files = 0;
}

async function unpack(archive: ArchiveReader, into: string, tools: Tools): Promise<Manifest> {
  const unpacked = new Unpacked();
  let doneBytes = 0;
  const onBytes = (bytes: number): void => {
    tools.signal.throwIfAborted();
    doneBytes += bytes;
    tools.onProgress(`restoring: ${sizeText(doneBytes)}, ${unpacked.files} files`);
  };
  const first = await archive.next().catch((error: unknown) => {
    throw new Error(`it is no whole backup of luxhub (${reasonOf(error)})`, { cause: error });
  });
  if (first?.header.name !== DATABASE_ENTRY) throw new Error("it is no backup of luxhub");
  const database = join(into, DATABASE_ENTRY);
  unpacked.sha256.set(DATABASE_ENTRY, (await archive.copyTo(database, first, onBytes)).sha256);
  const db = new Database(database, { readonly: true });
  try {
    for (let entry = await archive.next(); entry !== null; entry = await archive.next()) {
      if (entry.header.name === MANIFEST_ENTRY)
        return check(await readManifest(archive, entry), unpacked, db);
      await unpackOne(archive, entry, { into, db, unpacked, onBytes });
    }
    throw new Error("it is cut short");
  } finally {
    db.close();
  }
}

type Place = {
  readonly into: string;
  readonly db: Database;
  readonly unpacked: Unpacked;
  readonly onBytes: (bytes: number) => void;
};

async function unpackOne(archive: ArchiveReader, entry: Entry, place: Place): Promise<void> {
  const { into, db, unpacked, onBytes } = place;
  const { name } = entry.header;
  const path = join(into, name);
  if (name === SECRET_ENTRY || name === ADMIN_KEY_ENTRY) {
    unpacked.sha256.set(name, (await archive.copyTo(path, entry, onBytes)).sha256);
    return;
  }
  const fileId = basename(name);
  if (!isBlobId(fileId) || blobFileOf(fileId) !== name) throw new Error(`${name} is not part of a backup`);
  await mkdir(dirname(path), { recursive: true, mode: DIR_MODE });
  const copied = await archive.copyTo(path, entry, onBytes);
  unpacked.files++;
  if (!isAsRecorded(db, fileId, copied)) unpacked.differing.push(fileId);
}

function isAsRecorded(db: Database, fileId: string, { size, sha256 }: Copied): boolean {
  const sql = "SELECT 1 FROM files WHERE file_id = ? AND size_bytes = ? AND sha256 = ?";
  return db.query(sql).get(fileId, size, sha256) !== null;
}

async function readManifest(archive: ArchiveReader, entry: Entry): Promise<Manifest> {
  const text = new TextDecoder().decode(await archive.bytes(entry, MANIFEST_MAX_BYTES));
  try {
    return manifestSchema.parse(JSON.parse(text));
  } catch (error) {
    throw new Error(`its ${MANIFEST_ENTRY} cannot be read`, { cause: error });
  }
}

/** Checks that everything in the backup was unpacked and is unchanged. */
function check(manifest: Manifest, unpacked: Unpacked, db: Database): Manifest {
  const names = [...new Set([...Object.keys(manifest.sha256), ...unpacked.sha256.keys()])];
  const wrong = names.find((name) => manifest.sha256[name] !== unpacked.sha256.get(name));
  if (wrong !== undefined) throw new Error(`${wrong} is not what was backed up`);
  const named = db.query<{ n: number }, []>("SELECT count(*) AS n FROM files").get()?.n ?? 0;
  if (named !== manifest.files || unpacked.files + manifest.missing.length !== named) {
    throw new Error(`it has ${unpacked.files} files, and its database names ${named}`);
  }
  const damaged = new Set(manifest.damaged);
  const differing = unpacked.differing.find((fileId) => !damaged.has(fileId));
  if (differing !== undefined) throw new Error(`the file ${differing} is not what was backed up`);
  return manifest;
}

/**
 * Raises the epochs of all tasks. Epochs handed out after the backup would otherwise be handed out a second time, and
 * their old holders could complete the task. A database whose schema has no epochs is not changed.
 */
function raiseEpochs(path: string): void {
  const db = new Database(path);
  try {
    const sql = "SELECT count(*) AS n FROM pragma_table_info('tasks') WHERE name = 'epoch'";
    if (db.query<{ n: number }, []>(sql).get()?.n === 1)
      db.run("UPDATE tasks SET epoch = epoch + ?", [EPOCHS_RAISED_BY]);
  } finally {
    db.close();
  }
}

async function putInPlace(dir: DataDir): Promise<void> {
  const there = await readdir(dir.unfinishedRestore);
  await flushDirectories(dir.unfinishedRestore);
  for (const name of PLACES.filter((place) => there.includes(place))) {
    await rename(join(dir.unfinishedRestore, name), join(dir.path, name));
    await flushDirectory(dir.path); // keeps the same order on disk
  }
  await rmdir(dir.unfinishedRestore);
  await flushDirectory(dir.path);
}

async function flushDirectories(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await flushDirectories(join(path, entry.name));
  }
  await flushDirectory(path);
}

/** Whether an error is about the archive. The system's errors, which have a code, are about the target directory. */
function isAboutArchive(error: unknown): error is Error {
  return error instanceof Error && (!("code" in error) || String(error.code).startsWith("SQLITE_"));
}
