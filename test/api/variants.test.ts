/**
 * The two variants on one store: both have every endpoint, and differ only as docs/api.md says. A difference that is not
 * tested here is a defect.
 */
import { describe, expect, test } from "bun:test";
import { AnswerTokens } from "../../src/service/answer-tokens.ts";
import { hashSecret } from "../../src/service/keys.ts";
import { slowHash } from "../../src/lib/slow-hash.ts";
import { ENDPOINTS } from "../../src/api/routes.ts";
import { fileEndpoints } from "../../src/api/files.ts";
import { invitationEndpoints } from "../../src/api/invitations.ts";
import { ADMIN_KEY, type Answer, SECRET, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { RESULT, VARIANTS, type VariantName, badFields, list, ok, pick, record, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);
const INVITATION_ENDPOINTS = invitationEndpoints(() => ({ url: "", otherUrls: [], pin: null }));

describe("every endpoint on both variants", () => {
  /** Calls everything once with success. The answers, by method and path. */
  async function tour(variant: VariantName): Promise<Map<string, Answer["body"]>> {
    await using hub = await startHub();
    const seen = new Map<string, Answer["body"]>();
    const get = async (path: string, query = "") => {
      seen.set(`GET ${path}`, await ok(hub.get(path + query, { variant })));
    };
    const post = async (path: string, body: unknown, call: "post" | "admin" = "post") => {
      const answer = await ok(hub[call](path, body, { variant }));
      seen.set(`POST ${path}`, answer);
      return answer;
    };

    await post("/node/register", {
      node_id: "n1",
      name: "One",
      host: "10.0.0.1",
      port: 80,
      capabilities: "x",
    });
    await post("/node/heartbeat", { node_id: "n1" });
    await post("/task/create", { title: "t", description: "d", lux_reward: 2, task_type: "other" });
    // Tasks for the rest of the tour are made through A, where nobody takes them away.
    const [first, second, third] = [await hub.addTask(), await hub.addTask(), await hub.addTask()];
    await get("/task/pull", "?node_id=n1");
    await post("/task/assign", { task_id: first, node_id: "n1" });
    await post("/task/claim", { task_id: second, node_id: "n1" });
    await post("/task/complete", { task_id: first, node_id: "n1", result: RESULT });
    await post("/task/revoke", { task_id: second, reason: "why not" }, "admin");
    const batch = { assignments: [{ task_id: third, node_id: "n1" }] };
    await post("/task/batch-assign", variant === "A" ? batch : undefined);
    await post("/task/delete", { task_id: second }, "admin");
    const fourth = await hub.addTask();
    for (const step of ["extend", "release", "fail"]) {
      await ok(hub.post("/task/claim", { task_id: fourth, node_id: "n1" }));
      await post(`/task/${step}`, {
        task_id: fourth,
        node_id: "n1",
        ...(step === "fail" && { error: "e", retry: false }),
      });
    }
    await post("/task/retry", { task_id: fourth });
    const running = await hub.addTask();
    await ok(hub.post("/task/claim", { task_id: running, node_id: "n1" }));
    await post("/task/output", { task_id: running, node_id: "n1", offset: 0, data: "one" });
    const output = await ok(hub.get(`/task/${running}/output`, { variant }));
    seen.set("GET /task/:task_id/output", output);
    await ok(hub.admin("/task/delete", { task_id: running }));
    await ok(hub.post("/task/claim", { task_id: fourth, node_id: "n1" }));
    const asking = { task_id: fourth, node_id: "n1", question: "which?", choices: ["this", "that"] };
    const { question } = await post("/task/ask", asking);
    await get("/questions");
    const { question_id } = record(question);
    await post("/task/answer", { task_id: fourth, question_id, answer: "that" });
    const tokens = new AnswerTokens({ derive: (...by) => slowHash(SECRET, ...by) }, hub.clock);
    const of = { taskId: fourth, questionId: String(question_id), until: hub.clock.now() + 60_000 };
    await post("/task/answer-by-token", { token: await tokens.issue(of, 1) });
    seen.set("GET /task/:task_id/questions", await ok(hub.get(`/task/${fourth}/questions`, { variant })));
    const checked = await hub.addTask({ review: "creator", creator_node: "boss" });
    await ok(hub.post("/task/claim", { task_id: checked, node_id: "n1" }));
    await ok(hub.post("/task/complete", { task_id: checked, node_id: "n1", result: RESULT }));
    await get("/reviews");
    await post("/task/review", { task_id: checked, verdict: "reject", note: "Again." });
    await ok(hub.admin("/task/delete", { task_id: checked }));
    await post("/task/next", { node_id: "n1", task_types: ["none"] });
    const waits = await post("/task/create", { title: "t", description: "d", unique_key: "k", delay_s: 60 });
    await post("/task/update", { task_id: waits["task_id"], priority: 0 });
    await ok(hub.admin("/task/delete", { task_id: waits["task_id"] }));
    await post("/task/cancel", { task_id: fourth, reason: "enough" });
    seen.set("GET /task/:task_id", await ok(hub.get(`/task/${fourth}`, { variant })));
    await get("/task/wait", `?task_ids=${fourth}`);
    seen.set("GET /task/:task_id/graph", await ok(hub.get(`/task/${fourth}/graph`, { variant })));
    seen.set("GET /task/:task_id/inputs", await ok(hub.get(`/task/${fourth}/inputs`, { variant })));
    await get("/lessons");
    await get("/task/list");
    await get("/task/count");
    await get("/stats/types");
    await get("/stats/failures");
    await get("/task/stats");
    await ok(hub.post("/node/register", { node_id: "n2", name: "Two", auto_assign: false }, { variant }));
    await post("/node/drain", { node_id: "n2", drain: true });
    await post("/node/leave", { node_id: "n2" });
    await post("/node/delete", { node_id: "n2" }, "admin");

    const sent = await post("/message/send", {
      from_node: "op",
      to_node: "n1",
      content: "hi",
      require_ack: true,
    });
    await get("/agent/messages", "?node_id=n1");
    await post("/message/receive", { node_id: "n1" });
    await post("/message/ack", { node_id: "n1", message_id: sent["message_id"] });
    await post("/agent/ack", { node_id: "n1", message_id: sent["message_id"] });
    await post("/message/broadcast", { from_node: "op", content: "all" });
    await post("/agent/message", { from_node: "op", to_node: "n1", content: "hi" });
    await post("/agent/broadcast", { from_node: "op", content: "all" });
    await get("/message/history", "?node_id=n1");
    const worn = { from_node: "op", to_node: "n1", content: "hi", require_ack: true };
    const { message_id } = await ok(hub.post("/message/send", worn));
    for (let i = 0; i < 6; i++) {
      await ok(hub.post("/message/receive", { node_id: "n1", count: 1_000 }));
      hub.clock.pass(30_000);
      await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
      await hub.sweep();
    }
    await get("/message/parked", "?node_id=n1");
    await post("/message/redrive", { node_id: "n1", message_id });

    const note = { key: "k", node_id: "n1" };
    await post("/note/put", { ...note, text: "words", if_version: 0 });
    await get("/note/get", "?key=k");
    await get("/note/list");
    await get("/note/search", "?q=wor");
    await post("/note/delete", { ...note, if_version: 1 });
    const lease = { name: "src/**", node_id: "n1" };
    await post("/lease/acquire", lease);
    await post("/lease/renew", { ...lease, ttl_s: 60 });
    await get("/lease/list");
    await post("/lease/release", lease);

    await post("/signin", { node_id: "n1" });
    await get("/lux/ledger", "?node_id=n1");
    await get("/lux/top", "?since=2020-01-01T00:00:00Z");
    await get("/lux/entries");
    await get("/lux/head");
    const { secret: spender } = await ok(hub.admin("/key/add", { name: "spender", node_id: "n1" }));
    const headers = { "X-Matrix-Secret": String(spender) };
    const costly = { task_id: await hub.addTask(), node_id: "n1" };
    await ok(hub.post("/task/claim", costly, { headers }));
    const usage = [{ seq: 1, model: "m", input_tokens: 1, output_tokens: 1 }];
    await ok(hub.post("/task/complete", { ...costly, result: RESULT, usage }, { headers }));
    await get("/usage", "?by=node");
    await post("/usage/void", { node_id: "n1" }, "admin");
    const budget = { scope: "node", value: "n1", per: "day" };
    await post("/budget/set", { ...budget, cost_usd: 5 }, "admin");
    seen.set(
      "GET /budget/list",
      await ok(hub.get("/budget/list", { variant, headers: { "X-Admin-Key": ADMIN_KEY } })),
    );
    await post("/budget/delete", budget, "admin");
    const unfit = await hub.addTask({ requires: { capabilities: ["nobody"] } }, variant);
    seen.set("GET /task/:task_id/explain", await ok(hub.get(`/task/${unfit}/explain`, { variant })));
    await post("/hub/pause", { type: "none" }, "admin");
    await post("/limit/set", { key: "k", running: 1 }, "admin");
    for (const path of ["/hub/pauses", "/limit/list"])
      seen.set(`GET ${path}`, await ok(hub.get(path, { variant, headers: { "X-Admin-Key": ADMIN_KEY } })));
    await post("/hub/resume", { type: "none" }, "admin");
    await post("/limit/hold", { key: "k", for_s: 1 });
    await post("/limit/delete", { key: "k" }, "admin");

    const upload = async () => {
      const form = new FormData();
      form.set("file", new File(["bytes"], "a.txt"));
      form.set("metadata", JSON.stringify({ node: "n1", task_id: third }));
      return ok(hub.post("/file/upload", form, { variant }));
    };
    const file = await upload();
    seen.set("POST /file/upload", file);
    await get("/file/list");
    await post("/file/download-url", { file_id: file["file_id"] });
    await post("/file/upload-url", { node_id: "n1" });
    const download = await hub.get(`/file/download/${file["file_id"]}`, { variant });
    expect(download.status).toBe(200);
    seen.set("GET /file/download/:file_id", {});
    seen.set("DELETE /file/:file_id", await ok(hub.call("DELETE", `/file/${file["file_id"]}`, { variant })));
    await post("/file/delete", { file_id: (await upload())["file_id"] });

    seen.set("GET /node/:node_id", await ok(hub.get("/node/n1", { variant })));
    await get("/node/list");
    await get("/stats/nodes");
    const nightly = {
      name: "nightly",
      cron: "0 3 * * *",
      task: { title: "t", description: "d", task_type: "z" },
    };
    await post("/schedule/put", nightly);
    await post("/schedule/run", { name: "nightly" });
    await get("/schedule/list");
    await post("/schedule/delete", { name: "nightly" });
    await post("/webhook/put", { name: "w", url: "https://receiver.test/" }, "admin");
    await post("/webhook/test", { name: "w" }, "admin");
    await post("/webhook/resume", { name: "w" }, "admin");
    seen.set(
      "GET /webhook/list",
      await ok(hub.get("/webhook/list", { variant, headers: { "X-Admin-Key": ADMIN_KEY } })),
    );
    await post("/webhook/delete", { name: "w" }, "admin");
    await post("/task/create", { title: "t", description: "d", task_type: "z", group: "g", tags: ["x"] });
    seen.set("GET /group/list", await ok(hub.get("/group/list", { variant })));
    seen.set("GET /group/:group", await ok(hub.get("/group/g", { variant })));
    await post("/group/retry", { group: "g" });
    await post("/group/cancel", { group: "g" });
    const invited = await ok(hub.admin("/invitation/create", { node_id: "n9" }, { variant }));
    seen.set("POST /invitation/create", invited);
    seen.set(
      "GET /invitation/list",
      await ok(hub.get("/invitation/list", { variant, headers: { "X-Admin-Key": ADMIN_KEY } })),
    );
    const [, token] = /#join\.([^.]+)/.exec(String(invited["line"])) ?? [];
    await post("/join", { token, key_hash: hashSecret("of n9") });
    const { invitation_id } = record(invited["invitation"]);
    await post("/invitation/delete", { invitation_id }, "admin");
    await post("/key/add", { name: "other" }, "admin");
    await post("/key/revoke", { name: "other" }, "admin");
    seen.set(
      "GET /key/list",
      await ok(hub.get("/key/list", { variant, headers: { "X-Admin-Key": ADMIN_KEY } })),
    );
    await get("/status");
    await get("/events", "?since=0");
    await get("/poll", "?since=0");
    await get("/pg/diagnostic");
    await get("/stats/minutes", "?last=1");
    await post("/batch", { requests: [{ path: "signin", body: { node_id: "n1" } }] });
    expect((await hub.get("/openapi.json", { variant })).status).toBe(200);
    seen.set("GET /openapi.json", {});
    return seen;
  }

  /** The names of all fields, inner ones too: `task.title`, `tasks.0.title`. */
  function namesIn(value: unknown, path = ""): string[] {
    if (typeof value !== "object" || value === null) return [path];
    return Object.entries(value).flatMap(([name, inner]) => namesIn(inner, `${path}.${name}`));
  }

  test("is in the tour, and answers the same fields, except batch-assign and the encoding of a variant", async () => {
    const [a, b] = [await tour("A"), await tour("B")];
    const declared = [...ENDPOINTS, ...fileEndpoints(1), ...INVITATION_ENDPOINTS].map(
      ({ method, path }) => `${method} ${path.replace("/api/v1", "")}`,
    );
    for (const seen of [a, b]) expect([...seen.keys()].toSorted()).toEqual(declared.toSorted());
    for (const [endpoint, body] of a) {
      const other = b.get(endpoint) ?? {};
      if (endpoint === "POST /task/batch-assign") {
        expect(Object.keys(body).toSorted()).toEqual(["results", "success"]);
        expect(Object.keys(other).toSorted()).toEqual(["assigned", "assignments", "pending", "success"]);
      } else if (endpoint === "GET /task/stats") {
        expect(record(body["by_status"])).toEqual({ open: 1, assigned: 1, completed: 1, failed: 1 });
        expect(record(other["by_status"])).toEqual({ pending: 2, completed: 1, failed: 1 });
      } else if (endpoint === "GET /group/:group" || endpoint === "GET /group/list") {
        const groupOf = (from: typeof body): Record<string, unknown> =>
          from["groups"] === undefined ? from : record(list(from, "groups")[0]);
        const [ofA, ofB] = [groupOf(body), groupOf(other)];
        expect(Object.keys(ofA).toSorted()).toEqual(Object.keys(ofB).toSorted());
        expect(record(ofA["by_status"])).toEqual({ open: 1, assigned: 0, completed: 0, failed: 0 });
        expect(record(ofB["by_status"])).toEqual({ pending: 1, completed: 0, failed: 0 });
      } else {
        const plain = (names: string[]) =>
          names
            .map((name) =>
              name.replace(/capabilities\.\d+$/, "capabilities").replace(/^\.tasks\.\d+/, ".tasks"),
            )
            .toSorted();
        expect([endpoint, ...plain(namesIn(body))]).toEqual([endpoint, ...plain(namesIn(other))]);
      }
    }
  });
});

once.describe("one store", () => {
  test("a task is the same on both, except the words of status and priority", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTaskOf("n1", {
      title: "Title",
      description: "Description",
      task_type: "coding",
      creator_node: "boss",
      priority: 0,
      lux_reward: 1.25,
    });
    const [a, b] = [await hub.taskOf(taskId, "A"), await hub.taskOf(taskId, "B")];
    expect(a).toMatchObject({
      task_id: taskId,
      title: "Title",
      description: "Description",
      task_type: "coding",
      creator_node: "boss",
      priority: 0,
      lux_reward: 1.25,
      status: "assigned",
      assigned_node: "n1",
      result: null,
      attempts: 0,
      files: [],
    });
    expect(b).toEqual({ ...a, status: "pending", priority: "high" });
  });

  test("a node is the same on both, except the form of capabilities", async () => {
    await using hub = await startHub();
    await hub.addNode("n1", { host: "10.0.0.1", port: 8080, capabilities: ["x", "y"] });
    const [a, b] = [await hub.nodeOf("n1", "A"), await hub.nodeOf("n1", "B")];
    expect(a).toMatchObject({ host: "10.0.0.1", port: 8080, capabilities: "x,y" });
    expect(b).toEqual({ ...a, capabilities: ["x", "y"] });
  });

  test("a change through one listener is visible on the other", async () => {
    await using hub = await startHub();
    await hub.addNode("n1", {}, "B");
    const taskId = await hub.addTask({ lux_reward: 3 }, "B");
    expect(await hub.taskOf(taskId, "A")).toMatchObject({ status: "assigned", lux_reward: 3 });
    expect(await ok(hub.complete(taskId, "n1"))).toEqual({
      success: true,
      status: "completed",
      lux_paid: 3,
      receipt: expect.objectContaining({ amount: 3 }),
      task_id: taskId,
    });
    expect(await hub.taskOf(taskId, "B")).toMatchObject({ status: "completed", result: RESULT });
  });
});

