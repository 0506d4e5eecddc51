/** Uploads that are refused leave nothing behind; large ones, exact metadata, and what a download says in its head. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { SECRET, type TestHub, startHub } from "../support/hub.ts";
import { play } from "../support/transcript.ts";
import { NO_ID, VARIANTS, badFields, list, ok } from "./scene.ts";

const MIB = 1024 * 1024;
const SECRETS = { "X-Matrix-Secret": SECRET };

function form(content: string | Uint8Array<ArrayBuffer>, name = "a.txt", metadata?: string): FormData {
  const data = new FormData();
  if (metadata !== undefined) data.set("metadata", metadata);
  data.set("file", new File([content], name, { type: "text/html" }));
  return data;
}

const upload = async (hub: TestHub, content: string | Uint8Array<ArrayBuffer>, name?: string) =>
  String((await ok(hub.post("/file/upload", form(content, name))))["file_id"]);

const download = (hub: TestHub, id: string, headers: Record<string, string> = {}, method = "GET") =>
  fetch(`${hub.base()}/api/v1/file/download/${id}`, { method, headers, keepalive: false });

/** The stored files in the hub's data directory. */
function blobsIn(hub: TestHub): string[] {
  const dir = join(hub.dataDir, "files");
  return existsSync(dir) ? [...new Bun.Glob("**/*").scanSync({ cwd: dir, onlyFiles: true, dot: true })] : [];
}

test("a refused upload leaves nothing, on the disk either; a deleted file neither", async () => {
  await using hub = await startHub({ maxFileBytes: 100_000 });
  const two = form("a");
  two.append("file", new File(["b"], "b"));
  const none = new FormData();
  none.set("data", new File(["x"], "x"));
  for (const body of [none, two]) await badFields(hub.post("/file/upload", body), ["file"]);
  const head = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n';
  const headers = { ...SECRETS, "Content-Type": "multipart/form-data; boundary=b" };
  await badFields(hub.post("/file/upload", new Blob([`${head}half of i`]), { headers }), [""]);
  await badFields(hub.post("/file/upload", form("x", "a", "[]")), ["metadata"]);
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(sent === 0 ? Buffer.from(head) : new Uint8Array(64 * 1024));
      if ((sent += 64 * 1024) > 16 * MIB) controller.close();
    },
  });
  const url = `${hub.base()}/api/v1/file/upload`;
  for (const body of [form(new Uint8Array(8 * MIB)), endless]) {
    const sent = body === endless ? headers : SECRETS;
    const response = await fetch(url, { method: "POST", headers: sent, body, keepalive: false });
    expect([response.status, await response.json()]).toMatchObject([413, { error: "body_too_large" }]);
  }
  expect(blobsIn(hub)).toEqual([]);
  const file = await upload(hub, "x");
  expect(blobsIn(hub)).toHaveLength(1);
  await ok(hub.post("/file/delete", { file_id: file }));
  expect(blobsIn(hub)).toEqual([]);
  await upload(hub, "x", "../../etc/passwd");
  expect(existsSync(join(hub.dataDir, "..", "passwd"))).toBe(false);
  await play(hub, "GET file/list -> files.name [passwd]");
});

test("many megabytes come back unchanged", async () => {
  await using hub = await startHub();
  const content = new Uint8Array(24 * MIB);
  for (let at = 0; at < content.length; at += 4_096) content[at] = at / 4_096;
  const bytes = await (await download(hub, await upload(hub, content))).bytes();
  expect(Bun.SHA256.hash(bytes, "hex")).toBe(Bun.SHA256.hash(content, "hex"));
});

/** Metadata, and how it is answered where that differs: without white space between its tokens. */
const METADATA: readonly (readonly [sent: string, answered?: string])[] = [
  ['{"n":12345678901234567890,"m":-0.10e2}'],
  ['{"10":1,"9":2,"z":{"2":3,"1":4},"a":5}'],
  [' { "a b" : [ 1 , { } , [ ] , "x, y: {\\"" ] , "c" : null } ', '{"a b":[1,{},[],"x, y: {\\""],"c":null}'],
  ['{"a":1,"b":2,"\\u0061":3}', '{"a":3,"b":2}'],
  ['{"__proto__":{"toString":1},"metadata":[],"e":"\\ud800\\/é"}'],
  [`{"deep":${"[".repeat(63)}${"]".repeat(63)}}`],
  [`{"long":"${"\\\\".repeat(30_000)}"}`],
  [`{"many":[${"1,".repeat(30_000)}1]}`],
  ["{}"],
];

