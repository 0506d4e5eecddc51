/**
 * The balancer's rounds: which tasks they skip, the order of assignments, the bounds of a round and of a step, and that
 * the event loop stays free with thousands of nodes.
 */
import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Change } from "../../src/domain/change.ts";
import { accept } from "../../src/domain/decision.ts";
import {
  BALANCE_ROUND_MAX,
  BALANCE_TYPES_MAX,
  CAPABILITIES_MAX,
  SWEEP_BATCH,
} from "../../src/domain/limits.ts";
import type { Task } from "../../src/domain/model.ts";
import { saved } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { BalancerRounds } from "../../src/service/balancer-rounds.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { nodeById } from "../../src/store/sql/nodes.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { UNSCHEDULED, node, tally, task } from "../domain/samples.ts";
import { costRatio, cpuOf } from "../support/cost.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A service over a store that counts the balancer's steps. */
async function openScene(changes: readonly Change[]) {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-balancer-"));
  closing.push(() => rm(folder, { recursive: true }));
  const store = openSqlite(join(folder, "db"), () => undefined);
  closing.push(() => store.close());
  await store.transact({}, () => accept(null, changes));
  const steps = spyOn(store, "transact");
  const clock = systemClock();
  const rounds = new BalancerRounds(store, clock);
  return { store, rounds, tasks: new TaskService(store, clock, newId), steps };
}

const created = (taskId: string, patch: Partial<Task> = {}): Change => ({
  kind: "task.created",
  task: task(taskId, { balanced: true, ...patch }),
});
const there = (nodeId: string, capabilities: readonly string[], maxTasks: number | null = null) =>
  saved(node(nodeId, { capabilities, maxTasks }));
/** More than two steps' worth that only who knows "z" takes. */
const UNFIT = Array.from({ length: 1_200 }, (_, i) => created(`unfit ${i}`, { taskType: "z", priority: 0 }));

const idsOf = (round: { readonly assignments: readonly { readonly taskId: string }[] }): readonly string[] =>
  round.assignments.map(({ taskId }) => taskId);

describe("tasks that no node takes are skipped:", () => {
  test("when there are no others, no step runs", async () => {
    const { rounds, steps } = await openScene([...UNFIT, ...there("n1", ["x", "y"])]);
    expect(await rounds.run(true)).toEqual({ assignments: [], isCutShort: false });
    expect(steps).toHaveBeenCalledTimes(0);
  });

  test("nor without nodes, nor without tasks", async () => {
    for (const changes of [UNFIT, there("n1", [])]) {
      const { rounds, steps } = await openScene(changes);
      expect(await rounds.run(true)).toEqual({ assignments: [], isCutShort: false });
      expect(steps).toHaveBeenCalledTimes(0);
    }
  });

  test("later tasks that fit are assigned in one step", async () => {
    const fits = [created("typed", { taskType: "x", priority: 5 }), created("untyped", { priority: 5 })];
    const { rounds, steps } = await openScene([...UNFIT, ...fits, ...there("n1", ["x"])]);
    expect(idsOf(await rounds.run(true))).toEqual(["typed", "untyped"]);
    expect(steps).toHaveBeenCalledTimes(1);
  });

  test("so are tasks whose takers have become full", async () => {
    const { rounds, steps } = await openScene([...UNFIT, ...there("n1", ["z"], 3)]);
    expect(idsOf(await rounds.run(true))).toEqual(["unfit 0", "unfit 1", "unfit 2"]);
    expect(steps).toHaveBeenCalledTimes(1);
  });
});

describe("the order is best first", () => {
  /** Types in turn, priorities against the order of creation. */
  const MANY = Array.from({ length: 700 }, (_, i) =>
    created(`t${i}`, { taskType: `type-${i % 350}`, priority: i < 350 ? 2 : 0 }),
  );
  const expected = Array.from({ length: 700 }, (_, i) => `t${(i + 350) % 700}`);

  test("over more types than one query reads", async () => {
    const types = Array.from({ length: 350 }, (_, i) => `type-${i}`);
    const nodes = Array.from({ length: 7 }, (_, i) => there(`n${i}`, types.slice(i * 50, i * 50 + 50)));
    const { rounds } = await openScene([...MANY, ...nodes.flat()]);
    expect(idsOf(await rounds.run(true))).toEqual(expected);
  });

  test("also when the node that takes all types is full half-way", async () => {
    const { rounds } = await openScene([...MANY, ...there("all", [], 510), ...there("some", ["type-349"])]);
    const round = await rounds.run(true);
    const all = round.assignments.filter(({ nodeId }) => nodeId === "all").map(({ taskId }) => taskId);
    expect(all).toHaveLength(510);
    const some = round.assignments.filter(({ nodeId }) => nodeId === "some").map(({ taskId }) => taskId);
    expect(some).toEqual(["t699", "t349"]);
    expect(idsOf(round)).toEqual(expected.filter((id) => all.includes(id) || some.includes(id)));
  });
});

test("tasks that were revoked from their only taker are skipped, also more of them than a step takes", async () => {
  const revoked = Array.from({ length: SWEEP_BATCH + 10 }, (_, i) =>
    created(`revoked ${i}`, { taskType: "z", priority: 0, revokedFrom: "n1" }),
  );
  const { store, rounds } = await openScene([
    ...revoked,
    created("t", { taskType: "z", priority: 5 }),
    ...there("n1", ["z"]),
  ]);
  // A task is created without `revokedFrom`, and moved with it. The numbers of the rows begin with 1.
  const moves = revoked.flatMap((change, i): Change[] =>
    change.kind === "task.created" ? [{ kind: "task.moved", task: { ...change.task, seq: i + 1 } }] : [],
  );
  await store.transact({}, () => accept(null, moves));
  expect(idsOf(await rounds.run(true))).toEqual(["t"]);
});