once.describe("status", () => {
  test.each([
    ["A", "1.5"],
    ["B", "1.0"],
  ] as const)("%s is version %s", async (variant, version) => {
    await using hub = await startHub();
    expect(await ok(hub.get("/status", { variant }))).toMatchObject({ status: "ok", version, variant });
  });

  test("a hub may listen for one variant only", async () => {
    await using hub = await startHub({ variants: ["B"] });
    expect(hub.listeners.map((listener) => listener.spec.variant)).toEqual(["B"]);
    expect(await ok(hub.get("/status", { variant: "B" }))).toMatchObject({ variant: "B" });
  });
});

describe("task status", () => {
  const WORDS = { A: ["open", "assigned", "completed"], B: ["pending", "pending", "completed"] } as const;

  once.test.each(VARIANTS)("%s encodes the three stored states", async (variant) => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const [open, assigned, completed] = WORDS[variant];
    const taskId = await hub.addTask();
    expect(await hub.taskOf(taskId, variant)).toMatchObject({ status: open, assigned_node: null });
    const claim = { task_id: taskId, node_id: "n1" };
    const claimed = await ok(hub.post("/task/claim", claim, { variant }));
    expect(claimed).toMatchObject({ status: assigned, assigned_node: "n1", task: { status: assigned } });
    expect(await ok(hub.complete(taskId, "n1", { variant }))).toMatchObject({ status: completed });
    expect(await hub.taskOf(taskId, variant)).toMatchObject({ status: completed, assigned_node: "n1" });
  });

  once.test.each(VARIANTS)("the list of %s filters by the words of both variants", async (variant) => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const open = await hub.addTask();
    const assigned = await hub.addTaskOf("n1");
    const completed = await hub.addTaskOf("n1");
    await ok(hub.complete(completed, "n1"));
    const listed = async (filter: string) =>
      pick(await ok(hub.get(`/task/list?status=${filter}`, { variant })), "tasks", "task_id");
    expect(await listed("open")).toEqual([open]);
    expect(await listed("assigned")).toEqual([assigned]);
    expect(await listed("pending")).toEqual([assigned, open]);
    expect(await listed("completed")).toEqual([completed]);
    await badFields(hub.get("/task/list?status=done", { variant }), ["status"]);
    expect(await listed("Open")).toEqual([open]);
    const all = variant === "A" ? [completed, assigned, open] : [assigned, open, completed];
    expect(await listed("")).toEqual(all);
  });

  test.each([
    ["A", { open: 2, assigned: 1, completed: 0, failed: 0 }],
    ["B", { pending: 3, completed: 0, failed: 0 }],
  ] as const)("stats of %s count in its words, those with none too", async (variant, byStatus) => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await hub.addTask();
    await hub.addTask();
    await hub.addTaskOf("n1");
    const stats = await ok(hub.get("/task/stats", { variant }));
    expect(stats).toMatchObject({ total: 3, top_nodes: [] });
    expect(stats["by_status"]).toEqual(byStatus);
  });
});

