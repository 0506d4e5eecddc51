/** The facets of a task: their order at each place, which is a rule, so it is printed here; and what each adds to a step. */
import { describe, expect, test } from "bun:test";
import type { Facet } from "../../src/domain/task/facet/facet.ts";
import { FACETS } from "../../src/domain/task/facets.ts";
import type { Decision } from "../../src/domain/decision.ts";
import { EMPTY_LEDGER } from "../../src/domain/lux.ts";
import type { Child, Gate, Quorum, Task } from "../../src/domain/model.ts";
import { complete, create, release, remove, take } from "../../src/domain/task/core.ts";
import { cancel, retry } from "../../src/domain/task/creator.ts";
import { NOTHING_SPENT } from "../../src/domain/task/facet/spending.ts";
import { AT, NOW, STEADY, draft, node, task } from "./samples.ts";

const PLACES: Readonly<Record<Exclude<keyof Facet, "name">, readonly string[]>> = {
  created: ["review", "quorum", "child", "group"],
  refuses: ["exclusion"],
  dispatched: ["child", "lease", "limit"],
  opened: ["dependencies", "quorum", "lease", "advisory leases"],
  completing: ["child", "reward"],
  // Review first: a result in review has not ended its task, and those after it ask whether it has ended.
  ended: [
    "review",
    "dependencies",
    "quorum",
    "questions",
    "child",
    "lease",
    "checkpoint",
    "output",
    "advisory leases",
    "spending",
    "group",
    "reward",
  ],
  waits: ["start time", "dependencies", "quorum", "questions"],
  // In the order in which task/explain shows them.
  explains: ["review", "start time", "dependencies", "quorum", "questions"],
};

describe("the facets that have a hook", () => {
  for (const [place, names] of Object.entries(PLACES))
    test(place, () => {
      // The keys of PLACES are those places.
      const atPlace = FACETS.filter((facet) => facet[place as keyof typeof PLACES] !== undefined);
      expect(atPlace.map(({ name }) => name)).toEqual([...names]);
    });
});

test("why review comes first: what depends on a result, and its group, wait for the verdict", () => {
  const review = { by: "creator", withinMs: 1_000, onTimeout: "pay", check: null } as const;
  const held = task("t", { status: "assigned", assignedNode: "n1", hasDependents: true, group: "g", review });
  const result = { problem: "p", improvement: "i", lesson: "l", extra: null };
  const asked = { taskId: "t", nodeId: "n1", epoch: null, result, claimOnComplete: false };
  const decision = complete(held, node("n1"), { ...asked, entryId: "e", head: EMPTY_LEDGER, paid: null }, AT);
  const kinds = decision.kind === "accepted" ? decision.changes.map(({ kind }) => kind) : [];
  expect(kinds).toContain("task.reviewed");
  expect(kinds).not.toContain("dependency.settled");
  expect(kinds).not.toContain("group.touched");
});

/** What a task with a feature writes more than a plain one, in one step of each kind. */
const HELD: Partial<Task> = { status: "assigned", assignedNode: "n1" };
const COPY: Child = {
  of: "parent",
  as: "copy",
  group: null,
  epoch: 0,
  notKey: null,
  sealed: true,
  compare: ["/output"],
};
const QUORUM: Quorum = {
  results: 2,
  of: 3,
  compare: ["/output"],
  state: "pending",
  round: 0,
  copies: [],
  agreed: [],
};
const TERMS = { by: "capability:qa", withinMs: 1_000, onTimeout: "pay" } as const;
const CHECK = {
  state: "pending",
  epoch: 1,
  keyId: null,
  until: NOW + 1,
  note: null,
  decidedBy: null,
  decidedAt: null,
  timedOut: false,
  unpaid: false,
} as const;
const GATE: Gate = {
  day: 1,
  budgets: [],
  pauses: [],
  closed: null,
  opensAt: null,
  limits: [{ key: "", running: 2, perMinute: 9, hold: null, inUse: 0, uses: [] }],
};
const SPENT = { ...NOTHING_SPENT, reports: 1 };
const QUESTIONS = { state: "open", asked: 1, bytes: 9 } as const;
const RESULT = { problem: "p", improvement: "i", lesson: "l", extra: '{"output":1}' };
const DONE: Partial<Task> = { status: "completed", assignedNode: "n1", result: RESULT };
const HEAD = { entryId: "e", head: EMPTY_LEDGER };
const ASKED = { taskId: "t", nodeId: "n1", epoch: null, boundTo: null, reason: null };

