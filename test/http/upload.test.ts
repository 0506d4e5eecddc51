/** Multipart uploads: accepted and refused bodies (tables), raw sockets and lingering close, and bounded memory. */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Problem } from "../../src/http/problem.ts";
import { MultipartForm, type UploadLimits, baseName } from "../../src/http/multipart.ts";
import {
  type Upload,
  type UploadOptions,
  type UploadSink,
  readUpload,
  uploadMaxBytes,
} from "../../src/http/upload.ts";

const MIB = 1024 * 1024;
const LIMITS: UploadLimits = {
  fileMaxBytes: 1000,
  textMaxBytes: { metadata: 50 },
  partsMax: 4,
  partHeadersMaxBytes: 300,
  fileNameMaxChars: 20,
};

test("nothing after the part above the limit is parsed", async () => {
  let seen = 0;
  const limits = {
    ...LIMITS,
    get partsMax() {
      seen++; // read once for each part
      return LIMITS.partsMax;
    },
  };
  const many = Buffer.from('--b\r\nContent-Disposition: form-data; name="q"\r\n\r\n\r\n'.repeat(100_000));
  await expect(new MultipartForm("b", limits).write(many)).rejects.toThrow("at most 4 parts");
  expect(seen).toBeLessThan(10);
});

/** Keeps the bytes in memory, and counts the discards. */
class MemorySink implements UploadSink {
  bytes = Buffer.alloc(0);
  discards = 0;

  write(chunk: Uint8Array): void {
    this.bytes = Buffer.concat([this.bytes, chunk]);
  }

  async discard(): Promise<void> {
    this.discards++;
  }
}

type Part = { readonly headers: readonly string[]; readonly body: string };

function filePart(body: string, disposition = 'name="file"; filename="a.txt"', ...more: string[]): Part {
  return { headers: [`Content-Disposition: form-data; ${disposition}`, ...more], body };
}

function textPart(name: string, body: string): Part {
  return { headers: [`Content-Disposition: form-data; name="${name}"`], body };
}

function form(...parts: readonly Part[]): string {
  const encoded = parts.map(({ headers, body }) => `--b\r\n${headers.join("\r\n")}\r\n\r\n${body}\r\n`);
  return `${encoded.join("")}--b--\r\n`;
}

/** `body` in Latin-1 (a character is a byte), arriving in chunks of `chunkBytes`. */
function post(body: string, chunkBytes = 1 << 20, contentType = "multipart/form-data; boundary=b"): Request {
  const bytes = Buffer.from(body, "latin1");
  let at = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + chunkBytes)));
      at += chunkBytes;
    },
  });
  return new Request("http://hub/", {
    method: "POST",
    body: stream,
    headers: { "Content-Type": contentType },
  });
}

function options(sink: MemorySink, limits: UploadLimits = LIMITS): UploadOptions<MemorySink> {
  return { limits, openSink: async () => sink, deadline: new AbortController().signal };
}

/** The Problem a promise rejects with; anything else fails the test. */
async function problemOf(promise: Promise<unknown>): Promise<Problem> {
  const error: unknown = await promise.then(
    () => null,
    (e: unknown) => e,
  );
  if (error instanceof Problem) return error;
  throw new Error(`expected a Problem, got ${String(error)}`);
}

