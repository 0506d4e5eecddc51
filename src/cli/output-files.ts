/**
 * The files that a command has left in its output directory, to be uploaded.
 *
 * Invariant: only regular files inside the directory are read, and no symbolic link is followed, also not one that is
 * put in place meanwhile. A hard link cannot be told from its file. Must not: know a task or the hub.
 */
import { constants, existsSync, lstatSync, readdirSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { codeOf } from "../lib/reason.ts";

export type OutputFile = {
  /** Below the directory, with slashes. U+FFFD replaces bytes that are not UTF-8. */
  readonly path: string;
  /** Reads the file from its beginning, until the next file is asked for. */
  content(): ReadableStream<Uint8Array>;
};

/** Windows has O_RDONLY alone: there a link that replaces an entry in the meantime is followed. */
const { O_RDONLY, O_NOFOLLOW = 0, O_DIRECTORY = 0, O_NONBLOCK = 0 } = constants;
/** A FIFO that replaces a file must not block the worker. */
export const FILE_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
export const DIRECTORY_FLAGS = O_RDONLY | O_NOFOLLOW | O_DIRECTORY;
const READ_BYTES = 256 * 1024;
/** What open() fails with when the path no longer is what it was: a link, or nothing. */
const REPLACED = new Set(["ELOOP", "ENOTDIR", "ENOENT", "ENXIO"]);

/** By name within each directory. `onSkip` gets the rest but directories. */
export async function* outputFilesIn(
  dir: string | Buffer,
  onSkip: (path: string) => void,
  below = "",
): AsyncGenerator<OutputFile, void, undefined> {
  const opened = await openUnlessReplaced(dir, DIRECTORY_FLAGS);
  if (opened === null) return onSkip(below === "" ? "." : below);
  try {
    const base = pathOfOpen(opened.fd, dir);
    for (const name of readdirSync(base, { encoding: "buffer" }).toSorted(Buffer.compare)) {
      const entryPath = Buffer.concat([Buffer.from(base), SLASH, name]);
      const path = `${below === "" ? "" : `${below}/`}${name.toString()}`;
      const entry = lstatSync(entryPath, { throwIfNoEntry: false });
      if (entry?.isDirectory()) yield* outputFilesIn(entryPath, onSkip, path);
      else if (entry?.isFile()) yield* outputFile(entryPath, path, onSkip);
      else onSkip(path);
    }
  } finally {
    await opened.close();
  }
}

const SLASH = Buffer.from("/");

/** On Linux paths begin at the open directory, as with openat(2): nobody can put a link into their beginning. */
export function pathOfOpen<P extends string | Buffer>(fd: number, path: P): string | P {
  const openPath = `/proc/self/fd/${fd}`;
  return process.platform === "linux" && existsSync(openPath) ? openPath : path;
}

async function* outputFile(
  location: Buffer,
  path: string,
  onSkip: (path: string) => void,
): AsyncGenerator<OutputFile, void, undefined> {
  const opened = await openUnlessReplaced(location, FILE_FLAGS);
  if (opened === null) return onSkip(path);
  try {
    // What was opened decides, and not what was there before.
    if ((await opened.stat()).isFile()) yield { path, content: () => contentOf(opened) };
    else onSkip(path);
  } finally {
    await opened.close();
  }
}

async function openUnlessReplaced(path: string | Buffer, flags: number): Promise<FileHandle | null> {
  try {
    return await open(path, flags);
  } catch (error) {
    if (REPLACED.has(codeOf(error))) return null;
    throw error;
  }
}

function contentOf(file: FileHandle): ReadableStream<Uint8Array> {
  let position = 0;
  return new ReadableStream({
    async pull(controller) {
      const { bytesRead, buffer } = await file.read(new Uint8Array(READ_BYTES), 0, READ_BYTES, position);
      position += bytesRead;
      if (bytesRead === 0) controller.close();
      else controller.enqueue(buffer.subarray(0, bytesRead));
    },
  });
}