const STEPS = {
  created: (patch: object) =>
    create(draft({ creatorNode: "n1", ...patch }), "t", [], AT, [
      { taskId: "d", status: "failed", hasDependents: true, brokenBy: null },
    ]),
  claimed: (patch: Partial<Task>) =>
    take(task("t", patch), node("n1"), { ...ASKED, by: "claim" }, { ...AT, gate: patch.tags ? GATE : null }),
  released: (patch: Partial<Task>) => release(task("t", { ...HELD, ...patch }), node("n1"), [], ASKED, AT),
  retried: (patch: Partial<Task>) => retry(task("t", { status: "failed", ...patch }), [], [], ASKED, AT),
  completed: (patch: Partial<Task>) =>
    complete(
      task("t", { ...HELD, ...patch }),
      node("n1"),
      {
        ...ASKED,
        ...HEAD,
        result: RESULT,
        claimOnComplete: false,
        paysOwn: patch.creatorKey !== "own",
        keyId: "own",
        paid: null,
      },
      AT,
    ),
  cancelled: (patch: Partial<Task>) =>
    cancel(task("t", { ...HELD, ...patch }), null, { ...ASKED, nodeId: null }, AT),
  removed: (patch: Partial<Task>) => remove(task("t", { ...HELD, ...patch }), "t", NOW, HEAD),
} satisfies Record<string, (patch: Partial<Task>) => Decision<unknown>>;

const ADDS: readonly (readonly [keyof typeof STEPS, object, ...(readonly string[])])[] = [
  ["created", { reviewTerms: TERMS }, "task.reviewed"],
  ["created", { quorumTerms: QUORUM }, "task.quorate", "family.touched"],
  ["created", { quorumTerms: QUORUM, notBefore: NOW + 1 }, "task.quorate"],
  ["created", { child: COPY }, "task.related"],
  [
    "created",
    { group: "g", dependsOn: ["d"] },
    "group.touched",
    "group.tallied",
    "task.broken",
    "task.failed",
  ],
  ["claimed", { child: COPY }, "copies.excluded"],
  ["claimed", { tags: ["limited"] }, "limit.used"],
  ["claimed", { timeoutMs: 1 }],
  ["released", { hasLeases: true }, "leases.released", "task.leased"],
  [
    "released",
    { checkpointBytes: 2, hasOutput: true, spent: SPENT, questions: QUESTIONS, hasDependents: true },
  ],
  ["retried", { quorum: { ...QUORUM, state: "failed" } }, "task.quorate", "family.touched"],
  ["retried", { hasDependents: true }, "settlement.removed"],
  ["retried", { failure: { kind: "dependency", message: "", nodeId: null, at: 1 } }, "task.broken"],
  [
    "completed",
    { review: { ...TERMS, check: null } },
    "task.reviewed",
    "family.touched",
    "task.review_requested",
  ],
  ["completed", { luxRewardMicro: 5 }, "lux.entered", "lux.paid"],
  [
    "completed",
    { luxRewardMicro: 5, review: { ...TERMS, by: "creator", check: null } },
    "task.reviewed",
    "task.review_requested",
    "lux.entered",
  ],
  ["completed", { child: COPY }, "family.touched"],
  ["completed", { child: COPY, creatorKey: "own" }, "task.related", "family.touched"],
  ["completed", { checkpointBytes: 2 }, "checkpoint.removed"],
  ["completed", { questions: QUESTIONS }, "questions.closed"],
  ["completed", { hasLeases: true }, "leases.released", "task.leased"],
  ["completed", { hasDependents: true }, "dependency.settled"],
  ["completed", { group: "g" }, "group.touched", "group.tallied"],
  ["completed", { hasOutput: true, spent: SPENT }],
  ["cancelled", { questions: QUESTIONS }, "questions.closed"],
  ["cancelled", { checkpointBytes: 2 }],
  ["cancelled", { status: "open", assignedNode: null, unmet: 1, scheduled: true }, "dependencies.dropped"],
  ["cancelled", { status: "open", assignedNode: null, quorum: QUORUM }, "family.touched"],
  ["removed", { hasOutput: true }, "output.refunded", "output.removed", "output.erased"],
  ["removed", { spent: SPENT }, "usage.removed"],
  ["removed", { questions: QUESTIONS }, "questions.removed"],
  ["removed", { checkpointBytes: 2 }, "checkpoint.removed"],
  ["removed", { hasLeases: true }, "leases.released"],
  ["removed", { hasDependents: true, group: "g" }, "dependency.settled", "group.touched", "group.tallied"],
  [
    "removed",
    { ...DONE, luxRewardMicro: 5, review: { ...TERMS, check: CHECK } },
    "lux.entered",
    "family.touched",
  ],
];

