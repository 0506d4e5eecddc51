/**
 * Files through the API: upload, download, list, delete; a refused upload leaves nothing behind. test/http tests the
 * details of multipart bodies and range requests.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { FILES_OF_TASK_MAX } from "../../src/domain/limits.ts";
import { type Answer, SECRET, type TestHub, newDataDir, onlyOnce, startHub } from "../support/hub.ts";
import { ISO, NO_ID, VARIANTS, type VariantName, badFields, list, ok, pick, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);

const MIB = 1024 * 1024;

type Upload = {
  content?: string | Uint8Array<ArrayBuffer>;
  name?: string;
  type?: string;
  metadata?: unknown;
};

function upload(hub: TestHub, asked: Upload = {}, variant: VariantName = "A"): Promise<Answer> {
  const form = new FormData();
  const { content = "content", name = "a.txt", type = "text/plain", metadata } = asked;
  if (metadata !== undefined) {
    form.set("metadata", typeof metadata === "string" ? metadata : JSON.stringify(metadata));
  }
  form.set("file", new File([content], name, { type }));
  return hub.post("/file/upload", form, { variant });
}

async function fileId(hub: TestHub, asked: Upload = {}): Promise<string> {
  return String((await ok(upload(hub, asked)))["file_id"]);
}

function download(
  hub: TestHub,
  id: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<Response> {
  return fetch(`${hub.base()}/api/v1/file/download/${id}`, { method, headers, keepalive: false });
}

/** The stored files in the hub's data directory. */
function blobsIn(hub: TestHub): string[] {
  const dir = join(hub.dataDir, "files");
  return existsSync(dir) ? [...new Bun.Glob("**/*").scanSync({ cwd: dir, onlyFiles: true, dot: true })] : [];
}

async function expectNothingLeft(hub: TestHub): Promise<void> {
  expect(await ok(hub.get("/file/list"))).toMatchObject({ files: [], total: 0 });
  expect(blobsIn(hub)).toEqual([]);
  expect(await hub.eventKinds()).not.toContain("file.uploaded");
}

