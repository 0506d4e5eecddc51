/**
 * What holds open tasks back, of many at once and by the rules of explain.ts: the first reason of their lane, else of
 * their creator, else of their group. Tasks that wait for something of their own are told apart in the store.
 */
import { isUsedUp } from "./budget.ts";
import { type Takers, NO_TAKERS, lackedPermanently, ofClosing, ofNodes } from "./explain.ts";
import { closings } from "./gate.ts";
import type { Able, Lane } from "./lane.ts";
import type { Gate } from "./model.ts";
import type { Reason } from "./task/facet/facet.ts";

/** Of tasks that are not ready. A task has the first of these that applies. */
export const WAIT_CODES = ["depends_on", "question", "quorum", "not_before"] as const;
export type WaitCode = (typeof WAIT_CODES)[number];

/** The codes of explain.ts under which open tasks are held back: each task is counted under one of them. */
export const HELD_CODES = [
  ...(["paused", "limit", "rate", "budget", "no_node", "nodes_offline", "nodes_draining"] as const),
  ...WAIT_CODES,
] as const satisfies readonly Reason["code"][];
export type HeldCode = (typeof HELD_CODES)[number];

export type HeldBy = { readonly code: HeldCode; readonly detail: string };

/** By the name of a lane, a creator ("" is none) and a group. A task of a held lane does not count for its creator. */
export type Holds = Readonly<Record<"lanes" | "creators" | "groups", ReadonlyMap<string, HeldBy>>>;

/** Nodes with the same words and resources. `open`: online, and not draining; `free`: of those, with room. */
export type NodesAlike = Able & Readonly<Record<"registered" | "online" | "open" | "free", number>>;

export function takersOf(lane: Pick<Lane, "taskType" | "requires">, nodes: readonly NodesAlike[]): Takers {
  let { able, online, open, free, missing } = NO_TAKERS;
  for (const alike of nodes) {
    const lacks = lackedPermanently(alike, lane);
    if (missing === null || lacks.length < missing.length) missing = lacks;
    if (lacks.length > 0) continue;
    able += alike.registered;
    online += alike.online;
    open += alike.open;
    free += alike.free;
  }
  return { able, online, open, free, missing };
}

/** What keeps back all tasks of a lane; null: nothing does. */
export function heldLane(lane: Lane, takers: Takers, gate: Gate, now: number): HeldBy | null {
  const ofEachTask = { creatorNode: null, group: null, child: null };
  const closed = closings(ofAllOwners(gate), { ...lane, ...ofEachTask }, null, now);
  const reasons = [...closed.map((closing) => ofClosing(closing, now)), ...ofNodes(takers)];
  return firstOf(reasons);
}

function ofAllOwners(gate: Gate): Gate {
  const isOfOwner = ({ scope }: { readonly scope: string }): boolean =>
    scope === "creator" || scope === "group";
  return {
    ...gate,
    pauses: gate.pauses.filter((pause) => !isOfOwner(pause)),
    budgets: gate.budgets.filter((budget) => !isOfOwner(budget)),
  };
}

/** The creators or the groups whose tasks the gate keeps back. */
export function heldOwners(scope: "creator" | "group", gate: Gate, now: number): Holds["creators"] {
  const pauses = gate.pauses.map((pause) => ({ code: "paused", pause, until: null }) as const);
  const usedUp = gate.budgets.filter((budget) => budget.onLimit === "pause" && isUsedUp(budget));
  const budgets = usedUp.map((budget) => ({ code: "budget", budget, until: null }) as const);
  const held = new Map<string, HeldBy>();
  for (const closing of [...pauses, ...budgets]) {
    const subject = closing.code === "paused" ? closing.pause : closing.budget;
    const heldBy = firstOf([ofClosing(closing, now)]);
    if (subject.scope === scope && heldBy !== null && !held.has(subject.value))
      held.set(subject.value, heldBy);
  }
  return held;
}

function firstOf(reasons: readonly Reason[]): HeldBy | null {
  for (const { code, detail } of reasons) {
    const held = HELD_CODES.find((word) => word === code);
    if (held !== undefined) return { code: held, detail };
  }
  return null;
}
