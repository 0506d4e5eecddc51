/** The chores over a real store: the effect of one sweep. */
import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDiskBlobs } from "../../src/blobs/disk.ts";
import type { Change } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import { STUCK_AFTER_DEFAULT_MS } from "../../src/domain/limits.ts";
import type { Task } from "../../src/domain/model.ts";
import { saved } from "../../src/domain/node.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { openLog } from "../../src/lib/log.ts";
import { EmbeddedMail } from "../../src/mail/embedded.ts";
import { choresOf } from "../../src/service/periodic-work.ts";
import { type Chore, Scheduler } from "../../src/service/scheduler.ts";
import { Feed } from "../../src/service/feed.ts";
import { FileService } from "../../src/service/files.ts";
import { Takes } from "../../src/service/blocked-calls.ts";
import { IdleWorkers } from "../../src/service/idle-workers.ts";
import { History } from "../../src/service/history.ts";
import { Minutes } from "../../src/service/minutes.ts";
import { NextService } from "../../src/service/next.ts";
import { LeaseService } from "../../src/service/leases.ts";
import { firstDeadline } from "../../src/store/sql/leases.ts";
import { MessageService } from "../../src/service/messages.ts";
import { NodeService } from "../../src/service/nodes.ts";
import { Retention } from "../../src/service/retention.ts";
import { StuckTasks } from "../../src/service/stuck-tasks.ts";
import { ScheduleService } from "../../src/service/schedules.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { historySizes, messageById, waitingPart } from "../../src/store/sql/messages.ts";
import { eventsAfter } from "../../src/store/sql/events.ts";
import { nodeById } from "../../src/store/sql/nodes.ts";
import { questionOf } from "../../src/store/sql/questions.ts";
import { taskById } from "../../src/store/sql/tasks.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Query } from "../../src/store/store.ts";
import { message, node, question, tally, task } from "../domain/samples.ts";
import { TestClock } from "../support/hub.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function openScene({ requeueOffline = true, retainMs = DAY_MS, clock = systemClock() } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-chores-"));
  closing.push(() => rm(folder, { recursive: true }));
  const store = openSqlite(join(folder, "db"), (error) => {
    throw error;
  });
  closing.push(() => store.close());
  const blobs = await openDiskBlobs(folder);
  closing.push(() => blobs.close());
  const tasks = new TaskService(store, clock, newId);
  const nodes = new NodeService(store, clock, tasks);
  const takes = new Takes(store, clock);
  const minutes = new Minutes(store, clock, "h1");
  const parts = {
    store,
    blobs,
    clock,
    log: openLog(
      { format: "json", level: "debug" },
      () => clock.now(),
      () => undefined,
    ),
    tasks,
    nodes,
    next: new NextService(store, clock, nodes, tasks, new IdleWorkers(store, tasks.knownLanes), takes),
    takes,
    files: new FileService(store, clock, await openDiskBlobs(folder), () => false),
    leases: new LeaseService(store, clock),
    messages: new MessageService(
      store,
      new EmbeddedMail(store),
      clock,
      newId,
      new Feed(store, clock).receivers,
      takes,
    ),
    minutes,
    history: new History(store, clock, minutes),
    schedules: new ScheduleService(
      store,
      clock,
      newId,
      { charging: () => null },
      { limiting: () => null },
      { isRevoked: () => false },
    ),
    retention: new Retention(
      store,
      { removeBytes: async () => {} },
      { tasksMs: null, filesMs: null, usageMs: null },
    ),
    noteStart: async () => undefined,
    compareSecrets: null,
    requeueOffline,
    retainMs,
    retainNodesMs: null,
    stuck: new StuckTasks(store, clock, STUCK_AFTER_DEFAULT_MS),
    maxAnswersBytes: 2 ** 30,
  };
  const chores = choresOf(parts);
  return {
    store,
    clock,
    chores,
    log: parts.log,
    write: (...changes: readonly Change[]) => store.transact({}, () => accept(null, changes)),
    run: async (name: string, lateMs = 0) => {
      const chore = chores.find((one) => one.name === name);
      if (!chore) throw new Error(`no chore ${name}`);
      await chore.run(new AbortController().signal, () => lateMs);
    },
  };
}

