/**
 * Every limit of the hub. Sizes in bytes, times in milliseconds, unless the name says otherwise. From the
 * specification, section 8; where it is silent, so that no caller can make memory or disk grow without bound.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/clock.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/** The share of each caller keeps it from excluding the others (api/caller-shares.ts). */
export type ShareSizes = {
  readonly keys: number;
  /** Neither bound to a node nor a viewer: a fleet of thousands of nodes may use one. */
  readonly fullKey: number;
  /** Bound to a node, or a viewer. */
  readonly limitedKey: number;
  /** All callers without a valid key. */
  readonly addresses: number;
  readonly address: number;
};

// What a caller may send.
export const JSON_BODY_MAX_BYTES = 1 * MIB;
/** Parsing many values takes 100 times as long as parsing one long text. */
export const JSON_VALUES_MAX = 50_000;
export const ERRORS_MAX = 100;
export const IGNORED_FIELDS_MAX = 20;
export const IGNORED_FIELD_MAX_CHARS = 100;
export const COMPILE_INPUT_AFTER = 1_000;
/** Levels of a JSON value that is stored or compared as a whole. */
export const JSON_DEPTH_MAX = 64;
export const NODE_ID_MAX_CHARS = 128;
/** Paths under node/, and path segments that a client removes. */
export const RESERVED_NODE_IDS: ReadonlySet<string> = new Set([
  "list",
  "register",
  "heartbeat",
  "leave",
  "drain",
  "delete",
  ".",
  "..",
]);
export const NODE_NAME_MAX_CHARS = 200;
export const NODE_CURSOR_MAX_CHARS = 256;
export const HOST_MAX_CHARS = 255;
export const PORT_MAX = 65_535;
/** Where a hub with --tls auto listens with TLS, unless it is told where. */
export const TLS_PORT = 19_443;
export const CAPABILITIES_MAX = 64;
export const CAPABILITY_MAX_CHARS = 100;
export const NODE_MAX_TASKS_MAX = 1_000_000;
/** As W3C Trace Context wants it to be passed on at least. */
export const TRACESTATE_MAX_CHARS = 512;
export const TITLE_MAX_CHARS = 500;
export const DESCRIPTION_MAX_BYTES = 64 * KIB;
export const TASK_TYPE_MAX_CHARS = 100;
export const TASK_TYPES_MAX = 64;
export const RESULT_TEXT_MAX_BYTES = 64 * KIB;
export const RESULT_EXTRA_MAX_BYTES = 64 * KIB;
export const REASON_MAX_CHARS = 500;
export const ERROR_MAX_CHARS = 4_000;
export const NOTE_MAX_CHARS = 1_000;
export const ATTEMPTS_MAX = 100;
export const BACKOFF_DEFAULT_SECONDS = 5;
export const BACKOFF_MAX_SECONDS = 3_600;
export const TASK_TIMEOUT_MAX_SECONDS = 604_800;
export const TASK_RUN_MAX_SECONDS = 2_592_000;
/** Ten years. */
export const TASK_AHEAD_MAX_SECONDS = 315_360_000;
export const DEPENDENCIES_MAX = 1_000;
export const UNIQUE_KEY_MAX_CHARS = 255;
export const WAITED_TASKS_MAX = 100;
export const UNMET_SHOWN_MAX = 20;
/** In one transaction, with what they depend on. */
export const RETRIED_DEPENDENTS_MAX = 250;
export const RETRIED_DEPENDENCIES_MAX = 2_500;
export const DEPENDENTS_COUNTED_MAX = 100_000;
/** Paths under group/, and path segments that a client removes. */
export const RESERVED_GROUPS: ReadonlySet<string> = new Set(["cancel", "retry", "list", ".", ".."]);
export const TAGS_MAX = 16;
export const TAG_MAX_CHARS = 64;
export const GROUPS_LISTED_MAX = 50;
export const GROUP_FAILURES_SHOWN = 20;
/** In one transaction. */
export const GROUP_STEP_TASKS = 250;
/** In one transaction. */
export const GROUPS_CHECKED = 100;
/** For a task without max_attempts. */
export const FAILURES_DEFAULT_MAX = 10;
export const FAILED_ATTEMPTS_KEPT = 5;
export const CHECKPOINT_MAX_BYTES = 64 * KIB;
export const OUTPUT_SENT_MAX_BYTES = 64 * KIB;
export const OUTPUT_HEAD_DEFAULT_BYTES = 64 * KIB;
export const OUTPUT_TAIL_DEFAULT_BYTES = 192 * KIB;
export const OUTPUT_KEPT_MAX_BYTES = 64 * MIB;
export const OUTPUT_ATTEMPTS_KEPT = 3;
/** Small pieces are appended to the last block, so that rows stay few. */
export const OUTPUT_BLOCK_BYTES = 16 * KIB;
export const OUTPUT_BLOCKS_PER_READ = 16;
/** A notification of another hub may have been lost. */
export const OUTPUT_REREAD_MS = 15 * SECOND_MS;
export const CONTEXT_RESULTS_MAX_BYTES = 256 * KIB;
export const CONTEXT_FILES_MAX = 1_000;
/** With CONTEXT_LESSONS_MAX_BYTES together. */
export const CONTEXT_LESSONS_MAX = 5;
export const CONTEXT_LESSONS_MAX_BYTES = 2 * KIB;
export const LESSON_SHOWN_MAX_CHARS = 2_000;
export const LESSONS_PER_PAGE_DEFAULT = 20;
export const LESSONS_PER_PAGE_MAX = 100;
/** About a millisecond. */
export const LESSONS_STEP_ROWS = 100;
/** Some KiB each. */
export const LESSONS_TYPES_MAX = 1_000;
/** Of more completed tasks of other hubs it reads the last ones. */
export const LESSONS_UNREAD_MAX = 500;
export const INPUTS_PAGE_MAX_BYTES = 1024 * KIB;
export const GRAPH_LAYERS = 3;
export const GRAPH_LAYER_TASKS = 50;
export const GRAPH_DEPENDENTS_COUNTED_MAX = 10_000;
export const INPUTS_PER_PAGE_MAX = 100;
export const INPUTS_PER_PAGE_DEFAULT = 20;
export const QUESTION_MAX_CHARS = 4_000;
export const CHOICES_MAX = 20;
export const CHOICE_MAX_CHARS = 200;
export const ANSWER_SCHEMA_MAX_BYTES = 8 * KIB;
export const ANSWER_MAX_BYTES = 16 * KIB;
export const QUESTION_DEFAULT_SECONDS = 86_400;
export const QUESTION_MAX_SECONDS = 604_800;
export const REVIEW_DEFAULT_SECONDS = 604_800;
export const REVIEW_MAX_SECONDS = 2_592_000;
export const REVIEW_NOTE_MAX_CHARS = 4_000;
/** A review that has passed, but whose worker cannot be paid now. */
export const REVIEW_POSTPONED_MS = 86_400_000;
export const REVIEWS_PER_PAGE_DEFAULT = 50;
export const REVIEWS_PER_PAGE_MAX = 100;
export const REVIEWS_COUNTED_MAX = 1_000;
export const QUORUM_RESULTS_MAX = 9;
export const QUORUM_COPIES_MAX = 15;
export const QUORUM_POINTERS_MAX = 10;
/** In one transaction; a task with its copies may have 1 MiB each. */
export const FAMILIES_CHECKED = 4;
export const OPEN_QUESTIONS_OF_TASK_MAX = 20;
export const QUESTIONS_OF_TASK_MAX = 1_000;
export const QUESTIONS_PER_PAGE_MAX = 50;
export const QUESTIONS_PER_PAGE_DEFAULT = 20;
export const QUESTIONS_COUNTED_MAX = 10_000;
export const CONTEXT_ANSWERS_MAX = 20;
export const CONTEXT_ANSWERS_MAX_BYTES = 256 * KIB;
export const USAGE_TOGETHER_MAX = 20;
export const USAGE_OF_TASK_MAX = 10_000;
/** For a key that is bound to a node (--report-max). */
export const REPORT_MAX_DEFAULT_USD = 100;
export const REPORT_MAX_HIGHEST_USD = 1_000_000;
/** Of each kind; the rest is "other". */
export const SUMS_OF_NODE_MAX = 100;
export const RETENTION_STEP_SUMS = 500;
export const BUDGETS_MAX = 200;
export const BUDGET_WARNING_AT = 0.8;
/** The longest name of a group: NAME/NODE. */
export const BUDGET_VALUE_MAX_CHARS = 257;
export const BUDGET_TOKENS_MAX = 1_000_000_000_000_000;
export const LIMITS_MAX = 500;
/** Keys without a limit may be held too. */
export const HOLDS_MAX = 500;
export const HOLDS_OF_NODE_MAX = 20;
export const LIMIT_KEY_MAX_CHARS = 200;
export const LIMIT_RUNNING_MAX = 10_000;
export const LIMIT_PER_MINUTE_MAX = 60_000;
export const HOLD_MAX_SECONDS = 3_600;
/** With a key that is bound to a node. */
export const BOUND_HOLD_MAX_SECONDS = 600;
export const PAUSES_MAX = 200;
export const LANES_MAX = 10_000;
export const LANES_OF_NODE_MAX = 500;
/** Workers wait for the next ready task of these, beside twice as many lanes that have one. */
export const LANES_EMPTY_AWAITED = 500;
export const POSITION_COUNTED_MAX = 1_000;
/** Other lanes may have opened or closed meanwhile. */
/** Those that may have the best task; then twice as many each time. */
export const LANES_LOOKED_UP = 16;
export const LANES_REREADS = 8;
export const RESOURCES_MAX = 16;
export const RESOURCE_NAME_MAX_CHARS = 64;
export const RESOURCE_AMOUNT_MAX = 1_000_000_000;
export const RESOURCE_UNITS = 1_000;
/** Tasks that keys of one node have sent to another node; of a node that takes all types, of a type. */
export const GIFTS_OF_GIVER_MAX = 20;
export const REQUIRED_WORDS_MAX = 16;
/** A task that needs only these does not come before others. */
export const RESOURCES_OF_EVERY_NODE: ReadonlySet<string> = new Set(["cpu", "memory_gib"]);
/** For a node that takes every type, while a budget keeps some back. */
export const OPEN_TYPES_MAX = 200;
export const MODEL_MAX_CHARS = 128;
export const USAGE_TOKENS_MAX = 1_000_000_000;
export const USAGE_COST_MAX_USD = 10_000;
export const COST_LIMIT_MAX_USD = 1_000_000_000;
export const MICRO_PER_USD = 1_000_000;
export const USAGE_DAYS_MAX = 366;
export const USAGE_DAYS_DEFAULT = 30;
export const ID_MAX_CHARS = 128;
export const NOTE_KEY_MAX_CHARS = 200;
/** A key in UTF-8, in base64. */
export const NOTE_CURSOR_MAX_CHARS = 4 * NOTE_KEY_MAX_CHARS;
export const NOTE_TEXT_MAX_BYTES = 16 * KIB;
export const NOTES_MAX = 10_000;
export const NOTES_OF_NODE_MAX = 1_000;
export const NOTES_MAX_BYTES = 64 * MIB;
/** What one step and one call of a search examine. */
export const NOTES_STEP = 20;
export const NOTES_SCANNED_MAX = 2_000;
export const NOTES_SCANNED_MAX_BYTES = 4 * MIB;
export const NOTE_EXCERPT_CHARS = 200;
/** Comparing the two worst globs takes 256 steps, some 10 us. */
export const LEASE_NAME_MAX_CHARS = 200;
export const LEASE_NAME_MAX_SEGMENTS = 32;
export const LEASE_TTL_DEFAULT_SECONDS = 300;
export const LEASE_TTL_MAX_SECONDS = 86_400;
/** Of a lease for a task, which ends with the task: as long as a task may run. */
export const LEASE_OF_TASK_SECONDS = 2_592_000;
/** An acquire of a glob compares it with all of them. */
export const LEASES_MAX = 1_000;
export const LEASES_OF_NODE_MAX = 100;
export const LEASE_HOLDERS_SHOWN_MAX = 20;
export const BATCH_ASSIGN_MAX = 500;
/** Decided without a break: some 20 ms on SQLite. */
export const BATCH_REQUESTS_MAX = 500;
export const BATCH_REF_MAX_CHARS = 64;
export const CONTENT_MAX_BYTES = 256 * KIB;
export const METADATA_MAX_BYTES = 64 * KIB;
export const FILE_DEFAULT_MAX_BYTES = 1024 * MIB;
export const FILE_NAME_MAX_CHARS = 255;
/** Every answer with a task has the ids of its files. */
export const FILES_OF_TASK_MAX = 100;
/** Each upload has a connection and a file open, and a system may allow only 1,024 descriptors. */
export const UPLOAD_SHARES: ShareSizes = {
  keys: 256,
  fullKey: 192,
  limitedKey: 16,
  addresses: 0,
  address: 0,
};
export const UPLOAD_PARTS_MAX = 16;
export const UPLOAD_PART_HEADERS_MAX_BYTES = 8 * KIB;
export const IDEMPOTENCY_KEY_MAX_CHARS = 255;
/** However steadily it arrives. */
export const JSON_BODY_DEADLINE_MS = 20 * SECOND_MS;
/** JSON bodies that are still arriving, a chunked one twice: more than 256 callers ever have in transit. */
export const BODY_BYTES_SHARES: ShareSizes = {
  keys: 64 * MIB,
  fullKey: 48 * MIB,
  limitedKey: 8 * MIB,
  addresses: 16 * MIB,
  address: 2 * MIB,
};
/** Each must send UPLOAD_STALL_MIN_BYTES in this time. */
export const UPLOAD_STALL_MS = 25 * SECOND_MS;
export const UPLOAD_STALL_MIN_BYTES = 16 * KIB;

