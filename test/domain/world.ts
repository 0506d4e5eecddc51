/**
 * A store in memory for property tests: applies changes and knows no rule. Its running totals are the sums of the changes,
 * so that a test can compare them with the rows.
 */
import type { Change, Outcome } from "../../src/domain/change.ts";
import { addTotals, tasksIn } from "../../src/domain/task/facet/group.ts";
import type { GroupTotals, LedgerEntry, Node, Task, TaskStatus, Usage } from "../../src/domain/model.ts";

export class World {
  readonly nodes = new Map<string, Node>();
  readonly tasks = new Map<string, Task>();
  readonly ledger: LedgerEntry[] = [];
  /** "task on another", for each wait. */
  readonly dependencies = new Set<string>();
  /** By the id of a task that failed through its dependencies: the task at the root of that. */
  readonly brokenBy = new Map<string, string>();
  readonly settlements = new Map<string, Outcome>();
  /** Groups that may have ended. */
  readonly touched = new Set<string>();
  readonly groups = new Map<string, GroupTotals>();
  readonly totals: Record<TaskStatus, number> = { open: 0, assigned: 0, completed: 0, failed: 0 };

  /** What the events count against quotas. */
  eventBytes = 0;
  /** What nodes have added to the tasks of others, by task and node. */
  readonly charges = new Map<string, Map<string, number>>();
  /** By node. */
  readonly usage = new Map<string, Usage>();

  #created = 0;

  apply(changes: readonly Change[]): void {
    for (const change of changes) this.#applyOne(change);
  }

  #applyOne(change: Change): void {
    switch (change.kind) {
      case "node.saved":
        this.nodes.set(change.node.nodeId, { ...this.nodes.get(change.node.nodeId), ...change.node });
        return;
      case "node.beaten":
        this.#patch(change.nodeId, () => ({
          lastHeartbeatAt: change.lastHeartbeatAt,
          leaseUntil: change.leaseUntil,
        }));
        return;
      case "node.returned":
        this.#patch(change.nodeId, () => ({ online: true }));
        return;
      case "node.offline":
        this.#patch(change.nodeId, () => ({ online: false }));
        return;
      case "node.drained":
        this.#patch(change.nodeId, () => ({ draining: change.draining }));
        return;
      case "node.tallied":
        this.#patch(change.nodeId, (node) => ({
          tasksAssigned: node.tasksAssigned + change.assigned,
          tasksCompleted: node.tasksCompleted + change.completed,
          luxEarnedMicro: node.luxEarnedMicro + BigInt(change.luxEarnedMicro),
          idleSince: change.idleSince,
          entries: node.entries + change.entries,
          balanceMicro: node.balanceMicro + BigInt(change.balanceMicro),
        }));
        return;
      case "task.created":
        if (this.tasks.has(change.task.taskId)) throw new Error("created twice");
        this.tasks.set(change.task.taskId, { ...change.task, seq: ++this.#created });
        return;
      case "task.moved":
        if (!this.tasks.has(change.task.taskId)) throw new Error("moved what is not there");
        this.tasks.set(change.task.taskId, change.task);
        return;
      case "task.deleted":
        this.tasks.delete(change.taskId);
        this.brokenBy.delete(change.taskId);
        return;
      case "task.broken":
        if (!this.tasks.has(change.taskId)) throw new Error("broke what is not there");
        if (change.brokenBy === null) this.brokenBy.delete(change.taskId);
        else this.brokenBy.set(change.taskId, change.brokenBy);
        return;
      case "task.depended":
        this.#patchTask(change.taskId, { hasDependents: true });
        return;
      case "dependencies.added":
        for (const dependsOn of change.dependsOn) this.dependencies.add(`${change.taskId} on ${dependsOn}`);
        return;
      case "dependency.met":
        if (!this.dependencies.delete(`${change.taskId} on ${change.dependsOn}`))
          throw new Error("met what it did not wait for");
        return;
      case "dependencies.dropped":
        for (const one of this.dependencies)
          if (one.startsWith(`${change.taskId} on `)) this.dependencies.delete(one);
        return;
      case "dependency.settled":
        this.settlements.set(change.taskId, change.outcome);
        return;
      case "settlement.removed":
        this.settlements.delete(change.taskId);
        return;
      case "group.touched":
        this.touched.add(change.group);
        return;
      case "group.checked":
        this.touched.delete(change.group);
        return;
      case "group.tallied": {
        const { kind: _kind, group, adds, removes, ...step } = change;
        const before = this.groups.get(group);
        if (!before && !adds) throw new Error("tallied a group that has no task");
        const after = before ? addTotals(before, step) : step;
        if (removes && tasksIn(after) === 0) this.groups.delete(group);
        else this.groups.set(group, after);
        return;
      }
      case "tasks.tallied":
        this.totals.open += change.open;
        this.totals.assigned += change.assigned;
        this.totals.completed += change.completed;
        this.totals.failed += change.failed;
        return;
      case "lux.entered":
        if (change.entry.n !== this.#entriesOf(change.entry.nodeId) + 1)
          throw new Error("entered out of turn");
        if (change.entry.seq !== this.ledger.length + 1) throw new Error("entered in another place");
        this.ledger.push(change.entry);
        return;
      case "usage.tallied": {
        const { tasks, bytes } = this.usage.get(change.nodeId) ?? { tasks: 0, bytes: 0 };
        this.usage.set(change.nodeId, { tasks: tasks + change.tasks, bytes: bytes + change.bytes });
        return;
      }
      case "task.charged": {
        const { taskId, nodeId, bytes } = change;
        const ofTask = this.charges.get(taskId) ?? new Map<string, number>();
        this.charges.set(taskId, ofTask.set(nodeId, (ofTask.get(nodeId) ?? 0) + bytes));
        return;
      }
      case "charges.refunded":
        for (const [nodeId, bytes] of this.charges.get(change.taskId) ?? [])
          this.#applyOne({ kind: "usage.tallied", nodeId, tasks: 0, bytes: -bytes });
        return;
      case "charges.removed":
        this.charges.delete(change.taskId);
        return;
      case "event.logged":
        if (change.event.keptBytes !== undefined) this.eventBytes += change.event.keptBytes;
        return;
      default:
        throw new Error(`not of nodes, tasks or LUX: ${change.kind}`);
    }
  }

  #entriesOf(nodeId: string | null): number {
    return this.ledger.filter((entry) => entry.nodeId === nodeId).length;
  }

  #patchTask(taskId: string, patch: Partial<Task>): void {
    const task = this.tasks.get(taskId);
    if (!task) throw new Error(`no task ${taskId}`);
    this.tasks.set(taskId, { ...task, ...patch });
  }

  #patch(nodeId: string, patch: (node: Node) => Partial<Node>): void {
    const node = this.nodes.get(nodeId);
    if (!node) throw new Error(`no node ${nodeId}`);
    this.nodes.set(nodeId, { ...node, ...patch(node) });
  }
}