once.describe("priority", () => {
  const FORMS = [
    [0, 0, "high"],
    [1, 1, "medium"],
    [2, 2, "low"],
    ["high", 0, "high"],
    ["medium", 1, "medium"],
    ["low", 2, "low"],
    ["p0", 0, "high"],
    ["p1", 1, "medium"],
    ["p2", 2, "low"],
    ["p5", 2, "p5"],
    ["P0", 0, "high"],
    ["High", 0, "high"],
    ["LOW", 2, "low"],
    [null, 1, "medium"],
    [undefined, 1, "medium"],
  ] as const;

  test.each(VARIANTS)("sent to %s in any form, each variant answers its own form", async (variant) => {
    await using hub = await startHub();
    for (const [given, onA, onB] of FORMS) {
      const created = await ok(
        hub.post("/task/create", { title: "t", description: "d", priority: given }, { variant }),
      );
      const taskId = String(created["task_id"]);
      const shown = {
        answer: record(created["task"])["priority"],
        A: (await hub.taskOf(taskId, "A"))["priority"],
        B: (await hub.taskOf(taskId, "B"))["priority"],
      };
      expect({ given, ...shown }).toEqual({ given, answer: variant === "A" ? onA : onB, A: onA, B: onB });
    }
  });

  test.each(VARIANTS)("given to %s in any other form is refused", async (variant) => {
    await using hub = await startHub();
    for (const priority of [3, 5, -1, 1.5, "1", "0", "HIGHER", "urgent", "p3", "", true, [1], {}]) {
      const body = { title: "t", description: "d", priority };
      await badFields(hub.post("/task/create", body, { variant }), ["priority"]);
    }
  });
});

