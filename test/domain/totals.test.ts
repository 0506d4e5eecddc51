/**
 * For any sequence of commands: the running totals equal the counts of rows, a task pays once, a balance is the sum of
 * its entries, and the node of a task is registered. Random commands over a small world (domain/task, node, balancer).
 */
import { EMPTY_LEDGER } from "../../src/domain/lux.ts";
import { expect, test } from "bun:test";
import fc from "fast-check";
import { checkGroups } from "../../src/domain/task/facet/group.ts";
import { balance } from "../../src/domain/balancer.ts";
import type { Change } from "../../src/domain/change.ts";
import { type Decision, type Undecided, accept } from "../../src/domain/decision.ts";
import { MAKES_ROOM } from "../../src/domain/event.ts";
import type { Node, Task } from "../../src/domain/model.ts";
import {
  drain,
  expire,
  goOnline,
  heartbeat,
  leave,
  nextAsHeartbeat,
  register,
} from "../../src/domain/node.ts";
import {
  assignTo,
  complete,
  create,
  extend,
  fail,
  release,
  remove,
  revoke,
  take,
} from "../../src/domain/task/core.ts";
import { expireOrStart, releaseAll, requeue, timeOut } from "../../src/domain/task/chores.ts";
import { cancel, cancelGroup, retry, retryGroup } from "../../src/domain/task/creator.ts";
import { dueAt } from "../../src/domain/task/facet/start-time.ts";
import { isReady } from "../../src/domain/task/facets.ts";
import { retryWithDependents, updateDependents } from "../../src/domain/task/dependents.ts";
import { charge, NO_USAGE } from "../../src/domain/quota.ts";
import { cases } from "../support/long.ts";
import { draft, profile } from "./samples.ts";
import { World } from "./world.ts";

const NODE_IDS = ["n0", "n1", "n2", "n3"] as const;
const TASK_IDS = Array.from({ length: 8 }, (_, i) => `t${i}`);

const GROUPS = ["g0", "g1"] as const;

const nodeId = fc.constantFrom(...NODE_IDS);
/** The holder of the task, whichever that is; n0 if there is none. */
const HOLDER = "the holder";
const mostlyHolder = fc.constantFrom(HOLDER, HOLDER, HOLDER, ...NODE_IDS);
const taskId = fc.constantFrom(...TASK_IDS);
const type = fc.constantFrom("", "x", "y");

/** Some come more often, so that most tasks find a node. */
const often = <T>(arbitrary: fc.Arbitrary<T>) => ({ weight: 5, arbitrary });

const asked = fc.oneof(
  often(
    fc.record({
      name: fc.constant("register" as const),
      nodeId,
      maxTasks: fc.constantFrom(null, 1, 2),
      capabilities: fc.subarray(["x", "y"]),
    }),
  ),
  fc.record({ name: fc.constant("heartbeat" as const), nodeId }),
  fc.record({ name: fc.constant("expire" as const), nodeId }),
  often(
    fc.record({
      name: fc.constant("create" as const),
      taskId,
      creatorNode: fc.constantFrom(null, ...NODE_IDS),
      balanced: fc.boolean(),
      type,
      rewardMicro: fc.constantFrom(0, 1, 2_500_000),
      dependsOn: fc.subarray(TASK_IDS.slice(0, 4)),
      timeoutMs: fc.constantFrom(null, 3),
      maxRunMs: fc.constantFrom(null, 2, 4),
      notBefore: fc.constantFrom(null, 1_020),
      expiresAt: fc.constantFrom(null, null, 1_040),
      maxAttempts: fc.constantFrom(null, 1, 2),
      group: fc.constantFrom(null, ...GROUPS),
    }),
  ),
  fc.record({
    name: fc.constantFrom("cancelGroup" as const, "retryGroup" as const),
    group: fc.constantFrom(...GROUPS),
  }),
  fc.record({ name: fc.constant("take" as const), taskId, nodeId, by: fc.constantFrom("claim", "assign") }),
  often(
    fc.record({
      name: fc.constant("complete" as const),
      taskId,
      nodeId: mostlyHolder,
      claimOnComplete: fc.boolean(),
      lesson: fc.constantFrom("one", "two"),
    }),
  ),
  fc.record({ name: fc.constant("revoke" as const), taskId, to: fc.option(nodeId) }),
  often(fc.record({ name: fc.constant("next" as const), nodeId, resume: fc.boolean() })),
  fc.record({ name: fc.constant("requeue" as const) }),
  fc.record({
    name: fc.constantFrom("release", "fail", "extend"),
    taskId,
    nodeId: mostlyHolder,
    retry: fc.boolean(),
  }),
  fc.record({
    name: fc.constantFrom("cancel" as const, "retry" as const),
    taskId,
    withDependents: fc.boolean(),
  }),
  fc.record({ name: fc.constantFrom("leave" as const, "drain" as const), nodeId, draining: fc.boolean() }),
  fc.record({ name: fc.constantFrom("timeOut" as const, "expireOrStart" as const) }),
  fc.record({ name: fc.constant("settle" as const) }),
  fc.record({ name: fc.constant("remove" as const), taskId }),
  fc.record({ name: fc.constant("balance" as const) }),
);

