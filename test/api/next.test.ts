/**
 * A worker's next task (task/next): the choice of the task and of the waiting worker, wake-ups, and callers that hang
 * up without the loss of a task.
 */
import { describe, expect, spyOn, test } from "bun:test";
import { HEARTBEAT_FRESH_MS } from "../../src/domain/limits.ts";
import { MINUTE_MS, SECOND_MS } from "../../src/lib/clock.ts";
import { IdleWorkers } from "../../src/service/idle-workers.ts";
import { dice } from "../support/dice.ts";
import { type Answer, type CallOptions, type TestHub, onlyOnce, startHub } from "../support/hub.ts";

import { addKey, as, runKeys } from "./key-commands.ts";
import {
  RESULT,
  VARIANTS,
  addNode,
  addNodes,
  addTask,
  addTaskOf,
  badFields,
  complete,
  eventKinds,
  hold,
  list,
  nodeOf,
  ok,
  rawPost,
  record,
  refused,
  until,
} from "./scene.ts";

const once = onlyOnce(import.meta.url);

type Fields = Readonly<Record<string, unknown>>;

const ask = (hub: TestHub, nodeId: string, fields: Fields = {}, options: CallOptions = {}) =>
  hub.post("/task/next", { node_id: nodeId, ...fields }, options);

/** The id of the task that is handed out; null for none. */
async function taken(answer: Answer | Promise<Answer>): Promise<string | null> {
  const { task, lease } = await ok(answer);
  expect(lease === null).toBe(task === null);
  return task === null ? null : String(record(task)["task_id"]);
}

const say = (hub: TestHub, step: string, taskId: string, fields: Fields = {}) =>
  hub.post(`/task/${step}`, { task_id: taskId, ...fields });

const get = async (hub: TestHub, taskId: string) => record((await ok(hub.get(`/task/${taskId}`)))["task"]);

const released = async (hub: TestHub) =>
  list(await ok(hub.get("/events?since=0&kind=task.released")), "events");

/** Begins a call, and resolves when it waits: it has written its heartbeat, and then sleeps. */
async function waiting<T>(hub: TestHub, nodeId: string, begin: () => T): Promise<{ call: T }> {
  hub.clock.pass(HEARTBEAT_FRESH_MS); // so that the call writes a heartbeat
  const { last_heartbeat: before } = await nodeOf(hub, nodeId);
  const call = begin();
  await until("it waits", async () => (await nodeOf(hub, nodeId))["last_heartbeat"] !== before);
  return { call };
}

async function blocked(
  hub: TestHub,
  nodeId: string,
  fields: Fields = {},
  options: CallOptions = {},
): Promise<{ readonly answer: Promise<Answer>; isOver(): boolean }> {
  let isOver = false;
  const { call } = await waiting(hub, nodeId, () =>
    ask(hub, nodeId, { wait: 120, ...fields }, options).finally(() => (isOver = true)),
  );
  return { answer: call, isOver: () => isOver };
}

