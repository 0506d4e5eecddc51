/**
 * Files that the hub serves from memory, compressed for clients that accept it (RFC 9110 8.4): brotli, or gzip. Each
 * form is made at the first request, mostly by the thread pool of node:zlib, and kept.
 *
 * Invariant: a form is sent as a Blob, which clients that do not read share, so their number needs no bound.
 */
import { codingFor } from "./compression.ts";
import { matchesEtag } from "./download.ts";

/** Must not change: its forms are made once. */
export type ServedFile = {
  readonly content: string | Blob;
  readonly type: string;
  /** Of the uncompressed bytes, in quotes. */
  readonly etag: string;
};

/** The best first. */
const CODINGS = ["br", "gzip"] as const;
type FileCoding = (typeof CODINGS)[number];

type Forms = { readonly plain: Blob; readonly coded: ReadonlyMap<FileCoding, Blob> };

const made = new WeakMap<ServedFile, Promise<Forms>>();

/** Or 304 if the client has it. */
export async function sendFile(
  { headers: requestHeaders }: Request,
  file: ServedFile,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  const { plain, coded } = await formsOf(file);
  const coding = codingFor(requestHeaders.get("accept-encoding"), [...coded.keys()]);
  const about = {
    ...headers,
    "Content-Type": file.type,
    ...(coding !== null && { "Content-Encoding": coding }),
    ETag: etagIn(coding, file.etag),
  };
  const known = requestHeaders.get("if-none-match");
  const has = [null, ...CODINGS].some(
    (form) => known !== null && matchesEtag(known, etagIn(form, file.etag)),
  );
  if (has) return new Response(null, { status: 304, headers: about });
  return new Response((coding && coded.get(coding)) ?? plain, { headers: about });
}

/** The forms of a file are not the same bytes. */
function etagIn(coding: FileCoding | null, etag: string): string {
  return coding === null ? etag : etag.replace(/"$/, `-${coding}"`);
}

/** What failed is made again for the next request. */
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
/** Of a larger text the smallest form takes seconds. */
const SMALLEST_MAX_BYTES = 300_000;
const QUALITY = { smallest: 11, quick: 9 };

async function makeForms(plain: Blob): Promise<Forms> {
  const bytes = await plain.bytes();
  const isSmall = bytes.length <= SMALLEST_MAX_BYTES;
  const [brotli, gzipped] = await Promise.all([brotliOf(bytes, isSmall), gzipOf(bytes, isSmall)]);
  const forms = [["br", brotli] as const, ["gzip", gzipped] as const];
  const coded = forms.flatMap(([coding, form]) =>
    form.length < bytes.length * WORTH ? [[coding, new Blob([Uint8Array.from(form)])] as const] : [],
  );
  return { plain, coded: new Map(coded) };
}

async function brotliOf(bytes: Uint8Array, isSmall: boolean): Promise<Uint8Array> {
  const { brotliCompress, constants } = await import("node:zlib"); // a hub that serves no file saves its memory
  const quality = isSmall ? QUALITY.smallest : QUALITY.quick;
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  brotliCompress(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }, (error, form) =>
    error ? reject(error) : resolve(form),
  );
  return promise;
}

/** 3 % less than zlib's, in this thread: about 20 ms for 150 kB, once. */
const LIBDEFLATE = { library: "libdeflate", level: 11 } as const;

async function gzipOf(bytes: Uint8Array<ArrayBuffer>, isSmall: boolean): Promise<Uint8Array> {
  if (isSmall) return Bun.gzipSync(bytes, LIBDEFLATE);
  const { gzip } = await import("node:zlib");
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  gzip(bytes, { level: 9 }, (error, form) => (error ? reject(error) : resolve(form)));
  return promise;
}