test("more types than are held at once are all served", async () => {
  const types = Array.from({ length: BALANCE_TYPES_MAX + 10 }, (_, i) => `type ${i}`);
  const all = types.map((taskType, i) => created(`t${i}`, { taskType }));
  const last = types.toSorted().slice(-3);
  const { rounds } = await openScene([...all, created("untyped"), ...there("n1", last)]);
  const expected = ["untyped", ...last.map((type) => `t${types.indexOf(type)}`)];
  expect(idsOf(await rounds.run(true)).toSorted()).toEqual(expected.toSorted());
});

test("a round that reaches its limit says so, and the next one continues", async () => {
  const backlog = Array.from({ length: BALANCE_ROUND_MAX + 10 }, (_, i) =>
    created(`t${i}`, { balanced: false }),
  );
  const { store, tasks, steps } = await openScene([...backlog, ...there("n1", [])]);
  const open: Change = { kind: "tasks.tallied", open: backlog.length, assigned: 0, completed: 0, failed: 0 };
  await store.transact({}, () => accept(null, [open]));
  steps.mockClear();
  const transact = store.transact.bind(store);
  const first = await tasks.runBalancer(transact);
  expect(first.assignments).toHaveLength(BALANCE_ROUND_MAX);
  expect(first.pending).toBe(10); // which is counted in one more
  expect(steps).toHaveBeenCalledTimes(BALANCE_ROUND_MAX / SWEEP_BATCH + 1);
  const second = await tasks.runBalancer(transact);
  expect([...idsOf(first), ...idsOf(second)]).toEqual(backlog.map((_, i) => `t${i}`));
  expect(second.pending).toBe(0);
});

describe("thousands of nodes, each with its own capabilities,", () => {
  const own = (i: number) => Array.from({ length: CAPABILITIES_MAX }, (_, k) => `capability ${i} ${k}`);
  const fleetOf = (nodes: number) => Array.from({ length: nodes }, (_, i) => there(`n${i}`, own(i))).flat();

  test("are not compared with each task that waits", async () => {
    const fleet = fleetOf(2_000);
    // One task in ten fits a node; the others fit none.
    const sceneOf = (tasks: number) =>
      openScene([
        ...fleet,
        ...Array.from({ length: tasks }, (_, i) =>
          created(`t${i}`, { taskType: i % 10 ? `nobody takes ${i}` : `capability ${i % 2_000} 7` }),
        ),
      ]);
    const [few, many] = [await sceneOf(30), await sceneOf(4_000)];
    let given: Awaited<ReturnType<BalancerRounds["run"]>>["assignments"] = [];
    await few.rounds.run(true); // compile
    const ratio = await costRatio(
      () => cpuOf(() => few.rounds.run(true)),
      () => cpuOf(async () => (given = (await many.rounds.run(true)).assignments)),
      1, // a round gives the tasks out
    );
    expect(given).toHaveLength(400);
    for (const { taskId, nodeId } of given)
      expect(Number(taskId.slice(1)) % 2_000).toBe(Number(nodeId.slice(1)));
    expect(ratio).toBeLessThan(20);
  });

  test("are not compared with each task that is created", async () => {
    const costOf = async (nodes: number): Promise<number> => {
      const { store, tasks } = await openScene(fleetOf(nodes));
      const transact = store.transact.bind(store);
      const draft = {
        ...UNSCHEDULED,
        title: "t",
        description: "d",
        creatorVerified: false,
        creatorKey: null,
        schedule: null,
      } as const;
      const create = (taskType: string) => tasks.create(transact, { ...draft, taskType, balanced: true });
      const type = `capability ${nodes - 1} 63`;
      expect(await create(type)).toMatchObject({ assignedNode: `n${nodes - 1}` });
      return cpuOf(async () => {
        const created = await Promise.all(Array.from({ length: 200 }, (_, i) => create(`nobody takes ${i}`)));
        for (const { assignedNode } of created) expect(assignedNode).toBeNull();
      });
    };
    const ratio = await costRatio(
      () => costOf(20),
      () => costOf(2_000),
      2,
    );
    expect(ratio).toBeLessThan(20); // node by node: 100
  });
});

test("completions that share a commit fill the room of their node in one step", async () => {
  const held = Array.from({ length: 20 }, (_, i) =>
    created(`held ${i}`, { status: "assigned", assignedNode: "n1", balanced: false }),
  );
  const waiting = Array.from({ length: 9 }, (_, i) => created(`waiting ${i}`));
  const { store, tasks, steps } = await openScene([
    ...there("n1", [], 5),
    tally({ nodeId: "n1", assigned: held.length }),
    ...held,
    ...waiting,
  ]);
  const result = { problem: "p", improvement: "i", lesson: "l", extra: null };
  const asked = { nodeId: "n1", epoch: null, result, claimOnComplete: false };
  await Promise.all(held.map((_, i) => tasks.complete(store.transact, { ...asked, taskId: `held ${i}` })));
  expect(steps).toHaveBeenCalledTimes(held.length + 1);
  expect(await store.read(nodeById("n1"))).toMatchObject({ tasksAssigned: 5, tasksCompleted: held.length });
});
