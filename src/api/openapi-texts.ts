/**
 * The texts of the OpenAPI document: when each error occurs, what each resource is, and what shared fields mean. A test
 * fails on a field without a text and on a text that no field uses.
 */
import type { RejectionCode } from "../domain/decision.ts";
import { TASK_FIELDS } from "../domain/task/fields.ts";
import { REJECTIONS } from "./error-table.ts";

export const ABOUT = `Every success of a JSON operation is status 200 and an object with \`"success": true\`. Every error
is a problem (RFC 9457, \`application/problem+json\`) with a stable code in \`error\`.

- The secret goes in the header \`X-Matrix-Secret\`, or in \`Authorization: Bearer\`; some operations also need the administrator key in \`X-Admin-Key\`.
- A POST with an \`Idempotency-Key\` can be repeated and takes effect once.
- In requests, \`null\` in an optional field is the same as leaving the field out, and enum values are case-insensitive.
- Unknown fields of a request are ignored, and the response names them in \`ignored\`. Later versions may add fields to responses.
- Times are ISO 8601 in UTC. Ids are opaque strings, except the id of an event.
- The hub speaks two variants, A and B. This document describes one variant; a listener of the other variant serves a document of its own.`;

/**
 * An operation belongs to the first word of its path; questions belong to task, signin to lux, usage and budget to
 * cost, any other operation to the hub. No resource has the name of an operation: the API reference has an anchor for
 * each.
 */
export const RESOURCES: Readonly<Record<string, string>> = {
  node: "Nodes, the workers: they register, send heartbeats and do tasks.",
  task: "Tasks: created, handed out, completed or failed.",
  message: "The mailboxes of nodes.",
  agent: "The same mailboxes under other paths, and the event stream of a node.",
  note: "Notes: a shared memory of the nodes, by key, with compare-and-set.",
  lease: "Advisory leases on names and paths, so that two nodes do not work on the same thing.",
  lux: "LUX, the reward units: an append-only ledger of double entries, with a hash chain.",
  cost: "What work has cost in tokens and dollars, and the budgets: what it may cost.",
  file: "Files, streamed both ways and optionally attached to tasks and nodes.",
  schedule: "Schedules, which create a task at certain times.",
  webhook: "Webhooks, which send events to a URL. Needs the administrator key.",
  group: "Groups: tasks that were created with the same `group`, followed as one.",
  invitation: "Invitations of nodes, with which a machine joins the hub. Needs the administrator key.",
  key: "Keys, which grant access to the hub. Needs the administrator key.",
  hub: "The hub itself: its state, its event log and this document.",
};

