/**
 * Every limit of the hub. Sizes in bytes, times in milliseconds, unless the name says otherwise. Source: the
 * specification, section 8; where it is silent, chosen so that no caller can make the hub's memory or disk grow without
 * bound.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/clock.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/**
 * How much of one resource callers may have at once: all of them together, and the share of each, so that no caller
 * excludes the others (api/caller-shares.ts). Callers with a valid key and callers without one have separate totals.
 */
export type ShareSizes = {
  /** All keys together. */
  readonly keys: number;
  /** One key that is neither bound to a node nor a viewer: a fleet of thousands of nodes may use one. */
  readonly fullKey: number;
  /** One key that is bound to a node, or a viewer. */
  readonly limitedKey: number;
  /** All callers without a valid key together. */
  readonly addresses: number;
  readonly address: number;
};

// What a caller may send.
export const JSON_BODY_MAX_BYTES = 1 * MIB;
/** Parsing many values takes 100 times as long as parsing one long text. */
export const JSON_VALUES_MAX = 50_000;
/** Invalid fields that one answer names. */
export const ERRORS_MAX = 100;
/** Fields that nothing has read and that one response names, and the length of each name. */
export const IGNORED_FIELDS_MAX = 20;
export const IGNORED_FIELD_MAX_CHARS = 100;
/** Requests to an endpoint after which its input schema is compiled. */
export const COMPILE_INPUT_AFTER = 1_000;
/** Levels of a JSON value that is stored or compared as a whole. */
export const JSON_DEPTH_MAX = 64;
export const NODE_ID_MAX_CHARS = 128;
/** No node_id may be a path under node/, or a path segment that a client removes before it sends a request. */
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
/** An order, a number and a node_id, in base64. */
export const NODE_CURSOR_MAX_CHARS = 256;
export const HOST_MAX_CHARS = 255;
export const PORT_MAX = 65_535;
/** Where a hub with --tls auto listens with TLS, unless it is told where. */
export const TLS_PORT = 19_443;
export const CAPABILITIES_MAX = 64;
export const CAPABILITY_MAX_CHARS = 100;
export const NODE_MAX_TASKS_MAX = 1_000_000;
export const TITLE_MAX_CHARS = 500;
export const DESCRIPTION_MAX_BYTES = 64 * KIB;
export const TASK_TYPE_MAX_CHARS = 100;
/** `task_types` of one task/next. */
export const TASK_TYPES_MAX = 64;
export const RESULT_TEXT_MAX_BYTES = 64 * KIB;
/** The further keys of a result together, as JSON. */
export const RESULT_EXTRA_MAX_BYTES = 64 * KIB;
export const REASON_MAX_CHARS = 500;
export const ERROR_MAX_CHARS = 4_000;
export const NOTE_MAX_CHARS = 1_000;
export const ATTEMPTS_MAX = 100;
export const BACKOFF_DEFAULT_SECONDS = 5;
export const BACKOFF_MAX_SECONDS = 3_600;
/** A week. */
export const TASK_TIMEOUT_MAX_SECONDS = 604_800;
/** 30 days. */
export const TASK_RUN_MAX_SECONDS = 2_592_000;
/** Ten years: how far ahead a task may be delayed or expire. */
export const TASK_AHEAD_MAX_SECONDS = 315_360_000;
export const DEPENDENCIES_MAX = 1_000;
export const UNIQUE_KEY_MAX_CHARS = 255;
/** Tasks that one task/wait waits for. */
export const WAITED_TASKS_MAX = 100;
/** Dependencies that one task shows by their ids. */
export const UNMET_SHOWN_MAX = 20;
/** Tasks that one task/retry with with_dependents opens again, and what they depend on together: one transaction. */
export const RETRIED_DEPENDENTS_MAX = 250;
export const RETRIED_DEPENDENCIES_MAX = 2_500;
/** Failed dependents that are counted; beyond it the answer says this many. */
export const DEPENDENTS_COUNTED_MAX = 100_000;
/** No group may be named as a path under group/, or as a path segment that a client removes from a request. */
export const RESERVED_GROUPS: ReadonlySet<string> = new Set(["cancel", "retry", "list", ".", ".."]);
export const TAGS_MAX = 16;
export const TAG_MAX_CHARS = 64;
/** Groups of one page of group/list. */
export const GROUPS_LISTED_MAX = 50;
/** The newest failures that GET group/<name> shows. */
export const GROUP_FAILURES_SHOWN = 20;
/** Tasks that one group/cancel ends, or one group/retry looks at: one transaction. */
export const GROUP_STEP_TASKS = 250;
/** Groups that may have ended, and are checked in one transaction. */
export const GROUPS_CHECKED = 100;
/** Failures and timeouts after which a task without max_attempts has failed. */
export const FAILURES_DEFAULT_MAX = 10;
/** Failed attempts that a task remembers for its next worker. */
export const FAILED_ATTEMPTS_KEPT = 5;
/** A checkpoint, as JSON. */
export const CHECKPOINT_MAX_BYTES = 64 * KIB;
/** The output of an attempt: what one task/output appends, what is kept of its beginning and of its end. */
export const OUTPUT_SENT_MAX_BYTES = 64 * KIB;
export const OUTPUT_HEAD_DEFAULT_BYTES = 64 * KIB;
export const OUTPUT_TAIL_DEFAULT_BYTES = 192 * KIB;
/** The largest --output-head and --output-tail. */
export const OUTPUT_KEPT_MAX_BYTES = 64 * MIB;
/** The attempts of a task whose output is kept, the newest. */
export const OUTPUT_ATTEMPTS_KEPT = 3;
/** Small pieces are appended to the last block, so that rows stay few. */
export const OUTPUT_BLOCK_BYTES = 16 * KIB;
/** Blocks that one GET task/<id>/output returns. */
export const OUTPUT_BLOCKS_PER_READ = 16;
/** A notification of another hub may have been lost. */
export const OUTPUT_REREAD_MS = 15 * SECOND_MS;
/** The results of its dependencies that a dispatched task carries; GET task/<id>/inputs has the others. */
export const CONTEXT_RESULTS_MAX_BYTES = 256 * KIB;
/** The files of its dependencies that a dispatched task names. */
export const CONTEXT_FILES_MAX = 1_000;
/** The lessons of its type that a dispatched task carries, and their bytes together. */
export const CONTEXT_LESSONS_MAX = 5;
export const CONTEXT_LESSONS_MAX_BYTES = 2 * KIB;
/** The part of a lesson that is searched and shown. */
export const LESSON_SHOWN_MAX_CHARS = 2_000;
export const LESSONS_PER_PAGE_DEFAULT = 20;
export const LESSONS_PER_PAGE_MAX = 100;
/** Completed tasks that one step of a search for lessons examines: about a millisecond. */
export const LESSONS_STEP_ROWS = 100;
/** Types whose last lessons a hub keeps in memory, some KiB for each. */
export const LESSONS_TYPES_MAX = 1_000;
/** Tasks that other hubs have completed and whose lessons this hub has not read yet; of more it reads the last ones. */
export const LESSONS_UNREAD_MAX = 500;
/** A page of GET task/<id>/inputs ends with the input that reaches it. */
export const INPUTS_PAGE_MAX_BYTES = 1024 * KIB;
/** task/<task_id>/graph: layers of what the task depends on, tasks of a layer, and dependents that are counted. */
export const GRAPH_LAYERS = 3;
export const GRAPH_LAYER_TASKS = 50;
export const GRAPH_DEPENDENTS_COUNTED_MAX = 10_000;
export const INPUTS_PER_PAGE_MAX = 100;
export const INPUTS_PER_PAGE_DEFAULT = 20;
// Questions (domain/task/question.ts).
export const QUESTION_MAX_CHARS = 4_000;
export const CHOICES_MAX = 20;
export const CHOICE_MAX_CHARS = 200;
/** The JSON Schema of an answer, as JSON. */
export const ANSWER_SCHEMA_MAX_BYTES = 8 * KIB;
export const ANSWER_MAX_BYTES = 16 * KIB;
export const QUESTION_DEFAULT_SECONDS = 86_400;
export const QUESTION_MAX_SECONDS = 604_800;
export const REVIEW_DEFAULT_SECONDS = 604_800;
export const REVIEW_MAX_SECONDS = 2_592_000;
export const REVIEW_NOTE_MAX_CHARS = 4_000;
/** A review that is passed by its deadline, and whose worker cannot be paid now, is settled so much later. */
export const REVIEW_POSTPONED_MS = 86_400_000;
/** On one page of the list of reviews; and how far all of them are counted. */
export const REVIEWS_PER_PAGE_DEFAULT = 50;
export const REVIEWS_PER_PAGE_MAX = 100;
export const REVIEWS_COUNTED_MAX = 1_000;
/** Of a quorum: how many results must agree, how many copies there are, and how many values are compared. */
export const QUORUM_RESULTS_MAX = 9;
export const QUORUM_COPIES_MAX = 15;
export const QUORUM_POINTERS_MAX = 10;
/** A task with the tasks that the hub creates for it, up to 1 MiB each: how many one transaction looks at. */
export const FAMILIES_CHECKED = 4;
export const OPEN_QUESTIONS_OF_TASK_MAX = 20;
/** Questions that one task ever has. */
export const QUESTIONS_OF_TASK_MAX = 1_000;
export const QUESTIONS_PER_PAGE_MAX = 50;
export const QUESTIONS_PER_PAGE_DEFAULT = 20;
/** Open questions are counted up to this number. */
export const QUESTIONS_COUNTED_MAX = 10_000;
/** The newest questions that a dispatched task carries with their answers, and roughly their bytes together. */
export const CONTEXT_ANSWERS_MAX = 20;
export const CONTEXT_ANSWERS_MAX_BYTES = 256 * KIB;
/** Usage reports in one request, and of one task in all its attempts. */
export const USAGE_TOGETHER_MAX = 20;
export const USAGE_OF_TASK_MAX = 10_000;
/** What a key that is bound to a node may report for one task, if the task says no less (--report-max). */
export const REPORT_MAX_DEFAULT_USD = 100;
export const REPORT_MAX_HIGHEST_USD = 1_000_000;
/** Models, types, groups and creators each, of which the reports of such a node are summed in a day; the rest is "other". */
export const SUMS_OF_NODE_MAX = 100;
/** Rows that --retain-usage deletes in one step. */
export const RETENTION_STEP_SUMS = 500;
export const BUDGETS_MAX = 200;
export const BUDGET_WARNING_AT = 0.8;
/** The longest name of a group: NAME/NODE. */
export const BUDGET_VALUE_MAX_CHARS = 257;
export const BUDGET_TOKENS_MAX = 1_000_000_000_000_000;
/** Limits of limit keys. */
export const LIMITS_MAX = 500;
/** Held keys without a limit: every key may hold, so that these are counted apart. Of one node, with limits or without. */
export const HOLDS_MAX = 500;
export const HOLDS_OF_NODE_MAX = 20;
export const LIMIT_KEY_MAX_CHARS = 200;
export const LIMIT_RUNNING_MAX = 10_000;
export const LIMIT_PER_MINUTE_MAX = 60_000;
export const HOLD_MAX_SECONDS = 3_600;
/** With a key that is bound to a node. */
export const BOUND_HOLD_MAX_SECONDS = 600;
export const PAUSES_MAX = 200;
/** Special lanes (lane.ts) with unfinished tasks. */
export const LANES_MAX = 10_000;
/** Those of tasks that keys create which are bound to one node. */
export const LANES_OF_NODE_MAX = 500;
/** Special lanes without a ready task for whose next one workers wait, beside twice as many as have one. */
export const LANES_EMPTY_AWAITED = 500;
/** The position of a task that task/<id>/explain counts. */
export const POSITION_COUNTED_MAX = 1_000;
/** How often one task/next reads again because other lanes have opened or closed meanwhile. */
/** Special lanes whose best tasks a dispatch looks up at first: those that may have the best. Then twice as many each time. */
export const LANES_LOOKED_UP = 16;
export const LANES_REREADS = 8;
export const RESOURCES_MAX = 16;
export const RESOURCE_NAME_MAX_CHARS = 64;
export const RESOURCE_AMOUNT_MAX = 1_000_000_000;
/** Resources are whole thousandths. */
export const RESOURCE_UNITS = 1_000;
/** Tasks that the keys of one node have sent to another node, and that wait there; of a node that takes all types, of a type. */
export const GIFTS_OF_GIVER_MAX = 20;
export const REQUIRED_WORDS_MAX = 16;
/** Resources that every machine has: a task that needs only these does not come before others. */
export const RESOURCES_OF_EVERY_NODE: ReadonlySet<string> = new Set(["cpu", "memory_gib"]);
/** Types of ready tasks among which a node that takes every type chooses, while a budget keeps some types back. */
export const OPEN_TYPES_MAX = 200;
export const MODEL_MAX_CHARS = 128;
export const USAGE_TOKENS_MAX = 1_000_000_000;
/** Dollars of one report. */
export const USAGE_COST_MAX_USD = 10_000;
/** Dollars of max_cost_usd. */
export const COST_LIMIT_MAX_USD = 1_000_000_000;
export const MICRO_PER_USD = 1_000_000;
/** The days that GET usage sums, and how many it sums when `since` is left out. */
export const USAGE_DAYS_MAX = 366;
export const USAGE_DAYS_DEFAULT = 30;
export const ID_MAX_CHARS = 128;
/** A note: its key, and its text. */
export const NOTE_KEY_MAX_CHARS = 200;
/** A key in UTF-8, in base64. */
export const NOTE_CURSOR_MAX_CHARS = 4 * NOTE_KEY_MAX_CHARS;
export const NOTE_TEXT_MAX_BYTES = 16 * KIB;
/** How many notes there are, those that one node has written last, and the bytes of all keys and texts. */
export const NOTES_MAX = 10_000;
export const NOTES_OF_NODE_MAX = 1_000;
export const NOTES_MAX_BYTES = 64 * MIB;
/** Notes that one step of a search reads, and what one call examines: then its next_cursor continues. */
export const NOTES_STEP = 20;
export const NOTES_SCANNED_MAX = 2_000;
export const NOTES_SCANNED_MAX_BYTES = 4 * MIB;
/** The part of its text with which a search shows a note. */
export const NOTE_EXCERPT_CHARS = 200;
/** The name or glob of an advisory lease. Comparing the two worst takes 256 steps, some 10 us. */
export const LEASE_NAME_MAX_CHARS = 200;
export const LEASE_NAME_MAX_SEGMENTS = 32;
export const LEASE_TTL_DEFAULT_SECONDS = 300;
export const LEASE_TTL_MAX_SECONDS = 86_400;
/** Of a lease for a task, which ends with the task: as long as a task may run. */
export const LEASE_OF_TASK_SECONDS = 2_592_000;
/** Leases at once, and those of one node. An acquire of a glob compares it with all of them. */
export const LEASES_MAX = 1_000;
export const LEASES_OF_NODE_MAX = 100;
/** Holders that one lease_conflict names. */
export const LEASE_HOLDERS_SHOWN_MAX = 20;
export const BATCH_ASSIGN_MAX = 500;
/** Requests in one batch, which are decided without a break: some 20 ms on SQLite. */
export const BATCH_REQUESTS_MAX = 500;
export const BATCH_REF_MAX_CHARS = 64;
export const CONTENT_MAX_BYTES = 256 * KIB;
export const METADATA_MAX_BYTES = 64 * KIB;
export const FILE_DEFAULT_MAX_BYTES = 1024 * MIB;
export const FILE_NAME_MAX_CHARS = 255;
/** Every answer with a task has the ids of its files. */
export const FILES_OF_TASK_MAX = 100;
/**
 * Concurrent uploads: each has a connection and a file open, and a system may allow only 1,024 descriptors. An upload
 * needs a key.
 */
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
/** A body that is still arriving after this time is cut off, even if it keeps arriving. */
export const JSON_BODY_DEADLINE_MS = 20 * SECOND_MS;
/**
 * JSON request bodies that are still arriving, a chunked body twice; beyond it the body is refused. More than 256
 * callers with small bodies ever have in transit.
 */
