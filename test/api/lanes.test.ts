/** Who may run what, and when: requirements and resources, limits, holds and pauses. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { LANES_LOOKED_UP, LANES_MAX, OPEN_TYPES_MAX } from "../../src/domain/limits.ts";
import { MINUTE_MS, SECOND_MS } from "../../src/lib/clock.ts";
import { ADMIN_KEY, SECRET, type TestHub, newDataDir, onlyOnce, startHub } from "../support/hub.ts";
import { dice } from "../support/dice.ts";
import { cases } from "../support/long.ts";
import { Agent } from "../support/mcp.ts";
import {
  addNode,
  addTask,
  addTasks,
  badFields,
  complete,
  list,
  ok,
  record,
  refused,
  until,
  waits,
} from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

const idle = { auto_assign: false };

async function next(hub: TestHub, node_id = "n1", fields: Fields = {}): Promise<string | null> {
  const { task } = await ok(hub.post("/task/next", { node_id, ...fields }));
  return task === null ? null : String(record(task)["task_id"]);
}

function asAdmin(hub: TestHub, path: string): Promise<Fields> {
  return ok(hub.get(path, { headers: { "X-Admin-Key": ADMIN_KEY } }));
}

const release = (hub: TestHub, task_id: string | null, fields: Fields = {}): Promise<Fields> =>
  ok(hub.post("/task/release", { task_id, node_id: "n1", ...fields }));

describe("a pause", () => {
  test.each([
    ["hub", {}],
    ["type", { type: "dear" }],
    ["limit_key", { limit_key: "openai" }],
    ["creator", { creator_node: "boss" }],
  ])("of the %s keeps its tasks back from every way to hand one out", async (scope, paused) => {
    await using hub = await startHub();
    await addNode(hub, "n1", idle);
    await addNode(hub, "boss", idle);
    const about = { task_type: "dear", creator_node: "boss", limit_key: "openai" };
    const running = await addTask(hub, about);
    await ok(hub.post("/task/claim", { task_id: running, node_id: "n1" }));
    const { pause } = await ok(hub.admin("/hub/pause", { ...paused, reason: "it is down" }));
    expect(pause).toMatchObject({ scope, reason: "it is down" });
    expect(list(await asAdmin(hub, "/hub/pauses"), "pauses")).toEqual([record(pause)]);
    const taskId = await addTask(hub, about);
    expect(await next(hub)).toBeNull();
    const both = { task_id: taskId, node_id: "n1" };
    const { body } = await refused(hub.post("/task/claim", both), 409, "paused");
    expect(body["detail"]).toContain("(it is down)");
    await refused(hub.post("/task/assign", both), 409, "paused");
    const sent = { title: "t", description: "d", for_node: "n1", ...about };
    await refused(hub.post("/task/create", sent), 409, "paused");
    // The balancer: at create, at registration, at a heartbeat, when asked.
    await addNode(hub, "n1");
    const made = { title: "t", description: "d", ...about };
    const balanced = await ok(hub.post("/task/create", made, { variant: "B" }));
    expect(balanced["assigned_node"]).toBeNull();
    await ok(hub.post("/task/batch-assign", {}, { variant: "B" }));
    await complete(hub, running, "n1"); // what runs already finishes
    await ok(hub.post("/node/leave", { node_id: "n1" }));
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    await hub.sweep();
    const { by_status } = await ok(hub.get("/task/stats"));
    expect(record(by_status)).toMatchObject({ open: 2, assigned: 0 });
    // The end of the pause wakes a worker that waits.
    await addNode(hub, "n1", idle);
    const waiting = next(hub, "n1", { wait: 30 });
    await until("it waits", () => waits(hub, 1));
    await ok(hub.admin("/hub/resume", paused));
    expect(await waiting).not.toBeNull();
    expect(list(await asAdmin(hub, "/hub/pauses"), "pauses")).toEqual([]);
    await refused(hub.admin("/hub/resume", paused), 404, "pause_not_found");
  });

  once.test("keeps nothing else back, and names at most one thing", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", idle);
    for (const fields of [{ type: "x" }, { limit_key: "k" }, { creator_node: "boss" }])
      await ok(hub.admin("/hub/pause", fields));
    for (const fields of [
      { type: "x", limit_key: "k" },
      { limit_key: "k", creator_node: "boss" },
    ])
      await badFields(hub.admin("/hub/pause", fields), [Object.keys(fields)[1] ?? ""]);
    for (const fields of [
      { task_type: "x" },
      { limit_key: "k" },
      { task_type: "k" },
      { creator_node: "boss" },
    ])
      await addTask(hub, fields);
    const other = await addTask(hub, { task_type: "y", limit_key: "x" });
    expect(await next(hub)).toBe(other);
    expect(await next(hub)).toBeNull();
  });
});

describe("a limit", () => {
  test("of running tasks counts the assigned tasks of a key, over types, also those that ran before", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", idle);
    const [first = ""] = await addTasks(hub, 3, { task_type: "a", limit_key: "k" });
    expect(await next(hub)).toBe(first);
    await ok(hub.admin("/limit/set", { key: "k", running: 2 }));
    const second = await addTask(hub, { task_type: "b", limit_key: "k", priority: 0 });
    expect(await next(hub)).toBe(second);
    expect(await next(hub)).toBeNull();
    expect(list(await asAdmin(hub, "/limit/list"), "limits")).toMatchObject([
      { key: "k", running: 2, running_now: 2 },
    ]);
    const other = await addTask(hub, { task_type: "a" });
    expect(await next(hub)).toBe(other);
    const waiting = next(hub, "n1", { wait: 30 });
    await until("it waits", () => waits(hub, 1));
    await complete(hub, second, "n1");
    expect(await waiting).not.toBeNull();
    expect(await next(hub)).toBeNull();
  });

  once.test.each(["A", "B"] as const)("of a type is a limit of its plain lane (%s)", async (variant) => {
    await using hub = await startHub();
    await addNode(hub, "n1", { auto_assign: true });
    await ok(hub.admin("/limit/set", { key: "t", running: 2 }));
    await addTasks(hub, 5, { task_type: "t" }, variant);
    if (variant === "A") expect([await next(hub), await next(hub), await next(hub)].at(-1)).toBeNull();
    await hub.sweep();
    const { by_status } = await ok(hub.get("/task/stats"));
    expect(record(by_status)).toMatchObject({ open: 3, assigned: 2 });
    const task_id = String(list(await ok(hub.get("/task/list?status=open")), "tasks")[0]?.["task_id"]);
    await refused(hub.post("/task/claim", { task_id, node_id: "n1" }), 409, "limit_reached");
    await ok(hub.admin("/limit/delete", { key: "t" }));
    await ok(hub.post("/task/claim", { task_id, node_id: "n1" }));
    await refused(hub.admin("/limit/delete", { key: "t" }), 404, "limit_not_found");
  });

  test("has room after the deletion of a task that runs, for a worker that waits and for the balancer", async () => {
    await using hub = await startHub();
    for (const node of ["n1", "n2"]) await addNode(hub, node, idle);
    await ok(hub.admin("/limit/set", { key: "k", running: 1 }));
    const [first, second] = await addTasks(hub, 2, { limit_key: "k" });
    expect(await next(hub)).toBe(first ?? "");
    const waiting = next(hub, "n2", { wait: 30 });
    await until("it waits", () => waits(hub, 1));
    await ok(hub.admin("/task/delete", { task_id: first }));
    expect(await waiting).toBe(second ?? "");
    await addNode(hub, "n3", {}, "B");
    const third = await addTask(hub, { limit_key: "k" }, "B");
    const holderOf = async (id: string): Promise<unknown> =>
      record((await ok(hub.get(`/task/${id}`)))["task"])["assigned_node"];
    expect(await holderOf(third)).toBeNull();
    await ok(hub.admin("/task/delete", { task_id: second }));
    while ((await holderOf(third)) === null); // no sweep: the deletion itself wakes the balancer
    expect(await holderOf(third)).toBe("n3");
  });

  once.test("has room at once for workers that wait when it is raised, and when it is deleted", async () => {
    await using hub = await startHub();
    for (const node of ["n1", "n2", "n3"]) await addNode(hub, node, idle);
    await ok(hub.admin("/limit/set", { key: "k", running: 1 }));
    const tasks = await addTasks(hub, 3, { limit_key: "k" });
    expect(await next(hub)).toBe(tasks[0] ?? "");
    for (const [i, change] of [
      () => hub.admin("/limit/set", { key: "k", running: 2 }),
      () => hub.admin("/limit/delete", { key: "k" }),
    ].entries()) {
      const waiting = next(hub, `n${i + 2}`, { wait: 30 });
      await until("it waits", () => waits(hub, 1));
      await ok(change());
      expect(await waiting).toBe(tasks[i + 1] ?? "");
    }
  });

  test("per minute counts hand-outs, whatever became of them", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", idle);
    await ok(hub.admin("/limit/set", { key: "t", per_minute: 2 }));
    await addTasks(hub, 4, { task_type: "t" });
    for (let i = 0; i < 2; i++) await release(hub, await next(hub));
    expect(await next(hub)).toBeNull();
    const waiting = next(hub, "n1", { wait: 300 });
    await until("it waits", () => waits(hub, 1));
    hub.clock.jump(MINUTE_MS + SECOND_MS);
    await hub.sweep();
    expect(await waiting).not.toBeNull();
  });

  test("and a hold outlast no clock that was set back", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", idle);
    await addTasks(hub, 4, { limit_key: "k" });
    await ok(hub.admin("/limit/set", { key: "k", per_minute: 1 }));
    const [first, second] = [await next(hub), await next(hub)];
    expect([typeof first, second]).toEqual(["string", null]);
    hub.clock.jump(-30 * SECOND_MS);
    expect(await next(hub)).toBeNull(); // a little: the minute is not over
    hub.clock.jump(-60 * MINUTE_MS);
    expect(list(await asAdmin(hub, "/limit/list"), "limits")).toMatchObject([{ last_minute: 0 }]);
    expect(await next(hub)).not.toBeNull();
    expect(await next(hub)).toBeNull();
    hub.clock.pass(2 * MINUTE_MS);
    await ok(hub.post("/limit/hold", { key: "k", for_s: 60 }));
    const waiting = next(hub, "n1", { wait: 300 });
    await until("it waits", () => waits(hub, 1));
    await hub.sweep();
    hub.clock.jump(-59 * MINUTE_MS);
    await hub.sweep();
    expect(await waiting).not.toBeNull();
    expect(list(await asAdmin(hub, "/limit/list"), "limits")).toMatchObject([{ held_until: null }]);
    await ok(hub.post("/limit/hold", { key: "k", for_s: 60 }));
    hub.clock.pass(2 * MINUTE_MS);
    expect(await next(hub)).not.toBeNull();
  });

  test("lets an administrator give a running task to another node", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", idle);
    await addNode(hub, "n2", idle);
    await ok(hub.admin("/limit/set", { key: "k", running: 1 }));
    await addTasks(hub, 2, { limit_key: "k" });
    const taskId = await next(hub);
    const { assigned_node } = await ok(hub.admin("/task/revoke", { task_id: taskId, node_id: "n2" }));
    expect(assigned_node).toBe("n2");
    expect(await next(hub)).toBeNull();
    expect(list(await asAdmin(hub, "/limit/list"), "limits")).toMatchObject([{ running_now: 1 }]);
    await ok(hub.post("/limit/hold", { key: "k", for_s: 60 }));
    const back = hub.admin("/task/revoke", { task_id: taskId, node_id: "n1" });
    await refused(back, 409, "limit_reached");
  });

  test("is lowered below what runs: no task starts until enough have ended", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", idle);
    const ids = await addTasks(hub, 5, { limit_key: "k" });
    const running = [await next(hub), await next(hub), await next(hub)];
    await ok(hub.admin("/limit/set", { key: "k", running: 2 }));
    const { reasons } = await ok(hub.get(`/task/${ids[4]}/explain`));
    expect(reasons).toMatchObject([{ code: "limit" }]);
    for (const expected of [null, expect.any(String)]) {
      await release(hub, running.pop() ?? null);
      expect(await next(hub)).toEqual(expected);
    }
    expect(await next(hub)).toBeNull();
  });

  test("that was only a hold is listed until the hold is over", async () => {
    await using hub = await startHub();
    await ok(hub.post("/limit/hold", { key: "nobody", for_s: 5 }));
    expect(list(await asAdmin(hub, "/limit/list"), "limits")).toMatchObject([{ key: "nobody" }]);
    hub.clock.pass(6 * SECOND_MS);
    expect(list(await asAdmin(hub, "/limit/list"), "limits")).toEqual([]);
  });

  once.test("a hold lets a key rest, and is given with the task in one request", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", idle);
    await addTasks(hub, 3, { task_type: "t" });
    await release(hub, await next(hub), { hold_s: 30 });
    expect(await next(hub)).toBeNull();
    await ok(hub.post("/limit/hold", { key: "t", for_s: 5, node_id: "n1" })); // the longer one stays
    hub.clock.jump(29 * SECOND_MS);
    expect(await next(hub)).toBeNull();
    const waiting = next(hub, "n1", { wait: 300 });
    await until("it waits", () => waits(hub, 1));
    hub.clock.jump(SECOND_MS);
    await hub.sweep();
    const task_id = await waiting;
    await ok(hub.post("/task/fail", { task_id, node_id: "n1", error: "429", hold_s: 10 }));
    expect(await next(hub)).toBeNull();
    expect(list(await asAdmin(hub, "/limit/list"), "limits")).toMatchObject([{ key: "t", running: null }]);
    await ok(hub.admin("/limit/delete", { key: "t" }));
    expect(await next(hub)).not.toBeNull();
  });
});

test.each(["A", "B"] as const)(
  "limits, pauses and budgets are paged like schedules (%s)",
  async (variant) => {
    await using hub = await startHub();
    for (let i = 0; i < 21; i++) {
      const name = `k${String(i).padStart(2, "0")}`;
      await ok(hub.admin("/limit/set", { key: name, running: 1 }));
      await ok(hub.admin("/hub/pause", { type: name }));
      await ok(hub.admin("/budget/set", { scope: "type", value: name, per: "day", tokens: 5 }));
    }
    const headers = { "X-Admin-Key": ADMIN_KEY };
    for (const [path, name, field] of [
      ["/limit/list", "limits", "key"],
      ["/hub/pauses", "pauses", "value"],
      ["/budget/list", "budgets", "value"],
    ] as const) {
      const page = (query: string) => ok(hub.get(`${path}${query}`, { variant, headers }));
      const bare = await page("");
      expect(bare).toMatchObject({ page: 1, per_page: variant === "A" ? 20 : 500, total: 21 });
      expect(list(bare, name)).toHaveLength(variant === "A" ? 20 : 21);
      const last = await page("?page=3&per_page=10");
      expect(last).toMatchObject({ page: 3, per_page: 10, total: 21, pages: 3 });
      expect(list(last, name).map((one) => one[field])).toEqual(["k20"]);
      expect(list(await page("?page=4&per_page=10"), name)).toEqual([]);
      await badFields(hub.get(`${path}?page=0`, { variant, headers }), ["page"]);
    }
  },
);

describe("task/update", () => {
  once.test("gives a task another limit key, or that of its type", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", idle);
    await ok(hub.admin("/limit/set", { key: "k", running: 1 }));
    const [running, first, second = ""] = await addTasks(hub, 3, { task_type: "t", limit_key: "k" });
    expect(await next(hub)).toBe(running ?? "");
    expect(await next(hub)).toBeNull();
    // Out of the lane, to a worker that waits.
    const waiting = next(hub, "n1", { wait: 30 });
    await until("it waits", () => waits(hub, 1));
    const update = (task_id: unknown, limit_key: string | null): Promise<Fields> =>
      ok(hub.post("/task/update", { task_id, limit_key }));
    const { task } = await update(first, null);
    expect(record(task)["limit_key"]).toBeUndefined();
    expect(await waiting).toBe(first ?? "");
    // Into another.
    const moved = await update(second, "other");
    expect(moved["task"]).toMatchObject({ limit_key: "other" });
    const events = list(await ok(hub.get("/events?since=0&kind=task.updated")), "events");
    expect(events.map(({ data }) => record(data)["changed"])).toEqual(["limit_key", "limit_key"]);
    expect(await next(hub)).toBe(second);
    // And back under a limit.
    await release(hub, second);
    await update(second, "k");
    expect(await next(hub)).toBeNull();
    await refused(hub.post("/task/claim", { task_id: second, node_id: "n1" }), 409, "limit_reached");
    await complete(hub, String(running), "n1");
    expect(await next(hub)).toBe(second);
    await refused(hub.post("/task/update", { task_id: second, limit_key: null }), 409, "task_not_open");
  });

  once.test("of a task that requires something keeps its requirements", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { ...idle, resources: { gpu: 1 } });
    await addNode(hub, "bare", idle);
    const taskId = await addTask(hub, { requires: { resources: { gpu: 1 } }, limit_key: "k" });
    await ok(hub.post("/task/update", { task_id: taskId, limit_key: null }));
    expect(await next(hub, "bare")).toBeNull();
    expect(await next(hub)).toBe(taskId);
  });
});

describe("requirements", () => {
  const gpu = { requires: { capabilities: ["cuda"], resources: { gpu: 1 } } };

  test("are words and resources, which the unfinished tasks of a node use", async () => {
    await using hub = await startHub();
    await addNode(hub, "plain", idle);
    await addNode(hub, "words", { ...idle, capabilities: ["cuda", "t"] });
    await addNode(hub, "n1", { ...idle, capabilities: ["cuda", "t"], resources: { gpu: 1.5 } });
    const [first = "", second = ""] = await addTasks(hub, 2, { task_type: "t", ...gpu });
    expect(await next(hub, "plain")).toBeNull();
    expect(await next(hub, "words")).toBeNull();
    await refused(hub.post("/task/claim", { task_id: first, node_id: "words" }), 409, "requirements_not_met");
    expect(await next(hub)).toBe(first);
    expect(record((await ok(hub.get("/node/n1")))["node"])).toMatchObject({
      resources: { gpu: 1.5 },
      resources_used: { gpu: 1 },
    });
    expect(await next(hub)).toBeNull();
    const half = await addTask(hub, { task_type: "t", requires: { resources: { gpu: 0.5 } } });
    const waiting = next(hub, "n1", { wait: 30 });
    expect(await waiting).toBe(half);
    const blocked = next(hub, "n1", { wait: 30 });
    await until("it waits", () => waits(hub, 1));
    await complete(hub, first, "n1");
    expect(await blocked).toBe(second);
  });

  once.test("of what few nodes have come first among equal priorities", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { ...idle, resources: { gpu: 2, cpu: 8 } });
    const plain = await addTask(hub, { requires: { resources: { cpu: 1 } } });
    const rare = await addTask(hub, { requires: { resources: { gpu: 1 } } });
    const urgent = await addTask(hub, { priority: 0 });
    expect([await next(hub), await next(hub), await next(hub)]).toEqual([urgent, rare, plain]);
  });

  once.test("the balancer finds a node that has them, and gives it no more than it has", async () => {
    await using hub = await startHub();
    const tasks = await addTasks(hub, 5, gpu, "B");
    await addNode(hub, "plain", {}, "B");
    await addNode(hub, "n1", { capabilities: ["cuda"], resources: { gpu: 2 } }, "B");
    await addNode(hub, "n2", { capabilities: ["cuda"], resources: { gpu: 1 } }, "B");
    await hub.sweep();
    const held = list(await ok(hub.get("/task/list?status=assigned")), "tasks");
    expect(held.map((task) => task["assigned_node"]).toSorted()).toEqual(["n1", "n1", "n2"]);
    await complete(hub, String(held[0]?.["task_id"]), String(held[0]?.["assigned_node"]));
    await hub.sweep();
    expect(list(await ok(hub.get("/task/list?status=assigned")), "tasks")).toHaveLength(3);
    expect(tasks).toHaveLength(5);
  });

  once.test("a worker that waits hears of the first task of a lane", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { ...idle, resources: { gpu: 1 } });
    await addNode(hub, "plain", idle);
    const [able, unable] = [next(hub, "n1", { wait: 30 }), next(hub, "plain", { wait: 30 })];
    await until("both wait", () => waits(hub, 2));
    const task = await addTask(hub, { requires: { resources: { gpu: 1 } } });
    expect(await able).toBe(task);
    const other = await addTask(hub);
    expect(await unable).toBe(other);
  });

  test("two calls of a node are woken at once: what one of them takes of a resource, the other waits for", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { ...idle, resources: { gpu: 1 } });
    const calls = [next(hub, "n1", { wait: 30 }), next(hub, "n1", { wait: 30 })];
    await until("both wait", () => waits(hub, 2));
    const body = { title: "t", description: "d", requires: { resources: { gpu: 1 } } };
    const requests = Array.from({ length: 2 }, () => ({ path: "task/create", body }));
    await ok(hub.post("/batch", { requests }));
    const taken = await Promise.race(calls);
    await complete(hub, taken ?? "", "n1");
    expect((await Promise.all(calls)).filter((taskId) => taskId === null)).toEqual([]);
  });

  once.test("are bounded, and numbers with three decimals", async () => {
    await using hub = await startHub();
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`r${i}`, 1]));
    const made = { title: "t", description: "d" };
    const create = (requires: Fields) => hub.post("/task/create", { ...made, requires });
    for (const [requires, path, message] of [
      [{ resources: many }, "requires.resources", "must have at most 16 names"],
      [{ resources: [] }, "requires.resources", "must be an object"],
      [{ resources: { "a b": 1 } }, "requires.resources.a b", "must be characters of A-Z a-z 0-9 . _ : -"],
      [{ resources: { gpu: -1 } }, "requires.resources.gpu", "must be at least 0"],
      [{ capabilities: Object.keys(many) }, "requires.capabilities", "must hold at most 16"],
      [{ capabilities: Object.keys(many).join() }, "requires.capabilities", "must hold at most 16"],
      [{ capabilities: ["a,b"] }, "requires.capabilities.0", "must not hold a comma"],
    ] as const) {
      const { body } = await refused(create(requires), 400, "invalid_request");
      expect(body["errors"]).toEqual([{ path, message }]);
    }
    const words = await ok(create({ capabilities: "cuda, big,,cuda" })); // as at node/register
    expect(record(words["task"])["requires"]).toEqual({ capabilities: ["cuda", "big"], resources: {} });
    const { task } = await ok(
      hub.post("/task/create", {
        ...made,
        requires: { resources: { gpu: 0.3337, none: 0 } },
        limit_key: "k",
      }),
    );
    expect(record(task)).toMatchObject({
      requires: { capabilities: [], resources: { gpu: 0.334 } },
      limit_key: "k",
    });
  });
});

test("what is ready in special lanes is counted, and offered to those who look for work", async () => {
  await using hub = await startHub();
  await addNode(hub, "n1", { ...idle, capabilities: ["a", "word"], resources: { gpu: 1 } });
  await ok(hub.admin("/hub/pause", { limit_key: "paused" }));
  const fits = { requires: { capabilities: ["word"], resources: { gpu: 1 } }, task_type: "a" };
  const first = await addTask(hub, { ...fits, priority: 0 });
  const plain = await addTask(hub, { task_type: "a" });
  const last = await addTask(hub, { task_type: "a", limit_key: "k", priority: 2 });
  await addTask(hub, { task_type: "a", requires: { resources: { gpu: 2 } } });
  await addTask(hub, { task_type: "a", limit_key: "paused" });
  await addTask(hub, { task_type: "b", limit_key: "k" });
  const pulled = list(await ok(hub.get("/task/pull?node_id=n1")), "tasks").map((task) => task["task_id"]);
  expect(pulled).toEqual([first, plain, last]);
  expect(list(await ok(hub.get("/task/pull?node_id=n1&limit=1")), "tasks")).toHaveLength(1);
  await release(hub, await next(hub));
  hub.clock.pass(20 * SECOND_MS);
  const types = list(await ok(hub.get("/stats/types")), "types");
  expect(types).toMatchObject([
    { task_type: "a", open: 5 },
    { task_type: "b", open: 1 },
  ]);
  expect(types[1]?.["oldest_open_at"]).toBeString();
  const metrics = await fetch(`${hub.base()}/metrics`, { headers: { "X-Matrix-Secret": SECRET } });
  const text = await metrics.text();
  expect(text).toContain('luxhub_type_tasks_ready{type="a"} 5');
  expect(text).toContain('luxhub_type_tasks_ready{type="b"} 1');
  expect(text).toMatch(/luxhub_tasks_oldest_ready_age_seconds [1-9]/);
  await complete(hub, String(await next(hub)), "n1");
});

once.test("an agent without a task hears of the types in special lanes that it does not take", async () => {
  await using hub = await startHub();
  await using agent = await Agent.connect(hub.base(), "ann");
  await agent.ok("node_update", { capabilities: ["a"] });
  await addTask(hub, { task_type: "b", limit_key: "k" });
  await addTask(hub, { task_type: "a", requires: { resources: { gpu: 1 } } }); // its type is not what is missing
  expect(await agent.ok("task_next")).toMatchObject({ task: null, others: ["b"] });
});

test("of more lanes than a dispatch looks up, the best task comes first, whatever has changed meanwhile", async () => {
  await using hub = await startHub();
  await addNode(hub, "n1", idle);
  const roll = dice(20_261_128);
  /** Ready tasks, by age. */
  const ready = new Map<string, number>();
  const priorities = ["high", "medium", "low", "p5"];
  const best = (): string | null => [...ready].toSorted(([, a], [, b]) => a - b)[0]?.[0] ?? null; // stable
  const create = async (lane: number): Promise<void> => {
    const place = roll(4);
    ready.set(await addTask(hub, { limit_key: `k${lane}`, priority: priorities[place] }), place);
  };
  for (let lane = 0; lane < 4 * LANES_LOOKED_UP; lane++) await create(lane);
  for (let step = 0; step < cases(150, 600); step++) {
    const kind = roll(5);
    if (kind === 4 && roll(3) === 0) {
      // The best of many lanes go without a dispatch that looks them up.
      const sorted = [...ready].toSorted(([, a], [, b]) => a - b);
      for (const [task_id] of sorted.slice(0, 2 * LANES_LOOKED_UP)) {
        await ok(hub.post("/task/claim", { task_id, node_id: "n1" }));
        ready.delete(task_id);
      }
      expect([step, await next(hub)]).toEqual([step, best()]);
      ready.delete(best() ?? "");
      while (ready.size < 4 * LANES_LOOKED_UP) await create(roll(5 * LANES_LOOKED_UP));
    } else if (kind === 0) await create(roll(5 * LANES_LOOKED_UP));
    else if (kind === 1 && ready.size > 0) {
      const task_id = [...ready.keys()][roll(ready.size)] ?? "";
      const place = roll(4);
      const changed = roll(2)
        ? { priority: priorities[place] }
        : { limit_key: `k${roll(5 * LANES_LOOKED_UP)}` };
      await ok(hub.post("/task/update", { task_id, ...changed }));
      if (changed.priority !== undefined) ready.set(task_id, place);
    } else {
      const expected = best();
      expect([step, await next(hub)]).toEqual([step, expected]);
      if (expected === null) continue;
      if (roll(3)) ready.delete(expected);
      else await release(hub, expected);
    }
  }
});