type Command = typeof asked extends fc.Arbitrary<infer C> ? C : never;

const LEASE_MS = 90_000;

function decide(world: World, command: Command, now: number): Decision<unknown> | Undecided {
  const at = { now, steady: now };
  const beat = { ...at, leaseMs: LEASE_MS };
  const dependencies = (of: readonly string[]) =>
    of
      .map(findTask)
      .filter((task) => task !== null)
      .map((task) => ({ ...task, brokenBy: world.brokenBy.get(task.taskId) ?? null }));
  const findTask = (id: string): Task | null => world.tasks.get(id) ?? null;
  const nodeOf = ({ taskId, nodeId }: { taskId: string; nodeId: string }): string =>
    nodeId === HOLDER ? (findTask(taskId)?.assignedNode ?? "n0") : nodeId;
  const findNode = (id: string | null) => world.nodes.get(id ?? "") ?? null;
  const all = [...world.nodes.values()];
  const tasks = [...world.tasks.values()];
  const waiting = [...world.tasks.values()].filter((task) => isReady(task, now) && task.balanced);
  switch (command.name) {
    case "register": {
      const { nodeId, maxTasks, capabilities } = command;
      return register(profile(nodeId, { maxTasks, capabilities }), findNode(nodeId), waiting, beat);
    }
    case "heartbeat": {
      const node = findNode(command.nodeId);
      const quick = heartbeat(node, command.nodeId, beat);
      return quick.kind === "undecided" ? goOnline(node, command.nodeId, waiting, beat) : quick;
    }
    case "expire":
      return expire(
        all.filter((node) => node.online && node.nodeId === command.nodeId),
        now,
      );
    case "create": {
      const { name: _, taskId, type: taskType, rewardMicro: luxRewardMicro, ...rest } = command;
      if (findTask(taskId)) return { kind: "undecided" };
      const made = draft({ ...rest, taskType, luxRewardMicro, backoffMs: 2 });
      return create(made, taskId, all, at, dependencies(rest.dependsOn));
    }
    case "take": {
      const by = command.by === "claim" ? "claim" : "assign";
      return take(findTask(command.taskId), findNode(command.nodeId), { ...command, by }, at);
    }
    case "complete": {
      const nodeId = nodeOf(command);
      const result = { problem: "p", improvement: "i", lesson: command.lesson, extra: null };
      const asked = {
        ...{ ...command, nodeId, epoch: null },
        result,
        entryId: `e${now}`,
        head: world.ledger.at(-1) ?? EMPTY_LEDGER,
        paid: world.ledger.find(({ taskId }) => taskId === command.taskId) ?? null,
      };
      return complete(findTask(command.taskId), findNode(nodeId), asked, at);
    }
    case "revoke": {
      const asked = { taskId: command.taskId, nodeId: command.to, reason: null };
      return revoke(findTask(command.taskId), findNode(command.to), all, asked, at);
    }
    case "next": {
      const { nodeId, resume } = command;
      const held = tasks.filter((task) => task.status === "assigned" && task.assignedNode === nodeId);
      const started = (resume && held.find(({ startedAt }) => startedAt !== null)) || null;
      const gifts = held.find(({ startedAt }) => startedAt === null) ?? null;
      const open = tasks.filter((task) => isReady(task, now));
      return nextAsHeartbeat(findNode(nodeId), nodeId, { started, gifts, open, waiting }, beat, false);
    }
    case "requeue":
      return requeue(
        [...world.tasks.values()].filter(
          (task) => task.status === "assigned" && !findNode(task.assignedNode)?.online,
        ),
        at,
      );
    case "release":
    case "fail":
    case "extend": {
      const { name, taskId, retry } = command;
      const nodeId = nodeOf(command);
      const [task, node] = [findTask(taskId), findNode(nodeId)];
      const asked = { taskId, nodeId, epoch: null };
      if (name === "release") return release(task, node, all, { ...asked, reason: null }, at);
      if (name === "fail") return fail(task, node, all, { ...asked, error: "e", retry }, at);
      return extend(task, node, { ...asked, note: retry ? "note" : null }, at);
    }
    case "cancel":
      return cancel(
        findTask(command.taskId),
        null,
        { ...command, nodeId: null, reason: null, boundTo: null },
        at,
      );
    case "cancelGroup": {
      const asked = { ...command, nodeId: null, reason: null, boundTo: null };
      const own = tasks.filter((task) => task.group === command.group && isUnfinished(task));
      return cancelGroup(newestFirst(own).slice(0, 2), null, asked, at);
    }
    case "retryGroup": {
      const failed = tasks.filter(({ group, status }) => group === command.group && status === "failed");
      const own = newestFirst(failed).toReversed().slice(0, 3);
      return retryGroup(own, dependencies(own.flatMap(({ dependsOn }) => dependsOn)), at);
    }
    case "retry": {
      const task = findTask(command.taskId);
      const asked = { ...command, boundTo: null };
      if (!command.withDependents) return retry(task, dependencies(task?.dependsOn ?? []), all, asked, at);
      const root = world.brokenBy.get(command.taskId) ?? command.taskId;
      const broken = tasks
        .filter(({ taskId, seq }) => world.brokenBy.get(taskId) === root && seq > (task?.seq ?? 0))
        .toSorted((a, b) => a.seq - b.seq);
      const needed = [task, ...broken].flatMap((one) => one?.dependsOn ?? []);
      return retryWithDependents(task, broken, dependencies(needed), all, asked, at);
    }
    case "leave": {
      const { nodeId } = command;
      const left = leave(findNode(nodeId), nodeId, now);
      if (left.kind === "rejected") return left;
      const held = tasks.filter((task) => task.status === "assigned" && task.assignedNode === nodeId);
      return { ...left, changes: [...releaseAll(held, "left", at).changes, ...left.changes] };
    }
    case "drain":
      return drain(findNode(command.nodeId), command, now);
    case "timeOut":
      return timeOut(
        tasks.filter(({ leaseUntil }) => leaseUntil !== null && leaseUntil <= now),
        at,
      );
    case "expireOrStart":
      return expireOrStart(
        tasks.filter((task) => (dueAt(task) ?? Infinity) <= now),
        at,
      );
    case "settle": {
      const [first] = world.settlements;
      if (!first) return { kind: "undecided" };
      const [dependsOn, outcome] = first;
      const waits = tasks.filter(({ taskId }) => world.dependencies.has(`${taskId} on ${dependsOn}`));
      const { changes } = updateDependents(waits, dependsOn, outcome, at, world.brokenBy.get(dependsOn));
      return accept(null, [...changes, { kind: "settlement.removed", taskId: dependsOn }]);
    }
    case "remove":
      return remove(findTask(command.taskId), command.taskId, now);
    case "balance":
      return {
        kind: "accepted",
        answer: null,
        changes: balance(waiting, all, now).flatMap(
          ({ task, nodeId }) => assignTo(task, nodeId, "balancer", at).changes,
        ),
      };
  }
}

