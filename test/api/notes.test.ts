/** Notes: the shared memory of the nodes, with compare-and-set, lists, search and limits. */
import { describe, expect, test } from "bun:test";
import { NOTE_KEY_MAX_CHARS, NOTE_TEXT_MAX_BYTES } from "../../src/domain/limits.ts";
import { ADMIN_KEY, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { ISO, addNode, badFields, eventKinds, list, ok, pick, record, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);
const ADMIN = { headers: { "X-Admin-Key": ADMIN_KEY } };
type Fields = Readonly<Record<string, unknown>>;

async function put(hub: TestHub, key: string, text: string, fields: Fields = {}): Promise<Fields> {
  return record((await ok(hub.post("/note/put", { key, text, ...fields })))["note"]);
}

async function textOf(hub: TestHub, key: string): Promise<unknown> {
  return record((await ok(hub.get(`/note/get?key=${encodeURIComponent(key)}`)))["note"])["text"];
}

async function keysOf(hub: TestHub, path: string): Promise<unknown> {
  return pick(await ok(hub.get(path)), "notes", "key");
}

describe("put", () => {
  test("writes version after version, and says who wrote it", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const first = await put(hub, "plan", "Begin.", { node_id: "n1" });
    expect(first).toEqual({
      key: "plan",
      version: 1,
      node_id: "n1",
      verified: false,
      bytes: 10,
      created_at: expect.stringMatching(ISO),
      updated_at: expect.stringMatching(ISO),
    });
    const second = await put(hub, "plan", "Go on.");
    expect(second).toMatchObject({ version: 2, node_id: null, created_at: first["created_at"] });
    expect(await textOf(hub, "plan")).toBe("Go on.");
    expect((await eventKinds(hub)).filter((kind) => kind === "note.changed")).toHaveLength(2);
  });

  test("only with the version that the caller has read", async () => {
    await using hub = await startHub();
    await put(hub, "lock", "n1", { if_version: 0, node_id: "n1" });
    const taken = await refused(
      hub.post("/note/put", { key: "lock", text: "n2", if_version: 0, node_id: "n2" }),
      409,
      "note_version_conflict",
    );
    expect(taken.body["version"]).toBe(1);
    await put(hub, "lock", "n2", { if_version: 1, node_id: "n2" });
    const old = { key: "lock", text: "n1 again", if_version: 1, node_id: "n1" };
    expect((await refused(hub.post("/note/put", old), 409, "note_version_conflict")).body["version"]).toBe(2);
    const none = { key: "none", text: "t", if_version: 3 };
    expect((await refused(hub.post("/note/put", none), 409, "note_version_conflict")).body["version"]).toBe(
      0,
    );
  });

  test("again by the same node changes nothing; the same text by another node is a new version", async () => {
    await using hub = await startHub();
    const asked = { if_version: 0, node_id: "n1" };
    const first = await put(hub, "k", "t", asked);
    expect(await put(hub, "k", "t", asked)).toEqual(first);
    expect(await put(hub, "k", "t", { node_id: "n1" })).toEqual(first);
    await refused(
      hub.post("/note/put", { key: "k", text: "t", if_version: 0 }),
      409,
      "note_version_conflict",
    );
    expect(await put(hub, "k", "t", { node_id: "n2" })).toMatchObject({ version: 2, node_id: "n2" });
  });

  test("of many at once with one version lets exactly one win", async () => {
    await using hub = await startHub();
    await put(hub, "counter", "0", { node_id: "n0" });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        hub.post("/note/put", { key: "counter", text: `${i}`, if_version: 1, node_id: `n${i}` }),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ body }) => body["error"] === "note_version_conflict")).toHaveLength(19);
  });

  once.test(
    "is verified with a key of the node, which need not name it and cannot name another",
    async () => {
      await using hub = await startHub();
      const made = await ok(hub.post("/key/add", { name: "n1", node_id: "n1" }, ADMIN));
      const own = { headers: { "X-Matrix-Secret": String(made["secret"]) } };
      const note = record((await ok(hub.post("/note/put", { key: "k", text: "t" }, own)))["note"]);
      expect(note).toMatchObject({ node_id: "n1", verified: true });
      const other = { key: "k", text: "t", node_id: "n2" };
      await refused(hub.post("/note/put", other, own), 403, "key_bound_to_other_node");
    },
  );

  once.test("takes what has its limits, and no more", async () => {
    await using hub = await startHub();
    const key = "k".repeat(NOTE_KEY_MAX_CHARS);
    await put(hub, key, "x".repeat(NOTE_TEXT_MAX_BYTES));
    const bad = { key: `${key}k`, text: "x".repeat(NOTE_TEXT_MAX_BYTES + 1), if_version: -1 };
    await badFields(hub.post("/note/put", bad), ["key", "text", "if_version"]);
    await badFields(hub.post("/note/put", { key: " ", text: " " }), ["key", "text"]);
  });
});