once.test("unfinished tasks are in at most LANES_MAX lanes", async () => {
  const dataDir = newDataDir();
  try {
    await using first = await startHub({ dataDir });
    await addTask(first, { limit_key: "k" });
    await first.close();
    const db = new Database(join(dataDir, "luxhub.db"));
    const columns = db
      .query<{ name: string }, []>("SELECT name FROM pragma_table_info('tasks')")
      .all()
      .map(({ name }) => name);
    const copied = new Map([
      ["seq", "seq + n"],
      ["task_id", "'copy ' || n"],
      ["lane", "' copy ' || n"],
    ]);
    db.run(
      `WITH RECURSIVE copies (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < ${LANES_MAX - 2})
       INSERT INTO tasks (${columns.join(", ")})
       SELECT ${columns.map((name) => copied.get(name) ?? name).join(", ")} FROM tasks CROSS JOIN copies`,
    );
    db.run(`INSERT INTO task_specs SELECT t.seq, max_attempts, backoff_ms, description, depends_on
      FROM tasks t CROSS JOIN task_specs WHERE t.seq > 1`);
    db.run(`UPDATE task_totals SET open = open + ${LANES_MAX - 2}`);
    db.close();
    await using hub = await startHub({ dataDir });
    await addTask(hub, { limit_key: "the last" });
    const draft = { title: "t", description: "d" };
    await refused(hub.post("/task/create", { ...draft, limit_key: "more" }), 409, "too_many_lanes");
    await refused(
      hub.post("/task/create", { ...draft, limit_key: "more" }, { variant: "B" }),
      409,
      "too_many_lanes",
    );
    // What is in a lane that there is, or in a plain one, is not refused.
    await addTask(hub, { limit_key: "k" });
    const plain = await addTask(hub);
    await refused(hub.post("/task/update", { task_id: plain, limit_key: "more" }), 409, "too_many_lanes");
    await ok(hub.post("/task/update", { task_id: plain, limit_key: "k" }));
    // There is room when a lane has no unfinished task any more.
    await ok(hub.admin("/task/delete", { task_id: "copy 1" }));
    await addTask(hub, { limit_key: "more" });
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

describe("why a task does not run", () => {
  const codes = async (hub: TestHub, taskId: string): Promise<unknown[]> =>
    list(await ok(hub.get(`/task/${taskId}/explain`)), "reasons").map(({ code }) => code);

  test("is every reason at once, and its position when there is none", async () => {
    await using hub = await startHub();
    const requires = { capabilities: ["cuda"], resources: { gpu: 1 } };
    const first = await addTask(hub, { task_type: "t", requires });
    const second = await addTask(hub, { task_type: "t", requires });
    const about = { task_type: "t", requires, limit_key: "k" };
    const later = await addTask(hub, { ...about, delay_s: 60, depends_on: [first] });
    expect(await codes(hub, first)).toEqual(["no_node", "in_line"]);
    await addNode(hub, "n1", { ...idle, capabilities: ["cuda"], resources: { gpu: 0.5 } });
    const { reasons } = await ok(hub.get(`/task/${first}/explain`));
    expect(reasons).toMatchObject([{ code: "no_node", missing: ["the type t", "gpu 1"] }, {}]);
    await addNode(hub, "n1", { ...idle, capabilities: ["cuda", "t"], resources: { gpu: 1 } });
    expect(await ok(hub.get(`/task/${second}/explain`))).toMatchObject({
      ready: true,
      position: 2,
      reasons: [{ code: "in_line", until: null, detail: "One task of its lane comes before it." }],
    });
    expect(await next(hub)).toBe(first);
    expect(await codes(hub, first)).toEqual(["assigned"]);
    expect(await codes(hub, second)).toEqual(["nodes_full", "in_line"]);
    await ok(hub.post("/node/drain", { node_id: "n1", drain: true }));
    expect(await codes(hub, second)).toEqual(["nodes_draining", "in_line"]);
    await ok(hub.post("/node/leave", { node_id: "n1" }));
    expect(await codes(hub, second)).toEqual(["nodes_offline", "in_line"]);
    await ok(hub.admin("/hub/pause", { reason: "maintenance" }));
    await ok(hub.admin("/hub/pause", { type: "t" }));
    await ok(hub.post("/limit/hold", { key: "k", for_s: 60 }));
    await ok(hub.admin("/budget/set", { scope: "type", value: "t", per: "day", cost_usd: 0 }));
    const all = ["not_before", "depends_on", "paused", "paused", "rate", "budget", "nodes_offline"];
    expect(await codes(hub, later)).toEqual(all);
    expect(await ok(hub.get(`/task/${later}/explain`))).toMatchObject({ ready: false, position: null });
    await ok(hub.post("/task/cancel", { task_id: later }));
    expect(await codes(hub, later)).toEqual(["finished"]);
    await refused(hub.get("/task/none/explain"), 404, "task_not_found");
  });

  once.test("is shown to agents, with what the closest node lacks", async () => {
    await using hub = await startHub();
    await using agent = await Agent.connect(hub.base(), "ann");
    await agent.ok("node_update", { capabilities: ["a"] });
    const plain = await addTask(hub, { task_type: "a" });
    expect(await agent.ok("task_get", { task_id: plain })).not.toHaveProperty("why");
    const task_id = await addTask(hub, { task_type: "a", requires: { resources: { tpu: 1 } } });
    expect(await agent.ok("task_get", { task_id })).toMatchObject({ why: ["no_node"], missing: ["tpu 1"] });
    await ok(hub.admin("/hub/pause", {}));
    expect(await agent.ok("task_get", { task_id: plain })).toMatchObject({ why: ["paused"] });
  });

  test("names the node to which the balancer does not give it back", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", {}, "B");
    const taskId = await addTask(hub, {}, "B");
    await ok(hub.admin("/task/revoke", { task_id: taskId }));
    const { reasons } = await ok(hub.get(`/task/${taskId}/explain`));
    expect(reasons).toMatchObject([{ code: "in_line", detail: expect.stringContaining("back to n1") }]);
  });

  test("is true after a node has registered with fewer resources, or decimals that do not add up", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { resources: { gpu: 0.3 }, ...idle });
    const ids = await addTasks(hub, 4, { requires: { resources: { gpu: 0.1 } } });
    const held = [await next(hub), await next(hub), await next(hub)];
    expect(held).not.toContain(null); // 0.1 + 0.1 + 0.1
    expect(await next(hub)).toBeNull();
    const last = ids[3] ?? "";
    expect(await codes(hub, last)).toEqual(["nodes_full", "in_line"]);
    await addNode(hub, "n1", { resources: { gpu: 0.1 }, ...idle });
    await release(hub, held[0] ?? null);
    expect(await next(hub)).toBeNull(); // two run on what is one
    expect(await codes(hub, last)).toEqual(["nodes_full", "in_line"]);
    await addNode(hub, "n1", idle);
    expect(await codes(hub, last)).toEqual(["no_node", "in_line"]);
  });

  once.test("status names what is paused, and only then", async () => {
    await using hub = await startHub();
    expect(await ok(hub.get("/status"))).not.toHaveProperty("paused");
    await ok(hub.admin("/hub/pause", { type: "t" }));
    expect((await ok(hub.get("/status")))["paused"]).toEqual([{ scope: "type", value: "t" }]);
  });
});

