/**
 * The texts of the OpenAPI document: when each error comes, what each resource is, and what each field means. A test
 * compares the errors with docs/errors-and-limits.md, and fails on a field without a text and on a text that no field
 * uses.
 */

/** What the document says of the whole API. Markdown. */
export const ABOUT = `Every success of a JSON operation is status 200 and an object with \`"success": true\`. Every error
is a problem (RFC 9457, \`application/problem+json\`) with a stable code in \`error\`.

- The secret goes in the header \`X-Matrix-Secret\`; some operations also need the administrator key in \`X-Admin-Key\`.
- A POST with an \`Idempotency-Key\` can be repeated without being done twice.
- In requests, \`null\` in an optional field is the same as leaving it out, the words of an enumeration are read in upper
  and lower case, and unknown fields are ignored. Answers may get further fields in later versions.
- Times are ISO 8601 in UTC. Ids are opaque strings, except the id of an event.
- The hub speaks two variants, A and B. This document describes one of them; a listener of the other answers its own.`;

/** The resources: the first word of the path, except that signin is of lux, and what has no resource is of the hub. */
export const RESOURCES: Readonly<Record<string, string>> = {
  node: "The workers: they register, send heartbeats and hold tasks.",
  task: "The work: created, handed out, completed or failed.",
  message: "The mailboxes of nodes.",
  agent: "The same mailboxes by other names, and the event stream of a node.",
  lux: "LUX, the reward units: an append-only ledger for each node.",
  file: "Files, streamed both ways, which may be attached to tasks and nodes.",
  key: "The keys: who may call the hub. Needs the administrator key.",
  hub: "The hub itself: its state, its event log and this document.",
};

/** Each code, its status, and when it comes. */
export const ERRORS = {
  invalid_request: { status: 400, when: "a field is missing or wrong; `errors` lists the bad fields" },
  unauthorized: {
    status: 401,
    when: "`X-Matrix-Secret` is missing or wrong, or its key was revoked meanwhile",
  },
  admin_key_required: { status: 403, when: "`X-Admin-Key` is missing or wrong" },
  host_not_allowed: { status: 403, when: "the request names a `Host` that `--allowed-host` does not allow" },
  key_bound_to_other_node: {
    status: 403,
    when: "the key acts for one node only, and the request for another or its tasks",
  },
  not_assigned_to_node: { status: 403, when: "another node holds the task, or has completed it" },
  not_your_message: { status: 403, when: "the message is for another node" },
  viewer_not_allowed: { status: 403, when: "the key only reads, and no contents of messages" },
  not_found: { status: 404, when: "there is no such path" },
  node_not_found: { status: 404, when: "no node is registered with that id" },
  task_not_found: { status: 404, when: "there is no such task" },
  message_not_found: { status: 404, when: "there is no such message, or it is no longer kept" },
  file_not_found: { status: 404, when: "there is no such file" },
  key_not_found: { status: 404, when: "there is no key of that name" },
  method_not_allowed: { status: 405, when: "the path has other methods; the header `Allow` names them" },
  request_timeout: { status: 408, when: "the body did not arrive in time" },
  task_not_open: { status: 409, when: "the task is assigned to another node" },
  task_not_assigned: { status: 409, when: "the task is assigned to no node" },
  task_completed: { status: 409, when: "the task is completed" },
  task_failed: { status: 409, when: "the task has failed; task/retry opens it again" },
  task_not_failed: { status: 409, when: "only a failed task can be retried" },
  task_not_ready: { status: 409, when: "the task waits for its time or for other tasks" },
  stale_lease: { status: 409, when: "the task was taken back or handed out again since this `epoch`" },
  node_draining: { status: 409, when: "the node is draining and cannot be given a task" },
  node_offline: { status: 409, when: "the node is offline and cannot be given a task" },
  message_not_parked: { status: 409, when: "the message is not parked, so it cannot be redriven" },
  nodes_limit: { status: 409, when: "the hub has as many nodes as `--max-nodes` allows" },
  lux_balance_limit: { status: 409, when: "the balance would exceed what the store can count" },
  task_files_limit: { status: 409, when: "the task has as many files as it may have" },
  key_exists: { status: 409, when: "there is, or was, a key of that name" },
  keys_limit: { status: 409, when: "the hub has as many keys as it may have" },
  body_too_large: { status: 413, when: "the body or the file is over its limit" },
  unsupported_media_type: { status: 415, when: "multipart where JSON is required, or the other way round" },
  range_not_satisfiable: { status: 416, when: "the file does not have the requested range" },
  idempotency_key_reused: {
    status: 422,
    when: "the `Idempotency-Key` was used with another body, or in the other variant",
  },
  too_many_calls: { status: 429, when: "you have as many calls waiting or uploads running as you may" },
  too_many_wrong_secrets: {
    status: 429,
    when: "too many wrong secrets from this address; see `Retry-After`",
  },
  client_closed_request: {
    status: 499,
    when: "the client hung up while its call waited; only the log shows it",
  },
  internal_error: {
    status: 500,
    when: "a fault of the hub or its disk; its log has the cause under the request id",
  },
  content_missing: { status: 500, when: "the record of the file exists, its bytes do not" },
  outcome_unknown: {
    status: 500,
    when: "the database was lost during the commit: the write may be done or not",
  },
  database_unavailable: {
    status: 503,
    when: "the database cannot be reached; nothing was written; see `Retry-After`",
  },
  batch_full: { status: 503, when: "in a batch: the answers before it are large, and it was not done" },
  overloaded: { status: 503, when: "a limit of the hub is reached; see `Retry-After`" },
  insufficient_storage: { status: 507, when: "the disk is full; nothing was written" },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly when: string }>>;

