/** Lessons of completed tasks: in the context of the next tasks of their type, and in the search over all. */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import {
  CONTEXT_LESSONS_MAX,
  CONTEXT_LESSONS_MAX_BYTES,
  LESSONS_STEP_ROWS,
  LESSON_SHOWN_MAX_CHARS,
} from "../../src/domain/limits.ts";
import { type TestHub, newDataDir, startHub, onlyOnce } from "../support/hub.ts";
import { RESULT, VARIANTS, badFields, list, ok, record } from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

/** A task of a type that n1 has completed with this lesson; its id. */
async function learned(hub: TestHub, lesson: string, fields: Fields = {}): Promise<string> {
  const taskId = await hub.addTask({ task_type: "review", ...fields });
  await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
  await ok(hub.post("/task/complete", { task_id: taskId, node_id: "n1", result: { ...RESULT, lesson } }));
  hub.clock.pass(5);
  return taskId;
}

/** What task/next says of lessons when it hands out a new task of the type. */
async function handedOut(hub: TestHub, taskType?: string): Promise<readonly Fields[] | undefined> {
  await hub.addTask(taskType === undefined ? {} : { task_type: taskType });
  const { task, context } = await ok(hub.post("/task/next", { node_id: "n1" }));
  expect(record(task)["task_type"]).toBe(taskType ?? null);
  await ok(hub.post("/task/cancel", { task_id: record(task)["task_id"] }));
  return context === undefined ? undefined : list(record(context), "lessons");
}

const textsOf = (lessons: readonly Fields[] | undefined): unknown => lessons?.map(({ lesson }) => lesson);

/** The texts that a search finds, of all its pages. */
async function found(
  hub: TestHub,
  query: string,
): Promise<{ readonly texts: unknown[]; readonly looked: number }> {
  const texts: unknown[] = [];
  let looked = 0;
  for (let cursor: unknown = "", pages = 0; cursor !== null; pages++) {
    expect(pages).toBeLessThan(20);
    const page = await ok(hub.get(`/lessons?${query}${cursor === "" ? "" : `&cursor=${String(cursor)}`}`));
    texts.push(...list(page, "lessons").map(({ lesson }) => lesson));
    looked += Number(page["looked"]);
    cursor = page["next_cursor"];
  }
  return { texts, looked };
}

