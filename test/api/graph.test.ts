/**
 * Tasks that belong together: unique keys, a graph of tasks in one batch, tasks that run however their dependencies end,
 * and changes of a task that waits. test/api/concurrency.test.ts has many creates with one unique key at once.
 */
import { describe, expect, test } from "bun:test";
import { isoTime } from "../../src/lib/clock.ts";
import {
  ADMIN_KEY,
  type Answer,
  type CallOptions,
  type TestHub,
  startHub,
  onlyOnce,
} from "../support/hub.ts";
import { addKey, as } from "./key-commands.ts";
import {
  NO_ID,
  VARIANTS,
  addNode,
  addTask,
  badFields,
  complete,
  eventKinds,
  hold,
  list,
  ok,
  pick,
  rawPost,
  record,
  refused,
} from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

const TASK = { title: "t", description: "d" };
const HOUR_S = 3_600;

function create(hub: TestHub, fields: Fields = {}): Promise<Answer> {
  return hub.post("/task/create", { ...TASK, ...fields });
}

function cancel(hub: TestHub, taskId: string): Promise<Answer["body"]> {
  return ok(hub.post("/task/cancel", { task_id: taskId }));
}

async function done(hub: TestHub, taskId: string): Promise<void> {
  await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
  await ok(complete(hub, taskId, "n1"));
}

async function get(hub: TestHub, taskId: string): Promise<Fields> {
  return record((await ok(hub.get(`/task/${taskId}`)))["task"]);
}

describe("unique_key", () => {
  test("an unfinished task with the key is returned, whatever its state; a finished one is not", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const first = await ok(create(hub, { unique_key: "nightly" }));
    expect(first).not.toContainKey("deduplicated");
    expect(record(first["task"])).toMatchObject({ unique_key: "nightly" });
    const again = await ok(create(hub, { unique_key: "nightly", title: "another" }));
    expect(again).toMatchObject({ deduplicated: true, task_id: first["task_id"], task: { title: "t" } });
    const taskId = String(first["task_id"]);
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
    const held = await ok(create(hub, { unique_key: "nightly", for_node: "n1" }));
    expect(held).toMatchObject({ deduplicated: true, task_id: taskId, status: "assigned" });
    await ok(complete(hub, taskId, "n1"));
    const next = await ok(create(hub, { unique_key: "nightly" }));
    expect(next).not.toContainKey("deduplicated");
    await cancel(hub, String(next["task_id"]));
    const last = await ok(create(hub, { unique_key: "nightly" }));
    await ok(hub.admin("/task/delete", { task_id: last["task_id"] }));
    expect(await ok(create(hub, { unique_key: "nightly" }))).not.toContainKey("deduplicated");
    expect(await ok(create(hub, { unique_key: "Nightly" }))).not.toContainKey("deduplicated");
    expect(await eventKinds(hub)).toContain("task.created");
    expect((await ok(hub.get("/task/stats")))["total"]).toBe(4);
  });

  test("unique_for_s holds the key from the creation, finished or not", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const first = await ok(create(hub, { unique_key: "report", unique_for_s: HOUR_S }));
    const taskId = String(first["task_id"]);
    await done(hub, taskId);
    hub.clock.pass((HOUR_S - 60) * 1_000);
    expect(await ok(create(hub, { unique_key: "report" }))).toMatchObject({
      deduplicated: true,
      task_id: taskId,
      status: "completed",
    });
    hub.clock.pass(120_000);
    const second = await ok(create(hub, { unique_key: "report", unique_for_s: 1 }));
    expect(second).not.toContainKey("deduplicated");
    hub.clock.pass(120_000); // its time is over, and it is unfinished
    expect(await ok(create(hub, { unique_key: "report" }))).toMatchObject({ task_id: second["task_id"] });
  });

  test("a task that is retried holds its key again, and the older of two gets the answer", async () => {
    await using hub = await startHub();
    const first = await addTask(hub, { unique_key: "k" });
    await cancel(hub, first);
    const second = await addTask(hub, { unique_key: "k" });
    await ok(hub.post("/task/retry", { task_id: first }));
    expect(await ok(create(hub, { unique_key: "k" }))).toMatchObject({ deduplicated: true, task_id: first });
    await cancel(hub, first);
    expect(await ok(create(hub, { unique_key: "k" }))).toMatchObject({ deduplicated: true, task_id: second });
  });

  test("the requests of one batch see each other's keys, and each answer of a repeat is the same", async () => {
    await using hub = await startHub();
    const request = { path: "task/create", body: { ...TASK, unique_key: "one" } };
    const again = () =>
      hub.post("/batch", { requests: [request, request, request] }, { headers: { "Idempotency-Key": "b" } });
    const first = await ok(again());
    const bodies = list(first, "answers").map(({ body }) => record(body));
    expect(bodies.map((body) => body["deduplicated"])).toEqual([undefined, true, true]);
    expect(new Set(bodies.map((body) => body["task_id"])).size).toBe(1);
    expect(await ok(again())).toEqual(first);
  });

  once.test("is checked", async () => {
    await using hub = await startHub();
    for (const unique_key of ["", " ", "k".repeat(256), 5])
      await badFields(create(hub, { unique_key }), ["unique_key"]);
    await ok(create(hub, { unique_key: "k".repeat(255), unique_for_s: 0.5 + 1 }));
    await badFields(create(hub, { unique_for_s: 10 }), ["unique_for_s"]);
    await badFields(create(hub, { unique_key: "k", unique_for_s: 0 }), ["unique_for_s"]);
  });
});

