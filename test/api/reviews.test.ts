/**
 * Reviews: the result of a task is checked before its reward is paid: task/review, reviews, and what waits while a result
 * waits.
 */
import { describe, expect, test } from "bun:test";
import { HEARTBEAT_FRESH_MS } from "../../src/domain/limits.ts";
import { ADMIN_KEY, TestClock, type TestHub, startHub, onlyOnce } from "../support/hub.ts";
import {
  NO_ID,
  RESULT,
  addNode,
  addNodes,
  addTask,
  badFields,
  list,
  ok,
  record,
  refused,
  until,
} from "./scene.ts";

const once = onlyOnce(import.meta.url);
const ADMIN = { "X-Admin-Key": ADMIN_KEY };
type Fields = Readonly<Record<string, unknown>>;

async function inReview(hub: TestHub, fields: Fields = {}): Promise<string> {
  const taskId = await addTask(hub, {
    backoff_s: 0,
    creator_node: "boss",
    lux_reward: 3,
    review: "creator",
    ...fields,
  });
  await ok(hub.post("/task/claim", { task_id: taskId, node_id: "w1" }));
  await ok(complete(hub, taskId, "w1"));
  return taskId;
}

function complete(hub: TestHub, taskId: string, nodeId: string, result: Fields = RESULT) {
  return hub.post("/task/complete", { task_id: taskId, node_id: nodeId, result });
}

function review(hub: TestHub, taskId: string, verdict: string, fields: Fields = {}) {
  return hub.post("/task/review", { task_id: taskId, verdict, ...fields });
}

/** A task/next that waits. */
async function waiting(hub: TestHub, nodeId: string) {
  const beatOf = async (): Promise<unknown> =>
    record((await ok(hub.get(`/node/${nodeId}`)))["node"])["last_heartbeat"];
  hub.clock.pass(HEARTBEAT_FRESH_MS); // so that the call writes a heartbeat
  const before = await beatOf();
  const call = hub.post("/task/next", { node_id: nodeId, wait: 120 });
  await until("it waits", async () => (await beatOf()) !== before);
  return { call };
}

async function taskOf(hub: TestHub, taskId: string): Promise<Fields> {
  return record((await ok(hub.get(`/task/${taskId}`)))["task"]);
}

function keyed(secret: string) {
  return { headers: { "X-Matrix-Secret": secret } };
}

async function balanceOf(hub: TestHub, nodeId: string): Promise<unknown> {
  return record((await ok(hub.get(`/node/${nodeId}`)))["node"])["lux_balance"];
}

async function eventsOf(hub: TestHub, taskId: string): Promise<readonly string[]> {
  const { events } = await ok(hub.get(`/events?since=0&task_id=${taskId}`));
  return list({ events }, "events").map(({ kind }) => String(kind));
}

