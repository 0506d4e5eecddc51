-- A store of luxhub 0.1.0 on SQLite.
CREATE TABLE nodes (
    node_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT,
    port INTEGER,
    capabilities TEXT NOT NULL,              -- ",coding,research,"; "" is none
    variant TEXT NOT NULL,
    max_tasks INTEGER,
    online INTEGER NOT NULL,
    registered_at INTEGER NOT NULL,
    last_heartbeat_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,            -- steady clock
    tasks_assigned INTEGER NOT NULL,         -- running totals, kept by domain/task.ts
    tasks_completed INTEGER NOT NULL,
    lux_earned_micro INTEGER NOT NULL,
    idle_since INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
CREATE INDEX nodes_available ON nodes (tasks_assigned, idle_since, node_id) WHERE online = 1;
CREATE INDEX nodes_lease ON nodes (lease_until) WHERE online = 1;
CREATE INDEX nodes_stranded ON nodes (node_id) WHERE online = 0 AND tasks_assigned > 0;
CREATE INDEX nodes_top ON nodes (tasks_completed DESC, lux_earned_micro DESC) WHERE tasks_completed > 0;
CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY,                 -- order of creation
    task_id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    task_type TEXT NOT NULL,
    priority INTEGER NOT NULL,
    creator_node TEXT,
    status TEXT NOT NULL,
    lux_reward_micro INTEGER NOT NULL,
    assigned_node TEXT,
    balanced INTEGER NOT NULL,
    revoked_from TEXT,
    attempts INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    problem TEXT,
    improvement TEXT,
    lesson TEXT
  ) STRICT;
CREATE INDEX tasks_status ON tasks (status);
CREATE INDEX tasks_held ON tasks (assigned_node) WHERE status = 'assigned';
CREATE INDEX tasks_done ON tasks (assigned_node) WHERE status = 'completed';
CREATE INDEX tasks_pool ON tasks (balanced, priority) WHERE status = 'open';
CREATE INDEX tasks_pool_type ON tasks (balanced, task_type, priority) WHERE status = 'open';
CREATE TABLE task_totals (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    open INTEGER NOT NULL,
    assigned INTEGER NOT NULL,
    completed INTEGER NOT NULL
  ) STRICT;
CREATE TABLE ledger (
    node_id TEXT NOT NULL,
    n INTEGER NOT NULL,                      -- 1, 2, 3, … of the node: no gap, none twice
    entry_id TEXT NOT NULL,
    amount_micro INTEGER NOT NULL,
    balance_micro INTEGER NOT NULL,          -- the sum of the node's entries up to this one
    kind TEXT NOT NULL,
    task_id TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (node_id, n)
  ) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX ledger_signin ON ledger (node_id, (at / 86400000)) WHERE kind = 'signin';
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY,                 -- order of arrival
    message_id TEXT NOT NULL UNIQUE,
    from_node TEXT NOT NULL,
    to_node TEXT,                            -- NULL: a broadcast
    type TEXT NOT NULL,
    content TEXT NOT NULL,
    require_ack INTEGER NOT NULL,
    sent_at INTEGER NOT NULL
  ) STRICT;
CREATE INDEX messages_from ON messages (from_node);
CREATE TABLE deliveries (
    seq INTEGER NOT NULL,                    -- of the message
    to_node TEXT NOT NULL,
    state TEXT NOT NULL,
    deliveries INTEGER NOT NULL,
    lease_until INTEGER,                     -- steady clock; only while leased
    broadcast INTEGER NOT NULL,
    PRIMARY KEY (to_node, seq)               -- message/history of what a node got
  ) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_broadcast ON deliveries (seq) WHERE broadcast = 1;
CREATE INDEX deliveries_waiting ON deliveries (to_node, seq) WHERE state = 'waiting';
CREATE INDEX deliveries_lease ON deliveries (lease_until) WHERE state = 'leased';
CREATE TABLE files (
    seq INTEGER PRIMARY KEY,
    file_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    content_type TEXT NOT NULL,
    metadata TEXT NOT NULL,
    node_id TEXT,
    task_id TEXT,
    uploaded_at INTEGER NOT NULL
  ) STRICT;
