/**
 * The rules of tasks (domain/task/core.ts) as tables: every state of a task with every command and every kind of node.
 * The tables are records over closed unions: a state that has no cell does not compile.
 */
import { describe, expect, test } from "bun:test";
import type { Decision } from "../../src/domain/decision.ts";
import { BALANCE_MAX_MICRO } from "../../src/domain/limits.ts";
import { EMPTY_LEDGER } from "../../src/domain/lux.ts";
import type { LedgerEntry, Node, Task } from "../../src/domain/model.ts";
import type { Completion } from "../../src/domain/task/facet/reward.ts";
import type { Dependency } from "../../src/domain/task/facet/dependencies.ts";
import type { HolderRequest } from "../../src/domain/task/request.ts";
import type { TaskDraft } from "../../src/domain/task/new-task.ts";
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
import { cancel, retry } from "../../src/domain/task/creator.ts";
import { returnGift } from "../../src/domain/task/next.ts";
import { updateDependents } from "../../src/domain/task/dependents.ts";
import {
  type Sketch,
  AT,
  draft,
  EARLIER,
  node,
  NOW,
  sketch,
  sketchChange,
  sketchTask,
  STEADY,
  task,
} from "./samples.ts";

const RESULT = { problem: "p", improvement: "i", lesson: "l", extra: null };
const REWARD = 2_500_000;

/** Where a task can be; who holds or held it is always n1. */
type Stage = "none" | "open" | "waits" | "assigned" | "completed" | "failed";

const FAILURE = { kind: "failed", message: "before", nodeId: "n1", at: EARLIER } as const;

/** Paid the completed task. */
const ENTRY: LedgerEntry = {
  ...{ seq: 1, id: "e", from: "treasury", to: "node:n1", nodeId: "n1", n: 1, balanceMicro: BigInt(REWARD) },
  ...{ amountMicro: REWARD, kind: "reward", taskId: "t", at: NOW, hash: "h" },
};
const STAGES: Readonly<Record<Stage, Task | null>> = {
  none: null,
  open: task("t", { luxRewardMicro: REWARD }),
  waits: task("t", { luxRewardMicro: REWARD, notBefore: NOW + 1, scheduled: true }),
  failed: task("t", {
    luxRewardMicro: REWARD,
    status: "failed",
    failure: FAILURE,
    attempts: 10,
    failures: 10,
  }),
  assigned: task("t", { luxRewardMicro: REWARD, status: "assigned", assignedNode: "n1" }),
  completed: task("t", {
    luxRewardMicro: REWARD,
    status: "completed",
    assignedNode: "n1",
    result: RESULT,
    paidSeq: 1,
  }),
};

/** Who asks, or is named. */
type Who = "unknown" | "n1" | "n1 offline" | "n1 draining" | "n2" | "n2 offline" | "n2 draining";

const WHO: Readonly<Record<Who, { nodeId: string; node: Node | null }>> = {
  unknown: { nodeId: "n9", node: null },
  n1: { nodeId: "n1", node: node("n1") },
  "n1 offline": { nodeId: "n1", node: node("n1", { online: false }) },
  "n1 draining": { nodeId: "n1", node: node("n1", { draining: true }) },
  n2: { nodeId: "n2", node: node("n2") },
  "n2 offline": { nodeId: "n2", node: node("n2", { online: false }) },
  "n2 draining": { nodeId: "n2", node: node("n2", { draining: true }) },
};

const sketchMany = (tasks: readonly Task[]): string => tasks.map(sketchTask).join(", ");

type Cells<S extends string> = Readonly<Record<S, Readonly<Record<Who, Sketch>>>>;

