/**
 * The archive of the change log, beside the backups of a place: pieces of entries, and the bytes of the files that these
 * entries name. From a backup, which stands at an entry, the pieces lead to any moment after it.
 *
 *     luxhub-20270131T020000Z-1801360800000.tar           a backup, which has the entries up to this one, or to a later one
 *     changes-0001801360800001-0001801360800042.jsonl.gz  a piece, with its first and its last entry
 *     file-0001801360800007-<file_id>                     the bytes of a file, with the entry that has its record
 *
 * Invariant: the bytes of the files are in the place before the piece that names them. Each piece has the checksum of the
 * entry before it, so that no entry of another history is taken for the next one. How far the archive goes follows from
 * the names and the last piece: it is stored nowhere else.
 */
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import * as z from "zod/mini";
import { blobFileOf } from "../blobs/disk.ts";
import type { DataDir } from "../data-dir.ts";
import { must } from "../lib/assert.ts";
import { reasonOf } from "../lib/reason.ts";
import { alsoIn, entriesAfter, entryAt } from "../store/sqlite/change-log.ts";
import { type Entry, EntryMissing } from "../store/store.ts";
import { type BackupPlace, type Dated, NameTaken, backupsIn } from "./backup-target.ts";
import { readingLive, storedAt } from "./source.ts";
import { ArchiveUnwritten, BadArchive, type StoredBytes } from "./upkeep.ts";

/** The version of the format; others are refused. */
const PIECE_FORMAT = 1;
/** Before compression. A piece has at least one entry, and an entry may be larger. */
const PIECE_BYTES = 4 * 1024 * 1024;
/** Read at once, in which time the hub answers nothing. */
const READ_BYTES = 256 * 1024;
/** As long as the largest number. */
const NUMBER_DIGITS = 16;
const PIECES = "changes-";
const FILES = "file-";
const PIECE_NAME = /^changes-(\d{16})-(\d{16})\.jsonl\.gz$/;
const FILE_NAME = /^file-(\d{16})-([\da-f-]{36})$/;
const LINE = /^\{"n":(\d+),"at":(\d+),"body":(.*)\}$/;
const DELETED_AT_ONCE = 16;
/** Pieces: a storage takes long to begin with each. */
const READ_AHEAD = 8;

const compress = promisify(gzip);
const decompress = promisify(gunzip);

export type PieceName = { readonly name: string; readonly first: number; readonly last: number };

export type FileName = { readonly name: string; readonly n: number; readonly fileId: string };

type Piece = {
  /** The checksum of the entry before the first one. */
  readonly follows: string;
  /** Files whose bytes were deleted before they were archived. */
  readonly missing: readonly string[];
  readonly entries: readonly Entry[];
};

const headSchema = z.object({ format: z.int(), follows: z.string(), missing: z.array(z.string()) });

const numberText = (n: number): string => `${n}`.padStart(NUMBER_DIGITS, "0");

function pieceName(first: number, last: number): string {
  return `${PIECES}${numberText(first)}-${numberText(last)}.jsonl.gz`;
}

function fileName(n: number, fileId: string): string {
  return `${FILES}${numberText(n)}-${fileId}`;
}

export async function piecesIn(place: BackupPlace): Promise<readonly PieceName[]> {
  return (await place.list(PIECES)).flatMap((name) => {
    const [, first, last] = PIECE_NAME.exec(name) ?? [];
    return first === undefined ? [] : [{ name, first: Number(first), last: Number(last) }];
  });
}

export async function filesIn(place: BackupPlace): Promise<readonly FileName[]> {
  return (await place.list(FILES)).flatMap((name) => {
    const [, n, fileId = ""] = FILE_NAME.exec(name) ?? [];
    return n === undefined ? [] : [{ name, n: Number(n), fileId }];
  });
}

export function checksumOf({ n, at, body }: Entry): string {
  return new Bun.CryptoHasher("sha256").update(`${n} ${at} ${body}`).digest("hex");
}

// ---- Writing

/**
 * The entry up to which the place has the log: the next piece begins after it. Null: no backup and piece of the place leads
 * to an entry that is in the log. @throws {Error} one line, when the place cannot be read
 */
