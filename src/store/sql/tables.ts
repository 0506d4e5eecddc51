/**
 * All tables of both engines but those of PostgreSQL alone. A comment beside an index says which query needs it, where its
 * columns do not.
 */
import type {
  Budget,
  Child,
  DeliveryState,
  Failure,
  FileRecord,
  Kept,
  KeyRecord,
  LedgerEntry,
  Limit,
  Message,
  Node,
  Pause,
  Priority,
  Question,
  Requirements,
  Resources,
  Review,
  Schedule,
  StoredAnswer,
  Task,
  TaskOrigin,
  TaskStatus,
  Webhook,
} from "../../domain/model.ts";
import type { Outcome } from "../../domain/change.ts";
import type { NewEvent } from "../../domain/event.ts";
import { isSpecial } from "../../domain/lane.ts";
import { soundChild, soundQuorum, soundReview } from "../../domain/sound.ts";
import { TREASURY } from "../../domain/lux.ts";
import { dueAt } from "../../domain/task/facet/start-time.ts";
import { retainUntil } from "../../domain/task/retention.ts";
import { assert } from "../../lib/assert.ts";
import { isGlob } from "../../lib/globs.ts";
import {
  as,
  big,
  flag,
  from,
  id,
  ids,
  int,
  json,
  keyNumber,
  maybe,
  or,
  orBlank,
  orNone,
  rowNumber,
  table,
  text,
  theOne,
  unchecked,
  unique,
  whole,
  words,
  term,
  type Table,
} from "./table.ts";

/** Tells this database from others that share a Redis with it. */
export const IDENTITY = table("identity", { one: theOne(), database_id: text() });

// ---- Nodes

export const NODES = table(
  "nodes",
  {
    seq: rowNumber(), // order of registration
    node_id: unique(id()),
    name: text(),
    host: maybe(text()),
    port: maybe(int()),
    capabilities: words(),
    variant: text<Node["variant"]>(),
    max_tasks: maybe(int()),
    online: flag(),
    registered_at: whole(),
    // running totals, kept by domain/task/
    tasks_assigned: whole(),
    tasks_completed: whole(),
    lux_earned_micro: big(),
    idle_since: whole(),
    entries: or(0, whole()), // of the ledger
    balance_micro: or(0, big()),
    auto_assign: or(1, flag()),
    deleted: or(0, flag()),
    draining: or(0, flag()),
    has_leases: or(0, flag()),
    resources: from(maybe(json<Resources>()), ({ resources }: Pick<Node, "resources">) =>
      Object.keys(resources).length === 0 ? null : resources,
    ),
  },
  {
    indexes: {
      // the balancer's order; the first words leave out most nodes
      nodes_available: `(tasks_assigned, idle_since, node_id)
        WHERE auto_assign = 1 AND online = 1 AND draining = 0 AND (max_tasks IS NULL OR tasks_assigned < max_tasks)`,
      nodes_deleted: "(node_id) WHERE deleted = 1",
      // which nodes went offline with tasks
      nodes_stranded: "(node_id) WHERE online = 0 AND tasks_assigned > 0",
    },
  },
);

/** What every heartbeat writes: short rows, so that 64 heartbeats of 10,000 nodes write 36 pages, not 64. */
export const BEATS = table("beats", {
  seq: keyNumber("seq > 0"), // of the node
  last_heartbeat_at: whole(),
  lease_until: whole(), // steady clock
});

// ---- Tasks: a task is several rows, because SQLite writes a row whole, and a prompt may have 64 KiB