/** Bytes of UTF-8, as the Latin-1 characters that post() sends. */
function utf8(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

describe("accepted bodies", () => {
  const rows: readonly [name: string, body: string, file: string, metadata: string | undefined][] = [
    ["a file and metadata", form(filePart("hello"), textPart("metadata", "{}")), "hello", "{}"],
    ["metadata first", form(textPart("metadata", "{}"), filePart("hello")), "hello", "{}"],
    ["a file alone", form(filePart("hello")), "hello", undefined],
    ["an empty file", form(filePart("")), "", undefined],
    ["empty metadata", form(filePart("x"), textPart("metadata", "")), "x", ""],
    ["UTF-8 metadata", form(filePart("x"), textPart("metadata", utf8("é漢"))), "x", "é漢"],
    [
      "metadata as a blob",
      form(filePart("x"), filePart("{}", 'name="metadata"; filename="blob"')),
      "x",
      "{}",
    ],
    [
      "a file of every limit",
      form(filePart("y".repeat(1000)), textPart("metadata", "m".repeat(50))),
      "y".repeat(1000),
      "m".repeat(50),
    ],
    [
      "near-delimiters in the file",
      form(filePart("\r\n--\r\n--a\r\n-b\r--b\n--b")),
      "\r\n--\r\n--a\r\n-b\r--b\n--b",
      undefined,
    ],
    ["a file without a name", form(filePart("x", 'name="file"')), "x", undefined],
    [
      "parts of other names",
      form(textPart("q", "1"), filePart("no", 'name="other"; filename="o"'), filePart("yes")),
      "yes",
      undefined,
    ],
    [
      "names of Object's own",
      form(textPart("constructor", "1"), textPart("__proto__", "2"), filePart("x")),
      "x",
      undefined,
    ],
    [
      "a preamble and an epilogue",
      `preamble\r\n${form(filePart("x"))}epilogue\r\n--b\r\n--b`,
      "x",
      undefined,
    ],
    ["no line break at the end", form(filePart("x")).slice(0, -2), "x", undefined],
    [
      "any case in header names",
      "--b\r\nCONTENT-disposition:Form-Data ; NAME=file ; Filename=a\r\n\r\nx\r\n--b--",
      "x",
      undefined,
    ],
  ];
  for (const [name, body, file, metadata] of rows) {
    for (const chunkBytes of [1, 7, 1 << 20]) {
      test(`${name}, in chunks of ${chunkBytes}`, async () => {
        const sink = new MemorySink();
        const upload = await readUpload(post(body, chunkBytes), options(sink));
        expect(sink.bytes.toString("latin1")).toBe(file);
        expect(upload.file.sizeBytes).toBe(file.length);
        expect(upload.file.sink).toBe(sink);
        expect(upload.texts.get("metadata")).toBe(metadata);
        expect([...upload.texts.keys()].filter((key) => key !== "metadata")).toEqual([]);
        expect(upload.file.sha256).toBe(Bun.SHA256.hash(Buffer.from(file, "latin1"), "hex"));
        expect(sink.discards).toBe(0);
      });
    }
  }

  const big = "z".repeat(200_000);
  for (const chunkBytes of [1000, 65_536, 1 << 20]) {
    test(`a file larger than every buffer, in chunks of ${chunkBytes}`, async () => {
      const sink = new MemorySink();
      await readUpload(
        post(form(filePart(big)), chunkBytes),
        options(sink, { ...LIMITS, fileMaxBytes: MIB }),
      );
      expect(sink.bytes.toString("latin1")).toBe(big);
    });
  }
});

describe("the name and type of the file", () => {
  const names: readonly [disposition: string, name: string][] = [
    ['filename="report.pdf"', "report.pdf"],
    ["filename=report.pdf", "report.pdf"],
    ['filename="../../etc/passwd"', "passwd"],
    [String.raw`filename="C:\dir\x.txt"`, "x.txt"],
    [String.raw`filename="say \"hi\".txt"`, 'say "hi".txt'],
    ['filename="a;b.txt"', "a;b.txt"],
    ['filename="say %22hi%22%0D%0A.txt"', 'say "hi".txt'],
    ['filename="50%20 %2F%0a"', "50%20 %2F%0a"],
    ['filename=""', "file"],
    ['filename="dir/"', "file"],
    ['filename=".."', "file"],
    ['filename="a\u0000\tb"', "ab"],
    [`filename="${utf8("naïve 漢.txt")}"`, "naïve 漢.txt"],
    ["filename=\"plain\"; filename*=UTF-8''na%C3%AFve%20%E6%BC%A2", "naïve 漢"],
    ["filename*=utf-8'en'%2Fetc%2Fpasswd; filename=plain", "passwd"],
    ["filename=\"plain\"; filename*=UTF-8''%ff%zz", "plain"],
    ["filename=\"plain\"; filename*=latin1''%e9", "plain"],
    ['filename="first"; filename="second"', "first"],
    ['filename="bad \xff byte"', "bad \ufffd byte"],
    [`filename="${"n".repeat(30)}"`, "n".repeat(20)],
    ["", "file"],
  ];
  for (const [disposition, name] of names) {
    test(`${JSON.stringify(disposition)} is called ${JSON.stringify(name)}`, async () => {
      const body = form(filePart("x", `name="file"; ${disposition}`));
      const { file } = await readUpload(post(body), options(new MemorySink()));
      expect(file.filename).toBe(name);
    });
  }

  test("baseName: characters that a header cannot contain", () => {
    expect(baseName("\ud800.txt", 255)).toBe("\ufffd.txt");
    expect(baseName("a\u202egnp.exe", 255)).toBe("agnp.exe");
    expect(baseName("two\r\nlines\u2028", 255)).toBe("twolines");
    expect(baseName(`${"x".repeat(254)}😀`, 255)).toBe("x".repeat(254));
    expect(baseName("   ", 255)).toBe("file");
  });

  const types: readonly [header: string[], type: string][] = [
    [["Content-Type: image/png"], "image/png"],
    [['Content-Type: text/plain; charset="utf-8"'], 'text/plain; charset="utf-8"'],
    [["Content-Type: not a type"], "application/octet-stream"],
    [[], "application/octet-stream"],
  ];
  for (const [header, type] of types) {
    test(`${header[0] ?? "no Content-Type"} is ${type}`, async () => {
      const { file } = await readUpload(
        post(form(filePart("x", 'name="file"', ...header))),
        options(new MemorySink()),
      );
      expect(file.contentType).toBe(type);
    });
  }
});

describe("refused bodies", () => {
  const file = filePart("hello");
  const rows: readonly [name: string, body: string, status: number, path: string | undefined][] = [
    ["no file", form(textPart("metadata", "{}")), 400, "file"],
    ["no part at all", "--b--\r\n", 400, "file"],
    ["two files", form(file, file), 400, "file"],
    [
      "a field sent twice",
      form(file, textPart("metadata", "{}"), textPart("metadata", "{}")),
      400,
      "metadata",
    ],
    ["a field over its limit", form(file, textPart("metadata", "m".repeat(51))), 400, "metadata"],
    ["a field that is no UTF-8", form(file, textPart("metadata", "\xff")), 400, "metadata"],
    ["a file over its limit", form(filePart("y".repeat(1001))), 413, undefined],
    ["a skipped part over what is left", form(file, textPart("q", "y".repeat(4000))), 413, undefined],
    [
      "too many parts",
      form(file, textPart("q", ""), textPart("q", ""), textPart("q", ""), textPart("q", "")),
      400,
      "",
    ],
    ["too long headers", form(filePart("x", 'name="file"', `X: ${"h".repeat(400)}`)), 400, ""],
    [
      "too many headers to hold the name",
      form({ headers: [`X: ${"h".repeat(400)}`, ...file.headers], body: "" }),
      400,
      "",
    ],
    ["a part without a name", form(file, { headers: ["Content-Disposition: form-data"], body: "" }), 400, ""],
    [
      "a part without a disposition",
      form(file, { headers: ["Content-Type: text/plain"], body: "" }),
      400,
      "",
    ],
    ["an attachment", form({ headers: ['Content-Disposition: attachment; name="file"'], body: "" }), 400, ""],
    [
      "a part without a blank line",
      `--b\r\nContent-Disposition: form-data; name="metadata"\r\n${form(file)}`,
      400,
      "",
    ],
    ["a part without headers", `--b\r\njunk\r\n${form(file)}`, 400, ""],
    ["a last part without a blank line", `${form(file).slice(0, -7)}--b\r\njunk\r\n--b--\r\n`, 400, ""],
    ["the boundary within the file", form(filePart("before\r\n--b after")), 400, ""],
    ["another boundary", form(file).replaceAll("--b", "--c"), 400, ""],
    ["nothing", "", 400, ""],
    ["a body cut in the file", form(file).slice(0, -12), 400, ""],
    ["a body cut in the closing boundary", form(file).slice(0, -5), 400, ""],
    ["a body cut in a header", form(file).slice(0, 30), 400, ""],
  ];
  for (const [name, body, status, path] of rows) {
    for (const chunkBytes of [1, 7, 1 << 20]) {
      test(`${name}, in chunks of ${chunkBytes}`, async () => {
        const sink = new MemorySink();
        let opened = 0;
        const problem = await problemOf(
          readUpload(post(body, chunkBytes), {
            ...options(sink),
            openSink: async () => {
              opened++;
              return sink;
            },
          }),
        );
        expect([problem.status, problem.extras.errors?.[0]?.path]).toEqual([status, path]);
        expect(sink.discards).toBe(opened);
      });
    }
  }

  const types: readonly [contentType: string, status: number][] = [
    ["application/json", 415],
    ["multipart/mixed; boundary=b", 415],
    ["multipart/form-data-more; boundary=b", 415],
    ["multipart/form-data", 400],
    ["multipart/form-data; boundary=", 400],
    [`multipart/form-data; boundary=${"b".repeat(71)}`, 400],
    ['multipart/form-data; boundary="b "', 400],
    ["multipart/form-data; boundary=\u00e9", 400],
    ['Multipart/Form-Data; charset=utf-8; Boundary="b"', 200],
  ];
  for (const [contentType, status] of types) {
    test(`Content-Type ${contentType}: ${status}`, async () => {
      const reading = readUpload(post(form(file), MIB, contentType), options(new MemorySink()));
      if (status === 200) await reading;
      else expect((await problemOf(reading)).status).toBe(status);
    });
  }

  test("a request without a body", async () => {
    const headers = { "Content-Type": "multipart/form-data; boundary=b" };
    const request = new Request("http://hub/", { method: "POST", headers });
    expect((await problemOf(readUpload(request, options(new MemorySink())))).status).toBe(400);
  });

  test("an error of the sink is rethrown, and the sink is discarded", async () => {
    class FailingSink extends MemorySink {
      override write(): never {
        throw new Error("no room");
      }
    }
    const sink = new FailingSink();
    await expect(readUpload(post(form(file)), options(sink))).rejects.toThrow("no room");
    expect(sink.discards).toBe(1);
  });

  test("backpressure: the next chunk is read only after the sink has written this one", async () => {
    let pulled = 0;
    const head = form(filePart("")).slice(0, -9);
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          controller.enqueue(new Uint8Array(Buffer.from(pulled++ === 0 ? head : "y".repeat(100))));
        },
      },
      { highWaterMark: 0 },
    );
    const held = Promise.withResolvers<void>();
    const first = Promise.withResolvers<void>();
    const deadline = new AbortController();
    const headers = { "Content-Type": "multipart/form-data; boundary=b" };
    const reading = readUpload(new Request("http://hub/", { method: "POST", body, headers }), {
      limits: LIMITS,
      deadline: deadline.signal,
      openSink: async () => ({
        write() {
          first.resolve();
          return held.promise;
        },
        discard: () => Promise.resolve(),
      }),
    });
    await first.promise;
    const pulledThen = pulled;
    await new Promise((resolve) => setImmediate(resolve)); // a turn of the loop in which nothing more may be read
    expect(pulled).toBe(pulledThen);
    deadline.abort();
    held.resolve();
    expect((await problemOf(reading)).status).toBe(408);
  });
});

