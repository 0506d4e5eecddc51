/** The activity log: one line for each change, the same data as fields, and few lines in a burst. */
import { describe, expect, test } from "bun:test";
import { ACTIVITY_LINES_MAX, LOG_TEXT_MAX_CHARS } from "../../src/domain/limits.ts";
import { MINUTE_MS } from "../../src/lib/clock.ts";
import { type TestHub, startHub } from "../support/hub.ts";
import { until } from "../e2e/program.ts";

type Line = Readonly<Record<string, unknown>>;

/** The lines that tell of an event, without requests. */
function activity(hub: TestHub): Line[] {
  const lines = hub.logged.join("").split("\n").filter(Boolean);
  return lines.map((line): Line => JSON.parse(line)).filter((line) => "event" in line);
}

const messages = (hub: TestHub): unknown[] => activity(hub).map(({ message }) => message);

const RESULT = { problem: "p", improvement: "i", lesson: "l" };

async function create(hub: TestHub, title: string, fields: object = {}): Promise<string> {
  const { body } = await hub.post("/task/create", { title, description: "d", ...fields });
  return String(body["task_id"]);
}

describe("the log tells", () => {
  test("a changed and a deleted node, and the tasks that it gives back", async () => {
    await using hub = await startHub({ alone: "ownHead" });
    await hub.post("/node/register", { node_id: "worker-1", name: "One" });
    await hub.post("/node/register", { node_id: "worker-1", name: "Two", port: 1 });
    const taskId = await create(hub, "Say hello");
    await hub.post("/task/claim", { task_id: taskId, node_id: "worker-1" });
    await hub.admin("/node/delete", { node_id: "worker-1" });
    await until(() => messages(hub).includes("worker-1 deleted"));
    expect(messages(hub)).toContain("worker-1 changed its name, port");
    expect(messages(hub)).toContain(
      `"Say hello" of worker-1 open again, "the node was deleted" (task ${taskId})`,
    );
  });

  test("the life of a task, of a node, a message and a file, each in a line with its fields", async () => {
    await using hub = await startHub({ alone: "ownHead" });
    await hub.post("/node/register", { node_id: "worker-1", name: "Worker One" });
    const taskId = await create(hub, "Say hello", { lux_reward: 2.5, creator_node: "worker-1" });
    await hub.post("/task/claim", { task_id: taskId, node_id: "worker-1" });
    await hub.post("/task/complete", { task_id: taskId, node_id: "worker-1", result: RESULT });
    await hub.post("/signin", { node_id: "worker-1" });
    const sent = await hub.post("/message/send", {
      from_node: "boss",
      to_node: "worker-1",
      content: "top-secret",
    });
    const form = new FormData();
    form.append("file", new File(["abc"], "a.txt"));
    const file = await hub.post("/file/upload", form);
    await hub.admin("/task/delete", { task_id: taskId });
    await until(() => messages(hub).length >= 8);
    expect(messages(hub)).toEqual([
      "worker-1 registered",
      `worker-1 created "Say hello" (task ${taskId})`,
      `worker-1 claimed "Say hello" (task ${taskId})`,
      `worker-1 completed "Say hello" for 2.5 LUX (task ${taskId})`,
      "worker-1 signed in for 10 LUX",
      `boss sent one text to worker-1 (message ${sent.body["message_id"]})`,
      `"a.txt" uploaded, 3 bytes (file ${file.body["file_id"]})`,
      `"Say hello" deleted (task ${taskId})`,
    ]);
    expect(activity(hub)[2]).toMatchObject({
      level: "info",
      event: "task.assigned",
      node_id: "worker-1",
      task_id: taskId,
      title: "Say hello",
      by: "claim",
    });
    expect(activity(hub)[3]).toMatchObject({ event: "task.completed", lux_paid: 2.5 });
    expect(hub.logged.join("")).not.toContain("top-secret");
  });

  test("the offline node and the number of its open tasks, in one warning", async () => {
    await using hub = await startHub({ alone: "ownHead" });
    await hub.post("/node/register", { node_id: "worker-2", name: "Worker Two" });
    await hub.post("/node/register", { node_id: "idle", name: "Idle" });
    for (const title of ["one", "two"]) {
      const taskId = await create(hub, title);
      await hub.post("/task/claim", { task_id: taskId, node_id: "worker-2" });
    }
    hub.clock.pass(4 * MINUTE_MS);
    await hub.sweep();
    await until(() => messages(hub).filter((message) => /offline/.test(String(message))).length >= 2);
    const offline = activity(hub).filter(({ event }) => event === "node.offline");
    expect(offline.map(({ message }) => message).toSorted()).toEqual([
      "idle offline",
      "worker-2 offline, 2 tasks open again",
    ]);
    expect(offline.find(({ node_id }) => node_id === "worker-2")).toMatchObject({
      level: "warn",
      tasks_requeued: 2,
    });
    expect(messages(hub).join()).not.toContain("of worker-2 back");
  });

  test("a node that left, once, and without a warning", async () => {
    await using hub = await startHub({ alone: "ownHead" });
    await hub.post("/node/register", { node_id: "worker-1", name: "One" });
    const taskId = await create(hub, "Say hello");
    await hub.post("/task/claim", { task_id: taskId, node_id: "worker-1" });
    await hub.post("/node/leave", { node_id: "worker-1" });
    await hub.admin("/task/delete", { task_id: taskId });
    await until(() => messages(hub).includes(`"Say hello" deleted (task ${taskId})`));
    expect(messages(hub).slice(3)).toEqual([
      `"Say hello" of worker-1 open again, "the node left" (task ${taskId})`,
      "worker-1 left",
      `"Say hello" deleted (task ${taskId})`,
    ]);
    expect(activity(hub).filter(({ level }) => level !== "info")).toEqual([]);
  });

  test("a message that expired before its recipient received it, as a warning", async () => {
    await using hub = await startHub({ alone: "ownHead", retainMs: MINUTE_MS });
    await hub.post("/node/register", { node_id: "worker-1", name: "One" });
    const { body } = await hub.post("/message/send", {
      from_node: "boss",
      to_node: "worker-1",
      content: "x",
    });
    hub.clock.pass(2 * MINUTE_MS);
    await hub.sweep();
    await until(() => activity(hub).some(({ event }) => event === "message.expired"));
    expect(activity(hub).find(({ event }) => event === "message.expired")).toMatchObject({
      level: "warn",
      message: `worker-1 did not receive or confirm a message of boss: expired (message ${body["message_id"]})`,
    });
  });

  test("a broadcast in one line, and many tasks at once by their number", async () => {
    await using hub = await startHub({ alone: "ownHead" });
    const ids = Array.from({ length: 60 }, (_, i) => `n${i}`);
    for (const node_id of ids) await hub.post("/node/register", { node_id, name: node_id });
    const toldOf = (kind: string): number =>
      activity(hub).reduce((sum, { event, count }) => sum + (event === kind ? Number(count ?? 1) : 0), 0);
    await until(() => toldOf("node.registered") === ids.length); // else the broadcast would be counted with them
    const sent = await hub.post("/message/broadcast", {
      from_node: "boss",
      content: "hear, hear",
      type: "alert",
    });
    const ofBroadcasts = (): Line[] => activity(hub).filter(({ event }) => event === "message.sent");
    await until(() => ofBroadcasts().length > 0);
    expect(ofBroadcasts()).toEqual([
      expect.objectContaining({
        message: `boss sent one alert to 60 nodes (message ${sent.body["message_id"]})`,
        receivers: 60,
      }),
    ]);
    const told = activity(hub).length;
    await Promise.all(Array.from({ length: 300 }, (_, i) => create(hub, `t${i}`)));
    await until(() => toldOf("task.created") === 300);
    expect(activity(hub).length - told).toBeLessThan(300 / 2);
    expect(messages(hub)).toContainEqual(expect.stringMatching(/^\d+ tasks created$/));
    expect(ACTIVITY_LINES_MAX).toBeLessThan(60);
  });

  test("a title in one line, cut, and without control characters", async () => {
    await using hub = await startHub({ alone: "ownHead" });
    await create(hub, `a\u001b[2J\u009b31m\u202e\n2026 error forged ${"x".repeat(400)}`);
    await until(() => messages(hub).length === 1);
    const [message] = messages(hub);
    expect(message).toMatch(/^"a\\u001b\[2J�31m�\\n2026 error forged x+…" created \(task /);
    expect(String(message).length).toBeLessThan(LOG_TEXT_MAX_CHARS + 100);
  });
});
