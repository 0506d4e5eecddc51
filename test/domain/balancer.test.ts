/** The balancer's rule (domain/balancer.ts): which node it picks, as a table; its invariants, as properties. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Candidate, balance, fits, isAvailable, pick, untaken } from "../../src/domain/balancer.ts";
import { plainLane } from "../../src/domain/lane.ts";
import type { Task } from "../../src/domain/model.ts";
import { NOW, node, task } from "./samples.ts";

describe("pick", () => {
  const old = { idleSince: 10 };
  const rows: readonly (readonly [
    string,
    readonly Candidate[],
    Parameters<typeof task>[1],
    string | null,
  ])[] = [
    ["null without a candidate", [], {}, null],
    ["the only one", [node("a")], {}, "a"],
    ["fewest tasks", [node("a", { tasksAssigned: 2 }), node("b", { tasksAssigned: 1 })], {}, "b"],
    [
      "fewest tasks before longest idle",
      [node("a", { tasksAssigned: 2, ...old }), node("b", { tasksAssigned: 1 })],
      {},
      "b",
    ],
    ["longest idle", [node("a"), node("b", old)], {}, "b"],
    ["by node id if all else is equal", [node("b"), node("a")], {}, "a"],
    ["not an offline node", [node("a", { online: false, ...old }), node("b")], {}, "b"],
    [
      "not a full node",
      [node("a", { maxTasks: 1, tasksAssigned: 1 }), node("b", { tasksAssigned: 9 })],
      {},
      "b",
    ],
    ["not a node above its limit", [node("a", { maxTasks: 1, tasksAssigned: 3 })], {}, null],
    ["a node with room for one task", [node("a", { maxTasks: 2, tasksAssigned: 1 })], {}, "a"],
    [
      "not a node without the capability",
      [node("a", { capabilities: ["x"], ...old }), node("b", { capabilities: ["y", "z"] })],
      { taskType: "z" },
      "b",
    ],
    [
      "a node that takes all types",
      [node("a", { capabilities: ["x"], ...old }), node("b")],
      { taskType: "z" },
      "b",
    ],
    ["any node for a task without a type", [node("a", { capabilities: ["x"] })], { taskType: "" }, "a"],
    ["not by a part of a capability", [node("a", { capabilities: ["coding"] })], { taskType: "cod" }, null],
    ["not in another case", [node("a", { capabilities: ["Coding"] })], { taskType: "coding" }, null],
    [
      "not the node that it was revoked from",
      [node("a", old), node("b", { tasksAssigned: 9 })],
      { revokedFrom: "a" },
      "b",
    ],
    ["null rather than the node that it was revoked from", [node("a")], { revokedFrom: "a" }, null],
  ];
  for (const [name, candidates, of, expected] of rows)
    test(name, () => expect(pick(task("t", of), candidates)?.nodeId ?? null).toBe(expected));
});

const candidate = fc.record({
  online: fc.boolean(),
  autoAssign: fc.constantFrom(true, true, true, false),
  maxTasks: fc.option(fc.integer({ min: 1, max: 4 })),
  tasksAssigned: fc.integer({ min: 0, max: 4 }),
  idleSince: fc.integer({ min: 0, max: 3 }),
  capabilities: fc.subarray(["x", "y"]),
});
const someNodes = fc
  .array(candidate, { maxLength: 6 })
  .map((nodes) => nodes.map((patch, i) => node(`n${i}`, patch)));
const tasks = fc
  .array(
    fc.record({
      taskType: fc.constantFrom("", "x", "y", "z"),
      revokedFrom: fc.constantFrom(null, "n0", "n1"),
    }),
    { maxLength: 12 },
  )
  .map((list) => list.map((patch, i) => task(`t${i}`, patch)));

describe("balance", () => {
  test("never assigns to a node that is offline, full, unfit or had the task revoked, and never above a limit", () => {
    fc.assert(
      fc.property(someNodes, tasks, (nodes, list) => {
        const given = balance(list, nodes, NOW);
        const count = new Map(nodes.map((n) => [n.nodeId, n.tasksAssigned]));
        for (const { task: one, nodeId } of given) {
          const to = nodes.find((n) => n.nodeId === nodeId);
          expect(to?.online).toBe(true);
          expect(to && fits(to, one)).toBe(true);
          expect(nodeId).not.toBe(one.revokedFrom);
          const now = (count.get(nodeId) ?? 0) + 1;
          count.set(nodeId, now);
          expect(now).toBeLessThanOrEqual(to?.maxTasks ?? Infinity);
        }
        expect(new Set(given.map((g) => g.task.taskId)).size).toBe(given.length);
      }),
      { seed: 1 },
    );
  });

  test("assigns each task, in order, to the best node that can take it; leaves only tasks that no node can take", () => {
    fc.assert(
      fc.property(someNodes, tasks, (nodes, list) => {
        const given = new Map(balance(list, nodes, NOW).map((g) => [g.task.taskId, g.nodeId]));
        const assigned = new Map(nodes.map((n) => [n.nodeId, n.tasksAssigned]));
        const idleSince = new Map(nodes.map((n) => [n.nodeId, n.idleSince]));
        for (const one of list) {
          const able = nodes
            .map((n) => ({
              ...n,
              tasksAssigned: assigned.get(n.nodeId) ?? 0,
              idleSince: idleSince.get(n.nodeId) ?? 0,
            }))
            .filter((n) => n.online && n.autoAssign && n.nodeId !== one.revokedFrom)
            .filter((n) => n.maxTasks === null || n.tasksAssigned < n.maxTasks)
            .filter(
              (n) =>
                one.taskType === "" || n.capabilities.length === 0 || n.capabilities.includes(one.taskType),
            )
            .toSorted(
              (a, b) =>
                a.tasksAssigned - b.tasksAssigned ||
                a.idleSince - b.idleSince ||
                (a.nodeId < b.nodeId ? -1 : 1),
            );
          const best = able[0];
          expect(given.get(one.taskId) ?? null).toBe(best?.nodeId ?? null);
          if (best) assigned.set(best.nodeId, best.tasksAssigned + 1);
          if (best) idleSince.set(best.nodeId, NOW);
        }
      }),
      { seed: 1 },
    );
  });

  test("does not change its input", () => {
    const nodes = [node("a", { maxTasks: 2 })];
    balance([task("t1"), task("t2"), task("t3")], nodes, NOW);
    expect(nodes).toEqual([node("a", { maxTasks: 2 })]);
  });

  test("spreads tasks evenly over equal nodes", () => {
    const list = Array.from({ length: 9 }, (_, i) => task(`t${i}`));
    const given = balance(list, [node("a"), node("b"), node("c")], NOW);
    for (const id of ["a", "b", "c"]) expect(given.filter((g) => g.nodeId === id)).toHaveLength(3);
  });
});

/** The specification of `balance`: `pick` over all nodes, one task after the other. */
function pickEach(list: readonly Task[], nodes: readonly Candidate[], now: number): readonly string[] {
  const copies = nodes.map((one) => ({ ...one }));
  return list.flatMap((one) => {
    const best = pick(one, copies);
    if (!best) return [];
    best.tasksAssigned += 1;
    best.idleSince = now;
    return [`${one.taskId} ${best.nodeId}`];
  });
}