describe("which task", () => {
  test("gifts first, best first, then the best open one; each is handed out once", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const low = await addTask(hub, { priority: 2 });
    const open = await addTask(hub, { priority: 1, timeout_s: 60 });
    const high = await addTask(hub, { priority: 0 });
    const gift = await addTaskOf(hub, "n1", { priority: 2 });
    const best = await addTaskOf(hub, "n1", { priority: 1 });
    const first = await ok(ask(hub, "n1"));
    expect(first).toMatchObject({
      task: { task_id: best, status: "assigned", assigned_node: "n1", attempts: 0 },
      lease: { epoch: 2, expires_at: null },
      drain: false,
    });
    expect(record(first["task"])["started_at"]).not.toBeNull();
    for (const taskId of [gift, high]) expect(await taken(ask(hub, "n1"))).toBe(taskId);
    const { lease } = await ok(ask(hub, "n2"));
    expect(lease).toMatchObject({ epoch: 1, expires_at: expect.any(String) });
    for (const taskId of [low, null]) expect(await taken(ask(hub, "n2"))).toBe(taskId);
    expect(await get(hub, open)).toMatchObject({ assigned_node: "n2" });
    expect(await eventKinds(hub, best)).toEqual(["task.created", "task.assigned"]);
    const assigned = list(await ok(hub.get(`/events?task_id=${open}&kind=task.assigned`)), "events");
    expect(assigned).toMatchObject([{ node_id: "n2", data: { by: "next" } }]);
    await refused(
      say(hub, "complete", best, { node_id: "n1", epoch: 1, result: RESULT }),
      409,
      "stale_lease",
    );
    await ok(say(hub, "complete", best, { node_id: "n1", epoch: 2, result: RESULT }));
    await refused(ask(hub, "nobody"), 404, "node_not_found");
  });

  once.test("capabilities and task_types limit the open ones only", async () => {
    await using hub = await startHub();
    await addNode(hub, "coder", { capabilities: ["code", "test"] });
    await addNode(hub, "any");
    const [code, tests, paint, untyped] = [
      await addTask(hub, { task_type: "code" }),
      await addTask(hub, { task_type: "test" }),
      await addTask(hub, { task_type: "paint" }),
      await addTask(hub),
    ];
    const gift = await addTaskOf(hub, "coder", { task_type: "paint" });
    const only = (...types: string[]) => ({ task_types: types });
    expect(await taken(ask(hub, "coder", only("test")))).toBe(gift);
    expect(await taken(ask(hub, "coder", only("paint")))).toBeNull();
    expect(await taken(ask(hub, "coder", only("paint", " test ")))).toBe(tests);
    expect(await taken(ask(hub, "any", only("paint", "code")))).toBe(code);
    expect(await taken(ask(hub, "any", only("test")))).toBeNull();
    expect(await taken(ask(hub, "coder"))).toBe(untyped);
    expect(await taken(ask(hub, "coder"))).toBeNull();
    expect(await taken(ask(hub, "any"))).toBe(paint);
  });

  test("only ready tasks, also one that the node itself released", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { auto_assign: false });
    const first = await addTask(hub, {}, "B");
    await addTask(hub, { delay_s: 60 });
    await addTask(hub, { depends_on: [first] });
    expect(await taken(ask(hub, "n1"))).toBe(first);
    expect(await taken(ask(hub, "n1"))).toBeNull();
    await ok(say(hub, "release", first, { node_id: "n1" }));
    expect(await taken(ask(hub, "n1"))).toBe(first);
  });

  test("resume hands out what was started, oldest first, each time under a new epoch", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const resume = { resume: true };
    const tasks = [await addTask(hub, { timeout_s: 100 }), await addTask(hub), await addTask(hub)];
    const [a = "", b = "", open = ""] = tasks;
    for (const taskId of [b, a]) {
      hub.clock.pass(10);
      await ok(say(hub, "claim", taskId, { node_id: "n1" }));
    }
    const gift = await addTaskOf(hub, "n1");
    expect(await taken(ask(hub, "n2", resume))).toBe(open);
    const seen: unknown[] = [];
    for (let i = 0; i < 4; i++) {
      hub.clock.pass(10);
      const { task, lease } = await ok(ask(hub, "n1", resume));
      seen.push([record(task)["task_id"], record(lease)["epoch"]]);
    }
    expect(seen).toEqual([
      [b, 2],
      [a, 2],
      [b, 3],
      [a, 3],
    ]);
    const assigned = list(await ok(hub.get(`/events?task_id=${a}&kind=task.assigned&since=0`)), "events");
    expect(assigned.map(({ data }) => record(data)["by"])).toEqual(["claim", "resume", "resume"]);
    await refused(say(hub, "fail", a, { node_id: "n1", epoch: 2, error: "e" }), 409, "stale_lease");
    for (const taskId of [a, b]) await ok(complete(hub, taskId, "n1"));
    expect(await taken(ask(hub, "n1", resume))).toBe(gift);
    expect(await taken(ask(hub, "n1"))).toBeNull();
  });

  once.test(
    "resume counts restarts, which are attempts of a task with max_attempts, and the last one fails it",
    async () => {
      await using hub = await startHub();
      await addNode(hub, "n1", { max_tasks: 1 });
      const poison = await addTask(hub, { max_attempts: 3, priority: 0 });
      const after = await addTask(hub, { depends_on: [poison] });
      const next = await addTask(hub);
      const resume = { resume: true };
      for (let restarts = 0; restarts < 3; restarts++) {
        const { task, lease } = await ok(ask(hub, "n1", resume));
        expect(task).toMatchObject({ task_id: poison, restarts, attempts: restarts, status: "assigned" });
        const { epoch } = record(lease);
        const holds = { task_id: poison, node_id: "n1", epoch };
        await ok(hub.post("/task/extend", holds));
        if (restarts > 0) await refused(hub.post("/task/extend", { ...holds, epoch: 1 }), 409, "stale_lease");
      }
      expect(await taken(ask(hub, "n1", resume))).toBe(next);
      expect(await get(hub, poison)).toMatchObject({
        status: "failed",
        attempts: 3,
        restarts: 3,
        failure: { kind: "offline", node_id: "n1", message: expect.stringContaining("restart 3") },
      });
      expect((await eventKinds(hub, poison)).slice(-4)).toEqual([
        "task.requeued",
        "task.assigned",
        "task.requeued",
        "task.failed",
      ]);
      expect(await get(hub, after)).toMatchObject({ failure: { kind: "dependency" } });
      const again = await ok(say(hub, "retry", poison));
      expect(again["task"]).toMatchObject({ attempts: 0, restarts: 0, status: "open" });
    },
  );

  once.test("without max_attempts a restart is no attempt and never ends the task", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub);
    for (let restarts = 0; restarts < 15; restarts++) {
      const { task } = await ok(ask(hub, "n1", { resume: true }));
      expect(task).toMatchObject({ task_id: taskId, restarts, attempts: 0 });
    }
  });

  once.test(
    "a restart has a new timeout, and what is left of max_run_s unless it is another attempt",
    async () => {
      await using hub = await startHub();
      await addNode(hub, "n1");
      const limits = { timeout_s: 50, max_run_s: 60 };
      for (const [max_attempts, leftS] of [
        [null, 30],
        [9, 50],
      ] as const) {
        const taskId = await addTask(hub, { ...limits, max_attempts });
        expect(await taken(ask(hub, "n1"))).toBe(taskId);
        hub.clock.pass(30 * SECOND_MS);
        const { lease } = await ok(ask(hub, "n1", { resume: true }));
        const left = Date.parse(String(record(lease)["expires_at"])) - hub.clock.now();
        expect(left).toBeWithin((leftS - 5) * SECOND_MS, leftS * SECOND_MS + 1);
        await ok(complete(hub, taskId, "n1"));
      }
    },
  );

  once.test("a restart that ends the task answers at once, and waits when there is no other", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { max_tasks: 1 });
    const poison = await addTask(hub, { max_attempts: 1 });
    expect(await taken(ask(hub, "n1"))).toBe(poison);
    const waits = taken(ask(hub, "n1", { resume: true, wait: 60 }));
    await until("it has failed", async () => (await get(hub, poison))["status"] === "failed");
    const next = await addTask(hub);
    expect(await waits).toBe(next); // its node has room again
  });

  test("of simultaneous next and claim no task goes to two", async () => {
    await using hub = await startHub();
    const nodes = Array.from({ length: 10 }, (_, i) => `n${i}`);
    await addNodes(hub, nodes);
    const tasks = await Promise.all(Array.from({ length: 60 }, () => addTask(hub)));
    const nexts = nodes.flatMap((nodeId) =>
      Array.from({ length: 5 }, async () => ({ nodeId, taskId: await taken(ask(hub, nodeId)) })),
    );
    const claims = tasks.slice(0, 20).map(async (taskId, i) => {
      const nodeId = nodes[i % 10] ?? "";
      const { status } = await say(hub, "claim", taskId, { node_id: nodeId });
      return { nodeId, taskId: status === 200 ? taskId : null };
    });
    const handed = await Promise.all(nexts);
    const ids = handed.flatMap(({ taskId }) => taskId ?? []);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeGreaterThanOrEqual(40);
    const holders = new Map<string | null, string>();
    for (const { nodeId, taskId } of [...handed, ...(await Promise.all(claims))]) {
      if (taskId !== null) expect(holders.get(taskId) ?? nodeId).toBe(nodeId); // a claim of one's own is no conflict
      if (taskId !== null) holders.set(taskId, nodeId);
    }
    expect(await ok(hub.get("/task/stats"))).toMatchObject({ by_status: { assigned: holders.size } });
  });

  const BAD: readonly (readonly [Fields, readonly string[]])[] = [
    [{ node_id: "a b", wait: -1 }, ["node_id", "wait"]],
    [{ wait: 301, resume: "yes" }, ["wait", "resume"]],
    [{ wait: "5", task_types: "code" }, ["wait", "task_types"]],
    [{ task_types: [] }, ["task_types"]],
    [{ task_types: ["", 1, "x".repeat(101)] }, ["task_types.0", "task_types.1", "task_types.2"]],
    [{ task_types: Array.from({ length: 65 }, String) }, ["task_types"]],
  ];
  once.test("wrong types are 400", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    for (const [fields, paths] of BAD) await badFields(ask(hub, "n1", fields), paths);
    await badFields(hub.post("/task/next", {}), ["node_id"]);
    await ok(ask(hub, "n1", { wait: null, task_types: null, resume: null }));
    await ok(
      ask(hub, "n1", { wait: 0, task_types: Array.from({ length: 64 }, (_, i) => "x".repeat(100 - i)) }),
    );
    await refused(hub.get("/task/next"), 405, "method_not_allowed");
  });
});