// What one answer carries.
export const PER_PAGE_DEFAULT = 20;
export const PER_PAGE_MAX = 50;
export const WHOLE_PAGE = 500;
export const PAGE_MAX = 1_000_000_000;
export const PULL_DEFAULT = 20;
export const PULL_MAX = 1_000;
export const TOP_NODES_MAX = 10;
export const ENTRIES_DEFAULT = 100;
export const ENTRIES_MAX = 1_000;
export const EVENTS_DEFAULT = 100;
export const EVENTS_MAX = 1_000;
/** In some milliseconds. */
export const EVENTS_SCANNED_MAX = 10_000;
export const RECEIVE_DEFAULT = 10;
export const HISTORY_DEFAULT = 50;
export const MESSAGES_MAX = 1_000;
export const THREAD_MAX_CHARS = 128;
/** The newest of a thread, among which message/history finds those of a node. */
export const THREAD_SCANNED_MAX = 2_000;
/**
 * Contents together; beyond it the answer has fewer messages. A receive is in memory whole and may be stored: their
 * JSON counts too.
 */
export const MESSAGES_ANSWER_MAX_BYTES = 8 * MIB;
/** With an Idempotency-Key: others wait while the response is stored. */
export const STORED_RECEIVE_MAX_BYTES = 1 * MIB;
/** Beyond it the rest of a batch is not done: others wait some 50 ms while it is decided and written. */
export const BATCH_ANSWERS_MAX_BYTES = 2 * MIB;
export const BATCH_ROWS_MAX = 6_000;
export const BATCH_DECIDE_MS = 50;
/** In one tick of the event loop. */
export const BATCH_TURN_MS = 4;
/** A receive in a batch cannot wait for memory. */
export const BATCH_RECEIVE_BYTES = 256 * KIB;