const WHEN = {
  invalid_request: "a field is missing or wrong; `errors` lists the bad fields",
  unauthorized: "the secret is missing or wrong, or its key was revoked or expired",
  admin_key_required: "`X-Admin-Key` is missing or wrong",
  host_not_allowed: "the request names a `Host` that `--allowed-host` does not allow",
  key_bound_to_other_node: "the key is bound to a node, and the request concerns another node or its tasks",
  key_not_bound: "with `--strict` or `--signin bound`: the key is not bound to the node",
  not_assigned_to_node: "another node holds the task, or has completed it",
  not_your_message: "the message is for another node, or `reply_to` is a message of other nodes",
  viewer_not_allowed: "a viewer key can neither change anything nor read message contents",
  lower_reward: "the request lowers a reward without the administrator key",
  mint_limit: "the rewards would exceed what the key may promise per day (`--mint`)",
  own_work: "the caller did the work, and nobody may review their own work",
  not_reviewer: "the task names another reviewer",
  not_found: "there is no such path",
  node_not_found: "no node is registered with this id",
  task_not_found: "there is no such task",
  message_not_found: "there is no such message, or it was removed after its retention",
  question_not_found: "the task has no such question",
  file_not_found: "there is no such file",
  budget_not_found: "there is no such budget",
  pause_not_found: "there is no such pause",
  usage_not_found: "the node reported nothing on that day, or it is void already",
  limit_not_found: "the limit key has neither a limit nor a hold",
  note_not_found: "there is no note with this key",
  key_not_found: "there is no key with this name",
  invitation_not_found: "there is no such invitation, or it was deleted",
  schedule_not_found: "there is no schedule with this name",
  group_not_found: "no task belongs to a group with this name",
  webhook_not_found: "there is no webhook with this name",
  method_not_allowed: "the path does not support this method; see the header `Allow`",
  request_timeout: "the body did not arrive in time",
  task_not_open: "a node holds the task",
  task_not_assigned: "no node holds the task",
  task_completed: "the task is completed",
  task_failed: "the task has failed; task/retry opens it again",
  task_not_failed: "the task has not failed, so it cannot be retried",
  wrong_offset: "the data begins after the end of the output; see `expected`",
  task_not_ready: "the task waits for its start time, other tasks or an answer, or has a quorum",
  stale_lease: "the hub has taken the task back or handed it out again since this `epoch`",
  node_draining: "the node is draining and takes no new tasks",
  node_offline: "the node is offline and takes no tasks",
  message_not_parked: "the message is not parked, so it cannot be redriven",
  note_version_conflict: "the note does not have the version `if_version`; see `version` (0: no note)",
  notes_limit: "the notes would exceed a limit of the hub or of the node",
  lease_conflict: "the name or glob overlaps with other leases; see `holders`",
  lease_lost: "the node no longer has this lease",
  leases_limit: "the hub or the node has the maximum number of leases",
  nodes_limit: "the hub has the maximum number of nodes (`--max-nodes`)",
  lux_balance_limit: "the balance of the node would exceed its maximum",
  task_files_limit: "the task has the maximum number of files",
  question_answered: "the question already has a different answer",
  question_timed_out: "the deadline of the question has passed, or its task has ended",
  questions_limit: "the task has the maximum number of questions",
  not_in_review: "the task has no result that waits for a review",
  review_decided: "the review has already passed or rejected the result",
  verdict_missing: "the result of a task for a review has no `verdict`",
  compared_value_missing: "the result lacks a value that the quorum compares",
  task_sealed: "a copy of a task with a quorum takes no files and no questions",
  node_excluded: "the node had another copy of the task, or did the work to be reviewed",
  schedules_limit: "the hub, or the node of the key, has the maximum number of schedules",
  webhooks_limit: "the hub, or the task, has the maximum number of webhooks",
  usage_limit: "the task has the maximum number of usage reports",
  budget_exceeded: "a budget is used up, or the task has cost more than its `max_cost_usd`",
  budgets_limit: "the hub has the maximum number of budgets",
  paused: "all tasks, or the task's type, limit key or creator, are paused",
  pauses_limit: "the hub has the maximum number of pauses",
  limit_reached: "the limit of the task's limit key is reached, or a hold stops the key",
  limits_limit: "the hub has the maximum number of limits, or of holds",
  too_many_lanes: "there are too many combinations of type, requirements and limit key",
  gifts_limit: "20 tasks that your node has sent to that node wait there",
  requirements_not_met: "the node lacks what the task requires, or has too little of it free",
  key_exists: "another key has, or had, this name or secret",
  keys_limit: "the hub has the maximum number of keys",
  invitation_used: "somebody has joined with this invitation",
  invitation_expired: "the invitation has expired",
  invitations_limit: "the hub has the maximum number of invitations",
  entries_missing: "this hub does not have the entries after that one, or keeps no change log",
  stale_term: "a promotion of a later term has superseded that hub, or another standby was promoted",
  not_a_standby: "only a standby can be promoted",
  standby: "this hub is a standby and answers reads only; `hub` is the URL of the one that accepts writes",
  superseded: "a standby of this hub was promoted; `hub` is its URL",
  no_standby: "no standby follows, and the hub was started with `--sync=strict`",
  standby_key_required: "only a standby calls this",
  ref_refused: "in a batch: the request to which `$ref` refers returned an error",
  graph_too_large: "a batch with `$ref` reads, writes or returns more than a batch may",
  body_too_large: "the body or the file is larger than its limit",
  unsupported_media_type: "the body is multipart or compressed, or an upload is not multipart",
  range_not_satisfiable: "the file does not have the requested range",
  idempotency_key_reused: "the `Idempotency-Key` was used with another body, variant or hub secret",
  quota_exceeded: "the request would exceed a quota of the key's node",
  too_many_calls: "the caller has used up its share of long polls, streams or uploads",
  too_many_wrong_secrets: "too many wrong secrets came from this address; see `Retry-After`",
  client_closed_request: "the client hung up while its call waited; only in the log",
  internal_error: "the hub or its disk has a fault; the log has the cause and the request id",
  content_missing: "the bytes of the file are missing",
  outcome_unknown: "the commit failed; the write may be stored or not",
  batch_full: "in a batch: earlier requests cost too much, so this one was not run",
  database_unavailable: "the hub cannot reach the database; nothing was written",
  overloaded: "the hub or the caller has reached a limit; see `Retry-After`",
  insufficient_storage: "the disk is full; nothing was written",
};

