/**
 * Groups and tags over HTTP: what a task shows, lists and events by group, the counts and the end of a group, one wait for
 * all of it, cancel and retry in steps, and what a bound key may do.
 */
import { describe, expect, test } from "bun:test";
import { GROUP_STEP_TASKS, LUX_REWARD_MAX, TAGS_MAX } from "../../src/domain/limits.ts";
import { LuxHub } from "../../src/client/luxhub.ts";
import { SECRET, type TestHub, startHub, onlyOnce } from "../support/hub.ts";
import { as } from "./key-commands.ts";
import {
  VARIANTS,
  addNode,
  addTask,
  addTaskOf,
  addTasks,
  badFields,
  complete,
  list,
  ok,
  record,
  refused,
  taskOf,
} from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

function groupOf(hub: TestHub, name = "g"): Promise<Fields> {
  return ok(hub.get(`/group/${name}`));
}

async function ended(hub: TestHub): Promise<readonly Fields[]> {
  return list(await ok(hub.get("/events?since=0&kind=group.ended")), "events");
}

/** Until group.ended was logged so often: it is logged in a commit of its own. */
async function endedTimes(hub: TestHub, times: number): Promise<void> {
  while ((await ended(hub)).length < times) await Bun.sleep(1);
  expect(await ended(hub)).toHaveLength(times);
}

async function idsOf(hub: TestHub, query: string): Promise<readonly unknown[]> {
  return list(await ok(hub.get(`/task/list?${query}`)), "tasks").map(({ task_id }) => task_id);
}

const fail = (hub: TestHub, task_id: string, node_id = "n1") =>
  ok(hub.post("/task/fail", { task_id, node_id, error: "no", retry: false }));

describe.concurrent("the list of groups", () => {
  test.each(VARIANTS)("is by name, in pages, with counts, on %s", async (variant) => {
    await using hub = await startHub({ variants: ["A", "B"] });
    for (const group of ["b.2", "a", "b.1", "B", "b.1"])
      await addTask(hub, { group, lux_reward: 1 }, variant);
    await addTask(hub, {}, variant);
    const namesOf = async (query: string): Promise<readonly unknown[]> => {
      const page = await ok(hub.get(`/group/list?${query}`, { variant }));
      return [...list(page, "groups").map(({ group }) => group), page["next_cursor"]];
    };
    expect(await namesOf("")).toEqual(["B", "a", "b.1", "b.2", null]);
    expect(await namesOf("q=b.")).toEqual(["b.1", "b.2", null]);
    expect(await namesOf("q=c")).toEqual([null]);
    expect(await namesOf("limit=3")).toEqual(["B", "a", "b.1", "b.1"]);
    expect(await namesOf("limit=3&cursor=b.1")).toEqual(["b.2", null]);
    expect(await namesOf("q=b.&limit=1&cursor=b.1")).toEqual(["b.2", null]);
    const { usage, failures, success, ...counts } = await ok(hub.get("/group/b.1", { variant }));
    const [listed] = list(await ok(hub.get("/group/list?q=b.1", { variant })), "groups");
    expect(listed).toEqual(counts);
    expect([usage, failures, success]).toEqual([null, [], true]);
    expect(listed).toMatchObject({ total: 2, lux_reward: 2 });
    await badFields(hub.get("/group/list?limit=51", { variant }), ["limit"]);
  });
});