describe("delete", () => {
  test("removes a note of the version that the caller names, once", async () => {
    await using hub = await startHub();
    await put(hub, "k", "t");
    await refused(hub.post("/note/delete", { key: "k", if_version: 2 }), 409, "note_version_conflict");
    const gone = record((await ok(hub.post("/note/delete", { key: "k", if_version: 1 })))["note"]);
    expect(gone).toMatchObject({ key: "k", version: 1 });
    await refused(hub.post("/note/delete", { key: "k" }), 404, "note_not_found");
    await refused(hub.get("/note/get?key=k"), 404, "note_not_found");
    expect(await put(hub, "k", "again")).toMatchObject({ version: 1 });
    expect(await eventKinds(hub)).toContain("note.deleted");
  });
});

describe("lists", () => {
  test("go by key, from a prefix, page after page", async () => {
    await using hub = await startHub();
    for (const key of ["b/2", "a", "b/1", "b/ä", "c", "b"]) await put(hub, key, `text of ${key}`);
    expect(await keysOf(hub, "/note/list")).toEqual(["a", "b", "b/1", "b/2", "b/ä", "c"]);
    expect(await keysOf(hub, "/note/list?prefix=b/")).toEqual(["b/1", "b/2", "b/ä"]);
    const seen: unknown[] = [];
    let cursor: unknown = "";
    for (let page = 0; cursor !== null && page < 5; page++) {
      const body = await ok(hub.get(`/note/list?prefix=b&per_page=2&cursor=${String(cursor)}`));
      seen.push(...pick(body, "notes", "key"));
      cursor = body["next_cursor"];
    }
    expect(seen).toEqual(["b", "b/1", "b/2", "b/ä"]);
    expect(list(await ok(hub.get("/note/list")), "notes")[0]).not.toHaveProperty("text");
    await badFields(hub.get("/note/list?cursor=%"), ["cursor"]);
  });

  test("find words in keys and texts", async () => {
    await using hub = await startHub();
    await put(hub, "api/errors", "Every error is a problem.\nCodes are stable.");
    await put(hub, "api/lists", "Lists are paged.");
    await put(hub, "web", "The page has errors in red.");
    expect(await keysOf(hub, "/note/search?q=ERR")).toEqual(["api/errors", "web"]);
    expect(await keysOf(hub, "/note/search?q=page%20list")).toEqual(["api/lists"]);
    expect(await keysOf(hub, "/note/search?q=err&prefix=api/")).toEqual(["api/errors"]);
    expect(await keysOf(hub, "/note/search?q=nothing")).toEqual([]);
    const found = await ok(hub.get("/note/search?q=stable"));
    expect(list(found, "notes")[0]).toMatchObject({ excerpt: "Codes are stable.", version: 1 });
  });

  once.test("of a search go on where one call has examined its maximum", async () => {
    await using hub = await startHub();
    const text = `needle ${"x".repeat(NOTE_TEXT_MAX_BYTES - 7)}`;
    const requests = Array.from({ length: 60 }, (_, i) => ({
      path: "note/put",
      body: { key: `k${String(i).padStart(3, "0")}`, text, node_id: `n${i % 7}` },
    }));
    for (let at = 0; at < 600; at += 60) {
      const some = requests.map(({ path, body }) => ({ path, body: { ...body, key: `${body.key}.${at}` } }));
      for (let i = 0; i < some.length; i += 20)
        await ok(hub.post("/batch", { requests: some.slice(i, i + 20) }));
    }
    const first = await ok(hub.get("/note/search?q=missing"));
    expect(first).toMatchObject({ notes: [], next_cursor: expect.any(String) });
    const keys = new Set<unknown>();
    let [cursor, calls]: [unknown, number] = ["", 0];
    for (; cursor !== null && calls < 100; calls++) {
      const body = await ok(hub.get(`/note/search?q=needle&per_page=50&cursor=${String(cursor)}`));
      for (const key of pick(body, "notes", "key")) keys.add(key);
      cursor = body["next_cursor"];
    }
    expect({ found: keys.size, cursor }).toEqual({ found: 600, cursor: null });
  });
});

test("a batch writes notes, each seeing those before it", async () => {
  await using hub = await startHub();
  const step = (text: string, if_version: number) => ({
    path: "note/put",
    body: { key: "k", text, if_version },
  });
  const { answers } = await ok(hub.post("/batch", { requests: [step("a", 0), step("b", 0), step("c", 1)] }));
  expect(pick({ answers }, "answers", "status")).toEqual([200, 409, 200]);
  expect(await textOf(hub, "k")).toBe("c");
});