describe("a graph in one batch", () => {
  type Request = { readonly path?: string; readonly body: Fields; readonly ref?: unknown };

  function graph(hub: TestHub, requests: readonly Request[], variant: "A" | "B" = "A"): Promise<Answer> {
    const asked = requests.map(({ path = "task/create", body, ref }) => ({
      path,
      body: path === "task/create" ? { ...TASK, ...body } : body,
      ...(ref !== undefined && { ref }),
    }));
    return hub.post("/batch", { requests: asked }, { variant });
  }

  async function answersOf(answer: Promise<Answer>): Promise<readonly Fields[]> {
    return list(await ok(answer), "answers");
  }

  test.each(VARIANTS)(
    "refs stand for the ids of the tasks that earlier requests create (%s)",
    async (variant) => {
      await using hub = await startHub();
      await addNode(hub, "n1", { auto_assign: false });
      const before = await addTask(hub);
      const requests: readonly Request[] = [
        { ref: "fetch", body: {} },
        { ref: "parse", body: { depends_on: [{ $ref: "fetch" }, before] } },
        { body: { depends_on: [{ $ref: "parse" }, { $ref: "fetch" }] } },
        { path: "task/claim", body: { task_id: { $ref: "fetch" }, node_id: "n1" } },
      ];
      const answers = await answersOf(graph(hub, requests, variant));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      const [fetch, parse, last, claimed] = answers.map(({ body }) => record(body));
      expect(record(parse?.["task"])["depends_on"]).toEqual([fetch?.["task_id"], before]);
      expect(record(last?.["task"])["depends_on"]).toEqual([parse?.["task_id"], fetch?.["task_id"]]);
      expect(claimed).toMatchObject({ task_id: fetch?.["task_id"], assigned_node: "n1" });
    },
  );

  test("500 tasks in a chain are made in one call", async () => {
    await using hub = await startHub();
    const requests = Array.from({ length: 500 }, (_, i): Request => ({
      ref: `r${i}`,
      body: i === 0 ? {} : { depends_on: [{ $ref: `r${i - 1}` }, ...(i > 1 ? [{ $ref: "r0" }] : [])] },
    }));
    const answers = await answersOf(graph(hub, requests));
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    const ids = answers.map(({ body }) => String(record(body)["task_id"]));
    const [root = ""] = ids;
    const [before = "", last = ""] = ids.slice(-2);
    expect(await get(hub, last)).toMatchObject({ depends_on: [before, root], unmet: { count: 2 } });
  });

  once.test.each(VARIANTS)(
    "nothing of a graph is written that is too large for a batch (%s)",
    async (variant) => {
      await using hub = await startHub();
      const sized = (tasks: number) =>
        Array.from({ length: tasks }, (_, i): Request => {
          const first = Math.max(0, i - 5);
          const depends_on = Array.from({ length: i - first }, (_, j) => ({ $ref: `r${first + j}` }));
          return { ref: `r${i}`, body: { depends_on } };
        });
      const refused = await graph(hub, sized(500), variant);
      expect(refused).toMatchObject({ status: 413, body: { error: "graph_too_large" } });
      expect((await ok(hub.get("/task/stats")))["total"]).toBe(0);
      const answers = await answersOf(graph(hub, sized(250), variant));
      expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
      expect((await ok(hub.get("/task/stats")))["total"]).toBe(250);
    },
  );

  once.test("what refers to a refused request is refused, and the others stand", async () => {
    await using hub = await startHub();
    const answers = await answersOf(
      graph(hub, [
        { ref: "a", body: { title: "" } },
        { ref: "b", body: { depends_on: [NO_ID] } },
        { ref: "c", body: { depends_on: [{ $ref: "a" }] } },
        { body: { depends_on: [{ $ref: "c" }] } },
        { path: "task/cancel", body: { task_id: { $ref: "b" } } },
        { ref: "d", body: {} },
        { path: "task/cancel", body: { task_id: { $ref: "d" } } },
      ]),
    );
    const short = answers.map(({ status, body }) => [status, record(body)["error"]]);
    const lacking = [409, "ref_refused"];
    const invalid = [400, "invalid_request"];
    const fine = [200, undefined];
    expect(short).toEqual([invalid, invalid, lacking, lacking, lacking, fine, fine]);
    expect((await ok(hub.get("/task/stats")))["total"]).toBe(1);
  });

  once.test(
    "unknown, repeated and forward refs are refused with their places before anything runs",
    async () => {
      await using hub = await startHub();
      const wrong = graph(hub, [
        { ref: "a", body: { depends_on: [{ $ref: "b" }] } },
        { ref: "b", body: { depends_on: [{ $ref: "a" }, { $ref: "b" }, { $ref: 5 }] } },
        { ref: "a", body: {} },
        { ref: "n", path: "node/register", body: { node_id: "n1", name: "n1" } },
        { ref: "k", body: { unique_key: "k" } },
        { ref: "", body: {} },
        { ref: "r".repeat(65), body: {} },
        { path: "task/cancel", body: { task_id: { $ref: "none" } } },
      ]);
      await badFields(wrong, [
        "requests.0.body.depends_on.0.$ref",
        "requests.1.body.depends_on.1.$ref",
        "requests.1.body.depends_on.2.$ref",
        "requests.2.ref",
        "requests.3.ref",
        "requests.4.ref",
        "requests.5.ref",
        "requests.6.ref",
        "requests.7.body.task_id.$ref",
      ]);
      expect((await ok(hub.get("/task/stats")))["total"]).toBe(0);
      await badFields(create(hub, { depends_on: [{ $ref: "a" }] }), ["depends_on.0"]);
    },
  );
});