/** The end of an upload to the listener below. */
type Ending = {
  readonly upload: Upload<MemorySink> | null;
  readonly error: unknown;
  readonly sink: MemorySink;
};

function listen(deadline: AbortSignal = new AbortController().signal) {
  const ended = Promise.withResolvers<Ending>();
  const begun = Promise.withResolvers<void>();
  const sink = new MemorySink();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    async fetch(request) {
      const openSink = async (): Promise<MemorySink> => {
        begun.resolve();
        return sink;
      };
      try {
        const upload = await readUpload(request, { limits: LIMITS, openSink, deadline });
        ended.resolve({ upload, error: null, sink });
        return new Response("stored");
      } catch (error) {
        ended.resolve({ upload: null, error, sink });
        if (!(error instanceof Problem)) throw error;
        return Response.json(error, { status: error.status, headers: { ...error.extras.headers } });
      }
    },
  });
  return {
    port: server.port ?? 0,
    begun: begun.promise,
    ended: ended.promise,
    stop: () => server.stop(true),
  };
}

/** A raw connection: what the server has sent so far, and when it has closed. */
function dial(port: number) {
  const socket = connect(port, "127.0.0.1");
  let said = "";
  const answered = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  socket.on("data", (bytes) => {
    said += bytes.toString("latin1");
    answered.resolve();
  });
  socket.on("error", () => {}); // a reset: "close" follows
  socket.on("close", () => {
    answered.resolve();
    closed.resolve();
  });
  return { socket, said: () => said, answered: answered.promise, closed: closed.promise };
}

