/** Presigned URLs of files (file/download-url, file/upload-url): a download or an upload with a ticket and no secret. */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { SECRET, TestClock, type TestHub, newDataDir, onlyOnce, startHub } from "../support/hub.ts";
import { PRIMARY_KEY_ID } from "../../src/domain/key.ts";
import { slowHash } from "../../src/lib/slow-hash.ts";
import { hashSecret } from "../../src/service/keys.ts";
import { Tickets } from "../../src/service/tickets.ts";
import { addKey, as, keys } from "./key-commands.ts";
import { NO_ID, VARIANTS, badFields, list, ok, record, refused, until } from "./scene.ts";

const once = onlyOnce(import.meta.url);

const MINUTE_MS = 60_000;

function formOf(text: string, name = "report.txt", metadata?: unknown): FormData {
  const form = new FormData();
  form.set("file", new File([text], name, { type: "text/plain" }));
  if (metadata !== undefined) form.set("metadata", JSON.stringify(metadata));
  return form;
}

async function upload(hub: TestHub, text = "0123456789"): Promise<string> {
  return String((await ok(hub.post("/file/upload", formOf(text))))["file_id"]);
}

type Asked = { readonly method?: string; readonly body?: FormData; readonly range?: string };

/** A request with no secret. */
function open(hub: TestHub, url: unknown, { method = "GET", body, range }: Asked = {}): Promise<Response> {
  return fetch(`${hub.base("B")}${String(url)}`, {
    method,
    ...(body ? { body } : {}),
    ...(range === undefined ? {} : { headers: { Range: range } }),
  });
}

async function put(hub: TestHub, url: unknown, body: FormData): Promise<Record<string, unknown>> {
  const response = await open(hub, url, { method: "POST", body });
  return { status: response.status, ...record(await response.json()) };
}

describe("a download", () => {
  test("needs no secret, as often as it is wanted, also a range of it", async () => {
    await using hub = await startHub({ isPrivate: true });
    const file_id = await upload(hub);
    for (const variant of VARIANTS) {
      const made = await ok(hub.post("/file/download-url", { file_id }, { variant }));
      expect(made).toMatchObject({ method: "GET" });
      const inMs = Date.parse(String(made["expires_at"])) - hub.clock.now();
      expect(inMs).toBeGreaterThan(9 * MINUTE_MS);
      expect(inMs).toBeLessThanOrEqual(10 * MINUTE_MS + 1_000);
      for (let i = 0; i < 2; i++) expect(await (await open(hub, made["url"])).text()).toBe("0123456789");
      const part = await open(hub, made["url"], { range: "bytes=2-4" });
      expect([part.status, await part.text()]).toEqual([206, "234"]);
      expect((await open(hub, made["url"], { method: "HEAD" })).status).toBe(200);
    }
  });

  test("cannot be forged with the hash of the hub's secret, which the database may hold", async () => {
    await using hub = await startHub({ isPrivate: true });
    const fileId = await upload(hub);
    const statusWith = async (word: string): Promise<number> => {
      const keys = { derive: (...by: [string, number, number]) => slowHash(word, ...by) };
      const lookups = { named: () => null, refresh: async () => {} };
      const tickets = new Tickets({ ...keys, ...lookups }, hub.clock);
      const { text } = await tickets.issue({ kind: "download", fileId }, { keyId: PRIMARY_KEY_ID });
      return (await open(hub, `/api/v1/file/download/${fileId}?ticket=${text}`)).status;
    };
    expect(await statusWith(SECRET)).toBe(200);
    expect(await statusWith(hashSecret(SECRET))).toBe(401);
  });

  test("ends after 10 minutes, and with the key that made it", async () => {
    await using hub = await startHub({ isPrivate: true });
    const file_id = await upload(hub);
    const secret = await addKey(hub, "short");
    const own = await ok(hub.post("/file/download-url", { file_id }, as(secret)));
    const { url } = await ok(hub.post("/file/download-url", { file_id }));
    expect((await open(hub, own["url"])).status).toBe(200);
    await keys(hub, "revoke", "short");
    expect((await open(hub, own["url"])).status).toBe(401);
    expect((await open(hub, url)).status).toBe(200);
    hub.clock.pass(10 * MINUTE_MS + 1_000);
    const late = await open(hub, url);
    expect([late.status, await late.json()]).toMatchObject([
      401,
      { detail: expect.stringContaining("expired") },
    ]);
  });

  test("opens this file only, and nothing else", async () => {
    await using hub = await startHub({ isPrivate: true });
    const [file_id, other] = [await upload(hub), await upload(hub, "other")];
    const { url } = await ok(hub.post("/file/download-url", { file_id }));
    const ticket = String(url).split("ticket=")[1] ?? "";
    expect((await open(hub, `/api/v1/file/download/${other}?ticket=${ticket}`)).status).toBe(401);
    expect((await open(hub, `/api/v1/file/list?ticket=${ticket}`)).status).toBe(401);
    const upward = `/api/v1/file/upload?ticket=${ticket}`;
    expect((await put(hub, upward, formOf("x")))["status"]).toBe(401);
    for (const wrong of [
      `${ticket}x`,
      `x${ticket}`,
      ticket.replace(/\..*/, ".AAAA"),
      "",
      ".",
      "x".repeat(2_000),
    ])
      expect((await open(hub, `/api/v1/file/download/${file_id}?ticket=${wrong}`)).status).toBe(401);
    await ok(hub.post("/file/delete", { file_id }));
    expect((await open(hub, url)).status).toBe(404);
    await refused(hub.post("/file/download-url", { file_id: NO_ID }), 404, "file_not_found");
  });

  once.test("counts a wrong ticket as a wrong secret, and never logs one", async () => {
    await using hub = await startHub({ isPrivate: true, alone: "wrongSecrets" });
    const file_id = await upload(hub);
    const { url } = await ok(hub.post("/file/download-url", { file_id }));
    const uploadUrl = await ok(hub.post("/file/upload-url", {}));
    expect((await put(hub, uploadUrl["url"], formOf("x")))["status"]).toBe(200);
    expect((await open(hub, url)).status).toBe(200);
    const statuses: number[] = [];
    for (let i = 0; i < 21; i++)
      statuses.push((await open(hub, `/api/v1/file/download/${file_id}?ticket=wrong${i}`)).status);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0);
    expect((await open(hub, url)).status).toBe(200); // a right one is always answered
    await until("the requests are logged", async () => hub.logged.join("").includes("/file/download/"));
    const log = hub.logged.join("");
    expect(log).toContain("ticket=*");
    for (const one of [url, uploadUrl["url"]])
      expect(log).not.toContain(String(one).split("ticket=")[1] ?? "none");
  });
});