/** Later pages are loaded one per tick, because the rows before them must be skipped. */
export const LIST_NEAR_ROWS = 10_000;
/** Of far pages and of searches; beyond it the response is 503. */
export const LIST_FAR_PAGES_MAX = 256;
export const SEARCH_MAX_CHARS = 100;
/** Of the name that a proxy gives; the rest is cut. */
export const PERSON_MAX_CHARS = 128;
export { LIST_SCANNED_MAX, LUX_TOP_SCANNED_MAX } from "./list-limits.ts";
/** A longer list has no total. */
export const LIST_COUNTED_MAX = 2_000;
/** In steps that take 300 ms together. */
export const COUNT_SCANNED_MAX = 50_000;
/** In some milliseconds; the pages by number end there. */
export const LIST_FAILED_COUNTED_MAX = 100_000;
/** About a millisecond. */
export const SEARCH_STEP_ROWS = 500;
export const SEARCH_STEP_BLOCKS = 32;
/** For a filter that matches many. */
export const SEARCH_FIRST_BLOCKS = 4;
/** Two million tasks, in some milliseconds. */
export const SEARCH_BLOCKS_MAX = 4_096;
export const SUMMARY_LINE_MAX_CHARS = 200;
/** In some milliseconds; the pages of message/parked end there. */
export const PARKED_COUNTED_MAX = 100_000;
export const STATS_TYPES_MAX = 100;
/** Causes that stats/types names of each reason for which tasks are held back, and creators and groups that it counts. */
export const STATS_CAUSES_MAX = 10;
export const STATS_KEPT_MS = 2 * SECOND_MS;
export const STATS_TASKS_MAX = 50_000;
export const FAILURES_SCANNED_MAX = 10_000;
export const FAILURE_GROUPS_MAX = 50;
export const FAILURE_NODES_MAX = 5;
export const FAILURES_LAST_MAX_SECONDS = 30 * 86_400;
export const FAILURES_LAST_SECONDS = 3_600;
export const FAILURE_LINE_MAX_CHARS = 200;
/** In some milliseconds. */
export const LUX_TOP_PART = 5_000;
export const LUX_TOP_NODES_MAX = 50;
export const PARKED_NODES_MAX = 50;
export const NODE_TASKS_SHOWN = 3;
/** Where the system does not send the file. */
export const FILE_PIECE_MAX_BYTES = 256 * KIB;
/**
 * A larger download is cut off when its key is revoked; elsewhere than on Linux it passes through the process for that.
 * The system sends others to their end, which costs less and has a Content-Length.
 */