describe("task/<task_id>/graph", () => {
  test.each(VARIANTS)("has layers before the task, and what waits for it, on %s", async (variant) => {
    await using hub = await startHub({ variants: ["A", "B"] });
    const add = (title: string, depends_on: readonly string[] = []) =>
      addTask(hub, { title, depends_on }, variant);
    const titles = async (taskId: string): Promise<readonly string[]> => {
      const body = await ok(hub.get(`/task/${taskId}/graph`, { variant }));
      const tasks = list(body, "tasks");
      const titleOf = new Map(tasks.map(({ task_id, title }) => [task_id, String(title)]));
      const shown = tasks.map(({ title, layer, depends_on }) => {
        const from = (depends_on as string[]).map((id) => titleOf.get(id)).join("+");
        return `${String(layer)} ${String(title)}${from && ` after ${from}`}`;
      });
      return [...shown, `${String(body["dependents"])} wait`];
    };
    const ids = new Map<string, string>();
    const idsOf = (names: string): string[] => [...names].map((name) => ids.get(name) ?? "");
    for (const [name, after] of ["a", "b-a", "c-ab", "d-c", "e-d", "f-e", "g-f"].map((one) => one.split("-")))
      ids.set(name ?? "", await add(name ?? "", idsOf(after ?? "")));
    const [a = "", c = "", e = "", f = ""] = idsOf("acef");
    expect(await titles(e)).toEqual([
      ...["0 e after d", "-1 d after c", "-2 c after a+b", "-3 a", "-3 b after a", "1 f after e", "1 wait"],
    ]);
    expect(await titles(c)).toEqual(["0 c after a+b", "-2 a", "-1 b after a", "1 d after c", "1 wait"]);
    expect(await titles(a)).toEqual(["0 a", "1 b after a", "1 c after a+b", "2 wait"]);
    // What has failed because of it is shown as well; what was deleted is not.
    await ok(hub.post("/task/cancel", { task_id: e }, { variant }));
    expect((await titles(e)).slice(-2)).toEqual(["1 f after e", "1 wait"]);
    await ok(hub.admin("/task/delete", { task_id: e }));
    expect(await titles(f)).toEqual(["0 f", "1 g after f", "1 wait"]);
    await refused(hub.get(`/task/${NO_ID}/graph`, { variant }), 404, "task_not_found");
  });

  once.test("shows 50 tasks of a layer, and counts the dependents", async () => {
    await using hub = await startHub();
    const first = await addTask(hub, {});
    const requests = Array.from({ length: 60 }, () => ({
      path: "task/create",
      body: { ...TASK, depends_on: [first] },
    }));
    await ok(hub.post("/batch", { requests }));
    const body = await ok(hub.get(`/task/${first}/graph`));
    expect([list(body, "tasks").length, body["dependents"]]).toEqual([51, 60]);
  });
});

