/** The tools and the resource of files: small ones are part of the answer, larger ones go by their URL. */
import { encodeSuccess } from "../api/answer.ts";
import { attemptBy, hashJson } from "../api/idempotency.ts";
import { encodeFile } from "../api/response-schemas.ts";
import * as limit from "../domain/limits.ts";
import type { FileRecord } from "../domain/model.ts";
import type { JsonObject } from "../http/json-body.ts";
import { Problem, invalidRequest } from "../http/problem.ts";
import { parseExact } from "../lib/exact-json.ts";
import type { Session } from "./session.ts";
import { type ToolAnswer, compact, recordOf } from "./texts.ts";

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The bytes of a small file, as text where they are UTF-8; null for a larger one. */
export type Inline = {
  readonly file: FileRecord;
  readonly bytes: Uint8Array | null;
  readonly text: string | null;
};

export async function readFile({ call }: Session, fileId: string): Promise<Inline> {
  const { files } = call.services;
  const file = await files.get(fileId);
  if (file.sizeBytes > limit.MCP_INLINE_MAX_BYTES) return { file, bytes: null, text: null };
  const content = await files.open(file, 0, file.sizeBytes);
  if (content === null) {
    const detail = `The bytes of ${fileId} are missing. Tell the operator of the hub.`;
    throw new Problem(500, "content_missing", "Content missing", detail);
  }
  const bytes = await new Response(content).bytes();
  try {
    return { file, bytes, text: UTF8.decode(bytes) };
  } catch {
    return { file, bytes, text: null };
  }
}

export async function getFile(session: Session, args: JsonObject): Promise<ToolAnswer> {
  const { file, bytes, text } = await readFile(session, String(args["file_id"]));
  const url = downloadUrl(session, file);
  const head = `${file.name}, ${file.sizeBytes} bytes, ${file.contentType}`;
  const data = { file: compact({ ...recordOfFile(file), url }) };
  if (text !== null) return { text: `${head}\n\n${text}`, data };
  const how = `Download it from ${url} with the header X-Matrix-Secret (your key).`;
  if (bytes === null) return { text: `${head}: too large to show. ${how}`, data };
  const blob = Buffer.from(bytes).toString("base64");
  const resource = { uri: `luxhub://file/${file.fileId}`, mimeType: file.contentType, blob };
  return { text: `${head}: not text. ${how}`, data, more: [{ type: "resource", resource }] };
}

export function recordOfFile(file: FileRecord): JsonObject {
  const { success: _, ...record } = recordOf(parseExact(encodeSuccess(encodeFile(file))));
  return record;
}

export function downloadUrl({ shared }: Session, { fileId }: Pick<FileRecord, "fileId">): string {
  return `${shared.publicUrl()}/api/v1/file/download/${fileId}`;
}

const CONTROL = /[\0-\x1f\x7f/\\]/;

export async function putFile(session: Session, args: JsonObject): Promise<ToolAnswer> {
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
  const contentType = Bun.file(name).type;
  const draft = { name, contentType, metadata: "{}", nodeId: self, taskId };
  const encode = (file: FileRecord): string => encodeSuccess(encodeFile(file));
  const hash = hashJson({ ...args, self });
  const attempt = { ...attemptBy(call, "/mcp file_put", hash, hash), implicit: true };
  const answer = await call.idempotency.run(attempt, async (transactFor) => {
    const writer = await call.services.files.begin();
    try {
      await writer.write(bytes);
      const file = await call.services.files.save(
        transactFor(encode),
        writer,
        draft,
        call.key?.nodeId ?? null,
      );
      return encode(file);
    } finally {
      await writer.discard(); // does nothing after finish()
    }
  });
  const isRepeat = answer instanceof Response;
  const { success: _, ...file } = recordOf(
    JSON.parse(await (isRepeat ? answer : new Response(answer)).text()),
  );
  const repeated = isRepeat ? "You stored this very file just now; nothing was done again. " : "";
  const attached = taskId === null ? "" : ` It is attached to ${taskId}.`;
  const text = `${repeated}Stored ${name} as ${file["file_id"]}.${attached}`;
  return { text, data: { file: compact(file), ...(isRepeat ? { repeated: true } : {}) } };
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
  const message = `must have at most ${limit.MCP_INLINE_MAX_BYTES} bytes; leave it out to get instructions for the upload of a larger file`;
  throw invalidRequest([{ path: "content", message }]);
}

/** @param taskId of a task that exists: the agent may paste it into a shell */
function howToUpload({ shared, self }: Session, name: string, taskId: string | null): ToolAnswer {
  const url = `${shared.publicUrl()}/api/v1/file/upload`;
  const metadata = JSON.stringify({ node: self, ...(taskId === null ? {} : { task_id: taskId }) });
  const text =
    `Upload it with a POST of multipart/form-data to ${url}, with the header X-Matrix-Secret (your key), the part file, ` +
    `and the part metadata: ${metadata}. For example: curl -H "X-Matrix-Secret: $SECRET" -F 'metadata=${metadata}' ` +
    `-F 'file=@${name.replaceAll("'", "'\\''")}' ${url}`;
  return { text, data: { upload: { url, method: "POST", metadata: JSON.parse(metadata) } } };
}
