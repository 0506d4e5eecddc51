/**
 * Why a task does not run: every reason at once, from the rules by which dispatches decide: isReady() of core.ts,
 * closings() of gate.ts, missingIn() and hasFree() of lane.ts, hasRoom() of balancer.ts.
 */
import { hasRoom } from "./balancer.ts";
import { type Closing, closings, sayClosing } from "./gate.ts";
import { type Able, hasFree, missingIn, takesType } from "./lane.ts";
import { POSITION_COUNTED_MAX } from "./limits.ts";
import type { Gate, Node, Task } from "./model.ts";
import { failureBackingOff, isExcluded, isFinished, isInReview, isReady, summaryLine } from "./task/core.ts";
import { must } from "../lib/assert.ts";

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
  /** One sentence. */
  readonly detail: string;
  /** When time alone ends it; null: nobody knows. */
  readonly until: number | null;
  /** Of depends_on and review: the first of the tasks that it waits for. */
  readonly waitsFor?: readonly string[];
  /** Of no_node: the type, words and resources that the node with the most of them lacks. */
  readonly missing?: readonly string[];
};

/** `ready`: it may be handed out to a node that fits. `position`: in its lane, 1 is the next; null: it is not ready. */
export type Explanation = {
  readonly ready: boolean;
  readonly reasons: readonly Reason[];
  readonly position: number | null;
};

/** What the registered nodes could do with a task, as far as they were looked at. */
export type Takers = {
  /** Nodes that could ever take the task. */
  readonly able: number;
  readonly online: number;
  /** Online, and not draining. */
  readonly open: number;
  /** Of those, with room and enough free resources. */
  readonly free: number;
  /** What the node that lacks the least lacks; null: no node was looked at. */
  readonly missing: readonly string[] | null;
};

export const NO_TAKERS: Takers = { able: 0, online: 0, open: 0, free: 0, missing: null };

/** Adds some nodes. */
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

/** What a node lacks for a task, however idle it is. */
export function lackedBy(
  node: Able & Pick<Node, "nodeId">,
  task: Pick<Task, "taskType" | "requires" | "notNodes">,
): readonly string[] {
  // It has a copy of the task, or did what the task reviews.
  const other = isExcluded(task, node.nodeId) ? ["the right to it: it must be another node"] : [];
  return [...lackedPermanently(node, task), ...other];
}

/** The type, words and resources that a node lacks for the tasks of a lane, however idle it is. */
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
 * @param waitsFor the first of the tasks that it waits for
 * @param inReview those of them whose result waits for its review
 * @param ahead how many tasks of its lane come before it, counted up to POSITION_COUNTED_MAX
 */
export function explain(
  task: Task,
  {
    gate,
    takers,
    waitsFor,
    inReview,
    ahead,
  }: {
    readonly gate: Gate;
    readonly takers: Takers;
    readonly waitsFor: readonly string[];
    readonly inReview: readonly string[];
    readonly ahead: number;
  },
  now: number,
): Explanation {
  if (task.status !== "open") return { ready: false, position: null, reasons: [ofEnded(task)] };
  const closed = closings(gate, task, null, now);
  const own = ownReasons(task, waitsFor, inReview, now);
  const ready = isReady(task, now) && closed.length === 0;
  const ofOthers = task.quorum ? [] : ofNodes(takers); // only its copies are handed out
  const reasons = [...own, ...closed.map((closing) => ofClosing(closing, now)), ...ofOthers];
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
  if (isInReview(task)) {
    const { by, check } = must(task.review, "a task in review has one");
    const { until } = must(check, "a review that waits has a deadline");
    return { code: "review", detail: `Its result waits for its review (${by}).`, until };
  }
  if (isFinished(task)) return { code: "finished", detail: `It is ${task.status}.`, until: null };
  return { code: "assigned", detail: `The node ${task.assignedNode} holds it.`, until: null };
}

function ownReasons(
  task: Task,
  waitsFor: readonly string[],
  inReview: readonly string[],
  now: number,
): readonly Reason[] {
  const reasons: Reason[] = [];
  if (task.notBefore !== null && task.notBefore > now)
    reasons.push({ code: "not_before", detail: startTimeOf(task), until: task.notBefore });
  if (task.unmet > 0) {
    const tasks = task.unmet === 1 ? "a task" : `${task.unmet} tasks`;
    const detail = `It waits for ${tasks} on which it depends.`;
    reasons.push({ code: "depends_on", detail, until: null, waitsFor });
  }
  if (inReview.length > 0) {
    const detail = "The result of a task on which it depends waits for its review.";
    reasons.push({ code: "review", detail, until: null, waitsFor: inReview });
  }
  if (task.quorum)
    reasons.push({ code: "quorum", detail: "Several nodes do its copies: see quorum.copies.", until: null });
  if (task.questions?.state === "parked")
    reasons.push({ code: "question", detail: "It waits for the answer to a question.", until: null });
  return reasons;
}

function startTimeOf(task: Task): string {
  const failure = failureBackingOff(task);
  if (failure === null) return "Its start time has not come.";
  const message = summaryLine(failure.message);
  const cause = message === null ? failure.kind : `${failure.kind}: ${message}`;
  return `Its backoff after failed attempt ${task.attempts} is not over (${cause}).`;
}

function ofClosing(closing: Closing, now: number): Reason {
  const said = sayClosing(closing, now);
  return {
    code: closing.code,
    detail: `${said.charAt(0).toUpperCase()}${said.slice(1)}.`,
    until: closing.until,
  };
}

function ofNodes({ able, online, open, free, missing }: Takers): readonly Reason[] {
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
