/** Nodes (domain/node.ts): registration, heartbeats, coming back, expiry; each with every state of the node. */
import { describe, expect, test } from "bun:test";
import type { Node } from "../../src/domain/model.ts";
import { comeBack, expire, heartbeat, register } from "../../src/domain/node.ts";
import { EARLIER, NOW, STEADY, type Sketch, node, profile, sketch, task } from "./samples.ts";

const BEAT = { now: NOW, steady: STEADY, leaseMs: 90_000 };
const ALIVE = { online: true, lastHeartbeatAt: NOW, leaseUntil: STEADY + 90_000 };

type State = "unknown" | "online" | "offline";
const STATES: Readonly<Record<State, Node | null>> = {
  unknown: null,
  online: node("n1", { tasksAssigned: 2, tasksCompleted: 3, luxEarnedMicro: 4n }),
  offline: node("n1", { tasksAssigned: 2, tasksCompleted: 3, luxEarnedMicro: 4n, online: false }),
};
const ALL = Object.keys(STATES) as State[];

const online = 'node.online n1 null {"name":"Name of n1"}';
const given = (taskId: string): readonly string[] => [
  "task.moved assigned n1",
  "tasks -1 +1 0",
  "n1 +1 0 0",
  `task.assigned n1 ${taskId} {"by":"balancer"}`,
];
const waiting = [task("t1", { balanced: true }), task("t2", { balanced: true })];

describe("register", () => {
  const cells: Readonly<Record<State, Sketch>> = {
    unknown: [
      "answers true",
      "node.saved n1",
      "node.beaten n1",
      'node.registered n1 null {"name":"Name of n1"}',
      online,
    ],
    online: ["answers false", "node.saved n1", "node.beaten n1"],
    offline: ["answers false", "node.saved n1", "node.beaten n1", online],
  };
  for (const state of ALL) {
    test(state, () => {
      const decision = register(profile("n1"), STATES[state], [], BEAT);
      expect(sketch(decision, ({ created }) => String(created))).toEqual(cells[state]);
    });
    test(`${state}, with waiting tasks`, () => {
      const decision = register(profile("n1"), STATES[state], waiting, BEAT);
      expect(sketch(decision, ({ created }) => String(created))).toEqual([
        ...cells[state],
        ...given("t1"),
        ...given("t2"),
      ]);
      expect(decision.answer.node.tasksAssigned).toBe((STATES[state]?.tasksAssigned ?? 0) + 2);
    });
  }

  test("a new node starts with empty totals", () => {
    expect(register(profile("n1"), null, [], BEAT).answer.node).toEqual(
      node("n1", { ...ALIVE, registeredAt: NOW, idleSince: NOW }),
    );
  });

  test("a known node gets the new profile and keeps its history", () => {
    const changed = profile("n1", {
      name: "New",
      host: "h",
      port: 1,
      capabilities: ["x"],
      variant: "A",
      maxTasks: 5,
    });
    expect(register(changed, STATES.offline, [], BEAT).answer).toEqual({
      node: node("n1", { ...changed, ...ALIVE, tasksAssigned: 2, tasksCompleted: 3, luxEarnedMicro: 4n }),
      created: false,
    });
    expect(STATES.offline?.registeredAt).toBe(EARLIER);
  });

  test("that changes its profile says which fields", () => {
    const changed = profile("n1", { port: 0, capabilities: ["x"], autoAssign: false });
    expect(sketch(register(changed, STATES.online, [], BEAT), () => "")).toContain(
      'node.updated n1 null {"name":"Name of n1","changed":"port,capabilities,auto_assign"}',
    );
  });

  test("after a deletion is a new registration that keeps the old totals", () => {
    const former = node("n1", {
      online: false,
      tasksCompleted: 3,
      luxEarnedMicro: 4n,
      entries: 2,
      balanceMicro: 9n,
    });
    const { answer } = register(profile("n1"), null, [], BEAT, former);
    expect(answer).toMatchObject({
      created: true,
      node: { registeredAt: NOW, tasksCompleted: 3, entries: 2 },
    });
    expect(answer.node.balanceMicro).toBe(9n);
  });

  test("is assigned tasks up to its limit, and only those that it can take", () => {
    const tasks = [task("t0", { taskType: "y" }), ...waiting, task("t3")];
    const decision = register(profile("n1", { maxTasks: 2, capabilities: ["x"] }), null, tasks, BEAT);
    const moved = decision.changes.flatMap((c) => (c.kind === "task.moved" ? [c.task.taskId] : []));
    expect(moved).toEqual(["t1", "t2"]);
  });

  test("counts its assigned tasks against a lowered limit", () => {
    const decision = register(profile("n1", { maxTasks: 2 }), STATES.online, waiting, BEAT);
    expect(decision.changes.some((c) => c.kind === "task.moved")).toBe(false);
  });
});

describe("heartbeat", () => {
  const cells: Readonly<Record<State, Sketch>> = {
    unknown: "node_not_found",
    online: ["answers n1", "node.beaten n1"],
    offline: "undecided",
  };
  for (const state of ALL)
    test(state, () =>
      expect(sketch(heartbeat(STATES[state], "n1", BEAT), (n) => n.nodeId)).toEqual(cells[state]),
    );
  test("renews the lease and stores the time", () => {
    const decision = heartbeat(STATES.online, "n1", BEAT);
    expect(decision).toMatchObject({
      answer: STATES.online,
      changes: [{ lastHeartbeatAt: NOW, leaseUntil: STEADY + 90_000 }],
    });
  });
  test("tells an unknown node to register", () => {
    expect(heartbeat(null, "n1", BEAT)).toMatchObject({
      detail: expect.stringContaining("/api/v1/node/register"),
    });
  });
});

describe("comeBack", () => {
  const cells: Readonly<Record<State, Sketch>> = {
    unknown: "node_not_found",
    online: ["answers n1", "node.beaten n1"],
    offline: ["answers n1", "node.beaten n1", "node.returned n1", online],
  };
  for (const state of ALL) {
    test(state, () =>
      expect(sketch(comeBack(STATES[state], "n1", [], BEAT), (n) => n.nodeId)).toEqual(cells[state]),
    );
    if (state !== "unknown")
      test(`${state}, with waiting tasks`, () => {
        const decision = comeBack(STATES[state], "n1", waiting, BEAT);
        expect(sketch(decision, (n) => n.nodeId)).toEqual([...cells[state], ...given("t1"), ...given("t2")]);
        expect(decision).toMatchObject({ answer: { ...ALIVE, tasksAssigned: 4 } });
      });
  }
});

describe("expire", () => {
  test("nobody", () => expect(expire([], NOW)).toEqual({ kind: "accepted", answer: [], changes: [] }));
  test("each goes offline, and an event says so", () => {
    expect(sketch(expire([node("n1"), node("n2")], NOW), (ids) => ids.join())).toEqual([
      "answers n1,n2",
      "node.offline n1",
      'node.offline n1 null {"name":"Name of n1"}',
      "node.offline n2",
      'node.offline n2 null {"name":"Name of n2"}',
    ]);
  });
});