/** Each transition writes it. */
export const TASKS = table(
  "tasks",
  {
    seq: rowNumber(), // order of creation
    task_id: unique(id()),
    title: text(),
    task_type: id(),
    priority: int<Priority>(),
    creator_node: maybe(text()),
    creator_verified: flag(),
    status: id<TaskStatus>(),
    lux_reward_micro: whole(),
    assigned_node: maybe(id()),
    balanced: flag(),
    revoked_from: maybe(id()),
    attempts: int(),
    failures: int(),
    restarts: int(),
    timeout_ms: maybe(whole()),
    max_run_ms: maybe(whole()),
    run_until: maybe(whole()), // steady clock
    lease_until: maybe(whole()), // steady clock
    epoch: whole(),
    not_before: maybe(whole()),
    expires_at: maybe(whole()),
    unmet: int(),
    has_dependents: or(0, flag()),
    ready: from(maybe(whole()), encodeReady),
    due_at: from(maybe(whole()), dueAt), // when the clock starts or ends it
    started_at: maybe(whole()),
    progress: maybe(text()),
    failure: maybe(json<Failure>()),
    failed_node: from(maybe(id()), ({ status, failure }: Pick<Task, "status" | "failure">) =>
      status === "failed" && failure !== null ? failure.nodeId : null,
    ),
    limit_key: maybe(id()),
    lane: from(maybe(id()), encodeLane),
    counts_for: maybe(id()),
    result_verified: or(0, flag()),
    paid_seq: maybe(whole()),
    created_at: whole(),
    updated_at: whole(),
  },
  {
    // On PostgreSQL seq stands in the indexes, to which SQLite adds the number of the row by itself.
    indexes: {
      // task/list by status
      tasks_status: "(status[, seq])",
      // what a node holds, and what it has done
      tasks_node: "(assigned_node, status[, seq]) WHERE assigned_node IS NOT NULL",
      // what it has not started
      tasks_gifts: "(assigned_node, priority[, seq]) WHERE status = 'assigned' AND started_at IS NULL",
      // what failed at a node
      tasks_failed: "(failed_node[, seq]) WHERE failed_node IS NOT NULL",
      // failures, last changed first
      tasks_failed_at: "(status, updated_at[, seq]) WHERE status = 'failed'",
      // what time opens or ends
      tasks_lease: "(lease_until) WHERE lease_until IS NOT NULL",
      tasks_due: "(due_at) WHERE due_at IS NOT NULL",
      // the backlog: of all types, of one type, of a special lane
      tasks_pool: "(balanced, priority[, seq]) WHERE ready = 1",
      tasks_pool_type: "(balanced, task_type, priority[, seq]) WHERE ready = 1",
      tasks_pool_lane: "(balanced, lane, priority[, seq]) WHERE ready = 2",
      tasks_lanes: "(status, lane) WHERE lane IS NOT NULL AND status IN ('open', 'assigned')",
      // the special lanes of the unfinished tasks that keys bound to a node have created
      tasks_lanes_of_node: `(creator_node, lane)
        WHERE lane IS NOT NULL AND status IN ('open', 'assigned') AND creator_verified = 1`,
      // what runs under a limit key
      tasks_counted: "(counts_for) WHERE counts_for IS NOT NULL",
      // stats/types: what waits
      tasks_waiting: "(task_type) WHERE ready = 0",
    },
    // task/list by type and by creator, a block of tasks at a time. PostgreSQL has one index for both, because it writes
    // every index at each update of a task: a search by type alone reads all entries of a block.
    indexesOf: {
      sqlite: {
        tasks_type: "(seq / 512, task_type) WHERE task_type <> ''",
        tasks_creator: "(seq / 512, creator_node, task_type) WHERE creator_node IS NOT NULL",
      },
      postgresql: {
        tasks_filter: `((seq / 512), creator_node, task_type, seq)
          WHERE creator_node IS NOT NULL OR task_type <> ''`,
      },
    },
  },
);

/** The codes of `ready`: of an open task, 0 waits, 1 is in the plain lane of its type, 2 in a special one. */
export function encodeReady({
  status,
  scheduled,
  lane,
}: Pick<Task, "status" | "scheduled" | "lane">): number | null {
  if (status !== "open") return null;
  if (scheduled) return 0;
  return isSpecial(lane) ? 2 : 1;
}

/** The name of a special lane; that of a plain one is the type, and not stored twice. */
export function encodeLane({ lane, taskType }: Pick<Task, "lane" | "taskType">): string | null {
  assert(isSpecial(lane) || lane === taskType, "the name of a plain lane is its type");
  return isSpecial(lane) ? lane : null;
}

