/**
 * Schedules over HTTP: what is stored and refused, that a task comes at each time however often the hub restarts, and whose
 * schedules a bound key changes. The tests set the hub's clock.
 */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { SCHEDULES_OF_NODE_MAX, SCHEDULES_REWIND_EVERY_MS } from "../../src/domain/limits.ts";
import { HOUR_MS, MINUTE_MS, isoTime } from "../../src/lib/clock.ts";
import { ADMIN_KEY, TestClock, type TestHub, newDataDir, startHub, onlyOnce } from "../support/hub.ts";
import { as } from "./key-commands.ts";
import { VARIANTS, addNode, complete, eventKinds, list, ok, record, refused, taskOf } from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

const TASK = { title: "Back up the wiki", description: "Into the archive." };
const HOURLY = { name: "hourly", every_s: 3_600, task: TASK };

async function put(hub: TestHub, fields: Fields = {}): Promise<Fields> {
  return record((await ok(hub.post("/schedule/put", { ...HOURLY, ...fields })))["schedule"]);
}

async function schedules(hub: TestHub): Promise<readonly Fields[]> {
  return list(await ok(hub.get("/schedule/list")), "schedules");
}

async function tasksOf(hub: TestHub): Promise<readonly Fields[]> {
  return list(await ok(hub.get("/task/list")), "tasks").toReversed();
}

/** Time passes, and the hub does its periodic work. */
async function pass(hub: TestHub, ms: number): Promise<void> {
  hub.clock.pass(ms);
  await hub.sweep();
}

