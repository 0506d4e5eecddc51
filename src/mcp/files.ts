/**
 * The tools and the resource of files. A text is shown in parts; small binary content in base64. The rest goes by a
 * presigned URL, because a model does not know its key.
 */
import { encodeSuccess } from "../api/answer.ts";
import { attemptBy, hashJson } from "../api/idempotency.ts";
import { encodeFile } from "../api/response-schemas.ts";
import { isFree } from "../domain/file.ts";
import * as limit from "../domain/limits.ts";
import type { FileRecord } from "../domain/model.ts";
import type { JsonObject } from "../http/json-body.ts";
import { Problem, invalidRequest } from "../http/problem.ts";
import { parseExact } from "../lib/exact-json.ts";
import { type Args, offsetOf } from "./arguments.ts";
import { listed } from "./pages.ts";
import { Foreign, type ToolResult } from "./result.ts";
import { type Session, onceTold } from "./session.ts";
import { fileDetail, fileRow, recordOf } from "./shapes.ts";

type Part = { readonly offset: number; readonly bytes: Uint8Array; readonly text: string | null };

/** Reads at most MCP_RESULT_MAX_BYTES, without a half character at either end. */
async function readPart({ call }: Session, file: FileRecord, offset: number): Promise<Part> {
  const end = Math.min(offset + limit.MCP_RESULT_MAX_BYTES, file.sizeBytes);
  if (offset >= end) return { offset, bytes: new Uint8Array(), text: "" };
  const content = await call.services.files.open(file, offset, end);
  if (content === null) throw contentMissing(file);
  const bytes = await new Response(content).bytes();
  const start = offset === 0 ? 0 : bytes.findIndex((byte) => !isContinuation(byte));
  const whole = bytes.subarray(start >= 0 && start <= 3 ? start : 0);
  try {
    // As a stream it leaves half a character at the end for what follows.
    const stream = end < file.sizeBytes;
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(whole, { stream });
    return { offset: offset + bytes.length - whole.length, bytes: whole, text };
  } catch {
    return { offset, bytes, text: null };
  }
}

function contentMissing({ fileId }: FileRecord): Problem {
  const detail = `The bytes of ${fileId} are missing. Tell the operator of the hub.`;
  return new Problem(500, "content_missing", "Content missing", detail);
}

function isContinuation(byte: number): boolean {
  return byte >= 0x80 && byte < 0xc0;
}

function recordOfFile(file: FileRecord): JsonObject {
  const { success: _, ...record } = recordOf(parseExact(encodeSuccess(encodeFile(file))));
  return record;
}

/** A presigned URL, whole. @throws {Refused} */
async function urlFor(
  session: Session,
  path: "file/download-url" | "file/upload-url",
  input: JsonObject,
): Promise<{ readonly url: string; readonly expires_at: unknown }> {
  const { url, expires_at } = await session.ask("POST", path, input);
  return { url: `${session.shared.publicUrl()}${String(url)}`, expires_at };
}

export async function getFile(session: Session, args: Args): Promise<ToolResult> {
  if (args["file_id"] === undefined) return listFiles(session, args);
  const file = await session.call.services.files.get(String(args["file_id"]));
  const record = recordOfFile(file);
  const { file_id } = record;
  const { offset, bytes, text } = await readPart(session, file, Math.min(offsetOf(args), file.sizeBytes));
  const shown = { file: fileDetail(record), offset };
  if (text !== null) {
    const part = { offset, total: file.sizeBytes, unit: "bytes" } as const;
    const isWhole = offset === 0 && bytes.length === file.sizeBytes;
    // What does not fit is shown by its beginning: to download it is cheaper than to read it in parts.
    const preview = isWhole || offset > 0 ? {} : { mostBytes: limit.MCP_PREVIEW_MAX_BYTES };
    const content = new Foreign(text, { readOn: { call: "file_get", file_id }, part, ...preview });
    const link = isWhole ? {} : await urlFor(session, "file/download-url", { file_id });
    const say = isWhole
      ? "The file."
      : "A part of the file, from the byte offset on. The url downloads all of it without a key, for 10 minutes.";
    return { say, ...shown, content, ...link };
  }
  const link = await urlFor(session, "file/download-url", { file_id });
  const say = "It is not text. The url downloads it without a key, for 10 minutes: curl -o FILE URL.";
  if (file.sizeBytes > limit.MCP_BINARY_MAX_BYTES || offset > 0) return { say, ...shown, ...link };
  const base64 = new Foreign(Buffer.from(bytes).toString("base64"));
  return { say, ...shown, base64, ...link };
}

function listFiles(session: Session, { task_id, cursor, limit: most }: Args): Promise<ToolResult> {
  return listed(session, {
    path: "file/list",
    query: { task_id, cursor },
    limit: most,
    name: "files",
    row: fileRow,
    none: "No such files.",
    thing: "file",
    about: ", newest first: file_get reads one.",
  });
}

const CONTROL = /[\0-\x1f\x7f/\\]/;

