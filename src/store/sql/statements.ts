/**
 * The writes: each change of domain/change.ts is one statement, in the SQL that SQLite 3.35+ and PostgreSQL 15+
 * share. Parameters are $1, $2, …
 */
import type { Change } from "../../domain/change.ts";
import type { LedgerEntry } from "../../domain/model.ts";
import { encodeCapabilities } from "./rows.ts";
import {
  PRUNE_ANSWERS,
  PRUNE_BROADCASTS,
  PRUNE_BROADCAST_COUNTS,
  PRUNE_DELIVERIES,
  PRUNE_EVENTS,
  PRUNE_MESSAGES,
} from "./retention.ts";
import type { Param } from "../store.ts";

export type Statement = { readonly sql: string; readonly params: readonly Param[] };

const flag = (value: boolean): number => (value ? 1 : 0);

const SAVE_NODE = `
  INSERT INTO nodes (node_id, name, host, port, capabilities, variant, max_tasks, online, registered_at,
    tasks_assigned, tasks_completed, lux_earned_micro, idle_since)
  VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, 0, 0, 0, $9)
  ON CONFLICT (node_id) DO UPDATE SET name = excluded.name, host = excluded.host, port = excluded.port,
    capabilities = excluded.capabilities, variant = excluded.variant, max_tasks = excluded.max_tasks, online = 1`;

// The first one is its node's registration. Of no node: 0, which the table refuses; SQLite would number a NULL itself.
const BEAT_NODE = `
  INSERT INTO beats (seq, last_heartbeat_at, lease_until)
  VALUES (coalesce((SELECT seq FROM nodes WHERE node_id = $1), 0), $2, $3)
  ON CONFLICT (seq) DO UPDATE SET last_heartbeat_at = excluded.last_heartbeat_at, lease_until = excluded.lease_until`;

const TALLY_NODE = `
  UPDATE nodes SET tasks_assigned = tasks_assigned + $2, tasks_completed = tasks_completed + $3,
    lux_earned_micro = lux_earned_micro + $4, entries = entries + $5, balance_micro = balance_micro + $6,
    idle_since = $7
  WHERE node_id = $1`;

const CREATE_TASK = `
  INSERT INTO tasks (task_id, title, description, task_type, priority, creator_node, status, lux_reward_micro,
    assigned_node, balanced, attempts, created_at, updated_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`;

const MOVE_TASK = `
  UPDATE tasks SET status = $2, assigned_node = $3, revoked_from = $4, attempts = $5, updated_at = $6
  WHERE task_id = $1`;

// Apart from MOVE_TASK so that the texts are written once in a task's life.
const COMPLETE_TASK = `
  UPDATE tasks SET status = $2, assigned_node = $3, updated_at = $4, problem = $5, improvement = $6, lesson = $7
  WHERE task_id = $1`;

const TALLY_TASKS = `
  UPDATE task_totals SET open = open + $1, assigned = assigned + $2, completed = completed + $3 WHERE one = 1`;

const ENTER_LUX = `
  INSERT INTO ledger (entry_id, node_id, n, amount_micro, balance_micro, kind, task_id, at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`;

const STORE_MESSAGE = `
  INSERT INTO messages (message_id, from_node, to_node, type, content, require_ack, sent_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7)`;

const QUEUE_DELIVERY = `
  INSERT INTO deliveries (seq, to_node, state, deliveries, broadcast)
  VALUES ((SELECT seq FROM messages WHERE message_id = $1), $2, 'waiting', 0, $3)`;

const MOVE_DELIVERY = `
  UPDATE deliveries SET state = $3, deliveries = $4, lease_until = $5 WHERE seq = $1 AND to_node = $2`;

const SAVE_BROADCAST = `
  INSERT INTO broadcasts (seq, write_until, waiting, delivered, acked)
  VALUES ((SELECT seq FROM messages WHERE message_id = $1), $2, $3, 0, 0)
  ON CONFLICT (seq) DO UPDATE SET write_until = excluded.write_until, waiting = excluded.waiting`;

const TALLY_BROADCAST = `
  UPDATE broadcasts SET waiting = waiting + $2, delivered = delivered + $3, acked = acked + $4 WHERE seq = $1`;

const TRIM_BROADCAST = `
  DELETE FROM deliveries WHERE (seq, to_node) IN (
    SELECT seq, to_node FROM deliveries WHERE seq = $1 ORDER BY to_node LIMIT $2)`;

