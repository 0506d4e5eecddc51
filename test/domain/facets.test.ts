/** The order in which the facets of a task are asked, at each place: it is a rule, so it is printed here. */
import { describe, expect, test } from "bun:test";
import type { Facet } from "../../src/domain/task/facet/facet.ts";
import { FACETS } from "../../src/domain/task/facets.ts";
import { complete } from "../../src/domain/task/core.ts";
import { EMPTY_LEDGER } from "../../src/domain/lux.ts";
import { AT, node, task } from "./samples.ts";

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
