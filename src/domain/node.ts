/**
 * Node rules: registration, heartbeats, going offline (specification 3, Node).
 *
 *   (none) --register--> online --silence for offlineAfterMs--> offline --heartbeat or register--> online
 *   online --leave--> offline
 *   any --delete, retire--> deleted --register--> online, with its old totals
 *
 * A draining node gets no new tasks and finishes those that it has, until it ends the drain, leaves or is deleted.
 *
 * A heartbeat renews a lease. `leaseUntil` is a time of the steady clock, so a jump of the wall clock changes nothing.
 */
import type { Change } from "./change.ts";
import {
  type Accepted,
  type Decision,
  type Rejected,
  type Undecided,
  accept,
  nodeNotFound,
  reject,
  UNDECIDED,
} from "./decision.ts";
import type { EventData, NewEvent } from "./event.ts";
import { HEARTBEAT_FRESH_MS } from "./limits.ts";
import { balance } from "./balancer.ts";
import { isClosed } from "./gate.ts";
import type { Moment, Node, Pulse, Resources, Task } from "./model.ts";
import { type Next, type NextTasks, next } from "./task/next.ts";
import { assignTo } from "./task/core.ts";
import { comesFirst } from "./task/order.ts";

export type NodeProfile = Pick<
  Node,
  "nodeId" | "name" | "host" | "port" | "capabilities" | "variant" | "maxTasks" | "autoAssign"
> & {
  readonly resources?: Resources;
};

/** `leaseMs`: of the lease that it starts. */
export type HeartbeatTime = Moment & { readonly leaseMs: number };

const PROFILE_FIELDS: Readonly<Record<string, (profile: NodeProfile) => unknown>> = {
  name: ({ name }) => name,
  host: ({ host }) => host,
  port: ({ port }) => port,
  capabilities: ({ capabilities }) => capabilities.join(),
  resources: ({ resources = {} }) => JSON.stringify(Object.entries(resources).toSorted()),
  variant: ({ variant }) => variant,
  max_tasks: ({ maxTasks }) => maxTasks,
  auto_assign: ({ autoAssign }) => autoAssign,
};

/**
 * @param waiting tasks that the balancer may assign
 * @param former the totals of a deleted node of this id
 */
export function register(
  profile: NodeProfile,
  existing: Node | null,
  waiting: readonly Task[],
  beat: HeartbeatTime,
  former: Node | null = null,
): Accepted<{ node: Node; created: boolean }> {
  const totals = existing ?? former;
  const node: Node = {
    ...profile,
    resources: profile.resources ?? {},
    used: totals?.used ?? {},
    draining: existing?.draining ?? false,
    online: true,
    hasLeases: existing?.hasLeases ?? false,
    registeredAt: existing?.registeredAt ?? beat.now,
    lastHeartbeatAt: beat.now,
    leaseUntil: beat.steady + beat.leaseMs,
    tasksAssigned: totals?.tasksAssigned ?? 0,
    tasksCompleted: totals?.tasksCompleted ?? 0,
    luxEarnedMicro: totals?.luxEarnedMicro ?? 0n,
    idleSince: totals?.idleSince ?? beat.now,
    entries: totals?.entries ?? 0,
    balanceMicro: totals?.balanceMicro ?? 0n,
  };
  const changes: Change[] = [...saved(node)];
  if (!existing) changes.push(nodeEvent("node.registered", node, beat.now));
  const changed = existing ? changedFields(existing, profile) : [];
  if (changed.length > 0)
    changes.push(nodeEvent("node.updated", node, beat.now, { changed: changed.join(",") }));
  if (!existing?.online) changes.push(nodeEvent("node.online", node, beat.now));
  const given = giveWaiting(node, waiting, beat);
  changes.push(...given.changes);
  return accept({ node: given.node, created: !existing }, changes);
}

