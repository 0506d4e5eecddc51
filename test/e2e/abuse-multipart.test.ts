/**
 * Multipart as strangers send it, and what becomes of it when it is fetched again: a form is taken whole or leaves
 * nothing, a name stays a name, and no upload runs as a page in the hub's origin.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { Corpus, NODE, type Row, answersIn, expectUnchanged } from "./corpus.ts";
import { SECRET, listOf, objectOf } from "./program.ts";
import { RawConnection } from "./raw.ts";

const BAD = ["400 invalid_request"];
const BAD_AND_CUT = ["400 invalid_request", "closed"];
const OTHER_TYPE = ["415 unsupported_media_type", "closed"];
const TAKEN = { get: ["200"], does: 1 };

/** An upload of these bytes (Latin-1) under this Content-Type. */
function upload(body: string, type = "multipart/form-data; boundary=b"): string {
  const head = `POST /api/v1/file/upload HTTP/1.1\r\nHost: hub\r\nX-Matrix-Secret: ${SECRET}\r\n`;
  return `${head}Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

const part = (headers: string, body: string, boundary = "b"): string =>
  `--${boundary}\r\n${headers}\r\n\r\n${body}\r\n`;
const DISPOSITION = 'Content-Disposition: form-data; name="file"; filename="a.txt"';
const FILE = part(DISPOSITION, "hello");
const END = "--b--\r\n";
const metadata = (text: string): string => part('Content-Disposition: form-data; name="metadata"', text);
const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

const BOUNDARIES: readonly Row[] = [
  { name: "a whole form", send: upload(FILE + END), ...TAKEN },
  { name: "no boundary", send: upload(FILE + END, "multipart/form-data"), get: BAD_AND_CUT },
  {
    name: "an empty boundary",
    send: upload(FILE + END, 'multipart/form-data; boundary=""'),
    get: BAD_AND_CUT,
  },
  {
    name: "a boundary of 70",
    send: upload(
      (FILE + END).replaceAll("--b", `--${"b".repeat(70)}`),
      `multipart/form-data; boundary=${"b".repeat(70)}`,
    ),
    ...TAKEN,
  },
  {
    name: "a boundary of 71",
    send: upload(
      (FILE + END).replaceAll("--b", `--${"b".repeat(71)}`),
      `multipart/form-data; boundary=${"b".repeat(71)}`,
    ),
    get: BAD_AND_CUT,
  },
  {
    name: "a boundary of 10,000",
    send: upload(FILE + END, `multipart/form-data; boundary=${"b".repeat(10_000)}`),
    get: BAD_AND_CUT,
  },
  {
    name: "two boundaries: the first counts",
    send: upload(FILE + END, "multipart/form-data; boundary=b; boundary=c"),
    ...TAKEN,
  },
  {
    name: "a boundary of a pattern's characters",
    send: upload((FILE + END).replaceAll("--b", "--(.+)?'"), `multipart/form-data; boundary="(.+)?'"`),
    ...TAKEN,
  },
  {
    name: "a boundary with a line break in it",
    send: upload(FILE + END, 'multipart/form-data; boundary="b\tc"'),
    get: BAD_AND_CUT,
  },
  { name: "another boundary than its own", send: upload((FILE + END).replaceAll("--b", "--c")), get: BAD },
  { name: "JSON", send: upload("{}", "application/json"), get: OTHER_TYPE },
  { name: "no type", send: upload("{}", ""), get: OTHER_TYPE },
  {
    name: "multipart of another kind",
    send: upload(FILE + END, "multipart/mixed; boundary=b"),
    get: OTHER_TYPE,
  },
  {
    name: "a form of URL-encoding",
    send: upload("file=a", "application/x-www-form-urlencoded"),
    get: OTHER_TYPE,
  },
];

const ENDS: readonly Row[] = [
  { name: "no body", send: upload(""), get: BAD },
  { name: "no end", send: upload(FILE), get: BAD },
  { name: "no end of the part", send: upload(FILE.slice(0, -4)), get: BAD },
  { name: "an end in the middle of the boundary", send: upload(`${FILE}--`), get: BAD },
  { name: "only the end", send: upload(END), get: BAD },
  { name: "bytes before the first boundary", send: upload(`preamble\r\n${FILE}${END}`), ...TAKEN },
  { name: "bytes after the end", send: upload(`${FILE}${END}epilogue`), ...TAKEN },
  { name: "another form after the end: not read", send: upload(FILE + END + FILE + END), ...TAKEN },
  { name: "bare line feeds", send: upload((FILE + END).replaceAll("\r\n", "\n")), get: BAD },
  { name: "the boundary within a line", send: upload(part(DISPOSITION, "a--b--c") + END), ...TAKEN },
  {
    name: "the boundary at the beginning of a line",
    send: upload(part(DISPOSITION, "a\r\n--bc") + END),
    get: BAD,
  },
  {
    name: "a form within the form",
    send: upload(
      part(
        `${DISPOSITION}\r\nContent-Type: multipart/mixed; boundary=c`,
        `${part(DISPOSITION, "inner", "c")}--c--`,
      ) + END,
    ),
    ...TAKEN,
  },
];

const PARTS: readonly Row[] = [
  { name: "no file", send: upload(metadata("{}") + END), get: BAD },
  { name: "two files", send: upload(FILE + FILE + END), get: BAD_AND_CUT },
  { name: "two metadata", send: upload(FILE + metadata("{}") + metadata("{}") + END), get: BAD_AND_CUT },
  {
    name: "16 parts",
    send: upload(FILE + part('Content-Disposition: form-data; name="x"', "").repeat(15) + END),
    ...TAKEN,
  },
  {
    name: "17 parts",
    send: upload(FILE + part('Content-Disposition: form-data; name="x"', "").repeat(16) + END),
    get: BAD_AND_CUT,
  },
  {
    name: "20,000 parts",
    send: upload(part('Content-Disposition: form-data; name="x"', "").repeat(20_000) + END),
    get: BAD_AND_CUT,
  },
  {
    name: "20,000 parts without a header",
    send: upload("--b\r\n\r\n\r\n".repeat(20_000) + END),
    get: BAD_AND_CUT,
  },
  { name: "a part without a header", send: upload(part("", "x") + END), get: BAD_AND_CUT },
  {
    name: "a part without a name",
    send: upload(part("Content-Disposition: form-data", "x") + END),
    get: BAD_AND_CUT,
  },
  {
    name: "a part that is an attachment",
    send: upload(part('Content-Disposition: attachment; name="file"', "x") + END),
    get: BAD_AND_CUT,
  },
  {
    name: "a disposition within a name",
    send: upload(part('Content-Disposition: form-data; name="a; name=file"', "x") + END),
    get: BAD,
  },
  {
    name: "a disposition folded over two lines",
    send: upload(part('Content-Disposition: form-data;\r\n name="file"', "x") + END),
    ...TAKEN,
  },
  {
    name: "two dispositions: the first counts",
    send: upload(part(`${DISPOSITION}\r\nContent-Disposition: form-data; name="metadata"`, "x") + END),
    ...TAKEN,
  },
  {
    name: "a header of 100 KiB",
    send: upload(part(`${DISPOSITION}\r\nX-A: ${"a".repeat(100 * 1024)}`, "x") + END),
    get: BAD_AND_CUT,
  },
  {
    name: "a name of 100 KiB",
    send: upload(part(`Content-Disposition: form-data; name="${"a".repeat(100 * 1024)}"`, "x") + END),
    get: BAD_AND_CUT,
  },
  {
    name: "1,000 headers",
    send: upload(part(DISPOSITION + "\r\nX-A: a".repeat(1_000), "x") + END),
    ...TAKEN,
  },
  { name: "NUL in a header", send: upload(part(`${DISPOSITION}\0`, "x") + END), ...TAKEN },
  {
    name: "a name of the engine's own",
    send: upload(
      FILE +
        part('Content-Disposition: form-data; name="__proto__"', "x") +
        part('Content-Disposition: form-data; name="constructor"', "x") +
        END,
    ),
    ...TAKEN,
  },
];

const METADATA: readonly Row[] = [
  ...[
    "",
    " ",
    "{}",
    "null",
    '{"type":"a"}',
    '{"__proto__":{"task_id":"none"}}',
    '{"task_id":1}',
    '{"task_id":"none"}',
    '{"node":"none"}',
    '{"node":"no node\\u0000"}',
    nested(60),
  ].map((text) => ({
    name: `metadata ${text.slice(0, 40)}`,
    send: upload(FILE + metadata(text) + END),
    ...TAKEN,
  })),
  ...["[]", "1", '"a"', "{", "{}{}", "\xff", nested(65), nested(10_000), `"${"a".repeat(70_000)}"`].map(
    (text) => ({
      name: `metadata ${text.slice(0, 40)}`,
      send: upload(FILE + metadata(text) + END),
      get: text.length > 65_536 ? BAD_AND_CUT : BAD,
    }),
  ),
];

let corpus: Corpus;
beforeAll(async () => {
  corpus = await Corpus.open(["--max-file", "1MiB"]);
});
afterAll(() => corpus[Symbol.asyncDispose]());

for (const [title, rows] of Object.entries({ BOUNDARIES, ENDS, PARTS, METADATA })) {
  describe(title.toLowerCase(), () => {
    for (const row of rows) test(row.name, () => corpus.run(row));
  });
}

test("a file that goes over its limit leaves nothing", () =>
  corpus.run({
    name: "",
    send: upload(part(DISPOSITION, "x".repeat(2 ** 20 + 1)) + END),
    get: ["413 body_too_large", "closed"],
  }));

/** Uploads and fetches again over bare sockets: the record and the head of the download, as they are on the wire. */
async function roundTrip(
  headers: string,
  body: string,
): Promise<{ name: string; head: string; content: string }> {
  const { port } = corpus.hub;
  const sending = await RawConnection.open(port);
  sending.send(Buffer.from(upload(part(headers, body) + END), "latin1"));
  await sending.got(/\r\n\r\n\{.*\}$/s);
  sending.cut();
  const record = Buffer.from(answersIn(sending.received)[0]?.body ?? "", "latin1").toString();
  const { file_id: fileId, name } = objectOf(record);
  const fetching = await RawConnection.open(port);
  fetching.send(`GET /api/v1/file/download/${fileId} HTTP/1.1\r\nHost: hub\r\n\r\n`);
  await fetching.got(new RegExp(`\\r\\n\\r\\n[\\s\\S]{${body.length}}$`));
  fetching.cut();
  const [answer] = answersIn(fetching.received);
  return { name: String(name), head: answer?.head ?? "", content: answer?.body ?? "" };
}

describe("a name stays a name", () => {
  const rows: readonly (readonly [disposition: string, name: string])[] = [
    ['filename="../../etc/passwd"', "passwd"],
    ['filename="..\\..\\boot.ini"', "boot.ini"],
    ['filename="/"', "file"],
    ['filename=".."', "file"],
    ['filename="a\\"; filename=\\"b.html"', 'a"; filename="b.html'],
    ['filename="a\tb.txt"', "ab.txt"],
    ['filename="a\x1b[2Jb.txt"', "a[2Jb.txt"],
    ["filename*=UTF-8''a%0D%0ASet-Cookie:%20b=1", "aSet-Cookie: b=1"],
    ["filename*=UTF-8''%2e%2e%2f%2e%2e%2fetc%2fpasswd", "passwd"],
    ["filename*=UTF-8''txt.exe%E2%80%AEgpj.", "txt.exegpj."],
    ["filename*=UTF-8''%00a", "a"],
    ["filename*=UTF-8''%ff%fe; filename=\"plain.txt\"", "plain.txt"],
    ["filename*=UTF-16''a; filename=\"plain.txt\"", "plain.txt"],
    ["filename=\"plain.txt\"; filename*=UTF-8''%C3%A9t%C3%A9.txt", "été.txt"],
    ['filename="\xf0\x9f\x98\x80.txt"', "😀.txt"],
    [`filename="${"é".repeat(2)}.txt"`, "��.txt"],
    [`filename="${"n".repeat(3_000)}"`, "n".repeat(255)],
    ['filename="%2e%2e%2fa%0d%0a"', "%2e%2e%2fa%0d%0a"],
    ['filename="con.txt:stream"', "con.txt:stream"],
  ];
  for (const [disposition, name] of rows)
    test(JSON.stringify(disposition.slice(0, 60)), async () => {
      const got = await roundTrip(`Content-Disposition: form-data; name="file"; ${disposition}`, "x");
      expect(got.name).toBe(name);
      const lines = got.head.split("\r\n").filter((line) => /^content-disposition:/i.test(line));
      expect(lines).toHaveLength(1);
      // One quoted name without a quote, a backslash or a percent sign in it, and one that is all encoded.
      expect(lines[0]).toMatch(
        /^Content-Disposition: attachment; filename="[^"\\%\x00-\x1f\x7f-\xff]*"; filename\*=UTF-8''[\w.!#$&+^`|~%-]*$/i,
      );
      expect(decodeURIComponent(lines[0]?.split("filename*=UTF-8''")[1] ?? "")).toBe(
        name.replaceAll(/[/\\]/g, "_"),
      );
      expect(got.head).not.toMatch(/set-cookie/i.test(name) ? /\nset-cookie/i : /set-cookie/i);
    });
});

