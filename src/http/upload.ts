/**
 * Streams a multipart/form-data upload (RFC 7578) with one file part into a sink, with backpressure.
 *
 * Invariant: memory holds at most one chunk of the body, and the text fields: the next chunk is read only when the
 * parser and the sink have taken this one. When reading fails or the client hangs up, the sink is discarded before the
 * error is thrown. Must not: know what a file is for, trust the length or the name that the client sends, or read on
 * after a refusal.
 */
import {
  MultipartForm,
  type UploadLimits,
  type UploadedFile,
  invalid,
  parseParameters,
  truncated,
} from "./multipart.ts";
import { type BodyReader, lingerOverRest } from "./lingering-close.ts";
import { Problem, closing, tooLarge } from "./problem.ts";

/** RFC 2046 5.1.1. */
const BOUNDARY = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/;
/** A delimiter with its line breaks. */
const DELIMITER_MAX_BYTES = 80;

/** For example a BlobWriter. Both methods may be called again after they have rejected. */
export interface UploadSink {
  /** When it returns a promise, the upload waits. */
  write(chunk: Uint8Array): Promise<void> | void;
  discard(): Promise<void>;
}

export type UploadOptions<Sink extends UploadSink> = {
  readonly limits: UploadLimits;
  /** Called once, when the file part begins. */
  readonly openSink: () => Promise<Sink>;
  /** Ends the upload with its reason if that is a Problem, else with a 408. */
  readonly deadline: AbortSignal;
};

/** The sink has every byte; the caller must finish or discard it. */
export type Upload<Sink extends UploadSink> = {
  readonly file: UploadedFile & {
    readonly sink: Sink;
    readonly sha256: string;
  };
  readonly texts: ReadonlyMap<string, string>;
  readonly skipped: ReadonlySet<string>;
};

/**
 * Rejects with a Problem: 415 if it is not multipart/form-data; 400 with the path of the fault (`file`, a text field,
 * or "" for the body: boundary, truncated, too many parts); 413 over `fileMaxBytes`; 408 or the deadline's own. Rethrows
 * what openSink or the sink throws.
 *
 * A Problem that leaves a part of the body unread has `Connection: close`: without it Bun 1.4.5 reads the body to its
 * end, however long; with it Bun sends the answer and closes the connection.
 */
export async function readUpload<Sink extends UploadSink>(
  request: Request,
  options: UploadOptions<Sink>,
): Promise<Upload<Sink>> {
  const boundary = closingOnRefusal(() => boundaryOf(request.headers.get("content-type")));
  const bodyMaxBytes = uploadMaxBytes(options.limits);
  // A chunked body has no length, and Number(null) is 0: readAll() counts its bytes.
  if (Number(request.headers.get("content-length")) > bodyMaxBytes) {
    throw closing(tooLarge(options.limits.fileMaxBytes, "file"));
  }
  if (request.body === null) throw invalid("", "the body is empty: send multipart/form-data");
  const form = new MultipartForm(boundary, options.limits);
  const transfer = new Transfer(request.body.getReader(), form, bodyMaxBytes, options.openSink);
  const unlisten = onFirstAbort([request.signal, options.deadline], () => transfer.cancel());
  try {
    return await transfer.readAll();
  } catch (error) {
    await transfer.discard(error instanceof Problem);
    if (options.deadline.aborted) throw closing(deadlineProblem(options.deadline.reason));
    throw error instanceof Problem && !transfer.ended ? closing(error) : error;
  } finally {
    unlisten();
  }
}

class Transfer<Sink extends UploadSink> {
  readonly #reader: BodyReader;
  readonly #form: MultipartForm;
  readonly #maxBytes: number;
  readonly #openSink: () => Promise<Sink>;
  readonly #hash = new Bun.CryptoHasher("sha256");
  #cancelled = false;
  #sink: Sink | null = null;
  ended = false;

  constructor(reader: BodyReader, form: MultipartForm, maxBytes: number, openSink: () => Promise<Sink>) {
    this.#reader = reader;
    this.#form = form;
    this.#maxBytes = maxBytes;
    this.#openSink = openSink;
  }

  async readAll(): Promise<Upload<Sink>> {
    let bytes = 0;
    for (let chunk = await this.#next(); chunk !== null; chunk = await this.#next()) {
      bytes += chunk.byteLength;
      if (bytes > this.#maxBytes) throw tooLarge(this.#form.limits.fileMaxBytes, "file");
      await this.#form.write(chunk);
      await this.#flushToSink();
    }
    await this.#form.end();
    await this.#flushToSink();
    // One event-loop tick later, if the connection is still open: see readChunked in json-body.ts.
    await new Promise(setImmediate);
    if (this.#cancelled) throw truncated();
    const { file, texts, skipped } = this.#form.result();
    const sink = this.#sink ?? (await this.#openSinkOnce());
    return { file: { ...file, sink, sha256: this.#hash.digest("hex") }, texts, skipped };
  }

  cancel(): void {
    this.#cancelled = true;
    this.#reader.cancel().catch(() => {}); // rejects with an error of the body, which no longer matters
  }

  /**
   * An error of the discard would hide the first error; the next start of the hub sweeps the remains. `lingering`: the
   * client gets an answer, and may still be sending (lingering close).
   */
  async discard(lingering: boolean): Promise<void> {
    await this.#sink?.discard().catch(() => {});
    if (lingering && !this.ended && !this.#cancelled) await lingerOverRest(this.#reader);
    this.cancel();
  }

  /** Null at the end of the body. */
  async #next(): Promise<Uint8Array | null> {
    // After a hang-up the read rejects; after cancel() it reports "done", as for a complete body.
    const read = await this.#reader.read().catch(() => null);
    if (read === null || this.#cancelled) throw truncated();
    this.ended = read.done;
    return read.done ? null : read.value;
  }

  async #flushToSink(): Promise<void> {
    for (const slice of this.#form.takeFileBytes()) {
      const sink = this.#sink ?? (await this.#openSinkOnce());
      this.#hash.update(slice);
      await sink.write(slice);
    }
    this.#form.throwIfRefused();
  }

  async #openSinkOnce(): Promise<Sink> {
    this.#sink = await this.#openSink();
    return this.#sink;
  }
}

/** Skipped parts share this size with the others. */
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

/** At once if one has already. Returns the function that unsubscribes. */
function onFirstAbort(signals: readonly AbortSignal[], listener: () => void): () => void {
  for (const signal of signals) {
    if (signal.aborted) listener();
    signal.addEventListener("abort", listener);
  }
  return () => {
    for (const signal of signals) signal.removeEventListener("abort", listener);
  };
}

function deadlineProblem(reason: unknown): Problem {
  if (reason instanceof Problem) return reason;
  return new Problem(408, "request_timeout", "Request timeout", "The upload took too long. Send it again.");
}

/** Runs before the body is read, so that a refusal closes the connection. */
function closingOnRefusal<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw error instanceof Problem ? closing(error) : error;
  }
}