/** What wakes the blocked worker w; `held` is a task of another node, and the answer the id of the task that w gets. */
type Cause = (hub: TestHub, held: string) => Promise<string | void>;

const CAUSES: Readonly<Record<string, readonly [held: Fields, cause: Cause]>> = {
  "a new task": [{}, (hub) => addTask(hub)],
  "a release": [{}, async (hub, held) => void (await ok(say(hub, "release", held, { node_id: "other" })))],
  "a revocation": [{}, async (hub, held) => void (await ok(hub.admin("/task/revoke", { task_id: held })))],
  "a revocation in its favour": [
    { task_type: "x" },
    async (hub, held) => void (await ok(hub.admin("/task/revoke", { task_id: held, node_id: "w" }))),
  ],
  "a retry": [
    {},
    async (hub, held) => {
      await ok(say(hub, "cancel", held));
      await ok(say(hub, "retry", held));
    },
  ],
  "the end of a backoff": [
    {},
    async (hub, held) => {
      await ok(say(hub, "fail", held, { node_id: "other", error: "e" }));
      hub.clock.pass(6 * SECOND_MS);
      await hub.sweep();
    },
  ],
  "a timeout": [
    { timeout_s: 5, backoff_s: 0 },
    async (hub) => {
      hub.clock.pass(6 * SECOND_MS);
      await hub.sweep();
    },
  ],
  "a node that goes offline": [
    {},
    async (hub) => {
      for (let i = 0; i < 2; i++) {
        hub.clock.pass(95 * SECOND_MS);
        await hub.sweep();
      }
    },
  ],
  "a node that leaves": [{}, async (hub) => void (await ok(hub.post("/node/leave", { node_id: "other" })))],
  "a node that is deleted": [
    {},
    async (hub) => void (await ok(hub.admin("/node/delete", { node_id: "other" }))),
  ],
  "a task whose time has come": [
    {},
    async (hub) => {
      const taskId = await addTask(hub, { delay_s: 5 });
      hub.clock.pass(6 * SECOND_MS);
      await hub.sweep();
      return taskId;
    },
  ],
  "a task whose dependency is completed": [
    {},
    async (hub, held) => {
      const taskId = await addTask(hub, { depends_on: [held] });
      await ok(complete(hub, held, "other"));
      return taskId;
    },
  ],
  "an assignment": [
    {},
    async (hub) => {
      const taskId = await addTask(hub, { task_type: "x" });
      await ok(say(hub, "assign", taskId, { node_id: "w" }));
      return taskId;
    },
  ],
  "the balancer": [{}, (hub) => addTask(hub, { task_type: "y" }, "B")],
  "a capability that it gets": [
    {},
    async (hub) => {
      const taskId = await addTask(hub, { task_type: "x" });
      await addNode(hub, "w", { capabilities: ["x", "y"] });
      return taskId;
    },
  ],
};

