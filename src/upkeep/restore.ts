/**
 * Restores a backup: into an empty directory, or into an empty database of PostgreSQL.
 *
 * Invariant: every byte is checked against its checksum before the target is finished (target.ts). So a hub finds the
 * complete restore or, after an interrupted one, none.
 */
import { Database } from "bun:sqlite";
import { existsSync, readFileSync } from "node:fs";
import { readdir, rmdir } from "node:fs/promises";
import { basename, join } from "node:path";
import * as z from "zod/mini";
import { isBlobId } from "../blobs/blobs.ts";
import { blobFileOf } from "../blobs/disk.ts";
import { type DataDir, makeDataDir } from "../data-dir.ts";
import { must } from "../lib/assert.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { RAISE_EPOCHS } from "../store/sqlite/change-log.ts";
import { schemaVersion } from "../store/sqlite/schema-version.ts";
import { ageOf, refusalOf } from "../store/sql/schema.ts";
import { SQLITE_SCHEMA } from "../store/sqlite/schema.ts";
import { ArchiveReader, type Entry } from "./archive.ts";
import { openBackup } from "./backup-target.ts";
import { type Target, directoryTarget, postgresTarget, toTargetError, withLock } from "./target.ts";
import {
  BACKUP_FORMAT,
  BadArchive,
  type Copied,
  DATABASE_ENTRY,
  type HubPlace,
  MANIFEST_ENTRY,
  type Manifest,
  SECRET_ENTRIES,
  type Tools,
  sizeText,
  writeNewFile,
} from "./upkeep.ts";

const formatSchema = z.object({ format: z.int() });

const manifestSchema: z.ZodMiniType<Manifest> = z.object({
  format: z.literal(BACKUP_FORMAT),
  software: z.string(),
  at: z.string(),
  sha256: z.record(z.string(), z.string()),
  files: z.int(),
  missing: z.array(z.string()),
  damaged: z.array(z.string()),
});

/** A million names of missing and damaged files fit. */
const MANIFEST_MAX_BYTES = 128 * 1024 * 1024;

export type Restored = {
  readonly manifest: Manifest;
  /** Secrets of the data directory that stay although the backup's differ. */
  readonly keptSecrets: readonly string[];
};

/**
 * `from`: a path, `s3://BUCKET/KEY`, or `-` for standard input. Into the data directory or, of a place with a URL, the
 * database and what the directory lacks of secrets. @throws {StoreUnavailable}; {Error} one line: a directory or
 * database in use, no backup, an incomplete one, a full disk
 */
export async function restore(from: string, place: HubPlace, tools: Tools): Promise<Restored> {
  const { url } = place;
  const { path } = place.dir;
  const isNew = url === null && (await refuseInUse(place.dir)); // before a long download
  const dir = makeDataDir(path);
  try {
    if (url === null) return await fill(await directoryTarget(dir), from, path, tools);
    return await withLock(dir, async () => fill(await postgresTarget(dir, url, null), from, path, tools));
  } catch (error) {
    if (isNew) await rmdir(path).catch(() => {}); // fails if someone else has put a file there
    if (isAboutArchive(error))
      throw new Error(`${from === "-" ? "standard input" : from} cannot be restored: ${error.message}`, {
        cause: error,
      });
    const known = toTargetError(error, dir, url);
    if (codeOf(known) === "") throw known;
    throw new Error(`cannot write into ${path}: ${reasonOf(known)}`, { cause: error });
  }
}

/** Returns whether the directory is still to be created. */
async function refuseInUse({ path, unfinishedRestore }: DataDir): Promise<boolean> {
  const names = await readdir(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return null;
    throw new Error(`cannot list ${path}: ${reasonOf(error)}`);
  });
  if (names?.includes(basename(unfinishedRestore)))
    throw new Error(
      `${path} has a restore or a move that was not finished; delete it, or name a new directory`,
    );
  if (names !== null && names.length > 0)
    throw new Error(`${path} is not empty; name an empty directory or a new one`);
  return names === null;
}

async function fill(target: Target, from: string, path: string, tools: Tools): Promise<Restored> {
  const archive = new ArchiveReader(openBackup(from));
  try {
    const manifest = await unpack(archive, target, tools);
    const isKept = (name: string): boolean => {
      const [existing, brought] = [join(path, name), join(target.folder, name)];
      return (
        existsSync(existing) &&
        existsSync(brought) &&
        readFileSync(existing, "utf8") !== readFileSync(brought, "utf8")
      );
    };
    const keptSecrets = SECRET_ENTRIES.filter(isKept);
    const database = join(target.folder, DATABASE_ENTRY);
    raiseEpochs(database);
    await target.finish(database, tools);
    return { manifest, keptSecrets };
  } finally {
    await archive.close();
    await target.close();
  }
}

class Unpacked {
  readonly sha256 = new Map<string, string>();
  readonly differing: string[] = [];
  files = 0;
}

