/**
 * Retention of finished tasks and of files: what goes, when, and what stays although it is old. The tests set the hub's
 * clock.
 */
import { describe, expect, test } from "bun:test";
import { RETENTION_EVERY_MS, RETENTION_STEP_TASKS } from "../../src/domain/limits.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/clock.ts";
import { takesHalf } from "../../src/service/system.ts";
import { type TestHub, startHub, onlyOnce } from "../support/hub.ts";
import { list, ok, pick, record, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

async function create(hub: TestHub, fields: Fields = {}): Promise<string> {
  const made = await ok(hub.post("/task/create", { title: "t", description: "d", ...fields }));
  return String(made["task_id"]);
}

async function done(hub: TestHub, fields: Fields = {}): Promise<string> {
  const task_id = await create(hub, fields);
  await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
  await ok(hub.post("/task/claim", { task_id, node_id: "n1" }));
  await hub.complete(task_id, "n1");
  return task_id;
}

async function tasks(hub: TestHub): Promise<readonly unknown[]> {
  return pick(await ok(hub.get("/task/list")), "tasks", "task_id").toReversed();
}

async function upload(hub: TestHub, metadata: Fields = {}): Promise<string> {
  const form = new FormData();
  form.set("file", new File(["bytes"], "a.txt"));
  form.set("metadata", JSON.stringify(metadata));
  return String((await ok(hub.post("/file/upload", form)))["file_id"]);
}

async function files(hub: TestHub): Promise<readonly unknown[]> {
  return pick(await ok(hub.get("/file/list")), "files", "file_id").toReversed();
}

/** Time passes, and the hub does its periodic work. */
async function pass(hub: TestHub, ms: number): Promise<void> {
  hub.clock.pass(ms);
  await hub.sweep();
}

describe.concurrent("--retain-tasks", () => {
  test("deletes finished tasks so long after their end, with their files, and says so in the log of events", async () => {
    await using hub = await startHub({ retainTasksMs: DAY_MS });
    await hub.addNode("n1");
    await ok(hub.post("/signin", { node_id: "n1" }));
    const old = await done(hub, { lux_reward: 2 });
    await upload(hub, { task_id: old, node: "n1" });
    const free = await upload(hub);
    const failed = await create(hub);
    await ok(hub.post("/task/cancel", { task_id: failed }));
    const open = await create(hub);
    await pass(hub, DAY_MS - MINUTE_MS);
    const late = await done(hub);
    expect(await tasks(hub)).toEqual([old, failed, open, late]);
    await pass(hub, 2 * MINUTE_MS);
    expect(await tasks(hub)).toEqual([open, late]);
    expect(await files(hub)).toEqual([free]);
    const events = list(await ok(hub.get("/events?since=0&kind=task.deleted")), "events");
    expect(events.map(({ task_id, data }) => [task_id, record(data)["reason"]]).toSorted()).toEqual(
      [
        [old, "retention"],
        [failed, "retention"],
      ].toSorted(),
    );
    // What the node has earned and done stays.
    expect(await hub.nodeOf("n1")).toMatchObject({ tasks_completed: 2, lux_balance: 12 });
    expect(list(await ok(hub.get("/lux/ledger?node_id=n1")), "entries")).toHaveLength(2);
    expect(await ok(hub.get("/task/stats"))).toMatchObject({ by_status: { completed: 1, failed: 0 } });
  });

  test("keeps a task on which an unfinished one depends, until that one is old, too", async () => {
    await using hub = await startHub({ retainTasksMs: HOUR_MS });
    await hub.addNode("n1");
    const first = await done(hub);
    const second = await create(hub, { depends_on: [first] });
    await pass(hub, 2 * HOUR_MS);
    expect(await tasks(hub)).toEqual([first, second]);
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    const { context } = await ok(hub.post("/task/claim", { task_id: second, node_id: "n1" }));
    expect(list(record(context), "inputs")).toMatchObject([{ task_id: first, status: "completed" }]);
    await hub.complete(second, "n1");
    await pass(hub, MINUTE_MS);
    expect(await tasks(hub)).toEqual([second]);
    await pass(hub, 2 * HOUR_MS);
    expect(await tasks(hub)).toEqual([]);
  });

  once.test(
    "keeps a task on which one depends whose result waits for a review: a rejected one needs its inputs again",
    async () => {
      await using hub = await startHub({ retainTasksMs: HOUR_MS });
      await hub.addNode("n1");
      await hub.addNode("boss");
      const first = await done(hub);
      const reviewed = {
        depends_on: [first],
        creator_node: "boss",
        review: "creator",
        review_within_s: 86_400,
      };
      const second = await done(hub, reviewed);
      await pass(hub, 2 * HOUR_MS);
      expect(await tasks(hub)).toEqual([first, second]);
      await ok(hub.post("/task/review", { task_id: second, node_id: "boss", verdict: "reject" }));
      await pass(hub, MINUTE_MS);
      await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
      const { context } = await ok(hub.post("/task/claim", { task_id: second, node_id: "n1" }));
      expect(list(record(context), "inputs")).toMatchObject([{ task_id: first, status: "completed" }]);
    },
  );

  once.test("a task that is retried is not finished, however old it is", async () => {
    await using hub = await startHub({ retainTasksMs: HOUR_MS });
    const task_id = await create(hub, { retain_s: 60 });
    await ok(hub.post("/task/cancel", { task_id }));
    await ok(hub.post("/task/retry", { task_id }));
    await pass(hub, 2 * HOUR_MS);
    expect(await tasks(hub)).toEqual([task_id]);
  });

  test("deletes many, in steps, and leaves younger ones", async () => {
    await using hub = await startHub({ retainTasksMs: HOUR_MS });
    const requests = Array.from({ length: 130 }, (_, n) => ({
      path: "task/create",
      body: { title: `t${n}`, description: "d" },
    }));
    const { answers } = await ok(hub.post("/batch", { requests }));
    const ids = list({ answers }, "answers").map(({ body }) => String(record(body)["task_id"]));
    for (const task_id of ids.slice(0, 100)) await ok(hub.post("/task/cancel", { task_id }));
    await pass(hub, 2 * HOUR_MS);
    for (const task_id of ids.slice(100, 110)) await ok(hub.post("/task/cancel", { task_id }));
    await pass(hub, RETENTION_EVERY_MS);
    expect(await ok(hub.get("/task/stats"))).toMatchObject({ by_status: { open: 20, failed: 10 } });
  });
});

describe.concurrent("retain_s", () => {
  once.test("of a task goes before what the hub says, shorter or longer", async () => {
    await using hub = await startHub({ retainTasksMs: HOUR_MS });
    await hub.addNode("n1");
    const short = await done(hub, { retain_s: 60 });
    const long = await done(hub, { retain_s: 7_200 });
    const usual = await done(hub);
    const now = await done(hub, { retain_s: 0 });
    await pass(hub, RETENTION_EVERY_MS + 1);
    expect(await tasks(hub)).toEqual([short, long, usual]);
    await refused(hub.get(`/task/${now}`), 404, "task_not_found");
    await pass(hub, 2 * MINUTE_MS);
    expect(await tasks(hub)).toEqual([long, usual]);
    await pass(hub, HOUR_MS);
    expect(await tasks(hub)).toEqual([long]);
    expect((await ok(hub.get(`/task/${long}`)))["task"]).toMatchObject({ retain_s: 7_200 });
    await pass(hub, HOUR_MS);
    expect(await tasks(hub)).toEqual([]);
  });

  once.test("of many tasks ends at once, also behind old ones that must stay", async () => {
    await using hub = await startHub();
    const made = async (count: number, fields: Fields): Promise<readonly string[]> => {
      const body = { title: "t", description: "d", retain_s: 0, ...fields };
      const requests = Array.from({ length: count }, () => ({ path: "task/create", body }));
      const { answers } = await ok(hub.post("/batch", { requests }));
      return list({ answers }, "answers").map(({ body }) => String(record(body)["task_id"]));
    };
    const needed = await made(RETENTION_STEP_TASKS + 5, { group: "needed" });
    await create(hub, { depends_on: needed, on_dependency: "run", delay_s: 86_400 });
    const key = { unique_key: "k", unique_for_s: 86_400, retain_s: 0 };
    await create(hub, { ...key, group: "needed" });
    await ok(hub.post("/group/cancel", { group: "needed" }));
    await pass(hub, 1);
    await made(RETENTION_STEP_TASKS * 6, { group: "free" });
    await ok(hub.post("/group/cancel", { group: "free" }));
    await pass(hub, RETENTION_EVERY_MS);
    await refused(hub.get("/group/free"), 404, "group_not_found");
    expect(await ok(hub.get("/group/needed"))).toMatchObject({ total: needed.length + 1 });
  });

  once.test("keeps a task as long as it holds its unique_key", async () => {
    await using hub = await startHub({ retainTasksMs: MINUTE_MS });
    await hub.addNode("n1");
    const task_id = await done(hub, { unique_key: "k", unique_for_s: 3_600 });
    await pass(hub, HOUR_MS / 2);
    expect(await create(hub, { unique_key: "k" })).toBe(task_id);
    await pass(hub, HOUR_MS);
    expect(await tasks(hub)).toEqual([]);
  });

  once.test("works on a hub that keeps all other tasks forever", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await done(hub, { retain_s: 60 });
    const other = await done(hub);
    await pass(hub, 365 * DAY_MS);
    expect(await tasks(hub)).toEqual([other]);
  });
});

