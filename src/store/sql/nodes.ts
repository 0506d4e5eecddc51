/** The reads, writes and facts of nodes. */
import { assert } from "../../lib/assert.ts";
import { fits } from "../../domain/balancer.ts";
import type { Change } from "../../domain/change.ts";
import type { Node, Pulse } from "../../domain/model.ts";
import type { Query, Row } from "../store.ts";
import { type ConflictKey, keyOf } from "./conflict-keys.ts";
import { always, byKey, count, many, one, padded, placeholders, query } from "./query.ts";
import { capabilitiesOf, toNode } from "./rows.ts";
import { NODES as NODE_TABLE } from "./tables.ts";
import type { Columns } from "./table.ts";
import { type Writes, evict } from "./write.ts";
import { added, customStatement, flag, text, update, upsert, whole } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

/** The resources of a node, and what its unfinished tasks use: how many there are of each requirement (resourcesOf). */
export const RESOURCES = `resources, CASE WHEN resources IS NULL THEN NULL ELSE (
    SELECT string_agg(n || ' ' || requires, '\n') FROM (
      SELECT requires, count(*) AS n FROM task_features f
      WHERE f.assigned_node = nodes.node_id AND status = 'assigned' AND requires IS NOT NULL GROUP BY requires) AS own) END AS used`;

// LUX sums may exceed 2^53, where the drivers' numbers are not exact, so they are read as text.
export const NODE_COLUMNS = `
  node_id, name, host, port, capabilities, ${RESOURCES}, variant, max_tasks, auto_assign, draining, online, has_leases, registered_at, last_heartbeat_at,
  lease_until, tasks_assigned, tasks_completed, CAST(lux_earned_micro AS TEXT) AS lux_earned_micro, idle_since,
  entries, CAST(balance_micro AS TEXT) AS balance_micro`;
/** Every node has its row in beats, from its registration on. Deleted ones are among them (deleted = 1). */
export const NODES = `nodes JOIN beats USING (seq)`;
export const NODES_READ: readonly ConflictKey[] = ["nodes", "beats"];

const NODE_BY_ID = byKey(["text"], `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id = $1 AND deleted = 0`);
const DELETED_NODE = byKey(
  ["text"],
  `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id = $1 AND deleted = 1`,
);

export function nodeById(nodeId: string): Query<Node | null> {
  const cached = { as: "node", id: nodeId } as const;
  return { ...one(NODE_BY_ID, [nodeId], toNode, [keyOf.node(nodeId)]), cached, patch: patchNode };
}

const NODE_EVER = byKey(["text"], `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id = $1`);

/** Also if it is deleted. */
export function nodeEver(nodeId: string): Query<Node | null> {
  return { ...one(NODE_EVER, [nodeId], toNode, [keyOf.node(nodeId)]), patch: patchNode };
}

/** After one of the frequent changes of a request. */
export function patchNode(node: Node | null, change: Change): Node | undefined {
  if (node === null) return undefined;
  if (change.kind === "node.beaten") {
    const { lastHeartbeatAt, leaseUntil } = change;
    return { ...node, lastHeartbeatAt, leaseUntil };
  }
  if (change.kind !== "node.tallied") return undefined;
  if (Object.keys(node.resources).length > 0 && change.assigned !== 0) return undefined; // what it uses has changed
  const tasksAssigned = node.tasksAssigned + change.assigned;
  const tasksCompleted = node.tasksCompleted + change.completed;
  assert(tasksAssigned >= 0 && tasksCompleted >= 0, "a node counts no fewer tasks than none");
  return {
    ...node,
    tasksAssigned,
    tasksCompleted,
    luxEarnedMicro: node.luxEarnedMicro + BigInt(change.luxEarnedMicro),
    entries: node.entries + change.entries,
    balanceMicro: node.balanceMicro + BigInt(change.balanceMicro),
    idleSince: change.idleSince,
  };
}

