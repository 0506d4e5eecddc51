/**
 * The worker's and the producer's commands besides claim and complete: release, fail, extend, cancel, retry, delay,
 * dependencies, and waiting for the end of a task. Nodes that leave and drain.
 */
import { describe, expect, test } from "bun:test";
import { DAY_MS, HOUR_MS, SECOND_MS } from "../../src/lib/clock.ts";
import { type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import {
  NO_ID,
  RESULT,
  VARIANTS,
  addNode,
  addNodes,
  addTask,
  addTaskOf,
  badFields,
  complete,
  eventKinds,
  inBatches,
  list,
  nodeOf,
  ok,
  pick,
  record,
  refused,
  until,
} from "./scene.ts";

const once = onlyOnce(import.meta.url);

type Fields = Readonly<Record<string, unknown>>;

/** Asks for a step of a task. */
const say = (hub: TestHub, step: string, taskId: string, fields: Fields = {}) =>
  hub.post(`/task/${step}`, { task_id: taskId, ...fields });

async function get(hub: TestHub, taskId: string): Promise<Record<string, unknown>> {
  return record((await ok(hub.get(`/task/${taskId}`)))["task"]);
}

async function claim(hub: TestHub, taskId: string, nodeId: string): Promise<number> {
  const { lease } = await ok(say(hub, "claim", taskId, { node_id: nodeId }));
  return Number(record(lease)["epoch"]);
}

/** Lets time pass, in steps below every lease of a node, whose heartbeats go on. */
async function pass(hub: TestHub, ms: number, nodeIds: readonly string[] = []): Promise<void> {
  for (let left = ms; left > 0; left -= 30 * SECOND_MS) {
    hub.clock.pass(Math.min(left, 30 * SECOND_MS));
    for (const nodeId of nodeIds) await ok(hub.post("/node/heartbeat", { node_id: nodeId }));
    await hub.sweep();
  }
}

const iso = (ms: number): string => new Date(ms).toISOString();

describe("release", () => {
  test("gives a task back, with its attempts, and it can be claimed again", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const taskId = await addTask(hub);
    const epoch = await claim(hub, taskId, "n1");
    const answer = await ok(say(hub, "release", taskId, { node_id: "n1", epoch, reason: "too hard" }));
    expect(answer).toMatchObject({ task_id: taskId, status: "open", assigned_node: null });
    expect(answer["lease"]).toEqual({ epoch: epoch + 1, expires_at: null });
    expect(answer["task"]).toMatchObject({ attempts: 0, ready: true, started_at: null, failure: null });
    await refused(say(hub, "release", taskId, { node_id: "n1" }), 409, "task_not_assigned");
    expect(await claim(hub, taskId, "n2")).toBe(epoch + 2);
    await refused(say(hub, "release", taskId, { node_id: "n1" }), 403, "not_assigned_to_node");
    await refused(say(hub, "release", taskId, { node_id: "nobody" }), 404, "node_not_found");
    await refused(say(hub, "release", NO_ID, { node_id: "n1" }), 404, "task_not_found");
    const released = list(await ok(hub.get("/events?since=0&kind=task.released")), "events");
    expect(released).toMatchObject([{ node_id: "n1", task_id: taskId, data: { reason: "too hard" } }]);
  });

  once.test("the balancer gives it to another node, not straight back", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", {}, "B");
    const taskId = await addTask(hub, {}, "B");
    const alone = await ok(say(hub, "release", taskId, { node_id: "n1" }));
    expect(alone).toMatchObject({ assigned_node: null });
    await addNode(hub, "n2", {}, "B");
    expect(await get(hub, taskId)).toMatchObject({ assigned_node: "n2" });
    expect(await ok(say(hub, "release", taskId, { node_id: "n2" }))).toMatchObject({ assigned_node: "n1" });
  });
});

