/** Budgets: what they keep from being handed out, and what they say when they are used up. */
import { describe, expect, test } from "bun:test";
import { BUDGETS_MAX } from "../../src/domain/limits.ts";
import { DAY_MS } from "../../src/lib/clock.ts";
import { ADMIN_KEY, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { RESULT, addNode, addTask, badFields, list, ok, record, refused, until, waits } from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

function setBudget(hub: TestHub, fields: Fields): Promise<Fields> {
  return ok(hub.admin("/budget/set", { per: "day", cost_usd: 1, ...fields }));
}

/** Hands a task to the node, which spends on it and completes it. */
async function spend(
  hub: TestHub,
  cost_usd: number | null,
  fields: Fields = {},
  node_id = "n1",
): Promise<void> {
  const task_id = await addTask(hub, fields);
  await ok(hub.post("/task/claim", { task_id, node_id }));
  const usage = [{ seq: 1, model: "m", input_tokens: 100, output_tokens: 10, cost_usd }];
  await ok(hub.post("/task/complete", { task_id, node_id, result: RESULT, usage }));
}

async function next(hub: TestHub, fields: Fields = {}): Promise<unknown> {
  const { task } = await ok(hub.post("/task/next", { node_id: "n1", ...fields }));
  return task === null ? null : record(task)["task_id"];
}

async function eventsOf(hub: TestHub): Promise<unknown[]> {
  const kinds = "budget.warning,budget.exceeded,budget.set,budget.deleted";
  const found = list(await ok(hub.get(`/events?since=0&kind=${kinds}`)), "events");
  return found.map(({ kind, data }) => [kind, record(data)["scope"], record(data)["value"]]);
}

async function budgets(hub: TestHub): Promise<Fields[]> {
  const headers = { "X-Admin-Key": ADMIN_KEY };
  return list(await ok(hub.get("/budget/list", { headers })), "budgets");
}

describe("a used up budget", () => {
  test.each([
    ["hub", undefined],
    ["node", "n1"],
    ["type", "dear"],
    ["creator", "boss"],
    ["group", "import"],
  ])("of the %s keeps its tasks back from every way to hand one out", async (scope, value) => {
    await using hub = await startHub();
    for (const node_id of ["n1", "boss"])
      await ok(hub.post("/node/register", { node_id, name: node_id, auto_assign: false }));
    const about = { task_type: "dear", creator_node: "boss", group: "import" };
    await setBudget(hub, { scope, value, cost_usd: 0.5 });
    await spend(hub, 0.5, about);
    const taskId = await addTask(hub, about);
    expect(await next(hub)).toBeNull();
    const both = { task_id: taskId, node_id: "n1" };
    await refused(hub.post("/task/claim", both), 409, "budget_exceeded");
    await refused(hub.post("/task/assign", both), 409, "budget_exceeded");
    const assigned = await ok(hub.post("/task/batch-assign", { assignments: [both] }));
    expect(list(assigned, "results")).toMatchObject([{ success: false, error: "budget_exceeded" }]);
    const sent = { title: "t", description: "d", for_node: "n1", ...about };
    await refused(hub.post("/task/create", sent), 409, "budget_exceeded");
    // The balancer: at create, at registration, at a heartbeat, when asked.
    await ok(hub.post("/node/register", { node_id: "n1", name: "n1", auto_assign: true }));
    const made = { title: "t", description: "d", ...about };
    const balanced = await ok(hub.post("/task/create", made, { variant: "B" }));
    expect(balanced["assigned_node"]).toBeNull();
    await ok(hub.post("/task/batch-assign", {}, { variant: "B" }));
    await ok(hub.post("/node/leave", { node_id: "n1" }));
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    await hub.sweep();
    const { by_status } = await ok(hub.get("/task/stats"));
    expect(record(by_status)).toMatchObject({ open: 2, assigned: 0 });
    // A larger one opens all of them.
    await setBudget(hub, { scope, value, cost_usd: 5 });
    expect(await next(hub)).not.toBeNull();
  });

  once.test("keeps nothing else back", async () => {
    await using hub = await startHub();
    for (const node of ["n1", "n2", "boss"]) await addNode(hub, node);
    for (const key of [
      { scope: "node", value: "n2" },
      { scope: "type", value: "dear" },
      { scope: "creator", value: "boss" },
      { scope: "group", value: "import" },
    ])
      await setBudget(hub, { ...key, cost_usd: 0 });
    await setBudget(hub, { scope: "hub", cost_usd: 0, on_limit: "warn" });
    for (let i = 0; i < 40; i++) {
      await addTask(hub, { task_type: "dear", priority: 0 });
      await addTask(hub, { creator_node: "boss", priority: 0 });
      await addTask(hub, { group: "import", priority: 0 });
    }
    const free = [await addTask(hub, { task_type: "cheap" }), await addTask(hub)];
    expect([await next(hub), await next(hub), await next(hub)]).toEqual([...free, null]);
    const more = await addTask(hub, { task_type: "cheap" });
    expect(await next(hub, { task_types: ["dear", "cheap"] })).toBe(more);
    await addTask(hub, { task_type: "cheap" });
    expect(await next(hub, { node_id: "n2" })).toBeNull();
  });

  test("of a group counts the copies and reviews of its tasks, and keeps these back too", async () => {
    await using hub = await startHub();
    for (const node of ["n1", "n2"]) await addNode(hub, node);
    const copiesOf = async (taskId: string): Promise<readonly string[]> => {
      let ids: readonly string[] = [];
      await until("there are copies", async () => {
        const { quorum } = record((await ok(hub.get(`/task/${taskId}`)))["task"]);
        const { copies } = record(quorum);
        ids = Array.isArray(copies) ? copies.map(String) : [];
        return ids.length > 0;
      });
      return ids;
    };
    const usage = [{ seq: 1, model: "m", input_tokens: 1, output_tokens: 1, cost_usd: 0.25 }];
    const ofGroup = { group: "import", priority: 0 };
    const [copy] = await copiesOf(await addTask(hub, { ...ofGroup, quorum: { results: 2, of: 2 } }));
    await ok(hub.post("/task/claim", { task_id: copy, node_id: "n1" }));
    await ok(hub.post("/task/extend", { task_id: copy, node_id: "n1", usage }));
    const reviewed = await addTask(hub, { ...ofGroup, review: "capability:check" });
    await ok(hub.post("/task/claim", { task_id: reviewed, node_id: "n1" }));
    await ok(hub.post("/task/complete", { task_id: reviewed, node_id: "n1", result: RESULT }));
    let check: unknown = null;
    await until("there is a review", async () => {
      const { tasks } = await ok(hub.get("/task/list?task_type=check"));
      check = list({ tasks }, "tasks")[0]?.["task_id"];
      return check !== undefined;
    });
    await ok(hub.post("/task/claim", { task_id: check, node_id: "n2" }));
    await ok(hub.post("/task/release", { task_id: check, node_id: "n2", usage }));
    expect((await ok(hub.get("/group/import")))["usage"]).toMatchObject({ input_tokens: 2, cost_usd: 0.5 });
    const { usage: sums } = await ok(hub.get("/usage?by=group"));
    expect(list({ sums }, "sums")).toMatchObject([{ name: "import", cost_usd: 0.5 }]);
    const ids: (readonly string[])[] = [];
    for (let i = 0; i < 12; i++) {
      const more = { ...(i % 2 === 1 && { limit_key: "k" }), quorum: { results: 3 } };
      ids.push(await copiesOf(await addTask(hub, { ...ofGroup, ...more })));
    }
    await setBudget(hub, { scope: "group", value: "import", cost_usd: 0.5 });
    const free = [await addTask(hub), await addTask(hub, { limit_key: "k" })];
    expect([await next(hub), await next(hub), await next(hub)]).toEqual([...free, null]);
    for (const task_id of [check, ids[0]?.[0], ids[1]?.[0]]) {
      await refused(hub.post("/task/claim", { task_id, node_id: "n2" }), 409, "budget_exceeded");
      const { reasons } = await ok(hub.get(`/task/${String(task_id)}/explain`));
      expect(list({ reasons }, "reasons").map(({ code }) => code)).toContain("budget");
    }
    await setBudget(hub, { scope: "group", value: "import", cost_usd: 5 });
    expect(await next(hub)).not.toBeNull();
  });

  once.test("lets running tasks finish, and a node go on with what it holds", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const [running, given] = [await addTask(hub), await addTask(hub)];
    await ok(hub.post("/task/claim", { task_id: running, node_id: "n1" }));
    await ok(hub.post("/task/assign", { task_id: given, node_id: "n1" }));
    await setBudget(hub, { scope: "hub", cost_usd: 0 });
    await ok(hub.post("/task/extend", { task_id: running, node_id: "n1" }));
    await ok(hub.post("/task/complete", { task_id: running, node_id: "n1", result: RESULT }));
    expect(await next(hub)).toBe(given);
  });

  once.test("gives a task that its own report has closed to nobody", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const made = { title: "t", description: "d", backoff_s: 0 };
    const task_id = String((await ok(hub.post("/task/create", made, { variant: "B" })))["task_id"]);
    await setBudget(hub, { scope: "hub", cost_usd: 0.5 });
    await ok(hub.post("/task/claim", { task_id, node_id: "n1" }));
    await ok(hub.post("/node/register", { node_id: "n2", name: "n2", auto_assign: true }));
    const usage = [{ seq: 1, model: "m", input_tokens: 1, output_tokens: 1, cost_usd: 1 }];
    const released = await ok(hub.post("/task/release", { task_id, node_id: "n1", usage }));
    expect(released).toMatchObject({ assigned_node: null, status: "open" });
  });

  test("wakes a waiting worker when it is set again, deleted, or its period begins again", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    await setBudget(hub, { scope: "hub", cost_usd: 0.1 });
    await spend(hub, 0.2);
    const tasks = [await addTask(hub), await addTask(hub), await addTask(hub)];
    const taken = async (change: () => Promise<unknown>): Promise<unknown> => {
      const waiting = next(hub, { wait: 60 });
      await until("the call waits", () => waits(hub, 1));
      await change();
      return waiting;
    };
    expect(await taken(() => setBudget(hub, { scope: "hub", cost_usd: 1 }))).toBe(tasks[0]);
    await setBudget(hub, { scope: "hub", cost_usd: 0.1 });
    const key = { scope: "hub", per: "day" };
    expect(await taken(() => ok(hub.admin("/budget/delete", key)))).toBe(tasks[1]);
    await setBudget(hub, { scope: "hub", cost_usd: 0.1 });
    const turn = async (): Promise<void> => {
      hub.clock.jump(DAY_MS);
      await hub.sweep();
    };
    expect(await taken(turn)).toBe(tasks[2]);
  });
});