describe("a task with a review", () => {
  test("holds its reward until the verdict, and pass pays it once", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1"]);
    const taskId = await addTask(hub, { creator_node: "boss", lux_reward: 3, review: "creator" });
    expect((await taskOf(hub, taskId))["review"]).toMatchObject({
      by: "creator",
      state: null,
      within_s: 604_800,
    });
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "w1" }));
    const done = await ok(complete(hub, taskId, "w1"));
    expect(done).toMatchObject({ status: "completed", lux_paid: 0, lux_held: 3 });
    expect(await ok(complete(hub, taskId, "w1"))).toMatchObject({ lux_paid: 0, lux_held: 3 });
    expect(await taskOf(hub, taskId)).toMatchObject({
      status: "completed",
      waiting_for: "review",
      review: { state: "pending", note: null, reviewed_by: null, until: expect.any(String) },
    });
    expect(await balanceOf(hub, "w1")).toBe(0);
    expect(await ok(hub.get("/reviews"))).toMatchObject({
      total: 1,
      reviews: [{ task_id: taskId, assigned_node: "w1", creator_node: "boss", lux_held: 3 }],
    });
    const passed = await ok(review(hub, taskId, "pass", { node_id: "boss", note: "Good." }));
    expect(passed["task"]).toMatchObject({
      status: "completed",
      waiting_for: null,
      review: { state: "passed", note: "Good.", reviewed_by: "boss", timed_out: false },
    });
    await ok(review(hub, taskId, "pass", { node_id: "boss" }));
    await refused(review(hub, taskId, "reject", { node_id: "boss" }), 409, "review_decided");
    expect(await balanceOf(hub, "w1")).toBe(3);
    expect(await ok(complete(hub, taskId, "w1"))).toMatchObject({ lux_paid: 3, lux_held: 0 });
    expect(await ok(hub.get("/reviews"))).toMatchObject({ total: 0, reviews: [] });
    expect(await eventsOf(hub, taskId)).toEqual([
      "task.created",
      "task.assigned",
      "task.completed",
      "task.review_requested",
      "task.review_passed",
      "lux.paid",
    ]);
  });

  test("is open again after reject, with the note for the next worker, and pays nothing", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1", "w2"]);
    const taskId = await inReview(hub);
    const rejected = await ok(review(hub, taskId, "reject", { note: "Wrong colour." }));
    expect(rejected["task"]).toMatchObject({
      status: "open",
      attempts: 1,
      result: null,
      failure: { kind: "rejected", message: "Wrong colour.", node_id: "w1" },
      review: { state: "rejected", note: "Wrong colour." },
    });
    expect(await balanceOf(hub, "w1")).toBe(0);
    const { context } = await ok(hub.post("/task/next", { node_id: "w2" }));
    expect(context).toMatchObject({
      review: { note: "Wrong colour.", reviewed_by: null },
      failures: [{ kind: "rejected" }],
    });
    await ok(complete(hub, taskId, "w2"));
    await ok(review(hub, taskId, "pass"));
    expect([await balanceOf(hub, "w1"), await balanceOf(hub, "w2")]).toEqual([0, 3]);
  });

  once.test("of one's own is not paid after its review either, if the hub pays none of these", async () => {
    await using hub = await startHub({ selfReward: false });
    await addNodes(hub, ["w1"]);
    const taskId = await addTask(hub, { creator_node: "w1", lux_reward: 3, review: "creator" });
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "w1" }));
    expect(await ok(complete(hub, taskId, "w1"))).toMatchObject({ lux_paid: 0, lux_held: 0 });
    await ok(review(hub, taskId, "pass"));
    expect(await balanceOf(hub, "w1")).toBe(0);
  });

  test("fails when its last attempt is rejected, and then what depends on it", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1"]);
    const taskId = await inReview(hub, { max_attempts: 1 });
    const dependent = await addTask(hub, { depends_on: [taskId] });
    await ok(review(hub, taskId, "reject"));
    expect(await taskOf(hub, taskId)).toMatchObject({ status: "failed", failure: { kind: "rejected" } });
    expect(await taskOf(hub, dependent)).toMatchObject({ status: "failed", failure: { kind: "dependency" } });
  });

  test("keeps what depends on it waiting until it has passed", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1"]);
    const first = await addTask(hub, { review: "creator", creator_node: "boss" });
    const before = await addTask(hub, { depends_on: [first] });
    await ok(hub.post("/task/claim", { task_id: first, node_id: "w1" }));
    await ok(complete(hub, first, "w1"));
    const after = await addTask(hub, { depends_on: [first] });
    for (const taskId of [before, after]) {
      expect(await taskOf(hub, taskId)).toMatchObject({
        ready: false,
        unmet: { count: 1, task_ids: [first] },
      });
      const { context } = await ok(hub.get(`/task/${taskId}?context=1`));
      expect(context).toMatchObject({ inputs: [{ task_id: first, result: null }] });
      await refused(hub.post("/task/claim", { task_id: taskId, node_id: "w1" }), 409, "task_not_ready");
    }
    const { reasons } = await ok(hub.get(`/task/${before}/explain`));
    expect(reasons).toMatchObject([{ code: "depends_on" }, { code: "review", task_ids: [first] }]);
    const waits = await ok(hub.get(`/task/${first}/explain`));
    expect(waits).toMatchObject({ ready: false, reasons: [{ code: "review", until: expect.any(String) }] });
    await ok(review(hub, first, "pass"));
    for (const taskId of [before, after]) expect(await taskOf(hub, taskId)).toMatchObject({ ready: true });
    const claimed = await ok(hub.post("/task/claim", { task_id: before, node_id: "w1" }));
    expect(claimed["context"]).toMatchObject({ inputs: [{ task_id: first, result: RESULT }] });
  });

  test("keeps its group from its end, and itself from retention", async () => {
    const clock = new TestClock();
    await using hub = await startHub({ clock });
    await addNodes(hub, ["boss", "w1"]);
    const taskId = await inReview(hub, { group: "g", retain_s: 0 });
    expect(await ok(hub.get("/group/g"))).toMatchObject({
      done: false,
      unfinished: 1,
      in_review: 1,
      lux_reward: 3,
      lux_paid: 0,
    });
    clock.pass(120_000);
    await hub.sweep();
    expect(await taskOf(hub, taskId)).toMatchObject({ waiting_for: "review" });
    await ok(review(hub, taskId, "pass"));
    const ended = await ok(hub.get("/group/g?wait=5"));
    expect(ended).toMatchObject({ done: true, unfinished: 0, lux_paid: 3 });
    expect(ended["in_review"]).toBeUndefined();
    clock.pass(120_000);
    await hub.sweep();
    await refused(hub.get(`/task/${taskId}`), 404, "task_not_found");
    const { events } = await ok(hub.get("/events?since=0&kind=group.ended"));
    expect(events).toHaveLength(1);
  });

  test("a task deleted while it waits pays nothing, and fails what depends on it", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1"]);
    const taskId = await inReview(hub);
    const dependent = await addTask(hub, { depends_on: [taskId] });
    await ok(hub.post("/task/delete", { task_id: taskId }, { headers: ADMIN }));
    await hub.sweep();
    expect(await taskOf(hub, dependent)).toMatchObject({ status: "failed" });
    expect(await balanceOf(hub, "w1")).toBe(0);
  });

  once.test("is neither retried nor cancelled while it waits", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1"]);
    const taskId = await inReview(hub);
    await refused(hub.post("/task/retry", { task_id: taskId }), 409, "task_not_failed");
    await refused(hub.post("/task/cancel", { task_id: taskId }), 409, "task_completed");
    const result = { ...RESULT, lesson: "another" };
    await refused(complete(hub, taskId, "w1", result), 409, "task_completed");
  });

  once.test("keeps its unique key while it waits", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1"]);
    const taskId = await inReview(hub, { unique_key: "k" });
    expect(await addTask(hub, { unique_key: "k" })).toBe(taskId);
    await ok(review(hub, taskId, "pass"));
    expect(await addTask(hub, { unique_key: "k" })).not.toBe(taskId);
  });

  once.test("teaches nobody before it has passed", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1"]);
    const taskId = await inReview(hub, { task_type: "paint" });
    expect(list(await ok(hub.get("/lessons?task_type=paint")), "lessons")).toEqual([]);
    await ok(review(hub, taskId, "pass"));
    expect(list(await ok(hub.get("/lessons?task_type=paint")), "lessons")).toHaveLength(1);
  });
});

