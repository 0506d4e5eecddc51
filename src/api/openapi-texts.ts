/**
 * The texts of the OpenAPI document: when each error occurs, what each resource is, and what each field means. A test
 * compares the errors with docs/errors-and-limits.md, and fails on a field without a text and on a text that no field
 * uses.
 */

/** The description of the whole API, in Markdown. */
export const ABOUT = `Every success of a JSON operation is status 200 and an object with \`"success": true\`. Every error
is a problem (RFC 9457, \`application/problem+json\`) with a stable code in \`error\`.

- The secret goes in the header \`X-Matrix-Secret\`, or in \`Authorization: Bearer\`; some operations also need the administrator key in \`X-Admin-Key\`.
- A POST with an \`Idempotency-Key\` can be repeated and takes effect once.
- In requests, \`null\` in an optional field is the same as leaving it out, the words of an enumeration are read in upper
  and lower case, and unknown fields are ignored: the response names them in \`ignored\`. Later versions may add fields to responses.
- Times are ISO 8601 in UTC. Ids are opaque strings, except the id of an event.
- The hub speaks two variants, A and B. This document describes one of them; a listener of the other variant serves its own.`;

/**
 * The resources. An operation belongs to the first word of its path; signin belongs to lux, and any other operation to
 * the hub.
 */
export const RESOURCES: Readonly<Record<string, string>> = {
  node: "Nodes, the workers: they register, send heartbeats and do tasks.",
  task: "Tasks: created, handed out, completed or failed.",
  message: "The mailboxes of nodes.",
  agent: "The same mailboxes under other paths, and the event stream of a node.",
  lux: "LUX, the reward units: an append-only ledger for each node.",
  file: "Files, streamed both ways and optionally attached to tasks and nodes.",
  key: "Keys, which grant access to the hub. Needs the administrator key.",
  hub: "The hub itself: its state, its event log and this document.",
};

