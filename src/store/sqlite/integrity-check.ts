/**
 * Integrity check of a SQLite database before it is opened, and by the doctor: the file, its tables and its write-ahead
 * log.
 *
 * SQLite finds damage only where it reads, and silently ignores its log from a bad frame on: later commits would be lost.
 * So the log is checked as well.
 *
 * Must not: change the database, least of all a damaged one.
 */
import { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { checksumOf, isAsMigrated, schemaOf, schemaVersion } from "./schema-version.ts";
import { SQLITE_SCHEMA } from "./schema.ts";
import { must } from "../../lib/assert.ts";
import { codeOf, reasonOf } from "../../lib/reason.ts";
import { StoreFull } from "../store.ts";

export type Inspection =
  | { readonly kind: "none" }
  /** `whole`: every page and every index was checked, which takes long in a large database. */
  | { readonly kind: "intact"; readonly schema: number; readonly sizeBytes: number; readonly whole: boolean }
  | { readonly kind: "damaged"; readonly what: string };

export type InspectOptions = {
  readonly wholeMaxBytes: number;
  /** A hub runs on the database. Its log grows during the check, so the log is not checked. */
  readonly live: boolean;
};

const BUSY_TIMEOUT_MS = 5_000;
const FAULTS_SHOWN = 3;
/** The errors of SQLite that mean damage. The others come from the system: permissions, locks, disk space. */
const DAMAGE = /^SQLITE_(?:CORRUPT|NOTADB|FORMAT|ERROR|IOERR_READ|IOERR_SHORT_READ|IOERR_CORRUPTFS)/;
const NO_ROOM = /^SQLITE_(?:FULL|IOERR_SHMSIZE)$/;

/**
 * @throws {StoreFull} when there is no room for the files that SQLite needs to read it
 * @throws {Error} one line when the system refuses to open it: permissions, a lock
 */
export function inspectDatabase(path: string, options: InspectOptions): Inspection {
  try {
    return inspect(path, options);
  } catch (error) {
    throw withDatabasePath(path, error);
  }
}

/** SQLite reads a database with a write-ahead log only where it can create files. */
const CANNOT_OPEN =
  "it cannot be read, or its directory cannot be written (a read-only file system?): work on a copy";

/** Adds the path of the database to an error of the system or of SQLite; returns the store's own errors unchanged. */
export function withDatabasePath(path: string, error: unknown): unknown {
  if (codeOf(error) === "") return error;
  const reason = codeOf(error) === "SQLITE_CANTOPEN" ? CANNOT_OPEN : reasonOf(error);
  return new Error(`cannot open the database ${path}: ${reason}`, { cause: error });
}

function inspect(path: string, options: InspectOptions): Inspection {
  if (sizeOf(path) === 0) {
    if (sizeOf(logOf(path)) === 0) return { kind: "none" };
    return { kind: "damaged", what: "it is missing or empty, but its log (-wal) is not" };
  }
  // Read-only, so that closing it writes nothing. Only an unfinished first migration must be rolled back to be read.
  const db = new Database(path, existsSync(`${path}-journal`) ? { readwrite: true } : { readonly: true });
  try {
    return check(db, path, options);
  } catch (error) {
    const code = codeOf(error);
    if (NO_ROOM.test(code)) throw new StoreFull("The disk is full.", { cause: error });
    if (!DAMAGE.test(code)) throw error;
    return { kind: "damaged", what: error instanceof Error ? error.message : String(error) };
  } finally {
    db.close();
  }
}

function check(db: Database, path: string, { wholeMaxBytes, live }: InspectOptions): Inspection {
  db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  db.run("PRAGMA cell_size_check = ON");
  const schema = schemaVersion(db);
  const sizeBytes = pragma(db, "page_count") * pragma(db, "page_size");
  const whole = sizeBytes <= wholeMaxBytes;
  const what =
    (live ? null : faultOfLog(db, logOf(path))) ??
    (isAsMigrated(db) ? null : faultOfSchema(db, schema)) ??
    (whole ? faultOfPages(db) : null);
  if (what !== null) return { kind: "damaged", what };
  return schema === 0 ? { kind: "none" } : { kind: "intact", schema, sizeBytes, whole };
}

function faultOfPages(db: Database): string | null {
  const rows = db.query<{ integrity_check: string }, []>(`PRAGMA integrity_check(${FAULTS_SHOWN})`).all();
  const faults = rows.map((row) => row.integrity_check.replaceAll(/\s+/g, " "));
  return faults.length === 1 && faults[0] === "ok" ? null : faults.join("; ");
}

/** The checksum of version and schema of 0.1.0, which stored none. */
const CHECKSUM_0_1_0 = 2_069_540_566;

/** Compares the tables and indexes with those that they must be. SQLite's checks would accept a renamed one. */
function faultOfSchema(db: Database, schema: number): string | null {
  if (schema === 0) return schemaOf(db) === "[]" ? null : "it has tables, but no schema version";
  if (schema > SQLITE_SCHEMA.version) return null; // of a newer luxhub: opening it reports that
  const isKnown =
    schema === SQLITE_SCHEMA.version ? schemaOf(db) === newSchema() : checksumOf(db) === CHECKSUM_0_1_0;
  return isKnown ? null : `its tables are not those of schema ${schema}`;
}

let madeSchema: string | null = null;

/** The tables and indexes of a new database. */
function newSchema(): string {
  if (madeSchema !== null) return madeSchema;
  const model = new Database(":memory:");
  try {
    model.run(SQLITE_SCHEMA.create());
    return (madeSchema = schemaOf(model));
  } finally {
    model.close();
  }
}

const LOG_HEAD_BYTES = 32;
const FRAME_HEAD_BYTES = 24;
/** The magic number of a log with little-endian checksums: every machine that Bun runs on writes these. */
const LOG_MAGIC = 0x377f0682;

/**
 * SQLite ignores its log from a bad frame on. What it ignores is either lost or a leftover: of a commit that a crash cut,
 * or of failed commits that shorter ones have overwritten. The checksum of a frame continues that of the frame before it.
 * So a frame that continues a commit proves that the commit had succeeded: an ignored one is lost.
 */
function faultOfLog(db: Database, path: string): string | null {
  const bytes = sizeOf(path);
  if (bytes <= LOG_HEAD_BYTES) return null;
  const log = openSync(path, "r");
  try {
    const head = readAt(log, 0, LOG_HEAD_BYTES);
    if (!isLogHead(head)) return "the head of its log (-wal) is damaged";
    const frameBytes = FRAME_HEAD_BYTES + head.getUint32(8);
    const checkpoint = db.query<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)").get();
    const read = must(checkpoint, "a pragma returns a row").log;
    let commit: DataView | null = null;
    for (let at = LOG_HEAD_BYTES + read * frameBytes; at + frameBytes <= bytes; at += frameBytes) {
      const frame = readAt(log, at, frameBytes);
      const ofThisLog =
        frame.getUint32(8) === head.getUint32(16) && frame.getUint32(12) === head.getUint32(20);
      if (ofThisLog && commit && continues(frame, commit))
        return `its log (-wal) is damaged after ${read} pages, before the last commit`;
      commit = ofThisLog && frame.getUint32(4) !== 0 ? frame : null;
    }
    return null;
  } finally {
    closeSync(log);
  }
}

