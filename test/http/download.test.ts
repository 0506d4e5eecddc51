/** Downloads: range and conditional requests as tables, header injection, and every case over a raw socket. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type DownloadPlan,
  type Representation,
  contentDisposition,
  downloadResponse,
  planDownload,
  safeMediaType,
} from "../../src/http/download.ts";
import { Problem } from "../../src/http/problem.ts";

const FILE: Representation = {
  name: "digits.txt",
  sizeBytes: 10,
  sha256: "abc",
  contentType: "text/plain",
  modifiedAt: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
};
const DIGITS = "0123456789";
const WHOLE: DownloadPlan = { kind: "whole" };
const UNSATISFIABLE: DownloadPlan = { kind: "unsatisfiable" };
const NOT_MODIFIED: DownloadPlan = { kind: "not_modified" };

function range(start: number, endExclusive: number): DownloadPlan {
  return { kind: "range", start, endExclusive };
}

describe("planDownload", () => {
  const ranges: readonly [header: string, size: number, plan: DownloadPlan][] = [
    ["bytes=0-0", 10, range(0, 1)],
    ["bytes=2-4", 10, range(2, 5)],
    ["bytes=0-9", 10, range(0, 10)],
    ["bytes=0-", 10, range(0, 10)],
    ["bytes=9-", 10, range(9, 10)],
    ["bytes=5-1000", 10, range(5, 10)],
    [`bytes=5-${"9".repeat(400)}`, 10, range(5, 10)],
    ["bytes=-3", 10, range(7, 10)],
    ["bytes=-10", 10, range(0, 10)],
    ["bytes=-1000", 10, range(0, 10)],
    ["BYTES=2-4", 10, range(2, 5)],
    [" bytes=2-4 ", 10, range(2, 5)],
    ["bytes=10-", 10, UNSATISFIABLE],
    ["bytes=10-20", 10, UNSATISFIABLE],
    [`bytes=${"9".repeat(400)}-`, 10, UNSATISFIABLE],
    ["bytes=-0", 10, UNSATISFIABLE],
    ["bytes=0-", 0, UNSATISFIABLE],
    ["bytes=0-0", 0, UNSATISFIABLE],
    ["bytes=-5", 0, WHOLE],
    ["bytes=0-1,3-4", 10, WHOLE],
    ["bytes=2-4, bytes=5-6", 10, WHOLE],
    ["bytes=4-2", 10, WHOLE],
    ["bytes=-", 10, WHOLE],
    ["bytes=", 10, WHOLE],
    ["bytes=a-b", 10, WHOLE],
    ["bytes=1.5-2", 10, WHOLE],
    ["bytes=+1-2", 10, WHOLE],
    ["bytes=2", 10, WHOLE],
    ["items=0-1", 10, WHOLE],
    ["", 10, WHOLE],
  ];
  for (const [header, sizeBytes, plan] of ranges) {
    test(`Range ${JSON.stringify(header.slice(0, 40))} of ${sizeBytes} bytes`, () => {
      const headers = new Headers({ Range: header });
      expect(planDownload("GET", headers, { ...FILE, sizeBytes })).toEqual(plan);
      expect(planDownload("HEAD", headers, { ...FILE, sizeBytes })).toEqual(WHOLE);
    });
  }

  const conditions: readonly [headers: Record<string, string>, plan: DownloadPlan][] = [
    [{}, WHOLE],
    [{ "If-None-Match": '"abc"' }, NOT_MODIFIED],
    [{ "If-None-Match": 'W/"abc"' }, NOT_MODIFIED],
    [{ "If-None-Match": '"x", "abc" , "y"' }, NOT_MODIFIED],
    [{ "If-None-Match": "*" }, NOT_MODIFIED],
    [{ "If-None-Match": '"abc"', Range: "bytes=50-" }, NOT_MODIFIED],
    [{ "If-None-Match": '"abcd"' }, WHOLE],
    [{ "If-None-Match": "abc" }, WHOLE],
    [{ "If-None-Match": '"x"', Range: "bytes=2-4" }, range(2, 5)],
    [{ "If-Modified-Since": "Fri, 02 Jan 2026 03:04:05 GMT" }, NOT_MODIFIED],
    [{ "If-Modified-Since": "Friday, 02-Jan-26 03:04:05 GMT" }, NOT_MODIFIED],
    [{ "If-Modified-Since": "Fri Jan  2 03:04:05 2026" }, NOT_MODIFIED],
    [{ "If-Modified-Since": "Fri, 02 Jan 2026 03:04:05 GMT", Range: "bytes=2-4" }, NOT_MODIFIED],
    [{ "If-Modified-Since": "Fri, 02 Jan 2026 03:04:04 GMT" }, WHOLE],
    [{ "If-Modified-Since": "2027-01-02" }, WHOLE],
    [{ "If-Modified-Since": "Fri, 42 Jan 2027 03:04:05 GMT" }, WHOLE],
    [{ "If-Modified-Since": "Fri, 02 Jan 2026 03:04:05 GMT", "If-None-Match": '"x"' }, WHOLE],
    [{ "If-Range": '"abc"', Range: "bytes=2-4" }, range(2, 5)],
    [{ "If-Range": '"abc"', Range: "bytes=50-" }, UNSATISFIABLE],
    [{ "If-Range": '"x"', Range: "bytes=2-4" }, WHOLE],
    [{ "If-Range": '"x"', Range: "bytes=50-" }, WHOLE],
    [{ "If-Range": 'W/"abc"', Range: "bytes=2-4" }, WHOLE],
    [{ "If-Range": "Fri, 02 Jan 2026 03:04:05 GMT", Range: "bytes=2-4" }, WHOLE],
    [{ "If-Range": '"abc"' }, WHOLE],
  ];
  for (const [headers, plan] of conditions) {
    test(JSON.stringify(headers), () => {
      expect(planDownload("GET", new Headers(headers), FILE)).toEqual(plan);
    });
  }
});

describe("headers with the uploader's text", () => {
  const names: readonly [name: string, ascii: string, extended: string][] = [
    ["report.pdf", "report.pdf", "report.pdf"],
    ["two words.txt", "two words.txt", "two%20words.txt"],
    ["naïve 漢😀.txt", "na_ve __.txt", "na%C3%AFve%20%E6%BC%A2%F0%9F%98%80.txt"],
    ['a"; filename="evil.exe', "a_; filename=_evil.exe", "a%22%3B%20filename%3D%22evil.exe"],
    ["a\r\nSet-Cookie: x=1", "a__Set-Cookie: x=1", "a__Set-Cookie%3A%20x%3D1"],
    ["a%22b", "a_22b", "a%2522b"],
    ["back\\slash/slash", "back_slash_slash", "back_slash_slash"],
    ["it's (1)*!", "it's (1)*!", "it%27s%20%281%29%2A!"],
    ["\ud800", "_", "%EF%BF%BD"],
  ];
  for (const [name, ascii, extended] of names) {
    test(`Content-Disposition of ${JSON.stringify(name)}`, () => {
      expect(contentDisposition(name)).toBe(`attachment; filename="${ascii}"; filename*=UTF-8''${extended}`);
    });
  }

  const types: readonly [stored: string, sent: string | null][] = [
    ["image/png", "image/png"],
    [" image/png ", "image/png"],
    ["application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"],
    ["text/plain;charset=utf-8", "text/plain;charset=utf-8"],
    ['text/plain; charset="utf-8"; x=y', 'text/plain; charset="utf-8"; x=y'],
    ["", null],
    ["text", null],
    ["text/", null],
    ["*/*", null],
    ["text/html, image/png", null],
    ["text/plain\r\nX: y", null],
    ['text/plain; a="\r\n"', null],
    ['text/plain; a="b\\"c"', null],
    ["text/plain; é=1", null],
    [`text/plain; a=${"b".repeat(300)}`, null],
  ];
  for (const [stored, sent] of types) {
    test(`Content-Type of ${JSON.stringify(stored.slice(0, 40))}`, () => {
      expect(safeMediaType(stored)).toBe(sent ?? "application/octet-stream");
    });
  }
});

