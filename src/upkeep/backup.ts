/**
 * Makes a backup of a hub, also while it runs. source.ts sees to it that the backup is of one moment; backup-target.ts,
 * that nothing under its name is incomplete.
 */
import { existsSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { blobFileOf } from "../blobs/disk.ts";
import { type DataDir, makeDataDir } from "../data-dir.ts";
import { DAY_MS, isoTime } from "../lib/clock.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { ArchiveWriter } from "./archive.ts";
import type { ArchiveSink, BackupTarget } from "./backup-target.ts";
import { toDatabaseError } from "./postgres-rows.ts";
import { type Source, copyFiles, directorySource, postgresSource, storedAt } from "./source.ts";
import {
  ArchiveUnwritten,
  BACKUP_FORMAT,
  DATABASE_ENTRY,
  type HubPlace,
  MANIFEST_ENTRY,
  type Manifest,
  NEEDED_SECRETS,
  SECRET_ENTRIES,
  type Tools,
} from "./upkeep.ts";

export type BackupReport = {
  readonly name: string;
  readonly manifest: Manifest;
  readonly sizeBytes: number;
  /** False when they are not in the data directory. */
  readonly hasSecrets: boolean;
};

/** `entry`: as Source.entry. */
export type TargetAt = (entry: number | null) => BackupTarget;

/**
 * A copy of all rows goes to a temporary file first. @throws {StoreUnavailable}; {Error} one line: no hub, the backup's
 * name is in use, a damaged database, a full disk
 */
export async function backUp(
  { dir, url }: HubPlace,
  given: BackupTarget | TargetAt,
  software: string,
  tools: Tools,
): Promise<BackupReport> {
  const startedAt = tools.clock.now();
  const source = url === null ? directorySource(dir) : await postgresSource(url);
  const to = typeof given === "function" ? given(source.entry) : given;
  const scratch = to.scratch ?? dir.path;
  const copy = temporaryCopy(scratch);
  try {
    if (url !== null && to.scratch === null) makeDataDir(dir.path);
    const sink = await to.open();
    await removeLeftovers(scratch, startedAt);
    const report = await writeArchive({ dir, source, copy, sink, software, at: startedAt }, tools);
    return { name: to.name, ...report };
  } catch (error) {
    if (error instanceof ArchiveUnwritten)
      throw new Error(`cannot write ${to.name}: ${reasonOf(error.cause)}`, { cause: error });
    throw url === null ? error : toDatabaseError(error, url);
  } finally {
    await source.close();
    await rm(copy, { force: true }).catch(() => {}); // fails only where the copy could not be made either
  }
}

/** Backups remove one that a killed process has left, a day later. */
export function temporaryCopy(folder: string): string {
  return join(folder, `backup-${Bun.randomUUIDv7()}.partial-db`);
}

/** No running backup is that old. */
const LEFTOVER_MS = DAY_MS;
const UNFINISHED = /^backup-[\da-f-]{36}\.partial-db$|\.[\da-f-]{36}\.partial$/;

async function removeLeftovers(folder: string, now: number): Promise<void> {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (UNFINISHED.test(name) && now - Bun.file(path).lastModified > LEFTOVER_MS)
      await rm(path, { force: true });
  }
}

type Plan = {
  readonly dir: DataDir;
  readonly source: Source;
  readonly copy: string;
  readonly sink: ArchiveSink;
  readonly software: string;
  readonly at: number;
};

async function writeArchive(
  { dir, source, copy, sink, software, at: startedAt }: Plan,
  tools: Tools,
): Promise<Omit<BackupReport, "name">> {
  const archive = new ArchiveWriter(sink, startedAt);
  try {
    await source.copyRows(copy, tools).catch((error: unknown) => {
      if (codeOf(error) !== "SQLITE_FULL") throw error;
      throw new ArchiveUnwritten(new Error("no space left on device"));
    });
    const sha256: Record<string, string> = {};
    const add = async (name: string, path: string): Promise<void> => {
      const stored = await storedAt(path);
      const copied = stored && (await archive.add(name, stored, () => tools.signal.throwIfAborted()));
      if (!copied?.isWhole) throw new Error(`${path} cannot be read`);
      sha256[name] = copied.sha256;
    };
    await add(DATABASE_ENTRY, copy);
    const secrets = SECRET_ENTRIES.filter((name) => existsSync(join(dir.path, name)));
    for (const name of secrets) await add(name, join(dir.path, name));
    const put = archive.add.bind(archive);
    const copied = await copyFiles(
      copy,
      source,
      (fileId, ...details) => put(blobFileOf(fileId), ...details),
      tools,
    );
    const { files, missing, damaged } = copied;
    const manifest: Manifest = {
      format: BACKUP_FORMAT,
      software,
      at: isoTime(startedAt),
      sha256,
      files,
      missing,
      damaged,
    };
    await archive.addText(MANIFEST_ENTRY, `${JSON.stringify(manifest, null, 2)}\n`);
    await archive.end();
    tools.signal.throwIfAborted();
    await sink.finish();
    return {
      manifest,
      sizeBytes: archive.size,
      hasSecrets: NEEDED_SECRETS.every((name) => secrets.includes(name)),
    };
  } finally {
    await archive.close();
  }
}