once.test.each(Object.keys(CAUSES))("a blocked worker is woken by %s", async (name) => {
  await using hub = await startHub();
  await addNode(hub, "w", { capabilities: ["y"] });
  await addNode(hub, "other", { auto_assign: false });
  const [fields = {}, cause] = CAUSES[name] ?? [];
  const held = await addTask(hub, fields);
  await ok(say(hub, "claim", held, { node_id: "other" }));
  const { answer, isOver } = await blocked(hub, "w", { wait: 300 });
  expect(isOver()).toBe(false);
  const taskId = (await cause?.(hub, held)) ?? held;
  expect(await taken(answer)).toBe(taskId);
});

describe("blocked workers", () => {
  test("are served in order of arrival, each with a task that it takes", async () => {
    await using hub = await startHub();
    await addNode(hub, "painter", { capabilities: "paint" });
    await addNodes(hub, ["n1", "n2", "n3"]);
    const painter = await blocked(hub, "painter");
    const others = [await blocked(hub, "n1"), await blocked(hub, "n2"), await blocked(hub, "n3")];
    for (const { answer } of others) {
      const taskId = await addTask(hub, { task_type: "code" });
      expect(await taken(answer)).toBe(taskId);
    }
    expect(painter.isOver()).toBe(false);
    const again = await blocked(hub, "n1");
    const taskId = await addTask(hub, { task_type: "paint" });
    expect(await taken(painter.answer)).toBe(taskId);
    expect(again.isOver()).toBe(false);
    expect(await addTask(hub)).toBe((await taken(again.answer)) ?? "");
  });

  once.test("several calls of one node get a task each", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const calls = [await blocked(hub, "n1"), await blocked(hub, "n1"), await blocked(hub, "n1")];
    const gift = await addTask(hub, { task_type: "x", delay_s: 0 });
    expect(await taken(calls[0]?.answer ?? ask(hub, "n1"))).toBe(gift);
    const more = await Promise.all([addTask(hub), addTask(hub)]);
    const got = await Promise.all(calls.slice(1).map(({ answer }) => taken(answer)));
    expect(got.toSorted()).toEqual(more.toSorted());
  });

  once.test("a node at its max_tasks waits for room, but for gifts", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { max_tasks: 1 });
    await addNode(hub, "n2");
    const first = await addTask(hub);
    expect(await taken(ask(hub, "n1"))).toBe(first);
    const open = await addTask(hub);
    expect(await taken(ask(hub, "n1"))).toBeNull();
    const calls = [await blocked(hub, "n1"), await blocked(hub, "n1")];
    const gift = await addTask(hub, { task_type: "x" });
    await ok(say(hub, "assign", gift, { node_id: "n1" }));
    expect(await taken(calls[0]?.answer ?? ask(hub, "n1"))).toBe(gift);
    await ok(say(hub, "fail", gift, { node_id: "n1", error: "e", retry: false }));
    expect(calls[1]?.isOver()).toBe(false);
    await ok(complete(hub, first, "n1"));
    expect(await taken(calls[1]?.answer ?? ask(hub, "n1"))).toBe(open);
    // More room by a new registration.
    const more = await blocked(hub, "n1");
    const next = await addTask(hub);
    await addNode(hub, "n1", { max_tasks: 2 });
    expect(await taken(more.answer)).toBe(next);
    // Room for two wakes two, one after the other.
    const full = [await blocked(hub, "n1"), await blocked(hub, "n1"), await blocked(hub, "n1")];
    const open2 = await Promise.all([addTask(hub), addTask(hub), addTask(hub)]);
    await ok(complete(hub, open, "n1"));
    await ok(complete(hub, next, "n1"));
    await until("two are served", async () => full.filter(({ isOver }) => isOver()).length === 2);
    expect(await nodeOf(hub, "n1")).toMatchObject({ tasks_assigned: 2 });
    await ok(hub.post("/node/leave", { node_id: "n1" }));
    const got = await Promise.all(full.map(({ answer }) => taken(answer)));
    expect(got.filter((taskId) => taskId !== null && !open2.includes(taskId))).toEqual([]);
    expect(new Set(got).size).toBe(3);
  });

  test("a draining node gets its gifts and then answers at once", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const gift = await addTaskOf(hub, "n1");
    await ok(hub.post("/node/drain", { node_id: "n1", drain: true }));
    await addTask(hub, { priority: 2 });
    const first = await ok(ask(hub, "n1", { wait: 300 }));
    expect(first).toMatchObject({ task: { task_id: gift }, drain: true });
    const none = { success: true, task: null, lease: null, drain: true };
    expect(await ok(ask(hub, "n1", { wait: 300 }))).toEqual(none);
    expect(await ok(ask(hub, "n1", { resume: true }))).toMatchObject({
      task: { task_id: gift },
      drain: true,
    });
    await ok(ask(hub, "n2"));
    const { answer } = await blocked(hub, "n2");
    await ok(hub.post("/node/drain", { node_id: "n2", drain: true }));
    expect(await ok(answer)).toEqual(none);
    await ok(hub.post("/node/drain", { node_id: "n2", drain: false }));
    expect(await ok(ask(hub, "n2"))).toMatchObject({ drain: false });
  });

  once.test("of a node that leaves are answered null, of one that is deleted 404", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2", "n3"]);
    const left = [await blocked(hub, "n1"), await blocked(hub, "n1")];
    await ok(hub.post("/node/leave", { node_id: "n1" }));
    for (const { answer } of left) expect(await taken(answer)).toBeNull();
    expect(await nodeOf(hub, "n1")).toMatchObject({ status: "offline" });
    const { answer } = await blocked(hub, "n2");
    await ok(hub.admin("/node/delete", { node_id: "n2" }));
    await refused(answer, 404, "node_not_found");
    await addTask(hub);
    expect(await nodeOf(hub, "n1")).toMatchObject({ status: "offline", tasks_assigned: 0 });
  });

  once.test("are answered 401 and take nothing when their key is revoked", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const robot = await addKey(hub, "robot", "--node", "n1");
    await refused(ask(hub, "n2", {}, as(robot)), 403, "key_bound_to_other_node");
    const { answer } = await blocked(hub, "n1", {}, as(robot));
    const { answer: repeatable } = await blocked(
      hub,
      "n1",
      {},
      as(robot, { headers: { "Idempotency-Key": "k" } }),
    );
    const other = await blocked(hub, "n2");
    await runKeys(hub, "revoke", "robot");
    for (const lost of [answer, repeatable]) await refused(lost, 401, "unauthorized");
    const taskId = await addTask(hub);
    expect(await taken(other.answer)).toBe(taskId);
    expect(await released(hub)).toEqual([]);
  });

  once.test("are answered null when the wait is over, and when the hub stops", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    expect(await taken(ask(hub, "n1", { wait: 0.05 }))).toBeNull();
    const { answer } = await blocked(hub, "n1", { wait: 300 });
    await hub.close();
    expect(await taken(answer)).toBeNull();
  });
});

