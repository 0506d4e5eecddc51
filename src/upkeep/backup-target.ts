/**
 * Where a backup goes, and where a restore reads it: a file, standard output or input, or an object in S3; and the
 * places of dated backups (a directory, or a prefix in a bucket), of which the newest are kept.
 *
 * Invariant: a file or an object under a backup's name is complete and on disk. An unfinished one has another name, or
 * is an upload that the storage has not accepted. The credentials come from the environment (S3_* or AWS_*), where Bun's
 * client reads them; they are never settings of the hub.
 */
import { lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { flushDirectory } from "../blobs/disk.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { ArchiveUnread, ArchiveUnwritten, FILE_MODE, writeAll } from "./upkeep.ts";

/** Each method throws ArchiveUnwritten when the bytes cannot be stored. */
export type ArchiveSink = {
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves when the archive is complete under its name. */
  finish(): Promise<void>;
  /** Does nothing once it is finished. Never rejects. */
  abandon(): Promise<void>;
};

export type BackupTarget = {
  readonly name: string;
  /** The directory with room for a copy of the database; null: the data directory. */
  readonly scratch: string | null;
  /** @throws {NameTaken}; {ArchiveUnwritten} when nothing can be written there */
  open(): Promise<ArchiveSink>;
};

export type BackupPlace = {
  readonly name: string;
  /** The names that begin so, sorted. Creates a missing directory. */
  list(prefix: string): Promise<readonly string[]>;
  target(name: string): BackupTarget;
  /** The stream fails with ArchiveUnread. */
  open(name: string): ReadableStream<Uint8Array>;
  remove(name: string): Promise<void>;
};

/** A backup in a place. `at`: epoch milliseconds, in whole seconds. `entry`: it has the change log up to this one at least. */
export type Dated = { readonly name: string; readonly at: number; readonly entry: number | null };

export class NameTaken extends Error {
  override readonly name = "NameTaken";

  constructor(to: string) {
    super(`${to} already exists; choose another name`);
  }
}

const DIRECTORY_MODE = 0o700;
const S3_URL = /^s3:\/\/([^/]+)\/?(.*)$/;
/** A storage takes 10,000 parts: 150 GiB. */
const PART_BYTES = 16 * 1024 * 1024;
const DATED = /^luxhub-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z(?:-(\d{1,16}))?\.tar$/;

/** Names sort by time. */
export function datedName({ at, entry }: Pick<Dated, "at" | "entry">): string {
  const time = new Date(at).toISOString().replaceAll(/[-:]|\.\d+/g, "");
  return `luxhub-${time}${entry === null ? "" : `-${entry}`}.tar`;
}

/** Oldest first. */
export async function backupsIn(place: BackupPlace): Promise<readonly Dated[]> {
  const backups: Dated[] = (await place.list("luxhub-")).flatMap((name) => {
    const [found, year, month, day, hour, minute, second, entry] = DATED.exec(name) ?? [];
    if (found === undefined) return [];
    const at = Date.UTC(
      Number(year),
      Number(month) - 1,
      Number(day),
      Number(hour),
      Number(minute),
      Number(second),
    );
    return [{ name, at, entry: entry === undefined ? null : Number(entry) }];
  });
  return backups.toSorted((a, b) => a.at - b.at || (a.entry ?? 0) - (b.entry ?? 0));
}

/** It ends with a slash, on Windows perhaps with a backslash. */
export function isPlace(to: string): boolean {
  return to.endsWith("/") || to.endsWith(sep);
}

/** `-`, `s3://BUCKET/KEY` or a path. */
export function targetOf(to: string): BackupTarget {
  if (to === "-") return STANDARD_OUTPUT;
  const [, bucket, key = ""] = S3_URL.exec(to) ?? [];
  return bucket === undefined ? fileTarget(resolve(to)) : objectTarget(bucket, key);
}

/** `s3://BUCKET/PREFIX/` or the path of a directory, which is created when it is missing. */
export function placeOf(to: string): BackupPlace {
  const [, bucket, prefix = ""] = S3_URL.exec(to) ?? [];
  return bucket === undefined
    ? directoryPlace(resolve(to))
    : bucketPlace(bucket, prefix.replace(/\/*$/, "/"));
}

// ---- Files

export function fileTarget(to: string): BackupTarget {
  return { name: to, scratch: dirname(to), open: () => FileSink.open(to) };
}

class FileSink implements ArchiveSink {
  readonly #to: string;
  readonly #partial: string;
  readonly #file: FileHandle;

  private constructor(to: string, partial: string, file: FileHandle) {
    this.#to = to;
    this.#partial = partial;
    this.#file = file;
  }

  static async open(to: string): Promise<FileSink> {
    refuseTaken(to);
    const partial = `${to}.${Bun.randomUUIDv7()}.partial`;
    return new FileSink(to, partial, await open(partial, "wx", FILE_MODE).catch(unwritten));
  }

  async write(bytes: Uint8Array): Promise<void> {
    await writeAll(this.#file, bytes).catch(unwritten);
  }

  async finish(): Promise<void> {
    await this.#file.sync().catch(unwritten);
    refuseTaken(this.#to);
    await rename(this.#partial, this.#to).catch(unwritten);
    await flushDirectory(dirname(this.#to)).catch(unwritten);
  }

  async abandon(): Promise<void> {
    await this.#file.close().catch(() => {});
    // After finish() no file has this name. rm fails only where the file could not be written either.
    await rm(this.#partial, { force: true }).catch(() => {});
  }
}

/** Refuses an existing name, even that of a dangling link, which the archive would replace. */
function refuseTaken(to: string): void {
  try {
    if (lstatSync(to, { throwIfNoEntry: false }) === undefined) return;
  } catch (error) {
    throw new Error(`cannot write ${to}: ${reasonOf(error)}`, { cause: error });
  }
  throw new NameTaken(to);
}

function directoryPlace(path: string): BackupPlace {
  return {
    name: path,
    list: async (prefix) => {
      try {
        makeDirectory(path);
        return readdirSync(path)
          .filter((name) => name.startsWith(prefix))
          .toSorted();
      } catch (error) {
        throw new Error(`cannot use ${path}: ${reasonOf(error)}`, { cause: error });
      }
    },
    target: (name) => fileTarget(join(path, name)),
    open: (name) => openBackup(join(path, name)),
    remove: async (name) => rmSync(join(path, name), { force: true }),
  };
}

/** Never creates the directories above it: they may be of a disk that is not mounted. */
function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: DIRECTORY_MODE });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

// ---- Standard output

const STANDARD_OUTPUT: BackupTarget = {
  name: "standard output",
  scratch: null,
  open: async () => {
    const writer = Bun.stdout.writer();
    return {
      write: (bytes) => writeAndFlush(writer, bytes).catch(unwritten),
      finish: async () => {}, // each write has been flushed
      abandon: async () => {},
    };
  },
};

type Flushable = {
  write(bytes: Uint8Array): number | Promise<number>;
  flush(): number | Promise<number>;
};

async function writeAndFlush(writer: Flushable, bytes: Uint8Array): Promise<void> {
  await writer.write(bytes);
  await writer.flush();
}

// ---- Storage that speaks the S3 protocol

function objectTarget(bucket: string, key: string): BackupTarget {
  const name = `s3://${bucket}/${key}`;
  return {
    name,
    scratch: null,
    open: async () => {
      const client = new Bun.S3Client({ bucket });
      // Unlike a HEAD request, a list also tells a missing bucket and wrong credentials from a missing object.
      const { contents = [] } = await client.list({ prefix: key, maxKeys: 1 }).catch(unstored);
      if (contents[0]?.key === key) throw new NameTaken(name);
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const options = { partSize: PART_BYTES, queueSize: 2, retry: 3 };
      const stored = client.write(key, new Response(readable), options);
      const writer = writable.getWriter();
      for (const ended of [stored, writer.closed]) ended.catch(() => {}); // write() and finish() tell
      return {
        write: (bytes) =>
          Promise.race([writer.write(bytes).catch(() => stored), stored]).then(none, unstored),
        finish: () => {
          writer.close().catch(() => {});
          return stored.then(none, unstored);
        },
        // Not a writer of Bun's client (1.4.5): its end() stores what was written, even when it is given an error.
        abandon: async () => void writer.abort(new Error("it is not complete")).catch(() => {}), // may never end
      };
    },
  };
}

const none = (): void => {};

function bucketPlace(bucket: string, prefix: string): BackupPlace {
  const name = `s3://${bucket}/${prefix}`;
  const client = (): Bun.S3Client => new Bun.S3Client({ bucket });
  const fail = (error: unknown): never => {
    throw new Error(`cannot use ${name}: ${storageReason(error)}`, { cause: error });
  };
  return {
    name,
    list: async (beginning) => {
      const names: string[] = [];
      for (let after: string | undefined = prefix; after !== undefined;) {
        const page: Bun.S3ListObjectsResponse = await client()
          .list({ prefix: prefix + beginning, startAfter: after })
          .catch(fail);
        const keys = (page.contents ?? []).map(({ key }) => key);
        names.push(...keys.map((key) => key.slice(prefix.length)));
        after = page.isTruncated ? keys.at(-1) : undefined;
      }
      return names.toSorted();
    },
    target: (name) => objectTarget(bucket, `${prefix}${name}`),
    open: (key) => openBackup(`${name}${key}`),
    remove: (name) => client().delete(`${prefix}${name}`).catch(fail),
  };
}

// ---- Reading a backup

/** `-`, `s3://BUCKET/KEY` or a path. The stream fails with ArchiveUnread. */
export function openBackup(from: string): ReadableStream<Uint8Array> {
  const [, bucket, key = ""] = S3_URL.exec(from) ?? [];
  const isObject = from !== "-" && bucket !== undefined;
  const reasonFor = isObject ? storageReason : reasonOf;
  const file = isObject ? new Bun.S3Client({ bucket }).file(key) : from === "-" ? Bun.stdin : Bun.file(from);
  let reader: ReturnType<typeof readerOf> | null = null;
  return new ReadableStream({
    pull: async (controller) => {
      try {
        reader ??= readerOf(file);
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        throw new ArchiveUnread(`cannot read ${from}: ${reasonFor(error)}`, { cause: error });
      }
    },
    cancel: () => reader?.cancel(),
  });
}

function readerOf(file: Blob) {
  return file.stream().getReader();
}

/** What the storage said, else the code of Bun's client. */
function storageReason(error: unknown): string {
  const code = codeOf(error);
  return code === "ConnectionRefused" || code === "FailedToOpenSocket"
    ? `the storage cannot be reached (${code})`
    : reasonOf(error);
}

function unstored(error: unknown): never {
  throw new ArchiveUnwritten(new Error(storageReason(error), { cause: error }));
}

function unwritten(error: unknown): never {
  throw new ArchiveUnwritten(error);
}
