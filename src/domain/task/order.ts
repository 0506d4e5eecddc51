/**
 * The one order of offers: which of two ready tasks comes first. Priority; then the place of its lane: one that needs a
 * rare resource, then the one whose creator had its turn longest ago; then age.
 *
 * For the best tasks of many lanes, the store gets the lanes by place (lanesByPlace), and orders by priority, place and age.
 */
import { type Position, needsRare } from "../lane.ts";
import type { Task } from "../model.ts";

type InLane = Pick<Task, "requires" | "creatorNode">;

/** 0: the creator had none, or creators have no turns. */
export type TurnOf = (lane: InLane) => number;

export const NO_TURNS: TurnOf = () => 0;

export function comesFirst(a: Position, b: Position): boolean {
  return a.priority < b.priority || (a.priority === b.priority && a.seq < b.seq);
}

/** Negative, if the task with the head `headA`, in the lane of `a`, comes first. */
export function compareOffers(
  a: InLane,
  headA: Position,
  b: InLane,
  headB: Position,
  turnOf: TurnOf,
): number {
  return headA.priority - headB.priority || placeOf(a, turnOf) - placeOf(b, turnOf) || headA.seq - headB.seq;
}

/** Their best tasks have one priority; the first place first. */
export function lanesByPlace<L extends InLane>(
  lanes: readonly L[],
  turnOf: TurnOf,
): readonly (readonly L[])[] {
  const byPlace = Map.groupBy(lanes, (lane) => placeOf(lane, turnOf));
  return [...byPlace].toSorted(([a], [b]) => a - b).map(([, alike]) => alike);
}

/** More turns than a hub gives. */
const TURNS_MAX = 2 ** 40;

function placeOf(lane: InLane, turnOf: TurnOf): number {
  return turnOf(lane) + (needsRare(lane) ? 0 : TURNS_MAX);
}
