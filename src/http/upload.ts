/**
 * Reads multipart/form-data (RFC 7578) with one file part, streaming that part into a sink.
 *
 * Invariant: at most one chunk of the body and the text fields are in memory: the next chunk is read only when the
 * parser and the sink have taken this one, and Bun then stops reading from the socket. If the reading fails or the
 * caller hangs up, the sink has been discarded before the error leaves here.
 * Must not: know what a file is for, trust a length or a name it is told, or read on after it has refused.
 */
import { Form, type UploadLimits, type UploadedFile, invalid, parseParameters, truncated } from "./form.ts";
import { linger } from "./linger.ts";
import { Problem, closing, tooLarge } from "./problem.ts";

/** RFC 2046 5.1.1. */
const BOUNDARY = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/;
/** Room for one delimiter with its line breaks. */
const DELIMITER_MAX_BYTES = 80;

/** Where the file's bytes go. Both may be called again after they rejected; a BlobWriter fits. */
export interface UploadSink {
  /** A promise holds the upload back until it resolves. */
  write(chunk: Uint8Array): Promise<void> | void;
  /** Idempotent. */
  discard(): Promise<void>;
}

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
    throw closing(tooLarge(options.limits.fileMaxBytes, "file"));
  }
  if (request.body === null) throw invalid("", "the body is empty: send multipart/form-data");
  const form = new Form(boundary, options.limits);
  const intake = new Intake(request.body.getReader(), form, bodyMaxBytes, options.openSink);
  const unlisten = onFirstAbort([request.signal, options.deadline], () => intake.cancel());
  try {
    return await intake.readAll();
  } catch (error) {
    await intake.discard(error instanceof Problem);
    if (options.deadline.aborted) throw closing(deadlineProblem(options.deadline.reason));
    throw error instanceof Problem && !intake.ended ? closing(error) : error;
  } finally {
    unlisten();
  }
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
      if (bytes > this.#maxBytes) throw tooLarge(this.#form.limits.fileMaxBytes, "file");
      this.#hash.update(chunk);
      await this.#form.take(chunk);
      await this.#drain();
    }
    await this.#form.end();
    await this.#drain();
    // A turn later, if the connection still stands: see readChunked in body.ts.
    await new Promise(setImmediate);
    if (this.#cancelled) throw truncated();
    const { file, texts } = this.#form.result();
    const sink = this.#sink ?? (await this.#openSinkOnce());
    return { file: { ...file, sink }, texts, bodySha256: this.#hash.digest("hex") };
  }

  /** Makes a pending or later read end. The body's own error is of no use then. */
  cancel(): void {
    this.#cancelled = true;
    this.#reader.cancel().catch(() => {});
  }

  /**
   * Stops reading and leaves nothing. A failing discard would hide why: what it leaves is swept at the next start.
   * `hears`: the caller, who still sends, is to get an answer.
   */
  async discard(hears: boolean): Promise<void> {
    await this.#sink?.discard().catch(() => {});
    if (hears && !this.ended && !this.#cancelled) await linger(this.#reader);
    this.cancel();
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

function deadlineProblem(reason: unknown): Problem {
  if (reason instanceof Problem) return reason;
  return new Problem(408, "request_timeout", "Request timeout", "The upload took too long. Send it again.");
}

/** Runs a check made before any of the body is read. */
function ask<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw error instanceof Problem ? closing(error) : error;
  }
}