describe("upload", () => {
  test.each(VARIANTS)("on %s answers the record, and the list shows the same", async (variant) => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTask();
    const metadata = { type: "report", node: "n1", task_id: taskId, nested: { a: [1, null, "ä"] } };
    const body = await ok(
      upload(hub, { content: "Größe", name: "r.md", type: "text/markdown", metadata }, variant),
    );
    const { success, uploaded_at, ...record } = body;
    const file_id = record["file_id"];
    expect(success).toBe(true);
    expect(record).toEqual({
      attached: "input",
      file_id,
      name: "r.md",
      size: 7,
      sha256: Bun.SHA256.hash("Größe", "hex"),
      content_type: "text/markdown",
      metadata,
      node_id: "n1",
      verified: false,
      task_id: taskId,
      url: `/api/v1/file/download/${file_id}`,
    });
    expect(uploaded_at).toMatch(ISO);
    const listed = list(await ok(hub.get("/file/list", { variant })), "files");
    expect(listed).toEqual([{ ...record, uploaded_at }]);
    const [event] = list(await ok(hub.get("/events?kind=file.uploaded")), "events");
    expect(event).toMatchObject({ node_id: "n1", task_id: taskId });
    expect(await (await download(hub, String(file_id))).text()).toBe("Größe");
    const byUrl = await fetch(hub.base() + record["url"], { keepalive: false });
    expect(await byUrl.text()).toBe("Größe");
  });

  once.test("without metadata has an empty object and no owner", async () => {
    await using hub = await startHub();
    expect(await ok(upload(hub))).toMatchObject({ metadata: {}, node_id: null, task_id: null });
  });

  test("of no bytes is a file of 0 bytes", async () => {
    await using hub = await startHub();
    const body = await ok(upload(hub, { content: "" }));
    expect(body).toMatchObject({ size: 0, sha256: Bun.SHA256.hash("", "hex") });
    const response = await download(hub, String(body["file_id"]));
    expect([response.status, await response.text()]).toEqual([200, ""]);
  });

  once.test("of many megabytes comes back unchanged", async () => {
    await using hub = await startHub();
    const content = new Uint8Array(24 * MIB);
    for (let at = 0; at < content.length; at += 4_096) content[at] = at / 4_096;
    const body = await ok(upload(hub, { content, type: "" }));
    expect(body).toMatchObject({ size: content.length, sha256: Bun.SHA256.hash(content, "hex") });
    const bytes = await (await download(hub, String(body["file_id"]))).bytes();
    expect(Bun.SHA256.hash(bytes, "hex")).toBe(String(body["sha256"]));
  });

  once.test("keeps only the base name of a path", async () => {
    await using hub = await startHub();
    const names = [
      ["../../etc/passwd", "passwd"],
      ["C:\\x\\y.txt", "y.txt"],
      ["größe 🦊.txt", "größe 🦊.txt"],
      ['say "hi".txt', 'say "hi".txt'],
      ["..", "file"],
    ] as const;
    for (const [name, kept] of names) expect(await ok(upload(hub, { name }))).toMatchObject({ name: kept });
    expect(existsSync(join(hub.dataDir, "..", "passwd"))).toBe(false);
  });

  once.test("with metadata that is not a JSON object is refused and leaves nothing", async () => {
    await using hub = await startHub();
    for (const metadata of ["x", "{", "[]", "[1]", "5", '"x"', "true", "{'a':1}", '{"a":1}}']) {
      await badFields(upload(hub, { metadata }), ["metadata"]);
    }
    await badFields(upload(hub, { metadata: `${'{"a":'.repeat(65)}1${"}".repeat(65)}` }), ["metadata"]);
    await expectNothingLeft(hub);
  });

  once.test.each(VARIANTS)(
    "on %s with metadata that names what does not exist attaches nothing",
    async (variant) => {
      await using hub = await startHub();
      await hub.addNode("n1");
      const strangers = [
        { type: "report", node: "somebody" },
        { task_id: NO_ID, node: "somebody" },
        { task_id: 5, node: "a b" },
        { task_id: null, node: null },
        { task_id: ["x"], node: { id: "n1" } },
        { task_id: "a\0b", node: "" },
        { task_id: "t".repeat(5_000), node: "n".repeat(5_000) },
      ];
      for (const metadata of strangers) {
        const body = await ok(upload(hub, { metadata }, variant));
        expect(body).toMatchObject({ metadata, task_id: null, node_id: null });
      }
      const metadata = { task_id: NO_ID, node: "n1" };
      expect(await ok(upload(hub, { metadata }, variant))).toMatchObject({
        metadata,
        task_id: null,
        node_id: "n1",
      });
    },
  );

  once.test.each(["null", " null\n", "", " "])("with metadata %j has none", async (metadata) => {
    await using hub = await startHub({ variants: ["A"] });
    expect(await ok(upload(hub, { metadata }))).toMatchObject({ metadata: {}, node_id: null, task_id: null });
  });

  once.test("is answered with the metadata as it was sent, digit for digit and key by key", async () => {
    await using hub = await startHub();
    const rows = [
      ['{"n":12345678901234567890,"m":-0.10e2}'],
      ['{"10":1,"9":2,"z":{"2":3,"1":4},"a":5}'],
      [
        ' { "a b" : [ 1 , { } , [ ] , "x, y: {\\"" ] , "c" : null } ',
        '{"a b":[1,{},[],"x, y: {\\""],"c":null}',
      ],
      ['{"a":1,"b":2,"\\u0061":3}', '{"a":3,"b":2}'],
      ['{"__proto__":{"toString":1},"metadata":[],"e":"\\ud800\\/é"}'],
      [`{"deep":${"[".repeat(63)}${"]".repeat(63)}}`],
      [`{"long":"${"\\\\".repeat(30_000)}"}`],
      [`{"many":[${"1,".repeat(30_000)}1]}`],
      ["{}"],
    ] as const;
    for (const [sent, expected = sent] of rows) {
      const form = new FormData();
      form.set("metadata", sent);
      form.set("file", new File(["x"], "x"));
      const init = { method: "POST", body: form, headers: { "X-Matrix-Secret": SECRET }, keepalive: false };
      const response = await fetch(`${hub.base()}/api/v1/file/upload`, init);
      expect(response.status).toBe(200);
      expect(await response.text()).toContain(`"metadata":${expected}}`);
    }
    const expected = rows.map(([sent, as = sent]) => `"metadata":${as}`).toReversed();
    for (const variant of VARIANTS) {
      const headers = { "X-Matrix-Secret": SECRET };
      const response = await fetch(`${hub.base(variant)}/api/v1/file/list`, { headers, keepalive: false });
      const text = await response.text();
      const starts = expected.map((metadata) => text.indexOf(`${metadata}}`));
      expect(starts).not.toContain(-1);
      expect(starts).toEqual(starts.toSorted((a, b) => a - b));
      expect(list(JSON.parse(text), "files")).toHaveLength(rows.length);
    }
  });

  once.test("without a part named file, or with two, is refused and leaves nothing", async () => {
    await using hub = await startHub();
    const none = new FormData();
    none.set("data", new File(["x"], "x"));
    await badFields(hub.post("/file/upload", none), ["file"]);
    const two = new FormData();
    for (const name of ["a", "b"]) two.append("file", new File([name], name));
    await badFields(hub.post("/file/upload", two), ["file"]);
    await expectNothingLeft(hub);
  });

  test("over the limit is 413 and leaves nothing; exactly at the limit it is accepted", async () => {
    await using hub = await startHub({ maxFileBytes: 100_000 });
    await refused(upload(hub, { content: "x".repeat(100_001) }), 413, "body_too_large");
    await refused(upload(hub, { content: "x".repeat(500_000) }), 413, "body_too_large");
    await refused(upload(hub, { content: "x".repeat(1_000_000) }), 413, "body_too_large");
    await expectNothingLeft(hub);
    expect(await ok(upload(hub, { content: "x".repeat(100_000) }))).toMatchObject({ size: 100_000 });
  });

  once.test("far over the limit is the hub's own 413, with or without Content-Length", async () => {
    await using hub = await startHub({ maxFileBytes: 100_000 });
    await refused(upload(hub, { content: new Uint8Array(8 * MIB) }), 413, "body_too_large");
    const head = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n';
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent === 0) controller.enqueue(Buffer.from(head));
        sent += 64 * 1024;
        if (sent > 16 * MIB) controller.close();
        else controller.enqueue(new Uint8Array(64 * 1024));
      },
    });
    const response = await fetch(`${hub.base()}/api/v1/file/upload`, {
      method: "POST",
      headers: { "X-Matrix-Secret": SECRET, "Content-Type": "multipart/form-data; boundary=b" },
      body: endless,
      keepalive: false,
    });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ success: false, error: "body_too_large" });
    await expectNothingLeft(hub);
  });

  test("that is interrupted leaves nothing", async () => {
    await using hub = await startHub();
    const text = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf of i';
    const headers = { "Content-Type": "multipart/form-data; boundary=b" };
    await badFields(hub.post("/file/upload", new Blob([text]), { headers }), [""]);
    await expectNothingLeft(hub);
  });
});

