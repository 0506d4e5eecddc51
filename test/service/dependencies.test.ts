/**
 * Tasks that depend on one that fails and is retried, in every order: whom the failure has reached stays failed, and the
 * others go on waiting.
 */
import { afterEach, expect, test } from "bun:test";
import { cancel } from "../../src/domain/task/creator.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { dueSteps } from "../../src/service/task-chores.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { taskById, tasksById } from "../../src/store/sql/tasks.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { AT, draft } from "../domain/samples.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A task and others that depend on it. */
async function openScene(dependents: number) {
  const store = openSqlite(":memory:", (error) => {
    throw error;
  });
  closing.push(() => store.close());
  const tasks = new TaskService(store, systemClock(), newId);
  const create = (dependsOn: readonly string[]) =>
    tasks.create(store.transact, { ...draft(), balanced: false, dependsOn });
  const { taskId } = await create([]);
  const waiting = await Promise.all(Array.from({ length: dependents }, () => create([taskId])));
  return {
    /** Its end is on disk; the hub stops before it updates the tasks that depend on it. */
    end: () =>
      store.transact({ task: taskById(taskId) }, ({ task }) =>
        cancel(task, null, { taskId, boundTo: null, nodeId: null, reason: "not needed" }, AT),
      ),
    retry: () => tasks.retry(store.transact, { taskId, boundTo: null }),
    runDue: async () => {
      for (const step of await dueSteps(store, systemClock(), tasks.reviews)) while ((await step()).isMore);
    },
    waiting: () => store.read(tasksById(waiting.map((one) => one.taskId))),
  };
}

test("retried before its failure has reached the others: they go on waiting", async () => {
  const { end, retry, runDue, waiting } = await openScene(2);
  await end();
  await retry();
  await runDue();
  for (const task of await waiting()) expect(task).toMatchObject({ status: "open", unmet: 1, failure: null });
});

test("retried after it: they stay failed", async () => {
  const { end, retry, runDue, waiting } = await openScene(2);
  await end();
  await runDue();
  await retry();
  await runDue();
  for (const task of await waiting())
    expect(task).toMatchObject({ status: "failed", failure: { kind: "dependency" } });
});

test("and it may fail again: then its failure reaches the others", async () => {
  const { end, retry, runDue, waiting } = await openScene(2);
  await end();
  await retry();
  await end();
  await runDue();
  for (const task of await waiting()) expect(task).toMatchObject({ status: "failed" });
});