function head(...headers: readonly string[]): string {
  const all = ["POST / HTTP/1.1", "Host: hub", "Content-Type: multipart/form-data; boundary=b", ...headers];
  return `${all.join("\r\n")}\r\n\r\n`;
}

function httpChunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

const OPEN_FILE = form(filePart("")).slice(0, -9);

describe("over a socket", () => {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    await Promise.all(stops.splice(0).map((stop) => stop()));
  });

  function serve(deadline?: AbortSignal) {
    const hub = listen(deadline);
    stops.push(hub.stop);
    return hub;
  }

  test("a Content-Length above the limit is refused unread, and the connection closed", async () => {
    const hub = serve();
    const caller = dial(hub.port);
    caller.socket.write(head(`Content-Length: ${uploadMaxBytes(LIMITS) + 1}`));
    await caller.closed;
    expect(caller.said()).toStartWith("HTTP/1.1 413 ");
    expect(caller.said().toLowerCase()).toContain("connection: close");
    expect((await hub.ended).sink.discards).toBe(0); // never opened
  });

  test("a caller that sends too much before it reads still gets the 413", async () => {
    const hub = serve();
    const caller = dial(hub.port);
    const piece = httpChunk("y".repeat(16_384));
    caller.socket.write(head("Transfer-Encoding: chunked") + httpChunk(`${OPEN_FILE}y`) + piece.repeat(64));
    await caller.closed;
    expect(caller.said()).toStartWith("HTTP/1.1 413 ");
    expect((await hub.ended).sink.discards).toBe(1);
  });

  test("a caller that never stops sending is cut off", async () => {
    const hub = serve();
    const caller = dial(hub.port);
    caller.socket.write(head("Transfer-Encoding: chunked") + httpChunk(`${OPEN_FILE}y`));
    await hub.begun;
    const piece = httpChunk("y".repeat(16_384));
    const send = (): void => {
      while (!caller.socket.destroyed && caller.socket.write(piece));
    };
    caller.socket.on("drain", send);
    send();
    await caller.closed; // for ever, if the hub read on
    const { error, sink } = await hub.ended;
    expect(error).toMatchObject({ status: 413 });
    expect(sink.discards).toBe(1);
    // Closing over what is still being sent resets the connection, which may overtake the answer.
    expect(caller.said()).toMatch(/^(HTTP\/1\.1 413 |$)/);
  });

  test("after a refused body that was read to its end the connection stays usable", async () => {
    const hub = serve();
    const caller = dial(hub.port);
    const body = form(textPart("metadata", "{}"));
    caller.socket.write(head(`Content-Length: ${body.length}`) + body);
    await caller.answered;
    expect(caller.said()).toStartWith("HTTP/1.1 400 ");
    expect(caller.said().toLowerCase()).not.toContain("connection: close");
    caller.socket.destroy();
  });

  for (const [name, ending] of [
    ["hangs up", "end"],
    ["resets", "reset"],
  ] as const) {
    test(`a client that ${name} within the file leaves nothing`, async () => {
      const hub = serve();
      const caller = dial(hub.port);
      caller.socket.write(`${head("Content-Length: 900")}${OPEN_FILE}some of it`);
      await hub.begun;
      if (ending === "end") caller.socket.destroy();
      else caller.socket.resetAndDestroy();
      const { error, sink } = await hub.ended;
      expect(error).toBeInstanceOf(Problem);
      expect(sink.discards).toBe(1);
    });
  }

  for (const [name, reason, status] of [
    ["its own reason", undefined, 408],
    ["the caller's Problem", new Problem(503, "draining", "Draining", "Try again."), 503],
  ] as const) {
    test(`the deadline ends a stalled upload, with ${name}`, async () => {
      const deadline = new AbortController();
      const hub = serve(deadline.signal);
      const caller = dial(hub.port);
      caller.socket.write(`${head("Content-Length: 900")}${OPEN_FILE}some of it`);
      await hub.begun;
      deadline.abort(reason);
      await caller.closed;
      expect(caller.said()).toStartWith(`HTTP/1.1 ${status} `);
      expect((await hub.ended).sink.discards).toBe(1);
    });
  }
});