const SAVE_FILE = `
  INSERT INTO files (file_id, name, size_bytes, sha256, content_type, metadata, node_id, task_id, uploaded_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`;

const LOG_EVENT = `INSERT INTO events (at, kind, node_id, task_id, data) VALUES ($1, $2, $3, $4, $5)`;

const STORE_ANSWER = `
  INSERT INTO answers (scope, body_hash, status, body, stored_at) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (scope) DO UPDATE SET body_hash = excluded.body_hash, status = excluded.status,
    body = excluded.body, stored_at = excluded.stored_at`; // one past its time may not be swept away yet

const SAVE_KEY = `
  INSERT INTO keys (key_id, role, hash, variant, node_id, created_at, expires_at, revoked_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
  ON CONFLICT (key_id) DO UPDATE SET hash = excluded.hash, variant = excluded.variant,
    node_id = excluded.node_id, expires_at = excluded.expires_at, revoked_at = excluded.revoked_at`;

const RENEW_NODES = `
  UPDATE beats SET lease_until = $2 WHERE seq IN (SELECT seq FROM nodes WHERE online = 1 AND variant = $1)`;
const SHIFT_ANSWERS = `UPDATE answers SET stored_at = stored_at + $3 WHERE stored_at > $1 AND stored_at <= $2`;
const RENEW_DELIVERIES = `UPDATE deliveries SET lease_until = $1 WHERE state = 'leased'`;

/** The statement that writes a change. */
export function statementOf(change: Change): Statement {
  switch (change.kind) {
    case "node.saved": {
      const n = change.node;
      const capabilities = encodeCapabilities(n.capabilities);
      const params = [n.nodeId, n.name, n.host, n.port, capabilities, n.variant, n.maxTasks, n.registeredAt];
      return { sql: SAVE_NODE, params: [...params, n.idleSince] };
    }
    case "node.beaten":
      return { sql: BEAT_NODE, params: [change.nodeId, change.lastHeartbeatAt, change.leaseUntil] };
    case "node.returned":
      return { sql: `UPDATE nodes SET online = 1 WHERE node_id = $1`, params: [change.nodeId] };
    case "node.offline":
      return { sql: `UPDATE nodes SET online = 0 WHERE node_id = $1`, params: [change.nodeId] };
    case "node.tallied":
      return nodeTallied(change);
    case "task.created":
      return taskCreated(change.task);
    case "task.moved":
      return taskMoved(change.task);
    case "task.deleted":
      return { sql: `DELETE FROM tasks WHERE task_id = $1`, params: [change.taskId] };
    case "tasks.tallied":
      return { sql: TALLY_TASKS, params: [change.open, change.assigned, change.completed] };
    case "lux.entered":
      return luxEntered(change.entry);
    case "event.logged": {
      const { at, kind, nodeId, taskId, data } = change.event;
      return { sql: LOG_EVENT, params: [at, kind, nodeId, taskId, JSON.stringify(data)] };
    }
    case "answer.stored": {
      const { scope, asked, status, body, storedAt } = change.answer;
      return { sql: STORE_ANSWER, params: [scope, asked, status, body, storedAt] };
    }
    case "file.saved": {
      const f = change.file;
      const params = [f.fileId, f.name, f.sizeBytes, f.sha256, f.contentType, f.metadata];
      return { sql: SAVE_FILE, params: [...params, f.nodeId, f.taskId, f.uploadedAt] };
    }
    case "file.deleted":
      return { sql: `DELETE FROM files WHERE file_id = $1`, params: [change.fileId] };
    case "key.saved": {
      const k = change.key;
      const params = [k.keyId, k.role, k.hash, k.variant, k.nodeId];
      return { sql: SAVE_KEY, params: [...params, k.createdAt, k.expiresAt, k.revokedAt] };
    }
    case "message.stored":
    case "message.removed":
    case "delivery.queued":
    case "delivery.moved":
    case "broadcast.saved":
    case "broadcast.tallied":
    case "broadcast.trimmed":
    case "broadcast.removed":
      return mailStatement(change);
    default:
      return periodicStatement(change);
  }
}

function nodeTallied(tally: Extract<Change, { kind: "node.tallied" }>): Statement {
  const { nodeId, assigned, completed, luxEarnedMicro, entries, balanceMicro, idleSince } = tally;
  const params = [nodeId, assigned, completed, luxEarnedMicro, entries, balanceMicro, idleSince];
  return { sql: TALLY_NODE, params };
}

