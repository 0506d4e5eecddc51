/**
 * Opens the store, the files and the mail. The only file that names concrete engines. PostgreSQL and Redis are imported
 * only when they are configured. Each fault is one line for the operator.
 */
import { existsSync } from "node:fs";
import { type Blobs, BlobsFull } from "../blobs/blobs.ts";
import { openDiskBlobs } from "../blobs/disk.ts";
import type { Config } from "../config.ts";
import { type DataDir, type HasRoom, findTraceOfHub, freeSpaceCheck } from "../data-dir.ts";
import { START_CHECK_MAX_BYTES } from "../domain/limits.ts";
import { type Clock, SECOND_MS } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { reasonOf } from "../lib/reason.ts";
import { shellWord } from "../lib/shell.ts";
import { EmbeddedMail } from "../mail/embedded.ts";
import type { Mail } from "../mail/mail.ts";
import type { Feed } from "../service/feed.ts";
import type { ShareMarks } from "../service/same-secrets.ts";
import { inspectDatabase } from "../store/sqlite/integrity-check.ts";
import { isHeld, takeExclusiveLock } from "../store/sqlite/file-lock.ts";
import { fillBallast, releaseBallast } from "../store/sqlite/ballast.ts";
import { type SqliteStore, openSqlite } from "../store/sqlite/engine.ts";
import { ageOf } from "../store/sql/schema.ts";
import { SQLITE_SCHEMA } from "../store/sqlite/schema.ts";
import { MIGRATING, type Store, StoreFull } from "../store/store.ts";

type EngineParts = {
  readonly config: Config;
  /** The database is a copy, which only its original changes. */
  readonly isCopy: boolean;
  readonly dir: DataDir;
  readonly clock: Clock;
  readonly log: Log;
};

/** The functions run in reverse order. */
export type Closing = (() => Promise<void> | void)[];

type OpenStore = { readonly store: Store; readonly clock: Clock; readonly shareMarks: ShareMarks | null };

export function lockDataDir(dir: DataDir, closing: Closing): void {
  const lock = takeExclusiveLock(dir.lock);
  if (!lock) throw new Error(`another luxhub runs on the data directory ${dir.path}`);
  closing.push(() => lock.release());
  takeExclusiveLock(dir.pin)?.release(); // creates the file as the hub's user, because another user may run the first backup
}

export function isPinned(dir: DataDir): boolean {
  return isHeld(dir.pin);
}

/** The clock too: hubs on one PostgreSQL share that of the database. */
export async function openStore(
  parts: EngineParts,
  onFault: (error: unknown) => void,
  closing: Closing,
): Promise<OpenStore> {
  const { config, dir } = parts;
  const opened =
    config.database === null
      ? openOnDisk(parts, onFault)
      : await openOnServer(parts, config.database, onFault);
  if (config.database === null) closing.push(() => fillBallast(dir.ballast)); // runs after the store is closed, which frees the -shm file
  closing.push(() => opened.store.close());
  if (config.database === null) fillBallast(dir.ballast);
  return opened;
}

function openOnDisk(
  { config, isCopy, dir, clock, log }: EngineParts,
  onFault: (error: unknown) => void,
): OpenStore {
  const hasRoom = freeSpaceCheck(dir, config.minFreeBytes);
  const open = (): SqliteStore => openFile({ dir, isCopy, clock, log }, onFault, () => hasRoom(0));
  return { store: openOnFullDisk(dir, log, open), clock, shareMarks: null };
}

async function openOnServer(
  { dir, clock, log }: EngineParts,
  database: string,
  onFault: (error: unknown) => void,
): Promise<OpenStore> {
  const { openPostgres } = await import("../store/postgres/engine.ts");
  if (existsSync(dir.database))
    log.warn("this hub is on PostgreSQL and does not use the SQLite database in its data directory", {
      unused: dir.database,
    });
  const emptyError = existsSync(dir.unfinishedRestore)
    ? `a restore or a move into this database was not finished, and the database is empty: repeat it. To start an empty hub, delete ${dir.unfinishedRestore}`
    : null;
  const store = await openPostgres(database, clock, onFault, log, emptyError);
  return { store, clock: store.clock, shareMarks: (marks) => store.shareMarks(marks) };
}