describe.concurrent("--retain-files", () => {
  test("deletes old files of no task and of finished tasks, and their bytes", async () => {
    await using hub = await startHub({ retainFilesMs: DAY_MS });
    await hub.addNode("n1");
    const open = await create(hub);
    const ended = await done(hub);
    const input = await upload(hub, { task_id: open });
    await upload(hub, { task_id: ended });
    const free = await upload(hub);
    await pass(hub, DAY_MS - MINUTE_MS);
    const young = await upload(hub);
    expect(await files(hub)).toHaveLength(4);
    await pass(hub, 2 * MINUTE_MS);
    expect(await files(hub)).toEqual([input, young]);
    await refused(hub.get(`/file/download/${free}`), 404, "file_not_found");
    // From then on it counts from the end of its task.
    await ok(hub.post("/task/cancel", { task_id: open }));
    await pass(hub, MINUTE_MS);
    expect(await files(hub)).toEqual([input, young]);
    await pass(hub, DAY_MS);
    expect(await files(hub)).toEqual([]);
    expect(await tasks(hub)).toEqual([open, ended]);
  });
});

test("status says what the data takes, and warns when that is half of the disk", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  await done(hub);
  await upload(hub);
  const { storage } = await ok(hub.get("/status"));
  expect(storage).toMatchObject({ files_bytes: 5, finished_tasks: 1 });
  expect(Number(record(storage)["database_bytes"])).toBeGreaterThan(0);
  const size = { databaseBytes: 60, filesBytes: 40, finishedTasks: 1 };
  expect(takesHalf({ ...size, freeBytes: 101 })).toBe(false);
  expect(takesHalf({ ...size, freeBytes: 100 })).toBe(true);
  expect(takesHalf({ ...size, freeBytes: null })).toBe(false);
});