export const FILE_UNCUT_MAX_BYTES = 16 * MIB;
export const LIST_PART_MAX_BYTES = 256 * KIB;
/** 2 KiB each, for each concurrent caller. */
export const NODES_PART = 100;
/** About a millisecond. */
export const NODES_SEARCH_STEP = 1_000;
/** Response backpressure counts larger ones. */
export const ANSWER_UNCOUNTED_MAX_BYTES = 64 * KIB;
/** Beyond it the next answer waits. */
export const ANSWER_BYTES_SHARES: ShareSizes = {
  keys: 64 * MIB,
  fullKey: 48 * MIB,
  limitedKey: 6 * MIB,
  addresses: 32 * MIB,
  address: 3 * MIB,
};
/** Reads that run or wait for room for their answer. */
export const READ_SHARES: ShareSizes = {
  keys: 256,
  fullKey: 192,
  limitedKey: 16,
  addresses: 64,
  address: 8,
};
/** A counted answer must be read by ANSWER_SLICE_BYTES in this time. */
export const ANSWER_STALL_MS = 25 * SECOND_MS;
export const ANSWER_SLICE_BYTES = 64 * KIB;
/** Of READ_SHARES, in one tick; only one after a tick that took READS_TICK_MS. */
export const READS_TOGETHER = 4;
export const READS_TICK_MS = 2;
export const ANSWER_WAIT_MS = 30 * SECOND_MS;
/** Of descriptions; beyond it the answer has fewer tasks. */
export const PULL_ANSWER_MAX_BYTES = 8 * MIB;

// Waiting.
export const RECEIVE_TIMEOUT_DEFAULT_SECONDS = 5;
export const POLL_TIMEOUT_DEFAULT_SECONDS = 25;
export const WAIT_MAX_SECONDS = 300;
/** Without a key these are polls, and waits for the end of a task. */
export const WAIT_SHARES: ShareSizes = {
  keys: 20_000,
  fullKey: 15_000,
  limitedKey: 500,
  addresses: 2_000,
  address: 500,
};
export const STREAM_SHARES: ShareSizes = {
  keys: 20_000,
  fullKey: 15_000,
  limitedKey: 500,
  addresses: 1_000,
  address: 100,
};
export const STREAM_BACKLOG_MAX_BYTES = 1 * MIB;
/** Unread bytes; beyond it a stream waits for room. */
export const STREAM_BYTES_SHARES: ShareSizes = {
  keys: 64 * MIB,
  fullKey: 48 * MIB,
  limitedKey: 6 * MIB,
  addresses: 16 * MIB,
  address: 2 * MIB,
};
/** A busy hub logs thousands of events a second. */
export const LOG_STREAM_GATHER_MS = 100;
export const STREAM_BATCH = 32;
/** Beyond it the stream reads the log instead. */
export const STREAM_PENDING_MAX = 1_000;
export const RECENT_EVENTS_MAX = 1_000;
export const RECENT_EVENTS_MAX_WEIGHT = 1 * MIB;