describe.concurrent("the group and the tags of a task", () => {
  test.each(VARIANTS)("are shown on it, and only on it, on %s", async (variant) => {
    await using hub = await startHub({ variants: ["A", "B"] });
    const tags = ["red", "a b", "é", "red"];
    const grouped = await addTask(hub, { group: "nightly.1", tags }, variant);
    const plain = await addTask(hub, {}, variant);
    expect(await taskOf(hub, grouped, variant)).toMatchObject({
      group: "nightly.1",
      tags: ["red", "a b", "é"],
    });
    const other = await taskOf(hub, plain, variant);
    expect(other).not.toContainKey("group");
    expect(other).not.toContainKey("tags");
  });

  once.test("have limits", async () => {
    await using hub = await startHub();
    const task = { title: "t", description: "d" };
    for (const group of ["", "a b", "cancel", "retry", "x".repeat(129)])
      await badFields(hub.post("/task/create", { ...task, group }), ["group"]);
    await badFields(hub.post("/task/create", { ...task, tags: ["a,b", "x".repeat(65)] }), [
      "tags.0",
      "tags.1",
    ]);
    const many = Array.from({ length: TAGS_MAX + 1 }, (_, i) => `t${i}`);
    await badFields(hub.post("/task/create", { ...task, tags: many }), ["tags"]);
  });

  test("select tasks in lists, with the other filters and over pages", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const a = await addTask(hub, { group: "g", tags: ["red", "blue"] });
    const b = await addTask(hub, { group: "g", tags: ["reddish"] });
    const c = await addTask(hub, { group: "other", tags: ["red"] });
    await addTask(hub);
    const done = await addTaskOf(hub, "n1", { group: "g", title: "the done one" });
    await complete(hub, done, "n1");
    expect(await idsOf(hub, "group=g")).toEqual([done, b, a]);
    expect(await idsOf(hub, "group=g&status=open")).toEqual([b, a]);
    expect(await idsOf(hub, "group=g&node_id=n1")).toEqual([done]);
    expect(await idsOf(hub, "group=g&q=done")).toEqual([done]);
    expect(await idsOf(hub, "tag=red")).toEqual([c, a]);
    expect(await idsOf(hub, "tag=red&group=g")).toEqual([a]);
    expect(await idsOf(hub, "tag=re")).toEqual([]);
    const first = await ok(hub.get("/task/list?group=g&per_page=2"));
    expect(first["total"]).toBe(3);
    expect(await idsOf(hub, `group=g&per_page=2&cursor=${String(first["next_cursor"])}`)).toEqual([a]);
  });

  test("tell at their end how their tasks have ended", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const [done, failing] = [
      await addTaskOf(hub, "n1", { group: "g" }),
      await addTaskOf(hub, "n1", { group: "g" }),
    ];
    await addTask(hub, { group: "g" });
    await complete(hub, done, "n1");
    await ok(hub.post("/task/fail", { task_id: failing, node_id: "n1", error: "no", retry: false }));
    await ok(hub.post("/group/cancel", { group: "g" }));
    await endedTimes(hub, 1);
    const ends = { completed: 1, failed: 1, cancelled: 1 };
    expect((await ended(hub)).map(({ data }) => data)).toEqual([{ group: "g", ...ends }]);
    await ok(hub.post("/task/retry", { task_id: failing }));
    await ok(hub.post("/task/claim", { task_id: failing, node_id: "n1" }));
    await complete(hub, failing, "n1");
    await endedTimes(hub, 2);
    expect((await ended(hub)).map(({ data }) => data)).toContainEqual({
      group: "g",
      ...ends,
      completed: 2,
      failed: 0,
    });
  });

  test("select events, also those of a stream", async () => {
    await using hub = await startHub();
    const stop = new AbortController();
    const client = new LuxHub({ url: hub.base(), secret: SECRET });
    const follow = client.events({ since: 0, group: "g", signal: stop.signal });
    const a = await addTask(hub, { group: "g", creator_node: "n9" });
    await addTask(hub, { group: "other" });
    await addTask(hub);
    await ok(hub.post("/group/cancel", { group: "g" }));
    await endedTimes(hub, 1);
    const kinds = ["task.created", "task.failed", "group.ended"];
    const events = list(await ok(hub.get("/events?since=0&group=g")), "events");
    expect(events.map(({ kind }) => kind)).toEqual(kinds);
    expect(events.map(({ task_id }) => task_id)).toEqual([a, a, null]);
    for (const { data } of events) expect(record(data)["group"]).toBe("g");
    const streamed: unknown[] = [];
    for await (const { kind } of follow) {
      streamed.push(kind);
      if (kind === "group.ended") break;
    }
    stop.abort();
    expect(streamed).toEqual(kinds);
  });

  test("select events by tag, also those of a stream: a tag is a whole word, which the task had at that time", async () => {
    await using hub = await startHub();
    const stop = new AbortController();
    const client = new LuxHub({ url: hub.base(), secret: SECRET });
    const follow = client.events({ since: 0, tag: "50% _'x", signal: stop.signal });
    const a = await addTask(hub, { tags: ["red", "50% _'x"] });
    await addTask(hub, { tags: ["redder", "50% y'x"], group: "red", title: "red" });
    await ok(hub.post("/task/update", { task_id: a, tags: ["green", "50% _'x"] }));
    await ok(hub.post("/task/cancel", { task_id: a }));
    const kindsOf = async (tag: string) => {
      const { events } = await ok(hub.get(`/events?since=0&tag=${encodeURIComponent(tag)}`));
      return list({ events }, "events").map(({ kind, task_id }) => (task_id === a ? kind : task_id));
    };
    expect(await kindsOf("red")).toEqual(["task.created"]);
    expect(await kindsOf("green")).toEqual(["task.updated", "task.failed"]);
    const kinds = ["task.created", "task.updated", "task.failed"];
    expect(await kindsOf("50% _'x")).toEqual(kinds);
    expect(await kindsOf("re")).toEqual([]);
    const streamed: unknown[] = [];
    for await (const { kind, data } of follow) {
      expect(String(data["tags"])).toContain("50% _'x");
      streamed.push(kind);
      if (kind === "task.failed") break;
    }
    stop.abort();
    expect(streamed).toEqual(kinds);
  });

  once.test("are those of the tasks of a schedule", async () => {
    await using hub = await startHub();
    const task = { title: "t", description: "d", group: "g", tags: ["x"] };
    const { schedule } = await ok(hub.post("/schedule/put", { name: "s", every_s: 60, task }));
    expect(record(schedule)["task"]).toMatchObject({ group: "g", tags: ["x"] });
    const { task: created } = await ok(hub.post("/schedule/run", { name: "s" }));
    expect(created).toMatchObject({ group: "g", tags: ["x"] });
  });
});