describe("fail", () => {
  test("a failed attempt is open again after the backoff, which doubles", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { max_tasks: 1 });
    const taskId = await addTask(hub, { backoff_s: 20 });
    for (const seconds of [20, 40]) {
      await claim(hub, taskId, "n1");
      const { task } = await ok(say(hub, "fail", taskId, { node_id: "n1", error: "disk full" }));
      const { not_before, updated_at, ...rest } = record(task);
      expect(Date.parse(String(not_before)) - Date.parse(String(updated_at))).toBe(seconds * SECOND_MS);
      expect(rest).toMatchObject({
        status: "open",
        ready: false,
        attempts: seconds / 20,
        failure: { kind: "failed", message: "disk full", node_id: "n1" },
      });
      await refused(say(hub, "claim", taskId, { node_id: "n1" }), 409, "task_not_ready");
      expect(list(await ok(hub.get("/task/pull?node_id=n1")), "tasks")).toEqual([]);
      await pass(hub, seconds * SECOND_MS, ["n1"]);
      expect(pick(await ok(hub.get("/task/pull?node_id=n1")), "tasks", "task_id")).toEqual([taskId]);
    }
  });

  once.test.each(VARIANTS)("the last attempt fails the task, and %s says so", async (variant) => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, { max_attempts: 1, lux_reward: 5 });
    await claim(hub, taskId, "n1");
    const failed = await ok(
      hub.post("/task/fail", { task_id: taskId, node_id: "n1", error: "no" }, { variant }),
    );
    expect(failed).toMatchObject({
      status: "failed",
      assigned_node: null,
      task: { attempts: 1, ready: false },
    });
    for (const step of ["claim", "release", "extend"])
      await refused(say(hub, step, taskId, { node_id: "n1" }), 409, "task_failed");
    await refused(say(hub, "fail", taskId, { node_id: "n1", error: "no" }), 409, "task_failed");
    await refused(complete(hub, taskId, "n1", { variant }), 409, "task_failed");
    await refused(hub.admin("/task/revoke", { task_id: taskId }), 409, "task_failed");
    await refused(say(hub, "cancel", taskId), 409, "task_failed");
    expect(await nodeOf(hub, "n1")).toMatchObject({ lux_balance: 0, tasks_assigned: 0, tasks_completed: 0 });
    const listed = await ok(hub.get("/task/list?status=failed", { variant }));
    expect(pick(listed, "tasks", "task_id")).toEqual([taskId]);
    expect(pick(await ok(hub.get("/task/list", { variant })), "tasks", "status")).toEqual(["failed"]);
    const stats = await ok(hub.get("/task/stats", { variant }));
    expect(stats).toMatchObject({ total: 1, by_status: { failed: 1, completed: 0 } });
    expect(await ok(hub.get("/status"))).toMatchObject({ tasks_count: 1 });
    expect((await eventKinds(hub, taskId)).slice(-2)).toEqual(["task.attempt_failed", "task.failed"]);
  });

  test("retry: false fails the task at once; retry opens it again", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub);
    await refused(say(hub, "retry", taskId), 409, "task_not_failed");
    const epoch = await claim(hub, taskId, "n1");
    await ok(say(hub, "fail", taskId, { node_id: "n1", error: "never", retry: false }));
    const again = await ok(say(hub, "retry", taskId));
    expect(again).toMatchObject({ status: "open", task: { attempts: 0, ready: true } });
    expect(await claim(hub, taskId, "n1")).toBeGreaterThan(epoch + 1);
    await ok(complete(hub, taskId, "n1"));
    await refused(say(hub, "retry", taskId), 409, "task_not_failed");
    await refused(say(hub, "cancel", taskId), 409, "task_completed");
    expect((await eventKinds(hub, taskId)).includes("task.retried")).toBe(true);
  });

  once.test("a node that goes offline ends a task only if it has max_attempts", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const endless = await addTaskOf(hub, "n1");
    const limited = await addTaskOf(hub, "n1", { max_attempts: 1 });
    await pass(hub, 200 * SECOND_MS);
    const failure = { kind: "offline", node_id: "n1" };
    expect(await get(hub, endless)).toMatchObject({ status: "open", ready: true, attempts: 1, failure });
    expect(await get(hub, limited)).toMatchObject({ status: "failed", attempts: 1, failure });
    expect((await eventKinds(hub, limited)).slice(-2)).toEqual(["task.requeued", "task.failed"]);
  });

  const BAD: readonly (readonly [string, Fields, readonly string[]])[] = [
    ["fail", { node_id: "n1" }, ["error"]],
    ["fail", { node_id: "n1", error: " " }, ["error"]],
    ["fail", { node_id: "n1", error: "x".repeat(4_001), retry: "no" }, ["error", "retry"]],
    ["fail", { node_id: "n1", error: "e", epoch: -1 }, ["epoch"]],
    ["release", { node_id: "n1", epoch: "1", reason: 1 }, ["epoch", "reason"]],
    ["extend", { node_id: "n1", note: "x".repeat(1_001), epoch: 1.5 }, ["note", "epoch"]],
    ["extend", {}, ["node_id"]],
    ["cancel", { node_id: "a b", reason: "x".repeat(501) }, ["node_id", "reason"]],
    ["retry", { task_id: "" }, ["task_id"]],
  ];
  once.test.each(BAD)("%s refuses %j", async (step, fields, paths) => {
    await using hub = await startHub();
    await badFields(say(hub, step, NO_ID, fields), paths);
  });
});

