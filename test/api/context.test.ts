/**
 * The context of a task: what task/next, task/claim and task/<id>?context=1 tell a worker of other tasks and of earlier
 * attempts. context-files.test.ts has what is large.
 */
import { CHECKPOINT_MAX_BYTES, FAILED_ATTEMPTS_KEPT } from "../../src/domain/limits.ts";
import { transcripts } from "../support/transcript.ts";

const most = "x".repeat(CHECKPOINT_MAX_BYTES - 2);
const context = "GET task/$t?context=1";

transcripts(`
-- a task that depends on nothing has no inputs; those of an unknown task are 404
  nodes n1
  t = task/create
  GET task/$t/inputs -> {inputs: [], total: 0, next_cursor: null}
  task/claim $t n1 -> context absent
  ${context} -> context absent
  GET task/none/inputs -> 404 task_not_found
  GET task/$t/inputs?cursor=x&limit=101 -> 400 cursor limit

== a checkpoint sent with extend, fail or release reaches the next worker; the last one counts
  nodes n1
  t = task/create {backoff_s: 0, timeout_s: 60}
  task/claim $t n1
  task/extend $t n1 {checkpoint: {page: 1}}
  ${context} -> context.checkpoint {data: {page: 1}, epoch: 1, node_id: n1}
  task/extend $t n1 {note: "without one"}
  task/release $t n1 {checkpoint: [2]}
  task/claim $t n1 -> context.checkpoint {data: [2], epoch: 1}
  task/fail $t n1 {checkpoint: three}
  task/next n1 -> context.checkpoint {data: three, epoch: 3, node_id: n1}
  -> context.failures [{kind: failed, message: e, node_id: n1}]
  task/complete $t n1
  ${context} -> context.checkpoint absent

-- a checkpoint is kept by a retry, unless that says otherwise, and goes with the task
  nodes n1
  t = task/create
  task/claim $t n1; task/fail $t n1 {retry: false, checkpoint: 1};
  task/retry $t {keep_checkpoint: <true|false>}; ${context} -> context.checkpoint <{data: 1}|absent>
  task/claim $t n1
  task/fail $t n1 {retry: false, checkpoint: 1}
  admin task/delete $t

-- a checkpoint of a worker that has lost the task changes nothing
  nodes n1
  t = task/create {backoff_s: 0}
  task/<claim|release|claim> $t n1
  task/<extend|fail|release> $t n1 {epoch: 1, checkpoint: late} -> 409 stale_lease
  ${context} -> context.checkpoint absent

-- a checkpoint is at most 64 KiB of JSON, not too deep
  nodes n1
  t = task/create
  task/claim $t n1
  task/extend $t n1 {checkpoint: ${most}}
  task/extend $t n1 {checkpoint: ${most}x} -> 400 checkpoint
  task/release $t n1 {checkpoint: ${"[".repeat(65)}1${"]".repeat(65)}} -> 400 checkpoint
  ${context} -> context.checkpoint.data ${most}

== failures are the last five attempts, oldest first, also after a retry
  nodes n1
  t = task/create {backoff_s: 0, max_attempts: 7}
  task/claim $t n1; task/fail $t n1 {error: e<1|2|3|4|5|6|7>}
  task/retry $t
  task/claim $t n1 -> context.failures.message [e3, e4, e5, e6, e7]
  -> context.failures #${FAILED_ATTEMPTS_KEPT}

-- failures are only attempts: a cancelled task shows them when it is retried
  nodes n1
  t = task/create {backoff_s: 0}
  task/claim $t n1
  task/fail $t n1 {error: e1}
  task/cancel $t
  task/retry $t
  task/claim $t n1 -> context.failures [{kind: failed, message: e1}]

-- a dispatch in a batch has no context
  nodes n1
  first = task/create
  task/<claim|complete> $first n1
  task/create {depends_on: [$first]}
  batch {requests: [{path: task/next, body: {node_id: n1}}]} -> answers.0.body {task: *, context: absent}
`);