export const BODY_BYTES_SHARES: ShareSizes = {
  keys: 64 * MIB,
  fullKey: 48 * MIB,
  limitedKey: 8 * MIB,
  addresses: 16 * MIB,
  address: 2 * MIB,
};
/** An upload may take long, but must send UPLOAD_STALL_MIN_BYTES in each UPLOAD_STALL_MS. */
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
/** Entries of the ledger in one answer of lux/entries. */
export const ENTRIES_DEFAULT = 100;
export const ENTRIES_MAX = 1_000;
export const EVENTS_DEFAULT = 100;
export const EVENTS_MAX = 1_000;
/** Events of the log that one call with a task_id or a node_id examines, in some milliseconds. */
export const EVENTS_SCANNED_MAX = 10_000;
export const RECEIVE_DEFAULT = 10;
export const HISTORY_DEFAULT = 50;
export const MESSAGES_MAX = 1_000;
export const THREAD_MAX_CHARS = 128;
/** Messages of one thread, the newest, among which message/history finds those of a node. */
export const THREAD_SCANNED_MAX = 2_000;
/**
 * The contents of one receive or history answer together; beyond it the answer has fewer messages. For a receive, whose
 * whole answer is in memory and may be stored, their JSON counts as well.
 */
export const MESSAGES_ANSWER_MAX_BYTES = 8 * MIB;
/** The contents that a receive with an Idempotency-Key returns: others wait while the response is stored. */
export const STORED_RECEIVE_MAX_BYTES = 1 * MIB;
/**
 * Beyond either the rest of a batch is not done: its answers together, and the rows that it reads and writes. Others
 * wait while it is decided and written: some 50 ms.
 */