describe("task/next as a heartbeat", () => {
  once.test.each(VARIANTS)("a node of %s stays online as long as its call waits", async (variant) => {
    await using hub = await startHub();
    await addNode(hub, "w", { capabilities: "none" }, variant);
    await addNode(hub, "silent", { capabilities: "none" }, variant);
    const { answer } = await blocked(hub, "w", { wait: 300 });
    for (let seconds = 0; seconds < 240; seconds += 20) {
      hub.clock.pass(20 * SECOND_MS);
      await hub.sweep();
    }
    expect(await nodeOf(hub, "silent")).toMatchObject({ status: "offline" });
    const { status, last_heartbeat } = await nodeOf(hub, "w");
    expect(status).toBe("online");
    expect(hub.clock.now() - Date.parse(String(last_heartbeat))).toBeLessThan(45 * SECOND_MS);
    const taskId = await addTask(hub);
    expect(await taken(answer)).toBe(taskId);
  });

  test("puts an offline node online, which gets tasks from the balancer", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", {}, "B");
    await ok(hub.post("/node/leave", { node_id: "n1" }));
    const taskId = await addTask(hub, {}, "B");
    expect(await taken(ask(hub, "n1"))).toBe(taskId);
    expect(await nodeOf(hub, "n1")).toMatchObject({ status: "online", tasks_assigned: 1 });
    expect(await eventKinds(hub)).toContain("node.left");
  });

  once.test("a call counts whether it gets a task or not", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    for (const asked of [{}, { task_types: ["none"] }]) {
      hub.clock.pass(MINUTE_MS);
      await addTask(hub);
      await ok(ask(hub, "n1", asked));
      const { last_heartbeat } = await nodeOf(hub, "n1");
      expect(hub.clock.now() - Date.parse(String(last_heartbeat))).toBeLessThan(MINUTE_MS);
    }
  });
});

