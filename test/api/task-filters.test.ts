/** The filters of task/list beside those of tasks.test.ts, its order by change, its summaries, and task/count. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SUMMARY_LINE_MAX_CHARS } from "../../src/domain/limits.ts";
import { TestClock, type TestHub, startHub } from "../support/hub.ts";
import { VARIANTS, badFields, list, ok, pick, record } from "./scene.ts";

const clock = new TestClock();
/** So that they are online, however slow the machine is. */
const beat = async () => {
  for (const node_id of ["n1", "n2"]) await ok(hub.post("/node/heartbeat", { node_id }));
};
let hub: TestHub;
const ids: Record<string, string> = {};
/** When each failed. */
const failedAt: Record<string, string> = {};

const fail = (name: string, nodeId: string, fields: object = {}) =>
  ok(
    hub.post("/task/fail", {
      task_id: ids[name],
      node_id: nodeId,
      error: "out of memory\n  at worker.ts:12",
      retry: false,
      ...fields,
    }),
  );

beforeAll(async () => {
  hub = await startHub({ clock });
  await hub.addNodes(["n1", "n2"]);
  ids["early"] = await hub.addTaskOf("n1", { task_type: "x" });
  ids["late"] = await hub.addTaskOf("n2", { task_type: "y" });
  ids["cancelled"] = await hub.addTask({ task_type: "x" });
  ids["open"] = await hub.addTask({ title: "plain" });
  // In lanes of their own.
  ids["limited"] = await hub.addTask({ limit_key: "k" });
  ids["choosy"] = await hub.addTask({ requires: { resources: { gpu: 1 } } });
  ids["due"] = await hub.addTask({ delay_s: 3_600 });
  ids["dependent"] = await hub.addTask({ depends_on: [ids["open"]] });
  ids["done"] = await hub.addTaskOf("n1");
  ids["checked"] = await hub.addTaskOf("n1", { review: "creator" });
  // In another order than they were created.
  await fail("late", "n2");
  clock.pass(2_000);
  await ok(hub.post("/task/cancel", { task_id: ids["cancelled"], node_id: "n1", reason: "not needed" }));
  clock.pass(2_000);
  await fail("early", "n1");
  for (const name of ["done", "checked"]) await ok(hub.complete(ids[name] ?? "", "n1"));
  for (const name of ["late", "cancelled", "early"])
    failedAt[name] = String((await hub.taskOf(ids[name] ?? ""))["updated_at"]);
});
afterAll(() => hub.close());

const named = (names: readonly string[]) => names.map((name) => ids[name]);

describe("filters", () => {
  const cases = (): readonly (readonly [query: string, names: readonly string[]])[] => [
    ["failed_by=n1", ["cancelled", "early"]],
    ["failed_by=n2", ["late"]],
    ["failed_by=n2&status=failed&task_type=y", ["late"]],
    ["failed_by=n1&status=open", []],
    ["failure_kind=cancelled", ["cancelled"]],
    ["failure_kind=FAILED", ["late", "early"]],
    ["failure_kind=failed&task_type=x", ["early"]],
    [`status=failed&since=${failedAt["cancelled"]}`, ["cancelled", "early"]],
    [`status=failed&until=${failedAt["cancelled"]}`, ["late"]],
    [`status=failed&since=${failedAt["late"]}&until=${failedAt["early"]}`, ["cancelled", "late"]],
    [`since=${failedAt["early"]}`, ["checked", "done", "early"]],
    ["failure_kind=failed,cancelled&task_type=x", ["cancelled", "early"]],
    ["status=cancelled", ["cancelled"]],
    ["status=cancelled&failure_kind=failed", []],
    ["status=in_review", ["checked"]],
    ["status=in_review&node_id=n2", []],
    ["status=in_review&node_id=n1", ["checked"]],
    ["status=completed", ["checked", "done"]],
    ["held=none", ["limited", "open"]],
    ["held=no_node", ["choosy"]],
    ["held=any", ["dependent", "due", "choosy"]],
    ["held=not_before", ["due"]],
    ["held=depends_on", ["dependent"]],
    ["held=question", []],
    ["held=any&status=failed", []],
    ["held=depends_on&status=pending", ["dependent"]],
  ];
  for (const variant of VARIANTS)
    test(`select on ${variant} what they say, and task/count counts it`, async () => {
      for (const [query, names] of cases()) {
        const found = await ok(hub.get(`/task/list?per_page=50&${query}`, { variant }));
        expect({ query, ids: pick(found, "tasks", "task_id"), total: found["total"] }).toEqual({
          query,
          ids: named(names),
          total: names.length,
        });
        const counted = await ok(hub.get(`/task/count?${query}`, { variant }));
        expect([query, counted]).toEqual([query, { success: true, count: names.length, exact: true }]);
      }
    });

  test("a task that waits for an answer waits", async () => {
    await beat();
    const taskId = await hub.addTaskOf("n2");
    const asked = { task_id: taskId, node_id: "n2", question: "Which?", park: true };
    await ok(hub.post("/task/ask", asked));
    expect(pick(await ok(hub.get("/task/list?held=question")), "tasks", "task_id")).toEqual([taskId]);
    expect(await ok(hub.get("/task/count?held=not_before"))).toMatchObject({ count: 1 });
    await ok(hub.admin("/task/delete", { task_id: taskId }));
  });

  test("task/count without a filter counts all, and those of a state or a node", async () => {
    expect(await ok(hub.get("/task/count"))).toMatchObject({ count: 10, exact: true });
    expect(await ok(hub.get("/task/count?status=failed"))).toMatchObject({ count: 3, exact: true });
    expect(await ok(hub.get("/task/count?node_id=n1"))).toMatchObject({ count: 4, exact: true });
    expect(await ok(hub.get("/task/count?node_id=ghost"))).toMatchObject({ count: 0, exact: true });
    expect(await ok(hub.get("/task/count?statu=failed"))).toMatchObject({ ignored: ["statu"] });
  });

  test("an unknown word, a wrong time and filters that exclude each other are errors", async () => {
    for (const path of ["/task/list", "/task/count"]) {
      await badFields(hub.get(`${path}?failure_kind=broken`), ["failure_kind"]);
      await badFields(hub.get(`${path}?held=1`), ["held"]);
      await badFields(hub.get(`${path}?since=yesterday&until=2026-02-31T00:00:00Z`), ["since", "until"]);
      await badFields(hub.get(`${path}?failed_by=n1&node_id=n1`), ["failed_by"]);
    }
    await badFields(hub.get("/task/list?order=size"), ["order"]);
    await badFields(hub.get("/task/list?fields=some"), ["fields"]);
  });
});

