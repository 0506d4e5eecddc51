/** Advisory leases: who gets one, who is told of whom, and when they end. */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { LEASES_OF_NODE_MAX } from "../../src/domain/limits.ts";
import { ADMIN_KEY, TestClock, type TestHub, newDataDir, onlyOnce, startHub } from "../support/hub.ts";
import {
  ISO,
  RESULT,
  addNode,
  addNodes,
  addTask,
  badFields,
  list,
  ok,
  pick,
  record,
  refused,
} from "./scene.ts";

const once = onlyOnce(import.meta.url);
const ADMIN = { headers: { "X-Admin-Key": ADMIN_KEY } };
type Fields = Readonly<Record<string, unknown>>;

function asked(name: string, node_id: string, fields: Fields = {}): Fields {
  return { name, node_id, ...fields };
}

async function acquire(hub: TestHub, name: string, nodeId: string, fields: Fields = {}): Promise<Fields> {
  return record((await ok(hub.post("/lease/acquire", asked(name, nodeId, fields))))["lease"]);
}

/** The nodes that are in the way. */
async function holders(hub: TestHub, name: string, nodeId: string, fields: Fields = {}): Promise<unknown> {
  const { body } = await refused(
    hub.post("/lease/acquire", asked(name, nodeId, fields)),
    409,
    "lease_conflict",
  );
  return pick(body, "holders", "node_id");
}

async function names(hub: TestHub, query = ""): Promise<unknown> {
  return pick(await ok(hub.get(`/lease/list${query}`)), "leases", "name");
}

async function claimed(hub: TestHub, nodeId: string, fields: Fields = {}): Promise<string> {
  const task_id = await addTask(hub, fields);
  await ok(hub.post("/task/claim", { task_id, node_id: nodeId }));
  return task_id;
}

