/**
 * Shared by backup, restore, move and doctor: the format of a backup, progress, cancellation, errors, sizes as text.
 *
 * A backup is one tar archive, the same for both engines: luxhub.db first (a SQLite database with all rows), then the
 * secrets that are in the data directory, the bytes of every file that the database names, and backup.json last. So an
 * archive without backup.json is recognised as cut short.
 */
import { type FileHandle, open } from "node:fs/promises";
import type { DataDir } from "../data-dir.ts";
import type { Clock } from "../lib/clock.ts";

export type Tools = {
  readonly clock: Clock;
  readonly onProgress: (text: string) => void;
  /** The work then removes its unfinished files. */
  readonly signal: AbortSignal;
};

export type HubPlace = {
  readonly dir: DataDir;
  /** Null for a hub on SQLite, all of which is in the data directory. */
  readonly url: string | null;
};

export const FILE_MODE = 0o600;
export const DATABASE_ENTRY = "luxhub.db";
export const SECRET_ENTRY = "secret";
export const ADMIN_KEY_ENTRY = "admin-key";
export const MANIFEST_ENTRY = "backup.json";
/** The version of the format; others are refused. */
export const BACKUP_FORMAT = 1;
export const NEEDED_SECRETS: readonly string[] = [SECRET_ENTRY, ADMIN_KEY_ENTRY];
/** Named as the files in the data directory; the last two are of --tls auto. */
export const SECRET_ENTRIES: readonly string[] = [...NEEDED_SECRETS, "tls-ca-key.pem", "tls-ca.pem"];

export type Manifest = {
  readonly format: typeof BACKUP_FORMAT;
  readonly software: string;
  /** The time of the snapshot, ISO 8601. */
  readonly at: string;
  /** By entry, of the database and of the secrets. The database has the checksums of the files. */
  readonly sha256: Readonly<Record<string, string>>;
  readonly files: number;
  /** Files whose bytes were missing or damaged when the backup was made. */
  readonly missing: readonly string[];
  readonly damaged: readonly string[];
};

/** `chunks`: as many as can be read. */
export type StoredBytes = { readonly size: number; readonly chunks: AsyncIterable<Uint8Array> };

export type Copied = { readonly size: number; readonly sha256: string };

/** May throw to cancel the copy. */
export type OnBytes = (bytes: number) => void;

/** Damaged, cut short, of a newer luxhub, or no backup. The message begins with "it" or a name in it. */
export class BadArchive extends Error {
  override readonly name = "BadArchive";
}

/** The file, the storage or the pipe fails. */
export class ArchiveUnread extends Error {
  override readonly name = "ArchiveUnread";
}

/** The cause is the system's or the storage's error. */
export class ArchiveUnwritten extends Error {
  override readonly name = "ArchiveUnwritten";

  constructor(cause: unknown) {
    super("the archive cannot be written", { cause });
  }
}

/** Only its owner can read it; returns when its bytes are on disk. */
export async function writeNewFile(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  onBytes: OnBytes,
): Promise<Copied> {
  const hash = new Bun.CryptoHasher("sha256");
  let size = 0;
  const file = await open(path, "wx", FILE_MODE);
  try {
    for await (const chunk of chunks) {
      hash.update(chunk);
      await writeAll(file, chunk);
      size += chunk.length;
      onBytes(chunk.length);
    }
    await file.datasync();
  } finally {
    await file.close();
  }
  return { size, sha256: hash.digest("hex") };
}

/** write(2) may write less than it was given. */
export async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;)
    done += (await file.write(bytes, done, bytes.length - done)).bytesWritten;
}

export function sizeText(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1);
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}