describe("what a budget says", () => {
  test("is a warning at 80 % and once more at the limit, once in a period", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    await setBudget(hub, { scope: "hub", on_limit: "warn" });
    await setBudget(hub, { scope: "type", value: "t", per: "month", cost_usd: undefined, tokens: 200 });
    const said = async () => (await eventsOf(hub)).slice(2);
    await spend(hub, 0.79);
    expect(await said()).toEqual([]);
    await spend(hub, 0.01, { task_type: "t" });
    expect(await said()).toEqual([["budget.warning", "hub", null]]);
    await spend(hub, 0.1);
    await spend(hub, null, { task_type: "t" });
    expect((await said()).slice(1)).toEqual([["budget.exceeded", "type", "t"]]);
    await spend(hub, 0.2);
    await spend(hub, 0.2);
    expect((await said()).slice(2)).toEqual([["budget.exceeded", "hub", null]]);
    hub.clock.jump(DAY_MS);
    await spend(hub, 2);
    expect((await said()).slice(3)).toEqual([["budget.exceeded", "hub", null]]);
    const [event] = list(await ok(hub.get("/events?since=0&kind=budget.exceeded")), "events").slice(1);
    expect(event).toMatchObject({
      node_id: null,
      data: { per: "day", on_limit: "warn", limit_usd: 1, cost_usd: 1.1, without_cost: 1 },
    });
  });

  once.test("is shown in the list, with what is spent and how many costs are not known", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    await spend(hub, 0.85);
    await spend(hub, null);
    await setBudget(hub, { scope: "node", value: "n1" });
    await setBudget(hub, { scope: "hub", per: "total", cost_usd: 0.5, tokens: 1_000 });
    await setBudget(hub, { scope: "type", per: "month", tokens: 10_000 });
    const spent = { cost_usd: 0.85, without_cost: 1, reports: 2, input_tokens: 200 };
    const today = new Date(hub.clock.now()).toISOString().slice(0, 10);
    expect(await budgets(hub)).toMatchObject([
      { scope: "hub", value: null, per: "total", state: "exceeded", paused: true, since: null, spent },
      { scope: "node", value: "n1", per: "day", state: "warning", paused: false, since: today, spent },
      { scope: "type", value: null, per: "month", state: "warning", since: `${today.slice(0, 8)}01` },
    ]);
    expect(await eventsOf(hub)).toEqual([
      ["budget.set", "node", "n1"],
      ["budget.warning", "node", "n1"],
      ["budget.set", "hub", null],
      ["budget.exceeded", "hub", null],
      ["budget.set", "type", null],
      ["budget.warning", "type", null],
    ]);
    const key = { scope: "node", value: "n1", per: "day" };
    await ok(hub.admin("/budget/delete", key));
    await refused(hub.admin("/budget/delete", key), 404, "budget_not_found");
    expect(await budgets(hub)).toHaveLength(2);
  });
});

