/**
 * Nodes (domain/node.ts): registration, heartbeats, going online again, the next task, drain, leave, deletion, expiry;
 * each with every state of the node.
 */
import { describe, expect, test } from "bun:test";
import type { Node } from "../../src/domain/model.ts";
import {
  drain,
  expire,
  goOnline,
  heartbeat,
  leave,
  nextAsHeartbeat,
  register,
  remove,
} from "../../src/domain/node.ts";
import type { NextTasks } from "../../src/domain/task/next.ts";
import { type Sketch, EARLIER, node, NOW, profile, sketch, STEADY, task } from "./samples.ts";

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
  "tasks -1 +1 0 0",
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

  test("that changes the profile logs which fields changed", () => {
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

describe("goOnline", () => {
  const cells: Readonly<Record<State, Sketch>> = {
    unknown: "node_not_found",
    online: ["answers n1", "node.beaten n1"],
    offline: ["answers n1", "node.beaten n1", "node.returned n1", online],
  };
  for (const state of ALL) {
    test(state, () =>
      expect(sketch(goOnline(STATES[state], "n1", [], BEAT), (n) => n.nodeId)).toEqual(cells[state]),
    );
    if (state !== "unknown")
      test(`${state}, with waiting tasks`, () => {
        const decision = goOnline(STATES[state], "n1", waiting, BEAT);
        expect(sketch(decision, (n) => n.nodeId)).toEqual([...cells[state], ...given("t1"), ...given("t2")]);
        expect(decision).toMatchObject({ answer: { ...ALIVE, tasksAssigned: 4 } });
      });
  }
});

test("nextAsHeartbeat does not repeat a heartbeat that is younger than a second", () => {
  const found = { started: null, gifts: null, open: [task("open")], waiting: [] };
  for (const ageMs of [0, 999, 1_000]) {
    const asking = node("n1", { leaseUntil: BEAT.steady - ageMs + BEAT.leaseMs });
    const decision = nextAsHeartbeat(asking, "n1", found, BEAT, true);
    const changes = decision.kind === "accepted" ? decision.changes : [];
    expect(changes.map(({ kind }) => kind)).toContain("task.moved");
    expect(changes.some(({ kind }) => kind === "node.beaten")).toBe(ageMs === 1_000);
  }
});

/** Every state of the node that asks, with each place from which a task may come; better places first. */
describe("nextAsHeartbeat", () => {
  type Asking =
    "unknown" | "online" | "full" | "draining" | "offline" | "offline, full" | "offline, draining";
  type Place = "started" | "gift" | "open" | "nothing";
  const full = { maxTasks: 1, tasksAssigned: 1 };
  const asking: Readonly<Record<Asking, Node | null>> = {
    unknown: null,
    online: node("n1"),
    full: node("n1", full),
    draining: node("n1", { draining: true }),
    offline: node("n1", { online: false }),
    "offline, full": node("n1", { ...full, online: false }),
    "offline, draining": node("n1", { draining: true, online: false }),
  };
  const held = { status: "assigned", assignedNode: "n1", timeoutMs: 1_000, epoch: 4 } as const;
  const open = [task("open", { timeoutMs: 1_000, epoch: 4 })];
  const gifts = task("gift", held);
  const started = task("started", { ...held, startedAt: EARLIER });
  const places: Readonly<Record<Place, NextTasks>> = {
    started: { started, gifts, open },
    gift: { started: null, gifts, open },
    open: { started: null, gifts: null, open },
    nothing: { started: null, gifts: null, open: [] },
  };
  const moved = ["task.moved assigned n1"];
  const opened = [...moved, "tasks -1 +1 0 0", "n1 +1 0 0", 'task.assigned n1 open {"by":"next"}'];
  const handsOut = {
    started: ["answers started", ...moved, 'task.assigned n1 started {"by":"resume"}'],
    gift: ["answers gift", ...moved],
    open: ["answers open", ...opened],
    nothing: ["answers nothing"],
  };
  const cells: Readonly<Record<Asking, Readonly<Record<Place, Sketch>>>> = {
    unknown: {
      started: "node_not_found",
      gift: "node_not_found",
      open: "node_not_found",
      nothing: "node_not_found",
    },
    online: handsOut,
    full: { ...handsOut, open: ["answers nothing: full"], nothing: ["answers nothing: full"] },
    draining: { ...handsOut, open: ["answers nothing"] },
    offline: handsOut,
    "offline, full": { ...handsOut, open: ["answers nothing: full"], nothing: ["answers nothing: full"] },
    "offline, draining": { ...handsOut, open: ["answers nothing"] },
  };
  // The keys of a record over closed unions are those unions.
  for (const who of Object.keys(cells) as Asking[])
    for (const place of Object.keys(places) as Place[])
      for (const when of ["", ", just after a heartbeat", ", again in the same call"])
        test(`${who} × ${place}${when}`, () => {
          const [isFresh, isAgain] = [when.includes("just"), when.includes("again")];
          const found = { ...places[place], waiting: [] };
          const known = asking[who];
          const leaseUntil = BEAT.steady + (isFresh ? BEAT.leaseMs : 0);
          const decision = nextAsHeartbeat(known && { ...known, leaseUntil }, "n1", found, BEAT, isAgain);
          const said = sketch(decision, (next) =>
            next.task ? next.task.taskId : next.isFull ? "nothing: full" : "nothing",
          );
          const cell = cells[who][place];
          if (decision.kind === "rejected") return expect(said).toEqual(cell);
          const [answer = "", ...changes] = cell;
          const beats = who.startsWith("offline")
            ? ["node.beaten n1", "node.returned n1", online]
            : isFresh || (isAgain && !decision.answer.task)
              ? []
              : ["node.beaten n1"];
          expect(said).toEqual([answer, ...beats, ...changes]);
          expect(decision.answer.draining).toBe(who.endsWith("draining"));
          const { task } = decision.answer;
          if (task) expect(task).toMatchObject({ epoch: 5, startedAt: NOW, leaseUntil: STEADY + 1_000 });
          else expect(decision.isStored).toBe(false);
        });

  test("a task that the balancer assigns to a node that goes online is a gift, and next hands out the best gift", () => {
    const best = [task("best", { balanced: true, priority: 0 }), ...waiting];
    const found = { ...places.gift, waiting: best };
    expect(nextAsHeartbeat(asking.offline, "n1", found, BEAT, false)).toMatchObject({
      answer: { task: { taskId: "best" }, from: "gifts" },
    });
    expect(nextAsHeartbeat(asking.offline, "n1", { ...found, waiting }, BEAT, false)).toMatchObject({
      answer: { task: { taskId: "t1" }, from: "gifts" },
    });
  });
});

describe("leave, drain and remove", () => {
  type Known = State | "draining" | "offline, draining";
  const known: Readonly<Record<Known, Node | null>> = {
    ...STATES,
    draining: node("n1", { draining: true }),
    "offline, draining": node("n1", { draining: true, online: false }),
  };
  const named = (kind: string, more = ""): string => `${kind} n1 null {"name":"Name of n1"${more}}`;
  const left = ["node.offline n1", named("node.left"), named("node.offline")];
  const begins = ["answers n1 drains", "node.drained", named("node.draining", ',"draining":true')];
  const ends = ["answers n1", "node.drained", named("node.draining", ',"draining":false')];
  const deleted = ["node.deleted", "invitations.dropped", named("node.deleted")];
  const cells: Readonly<Record<Known, Readonly<Record<"leave" | "drain" | "undrain" | "remove", Sketch>>>> = {
    unknown: {
      leave: "node_not_found",
      drain: "node_not_found",
      undrain: "node_not_found",
      remove: "node_not_found",
    },
    online: {
      leave: ["answers n1", ...left],
      drain: begins,
      undrain: ["answers n1"],
      remove: ["answers n1", ...deleted],
    },
    offline: {
      leave: ["answers n1"],
      drain: begins,
      undrain: ["answers n1"],
      remove: ["answers n1", ...deleted],
    },
    draining: {
      leave: ["answers n1", "node.drained", ...left],
      drain: ["answers n1 drains"],
      undrain: ends,
      remove: ["answers n1 drains", ...deleted],
    },
    "offline, draining": {
      leave: ["answers n1", "node.drained"],
      drain: ["answers n1 drains"],
      undrain: ends,
      remove: ["answers n1 drains", ...deleted],
    },
  };
  const say = ({ nodeId, draining }: Node): string => (draining ? `${nodeId} drains` : nodeId);
  for (const state of Object.keys(cells) as Known[]) {
    const before = known[state];
    test(state, () =>
      expect({
        leave: sketch(leave(before, "n1", NOW), say),
        drain: sketch(drain(before, { nodeId: "n1", draining: true }, NOW), say),
        undrain: sketch(drain(before, { nodeId: "n1", draining: false }, NOW), say),
        remove: sketch(remove(before, "n1", NOW), say),
      }).toEqual(cells[state]),
    );
  }
});

describe("expire", () => {
  test("without expired nodes changes nothing", () =>
    expect(expire([], NOW)).toEqual({ kind: "accepted", answer: [], changes: [] }));
  test("puts each expired node offline, with an event", () => {
    expect(sketch(expire([node("n1"), node("n2")], NOW), (ids) => ids.join())).toEqual([
      "answers n1,n2",
      "node.offline n1",
      'node.offline n1 null {"name":"Name of n1"}',
      "node.offline n2",
      'node.offline n2 null {"name":"Name of n2"}',
    ]);
  });
});