describe("leases and epochs", () => {
  test("a timeout takes the task back, and its late holder is refused", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["slow", "fast"]);
    const taskId = await addTask(hub, { timeout_s: 60, backoff_s: 0, lux_reward: 3 });
    const claimed = await ok(say(hub, "claim", taskId, { node_id: "slow" }));
    const lease = record(claimed["lease"]);
    const heldMs = Date.parse(String(lease["expires_at"])) - hub.clock.now();
    expect(heldMs).toBeGreaterThan(50 * SECOND_MS);
    expect(heldMs).toBeLessThanOrEqual(60 * SECOND_MS);
    expect(claimed["task"]).toMatchObject({ timeout_s: 60 });
    await pass(hub, 30 * SECOND_MS, ["slow", "fast"]);
    expect(await get(hub, taskId)).toMatchObject({ status: "assigned", attempts: 0 });
    await pass(hub, 60 * SECOND_MS, ["slow", "fast"]);
    expect(await get(hub, taskId)).toMatchObject({
      status: "open",
      attempts: 1,
      failure: { kind: "timed_out", node_id: "slow" },
    });
    const { epoch } = lease;
    await claim(hub, taskId, "fast");
    const late = { task_id: taskId, node_id: "slow", epoch };
    await refused(hub.post("/task/complete", { ...late, result: RESULT }), 409, "stale_lease");
    await refused(hub.post("/task/fail", { ...late, error: "late" }), 409, "stale_lease");
    for (const step of ["release", "extend"])
      await refused(hub.post(`/task/${step}`, late), 409, "stale_lease");
    await ok(complete(hub, taskId, "fast"));
    expect(await nodeOf(hub, "fast")).toMatchObject({ lux_balance: 3 });
    expect(await nodeOf(hub, "slow")).toMatchObject({ lux_balance: 0 });
    expect(await eventKinds(hub, taskId)).toContain("task.timed_out");
  });

  once.test("a node that claims its task again holds it under another epoch", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, { timeout_s: 10, backoff_s: 0 });
    const first = await claim(hub, taskId, "n1");
    await pass(hub, 11 * SECOND_MS);
    const second = await claim(hub, taskId, "n1");
    expect(second).toBeGreaterThan(first);
    expect(await claim(hub, taskId, "n1")).toBe(second); // a repeat is no hand-out
    const asked = { task_id: taskId, node_id: "n1", result: RESULT };
    await refused(hub.post("/task/complete", { ...asked, epoch: first }), 409, "stale_lease");
    await ok(hub.post("/task/complete", { ...asked, epoch: second }));
    await ok(hub.post("/task/complete", { ...asked, epoch: second }));
  });

  test("extend keeps the lease, and shows a note", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, { timeout_s: 60 });
    const epoch = await claim(hub, taskId, "n1");
    for (const note of ["a third", "two thirds"]) {
      await pass(hub, 50 * SECOND_MS, ["n1"]);
      const extended = await ok(say(hub, "extend", taskId, { node_id: "n1", epoch, note }));
      expect(record(extended["lease"])["epoch"]).toBe(epoch);
      expect(await get(hub, taskId)).toMatchObject({ status: "assigned", progress: note, attempts: 0 });
    }
    const notes = list(await ok(hub.get("/events?since=0&kind=task.progress")), "events");
    expect(notes.map(({ data }) => data)).toEqual([{ note: "a third" }, { note: "two thirds" }]);
    await pass(hub, 70 * SECOND_MS, ["n1"]);
    expect(await get(hub, taskId)).toMatchObject({ status: "open", progress: null, attempts: 1 });
  });

  test("max_run_s ends an attempt, however often it is extended, and each attempt has it whole", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, { timeout_s: 60, max_run_s: 100, backoff_s: 0, max_attempts: 2 });
    const leftMs = async (step: string): Promise<number> => {
      const { lease } = await ok(say(hub, step, taskId, { node_id: "n1" }));
      return Date.parse(String(record(lease)["expires_at"])) - hub.clock.now();
    };
    for (const attempts of [1, 2]) {
      expect(await leftMs("claim")).toBeWithin(50 * SECOND_MS, 60 * SECOND_MS + 1);
      await pass(hub, 50 * SECOND_MS, ["n1"]);
      expect(await leftMs("extend")).toBeWithin(40 * SECOND_MS, 50 * SECOND_MS + 1); // not 60
      await pass(hub, 30 * SECOND_MS, ["n1"]);
      expect(await leftMs("extend")).toBeWithin(10 * SECOND_MS, 20 * SECOND_MS + 1);
      expect(await get(hub, taskId)).toMatchObject({ status: "assigned", attempts: attempts - 1 });
      await pass(hub, 30 * SECOND_MS, ["n1"]);
      expect(await get(hub, taskId)).toMatchObject({
        status: attempts === 1 ? "open" : "failed",
        attempts,
        max_run_s: 100,
        failure: { kind: "timed_out", message: expect.stringContaining("max_run_s of 100 s") },
      });
    }
    expect((await eventKinds(hub, taskId)).slice(-2)).toEqual(["task.timed_out", "task.failed"]);
  });

  once.test("max_run_s needs no timeout_s, and an extend does not move it", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, { max_run_s: 60, backoff_s: 0 });
    const claimed = await ok(say(hub, "claim", taskId, { node_id: "n1" }));
    await pass(hub, 30 * SECOND_MS, ["n1"]);
    const extended = await ok(say(hub, "extend", taskId, { node_id: "n1", note: "half" }));
    const end = (answer: Fields): number => Date.parse(String(record(answer["lease"])["expires_at"]));
    expect(Math.abs(end(extended) - end(claimed))).toBeLessThan(SECOND_MS);
    hub.clock.jump(HOUR_MS);
    await hub.sweep();
    expect(await get(hub, taskId)).toMatchObject({ status: "assigned" }); // starts again after a jump, as every lease does
    await pass(hub, 70 * SECOND_MS, ["n1"]);
    expect(await get(hub, taskId)).toMatchObject({ status: "open", failure: { kind: "timed_out" } });
  });

  once.test("a jump of the wall clock ends no lease", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, { timeout_s: 60 });
    await claim(hub, taskId, "n1");
    hub.clock.jump(HOUR_MS);
    await hub.sweep();
    expect(await get(hub, taskId)).toMatchObject({ status: "assigned" });
    const expires = record((await ok(say(hub, "claim", taskId, { node_id: "n1" })))["lease"])["expires_at"];
    expect(Date.parse(String(expires)) - hub.clock.now()).toBeGreaterThan(50 * SECOND_MS);
  });

  once.test("claim sets started_at, assign does not, and a claim of an assigned task does", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTaskOf(hub, "n1");
    expect(await get(hub, taskId)).toMatchObject({ started_at: null });
    await claim(hub, taskId, "n1");
    const { started_at } = await get(hub, taskId);
    expect(started_at).not.toBeNull();
    await claim(hub, taskId, "n1");
    expect(await get(hub, taskId)).toMatchObject({ started_at });
    await ok(hub.admin("/task/revoke", { task_id: taskId }));
    expect(await get(hub, taskId)).toMatchObject({ started_at: null });
  });
});