describe("a download does not run as a page", () => {
  const PAGE = "<!doctype html><script>alert(document.domain)</script>";
  const rows: readonly (readonly [name: string, type: string, sent: string, body: string])[] = [
    ["page.html", "text/html", "text/html", PAGE],
    [
      "page.xhtml",
      "application/xhtml+xml",
      "application/xhtml+xml",
      `<html xmlns="http://www.w3.org/1999/xhtml"/>`,
    ],
    [
      "image.svg",
      "image/svg+xml",
      "image/svg+xml",
      `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`,
    ],
    ["data.xml", "text/xml", "text/xml", `<?xml-stylesheet href="data:,x"?><a/>`],
    ["code.js", "text/javascript", "text/javascript", "alert(1)"],
    ["page.txt", "text/plain", "text/plain", PAGE],
    ["page.png", "image/png", "image/png", PAGE],
    ["page.pdf", "application/pdf", "application/pdf", "%PDF-1.7"],
    ["none", "", "application/octet-stream", PAGE],
    ["odd", "text/html\x01", "application/octet-stream", PAGE],
    ["list", "text/html, text/plain", "application/octet-stream", PAGE],
    ["charset", "text/html; charset=utf-7", "text/html; charset=utf-7", "+ADw-script+AD4-"],
  ];
  for (const [name, type, sent, body] of rows)
    test(`${name} as ${JSON.stringify(type)}`, async () => {
      const headers = `Content-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: ${type}`;
      const { head, content } = await roundTrip(headers, body);
      const lines = head.split("\r\n");
      expect(lines[0]).toBe("HTTP/1.1 200 OK");
      expect(lines).toContain("X-Content-Type-Options: nosniff");
      expect(lines).toContain("Content-Security-Policy: default-src 'none'; sandbox");
      expect(lines).toContain(`Content-Type: ${sent}`);
      expect(head).toContain("\r\nContent-Disposition: attachment; ");
      expect(content).toBe(body);
    });

  test("nor does any other answer, whatever its words repeat", async () => {
    const { hub } = corpus;
    const page = { title: PAGE, description: PAGE };
    const answers = [
      await hub.post("/task/create", page),
      await hub.get("/task/list"),
      await hub.get(`/node/${encodeURIComponent(PAGE)}`),
      await hub.get(`/task/list?status=${encodeURIComponent(PAGE)}`),
      await hub.post(`/${encodeURIComponent(PAGE)}`, {}),
      await hub.call("DELETE", "/status"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 404, 400, 404, 405]);
    for (const { headers } of answers) {
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("content-type")).toMatch(/^application\/(problem\+)?json$/);
    }
  });
});

test("refused uploads leave no bytes behind, and the hub is healthy", async () => {
  const { hub } = corpus;
  const { total } = (await hub.get("/file/list")).body;
  const stored = readdirSync(corpus.join("data", "files"), { recursive: true, withFileTypes: true });
  expect(stored.filter((entry) => entry.isFile())).toHaveLength(Number(total));
  expect(listOf((await hub.get(`/message/history?node_id=${NODE}`)).body["messages"])).toEqual([]);
  await corpus.isWell();
});

test("refused requests change nothing", () => expectUnchanged([BOUNDARIES, ENDS, PARTS, METADATA].flat()));
