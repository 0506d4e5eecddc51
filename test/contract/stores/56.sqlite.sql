-- A store of schema 56 on SQLite.
CREATE TABLE task_totals (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    open INTEGER NOT NULL,
    assigned INTEGER NOT NULL,
    completed INTEGER NOT NULL
  , failed INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY,                 -- order of arrival
    message_id TEXT NOT NULL UNIQUE,
    from_node TEXT NOT NULL,
    to_node TEXT,                            -- NULL: a broadcast
    type TEXT NOT NULL,
    content TEXT NOT NULL,
    require_ack INTEGER NOT NULL,
    sent_at INTEGER NOT NULL
  , verified INTEGER NOT NULL DEFAULT 0, kept_bytes INTEGER NOT NULL DEFAULT 0, reply_to TEXT, thread TEXT) STRICT;
CREATE INDEX messages_from ON messages (from_node);
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
  , kept_bytes INTEGER NOT NULL DEFAULT 0, output INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX files_task ON files (task_id) WHERE task_id IS NOT NULL;
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    node_id TEXT,
    task_id TEXT,
    data TEXT NOT NULL
  , verified INTEGER NOT NULL DEFAULT 0, kept_bytes INTEGER NOT NULL DEFAULT 0, kept_by TEXT) STRICT;
CREATE INDEX events_kind ON events (kind);
CREATE TABLE keys (
    key_id TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    variant TEXT,
    node_id TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
  , mint_micro INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE "deliveries" (
    seq INTEGER NOT NULL,                    -- of the message
    to_node TEXT NOT NULL,
    state TEXT NOT NULL,
    deliveries INTEGER NOT NULL,
    lease_until INTEGER,                     -- steady clock; only while leased
    broadcast INTEGER NOT NULL,
    PRIMARY KEY (seq, to_node)
  ) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_got ON deliveries (to_node, seq);
CREATE INDEX deliveries_waiting ON deliveries (to_node, seq) WHERE state = 'waiting';
CREATE INDEX deliveries_lease ON deliveries (lease_until) WHERE state = 'leased';
CREATE TABLE identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    database_id TEXT NOT NULL                -- tells this database from others that share a Redis with it
  ) STRICT;
CREATE TABLE "nodes" (
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
    tasks_assigned INTEGER NOT NULL,         -- running totals, kept by domain/task.ts
    tasks_completed INTEGER NOT NULL,
    lux_earned_micro INTEGER NOT NULL,
    idle_since INTEGER NOT NULL,
    entries INTEGER NOT NULL DEFAULT 0,      -- the n of that
    balance_micro INTEGER NOT NULL DEFAULT 0, auto_assign INTEGER NOT NULL DEFAULT 1, deleted INTEGER NOT NULL DEFAULT 0, draining INTEGER NOT NULL DEFAULT 0, has_leases INTEGER NOT NULL DEFAULT 0, resources TEXT) STRICT;
CREATE TABLE beats (
    seq INTEGER PRIMARY KEY CHECK (seq > 0), -- of the node
    last_heartbeat_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL             -- steady clock
  ) STRICT;
CREATE INDEX nodes_stranded ON nodes (node_id) WHERE online = 0 AND tasks_assigned > 0;
CREATE TABLE broadcasts (
    seq INTEGER PRIMARY KEY,                 -- of the message
    write_until INTEGER,                     -- steady clock; 0: to be dropped; NULL: whole
    waiting INTEGER NOT NULL,                -- recipients by state
    delivered INTEGER NOT NULL,
    acked INTEGER NOT NULL
  ) STRICT;
CREATE INDEX broadcasts_unfinished ON broadcasts (seq) WHERE write_until IS NOT NULL;
CREATE INDEX deliveries_parked ON deliveries (to_node, seq) WHERE state = 'parked';
CREATE INDEX nodes_deleted ON nodes (node_id) WHERE deleted = 1;
CREATE TABLE dependencies (
    task_id TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    PRIMARY KEY (task_id, depends_on)
  ) STRICT, WITHOUT ROWID;
CREATE INDEX dependencies_of ON dependencies (depends_on);
CREATE TABLE settlements (
    task_id TEXT PRIMARY KEY,
    outcome TEXT NOT NULL                    -- completed, failed or deleted
  ) STRICT, WITHOUT ROWID;
CREATE TABLE minutes (
    at INTEGER NOT NULL,                     -- when the minute begins
    hub TEXT NOT NULL,
    numbers TEXT NOT NULL,                   -- JSON
    PRIMARY KEY (at, hub)
  ) STRICT, WITHOUT ROWID;
