/**
 * The balancer: which node gets a task, when, and which tasks it must not assign. offline.test.ts tests how it assigns
 * the tasks of a node that went offline.
 */
import { describe, expect, test } from "bun:test";
import { type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import {
  RESULT,
  addNode,
  addNodes,
  addTask,
  addTaskOf,
  complete,
  eventKinds,
  inBatches,
  list,
  nodeOf,
  ok,
  pick,
  record,
  swept,
  taskOf,
} from "./scene.ts";

const once = onlyOnce(import.meta.url);

/** Creates a task on B; the node it went to. */
async function give(hub: TestHub, fields: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
  const body = await ok(
    hub.post("/task/create", { title: "t", description: "d", ...fields }, { variant: "B" }),
  );
  return body["assigned_node"];
}

async function holderOf(hub: TestHub, taskId: string): Promise<unknown> {
  return (await taskOf(hub, taskId))["assigned_node"];
}

describe("the balancer picks", () => {
  once.test("the node with the fewest unfinished tasks", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["a", "b", "c"]);
    await addTaskOf(hub, "a");
    await addTaskOf(hub, "b");
    expect(await give(hub)).toBe("c");
    const six = [];
    for (let i = 0; i < 6; i++) six.push(await give(hub));
    expect(six.toSorted()).toEqual(["a", "a", "b", "b", "c", "c"]);
  });

  test("among equals, the node that has been idle longest", async () => {
    await using hub = await startHub();
    for (const nodeId of ["a", "b", "c"]) {
      await addNode(hub, nodeId);
      hub.clock.pass(1_000);
    }
    expect(await give(hub)).toBe("a");
    hub.clock.pass(1_000);
    // a works and is done: now b has been idle longest, then c, then a.
    const [task] = list(await ok(hub.get("/task/list?node_id=a")), "tasks");
    await ok(complete(hub, String(task?.["task_id"]), "a"));
    hub.clock.pass(1_000);
    expect([await give(hub), await give(hub), await give(hub)]).toEqual(["b", "c", "a"]);
  });

  once.test(
    "a node whose capabilities include the task's type; a node without capabilities, or a task without a type, fits all",
    async () => {
      await using hub = await startHub();
      await addNode(hub, "coder", { capabilities: "coding,review" });
      await addNode(hub, "painter", { capabilities: ["painting"] });
      expect(await give(hub, { task_type: "painting" })).toBe("painter");
      expect(await give(hub, { task_type: "painting" })).toBe("painter");
      expect(await give(hub, { task_type: "review" })).toBe("coder");
      expect(await give(hub)).toBe("coder");
      expect(await give(hub, { task_type: "cooking" })).toBeNull();
      expect(await give(hub, { task_type: "paint" })).toBeNull();
      await addNode(hub, "any");
      expect(await give(hub, { task_type: "coding" })).toBe("coder"); // "any" was given both that waited
    },
  );

  once.test(
    "a node with auto_assign, which only nodes of B have by default, at each registration",
    async () => {
      await using hub = await startHub();
      const register = async (nodeId: string, variant: "A" | "B", fields: object = {}) => {
        const asked = { node_id: nodeId, name: nodeId, ...fields };
        return record((await ok(hub.post("/node/register", asked, { variant })))["node"])["auto_assign"];
      };
      expect(await register("claims", "A")).toBe(false);
      expect(await register("alone", "B", { auto_assign: false })).toBe(false);
      const waits = await addTask(hub, {}, "B");
      expect(await holderOf(hub, waits)).toBeNull();
      await ok(hub.post("/node/heartbeat", { node_id: "claims" }));
      expect(await ok(hub.post("/task/batch-assign", undefined, { variant: "B" }))).toMatchObject({
        assigned: 0,
      });
      await hub.sweep();
      expect(await holderOf(hub, waits)).toBeNull();
      // It looks for its work itself, and finds that of B too.
      expect(pick(await ok(hub.get("/task/pull?node_id=claims")), "tasks", "task_id")).toEqual([waits]);
      await ok(hub.post("/task/claim", { task_id: waits, node_id: "claims" }));
      expect(await give(hub)).toBeNull();
      expect(await register("worker", "B")).toBe(true);
      expect(await nodeOf(hub, "worker")).toMatchObject({ auto_assign: true, tasks_assigned: 1 });
      expect(await give(hub)).toBe("worker");
      expect(await register("claims", "A", { auto_assign: true })).toBe(true);
      await ok(complete(hub, waits, "claims"));
      expect(await give(hub)).toBe("claims");
      expect(await register("claims", "A")).toBe(false); // what a registration leaves out is not set any more
      expect(await give(hub)).toBe("worker");
    },
  );

  once.test("for a task type with a comma, the node that takes every type", async () => {
    await using hub = await startHub();
    await addNode(hub, "both", { capabilities: "x,y" });
    await addNode(hub, "any");
    expect(await give(hub, { task_type: "x,y" })).toBe("any");
  });

  test("by the exact spelling of the task type", async () => {
    await using hub = await startHub();
    await addNode(hub, "coder", { capabilities: "coding_100%" });
    expect(await give(hub, { task_type: "Coding_100%" })).toBeNull();
    expect(await give(hub, { task_type: "codingX100%" })).toBeNull();
    expect(await give(hub, { task_type: "coding_100%" })).toBe("coder");
  });

  once.test("a node below its max_tasks", async () => {
    await using hub = await startHub();
    await addNode(hub, "small", { max_tasks: 1 });
    await addNode(hub, "large", { max_tasks: 3 });
    const given = [];
    for (let i = 0; i < 6; i++) given.push(await give(hub));
    expect(given.filter((nodeId) => nodeId === "small")).toHaveLength(1);
    expect(given.filter((nodeId) => nodeId === "large")).toHaveLength(3);
    expect(given.slice(4)).toEqual([null, null]);
  });

  once.test("max_tasks limits the balancer, not the node's own claims", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { max_tasks: 1 });
    expect(await give(hub)).toBe("n1");
    const taskId = await addTask(hub);
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
    expect(await nodeOf(hub, "n1")).toMatchObject({ tasks_assigned: 2, max_tasks: 1 });
  });
});