once.describe("capabilities", () => {
  const FORMS = [
    ["x,y", "x,y", ["x", "y"]],
    [" x , y ", "x,y", ["x", "y"]],
    ["", "", []],
    [",", "", []],
    ["x", "x", ["x"]],
    [["x", "y"], "x,y", ["x", "y"]],
    [[], "", []],
    [null, "", []],
    [undefined, "", []],
  ] as const;

  test.each(VARIANTS)("sent to %s in any form, each variant answers its own form", async (variant) => {
    await using hub = await startHub();
    for (const [given, onA, onB] of FORMS) {
      const registered = await hub.addNode("n1", { capabilities: given }, variant);
      const expected = { A: onA, B: onB };
      expect({ given, shown: record(registered["node"])["capabilities"] }).toEqual({
        given,
        shown: expected[variant],
      });
      for (const shown of VARIANTS) {
        expect((await hub.nodeOf("n1", shown))["capabilities"]).toEqual(expected[shown]);
        const [listed] = list(await ok(hub.get("/node/list", { variant: shown })), "nodes");
        expect(listed?.["capabilities"]).toEqual(expected[shown]);
      }
    }
  });

  test.each(VARIANTS)("given to %s in any other form are refused", async (variant) => {
    await using hub = await startHub();
    const attempt = (capabilities: unknown) =>
      hub.post("/node/register", { node_id: "n1", name: "n", capabilities }, { variant });
    for (const value of [5, true, {}]) await badFields(attempt(value), ["capabilities"]);
    await badFields(attempt(["x", 5, "y", null]), ["capabilities.1", "capabilities.3"]);
  });
});