const everyone = (cell: Sketch): Readonly<Record<Who, Sketch>> => ({
  unknown: cell,
  n1: cell,
  "n1 offline": cell,
  "n1 draining": cell,
  n2: cell,
  "n2 offline": cell,
  "n2 draining": cell,
});
/** What is refused whoever asks, if it is registered. */
const anyNode = (cell: Sketch): Readonly<Record<Who, Sketch>> => ({
  ...everyone(cell),
  unknown: "node_not_found",
});
/** n1 may, whether it is online or drains; nobody else may. */
const holderAlone = (
  cell: Sketch,
  others: Sketch = "not_assigned_to_node",
): Readonly<Record<Who, Sketch>> => ({
  ...anyNode(others),
  n1: cell,
  "n1 offline": cell,
  "n1 draining": cell,
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
    "tasks -1 +1 0 0",
    `${nodeId} +1 0 0`,
    `task.assigned ${nodeId} t {"by":"${by}"}`,
  ];
  // The first claim of what was assigned to the node says that it works on it.
  const repeat: Sketch =
    by === "assign" ? ["answers assigned n1"] : ["answers assigned n1", "task.moved assigned n1"];
  const cells: Cells<Stage> = {
    none: everyone("task_not_found"),
    open: {
      unknown: "node_not_found",
      n1: taken("n1"),
      "n1 offline": "node_offline",
      "n1 draining": "node_draining",
      n2: taken("n2"),
      "n2 offline": "node_offline",
      "n2 draining": "node_draining",
    },
    waits: anyNode("task_not_ready"),
    assigned: holderAlone(repeat, "task_not_open"),
    completed: anyNode("task_completed"),
    failed: anyNode("task_failed"),
  };
  describe(by, () => {
    eachCell(cells, (stage, who, cell) => {
      const { nodeId, node: found } = WHO[who];
      const before = STAGES[stage];
      const decision = take(before, found, { taskId: "t", nodeId, by }, AT);
      expect(sketch(decision, sketchTask)).toEqual(cell);
      if (decision.kind === "accepted" && before) expectStamped(decision, before);
    });

    test("a node over its limit may still claim, and any type may be claimed", () => {
      const full = node("n1", { maxTasks: 1, tasksAssigned: 1, capabilities: ["coding"] });
      const asked = { taskId: "t", nodeId: "n1", by };
      const decision = take(task("t", { taskType: "research" }), full, asked, AT);
      expect(sketch(decision, sketchTask)).toEqual(taken("n1"));
    });

    test("clears the node from which the task was revoked", () => {
      const before = task("t", { revokedFrom: "n1", balanced: true });
      const decision = take(before, node("n1"), { taskId: "t", nodeId: "n1", by }, AT);
      expect(decision).toMatchObject({ kind: "accepted", answer: { revokedFrom: null } });
    });
  });
}

describe("complete", () => {
  type Case = Exclude<Stage, "completed"> | "completed, the same result" | "completed, another result";
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
  const done: Sketch = [
    "answers t pays 2500000",
    movedN1,
    "tasks 0 -1 +1 0",
    `n1 -1 +1 +${REWARD}`,
    ...paidN1,
  ];
  const taken = (nodeId: string): Sketch => {
    const [moved, ...rest] = paid(nodeId) as readonly [string, ...string[]];
    const tallies = ["tasks -1 0 +1 0", `${nodeId} 0 +1 +${REWARD}`];
    return [
      "answers t pays 2500000",
      `task.assigned ${nodeId} t {"by":"complete"}`,
      moved,
      ...tallies,
      ...rest,
    ];
  };
  const shared: Omit<Cells<Case>, "open" | "waits"> = {
    none: everyone("task_not_found"),
    assigned: holderAlone(done),
    "completed, the same result": holderAlone(["answers t pays 2500000"]),
    "completed, another result": holderAlone("task_completed"),
    failed: anyNode("task_failed"),
  };
  const variants: Readonly<Record<"A" | "B", Cells<Case>>> = {
    A: { ...shared, open: anyNode("task_not_assigned"), waits: anyNode("task_not_assigned") },
    B: {
      ...shared,
      waits: anyNode("task_not_ready"),
      open: {
        ...holderAlone(taken("n1"), taken("n2")),
        unknown: "node_not_found",
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
      {
        taskId: "t",
        nodeId,
        epoch: null,
        result: RESULT,
        claimOnComplete,
        entryId: "e",
        head: EMPTY_LEDGER,
        paid: before?.paidSeq == null ? null : ENTRY,
      },
      AT,
    );
  const words = ({ taskId, receipt }: Completion): string => `${taskId} pays ${receipt?.amountMicro ?? 0}`;

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
      paidSeq: 1,
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
        {
          taskId: "t1",
          nodeId: "n1",
          epoch: null,
          result: { ...RESULT, extra },
          claimOnComplete: false,
          entryId: "e",
          head: EMPTY_LEDGER,
          paid: null,
        },
        AT,
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
      "tasks 0 -1 +1 0",
      "n1 -1 +1 0",
      "task.completed n1 t {}",
    ]);
  });

  test("writes nothing if the reward would exceed the maximum balance", () => {
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
    "tasks +1 0 0 0",
    'task.created creator t {"title":"Title"}',
  ];
  const given: Sketch = [
    "answers assigned n2",
    "task.created assigned n2",
    "tasks 0 +1 0 0",
    "n2 +1 0 0",
    'task.created creator t {"title":"Title"}',
    'task.assigned n2 t {"by":"balancer","creator_node":"creator"}',
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
      const decision = create(draft({ balanced, creatorNode: "creator" }), "t", nodes, AT);
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
    "tasks +1 -1 0 0",
    "n1 -1 0 0",
    'task.revoked n1 t {"reason":"why"}',
  ];
  const handed = (by: string): Sketch => [
    ...freed("assigned n2"),
    "task.moved assigned n2",
    "tasks -1 +1 0 0",
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
      AT,
    );

  describe("with a target", () => {
    const cells: Cells<Stage> = {
      none: everyone("task_not_found"),
      open: anyNode("task_not_assigned"),
      waits: anyNode("task_not_assigned"),
      assigned: {
        ...holderAlone(["answers assigned n1"], handed("revoke")),
        "n2 offline": "node_offline",
        "n2 draining": "node_draining",
      },
      completed: anyNode("task_completed"),
      failed: anyNode("task_failed"),
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
      ["waits", STAGES.waits, free, "task_not_assigned"],
      ["completed", STAGES.completed, free, "task_completed"],
      ["failed", STAGES.failed, free, "task_failed"],
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
    const decision = requeue([held], AT);
    expect(sketch(decision, sketchMany)).toEqual([
      "answers open",
      "task.moved open",
      "tasks +1 -1 0 0",
      "n1 -1 0 0",
      'task.requeued n1 t {"attempts":2}',
    ]);
    const failure = { kind: "offline", message: "The node went offline.", nodeId: "n1", at: NOW };
    expect(decision.answer).toMatchObject([
      { attempts: 2, failures: 0, failure, notBefore: null, updatedAt: NOW },
    ]);
  });

  test("many tasks of several nodes, each with its own changes", () => {
    const held = ["a", "b", "c"].map((id, i) => task(id, { status: "assigned", assignedNode: `n${i % 2}` }));
    const decision = requeue(held, AT);
    expect(decision.answer.length).toBe(3);
    expect(decision.changes.filter((c) => c.kind === "node.tallied").map(sketchChange)).toEqual([
      "n0 -1 0 0",
      "n1 -1 0 0",
      "n0 -1 0 0",
    ]);
  });

  test("of no tasks writes nothing", () =>
    expect(requeue([], AT)).toEqual({ kind: "accepted", answer: [], changes: [] }));

  test("never ends a task without max_attempts", () => {
    const held = task("t", { status: "assigned", assignedNode: "n1", attempts: 400, failures: 9 });
    expect(requeue([held], AT).answer).toMatchObject([{ status: "open", attempts: 401, failures: 9 }]);
  });

  test("ends a task whose max_attempts is reached, after the event of the attempt", () => {
    const held = task("t", { status: "assigned", assignedNode: "n1", attempts: 1, maxAttempts: 2 });
    expect(sketch(requeue([held], AT), sketchMany)).toEqual([
      "answers failed",
      "task.moved failed",
      "tasks 0 -1 0 +1",
      "n1 -1 0 0",
      'task.requeued n1 t {"attempts":2}',
      'task.failed n1 t {"kind":"offline","message":"The node went offline."}',
    ]);
  });
});