describe("on_dependency: run", () => {
  test("the task starts when all that it depends on have ended, however", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const completed = await addTask(hub);
    const failed = await addTask(hub, { title: "the one that fails" });
    const deleted = await addTask(hub);
    const early = await addTask(hub);
    await cancel(hub, early);
    const depends_on = [completed, failed, deleted, early];
    const taskId = await addTask(hub, { depends_on, on_dependency: "run" });
    const strict = await addTask(hub, { depends_on: [failed] });
    expect(await get(hub, taskId)).toMatchObject({
      on_dependency: "run",
      status: "open",
      ready: false,
      unmet: { count: 3 },
    });
    await cancel(hub, failed);
    await ok(hub.admin("/task/delete", { task_id: deleted }));
    await hub.sweep();
    expect(await get(hub, taskId)).toMatchObject({
      ready: false,
      unmet: { count: 1, task_ids: [completed] },
    });
    expect(await get(hub, strict)).toMatchObject({ status: "failed" });
    await done(hub, completed);
    await hub.sweep();
    const next = await ok(hub.post("/task/next", { node_id: "n1" }));
    expect(next).toMatchObject({ task: { task_id: taskId } });
    const inputs = list(record(next["context"]), "inputs");
    expect(inputs.map(({ task_id }) => task_id)).toEqual(depends_on);
    expect(pick({ inputs }, "inputs", "status")).toEqual(["completed", "failed", null, "failed"]);
    expect(inputs.slice(1).map(({ result }) => result)).toEqual([null, null, null]);
    await ok(hub.post("/task/fail", { task_id: taskId, node_id: "n1", error: "e", retry: false }));
    await ok(hub.admin("/task/delete", { task_id: early }));
    await ok(hub.post("/task/retry", { task_id: taskId }));
    expect(await get(hub, taskId)).toMatchObject({ status: "open", ready: true });
  });

  once.test("a retry of what failed leaves it as it is", async () => {
    await using hub = await startHub();
    const failed = await addTask(hub);
    const other = await addTask(hub);
    const taskId = await addTask(hub, { depends_on: [failed, other], on_dependency: "RUN" });
    await cancel(hub, failed);
    await hub.sweep();
    expect(await ok(hub.post("/task/retry", { task_id: failed, with_dependents: true }))).toMatchObject({
      dependents: { opened: 0, left: 0 },
    });
    expect(await get(hub, taskId)).toMatchObject({ unmet: { count: 1, task_ids: [other] } });
    await badFields(create(hub, { on_dependency: "wait" }), ["on_dependency"]);
  });
});

