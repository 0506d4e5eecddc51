/** What holds tasks back, as many as task/list has (stats/types); and stats/minutes of a day and of a month. */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { STATS_KEPT_MS } from "../../src/domain/limits.ts";
import { TestClock, type TestHub, newDataDir, startHub } from "../support/hub.ts";
import { badFields, list, ok, record } from "./scene.ts";

type Fields = Readonly<Record<string, unknown>>;

async function typesOf(hub: TestHub): Promise<ReadonlyMap<unknown, Fields>> {
  hub.clock.pass(STATS_KEPT_MS);
  const { types } = await ok(hub.get("/stats/types"));
  return new Map(list({ types }, "types").map((one) => [one["task_type"], one]));
}

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
    no_node: [4, [causeOf("cobol", 3), { ...causeOf("mail", 1), detail: expect.stringContaining("gpu 8") }]],
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
