/**
 * Moves a stopped hub from SQLite into PostgreSQL, or back: every row and the bytes of every file.
 *
 * Invariant: the target is empty at first, and has a mark that keeps every hub from starting on it until all rows and
 * files are copied and compared; the last step is atomic. So an interrupted move can be repeated, with the same result.
 * The source is not changed. Both ends are locked against hubs and other moves.
 */
import { existsSync } from "node:fs";
import { openDiskBlobs } from "../blobs/disk.ts";
import { openPostgresBlobs } from "../blobs/postgres.ts";
import { type Blobs, BlobsFull } from "../blobs/blobs.ts";
import { type DataDir, makeDataDir } from "../data-dir.ts";
import { takeExclusiveLock } from "../store/sqlite/file-lock.ts";
import { toStoreError } from "../store/postgres/connection.ts";
import { StoreFull } from "../store/store.ts";
import { type FileRecord, type FilesCopied, copyFiles } from "./move-files.ts";
import { type Found, PostgresEnd } from "./move-postgres.ts";
import { SqliteEnd, hasDatabase, newestColumns, putInPlace, refuseUnsound } from "./move-sqlite.ts";
import { type Side, type Summary, copyTables, summarize } from "./move-tables.ts";
import type { Tools } from "./upkeep.ts";
import { codeOf } from "../lib/reason.ts";

/** The content of the target. `files` is null when the hub had already been moved, and nothing was done. */
export type Moved = {
  readonly tables: readonly Summary[];
  readonly files: FilesCopied | null;
  /** The sum of all payments in millionths of a LUX, as decimal text. */
  readonly paidMicro: string;
};

const EMPTY_WANTED = "name an empty database or schema: a move overwrites nothing";

/** Moves the data directory into the database. @throws {Error} one line: the obstacle, or what differs */
export async function moveToPostgres(dir: DataDir, url: string, tools: Tools): Promise<Moved> {
  if (existsSync(dir.unfinishedMove))
    throw new Error(`a move into ${dir.path} was not finished: run luxhub move --from again`);
  if (!hasDatabase(dir)) throw new Error(`there is no hub in ${dir.path}`);
  return withLock(dir, async () => {
    await using opened = new Opened();
    const to = opened.add(await PostgresEnd.open(url, newestColumns()));
    const found = await to.find();
    refuseUnsound(dir.database, dir.path, tools);
    const from = opened.add(SqliteEnd.read(dir.database));
    if (found.kind === "hub") return await alreadyThere(from, to, found, tools);
    if (found.kind === "half moved" && found.identity !== from.identity())
      throw new Error(`a move of another hub into the database was not finished; ${EMPTY_WANTED}`);
    from.audit(tools, `See more with: luxhub doctor --data ${dir.path}`);
    await to.begin(from.identity());
    const blobs = { from: opened.add(await openDiskBlobs(dir.path)), to: opened.add(openPostgresBlobs(url)) };
    const files = await moveFiles(from, blobs, tools);
    const tables = await to.fill(() => copyTables(from, to, tools));
    return { tables, files, paidMicro: from.paidMicro() };
  });
}

/** Moves the database into the data directory. @throws {Error} one line: the obstacle, or what differs */
export async function moveFromPostgres(path: string, url: string, tools: Tools): Promise<Moved> {
  const dir = makeDataDir(path);
  return withLock(dir, async () => {
    await using opened = new Opened();
    if (hasDatabase(dir)) return await compareWithPostgres(dir, url, opened, tools);
    const { from } = await openSource(url, opened);
    const to = opened.add(SqliteEnd.create(dir.unfinishedMove));
    const tables = await copyTables(from, to, tools);
    to.audit(tools, "They are the same in PostgreSQL");
    const paidMicro = to.paidMicro();
    const blobs = { from: opened.add(openPostgresBlobs(url)), to: opened.add(await openDiskBlobs(dir.path)) };
    await blobs.to.sweepUnfinished();
    const files = await moveFiles(to, blobs, tools);
    to.commit();
    to.close();
    refuseUnsound(dir.unfinishedMove, dir.path, tools);
    await putInPlace(dir);
    return { tables, files, paidMicro };
  });
}

/** Closes what was opened, last first. */
class Opened implements AsyncDisposable {
  readonly #open: { close(): Promise<void> | void }[] = [];

  add<T extends { close(): Promise<void> | void }>(one: T): T {
    this.#open.push(one);
    return one;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#open.toReversed()) await one.close();
  }
}

