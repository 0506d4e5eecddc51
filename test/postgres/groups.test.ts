/**
 * Many transactions in one commit on PostgreSQL: what goes to the server in few statements is what each would have
 * written by itself, whatever the values are that the statements were first sent with.
 */
import { SQL } from "bun";
import { afterEach, describe, expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import type { Task } from "../../src/domain/model.ts";
import { expire, saved } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { expiredNodes } from "../../src/store/sql/nodes.ts";
import { strandedTasks, taskById, taskTotals, tasksById } from "../../src/store/sql/tasks.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import type { Store } from "../../src/store/store.ts";
import { node, tally, task } from "../domain/samples.ts";
import { POSTGRES_MISSING, newSchema } from "../support/postgres.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Of the database that was opened last. */
let address = "";

async function open(): Promise<Store> {
  const schema = await newSchema();
  address = schema.url;
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
    listed: false,
  }));
  for (const task of tasks) await commit(store, [{ kind: "task.moved", task }]);
  return tasks;
}

/** Counts from here on the statements that update tasks. */
async function countUpdates(): Promise<() => Promise<number>> {
  const sql = new SQL(address, { max: 1 });
  closing.push(() => sql.close());
  await sql.unsafe(`
    CREATE TABLE updates (n INTEGER);
    CREATE FUNCTION note_update() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO updates VALUES (1); RETURN NULL; END $$;
    CREATE TRIGGER note_update AFTER UPDATE ON tasks FOR EACH STATEMENT EXECUTE FUNCTION note_update();`);
  return async () => Number((await sql`SELECT count(*) AS n FROM updates`)[0]?.n);
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

  test("what many nodes hold is listed in one statement when they go offline, also by a hub that does it first", async () => {
    const store = await open();
    const nodes = Array.from({ length: 20 }, (_, i) => `n${i}`);
    const tasks = await claim(store, nodes, 3);
    const heldBy = Map.groupBy(tasks, ({ assignedNode }) => assignedNode);
    const changes = nodes.flatMap((nodeId): Change[] => {
      const held = heldBy.get(nodeId)?.map(({ seq }) => seq) ?? [];
      return [...saved(node(nodeId, { leaseUntil: 1 })), tally({ nodeId, assigned: 3, held })];
    });
    await commit(store, changes);
    expect(await store.read(strandedTasks(100))).toEqual([]);
    const updates = await countUpdates();
    await store.transact({ nodes: expiredNodes(1, 100) }, (rows) => expire(rows.nodes, 2));
    expect(await updates()).toBe(1);
    const stranded = await store.read(strandedTasks(100));
    expect(stranded.map(({ seq }) => seq).toSorted()).toEqual(tasks.map(({ seq }) => seq).toSorted());
  });

  test("a task that is listed, moved and deleted in one commit: in that order, by whichever name it is called", async () => {
    const store = await open();
    for (let round = 0; round < 3; round++) {
      // What is sent by itself at first is sent with others later.
      const tasks = await claim(store, [`n${round}`], 4);
      const [, moved, deleted, back] = tasks;
      if (!moved || !deleted || !back) throw new Error("not there");
      await Promise.all([
        commit(
          store,
          tasks.map(({ seq }): Change => ({ kind: "task.listed", nodeId: `n${round}`, seq })),
        ),
        commit(store, [{ kind: "task.moved", task: { ...moved, status: "open", assignedNode: null } }]),
        commit(store, [{ kind: "task.deleted", taskId: deleted.taskId, seq: deleted.seq }]),
        commit(store, [{ kind: "task.moved", task: back }]), // not listed again
      ]);
      const after = await Promise.all(tasks.map(({ taskId }) => store.read(taskById(taskId))));
      expect(after.map((one) => one && [one.status, one.listed])).toEqual([
        ["assigned", true],
        ["open", false],
        null,
        ["assigned", false],
      ]);
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
