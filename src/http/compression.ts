/**
 * Content coding of responses: zstd, or gzip for clients that do not know it, at the lowest level.
 *
 * A short text takes at most some 300 µs, at once. The thread pool of node:zlib compresses a stream piece by piece, as
 * the client reads. (A CompressionStream of Bun 1.4.5 would do it in this thread.)
 */
import type { Transform } from "node:stream";

export type Coding = "zstd" | "gzip";

/** Of a shorter body the header and the work outweigh the gain. */
export const COMPRESSED_MIN_CHARS = 1_024;

const LEVEL = 1;

/** `gzip;q=0.8` */
const WEIGHTED = /^\s*([a-z*-]+)\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*)?$/i;

/** Accept-Encoding, RFC 9110 12.5.3; null: none. */
export function codingFor<C extends string>(accepted: string | null, codings: readonly C[]): C | null {
  if (accepted === null) return null;
  const weights = new Map<string, number>();
  for (const part of accepted.split(",")) {
    const [, name, weight] = WEIGHTED.exec(part) ?? [];
    if (name !== undefined) weights.set(name.toLowerCase(), Number(weight ?? 1));
  }
  return codings.find((coding) => (weights.get(coding) ?? weights.get("*") ?? 0) > 0) ?? null;
}

/** The best first. */
export const CODINGS: readonly Coding[] = ["zstd", "gzip"];

export function compressText(text: string, coding: Coding): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.from(text);
  if (coding === "gzip") return Bun.gzipSync(bytes, { level: LEVEL });
  return new Uint8Array(Bun.zstdCompressSync(bytes, { level: LEVEL }));
}

export function compressStream(body: ReadableStream<Uint8Array>, coding: Coding): ReadableStream<Uint8Array> {
  return new ReadableStream(new CompressedBody(body, coding), { highWaterMark: 0 });
}

/** Reads the body only as the client reads the result. */
class CompressedBody {
  readonly #next: () => Promise<Uint8Array | null>;
  readonly #close: () => Promise<void>;
  readonly #coding: Coding;
  #compressor: Transform | null = null;
  /** Compressed, and not yet taken by the client. */
  #made: Uint8Array[] = [];

  constructor(body: ReadableStream<Uint8Array>, coding: Coding) {
    const reader = body.getReader();
    this.#next = async () => (await reader.read()).value ?? null;
    this.#close = () => reader.cancel();
    this.#coding = coding;
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const compressor = (this.#compressor ??= await this.#open());
    for (;;) {
      const piece = await this.#next();
      await new Promise<void>((resolve, reject) => {
        compressor.once("error", reject);
        const end = (error?: Error | null): void => {
          compressor.off("error", reject);
          if (error) reject(error);
          else resolve();
        };
        if (piece !== null) {
          compressor.write(piece, end);
          return;
        }
        compressor.once("end", () => end());
        compressor.end();
      });
      const made = this.#made;
      this.#made = [];
      if (made.length > 0) controller.enqueue(Buffer.concat(made));
      if (piece === null) controller.close();
      if (piece === null || made.length > 0) return;
    }
  }

  async cancel(): Promise<void> {
    this.#compressor?.destroy();
    await this.#close();
  }

  /** Loads node:zlib on demand, for its memory. */
  async #open(): Promise<Transform> {
    const zlib = await import("node:zlib");
    const { ZSTD_c_compressionLevel } = zlib.constants;
    const compressor =
      this.#coding === "zstd"
        ? zlib.createZstdCompress({ params: { [ZSTD_c_compressionLevel]: LEVEL } })
        : zlib.createGzip({ level: LEVEL });
    compressor.on("data", (chunk: Uint8Array) => this.#made.push(chunk));
    return compressor;
  }
}
