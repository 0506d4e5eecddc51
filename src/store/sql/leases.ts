/** The reads, writes and facts of advisory leases. */
import type { LeaseTotals } from "../../domain/lease.ts";
import type { Lease } from "../../domain/model.ts";
import { soundLease } from "../../domain/sound.ts";
import { isGlob } from "../../lib/globs.ts";
import type { Query, Row } from "../store.ts";
import { always, count, many } from "./query.ts";
import { type ConflictKey, keyOf } from "./conflict-keys.ts";
import { LEASES } from "./tables.ts";
import type { Of, Writes } from "./write.ts";
import { customStatement, drop, remove, save, update, whole } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

const toLease = LEASES.reader().to(soundLease);
const LEASE = toLease.list;

/** With a glob, any. */
export function leasesNear(name: string): Query<readonly Lease[]> {
  const sql = `SELECT ${LEASE} FROM leases`;
  if (isGlob(name)) return many(sql, [], toLease, ["leases"]);
  return many(`${sql} WHERE name = $1 UNION ALL ${sql} WHERE is_glob = 1 AND name <> $1`, [name], toLease, [
    "leases",
  ]);
}

export function leasesOf(nodeId: string, name: string): Query<readonly Lease[]> {
  const sql = `SELECT ${LEASE} FROM leases WHERE node_id = $1 AND name = $2`;
  return many(sql, [nodeId, name], toLease, ["leases"]);
}

/** @param steady leases whose deadline is not later do not count */
export function leaseTotals(nodeId: string, steady: number): Query<LeaseTotals> {
  const sql = `
    SELECT count(*) AS stored, coalesce(sum(CASE WHEN lease_until > $2 THEN 1 ELSE 0 END), 0) AS counted,
      coalesce(sum(CASE WHEN lease_until > $2 AND node_id = $1 THEN 1 ELSE 0 END), 0) AS of_node
    FROM leases`;
  const totals = (row: Row): LeaseTotals => ({
    all: Number(row["counted"]),
    ofNode: Number(row["of_node"]),
    hasExpired: Number(row["stored"]) > Number(row["counted"]),
  });
  return always(sql, [nodeId, steady], totals, ["leases"]);
}

/** Oldest first: those that count and have a larger fencing number than `after`. */
export function leasesAfter(
  filter: { readonly nodeId: string | null; readonly taskId: string | null },
  steady: number,
  after: number,
  limit: number,
): Query<readonly Lease[]> {
  const sql = `
    SELECT ${LEASE} FROM leases
    WHERE fencing > $1 AND lease_until > $2 AND ($3 = '' OR node_id = $3) AND ($4 = '' OR task_id = $4)
    ORDER BY fencing LIMIT $5`;
  const params = [after, steady, filter.nodeId ?? "", filter.taskId ?? "", limit];
  return many(sql, params, toLease, ["leases"]);
}

export function lastFencing(): Query<number> {
  return count(`SELECT last AS n FROM fencing`, [], ["fencing"]);
}

/** null: there are none. */
export function firstDeadline(): Query<number | null> {
  const sql = `SELECT min(lease_until) AS first FROM leases`;
  const first = ({ first }: Row): number | null => (first == null ? null : Number(first));
  return always(sql, [], first, ["leases"]);
}

/** Changes of leases of one node on one name are written in order. */
const ofLease = ({ lease }: Pick<Of<"lease.saved">, "lease">): ConflictKey =>
  keyOf.leases(lease.nodeId, lease.name);

export const LEASE_WRITES = {
  "lease.saved": { row: ofLease, statement: save(LEASES, ({ lease }) => lease) },
  "lease.removed": {
    frees: true,
    row: ofLease,
    statement: remove(
      "leases",
      LEASES.set(({ lease }) => lease, "node_id", "name", "task_id"),
    ),
  },
  "leases.released": { isSweep: true, frees: true, statement: drop(LEASES, ["task_id"]) },
  "leases.dropped": { isSweep: true, frees: true, statement: drop(LEASES, ["node_id"]) },
  "leases.pruned": {
    isSweep: true,
    frees: true,
    statement: customStatement("leases", `DELETE FROM leases WHERE lease_until <= $1`, [
      whole(({ steady }) => steady),
    ]),
  },
  "leases.renewed": {
    isSweep: true,
    statement: customStatement("leases", `UPDATE leases SET lease_until = $1 + ttl_ms`, [
      whole(({ steady }) => steady),
    ]),
  },
  "fencing.drawn": {
    statement: update("fencing", { one: "1" }, { last: whole(({ fencing }) => fencing) }),
    sum: (_, later) => later,
  },
} satisfies Partial<Writes>;

export const LEASE_FACTS: readonly Fact[] = [
  {
    name: "advisory",
    holds:
      "every advisory lease is of an online node, and of no task or one that this node holds; both say so; no fencing number is larger than the last one",
    sql: `
      SELECT 'lease ' || l.fencing || ' is not of a node that is online and has leases' FROM leases l
      LEFT JOIN nodes n ON n.node_id = l.node_id
      WHERE n.node_id IS NULL OR n.online = 0 OR n.has_leases = 0
      UNION ALL
      SELECT 'lease ' || l.fencing || ' is for a task that its node does not hold' FROM leases l
      LEFT JOIN task_rows t ON t.task_id = l.task_id
      WHERE l.task_id <> '' AND (t.task_id IS NULL OR t.status <> 'assigned' OR t.assigned_node <> l.node_id
        OR t.has_leases = 0)
      UNION ALL
      SELECT 'task ' || task_id || ' is ' || status || ', and says that it has leases' FROM task_rows
      WHERE has_leases = 1 AND status <> 'assigned'
      UNION ALL
      SELECT 'a lease has the fencing number ' || fencing || ', and ' || last || ' is the last one'
      FROM leases, fencing WHERE leases.fencing > fencing.last
      LIMIT ${SHOWN}`,
  },
];