/** A task in the hands of a node, with the totals that go with it. */
function held(taskId: string, nodeId: string, patch: Partial<Task> = {}): readonly Change[] {
  return [
    { kind: "task.created", task: task(taskId, { status: "assigned", assignedNode: nodeId, ...patch }) },
    { kind: "tasks.tallied", open: 0, assigned: 1, completed: 0, failed: 0 },
    tally({ nodeId, assigned: 1 }),
  ];
}

describe("leases", () => {
  test("are deleted after their deadline, and looked for only when one may have ended", async () => {
    const clock = new TestClock();
    const { store, write, run } = await openScene({ clock });
    const lease = { name: "a", nodeId: "n1", taskId: null, shared: false, fencing: 1, ttlMs: 10_000 };
    const leaseUntil = clock.steady() + lease.ttlMs;
    const other = { ...lease, name: "b", leaseUntil: leaseUntil + 60_000, acquiredAt: 1 };
    await write({ kind: "lease.saved", lease: { ...lease, leaseUntil, acquiredAt: 1 } });
    await write({ kind: "lease.saved", lease: other });
    await run("leases");
    expect(await store.read(firstDeadline())).toBe(leaseUntil);
    clock.pass(11_000);
    await run("leases");
    expect(await store.read(firstDeadline())).toBe(other.leaseUntil);
  });
});

describe("starvation", () => {
  /** Work without end: in steps; in steps, beyond its budget; and in a step that does not end. */
  const GREEDY: Readonly<Record<string, (over: AbortSignal) => Chore["run"]>> = {
    "always finds more to do": () => async (signal) => {
      while (!signal.aborted) await nextTick();
      return "cut short";
    },
    "ignores its budget": (over) => async () => {
      while (!over.aborted) await nextTick();
    },
    "never ends its step": (over) => () =>
      new Promise((resolve) => over.addEventListener("abort", () => resolve())),
  };
  const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  for (const [how, greedy] of Object.entries(GREEDY))
    test(`each chore ${how}: all others run again and again`, async () => {
      const { clock, log, chores } = await openScene();
      const leadership = { isLeader: async () => true };
      const times = { pauseMs: 1, budgetMs: 2, overrunMs: 2 };
      for (const { name } of chores) {
        const over = new AbortController();
        const counts = new Map<string, number>();
        const counted = chores.map((chore): Chore => {
          if (chore.name === name) return { ...chore, everyMs: 0, run: greedy(over.signal) };
          const run: Chore["run"] = async (...given) => {
            counts.set(chore.name, (counts.get(chore.name) ?? 0) + 1);
            return chore.run(...given);
          };
          return { ...chore, everyMs: 0, run };
        });
        const scheduler = new Scheduler({ clock, log, leadership, chores: counted, ...times });
        scheduler.start();
        while (counts.size < chores.length - 1 || Math.min(...counts.values()) < 3) await nextTick();
        over.abort();
        await scheduler.stop();
      }
    });
});