export const BATCH_ANSWERS_MAX_BYTES = 2 * MIB;
export const BATCH_ROWS_MAX = 6_000;
/** How long the requests of a batch are decided; then the rest is not done. */
export const BATCH_DECIDE_MS = 50;
/** The requests of a batch are parsed for so long in one tick of the event loop. */
export const BATCH_TURN_MS = 4;
/** A receive in a batch takes messages until their contents reach this: it cannot wait for the memory for more. */
export const BATCH_RECEIVE_BYTES = 256 * KIB;

/** Pages that begin further into a list are loaded one per tick, because the rows before them must be skipped. */
export const LIST_NEAR_ROWS = 10_000;
/** How many such pages may wait, and how many searches for their next step; beyond it the response is 503. */
export const LIST_FAR_PAGES_MAX = 256;
/** The search text for titles. */
export const SEARCH_MAX_CHARS = 100;
export { LIST_SCANNED_MAX, LUX_TOP_SCANNED_MAX } from "./list-limits.ts";
/** Tasks that one call of a filtered list examines only to count them all; a longer list has no total. */
export const LIST_COUNTED_MAX = 2_000;
/** Tasks that one call of task/count examines, in steps that take 300 ms together; there may be more. */
export const COUNT_SCANNED_MAX = 50_000;
/** Failed tasks of one node that a list of its tasks counts, in some milliseconds; the pages by number end there. */
export const LIST_FAILED_COUNTED_MAX = 100_000;
/** Tasks, and blocks of tasks, that one step of a search examines: about a millisecond. */
export const SEARCH_STEP_ROWS = 500;
export const SEARCH_STEP_BLOCKS = 32;
/** The first step of a search: for a filter that matches many. */
export const SEARCH_FIRST_BLOCKS = 4;
/** Blocks that one call looks up: two million tasks, in some milliseconds. */
export const SEARCH_BLOCKS_MAX = 4_096;
/** The first line of a failure or a note in a list of summaries. */
export const SUMMARY_LINE_MAX_CHARS = 200;
/** Parked messages of all nodes that message/parked counts, in some milliseconds; its pages end there. */
export const PARKED_COUNTED_MAX = 100_000;
/** Types in stats/types, those with the most tasks, and how long its counts are kept. */
export const STATS_TYPES_MAX = 100;
/** Special lanes in `stuck` of stats/types, those with the most tasks. */
export const STATS_STUCK_MAX = 10;
export const STATS_KEPT_MS = 2 * SECOND_MS;
/** Tasks of each type that stats/types counts as open, waiting or assigned. */
export const STATS_TASKS_MAX = 50_000;
/** Failed tasks that stats/failures examines, the groups that it shows, and the nodes that it names of each. */
export const FAILURES_SCANNED_MAX = 10_000;
export const FAILURE_GROUPS_MAX = 50;
export const FAILURE_NODES_MAX = 5;
/** The parameter `last` of stats/failures: its maximum, and its default. */
export const FAILURES_LAST_MAX_SECONDS = 30 * 86_400;
export const FAILURES_LAST_SECONDS = 3_600;
/** The first line of the message of a group of failures. */
export const FAILURE_LINE_MAX_CHARS = 200;
/** Entries of the ledger that lux/top examines in one step (some milliseconds), and the nodes that it shows. */
export const LUX_TOP_PART = 5_000;
export const LUX_TOP_NODES_MAX = 50;
/** Nodes in its `by_node`. */
export const PARKED_NODES_MAX = 50;
/** Tasks of each node in a node/list with `tasks`. */
export const NODE_TASKS_SHOWN = 3;
/** The part of a file that is loaded at once, where the system does not send the file. */
export const FILE_PIECE_MAX_BYTES = 256 * KIB;
/**
 * A larger download that needs a key can be cut off when the key is revoked. Elsewhere than on Linux it passes through
 * the process for that. The system sends others, which costs less and has a Content-Length, to their end.
 */
