/**
 * The rules of tasks (domain/task.ts) as tables: every state of a task with every command and every kind of node.
 * The tables are records over closed unions: a state that has no cell does not compile.
 */
import { describe, expect, test } from "bun:test";
import type { Decision } from "../../src/domain/decision.ts";
import { BALANCE_MAX_MICRO } from "../../src/domain/limits.ts";
import type { Node, Task } from "../../src/domain/model.ts";
import {
  type Completion,
  assignTo,
  complete,
  create,
  remove,
  requeue,
  revoke,
  take,
} from "../../src/domain/task.ts";
import { EARLIER, NOW, type Sketch, draft, node, sketch, sketchChange, sketchTask, task } from "./samples.ts";

const RESULT = { problem: "p", improvement: "i", lesson: "l", extra: null };
const REWARD = 2_500_000;

/** Where a task can be; who holds or held it is always n1. */
type Stage = "none" | "open" | "assigned" | "completed";

const STAGES: Readonly<Record<Stage, Task | null>> = {
  none: null,
  open: task("t", { luxRewardMicro: REWARD }),
  assigned: task("t", { luxRewardMicro: REWARD, status: "assigned", assignedNode: "n1" }),
  completed: task("t", { luxRewardMicro: REWARD, status: "completed", assignedNode: "n1", result: RESULT }),
};

/** Who asks, or is named. */
type Who = "unknown" | "n1" | "n1 offline" | "n2" | "n2 offline";

const WHO: Readonly<Record<Who, { nodeId: string; node: Node | null }>> = {
  unknown: { nodeId: "n9", node: null },
  n1: { nodeId: "n1", node: node("n1") },
  "n1 offline": { nodeId: "n1", node: node("n1", { online: false }) },
  n2: { nodeId: "n2", node: node("n2") },
  "n2 offline": { nodeId: "n2", node: node("n2", { online: false }) },
};

type Cells<S extends string> = Readonly<Record<S, Readonly<Record<Who, Sketch>>>>;

const everyone = (cell: Sketch): Readonly<Record<Who, Sketch>> => ({
  unknown: cell,
  n1: cell,
  "n1 offline": cell,
  n2: cell,
  "n2 offline": cell,
});

function eachCell<S extends string>(
  cells: Cells<S>,
  check: (stage: S, who: Who, cell: Sketch) => void,
): void {
  // The keys of a record over closed unions are those unions.
  for (const stage of Object.keys(cells) as S[])
    for (const who of Object.keys(cells[stage]) as Who[])
      test(`${stage} × ${who}`, () => check(stage, who, cells[stage][who]));
}

function expectStamped({ answer }: { answer: Task }, before: Task): void {
  expect(answer.updatedAt).toBe(
    answer.status === before.status && answer.assignedNode === before.assignedNode ? EARLIER : NOW,
  );
  expect(answer.createdAt).toBe(EARLIER);
}

for (const by of ["claim", "assign"] as const) {
  const taken = (nodeId: string): Sketch => [
    `answers assigned ${nodeId}`,
    `task.moved assigned ${nodeId}`,
    "tasks -1 +1 0",
    `${nodeId} +1 0 0`,
    `task.assigned ${nodeId} t {"by":"${by}"}`,
  ];
  const repeat: Sketch = ["answers assigned n1"];
  const cells: Cells<Stage> = {
    none: everyone("task_not_found"),
    open: {
      unknown: "node_not_found",
      n1: taken("n1"),
      "n1 offline": "node_offline",
      n2: taken("n2"),
      "n2 offline": "node_offline",
    },
    assigned: {
      unknown: "node_not_found",
      n1: repeat,
      "n1 offline": repeat,
      n2: "task_not_open",
      "n2 offline": "task_not_open",
    },
    completed: { ...everyone("task_completed"), unknown: "node_not_found" },
  };
  describe(by, () => {
    eachCell(cells, (stage, who, cell) => {
      const { nodeId, node: found } = WHO[who];
      const before = STAGES[stage];
      const decision = take(before, found, { taskId: "t", nodeId, by }, NOW);
      expect(sketch(decision, sketchTask)).toEqual(cell);
      if (decision.kind === "accepted" && before) expectStamped(decision, before);
    });

    test("a node over its limit may still claim, and any type may be claimed", () => {
      const full = node("n1", { maxTasks: 1, tasksAssigned: 1, capabilities: ["coding"] });
      const asked = { taskId: "t", nodeId: "n1", by };
      const decision = take(task("t", { taskType: "research" }), full, asked, NOW);
      expect(sketch(decision, sketchTask)).toEqual(taken("n1"));
    });

    test("forgets from whom the task was revoked", () => {
      const before = task("t", { revokedFrom: "n1", balanced: true });
      const decision = take(before, node("n1"), { taskId: "t", nodeId: "n1", by }, NOW);
      expect(decision).toMatchObject({ kind: "accepted", answer: { revokedFrom: null } });
    });
  });
}