CREATE INDEX files_task ON files (task_id) WHERE task_id IS NOT NULL;
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    node_id TEXT,
    task_id TEXT,
    data TEXT NOT NULL
  ) STRICT;
CREATE INDEX events_kind ON events (kind);
CREATE TABLE answers (
    scope TEXT PRIMARY KEY,
    body_hash TEXT NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    stored_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
CREATE INDEX answers_age ON answers (stored_at);
CREATE TABLE keys (
    key_id TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    variant TEXT,
    node_id TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
  ) STRICT, WITHOUT ROWID;
INSERT INTO nodes VALUES ('a', 'Node a', 'h', 7, ',coding,research,', 'A', NULL, 1, 1795906834696, 1795906834696, 1795907014696, 0, 2, 3500000, 1795906834845);
INSERT INTO nodes VALUES ('b', 'Node b', 'h', 7, ',coding,research,', 'A', NULL, 1, 1795906834720, 1795906834720, 1795907014719, 1, 0, 0, 1795906834908);
INSERT INTO nodes VALUES ('c', 'Node c', NULL, NULL, ',coding,', 'B', 3, 1, 1795906834725, 1795906834725, 1795906924724, 1, 0, 0, 1795906834912);
INSERT INTO tasks VALUES (1, '01a22463-915e-7271-913c-49fd948f6f8c', 'A task', 'Do it.', 'coding', 1, 'b', 'completed', 1500000, 'a', 0, NULL, 0, 1795906834782, 1795906834819, 'p', 'i', 'l');
INSERT INTO tasks VALUES (2, '01a22463-9189-759b-8f94-8fe7ed432372', 'A task', 'Do it.', '', 0, NULL, 'completed', 2000000, 'a', 0, NULL, 0, 1795906834825, 1795906834845, 'p', 'i', 'l');
INSERT INTO tasks VALUES (3, '01a22463-91ab-769f-bb98-a82f903a4e61', 'open', 'Do it.', '', 2, NULL, 'open', 0, NULL, 0, NULL, 0, 1795906834859, 1795906834859, NULL, NULL, NULL);
INSERT INTO tasks VALUES (4, '01a22463-91c6-7483-8275-e3d9598c4595', 'held', 'Do it.', '', 1, NULL, 'assigned', 0, 'b', 0, NULL, 0, 1795906834886, 1795906834894, NULL, NULL, NULL);
INSERT INTO tasks VALUES (5, '01a22463-91d3-7728-ade2-09564ccde8fd', 'revoked', 'Do it.', '', 1, NULL, 'open', 0, NULL, 0, 'b', 0, 1795906834899, 1795906834908, NULL, NULL, NULL);
INSERT INTO tasks VALUES (6, '01a22463-91e0-7180-a354-34773593e02f', 'balanced', 'Do it.', 'coding', 1, NULL, 'assigned', 0, 'c', 1, NULL, 0, 1795906834912, 1795906834912, NULL, NULL, NULL);
INSERT INTO tasks VALUES (7, '01a22463-91e3-726a-9488-42ce9ee03ec6', 'repeated', 'Do it.', '', 1, NULL, 'open', 0, NULL, 0, NULL, 0, 1795906834915, 1795906834915, NULL, NULL, NULL);
INSERT INTO task_totals VALUES (1, 3, 2, 2);
INSERT INTO ledger VALUES ('a', 1, '01a22463-914b-7265-94d8-c773860d4940', 10000000, 10000000, 'signin', NULL, 1795906834763);
INSERT INTO ledger VALUES ('a', 2, '01a22463-9183-73a7-b2c1-00bf06280c33', 1500000, 11500000, 'reward', '01a22463-915e-7271-913c-49fd948f6f8c', 1795906834819);
INSERT INTO ledger VALUES ('a', 3, '01a22463-919d-7262-bf36-106916d5d483', 2000000, 13500000, 'reward', '01a22463-9189-759b-8f94-8fe7ed432372', 1795906834845);
INSERT INTO messages VALUES (1, '01a22463-91e8-76ef-9fd2-a331de0a5cab', 'a', 'b', 'text', 'hello', 1, 1795906834920);
INSERT INTO messages VALUES (2, '01a22463-91eb-725b-909c-59d37c3765a4', 'a', 'b', 'text', 'waiting', 0, 1795906834923);
INSERT INTO messages VALUES (3, '01a22463-91f3-757c-9ac5-bd39ee303014', 'a', NULL, 'broadcast', 'to all', 0, 1795906834931);
INSERT INTO deliveries VALUES (1, 'b', 'leased', 1, 1795906864926, 0);
INSERT INTO deliveries VALUES (2, 'b', 'waiting', 0, NULL, 0);
INSERT INTO deliveries VALUES (3, 'b', 'waiting', 0, NULL, 1);
INSERT INTO deliveries VALUES (3, 'c', 'waiting', 0, NULL, 1);
INSERT INTO files VALUES (1, '01a22463-9214-7264-9ab8-5714230723c3', 'f.txt', 10, '0d22cdcc10e6d049dbe1af5123d50873fdfc1a4f58306e58cb6241be9472014d', 'text/plain;charset=utf-8', '{"node":"b","task_id":"01a22463-91c6-7483-8275-e3d9598c4595"}', 'b', '01a22463-91c6-7483-8275-e3d9598c4595', 1795906834980);
INSERT INTO files VALUES (2, '01a22463-9228-7695-a56d-ccc891eb698f', 'f.txt', 10, '0d22cdcc10e6d049dbe1af5123d50873fdfc1a4f58306e58cb6241be9472014d', 'text/plain;charset=utf-8', '{"task_id":"01a22463-91c6-7483-8275-e3d9598c4595"}', NULL, '01a22463-91c6-7483-8275-e3d9598c4595', 1795906834992);
INSERT INTO files VALUES (3, '01a22463-92b1-7686-9554-01034d268ed6', 'f.txt', 10, '0d22cdcc10e6d049dbe1af5123d50873fdfc1a4f58306e58cb6241be9472014d', 'text/plain;charset=utf-8', '{"node":"a"}', 'a', NULL, 1795906835132);
INSERT INTO events VALUES (1, 1795906834657, 'hub.started', NULL, NULL, '{"software":"luxhub 0.1.0"}');
INSERT INTO events VALUES (2, 1795906834696, 'node.registered', 'a', NULL, '{"name":"Node a"}');
INSERT INTO events VALUES (3, 1795906834696, 'node.online', 'a', NULL, '{"name":"Node a"}');
INSERT INTO events VALUES (4, 1795906834720, 'node.registered', 'b', NULL, '{"name":"Node b"}');
INSERT INTO events VALUES (5, 1795906834720, 'node.online', 'b', NULL, '{"name":"Node b"}');
INSERT INTO events VALUES (6, 1795906834725, 'node.registered', 'c', NULL, '{"name":"Node c"}');
INSERT INTO events VALUES (7, 1795906834725, 'node.online', 'c', NULL, '{"name":"Node c"}');
INSERT INTO events VALUES (8, 1795906834763, 'lux.signin', 'a', NULL, '{"amount":10}');
INSERT INTO events VALUES (9, 1795906834782, 'task.created', 'b', '01a22463-915e-7271-913c-49fd948f6f8c', '{"title":"A task"}');
INSERT INTO events VALUES (10, 1795906834799, 'task.assigned', 'a', '01a22463-915e-7271-913c-49fd948f6f8c', '{"by":"claim"}');
INSERT INTO events VALUES (11, 1795906834819, 'task.completed', 'a', '01a22463-915e-7271-913c-49fd948f6f8c', '{}');
INSERT INTO events VALUES (12, 1795906834819, 'lux.paid', 'a', '01a22463-915e-7271-913c-49fd948f6f8c', '{"amount":1.5}');
INSERT INTO events VALUES (13, 1795906834825, 'task.created', NULL, '01a22463-9189-759b-8f94-8fe7ed432372', '{"title":"A task"}');
INSERT INTO events VALUES (14, 1795906834833, 'task.assigned', 'a', '01a22463-9189-759b-8f94-8fe7ed432372', '{"by":"claim"}');
INSERT INTO events VALUES (15, 1795906834845, 'task.completed', 'a', '01a22463-9189-759b-8f94-8fe7ed432372', '{}');
INSERT INTO events VALUES (16, 1795906834845, 'lux.paid', 'a', '01a22463-9189-759b-8f94-8fe7ed432372', '{"amount":2}');
INSERT INTO events VALUES (17, 1795906834859, 'task.created', NULL, '01a22463-91ab-769f-bb98-a82f903a4e61', '{"title":"open"}');
INSERT INTO events VALUES (18, 1795906834886, 'task.created', NULL, '01a22463-91c6-7483-8275-e3d9598c4595', '{"title":"held"}');
INSERT INTO events VALUES (19, 1795906834894, 'task.assigned', 'b', '01a22463-91c6-7483-8275-e3d9598c4595', '{"by":"claim"}');
INSERT INTO events VALUES (20, 1795906834899, 'task.created', NULL, '01a22463-91d3-7728-ade2-09564ccde8fd', '{"title":"revoked"}');
INSERT INTO events VALUES (21, 1795906834902, 'task.assigned', 'b', '01a22463-91d3-7728-ade2-09564ccde8fd', '{"by":"claim"}');
INSERT INTO events VALUES (22, 1795906834908, 'task.revoked', 'b', '01a22463-91d3-7728-ade2-09564ccde8fd', '{"reason":null}');
INSERT INTO events VALUES (23, 1795906834912, 'task.created', NULL, '01a22463-91e0-7180-a354-34773593e02f', '{"title":"balanced"}');
INSERT INTO events VALUES (24, 1795906834912, 'task.assigned', 'c', '01a22463-91e0-7180-a354-34773593e02f', '{"by":"balancer"}');
INSERT INTO events VALUES (25, 1795906834915, 'task.created', NULL, '01a22463-91e3-726a-9488-42ce9ee03ec6', '{"title":"repeated"}');
INSERT INTO events VALUES (26, 1795906834920, 'message.sent', 'b', NULL, '{"message_id":"01a22463-91e8-76ef-9fd2-a331de0a5cab","from_node":"a","type":"text"}');
INSERT INTO events VALUES (27, 1795906834923, 'message.sent', 'b', NULL, '{"message_id":"01a22463-91eb-725b-909c-59d37c3765a4","from_node":"a","type":"text"}');
INSERT INTO events VALUES (28, 1795906834931, 'message.sent', 'b', NULL, '{"message_id":"01a22463-91f3-757c-9ac5-bd39ee303014","from_node":"a","type":"broadcast"}');
INSERT INTO events VALUES (29, 1795906834931, 'message.sent', 'c', NULL, '{"message_id":"01a22463-91f3-757c-9ac5-bd39ee303014","from_node":"a","type":"broadcast"}');
INSERT INTO events VALUES (30, 1795906834980, 'file.uploaded', 'b', '01a22463-91c6-7483-8275-e3d9598c4595', '{"file_id":"01a22463-9214-7264-9ab8-5714230723c3","name":"f.txt","size":10}');
INSERT INTO events VALUES (31, 1795906834992, 'file.uploaded', NULL, '01a22463-91c6-7483-8275-e3d9598c4595', '{"file_id":"01a22463-9228-7695-a56d-ccc891eb698f","name":"f.txt","size":10}');
INSERT INTO events VALUES (32, 1795906835132, 'file.uploaded', 'a', NULL, '{"file_id":"01a22463-92b1-7686-9554-01034d268ed6","name":"f.txt","size":10}');
INSERT INTO answers VALUES ('primary /api/v1/task/create k1', 'ea28041216af47fea630bd53808ce353403e3c0d61bfdc8dc1b072bcff1c5f8c', 200, '{"success":true,"task_id":"01a22463-91e3-726a-9488-42ce9ee03ec6","status":"open","assigned_node":null,"task":{"task_id":"01a22463-91e3-726a-9488-42ce9ee03ec6","title":"repeated","description":"Do it.","task_type":null,"priority":1,"creator_node":null,"status":"open","lux_reward":0,"assigned_node":null,"result":null,"attempts":0,"files":[],"created_at":"2026-11-28T23:00:34.915Z","updated_at":"2026-11-28T23:00:34.915Z"}}', 1795906834915);
INSERT INTO keys VALUES ('guest', 'secret', '628a5e387b44a9e7c10d49a4c25e48421579a6b33510ec7d6b0a4270c7615b85', NULL, NULL, 1795906835343, NULL, NULL);
PRAGMA user_version = 1;