describe("cancel", () => {
  test("ends an open and an assigned task, and records the node and the reason", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "boss"]);
    const open = await addTask(hub);
    const held = await addTaskOf(hub, "n1");
    await ok(say(hub, "cancel", open));
    const answer = await ok(say(hub, "cancel", held, { node_id: "boss", reason: "not needed" }));
    expect(answer).toMatchObject({ status: "failed", assigned_node: null });
    expect(await get(hub, open)).toMatchObject({
      failure: { kind: "cancelled", message: null, node_id: null },
    });
    expect(await get(hub, held)).toMatchObject({
      failure: { kind: "cancelled", message: "not needed", node_id: "boss" },
    });
    await refused(complete(hub, held, "n1"), 409, "task_failed");
    await refused(say(hub, "cancel", await addTask(hub), { node_id: "nobody" }), 404, "node_not_found");
    expect(await nodeOf(hub, "n1")).toMatchObject({ tasks_assigned: 0 });
  });
});

describe("delay and expiry", () => {
  test("a delayed task is not handed out before its time", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", {}, "B");
    const delayed = await addTask(hub, { delay_s: 90 }, "B");
    const at = await addTask(hub, { not_before: iso(hub.clock.now() + 90 * SECOND_MS) });
    const past = await addTask(hub, { not_before: iso(hub.clock.now() - DAY_MS) });
    expect(await get(hub, delayed)).toMatchObject({ status: "open", ready: false, assigned_node: null });
    expect(await get(hub, past)).toMatchObject({ ready: true });
    for (const step of ["claim", "assign"])
      await refused(say(hub, step, at, { node_id: "n1" }), 409, "task_not_ready");
    await refused(complete(hub, at, "n1", { variant: "B" }), 409, "task_not_ready");
    await refused(complete(hub, at, "n1"), 409, "task_not_assigned");
    expect(pick(await ok(hub.get("/task/pull?node_id=n1")), "tasks", "task_id")).toEqual([past]);
    expect(await ok(hub.post("/task/batch-assign", undefined, { variant: "B" }))).toMatchObject({
      assigned: 1,
    });
    await pass(hub, 60 * SECOND_MS, ["n1"]);
    expect(await get(hub, delayed)).toMatchObject({ assigned_node: null });
    await pass(hub, 40 * SECOND_MS, ["n1"]);
    // The balancer gives away what was created through B.
    expect(await get(hub, delayed)).toMatchObject({ assigned_node: "n1" });
    expect(pick(await ok(hub.get("/task/pull?node_id=n1")), "tasks", "task_id")).toEqual([at]);
    await claim(hub, at, "n1");
  });

  test("a task that is not completed by expires_at fails", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const expiresAt = iso(hub.clock.now() + 60 * SECOND_MS);
    const open = await addTask(hub, { expires_at: expiresAt });
    const held = await addTaskOf(hub, "n1", { expires_at: expiresAt });
    const done = await addTaskOf(hub, "n1", { expires_at: expiresAt });
    await ok(complete(hub, done, "n1"));
    await pass(hub, 70 * SECOND_MS, ["n1"]);
    expect(await get(hub, open)).toMatchObject({
      status: "failed",
      attempts: 0,
      expires_at: expiresAt,
      failure: { kind: "expired", node_id: null },
    });
    expect(await get(hub, held)).toMatchObject({
      status: "failed",
      failure: { kind: "expired", node_id: "n1" },
    });
    expect(await get(hub, done)).toMatchObject({ status: "completed" });
    // It would expire again at once.
    expect(await ok(say(hub, "retry", open))).toMatchObject({ status: "open", task: { expires_at: null } });
  });

  const FAR = iso(Date.UTC(2100, 0, 1));
  const BAD: readonly (readonly [Fields, readonly string[]])[] = [
    [{ max_attempts: 0, backoff_s: -1, timeout_s: 0 }, ["max_attempts", "backoff_s", "timeout_s"]],
    [{ max_run_s: 0 }, ["max_run_s"]],
    [{ max_run_s: 2_592_001 }, ["max_run_s"]],
    [{ max_attempts: 101, backoff_s: 3_601, timeout_s: 604_801 }, ["max_attempts", "backoff_s", "timeout_s"]],
    [{ max_attempts: 1.5, backoff_s: "5" }, ["max_attempts", "backoff_s"]],
    [{ delay_s: 1, not_before: "2030-01-01T00:00:00Z" }, ["delay_s"]],
    [{ delay_s: -1, not_before: "tomorrow", expires_at: 5 }, ["delay_s", "not_before", "expires_at"]],
    [{ expires_at: "2020-01-01T00:00:00Z" }, ["expires_at"]],
    [{ expires_at: "2030-01-01T00:00:00" }, ["expires_at"]],
    [{ expires_at: FAR, not_before: FAR }, ["expires_at", "not_before"]],
    [{ depends_on: NO_ID }, ["depends_on"]],
    [{ depends_on: [1, ""] }, ["depends_on.0", "depends_on.1"]],
  ];
  once.test.each(BAD)("create refuses %j", async (fields, paths) => {
    await using hub = await startHub();
    await badFields(hub.post("/task/create", { title: "t", description: "d", ...fields }), paths);
  });
});