/** Its totals stay. */
export function deletedNode(nodeId: string): Query<Node | null> {
  return one(DELETED_NODE, [nodeId], toNode, [keyOf.node(nodeId)]);
}

const toPulse = NODE_TABLE.reader("node_id", "variant", "online", "draining", "tasks_assigned");
const PULSE = byKey(["text"], `SELECT ${toPulse.list} FROM nodes WHERE node_id = $1 AND deleted = 0`);

/** What a heartbeat, the most frequent request, needs. */
export function pulseOf(nodeId: string): Query<Pulse | null> {
  return { ...one(PULSE, [nodeId], toPulse, [keyOf.node(nodeId)]), patch: patchPulse };
}

function patchPulse(pulse: Pulse | null, change: Change): Pulse | undefined {
  if (pulse === null) return undefined;
  if (change.kind === "node.beaten") return pulse;
  if (change.kind !== "node.tallied") return undefined;
  return { ...pulse, tasksAssigned: pulse.tasksAssigned + change.assigned };
}

export function pulsesOf(nodeIds: readonly string[]): Query<readonly Pulse[]> {
  const ids = padded(nodeIds);
  const sql = `
    SELECT ${toPulse.list} FROM nodes WHERE deleted = 0 AND node_id IN (${placeholders(ids)})`;
  return many(sql, ids, toPulse, ["nodes"]);
}

/** Ordered by id, after one id ("" is before all). */
export function nodesAfter(after: string, limit: number): Query<readonly Node[]> {
  const sql = `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE node_id > $1 AND deleted = 0 ORDER BY node_id LIMIT $2`;
  return many(sql, [after, limit], toNode, NODES_READ);
}

export type IdleNodesPart = { readonly nodeIds: readonly string[]; readonly next: number | null };

/**
 * In the order of registration (0: from its beginning): those that are offline, hold no task, and sent no heartbeat
 * since `before` (wall clock).
 */
export function idleNodesAfter(after: number, limit: number, before: number): Query<IdleNodesPart> {
  const sql = `
    SELECT seq, node_id, online, deleted, tasks_assigned, last_heartbeat_at
    FROM ${NODES} WHERE seq > $1 ORDER BY seq LIMIT $2`;
  const isIdle = (row: Row): boolean =>
    row["online"] === 0 &&
    row["deleted"] === 0 &&
    Number(row["tasks_assigned"]) === 0 &&
    Number(row["last_heartbeat_at"]) < before;
  const shape = (rows: readonly Row[]): IdleNodesPart => ({
    nodeIds: rows.filter(isIdle).map((row) => String(row["node_id"])),
    next: rows.length < limit ? null : Number(rows.at(-1)?.["seq"]),
  });
  return query(sql, [after, limit], shape, NODES_READ);
}

export function nodesById(nodeIds: readonly string[]): Query<readonly Node[]> {
  const ids = padded(nodeIds);
  const sql = `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE deleted = 0 AND node_id IN (${placeholders(ids)})`;
  return many(sql, ids, toNode, NODES_READ);
}

/** The highest rank first. */
export type RankedNode = {
  readonly seq: number;
  readonly nodeId: string;
  readonly name: string;
  readonly host: string | null;
  readonly capabilities: readonly string[];
  readonly online: boolean;
  readonly draining: boolean;
  readonly deleted: boolean;
  readonly rank: bigint;
};

/** `online` includes those that drain. */
export type NodeState = "online" | "draining" | "offline";

const NODE_STATES: Readonly<Record<NodeState, string>> = {
  online: "online = 1",
  draining: "online = 1 AND draining = 1",
  offline: "online = 0",
};

/** `busy`: by unfinished tasks, offline nodes last; `lux`: by balance. Ties are ordered by node_id. */
const RANKS = {
  busy: "CASE WHEN online = 1 THEN tasks_assigned ELSE -1 END",
  lux: "balance_micro",
} as const;