// MCP.
/** Some clients show both forms, and cut out the middle of 10,000 or 20,000 bytes. */
export const MCP_RESULT_MAX_BYTES = 9_500;
/** Of a file that does not fit, a message of several, and a text of one of several results. */
export const MCP_PREVIEW_MAX_BYTES = 2_000;
export const MCP_LINE_MAX_BYTES = 160;
export const MCP_INPUTS_MAX = 6;
export const MCP_ANSWERS_MAX = 6;
/** A client gives up after 60 s, unless it hears of progress; some give up nevertheless after 300 s. */
export const MCP_WAIT_MAX_SECONDS = 50;
export const MCP_PROGRESS_WAIT_MAX_SECONDS = 240;
export const MCP_PROGRESS_EVERY_MS = 15 * SECOND_MS;
/** A larger file is uploaded by a URL. */
export const MCP_INLINE_MAX_BYTES = 64 * KIB;
export const MCP_BINARY_MAX_BYTES = 4 * KIB;
/** Files of others, copied as inputs by one task_create. */
export const MCP_COPIED_MAX_BYTES = 64 * MIB;
export const MCP_MAIL_MAX_BYTES = 64 * KIB;
export const MCP_MAIL_MAX = 20;
export const MCP_ACKS_MAX = 100;
export const NOT_TAKEN_MAX = 20;
export const MCP_NAMED_MAX = 20;
export const MCP_LIST_DEFAULT = 20;
export const MCP_LIST_MAX = 50;
/** An agent that releases a task asks for the next one at once. */
export const RELEASED_REST_MS = 10 * MINUTE_MS;
export const MCP_TASKS_MAX = 50;
export const MCP_EVENTS_MAX = 100;

// A2A.
export const A2A_WAIT_SECONDS = 300;
export const A2A_CONTEXT_ID_MAX_CHARS = 128;
export const A2A_MESSAGE_ID_MAX_CHARS = 255;
export const A2A_PARTS_MAX = 100;
export const A2A_PAGE_DEFAULT = 50;
export const A2A_PAGE_MAX = 100;
export const A2A_PAGE_MAX_BYTES = 1 * MIB;
export const A2A_SCANNED_MAX = 2_000;
export const A2A_SKILLS_MAX = 100;
export const A2A_CARD_MAX_AGE_SECONDS = 60;

// Broadcasts.
/** The default of --max-nodes. */
export const NODES_DEFAULT_MAX = 100_000;
export const NODES_HIGHEST_MAX = 1_000_000;
/** Some 5 ms, during which no request is served. */
export const BROADCAST_STEP_NODES = 1_000;
/** Of a hub that has been silent. */
export const BROADCAST_LEASE_MS = 15 * SECOND_MS;
/** Each with its content; beyond it the answer is 503. */
export const BROADCASTS_WAITING_MAX = 256;
/** About 10 ms of answers in one tick. */
export const WAKE_UPS_TOGETHER = 100;

// Leases and periods.
/** task/next does not repeat a younger heartbeat; the lease may then end this much earlier. */
export const HEARTBEAT_FRESH_MS = 1 * SECOND_MS;
export const ACK_LEASE_MS = 30 * SECOND_MS;
export const REDELIVERIES_MAX = 5;
export const RETAIN_DEFAULT_MS = 7 * DAY_MS;
export const IDEMPOTENCY_RETAIN_MS = 24 * HOUR_MS;
/** Calls of MCP that ask for the same are repeats. */
export const MCP_REPEAT_WINDOW_MS = 10 * MINUTE_MS;
export const ANSWERS_OF_KEY_MAX_BYTES = 64 * MIB;
export const ANSWERS_DEFAULT_MAX_BYTES = 1024 * MIB;
/** Says how many rows a commit must delete to make room for its own. */
export const ANSWER_MIN_BYTES = 64;
/** Of the oldest, in addition to what a commit needs. */
export const ANSWERS_TRIMMED_MIN = 16;
/** When a limit was lowered. */
export const ANSWERS_EVICT_STEP_BYTES = 2 * MIB;
export const ANSWERS_EVICT_EVERY_MS = 5 * SECOND_MS;
export const SWEEP_EVERY_MS = 1 * SECOND_MS;
/** The rest of its work is done after the other chores have run. */
export const CHORE_BUDGET_MS = SECOND_MS / 5;
/** Then the sweep goes on without the chore. */
export const CHORE_OVERRUN_MS = 1 * SECOND_MS;
/** Until then a revoked key is accepted, and its streams stay open. */
export const KEYS_RELOAD_EVERY_MS = SECOND_MS / 2;
/** Beyond it, the wall clock jumped or the machine slept. */
export const CLOCK_JUMP_MS = 5 * SECOND_MS;
export const BALANCE_EVERY_MS = 10 * SECOND_MS;
/** The next round continues. */
export const BALANCE_ROUND_MAX = 5_000;
/** A round with more handles them in several sets. */
export const BALANCE_TYPES_MAX = 10_000;
export const BACKLOG_TYPES_PART = 500;
export const BACKLOG_TYPES_TOGETHER = 32;
export const STUCK_AFTER_DEFAULT_MS = 10 * MINUTE_MS;
export const STUCK_LOOK_EVERY_MS = 30 * SECOND_MS;
export const PRUNE_EVERY_MS = 30 * SECOND_MS;
/** The numbers of the minutes; a crash loses those since the last save. */
export const MINUTES_KEPT = 60;
export const PERIODS_OF_DAY = 144;
export const PERIODS_OF_MONTH = 720;
/** A hub may save the numbers of a minute late. */
export const MINUTES_LATE_MS = 1 * MINUTE_MS;
export const PERIODS_SAVE_EVERY_MS = 30 * SECOND_MS;
/** Later ones are only in the sums of the minute. */
export const MINUTE_TYPES_MAX = 100;
export const MINUTES_SAVE_EVERY_MS = 10 * SECOND_MS;
export const MEMORY_EVERY_MS = 2 * SECOND_MS;
/** Of a core. */
export const QUIET_CPU_SHARE = 0.05;
/** Times the usual number of runs. */
export const QUIET_JIT_RELUCTANCE = 50;
export const COLLECT_AFTER_CPU_MS = 100;
/** So that requests never wait long. */
export const SWEEP_BATCH = 500;
/** A tenth of a millisecond. */
export const WAITING_PART_MAX = 5_000;
/** One shard at a time. */
export const ORPHANS_EVERY_MS = 10 * SECOND_MS;
export const DRAIN_MS = 4 * SECOND_MS;
/** Whatever hangs: a lookup, a disk, a database, a reader. Longer than DRAIN_MS. */
export const END_MAX_MS = 5 * SECOND_MS;
/** Beyond it lines are dropped and counted. */
export const LOG_BACKLOG_MAX_CHARS = 8 * MIB;
export const LOG_PATH_MAX_CHARS = 1 * KIB;
export const LOG_TEXT_MAX_CHARS = 100;
/** The others are counted. */
export const LOG_WARNINGS_PER_SECOND = 20;
/** Beyond ACTIVITY_LINES_MAX, events are counted. */
export const ACTIVITY_WINDOW_MS = 250;
export const ACTIVITY_LINES_MAX = 20;
export const BACKUP_EVERY_DEFAULT_MS = 24 * HOUR_MS;
export const BACKUPS_KEPT_DEFAULT = 7;
export const LOG_END_MS = 500;

