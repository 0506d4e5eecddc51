/**
 * Shared by the commands on a data directory: the format of a backup, progress, cancellation, and sizes as text.
 *
 * A backup is one tar archive: luxhub.db first, then the secrets that are in the directory, the bytes of every file that
 * the database names, and backup.json last. So an archive without backup.json is recognised as cut short.
 */
import * as z from "zod/mini";
import type { Clock } from "../lib/clock.ts";

/** The parameters that all commands on a data directory share. */
export type Tools = {
  readonly clock: Clock;
  /** Called with a line about the current step and its progress. */
  readonly onProgress: (text: string) => void;
  /** Aborts the work, which then removes its unfinished files. */
  readonly signal: AbortSignal;
};

export const DATABASE_ENTRY = "luxhub.db";
export const SECRET_ENTRY = "secret";
export const ADMIN_KEY_ENTRY = "admin-key";
export const MANIFEST_ENTRY = "backup.json";
/** The version of the format; others are refused. */
export const BACKUP_FORMAT = 1;

/** The last entry of a backup. */
export const manifestSchema = z.object({
  format: z.literal(BACKUP_FORMAT),
  software: z.string(),
  /** The time of the snapshot, ISO 8601. */
  at: z.string(),
  /** SHA-256 of the database and of the secrets, by entry. The database has those of the files. */
  sha256: z.record(z.string(), z.string()),
  /** How many files the database names. */
  files: z.int(),
  /** The files whose bytes were missing or differed from the upload when the backup was made. */
  missing: z.array(z.string()),
  damaged: z.array(z.string()),
});

export type Manifest = z.infer<typeof manifestSchema>;

/** A backup cannot be stored where it should go; the cause is the system's or the storage's error. */
export class ArchiveUnwritten extends Error {
  override readonly name = "ArchiveUnwritten";

  constructor(cause: unknown) {
    super("the archive cannot be written", { cause });
  }
}

export function sizeText(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1);
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}
