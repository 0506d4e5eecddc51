/**
 * Checks everything of a hub, also while it runs: in a data directory, or in a database of PostgreSQL, whose rows are
 * checked in a copy.
 * Must not: change the data, or block the hub.
 */
import { Database } from "bun:sqlite";
import { readdir, rm, statfs } from "node:fs/promises";
import { basename, join } from "node:path";
import { isBlobId } from "../blobs/blobs.ts";
import { blobFileOf } from "../blobs/disk.ts";
import { type DataDir, findTraceOfHub, freeFloorOf, makeDataDir, secretWarnings } from "../data-dir.ts";
import { MINUTE_MS, isoTime } from "../lib/clock.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { HAS_MODES, refuseWorldWritable } from "../permissions.ts";
import { FACTS, LATEST_TIME } from "../store/sql/consistency.ts";
import { inspectDatabase } from "../store/sqlite/integrity-check.ts";
import { POSTGRES_SCHEMA } from "../store/postgres/schema.ts";
import { isHeld } from "../store/sqlite/file-lock.ts";
import { ageOf, refusalOf } from "../store/sql/schema.ts";
import { SQLITE_SCHEMA } from "../store/sqlite/schema.ts";
import { refuseOldSqlite, sqliteVersion } from "../store/sqlite/version.ts";
import { findChainFault } from "./ledger-chain.ts";
import { temporaryCopy } from "./backup.ts";
import { type Source, postgresSource, storedAt } from "./source.ts";
import { toTargetError } from "./target.ts";
import { type HubPlace, type StoredBytes, type Tools, sizeText } from "./upkeep.ts";

/** Only `bad` is a problem; `warn` is a risk. */
export type Finding = {
  readonly grade: "ok" | "note" | "warn" | "bad";
  readonly about: string;
  readonly text: string;
};

const CLOCK_SLACK_MS = MINUTE_MS;
const SHOWN = 5;

/** @throws {Error} one line when there is nothing to check */
export function examine({ dir, url }: HubPlace, tools: Tools): AsyncGenerator<Finding> {
  return url === null ? examineDirectory(dir, tools) : examineServer(dir, url, tools);
}

async function* examineServer(dir: DataDir, url: string, tools: Tools): AsyncGenerator<Finding> {
  const copy = temporaryCopy(makeDataDir(dir.path).path);
  const source = await postgresSource(url);
  try {
    await source.copyRows(copy, tools);
    yield ok("database", "in PostgreSQL, every row can be read");
    yield ok("schema", `${POSTGRES_SCHEMA.version}`);
    const db = new Database(copy, { readonly: true });
    try {
      yield* examineFacts(db, tools);
      yield examineChain(db, tools);
      yield examineClock(db, tools);
      yield* examineWebhooks(db);
      yield* examineFiles(db, source.open, tools);
    } finally {
      db.close();
    }
  } catch (error) {
    throw toTargetError(error, dir, url);
  } finally {
    await source.close();
    await rm(copy, { force: true });
  }
}

async function* examineDirectory(dir: DataDir, tools: Tools): AsyncGenerator<Finding> {
  await readdir(dir.path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") throw new Error(`there is no hub in ${dir.path}`);
    throw new Error(`cannot list ${dir.path}: ${reasonOf(error)}`);
  });
  const live = isHeld(dir.lock);
  yield ok("hub", live ? "a hub is running here" : "no hub is running here");
  yield* examineSqlite();
  tools.onProgress(`checking the database (${sizeText(Bun.file(dir.database).size)})`);
  const inspection = inspectDatabase(dir.database, { wholeMaxBytes: Number.POSITIVE_INFINITY, live });
  if (inspection.kind === "none") {
    const trace = findTraceOfHub(dir);
    if (trace === null) throw new Error(`there is no hub in ${dir.path}`);
    yield bad(
      "database",
      `it is missing, but ${trace} shows that there was one; put it back or restore a backup`,
    );
  } else if (inspection.kind === "damaged") {
    yield bad("database", `it is damaged: ${inspection.what}; restore a backup`);
  } else {
    yield* examineSchema(inspection.schema, inspection.sizeBytes);
    if (inspection.schema === SQLITE_SCHEMA.version) yield* examineRows(dir, tools);
  }
  const { bavail, blocks, bsize } = await statfs(dir.path);
  yield checkFreeSpace(bavail * bsize, blocks * bsize);
  yield checkSize(await sizeOfHub(dir), bavail * bsize);
}