export type NodeRank = keyof typeof RANKS;

const RANK_COLUMNS = "seq, node_id, name, host, capabilities, online, draining, deleted";

function toRankedNode(row: Row): RankedNode {
  return {
    seq: Number(row["seq"]),
    nodeId: String(row["node_id"]),
    name: String(row["name"]),
    host: row["host"] == null ? null : String(row["host"]),
    capabilities: capabilitiesOf(row),
    online: row["online"] === 1,
    draining: row["draining"] === 1,
    deleted: row["deleted"] === 1,
    rank: BigInt(String(row["rank"])),
  };
}

/** Deleted ones too, so that the scan is bounded by `limit`. All have the rank 0. */
export function nodesByIdAfter(after: string, limit: number): Query<readonly RankedNode[]> {
  const sql = `SELECT ${RANK_COLUMNS}, 0 AS rank FROM nodes WHERE node_id > $1 ORDER BY node_id LIMIT $2`;
  return many(sql, [after, limit], toRankedNode, ["nodes"]);
}

/** By registration number: after `after`, up to `last`. */
export type NodeRange = { readonly after: number; readonly last: number };

/** Null after the last node. */
export function nodeRangeAfter(after: number, limit: number): Query<NodeRange | null> {
  const sql = `SELECT max(seq) AS last FROM (SELECT seq FROM nodes WHERE seq > $1 ORDER BY seq LIMIT $2) AS part`;
  const range = ({ last }: Row): NodeRange | null => (last == null ? null : { after, last: Number(last) });
  return always(sql, [after, limit], range, ["nodes"]);
}

/** After a position in the order (keyset pagination). */
export function rankedNodes(
  order: NodeRank,
  state: NodeState | null,
  range: NodeRange,
  after: Pick<RankedNode, "rank" | "nodeId">,
  limit: number,
): Query<readonly RankedNode[]> {
  const sql = `
    SELECT ${RANK_COLUMNS}, CAST(rank AS TEXT) AS rank
    FROM (SELECT ${RANK_COLUMNS}, CAST(${RANKS[order]} AS BIGINT) AS rank FROM nodes WHERE seq > $1 AND seq <= $2) AS part
    WHERE deleted = 0 ${state === null ? "" : `AND ${NODE_STATES[state]}`}
      AND (part.rank < $3 OR (part.rank = $3 AND node_id > $4))
    ORDER BY part.rank DESC, node_id LIMIT $5`;
  const params = [range.after, range.last, after.rank, after.nodeId, limit];
  return many(sql, params, toRankedNode, ["nodes"]);
}

/** Unordered; without deleted ones. */
export function nodesBySeq(seqs: readonly number[]): Query<readonly Node[]> {
  const filled = padded(seqs);
  const sql = `SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE deleted = 0 AND seq IN (${placeholders(filled)})`;
  return many(sql, filled, toNode, NODES_READ);
}

export function nodesCount(): Query<number> {
  return count(`SELECT (SELECT count(*) FROM nodes) - (${DELETED_NODES}) AS n`, [], ["nodes"]);
}

export function deletedNodesCount(): Query<number> {
  return count(DELETED_NODES, [], ["nodes"]);
}

const DELETED_NODES = `SELECT count(*) AS n FROM nodes WHERE deleted = 1`;

/** Ordered by id. */
export type NodePart = { readonly online: readonly string[]; readonly next: string | null };

/**
 * Reads `limit` nodes after an id ("" is before all). Ordered by id, because a broadcast writes to indexes by node:
 * each of its steps then writes to few of their pages. `taking`: `online` has only those that take this type of tasks.
 */
