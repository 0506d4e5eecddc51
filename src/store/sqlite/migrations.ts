/**
 * The schema migrations of SQLite, forward only. Step n migrates a database from version n - 1 to n. A released step is
 * never edited.
 *
 * A comment says which query needs each index. The comments inside CREATE TABLE are part of the stored schema.
 */

/** The database keeps its version in `PRAGMA user_version`. */
export const SQLITE_MIGRATIONS: readonly string[] = [
  `
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
    tasks_assigned INTEGER NOT NULL,         -- running totals, kept by domain/task/totals.ts
    tasks_completed INTEGER NOT NULL,
    lux_earned_micro INTEGER NOT NULL,
    idle_since INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  -- the balancer's order
  CREATE INDEX nodes_available ON nodes (tasks_assigned, idle_since, node_id) WHERE online = 1;
  -- whose lease has run out
  CREATE INDEX nodes_lease ON nodes (lease_until) WHERE online = 1;
  -- who went offline with tasks
  CREATE INDEX nodes_stranded ON nodes (node_id) WHERE online = 0 AND tasks_assigned > 0;
  -- task/stats: top nodes
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
  -- task/list by status
  CREATE INDEX tasks_status ON tasks (status);
  -- what a node holds; apart from what it has done, which is much and all over the place
  CREATE INDEX tasks_held ON tasks (assigned_node) WHERE status = 'assigned';
  -- task/list by node: what it has done
  CREATE INDEX tasks_done ON tasks (assigned_node) WHERE status = 'completed';
  -- the pool, best first, for a node that takes every type
  CREATE INDEX tasks_pool ON tasks (balanced, priority) WHERE status = 'open';
  -- the pool, best first, for a node that takes some types
  CREATE INDEX tasks_pool_type ON tasks (balanced, task_type, priority) WHERE status = 'open';

  CREATE TABLE task_totals (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    open INTEGER NOT NULL,
    assigned INTEGER NOT NULL,
    completed INTEGER NOT NULL
  ) STRICT;
  INSERT INTO task_totals VALUES (1, 0, 0, 0);

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
  -- a day pays once: the rules see to it, and the store would not take it otherwise
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
  -- message/history of what a node sent
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
  -- the deliveries of a broadcast, when it is past its time; a message to one node names its recipient
  CREATE INDEX deliveries_broadcast ON deliveries (seq) WHERE broadcast = 1;
  -- a node's mailbox
  CREATE INDEX deliveries_waiting ON deliveries (to_node, seq) WHERE state = 'waiting';
  -- whose ACK is late
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
  -- the files of a task
  CREATE INDEX files_task ON files (task_id) WHERE task_id IS NOT NULL;

  CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    node_id TEXT,
    task_id TEXT,
    data TEXT NOT NULL
  ) STRICT;
  -- events of one kind; poll's task events
  CREATE INDEX events_kind ON events (kind);
  -- None by node_id: a stream is told the ids of its events when they are committed, and reads the log in order when
  -- it comes back. Such an index is a page to write for each event, wherever its node is in it.

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
  `,
  `
  -- In order of arrival, not by node: what is sent and received at one time lies together on few pages, however many
  -- nodes there are and however much each of them got.
  CREATE TABLE deliveries_by_arrival (
    seq INTEGER NOT NULL,                    -- of the message
    to_node TEXT NOT NULL,
    state TEXT NOT NULL,
    deliveries INTEGER NOT NULL,
    lease_until INTEGER,                     -- steady clock; only while leased
    broadcast INTEGER NOT NULL,
    PRIMARY KEY (seq, to_node)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO deliveries_by_arrival
    SELECT seq, to_node, state, deliveries, lease_until, broadcast FROM deliveries ORDER BY seq, to_node;
  DROP TABLE deliveries;
  ALTER TABLE deliveries_by_arrival RENAME TO deliveries;
  -- message/history of what a node got
  CREATE INDEX deliveries_got ON deliveries (to_node, seq);
  -- a node's mailbox
  CREATE INDEX deliveries_waiting ON deliveries (to_node, seq) WHERE state = 'waiting';
  -- whose ACK is late
  CREATE INDEX deliveries_lease ON deliveries (lease_until) WHERE state = 'leased';
  `,
  `
  -- Every heartbeat wrote to it. Whose lease has run out is asked only when one can have: the whole fleet is read then.
  DROP INDEX nodes_lease;
  `,
  `
  CREATE TABLE identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    database_id TEXT NOT NULL                -- tells this database from others that share a Redis with it
  ) STRICT;
  INSERT INTO identity VALUES (1, lower(hex(randomblob(16))));
  `,
  `
  -- What is entered for each payment and each completed task lies together on few pages, in order of arrival, and not
  -- wherever its node is in a list by node: of ten thousand nodes that would be a page to read and to write each.
  -- What finds the rows of a node stands in the node's own row, which every step of its tasks writes anyway.
  ALTER TABLE nodes ADD COLUMN last_entry TEXT;                          -- its newest in the ledger
  ALTER TABLE nodes ADD COLUMN entries INTEGER NOT NULL DEFAULT 0;       -- the n of that
  ALTER TABLE nodes ADD COLUMN balance_micro INTEGER NOT NULL DEFAULT 0; -- and its balance
  ALTER TABLE nodes ADD COLUMN unfiled TEXT NOT NULL DEFAULT '';         -- "12,15": completed, not in completions yet
  ALTER TABLE nodes ADD COLUMN held TEXT NOT NULL DEFAULT '';            -- "16,17": claimed, not listed
  ALTER TABLE tasks ADD COLUMN listed INTEGER NOT NULL DEFAULT 1;        -- 0: while it is assigned, its node names it
  UPDATE nodes SET (last_entry, entries, balance_micro) = (
    SELECT entry_id, n, balance_micro FROM ledger l WHERE l.node_id = nodes.node_id ORDER BY l.n DESC LIMIT 1)
    WHERE node_id IN (SELECT node_id FROM ledger);
  -- task/stats: the top nodes are kept in memory (service/top-nodes.ts)
  DROP INDEX nodes_top;

  -- what a node holds, but for what it has claimed lately
  DROP INDEX tasks_held;
  CREATE INDEX tasks_held ON tasks (assigned_node) WHERE status = 'assigned' AND listed = 1;

  -- task/list by node: what it has done, entered a number of tasks at a time
  CREATE TABLE completions (
    node_id TEXT NOT NULL,
    seq INTEGER NOT NULL,                    -- of the task
    PRIMARY KEY (node_id, seq)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO completions SELECT assigned_node, seq FROM tasks WHERE status = 'completed' ORDER BY assigned_node, seq;
  DROP INDEX tasks_done;

  CREATE TABLE ledger_by_arrival (
    entry_id TEXT PRIMARY KEY,               -- in order of arrival, as ids are made
    previous TEXT,                           -- the node's entry before this one: lux/ledger walks from one to the next
    node_id TEXT NOT NULL,
    n INTEGER NOT NULL,                      -- 1, 2, 3, … of the node: no gap, none twice
    amount_micro INTEGER NOT NULL,
    balance_micro INTEGER NOT NULL,          -- the sum of the node's entries up to this one
    kind TEXT NOT NULL,
    task_id TEXT,
    at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO ledger_by_arrival
    SELECT entry_id, lag(entry_id) OVER (PARTITION BY node_id ORDER BY n), node_id, n, amount_micro, balance_micro,
      kind, task_id, at
    FROM ledger ORDER BY entry_id;
  DROP TABLE ledger;
  ALTER TABLE ledger_by_arrival RENAME TO ledger;
  -- where a walk may begin, so that none is long: the first is the node's 64th
  CREATE UNIQUE INDEX ledger_marks ON ledger (node_id, n) WHERE n % 64 = 0;
  -- a day pays once: the rules see to it, and the store would not take it otherwise
  CREATE UNIQUE INDEX ledger_signin ON ledger (node_id, (at / 86400000)) WHERE kind = 'signin';
  `,
  `
  -- What every heartbeat writes is apart from what it does not, and short: 200 to a page by a number for a key, where of
  -- whole nodes there are 15. So 64 heartbeats of ten thousand nodes write to some 36 pages of 50, and not to 64 of 700.
  CREATE TABLE nodes_by_arrival (
    seq INTEGER PRIMARY KEY,                 -- order of registration
    node_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    host TEXT,
    port INTEGER,
    capabilities TEXT NOT NULL,              -- ",coding,research,"; "" is none
    variant TEXT NOT NULL,
    max_tasks INTEGER,
    online INTEGER NOT NULL,
    registered_at INTEGER NOT NULL,
    tasks_assigned INTEGER NOT NULL,         -- running totals, kept by domain/task/totals.ts
    tasks_completed INTEGER NOT NULL,
    lux_earned_micro INTEGER NOT NULL,
    idle_since INTEGER NOT NULL,
    last_entry TEXT,                         -- its newest in the ledger
    entries INTEGER NOT NULL DEFAULT 0,      -- the n of that
    balance_micro INTEGER NOT NULL DEFAULT 0, -- and its balance
    unfiled TEXT NOT NULL DEFAULT '',        -- "12,15": completed, not in completions yet
    held TEXT NOT NULL DEFAULT ''            -- "16,17": claimed, not listed
  ) STRICT;
  INSERT INTO nodes_by_arrival
    SELECT row_number() OVER (ORDER BY registered_at, node_id), node_id, name, host, port, capabilities, variant,
      max_tasks, online, registered_at, tasks_assigned, tasks_completed, lux_earned_micro, idle_since, last_entry,
      entries, balance_micro, unfiled, held
    FROM nodes;
  CREATE TABLE beats (
    seq INTEGER PRIMARY KEY CHECK (seq > 0), -- of the node
    last_heartbeat_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL             -- steady clock
  ) STRICT;
  INSERT INTO beats
    SELECT a.seq, n.last_heartbeat_at, n.lease_until
    FROM nodes_by_arrival a JOIN nodes n ON n.node_id = a.node_id ORDER BY a.seq;
  DROP TABLE nodes;
  ALTER TABLE nodes_by_arrival RENAME TO nodes;
  -- the balancer's order
  CREATE INDEX nodes_available ON nodes (tasks_assigned, idle_since, node_id) WHERE online = 1;
  -- who went offline with tasks
  CREATE INDEX nodes_stranded ON nodes (node_id) WHERE online = 0 AND tasks_assigned > 0;
  `,
  `
  -- What a node has, has done and was paid is found by plain indexes; the rows of nodes and tasks name no other rows.
  DROP INDEX tasks_held;
  DROP INDEX ledger_marks;
  DROP TABLE completions;
  ALTER TABLE nodes DROP COLUMN held;
  ALTER TABLE nodes DROP COLUMN unfiled;
  ALTER TABLE nodes DROP COLUMN last_entry;
  ALTER TABLE tasks DROP COLUMN listed;
  ALTER TABLE ledger DROP COLUMN previous;
  -- what a node holds; apart from what it has done, which is much and all over the place
  CREATE INDEX tasks_held ON tasks (assigned_node) WHERE status = 'assigned';
  -- task/list by node: what it has done
  CREATE INDEX tasks_done ON tasks (assigned_node) WHERE status = 'completed';
  -- lux/ledger
  CREATE UNIQUE INDEX ledger_node ON ledger (node_id, n);
  `,
  `
  -- Of each broadcast what became of it, so that its sender need not count its deliveries; and while its deliveries are
  -- being written, until when its hub has to go on: nobody sees it before it is whole.
  CREATE TABLE broadcasts (
    seq INTEGER PRIMARY KEY,                 -- of the message
    write_until INTEGER,                     -- steady clock; 0: to be dropped; NULL: whole
    waiting INTEGER NOT NULL,                -- recipients by state
    delivered INTEGER NOT NULL,
    acked INTEGER NOT NULL
  ) STRICT;
  INSERT INTO broadcasts
    SELECT m.seq, NULL, coalesce(sum(d.state = 'waiting'), 0), coalesce(sum(d.state = 'gone'), 0),
      coalesce(sum(d.state = 'acked'), 0)
    FROM messages m LEFT JOIN deliveries d ON d.seq = m.seq WHERE m.to_node IS NULL GROUP BY m.seq;
  -- those that are not whole: none, or one for each hub
  CREATE INDEX broadcasts_unfinished ON broadcasts (seq) WHERE write_until IS NOT NULL;
  -- message/parked
  CREATE INDEX deliveries_parked ON deliveries (to_node, seq) WHERE state = 'parked';
  `,
  `
  -- whether the balancer may give it tasks: a node that registers through variant A looks for its work itself
  ALTER TABLE nodes ADD COLUMN auto_assign INTEGER NOT NULL DEFAULT 1;
  UPDATE nodes SET auto_assign = 0 WHERE variant = 'A';
  -- the balancer's order
  DROP INDEX nodes_available;
  CREATE INDEX nodes_available ON nodes (tasks_assigned, idle_since, node_id) WHERE online = 1 AND auto_assign = 1;
  -- 1: its registration is gone. The row stays with its totals, for its ledger, and for the day it registers again.
  ALTER TABLE nodes ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
  -- how many nodes are registered
  CREATE INDEX nodes_deleted ON nodes (node_id) WHERE deleted = 1;
  -- the further keys of a result, a JSON object as it was sent; NULL: there are none
  ALTER TABLE tasks ADD COLUMN result_extra TEXT;
  `,
  `
  -- Stored answers are bounded for each key and in all: whose an answer is, and how much it takes.
  ALTER TABLE answers ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
  ALTER TABLE answers ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
  UPDATE answers SET key_id = substr(scope, 1, instr(scope, ' ') - 1), bytes = octet_length(scope) + octet_length(body);
  -- the sum of a key's answers, and its oldest
  CREATE INDEX answers_key ON answers (key_id, stored_at, scope, bytes);
  `,
  `
  -- drains: nothing new is handed to it
  ALTER TABLE nodes ADD COLUMN draining INTEGER NOT NULL DEFAULT 0;

  ALTER TABLE tasks ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;       -- of the attempts, the failures and timeouts
  ALTER TABLE tasks ADD COLUMN max_attempts INTEGER;
  ALTER TABLE tasks ADD COLUMN backoff_ms INTEGER NOT NULL DEFAULT 5000;
  ALTER TABLE tasks ADD COLUMN timeout_ms INTEGER;
  ALTER TABLE tasks ADD COLUMN lease_until INTEGER;                       -- steady clock; only while assigned
  ALTER TABLE tasks ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;          -- fencing token
  ALTER TABLE tasks ADD COLUMN not_before INTEGER;
  ALTER TABLE tasks ADD COLUMN expires_at INTEGER;
  ALTER TABLE tasks ADD COLUMN depends_on TEXT;                           -- "id,id"; NULL is none
  ALTER TABLE tasks ADD COLUMN unmet INTEGER NOT NULL DEFAULT 0;          -- its rows in dependencies
  ALTER TABLE tasks ADD COLUMN has_dependents INTEGER NOT NULL DEFAULT 0; -- 1: some task depends on it, or did
  ALTER TABLE tasks ADD COLUMN scheduled INTEGER NOT NULL DEFAULT 0;      -- 1: open, and not in the backlog yet
  ALTER TABLE tasks ADD COLUMN started_at INTEGER;
  ALTER TABLE tasks ADD COLUMN progress TEXT;
  ALTER TABLE tasks ADD COLUMN failure TEXT;                              -- the last one, as JSON
  ALTER TABLE task_totals ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
  -- the backlog: apart from what waits for its time or for other tasks
  DROP INDEX tasks_pool;
  DROP INDEX tasks_pool_type;
  CREATE INDEX tasks_pool ON tasks (balanced, priority) WHERE status = 'open' AND scheduled = 0;
  CREATE INDEX tasks_pool_type ON tasks (balanced, task_type, priority) WHERE status = 'open' AND scheduled = 0;
  -- whose time has come
  CREATE INDEX tasks_scheduled ON tasks (not_before) WHERE scheduled = 1 AND unmet = 0;
  -- whose lease has run out
  CREATE INDEX tasks_lease ON tasks (lease_until) WHERE lease_until IS NOT NULL;
  -- what was not completed in time
  CREATE INDEX tasks_expiring ON tasks (status, expires_at)
    WHERE status IN ('open', 'assigned') AND expires_at IS NOT NULL;

  -- which task still waits for which
  CREATE TABLE dependencies (
    task_id TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    PRIMARY KEY (task_id, depends_on)
  ) STRICT, WITHOUT ROWID;
  -- who waits for a task
  CREATE INDEX dependencies_of ON dependencies (depends_on);
  -- tasks that ended and whose dependents are still to be told, a number of them at a time
  CREATE TABLE settlements (
    task_id TEXT PRIMARY KEY,
    outcome TEXT NOT NULL                    -- completed, failed or deleted
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- task/next: what others assigned to a node and it has not started, best first
  CREATE INDEX tasks_gifts ON tasks (assigned_node, priority) WHERE status = 'assigned' AND started_at IS NULL;
  `,
  `
  -- task/list by creator and by type: each block of 512 tasks is looked up (TASK_BLOCK of store/sql/tasks.ts)
  CREATE INDEX tasks_creator ON tasks (seq / 512, creator_node, task_type) WHERE creator_node IS NOT NULL;
  CREATE INDEX tasks_type ON tasks (seq / 512, task_type) WHERE task_type <> '';
  `,
  `
  -- stats/minutes: what each run of a hub counted in a minute
  CREATE TABLE minutes (
    at INTEGER NOT NULL,                     -- when the minute begins
    hub TEXT NOT NULL,
    numbers TEXT NOT NULL,                   -- JSON
    PRIMARY KEY (at, hub)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- 1: the key of the request was bound to the node that did it
  ALTER TABLE events ADD COLUMN verified INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE messages ADD COLUMN verified INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE tasks ADD COLUMN result_verified INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- file/list and the metrics: running totals, kept by domain/file.ts
  CREATE TABLE file_totals (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  ) STRICT;
  INSERT INTO file_totals SELECT 1, count(*), coalesce(sum(size_bytes), 0) FROM files;
  `,
  `
  -- who created it through A2A, and {"context":…,"message":…}: the ids that the caller knows it by; NULL: another way
  ALTER TABLE tasks ADD COLUMN a2a_caller TEXT;
  ALTER TABLE tasks ADD COLUMN a2a_ids TEXT;
  -- ListTasks of A2A: the caller's, last changed first
  CREATE INDEX tasks_a2a ON tasks (a2a_caller, updated_at) WHERE a2a_caller IS NOT NULL;
  `,
  `
  -- Quotas of keys that are bound to a node: what each row counts against the quota of its node (domain/quota.ts), 0 for
  -- a row that came with another key; and the sums of what is stored, with the number of unfinished tasks.
  ALTER TABLE tasks ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE files ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE messages ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE events ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE quota_usage (
    node_id TEXT PRIMARY KEY,
    tasks INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- the node for a new task: the available ones (AVAILABLE of store/sql/balancer.ts) in the balancer's order
  DROP INDEX nodes_available;
  CREATE INDEX nodes_available ON nodes (tasks_assigned, idle_since, node_id)
    WHERE online = 1 AND auto_assign = 1 AND draining = 0 AND (max_tasks IS NULL OR tasks_assigned < max_tasks);
  -- the bytes of each key's stored answers, kept by triggers: the commit that stores one may delete the oldest
  CREATE TABLE answer_totals (
    key_id TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO answer_totals SELECT key_id, sum(bytes) FROM answers GROUP BY key_id;
  CREATE TRIGGER answers_entered AFTER INSERT ON answers BEGIN
    INSERT INTO answer_totals VALUES (NEW.key_id, NEW.bytes)
      ON CONFLICT (key_id) DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER answers_changed AFTER UPDATE OF bytes ON answers BEGIN
    UPDATE answer_totals SET bytes = bytes + NEW.bytes - OLD.bytes WHERE key_id = NEW.key_id;
  END;
  CREATE TRIGGER answers_left AFTER DELETE ON answers BEGIN
    UPDATE answer_totals SET bytes = bytes - OLD.bytes WHERE key_id = OLD.key_id;
  END;
  -- the oldest of all
  DROP INDEX answers_age;
  CREATE INDEX answers_age ON answers (stored_at, scope, bytes);
  `,
  `
  -- of a file of a task: 1: an output, attached by the node that held the task; 0: an input
  ALTER TABLE files ADD COLUMN output INTEGER NOT NULL DEFAULT 0;
  UPDATE files SET output = 1
    WHERE node_id IS NOT NULL AND node_id = (SELECT assigned_node FROM tasks t WHERE t.task_id = files.task_id);

  -- of a task that failed through its dependencies: the task at the root of it, which failed in another way or was deleted
  ALTER TABLE tasks ADD COLUMN broken_by TEXT;
  WITH RECURSIVE
    broken(task_id, cause) AS (
      SELECT task_id,
        substr(json_extract(failure, '$.message'), 6, instr(json_extract(failure, '$.message'), ',') - 6)
      FROM tasks WHERE status = 'failed' AND json_extract(failure, '$.kind') = 'dependency'),
    roots(task_id, root) AS (
      SELECT task_id, cause FROM broken WHERE cause NOT IN (SELECT task_id FROM broken)
      UNION ALL
      SELECT b.task_id, r.root FROM roots r JOIN broken b ON b.cause = r.task_id)
    UPDATE tasks SET broken_by = roots.root FROM roots WHERE tasks.task_id = roots.task_id;
  -- task/retry with with_dependents
  CREATE INDEX tasks_broken ON tasks (broken_by) WHERE broken_by IS NOT NULL;
  `,
  `
  -- how long one attempt may take in all; its end limits lease_until, so the index of leases serves both
  ALTER TABLE tasks ADD COLUMN max_run_ms INTEGER;
  ALTER TABLE tasks ADD COLUMN run_until INTEGER;                         -- steady clock; only while assigned
  -- how often resume has handed it out again
  ALTER TABLE tasks ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- events of one task
  CREATE INDEX events_task ON events (task_id) WHERE task_id IS NOT NULL;
  -- the node of the last attempt, of a task that has failed
  ALTER TABLE tasks ADD COLUMN failed_node TEXT;
  UPDATE tasks SET failed_node = failure ->> 'nodeId' WHERE status = 'failed';
  CREATE INDEX tasks_failed ON tasks (failed_node) WHERE status = 'failed';
  `,
  `
  -- what the next worker of a task learns: the attempts before the last failure, and the checkpoint (0: there is none)
  ALTER TABLE tasks ADD COLUMN earlier_failures TEXT;
  ALTER TABLE tasks ADD COLUMN checkpoint_bytes INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE checkpoints (
    task_id TEXT PRIMARY KEY,
    data TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    node_id TEXT NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;
  `,
  `
  -- The stored answers in a table with row ids: WITHOUT ROWID, SQLite reads the whole answer of each row with which it
  -- compares a scope, which is megabytes. Their bodies come last, so that the other columns are read without them.
  ALTER TABLE answers RENAME TO answers_before;
  DROP TRIGGER answers_entered;
  DROP TRIGGER answers_changed;
  DROP TRIGGER answers_left;
  CREATE TABLE answers (
    scope TEXT PRIMARY KEY NOT NULL,
    key_id TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    status INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  INSERT INTO answers (scope, key_id, body_hash, status, stored_at, bytes, body)
    SELECT scope, key_id, body_hash, status, stored_at, bytes, body FROM answers_before;
  DROP TABLE answers_before;
  -- the sum of a key's answers, and its oldest
  CREATE INDEX answers_key ON answers (key_id, stored_at, scope, bytes);
  -- the oldest of all
  CREATE INDEX answers_age ON answers (stored_at, scope, bytes);
  CREATE TRIGGER answers_entered AFTER INSERT ON answers BEGIN
    INSERT INTO answer_totals VALUES (NEW.key_id, NEW.bytes)
      ON CONFLICT (key_id) DO UPDATE SET bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER answers_changed AFTER UPDATE OF bytes ON answers BEGIN
    UPDATE answer_totals SET bytes = bytes + NEW.bytes - OLD.bytes WHERE key_id = NEW.key_id;
  END;
  CREATE TRIGGER answers_left AFTER DELETE ON answers BEGIN
    UPDATE answer_totals SET bytes = bytes - OLD.bytes WHERE key_id = OLD.key_id;
  END;
  `,
  `
  -- the message that it answers, and the name of its conversation (NULL: its own id)
  ALTER TABLE messages ADD COLUMN reply_to TEXT;
  ALTER TABLE messages ADD COLUMN thread TEXT;
  -- message/history of one thread
  CREATE INDEX messages_thread ON messages (thread) WHERE thread IS NOT NULL;
  -- whether the key that created it was bound to its creator_node
  ALTER TABLE tasks ADD COLUMN creator_verified INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- whether an attempt has sent output
  ALTER TABLE tasks ADD COLUMN has_output INTEGER NOT NULL DEFAULT 0;
  -- the output of each attempt, without its text
  CREATE TABLE outputs (
    task_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    node_id TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    kept_bytes INTEGER NOT NULL,
    begun_at INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (task_id, epoch)
  ) STRICT, WITHOUT ROWID;
  -- the text, in blocks; with row ids, because a block is large (as the table answers)
  CREATE TABLE output_blocks (
    task_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    n INTEGER NOT NULL,
    start INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (task_id, epoch, n)
  ) STRICT;
  `,
  `
  -- the questions of workers; and what their task knows of them: JSON, NULL for a task that has none (domain/task/question.ts)
  ALTER TABLE tasks ADD COLUMN questions TEXT;
  CREATE TABLE questions (
    seq INTEGER PRIMARY KEY,
    question_id TEXT NOT NULL UNIQUE,
    task_id TEXT NOT NULL,
    question TEXT NOT NULL,
    choices TEXT,                                                         -- JSON array
    schema TEXT,                                                          -- JSON
    asked_by TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    asked_at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    state TEXT NOT NULL,
    answer TEXT,                                                          -- JSON
    answered_by TEXT,
    answered_at INTEGER,
    verified INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  -- the questions of a task
  CREATE INDEX questions_task ON questions (task_id);
  -- those that wait, the most urgent first; and those whose deadline has passed
  CREATE INDEX questions_open ON questions (until) WHERE state = 'open';
  `,
  `
  -- the schedules; timing and task are JSON
  CREATE TABLE schedules (
    name TEXT PRIMARY KEY,
    timing TEXT NOT NULL,
    task TEXT NOT NULL,
    creator_node TEXT,
    overlap TEXT NOT NULL,
    catch_up TEXT NOT NULL,
    jitter_ms INTEGER NOT NULL,
    until INTEGER,
    paused INTEGER NOT NULL,
    next_at INTEGER,
    last_task_id TEXT,
    last_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
  -- the schedule that created a task, and its nominal time
  ALTER TABLE tasks ADD COLUMN schedule TEXT;
  ALTER TABLE tasks ADD COLUMN schedule_at INTEGER;
  CREATE INDEX tasks_schedule ON tasks (schedule, status) WHERE schedule IS NOT NULL;
  `,
  `
  -- what workers report that their tasks have used, its sum by task (NULL: nothing), and what a task may cost
  ALTER TABLE tasks ADD COLUMN spent TEXT;
  ALTER TABLE tasks ADD COLUMN max_cost_micro INTEGER;
  CREATE TABLE usage_reports (
    task_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    node_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    cost_micro INTEGER,
    PRIMARY KEY (task_id, epoch, seq)
  ) STRICT, WITHOUT ROWID;
  -- the same by UTC day: of the hub, of each node, creator, type and model
  CREATE TABLE usage_sums (
    scope TEXT NOT NULL,
    value TEXT NOT NULL,
    day INTEGER NOT NULL,
    reports INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    cost_micro INTEGER NOT NULL,
    PRIMARY KEY (scope, value, day)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE budgets (
    scope TEXT NOT NULL,
    value TEXT NOT NULL,
    per TEXT NOT NULL,
    cost_micro INTEGER,
    tokens INTEGER,
    on_limit TEXT NOT NULL,
    warned_in INTEGER,
    exceeded_in INTEGER,
    PRIMARY KEY (scope, value, per)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- Notes: shared memory. The text comes last, so that the other columns are read without it.
  CREATE TABLE notes (
    key TEXT PRIMARY KEY NOT NULL,
    version INTEGER NOT NULL,
    node_id TEXT,
    verified INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    content TEXT NOT NULL
  ) STRICT;
  -- the number and the bytes of all notes, and of those of one node
  CREATE INDEX notes_sizes ON notes (node_id, bytes);
  -- Advisory leases. task_id: "" for one that belongs to no task.
  CREATE TABLE leases (
    node_id TEXT NOT NULL,
    name TEXT NOT NULL,
    task_id TEXT NOT NULL,
    shared INTEGER NOT NULL,
    is_glob INTEGER NOT NULL,
    fencing INTEGER NOT NULL,
    ttl_ms INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,            -- steady clock
    acquired_at INTEGER NOT NULL,
    PRIMARY KEY (node_id, name, task_id)
  ) STRICT, WITHOUT ROWID;
  -- what may overlap with a name
  CREATE INDEX leases_name ON leases (name);
  CREATE INDEX leases_globs ON leases (is_glob) WHERE is_glob = 1;
  -- those of a task that ends
  CREATE INDEX leases_task ON leases (task_id);
  -- the largest fencing number of a lease: it is never used again
  CREATE TABLE fencing (one INTEGER PRIMARY KEY CHECK (one = 1), last INTEGER NOT NULL) STRICT;
  INSERT INTO fencing VALUES (1, 0);
  -- whether there may be leases for a task, or of a node
  ALTER TABLE tasks ADD COLUMN has_leases INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE nodes ADD COLUMN has_leases INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- how long a task is kept after its end, and until when
  ALTER TABLE tasks ADD COLUMN retain_ms INTEGER;
  ALTER TABLE tasks ADD COLUMN retain_until INTEGER;
  CREATE INDEX tasks_retained ON tasks (retain_until) WHERE retain_until IS NOT NULL;
  `,
  `
  -- the group of a task, and its tags (",a,b,")
  ALTER TABLE tasks ADD COLUMN task_group TEXT;
  ALTER TABLE tasks ADD COLUMN tags TEXT;
  -- the tasks of a group by state, in order; those that changed last; and their rewards
  CREATE INDEX tasks_group ON tasks (task_group, status, seq) WHERE task_group IS NOT NULL;
  CREATE INDEX tasks_group_updated ON tasks (task_group, status, updated_at) WHERE task_group IS NOT NULL;
  CREATE INDEX tasks_group_lux ON tasks (task_group, status, lux_reward_micro)
    WHERE task_group IS NOT NULL AND lux_reward_micro > 0;
  -- the groups of which a task has ended, until it was checked whether it was the last one
  CREATE TABLE group_endings (task_group TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
  `,
  `
  -- a key that at most one unfinished task has, until when a task holds it at least, and whether it runs when one that it
  -- depends on has failed
  ALTER TABLE tasks ADD COLUMN unique_key TEXT;
  ALTER TABLE tasks ADD COLUMN unique_until INTEGER;
  ALTER TABLE tasks ADD COLUMN on_dependency TEXT;
  CREATE INDEX tasks_unique ON tasks (unique_key, status, seq) WHERE unique_key IS NOT NULL;
  CREATE INDEX tasks_unique_until ON tasks (unique_key, unique_until) WHERE unique_until IS NOT NULL;
  `,
  `
  -- failed tasks by when they failed: only these have an entry
  CREATE INDEX tasks_failed_at ON tasks (status, updated_at) WHERE status = 'failed';
  `,
  `
  -- message/parked of all nodes, oldest first
  CREATE INDEX deliveries_parked_all ON deliveries (state, seq) WHERE state = 'parked';
  `,
  `
  -- Every entry of the ledger moves LUX from one account to another, and has its place in the ledger and a hash; an entry
  -- that is older than the hashes has none.
  CREATE TABLE ledger_in_order (
    seq INTEGER PRIMARY KEY,                 -- 1, 2, 3, …: no gap
    entry_id TEXT NOT NULL,
    from_account TEXT,                       -- NULL: the treasury
    to_account TEXT,                         -- NULL: that of the node
    node_id TEXT,                            -- NULL: it goes to no node
    n INTEGER,                               -- 1, 2, 3, … of the node: no gap, none twice
    amount_micro INTEGER NOT NULL,
    balance_micro INTEGER,                   -- the sum of the node's entries up to this one
    kind TEXT NOT NULL,
    task_id TEXT,
    at INTEGER NOT NULL,
    hash TEXT,                               -- SHA-256 of it and of the hash before it (domain/lux.ts)
    CHECK ((node_id IS NULL) = (to_account IS NOT NULL)),
    CHECK ((node_id IS NULL) = (n IS NULL)),
    CHECK ((node_id IS NULL) = (balance_micro IS NULL))
  ) STRICT;
  INSERT INTO ledger_in_order
    SELECT row_number() OVER (ORDER BY entry_id), entry_id, NULL, NULL, node_id, n, amount_micro, balance_micro, kind,
      task_id, at, NULL
    FROM ledger ORDER BY entry_id;
  DROP TABLE ledger;
  ALTER TABLE ledger_in_order RENAME TO ledger;
  -- lux/ledger
  CREATE UNIQUE INDEX ledger_node ON ledger (node_id, n);
  -- a day pays once: the rules see to it, and the store would not take it otherwise
  CREATE UNIQUE INDEX ledger_signin ON ledger (node_id, (at / 86400000)) WHERE kind = 'signin';
  -- the entry that paid a completed task
  ALTER TABLE tasks ADD COLUMN paid_seq INTEGER;
  UPDATE tasks SET paid_seq = l.seq
    FROM ledger l WHERE l.kind = 'reward' AND l.task_id = tasks.task_id;
  `,
  `
  -- stats/types: the open tasks that wait, by type
  CREATE INDEX tasks_waiting ON tasks (task_type) WHERE scheduled = 1;
  `,
  `
  -- stats/minutes of a day and of a month: the sums of longer periods
  CREATE TABLE periods (
    step_ms INTEGER NOT NULL,                -- how long the period is
    at INTEGER NOT NULL,                     -- when it begins
    numbers TEXT NOT NULL,                   -- JSON
    PRIMARY KEY (step_ms, at)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- invitations to nodes, by the hash of their token
  CREATE TABLE invitations (
    token_hash TEXT PRIMARY KEY NOT NULL,
    invitation_id TEXT NOT NULL,
    node_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER,
    key_id TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX invitations_id ON invitations (invitation_id);
  `,
  `
  -- the webhooks; filter is JSON, and push too (a push notification config of A2A, NULL: it is none)
  CREATE TABLE webhooks (
    name TEXT PRIMARY KEY,
    webhook_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    url TEXT NOT NULL,
    format TEXT NOT NULL,
    filter TEXT NOT NULL,
    push TEXT,
    push_task_id TEXT,
    secret TEXT,
    cursor_id INTEGER NOT NULL,             -- the last event that needs no delivery
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    failing_since INTEGER,
    next_at INTEGER,
    last_error TEXT,
    delivered_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX webhooks_push ON webhooks (push_task_id, name) WHERE push_task_id IS NOT NULL;
  CREATE INDEX webhooks_suspended ON webhooks (state) WHERE state = 'suspended';
  `,
  `
  -- what a task requires of its node, the key of its limit, its special lane (NULL: the plain one of its type), and the
  -- key under which it is counted while it is assigned
  ALTER TABLE tasks ADD COLUMN requires TEXT;
  ALTER TABLE tasks ADD COLUMN limit_key TEXT;
  ALTER TABLE tasks ADD COLUMN lane TEXT;
  ALTER TABLE tasks ADD COLUMN counts_for TEXT;
  ALTER TABLE nodes ADD COLUMN resources TEXT;
  -- the backlog: the plain lanes, and the special ones
  DROP INDEX tasks_pool;
  DROP INDEX tasks_pool_type;
  CREATE INDEX tasks_pool ON tasks (balanced, priority)
    WHERE status = 'open' AND scheduled = 0 AND lane IS NULL;
  CREATE INDEX tasks_pool_type ON tasks (balanced, task_type, priority)
    WHERE status = 'open' AND scheduled = 0 AND lane IS NULL;
  CREATE INDEX tasks_pool_lane ON tasks (balanced, lane, priority)
    WHERE status = 'open' AND scheduled = 0 AND lane IS NOT NULL;
  -- which special lanes have unfinished tasks
  CREATE INDEX tasks_lanes ON tasks (status, lane) WHERE lane IS NOT NULL AND status IN ('open', 'assigned');
  -- what the tasks of a node use, and how many run under a limit
  CREATE INDEX tasks_using ON tasks (assigned_node) WHERE status = 'assigned' AND requires IS NOT NULL;
  CREATE INDEX tasks_counted ON tasks (counts_for) WHERE status = 'assigned' AND counts_for IS NOT NULL;
  CREATE TABLE pauses (
    scope TEXT NOT NULL,
    value TEXT NOT NULL,
    reason TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (scope, value)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE limits (
    limit_key TEXT PRIMARY KEY NOT NULL,
    running INTEGER,
    per_minute INTEGER,
    held_until INTEGER
  ) STRICT, WITHOUT ROWID;
  -- the hand-outs of the last minute, of the keys with a limit per minute
  CREATE TABLE limit_uses (
    limit_key TEXT NOT NULL,
    second INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    PRIMARY KEY (limit_key, second)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- how the results of a task are checked, and until when one waits for its verdict
  ALTER TABLE tasks ADD COLUMN review TEXT;
  ALTER TABLE tasks ADD COLUMN review_until INTEGER;
  CREATE INDEX tasks_in_review ON tasks (review_until, seq) WHERE review_until IS NOT NULL;
  CREATE INDEX tasks_group_in_review ON tasks (task_group, review_until, lux_reward_micro)
    WHERE review_until IS NOT NULL AND task_group IS NOT NULL;
  CREATE INDEX tasks_unique_in_review ON tasks (unique_key, seq)
    WHERE review_until IS NOT NULL AND unique_key IS NOT NULL;
  -- how many nodes do a task; what the hub created a task for, and the nodes (",a,b,") that may not have it
  ALTER TABLE tasks ADD COLUMN quorum TEXT;
  ALTER TABLE tasks ADD COLUMN child TEXT;
  ALTER TABLE tasks ADD COLUMN parent_task TEXT;
  ALTER TABLE tasks ADD COLUMN not_nodes TEXT;
  CREATE INDEX tasks_children ON tasks (parent_task) WHERE parent_task IS NOT NULL;
  -- the tasks whose family must be looked at
  CREATE TABLE family_checks (task_id TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
  `,
  `
  -- what a key may promise as rewards per UTC day, what it has promised, and the key that a task was created with
  ALTER TABLE keys ADD COLUMN mint_micro INTEGER;
  CREATE TABLE mints (
    key_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    micro INTEGER NOT NULL,
    PRIMARY KEY (key_id, day)
  ) STRICT, WITHOUT ROWID;
  ALTER TABLE tasks ADD COLUMN creator_key TEXT;
  `,
  `
  -- the tasks of a schedule that wait for their review
  CREATE INDEX tasks_schedule_in_review ON tasks (schedule) WHERE review_until IS NOT NULL AND schedule IS NOT NULL;
  `,
  `
  -- what a group has paid
  DROP INDEX tasks_group_lux;
  CREATE INDEX tasks_group_lux ON tasks (task_group, status, lux_reward_micro, paid_seq)
    WHERE task_group IS NOT NULL AND lux_reward_micro > 0;
  `,
  `
  -- the ready tasks that some nodes may not have: whether any other node could take them
  CREATE INDEX tasks_choosy ON tasks (status) WHERE status = 'open' AND scheduled = 0 AND not_nodes IS NOT NULL;
  `,
  `
  -- the node that holds a limit key
  ALTER TABLE limits ADD COLUMN held_by TEXT;
  `,
  `
  -- what a row counts against the quota of a node, and of which; for an event without a name, that of the event
  ALTER TABLE events ADD COLUMN kept_by TEXT;
  ALTER TABLE schedules ADD COLUMN kept_by TEXT;
  ALTER TABLE schedules ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE webhooks ADD COLUMN kept_by TEXT;
  ALTER TABLE webhooks ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE notes ADD COLUMN kept_by TEXT;
  ALTER TABLE notes ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
  -- the last of its times that got no task and an event of that
  ALTER TABLE schedules ADD COLUMN skip_logged_at INTEGER;
  `,
  `
  -- what the requests of other nodes have added to a task, until it ends
  ALTER TABLE tasks ADD COLUMN lent_bytes INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE task_charges (
    task_id TEXT NOT NULL,
    node_id TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (task_id, node_id)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- when a hold began
  ALTER TABLE limits ADD COLUMN held_at INTEGER;
  `,
  `
  -- a group of the keys of one node is its own: NAME/NODE; one that others have tasks in stays the hub's
  CREATE TABLE owned_groups (name TEXT PRIMARY KEY, owned TEXT NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO owned_groups
    SELECT task_group AS name, task_group || '/' || min(creator_node) AS owned FROM tasks WHERE task_group IS NOT NULL
    GROUP BY task_group HAVING min(creator_verified) = 1 AND min(creator_node) = max(creator_node);
  UPDATE tasks SET task_group = (SELECT owned FROM owned_groups WHERE name = task_group) WHERE task_group IN (SELECT name FROM owned_groups);
  UPDATE tasks SET child = json_set(child, '$.group', (SELECT owned FROM owned_groups WHERE name = child ->> '$.group'))
    WHERE child ->> '$.group' IN (SELECT name FROM owned_groups);
  UPDATE usage_sums SET value = (SELECT owned FROM owned_groups WHERE name = value)
    WHERE scope = 'group' AND value IN (SELECT name FROM owned_groups);
  UPDATE budgets SET value = (SELECT owned FROM owned_groups WHERE name = value) WHERE scope = 'group' AND value IN (SELECT name FROM owned_groups);
  UPDATE group_endings SET task_group = (SELECT owned FROM owned_groups WHERE name = task_group) WHERE task_group IN (SELECT name FROM owned_groups);
  UPDATE webhooks SET filter = json_set(filter, '$.group', (SELECT owned FROM owned_groups WHERE name = filter ->> '$.group'))
    WHERE filter ->> '$.group' IN (SELECT name FROM owned_groups);
  DROP TABLE owned_groups;
  `,
  `
  -- the special lanes of the unfinished tasks that keys bound to a node have created
  CREATE INDEX tasks_lanes_of_node ON tasks (creator_node, lane)
    WHERE lane IS NOT NULL AND status IN ('open', 'assigned') AND creator_verified = 1;
  `,
  `
  -- the sums of what each node has reported
  CREATE TABLE node_sums (
    day INTEGER NOT NULL,
    node_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    value TEXT NOT NULL,
    reports INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    cost_micro INTEGER NOT NULL,
    kept_bytes INTEGER NOT NULL,
    PRIMARY KEY (day, node_id, scope, value)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX usage_sums_days ON usage_sums (day);
  `,
  `
  -- how many push configs the keys of a node have saved
  CREATE INDEX webhooks_push_kept ON webhooks (kept_by) WHERE push_task_id IS NOT NULL;
  `,
  `
  -- A task is several rows: its state, which each transition writes; its specification and its result, each written
  -- once; and what only some tasks have. Apart, because SQLite writes a row whole, and a prompt may have 64 KiB.
  CREATE TABLE task_specs (
    task_seq INTEGER PRIMARY KEY,
    max_attempts INTEGER,
    backoff_ms INTEGER NOT NULL,
    description TEXT NOT NULL,
    depends_on TEXT
  ) STRICT;
  INSERT INTO task_specs SELECT seq, max_attempts, backoff_ms, description, depends_on FROM tasks;
  CREATE TABLE task_results (
    task_seq INTEGER PRIMARY KEY,
    problem TEXT NOT NULL,
    improvement TEXT NOT NULL,
    lesson TEXT NOT NULL,
    result_extra TEXT
  ) STRICT;
  INSERT INTO task_results SELECT seq, problem, improvement, lesson, result_extra FROM tasks WHERE problem IS NOT NULL;
  -- only tasks that use a feature have a row; status to paid_seq are copies for the indexes
  CREATE TABLE task_features (
    task_seq INTEGER PRIMARY KEY,
    status TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    assigned_node TEXT,
    lux_reward_micro INTEGER NOT NULL,
    paid_seq INTEGER,
    creator_key TEXT,
    schedule TEXT,
    schedule_at INTEGER,
    retain_ms INTEGER,
    retain_until INTEGER,
    on_dependency TEXT,
    task_group TEXT,
    tags TEXT,
    unique_key TEXT,
    unique_until INTEGER,
    requires TEXT,
    questions TEXT,
    review TEXT,
    review_until INTEGER,
    quorum TEXT,
    child TEXT,
    parent_task TEXT,
    not_nodes TEXT,
    spent TEXT,
    max_cost_micro INTEGER,
    has_leases INTEGER NOT NULL DEFAULT 0,
    has_output INTEGER NOT NULL DEFAULT 0,
    checkpoint_bytes INTEGER NOT NULL DEFAULT 0,
    earlier_failures TEXT,
    kept_bytes INTEGER NOT NULL DEFAULT 0,
    lent_bytes INTEGER NOT NULL DEFAULT 0,
    broken_by TEXT,
    a2a_caller TEXT,
    a2a_ids TEXT
  ) STRICT;
  INSERT INTO task_features SELECT seq, status, updated_at, assigned_node, lux_reward_micro, paid_seq,
      creator_key, schedule, schedule_at, retain_ms, retain_until, on_dependency, task_group, tags, unique_key,
      unique_until, requires, questions, review, review_until, quorum, child, parent_task, not_nodes, spent,
      max_cost_micro, has_leases, has_output, checkpoint_bytes, earlier_failures, kept_bytes, lent_bytes,
      broken_by, a2a_caller, a2a_ids
    FROM tasks
    WHERE creator_key IS NOT NULL OR schedule IS NOT NULL OR retain_ms IS NOT NULL OR on_dependency IS NOT NULL
      OR task_group IS NOT NULL OR tags IS NOT NULL OR unique_key IS NOT NULL OR requires IS NOT NULL
      OR questions IS NOT NULL OR review IS NOT NULL OR quorum IS NOT NULL OR child IS NOT NULL
      OR not_nodes IS NOT NULL OR spent IS NOT NULL OR max_cost_micro IS NOT NULL OR earlier_failures IS NOT NULL
      OR broken_by IS NOT NULL OR a2a_caller IS NOT NULL OR has_leases <> 0 OR has_output <> 0
      OR checkpoint_bytes <> 0 OR kept_bytes <> 0 OR lent_bytes <> 0;
  CREATE TABLE task_states (
    seq INTEGER PRIMARY KEY,                 -- order of creation
    task_id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    task_type TEXT NOT NULL,
    priority INTEGER NOT NULL,
    creator_node TEXT,
    creator_verified INTEGER NOT NULL,
    status TEXT NOT NULL,
    lux_reward_micro INTEGER NOT NULL,
    assigned_node TEXT,
    balanced INTEGER NOT NULL,
    revoked_from TEXT,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    restarts INTEGER NOT NULL,
    timeout_ms INTEGER,
    max_run_ms INTEGER,
    run_until INTEGER,                       -- steady clock
    lease_until INTEGER,                     -- steady clock
    epoch INTEGER NOT NULL,
    not_before INTEGER,
    expires_at INTEGER,
    unmet INTEGER NOT NULL,
    has_dependents INTEGER NOT NULL DEFAULT 0,
    ready INTEGER,                           -- of an open task: 0 waits, 1 in the plain lane of its type, 2 in a special one
    due_at INTEGER,                          -- when the clock starts or ends it
    started_at INTEGER,
    progress TEXT,
    failure TEXT,
    failed_node TEXT,
    limit_key TEXT,
    lane TEXT,                               -- null: the plain lane of its type
    counts_for TEXT,
    result_verified INTEGER NOT NULL DEFAULT 0,
    paid_seq INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT;
  INSERT INTO task_states SELECT
      seq, task_id, title, task_type, priority, creator_node, creator_verified, status, lux_reward_micro, assigned_node,
      balanced, revoked_from, attempts, failures, restarts, timeout_ms, max_run_ms, run_until, lease_until,
      epoch, not_before, expires_at, unmet, has_dependents, CASE WHEN status <> 'open' THEN NULL WHEN scheduled = 1 THEN 0 WHEN lane IS NULL THEN 1 ELSE 2 END,
      nullif(min(coalesce(CASE WHEN scheduled = 1 AND unmet = 0 THEN not_before END, 9007199254740991),
        coalesce(CASE WHEN status IN ('open', 'assigned') THEN expires_at END, 9007199254740991)), 9007199254740991), started_at, progress, failure,
      failed_node, limit_key, lane, counts_for, result_verified, paid_seq, created_at, updated_at
    FROM tasks;
  DROP TABLE tasks;
  ALTER TABLE task_states RENAME TO tasks;
  -- task/list by status
  CREATE INDEX tasks_status ON tasks (status);
  -- what a node holds, and what it has done
  CREATE INDEX tasks_node ON tasks (assigned_node, status) WHERE assigned_node IS NOT NULL;
  -- what it has not started
  CREATE INDEX tasks_gifts ON tasks (assigned_node, priority) WHERE status = 'assigned' AND started_at IS NULL;
  -- what failed at a node
  CREATE INDEX tasks_failed ON tasks (failed_node) WHERE failed_node IS NOT NULL;
  -- failures, last changed first
  CREATE INDEX tasks_failed_at ON tasks (status, updated_at) WHERE status = 'failed';
  -- what time opens or ends
  CREATE INDEX tasks_lease ON tasks (lease_until) WHERE lease_until IS NOT NULL;
  CREATE INDEX tasks_due ON tasks (due_at) WHERE due_at IS NOT NULL;
  -- the backlog: of all types, of one type, of a special lane
  CREATE INDEX tasks_pool ON tasks (balanced, priority) WHERE ready = 1;
  CREATE INDEX tasks_pool_type ON tasks (balanced, task_type, priority) WHERE ready = 1;
  CREATE INDEX tasks_pool_lane ON tasks (balanced, lane, priority) WHERE ready = 2;
  CREATE INDEX tasks_lanes ON tasks (status, lane) WHERE lane IS NOT NULL AND status IN ('open', 'assigned');
  -- the special lanes of the unfinished tasks that keys bound to a node have created
  CREATE INDEX tasks_lanes_of_node ON tasks (creator_node, lane)
    WHERE lane IS NOT NULL AND status IN ('open', 'assigned') AND creator_verified = 1;
  -- what runs under a limit key
  CREATE INDEX tasks_counted ON tasks (counts_for) WHERE counts_for IS NOT NULL;
  -- stats/types: what waits
  CREATE INDEX tasks_waiting ON tasks (task_type) WHERE ready = 0;
  -- task/list by type and by creator, a block of tasks at a time
  CREATE INDEX tasks_type ON tasks (seq / 512, task_type) WHERE task_type <> '';
  CREATE INDEX tasks_creator ON tasks (seq / 512, creator_node, task_type) WHERE creator_node IS NOT NULL;
  -- the tasks of a group: by state, by their last change, their rewards, and those in review
  CREATE INDEX features_group ON task_features (task_group, status, task_seq) WHERE task_group IS NOT NULL;
  CREATE INDEX features_group_updated ON task_features (task_group, status, updated_at) WHERE task_group IS NOT NULL;
  CREATE INDEX features_group_lux ON task_features (task_group, status, lux_reward_micro, paid_seq)
    WHERE task_group IS NOT NULL AND lux_reward_micro > 0;
  CREATE INDEX features_group_in_review ON task_features (task_group, review_until, lux_reward_micro)
    WHERE review_until IS NOT NULL AND task_group IS NOT NULL;
  -- results that wait for their review, the first deadline first
  CREATE INDEX features_in_review ON task_features (review_until, task_seq) WHERE review_until IS NOT NULL;
  -- whose own retention has ended
  CREATE INDEX features_retained ON task_features (retain_until, task_seq) WHERE retain_until IS NOT NULL;
  -- whether a schedule has an unfinished task
  CREATE INDEX features_schedule ON task_features (schedule, status) WHERE schedule IS NOT NULL;
  CREATE INDEX features_schedule_in_review ON task_features (schedule) WHERE review_until IS NOT NULL AND schedule IS NOT NULL;
  -- who holds a unique key
  CREATE INDEX features_unique ON task_features (unique_key, status, task_seq) WHERE unique_key IS NOT NULL;
  CREATE INDEX features_unique_in_review ON task_features (unique_key, task_seq)
    WHERE review_until IS NOT NULL AND unique_key IS NOT NULL;
  CREATE INDEX features_unique_until ON task_features (unique_key, unique_until) WHERE unique_until IS NOT NULL;
  -- the copies and the reviews of a task
  CREATE INDEX features_children ON task_features (parent_task) WHERE parent_task IS NOT NULL;
  -- what failed because of a task
  CREATE INDEX features_broken ON task_features (broken_by, task_seq) WHERE broken_by IS NOT NULL;
  -- the tasks of an A2A client, last changed last
  CREATE INDEX features_a2a ON task_features (a2a_caller, updated_at) WHERE a2a_caller IS NOT NULL;
  -- what the tasks of a node use
  CREATE INDEX features_using ON task_features (assigned_node) WHERE status = 'assigned' AND requires IS NOT NULL;
  -- the open tasks that some nodes may not have
  CREATE INDEX features_choosy ON task_features (task_seq) WHERE status = 'open' AND not_nodes IS NOT NULL;
  CREATE VIEW task_rows AS SELECT
    t.seq, t.task_id, t.title, t.task_type, t.priority, t.creator_node, t.creator_verified, t.status, t.lux_reward_micro,
    t.assigned_node, t.balanced, t.revoked_from, t.attempts, t.failures, t.restarts, t.timeout_ms,
    t.max_run_ms, t.run_until, t.lease_until, t.epoch, t.not_before, t.expires_at, t.unmet, t.has_dependents,
    t.ready, t.due_at, t.started_at, t.progress, t.failure, t.failed_node, t.limit_key, t.lane, t.counts_for,
    t.result_verified, t.paid_seq, t.created_at, t.updated_at,
    s.max_attempts, s.backoff_ms, s.description, s.depends_on,
    r.problem, r.improvement, r.lesson, r.result_extra,
    f.creator_key, f.schedule, f.schedule_at, f.retain_ms, f.retain_until, f.on_dependency, f.task_group,
    f.tags, f.unique_key, f.unique_until, f.requires, f.questions, f.review, f.review_until, f.quorum, f.child,
    f.parent_task, f.not_nodes, f.spent, f.max_cost_micro, coalesce(f.has_leases, 0) AS has_leases,
    coalesce(f.has_output, 0) AS has_output, coalesce(f.checkpoint_bytes, 0) AS checkpoint_bytes,
    f.earlier_failures, coalesce(f.kept_bytes, 0) AS kept_bytes, coalesce(f.lent_bytes, 0) AS lent_bytes,
    f.broken_by, f.a2a_caller, f.a2a_ids, f.task_seq AS features_of
    FROM tasks t LEFT JOIN task_specs s ON s.task_seq = t.seq LEFT JOIN task_results r ON r.task_seq = t.seq
      LEFT JOIN task_features f ON f.task_seq = t.seq;
  -- the balancer's order; the first words leave out most nodes
  DROP INDEX nodes_available;
  CREATE INDEX nodes_available ON nodes (tasks_assigned, idle_since, node_id)
    WHERE auto_assign = 1 AND online = 1 AND draining = 0 AND (max_tasks IS NULL OR tasks_assigned < max_tasks);
  `,
  `
  -- What the tasks of a group add up to: in a row that each step writes, in place of indexes of all its tasks.
  UPDATE task_features SET quorum = json_set(quorum, '$.paidMicro', (
      SELECT coalesce(sum(c.lux_reward_micro), 0) FROM task_features c
      WHERE c.paid_seq IS NOT NULL AND c.parent_task = (SELECT task_id FROM tasks WHERE seq = task_features.task_seq)))
    WHERE quorum IS NOT NULL AND status = 'completed';
  CREATE TABLE group_totals (
    task_group TEXT PRIMARY KEY NOT NULL,            -- the others without: SQLite would check each in each write
    open INTEGER,
    assigned INTEGER,
    completed INTEGER,
    failed INTEGER,
    cancelled INTEGER,
    in_review INTEGER,
    lux INTEGER,
    lux_micro INTEGER,
    paid INTEGER,
    paid_micro INTEGER,
    first_created_at INTEGER,
    last_created_at INTEGER,
    last_updated_at INTEGER
  ) STRICT;
  INSERT INTO group_totals
    SELECT task_group, sum(CASE WHEN status = 'open' THEN 1 ELSE 0 END), sum(CASE WHEN status = 'assigned' THEN 1 ELSE 0 END),
      sum(CASE WHEN status = 'completed' THEN 1 ELSE 0 END), sum(CASE WHEN status = 'failed' AND NOT cancelled THEN 1 ELSE 0 END), sum(CASE WHEN cancelled THEN 1 ELSE 0 END),
      sum(CASE WHEN review_until IS NOT NULL THEN 1 ELSE 0 END), sum(lux_reward_micro / 1000000), sum(lux_reward_micro % 1000000),
      sum(paid / 1000000), sum(paid % 1000000), min(created_at), max(created_at), max(updated_at)
    FROM (
      SELECT f.task_group, t.status, f.review_until, t.lux_reward_micro, t.created_at, t.updated_at,
        t.status = 'failed' AND (t.failure LIKE '{"kind":"cancelled",%' OR t.failure LIKE '{"kind":"expired",%') AS cancelled,
        CASE WHEN t.status <> 'completed' THEN 0 WHEN t.paid_seq IS NOT NULL THEN t.lux_reward_micro
          ELSE coalesce(quorum ->> '$.paidMicro', 0) END AS paid
      FROM task_features f JOIN tasks t ON t.seq = f.task_seq WHERE f.task_group IS NOT NULL) AS grouped
    GROUP BY task_group;
  DROP INDEX features_group_updated;
  DROP INDEX features_group_lux;
  DROP INDEX features_group_in_review;
  ALTER TABLE task_features DROP COLUMN lux_reward_micro;
  ALTER TABLE task_features DROP COLUMN paid_seq;
  -- what failed last
  CREATE INDEX features_group_failed ON task_features (task_group, updated_at)
    WHERE status = 'failed' AND task_group IS NOT NULL;
  -- the tasks of a schedule that have not ended
  DROP INDEX features_schedule;
  DROP INDEX features_schedule_in_review;
  CREATE INDEX features_schedule ON task_features (schedule)
    WHERE schedule IS NOT NULL AND (status IN ('open', 'assigned') OR review_until IS NOT NULL);
  `,
];