// The store.
export const DIAGNOSIS_MAX_MS = 2 * SECOND_MS;
/** A second's callers cause one write. */
export const READINESS_KEPT_MS = 1 * SECOND_MS;
export const METRICS_KEPT_MS = 1 * SECOND_MS;
/** Less than a millisecond. */
export const METRICS_PART = 1_000;
/** A millisecond. */
export const METRICS_MESSAGES_MAX = 50_000;
/** The others are counted together. */
export const METRICS_TYPES_MAX = 100;
export const METRICS_TYPES_READ_MAX = 1_000;
export const METRICS_TASKS_MAX = 50_000;
/** store/pending-transaction.ts has the weights. */
export const GROUP_MAX = 1_024;
export const GROUP_HEAVY_MAX = 128;
/** On SQLite; the transactions that are left wait for the next group. */
export const GROUP_MAX_MS = 50;
/** A heavier transaction waits behind light ones. */
export const LIGHT_MAX = 32;
export const QUEUE_MAX = 20_000;
/** On SQLite; in each of two generations. */
export const CACHED_TASKS = 2_048;
export const CACHED_TASKS_CHARS = 8 * MIB;
export const CACHED_NODES = 4_096;
/** A prompt for an AI agent has 2,000 to 20,000. */
export const CACHED_TASK_MAX_CHARS = 20_480;
export const CACHED_BACKLOGS = 8;
export const CACHED_CANDIDATES = 16;
/** On SQLite: before the lanes are read again, beside one for each lane. */
export const CACHED_LANES_WRITES = 64;
/** The best nodes for so many new tasks of a type. */
export const CANDIDATES_READ = 32;
/** On SQLite; with one more, the others are forgotten. */
export const RANKED_TYPES_MAX = 64;
export const CACHED_BACKLOG_TASKS = 128;
/** Their SQL takes 5 us to build, and each dispatch asks for one. */
export const CACHED_BACKLOG_QUERIES = 256;
/** Checked at each start, in about a second. */
export const START_CHECK_MAX_BYTES = 128 * MIB;

/** On a large disk. */
export const FREE_SPACE_MIN_BYTES = 64 * MIB;
/** On PostgreSQL, before they are sent. */
export const PENDING_MAX_CHANGES = 10_000;
/** On PostgreSQL: reloaded together after an earlier one of the group has changed what they read. */
export const DECIDE_AHEAD = 32;
/** On PostgreSQL, of a large batch. */
export const LOAD_AHEAD = 64;

// Several hubs on one database.
/** Also how often the log is read for commits without a notification. */
export const ELECTION_EVERY_MS = 1 * SECOND_MS;
/** Without renewal. */
export const LEADER_LEASE_MS = 10 * SECOND_MS;
/** After its last write. */
export const HUB_FORGOTTEN_MS = 1 * DAY_MS;
export const SECRETS_COMPARE_EVERY_MS = 10 * SECOND_MS;
export const HUB_SILENT_MS = 30 * SECOND_MS;
/** Some 50 ms at the start. */
export const SECRET_MARK_ROUNDS = 100_000;
/** Some 4 ms at the start of every hub. */
export const ANSWER_MARK_ROUNDS = 10_000;
/** Beyond what a reading over the network leaves open. */
export const CLOCK_NOISE_MS = 10;
/** Then the server is unavailable. */
export const DATABASE_ANSWER_MAX_MS = 10 * SECOND_MS;
/** Less, so that the server itself reports that nothing was written. */
export const DATABASE_LOCK_MAX_MS = 8 * SECOND_MS;
/**
 * The server ends the session of a silent hub with the write lock. Shorter than the wait for the lock: the writes of
 * the other hubs go on without an error.
 */
export const HUB_VANISHED_MS = 5 * SECOND_MS;
/** Given up, but not answered yet; beyond it a read is refused at once. */
export const ABANDONED_READS_MAX = 256;
export const COMMIT_OUTCOME_WAIT_MS = 5 * SECOND_MS;
/** One more writes and one more listens. */
export const READ_CONNECTIONS = 4;
export const FILE_CONNECTIONS = 3;