once.describe("what the hub answers can be sent back to it", () => {
  for (const variant of VARIANTS)
    for (const shown of VARIANTS)
      test(`to ${variant}, as ${shown} shows it`, async () => {
        await using hub = await startHub();
        await hub.addNode("n1", { port: 0, capabilities: "x,y", max_tasks: 2 });
        await hub.addNode("bare", { auto_assign: false });
        for (const nodeId of ["n1", "bare"]) {
          const before = await hub.nodeOf(nodeId, shown);
          await ok(hub.post("/node/register", before, { variant }));
          const { last_heartbeat: _, ...after } = await hub.nodeOf(nodeId, shown);
          expect(before).toMatchObject(after);
        }
        const whole = { task_type: "x", creator_node: "boss", priority: 2, lux_reward: 0.1 };
        for (const fields of [{}, whole]) {
          const before = await hub.taskOf(await hub.addTask(fields), shown);
          const created = await ok(hub.post("/task/create", before, { variant }));
          const after = await hub.taskOf(String(created["task_id"]), shown);
          for (const name of ["title", "description", "task_type", "priority", "creator_node", "lux_reward"])
            expect(after[name]).toEqual(before[name]);
        }
        const messageId = String(
          (await ok(hub.post("/message/send", { from_node: "op", to_node: "n1", content: "hi" })))[
            "message_id"
          ],
        );
        const [message] = list(
          await ok(hub.get("/message/history?node_id=n1", { variant: shown })),
          "messages",
        );
        expect(message).toMatchObject({ id: messageId });
        await ok(hub.post("/message/send", message, { variant }));
        const nothing = "status=&node_id=&page=&per_page=";
        expect(list(await ok(hub.get(`/task/list?${nothing}`, { variant })), "tasks")).toHaveLength(4);
        const all = { count: null, blocking: null, timeout: null };
        const received = await ok(hub.post("/message/receive", { node_id: "n1", ...all }, { variant }));
        expect(received).toMatchObject({ count: 2 });
      });

  test.each(VARIANTS)("and words are read in any case on %s", async (variant) => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const message = { from_node: "op", to_node: "n1", content: "x", type: "TASK" };
    await ok(hub.post("/message/send", message, { variant }));
    await ok(hub.post("/message/broadcast", { ...message, type: "Alert" }, { variant }));
    const got = await ok(hub.get("/message/history?node_id=n1", { variant }));
    expect(pick(got, "messages", "type")).toEqual(["alert", "task"]);
    const events = await ok(hub.get("/events?since=0&kind=Node.Online", { variant }));
    expect(list(events, "events")).toHaveLength(1);
  });
});