describe("a task's files", () => {
  test("are the files whose metadata name it, on both variants, until they are deleted", async () => {
    await using hub = await startHub();
    const [taskId, other] = [await hub.addTask(), await hub.addTask()];
    const first = await fileId(hub, { metadata: { task_id: taskId } });
    const second = await fileId(hub, { metadata: { task_id: taskId } });
    await fileId(hub);
    for (const variant of VARIANTS) {
      expect(await hub.taskOf(taskId, variant)).toMatchObject({ files: [first, second] });
      expect(await hub.taskOf(other, variant)).toMatchObject({ files: [] });
    }
    await ok(hub.call("DELETE", `/file/${first}`));
    expect(await hub.taskOf(taskId)).toMatchObject({ files: [second] });
  });

  test("are at most 100, also under concurrent uploads; the next is 409 and leaves nothing, and a deleted file makes room", async () => {
    await using hub = await startHub();
    const taskId = await hub.addTask();
    const metadata = { task_id: taskId };
    const first = await fileId(hub, { metadata });
    for (let left = FILES_OF_TASK_MAX - 4; left > 0; left -= 12)
      await Promise.all(Array.from({ length: 12 }, () => fileId(hub, { metadata })));
    const answers = await Promise.all(Array.from({ length: 8 }, () => upload(hub, { metadata })));
    const late = answers.filter(({ status }) => status !== 200);
    expect(late).toHaveLength(5);
    for (const answer of late) await refused(Promise.resolve(answer), 409, "task_files_limit");
    expect(String(late[0]?.body["detail"])).toContain("/api/v1/file/delete");
    const { files } = await hub.taskOf(taskId);
    expect(new Set(Array.isArray(files) ? files : []).size).toBe(FILES_OF_TASK_MAX);
    expect(await ok(hub.get("/file/list"))).toMatchObject({ total: FILES_OF_TASK_MAX });
    if (hub.engine === "sqlite") expect(blobsIn(hub)).toHaveLength(FILES_OF_TASK_MAX);
    await fileId(hub); // one of no task
    await ok(hub.call("DELETE", `/file/${first}`));
    await fileId(hub, { metadata });
    await refused(upload(hub, { metadata }), 409, "task_files_limit");
  });

  once.test("outlive the task", async () => {
    await using hub = await startHub();
    const taskId = await hub.addTask();
    const id = await fileId(hub, { metadata: { task_id: taskId } });
    await ok(hub.admin("/task/delete", { task_id: taskId }));
    expect((await download(hub, id)).status).toBe(200);
  });
});