describe("depends_on", () => {
  test("a task is handed out once all its dependencies are completed", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const [a, b] = [await addTask(hub), await addTask(hub)];
    const last = await addTask(hub, { depends_on: [a, b, a] });
    expect(await get(hub, last)).toMatchObject({ depends_on: [a, b], status: "open", ready: false });
    await refused(say(hub, "claim", last, { node_id: "n1" }), 409, "task_not_ready");
    for (const [i, taskId] of [a, b].entries()) {
      await claim(hub, taskId, "n1");
      await ok(complete(hub, taskId, "n1"));
      expect(await get(hub, last)).toMatchObject({ ready: i === 1 });
    }
    await claim(hub, last, "n1");
    const done = await addTask(hub, { depends_on: [a] });
    expect(await get(hub, done)).toMatchObject({ ready: true });
  });

  once.test("the balancer gets it as soon as it is ready", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", {}, "B");
    const first = await addTask(hub, {}, "B");
    const second = await addTask(hub, { depends_on: [first] }, "B");
    expect(await get(hub, second)).toMatchObject({ assigned_node: null });
    await ok(complete(hub, first, "n1"));
    expect(await get(hub, second)).toMatchObject({ assigned_node: "n1" });
  });

  test("a task fails when a dependency fails or is deleted, and so do its dependents", async () => {
    await using hub = await startHub();
    const [a, b] = [await addTask(hub), await addTask(hub)];
    const afterA = await addTask(hub, { depends_on: [a, b] });
    const afterThat = await addTask(hub, { depends_on: [afterA] });
    const afterB = await addTask(hub, { depends_on: [b] });
    await ok(say(hub, "cancel", a));
    const kind = { failure: { kind: "dependency", node_id: null } };
    expect(await get(hub, afterA)).toMatchObject({ status: "failed", ...kind });
    expect(await get(hub, afterThat)).toMatchObject({ status: "failed", ...kind });
    expect(await get(hub, afterB)).toMatchObject({ status: "open" });
    await ok(hub.admin("/task/delete", { task_id: b }));
    expect(await get(hub, afterB)).toMatchObject({ status: "failed", ...kind });
    const late = await ok(
      hub.post("/task/create", { title: "t", description: "d", depends_on: [a] }, { variant: "B" }),
    );
    expect(late).toMatchObject({ status: "failed", task: kind });
    expect(await eventKinds(hub, String(late["task_id"]))).toEqual(["task.created", "task.failed"]);
    await badFields(hub.post("/task/create", { title: "t", description: "d", depends_on: [a, b] }), [
      "depends_on.1",
    ]);
  });

  once.test("after a retry of both, the task waits for its dependency again", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const first = await addTask(hub);
    const second = await addTask(hub, { depends_on: [first] });
    await ok(say(hub, "cancel", first));
    expect(await ok(say(hub, "retry", second))).toMatchObject({ status: "failed" });
    await ok(say(hub, "retry", first));
    expect(await ok(say(hub, "retry", second))).toMatchObject({ status: "open", task: { ready: false } });
    await claim(hub, first, "n1");
    await ok(complete(hub, first, "n1"));
    expect(await get(hub, second)).toMatchObject({ ready: true });
  });

  test("hundreds of tasks that depend on one are all updated when it ends", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const first = await addTask(hub);
    const draft = { title: "t", description: "d", depends_on: [first] };
    const many = await inBatches(hub, "task/create", new Array(1_100).fill(draft));
    await claim(hub, first, "n1");
    await ok(complete(hub, first, "n1"));
    const last = String(many.at(-1)?.["task_id"]);
    // The first hear of it at once, the others from periodic work, which may take several sweeps.
    await until("the last one is ready", async () => {
      await hub.sweep();
      return (await get(hub, last))["ready"] === true;
    });
    const ready = list(await ok(hub.get("/task/pull?node_id=n1&limit=1000")), "tasks");
    expect(ready.length).toBe(1_000);
  });
});

