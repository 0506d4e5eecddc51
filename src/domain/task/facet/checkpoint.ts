/**
 * Facet: the checkpoint of a task, what a worker leaves for the attempts after its own. The last one counts. It stays when
 * the task fails, for a retry, and goes with a result.
 */
import type { Change } from "../../change.ts";
import type { Effect, Facet } from "./facet.ts";
import type { Checkpoint, Moment, Task } from "../../model.ts";

export const checkpoint: Facet = {
  name: "checkpoint",
  ended: (before, after) => (after?.status === "failed" ? null : withoutCheckpoint(before)),
};

export function withoutCheckpoint({ taskId, checkpointBytes }: Task): Effect | null {
  if (checkpointBytes === 0) return null;
  return { patch: { checkpointBytes: 0 }, changes: [{ kind: "checkpoint.removed", taskId }] };
}

export function saveCheckpoint(
  { taskId, epoch }: Task,
  nodeId: string,
  data: string,
  at: Moment,
): { readonly patch: Partial<Task>; readonly change: Change } {
  const saved: Checkpoint = { data, epoch, nodeId, at: at.now };
  return {
    patch: { checkpointBytes: Buffer.byteLength(data) },
    change: { kind: "checkpoint.saved", taskId, checkpoint: saved },
  };
}