/** Each error code with its status, and when it occurs. */
export const ERRORS = {
  invalid_request: { status: 400, when: "a field is missing or wrong; `errors` lists the bad fields" },
  unauthorized: {
    status: 401,
    when: "the secret is missing or wrong, or its key was revoked or expired",
  },
  admin_key_required: { status: 403, when: "`X-Admin-Key` is missing or wrong" },
  host_not_allowed: { status: 403, when: "the request names a `Host` that `--allowed-host` does not allow" },
  key_bound_to_other_node: {
    status: 403,
    when: "the key is bound to a node, and the request is for another or its tasks",
  },
  key_not_bound: {
    status: 403,
    when: "the hub is `--strict`, and the key is not bound to the requested node",
  },
  not_assigned_to_node: { status: 403, when: "another node holds the task, or has completed it" },
  not_your_message: { status: 403, when: "the message is for another node" },
  viewer_not_allowed: { status: 403, when: "a viewer key cannot change anything or read message contents" },
  not_found: { status: 404, when: "there is no such path" },
  node_not_found: { status: 404, when: "no node is registered with that id" },
  task_not_found: { status: 404, when: "there is no such task" },
  message_not_found: { status: 404, when: "there is no such message, or it was removed after its retention" },
  file_not_found: { status: 404, when: "there is no such file" },
  key_not_found: { status: 404, when: "there is no key of that name" },
  method_not_allowed: { status: 405, when: "the path does not support this method; see the header `Allow`" },
  request_timeout: { status: 408, when: "the body did not arrive in time" },
  task_not_open: { status: 409, when: "the task is assigned to another node" },
  task_not_assigned: { status: 409, when: "the task is assigned to no node" },
  task_completed: { status: 409, when: "the task is completed" },
  task_failed: { status: 409, when: "the task has failed; task/retry opens it again" },
  task_not_failed: { status: 409, when: "only a failed task can be retried" },
  task_not_ready: { status: 409, when: "the task waits for its start time or for other tasks" },
  wrong_offset: { status: 409, when: "the output continues at another offset, which is `expected`" },
  stale_lease: { status: 409, when: "the task was taken back or handed out again since this `epoch`" },
  node_draining: { status: 409, when: "the node is draining and takes no new tasks" },
  node_offline: { status: 409, when: "the node is offline and takes no tasks" },
  message_not_parked: { status: 409, when: "the message is not parked, so it cannot be redriven" },
  nodes_limit: { status: 409, when: "the hub has as many nodes as `--max-nodes` allows" },
  lux_balance_limit: { status: 409, when: "the balance would exceed its maximum" },
  task_files_limit: { status: 409, when: "the task has the maximum number of files" },
  key_exists: { status: 409, when: "a key has, or had, this name" },
  keys_limit: { status: 409, when: "the hub has the maximum number of keys" },
  body_too_large: { status: 413, when: "the body or the file is over its limit" },
  unsupported_media_type: {
    status: 415,
    when: "the body is multipart where JSON is required, or the reverse",
  },
  range_not_satisfiable: { status: 416, when: "the file does not have the requested range" },
  idempotency_key_reused: {
    status: 422,
    when: "the `Idempotency-Key` was used with another body, variant or hub's secret",
  },
  quota_exceeded: {
    status: 429,
    when: "what the keys of the node have stored would exceed its quotas",
  },
  too_many_calls: { status: 429, when: "you have your share of long polls, streams or uploads" },
  too_many_wrong_secrets: {
    status: 429,
    when: "too many wrong secrets from this address; see `Retry-After`",
  },
  client_closed_request: {
    status: 499,
    when: "the client hung up while its call waited; only in the log",
  },
  internal_error: {
    status: 500,
    when: "a fault of the hub or its disk; the log has the cause and the request id",
  },
  content_missing: { status: 500, when: "the bytes of the file are missing" },
  outcome_unknown: {
    status: 500,
    when: "the hub lost the database during the commit: the write may be stored",
  },
  batch_full: { status: 503, when: "in a batch: the previous requests cost too much, so it was not run" },
  database_unavailable: {
    status: 503,
    when: "the hub cannot reach the database; nothing was written",
  },
  overloaded: { status: 503, when: "the hub has reached one of its limits; see `Retry-After`" },
  insufficient_storage: { status: 507, when: "the disk is full; nothing was written" },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly when: string }>>;

export type ErrorCode = keyof typeof ERRORS;

