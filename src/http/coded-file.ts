/**
 * Files that the hub serves from memory, compressed for clients that accept it (RFC 9110 8.4): brotli, or gzip. Each form
 * is made at the first request for the file, by the thread pool of node:zlib, and kept as long as the file is.
 *
 * Invariant: a form is sent as a Blob, which clients that do not read share, so their number needs no bound.
 */
import { codingFor } from "./compression.ts";
import { matchesEtag } from "./download.ts";

/** Must not change: its forms are made once. */
export type ServedFile = {
  readonly content: string | Blob;
  readonly type: string;
  /** Of the bytes that are not compressed, in quotes. */
  readonly etag: string;
};

/** The best first. */
const CODINGS = ["br", "gzip"] as const;
type FileCoding = (typeof CODINGS)[number];

type Forms = { readonly plain: Blob; readonly coded: ReadonlyMap<FileCoding, Blob> };

const made = new WeakMap<ServedFile, Promise<Forms>>();

/** Returns the file in the best form for the client, or 304 if the client has it. */
export async function sendFile(
  { headers: asked }: Request,
  file: ServedFile,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  const { plain, coded } = await formsOf(file);
  const coding = codingFor(asked.get("accept-encoding"), [...coded.keys()]);
  const about = {
    ...headers,
    "Content-Type": file.type,
    ...(coding !== null && { "Content-Encoding": coding }),
    ETag: etagIn(coding, file.etag),
  };
  const known = asked.get("if-none-match");
  const has = [null, ...CODINGS].some((one) => known !== null && matchesEtag(known, etagIn(one, file.etag)));
  if (has) return new Response(null, { status: 304, headers: about });
  return new Response((coding && coded.get(coding)) ?? plain, { headers: about });
}

/** The forms of a file are not the same bytes. */
function etagIn(coding: FileCoding | null, etag: string): string {
  return coding === null ? etag : etag.replace(/"$/, `-${coding}"`);
}

/** Forms that could not be made are made again for the next request. */
function formsOf(file: ServedFile): Promise<Forms> {
  const forms =
    made.get(file) ??
    makeForms(new Blob([file.content])).catch((error: unknown) => {
      made.delete(file);
      throw error;
    });
  made.set(file, forms);
  return forms;
}

/** A form that saves less is not kept, such as that of a picture. */
const WORTH = 0.9;
/** The smallest form of a larger text takes seconds. */
const SMALLEST_MAX_BYTES = 300_000;
const QUALITY = { smallest: 11, quick: 9 };

async function makeForms(plain: Blob): Promise<Forms> {
  const bytes = await plain.bytes();
  const { brotliCompress, gzip, constants } = await import("node:zlib"); // a hub that serves no file saves its memory
  const quality = bytes.length <= SMALLEST_MAX_BYTES ? QUALITY.smallest : QUALITY.quick;
  const { promise: br, ...ofBrotli } = Promise.withResolvers<Buffer>();
  const { promise: gz, ...ofGzip } = Promise.withResolvers<Buffer>();
  brotliCompress(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }, (error, form) =>
    error ? ofBrotli.reject(error) : ofBrotli.resolve(form),
  );
  gzip(bytes, { level: 9 }, (error, form) => (error ? ofGzip.reject(error) : ofGzip.resolve(form)));
  const [brotli, gzipped] = await Promise.all([br, gz]);
  const forms = [["br", brotli] as const, ["gzip", gzipped] as const];
  const coded = forms.flatMap(([coding, form]) =>
    form.length < bytes.length * WORTH ? [[coding, new Blob([Uint8Array.from(form)])] as const] : [],
  );
  return { plain, coded: new Map(coded) };
}
