/**
 * A store in memory for property tests: applies changes and knows no rule. Its running totals are the sums of the changes,
 * so that a test can compare them with the rows.
 */
import type { Change } from "../../src/domain/change.ts";
import type { LedgerEntry, Node, Task, TaskStatus } from "../../src/domain/model.ts";

export class World {
  readonly nodes = new Map<string, Node>();
  readonly tasks = new Map<string, Task>();
  readonly ledger: LedgerEntry[] = [];
  readonly totals: Record<TaskStatus, number> = { open: 0, assigned: 0, completed: 0 };

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
        return;
      case "tasks.tallied":
        this.totals.open += change.open;
        this.totals.assigned += change.assigned;
        this.totals.completed += change.completed;
        return;
      case "lux.entered":
        if (change.entry.n !== this.#entriesOf(change.entry.nodeId) + 1)
          throw new Error("entered out of turn");
        this.ledger.push(change.entry);
        return;
      case "event.logged":
        return;
      default:
        throw new Error(`not of nodes, tasks or LUX: ${change.kind}`);
    }
  }

  #entriesOf(nodeId: string): number {
    return this.ledger.filter((entry) => entry.nodeId === nodeId).length;
  }

  #patch(nodeId: string, patch: (node: Node) => Partial<Node>): void {
    const node = this.nodes.get(nodeId);
    if (!node) throw new Error(`no node ${nodeId}`);
    this.nodes.set(nodeId, { ...node, ...patch(node) });
  }
}