describe("a caller that hangs up", () => {
  const begin = (hub: TestHub, nodeId: string, headers: readonly string[] = []) =>
    hold(hub.port(), rawPost("/task/next", { node_id: nodeId, wait: 120 }, headers));

  /** Hangs the call up at the very moment when its task is handed out: after the commit, before the answer. */
  function hangUpWhenServed(call: { hangUp(): void }): Disposable {
    const { notify } = IdleWorkers.prototype;
    const spy = spyOn(IdleWorkers.prototype, "notify").mockImplementation(function (
      this: IdleWorkers,
      changes,
    ) {
      notify.call(this, changes);
      if (changes.some((change) => change.kind === "task.moved" && change.task.startedAt !== null)) {
        spy.mockRestore();
        call.hangUp();
      }
    });
    return { [Symbol.dispose]: () => spy.mockRestore() };
  }

  once.test("while it waits takes nothing", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const { call } = await waiting(hub, "n1", () => begin(hub, "n1"));
    const second = await blocked(hub, "n2");
    (await call).hangUp();
    const taskId = await addTask(hub);
    expect(await taken(second.answer)).toBe(taskId);
  });

  test("between the commit and the answer: the task is put back, and the next caller gets it", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const { call } = await waiting(hub, "n1", () => begin(hub, "n1"));
    const second = await blocked(hub, "n2");
    using _ = hangUpWhenServed(await call);
    const taskId = await addTask(hub, { max_attempts: 1 });
    const { task, lease } = await ok(second.answer);
    expect(task).toMatchObject({ task_id: taskId, assigned_node: "n2", attempts: 0 });
    expect(lease).toMatchObject({ epoch: 3 });
    expect(await released(hub)).toMatchObject([
      { node_id: "n1", task_id: taskId, data: { reason: "the caller hung up" } },
    ]);
  });

  once.test("a gift stays a gift of its node, and goes to its next call", async () => {
    await using hub = await startHub();
    for (const nodeId of ["n1", "n2"]) await addNode(hub, nodeId, { capabilities: "none" });
    const taskId = await addTask(hub, { task_type: "x" });
    const { call } = await waiting(hub, "n1", () => begin(hub, "n1"));
    const again = await blocked(hub, "n1");
    using _ = hangUpWhenServed(await call);
    await ok(say(hub, "assign", taskId, { node_id: "n1" }));
    expect(await ok(again.answer)).toMatchObject({ task: { task_id: taskId }, lease: { epoch: 3 } });
    expect(await eventKinds(hub, taskId)).toEqual(["task.created", "task.assigned"]);
  });

  test("with an Idempotency-Key it keeps its task, and gets it with the same key", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const key = { "Idempotency-Key": "once" };
    const { call } = await waiting(hub, "n1", () => begin(hub, "n1", ["Idempotency-Key: once"]));
    const second = await blocked(hub, "n2");
    using _ = hangUpWhenServed(await call);
    const taskId = await addTask(hub);
    await until("it is handed out", async () => (await get(hub, taskId))["assigned_node"] === "n1");
    const replayed = await ask(hub, "n1", { wait: 120 }, { headers: key });
    expect(await taken(replayed)).toBe(taskId);
    expect(replayed.headers.get("idempotent-replayed")).toBe("true");
    expect(second.isOver()).toBe(false);
    // None is no answer to keep.
    const other = { headers: { "Idempotency-Key": "other" } };
    expect(await taken(ask(hub, "n1", {}, other))).toBeNull();
    const later = await addTask(hub, { task_type: "late" });
    expect(await taken(second.answer)).toBe(later);
    const last = await addTask(hub);
    expect(await taken(ask(hub, "n1", {}, other))).toBe(last);
  });
});