/** What is written once, when the task is created. */
export const TASK_SPECS = table("task_specs", {
  task_seq: keyNumber(),
  max_attempts: maybe(int()),
  backoff_ms: int(),
  description: text(),
  depends_on: ids(),
});

/** Written when it is completed; a rejected review removes it. */
export const TASK_RESULTS = table("task_results", {
  task_seq: keyNumber(),
  problem: text(),
  improvement: text(),
  lesson: text(),
  result_extra: as("extra", maybe(text())),
});

/** The features of a task that uses one. status, updated_at and assigned_node are copies for the indexes. */
export const TASK_FEATURES = table(
  "task_features",
  {
    task_seq: keyNumber(),
    status: id<TaskStatus>(),
    updated_at: whole(),
    assigned_node: maybe(id()),
    creator_key: maybe(text()),
    schedule: from(maybe(id()), ({ schedule }: Pick<Task, "schedule">) => schedule?.name ?? null),
    schedule_at: from(maybe(whole()), ({ schedule }: Pick<Task, "schedule">) => schedule?.at ?? null),
    retain_ms: term(maybe(whole())),
    retain_until: from(maybe(whole()), retainUntil),
    on_dependency: from(maybe(text()), ({ onDependency }: Pick<Task, "onDependency">) =>
      onDependency === "fail" ? null : onDependency,
    ),
    task_group: term(as("group", maybe(id()))),
    tags: term(orNone(words())),
    unique_key: maybe(text()),
    unique_until: maybe(whole()),
    requires: term(maybe(json<Requirements>())),
    questions: maybe(json<NonNullable<Task["questions"]>>()),
    review: maybe(json(soundReview)),
    review_until: from(maybe(whole()), ({ review }: { readonly review: Review }) =>
      review.check?.state === "pending" ? review.check.until : null,
    ),
    quorum: maybe(json(soundQuorum)),
    child: maybe(json(soundChild)),
    parent_task: from(maybe(id()), ({ child }: { readonly child: Child }) => child.of),
    not_nodes: orNone(words()),
    spent: maybe(json<NonNullable<Task["spent"]>>()),
    max_cost_micro: term(maybe(whole())),
    has_leases: or(0, flag()),
    has_output: or(0, flag()),
    checkpoint_bytes: or(0, whole()),
    earlier_failures: orNone(json<readonly Failure[]>()),
    kept_bytes: or(0, whole()),
    lent_bytes: or(0, whole()),
    broken_by: maybe(id()),
    a2a_caller: as("caller", maybe(id())),
    a2a_ids: from(maybe(text()), ({ contextId, messageId }: Omit<TaskOrigin, "caller">) =>
      JSON.stringify({ context: contextId, message: messageId }),
    ),
    traceparent: term(maybe(text())),
    tracestate: term(maybe(text())),
  },
  {
    indexes: {
      // the tasks of a group, by state
      features_group: "(task_group, status, task_seq) WHERE task_group IS NOT NULL",
      // what failed last
      features_group_failed: "(task_group, updated_at) WHERE status = 'failed' AND task_group IS NOT NULL",
      // results that wait for their review, the first deadline first
      features_in_review: "(review_until, task_seq) WHERE review_until IS NOT NULL",
      // whose own retention has ended
      features_retained: "(retain_until, task_seq) WHERE retain_until IS NOT NULL",
      // the tasks of a schedule that have not ended
      features_schedule: `(schedule)
        WHERE schedule IS NOT NULL AND (status IN ('open', 'assigned') OR review_until IS NOT NULL)`,
      // who holds a unique key
      features_unique: "(unique_key, status, task_seq) WHERE unique_key IS NOT NULL",
      features_unique_in_review:
        "(unique_key, task_seq) WHERE review_until IS NOT NULL AND unique_key IS NOT NULL",
      features_unique_until: "(unique_key, unique_until) WHERE unique_until IS NOT NULL",
      // the copies and the reviews of a task
      features_children: "(parent_task) WHERE parent_task IS NOT NULL",
      // what failed because of a task
      features_broken: "(broken_by, task_seq) WHERE broken_by IS NOT NULL",
      // the tasks of an A2A client, last changed last
      features_a2a: "(a2a_caller, updated_at) WHERE a2a_caller IS NOT NULL",
      // what the tasks of a node use
      features_using: "(assigned_node) WHERE status = 'assigned' AND requires IS NOT NULL",
      // the open tasks that some nodes may not have
      features_choosy: "(task_seq) WHERE status = 'open' AND not_nodes IS NOT NULL",
    },
  },
);