/** What the holder of a task sends; every state, everyone, and no epoch, the current one or another. */
describe("the holder", () => {
  const LEASED: Task = { ...(STAGES.assigned ?? task("t")), epoch: 7 };
  const asked = (nodeId: string, epoch: number | null) => ({ taskId: "t", nodeId, epoch });
  const cellsOf = (accepted: Sketch): Cells<Stage> => ({
    none: everyone("task_not_found"),
    open: anyNode("task_not_assigned"),
    waits: anyNode("task_not_assigned"),
    assigned: holderAlone(accepted),
    completed: holderAlone("task_completed"),
    failed: anyNode("task_failed"),
  });
  const opened = ["answers open", "task.moved open", "tasks +1 -1 0 0", "n1 -1 0 0"];
  const commands: Readonly<
    Record<string, readonly [(t: Task | null, n: Node | null, h: HolderRequest) => Decision<Task>, Sketch]>
  > = {
    release: [
      (t, n, h) => release(t, n, [], { ...h, reason: "why" }, AT),
      [...opened, 'task.released n1 t {"reason":"why"}'],
    ],
    fail: [
      (t, n, h) => fail(t, n, [], { ...h, error: "broken", retry: true }, AT),
      [...opened, 'task.attempt_failed n1 t {"attempts":1,"error":"broken"}'],
    ],
    "fail without retry": [
      (t, n, h) => fail(t, n, [], { ...h, error: "broken", retry: false }, AT),
      [
        "answers failed",
        "task.moved failed",
        "tasks 0 -1 0 +1",
        "n1 -1 0 0",
        'task.attempt_failed n1 t {"attempts":1,"error":"broken"}',
        'task.failed n1 t {"kind":"failed","message":"broken"}',
      ],
    ],
    "extend without a timeout": [
      (t, n, h) => extend(t, n, { ...h, note: null }, AT),
      ["answers assigned n1"],
    ],
    "extend with a note": [
      (t, n, h) => extend(t, n, { ...h, note: "half" }, AT),
      ["answers assigned n1", "task.moved assigned n1", 'task.progress n1 t {"note":"half"}'],
    ],
  };
  for (const [name, [run, accepted]] of Object.entries(commands))
    describe(name, () => {
      eachCell(cellsOf(accepted), (stage, who, cell) => {
        const { nodeId, node: found } = WHO[who];
        expect(sketch(run(STAGES[stage], found, asked(nodeId, null)), sketchTask)).toEqual(cell);
      });

      test("with the current epoch, with an older and a newer one", () => {
        expect(sketch(run(LEASED, node("n1"), asked("n1", 7)), sketchTask)).toEqual(accepted);
        for (const epoch of [0, 6, 8]) {
          expect(sketch(run(LEASED, node("n1"), asked("n1", epoch)), sketchTask)).toBe("stale_lease");
          // before "it is not yours", and before "nobody holds it"
          expect(sketch(run(LEASED, node("n2"), asked("n2", epoch)), sketchTask)).toBe("stale_lease");
          const open = { ...LEASED, status: "open", assignedNode: null } as const;
          expect(sketch(run(open, node("n1"), asked("n1", epoch)), sketchTask)).toBe("stale_lease");
        }
        const failed = { ...LEASED, status: "failed", assignedNode: null } as const;
        expect(sketch(run(failed, node("n1"), asked("n1", 3)), sketchTask)).toBe("task_failed");
      });
    });

  test("complete with an older epoch is refused, whoever holds it", () => {
    const more = { result: RESULT, claimOnComplete: true, entryId: "e", head: EMPTY_LEDGER, paid: null };
    for (const nodeId of ["n1", "n2"])
      expect(complete(LEASED, node(nodeId), { ...asked(nodeId, 6), ...more }, AT)).toMatchObject({
        code: "stale_lease",
      });
    expect(complete(LEASED, node("n1"), { ...asked("n1", 7), ...more }, AT).kind).toBe("accepted");
  });

  test("complete after the lease has run out succeeds until periodic work takes the task back", () => {
    const late: Task = { ...LEASED, timeoutMs: 1, leaseUntil: STEADY - 1 };
    const more = { result: RESULT, claimOnComplete: false, entryId: "e", head: EMPTY_LEDGER, paid: null };
    expect(complete(late, node("n1"), { ...asked("n1", 7), ...more }, AT).kind).toBe("accepted");
  });

  test("release keeps the attempts, counts the epoch up and remembers the node", () => {
    const held: Task = { ...LEASED, attempts: 3, startedAt: EARLIER, progress: "half", leaseUntil: STEADY };
    expect(release(held, node("n1"), [node("n1")], { ...asked("n1", 7), reason: null }, AT)).toMatchObject({
      answer: { attempts: 3, epoch: 8, revokedFrom: "n1", startedAt: null, progress: null, leaseUntil: null },
    });
  });

  test("a released task is assigned to another node at once if the balancer may assign it", () => {
    const held: Task = { ...LEASED, balanced: true, timeoutMs: 60_000 };
    const candidates = [node("n1"), node("n2", { tasksAssigned: 5 })];
    const decision = release(held, node("n1"), candidates, { ...asked("n1", 7), reason: null }, AT);
    expect(decision).toMatchObject({
      answer: { assignedNode: "n2", epoch: 9, leaseUntil: STEADY + 60_000, startedAt: null },
    });
  });

  test("each failure doubles the backoff, up to an hour", () => {
    const waits = [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600];
    waits.forEach((seconds, attempts) => {
      const held = { ...LEASED, attempts, maxAttempts: 100 };
      const decision = fail(held, node("n1"), [], { ...asked("n1", 7), error: "e", retry: true }, AT);
      expect(decision).toMatchObject({
        answer: { attempts: attempts + 1, scheduled: true, notBefore: NOW + seconds * 1_000 },
      });
    });
    const always = { ...LEASED, attempts: 99, maxAttempts: 101, backoffMs: 0 };
    expect(fail(always, node("n1"), [], { ...asked("n1", 7), error: "e", retry: true }, AT)).toMatchObject({
      answer: { scheduled: false, notBefore: NOW },
    });
  });

  test("the tenth failure or timeout ends a task without max_attempts, however often its nodes went offline", () => {
    const ask = { ...asked("n1", null), error: "e", retry: true };
    const often = { ...LEASED, attempts: 50, failures: 8 };
    const ninth = fail(often, node("n1"), [], ask, AT);
    expect(ninth).toMatchObject({ answer: { status: "open", attempts: 51, failures: 9 } });
    const tenth = fail({ ...often, failures: 9 }, node("n1"), [], ask, AT);
    expect(tenth).toMatchObject({ answer: { status: "failed", attempts: 51, assignedNode: null } });
  });

  test("max_attempts counts every attempt", () => {
    const ask = { ...asked("n1", null), error: "e", retry: true };
    const second = { ...LEASED, attempts: 1, failures: 0, maxAttempts: 2 };
    expect(fail(second, node("n1"), [], ask, AT)).toMatchObject({
      answer: { status: "failed", attempts: 2 },
    });
  });

  test("extend restarts the lease of a task with a timeout", () => {
    const held = { ...LEASED, timeoutMs: 60_000, leaseUntil: STEADY + 1 };
    expect(extend(held, node("n1"), { ...asked("n1", 7), note: null }, AT)).toMatchObject({
      answer: { leaseUntil: STEADY + 60_000, epoch: 7, updatedAt: EARLIER },
      changes: [{ kind: "task.moved" }],
    });
  });
});