export type ErrorCode = keyof typeof WHEN;

/** The statuses of the errors that are no rejections of the domain. */
const STATUSES: Readonly<Record<Exclude<ErrorCode, RejectionCode>, number>> = {
  invalid_request: 400,
  unauthorized: 401,
  admin_key_required: 403,
  host_not_allowed: 403,
  key_not_bound: 403,
  viewer_not_allowed: 403,
  standby_key_required: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  ref_refused: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  idempotency_key_reused: 422,
  too_many_calls: 429,
  too_many_wrong_secrets: 429,
  client_closed_request: 499,
  internal_error: 500,
  content_missing: 500,
  outcome_unknown: 500,
  batch_full: 503,
  standby: 503,
  superseded: 503,
  no_standby: 503,
  database_unavailable: 503,
  overloaded: 503,
  insufficient_storage: 507,
};

const statusOf = (code: ErrorCode): number => (isRejection(code) ? REJECTIONS[code][0] : STATUSES[code]);

function isRejection(code: ErrorCode): code is RejectionCode {
  return Object.hasOwn(REJECTIONS, code);
}

type ErrorText = { readonly status: number; readonly when: string };

const codes = Object.keys(WHEN) as ErrorCode[]; // WHEN has exactly these keys
export const ERRORS = Object.fromEntries(
  codes.map((code): [ErrorCode, ErrorText] => [code, { status: statusOf(code), when: WHEN[code] }]),
) as Readonly<Record<ErrorCode, ErrorText>>;