/** Half of the commands come with a key that is bound to n0 or n1. */
const command = fc.record({ asked, boundTo: fc.constantFrom(null, null, "n0", "n1") });

const QUOTAS = { tasks: 1, bytes: 900 };

/** The quotas hold for whatever begins something; usage is what the rows count. */
function checkUsage(world: World): void {
  const counted = [...world.tasks.values()].filter(({ keptBytes }) => keptBytes > 0);
  let bytes = 0;
  for (const [nodeId, usage] of world.usage) {
    const own = counted.filter(({ creatorNode }) => creatorNode === nodeId);
    expect(usage.tasks).toBe(own.filter(isUnfinished).length);
    expect(usage.bytes).toBeGreaterThanOrEqual(own.reduce((sum, { keptBytes }) => sum + keptBytes, 0));
    bytes += usage.bytes;
  }
  for (const [taskId, { lentBytes }] of world.tasks) {
    const charged = [...(world.charges.get(taskId)?.values() ?? [])].reduce((sum, own) => sum + own, 0);
    expect(lentBytes).toBe(charged);
    bytes -= charged;
  }
  expect(bytes).toBe(counted.reduce((sum, { keptBytes }) => sum + keptBytes, world.eventBytes));
}

/** The totals of each group are the sums over its tasks. */
function checkGroupTotals(world: World): void {
  const grouped = Map.groupBy(world.tasks.values(), ({ group }) => group);
  grouped.delete(null);
  expect([...world.groups.keys()].toSorted()).toEqual([...grouped.keys()].map(String).toSorted());
  for (const [group, totals] of world.groups) {
    const tasks = grouped.get(group) ?? [];
    const count = (is: (task: Task) => boolean): number => tasks.filter(is).length;
    const wasCancelled = ({ status, failure }: Task): boolean =>
      status === "failed" && (failure?.kind === "cancelled" || failure?.kind === "expired");
    const micro = (of: readonly Task[]): number => of.reduce((sum, task) => sum + task.luxRewardMicro, 0);
    const { lux, luxMicro, paid, paidMicro, firstCreatedAt: _, lastCreatedAt: __, ...counts } = totals;
    expect(counts).toEqual({
      open: count(({ status }) => status === "open"),
      assigned: count(({ status }) => status === "assigned"),
      completed: count(({ status }) => status === "completed"),
      failed: count((task) => task.status === "failed" && !wasCancelled(task)),
      cancelled: count(wasCancelled),
      inReview: count(({ review }) => review?.check?.state === "pending"),
      lastUpdatedAt: expect.any(Number),
    });
    expect([lux * 1e6 + luxMicro, paid * 1e6 + paidMicro]).toEqual([
      micro(tasks),
      micro(tasks.filter(({ paidSeq }) => paidSeq !== null)),
    ]);
    for (const { updatedAt } of tasks) expect(totals.lastUpdatedAt).toBeGreaterThanOrEqual(updatedAt);
  }
}