describe("a group", () => {
  test("is its tasks: counts, times, LUX, usage and failures", async () => {
    await using hub = await startHub({ variants: ["A", "B"] });
    await refused(hub.get("/group/g"), 404, "group_not_found");
    await addNode(hub, "n1");
    await addTask(hub, { group: "g", lux_reward: 1 });
    const done = await addTaskOf(hub, "n1", { group: "g", lux_reward: 2.5 });
    const failed = await addTaskOf(hub, "n1", { group: "g", title: "bad" });
    await addTask(hub, { group: "other", lux_reward: 9 });
    const usage = [{ seq: 1, model: "m", input_tokens: 10, output_tokens: 5, cost_usd: 0.25 }];
    await ok(hub.post("/task/extend", { task_id: done, node_id: "n1", usage }));
    await complete(hub, done, "n1");
    await fail(hub, failed);
    const group = await groupOf(hub);
    expect(group).toMatchObject({
      group: "g",
      done: false,
      total: 3,
      unfinished: 1,
      by_status: { open: 1, completed: 1, failed: 1 },
      lux_reward: 3.5,
      lux_paid: 2.5,
      usage: { input_tokens: 10, output_tokens: 5, cost_usd: 0.25 },
    });
    expect(list(group, "failures")).toMatchObject([
      { task_id: failed, title: "bad", failure: { message: "no" } },
    ]);
    const { first_created_at, last_created_at, last_updated_at } = group;
    expect([first_created_at, last_created_at, last_updated_at].toSorted()).toEqual([
      first_created_at,
      last_created_at,
      last_updated_at,
    ]);
    const summed = await ok(hub.get("/usage?by=group"));
    expect(list(summed, "usage")).toMatchObject([{ name: "g", cost_usd: 0.25 }]);
  });

  test("sums rewards exactly, however large, and is gone with its last task", async () => {
    await using hub = await startHub();
    const huge: string[] = [];
    for (let i = 0; i < 12; i++) huge.push(await addTask(hub, { group: "g", lux_reward: LUX_REWARD_MAX }));
    const small = await addTask(hub, { group: "g", lux_reward: 0.000001 });
    for (const task_id of huge) await ok(hub.admin("/task/delete", { task_id }));
    expect(await groupOf(hub)).toMatchObject({ total: 1, lux_reward: 0.000001 });
    await ok(hub.admin("/task/delete", { task_id: small }));
    await refused(hub.get("/group/g"), 404, "group_not_found");
    expect((await ok(hub.get("/group/list")))["groups"]).toEqual([]);
  });

  test("ends once, with the last of its unfinished tasks, however that ends", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const ends: readonly ((task_id: string) => Promise<unknown>)[] = [
      (task_id) => complete(hub, task_id, "n1"),
      (task_id) => fail(hub, task_id),
      (task_id) => ok(hub.post("/task/cancel", { task_id })),
      (task_id) => ok(hub.admin("/task/delete", { task_id })),
    ];
    for (const [i, end] of ends.entries()) {
      const first = await addTaskOf(hub, "n1", { group: "g" });
      const last = await addTaskOf(hub, "n1", { group: "g" });
      await complete(hub, first, "n1");
      await end(last);
      await endedTimes(hub, i + 1);
    }
    expect((await ended(hub))[0]).toMatchObject({ node_id: null, task_id: null, data: { group: "g" } });
  });

  test("ends when a task expires, or fails through another one", async () => {
    await using hub = await startHub();
    const expires_at = new Date(hub.clock.now() + 60_000).toISOString();
    const before = await addTask(hub, { expires_at });
    await addTask(hub, { group: "g", depends_on: [before] });
    expect(await groupOf(hub)).toMatchObject({ done: false });
    hub.clock.pass(61_000);
    await hub.sweep();
    await endedTimes(hub, 1);
    await addTask(hub, { group: "g", depends_on: [before] }); // fails at once
    await endedTimes(hub, 2);
    expect(await groupOf(hub)).toMatchObject({ done: true, by_status: { failed: 2 } });
  });

  test("is waited for", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const [a, b] = [await addTaskOf(hub, "n1", { group: "g" }), await addTaskOf(hub, "n1", { group: "g" })];
    expect(await ok(hub.get("/group/g?wait=0.01"))).toMatchObject({ done: false, unfinished: 2 });
    const waiting = ok(hub.get("/group/g?wait=300"));
    await complete(hub, a, "n1");
    await complete(hub, b, "n1");
    expect(await waiting).toMatchObject({ done: true, unfinished: 0, by_status: { completed: 2 } });
    expect(await ok(hub.get("/group/g?wait=300"))).toMatchObject({ done: true });
    await refused(hub.get("/group/none?wait=300"), 404, "group_not_found");
  });

  test("ends once when a batch ends all of it", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const [a, b] = [await addTaskOf(hub, "n1", { group: "g" }), await addTaskOf(hub, "n1", { group: "g" })];
    const requests = [a, b].map((task_id) => ({ path: "task/cancel", body: { task_id } }));
    await ok(hub.post("/batch", { requests }));
    await endedTimes(hub, 1);
    await hub.sweep();
    await endedTimes(hub, 1);
  });
});

