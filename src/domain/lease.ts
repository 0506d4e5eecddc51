/**
 * Rules of advisory leases: a node says that it works on a name, or on the paths of a glob (lib/globs.ts), so that
 * others keep away. The hub refuses leases that overlap; it guards nothing else.
 *
 *   (none) --acquire--> held --renew, acquire again--> held
 *   held --release, deadline, end of its task's attempt, node offline--> (none)
 *
 * Two leases conflict if some name matches both, unless both are shared, or the same node has them and not for two
 * different tasks. `fencing` is drawn from one counter of the hub: larger than that of every lease before it.
 *
 * Invariant: a stored lease is of an online node that has `hasLeases`, and its task, if it has one, is assigned to that
 * node and has `hasLeases`.
 */
import { assert } from "../lib/assert.ts";
import type { Change } from "./change.ts";
import { type Decision, type Rejected, accept, nodeNotFound, reject } from "./decision.ts";
import { LEASE_HOLDERS_SHOWN_MAX } from "./limits.ts";
import type { Lease, Moment, Node, Task } from "./model.ts";
import { type HubCounts, HUB_LIMITS, refusesMore } from "./shares.ts";
import { heldBy } from "./task/holder.ts";
import { overlap } from "../lib/globs.ts";

/** `hasExpired`: some have passed their deadline. */
export type LeaseTotals = HubCounts & { readonly hasExpired: boolean };

export type LeaseRows = {
  readonly node: Node | null;
  readonly task: Task | null;
  readonly others: readonly Lease[];
  readonly totals: LeaseTotals;
  readonly lastFencing: number;
};

export type AcquireRequest = Pick<Lease, "name" | "nodeId" | "taskId" | "shared" | "ttlMs"> & {
  /** Null: any. */
  readonly epoch: number | null;
};

/** `taskId`, `fencing` null: whatever they are. */
export type HolderOfLease = Pick<Lease, "name" | "nodeId"> & {
  readonly taskId: string | null;
  readonly fencing: number | null;
};

/** A repeat renews the lease that the node has under this name, with the same number. */
export function acquire(rows: LeaseRows, request: AcquireRequest, moment: Moment): Decision<Lease> {
  const { node, task, totals } = rows;
  const { name, nodeId, taskId, shared, ttlMs, epoch } = request;
  if (!node) return nodeNotFound(nodeId);
  if (!node.online)
    return reject("node_offline", `Node ${nodeId} is offline. Send a heartbeat, then acquire the lease.`);
  if (taskId !== null) {
    const held = heldBy(task, node, { taskId, nodeId, epoch });
    if ("code" in held) return held;
  }
  const others = rows.others.filter(({ leaseUntil }) => leaseUntil > moment.steady);
  const renewed = others.find((lease) => isSameHolder(lease, request) && lease.name === name);
  const against = others.filter((lease) => lease !== renewed && conflicts(lease, request));
  if (against.length > 0) return leaseConflict(name, against, moment);
  const leaseUntil = moment.steady + ttlMs;
  if (renewed?.shared === shared) {
    const lease: Lease = { ...renewed, ttlMs, leaseUntil };
    return accept(lease, [{ kind: "lease.saved", lease }]);
  }
  const full = renewed ? null : refusesMore(HUB_LIMITS.leases, totals, nodeId);
  if (full) return full;
  const fencing = rows.lastFencing + 1;
  assert(!renewed || renewed.fencing < fencing, "a fencing number is larger than those before it");
  const lease: Lease = { name, nodeId, taskId, shared, fencing, ttlMs, leaseUntil, acquiredAt: moment.now };
  // A renewal of all leases (a clock jump, a restart) must not bring back what this one was granted against.
  const isAfterExpired = totals.hasExpired || others.length < rows.others.length;
  const changes: Change[] = isAfterExpired ? [{ kind: "leases.pruned", steady: moment.steady }] : [];
  changes.push({ kind: "fencing.drawn", fencing }, { kind: "lease.saved", lease });
  if (task && !task.hasLeases) changes.push({ kind: "task.leased", taskId: task.taskId, hasLeases: true });
  if (!node.hasLeases) changes.push({ kind: "node.leased", nodeId, hasLeases: true });
  return accept(lease, changes);
}

/** @param held all leases of that node and name */
export function renew(
  held: readonly Lease[],
  request: HolderOfLease & { readonly ttlMs: number | null },
  moment: Moment,
): Decision<Lease> {
  const renewed = meant(held, request, moment).map((lease): Lease => {
    const ttlMs = request.ttlMs ?? lease.ttlMs;
    return { ...lease, ttlMs, leaseUntil: moment.steady + ttlMs };
  });
  const last = renewed.at(-1);
  if (!last) return leaseLost(request);
  return accept(
    last,
    renewed.map((lease) => ({ kind: "lease.saved", lease })),
  );
}

/** A repeat ends nothing. Answers how many it ended. */
export function release(held: readonly Lease[], request: HolderOfLease, moment: Moment): Decision<number> {
  const ended = meant(held, request, moment);
  return accept(
    ended.length,
    ended.map((lease) => ({ kind: "lease.removed", lease })),
  );
}

function meant(held: readonly Lease[], { taskId, fencing }: HolderOfLease, moment: Moment): readonly Lease[] {
  return held
    .filter(
      (lease) =>
        lease.leaseUntil > moment.steady &&
        (taskId === null || lease.taskId === taskId) &&
        (fencing === null || lease.fencing === fencing),
    )
    .toSorted((a, b) => a.fencing - b.fencing);
}

type Holder = Pick<Lease, "nodeId" | "taskId">;

function isSameHolder(a: Holder, b: Holder): boolean {
  return a.nodeId === b.nodeId && a.taskId === b.taskId;
}

export function conflicts(
  a: Pick<Lease, "name" | "nodeId" | "taskId" | "shared">,
  b: Pick<Lease, "name" | "nodeId" | "taskId" | "shared">,
): boolean {
  if (a.shared && b.shared) return false;
  const isOneHolder = a.nodeId === b.nodeId && (a.taskId === null || b.taskId === null || isSameHolder(a, b));
  return !isOneHolder && overlap(a.name, b.name);
}

function leaseConflict(name: string, against: readonly Lease[], moment: Moment): Rejected {
  const holders = against.toSorted((a, b) => a.fencing - b.fencing).slice(0, LEASE_HOLDERS_SHOWN_MAX);
  const nodes = [...new Set(holders.map(({ nodeId }) => nodeId))].join(", ");
  const detail = `${JSON.stringify(name)} overlaps with leases of ${nodes}. Work on something else until they end (until in holders), or ask their nodes.`;
  return { ...reject("lease_conflict", detail), conflict: { holders, at: moment } };
}

function leaseLost({ name, nodeId }: HolderOfLease): Rejected {
  const detail = `Node ${nodeId} has no such lease on ${JSON.stringify(name)}: it ended, or was released. Acquire it again before you go on.`;
  return reject("lease_lost", detail);
}
