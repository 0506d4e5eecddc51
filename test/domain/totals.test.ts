/**
 * For any sequence of commands: the running totals equal the counts of rows, a task pays once, a balance is the sum of
 * its entries, and the node of a task is registered. Random commands over a small world (domain/task, node, balancer).
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { balance } from "../../src/domain/balancer.ts";
import type { Decision, Undecided } from "../../src/domain/decision.ts";
import type { Task } from "../../src/domain/model.ts";
import { comeBack, expire, heartbeat, register } from "../../src/domain/node.ts";
import { assignTo, complete, create, remove, requeue, revoke, take } from "../../src/domain/task.ts";
import { draft, profile } from "./samples.ts";
import { World } from "./world.ts";

const NODE_IDS = ["n0", "n1", "n2", "n3"] as const;
const TASK_IDS = Array.from({ length: 8 }, (_, i) => `t${i}`);

const nodeId = fc.constantFrom(...NODE_IDS);
const taskId = fc.constantFrom(...TASK_IDS);
const type = fc.constantFrom("", "x", "y");

const command = fc.oneof(
  fc.record({
    name: fc.constant("register" as const),
    nodeId,
    maxTasks: fc.constantFrom(null, 1, 2),
    capabilities: fc.subarray(["x", "y"]),
  }),
  fc.record({ name: fc.constant("heartbeat" as const), nodeId }),
  fc.record({ name: fc.constant("expire" as const), nodeId }),
  fc.record({
    name: fc.constant("create" as const),
    taskId,
    balanced: fc.boolean(),
    type,
    rewardMicro: fc.constantFrom(0, 1, 2_500_000),
  }),
  fc.record({ name: fc.constant("take" as const), taskId, nodeId, by: fc.constantFrom("claim", "assign") }),
  fc.record({
    name: fc.constant("complete" as const),
    taskId,
    nodeId,
    claimOnComplete: fc.boolean(),
    lesson: fc.constantFrom("one", "two"),
  }),
  fc.record({ name: fc.constant("revoke" as const), taskId, to: fc.option(nodeId) }),
  fc.record({ name: fc.constant("requeue" as const) }),
  fc.record({ name: fc.constant("remove" as const), taskId }),
  fc.record({ name: fc.constant("balance" as const) }),
);

type Command = typeof command extends fc.Arbitrary<infer C> ? C : never;

const LEASE_MS = 90_000;

function decide(world: World, command: Command, now: number): Decision<unknown> | Undecided {
  const beat = { now, steady: now, leaseMs: LEASE_MS };
  const findTask = (id: string): Task | null => world.tasks.get(id) ?? null;
  const findNode = (id: string | null) => world.nodes.get(id ?? "") ?? null;
  const all = [...world.nodes.values()];
  const waiting = [...world.tasks.values()].filter((task) => task.status === "open" && task.balanced);
  switch (command.name) {
    case "register": {
      const { nodeId, maxTasks, capabilities } = command;
      return register(profile(nodeId, { maxTasks, capabilities }), findNode(nodeId), waiting, beat);
    }
    case "heartbeat": {
      const node = findNode(command.nodeId);
      const quick = heartbeat(node, command.nodeId, beat);
      return quick.kind === "undecided" ? comeBack(node, command.nodeId, waiting, beat) : quick;
    }
    case "expire":
      return expire(
        all.filter((node) => node.online && node.nodeId === command.nodeId),
        now,
      );
    case "create": {
      const { taskId, balanced, type: taskType, rewardMicro: luxRewardMicro } = command;
      if (findTask(taskId)) return { kind: "undecided" };
      return create(draft({ balanced, taskType, luxRewardMicro }), taskId, all, now);
    }
    case "take": {
      const by = command.by === "claim" ? "claim" : "assign";
      return take(findTask(command.taskId), findNode(command.nodeId), { ...command, by }, now);
    }
    case "complete": {
      const result = { problem: "p", improvement: "i", lesson: command.lesson, extra: null };
      const asked = { ...command, result, entryId: `e${now}` };
      return complete(findTask(command.taskId), findNode(command.nodeId), asked, now);
    }
    case "revoke": {
      const asked = { taskId: command.taskId, nodeId: command.to, reason: null };
      return revoke(findTask(command.taskId), findNode(command.to), all, asked, now);
    }
    case "requeue":
      return requeue(
        [...world.tasks.values()].filter(
          (task) => task.status === "assigned" && !findNode(task.assignedNode)?.online,
        ),
        now,
      );
    case "remove":
      return remove(findTask(command.taskId), command.taskId, now);
    case "balance":
      return {
        kind: "accepted",
        answer: null,
        changes: balance(waiting, all, now).flatMap(
          ({ task, nodeId }) => assignTo(task, nodeId, "balancer", now).changes,
        ),
      };
  }
}

function checkWorld(world: World): void {
  const tasks = [...world.tasks.values()];
  const inState = (status: Task["status"], holder?: string): number =>
    tasks.filter((t) => t.status === status && (holder === undefined || t.assignedNode === holder)).length;
  expect(world.totals).toEqual({
    open: inState("open"),
    assigned: inState("assigned"),
    completed: inState("completed"),
  });
  for (const node of world.nodes.values()) {
    const entries = world.ledger.filter((entry) => entry.nodeId === node.nodeId);
    expect(node.entries).toBe(entries.length);
    expect(node.balanceMicro).toBe(entries.at(-1)?.balanceMicro ?? 0n);
    const earned = entries.reduce((sum, entry) => sum + BigInt(entry.amountMicro), 0n);
    expect({
      assigned: node.tasksAssigned,
      completed: node.tasksCompleted,
      earned: node.luxEarnedMicro,
      balance: entries.at(-1)?.balanceMicro ?? 0n,
    }).toEqual({
      assigned: inState("assigned", node.nodeId),
      completed: inState("completed", node.nodeId),
      earned,
      balance: earned,
    });
  }
  for (const task of tasks) {
    expect(task.assignedNode === null).toBe(task.status === "open");
    expect(task.result === null).toBe(task.status !== "completed");
    if (task.assignedNode !== null) expect(world.nodes.has(task.assignedNode)).toBe(true);
  }
}

/** The node of what a command answers equals the row that its changes make. */
function checkAnswer(world: World, command: Command, answer: unknown): void {
  if (command.name !== "take" && command.name !== "revoke" && command.name !== "create") return;
  const stored = world.tasks.get(command.taskId);
  // Where a new task stands in the order is for the store to say.
  expect(answer).toEqual(stored && command.name === "create" ? { ...stored, seq: 0 } : stored);
}

test("the running totals always equal the counts of rows", () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60, size: "max" }), (commands) => {
      const world = new World();
      let now = 1_000;
      for (const command of commands) {
        const decision = decide(world, command, ++now);
        if (decision.kind !== "accepted") continue;
        const paidBefore = world.ledger.length;
        world.apply(decision.changes);
        checkAnswer(world, command, decision.answer);
        if (command.name !== "complete") expect(world.ledger.length).toBe(paidBefore);
        checkWorld(world);
      }
    }),
    { numRuns: 250, seed: 1 },
  );
});

test("a task that is completed repeatedly pays once", () => {
  const world = new World();
  const ask = (command: Command): void => {
    const decision = decide(world, command, 5);
    if (decision.kind === "accepted") world.apply(decision.changes);
  };
  ask({ name: "register", nodeId: "n0", maxTasks: null, capabilities: [] });
  ask({ name: "create", taskId: "t0", balanced: false, type: "", rewardMicro: 1 });
  for (let i = 0; i < 3; i++)
    ask({ name: "complete", taskId: "t0", nodeId: "n0", claimOnComplete: true, lesson: "one" });
  expect(world.ledger.map((entry) => entry.amountMicro)).toEqual([1]);
  checkWorld(world);
});