describe("download", () => {
  once.test("is safe to open: attachment, nosniff, an ETag", async () => {
    await using hub = await startHub();
    const id = await fileId(hub, { content: "<script>", name: 'a"b.html', type: "text/html" });
    const response = await download(hub, id);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-disposition")).toMatch(/^attachment;/);
    expect(response.headers.get("content-disposition")).not.toContain('a"b');
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(response.headers.get("content-type")).toMatch(/^text\/html/);
    expect(response.headers.get("content-length")).toBe("8");
    expect(response.headers.get("accept-ranges")).toBe("bytes");
    expect(response.headers.get("etag")).toMatch(/^"[^"]+"$/);
    expect(response.headers.get("x-request-id")).toBeTruthy();
    expect(await response.text()).toBe("<script>");
  });

  once.test.each([
    ["bytes=0-3", 206, "0123", "bytes 0-3/10"],
    ["bytes=4-", 206, "456789", "bytes 4-9/10"],
    ["bytes=-3", 206, "789", "bytes 7-9/10"],
    ["bytes=8-100", 206, "89", "bytes 8-9/10"],
    ["lines=1-2", 200, "0123456789", "bytes 0-9/10"],
  ] as const)("of %s", async (range, status, content, contentRange) => {
    await using hub = await startHub({ variants: ["A"] });
    const response = await download(hub, await fileId(hub, { content: "0123456789" }), { Range: range });
    expect([response.status, await response.text()]).toEqual([status, content]);
    expect(response.headers.get("content-range")).toBe(contentRange);
  });

  once.test("of an unsatisfiable range is the hub's 416", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const response = await download(hub, await fileId(hub, { content: "0123456789" }), {
      Range: "bytes=10-",
    });
    expect(response.status).toBe(416);
    expect(response.headers.get("content-range")).toBe("bytes */10");
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(await response.json()).toMatchObject({ success: false, error: "range_not_satisfiable" });
  });

  once.test("of an unchanged file is 304", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const id = await fileId(hub);
    const etag = (await download(hub, id)).headers.get("etag") ?? "";
    const again = await download(hub, id, { "If-None-Match": etag });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    expect((await download(hub, id, { "If-None-Match": '"other"' })).status).toBe(200);
    const part = await download(hub, id, { Range: "bytes=0-1", "If-Range": '"other"' });
    expect([part.status, await part.text()]).toEqual([200, "content"]);
  });

  once.test("since it was last modified is 304", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const id = await fileId(hub);
    const modified = (await download(hub, id)).headers.get("last-modified") ?? "";
    const again = await download(hub, id, { "If-Modified-Since": modified });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const before = new Date(Date.parse(modified) - 1_000).toUTCString();
    expect((await download(hub, id, { "If-Modified-Since": before })).status).toBe(200);
  });

  once.test("by HEAD has the size and no body", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const id = await fileId(hub);
    const response = await download(hub, id, {}, "HEAD");
    expect([response.status, await response.text()]).toEqual([200, ""]);
    expect(response.headers.get("content-length")).toBe("7");
    expect((await download(hub, NO_ID, {}, "HEAD")).status).toBe(404);
  });

  once.test("of an unknown file is 404; B checks the secret first", async () => {
    await using hub = await startHub();
    const id = await fileId(hub);
    const bare = { headers: { "X-Matrix-Secret": null } };
    await refused(hub.get(`/file/download/${NO_ID}`, bare), 404, "file_not_found");
    await refused(hub.get(`/file/download/${id}`, { ...bare, variant: "B" }), 401, "unauthorized");
    expect((await hub.get(`/file/download/${id}`, { variant: "B" })).status).toBe(200);
  });
});

