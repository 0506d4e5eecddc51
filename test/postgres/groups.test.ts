/**
 * Many transactions in one commit on PostgreSQL: what goes to the server in few statements is what each would have
 * written by itself, whatever the values are that the statements were first sent with.
 */
import { afterEach, describe, expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import type { Task } from "../../src/domain/model.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { taskById, taskTotals, tasksById } from "../../src/store/sql/tasks.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import type { Store } from "../../src/store/store.ts";
import { task } from "../domain/samples.ts";
import { POSTGRES_MISSING, newSchema } from "../support/postgres.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function open(): Promise<Store> {
  const schema = await newSchema();
  closing.push(schema.remove);
  const store = await openPostgres(schema.url, systemClock(), (error) => {
    throw error;
  });
  closing.push(() => store.close());
  return store;
}

type Patch = Partial<Task> & Pick<Task, "taskId">;

/** Creates tasks, all asked for at once, and answers them as they are stored. */
async function create(store: Store, patches: readonly Patch[]): Promise<readonly unknown[]> {
  const tasks = patches.map((patch) => task(patch.taskId, patch));
  await Promise.all(
    tasks.map((one) =>
      store.transact({ before: taskById(one.taskId) }, ({ before }) => {
        expect(before).toBeNull();
        return accept(null, [
          { kind: "task.created", task: one },
          { kind: "tasks.tallied", open: 1, assigned: 0, completed: 0 },
        ]);
      }),
    ),
  );
  const stored = await Promise.all(tasks.map(({ taskId }) => store.read(taskById(taskId))));
  expect(stored).toEqual(tasks.map((one) => ({ ...one, seq: expect.any(Number) })));
  return tasks;
}

const commit = (store: Store, changes: readonly Change[]): Promise<null> =>
  store.transact({}, () => accept(null, changes));

/** As many new tasks for each node, held by it and not listed, as they are stored. */
async function claim(store: Store, nodes: readonly string[], each: number): Promise<readonly Task[]> {
  const ids = nodes.flatMap((nodeId) => Array.from({ length: each }, (_, i) => `${nodeId} ${i}`));
  await create(
    store,
    ids.map((taskId) => ({ taskId })),
  );
  const open = await store.read(tasksById(ids));
  const tasks = open.map((one): Task => ({
    ...one,
    status: "assigned",
    assignedNode: one.taskId.split(" ")[0] ?? null,
  }));
  for (const task of tasks) await commit(store, [{ kind: "task.moved", task }]);
  return tasks;
}

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;

describe.skipIf(POSTGRES_MISSING !== null)(`groups on postgresql${reason}`, () => {
  test("numbers that are larger than those that came first", async () => {
    const store = await open();
    await create(store, [{ taskId: "small", luxRewardMicro: 1 }]);
    await create(store, [
      { taskId: "large", luxRewardMicro: 999_999_999_999_999 },
      { taskId: "larger", luxRewardMicro: 1_000_000_000_000_000 },
    ]);
    await create(store, [{ taskId: "alone", luxRewardMicro: 1_000_000_000_000_000 }]);
    expect(await store.read(taskTotals())).toEqual({ open: 4, assigned: 0, completed: 0 });
  });

  test("texts with what an array is worded with", async () => {
    const store = await open();
    const texts = [``, `NULL`, `"`, `\\`, `\\"`, `{a,b}`, `,`, ` `, `a\nb\tc`, `'`, `$1`, `\u0001`, `🦊`];
    await create(store, [{ taskId: "first", title: "t" }]);
    await create(
      store,
      texts.map((title, i) => ({ taskId: `t${i}`, title })),
    );
    await create(
      store,
      texts.map((title, i) => ({ taskId: `u${i}`, title, creatorNode: i % 2 === 0 ? null : title })),
    );
  });

  test("a task that is moved, deleted and moved back in one commit: in that order", async () => {
    const store = await open();
    for (let round = 0; round < 3; round++) {
      // What is sent by itself at first is sent with others later.
      const [, moved, deleted, back] = await claim(store, [`n${round}`], 4);
      if (!moved || !deleted || !back) throw new Error("not there");
      await Promise.all([
        commit(store, [{ kind: "task.moved", task: { ...moved, status: "open", assignedNode: null } }]),
        commit(store, [{ kind: "task.deleted", taskId: deleted.taskId }]),
        commit(store, [{ kind: "task.moved", task: { ...back, status: "open", assignedNode: null } }]),
        commit(store, [{ kind: "task.moved", task: back }]),
      ]);
      const after = await Promise.all(
        [moved, deleted, back].map(({ taskId }) => store.read(taskById(taskId))),
      );
      expect(after.map((one) => one?.status ?? null)).toEqual(["open", null, "assigned"]);
    }
  });

  test("a text that cannot be stored is looked for beside others, and not found", async () => {
    const store = await open();
    await create(store, [{ taskId: "a" }, { taskId: "b" }]);
    const found = (taskId: string) =>
      store.transact({ task: taskById(taskId) }, (rows) => accept(rows.task?.taskId ?? null, []));
    const asked = ["a", "x\0y", "b", "\0", "a\0b"];
    await Promise.all(asked.map(found)); // in the first of them the server tells the types
    expect(await Promise.all(asked.map(found))).toEqual(["a", null, "b", null, null]);
  });
});
