/**
 * Restores a backup, or a moment after one: into an empty directory, or into an empty database of PostgreSQL. The entries
 * of the change log run on the unpacked database.
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
import { isoTime } from "../lib/clock.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { alsoIn, applyEntries, lastEntryOf, raiseEpochs } from "../store/sqlite/change-log.ts";
import { Connection } from "../store/sqlite/connection.ts";
import { schemaVersion } from "../store/sqlite/schema-version.ts";
import { ageOf, refusalOf } from "../store/sql/schema.ts";
import { SQLITE_SCHEMA } from "../store/sqlite/schema.ts";
import type { Entry } from "../store/store.ts";
import { type Entry as ArchiveEntry, ArchiveReader } from "./archive.ts";
import { type BackupPlace, type Dated, backupsIn, openBackup } from "./backup-target.ts";
import { type Gap, type PieceName, entriesFrom, filesIn, piecesIn } from "./change-archive.ts";
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
  /** Null: that of the backup. */
  readonly moment: Moment | null;
};

/** A backup and entries after it. */
export type Moment = {
  readonly backup: string;
  /** The last one that was applied, or of the backup. */
  readonly entry: Pick<Entry, "n" | "at">;
  /** The next one in the place; null: there is none, or it is missing. */
  readonly next: Pick<Entry, "n" | "at"> | null;
  /** How many there are after it. */
  readonly left: number;
  readonly files: number;
  /** Files whose bytes were deleted before they could be archived. */
  readonly missing: readonly string[];
  /** Newer backups that cannot be used, and why: an older one with more entries leads to the same moment. */
  readonly damaged: readonly string[];
};

/**
 * `from`: a path, `s3://BUCKET/KEY`, or `-` for standard input. Into the data directory or, of a place with a URL, the
 * database and what the directory lacks of secrets. @throws {StoreUnavailable}; {Error} one line: a directory or
 * database in use, no backup, an incomplete one, a full disk
 */
export async function restore(from: string, hub: HubPlace, tools: Tools): Promise<Restored> {
  const name = from === "-" ? "standard input" : from;
  return into(hub, name, async (open) =>
    fill(await open(), { bytes: openBackup(from), folder: hub.dir.path, advance: null }, tools),
  );
}

/**
 * As restore(), of a backup in a place and what came after it, up to the first entry that is later than `at` (epoch
 * milliseconds; null: up to the last one). That is the newest backup before `at` that leads there.
 */
export async function restoreMoment(
  place: BackupPlace,
  at: number | null,
  hub: HubPlace,
  tools: Tools,
): Promise<Restored> {
  const archive = { place, at, backups: await backupsIn(place), pieces: await piecesIn(place) };
  const damaged: string[] = [];
  return into(hub, place.name, async (open) => {
    for (const backup of archive.backups.toReversed()) {
      if (at !== null && backup.at > at) continue;
      const advance = new Advance({ backup, damaged, ...archive }, tools);
      try {
        const bytes = place.open(backup.name);
        return await fill(await open(), { bytes, folder: hub.dir.path, advance }, tools);
      } catch (error) {
        if (error instanceof DoesNotLead) continue;
        if (!isAboutArchive(error) || advance.isUnpacked) throw error;
        damaged.push(`${backup.name}: ${error.message}`);
        if (backup.entry === null) break; // no entries of an older one lead there
      }
    }
    if (damaged.length > 0) throw new Error(`${place.name} cannot be restored: ${damaged.join("; ")}`);
    const oldest = archive.backups[0];
    throw new Error(
      oldest === undefined
        ? `${place.name} has no backup`
        : `${place.name} has no backup that is as old as ${isoTime(at ?? oldest.at)}: the oldest is ${oldest.name}`,
    );
  });
}