/** A gift whose caller was gone. Never a refusal: nobody is there to hear it. */
describe("returnGift", () => {
  const nothing: Sketch = ["answers nothing"];
  const cells: Cells<Stage> = {
    none: everyone(nothing),
    open: everyone(nothing),
    waits: everyone(nothing),
    assigned: {
      ...everyone(nothing),
      n1: ["answers nothing", "task.moved assigned n1"],
      "n1 offline": ["answers nothing", "task.moved assigned n1"],
      "n1 draining": ["answers nothing", "task.moved assigned n1"],
    },
    completed: everyone(nothing),
    failed: everyone(nothing),
  };
  eachCell(cells, (stage, who, cell) => {
    const found = STAGES[stage];
    const before = found && { ...found, epoch: 7, startedAt: EARLIER };
    const ask = (epoch: number) => returnGift(before, { taskId: "t", nodeId: WHO[who].nodeId, epoch }, AT);
    const decision = ask(7);
    expect(sketch(decision, () => "nothing")).toEqual(cell);
    for (const change of decision.kind === "accepted" ? decision.changes : [])
      expect(change).toMatchObject({ task: { ...before, startedAt: null } });
    for (const other of [6, 8]) expect(sketch(ask(other), () => "nothing")).toEqual(nothing);
  });
});