describe("acquire", () => {
  test("keeps others away, and tells them who has it", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const lease = await acquire(hub, "src/api/**", "n1", { ttl_s: 60 });
    expect(lease).toEqual({
      name: "src/api/**",
      node_id: "n1",
      task_id: null,
      shared: false,
      fencing: 1,
      ttl_s: 60,
      acquired_at: expect.stringMatching(ISO),
      until: expect.stringMatching(ISO),
    });
    const taken = await refused(
      hub.post("/lease/acquire", asked("src/*/tasks.ts", "n2")),
      409,
      "lease_conflict",
    );
    expect(list(taken.body, "holders")).toMatchObject([
      { name: "src/api/**", node_id: "n1", task_id: null, shared: false, fencing: 1 },
    ]);
    expect(await acquire(hub, "src/web/**", "n2")).toMatchObject({ fencing: 2 });
  });

  test("again by the same holder is the same lease with a new deadline", async () => {
    const clock = new TestClock();
    await using hub = await startHub({ clock });
    await addNode(hub, "n1");
    const first = await acquire(hub, "deploy", "n1");
    clock.pass(1_000);
    const again = await acquire(hub, "deploy", "n1");
    expect(again).toEqual({ ...first, until: again["until"] });
    expect(Date.parse(String(again["until"]))).toBeGreaterThan(Date.parse(String(first["until"])));
    expect(await acquire(hub, "deploy", "n1", { shared: true })).toMatchObject({ fencing: 2, shared: true });
    expect(await names(hub)).toEqual(["deploy"]);
  });

  test("shared goes with shared, and with nothing else", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2", "n3"]);
    await acquire(hub, "docs/**", "n1", { shared: true });
    await acquire(hub, "docs/a.md", "n2", { shared: true });
    expect(await holders(hub, "docs/a.md", "n3")).toEqual(["n1", "n2"]);
    expect(await holders(hub, "docs/a.md", "n2")).toEqual(["n1"]);
  });

  once.test("of two tasks of one node is refused, of the node itself is not", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const [first, second] = [await claimed(hub, "n1"), await claimed(hub, "n1")];
    await acquire(hub, "a/**", "n1", { task_id: first });
    expect(await holders(hub, "a/b", "n1", { task_id: second })).toEqual(["n1"]);
    await acquire(hub, "a/b", "n1");
    await acquire(hub, "a/c", "n1", { task_id: first });
    expect(await names(hub, `?task_id=${first}`)).toEqual(["a/**", "a/c"]);
  });

  once.test("for a task needs the node that holds it, in this hand-out", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const task_id = await claimed(hub, "n1");
    const refusedFor = (fields: Fields, status: number, code: string) =>
      refused(hub.post("/lease/acquire", asked("x", "n1", { task_id, ...fields })), status, code);
    await refusedFor({ node_id: "n2" }, 403, "not_assigned_to_node");
    await refusedFor({ epoch: 7 }, 409, "stale_lease");
    await refusedFor({ task_id: "none" }, 404, "task_not_found");
    await acquire(hub, "x", "n1", { task_id, epoch: 1 });
    await ok(hub.post("/task/release", { task_id, node_id: "n1" }));
    await refusedFor({}, 409, "task_not_assigned");
  });

  test("of many at once lets exactly one win", async () => {
    await using hub = await startHub();
    const nodes = Array.from({ length: 20 }, (_, i) => `n${i}`);
    await addNodes(hub, nodes);
    const answers = await Promise.all(
      nodes.map((node, i) => hub.post("/lease/acquire", asked(i % 2 ? "a/*" : `a/${"b".repeat(1)}`, node))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  once.test("refuses absolute and unclear names, and more leases than its limit", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    for (const name of [
      "/etc/x",
      "a//b",
      "a/",
      "./a",
      "a/../b",
      " ",
      "a\\b",
      " a",
      "a/b ",
      "x".repeat(201),
      "a/".repeat(32) + "a",
    ])
      await badFields(hub.post("/lease/acquire", asked(name, "n1")), ["name"]);
    await badFields(hub.post("/lease/acquire", asked("a", "n1", { ttl_s: 0 })), ["ttl_s"]);
    await refused(hub.post("/lease/acquire", asked("a", "nobody")), 404, "node_not_found");
    const requests = Array.from({ length: LEASES_OF_NODE_MAX }, (_, i) => ({
      path: "lease/acquire",
      body: asked(`f${i}`, "n1"),
    }));
    const { answers } = await ok(hub.post("/batch", { requests }));
    expect(new Set(pick({ answers }, "answers", "status"))).toEqual(new Set([200]));
    await refused(hub.post("/lease/acquire", asked("one more", "n1")), 409, "leases_limit");
    await acquire(hub, "f7", "n1"); // its own
  });
});

describe("renew and release", () => {
  test("are for the node that has the lease, by its number if it names one", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const { fencing } = await acquire(hub, "deploy", "n1", { ttl_s: 60 });
    const renewed = await ok(hub.post("/lease/renew", asked("deploy", "n1", { fencing, ttl_s: 120 })));
    expect(renewed["lease"]).toMatchObject({ fencing, ttl_s: 120 });
    await refused(hub.post("/lease/renew", asked("deploy", "n2")), 409, "lease_lost");
    await refused(hub.post("/lease/renew", asked("deploy", "n1", { fencing: 9 })), 409, "lease_lost");
    expect(await ok(hub.post("/lease/release", asked("deploy", "n2")))).toMatchObject({ released: 0 });
    expect(await ok(hub.post("/lease/release", asked("deploy", "n1")))).toMatchObject({ released: 1 });
    expect(await ok(hub.post("/lease/release", asked("deploy", "n1")))).toMatchObject({ released: 0 });
    expect(await acquire(hub, "deploy", "n2")).toMatchObject({ fencing: Number(fencing) + 1 });
  });
});