test("in a batch it sees the requests before it, and must not wait", async () => {
  await using hub = await startHub();
  await addNode(hub, "n1");
  const next = { path: "task/next", body: { node_id: "n2" } };
  const { answers } = await ok(
    hub.post("/batch", {
      requests: [
        { path: "node/register", body: { node_id: "n2", name: "n2", capabilities: "x" } },
        { path: "task/create", body: { title: "t", description: "d", task_type: "x" } },
        next,
        next,
        { path: "task/next", body: { node_id: "n1", wait: 1 } },
        { path: "node/leave", body: { node_id: "n2" } },
        next,
      ],
    }),
  );
  const bodies = list({ answers }, "answers").map(({ body }) => record(body));
  expect(record(bodies[2]?.["task"])).toMatchObject({ task_id: bodies[1]?.["task_id"], assigned_node: "n2" });
  expect([bodies[3]?.["task"], bodies[4]?.["error"]]).toEqual([null, "invalid_request"]);
});

test("in a batch puts an offline node online, which gets tasks from the balancer", async () => {
  await using hub = await startHub();
  await addNode(hub, "n1", { max_tasks: 2 }, "B");
  await ok(hub.post("/node/leave", { node_id: "n1" }));
  const low = await addTask(hub, { priority: "low" }, "B");
  const high = await addTask(hub, { priority: "high" }, "B");
  const open = await addTask(hub, { priority: "high" }, "B");
  const next = { path: "task/next", body: { node_id: "n1" } };
  const { answers } = await ok(hub.post("/batch", { requests: [next, next, next] }));
  const got = list({ answers }, "answers").map(({ body }) => record(body)["task"]);
  expect(got).toMatchObject([{ task_id: high }, { task_id: open }, null]);
  expect(await nodeOf(hub, "n1")).toMatchObject({ status: "online", tasks_assigned: 2 });
  expect(await get(hub, low)).toMatchObject({ assigned_node: null });
  expect((await eventKinds(hub)).slice(-3)).toEqual(["node.online", "task.assigned", "task.assigned"]);
});