/** Without a row of features a count of them is 0. */
function shown(table: Table, name: string, ...hidden: readonly string[]): string {
  const columns = Object.entries(table.columns).filter(([column]) => !hidden.includes(column));
  const counts = (constraint: string): boolean => name === "f" && constraint.includes("DEFAULT 0");
  return columns
    .map(([column, { constraint }]) =>
      counts(constraint.sqlite) ? `coalesce(f.${column}, 0) AS ${column}` : `${name}.${column}`,
    )
    .join(", ");
}

export const TASK_ROWS = `
  CREATE VIEW task_rows AS SELECT ${shown(TASKS, "t")}, ${shown(TASK_SPECS, "s", "task_seq")},
    ${shown(TASK_RESULTS, "r", "task_seq")},
    ${shown(TASK_FEATURES, "f", "task_seq", "status", "updated_at", "assigned_node")}, f.task_seq AS features_of
    FROM tasks t LEFT JOIN task_specs s ON s.task_seq = t.seq LEFT JOIN task_results r ON r.task_seq = t.seq
      LEFT JOIN task_features f ON f.task_seq = t.seq`;

export const TASK_TOTALS = table("task_totals", {
  one: theOne(),
  open: whole(),
  assigned: whole(),
  completed: whole(),
  failed: or(0, whole()),
});

export const DEPENDENCIES = table(
  "dependencies",
  { task_id: id(), depends_on: id() },
  { key: ["task_id", "depends_on"], indexes: { dependencies_of: "(depends_on)" } },
);

export const SETTLEMENTS = table(
  "settlements",
  { task_id: id(), outcome: text<Outcome>() },
  { key: ["task_id"] },
);

export const CHECKPOINTS = table(
  "checkpoints",
  { task_id: id(), data: text(), epoch: whole(), node_id: text(), at: whole() },
  { key: ["task_id"], hasRowId: true },
);

export const QUESTIONS = table(
  "questions",
  {
    seq: rowNumber(),
    question_id: unique(id()),
    task_id: id(),
    question: text(),
    choices: orNone(json<Question["choices"]>()),
    schema: maybe(text()),
    asked_by: text(),
    epoch: whole(),
    asked_at: whole(),
    until: whole(),
    state: text<Question["state"]>(),
    answer: maybe(text()),
    answered_by: maybe(text()),
    answered_at: maybe(whole()),
    verified: or(0, flag()),
  },
  {
    indexes: {
      questions_task: "(task_id[, seq])",
      questions_open: "(until[, seq]) WHERE state = 'open'",
    },
  },
);

export const OUTPUTS = table(
  "outputs",
  {
    task_id: id(),
    epoch: whole(),
    node_id: id(),
    bytes: whole(),
    kept_bytes: whole(),
    begun_at: whole(),
    at: whole(),
  },
  { key: ["task_id", "epoch"] },
);

export const OUTPUT_BLOCKS = table(
  "output_blocks",
  { task_id: id(), epoch: whole(), n: whole(), start: whole(), data: text() },
  { key: ["task_id", "epoch", "n"], hasRowId: true },
);

// ---- Groups, families, schedules

export const GROUP_TOTALS = table(
  "group_totals",
  {
    task_group: as("group", id()),
    open: unchecked(whole()),
    assigned: unchecked(whole()),
    completed: unchecked(whole()),
    failed: unchecked(whole()),
    cancelled: unchecked(whole()),
    in_review: unchecked(whole()),
    lux: unchecked(whole()),
    lux_micro: unchecked(whole()),
    paid: unchecked(whole()),
    paid_micro: unchecked(whole()),
    first_created_at: unchecked(whole()),
    last_created_at: unchecked(whole()),
    last_updated_at: unchecked(whole()),
  },
  { key: ["task_group"], hasRowId: true },
);