// Redis.
/** Then Redis counts as unavailable. */
export const REDIS_COMMAND_MAX_MS = 500;
export const REDIS_CONNECT_MAX_MS = 1 * SECOND_MS;
export const REDIS_CHECK_EVERY_MS = 1 * SECOND_MS;
export const REDIS_RETRY_FIRST_MS = 100;
export const REDIS_RETRY_MAX_MS = 2 * SECOND_MS;
/** A connection that held this long resets the backoff. */
export const REDIS_STEADY_MS = 1 * MINUTE_MS;
export const REDIS_BATCH = 500;

// LUX, in millionths.
export const MICRO_PER_LUX = 1_000_000;
export const LUX_REWARD_MAX = 1_000_000_000;
export const SIGNIN_LUX = 10;
/** A balance must fit the 64-bit integer of the store. */
export const BALANCE_MAX_MICRO = 9_000_000_000_000_000_000n;

// TLS.
/** A changed certificate is in use after two of these. */
export const CERTIFICATE_CHECK_MS = 4 * SECOND_MS;
export const CERTIFICATE_MS = 365 * DAY_MS;
export const CERTIFICATE_RENEWED_AFTER_MS = 30 * DAY_MS;
/** How far the clock of a client may be behind the hub's. */
export const CERTIFICATE_BACKDATE_MS = 7 * DAY_MS;
/** 9999-12-31T23:59:59Z, which says "no end" (RFC 5280, 4.1.2.5): pins of the authority stay valid. */
export const AUTHORITY_ENDS_AT = 253_402_300_799_000;

// Quotas of the keys that are bound to one node (quota.ts).
export const QUOTA_TASKS_DEFAULT = 10_000;
export const QUOTA_TASKS_HIGHEST = 1_000_000_000;
/** Of the free space at the start; on PostgreSQL, whose disk the hub cannot see, a number. */
export const QUOTA_BYTES_PARTS = 10;
export const QUOTA_BYTES_ON_POSTGRES = 10 * GIB;
/** To come back online, to report usage, and to learn that schedules do nothing. */
export const QUOTA_TIMES_BEYOND = 2;
export const QUOTA_RETRY_AFTER_SECONDS = 60;
// Beside its texts, as measured on SQLite and somewhat more, because PostgreSQL needs more.
export const KEPT_TASK_BYTES = 384;
/** Its id, and while it is not completed its two rows in `dependencies`. */
export const KEPT_DEPENDENCY_ID_BYTES = 37;
export const KEPT_DEPENDENCY_BYTES = 200;
export const KEPT_REPORT_BYTES = 256;
export const KEPT_MESSAGE_BYTES = 288;
export const KEPT_DELIVERY_BYTES = 112;
export const KEPT_EVENT_BYTES = 224;
export const KEPT_ROW_BYTES = 256;
export const KEPT_SUM_BYTES = 320;
export const KEPT_OUTPUT_BYTES = 1_024;
/** Its bytes take whole blocks, an empty one at least its inode. */
export const KEPT_FILE_BYTES = 512;
export const KEPT_BLOCK_BYTES = 4 * KIB;