export type ErrorCode = keyof typeof ERRORS;

/** What a field means: by its name, or by the record or operation that has it and its name where that differs. */
export const FIELDS: Readonly<Record<string, string>> = {
  success: "Always true: errors are problems.",

  // Nodes
  node_id: "The id of the node: 1 to 128 characters of `A-Z a-z 0-9 . _ : -`.",
  "node_register.node_id":
    "The id of the node, of its own choice: 1 to 128 characters of `A-Z a-z 0-9 . _ : -`.",
  node: "The node as it is now.",
  nodes: "All nodes.",
  name: "The name that people see.",
  "FileRecord.name": "The last part of the uploaded name.",
  status: "The status of the task. `failed` tasks are opened again by task/retry.",
  "Node.status": "`offline` when its heartbeats stopped or it left.",
  "node_register.status": "The node is online from now on.",
  "node_heartbeat.status": "The node is online.",
  "node_leave.status": "The node is offline.",
  "task_complete.status": "The task is completed.",
  "task_list.status": "Only tasks of this status, in the words of either variant.",
  "status.status": "`degraded` while the hub cannot write.",
  host: "Where the node can be reached, for people: the hub does not use it.",
  port: "Where the node can be reached, for people: the hub does not use it.",
  capabilities: "The task types that the node takes; none is all. Comma-separated, or an array.",
  "Node.capabilities": "The task types that the node takes; empty is all.",
  max_tasks: "How many unfinished tasks the balancer may give the node; none is any number.",
  auto_assign: "Whether the balancer may give the node tasks.",
  draining: "The node gets nothing new.",
  drain: "Whether the node drains: it finishes what it has and gets nothing new.",
  registered_at: "When the node first registered.",
  last_heartbeat: "The last heartbeat or registration.",
  lux_balance: "The sum of the node's ledger entries.",
  tasks_assigned: "How many unfinished tasks the node has.",
  tasks_completed: "How many tasks the node has completed.",
  created: "False if the node was registered before.",
  heartbeat_interval: "Seconds between two heartbeats.",
  offline_after: "After so many seconds without a heartbeat the node is offline.",
  messages_waiting: "How many messages are in the node's mailbox.",
  tasks_released: "How many tasks the node gave back.",

  // Tasks
  task_id: "The id of the task.",
  "Event.task_id": "The task that the event is about.",
  "LedgerEntry.task_id": "The task that paid; null for a sign-in.",
  "FileRecord.task_id": "The task that the file is attached to.",
  "events.task_id": "Only events about this task.",
  "events.node_id": "Only events about this node.",
  "Event.node_id": "The node that the event is about.",
  "FileRecord.node_id": "The node that the file is attached to.",
  "LedgerEntry.node_id": "The node that was paid.",
  "Failure.node_id": "The node that held the task; of a cancelled one, the node that cancelled it.",
  "task_revoke.node_id": "The node that gets the task; without it the task is open again.",
  "task_cancel.node_id": "The node that wants it.",
  "task_list.node_id": "Only tasks that this node holds or completed.",
  task: "The task as it is now.",
  tasks: "The tasks.",
  title: "What is to be done, in one line.",
  description: "What is to be done; at most 64 KiB of UTF-8.",
  task_type: "Compared with the capabilities of nodes; none fits every node.",
  priority:
    "The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or `medium` (the default); 2, `p2` or `low`; `p5` is background work.",
  "Task.priority": "The urgency.",
  creator_node: "The node that created the task; it need not be registered.",
  lux_reward: "LUX for the node that completes the task, with at most 6 decimals.",
  assigned_node: "The node that holds the task, or completed it.",
  result:
    "What came of the work: three texts of at most 64 KiB each, and any further keys, together at most 64 KiB of JSON.",
  "Task.result": "As the node sent it; null until the task is completed.",
  problem: "What the problem was.",
  improvement: "What was done about it.",
  lesson: "What was learned.",
  ready: "The task is open and may be handed out now.",
  attempts: "Attempts without a result: failures, timeouts, and nodes that went offline with it.",
  max_attempts: "The task has failed after so many attempts. Without it: after 10 failures and timeouts.",
  backoff_s:
    "Seconds until a task that failed is open again (5 by default); doubled with each further attempt, at most an hour.",
  timeout_s: "Seconds that a node may hold the task without task/extend or task/complete.",
  delay_s: "Seconds until the task may be handed out.",
  not_before: "The task is not handed out before.",
  expires_at: "A task that is not completed by then has failed.",
  "Lease.expires_at":
    "Without task/extend or task/complete the task is taken back then; null without a `timeout_s`.",
  depends_on: "The ids of the tasks that must be completed first.",
  started_at: "When the node began with it.",
  progress: "The last note of the node that holds it.",
  failure: "Why the last attempt ended, or the task.",
  "Failure.kind":
    "`failed`, `timed_out`, `offline`: an attempt ended so; `cancelled`, `expired`, `dependency`: the task did.",
  "Failure.message": "What the node, or the one who cancelled it, said.",
  at: "When it happened.",
  files: "The files.",
  "Task.files": "The ids of the files that are attached to the task.",
  created_at: "When the task was created.",
  updated_at: "When the task last changed.",
  lease: "The node's hold on the task.",
  epoch: "The epoch of the lease, as it was answered: any but the current one is refused with `stale_lease`.",
  "Lease.epoch":
    "Counts the hand-outs of the task and its returns to open (a fencing token). Send it with complete, fail, release and extend.",
  reason: "Why; it is shown in the event.",
  "task_fail.error": "What went wrong.",
  retry: "Whether the task may be tried again.",
  note: "How far the work is; the task shows it as `progress`.",
  lux_paid: "LUX that the task paid.",
  assignments: "The tasks and the nodes that get them.",
  results: "What became of each assignment, in the same order.",
  "task_batch_assign.success": "Whether this request, or this assignment, succeeded.",
  "task_batch_assign.error": "The code of the refusal; null if it succeeded.",
  assigned: "How many tasks were assigned.",
  pending: "How many open tasks are left.",
  total: "How many there are in all.",
  by_status: "How many tasks there are of each status.",
  top_nodes: "The nodes that completed most, at most 10.",
  "task_stats.open": "How many tasks are open.",
  "task_stats.assigned": "How many tasks are assigned.",
  "task_stats.pending": "How many tasks are open or assigned.",
  "task_stats.failed": "How many tasks have failed.",
  "task_stats.completed": "How many tasks are completed; in `top_nodes`, by this node.",
  "task_stats.lux_earned": "LUX that the node earned with them.",
  wait: "Seconds to wait until the task is completed or has failed.",

  // Lists
  page: "The number of the page, from 1.",
  per_page: "Rows on a page; above 50 is read as 50.",
  pages: "How many pages there are.",
  limit: "How many to answer at most.",
  count: "How many to answer at most.",

  // Messages
  id: "The id of the message: the `message_id` of sending and of the ACK.",
  "Event.id": "Increases with each commit.",
  "LedgerEntry.id": "The id of the entry.",
  message_id: "The id of the message.",
  from_node: "The sender; it need not be registered.",
  to_node: "The recipient.",
  "Message.to_node": "The recipient; null for a broadcast.",
  content: "The message itself; at most 256 KiB of UTF-8.",
  type: "The kind of message.",
  require_ack:
    "Whether the recipient must confirm the message; it is delivered again until then, at most 5 times.",
  sent_at: "When the message was sent.",
  transport: "What carries messages.",
  receivers: "The nodes that it was sent to.",
  blocking: "Whether to wait for the first message.",
  timeout: "Seconds to wait.",
  messages: "The messages.",
  redelivered: "Whether it was delivered before.",
  deliveries: "How often it was delivered.",
  state: "What became of it.",
  recipients:
    "The recipients of a broadcast that the node sent, counted by state; null for every other message.",
  waiting: "They have not taken it yet.",
  delivered: "They have taken it.",
  acked: "They have confirmed it.",
  parked: "They never confirmed it.",
  before: "The id of a message: only those before it.",
  since: "The id of a message: only those after it.",

  // LUX
  lux_earned: "LUX that this sign-in paid.",
  already_signed_in: "The node had signed in on this day (UTC) before.",
  next_signin_at: "The next midnight in UTC.",
  entries: "The entries.",
  amount: "LUX, exact to 6 decimals.",
  "LedgerEntry.kind": "`reward` of a task, or `signin`.",

  // Files
  file_id: "The id of the file.",
  size: "Bytes.",
  sha256: "Of the bytes, in hexadecimal digits.",
  content_type: "As uploaded; `application/octet-stream` if it was none.",
  metadata: "As uploaded, digit for digit; empty if there was none.",
  "file_upload.metadata": "Any JSON object. Its `task_id` and `node` attach the file to a task and a node.",
  uploaded_at: "When the file was uploaded.",
  url: "The path of its download.",
  "file_download.Range": "A range of bytes.",
  "file_download.If-Range": "The range only if the file is still this one, else the whole file.",
  "file_download.If-None-Match": "The ETag of the file that the caller has.",
  "file_download.If-Modified-Since": "When the caller got the file that it has.",

  // Keys
  keys: "All keys, the two of the first start too.",
  key: "The key.",
  "Key.name": "The name of the key, chosen by who made it.",
  "key_add.name": "A name that no other key has or had.",
  "key_revoke.name": "The name of the key.",
  role: "What the key may do; `full` if left out. A viewer only reads, and no contents of messages; `admin` is for `X-Admin-Key`.",
  "Key.role":
    "What the key may do. A viewer only reads, and no contents of messages; `admin` is for `X-Admin-Key`.",
  "Key.state": "Whether it is still good.",
  "Key.variant": "The variant in which its requests are answered; null: that of the listener.",
  "key_add.variant": "The variant in which its requests are answered, on any listener.",
  "Key.node_id": "The node for which alone it acts.",
  "key_add.node_id": "The node for which alone it acts.",
  "Key.created_at": "When it was made; null for the keys of the first start.",
  "Key.expires_at": "When it ends; null: never.",
  "key_add.expires_at": "When it ends; at most ten years ahead.",
  expires_in_s: "Seconds until it ends, instead of `expires_at`.",
  "Key.revoked_at": "When it was revoked.",
  secret: "The secret of the new key; it is not kept, and cannot be shown again.",

  // The hub
  kind: "The kind of event.",
  "events.kind": "Only events of this kind.",
  "events.since": "The id of the last event that was read; 0 is the beginning, none the newest events.",
  "poll.since": "The id of the last event that was read; without it, only what comes from now on.",
  "agent_sse.Last-Event-ID":
    "The id of the last event that was read; without it, only what comes from now on.",
  events: "The events, oldest first.",
  cursor: "The id of the last event that was looked at: the next `since`.",
  data: "More about the event; depends on the kind.",
  version: "The version of the variant.",
  uptime: "Seconds since the hub started.",
  nodes_count: "How many nodes are registered.",
  tasks_count: "How many tasks there are.",
  software: "The program and its version.",
  variant: "The variant that answers.",

  // Batches
  requests: "Done in this order, each as if it had come alone; a refusal stops nothing.",
  "batch.path": "The path of a POST of JSON without `/api/v1/`, such as `task/claim`.",
  "batch.body": "Its body.",
  answers: "In the order of the requests.",
  "batch.status": "The status that the request alone would have been answered with.",
  engine: "What stores the hub's data.",
  connected: "Whether the store answers.",
  latency_ms: "Milliseconds of a read.",
  engine_version: "The version of the store's engine.",
  size_bytes: "How large the database is.",
  migration: "The number of the schema.",
  queued: "Writes that wait for their commit.",
  details: "What else the engine reports.",
};
