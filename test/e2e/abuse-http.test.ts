/**
 * Hostile HTTP: a malformed, ambiguous or too large request is answered or cut off, never takes effect, and never
 * desynchronises the connection. Requests that do not reach the hub's own code are answered by the server below it,
 * with a bare status and a close.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { Corpus, NODE, type Row, answersIn, expectUnchanged } from "./corpus.ts";
import { SECRET, workedMs } from "./program.ts";
import { RawConnection } from "./raw.ts";

const SECRET_LINE = `X-Matrix-Secret: ${SECRET}\r\n`;
const HOST = "Host: hub\r\n";
const JSON_TEXT = JSON.stringify({ from_node: "operator", to_node: NODE, content: "hello" });
const LENGTH = JSON_TEXT.length;
const HEX = LENGTH.toString(16);
const SEND = "POST /api/v1/message/send HTTP/1.1\r\n";
const CHUNKS = `${HEX}\r\n${JSON_TEXT}\r\n0\r\n\r\n`;
const SMUGGLED = `POST /api/v1/message/send HTTP/1.1\r\n${HOST}${SECRET_LINE}Content-Length: ${LENGTH}\r\n\r\n${JSON_TEXT}`;

const BARE_400 = ["400", "closed"];
const BARE_431 = ["431", "closed"];
const BARE_505 = ["505", "closed"];
const CUT = ["closed"];
const NOT_FOUND = ["404 not_found"];

/** A message/send with these header lines after Host and the secret. */
const send = (lines: string, body = JSON_TEXT): string => `${SEND}${HOST}${SECRET_LINE}${lines}\r\n${body}`;
/** One with a right length and these lines before it. */
const sized = (lines: string): string => send(`${lines}Content-Length: ${LENGTH}\r\n`);
const chunked = (body: string, coding = "chunked"): string => send(`Transfer-Encoding: ${coding}\r\n`, body);
const get = (target: string, lines = "", version = "HTTP/1.1"): string =>
  `GET ${target} ${version}\r\n${HOST}${SECRET_LINE}${lines}\r\n`;
const request = (method: string, target = "/api/v1/status"): string =>
  `${method} ${target} HTTP/1.1\r\n${HOST}${SECRET_LINE}\r\n`;
const headers = (count: number): string => Array.from({ length: count }, (_, i) => `X-H${i}: a\r\n`).join("");

const FRAMING: readonly Row[] = [
  { name: "a length", send: sized(""), get: ["200"], does: 1 },
  { name: "the same length twice", send: sized(`Content-Length: ${LENGTH}\r\n`), get: ["200"], does: 1 },
  { name: "two lengths that differ", send: sized("Content-Length: 3\r\n"), get: BARE_400 },
  { name: "a list of lengths", send: send(`Content-Length: ${LENGTH}, ${LENGTH}\r\n`), get: BARE_400 },
  ...[
    "-1",
    `+${LENGTH}`,
    `0x${HEX}`,
    "4 6",
    "abc",
    "",
    `${LENGTH}.0`,
    "1e1",
    "99999999999999999999",
    "9223372036854775808",
    String(2n ** 64n + BigInt(LENGTH)),
  ].map((length) => ({
    name: `the length ${JSON.stringify(length)}`,
    send: send(`Content-Length: ${length}\r\n`),
    get: BARE_400,
  })),
  {
    name: "a length that is right modulo 2^32",
    send: send(`Content-Length: ${2 ** 32 + LENGTH}\r\n`),
    get: ["413 body_too_large", "closed"],
  },
  {
    name: "a length with zeros before it",
    send: send(`Content-Length: 000${LENGTH}\r\n`),
    get: ["200"],
    does: 1,
  },
  {
    name: "no length: an empty body, and garbage after it",
    send: send(""),
    get: ["400", "closed"],
  },
  {
    name: "a length and chunks",
    send: send(`Content-Length: ${LENGTH}\r\nTransfer-Encoding: chunked\r\n`, CHUNKS),
    get: BARE_400,
  },
  {
    name: "chunks and a length, with a request hidden behind them",
    send: send("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", `0\r\n\r\n${SMUGGLED}`),
    get: BARE_400,
  },
  {
    name: "a length too short, with a request hidden behind it",
    send: send("Content-Length: 0\r\n", SMUGGLED),
    get: CUT, // to the hub, and to any proxy that counts right, these are two requests: see PIPELINED
  },
  { name: "chunks", send: chunked(CHUNKS), get: ["200"], does: 1 },
  { name: "chunks in capitals", send: chunked(CHUNKS, "CHUNKED"), get: ["200"], does: 1 },
  ...[
    "identity",
    "xchunked",
    "gzip, chunked",
    "chunked, gzip",
    "chunked, chunked",
    "\x0bchunked",
    "chunked\x0b",
    "",
  ].map((coding) => ({
    name: `the coding ${JSON.stringify(coding)}`,
    send: chunked(CHUNKS, coding),
    get: BARE_400,
  })),
  { name: "two codings", send: chunked(CHUNKS, "chunked\r\nTransfer-Encoding: identity"), get: BARE_400 },
  ...["zz", "-1", `0x${HEX}`, `+${HEX}`, ` ${HEX}`, "", "fffffffffffffffff", "7fffffffffffffff"].map(
    (size) => ({
      name: `the chunk size ${JSON.stringify(size)}`,
      send: chunked(`${size}\r\n${JSON_TEXT}\r\n0\r\n\r\n`),
      get: BARE_400,
    }),
  ),
  {
    name: "an extension of a chunk",
    send: chunked(`${HEX};a=b\r\n${JSON_TEXT}\r\n0\r\n\r\n`),
    get: ["200"],
    does: 1,
  },
  {
    name: "a line break in an extension of a chunk",
    send: chunked(`${HEX};a\nb\r\n${JSON_TEXT}\r\n0\r\n\r\n`),
    get: BARE_400,
  },
  { name: "chunks with bare line feeds", send: chunked(`${HEX}\n${JSON_TEXT}\n0\n\n`), get: BARE_400 },
  { name: "no line break after a chunk", send: chunked(`${HEX}\r\n${JSON_TEXT}XX0\r\n\r\n`), get: BARE_400 },
  {
    name: "trailers: refused and not done",
    send: chunked(`${HEX}\r\n${JSON_TEXT}\r\n0\r\nX-Matrix-Secret: other\r\n\r\n`),
    get: BARE_400,
  },
  {
    name: "garbage after the last chunk: refused and not done",
    send: chunked(`${CHUNKS}GARBAGE\r\n\r\n`),
    get: BARE_400,
  },
];