describe("cancel", () => {
  const failed = (stage: "open" | "assigned", by: string | null): Sketch => [
    "answers failed",
    "task.moved failed",
    ...(stage === "open" ? ["tasks -1 0 0 +1"] : ["tasks 0 -1 0 +1", "n1 -1 0 0"]),
    `task.failed ${by} t {"kind":"cancelled","message":"why"}`,
  ];
  const cells: Cells<Stage> = {
    none: everyone("task_not_found"),
    open: anyNode(failed("open", null)),
    waits: anyNode(failed("open", null)),
    assigned: anyNode(failed("assigned", "n1")),
    completed: anyNode("task_completed"),
    failed: anyNode("task_failed"),
  };
  eachCell(cells, (stage, who, cell) => {
    const { nodeId, node: found } = WHO[who];
    const decision = cancel(STAGES[stage], found, { taskId: "t", nodeId, reason: "why", boundTo: null }, AT);
    expect(sketch(decision, sketchTask)).toEqual(cell);
    if (decision.kind === "accepted")
      expect(decision.answer.failure).toEqual({ kind: "cancelled", message: "why", nodeId, at: NOW });
  });

  test("a key that is bound to a node ends only what the node created", () => {
    const own = { ...task("t"), creatorNode: "n2" };
    const ask = (boundTo: string) =>
      cancel(own, null, { taskId: "t", nodeId: null, reason: null, boundTo }, AT);
    expect(ask("n1")).toMatchObject({ code: "key_bound_to_other_node" });
    expect(ask("n2")).toMatchObject({ answer: { status: "failed", failure: { nodeId: "n2" } } });
  });
});

