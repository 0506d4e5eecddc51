/**
 * The facets of a task in the order in which their hooks run, and what the core asks of all of them together.
 *
 * The order matters for review: whether a completed task has ended depends on the review of its result, and the facets
 * after it ask hasEnded(). The reasons of explain() stand in this order, too.
 */
import type { Rejected } from "../decision.ts";
import type { Node, Task } from "../model.ts";
import { advisoryLeases } from "./facet/advisory-leases.ts";
import { checkpoint } from "./facet/checkpoint.ts";
import { child } from "./facet/child.ts";
import { dependencies } from "./facet/dependencies.ts";
import { exclusion } from "./facet/exclusion.ts";
import type { Completing, Facet, Facts, Readiness, Reason } from "./facet/facet.ts";
import { group } from "./facet/group.ts";
import { lease } from "./facet/lease.ts";
import { limit } from "./facet/limit.ts";
import { output } from "./facet/output.ts";
import { questions } from "./facet/questions.ts";
import { quorum } from "./facet/quorum.ts";
import { review } from "./facet/review.ts";
import { reward } from "./facet/reward.ts";
import { spending } from "./facet/spending.ts";
import { startTime } from "./facet/start-time.ts";

export const FACETS: readonly Facet[] = [
  review,
  startTime,
  dependencies,
  quorum,
  questions,
  exclusion,
  child,
  lease,
  limit,
  checkpoint,
  output,
  advisoryLeases,
  spending,
  group,
  reward,
];

export const HOOKS = {
  created: hooksAt("created"),
  refuses: hooksAt("refuses"),
  dispatched: hooksAt("dispatched"),
  opened: hooksAt("opened"),
  completing: hooksAt("completing"),
  ended: hooksAt("ended"),
  waits: hooksAt("waits"),
  explains: hooksAt("explains"),
};

function hooksAt<P extends Exclude<keyof Facet, "name">>(place: P): readonly NonNullable<Facet[P]>[] {
  return FACETS.flatMap((facet) => facet[place] ?? []);
}

export function isReady(task: Readiness, now: number): boolean {
  return task.status === "open" && !HOOKS.waits.some((waits) => waits(task, now));
}

export function refusesNode(task: Task, node: Node): Rejected | null {
  for (const refuses of HOOKS.refuses) {
    const refused = refuses(task, node);
    if (refused) return refused;
  }
  return null;
}

export function refusesResult(task: Task, completed: Completing): Rejected | null {
  for (const completing of HOOKS.completing) {
    const refused = completing(task, completed);
    if (refused) return refused;
  }
  return null;
}

export function reasonsOf(task: Task, facts: Facts, now: number): readonly Reason[] {
  return HOOKS.explains.flatMap((explains) => explains(task, facts, now));
}