CREATE TABLE file_totals (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  ) STRICT;
CREATE TABLE quota_usage (
    node_id TEXT PRIMARY KEY,
    tasks INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
CREATE TABLE answer_totals (
    key_id TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
CREATE INDEX events_task ON events (task_id) WHERE task_id IS NOT NULL;
CREATE TABLE checkpoints (
    task_id TEXT PRIMARY KEY,
    data TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    node_id TEXT NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;
CREATE TABLE answers (
    scope TEXT PRIMARY KEY NOT NULL,
    key_id TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    status INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
CREATE INDEX answers_key ON answers (key_id, stored_at, scope, bytes);
CREATE INDEX answers_age ON answers (stored_at, scope, bytes);
CREATE INDEX messages_thread ON messages (thread) WHERE thread IS NOT NULL;
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
CREATE TABLE output_blocks (
    task_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    n INTEGER NOT NULL,
    start INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (task_id, epoch, n)
  ) STRICT;
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
CREATE INDEX questions_task ON questions (task_id);
CREATE INDEX questions_open ON questions (until) WHERE state = 'open';
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
  , kept_by TEXT, kept_bytes INTEGER NOT NULL DEFAULT 0, skip_logged_at INTEGER) STRICT;
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
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
CREATE TABLE notes (
    key TEXT PRIMARY KEY NOT NULL,
    version INTEGER NOT NULL,
    node_id TEXT,
    verified INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    content TEXT NOT NULL
  , kept_by TEXT, kept_bytes INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX notes_sizes ON notes (node_id, bytes);
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
CREATE INDEX leases_name ON leases (name);
CREATE INDEX leases_globs ON leases (is_glob) WHERE is_glob = 1;
CREATE INDEX leases_task ON leases (task_id);
CREATE TABLE fencing (one INTEGER PRIMARY KEY CHECK (one = 1), last INTEGER NOT NULL) STRICT;
CREATE TABLE group_endings (task_group TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_parked_all ON deliveries (state, seq) WHERE state = 'parked';
CREATE TABLE "ledger" (
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
CREATE UNIQUE INDEX ledger_node ON ledger (node_id, n);
CREATE UNIQUE INDEX ledger_signin ON ledger (node_id, (at / 86400000)) WHERE kind = 'signin';
CREATE TABLE periods (
    step_ms INTEGER NOT NULL,                -- how long the period is
    at INTEGER NOT NULL,                     -- when it begins
    numbers TEXT NOT NULL,                   -- JSON
    PRIMARY KEY (step_ms, at)
  ) STRICT, WITHOUT ROWID;
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
  , kept_by TEXT, kept_bytes INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX webhooks_push ON webhooks (push_task_id, name) WHERE push_task_id IS NOT NULL;
CREATE INDEX webhooks_suspended ON webhooks (state) WHERE state = 'suspended';
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
  , held_by TEXT, held_at INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE limit_uses (
    limit_key TEXT NOT NULL,
    second INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    PRIMARY KEY (limit_key, second)
  ) STRICT, WITHOUT ROWID;
CREATE TABLE family_checks (task_id TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE mints (
    key_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    micro INTEGER NOT NULL,
    PRIMARY KEY (key_id, day)
  ) STRICT, WITHOUT ROWID;
CREATE TABLE task_charges (
    task_id TEXT NOT NULL,
    node_id TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (task_id, node_id)
  ) STRICT, WITHOUT ROWID;
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
CREATE INDEX webhooks_push_kept ON webhooks (kept_by) WHERE push_task_id IS NOT NULL;
CREATE TABLE task_specs (
    task_seq INTEGER PRIMARY KEY,
    max_attempts INTEGER,
    backoff_ms INTEGER NOT NULL,
    description TEXT NOT NULL,
    depends_on TEXT
  ) STRICT;
CREATE TABLE task_results (
    task_seq INTEGER PRIMARY KEY,
    problem TEXT NOT NULL,
    improvement TEXT NOT NULL,
    lesson TEXT NOT NULL,
    result_extra TEXT
  ) STRICT;
CREATE TABLE task_features (
    task_seq INTEGER PRIMARY KEY,
    status TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    assigned_node TEXT,
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
CREATE TABLE "tasks" (
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
CREATE INDEX tasks_status ON tasks (status);
CREATE INDEX tasks_node ON tasks (assigned_node, status) WHERE assigned_node IS NOT NULL;
CREATE INDEX tasks_gifts ON tasks (assigned_node, priority) WHERE status = 'assigned' AND started_at IS NULL;
CREATE INDEX tasks_failed ON tasks (failed_node) WHERE failed_node IS NOT NULL;
CREATE INDEX tasks_failed_at ON tasks (status, updated_at) WHERE status = 'failed';
CREATE INDEX tasks_lease ON tasks (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX tasks_due ON tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX tasks_pool ON tasks (balanced, priority) WHERE ready = 1;
CREATE INDEX tasks_pool_type ON tasks (balanced, task_type, priority) WHERE ready = 1;
CREATE INDEX tasks_pool_lane ON tasks (balanced, lane, priority) WHERE ready = 2;
CREATE INDEX tasks_lanes ON tasks (status, lane) WHERE lane IS NOT NULL AND status IN ('open', 'assigned');
CREATE INDEX tasks_lanes_of_node ON tasks (creator_node, lane)
    WHERE lane IS NOT NULL AND status IN ('open', 'assigned') AND creator_verified = 1;
CREATE INDEX tasks_counted ON tasks (counts_for) WHERE counts_for IS NOT NULL;
CREATE INDEX tasks_waiting ON tasks (task_type) WHERE ready = 0;
CREATE INDEX tasks_type ON tasks (seq / 512, task_type) WHERE task_type <> '';
CREATE INDEX tasks_creator ON tasks (seq / 512, creator_node, task_type) WHERE creator_node IS NOT NULL;
CREATE INDEX features_group ON task_features (task_group, status, task_seq) WHERE task_group IS NOT NULL;
CREATE INDEX features_in_review ON task_features (review_until, task_seq) WHERE review_until IS NOT NULL;
CREATE INDEX features_retained ON task_features (retain_until, task_seq) WHERE retain_until IS NOT NULL;
CREATE INDEX features_unique ON task_features (unique_key, status, task_seq) WHERE unique_key IS NOT NULL;
CREATE INDEX features_unique_in_review ON task_features (unique_key, task_seq)
    WHERE review_until IS NOT NULL AND unique_key IS NOT NULL;
CREATE INDEX features_unique_until ON task_features (unique_key, unique_until) WHERE unique_until IS NOT NULL;
CREATE INDEX features_children ON task_features (parent_task) WHERE parent_task IS NOT NULL;
CREATE INDEX features_broken ON task_features (broken_by, task_seq) WHERE broken_by IS NOT NULL;
CREATE INDEX features_a2a ON task_features (a2a_caller, updated_at) WHERE a2a_caller IS NOT NULL;
CREATE INDEX features_using ON task_features (assigned_node) WHERE status = 'assigned' AND requires IS NOT NULL;
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
CREATE INDEX nodes_available ON nodes (tasks_assigned, idle_since, node_id)
    WHERE auto_assign = 1 AND online = 1 AND draining = 0 AND (max_tasks IS NULL OR tasks_assigned < max_tasks);
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
CREATE INDEX features_group_failed ON task_features (task_group, updated_at)
    WHERE status = 'failed' AND task_group IS NOT NULL;
CREATE INDEX features_schedule ON task_features (schedule)
    WHERE schedule IS NOT NULL AND (status IN ('open', 'assigned') OR review_until IS NOT NULL);
INSERT INTO task_totals VALUES (1, 6, 1, 1, 3);
INSERT INTO messages VALUES (1, '01a22463-f3c3-72f1-852f-23c5bb0725d1', 'planner', 'worker-1', 'text', 'The deadline is Friday.', 1, 1896091200000, 0, 0, NULL, NULL);
INSERT INTO messages VALUES (2, '01a22463-f3ed-75d4-876b-79854b8aa1e3', 'planner', NULL, 'alert', 'The hub restarts at noon.', 0, 1896091200000, 0, 0, NULL, NULL);
INSERT INTO messages VALUES (3, '01a22463-f459-709d-8b3e-aeeea1bdde35', 'planner', 'worker-2', 'text', 'The deadline is Friday.', 1, 1896091200000, 0, 0, NULL, NULL);
INSERT INTO messages VALUES (4, '01a22463-f468-77eb-89c8-d9fbe7f85fb4', 'planner', NULL, 'update', 'Back again.', 0, 1896091200000, 0, 0, NULL, NULL);
INSERT INTO messages VALUES (5, '01a22463-f471-74f5-8a89-e8463555f3a7', 'planner', 'worker-2', 'text', 'The deadline is Friday.', 1, 1896091200000, 0, 0, NULL, NULL);
INSERT INTO messages VALUES (6, '01a22463-f828-762f-a232-dfb1c678607f', 'planner', 'worker-1', 'text', 'The report is archived today.', 0, 1896091417000, 0, 0, NULL, NULL);
INSERT INTO events VALUES (1, 1896091200000, 'hub.started', NULL, NULL, '{"software":"luxhub 0.1.0"}', 0, 0, NULL);
INSERT INTO events VALUES (2, 1896091200000, 'node.registered', 'worker-1', NULL, '{"name":"Worker 1"}', 0, 0, NULL);
INSERT INTO events VALUES (3, 1896091200000, 'node.online', 'worker-1', NULL, '{"name":"Worker 1"}', 0, 0, NULL);
INSERT INTO events VALUES (4, 1896091200000, 'node.registered', 'worker-2', NULL, '{"name":"Worker 2"}', 0, 0, NULL);
INSERT INTO events VALUES (5, 1896091200000, 'node.online', 'worker-2', NULL, '{"name":"Worker 2"}', 0, 0, NULL);
INSERT INTO events VALUES (6, 1896091200000, 'task.created', 'planner', '01a22463-ec97-76fc-bcf6-40dbbb16654c', '{"title":"Summarise the report"}', 0, 0, NULL);
INSERT INTO events VALUES (7, 1896091200000, 'task.assigned', 'worker-1', '01a22463-ec97-76fc-bcf6-40dbbb16654c', '{"by":"claim","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (8, 1896091200000, 'task.progress', 'worker-1', '01a22463-ec97-76fc-bcf6-40dbbb16654c', '{"note":"two points of three","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (9, 1896091200000, 'task.asked', 'worker-1', '01a22463-ec97-76fc-bcf6-40dbbb16654c', '{"question_id":"01a22463-eff5-745b-8576-85bee7eeab1f","until":"2030-01-31T13:00:00.000Z","parked":false,"creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (10, 1896091200000, 'task.answered', 'worker-1', '01a22463-ec97-76fc-bcf6-40dbbb16654c', '{"question_id":"01a22463-eff5-745b-8576-85bee7eeab1f","answered_by":null,"creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (11, 1896091200000, 'file.uploaded', 'worker-1', '01a22463-ec97-76fc-bcf6-40dbbb16654c', '{"file_id":"01a22463-f0cb-741e-8c02-c1c192bdf4c6","name":"report.txt","size":14}', 0, 0, NULL);
INSERT INTO events VALUES (12, 1896091200000, 'task.completed', 'worker-1', '01a22463-ec97-76fc-bcf6-40dbbb16654c', '{"creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (13, 1896091200000, 'lux.paid', 'worker-1', '01a22463-ec97-76fc-bcf6-40dbbb16654c', '{"amount":2.5}', 0, 0, NULL);
INSERT INTO events VALUES (14, 1896091200000, 'task.created', 'planner', '01a22463-f0ef-7715-92b4-158edda44076', '{"title":"Count the pages"}', 0, 0, NULL);
INSERT INTO events VALUES (15, 1896091200000, 'task.created', 'planner', '01a22463-f0f2-77eb-b616-4071e8a74afb', '{"title":"Count the pages"}', 0, 0, NULL);
INSERT INTO events VALUES (16, 1896091200000, 'task.created', 'planner', '01a22463-f0f2-77ec-ae7f-ff63508cec46', '{"title":"Count the pages"}', 0, 0, NULL);
INSERT INTO events VALUES (17, 1896091200000, 'task.created', 'planner', '01a22463-f0f9-720f-ab2b-743c2374f3db', '{"title":"Draw the logo"}', 0, 0, NULL);
INSERT INTO events VALUES (18, 1896091200000, 'task.assigned', 'worker-1', '01a22463-f0f9-720f-ab2b-743c2374f3db', '{"by":"claim","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (19, 1896091200000, 'task.completed', 'worker-1', '01a22463-f0f9-720f-ab2b-743c2374f3db', '{"creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (20, 1896091200000, 'task.review_requested', 'planner', '01a22463-f0f9-720f-ab2b-743c2374f3db', '{"by":"creator","until":"2030-02-01T12:00:00.000Z","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (21, 1896091200000, 'task.review_rejected', 'worker-1', '01a22463-f0f9-720f-ab2b-743c2374f3db', '{"attempts":1,"reviewed_by":null,"creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (22, 1896091200000, 'task.deleted', NULL, '01a22463-f0f9-720f-ab2b-743c2374f3db', '{"title":"Draw the logo","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (23, 1896091200000, 'task.created', 'planner', '01a22463-f184-740b-97c6-cdf944bd4b1a', '{"title":"Outline the talk"}', 0, 0, NULL);
INSERT INTO events VALUES (24, 1896091200000, 'task.created', 'planner', '01a22463-f19f-74b8-9ef5-24bb910ba9a5', '{"title":"Rehearse the talk"}', 0, 0, NULL);
INSERT INTO events VALUES (25, 1896091200000, 'task.updated', 'planner', '01a22463-f19f-74b8-9ef5-24bb910ba9a5', '{"changed":"priority,lux_reward"}', 0, 0, NULL);
INSERT INTO events VALUES (26, 1896091200000, 'task.failed', NULL, '01a22463-f184-740b-97c6-cdf944bd4b1a', '{"kind":"cancelled","message":"the talk is called off","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (27, 1896091200000, 'task.failed', NULL, '01a22463-f19f-74b8-9ef5-24bb910ba9a5', '{"kind":"dependency","message":"Task 01a22463-f184-740b-97c6-cdf944bd4b1a, on which it depends, failed.","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (28, 1896091200000, 'task.created', 'planner', '01a22463-f284-732c-aefe-dd32e7715e3f', '{"title":"Check the figures"}', 0, 0, NULL);
INSERT INTO events VALUES (29, 1896091200000, 'task.assigned', 'worker-2', '01a22463-f284-732c-aefe-dd32e7715e3f', '{"by":"assign","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (30, 1896091200000, 'task.released', 'worker-2', '01a22463-f284-732c-aefe-dd32e7715e3f', '{"reason":"out of memory","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (31, 1896091200000, 'task.assigned', 'worker-2', '01a22463-f284-732c-aefe-dd32e7715e3f', '{"by":"claim","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (32, 1896091200000, 'task.attempt_failed', 'worker-2', '01a22463-f284-732c-aefe-dd32e7715e3f', '{"attempts":1,"error":"report.txt is empty","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (33, 1896091200000, 'task.failed', 'worker-2', '01a22463-f284-732c-aefe-dd32e7715e3f', '{"kind":"failed","message":"report.txt is empty","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (34, 1896091200000, 'task.retried', 'planner', '01a22463-f284-732c-aefe-dd32e7715e3f', '{}', 0, 0, NULL);
INSERT INTO events VALUES (35, 1896091200000, 'task.failed', NULL, '01a22463-f284-732c-aefe-dd32e7715e3f', '{"kind":"cancelled","message":"no longer needed","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (36, 1896091200000, 'task.created', 'planner', '01a22463-f361-74e4-9ab1-ce2e26db412c', '{"title":"Translate the report"}', 0, 0, NULL);
INSERT INTO events VALUES (37, 1896091200000, 'task.assigned', 'worker-1', '01a22463-f361-74e4-9ab1-ce2e26db412c', '{"by":"next","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (38, 1896091200000, 'task.revoked', 'worker-1', '01a22463-f361-74e4-9ab1-ce2e26db412c', '{"reason":"worker-1 is restarted","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (39, 1896091200000, 'task.assigned', 'worker-2', '01a22463-f361-74e4-9ab1-ce2e26db412c', '{"by":"revoke","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (40, 1896091200000, 'task.deleted', 'worker-2', '01a22463-f361-74e4-9ab1-ce2e26db412c', '{"title":"Translate the report","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (41, 1896091200000, 'task.created', 'planner', '01a22463-f3af-723b-8971-4c2f9a57b371', '{"title":"Print the report"}', 0, 0, NULL);
INSERT INTO events VALUES (42, 1896091200000, 'task.assigned', 'worker-1', '01a22463-f3af-723b-8971-4c2f9a57b371', '{"by":"assign","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (43, 1896091200000, 'message.sent', 'worker-1', NULL, '{"message_id":"01a22463-f3c3-72f1-852f-23c5bb0725d1","from_node":"planner","type":"text"}', 0, 0, NULL);
INSERT INTO events VALUES (44, 1896091200000, 'message.acked', 'worker-1', NULL, '{"message_id":"01a22463-f3c3-72f1-852f-23c5bb0725d1","from_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (45, 1896091200000, 'message.sent', NULL, NULL, '{"message_id":"01a22463-f3ed-75d4-876b-79854b8aa1e3","from_node":"planner","type":"alert","receivers":2}', 0, 0, NULL);
INSERT INTO events VALUES (46, 1896091200000, 'message.sent', 'worker-2', NULL, '{"message_id":"01a22463-f459-709d-8b3e-aeeea1bdde35","from_node":"planner","type":"text"}', 0, 0, NULL);
INSERT INTO events VALUES (47, 1896091200000, 'message.sent', NULL, NULL, '{"message_id":"01a22463-f468-77eb-89c8-d9fbe7f85fb4","from_node":"planner","type":"update","receivers":2}', 0, 0, NULL);
INSERT INTO events VALUES (48, 1896091200000, 'message.acked', 'worker-2', NULL, '{"message_id":"01a22463-f459-709d-8b3e-aeeea1bdde35","from_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (49, 1896091200000, 'message.sent', 'worker-2', NULL, '{"message_id":"01a22463-f471-74f5-8a89-e8463555f3a7","from_node":"planner","type":"text"}', 0, 0, NULL);
INSERT INTO events VALUES (50, 1896091386000, 'message.parked', 'worker-2', NULL, '{"message_id":"01a22463-f471-74f5-8a89-e8463555f3a7","from_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (51, 1896091417000, 'note.changed', 'worker-1', NULL, '{"key":"report/terms","version":1}', 0, 0, NULL);
INSERT INTO events VALUES (52, 1896091417000, 'note.deleted', 'worker-1', NULL, '{"key":"report/terms","version":1}', 0, 0, NULL);
INSERT INTO events VALUES (53, 1896091417000, 'lux.signin', 'worker-1', NULL, '{"amount":10}', 0, 0, NULL);
INSERT INTO events VALUES (54, 1896091417000, 'budget.set', NULL, NULL, '{"scope":"type","value":"research","per":"month","on_limit":"pause","limit_usd":50,"cost_usd":0.168,"without_cost":0,"limit_tokens":100000000,"tokens":52800}', 0, 0, NULL);
INSERT INTO events VALUES (55, 1896091417000, 'budget.deleted', NULL, NULL, '{"scope":"type","value":"research","per":"month","on_limit":"pause","limit_usd":50,"cost_usd":0.168,"without_cost":0,"limit_tokens":100000000,"tokens":52800}', 0, 0, NULL);
INSERT INTO events VALUES (56, 1896091417000, 'usage.voided', 'worker-1', NULL, '{"day":"2030-01-31","reports":1,"cost_usd":0.168,"reason":"It counted cents as dollars.","input_tokens":52000,"output_tokens":800}', 0, 0, NULL);
INSERT INTO events VALUES (57, 1896091417000, 'hub.paused', NULL, NULL, '{"scope":"type","value":"research","reason":"The provider is down."}', 0, 0, NULL);
INSERT INTO events VALUES (58, 1896091417000, 'hub.resumed', NULL, NULL, '{"scope":"type","value":"research"}', 0, 0, NULL);
INSERT INTO events VALUES (59, 1896091417000, 'limit.set', NULL, NULL, '{"key":"openai","running":8,"per_minute":60}', 0, 0, NULL);
INSERT INTO events VALUES (60, 1896091417000, 'limit.held', NULL, NULL, '{"key":"openai","for_s":30,"held_by":"worker-1"}', 0, 0, NULL);
INSERT INTO events VALUES (61, 1896091417000, 'limit.deleted', NULL, NULL, '{"key":"openai"}', 0, 0, NULL);
INSERT INTO events VALUES (62, 1896091417000, 'file.deleted', 'worker-1', '01a22463-ec97-76fc-bcf6-40dbbb16654c', '{"file_id":"01a22463-f0cb-741e-8c02-c1c192bdf4c6","name":"report.txt","size":14}', 0, 0, NULL);
INSERT INTO events VALUES (63, 1896091417000, 'file.uploaded', NULL, NULL, '{"file_id":"01a22463-f81a-75d9-9ee3-282aea01ca5b","name":"report.txt","size":9}', 0, 0, NULL);
INSERT INTO events VALUES (64, 1896091417000, 'file.deleted', NULL, NULL, '{"file_id":"01a22463-f81a-75d9-9ee3-282aea01ca5b","name":"report.txt","size":9}', 0, 0, NULL);
INSERT INTO events VALUES (65, 1896091417000, 'task.created', NULL, '01a22463-f827-73ae-847c-3b75aa3642e9', '{"title":"Archive the report"}', 0, 0, NULL);
INSERT INTO events VALUES (66, 1896091417000, 'message.sent', 'worker-1', NULL, '{"message_id":"01a22463-f828-762f-a232-dfb1c678607f","from_node":"planner","type":"text"}', 0, 0, NULL);
INSERT INTO events VALUES (67, 1896091417000, 'schedule.saved', NULL, NULL, '{"name":"nightly-backup","paused":false}', 0, 0, NULL);
INSERT INTO events VALUES (68, 1896091417000, 'task.created', NULL, '01a22463-f8a8-711f-b307-7c6e96f50ead', '{"title":"Back up the wiki"}', 0, 0, NULL);
INSERT INTO events VALUES (69, 1896091417000, 'schedule.deleted', NULL, NULL, '{"name":"nightly-backup"}', 0, 0, NULL);
INSERT INTO events VALUES (70, 1896091417000, 'webhook.saved', NULL, NULL, '{"name":"ci"}', 0, 0, NULL);
INSERT INTO events VALUES (71, 1896091417000, 'webhook.resumed', NULL, NULL, '{"name":"ci","cursor":69}', 0, 0, NULL);
INSERT INTO events VALUES (72, 1896091417000, 'webhook.deleted', NULL, NULL, '{"name":"ci","reason":"deleted"}', 0, 0, NULL);
INSERT INTO events VALUES (73, 1896091417000, 'task.created', NULL, '01a22463-f938-70be-858d-a1acfa9fa378', '{"title":"Translate a page","group":"wiki-fr","tags":"wiki"}', 0, 0, NULL);
INSERT INTO events VALUES (74, 1896091417000, 'task.failed', NULL, '01a22463-f938-70be-858d-a1acfa9fa378', '{"kind":"cancelled","message":"The wiki is closed.","group":"wiki-fr","tags":"wiki"}', 0, 0, NULL);
INSERT INTO events VALUES (75, 1896091417000, 'group.ended', NULL, NULL, '{"group":"wiki-fr","completed":0,"failed":0,"cancelled":1}', 0, 0, NULL);
INSERT INTO events VALUES (76, 1896091417000, 'task.retried', NULL, '01a22463-f938-70be-858d-a1acfa9fa378', '{"group":"wiki-fr","tags":"wiki"}', 0, 0, NULL);
INSERT INTO events VALUES (77, 1896091417000, 'node.joined', 'worker-9', NULL, '{"key":"worker-9-a14535b9"}', 0, 0, NULL);
INSERT INTO events VALUES (78, 1896091417000, 'node.draining', 'worker-2', NULL, '{"name":"Worker 2","draining":true}', 0, 0, NULL);
INSERT INTO events VALUES (79, 1896091417000, 'node.left', 'worker-2', NULL, '{"name":"Worker 2"}', 0, 0, NULL);
INSERT INTO events VALUES (80, 1896091417000, 'node.offline', 'worker-2', NULL, '{"name":"Worker 2"}', 0, 0, NULL);
INSERT INTO events VALUES (81, 1896091417000, 'node.deleted', 'worker-2', NULL, '{"name":"Worker 2"}', 0, 0, NULL);
INSERT INTO keys VALUES ('dashboard', 'viewer', '14f62a21b2f5f68e2c4382a1a88ddc219e0c2655f799d8fc05b250e3dfcb099e', NULL, NULL, 1896091417000, 1896177817000, 1896091417000, NULL);
INSERT INTO keys VALUES ('worker-9-a14535b9', 'secret', '5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e', NULL, 'worker-9', 1896091417000, NULL, NULL, NULL);
INSERT INTO deliveries VALUES (1, 'worker-1', 'acked', 1, NULL, 0);
INSERT INTO deliveries VALUES (2, 'worker-1', 'waiting', 0, NULL, 1);
INSERT INTO deliveries VALUES (2, 'worker-2', 'gone', 1, NULL, 1);
INSERT INTO deliveries VALUES (3, 'worker-2', 'acked', 1, NULL, 0);
INSERT INTO deliveries VALUES (4, 'worker-1', 'waiting', 0, NULL, 1);
INSERT INTO deliveries VALUES (4, 'worker-2', 'gone', 1, NULL, 1);
INSERT INTO deliveries VALUES (5, 'worker-2', 'waiting', 0, NULL, 0);
INSERT INTO deliveries VALUES (6, 'worker-1', 'waiting', 0, NULL, 0);
INSERT INTO identity VALUES (1, 'f2e8e4b9799473bc501c15f97b1370ef');
INSERT INTO nodes VALUES (1, 'worker-1', 'Worker 1', NULL, NULL, ',coding,research,', 'A', 4, 1, 1896091200000, 1, 1, 2500000, 1896091200000, 2, 12500000, 0, 0, 0, 1, NULL);
INSERT INTO nodes VALUES (2, 'worker-2', 'Worker 2', NULL, NULL, '', 'A', NULL, 0, 1896091200000, 0, 0, 0, 1896091200000, 0, 0, 0, 1, 0, 0, NULL);
INSERT INTO beats VALUES (1, 1896091386000, 1366000);
INSERT INTO beats VALUES (2, 1896091386000, 1366000);
INSERT INTO broadcasts VALUES (2, NULL, 1, 1, 0);
INSERT INTO broadcasts VALUES (4, NULL, 1, 1, 0);
INSERT INTO minutes VALUES (1896091200000, '01a22463-e6e0-7072-b3cf-1365172cd0ea', '{"created":10,"started":7,"completed":2,"attemptsFailed":1,"failed":2,"cancelled":2,"luxMicro":2500000,"messages":5,"toStart":{"sumMs":0,"buckets":[5,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]},"toFinish":{"sumMs":0,"buckets":[2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]},"types":{"research":{"completed":1,"failed":0,"toStart":{"sumMs":0,"buckets":[3,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}},"":{"completed":1,"failed":2,"toStart":{"sumMs":0,"buckets":[4,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}}}');
INSERT INTO minutes VALUES (1896091380000, '01a22463-e6e0-7072-b3cf-1365172cd0ea', '{"created":3,"started":0,"completed":0,"attemptsFailed":0,"failed":0,"cancelled":1,"luxMicro":10000000,"messages":1,"toStart":{"sumMs":0,"buckets":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]},"toFinish":{"sumMs":0,"buckets":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}');
INSERT INTO file_totals VALUES (1, 0, 0);
INSERT INTO outputs VALUES ('01a22463-ec97-76fc-bcf6-40dbbb16654c', 1, 'worker-1', 21, 0, 1896091200000, 1896091200000);
INSERT INTO output_blocks VALUES ('01a22463-ec97-76fc-bcf6-40dbbb16654c', 1, 0, 0, 'Reading page 1 of 12
');
INSERT INTO questions VALUES (1, '01a22463-eff5-745b-8576-85bee7eeab1f', '01a22463-ec97-76fc-bcf6-40dbbb16654c', 'The report names two dates for the release. Which one is right?', '["1 March","15 March"]', NULL, 'worker-1', 1, 1896091200000, 1896094800000, 'answered', '"15 March"', NULL, 1896091200000, 0);
INSERT INTO usage_reports VALUES ('01a22463-ec97-76fc-bcf6-40dbbb16654c', 1, 1, 'worker-1', 1896091200000, 'large', 52000, 800, 0, 168000);
INSERT INTO usage_sums VALUES ('creator', 'planner', 21945, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_sums VALUES ('hub', '', 21945, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_sums VALUES ('model', 'large', 21945, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_sums VALUES ('node', 'worker-1', 21945, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_sums VALUES ('type', 'research', 21945, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_sums VALUES ('voided', '', 21945, 1, 0, 52000, 800, 0, 168000);
INSERT INTO fencing VALUES (1, 1);
INSERT INTO ledger VALUES (1, '01a22463-f0e2-70c1-9ef8-3a5c54013735', NULL, NULL, 'worker-1', 1, 2500000, 2500000, 'reward', '01a22463-ec97-76fc-bcf6-40dbbb16654c', 1896091200000, '9d953d556e0f265217fdda03dc748b208e921ab611dbe22258095e1989034a4e');
INSERT INTO ledger VALUES (2, '01a22463-f58d-721d-8fac-8555a625f38c', NULL, NULL, 'worker-1', 2, 10000000, 12500000, 'signin', NULL, 1896091417000, 'e2779dbdc26145503dcc602427f219d5da15fb3761560305b76759b6eba720f6');
INSERT INTO task_specs VALUES (1, NULL, 5000, 'Read report.txt and name its three main points.', NULL);
INSERT INTO task_specs VALUES (2, NULL, 5000, 'Read report.txt and name its three main points.', NULL);
INSERT INTO task_specs VALUES (3, NULL, 5000, 'Read report.txt and name its three main points.', '01a22463-f0ef-7715-92b4-158edda44076');
INSERT INTO task_specs VALUES (4, NULL, 5000, 'Read report.txt and name its three main points.', '01a22463-f0ef-7715-92b4-158edda44076');
INSERT INTO task_specs VALUES (5, NULL, 5000, 'Read report.txt and name its three main points.', '01a22463-ec97-76fc-bcf6-40dbbb16654c');
INSERT INTO task_specs VALUES (6, NULL, 5000, 'Read report.txt and name its three main points.', '01a22463-f184-740b-97c6-cdf944bd4b1a');
INSERT INTO task_specs VALUES (7, NULL, 5000, 'Read report.txt and name its three main points.', NULL);
INSERT INTO task_specs VALUES (8, NULL, 5000, 'Read report.txt and name its three main points.', NULL);
INSERT INTO task_specs VALUES (9, NULL, 5000, 'As PDF.', NULL);
INSERT INTO task_specs VALUES (10, NULL, 5000, 'Into the archive.', NULL);
INSERT INTO task_specs VALUES (11, NULL, 5000, 'Into French.', NULL);
INSERT INTO task_results VALUES (1, 'The report is long and its points are hard to find.', 'Named the three points, each with its page.', 'The summary on page 2 is out of date.', '{"points":3}');
INSERT INTO task_features VALUES (1, 'completed', 1896091200000, 'worker-1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"state":"settled","asked":1,"bytes":88}', NULL, NULL, NULL, NULL, NULL, NULL, '{"reports":1,"unpriced":0,"inputTokens":52000,"outputTokens":800,"cachedTokens":0,"costMicro":168000}', 5000000, 0, 1, 0, NULL, 0, 0, NULL, NULL, NULL);
INSERT INTO task_features VALUES (2, 'open', 1896091200000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"results":2,"of":3,"compare":["/pages"],"state":"pending","round":0,"copies":["01a22463-f0f2-77eb-b616-4071e8a74afb","01a22463-f0f2-77ec-ae7f-ff63508cec46"],"agreed":[]}', NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, NULL, NULL, NULL);
INSERT INTO task_features VALUES (3, 'open', 1896091200000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"of":"01a22463-f0ef-7715-92b4-158edda44076","as":"copy","group":null,"epoch":0,"notKey":null,"sealed":true,"compare":["/pages"]}', '01a22463-f0ef-7715-92b4-158edda44076', NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, NULL, NULL, NULL);
INSERT INTO task_features VALUES (4, 'open', 1896091200000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"of":"01a22463-f0ef-7715-92b4-158edda44076","as":"copy","group":null,"epoch":0,"notKey":null,"sealed":true,"compare":["/pages"]}', '01a22463-f0ef-7715-92b4-158edda44076', NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, NULL, NULL, NULL);
INSERT INTO task_features VALUES (6, 'failed', 1896091200000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, '01a22463-f184-740b-97c6-cdf944bd4b1a', NULL, NULL);
INSERT INTO task_features VALUES (7, 'failed', 1896091200000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, '[{"kind":"failed","message":"report.txt is empty","nodeId":"worker-2","at":1896091200000}]', 0, 0, NULL, NULL, NULL);
INSERT INTO task_features VALUES (10, 'open', 1896091417000, NULL, NULL, 'nightly-backup', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, NULL, NULL, NULL);
INSERT INTO task_features VALUES (11, 'open', 1896091417000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'wiki-fr', ',wiki,', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, NULL, NULL, NULL);
INSERT INTO tasks VALUES (1, '01a22463-ec97-76fc-bcf6-40dbbb16654c', 'Summarise the report', 'research', 0, 'planner', 0, 'completed', 2500000, 'worker-1', 0, NULL, 0, 0, 0, 600000, NULL, NULL, NULL, 1, NULL, NULL, 0, 1, NULL, NULL, 1896091200000, 'two points of three', NULL, NULL, NULL, NULL, NULL, 0, 1, 1896091200000, 1896091200000);
INSERT INTO tasks VALUES (2, '01a22463-f0ef-7715-92b4-158edda44076', 'Count the pages', '', 1, 'planner', 0, 'open', 0, NULL, 0, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 1896091200000, 1896091200000);
INSERT INTO tasks VALUES (3, '01a22463-f0f2-77eb-b616-4071e8a74afb', 'Count the pages', '', 1, 'planner', 0, 'open', 0, NULL, 0, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 1896091200000, 1896091200000);
INSERT INTO tasks VALUES (4, '01a22463-f0f2-77ec-ae7f-ff63508cec46', 'Count the pages', '', 1, 'planner', 0, 'open', 0, NULL, 0, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 1896091200000, 1896091200000);
INSERT INTO tasks VALUES (5, '01a22463-f184-740b-97c6-cdf944bd4b1a', 'Outline the talk', '', 1, 'planner', 0, 'failed', 0, NULL, 0, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, 1, NULL, NULL, NULL, NULL, '{"kind":"cancelled","message":"the talk is called off","nodeId":null,"at":1896091200000}', NULL, NULL, NULL, NULL, 0, NULL, 1896091200000, 1896091200000);
INSERT INTO tasks VALUES (6, '01a22463-f19f-74b8-9ef5-24bb910ba9a5', 'Rehearse the talk', '', 0, 'planner', 0, 'failed', 2000000, NULL, 0, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, '{"kind":"dependency","message":"Task 01a22463-f184-740b-97c6-cdf944bd4b1a, on which it depends, failed.","nodeId":null,"at":1896091200000}', NULL, NULL, NULL, NULL, 0, NULL, 1896091200000, 1896091200000);
INSERT INTO tasks VALUES (7, '01a22463-f284-732c-aefe-dd32e7715e3f', 'Check the figures', '', 1, 'planner', 0, 'failed', 0, NULL, 0, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 4, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, '{"kind":"cancelled","message":"no longer needed","nodeId":null,"at":1896091200000}', NULL, NULL, NULL, NULL, 0, NULL, 1896091200000, 1896091200000);
INSERT INTO tasks VALUES (8, '01a22463-f3af-723b-8971-4c2f9a57b371', 'Print the report', '', 1, 'planner', 0, 'assigned', 0, 'worker-1', 0, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 1, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 1896091200000, 1896091200000);
INSERT INTO tasks VALUES (9, '01a22463-f827-73ae-847c-3b75aa3642e9', 'Archive the report', '', 1, NULL, 0, 'open', 0, NULL, 0, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 1896091417000, 1896091417000);
INSERT INTO tasks VALUES (10, '01a22463-f8a8-711f-b307-7c6e96f50ead', 'Back up the wiki', 'backup', 1, NULL, 0, 'open', 0, NULL, 0, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 1896091417000, 1896091417000);
INSERT INTO tasks VALUES (11, '01a22463-f938-70be-858d-a1acfa9fa378', 'Translate a page', '', 1, NULL, 0, 'open', 0, NULL, 0, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 1, NULL, NULL, 0, 0, 1, NULL, NULL, NULL, '{"kind":"cancelled","message":"The wiki is closed.","nodeId":null,"at":1896091417000}', NULL, NULL, NULL, NULL, 0, NULL, 1896091417000, 1896091417000);
INSERT INTO group_totals VALUES ('wiki-fr', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1896091417000, 1896091417000, 1896091417000);
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
PRAGMA user_version = 56;
PRAGMA application_id = -1060030260;