export async function endOfArchive(place: BackupPlace, { database }: DataDir): Promise<number | null> {
  const backups = (await backupsIn(place)).flatMap(({ entry }) => entry ?? []);
  if (backups.length === 0) return null;
  const piece = (await piecesIn(place)).toSorted((a, b) => a.last - b.last).at(-1);
  const end = Math.max(piece?.last ?? 0, ...backups);
  const own = readingLive(database, (db) => entryAt(db, end));
  if (own === null) return null;
  if (piece?.last !== end) return end;
  const { entries } = await readPiece(place, piece.name);
  return checksumOf(must(entries.at(-1), "a piece has an entry")) === checksumOf(own) ? end : null;
}

/** Where the newest backup stands; null: that is not in the log. What the place has beyond it is of another history. */
export async function entryOfBackup(place: BackupPlace, { database }: DataDir): Promise<number | null> {
  const entry = (await backupsIn(place)).at(-1)?.entry ?? null;
  return entry !== null && readingLive(database, (db) => entryAt(db, entry)) !== null ? entry : null;
}

/**
 * Writes the entries after `n`, as many as a piece takes. Returns the last one, or `n` when there are no more.
 * @throws {EntryMissing} when the log no longer has `n`; {Error} one line, when the place cannot be written
 */
export async function archivePiece(
  n: number,
  { path, database }: DataDir,
  place: BackupPlace,
  signal: AbortSignal,
): Promise<number> {
  const previous = readingLive(database, (db) => entryAt(db, n));
  if (previous === null) throw new EntryMissing(`entry ${n} is no longer kept here`);
  let last = previous;
  const parts: Uint8Array[] = [];
  const files: (readonly [n: number, fileId: string])[] = [];
  for (let bytes = 0; bytes < PIECE_BYTES;) {
    await setImmediate(); // the hub answers meanwhile
    const entries = readingLive(database, (db) => entriesAfter(db, last, READ_BYTES));
    if (entries.length === 0) break;
    for (const entry of entries)
      for (const fileId of alsoIn(entry).files ?? []) files.push([entry.n, fileId]);
    const part = Buffer.from(entries.map(lineOf).join(""));
    parts.push(part);
    bytes += part.length;
    last = entries.at(-1) ?? last;
  }
  if (last === previous) return n;
  const missing: string[] = [];
  for (const [entry, fileId] of files) {
    const stored = await storedAt(join(path, blobFileOf(fileId)));
    if (stored === null) missing.push(fileId);
    else await store(place, fileName(entry, fileId), stored, signal);
  }
  const head = JSON.stringify({ format: PIECE_FORMAT, follows: checksumOf(previous), missing });
  const bytes = await compress(Buffer.concat([Buffer.from(`${head}\n`), ...parts]));
  await store(place, pieceName(n + 1, last.n), { size: bytes.length, chunks: once(bytes) }, signal);
  return last.n;
}

/** A body is JSON, and stays as it is: its bytes have the checksum. */
const lineOf = ({ n, at, body }: Entry): string => `{"n":${n},"at":${at},"body":${body}}\n`;

