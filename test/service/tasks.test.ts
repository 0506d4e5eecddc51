/** What the balancer's walk through the pool costs: nothing that nobody can take is read, and what somebody can is found. */
import { afterEach, expect, spyOn, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Change } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import { BALANCE_TYPES_MAX } from "../../src/domain/limits.ts";
import { saved } from "../../src/domain/node.ts";
import type { Task } from "../../src/domain/task.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { openSqlite } from "../../src/store/sqlite.ts";
import { node, task } from "../domain/samples.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A service over a store that counts the balancer's steps. */
async function openScene(changes: readonly Change[]) {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-tasks-"));
  closing.push(() => rm(folder, { recursive: true }));
  const store = openSqlite(join(folder, "db"), () => undefined);
  closing.push(() => store.close());
  await store.transact({}, () => accept(null, changes));
  const steps = spyOn(store, "transact");
  return { tasks: new TaskService(store, systemClock(), newId), steps };
}

const created = (taskId: string, patch: Partial<Task> = {}): Change => ({
  kind: "task.created",
  task: task(taskId, { balanced: true, ...patch }),
});
const there = (nodeId: string, capabilities: readonly string[]): readonly Change[] =>
  saved(node(nodeId, { capabilities }));
/** More than two steps' worth that only who knows "z" takes. */
const UNFIT = Array.from({ length: 1_200 }, (_, i) => created(`unfit ${i}`, { taskType: "z", priority: 0 }));

test("a pool that nobody who is there can take from is not walked through", async () => {
  const { tasks, steps } = await openScene([...UNFIT, ...there("n1", ["x", "y"])]);
  expect(await tasks.balanceAll(true)).toEqual([]);
  expect(steps).toHaveBeenCalledTimes(0);
});

test("nor is one with nobody there, nor is an empty one", async () => {
  for (const changes of [UNFIT, there("n1", [])]) {
    const { tasks, steps } = await openScene(changes);
    expect(await tasks.balanceAll(true)).toEqual([]);
    expect(steps).toHaveBeenCalledTimes(0);
  }
});

test("what fits is found behind all that does not, in one step", async () => {
  const fits = [created("typed", { taskType: "x", priority: 5 }), created("untyped", { priority: 5 })];
  const { tasks, steps } = await openScene([...UNFIT, ...fits, ...there("n1", ["x"])]);
  const given = await tasks.balanceAll(true);
  expect(given.map(({ taskId }) => taskId)).toEqual(["typed", "untyped"]);
  expect(steps).toHaveBeenCalledTimes(1);
});

test("with more types than are looked up one by one, the pool is walked through, and all is found", async () => {
  const names = Array.from({ length: BALANCE_TYPES_MAX + 1 }, (_, i) => `type-${i}`);
  const nodes = names.flatMap((name, i) => there(`n${i}`, [name]));
  const fits = names.map((name) => created(name, { taskType: name, priority: 5 }));
  const { tasks } = await openScene([...UNFIT, ...nodes, ...fits]);
  expect((await tasks.balanceAll(true)).map(({ taskId }) => taskId)).toEqual(names);
});
