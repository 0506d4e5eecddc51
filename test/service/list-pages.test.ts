/** Paging: each page is the same slice of the whole list, and far pages do not delay other callers. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { accept } from "../../src/domain/decision.ts";
import { LIST_FAR_PAGES_MAX, LIST_NEAR_ROWS } from "../../src/domain/limits.ts";
import type { Task } from "../../src/domain/model.ts";
import { create } from "../../src/domain/task/core.ts";
import { ListPages, type PageSource, upToBytes } from "../../src/service/list-pages.ts";
import { PagesBusy } from "../../src/service/scan.ts";
import { taskSizes, taskTotals, tasksBySeq } from "../../src/store/sql/tasks.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Read, Store } from "../../src/store/store.ts";
import { AT, draft } from "../domain/samples.ts";

const TASKS = 95;
const FAR = { page: LIST_NEAR_ROWS + 2, perPage: 1 };

let store: Store;

beforeAll(async () => {
  store = openSqlite(":memory:", (error) => {
    throw error;
  });
  for (let i = 1; i <= TASKS; i++)
    await store.transact({}, () => accept(null, create(draft(), `t${i}`, [], AT).changes));
});
afterAll(() => store.close());

/** All tasks; of a list this short the sizes say how large each row is made out to be. */
const all =
  (bytes: number) =>
  async (read: Read): Promise<PageSource<Task>> => ({
    total: (await read(taskTotals())).open,
    sizes: (slice) => {
      const query = taskSizes(["open"], null, slice);
      return { ...query, shape: (rows) => query.shape(rows).map(({ seq }) => ({ seq, bytes })) };
    },
    rowsBySeq: tasksBySeq,
  });

async function pageOf(
  pages: ListPages,
  page: number,
  perPage: number,
  bytes: number,
): Promise<readonly string[]> {
  const { rows } = await pages.load({ page, perPage }, all(bytes));
  const tasks = [...rows.first];
  for (let part = await rows.next?.(); part; part = await rows.next?.()) tasks.push(...part);
  return tasks.map(({ taskId }) => taskId);
}

describe.each([1, 100_000])("rows of %i bytes", (bytes) => {
  test.each([1, 7, 20, 21, 50, TASKS - 1, TASKS, TASKS + 1, 500])(
    "the pages of %i are those of the list, newest first, with none past its end",
    async (perPage) => {
      const newest = Array.from({ length: TASKS }, (_, i) => `t${TASKS - i}`);
      const pages = new ListPages(store);
      for (let page = 1; page <= Math.ceil(TASKS / perPage) + 1; page++)
        expect(await pageOf(pages, page, perPage, bytes)).toEqual(
          newest.slice((page - 1) * perPage, page * perPage),
        );
    },
  );
});

test("far pages are loaded one per tick of the event loop", async () => {
  const pages = new ListPages(store);
  const ticks: number[] = [];
  let tick = 0;
  const next = (): unknown => ticks.length < 10 && setImmediate(() => (tick++, next()));
  next();
  await Promise.all(Array.from({ length: 10 }, () => pages.load(FAR, all(1)).then(() => ticks.push(tick))));
  expect(ticks).toHaveLength(10);
  expect(new Set(ticks).size).toBe(10);
});

test("a near page does not wait for the far ones", async () => {
  const pages = new ListPages(store);
  const ended: string[] = [];
  const far = Array.from({ length: 5 }, () => pages.load(FAR, all(1)).then(() => ended.push("far")));
  const near = pages.load({ page: 1, perPage: 20 }, all(1)).then(() => ended.push("near"));
  await Promise.all([...far, near]);
  expect(ended.indexOf("near")).toBeLessThan(2);
});

test("too many far pages at once are refused, and no other page is", async () => {
  const pages = new ListPages(store);
  const ends = await Promise.allSettled(
    Array.from({ length: 1 + LIST_FAR_PAGES_MAX + 10 }, () => pages.load(FAR, all(1))),
  );
  const refused = ends.filter((end) => end.status === "rejected").map(({ reason }) => reason);
  expect(refused).toEqual(new Array(10).fill(expect.any(PagesBusy)));
  expect((await pages.load(FAR, all(1))).rows.first).toEqual([]);
});

test.each([
  [[], 0],
  [[10], 1],
  [[11, 1], 1],
  [[9, 1, 1], 2],
  [[9, 5, 1], 2],
  [[1, 2, 3], 3],
])("of rows of %j bytes an answer of 10 holds the first %i", (bytes, count) => {
  const sizes = bytes.map((each, seq) => ({ seq, bytes: each }));
  expect(upToBytes(sizes, 10)).toEqual(sizes.slice(0, count));
});