describe("memory", () => {
  const SIZE = 128 * MIB;
  const HEADROOM = 64 * MIB;
  const cleanups: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const cleanup of cleanups) await cleanup();
  });

  /** The file server in a process of its own, after one small upload and download that warm it up. */
  async function startServer(pace: "fast" | "slow") {
    const folder = await mkdtemp(join(tmpdir(), "luxhub-memory-"));
    const fixture = join(import.meta.dir, "../support/file-server-fixture.ts");
    const child = Bun.spawn([process.execPath, fixture, folder, pace], { stdout: "pipe" });
    cleanups.push(async () => {
      child.kill();
      await child.exited;
      await rm(folder, { recursive: true });
    });
    const { value } = await child.stdout.getReader().read();
    const server = { pid: child.pid, port: Number(new TextDecoder().decode(value)) };
    await getFile(server.port, await putFile(server.port, MIB), MIB, 0);
    return server;
  }

  /** Resident bytes of a process: now, and at most since the last call (proc(5): VmHWM, clear_refs). */
  async function residentBytes(pid: number): Promise<{ now: number; peak: number }> {
    const status = await Bun.file(`/proc/${pid}/status`).text();
    await Bun.write(`/proc/${pid}/clear_refs`, "5");
    const of = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024;
    return { now: of("VmRSS"), peak: of("VmHWM") };
  }

  const SENT = Buffer.alloc(MIB, "0123456789abcdef");

  /** Uploads `size` bytes as fast as they are taken, holding one MiB; answers the blob id. */
  async function putFile(port: number, size: number): Promise<string> {
    const caller = dial(port);
    const end = "\r\n--b--\r\n";
    caller.socket.write(
      head(`Content-Length: ${OPEN_FILE.length + size + end.length}`, "Connection: close") + OPEN_FILE,
    );
    for (let sent = 0; sent < size; sent += SENT.length) {
      if (!caller.socket.write(SENT)) await new Promise((resolve) => caller.socket.once("drain", resolve));
    }
    caller.socket.write(end);
    await caller.closed;
    const id = /"blobId":"([^"]+)"/.exec(caller.said())?.[1];
    if (id === undefined) throw new Error(caller.said());
    return id;
  }

  /** Downloads and counts the bytes; stops reading for `pauseMs` after each 4 MiB. */
  async function getFile(port: number, blobId: string, size: number, pauseMs: number): Promise<void> {
    const socket = connect(port, "127.0.0.1");
    const closed = Promise.withResolvers<void>();
    let received = 0;
    let pauseAt = 4 * MIB;
    socket.on("data", (bytes) => {
      received += bytes.length;
      if (pauseMs === 0 || received < pauseAt) return;
      pauseAt += 4 * MIB;
      socket.pause();
      setTimeout(() => socket.resume(), pauseMs);
    });
    socket.on("error", closed.reject);
    socket.on("close", () => closed.resolve());
    socket.write(`GET /${blobId}?size=${size} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n`);
    await closed.promise;
    expect(received).toBeWithin(size, size + 1000); // and the head
  }

  async function expectFlat(pid: number, work: () => Promise<void>): Promise<void> {
    const before = await residentBytes(pid);
    await work();
    const after = await residentBytes(pid);
    expect(after.now - before.now).toBeLessThan(HEADROOM);
    expect(after.peak - before.now).toBeLessThan(HEADROOM);
  }

  const hasProc = process.platform === "linux";
  test.skipIf(!hasProc)("stays flat for 128 MiB up and down, also when the reader is slow", async () => {
    const server = await startServer("fast");
    let id = "";
    await expectFlat(server.pid, async () => void (id = await putFile(server.port, SIZE)));
    await expectFlat(server.pid, () => getFile(server.port, id, SIZE, 0));
    await expectFlat(server.pid, () => getFile(server.port, id, SIZE, 10));
  });

  test.skipIf(!hasProc)("stays flat for 128 MiB up when the disk is slower than the sender", async () => {
    const server = await startServer("slow");
    await expectFlat(server.pid, async () => void (await putFile(server.port, SIZE)));
  });
});