/** Runs `work` under the lock of the data directory, which excludes hubs and other moves. */
async function withLock<T>(dir: DataDir, work: () => Promise<T>): Promise<T> {
  const lock = takeExclusiveLock(dir.lock);
  if (!lock) throw new Error(`another luxhub is using the data directory ${dir.path}: stop it first`);
  try {
    return await work();
  } catch (error) {
    throw toOperatorError(error, dir);
  } finally {
    lock.release();
  }
}

/** Converts an error of the system, of SQLite or of PostgreSQL into one for the operator. */
function toOperatorError(error: unknown, { path }: DataDir): unknown {
  const code = codeOf(error);
  const isFull = /^(?:SQLITE_(?:FULL|IOERR_SHMSIZE)|ENOSPC|EDQUOT)$/.test(code);
  if (isFull) return new Error(`the disk of ${path} is full: make room, then run it again`, { cause: error });
  const known = toStoreError(error);
  const full = known instanceof StoreFull || known instanceof BlobsFull;
  return full ? new Error("a disk is full: make room, then run it again", { cause: error }) : known;
}

type Source = { readonly from: PostgresEnd; readonly hub: Extract<Found, { kind: "hub" }> };

async function openSource(url: string, opened: Opened): Promise<Source> {
  const from = opened.add(await PostgresEnd.open(url, newestColumns()));
  const hub = await from.find();
  if (hub.kind === "empty") throw new Error("there is no hub in the database");
  if (hub.kind === "half moved")
    throw new Error("a move into the database was not finished: run luxhub move --to again");
  await from.readAsOfNow(hub.schema);
  return { from, hub };
}

async function moveFiles(
  records: SqliteEnd,
  { from, to }: { readonly from: Blobs; readonly to: Blobs },
  tools: Tools,
): Promise<FilesCopied> {
  return copyFiles(from, to, recordsOf(records), records.filesThere(), tools);
}

async function* recordsOf(end: SqliteEnd): AsyncGenerator<FileRecord> {
  for await (const rows of end.batches({ name: "files", key: ["seq"] })) {
    for (const { file_id, size_bytes, sha256 } of rows)
      yield { fileId: String(file_id), size: Number(size_bytes), sha256: String(sha256) };
  }
}

/** For a database that already holds a hub: succeeds if it is this hub and every row is the same. */
async function alreadyThere(
  from: SqliteEnd,
  to: PostgresEnd,
  { identity, schema }: Source["hub"],
  tools: Tools,
): Promise<Moved> {
  if (identity !== from.identity()) throw new Error(`the database holds another hub; ${EMPTY_WANTED}`);
  await to.readAsOfNow(schema);
  const tables = await summarize(to, tools);
  const other = await firstDifference(tables, from, tools);
  if (other !== null) {
    throw new Error(
      `the database already holds this hub, and one of the two has changed since (${other}): nothing was done`,
    );
  }
  return { tables, files: null, paidMicro: from.paidMicro() };
}

/** For a data directory that already holds a database: succeeds if every row is the same in PostgreSQL. */
async function compareWithPostgres(dir: DataDir, url: string, opened: Opened, tools: Tools): Promise<Moved> {
  const inTheWay = `${dir.database} already exists`;
  const remedy = `move it away first, with its -wal if there is one`;
  const { from, hub } = await openSource(url, opened);
  try {
    refuseUnsound(dir.database, dir.path, tools);
  } catch (error) {
    throw new Error(`${inTheWay}, and cannot be used; ${remedy}`, { cause: error });
  }
  const to = opened.add(SqliteEnd.read(dir.database));
  if (to.identity() !== hub.identity) throw new Error(`${inTheWay}, and belongs to another hub; ${remedy}`);
  const tables = await summarize(to, tools);
  const other = await firstDifference(tables, from, tools);
  if (other !== null)
    throw new Error(`${inTheWay}, and one of the two has changed since (${other}); ${remedy}`);
  return { tables, files: null, paidMicro: to.paidMicro() };
}

/** The first table that differs, with its two numbers of rows; null when every row is the same. */
async function firstDifference(tables: readonly Summary[], side: Side, tools: Tools): Promise<string | null> {
  const others = await summarize(side, tools);
  const at = tables.findIndex((one, i) => one.sha256 !== others[i]?.sha256);
  const one = tables[at];
  return one ? `${one.table}: ${one.rows} and ${others[at]?.rows} rows` : null;
}
