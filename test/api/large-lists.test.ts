/**
 * Lists of large rows: a page is complete and in order however it is sent, one that is too large for memory is loaded in
 * parts, and a pull returns as many tasks as fit into one answer.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { PULL_ANSWER_MAX_BYTES } from "../../src/domain/limits.ts";
import { SECRET, type TestHub, startHub } from "../support/hub.ts";
import { transcripts } from "../support/transcript.ts";
import { VARIANTS, ok, pick } from "./scene.ts";

const KIB = 1024;
const TASKS = 110;
const text = (char: string): string => char.repeat(64 * KIB);

let hub: TestHub;
let taskIds: string[];

beforeAll(async () => {
  hub = await startHub();
  await hub.addNode("n1");
  // Newest first: small ones and large ones, some with a result as large as can be.
  for (let i = 0; i < TASKS; i++) {
    const taskId = await hub.addTask({ title: `task ${i}`, description: i % 3 === 0 ? "small" : text("d") });
    if (i % 10 !== 0) continue;
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
    const result = { problem: text("p"), improvement: text("\u0001"), lesson: text("é").slice(0, 32 * KIB) };
    await ok(hub.post("/task/complete", { task_id: taskId, node_id: "n1", result }));
  }
  const pages = Array.from({ length: TASKS / 10 }, (_, i) => i + 1);
  const bodies = await Promise.all(pages.map((page) => ok(hub.get(`/task/list?per_page=10&page=${page}`))));
  taskIds = bodies.flatMap((body) => pick(body, "tasks", "task_id").map(String));
});
afterAll(() => hub.close());

/** The bytes of an answer as they are sent, and their coding. */
async function sent(url: string, accepted: string): Promise<{ coding: string | null; bytes: Uint8Array }> {
  const headers = { "X-Matrix-Secret": SECRET, "Accept-Encoding": accepted };
  const response = await fetch(url, { headers, decompress: false });
  expect(response.headers.get("vary")).toContain("Accept-Encoding");
  return { coding: response.headers.get("content-encoding"), bytes: await response.bytes() };
}

test("reads are compressed as the client takes it, small and large ones, and nothing else", async () => {
  await using own = await startHub();
  const { task_id } = await ok(own.post("/task/create", { title: "t", description: "d ".repeat(2_000) }));
  const page = `${own.base()}/api/v1/task/list`;
  const plain = await sent(page, "identity");
  expect(plain.coding).toBeNull();
  for (let i = 0; i < 12; i++)
    await ok(own.post("/task/create", { title: "t", description: `${"x".repeat(60_000)}${i}` }));
  for (const url of [`${page}?per_page=1&q=t`, page]) {
    const whole = await sent(url, "identity");
    for (const [accepted, inflate] of [
      ["gzip", (bytes: Uint8Array) => gunzipSync(bytes)],
      ["gzip, zstd", (bytes: Uint8Array) => Bun.zstdDecompressSync(bytes)],
    ] as const) {
      const { coding, bytes } = await sent(url, accepted);
      expect(coding).toBe(accepted === "gzip" ? "gzip" : "zstd");
      expect(bytes.length).toBeLessThan(whole.bytes.length / 3);
      expect(Buffer.from(inflate(bytes)).equals(Buffer.from(whole.bytes))).toBe(true);
    }
  }
  expect((await sent(`${own.base()}/api/v1/task/stats`, "gzip")).coding).toBeNull(); // it is short
  const body = JSON.stringify({ task_id, description: "y".repeat(5_000) });
  const headers = { "X-Matrix-Secret": SECRET, "Accept-Encoding": "gzip" };
  const written = await fetch(`${own.base()}/api/v1/task/update`, {
    method: "POST",
    headers,
    body,
    decompress: false,
  });
  expect([written.status, written.headers.get("content-encoding")]).toEqual([200, null]);
  const head = await fetch(page, { method: "HEAD", headers, decompress: false });
  expect([head.status, head.headers.get("content-encoding")]).toEqual([200, null]);
});

test("pages are newest first", () => {
  expect(new Set(taskIds).size).toBe(TASKS);
  expect(taskIds).toEqual(taskIds.toSorted().toReversed());
});

describe.each(VARIANTS)("on %s", (variant) => {
  for (const query of [
    "",
    "?per_page=50",
    "?per_page=20&page=2",
    "?status=completed&per_page=50",
    "?per_page=50&page=3",
  ])
    test(`task/list${query} is complete, in order and as declared`, async () => {
      // The test hub checks every answer against its declared schema.
      const answer = await hub.get(`/task/list${query}`, { variant });
      const body = await ok(answer);
      const unpaged = variant === "B" ? 500 : 20;
      const perPage = query.includes("per_page") ? Number(/per_page=(\d+)/.exec(query)?.[1]) : unpaged;
      const page = Number(/[?&]page=(\d+)/.exec(query)?.[1] ?? 1);
      const isDone = (_: string, i: number): boolean => (TASKS - 1 - i) % 10 === 0;
      const done = taskIds.filter(isDone);
      const unfinishedFirst = [...taskIds.filter((id, i) => !isDone(id, i)), ...done];
      const listed = variant === "B" && query === "" ? unfinishedFirst : taskIds;
      const all = query.includes("completed") ? done : listed;
      expect(pick(body, "tasks", "task_id")).toEqual(all.slice((page - 1) * perPage, page * perPage));
      expect(body).toMatchObject({
        page,
        per_page: perPage,
        total: all.length,
        pages: Math.ceil(all.length / perPage),
      });
      // An answer that is loaded in parts has no Content-Length.
      expect(answer.headers.get("content-length")).toBeNull();
    });

  test("HEAD answers the head of a list that is sent in parts", async () => {
    const { status, headers } = await hub.call("HEAD", "/task/list?per_page=50", { variant });
    expect([status, headers.get("content-type")]).toEqual([200, "application/json"]);
  });
});