describe("many tasks and nodes", () => {
  const TYPES = ["x", "y", "z", "X", "xy"];
  const member = fc.record({
    nodeId: fc.constantFrom(...Array.from({ length: 24 }, (_, i) => `n${i}`)),
    online: fc.boolean(),
    autoAssign: fc.constantFrom(true, true, true, false),
    draining: fc.constantFrom(false, false, false, true),
    maxTasks: fc.option(fc.integer({ min: 1, max: 5 })),
    tasksAssigned: fc.integer({ min: 0, max: 5 }),
    idleSince: fc.integer({ min: NOW - 2, max: NOW + 2 }), // also ahead of a clock that was set back
    capabilities: fc.subarray(TYPES),
    resources: fc.constant({}),
    used: fc.constant({}),
  });
  const nodes = fc.uniqueArray(member, { selector: ({ nodeId }) => nodeId, maxLength: 24 });
  const waiting = (maxLength: number) =>
    fc
      .array(
        fc.record({
          taskType: fc.constantFrom("", "nobody", ...TYPES),
          revokedFrom: fc.constantFrom(null, null, "n0", "n1", "n2"),
        }),
        { maxLength },
      )
      .map((list) => list.map((patch, i) => task(`t${i}`, patch)));

  // Few tasks for many nodes: then the shortlists are shorter than the lists of nodes.
  for (const maxLength of [4, 30])
    test(`balance gives each task to the node that pick names (up to ${maxLength} tasks)`, () => {
      fc.assert(
        fc.property(nodes, waiting(maxLength), (all, list) => {
          const given = balance(list, all, NOW).map((one) => `${one.task.taskId} ${one.nodeId}`);
          expect(given).toEqual([...pickEach(list, all, NOW)]);
        }),
        { seed: 1, numRuns: 2_000 },
      );
    });

  test("untaken names the lanes from which no available node takes", () => {
    const types = fc.subarray(["", "nobody", ...TYPES]);
    fc.assert(
      fc.property(nodes, types, (all, asked) => {
        const left = asked.filter(
          (taskType) => !all.some((one) => isAvailable(one) && fits(one, { taskType })),
        );
        const names = untaken(asked.map(plainLane), all).map(({ name }) => name);
        expect(names.toSorted()).toEqual(left.toSorted());
      }),
      { seed: 1, numRuns: 2_000 },
    );
  });

  test("the capabilities of a node are read once, however many tasks there are", () => {
    let reads = 0;
    const watched = (list: string[]): readonly string[] =>
      new Proxy(list, {
        get: (of, name, self) => {
          if (typeof name === "string" && /^\d+$/.test(name)) reads += 1;
          return Reflect.get(of, name, self);
        },
      });
    const words = (i: number): string[] => Array.from({ length: 10 }, (_, k) => `${i} ${k}`);
    const all = Array.from({ length: 100 }, (_, i) => node(`n${i}`, { capabilities: watched(words(i)) }));
    const list = Array.from({ length: 200 }, (_, i) =>
      task(`t${i}`, { taskType: i % 2 ? "nobody takes it" : `${i % 100} 3` }),
    );
    expect(balance(list, all, NOW)).toHaveLength(100);
    expect(reads).toBeLessThanOrEqual(100 * 10);
  });
});

test("available is online, asked for tasks, and below the limit", () => {
  const rows: readonly (readonly [Partial<Candidate>, boolean])[] = [
    [{}, true],
    [{ online: false }, false],
    [{ autoAssign: false }, false],
    [{ maxTasks: 1 }, true],
    [{ maxTasks: 1, tasksAssigned: 1 }, false],
    [{ maxTasks: null, tasksAssigned: 1_000_000 }, true],
  ];
  for (const [patch, expected] of rows) expect(isAvailable(node("a", patch))).toBe(expected);
});