once.test("a budget needs an administrator, a limit, and a value that fits its scope", async () => {
  await using hub = await startHub();
  const fields = { scope: "hub", per: "day", cost_usd: 1 };
  await refused(hub.post("/budget/set", fields), 403, "admin_key_required");
  await refused(hub.get("/budget/list"), 403, "admin_key_required");
  await badFields(hub.admin("/budget/set", { scope: "hub", per: "day" }), ["cost_usd"]);
  await badFields(hub.admin("/budget/set", { ...fields, value: "n1" }), ["value"]);
  await badFields(hub.admin("/budget/set", { ...fields, scope: "node" }), ["value"]);
  await badFields(
    hub.admin("/budget/set", { scope: "x", per: "week", on_limit: "stop", cost_usd: -1, tokens: 0.5 }),
    ["scope", "per", "on_limit", "cost_usd", "tokens"],
  );
});

once.test("there are so many budgets at most", async () => {
  await using hub = await startHub();
  const requests = Array.from({ length: BUDGETS_MAX }, (_, i) => ({
    path: "budget/set",
    body: { scope: "type", value: `t${i}`, per: "day", tokens: 1 },
  }));
  for (let at = 0; at < BUDGETS_MAX; at += 500)
    await ok(hub.admin("/batch", { requests: requests.slice(at, at + 500) }));
  const last = { scope: "hub", per: "day", tokens: 1 };
  await refused(hub.admin("/budget/set", last), 409, "budgets_limit");
  await ok(hub.admin("/budget/set", { ...last, scope: "type", value: "t7" }));
});
