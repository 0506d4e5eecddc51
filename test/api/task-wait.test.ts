/** Waiting for several tasks (task/wait), and tasks that are created for one node (for_node). */
import { describe, expect, test } from "bun:test";
import { startHub } from "../support/hub.ts";
import { addKey, as } from "./key-commands.ts";
import { NO_ID, VARIANTS, badFields, list, ok, pick, refused, until } from "./scene.ts";

describe("task/wait", () => {
  test("answers at once when the tasks have ended, in the words of the variant", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const ids = [await hub.addTaskOf("n1"), await hub.addTaskOf("n1"), await hub.addTask()];
    await ok(hub.complete(ids[0] ?? "", "n1"));
    await ok(hub.post("/task/fail", { task_id: ids[1], node_id: "n1", error: "no luck", retry: false }));
    for (const variant of VARIANTS) {
      const asked = ids.toReversed().join();
      const body = await ok(hub.get(`/task/wait?task_ids=${asked}`, { variant }));
      expect(body["done"]).toBe(false);
      expect(list(body, "tasks")).toMatchObject([
        { task_id: ids[2], status: variant === "A" ? "open" : "pending", assigned_node: null, failure: null },
        { task_id: ids[1], status: "failed", failure: { kind: "failed", message: "no luck" } },
        { task_id: ids[0], status: "completed", title: "t", assigned_node: "n1" },
      ]);
      expect(await ok(hub.get(`/task/wait?task_ids=${asked}&until=any&wait=30`))).toMatchObject({
        done: true,
      });
      const both = `${ids[0]}, ${ids[1]},${ids[0]}`;
      expect(list(await ok(hub.get(`/task/wait?task_ids=${both}&wait=30`)), "tasks")).toHaveLength(2);
    }
  });

  test("waits for any, and for all", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    const ids = [await hub.addTaskOf("n1"), await hub.addTaskOf("n1")];
    const wait = (until: string) => ok(hub.get(`/task/wait?task_ids=${ids.join()}&until=${until}&wait=60`));
    const first = wait("any");
    const all = wait("all");
    let allIsOver = false;
    void all.then(() => (allIsOver = true));
    await until("both wait", () => hub.waits(2));
    await ok(hub.complete(ids[0] ?? "", "n1"));
    expect(pick(await first, "tasks", "status")).toEqual(["completed", "assigned"]);
    expect(allIsOver).toBe(false);
    await ok(hub.post("/task/cancel", { task_id: ids[1] }));
    expect(await all).toMatchObject({ done: true, tasks: [{ status: "completed" }, { status: "failed" }] });
  });

  test("refuses what there is not, and too many", async () => {
    await using hub = await startHub();
    const [known = ""] = await hub.addTasks(1);
    await refused(hub.get(`/task/wait?task_ids=${known},${NO_ID}`), 404, "task_not_found");
    const waiting = hub.get(`/task/wait?task_ids=${known}&wait=60`);
    await until("it waits", () => hub.waits(1));
    await ok(hub.admin("/task/delete", { task_id: known }));
    await refused(waiting, 404, "task_not_found");
    const many = Array.from({ length: 101 }, (_, i) => `t${i}`).join();
    await badFields(hub.get(`/task/wait?task_ids=${many}`), ["task_ids"]);
    await badFields(hub.get("/task/wait"), ["task_ids"]);
    await badFields(hub.get(`/task/wait?task_ids=${known}&until=some&wait=301`), ["until", "wait"]);
  });
});

describe("for_node", () => {
  test("on a strict hub needs a bound key, of any node, or the administrator key", async () => {
    await using hub = await startHub({ isStrict: true });
    const [n1, n2] = [
      as(await addKey(hub, "k1", { node_id: "n1" })),
      as(await addKey(hub, "k2", { node_id: "n2" })),
    ];
    await ok(hub.post("/node/register", { node_id: "n1", name: "One" }, n1));
    const fields = { title: "t", description: "d", for_node: "n1" };
    await refused(hub.post("/task/create", fields), 403, "key_not_bound");
    await refused(
      hub.post("/task/create", { ...fields, creator_node: "n1" }, n2),
      403,
      "key_bound_to_other_node",
    );
    for (const [made, assigned_node] of [
      [hub.admin("/task/create", fields), "n1"],
      [hub.post("/task/create", { ...fields, creator_node: "n1" }, n1), "n1"],
      [hub.post("/task/create", fields, n2), null], // it waits in line
    ] as const)
      expect(await ok(made)).toMatchObject({ assigned_node });
  });

  test("assigns the task to the node in the commit that creates it, on both variants", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1", "n2"]);
    for (const variant of VARIANTS) {
      const fields = { title: "t", description: "d", task_type: "any", for_node: "n2" };
      const made = await ok(hub.post("/task/create", fields, { variant }));
      expect(made).toMatchObject({ assigned_node: "n2", task: { assigned_node: "n2", started_at: null } });
      const taskId = String(made["task_id"]);
      expect(await hub.eventKinds(taskId)).toEqual(["task.created", "task.assigned"]);
      expect((await ok(hub.post("/task/next", { node_id: "n1" })))["task"]).toBeNull();
      expect(await ok(hub.post("/task/next", { node_id: "n2" }))).toMatchObject({
        task: { task_id: taskId },
      });
    }
  });

  test("needs a node that is online and takes tasks, and a task that is ready; else nothing is created", async () => {
    await using hub = await startHub();
    await hub.addNodes(["gone", "full", "n1"]);
    await ok(hub.post("/node/leave", { node_id: "gone" }));
    await ok(hub.post("/node/drain", { node_id: "full", drain: true }));
    const create = (fields: Readonly<Record<string, unknown>>) =>
      hub.post("/task/create", { title: "t", description: "d", ...fields });
    await refused(create({ for_node: "nobody" }), 404, "node_not_found");
    await refused(create({ for_node: "gone" }), 409, "node_offline");
    await refused(create({ for_node: "full" }), 409, "node_draining");
    await refused(create({ for_node: "n1", delay_s: 60 }), 409, "task_not_ready");
    expect((await ok(hub.get("/task/stats")))["total"]).toBe(0);
    const before = await hub.addTask();
    await refused(create({ for_node: "n1", depends_on: [before] }), 409, "task_not_ready");
    const keyed = { headers: { "Idempotency-Key": "once" } };
    const fields = { title: "t", description: "d", for_node: "n1" };
    const first = await ok(hub.post("/task/create", fields, keyed));
    expect(await ok(hub.post("/task/create", fields, keyed))).toEqual(first);
    expect(await hub.taskOf(String(first["task_id"]))).toMatchObject({ creator_verified: false });
    await hub.send("op", "n1");
    expect(await hub.receive("n1")).toHaveLength(1);
  });
});
