/** The endpoints of files: file/*. */
import * as z from "zod/mini";
import type { BlobWriter } from "../blobs/blobs.ts";
import * as limit from "../domain/limits.ts";
import type { FileRecord, KeyRecord } from "../domain/model.ts";
import { isNestedDeeper } from "../http/json-body.ts";
import { canCutOff, cutOffOn } from "../http/connections.ts";
import { downloadResponse } from "../http/download.ts";
import { pathParameter, queryOf } from "../http/exchange.ts";
import { Problem, notFoundIfDeleted } from "../http/problem.ts";
import type { Upload } from "../http/upload.ts";
import { must } from "../lib/assert.ts";
import { isoTime } from "../lib/clock.ts";
import { canonicalJson, compactJson } from "../lib/exact-json.ts";
import type { FileDraft } from "../service/files.ts";
import type { RunningUpload } from "../service/quotas.ts";
import type { Ticket } from "../service/tickets.ts";
import { type Transact, uncommitted } from "../store/store.ts";
import { type Call, type Endpoint, rawEndpoint, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { attemptBy, idempotencyKeyOf } from "./idempotency.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { inputParser, invalidField, namesOfIgnored } from "./input.ts";
import type { Body } from "./response-backpressure.ts";
import { keyBoundElsewhere, keyLost, problemOf } from "./error-table.ts";
import { encodeSuccess } from "./answer.ts";
import { cursorPageSchema, encodeCursorPage, encodeFile, fileSchema, time } from "./response-schemas.ts";
import { about, optional, string } from "./about.ts";

const UPLOAD_PATH = "/api/v1/file/upload";
const UPLOAD_STRICT = "bound";

/** The task and the node that metadata may name; an invalid id is plain metadata. */
const parseNames = inputParser(() =>
  z.object({
    task_id: z.catch(z.nullable(field.id()), null),
    node: z.catch(z.nullable(field.nodeId()), null),
  }),
);

export function uploadLimit(): ConcurrencyLimit {
  return new ConcurrencyLimit(limit.UPLOAD_SHARES, "uploads run");
}

export function fileEndpoints(maxFileBytes: number, uploads = uploadLimit()): readonly Endpoint[] {
  const upload = rawEndpoint({
    method: "POST",
    path: UPLOAD_PATH,
    auth: "secret",
    ticket: "upload",
    strict: UPLOAD_STRICT,
    summary: "Stores a file, sent as multipart form data",
    rejections: ["node_not_found", "task_files_limit", "task_sealed", "key_bound_to_other_node"],
    handle: async (call) => {
      using _place = uploads.enter(call.share());
      return await receiveUpload(call, maxFileBytes);
    },
  });
  return [upload, download, list, downloadUrl, uploadUrl, removeByBody, removeByPath];
}

async function receiveUpload(call: Call, maxFileBytes: number): Promise<Response | Body> {
  const { request } = call.exchange;
  const idempotencyKey = idempotencyKeyOf(request.headers);
  // The first upload loads the multipart parser: a hub without uploads saves its 8 MiB.
  const { readUpload } = await import("../http/upload.ts");
  const boundTo = call.nodeOfKey;
  using room = boundTo === null ? null : await call.services.quotas.beginUpload(boundTo);
  using watchdog = new UploadWatchdog(call);
  const received = await readUpload(request, {
    limits: {
      fileMaxBytes: maxFileBytes,
      textMaxBytes: { metadata: limit.METADATA_MAX_BYTES },
      partsMax: limit.UPLOAD_PARTS_MAX,
      partHeadersMaxBytes: limit.UPLOAD_PART_HEADERS_MAX_BYTES,
      fileNameMaxChars: limit.FILE_NAME_MAX_CHARS,
    },
    openSink: async () => {
      const writer = watchdog.watch(await call.services.files.begin());
      return room === null ? writer : counted(writer, room);
    },
    deadline: watchdog.signal,
  });
  const writer = received.file.sink;
  try {
    watchdog.signal.throwIfAborted();
    const grant = call.ticket?.grant.kind === "upload" ? call.ticket.grant : null;
    const sent = draftOf(received);
    const draft = grant === null ? sent : { ...sent, nodeId: grant.nodeId, taskId: grant.taskId };
    if (boundTo === null && grant === null) await call.checkActsFor([draft.nodeId], UPLOAD_STRICT);
    const query = Object.keys(queryOf(request)).filter((name) => grant === null || name !== "ticket");
    const ignored = namesOfIgnored([...received.skipped, ...query]);
    const encode = (file: FileRecord): string => encodeSuccess(encodeFile(file), ignored);
    const save = async (transact: Transact<FileRecord>): Promise<string> =>
      encode(await call.services.files.save(transact, writer, draft, boundTo));
    const hash = hashUpload(received, draft);
    if (call.ticket !== null) {
      // The ticket is the key: an upload whose response was lost can be repeated, and no other file can be uploaded.
      const attempt = attemptBy(call, `${UPLOAD_PATH}?ticket`, call.ticket.id, hash);
      const once = { ...attempt, implicit: true };
      return await call.idempotency.run(once, (transactFor) => save(transactFor(encode))).catch(urlIsUsed);
    }
    if (idempotencyKey === null) return await save(call.transact);
    const attempt = attemptBy(call, UPLOAD_PATH, idempotencyKey, hash);
    return await call.idempotency.run(attempt, (transactFor) => save(transactFor(encode)));
  } finally {
    await writer.discard(); // does nothing after finish()
  }
}

function urlIsUsed(error: unknown): never {
  if (!(error instanceof Problem) || error.code !== "idempotency_key_reused") throw error;
  const detail =
    "This URL has stored another file. Get a new one for each file (POST /api/v1/file/upload-url).";
  throw new Problem(error.status, error.code, error.title, detail);
}

/** Counts the bytes against the quota of the node as they arrive. */
function counted(writer: BlobWriter, room: RunningUpload): BlobWriter {
  return {
    blobId: writer.blobId,
    get size() {
      return writer.size;
    },
    write: (chunk) => {
      try {
        room.grow(chunk.byteLength);
      } catch (error) {
        throw problemOf(error) ?? error; // readUpload() ends the connection for a Problem only
      }
      return writer.write(chunk);
    },
    finish: () => writer.finish(),
    discard: () => writer.discard(),
  };
}

function draftOf({ file, texts }: Upload<BlobWriter>): FileDraft {
  const metadata = readMetadata(texts.get("metadata"));
  const { task_id: taskId, node: nodeId } = parseNames(JSON.parse(metadata));
  return { name: file.filename, contentType: file.contentType, metadata, nodeId, taskId };
}

/** Hashes an upload without its multipart boundary, which clients change with each attempt. */
function hashUpload({ file }: Upload<BlobWriter>, { name, contentType, metadata }: FileDraft): string {
  const parts = [name, contentType, file.sha256, canonicalJson(metadata)];
  return Bun.SHA256.hash(JSON.stringify(parts), "hex");
}

/** None, or null, is an empty object. */
function readMetadata(text = ""): string {
  if (text.trim() === "") return "{}";
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (value === null) return "{}";
  if (typeof value !== "object" || Array.isArray(value)) {
    throw invalidField("metadata", "must be a JSON object");
  }
  if (isNestedDeeper(value, limit.JSON_DEPTH_MAX)) {
    throw invalidField("metadata", `must not be nested deeper than ${limit.JSON_DEPTH_MAX}`);
  }
  return compactJson(text);
}

/**
 * Aborts an upload that stalls (it may take long, but must make progress in each interval), and one whose key is revoked
 * or expires.
 */
class UploadWatchdog implements Disposable {
  readonly #abort = new AbortController();
  readonly #timer = setInterval(() => this.#check(), limit.UPLOAD_STALL_MS);
  readonly #unwatchKey: () => void;
  #writer: BlobWriter | null = null;
  #lastSize = 0;

  constructor({ watchKey }: Call) {
    this.#unwatchKey = watchKey(() => this.#abort.abort(keyLost()));
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  watch(writer: BlobWriter): BlobWriter {
    this.#writer = writer;
    return writer;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#unwatchKey();
  }

  #check(): void {
    const size = this.#writer?.size ?? 0;
    if (size - this.#lastSize < limit.UPLOAD_STALL_MIN_BYTES) {
      const detail = "The upload stalled. Send it again over a faster connection.";
      this.#abort.abort(new Problem(408, "request_timeout", "Request timeout", detail));
    }
    this.#lastSize = size;
  }
}

const download = rawEndpoint({
  path: "/api/v1/file/download/:file_id",
  auth: "public",
  ticket: "download",
  summary: "The bytes of a file, whole or a range of them",
  rejections: ["file_not_found"],
  handle: async (call) => {
    const { services, exchange, backpressure, key, watchKey } = call;
    const file = await services.files.get(pathParameter(exchange, "file_id"));
    const representation = { ...file, modifiedAt: file.uploadedAt };
    return downloadResponse(
      exchange.request,
      representation,
      // A download that needs a key must end with it. Where the response cannot be cut off, a stream can.
      async (start, end) => {
        if (key === null || end - start <= limit.FILE_UNCUT_MAX_BYTES)
          return services.files.open(file, start, end);
        const how = canCutOff() ? undefined : "asStream";
        const content = await services.files.open(file, start, end, how);
        if (content instanceof Blob) cutOffOn(watchKey, exchange);
        return content;
      },
      (content, bytes) => backpressure.ofFile(call, content, bytes, key === null ? null : watchKey),
    ).catch((error: unknown) => {
      throw notFoundIfDeleted(error);
    });
  },
});

const list = readEndpoint({
  path: "/api/v1/file/list",
  readsMany: true,
  auth: "public",
  summary: "Files, newest first; filters by task and by name",
  input: () =>
    z.object({
      task_id: optional(field.id(), "Only files of this task."),
      q: optional(
        field.search(),
        "Words, each of which must begin a word of the file's name. One call examines 10,000 files; continue with next_cursor.",
      ),
      ...field.paging(),
      cursor: optional(
        field.cursor(),
        "The `next_cursor` of the previous page, with the same filter and without `page`.",
      ),
    }),
  answer: () => z.strictObject({ files: z.array(fileSchema()), ...cursorPageSchema() }),
  handle: ({ services, variant }, { task_id: taskId = null, q, cursor = null, ...paging }) => {
    const page = field.pageRequest(paging, variant.unpaged);
    if (q !== undefined) {
      field.refusePageWith("q", paging);
      return services.files.search(taskId, q, cursor, page.perPage);
    }
    if (cursor === null) return services.files.list(page, taskId);
    field.refusePageWithCursor(paging);
    return services.files.after(taskId, cursor, page.perPage);
  },
  encode: (page) => encodeCursorPage("files", page, encodeFile),
});

const presignedUrl = (url: string) => () =>
  z.strictObject({
    url: string(url),
    method: z.enum(["GET", "POST"]),
    expires_at: about(time(), "When the URL stops working."),
  });

type PresignedUrl = { readonly path: string; readonly method: "GET" | "POST"; readonly ticket: Ticket };

function encodeUrl({ path, method, ticket }: PresignedUrl) {
  return {
    url: `${path}?ticket=${ticket.text}`,
    method,
    expires_at: isoTime(ticket.expiresAt),
  };
}

function keyOf({ key }: Pick<Call, "key">): KeyRecord {
  return must(key, "an endpoint that needs a secret has the caller's key");
}

const downloadUrl = writeEndpoint({
  path: "/api/v1/file/download-url",
  auth: "secret",
  summary: "Makes a URL that downloads a file without a secret, for 10 minutes",
  answersSecret: true,
  rejections: ["file_not_found"],
  input: () => z.object({ file_id: field.id() }),
  answer: presignedUrl("A path that downloads the file without a secret until `expires_at`."),
  handle: async (call, { file_id }) => {
    const { fileId } = await call.services.files.get(file_id);
    const ticket = await call.services.tickets.issue({ kind: "download", fileId }, keyOf(call));
    const path = `/api/v1/file/download/${encodeURIComponent(fileId)}`;
    return uncommitted<PresignedUrl>({ path, method: "GET", ticket });
  },
  encode: encodeUrl,
});

const uploadUrl = writeEndpoint({
  path: "/api/v1/file/upload-url",
  auth: "secret",
  strict: UPLOAD_STRICT,
  summary: "Makes a URL that uploads one file without a secret, for 10 minutes",
  answersSecret: true,
  rejections: ["node_not_found", "task_not_found"],
  input: () =>
    z.object({
      node_id: optional(
        field.nodeId(),
        "The node of the file; with a key that is bound to a node, that node.",
      ),
      task_id: optional(field.id(), "The task that the file is attached to."),
    }),
  actsFor: (input) => [input.node_id],
  answer: presignedUrl(
    "A path that takes one file without a secret until `expires_at`, as multipart form data.",
  ),
  handle: async (call, { node_id, task_id: taskId = null }) => {
    const nodeId = node_id ?? call.nodeOfKey;
    if (nodeId !== null) await call.services.nodes.get(nodeId);
    if (taskId !== null) await call.services.feed.task(taskId);
    const ticket = await call.services.tickets.issue({ kind: "upload", nodeId, taskId }, keyOf(call));
    return uncommitted<PresignedUrl>({ path: UPLOAD_PATH, method: "POST", ticket });
  },
  encode: encodeUrl,
});

const removal = {
  auth: "secret",
  summary: "Deletes a file permanently",
  rejections: ["file_not_found", "key_bound_to_other_node"],
  answer: () => z.strictObject({ file_id: z.string() }),
  encode: ({ fileId }: FileRecord) => ({ file_id: fileId }),
  handle: async (call: Call<FileRecord>, { file_id }: { file_id: string }) => {
    const bound = call.nodeOfKey;
    if (bound !== null && (await call.services.files.get(file_id)).nodeId !== bound)
      throw keyBoundElsewhere(bound);
    return call.services.files.remove(call.transact, file_id);
  },
} as const;

const removeByBody = writeEndpoint({
  ...removal,
  path: "/api/v1/file/delete",
  input: () => z.object({ file_id: field.id() }),
});

const removeByPath = writeEndpoint({
  ...removal,
  method: "DELETE",
  path: "/api/v1/file/:file_id",
  input: () => z.object({ file_id: z.string() }),
});
