/**
 * The bounds of a filtered list, which only a store with many tasks shows: the rows are written with SQL. test/model
 * compares the contents of the lists with a plain computation.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { LIST_COUNTED_MAX, LIST_SCANNED_MAX } from "../../src/domain/limits.ts";
import type { Task } from "../../src/domain/model.ts";
import { TaskLists, type TaskQuery, WHOLE_TASKS } from "../../src/service/task-lists.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Query, Store } from "../../src/store/store.ts";
import { ANY_TASK } from "../../src/service/task-lists.ts";
import { newDataDir } from "../support/hub.ts";

const TASKS = 12_000;
/** Every task is common; every 1,000th is rare, every 10th is failed. */
const ROWS = `
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${TASKS})
  INSERT INTO tasks (seq, task_id, title, task_type, priority, creator_node, creator_verified, status, lux_reward_micro,
    balanced, attempts, failures, restarts, epoch, unmet, ready, created_at, updated_at)
  SELECT i, 't' || i, CASE WHEN i % 1000 = 0 THEN 'a rare one' ELSE 'a common one' END,
    CASE WHEN i % 1000 = 0 THEN 'rare' ELSE 'common' END, 1, 'boss', 0, CASE WHEN i % 10 = 0 THEN 'failed' ELSE 'open' END,
    0, 0, 0, 0, 0, 0, 0, CASE WHEN i % 10 = 0 THEN NULL ELSE 1 END, 1, 1 FROM n`;
const SPECS = "INSERT INTO task_specs SELECT seq, NULL, 0, '', NULL FROM tasks";
const TOTALS = `UPDATE task_totals SET open = ${TASKS * 0.9}, failed = ${TASKS / 10}`;

const folder = newDataDir();
let store: Store;
let lists: TaskLists<Task>;
/** The longest list of rows that one read has answered. */
let longest = 0;

beforeAll(async () => {
  const path = join(folder, "db");
  const fault = (error: unknown): never => {
    throw error;
  };
  await openSqlite(path, fault).close();
  const db = new Database(path);
  for (const sql of [ROWS, SPECS, TOTALS]) db.run(sql);
  db.close();
  store = openSqlite(path, fault);
  const read = store.read.bind(store);
  store.read = async <R>(query: Query<R>): Promise<R> => {
    const rows = await read(query);
    if (Array.isArray(rows)) longest = Math.max(longest, rows.length);
    return rows;
  };
  lists = new TaskLists(store, WHOLE_TASKS);
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

const query = (patch: Partial<TaskQuery>): TaskQuery => ({ ...ANY_TASK, ...patch });
const seqsOf = (rows: { readonly first: readonly Task[] }): readonly number[] =>
  rows.first.map(({ seq }) => seq);

/** Everything that a list shows by cursor. */
async function everyTask(asked: TaskQuery, perPage: number): Promise<readonly number[]> {
  const seqs: number[] = [];
  let part = await lists.page(asked, { page: 1, perPage });
  for (;;) {
    seqs.push(...seqsOf(part.rows));
    if (part.next === null) return seqs;
    part = await lists.after(asked, part.next, perPage);
  }
}

const rare = (below: number, from = 1): readonly number[] =>
  Array.from({ length: TASKS / 1_000 }, (_, i) => TASKS - 1_000 * i).filter(
    (seq) => seq >= from && seq <= below,
  );

test("a rare type is found wherever it is, with its total", async () => {
  const page = await lists.page(query({ taskType: "rare" }), { page: 2, perPage: 8 });
  expect([seqsOf(page.rows), page.total, page.next]).toEqual([rare(4_000), 12, null]);
});

test("a long filtered list has no total, and is complete by cursor", async () => {
  const asked = query({ creatorNode: "boss", taskType: "common" });
  const page = await lists.page(asked, { page: 1, perPage: 20 });
  expect([page.rows.first.length, page.total]).toEqual([20, null]);
  expect((await everyTask(asked, 500)).length).toBe(TASKS - TASKS / 1_000);
});

test("a list of at most LIST_COUNTED_MAX tasks is counted, whichever index finds them", async () => {
  const page = { page: 1, perPage: 1 };
  const failed = query({ taskType: "common", statuses: ["failed"] });
  expect(await lists.page(failed, page)).toMatchObject({ total: TASKS / 10 - TASKS / 1_000 });
  const few = query({ taskType: "rare", creatorNode: "boss", statuses: ["open", "failed"] });
  expect(await lists.page(few, page)).toMatchObject({ total: TASKS / 1_000 });
  expect(TASKS / 10).toBeLessThan(LIST_COUNTED_MAX);
});

test("one call of a search looks at LIST_SCANNED_MAX titles, and the cursor goes on to the oldest", async () => {
  const asked = query({ words: ["RARE"] });
  const page = await lists.page(asked, { page: 1, perPage: 20 });
  const newest = rare(TASKS, TASKS - LIST_SCANNED_MAX);
  expect([seqsOf(page.rows).slice(0, newest.length - 1), page.total]).toEqual([newest.slice(0, -1), null]);
  expect(page.next).not.toBeNull();
  expect(await everyTask(asked, 3)).toEqual(rare(TASKS));
  expect(await everyTask(query({ words: ["RARE"], taskType: "rare" }), 7)).toEqual(rare(TASKS));
  const open = query({ words: ["ONE"], statuses: ["open"] });
  expect((await everyTask(open, 500)).length).toBe(TASKS * 0.9);
});

test("no step reads much at once", () => {
  // 32 blocks of one type, where each task of the blocks is of that type.
  expect(longest).toBeGreaterThan(500);
  expect(longest).toBeLessThanOrEqual(32 * 512);
});