describe("a task that no registered node could ever take", () => {
  const stuck = async (hub: TestHub): Promise<readonly unknown[]> =>
    list(await ok(hub.get("/events?since=0&kind=task.stuck")), "events").map((event) => [
      event["task_id"],
      record(event["data"])["missing"],
    ]);

  // A hub on PostgreSQL soon follows the clock of the database again.
  once.test("is said so once after --stuck-after, in whatever lane it is", async () => {
    await using hub = await startHub();
    const bare = await addTask(hub);
    hub.clock.pass(11 * MINUTE_MS);
    await hub.sweep();
    expect(await stuck(hub)).toEqual([[bare, null]]);
    await addNode(hub, "n1", { capabilities: ["a", "word"], resources: { gpu: 1 }, ...idle });
    const type = await addTask(hub, { task_type: "b" });
    const gpus = await addTask(hub, { requires: { resources: { gpu: 2 } } });
    const words = await addTask(hub, { requires: { capabilities: ["other"] } });
    await addTask(hub, { task_type: "a", requires: { capabilities: ["word"], resources: { gpu: 1 } } });
    await addTask(hub, {
      task_type: "b",
      not_before: new Date(hub.clock.now() + 15 * MINUTE_MS).toISOString(),
    });
    await hub.sweep();
    hub.clock.pass(9 * MINUTE_MS);
    await hub.sweep();
    expect(await stuck(hub)).toHaveLength(1); // none was ready for so long
    hub.clock.pass(2 * MINUTE_MS); // n1 is offline by now
    await hub.sweep();
    hub.clock.pass(2 * MINUTE_MS);
    await hub.sweep(); // and says it once
    const said = [
      [bare, null],
      [type, "the type b"],
      [gpus, "gpu 2"],
      [words, "the word other"],
    ];
    expect((await stuck(hub)).toSorted()).toEqual(said.toSorted());
    hub.clock.pass(3 * MINUTE_MS);
    await hub.sweep(); // the start time of another has come
    hub.clock.pass(11 * MINUTE_MS);
    await hub.sweep();
    expect(await stuck(hub)).toHaveLength(5);
    // What its only node could take is stuck when that node is deleted.
    await ok(hub.admin("/node/delete", { node_id: "n1" }));
    hub.clock.pass(MINUTE_MS);
    await hub.sweep();
    expect(await stuck(hub)).toHaveLength(6);
  });

  test("may be a copy of a quorum, or a review: explain and the event say the same", async () => {
    await using hub = await startHub({ stuckAfterMs: MINUTE_MS });
    const again = async (): Promise<void> => {
      hub.clock.pass(MINUTE_MS + SECOND_MS);
      await ok(hub.post("/node/heartbeat", { node_id: "n1" })); // else it is offline after three of them
      await hub.sweep();
    };
    /** Again and again: a hub on PostgreSQL soon follows the clock of the database again. */
    const said = (count: number): Promise<void> =>
      until(`${count} are said to be stuck`, async () => {
        await again();
        return (await stuck(hub)).length >= count;
      });
    const openTasks = async (): Promise<readonly string[]> =>
      list(await ok(hub.get("/task/list?status=open")), "tasks").map(({ task_id }) => String(task_id));
    await addNode(hub, "n1", { capabilities: ["check"], ...idle });
    const family = await addTask(hub, { quorum: { results: 2, of: 2 } });
    await until("there are copies", async () => (await openTasks()).length === 3);
    expect(await stuck(hub)).toEqual([]);
    expect(await next(hub)).not.toBeNull();
    const copy = (await openTasks()).find((taskId) => taskId !== family) ?? "";
    await said(1);
    const must = "the right to it: it must be another node";
    expect(await stuck(hub)).toEqual([[copy, must]]);
    const { reasons } = await ok(hub.get(`/task/${copy}/explain`));
    expect(reasons).toMatchObject([{ code: "no_node", missing: [must] }, { code: "in_line" }]);
    await again();
    expect(await stuck(hub)).toHaveLength(1);

    const asked = await addTask(hub, { review: "capability:check" });
    await ok(hub.post("/task/claim", { task_id: asked, node_id: "n1" }));
    await ok(complete(hub, asked, "n1"));
    await until("its review is created", async () => (await openTasks()).length === 3);
    await said(2);
    expect(await stuck(hub)).toHaveLength(2);

    await addNode(hub, "n2", { capabilities: ["check"], ...idle });
    const another = await addTask(hub, { quorum: { results: 2, of: 2 } });
    await until("there are copies", async () => (await openTasks()).includes(another));
    await again();
    expect(await stuck(hub)).toHaveLength(2); // two nodes, two copies
  });

  once.test("the time is a setting", async () => {
    await using hub = await startHub({ stuckAfterMs: MINUTE_MS });
    const taskId = await addTask(hub, { task_type: "b" });
    hub.clock.pass(MINUTE_MS + SECOND_MS);
    await hub.sweep();
    expect(await stuck(hub)).toEqual([[taskId, null]]);
  });
});