describe("a lease ends", () => {
  test.each([
    ["complete", (task_id: string) => ({ task_id, node_id: "n1", result: RESULT })],
    ["fail", (task_id: string) => ({ task_id, node_id: "n1", error: "broken" })],
    ["release", (task_id: string) => ({ task_id, node_id: "n1" })],
    ["cancel", (task_id: string) => ({ task_id })],
    ["revoke", (task_id: string) => ({ task_id })],
    ["revoke", (task_id: string) => ({ task_id, node_id: "n2" })],
    ["delete", (task_id: string) => ({ task_id })],
  ] as const)("with the hand-out of its task: %s", async (path, body) => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const task_id = await claimed(hub, "n1");
    await acquire(hub, "a", "n1", { task_id });
    await acquire(hub, "b", "n1");
    await ok(hub.post(`/task/${path}`, body(task_id), ADMIN));
    expect(await names(hub)).toEqual(["b"]);
    expect(await acquire(hub, "a", "n2")).toMatchObject({ fencing: 3 });
  });

  test("when the task's lease runs out", async () => {
    const clock = new TestClock();
    await using hub = await startHub({ clock });
    await addNodes(hub, ["n1", "n2"]);
    const task_id = await claimed(hub, "n1", { timeout_s: 30, backoff_s: 0 });
    await acquire(hub, "a", "n1", { task_id, ttl_s: 3_600 });
    clock.pass(31_000);
    await hub.sweep();
    await acquire(hub, "a", "n2");
    // The task's next hand-out has no leases of the one before.
    await ok(hub.post("/task/claim", { task_id, node_id: "n1" }));
    await acquire(hub, "b", "n1", { task_id });
    await ok(hub.post("/task/complete", { task_id, node_id: "n1", result: RESULT }));
    expect(await names(hub)).toEqual(["a"]);
  });

  test("at its deadline, and is then deleted", async () => {
    const clock = new TestClock();
    await using hub = await startHub({ clock });
    await addNodes(hub, ["n1", "n2"]);
    await acquire(hub, "a", "n1", { ttl_s: 10 });
    clock.pass(9_000);
    expect(await holders(hub, "a", "n2")).toEqual(["n1"]);
    clock.pass(1_500);
    expect(await names(hub)).toEqual([]);
    await refused(hub.post("/lease/renew", asked("a", "n1")), 409, "lease_lost");
    expect(await acquire(hub, "a", "n2")).toMatchObject({ fencing: 2 });
  });

  test("when its node leaves, and when it goes offline", async () => {
    const clock = new TestClock();
    await using hub = await startHub({ clock });
    await addNodes(hub, ["n1", "n2"]);
    await acquire(hub, "a", "n1", { ttl_s: 86_400 });
    await ok(hub.post("/node/leave", { node_id: "n1" }));
    expect(await names(hub)).toEqual([]);
    await refused(hub.post("/lease/acquire", asked("a", "n1")), 409, "node_offline");
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    await acquire(hub, "a", "n1", { ttl_s: 86_400 });
    for (let i = 0; i < 4; i++) {
      clock.pass(60_000);
      await ok(hub.post("/node/heartbeat", { node_id: "n2" }));
      await hub.sweep();
    }
    expect(await names(hub)).toEqual([]);
    await acquire(hub, "a", "n2");
    await ok(hub.post("/node/delete", { node_id: "n2" }, ADMIN));
    expect(await names(hub)).toEqual([]);
  });

  once.test("never by a restart of the hub: its time begins again", async () => {
    const clock = new TestClock();
    const dataDir = newDataDir();
    try {
      {
        await using hub = await startHub({ clock, dataDir });
        await addNodes(hub, ["n1", "n2"]);
        await acquire(hub, "a", "n1", { ttl_s: 60 });
      }
      clock.pass(3_600_000);
      await using hub = await startHub({ clock, dataDir });
      expect(await holders(hub, "a", "n2")).toEqual(["n1"]);
      expect(await acquire(hub, "b", "n2")).toMatchObject({ fencing: 2 });
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});

test("the list has pages", async () => {
  await using hub = await startHub();
  await addNodes(hub, ["n1", "n2"]);
  for (const name of ["a", "b", "c"]) await acquire(hub, name, "n1");
  await acquire(hub, "d", "n2");
  const first = await ok(hub.get("/lease/list?per_page=3"));
  expect(pick(first, "leases", "name")).toEqual(["a", "b", "c"]);
  expect(await names(hub, `?cursor=${String(first["next_cursor"])}`)).toEqual(["d"]);
  expect(await names(hub, "?node_id=n2")).toEqual(["d"]);
});