describe("nodes", () => {
  const ever = { leaseUntil: Number.MAX_SAFE_INTEGER };

  test("requeues the tasks of an offline node, though no lease ends in this sweep", async () => {
    const { store, write, run } = await openScene();
    await write(
      ...["gone", "here"].flatMap((id) => saved(node(id, ever))),
      ...held("t1", "gone"),
      ...held("t2", "here"),
      { kind: "node.offline", nodeId: "gone" },
    );
    await run("nodes");
    expect(await store.read(taskById("t1"))).toMatchObject({
      status: "open",
      assignedNode: null,
      attempts: 1,
    });
    expect(await store.read(taskById("t2"))).toMatchObject({ status: "assigned", assignedNode: "here" });
    expect(await store.read(nodeById("gone"))).toMatchObject({ online: false, tasksAssigned: 0 });
    const kinds = (await store.read(eventsAfter(0, [], 10))).map((event) => `${event.kind} ${event.nodeId}`);
    expect(kinds).toEqual(["task.requeued gone"]);
    await run("nodes");
    expect(await store.read(eventsAfter(0, [], 10))).toHaveLength(1);
  });

  test("assigns the balanced ones among them to an online node in the same sweep", async () => {
    const { store, write, run } = await openScene();
    await write(
      ...["gone", "here"].flatMap((id) => saved(node(id, ever))),
      ...held("t1", "gone", { balanced: true }),
      { kind: "node.offline", nodeId: "gone" },
    );
    await run("nodes");
    await run("balance");
    expect(await store.read(taskById("t1"))).toMatchObject({ status: "assigned", assignedNode: "here" });
  });

  test("more tasks than one step takes", async () => {
    const { store, write, run } = await openScene();
    const ids = Array.from({ length: 1_100 }, (_, i) => `t${i}`);
    await write(...saved(node("gone", ever)), ...ids.flatMap((id) => held(id, "gone")), {
      kind: "node.offline",
      nodeId: "gone",
    });
    await run("nodes");
    expect(await store.read(nodeById("gone"))).toMatchObject({ tasksAssigned: 0 });
  });

  test("puts nodes offline, and leaves their tasks assigned when the hub is configured so", async () => {
    const { store, clock, write, run } = await openScene({ requeueOffline: false });
    await write(
      ...saved(node("late", { leaseUntil: clock.steady() - 1 })),
      ...saved(node("here", ever)),
      ...held("t1", "late"),
    );
    await run("nodes");
    await run("nodes");
    expect(await store.read(nodeById("late"))).toMatchObject({ online: false, tasksAssigned: 1 });
    expect(await store.read(nodeById("here"))).toMatchObject({ online: true });
    expect(await store.read(taskById("t1"))).toMatchObject({ status: "assigned", assignedNode: "late" });
  });
});

const rows = (table: string): Query<number> => ({
  sql: `SELECT count(*) AS n FROM ${table}`,
  params: [],
  shape: ([row]) => Number(row?.["n"]),
  reads: [table],
});

/** An answer that has been stored since `storedAt`. */
const answered = (storedAt: number): Change => ({
  kind: "answer.stored",
  answer: { scope: "s", asked: "h", status: 200, body: "{}", storedAt },
});