describe("a node that takes every type, while many types are paused", () => {
  const typesOf = (count: number): readonly string[] =>
    Array.from({ length: count }, (_, i) => `t${1_000 + i}`);

  once.test("finds the one that is open", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", idle);
    for (const task_type of typesOf(OPEN_TYPES_MAX)) {
      await addTask(hub, { task_type });
      await ok(hub.admin("/hub/pause", { type: task_type }));
    }
    const open = await addTask(hub, { task_type: "zzz" });
    expect(await next(hub)).toBe(open);
  });

  once.test("finds the best of more than can be named", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", idle);
    await addTask(hub, { task_type: "aaa" });
    await ok(hub.admin("/hub/pause", { type: "aaa" }));
    for (const task_type of typesOf(OPEN_TYPES_MAX + 5)) await addTask(hub, { task_type, priority: 2 });
    const best = await addTask(hub, { task_type: "zzz", priority: 0 });
    expect(await next(hub)).toBe(best);
  });
});

once.test("a copy that a node may not have hides no task behind it in its lane", async () => {
  await using hub = await startHub();
  for (const node of ["boss", "n1"]) await addNode(hub, node, idle);
  const quorum = { results: 2, of: 3 };
  await addTask(hub, { quorum, creator_node: "boss", limit_key: "k", priority: 0 });
  let copy: string | null = null;
  await until("a copy is there", async () => (copy ??= await next(hub)) !== null);
  const behind = await addTask(hub, { limit_key: "k", priority: 2 });
  expect(await next(hub)).toBe(behind);
});