/** The groups that may have ended. */
export const GROUP_ENDINGS = table(
  "group_endings",
  { task_group: as("group", id()) },
  { key: ["task_group"] },
);

/** The families that must be looked at. */
export const FAMILY_CHECKS = table("family_checks", { task_id: id() }, { key: ["task_id"] });

/** Who pays for what a row keeps (domain/quota.ts). */
type MaybeKept = { readonly kept?: Kept };
const KEPT = {
  kept_by: from(maybe(id()), ({ kept }: MaybeKept) => kept?.by ?? null),
  kept_bytes: or(
    0,
    from(whole(), ({ kept }: MaybeKept) => kept?.bytes ?? 0),
  ),
};

export const SCHEDULES = table(
  "schedules",
  {
    name: id(),
    timing: json<Schedule["timing"]>(),
    task: json<Schedule["task"]>(),
    creator_node: from(maybe(id()), ({ task }: Pick<Schedule, "task">) => task.creatorNode),
    overlap: text<Schedule["overlap"]>(),
    catch_up: text<Schedule["catchUp"]>(),
    jitter_ms: whole(),
    until: maybe(whole()),
    paused: flag(),
    next_at: maybe(whole()),
    last_task_id: maybe(id()),
    last_at: maybe(whole()),
    created_at: whole(),
    updated_at: whole(),
    ...KEPT,
    skip_logged_at: maybe(whole()),
  },
  { key: ["name"], hasRowId: true, indexes: { schedules_due: "(next_at) WHERE next_at IS NOT NULL" } },
);

// ---- Costs and quotas

const SPENDING = {
  reports: whole(),
  unpriced: whole(),
  input_tokens: whole(),
  output_tokens: whole(),
  cached_tokens: whole(),
  cost_micro: whole(),
};

export const USAGE_REPORTS = table(
  "usage_reports",
  {
    task_id: id(),
    epoch: whole(),
    seq: whole(),
    node_id: text(),
    at: whole(),
    model: id(),
    input_tokens: whole(),
    output_tokens: whole(),
    cached_tokens: whole(),
    cost_micro: maybe(whole()),
  },
  { key: ["task_id", "epoch", "seq"] },
);

export const USAGE_SUMS = table(
  "usage_sums",
  { scope: id(), value: id(), day: whole(), ...SPENDING },
  { key: ["scope", "value", "day"], indexes: { usage_sums_days: "(day)" } },
);

export const NODE_SUMS = table(
  "node_sums",
  { day: whole(), node_id: id(), scope: id(), value: id(), ...SPENDING, kept_bytes: whole() },
  { key: ["day", "node_id", "scope", "value"] },
);

export const BUDGETS = table(
  "budgets",
  {
    scope: id<Budget["scope"]>(),
    value: id(),
    per: id<Budget["per"]>(),
    cost_micro: maybe(whole()),
    tokens: maybe(whole()),
    on_limit: text<Budget["onLimit"]>(),
    warned_in: maybe(whole()),
    exceeded_in: maybe(whole()),
  },
  { key: ["scope", "value", "per"] },
);

export const QUOTA_USAGE = table(
  "quota_usage",
  { node_id: id(), tasks: whole(), bytes: whole() },
  { key: ["node_id"] },
);

export const TASK_CHARGES = table(
  "task_charges",
  { task_id: id(), node_id: id(), bytes: whole() },
  { key: ["task_id", "node_id"] },
);

// ---- What closes lanes

export const PAUSES = table(
  "pauses",
  { scope: id<Pause["scope"]>(), value: id(), reason: maybe(text()), at: whole() },
  { key: ["scope", "value"] },
);

export const LIMITS = table(
  "limits",
  {
    limit_key: as("key", id()),
    running: maybe(whole()),
    per_minute: maybe(whole()),
    held_until: from(maybe(whole()), ({ hold }: Pick<Limit, "hold">) => hold?.until ?? null),
    held_by: from(maybe(id()), ({ hold }: Pick<Limit, "hold">) => hold?.by ?? null),
    held_at: from(maybe(whole()), ({ hold }: Pick<Limit, "hold">) => hold?.at ?? null),
  },
  { key: ["limit_key"] },
);

