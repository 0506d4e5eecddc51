/**
 * The files between the hub and the directory of a task: its context, input files and output files.
 *
 * Invariant: what a task brings is written into a directory that no command can write yet, and each file is created
 * anew: no link is followed and no file overwritten. Must not: report the task to the hub.
 */
import { closeSync, lstatSync, mkdirSync, openSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type CallOptions,
  type FileRecord,
  HubUnreachable,
  type LuxHub,
  LuxHubError,
  type Task,
  type TaskContext,
} from "../client/index.ts";
import { FILES_OF_TASK_MAX } from "../domain/limits.ts";
import type { Log } from "../lib/log.ts";
import { codeOf } from "../lib/reason.ts";
import { fileNameFrom, pipeToSink } from "./file.ts";
import { outputFilesIn } from "./output-files.ts";
import type { SecretMask } from "./secret-mask.ts";

export type Transfer = {
  readonly hub: LuxHub;
  readonly nodeId: string;
  readonly log: Log;
  readonly mask: SecretMask;
};

/** The worker waits for an unavailable hub, however long. */
export const FOREVER = { forMs: Number.POSITIVE_INFINITY };
const PAUSE_MS = 1_000;
export const OUT = "out";
export const CONTEXT = "context";

// ---- What the task brings

/**
 * Into the new directory context/: inputs/1.json, … in the order of `depends_on`, the files of these tasks below
 * files/1/, …, and checkpoint.json, answers.json and lessons.json if there are any.
 */
export async function writeContext(
  { inputs, checkpoint, answers, lessons, signal }: TaskContext,
  dir: string,
  hub: LuxHub,
): Promise<void> {
  const contextDir = join(dir, CONTEXT);
  mkdirSync(contextDir);
  const write = (name: string, value: unknown): void =>
    writeFileSync(join(contextDir, name), `${JSON.stringify(value)}\n`, { flag: "wx" });
  if (checkpoint !== undefined) write("checkpoint.json", checkpoint);
  if (lessons.length > 0) write("lessons.json", lessons);
  if (answers.length > 0) write("answers.json", answers);
  if (inputs.length > 0) mkdirSync(join(contextDir, "inputs"));
  for (const [i, input] of inputs.entries()) {
    write(join("inputs", `${i + 1}.json`), input);
    const made = input.files.filter(({ attached }) => attached === "output");
    const files = join(contextDir, "files", String(i + 1));
    if (made.length > 0) mkdirSync(files, { recursive: true });
    for (const { file_id } of made) await fetchFile(file_id, files, ownName, signal, hub);
  }
}

export function ownName(name: string): string {
  return name;
}

/**
 * Again when the connection broke. Returns the name: what `nameOf` makes of it, or with the id where the file system has
 * such a name already, maybe in another case or form of Unicode.
 */
export async function fetchFile(
  fileId: string,
  dir: string,
  nameOf: (name: string) => string,
  signal: AbortSignal,
  hub: LuxHub,
): Promise<string> {
  if (!/^[\w-]+$/.test(fileId)) throw new Error(`the file id ${fileId} is not a valid file name`);
  for (;;) {
    try {
      return await download(fileId, dir, nameOf, signal, hub);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof HubUnreachable)) throw error;
      await Bun.sleep(PAUSE_MS); // the connection broke
    }
  }
}