export function nodePart(after: string, limit: number, taking: string | null = null): Query<NodePart> {
  const columns = taking === null ? "node_id, online" : "node_id, online, capabilities";
  const sql = `SELECT ${columns} FROM nodes WHERE node_id > $1 ORDER BY node_id LIMIT $2`;
  const isMeant = (row: Row): boolean =>
    row["online"] === 1 &&
    (taking === null || fits({ capabilities: capabilitiesOf(row) }, { taskType: taking }));
  const shape = (rows: readonly Row[]): NodePart => ({
    online: rows.filter(isMeant).map((row) => String(row["node_id"])),
    next: rows.length < limit ? null : String(rows.at(-1)?.["node_id"]),
  });
  return query(sql, [after, limit], shape, ["nodes"]);
}

const HAS_NODES = byKey(
  ["bigint"],
  `SELECT CASE WHEN (SELECT coalesce(max(seq), 0) FROM nodes) < $1 THEN 0
    ELSE (SELECT count(*) FROM nodes) - (${DELETED_NODES}) END AS n`,
);

/**
 * The newest number is an upper bound that costs nothing, so only a hub near its limit, or with many deleted nodes,
 * counts its nodes.
 */
export function hasNodes(limit: number): Query<boolean> {
  return always(HAS_NODES, [limit], ({ n }) => Number(n) >= limit, [keyOf.registrations]);
}

export function expiredNodes(steady: number, limit: number): Query<readonly Node[]> {
  const sql = `
    SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE online = 1 AND lease_until <= $1 ORDER BY lease_until, node_id LIMIT $2`;
  return many(sql, [steady, limit], toNode, NODES_READ);
}

/** By the steady clock; null when none runs. */
export function nextLeaseEnd(steady: number): Query<number | null> {
  const sql = `SELECT min(lease_until) AS at FROM ${NODES} WHERE online = 1 AND lease_until > $1`;
  return one(sql, [steady], ({ at }) => (at == null ? null : Number(at)), NODES_READ);
}

export function topNodes(limit: number): Query<readonly Node[]> {
  const sql = `
    SELECT ${NODE_COLUMNS} FROM ${NODES} WHERE tasks_completed > 0 AND deleted = 0
    ORDER BY tasks_completed DESC, nodes.lux_earned_micro DESC, node_id LIMIT $1`;
  return many(sql, [limit], toNode, NODES_READ);
}

type OfNode = { readonly nodeId: string };
const ofNode = ({ nodeId }: OfNode): ConflictKey => keyOf.node(nodeId);
const NODE_ID = NODE_TABLE.set((change: OfNode) => change, "node_id");
/** 0, which the table refuses, when there is no such node; for a NULL, SQLite would generate a number. */
const NODE_SEQ: Columns<OfNode> = {
  seq: text(
    ({ nodeId }) => nodeId,
    (nodeId) => `coalesce((SELECT seq FROM nodes WHERE node_id = ${nodeId}), 0)`,
  ),
};