describe("complete", () => {
  type Case = "none" | "open" | "assigned" | "completed, the same result" | "completed, another result";
  const stages: Readonly<Record<Case, Task | null>> = {
    ...STAGES,
    "completed, the same result": STAGES.completed,
    "completed, another result": task("t", {
      status: "completed",
      assignedNode: "n1",
      result: { ...RESULT, lesson: "other" },
    }),
  };
  const paid = (nodeId: string): readonly string[] => [
    "task.moved completed " + nodeId,
    `task.completed ${nodeId} t {}`,
    `ledger ${nodeId} #4 reward ${REWARD} 7500000`,
    `lux.paid ${nodeId} t {"amount":2.5}`,
  ];
  const [movedN1, ...paidN1] = paid("n1") as readonly [string, ...string[]];
  const done: Sketch = ["answers t pays 2500000", movedN1, "tasks 0 -1 +1", `n1 -1 +1 +${REWARD}`, ...paidN1];
  const taken = (nodeId: string): Sketch => {
    const [moved, ...rest] = paid(nodeId) as readonly [string, ...string[]];
    const tallies = ["tasks -1 0 +1", `${nodeId} 0 +1 +${REWARD}`];
    return [
      "answers t pays 2500000",
      `task.assigned ${nodeId} t {"by":"complete"}`,
      moved,
      ...tallies,
      ...rest,
    ];
  };
  const notYours = { n2: "not_assigned_to_node", "n2 offline": "not_assigned_to_node" } as const;
  const shared: Omit<Cells<Case>, "open"> = {
    none: everyone("task_not_found"),
    assigned: { unknown: "node_not_found", n1: done, "n1 offline": done, ...notYours },
    "completed, the same result": {
      unknown: "node_not_found",
      n1: ["answers t pays 2500000"],
      "n1 offline": ["answers t pays 2500000"],
      ...notYours,
    },
    "completed, another result": {
      unknown: "node_not_found",
      n1: "task_completed",
      "n1 offline": "task_completed",
      ...notYours,
    },
  };
  const variants: Readonly<Record<"A" | "B", Cells<Case>>> = {
    A: { ...shared, open: { ...everyone("task_not_assigned"), unknown: "node_not_found" } },
    B: {
      ...shared,
      open: {
        unknown: "node_not_found",
        n1: taken("n1"),
        "n1 offline": taken("n1"),
        n2: taken("n2"),
        "n2 offline": taken("n2"),
      },
    },
  };
  const ask = (
    before: Task | null,
    found: Node | null,
    nodeId: string,
    claimOnComplete: boolean,
    balance = 5_000_000n,
  ) =>
    complete(
      before,
      found && { ...found, entries: 3, balanceMicro: balance },
      { taskId: "t", nodeId, result: RESULT, claimOnComplete, entryId: "e" },
      NOW,
    );
  const words = ({ taskId, luxPaidMicro }: Completion): string => `${taskId} pays ${luxPaidMicro}`;

  for (const variant of ["A", "B"] as const) {
    describe(`in ${variant}`, () => {
      eachCell(variants[variant], (stage, who, cell) => {
        const { nodeId, node: found } = WHO[who];
        expect(sketch(ask(stages[stage], found, nodeId, variant === "B"), words)).toEqual(cell);
      });
    });
  }

  test("stores the result, and keeps the other fields", () => {
    const decision = ask(STAGES.assigned, node("n1"), "n1", false);
    const moved = decision.kind === "accepted" ? decision.changes.find((c) => c.kind === "task.moved") : null;
    expect(moved?.task).toEqual({
      ...task("t", { luxRewardMicro: REWARD, assignedNode: "n1" }),
      status: "completed",
      result: RESULT,
      updatedAt: NOW,
    });
  });

  test("a repeat compares the further keys by value", () => {
    const result = { ...RESULT, extra: '{"a":1,"b":[12345678901234567890,null]}' };
    const done = task("t1", { status: "completed", assignedNode: "n1", result });
    const repeat = (extra: string | null) =>
      complete(
        done,
        node("n1"),
        { taskId: "t1", nodeId: "n1", result: { ...RESULT, extra }, claimOnComplete: false, entryId: "e" },
        NOW,
      ).kind;
    expect(repeat('{"b":[12345678901234567890,null],"a":1.0}')).toBe("accepted");
    for (const other of ['{"a":1,"b":[12345678901234567891,null]}', '{"a":1}', null])
      expect(repeat(other)).toBe("rejected");
  });

  for (const field of ["problem", "improvement", "lesson"] as const) {
    test(`another ${field} is another result`, () => {
      const before = task("t", {
        status: "completed",
        assignedNode: "n1",
        result: { ...RESULT, [field]: "other" },
      });
      expect(sketch(ask(before, node("n1"), "n1", true), words)).toBe("task_completed");
    });
  }

  test("pays nothing for a task without a reward", () => {
    const before = task("t", { status: "assigned", assignedNode: "n1" });
    expect(sketch(ask(before, node("n1"), "n1", false), words)).toEqual([
      "answers t pays 0",
      "task.moved completed n1",
      "tasks 0 -1 +1",
      "n1 -1 +1 0",
      "task.completed n1 t {}",
    ]);
  });

  test("writes nothing when the balance has no room for the reward", () => {
    expect(sketch(ask(STAGES.assigned, node("n1"), "n1", false, BALANCE_MAX_MICRO), words)).toBe(
      "lux_balance_limit",
    );
    const last = BALANCE_MAX_MICRO - BigInt(REWARD);
    expect(ask(STAGES.assigned, node("n1"), "n1", false, last).kind).toBe("accepted");
  });

  test("reports room for a node with a limit, once", () => {
    const limited = node("n1", { maxTasks: 1, tasksAssigned: 1 });
    const room = (decision: Decision<Completion>): boolean | null =>
      decision.kind === "accepted" ? decision.answer.madeRoom : null;
    expect(room(ask(STAGES.assigned, limited, "n1", false))).toBe(true);
    expect(room(ask(STAGES.assigned, node("n1"), "n1", false))).toBe(false);
    expect(room(ask(STAGES.completed, limited, "n1", false))).toBe(false);
  });
});

