/** What work has cost: usage that workers report, its sums (GET usage), and max_cost_usd. */
import { describe, expect, test } from "bun:test";
import { SUMS_OF_NODE_MAX, USAGE_OF_TASK_MAX, USAGE_TOGETHER_MAX } from "../../src/domain/limits.ts";
import { DAY_MS, HOUR_MS } from "../../src/lib/clock.ts";
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

describe("a usage report", () => {
  test("counts once, in every request that can carry it, and failed attempts count", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await claimed(hub);
    expect(await usageOf(hub, taskId)).toBeNull();
    const extend = (usage: unknown) => ok(hub.post("/task/extend", of(taskId, { usage })));
    await extend([report(1)]);
    await extend([report(1), report(2, { cost_usd: 0.5 })]); // a repeat, with a new one
    await extend([report(2, { cost_usd: 7 }), report(2, { cost_usd: 8 })]); // the first one counts
    const two = { input_tokens: 2_000, output_tokens: 400, cost_usd: 0.75, reports: 2 };
    expect(await usageOf(hub, taskId)).toMatchObject(two);
    await ok(hub.post("/task/fail", of(taskId, { error: "no", usage: [report(3)] })));
    await ok(hub.post("/task/claim", of(taskId)));
    // Another attempt: its numbers are its own.
    await ok(hub.post("/task/release", of(taskId, { usage: [report(1)] })));
    await ok(hub.post("/task/claim", of(taskId)));
    const last = of(taskId, { result: RESULT, usage: [report(1, { cached_tokens: 900 })] });
    await ok(hub.post("/task/complete", last));
    await ok(hub.post("/task/complete", last));
    expect(await usageOf(hub, taskId)).toEqual({
      input_tokens: 5_000,
      output_tokens: 1_000,
      cached_tokens: 900,
      cost_usd: 1.5,
      reports: 5,
      without_cost: 0,
    });
    const [day] = await sums(hub, "");
    expect(day).toMatchObject({ cost_usd: 1.5, reports: 5 });
  });

  once.test("is refused from a late worker, and changes nothing", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await claimed(hub);
    const { lease } = await ok(hub.post("/task/extend", of(taskId)));
    const epoch = record(lease)["epoch"];
    await ok(hub.post("/task/release", of(taskId)));
    await ok(hub.post("/task/claim", of(taskId)));
    for (const path of ["/task/extend", "/task/release"])
      await refused(hub.post(path, of(taskId, { epoch, usage: [report(1)] })), 409, "stale_lease");
    expect(await usageOf(hub, taskId)).toBeNull();
    expect(await sums(hub, "")).toEqual([]);
  });

  once.test("is exact to a millionth of a dollar", async () => {
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

  once.test("without a cost is counted as such, and not as zero", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await claimed(hub);
    const unpriced = (seq: number) => report(seq, { cost_usd: null });
    await ok(hub.post("/task/extend", of(taskId, { usage: [unpriced(1)] })));
    expect(await usageOf(hub, taskId)).toMatchObject({ cost_usd: null, reports: 1, without_cost: 1 });
    await ok(hub.post("/task/extend", of(taskId, { usage: [unpriced(2), report(3)] })));
    expect(await usageOf(hub, taskId)).toMatchObject({ cost_usd: 0.25, reports: 3, without_cost: 2 });
    expect(await ok(hub.get("/usage"))).toMatchObject({
      all: { cost_usd: 0.25, reports: 3, without_cost: 2 },
    });
  });

  once.test("has limits", async () => {
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

  once.test("is refused when its task has too many, and the request works without", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await claimed(hub);
    const requests = Array.from({ length: USAGE_OF_TASK_MAX / USAGE_TOGETHER_MAX }, (_, n) => ({
      path: "task/extend",
      body: of(taskId, {
        usage: Array.from({ length: USAGE_TOGETHER_MAX }, (_, i) => report(n * USAGE_TOGETHER_MAX + i)),
      }),
    }));
    for (let n = 0; n < requests.length; n += 50)
      await ok(hub.post("/batch", { requests: requests.slice(n, n + 50) }));
    expect(await usageOf(hub, taskId)).toMatchObject({ reports: USAGE_OF_TASK_MAX });
    const last = of(taskId, { result: RESULT });
    await refused(
      hub.post("/task/complete", { ...last, usage: [report(USAGE_OF_TASK_MAX)] }),
      409,
      "usage_limit",
    );
    await ok(hub.post("/task/complete", last));
  });
});