describe("the deadline of a review", () => {
  for (const [word, state, balance, kind] of [
    ["pay", "passed", 3, "task.review_passed"],
    ["reject", "rejected", 0, "task.review_rejected"],
  ] as const)
    test(`with ${word} the result has ${state}`, async () => {
      const clock = new TestClock();
      await using hub = await startHub({ clock });
      await addNodes(hub, ["boss", "w1"]);
      const taskId = await inReview(hub, { review_within_s: 60, on_review_timeout: word });
      clock.jump(59_000);
      await hub.sweep();
      expect((await taskOf(hub, taskId))["review"]).toMatchObject({ state: "pending" });
      clock.jump(2_000);
      await hub.sweep();
      await hub.sweep();
      const review = { state, reviewed_by: null, timed_out: true, note: null };
      expect((await taskOf(hub, taskId))["review"]).toMatchObject(review);
      expect(await balanceOf(hub, "w1")).toBe(balance);
      expect((await eventsOf(hub, taskId)).filter((event) => event === kind)).toHaveLength(1);
    });

  test("pays a node that was deleted meanwhile, and one node for many results", async () => {
    const clock = new TestClock();
    await using hub = await startHub({ clock });
    await addNodes(hub, ["boss", "w1", "w2"]);
    for (let i = 0; i < 3; i++) await inReview(hub, { review_within_s: 60 });
    await ok(hub.post("/node/delete", { node_id: "w1" }, { headers: ADMIN }));
    clock.jump(61_000);
    await hub.sweep();
    const { entries } = await ok(hub.get("/lux/ledger?node_id=w1"));
    expect(entries).toMatchObject([{ amount: 3 }, { amount: 3 }, { amount: 3 }]);
  });
});

