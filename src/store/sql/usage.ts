/** The reads, writes and facts of what counts against the quotas of nodes (domain/quota.ts). */
import type { Change } from "../../domain/change.ts";
import type { Usage } from "../../domain/model.ts";
import { soundUsage } from "../../domain/sound.ts";
import { NO_USAGE } from "../../domain/quota.ts";
import type { Query } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { byKey, query } from "./query.ts";
import { customStatement, text } from "./write-statement.ts";
import { QUOTA_USAGE, TASK_CHARGES } from "./tables.ts";
import type { Writes } from "./write.ts";
import { tally } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

const toUsage = QUOTA_USAGE.reader("tasks", "bytes").to(soundUsage);
const USAGE = byKey(["text"], `SELECT tasks, bytes FROM quota_usage WHERE node_id = $1`);

/** A node whose keys have stored nothing has no row. */
export function usageOf(nodeId: string): Query<Usage> {
  const shape: Query<Usage>["shape"] = ([row]) => (row ? toUsage(row) : NO_USAGE);
  const cached = { as: "usage", id: nodeId } as const;
  return {
    ...query(USAGE, [nodeId], shape, [keyOf.usage(nodeId)]),
    cached,
    patch: (usage, change) => patchUsage(nodeId, usage, change),
  };
}

/** Undefined after a sweep, which names no node. */
export function patchUsage(nodeId: string, usage: Usage, change: Change): Usage | undefined {
  if (change.kind !== "usage.tallied") return undefined;
  if (change.nodeId !== nodeId) return usage;
  return { tasks: usage.tasks + change.tasks, bytes: usage.bytes + change.bytes };
}

/** By node_id. */
export function allUsage(): Query<ReadonlyMap<string, Usage>> {
  const shape: Query<ReadonlyMap<string, Usage>>["shape"] = (rows) =>
    new Map(rows.map((row) => [String(row["node_id"]), toUsage(row)]));
  return query(`SELECT node_id, tasks, bytes FROM quota_usage`, [], shape, ["quota_usage"]);
}

type OfTask = { readonly taskId: string };
const TASK = [text(({ taskId }: OfTask) => taskId)];

/** What others have added. */
export const REFUND_CHARGES = customStatement<OfTask, "quota_usage">(
  "quota_usage",
  `UPDATE quota_usage SET bytes = quota_usage.bytes - c.bytes FROM task_charges c
   WHERE c.task_id = $1 AND quota_usage.node_id = c.node_id`,
  TASK,
);
export const REMOVE_CHARGES = customStatement<OfTask, "task_charges">(
  "task_charges",
  `DELETE FROM task_charges WHERE task_id = $1`,
  TASK,
);

export const QUOTA_WRITES = {
  "usage.tallied": {
    cache: (rows, change) => rows.patchUsage(change),
    row: ({ nodeId }) => keyOf.usage(nodeId),
    statement: tally(QUOTA_USAGE, (change) => change),
    sum: (earlier, later) => ({
      ...later,
      tasks: earlier.tasks + later.tasks,
      bytes: earlier.bytes + later.bytes,
    }),
  },
  "task.charged": {
    row: ({ taskId, nodeId }) => keyOf.charge(taskId, nodeId),
    statement: tally(TASK_CHARGES, (change) => change),
    sum: (earlier, later) => ({ ...later, bytes: earlier.bytes + later.bytes }),
  },
  "charges.refunded": { cache: (rows) => rows.clearUsage(), isSweep: true, statement: REFUND_CHARGES },
  "charges.removed": { isSweep: true, frees: true, statement: REMOVE_CHARGES },
} satisfies Partial<Writes>;

export const QUOTA_FACTS: readonly Fact[] = [
  {
    name: "usage",
    holds: "what counts against the quota of each node is what its rows count",
    sql: `
      SELECT 'node ' || node_id || ': its usage differs from its rows by ' || sum(tasks) || ' tasks and '
        || sum(bytes) || ' bytes' FROM (
        SELECT node_id, tasks, bytes FROM quota_usage
        UNION ALL
        SELECT creator_node, -sum(CASE WHEN child IS NOT NULL THEN 0
          WHEN status IN ('open', 'assigned') OR review_until IS NOT NULL
          THEN 1 + coalesce(CAST(json_extract(quorum, '$.results') AS INTEGER), 0) ELSE 0 END), -sum(kept_bytes) FROM task_rows
          WHERE kept_bytes > 0 GROUP BY creator_node
        UNION ALL
        SELECT node_id, 0, -sum(kept_bytes) FROM files WHERE kept_bytes > 0 GROUP BY node_id
        UNION ALL
        SELECT node_id, 0, -sum(bytes) FROM task_charges GROUP BY node_id
        UNION ALL
        SELECT node_id, 0, -sum(kept_bytes) FROM node_sums WHERE kept_bytes > 0 GROUP BY node_id
        UNION ALL
        SELECT node_id, 0, -sum(kept_bytes) FROM outputs WHERE kept_bytes > 0 GROUP BY node_id
        UNION ALL
        SELECT from_node, 0, -sum(kept_bytes) FROM messages WHERE kept_bytes > 0 GROUP BY from_node
        UNION ALL
        SELECT coalesce(kept_by, node_id), 0, -sum(kept_bytes) FROM events WHERE kept_bytes > 0 GROUP BY 1
        ${["schedules", "webhooks", "notes"].map((table) => `UNION ALL SELECT kept_by, 0, -sum(kept_bytes) FROM ${table} WHERE kept_by IS NOT NULL GROUP BY kept_by`).join(" ")}) AS counted
      GROUP BY node_id HAVING sum(tasks) <> 0 OR sum(bytes) <> 0 LIMIT ${SHOWN}`,
  },
  {
    name: "charges",
    holds: "what others have added to a task is what counts against their quotas for it",
    sql: `
      SELECT 'task ' || task_id || ': its charges differ by ' || sum(bytes) || ' bytes' FROM (
        SELECT task_id, lent_bytes AS bytes FROM task_rows WHERE lent_bytes > 0
        UNION ALL SELECT task_id, -bytes FROM task_charges) AS counted
      GROUP BY task_id HAVING sum(bytes) <> 0 LIMIT ${SHOWN}`,
  },
];
