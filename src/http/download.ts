/**
 * Downloads: conditional requests and range requests (RFC 9110 sections 13 and 14).
 *
 * Invariant: the answer is what planDownload() decided: respond() keeps Bun.serve from applying a Range header a second
 * time. Must not: know what a file belongs to or where its bytes are; let a stored name or type inject header syntax, or
 * a browser run a file as a page of the hub's origin.
 */
import { NO_SNIFF } from "./exchange.ts";
import { Problem } from "./problem.ts";

/** `contentType` and `name` come from the uploader; this file makes them safe. */
export type Representation = {
  readonly name: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly contentType: string;
  readonly modifiedAt: number;
};

/** Bounds what a stream holds in memory while its client does not read. */
export type BoundStream = (
  content: ReadableStream<Uint8Array>,
  bytes: number,
) => Promise<ReadableStream<Uint8Array>>;

/** `start` inclusive; null if the bytes are missing. */
export type OpenContent = (
  start: number,
  endExclusive: number,
) => Promise<Blob | ReadableStream<Uint8Array> | null>;

export type DownloadPlan =
  | { readonly kind: "whole" }
  | { readonly kind: "range"; readonly start: number; readonly endExclusive: number }
  | { readonly kind: "not_modified" }
  | { readonly kind: "unsatisfiable" };

/**
 * RFC 9110 13.2.2: If-None-Match precedes If-Modified-Since, and both precede Range, which counts only for GET (14.2)
 * and if If-Range matches. A Range header that is invalid or has several ranges is ignored.
 */
export function planDownload(method: string, headers: Headers, file: Representation): DownloadPlan {
  if (isUnmodified(headers, file)) return { kind: "not_modified" };
  const range = headers.get("range");
  if (method !== "GET" || range === null) return { kind: "whole" };
  const ifRange = headers.get("if-range");
  if (ifRange !== null && ifRange.trim() !== etagOf(file)) return { kind: "whole" };
  return planRange(range, file.sizeBytes);
}

/**
 * A stream goes through `bound`; Bun sends a Blob without buffering it. @throws {Problem} 416 `range_not_satisfiable`;
 * 500 `content_missing`
 */
export async function downloadResponse(
  request: Request,
  file: Representation,
  open: OpenContent,
  bound: BoundStream,
): Promise<Response> {
  const plan = planDownload(request.method, request.headers, file);
  if (plan.kind === "not_modified") return new Response(null, { status: 304, headers: validators(file) });
  if (plan.kind === "unsatisfiable") throw rangeNotSatisfiable(file.sizeBytes);
  const [start, endExclusive] = plan.kind === "range" ? [plan.start, plan.endExclusive] : [0, file.sizeBytes];
  const content = await open(start, endExclusive);
  if (content === null) throw contentMissing();
  return respond(request, file, plan, content, bound);
}

