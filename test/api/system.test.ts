/** The endpoints of the hub itself: status, events, poll, pg/diagnostic. */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { MINUTES_SAVE_EVERY_MS } from "../../src/domain/limits.ts";
import {
  ADMIN_KEY,
  SECRET,
  TestClock,
  type TestHub,
  newDataDir,
  onlyOnce,
  startHub,
} from "../support/hub.ts";
import { ISO, RESULT, VARIANTS, badFields, list, ok, pick, record, until } from "./scene.ts";

const once = onlyOnce(import.meta.url);

async function cursorOf(hub: TestHub): Promise<number> {
  return Number((await ok(hub.get("/events?since=0&limit=1000")))["cursor"]);
}

describe("stats/minutes", () => {
  /** What every hub has counted so far is saved: each shows its own numbers at once, and those of others then. */
  async function minutesOf(hub: TestHub, last = 60): Promise<Record<string, unknown>> {
    hub.clock.pass(MINUTES_SAVE_EVERY_MS);
    await hub.sweep();
    return ok(hub.get(`/stats/minutes?last=${last}`));
  }

  test("counts changes minute by minute, across a restart", async () => {
    const dataDir = newDataDir();
    const clock = new TestClock(); // of both hubs: the second must not start before what the first has seen
    try {
      const database = await (async () => {
        await using hub = await startHub({ dataDir, clock });
        await hub.addNodes(["n1", "n2"]);
        await ok(hub.complete(await hub.addTaskOf("n1", { lux_reward: 1.5 }), "n1"));
        const failed = await hub.addTaskOf("n2");
        await ok(hub.post("/task/fail", { task_id: failed, node_id: "n2", error: "no", retry: false }));
        const { task_id } = await ok(hub.post("/task/create", { title: "t", description: "d" }));
        await ok(hub.post("/task/cancel", { task_id }));
        await hub.send("n1", "n2");
        await ok(hub.post("/message/broadcast", { from_node: "n1", content: "all" }));
        const { minutes, total } = await minutesOf(hub);
        expect(total).toMatchObject({
          tasks_created: 3,
          tasks_started: 2,
          tasks_completed: 1,
          attempts_failed: 1,
          tasks_failed: 1,
          tasks_cancelled: 1,
          lux_paid: 1.5,
          messages_sent: 2,
          time_to_start: { count: 2 },
          time_to_finish: { count: 1 },
        });
        const all = list({ minutes }, "minutes");
        expect(all).toHaveLength(60);
        expect(all.map(({ at }) => at)).toEqual(all.map(({ at }) => at).toSorted());
        for (const { at } of all) expect(at).toMatch(/:00\.000Z$/);
        expect(all.reduce((sum, one) => sum + Number(one["tasks_created"]), 0)).toBe(3);
        await hub.addTask(); // not saved before the hub ends
        return hub.database;
      })();
      if (database === null) {
        await using hub = await startHub({ dataDir, clock });
        expect((await ok(hub.get("/stats/minutes")))["total"]).toMatchObject({
          tasks_created: 4,
          messages_sent: 2,
        });
      }
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  once.test("is open on A, answers as many minutes as are asked for, and forgets old ones", async () => {
    await using hub = await startHub();
    await hub.addTask();
    expect(list(await minutesOf(hub, 5), "minutes")).toHaveLength(5);
    expect((await hub.get("/stats/minutes", { headers: { "X-Matrix-Secret": null } })).status).toBe(200);
    for (const last of ["0", "61", "x"]) await badFields(hub.get(`/stats/minutes?last=${last}`), ["last"]);
    hub.clock.pass(70 * 60_000);
    expect((await minutesOf(hub))["total"]).toMatchObject({ tasks_created: 0 });
  });
});

once.test("does its periodic work by itself, each second", async () => {
  await using hub = await startHub({ variants: ["A"] });
  await hub.addNode("silent");
  hub.clock.pass(200_000);
  await until(
    "a sweep has looked at the nodes",
    async () => (await hub.nodeOf("silent"))["status"] === "offline",
  );
});

once.test("a hub with a name has it in its status, its metrics and its page", async () => {
  await using hub = await startHub({ name: "prod-eu" });
  expect(await ok(hub.get("/status"))).toMatchObject({ name: "prod-eu" });
  const headers = { "X-Matrix-Secret": SECRET };
  const metrics = await (await fetch(`${hub.base()}/metrics`, { headers })).text();
  expect(metrics).toMatch(/^luxhub_build_info\{.*name="prod-eu".*\} 1$/m);
  const page = await (await fetch(`${hub.base()}/`)).text();
  expect(page).toContain('<meta name="application-name" content="prod-eu">');
  await using other = await startHub();
  expect(await (await fetch(`${other.base()}/`)).text()).not.toContain("application-name");
});

describe("status", () => {
  test("counts nodes, tasks and uptime", async () => {
    await using hub = await startHub();
    const empty = await ok(hub.get("/status"));
    expect(empty).toMatchObject({ status: "ok", nodes_count: 0, tasks_count: 0, transport: hub.transport });
    expect(empty["software"]).toMatch(/luxhub/);
    expect(Object.keys(empty).toSorted()).toEqual(
      [
        "nodes_count",
        "software",
        "name",
        "status",
        "success",
        "tasks_count",
        "transport",
        "storage",
        "uptime",
        "variant",
        "version",
      ].toSorted(),
    );
    await hub.addNodes(["n1", "n2"]);
    await ok(hub.complete(await hub.addTaskOf("n1"), "n1"));
    await hub.addTask();
    expect(empty["name"]).toBeNull();
    hub.clock.pass(100_000);
    const later = await ok(hub.get("/status"));
    expect(later).toMatchObject({ nodes_count: 2, tasks_count: 2 });
    const passed = Number(later["uptime"]) - Number(empty["uptime"]);
    expect(passed).toBeGreaterThanOrEqual(100);
    expect(passed).toBeLessThan(200);
  });

  once.test("uptime does not follow a clock that jumps", async () => {
    await using hub = await startHub();
    hub.clock.jump(-3_600_000);
    const { uptime } = await ok(hub.get("/status"));
    expect(Number(uptime)).toBeGreaterThanOrEqual(0);
    expect(Number(uptime)).toBeLessThan(100);
  });
});

describe("events", () => {
  test("record everything that happens, in one order", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTask({ lux_reward: 1, creator_node: "boss" });
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
    await ok(hub.admin("/task/revoke", { task_id: taskId }));
    await ok(hub.post("/task/assign", { task_id: taskId, node_id: "n1" }));
    await ok(hub.complete(taskId, "n1"));
    await ok(hub.post("/signin", { node_id: "n1" }));
    const messageId = await hub.send("op", "n1", { require_ack: true });
    await hub.receive("n1");
    await ok(hub.post("/message/ack", { node_id: "n1", message_id: messageId }));
    const form = new FormData();
    form.set("file", new File(["x"], "x.txt"));
    const { file_id } = await ok(hub.post("/file/upload", form));
    await ok(hub.post("/file/delete", { file_id }));
    await ok(hub.admin("/task/delete", { task_id: taskId }));
    const body = await ok(hub.get("/events?since=0"));
    const events = list(body, "events");
    expect(events.map((event) => event["kind"])).toEqual([
      ...hub.startsOf(),
      "node.registered",
      "node.online",
      "task.created",
      "task.assigned",
      "task.revoked",
      "task.assigned",
      "task.completed",
      "lux.paid",
      "lux.signin",
      "message.sent",
      "message.acked",
      "file.uploaded",
      "file.deleted",
      "task.deleted",
    ]);
    const ids = events.map((event) => Number(event["id"]));
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    expect(new Set(ids).size).toBe(ids.length);
    expect(body["cursor"]).toBe(ids.at(-1) ?? 0);
    for (const event of events) {
      expect(Object.keys(event).toSorted()).toEqual([
        "at",
        "data",
        "id",
        "kind",
        "node_id",
        "task_id",
        "verified",
      ]);
      expect(event["at"]).toMatch(ISO);
      const concernsTask = /^task\.|lux\.paid/.test(String(event["kind"]));
      expect(event["task_id"]).toBe(concernsTask ? taskId : null);
    }
    const byNode = events.filter((event) => event["node_id"] === "n1").map((event) => event["kind"]);
    expect(byNode).toContain("task.completed");
    expect(byNode).toContain("message.sent");
  });

  test("continue after a cursor: exclusive, ascending, no gap, no repeat", async () => {
    await using hub = await startHub();
    for (let i = 0; i < 10; i++) await hub.addTask();
    const seen: unknown[] = [];
    let cursor = 0;
    for (;;) {
      const body = await ok(hub.get(`/events?since=${cursor}&limit=3`));
      const ids = pick(body, "events", "id");
      if (ids.length === 0) {
        expect(body["cursor"]).toBe(cursor);
        break;
      }
      expect(body["cursor"]).toBe(Number(ids.at(-1)));
      seen.push(...ids);
      cursor = Number(body["cursor"]);
    }
    expect(seen).toEqual(pick(await ok(hub.get("/events?since=0")), "events", "id"));
    expect(seen).toHaveLength(hub.size + 10);
  });

  once.test("without since are the newest, ascending, 100 by default", async () => {
    await using hub = await startHub();
    await hub.addTasks(110);
    const all = pick(await ok(hub.get("/events?since=0&limit=1000")), "events", "id");
    expect(all).toHaveLength(hub.size + 110);
    const newest = await ok(hub.get("/events"));
    expect(pick(newest, "events", "id")).toEqual(all.slice(-100));
    expect(newest["cursor"]).toBe(Number(all.at(-1)));
    expect(pick(await ok(hub.get("/events?limit=2")), "events", "id")).toEqual(all.slice(-2));
    expect(pick(await ok(hub.get("/events?since=0")), "events", "id")).toEqual(all.slice(0, 100));
  });

  once.test("filter by kind", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const taskId = await hub.addTaskOf("n1");
    await hub.addTask();
    const kinds = async (query: string) => pick(await ok(hub.get(`/events?${query}`)), "events", "kind");
    expect(await kinds("since=0&kind=task.created")).toEqual(["task.created", "task.created"]);
    expect(await kinds("kind=task.created&limit=1")).toEqual(["task.created"]);
    const [assigned] = list(await ok(hub.get("/events?kind=task.assigned")), "events");
    expect(assigned).toMatchObject({ task_id: taskId, node_id: "n1" });
    const none = await ok(hub.get("/events?since=0&kind=node.offline"));
    expect(none).toMatchObject({ events: [], cursor: 0 });
  });

  once.test.each(VARIANTS)("refuse values out of range on %s", async (variant) => {
    await using hub = await startHub({ variants: [variant] });
    const attempt = (query: string) => hub.get(`/events?${query}`, { variant });
    for (const since of ["-1", "x", "1.5"]) await badFields(attempt(`since=${since}`), ["since"]);
    for (const limit of ["0", "1001", "-1", "x"]) await badFields(attempt(`limit=${limit}`), ["limit"]);
    for (const kind of ["nope", "task", "task.*"]) await badFields(attempt(`kind=${kind}`), ["kind"]);
    await ok(attempt("since=999999999&limit=1000&kind=transport.changed"));
  });

  test("continue with greater ids after a restart, which is an event itself", async () => {
    const dataDir = newDataDir();
    try {
      let cursor = 0;
      {
        await using hub = await startHub({ dataDir });
        await hub.addTask();
        cursor = await cursorOf(hub);
      }
      await using hub = await startHub({ dataDir });
      await hub.addTask();
      const kinds = [...hub.startsOf(), "task.created"];
      expect(await hub.eventKinds()).toEqual([...kinds, ...kinds]);
      expect(pick(await ok(hub.get(`/events?since=${cursor}`)), "events", "kind")).toEqual(kinds);
    } finally {
      rmSync(dataDir, { recursive: true });
    }
  });
});

describe("poll", () => {
  test("answers existing task events at once, and only task events", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await hub.send("op", "n1");
    const taskId = await hub.addTaskOf("n1");
    await ok(hub.post("/signin", { node_id: "n1" }));
    const body = await ok(hub.get("/poll?since=0&timeout=60"));
    const events = list(body, "events");
    expect(events.map((event) => [event["kind"], event["task_id"]])).toEqual([
      ["task.created", taskId],
      ["task.assigned", taskId],
    ]);
    expect(body["cursor"]).toBe(Number(events.at(-1)?.["id"]));
  });

  test("blocks until the first event, from now or from a cursor", async () => {
    await using hub = await startHub();
    await hub.addTask({ title: "before" });
    const cursor = await cursorOf(hub);
    const polls = [
      hub.get(`/poll?since=${cursor}&timeout=60`),
      hub.get(`/poll?since=${cursor}&timeout=60`, { variant: "B" }),
    ];
    let answered = false;
    const fromNow = hub.get("/poll?timeout=60").finally(() => (answered = true));
    await ok(hub.get("/status")); // came later, so the others wait by now
    await hub.addNode("n1"); // no task event: it answers nobody
    const taskIds = [await hub.addTask()];
    for (const poll of polls) {
      const body = await ok(poll);
      expect(pick(body, "events", "task_id")).toEqual(taskIds);
      expect(body["cursor"]).toBeGreaterThan(cursor);
    }
    // On a database it may have read the end of the log after that task: its "now" is then later.
    while (!answered) taskIds.push(await hub.addTask());
    const seen = pick(await ok(fromNow), "events", "task_id");
    expect(seen).not.toEqual([]);
    expect(taskIds).toEqual(expect.arrayContaining(seen));
  });

  once.test("answers an empty list and a cursor after its timeout", async () => {
    await using hub = await startHub();
    await hub.addTask();
    const cursor = await cursorOf(hub);
    const started = performance.now();
    expect(await ok(hub.get("/poll?timeout=0.1"))).toEqual({ success: true, events: [], cursor });
    expect(performance.now() - started).toBeGreaterThanOrEqual(90);
    const again = await ok(hub.get(`/poll?since=${cursor}&timeout=0`));
    expect(again).toEqual({ success: true, events: [], cursor });
  });

  once.test("repeated with its cursor misses nothing and repeats nothing", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const seen: unknown[] = [];
    const follow = (async () => {
      let cursor = 0;
      while (seen.length < 90) {
        const body = await ok(hub.get(`/poll?since=${cursor}&timeout=10`));
        seen.push(...pick(body, "events", "id"));
        cursor = Number(body["cursor"]);
      }
    })();
    const work = Array.from({ length: 30 }, async () => {
      const taskId = await hub.addTaskOf("n1");
      const body = { task_id: taskId, node_id: "n1", result: RESULT };
      await ok(hub.post("/task/complete", body));
    });
    await Promise.all([...work, follow]);
    const all = list(await ok(hub.get("/events?since=0&limit=1000")), "events");
    const ofTasks = all.filter((event) => String(event["kind"]).startsWith("task."));
    expect(seen).toEqual(ofTasks.map((event) => event["id"]));
  });

  once.test("refuses values out of range", async () => {
    await using hub = await startHub({ variants: ["A"] });
    for (const timeout of ["301", "-1", "x", "300.5"]) {
      await badFields(hub.get(`/poll?since=-1&timeout=${timeout}`), ["since", "timeout"]);
    }
    await ok(hub.get("/poll?timeout=0"));
  });
});

