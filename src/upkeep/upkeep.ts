/**
 * What the commands on a data directory share: the format of a backup, and progress, cancellation and sizes.
 *
 * A backup is one tar archive: luxhub.db first, then the secrets that are in the directory, the bytes of every file that
 * the database names, and backup.json last, so that an archive that was cut short cannot be taken for a whole one.
 */
import { open } from "node:fs/promises";
import * as z from "zod/mini";
import type { Clock } from "../lib/clock.ts";

/** What every such command is given. */
export type Tools = {
  readonly clock: Clock;
  /** Called with what is being done and how far it is. */
  readonly onProgress: (text: string) => void;
  /** Aborts the work; nothing unfinished is left behind. */
  readonly signal: AbortSignal;
};

export const DATABASE_ENTRY = "luxhub.db";
export const SECRET_ENTRY = "secret";
export const ADMIN_KEY_ENTRY = "admin-key";
export const MANIFEST_ENTRY = "backup.json";
/** The version of the format; any other is refused. */
export const BACKUP_FORMAT = 1;

/** The last entry of a backup. */
export const manifestSchema = z.object({
  format: z.literal(BACKUP_FORMAT),
  software: z.string(),
  /** The moment of the snapshot, ISO 8601. */
  at: z.string(),
  /** SHA-256 of the database and of the secrets, by entry; those of the files are in the database. */
  sha256: z.record(z.string(), z.string()),
  /** How many files the database names. */
  files: z.int(),
  /** Those of them whose bytes were gone, or were not what had been uploaded, when the backup was made. */
  missing: z.array(z.string()),
  damaged: z.array(z.string()),
});

export type Manifest = z.infer<typeof manifestSchema>;

/** Flushes a directory: its names are on disk then. */
export async function flushDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** A size for people. */
export function sizeText(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1);
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}