const HEADERS: readonly Row[] = [
  { name: "a folded line", send: sized("X-A: a\r\n b\r\n"), get: BARE_400 },
  {
    name: "a folded first line",
    send: `${SEND} X-A: b\r\n${HOST}${SECRET_LINE}Content-Length: ${LENGTH}\r\n\r\n${JSON_TEXT}`,
    get: BARE_400,
  },
  { name: "a space before the colon", send: send(`Content-Length : ${LENGTH}\r\n`), get: BARE_400 },
  { name: "a tab before the colon", send: send(`Content-Length\t: ${LENGTH}\r\n`), get: BARE_400 },
  {
    name: "a space before the colon of the coding",
    send: sized("Transfer-Encoding : chunked\r\n"),
    get: BARE_400,
  },
  { name: "bare line feeds", send: sized("").replaceAll("\r\n", "\n"), get: BARE_505 },
  { name: "one bare line feed", send: sized("X-A: b\nX-B: c\r\n"), get: BARE_400 },
  { name: "a bare carriage return", send: sized("X-A: b\rX-B: c\r\n"), get: BARE_400 },
  { name: "NUL in a value", send: sized("X-A: b\0c\r\n"), get: BARE_400 },
  { name: "NUL in a name", send: sized("X-\0A: b\r\n"), get: BARE_400 },
  {
    name: "NUL after the secret",
    send: `${SEND}${HOST}X-Matrix-Secret: ${SECRET}\0\r\nContent-Length: ${LENGTH}\r\n\r\n${JSON_TEXT}`,
    get: BARE_400,
  },
  { name: "a line without a colon", send: sized("NoColon\r\n"), get: BARE_400 },
  { name: "a header without a name", send: sized(": x\r\n"), get: BARE_400 },
  { name: "a name that is no token", send: sized("X(A): b\r\n"), get: BARE_400 },
  { name: "bytes past ASCII in a value", send: sized("X-A: \xe9\xff\r\n"), get: ["200"], does: 1 },
  { name: "the secret twice", send: sized(SECRET_LINE), get: ["401 unauthorized", "closed"] },
  {
    name: "the secret and another",
    send: sized("X-Matrix-Secret: other\r\n"),
    get: ["401 unauthorized", "closed"],
  },
  { name: "a header of 12 KiB", send: sized(`X-A: ${"a".repeat(12 * 1024)}\r\n`), get: ["200"], does: 1 },
  { name: "a header of 100 KiB", send: sized(`X-A: ${"a".repeat(100 * 1024)}\r\n`), get: BARE_431 },
  {
    name: "a secret of 12 KiB",
    send: `${SEND}${HOST}X-Matrix-Secret: ${"a".repeat(12 * 1024)}\r\nContent-Length: ${LENGTH}\r\n\r\n${JSON_TEXT}`,
    get: ["401 unauthorized", "closed"],
  },
  { name: "100 headers", send: sized(headers(100)), get: ["200"], does: 1 },
  { name: "1,000 headers", send: sized(headers(1_000)), get: BARE_431 },
  { name: "an expectation", send: sized("Expect: 100-continue\r\n"), get: ["100", "200"], does: 1 },
  {
    name: "a coded body, which is not decoded",
    send: sized("Content-Encoding: gzip\r\n"),
    get: ["415 unsupported_media_type", "closed"],
  },
  {
    name: "an Idempotency-Key twice",
    send: sized("Idempotency-Key: a\r\nIdempotency-Key: b\r\n"),
    get: ["400 invalid_request"],
  },
  {
    name: "an upgrade to WebSocket",
    send: get(
      "/api/v1/status",
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
    ),
    get: ["200"],
  },
  {
    name: "an upgrade to HTTP/2",
    send: get(
      "/api/v1/status",
      "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
    ),
    get: ["200"],
  },
  { name: "two hosts", send: get("/api/v1/status", "Host: other\r\n"), get: ["400 invalid_request"] },
  { name: "the same host twice", send: get("/api/v1/status", "Host: hub\r\n"), get: ["400 invalid_request"] },
  {
    name: "a second host that is empty",
    send: get("/api/v1/status", "Host:\r\n"),
    get: ["400 invalid_request"],
  },
  { name: "a post with two hosts", send: sized("Host: other\r\n"), get: ["400 invalid_request", "closed"] },
  { name: "no host", send: "GET /api/v1/status HTTP/1.1\r\n\r\n", get: BARE_400 },
  ...[
    "",
    "a/b?c#d",
    "a b@c:99999",
    "x?page=0&a=",
    "x/api/v1/node/none#",
    "[::1",
    "%zz",
    "\xe9\x9b",
    "x/../..",
  ].map((host) => ({
    name: `the host ${JSON.stringify(host)}`,
    send: `GET /api/v1/task/list?page=1 HTTP/1.1\r\nHost: ${host}\r\n${SECRET_LINE}\r\n`,
    get: ["200"],
  })),
  {
    name: "a path in the host",
    send: `GET /status HTTP/1.1\r\nHost: x/api/v1\r\n${SECRET_LINE}\r\n`,
    get: NOT_FOUND,
  },
];

