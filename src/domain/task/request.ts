/** Requests about a task: of the node that holds it, and of those who created it. */
import type { TaskResult, UsageReport } from "../model.ts";

/** `epoch` null: the request names no lease. */
export type HolderRequest = {
  readonly taskId: string;
  readonly nodeId: string;
  readonly epoch: number | null;
};

export type UsageRequest = HolderRequest & {
  readonly usage?: readonly UsageReport[];
  readonly isBound?: boolean;
};

/** `checkpoint`: the text of a JSON value. */
export type CheckpointRequest = UsageRequest & { readonly checkpoint?: string | null };

/** `holdMs`: also holds its limit key so long (limit.ts). */
export type ReturnRequest = CheckpointRequest & { readonly holdMs?: number | null };

/** `claimOnComplete`: an open task is taken for the node first. `keyId` null: the secret that all share. */
export type CompleteRequest = UsageRequest & {
  readonly result: TaskResult;
  readonly claimOnComplete: boolean;
  readonly keyId?: string | null;
};

/** `boundTo`: a bound key may cancel and retry only tasks that its node created. */
export type CreatorRequest = { readonly taskId: string; readonly boundTo: string | null };
