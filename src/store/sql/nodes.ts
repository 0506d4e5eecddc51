/** The reads of nodes, in the SQL that SQLite 3.35+ and PostgreSQL 15+ share. */
import type { Node, Pulse } from "../../domain/model.ts";
import type { Query } from "../store.ts";
import { type ConflictKey, keyOf } from "./conflict-keys.ts";
import { byKey, count, filledUp, many, one, places } from "./query.ts";
import { toNode, toPulse } from "./rows.ts";

// LUX sums may exceed 2^53, where the drivers' numbers are not exact, so they are read as text.
export const NODE_COLUMNS = `
  node_id, name, host, port, capabilities, variant, max_tasks, online, registered_at, last_heartbeat_at,
  lease_until, tasks_assigned, tasks_completed, CAST(lux_earned_micro AS TEXT) AS lux_earned, idle_since,
  entries, CAST(balance_micro AS TEXT) AS balance`;
/** Every node has its row in beats, from its registration on. */
export const NODES = `nodes JOIN beats USING (seq)`;
export const NODES_READ: readonly ConflictKey[] = ["nodes", "beats"];

const NODE_BY_ID = byKey(["text"], `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id = $1`);

export function nodeById(nodeId: string): Query<Node | null> {
  return one(NODE_BY_ID, [nodeId], toNode, [keyOf.node(nodeId)]);
}

const PULSE = byKey(
  ["text"],
  `SELECT node_id, variant, online, tasks_assigned FROM nodes WHERE node_id = $1`,
);

/** The columns that a heartbeat, the most frequent request, needs. */
export function pulseOf(nodeId: string): Query<Pulse | null> {
  return one(PULSE, [nodeId], toPulse, [keyOf.node(nodeId)]);
}

/** Nodes ordered by id, after one id ("" is before all). */
export function nodesAfter(after: string, limit: number): Query<readonly Node[]> {
  const sql = `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id > $1 ORDER BY node_id LIMIT $2`;
  return many(sql, [after, limit], toNode, NODES_READ);
}

export function nodesById(nodeIds: readonly string[]): Query<readonly Node[]> {
  const ids = filledUp(nodeIds);
  const sql = `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id IN (${places(ids)})`;
  return many(sql, ids, toNode, NODES_READ);
}

export function nodesCount(): Query<number> {
  return count(`SELECT count(*) AS n FROM nodes`, [], ["nodes"]);
}

export function onlineNodeIds(): Query<readonly string[]> {
  const sql = `SELECT node_id FROM nodes WHERE online = 1 ORDER BY node_id`;
  return many(sql, [], (row) => String(row["node_id"]), ["nodes"]);
}

export function expiredNodes(steady: number, limit: number): Query<readonly Node[]> {
  const sql = `
    SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE online = 1 AND lease_until <= $1 ORDER BY lease_until, node_id LIMIT $2`;
  return many(sql, [steady, limit], toNode, NODES_READ);
}

/** When the next lease ends, by the steady clock; null when none runs. */
export function nextLeaseEnd(steady: number): Query<number | null> {
  const sql = `SELECT min(lease_until) AS at FROM ${NODES} WHERE online = 1 AND lease_until > $1`;
  return one(sql, [steady], ({ at }) => (at == null ? null : Number(at)), NODES_READ);
}

export function topNodes(limit: number): Query<readonly Node[]> {
  const sql = `
    SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE tasks_completed > 0
    ORDER BY tasks_completed DESC, lux_earned_micro DESC, node_id LIMIT $1`;
  return many(sql, [limit], toNode, NODES_READ);
}