const TARGETS: readonly Row[] = [
  { name: "absolute form", send: get("http://other/api/v1/status"), get: ["200"] },
  { name: "absolute form of a file", send: get("file:///etc/passwd"), get: BARE_400 },
  { name: "asterisk form", send: request("OPTIONS", "*"), get: BARE_400 },
  { name: "asterisk form of GET", send: get("*"), get: BARE_400 },
  { name: "authority form", send: request("CONNECT", "hub:80"), get: ["404 not_found", "closed"] },
  { name: "CONNECT", send: request("CONNECT"), get: ["405 method_not_allowed", "closed"] },
  { name: "TRACE", send: request("TRACE"), get: ["405 method_not_allowed"] },
  { name: "OPTIONS", send: request("OPTIONS"), get: ["405 method_not_allowed"] },
  { name: "PATCH", send: request("PATCH"), get: ["405 method_not_allowed"] },
  ...["FROB", "get", "A".repeat(5_000), "constructor"].map((method) => ({
    name: `the method ${method.slice(0, 12)}`,
    send: request(method),
    get: CUT,
  })),
  ...["G<T", "__proto__", ""].map((method) => ({
    name: `the method ${JSON.stringify(method)}`,
    send: request(method),
    get: BARE_400,
  })),
  { name: "a method past ASCII", send: request("G\xc9T"), get: BARE_505 },
  { name: "HTTP/0.9", send: "GET /api/v1/status\r\n", get: BARE_505 },
  { name: "HTTP/1.0", send: `GET /api/v1/status HTTP/1.0\r\n${SECRET_LINE}\r\n`, get: ["200", "closed"] },
  {
    name: "HTTP/1.0 that would be kept alive",
    send: `GET /api/v1/status HTTP/1.0\r\nConnection: keep-alive\r\n\r\n`,
    get: ["200", "closed"],
  },
  { name: "HTTP/1.0 with chunks", send: chunked(CHUNKS).replace("HTTP/1.1", "HTTP/1.0"), get: BARE_400 },
  ...["HTTP/1.2", "HTTP/2.0", "HTTP/9", "HTTP/1.1x", "http/1.1", "JUNK"].map((version) => ({
    name: `the version ${version}`,
    send: get("/api/v1/status", "", version),
    get: BARE_505,
  })),
  { name: "the preface of HTTP/2", send: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", get: BARE_400 },
  { name: "the hello of TLS", send: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", get: BARE_400 },
  { name: "garbage", send: "\x01\x02\x03\x04\r\n\r\n", get: BARE_400 },
  { name: "empty lines", send: "\r\n\r\n\r\n\r\n", get: BARE_400 },
  { name: "two spaces", send: get(" /api/v1/status"), get: BARE_400 },
  { name: "a space in the path", send: get("/api/v1/sta tus"), get: BARE_505 },
  { name: "no path", send: get(""), get: BARE_400 },
  { name: "a path without a slash", send: get("api/v1/status"), get: BARE_400 },
  ...["\0", "\x01", "\t", "\r", "\x1b[2J"].map((mark) => ({
    name: `${JSON.stringify(mark)} in the path`,
    send: get(`/api/v1/node/a${mark}b`),
    get: BARE_505,
  })),
  { name: "a query of 10 KiB", send: get(`/api/v1/status?a=${"a".repeat(10 * 1024)}`), get: ["200"] },
  { name: "a query of 100 KiB", send: get(`/api/v1/status?a=${"a".repeat(100 * 1024)}`), get: BARE_431 },
  { name: "a path of 1 MiB", send: get(`/api/v1/${"a".repeat(2 ** 20)}`), get: BARE_431 },
  ...[
    "/api/v1/../v1/status",
    "/api/v1/./status",
    "/api/v1/%2e%2e/v1/status",
    "//api/v1/status",
    "/api//v1/status",
    "/api%2fv1%2fstatus",
    "/api/v1/%73tatus",
    "/api/v1/status/",
    "/api/v1/status%00",
    "/api/v1/status;a=b",
    "/api/v1/status#x",
    "/api\\v1\\status",
    "/API/V1/STATUS",
    "/api/v1/file/download/../../../../secret",
    "/api/v1/config/template",
    "/..%2f..%2fetc%2fpasswd",
    "/__proto__",
  ].map((target) => ({ name: `the path ${target}`, send: get(target), get: NOT_FOUND })),
  ...[
    "..",
    "%2e%2e",
    "..%2f..%2fsecret",
    "%2e%2e%2f%2e%2e%2fsecret",
    "%252e%252e%252fsecret",
    "..%5c..%5csecret",
    "..\\..\\secret",
    "%2fetc%2fpasswd",
    "a%00b",
    "%00",
    "a%0d%0aX-A:%20b",
    "con",
    "__proto__",
    "x".repeat(5_000),
  ].map((id) => ({
    name: `the download of ${id.slice(0, 30)}`,
    send: get(`/api/v1/file/download/${id}`),
    get: ["404 file_not_found"],
  })),
  ...[
    "%zz",
    "%",
    "%f",
    "%ff%fe",
    "%c0%ae",
    "%ed%a0%80",
    "\xc3\xa9",
    "\xff",
    "constructor",
    "a'--",
    "%27%20OR%201=1",
  ].map((id) => ({
    name: `the node ${JSON.stringify(id)}`,
    send: get(`/api/v1/node/${id}`),
    get: ["404 node_not_found"],
  })),
  {
    name: "names of objects in a query",
    send: get("/api/v1/task/list?__proto__=1&constructor=2&toString=3"),
    get: ["200"],
  },
  {
    name: "a query that cannot be decoded",
    send: get("/api/v1/task/list?status=%zz%ff"),
    get: ["400 invalid_request"],
  },
  { name: "NUL in a query", send: get("/api/v1/task/list?node_id=%00"), get: ["400 invalid_request"] },
  { name: "a GET with a body", send: `${get("/api/v1/status", "Content-Length: 5\r\n")}hello`, get: ["200"] },
];

const PIPELINED: readonly Row[] = [
  // A POST with another request behind it in one packet: it may be done, it is not answered, and the other is not begun.
  { name: "two that write", send: SMUGGLED.repeat(2), get: CUT, does: [0, 1] },
  { name: "twenty that write", send: SMUGGLED.repeat(20), get: CUT, does: [0, 1] },
  {
    name: "one that writes, then one that reads",
    send: SMUGGLED + get("/api/v1/status"),
    get: CUT,
    does: [0, 1],
  },
  {
    name: "three paths that there are not",
    send: get("/x").repeat(3),
    get: ["404 not_found", "404 not_found", "404 not_found"],
  },
  {
    name: "a request, then garbage",
    send: `${get("/api/v1/status")}GARBAGE\r\n\r\n`,
    get: ["200", "400", "closed"],
  },
];

let corpus: Corpus;
beforeAll(async () => {
  corpus = await Corpus.open();
});
afterAll(() => corpus[Symbol.asyncDispose]());

for (const [title, rows] of Object.entries({ FRAMING, HEADERS, TARGETS, PIPELINED })) {
  describe(title.toLowerCase(), () => {
    for (const row of rows) test(row.name, () => corpus.run(row));
  });
}

test("pipelined requests are answered in order or not at all, each with its own answer", async () => {
  const names = Array.from({ length: 300 }, (_, i) => `pipe-${i}`);
  const batches = Array.from({ length: 100 }, (_, i) => names.slice(3 * i, 3 * i + 3));
  let answered = 0;
  await Promise.all(
    batches.map(async (batch) => {
      const connection = await RawConnection.open(corpus.hub.port);
      connection.send(batch.map((name) => get(`/api/v1/node/${name}`, `X-Request-Id: ${name}\r\n`)).join(""));
      await Promise.race([connection.ended(), connection.got(/(?:[\s\S]*?node_not_found){3}[\s\S]*\}$/)]);
      connection.cut();
      const answers = answersIn(connection.received);
      for (const [i, { head, body }] of answers.entries()) {
        expect(head.toLowerCase()).toContain(`x-request-id: ${batch[i]}\r\n`.toLowerCase().trimEnd());
        expect(body).toContain(batch[i] ?? "?");
      }
      answered += answers.length;
    }),
  );
  expect(answered).toBeGreaterThan(0);
});

/** Sends, ends its own side, and reads to the end of the other. */
function halfClosed(text: string): Promise<string> {
  const ended = Promise.withResolvers<string>();
  const socket = connect({ port: corpus.hub.port, host: "127.0.0.1", allowHalfOpen: true });
  let received = "";
  socket.on("data", (bytes) => (received += bytes.toString("latin1")));
  socket.on("end", () => ended.resolve(received));
  socket.on("error", ended.reject);
  socket.end(text);
  return ended.promise.finally(() => socket.destroy());
}

describe("a caller that ends its side", () => {
  const rows: readonly (readonly [name: string, text: string, gets: readonly string[]])[] = [
    ["after a request that reads", get("/api/v1/status"), ["200"]],
    ["after a request that writes", sized("Idempotency-Key: half\r\n"), ["200"]],
    ["in a head", sized("").slice(0, 60), []],
    ["in a body", sized("").slice(0, -5), []],
    ["in a chunk", chunked(CHUNKS.slice(0, 20)), []],
    ["between the chunks", chunked(`${HEX}\r\n${JSON_TEXT}\r\n`), []],
    ["before it has said anything", "", []],
  ];
  for (const [name, text, gets] of rows)
    test(name, async () => {
      const before = (await corpus.hub.get("/events?limit=1")).body["cursor"];
      const answers = answersIn(await halfClosed(text)).map(({ head }) => head.slice(9, 12));
      expect(answers).toEqual([...gets]);
      const done = Number((await corpus.hub.get("/events?limit=1")).body["cursor"]) - Number(before);
      expect(done).toBe(name.endsWith("writes") ? 1 : 0);
    });

  test("while it waits for a message loses none", async () => {
    const { hub } = corpus;
    await hub.register("half-open");
    const body = JSON.stringify({ node_id: "half-open", blocking: true, timeout: 20 });
    const head = `POST /api/v1/message/receive HTTP/1.1\r\n${HOST}${SECRET_LINE}Content-Length: ${body.length}\r\n\r\n`;
    expect(await halfClosed(head + body)).toBe("");
    await hub.post("/message/send", { from_node: "operator", to_node: "half-open", content: "hello" });
    expect((await hub.post("/message/receive", { node_id: "half-open" })).body["count"]).toBe(1);
  });
});

test("a query made to be searched again and again costs no more than harmless requests", async () => {
  const workMax = await corpus.workMax();
  for (const word of ["?key", "&key", "key", "?key="]) {
    const connection = await RawConnection.open(corpus.hub.port);
    const before = workedMs(corpus.hub.pid);
    connection.send(get(`/api/v1/nope?${word.repeat(Math.floor(12_000 / word.length))}`));
    await connection.got(/ 404 /);
    expect(workedMs(corpus.hub.pid) - before).toBeLessThan(workMax); // a search that starts over works eight times as long
    connection.cut();
  }
});

test("afterwards the hub is healthy", () => corpus.isWell());

test("refused requests change nothing", () => expectUnchanged([FRAMING, HEADERS, TARGETS, PIPELINED].flat()));