describe("retry", () => {
  const rows: Readonly<Record<Stage, Sketch>> = {
    none: "task_not_found",
    open: "task_not_failed",
    waits: "task_not_failed",
    assigned: "task_not_failed",
    completed: "task_not_failed",
    failed: ["answers open", "task.moved open", "tasks +1 0 0 -1", "task.retried null t {}"],
  };
  const ask = (
    before: Task | null,
    dependencies: readonly Dependency[] = [],
    boundTo: string | null = null,
  ) => retry(before, dependencies, [node("n2")], { taskId: "t", boundTo }, AT);
  for (const stage of Object.keys(rows) as Stage[])
    test(stage, () => expect(sketch(ask(STAGES[stage]), sketchTask)).toEqual(rows[stage]));

  const failed = STAGES.failed ?? task("t");

  test("counts attempts from 0, keeps the last failure, and counts the epoch up", () => {
    const decision = ask({ ...failed, epoch: 4, expiresAt: NOW - 1 });
    expect(decision).toMatchObject({
      answer: { attempts: 0, failures: 0, epoch: 5, failure: FAILURE, expiresAt: null },
    });
    expect(ask({ ...failed, expiresAt: NOW + 1 })).toMatchObject({ answer: { expiresAt: NOW + 1 } });
  });

  test("a task that the balancer may assign goes to a node", () =>
    expect(ask({ ...failed, balanced: true })).toMatchObject({ answer: { assignedNode: "n2" } }));

  test("a bound key retries only tasks that its node created", () => {
    expect(ask(failed, [], "n1")).toMatchObject({ code: "key_bound_to_other_node" });
    expect(ask({ ...failed, creatorNode: "n1" }, [], "n1").kind).toBe("accepted");
  });

  test("a failure that has not reached the tasks that depend on it does not reach them any more", () => {
    const before = { ...failed, hasDependents: true };
    const changes = sketch(ask(before), sketchTask);
    expect(changes).toEqual([
      "answers open",
      "task.moved open",
      "tasks +1 0 0 -1",
      "task.retried null t {}",
      "settlement.removed t",
    ]);
    const brokenBefore = { ...before, dependsOn: ["a"] };
    expect(sketch(ask(brokenBefore, []), sketchTask)).toContain("dependency.settled t failed");
    expect(sketch(ask(brokenBefore, []), sketchTask)).not.toContain("settlement.removed t");
  });

  test("waits again for its dependencies", () => {
    const before = { ...failed, dependsOn: ["a", "b"] };
    const open = { taskId: "a", status: "open", hasDependents: true, brokenBy: null } as const;
    const done = { taskId: "b", status: "completed", hasDependents: true, brokenBy: null } as const;
    expect(sketch(ask(before, [open, done]), sketchTask)).toEqual([
      "answers open",
      "task.moved open",
      "tasks +1 0 0 -1",
      "dependencies.added t a",
      "task.retried null t {}",
    ]);
    expect(ask(before, [open, done])).toMatchObject({ answer: { unmet: 1, scheduled: true } });
    expect(sketch(ask(before, [done]), sketchTask)).toEqual([
      "answers failed",
      "task.moved failed",
      "task.broken t by a",
      "task.retried null t {}",
      'task.failed null t {"kind":"dependency","message":"Task a, on which it depends, was deleted."}',
    ]);
  });
});

describe("time", () => {
  const held = task("t", {
    status: "assigned",
    assignedNode: "n1",
    timeoutMs: 60_000,
    leaseUntil: STEADY,
    epoch: 2,
  });

  test("a timeout is an attempt, and backs off", () => {
    const decision = timeOut([held], AT);
    expect(sketch(decision, sketchMany)).toEqual([
      "answers open",
      "task.moved open",
      "tasks +1 -1 0 0",
      "n1 -1 0 0",
      'task.timed_out n1 t {"attempts":1}',
    ]);
    expect(decision.answer).toMatchObject([
      {
        failures: 1,
        epoch: 3,
        leaseUntil: null,
        notBefore: NOW + 5_000,
        scheduled: true,
        failure: { kind: "timed_out", nodeId: "n1" },
      },
    ]);
  });

  test("the last timeout ends the task", () => {
    const decision = timeOut([{ ...held, maxAttempts: 1 }], AT);
    expect(sketch(decision, sketchMany).slice(-2)).toEqual([
      'task.timed_out n1 t {"attempts":1}',
      'task.failed n1 t {"kind":"timed_out","message":"The node neither completed nor extended it within 60 s."}',
    ]);
  });

  test("a task that is not completed by expires_at fails, whoever holds it", () => {
    const decision = expireOrStart(
      [
        { ...held, expiresAt: NOW },
        task("u", { scheduled: true, notBefore: NOW + 9, unmet: 0, expiresAt: NOW }),
      ],
      AT,
    );
    expect(sketch(decision, sketchMany)).toEqual([
      "answers failed, failed",
      "task.moved failed",
      "tasks 0 -1 0 +1",
      "n1 -1 0 0",
      'task.failed n1 t {"kind":"expired","message":"It was not completed in time."}',
      "task.moved failed",
      "tasks -1 0 0 +1",
      'task.failed null u {"kind":"expired","message":"It was not completed in time."}',
    ]);
    expect(decision.answer).toMatchObject([{ leaseUntil: null }, { scheduled: false }]);
  });

  test("a task whose time has come goes into the backlog, without an event", () => {
    const decision = expireOrStart([task("t", { scheduled: true, notBefore: NOW })], AT);
    expect(sketch(decision, sketchMany)).toEqual(["answers open", "task.moved open"]);
    expect(decision.answer).toMatchObject([{ scheduled: false, notBefore: NOW }]);
  });
});