export const FIELDS: Readonly<Record<string, string>> = {
  open: "How many of the tasks are open.",
  assigned: "How many of the tasks are assigned.",
  pending: "How many of the tasks are open or assigned.",
  completed: "How many of the tasks are completed.",
  failed: "How many of the tasks have failed.",
  success: "Always true, because an error is a problem.",
  ...Object.fromEntries(Object.entries(TASK_FIELDS).map(([name, { text }]) => [name, text])),

  files: "The files.",

  // Nodes
  node_id: "The id of the node.",
  node: "The node as it is now.",
  name: "The name that people see.",
  status: "The status of the task. task/retry opens a `failed` task again.",
  host: "Where people can reach the node; not used by the hub.",
  port: "Where people can reach the node; not used by the hub.",
  max_tasks:
    "The number of unfinished tasks up to which the hub hands open tasks to the node; null: no limit.",
  auto_assign: "Whether the balancer may assign tasks to the node.",
  drain: "Whether the node drains: a draining node finishes its tasks and gets no new tasks.",
  last_heartbeat: "The last heartbeat or registration.",
  lux_balance: "The sum of the node's ledger entries.",
  tasks_assigned: "How many unfinished tasks the node has.",
  heartbeat_interval: "Seconds between two heartbeats.",

  // Tasks
  task_id: "The id of the task.",
  head: "The newest entry of the ledger.",
  next_cursor: "Send this value as `cursor` to get the next page; null at the end.",
  task: "The task as it is now.",
  tasks: "The tasks.",
  assigned_node: "The node that holds the task, or has completed it.",
  creator_verified: "Whether the task was created with a key that is bound to its `creator_node`.",
  paid_seq: "The number of the ledger entry that paid the task; left out if nothing was paid.",
  result_verified: "Whether the result came with a key that is bound to the node that completed the task.",
  problem: "What the problem was.",
  improvement: "What was done about it.",
  lesson: "What was learned.",
  ready: "Whether the task is open and may be handed out now.",
  attempts:
    "Failed attempts: failures, timeouts, nodes that went offline, rejected results, an exceeded `max_cost_usd` and, with `max_attempts`, restarts.",
  restarts:
    "How often task/next has handed the task out again with `resume`, because the worker ended. With `max_attempts` each restart counts as an attempt.",
  reviewed_by: "The node that reviewed; null: the caller named no node, or the deadline decided.",
  reviewed_at: "When the result was passed or rejected.",
  of: "How many copies there are at most.",
  compare:
    "What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON pointers into the result.",
  sealed: "Nobody can read what the worker of the copy has sent until the quorum is decided; only on copies.",
  parent_task: "The task for which the hub created this task; only on tasks that the hub created.",
  made_for:
    "`review`: this task checks the result of `parent_task`, and its own result needs a `verdict`. `copy`: this task is a copy of `parent_task`.",
  unique_until: "Until this time the task holds its `unique_key`, finished or not.",
  started_at: "When the node started the task.",
  progress: "The last note of the node that holds the task.",
  failure: "Why the last attempt, or the task, failed.",
  at: "The time.",
  ignored:
    "The first fields of the request that nothing has read, with dots; only if there are any. An ignored field may be misspelt.",
  inputs: "The ids in `files` of the input files: files that the `assigned_node` of the task did not attach.",
  outputs: "The ids in `files` of the output files: files that the `assigned_node` of the task attached.",
  attached:
    "What the file is for its task: `output` if the file's node was the `assigned_node` of the task when the file was attached, else `input`; null for a file of no task.",
  context:
    "What other tasks and earlier attempts leave for the worker of the task; absent if there is nothing.",
  checkpoint:
    "What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last checkpoint counts.",
  waiting_for:
    "`answer` while a question about the task is open, `review` while the result waits for its review; else null.",
  question: "The question.",
  question_id: "The id of the question.",
  choices: "Answers that the worker suggests; any other answer is possible too.",
  schema:
    "The JSON Schema (at most 8 KiB) of the answer that the worker expects. The hub shows the schema, but does not enforce it.",
  asked_by: "The node that asked.",
  asked_at: "When the question was asked.",
  until: "When the question times out without an answer.",
  answered_by: "The node that answered; null if the answer named none.",
  answered_at: "When the question was answered or timed out; null while the question is open.",
  usage:
    "What all attempts of the task together have used, as the workers reported; null without any report.",
  seq: "The worker's number for the report: a repeat under the same number in the same attempt counts once.",
  model: "The model that was used.",
  input_tokens: "Tokens that the model read.",
  output_tokens: "Tokens that the model wrote.",
  cached_tokens: "How many of the input tokens came from a cache.",
  cost_usd:
    "Dollars, rounded to a millionth. Left out or null: the worker does not know the cost, which is not zero.",
  reports: "How many reports the sum has.",
  without_cost: "How many of the reports had no `cost_usd`.",
  scope: "What the budget is about: the whole hub, or one node, creator, type or group of tasks.",
  value:
    "The node, the creator, the type or the group; left out or null: the hub, tasks without a creator, or without a type.",
  per: "The period: a day, a month (both in UTC), or all time.",
  on_limit:
    "`pause` (if left out): when the budget is used up, the hub hands out no task to which it applies. `warn`: the hub only logs an event.",
  budget: "The budget, and what is spent of the budget.",
  pause: "What is paused.",
  resources: "Up to 16 amounts by name (at most 64 characters), rounded to three decimals.",
  hold_s:
    "Also holds the limit key of the task for this many seconds, as limit/hold does. At most 600 with a key that is bound to a node.",
  tokens: "Input and output tokens together; null: any.",
  left: "How many tasks are left, at most 100,000: repeat the call.",
  created_at: "When the record was created.",
  updated_at: "When the record last changed.",
  lease: "The node's hold on the task.",
  epoch: "The epoch of the lease: any other than the current epoch returns 409 `stale_lease`.",
  reason: "The reason, which the event shows.",
  note: "The progress of the work, which the task shows as `progress`.",
  mint_per_day:
    "LUX that the key may promise per UTC day, as rewards of tasks. null: any amount, or none if the hub is strict and the key is bound to a node.",
  assignments: "The tasks and the nodes that get them.",
  results: "How many results must agree.",
  total: "The total number.",
  by_status: "How many tasks there are of each status.",

  // Lists
  page: "The number of the page, from 1.",
  per_page: "Rows on a page; above 50 is read as 50.",
  pages: "How many pages there are.",
  limit: "The maximum number to return.",
  count: "The maximum number to return.",

  // Messages
  id: "The id of the message: `message_id` in the response to the send, and in the ACK.",
  message_id: "The id of the message.",
  from_node: "The sender, which need not be registered.",
  to_node: "The recipient.",
  content: "The message itself; at most 256 KiB of UTF-8.",
  type: "The kind of message.",
  require_ack:
    "Whether the recipient must acknowledge the message; until then the hub delivers the message again, up to 5 times.",
  reply_to:
    "The id of the message to which this message replies; the sender must have sent or received that message.",
  thread:
    "The conversation: the id of its first message, or a name that the sender gives. A reply continues the conversation of the message to which it replies.",
  verified: "Whether the message came with a key that is bound to its sender.",
  sent_at: "When the message was sent.",
  transport: "The transport of messages: `sqlite`, `postgresql` or `redis`.",
  receivers: "The recipients of the broadcast.",
  timeout: "Seconds to wait.",
  messages: "The messages.",
  deliveries: "How often the message was delivered.",
  before: "The id of a message: only messages before this message.",
  since: "The id of a message: only messages after this message.",

  // LUX
  entries: "The entries.",

  // Files
  file_id: "The id of the file.",
  size: "The number of bytes.",
  sha256: "SHA-256 of the bytes, in hexadecimal digits.",
  content_type: "As uploaded; `application/octet-stream` if the uploaded type was invalid.",
  metadata: "As uploaded, with all digits of numbers; `{}` for a file without metadata.",
  uploaded_at: "When the file was uploaded.",
  url: "The path from which to download the file.",
  method: "The method of the request that the URL is for.",

  // Groups
  tag: "Only tasks with this tag. One call examines 10,000 tasks; continue with next_cursor.",
  unfinished:
    "How many tasks of the group have not ended: open and assigned tasks, and results that wait for a review.",
  first_created_at: "When the first task of the group was created.",
  last_created_at: "When the last task of the group was created.",
  last_updated_at: "When a task of the group last changed.",
  in_review: "How many completed tasks of the group wait for their review; only if there are any.",
  failures: "The last 20 failed tasks of the group, the newest first.",
  cancelled:
    "How many tasks were cancelled; of a group also those that expired, which `by_status.failed` leaves out.",
  // Schedules
  schedule: "The schedule.",
  cron: "A cron expression: minute, hour, day of month, month, day of week; or `@daily` and the like.",
  tz: "The time zone of `cron`, of the IANA database; `UTC` if left out.",
  every_s: "The seconds between two times, instead of `cron`; the first time comes after one interval.",
  overlap:
    "What happens at a time when an earlier task is unfinished: no new task (`skip`), or one more (`queue`).",
  catch_up:
    "What happens after times at which no hub ran: a task for the last of these times (`one`), or none (`none`).",
  jitter_s: "Each task may start up to this many seconds later.",
  paused: "Whether the schedule is paused: it creates no tasks until a schedule/put without this field.",
  // Webhooks
  webhook: "The webhook.",
  kinds: "Only events of these kinds; if left out or empty, all kinds.",
  format:
    "What the webhook sends: events as JSON (`luxhub`), notifications (`ntfy`), or the updates of A2A (`a2a`).",
  // Notes
  notes:
    "The notes by key. A page of a search may have fewer than `per_page` although `next_cursor` continues.",
  text: "The content, at most 16 KiB.",
  if_version:
    "Only if the note has this version; 0: only if there is no note with this key. If left out, any version.",
  bytes: "The number of bytes of the key and the text in UTF-8.",
  prefix: "Only notes whose key begins with this.",

  // Leases
  fencing: "The fencing number of the lease that is meant; any if left out.",

  // Keys
  key: "The key.",

  // Invitations
  invitation_id: "The invitation.",

  // The hub
  cursor: "The id of the last event that the hub examined: the next `since`.",

  // The numbers of the last minutes
  tasks_created: "How many tasks were created.",
  tasks_started: "How often a task was handed out.",
  attempts_failed: "How many attempts ended without a result.",
  tasks_failed: "How many tasks failed permanently, without `tasks_cancelled`.",
  tasks_cancelled: "How many tasks were cancelled, or expired.",
  messages_sent: "How many messages were sent; a broadcast counts once.",
  time_to_start: "The time from when a task became ready until its first dispatch.",
  time_to_finish: "The time from the creation or the `not_before` of a task until its completion.",
  p50_s: "The median in seconds, estimated; null without durations.",
  p95_s: "The 95th percentile in seconds, estimated; null without durations.",

  // Batches
  requests:
    "The requests, which run in this order, each as if sent alone; a request that fails does not stop the others.",
};
