/**
 * Why a task does not run: every reason at once, from the rules by which dispatches decide: the facets of the task
 * (task/facets.ts), closings() of gate.ts, missingIn() and hasFree() of lane.ts, hasRoom() of balancer.ts.
 */
import { hasRoom } from "./balancer.ts";
import { type Closing, closings, sayClosing } from "./gate.ts";
import { type Able, hasFree, missingIn, takesType } from "./lane.ts";
import { POSITION_COUNTED_MAX } from "./limits.ts";
import type { Gate, Node, Task } from "./model.ts";
import { isExcluded } from "./task/facet/exclusion.ts";
import type { Facts, Reason } from "./task/facet/facet.ts";
import { isReady, reasonsOf } from "./task/facets.ts";
import { isFinished } from "./task/state.ts";
import { must } from "../lib/assert.ts";

/** `ready`: it may be handed out to a node that fits. `position`: in its lane, 1 is the next; null: it is not ready. */
export type Explanation = {
  readonly ready: boolean;
  readonly reasons: readonly Reason[];
  readonly position: number | null;
};

/** As far as the nodes were looked at. */
export type Takers = {
  readonly able: number;
  readonly online: number;
  /** Online, and not draining. */
  readonly open: number;
  /** Of those, with room and enough free resources. */
  readonly free: number;
  /** Of the node that lacks the least. */
  readonly missing: readonly string[] | null;
};

export const NO_TAKERS: Takers = { able: 0, online: 0, open: 0, free: 0, missing: null };

export function withNodes(before: Takers, task: Task, nodes: readonly Node[], gate: Gate): Takers {
  let { able, online, open, free, missing } = before;
  for (const node of nodes) {
    const lacks = lackedBy(node, task);
    if (missing === null || lacks.length < missing.length) missing = lacks;
    if (lacks.length > 0) continue;
    able++;
    if (!node.online) continue;
    online++;
    if (node.draining) continue;
    open++;
    if (hasRoom(node) && hasFree(node, task.requires) && !gate.closed?.nodes.has(node.nodeId)) free++;
  }
  return { able, online, open, free, missing };
}

/** However idle it is. */
export function lackedBy(
  node: Able & Pick<Node, "nodeId">,
  task: Pick<Task, "taskType" | "requires" | "notNodes">,
): readonly string[] {
  // It has a copy of the task, or did what the task reviews.
  const other = isExcluded(task, node.nodeId) ? ["the right to it: it must be another node"] : [];
  return [...lackedPermanently(node, task), ...other];
}

/** However idle the node is. */
export function lackedPermanently(
  node: Able,
  { taskType, requires }: Pick<Task, "taskType" | "requires">,
): readonly string[] {
  const { words, resources } = missingIn(node, requires);
  const type = takesType(node, taskType) ? [] : [`the type ${taskType}`];
  const needed = requires?.resources ?? {};
  const amounts = resources.map((name) => `${name} ${must(needed[name], "what lacks is needed") / 1_000}`);
  return [...type, ...words.map((word) => `the word ${word}`), ...amounts];
}

/**
 * @param ahead how many tasks of its lane come before it, counted up to POSITION_COUNTED_MAX
 */
export function explain(
  task: Task,
  {
    gate,
    takers,
    ahead,
    ...facts
  }: Facts & { readonly gate: Gate; readonly takers: Takers; readonly ahead: number },
  now: number,
): Explanation {
  const waiting = reasonsOf(task, facts, now);
  if (task.status !== "open") {
    return { ready: false, position: null, reasons: waiting.length > 0 ? waiting : [ofEnded(task)] };
  }
  const closed = closings(gate, task, null, now);
  const ready = isReady(task, now) && closed.length === 0;
  const ofOthers = task.quorum ? [] : ofNodes(takers); // only its copies are handed out
  const reasons = [...waiting, ...closed.map((closing) => ofClosing(closing, now)), ...ofOthers];
  if (!ready) return { ready, position: null, reasons };
  const position = ahead + 1;
  const place = placeAfter(ahead);
  const detail =
    task.balanced && task.revokedFrom !== null
      ? `${place} The hub does not give it back to ${task.revokedFrom} by itself; that node may ask for it.`
      : place;
  return { ready, position, reasons: [...reasons, { code: "in_line", detail, until: null }] };
}

function placeAfter(ahead: number): string {
  if (ahead === 0) return "It is the next of its lane.";
  if (ahead === 1) return "One task of its lane comes before it.";
  const counted = ahead < POSITION_COUNTED_MAX ? `${ahead}` : `${POSITION_COUNTED_MAX} or more`;
  return `${counted} tasks of its lane come before it.`;
}

function ofEnded(task: Task): Reason {
  if (isFinished(task)) return { code: "finished", detail: `It is ${task.status}.`, until: null };
  return { code: "assigned", detail: `The node ${task.assignedNode} holds it.`, until: null };
}

export function ofClosing(closing: Closing, now: number): Reason {
  const sentence = sayClosing(closing, now);
  return {
    code: closing.code,
    detail: `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`,
    until: closing.until,
  };
}

export function ofNodes({ able, online, open, free, missing }: Takers): readonly Reason[] {
  if (free > 0) return [];
  const reason = (code: Reason["code"], detail: string): readonly Reason[] => [{ code, detail, until: null }];
  if (able === 0) {
    if (missing === null) return reason("no_node", "No node is registered that may have it.");
    const detail = `No registered node could ever take it. The one that comes closest lacks: ${missing.join(", ")}.`;
    return [{ code: "no_node", detail, until: null, missing }];
  }
  if (online === 0) return reason("nodes_offline", `All nodes that could take it (${able}) are offline.`);
  if (open === 0)
    return reason("nodes_draining", `All online nodes that could take it (${online}) are draining.`);
  return reason(
    "nodes_full",
    `All nodes that could take it now (${open}) have no room: their max_tasks are reached, their resources are in use, or a budget of theirs is used up.`,
  );
}
