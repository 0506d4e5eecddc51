/**
 * The one order of offers: which of two ready tasks comes first. By priority; of one priority, for a node, a task that
 * needs a rare resource; then the older one.
 */
import { needsRare } from "../lane.ts";
import type { Task } from "../model.ts";

/** A task's place in the backlog. */
type Place = { readonly priority: number; readonly seq: number };

/** The order of the backlog. */
export function comesFirst(a: Place, b: Place): boolean {
  return a.priority < b.priority || (a.priority === b.priority && a.seq < b.seq);
}

/** The order in which a node is offered tasks: of one priority, those first that need what not every node has. */
export function isOfferedFirst(a: Task, b: Task): boolean {
  const rarer = Number(needsRare(b)) - Number(needsRare(a));
  if (a.priority !== b.priority || rarer === 0) return comesFirst(a, b);
  return rarer < 0;
}