export const FILE_UNCUT_MAX_BYTES = 16 * MIB;
/** The part of a list that is loaded at once; a larger page is loaded in parts. */
export const LIST_PART_MAX_BYTES = 256 * KIB;
/** Nodes that are loaded at once for a list of all: 2 KiB each, for each concurrent caller. */
export const NODES_PART = 100;
/** Nodes that one step of a search examines: about a millisecond. */
export const NODES_SEARCH_STEP = 1_000;
/** Response backpressure counts a larger answer until its caller has read it. */
export const ANSWER_UNCOUNTED_MAX_BYTES = 64 * KIB;
/** The bytes of counted answers; beyond it the next answer waits. */
export const ANSWER_BYTES_SHARES: ShareSizes = {
  keys: 64 * MIB,
  fullKey: 48 * MIB,
  limitedKey: 6 * MIB,
  addresses: 32 * MIB,
  address: 3 * MIB,
};
/** Reads of lists and of the event log that run, or that wait for room for their answer; beyond it the next one waits. */
export const READ_SHARES: ShareSizes = {
  keys: 256,
  fullKey: 192,
  limitedKey: 16,
  addresses: 64,
  address: 8,
};
/** A counted answer is cut off unless its caller reads ANSWER_SLICE_BYTES in each ANSWER_STALL_MS. */
export const ANSWER_STALL_MS = 25 * SECOND_MS;
export const ANSWER_SLICE_BYTES = 64 * KIB;
/** Reads of READ_SHARES that begin in one tick of the event loop; only one after a tick that took READS_TICK_MS. */
export const READS_TOGETHER = 4;
export const READS_TICK_MS = 2;
/** A read waits for its share, a large answer for room: until those before it are read or cut off. */
export const ANSWER_WAIT_MS = 30 * SECOND_MS;
/** The descriptions of one task/pull together; beyond it the answer has fewer tasks. */
export const PULL_ANSWER_MAX_BYTES = 8 * MIB;

// Waiting.
export const RECEIVE_TIMEOUT_DEFAULT_SECONDS = 5;
export const POLL_TIMEOUT_DEFAULT_SECONDS = 25;
export const WAIT_MAX_SECONDS = 300;
/** Calls that wait. Without a key these are polls, and waits for the end of a task. */
export const WAIT_SHARES: ShareSizes = {
  keys: 20_000,
  fullKey: 15_000,
  limitedKey: 500,
  addresses: 2_000,
  address: 500,
};
/** Open event streams: of the log, of nodes, and of A2A. */
export const STREAM_SHARES: ShareSizes = {
  keys: 20_000,
  fullKey: 15_000,
  limitedKey: 500,
  addresses: 1_000,
  address: 100,
};
export const STREAM_BACKLOG_MAX_BYTES = 1 * MIB;
/** The unread bytes of streams; beyond it, a stream loads its next event only when there is room. */
export const STREAM_BYTES_SHARES: ShareSizes = {
  keys: 64 * MIB,
  fullKey: 48 * MIB,
  limitedKey: 6 * MIB,
  addresses: 16 * MIB,
  address: 2 * MIB,
};
/** A stream of the whole log reads once in this time: a busy hub logs thousands of events a second. */
export const LOG_STREAM_GATHER_MS = 100;
export const STREAM_BATCH = 32;
/** Ids of events that a stream was notified of and has not read yet; beyond it, the stream reads the log instead. */
export const STREAM_PENDING_MAX = 1_000;
/** Events that are kept in memory for the streams, and roughly the bytes of these and their messages. */
export const RECENT_EVENTS_MAX = 1_000;
export const RECENT_EVENTS_MAX_WEIGHT = 1 * MIB;