export function tooManyNodes(most: number): Rejected {
  const detail = `The hub has reached its limit of ${most} nodes. Delete unused nodes, or start the hub with a larger --max-nodes.`;
  return reject("nodes_limit", detail);
}

/**
 * Undecided for an offline node: the caller then loads the waiting tasks and calls goOnline, so that the common
 * heartbeat reads one row.
 */
export function heartbeat(
  pulse: Pulse | null,
  nodeId: string,
  beat: HeartbeatTime,
): Decision<Pulse> | Undecided {
  if (!pulse) return nodeNotFound(nodeId);
  if (!pulse.online) return UNDECIDED;
  return accept(pulse, [heartbeatChange(nodeId, beat)]);
}

export function goOnline(
  node: Node | null,
  nodeId: string,
  waiting: readonly Task[],
  beat: HeartbeatTime,
): Decision<Node> {
  if (!node) return nodeNotFound(nodeId);
  const back = backOnline(node, waiting, beat);
  return accept(back.node, back.changes);
}

/**
 * It is a heartbeat, unless one younger than HEARTBEAT_FRESH_MS was; an offline node goes online first (goOnline).
 * @param isBeaten whether this call was a heartbeat before: it writes another only with a task
 */
export function nextAsHeartbeat(
  node: Node | null,
  nodeId: string,
  { waiting, ...found }: NextTasks & { readonly waiting: readonly Task[] },
  beat: HeartbeatTime,
  isBeaten: boolean,
): Decision<Next> {
  if (!node) return nodeNotFound(nodeId);
  if (node.online) {
    const decision = next(node, found, beat);
    if (isFresh(node, beat) || (isBeaten && decision.answer.task === null)) return decision;
    return { ...decision, changes: [heartbeatChange(nodeId, beat), ...decision.changes] };
  }
  const back = backOnline(node, waiting, beat);
  const gifts = bestOf(found.gifts, back.given);
  const decision = next(back.node, { ...found, gifts }, beat);
  return { ...decision, changes: [...back.changes, ...decision.changes] };
}

function isFresh({ leaseUntil }: Node, { steady, leaseMs }: HeartbeatTime): boolean {
  return steady - (leaseUntil - leaseMs) < HEARTBEAT_FRESH_MS;
}

function bestOf(gift: Task | null, [given]: readonly Task[]): Task | null {
  if (!gift || !given) return gift ?? given ?? null;
  return comesFirst(gift, given) ? gift : given;
}

function backOnline(node: Node, waiting: readonly Task[], beat: HeartbeatTime): Given {
  const leaseUntil = beat.steady + beat.leaseMs;
  const after: Node = { ...node, online: true, lastHeartbeatAt: beat.now, leaseUntil };
  const changes: Change[] = [heartbeatChange(node.nodeId, beat)];
  if (!node.online) {
    changes.push({ kind: "node.returned", nodeId: node.nodeId });
    changes.push(nodeEvent("node.online", after, beat.now));
  }
  const given = giveWaiting(after, waiting, beat);
  return { ...given, changes: [...changes, ...given.changes] };
}

/** Their tasks are requeued by `requeue` of task/chores.ts. */
export function expire(nodes: readonly Node[], now: number): Accepted<readonly string[]> {
  const changes = nodes.flatMap((node): Change[] => [
    { kind: "node.offline", nodeId: node.nodeId },
    ...withoutLeases(node),
    nodeEvent("node.offline", node, now),
  ]);
  return accept(
    nodes.map((node) => node.nodeId),
    changes,
  );
}

/** Its tasks are released by `releaseAll` of task/chores.ts. A repeat changes nothing. */
export function leave(node: Node | null, nodeId: string, now: number): Decision<Node> {
  if (!node) return nodeNotFound(nodeId);
  const after: Node = { ...node, online: false, draining: false, hasLeases: false };
  const changes: Change[] = node.draining ? [{ kind: "node.drained", nodeId, draining: false }] : [];
  if (!node.online) return accept(after, changes);
  changes.push({ kind: "node.offline", nodeId }, ...withoutLeases(node));
  changes.push(nodeEvent("node.left", node, now), nodeEvent("node.offline", node, now));
  return accept(after, changes);
}