describe("who reviews", () => {
  once.test("a node that is named, and no other", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1", "w2", "judge"]);
    await refused(
      hub.post("/task/create", { title: "t", description: "d", review: "node:nobody" }),
      404,
      "node_not_found",
    );
    const taskId = await inReview(hub, { review: "node:judge" });
    await refused(review(hub, taskId, "pass", { node_id: "w1" }), 403, "own_work");
    await refused(review(hub, taskId, "pass", { node_id: "w2" }), 403, "not_reviewer");
    await refused(review(hub, taskId, "pass", { node_id: "boss" }), 403, "not_reviewer");
    await refused(review(hub, taskId, "pass", { node_id: "judge", epoch: 99 }), 409, "stale_lease");
    const { epoch } = record((await taskOf(hub, taskId))["review"]);
    await ok(review(hub, taskId, "pass", { node_id: "judge", epoch }));
    const { events } = await ok(hub.get(`/events?since=0&kind=task.review_requested`));
    expect(events).toMatchObject([{ node_id: "judge", data: { by: "node:judge", creator_node: "boss" } }]);
  });

  test("never the node or the key that did the work", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1", "w2"]);
    const add = async (fields: Fields) =>
      String((await ok(hub.post("/key/add", fields, { headers: ADMIN })))["secret"]);
    const shared = keyed(await add({ name: "shared", role: "full" }));
    const bound = keyed(await add({ name: "own", role: "full", node_id: "w1" }));
    const boss = keyed(await add({ name: "boss", role: "full", node_id: "boss" }));
    const taskId = await addTask(hub, { review: "creator", creator_node: "boss" });
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "w1" }, shared));
    await ok(hub.post("/task/complete", { task_id: taskId, node_id: "w1", result: RESULT }, shared));
    const pass = { task_id: taskId, verdict: "pass" };
    await refused(hub.post("/task/review", pass, shared), 403, "own_work");
    await refused(hub.post("/task/review", { ...pass, node_id: "w2" }, shared), 403, "own_work");
    await refused(hub.post("/task/review", pass, bound), 403, "own_work");
    await ok(hub.post("/task/review", pass, boss));
  });

  once.test("a bound key of another creator does not", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1", "w2"]);
    const { secret } = await ok(
      hub.post("/key/add", { name: "k", role: "full", node_id: "w2" }, { headers: ADMIN }),
    );
    const taskId = await inReview(hub);
    const pass = { task_id: taskId, verdict: "pass" };
    await refused(hub.post("/task/review", pass, keyed(String(secret))), 403, "not_reviewer");
  });

  once.test("a result that was not asked to be reviewed, or is not there", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["w1"]);
    const plain = await addTask(hub);
    await refused(review(hub, plain, "pass"), 409, "not_in_review");
    await refused(review(hub, await addTask(hub, { review: "creator" }), "pass"), 409, "not_in_review");
    await refused(review(hub, NO_ID, "pass"), 404, "task_not_found");
    await badFields(review(hub, plain, "maybe"), ["verdict"]);
    for (const wrong of ["nobody", "node:", "capability:", "capability:a,b", "node:a b"])
      await badFields(hub.post("/task/create", { title: "t", description: "d", review: wrong }), ["review"]);
  });
});

