/** The bounds of lessons, which only a store with many tasks shows: the rows are written with SQL. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { LESSONS_STEP_ROWS, LESSONS_TYPES_MAX, LIST_SCANNED_MAX } from "../../src/domain/limits.ts";
import { Lessons } from "../../src/service/lessons.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Query, Store } from "../../src/store/store.ts";
import { newDataDir } from "../support/hub.ts";

const TASKS = LIST_SCANNED_MAX + 2_000;
const OLD = TASKS - LIST_SCANNED_MAX;
/** Every task is completed, each with a type of its own but the old ones and every 10th; the first has the word. */
const ROWS = `
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${TASKS})
  INSERT INTO tasks (seq, task_id, title, task_type, priority, creator_verified, status, assigned_node, lux_reward_micro,
    balanced, attempts, failures, restarts, epoch, unmet, ready, created_at, updated_at)
  SELECT i, 't' || i, CASE i WHEN 1 THEN 'a rare one' ELSE 'a common one' END,
    CASE WHEN i <= ${OLD} THEN 'old' WHEN i % 10 = 0 THEN 'common' ELSE 'type ' || i END, 1, 0, 'completed', 'n1', 0,
    0, 0, 0, 0, 1, 0, NULL, 1, i FROM n`;
const RESULTS = "INSERT INTO task_results SELECT seq, 'p', 'i', 'lesson ' || seq, NULL FROM tasks";

const folder = newDataDir();
let store: Store;
let lessons: Lessons;
let reads = 0;
/** The longest list of rows that one read has answered. */
let longest = 0;

beforeAll(async () => {
  const path = join(folder, "db");
  const fault = (error: unknown): never => {
    throw error;
  };
  await openSqlite(path, fault).close();
  const db = new Database(path);
  for (const sql of [ROWS, RESULTS]) db.run(sql);
  db.close();
  store = openSqlite(path, fault);
  const read = store.read.bind(store);
  store.read = async <R>(query: Query<R>): Promise<R> => {
    const rows = await read(query);
    reads++;
    if (Array.isArray(rows)) longest = Math.max(longest, rows.length);
    return rows;
  };
  lessons = new Lessons(store);
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

const textsOf = async (taskType: string): Promise<readonly string[]> =>
  (await lessons.lastOf(taskType)).map(({ text }) => text);

test("one call of a search examines LIST_SCANNED_MAX tasks, and the cursor goes on to the oldest", async () => {
  const asked = { taskType: null, words: ["RARE"] };
  const first = await lessons.page(asked, null, 20);
  expect(first).toMatchObject({ lessons: [], looked: LIST_SCANNED_MAX });
  const second = await lessons.page(asked, first.next, 20);
  expect(second).toMatchObject({ lessons: [{ taskId: "t1" }], looked: OLD, next: null });
  expect(longest).toBe(LESSONS_STEP_ROWS);
});

test("the last lessons are loaded once, from LIST_SCANNED_MAX tasks, for LESSONS_TYPES_MAX types", async () => {
  reads = 0;
  const last = [0, 10, 20, 30, 40].map((back) => `lesson ${TASKS - back}`);
  expect(await Promise.all([textsOf("common"), textsOf("common"), textsOf("")])).toEqual([last, last, []]);
  expect(reads).toBe(LIST_SCANNED_MAX / LESSONS_STEP_ROWS);
  expect(await textsOf("old")).toEqual([]);
  // The newest types were met first, and there was no room for the others.
  const newest = Array.from({ length: LIST_SCANNED_MAX }, (_, i) => TASKS - i).filter((i) => i % 10 > 0);
  const isKnown = async (i: number | undefined): Promise<boolean> => (await textsOf(`type ${i}`)).length > 0;
  expect(await isKnown(newest[0])).toBe(true);
  expect(await isKnown(newest[LESSONS_TYPES_MAX - 2])).toBe(true);
  expect(await isKnown(newest[LESSONS_TYPES_MAX - 1])).toBe(false);
  expect(reads).toBe(LIST_SCANNED_MAX / LESSONS_STEP_ROWS);
});