/** What a field means, by its name; if that depends on the record or operation, by its name after theirs. */
export const FIELDS: Readonly<Record<string, string>> = {
  success: "Always true: errors are problems.",

  // Nodes
  node_id: "The id of the node.",
  "node_register.node_id":
    "The id of the node, which it chooses: 1 to 128 characters of `A-Z a-z 0-9 . _ : -`.",
  node: "The node as it is now.",
  nodes: "All nodes.",
  name: "The name that people see.",
  "FileRecord.name": "The last part of the uploaded name.",
  status: "The status of the task. task/retry opens a `failed` task again.",
  "Node.status": "`offline` when its heartbeats stopped or it left.",
  "node_register.status": "The node is online from now on.",
  "node_heartbeat.status": "The node is online.",
  "node_leave.status": "The node is offline.",
  "task_complete.status": "The task is completed.",
  "task_list.status": "Only tasks of this status, in the words of either variant.",
  "status.status": "`degraded` while the hub cannot write.",
  host: "Where people can reach the node: the hub does not use it.",
  port: "Where people can reach the node: the hub does not use it.",
  capabilities: "The task types that the node takes; without any it takes all. Comma-separated, or an array.",
  "Node.capabilities": "The task types that the node takes; empty means all.",
  max_tasks: "The balancer assigns the node no more unfinished tasks than this; null means any number.",
  auto_assign: "Whether the balancer may assign the node tasks.",
  draining: "Whether the node drains: it gets no new tasks.",
  drain: "Whether the node drains: it finishes its tasks and gets no new ones.",
  registered_at: "When the node first registered.",
  last_heartbeat: "The last heartbeat or registration.",
  lux_balance: "The sum of the node's ledger entries.",
  tasks_assigned: "How many unfinished tasks the node has.",
  tasks_completed: "How many tasks the node has completed.",
  created: "False if the node was registered before.",
  heartbeat_interval: "Seconds between two heartbeats.",
  offline_after: "Seconds without a heartbeat after which the node is offline.",
  messages_waiting: "How many messages are in the node's mailbox.",
  tasks_released: "How many tasks the node gave back.",

  "node_list.status": "Only nodes in this state; `online` includes draining nodes.",
  "node_list.q": "Only nodes whose node_id or name begins with this, in upper or lower case.",
  order:
    "`id` (the default); `busy`: most unfinished tasks first, offline nodes last; `lux`: highest balance first.",
  "node_list.capability":
    "Only nodes that take tasks of this type: it is among their capabilities, or they have none.",
  "node_list.cursor":
    "The `next_cursor` of the previous page, with the same filters and order and without `page`.",
  "node_list.total": "How many nodes match; null if they were not counted.",
  "node_list.pages": "How many pages there are; null if they were not counted.",
  "stats_nodes.total": "How many nodes are registered.",
  "stats_nodes.by_status": "How many nodes there are in each state.",
  "stats_nodes.online": "Online nodes, including draining ones.",
  offline: "Nodes that left or whose heartbeats stopped.",
  "stats_nodes.draining": "Online nodes that take no new tasks.",
  "stats_nodes.lux_balance": "The sum of their balances.",

  // Tasks
  task_id: "The id of the task.",
  "Event.task_id": "The task that the event is about.",
  "LedgerEntry.task_id": "The task that paid; null for a daily bonus.",
  "FileRecord.task_id": "The task that the file is attached to.",
  "file_list.task_id": "Only files of this task.",
  "events.task_id": "Only events about this task.",
  "events.node_id": "Only events about this node.",
  "Event.node_id": "The node that the event is about.",
  "FileRecord.node_id": "The node that the file is attached to.",
  "LedgerEntry.node_id": "The node that was paid.",
  "Failure.node_id": "The node that held the task or, if it was cancelled, the node that cancelled it.",
  "task_revoke.node_id": "The node that gets the task; without it the task is open again.",
  "task_cancel.node_id": "The node that cancels the task.",
  "task_list.node_id": "Only tasks that this node holds or completed.",
  "task_list.creator_node": "Only tasks that were created with this `creator_node`.",
  "task_list.task_type": "Only tasks of this type.",
  "task_list.q":
    "Only tasks whose title has, for each of these words, a word that begins with it. One call looks at 10,000 tasks; continue with next_cursor.",
  "task_list.cursor": "The `next_cursor` of the previous page, with the same filters and without `page`.",
  "task_list.total": "How many there are in all; null if they were not counted.",
  "task_list.pages": "How many pages there are; null if they were not counted.",
  next_cursor: "Send it as `cursor` to get the next page; null at the end.",
  task: "The task as it is now.",
  tasks: "The tasks.",
  title: "What to do, in one line.",
  description: "What to do; at most 64 KiB of UTF-8.",
  task_type: "The hub compares it with the capabilities of nodes. A task without a type fits every node.",
  priority:
    "The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or `medium` (the default); 2, `p2` or `low`; `p5` is background work.",
  "Task.priority": "The urgency.",
  creator_node: "The node that created the task; it need not be registered.",
  lux_reward: "LUX for the node that completes the task, with at most 6 decimals.",
  assigned_node: "The node that holds the task, or completed it.",
  result:
    "The result of the work: three strings of at most 64 KiB each, and any additional properties, together at most 64 KiB of JSON.",
  "Task.result": "As the node sent it; null until the task is completed.",
  creator_verified: "Whether the task was created with a key that is bound to its `creator_node`.",
  "task_create.for_node":
    "Assigns the task to this node, which must be online. The task must be ready. If the node gives it back or goes offline, other nodes may take it.",
  "task_wait.task_ids": "The ids of 1 to 100 tasks, comma-separated.",
  "task_wait.until": "`all` (the default) or `any`: which of the tasks must have ended.",
  "task_wait.wait": "Seconds to wait; 0, the default, returns at once.",
  "task_wait.done": "Whether all, or any, of the tasks have ended, as `until` asks.",
  "task_wait.tasks": "The state of each task, in the order of `task_ids`.",
  result_verified: "Whether the result came with a key that is bound to the node that completed the task.",
  problem: "What the problem was.",
  improvement: "What was done about it.",
  lesson: "What was learned.",
  ready: "Whether the task is open and may be handed out now.",
  attempts:
    "Attempts without a result: failures, timeouts, nodes that went offline and, with `max_attempts`, restarts.",
  restarts:
    "How often task/next has handed the task out again with `resume`, because its worker ended. With `max_attempts` each counts as an attempt.",
  max_attempts: "The task fails after this many attempts; by default after 10 failures and timeouts.",
  backoff_s:
    "Seconds from a failed attempt until the task is open again (5 by default); doubles with each attempt, up to an hour.",
  timeout_s: "Seconds that a node may hold the task without task/extend or task/complete.",
  max_run_s: "Seconds that one attempt may take in all, extended or not; then it has timed out.",
  delay_s: "Seconds until the task may be handed out.",
  not_before: "The task is not handed out before this time.",
  expires_at: "If the task is not completed by this time, it fails.",
  "Lease.expires_at":
    "When the hub takes the task back, unless task/extend or task/complete comes first; null without a `timeout_s` and a `max_run_s`. No extend moves it past the end of `max_run_s`.",
  depends_on: "The ids of the tasks that must be completed first.",
  started_at: "When the node started the task.",
  progress: "The last note of the node that holds it.",
  failure: "Why the last attempt, or the task, failed.",
  "Failure.kind":
    "`failed`, `timed_out`, `offline`: why an attempt ended; `cancelled`, `expired`, `dependency`: why the task ended.",
  "Failure.message": "The `error` of the node, or the `reason` of the cancellation.",
  at: "When it happened.",
  files: "The files.",
  ignored:
    "Only if there are any: the first fields of the request that nothing has read, with dots. Such a field may be misspelt.",
  "Task.files": "The ids of the files that are attached to the task, oldest first.",
  "task_create.files":
    "The ids of uploaded files that belong to no task: they become inputs of the task in the same commit.",
  inputs: "Those of `files` that came with the task or were attached by others than the node that holds it.",
  outputs: "Those of `files` that were attached by the node that holds the task, or held it.",
  attached:
    "What the file is for its task: `output` if its node was the `assigned_node` of the task when it was attached, else `input`; null for a file of no task.",
  unmet: "The tasks in `depends_on` that are not completed yet.",
  "TaskDetails.count": "How many they are.",
  "TaskDetails.task_ids": "The ids of the first 20, oldest first.",
  context:
    "What other tasks and earlier attempts leave for the worker of the task; absent if there is nothing.",
  "task_get.context": "`1`: the response also has the `context` of the task.",
  "Context.inputs":
    "The tasks in `depends_on`, in that order. Their results have at most 256 KiB together; task/<task_id>/inputs has all of them.",
  "Context.failures": "The last 5 attempts that failed, oldest first.",
  "task_inputs.inputs": "The tasks in `depends_on`, in that order.",
  "task_inputs.cursor": "The `next_cursor` of the page before.",
  "TaskInput.task_id": "The task that must be completed first.",
  "TaskInput.title": "Null if the task was deleted.",
  "TaskInput.status": "Null if the task was deleted.",
  "TaskInput.result": "Null if the task has none, or `omitted` is true.",
  omitted: "True if the result or some of the files were left out, because there was no room for them.",
  checkpoint: "What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last one counts.",
  "Checkpoint.data": "As the worker sent it.",
  "Checkpoint.epoch": "The epoch of the lease in which it was sent.",
  "Checkpoint.node_id": "The node that sent it.",
  "task_output.offset":
    "The offset of the first byte of `data` in the output of this attempt, in bytes of UTF-8. A repeat of what was sent changes nothing.",
  "task_output.data": "1 to 65,536 bytes of text, without NUL.",
  "task_output.attempt": "The attempt: the epoch of the lease.",
  "task_output.next_offset": "Where the next piece begins.",
  "task_output_get.attempt":
    "The attempt: the epoch of its lease. In a query the newest that has output if left out, and the next one that has output if this one has none; null if there is none.",
  "task_output_get.from": "The offset to read from: 0 if left out.",
  "task_output_get.offset": "The offset of the first byte of `data`.",
  "task_output_get.wait": "Seconds to wait until there is more, or the attempt or the task has ended.",
  "task_output_get.data": "The text from `offset` on: at most 256 KiB, and up to what is no longer kept.",
  "task_output_get.next_offset": "The offset to read from next.",
  "task_output_get.dropped": "Bytes between `from` and `offset`: they are no longer kept.",
  "task_output_get.ended":
    "Whether this attempt sends no more; without an attempt: whether the task is finished.",
  "task_output_get.attempts": "The attempts whose output is kept, oldest first.",
  "OutputAttempt.attempt": "The epoch of the lease.",
  "OutputAttempt.node_id": "The node that sent it.",
  "OutputAttempt.size": "The bytes that were sent, kept or not.",
  "OutputAttempt.begun_at": "When the first output came.",
  "OutputAttempt.updated_at": "When the last output came.",
  "task_output_stream.attempt": "The attempt to begin with: the newest that has output if left out.",
  "task_output_stream.from": "The offset to begin at: 0 if left out.",
  "task_output_stream.Last-Event-ID":
    "The `id` of the last event: the offset after it, a dot, and the attempt.",
  keep_checkpoint: "False: the checkpoint of earlier attempts is removed. True if left out.",
  with_dependents:
    "Opens again, in the same commit, also what failed only because of this task: up to 1,000 tasks, the oldest first. A task that is not failed any more stays as it is.",
  dependents: "Only with `with_dependents`.",
  opened: "How many dependents were opened again.",
  left: "How many are left, at most 100,000: repeat the call for the next ones.",
  created_at: "When the task was created.",
  updated_at: "When the task last changed.",
  lease: "The node's hold on the task.",
  epoch: "The epoch of the lease: any but the current one returns 409 `stale_lease`.",
  "Lease.epoch":
    "The fencing token: counts the dispatches of the task and its returns to open. Send it with complete, fail, release and extend.",
  reason: "The reason, which the event shows.",
  "task_fail.error": "What went wrong.",
  retry: "Whether the task may be tried again.",
  note: "The progress of the work; the task shows it as `progress`.",
  lux_paid: "LUX that the task paid.",
  assignments: "The tasks and the nodes that get them.",
  results: "The result of each assignment, in the same order.",
  "task_batch_assign.success": "Whether this request, or this assignment, succeeded.",
  "task_batch_assign.error": "The code of the error; null if it succeeded.",
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
  "task_stats.lux_earned": "LUX that the node earned with completed tasks.",
  wait: "Seconds to wait until the task is completed or has failed.",

  "task_next.wait": "Seconds to wait for a task; 0, the default, returns at once.",
  task_types:
    "Only open tasks of these types; tasks that are already assigned to the node are handed out whatever their type.",
  resume:
    "Whether to hand out first, again and with a new epoch, the tasks that the node had started and not finished. Each time counts in `restarts` and, if the task has `max_attempts`, as an attempt.",
  "task_next.task": "The handed-out task; null if there was none within `wait`.",
  "task_next.lease": "The node's hold on it; null without a task.",
  "task_next.drain": "Whether the node drains: it gets no new tasks.",

  // Lists
  page: "The number of the page, from 1.",
  per_page: "Rows on a page; above 50 is read as 50.",
  pages: "How many pages there are.",
  limit: "How many to return at most.",
  count: "How many to return at most.",

  // Messages
  id: "The id of the message: `message_id` in the response to the send, and in the ACK.",
  "Event.id": "Increases with each commit.",
  "LedgerEntry.id": "The id of the entry.",
  message_id: "The id of the message.",
  from_node: "The sender; it need not be registered.",
  to_node: "The recipient.",
  "Message.to_node": "The recipient; null for a broadcast.",
  content: "The message itself; at most 256 KiB of UTF-8.",
  type: "The kind of message.",
  require_ack:
    "Whether the recipient must confirm the message; until then the hub delivers it again, up to 5 times.",
  reply_to: "The id of the message that this one answers; the sender must have sent or received it.",
  "Message.reply_to": "The id of the message that this one answers; null if it answers none.",
  thread:
    "The conversation: the id of its first message, or a name that the sender gives. A reply continues the conversation of the message that it answers.",
  "message_history.thread": "Only messages of this conversation, among its newest 2,000.",
  "message_broadcast.capability":
    "Only to nodes that take tasks of this type: it is among their capabilities, or they have none.",
  "agent_broadcast.capability":
    "Only to nodes that take tasks of this type: it is among their capabilities, or they have none.",
  verified: "Whether the message came with a key that is bound to its sender.",
  "Event.verified":
    "Whether the request came with a key that is bound to the acting node: `node_id`, or of `message.sent` the sender.",
  sent_at: "When the message was sent.",
  transport: "The transport of messages: `sqlite`, `postgresql` or `redis`.",
  receivers: "The recipients of the broadcast.",
  blocking: "Whether to wait for the first message.",
  timeout: "Seconds to wait.",
  messages: "The messages.",
  redelivered: "Whether it was delivered before.",
  deliveries: "How often it was delivered.",
  state: "The delivery status: `waiting`, `delivered`, `acked` or `parked`.",
  recipients:
    "The recipients of a broadcast that the node sent, counted by state; null for every other message.",
  waiting: "How many have not received it yet.",
  delivered: "How many have received it.",
  acked: "How many have confirmed it.",
  parked: "How many never confirmed it.",
  before: "The id of a message: only those before it.",
  since: "The id of a message: only those after it.",

  // LUX
  lux_earned: "LUX that this call paid.",
  already_signed_in: "Whether the node had already signed in on this day (UTC).",
  next_signin_at: "The next midnight in UTC.",
  entries: "The entries.",
  amount: "LUX, exact to 6 decimals.",
  "LedgerEntry.kind": "`reward` of a task, or `signin`.",

  // Files
  file_id: "The id of the file.",
  size: "Bytes.",
  "FileRecord.verified": "Whether the file was uploaded with a key that is bound to its node.",
  sha256: "SHA-256 of the bytes, in hexadecimal digits.",
  content_type: "As uploaded; `application/octet-stream` if that was invalid.",
  metadata: "As uploaded, numbers included; empty if there was none.",
  "file_upload.metadata": "Any JSON object. Its `task_id` and `node` attach the file to a task and a node.",
  uploaded_at: "When the file was uploaded.",
  url: "The path for its download.",
  "file_download_url.url": "A path that downloads the file without a secret until `expires_at`.",
  "file_upload_url.url":
    "A path that takes one file without a secret until `expires_at`, as multipart form data.",
  "file_upload_url.node_id": "The node of the file; with a key that is bound to a node, that node.",
  "file_upload_url.task_id": "The task that the file is attached to.",
  method: "The method of the request that the URL is for.",
  "file_download_url.expires_at": "When the URL ends.",
  "file_upload_url.expires_at": "When the URL ends.",
  "file_list.cursor": "The `next_cursor` of the previous page, with the same filter and without `page`.",
  "file_download.Range": "A range of bytes.",
  "file_download.If-Range":
    "The ETag of the file for which the range is meant; the whole file if it differs.",
  "file_download.If-None-Match": "The ETag of the file that the caller has.",
  "file_download.If-Modified-Since": "When the caller got the file that it has.",

  // Keys
  keys: "All keys, including the two of the first start.",
  key: "The key.",
  "Key.name": "The name of the key.",
  "key_add.name": "A name that no key has or had.",
  "key_revoke.name": "The name of the key.",
  role: "What the key may do; `full` if left out. A viewer can read all but message contents; `admin` is for `X-Admin-Key`.",
  "Key.role":
    "What the key may do. A viewer can read all but message contents; `admin` is for `X-Admin-Key`.",
  "Key.state": "Whether the key is `valid`, `expired` or `revoked`.",
  "Key.variant": "The variant of the responses to its requests; null: that of the listener.",
  "key_add.variant": "The variant of the responses to its requests, on any listener.",
  "Key.node_id": "The node that the key is bound to: it acts only for this node.",
  "key_add.node_id": "The node that the key is bound to: it acts only for this node.",
  "Key.created_at": "When it was made; null for the keys of the first start.",
  "Key.expires_at": "When it ends; null: never.",
  "key_add.expires_at": "When it ends; at most ten years ahead.",
  expires_in_s: "Seconds until it ends, instead of `expires_at`.",
  "Key.revoked_at": "When it was revoked.",
  "Key.used":
    "What counts against the quotas of its node. Only in key/list, for a key of the role `full` that is bound to a node.",
  "Key.tasks": "Unfinished tasks that the node's keys created.",
  "Key.bytes": "Bytes that the node's keys have stored.",
  secret: "The secret of the new key; the hub does not store it and cannot show it again.",

  // The hub
  kind: "The kind of event.",
  "events.kind": "Only events of this kind, or of several, comma-separated.",
  "events_stream.kind": "Only events of this kind, or of several, comma-separated.",
  "events_stream.task_id": "Only events about this task.",
  "events_stream.node_id": "Only events about this node.",
  "events_stream.since":
    "The id of the last event read, if no `Last-Event-ID` is sent; 0: from the beginning; without it, only new events.",
  "events_stream.Last-Event-ID": "The id of the last event read; it overrides `since`.",
  "events.since": "The id of the last event read; 0: from the beginning; without it, the newest events.",
  "poll.since": "The id of the last event read; without it, only new events.",
  "agent_sse.Last-Event-ID": "The id of the last event read; without it, only new events.",
  events: "The events, oldest first.",
  cursor: "The id of the last event that the hub examined: the next `since`.",
  data: "Further fields, which depend on the kind.",
  version: "The version of the variant.",
  uptime: "Seconds since the hub started.",
  nodes_count: "How many nodes are registered.",
  tasks_count: "How many tasks there are.",
  software: "The program and its version.",
  variant: "The variant of the response.",

  // The numbers of the last minutes
  last: "How many minutes, including the current one; 60 if left out.",
  minutes: "The minutes, oldest first.",
  "Minute.at": "When the minute begins.",
  "stats_minutes.total": "The sum of these minutes.",
  tasks_created: "How many tasks were created.",
  tasks_started: "How often a task was handed out.",
  "MinutesTotal.tasks_completed": "How many tasks were completed.",
  attempts_failed: "How many attempts ended without a result.",
  tasks_failed: "How many tasks failed permanently.",
  "MinutesTotal.lux_paid": "LUX paid, including sign-ins.",
  messages_sent: "How many messages were sent; a broadcast is one.",
  time_to_start: "The time to start: from when a task became ready until it was first handed out.",
  time_to_finish: "The time from when a task could be handed out to its completion.",
  "Durations.count": "How many durations.",
  sum_s: "Their sum, in seconds.",
  p50_s: "The median in seconds, estimated; null without durations.",
  p95_s: "The 95th percentile in seconds, estimated; null without durations.",

  // Batches
  requests:
    "The requests, which run in this order, each as if sent alone; one that fails does not stop the others.",
  "batch.path": "The path of a POST of JSON without `/api/v1/`, such as `task/claim`.",
  "batch.body": "The body of the request.",
  answers: "The responses, in the order of the requests.",
  "batch.status": "The status of the response, as if the request had been sent alone.",
  engine: "The engine of the store: `sqlite` or `postgresql`.",
  connected: "Whether the store responds.",
  latency_ms: "The duration of a read, in milliseconds.",
  engine_version: "The version of the store's engine.",
  size_bytes: "How large the database is.",
  migration: "The version of the schema.",
  queued: "Writes that wait for their commit.",
  details: "What else the engine reports.",
};