describe("list", () => {
  test("is read by a cursor, each file once, whatever is uploaded or deleted meanwhile", async () => {
    await using hub = await startHub();
    const task_id = await hub.addTask();
    const ids: string[] = [];
    for (let i = 0; i < 7; i++) {
      const form = new FormData();
      form.set("file", new File(["x"], `${i}.txt`));
      if (i % 2 === 0) form.set("metadata", JSON.stringify({ task_id }));
      ids.push(String((await ok(hub.post("/file/upload", form)))["file_id"]));
    }
    const walk = async (query: string, between: () => Promise<unknown>): Promise<unknown[]> => {
      const seen: unknown[] = [];
      for (let cursor = ""; ;) {
        const page = await ok(hub.get(`/file/list?per_page=2${query}${cursor}`));
        seen.push(...pick(page, "files", "file_id"));
        if (page["next_cursor"] === null) return seen;
        cursor = `&cursor=${String(page["next_cursor"])}`;
        await between();
      }
    };
    expect(await walk("", async () => {})).toEqual(ids.toReversed());
    expect(await walk(`&task_id=${task_id}`, async () => {})).toEqual([ids[6], ids[4], ids[2], ids[0]]);
    const changed = await walk("", async () => {
      const form = new FormData();
      form.set("file", new File(["x"], "new.txt"));
      await ok(hub.post("/file/upload", form));
      await hub.post("/file/delete", { file_id: ids[6] });
    });
    expect(changed).toEqual(ids.toReversed());
    const first = await ok(hub.get("/file/list?per_page=2"));
    const next = `/file/list?per_page=2&cursor=${String(first["next_cursor"])}`;
    expect(await ok(hub.get(next))).toMatchObject({ page: null, per_page: 2, total: first["total"] });
    await badFields(hub.get(`${next}&page=2`), ["page"]);
    await badFields(hub.get("/file/list?cursor=x"), ["cursor"]);
  });

  test("is searched by name, by cursor, of all tasks or of one", async () => {
    await using hub = await startHub();
    const task_id = await hub.addTask();
    const ids: string[] = [];
    for (const name of ["report-2026.pdf", "Annual Report.txt", "notes.md"])
      ids.push(await fileId(hub, { name, metadata: name.startsWith("A") ? { task_id } : {} }));
    const found = async (query: string) => pick(await ok(hub.get(`/file/list?${query}`)), "files", "file_id");
    expect(await found("q=repo")).toEqual([ids[1], ids[0]]);
    expect(await found("q=report%202026")).toEqual([ids[0]]);
    expect(await found("q=port")).toEqual([]);
    expect(await found(`q=report&task_id=${task_id}`)).toEqual([ids[1]]);
    const first = await ok(hub.get("/file/list?q=rep&per_page=1"));
    expect(first).toMatchObject({ page: null, total: null, pages: null });
    expect(await found(`q=rep&per_page=1&cursor=${String(first["next_cursor"])}`)).toEqual([ids[0]]);
    await badFields(hub.get("/file/list?q=rep&page=1"), ["page"]);
    await badFields(hub.get("/file/list?q=..."), ["q"]);
  });

  once.test("is newest first and paged like tasks", async () => {
    await using hub = await startHub();
    const ids: string[] = [];
    for (let i = 0; i < 22; i++) ids.push(await fileId(hub, { name: `${i}` }));
    const page = await ok(hub.get("/file/list"));
    expect(page).toMatchObject({ page: 1, per_page: 20, total: 22, pages: 2 });
    expect(pick(page, "files", "file_id")).toEqual(ids.toReversed().slice(0, 20));
    const second = await ok(hub.get("/file/list?page=2"));
    expect(pick(second, "files", "file_id")).toEqual(ids.toReversed().slice(20));
    expect(await ok(hub.get("/file/list?per_page=99"))).toMatchObject({ per_page: 50, pages: 1 });
    const onB = { variant: "B" } as const;
    expect(await ok(hub.get("/file/list", onB))).toMatchObject({ per_page: 500, pages: 1 });
    await badFields(hub.get("/file/list?page=0&per_page=x"), ["page", "per_page"]);
  });
});