describe("how long an open task has been ready when it is handed out", () => {
  const LATER = { now: NOW + 1_000, steady: STEADY + 1_000 };
  const waited = (open: Task, at = LATER): readonly (number | undefined)[] =>
    assignTo(open, "n1", "next", at).changes.flatMap((change) =>
      change.kind === "task.moved" ? [change.waitedMs] : [],
    );
  const opened = (decision: Decision<Task> | Decision<readonly Task[]>): Task => {
    if (decision.kind === "rejected") throw new Error(decision.code);
    return [decision.answer].flat()[0] ?? task("t");
  };
  const held = task("t", { status: "assigned", assignedNode: "n1", createdAt: EARLIER, updatedAt: EARLIER });
  const asked = { taskId: "t", nodeId: "n1", epoch: null };

  test.each<[since: string, ms: number, open: () => Task]>([
    ["its creation", 1_000, () => create(draft(), "t", [], AT).answer],
    ["its start time", 600, () => create(draft({ notBefore: NOW + 400 }), "t", [], AT).answer],
    [
      "when it entered the backlog",
      1_000,
      () => opened(expireOrStart([task("t", { scheduled: true, notBefore: EARLIER })], AT)),
    ],
    [
      "its last dependency",
      1_000,
      () => opened(updateDependents([task("t", { unmet: 1, createdAt: EARLIER })], "a", "completed", AT)),
    ],
    ["a release", 1_000, () => opened(release(held, node("n1"), [], { ...asked, reason: null }, AT))],
    [
      "the end of a backoff",
      700,
      () =>
        opened(fail({ ...held, backoffMs: 300 }, node("n1"), [], { ...asked, error: "e", retry: true }, AT)),
    ],
    [
      "a timeout without a backoff",
      1_000,
      () => opened(timeOut([{ ...held, timeoutMs: 5, backoffMs: 0 }], AT)),
    ],
    [
      "a retry",
      1_000,
      () =>
        opened(
          retry(
            { ...held, status: "failed", assignedNode: null },
            [],
            [],
            { taskId: "t", boundTo: null },
            AT,
          ),
        ),
    ],
  ])("since %s", (_, ms, open) => {
    expect(waited(open())).toEqual([ms]);
  });

  test("never less than nothing, though the clock has gone back", () => {
    expect(waited(task("t", { updatedAt: NOW }), { now: NOW - 5_000, steady: STEADY })).toEqual([0]);
  });

  test("also when a node of B completes it; not when a node starts or gives back what it has", () => {
    const open = task("t", { updatedAt: NOW });
    const done = complete(
      open,
      node("n1"),
      { ...asked, result: RESULT, claimOnComplete: true, entryId: "e", head: EMPTY_LEDGER, paid: null },
      LATER,
    );
    const given = take(held, node("n1"), { ...asked, by: "claim" }, LATER);
    const freed = release(held, node("n1"), [], { ...asked, reason: null }, LATER);
    const moved = [done, given, freed].flatMap((decision) =>
      decision.kind === "accepted" ? decision.changes : [],
    );
    expect(moved.flatMap((change) => (change.kind === "task.moved" ? [change.waitedMs] : []))).toEqual([
      1_000,
      undefined,
      undefined,
    ]);
  });
});