/** Returns the name. @throws {HubUnreachable} when bytes are missing */
async function download(
  fileId: string,
  dir: string,
  nameOf: (name: string) => string,
  signal: AbortSignal,
  hub: LuxHub,
): Promise<string> {
  const { headers, body } = await hub.files.download({ file_id: fileId }, { signal, retry: FOREVER });
  const given = fileNameFrom(headers.get("content-disposition"), fileId);
  const { name, fd } = createFile(dir, [nameOf(given), nameOf(`${fileId}-${given}`), nameOf(fileId)]);
  try {
    const bytes = body ? await pipeToSink(body, Bun.file(fd).writer()) : 0;
    if (bytes !== Number(headers.get("content-length") ?? bytes))
      throw new HubUnreachable(`the download of ${fileId} broke off after ${bytes} bytes`);
    return name;
  } catch (error) {
    rmSync(join(dir, name), { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
}

/** The limit of most file systems. */
const NAME_MAX_BYTES = 255;

/** With the first of the names that is possible and not taken. */
function createFile(dir: string, names: readonly string[]): { readonly name: string; readonly fd: number } {
  const [name = "", ...others] = names.filter((candidate) => Buffer.byteLength(candidate) <= NAME_MAX_BYTES);
  try {
    return { name, fd: openSync(join(dir, name), "wx", 0o600) };
  } catch (error) {
    if (codeOf(error) === "EEXIST" && others.length > 0) return createFile(dir, others);
    throw error;
  }
}

// ---- What the command has made

/** The command has made more files than the task can have, also without those of earlier attempts. */
export class TooManyFiles extends Error {
  override readonly name = "TooManyFiles";
}

/**
 * First deletes what an earlier attempt that was not completed has uploaded. The hub stores no paths: a directory's name
 * is put before its files'. @throws {TooManyFiles} or {Error} before the first upload, when there is no room for all
 */
export async function uploadFiles(
  task: Task,
  epoch: number,
  out: string,
  signal: AbortSignal,
  transfer: Transfer,
): Promise<void> {
  const { task_id, files, inputs } = task;
  if (!lstatSync(out, { throwIfNoEntry: false })) return; // the command removed it
  const deleted = await deleteEarlier(task, epoch, signal, transfer);
  let made = 0;
  for await (const _ of outputFilesIn(out, () => signal.throwIfAborted()))
    if (++made > FILES_OF_TASK_MAX) break; // a command can make millions
  const room = FILES_OF_TASK_MAX - (files.length - deleted);
  if (made > room) {
    const has = made > FILES_OF_TASK_MAX ? `more than ${FILES_OF_TASK_MAX}` : made;
    const text = `${OUT}/ has ${has} files, and the task has room for ${room} (a task has at most ${FILES_OF_TASK_MAX}): put them into one archive`;
    throw made > FILES_OF_TASK_MAX - inputs.length ? new TooManyFiles(text) : new Error(text);
  }
  const skipped: string[] = [];
  for await (const { path, content } of outputFilesIn(out, (other) => skipped.push(other)))
    await upload(
      content,
      path.replaceAll("/", "-"),
      Bun.file(path).type,
      { task_id, epoch },
      signal,
      transfer,
    );
  const [first] = skipped;
  if (first !== undefined)
    transfer.log.warn("did not upload symbolic links and special files of out/", {
      task: task_id,
      skipped: skipped.length,
      first,
    });
}

/** Returns the id. `more`: further metadata. */
export async function upload(
  content: Blob | Uint8Array<ArrayBuffer> | (() => ReadableStream<Uint8Array>),
  name: string,
  type: string,
  { task_id, epoch }: { readonly task_id: string; readonly epoch: number },
  signal: AbortSignal,
  { hub, nodeId, log, mask }: Transfer,
  extraMetadata: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const about = {
    name: mask.text(name),
    type,
    metadata: { ...extraMetadata, task_id, node: nodeId, [EPOCH]: epoch },
  };
  const bytes = (): ReadableStream<Uint8Array> =>
    typeof content === "function" ? content() : new Blob([content]).stream();
  const masked = mask.isEmpty
    ? content
    : (): ReadableStream<Uint8Array> => bytes().pipeThrough(mask.transform());
  const { file_id, size } = await hub.files.upload(masked, about, { signal, retry: FOREVER });
  log.info("uploaded", { task: task_id, name, bytes: size, file: file_id });
  return file_id;
}

/** In the metadata: the attempt that made the file; not in what people or commands upload. */
const EPOCH = "worker_epoch";

/** The newest of this name that an attempt of the task has uploaded; null: none. */
export async function fileOfAttempt(
  { task_id, outputs }: Pick<Task, "task_id" | "outputs">,
  name: string,
  options: CallOptions,
  { files }: Pick<LuxHub, "files">,
): Promise<FileRecord | null> {
  for (let cursor: string | undefined; outputs.length > 0;) {
    const page = await files.list({ task_id, cursor }, options);
    const file = page.files.find(
      (record) => record.name === name && typeof record.metadata[EPOCH] === "number",
    );
    if (file) return file;
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  return null;
}

/** What earlier attempts have uploaded, if this worker may. Returns how many files that were. */
export async function deleteEarlier(
  { task_id, outputs }: Task,
  epoch: number,
  signal: AbortSignal,
  { hub, log }: Transfer,
): Promise<number> {
  let deleted = 0;
  if (outputs.length === 0) return deleted;
  const options = { signal, retry: FOREVER };
  for (let cursor: string | undefined; ;) {
    const page = await hub.files.list({ task_id, cursor }, options);
    for (const { file_id, metadata } of page.files) {
      const made = metadata[EPOCH];
      if (typeof made !== "number" || made >= epoch) continue;
      try {
        await hub.files.delete({ file_id }, options);
        deleted++;
      } catch (error) {
        // A key that is bound to a node deletes only its files.
        if (!(error instanceof LuxHubError) || error.status !== 403) throw error;
      }
    }
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  if (deleted > 0)
    log.info("deleted the output files of earlier attempts", { task: task_id, files: deleted });
  return deleted;
}