describe("paging", () => {
  /** As many tasks as are asked for, through the API. */
  async function fill(hub: TestHub, count: number): Promise<void> {
    await hub.addTasks(count);
  }

  once.test("A has 20 items a page by default, and up to 50", async () => {
    await using hub = await startHub();
    await fill(hub, 55);
    const page = async (query: string) => {
      const body = await ok(hub.get(`/task/list${query}`));
      return { ...body, tasks: list(body, "tasks").length };
    };
    expect(await page("")).toMatchObject({ tasks: 20, page: 1, per_page: 20, total: 55, pages: 3 });
    expect(await page("?page=3")).toMatchObject({ tasks: 15, page: 3, per_page: 20 });
    expect(await page("?page=4")).toMatchObject({ tasks: 0, page: 4, total: 55, pages: 3 });
    expect(await page("?per_page=1")).toMatchObject({ tasks: 1, per_page: 1, pages: 55 });
    expect(await page("?per_page=50")).toMatchObject({ tasks: 50, per_page: 50, pages: 2 });
    for (const above of ["51", "100", "1000000", "99999999999999999999"]) {
      expect(await page(`?per_page=${above}`)).toMatchObject({ tasks: 50, per_page: 50, pages: 2 });
    }
    expect(await page("?per_page=50&page=2")).toMatchObject({ tasks: 5, page: 2 });
  });

  once.test("B has one page of 500 without paging fields, and pages like A with them", async () => {
    await using hub = await startHub();
    await fill(hub, 502);
    const page = async (query: string) => {
      const body = await ok(hub.get(`/task/list${query}`, { variant: "B" }));
      return { ...body, tasks: list(body, "tasks").length };
    };
    expect(await page("")).toMatchObject({ tasks: 500, page: 1, per_page: 500, total: 502, pages: 2 });
    expect(await page("?status=pending")).toMatchObject({ tasks: 500, per_page: 500, total: 502 });
    expect(await page("?per_page=50")).toMatchObject({ tasks: 50, per_page: 50, pages: 11 });
    expect(await page("?per_page=400")).toMatchObject({ tasks: 50, per_page: 50 });
    expect(await page("?page=2")).toMatchObject({ tasks: 20, page: 2, per_page: 20, pages: 26 });
  });

  once.test("B without paging fields lists unfinished tasks first, however many are finished", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const [old, held] = [await hub.addTask(), await hub.addTaskOf("n1")];
    const ids = await hub.addTasks(510);
    await hub.inBatches(
      "task/claim",
      ids.map((task_id) => ({ task_id, node_id: "n1" })),
    );
    await hub.inBatches(
      "task/complete",
      ids.map((task_id) => ({ task_id, node_id: "n1", result: RESULT })),
    );
    const open = await hub.addTask();
    const idsOf = async (query: string, variant: VariantName = "B") =>
      pick(await ok(hub.get(`/task/list${query}`, { variant })), "tasks", "task_id");
    const newest = (await idsOf("?page=1&per_page=3")).slice(1);
    const all = await ok(hub.get("/task/list", { variant: "B" }));
    expect(all).toMatchObject({ page: 1, per_page: 500, total: 513, pages: 2 });
    expect(pick(all, "tasks", "task_id").slice(0, 5)).toEqual([open, held, old, ...newest]);
    expect(new Set(pick(all, "tasks", "task_id")).size).toBe(500);
    expect((await idsOf("?node_id=n1")).slice(0, 3)).toEqual([held, ...newest]);
    expect(await idsOf("?status=pending")).toEqual([open, held, old]);
    expect((await idsOf("?status=completed")).slice(0, 2)).toEqual(newest);
    expect(await idsOf("?node_id=ghost")).toEqual([]);
    expect((await idsOf("", "A")).slice(0, 3)).toEqual([open, ...newest]);
  });

  once.test.each(VARIANTS)("%s refuses a page out of range", async (variant) => {
    await using hub = await startHub();
    for (const value of ["0", "-1", "1.5", "x", "1e3"]) {
      await badFields(hub.get(`/task/list?page=${value}`, { variant }), ["page"]);
      await badFields(hub.get(`/task/list?per_page=${value}`, { variant }), ["per_page"]);
      const both = hub.get(`/task/list?page=${value}&per_page=${value}&status=x`, { variant });
      await badFields(both, ["page", "per_page", "status"]);
    }
  });
});