export const NODE_WRITES = {
  "node.saved": {
    cache: evict,
    row: ({ node }) => ofNode(node),
    keys: ({ node }) => [keyOf.registration(node.nodeId)],
    statement: upsert(
      "nodes",
      NODE_TABLE.set(({ node }) => node, "node_id"),
      {
        ...NODE_TABLE.set(
          ({ node }) => node,
          ...(["name", "host", "port", "capabilities", "resources", "variant", "max_tasks"] as const),
          ...(["auto_assign", "registered_at"] as const),
        ),
        online: "1",
        deleted: "0",
      },
      {
        ...NODE_TABLE.set(({ node }) => node, "idle_since"),
        tasks_assigned: "0",
        tasks_completed: "0",
        lux_earned_micro: "0",
      },
    ),
  },
  "node.beaten": {
    cache: (rows, change) => rows.patchNode(change),
    row: ofNode,
    statement: upsert("beats", NODE_SEQ, {
      last_heartbeat_at: whole(({ lastHeartbeatAt }) => lastHeartbeatAt),
      lease_until: whole(({ leaseUntil }) => leaseUntil),
    }),
    sum: (_, later) => later,
  },
  "node.returned": { cache: evict, row: ofNode, statement: update("nodes", NODE_ID, { online: "1" }) },
  "node.offline": { cache: evict, row: ofNode, statement: update("nodes", NODE_ID, { online: "0" }) },
  "node.drained": {
    cache: evict,
    row: ofNode,
    statement: update("nodes", NODE_ID, { draining: flag(({ draining }) => draining) }),
  },
  "node.leased": {
    cache: evict,
    row: ofNode,
    statement: update("nodes", NODE_ID, { has_leases: flag(({ hasLeases }) => hasLeases) }),
  },
  "node.deleted": {
    cache: evict,
    row: ofNode,
    keys: ({ nodeId }) => [keyOf.registration(nodeId), keyOf.registrations],
    statement: update("nodes", NODE_ID, { online: "0", draining: "0", deleted: "1" }),
  },
  "node.tallied": {
    cache: (rows, change) => rows.patchNode(change),
    row: ofNode,
    statement: update("nodes", NODE_ID, {
      tasks_assigned: whole(({ assigned }) => assigned, added),
      tasks_completed: whole(({ completed }) => completed, added),
      lux_earned_micro: whole(({ luxEarnedMicro }) => luxEarnedMicro, added),
      entries: whole(({ entries }) => entries, added),
      balance_micro: whole(({ balanceMicro }) => balanceMicro, added),
      idle_since: whole(({ idleSince }) => idleSince),
    }),
    sum: (earlier, later) => {
      const sum = {
        ...later,
        assigned: earlier.assigned + later.assigned,
        completed: earlier.completed + later.completed,
        luxEarnedMicro: earlier.luxEarnedMicro + later.luxEarnedMicro,
        entries: earlier.entries + later.entries,
        balanceMicro: earlier.balanceMicro + later.balanceMicro,
      };
      return Number.isSafeInteger(sum.balanceMicro) ? sum : null;
    },
  },
  "node.leases.renewed": {
    cache: evict,
    isSweep: true,
    statement: customStatement(
      "beats",
      `UPDATE beats SET lease_until = $1 WHERE seq IN (SELECT seq FROM nodes WHERE online = 1 AND variant = $2)`,
      [whole(({ leaseUntil }) => leaseUntil), text(({ variant }) => variant)],
    ),
  },
} satisfies Partial<Writes>;

export const NODE_FACTS: readonly Fact[] = [
  {
    name: "nodes",
    holds: "every node's totals are those of its tasks and payments, or more for completed tasks (retention)",
    sql: `
      SELECT 'node ' || n.node_id || ': its totals differ from its tasks and payments' FROM nodes n
      LEFT JOIN (
        SELECT assigned_node, sum(status = 'assigned') AS held, sum(status = 'completed') AS done
        FROM task_rows WHERE assigned_node IS NOT NULL GROUP BY assigned_node) t ON t.assigned_node = n.node_id
      LEFT JOIN (
        SELECT node_id, sum(amount_micro) AS earned FROM ledger
        WHERE kind = 'reward' GROUP BY node_id) l ON l.node_id = n.node_id
      WHERE n.tasks_assigned <> coalesce(t.held, 0) OR n.tasks_completed < coalesce(t.done, 0)
        OR n.lux_earned_micro <> coalesce(l.earned, 0) LIMIT ${SHOWN}`,
  },
  {
    name: "beats",
    holds: "every node has a last heartbeat, every last heartbeat has a node, no deleted node is online",
    sql: `
      SELECT 'node ' || node_id || ' has no last heartbeat' FROM nodes WHERE seq NOT IN (SELECT seq FROM beats)
      UNION ALL
      SELECT 'the last heartbeat ' || seq || ' has no node' FROM beats
      WHERE seq NOT IN (SELECT seq FROM nodes)
      UNION ALL
      SELECT 'node ' || node_id || ' is deleted but online' FROM nodes WHERE deleted = 1 AND online = 1
      LIMIT ${SHOWN}`,
  },
];
