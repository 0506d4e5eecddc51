/** What a node reports with a key of its own, and the numbers of reports. usage.test.ts has the rest. */
import { describe, expect, test } from "bun:test";
import { SUMS_OF_NODE_MAX, USAGE_TOGETHER_MAX } from "../../src/domain/limits.ts";
import { DAY_MS } from "../../src/lib/clock.ts";
import { ADMIN_KEY, SECRET, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { as } from "./key-commands.ts";
import { RESULT, badFields, list, ok, record, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

function report(seq: number, fields: Fields = {}): Fields {
  return { seq, model: "large", input_tokens: 1_000, output_tokens: 200, cost_usd: 0.25, ...fields };
}

function of(taskId: string, fields: Fields = {}): Fields {
  return { task_id: taskId, node_id: "n1", ...fields };
}

async function usageOf(hub: TestHub, taskId: string): Promise<unknown> {
  return record((await ok(hub.get(`/task/${taskId}`)))["task"])["usage"];
}

async function sums(hub: TestHub, query: string): Promise<Fields[]> {
  return list(await ok(hub.get(`/usage?${query}`)), "usage");
}

async function claimed(hub: TestHub, fields: Fields = {}): Promise<string> {
  const taskId = await hub.addTask({ backoff_s: 0, ...fields });
  await ok(hub.post("/task/claim", of(taskId)));
  return taskId;
}

once.test("a usage report is exact to a millionth of a dollar", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const taskId = await claimed(hub);
  // Ten times 0.1 is 1, and what is finer is rounded.
  const tenths = Array.from({ length: 10 }, (_, i) => report(i, { cost_usd: 0.1 }));
  await ok(hub.post("/task/extend", of(taskId, { usage: tenths })));
  expect(await usageOf(hub, taskId)).toMatchObject({ cost_usd: 1 });
  const usage = [report(10, { cost_usd: 0.1 + 0.2 }), report(11, { cost_usd: 0.000_000_6 })];
  await ok(hub.post("/task/extend", of(taskId, { usage })));
  expect(await usageOf(hub, taskId)).toMatchObject({ cost_usd: 1.300_001 });
  const longer = JSON.stringify(of(taskId, { usage: [report(12, { cost_usd: "X" })] }));
  await ok(hub.post("/task/extend", longer.replace('"X"', "0.12345640000000000000000001")));
  expect(await usageOf(hub, taskId)).toMatchObject({ cost_usd: 1.423_457 });
});

once.test("a usage report has limits", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const taskId = await claimed(hub);
  const wrong = [
    { seq: -1 },
    { model: " " },
    { input_tokens: 1.5 },
    { output_tokens: 1_000_000_001 },
    { cost_usd: -0.1 },
    { cost_usd: 10_001 },
    { cached_tokens: "1" },
  ];
  const paths = wrong.map((fields, i) => `usage.${i}.${Object.keys(fields)[0]}`);
  const usage = wrong.map((fields, i) => report(i, fields));
  await badFields(hub.post("/task/extend", of(taskId, { usage })), paths);
  // Numbers that no double has are rounded, as everywhere.
  const tiny = JSON.stringify(of(taskId, { usage: [report(8, { input_tokens: 0, cached_tokens: 0 })] }));
  const exact = tiny
    .replaceAll('_tokens":0', '_tokens":1e-400')
    .replace('"seq":8', '"seq":8.0000000000000000001');
  expect(exact.split("1e-400").length).toBe(3);
  await ok(
    hub.call("POST", "/task/extend", { body: exact, headers: { "Content-Type": "application/json" } }),
  );
  const many = Array.from({ length: USAGE_TOGETHER_MAX + 1 }, (_, i) => report(i));
  await badFields(hub.post("/task/extend", of(taskId, { usage: many })), ["usage"]);
});

