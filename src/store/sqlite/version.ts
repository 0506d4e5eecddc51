/** The version of SQLite: on some machines Bun uses the system's, which may be too old. */
import type { Database } from "bun:sqlite";

/** The WAL of older versions could lose a commit when a checkpoint met a writer. */
const SQLITE_OLDEST = [3, 51, 3] as const;

export function sqliteVersion(db: Database): string {
  return db.query<{ v: string }, []>("SELECT sqlite_version() AS v").get()?.v ?? "0";
}

/** @throws {Error} one line when the version is too old */
export function refuseOldSqlite(version: string): void {
  const parts = version.split(".").map(Number);
  for (const [i, oldest] of SQLITE_OLDEST.entries()) {
    const part = parts[i] ?? 0;
    if (part > oldest) return;
    if (part < oldest) {
      throw new Error(`SQLite ${version} is too old: luxhub needs ${SQLITE_OLDEST.join(".")} or later.`);
    }
  }
}
