/** The body of an upload: multipart form data (RFC 7578), built by the platform or, for a stream, around the stream. */
import { type HttpRequest, newIdempotencyKey } from "./http.ts";
import { toJson } from "./json.ts";

/** The bytes of a file. A stream can be read only once; with a function that opens it, the upload can be retried. */
export type FileContent =
  Blob | Uint8Array<ArrayBuffer> | string | ReadableStream<Uint8Array> | (() => ReadableStream<Uint8Array>);

export type UploadFields = {
  readonly name: string;
  /** The content type. */
  readonly type?: string | undefined;
  /** Stored with the file; `task_id` and `node` in it attach the file to a task and a node. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
};

export function multipart(
  content: FileContent,
  fields: UploadFields,
): Pick<HttpRequest, "body" | "headers" | "isRepeatable"> {
  if (typeof content === "function") return aroundStream(content, fields, true);
  if (content instanceof ReadableStream) return aroundStream(() => content, fields, false);
  const form = new FormData();
  form.append("metadata", toJson(fields.metadata ?? {}));
  const type = fields.type ?? (content instanceof Blob ? content.type : "");
  form.append("file", new Blob([content], { type }), fields.name);
  return { body: () => form, isRepeatable: true };
}

/** Writes the multipart framing around a stream, which FormData does not accept. */
function aroundStream(
  open: () => ReadableStream<Uint8Array>,
  { name, type = "application/octet-stream", metadata = {} }: UploadFields,
  isRepeatable: boolean,
): Pick<HttpRequest, "body" | "headers" | "isRepeatable"> {
  const boundary = `luxhub-${newIdempotencyKey()}`;
  const fileName = name.replaceAll(/["\r\n]/g, encodeURIComponent);
  const head = [
    `--${boundary}`,
    'Content-Disposition: form-data; name="metadata"',
    "",
    toJson(metadata),
    `--${boundary}`,
    `Content-Disposition: form-data; name="file"; filename="${fileName}"`,
    `Content-Type: ${type}`,
    "",
    "",
  ].join("\r\n");
  const tail = `\r\n--${boundary}--\r\n`;
  const encoder = new TextEncoder();
  const frame = (): TransformStream<Uint8Array, Uint8Array> =>
    new TransformStream({
      start: (body) => body.enqueue(encoder.encode(head)),
      flush: (body) => body.enqueue(encoder.encode(tail)),
    });
  return {
    headers: { "Content-Type": `multipart/form-data; boundary=${boundary}` },
    body: () => open().pipeThrough(frame()),
    isRepeatable,
  };
}
