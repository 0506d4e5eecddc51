/** `luxhub file …`: files of a hub, with their progress. */
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { basename } from "node:path";
import { type FileRecord, HubUnreachable, type LuxHub, type UploadFields } from "../client/luxhub.ts";
import { printable, printableJson } from "../lib/printable.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { type Tools, sizeText } from "../upkeep/upkeep.ts";
import { fileOf } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type ClientRuns, recordOf } from "./remote.ts";
import { withProgress } from "./progress.ts";
import { BrokenPipe } from "./table.ts";
import { writeLine } from "./standard-output.ts";

export const RUNS: ClientRuns = {
  "file put": put,
  "file get": get,
};

async function put({ hub, values, json, words }: Remote): Promise<number> {
  const path = fileOf({ words }, "file put");
  sizeOf(path); // else an unknown task would be the error
  const [task, node] = [values.text("task"), values.text("node")];
  if (task !== undefined) await hub.tasks.get({ task_id: task }); // else the file would be attached to nothing
  const file = await uploadFrom(hub, path, {
    name: values.text("name"),
    type: values.text("type"),
    metadata: { ...(task !== undefined && { task_id: task }), ...(node !== undefined && { node }) },
  });
  if (task !== undefined && file.task_id !== task)
    console.error(`luxhub: there is no task ${task}: the file is attached to none`);
  return writeLine(json ? printableJson(recordOf(file), 2) : file.file_id);
}

export function uploadFrom(
  hub: LuxHub,
  path: string,
  {
    name = basename(path),
    type = Bun.file(path).type,
    metadata,
  }: { readonly name?: string | undefined } & Omit<UploadFields, "name">,
): Promise<FileRecord> {
  const size = sizeOf(path);
  return withProgress((tools) => {
    const open = (): ReadableStream<Uint8Array> => Bun.file(path).stream().pipeThrough(counted(tools, size));
    return hub.files.upload(open, { name, type, metadata }, { signal: tools.signal });
  });
}

export function sizeOf(path: string): number {
  try {
    const stat = statSync(path);
    if (stat.isFile()) return stat.size;
  } catch (error) {
    throw new Error(`cannot read ${path}: ${reasonOf(error)}`, { cause: error });
  }
  throw new Error(`${path} is not a file`);
}

const STANDARD_OUTPUT = "-";

async function get({ hub, values, words: [fileId = ""] }: Remote): Promise<number> {
  const response = await hub.files.download({ file_id: fileId });
  const body = response.body;
  const size = Number(response.headers.get("content-length") ?? Number.NaN);
  const given = values.text("output");
  if (given === STANDARD_OUTPUT) {
    if (body) await pipeToSink(body, Bun.stdout.writer());
    return EXIT.OK;
  }
  const path = given ?? fileNameFrom(response.headers.get("content-disposition"), fileId);
  if (given === undefined && existsSync(path)) {
    await body?.cancel();
    throw new Error(`${path} exists: name another file with -o`);
  }
  const partial = `${path}.${process.pid}.part`;
  let bytes = 0;
  try {
    bytes = await withProgress(async (tools) => {
      const sink = Bun.file(partial).writer();
      const stream = body?.pipeThrough(counted(tools, size), { signal: tools.signal });
      return stream ? pipeToSink(stream, sink) : Number(await sink.end());
    });
    if (Number.isFinite(size) && bytes !== size)
      throw new HubUnreachable(`the download broke off after ${bytes} of ${size} bytes`);
    if (!existsSync(partial)) await Bun.write(partial, ""); // an empty file
    renameSync(partial, path);
  } finally {
    rmSync(partial, { force: true });
  }
  console.error(`${path}: ${sizeText(bytes)}`);
  return EXIT.OK;
}

export async function pipeToSink(
  body: ReadableStream<Uint8Array>,
  sink: ReturnType<typeof Bun.stdout.writer>,
): Promise<number> {
  let bytes = 0;
  try {
    for await (const piece of body) {
      sink.write(piece);
      await sink.flush();
      bytes += piece.length;
    }
  } catch (error) {
    if (codeOf(error) === "EPIPE") throw new BrokenPipe();
    if (codeOf(error).startsWith("E") && codeOf(error) !== "ECONNRESET") throw error;
    throw new HubUnreachable(`the download broke off after ${bytes} bytes: ${reasonOf(error)}`, {
      cause: error,
    });
  } finally {
    await sink.end();
  }
  return bytes;
}

/**
 * Names that mean something else on Windows: a device, a stream within a file (`a:b`), a pattern, a name without its
 * end.
 */
const NOT_ON_WINDOWS = /[<>:"|?*]|[. ]$|^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/** The base name, so that no other directory is written, or the id of the file if that name cannot be used here. */
export function fileNameFrom(
  disposition: string | null,
  fileId: string,
  platform: NodeJS.Platform = process.platform,
): string {
  const [, encoded] = /filename\*=UTF-8''([^;]+)/i.exec(disposition ?? "") ?? [];
  const [, quoted] = /filename="((?:[^"\\]|\\.)*)"/i.exec(disposition ?? "") ?? [];
  return usableName(encoded === undefined ? (quoted ?? "") : decodeURIComponent(encoded), fileId, platform);
}

export function usableName(given: string, fileId: string, platform = process.platform): string {
  const name = basename(given);
  const isUsable = name !== "" && !name.startsWith(".") && printable(name) === name;
  return isUsable && !(platform === "win32" && NOT_ON_WINDOWS.test(name)) ? name : fileId;
}

const BAR = 24;

function counted({ clock, onProgress }: Tools, size: number): TransformStream<Uint8Array, Uint8Array> {
  const startedAt = clock.steady();
  let bytes = 0;
  return new TransformStream({
    transform: (piece, stream) => {
      bytes += piece.length;
      const perSecond = (bytes * 1_000) / Math.max(1, clock.steady() - startedAt);
      const done = Number.isFinite(size) && size > 0 ? Math.min(1, bytes / size) : 0;
      const filled = Math.round(done * BAR);
      const bar = `[${"#".repeat(filled)}${" ".repeat(BAR - filled)}] ${Math.floor(done * 100)}%  `;
      const isKnown = Number.isFinite(size); // a hub sends large files without their size
      onProgress(
        `${isKnown ? bar : ""}${sizeText(bytes)}${isKnown ? ` of ${sizeText(size)}` : ""}  ${sizeText(Math.round(perSecond))}/s`,
      );
      stream.enqueue(piece);
    },
  });
}