test("metadata is answered as it was sent, digit for digit and key by key", async () => {
  await using hub = await startHub();
  for (const [sent, answered = sent] of METADATA) {
    const init = { method: "POST", body: form("x", "x", sent), headers: SECRETS, keepalive: false };
    const response = await fetch(`${hub.base()}/api/v1/file/upload`, init);
    expect(await response.text()).toContain(`"metadata":${answered}}`);
  }
  for (const variant of VARIANTS) {
    const url = `${hub.base(variant)}/api/v1/file/list`;
    const text = await (await fetch(url, { headers: SECRETS, keepalive: false })).text();
    const starts = METADATA.map(([sent, answered = sent]) => text.indexOf(`"metadata":${answered}}`));
    expect(starts).not.toContain(-1);
    expect(starts).toEqual(starts.toSorted((a, b) => b - a)); // newest first
    expect(list(JSON.parse(text), "files")).toHaveLength(METADATA.length);
  }
});

/** The response to the request with these headers: its status, text and head. */
const DOWNLOADS: readonly (readonly [Record<string, string>, number, string | object, string?])[] = [
  [{ Range: "bytes=0-3" }, 206, "0123", "bytes 0-3/10"],
  [{ Range: "bytes=4-" }, 206, "456789", "bytes 4-9/10"],
  [{ Range: "bytes=-3" }, 206, "789", "bytes 7-9/10"],
  [{ Range: "bytes=8-100" }, 206, "89", "bytes 8-9/10"],
  [{ Range: "lines=1-2" }, 200, "0123456789"],
  [{ Range: "bytes=10-" }, 416, { success: false, error: "range_not_satisfiable" }, "bytes */10"],
  [{ Range: "bytes=0-1", "If-Range": '"other"' }, 200, "0123456789"],
  [{ "If-None-Match": '"other"' }, 200, "0123456789"],
  [{ "If-None-Match": "etag" }, 304, ""],
  [{ "If-Modified-Since": "last-modified" }, 304, ""],
];

test("a download is safe to open, has ranges, and is 304 while the file is unchanged", async () => {
  await using hub = await startHub({ variants: ["A"] });
  const id = await upload(hub, "0123456789", 'a"b.html');
  const whole = await download(hub, id);
  expect(Object.fromEntries(whole.headers)).toMatchObject({
    "content-disposition": expect.stringMatching(/^attachment;(?!.*a"b)/),
    "x-content-type-options": "nosniff",
    "content-type": expect.stringMatching(/^text\/html/),
    "content-length": "10",
    "accept-ranges": "bytes",
    etag: expect.stringMatching(/^"[^"]+"$/),
    "x-request-id": expect.any(String),
  });
  for (const [sent, status, content, range = null] of DOWNLOADS) {
    const own = (value: string) => (/^[a-z-]+$/.test(value) ? whole.headers.get(value) : value);
    const headers = Object.entries(sent).map(([name, value]) => [name, own(value)]);
    const response = await download(hub, id, Object.fromEntries(headers));
    const text = await response.text();
    expect([sent, response.status]).toEqual([sent, status]);
    if (typeof content === "string") expect(text).toBe(content);
    else expect(JSON.parse(text)).toMatchObject(content);
    if (status !== 200) expect(response.headers.get("content-range")).toBe(range);
  }
  const earlier = new Date(Date.parse(whole.headers.get("last-modified") ?? "") - 1_000).toUTCString();
  expect((await download(hub, id, { "If-Modified-Since": earlier })).status).toBe(200);
  const head = await download(hub, id, {}, "HEAD");
  expect([head.status, await head.text(), head.headers.get("content-length")]).toEqual([200, "", "10"]);
  expect((await download(hub, NO_ID, {}, "HEAD")).status).toBe(404);
});