describe("pg/diagnostic", () => {
  test("describes the store without helping an attacker", async () => {
    await using hub = await startHub();
    await hub.addNode("secret-node");
    for (const variant of VARIANTS) {
      const body = await ok(hub.get("/pg/diagnostic", { variant }));
      expect(body).toMatchObject({ engine: hub.engine, connected: true });
      expect(body["engine_version"]).toMatch(hub.engine === "sqlite" ? /^3\.\d+/ : /^\d\d\.\d+/);
      expect(Number(body["size_bytes"])).toBeGreaterThan(0);
      expect(Number(body["latency_ms"])).toBeGreaterThanOrEqual(0);
      expect(record(body["details"])).toBeDefined();
      const text = JSON.stringify(body);
      for (const word of [
        hub.dataDir,
        tmpdir(),
        SECRET,
        ADMIN_KEY,
        "127.0.0.1",
        hostname(),
        ".db",
        "secret",
      ]) {
        expect([word, text.includes(word)]).toEqual([word, false]);
      }
    }
  });

  test("its size grows with the data", async () => {
    await using hub = await startHub({ variants: ["A"] });
    const size = async () => Number((await ok(hub.get("/pg/diagnostic")))["size_bytes"]);
    // Of what cannot be made small: PostgreSQL compresses long texts, and counts in pages of its own.
    const noise = (): string =>
      Buffer.from(crypto.getRandomValues(new Uint8Array(32 * 1024))).toString("hex");
    // Again and again: on PostgreSQL other suites are in the same database, and may drop much of theirs at the same time.
    await until("it has grown", async () => {
      const before = await size();
      for (let i = 0; i < 4; i++) await hub.addTask({ description: noise() });
      return (await size()) > before + 100_000;
    });
  });
});