describe("task/update", () => {
  function update(hub: TestHub, taskId: string, fields: Fields, more: CallOptions = {}): Promise<Answer> {
    return hub.post("/task/update", { task_id: taskId, ...fields }, more);
  }

  test("changes a task that waits, and logs the names of what has changed", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const first = await addTask(hub);
    const taskId = await addTask(hub, { priority: 2, lux_reward: 1 });
    const expires_at = isoTime(hub.clock.now() + 60_000);
    const asked = { title: "new", description: "other", priority: 0, lux_reward: 1.5, expires_at };
    const { task } = await ok(update(hub, taskId, asked));
    expect(task).toMatchObject({ ...asked, task_id: taskId, status: "open", ready: true });
    expect(await get(hub, taskId)).toMatchObject(asked);
    await ok(update(hub, taskId, asked)); // a repeat changes nothing
    const events = list(await ok(hub.get("/events?since=0&kind=task.updated")), "events");
    const changed = "title,description,priority,lux_reward,expires_at";
    expect(events).toMatchObject([{ task_id: taskId, data: { changed } }]);
    const next = await ok(hub.post("/task/next", { node_id: "n1" }));
    expect(next).toMatchObject({ task: { task_id: taskId, title: "new", description: "other" } });
    expect(await ok(complete(hub, taskId, "n1"))).toMatchObject({ lux_paid: 1.5 });
    await ok(update(hub, first, { expires_at: isoTime(hub.clock.now() + 60_000) }));
    hub.clock.pass(61_000);
    await hub.sweep();
    expect(await get(hub, first)).toMatchObject({ status: "failed", failure: { kind: "expired" } });
  });

  test("replaces the tags, or removes them, and lists find the task by the new ones", async () => {
    await using hub = await startHub();
    const taskId = await addTask(hub, { tags: ["red", "blue"] });
    const found = async (tag: string) => list(await ok(hub.get(`/task/list?tag=${tag}`)), "tasks").length;
    await ok(update(hub, taskId, { tags: ["green", "red"] }));
    expect(await get(hub, taskId)).toMatchObject({ tags: ["green", "red"] });
    expect([await found("green"), await found("blue")]).toEqual([1, 0]);
    await ok(update(hub, taskId, { tags: ["green", "red"] })); // changes nothing
    const events = list(await ok(hub.get("/events?since=0&kind=task.updated")), "events");
    expect(events).toMatchObject([{ data: { changed: "tags" } }]);
    await ok(update(hub, taskId, { tags: [] }));
    expect(await get(hub, taskId)).not.toHaveProperty("tags");
    expect(await found("green")).toBe(0);
  });

  once.test.each(VARIANTS)("not_before makes a task wait, or ends its wait at once (%s)", async (variant) => {
    await using hub = await startHub();
    const later = isoTime(hub.clock.now() + 3_600_000);
    const taskId = await addTask(hub, { not_before: later }, variant);
    await addNode(hub, "n1", {}, variant);
    expect(await get(hub, taskId)).toMatchObject({ ready: false });
    const now = isoTime(hub.clock.now() - 1_000);
    const held = await ok(update(hub, taskId, { not_before: now }, { variant }));
    expect(held).toMatchObject({ assigned_node: variant === "B" ? "n1" : null });
    const other = await addTask(hub);
    await ok(update(hub, other, { not_before: later }));
    expect(await get(hub, other)).toMatchObject({ ready: false, not_before: later });
    await refused(hub.post("/task/claim", { task_id: other, node_id: "n1" }), 409, "task_not_ready");
  });

  once.test.each(VARIANTS)(
    "null ends the wait for a time, and takes the end of a task away (%s)",
    async (variant) => {
      await using hub = await startHub();
      const later = isoTime(hub.clock.now() + 60_000);
      const taskId = await addTask(hub, { not_before: later, expires_at: later }, variant);
      await addNode(hub, "n1", {}, variant);
      const { task } = await ok(update(hub, taskId, { not_before: null, expires_at: null }, { variant }));
      expect(task).toMatchObject({ not_before: null, expires_at: null });
      expect(await get(hub, taskId)).toMatchObject({ assigned_node: variant === "B" ? "n1" : null });
      await ok(update(hub, await addTask(hub), { not_before: null })); // there is nothing to clear
      const events = list(await ok(hub.get("/events?since=0&kind=task.updated")), "events");
      expect(events).toMatchObject([{ task_id: taskId, data: { changed: "not_before,expires_at" } }]);
      hub.clock.pass(61_000);
      await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
      await hub.sweep();
      expect((await get(hub, taskId))["failure"]).toBeNull();
      await badFields(update(hub, taskId, { title: null }), [""]);
    },
  );

  test("a worker that waits gets a task whose wait was ended", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, { not_before: isoTime(hub.clock.now() + 3_600_000) });
    const held = await hold(hub.port(), rawPost("/task/next", { node_id: "n1", wait: 30 }));
    for (let i = 0; i < 2; i++) await ok(hub.get("/status")); // what came before these has been looked at
    await ok(update(hub, taskId, { not_before: isoTime(hub.clock.now() - 1_000) }));
    const { text } = await held.answered;
    expect(JSON.parse(text)).toMatchObject({ task: { task_id: taskId } });
  });

  once.test(
    "is refused when a node holds the task, when it has ended, and with another node's key",
    async () => {
      await using hub = await startHub();
      await addNode(hub, "n1");
      await addNode(hub, "n2");
      const taskId = await addTask(hub, { creator_node: "n2" });
      const secret = await addKey(hub, "of-n1", "--node", "n1");
      const title = { title: "new" };
      await refused(update(hub, taskId, title, as(secret)), 403, "key_bound_to_other_node");
      await refused(update(hub, NO_ID, title), 404, "task_not_found");
      await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
      await refused(update(hub, taskId, title), 409, "task_not_open");
      await ok(complete(hub, taskId, "n1"));
      await refused(update(hub, taskId, title), 409, "task_completed");
      const failed = await addTask(hub);
      await cancel(hub, failed);
      await refused(update(hub, failed, title), 409, "task_failed");
      const past = isoTime(hub.clock.now() - 1_000);
      await badFields(update(hub, failed, { title: " ", priority: "p9" }), ["title", "priority"]);
      await badFields(update(hub, failed, { expires_at: past }), ["expires_at"]);
      await badFields(update(hub, failed, {}), [""]);
    },
  );

  test("counts against the quota of the node that created the task", async () => {
    await using hub = await startHub({ quotaBytes: 20_000 });
    await addNode(hub, "n1");
    const own = as(await addKey(hub, "of-n1", "--node", "n1"));
    const made = await ok(hub.post("/task/create", TASK, own));
    const taskId = String(made["task_id"]);
    await ok(update(hub, taskId, { description: "x".repeat(5_000) }, own));
    await refused(update(hub, taskId, { description: "x".repeat(30_000) }, own), 429, "quota_exceeded");
    expect(await get(hub, taskId)).toMatchObject({ description: "x".repeat(5_000) });
    const events = list(await ok(hub.get("/events?since=0&kind=task.updated")), "events");
    expect(events).toMatchObject([{ node_id: "n1", verified: true }]);
  });

  once.test("lowers a reward only with the administrator key", async () => {
    await using hub = await startHub();
    const taskId = await addTask(hub, { lux_reward: 2 });
    const less = { lux_reward: 1 };
    await refused(update(hub, taskId, less), 403, "lower_reward");
    await refused(update(hub, taskId, less, { headers: { "X-Admin-Key": "wrong" } }), 403, "lower_reward");
    const lowered = await ok(update(hub, taskId, less, { headers: { "X-Admin-Key": ADMIN_KEY } }));
    expect(record(lowered["task"])["lux_reward"]).toBe(1);
  });
});