describe("GET task", () => {
  once.test.each(VARIANTS)("answers one task on %s", async (variant) => {
    await using hub = await startHub();
    const taskId = await addTask(hub);
    const { task } = await ok(hub.get(`/task/${taskId}`, { variant }));
    expect(task).toMatchObject({ task_id: taskId, status: variant === "A" ? "open" : "pending" });
    await refused(hub.get(`/task/${NO_ID}`, { variant }), 404, "task_not_found");
    for (const wait of ["-1", "301", "x"]) await badFields(hub.get(`/task/${taskId}?wait=${wait}`), ["wait"]);
    await refused(hub.get("/task/create"), 405, "method_not_allowed");
  });

  const ENDS: Readonly<Record<string, (hub: TestHub, taskId: string) => Promise<unknown>>> = {
    completed: (hub, taskId) => ok(complete(hub, taskId, "n1")),
    failed: (hub, taskId) => ok(say(hub, "cancel", taskId)),
  };
  test.each(Object.keys(ENDS))("waits until it is %s", async (status) => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTaskOf(hub, "n1");
    let isAnswered = false;
    const waiting = ok(hub.get(`/task/${taskId}?wait=60`)).finally(() => (isAnswered = true));
    await ok(say(hub, "extend", taskId, { node_id: "n1", note: "half" }));
    expect(isAnswered).toBe(false);
    await ENDS[status]?.(hub, taskId);
    expect((await waiting)["task"]).toMatchObject({ status });
    expect((await ok(hub.get(`/task/${taskId}?wait=60`)))["task"]).toMatchObject({ status });
  });

  once.test(
    "answers the current task when the wait is over, and 404 when it is deleted meanwhile",
    async () => {
      await using hub = await startHub();
      const taskId = await addTask(hub);
      expect((await ok(hub.get(`/task/${taskId}?wait=0.05`)))["task"]).toMatchObject({ status: "open" });
      const waiting = hub.get(`/task/${taskId}?wait=60`);
      await ok(hub.admin("/task/delete", { task_id: taskId }));
      await refused(waiting, 404, "task_not_found");
    },
  );
});

