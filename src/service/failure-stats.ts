/**
 * The tasks that failed lately, without cancelled and expired ones, grouped by type, kind and the first line of the
 * message without numbers and ids, and by node. A group has an id, by which task/list finds its tasks.
 *
 * In steps between which others are served.
 */
import {
  FAILURES_SCANNED_MAX,
  FAILURE_GROUPS_MAX,
  FAILURE_LINE_MAX_CHARS,
  FAILURE_NODES_MAX,
  PARKED_NODES_MAX,
  SEARCH_STEP_ROWS,
} from "../domain/limits.ts";
import { isCancelled } from "../domain/failure-kinds.ts";
import type { Failure, Task } from "../domain/model.ts";
import { nodesOfEvents } from "../store/sql/events.ts";
import { type FailedTask, failuresBefore } from "../store/sql/stats.ts";
import type { ChangePosition } from "../store/sql/tasks.ts";
import { idBefore } from "./feed.ts";
import { Scans, partOf } from "./scan.ts";
import { UseCases } from "./use-cases.ts";

/** `message`: that of the newest. `nodeIds`: those with most failures first; `nodes`: how many there are. */
export type FailureGroup = {
  readonly group: string;
  readonly taskType: string;
  readonly kind: Failure["kind"];
  readonly message: string;
  readonly count: number;
  readonly nodes: number;
  readonly nodeIds: readonly string[];
  readonly lastAt: number;
  readonly taskId: string;
};

/** `groups`: the largest first. `isExact` false: there are more. `attempts`: those that failed, also of other tasks. */
type FailureStats = {
  readonly groups: readonly FailureGroup[];
  readonly byNode: readonly { readonly nodeId: string; readonly count: number; readonly attempts: number }[];
  readonly total: number;
  readonly isExact: boolean;
};

/** What counts in the `attempts` of a task. */
const FAILED_ATTEMPTS = [
  "task.attempt_failed",
  "task.timed_out",
  "task.requeued",
  "task.review_rejected",
] as const;

type Growing = { readonly newest: FailedTask; count: number; readonly nodes: Map<string, number> };

export class FailureStatistics extends UseCases {
  readonly #scans = new Scans();

  /** Without those that have been retried or deleted since. */
  async read(lastMs: number): Promise<FailureStats> {
    const since = this.clock.now() - lastMs;
    const groups = new Map<string, Growing>();
    const byNode = new Map<string, number>();
    const newest: ChangePosition = { updatedAt: Number.MAX_SAFE_INTEGER, seq: 0 };
    const step = async (from: ChangePosition) =>
      partOf(
        await this.store.read(failuresBefore(from, since, SEARCH_STEP_ROWS)),
        SEARCH_STEP_ROWS,
        (task): ChangePosition => task,
      );
    let [total, isExact] = [0, true];
    for await (const { rows, next } of this.#scans.steps(newest, step, FAILURES_SCANNED_MAX)) {
      isExact = next === null;
      for (const task of rows) {
        const { kind, nodeId } = task.failure;
        if (isCancelled(kind)) continue;
        total++;
        const id = failureGroupOf(task.taskType, task.failure);
        const group = groups.get(id) ?? { newest: task, count: 0, nodes: new Map<string, number>() };
        groups.set(id, group);
        group.count++;
        if (nodeId === null) continue;
        increase(group.nodes, nodeId);
        increase(byNode, nodeId);
      }
    }
    const largest = [...groups].toSorted(
      ([, a], [, b]) => b.count - a.count || b.newest.updatedAt - a.newest.updatedAt,
    );
    const attempts = await this.#failedAttempts(since);
    for (const nodeId of byNode.keys()) if (!attempts.has(nodeId)) attempts.set(nodeId, 0);
    const nodes = mostFirst(attempts, Infinity).map((node) => ({ ...node, attempts: node.count }));
    return {
      groups: largest.slice(0, FAILURE_GROUPS_MAX).map(([id, group]) => summarize(id, group)),
      byNode: nodes
        .slice(0, PARKED_NODES_MAX)
        .map((node) => ({ ...node, count: byNode.get(node.nodeId) ?? 0 })),
      total,
      isExact,
    };
  }

  async #failedAttempts(since: number): Promise<Map<string, number>> {
    const attempts = new Map<string, number>();
    const after = await idBefore(this.store, since);
    for (const kind of FAILED_ATTEMPTS) {
      const step = async (before: number) =>
        partOf(
          await this.store.read(nodesOfEvents(kind, { after, upTo: before - 1 }, SEARCH_STEP_ROWS)),
          SEARCH_STEP_ROWS,
          ({ id }) => id,
        );
      for await (const { rows } of this.#scans.steps(Number.MAX_SAFE_INTEGER, step, FAILURES_SCANNED_MAX))
        for (const { nodeId } of rows) increase(attempts, nodeId);
    }
    return attempts;
  }
}

function summarize(group: string, { newest, count, nodes }: Growing): FailureGroup {
  return {
    group,
    taskType: newest.taskType,
    kind: newest.failure.kind,
    message: firstLine(newest.failure.message),
    count,
    nodes: nodes.size,
    nodeIds: mostFirst(nodes, FAILURE_NODES_MAX).map(({ nodeId }) => nodeId),
    lastAt: newest.updatedAt,
    taskId: newest.taskId,
  };
}

function increase(counts: Map<string, number>, nodeId: string): void {
  counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
}

function mostFirst(
  counts: ReadonlyMap<string, number>,
  most: number,
): readonly { readonly nodeId: string; readonly count: number }[] {
  return [...counts]
    .toSorted(([a, ofA], [b, ofB]) => ofB - ofA || (a < b ? -1 : 1))
    .slice(0, most)
    .map(([nodeId, count]) => ({ nodeId, count }));
}

/** A UUID, a word of hexadecimal digits with a number in it, or a number. */
const VARYING = /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b(?=[a-f]*[0-9])[0-9a-f]{6,}\b|\d+/gi;

/** The first line that is not blank. */
function firstLine(message: string | null): string {
  const line = message === null ? "" : (/\S.*/.exec(message)?.[0].trimEnd() ?? "");
  if (line.length <= FAILURE_LINE_MAX_CHARS) return line;
  return `${line.slice(0, FAILURE_LINE_MAX_CHARS - 1).toWellFormed()}…`;
}

export function failureGroupOf(
  taskType: Task["taskType"],
  { kind, message }: Pick<Failure, "kind" | "message">,
): string {
  const text = JSON.stringify([taskType, kind, firstLine(message).replace(VARYING, "#")]);
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16);
}