// Secrets.
export const WRONG_SECRETS_PER_MINUTE = 20;
export const WRONG_SECRET_WINDOW_MS = 1 * MINUTE_MS;
export const WATCHED_ADDRESSES_MAX = 10_000;
export const SCHEDULES_MAX = 1_000;
export const SCHEDULES_OF_NODE_MAX = 100;
export const SCHEDULE_NAME_MAX_CHARS = 64;
export const CRON_MAX_CHARS = 128;
export const TIME_ZONE_MAX_CHARS = 64;
/** A page of schedules holds many of them. */
export const SCHEDULE_DESCRIPTION_MAX_BYTES = 16_384;
export const SCHEDULE_PIPELINE_TASKS_MAX = 200;
/** Together: a schedule is one row. */
export const SCHEDULE_PIPELINE_NEEDS_MAX = 1_000;
export const SCHEDULE_EVERY_MAX_SECONDS = 31_536_000;
export const SCHEDULE_JITTER_MAX_SECONDS = 86_400;
export const SCHEDULE_SKIPS_LOGGED_EVERY_MS = 1 * MINUTE_MS;
/** When no hub could handle it. */
export const SCHEDULE_LATE_MS = 1 * MINUTE_MS;
export const RETAIN_TASK_MAX_SECONDS = 315_360_000;
export const STORAGE_SIZE_KEPT_MS = 10 * SECOND_MS;
export const RETENTION_EVERY_MS = 10 * SECOND_MS;
/** Its callers wait for the commit. */
export const RETENTION_STEP_TASKS = 20;
/** For each, all unfinished tasks are looked at. */
export const RETENTION_STEP_DEPENDED = 4;
export const RETENTION_LOOK_TASKS = 500;
/** With more, a task on which others depend is kept: all unfinished tasks would be looked at for each. */
export const RETENTION_UNFINISHED_MAX = 10_000;
/** How much too late the next time is when the clock was set back; after smaller corrections the schedule waits. */
export const SCHEDULE_REWOUND_MS = 3 * HOUR_MS;
export const SCHEDULES_REWIND_EVERY_MS = 5 * MINUTE_MS;
export const SCHEDULES_DUE_BATCH = 100;
export const WEBHOOKS_MAX = 200;
export const PUSH_CONFIGS_MAX = 10_000;
export const PUSH_CONFIGS_OF_NODE_MAX = 500;
export const PUSH_CONFIGS_OF_TASK_MAX = 5;
export const WEBHOOK_NAME_MAX_CHARS = 64;
export const WEBHOOK_URL_MAX_CHARS = 2_048;
/** From Standard Webhooks, without the prefix. */
export const WEBHOOK_SECRET_MIN_BYTES = 24;
export const WEBHOOK_SECRET_MAX_BYTES = 64;
export const WEBHOOK_SECRET_NEW_BYTES = 32;
export const WEBHOOK_TOKEN_MAX_CHARS = 256;
export const PUSH_CONFIG_ID_MAX_CHARS = 128;
/** "a2a:", the id of a task, ":" and that of the config. */
export const PUSH_NAME_MAX_CHARS = 512;
export const PUSH_TOKEN_MAX_CHARS = 1_024;
export const PUSH_SCHEME_MAX_CHARS = 64;
export const WEBHOOK_TIMEOUT_MS = 15 * SECOND_MS;
export const WEBHOOK_DELIVERIES_MAX = 32;
/** The rest is for the webhooks of administrators. */
export const PUSH_DELIVERIES_MAX = 8;
export const PUSH_DELIVERIES_OF_KEY_MAX = 4;
/** While a host times out again and again. */
export const PUSH_SILENCE_MAX_MS = 5 * MINUTE_MS;
/** With a backlog, before the next one has its turn. */
export const WEBHOOK_TURN_MS = 1 * SECOND_MS;
export const WEBHOOK_READ_EVENTS = 50;
export const WEBHOOK_LOG_WINDOW = 2_000;
/** Doubled from the first to the last; a receiver may ask for more (Retry-After). */
export const WEBHOOK_RETRY_MIN_MS = 1 * SECOND_MS;
export const WEBHOOK_RETRY_MAX_MS = 1 * HOUR_MS;
export const WEBHOOK_RETRY_AFTER_MAX_MS = 24 * HOUR_MS;
/** A machine that slept for a day has tried only once. */
export const WEBHOOK_SUSPEND_AFTER_MS = 24 * HOUR_MS;
export const WEBHOOK_SUSPEND_ATTEMPTS_MIN = 10;
/** Of webhooks that had nothing to send: else they would be taken for a gap. */
export const WEBHOOK_CURSORS_SAVE_MS = 10 * MINUTE_MS;
export const WEBHOOK_STEP = 500;
export const WEBHOOK_DRAIN_MS = 3 * SECOND_MS;
export const NTFY_ACTIONS_MAX = 3;
/** ntfy cuts a message after 4,096 bytes. */
export const NTFY_MESSAGE_MAX_CHARS = 1_000;
export const KEYS_MAX = 1_000;
/** Of a node whose key is bound to its sessions too; the first is the node itself. */
export const SESSIONS_MAX = 99;
export const KEY_NAME_MAX_CHARS = 64;
export const KEY_EXPIRES_MAX_SECONDS = 315_360_000;
export const INVITATIONS_MAX = 1_000;
export const INVITATION_DEFAULT_SECONDS = 3_600;
export const INVITATION_MIN_SECONDS = 60;
export const INVITATION_MAX_SECONDS = 604_800;
export const INVITATION_KEPT_MS = 7 * DAY_MS;
export const INVITATION_URL_MAX_CHARS = 300;
export const KEY_LOOKUPS_MAX = 500;
export const SECRET_MAX_CHARS = 512;
/** Its ticket names a key, a node and a task. */
export const TICKET_LIFE_MS = 10 * MINUTE_MS;
export const TICKET_MAX_CHARS = 1_024;
export const ANSWER_TOKEN_MAX_CHARS = 512;
export const TICKET_MAC_BYTES = 16;
/** Some 50 ms at the first ticket of a hub. */
export const TICKET_MAC_ROUNDS = 100_000;
export const SECRET_SAFE_CHARS = 16;

export const MANUAL_QUERY_MAX_CHARS = 100;
export const MANUAL_HITS_MAX = 30;

/** After more, the leaderboard is read from all nodes. */
export const TOP_NODES_STEPS_MAX = 200;

/** Without a word of a standby for so long, a hub goes on without it. */
export const STANDBY_LOST_MS = 5 * SECOND_MS;
/** How long a standby's call waits for the next entry: a call that never ends would hide that the link is cut. */
export const STANDBY_WAIT_SECONDS = 2;
/** What one call of a standby gets, unless one entry is larger: on a link of 50 KiB/s it takes about a second. */
export const CHANGES_PIECE_BYTES = 64 * 1024;
/** The URLs of hubs that a standby remembers: with and without TLS, of its first and of other standbys. */
export const HUB_URLS_MAX = 16;
/** A call of a standby in which nothing arrives for so long has failed. */
export const STANDBY_IDLE_MS = 10 * SECOND_MS;
/** The first hub copies its rows before the first byte of a base: a few seconds for each GB, minutes on a slow card. */
export const BASE_BEGIN_MAX_MS = 10 * MINUTE_MS;
export const STANDBY_RETRY_MS = 0.5 * SECOND_MS;
/** How long a first that starts waits for its standbys to say whether one was promoted. */
export const FIRST_CHECK_MAX_MS = 2 * SECOND_MS;
/** How long a standby that is promoted waits for the first hub: that one may be dead. */
export const PROMOTION_MAX_MS = 2 * SECOND_MS;
export const PROMOTION_RETRY_MS = 50;
/** At a promotion: readers of the log may know events that the copy lacks, and what comes then has none of their ids. */
export const EVENT_IDS_RAISED_BY = 10_000;
/** Entries that every standby has and that are kept nevertheless: after a promotion another standby may need them. */
export const CHANGES_KEPT = 1_000;
/** The change log while a standby is away; beyond it the standby takes a new base. */
export const CHANGES_KEPT_MAX_BYTES = 256 * 1024 * 1024;