export const LIMIT_USES = table(
  "limit_uses",
  { limit_key: as("key", id()), second: whole(), uses: whole() },
  { key: ["limit_key", "second"] },
);

// ---- LUX

export const LEDGER = table(
  "ledger",
  {
    seq: keyNumber(), // 1, 2, 3, …: no gap
    entry_id: as("id", text()),
    from_account: from(maybe(text()), ({ from: account }: Pick<LedgerEntry, "from">) =>
      account === TREASURY ? null : account,
    ),
    to_account: from(maybe(text()), ({ to, nodeId }: Pick<LedgerEntry, "to" | "nodeId">) =>
      nodeId === null ? to : null,
    ),
    node_id: maybe(id()), // NULL: it goes to no node
    n: maybe(whole()), // 1, 2, 3, … of the node: no gap, none twice
    amount_micro: whole(),
    balance_micro: maybe(big()), // the sum of the node's entries up to this one
    kind: text<LedgerEntry["kind"]>(),
    task_id: maybe(text()),
    at: whole(),
    hash: maybe(text()), // SHA-256 of it and of the hash before it (domain/lux.ts)
  },
  {
    checks: [
      "(node_id IS NULL) = (to_account IS NOT NULL)",
      "(node_id IS NULL) = (n IS NULL)",
      "(node_id IS NULL) = (balance_micro IS NULL)",
    ],
    indexes: {
      // lux/ledger
      ledger_node: "UNIQUE (node_id, n)",
      // a day pays once: the rules see to it, and the store would not take it otherwise
      ledger_signin: "UNIQUE (node_id, (at / 86400000)) WHERE kind = 'signin'",
    },
  },
);

export const MINTS = table(
  "mints",
  { key_id: id(), day: whole(), micro: whole() },
  { key: ["key_id", "day"] },
);

// ---- Messages

export const MESSAGES = table(
  "messages",
  {
    seq: rowNumber(), // order of arrival
    message_id: unique(id()),
    from_node: id(),
    to_node: maybe(id()), // NULL: a broadcast
    type: text<Message["type"]>(),
    content: text(),
    require_ack: flag(),
    sent_at: whole(),
    verified: or(0, flag()),
    kept_bytes: or(
      0,
      from(whole(), ({ keptBytes }: { readonly keptBytes?: number | undefined }) => keptBytes ?? 0),
    ),
    reply_to: maybe(id()),
    thread: maybe(id()),
  },
  {
    indexes: {
      // message/history of what a node sent, and of a thread
      messages_from: "(from_node[, seq])",
      messages_thread: "(thread[, seq]) WHERE thread IS NOT NULL",
    },
  },
);

/** In order of arrival, not by node: what is sent and received at one time lies together on few pages. */
export const DELIVERIES = table(
  "deliveries",
  {
    seq: whole(), // of the message
    to_node: id(),
    state: id<DeliveryState>(),
    deliveries: int(),
    lease_until: maybe(whole()), // steady clock; only while leased
    broadcast: flag(),
  },
  {
    key: ["seq", "to_node"],
    indexes: {
      // message/history of what a node got
      deliveries_got: "(to_node, seq)",
      // a node's mailbox
      deliveries_waiting: "(to_node, seq) WHERE state = 'waiting'",
      // whose ACK is late
      deliveries_lease: "(lease_until) WHERE state = 'leased'",
      // message/parked, of a node and of all
      deliveries_parked: "(to_node, seq) WHERE state = 'parked'",
      deliveries_parked_all: "(state, seq) WHERE state = 'parked'",
    },
  },
);

/** What became of each broadcast. Nobody sees one while its deliveries are being written. */
export const BROADCASTS = table(
  "broadcasts",
  {
    seq: keyNumber(), // of the message
    write_until: maybe(whole()), // steady clock; 0: to be dropped; NULL: all are written
    waiting: whole(), // recipients by state
    delivered: whole(),
    acked: whole(),
  },
  // none, or one for each hub
  { indexes: { broadcasts_unfinished: "(seq) WHERE write_until IS NOT NULL" } },
);

