/**
 * Reads multipart/form-data (RFC 7578) with one file part, streaming that part into a sink.
 *
 * Invariant: at most one chunk of the body and the text fields are in memory: the next chunk is read only when the
 * parser and the sink have taken this one, and Bun then stops reading from the socket. If the reading fails or the
 * caller hangs up, the sink has been discarded before the error leaves here.
 * Must not: know what a file is for, trust a length or a name it is told, or read on after it has refused.
 *
 * Parts are taken apart by Dicer, the parser within busboy: busboy itself hides the headers that carry `filename*`.
 */
import { Dicer } from "@fastify/busboy";
import { safeMediaType } from "./download.ts";
import { Problem, invalidRequest, tooLarge } from "./problem.ts";

/** The part that goes to the sink. */
const FILE_FIELD = "file";
const NAMELESS = "file";
/** RFC 2046 5.1.1. */
const BOUNDARY = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/;
/** Room for one delimiter with its line breaks. */
const DELIMITER_MAX_BYTES = 80;
const HEADER_PAIRS_MAX = 32;
/** `; name=token` or `; name="quoted \" string"`, as in a Content-Disposition. */
const PARAMETER = /;[ \t]*([\w!#$&+.^`|~-]+\*?)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]*))/g;
/** Cannot be seen in a list, break a line of it, or turn its reading direction. */
const INVISIBLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** Where the file's bytes go. Both may be called again after they rejected; a BlobWriter fits. */
export interface UploadSink {
  /** A promise holds the upload back until it resolves. */
  write(chunk: Uint8Array): Promise<void> | void;
  /** Idempotent. */
  discard(): Promise<void>;
}

/** In bytes, except where the name says otherwise. */
export type UploadLimits = {
  readonly fileMaxBytes: number;
  /** The text fields to read, with the most bytes of each. Parts of other names are read over. */
  readonly textMaxBytes: Readonly<Record<string, number>>;
  /** All parts, whatever their names. */
  readonly partsMax: number;
  /** The headers of one part together. */
  readonly partHeadersMaxBytes: number;
  readonly fileNameMaxChars: number;
};

export type UploadOptions<Sink extends UploadSink> = {
  readonly limits: UploadLimits;
  /** Called once, when the file part begins. */
  readonly openSink: () => Promise<Sink>;
  /** Ends the reading when it aborts: with its reason if that is a Problem, else with 408. */
  readonly deadline: AbortSignal;
};

/** A whole upload. The sink has every byte; to finish or to discard it is now the caller's duty. */
export type Upload<Sink extends UploadSink> = {
  readonly file: UploadedFile & { readonly sink: Sink };
  /** The text fields that were sent, of those in `textMaxBytes`. */
  readonly texts: ReadonlyMap<string, string>;
  /** Lower-case hex, over the raw body byte for byte. */
  readonly bodySha256: string;
};

export type UploadedFile = {
  /** A base name without path, control characters or broken Unicode; never empty. For people, not for paths. */
  readonly filename: string;
  /** A safe media type. */
  readonly contentType: string;
  readonly sizeBytes: number;
};

/**
 * Reads the request's body. Rejects with a Problem: 415 not multipart/form-data; 400 with the path of what is wrong
 * (`file`, a text field, or "" for the body: boundary, truncated, too many parts); 413 over `fileMaxBytes`;
 * 408 or the deadline's own. What openSink or the sink throws comes through as it is.
 *
 * A Problem that leaves some of the body unread asks for `Connection: close`: without it Bun 1.4.5 reads on to the
 * body's end, however long; with it the answer goes out, then the connection closes.
 */
export async function readUpload<Sink extends UploadSink>(
  request: Request,
  options: UploadOptions<Sink>,
): Promise<Upload<Sink>> {
  const boundary = ask(() => boundaryOf(request.headers.get("content-type")));
  const bodyMaxBytes = uploadMaxBytes(options.limits);
  // Number(null) is 0 and a chunked body has no length: both are counted as they come.
  if (Number(request.headers.get("content-length")) > bodyMaxBytes) {
    throw closing(tooLarge(options.limits.fileMaxBytes));
  }
  if (request.body === null) throw invalid("", "the body is empty: send multipart/form-data");
  const form = new Form(boundary, options.limits);
  const intake = new Intake(request.body.getReader(), form, bodyMaxBytes, options.openSink);
  const unlisten = onFirstAbort([request.signal, options.deadline], () => intake.cancel());
  try {
    return await intake.readAll();
  } catch (error) {
    await intake.discard();
    if (options.deadline.aborted) throw closing(deadlineProblem(options.deadline.reason));
    throw error instanceof Problem && !intake.ended ? closing(error) : error;
  } finally {
    unlisten();
  }
}

/**
 * The last part of whatever path the uploader gave, for people to read: no separators, control or direction
 * characters, no lone surrogates, at most `maxChars` UTF-16 units; `file` if nothing is left.
 */
export function baseName(given: string, maxChars: number): string {
  const name = given
    .toWellFormed()
    .replace(INVISIBLE, "")
    .replace(/^.*[/\\]/s, "")
    .trim();
  // A cut through a surrogate pair would leave half a character.
  const cut = name
    .slice(0, maxChars)
    .replace(/[\ud800-\udbff]$/, "")
    .trim();
  return cut === "" || cut === "." || cut === ".." ? NAMELESS : cut;
}

type BodyReader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel">;

/** Moves the body through the form into the sink; the only part that waits. */
class Intake<Sink extends UploadSink> {
  readonly #reader: BodyReader;
  readonly #form: Form;
  readonly #maxBytes: number;
  readonly #openSink: () => Promise<Sink>;
  readonly #hash = new Bun.CryptoHasher("sha256");
  #cancelled = false;
  #sink: Sink | null = null;
  /** Whether the body has been read to its end. */
  ended = false;

  constructor(reader: BodyReader, form: Form, maxBytes: number, openSink: () => Promise<Sink>) {
    this.#reader = reader;
    this.#form = form;
    this.#maxBytes = maxBytes;
    this.#openSink = openSink;
  }

  async readAll(): Promise<Upload<Sink>> {
    let bytes = 0;
    for (let chunk = await this.#next(); chunk !== null; chunk = await this.#next()) {
      bytes += chunk.byteLength;
      if (bytes > this.#maxBytes) throw tooLarge(this.#form.limits.fileMaxBytes);
      this.#hash.update(chunk);
      await this.#form.take(chunk);
      await this.#drain();
    }
    await this.#form.end();
    await this.#drain();
    const { file, texts } = this.#form.result();
    const sink = this.#sink ?? (await this.#openSinkOnce());
    return { file: { ...file, sink }, texts, bodySha256: this.#hash.digest("hex") };
  }

  /** Makes a pending or later read end. The body's own error is of no use then. */
  cancel(): void {
    this.#cancelled = true;
    this.#reader.cancel().catch(() => {});
  }

  /** Stops reading and leaves nothing. A failing discard would hide why: what it leaves is swept at the next start. */
  async discard(): Promise<void> {
    this.cancel();
    await this.#sink?.discard().catch(() => {});
  }

  /** Null at the end of the body. */
  async #next(): Promise<Uint8Array | null> {
    // On hang-up the read rejects; after cancel() it says "done" as if the body were whole.
    const read = await this.#reader.read().catch(() => null);
    if (read === null || this.#cancelled) throw truncated();
    this.ended = read.done;
    return read.done ? null : read.value;
  }

  /** Gives the sink what the form has found of the file, one slice after the other. */
  async #drain(): Promise<void> {
    for (const slice of this.#form.takeFileBytes()) {
      const sink = this.#sink ?? (await this.#openSinkOnce());
      await sink.write(slice);
    }
    this.#form.throwIfRefused();
  }

  async #openSinkOnce(): Promise<Sink> {
    this.#sink = await this.#openSink();
    return this.#sink;
  }
}

type PartConsumer = (bytes: Uint8Array) => void;

/** The synchronous half: what the parts mean. Refusals are kept, not thrown, because Dicer calls from within. */
class Form {
  readonly limits: UploadLimits;
  readonly #dicer: Dicer;
  readonly #texts = new Map<string, Uint8Array[]>();
  readonly #ended: Promise<void>;
  readonly #partEnds: Promise<void>[] = [];
  #file: { filename: string; contentType: string; sizeBytes: number } | null = null;
  #fileBytes: Uint8Array[] = [];
  #parts = 0;
  #refusal: Problem | null = null;

  constructor(boundary: string, limits: UploadLimits) {
    this.limits = limits;
    const config = {
      boundary,
      maxHeaderPairs: HEADER_PAIRS_MAX,
      // What is over it is dropped in silence: one byte more shows that it was.
      maxHeaderSize: limits.partHeadersMaxBytes + 1,
      // Never full: Dicer 3.2.6 forgets to go on when the part that filled it ends in the same chunk. The brake is
      // that take() is called with one chunk, and again only after the sink has what was in it.
      partHwm: Number.MAX_SAFE_INTEGER,
    };
    this.#dicer = new Dicer(config);
    this.#dicer.on("part", (part) => this.#onPart(part));
    // Dicer says "finish" once or more after the closing delimiter, or "error" when end() comes before one.
    this.#ended = new Promise((resolve) => {
      this.#dicer.on("finish", () => resolve());
      this.#dicer.on("error", () => {
        this.#refuse(truncated());
        resolve();
      });
    });
  }

  /** Resolves when the parser wants more; throws the refusal if there is one. */
  async take(chunk: Uint8Array): Promise<void> {
    await new Promise<void>((resolve) => {
      try {
        this.#dicer.write(chunk, () => resolve());
      } catch {
        this.#refuse(truncated());
        resolve();
      }
    });
    this.throwIfRefused();
  }

  /** After the last chunk: resolves when every part has given what it had. Throws if the form is not closed. */
  async end(): Promise<void> {
    this.#dicer.end();
    await this.#ended;
    this.throwIfRefused();
    await Promise.all(this.#partEnds);
    this.throwIfRefused();
  }

  /** The file's bytes since the last call. */
  takeFileBytes(): readonly Uint8Array[] {
    const taken = this.#fileBytes;
    this.#fileBytes = [];
    return taken;
  }

  throwIfRefused(): void {
    if (this.#refusal) throw this.#refusal;
  }

  result(): { file: UploadedFile; texts: ReadonlyMap<string, string> } {
    if (this.#file === null) throw invalid(FILE_FIELD, `send the content as a part named ${FILE_FIELD}`);
    const texts = new Map<string, string>();
    for (const [name, chunks] of this.#texts) texts.set(name, decodeText(name, chunks));
    return { file: this.#file, texts };
  }

  #onPart(part: Dicer.PartStream): void {
    if (++this.#parts > this.limits.partsMax) {
      this.#refuse(invalid("", `send at most ${this.limits.partsMax} parts`));
    }
    let consume: PartConsumer | null = null;
    part.on("header", (header) => {
      if (this.#refusal) return;
      consume = this.#consumerFor(header);
      if (consume) this.#partEnds.push(new Promise((resolve) => part.on("end", () => resolve())));
    });
    // Without a "data" listener a part that nobody wants would hold the parser up for ever.
    part.on("data", (bytes: Buffer | string) => {
      if (typeof bytes !== "string" && !this.#refusal) consume?.(bytes);
    });
    part.on("error", () => {}); // truncated: the parser says it too
  }

  /** Who takes the part with these headers; null to read over it. */
  #consumerFor(header: object): PartConsumer | null {
    const disposition = headerValue(header, "content-disposition") ?? "";
    const parameters = parseParameters(disposition);
    const name = parameters.get("name");
    if (sizeOf(header) > this.limits.partHeadersMaxBytes) {
      return this.#refuse(
        invalid("", `send at most ${this.limits.partHeadersMaxBytes} bytes of headers in a part`),
      );
    }
    if (name === undefined || !/^form-data[ \t]*;/i.test(disposition)) {
      return this.#refuse(invalid("", "every part needs Content-Disposition: form-data with a name"));
    }
    if (name === FILE_FIELD) return this.#fileConsumer(header, parameters);
    const maxBytes = Object.hasOwn(this.limits.textMaxBytes, name)
      ? this.limits.textMaxBytes[name]
      : undefined;
    return maxBytes === undefined ? null : this.#textConsumer(name, maxBytes);
  }

  #fileConsumer(header: object, parameters: ReadonlyMap<string, string>): PartConsumer | null {
    if (this.#file) return this.#refuse(invalid(FILE_FIELD, `send only one part named ${FILE_FIELD}`));
    const given = decodeExtended(parameters.get("filename*")) ?? parameters.get("filename") ?? "";
    const file = {
      filename: baseName(given, this.limits.fileNameMaxChars),
      contentType: safeMediaType(headerValue(header, "content-type") ?? ""),
      sizeBytes: 0,
    };
    this.#file = file;
    return (bytes) => {
      file.sizeBytes += bytes.byteLength;
      if (file.sizeBytes > this.limits.fileMaxBytes) this.#refuse(tooLarge(this.limits.fileMaxBytes));
      else this.#fileBytes.push(bytes);
    };
  }

  #textConsumer(name: string, maxBytes: number): PartConsumer | null {
    if (this.#texts.has(name)) return this.#refuse(invalid(name, "send this field only once"));
    const chunks: Uint8Array[] = [];
    this.#texts.set(name, chunks);
    let sizeBytes = 0;
    return (bytes) => {
      sizeBytes += bytes.byteLength;
      if (sizeBytes > maxBytes) this.#refuse(invalid(name, `send at most ${maxBytes} bytes`));
      else chunks.push(bytes);
    };
  }

  /** The first refusal stands. Null, so that a caller can return it as "nobody takes this part". */
  #refuse(problem: Problem): null {
    this.#refusal ??= problem;
    return null;
  }
}

/** The most bytes a body within the limits can have; skipped parts have to fit in what the others leave. */
export function uploadMaxBytes(limits: UploadLimits): number {
  const texts = Object.values(limits.textMaxBytes).reduce((sum, max) => sum + max, 0);
  return (
    limits.fileMaxBytes + texts + (limits.partsMax + 1) * (limits.partHeadersMaxBytes + DELIMITER_MAX_BYTES)
  );
}

function boundaryOf(contentType: string | null): string {
  if (!/^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType ?? "")) {
    const detail = "Send the file as multipart/form-data, in a part named file.";
    throw new Problem(415, "unsupported_media_type", "Unsupported media type", detail);
  }
  const boundary = parseParameters(contentType ?? "").get("boundary") ?? "";
  if (BOUNDARY.test(boundary)) return boundary;
  throw invalid("", "the Content-Type needs a boundary of 1 to 70 characters");
}

/** Parameters of a header value by lower-case name, as UTF-8 text (RFC 7578 5.1); the first of a name counts. */
function parseParameters(value: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [, name = "", quoted, token = ""] of value.matchAll(PARAMETER)) {
    // Only \" and \\ are escapes: some browsers send C:\path\name in quotes as it is.
    const raw = quoted === undefined ? token : quoted.replace(/\\(["\\])/g, "$1");
    const key = name.toLowerCase();
    // Dicer gives header bytes as Latin-1.
    if (!found.has(key)) found.set(key, Buffer.from(raw, "latin1").toString("utf8"));
  }
  return found;
}

/** RFC 8187 `UTF-8''percent-encoded`; undefined if absent or not readable as that. */
function decodeExtended(value: string | undefined): string | undefined {
  const encoded = /^utf-8'[^']*'(.*)$/i.exec(value ?? "")?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

function decodeText(name: string, chunks: readonly Uint8Array[]): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw invalid(name, "send UTF-8 text");
  }
}

/** The first value of a part's header; Dicer's header object maps lower-case names to lists. */
function headerValue(header: object, name: string): string | undefined {
  const values: unknown = Reflect.get(header, name);
  const first: unknown = Array.isArray(values) ? values[0] : undefined;
  return typeof first === "string" ? first : undefined;
}

/** The bytes of a part's headers as sent: "name: value" and a line break each. */
function sizeOf(header: object): number {
  let bytes = 0;
  for (const [name, values] of Object.entries(header)) {
    for (const value of Array.isArray(values) ? values : []) bytes += `${name}: ${String(value)}\r\n`.length;
  }
  return bytes;
}

/** Calls `listener` when one of the signals aborts, at once if one has. Answers how to stop listening. */
function onFirstAbort(signals: readonly AbortSignal[], listener: () => void): () => void {
  for (const signal of signals) {
    if (signal.aborted) listener();
    signal.addEventListener("abort", listener);
  }
  return () => {
    for (const signal of signals) signal.removeEventListener("abort", listener);
  };
}

function invalid(path: string, message: string): Problem {
  return invalidRequest([{ path, message }]);
}

function truncated(): Problem {
  return invalid("", "the body ends before its closing boundary, or its parts cannot be told apart");
}

function deadlineProblem(reason: unknown): Problem {
  if (reason instanceof Problem) return reason;
  return new Problem(408, "request_timeout", "Request timeout", "The upload took too long. Send it again.");
}

/** The same Problem, asking for the connection to be closed after it. */
function closing(problem: Problem): Problem {
  const headers = { ...problem.extras.headers, Connection: "close" };
  return new Problem(problem.status, problem.code, problem.title, problem.message, {
    ...problem.extras,
    headers,
  });
}

/** Runs a check made before any of the body is read. */
function ask<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw error instanceof Problem ? closing(error) : error;
  }
}
