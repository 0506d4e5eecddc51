/**
 * Graphs of tasks: up to 1,000 dependencies of one task, what a task still waits for, and task/retry with what failed
 * only because of the task.
 */
import { describe, expect, test } from "bun:test";
import { type Answer, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { addKey } from "./key-commands.ts";
import {
  NO_ID,
  addNode,
  addNodes,
  addTask,
  addTasks,
  badFields,
  complete,
  eventKinds,
  inBatches,
  list,
  ok,
  pick,
  record,
  refused,
  until,
} from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

async function get(hub: TestHub, taskId: string): Promise<Record<string, unknown>> {
  return record((await ok(hub.get(`/task/${taskId}`)))["task"]);
}

async function done(hub: TestHub, taskId: string): Promise<void> {
  await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
  await ok(complete(hub, taskId, "n1"));
}

function cancel(hub: TestHub, taskId: string): Promise<Answer["body"]> {
  return ok(hub.post("/task/cancel", { task_id: taskId }));
}

function retry(hub: TestHub, taskId: string, fields: Fields = {}): Promise<Answer> {
  return hub.post("/task/retry", { task_id: taskId, with_dependents: true, ...fields });
}

/** The dependents that a retry opened, and those that are left. */
async function dependentsOf(answer: Promise<Answer>): Promise<unknown> {
  return (await ok(answer))["dependents"];
}

async function statuses(hub: TestHub, taskIds: readonly string[]): Promise<readonly unknown[]> {
  return Promise.all(taskIds.map(async (taskId) => (await get(hub, taskId))["status"]));
}

describe("depends_on", () => {
  once.test("takes 1,000 tasks, and the task shows which of them it waits for", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const many = await addTasks(hub, 1_000);
    const taskId = await addTask(hub, { depends_on: many });
    const task = await get(hub, taskId);
    expect(task["depends_on"]).toEqual([...many]);
    expect(task).toMatchObject({ ready: false, unmet: { count: 1_000, task_ids: many.slice(0, 20) } });
    await done(hub, many[0] ?? "");
    expect((await get(hub, taskId))["unmet"]).toEqual({ count: 999, task_ids: many.slice(1, 21) });
    await cancel(hub, many[1] ?? "");
    expect(await get(hub, taskId)).toMatchObject({ status: "failed", unmet: { count: 0, task_ids: [] } });
    expect(await dependentsOf(retry(hub, many[1] ?? ""))).toEqual({ opened: 1, left: 0 });
    expect((await get(hub, taskId))["unmet"]).toEqual({ count: 999, task_ids: many.slice(1, 21) });
  });

  once.test("takes no more, and names each that is unknown", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const draft = { title: "t", description: "d" };
    const known = await addTask(hub);
    const ids = Array.from({ length: 1_001 }, () => known);
    await badFields(hub.post("/task/create", { ...draft, depends_on: ids }), ["depends_on"]);
    const mixed = [known, NO_ID, known, "x"];
    await badFields(hub.post("/task/create", { ...draft, depends_on: mixed }), [
      "depends_on.1",
      "depends_on.3",
    ]);
    const unknown = Array.from({ length: 1_000 }, (_, i) => `x${i}`);
    const answer = await refused(
      hub.post("/task/create", { ...draft, depends_on: unknown }),
      400,
      "invalid_request",
    );
    expect(list(answer.body, "errors").length).toBe(100);
  });

  once.test("only GET of one task shows what it waits for", async () => {
    await using hub = await startHub();
    const first = await addTask(hub);
    const made = await ok(hub.post("/task/create", { title: "t", description: "d", depends_on: [first] }));
    expect(made["task"]).not.toContainKey("unmet");
    for (const task of list(await ok(hub.get("/task/list")), "tasks")) expect(task).not.toContainKey("unmet");
    expect(await get(hub, first)).toMatchObject({ unmet: { count: 0, task_ids: [] } });
    const waited = await ok(hub.get(`/task/${String(made["task_id"])}?wait=0.01`));
    expect(waited["task"]).toMatchObject({ unmet: { count: 1, task_ids: [first] } });
  });
});