// MCP.
/** A result that a model reads. Some clients show both of its forms, and cut out the middle of 10,000 or 20,000 bytes. */
export const MCP_RESULT_MAX_BYTES = 9_500;
/** Of a file that does not fit, a message in a list, and a text of a result in task_wait: reading on costs a call. */
export const MCP_PREVIEW_MAX_BYTES = 2_000;
/** Of a text of one line: the title of a task, why it failed. */
export const MCP_LINE_MAX_BYTES = 160;
/** Of the tasks that a task depends on, those whose results a result shows, and files of each. */
export const MCP_INPUTS_MAX = 6;
/** Questions about a task that a result shows: the newest. */
export const MCP_ANSWERS_MAX = 6;
/** A client gives up after 60 s, unless it hears of progress; some give up nevertheless after 300 s. */
export const MCP_WAIT_MAX_SECONDS = 50;
export const MCP_PROGRESS_WAIT_MAX_SECONDS = 240;
export const MCP_PROGRESS_EVERY_MS = 15 * SECOND_MS;
/** A file that is a part of a call; a larger one is uploaded by a URL. */
export const MCP_INLINE_MAX_BYTES = 64 * KIB;
/** Binary content is shown in base64 up to this size. */
export const MCP_BINARY_MAX_BYTES = 4 * KIB;
/** Files of others that one task_create copies as inputs, together. */
export const MCP_COPIED_MAX_BYTES = 64 * MIB;
/** The contents of the messages that one mail_check loads. */
export const MCP_MAIL_MAX_BYTES = 64 * KIB;
export const MCP_MAIL_MAX = 20;
export const MCP_ACKS_MAX = 100;
/** Types of open tasks that task_next names because its caller does not take them. */
export const NOT_TAKEN_MAX = 20;
/** Dependencies, files and receivers that a result names; of more it says how many there are. */
export const MCP_NAMED_MAX = 20;
export const MCP_LIST_DEFAULT = 20;
export const MCP_LIST_MAX = 50;
/** How long an agent is not offered what it has released, or what was taken from it: it would get the same task for ever. */
export const RELEASED_REST_MS = 10 * MINUTE_MS;
/** Tasks of one task_create or task_wait. */
export const MCP_TASKS_MAX = 50;
export const MCP_EVENTS_MAX = 100;

// A2A.
/** How long SendMessage waits for the end of its task. */
export const A2A_WAIT_SECONDS = 300;
export const A2A_CONTEXT_ID_MAX_CHARS = 128;
export const A2A_MESSAGE_ID_MAX_CHARS = 255;
export const A2A_PARTS_MAX = 100;
export const A2A_PAGE_DEFAULT = 50;
export const A2A_PAGE_MAX = 100;
/** Tasks on one page of ListTasks together; beyond it the page has fewer. */
export const A2A_PAGE_MAX_BYTES = 1 * MIB;
/** Tasks of a caller that one ListTasks examines, and counts: the last changed. */
export const A2A_SCANNED_MAX = 2_000;
export const A2A_SKILLS_MAX = 100;
export const A2A_CARD_MAX_AGE_SECONDS = 60;

// Broadcasts.
/** Registered nodes; one more registration is refused. The default of --max-nodes. */
export const NODES_DEFAULT_MAX = 100_000;
export const NODES_HIGHEST_MAX = 1_000_000;
/** Nodes that one commit of a broadcast handles, in some 5 ms during which no request is served. */
export const BROADCAST_STEP_NODES = 1_000;
/** A broadcast whose hub has been silent for this long is dropped. */
export const BROADCAST_LEASE_MS = 15 * SECOND_MS;
/** Broadcasts that may wait for the one that is being written, each with its content; beyond it the answer is 503. */
export const BROADCASTS_WAITING_MAX = 256;
/** In one tick of the event loop: about 10 ms of answers, then others are served. */
export const WAKE_UPS_TOGETHER = 100;

// Leases and periods.
/** task/next does not repeat a heartbeat that is younger. The lease of its node may then end this much earlier. */
export const HEARTBEAT_FRESH_MS = 1 * SECOND_MS;
export const ACK_LEASE_MS = 30 * SECOND_MS;
/** How often a message that requires an ACK is redelivered before it is parked. */
export const REDELIVERIES_MAX = 5;
export const RETAIN_DEFAULT_MS = 7 * DAY_MS;
export const IDEMPOTENCY_RETAIN_MS = 24 * HOUR_MS;
/** Calls of MCP within this time that ask for the same are one call and its repeats. */
export const MCP_REPEAT_WINDOW_MS = 10 * MINUTE_MS;
/** Stored answers of one key, and of all unless configured otherwise; the commit beyond it deletes the oldest. */
export const ANSWERS_OF_KEY_MAX_BYTES = 64 * MIB;
export const ANSWERS_DEFAULT_MAX_BYTES = 1024 * MIB;
/**
 * The least bytes of a stored answer, with its key and path: says how many a commit must delete to make room for its
 * own.
 */