describe.concurrent("a schedule", () => {
  test("creates its task at each time, which shows the schedule", async () => {
    await using hub = await startHub();
    const begun = await put(hub, { overlap: "queue", task: { ...TASK, task_type: "backup", priority: 0 } });
    await pass(hub, HOUR_MS + MINUTE_MS / 2);
    await pass(hub, HOUR_MS);
    const tasks = await tasksOf(hub);
    const times = [0, HOUR_MS].map((ms) => isoTime(Date.parse(String(begun["next_at"])) + ms));
    expect(tasks).toMatchObject(
      times.map((at) => ({ title: TASK.title, task_type: "backup", schedule: { name: "hourly", at } })),
    );
    expect(await schedules(hub)).toMatchObject([{ last_task_id: tasks[1]?.["task_id"], paused: false }]);
    await ok(hub.post("/task/create", TASK));
    expect((await tasksOf(hub))[2]).not.toContainKey("schedule");
  });

  once.test("skips a time while its task is unfinished, and says so once in the log of events", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    await put(hub);
    await pass(hub, HOUR_MS);
    await pass(hub, HOUR_MS);
    const [first, ...more] = await tasksOf(hub);
    expect(more).toEqual([]);
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    const task_id = String(first?.["task_id"]);
    await ok(hub.post("/task/claim", { task_id, node_id: "n1" }));
    await complete(hub, task_id, "n1");
    await pass(hub, HOUR_MS);
    expect(await tasksOf(hub)).toHaveLength(2);
    const events = list(await ok(hub.get("/events?since=0&kind=schedule.skipped")), "events");
    expect(events.map(({ data }) => data)).toMatchObject([{ name: "hourly", reason: "overlap" }]);
  });

  once.test(
    "skips a time while the result of its task waits for a review, which may open the task again",
    async () => {
      await using hub = await startHub();
      await addNode(hub, "n1");
      await addNode(hub, "boss");
      await put(hub, { task: { ...TASK, creator_node: "boss", review: "creator" } });
      await pass(hub, HOUR_MS);
      const [task] = await tasksOf(hub);
      const task_id = String(task?.["task_id"]);
      await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
      await ok(hub.post("/task/claim", { task_id, node_id: "n1" }));
      await ok(complete(hub, task_id, "n1"));
      await pass(hub, HOUR_MS);
      expect(await tasksOf(hub)).toHaveLength(1);
      await ok(hub.post("/task/review", { task_id, node_id: "boss", verdict: "pass" }));
      await pass(hub, HOUR_MS);
      expect(await tasksOf(hub)).toHaveLength(2);
    },
  );

  test("fires once for each time, however often its hub restarts between them", async () => {
    const dataDir = newDataDir();
    const clock = new TestClock();
    try {
      for (let restart = 0; restart < 10; restart++) {
        await using hub = await startHub({ dataDir, clock });
        if (restart === 0) await put(hub, { overlap: "queue" });
        await pass(hub, HOUR_MS / 4);
        await hub.sweep();
      }
      await using hub = await startHub({ dataDir, clock });
      expect(await tasksOf(hub)).toHaveLength(2);
    } finally {
      rmSync(dataDir, { recursive: true });
    }
  });

  test("is replaced by a put; the same put again neither moves its time nor logs an event", async () => {
    await using hub = await startHub();
    const first = await put(hub);
    hub.clock.pass(MINUTE_MS);
    expect(await put(hub)).toEqual(first);
    const changed = await put(hub, { task: { ...TASK, title: "Back up the mail" } });
    expect(changed).toMatchObject({ next_at: first["next_at"], task: { title: "Back up the mail" } });
    expect((await eventKinds(hub)).filter((kind) => String(kind).startsWith("schedule."))).toEqual([
      "schedule.saved",
      "schedule.saved",
    ]);
    expect((await put(hub, { paused: true }))["next_at"]).toBeNull();
    await pass(hub, 2 * HOUR_MS);
    expect(await tasksOf(hub)).toEqual([]);
  });

  once.test("comes again when the clock was set back by years, also over a restart", async () => {
    const dataDir = newDataDir();
    const clock = new TestClock();
    clock.jump(730 * 24 * HOUR_MS);
    try {
      {
        await using hub = await startHub({ dataDir, clock });
        await put(hub);
        await put(hub, { name: "other" });
        clock.jump(-730 * 24 * HOUR_MS);
        await pass(hub, SCHEDULES_REWIND_EVERY_MS);
        await pass(hub, HOUR_MS);
        expect(await tasksOf(hub)).toHaveLength(2);
        clock.jump(730 * 24 * HOUR_MS);
        await hub.sweep();
        await put(hub, { name: "third" });
      }
      clock.jump(-730 * 24 * HOUR_MS);
      await using hub = await startHub({ dataDir, clock });
      await pass(hub, SCHEDULES_REWIND_EVERY_MS);
      await pass(hub, HOUR_MS);
      const names = (await tasksOf(hub)).map((task) => record(task["schedule"])["name"]);
      expect(names.filter((name) => name === "third")).toHaveLength(1);
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  once.test("runs by hand, also while it is paused, and in a batch with its put", async () => {
    await using hub = await startHub();
    await put(hub, { paused: true });
    const { task } = await ok(hub.post("/schedule/run", { name: "hourly" }));
    expect(task).toMatchObject({ schedule: { name: "hourly", at: null }, ready: true });
    const requests = [
      { path: "schedule/put", body: { ...HOURLY, name: "other" } },
      { path: "schedule/run", body: { name: "other" } },
    ];
    for (const variant of ["A", "B"] as const) {
      const { answers } = await ok(hub.post("/batch", { requests }, { variant }));
      expect(answers).toMatchObject([{ status: 200 }, { status: 200 }]);
    }
    expect(await tasksOf(hub)).toHaveLength(3);
  });

  once.test.each(VARIANTS)(
    "that is listed says everything of its task, and can be put back as it is (%s)",
    async (variant) => {
      await using hub = await startHub();
      const requires = { capabilities: ["cuda12"], resources: { gpu: 1 } };
      const task = { ...TASK, requires, limit_key: "api", group: "nightly", tags: ["a"], max_attempts: 3 };
      await ok(hub.post("/schedule/put", { name: "hourly", cron: "@hourly", task }, { variant }));
      const listed = async () => list(await ok(hub.get("/schedule/list", { variant })), "schedules");
      const [before] = await listed();
      expect(before).toMatchObject({ task: { requires, limit_key: "api", group: "nightly", tags: ["a"] } });
      await ok(hub.post("/schedule/put", { ...before, paused: true }, { variant }));
      await ok(hub.post("/schedule/put", { ...before, paused: false }, { variant }));
      expect(await listed()).toEqual([{ ...before, updated_at: expect.any(String) }]);
      const { task: created } = await ok(hub.post("/schedule/run", { name: "hourly" }, { variant }));
      expect(created).toMatchObject({ requires, limit_key: "api" });
    },
  );

  once.test("on B its task goes to a node at once", async () => {
    await using hub = await startHub({ variants: ["A", "B"] });
    await addNode(hub, "n1", {}, "B");
    await ok(hub.post("/schedule/put", HOURLY, { variant: "B" }));
    hub.clock.pass(HOUR_MS);
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    await hub.sweep();
    expect(await tasksOf(hub)).toMatchObject([{ assigned_node: "n1" }]);
    const { task_id } = await ok(hub.post("/schedule/run", { name: "hourly" }));
    expect(await taskOf(hub, String(task_id))).toMatchObject({ assigned_node: "n1" });
  });

  once.test("on B its task goes to no node whose budget is used up", async () => {
    await using hub = await startHub({ variants: ["A", "B"] });
    await addNode(hub, "n1", {}, "B");
    await addNode(hub, "n2", {}, "B");
    const budget = { scope: "node", value: "n1", per: "day", tokens: 1 };
    await ok(hub.admin("/budget/set", budget));
    const { task_id: spender } = await ok(hub.post("/task/create", TASK));
    await ok(hub.post("/task/claim", { task_id: spender, node_id: "n1" }));
    const usage = [{ seq: 1, model: "m", input_tokens: 5, output_tokens: 5 }];
    await ok(hub.post("/task/extend", { task_id: spender, node_id: "n1", usage }));
    await ok(hub.post("/schedule/put", HOURLY, { variant: "B" }));
    for (let i = 0; i < 3; i++) {
      const { task_id } = await ok(hub.post("/schedule/run", { name: "hourly" }));
      expect((await taskOf(hub, String(task_id)))["assigned_node"]).toBe("n2");
    }
    await ok(hub.post("/node/drain", { node_id: "n2", drain: true }));
    const { task_id } = await ok(hub.post("/schedule/run", { name: "hourly" }));
    expect((await taskOf(hub, String(task_id)))["assigned_node"]).toBeNull();
  });

  test("is deleted; its tasks stay", async () => {
    await using hub = await startHub();
    await put(hub);
    await pass(hub, HOUR_MS);
    await ok(hub.post("/schedule/delete", { name: "hourly" }));
    await pass(hub, HOUR_MS);
    expect(await schedules(hub)).toEqual([]);
    expect(await tasksOf(hub)).toHaveLength(1);
    for (const path of ["run", "delete"])
      await refused(hub.post(`/schedule/${path}`, { name: "hourly" }), 404, "schedule_not_found");
  });

  once.test("with wrong fields is refused, each field with its reason", async () => {
    await using hub = await startHub();
    const cases: readonly [Fields, string][] = [
      [{ cron: "0 9 * * *" }, "every_s"],
      [{ every_s: undefined }, "cron"],
      [{ every_s: undefined, cron: "* * * * * *" }, "cron"],
      [{ every_s: undefined, cron: "@daily", tz: "Mars/Base" }, "tz"],
      [{ tz: "UTC" }, "tz"],
      [{ every_s: 0 }, "every_s"],
      [{ name: "" }, "name"],
      [{ task: { ...TASK, depends_on: [] } }, "task.depends_on"],
      [{ task: { ...TASK, unique_key: "one" } }, "task.unique_key"],
      [{ task: { ...TASK, titel: "x" } }, "task.titel"],
      [{ task: null }, "task"],
      [{ task: [TASK] }, "task"],
      [{ task: { ...TASK, description: "x".repeat(16_385) } }, "task.description"],
      [{ overlap: "maybe" }, "overlap"],
    ];
    for (const [fields, path] of cases) {
      const answer = await hub.post("/schedule/put", { ...HOURLY, ...fields });
      expect([path, answer.status]).toEqual([path, 400]);
      expect(list(answer.body, "errors").map((error) => error["path"])).toContain(path);
    }
    expect(await schedules(hub)).toEqual([]);
  });

  once.test("whose cron expression is wrong is refused, with the field that is wrong", async () => {
    await using hub = await startHub();
    const cases: readonly [cron: string, message: RegExp][] = [
      ["60 * * * *", /minute .*field 1/],
      ["H 5 * * *", /minute .*field 1/],
      ["0 24 * * *", /hour .*field 2/],
      ["0 0 L * *", /day of the month .*field 3/],
      ["0 0 15W * 1", /day of the month .*field 3/],
      ["0 0 ? * 1", /day of the month .*field 3/],
      ["0 0 1 NOV-FEB *", /month .*field 4/],
      ["0 0 * * 5#3", /day of the week .*field 5/],
      ["0 0 * * FRI-MON", /day of the week .*field 5/],
      ["0 0 0 * * *", /five fields/],
      ["@every 5m", /five fields/],
      ["@reboot", /five fields/],
      ["0 0 30 2 *", /8 years/],
    ];
    for (const [cron, message] of cases) {
      const { status, body } = await hub.post("/schedule/put", { ...HOURLY, every_s: undefined, cron });
      expect([cron, status, body["errors"]]).toEqual([
        cron,
        400,
        [{ path: "cron", message: expect.stringMatching(message) }],
      ]);
    }
  });

  once.test("of one node cannot be changed with the key of another, and each key has its share", async () => {
    await using hub = await startHub();
    const keys: string[] = [];
    for (const node_id of ["n1", "n2"]) {
      const added = await ok(
        hub.post("/key/add", { name: node_id, node_id }, { headers: { "X-Admin-Key": ADMIN_KEY } }),
      );
      keys.push(String(added["secret"]));
    }
    const [n1 = "", n2 = ""] = keys;
    const saved = await ok(hub.post("/schedule/put", HOURLY, as(n1)));
    expect(saved["schedule"]).toMatchObject({ task: { creator_node: "n1" } });
    for (const path of ["put", "run", "delete"])
      await refused(hub.post(`/schedule/${path}`, HOURLY, as(n2)), 403, "key_bound_to_other_node");
    await pass(hub, HOUR_MS);
    expect(await tasksOf(hub)).toMatchObject([{ creator_node: "n1", creator_verified: true }]);
    for (let n = 1; n < SCHEDULES_OF_NODE_MAX; n++)
      await ok(hub.post("/schedule/put", { ...HOURLY, name: `s${n}` }, as(n1)));
    await refused(hub.post("/schedule/put", { ...HOURLY, name: "more" }, as(n1)), 409, "schedules_limit");
    await ok(hub.post("/schedule/put", { ...HOURLY, name: "s1" }, as(n1)));
    await ok(hub.post("/schedule/put", { ...HOURLY, name: "more" }, as(n2)));
  });

  once.test("of a node without room in its quota skips the time", async () => {
    await using hub = await startHub({ quotaTasks: 1 });
    const added = await ok(
      hub.post("/key/add", { name: "n1", node_id: "n1" }, { headers: { "X-Admin-Key": ADMIN_KEY } }),
    );
    await ok(hub.post("/schedule/put", { ...HOURLY, overlap: "queue" }, as(String(added["secret"]))));
    await pass(hub, HOUR_MS);
    await pass(hub, HOUR_MS);
    expect(await tasksOf(hub)).toHaveLength(1);
    const events = list(await ok(hub.get("/events?since=0&kind=schedule.skipped")), "events");
    expect(events.map(({ data }) => record(data)["reason"])).toEqual(["quota_exceeded"]);
  });
});