describe("create", () => {
  const candidates = [node("n1", { tasksAssigned: 2 }), node("n2", { tasksAssigned: 1 })];
  const waits: Sketch = [
    "answers open",
    "task.created open",
    "tasks +1 0 0",
    'task.created creator t {"title":"Title"}',
  ];
  const given: Sketch = [
    "answers assigned n2",
    "task.created assigned n2",
    "tasks 0 +1 0",
    "n2 +1 0 0",
    'task.created creator t {"title":"Title"}',
    'task.assigned n2 t {"by":"balancer"}',
  ];
  const rows: readonly (readonly [string, boolean, readonly Node[], Sketch])[] = [
    ["A, nobody there", false, [], waits],
    ["A, somebody there", false, candidates, waits],
    ["B, nobody there", true, [], waits],
    ["B, somebody there", true, candidates, given],
    ["B, everybody offline", true, [node("n1", { online: false })], waits],
    ["B, everybody full", true, [node("n1", { maxTasks: 3, tasksAssigned: 3 })], waits],
  ];
  for (const [name, balanced, nodes, cell] of rows) {
    test(name, () => {
      const decision = create(draft({ balanced, creatorNode: "creator" }), "t", nodes, NOW);
      expect(sketch(decision, sketchTask)).toEqual(cell);
      expect(decision.answer).toMatchObject({
        attempts: 0,
        result: null,
        files: [],
        createdAt: NOW,
        updatedAt: NOW,
      });
    });
  }
});

