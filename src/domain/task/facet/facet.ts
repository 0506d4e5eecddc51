/**
 * A facet: a feature of tasks, as hooks at five named places of the core (core.ts). A task without the feature pays a
 * comparison or two at each place: a hook that has nothing to add returns null.
 *
 * A hook is pure. It reads the task before and after the step, and returns what it adds. It never calls another hook, and
 * a file in this folder never imports the core. The order of the facets is the list in facets.ts.
 */
import type { Change } from "../../change.ts";
import type { Rejected } from "../../decision.ts";
import type { Claimant, NewEntry } from "../../lux.ts";
import type { Moment, Node, Task } from "../../model.ts";
import type { CompleteRequest } from "../request.ts";

export type Effect = {
  readonly patch?: Partial<Task>;
  readonly changes?: readonly Change[];
  readonly follows?: readonly Change[];
};

export type Completing = { readonly node: Node; readonly request: CompleteRequest & NewEntry & Claimant };

/** With neither: it failed. Deleted, with the `entry` for what is held of its reward. */
export type Ending = { readonly completing?: Completing; readonly entry?: NewEntry | null };

type Now = Pick<Moment, "now">;
type OnStep = (before: Task, after: Task, at: Moment, ending: Ending) => Effect | null;

export type Facet = {
  readonly name: string;
  /** 1. Its fields are those of its draft (new-task.ts). */
  readonly created?: (task: Task, at: Moment) => Effect | null;
  /** 2. Why a node may not have an open task. */
  readonly refuses?: (task: Task, node: Node) => Rejected | null;
  /**
   * 3. A task is dispatched: open before; or assigned, and next hands it to its node, as a gift or again. A claim of a gift
   * is no dispatch: it keeps the epoch.
   */
  readonly dispatched?: OnStep;
  /** 4. A task is open after a step: it was returned, retried or updated, or waits for less. */
  readonly opened?: OnStep;
  /**
   * 5. A task ends: it is completed, has failed or is deleted (`after` is null). A result that passes its review ends its
   * task once more, as does the deletion of an ended task. `completing` comes before, and says why a result is no result of this task.
   */
  readonly completing?: (task: Task, completing: Completing) => Rejected | null;
  readonly ended?: (before: Task, after: Task | null, at: Now, ending: Ending) => Effect | null;

  /** Whether it keeps an open task from being handed out to any node. */
  readonly waits?: (task: Readiness, now: number) => boolean;
  readonly explains?: (task: Task, facts: Facts, now: number) => readonly Reason[];
};

export type Readiness = Pick<Task, "status" | "unmet" | "notBefore" | "questions" | "quorum">;

/** `waitsFor`: the first of them. */
export type Facts = { readonly waitsFor: readonly string[]; readonly inReview: readonly string[] };

export const REASON_CODES = [
  "finished",
  "assigned",
  "not_before",
  "depends_on",
  "question",
  "review",
  "quorum",
  "paused",
  "limit",
  "rate",
  "budget",
  "no_node",
  "nodes_offline",
  "nodes_draining",
  "nodes_full",
  "in_line",
] as const;

export type Reason = {
  readonly code: (typeof REASON_CODES)[number];
  readonly detail: string;
  /** When time alone ends it; null: nobody knows. */
  readonly until: number | null;
  /** Of depends_on and review. */
  readonly waitsFor?: readonly string[];
  /** Of no_node: the type, words and resources that the node with the most of them lacks. */
  readonly missing?: readonly string[];
};
