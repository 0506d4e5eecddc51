/** The ledger of all nodes: double entries, the hash chain, receipts; and node_ids that look like other accounts. */
import { expect, test } from "bun:test";
import { LedgerCheck } from "../../src/cli/ledger-check.ts";
import { type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { RESULT, badFields, list, ok } from "./scene.ts";

const once = onlyOnce(import.meta.url);

type Entry = Readonly<Record<string, unknown>>;

/** The whole ledger, in pages of 3; its chain must be intact and end at the head. */
async function ledgerOf(hub: TestHub): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for (;;) {
    const since = Number(entries.at(-1)?.["seq"] ?? 0);
    const page = list(await ok(hub.get(`/lux/entries?since=${since}&limit=3`)), "entries");
    if (page.length === 0) break;
    entries.push(...page);
  }
  const { head } = await ok(hub.get("/lux/head"));
  expect(head).toEqual({ seq: entries.length, hash: entries.at(-1)?.["hash"] ?? null });
  const check = new LedgerCheck(null);
  for (const entry of entries) check.take(JSON.stringify(entry));
  expect(check.end().faults).toEqual([]);
  return entries;
}

test("every payment is one entry from the treasury to the node, in one chain", async () => {
  await using hub = await startHub();
  expect(await ledgerOf(hub)).toEqual([]);
  await hub.addNodes(["n1", "n2"]);
  await ok(hub.post("/signin", { node_id: "n2" }));
  const tasks: string[] = [];
  for (const node of ["n1", "n2", "n1", "n2"]) tasks.push(await hub.addTaskOf(node, { lux_reward: 1.5 }));
  const free = await hub.addTaskOf("n1");
  for (const [i, taskId] of tasks.entries()) await ok(hub.complete(taskId, i % 2 === 0 ? "n1" : "n2"));
  expect(await ok(hub.complete(free, "n1"))).toMatchObject({ lux_paid: 0, receipt: null });
  const entries = await ledgerOf(hub);
  expect(entries.map(({ from, to, amount, kind, task_id }) => [from, to, amount, kind, task_id])).toEqual([
    ["treasury", "node:n2", 10, "signin", null],
    ["treasury", "node:n1", 1.5, "reward", tasks[0]],
    ["treasury", "node:n2", 1.5, "reward", tasks[1]],
    ["treasury", "node:n1", 1.5, "reward", tasks[2]],
    ["treasury", "node:n2", 1.5, "reward", tasks[3]],
  ]);
  const own = list(await ok(hub.get("/lux/ledger?node_id=n2")), "entries");
  expect(own).toEqual(entries.filter(({ node_id }) => node_id === "n2").toReversed());
  await badFields(hub.get("/lux/entries?since=-1&limit=0"), ["since", "limit"]);
});

test("a receipt is the entry, and every repeat gets the same one", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  await ok(hub.post("/signin", { node_id: "n1" }));
  const [first, second] = [
    await hub.addTaskOf("n1", { lux_reward: 0.000001 }),
    await hub.addTaskOf("n1", { lux_reward: 2 }),
  ];
  const body = { task_id: first, node_id: "n1", result: RESULT };
  const headers = { "Idempotency-Key": "once" };
  const done = await ok(hub.post("/task/complete", body, { headers }));
  await ok(hub.complete(second, "n1"));
  for (const variant of ["A", "B"] as const)
    expect(await ok(hub.post("/task/complete", body, { variant }))).toEqual(done);
  expect(await ok(hub.post("/task/complete", body, { headers }))).toEqual(done);
  const [, entry] = await ledgerOf(hub);
  expect(done["receipt"]).toEqual({ entry_id: entry?.["id"], amount: 0.000001, hash: entry?.["hash"] });
});

test("concurrent payments form one chain, in batches too", async () => {
  await using hub = await startHub();
  const nodes = Array.from({ length: 8 }, (_, i) => `n${i}`);
  await hub.addNodes(nodes);
  const tasks = await Promise.all(
    Array.from({ length: 40 }, async (_, i) => {
      const node = nodes[i % nodes.length] ?? "";
      return { node_id: node, task_id: await hub.addTaskOf(node, { lux_reward: 1 }) };
    }),
  );
  const asked = tasks.map((task) => ({ ...task, result: RESULT }));
  await Promise.all([
    ...asked.slice(0, 20).flatMap((one) => [1, 2].map(() => ok(hub.post("/task/complete", one)))),
    ...nodes.map((node_id) => ok(hub.post("/signin", { node_id }))),
    hub.inBatches("task/complete", asked.slice(20)),
  ]);
  expect(await ledgerOf(hub)).toHaveLength(48);
  for (const node of nodes) expect(await hub.nodeOf(node)).toMatchObject({ lux_balance: 15 });
});

test("a node that is called like an account has an account of its own", async () => {
  await using hub = await startHub();
  const taskId = await hub.addTask({ lux_reward: 5 });
  const names = ["treasury", `held:${taskId}`, "held:x", "node:n1"];
  await hub.addNodes(names);
  await ok(hub.post("/task/claim", { task_id: taskId, node_id: `held:${taskId}` }));
  await ok(hub.complete(taskId, `held:${taskId}`));
  for (const node_id of names) await ok(hub.post("/signin", { node_id }));
  const entries = await ledgerOf(hub);
  expect(entries.map(({ from, to }) => [from, to])).toEqual([
    ["treasury", `node:held:${taskId}`],
    ...names.map((name) => ["treasury", `node:${name}`]),
  ]);
  expect(await hub.nodeOf("treasury")).toMatchObject({ lux_balance: 10 });
  expect(await hub.nodeOf(`held:${taskId}`)).toMatchObject({ lux_balance: 15 });
});

once.test("an amount that is no reward is refused, and leaves no entry", async () => {
  await using hub = await startHub();
  for (const lux_reward of [-1, 1e9 + 1, 1e-7, 1e308, "1"])
    await badFields(hub.post("/task/create", { title: "t", description: "d", lux_reward }), ["lux_reward"]);
  expect(await ledgerOf(hub)).toEqual([]);
});
