/**
 * Tasks: the texts and numbers that are kept as they were sent, refused input, and lists by filters and cursors.
 * tasks.test.ts has the rest.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { LIST_SCANNED_MAX, SEARCH_MAX_CHARS } from "../../src/domain/limits.ts";
import { SECRET, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { ISO, NO_ID, RESULT, VARIANTS, badFields, ok, pick, record, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);

const DRAFT = { title: "Title", description: "Description" };

test("create answers all fields of the task", async () => {
  await using hub = await startHub();
  const asked = { ...DRAFT, task_type: "coding", priority: 2, creator_node: "boss", lux_reward: 12.5 };
  const body = await ok(hub.post("/task/create", asked));
  const { task, ...head } = body;
  const { created_at, updated_at, ...rest } = record(task);
  const taskId = body["task_id"];
  const lease = { epoch: 0, expires_at: null };
  expect(head).toEqual({ success: true, task_id: taskId, status: "open", assigned_node: null, lease });
  expect(rest).toEqual({
    ...asked,
    task_id: taskId,
    creator_verified: false,
    status: "open",
    assigned_node: null,
    result: null,
    result_verified: false,
    ready: true,
    attempts: 0,
    max_attempts: null,
    timeout_s: null,
    max_run_s: null,
    max_cost_usd: null,
    usage: null,
    waiting_for: null,
    restarts: 0,
    not_before: null,
    expires_at: null,
    depends_on: [],
    started_at: null,
    progress: null,
    failure: null,
    files: [],
    inputs: [],
    outputs: [],
  });
  expect(created_at).toMatch(ISO);
  expect(updated_at).toBe(created_at);
  expect(await hub.taskOf(String(taskId))).toEqual(record(task));
});

test("create keeps text unchanged", async () => {
  await using hub = await startHub();
  const texts = { title: "  Größe 🦊 \u0001\t", description: 'a"b\\c\n\u2028<script>' };
  const taskId = await hub.addTask(texts);
  expect(await hub.taskOf(taskId)).toMatchObject(texts);
});

const BAD_DRAFTS = [
  [{}, ["title", "description"]],
  [{ title: "x" }, ["description"]],
  [{ title: "", description: " \n" }, ["title", "description"]],
  [{ title: 5, description: null }, ["title", "description"]],
  [{ title: ["x"], description: { x: 1 } }, ["title", "description"]],
  [{ ...DRAFT, title: "x".repeat(501) }, ["title"]],
  [{ ...DRAFT, description: "x".repeat(64 * 1024 + 1) }, ["description"]],
  [{ ...DRAFT, description: "ä".repeat(32 * 1024 + 1) }, ["description"]],
  [{ ...DRAFT, title: "a\0b", description: "a\0b", task_type: "\0" }, ["title", "description", "task_type"]],
  [{ ...DRAFT, title: "\ud800", description: "a\udc00b" }, ["title", "description"]],
  [{ ...DRAFT, task_type: 5 }, ["task_type"]],
  [{ ...DRAFT, creator_node: "a b" }, ["creator_node"]],
  [{ ...DRAFT, creator_node: "" }, ["creator_node"]],
  [{ ...DRAFT, lux_reward: -1 }, ["lux_reward"]],
  [{ ...DRAFT, lux_reward: 0.0000001 }, ["lux_reward"]],
  [{ ...DRAFT, lux_reward: 1.0000001 }, ["lux_reward"]],
  [{ ...DRAFT, lux_reward: 1_000_000_000.5 }, ["lux_reward"]],
  [{ ...DRAFT, lux_reward: "5" }, ["lux_reward"]],
  [{ ...DRAFT, lux_reward: true }, ["lux_reward"]],
  [
    { title: 1, description: 2, task_type: 3, priority: 4, creator_node: 5, lux_reward: "6" },
    ["title", "description", "task_type", "priority", "creator_node", "lux_reward"],
  ],
] as const;
once.test("create refuses missing, blank, too long and wrongly typed fields, all at once", async () => {
  await using hub = await startHub({ variants: ["A"] });
  for (const [body, paths] of BAD_DRAFTS) await badFields(hub.post("/task/create", body), paths);
  expect(await ok(hub.get("/task/list"))).toMatchObject({ tasks: [], total: 0 });
});

once.test("create accepts values exactly at the limits", async () => {
  await using hub = await startHub();
  const fields = { title: "🦊".repeat(250), description: "ä".repeat(32 * 1024) };
  expect(await hub.taskOf(await hub.addTask(fields))).toMatchObject(fields);
});

const IDS = { task_id: NO_ID, node_id: "n1" };
const PARTS = ["result.problem", "result.improvement", "result.lesson"];
const BAD = [
  [{}, ["task_id", "node_id", "result"]],
  [IDS, ["result"]],
  [{ ...IDS, result: null }, ["result"]],
  [{ ...IDS, result: "done" }, ["result"]],
  [{ ...IDS, result: ["a", "b", "c"] }, ["result"]],
  [{ ...IDS, result: {} }, PARTS],
  [{ ...IDS, result: { problem: "p" } }, PARTS.slice(1)],
  [{ ...IDS, result: { problem: "p", improvement: "i" } }, ["result.lesson"]],
  [{ ...IDS, result: { problem: "p", lesson: "l" } }, ["result.improvement"]],
  [{ ...IDS, result: { improvement: "i", lesson: "l" } }, ["result.problem"]],
  [{ ...IDS, result: { problem: "", improvement: " ", lesson: "\t\n" } }, PARTS],
  [{ ...IDS, result: { problem: 1, improvement: null, lesson: ["l"] } }, PARTS],
  [{ ...IDS, result: { ...RESULT, lesson: "x".repeat(64 * 1024 + 1) } }, ["result.lesson"]],
  [{ ...IDS, result: { ...RESULT, problem: "\0" } }, ["result.problem"]],
  [{ ...IDS, result: { ...RESULT, improvement: "\udfff" } }, ["result.improvement"]],
  [{ node_id: "", result: {} }, ["task_id", "node_id", ...PARTS]],
] as const;
once.test("refuses an incomplete result and names every bad field", async () => {
  await using hub = await startHub();
  for (const [body, paths] of BAD) {
    await badFields(hub.post("/task/complete", body), paths);
    await badFields(hub.post("/task/complete", body, { variant: "B" }), paths);
  }
});

for (const variant of VARIANTS)
  (variant === "A" ? test : once.test)(
    `on ${variant} the further keys of a result are kept and answered with the values they had`,
    async () => {
      await using hub = await startHub();
      await hub.addNode("n1");
      const taskId = await hub.addTaskOf("n1", { lux_reward: 5 });
      const further =
        '"output":{"tokens":12345678901234567890,"share":0.12345678901234567890123,"far":1e400},"list":[1,null,true,' +
        '"ä\\u0000\\ud800"],"extra":"x","__proto__":{"a":1},"null":null';
      const texts = JSON.stringify(RESULT).slice(1, -1);
      const send = (keys: string) =>
        hub.post("/task/complete", `{"task_id":"${taskId}","node_id":"n1","result":{${keys}}}`, {
          variant,
        });
      await ok(send(`${texts},${further}`));
      const headers = { "X-Matrix-Secret": SECRET };
      for (const shown of VARIANTS) {
        const answer = await (await fetch(`${hub.base(shown)}/api/v1/task/list`, { headers })).text();
        expect(answer).toContain(`"result":{${texts},${further}}`);
      }
      const sameValues = further.replace("1e400", "10e399").replace('"list":[1,', '"list":[1.0,');
      expect(await ok(send(`${sameValues},${texts}`))).toMatchObject({ lux_paid: 5 });
      for (const other of [further.replace("567890,", "567891,"), '"output":1', ""]) {
        const keys = [texts, other].filter((part) => part !== "").join();
        await refused(send(keys), 409, "task_completed");
      }
      expect(await hub.nodeOf("n1")).toMatchObject({ lux_balance: 5 });
    },
  );

once.test("accepts further keys of a result of 64 KiB together, and no more", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const taskId = await hub.addTaskOf("n1");
  const send = (extra: object) =>
    hub.post("/task/complete", { task_id: taskId, node_id: "n1", result: { ...RESULT, ...extra } });
  const most = 64 * 1024 - '{"a":"","b":1}'.length;
  await badFields(send({ a: "x".repeat(most + 1), b: 1 }), ["result"]);
  await badFields(send({ a: "\u0001".repeat(most / 6 + 1), b: 1 }), ["result"]);
  let deep: unknown = 1;
  for (let level = 0; level < 64; level++) deep = [deep];
  await badFields(send({ deep }), ["result"]);
  await ok(send({ a: "x".repeat(most), b: 1 }));
  const { result } = await hub.taskOf(taskId);
  expect(result).toEqual({ ...RESULT, a: "x".repeat(most), b: 1 });
});

once.test("accepts result texts of 64 KiB each", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const taskId = await hub.addTaskOf("n1");
  const text = "ä".repeat(32 * 1024);
  const result = { problem: text, improvement: text, lesson: text };
  await ok(hub.post("/task/complete", { task_id: taskId, node_id: "n1", result }));
  expect(await hub.taskOf(taskId)).toMatchObject({ result });
});

describe("filtered by creator, type and title", () => {
  let hub: TestHub;
  let ids: readonly string[];

  beforeAll(async () => {
    hub = await startHub();
    await hub.addNode("n1");
    const drafts = [
      { title: "Fix the login page", creator_node: "boss", task_type: "coding" },
      { title: "Überblick: Login, v1.5", creator_node: "boss", task_type: "research" },
      { title: "Write a blog about logins", creator_node: "n1", task_type: "coding" },
      { title: "\u767b\u5f55\u9875\u9762", creator_node: "n1" },
      { title: "nothing" },
    ];
    const made: string[] = [];
    for (const draft of drafts) made.push(await hub.addTask(draft));
    ids = made;
    await ok(hub.post("/task/claim", { task_id: ids[0], node_id: "n1" }));
    await ok(hub.complete(ids[0] ?? "", "n1"));
    await ok(hub.post("/task/cancel", { task_id: ids[2] }));
  });
  afterAll(() => hub.close());

  const cases: readonly (readonly [query: string, tasks: readonly number[]])[] = [
    ["creator_node=boss", [1, 0]],
    ["creator_node=ghost", []],
    ["creator_node=", [4, 3, 2, 1, 0]],
    ["task_type=coding", [2, 0]],
    ["task_type=%20coding%20", [2, 0]],
    ["task_type=cod", []],
    ["status=failed", [2]],
    ["task_type=coding&status=failed", [2]],
    ["task_type=coding&status=completed", [0]],
    ["task_type=coding&status=pending", []],
    ["creator_node=boss&task_type=coding", [0]],
    ["creator_node=boss&status=pending", [1]],
    ["creator_node=boss&node_id=n1", [0]],
    ["task_type=research&node_id=n1", []],
    ["q=login", [2, 1, 0]],
    ["q=LOG", [2, 1, 0]],
    ["q=log%20pa", [0]],
    ["q=ogin", []],
    ["q=u%CC%88ber", [1]],
    ["q=1.5", []],
    ["q=5%20V1", [1]],
    ["q=v1.5", [1]],
    ["q=%E9%A1%B5", [3]],
    ["q=login&status=failed", [2]],
    ["q=login&creator_node=boss&task_type=research&status=open&per_page=1", [1]],
    ["q=login&node_id=n1", [0]],
  ];
  for (const variant of VARIANTS)
    test(`on ${variant}`, async () => {
      for (const [query, tasks] of cases) {
        const body = await ok(hub.get(`/task/list?per_page=50&${query}`, { variant }));
        expect({ query, ids: pick(body, "tasks", "task_id"), total: body["total"] }).toEqual({
          query,
          ids: tasks.map((at) => ids[at]),
          total: tasks.length,
        });
        expect(body).toMatchObject({ page: 1, pages: Math.min(1, tasks.length), next_cursor: null });
      }
    });

  once.test("B has the unfinished tasks first", async () => {
    const listed = async (query: string) =>
      pick(await ok(hub.get(`/task/list?${query}`, { variant: "B" })), "tasks", "task_id");
    expect(await listed("q=login")).toEqual([ids[1], ids[2], ids[0]]);
    expect(await listed("task_type=coding&creator_node=boss")).toEqual([ids[0]]);
  });

  once.test("names the invalid fields", async () => {
    const bad = async (query: string, path: string) => badFields(hub.get(`/task/list?${query}`), [path]);
    await bad("q=%2B%2B", "q");
    await bad(`q=${"a".repeat(SEARCH_MAX_CHARS + 1)}`, "q");
    await bad("creator_node=a%20b", "creator_node");
    await bad(`task_type=${"a".repeat(101)}`, "task_type");
    for (const cursor of ["x", "MS4x!", "LTEuMQ", "MS4xLjE", "enp6enp6enp6enouMQ"])
      await bad(`cursor=${cursor}`, "cursor");
    await bad(`q=a&per_page=50&page=${LIST_SCANNED_MAX / 50 + 1}`, "page");
    await ok(hub.get(`/task/list?q=a&per_page=50&page=${LIST_SCANNED_MAX / 50}`));
  });
});

for (const query of [
  "",
  "&creator_node=boss",
  "&task_type=coding",
  "&q=title",
  "&status=pending",
  "&status=pending&q=title",
])
  (query.length === 0 || query.includes("&q=") ? test : once.test)(
    `goes on by cursor while tasks come, change and go${query === "" ? "" : `: ${query}`}`,
    async () => {
      await using hub = await startHub();
      await hub.addNode("n1");
      const draft = { title: "a title", creator_node: "boss", task_type: "coding" };
      const add = () => hub.addTask(draft);
      const ids: string[] = [];
      for (let i = 0; i < 9; i++) ids.push(await add());
      const seen: unknown[] = [];
      let cursor: unknown = null;
      for (let step = 0; cursor !== null || step === 0; step++) {
        const from = step === 0 ? "" : `&cursor=${String(cursor)}`;
        const body = await ok(hub.get(`/task/list?per_page=2${query}${from}`));
        if (step > 0) expect(body).toMatchObject({ page: null, total: null, pages: null, per_page: 2 });
        seen.push(...pick(body, "tasks", "task_id"));
        cursor = body["next_cursor"];
        if (step > 2) continue;
        await add();
        await ok(hub.admin("/task/delete", { task_id: seen.at(-1) })); // where the cursor is
        await ok(hub.post("/task/claim", { task_id: ids[step], node_id: "n1" }));
      }
      expect(seen).toEqual(ids.toReversed());
      const last = await ok(hub.get(`/task/list?page=2&per_page=3${query}`));
      await badFields(hub.get(`/task/list?page=2&cursor=${String(last["next_cursor"])}`), ["page"]);
      const rest = await ok(hub.get(`/task/list?cursor=${String(last["next_cursor"])}`, { variant: "B" }));
      expect(rest).toMatchObject({ per_page: 500, next_cursor: null });
    },
  );