describe("an open task is assigned as soon as", () => {
  once.test("a node registers", async () => {
    await using hub = await startHub();
    const taskId = await addTask(hub, {}, "B");
    expect(await holderOf(hub, taskId)).toBeNull();
    expect(await addNode(hub, "n1", {}, "B")).toMatchObject({ node: { tasks_assigned: 1 } });
    expect(await holderOf(hub, taskId)).toBe("n1");
    expect(await eventKinds(hub, taskId)).toEqual(["task.created", "task.assigned"]);
  });

  test("a node that fits registers, best task first, up to its max_tasks", async () => {
    await using hub = await startHub();
    const low = await addTask(hub, { priority: "low" }, "B");
    const background = await addTask(hub, { priority: "p5" }, "B");
    const other = await addTask(hub, { priority: "high", task_type: "other" }, "B");
    const high = await addTask(hub, { priority: "high", task_type: "mine" }, "B");
    await addNode(hub, "n1", { capabilities: ["mine"], max_tasks: 2 }, "B");
    const holders = [];
    for (const taskId of [high, low, background, other]) holders.push(await holderOf(hub, taskId));
    expect(holders).toEqual(["n1", "n1", null, null]);
  });

  once.test("a node registers again with a higher max_tasks or more capabilities", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { max_tasks: 1, capabilities: ["x"] }, "B");
    const first = await addTask(hub, {}, "B");
    const second = await addTask(hub, {}, "B");
    const typed = await addTask(hub, { task_type: "y" }, "B");
    expect([await holderOf(hub, first), await holderOf(hub, second)]).toEqual(["n1", null]);
    await addNode(hub, "n1", { max_tasks: 2, capabilities: ["x"] }, "B");
    expect([await holderOf(hub, second), await holderOf(hub, typed)]).toEqual(["n1", null]);
    await addNode(hub, "n1", { capabilities: ["x", "y"] }, "B");
    expect(await holderOf(hub, typed)).toBe("n1");
  });

  test("the node's load falls: a task is completed, revoked or deleted", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { max_tasks: 1 }, "B");
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push(await addTask(hub, {}, "B"));
    const [first = "", second = "", third = ""] = ids;
    await ok(complete(hub, first, "n1", { variant: "B" }));
    expect([await holderOf(hub, second), await holderOf(hub, third)]).toEqual(["n1", null]);
    await ok(hub.admin("/task/delete", { task_id: second }));
    expect(await holderOf(hub, third)).toBe("n1");
    const fourth = await addTask(hub, {}, "B");
    await ok(hub.admin("/task/revoke", { task_id: third }));
    expect([await holderOf(hub, third), await holderOf(hub, fourth)]).toEqual([null, "n1"]);
  });
});

describe("a revoked task", () => {
  once.test("is not assigned to the same node at once", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, {}, "B");
    const revoked = await ok(hub.admin("/task/revoke", { task_id: taskId }, { variant: "B" }));
    expect(revoked).toMatchObject({ status: "pending", assigned_node: null });
    await ok(hub.post("/task/batch-assign", undefined, { variant: "B" }));
    await addNode(hub, "n1", { name: "again" });
    expect(await holderOf(hub, taskId)).toBeNull();
  });

  once.test("goes to another node, and the previous node may claim it", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await addTask(hub, {}, "B");
    await ok(hub.admin("/task/revoke", { task_id: taskId }));
    await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
    await ok(hub.admin("/task/revoke", { task_id: taskId }));
    await addNode(hub, "n2");
    expect(await holderOf(hub, taskId)).toBe("n2");
  });
});

