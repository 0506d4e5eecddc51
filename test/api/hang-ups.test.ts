/**
 * Workers that ask for tasks at the same moment, and callers that hang up: no task goes to two, and none is lost.
 */
import { describe, expect, spyOn, test } from "bun:test";
import { HEARTBEAT_FRESH_MS } from "../../src/domain/limits.ts";
import { IdleWorkers } from "../../src/service/idle-workers.ts";
import { dice } from "../support/dice.ts";
import { type Answer, type CallOptions, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { RESULT, hold, list, ok, rawPost, record, until } from "./scene.ts";

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
  const { last_heartbeat: before } = await hub.nodeOf(nodeId);
  const call = begin();
  await until("it waits", async () => (await hub.nodeOf(nodeId))["last_heartbeat"] !== before);
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

test("of simultaneous next and claim no task goes to two", async () => {
  await using hub = await startHub();
  const nodes = Array.from({ length: 10 }, (_, i) => `n${i}`);
  await hub.addNodes(nodes);
  const tasks = await Promise.all(Array.from({ length: 60 }, () => hub.addTask()));
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
    await hub.addNodes(["n1", "n2"]);
    const { call } = await waiting(hub, "n1", () => begin(hub, "n1"));
    const second = await blocked(hub, "n2");
    (await call).hangUp();
    const taskId = await hub.addTask();
    expect(await taken(second.answer)).toBe(taskId);
  });

  test("between the commit and the answer: the task is put back, and the next caller gets it", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    const { call } = await waiting(hub, "n1", () => begin(hub, "n1"));
    const second = await blocked(hub, "n2");
    using _ = hangUpWhenServed(await call);
    const taskId = await hub.addTask({ max_attempts: 1 });
    const { task, lease } = await ok(second.answer);
    expect(task).toMatchObject({ task_id: taskId, assigned_node: "n2", attempts: 0 });
    expect(lease).toMatchObject({ epoch: 3 });
    expect(await released(hub)).toMatchObject([
      { node_id: "n1", task_id: taskId, data: { reason: "the caller hung up" } },
    ]);
  });

  once.test("a gift stays a gift of its node, and goes to its next call", async () => {
    await using hub = await startHub();
    for (const nodeId of ["n1", "n2"]) await hub.addNode(nodeId, { capabilities: "none" });
    const taskId = await hub.addTask({ task_type: "x" });
    const { call } = await waiting(hub, "n1", () => begin(hub, "n1"));
    const again = await blocked(hub, "n1");
    using _ = hangUpWhenServed(await call);
    await ok(say(hub, "assign", taskId, { node_id: "n1" }));
    expect(await ok(again.answer)).toMatchObject({ task: { task_id: taskId }, lease: { epoch: 3 } });
    expect(await hub.eventKinds(taskId)).toEqual(["task.created", "task.assigned"]);
  });

  test("with an Idempotency-Key it keeps its task, and gets it with the same key", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    const key = { "Idempotency-Key": "once" };
    const { call } = await waiting(hub, "n1", () => begin(hub, "n1", ["Idempotency-Key: once"]));
    const second = await blocked(hub, "n2");
    using _ = hangUpWhenServed(await call);
    const taskId = await hub.addTask();
    await until("it is handed out", async () => (await get(hub, taskId))["assigned_node"] === "n1");
    const replayed = await ask(hub, "n1", { wait: 120 }, { headers: key });
    expect(await taken(replayed)).toBe(taskId);
    expect(replayed.headers.get("idempotent-replayed")).toBe("true");
    expect(second.isOver()).toBe(false);
    // None is no answer to keep.
    const other = { headers: { "Idempotency-Key": "other" } };
    expect(await taken(ask(hub, "n1", {}, other))).toBeNull();
    const later = await hub.addTask({ task_type: "late" });
    expect(await taken(second.answer)).toBe(later);
    const last = await hub.addTask();
    expect(await taken(ask(hub, "n1", {}, other))).toBe(last);
  });
});

once.test(
  "eight workers do their tasks with few more requests for work than tasks, and meet no conflict",
  async () => {
    await using hub = await startHub();
    const [TASKS, MOST] = hub.engine === "sqlite" ? [100, 120] : [60, 72];
    const workers = Array.from({ length: 8 }, (_, i) => `w${i}`);
    await hub.addNodes(workers);
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
    for (let i = 0; i < TASKS; i++) await hub.addTask();
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
  await Promise.all(workers.map((nodeId) => hub.addNode(nodeId, { auto_assign: false })));
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
      await ok(hub.complete(task.task_id, nodeId));
      expect(completed.has(task.task_id)).toBe(false);
      completed.add(task.task_id);
      done++;
    }
  };
  const working = workers.map(work);
  for (let i = 0; i < TASKS; i++) await Promise.all([hub.addTask(), Bun.sleep(roll(6))]);
  await Promise.all(working);
  expect(await ok(hub.get("/task/stats"))).toMatchObject({
    total: TASKS,
    by_status: { open: 0, assigned: 0, completed: TASKS },
  });
  const kinds = list(await ok(hub.get("/events?since=0&kind=task.completed&limit=1000")), "events");
  expect(kinds).toHaveLength(TASKS);
});