/** Whether the checksum of a frame follows from that of the frame before it (SQLite's file format, 4.2). */
function continues(frame: DataView, before: DataView): boolean {
  const ofHead = checksum(frame, 0, 8, [before.getUint32(16), before.getUint32(20)]);
  const [first, second] = checksum(frame, FRAME_HEAD_BYTES, frame.byteLength, ofHead);
  return frame.getUint32(16) === first && frame.getUint32(20) === second;
}

/** Checks the magic number and the checksum. */
function isLogHead(head: DataView): boolean {
  const [first, second] = checksum(head, 0, 24, [0, 0]);
  return head.getUint32(0) === LOG_MAGIC && head.getUint32(24) === first && head.getUint32(28) === second;
}

type Checksum = readonly [first: number, second: number];

/** The checksum after these bytes, of which there are a multiple of 8. */
function checksum(data: DataView, from: number, end: number, [first, second]: Checksum): Checksum {
  for (let at = from; at < end; at += 8) {
    first = (first + data.getUint32(at, true) + second) >>> 0;
    second = (second + data.getUint32(at + 4, true) + first) >>> 0;
  }
  return [first, second];
}

function readAt(file: number, at: number, bytes: number): DataView {
  const buffer = new Uint8Array(bytes);
  readSync(file, buffer, 0, bytes, at);
  return new DataView(buffer.buffer);
}

function pragma(db: Database, name: string): number {
  return Number(must(db.query(`PRAGMA ${name}`).values()[0]?.[0], "a pragma returns a value"));
}

function logOf(path: string): string {
  return `${path}-wal`;
}

/** 0 for a missing file. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
