/** The reads and writes of advisory leases, in the SQL that SQLite 3.35+ and PostgreSQL 15+ share. */
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

const toLease = LEASES.reader().to(soundLease);
const LEASE = toLease.list;

/** All leases that may overlap with a name: with a glob, any. */
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

/** `limit` leases that count, oldest first: those with a larger fencing number than `after`. */
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

/** The first deadline of all leases; null: there are none. */
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