describe("a fair hub", () => {
  test("goes round the creators of one priority: a single task waits at most one round", async () => {
    await using hub = await startHub({ fair: "creator" });
    await addNode(hub, "n1", idle);
    await addTasks(hub, 30, { creator_node: "greedy" });
    await addTasks(hub, 10, { creator_node: "second" });
    const taken = async (): Promise<string> => {
      const { task } = await ok(hub.post("/task/next", { node_id: "n1" }));
      return String(record(task)["creator_node"]);
    };
    const first = [await taken(), await taken(), await taken(), await taken()];
    expect(first).toEqual(["greedy", "second", "greedy", "second"]);
    await addTask(hub, { creator_node: "single" });
    await addTask(hub);
    const round = [await taken(), await taken(), await taken(), await taken()];
    expect(round.toSorted()).toEqual(["greedy", "null", "second", "single"]);
    const urgent = await addTask(hub, { creator_node: "greedy", priority: 0 });
    expect(await next(hub)).toBe(urgent);
    for (let left = 0; left < 35; left++) await taken(); // what is left of both
    expect(await next(hub)).toBeNull();
  });

  const creatorOf = (answer: Fields): string => String(record(answer["task"])["creator_node"]);

  once.test("goes round more creators than one read loads", async () => {
    await using hub = await startHub({ fair: "creator" });
    await addNode(hub, "n1", idle);
    const creators = Array.from({ length: 9 }, (_, i) => `c${i}`);
    for (const creator_node of creators) await addTasks(hub, 5, { creator_node });
    await addTask(hub, { creator_node: "single" });
    const first: string[] = [];
    for (let i = 0; i < 10; i++) first.push(creatorOf(await ok(hub.post("/task/next", { node_id: "n1" }))));
    expect(first.toSorted()).toEqual([...creators, "single"].toSorted());
  });

  once.test("goes round the creators also within the requests of one batch", async () => {
    await using hub = await startHub({ fair: "creator" });
    await addNode(hub, "n1", idle);
    const creators = ["a", "b", "c", "d"];
    for (const creator_node of creators) await addTasks(hub, 5, { creator_node });
    const request = { path: "task/next", body: { node_id: "n1" } };
    for (let i = 0; i < 2; i++) {
      const { answers } = await ok(hub.post("/batch", { requests: creators.map(() => request) }));
      const taken = [answers].flat().map((one) => creatorOf(record(record(one)["body"])));
      expect(taken.toSorted()).toEqual(creators);
    }
  });

  once.test("so does the balancer", async () => {
    await using hub = await startHub({ fair: "creator" });
    await addTasks(hub, 20, { creator_node: "greedy" }, "B");
    await addTask(hub, { creator_node: "single" }, "B");
    await addNode(hub, "n1", { max_tasks: 2 }, "B");
    await hub.sweep();
    const held = list(await ok(hub.get("/task/list?status=assigned")), "tasks");
    expect(held.map((task) => task["creator_node"]).toSorted()).toEqual(["greedy", "single"]);
  });
});