// ---- Files, notes, leases

export const FILES = table(
  "files",
  {
    seq: rowNumber(),
    file_id: unique(id()),
    name: text(),
    size_bytes: whole(),
    sha256: text(),
    content_type: text(),
    metadata: text(),
    node_id: maybe(text()),
    task_id: maybe(id()),
    uploaded_at: whole(),
    kept_bytes: or(0, whole()),
    output: or(
      0,
      from(flag(), ({ attached }: Pick<FileRecord, "attached">) => attached === "output"),
    ),
  },
  { indexes: { files_task: "(task_id[, seq]) WHERE task_id IS NOT NULL" } },
);

export const FILE_TOTALS = table("file_totals", { one: theOne(), files: whole(), bytes: whole() });

export const NOTES = table(
  "notes",
  {
    key: id(),
    version: whole(),
    node_id: maybe(id()),
    verified: flag(),
    bytes: whole(),
    created_at: whole(),
    updated_at: whole(),
    content: as("text", text()),
    ...KEPT,
  },
  // their totals
  { key: ["key"], hasRowId: true, indexes: { notes_sizes: "(node_id, bytes)" } },
);

export const LEASES = table(
  "leases",
  {
    node_id: id(),
    name: id(),
    task_id: orBlank(id()), // "": it belongs to no task
    shared: flag(),
    is_glob: from(flag(), ({ name }: { readonly name: string }) => isGlob(name)),
    fencing: whole(),
    ttl_ms: whole(),
    lease_until: whole(), // steady clock
    acquired_at: whole(),
  },
  {
    key: ["node_id", "name", "task_id"],
    indexes: {
      leases_name: "(name)",
      leases_globs: "(is_glob) WHERE is_glob = 1",
      leases_task: "(task_id)",
    },
  },
);

export const FENCING = table("fencing", { one: theOne(), last: whole() });

// ---- Events, statistics, stored answers

export const EVENTS = table(
  "events",
  {
    id: keyNumber(),
    at: whole(),
    kind: id<NewEvent["kind"]>(),
    node_id: maybe(id()),
    task_id: maybe(text()),
    data: json<NewEvent["data"]>(),
    verified: or(0, flag()),
    kept_bytes: or(
      0,
      from(whole(), ({ keptBytes }: NewEvent) => keptBytes ?? 0),
    ),
    kept_by: from(maybe(id()), ({ keptBy }: NewEvent) => keptBy ?? null),
  },
  {
    // None by node_id: a stream is told the ids of its events when they are committed, and reads the log in order when it
    // comes back. Such an index is a page to write for each event, wherever its node is in it.
    indexes: {
      // events of one kind; poll's task events
      events_kind: "(kind[, id])",
      events_task: "(task_id[, id]) WHERE task_id IS NOT NULL",
    },
  },
);

/** The numbers of a minute of one hub, as JSON. */
export const MINUTES = table("minutes", { at: whole(), hub: id(), numbers: text() }, { key: ["at", "hub"] });

/** Sums of minutes, as JSON; `at` is when the period begins. */
export const PERIODS = table(
  "periods",
  { step_ms: whole(), at: whole(), numbers: text() },
  { key: ["step_ms", "at"] },
);

export const ANSWERS = table(
  "answers",
  {
    scope: id(),
    key_id: from(text(), keyIdOf),
    body_hash: as("asked", text()),
    status: int(),
    stored_at: whole(),
    bytes: from(whole(), bytesOf),
    body: text(),
  },
  {
    key: ["scope"],
    hasRowId: true, // SQLite would read megabytes to compare a key with its neighbours
    indexes: {
      // the sum of a key's answers, and its oldest
      answers_key: "(key_id, stored_at, scope, bytes)",
      answers_age: "(stored_at, scope, bytes)",
    },
  },
);

