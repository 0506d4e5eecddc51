/** The cached leaderboard always equals the query over all nodes. */
import { expect, test } from "bun:test";
import { TOP_NODES_MAX, TOP_NODES_STEPS_MAX } from "../../src/domain/limits.ts";
import { accept } from "../../src/domain/decision.ts";
import { saved } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { TopNodes } from "../../src/service/top-nodes.ts";
import { oldEvents } from "../../src/store/sql/retention.ts";
import { topNodes } from "../../src/store/sql/nodes.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { draft, node } from "../domain/samples.ts";

test("after completions, few and many, and after deletions", async () => {
  const store = openSqlite(":memory:", (error) => {
    throw error;
  });
  const tasks = new TaskService(store, systemClock(), () => Bun.randomUUIDv7());
  const ids = Array.from({ length: TOP_NODES_MAX + 5 }, (_, i) => `n${i}`);
  const nodes = ids.flatMap((id) => saved(node(id)));
  await store.transact({}, () => accept(null, nodes));
  const done: string[] = [];
  const complete = async (count: number, seed: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      const nodeId = ids[(i * i + seed) % ids.length] ?? "";
      const { taskId } = await tasks.create(store.transact, draft({ luxRewardMicro: (i % 3) * 1_000_000 }));
      const result = { problem: "p", improvement: "i", lesson: "l", extra: null };
      await tasks.complete(store.transact, { taskId, nodeId, result, claimOnComplete: true });
      done.push(taskId);
    }
  };
  const kept = new TopNodes(store);
  let last = "";
  const check = async (changed: boolean): Promise<void> => {
    const found = await kept.read();
    expect(found).toEqual(await store.read(topNodes(TOP_NODES_MAX)));
    const words = found.map((one) => `${one.nodeId} ${one.tasksCompleted}`).join();
    expect(words !== last).toBe(changed);
    last = words;
  };
  await check(false);
  for (let round = 1; round <= 20; round++) {
    await complete(3, round * round);
    await check(true);
  }
  await check(false);
  await complete(TOP_NODES_STEPS_MAX + 1, 3);
  await check(true);
  for (const taskId of done.slice(-60)) await tasks.remove(store.transact, taskId);
  await check(true);
  await complete(1, 2);
  await kept.read();
  expect(await kept.read()).toEqual(await store.read(topNodes(TOP_NODES_MAX)));
  await store.close();
});

test("after events since the last read were pruned", async () => {
  const store = openSqlite(":memory:", (error) => {
    throw error;
  });
  const clock = systemClock();
  const tasks = new TaskService(store, clock, () => Bun.randomUUIDv7());
  await store.transact({}, () => accept(null, saved(node("n"))));
  const forget = async (): Promise<void> => {
    await tasks.create(store.transact, draft()); // the newest event stays: it is of another kind
    const limits = { before: clock.now() + 1, limit: 1_000, now: clock.now() };
    await store.transact({ old: oldEvents(limits) }, () =>
      accept(null, [{ kind: "events.pruned", ...limits }]),
    );
  };
  const kept = new TopNodes(store);
  const completed = async (): Promise<number> => (await kept.read())[0]?.tasksCompleted ?? 0;
  const result = { problem: "p", improvement: "i", lesson: "l", extra: null };
  expect(await completed()).toBe(0);
  const { taskId } = await tasks.create(store.transact, draft());
  await tasks.complete(store.transact, { taskId, nodeId: "n", result, claimOnComplete: true });
  await forget();
  expect(await completed()).toBe(1);
  await tasks.remove(store.transact, taskId);
  await forget();
  expect(await completed()).toBe(0);
  await store.close();
});