export const ANSWER_MIN_BYTES = 64;
/** How many of the oldest stored answers each commit may delete in addition. */
export const ANSWERS_TRIMMED_MIN = 16;
/** Bytes of stored answers that one step deletes when a limit was lowered. */
export const ANSWERS_EVICT_STEP_BYTES = 2 * MIB;
export const ANSWERS_EVICT_EVERY_MS = 5 * SECOND_MS;
export const SWEEP_EVERY_MS = 1 * SECOND_MS;
/** How long a chore works in one sweep; the rest of its work is done after the other chores have run. */
export const CHORE_BUDGET_MS = SECOND_MS / 5;
/** How much longer a sweep waits for the end of a chore's step, before it goes on without the chore. */
export const CHORE_OVERRUN_MS = 1 * SECOND_MS;
/** Within a second a revoked key is refused, and its open calls and streams end. */
export const KEYS_RELOAD_EVERY_MS = SECOND_MS / 2;
/** If the wall clock and the steady clock move apart by this between two sweeps, it was a jump or a sleep. */
export const CLOCK_JUMP_MS = 5 * SECOND_MS;
export const BALANCE_EVERY_MS = 10 * SECOND_MS;
/** Tasks that the balancer assigns in one batch-assign of B, and in one periodic round; the next one continues. */
export const BALANCE_ROUND_MAX = 5_000;
/** Types of open tasks that the balancer holds at once; a round with more handles them in several sets. */
export const BALANCE_TYPES_MAX = 10_000;
/** Types that one query reads, and types whose open tasks one query reads. */
export const BACKLOG_TYPES_PART = 500;
export const BACKLOG_TYPES_TOGETHER = 32;
/** How long a task that no node could ever take is ready before the hub says so, and how often it looks for such tasks. */
export const STUCK_AFTER_DEFAULT_MS = 10 * MINUTE_MS;
export const STUCK_LOOK_EVERY_MS = 30 * SECOND_MS;
export const PRUNE_EVERY_MS = 30 * SECOND_MS;
/** Minutes whose numbers are kept and shown, and how often a hub saves its own: a crash loses no more than that. */
export const MINUTES_KEPT = 60;
/** The sums of the numbers by minute that are kept: of ten minutes for a day, and of an hour for 30 days. */
export const PERIODS_OF_DAY = 144;
export const PERIODS_OF_MONTH = 720;
/** A period is summed this long after its end, and so often is looked for one. */
export const MINUTES_LATE_MS = 1 * MINUTE_MS;
export const PERIODS_SAVE_EVERY_MS = 30 * SECOND_MS;
/** Types of tasks that a minute counts each; those that come later in it are only in its sums. */
export const MINUTE_TYPES_MAX = 100;
export const MINUTES_SAVE_EVERY_MS = 10 * SECOND_MS;
export const MEMORY_EVERY_MS = 2 * SECOND_MS;
/** The hub is quiet when it uses less than this share of a core. */
export const QUIET_CPU_SHARE = 0.05;
/** In a quiet hub, code is compiled only after this many times the usual number of runs. */
export const QUIET_JIT_RELUCTANCE = 50;
/** After this much work it is worth collecting garbage. */
export const COLLECT_AFTER_CPU_MS = 100;
/** Rows that one periodic transaction writes at most, so that requests never wait long. */
export const SWEEP_BATCH = 500;
/** Messages of a mailbox that one query counts, in a tenth of a millisecond. */
export const WAITING_PART_MAX = 5_000;
/** The sweep for orphans (blobs without a record) lists one shard at a time. */
export const ORPHANS_EVERY_MS = 10 * SECOND_MS;
export const DRAIN_MS = 4 * SECOND_MS;
/** How long the orderly end may take, whatever hangs: a lookup, a disk, a database, a reader. Longer than DRAIN_MS. */
export const END_MAX_MS = 5 * SECOND_MS;
/** Log text that its reader has not taken; lines beyond it are dropped and counted. */
export const LOG_BACKLOG_MAX_CHARS = 8 * MIB;
/** Path and query of a request in its log line. */
export const LOG_PATH_MAX_CHARS = 1 * KIB;
/** A caller's text in a log line, such as the title of a task. */
export const LOG_TEXT_MAX_CHARS = 100;
/** Requests that are logged as warnings in each second; the others are counted. */
export const LOG_WARNINGS_PER_SECOND = 20;
/** How long events are gathered before they become lines of the log; beyond ACTIVITY_LINES_MAX they are counted. */
export const ACTIVITY_WINDOW_MS = 250;
export const ACTIVITY_LINES_MAX = 20;
/** The backups that a hub makes by itself. */
export const BACKUP_EVERY_DEFAULT_MS = 24 * HOUR_MS;
export const BACKUPS_KEPT_DEFAULT = 7;
/** How long the end of the hub waits for the reader of its log. */
export const LOG_END_MS = 500;

// The store.
/** A database that needs longer for a diagnostic is reported as unreachable. */
export const DIAGNOSIS_MAX_MS = 2 * SECOND_MS;
/** A second's callers cause one write. */
export const READINESS_KEPT_MS = 1 * SECOND_MS;
export const METRICS_KEPT_MS = 1 * SECOND_MS;
/** Nodes that one query counts for the metrics, in less than a millisecond. */
export const METRICS_PART = 1_000;
/** Messages of each state that are counted for the metrics, in a millisecond. */
export const METRICS_MESSAGES_MAX = 50_000;
/** Types of tasks that have metrics of their own; the others are counted together. */
export const METRICS_TYPES_MAX = 100;
/** Types whose ready tasks are counted for a scrape, and ready tasks of each type. */
export const METRICS_TYPES_READ_MAX = 1_000;
export const METRICS_TASKS_MAX = 50_000;
/** The weight of the transactions of a group commit (store/pending-transaction.ts): of light ones, and of heavy ones. */
export const GROUP_MAX = 1_024;
export const GROUP_HEAVY_MAX = 128;
/** On SQLite: how long a group is decided and written, before the transactions that are left wait for the next one. */
export const GROUP_MAX_MS = 50;
/** A heavier transaction (a large batch, a task that depends on a thousand) waits behind light ones. */
export const LIGHT_MAX = 32;
export const QUEUE_MAX = 20_000;
/** On SQLite: rows that are kept in memory, in each of two generations, and the texts of all these tasks. */
export const CACHED_TASKS = 2_048;
export const CACHED_TASKS_CHARS = 8 * MIB;
export const CACHED_NODES = 4_096;
/** A task with longer texts is not kept. A prompt for an AI agent has 2,000 to 20,000. */
export const CACHED_TASK_MAX_CHARS = 20_480;
/** Combinations of types whose best tasks are cached. */
export const CACHED_BACKLOGS = 8;
/** Types whose best takers are cached. */
export const CACHED_CANDIDATES = 16;
/** On SQLite: tasks in special lanes that are written before the lanes are read again, beside one for each lane. */
export const CACHED_LANES_WRITES = 64;
/** The best takers of a type that are loaded together: the nodes for so many new tasks of it, or a few less. */
export const CANDIDATES_READ = 32;
/** On SQLite: types whose takers are ranked for the balancer; with one more, the others are forgotten. */
export const RANKED_TYPES_MAX = 64;
/** The best tasks of one combination that are cached. */
export const CACHED_BACKLOG_TASKS = 128;
/** Queries of the best tasks, by combination of types: their SQL takes 5 us to build, and each dispatch asks for one. */
export const CACHED_BACKLOG_QUERIES = 256;
/** Every page of a database up to this size is checked at each start, in about a second. */
export const START_CHECK_MAX_BYTES = 128 * MIB;

/** The free space that writes need on a large disk. */
export const FREE_SPACE_MIN_BYTES = 64 * MIB;
/** On PostgreSQL: changes that are gathered before they are sent. */
export const PENDING_MAX_CHANGES = 10_000;
/** On PostgreSQL: transactions of a group that are reloaded together after an earlier one has changed what they read. */
export const DECIDE_AHEAD = 32;
/** On PostgreSQL: parts of a large batch that are loaded together. */
export const LOAD_AHEAD = 64;

