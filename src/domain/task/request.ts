/** Requests about a task: of the node that holds it, and of those who created it. */
import type { TaskResult, UsageReport } from "../model.ts";

/** `epoch` is that of the lease, or null if the request names none. */
export type HolderRequest = {
  readonly taskId: string;
  readonly nodeId: string;
  readonly epoch: number | null;
};

/** A request with which a worker may report what it has used. */
export type UsageRequest = HolderRequest & {
  readonly usage?: readonly UsageReport[];
  /** Whether the key of the request is bound to the node. */
  readonly isBound?: boolean;
};

/** A request with which a worker may leave a checkpoint, the text of a JSON value, and report its usage. */
export type CheckpointRequest = UsageRequest & { readonly checkpoint?: string | null };

/** A request that gives a task back. `holdMs`: also holds its limit key so long (limit.ts); null: it does not. */
export type ReturnRequest = CheckpointRequest & { readonly holdMs?: number | null };

/**
 * `claimOnComplete`: an open task is taken for the node first. `keyId`: the name of the caller's key; null: the secret
 * that all share.
 */
export type CompleteRequest = UsageRequest & {
  readonly result: TaskResult;
  readonly claimOnComplete: boolean;
  readonly keyId?: string | null;
};

/** `boundTo`: the node of a bound key, which may cancel and retry only tasks that it created; null: any task. */
export type CreatorRequest = { readonly taskId: string; readonly boundTo: string | null };
