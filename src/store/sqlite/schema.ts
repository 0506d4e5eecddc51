/** The schema of SQLite. The database keeps its number in `PRAGMA user_version`. */
import { type Schema, addTraces, createTables } from "../sql/schema.ts";
import { CHANGE_TABLES, STANDING_TABLE } from "./change-log.ts";

/** In the text of the step, so that the step makes the same rows on a copy. */
const newIdentity = (): string => `'${crypto.getRandomValues(new Uint8Array(16)).toHex()}'`;

/** The bytes of each key's stored answers: the commit that stores one may delete the oldest. */
const ANSWER_TRIGGERS = `
  CREATE TRIGGER answers_entered AFTER INSERT ON answers BEGIN
    INSERT INTO answer_totals VALUES (NEW.key_id, NEW.bytes)
      ON CONFLICT (key_id) DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER answers_changed AFTER UPDATE OF bytes ON answers BEGIN
    UPDATE answer_totals SET bytes = bytes + NEW.bytes - OLD.bytes WHERE key_id = NEW.key_id;
  END;
  CREATE TRIGGER answers_left AFTER DELETE ON answers BEGIN
    UPDATE answer_totals SET bytes = bytes - OLD.bytes WHERE key_id = OLD.key_id;
  END;`;

const create = (): string =>
  createTables("sqlite", newIdentity()) + ANSWER_TRIGGERS + CHANGE_TABLES + STANDING_TABLE;

const TABLES_0_1_0 = [
  "nodes",
  "tasks",
  "ledger",
  "messages",
  "deliveries",
  "files",
  "events",
  "answers",
  "keys",
];

/** Makes the new tables beside those of 0.1.0, and copies the rows. */
const from010 = (): string => `
  DROP TABLE task_totals;
  DROP INDEX nodes_available; DROP INDEX nodes_stranded; DROP INDEX tasks_status; DROP INDEX tasks_pool;
  DROP INDEX tasks_pool_type; DROP INDEX ledger_signin; DROP INDEX messages_from; DROP INDEX deliveries_waiting;
  DROP INDEX deliveries_lease; DROP INDEX files_task; DROP INDEX events_kind; DROP INDEX answers_age;
  ${TABLES_0_1_0.map((table) => `ALTER TABLE ${table} RENAME TO old_${table};`).join("\n  ")}
  ${create()}
  INSERT INTO ledger (seq, entry_id, node_id, n, amount_micro, balance_micro, kind, task_id, at)
    SELECT row_number() OVER (ORDER BY entry_id), entry_id, node_id, n, amount_micro, balance_micro, kind, task_id, at
    FROM old_ledger ORDER BY entry_id;
  INSERT INTO nodes (node_id, name, host, port, capabilities, variant, max_tasks, online, registered_at, tasks_assigned,
      tasks_completed, lux_earned_micro, idle_since, auto_assign, entries, balance_micro)
    SELECT n.node_id, name, host, port, capabilities, variant, max_tasks, online, registered_at, tasks_assigned,
      tasks_completed, lux_earned_micro, idle_since, variant <> 'A', coalesce(l.n, 0), coalesce(l.balance_micro, 0)
    FROM old_nodes n LEFT JOIN (SELECT node_id, max(n) AS n, balance_micro FROM ledger GROUP BY node_id) l
      ON l.node_id = n.node_id
    ORDER BY registered_at, n.node_id;
  INSERT INTO beats SELECT seq, last_heartbeat_at, lease_until FROM nodes JOIN old_nodes USING (node_id) ORDER BY seq;
  INSERT INTO tasks (seq, task_id, title, task_type, priority, creator_node, creator_verified, status, lux_reward_micro,
      assigned_node, balanced, revoked_from, attempts, failures, restarts, epoch, unmet, ready, paid_seq, created_at,
      updated_at)
    SELECT t.seq, t.task_id, title, task_type, priority, creator_node, 0, status, lux_reward_micro, assigned_node,
      balanced, revoked_from, attempts, 0, 0, 0, 0, CASE WHEN status = 'open' THEN 1 END, l.seq, created_at, updated_at
    FROM old_tasks t LEFT JOIN ledger l ON l.kind = 'reward' AND l.task_id = t.task_id;
  INSERT INTO task_specs (task_seq, backoff_ms, description) SELECT seq, 5000, description FROM old_tasks;
  INSERT INTO task_results (task_seq, problem, improvement, lesson)
    SELECT seq, problem, improvement, lesson FROM old_tasks WHERE problem IS NOT NULL;
  UPDATE task_totals SET (open, assigned, completed) = (
    SELECT count(*) FILTER (WHERE status = 'open'), count(*) FILTER (WHERE status = 'assigned'),
      count(*) FILTER (WHERE status = 'completed')
    FROM old_tasks);
  INSERT INTO messages (seq, message_id, from_node, to_node, type, content, require_ack, sent_at)
    SELECT seq, message_id, from_node, to_node, type, content, require_ack, sent_at FROM old_messages;
  INSERT INTO deliveries (seq, to_node, state, deliveries, lease_until, broadcast)
    SELECT seq, to_node, state, deliveries, lease_until, broadcast FROM old_deliveries ORDER BY seq, to_node;
  INSERT INTO broadcasts (seq, waiting, delivered, acked)
    SELECT m.seq, coalesce(sum(state = 'waiting'), 0), coalesce(sum(state = 'gone'), 0), coalesce(sum(state = 'acked'), 0)
    FROM messages m LEFT JOIN deliveries d ON d.seq = m.seq WHERE m.to_node IS NULL GROUP BY m.seq;
  INSERT INTO files (seq, file_id, name, size_bytes, sha256, content_type, metadata, node_id, task_id, uploaded_at, output)
    SELECT seq, file_id, name, size_bytes, sha256, content_type, metadata, node_id, task_id, uploaded_at,
      coalesce(node_id = (SELECT assigned_node FROM tasks t WHERE t.task_id = f.task_id), 0) FROM old_files f;
  UPDATE file_totals SET (files, bytes) = (SELECT count(*), coalesce(sum(size_bytes), 0) FROM files);
  INSERT INTO events (id, at, kind, node_id, task_id, data) SELECT id, at, kind, node_id, task_id, data FROM old_events;
  INSERT INTO answers (scope, key_id, body_hash, status, stored_at, bytes, body)
    SELECT scope, substr(scope, 1, instr(scope, ' ') - 1), body_hash, status, stored_at,
      octet_length(scope) + octet_length(body), body FROM old_answers;
  INSERT INTO keys (key_id, role, hash, variant, node_id, created_at, expires_at, revoked_at)
    SELECT key_id, role, hash, variant, node_id, created_at, expires_at, revoked_at FROM old_keys;
  ${TABLES_0_1_0.map((table) => `DROP TABLE old_${table};`).join("\n  ")}`;

export const SQLITE_SCHEMA: Schema = {
  version: 58,
  create,
  steps: {
    1: from010,
    56: () => CHANGE_TABLES + STANDING_TABLE + addTraces(),
    57: () => `DROP TABLE changes; DROP TABLE change_texts;${CHANGE_TABLES}${STANDING_TABLE}`,
  },
};