// Several hubs on one database.
/** How often a hub reads the database's clock and the leader lease, and the log for commits it was not notified of. */
export const ELECTION_EVERY_MS = 1 * SECOND_MS;
/** How long a leader that does not renew its lease stays the leader. */
export const LEADER_LEASE_MS = 10 * SECOND_MS;
/** How long after its last write a database remembers a hub. */
export const HUB_FORGOTTEN_MS = 1 * DAY_MS;
/** How often the hubs on one database compare their secrets, and how long a silent hub is still compared. */
export const SECRETS_COMPARE_EVERY_MS = 10 * SECOND_MS;
export const HUB_SILENT_MS = 30 * SECOND_MS;
/** Rounds of PBKDF2: some 50 ms at the start. */
export const SECRET_MARK_ROUNDS = 100_000;
/** Rounds of PBKDF2 for the mark of the secret that stored answers have: some 4 ms at the start of every hub. */
export const ANSWER_MARK_ROUNDS = 10_000;
/** How far a hub's clock may be from the database's, beyond what a reading over the network leaves open. */
export const CLOCK_NOISE_MS = 10;
/** A server that needs longer for the lock and loads of a group, for its commit, or for a read is unavailable. */
export const DATABASE_ANSWER_MAX_MS = 10 * SECOND_MS;
/** How long a write waits for a locked table: less, so that the server itself reports that nothing was written. */
export const DATABASE_LOCK_MAX_MS = 8 * SECOND_MS;
/**
 * The server ends the session of a hub that holds the write lock and confirms or says nothing for this long. Shorter than
 * the wait for the lock: the writes of the other hubs then go on without an error.
 */
export const HUB_VANISHED_MS = 5 * SECOND_MS;
/** Reads that the hub has given up and the server has not answered yet; beyond it a read is refused at once. */
export const ABANDONED_READS_MAX = 256;
/** How long the hub tries to find out whether a commit succeeded, after it lost the database during the commit. */
export const COMMIT_OUTCOME_WAIT_MS = 5 * SECOND_MS;
/** Connections to the database for reads and for files; one more writes and one more listens. */
export const READ_CONNECTIONS = 4;
export const FILE_CONNECTIONS = 3;

// Redis.
/** A Redis that needs longer for a command counts as unavailable. */
export const REDIS_COMMAND_MAX_MS = 500;
export const REDIS_CONNECT_MAX_MS = 1 * SECOND_MS;
export const REDIS_CHECK_EVERY_MS = 1 * SECOND_MS;
/** Exponential backoff of reconnects. */
export const REDIS_RETRY_FIRST_MS = 100;
export const REDIS_RETRY_MAX_MS = 2 * SECOND_MS;
/** A connection that held this long resets the backoff. */
export const REDIS_STEADY_MS = 1 * MINUTE_MS;
/** Mailboxes that one wake-up names. */
export const REDIS_BATCH = 500;

// LUX, in millionths.
export const MICRO_PER_LUX = 1_000_000;
export const LUX_REWARD_MAX = 1_000_000_000;
export const SIGNIN_LUX = 10;
/** A balance must fit the 64-bit integer of the store. */
export const BALANCE_MAX_MICRO = 9_000_000_000_000_000_000n;

// TLS.
/** A changed certificate is in use after two of these at the latest. */
export const CERTIFICATE_CHECK_MS = 4 * SECOND_MS;
/** The certificate that a hub with --tls auto makes for its listeners: how long it is valid, and when it is renewed. */
export const CERTIFICATE_MS = 365 * DAY_MS;
export const CERTIFICATE_RENEWED_AFTER_MS = 30 * DAY_MS;
/** How far the clock of a client may be behind the hub's. */
export const CERTIFICATE_BACKDATE_MS = 7 * DAY_MS;
/** 9999-12-31T23:59:59Z, which says "no end" (RFC 5280, 4.1.2.5): pins of the authority stay valid. */
export const AUTHORITY_ENDS_AT = 253_402_300_799_000;

// Quotas: what the keys that are bound to one node may leave behind (quota.ts).
/** Unfinished tasks that they created. */
export const QUOTA_TASKS_DEFAULT = 10_000;
export const QUOTA_TASKS_HIGHEST = 1_000_000_000;
/** Bytes: one of so many parts of the free space at the start; with PostgreSQL, whose disk the hub cannot see, a number. */
export const QUOTA_BYTES_PARTS = 10;
export const QUOTA_BYTES_ON_POSTGRES = 10 * GIB;
/** How many times its bytes a node may use to come back online, to report usage, and to learn that schedules do nothing. */
export const QUOTA_TIMES_BEYOND = 2;
export const QUOTA_RETRY_AFTER_SECONDS = 60;
// What a row takes beside its texts, in its table and indexes: what it was measured to take on SQLite, and somewhat more,
// because PostgreSQL needs more.
export const KEPT_TASK_BYTES = 384;
/** Of each task that a task depends on: its id, and while it is not completed its two rows in `dependencies`. */
export const KEPT_DEPENDENCY_ID_BYTES = 37;
export const KEPT_DEPENDENCY_BYTES = 200;
/** Of each usage report of a task. */
export const KEPT_REPORT_BYTES = 256;
export const KEPT_MESSAGE_BYTES = 288;
export const KEPT_DELIVERY_BYTES = 112;
export const KEPT_EVENT_BYTES = 224;
/** Of a schedule, a push config or a note, beside its JSON. */
export const KEPT_ROW_BYTES = 256;
/** Of each name for which a node reports usage on a day, in two tables. */
export const KEPT_SUM_BYTES = 320;
/** The output of an attempt, beside its text. */
export const KEPT_OUTPUT_BYTES = 1_024;
/** The record of a file. Its bytes take whole blocks, an empty one at least its inode. */
export const KEPT_FILE_BYTES = 512;
export const KEPT_BLOCK_BYTES = 4 * KIB;

// Secrets.
export const WRONG_SECRETS_PER_MINUTE = 20;
export const WRONG_SECRET_WINDOW_MS = 1 * MINUTE_MS;
export const WATCHED_ADDRESSES_MAX = 10_000;
/** Schedules of the hub, and those that one node creates with a key that is bound to it. */
export const SCHEDULES_MAX = 1_000;
export const SCHEDULES_OF_NODE_MAX = 100;
export const SCHEDULE_NAME_MAX_CHARS = 64;
export const CRON_MAX_CHARS = 128;
export const TIME_ZONE_MAX_CHARS = 64;
/** The description of a scheduled task: a page of schedules holds many of them. */
export const SCHEDULE_DESCRIPTION_MAX_BYTES = 16_384;
/** One year. */
export const SCHEDULE_PIPELINE_TASKS_MAX = 200;
/** Together: a schedule is one row. */
export const SCHEDULE_PIPELINE_NEEDS_MAX = 1_000;
export const SCHEDULE_EVERY_MAX_SECONDS = 31_536_000;
/** One day. */
export const SCHEDULE_JITTER_MAX_SECONDS = 86_400;
/** The times of a schedule that get no task are events at most so often. */
export const SCHEDULE_SKIPS_LOGGED_EVERY_MS = 1 * MINUTE_MS;
/** A time of a schedule counts as missed when no hub could handle it for so long. */
export const SCHEDULE_LATE_MS = 1 * MINUTE_MS;
/** Ten years. */
export const RETAIN_TASK_MAX_SECONDS = 315_360_000;
/** How long the size of the database that `status` shows is not measured again. */
export const STORAGE_SIZE_KEPT_MS = 10 * SECOND_MS;
/** How often the hub looks for tasks and files whose retention is over. */
export const RETENTION_EVERY_MS = 10 * SECOND_MS;
/** Finished tasks that one commit deletes: its callers wait for it. */
export const RETENTION_STEP_TASKS = 20;
/** Of them, those on which others depend: for each, all unfinished tasks are looked at. */
export const RETENTION_STEP_DEPENDED = 4;
/** Finished tasks that one read looks at. */
export const RETENTION_LOOK_TASKS = 500;
/**
 * With more unfinished tasks, a task on which others depend is not deleted: whether one of them is unfinished is found by
 * looking at all unfinished tasks.
 */
