/** The next task of a worker: what it has started, if its worker began anew; else a gift; else the best open task. */
import { hasRoom } from "../balancer.ts";
import type { Notified, Offer } from "../change.ts";
import { type Accepted, accept, preceded } from "../decision.ts";
import { isClosed } from "../gate.ts";
import { hasFree } from "../lane.ts";
import type { Moment, Node, Task } from "../model.ts";
import { assignedEvent, assignTo, endAttempt, startAgain, step } from "./core.ts";
import { isStale } from "./holder.ts";
import { isExcluded } from "./facet/exclusion.ts";
import type { HolderRequest } from "./request.ts";

export type TakenFrom = "open" | "gifts" | "started";

/**
 * None: the node drains, has its `maxTasks`, or no task is available.
 * `ended`: what the node had started, and whose attempts were used up by this restart.
 */
export type Next =
  | { readonly task: Task; readonly from: TakenFrom; readonly draining: boolean; readonly ended: Task | null }
  | {
      readonly task: null;
      readonly isFull: boolean;
      readonly draining: boolean;
      readonly ended: Task | null;
    };

/** Of open tasks several, in the order of offers. */
export type NextTasks = {
  readonly started: Task | null;
  readonly gifts: Task | null;
  readonly open: readonly Task[];
};

/** The answer that there is none is not stored: a repeat asks again. */
export function next(node: Node, candidates: NextTasks, at: Moment): Accepted<Next> {
  const { nodeId, draining } = node;
  const restarted = candidates.started && restart(candidates.started, nodeId, at);
  if (restarted?.answer.status === "assigned")
    return accept<Next>(
      { task: restarted.answer, from: "started", draining, ended: null },
      restarted.changes,
    );
  const { answer: ended, changes: before } = restarted ?? accept(null);
  if (candidates.gifts) {
    const { answer: task, changes } = startAgain(candidates.gifts, nodeId, at);
    return accept<Next>({ task, from: "gifts", draining, ended }, [...before, ...changes]);
  }
  const isFull = !hasRoom(ended ? { ...node, tasksAssigned: node.tasksAssigned - 1 } : node);
  const best = draining || isFull ? null : bestFor(node, candidates, at);
  if (!best) return { ...accept<Next>({ task: null, isFull, draining, ended }, before), isStored: false };
  const { answer: task, changes } = assignTo(best, nodeId, "next", at);
  return accept<Next>({ task, from: "open", draining, ended }, [...before, ...changes]);
}

function bestFor(node: Node, { open }: NextTasks, { gate }: Moment): Task | null {
  const mayHave = (task: Task): boolean =>
    !isClosed(gate?.closed, task, node.nodeId) &&
    !isExcluded(task, node.nodeId) &&
    hasFree(node, task.requires);
  return open.find(mayHave) ?? null;
}

/**
 * Hands a node again what it has started: its worker ended without a result. If the task has `maxAttempts` that ended an
 * attempt, and the task fails after the last one: a poison task, which kills its workers, must not come back for ever.
 */
function restart(started: Task, nodeId: string, at: Moment): Accepted<Task> {
  const task: Task = { ...started, restarts: started.restarts + 1 };
  if (task.maxAttempts === null)
    return startAgain(task, nodeId, at, [assignedEvent(task, nodeId, "resume", at)]);
  const message = `The worker ended without a result, and asked for the task again (restart ${task.restarts}).`;
  const ended = endAttempt(task, { kind: "offline", message, retry: true }, at);
  if (ended.answer.status === "failed") return ended;
  return preceded(ended.changes, assignTo(ended.answer, nodeId, "next", at));
}

/** Unless it was handed out or taken back meanwhile. */
export function returnGift(task: Task | null, request: HolderRequest, at: Moment): Accepted<null> {
  if (!task || task.status !== "assigned" || task.assignedNode !== request.nodeId || isStale(task, request))
    return accept(null);
  return accept(null, step(task, { startedAt: null, updatedAt: task.updatedAt }, at).changes);
}

/** `changes`: of one part of a transaction. */
export function offersOf(changes: readonly Notified[]): readonly Offer[] {
  const written: Task[] = [];
  const offers: Offer[] = [];
  for (const change of changes)
    if (change.kind === "task.created" || change.kind === "task.moved") written.push(change.task);
    else if (change.kind === "task.deleted" && change.frees !== undefined)
      offers.push({ kind: "key", key: change.frees });
  // One transaction may move a task twice.
  const after = written.length < 2 ? written : new Map(written.map((task) => [task.taskId, task])).values();
  for (const task of after) {
    const { status, scheduled, assignedNode, startedAt, countsFor } = task;
    // It ran under a limit, and runs no more: another task of the key may be handed out.
    if (countsFor !== null && status !== "assigned") offers.push({ kind: "key", key: countsFor });
    if (status === "open" && !scheduled && task.child !== null) offers.push({ kind: "some" });
    else if (status === "open" && !scheduled) offers.push({ kind: "open", lane: task.lane });
    else if (status === "assigned" && startedAt === null && assignedNode !== null)
      offers.push({ kind: "gift", nodeId: assignedNode });
  }
  return offers;
}
