/** A new task: the fields that its creator sets, and those with which every task begins. */
import { laneOf } from "../lane.ts";
import type { Child, Moment, OnDependency, Task, TaskTemplate } from "../model.ts";
import type { Wait } from "./facet/dependencies.ts";
import { ownedGroup, ownerOf } from "./facet/group.ts";
import { type Unique, uniqueAt } from "./facet/unique.ts";
import { withTerms } from "./template.ts";

export type TaskDraft = TaskTemplate &
  Pick<Task, "notBefore" | "expiresAt" | "dependsOn" | "schedule"> & {
    readonly onDependency?: OnDependency;
    readonly unique?: Unique | null;
    readonly child?: Child | null;
    readonly notNodes?: readonly string[];
  };

/** A task as it is before its first step. Each field by its name: spreads of so many cost more than all else here. */
export function newTask(
  draft: TaskDraft,
  taskId: string,
  wait: Wait,
  files: readonly string[],
  at: Moment,
): Task {
  const { reviewTerms = null, quorumTerms = null, child = null, notNodes = [], unique = null } = draft;
  const { uniqueKey, uniqueUntil } = uniqueAt(unique, at.now);
  const terms = draft.group === null ? draft : { ...draft, group: ownedGroup(draft.group, ownerOf(draft)) };
  return withTerms(
    {
      seq: 0,
      taskId,
      creatorVerified: draft.creatorVerified,
      creatorKey: draft.creatorKey,
      status: wait.failure ? "failed" : "open",
      assignedNode: null,
      result: null,
      resultVerified: false,
      paidSeq: null,
      balanced: draft.balanced,
      revokedFrom: null,
      attempts: 0,
      failures: 0,
      restarts: 0,
      runUntil: null,
      leaseUntil: null,
      epoch: 0,
      notBefore: draft.notBefore,
      expiresAt: draft.expiresAt,
      dependsOn: draft.dependsOn,
      unmet: wait.unmet,
      hasDependents: false,
      scheduled: false,
      startedAt: null,
      progress: null,
      failure: wait.failure,
      earlierFailures: [],
      checkpointBytes: 0,
      hasOutput: false,
      questions: null,
      review: reviewTerms && { ...reviewTerms, check: null },
      quorum: quorumTerms && { ...quorumTerms, state: "pending", round: 0, copies: [], agreed: [] },
      child,
      notNodes,
      schedule: draft.schedule,
      lane: laneOf(draft, at.isFair ?? false),
      countsFor: null,
      uniqueKey,
      uniqueUntil,
      onDependency: draft.onDependency ?? "fail",
      spent: null,
      hasLeases: false,
      createdAt: at.now,
      updatedAt: at.now,
      files,
      outputs: [],
      keptBytes: 0, // charge() of quota.ts sets it
      lentBytes: 0,
      hasFeatures: false, // the store sets it
    },
    terms,
  );
}