export async function putFile(session: Session, args: Args): Promise<ToolResult> {
  const { call, self } = session;
  const name = String(args["name"]);
  if (name === "" || name.length > limit.FILE_NAME_MAX_CHARS || CONTROL.test(name)) {
    const message = `must have 1 to ${limit.FILE_NAME_MAX_CHARS} characters, and no slash or control character`;
    throw invalidRequest([{ path: "name", message }]);
  }
  const taskId = typeof args["task_id"] === "string" ? args["task_id"] : null;
  if (taskId !== null) await session.ask("GET", "task/:task_id", { task_id: taskId }); // else it would attach to nothing
  if (typeof args["content"] !== "string") return howToUpload(session, name, taskId);
  const bytes = bytesOf(args["content"], args["encoding"] === "base64");
  const draft = { name, contentType: Bun.file(name).type, metadata: "{}", nodeId: self, taskId };
  const hash = hashJson({ ...args, self });
  const attempt = { ...attemptBy(call, "/mcp file_put", hash, hash), implicit: true };
  const encode = (file: FileRecord): string => encodeSuccess(encodeFile(file));
  const answer = await call.idempotency.run(attempt, async (transactFor) =>
    encode(await stored(session, transactFor(encode), draft, new Response(bytes))),
  );
  const repeated = answer instanceof Response;
  const file = recordOf(JSON.parse(await (repeated ? answer : new Response(answer)).text()));
  const attached =
    taskId === null ? "For a new task: task_create {files: [file_id]}." : "It is attached to the task.";
  return onceTold({ repeated }, `Stored. ${attached}`, { file_id: file["file_id"], file: fileDetail(file) });
}

type Save = Session["call"]["services"]["files"]["save"];

async function stored(
  { call }: Session,
  transact: Parameters<Save>[0],
  draft: Parameters<Save>[2],
  content: Response,
): Promise<FileRecord> {
  const writer = await call.services.files.begin();
  try {
    for await (const chunk of content.body ?? []) await writer.write(chunk);
    return await call.services.files.save(transact, writer, draft, call.nodeOfKey);
  } finally {
    await writer.discard(); // does nothing after finish()
  }
}

/** @throws {Problem} 400 for what is no base64, or too large */
function bytesOf(content: string, isBase64: boolean): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = isBase64 ? Uint8Array.fromBase64(content) : Buffer.from(content);
  } catch {
    throw invalidRequest([{ path: "content", message: "must be base64, because encoding is base64" }]);
  }
  if (bytes.byteLength <= limit.MCP_INLINE_MAX_BYTES) return bytes;
  const message = `must have at most ${limit.MCP_INLINE_MAX_BYTES} bytes; leave it out to get a URL for the upload of a larger file`;
  throw invalidRequest([{ path: "content", message }]);
}

/** The file may have any name on the disk of the agent: `filename` gives it the asked one. */
async function howToUpload(session: Session, name: string, taskId: string | null): Promise<ToolResult> {
  const input = { node_id: session.self, ...(taskId === null ? {} : { task_id: taskId }) };
  const link = await urlFor(session, "file/upload-url", input);
  const quoted = name.replaceAll(/["'\\`$;,]/g, "_");
  return {
    say: "Upload it with command, with the path of your file instead of PATH: the url takes one file without a key, for 10 minutes. The response has its file_id.",
    command: `curl -F 'file=@PATH;filename=${quoted}' '${link.url}'`,
    ...link,
  };
}

/**
 * The inputs of the new tasks of one call. What is a file of another task, also of one before in the call, or with a
 * bound key of another node, is copied, because it stays where it is.
 */
export class Inputs {
  readonly #session: Session;
  readonly #named = new Set<string>();
  readonly #copies: string[] = [];
  #bytes = 0;

  constructor(session: Session) {
    this.#session = session;
  }

  /** @throws {Problem} 400 for what is too large together. @throws {Rejection} file_not_found */
  async idsOf(fileIds: readonly string[]): Promise<readonly string[]> {
    const { call } = this.#session;
    const ids: string[] = [];
    for (const id of new Set(fileIds)) {
      const file = await call.services.files.get(id);
      const isOwn = call.nodeOfKey === null || file.nodeId === call.nodeOfKey;
      const mayHave = isOwn && isFree(file) && !this.#named.has(id);
      ids.push(mayHave ? id : await this.#copy(file));
      this.#named.add(id);
    }
    return ids;
  }

  async #copy(file: FileRecord): Promise<string> {
    const { call, nodeId } = this.#session;
    const { fileId, name, contentType, sizeBytes } = file;
    this.#bytes += sizeBytes;
    if (this.#bytes > limit.MCP_COPIED_MAX_BYTES) {
      const message = `must have at most ${limit.MCP_COPIED_MAX_BYTES} bytes of other tasks or nodes in one call, which are copied: name a larger file in description, because every node can read it by file_get, or its task in depends_on`;
      throw invalidRequest([{ path: "files", message }]);
    }
    const content = await call.services.files.open(file, 0, sizeBytes);
    if (content === null) throw contentMissing(file);
    const metadata = JSON.stringify({ copy_of: fileId });
    const draft = { name, contentType, metadata, nodeId, taskId: null };
    const copy = await stored(this.#session, call.transact, draft, new Response(content));
    this.#copies.push(copy.fileId);
    return copy.fileId;
  }

  /** Removes the copies that no task has taken: the call was refused, or a repeat. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { call } = this.#session;
    for (const id of this.#copies)
      if (isFree(await call.services.files.get(id))) await call.services.files.remove(call.transact, id);
  }
}

export async function readWhole(
  session: Session,
  fileId: string,
): Promise<{ readonly file: FileRecord; readonly text: string | null; readonly blob: string | null }> {
  const file = await session.call.services.files.get(fileId);
  if (file.sizeBytes > limit.MCP_RESULT_MAX_BYTES) return { file, text: null, blob: null };
  const { bytes, text } = await readPart(session, file, 0);
  return { file, text, blob: text === null ? Buffer.from(bytes).toString("base64") : null };
}

export async function recordWithUrl(session: Session, file: FileRecord): Promise<JsonObject> {
  const record = recordOfFile(file);
  return { ...record, ...(await urlFor(session, "file/download-url", { file_id: record["file_id"] })) };
}