/** A repeat changes nothing. */
export function drain(
  node: Node | null,
  request: { nodeId: string; draining: boolean },
  now: number,
): Decision<Node> {
  if (!node) return nodeNotFound(request.nodeId);
  const { nodeId, draining } = request;
  if (node.draining === draining) return accept(node);
  return accept({ ...node, draining }, [
    { kind: "node.drained", nodeId, draining },
    nodeEvent("node.draining", node, now, { draining }),
  ]);
}

/** Its tasks are released by `releaseAll` of task/chores.ts; its ledger, messages and totals stay. */
export function remove(node: Node | null, nodeId: string, now: number): Decision<Node> {
  if (!node) return nodeNotFound(nodeId);
  return accept(node, [
    { kind: "node.deleted", nodeId },
    ...withoutLeases(node),
    { kind: "invitations.dropped", nodeId },
    nodeEvent("node.deleted", node, now),
  ]);
}

/**
 * Offline for long, without a task or a message. Answers whether it was deleted. @param before a heartbeat at this time
 * or later keeps the node (wall clock)
 */
export function retire(
  node: Node | null,
  messagesWaiting: number,
  { before, now }: { before: number; now: number },
): Decision<boolean> {
  const isHeld = node === null || node.online || node.tasksAssigned > 0 || messagesWaiting > 0;
  if (isHeld || node.lastHeartbeatAt >= before) return accept(false);
  const { nodeId } = node;
  return accept(true, [
    { kind: "node.deleted", nodeId },
    { kind: "invitations.dropped", nodeId },
    nodeEvent("node.deleted", node, now, { reason: "offline" }),
  ]);
}

function withoutLeases({ nodeId, hasLeases }: Node): readonly Change[] {
  if (!hasLeases) return [];
  return [
    { kind: "leases.dropped", nodeId },
    { kind: "node.leased", nodeId, hasLeases: false },
  ];
}

/** The stored totals stay. */
export function saved(node: Node): readonly Change[] {
  const { nodeId, lastHeartbeatAt, leaseUntil } = node;
  return [
    { kind: "node.saved", node },
    { kind: "node.beaten", nodeId, lastHeartbeatAt, leaseUntil },
  ];
}

export function heartbeatChange(nodeId: string, { now, steady, leaseMs }: HeartbeatTime): Change {
  return { kind: "node.beaten", nodeId, lastHeartbeatAt: now, leaseUntil: steady + leaseMs };
}

/** `given`: assigned by the balancer, best first. */
type Given = { readonly node: Node; readonly given: readonly Task[]; readonly changes: readonly Change[] };

function giveWaiting(node: Node, waiting: readonly Task[], moment: Moment): Given {
  const mayHave = (task: Task): boolean => !isClosed(moment.gate?.closed, task, node.nodeId);
  const given = balance(waiting.filter(mayHave), [node], moment.now, moment.gate);
  const steps = given.map(({ task, nodeId }) => assignTo(task, nodeId, "balancer", moment));
  return {
    node: { ...node, tasksAssigned: node.tasksAssigned + steps.length },
    given: steps.map(({ answer }) => answer),
    changes: steps.flatMap(({ changes }) => changes),
  };
}

function changedFields(node: Node, profile: NodeProfile): readonly string[] {
  return Object.entries(PROFILE_FIELDS)
    .filter(([, valueOf]) => valueOf(node) !== valueOf(profile))
    .map(([name]) => name);
}

function nodeEvent(kind: NewEvent["kind"], node: Node, now: number, details: EventData = {}): Change {
  return {
    kind: "event.logged",
    event: { kind, at: now, nodeId: node.nodeId, taskId: null, data: { name: node.name, ...details } },
  };
}