describe("a review by a capability", () => {
  test("is a task of that type for another node, whose result has the verdict", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1"]);
    await addNode(hub, "judge", { capabilities: "review" });
    const taskId = await inReview(hub, { review: "capability:review", description: "Paint it green." });
    const own = await ok(hub.post("/task/next", { node_id: "w1" }));
    expect(own["task"]).toBeNull();
    const { task, context } = await ok(hub.post("/task/next", { node_id: "judge" }));
    expect(task).toMatchObject({
      task_type: "review",
      parent_task: taskId,
      made_for: "review",
      lux_reward: 0,
      description: expect.stringContaining("Paint it green."),
    });
    expect(context).toMatchObject({ inputs: [{ task_id: taskId, result: RESULT }] });
    const reviewId = String(record(task)["task_id"]);
    await refused(complete(hub, reviewId, "judge"), 409, "verdict_missing");
    await ok(complete(hub, reviewId, "judge", { ...RESULT, verdict: "reject", note: "It is blue." }));
    await until("the hub follows", async () => (await taskOf(hub, taskId))["status"] === "open");
    expect((await taskOf(hub, taskId))["review"]).toMatchObject({
      state: "rejected",
      note: "It is blue.",
      reviewed_by: "judge",
    });
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "w1" }));
    await ok(complete(hub, taskId, "w1"));
    const again = record((await ok(hub.post("/task/next", { node_id: "judge", wait: 5 })))["task"]);
    await ok(complete(hub, String(again["task_id"]), "judge", { ...RESULT, output: { verdict: "pass" } }));
    await until("the hub follows", async () => (await balanceOf(hub, "w1")) === 3);
  });

  test("reaches the node that waits for work behind the one that did it", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1"]);
    await addNode(hub, "judge", { capabilities: "review" });
    const taskId = await addTask(hub, { review: "capability:review" });
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "w1" }));
    const first = await waiting(hub, "w1");
    const second = await waiting(hub, "judge");
    await ok(complete(hub, taskId, "w1"));
    expect((await ok(second.call))["task"]).toMatchObject({ parent_task: taskId });
    const other = await addTask(hub);
    expect((await ok(first.call))["task"]).toMatchObject({ task_id: other });
  });

  once.test("the node that did the work cannot take it, nor is it assigned to it", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1"]);
    const taskId = await inReview(hub, { review: "capability:review" });
    await until("the hub follows", async () => (await ok(hub.get("/task/list")))["total"] === 2);
    const [child] = list(await ok(hub.get("/task/list?task_type=review")), "tasks");
    const asked = { task_id: String(child?.["task_id"]), node_id: "w1" };
    await refused(hub.post("/task/claim", asked), 409, "node_excluded");
    await refused(hub.post("/task/assign", asked), 409, "node_excluded");
    await ok(review(hub, taskId, "pass"));
    await until("the hub follows", async () => (await taskOf(hub, asked.task_id))["status"] === "failed");
  });

  test("on B it is assigned to another node at once", async () => {
    await using hub = await startHub();
    await addNode(hub, "w1", {}, "B");
    const taskId = await addTask(hub, { review: "capability:review" }, "B");
    await ok(
      hub.post("/task/complete", { task_id: taskId, node_id: "w1", result: RESULT }, { variant: "B" }),
    );
    await addNode(hub, "w2", {}, "B");
    await until("the hub follows", async () => {
      const { tasks } = await ok(hub.get("/task/list?node_id=w2"));
      return list({ tasks }, "tasks").some(({ parent_task }) => parent_task === taskId);
    });
    expect(list(await ok(hub.get("/task/list?node_id=w1")), "tasks")).toHaveLength(1);
  });

  once.test("what a node may not have does not hide the task behind it", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1"]);
    for (let i = 0; i < 40; i++) await inReview(hub, { review: "capability:review", priority: 0 });
    await until(
      "the hub follows",
      async () => (await ok(hub.get("/task/list?task_type=review")))["total"] === 40,
    );
    const taskId = await addTask(hub, { priority: 2 });
    const { task } = await ok(hub.post("/task/next", { node_id: "w1" }));
    expect(task).toMatchObject({ task_id: taskId });
  });
});

describe("a batch", () => {
  test("passes and rejects in one commit", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["boss", "w1"]);
    const [a, b] = [await inReview(hub), await inReview(hub)];
    const requests = [
      { path: "task/review", body: { task_id: a, verdict: "pass" } },
      { path: "task/review", body: { task_id: b, verdict: "reject" } },
      { path: "task/review", body: { task_id: a, verdict: "reject" } },
    ];
    const { answers } = await ok(hub.post("/batch", { requests }));
    expect(answers).toMatchObject([{ status: 200 }, { status: 200 }, { status: 409 }]);
    expect(await balanceOf(hub, "w1")).toBe(3);
  });
});