describe("the clock", () => {
  const ended = (clock: TestClock): readonly Change[] =>
    saved(node("n1", { leaseUntil: clock.steady() - 1 }));

  test("jumps after the check: the same sweep prunes by the time before the jump", async () => {
    const clock = new TestClock();
    const { store, write, run } = await openScene({ clock });
    const at = clock.now() - HOUR_MS;
    const sent: Change = { kind: "message.stored", message: message("m1", { toNode: "n1", sentAt: at }) };
    await write(answered(at), sent);
    await run("clock");
    clock.jump(30 * DAY_MS);
    await run("prune");
    const left = async () => [await store.read(rows("answers")), await store.read(rows("messages"))];
    expect(await left()).toEqual([1, 1]);
    await run("clock");
    await run("prune");
    expect(await left()).toEqual([1, 1]);
    clock.pass(DAY_MS - HOUR_MS + MINUTE_MS);
    await run("prune");
    expect((await left())[0]).toBe(0);
  });

  test("jumps and the write fails: the jump is noticed again, and answers are shifted once", async () => {
    const clock = new TestClock();
    const { store, write, run } = await openScene({ clock });
    await write(answered(clock.now()), ...ended(clock));
    clock.jump(HOUR_MS);
    const transact = spyOn(store, "transact").mockRejectedValueOnce(new Error("full"));
    await expect(run("clock")).rejects.toThrow("full");
    transact.mockRestore();
    await run("clock");
    await run("clock");
    await run("nodes");
    expect(await store.read(nodeById("n1"))).toMatchObject({ online: true });
    clock.pass(DAY_MS - MINUTE_MS);
    await run("prune");
    expect(await store.read(rows("answers"))).toBe(1);
    clock.pass(2 * MINUTE_MS);
    await run("prune");
    expect(await store.read(rows("answers"))).toBe(0);
  });

  test("jumps ahead while another hub leads, and again when this one leads: answers are kept", async () => {
    const clock = new TestClock();
    const { store, chores, write, run } = await openScene({ clock });
    const follow = async (): Promise<void> => {
      for (const { name, onEveryHub } of chores) if (onEveryHub && name === "jumps") await run(name);
    };
    clock.jump(2 * HOUR_MS);
    await follow();
    await write(answered(clock.now()));
    clock.jump(25 * HOUR_MS);
    await follow();
    await run("clock");
    await run("prune");
    expect(await store.read(rows("answers"))).toBe(1);
  });

  test("is set back: a backoff and a question begin again", async () => {
    const clock = new TestClock();
    const { store, write, run } = await openScene({ clock });
    const now = clock.now();
    const waits = task("t1", { scheduled: true, attempts: 1, updatedAt: now, notBefore: now + 3_000 });
    const asked = question("q1", { askedAt: now, until: now + 8_000 });
    await write({ kind: "task.created", task: waits }, { kind: "question.asked", question: asked });
    clock.jump(-HOUR_MS);
    await run("clock");
    const after = await store.read(taskById("t1"));
    expect([after?.notBefore, after?.updatedAt].map((at) => (at ?? NaN) <= clock.now() + 3_000)).toEqual([
      true,
      true,
    ]);
    clock.pass(8_000);
    await run("tasks");
    expect(await store.read(taskById("t1"))).toMatchObject({ scheduled: false });
    expect(await store.read(questionOf("t1", "q1"))).toMatchObject({ state: "timed_out" });
  });

  test.each(["nodes", "messages"])(
    "stands still after it was checked: %s in the same sweep renews all leases",
    async (chore) => {
      const clock = new TestClock();
      const { store, write, run } = await openScene({ clock });
      await write(...ended(clock));
      await run("clock");
      await run(chore, HOUR_MS);
      await run("nodes");
      expect(await store.read(nodeById("n1"))).toMatchObject({ online: true });
    },
  );
});

describe("prune", () => {
  test("deletes old messages and broadcasts with all their deliveries, and no recent ones", async () => {
    const { store, clock, write, run } = await openScene();
    const stored = (id: string, toNode: string | null, sentAt: number): readonly Change[] => [
      { kind: "message.stored", message: message(id, { toNode, sentAt }) },
      toNode === null
        ? { kind: "deliveries.queued", messageId: id, toNodes: ["a", "b", "c"] }
        : { kind: "delivery.queued", messageId: id, toNode },
    ];
    const old = clock.now() - DAY_MS - 60_000;
    const young = clock.now() - DAY_MS + 60_000;
    await write(
      ...Array.from({ length: 700 }, (_, i) => stored(`old ${i}`, i % 2 ? null : "a", old)).flat(),
      ...stored("young", "a", young),
      ...stored("young to all", null, young),
    );
    expect(await store.read(rows("deliveries"))).toBe(350 + 3 * 350 + 1 + 3);
    await run("prune");
    expect(await store.read(rows("messages"))).toBe(2);
    expect(await store.read(rows("deliveries"))).toBe(4);
    expect(await store.read(messageById("young"))).not.toBeNull();
    expect(await store.read(waitingPart("a", 0))).toMatchObject({ count: 2 });
    expect(await store.read(historySizes("b", null, 10))).toHaveLength(1);
  });

  test("deletes old events, but never the newest", async () => {
    const { store, clock, write, run } = await openScene();
    const at = clock.now() - DAY_MS - 1_000;
    const event = { kind: "hub.started", at, nodeId: null, taskId: null, data: {} } as const;
    await write(...Array.from({ length: 1_200 }, (): Change => ({ kind: "event.logged", event })));
    await run("prune");
    expect((await store.read(eventsAfter(0, [], 10))).map(({ id }) => id)).toEqual([1_200]);
  });
});