async function into(
  place: HubPlace,
  from: string,
  work: (open: () => Promise<Target>) => Promise<Restored>,
): Promise<Restored> {
  const { url } = place;
  const { path } = place.dir;
  const isNew = url === null && (await refuseInUse(place.dir)); // before a long download
  const dir = makeDataDir(path);
  try {
    if (url === null) return await work(() => directoryTarget(dir));
    return await withLock(dir, () => work(() => postgresTarget(dir, url, null)));
  } catch (error) {
    if (isNew) await rmdir(path).catch(() => {}); // fails if someone else has put a file there
    if (isAboutArchive(error))
      throw new Error(`${from} cannot be restored: ${error.message}`, { cause: error });
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

/**
 * The base of a standby: a backup as the first hub makes it, in a data directory that may have an older copy. @throws
 * {Error} one line
 */
export async function takeBase(
  bytes: ReadableStream<Uint8Array>,
  dir: DataDir,
  tools: Tools,
): Promise<Manifest> {
  return withLock(dir, async () => {
    const filling = { bytes, folder: dir.path, advance: null, isBase: true } as const;
    return (await fill(await directoryTarget(dir), filling, tools)).manifest;
  });
}

type Filling = {
  readonly bytes: ReadableStream<Uint8Array>;
  /** The data directory. */
  readonly folder: string;
  readonly advance: Advance | null;
  /** Of a standby: it goes on with the history of its first hub. */
  readonly isBase?: true;
};

async function fill(
  target: Target,
  { bytes, folder, advance, isBase }: Filling,
  tools: Tools,
): Promise<Restored> {
  const archive = new ArchiveReader(bytes);
  try {
    const manifest = await unpack(archive, target, advance, tools);
    const isKept = (name: string): boolean => {
      const [existing, brought] = [join(folder, name), join(target.folder, name)];
      return (
        existsSync(existing) &&
        existsSync(brought) &&
        readFileSync(existing, "utf8") !== readFileSync(brought, "utf8")
      );
    };
    const keptSecrets = SECRET_ENTRIES.filter(isKept);
    if (isBase && keptSecrets.length > 0)
      throw new Error(`${folder} has another ${keptSecrets[0]} than the first hub: delete that file`);
    const database = join(target.folder, DATABASE_ENTRY);
    const moment = (await advance?.run(database, target)) ?? null;
    if (!isBase) beginHistory(database);
    await target.finish(database, tools);
    return { manifest, keptSecrets, moment };
  } finally {
    await archive.close();
    await target.close();
  }
}

/** The backup has entries that are later than the moment: its date is that of its beginning. Or it has none. */
class DoesNotLead extends Error {}

type Way = {
  readonly backup: Dated;
  readonly damaged: readonly string[];
  readonly place: BackupPlace;
  readonly at: number | null;
  readonly backups: readonly Dated[];
  readonly pieces: readonly PieceName[];
};

/** From a backup to a moment. */
class Advance {
  readonly #way: Way;
  readonly #tools: Tools;
  isUnpacked = false;

  constructor(way: Way, tools: Tools) {
    this.#way = way;
    this.#tools = tools;
  }

  /** Before the rest of the backup is read. @throws {DoesNotLead} */
  check(db: Database): void {
    const { at, place, backup, damaged } = this.#way;
    const last = lastEntryOf(db);
    if (last === null && damaged.length > 0) throw new DoesNotLead();
    if (at !== null && last === null)
      throw new Error(`${place.name} has no changes after ${backup.name}: restore that backup by its name`);
    if (at !== null && last !== null && last.at > at) throw new DoesNotLead();
  }

  /** Null when the backup has no change log: the moment is its own. */
  async run(database: string, target: Target): Promise<Moment | null> {
    this.isUnpacked = true;
    const { backup, damaged } = this.#way;
    const db = new Database(database, { readwrite: true, strict: true });
    try {
      for (const pragma of ["journal_mode = MEMORY", "synchronous = OFF", `cache_size = -${CACHE_KIB}`])
        db.run(`PRAGMA ${pragma}`); // an interrupted restore is begun again
      const base = lastEntryOf(db);
      if (base === null) return null;
      const moment = await this.#applyAll(db, base);
      refuseUnknown(schemaVersion(db));
      const missing = await this.#putFiles(db, moment.fileIds, new Set(moment.missing), target);
      return { ...moment, backup: backup.name, files: countOfFiles(db), missing, damaged };
    } finally {
      db.close();
    }
  }

  async #applyAll(db: Database, base: Entry) {
    const { at, place, backups, pieces } = this.#way;
    const connection = new Connection(db, { note: () => {} });
    const ends = [...pieces.map(({ last }) => last), ...backups.flatMap(({ entry }) => entry ?? [])];
    const left = (n: number): number => ends.reduce((a, b) => Math.max(a, b), n) - n;
    const fileIds: string[] = [];
    const missing: string[] = [];
    let entry = base;
    const following = entriesFrom(base, pieces, backups, place);
    for (;;) {
      const { done, value } = await following.next();
      if (done) {
        if (value !== null && entry.at !== at) throw new Error(gapText(entry, value, place));
        return { entry, next: null, left: left(entry.n), fileIds, missing };
      }
      const later = at === null ? -1 : value.entries.findIndex((each) => each.at > at);
      const entries = later < 0 ? value.entries : value.entries.slice(0, later);
      this.#tools.signal.throwIfAborted();
      this.#tools.onProgress(`applying changes: up to ${isoTime(entry.at)}`);
      apply(db, connection, entries);
      fileIds.push(...entries.flatMap((each) => alsoIn(each).files ?? []));
      missing.push(...value.missing);
      entry = entries.at(-1) ?? entry;
      const next = value.entries[later];
      if (next !== undefined) return { entry, next, left: left(entry.n), fileIds, missing };
    }
  }

  /** Of those that came after the backup and are still there. Returns which have no bytes. */
  async #putFiles(
    db: Database,
    fileIds: readonly string[],
    missing: ReadonlySet<string>,
    target: Target,
  ): Promise<readonly string[]> {
    const { place } = this.#way;
    const names = new Map((await filesIn(place)).map(({ fileId, name }) => [fileId, name]));
    const lost: string[] = [];
    for (const fileId of fileIds) {
      if (db.query("SELECT 1 FROM files WHERE file_id = ?").get(fileId) === null) continue;
      const name = names.get(fileId);
      if (name === undefined && !missing.has(fileId))
        throw new Error(`${place.name} lacks the bytes of the file ${fileId}`);
      if (name === undefined) lost.push(fileId);
      else {
        const copied = await target.put(fileId, place.open(name), () => this.#tools.signal.throwIfAborted());
        if (!isAsRecorded(db, fileId, copied))
          throw new BadArchive(`${name} has other bytes than were uploaded`);
      }
    }
    return lost;
  }
}

const CACHE_KIB = 64 * 1024;

function apply(db: Database, connection: Connection, entries: readonly Entry[]): void {
  try {
    applyEntries(db, entries, (sql, params) => void connection.run(sql, params));
  } catch (error) {
    if (/^SQLITE_(?:FULL|IOERR)/.test(codeOf(error))) throw error;
    throw new BadArchive(`the entries from ${entries[0]?.n} on do not fit its backup (${reasonOf(error)})`, {
      cause: error,
    });
  }
}

function gapText({ n, at }: Entry, { beyond }: Gap, { name }: BackupPlace): string {
  const missing = beyond === n + 1 ? `what follows entry ${n}` : `the entries from ${n + 1} to ${beyond - 1}`;
  return `${name} lacks ${missing}: restore what is before with --at ${isoTime(at)}, or a time after the next backup`;
}

class Unpacked {
  readonly sha256 = new Map<string, string>();
  readonly differing: string[] = [];
  files = 0;
}

async function unpack(
  archive: ArchiveReader,
  target: Target,
  advance: Advance | null,
  tools: Tools,
): Promise<Manifest> {
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
    advance?.check(db);
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

function fileIdOf({ header: { name } }: ArchiveEntry): string {
  const fileId = basename(name);
  if (!isBlobId(fileId) || blobFileOf(fileId) !== name)
    throw new BadArchive(`${name} is not part of a backup`);
  return fileId;
}

function isAsRecorded(db: Database, fileId: string, { size, sha256 }: Copied): boolean {
  const sql = "SELECT 1 FROM files WHERE file_id = ? AND size_bytes = ? AND sha256 = ?";
  return db.query(sql).get(fileId, size, sha256) !== null;
}

async function readManifest(archive: ArchiveReader, entry: ArchiveEntry): Promise<Manifest> {
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
  refuseUnknown(schemaVersion(db));
  const named = countOfFiles(db);
  if (named !== manifest.files || unpacked.files + manifest.missing.length !== named) {
    throw new BadArchive(`it has ${unpacked.files} files, and its database names ${named}`);
  }
  const damaged = new Set(manifest.damaged);
  const differing = unpacked.differing.find((fileId) => !damaged.has(fileId));
  if (differing !== undefined) throw new BadArchive(`the file ${differing} is not what was backed up`);
  return manifest;
}

function countOfFiles(db: Database): number {
  const count = db.query<{ n: number }, []>("SELECT count(*) AS n FROM files").get();
  return must(count, "an aggregate has a value").n;
}

function refuseUnknown(schema: number): void {
  refuseNewer("schema", schema, SQLITE_SCHEMA.version);
  if (ageOf(SQLITE_SCHEMA, schema) === "unpublished") throw new BadArchive(refusalOf(SQLITE_SCHEMA, schema));
}

function refuseNewer(what: string, version: number, known: number): void {
  if (version > known)
    throw new BadArchive(`it is of a newer luxhub (${what} ${version}, this one knows ${known})`);
}

/**
 * Epochs and numbers of entries handed out after the backup would be handed out again: old holders of tasks could complete
 * them, and an old copy would take another history for its own. An old schema may have neither.
 */
function beginHistory(path: string): void {
  const db = new Database(path);
  try {
    raiseEpochs(db);
    const log = db.query("SELECT 1 FROM sqlite_schema WHERE name = 'changes'");
    if (log.get() !== null) db.run("DELETE FROM changes; DELETE FROM change_texts");
  } finally {
    db.close();
  }
}

function isAboutArchive(error: unknown): error is Error {
  const isDamage = /^SQLITE_(?:CORRUPT|NOTADB|FORMAT|ERROR)/.test(codeOf(error));
  return error instanceof BadArchive || (error instanceof Error && isDamage);
}
