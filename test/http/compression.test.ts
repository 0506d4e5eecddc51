/** Content codings: which one a client gets, and that a body comes back as it was, in bounded memory and turns. */
import { expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { CODINGS, codingFor, compressStream, compressText } from "../../src/http/compression.ts";

const cases: readonly (readonly [accepted: string | null, coding: string | null])[] = [
  [null, null],
  ["", null],
  ["identity", null],
  ["br", null],
  ["gzip", "gzip"],
  ["GZIP;q=0.5", "gzip"],
  ["gzip, deflate, br, zstd", "zstd"],
  ["gzip;q=1.0, zstd;q=0", "gzip"],
  ["gzip;q=0, *", "zstd"],
  ["*;q=0", null],
  ["gzip;q=0.000", null],
  ["gzip;;q=1", null],
];
for (const [accepted, coding] of cases)
  test(`Accept-Encoding ${accepted ?? "left out"}: ${coding ?? "none"}`, () => {
    expect<string | null>(codingFor(accepted, CODINGS)).toBe(coding);
  });

const TEXT = Array.from({ length: 30_000 }, (_, i) => `{"n":${i * 7_919},"ä":"${i % 7}"}`).join();
const inflate = (coding: string, bytes: Uint8Array): string =>
  Buffer.from(coding === "gzip" ? gunzipSync(bytes) : Bun.zstdDecompressSync(bytes)).toString();

for (const coding of CODINGS) {
  test(`${coding}: a text comes back`, () => {
    const made = compressText(TEXT, coding);
    expect(made.length).toBeLessThan(TEXT.length / 2);
    expect(inflate(coding, made)).toBe(TEXT);
  });

  test(`${coding}: a stream comes back, is read as it is asked for, and lets timers run`, async () => {
    const bytes = Buffer.from(TEXT);
    let read = 0;
    const source = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (read >= bytes.length) return controller.close();
          controller.enqueue(bytes.subarray(read, read + 50_000));
          read += 50_000;
        },
      },
      { highWaterMark: 0 },
    );
    const reader = compressStream(source, coding).getReader();
    let ticks = 0;
    const timer = setInterval(() => ticks++, 0);
    const parts: Uint8Array[] = [];
    for (;;) {
      const before = read;
      const { value } = await reader.read();
      if (value === undefined) break;
      parts.push(value);
      if (parts.length === 1) expect(before).toBe(0);
    }
    clearInterval(timer);
    expect(inflate(coding, Buffer.concat(parts))).toBe(TEXT);
    expect(ticks).toBeGreaterThan(0);
  });

  test(`${coding}: an empty stream is an empty body`, async () => {
    const empty = new ReadableStream<Uint8Array>({ pull: (controller) => controller.close() });
    const made = await new Response(compressStream(empty, coding)).bytes();
    expect(inflate(coding, made)).toBe("");
  });

  test(`${coding}: who hangs up cancels the source, an error of the source is an error`, async () => {
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => controller.enqueue(crypto.getRandomValues(new Uint8Array(60_000))),
        cancel: () => void (cancelled = true),
      },
      { highWaterMark: 0 },
    );
    const reader = compressStream(endless, coding).getReader();
    await reader.read();
    await reader.cancel();
    expect(cancelled).toBe(true);
    const failing = new ReadableStream<Uint8Array>({
      pull: () => {
        throw new Error("gone");
      },
    });
    await expect(new Response(compressStream(failing, coding)).bytes()).rejects.toThrow("gone");
  });
}