/** A killed hub may have stored it before: then nothing is done. */
async function store(
  place: BackupPlace,
  name: string,
  { size, chunks }: StoredBytes,
  signal: AbortSignal,
): Promise<void> {
  const target = place.target(name);
  try {
    const sink = await target.open();
    try {
      let unread = size;
      for await (const chunk of chunks) {
        signal.throwIfAborted();
        await sink.write(chunk);
        unread -= chunk.length;
      }
      if (unread !== 0) throw new Error(`the bytes of ${name} cannot be read`);
      await sink.finish();
    } finally {
      await sink.abandon();
    }
  } catch (error) {
    if (error instanceof NameTaken) return;
    if (!(error instanceof ArchiveUnwritten)) throw error;
    throw new Error(`cannot write ${target.name}: ${reasonOf(error.cause)}`, { cause: error });
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

// ---- Retention

/** What was deleted: the names of the backups, and how many pieces and files that no other backup leads to. */
export type Deleted = { readonly backups: readonly string[]; readonly others: number };

export async function keepNewest(place: BackupPlace, keep: number): Promise<Deleted> {
  const backups = await backupsIn(place);
  const surplus = backups.slice(0, Math.max(0, backups.length - keep));
  const kept = backups.slice(surplus.length).flatMap(({ entry }) => entry ?? []);
  for (const { name } of surplus) await place.remove(name);
  const needed = Math.min(...kept); // Infinity: no backup is left to which a piece could be applied
  const pieces = (await piecesIn(place)).filter(({ last }) => last <= needed);
  const files = (await filesIn(place)).filter(({ n }) => n <= needed);
  const names = [...pieces, ...files].map(({ name }) => name);
  for (let i = 0; i < names.length; i += DELETED_AT_ONCE)
    await Promise.all(names.slice(i, i + DELETED_AT_ONCE).map((name) => place.remove(name)));
  return { backups: surplus.map(({ name }) => name), others: names.length };
}

// ---- Reading

/** The entries after one that a place has, from one piece. */
export type Next = Pick<Piece, "entries" | "missing">;

/** The pieces do not lead on. `beyond`: the next entry that the place has. */
export type Gap = { readonly beyond: number };

/**
 * Yields the entries after `base`, piece by piece, and returns what is missing when later ones are in the place.
 * @throws {BadArchive} when a piece is damaged; {ArchiveUnread}
 */
export async function* entriesFrom(
  base: Entry,
  pieces: readonly PieceName[],
  backups: readonly Dated[],
  place: BackupPlace,
): AsyncGenerator<Next, Gap | null> {
  const reads = new Map<string, Promise<Piece>>();
  const read = (i: number): Promise<Piece> => {
    const [wanted] = pieces.slice(i, i + READ_AHEAD).map(({ name }) => {
      const pending = reads.get(name) ?? readPiece(place, name);
      pending.catch(() => {}); // whoever awaits it gets the error
      reads.set(name, pending);
      return pending;
    });
    return must(wanted, "there is a piece");
  };
  let last = base;
  for (const [i, piece] of pieces.entries()) {
    reads.delete(pieces[i - 1]?.name ?? "");
    if (piece.last <= last.n) continue;
    if (piece.first > last.n + 1) break;
    const { follows, missing, entries } = await read(i);
    const own = entries.find(({ n }) => n === last.n);
    if ((own === undefined ? follows : checksumOf(own)) !== checksumOf(last)) continue; // of another history
    yield { missing, entries: entries.filter(({ n }) => n > last.n) };
    last = must(entries.at(-1), "a piece has an entry");
  }
  const numbers = [
    ...pieces.flatMap((piece) => [piece.first, piece.last]),
    ...backups.flatMap(({ entry }) => entry ?? []),
  ];
  const beyond = numbers.filter((n) => n > last.n);
  return beyond.length === 0 ? null : { beyond: beyond.reduce((a, b) => Math.min(a, b)) };
}

async function readPiece(place: BackupPlace, name: string): Promise<Piece> {
  const bytes = await new Response(place.open(name)).bytes();
  try {
    const text = (await decompress(bytes)).toString();
    const [head = "", ...lines] = text.split("\n");
    const { format, follows, missing } = headSchema.parse(JSON.parse(head));
    if (format > PIECE_FORMAT) throw new BadArchive(`${name} is of a newer luxhub`);
    const entries = lines.filter((line) => line !== "").map(entryOf);
    const [, first, last] = PIECE_NAME.exec(name) ?? [];
    const isWhole =
      entries.every(({ n }, i) => n === Number(first) + i) && entries.at(-1)?.n === Number(last);
    if (!isWhole) throw new BadArchive(`${name} has other entries than its name says`);
    return { follows, missing, entries };
  } catch (error) {
    if (error instanceof BadArchive) throw error;
    throw new BadArchive(`${name} is damaged (${reasonOf(error)})`, { cause: error });
  }
}

function entryOf(line: string): Entry {
  const [, n, at, body] = LINE.exec(line) ?? [];
  if (body === undefined) throw new Error("a line is no entry");
  return { n: Number(n), at: Number(at), body };
}
