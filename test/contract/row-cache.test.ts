/** The row cache of SQLite (store/sqlite/row-cache.ts) holds what the database holds. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import {
  CACHED_LANES_WRITES,
  CACHED_TASKS,
  CACHED_TASKS_CHARS,
  CACHED_TASK_MAX_CHARS,
  CANDIDATES_READ,
} from "../../src/domain/limits.ts";
import { laneOf } from "../../src/domain/lane.ts";
import type { FileRecord } from "../../src/domain/model.ts";
import { heartbeatChange, saved } from "../../src/domain/node.ts";
import { must } from "../../src/lib/assert.ts";
import { candidatesFor } from "../../src/store/sql/balancer.ts";
import * as gateReads from "../../src/store/sql/gate.ts";
import * as laneReads from "../../src/store/sql/lanes.ts";
import { ledgerHead } from "../../src/store/sql/lux.ts";
import * as nodeReads from "../../src/store/sql/nodes.ts";
import * as taskReads from "../../src/store/sql/tasks.ts";
import * as readyReads from "../../src/store/sql/ready-tasks.ts";
import { usageOf } from "../../src/store/sql/usage.ts";
import { type SqliteStore, openSqlite } from "../../src/store/sqlite/engine.ts";
import { RowCache } from "../../src/store/sqlite/row-cache.ts";
import type { Load, Part, Row, Store } from "../../src/store/store.ts";
import { NOW, STEADY, node, tally, task } from "../domain/samples.ts";
import { provideDatabase } from "../support/new-database.ts";
import { checkRows } from "../support/row-cache-check.ts";
import { closing, event, noFault, outcome, prepareStores, sqlitePlace, write } from "./store-engines.ts";

await prepareStores();

describe("store: sqlite: the row cache", () => {
  const kept = { task: taskReads.taskById("t1"), node: nodeReads.nodeById("n1") };
  const readBoth = async (store: Store) => [await store.read(kept.task), await store.read(kept.node)];

  async function openKept(): Promise<{ store: SqliteStore; path: string }> {
    const place = await sqlitePlace();
    await provideDatabase(place.path);
    const store = openSqlite(place.path, noFault);
    closing.push(() => place.remove());
    closing.push(() => store.close());
    return { store, path: place.path };
  }

  /** As an operator with a shell may do. */
  function retitle(path: string): void {
    const db = new Database(path);
    db.run("UPDATE tasks SET title = 'other'");
    db.run("UPDATE nodes SET name = 'other'");
    db.close(true);
  }

  test("the takers of a type are loaded once while they are few", () => {
    const takers = (count: number): readonly Row[] =>
      Array.from({ length: count }, (_, i) => ({
        node_id: `n${i}`,
        capabilities: "",
        resources: null,
        used: null,
        online: 1,
        auto_assign: 1,
        draining: 0,
        max_tasks: null,
        tasks_assigned: 0,
        idle_since: i,
        all_seen: 1,
      }));
    for (const [count, loadsAgain] of [
      [3, false],
      [CANDIDATES_READ, true],
    ] as const) {
      let loads = 0;
      const cache = new RowCache((query) => {
        loads++;
        return query.shape(takers(count));
      });
      for (let i = 0; i < 3 * count; i++) {
        const [best] = cache.load(candidatesFor("x", null)).best;
        expect(best?.nodeId).toBe(`n${i % count}`);
        cache.apply(tally({ nodeId: best?.nodeId ?? "", assigned: 1, idleSince: NOW + i }), 0);
      }
      expect([count, loads > 1]).toEqual([count, loadsAgain]);
    }
  });

  const file: FileRecord = {
    fileId: "f1",
    name: "a",
    sizeBytes: 1,
    sha256: "0",
    contentType: "text/plain",
    metadata: "{}",
    nodeId: null,
    taskId: "t1",
    attached: "output",
    uploadedAt: NOW,
    keptBytes: 0,
  };
  const ENTRY = {
    seq: 1,
    id: "e1",
    from: "treasury",
    to: "node:n1",
    hash: "0",
    nodeId: "n1",
    n: 1,
    amountMicro: 1,
    balanceMicro: 1n,
    kind: "reward",
    taskId: null,
    at: NOW,
  } as const;
  const failure = { kind: "failed", message: "m", nodeId: "n1", at: NOW } as const;
  const changes: readonly Change[] = [
    {
      kind: "task.moved",
      task: task("t1", {
        hasFeatures: true,
        seq: 1,
        timeoutMs: 9,
        status: "assigned",
        assignedNode: "n1",
        epoch: 1,
      }),
    },
    tally({ nodeId: "n1", assigned: 1, idleSince: NOW }),
    heartbeatChange("n1", { now: NOW, steady: STEADY, leaseMs: 5 }),
    { kind: "task.depended", taskId: "t1" },
    { kind: "file.saved", file },
    { kind: "file.attached", fileId: "f1", taskId: "t1" },
    { kind: "file.deleted", fileId: "f1" },
    { kind: "task.broken", taskId: "t1", brokenBy: "t0" },
    { kind: "node.drained", nodeId: "n1", draining: true },
    { kind: "node.offline", nodeId: "n1" },
    { kind: "node.returned", nodeId: "n1" },
    { kind: "node.leases.renewed", variant: "B", leaseUntil: STEADY + 77 },
    {
      kind: "task.moved",
      task: task("t1", {
        hasFeatures: true,
        seq: 1,
        timeoutMs: 9,
        leaseUntil: 9,
        hasDependents: true,
        failure,
      }),
    },
    { kind: "task.leases.renewed", steady: STEADY },
    ...saved(node("n1", { capabilities: ["a", "b"], maxTasks: 3 })),
    { kind: "node.deleted", nodeId: "n1" },
    { kind: "task.deleted", taskId: "t1" },
  ];

  test("a task that a new limit counts still counts after its next move", async () => {
    const { store } = await openKept();
    const running = task("t1", { seq: 1, taskType: "k", status: "assigned", assignedNode: "n1", epoch: 1 });
    await write(store, { kind: "task.created", task: running }, ...saved(node("n1")));
    await store.read(taskReads.taskById("t1"));
    const limit = { key: "k", running: 1, perMinute: null, hold: null };
    await write(store, { kind: "limit.saved", limit }, { kind: "tasks.counted", key: "k" });
    const counted = must(await store.read(taskReads.taskById("t1")), "it is there");
    await write(store, { kind: "task.moved", task: { ...counted, progress: "half" } });
    expect((await store.read(gateReads.gateOn(NOW))).limits).toMatchObject([{ key: "k", inUse: 1 }]);
  });

  test("forgets special lanes that are empty again, and none that has a ready task", async () => {
    const { store } = await openKept();
    const lanes = laneReads.readyLanes();
    expect((await store.read(lanes)).size).toBe(0);
    const inLane = (taskId: string, limitKey: string) => {
      const one = task(taskId, { status: "open", limitKey });
      return { ...one, lane: laneOf(one, false) };
    };
    const left = inLane("left", "kept");
    await write(store, { kind: "task.created", task: left });
    for (let i = 0; i < 5 * CACHED_LANES_WRITES; i++) {
      const one = inLane(`t${i}`, `key ${i}`);
      await write(store, { kind: "task.created", task: one });
      expect((await store.read(lanes)).has(one.lane)).toBe(true);
      const stored = must(await store.read(taskReads.taskById(one.taskId)), "it is there");
      await write(store, { kind: "task.moved", task: { ...stored, status: "assigned", assignedNode: "n1" } });
    }
    const known = await store.read(lanes);
    expect(known.has(left.lane)).toBe(true);
    expect(known.size).toBeLessThanOrEqual(2 * CACHED_LANES_WRITES);
  });

  test("holds what the database holds after each change of a task or a node, alone or with others in its group", async () => {
    for (const together of [false, true]) {
      const { store } = await openKept();
      const created: Change = { kind: "task.created", task: task("t1", { timeoutMs: 9, hasFeatures: true }) };
      const both = [created, ...saved(node("n1"))];
      await write(store, ...both);
      await checkRows(store, both); // so that all results are cached, also that the node has no gift
      for (const change of changes) {
        const before = await readBoth(store);
        const also = together ? [write(store, event("other")), write(store, tally({ nodeId: "n1" }))] : [];
        await Promise.all([write(store, change), ...also]);
        await checkRows(store, [change]);
        const after = await readBoth(store);
        const isNoted = change.kind !== "file.deleted" && change.kind !== "task.broken";
        if (isNoted) expect(after).not.toEqual(before); // file.deleted takes back what file.saved did; no rule reads the other
      }
    }
  });

  test("answers without the database, until another process has written to it", async () => {
    const { store, path } = await openKept();
    await write(store, { kind: "task.created", task: task("t1") }, ...saved(node("n1")));
    const before = await readBoth(store);
    retitle(path);
    expect(await readBoth(store)).toEqual(before);
    const [task1, node1] = await store.transact(kept, (rows) => accept([rows.task, rows.node] as const));
    expect([task1?.title, node1?.name]).toEqual(["other", "other"]);
  });

  test("keeps nothing of a transaction that is rolled back", async () => {
    const { store } = await openKept();
    await write(store, { kind: "task.created", task: task("t1") }, ...saved(node("n1")));
    const before = await readBoth(store);
    const moved: Change = { kind: "task.moved", task: task("t1", { seq: 1, title: "never", attempts: 3 }) };
    const twice: Change = { kind: "task.created", task: task("t1") };
    const refused = outcome(write(store, moved, tally({ nodeId: "n1", completed: 1 }), twice));
    expect(await refused).toBeInstanceOf(Error);
    expect(await readBoth(store)).toEqual(before);
  });

  test("keeps nothing of a transaction that is rolled back: every other kind of cached result", async () => {
    const { store } = await openKept();
    await write(store, { kind: "task.created", task: task("t1") }, ...saved(node("n1")));
    const queries: Load = {
      usage: usageOf("n1"),
      gate: gateReads.gateOn(NOW),
      lanes: laneReads.readyLanes(),
      takers: candidatesFor("x", null),
      ledger: ledgerHead(),
      backlog: readyReads.bestReady(null),
    };
    const readAll = (): Promise<readonly unknown[]> =>
      Promise.all(Object.values(queries).map((query) => store.read(query)));
    const before = await readAll();
    const written: readonly Change[] = [
      { kind: "usage.tallied", nodeId: "n1", tasks: 3, bytes: 5 },
      { kind: "pause.saved", pause: { scope: "hub", value: "", reason: null, at: NOW } },
      { kind: "task.created", task: task("t3") },
      { kind: "task.created", task: task("t2", { lane: " lane", limitKey: "k" }) },
      { kind: "lux.entered", entry: ENTRY },
      tally({ nodeId: "n1", assigned: 1, idleSince: NOW + 9 }),
    ];
    let within: readonly unknown[] = [];
    const parts: readonly Part[] = [
      { load: () => ({}), decide: () => accept(null, written) },
      {
        load: () => queries,
        decide: (rows) => {
          within = Object.values(rows);
          return accept(null);
        },
      },
    ];
    const twice: Change = { kind: "task.created", task: task("t1") };
    expect(await outcome(store.transact({}, () => accept(null, [twice]), parts))).toBeInstanceOf(Error);
    for (const [i, one] of before.entries()) expect(within[i]).not.toEqual(one); // so each was cached anew
    expect(await readAll()).toEqual(before);
  });

  test("keeps no node as one without a gift after a rollback", async () => {
    const { store } = await openKept();
    const given = task("t1", { status: "assigned", assignedNode: "n1", epoch: 1 });
    await write(store, { kind: "task.created", task: given }, ...saved(node("n1")));
    const gift = taskReads.bestGift("n1");
    const stored = must(await store.read(gift), "the node has a gift");
    const parts: readonly Part[] = [
      {
        load: () => ({}),
        decide: () => accept(null, [{ kind: "task.moved", task: { ...stored, startedAt: NOW } }]),
      },
      { load: () => ({ gift }), decide: () => accept(null) },
    ];
    const twice: Change = { kind: "task.created", task: task("t1") };
    expect(await outcome(store.transact({}, () => accept(null, [twice]), parts))).toBeInstanceOf(Error);
    expect(await store.read(gift)).toEqual(stored);
  });

  test("keeps no finished task, and none with long texts", async () => {
    const { store, path } = await openKept();
    const patches = {
      t1: {},
      t2: { description: "x".repeat(CACHED_TASK_MAX_CHARS + 1) },
      t3: { status: "completed" },
    } as const;
    for (const [id, patch] of Object.entries(patches))
      await write(store, { kind: "task.created", task: task(id, patch) });
    retitle(path);
    const titles = ["t1", "t2", "t3"].map(async (id) => (await store.read(taskReads.taskById(id)))?.title);
    expect(await Promise.all(titles)).toEqual([task("t1").title, "other", "other"]);
  });

  test.each([
    ["by number", CACHED_TASKS, {}],
    [
      "by length",
      Math.floor(CACHED_TASKS_CHARS / CACHED_TASK_MAX_CHARS),
      { description: "x".repeat(CACHED_TASK_MAX_CHARS) },
    ],
  ])("is bounded %s", async (_, most, patch) => {
    const { store, path } = await openKept();
    const ids = Array.from({ length: 3 * most }, (_id, i) => `t${i}`);
    await write(store, ...ids.map((id): Change => ({ kind: "task.created", task: task(id, patch) })));
    retitle(path);
    const titles: unknown[] = [];
    for (const id of ids.toReversed()) titles.push((await store.read(taskReads.taskById(id)))?.title);
    const keptCount = titles.indexOf("other");
    expect(keptCount).toBeWithin(most, 2 * most + 2);
    expect(new Set(titles.slice(keptCount))).toEqual(new Set(["other"]));
  });
});