function checkWorld(world: World): void {
  checkUsage(world);
  checkGroupTotals(world);
  const tasks = [...world.tasks.values()];
  const inState = (status: Task["status"], holder?: string): number =>
    tasks.filter((t) => t.status === status && (holder === undefined || t.assignedNode === holder)).length;
  expect(world.totals).toEqual({
    open: inState("open"),
    assigned: inState("assigned"),
    completed: inState("completed"),
    failed: inState("failed"),
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
    expect(task.assignedNode === null).toBe(task.status === "open" || task.status === "failed");
    expect(task.result === null).toBe(task.status !== "completed");
    const isAssigned = task.status === "assigned";
    expect(task.leaseUntil !== null).toBe(isAssigned && (task.timeoutMs ?? task.maxRunMs) !== null);
    expect(task.runUntil !== null).toBe(isAssigned && task.maxRunMs !== null);
    if (task.runUntil !== null) expect(task.leaseUntil).toBeLessThanOrEqual(task.runUntil);
    // The last restart of a task that it ended was no hand-out.
    expect(task.restarts === 0 || task.epoch + Number(task.status === "failed") > task.restarts).toBe(true);
    expect(task.unmet).toBe(
      [...world.dependencies].filter((one) => one.startsWith(`${task.taskId} on`)).length,
    );
    if (task.unmet > 0) expect(task.scheduled).toBe(true);
    if (task.scheduled)
      expect([task.status, task.unmet > 0 || task.notBefore !== null]).toEqual(["open", true]);
    if (task.status === "failed") expect(task.failure).not.toBeNull();
    const isBroken = task.status === "failed" && task.failure?.kind === "dependency";
    expect([task.taskId, world.brokenBy.has(task.taskId)]).toEqual([task.taskId, isBroken]);
    if (task.assignedNode !== null) expect(world.nodes.has(task.assignedNode)).toBe(true);
  }
}

/** Logs the end of the groups of which a task has ended, as the hub does after a commit. */
function endGroups(world: World, running: ReadonlySet<string>): void {
  const now = runningGroups(world);
  const ended = [...running].filter((group) => !now.has(group));
  for (const group of ended) expect(world.touched).toContain(group);
  const touched = [...world.touched].map((group) => ({ group, totals: world.groups.get(group) ?? null }));
  const changes = checkGroups(touched, 1);
  const logged = changes.flatMap((change) =>
    change.kind === "event.logged" ? [change.event.data["group"]] : [],
  );
  for (const group of ended) expect(logged).toContain(group);
  world.apply(changes);
  expect(world.touched.size).toBe(0);
}

/** Those that have an unfinished task. */
function runningGroups(world: World): ReadonlySet<string> {
  const groups = [...world.tasks.values()].filter(isUnfinished).map(({ group }) => group);
  return new Set(groups.filter((group) => group !== null));
}

function newestFirst(tasks: readonly Task[]): readonly Task[] {
  return tasks.toSorted((a, b) => b.seq - a.seq);
}

/** Whatever waits for another will be told of its end. */
function checkDependencies(world: World): void {
  for (const one of world.dependencies) {
    const [waits = "", dependsOn = ""] = one.split(" on ");
    const other = world.tasks.get(dependsOn);
    expect(world.tasks.get(waits)?.status).toBe("open");
    expect((other && isUnfinished(other) && other.hasDependents) || world.settlements.has(dependsOn)).toBe(
      true,
    );
  }
}

function isUnfinished({ status }: Task): boolean {
  return status === "open" || status === "assigned";
}

/** Where a node holds less, an event says so: the calls of the node that found it full are woken by it. */
function checkRoom(before: ReadonlyMap<string, Node>, after: World, changes: readonly Change[]): void {
  const logged = changes.flatMap((change) => (change.kind === "event.logged" ? [change.event] : []));
  for (const { nodeId, tasksAssigned } of before.values())
    if ((after.nodes.get(nodeId)?.tasksAssigned ?? tasksAssigned) < tasksAssigned)
      expect(logged.some((event) => event.nodeId === nodeId && MAKES_ROOM.has(event.kind))).toBe(true);
}

/** The node of what a command answers equals the row that its changes make. */
function checkAnswer(world: World, command: Command, answer: unknown): void {
  if (command.name !== "take" && command.name !== "revoke" && command.name !== "create") return;
  const stored = world.tasks.get(command.taskId);
  // Where a new task stands in the order is for the store to say, and what it counts for charge().
  expect(answer).toEqual(stored && command.name === "create" ? { ...stored, seq: 0, keptBytes: 0 } : stored);
}

test("the running totals always equal the counts of rows", () => {
  const exceeded = new Set<number | undefined>();
  fc.assert(
    fc.property(fc.array(command, { minLength: 40, maxLength: 120, size: "max" }), (commands) => {
      const world = new World();
      let now = 1_000;
      for (const { asked, boundTo } of commands) {
        const isOwn = asked.name === "create" && boundTo !== null;
        const command = isOwn ? { ...asked, creatorNode: boundTo } : asked;
        const decided = decide(world, command, ++now);
        const usage = world.usage.get(boundTo ?? "") ?? NO_USAGE;
        const decision =
          boundTo === null || decided.kind === "undecided"
            ? decided
            : charge(decided, boundTo, usage, QUOTAS);
        if (decision.kind === "rejected" && decision !== decided) {
          expect(decision.code).toBe("quota_exceeded");
          exceeded.add(decision.quota?.allowed);
        }
        if (decision.kind !== "accepted") continue;
        const paidBefore = world.ledger.length;
        const running = runningGroups(world);
        const nodesBefore = new Map(world.nodes);
        world.apply(decision.changes);
        checkRoom(nodesBefore, world, decision.changes);
        endGroups(world, running);
        checkAnswer(world, command, decision.answer);
        if (command.name !== "complete") expect(world.ledger.length).toBe(paidBefore);
        checkWorld(world);
        checkDependencies(world);
      }
    }),
    { numRuns: cases(600, 2_000), seed: 1 },
  );
  expect(exceeded).toEqual(new Set([QUOTAS.tasks, QUOTAS.bytes]));
});

test("a task that is completed repeatedly pays once", () => {
  const world = new World();
  const ask = (command: Command): void => {
    const decision = decide(world, command, 5);
    if (decision.kind === "accepted") world.apply(decision.changes);
  };
  ask({ name: "register", nodeId: "n0", maxTasks: null, capabilities: [] });
  ask({
    name: "create",
    taskId: "t0",
    balanced: false,
    type: "",
    creatorNode: null,
    rewardMicro: 1,
    maxAttempts: null,
    timeoutMs: null,
    maxRunMs: null,
    notBefore: null,
    expiresAt: null,
    group: null,
    dependsOn: [],
  });
  for (let i = 0; i < 3; i++)
    ask({ name: "complete", taskId: "t0", nodeId: "n0", claimOnComplete: true, lesson: "one" });
  expect(world.ledger.map((entry) => entry.amountMicro)).toEqual([1]);
  checkWorld(world);
});
