-- A store of schema 53 on PostgreSQL.
CREATE FUNCTION answers_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN
    UPDATE answer_totals t SET bytes = t.bytes + changed.bytes FROM (
      SELECT key_id, sum(bytes) AS bytes FROM (
        SELECT key_id, bytes FROM entered UNION ALL SELECT key_id, -bytes FROM gone) AS each
      GROUP BY key_id) AS changed
    WHERE t.key_id = changed.key_id;
    RETURN NULL;
  END $$;
CREATE FUNCTION answers_entered() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN
    INSERT INTO answer_totals SELECT key_id, sum(bytes) FROM entered GROUP BY key_id
      ON CONFLICT (key_id) DO UPDATE SET bytes = answer_totals.bytes + excluded.bytes;
    RETURN NULL;
  END $$;
CREATE FUNCTION answers_left() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN
    UPDATE answer_totals t SET bytes = t.bytes - changed.bytes
      FROM (SELECT key_id, sum(bytes) AS bytes FROM gone GROUP BY key_id) AS changed
    WHERE t.key_id = changed.key_id;
    RETURN NULL;
  END $$;
CREATE TABLE answer_totals (
    key_id text NOT NULL COLLATE pg_catalog."C",
    bytes bigint NOT NULL
);
CREATE TABLE answers (
    scope text NOT NULL COLLATE pg_catalog."C",
    body_hash text NOT NULL,
    status integer NOT NULL,
    body text NOT NULL,
    stored_at bigint NOT NULL,
    key_id text DEFAULT ''::text NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL
);
CREATE TABLE beats (
    seq bigint NOT NULL,
    last_heartbeat_at bigint NOT NULL,
    lease_until bigint NOT NULL,
    CONSTRAINT beats_seq_check CHECK ((seq > 0))
);
CREATE TABLE blob_chunks (
    blob_id text NOT NULL COLLATE pg_catalog."C",
    n integer NOT NULL,
    bytes bytea NOT NULL
);
ALTER TABLE ONLY blob_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TABLE blobs (
    blob_id text NOT NULL COLLATE pg_catalog."C",
    size_bytes bigint,
    touched_at timestamp with time zone NOT NULL
);
CREATE TABLE broadcasts (
    seq bigint NOT NULL,
    write_until bigint,
    waiting bigint NOT NULL,
    delivered bigint NOT NULL,
    acked bigint NOT NULL
);
CREATE TABLE budgets (
    scope text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    per text NOT NULL COLLATE pg_catalog."C",
    cost_micro bigint,
    tokens bigint,
    on_limit text NOT NULL,
    warned_in bigint,
    exceeded_in bigint
);
CREATE TABLE checkpoints (
    task_id text NOT NULL COLLATE pg_catalog."C",
    data text NOT NULL,
    epoch bigint NOT NULL,
    node_id text NOT NULL,
    at bigint NOT NULL
);
CREATE TABLE deliveries (
    seq bigint NOT NULL,
    to_node text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    deliveries integer NOT NULL,
    lease_until bigint,
    broadcast integer NOT NULL
);
CREATE TABLE dependencies (
    task_id text NOT NULL COLLATE pg_catalog."C",
    depends_on text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE events (
    id bigint NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    node_id text COLLATE pg_catalog."C",
    task_id text,
    data text NOT NULL,
    verified integer DEFAULT 0 NOT NULL,
    kept_bytes bigint DEFAULT 0 NOT NULL,
    kept_by text COLLATE pg_catalog."C"
);
CREATE TABLE family_checks (
    task_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE fencing (
    one integer NOT NULL,
    last bigint NOT NULL,
    CONSTRAINT fencing_one_check CHECK ((one = 1))
);
CREATE TABLE file_totals (
    one integer NOT NULL,
    files bigint NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT file_totals_one_check CHECK ((one = 1))
);
CREATE TABLE files (
    seq bigint NOT NULL,
    file_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    size_bytes bigint NOT NULL,
    sha256 text NOT NULL,
    content_type text NOT NULL,
    metadata text NOT NULL,
    node_id text,
    task_id text COLLATE pg_catalog."C",
    uploaded_at bigint NOT NULL,
    kept_bytes bigint DEFAULT 0 NOT NULL,
    output integer DEFAULT 0 NOT NULL
);
ALTER TABLE files ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME files_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE group_endings (
    task_group text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE group_totals (
    task_group text NOT NULL COLLATE pg_catalog."C",
    open bigint NOT NULL,
    assigned bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL,
    in_review bigint NOT NULL,
    lux bigint NOT NULL,
    lux_micro bigint NOT NULL,
    paid bigint NOT NULL,
    paid_micro bigint NOT NULL,
    first_created_at bigint NOT NULL,
    last_created_at bigint NOT NULL,
    last_updated_at bigint NOT NULL
);
CREATE TABLE hubs (
    hub_id text NOT NULL COLLATE pg_catalog."C",
    last_group bigint NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    marks text
);
CREATE TABLE identity (
    one integer NOT NULL,
    database_id text NOT NULL,
    CONSTRAINT identity_one_check CHECK ((one = 1))
);
CREATE TABLE invitations (
    token_hash text NOT NULL COLLATE pg_catalog."C",
    invitation_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint,
    key_id text COLLATE pg_catalog."C"
);
CREATE TABLE keys (
    key_id text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL,
    hash text NOT NULL,
    variant text,
    node_id text,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    mint_micro bigint
);
CREATE TABLE leases (
    node_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    task_id text NOT NULL COLLATE pg_catalog."C",
    shared integer NOT NULL,
    is_glob integer NOT NULL,
    fencing bigint NOT NULL,
    ttl_ms bigint NOT NULL,
    lease_until bigint NOT NULL,
    acquired_at bigint NOT NULL
);
CREATE TABLE ledger (
    seq bigint NOT NULL,
    entry_id text NOT NULL,
    from_account text,
    to_account text,
    node_id text COLLATE pg_catalog."C",
    n bigint,
    amount_micro bigint NOT NULL,
    balance_micro bigint,
    kind text NOT NULL,
    task_id text,
    at bigint NOT NULL,
    hash text,
    CONSTRAINT ledger_in_order_check CHECK (((node_id IS NULL) = (to_account IS NOT NULL))),
    CONSTRAINT ledger_in_order_check1 CHECK (((node_id IS NULL) = (n IS NULL))),
    CONSTRAINT ledger_in_order_check2 CHECK (((node_id IS NULL) = (balance_micro IS NULL)))
);
CREATE TABLE limit_uses (
    limit_key text NOT NULL COLLATE pg_catalog."C",
    second bigint NOT NULL,
    uses bigint NOT NULL
);
CREATE TABLE limits (
    limit_key text NOT NULL COLLATE pg_catalog."C",
    running bigint,
    per_minute bigint,
    held_until bigint,
    held_by text COLLATE pg_catalog."C",
    held_at bigint
);
CREATE TABLE messages (
    seq bigint NOT NULL,
    message_id text NOT NULL COLLATE pg_catalog."C",
    from_node text NOT NULL COLLATE pg_catalog."C",
    to_node text COLLATE pg_catalog."C",
    type text NOT NULL,
    content text NOT NULL,
    require_ack integer NOT NULL,
    sent_at bigint NOT NULL,
    verified integer DEFAULT 0 NOT NULL,
    kept_bytes bigint DEFAULT 0 NOT NULL,
    reply_to text COLLATE pg_catalog."C",
    thread text COLLATE pg_catalog."C"
);
ALTER TABLE messages ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME messages_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE mints (
    key_id text NOT NULL COLLATE pg_catalog."C",
    day bigint NOT NULL,
    micro bigint NOT NULL
);
CREATE TABLE minutes (
    at bigint NOT NULL,
    hub text NOT NULL COLLATE pg_catalog."C",
    numbers text NOT NULL
);
CREATE TABLE node_sums (
    day bigint NOT NULL,
    node_id text NOT NULL COLLATE pg_catalog."C",
    scope text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    reports bigint NOT NULL,
    unpriced bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    cost_micro bigint NOT NULL,
    kept_bytes bigint NOT NULL
);
CREATE TABLE nodes (
    node_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    host text,
    port integer,
    capabilities text NOT NULL COLLATE pg_catalog."C",
    variant text NOT NULL,
    max_tasks integer,
    online integer NOT NULL,
    registered_at bigint NOT NULL,
    tasks_assigned bigint NOT NULL,
    tasks_completed bigint NOT NULL,
    lux_earned_micro bigint NOT NULL,
    idle_since bigint NOT NULL,
    entries bigint DEFAULT 0 NOT NULL,
    balance_micro bigint DEFAULT 0 NOT NULL,
    seq bigint NOT NULL,
    auto_assign integer DEFAULT 1 NOT NULL,
    deleted integer DEFAULT 0 NOT NULL,
    draining integer DEFAULT 0 NOT NULL,
    has_leases integer DEFAULT 0 NOT NULL,
    resources text
);
ALTER TABLE nodes ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME nodes_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE notes (
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    node_id text COLLATE pg_catalog."C",
    verified integer NOT NULL,
    bytes bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    content text NOT NULL,
    kept_by text COLLATE pg_catalog."C",
    kept_bytes bigint DEFAULT 0 NOT NULL
);
CREATE TABLE output_blocks (
    task_id text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    n bigint NOT NULL,
    start bigint NOT NULL,
    data text NOT NULL
);
CREATE TABLE outputs (
    task_id text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    node_id text NOT NULL COLLATE pg_catalog."C",
    bytes bigint NOT NULL,
    kept_bytes bigint NOT NULL,
    begun_at bigint NOT NULL,
    at bigint NOT NULL
);
CREATE TABLE pauses (
    scope text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    reason text,
    at bigint NOT NULL
);
CREATE TABLE periods (
    step_ms bigint NOT NULL,
    at bigint NOT NULL,
    numbers text NOT NULL
);
CREATE TABLE questions (
    seq bigint NOT NULL,
    question_id text NOT NULL COLLATE pg_catalog."C",
    task_id text NOT NULL COLLATE pg_catalog."C",
    question text NOT NULL,
    choices text,
    schema text,
    asked_by text NOT NULL,
    epoch bigint NOT NULL,
    asked_at bigint NOT NULL,
    until bigint NOT NULL,
    state text NOT NULL,
    answer text,
    answered_by text,
    answered_at bigint,
    verified integer DEFAULT 0 NOT NULL
);
ALTER TABLE questions ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME questions_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE quota_usage (
    node_id text NOT NULL COLLATE pg_catalog."C",
    tasks bigint NOT NULL,
    bytes bigint NOT NULL
);
CREATE TABLE schedules (
    name text NOT NULL COLLATE pg_catalog."C",
    timing text NOT NULL,
    task text NOT NULL,
    creator_node text COLLATE pg_catalog."C",
    overlap text NOT NULL,
    catch_up text NOT NULL,
    jitter_ms bigint NOT NULL,
    until bigint,
    paused integer NOT NULL,
    next_at bigint,
    last_task_id text COLLATE pg_catalog."C",
    last_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    kept_by text COLLATE pg_catalog."C",
    kept_bytes bigint DEFAULT 0 NOT NULL,
    skip_logged_at bigint
);
CREATE TABLE schema_version (
    version integer NOT NULL
);
CREATE TABLE settlements (
    task_id text NOT NULL COLLATE pg_catalog."C",
    outcome text NOT NULL
);
CREATE TABLE task_charges (
    task_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    bytes bigint NOT NULL
);
CREATE TABLE task_features (
    task_seq bigint NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    updated_at bigint NOT NULL,
    assigned_node text COLLATE pg_catalog."C",
    creator_key text,
    schedule text COLLATE pg_catalog."C",
    schedule_at bigint,
    retain_ms bigint,
    retain_until bigint,
    on_dependency text,
    task_group text COLLATE pg_catalog."C",
    tags text COLLATE pg_catalog."C",
    unique_key text,
    unique_until bigint,
    requires text,
    questions text,
    review text,
    review_until bigint,
    quorum text,
    child text,
    parent_task text COLLATE pg_catalog."C",
    not_nodes text COLLATE pg_catalog."C",
    spent text,
    max_cost_micro bigint,
    has_leases integer DEFAULT 0 NOT NULL,
    has_output integer DEFAULT 0 NOT NULL,
    checkpoint_bytes bigint DEFAULT 0 NOT NULL,
    earlier_failures text,
    kept_bytes bigint DEFAULT 0 NOT NULL,
    lent_bytes bigint DEFAULT 0 NOT NULL,
    broken_by text COLLATE pg_catalog."C",
    a2a_caller text COLLATE pg_catalog."C",
    a2a_ids text
);
CREATE TABLE task_results (
    task_seq bigint NOT NULL,
    problem text NOT NULL,
    improvement text NOT NULL,
    lesson text NOT NULL,
    result_extra text
);
CREATE TABLE task_specs (
    task_seq bigint NOT NULL,
    max_attempts integer,
    backoff_ms integer NOT NULL,
    description text NOT NULL,
    depends_on text
);
CREATE TABLE tasks (
    seq bigint NOT NULL,
    task_id text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL,
    task_type text NOT NULL COLLATE pg_catalog."C",
    priority integer NOT NULL,
    creator_node text,
    status text NOT NULL COLLATE pg_catalog."C",
    lux_reward_micro bigint NOT NULL,
    assigned_node text COLLATE pg_catalog."C",
    balanced integer NOT NULL,
    revoked_from text COLLATE pg_catalog."C",
    attempts integer NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    timeout_ms bigint,
    lease_until bigint,
    epoch bigint DEFAULT 0 NOT NULL,
    not_before bigint,
    expires_at bigint,
    unmet integer DEFAULT 0 NOT NULL,
    has_dependents integer DEFAULT 0 NOT NULL,
    ready bigint,
    started_at bigint,
    progress text,
    failure text,
    result_verified integer DEFAULT 0 NOT NULL,
    max_run_ms bigint,
    run_until bigint,
    restarts integer DEFAULT 0 NOT NULL,
    failed_node text COLLATE pg_catalog."C",
    creator_verified integer DEFAULT 0 NOT NULL,
    due_at bigint,
    paid_seq bigint,
    limit_key text COLLATE pg_catalog."C",
    lane text COLLATE pg_catalog."C",
    counts_for text COLLATE pg_catalog."C"
);
CREATE VIEW task_rows AS
 SELECT t.seq,
    t.task_id,
    t.title,
    t.task_type,
    t.priority,
    t.creator_node,
    t.creator_verified,
    t.status,
    t.lux_reward_micro,
    t.assigned_node,
    t.balanced,
    t.revoked_from,
    t.attempts,
    t.failures,
    t.restarts,
    t.timeout_ms,
    t.max_run_ms,
    t.run_until,
    t.lease_until,
    t.epoch,
    t.not_before,
    t.expires_at,
    t.unmet,
    t.has_dependents,
    t.ready,
    t.due_at,
    t.started_at,
    t.progress,
    t.failure,
    t.failed_node,
    t.limit_key,
    t.lane,
    t.counts_for,
    t.result_verified,
    t.paid_seq,
    t.created_at,
    t.updated_at,
    s.max_attempts,
    s.backoff_ms,
    s.description,
    s.depends_on,
    r.problem,
    r.improvement,
    r.lesson,
    r.result_extra,
    f.creator_key,
    f.schedule,
    f.schedule_at,
    f.retain_ms,
    f.retain_until,
    f.on_dependency,
    f.task_group,
    f.tags,
    f.unique_key,
    f.unique_until,
    f.requires,
    f.questions,
    f.review,
    f.review_until,
    f.quorum,
    f.child,
    f.parent_task,
    f.not_nodes,
    f.spent,
    f.max_cost_micro,
    COALESCE(f.has_leases, 0) AS has_leases,
    COALESCE(f.has_output, 0) AS has_output,
    COALESCE(f.checkpoint_bytes, (0)::bigint) AS checkpoint_bytes,
    f.earlier_failures,
    COALESCE(f.kept_bytes, (0)::bigint) AS kept_bytes,
    COALESCE(f.lent_bytes, (0)::bigint) AS lent_bytes,
    f.broken_by,
    f.a2a_caller,
    f.a2a_ids,
    f.task_seq AS features_of
   FROM (((tasks t
     LEFT JOIN task_specs s ON ((s.task_seq = t.seq)))
     LEFT JOIN task_results r ON ((r.task_seq = t.seq)))
     LEFT JOIN task_features f ON ((f.task_seq = t.seq)));
CREATE TABLE task_totals (
    one integer NOT NULL,
    open bigint NOT NULL,
    assigned bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    CONSTRAINT task_totals_one_check CHECK ((one = 1))
);
ALTER TABLE tasks ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tasks_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE turn (
    one integer NOT NULL,
    holder text NOT NULL,
    renewed_at timestamp with time zone NOT NULL,
    until timestamp with time zone NOT NULL,
    CONSTRAINT turn_one_check CHECK ((one = 1))
);
CREATE TABLE usage_reports (
    task_id text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    seq bigint NOT NULL,
    node_id text NOT NULL,
    at bigint NOT NULL,
    model text NOT NULL COLLATE pg_catalog."C",
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    cost_micro bigint
);
CREATE TABLE usage_sums (
    scope text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    day bigint NOT NULL,
    reports bigint NOT NULL,
    unpriced bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    cost_micro bigint NOT NULL
);
CREATE TABLE webhooks (
    name text NOT NULL COLLATE pg_catalog."C",
    webhook_id text NOT NULL,
    revision bigint NOT NULL,
    url text NOT NULL,
    format text NOT NULL,
    filter text NOT NULL,
    push text,
    push_task_id text COLLATE pg_catalog."C",
    secret text,
    cursor_id bigint NOT NULL,
    state text NOT NULL,
    attempts bigint NOT NULL,
    failing_since bigint,
    next_at bigint,
    last_error text,
    delivered_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    kept_by text COLLATE pg_catalog."C",
    kept_bytes bigint DEFAULT 0 NOT NULL
);
INSERT INTO beats VALUES (1, 1795907053484, 1795907233483);
INSERT INTO beats VALUES (2, 1795907053486, 1795907233485);
INSERT INTO broadcasts VALUES (2, NULL, 1, 1, 0);
INSERT INTO broadcasts VALUES (4, NULL, 1, 1, 0);
INSERT INTO deliveries VALUES (1, 'worker-1', 'acked', 1, NULL, 0);
INSERT INTO deliveries VALUES (2, 'worker-1', 'waiting', 0, NULL, 1);
INSERT INTO deliveries VALUES (4, 'worker-1', 'waiting', 0, NULL, 1);
INSERT INTO deliveries VALUES (2, 'worker-2', 'gone', 1, NULL, 1);
INSERT INTO deliveries VALUES (4, 'worker-2', 'gone', 1, NULL, 1);
INSERT INTO deliveries VALUES (3, 'worker-2', 'acked', 1, NULL, 0);
INSERT INTO deliveries VALUES (5, 'worker-2', 'waiting', 0, NULL, 0);
INSERT INTO deliveries VALUES (6, 'worker-1', 'waiting', 0, NULL, 0);
INSERT INTO events VALUES (1, 1795906866718, 'hub.started', NULL, NULL, '{"software":"luxhub 0.1.0"}', 0, 0, NULL);
INSERT INTO events VALUES (2, 1795906866734, 'node.registered', 'worker-1', NULL, '{"name":"Worker 1"}', 0, 0, NULL);
INSERT INTO events VALUES (3, 1795906866734, 'node.online', 'worker-1', NULL, '{"name":"Worker 1"}', 0, 0, NULL);
INSERT INTO events VALUES (4, 1795906866747, 'node.registered', 'worker-2', NULL, '{"name":"Worker 2"}', 0, 0, NULL);
INSERT INTO events VALUES (5, 1795906866747, 'node.online', 'worker-2', NULL, '{"name":"Worker 2"}', 0, 0, NULL);
INSERT INTO events VALUES (6, 1795906866758, 'task.created', 'planner', '01a22464-0e46-7025-9ac3-b411a36eb85a', '{"title":"Summarise the report"}', 0, 0, NULL);
INSERT INTO events VALUES (7, 1795906866783, 'task.assigned', 'worker-1', '01a22464-0e46-7025-9ac3-b411a36eb85a', '{"by":"claim","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (8, 1795906866794, 'task.progress', 'worker-1', '01a22464-0e46-7025-9ac3-b411a36eb85a', '{"note":"two points of three","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (9, 1795906866811, 'task.asked', 'worker-1', '01a22464-0e46-7025-9ac3-b411a36eb85a', '{"question_id":"01a22464-0e7a-7615-b026-5d9c38a04af9","until":"2026-11-29T00:01:06.811Z","parked":false,"creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (10, 1795906866831, 'task.answered', 'worker-1', '01a22464-0e46-7025-9ac3-b411a36eb85a', '{"question_id":"01a22464-0e7a-7615-b026-5d9c38a04af9","answered_by":null,"creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (11, 1795906866872, 'file.uploaded', 'worker-1', '01a22464-0e46-7025-9ac3-b411a36eb85a', '{"file_id":"01a22464-0eb5-7432-9b5f-2f6980822808","name":"report.txt","size":14}', 0, 0, NULL);
INSERT INTO events VALUES (12, 1795906866880, 'task.completed', 'worker-1', '01a22464-0e46-7025-9ac3-b411a36eb85a', '{"creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (13, 1795906866880, 'lux.paid', 'worker-1', '01a22464-0e46-7025-9ac3-b411a36eb85a', '{"amount":2.5}', 0, 0, NULL);
INSERT INTO events VALUES (14, 1795906866889, 'task.created', 'planner', '01a22464-0ec8-7199-8351-b18c4c898166', '{"title":"Count the pages"}', 0, 0, NULL);
INSERT INTO events VALUES (15, 1795906866900, 'task.created', 'planner', '01a22464-0ecd-704f-b36b-e14354ceeba2', '{"title":"Count the pages"}', 0, 0, NULL);
INSERT INTO events VALUES (16, 1795906866900, 'task.created', 'planner', '01a22464-0ecd-7050-a8c9-8739efccbc1b', '{"title":"Count the pages"}', 0, 0, NULL);
INSERT INTO events VALUES (17, 1795906866900, 'task.created', 'planner', '01a22464-0ed0-7112-b3b4-cc1f2b433574', '{"title":"Draw the logo"}', 0, 0, NULL);
INSERT INTO events VALUES (18, 1795906866914, 'task.assigned', 'worker-1', '01a22464-0ed0-7112-b3b4-cc1f2b433574', '{"by":"claim","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (19, 1795906866921, 'task.completed', 'worker-1', '01a22464-0ed0-7112-b3b4-cc1f2b433574', '{"creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (20, 1795906866921, 'task.review_requested', 'planner', '01a22464-0ed0-7112-b3b4-cc1f2b433574', '{"by":"creator","until":"2026-11-29T23:01:06.921Z","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (21, 1795906866930, 'task.review_rejected', 'worker-1', '01a22464-0ed0-7112-b3b4-cc1f2b433574', '{"attempts":1,"reviewed_by":null,"creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (22, 1795906866939, 'task.deleted', NULL, '01a22464-0ed0-7112-b3b4-cc1f2b433574', '{"title":"Draw the logo","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (23, 1795906866974, 'task.created', 'planner', '01a22464-0f1c-7685-84f8-b46e78e79938', '{"title":"Outline the talk"}', 0, 0, NULL);
INSERT INTO events VALUES (24, 1795906867003, 'task.created', 'planner', '01a22464-0f3a-730b-806f-4eda370f9f9e', '{"title":"Rehearse the talk"}', 0, 0, NULL);
INSERT INTO events VALUES (25, 1795906867012, 'task.updated', 'planner', '01a22464-0f3a-730b-806f-4eda370f9f9e', '{"changed":"priority,lux_reward"}', 0, 0, NULL);
INSERT INTO events VALUES (26, 1795906867020, 'task.failed', NULL, '01a22464-0f1c-7685-84f8-b46e78e79938', '{"kind":"cancelled","message":"the talk is called off","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (27, 1795906867026, 'task.failed', NULL, '01a22464-0f3a-730b-806f-4eda370f9f9e', '{"kind":"dependency","message":"Task 01a22464-0f1c-7685-84f8-b46e78e79938, on which it depends, failed.","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (28, 1795906867081, 'task.created', 'planner', '01a22464-0f88-7632-aa66-f51cde86c44f', '{"title":"Check the figures"}', 0, 0, NULL);
INSERT INTO events VALUES (29, 1795906867084, 'task.assigned', 'worker-2', '01a22464-0f88-7632-aa66-f51cde86c44f', '{"by":"assign","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (30, 1795906867089, 'task.released', 'worker-2', '01a22464-0f88-7632-aa66-f51cde86c44f', '{"reason":"out of memory","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (31, 1795906867093, 'task.assigned', 'worker-2', '01a22464-0f88-7632-aa66-f51cde86c44f', '{"by":"claim","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (32, 1795906867101, 'task.attempt_failed', 'worker-2', '01a22464-0f88-7632-aa66-f51cde86c44f', '{"attempts":1,"error":"report.txt is empty","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (33, 1795906867101, 'task.failed', 'worker-2', '01a22464-0f88-7632-aa66-f51cde86c44f', '{"kind":"failed","message":"report.txt is empty","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (34, 1795906867111, 'task.retried', 'planner', '01a22464-0f88-7632-aa66-f51cde86c44f', '{}', 0, 0, NULL);
INSERT INTO events VALUES (35, 1795906867127, 'task.failed', NULL, '01a22464-0f88-7632-aa66-f51cde86c44f', '{"kind":"cancelled","message":"no longer needed","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (36, 1795906867137, 'task.created', 'planner', '01a22464-0fc0-7213-9f0a-c79c4274df07', '{"title":"Translate the report"}', 0, 0, NULL);
INSERT INTO events VALUES (37, 1795906867151, 'task.assigned', 'worker-1', '01a22464-0fc0-7213-9f0a-c79c4274df07', '{"by":"next","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (38, 1795906867162, 'task.revoked', 'worker-1', '01a22464-0fc0-7213-9f0a-c79c4274df07', '{"reason":"worker-1 is restarted","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (39, 1795906867162, 'task.assigned', 'worker-2', '01a22464-0fc0-7213-9f0a-c79c4274df07', '{"by":"revoke","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (40, 1795906867168, 'task.deleted', 'worker-2', '01a22464-0fc0-7213-9f0a-c79c4274df07', '{"title":"Translate the report","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (41, 1795906867176, 'task.created', 'planner', '01a22464-0fe7-749d-b43b-31f66604007e', '{"title":"Print the report"}', 0, 0, NULL);
INSERT INTO events VALUES (42, 1795906867185, 'task.assigned', 'worker-1', '01a22464-0fe7-749d-b43b-31f66604007e', '{"by":"assign","creator_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (43, 1795906867187, 'message.sent', 'worker-1', NULL, '{"message_id":"01a22464-0ff3-7562-8587-8e3ebdad48aa","from_node":"planner","type":"text"}', 0, 0, NULL);
INSERT INTO events VALUES (44, 1795906867214, 'message.acked', 'worker-1', NULL, '{"message_id":"01a22464-0ff3-7562-8587-8e3ebdad48aa","from_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (45, 1795906867216, 'message.sent', NULL, NULL, '{"message_id":"01a22464-1010-70de-9a85-15294ecb8272","from_node":"planner","type":"alert","receivers":2}', 0, 0, NULL);
INSERT INTO events VALUES (46, 1795906867226, 'message.sent', 'worker-2', NULL, '{"message_id":"01a22464-101b-76d5-aeff-a94641c1b639","from_node":"planner","type":"text"}', 0, 0, NULL);
INSERT INTO events VALUES (47, 1795906867231, 'message.sent', NULL, NULL, '{"message_id":"01a22464-101f-70fe-94cb-7692450fb890","from_node":"planner","type":"update","receivers":2}', 0, 0, NULL);
INSERT INTO events VALUES (48, 1795906867245, 'message.acked', 'worker-2', NULL, '{"message_id":"01a22464-101b-76d5-aeff-a94641c1b639","from_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (49, 1795906867247, 'message.sent', 'worker-2', NULL, '{"message_id":"01a22464-102f-74ef-ae1d-851ba292bf51","from_node":"planner","type":"text"}', 0, 0, NULL);
INSERT INTO events VALUES (50, 1795907053470, 'message.parked', 'worker-2', NULL, '{"message_id":"01a22464-102f-74ef-ae1d-851ba292bf51","from_node":"planner"}', 0, 0, NULL);
INSERT INTO events VALUES (51, 1795907084507, 'note.changed', 'worker-1', NULL, '{"key":"report/terms","version":1}', 0, 0, NULL);
INSERT INTO events VALUES (52, 1795907084511, 'note.deleted', 'worker-1', NULL, '{"key":"report/terms","version":1}', 0, 0, NULL);
INSERT INTO events VALUES (53, 1795907084524, 'lux.signin', 'worker-1', NULL, '{"amount":10}', 0, 0, NULL);
INSERT INTO events VALUES (54, 1795907084533, 'budget.set', NULL, NULL, '{"scope":"type","value":"research","per":"month","on_limit":"pause","limit_usd":50,"cost_usd":0.168,"without_cost":0,"limit_tokens":100000000,"tokens":52800}', 0, 0, NULL);
INSERT INTO events VALUES (55, 1795907084543, 'budget.deleted', NULL, NULL, '{"scope":"type","value":"research","per":"month","on_limit":"pause","limit_usd":50,"cost_usd":0.168,"without_cost":0,"limit_tokens":100000000,"tokens":52800}', 0, 0, NULL);
INSERT INTO events VALUES (56, 1795907084546, 'usage.voided', 'worker-1', NULL, '{"day":"2026-11-28","reports":1,"cost_usd":0.168,"reason":"It counted cents as dollars.","input_tokens":52000,"output_tokens":800}', 0, 0, NULL);
INSERT INTO events VALUES (57, 1795907084549, 'hub.paused', NULL, NULL, '{"scope":"type","value":"research","reason":"The provider is down."}', 0, 0, NULL);
INSERT INTO events VALUES (58, 1795907084555, 'hub.resumed', NULL, NULL, '{"scope":"type","value":"research"}', 0, 0, NULL);
INSERT INTO events VALUES (59, 1795907084558, 'limit.set', NULL, NULL, '{"key":"openai","running":8,"per_minute":60}', 0, 0, NULL);
INSERT INTO events VALUES (60, 1795907084561, 'limit.held', NULL, NULL, '{"key":"openai","for_s":30,"held_by":"worker-1"}', 0, 0, NULL);
INSERT INTO events VALUES (61, 1795907084565, 'limit.deleted', NULL, NULL, '{"key":"openai"}', 0, 0, NULL);
INSERT INTO events VALUES (62, 1795907084585, 'file.deleted', 'worker-1', '01a22464-0e46-7025-9ac3-b411a36eb85a', '{"file_id":"01a22464-0eb5-7432-9b5f-2f6980822808","name":"report.txt","size":14}', 0, 0, NULL);
INSERT INTO events VALUES (63, 1795907084594, 'file.uploaded', NULL, NULL, '{"file_id":"01a22464-1188-74d3-b9a6-b40f5e41d9ad","name":"report.txt","size":9}', 0, 0, NULL);
INSERT INTO events VALUES (64, 1795907084596, 'file.deleted', NULL, NULL, '{"file_id":"01a22464-1188-74d3-b9a6-b40f5e41d9ad","name":"report.txt","size":9}', 0, 0, NULL);
INSERT INTO events VALUES (65, 1795907084602, 'task.created', NULL, '01a22464-1191-756b-a02c-057625156100', '{"title":"Archive the report"}', 0, 0, NULL);
INSERT INTO events VALUES (66, 1795907084601, 'message.sent', 'worker-1', NULL, '{"message_id":"01a22464-1191-756c-9809-0142ed0dcfce","from_node":"planner","type":"text"}', 0, 0, NULL);
INSERT INTO events VALUES (67, 1795907084610, 'schedule.saved', NULL, NULL, '{"name":"nightly-backup","paused":false}', 0, 0, NULL);
INSERT INTO events VALUES (68, 1795907084620, 'task.created', NULL, '01a22464-11a3-762a-a684-d313faf6e76c', '{"title":"Back up the wiki"}', 0, 0, NULL);
INSERT INTO events VALUES (69, 1795907084627, 'schedule.deleted', NULL, NULL, '{"name":"nightly-backup"}', 0, 0, NULL);
INSERT INTO events VALUES (70, 1795907084631, 'webhook.saved', NULL, NULL, '{"name":"ci"}', 0, 0, NULL);
INSERT INTO events VALUES (71, 1795907084639, 'webhook.resumed', NULL, NULL, '{"name":"ci","cursor":69}', 0, 0, NULL);
INSERT INTO events VALUES (72, 1795907084643, 'webhook.deleted', NULL, NULL, '{"name":"ci","reason":"deleted"}', 0, 0, NULL);
INSERT INTO events VALUES (73, 1795907084646, 'task.created', NULL, '01a22464-11bd-7787-9097-4b650b594de2', '{"title":"Translate a page","group":"wiki-fr","tags":"wiki"}', 0, 0, NULL);
INSERT INTO events VALUES (74, 1795907084657, 'task.failed', NULL, '01a22464-11bd-7787-9097-4b650b594de2', '{"kind":"cancelled","message":"The wiki is closed.","group":"wiki-fr","tags":"wiki"}', 0, 0, NULL);
INSERT INTO events VALUES (75, 1795907084664, 'group.ended', NULL, NULL, '{"group":"wiki-fr","completed":0,"failed":0,"cancelled":1}', 0, 0, NULL);
INSERT INTO events VALUES (76, 1795907084673, 'task.retried', NULL, '01a22464-11bd-7787-9097-4b650b594de2', '{"group":"wiki-fr","tags":"wiki"}', 0, 0, NULL);
INSERT INTO events VALUES (77, 1795907084694, 'node.joined', 'worker-9', NULL, '{"key":"worker-9-19e52c9a"}', 0, 0, NULL);
INSERT INTO events VALUES (78, 1795907084721, 'node.draining', 'worker-2', NULL, '{"name":"Worker 2","draining":true}', 0, 0, NULL);
INSERT INTO events VALUES (79, 1795907084734, 'node.left', 'worker-2', NULL, '{"name":"Worker 2"}', 0, 0, NULL);
INSERT INTO events VALUES (80, 1795907084734, 'node.offline', 'worker-2', NULL, '{"name":"Worker 2"}', 0, 0, NULL);
INSERT INTO events VALUES (81, 1795907084737, 'node.deleted', 'worker-2', NULL, '{"name":"Worker 2"}', 0, 0, NULL);
INSERT INTO fencing VALUES (1, 1);
INSERT INTO file_totals VALUES (1, 0, 0);
INSERT INTO group_totals VALUES ('wiki-fr', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1795907084646, 1795907084646, 1795907084673);
INSERT INTO hubs VALUES ('01a22464-0deb-764b-bcdf-74eb4b3059de', 169, '2026-11-28 23:01:07.747798+00', NULL);
INSERT INTO identity VALUES (1, 'f92d2a6b476b46b39f99769b5c805957');
INSERT INTO keys VALUES ('dashboard', 'viewer', 'e6f3a177b46e6c14d2a915da750b8e1e1f1d32b581e55dc9f673791c018bf86a', NULL, NULL, 1795907084680, 1795993484680, 1795907084685, NULL);
INSERT INTO keys VALUES ('worker-9-19e52c9a', 'secret', '5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e', NULL, 'worker-9', 1795907084694, NULL, NULL, NULL);
INSERT INTO ledger VALUES (1, '01a22464-0ebe-70ad-aae1-eee85ac1d49c', NULL, NULL, 'worker-1', 1, 2500000, 2500000, 'reward', '01a22464-0e46-7025-9ac3-b411a36eb85a', 1795906866880, '955c44622e5f6a0d617b5e7f7075f1a579894035b6be5c1b5515f069f1be6995');
INSERT INTO ledger VALUES (2, '01a22464-1143-7751-8f5b-d7e511508218', NULL, NULL, 'worker-1', 2, 10000000, 12500000, 'signin', NULL, 1795907084524, 'b2f901a21846955cd9c7c8713511afaf651c285cd71b4fd99dfe5986449fe0fc');
INSERT INTO messages OVERRIDING SYSTEM VALUE VALUES (1, '01a22464-0ff3-7562-8587-8e3ebdad48aa', 'planner', 'worker-1', 'text', 'The deadline is Friday.', 1, 1795906867187, 0, 0, NULL, NULL);
INSERT INTO messages OVERRIDING SYSTEM VALUE VALUES (2, '01a22464-1010-70de-9a85-15294ecb8272', 'planner', NULL, 'alert', 'The hub restarts at noon.', 0, 1795906867216, 0, 0, NULL, NULL);
INSERT INTO messages OVERRIDING SYSTEM VALUE VALUES (3, '01a22464-101b-76d5-aeff-a94641c1b639', 'planner', 'worker-2', 'text', 'The deadline is Friday.', 1, 1795906867226, 0, 0, NULL, NULL);
INSERT INTO messages OVERRIDING SYSTEM VALUE VALUES (4, '01a22464-101f-70fe-94cb-7692450fb890', 'planner', NULL, 'update', 'Back again.', 0, 1795906867231, 0, 0, NULL, NULL);
INSERT INTO messages OVERRIDING SYSTEM VALUE VALUES (5, '01a22464-102f-74ef-ae1d-851ba292bf51', 'planner', 'worker-2', 'text', 'The deadline is Friday.', 1, 1795906867247, 0, 0, NULL, NULL);
INSERT INTO messages OVERRIDING SYSTEM VALUE VALUES (6, '01a22464-1191-756c-9809-0142ed0dcfce', 'planner', 'worker-1', 'text', 'The report is archived today.', 0, 1795907084601, 0, 0, NULL, NULL);
INSERT INTO minutes VALUES (1795906860000, '01a22464-0dfd-7157-8e57-51a45fa0a1c7', '{"created":10,"started":7,"completed":2,"attemptsFailed":1,"failed":2,"cancelled":2,"luxMicro":2500000,"messages":5,"toStart":{"sumMs":65,"buckets":[2,2,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]},"toFinish":{"sumMs":143,"buckets":[0,0,1,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]},"types":{"research":{"completed":1,"failed":0,"toStart":{"sumMs":39,"buckets":[1,1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}},"":{"completed":1,"failed":2,"toStart":{"sumMs":30,"buckets":[3,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}}}');
INSERT INTO minutes VALUES (1795907040000, '01a22464-0dfd-7157-8e57-51a45fa0a1c7', '{"created":3,"started":0,"completed":0,"attemptsFailed":0,"failed":0,"cancelled":1,"luxMicro":10000000,"messages":1,"toStart":{"sumMs":0,"buckets":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]},"toFinish":{"sumMs":0,"buckets":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}');
INSERT INTO nodes OVERRIDING SYSTEM VALUE VALUES ('worker-1', 'Worker 1', NULL, NULL, ',coding,research,', 'A', 4, 1, 1795906866734, 1, 1, 2500000, 1795906867185, 2, 12500000, 1, 0, 0, 0, 1, NULL);
INSERT INTO nodes OVERRIDING SYSTEM VALUE VALUES ('worker-2', 'Worker 2', NULL, NULL, '', 'A', NULL, 0, 1795906866747, 0, 0, 0, 1795906867168, 0, 0, 2, 0, 1, 0, 0, NULL);
INSERT INTO output_blocks VALUES ('01a22464-0e46-7025-9ac3-b411a36eb85a', 1, 0, 0, 'Reading page 1 of 12
');
INSERT INTO outputs VALUES ('01a22464-0e46-7025-9ac3-b411a36eb85a', 1, 'worker-1', 21, 0, 1795906866803, 1795906866803);
INSERT INTO questions OVERRIDING SYSTEM VALUE VALUES (1, '01a22464-0e7a-7615-b026-5d9c38a04af9', '01a22464-0e46-7025-9ac3-b411a36eb85a', 'The report names two dates for the release. Which one is right?', '["1 March","15 March"]', NULL, 'worker-1', 1, 1795906866811, 1795910466811, 'answered', '"15 March"', NULL, 1795906866831, 0);
INSERT INTO schema_version VALUES (53);
INSERT INTO task_features VALUES (1, 'completed', 1795906866880, 'worker-1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"state":"settled","asked":1,"bytes":88}', NULL, NULL, NULL, NULL, NULL, NULL, '{"reports":1,"unpriced":0,"inputTokens":52000,"outputTokens":800,"cachedTokens":0,"costMicro":168000}', 5000000, 0, 1, 0, NULL, 0, 0, NULL, NULL, NULL);
INSERT INTO task_features VALUES (3, 'open', 1795906866900, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"of":"01a22464-0ec8-7199-8351-b18c4c898166","as":"copy","group":null,"epoch":0,"notKey":null,"sealed":true,"compare":["/pages"]}', '01a22464-0ec8-7199-8351-b18c4c898166', NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, NULL, NULL, NULL);
INSERT INTO task_features VALUES (4, 'open', 1795906866900, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"of":"01a22464-0ec8-7199-8351-b18c4c898166","as":"copy","group":null,"epoch":0,"notKey":null,"sealed":true,"compare":["/pages"]}', '01a22464-0ec8-7199-8351-b18c4c898166', NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, NULL, NULL, NULL);
INSERT INTO task_features VALUES (2, 'open', 1795906866889, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"results":2,"of":3,"compare":["/pages"],"state":"pending","round":0,"copies":["01a22464-0ecd-704f-b36b-e14354ceeba2","01a22464-0ecd-7050-a8c9-8739efccbc1b"],"agreed":[]}', NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, NULL, NULL, NULL);
INSERT INTO task_features VALUES (7, 'failed', 1795906867026, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, '01a22464-0f1c-7685-84f8-b46e78e79938', NULL, NULL);
INSERT INTO task_features VALUES (8, 'failed', 1795906867127, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, '[{"kind":"failed","message":"report.txt is empty","nodeId":"worker-2","at":1795906867101}]', 0, 0, NULL, NULL, NULL);
INSERT INTO task_features VALUES (12, 'open', 1795907084620, NULL, NULL, 'nightly-backup', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, NULL, NULL, NULL);
INSERT INTO task_features VALUES (13, 'open', 1795907084673, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'wiki-fr', ',wiki,', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, NULL, NULL, NULL);
INSERT INTO task_results VALUES (1, 'The report is long and its points are hard to find.', 'Named the three points, each with its page.', 'The summary on page 2 is out of date.', '{"points":3}');
INSERT INTO task_specs VALUES (1, NULL, 5000, 'Read report.txt and name its three main points.', NULL);
INSERT INTO task_specs VALUES (2, NULL, 5000, 'Read report.txt and name its three main points.', NULL);
INSERT INTO task_specs VALUES (3, NULL, 5000, 'Read report.txt and name its three main points.', '01a22464-0ec8-7199-8351-b18c4c898166');
INSERT INTO task_specs VALUES (4, NULL, 5000, 'Read report.txt and name its three main points.', '01a22464-0ec8-7199-8351-b18c4c898166');
INSERT INTO task_specs VALUES (6, NULL, 5000, 'Read report.txt and name its three main points.', '01a22464-0e46-7025-9ac3-b411a36eb85a');
INSERT INTO task_specs VALUES (7, NULL, 5000, 'Read report.txt and name its three main points.', '01a22464-0f1c-7685-84f8-b46e78e79938');
INSERT INTO task_specs VALUES (8, NULL, 5000, 'Read report.txt and name its three main points.', NULL);
INSERT INTO task_specs VALUES (10, NULL, 5000, 'Read report.txt and name its three main points.', NULL);
INSERT INTO task_specs VALUES (11, NULL, 5000, 'As PDF.', NULL);
INSERT INTO task_specs VALUES (12, NULL, 5000, 'Into the archive.', NULL);
INSERT INTO task_specs VALUES (13, NULL, 5000, 'Into French.', NULL);
INSERT INTO task_totals VALUES (1, 6, 1, 1, 3);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (8, '01a22464-0f88-7632-aa66-f51cde86c44f', 'Check the figures', '', 1, 'planner', 'failed', 0, NULL, 0, NULL, 0, 1795906867081, 1795906867127, 0, NULL, NULL, 4, NULL, NULL, 0, 0, NULL, NULL, NULL, '{"kind":"cancelled","message":"no longer needed","nodeId":null,"at":1795906867127}', 0, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (3, '01a22464-0ecd-704f-b36b-e14354ceeba2', 'Count the pages', '', 1, 'planner', 'open', 0, NULL, 0, NULL, 0, 1795906866900, 1795906866900, 0, NULL, NULL, 0, NULL, NULL, 0, 0, 1, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (4, '01a22464-0ecd-7050-a8c9-8739efccbc1b', 'Count the pages', '', 1, 'planner', 'open', 0, NULL, 0, NULL, 0, 1795906866900, 1795906866900, 0, NULL, NULL, 0, NULL, NULL, 0, 0, 1, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (2, '01a22464-0ec8-7199-8351-b18c4c898166', 'Count the pages', '', 1, 'planner', 'open', 0, NULL, 0, NULL, 0, 1795906866889, 1795906866889, 0, NULL, NULL, 0, NULL, NULL, 0, 1, 0, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (1, '01a22464-0e46-7025-9ac3-b411a36eb85a', 'Summarise the report', 'research', 0, 'planner', 'completed', 2500000, 'worker-1', 0, NULL, 0, 1795906866758, 1795906866880, 0, 600000, NULL, 1, NULL, NULL, 0, 1, NULL, 1795906866783, 'two points of three', NULL, 0, NULL, NULL, 0, NULL, 0, NULL, 1, NULL, NULL, NULL);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (6, '01a22464-0f1c-7685-84f8-b46e78e79938', 'Outline the talk', '', 1, 'planner', 'failed', 0, NULL, 0, NULL, 0, 1795906866974, 1795906867020, 0, NULL, NULL, 0, NULL, NULL, 0, 1, NULL, NULL, NULL, '{"kind":"cancelled","message":"the talk is called off","nodeId":null,"at":1795906867020}', 0, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (7, '01a22464-0f3a-730b-806f-4eda370f9f9e', 'Rehearse the talk', '', 0, 'planner', 'failed', 2000000, NULL, 0, NULL, 0, 1795906867003, 1795906867026, 0, NULL, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, '{"kind":"dependency","message":"Task 01a22464-0f1c-7685-84f8-b46e78e79938, on which it depends, failed.","nodeId":null,"at":1795906867026}', 0, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (10, '01a22464-0fe7-749d-b43b-31f66604007e', 'Print the report', '', 1, 'planner', 'assigned', 0, 'worker-1', 0, NULL, 0, 1795906867176, 1795906867185, 0, NULL, NULL, 1, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (11, '01a22464-1191-756b-a02c-057625156100', 'Archive the report', '', 1, NULL, 'open', 0, NULL, 0, NULL, 0, 1795907084602, 1795907084602, 0, NULL, NULL, 0, NULL, NULL, 0, 0, 1, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (12, '01a22464-11a3-762a-a684-d313faf6e76c', 'Back up the wiki', 'backup', 1, NULL, 'open', 0, NULL, 0, NULL, 0, 1795907084620, 1795907084620, 0, NULL, NULL, 0, NULL, NULL, 0, 0, 1, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (13, '01a22464-11bd-7787-9097-4b650b594de2', 'Translate a page', '', 1, NULL, 'open', 0, NULL, 0, NULL, 0, 1795907084646, 1795907084673, 0, NULL, NULL, 1, NULL, NULL, 0, 0, 1, NULL, NULL, '{"kind":"cancelled","message":"The wiki is closed.","nodeId":null,"at":1795907084657}', 0, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO turn VALUES (1, '01a22464-0deb-764b-bcdf-74eb4b3059de', '2026-11-28 23:01:07.673243+00', '2026-11-28 23:01:07.757812+00');
INSERT INTO usage_reports VALUES ('01a22464-0e46-7025-9ac3-b411a36eb85a', 1, 1, 'worker-1', 1795906866794, 'large', 52000, 800, 0, 168000);
INSERT INTO usage_sums VALUES ('hub', '', 20785, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_sums VALUES ('creator', 'planner', 20785, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_sums VALUES ('model', 'large', 20785, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_sums VALUES ('node', 'worker-1', 20785, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_sums VALUES ('type', 'research', 20785, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_sums VALUES ('voided', '', 20785, 1, 0, 52000, 800, 0, 168000);
SELECT pg_catalog.setval('files_seq_seq', 2, true);
SELECT pg_catalog.setval('messages_seq_seq', 6, true);
SELECT pg_catalog.setval('nodes_seq_seq', 2, true);
SELECT pg_catalog.setval('questions_seq_seq', 1, true);
SELECT pg_catalog.setval('tasks_seq_seq', 13, true);
ALTER TABLE ONLY answer_totals
    ADD CONSTRAINT answer_totals_pkey PRIMARY KEY (key_id);
ALTER TABLE ONLY answers
    ADD CONSTRAINT answers_pkey PRIMARY KEY (scope);
ALTER TABLE ONLY beats
    ADD CONSTRAINT beats_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY blob_chunks
    ADD CONSTRAINT blob_chunks_pkey PRIMARY KEY (blob_id, n);
ALTER TABLE ONLY blobs
    ADD CONSTRAINT blobs_pkey PRIMARY KEY (blob_id);
ALTER TABLE ONLY broadcasts
    ADD CONSTRAINT broadcasts_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY budgets
    ADD CONSTRAINT budgets_pkey PRIMARY KEY (scope, value, per);
ALTER TABLE ONLY checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (task_id);
ALTER TABLE ONLY deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (seq, to_node);
ALTER TABLE ONLY dependencies
    ADD CONSTRAINT dependencies_pkey PRIMARY KEY (task_id, depends_on);
ALTER TABLE ONLY events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY family_checks
    ADD CONSTRAINT family_checks_pkey PRIMARY KEY (task_id);
ALTER TABLE ONLY fencing
    ADD CONSTRAINT fencing_pkey PRIMARY KEY (one);
ALTER TABLE ONLY file_totals
    ADD CONSTRAINT file_totals_pkey PRIMARY KEY (one);
ALTER TABLE ONLY files
    ADD CONSTRAINT files_file_id_key UNIQUE (file_id);
ALTER TABLE ONLY files
    ADD CONSTRAINT files_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY group_endings
    ADD CONSTRAINT group_endings_pkey PRIMARY KEY (task_group);
ALTER TABLE ONLY group_totals
    ADD CONSTRAINT group_totals_pkey PRIMARY KEY (task_group);
ALTER TABLE ONLY hubs
    ADD CONSTRAINT hubs_pkey PRIMARY KEY (hub_id);
ALTER TABLE ONLY identity
    ADD CONSTRAINT identity_pkey PRIMARY KEY (one);
ALTER TABLE ONLY invitations
    ADD CONSTRAINT invitations_pkey PRIMARY KEY (token_hash);
ALTER TABLE ONLY keys
    ADD CONSTRAINT keys_hash_key UNIQUE (hash);
ALTER TABLE ONLY keys
    ADD CONSTRAINT keys_pkey PRIMARY KEY (key_id);
ALTER TABLE ONLY leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (node_id, name, task_id);
ALTER TABLE ONLY ledger
    ADD CONSTRAINT ledger_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY limit_uses
    ADD CONSTRAINT limit_uses_pkey PRIMARY KEY (limit_key, second);
ALTER TABLE ONLY limits
    ADD CONSTRAINT limits_pkey PRIMARY KEY (limit_key);
ALTER TABLE ONLY messages
    ADD CONSTRAINT messages_message_id_key UNIQUE (message_id);
ALTER TABLE ONLY messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY mints
    ADD CONSTRAINT mints_pkey PRIMARY KEY (key_id, day);
ALTER TABLE ONLY minutes
    ADD CONSTRAINT minutes_pkey PRIMARY KEY (at, hub);
ALTER TABLE ONLY node_sums
    ADD CONSTRAINT node_sums_pkey PRIMARY KEY (day, node_id, scope, value);
ALTER TABLE ONLY nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (node_id);
ALTER TABLE ONLY nodes
    ADD CONSTRAINT nodes_seq_key UNIQUE (seq);
ALTER TABLE ONLY notes
    ADD CONSTRAINT notes_pkey PRIMARY KEY (key);
ALTER TABLE ONLY output_blocks
    ADD CONSTRAINT output_blocks_pkey PRIMARY KEY (task_id, epoch, n);
ALTER TABLE ONLY outputs
    ADD CONSTRAINT outputs_pkey PRIMARY KEY (task_id, epoch);
ALTER TABLE ONLY pauses
    ADD CONSTRAINT pauses_pkey PRIMARY KEY (scope, value);
ALTER TABLE ONLY periods
    ADD CONSTRAINT periods_pkey PRIMARY KEY (step_ms, at);
ALTER TABLE ONLY questions
    ADD CONSTRAINT questions_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY questions
    ADD CONSTRAINT questions_question_id_key UNIQUE (question_id);
ALTER TABLE ONLY quota_usage
    ADD CONSTRAINT quota_usage_pkey PRIMARY KEY (node_id);
ALTER TABLE ONLY schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (name);
ALTER TABLE ONLY settlements
    ADD CONSTRAINT settlements_pkey PRIMARY KEY (task_id);
ALTER TABLE ONLY task_charges
    ADD CONSTRAINT task_charges_pkey PRIMARY KEY (task_id, node_id);
ALTER TABLE ONLY task_features
    ADD CONSTRAINT task_features_pkey PRIMARY KEY (task_seq);
ALTER TABLE ONLY task_results
    ADD CONSTRAINT task_results_pkey PRIMARY KEY (task_seq);
ALTER TABLE ONLY task_specs
    ADD CONSTRAINT task_specs_pkey PRIMARY KEY (task_seq);
ALTER TABLE ONLY task_totals
    ADD CONSTRAINT task_totals_pkey PRIMARY KEY (one);
ALTER TABLE ONLY tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY tasks
    ADD CONSTRAINT tasks_task_id_key UNIQUE (task_id);
ALTER TABLE ONLY turn
    ADD CONSTRAINT turn_pkey PRIMARY KEY (one);
ALTER TABLE ONLY usage_reports
    ADD CONSTRAINT usage_reports_pkey PRIMARY KEY (task_id, epoch, seq);
ALTER TABLE ONLY usage_sums
    ADD CONSTRAINT usage_sums_pkey PRIMARY KEY (scope, value, day);
ALTER TABLE ONLY webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (name);
CREATE INDEX answers_age ON answers USING btree (stored_at, scope, bytes);
CREATE INDEX answers_key ON answers USING btree (key_id, stored_at, scope, bytes);
CREATE INDEX blobs_shelf ON blobs USING btree ("right"(blob_id, 2));
CREATE INDEX blobs_unfinished ON blobs USING btree (touched_at) WHERE (size_bytes IS NULL);
CREATE INDEX broadcasts_unfinished ON broadcasts USING btree (seq) WHERE (write_until IS NOT NULL);
CREATE INDEX deliveries_got ON deliveries USING btree (to_node, seq);
CREATE INDEX deliveries_lease ON deliveries USING btree (lease_until) WHERE (state = 'leased'::text);
CREATE INDEX deliveries_parked ON deliveries USING btree (to_node, seq) WHERE (state = 'parked'::text);
CREATE INDEX deliveries_parked_all ON deliveries USING btree (state, seq) WHERE (state = 'parked'::text);
CREATE INDEX deliveries_waiting ON deliveries USING btree (to_node, seq) WHERE (state = 'waiting'::text);
CREATE INDEX dependencies_of ON dependencies USING btree (depends_on);
CREATE INDEX events_kind ON events USING btree (kind, id);
CREATE INDEX events_task ON events USING btree (task_id, id) WHERE (task_id IS NOT NULL);
CREATE INDEX features_a2a ON task_features USING btree (a2a_caller, updated_at) WHERE (a2a_caller IS NOT NULL);
CREATE INDEX features_broken ON task_features USING btree (broken_by, task_seq) WHERE (broken_by IS NOT NULL);
CREATE INDEX features_children ON task_features USING btree (parent_task) WHERE (parent_task IS NOT NULL);
CREATE INDEX features_choosy ON task_features USING btree (task_seq) WHERE ((status = 'open'::text) AND (not_nodes IS NOT NULL));
CREATE INDEX features_group ON task_features USING btree (task_group, status, task_seq) WHERE (task_group IS NOT NULL);
CREATE INDEX features_group_failed ON task_features USING btree (task_group, updated_at) WHERE ((status = 'failed'::text) AND (task_group IS NOT NULL));
CREATE INDEX features_in_review ON task_features USING btree (review_until, task_seq) WHERE (review_until IS NOT NULL);
CREATE INDEX features_retained ON task_features USING btree (retain_until, task_seq) WHERE (retain_until IS NOT NULL);
CREATE INDEX features_schedule ON task_features USING btree (schedule) WHERE ((schedule IS NOT NULL) AND ((status = ANY (ARRAY['open'::text, 'assigned'::text])) OR (review_until IS NOT NULL)));
CREATE INDEX features_unique ON task_features USING btree (unique_key, status, task_seq) WHERE (unique_key IS NOT NULL);
CREATE INDEX features_unique_in_review ON task_features USING btree (unique_key, task_seq) WHERE ((review_until IS NOT NULL) AND (unique_key IS NOT NULL));
CREATE INDEX features_unique_until ON task_features USING btree (unique_key, unique_until) WHERE (unique_until IS NOT NULL);
CREATE INDEX features_using ON task_features USING btree (assigned_node) WHERE ((status = 'assigned'::text) AND (requires IS NOT NULL));
CREATE INDEX files_task ON files USING btree (task_id, seq) WHERE (task_id IS NOT NULL);
CREATE INDEX invitations_id ON invitations USING btree (invitation_id);
CREATE INDEX leases_globs ON leases USING btree (is_glob) WHERE (is_glob = 1);
CREATE INDEX leases_name ON leases USING btree (name);
CREATE INDEX leases_task ON leases USING btree (task_id);
CREATE UNIQUE INDEX ledger_node ON ledger USING btree (node_id, n);
CREATE UNIQUE INDEX ledger_signin ON ledger USING btree (node_id, ((at / 86400000))) WHERE (kind = 'signin'::text);
CREATE INDEX messages_from ON messages USING btree (from_node, seq);
CREATE INDEX messages_thread ON messages USING btree (thread, seq) WHERE (thread IS NOT NULL);
CREATE INDEX nodes_available ON nodes USING btree (tasks_assigned, idle_since, node_id) WHERE ((online = 1) AND (auto_assign = 1) AND (draining = 0) AND ((max_tasks IS NULL) OR (tasks_assigned < max_tasks)));
CREATE INDEX nodes_deleted ON nodes USING btree (node_id) WHERE (deleted = 1);
CREATE INDEX nodes_stranded ON nodes USING btree (node_id) WHERE ((online = 0) AND (tasks_assigned > 0));
CREATE INDEX notes_sizes ON notes USING btree (node_id, bytes);
CREATE INDEX questions_open ON questions USING btree (until, seq) WHERE (state = 'open'::text);
CREATE INDEX questions_task ON questions USING btree (task_id, seq);
CREATE INDEX schedules_due ON schedules USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX tasks_counted ON tasks USING btree (counts_for) WHERE (counts_for IS NOT NULL);
CREATE INDEX tasks_due ON tasks USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX tasks_failed ON tasks USING btree (failed_node, seq) WHERE (failed_node IS NOT NULL);
CREATE INDEX tasks_failed_at ON tasks USING btree (status, updated_at, seq) WHERE (status = 'failed'::text);
CREATE INDEX tasks_filter ON tasks USING btree (((seq / 512)), creator_node, task_type, seq) WHERE ((creator_node IS NOT NULL) OR (task_type <> ''::text));
CREATE INDEX tasks_gifts ON tasks USING btree (assigned_node, priority, seq) WHERE ((status = 'assigned'::text) AND (started_at IS NULL));
CREATE INDEX tasks_lanes ON tasks USING btree (status, lane) WHERE ((lane IS NOT NULL) AND (status = ANY (ARRAY['open'::text, 'assigned'::text])));
CREATE INDEX tasks_lanes_of_node ON tasks USING btree (creator_node, lane) WHERE ((lane IS NOT NULL) AND (status = ANY (ARRAY['open'::text, 'assigned'::text])) AND (creator_verified = 1));
CREATE INDEX tasks_lease ON tasks USING btree (lease_until) WHERE (lease_until IS NOT NULL);
CREATE INDEX tasks_node ON tasks USING btree (assigned_node, status, seq) WHERE (assigned_node IS NOT NULL);
CREATE INDEX tasks_pool ON tasks USING btree (balanced, priority, seq) WHERE (ready = 1);
CREATE INDEX tasks_pool_lane ON tasks USING btree (balanced, lane, priority, seq) WHERE (ready = 2);
CREATE INDEX tasks_pool_type ON tasks USING btree (balanced, task_type, priority, seq) WHERE (ready = 1);
CREATE INDEX tasks_status ON tasks USING btree (status, seq);
CREATE INDEX tasks_waiting ON tasks USING btree (task_type) WHERE (ready = 0);
CREATE INDEX usage_sums_days ON usage_sums USING btree (day);
CREATE INDEX webhooks_push ON webhooks USING btree (push_task_id, name) WHERE (push_task_id IS NOT NULL);
CREATE INDEX webhooks_push_kept ON webhooks USING btree (kept_by) WHERE (push_task_id IS NOT NULL);
CREATE INDEX webhooks_suspended ON webhooks USING btree (state) WHERE (state = 'suspended'::text);
CREATE TRIGGER answers_changed AFTER UPDATE ON answers REFERENCING OLD TABLE AS gone NEW TABLE AS entered FOR EACH STATEMENT EXECUTE FUNCTION answers_changed();
CREATE TRIGGER answers_entered AFTER INSERT ON answers REFERENCING NEW TABLE AS entered FOR EACH STATEMENT EXECUTE FUNCTION answers_entered();
CREATE TRIGGER answers_left AFTER DELETE ON answers REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION answers_left();
ALTER TABLE ONLY blob_chunks
    ADD CONSTRAINT blob_chunks_blob_id_fkey FOREIGN KEY (blob_id) REFERENCES blobs(blob_id) ON DELETE CASCADE;