describe("over a socket", () => {
  let folder: string;
  let server: ReturnType<typeof Bun.serve>;

  /** The path selects the content: a file on disk, an empty file, a stream, or missing content. */
  function open(
    path: string,
  ): (start: number, end: number) => Promise<Blob | ReadableStream<Uint8Array> | null> {
    return async (start, end) => {
      if (path === "/missing") return null;
      const slice = Bun.file(join(folder, path === "/empty" ? "empty" : "digits")).slice(start, end);
      // Through bytes, or the stream would be known for a file again.
      return path === "/stream" ? new Blob([await slice.bytes()]).stream() : slice;
    };
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "luxhub-download-"));
    await Bun.write(join(folder, "digits"), DIGITS);
    await Bun.write(join(folder, "empty"), "");
    server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      development: false,
      async fetch(request) {
        const path = new URL(request.url).pathname;
        const file = path === "/empty" ? { ...FILE, sizeBytes: 0 } : FILE;
        try {
          return await downloadResponse(request, file, open(path), async (content) => content);
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          return Response.json(error, { status: error.status, headers: { ...error.extras.headers } });
        }
      },
    });
  });

  afterAll(async () => {
    await server.stop(true);
    await rm(folder, { recursive: true });
  });

  type Answer = { status: number; headers: ReadonlyMap<string, string>; body: string };

  /** Sends the request as it is written and reads to the end of the connection. A header sent twice fails. */
  async function ask(method: string, path: string, given: Record<string, string> = {}): Promise<Answer> {
    const socket = connect(server.port ?? 0, "127.0.0.1");
    let said = "";
    const closed = Promise.withResolvers<void>();
    socket.on("data", (bytes) => (said += bytes.toString("latin1")));
    socket.on("error", closed.reject);
    socket.on("close", () => closed.resolve());
    const lines = Object.entries({ Host: "hub", Connection: "close", ...given }).map(
      ([k, v]) => `${k}: ${v}\r\n`,
    );
    socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
    await closed.promise;
    const [top = "", ...rest] = said.split("\r\n\r\n");
    const [statusLine = "", ...headerLines] = top.split("\r\n");
    const headers = new Map<string, string>();
    for (const line of headerLines) {
      const colon = line.indexOf(":");
      const name = line.slice(0, colon).toLowerCase();
      expect(headers.has(name)).toBe(false);
      headers.set(name, line.slice(colon + 1).trim());
    }
    return { status: Number(statusLine.split(" ")[1]), headers, body: rest.join("\r\n\r\n") };
  }

  const cases: readonly [
    path: string,
    given: Record<string, string>,
    status: number,
    body: string,
    contentRange: string | undefined,
  ][] = [
    ["/file", {}, 200, DIGITS, undefined],
    ["/file", { Range: "bytes=2-4" }, 206, "234", "bytes 2-4/10"],
    ["/file", { Range: "bytes=0-2" }, 206, "012", "bytes 0-2/10"],
    ["/file", { Range: "bytes=0-" }, 206, DIGITS, "bytes 0-9/10"],
    ["/file", { Range: "bytes=-3" }, 206, "789", "bytes 7-9/10"],
    ["/file", { Range: "bytes=-99" }, 206, DIGITS, "bytes 0-9/10"],
    ["/file", { Range: "bytes=2-4", "If-Range": '"abc"' }, 206, "234", "bytes 2-4/10"],
    // Bun would serve the range in these, or answer 416 itself; a Content-Range, which means nothing here, prevents it.
    ["/file", { Range: "bytes=2-4", "If-Range": '"other"' }, 200, DIGITS, "bytes 0-9/10"],
    ["/file", { Range: "bytes=50-", "If-Range": '"other"' }, 200, DIGITS, "bytes 0-9/10"],
    [
      "/file",
      { Range: "bytes=2-4", "If-Range": "Fri, 02 Jan 2026 03:04:05 GMT" },
      200,
      DIGITS,
      "bytes 0-9/10",
    ],
    ["/file", { Range: "bytes=0-1,3-4" }, 200, DIGITS, "bytes 0-9/10"],
    ["/file", { Range: "bytes=nonsense" }, 200, DIGITS, "bytes 0-9/10"],
    ["/file", { "If-None-Match": '"other"' }, 200, DIGITS, undefined],
    ["/file", { "If-Modified-Since": "Fri, 02 Jan 2026 03:04:04 GMT" }, 200, DIGITS, undefined],
    ["/empty", {}, 200, "", undefined],
    ["/empty", { Range: "bytes=-5" }, 200, "", undefined],
    ["/stream", {}, 200, DIGITS, undefined],
    ["/stream", { Range: "bytes=2-4" }, 206, "234", "bytes 2-4/10"],
    ["/stream", { Range: "bytes=2-4", "If-Range": '"other"' }, 200, DIGITS, "bytes 0-9/10"],
  ];
  for (const [path, given, status, body, contentRange] of cases) {
    test(`GET ${path} ${JSON.stringify(given)}: ${status}`, async () => {
      const answer = await ask("GET", path, given);
      expect(answer.status).toBe(status);
      expect(answer.body).toBe(body);
      expect(answer.headers.get("content-length")).toBe(String(body.length));
      expect(answer.headers.get("content-range")).toBe(contentRange);
      expectDownloadHeaders(answer.headers);
    });

    test(`HEAD ${path} ${JSON.stringify(given)}: the head of the full file`, async () => {
      const answer = await ask("HEAD", path, given);
      expect(answer.status).toBe(200);
      expect(answer.body).toBe("");
      expect(answer.headers.get("content-length")).toBe(path === "/empty" ? "0" : "10");
      expect(answer.headers.has("content-range")).toBe(false);
      expectDownloadHeaders(answer.headers);
    });
  }

  function expectDownloadHeaders(headers: ReadonlyMap<string, string>): void {
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": "text/plain",
      "content-disposition": "attachment; filename=\"digits.txt\"; filename*=UTF-8''digits.txt",
      "content-security-policy": "default-src 'none'; sandbox",
      "x-content-type-options": "nosniff",
      "cache-control": "private, no-cache",
      "last-modified": "Fri, 02 Jan 2026 03:04:05 GMT",
      "accept-ranges": "bytes",
      etag: '"abc"',
    });
    expect(headers.has("transfer-encoding")).toBe(false);
  }

  for (const method of ["GET", "HEAD"]) {
    test(`${method} of an unchanged file: 304 without a body`, async () => {
      for (const condition of [
        { "If-None-Match": 'W/"abc"' },
        { "If-Modified-Since": "Fri, 02 Jan 2026 03:04:05 GMT" },
      ]) {
        const answer = await ask(method, "/file", { ...condition, Range: "bytes=2-4" });
        expect([answer.status, answer.body]).toEqual([304, ""]);
        expect(answer.headers.get("etag")).toBe('"abc"');
        expect(answer.headers.has("content-disposition")).toBe(false);
      }
    });
  }

  for (const [path, header, size] of [
    ["/file", "bytes=10-", 10],
    ["/file", "bytes=50-60", 10],
    ["/file", "bytes=-0", 10],
    ["/empty", "bytes=0-", 0],
  ] as const) {
    test(`GET ${path} ${header}: the hub's problem, not Bun's bare 416`, async () => {
      const answer = await ask("GET", path, { Range: header });
      expect(answer.status).toBe(416);
      expect(answer.headers.get("content-range")).toBe(`bytes */${size}`);
      expect(JSON.parse(answer.body)).toMatchObject({ error: "range_not_satisfiable" });
    });
  }

  for (const method of ["GET", "HEAD"]) {
    test(`${method} of missing content: 500, not an empty 200`, async () => {
      expect((await ask(method, "/missing")).status).toBe(500);
    });
  }
});
