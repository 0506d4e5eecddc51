/**
 * Many transactions in one commit on PostgreSQL: what goes to the server in few statements is what each would have
 * written by itself, whatever the values are that the statements were first sent with.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { accept } from "../../src/domain/decision.ts";
import type { Task } from "../../src/domain/task.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { taskById, taskTotals } from "../../src/store/queries.ts";
import { openPostgres } from "../../src/store/postgres.ts";
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