test.each([
  ["one task", 1, 0],
  ["twenty tasks, more than Bun's send buffer", 20, 16_384],
])("a page of %s is sent as a whole, with its Content-Length", async (_, perPage, least) => {
  await using own = await startHub();
  for (let i = 0; i < perPage; i++) await own.addTask({ title: `${i}`, description: "é".repeat(500) });
  const path = `${own.base()}/api/v1/task/list?per_page=${perPage}`;
  for (const method of ["GET", "HEAD"]) {
    const headers = { "X-Matrix-Secret": SECRET, "Accept-Encoding": "identity" };
    const answer = await fetch(path, { method, headers });
    const length = Number(answer.headers.get("content-length"));
    expect(length).toBeGreaterThan(least);
    expect(Buffer.byteLength(await answer.text())).toBe(method === "GET" ? length : 0);
  }
});

test("a task deleted while the list is being sent is left out, and the list stays valid", async () => {
  await using own = await startHub();
  const ids: string[] = [];
  for (let i = 0; i < 40; i++) ids.push(await own.addTask({ title: `${i}`, description: text("d") }));
  const path = `${own.base()}/api/v1/task/list?per_page=50`;
  const response = await fetch(path, { headers: { "X-Matrix-Secret": SECRET } });
  const reader = response.body?.getReader();
  const chunks = [(await reader?.read())?.value ?? new Uint8Array()];
  // Those at the end, more than a part: so one part has no rows at all.
  const gone = ids.slice(0, 12);
  for (const taskId of gone) await ok(own.admin("/task/delete", { task_id: taskId }));
  for (let read = await reader?.read(); read && !read.done; read = await reader?.read())
    chunks.push(read.value);
  const body: Record<string, unknown> = JSON.parse(Buffer.concat(chunks).toString());
  const left = pick(body, "tasks", "task_id");
  expect(left.slice(0, 20)).toEqual(ids.toReversed().slice(0, 20));
  expect(left.length).toBeLessThanOrEqual(40);
  expect(new Set(left).size).toBe(left.length);
  expect(body["total"]).toBe(40);
});

const names = (letter: string, count: number) => Array.from({ length: count }, (_, i) => `${letter}${i}`);
const idsOf = (of: readonly string[]): string => of.map((name) => `$${name}`).join();
const pulled = PULL_ANSWER_MAX_BYTES / (64 * KIB);
const tasks = names("t", pulled + 10);
const messages = names("m", 30);
const newest = messages.toReversed();
const nodes = names("node-", 1_234).map((name) => name.replace(/\d+/, (i) => i.padStart(5, "0")));
const registered = (from: number, to: number): string =>
  nodes
    .slice(from, to)
    .map((node) => `{path: node/register, body: {node_id: ${node}, name: x, capabilities: [a, "b]"]}}`)
    .join();

transcripts(`
-- a list of files with large metadata is complete
  ${names("f", 12)} = upload a.txt {text: m*${60 * KIB}}
  <|B >GET file/list -> files.file_id [${idsOf(names("f", 12).toReversed())}]
  -> header.content-length absent

-- a pull returns the best tasks, up to the size of one answer
  nodes n1
  ${tasks} = task/create {description: d*${64 * KIB}}
  GET task/pull?node_id=n1&limit=<20|21> -> tasks.task_id [<${idsOf(tasks.slice(0, 20))}|${idsOf(tasks.slice(0, 21))}>]
  GET task/pull?node_id=n1&limit=1000 -> tasks.task_id [${idsOf(tasks.slice(0, pulled))}]

-- messages too large to hold together are all read, newest first, and stay in the mailbox
  nodes n1
  ${messages.map((name, i) => `${name} = message/send op n1 {content: ${i % 3 === 0 ? '"]"' : `c*${64 * KIB}`}}`).join("\n")}
  GET <message/history?node_id=n1&count=1000|agent/messages?node_id=n1&limit=1000> -> {count: 30, header: {content-length: absent}};
  -> messages.id [${idsOf(newest)}]
  GET message/history?node_id=n1&count=11 -> messages.id [${idsOf(newest.slice(0, 11))}]
  GET agent/messages?node_id=n1&since=$m3&limit=20 -> messages.id [${idsOf(messages.slice(4, 24).toReversed())}]
  message/receive n1 {count: 1000} -> messages.id [${idsOf(messages)}]

-- a large stored answer is replayed completely
  nodes n1
  <${"|".repeat(9)}>message/send op n1 {content: é*${32 * KIB}}
  key k message/receive n1 {count: 10} -> messages #10
  replay

-- a list of 499, 500, 501, 1,000 and 1,234 nodes is complete and in order
  ${[
    [0, 499],
    [499, 500],
    [500, 501],
    [501, 1_000],
    [1_000, 1_234],
  ]
    .map(
      ([from = 0, to = 0]) => `batch {requests: [${registered(from, to)}]}
      <|B >GET node/list -> nodes.node_id [${nodes.slice(0, to)}]`,
    )
    .join("\n")}
`);