describe("hand-out, ready and explain agree", () => {
  /**
   * The clock jumps by whole steps, and all waits end half a step off: none ends between two requests that are
   * compared.
   */
  const STEP_S = 600;
  type Shown = Readonly<Record<string, unknown>>;
  const amounts = (value: unknown): Readonly<Record<string, number>> =>
    Object.fromEntries(Object.entries(Object(value)).map(([name, amount]) => [name, Number(amount)]));

  /** The nodes that have had a copy of a task with a quorum, by the task. */
  type Copied = Map<unknown, Set<unknown>>;

  /** Whether a node could take a task now, as far as the two records say. */
  function fitsNow(node: Shown, task: Shown, copied: Copied): boolean {
    if (copied.get(task["parent_task"])?.has(node["node_id"])) return false;
    const words = String(node["capabilities"])
      .split(",")
      .filter((word) => word !== "");
    const type = task["task_type"];
    if (type !== null && words.length > 0 && !words.includes(String(type))) return false;
    const requires = Object(task["requires"] ?? {});
    if (![requires.capabilities ?? []].flat().every((word) => words.includes(String(word)))) return false;
    const [has, used] = [amounts(node["resources"]), amounts(node["resources_used"])];
    const needs = Object.entries(amounts(requires.resources));
    return needs.every(([name, amount]) => (has[name] ?? 0) - (used[name] ?? 0) >= amount - 1e-9);
  }

  /** The order in which a node is offered tasks: priority, what needs a rare resource, age. */
  function offeredBefore(a: Shown, b: Shown): boolean {
    const rank = (task: Shown): readonly number[] => {
      const isRare = "gpu" in amounts(Object(task["requires"] ?? {}).resources);
      return [Number(task["priority"]), isRare ? 0 : 1];
    };
    const [[p1 = 0, r1 = 0], [p2 = 0, r2 = 0]] = [rank(a), rank(b)];
    if (p1 !== p2) return p1 < p2;
    return r1 === r2 ? String(a["task_id"]) < String(b["task_id"]) : r1 < r2;
  }

  async function agreeAfter(seed: number, rounds: number): Promise<void> {
    await using hub = await startHub();
    let state = seed * 7_919;
    const random = (below: number): number => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((state / 2_147_483_648) * below);
    };
    const oneOf = <T>(values: readonly T[]): T | undefined => values[random(values.length)];
    const nodes = ["n0", "n1", "n2", "n3"];
    const held: (readonly [string, string])[] = [];
    const register = (node_id: string): Promise<unknown> =>
      addNode(hub, node_id, {
        ...idle,
        capabilities: oneOf([[], ["a"], ["a", "b", "cuda"], ["cuda"]]),
        resources: oneOf([{}, { gpu: 1 }, { gpu: 2, cpu: 4 }, { cpu: 2 }]),
      });
    for (const node of nodes) await register(node);
    const subject = (): Fields =>
      oneOf([{}, { type: "a" }, { limit_key: "k" }, { creator_node: "n0" }, { limit_key: "a" }]) ?? {};
    const tasks: string[] = [];
    const copied: Copied = new Map();
    const create = async (): Promise<void> => {
      const fields: Fields = {
        task_type: oneOf([undefined, "a", "b"]),
        limit_key: oneOf([undefined, undefined, "k"]),
        creator_node: oneOf([undefined, "n0"]),
        priority: oneOf([0, 1, 1, 2]),
        requires: oneOf([
          undefined,
          undefined,
          { resources: { gpu: 1 } },
          { capabilities: ["cuda"] },
          { resources: { cpu: 2 } },
          { capabilities: ["cuda"], resources: { gpu: 0.5 } },
        ]),
        depends_on: random(8) === 0 && tasks.length > 0 ? [oneOf(tasks)] : undefined,
        delay_s: random(10) === 0 ? 2.5 * STEP_S : undefined,
      };
      tasks.push(await addTask(hub, fields));
      if (random(4) > 0) return;
      const { depends_on, delay_s, ...alike } = fields;
      const asked = await addTask(hub, { ...alike, quorum: { results: 2, of: 2, compare: "json:/lesson" } });
      copied.set(asked, new Set());
      await until("it has its copies", async () => {
        const { quorum } = record((await ok(hub.get(`/task/${asked}`)))["task"]);
        return [Object(quorum).copies].flat().length === 2;
      });
    };
    /** All open tasks, page by page. */
    const openTasks = async (): Promise<readonly Shown[]> => {
      const found: Shown[] = [];
      for (let page = 1, pages = 1; page <= pages; page++) {
        const shown = await ok(hub.get(`/task/list?status=open&per_page=50&page=${page}`));
        found.push(...list(shown, "tasks"));
        pages = Number(shown["pages"]);
      }
      return found;
    };
    const steps: readonly (() => Promise<unknown>)[] = [
      create,
      create,
      create,
      create,
      () => hub.admin("/hub/pause", subject()),
      () => hub.admin("/hub/resume", subject()),
      () => hub.admin("/hub/resume", subject()),
      () => hub.admin("/limit/set", { key: oneOf(["a", "k", ""]), running: 1 + random(2) }),
      () => hub.admin("/limit/delete", { key: oneOf(["a", "k", ""]) }),
      () => hub.post("/limit/hold", { key: oneOf(["a", "k"]), for_s: 1.5 * STEP_S }),
      () => hub.admin("/budget/set", { scope: "type", value: "b", per: "day", cost_usd: random(2) }),
      () => register(oneOf(nodes) ?? "n0"),
      async () => {
        const [task_id = "", node_id = ""] = held.splice(random(held.length), 1)[0] ?? [];
        if (task_id === "") return;
        if (random(3) > 0) return complete(hub, task_id, node_id);
        return hub.post("/task/ask", { task_id, node_id, question: "which?", park: true });
      },
      async () => hub.clock.jump(random(3) * STEP_S * SECOND_MS),
    ];
    let [handedOut, copies] = [0, 0];
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < 4; i++) await oneOf(steps)?.();
      await hub.sweep();
      const all = await Promise.all(
        nodes.map(async (id) => record((await ok(hub.get(`/node/${id}`)))["node"])),
      );
      const node_id = oneOf(nodes) ?? "n0";
      const node = record(all.find((one) => one["node_id"] === node_id));
      const open = await openTasks();
      const ready: Shown[] = [];
      for (const task of open) {
        const explained = await ok(hub.get(`/task/${task["task_id"]}/explain`));
        const codes = list(explained, "reasons").map(({ code }) => code);
        expect(codes.at(-1) === "in_line").toBe(explained["ready"] === true);
        if (task["ready"] !== true) expect(explained["ready"]).toBe(false);
        if (explained["ready"] === true) ready.push(task);
        // Some node could take it exactly when no reason is about nodes.
        const isWanting = codes.some((code) => /^no(?:de|_node)/.test(String(code)));
        if (task["quorum"] !== undefined)
          expect([codes.includes("quorum"), isWanting]).toEqual([true, false]);
        else
          expect({ codes, fits: all.some((one) => fitsNow(one, task, copied)) }).toEqual({
            codes,
            fits: !isWanting,
          });
      }
      const best = ready
        .filter((task) => fitsNow(node, task, copied))
        .toSorted((a, b) => (offeredBefore(a, b) ? -1 : 1))[0];
      const taken = await next(hub, node_id);
      expect({ round, taken }).toEqual({ round, taken: best === undefined ? null : String(best["task_id"]) });
      if (taken !== null) {
        handedOut++;
        held.push([taken, node_id]);
        const had = copied.get(best?.["parent_task"]);
        if (had !== undefined) {
          had.add(node_id);
          copies++;
        }
      }
      const limits = list(await asAdmin(hub, "/limit/list"), "limits");
      const assigned = list(await ok(hub.get("/task/list?status=assigned&per_page=50")), "tasks");
      for (const { key, running, running_now } of limits) {
        if (running === null) continue;
        const count = assigned.filter(
          (task) => (task["limit_key"] ?? task["task_type"] ?? "") === key,
        ).length;
        expect({ key, count }).toEqual({ key, count: Number(running_now) });
      }
    }
    expect(handedOut).toBeGreaterThan(5);
    expect(copies).toBeGreaterThan(1);
  }

  once.test("after random requests", () => agreeAfter(1, cases(30, 60)));
  // On SQLite as on PostgreSQL: test/model/lanes.test.ts has more of them, against a model.
  test("after other random requests", () => agreeAfter(10, cases(20, 40)));
});
