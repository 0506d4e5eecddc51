/** Facet: a node that may never have a task, although the task fits: it has another copy, or did what the task checks. */
import type { Facet } from "./facet.ts";
import type { Task } from "../../model.ts";
import { nodeExcluded } from "../refusals.ts";

export const exclusion: Facet = {
  name: "exclusion",
  refuses: (task, { nodeId }) => (isExcluded(task, nodeId) ? nodeExcluded(task, nodeId) : null),
};

/** What a node gave back, or lost, after `since` (epoch milliseconds), and nobody has had since then. */
export type Resting = { readonly nodeId: string; readonly since: number };

export function isResting(
  { revokedFrom, updatedAt }: Pick<Task, "revokedFrom" | "updatedAt">,
  { nodeId, since }: Resting,
): boolean {
  return revokedFrom === nodeId && updatedAt > since;
}

export function isExcluded({ notNodes }: Pick<Task, "notNodes">, nodeId: string): boolean {
  return notNodes.length > 0 && notNodes.includes(nodeId);
}
