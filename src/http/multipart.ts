/**
 * Interprets the parts of a multipart/form-data body (RFC 7578), and refuses bodies over a limit; upload.ts moves the
 * bytes. Must not read from a socket or write to a sink.
 *
 * Dicer, the parser inside busboy, splits the body: busboy itself does not show the header that has `filename*`.
 */
import { Dicer } from "@fastify/busboy";
import { decodeUtf8 } from "../lib/utf8.ts";
import { safeMediaType } from "./download.ts";
import { type Problem, invalidRequest, tooLarge } from "./problem.ts";

const FILE_FIELD = "file";
const DEFAULT_FILE_NAME = "file";
const HEADER_PAIRS_MAX = 32;
/** `; name=token` or `; name="quoted \" string"`, as in a Content-Disposition. */
const PARAMETER = /;[ \t]*([\w!#$&+.^`|~-]+\*?)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]*))/g;
/** Invisible in a list, breaking its lines, or reversing its reading direction. */
const INVISIBLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

export type UploadLimits = {
  readonly fileMaxBytes: number;
  /** By the name of the field. Parts of other names are skipped. */
  readonly textMaxBytes: Readonly<Record<string, number>>;
  readonly partsMax: number;
  readonly partHeadersMaxBytes: number;
  readonly fileNameMaxChars: number;
};

export type UploadedFile = {
  /** Without control characters or broken Unicode; never empty. For display: never build a path from it. */
  readonly filename: string;
  readonly contentType: string;
  readonly sizeBytes: number;
};

/**
 * For display: no separators, control or direction characters and no lone surrogates, at most `maxChars` UTF-16 units;
 * `file` if nothing is left.
 */
export function baseName(sent: string, maxChars: number): string {
  const name = sent
    .toWellFormed()
    .replace(INVISIBLE, "")
    .replace(/^.*[/\\]/s, "")
    .trim();
  // The slice may have split a surrogate pair.
  const cut = name
    .slice(0, maxChars)
    .replace(/[\ud800-\udbff]$/, "")
    .trim();
  return cut === "" || cut === "." || cut === ".." ? DEFAULT_FILE_NAME : cut;
}

type PartConsumer = (bytes: Uint8Array) => void;

/** Dicer calls its listeners within write(): a refusal is stored and thrown later. */
export class MultipartForm {
  readonly limits: UploadLimits;
  readonly #dicer: Dicer;
  readonly #texts = new Map<string, Uint8Array[]>();
  readonly #ended: Promise<void>;
  readonly #partEnds: Promise<void>[] = [];
  readonly #skipped = new Set<string>();
  #file: { filename: string; contentType: string; sizeBytes: number } | null = null;
  #fileBytes: Uint8Array[] = [];
  #partCount = 0;
  /** The blank line that ends the headers has not come yet. */
  #isInHeader = false;
  #refusal: Problem | null = null;

  constructor(boundary: string, limits: UploadLimits) {
    this.limits = limits;
    const config = {
      boundary,
      maxHeaderPairs: HEADER_PAIRS_MAX,
      // Dicer silently drops header bytes over its limit: one byte more shows that there were too many.
      maxHeaderSize: limits.partHeadersMaxBytes + 1,
      // No backpressure inside Dicer: version 3.2.6 hangs when the part that fills its buffer ends in the same chunk.
      // The caller bounds the memory, chunk by chunk.
      partHwm: Number.MAX_SAFE_INTEGER,
    };
    this.#dicer = new Dicer(config);
    this.#dicer.on("part", (part) => this.#onPart(part));
    // Dicer emits "finish" once or more after the closing delimiter, or "error" when end() is called before it.
    this.#ended = new Promise((resolve) => {
      this.#dicer.on("finish", () => resolve());
      this.#dicer.on("error", () => {
        this.#refuse(truncated());
        resolve();
      });
    });
  }

  /** Resolves when the parser has consumed it; throws the refusal if there is one. */
  async write(chunk: Uint8Array): Promise<void> {
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

  /** Resolves when every part has ended; throws if the closing delimiter is missing. */
  async end(): Promise<void> {
    this.#dicer.end();
    await this.#ended;
    if (this.#isInHeader) this.#refuse(headless());
    this.throwIfRefused();
    await Promise.all(this.#partEnds);
    this.throwIfRefused();
  }

  /** Since the last call. */
  takeFileBytes(): readonly Uint8Array[] {
    const bytes = this.#fileBytes;
    this.#fileBytes = [];
    return bytes;
  }

  throwIfRefused(): void {
    if (this.#refusal) throw this.#refusal;
  }

  result(): { file: UploadedFile; texts: ReadonlyMap<string, string>; skipped: ReadonlySet<string> } {
    if (this.#file === null) throw invalid(FILE_FIELD, `send the content as a part named ${FILE_FIELD}`);
    const texts = new Map<string, string>();
    for (const [name, chunks] of this.#texts) texts.set(name, decodeText(name, chunks));
    return { file: this.#file, texts, skipped: this.#skipped };
  }

  #onPart(part: Dicer.PartStream): void {
    if (this.#isInHeader) this.#refuse(headless());
    if (++this.#partCount > this.limits.partsMax) {
      this.#refuse(invalid("", `send at most ${this.limits.partsMax} parts`));
    }
    if (this.#refusal) throw this.#refusal; // stops the parser: a chunk can hold a part for every four bytes
    this.#isInHeader = true;
    let consume: PartConsumer | null = null;
    part.on("header", (header) => {
      this.#isInHeader = false;
      if (this.#refusal) return;
      consume = this.#consumerFor(header);
      if (consume) this.#partEnds.push(new Promise((resolve) => part.on("end", () => resolve())));
    });
    // A skipped part needs a "data" listener too: without one the parser would wait for ever.
    part.on("data", (bytes: Buffer | string) => {
      if (typeof bytes !== "string" && !this.#refusal) consume?.(bytes);
    });
    part.on("error", () => {}); // the body is truncated: the parser emits "error" as well
  }

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
    if (maxBytes !== undefined) return this.#textConsumer(name, maxBytes);
    this.#skipped.add(name);
    return null;
  }

  #fileConsumer(header: object, parameters: ReadonlyMap<string, string>): PartConsumer | null {
    if (this.#file) return this.#refuse(invalid(FILE_FIELD, `send only one part named ${FILE_FIELD}`));
    const sent =
      decodeExtended(parameters.get("filename*")) ?? unescapeName(parameters.get("filename") ?? "");
    const file = {
      filename: baseName(sent, this.limits.fileNameMaxChars),
      contentType: safeMediaType(headerValue(header, "content-type") ?? ""),
      sizeBytes: 0,
    };
    this.#file = file;
    return (bytes) => {
      file.sizeBytes += bytes.byteLength;
      if (file.sizeBytes > this.limits.fileMaxBytes) this.#refuse(tooLarge(this.limits.fileMaxBytes, "file"));
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

  /** A consumer factory that returns null skips the part. */
  #refuse(problem: Problem): null {
    this.#refusal ??= problem;
    return null;
  }
}

/** By lower-case name, as UTF-8 text (RFC 7578 5.1); of several with one name, the first. */
export function parseParameters(value: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  for (const [, name = "", quoted, token = ""] of value.matchAll(PARAMETER)) {
    // Only \" and \\ are escapes: some browsers send C:\path\name without escaping it.
    const raw = quoted === undefined ? token : quoted.replace(/\\(["\\])/g, "$1");
    const key = name.toLowerCase();
    // Dicer decodes header bytes as Latin-1.
    if (!parameters.has(key)) parameters.set(key, Buffer.from(raw, "latin1").toString("utf8"));
  }
  return parameters;
}

/** Browsers escape these three characters, and no others (HTML standard, multipart/form-data). */
function unescapeName(name: string): string {
  return name.replace(/%(?:22|0D|0A)/g, decodeURIComponent);
}

/** RFC 8187 `UTF-8''percent-encoded`; undefined if absent or invalid. */
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
    return decodeUtf8(Buffer.concat(chunks));
  } catch {
    throw invalid(name, "send UTF-8 text");
  }
}

/** Dicer's header object maps lower-case names to lists. */
function headerValue(header: object, name: string): string | undefined {
  const values: unknown = Reflect.get(header, name);
  const first: unknown = Array.isArray(values) ? values[0] : undefined;
  return typeof first === "string" ? first : undefined;
}

/** As sent, in bytes: each is "name: value" and a line break. */
function sizeOf(header: object): number {
  let bytes = 0;
  for (const [name, values] of Object.entries(header)) {
    for (const value of Array.isArray(values) ? values : []) bytes += `${name}: ${String(value)}\r\n`.length;
  }
  return bytes;
}

/** `path`: the name of a part, or "" for the body. */
export function invalid(path: string, message: string): Problem {
  return invalidRequest([{ path, message }]);
}

/** Dicer drops a part without a blank line, and what it would have held. */
function headless(): Problem {
  return invalid("", "every part needs a blank line after its headers; use a boundary that no part contains");
}

export function truncated(): Problem {
  return invalid(
    "",
    "the body ends before its closing boundary, or the boundary does not separate its parts",
  );
}