export async function openBlobs({ database, minFreeBytes }: Config, dir: DataDir): Promise<Blobs> {
  if (database === null) return openFiles(dir, freeSpaceCheck(dir, minFreeBytes));
  const { openPostgresBlobs } = await import("../blobs/postgres.ts");
  return openPostgresBlobs(database);
}

async function openFiles({ path }: DataDir, hasRoom: HasRoom): Promise<Blobs> {
  try {
    return await openDiskBlobs(path, undefined, hasRoom);
  } catch (error) {
    if (error instanceof BlobsFull) throw error;
    throw new Error(`cannot create directories in ${path}/files: ${reasonOf(error)}`, { cause: error });
  }
}

/** On a full disk deletes the ballast first: SQLite needs room to open. */
function openOnFullDisk(dir: DataDir, log: Log, open: () => SqliteStore): SqliteStore {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof StoreFull) || !releaseBallast(dir.ballast)) throw error;
    log.error("the disk is full: the ballast file was deleted to open the database", {
      ballast: dir.ballast,
    });
    return open();
  }
}

/** Refuses a damaged or a lost database, and changes nothing. */
function openFile(
  { dir, isCopy, clock, log }: Omit<EngineParts, "config">,
  onFault: (error: unknown) => void,
  hasRoom: () => boolean,
): SqliteStore {
  const inspection = inspectDatabase(dir.database, { wholeMaxBytes: START_CHECK_MAX_BYTES, live: false });
  if (inspection.kind === "damaged") {
    throw new Error(`the database ${dir.database} is damaged: ${inspection.what}. ${whatToDo(dir)}`);
  }
  if (inspection.kind === "none" && existsSync(dir.unfinishedRestore)) {
    throw new Error(
      `a restore or a move into ${dir.path} was not finished: repeat the move, or delete the directory and repeat the restore. ${whatToDo(dir)}`,
    );
  }
  const trace = inspection.kind === "none" ? findTraceOfHub(dir) : null;
  if (trace !== null) {
    throw new Error(`${dir.path} has no database, but ${trace} shows that there was one. ${whatToDo(dir)}`);
  }
  if (inspection.kind === "intact" && !inspection.whole) {
    log.info("the database is too large for a full check at each start", { check_with: "luxhub doctor" });
  }
  const to = SQLITE_SCHEMA.version;
  if (!isCopy && inspection.kind === "intact" && ageOf(SQLITE_SCHEMA, inspection.schema) === "older") {
    log.info(MIGRATING, { from: inspection.schema, to, bytes: inspection.sizeBytes });
    log.flush(); // the migration blocks the process
  }
  const startedMs = clock.timers();
  const store = openSqlite(dir.database, onFault, undefined, hasRoom, isCopy ? "copy" : "owner");
  const seconds = Math.round((clock.timers() - startedMs) / SECOND_MS);
  if (store.migration) log.info("the database was migrated", { ...store.migration, seconds });
  return store;
}

function whatToDo({ path }: DataDir): string {
  return (
    `Nothing was changed. See more with: luxhub doctor --data ${shellWord(path)}. ` +
    `Restore a backup into an empty directory with: luxhub restore FILE --data DIR`
  );
}

export async function openMail(
  parts: Omit<EngineParts, "dir" | "isCopy">,
  store: Store,
  feed: Feed,
  closing: Closing,
): Promise<Mail> {
  const { config, clock, log } = parts;
  if (config.redis === null) return new EmbeddedMail(store);
  const onWakeUp = (nodeId: string): void => feed.receivers.wakeOne({ key: nodeId });
  const { RedisMail } = await import("../mail/redis.ts");
  const mail = await RedisMail.open(store, { url: config.redis, clock, log, onWakeUp });
  closing.push(() => mail.close());
  return mail;
}

export class DiskFullError extends Error {
  override readonly name = "DiskFullError";

  constructor({ path }: DataDir, cause: Error) {
    super(`the disk of the data directory ${path} is full: make room there, then start again`, { cause });
  }
}