async function unpack(archive: ArchiveReader, target: Target, tools: Tools): Promise<Manifest> {
  const unpacked = new Unpacked();
  let doneBytes = 0;
  const onBytes = (bytes: number): void => {
    tools.signal.throwIfAborted();
    doneBytes += bytes;
    tools.onProgress(`restoring: ${sizeText(doneBytes)}, ${unpacked.files} files`);
  };
  const first = await archive.next().catch((error: unknown) => {
    if (!(error instanceof BadArchive)) throw error;
    throw new BadArchive(`it is no whole backup of luxhub (${error.message})`, { cause: error });
  });
  if (first?.header.name !== DATABASE_ENTRY) throw new BadArchive("it is no backup of luxhub");
  const database = join(target.folder, DATABASE_ENTRY);
  unpacked.sha256.set(DATABASE_ENTRY, (await writeNewFile(database, archive.chunks(first), onBytes)).sha256);
  const db = new Database(database, { readonly: true });
  try {
    for (let entry = await archive.next(); entry !== null; entry = await archive.next()) {
      const { name } = entry.header;
      if (name === MANIFEST_ENTRY) return check(await readManifest(archive, entry), unpacked, db);
      if (SECRET_ENTRIES.includes(name)) {
        const { sha256 } = await writeNewFile(join(target.folder, name), archive.chunks(entry), onBytes);
        unpacked.sha256.set(name, sha256);
        continue;
      }
      const fileId = fileIdOf(entry);
      const copied = await target.put(fileId, archive.chunks(entry), onBytes);
      unpacked.files++;
      if (!isAsRecorded(db, fileId, copied)) unpacked.differing.push(fileId);
    }
    throw new BadArchive("it is cut short");
  } finally {
    db.close();
  }
}

function fileIdOf({ header: { name } }: Entry): string {
  const fileId = basename(name);
  if (!isBlobId(fileId) || blobFileOf(fileId) !== name)
    throw new BadArchive(`${name} is not part of a backup`);
  return fileId;
}

function isAsRecorded(db: Database, fileId: string, { size, sha256 }: Copied): boolean {
  const sql = "SELECT 1 FROM files WHERE file_id = ? AND size_bytes = ? AND sha256 = ?";
  return db.query(sql).get(fileId, size, sha256) !== null;
}

async function readManifest(archive: ArchiveReader, entry: Entry): Promise<Manifest> {
  const text = await archive.text(entry, MANIFEST_MAX_BYTES);
  try {
    const manifest: unknown = JSON.parse(text);
    refuseNewer("format", formatSchema.parse(manifest).format, BACKUP_FORMAT);
    return manifestSchema.parse(manifest);
  } catch (error) {
    if (error instanceof BadArchive) throw error;
    throw new BadArchive(`its ${MANIFEST_ENTRY} cannot be read`, { cause: error });
  }
}

/** Everything was unpacked and is unchanged, and this luxhub can use it. */
function check(manifest: Manifest, unpacked: Unpacked, db: Database): Manifest {
  const names = [...new Set([...Object.keys(manifest.sha256), ...unpacked.sha256.keys()])];
  const wrong = names.find((name) => manifest.sha256[name] !== unpacked.sha256.get(name));
  if (wrong !== undefined) throw new BadArchive(`${wrong} is not what was backed up`);
  const schema = schemaVersion(db);
  refuseNewer("schema", schema, SQLITE_SCHEMA.version);
  if (ageOf(SQLITE_SCHEMA, schema) === "unpublished") throw new BadArchive(refusalOf(SQLITE_SCHEMA, schema));
  const count = db.query<{ n: number }, []>("SELECT count(*) AS n FROM files").get();
  const named = must(count, "an aggregate has a value").n;
  if (named !== manifest.files || unpacked.files + manifest.missing.length !== named) {
    throw new BadArchive(`it has ${unpacked.files} files, and its database names ${named}`);
  }
  const damaged = new Set(manifest.damaged);
  const differing = unpacked.differing.find((fileId) => !damaged.has(fileId));
  if (differing !== undefined) throw new BadArchive(`the file ${differing} is not what was backed up`);
  return manifest;
}

function refuseNewer(what: string, version: number, known: number): void {
  if (version > known)
    throw new BadArchive(`it is of a newer luxhub (${what} ${version}, this one knows ${known})`);
}

/**
 * Epochs and numbers of entries handed out after the backup would be handed out again: old holders of tasks could complete
 * them, and an old copy would take another history for its own. An old schema may have neither.
 */
function raiseEpochs(path: string): void {
  const db = new Database(path);
  try {
    const has = db.query("SELECT 1 FROM pragma_table_info(?) WHERE name = ?");
    if (has.get("tasks", "epoch") !== null) db.run(RAISE_EPOCHS);
    if (has.get("changes", "n") !== null) db.run("DELETE FROM changes; DELETE FROM change_texts");
  } finally {
    db.close();
  }
}

function isAboutArchive(error: unknown): error is Error {
  const isDamage = /^SQLITE_(?:CORRUPT|NOTADB|FORMAT|ERROR)/.test(codeOf(error));
  return error instanceof BadArchive || (error instanceof Error && isDamage);
}
