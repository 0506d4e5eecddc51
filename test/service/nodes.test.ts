/**
 * When leases are read: never while none can have expired, and in time for one that began meanwhile. The count of
 * messages in a heartbeat's answer. The number of nodes of a list that are in memory at once, and that one step of a
 * search reads.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Change } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import { LIST_SCANNED_MAX, NODES_SEARCH_STEP, WAITING_PART_MAX } from "../../src/domain/limits.ts";
import { MINUTE_MS, SECOND_MS } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { NodeLists, type NodeQuery } from "../../src/service/node-lists.ts";
import { NodeService } from "../../src/service/nodes.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { nodePart } from "../../src/store/sql/nodes.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Query, Transact } from "../../src/store/store.ts";
import { VARIANT_A as A } from "../../src/variant/a.ts";
import { VARIANT_B as B } from "../../src/variant/b.ts";
import type { Variant } from "../../src/variant/variant.ts";
import { message, node } from "../domain/samples.ts";
import { newDataDir } from "../support/hub.ts";
import { standIn } from "../support/stand-in.ts";

function openScene() {
  const sqlite = openSqlite(":memory:", (error) => {
    throw error;
  });
  let looks = 0;
  const transact: Transact = (load: object, decide: unknown) => {
    looks++;
    return Reflect.apply(sqlite.transact, sqlite, [load, decide]);
  };
  const store = standIn(sqlite, { transact });
  let steady = 5 * MINUTE_MS;
  const clock = {
    now: () => 1_000_000 + steady,
    steady: () => steady,
    machine: () => steady,
    timers: () => steady,
    work: () => 0,
  };
  const nodes = new NodeService(store, clock, new TaskService(store, clock, newId));
  return {
    pass: (ms: number) => void (steady += ms),
    looks: () => looks,
    expire: () => nodes.expireSome(),
    list: () => nodes.list(),
    register: (nodeId: string, { name: variant, offlineAfterMs }: Variant, hubs: readonly string[] = []) =>
      nodes.register(sqlite.transact, { ...node(nodeId), variant }, offlineAfterMs, hubs),
    beat: (nodeId: string, { offlineAfterMs }: Variant, hubs: readonly string[] = []) =>
      nodes.heartbeat(sqlite.transact, nodeId, () => offlineAfterMs, hubs),
    renew: (variant: "A" | "B", leaseMs: number) =>
      sqlite.transact({}, () =>
        accept(null, [{ kind: "node.leases.renewed", variant, leaseUntil: steady + leaseMs }]),
      ),
    put: (nodeId: string, messages: number) =>
      sqlite.transact({}, () =>
        accept(
          null,
          Array.from({ length: messages }, (): readonly Change[] => {
            const sent = message(newId(), { toNode: nodeId });
            return [
              { kind: "message.stored", message: sent },
              { kind: "delivery.queued", messageId: sent.messageId, toNode: nodeId },
            ];
          }).flat(),
        ),
      ),
    online: async () => (await sqlite.read(nodePart("", 1_000))).online,
    [Symbol.asyncDispose]: () => sqlite.close(),
  };
}

test("while all nodes send heartbeats, leases are read once per shortest lease, not every second", async () => {
  await using scene = openScene();
  await scene.register("of-A", A);
  for (let second = 0; second < 180; second++) {
    expect(await scene.expire()).toBe(0);
    if (second % 60 === 0) await scene.beat("of-A", A);
    scene.pass(SECOND_MS);
  }
  expect(scene.looks()).toBeGreaterThan(1);
  expect(scene.looks()).toBeLessThanOrEqual(3);
  expect(await scene.online()).toEqual(["of-A"]);
});

test("a shorter lease that began after the last read ends in time", async () => {
  await using scene = openScene();
  await scene.register("of-A", A);
  expect(await scene.expire()).toBe(0);
  scene.pass(SECOND_MS);
  await scene.register("of-B", B);
  scene.pass(B.offlineAfterMs - SECOND_MS);
  expect(await scene.expire()).toBe(0);
  scene.pass(SECOND_MS);
  expect(await scene.expire()).toBe(1);
  expect(await scene.online()).toEqual(["of-A"]);
  scene.pass(A.offlineAfterMs - B.offlineAfterMs - SECOND_MS);
  expect(await scene.expire()).toBe(1);
  expect(await scene.online()).toEqual([]);
});

test("renewed leases last their full time, and no longer", async () => {
  await using scene = openScene();
  await scene.register("of-B", B);
  expect(await scene.expire()).toBe(0);
  scene.pass(B.offlineAfterMs - SECOND_MS);
  await scene.renew("B", B.offlineAfterMs);
  scene.pass(B.offlineAfterMs - SECOND_MS);
  expect(await scene.expire()).toBe(0);
  scene.pass(SECOND_MS);
  expect(await scene.expire()).toBe(1);
});

test("more expired nodes than one step takes are all found", async () => {
  await using scene = openScene();
  for (let index = 0; index < 501; index++) await scene.register(`n${index}`, B);
  scene.pass(B.offlineAfterMs);
  expect(await scene.expire()).toBe(500);
  expect(await scene.expire()).toBe(1);
  expect(await scene.online()).toEqual([]);
});

test("a heartbeat returns how many messages wait, however many these are", async () => {
  await using scene = openScene();
  for (const nodeId of ["n1", "n2"]) await scene.register(nodeId, B);
  await scene.put("n2", 7);
  const waiting = async (nodeId: string) => (await scene.beat(nodeId, B)).messagesWaiting;
  let sent = 0;
  for (const target of [
    0,
    1,
    WAITING_PART_MAX - 1,
    WAITING_PART_MAX,
    WAITING_PART_MAX + 1,
    2 * WAITING_PART_MAX + 3,
  ]) {
    await scene.put("n1", target - sent);
    sent = target;
    expect(await Promise.all([waiting("n1"), waiting("n2"), waiting("n1")])).toEqual([target, 7, target]);
  }
  scene.pass(B.offlineAfterMs - SECOND_MS);
  await scene.beat("n1", B);
  scene.pass(SECOND_MS); // a large mailbox keeps its node alive like any other
  expect(await scene.expire()).toBe(1);
  expect(await scene.online()).toEqual(["n1"]);
  expect(await scene.beat("n2", B)).toMatchObject({ online: true, messagesWaiting: 7 });
});

test.each([99, 100, 101, 250])("a list of %i nodes is loaded a hundred at a time", async (count) => {
  await using scene = openScene();
  const ids = Array.from({ length: count }, (_, i) => `n${String(i).padStart(3, "0")}`);
  for (const nodeId of ids) await scene.register(nodeId, A);
  const { first, next } = await scene.list();
  const parts = [first];
  for (let part = await next?.(); part; part = await next?.()) parts.push(part);
  expect(parts.flat().map(({ nodeId }) => nodeId)).toEqual(ids);
  for (const part of parts) expect(part.length).toBeLessThanOrEqual(100);
});

test("a page is found in steps of bounded size, however many nodes there are", async () => {
  const count = LIST_SCANNED_MAX + 2_500;
  const folder = newDataDir();
  const path = join(folder, "db");
  const fault = (error: unknown): never => {
    throw error;
  };
  await openSqlite(path, fault).close();
  const db = new Database(path);
  const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
  // The load grows with the number; every third node is offline, and every tenth was deleted.
  db.run(`${numbers} INSERT INTO nodes (seq, node_id, name, capabilities, variant, online, registered_at, tasks_assigned,
      tasks_completed, lux_earned_micro, idle_since, deleted)
    SELECT i, printf('n%05d', i), CASE WHEN i = ${count} - 1 THEN 'Last' ELSE 'Other' END, '', 'A', i % 3 > 0, 0, i, 0, 0, 0,
      i % 10 = 0 FROM n`);
  db.run(`${numbers} INSERT INTO beats SELECT i, 0, 0 FROM n`);
  db.close();
  const sqlite = openSqlite(path, fault);
  let longest = 0;
  let reads = 0;
  const noted = async <R>(rows: Promise<R>): Promise<R> => {
    const found = await rows;
    reads++;
    if (Array.isArray(found)) longest = Math.max(longest, found.length);
    return found;
  };
  const lists = new NodeLists(
    standIn(sqlite, {
      read: <R>(query: Query<R>) => noted(sqlite.read(query)),
      readTogether: <R>(run: (read: <Q>(query: Query<Q>) => Promise<Q>) => Promise<R>) =>
        sqlite.readTogether((read) => run((query) => noted(read(query)))),
    }),
  );
  const ids = Array.from({ length: count }, (_, i) => i + 1).filter((i) => i % 10 > 0);
  const nameOf = (i: number): string => `n${String(i).padStart(5, "0")}`;
  const everyone: NodeQuery = { state: null, prefix: "", taking: null, order: "id" };
  const everyNode = async (query: NodeQuery): Promise<readonly string[]> => {
    const found: string[] = [];
    let part = await lists.page(query, { page: 1, perPage: 50 });
    for (let pages = 0; ; pages++) {
      found.push(...part.nodes.map(({ nodeId }) => nodeId));
      if (part.next === null || pages > count) return found;
      part = await lists.after(query, part.next, 50);
    }
  };
  try {
    reads = 0;
    await lists.after(everyone, { rank: 0n, nodeId: nameOf(5_000) }, 50);
    expect(reads).toBe(3); // two steps, because of the deleted ones, and the rows
    expect(await everyNode(everyone)).toEqual(ids.map(nameOf));
    const busy = await lists.page({ ...everyone, order: "busy" }, { page: 2, perPage: 50 });
    const busiest = ids.filter((i) => i % 3 > 0).toReversed();
    expect(busy.nodes.map(({ nodeId }) => nodeId)).toEqual(busiest.slice(50, 100).map(nameOf));
    expect(busy.total).toBe(ids.length);
    const last = { ...everyone, prefix: "last" };
    const first = await lists.page(last, { page: 1, perPage: 50 });
    expect([first.nodes.length, first.total]).toEqual([0, null]); // it has looked at its most
    expect(await everyNode(last)).toEqual([nameOf(count - 1)]);
    const ranked = await lists.page({ ...last, order: "lux" }, { page: 1, perPage: 50 });
    expect([ranked.nodes.length, ranked.total, ranked.next]).toEqual([1, 1, null]);
    expect(longest).toBeLessThanOrEqual(NODES_SEARCH_STEP);
  } finally {
    await sqlite.close();
    rmSync(folder, { recursive: true });
  }
});

test("a registration and each kind of heartbeat name the hubs", async () => {
  await using scene = openScene();
  const hubs = ["http://a:19104", "http://b:19104"];
  expect((await scene.register("n", B, hubs)).hubs).toEqual(hubs);
  expect((await scene.beat("n", B, hubs)).hubs).toEqual(hubs);
  scene.pass(B.offlineAfterMs);
  expect(await scene.expire()).toBe(1);
  expect((await scene.beat("n", B, hubs)).hubs).toEqual(hubs); // it comes back
  expect((await scene.beat("n", B)).hubs).toEqual([]);
});