describe("order=updated", () => {
  const newestFailure = ["early", "cancelled", "late"];

  for (const variant of VARIANTS)
    test(`on ${variant} the task that failed last comes first, and the cursor goes on`, async () => {
      const seen: unknown[] = [];
      let cursor: unknown = null;
      do {
        const from = cursor === null ? "" : `&cursor=${String(cursor)}`;
        const page = await ok(
          hub.get(`/task/list?status=failed&order=updated&per_page=1${from}`, { variant }),
        );
        expect(page).toMatchObject({ page: null, total: null, pages: null, per_page: 1 });
        seen.push(...pick(page, "tasks", "task_id"));
        cursor = page["next_cursor"];
      } while (cursor !== null);
      expect(seen).toEqual(named(newestFailure));
    });

  test("together with the other filters", async () => {
    const listed = async (query: string) =>
      pick(await ok(hub.get(`/task/list?order=updated&${query}`)), "tasks", "task_id");
    expect(await listed("failed_by=n1")).toEqual(named(["early", "cancelled"]));
    expect(await listed("status=failed&task_type=x")).toEqual(named(["early", "cancelled"]));
    expect(await listed("status=failed&q=zzz")).toEqual([]);
    expect(await listed(`status=failed&since=${failedAt["cancelled"]}`)).toEqual(
      named(["early", "cancelled"]),
    );
    expect(await listed(`status=failed&until=${failedAt["early"]}`)).toEqual(named(["cancelled", "late"]));
    expect(await listed("status=failed&held=any")).toEqual([]);
  });

  test("is for failed tasks, and has cursors of its own", async () => {
    await badFields(hub.get("/task/list?order=updated"), ["order"]);
    await badFields(hub.get("/task/list?order=updated&status=completed"), ["order"]);
    await badFields(hub.get("/task/list?order=updated&status=failed&page=1"), ["page"]);
    const next = async (query: string) =>
      (await ok(hub.get(`/task/list?per_page=1&${query}`)))["next_cursor"];
    const changed = await next("status=failed&order=updated");
    const created = await next("status=failed&order=created");
    await badFields(hub.get(`/task/list?status=failed&cursor=${String(changed)}`), ["cursor"]);
    await badFields(hub.get(`/task/list?status=failed&order=updated&cursor=${String(created)}`), ["cursor"]);
  });
});

describe("fields=summary", () => {
  for (const variant of VARIANTS)
    test(`on ${variant} has what a row of a list shows, without long texts`, async () => {
      const whole = list(await ok(hub.get("/task/list?per_page=50", { variant })), "tasks");
      const page = await ok(hub.get("/task/list?per_page=50&fields=summary", { variant }));
      const short = list(page, "tasks");
      expect(page).toMatchObject({ total: whole.length, page: 1 });
      expect(short.map(({ task_id }) => task_id)).toEqual(whole.map(({ task_id }) => task_id));
      short.forEach((task, i) => {
        const { unmet_count, failure, ...same } = task;
        expect(whole[i]).toMatchObject(same);
        expect(task).not.toContainAnyKeys(["description", "result", "depends_on", "files"]);
        expect(unmet_count).toBe(task["task_id"] === ids["dependent"] ? 1 : 0);
        if (task["task_id"] === ids["early"])
          expect(failure).toMatchObject({ kind: "failed", message: "out of memory", node_id: "n1" });
      });
    });

  test("cuts the first line of a long failure", async () => {
    await beat();
    const taskId = await hub.addTaskOf("n2");
    ids["long"] = taskId;
    await fail("long", "n2", { error: `\n \n${"é".repeat(300)}` });
    const page = await ok(hub.get("/task/list?fields=summary&status=failed&order=updated&per_page=1"));
    const failure = record(list(page, "tasks")[0]?.["failure"]);
    expect(failure["message"]).toBe(`${"é".repeat(SUMMARY_LINE_MAX_CHARS - 1)}…`);
    await ok(hub.admin("/task/delete", { task_id: taskId }));
  });

  test("a page of large tasks is small", async () => {
    const description = "x".repeat(60_000);
    const large = await Promise.all([1, 2, 3].map(() => hub.addTask({ description, group: "large" })));
    const body = await ok(hub.get("/task/list?group=large&fields=summary"));
    expect(pick(body, "tasks", "task_id").toSorted()).toEqual(large.toSorted());
    expect(JSON.stringify(body).length).toBeLessThan(5_000);
    for (const taskId of large) await ok(hub.admin("/task/delete", { task_id: taskId }));
  });
});