describe("GET usage", () => {
  test("sums by node, creator, type, model and day, and keeps what deleted tasks have cost", async () => {
    await using hub = await startHub();
    for (const node of ["n1", "n2", "boss"]) await hub.addNode(node);
    const first = await claimed(hub, { task_type: "translate", creator_node: "boss" });
    const second = await claimed(hub);
    const third = await hub.addTask({ task_type: "translate" });
    await ok(hub.post("/task/claim", { task_id: third, node_id: "n2" }));
    await ok(hub.post("/task/extend", of(first, { usage: [report(1), report(2, { model: "small" })] })));
    await ok(hub.post("/task/extend", of(second, { usage: [report(1, { cost_usd: 1 })] })));
    await ok(
      hub.post("/task/extend", { task_id: third, node_id: "n2", usage: [report(1, { cost_usd: 5 })] }),
    );
    await ok(hub.admin("/task/delete", { task_id: third }));
    const short = (rows: Fields[]) => rows.map(({ name, cost_usd, reports }) => [name, cost_usd, reports]);
    expect(short(await sums(hub, "by=node"))).toEqual([
      ["n2", 5, 1],
      ["n1", 1.5, 3],
    ]);
    expect(short(await sums(hub, "by=creator"))).toEqual([
      [null, 6, 2],
      ["boss", 0.5, 2],
    ]);
    expect(short(await sums(hub, "by=type"))).toEqual([
      ["translate", 5.5, 3],
      [null, 1, 1],
    ]);
    expect(short(await sums(hub, "by=model"))).toEqual([
      ["large", 6.25, 3],
      ["small", 0.25, 1],
    ]);
    const today = new Date().toISOString().slice(0, 10);
    expect(short(await sums(hub, "by=day"))).toEqual([[today, 6.5, 4]]);
    const page = await ok(hub.get("/usage?by=node&page=2&per_page=1"));
    expect(page).toMatchObject({ total: 2, pages: 2, by: "node", all: { cost_usd: 6.5 } });
    expect(short(list(page, "usage"))).toEqual([["n1", 1.5, 3]]);
  });

  test("selects UTC days, both included", async () => {
    await using hub = await startHub();
    hub.clock.jump(Date.UTC(2030, 0, 31, 23) - Date.now());
    await hub.addNode("n1");
    const taskId = await claimed(hub);
    await ok(hub.post("/task/extend", of(taskId, { usage: [report(1)] })));
    hub.clock.jump(2 * HOUR_MS);
    await ok(hub.post("/task/extend", of(taskId, { usage: [report(2)] })));
    const days = async (query: string) => (await sums(hub, query)).map(({ name }) => name);
    expect(await days("")).toEqual(["2030-02-01", "2030-01-31"]);
    expect(await days("since=2030-02-01")).toEqual(["2030-02-01"]);
    expect(await days("since=2030-01-01&until=2030-01-31")).toEqual(["2030-01-31"]);
    expect(await days("until=2030-01-30")).toEqual([]);
    await badFields(hub.get("/usage?since=2030-02-30&by=week&until=now"), ["by", "since", "until"]);
    await badFields(hub.get("/usage?since=2030-02-02&until=2030-02-01"), ["since"]);
    await badFields(hub.get("/usage?since=2020-02-02"), ["since"]);
    await refused(hub.get("/usage", { headers: { "X-Matrix-Secret": null } }), 401, "unauthorized");
  });
});

describe("max_cost_usd", () => {
  test("ends the attempt that passes it permanently", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await claimed(hub, { max_cost_usd: 1 });
    const extend = async (seq: number, cost_usd: number) =>
      ok(hub.post("/task/extend", of(taskId, { usage: [report(seq, { cost_usd })] })));
    expect(await extend(1, 0.4)).toMatchObject({ budget_left_usd: 0.6, task: { max_cost_usd: 1 } });
    expect(await extend(2, 0.6)).toMatchObject({ budget_left_usd: 0, status: "assigned" });
    expect(await extend(3, 0.000_001)).toMatchObject({
      budget_left_usd: 0,
      status: "failed",
      task: {
        attempts: 1,
        failure: {
          kind: "budget",
          node_id: "n1",
          message: "It has cost 1.000001 USD, and its max_cost_usd is 1.",
        },
      },
    });
    await refused(hub.post("/task/extend", of(taskId)), 409, "task_failed");
    const kinds = list(await ok(hub.get(`/events?task_id=${taskId}`)), "events").map(({ kind }) => kind);
    expect(kinds).toEqual(["task.created", "task.assigned", "task.attempt_failed", "task.failed"]);
    // What was spent stays spent, so a retry needs a larger limit.
    await refused(hub.post("/task/retry", { task_id: taskId }), 409, "budget_exceeded");
    await refused(hub.post("/task/retry", { task_id: taskId, max_cost_usd: 1 }), 409, "budget_exceeded");
    await ok(hub.post("/task/retry", { task_id: taskId, max_cost_usd: 2 }));
    await ok(hub.post("/task/claim", of(taskId)));
    expect(await extend(4, 0.5)).toMatchObject({ budget_left_usd: 0.499_999, task: { max_cost_usd: 2 } });
  });

  once.test("also ends an attempt that fails or is released; one that completes is completed", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const over = { usage: [report(1, { cost_usd: 2 })] };
    const failing = await claimed(hub, { max_cost_usd: 1 });
    const failed = await ok(hub.post("/task/fail", of(failing, { error: "Out of ideas.", ...over })));
    expect(failed).toMatchObject({ status: "failed", task: { failure: { kind: "budget" } } });
    expect(JSON.stringify(failed)).toContain("Out of ideas.");
    const releasing = await claimed(hub, { max_cost_usd: 1 });
    expect(await ok(hub.post("/task/release", of(releasing, over)))).toMatchObject({
      status: "failed",
      task: { failure: { kind: "budget" }, attempts: 1 },
    });
    const completing = await claimed(hub, { max_cost_usd: 1 });
    await ok(hub.post("/task/complete", of(completing, { result: RESULT, ...over })));
    expect(await usageOf(hub, completing)).toMatchObject({ cost_usd: 2 });
  });

  once.test("is not touched by costs that are not known", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await claimed(hub, { max_cost_usd: 0 });
    const usage = [report(1, { cost_usd: null })];
    expect(await ok(hub.post("/task/extend", of(taskId, { usage })))).toMatchObject({ status: "assigned" });
    const free = await claimed(hub);
    expect(await ok(hub.post("/task/extend", of(free)))).toMatchObject({ budget_left_usd: null });
  });
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