test("GET events selects the events of one task and of one node", async () => {
  await using hub = await startHub();
  await addNodes(hub, ["n1", "n2"]);
  const [first, second] = [await addTaskOf(hub, "n1"), await addTaskOf(hub, "n2")];
  await ok(complete(hub, first, "n1"));
  const kinds = async (query: string) => {
    const { events, cursor } = await ok(hub.get(`/events?${query}`));
    return [list({ events }, "events").map(({ kind }) => kind), cursor] as const;
  };
  const end = Number((await ok(hub.get("/events?limit=1")))["cursor"]);
  const life = ["task.created", "task.assigned", "task.completed"];
  for (const since of ["", "since=0&"]) expect(await kinds(`${since}task_id=${first}`)).toEqual([life, end]);
  const own = ["node.registered", "node.online", "task.assigned"];
  expect(await kinds("since=0&node_id=n2")).toEqual([own, end]);
  expect(await kinds(`since=0&node_id=n2&kind=task.assigned&task_id=${second}`)).toEqual([
    ["task.assigned"],
    end,
  ]);
  expect((await kinds(`task_id=${first}&limit=2`))[0]).toEqual(life.slice(1));
  const [begin, cursor] = await kinds(`since=0&task_id=${first}&limit=2`);
  expect(begin).toEqual(life.slice(0, 2));
  expect(await kinds(`since=${cursor}&task_id=${first}`)).toEqual([life.slice(2), end]);
  expect(await kinds(`since=${end + 5}&task_id=${first}`)).toEqual([[], end]);
  await badFields(hub.get("/events?node_id=a%20b"), ["node_id"]);
});