describe("revoke", () => {
  const freed = (status: string): readonly string[] => [
    `answers ${status}`,
    "task.moved open",
    "tasks +1 -1 0",
    "n1 -1 0 0",
    'task.revoked n1 t {"reason":"why"}',
  ];
  const handed = (by: string): Sketch => [
    ...freed("assigned n2"),
    "task.moved assigned n2",
    "tasks -1 +1 0",
    "n2 +1 0 0",
    `task.assigned n2 t {"by":"${by}"}`,
  ];
  const ask = (
    before: Task | null,
    target: { nodeId: string; node: Node | null } | null,
    candidates: readonly Node[],
  ) =>
    revoke(
      before,
      target?.node ?? null,
      candidates,
      { taskId: "t", nodeId: target?.nodeId ?? null, reason: "why" },
      NOW,
    );

  describe("with a target", () => {
    const cells: Cells<Stage> = {
      none: everyone("task_not_found"),
      open: { ...everyone("task_not_assigned"), unknown: "node_not_found" },
      assigned: {
        unknown: "node_not_found",
        n1: ["answers assigned n1"],
        "n1 offline": ["answers assigned n1"],
        n2: handed("revoke"),
        "n2 offline": "node_offline",
      },
      completed: { ...everyone("task_completed"), unknown: "node_not_found" },
    };
    eachCell(cells, (stage, who, cell) => {
      expect(sketch(ask(STAGES[stage], WHO[who], [node("n3")]), sketchTask)).toEqual(cell);
    });
  });

  describe("without a target", () => {
    const free = [node("n2")];
    const rows: readonly (readonly [string, Task | null, readonly Node[], Sketch])[] = [
      ["none", null, free, "task_not_found"],
      ["open", STAGES.open, free, "task_not_assigned"],
      ["completed", STAGES.completed, free, "task_completed"],
      ["assigned, of A: stays open", STAGES.assigned, free, freed("open")],
    ];
    const balanced = task("t", { status: "assigned", assignedNode: "n1", balanced: true });
    const balancedRows: typeof rows = [
      ["assigned, of B: to the next", balanced, free, handed("balancer")],
      ["assigned, of B: nobody there", balanced, [], freed("open")],
      ["assigned, of B: not straight back", balanced, [node("n1")], freed("open")],
      ["open, of B", task("t", { balanced: true }), free, "task_not_assigned"],
    ];
    for (const [name, before, candidates, cell] of [...rows, ...balancedRows])
      test(name, () => expect(sketch(ask(before, null, candidates), sketchTask)).toEqual(cell));

    test("stores the node it was revoked from, and does not count as an attempt", () => {
      expect(ask(balanced, null, [])).toMatchObject({
        answer: { revokedFrom: "n1", attempts: 0, updatedAt: NOW },
      });
    });
  });
});

describe("requeue", () => {
  test("makes an assigned task open and counts the attempt", () => {
    const held = task("t", { status: "assigned", assignedNode: "n1", attempts: 1 });
    const decision = requeue([held], NOW);
    expect(sketch(decision, String)).toEqual([
      "answers 1",
      "task.moved open",
      "tasks +1 -1 0",
      "n1 -1 0 0",
      'task.requeued n1 t {"attempts":2}',
    ]);
    expect(decision.changes[0]).toMatchObject({ task: { attempts: 2, revokedFrom: null, updatedAt: NOW } });
  });

  test("many tasks of several nodes, each with its own changes", () => {
    const held = ["a", "b", "c"].map((id, i) => task(id, { status: "assigned", assignedNode: `n${i % 2}` }));
    const decision = requeue(held, NOW);
    expect(decision.answer).toBe(3);
    expect(decision.changes.filter((c) => c.kind === "node.tallied").map(sketchChange)).toEqual([
      "n0 -1 0 0",
      "n1 -1 0 0",
      "n0 -1 0 0",
    ]);
  });

  test("of no tasks writes nothing", () =>
    expect(requeue([], NOW)).toEqual({ kind: "accepted", answer: 0, changes: [] }));
});

describe("remove", () => {
  const rows: Readonly<Record<Stage, Sketch>> = {
    none: "task_not_found",
    open: ["answers open", "task.deleted t", "tasks -1 0 0", 'task.deleted null t {"title":"Title"}'],
    assigned: [
      "answers assigned n1",
      "task.deleted t",
      "tasks 0 -1 0",
      "n1 -1 0 0",
      'task.deleted n1 t {"title":"Title"}',
    ],
    // what was paid for it stays: the lux earned does not go down
    completed: [
      "answers completed n1",
      "task.deleted t",
      "tasks 0 0 -1",
      "n1 0 -1 0",
      'task.deleted n1 t {"title":"Title"}',
    ],
  };
  for (const stage of Object.keys(rows) as Stage[])
    test(stage, () => expect(sketch(remove(STAGES[stage], "t", NOW), sketchTask)).toEqual(rows[stage]));
});

test("assignTo logs who assigned, sets the time and changes the totals", () => {
  const { after, changes } = assignTo(task("t", { revokedFrom: "n1" }), "n2", "balancer", NOW);
  expect(after).toEqual(task("t", { status: "assigned", assignedNode: "n2", updatedAt: NOW }));
  expect(changes.map(sketchChange)).toEqual([
    "task.moved assigned n2",
    "tasks -1 +1 0",
    "n2 +1 0 0",
    'task.assigned n2 t {"by":"balancer"}',
  ]);
  expect(changes.find((change) => change.kind === "node.tallied")).toMatchObject({ idleSince: NOW });
});