once.describe("create", () => {
  test("B assigns a task to an available node at once, A leaves it open", async () => {
    await using hub = await startHub();
    await hub.addNode("n1", {}, "B");
    const onA = await ok(hub.post("/task/create", { title: "t", description: "d" }));
    expect(onA).toMatchObject({ status: "open", assigned_node: null, task: { assigned_node: null } });
    const onB = await ok(hub.post("/task/create", { title: "t", description: "d" }, { variant: "B" }));
    expect(onB).toMatchObject({ status: "pending", assigned_node: "n1", task: { assigned_node: "n1" } });
    expect(await hub.taskOf(String(onB["task_id"]))).toMatchObject({ status: "assigned" });
  });

  test.each(VARIANTS)("%s ignores assigned_node, whatever its value", async (variant) => {
    await using hub = await startHub();
    await hub.addNode("n1", { capabilities: ["other"] }, "B");
    for (const assigned_node of ["n1", "nobody", 5, null, { a: 1 }]) {
      const body = { title: "t", description: "d", task_type: "this", assigned_node };
      expect(await ok(hub.post("/task/create", body, { variant }))).toMatchObject({ assigned_node: null });
    }
  });
});

once.describe("batch-assign", () => {
  test("A requires assignments, B ignores them", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTask();
    await badFields(hub.post("/task/batch-assign", {}), ["assignments"]);
    await badFields(hub.post("/task/batch-assign", undefined), ["assignments"]);
    const ignored = { assignments: "all of them" };
    expect(await ok(hub.post("/task/batch-assign", ignored, { variant: "B" }))).toEqual({
      success: true,
      assigned: 1,
      pending: 0,
      assignments: [{ task_id: taskId, node_id: "n1" }],
      ignored: ["assignments"],
    });
  });

  test("B accepts no body, an empty one and an empty object", async () => {
    await using hub = await startHub();
    for (const body of [undefined, "", "{}"]) {
      const answer = await ok(hub.post("/task/batch-assign", body, { variant: "B" }));
      expect(answer).toEqual({ success: true, assigned: 0, pending: 0, assignments: [] });
    }
  });
});

