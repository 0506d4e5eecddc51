/**
 * What the parts of a multipart/form-data body mean (RFC 7578): which is the file, which are text, what is refused.
 *
 * Synchronous but for waiting on the parser; upload.ts moves the bytes. Must not: read from a socket or write to a sink.
 *
 * Parts are taken apart by Dicer, the parser within busboy: busboy itself hides the headers that carry `filename*`.
 */
import { Dicer } from "@fastify/busboy";
import { safeMediaType } from "./download.ts";
import { type Problem, invalidRequest, tooLarge } from "./problem.ts";

/** The part that goes to the sink. */
const FILE_FIELD = "file";
const NAMELESS = "file";
const HEADER_PAIRS_MAX = 32;
/** `; name=token` or `; name="quoted \" string"`, as in a Content-Disposition. */
const PARAMETER = /;[ \t]*([\w!#$&+.^`|~-]+\*?)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]*))/g;
/** Cannot be seen in a list, break a line of it, or turn its reading direction. */
const INVISIBLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

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

export type UploadedFile = {
  /** A base name without path, control characters or broken Unicode; never empty. For people, not for paths. */
  readonly filename: string;
  /** A safe media type. */
  readonly contentType: string;
  readonly sizeBytes: number;
};

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

type PartConsumer = (bytes: Uint8Array) => void;

/** The synchronous half: what the parts mean. Refusals are kept, not thrown, because Dicer calls from within. */
export class Form {
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
      throw this.#refusal; // out of the parser, which would go on to the chunk's end: a part for every four bytes
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

  /** The first refusal stands. Null, so that a caller can return it as "nobody takes this part". */
  #refuse(problem: Problem): null {
    this.#refusal ??= problem;
    return null;
  }
}

/** Parameters of a header value by lower-case name, as UTF-8 text (RFC 7578 5.1); the first of a name counts. */
export function parseParameters(value: string): ReadonlyMap<string, string> {
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

/** 400 for one part of the form, "" for the body. */
export function invalid(path: string, message: string): Problem {
  return invalidRequest([{ path, message }]);
}

/** 400: the body ends in the middle. */
export function truncated(): Problem {
  return invalid("", "the body ends before its closing boundary, or its parts cannot be told apart");
}