/** `attachment` with an ASCII name for old clients, and the full name (RFC 6266 4.3, RFC 8187 3.2). */
export function contentDisposition(name: string): string {
  const harmless = name.toWellFormed().replace(/[\p{Cc}/\\]/gu, "_");
  // "%" too: some clients decode it in the quoted form.
  const ascii = harmless.replace(/[^\x20-\x7e]/gu, "_").replace(/["%]/g, "_");
  const extended = encodeURIComponent(harmless).replace(/['()*]/g, percentEncoded);
  return `attachment; filename="${ascii}"; filename*=UTF-8''${extended}`;
}

const OCTET_STREAM = "application/octet-stream";
const MEDIA_TYPE_MAX_CHARS = 255;
const TOKEN = "[A-Za-z0-9!#$&^_.+-]{1,127}";
const MEDIA_TYPE = new RegExp(
  `^${TOKEN}/${TOKEN}(?:[ \\t]*;[ \\t]*${TOKEN}=(?:${TOKEN}|"[\\x20!\\x23-\\x5b\\x5d-\\x7e]*"))*$`,
);

/** A plain `type/subtype` with parameters of safe characters, else application/octet-stream. */
export function safeMediaType(stored: string): string {
  const trimmed = stored.trim();
  return trimmed.length <= MEDIA_TYPE_MAX_CHARS && MEDIA_TYPE.test(trimmed) ? trimmed : OCTET_STREAM;
}

function etagOf(file: Representation): string {
  return `"${file.sha256}"`;
}

function isUnmodified(headers: Headers, file: Representation): boolean {
  const etags = headers.get("if-none-match");
  if (etags !== null) return matchesEtag(etags, etagOf(file)); // the date is ignored (13.1.3)
  const since = httpDate(headers.get("if-modified-since"));
  return since !== null && Math.floor(file.modifiedAt / 1_000) * 1_000 <= since;
}

/** The three forms of RFC 9110 5.6.7, to epoch milliseconds; null for anything else. */
export function httpDate(header: string | null): number | null {
  if (header === null || !/^[A-Z][a-z]{2,8},? .*\d\d:\d\d:\d\d.*$/.test(header)) return null;
  const epochMs = Date.parse(header.endsWith("GMT") ? header : `${header} GMT`);
  return Number.isNaN(epochMs) ? null : epochMs;
}

/** `*` or a list, by weak comparison (RFC 9110 13.1.2). */
export function matchesEtag(header: string, etag: string): boolean {
  if (header.trim() === "*") return true;
  // Ours is hex: splitting at the commas of another server's ETag hides or invents nothing.
  return header.split(",").some((listed) => listed.trim().replace(/^W\//, "") === etag);
}

function planRange(header: string, size: number): DownloadPlan {
  const range = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header.trim());
  const first = range?.[1] ?? "";
  const last = range?.[2] ?? "";
  if (first === "" && last === "") return { kind: "whole" };
  // A number with too many digits loses precision, but stays larger than any size.
  if (first === "") return planSuffix(Number(last), size);
  const start = Number(first);
  if (last !== "" && Number(last) < start) return { kind: "whole" };
  if (start >= size) return { kind: "unsatisfiable" };
  const endExclusive = last === "" ? size : Math.min(Number(last) + 1, size);
  return { kind: "range", start, endExclusive };
}

function planSuffix(length: number, size: number): DownloadPlan {
  if (length === 0) return { kind: "unsatisfiable" };
  // Satisfiable by 14.1.1, but Content-Range cannot express an empty range.
  if (size === 0) return { kind: "whole" };
  return { kind: "range", start: Math.max(0, size - length), endExclusive: size };
}

/**
 * Bun 1.4.5 applies the request's Range again to a Response of status 200 with a whole Bun.file, unless it has a
 * Content-Range, which clients ignore there (RFC 9110 14.4). Bun still sends the file by sendfile, whereas it would
 * buffer a stream for a client that does not read. On HEAD a null body keeps our Content-Length.
 */
async function respond(
  request: Request,
  file: Representation,
  plan: DownloadPlan,
  content: Blob | ReadableStream<Uint8Array>,
  bound: BoundStream,
): Promise<Response> {
  const headers: Record<string, string> = { ...validators(file), ...contentHeaders(file) };
  if (request.method === "HEAD" || file.sizeBytes === 0) {
    if (content instanceof ReadableStream) await content.cancel();
    return new Response(null, { headers });
  }
  const [start, endExclusive] = plan.kind === "range" ? [plan.start, plan.endExclusive] : [0, file.sizeBytes];
  const bytes = endExclusive - start;
  if (request.headers.has("range"))
    headers["Content-Range"] = `bytes ${start}-${endExclusive - 1}/${file.sizeBytes}`;
  headers["Content-Length"] = String(bytes);
  const body = content instanceof ReadableStream ? await bound(content, bytes) : content;
  return new Response(body, { status: plan.kind === "range" ? 206 : 200, headers });
}

function validators(file: Representation): Record<string, string> {
  return {
    ETag: etagOf(file),
    "Last-Modified": new Date(file.modifiedAt).toUTCString(),
    // no-cache (revalidate each time): the file can be deleted. private: reading it may need a secret.
    "Cache-Control": "private, no-cache",
  };
}

function contentHeaders(file: Representation): Record<string, string> {
  return {
    "Content-Type": safeMediaType(file.contentType),
    "Content-Length": String(file.sizeBytes),
    "Content-Disposition": contentDisposition(file.name),
    "Accept-Ranges": "bytes",
    // If a browser shows the file nevertheless: no sniffing, no scripts, no origin.
    ...NO_SNIFF,
    "Content-Security-Policy": "default-src 'none'; sandbox",
  };
}

function percentEncoded(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
}

function rangeNotSatisfiable(size: number): Problem {
  const detail = `The file has ${size} bytes. Request a range within it, or leave Range out to get the whole file.`;
  return new Problem(416, "range_not_satisfiable", "Range not satisfiable", detail, {
    headers: { "Content-Range": `bytes */${size}` },
  });
}

function contentMissing(): Problem {
  const detail =
    "The hub has the record of this file but not its bytes. Tell the operator of the hub, or upload the file again.";
  return new Problem(500, "content_missing", "Content missing", detail);
}