describe("task/retry with_dependents", () => {
  /** leaf <- part <- all, and another task that all depends on. */
  async function tree(hub: TestHub): Promise<Readonly<Record<"leaf" | "part" | "other" | "all", string>>> {
    const leaf = await addTask(hub);
    const part = await addTask(hub, { depends_on: [leaf] });
    const other = await addTask(hub);
    const all = await addTask(hub, { depends_on: [part, other] });
    return { leaf, part, other, all };
  }

  test("opens the whole tree again in one commit, and it can be done then", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const { leaf, part, other, all } = await tree(hub);
    await cancel(hub, leaf);
    expect(await statuses(hub, [leaf, part, other, all])).toEqual(["failed", "failed", "open", "failed"]);
    const answer = await ok(retry(hub, leaf));
    expect(answer).toMatchObject({ task_id: leaf, status: "open", dependents: { opened: 2, left: 0 } });
    expect(await statuses(hub, [leaf, part, other, all])).toEqual(["open", "open", "open", "open"]);
    expect(await get(hub, all)).toMatchObject({ unmet: { count: 2, task_ids: [part, other] } });
    expect((await eventKinds(hub, all)).at(-1)).toBe("task.retried");
    for (const taskId of [leaf, part, other, all]) await done(hub, taskId);
    await refused(retry(hub, leaf), 409, "task_not_failed");
  });

  test("after a retry without them, and after the task was completed, opens what is left", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const { leaf, part, other, all } = await tree(hub);
    await cancel(hub, leaf);
    expect(await ok(hub.post("/task/retry", { task_id: leaf }))).not.toContainKey("dependents");
    await done(hub, leaf);
    await done(hub, other);
    expect(await statuses(hub, [leaf, part, all])).toEqual(["completed", "failed", "failed"]);
    expect(await dependentsOf(retry(hub, part))).toEqual({ opened: 1, left: 0 });
    expect(await get(hub, part)).toMatchObject({ status: "open", ready: true });
    expect((await get(hub, all))["unmet"]).toEqual({ count: 1, task_ids: [part] });
    for (const taskId of [part, all]) await done(hub, taskId);
  });

  once.test("of a task that fails again at once opens none", async () => {
    await using hub = await startHub();
    const { leaf, part, all } = await tree(hub);
    await cancel(hub, leaf);
    expect(await ok(retry(hub, part))).toMatchObject({
      status: "failed",
      dependents: { opened: 0, left: 1 },
    });
    expect(await statuses(hub, [part, all])).toEqual(["failed", "failed"]);
    expect(await dependentsOf(retry(hub, leaf))).toEqual({ opened: 2, left: 0 });
  });

  once.test("leaves what also depends on another failure, and opens it with that one", async () => {
    await using hub = await startHub();
    const { leaf, part, other, all } = await tree(hub);
    const last = await addTask(hub, { depends_on: [all] });
    await cancel(hub, leaf);
    await cancel(hub, other);
    expect(await dependentsOf(retry(hub, leaf))).toEqual({ opened: 1, left: 0 });
    expect(await statuses(hub, [leaf, part, all, last])).toEqual(["open", "open", "failed", "failed"]);
    expect(await dependentsOf(retry(hub, other))).toEqual({ opened: 2, left: 0 });
    expect(await statuses(hub, [part, other, all, last])).toEqual(["open", "open", "open", "open"]);
  });

  once.test("leaves what depends on a deleted task, and what failed in another way", async () => {
    await using hub = await startHub();
    const [a, b] = [await addTask(hub), await addTask(hub)];
    const both = await addTask(hub, { depends_on: [a, b] });
    const cancelled = await addTask(hub, { depends_on: [a] });
    await cancel(hub, cancelled);
    await cancel(hub, a);
    await ok(hub.admin("/task/delete", { task_id: b }));
    expect(await dependentsOf(retry(hub, a))).toEqual({ opened: 0, left: 0 });
    expect(await statuses(hub, [both, cancelled])).toEqual(["failed", "failed"]);
  });

  once.test("opens at most 250 at a time, the oldest first, and says how many are left", async () => {
    await using hub = await startHub();
    const first = await addTask(hub);
    const draft = { title: "t", description: "d" };
    const children = await inBatches(
      hub,
      "task/create",
      new Array(300).fill({ ...draft, depends_on: [first] }),
    );
    const ids = children.map(({ task_id }) => String(task_id));
    const grandchild = await addTask(hub, { depends_on: [ids[0], ids[299]] });
    await cancel(hub, first);
    // A hub that is not the leader for a moment, on a busy machine, leaves the rest to its next sweep.
    await until("all have failed", async () => {
      await hub.sweep();
      return record((await ok(hub.get("/task/stats")))["by_status"])["failed"] === 302;
    });
    expect(await dependentsOf(retry(hub, first))).toEqual({ opened: 250, left: 51 });
    expect(await statuses(hub, [ids[249] ?? "", ids[250] ?? "", grandchild])).toEqual([
      "open",
      "failed",
      "failed",
    ]);
    expect(await dependentsOf(retry(hub, first))).toEqual({ opened: 51, left: 0 });
    expect((await ok(hub.get("/task/stats")))["by_status"]).toMatchObject({ failed: 0, open: 302 });
    await refused(retry(hub, first), 409, "task_not_failed");
  });

  test("in a batch, with the failure that comes before it in the same commit", async () => {
    await using hub = await startHub();
    const { leaf, part, all } = await tree(hub);
    await cancel(hub, leaf);
    const requests = [
      { path: "task/retry", body: { task_id: leaf, with_dependents: true } },
      { path: "task/retry", body: { task_id: part, with_dependents: true } },
      { path: "task/retry", body: { task_id: all } },
    ];
    const answers = list(await ok(hub.post("/batch", { requests })), "answers");
    expect(answers.map(({ status }) => status)).toEqual([200, 409, 409]);
    expect(record(answers[0]?.["body"])["dependents"]).toEqual({ opened: 2, left: 0 });
    // Those that have not heard of the failure yet wait on.
    const again = [{ path: "task/cancel", body: { task_id: leaf } }, requests[0]];
    const both = list(await ok(hub.post("/batch", { requests: again })), "answers");
    expect(record(both[1]?.["body"])["dependents"]).toEqual({ opened: 0, left: 0 });
    await hub.sweep();
    expect(await statuses(hub, [leaf, part, all])).toEqual(["open", "open", "open"]);
  });

  once.test("the balancer of B gets what is ready at once", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1"]);
    const first = await addTask(hub, {}, "B");
    const second = await addTask(hub, { depends_on: [first] }, "B");
    await cancel(hub, first);
    await ok(hub.post("/task/retry", { task_id: first }));
    await ok(complete(hub, first, "n1"));
    expect(await dependentsOf(retry(hub, first))).toEqual({ opened: 1, left: 0 });
    expect(await get(hub, second)).toMatchObject({ assigned_node: "n1" });
  });

  once.test("with a key that is bound to a node opens only what that node has created", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await addNodes(hub, ["n1", "n2"]);
    const secret = await addKey(hub, "robot", "--node", "n1");
    const mine = { headers: { "X-Matrix-Secret": secret } };
    const leaf = await addTask(hub, { creator_node: "n1" });
    const own = await addTask(hub, { creator_node: "n1", depends_on: [leaf] });
    const theirs = await addTask(hub, { creator_node: "n2", depends_on: [leaf] });
    await cancel(hub, leaf);
    const asked = { task_id: leaf, with_dependents: true };
    expect(await dependentsOf(hub.post("/task/retry", asked, mine))).toEqual({ opened: 1, left: 0 });
    expect(await statuses(hub, [leaf, own, theirs])).toEqual(["open", "open", "failed"]);
    expect(await dependentsOf(retry(hub, leaf))).toEqual({ opened: 1, left: 0 });
  });

  once.test("with an Idempotency-Key is done once", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const { leaf } = await tree(hub);
    await cancel(hub, leaf);
    const options = { headers: { "Idempotency-Key": "k" } };
    const asked = { task_id: leaf, with_dependents: true };
    const answers = [
      await ok(hub.post("/task/retry", asked, options)),
      await ok(hub.post("/task/retry", asked, options)),
    ];
    expect(answers[1]).toEqual(answers[0] ?? {});
    const retried = list(await ok(hub.get("/events?since=0&kind=task.retried")), "events");
    expect(pick({ retried }, "retried", "task_id").length).toBe(3);
  });
});
