/**
 * Moves a stopped hub from SQLite into PostgreSQL, or back, as a backup (source.ts) that is restored at once
 * (target.ts), but for the epochs of tasks, which stay.
 *
 * Invariant: all rows and files are compared before the target is finished. Of the source only names change, after that.
 */
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { blobFileOf, flushDirectory } from "../blobs/disk.ts";
import { type DataDir, isThere, makeDataDir, markPostgres } from "../data-dir.ts";
import { shellWord } from "../lib/shell.ts";
import { type CopiedFiles, type Source, copyFiles, postgresSource, storedAt } from "./source.ts";
import { type Summary, identityOf, refuseUnsound, summarize } from "./sqlite-rows.ts";
import { type Target, directoryTarget, postgresTarget, toTargetError, withLock } from "./target.ts";
import { DATABASE_ENTRY, type Tools } from "./upkeep.ts";

export type Moved = Summary & Pick<CopiedFiles, "files" | "bytes">;

const SHOWN = 5;

/** @throws {Error} one line: the obstacle, or what differs */
export function moveToPostgres(dir: DataDir, url: string, tools: Tools): Promise<Moved> {
  return moving(dir, url, async () => {
    if (!hasDatabase(dir)) {
      const place = isThere(dir.postgresMarker) ? "is in PostgreSQL already" : "is not there";
      throw new Error(`the hub of ${dir.path} ${place}: nothing was done`);
    }
    const old = movedDatabase(dir);
    if (existsSync(old)) throw new Error(`${old} is there, of a move before: delete it first`);
    refuseUnsound(dir.database, `See more with: luxhub doctor --data ${shellWord(dir.path)}`, tools);
    const target = await postgresTarget(dir, url, identityOf(dir.database));
    const openStored: Source["open"] = (fileId) => storedAt(join(dir.path, blobFileOf(fileId)));
    try {
      const moved = await fill(target, dir.database, { open: openStored }, tools);
      markPostgres(dir); // before the names change: a move that is killed here has left two equal states
      for (const ending of ENDINGS)
        if (existsSync(dir.database + ending)) renameSync(dir.database + ending, old + ending);
      await flushDirectory(dir.path);
      return moved;
    } finally {
      await target.close();
    }
  });
}

/** @throws {Error} one line: the obstacle, or what differs */
export function moveFromPostgres(path: string, url: string, tools: Tools): Promise<Moved> {
  const dir = makeDataDir(path);
  return moving(dir, url, async () => {
    if (hasDatabase(dir))
      throw new Error(`${dir.database} already exists: move it away first, with its -wal if there is one`);
    const source = await postgresSource(url, true);
    try {
      const target = await directoryTarget(dir);
      try {
        const database = join(target.folder, DATABASE_ENTRY);
        await source.copyRows(database, tools);
        refuseUnsound(database, "They are the same in PostgreSQL", tools);
        const moved = await fill(target, database, source, tools);
        rmSync(dir.postgresMarker, { force: true });
        return moved;
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  });
}

async function moving(dir: DataDir, url: string, move: () => Promise<Moved>): Promise<Moved> {
  try {
    return await withLock(dir, move);
  } catch (error) {
    throw toTargetError(error, dir, url);
  }
}

async function fill(
  target: Target,
  database: string,
  source: Pick<Source, "open">,
  tools: Tools,
): Promise<Moved> {
  const copied = await copyFiles(
    database,
    source,
    (fileId, { chunks }, onBytes) => target.put(fileId, chunks, onBytes),
    tools,
  );
  const lost = [...copied.missing, ...copied.damaged];
  if (lost.length > 0) {
    const others = lost.length > SHOWN ? ` and ${lost.length - SHOWN} more` : "";
    throw new Error(
      `the bytes of ${lost.slice(0, SHOWN).join(", ")}${others} are gone or not what was uploaded: ` +
        `restore them from a backup, or start the hub, delete these files and stop it; then move again`,
    );
  }
  const summary = summarize(database);
  await target.finish(database, tools);
  return { ...summary, ...copied };
}

/** Whether the directory holds a database, or the remains of one. */
function hasDatabase({ database }: DataDir): boolean {
  return ENDINGS.some((ending) => existsSync(database + ending));
}

/** The file of the database itself comes last. */
const ENDINGS = ["-journal", "-shm", "-wal", ""];

export function movedDatabase({ database }: DataDir): string {
  return `${database}.moved`;
}
