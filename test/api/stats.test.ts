/** stats/types and stats/failures, and the tasks of a group of failures. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { FAILURE_GROUPS_MAX, STATS_KEPT_MS } from "../../src/domain/limits.ts";
import { TestClock, type TestHub, newDataDir, startHub } from "../support/hub.ts";
import { NO_ID, VARIANTS, badFields, list, ok, pick, record } from "./scene.ts";

type Fields = Readonly<Record<string, unknown>>;

describe("stats/types", () => {
  async function typesOf(hub: TestHub): Promise<ReadonlyMap<unknown, Fields>> {
    hub.clock.pass(STATS_KEPT_MS);
    const { types } = await ok(hub.get("/stats/types"));
    return new Map(list({ types }, "types").map((one) => [one["task_type"], one]));
  }

  test("has what is open, waits, runs and has ended, by type", async () => {
    await using hub = await startHub();
    await hub.addNode("n1", { capabilities: ["x", "y"] });
    expect(await ok(hub.get("/stats/types"))).toMatchObject({ types: [], others: 0 });
    const first = await hub.addTask({ task_type: "x" });
    hub.clock.pass(40_000);
    await hub.addTask({ task_type: "x" });
    await hub.addTask({ task_type: "x", delay_s: 60 });
    await hub.addTask({ task_type: "x", depends_on: [first] });
    await hub.addTask();
    await hub.addTaskOf("n1", { task_type: "y" });
    const done = await hub.addTaskOf("n1", { task_type: "y" });
    await ok(hub.complete(done, "n1"));
    const failed = await hub.addTaskOf("n1", { task_type: "y" });
    await ok(hub.post("/task/fail", { task_id: failed, node_id: "n1", error: "e", retry: false }));
    const types = await typesOf(hub);
    expect([...types.keys()]).toEqual(["x", "y", null]);
    expect(types.get("x")).toMatchObject({ open: 2, waiting: 2, assigned: 0, completed: 0, failed: 0 });
    const oldest = Date.parse(String(types.get("x")?.["oldest_open_at"]));
    expect(hub.clock.now() - oldest).toBeGreaterThanOrEqual(40_000);
    expect(types.get("y")).toMatchObject({ open: 0, oldest_open_at: null, waiting: 0, assigned: 1 });
    expect(types.get("y")).toMatchObject({ completed: 1, failed: 1, time_to_start: { count: 3 } });
    expect(types.get(null)).toMatchObject({ open: 1, takers: 1 });
  });

  test("has how long tasks of a type have waited", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const ids = await hub.addTasks(20, { task_type: "slow" });
    hub.clock.pass(100_000);
    await hub.inBatches(
      "task/claim",
      ids.map((task_id) => ({ task_id, node_id: "n1" })),
    );
    const slow = record((await typesOf(hub)).get("slow")?.["time_to_start"]);
    expect(slow["count"]).toBe(20);
    expect(Number(slow["p50_s"])).toBeWithin(60, 121);
    expect(Number(slow["p95_s"])).toBeWithin(Number(slow["p50_s"]), 121);
  });

  test("counts the nodes that take a type: registered, online, and those that could take one now", async () => {
    await using hub = await startHub();
    await hub.addNode("any");
    await hub.addNode("full", { capabilities: ["gpu"], max_tasks: 1 });
    await hub.addNode("drains", { capabilities: ["gpu"] });
    await hub.addNode("off", { capabilities: ["gpu"] });
    await hub.addNode("other", { capabilities: ["cpu"] });
    await hub.addTaskOf("full", { task_type: "gpu" });
    await ok(hub.post("/node/drain", { node_id: "drains", drain: true }));
    await ok(hub.post("/node/leave", { node_id: "off" }));
    await hub.addTask({ task_type: "gpu" });
    const gpu = { takers: 1, nodes_online: 3, nodes_registered: 4 };
    expect((await typesOf(hub)).get("gpu")).toMatchObject(gpu);
    await ok(hub.admin("/node/delete", { node_id: "off" }));
    await ok(hub.post("/node/leave", { node_id: "any" }));
    expect((await typesOf(hub)).get("gpu")).toMatchObject({
      ...gpu,
      takers: 0,
      nodes_online: 2,
      nodes_registered: 3,
    });
  });

  test("says what holds tasks back: each task once, and as many as its list has", async () => {
    await using hub = await startHub();
    await hub.addNode("n1", { capabilities: ["crawl", "mail", "bill"] });
    await hub.addNode("off", { capabilities: ["sleep"], resources: { vram: 24 } });
    await ok(hub.post("/node/leave", { node_id: "off" }));
    const held = async (): Promise<unknown> => {
      hub.clock.pass(STATS_KEPT_MS);
      const { held: reasons, free } = await ok(hub.get("/stats/types"));
      const found = list({ reasons }, "reasons");
      for (const { code, count } of [...found, { code: "none", count: record(free)["count"] }]) {
        const listed = await ok(hub.get(`/task/list?held=${String(code)}&per_page=50`));
        expect([code, listed["total"]]).toEqual([code, count]);
      }
      return Object.fromEntries(found.map(({ code, count, causes }) => [code, [count, causes]]));
    };
    const add = (count: number, fields: Fields) => hub.addTasks(count, fields);
    const causeOf = (task_type: string | null, count: number) => ({ task_type, count });
    await add(1, { task_type: "crawl" });
    expect(await held()).toEqual({});
    await add(3, { task_type: "cobol" });
    await add(2, { task_type: "sleep" });
    await add(1, { task_type: "mail", requires: { capabilities: ["crawl"], resources: { gpu: 8 } } });
    const nodes = {
      no_node: [
        4,
        [causeOf("cobol", 3), { ...causeOf("mail", 1), detail: expect.stringContaining("gpu 8") }],
      ],
      nodes_offline: [2, [causeOf("sleep", 2)]],
    };
    expect(await held()).toMatchObject(nodes);
    // What a pause holds, no node holds too; what a lane holds, its creator does not.
    await ok(hub.admin("/limit/set", { key: "smtp", running: 1 }));
    await add(3, { task_type: "mail", limit_key: "smtp" });
    await hub.addTaskOf("n1", { task_type: "mail", limit_key: "smtp" });
    await ok(hub.admin("/hub/pause", { type: "cobol", reason: "no licence" }));
    await ok(hub.admin("/hub/pause", { creator_node: "boss" }));
    await hub.addNode("boss", { capabilities: ["crawl"] });
    await add(2, { task_type: "crawl", creator_node: "boss" });
    await add(1, { task_type: "cobol", creator_node: "boss" });
    await add(1, { task_type: "crawl", creator_node: "boss", delay_s: 60 });
    await ok(hub.admin("/budget/set", { scope: "group", value: "g", per: "total", cost_usd: 0.000_001 }));
    const spent = await hub.addTaskOf("n1", { task_type: "bill", group: "g" });
    const usage = [{ seq: 1, model: "m", input_tokens: 1, output_tokens: 1, cost_usd: 1 }];
    await ok(hub.post("/task/fail", { task_id: spent, node_id: "n1", error: "e", usage, retry: false }));
    await add(2, { task_type: "bill", group: "g" });
    const first = await hub.addTask({ task_type: "bill" });
    await add(1, { task_type: "bill", depends_on: [first] });
    expect(await held()).toMatchObject({
      paused: [6, [causeOf("cobol", 4), causeOf(null, 2)]],
      limit: [3, [causeOf("mail", 3)]],
      budget: [2, [causeOf(null, 2)]],
      no_node: [1, [causeOf("mail", 1)]],
      nodes_offline: [2, [causeOf("sleep", 2)]],
      not_before: [1, [causeOf("crawl", 1)]],
      depends_on: [1, [causeOf("bill", 1)]],
    });
    const all = Number((await ok(hub.get("/task/count?status=open")))["count"]);
    const counts = await Promise.all(
      ["any", "none"].map(async (word) => (await ok(hub.get(`/task/count?held=${word}`)))["count"]),
    );
    expect(counts).toEqual([16, all - 16]);
    const types = await typesOf(hub);
    expect(types.get("mail")).toMatchObject({ open: 4, held: 4, held_by: "limit", created: 5 });
    expect(types.get("crawl")).toMatchObject({ open: 3, held: 0, held_by: null });
    await ok(hub.admin("/hub/pause", {}));
    expect(await held()).toMatchObject({ paused: [all - 2, expect.anything()] });
  });

  test("the list of what is held has every task, also in several lanes", async () => {
    await using hub = await startHub();
    for (const task_type of ["a", "b", "c", "d"]) await hub.addTasks(140, { task_type });
    await hub.addTasks(20, { task_type: "later", delay_s: 60 });
    for (const [word, count] of [
      ["no_node", 560],
      ["any", 580],
    ] as const)
      expect(await ok(hub.get(`/task/count?held=${word}`))).toMatchObject({ count, exact: true });
  });

  test("keeps its counts for a moment, however many ask", async () => {
    await using hub = await startHub();
    await hub.addTask({ task_type: "x" });
    const before = await typesOf(hub);
    await hub.addTask({ task_type: "x" });
    expect((await typesOf(hub)).get("x")).toMatchObject({ open: Number(before.get("x")?.["open"]) + 1 });
  });
});

describe("stats/failures", () => {
  const clock = new TestClock();
  let hub: TestHub;
  const fail = async (error: string, nodeId: string, task_type: string): Promise<string> => {
    const task_id = await hub.addTaskOf(nodeId, { task_type });
    await ok(hub.post("/task/fail", { task_id, node_id: nodeId, error, retry: false }));
    return task_id;
  };
  const ids: string[] = [];

  beforeAll(async () => {
    hub = await startHub({ clock });
    await hub.addNode("n1");
    await hub.addNode("n2");
    ids.push(await fail("Out of memory at page 7\n  at worker.ts:12", "n1", "index"));
    ids.push(await fail("429 Too Many Requests", "n1", "index"));
    ids.push(await fail("Out of memory at page 12,004", "n2", "crawl"));
    ids.push(await fail(`\n Out of memory at page 8\n${"x".repeat(2_000)}`, "n2", "index"));
    ids.push(await fail("Out of memory at page 19", "n1", "index"));
    // What people cancel is no failure.
    await ok(hub.post("/task/cancel", { task_id: await hub.addTaskOf("n1"), node_id: "n2" }));
  });
  afterAll(() => hub.close());

  for (const variant of VARIANTS)
    test(`on ${variant} has groups by type and message, without its numbers`, async () => {
      const found = await ok(hub.get("/stats/failures", { variant }));
      expect(found).toMatchObject({ total: 5, exact: true });
      const groups = list(found, "failures");
      expect(groups.map(({ task_type, message, count }) => [task_type, message, count])).toEqual([
        ["index", "Out of memory at page 19", 3],
        ["crawl", "Out of memory at page 12,004", 1],
        ["index", "429 Too Many Requests", 1],
      ]);
      expect(groups[0]).toMatchObject({ kind: "failed", nodes: 2, node_ids: ["n1", "n2"], task_id: ids[4] });
      expect(found["by_node"]).toEqual([
        { node_id: "n1", count: 3 },
        { node_id: "n2", count: 2 },
      ]);
      const group = String(groups[0]?.["group"]);
      const listed = await ok(hub.get(`/task/list?failure_group=${group}&fields=summary`, { variant }));
      expect(pick(listed, "tasks", "task_id")).toEqual([ids[4], ids[3], ids[0]]);
      expect(await ok(hub.get(`/task/count?failure_group=${group}`))).toMatchObject({
        count: 3,
        exact: true,
      });
      const ofN2 = await ok(hub.get(`/task/list?failure_group=${group}&failed_by=n2`));
      expect(pick(ofN2, "tasks", "task_id")).toEqual([ids[3]]);
    });

  test("ids do not tell messages apart, words do", async () => {
    await using own = await startHub();
    await own.addNode("n1");
    for (const error of [
      "no file 3f2a9c81 in store",
      "no file 0badcafe1 in store",
      `no file ${NO_ID} in store`,
      "no file deadbeef in store",
    ]) {
      const task_id = await own.addTaskOf("n1");
      await ok(own.post("/task/fail", { task_id, node_id: "n1", error, retry: false }));
    }
    const { failures } = await ok(own.get("/stats/failures"));
    expect(list({ failures }, "failures").map(({ count }) => count)).toEqual([3, 1]); // deadbeef may be a word
  });

  test("only of the time that is asked for, and without what was retried", async () => {
    clock.pass(3_000_000);
    await ok(hub.post("/node/heartbeat", { node_id: "n1" })); // else a sweep takes its task
    const late = await fail("late", "n1", "index");
    expect(await ok(hub.get("/stats/failures?last=60"))).toMatchObject({ total: 1 });
    expect(await ok(hub.get("/stats/failures"))).toMatchObject({ total: 6 });
    await ok(hub.post("/task/retry", { task_id: late }));
    expect(await ok(hub.get("/stats/failures?last=60"))).toMatchObject({
      total: 0,
      failures: [],
      by_node: [],
    });
    await badFields(hub.get("/stats/failures?last=0"), ["last"]);
    await badFields(hub.get("/task/list?failure_group=x"), ["failure_group"]);
    await badFields(hub.get(`/task/list?failure_group=${"0".repeat(16)}&order=created`), ["order"]);
    await badFields(hub.get(`/task/list?failure_group=${"0".repeat(16)}&page=1`), ["page"]);
  });

  test("has the largest groups", async () => {
    await using own = await startHub();
    const tasks = await own.addTasks(FAILURE_GROUPS_MAX + 5);
    await own.addNode("n1");
    await own.inBatches(
      "task/claim",
      tasks.map((task_id) => ({ task_id, node_id: "n1" })),
    );
    const failures = tasks.map((task_id, i) => {
      return { task_id, node_id: "n1", error: "abcdefgh".repeat(1 + (i % 60)), retry: false };
    });
    await own.inBatches("task/fail", failures);
    const found = await ok(own.get("/stats/failures"));
    expect(found).toMatchObject({ total: FAILURE_GROUPS_MAX + 5, exact: true });
    expect(list(found, "failures").length).toBeLessThanOrEqual(FAILURE_GROUPS_MAX);
    expect(list(found, "failures")[0]).toMatchObject({ kind: "failed", node_ids: ["n1"] });
  });
});

describe("stats/minutes of a day and of a month", () => {
  const MINUTES = 60_000;

  async function totals(
    hub: TestHub,
    range: string,
  ): Promise<{ created: unknown[]; step: unknown; total: unknown }> {
    const found = await ok(hub.get(`/stats/minutes?range=${range}`));
    const created = list(found, "minutes").flatMap(({ tasks_created: n }, i) => (n === 0 ? [] : [[i, n]]));
    return { created, step: found["step_s"], total: record(found["total"])["tasks_created"] };
  }

  /** Passes time in steps, as the periodic work sees it. */
  async function pass(hub: TestHub, minutes: number): Promise<void> {
    for (let passed = 0; passed < minutes; passed += 10) {
      hub.clock.pass(Math.min(10, minutes - passed) * MINUTES);
      await hub.sweep();
    }
  }

  test("has sums of ten minutes and of hours, also after the minutes are gone and the hub was restarted", async () => {
    const clock = new TestClock();
    clock.pass(24 * 60 * MINUTES - (clock.now() % (24 * 60 * MINUTES)) + 5 * MINUTES); // 00:05
    const dataDir = newDataDir();
    let hub = await startHub({ clock, dataDir });
    await hub.addTasks(3);
    expect(await totals(hub, "day")).toEqual({ created: [[143, 3]], step: 600, total: 3 });
    expect(await totals(hub, "month")).toEqual({ created: [[719, 3]], step: 3_600, total: 3 });
    await pass(hub, 20);
    await hub.addTasks(4); // 00:25
    expect(await totals(hub, "day")).toMatchObject({
      created: [
        [141, 3],
        [143, 4],
      ],
    });
    expect(await totals(hub, "month")).toMatchObject({ created: [[719, 7]] });
    await pass(hub, 130); // 02:35: no minute of these tasks is kept
    expect(record((await ok(hub.get("/stats/minutes")))["total"])["tasks_created"]).toBe(0);
    await hub.addTasks(1);
    const all = {
      day: {
        created: [
          [128, 3],
          [130, 4],
          [143, 1],
        ],
        total: 8,
      },
      month: {
        created: [
          [717, 7],
          [719, 1],
        ],
        total: 8,
      },
    };
    for (const range of ["day", "month"] as const) expect(await totals(hub, range)).toMatchObject(all[range]);
    await hub.close();
    hub = await startHub({ clock, dataDir });
    for (const range of ["day", "month"] as const) expect(await totals(hub, range)).toMatchObject(all[range]);
    await pass(hub, 60);
    expect(await totals(hub, "month")).toMatchObject({ total: 8 });
    expect(record(list(await ok(hub.get("/stats/minutes?range=month")), "minutes")[716])).toMatchObject({
      tasks_created: 7,
    });
    await badFields(hub.get("/stats/minutes?range=year"), ["range"]);
    await badFields(hub.get("/stats/minutes?range=day&last=5"), ["last"]);
    await hub.close();
    rmSync(dataDir, { recursive: true });
  });
});

test("lux/top has who earned most since a time", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  await hub.addNode("n2");
  const earn = async (nodeId: string, lux_reward: number) =>
    ok(hub.complete(await hub.addTaskOf(nodeId, { lux_reward }), nodeId));
  await earn("n1", 5.25);
  hub.clock.pass(60_000);
  const since = new Date(hub.clock.now()).toISOString();
  await earn("n1", 1);
  await earn("n2", 1.5);
  await earn("n2", 0.000001);
  const top = async (from: string) => ok(hub.get(`/lux/top?since=${from}`));
  expect(await top(since)).toEqual({
    success: true,
    nodes: [
      { node_id: "n2", lux_earned: 1.500001, entries: 2 },
      { node_id: "n1", lux_earned: 1, entries: 1 },
    ],
    exact: true,
  });
  expect(await top("2020-01-01T00:00:00Z")).toMatchObject({
    nodes: [{ node_id: "n1", lux_earned: 6.25 }, {}],
  });
  expect(await top("2050-01-01T00:00:00Z")).toMatchObject({ nodes: [], exact: true });
  await badFields(hub.get("/lux/top"), ["since"]);
  await badFields(hub.get("/lux/top?since=monday"), ["since"]);
});