describe("an upload", () => {
  test("stores one file: a repeat is the same one, and another file is refused", async () => {
    await using hub = await startHub();
    for (const variant of VARIANTS) {
      const made = await ok(hub.post("/file/upload-url", {}, { variant }));
      expect(made).toMatchObject({ method: "POST" });
      const first = await put(hub, made["url"], formOf("one", "one.txt", { any: 1 }));
      expect(first).toMatchObject({
        status: 200,
        name: "one.txt",
        size: 3,
        metadata: { any: 1 },
        node_id: null,
      });
      expect(first).not.toHaveProperty("ignored");
      expect(await put(hub, made["url"], formOf("one", "one.txt", { any: 1 }))).toEqual(first);
      expect(await put(hub, made["url"], formOf("two"))).toMatchObject({
        status: 422,
        error: "idempotency_key_reused",
        detail: expect.stringContaining("Get a new one for each file"),
      });
    }
    expect(list(await ok(hub.get("/file/list")), "files")).toHaveLength(2);
  });

  test("is of the node and the task that it was made for, whatever its metadata says", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await hub.addNode("n2");
    const task_id = await hub.addTask();
    await ok(hub.post("/task/claim", { task_id, node_id: "n1" }));
    const { url } = await ok(hub.post("/file/upload-url", { task_id, node_id: "n1" }));
    const other = { node: "n2", task_id: await hub.addTask() };
    expect(await put(hub, url, formOf("x", "x.txt", other))).toMatchObject({
      status: 200,
      node_id: "n1",
      task_id,
      attached: "output",
      metadata: other,
    });
    await refused(hub.post("/file/upload-url", { task_id: NO_ID }), 404, "task_not_found");
    await refused(hub.post("/file/upload-url", { node_id: "nobody" }), 404, "node_not_found");
  });

  test("with the URL of a bound key acts for its node, and counts against its quota", async () => {
    await using hub = await startHub({ quotaBytes: 20_000 });
    await hub.addNode("n1");
    const bound = as(await addKey(hub, "own", { node_id: "n1" }));
    const made = async () => (await ok(hub.post("/file/upload-url", {}, bound)))["url"];
    expect(await put(hub, await made(), formOf("x"))).toMatchObject({ status: 200, node_id: "n1" });
    const url = await made();
    expect(await put(hub, url, formOf("y".repeat(20_000)))).toMatchObject({ status: 429 });
    expect(await put(hub, url, formOf("y".repeat(20_000)))).toMatchObject({ status: 429 }); // a refusal is not kept
    await refused(hub.post("/file/upload-url", { node_id: "n2" }, bound), 403, "key_bound_to_other_node");
    const task_id = await hub.addTask(); // neither made by n1 nor assigned to it
    const foreign = await ok(hub.post("/file/upload-url", { task_id }, bound));
    expect(await put(hub, foreign["url"], formOf("z"))).toMatchObject({ error: "key_bound_to_other_node" });
  });

  once.test("takes no Idempotency-Key for the URL, which is a secret", async () => {
    await using hub = await startHub();
    const headers = { "Idempotency-Key": "k" };
    await badFields(hub.post("/file/upload-url", {}, { headers }), ["Idempotency-Key"]);
    const viewer = as(await addKey(hub, "looks", { role: "viewer" }));
    await refused(hub.post("/file/upload-url", {}, viewer), 403, "viewer_not_allowed");
  });
});

test("a ticket is good at every hub that has the database and the secret, and at no other", async () => {
  const dataDir = newDataDir();
  const clock = new TestClock();
  let url: unknown;
  {
    await using hub = await startHub({ isPrivate: true, dataDir, clock });
    url = (await ok(hub.post("/file/download-url", { file_id: await upload(hub) })))["url"];
  }
  for (const [secret, status] of [
    [SECRET, 200],
    ["another-secret", 401],
  ] as const) {
    await using hub = await startHub({ isPrivate: true, dataDir, clock, secret });
    expect((await open(hub, url)).status).toBe(status);
  }
  rmSync(dataDir, { recursive: true, force: true });
});