describe("leave and drain", () => {
  test("a node that leaves is offline at once and gives its tasks back", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const held = await addTaskOf(hub, "n1");
    const answer = await ok(hub.post("/node/leave", { node_id: "n1" }));
    expect(answer).toEqual({ success: true, node_id: "n1", status: "offline", tasks_released: 1 });
    expect(await nodeOf(hub, "n1")).toMatchObject({ status: "offline", tasks_assigned: 0 });
    expect(await get(hub, held)).toMatchObject({ status: "open", attempts: 0 });
    const kinds = (await eventKinds(hub)).slice(-3);
    expect(kinds).toEqual(["task.released", "node.left", "node.offline"]);
    expect(await ok(hub.post("/node/leave", { node_id: "n1" }))).toMatchObject({ tasks_released: 0 });
    expect((await eventKinds(hub)).slice(-3)).toEqual(kinds);
    await refused(hub.post("/node/leave", { node_id: "nobody" }), 404, "node_not_found");
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    expect(await nodeOf(hub, "n1")).toMatchObject({ status: "online" });
  });

  once.test("the balancer assigns the tasks that it leaves to another node", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", {}, "B");
    const held = await addTask(hub, {}, "B");
    await addNode(hub, "n2", {}, "B");
    expect(await get(hub, held)).toMatchObject({ assigned_node: "n1" });
    await ok(hub.post("/node/leave", { node_id: "n1" }));
    expect(await get(hub, held)).toMatchObject({ assigned_node: "n2" });
  });

  test("a draining node finishes its tasks and gets no new ones", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", {}, "B");
    const held = await addTaskOf(hub, "n1");
    const other = await addTask(hub);
    const drained = await ok(hub.post("/node/drain", { node_id: "n1", drain: true }));
    expect(drained).toEqual({ success: true, node_id: "n1", drain: true, tasks_assigned: 1 });
    expect(await nodeOf(hub, "n1")).toMatchObject({ status: "online", draining: true });
    expect(await ok(hub.post("/node/heartbeat", { node_id: "n1" }))).toMatchObject({ drain: true });
    for (const step of ["claim", "assign"])
      await refused(say(hub, step, other, { node_id: "n1" }), 409, "node_draining");
    await ok(say(hub, "claim", held, { node_id: "n1" }));
    expect(list(await ok(hub.get("/task/pull?node_id=n1")), "tasks")).toEqual([]);
    const waits = await addTask(hub, {}, "B");
    expect(await get(hub, waits)).toMatchObject({ assigned_node: null });
    await addNode(hub, "n2", { auto_assign: false });
    const revoked = await addTaskOf(hub, "n2");
    const asked = { task_id: revoked, node_id: "n1" };
    await refused(hub.admin("/task/revoke", asked), 409, "node_draining");
    await ok(complete(hub, held, "n1"));
    await ok(hub.post("/node/drain", { node_id: "n1", drain: false }));
    expect(await get(hub, waits)).toMatchObject({ assigned_node: "n1" });
    expect(await ok(hub.post("/node/heartbeat", { node_id: "n1" }))).toMatchObject({ drain: false });
    const events = list(await ok(hub.get("/events?since=0&kind=node.draining")), "events");
    expect(events.map(({ data }) => data)).toMatchObject([{ draining: true }, { draining: false }]);
    await badFields(hub.post("/node/drain", { node_id: "n1" }), ["drain"]);
  });

  once.test("registering again keeps the drain; leaving ends it", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    await ok(hub.post("/node/drain", { node_id: "n1", drain: true }));
    await addNode(hub, "n1");
    expect(await nodeOf(hub, "n1")).toMatchObject({ draining: true });
    await ok(hub.post("/node/leave", { node_id: "n1" }));
    await addNode(hub, "n1");
    expect(await nodeOf(hub, "n1")).toMatchObject({ draining: false });
  });
});