export const RETENTION_UNFINISHED_MAX = 10_000;
/**
 * How much later than it should be the next time of a schedule is when the clock was set back: after smaller corrections
 * the schedule waits.
 */
export const SCHEDULE_REWOUND_MS = 3 * HOUR_MS;
export const SCHEDULES_REWIND_EVERY_MS = 5 * MINUTE_MS;
/** Schedules that are due, read at once. */
export const SCHEDULES_DUE_BATCH = 100;
/** Webhooks of administrators; push notification configs of A2A, in all, of one node and of one task. */
export const WEBHOOKS_MAX = 200;
export const PUSH_CONFIGS_MAX = 10_000;
export const PUSH_CONFIGS_OF_NODE_MAX = 500;
export const PUSH_CONFIGS_OF_TASK_MAX = 5;
export const WEBHOOK_NAME_MAX_CHARS = 64;
export const WEBHOOK_URL_MAX_CHARS = 2_048;
/** A secret of Standard Webhooks, without its prefix: from 24 to 64 bytes. */
export const WEBHOOK_SECRET_MIN_BYTES = 24;
export const WEBHOOK_SECRET_MAX_BYTES = 64;
export const WEBHOOK_SECRET_NEW_BYTES = 32;
/** The access token of ntfy. */
export const WEBHOOK_TOKEN_MAX_CHARS = 256;
export const PUSH_CONFIG_ID_MAX_CHARS = 128;
/** "a2a:", the id of a task, ":" and that of the config. */
export const PUSH_NAME_MAX_CHARS = 512;
export const PUSH_TOKEN_MAX_CHARS = 1_024;
export const PUSH_SCHEME_MAX_CHARS = 64;
/** How long a receiver may take to answer. */
export const WEBHOOK_TIMEOUT_MS = 15 * SECOND_MS;
/** Deliveries that are under way at the leader. */
export const WEBHOOK_DELIVERIES_MAX = 32;
/** Of them for push configs of A2A, in all and of one key: the rest is for the webhooks of administrators. */
export const PUSH_DELIVERIES_MAX = 8;
export const PUSH_DELIVERIES_OF_KEY_MAX = 4;
/** How long the push configs of one key at most wait for a host that times out again and again. */
export const PUSH_SILENCE_MAX_MS = 5 * MINUTE_MS;
/** How long a webhook with a backlog delivers before the next one that waits has its turn. */
export const WEBHOOK_TURN_MS = 1 * SECOND_MS;
/** Events of a webhook that are in memory, and events of the log that one read looks at. */
export const WEBHOOK_READ_EVENTS = 50;
export const WEBHOOK_LOG_WINDOW = 2_000;
/** The time between two attempts: doubled from the first to the last. A receiver may ask for more (Retry-After). */
export const WEBHOOK_RETRY_MIN_MS = 1 * SECOND_MS;
export const WEBHOOK_RETRY_MAX_MS = 1 * HOUR_MS;
export const WEBHOOK_RETRY_AFTER_MAX_MS = 24 * HOUR_MS;
/** A webhook that fails for so long, and so often, is suspended. A machine that slept for a day has tried only once. */
export const WEBHOOK_SUSPEND_AFTER_MS = 24 * HOUR_MS;
export const WEBHOOK_SUSPEND_ATTEMPTS_MIN = 10;
/** How often the cursors of webhooks that had nothing to send are stored, so that they are not taken for a gap. */
export const WEBHOOK_CURSORS_SAVE_MS = 10 * MINUTE_MS;
/** How many of them one step stores, and how many webhooks one step reads. */
export const WEBHOOK_STEP = 500;
/** How long the hub waits for deliveries under way when it stops. */
export const WEBHOOK_DRAIN_MS = 3 * SECOND_MS;
/** ntfy shows no more buttons. */
export const NTFY_ACTIONS_MAX = 3;
/** Of what ntfy shows, in characters; it cuts a message after 4,096 bytes. */
export const NTFY_MESSAGE_MAX_CHARS = 1_000;
export const KEYS_MAX = 1_000;
export const KEY_NAME_MAX_CHARS = 64;
/** Ten years. */
export const KEY_EXPIRES_MAX_SECONDS = 315_360_000;
/** Invitations that are kept; how long each can be accepted; and how long one that has ended is kept, to say why. */
export const INVITATIONS_MAX = 1_000;
export const INVITATION_DEFAULT_SECONDS = 3_600;
export const INVITATION_MIN_SECONDS = 60;
export const INVITATION_MAX_SECONDS = 604_800;
export const INVITATION_KEPT_MS = 7 * DAY_MS;
export const INVITATION_URL_MAX_CHARS = 300;
/** Secrets that are looked up in the store together, because the hub does not know them. */
export const KEY_LOOKUPS_MAX = 500;
export const SECRET_MAX_CHARS = 512;
/** How long a presigned URL is valid, and how long its ticket may be: it names a key, a node and a task. */
export const TICKET_LIFE_MS = 10 * MINUTE_MS;
export const TICKET_MAX_CHARS = 1_024;
/** A token that answers a question names the question and its task. */
export const ANSWER_TOKEN_MAX_CHARS = 512;
/** 128 bits. */
export const TICKET_MAC_BYTES = 16;
/** Rounds of PBKDF2 for the key of the MAC: some 50 ms at the first ticket of a hub. */
export const TICKET_MAC_ROUNDS = 100_000;
/** A shorter secret can be guessed, and is a warning. */
export const SECRET_SAFE_CHARS = 16;

/** A search in the manual. */
export const MANUAL_QUERY_MAX_CHARS = 100;
export const MANUAL_HITS_MAX = 30;

/** After fewer completed tasks than this, the leaderboard is updated from their nodes; after more, from all nodes. */
export const TOP_NODES_STEPS_MAX = 200;
