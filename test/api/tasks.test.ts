/**
 * Tasks: every command in every state, accepted and refused input, rewards, lists, pull and stats. variants.test.ts tests
 * the differences between the variants, balancer.test.ts the balancer.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { LIST_SCANNED_MAX, SEARCH_MAX_CHARS } from "../../src/domain/limits.ts";
import { SECRET, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { ISO, NO_ID, RESULT, VARIANTS, badFields, list, ok, pick, record, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);

const DRAFT = { title: "Title", description: "Description" };

describe("create", () => {
  test("answers all fields of the task", async () => {
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

  once.test("fills in defaults", async () => {
    await using hub = await startHub();
    const { task } = await ok(hub.post("/task/create", DRAFT));
    expect(task).toMatchObject({ priority: 1, lux_reward: 0, task_type: null, creator_node: null });
  });

  once.test("creates a new task at every call, each with its own id", async () => {
    await using hub = await startHub();
    const ids = await Promise.all(Array.from({ length: 20 }, () => hub.addTask()));
    expect(new Set(ids).size).toBe(20);
    expect(await ok(hub.get("/status"))).toMatchObject({ tasks_count: 20 });
  });

  test("keeps text unchanged", async () => {
    await using hub = await startHub();
    const texts = { title: "  Größe 🦊 \u0001\t", description: 'a"b\\c\n\u2028<script>' };
    const taskId = await hub.addTask(texts);
    expect(await hub.taskOf(taskId)).toMatchObject(texts);
  });

  const BAD = [
    [{}, ["title", "description"]],
    [{ title: "x" }, ["description"]],
    [{ title: "", description: " \n" }, ["title", "description"]],
    [{ title: 5, description: null }, ["title", "description"]],
    [{ title: ["x"], description: { x: 1 } }, ["title", "description"]],
    [{ ...DRAFT, title: "x".repeat(501) }, ["title"]],
    [{ ...DRAFT, description: "x".repeat(64 * 1024 + 1) }, ["description"]],
    [{ ...DRAFT, description: "ä".repeat(32 * 1024 + 1) }, ["description"]],
    [
      { ...DRAFT, title: "a\0b", description: "a\0b", task_type: "\0" },
      ["title", "description", "task_type"],
    ],
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
  once.test("refuses missing, blank, too long and wrongly typed fields, all at once", async () => {
    await using hub = await startHub({ variants: ["A"] });
    for (const [body, paths] of BAD) await badFields(hub.post("/task/create", body), paths);
    expect(await ok(hub.get("/task/list"))).toMatchObject({ tasks: [], total: 0 });
  });

  once.test("accepts values exactly at the limits", async () => {
    await using hub = await startHub();
    const fields = { title: "🦊".repeat(250), description: "ä".repeat(32 * 1024) };
    expect(await hub.taskOf(await hub.addTask(fields))).toMatchObject(fields);
  });

  once.test("stores a reward exactly", async () => {
    await using hub = await startHub();
    for (const lux_reward of [0, 0.000001, 0.1, 0.3, 1.1, 123456.789012, 999_999_999.999999, 1_000_000_000]) {
      expect(await hub.taskOf(await hub.addTask({ lux_reward }))).toMatchObject({ lux_reward });
    }
  });
});

describe("assign and claim", () => {
  once.test.each(["assign", "claim"])(
    "%s answers as create does, and a repeat answers the same",
    async (verb) => {
      await using hub = await startHub();
      await hub.addNode("n1");
      const taskId = await hub.addTask();
      const body = { task_id: taskId, node_id: "n1" };
      const first = await ok(hub.post(`/task/${verb}`, body));
      expect(first).toMatchObject({ task_id: taskId, status: "assigned", assigned_node: "n1" });
      expect(record(first["task"])).toEqual(await hub.taskOf(taskId));
      hub.clock.pass(5_000);
      expect(await ok(hub.post(`/task/${verb}`, body))).toEqual(first);
      expect(await hub.eventKinds(taskId)).toEqual(["task.created", "task.assigned"]);
      expect(await hub.nodeOf("n1")).toMatchObject({ tasks_assigned: 1, tasks_completed: 0 });
    },
  );

  once.test.each(["assign", "claim"])("%s names every bad field", async (verb) => {
    await using hub = await startHub({ variants: ["A"] });
    await badFields(hub.post(`/task/${verb}`, {}), ["task_id", "node_id"]);
    await badFields(hub.post(`/task/${verb}`, { task_id: 1, node_id: 2 }), ["task_id", "node_id"]);
    await badFields(hub.post(`/task/${verb}`, { task_id: "", node_id: "" }), ["task_id", "node_id"]);
    await badFields(hub.post(`/task/${verb}`, { task_id: "x\0", node_id: "a/b" }), ["task_id", "node_id"]);
    await badFields(hub.post(`/task/${verb}`, { task_id: NO_ID, node_id: "x".repeat(129) }), ["node_id"]);
  });

  once.test("any string is a valid task_id to ask for", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    for (const task_id of ["x", "' OR 1=1 --", "ä 🦊"]) {
      await refused(hub.post("/task/claim", { task_id, node_id: "n1" }), 404, "task_not_found");
    }
  });

  once.test("a node may claim a task outside its capabilities", async () => {
    await using hub = await startHub();
    await hub.addNode("n1", { capabilities: "research" });
    const taskId = await hub.addTask({ task_type: "coding" });
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
  });
});

describe("complete", () => {
  test("stores the result, pays the reward and answers both", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTaskOf("n1", { lux_reward: 2.000001 });
    hub.clock.pass(60_000);
    expect(await ok(hub.complete(taskId, "n1"))).toEqual({
      success: true,
      status: "completed",
      lux_paid: 2.000001,
      receipt: {
        entry_id: expect.any(String),
        amount: 2.000001,
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
      task_id: taskId,
    });
    const task = await hub.taskOf(taskId);
    expect(task).toMatchObject({ status: "completed", assigned_node: "n1", result: RESULT, attempts: 0 });
    const tookMs = Date.parse(String(task["updated_at"])) - Date.parse(String(task["created_at"]));
    expect(tookMs).toBeGreaterThanOrEqual(60_000);
    expect(await hub.nodeOf("n1")).toMatchObject({
      lux_balance: 2.000001,
      tasks_assigned: 0,
      tasks_completed: 1,
    });
    const life = ["task.created", "task.assigned", "task.completed", "lux.paid"];
    expect(await hub.eventKinds(taskId)).toEqual(life);
  });

  once.test("a repeat with the same result answers the same and pays nothing more", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTaskOf("n1", { lux_reward: 5 });
    const first = await ok(hub.complete(taskId, "n1"));
    const before = await hub.taskOf(taskId);
    expect(await ok(hub.complete(taskId, "n1"))).toEqual(first);
    const reordered = {
      lesson: RESULT.lesson,
      problem: RESULT.problem,
      improvement: RESULT.improvement,
    };
    const body = { task_id: taskId, node_id: "n1", result: reordered };
    expect(await ok(hub.post("/task/complete", body, { variant: "B" }))).toEqual(first);
    expect(await hub.taskOf(taskId)).toEqual(before);
    expect(await hub.nodeOf("n1")).toMatchObject({ lux_balance: 5, tasks_completed: 1 });
    expect((await hub.eventKinds()).filter((kind) => kind === "lux.paid")).toHaveLength(1);
  });

  once.test("another result is refused and changes nothing", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTaskOf("n1", { lux_reward: 5 });
    await ok(hub.complete(taskId, "n1"));
    for (const part of ["problem", "improvement", "lesson"]) {
      const result = { ...RESULT, [part]: "something else" };
      const again = hub.post("/task/complete", { task_id: taskId, node_id: "n1", result });
      await refused(again, 409, "task_completed");
    }
    expect(await hub.taskOf(taskId)).toMatchObject({ result: RESULT });
    expect(await hub.nodeOf("n1")).toMatchObject({ lux_balance: 5 });
  });

  once.test("a task without a reward pays 0 and leaves no entry", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTaskOf("n1");
    expect(await ok(hub.complete(taskId, "n1"))).toMatchObject({ lux_paid: 0 });
    expect(await ok(hub.get("/lux/ledger?node_id=n1"))).toMatchObject({ entries: [], total: 0 });
    expect(await hub.eventKinds(taskId)).not.toContain("lux.paid");
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
});

describe("revoke", () => {
  test("reopens the task for the next claim", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    const taskId = await hub.addTaskOf("n1");
    const body = await ok(hub.admin("/task/revoke", { task_id: taskId, reason: "too slow" }));
    expect(body).toMatchObject({ task_id: taskId, status: "open", assigned_node: null });
    expect(record(body["task"])).toEqual(await hub.taskOf(taskId));
    expect(await hub.nodeOf("n1")).toMatchObject({ tasks_assigned: 0 });
    await refused(hub.complete(taskId, "n1"), 409, "task_not_assigned");
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n2" }));
    const kinds = ["task.created", "task.assigned", "task.revoked", "task.assigned"];
    expect(await hub.eventKinds(taskId)).toEqual(kinds);
    const [revoked] = list(await ok(hub.get("/events?since=0&kind=task.revoked")), "events");
    expect(revoked).toMatchObject({ node_id: "n1", task_id: taskId, data: { reason: "too slow" } });
    expect(await hub.taskOf(taskId)).toMatchObject({ attempts: 0 });
  });

  once.test("reassigns the task to another node in one step", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    const taskId = await hub.addTaskOf("n1");
    const body = await ok(hub.admin("/task/revoke", { task_id: taskId, node_id: "n2" }));
    expect(body).toMatchObject({ status: "assigned", assigned_node: "n2", task: { assigned_node: "n2" } });
    expect(await hub.nodeOf("n1")).toMatchObject({ tasks_assigned: 0 });
    expect(await hub.nodeOf("n2")).toMatchObject({ tasks_assigned: 1 });
    await refused(hub.complete(taskId, "n1"), 403, "not_assigned_to_node");
    await ok(hub.complete(taskId, "n2"));
  });

  once.test("names every bad field", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await badFields(hub.admin("/task/revoke", {}), ["task_id"]);
    const bad = { task_id: 5, node_id: "a b", reason: 7 };
    await badFields(hub.admin("/task/revoke", bad), ["task_id", "node_id", "reason"]);
  });
});

describe("delete", () => {
  test("deletes the task in any state; LUX stays paid", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const open = await hub.addTask();
    const assigned = await hub.addTaskOf("n1");
    const done = await hub.addTaskOf("n1", { lux_reward: 4 });
    await ok(hub.complete(done, "n1"));
    for (const task_id of [open, assigned, done]) {
      expect(await ok(hub.admin("/task/delete", { task_id }))).toEqual({ success: true, task_id });
      await refused(hub.admin("/task/delete", { task_id }), 404, "task_not_found");
      expect((await hub.eventKinds(task_id)).at(-1)).toBe("task.deleted");
    }
    expect(await ok(hub.get("/task/list"))).toMatchObject({ tasks: [], total: 0, pages: 0 });
    const stats = await ok(hub.get("/task/stats"));
    expect(stats).toMatchObject({ total: 0, by_status: { open: 0, assigned: 0, completed: 0 } });
    expect(await hub.nodeOf("n1")).toMatchObject({ tasks_assigned: 0, lux_balance: 4 });
    const ledger = await ok(hub.get("/lux/ledger?node_id=n1"));
    expect(pick(ledger, "entries", "task_id")).toEqual([done]);
  });

  once.test("requires a task_id", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await badFields(hub.admin("/task/delete", {}), ["task_id"]);
    await badFields(hub.admin("/task/delete", { task_id: null }), ["task_id"]);
  });
});

describe("batch-assign of A", () => {
  test("answers for each item, in the order of the request", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    const [open, taken, later] = [await hub.addTask(), await hub.addTaskOf("n2"), await hub.addTask()];
    const done = await hub.addTaskOf("n1");
    await ok(hub.complete(done, "n1"));
    const asked = [
      [later, "n2", null],
      [taken, "n1", "task_not_open"],
      [NO_ID, "n1", "task_not_found"],
      [open, "ghost", "node_not_found"],
      [done, "n1", "task_completed"],
      [open, "n1", null],
      [open, "n1", null],
      [open, "n2", "task_not_open"],
      [taken, "n2", null],
    ] as const;
    const assignments = asked.map(([task_id, node_id]) => ({ task_id, node_id }));
    const body = await ok(hub.post("/task/batch-assign", { assignments }));
    expect(body["results"]).toEqual(
      asked.map(([task_id, node_id, error]) => ({ task_id, node_id, success: error === null, error })),
    );
    expect(await hub.taskOf(open)).toMatchObject({ assigned_node: "n1" });
    expect(await hub.nodeOf("n1")).toMatchObject({ tasks_assigned: 1 });
    expect(await hub.nodeOf("n2")).toMatchObject({ tasks_assigned: 2 });
    expect(await hub.eventKinds(open)).toEqual(["task.created", "task.assigned"]);
  });

  once.test("accepts 1 to 500, and names bad items by index", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const item = { task_id: NO_ID, node_id: "n1" };
    const many = (count: number) => ({ assignments: Array.from({ length: count }, () => item) });
    expect(list(await ok(hub.post("/task/batch-assign", many(500))), "results")).toHaveLength(500);
    await badFields(hub.post("/task/batch-assign", many(0)), ["assignments"]);
    await badFields(hub.post("/task/batch-assign", many(501)), ["assignments"]);
    await badFields(hub.post("/task/batch-assign", { assignments: item }), ["assignments"]);
    const bad = [item, { task_id: 1 }, "x", { ...item, node_id: "a b" }];
    await badFields(hub.post("/task/batch-assign", { assignments: bad }), [
      "assignments.1.task_id",
      "assignments.1.node_id",
      "assignments.2",
      "assignments.3.node_id",
    ]);
  });
});

describe("list", () => {
  once.test("is newest first, also when an older task changes", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const ids = [await hub.addTask(), await hub.addTask(), await hub.addTask()];
    await ok(hub.post("/task/claim", { task_id: ids[0], node_id: "n1" }));
    expect(pick(await ok(hub.get("/task/list")), "tasks", "task_id")).toEqual(ids.toReversed());
  });

  test("filters by node, also together with a status, and counts the matching tasks", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    const open = await hub.addTask();
    const assigned = await hub.addTaskOf("n1");
    const done = await hub.addTaskOf("n1");
    await ok(hub.complete(done, "n1"));
    const other = await hub.addTaskOf("n2");
    const listed = async (query: string) => {
      const body = await ok(hub.get(`/task/list?${query}`));
      const ids = pick(body, "tasks", "task_id");
      expect(body).toMatchObject({ total: ids.length, pages: ids.length === 0 ? 0 : 1 });
      return ids;
    };
    expect(await listed("")).toEqual([other, done, assigned, open]);
    expect(await listed("node_id=n1")).toEqual([done, assigned]);
    expect(await listed("node_id=n1&status=assigned")).toEqual([assigned]);
    expect(await listed("node_id=n1&status=pending")).toEqual([assigned]);
    expect(await listed("node_id=n1&status=completed")).toEqual([done]);
    expect(await listed("node_id=n1&status=open")).toEqual([]);
    expect(await listed("node_id=ghost")).toEqual([]); // in a filter an unknown node is no error
    expect(await listed("status=completed&unknown=1")).toEqual([done]);
    await badFields(hub.get("/task/list?node_id=a%20b"), ["node_id"]);
  });

  once.test("has pages without overlaps and gaps", async () => {
    await using hub = await startHub();
    const ids: string[] = [];
    for (let i = 0; i < 7; i++) ids.push(await hub.addTask());
    const seen: unknown[] = [];
    for (let page = 1; page <= 4; page++) {
      const body = await ok(hub.get(`/task/list?page=${page}&per_page=2`));
      expect(body).toMatchObject({ page, per_page: 2, total: 7, pages: 4 });
      seen.push(...pick(body, "tasks", "task_id"));
    }
    expect(seen).toEqual(ids.toReversed());
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

  test("is never stale: it contains every acknowledged task", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    for (let i = 0; i < 10; i++) {
      const taskId = await hub.addTask();
      expect(await hub.taskOf(taskId)).toMatchObject({ status: "open" });
      await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
      expect(await hub.taskOf(taskId, "B")).toMatchObject({ assigned_node: "n1" });
    }
  });
});

describe("pull", () => {
  test("lists the tasks that the node could claim, by priority, then by age", async () => {
    await using hub = await startHub();
    await hub.addNode("any");
    await hub.addNode("coder", { capabilities: "coding, review" });
    await hub.addNode("painter", { capabilities: ["painting"] });
    const low = await hub.addTask({ priority: 2 });
    const background = await hub.addTask({ priority: "p5", task_type: "coding" });
    const medium = await hub.addTask({ task_type: "review" });
    const medium2 = await hub.addTask();
    const high = await hub.addTask({ priority: 0, task_type: "coding" });
    await hub.addTaskOf("any", { priority: 0 });
    const pulled = async (nodeId: string, more = "") =>
      pick(await ok(hub.get(`/task/pull?node_id=${nodeId}${more}`)), "tasks", "task_id");
    expect(await pulled("any")).toEqual([high, medium, medium2, low, background]);
    expect(await pulled("coder")).toEqual([high, medium, medium2, low, background]);
    expect(await pulled("painter")).toEqual([medium2, low]);
    expect(await pulled("any", "&limit=2")).toEqual([high, medium]);
    await ok(hub.post("/task/claim", { task_id: high, node_id: "coder" }));
    expect(await pulled("any", "&limit=2")).toEqual([medium, medium2]);
  });

  once.test("answers 20 by default", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await Promise.all(Array.from({ length: 25 }, () => hub.addTask()));
    const count = async (more: string) =>
      list(await ok(hub.get(`/task/pull?node_id=n1${more}`)), "tasks").length;
    expect(await count("")).toBe(20);
    expect(await count("&limit=25")).toBe(25);
  });

  once.test("requires a registered node and a limit above 0", async () => {
    await using hub = await startHub();
    await refused(hub.get("/task/pull?node_id=ghost"), 404, "node_not_found");
    await badFields(hub.get("/task/pull"), ["node_id"]);
    await badFields(hub.get("/task/pull?limit=0"), ["node_id", "limit"]);
    await badFields(hub.get("/task/pull?node_id=n1&limit=x"), ["limit"]);
  });

  once.test.each(["A", "B"] as const)("a POST is 405 on %s", async (variant) => {
    await using hub = await startHub();
    const answer = await refused(hub.post("/task/pull", {}, { variant }), 405, "method_not_allowed");
    expect(answer.headers.get("allow")).toBe("GET, HEAD");
  });
});

describe("stats", () => {
  test("ranks at most ten nodes by completed tasks, then by LUX from rewards", async () => {
    await using hub = await startHub();
    const work = async (nodeId: string, rewards: readonly number[]) => {
      await hub.addNode(nodeId);
      for (const lux_reward of rewards) {
        await ok(hub.complete(await hub.addTaskOf(nodeId, { lux_reward }), nodeId));
      }
    };
    await work("two-rich", [5, 5.5]);
    await work("three", [0, 0, 0]);
    await work("two-poor", [1, 0]);
    await work("idle", []);
    await ok(hub.post("/signin", { node_id: "three" }));
    await ok(hub.post("/signin", { node_id: "idle" }));
    expect(await ok(hub.get("/task/stats"))).toEqual({
      success: true,
      total: 7,
      by_status: { open: 0, assigned: 0, completed: 7, failed: 0 },
      top_nodes: [
        { node_id: "three", completed: 3, lux_earned: 0 },
        { node_id: "two-rich", completed: 2, lux_earned: 10.5 },
        { node_id: "two-poor", completed: 2, lux_earned: 1 },
      ],
    });
    for (let i = 0; i < 9; i++) await work(`one-${i}`, [i]);
    const top = list(await ok(hub.get("/task/stats")), "top_nodes");
    expect(top).toHaveLength(10);
    expect(top.slice(3).map((node) => node["node_id"])).toEqual([8, 7, 6, 5, 4, 3, 2].map((i) => `one-${i}`));
  });
});