describe("dependencies", () => {
  const ask = (dependencies: readonly Dependency[], patch: Partial<TaskDraft> = {}) =>
    create(draft({ dependsOn: ["a", "b"], balanced: true, ...patch }), "t", [node("n1")], AT, dependencies);
  const stub = (taskId: string, status: Dependency["status"], hasDependents = false): Dependency => ({
    taskId,
    status,
    hasDependents,
    brokenBy: null,
  });

  test("a new task waits for dependencies that are not completed", () => {
    const decision = ask([stub("a", "assigned"), stub("b", "open", true)]);
    expect(sketch(decision, sketchTask)).toEqual([
      "answers open",
      "task.created open",
      "tasks +1 0 0 0",
      "dependencies.added t a,b",
      "task.depended a",
      'task.created null t {"title":"Title"}',
    ]);
    expect(decision.answer).toMatchObject({ unmet: 2, scheduled: true });
  });

  test("a new task whose dependencies are completed is assigned", () =>
    expect(ask([stub("a", "completed"), stub("b", "completed")]).answer).toMatchObject({
      unmet: 0,
      assignedNode: "n1",
    }));

  test("a new task fails at once if a dependency has failed or was deleted", () => {
    for (const dependencies of [[stub("a", "completed"), stub("b", "failed")], [stub("a", "open")]]) {
      const decision = ask(dependencies);
      const words = dependencies.length === 2 ? "failed" : "was deleted";
      expect(sketch(decision, sketchTask)).toEqual([
        "answers failed",
        "task.created failed",
        "tasks 0 0 0 +1",
        "task.broken t by b",
        'task.created null t {"title":"Title"}',
        `task.failed null t {"kind":"dependency","message":"Task b, on which it depends, ${words}."}`,
      ]);
    }
  });

  test("the end of a task with dependents records a settlement", () => {
    const last = (decision: Decision<unknown>): readonly string[] =>
      decision.kind === "accepted" ? decision.changes.map(sketchChange) : [];
    const held = { ...(STAGES.assigned ?? task("t")), hasDependents: true };
    const by = { taskId: "t", nodeId: "n1", epoch: null };
    const done = complete(
      held,
      node("n1"),
      { ...by, result: RESULT, claimOnComplete: false, entryId: "e", head: EMPTY_LEDGER, paid: null },
      AT,
    );
    expect(last(done)).toContain("dependency.settled t completed");
    expect(last(fail(held, node("n1"), [], { ...by, error: "e", retry: false }, AT))).toContain(
      "dependency.settled t failed",
    );
    expect(last(fail(held, node("n1"), [], { ...by, error: "e", retry: true }, AT)).join()).not.toContain(
      "settled",
    );
    expect(last(remove(held, "t", NOW))).toContain("dependency.settled t deleted");
    expect(last(remove({ ...held, status: "completed" }, "t", NOW)).join()).not.toContain("settled");
  });

  test("updateDependents: a task has one dependency less, and is ready after the last", () => {
    const two = task("t", { unmet: 2, scheduled: true });
    const one = task("u", { unmet: 1, scheduled: true });
    const late = task("v", { unmet: 1, scheduled: true, notBefore: NOW + 1 });
    const decision = updateDependents([two, one, late], "a", "completed", AT);
    expect(decision.answer).toMatchObject([
      { unmet: 1, scheduled: true },
      { unmet: 0, scheduled: false },
      { unmet: 0, scheduled: true },
    ]);
    expect(decision.changes.map(sketchChange).slice(0, 2)).toEqual(["task.moved open", "dependency.met t a"]);
  });

  test("updateDependents: a task fails with its dependency, and that is recorded for its own dependents", () => {
    const waits = task("t", { unmet: 2, scheduled: true, hasDependents: true });
    expect(sketch(updateDependents([waits], "a", "failed", AT), sketchMany)).toEqual([
      "answers failed",
      "task.moved failed",
      "tasks -1 0 0 +1",
      "dependencies.dropped t",
      "dependency.settled t failed",
      'task.failed null t {"kind":"dependency","message":"Task a, on which it depends, failed."}',
      "task.broken t by a",
    ]);
    expect(updateDependents([waits], "a", "failed", AT, "root").changes.map(sketchChange)).toContain(
      "task.broken t by root",
    );
  });
});

describe("releaseAll", () => {
  test("reopens tasks; their attempts stay", () => {
    const held = task("t", { status: "assigned", assignedNode: "n1", attempts: 2, epoch: 1 });
    const decision = releaseAll([held], "the node left", AT);
    expect(sketch(decision, sketchMany).at(-1)).toBe('task.released n1 t {"reason":"the node left"}');
    expect(decision.answer).toMatchObject([{ status: "open", attempts: 2, epoch: 2 }]);
  });
});

describe("remove", () => {
  const rows: Readonly<Record<Stage, Sketch>> = {
    none: "task_not_found",
    open: ["answers open", "task.deleted t", "tasks -1 0 0 0", 'task.deleted null t {"title":"Title"}'],
    waits: ["answers open", "task.deleted t", "tasks -1 0 0 0", 'task.deleted null t {"title":"Title"}'],
    failed: ["answers failed", "task.deleted t", "tasks 0 0 0 -1", 'task.deleted null t {"title":"Title"}'],
    assigned: [
      "answers assigned n1",
      "task.deleted t",
      "tasks 0 -1 0 0",
      "n1 -1 0 0",
      'task.deleted n1 t {"title":"Title"}',
    ],
    // what was paid for it stays: the lux earned does not go down
    completed: [
      "answers completed n1",
      "task.deleted t",
      "tasks 0 0 -1 0",
      "n1 0 -1 0",
      'task.deleted n1 t {"title":"Title"}',
    ],
  };
  for (const stage of Object.keys(rows) as Stage[])
    test(stage, () => expect(sketch(remove(STAGES[stage], "t", NOW), sketchTask)).toEqual(rows[stage]));
});

test("assignTo logs the assigner, sets the time and changes the totals", () => {
  const { answer: after, changes } = assignTo(task("t", { revokedFrom: "n1" }), "n2", "balancer", AT);
  expect(after).toEqual(task("t", { status: "assigned", assignedNode: "n2", epoch: 1, updatedAt: NOW }));
  expect(changes.map(sketchChange)).toEqual([
    "task.moved assigned n2",
    "tasks -1 +1 0 0",
    "n2 +1 0 0",
    'task.assigned n2 t {"by":"balancer"}',
  ]);
  expect(changes.find((change) => change.kind === "node.tallied")).toMatchObject({ idleSince: NOW });
});