describe("the balancer assigns tasks created through A only on request", () => {
  once.test("not when a node registers or gains room", async () => {
    await using hub = await startHub();
    const onA = await addTask(hub);
    await addNode(hub, "n1", { max_tasks: 1 }, "B");
    const onB = await addTask(hub, {}, "B");
    expect([await holderOf(hub, onA), await holderOf(hub, onB)]).toEqual([null, "n1"]);
    await ok(complete(hub, onB, "n1"));
    expect(await holderOf(hub, onA)).toBeNull();
  });

  once.test("not when its task is revoked", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const taskId = await addTaskOf(hub, "n1");
    const revoked = await ok(hub.admin("/task/revoke", { task_id: taskId }, { variant: "B" }));
    expect(revoked).toMatchObject({ status: "pending", assigned_node: null });
  });

  once.test("not in its periodic round", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const onA = await addTask(hub);
    await swept(hub, ["n1"]); // the round is every 10 s
    expect(await nodeOf(hub, "n1")).toMatchObject({ status: "online", tasks_assigned: 0 });
    expect(await holderOf(hub, onA)).toBeNull();
  });
});

describe("batch-assign of B", () => {
  test("assigns all open tasks, best first, evenly, and counts the rest", async () => {
    await using hub = await startHub();
    const typed = await addTask(hub, { task_type: "none has it" });
    const low = await addTask(hub, { priority: 2 });
    const high = await addTask(hub, { priority: 0 });
    const onB = await addTask(hub, {}, "B");
    await addNode(hub, "n1", { capabilities: ["x"], max_tasks: 2 }); // takes the one of B at once
    await addNode(hub, "n2", { capabilities: ["x"], max_tasks: 1 });
    expect(await holderOf(hub, onB)).toBe("n1");
    const body = await ok(hub.post("/task/batch-assign", undefined, { variant: "B" }));
    expect(body).toEqual({
      success: true,
      assigned: 2,
      pending: 1,
      assignments: [
        { task_id: high, node_id: "n2" },
        { task_id: low, node_id: "n1" },
      ],
    });
    expect(await holderOf(hub, typed)).toBeNull();
    const again = await ok(hub.post("/task/batch-assign", undefined, { variant: "B" }));
    expect(again).toEqual({ success: true, assigned: 0, pending: 1, assignments: [] });
  });

  once.test("prefers the node with the fewest tasks, then the longest idle", async () => {
    await using hub = await startHub();
    const tasks = [];
    for (let i = 0; i < 4; i++) tasks.push(await addTask(hub));
    for (const nodeId of ["d", "c", "b", "a"]) {
      await addNode(hub, nodeId);
      hub.clock.pass(1_000);
    }
    await addTaskOf(hub, "c");
    // An object with an unknown field: the bare call is tested above and in variants.test.ts.
    const body = await ok(hub.post("/task/batch-assign", { assignments: null }, { variant: "B" }));
    const given = list(body, "assignments").map((one) => [one["task_id"], one["node_id"]]);
    const [first, second, third, fourth] = tasks;
    expect(given.slice(0, 3)).toEqual([
      [first, "d"],
      [second, "b"],
      [third, "a"],
    ]);
    // All have one now; since when they have been idle in between is the hub's to say.
    expect(given[3]?.[0]).toBe(fourth);
  });

  once.test("without nodes it assigns nothing", async () => {
    await using hub = await startHub();
    await addTask(hub);
    const body = await ok(hub.post("/task/batch-assign", undefined, { variant: "B" }));
    expect(body).toEqual({ success: true, assigned: 0, pending: 1, assignments: [] });
  });

  test("assigns more tasks than fit into one step", async () => {
    await using hub = await startHub();
    await inBatches(hub, "task/create", new Array(620).fill({ title: "t", description: "d" }));
    await addNodes(hub, ["n1", "n2"]);
    const body = await ok(hub.post("/task/batch-assign", undefined, { variant: "B" }));
    expect(body).toMatchObject({ assigned: 620, pending: 0 });
    expect(await nodeOf(hub, "n1")).toMatchObject({ tasks_assigned: 310 });
    expect(await nodeOf(hub, "n2")).toMatchObject({ tasks_assigned: 310 });
  });
});

once.test("an open task of B that a node completes without a claim counts for that node", async () => {
  await using hub = await startHub();
  await addNode(hub, "n1", { capabilities: ["x"] }, "B");
  const taskId = await addTask(hub, { task_type: "y", lux_reward: 1 }, "B");
  const body = { task_id: taskId, node_id: "n1", result: RESULT };
  await ok(hub.post("/task/complete", body, { variant: "B" }));
  expect(await nodeOf(hub, "n1")).toMatchObject({ tasks_assigned: 0, tasks_completed: 1 });
  const kinds = ["task.created", "task.assigned", "task.completed", "lux.paid"];
  expect(await eventKinds(hub, taskId)).toEqual(kinds);
});