describe("what a node reports with a key of its own", () => {
  const ADMIN = { headers: { "X-Admin-Key": ADMIN_KEY } };

  /** A hub with a key that is bound to n1, and the calls with it. */
  async function bound(options: Parameters<typeof startHub>[0] = {}) {
    const hub = await startHub(options);
    const { secret } = await ok(hub.post("/key/add", { name: "of-n1", node_id: "n1" }, ADMIN));
    const own = as(String(secret));
    await ok(hub.post("/node/register", { node_id: "n1", name: "n1" }, own));
    await hub.addNode("n2");
    const post = (path: string, fields: Fields) => ok(hub.post(path, fields, own));
    const spend = async (usage: readonly Fields[], fields: Fields = {}, isOwn = false): Promise<string> => {
      const asked = { title: "t", description: "d", ...fields };
      const { task_id } = isOwn
        ? await post("/task/create", asked)
        : await ok(hub.post("/task/create", asked));
      await post("/task/claim", { task_id, node_id: "n1" });
      await post("/task/complete", { task_id, node_id: "n1", result: RESULT, usage });
      return String(task_id);
    };
    const used = async (): Promise<number> => {
      const keys = list(await ok(hub.get("/key/list", ADMIN)), "keys");
      return Number(record(keys.find(({ name }) => name === "of-n1")?.["used"])["bytes"]);
    };
    return { hub, spend, used, [Symbol.asyncDispose]: () => hub.close() };
  }

  const total = async (hub: TestHub): Promise<unknown> =>
    record((await ok(hub.get("/usage")))["all"])["cost_usd"];
  const events = async (hub: TestHub, kind: string) =>
    list(await ok(hub.get(`/events?since=0&kind=${kind}`)), "events").map(({ node_id, data }) => [
      node_id,
      data,
    ]);

  test("counts up to max_cost_usd, or else --report-max; the rest is an event", async () => {
    await using scene = await bound({ reportMaxUsd: 3 });
    const { hub, spend } = scene;
    const two = [report(1, { cost_usd: 2 }), report(2, { cost_usd: 2, model: "small" })];
    const rows: readonly (readonly [fields: Fields, isOwn: boolean, counted: number])[] = [
      [{}, false, 3],
      [{ max_cost_usd: 3.5 }, false, 3.5],
      [{ max_cost_usd: 1 }, false, 1],
      [{ max_cost_usd: 3.5 }, true, 3], // who creates the task may say anything
      [{ max_cost_usd: 1 }, true, 1],
    ];
    let sum = 0;
    for (const [fields, isOwn, counted] of rows) {
      const taskId = await spend(two, fields, isOwn);
      expect(await usageOf(hub, taskId)).toMatchObject({ cost_usd: 4 });
      sum += counted;
      expect([fields, await total(hub)]).toEqual([fields, sum]);
      expect((await events(hub, "usage.capped")).at(-1)).toMatchObject([
        "n1",
        { cost_usd: 4, counted_usd: counted },
      ]);
    }
    for (const by of ["node", "creator", "type", "model"]) {
      const costs = (await sums(hub, `by=${by}`)).map(({ cost_usd }) => Number(cost_usd));
      expect([by, costs.reduce((a, b) => a + b, 0)]).toEqual([by, sum]);
    }
    const taskId = await claimed(hub);
    await ok(
      hub.post("/task/complete", of(taskId, { result: RESULT, usage: [report(1, { cost_usd: 50 })] })),
    );
    expect(await total(hub)).toBe(sum + 50); // any other key is trusted
    expect(await events(hub, "usage.capped")).toHaveLength(rows.length);
  });

  test("counts for its quota by name, and has few names a day", async () => {
    await using scene = await bound();
    const { hub, spend, used } = scene;
    await ok(hub.admin("/budget/set", { scope: "group", value: "g-last", per: "day", cost_usd: 100 }));
    const before = await used();
    for (let i = 0; i < SUMS_OF_NODE_MAX + 5; i++) {
      const group = i === SUMS_OF_NODE_MAX + 4 ? "g-last" : `g${i}`;
      await spend([report(1, { model: `m${i}` })], { group });
    }
    for (const by of ["model", "group"]) {
      const named = await sums(hub, `by=${by}&per_page=50`);
      expect(named[0]).toMatchObject({ name: "other", reports: by === "model" ? 5 : 4 });
      const { total } = await ok(hub.get(`/usage?by=${by}`));
      expect([by, total]).toEqual([by, SUMS_OF_NODE_MAX + (by === "model" ? 1 : 2)]);
    }
    expect((await used()) - before).toBeGreaterThan(2 * SUMS_OF_NODE_MAX * 320);
  });

  test("is void when an administrator says so: sums, budgets and names as if there were none", async () => {
    await using scene = await bound();
    const { hub, spend, used } = scene;
    const budget = { scope: "hub", per: "total", cost_usd: 10 };
    await ok(hub.admin("/budget/set", budget));
    const honest = await hub.addTask({ task_type: "t", group: "g" });
    await ok(hub.post("/task/claim", { task_id: honest, node_id: "n2" }));
    const result = { task_id: honest, node_id: "n2", result: RESULT, usage: [report(1)] };
    await ok(hub.post("/task/complete", result));
    const shown = () =>
      Promise.all(["day", "node", "creator", "type", "model", "group"].map((by) => sums(hub, `by=${by}`)));
    const [before, usedBefore] = [await shown(), await used()];
    const metric = async (): Promise<number> => {
      const response = await fetch(`${hub.base()}/metrics`, { headers: { "X-Matrix-Secret": SECRET } });
      return Number(/^luxhub_cost_usd_total (\S+)$/m.exec(await response.text())?.[1]);
    };
    for (let round = 0; round < 2; round++) {
      await spend([report(1, { cost_usd: 60 }), report(2, { model: "x" })], { task_type: "t", group: "g" });
      const waiting = await hub.addTask();
      await refused(hub.post("/task/claim", { task_id: waiting, node_id: "n2" }), 409, "budget_exceeded");
      expect(await events(hub, "budget.exceeded")).toHaveLength(round + 1); // it says so again
      const voided = await ok(hub.admin("/usage/void", { node_id: "n1", reason: "cents" }));
      expect(voided).toMatchObject({ node_id: "n1", voided: { reports: 2, cost_usd: 60.25 } });
      expect(await shown()).toEqual(before);
      await ok(hub.post("/task/claim", { task_id: waiting, node_id: "n2" }));
      await refused(hub.admin("/usage/void", { node_id: "n1" }), 404, "usage_not_found");
    }
    expect((await used()) - usedBefore).toBeLessThan(5_000); // the events
    expect(await events(hub, "usage.voided")).toMatchObject([
      ["n1", { reports: 2, cost_usd: 60.25, reason: "cents" }],
      ["n1", { reports: 2 }],
    ]);
    expect(await metric()).toBe(0.25 + 2 * 60.25); // a counter does not go down
    await refused(hub.post("/usage/void", { node_id: "n2" }), 403, "admin_key_required");
    await refused(hub.admin("/usage/void", { node_id: "n2", day: "2030-01-01" }), 404, "usage_not_found");
  });

  test("goes after --retain-usage, but for what a budget of all time counts", async () => {
    await using scene = await bound({ retainUsageMs: 3 * DAY_MS });
    const { hub, spend, used } = scene;
    await ok(hub.admin("/budget/set", { scope: "type", value: "kept", per: "total", cost_usd: 100 }));
    await spend([report(1)], { task_type: "kept" });
    await spend([report(1)], { task_type: "gone" });
    const full = await used();
    for (let day = 0; day < 5; day++) {
      hub.clock.pass(DAY_MS);
      await hub.sweep();
    }
    expect((await sums(hub, "by=type")).map(({ name }) => name)).toEqual(["kept"]);
    expect(await sums(hub, "by=model")).toEqual([]);
    expect(await sums(hub, "by=day")).toHaveLength(1);
    expect(full - (await used())).toBeGreaterThan(5 * 320);
  });
});