async function* examineRows(dir: DataDir, tools: Tools): AsyncGenerator<Finding> {
  const db = new Database(dir.database, { readonly: true });
  try {
    db.run("BEGIN"); // one snapshot for all checks of rows
    yield* examineFacts(db, tools);
    yield examineChain(db, tools);
    yield examineClock(db, tools);
    yield* examineWebhooks(db);
    db.run("COMMIT"); // the checks of files take long, and a snapshot keeps the hub from truncating its log
    yield* examineFiles(db, (fileId) => storedAt(join(dir.path, blobFileOf(fileId))), tools);
    yield* examineOrphans(db, dir, tools);
  } finally {
    db.close();
  }
}

/** They deliver nothing until somebody resumes them. */
function* examineWebhooks(db: Database): Generator<Finding> {
  const sql = `SELECT name FROM webhooks WHERE state = 'suspended' ORDER BY name LIMIT ${SHOWN + 1}`;
  const names = db.query<{ name: string }, []>(sql).all();
  if (names.length === 0) return;
  const shown = names.slice(0, SHOWN).map(({ name }) => name);
  const text = `suspended: ${shown.join(", ")}${names.length > SHOWN ? " and more" : ""}; resume with luxhub webhook resume`;
  yield { grade: "warn", about: "suspended", text: `webhooks are ${text}` };
}

async function sizeOfHub(dir: DataDir): Promise<number> {
  const files = join(dir.path, "files");
  const names = await readdir(files, { recursive: true }).catch(() => []);
  const sizes = names.map((name) => Bun.file(join(files, name)).size);
  return sizes.reduce((sum, size) => sum + size, Bun.file(dir.database).size);
}

export function checkSize(bytes: number, freeBytes: number): Finding {
  const text = `the database and the files take ${sizeText(bytes)}`;
  if (bytes < freeBytes) return ok("size", text);
  const advice =
    "half of the disk: delete finished tasks and files, or use --retain-tasks and --retain-files";
  return { grade: "warn", about: "size", text: `${text}, ${advice}` };
}

/** Also who may write and read the hub's files. */
export function* examineSecrets(dir: DataDir, env: Parameters<typeof secretWarnings>[1]): Generator<Finding> {
  try {
    refuseWorldWritable(dir.path, "the data directory");
    const warnings = secretWarnings(dir, env);
    for (const text of warnings) yield { grade: "warn", about: "secrets", text };
    if (warnings.length === 0)
      yield ok(
        "secrets",
        HAS_MODES
          ? "long enough, and only their owner may write or read them"
          : "long enough; who may read them is not checked on Windows",
      );
  } catch (error) {
    yield bad("secrets", messageOf(error));
  }
}

function* examineSqlite(): Generator<Finding> {
  const db = new Database(":memory:");
  try {
    const version = sqliteVersion(db);
    refuseOldSqlite(version);
    yield ok("sqlite", version);
  } catch (error) {
    yield bad("sqlite", messageOf(error));
  } finally {
    db.close();
  }
}

function* examineSchema(schema: number, sizeBytes: number): Generator<Finding> {
  yield ok("database", `${sizeText(sizeBytes)}, every page and every index is in order`);
  const known = SQLITE_SCHEMA.version;
  const age = ageOf(SQLITE_SCHEMA, schema);
  if (age === "newest") yield ok("schema", `${schema}`);
  else if (age === "unpublished") yield bad("schema", refusalOf(SQLITE_SCHEMA, schema));
  else if (age === "older")
    yield note(
      "schema",
      `${schema}; the next start of the hub migrates it to ${known}, and until then its rows are not checked`,
    );
  else yield bad("schema", `${schema}, of a newer luxhub; this one knows ${known}`);
}

function* examineFacts(db: Database, { onProgress, signal }: Tools): Generator<Finding> {
  for (const { name, holds, sql } of FACTS) {
    signal.throwIfAborted();
    onProgress(`checking the ${name}`);
    try {
      const faults = db.query(sql).values().map(String);
      yield faults.length === 0 ? ok(name, holds) : bad(name, faults.join("; "));
    } catch (error) {
      yield bad(name, `it cannot be checked: ${messageOf(error)}`);
    }
  }
}

function examineChain(db: Database, { onProgress, signal }: Tools): Finding {
  try {
    const fault = findChainFault(db, (entries) => {
      signal.throwIfAborted();
      onProgress(`checking the hashes: ${entries} entries`);
    });
    return fault === null
      ? ok("hashes", "every entry of the ledger is the one that its hash was made of")
      : bad("hashes", fault);
  } catch (error) {
    signal.throwIfAborted();
    return bad("hashes", `they cannot be checked: ${messageOf(error)}`);
  }
}

