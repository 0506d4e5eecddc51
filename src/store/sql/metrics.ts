/**
 * The reads of the metrics. Each is bounded: by one row, by a few index lookups, by a limit, or by a part of a table.
 */
import { MICRO_PER_LUX } from "../../domain/limits.ts";
import type { Query, Row } from "../store.ts";
import { READY_PLAIN, isReadyIn } from "./lanes.ts";
import { always, count, one, query, union } from "./query.ts";

/** `online`: without those that drain; `luxMicro`: the sum of the balances. */
export type NodeCounts = {
  readonly online: number;
  readonly draining: number;
  readonly offline: number;
  readonly luxMicro: bigint;
};

export type NodeCountsPart = NodeCounts & { readonly next: number | null };

/** After a place in the order (0: from its beginning), without deleted ones. */
export function nodeCounts(after: number, limit: number): Query<NodeCountsPart> {
  const sql = `
    SELECT count(*) AS n, max(seq) AS last, sum((1 - deleted) * online * (1 - draining)) AS online,
      sum((1 - deleted) * online * draining) AS draining, sum((1 - deleted) * (1 - online)) AS offline,
      CAST(sum((1 - deleted) * (balance_micro / ${MICRO_PER_LUX})) AS TEXT) AS lux,
      CAST(sum((1 - deleted) * (balance_micro % ${MICRO_PER_LUX})) AS TEXT) AS micro
    FROM (SELECT seq, online, draining, deleted, balance_micro FROM nodes WHERE seq > $1 ORDER BY seq LIMIT $2) AS part`;
  // A sum of no rows is NULL.
  const part = (row: Row): NodeCountsPart => ({
    online: Number(row["online"]),
    draining: Number(row["draining"]),
    offline: Number(row["offline"]),
    // In two sums, because one of all balances may exceed 64 bits.
    luxMicro: BigInt(row["lux"] ?? 0) * BigInt(MICRO_PER_LUX) + BigInt(row["micro"] ?? 0),
    next: Number(row["n"]) < limit ? null : Number(row["last"]),
  });
  return always(sql, [after, limit], part, ["nodes"]);
}

/** Counted up to `limit`. The states are those of the partial indexes. */
export function messagesIn(state: "waiting" | "leased" | "parked", limit: number): Query<number> {
  const sql = `
    SELECT count(*) AS n FROM (SELECT 1 AS one FROM deliveries WHERE state = '${state}' LIMIT $1) AS counted`;
  return count(sql, [limit], ["deliveries"]);
}

/** Of the plain lanes: when it was created or, if it had to wait for its time, became due. */
export function oldestReady(): Query<number | null> {
  return one(
    `SELECT ${oldestReadyWhere(READY_PLAIN)} AS at`,
    [],
    ({ at }) => (at == null ? null : Number(at)),
    ["tasks"],
  );
}

/** `oldestAt` as oldestReady(). */
export type ReadyOfLane = { readonly count: number; readonly oldestAt: number | null };

/** Up to `limit`. */
export function readyOfLane(name: string, limit: number): Query<ReadyOfLane> {
  const where = isReadyIn(name, "$1");
  const ofLane = [0, 1].map(
    (balanced) => `SELECT 1 AS one FROM tasks WHERE ${where} AND balanced = ${balanced}`,
  );
  const sql = `
    SELECT (SELECT count(*) FROM (${union(ofLane)} LIMIT $2) AS counted) AS n,
      ${oldestReadyWhere(where)} AS at`;
  const ready = ({ n, at }: Row): ReadyOfLane => ({
    count: Number(n),
    oldestAt: at == null ? null : Number(at),
  });
  return always(sql, [name, limit], ready, ["tasks"]);
}

export function firstOfLane(name: string): Query<string | null> {
  const ofLane = [0, 1].map(
    (balanced) => `
      SELECT priority, seq, task_id FROM tasks WHERE ${isReadyIn(name, "$1")} AND balanced = ${balanced}
      ORDER BY priority, seq`,
  );
  const sql = `SELECT task_id FROM (${union(ofLane)}) AS best ORDER BY priority, seq LIMIT 1`;
  return query(sql, [name], ([row]) => (row === undefined ? null : String(row["task_id"])), ["tasks"]);
}

/** One index lookup for each priority. */
function oldestReadyWhere(where: string): string {
  const oldest = [0, 1].flatMap((balanced) =>
    [0, 1, 2, 5].map(
      (priority) => `
        SELECT created_at, not_before FROM tasks WHERE seq = (
          SELECT min(seq) FROM tasks
          WHERE ${where} AND balanced = ${balanced} AND priority = ${priority})`,
    ),
  );
  return `(
    SELECT min(CASE WHEN not_before > created_at THEN not_before ELSE created_at END)
    FROM (${union(oldest)}) AS oldest)`;
}

export type RunningPart = {
  readonly byType: readonly { readonly taskType: string; readonly count: number }[];
  readonly counted: number;
  readonly next: number | null;
};

/** After a place in the order of creation (0: from its beginning). */
export function runningByType(after: number, limit: number): Query<RunningPart> {
  const sql = `
    SELECT task_type, count(*) AS n, max(seq) AS last FROM (
      SELECT task_type, seq FROM tasks WHERE status = 'assigned' AND seq > $1 ORDER BY seq LIMIT $2) AS part
    GROUP BY task_type`;
  const shape = (rows: readonly Row[]): RunningPart => {
    const counted = rows.reduce((sum, { n }) => sum + Number(n), 0);
    return {
      byType: rows.map((row) => ({ taskType: String(row["task_type"]), count: Number(row["n"]) })),
      counted,
      next: counted < limit ? null : Math.max(...rows.map(({ last }) => Number(last))),
    };
  };
  return query(sql, [after, limit], shape, ["tasks"]);
}