once.test(
  "eight workers do their tasks with few more requests for work than tasks, and meet no conflict",
  async () => {
    await using hub = await startHub();
    const [TASKS, MOST] = hub.engine === "sqlite" ? [100, 120] : [60, 72];
    const workers = Array.from({ length: 8 }, (_, i) => `w${i}`);
    await addNodes(hub, workers);
    let requests = 0;
    let done = 0;
    const work = async (nodeId: string): Promise<void> => {
      for (;;) {
        requests++;
        const { task, lease } = await ok(ask(hub, nodeId, { wait: 300 }));
        if (task === null) return;
        const { task_id } = record(task);
        const { epoch } = record(lease);
        await ok(hub.post("/task/complete", { task_id, node_id: nodeId, epoch, result: RESULT }));
        done++;
      }
    };
    const working = workers.map(work);
    for (let i = 0; i < TASKS; i++) await addTask(hub);
    await until("all are done", async () => done === TASKS);
    for (const nodeId of workers) await ok(hub.post("/node/leave", { node_id: nodeId }));
    await Promise.all(working);
    expect(requests).toBeLessThanOrEqual(MOST);
    expect(await ok(hub.get("/task/stats"))).toMatchObject({ by_status: { completed: TASKS } });
  },
);

test("workers that hang up at any moment lose no task, and hold none that they do not know of", async () => {
  await using hub = await startHub();
  const [WORKERS, TASKS] = hub.engine === "sqlite" ? [40, 120] : [20, 40];
  const roll = dice(11);
  const workers = Array.from({ length: WORKERS }, (_, i) => `w${i}`);
  await Promise.all(workers.map((nodeId) => addNode(hub, nodeId, { auto_assign: false })));
  let done = 0;
  const completed = new Set<string>();
  /** Asks until all is done; every third call is given up after a while. Who gave up resumes what it may have got. */
  const work = async (nodeId: string): Promise<void> => {
    for (let mayHold = false; done < TASKS;) {
      const call = await hold(
        hub.port(),
        rawPost("/task/next", { node_id: nodeId, wait: 0.5, resume: mayHold }),
      );
      const givesUp = roll(3) === 0;
      const timer = givesUp ? setTimeout(() => call.hangUp(), roll(60)) : undefined;
      const answer = await call.answered.catch(() => null);
      clearTimeout(timer);
      mayHold = answer === null;
      const task = answer && JSON.parse(answer.text).task;
      if (!task) continue;
      await ok(complete(hub, task.task_id, nodeId));
      expect(completed.has(task.task_id)).toBe(false);
      completed.add(task.task_id);
      done++;
    }
  };
  const working = workers.map(work);
  for (let i = 0; i < TASKS; i++) await Promise.all([addTask(hub), Bun.sleep(roll(6))]);
  await Promise.all(working);
  expect(await ok(hub.get("/task/stats"))).toMatchObject({
    total: TASKS,
    by_status: { open: 0, assigned: 0, completed: TASKS },
  });
  const kinds = list(await ok(hub.get("/events?since=0&kind=task.completed&limit=1000")), "events");
  expect(kinds).toHaveLength(TASKS);
});