function examineClock(db: Database, { clock }: Tools): Finding {
  const now = clock.now();
  const latest = Number(db.query(LATEST_TIME).values()[0]?.[0] ?? 0);
  if (latest <= now + CLOCK_SLACK_MS) return ok("clock", isoTime(now));
  return bad(
    "clock",
    `it shows ${isoTime(now)}, but the hub has stored ${isoTime(latest)}: set the clock, unless it was ahead then`,
  );
}

type FileRow = { readonly file_id: string; readonly size_bytes: number; readonly sha256: string };

async function* examineFiles(
  db: Database,
  openFile: Source["open"],
  { onProgress, signal }: Tools,
): AsyncGenerator<Finding> {
  const missing: string[] = [];
  const damaged: string[] = [];
  let files = 0;
  let bytes = 0;
  const onBytes = (count: number): void => {
    signal.throwIfAborted();
    bytes += count;
    onProgress(`checking the files: ${files}, ${sizeText(bytes)}`);
  };
  for (let after = 0; ;) {
    // In pages: an open cursor would keep the hub from truncating its log.
    const sql = "SELECT seq, file_id, size_bytes, sha256 FROM files WHERE seq > ? ORDER BY seq LIMIT 500";
    const rows = db.query<FileRow & { seq: number }, [number]>(sql).all(after);
    for (const row of rows) {
      files++;
      const state = await stateOfBytes(await openFile(row.file_id), row, onBytes);
      // A running hub may have deleted the file meanwhile.
      if (state === "intact" || !hasRecord(db, row.file_id)) continue;
      (state === "missing" ? missing : damaged).push(row.file_id);
    }
    const last = rows.at(-1);
    if (last === undefined) break;
    after = last.seq;
  }
  if (missing.length > 0) yield bad("files", `the bytes of ${several(missing)} are gone`);
  if (damaged.length > 0) yield bad("files", `the bytes of ${several(damaged)} are not what was uploaded`);
  if (missing.length + damaged.length === 0)
    yield ok("files", `${files}, ${sizeText(bytes)}, all as uploaded`);
}

async function stateOfBytes(
  stored: StoredBytes | null,
  row: FileRow,
  onBytes: (bytes: number) => void,
): Promise<"intact" | "missing" | "damaged"> {
  if (stored === null) return "missing";
  const hash = new Bun.CryptoHasher("sha256");
  for await (const chunk of stored.chunks) {
    hash.update(chunk);
    onBytes(chunk.length);
  }
  return stored.size === row.size_bytes && hash.digest("hex") === row.sha256 ? "intact" : "damaged";
}

/** Includes an upload whose record is not written yet. */
async function* examineOrphans(
  db: Database,
  dir: DataDir,
  { onProgress, signal }: Tools,
): AsyncGenerator<Finding> {
  const root = join(dir.path, "files");
  const names = await readdir(root, { recursive: true }).catch(() => []);
  let orphans = 0;
  for (const name of names) {
    signal.throwIfAborted();
    const fileId = basename(name);
    if (!isBlobId(fileId) || join("files", name) !== blobFileOf(fileId)) continue;
    onProgress("searching for bytes without a record");
    if (!hasRecord(db, fileId)) orphans++;
  }
  if (orphans > 0)
    yield note("orphans", `${orphans} files have bytes but no record; a running hub removes them`);
  else yield ok("orphans", "no bytes without a record");
}

function hasRecord(db: Database, fileId: string): boolean {
  return db.query("SELECT 1 FROM files WHERE file_id = ?").get(fileId) !== null;
}

export function checkFreeSpace(freeBytes: number, diskBytes: number): Finding {
  const free = `${sizeText(freeBytes)} free`;
  const floor = freeFloorOf(diskBytes);
  if (freeBytes >= floor) return ok("space", free);
  return bad(
    "space",
    `${free}: make room, below ${sizeText(floor)} the hub refuses writes, unless it has --min-free`,
  );
}

function several(ids: readonly string[]): string {
  const others = ids.length > SHOWN ? ` and ${ids.length - SHOWN} more` : "";
  return `${ids.slice(0, SHOWN).join(", ")}${others}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const ok = (about: string, text: string): Finding => ({ grade: "ok", about, text });
const note = (about: string, text: string): Finding => ({ grade: "note", about, text });
const bad = (about: string, text: string): Finding => ({ grade: "bad", about, text });