function luxEntered(e: LedgerEntry): Statement {
  const params = [e.id, e.nodeId, e.n, e.amountMicro, e.balanceMicro, e.kind, e.taskId, e.at];
  return { sql: ENTER_LUX, params };
}

type MailChange = Extract<
  Change,
  {
    kind:
      | "message.stored"
      | "message.removed"
      | "delivery.queued"
      | "delivery.moved"
      | "broadcast.saved"
      | "broadcast.tallied"
      | "broadcast.trimmed"
      | "broadcast.removed";
  }
>;

function mailStatement(change: MailChange): Statement {
  switch (change.kind) {
    case "message.stored": {
      const m = change.message;
      const params = [m.messageId, m.fromNode, m.toNode, m.type, m.content, flag(m.requireAck), m.sentAt];
      return { sql: STORE_MESSAGE, params };
    }
    case "delivery.queued":
      return { sql: QUEUE_DELIVERY, params: [change.messageId, change.toNode, flag(change.broadcast)] };
    case "delivery.moved": {
      const { seq, toNode, state, deliveries, leaseUntil } = change;
      return { sql: MOVE_DELIVERY, params: [seq, toNode, state, deliveries, leaseUntil] };
    }
    case "message.removed":
      return { sql: `DELETE FROM messages WHERE message_id = $1`, params: [change.messageId] };
    case "broadcast.saved":
      return { sql: SAVE_BROADCAST, params: [change.messageId, change.writeUntil, change.waiting] };
    case "broadcast.tallied": {
      const { seq, waiting, delivered, acked } = change;
      return { sql: TALLY_BROADCAST, params: [seq, waiting, delivered, acked] };
    }
    case "broadcast.trimmed":
      return { sql: TRIM_BROADCAST, params: [change.seq, change.limit] };
    case "broadcast.removed":
      return { sql: `DELETE FROM broadcasts WHERE seq = $1`, params: [change.seq] };
  }
}

type PeriodicChange = Extract<
  Change,
  {
    kind:
      | "node.leases.renewed"
      | "delivery.leases.renewed"
      | "broadcasts.abandoned"
      | "messages.pruned"
      | "broadcasts.pruned"
      | "deliveries.pruned"
      | "events.pruned"
      | "answers.pruned"
      | "answers.shifted";
  }
>;

function periodicStatement(change: PeriodicChange): Statement {
  switch (change.kind) {
    case "node.leases.renewed":
      return { sql: RENEW_NODES, params: [change.variant, change.leaseUntil] };
    case "delivery.leases.renewed":
      return { sql: RENEW_DELIVERIES, params: [change.leaseUntil] };
    case "broadcasts.abandoned":
      return { sql: `UPDATE broadcasts SET write_until = 0 WHERE write_until IS NOT NULL`, params: [] };
    case "broadcasts.pruned":
      return { sql: PRUNE_BROADCAST_COUNTS, params: [change.before, change.limit, change.now] };
    case "deliveries.pruned":
      return {
        sql: change.broadcast ? PRUNE_BROADCASTS : PRUNE_DELIVERIES,
        params: [change.before, change.limit, change.now],
      };
    case "messages.pruned":
      return { sql: PRUNE_MESSAGES, params: [change.before, change.limit, change.now] };
    case "events.pruned":
      return { sql: PRUNE_EVENTS, params: [change.before, change.limit, change.now] };
    case "answers.pruned":
      return { sql: PRUNE_ANSWERS, params: [change.before, change.limit] };
    case "answers.shifted":
      return { sql: SHIFT_ANSWERS, params: [change.after, change.upTo, change.movedMs] };
  }
}

function taskCreated(t: Extract<Change, { kind: "task.created" }>["task"]): Statement {
  const params = [t.taskId, t.title, t.description, t.taskType, t.priority, t.creatorNode, t.status];
  const rest = [t.luxRewardMicro, t.assignedNode, flag(t.balanced), t.attempts, t.createdAt, t.updatedAt];
  return { sql: CREATE_TASK, params: [...params, ...rest] };
}

function taskMoved(t: Extract<Change, { kind: "task.moved" }>["task"]): Statement {
  if (t.result) {
    const { problem, improvement, lesson } = t.result;
    const params = [t.taskId, t.status, t.assignedNode, t.updatedAt, problem, improvement, lesson];
    return { sql: COMPLETE_TASK, params };
  }
  const params = [t.taskId, t.status, t.assignedNode, t.revokedFrom, t.attempts, t.updatedAt];
  return { sql: MOVE_TASK, params };
}