describe("delete", () => {
  const WAYS = {
    "POST file/delete": (hub: TestHub, id: string) => hub.post("/file/delete", { file_id: id }),
    "DELETE file/<file_id>": (hub: TestHub, id: string) => hub.call("DELETE", `/file/${id}`),
  };

  test.each(Object.entries(WAYS))("by %s removes record and bytes", async (_, remove) => {
    await using hub = await startHub();
    const [id, other] = [await fileId(hub), await fileId(hub)];
    expect(await ok(remove(hub, id))).toEqual({ success: true, file_id: id });
    expect((await download(hub, id)).status).toBe(404);
    await refused(remove(hub, id), 404, "file_not_found");
    expect(pick(await ok(hub.get("/file/list")), "files", "file_id")).toEqual([other]);
    if (hub.engine === "sqlite") expect(blobsIn(hub)).toHaveLength(1); // in PostgreSQL they are in no file
    expect((await hub.eventKinds()).at(-1)).toBe("file.deleted");
  });

  once.test("requires the secret and a file_id", async () => {
    await using hub = await startHub();
    const id = await fileId(hub);
    const bare = { headers: { "X-Matrix-Secret": null } };
    await refused(hub.call("DELETE", `/file/${id}`, bare), 401, "unauthorized");
    await refused(hub.post("/file/delete", { file_id: id }, bare), 401, "unauthorized");
    await badFields(hub.post("/file/delete", {}), ["file_id"]);
    await badFields(hub.post("/file/delete", { file_id: 5 }), ["file_id"]);
    expect((await download(hub, id)).status).toBe(200);
  });
});

test("files survive a restart", async () => {
  const dataDir = newDataDir();
  try {
    let record: unknown;
    {
      await using hub = await startHub({ dataDir });
      await fileId(hub);
      record = list(await ok(hub.get("/file/list")), "files")[0];
    }
    await using hub = await startHub({ dataDir });
    const [again] = list(await ok(hub.get("/file/list")), "files");
    expect(again).toEqual(record as Record<string, unknown>);
    expect(await (await download(hub, String(again?.["file_id"]))).text()).toBe("content");
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});