describe("cancel and retry of a group", () => {
  test("change all of it in steps, and say how many are left", async () => {
    await using hub = await startHub();
    const count = GROUP_STEP_TASKS + 5;
    await addTasks(hub, count, { group: "g" });
    const keep = await addTask(hub);
    await refused(hub.post("/group/cancel", { group: "none" }), 404, "group_not_found");
    await refused(hub.post("/group/retry", { group: "none" }), 404, "group_not_found");
    expect(await ok(hub.post("/group/cancel", { group: "g", reason: "enough" }))).toMatchObject({
      cancelled: GROUP_STEP_TASKS,
      left: 5,
    });
    expect(await ok(hub.post("/group/cancel", { group: "g" }))).toMatchObject({ cancelled: 5, left: 0 });
    expect(await ok(hub.post("/group/cancel", { group: "g" }))).toMatchObject({ cancelled: 0, left: 0 });
    await endedTimes(hub, 1);
    const group = await groupOf(hub);
    // What people cancel is no failure.
    expect(group).toMatchObject({ done: true, total: count, cancelled: count, by_status: { failed: 0 } });
    expect(list(group, "failures")).toEqual([]);
    expect(await taskOf(hub, keep)).toMatchObject({ status: "open" });
    const first = await ok(hub.post("/group/retry", { group: "g" }));
    expect(first).toMatchObject({ retried: GROUP_STEP_TASKS, left: 5 });
    const rest = { group: "g", cursor: first["next_cursor"] };
    expect(await ok(hub.post("/group/retry", rest))).toMatchObject({
      retried: 5,
      left: 0,
      next_cursor: null,
    });
    expect(await groupOf(hub)).toMatchObject({ done: false, by_status: { open: count } });
  });

  test("keep what depends on each other in order", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const a = await addTask(hub, { group: "g" });
    const b = await addTask(hub, { group: "g", depends_on: [a] });
    const c = await addTask(hub, { group: "g", depends_on: [b] });
    expect(await ok(hub.post("/group/cancel", { group: "g" }))).toMatchObject({ cancelled: 3 });
    for (const id of [a, b, c])
      expect(await taskOf(hub, id)).toMatchObject({ failure: { kind: "cancelled" } });
    expect(await ok(hub.post("/group/retry", { group: "g" }))).toMatchObject({ retried: 3 });
    expect(await taskOf(hub, c)).toMatchObject({ status: "open", ready: false });
    for (const id of [a, b, c]) {
      expect(await taskOf(hub, id)).toMatchObject({ status: "open", ready: true });
      const { task } = await ok(hub.post("/task/next", { node_id: "n1" }));
      expect(record(task)["task_id"]).toBe(id);
      await complete(hub, id, "n1");
      if (id !== c) await hub.sweep();
    }
    await endedTimes(hub, 2);
  });

  once.test("leave what cannot be retried", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const outside = await addTaskOf(hub, "n1");
    const held = await addTask(hub, { group: "g", depends_on: [outside] });
    const costly = await addTaskOf(hub, "n1", { group: "g", max_cost_usd: 1 });
    await fail(hub, outside);
    await hub.sweep();
    const usage = [{ seq: 1, model: "m", input_tokens: 1, output_tokens: 1, cost_usd: 2 }];
    await ok(hub.post("/task/extend", { task_id: costly, node_id: "n1", usage }));
    const done = await addTaskOf(hub, "n1", { group: "g" });
    await complete(hub, done, "n1");
    expect(await ok(hub.post("/group/retry", { group: "g" }))).toMatchObject({
      retried: 0,
      left: 0,
      next_cursor: null,
    });
    for (const id of [held, costly]) expect(await taskOf(hub, id)).toMatchObject({ status: "failed" });
  });

  once.test("open what runs however its dependencies ended", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const outside = await addTaskOf(hub, "n1");
    const runs = await addTask(hub, { group: "g", depends_on: [outside], on_dependency: "run" });
    await fail(hub, outside);
    await hub.sweep();
    await ok(hub.post("/task/claim", { task_id: runs, node_id: "n1" }));
    await fail(hub, runs);
    expect(await ok(hub.post("/group/retry", { group: "g" }))).toMatchObject({ retried: 1, left: 0 });
    expect(await taskOf(hub, runs)).toMatchObject({ status: "open", ready: true });
  });

  once.test("of a bound key concern only what its node created; and a batch may have them", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const { secret } = await ok(hub.admin("/key/add", { name: "k", node_id: "n1" }));
    const bound = as(String(secret));
    const { task_id } = await ok(
      hub.post("/task/create", { title: "t", description: "d", group: "g" }, bound),
    );
    const own = String(task_id);
    const other = await addTask(hub, { group: "g" });
    expect(await ok(hub.post("/group/cancel", { group: "g" }, bound))).toMatchObject({
      cancelled: 1,
      left: 0,
    });
    expect(await taskOf(hub, own)).toMatchObject({ status: "failed", failure: { node_id: "n1" } });
    expect(await taskOf(hub, other)).toMatchObject({ status: "open" });
    await refused(
      hub.post("/group/cancel", { group: "g", node_id: "n2" }, bound),
      403,
      "key_bound_to_other_node",
    );
    const requests = [
      { path: "group/retry", body: { group: "g/n1" } },
      { path: "group/cancel", body: { group: "g/n1" } },
      { path: "group/cancel", body: { group: "g" } },
    ];
    const { answers } = await ok(hub.post("/batch", { requests }));
    expect(answers).toMatchObject([
      { body: { retried: 1 } },
      { body: { cancelled: 1 } },
      { body: { cancelled: 1 } },
    ]);
  });

  once.test("on B the balancer gives the retried tasks out", async () => {
    await using hub = await startHub({ variants: ["A", "B"] });
    const taskId = await addTask(hub, { group: "g" }, "B");
    await ok(hub.post("/group/cancel", { group: "g" }, { variant: "B" }));
    await addNode(hub, "n1", {}, "B");
    await ok(hub.post("/group/retry", { group: "g" }, { variant: "B" }));
    expect(await taskOf(hub, taskId, "B")).toMatchObject({ assigned_node: "n1" });
    const group = await ok(hub.get("/group/g", { variant: "B" }));
    expect(group).toMatchObject({ by_status: { pending: 1, failed: 0 }, unfinished: 1 });
  });
});