once.describe("complete of an open task", () => {
  test("A requires a claim first", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTask();
    await refused(hub.complete(taskId, "n1"), 409, "task_not_assigned");
    expect(await hub.taskOf(taskId)).toMatchObject({ status: "open", result: null });
  });

  test("B claims it for the node in the same step", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTask({ lux_reward: 7 });
    const done = await ok(hub.complete(taskId, "n1", { variant: "B" }));
    const receipt = expect.objectContaining({ amount: 7 });
    expect(done).toEqual({ success: true, status: "completed", lux_paid: 7, receipt, task_id: taskId });
    expect(await hub.taskOf(taskId)).toMatchObject({ status: "completed", assigned_node: "n1" });
    expect(await hub.nodeOf("n1")).toMatchObject({ tasks_assigned: 0, tasks_completed: 1, lux_balance: 7 });
  });

  test("B claims it for registered nodes only", async () => {
    await using hub = await startHub();
    const taskId = await hub.addTask();
    await refused(hub.complete(taskId, "ghost", { variant: "B" }), 404, "node_not_found");
    expect(await hub.taskOf(taskId)).toMatchObject({ status: "open" });
  });

  test.each(VARIANTS)("%s refuses other nodes on an assigned task", async (variant) => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await hub.addNode("n2");
    const taskId = await hub.addTaskOf("n1");
    await refused(hub.complete(taskId, "n2", { variant }), 403, "not_assigned_to_node");
  });
});

once.describe("heartbeat", () => {
  const TIMES = { A: [60, 180], B: [30, 90] } as const;

  test.each(VARIANTS)("the interval of %s", async (variant) => {
    await using hub = await startHub();
    const [interval, offlineAfter] = TIMES[variant];
    const registered = await hub.addNode("n1", {}, variant);
    expect(registered).toMatchObject({ heartbeat_interval: interval, offline_after: offlineAfter });
    for (const spoken of VARIANTS) {
      const beat = await ok(hub.post("/node/heartbeat", { node_id: "n1" }, { variant: spoken }));
      // That of the variant in which the node registered, whichever it speaks now.
      expect(beat).toMatchObject({ heartbeat_interval: interval });
    }
  });

  test("registering in the other variant changes the interval", async () => {
    await using hub = await startHub();
    await hub.addNode("n1", {}, "A");
    expect(await hub.addNode("n1", {}, "B")).toMatchObject({ heartbeat_interval: 30, created: false });
    expect(await ok(hub.post("/node/heartbeat", { node_id: "n1" }))).toMatchObject({
      heartbeat_interval: 30,
    });
  });
});

once.describe("auth", () => {
  test("A needs no secret where the specification says Public; B always does", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const bare = { headers: { "X-Matrix-Secret": null } };
    for (const path of ["/node/list", "/node/n1", "/task/list", "/task/stats", "/file/list", "/status"]) {
      await ok(hub.get(path, bare));
      await refused(hub.get(path, { ...bare, variant: "B" }), 401, "unauthorized");
    }
  });
});