export function bytesOf({ scope, body }: Pick<StoredAnswer, "scope" | "body">): number {
  return Buffer.byteLength(scope) + Buffer.byteLength(body);
}

/** The key whose answer it is; "" is the main secret. The scope begins with it. */
export function keyIdOf({ scope }: Pick<StoredAnswer, "scope">): string {
  return scope.slice(0, scope.indexOf(" "));
}

/** Kept by triggers. */
export const ANSWER_TOTALS = table("answer_totals", { key_id: id(), bytes: whole() }, { key: ["key_id"] });

// ---- Keys, invitations, webhooks

export const KEYS = table(
  "keys",
  {
    key_id: id(),
    // A full key is stored as "secret".
    role: from(text(), ({ role }: Pick<KeyRecord, "role">) => (role === "full" ? "secret" : role)),
    hash: unique(text()),
    variant: maybe(text<NonNullable<KeyRecord["variant"]>>()),
    node_id: maybe(text()),
    created_at: whole(),
    expires_at: maybe(whole()),
    revoked_at: maybe(whole()),
    mint_micro: maybe(whole()),
  },
  { key: ["key_id"] },
);

export const INVITATIONS = table(
  "invitations",
  {
    token_hash: id(),
    invitation_id: id(),
    node_id: id(),
    created_at: whole(),
    expires_at: whole(),
    used_at: maybe(whole()),
    key_id: maybe(id()),
  },
  { key: ["token_hash"], indexes: { invitations_id: "(invitation_id)" } },
);

export const WEBHOOKS = table(
  "webhooks",
  {
    name: id(),
    webhook_id: text(),
    revision: whole(),
    url: text(),
    format: text<Webhook["format"]>(),
    filter: json<Webhook["filter"]>(),
    push: maybe(json<NonNullable<Webhook["push"]>>()),
    push_task_id: from(maybe(id()), ({ push, filter }: Pick<Webhook, "push" | "filter">) =>
      push === null ? null : filter.taskId,
    ),
    secret: maybe(text()),
    cursor_id: as("cursor", whole()), // the last event that needs no delivery
    state: text<Webhook["state"]>(),
    attempts: whole(),
    failing_since: maybe(whole()),
    next_at: maybe(whole()),
    last_error: maybe(text()),
    delivered_at: maybe(whole()),
    created_at: whole(),
    updated_at: whole(),
    ...KEPT,
  },
  {
    key: ["name"],
    hasRowId: true,
    indexes: {
      webhooks_push: "(push_task_id, name) WHERE push_task_id IS NOT NULL",
      // how many push configs the keys of a node have saved
      webhooks_push_kept: "(kept_by) WHERE push_task_id IS NOT NULL",
      webhooks_suspended: "(state) WHERE state = 'suspended'",
    },
  },
);

/** In the order in which backups and moves copy them. */
export const TABLES = [
  IDENTITY,
  NODES,
  BEATS,
  TASKS,
  TASK_SPECS,
  TASK_RESULTS,
  TASK_FEATURES,
  TASK_TOTALS,
  DEPENDENCIES,
  CHECKPOINTS,
  QUESTIONS,
  USAGE_REPORTS,
  USAGE_SUMS,
  NODE_SUMS,
  BUDGETS,
  PAUSES,
  LIMITS,
  LIMIT_USES,
  OUTPUTS,
  OUTPUT_BLOCKS,
  SETTLEMENTS,
  GROUP_TOTALS,
  GROUP_ENDINGS,
  FAMILY_CHECKS,
  LEDGER,
  MINTS,
  MESSAGES,
  DELIVERIES,
  BROADCASTS,
  FILES,
  FILE_TOTALS,
  NOTES,
  LEASES,
  FENCING,
  EVENTS,
  MINUTES,
  PERIODS,
  ANSWERS,
  ANSWER_TOTALS,
  SCHEDULES,
  WEBHOOKS,
  KEYS,
  INVITATIONS,
  QUOTA_USAGE,
  TASK_CHARGES,
] as const;

/** PostgreSQL has a few tables more (store/postgres/schema.ts). */
export type TableName = (typeof TABLES)[number]["name"] | "hubs";
