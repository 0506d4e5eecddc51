/**
 * The schema migrations of PostgreSQL, forward only: the same tables, columns and indexes as in store/sqlite/migrations.ts,
 * which says why each index is there. Step n migrates a database from version n - 1 to n. A released step is never edited.
 *
 * Text is compared byte by byte (COLLATE "C"), as SQLite and the rules do. Numbers are BIGINT, but for what the rows are
 * read as numbers: flags, priority, status.
 */
import type { SQL } from "bun";
import { LEADER_LEASE_MS } from "../../domain/limits.ts";
import { type Clock, SECOND_MS } from "../../lib/clock.ts";
import { type Connection, type Warn, isLockTimeout, query } from "./connection.ts";
import { MIGRATING, StoreUnavailable } from "../store.ts";

/** The steps; the version is kept in the table schema_version. */
export const POSTGRES_MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE nodes (
    node_id TEXT COLLATE "C" PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT,
    port INTEGER,
    capabilities TEXT COLLATE "C" NOT NULL,
    variant TEXT NOT NULL,
    max_tasks INTEGER,
    online INTEGER NOT NULL,
    registered_at BIGINT NOT NULL,
    last_heartbeat_at BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    tasks_assigned BIGINT NOT NULL,
    tasks_completed BIGINT NOT NULL,
    lux_earned_micro BIGINT NOT NULL,
    idle_since BIGINT NOT NULL
  );
  CREATE INDEX nodes_available ON nodes (tasks_assigned, idle_since, node_id) WHERE online = 1;
  CREATE INDEX nodes_stranded ON nodes (node_id) WHERE online = 0 AND tasks_assigned > 0;
  CREATE INDEX nodes_top ON nodes (tasks_completed DESC, lux_earned_micro DESC) WHERE tasks_completed > 0;

  CREATE TABLE tasks (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id TEXT COLLATE "C" NOT NULL UNIQUE,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    task_type TEXT COLLATE "C" NOT NULL,
    priority INTEGER NOT NULL,
    creator_node TEXT,
    status TEXT COLLATE "C" NOT NULL,
    lux_reward_micro BIGINT NOT NULL,
    assigned_node TEXT COLLATE "C",
    balanced INTEGER NOT NULL,
    revoked_from TEXT COLLATE "C",
    attempts INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    problem TEXT,
    improvement TEXT,
    lesson TEXT
  );
  -- Where SQLite appends the row's number to every index by itself, seq stands in the index here.
  CREATE INDEX tasks_status ON tasks (status, seq);
  CREATE INDEX tasks_held ON tasks (assigned_node, seq) WHERE status = 'assigned';
  CREATE INDEX tasks_done ON tasks (assigned_node, seq) WHERE status = 'completed';
  CREATE INDEX tasks_pool ON tasks (balanced, priority, seq) WHERE status = 'open';
  CREATE INDEX tasks_pool_type ON tasks (balanced, task_type, priority, seq) WHERE status = 'open';

  CREATE TABLE task_totals (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    open BIGINT NOT NULL,
    assigned BIGINT NOT NULL,
    completed BIGINT NOT NULL
  );
  INSERT INTO task_totals VALUES (1, 0, 0, 0);

  CREATE TABLE ledger (
    node_id TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL,
    entry_id TEXT NOT NULL,
    amount_micro BIGINT NOT NULL,
    balance_micro BIGINT NOT NULL,
    kind TEXT NOT NULL,
    task_id TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (node_id, n)
  );
  CREATE UNIQUE INDEX ledger_signin ON ledger (node_id, (at / 86400000)) WHERE kind = 'signin';

  CREATE TABLE messages (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id TEXT COLLATE "C" NOT NULL UNIQUE,
    from_node TEXT COLLATE "C" NOT NULL,
    to_node TEXT COLLATE "C",
    type TEXT NOT NULL,
    content TEXT NOT NULL,
    require_ack INTEGER NOT NULL,
    sent_at BIGINT NOT NULL
  );
  CREATE INDEX messages_from ON messages (from_node, seq);

  CREATE TABLE deliveries (
    seq BIGINT NOT NULL,
    to_node TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    deliveries INTEGER NOT NULL,
    lease_until BIGINT,
    broadcast INTEGER NOT NULL,
    PRIMARY KEY (seq, to_node)
  );
  CREATE INDEX deliveries_got ON deliveries (to_node, seq);
  CREATE INDEX deliveries_waiting ON deliveries (to_node, seq) WHERE state = 'waiting';
  CREATE INDEX deliveries_lease ON deliveries (lease_until) WHERE state = 'leased';

  CREATE TABLE files (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    file_id TEXT COLLATE "C" NOT NULL UNIQUE,
    name TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    content_type TEXT NOT NULL,
    metadata TEXT NOT NULL,
    node_id TEXT,
    task_id TEXT COLLATE "C",
    uploaded_at BIGINT NOT NULL
  );
  CREATE INDEX files_task ON files (task_id, seq) WHERE task_id IS NOT NULL;

  CREATE TABLE events (
    id BIGINT PRIMARY KEY,                   -- given by the hub, under the write lock (store/postgres/group-commit.ts)
    at BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    node_id TEXT COLLATE "C",
    task_id TEXT,
    data TEXT NOT NULL
  );
  CREATE INDEX events_kind ON events (kind, id);

  CREATE TABLE answers (
    scope TEXT COLLATE "C" PRIMARY KEY,
    body_hash TEXT NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    stored_at BIGINT NOT NULL
  );
  CREATE INDEX answers_age ON answers (stored_at);

  CREATE TABLE keys (
    key_id TEXT COLLATE "C" PRIMARY KEY,
    role TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    variant TEXT,
    node_id TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
  );

  CREATE TABLE identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    database_id TEXT NOT NULL
  );
  INSERT INTO identity VALUES (1, replace(gen_random_uuid()::text, '-', ''));

  CREATE TABLE blobs (
    blob_id TEXT COLLATE "C" PRIMARY KEY,
    size_bytes BIGINT,                       -- NULL: not finished
    touched_at TIMESTAMPTZ NOT NULL          -- when its hub last told that it is being written
  );
  -- what is looked at together for bytes without a record (postgres.ts of blobs/)
  CREATE INDEX blobs_shelf ON blobs (right(blob_id, 2));
  CREATE INDEX blobs_unfinished ON blobs (touched_at) WHERE size_bytes IS NULL;
  CREATE TABLE blob_chunks (
    blob_id TEXT COLLATE "C" NOT NULL REFERENCES blobs ON DELETE CASCADE,
    n INTEGER NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (blob_id, n)
  );
  -- As they are: most files that are large are compressed already.
  ALTER TABLE blob_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

  -- The hubs, and which group of each was the last to be committed (postgres.ts).
  CREATE TABLE hubs (
    hub_id TEXT COLLATE "C" PRIMARY KEY,
    last_group BIGINT NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL
  );

  -- Whose the periodic work is (store/postgres/leader-election.ts).
  CREATE TABLE turn (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    holder TEXT NOT NULL,
    renewed_at TIMESTAMPTZ NOT NULL,
    until TIMESTAMPTZ NOT NULL
  );
  INSERT INTO turn VALUES (1, '', '-infinity', '-infinity');
  `,
  `
  ALTER TABLE nodes
    ADD COLUMN last_entry TEXT COLLATE "C",
    ADD COLUMN entries BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN balance_micro BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN unfiled TEXT NOT NULL DEFAULT '',
    ADD COLUMN held TEXT NOT NULL DEFAULT '';
  ALTER TABLE tasks ADD COLUMN listed INTEGER NOT NULL DEFAULT 1;
  UPDATE nodes SET last_entry = l.entry_id, entries = l.n, balance_micro = l.balance_micro
    FROM (SELECT DISTINCT ON (node_id) * FROM ledger ORDER BY node_id, n DESC) AS l WHERE l.node_id = nodes.node_id;
  DROP INDEX nodes_top;
  DROP INDEX tasks_held;
  CREATE INDEX tasks_held ON tasks (assigned_node, seq) WHERE status = 'assigned' AND listed = 1;

  CREATE TABLE completions (
    node_id TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (node_id, seq)
  );
  INSERT INTO completions SELECT assigned_node, seq FROM tasks WHERE status = 'completed';
  DROP INDEX tasks_done;

  CREATE TABLE ledger_by_arrival (
    entry_id TEXT COLLATE "C" PRIMARY KEY,
    previous TEXT COLLATE "C",
    node_id TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL,
    amount_micro BIGINT NOT NULL,
    balance_micro BIGINT NOT NULL,
    kind TEXT NOT NULL,
    task_id TEXT,
    at BIGINT NOT NULL
  );
  INSERT INTO ledger_by_arrival
    SELECT entry_id, lag(entry_id) OVER (PARTITION BY node_id ORDER BY n), node_id, n, amount_micro, balance_micro,
      kind, task_id, at
    FROM ledger ORDER BY entry_id COLLATE "C";
  DROP TABLE ledger;
  ALTER TABLE ledger_by_arrival RENAME TO ledger;
  ALTER INDEX ledger_by_arrival_pkey RENAME TO ledger_pkey;
  CREATE UNIQUE INDEX ledger_marks ON ledger (node_id, n) WHERE n % 64 = 0;
  CREATE UNIQUE INDEX ledger_signin ON ledger (node_id, (at / 86400000)) WHERE kind = 'signin';
  `,
  `
  ALTER TABLE nodes ADD COLUMN seq BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE;
  CREATE TABLE beats (
    seq BIGINT PRIMARY KEY CHECK (seq > 0),
    last_heartbeat_at BIGINT NOT NULL,
    lease_until BIGINT NOT NULL
  );
  INSERT INTO beats SELECT seq, last_heartbeat_at, lease_until FROM nodes ORDER BY seq;
  ALTER TABLE nodes DROP COLUMN last_heartbeat_at, DROP COLUMN lease_until;
  `,
  `
  DROP INDEX tasks_held, ledger_marks;
  DROP TABLE completions;
  ALTER TABLE nodes DROP COLUMN held, DROP COLUMN unfiled, DROP COLUMN last_entry;
  ALTER TABLE tasks DROP COLUMN listed;
  ALTER TABLE ledger DROP COLUMN previous;
  CREATE INDEX tasks_held ON tasks (assigned_node, seq) WHERE status = 'assigned';
  CREATE INDEX tasks_done ON tasks (assigned_node, seq) WHERE status = 'completed';
  CREATE UNIQUE INDEX ledger_node ON ledger (node_id, n);
  `,
  `
  CREATE TABLE broadcasts (
    seq BIGINT PRIMARY KEY,
    write_until BIGINT,
    waiting BIGINT NOT NULL,
    delivered BIGINT NOT NULL,
    acked BIGINT NOT NULL
  );
  INSERT INTO broadcasts
    SELECT m.seq, NULL, count(*) FILTER (WHERE d.state = 'waiting'), count(*) FILTER (WHERE d.state = 'gone'),
      count(*) FILTER (WHERE d.state = 'acked')
    FROM messages m LEFT JOIN deliveries d ON d.seq = m.seq WHERE m.to_node IS NULL GROUP BY m.seq;
  CREATE INDEX broadcasts_unfinished ON broadcasts (seq) WHERE write_until IS NOT NULL;
  CREATE INDEX deliveries_parked ON deliveries (to_node, seq) WHERE state = 'parked';
  `,
  `
  ALTER TABLE nodes
    ADD COLUMN auto_assign INTEGER NOT NULL DEFAULT 1,
    ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
  UPDATE nodes SET auto_assign = 0 WHERE variant = 'A';
  DROP INDEX nodes_available;
  CREATE INDEX nodes_available ON nodes (tasks_assigned, idle_since, node_id) WHERE online = 1 AND auto_assign = 1;
  CREATE INDEX nodes_deleted ON nodes (node_id) WHERE deleted = 1;
  ALTER TABLE tasks ADD COLUMN result_extra TEXT;
  `,
  `
  -- What service/same-secrets.ts compares; NULL when the hub has ended.
  ALTER TABLE hubs ADD COLUMN marks TEXT;
  `,
  `
  -- Stored answers are bounded for each key and in all: whose an answer is, and how much it takes.
  ALTER TABLE answers ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
  ALTER TABLE answers ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
  UPDATE answers SET key_id = split_part(scope, ' ', 1), bytes = octet_length(scope) + octet_length(body);
  -- the sum of a key's answers, and its oldest
  CREATE INDEX answers_key ON answers (key_id, stored_at, scope, bytes);
  `,
  `
  ALTER TABLE nodes ADD COLUMN draining INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE tasks
    ADD COLUMN failures INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN max_attempts INTEGER,
    ADD COLUMN backoff_ms INTEGER NOT NULL DEFAULT 5000,
    ADD COLUMN timeout_ms BIGINT,
    ADD COLUMN lease_until BIGINT,
    ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN not_before BIGINT,
    ADD COLUMN expires_at BIGINT,
    ADD COLUMN depends_on TEXT,
    ADD COLUMN unmet INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN has_dependents INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN scheduled INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN started_at BIGINT,
    ADD COLUMN progress TEXT,
    ADD COLUMN failure TEXT;
  ALTER TABLE task_totals ADD COLUMN failed BIGINT NOT NULL DEFAULT 0;
  DROP INDEX tasks_pool, tasks_pool_type;
  CREATE INDEX tasks_pool ON tasks (balanced, priority, seq) WHERE status = 'open' AND scheduled = 0;
  CREATE INDEX tasks_pool_type ON tasks (balanced, task_type, priority, seq) WHERE status = 'open' AND scheduled = 0;
  CREATE INDEX tasks_scheduled ON tasks (not_before) WHERE scheduled = 1 AND unmet = 0;
  CREATE INDEX tasks_lease ON tasks (lease_until) WHERE lease_until IS NOT NULL;
  CREATE INDEX tasks_expiring ON tasks (status, expires_at)
    WHERE status IN ('open', 'assigned') AND expires_at IS NOT NULL;

  CREATE TABLE dependencies (
    task_id TEXT COLLATE "C" NOT NULL,
    depends_on TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (task_id, depends_on)
  );
  CREATE INDEX dependencies_of ON dependencies (depends_on);
  CREATE TABLE settlements (
    task_id TEXT COLLATE "C" PRIMARY KEY,
    outcome TEXT NOT NULL
  );
  `,
  `
  CREATE INDEX tasks_gifts ON tasks (assigned_node, priority, seq) WHERE status = 'assigned' AND started_at IS NULL;
  `,
  `
  -- One index for both filters, where SQLite has two: PostgreSQL writes a new entry into every index at each update of a
  -- task. A search by type alone reads all entries of a block.
  CREATE INDEX tasks_filter ON tasks ((seq / 512), creator_node, task_type, seq)
    WHERE creator_node IS NOT NULL OR task_type <> '';
  `,
  `
  CREATE TABLE minutes (
    at BIGINT NOT NULL,
    hub TEXT COLLATE "C" NOT NULL,
    numbers TEXT NOT NULL,
    PRIMARY KEY (at, hub)
  );
  `,
  `
  -- 1: the key of the request was bound to the node that did it
  ALTER TABLE events ADD COLUMN verified INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE messages ADD COLUMN verified INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE tasks ADD COLUMN result_verified INTEGER NOT NULL DEFAULT 0;
  `,
  `
  CREATE TABLE file_totals (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    files BIGINT NOT NULL,
    bytes BIGINT NOT NULL
  );
  INSERT INTO file_totals SELECT 1, count(*), coalesce(sum(size_bytes), 0) FROM files;
  `,
  `
  ALTER TABLE tasks ADD COLUMN a2a_caller TEXT COLLATE "C";
  ALTER TABLE tasks ADD COLUMN a2a_ids TEXT;
  CREATE INDEX tasks_a2a ON tasks (a2a_caller, updated_at, seq) WHERE a2a_caller IS NOT NULL;
  `,
  `
  ALTER TABLE tasks ADD COLUMN kept_bytes BIGINT NOT NULL DEFAULT 0;
  ALTER TABLE files ADD COLUMN kept_bytes BIGINT NOT NULL DEFAULT 0;
  ALTER TABLE messages ADD COLUMN kept_bytes BIGINT NOT NULL DEFAULT 0;
  ALTER TABLE events ADD COLUMN kept_bytes BIGINT NOT NULL DEFAULT 0;
  CREATE TABLE quota_usage (
    node_id TEXT COLLATE "C" PRIMARY KEY,
    tasks BIGINT NOT NULL,
    bytes BIGINT NOT NULL
  );
  `,
  `
  DROP INDEX nodes_available;
  CREATE INDEX nodes_available ON nodes (tasks_assigned, idle_since, node_id)
    WHERE online = 1 AND auto_assign = 1 AND draining = 0 AND (max_tasks IS NULL OR tasks_assigned < max_tasks);
  CREATE TABLE answer_totals (
    key_id TEXT COLLATE "C" PRIMARY KEY,
    bytes BIGINT NOT NULL
  );
  INSERT INTO answer_totals SELECT key_id, sum(bytes) FROM answers GROUP BY key_id;
  CREATE FUNCTION answers_entered() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO answer_totals SELECT key_id, sum(bytes) FROM entered GROUP BY key_id
      ON CONFLICT (key_id) DO UPDATE SET bytes = answer_totals.bytes + excluded.bytes;
    RETURN NULL;
  END $$;
  CREATE FUNCTION answers_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE answer_totals t SET bytes = t.bytes + changed.bytes FROM (
      SELECT key_id, sum(bytes) AS bytes FROM (
        SELECT key_id, bytes FROM entered UNION ALL SELECT key_id, -bytes FROM gone) AS each
      GROUP BY key_id) AS changed
    WHERE t.key_id = changed.key_id;
    RETURN NULL;
  END $$;
  CREATE FUNCTION answers_left() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE answer_totals t SET bytes = t.bytes - changed.bytes
      FROM (SELECT key_id, sum(bytes) AS bytes FROM gone GROUP BY key_id) AS changed
    WHERE t.key_id = changed.key_id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER answers_entered AFTER INSERT ON answers REFERENCING NEW TABLE AS entered
    FOR EACH STATEMENT EXECUTE FUNCTION answers_entered();
  CREATE TRIGGER answers_changed AFTER UPDATE ON answers REFERENCING NEW TABLE AS entered OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION answers_changed();
  CREATE TRIGGER answers_left AFTER DELETE ON answers REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION answers_left();
  DROP INDEX answers_age;
  CREATE INDEX answers_age ON answers (stored_at, scope, bytes);
  `,
  `
  -- of a file of a task: 1: an output, attached by the node that held the task; 0: an input
  ALTER TABLE files ADD COLUMN output INTEGER NOT NULL DEFAULT 0;
  UPDATE files SET output = 1
    WHERE node_id IS NOT NULL AND node_id = (SELECT assigned_node FROM tasks t WHERE t.task_id = files.task_id);

  -- of a task that failed through its dependencies: the task at the root of it, which failed in another way or was deleted
  ALTER TABLE tasks ADD COLUMN broken_by TEXT COLLATE "C";
  WITH RECURSIVE
    broken(task_id, cause) AS (
      SELECT task_id,
        substr((failure::json ->> 'message'), 6, position(',' in (failure::json ->> 'message')) - 6)
      FROM tasks WHERE status = 'failed' AND (failure::json ->> 'kind') = 'dependency'),
    roots(task_id, root) AS (
      SELECT task_id, cause FROM broken WHERE cause NOT IN (SELECT task_id FROM broken)
      UNION ALL
      SELECT b.task_id, r.root FROM roots r JOIN broken b ON b.cause = r.task_id)
    UPDATE tasks SET broken_by = roots.root FROM roots WHERE tasks.task_id = roots.task_id;
  -- task/retry with with_dependents
  CREATE INDEX tasks_broken ON tasks (broken_by, seq) WHERE broken_by IS NOT NULL;
  `,
  `
  ALTER TABLE tasks
    ADD COLUMN max_run_ms BIGINT,
    ADD COLUMN run_until BIGINT,
    ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
  `,
  `
  CREATE INDEX events_task ON events (task_id, id) WHERE task_id IS NOT NULL;
  ALTER TABLE tasks ADD COLUMN failed_node TEXT COLLATE "C";
  UPDATE tasks SET failed_node = failure::json ->> 'nodeId' WHERE status = 'failed';
  CREATE INDEX tasks_failed ON tasks (failed_node, seq) WHERE status = 'failed';
  `,
  `
  ALTER TABLE tasks ADD COLUMN earlier_failures TEXT;
  ALTER TABLE tasks ADD COLUMN checkpoint_bytes BIGINT NOT NULL DEFAULT 0;
  CREATE TABLE checkpoints (
    task_id TEXT COLLATE "C" PRIMARY KEY,
    data TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    node_id TEXT NOT NULL,
    at BIGINT NOT NULL
  );
  `,
  `
  ALTER TABLE messages
    ADD COLUMN reply_to TEXT COLLATE "C",
    ADD COLUMN thread TEXT COLLATE "C";
  CREATE INDEX messages_thread ON messages (thread, seq) WHERE thread IS NOT NULL;
  ALTER TABLE tasks ADD COLUMN creator_verified INTEGER NOT NULL DEFAULT 0;
  `,
  `
  ALTER TABLE tasks ADD COLUMN has_output INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE outputs (
    task_id TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    node_id TEXT COLLATE "C" NOT NULL,
    bytes BIGINT NOT NULL,
    kept_bytes BIGINT NOT NULL,
    begun_at BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (task_id, epoch)
  );
  CREATE TABLE output_blocks (
    task_id TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    n BIGINT NOT NULL,
    start BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (task_id, epoch, n)
  );
  `,
  `
  ALTER TABLE tasks ADD COLUMN questions TEXT;
  CREATE TABLE questions (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    question_id TEXT COLLATE "C" NOT NULL UNIQUE,
    task_id TEXT COLLATE "C" NOT NULL,
    question TEXT NOT NULL,
    choices TEXT,
    schema TEXT,
    asked_by TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    asked_at BIGINT NOT NULL,
    until BIGINT NOT NULL,
    state TEXT NOT NULL,
    answer TEXT,
    answered_by TEXT,
    answered_at BIGINT,
    verified INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX questions_task ON questions (task_id, seq);
  CREATE INDEX questions_open ON questions (until, seq) WHERE state = 'open';
  `,
  `
  CREATE TABLE schedules (
    name TEXT COLLATE "C" PRIMARY KEY,
    timing TEXT NOT NULL,
    task TEXT NOT NULL,
    creator_node TEXT COLLATE "C",
    overlap TEXT NOT NULL,
    catch_up TEXT NOT NULL,
    jitter_ms BIGINT NOT NULL,
    until BIGINT,
    paused INTEGER NOT NULL,
    next_at BIGINT,
    last_task_id TEXT COLLATE "C",
    last_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
  );
  CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
  ALTER TABLE tasks
    ADD COLUMN schedule TEXT COLLATE "C",
    ADD COLUMN schedule_at BIGINT;
  CREATE INDEX tasks_schedule ON tasks (schedule, status) WHERE schedule IS NOT NULL;
  `,
  `
  -- what workers report that their tasks have used, its sum by task (NULL: nothing), and what a task may cost
  ALTER TABLE tasks ADD COLUMN spent TEXT;
  ALTER TABLE tasks ADD COLUMN max_cost_micro BIGINT;
  CREATE TABLE usage_reports (
    task_id TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    node_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    cost_micro BIGINT,
    PRIMARY KEY (task_id, epoch, seq)
  );
  -- the same by UTC day: of the hub, of each node, creator, type and model
  CREATE TABLE usage_sums (
    scope TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    reports BIGINT NOT NULL,
    unpriced BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    cost_micro BIGINT NOT NULL,
    PRIMARY KEY (scope, value, day)
  );
  CREATE TABLE budgets (
    scope TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    per TEXT COLLATE "C" NOT NULL,
    cost_micro BIGINT,
    tokens BIGINT,
    on_limit TEXT NOT NULL,
    warned_in BIGINT,
    exceeded_in BIGINT,
    PRIMARY KEY (scope, value, per)
  );
  `,
  `
  CREATE TABLE notes (
    key TEXT COLLATE "C" PRIMARY KEY,
    version BIGINT NOT NULL,
    node_id TEXT COLLATE "C",
    verified INTEGER NOT NULL,
    bytes BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    content TEXT NOT NULL
  );
  CREATE INDEX notes_sizes ON notes (node_id, bytes);
  CREATE TABLE leases (
    node_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    task_id TEXT COLLATE "C" NOT NULL,
    shared INTEGER NOT NULL,
    is_glob INTEGER NOT NULL,
    fencing BIGINT NOT NULL,
    ttl_ms BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    acquired_at BIGINT NOT NULL,
    PRIMARY KEY (node_id, name, task_id)
  );
  CREATE INDEX leases_name ON leases (name);
  CREATE INDEX leases_globs ON leases (is_glob) WHERE is_glob = 1;
  CREATE INDEX leases_task ON leases (task_id);
  CREATE TABLE fencing (one INTEGER PRIMARY KEY CHECK (one = 1), last BIGINT NOT NULL);
  INSERT INTO fencing VALUES (1, 0);
  ALTER TABLE tasks ADD COLUMN has_leases INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE nodes ADD COLUMN has_leases INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- how long a task is kept after its end, and until when
  ALTER TABLE tasks ADD COLUMN retain_ms BIGINT;
  ALTER TABLE tasks ADD COLUMN retain_until BIGINT;
  CREATE INDEX tasks_retained ON tasks (retain_until) WHERE retain_until IS NOT NULL;
  `,
  `
  ALTER TABLE tasks ADD COLUMN task_group TEXT COLLATE "C";
  ALTER TABLE tasks ADD COLUMN tags TEXT COLLATE "C";
  CREATE INDEX tasks_group ON tasks (task_group, status, seq) WHERE task_group IS NOT NULL;
  CREATE INDEX tasks_group_updated ON tasks (task_group, status, updated_at) WHERE task_group IS NOT NULL;
  CREATE INDEX tasks_group_lux ON tasks (task_group, status, lux_reward_micro)
    WHERE task_group IS NOT NULL AND lux_reward_micro > 0;
  CREATE TABLE group_endings (task_group TEXT COLLATE "C" PRIMARY KEY NOT NULL);
  `,
  `
  -- a key that at most one unfinished task has, until when a task holds it at least, and whether it runs when one that it
  -- depends on has failed
  ALTER TABLE tasks ADD COLUMN unique_key TEXT;
  ALTER TABLE tasks ADD COLUMN unique_until BIGINT;
  ALTER TABLE tasks ADD COLUMN on_dependency TEXT;
  CREATE INDEX tasks_unique ON tasks (unique_key, status, seq) WHERE unique_key IS NOT NULL;
  CREATE INDEX tasks_unique_until ON tasks (unique_key, unique_until) WHERE unique_until IS NOT NULL;
  `,
  `
  CREATE INDEX tasks_failed_at ON tasks (status, updated_at, seq) WHERE status = 'failed';
  `,
  `
  CREATE INDEX deliveries_parked_all ON deliveries (state, seq) WHERE state = 'parked';
  `,
  `
  CREATE TABLE ledger_in_order (
    seq BIGINT PRIMARY KEY,                  -- given by the rules, under the write lock
    entry_id TEXT NOT NULL,
    from_account TEXT,
    to_account TEXT,
    node_id TEXT COLLATE "C",
    n BIGINT,
    amount_micro BIGINT NOT NULL,
    balance_micro BIGINT,
    kind TEXT NOT NULL,
    task_id TEXT,
    at BIGINT NOT NULL,
    hash TEXT,
    CHECK ((node_id IS NULL) = (to_account IS NOT NULL)),
    CHECK ((node_id IS NULL) = (n IS NULL)),
    CHECK ((node_id IS NULL) = (balance_micro IS NULL))
  );
  INSERT INTO ledger_in_order
    SELECT row_number() OVER (ORDER BY entry_id COLLATE "C"), entry_id, NULL, NULL, node_id, n, amount_micro,
      balance_micro, kind, task_id, at, NULL
    FROM ledger;
  DROP TABLE ledger;
  ALTER TABLE ledger_in_order RENAME TO ledger;
  ALTER INDEX ledger_in_order_pkey RENAME TO ledger_pkey;
  CREATE UNIQUE INDEX ledger_node ON ledger (node_id, n);
  CREATE UNIQUE INDEX ledger_signin ON ledger (node_id, (at / 86400000)) WHERE kind = 'signin';
  ALTER TABLE tasks ADD COLUMN paid_seq BIGINT;
  UPDATE tasks SET paid_seq = l.seq
    FROM ledger l WHERE l.kind = 'reward' AND l.task_id = tasks.task_id;
  `,
  `
  CREATE INDEX tasks_waiting ON tasks (task_type) WHERE scheduled = 1;
  `,
  `
  CREATE TABLE periods (
    step_ms BIGINT NOT NULL,
    at BIGINT NOT NULL,
    numbers TEXT NOT NULL,
    PRIMARY KEY (step_ms, at)
  );
  `,
  `
  -- invitations to nodes, by the hash of their token
  CREATE TABLE invitations (
    token_hash TEXT COLLATE "C" PRIMARY KEY,
    invitation_id TEXT COLLATE "C" NOT NULL,
    node_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    key_id TEXT COLLATE "C"
  );
  CREATE INDEX invitations_id ON invitations (invitation_id);
  `,
  `
  -- the webhooks; filter is JSON, and push too (a push notification config of A2A, NULL: it is none)
  CREATE TABLE webhooks (
    name TEXT COLLATE "C" PRIMARY KEY,
    webhook_id TEXT NOT NULL,
    revision BIGINT NOT NULL,
    url TEXT NOT NULL,
    format TEXT NOT NULL,
    filter TEXT NOT NULL,
    push TEXT,
    push_task_id TEXT COLLATE "C",
    secret TEXT,
    cursor_id BIGINT NOT NULL,             -- the last event that needs no delivery
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    failing_since BIGINT,
    next_at BIGINT,
    last_error TEXT,
    delivered_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
  );
  CREATE INDEX webhooks_push ON webhooks (push_task_id, name) WHERE push_task_id IS NOT NULL;
  CREATE INDEX webhooks_suspended ON webhooks (state) WHERE state = 'suspended';
  `,
  `
  -- what a task requires of its node, the key of its limit, its special lane (NULL: the plain one of its type), and the
  -- key under which it is counted while it is assigned
  ALTER TABLE tasks ADD COLUMN requires TEXT;
  ALTER TABLE tasks ADD COLUMN limit_key TEXT COLLATE "C";
  ALTER TABLE tasks ADD COLUMN lane TEXT COLLATE "C";
  ALTER TABLE tasks ADD COLUMN counts_for TEXT COLLATE "C";
  ALTER TABLE nodes ADD COLUMN resources TEXT;
  -- the backlog: the plain lanes, and the special ones
  DROP INDEX tasks_pool;
  DROP INDEX tasks_pool_type;
  CREATE INDEX tasks_pool ON tasks (balanced, priority, seq)
    WHERE status = 'open' AND scheduled = 0 AND lane IS NULL;
  CREATE INDEX tasks_pool_type ON tasks (balanced, task_type, priority, seq)
    WHERE status = 'open' AND scheduled = 0 AND lane IS NULL;
  CREATE INDEX tasks_pool_lane ON tasks (balanced, lane, priority, seq)
    WHERE status = 'open' AND scheduled = 0 AND lane IS NOT NULL;
  -- which special lanes have unfinished tasks
  CREATE INDEX tasks_lanes ON tasks (status, lane) WHERE lane IS NOT NULL AND status IN ('open', 'assigned');
  -- what the tasks of a node use, and how many run under a limit
  CREATE INDEX tasks_using ON tasks (assigned_node) WHERE status = 'assigned' AND requires IS NOT NULL;
  CREATE INDEX tasks_counted ON tasks (counts_for) WHERE status = 'assigned' AND counts_for IS NOT NULL;
  CREATE TABLE pauses (
    scope TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    reason TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (scope, value)
  );
  CREATE TABLE limits (
    limit_key TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    running BIGINT,
    per_minute BIGINT,
    held_until BIGINT
  );
  -- the hand-outs of the last minute, of the keys with a limit per minute
  CREATE TABLE limit_uses (
    limit_key TEXT COLLATE "C" NOT NULL,
    second BIGINT NOT NULL,
    uses BIGINT NOT NULL,
    PRIMARY KEY (limit_key, second)
  );
  `,
  `
  ALTER TABLE tasks ADD COLUMN review TEXT;
  ALTER TABLE tasks ADD COLUMN review_until BIGINT;
  CREATE INDEX tasks_in_review ON tasks (review_until, seq) WHERE review_until IS NOT NULL;
  CREATE INDEX tasks_group_in_review ON tasks (task_group, review_until, lux_reward_micro)
    WHERE review_until IS NOT NULL AND task_group IS NOT NULL;
  CREATE INDEX tasks_unique_in_review ON tasks (unique_key, seq)
    WHERE review_until IS NOT NULL AND unique_key IS NOT NULL;
  ALTER TABLE tasks ADD COLUMN quorum TEXT;
  ALTER TABLE tasks ADD COLUMN child TEXT;
  ALTER TABLE tasks ADD COLUMN parent_task TEXT COLLATE "C";
  ALTER TABLE tasks ADD COLUMN not_nodes TEXT COLLATE "C";
  CREATE INDEX tasks_children ON tasks (parent_task) WHERE parent_task IS NOT NULL;
  CREATE TABLE family_checks (task_id TEXT COLLATE "C" PRIMARY KEY NOT NULL);
  `,
  `
  -- what a key may promise as rewards per UTC day, what it has promised, and the key that a task was created with
  ALTER TABLE keys ADD COLUMN mint_micro BIGINT;
  CREATE TABLE mints (
    key_id TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    micro BIGINT NOT NULL,
    PRIMARY KEY (key_id, day)
  );
  ALTER TABLE tasks ADD COLUMN creator_key TEXT;
  `,
  `
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
  CREATE INDEX tasks_choosy ON tasks (seq) WHERE status = 'open' AND scheduled = 0 AND not_nodes IS NOT NULL;
  `,
  `
  -- the node that holds a limit key
  ALTER TABLE limits ADD COLUMN held_by TEXT COLLATE "C";
  `,
  `
  -- what a row counts against the quota of a node, and of which; for an event without a name, that of the event
  ALTER TABLE events ADD COLUMN kept_by TEXT COLLATE "C";
  ALTER TABLE schedules ADD COLUMN kept_by TEXT COLLATE "C";
  ALTER TABLE schedules ADD COLUMN kept_bytes BIGINT NOT NULL DEFAULT 0;
  ALTER TABLE webhooks ADD COLUMN kept_by TEXT COLLATE "C";
  ALTER TABLE webhooks ADD COLUMN kept_bytes BIGINT NOT NULL DEFAULT 0;
  ALTER TABLE notes ADD COLUMN kept_by TEXT COLLATE "C";
  ALTER TABLE notes ADD COLUMN kept_bytes BIGINT NOT NULL DEFAULT 0;
  -- the last of its times that got no task and an event of that
  ALTER TABLE schedules ADD COLUMN skip_logged_at BIGINT;
  `,
  `
  -- what the requests of other nodes have added to a task, until it ends
  ALTER TABLE tasks ADD COLUMN lent_bytes BIGINT NOT NULL DEFAULT 0;
  CREATE TABLE task_charges (
    task_id TEXT COLLATE "C" NOT NULL,
    node_id TEXT COLLATE "C" NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (task_id, node_id)
  );
  `,
  `
  -- when a hold began
  ALTER TABLE limits ADD COLUMN held_at BIGINT;
  `,
  `
  -- a group of the keys of one node is its own: NAME/NODE; one that others have tasks in stays the hub's
  CREATE TABLE owned_groups AS
    SELECT task_group AS name, task_group || '/' || min(creator_node) AS owned FROM tasks WHERE task_group IS NOT NULL
    GROUP BY task_group HAVING min(creator_verified) = 1 AND min(creator_node) = max(creator_node);
  ALTER TABLE owned_groups ADD PRIMARY KEY (name);
  UPDATE tasks SET task_group = (SELECT owned FROM owned_groups WHERE name = task_group) WHERE task_group IN (SELECT name FROM owned_groups);
  UPDATE tasks SET child = jsonb_set(child::jsonb, '{group}', (SELECT to_jsonb(owned) FROM owned_groups WHERE name = child::jsonb ->> 'group'))::text
    WHERE child::jsonb ->> 'group' IN (SELECT name FROM owned_groups);
  UPDATE usage_sums SET value = (SELECT owned FROM owned_groups WHERE name = value)
    WHERE scope = 'group' AND value IN (SELECT name FROM owned_groups);
  UPDATE budgets SET value = (SELECT owned FROM owned_groups WHERE name = value) WHERE scope = 'group' AND value IN (SELECT name FROM owned_groups);
  UPDATE group_endings SET task_group = (SELECT owned FROM owned_groups WHERE name = task_group) WHERE task_group IN (SELECT name FROM owned_groups);
  UPDATE webhooks SET filter = jsonb_set(filter::jsonb, '{group}', (SELECT to_jsonb(owned) FROM owned_groups WHERE name = filter::jsonb ->> 'group'))::text
    WHERE filter::jsonb ->> 'group' IN (SELECT name FROM owned_groups);
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
    day BIGINT NOT NULL,
    node_id TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    reports BIGINT NOT NULL,
    unpriced BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    cost_micro BIGINT NOT NULL,
    kept_bytes BIGINT NOT NULL,
    PRIMARY KEY (day, node_id, scope, value)
  );
  CREATE INDEX usage_sums_days ON usage_sums (day);
  `,
  `
  -- how many push configs the keys of a node have saved
  CREATE INDEX webhooks_push_kept ON webhooks (kept_by) WHERE push_task_id IS NOT NULL;
  `,
  `
  -- A task is several rows: its state, which each transition writes; its specification and its result, each written
  -- once; and what only some tasks have.
  CREATE TABLE task_specs AS SELECT seq AS task_seq, max_attempts, backoff_ms, description, depends_on FROM tasks;
  ALTER TABLE task_specs ADD PRIMARY KEY (task_seq), ALTER COLUMN backoff_ms SET NOT NULL, ALTER COLUMN description SET NOT NULL;
  CREATE TABLE task_results AS SELECT seq AS task_seq, problem, improvement, lesson, result_extra FROM tasks WHERE problem IS NOT NULL;
  ALTER TABLE task_results ADD PRIMARY KEY (task_seq), ALTER COLUMN problem SET NOT NULL,
    ALTER COLUMN improvement SET NOT NULL, ALTER COLUMN lesson SET NOT NULL;
  -- only tasks that use a feature have a row; status to paid_seq are copies for the indexes
  CREATE TABLE task_features AS
    SELECT seq AS task_seq, status, updated_at, assigned_node, lux_reward_micro, paid_seq,
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
  ALTER TABLE task_features ADD PRIMARY KEY (task_seq), ALTER COLUMN status SET NOT NULL,
    ALTER COLUMN updated_at SET NOT NULL, ALTER COLUMN lux_reward_micro SET NOT NULL,
    ALTER COLUMN has_leases SET NOT NULL, ALTER COLUMN has_leases SET DEFAULT 0,
    ALTER COLUMN has_output SET NOT NULL, ALTER COLUMN has_output SET DEFAULT 0,
    ALTER COLUMN checkpoint_bytes SET NOT NULL, ALTER COLUMN checkpoint_bytes SET DEFAULT 0,
    ALTER COLUMN kept_bytes SET NOT NULL, ALTER COLUMN kept_bytes SET DEFAULT 0,
    ALTER COLUMN lent_bytes SET NOT NULL, ALTER COLUMN lent_bytes SET DEFAULT 0;
  -- Two columns become others in the statement that drops those that have moved: it writes each row once, without them.
  DROP INDEX tasks_pool, tasks_pool_type, tasks_pool_lane, tasks_scheduled, tasks_waiting, tasks_choosy, tasks_retained,
    tasks_expiring, tasks_held, tasks_done, tasks_failed, tasks_counted;
  ALTER TABLE tasks
    DROP COLUMN max_attempts, DROP COLUMN backoff_ms, DROP COLUMN description,
    DROP COLUMN depends_on, DROP COLUMN problem, DROP COLUMN improvement, DROP COLUMN lesson,
    DROP COLUMN result_extra, DROP COLUMN creator_key, DROP COLUMN schedule, DROP COLUMN schedule_at,
    DROP COLUMN retain_ms, DROP COLUMN on_dependency, DROP COLUMN task_group,
    DROP COLUMN tags, DROP COLUMN unique_key, DROP COLUMN unique_until, DROP COLUMN requires,
    DROP COLUMN questions, DROP COLUMN review, DROP COLUMN review_until, DROP COLUMN quorum, DROP COLUMN child,
    DROP COLUMN parent_task, DROP COLUMN not_nodes, DROP COLUMN spent, DROP COLUMN max_cost_micro,
    DROP COLUMN has_leases, DROP COLUMN has_output, DROP COLUMN checkpoint_bytes, DROP COLUMN earlier_failures,
    DROP COLUMN kept_bytes, DROP COLUMN lent_bytes, DROP COLUMN broken_by, DROP COLUMN a2a_caller,
    DROP COLUMN a2a_ids,
    ALTER COLUMN scheduled DROP DEFAULT, ALTER COLUMN scheduled DROP NOT NULL,
    ALTER COLUMN scheduled TYPE BIGINT USING
      CASE WHEN status <> 'open' THEN NULL WHEN scheduled = 1 THEN 0 WHEN lane IS NULL THEN 1 ELSE 2 END,
    ALTER COLUMN retain_until TYPE BIGINT USING least(CASE WHEN scheduled = 1 AND unmet = 0 THEN not_before END,
      CASE WHEN status IN ('open', 'assigned') THEN expires_at END);
  ALTER TABLE tasks RENAME COLUMN scheduled TO ready;
  ALTER TABLE tasks RENAME COLUMN retain_until TO due_at;
  -- what a node holds, and what it has done; what failed at a node
  CREATE INDEX tasks_node ON tasks (assigned_node, status, seq) WHERE assigned_node IS NOT NULL;
  CREATE INDEX tasks_failed ON tasks (failed_node, seq) WHERE failed_node IS NOT NULL;
  CREATE INDEX tasks_due ON tasks (due_at) WHERE due_at IS NOT NULL;
  -- the backlog: of all types, of one type, of a special lane
  CREATE INDEX tasks_pool ON tasks (balanced, priority, seq) WHERE ready = 1;
  CREATE INDEX tasks_pool_type ON tasks (balanced, task_type, priority, seq) WHERE ready = 1;
  CREATE INDEX tasks_pool_lane ON tasks (balanced, lane, priority, seq) WHERE ready = 2;
  -- what runs under a limit key
  CREATE INDEX tasks_counted ON tasks (counts_for) WHERE counts_for IS NOT NULL;
  -- stats/types: what waits
  CREATE INDEX tasks_waiting ON tasks (task_type) WHERE ready = 0;
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
  `,
  `
  -- What the tasks of a group add up to: in a row that each step writes, in place of indexes of all its tasks.
  UPDATE task_features q SET quorum = jsonb_set(quorum::jsonb, '{paidMicro}', to_jsonb((
      SELECT coalesce(sum(c.lux_reward_micro), 0)::BIGINT FROM task_features c
      WHERE c.paid_seq IS NOT NULL AND c.parent_task = (SELECT task_id FROM tasks WHERE seq = q.task_seq))))::text
    WHERE quorum IS NOT NULL AND status = 'completed';
  CREATE TABLE group_totals (
    task_group TEXT COLLATE "C" PRIMARY KEY,
    open BIGINT NOT NULL,
    assigned BIGINT NOT NULL,
    completed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    cancelled BIGINT NOT NULL,
    in_review BIGINT NOT NULL,
    lux BIGINT NOT NULL,
    lux_micro BIGINT NOT NULL,
    paid BIGINT NOT NULL,
    paid_micro BIGINT NOT NULL,
    first_created_at BIGINT NOT NULL,
    last_created_at BIGINT NOT NULL,
    last_updated_at BIGINT NOT NULL
  );
  INSERT INTO group_totals
    SELECT task_group, CAST(sum(CASE WHEN status = 'open' THEN 1 ELSE 0 END) AS BIGINT), CAST(sum(CASE WHEN status = 'assigned' THEN 1 ELSE 0 END) AS BIGINT),
      CAST(sum(CASE WHEN status = 'completed' THEN 1 ELSE 0 END) AS BIGINT), CAST(sum(CASE WHEN status = 'failed' AND NOT cancelled THEN 1 ELSE 0 END) AS BIGINT), CAST(sum(CASE WHEN cancelled THEN 1 ELSE 0 END) AS BIGINT),
      CAST(sum(CASE WHEN review_until IS NOT NULL THEN 1 ELSE 0 END) AS BIGINT), CAST(sum(lux_reward_micro / 1000000) AS BIGINT), CAST(sum(lux_reward_micro % 1000000) AS BIGINT),
      CAST(sum(paid / 1000000) AS BIGINT), CAST(sum(paid % 1000000) AS BIGINT), min(created_at), max(created_at), max(updated_at)
    FROM (
      SELECT f.task_group, t.status, f.review_until, t.lux_reward_micro, t.created_at, t.updated_at,
        t.status = 'failed' AND (t.failure LIKE '{"kind":"cancelled",%' OR t.failure LIKE '{"kind":"expired",%') AS cancelled,
        CASE WHEN t.status <> 'completed' THEN 0 WHEN t.paid_seq IS NOT NULL THEN t.lux_reward_micro
          ELSE coalesce((quorum::jsonb ->> 'paidMicro')::BIGINT, 0) END AS paid
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

/** Statements that take a lock until the transaction ends. Each schema has its own, because a database may have several. */
export const LOCK = { migrate: lockOf(1_819_637_861), write: lockOf(1_819_637_862) } as const;

/** LOCK.write with a parameter, which the driver pipelines. */
export const WRITE_LOCK = { sql: lockOf("$1::int"), params: [1_819_637_862] } as const;

/** Takes the write lock until the connection ends: no one else can write meanwhile. */
export const SESSION_WRITE_LOCK = lockOf(1_819_637_862, "pg_advisory_lock");

function lockOf(purpose: number | string, take = "pg_advisory_xact_lock"): string {
  return `SELECT ${take}(${purpose}, current_schema()::regnamespace::oid::int)`;
}

/** Of the processes that make a backup by schedule, one gets this lock, until its connection ends. */
export const TRY_BACKUP_LOCK = `${lockOf(1_819_637_863, "pg_try_advisory_lock")} AS taken`;

export async function hasTable(connection: Connection, name: string): Promise<boolean> {
  const sql = `SELECT to_regclass(quote_ident(current_schema()) || '.' || $1::text) IS NOT NULL AS there`;
  const [row] = await query(connection, sql, [name]);
  return Boolean(row?.["there"]);
}

/** Whether the leader lease is taken. One that lasts longer than a lease may is of another time: the clock was set back. */
export const IS_TAKEN = `
  (until > clock_timestamp() AND until <= clock_timestamp() + interval '${LEADER_LEASE_MS} milliseconds')`;

/** Whether a hub runs on a database that has the tables: then one of them is the leader. */
export async function isHubRunning(connection: Connection): Promise<boolean> {
  const [row] = await query(connection, `SELECT ${IS_TAKEN} AS taken FROM turn`);
  return Boolean(row?.["taken"]);
}

/**
 * Migrates the schema to the newest version. Hubs that start at the same moment wait for one another.
 * A hub of an older luxhub that is frozen counts as gone. When it wakes, it finds another schema (isMigrated()); the write
 * lock is for a group of it that has checked the schema already.
 * @throws {Error} one line: the database is of a newer luxhub, or a hub of an older one runs on it, or a restore
 */
export async function migrate(pool: SQL, clock: Clock, info: Warn): Promise<void> {
  const startedMs = clock.timers();
  const from = await pool.begin((tx) => migrateWithin(tx, info));
  const to = POSTGRES_MIGRATIONS.length;
  const seconds = Math.round((clock.timers() - startedMs) / SECOND_MS);
  if (from > 0 && from < to) info("the database was migrated", { from, to, seconds });
}

/**
 * Migrates the schema in the caller's transaction. Returns the version that it found.
 * @param info gets a line before an older schema is migrated
 * @throws as migrate()
 */
export async function migrateWithin(tx: Connection, info: Warn = () => {}): Promise<number> {
  await query(tx, LOCK.migrate).catch((error: unknown) => {
    if (!isLockTimeout(error)) throw error;
    throw new Error(
      "a restore or a move into the database is running, or another hub migrates it: try again later",
    );
  });
  await tx.unsafe(`CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)`);
  const version = await schemaOf(tx);
  const known = POSTGRES_MIGRATIONS.length;
  if (version > known) {
    throw new Error(
      `The database is of a newer luxhub (schema ${version}, this one knows ${known}). Run that one.`,
    );
  }
  if (version > 0 && version < known && (await isHubRunning(tx))) {
    throw new Error(
      `a hub of an older luxhub is running on the database: stop all of them first (a killed one counts as running for ${LEADER_LEASE_MS / SECOND_MS} s)`,
    );
  }
  if (version > 0 && version < known) {
    info(MIGRATING, { from: version, to: known });
    await query(tx, LOCK.write);
  }
  for (const step of POSTGRES_MIGRATIONS.slice(version)) await tx.unsafe(step);
  if (version < known) await query(tx, `INSERT INTO schema_version VALUES ($1)`, [known]);
  return version;
}

/**
 * For a command that opens the database of running hubs; changes nothing. @throws {Error} one line: there is no hub, or
 * one of another schema
 */
export async function refuseOtherSchema(connection: Connection): Promise<void> {
  const version = (await hasTable(connection, "schema_version")) ? await schemaOf(connection) : 0;
  const known = POSTGRES_MIGRATIONS.length;
  if (version === known) return;
  throw new Error(
    version === 0
      ? "there is no hub in the database; start one on it first"
      : `the database is of schema ${version}, and this luxhub knows ${known}: use the one that the hubs run`,
  );
}

/** The schema of the database, as an expression. */
export const SCHEMA = `(SELECT coalesce(max(version), 0) FROM schema_version)`;

async function schemaOf(connection: Connection): Promise<number> {
  const [row] = await query(connection, `SELECT ${SCHEMA} AS version`);
  return Number(row?.["version"]);
}

/** Whether another luxhub has migrated the database while this hub runs. */
export const isMigrated = (schema: unknown): boolean => Number(schema) !== POSTGRES_MIGRATIONS.length;

/** What such a hub answers to everything from then on; the operator finds it in the log. */
export function schemaIsMigrated(): StoreUnavailable {
  return new StoreUnavailable(
    "A newer luxhub has migrated the database, and this hub neither reads nor writes it any more. Start the newer one in its place.",
  );
}