describe("a task that is handed out", () => {
  test.each(VARIANTS)("has the last lessons of its type, newest first (%s)", async (variant) => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const ids: string[] = [];
    for (let i = 1; i <= CONTEXT_LESSONS_MAX + 1; i++) ids.push(await learned(hub, ` lesson ${i}\n`));
    await learned(hub, "of another type", { task_type: "build" });
    await learned(hub, "of no type", { task_type: "" });
    const taskId = await hub.addTask({ task_type: "review" });
    const asked = { task_id: taskId, node_id: "n1" };
    const { context } = await ok(hub.post("/task/claim", asked, { variant }));
    const lessons = list(record(context), "lessons");
    expect(textsOf(lessons)).toEqual(["lesson 6", "lesson 5", "lesson 4", "lesson 3", "lesson 2"]);
    const { at, ...newest } = lessons[0] ?? {};
    expect(newest).toEqual({
      task_id: ids.at(-1),
      title: "t",
      task_type: "review",
      node_id: "n1",
      verified: false,
      lesson: "lesson 6",
    });
    expect(Date.parse(String(at))).toBeGreaterThan(Date.parse(String(lessons[1]?.["at"])));
    expect((await ok(hub.get(`/task/${taskId}?context=1`, { variant })))["context"]).toEqual(context);
  });

  once.test(
    "has none without a type, and none that says nothing, repeats another, or is its own",
    async () => {
      await using hub = await startHub();
      await hub.addNode("n1");
      expect(await handedOut(hub, "review")).toBeUndefined();
      await learned(hub, "of no type", { task_type: "" });
      expect(await handedOut(hub)).toBeUndefined();
      for (const nothing of ["none", "None.", "n/a", " - "]) await learned(hub, nothing);
      expect(await handedOut(hub, "review")).toBeUndefined();
      await learned(hub, "say it once");
      await learned(hub, "another");
      const taskId = await learned(hub, "say it once");
      expect(textsOf(await handedOut(hub, "review"))).toEqual(["say it once", "another"]);
      const { context } = await ok(hub.get(`/task/${taskId}?context=1`));
      expect(textsOf(list(record(context), "lessons"))).toEqual(["another"]);
    },
  );

  once.test(
    "has the lessons up to their limit in bytes, and the last of them is cut at a character",
    async () => {
      await using hub = await startHub();
      await hub.addNode("n1");
      await learned(hub, "there is no room for this");
      await learned(hub, "ü".repeat(LESSON_SHOWN_MAX_CHARS + 1));
      await learned(hub, "newest");
      const lessons = (await handedOut(hub, "review")) ?? [];
      const room = CONTEXT_LESSONS_MAX_BYTES - "newest".length;
      expect(textsOf(lessons)).toEqual(["newest", "ü".repeat(room / 2)]);
      expect(lessons.map(({ truncated }) => truncated)).toEqual([undefined, true]);
    },
  );

  test("has no lesson of a task that was deleted, before and after a restart", async () => {
    const dataDir = newDataDir();
    try {
      {
        await using hub = await startHub({ dataDir });
        await hub.addNode("n1");
        await learned(hub, "first");
        const second = await learned(hub, "second");
        await learned(hub, "third");
        expect(textsOf(await handedOut(hub, "review"))).toEqual(["third", "second", "first"]);
        await ok(hub.admin("/task/delete", { task_id: second }));
        expect(textsOf(await handedOut(hub, "review"))).toEqual(["third", "first"]);
      }
      await using hub = await startHub({ dataDir });
      expect(textsOf(await handedOut(hub, "review"))).toEqual(["third", "first"]);
      await hub.addNode("n1");
      await learned(hub, "fourth");
      expect(textsOf(await handedOut(hub, "review"))).toEqual(["fourth", "third", "first"]);
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});

describe("the search", () => {
  test("finds lessons by type and by words of the lesson or the title, newest task first", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await learned(hub, "The cookie needs SameSite", { title: "Fix the login" });
    await learned(hub, "Rate limits are per key", { title: "Load the login page", task_type: "build" });
    await learned(hub, "none", { title: "Nothing of the login" });
    await learned(hub, "x".repeat(LESSON_SHOWN_MAX_CHARS + 1), { task_type: "" });
    const whole = await ok(hub.get("/lessons"));
    expect(list(whole, "lessons").map(({ truncated }) => truncated)).toEqual([true, undefined, undefined]);
    expect(whole).toMatchObject({ looked: 4, next_cursor: null });
    expect(list(whole, "lessons")[1]).toMatchObject({ title: "Load the login page", task_type: "build" });
    const texts = async (query: string) => (await found(hub, query)).texts;
    expect(await texts("q=login")).toEqual(["Rate limits are per key", "The cookie needs SameSite"]);
    expect(await texts("q=LOG+cook")).toEqual(["The cookie needs SameSite"]);
    expect(await texts("type=build")).toEqual(["Rate limits are per key"]);
    expect(await texts("type=review&q=login")).toEqual(["The cookie needs SameSite"]);
    expect(await texts("q=nowhere")).toEqual([]);
  });

  test("shows each lesson once on pages of any size, and says how many tasks it looked at", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const tasks = 2 * LESSONS_STEP_ROWS + 20;
    const created = await hub.inBatches(
      "task/create",
      Array.from({ length: tasks }, (_, i) => ({
        title: "t",
        description: "d",
        task_type: i % 100 ? "" : "rare",
      })),
    );
    const ids = created.map((answer) => record(answer)["task_id"]);
    const of = (task_id: unknown) => ({ task_id, node_id: "n1" });
    await hub.inBatches("task/claim", ids.map(of));
    await hub.inBatches(
      "task/complete",
      ids.map((id, i) => ({ ...of(id), result: { ...RESULT, lesson: `lesson ${i}` } })),
    );
    const all = ids.map((_, i) => `lesson ${i}`).toReversed();
    expect(await found(hub, "limit=100")).toEqual({ texts: all, looked: tasks });
    expect(await found(hub, "limit=7&q=lesson+1")).toEqual({
      texts: all.filter((text) => text.startsWith("lesson 1")),
      looked: tasks,
    });
    expect(await found(hub, "limit=1&type=rare")).toEqual({
      texts: all.filter((_, i) => (tasks - 1 - i) % 100 === 0),
      looked: tasks,
    });
  });

  once.test("refuses what it cannot read", async () => {
    await using hub = await startHub();
    await badFields(hub.get("/lessons?limit=0&cursor=1&q=%00"), ["limit", "cursor", "q"]);
  });
});