describe("what a feature adds", () => {
  const kindsOf = (decision: Decision<unknown>): readonly string[] => {
    if (decision.kind === "rejected") return [decision.code];
    return decision.changes.map((change) =>
      change.kind === "event.logged" ? change.event.kind : change.kind,
    );
  };
  const COMMON = new Set(["node.tallied", "tasks.tallied", "task.moved"]);
  for (const [step, patch, ...expected] of ADDS)
    test(`${step} ${JSON.stringify(patch)}`, () => {
      const plain = new Set(kindsOf(STEPS[step]({})));
      const added = kindsOf(STEPS[step](patch)).filter((kind) => !plain.has(kind) && !COMMON.has(kind));
      expect(added.toSorted()).toEqual([...expected].toSorted());
    });

  test("a lease, and its end", () => {
    const leased = { ...HELD, timeoutMs: 5, maxRunMs: 9, leaseUntil: STEADY, runUntil: STEADY };
    const leaseOf = (decision: Decision<unknown>) => {
      const moved =
        decision.kind === "accepted" && decision.changes.find(({ kind }) => kind === "task.moved");
      return moved && moved.kind === "task.moved" && [moved.task.leaseUntil, moved.task.runUntil];
    };
    expect(leaseOf(STEPS.claimed({ timeoutMs: 5, maxRunMs: 9 }))).toEqual([STEADY + 5, STEADY + 9]);
    for (const step of ["released", "completed", "cancelled"] as const)
      expect(leaseOf(STEPS[step](leased))).toEqual([null, null]);
  });

  test("refusals", () => {
    expect(kindsOf(STEPS.claimed({ notNodes: ["n1"] }))).toEqual(["node_excluded"]);
    expect(kindsOf(STEPS.claimed({ quorum: QUORUM }))).toEqual(["task_not_ready"]);
    expect(kindsOf(STEPS.claimed({ questions: { ...QUESTIONS, state: "parked" } }))).toEqual([
      "task_not_ready",
    ]);
    expect(kindsOf(STEPS.completed({ child: { ...COPY, compare: ["/missing"] } }))).toEqual([
      "compared_value_missing",
    ]);
    expect(kindsOf(STEPS.completed({ child: { ...COPY, as: "review" } }))).toEqual(["verdict_missing"]);
    expect(kindsOf(STEPS.completed({ child: { ...COPY, as: "review", notKey: "own" } }))).toEqual([
      "own_work",
    ]);
  });
});
