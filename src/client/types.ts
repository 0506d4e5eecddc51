/**
 * The records, requests and answers of the API. Generated from the declarations of the endpoints by
 * `bun run client-types`: do not edit. `V` is the variant in which the hub answers.
 */
export type Variant = "A" | "B";

/** What differs between the variants. */
export type By<V extends Variant, OfA, OfB> = V extends "A" ? OfA : OfB;

export type EventKind =
  | "node.joined"
  | "node.registered"
  | "node.updated"
  | "node.online"
  | "node.offline"
  | "node.draining"
  | "node.left"
  | "node.deleted"
  | "task.created"
  | "task.assigned"
  | "task.stuck"
  | "task.requeued"
  | "task.revoked"
  | "task.released"
  | "task.progress"
  | "task.asked"
  | "task.answered"
  | "task.question_timed_out"
  | "task.attempt_failed"
  | "task.timed_out"
  | "task.failed"
  | "task.retried"
  | "task.updated"
  | "task.completed"
  | "task.review_requested"
  | "task.review_passed"
  | "task.review_rejected"
  | "task.deleted"
  | "group.ended"
  | "schedule.saved"
  | "schedule.skipped"
  | "schedule.deleted"
  | "webhook.saved"
  | "webhook.deleted"
  | "webhook.suspended"
  | "webhook.resumed"
  | "budget.set"
  | "budget.deleted"
  | "hub.paused"
  | "hub.resumed"
  | "limit.set"
  | "limit.held"
  | "limit.deleted"
  | "budget.warning"
  | "budget.exceeded"
  | "usage.capped"
  | "usage.voided"
  | "lux.paid"
  | "lux.signin"
  | "message.sent"
  | "message.acked"
  | "message.parked"
  | "message.expired"
  | "file.uploaded"
  | "file.deleted"
  | "note.changed"
  | "note.deleted"
  | "hub.started"
  | "hub.promoted"
  | "standby.following"
  | "standby.lost"
  | "transport.changed";

export type ErrorCode = Problem["error"];

export interface Lease {
  /**
   * The fencing token: counts the dispatches of the task and its returns to open. Send the epoch with
   * complete, fail, release and extend.
   */
  epoch: number;
  /**
   * When the hub takes the task back, unless task/extend or task/complete comes first; null without a
   * `timeout_s` and a `max_run_s`. No extend moves this time past the end of `max_run_s`.
   */
  expires_at: string | null;
}

export interface Failure {
  /**
   * `failed`, `stalled`, `timed_out`, `offline`, `rejected`: why an attempt ended; `cancelled`,
   * `expired`, `dependency`, `budget`, `no_quorum`: why the task ended.
   */
  kind:
    | "failed"
    | "stalled"
    | "timed_out"
    | "offline"
    | "cancelled"
    | "expired"
    | "dependency"
    | "budget"
    | "rejected"
    | "no_quorum";
  /** The `error` of the node, or the `reason` of the cancellation. */
  message: string | null;
  /** The node that held the task or, if the task was cancelled, the node that cancelled it. */
  node_id: string | null;
  /** The time. */
  at: string;
}

export interface TaskResult {
  /** What the problem was. */
  problem: string;
  /** What was done about it. */
  improvement: string;
  /** What was learned. */
  lesson: string;
  [key: string]: unknown;
}

export interface Spending {
  /** Tokens that the model read. */
  input_tokens: number;
  /** Tokens that the model wrote. */
  output_tokens: number;
  /** How many of the input tokens came from a cache. */
  cached_tokens: number;
  /** The sum of the known costs; null if no cost is known. */
  cost_usd: number | null;
  /** How many reports the sum has. */
  reports: number;
  /** How many of the reports had no `cost_usd`. */
  without_cost: number;
}

export interface Budget {
  /** What the budget is about: the whole hub, or one node, creator, type or group of tasks. */
  scope: "hub" | "node" | "creator" | "type" | "group";
  /**
   * The node, the creator, the type or the group; left out or null: the hub, tasks without a creator,
   * or without a type.
   */
  value: string | null;
  /** The period: a day, a month (both in UTC), or all time. */
  per: "day" | "month" | "total";
  /** Dollars; null: any. */
  cost_usd: number | null;
  /** Input and output tokens together; null: any. */
  tokens: number | null;
  /**
   * `pause` (if left out): when the budget is used up, the hub hands out no task to which it applies.
   * `warn`: the hub only logs an event.
   */
  on_limit: "pause" | "warn";
  /** `warning` from 80 % on, `exceeded` when the budget is used up. */
  state: "open" | "warning" | "exceeded";
  /** Whether the budget keeps tasks back now. */
  paused: boolean;
  /** The first day of the current period; null if the period is all time. */
  since: string | null;
  /**
   * What was spent in the current period. A report without a cost adds no dollars: `without_cost`
   * counts such reports.
   */
  spent: Spending;
}

export interface Pause {
  /** What is paused: the whole hub, or a type, a limit key or a creator of tasks. */
  scope: "hub" | "type" | "limit_key" | "creator";
  /** The type, the limit key or the creator; null: the hub, or tasks without a type. */
  value: string | null;
  /** Why. */
  reason: string | null;
  /** Since when. */
  at: string;
}

export interface Limit {
  /** The limit key; empty for tasks without a type. */
  key: string;
  /** How many tasks of the key may be assigned at once; null: any number. */
  running: number | null;
  /** How many tasks of the key may be handed out in any 60 s; null: any number. */
  per_minute: number | null;
  /** Until then no task of the key is handed out; null: the key is not held. */
  held_until: string | null;
  /** The node that holds the key; null: the key is not held, or no node was named. */
  held_by: string | null;
  /** How many tasks of the key are assigned; 0 without `running`. */
  running_now: number;
  /** How many tasks of the key were handed out in the last minute; 0 without `per_minute`. */
  last_minute: number;
}

export interface Reason {
  /** What keeps the task back. */
  code:
    | "finished"
    | "assigned"
    | "not_before"
    | "depends_on"
    | "question"
    | "review"
    | "quorum"
    | "paused"
    | "limit"
    | "rate"
    | "budget"
    | "no_node"
    | "nodes_offline"
    | "nodes_draining"
    | "nodes_full"
    | "in_line";
  /** The reason in a sentence. */
  detail: string;
  /** When the reason ends by itself; null: this is not known. */
  until: string | null;
  /**
   * Only of `depends_on`, and of `review` for a dependency: the first 20 tasks for which the task
   * waits.
   */
  task_ids?: string[] | undefined;
  /** Only of `no_node`: what the closest node lacks. */
  missing?: string[] | undefined;
}

export interface Requirements {
  /** Words that must all be among the capabilities of the node. */
  capabilities: string[];
  /** Amounts by name, with three decimals. */
  resources: Record<string, number>;
}

export interface InputFile {
  /** The id of the file. */
  file_id: string;
  /** The name that people see. */
  name: string;
  /** The number of bytes. */
  size: number;
  /**
   * What the file is for its task: `output` if the file's node was the `assigned_node` of the task when
   * the file was attached, else `input`; null for a file of no task.
   */
  attached: "input" | "output";
}

export interface TaskInput<V extends Variant = "A"> {
  /** The task that must be completed first. */
  task_id: string;
  /** Null if the task was deleted. */
  title: string | null;
  /** Null if the task was deleted. */
  status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed"> | null;
  /** The node that holds the task, or has completed it. */
  assigned_node: string | null;
  /** Null if the task has none, or `omitted` is true. */
  result: TaskResult | null;
  /** Whether the result came with a key that is bound to the node that completed the task. */
  result_verified: boolean;
  /** The files. */
  files: InputFile[];
  /** True if the result or some of the files were left out, because there was no room. */
  omitted?: true | undefined;
}

export interface Checkpoint {
  /** The checkpoint as the worker sent it. */
  data: unknown;
  /** The epoch of the lease of the worker. */
  epoch: number;
  /** The node that sent the checkpoint. */
  node_id: string;
  /** The time. */
  at: string;
}

export interface Lesson {
  /** The id of the task. */
  task_id: string;
  /** What to do, in one line. */
  title: string;
  /** The hub compares it with the capabilities of nodes. A task without a type fits every node. */
  task_type: string | null;
  /** The node that completed the task. */
  node_id: string;
  /** Whether the result came with a key that is bound to that node. */
  verified: boolean;
  /** When the task was completed. */
  at: string;
  /** The first 2,000 characters of `lesson` in the result of the task. */
  lesson: string;
  /** True if the `lesson` is longer than what is shown. */
  truncated?: true | undefined;
}

export interface OutputAttempt {
  /** The epoch of the lease. */
  attempt: number;
  /** The node that sent the output. */
  node_id: string;
  /** The bytes that were sent, kept or not. */
  size: number;
  /** When the first output came. */
  begun_at: string;
  /** When the last output came. */
  updated_at: string;
}

export interface Question {
  /** The id of the question. */
  question_id: string;
  /** The id of the task. */
  task_id: string;
  /** What the worker wants to know. */
  question: string;
  /** Answers that the worker suggests; any other answer is possible too. */
  choices: string[];
  /**
   * The JSON Schema (at most 8 KiB) of the answer that the worker expects. The hub shows the schema,
   * but does not enforce it.
   */
  schema: Record<string, unknown> | null;
  /** The node that asked. */
  asked_by: string;
  /** When the question was asked. */
  asked_at: string;
  /** When the question times out without an answer. */
  until: string;
  /** `timed_out`: the deadline of the question has passed, or the task ended first. */
  state: "open" | "answered" | "timed_out";
  /** The answer; null if there is none. */
  answer: unknown;
  /** The node that answered; null if the answer named none. */
  answered_by: string | null;
  /** When the question was answered or timed out; null while the question is open. */
  answered_at: string | null;
  /** Whether the answer came with a key that is bound to `answered_by`. */
  verified: boolean;
}

export interface OpenQuestion {
  /** The id of the question. */
  question_id: string;
  /** The id of the task. */
  task_id: string;
  /** What the worker wants to know. */
  question: string;
  /** Answers that the worker suggests; any other answer is possible too. */
  choices: string[];
  /**
   * The JSON Schema (at most 8 KiB) of the answer that the worker expects. The hub shows the schema,
   * but does not enforce it.
   */
  schema: Record<string, unknown> | null;
  /** The node that asked. */
  asked_by: string;
  /** When the question was asked. */
  asked_at: string;
  /** When the question times out without an answer. */
  until: string;
  /** `timed_out`: the deadline of the question has passed, or the task ended first. */
  state: "open" | "answered" | "timed_out";
  /** The answer; null if there is none. */
  answer: unknown;
  /** The node that answered; null if the answer named none. */
  answered_by: string | null;
  /** When the question was answered or timed out; null while the question is open. */
  answered_at: string | null;
  /** Whether the answer came with a key that is bound to `answered_by`. */
  verified: boolean;
  /** The title of the task. */
  task_title: string;
  /** The node that created the task; this node need not be registered. */
  creator_node: string | null;
}

export interface Review {
  /** Who checks: `creator`, `node:<node_id>` or `capability:<word>`. */
  by: string;
  /** Seconds that a result waits for its review. */
  within_s: number;
  /** What happens when nobody has reviewed the result in time. */
  on_timeout: "pay" | "reject";
  /** The state of the last result; null until there is one. */
  state: "pending" | "passed" | "rejected" | null;
  /** The epoch of the dispatch that led to the result: send it with task/review. */
  epoch: number | null;
  /** The deadline of the review. */
  until: string | null;
  /** What the reviewer wrote. */
  note: string | null;
  /** The node that reviewed; null: the caller named no node, or the deadline decided. */
  reviewed_by: string | null;
  /** When the result was passed or rejected. */
  reviewed_at: string | null;
  /** Whether the deadline decided. */
  timed_out: boolean;
}

export interface Quorum {
  /** How many results must agree. */
  results: number;
  /** How many copies there are at most. */
  of: number;
  /**
   * What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON
   * pointers into the result.
   */
  compare: string;
  /** `failed`: the results cannot agree any more. */
  state: "pending" | "agreed" | "failed";
  /** The ids of the copies of the task: tasks with `parent_task`. */
  copies: string[];
  /** The nodes whose results agree, the first to complete first. */
  agreed: string[];
}

export interface PendingReview {
  /** The id of the task. */
  task_id: string;
  /** What to do, in one line. */
  title: string;
  /** The node that created the task; this node need not be registered. */
  creator_node: string | null;
  /** The node that holds the task, or has completed it. */
  assigned_node: string | null;
  /** The reward that is held until the review. */
  lux_held: number;
  /** How the result is checked, and until when. */
  review: Review;
}

export interface Context<V extends Variant = "A"> {
  /**
   * The tasks in `depends_on`, in that order. The results have at most 256 KiB together;
   * task/<task_id>/inputs has all results.
   */
  inputs?: TaskInput<V>[] | undefined;
  /** What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last checkpoint counts. */
  checkpoint?: Checkpoint | undefined;
  /** The newest questions about the task with their answers, oldest first: at most 20. */
  answers?: Question[] | undefined;
  /** Why the last result was rejected. */
  review?:
    | {
        /** What the reviewer wrote. */
        note: string | null;
        /** The node that reviewed; null: the caller named no node, or the deadline decided. */
        reviewed_by: string | null;
        /** When the result was passed or rejected. */
        reviewed_at: string | null;
      }
    | undefined;
  /** The last 5 attempts that failed, oldest first. */
  failures?: Failure[] | undefined;
  /**
   * What the last 5 completed tasks of the same type have taught, newest first: at most 2 KiB together,
   * and of the same text the newest. Not for a task without a type.
   */
  lessons?: Lesson[] | undefined;
}

export interface Task<V extends Variant = "A"> {
  /** The id of the task. */
  task_id: string;
  /** What to do, in one line. */
  title: string;
  /** What to do; at most 64 KiB of UTF-8. */
  description: string;
  /** The hub compares it with the capabilities of nodes. A task without a type fits every node. */
  task_type: string | null;
  /** The urgency. */
  priority: By<V, 0 | 1 | 2, "high" | "medium" | "low" | "p5">;
  /** LUX for the node that completes the task, with at most 6 decimals. */
  lux_reward: number;
  /** The node that created the task; this node need not be registered. */
  creator_node: string | null;
  /** Seconds that a node may hold the task without task/extend or task/complete. */
  timeout_s: number | null;
  /** Seconds that one attempt may take in all, extended or not; then the attempt has timed out. */
  max_run_s: number | null;
  /**
   * Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on tasks that
   * were created with it.
   */
  retain_s?: number | undefined;
  /**
   * Dollars that all attempts of the task together may cost; the attempt that exceeds this amount ends
   * the task permanently (kind `budget`). Null: no limit.
   */
  max_cost_usd: number | null;
  /** The task fails after this many attempts; by default after 10 failures and timeouts. */
  max_attempts: number | null;
  /**
   * Seconds from a failed attempt until the task is open again (5 by default); doubles with each
   * attempt, up to an hour.
   */
  backoff_s: number;
  /** The group of the task; only on a task of a group. */
  group?: string | undefined;
  /** The words by which to find the task; left out if there are none. */
  tags?: string[] | undefined;
  /** What a node must have to get the task: all words in `capabilities`, and enough of each resource. */
  requires?: Requirements | undefined;
  /** The key whose limit (limit/set) applies to the task; if left out, the `task_type`. */
  limit_key?: string | undefined;
  /**
   * The trace to which the task belongs (W3C Trace Context), which workers and webhooks get; if left
   * out, that of the request's header `traceparent`.
   */
  traceparent?: string | undefined;
  /** What tracing systems keep beside `traceparent`. */
  tracestate?: string | undefined;
  /** Whether the task was created with a key that is bound to its `creator_node`. */
  creator_verified: boolean;
  /** The status of the task. task/retry opens a `failed` task again. */
  status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
  /** The node that holds the task, or has completed it. */
  assigned_node: string | null;
  /** The result as the node sent it; null until the task is completed. */
  result: TaskResult | null;
  /** Whether the result came with a key that is bound to the node that completed the task. */
  result_verified: boolean;
  /** The number of the ledger entry that paid the task; left out if nothing was paid. */
  paid_seq?: number | undefined;
  /** Whether the task is open and may be handed out now. */
  ready: boolean;
  /**
   * Failed attempts: failures, timeouts, nodes that went offline, rejected results, an exceeded
   * `max_cost_usd` and, with `max_attempts`, restarts.
   */
  attempts: number;
  /**
   * How often task/next has handed the task out again with `resume`, because the worker ended. With
   * `max_attempts` each restart counts as an attempt.
   */
  restarts: number;
  /** What all attempts of the task together have used, as the workers reported; null without any report. */
  usage: Spending | null;
  /** The task is not handed out before this time. */
  not_before: string | null;
  /** If the task is not completed by this time, the task fails. */
  expires_at: string | null;
  /** The ids of the tasks that must be completed first. */
  depends_on: string[];
  /** When the node started the task. */
  started_at: string | null;
  /** The last note of the node that holds the task. */
  progress: string | null;
  /**
   * `answer` while a question about the task is open, `review` while the result waits for its review;
   * else null.
   */
  waiting_for: "answer" | "review" | null;
  /** How the results of the task are checked; only on tasks with a review. */
  review?: Review | undefined;
  /** How many nodes do the task, and whether their results agree; only on tasks with a quorum. */
  quorum?: Quorum | undefined;
  /** The task for which the hub created this task; only on tasks that the hub created. */
  parent_task?: string | undefined;
  /**
   * `review`: this task checks the result of `parent_task`, and its own result needs a `verdict`.
   * `copy`: this task is a copy of `parent_task`.
   */
  made_for?: "review" | "copy" | undefined;
  /** Nobody can read what the worker of the copy has sent until the quorum is decided; only on copies. */
  sealed?: true | undefined;
  /** Background work (`p5`), whose `priority` A shows as 2; only on such tasks. */
  background?: true | undefined;
  /** Why the last attempt, or the task, failed. */
  failure: Failure | null;
  /** The ids of the files that are attached to the task, oldest first. */
  files: string[];
  /** The ids in `files` of the input files: files that the `assigned_node` of the task did not attach. */
  inputs: string[];
  /** The ids in `files` of the output files: files that the `assigned_node` of the task attached. */
  outputs: string[];
  /** The schedule that created the task; only on such tasks. */
  schedule?:
    | {
        /** The name that people see. */
        name: string;
        /** The time. */
        at: string | null;
      }
    | undefined;
  /**
   * While an unfinished task has this key, task/create makes no other task with the key, and returns
   * the existing task (`deduplicated`).
   */
  unique_key?: string | undefined;
  /** Until this time the task holds its `unique_key`, finished or not. */
  unique_until?: string | undefined;
  /**
   * `fail` (if left out): the task fails when a task in `depends_on` fails or is deleted. `run`: the
   * task starts when all tasks in `depends_on` have ended: completed, failed or deleted.
   */
  on_dependency?: "run" | undefined;
  /** When the record was created. */
  created_at: string;
  /** When the record last changed. */
  updated_at: string;
}

export interface TaskSummary<V extends Variant = "A"> {
  /** The id of the task. */
  task_id: string;
  /** What to do, in one line. */
  title: string;
  /** The hub compares it with the capabilities of nodes. A task without a type fits every node. */
  task_type: string | null;
  /** The urgency. */
  priority: By<V, 0 | 1 | 2, "high" | "medium" | "low" | "p5">;
  /** LUX for the node that completes the task, with at most 6 decimals. */
  lux_reward: number;
  /** The node that created the task; this node need not be registered. */
  creator_node: string | null;
  /** The task fails after this many attempts; by default after 10 failures and timeouts. */
  max_attempts: number | null;
  /** The group of the task; only on a task of a group. */
  group?: string | undefined;
  /** The words by which to find the task; left out if there are none. */
  tags?: string[] | undefined;
  /** The status of the task. task/retry opens a `failed` task again. */
  status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
  /** The node that holds the task, or has completed it. */
  assigned_node: string | null;
  /** Whether the task is open and may be handed out now. */
  ready: boolean;
  /**
   * Failed attempts: failures, timeouts, nodes that went offline, rejected results, an exceeded
   * `max_cost_usd` and, with `max_attempts`, restarts.
   */
  attempts: number;
  /** The task is not handed out before this time. */
  not_before: string | null;
  /** If the task is not completed by this time, the task fails. */
  expires_at: string | null;
  /** How many tasks in `depends_on` are not completed yet. */
  unmet_count: number;
  /** When the node started the task. */
  started_at: string | null;
  /** The first line of the last note, at most 200 characters. */
  progress: string | null;
  /**
   * `answer` while a question about the task is open, `review` while the result waits for its review;
   * else null.
   */
  waiting_for: "answer" | "review" | null;
  /** The task for which the hub created this task; only on tasks that the hub created. */
  parent_task?: string | undefined;
  /**
   * `review`: this task checks the result of `parent_task`, and its own result needs a `verdict`.
   * `copy`: this task is a copy of `parent_task`.
   */
  made_for?: "review" | "copy" | undefined;
  /** Why the last attempt, or the task, failed. */
  failure: Failure | null;
  /** The schedule that created the task; only on such tasks. */
  schedule?:
    | {
        /** The name that people see. */
        name: string;
        /** The time. */
        at: string | null;
      }
    | undefined;
  /** When the record was created. */
  created_at: string;
  /** When the record last changed. */
  updated_at: string;
}

export interface TaskDetails<V extends Variant = "A"> {
  /** The id of the task. */
  task_id: string;
  /** What to do, in one line. */
  title: string;
  /** What to do; at most 64 KiB of UTF-8. */
  description: string;
  /** The hub compares it with the capabilities of nodes. A task without a type fits every node. */
  task_type: string | null;
  /** The urgency. */
  priority: By<V, 0 | 1 | 2, "high" | "medium" | "low" | "p5">;
  /** LUX for the node that completes the task, with at most 6 decimals. */
  lux_reward: number;
  /** The node that created the task; this node need not be registered. */
  creator_node: string | null;
  /** Seconds that a node may hold the task without task/extend or task/complete. */
  timeout_s: number | null;
  /** Seconds that one attempt may take in all, extended or not; then the attempt has timed out. */
  max_run_s: number | null;
  /**
   * Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on tasks that
   * were created with it.
   */
  retain_s?: number | undefined;
  /**
   * Dollars that all attempts of the task together may cost; the attempt that exceeds this amount ends
   * the task permanently (kind `budget`). Null: no limit.
   */
  max_cost_usd: number | null;
  /** The task fails after this many attempts; by default after 10 failures and timeouts. */
  max_attempts: number | null;
  /**
   * Seconds from a failed attempt until the task is open again (5 by default); doubles with each
   * attempt, up to an hour.
   */
  backoff_s: number;
  /** The group of the task; only on a task of a group. */
  group?: string | undefined;
  /** The words by which to find the task; left out if there are none. */
  tags?: string[] | undefined;
  /** What a node must have to get the task: all words in `capabilities`, and enough of each resource. */
  requires?: Requirements | undefined;
  /** The key whose limit (limit/set) applies to the task; if left out, the `task_type`. */
  limit_key?: string | undefined;
  /**
   * The trace to which the task belongs (W3C Trace Context), which workers and webhooks get; if left
   * out, that of the request's header `traceparent`.
   */
  traceparent?: string | undefined;
  /** What tracing systems keep beside `traceparent`. */
  tracestate?: string | undefined;
  /** Whether the task was created with a key that is bound to its `creator_node`. */
  creator_verified: boolean;
  /** The status of the task. task/retry opens a `failed` task again. */
  status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
  /** The node that holds the task, or has completed it. */
  assigned_node: string | null;
  /** The result as the node sent it; null until the task is completed. */
  result: TaskResult | null;
  /** Whether the result came with a key that is bound to the node that completed the task. */
  result_verified: boolean;
  /** The number of the ledger entry that paid the task; left out if nothing was paid. */
  paid_seq?: number | undefined;
  /** Whether the task is open and may be handed out now. */
  ready: boolean;
  /**
   * Failed attempts: failures, timeouts, nodes that went offline, rejected results, an exceeded
   * `max_cost_usd` and, with `max_attempts`, restarts.
   */
  attempts: number;
  /**
   * How often task/next has handed the task out again with `resume`, because the worker ended. With
   * `max_attempts` each restart counts as an attempt.
   */
  restarts: number;
  /** What all attempts of the task together have used, as the workers reported; null without any report. */
  usage: Spending | null;
  /** The task is not handed out before this time. */
  not_before: string | null;
  /** If the task is not completed by this time, the task fails. */
  expires_at: string | null;
  /** The ids of the tasks that must be completed first. */
  depends_on: string[];
  /** When the node started the task. */
  started_at: string | null;
  /** The last note of the node that holds the task. */
  progress: string | null;
  /**
   * `answer` while a question about the task is open, `review` while the result waits for its review;
   * else null.
   */
  waiting_for: "answer" | "review" | null;
  /** How the results of the task are checked; only on tasks with a review. */
  review?: Review | undefined;
  /** How many nodes do the task, and whether their results agree; only on tasks with a quorum. */
  quorum?: Quorum | undefined;
  /** The task for which the hub created this task; only on tasks that the hub created. */
  parent_task?: string | undefined;
  /**
   * `review`: this task checks the result of `parent_task`, and its own result needs a `verdict`.
   * `copy`: this task is a copy of `parent_task`.
   */
  made_for?: "review" | "copy" | undefined;
  /** Nobody can read what the worker of the copy has sent until the quorum is decided; only on copies. */
  sealed?: true | undefined;
  /** Background work (`p5`), whose `priority` A shows as 2; only on such tasks. */
  background?: true | undefined;
  /** Why the last attempt, or the task, failed. */
  failure: Failure | null;
  /** The ids of the files that are attached to the task, oldest first. */
  files: string[];
  /** The ids in `files` of the input files: files that the `assigned_node` of the task did not attach. */
  inputs: string[];
  /** The ids in `files` of the output files: files that the `assigned_node` of the task attached. */
  outputs: string[];
  /** The schedule that created the task; only on such tasks. */
  schedule?:
    | {
        /** The name that people see. */
        name: string;
        /** The time. */
        at: string | null;
      }
    | undefined;
  /**
   * While an unfinished task has this key, task/create makes no other task with the key, and returns
   * the existing task (`deduplicated`).
   */
  unique_key?: string | undefined;
  /** Until this time the task holds its `unique_key`, finished or not. */
  unique_until?: string | undefined;
  /**
   * `fail` (if left out): the task fails when a task in `depends_on` fails or is deleted. `run`: the
   * task starts when all tasks in `depends_on` have ended: completed, failed or deleted.
   */
  on_dependency?: "run" | undefined;
  /** When the record was created. */
  created_at: string;
  /** When the record last changed. */
  updated_at: string;
  /** The tasks in `depends_on` that are not completed yet. */
  unmet: {
    /** How many of the tasks in `depends_on` are not completed yet. */
    count: number;
    /** The ids of the first 20 of these tasks, oldest first. */
    task_ids: string[];
  };
}

export interface Node<V extends Variant = "A"> {
  /** The id of the node. */
  node_id: string;
  /** The name that people see. */
  name: string;
  /** `offline` when the heartbeats of the node stopped, or the node left. */
  status: "online" | "offline";
  /** Where people can reach the node; not used by the hub. */
  host: string | null;
  /** Where people can reach the node; not used by the hub. */
  port: number | null;
  /** The task types that the node takes; empty means all. */
  capabilities: By<V, string, string[]>;
  /** What the node has; left out if the node registered no resources. */
  resources?: Record<string, number> | undefined;
  /** How much of each resource the node's unfinished tasks use. */
  resources_used?: Record<string, number> | undefined;
  /** The number of unfinished tasks up to which the hub hands open tasks to the node; null: no limit. */
  max_tasks: number | null;
  /** Whether the balancer may assign tasks to the node. */
  auto_assign: boolean;
  /** Whether the node drains: a draining node gets no new tasks. */
  draining: boolean;
  /** When the node first registered. */
  registered_at: string;
  /** The last heartbeat or registration. */
  last_heartbeat: string;
  /** The sum of the node's ledger entries. */
  lux_balance: number;
  /** How many unfinished tasks the node has. */
  tasks_assigned: number;
  /** How many tasks the node has completed. */
  tasks_completed: number;
}

export interface Message {
  /** The id of the message: `message_id` in the response to the send, and in the ACK. */
  id: string;
  /** The sender, which need not be registered. */
  from_node: string;
  /** The recipient; null for a broadcast. */
  to_node: string | null;
  /** The message itself; at most 256 KiB of UTF-8. */
  content: string;
  /** The kind of message. */
  type: "text" | "task" | "status" | "broadcast" | "alert" | "update";
  /**
   * Whether the recipient must acknowledge the message; until then the hub delivers the message again,
   * up to 5 times.
   */
  require_ack: boolean;
  /** The id of the message to which this message replies; null if this message is no reply. */
  reply_to: string | null;
  /**
   * The conversation: the id of its first message, or a name that the sender gives. A reply continues
   * the conversation of the message to which it replies.
   */
  thread: string;
  /** Whether the message came with a key that is bound to its sender. */
  verified: boolean;
  /** When the message was sent. */
  sent_at: string;
}

export interface ReceivedMessage {
  /** The id of the message: `message_id` in the response to the send, and in the ACK. */
  id: string;
  /** The sender, which need not be registered. */
  from_node: string;
  /** The recipient; null for a broadcast. */
  to_node: string | null;
  /** The message itself; at most 256 KiB of UTF-8. */
  content: string;
  /** The kind of message. */
  type: "text" | "task" | "status" | "broadcast" | "alert" | "update";
  /**
   * Whether the recipient must acknowledge the message; until then the hub delivers the message again,
   * up to 5 times.
   */
  require_ack: boolean;
  /** The id of the message to which this message replies; null if this message is no reply. */
  reply_to: string | null;
  /**
   * The conversation: the id of its first message, or a name that the sender gives. A reply continues
   * the conversation of the message to which it replies.
   */
  thread: string;
  /** Whether the message came with a key that is bound to its sender. */
  verified: boolean;
  /** When the message was sent. */
  sent_at: string;
  /** Whether the message was delivered before. */
  redelivered: boolean;
  /** How often the message was delivered. */
  deliveries: number;
}

export interface HistoryMessage {
  /** The id of the message: `message_id` in the response to the send, and in the ACK. */
  id: string;
  /** The sender, which need not be registered. */
  from_node: string;
  /** The recipient; null for a broadcast. */
  to_node: string | null;
  /** The message itself; at most 256 KiB of UTF-8. */
  content: string;
  /** The kind of message. */
  type: "text" | "task" | "status" | "broadcast" | "alert" | "update";
  /**
   * Whether the recipient must acknowledge the message; until then the hub delivers the message again,
   * up to 5 times.
   */
  require_ack: boolean;
  /** The id of the message to which this message replies; null if this message is no reply. */
  reply_to: string | null;
  /**
   * The conversation: the id of its first message, or a name that the sender gives. A reply continues
   * the conversation of the message to which it replies.
   */
  thread: string;
  /** Whether the message came with a key that is bound to its sender. */
  verified: boolean;
  /** When the message was sent. */
  sent_at: string;
  /** The delivery status: `waiting`, `delivered`, `acked` or `parked`. */
  state: "waiting" | "delivered" | "acked" | "parked" | null;
  /** How often the message was delivered. */
  deliveries: number | null;
  /** The recipients of a broadcast that the node sent, counted by state; null for every other message. */
  recipients: {
    /** How many recipients have not received the message yet. */
    waiting: number;
    /** How many recipients have received the message. */
    delivered: number;
    /** How many recipients have acknowledged the message. */
    acked: number;
    /** How many recipients never acknowledged the message. */
    parked: number;
  } | null;
}

export interface NoteHead {
  /** The name of the note. */
  key: string;
  /** 1 for a new note; each change adds 1. */
  version: number;
  /** Who wrote this version; null: the request named no node. */
  node_id: string | null;
  /** Whether the note was written with a key that is bound to `node_id`. */
  verified: boolean;
  /** The number of bytes of the key and the text in UTF-8. */
  bytes: number;
  /** When version 1 was written. */
  created_at: string;
  /** When this version was written. */
  updated_at: string;
}

export interface Note {
  /** The name of the note. */
  key: string;
  /** 1 for a new note; each change adds 1. */
  version: number;
  /** Who wrote this version; null: the request named no node. */
  node_id: string | null;
  /** Whether the note was written with a key that is bound to `node_id`. */
  verified: boolean;
  /** The number of bytes of the key and the text in UTF-8. */
  bytes: number;
  /** When version 1 was written. */
  created_at: string;
  /** When this version was written. */
  updated_at: string;
  /** The content, at most 16 KiB. */
  text: string;
}

export interface FoundNote {
  /** The name of the note. */
  key: string;
  /** 1 for a new note; each change adds 1. */
  version: number;
  /** Who wrote this version; null: the request named no node. */
  node_id: string | null;
  /** Whether the note was written with a key that is bound to `node_id`. */
  verified: boolean;
  /** The number of bytes of the key and the text in UTF-8. */
  bytes: number;
  /** When version 1 was written. */
  created_at: string;
  /** When this version was written. */
  updated_at: string;
  /**
   * The first line of the text in which a word was found, or the beginning of the text; at most 200
   * characters.
   */
  excerpt: string;
}

export interface AdvisoryLease {
  /** The name or glob. */
  name: string;
  /** The node that has the lease. */
  node_id: string;
  /** The task that the lease ends with; null: none. */
  task_id: string | null;
  /** Whether other nodes may have a shared lease on the same name. */
  shared: boolean;
  /**
   * The fencing number: larger than the number of every earlier lease. Send the number to the system
   * that the lease protects, which refuses smaller numbers.
   */
  fencing: number;
  /** Seconds from an acquire or renew to the deadline. */
  ttl_s: number;
  /** When the lease was acquired. */
  acquired_at: string;
  /** The deadline, at which the lease ends. */
  until: string;
}

export interface LedgerEntry {
  /** The number of the entry in the ledger of all nodes: 1, 2, 3, … */
  seq: number;
  /** The id of the entry. */
  id: string;
  /** The node that was paid; null: the entry goes to another account. */
  node_id: string | null;
  /** The account that pays: `treasury`, or `held:` and the task_id. */
  from: string;
  /** The account that gets the LUX: `node:` and the node_id, `held:` and the task_id, or `treasury`. */
  to: string;
  /** LUX, exact to 6 decimals. */
  amount: number;
  /**
   * `reward` of a task, `signin`, `hold` (a reward is held back) or `return` (a reward that was held
   * back goes back to the treasury).
   */
  kind: "reward" | "signin" | "hold" | "return";
  /** The task of a `reward`, `hold` or `return`; null for a daily bonus. */
  task_id: string | null;
  /** The time. */
  at: string;
  /**
   * The hash of the previous entry, 64 zeros for the first; null: the entry is older than the hash
   * chain.
   */
  prev_hash: string | null;
  /**
   * SHA-256 of the entry and of `prev_hash`, as hex (docs/concepts.md has the bytes); null: the entry
   * is older than the hash chain.
   */
  hash: string | null;
}

export interface LedgerHead {
  /** The number of the newest entry; 0: the ledger has no entry. */
  seq: number;
  /** The hash of the newest entry; null: the entry is older than the hash chain, or there is no entry. */
  hash: string | null;
}

export interface Receipt {
  /** The id of the ledger entry. */
  entry_id: string;
  /** LUX that were paid. */
  amount: number;
  /**
   * The hash of the ledger entry. Nobody can change this entry or an earlier entry without changing the
   * hash. null: the entry is older than the hash chain.
   */
  hash: string | null;
}

export interface FileRecord {
  /** The id of the file. */
  file_id: string;
  /** The last part of the uploaded name. */
  name: string;
  /** The number of bytes. */
  size: number;
  /** SHA-256 of the bytes, in hexadecimal digits. */
  sha256: string;
  /** As uploaded; `application/octet-stream` if the uploaded type was invalid. */
  content_type: string;
  /** As uploaded, with all digits of numbers; `{}` for a file without metadata. */
  metadata: Record<string, unknown>;
  /** The node that the file is attached to. */
  node_id: string | null;
  /** Whether the file was uploaded with a key that is bound to its node. */
  verified: boolean;
  /** The task that the file is attached to. */
  task_id: string | null;
  /**
   * What the file is for its task: `output` if the file's node was the `assigned_node` of the task when
   * the file was attached, else `input`; null for a file of no task.
   */
  attached: "input" | "output" | null;
  /** When the file was uploaded. */
  uploaded_at: string;
  /** The path from which to download the file. */
  url: string;
}

export interface Schedule<V extends Variant = "A"> {
  /** The name of the schedule. */
  name: string;
  /** A cron expression: minute, hour, day of month, month, day of week; or `@daily` and the like. */
  cron: string | null;
  /** The time zone of `cron`, of the IANA database; `UTC` if left out. */
  tz: string | null;
  /** The seconds between two times, instead of `cron`; the first time comes after one interval. */
  every_s: number | null;
  /** The task that the schedule creates. */
  task: {
    /** What to do, in one line. */
    title: string;
    /** What to do; at most 64 KiB of UTF-8. */
    description: string;
    /** The hub compares it with the capabilities of nodes. A task without a type fits every node. */
    task_type: string | null;
    /**
     * The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or `medium` (the
     * default); 2, `p2` or `low`; `p5` is background work.
     */
    priority: By<V, 0 | 1 | 2, "high" | "medium" | "low" | "p5">;
    /** LUX for the node that completes the task, with at most 6 decimals. */
    lux_reward: number;
    /** The node that created the task; this node need not be registered. */
    creator_node: string | null;
    /** Seconds until the task may be handed out. */
    delay_s: number;
    /** Seconds that a node may hold the task without task/extend or task/complete. */
    timeout_s: number | null;
    /** Seconds that one attempt may take in all, extended or not; then the attempt has timed out. */
    max_run_s: number | null;
    /**
     * Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on tasks that
     * were created with it.
     */
    retain_s: number | null;
    /**
     * Who checks the result before the reward is paid: `creator` (without a creator, any node except the
     * worker), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that type for another
     * node.
     */
    review?: string | undefined;
    /** Seconds until the result counts as `on_review_timeout` says; 604,800 (a week) if left out. */
    review_within_s?: number | undefined;
    /** What happens when nobody has reviewed the result in time: `pay` (if left out) or `reject`. */
    on_review_timeout?: "pay" | "reject" | undefined;
    /**
     * Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the
     * maximum number of copies (`results` to 15); if left out, as many as make `results` a majority.
     */
    quorum?:
      | {
          /** How many results must agree. */
          results: number;
          /** How many copies there are at most. */
          of: number;
          /**
           * What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON
           * pointers into the result.
           */
          compare: string;
        }
      | undefined;
    /**
     * Dollars that all attempts of the task together may cost; the attempt that exceeds this amount ends
     * the task permanently (kind `budget`). Null: no limit.
     */
    max_cost_usd: number | null;
    /** The task fails after this many attempts; by default after 10 failures and timeouts. */
    max_attempts: number | null;
    /**
     * Seconds from a failed attempt until the task is open again (5 by default); doubles with each
     * attempt, up to an hour.
     */
    backoff_s: number;
    /** The name of the group of tasks; NAME/NODE of a group of a node's keys. */
    group?: string | undefined;
    /** The words by which to find the task; left out if there are none. */
    tags?: string[] | undefined;
    /** What a node must have to get the task: all words in `capabilities`, and enough of each resource. */
    requires?: Requirements | undefined;
    /** The key whose limit (limit/set) applies to the task; if left out, the `task_type`. */
    limit_key?: string | undefined;
    /**
     * The trace to which the task belongs (W3C Trace Context), which workers and webhooks get; if left
     * out, that of the request's header `traceparent`.
     */
    traceparent?: string | undefined;
    /** What tracing systems keep beside `traceparent`. */
    tracestate?: string | undefined;
  };
  /** All tasks of a pipeline, of which `task` is the first; only on a schedule with a pipeline. */
  tasks?:
    | {
        /** The name by which tasks after it need this one. */
        ref: string;
        /** The names of the tasks before it that it waits for. */
        needs: string[];
        /** As for task/create. */
        on_dependency: "fail" | "run";
        /** The task as it is now. */
        task: {
          /** What to do, in one line. */
          title: string;
          /** What to do; at most 64 KiB of UTF-8. */
          description: string;
          /** The hub compares it with the capabilities of nodes. A task without a type fits every node. */
          task_type: string | null;
          /**
           * The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or `medium` (the
           * default); 2, `p2` or `low`; `p5` is background work.
           */
          priority: By<V, 0 | 1 | 2, "high" | "medium" | "low" | "p5">;
          /** LUX for the node that completes the task, with at most 6 decimals. */
          lux_reward: number;
          /** The node that created the task; this node need not be registered. */
          creator_node: string | null;
          /** Seconds until the task may be handed out. */
          delay_s: number;
          /** Seconds that a node may hold the task without task/extend or task/complete. */
          timeout_s: number | null;
          /** Seconds that one attempt may take in all, extended or not; then the attempt has timed out. */
          max_run_s: number | null;
          /**
           * Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on tasks that
           * were created with it.
           */
          retain_s: number | null;
          /**
           * Who checks the result before the reward is paid: `creator` (without a creator, any node except the
           * worker), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that type for another
           * node.
           */
          review?: string | undefined;
          /** Seconds until the result counts as `on_review_timeout` says; 604,800 (a week) if left out. */
          review_within_s?: number | undefined;
          /** What happens when nobody has reviewed the result in time: `pay` (if left out) or `reject`. */
          on_review_timeout?: "pay" | "reject" | undefined;
          /**
           * Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the
           * maximum number of copies (`results` to 15); if left out, as many as make `results` a majority.
           */
          quorum?:
            | {
                /** How many results must agree. */
                results: number;
                /** How many copies there are at most. */
                of: number;
                /**
                 * What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON
                 * pointers into the result.
                 */
                compare: string;
              }
            | undefined;
          /**
           * Dollars that all attempts of the task together may cost; the attempt that exceeds this amount ends
           * the task permanently (kind `budget`). Null: no limit.
           */
          max_cost_usd: number | null;
          /** The task fails after this many attempts; by default after 10 failures and timeouts. */
          max_attempts: number | null;
          /**
           * Seconds from a failed attempt until the task is open again (5 by default); doubles with each
           * attempt, up to an hour.
           */
          backoff_s: number;
          /** The name of the group of tasks; NAME/NODE of a group of a node's keys. */
          group?: string | undefined;
          /** The words by which to find the task; left out if there are none. */
          tags?: string[] | undefined;
          /** What a node must have to get the task: all words in `capabilities`, and enough of each resource. */
          requires?: Requirements | undefined;
          /** The key whose limit (limit/set) applies to the task; if left out, the `task_type`. */
          limit_key?: string | undefined;
          /**
           * The trace to which the task belongs (W3C Trace Context), which workers and webhooks get; if left
           * out, that of the request's header `traceparent`.
           */
          traceparent?: string | undefined;
          /** What tracing systems keep beside `traceparent`. */
          tracestate?: string | undefined;
        };
      }[]
    | undefined;
  /**
   * What happens at a time when an earlier task is unfinished: no new task (`skip`), or one more
   * (`queue`).
   */
  overlap: "skip" | "queue";
  /**
   * What happens after times at which no hub ran: a task for the last of these times (`one`), or none
   * (`none`).
   */
  catch_up: "one" | "none";
  /** Each task may start up to this many seconds later. */
  jitter_s: number;
  /** The schedule creates no task after this time. */
  until: string | null;
  /** Whether the schedule is paused: it creates no tasks until a schedule/put without this field. */
  paused: boolean;
  /** The next time; null while the schedule is paused, and after the last time. */
  next_at: string | null;
  /** The last task that the schedule created. */
  last_task_id: string | null;
  /** When the schedule created its last task. */
  last_at: string | null;
  /** When the record was created. */
  created_at: string;
  /** When the record last changed. */
  updated_at: string;
}

export interface Webhook {
  /** The name of the webhook; the name of a push config of A2A begins with `a2a:`. */
  name: string;
  /** The URL to which the webhook sends. */
  url: string;
  /**
   * What the webhook sends: events as JSON (`luxhub`), notifications (`ntfy`), or the updates of A2A
   * (`a2a`).
   */
  format: "luxhub" | "a2a" | "ntfy";
  /** Only events of these kinds; if left out or empty, all kinds. */
  kinds: EventKind[];
  /** Only events of this task. */
  task_id: string | null;
  /** Only events of this node. */
  node_id: string | null;
  /** Only events of the tasks that this node created. */
  creator_node: string | null;
  /** Only events of the tasks of this group. */
  group: string | null;
  /** `suspended`: the webhook sends nothing until webhook/resume. */
  state: "active" | "suspended";
  /** The id of the last event that needs no delivery any more. */
  cursor: number;
  /** How often the delivery has failed since the last success, webhook/resume or change. */
  attempts: number;
  /** When the first of the failed attempts was; null: the last attempt succeeded. */
  failing_since: string | null;
  /** When the hub tries again. */
  next_attempt_at: string | null;
  /** Why the last attempt failed. */
  last_error: string | null;
  /** When the hub last delivered a message of the webhook. */
  last_delivered_at: string | null;
  /** When the record was created. */
  created_at: string;
  /** When the record last changed. */
  updated_at: string;
}

export interface Key {
  /** The name of the key. */
  name: string;
  /** What the key may do. A viewer can read all but message contents; `admin` is for `X-Admin-Key`. */
  role: "full" | "viewer" | "admin" | "standby";
  /** Whether the key is `valid`, `expired` or `revoked`. */
  state: "valid" | "expired" | "revoked";
  /** The variant of the responses to requests with the key; null: the variant of the listener. */
  variant: "A" | "B" | null;
  /** The node that the key is bound to: it acts only for this node. */
  node_id: string | null;
  /**
   * LUX that the key may promise per UTC day, as rewards of tasks. null: any amount, or none if the hub
   * is strict and the key is bound to a node.
   */
  mint_per_day: number | null;
  /** When the key was made; null for the keys of the first start. */
  created_at: string | null;
  /** When the key expires; null: never. */
  expires_at: string | null;
  /** When the key was revoked. */
  revoked_at: string | null;
  /**
   * What counts against the quotas of the node. Only in key/list, for a key of the role `full` that is
   * bound to a node.
   */
  used?:
    | {
        /** Unfinished tasks that the node's keys created. */
        tasks: number;
        /** Bytes that the node's keys have stored. */
        bytes: number;
      }
    | undefined;
}

export interface Invitation {
  /** The invitation. */
  invitation_id: string;
  /** The node for which the machine that joins gets a key. */
  node_id: string;
  /** Whether the invitation is `open`, `used` or `expired`. */
  state: "open" | "used" | "expired";
  /** When the invitation was made. */
  created_at: string;
  /** When the invitation expires, by the hub's clock. */
  expires_at: string;
  /** When a machine joined with the invitation. */
  used_at: string | null;
  /** The name of the key that was made from the invitation; null until then. */
  key: string | null;
}

export interface Event {
  /** Increases with each commit. */
  id: number;
  /** The kind of event. */
  kind: EventKind;
  /** The time. */
  at: string;
  /** The node that the event is about. */
  node_id: string | null;
  /** The task that the event is about. */
  task_id: string | null;
  /**
   * Who did what people do, as `PERSON@KEY`: the name of the key, after the name of the person that a
   * proxy gives (`--user-header`); null for what nodes and the hub do.
   */
  by: string | null;
  /**
   * Whether the request came with a key that is bound to the acting node: `node_id`, or of
   * `message.sent` the sender.
   */
  verified: boolean;
  /** The fields that depend on the kind. */
  data: Record<string, string | number | boolean | null>;
}

export interface Durations {
  /** How many durations there are. */
  count: number;
  /** The sum of the durations, in seconds. */
  sum_s: number;
  /** The median in seconds, estimated; null without durations. */
  p50_s: number | null;
  /** The 95th percentile in seconds, estimated; null without durations. */
  p95_s: number | null;
}

export interface TypeStats {
  /** The type; null for tasks without a type. */
  task_type: string | null;
  /**
   * Tasks that wait for nothing of their own, counted up to 50,000. Left out are the types beyond
   * 1,000, and tasks beyond 1,000 lanes with requirements or a limit key of their own.
   */
  open: number;
  /** Since when the oldest open task may be handed out; null if there is none. */
  oldest_open_at: string | null;
  /**
   * Open tasks that wait for their time, other tasks or an answer; of all types together counted up to
   * 50,000.
   */
  waiting: number;
  /** Tasks that a node holds; of all types together counted up to 50,000. */
  assigned: number;
  /**
   * How many of the open tasks a pause, a limit, a budget or the lack of a node holds back. Left out
   * are pauses and budgets of creators and groups.
   */
  held: number;
  /** What holds the most of these tasks back. */
  held_by:
    | "paused"
    | "limit"
    | "rate"
    | "budget"
    | "no_node"
    | "nodes_offline"
    | "nodes_draining"
    | "depends_on"
    | "question"
    | "quorum"
    | "not_before"
    | null;
  /** Tasks created in the last hour. */
  created: number;
  /** Tasks completed in the last hour. */
  completed: number;
  /** Tasks that failed in the last hour. */
  failed: number;
  /** How long tasks waited in the last hour until they were handed out, counted for each dispatch. */
  time_to_start: Durations;
  /** Nodes that could take a task of this type now: online, not draining and with room. */
  takers: number;
  /** Online nodes that take tasks of this type. */
  nodes_online: number;
  /** Nodes, online or not, that take tasks of this type. */
  nodes_registered: number;
}

export interface HeldStats {
  /**
   * What holds the tasks back, in the words of task/<task_id>/explain. Each task counts once, under the
   * first that applies.
   */
  code:
    | "paused"
    | "limit"
    | "rate"
    | "budget"
    | "no_node"
    | "nodes_offline"
    | "nodes_draining"
    | "depends_on"
    | "question"
    | "quorum"
    | "not_before";
  /** How many open tasks: as many as task/list lists with this code as `held`. */
  count: number;
  /** False: there may be more, because a count ends at 50,000. */
  exact: boolean;
  /**
   * Since when the oldest of the tasks could run without this, or, if it waits for something of its
   * own, when it was created.
   */
  oldest_at: string | null;
  /** The 10 largest causes, the largest first. */
  causes: {
    /** The type of the tasks; null for tasks without a type, and of any type. */
    task_type: string | null;
    /** The maximum number to return. */
    count: number;
    /** What holds them back, in a sentence; null if the code says it all. */
    detail: string | null;
  }[];
}

export interface FailureGroup {
  /** The id of the group: `failure_group` of task/list and task/count selects the tasks of the group. */
  group: string;
  /** The type of the tasks; null for tasks without a type. */
  task_type: string | null;
  /** The kind of the failures. */
  kind:
    | "failed"
    | "stalled"
    | "timed_out"
    | "offline"
    | "cancelled"
    | "expired"
    | "dependency"
    | "budget"
    | "rejected"
    | "no_quorum";
  /** The first line of the newest message. The messages of a group differ only in numbers and ids. */
  message: string;
  /** How many tasks of the group have failed. */
  count: number;
  /** At how many nodes the tasks failed. */
  nodes: number;
  /** The first 5 of the nodes at which the tasks failed, the node with the most failures first. */
  node_ids: string[];
  /** When the last task failed. */
  last_at: string;
  /** The task that failed last. */
  task_id: string;
}

export interface Minute {
  /** When the minute begins. */
  at: string;
  /** How many tasks were created. */
  tasks_created: number;
  /** How often a task was handed out. */
  tasks_started: number;
  /** How many tasks were completed. */
  tasks_completed: number;
  /** How many attempts ended without a result. */
  attempts_failed: number;
  /** How many tasks failed permanently, without `tasks_cancelled`. */
  tasks_failed: number;
  /** How many tasks were cancelled, or expired. */
  tasks_cancelled: number;
  /** LUX paid, including daily bonuses. */
  lux_paid: number;
  /** How many messages were sent; a broadcast counts once. */
  messages_sent: number;
  /** The time from when a task became ready until its first dispatch. */
  time_to_start: Durations;
  /** The time from the creation or the `not_before` of a task until its completion. */
  time_to_finish: Durations;
}

export interface MinutesTotal {
  /** How many tasks were created. */
  tasks_created: number;
  /** How often a task was handed out. */
  tasks_started: number;
  /** How many tasks were completed. */
  tasks_completed: number;
  /** How many attempts ended without a result. */
  attempts_failed: number;
  /** How many tasks failed permanently, without `tasks_cancelled`. */
  tasks_failed: number;
  /** How many tasks were cancelled, or expired. */
  tasks_cancelled: number;
  /** LUX paid, including daily bonuses. */
  lux_paid: number;
  /** How many messages were sent; a broadcast counts once. */
  messages_sent: number;
  /** The time from when a task became ready until its first dispatch. */
  time_to_start: Durations;
  /** The time from the creation or the `not_before` of a task until its completion. */
  time_to_finish: Durations;
}

export interface TaskAnswer<V extends Variant = "A"> {
  success: true;
  /** The id of the task. */
  task_id: string;
  /** The status of the task. task/retry opens a `failed` task again. */
  status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
  /** The node that holds the task, or has completed it. */
  assigned_node: string | null;
  /** The node's hold on the task. */
  lease: Lease;
  /** The task as it is now. */
  task: Task<V>;
  /**
   * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
   * field may be misspelt.
   */
  ignored?: string[] | undefined;
}

export interface EventBatch {
  success: true;
  /** The events, oldest first. */
  events: Event[];
  /** The id of the last event that the hub examined: the next `since`. */
  cursor: number;
  /**
   * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
   * field may be misspelt.
   */
  ignored?: string[] | undefined;
}

/** An error (RFC 9457, problem details). */
export interface Problem {
  /** `urn:luxhub:problem:` and the code. */
  type: string;
  /** The error in a few words; the same for each error of this code. */
  title: string;
  /** The status of the response. */
  status: number;
  /** A sentence that says what to do. */
  detail: string;
  success: false;
  /** The code. Rely on it. */
  error:
    | "invalid_request"
    | "unauthorized"
    | "admin_key_required"
    | "host_not_allowed"
    | "key_bound_to_other_node"
    | "key_not_bound"
    | "not_assigned_to_node"
    | "not_your_message"
    | "viewer_not_allowed"
    | "lower_reward"
    | "mint_limit"
    | "own_work"
    | "not_reviewer"
    | "not_found"
    | "node_not_found"
    | "task_not_found"
    | "message_not_found"
    | "question_not_found"
    | "file_not_found"
    | "budget_not_found"
    | "pause_not_found"
    | "usage_not_found"
    | "limit_not_found"
    | "note_not_found"
    | "key_not_found"
    | "invitation_not_found"
    | "schedule_not_found"
    | "group_not_found"
    | "webhook_not_found"
    | "method_not_allowed"
    | "request_timeout"
    | "task_not_open"
    | "task_not_assigned"
    | "task_completed"
    | "task_failed"
    | "task_not_failed"
    | "wrong_offset"
    | "task_not_ready"
    | "stale_lease"
    | "node_draining"
    | "node_offline"
    | "message_not_parked"
    | "note_version_conflict"
    | "notes_limit"
    | "lease_conflict"
    | "lease_lost"
    | "leases_limit"
    | "nodes_limit"
    | "lux_balance_limit"
    | "task_files_limit"
    | "question_answered"
    | "question_timed_out"
    | "questions_limit"
    | "not_in_review"
    | "review_decided"
    | "verdict_missing"
    | "compared_value_missing"
    | "task_sealed"
    | "node_excluded"
    | "schedules_limit"
    | "webhooks_limit"
    | "usage_limit"
    | "budget_exceeded"
    | "budgets_limit"
    | "paused"
    | "pauses_limit"
    | "limit_reached"
    | "limits_limit"
    | "too_many_lanes"
    | "gifts_limit"
    | "requirements_not_met"
    | "key_exists"
    | "keys_limit"
    | "invitation_used"
    | "invitation_expired"
    | "invitations_limit"
    | "entries_missing"
    | "stale_term"
    | "not_a_standby"
    | "standby"
    | "superseded"
    | "no_standby"
    | "standby_key_required"
    | "ref_refused"
    | "graph_too_large"
    | "body_too_large"
    | "unsupported_media_type"
    | "range_not_satisfiable"
    | "idempotency_key_reused"
    | "quota_exceeded"
    | "too_many_calls"
    | "too_many_wrong_secrets"
    | "client_closed_request"
    | "internal_error"
    | "content_missing"
    | "outcome_unknown"
    | "batch_full"
    | "database_unavailable"
    | "overloaded"
    | "insufficient_storage";
  /** Of `invalid_request`: every field that is wrong. */
  errors?:
    | {
        /** With dots, as `result.problem`; empty for the whole body. */
        path: string;
        /** What to send instead. */
        message: string;
      }[]
    | undefined;
  /** Of `note_version_conflict`: the current version of the note; 0: there is none. */
  version?: number | undefined;
  /** Of `lease_conflict`: the leases that are in the way, oldest first, at most 20. */
  holders?: AdvisoryLease[] | undefined;
  /** Of `quota_exceeded`: what is used, in tasks or in bytes. */
  used?: number | undefined;
  /** Of `quota_exceeded`: what the quota allows. */
  allowed?: number | undefined;
  /** Of `wrong_offset`: where the output continues. */
  expected?: number | undefined;
}

/** What each operation takes and answers. */
export interface Operations<V extends Variant = "A"> {
  /** Registers a node, or updates it, and puts it online */
  "node/register": {
    request: {
      /** The id that the node chooses: 1 to 128 characters of `A-Z a-z 0-9 . _ : -`. */
      node_id: string;
      /** The name that people see. */
      name: string;
      /** Where people can reach the node; not used by the hub. */
      host?: string | undefined;
      /** Where people can reach the node; not used by the hub. */
      port?: number | undefined;
      /** The task types that the node takes; a node without any takes all. Comma-separated, or an array. */
      capabilities?: string | readonly string[] | undefined;
      /**
       * What the node has, as up to 16 amounts by name (at most 64 characters), rounded to three decimals;
       * tasks may require a part of each.
       */
      resources?: Record<string, number> | undefined;
      /** The number of unfinished tasks up to which the hub hands open tasks to the node; null: no limit. */
      max_tasks?: number | undefined;
      /** Whether the balancer may assign tasks to the node. */
      auto_assign?: boolean | undefined;
    };
    answer: {
      success: true;
      /** The id of the node. */
      node_id: string;
      /** The node is online from now on. */
      status: "online";
      /** False if the node was registered before. */
      created: boolean;
      /** Seconds between two heartbeats. */
      heartbeat_interval: number;
      /** Seconds without a heartbeat after which the node is offline. */
      offline_after: number;
      /** The node as it is now. */
      node: Node<V>;
      /**
       * The base URLs of the hub and of its copies, the one that accepts writes first; left out while there
       * is no copy.
       */
      hubs?: string[] | undefined;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Keeps a node online; returns the number of its tasks and messages */
  "node/heartbeat": {
    request: {
      /** The id of the node. */
      node_id: string;
    };
    answer: {
      success: true;
      /** The id of the node. */
      node_id: string;
      /** The node is online. */
      status: "online";
      /** The last heartbeat or registration. */
      last_heartbeat: string;
      /** Seconds between two heartbeats. */
      heartbeat_interval: number;
      /** How many unfinished tasks the node has. */
      tasks_assigned: number;
      /** How many messages are in the node's mailbox. */
      messages_waiting: number;
      /** Whether the node drains: a draining node finishes its tasks and gets no new tasks. */
      drain: boolean;
      /**
       * The base URLs of the hub and of its copies, the one that accepts writes first; left out while there
       * is no copy.
       */
      hubs?: string[] | undefined;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Puts a node offline at once and gives its tasks back */
  "node/leave": {
    request: {
      /** The id of the node. */
      node_id: string;
    };
    answer: {
      success: true;
      /** The id of the node. */
      node_id: string;
      /** The node is offline. */
      status: "offline";
      /** How many tasks the node gave back. */
      tasks_released: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Drains a node, so that it gets no new tasks, or ends a drain */
  "node/drain": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** Whether the node drains: a draining node finishes its tasks and gets no new tasks. */
      drain: boolean;
    };
    answer: {
      success: true;
      /** The id of the node. */
      node_id: string;
      /** Whether the node drains: a draining node finishes its tasks and gets no new tasks. */
      drain: boolean;
      /** How many unfinished tasks the node has. */
      tasks_assigned: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Deletes a node; its tasks are open again, its ledger and messages stay */
  "node/delete": {
    request: {
      /** The id of the node. */
      node_id: string;
    };
    answer: {
      success: true;
      /** The id of the node. */
      node_id: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** All nodes, or a page; filters by state, name and capability */
  "node/list": {
    request: {
      /** Only nodes in this state; `online` includes draining nodes. */
      status?: "online" | "draining" | "offline" | undefined;
      /** Only nodes whose node_id, name or host begins with this, ignoring case. */
      q?: string | undefined;
      /** Only nodes that take tasks of this type: nodes with this capability, or without any. */
      capability?: string | undefined;
      /**
       * `id` (the default); `busy`: most unfinished tasks first, offline nodes last; `lux`: highest balance
       * first.
       */
      order?: "id" | "busy" | "lux" | undefined;
      /**
       * In the query `1`: the response also has the first 3 tasks that each node of the page holds, the
       * oldest first.
       */
      tasks?: "0" | "1" | "true" | "false" | undefined;
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
      /** The `next_cursor` of the previous page, with the same filters and order and without `page`. */
      cursor?: string | undefined;
    };
    answer: {
      success: true;
      /** All nodes. */
      nodes: Node<V>[];
      /** The tasks. */
      tasks?: TaskSummary<V>[] | undefined;
      /** The number of the page, from 1. */
      page?: number | null | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
      /** How many nodes match; null if the hub did not count the nodes. */
      total?: number | null | undefined;
      /** How many pages there are; null if the hub did not count the nodes. */
      pages?: number | null | undefined;
      /** Send this value as `cursor` to get the next page; null at the end. */
      next_cursor?: string | null | undefined;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** One node */
  "node/{node_id}": {
    request: {
      /** The id of the node. */
      node_id: string;
    };
    answer: {
      success: true;
      /** The node as it is now. */
      node: Node<V>;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Creates a task; on B the hub assigns it at once if a node is available */
  "task/create": {
    request: {
      /** What to do, in one line. */
      title: string;
      /** What to do; at most 64 KiB of UTF-8. */
      description: string;
      /** The hub compares it with the capabilities of nodes. A task without a type fits every node. */
      task_type?: string | undefined;
      /**
       * The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or `medium` (the
       * default); 2, `p2` or `low`; `p5` is background work.
       */
      priority?: 0 | 1 | 2 | "high" | "medium" | "low" | "p0" | "p1" | "p2" | "p5" | undefined;
      /** LUX for the node that completes the task, with at most 6 decimals. */
      lux_reward?: number | undefined;
      /** The node that created the task; this node need not be registered. */
      creator_node?: string | undefined;
      /**
       * Assigns the task to this node, which must be online. The task must be ready. If the node gives the
       * task back or goes offline, other nodes may take the task. With a key of another node the task waits
       * in line for this node.
       */
      for_node?: string | undefined;
      /**
       * The ids of uploaded files that belong to no task: the files become inputs of the task in the same
       * commit.
       */
      files?: readonly string[] | undefined;
      /** The ids of the tasks that must be completed first. */
      depends_on?: readonly string[] | undefined;
      /**
       * `fail` (if left out): the task fails when a task in `depends_on` fails or is deleted. `run`: the
       * task starts when all tasks in `depends_on` have ended: completed, failed or deleted.
       */
      on_dependency?: "fail" | "run" | undefined;
      /**
       * While an unfinished task has this key, task/create makes no other task with the key, and returns
       * the existing task (`deduplicated`).
       */
      unique_key?: string | undefined;
      /** Seconds from the creation for which the task holds its `unique_key`, finished or not. */
      unique_for_s?: number | undefined;
      /** Seconds until the task may be handed out. */
      delay_s?: number | undefined;
      /** The task is not handed out before this time. */
      not_before?: string | undefined;
      /** If the task is not completed by this time, the task fails. */
      expires_at?: string | undefined;
      /** Seconds that a node may hold the task without task/extend or task/complete. */
      timeout_s?: number | undefined;
      /** Seconds that one attempt may take in all, extended or not; then the attempt has timed out. */
      max_run_s?: number | undefined;
      /**
       * Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on tasks that
       * were created with it.
       */
      retain_s?: number | undefined;
      /**
       * Who checks the result before the reward is paid: `creator` (without a creator, any node except the
       * worker), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that type for another
       * node.
       */
      review?: string | undefined;
      /** Seconds until the result counts as `on_review_timeout` says; 604,800 (a week) if left out. */
      review_within_s?: number | undefined;
      /** What happens when nobody has reviewed the result in time: `pay` (if left out) or `reject`. */
      on_review_timeout?: "pay" | "reject" | undefined;
      /**
       * Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the
       * maximum number of copies (`results` to 15); if left out, as many as make `results` a majority.
       */
      quorum?:
        | {
            /** How many results must agree. */
            results: number;
            /** How many copies there are at most. */
            of?: number | undefined;
            /**
             * What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON
             * pointers into the result.
             */
            compare?: string | undefined;
          }
        | undefined;
      /**
       * Dollars that all attempts of the task together may cost; the attempt that exceeds this amount ends
       * the task permanently (kind `budget`). Null: no limit.
       */
      max_cost_usd?: number | undefined;
      /** The task fails after this many attempts; by default after 10 failures and timeouts. */
      max_attempts?: number | undefined;
      /**
       * Seconds from a failed attempt until the task is open again (5 by default); doubles with each
       * attempt, up to an hour.
       */
      backoff_s?: number | undefined;
      /**
       * The group that the task joins. A group exists from its first task on. With a key that is bound to a
       * node, the group is NAME/NODE.
       */
      group?: string | undefined;
      /** Up to 16 words by which to find the task, without commas. */
      tags?: readonly string[] | undefined;
      /** What a node must have to get the task: all words in `capabilities`, and enough of each resource. */
      requires?:
        | {
            /** Words that must all be among the capabilities of the node. */
            capabilities?: string | readonly string[] | undefined;
            /** Up to 16 amounts by name (at most 64 characters), rounded to three decimals. */
            resources?: Record<string, number> | undefined;
          }
        | undefined;
      /** The key whose limit (limit/set) applies to the task; if left out, the `task_type`. */
      limit_key?: string | undefined;
      /**
       * The trace to which the task belongs (W3C Trace Context), which workers and webhooks get; if left
       * out, that of the request's header `traceparent`.
       */
      traceparent?: string | undefined;
      /** What tracing systems keep beside `traceparent`. */
      tracestate?: string | undefined;
    };
    answer: {
      success: true;
      /** The id of the task. */
      task_id: string;
      /** The status of the task. task/retry opens a `failed` task again. */
      status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
      /** The node that holds the task, or has completed it. */
      assigned_node: string | null;
      /** The node's hold on the task. */
      lease: Lease;
      /** The task as it is now. */
      task: Task<V>;
      /** Only if true: no task was created, because this task has the `unique_key`. */
      deduplicated?: true | undefined;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Hands a worker its next task, and may wait for one */
  "task/next": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** Seconds to wait for a task; 0, the default, returns at once. */
      wait?: number | undefined;
      /**
       * Only open tasks of these types; tasks that are already assigned to the node are handed out in any
       * case.
       */
      task_types?: readonly string[] | undefined;
      /**
       * Whether to hand out first, again and with a new epoch, the tasks that the node had started and not
       * finished. Each time counts in `restarts` and, if the task has `max_attempts`, as an attempt.
       */
      resume?: boolean | undefined;
    };
    answer: {
      success: true;
      /** The handed-out task; null if there was none within `wait`. */
      task: Task<V> | null;
      /** The node's hold on the task; null without a task. */
      lease: Lease | null;
      /** Whether the node drains: a draining node gets no new tasks. */
      drain: boolean;
      /** What other tasks and earlier attempts leave for the worker of the task; absent if there is nothing. */
      context?: Context<V> | undefined;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Assigns an open task to a node */
  "task/assign": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The id of the node. */
      node_id: string;
    };
    answer: TaskAnswer<V>;
  };

  /** A node claims an open task */
  "task/claim": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The id of the node. */
      node_id: string;
    };
    answer: {
      success: true;
      /** The id of the task. */
      task_id: string;
      /** The status of the task. task/retry opens a `failed` task again. */
      status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
      /** The node that holds the task, or has completed it. */
      assigned_node: string | null;
      /** The node's hold on the task. */
      lease: Lease;
      /** The task as it is now. */
      task: Task<V>;
      /** What other tasks and earlier attempts leave for the worker of the task; absent if there is nothing. */
      context?: Context<V> | undefined;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Completes a task with its result and pays its reward */
  "task/complete": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The id of the node. */
      node_id: string;
      /** The epoch of the lease: any other than the current epoch returns 409 `stale_lease`. */
      epoch?: number | undefined;
      /**
       * The result of the work: three strings of at most 64 KiB each, and any additional properties,
       * together at most 64 KiB of JSON.
       */
      result: {
        /** What the problem was. */
        problem: string;
        /** What was done about it. */
        improvement: string;
        /** What was learned. */
        lesson: string;
        [key: string]: unknown;
      };
      /** What the attempt has used, in at most 20 reports; counted once, and also if the attempt fails. */
      usage?:
        | readonly {
            /** The worker's number for the report: a repeat under the same number in the same attempt counts once. */
            seq: number;
            /** The model that was used. */
            model: string;
            /** Tokens that the model read. */
            input_tokens: number;
            /** Tokens that the model wrote. */
            output_tokens: number;
            /** How many of the input tokens came from a cache. */
            cached_tokens?: number | null | undefined;
            /**
             * Dollars, rounded to a millionth. Left out or null: the worker does not know the cost, which is not
             * zero.
             */
            cost_usd?: number | null | undefined;
          }[]
        | undefined;
    };
    answer: {
      success: true;
      /** The task is completed. */
      status: "completed";
      /** LUX that the task paid. */
      lux_paid: number;
      /** The reward while the result waits for its review; only on tasks with a review. */
      lux_held?: number | undefined;
      /**
       * The entry of the ledger that paid the task; null if nothing was paid. A repeat gets the same
       * receipt.
       */
      receipt: Receipt | null;
      /** The id of the task. */
      task_id: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** A node gives back a task that it holds */
  "task/release": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The id of the node. */
      node_id: string;
      /** The epoch of the lease: any other than the current epoch returns 409 `stale_lease`. */
      epoch?: number | undefined;
      /** The reason, which the event shows. */
      reason?: string | undefined;
      /** What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last checkpoint counts. */
      checkpoint?: unknown | undefined;
      /** What the attempt has used, in at most 20 reports; counted once, and also if the attempt fails. */
      usage?:
        | readonly {
            /** The worker's number for the report: a repeat under the same number in the same attempt counts once. */
            seq: number;
            /** The model that was used. */
            model: string;
            /** Tokens that the model read. */
            input_tokens: number;
            /** Tokens that the model wrote. */
            output_tokens: number;
            /** How many of the input tokens came from a cache. */
            cached_tokens?: number | null | undefined;
            /**
             * Dollars, rounded to a millionth. Left out or null: the worker does not know the cost, which is not
             * zero.
             */
            cost_usd?: number | null | undefined;
          }[]
        | undefined;
      /**
       * Also holds the limit key of the task for this many seconds, as limit/hold does. At most 600 with a
       * key that is bound to a node.
       */
      hold_s?: number | undefined;
    };
    answer: TaskAnswer<V>;
  };

  /** A node reports that its attempt at a task failed */
  "task/fail": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The id of the node. */
      node_id: string;
      /** The epoch of the lease: any other than the current epoch returns 409 `stale_lease`. */
      epoch?: number | undefined;
      /** What went wrong. */
      error: string;
      /** `stalled`: the attempt was ended because nothing was heard of it; `failed` if left out. */
      kind?: "failed" | "stalled" | undefined;
      /** Whether the task may be tried again. */
      retry?: boolean | undefined;
      /** What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last checkpoint counts. */
      checkpoint?: unknown | undefined;
      /** What the attempt has used, in at most 20 reports; counted once, and also if the attempt fails. */
      usage?:
        | readonly {
            /** The worker's number for the report: a repeat under the same number in the same attempt counts once. */
            seq: number;
            /** The model that was used. */
            model: string;
            /** Tokens that the model read. */
            input_tokens: number;
            /** Tokens that the model wrote. */
            output_tokens: number;
            /** How many of the input tokens came from a cache. */
            cached_tokens?: number | null | undefined;
            /**
             * Dollars, rounded to a millionth. Left out or null: the worker does not know the cost, which is not
             * zero.
             */
            cost_usd?: number | null | undefined;
          }[]
        | undefined;
      /**
       * Also holds the limit key of the task for this many seconds, as limit/hold does. At most 600 with a
       * key that is bound to a node.
       */
      hold_s?: number | undefined;
    };
    answer: TaskAnswer<V>;
  };

  /** Extends the lease of a task; can report progress, a checkpoint, usage */
  "task/extend": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The id of the node. */
      node_id: string;
      /** The epoch of the lease: any other than the current epoch returns 409 `stale_lease`. */
      epoch?: number | undefined;
      /** The progress of the work, which the task shows as `progress`. */
      note?: string | undefined;
      /** What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last checkpoint counts. */
      checkpoint?: unknown | undefined;
      /** What the attempt has used, in at most 20 reports; counted once, and also if the attempt fails. */
      usage?:
        | readonly {
            /** The worker's number for the report: a repeat under the same number in the same attempt counts once. */
            seq: number;
            /** The model that was used. */
            model: string;
            /** Tokens that the model read. */
            input_tokens: number;
            /** Tokens that the model wrote. */
            output_tokens: number;
            /** How many of the input tokens came from a cache. */
            cached_tokens?: number | null | undefined;
            /**
             * Dollars, rounded to a millionth. Left out or null: the worker does not know the cost, which is not
             * zero.
             */
            cost_usd?: number | null | undefined;
          }[]
        | undefined;
    };
    answer: {
      success: true;
      /** The id of the task. */
      task_id: string;
      /** The status of the task. task/retry opens a `failed` task again. */
      status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
      /** The node that holds the task, or has completed it. */
      assigned_node: string | null;
      /** The node's hold on the task. */
      lease: Lease;
      /** The task as it is now. */
      task: Task<V>;
      /** What the task may still cost; null without `max_cost_usd`. */
      budget_left_usd: number | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Opens a failed task again; can also open its failed dependents */
  "task/retry": {
    request: {
      /** The id of the task. */
      task_id: string;
      /**
       * Also opens, in the same commit, the tasks that failed only because of this task: up to 250 tasks,
       * the oldest first. If the task itself has not failed, it does not change.
       */
      with_dependents?: boolean | undefined;
      /** False: the checkpoint of earlier attempts is removed. True if left out. */
      keep_checkpoint?: boolean | undefined;
      /** Replaces the `max_cost_usd` of the task: needed if the task has already cost more. */
      max_cost_usd?: number | undefined;
    };
    answer: {
      success: true;
      /** The id of the task. */
      task_id: string;
      /** The status of the task. task/retry opens a `failed` task again. */
      status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
      /** The node that holds the task, or has completed it. */
      assigned_node: string | null;
      /** The node's hold on the task. */
      lease: Lease;
      /** The task as it is now. */
      task: Task<V>;
      /** Only with `with_dependents`. */
      dependents?:
        | {
            /** How many dependents were opened again. */
            opened: number;
            /** How many tasks are left, at most 100,000: repeat the call. */
            left: number;
          }
        | undefined;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Cancels an unfinished task, which then fails */
  "task/cancel": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The node that cancels the task. */
      node_id?: string | undefined;
      /** The reason, which the event shows. */
      reason?: string | undefined;
    };
    answer: TaskAnswer<V>;
  };

  /** Changes a task that nobody holds */
  "task/update": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** What to do, in one line. */
      title?: string | undefined;
      /** What to do; at most 64 KiB of UTF-8. */
      description?: string | undefined;
      /**
       * The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or `medium` (the
       * default); 2, `p2` or `low`; `p5` is background work.
       */
      priority?: 0 | 1 | 2 | "high" | "medium" | "low" | "p0" | "p1" | "p2" | "p5" | undefined;
      /** The new reward. To lower a reward, send the administrator key too. */
      lux_reward?: number | undefined;
      /** The task is not handed out before this time. A time in the past, or null: at once. */
      not_before?: string | null | undefined;
      /** If the task is not completed by this time, the task fails; null: the task does not expire. */
      expires_at?: string | null | undefined;
      /** The new tags of the task, in place of all old tags; `[]`: none. */
      tags?: readonly string[] | undefined;
      /** The key whose limit applies to the task; null: its `task_type`. */
      limit_key?: string | null | undefined;
    };
    answer: TaskAnswer<V>;
  };

  /** Takes a task back from its node, or gives it to another */
  "task/revoke": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The node that gets the task; if left out, the task is open again. */
      node_id?: string | undefined;
      /** The reason, which the event shows. */
      reason?: string | undefined;
    };
    answer: TaskAnswer<V>;
  };

  /** A: assigns each task of a list; B: lets the balancer assign open tasks */
  "task/batch-assign": {
    request: By<
      V,
      {
        /** The tasks and the nodes that get them. */
        assignments: readonly {
          /** The id of the task. */
          task_id: string;
          /** The id of the node. */
          node_id: string;
        }[];
      },
      Record<never, never>
    >;
    answer: By<
      V,
      {
        success: true;
        /** The result of each assignment, in the same order. */
        results: {
          /** The id of the task. */
          task_id: string;
          /** The id of the node. */
          node_id: string;
          success: boolean;
          /** The code of the error; null if it succeeded. */
          error: string | null;
        }[];
        /**
         * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
         * field may be misspelt.
         */
        ignored?: string[] | undefined;
      },
      {
        success: true;
        /** How many tasks were assigned. */
        assigned: number;
        /** How many open tasks are left. */
        pending: number;
        /** The tasks and the nodes that get them. */
        assignments: {
          /** The id of the task. */
          task_id: string;
          /** The id of the node. */
          node_id: string;
        }[];
        /**
         * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
         * field may be misspelt.
         */
        ignored?: string[] | undefined;
      }
    >;
  };

  /** Deletes a task permanently */
  "task/delete": {
    request: {
      /** The id of the task. */
      task_id: string;
    };
    answer: {
      success: true;
      /** The id of the task. */
      task_id: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Tasks, newest first; filters by state, node, type, title and more */
  "task/list": {
    request: {
      /**
       * Only tasks of this status, in the words of either variant; also `in_review` (completed, and the
       * result waits for its review) and `cancelled` (failed, because it was cancelled or has expired).
       */
      status?:
        "open" | "assigned" | "pending" | "completed" | "failed" | "in_review" | "cancelled" | undefined;
      /** Only tasks that this node holds or has completed, or whose last attempt failed at this node. */
      node_id?: string | undefined;
      /** Only tasks that were created with this `creator_node`. */
      creator_node?: string | undefined;
      /** Only tasks of this type. */
      task_type?: string | undefined;
      /** Only tasks of this group. */
      group?: string | undefined;
      /** Only tasks with this tag. One call examines 10,000 tasks; continue with next_cursor. */
      tag?: string | undefined;
      /** Only failed tasks whose last attempt failed at this node. */
      failed_by?: string | undefined;
      /** Only tasks whose last failure is of this kind, or of one of several, comma-separated. */
      failure_kind?: string | undefined;
      /**
       * Only failed tasks of this group of stats/failures, the latest failure first, as with
       * `order=updated`.
       */
      failure_group?: string | undefined;
      /**
       * Words, each of which must begin a word of the failure's message: only failed tasks, the latest
       * failure first.
       */
      failure_q?: string | undefined;
      /** Only tasks whose `updated_at` is not before this time. */
      since?: string | undefined;
      /** Only tasks whose `updated_at` is before this time. */
      until?: string | undefined;
      /**
       * Only open tasks that are held back: for `any` reason, or counted under this code in stats/types;
       * `none`: only open tasks that nothing holds back.
       */
      held?:
        | "any"
        | "none"
        | "paused"
        | "limit"
        | "rate"
        | "budget"
        | "no_node"
        | "nodes_offline"
        | "nodes_draining"
        | "depends_on"
        | "question"
        | "quorum"
        | "not_before"
        | undefined;
      /**
       * Words, each of which must begin a word of the title. One call examines 10,000 tasks; continue with
       * next_cursor.
       */
      q?: string | undefined;
      /**
       * `created` (if left out); `updated`: the last change first, which needs `status=failed` or
       * `failed_by`.
       */
      order?: "created" | "updated" | undefined;
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
      /** The `next_cursor` of the previous page, with the same filters and without `page`. */
      cursor?: string | undefined;
    };
    answer: {
      success: true;
      /** The tasks. */
      tasks: Task<V>[];
      /** The number of the page, from 1. */
      page: number | null;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** How many tasks match; null if the hub did not count the tasks. */
      total: number | null;
      /** How many pages there are; null if the hub did not count the tasks. */
      pages: number | null;
      /** Send this value as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Tasks, newest first; filters by state, node, type, title and more */
  "task/list?fields=summary": {
    request: {
      /**
       * Only tasks of this status, in the words of either variant; also `in_review` (completed, and the
       * result waits for its review) and `cancelled` (failed, because it was cancelled or has expired).
       */
      status?:
        "open" | "assigned" | "pending" | "completed" | "failed" | "in_review" | "cancelled" | undefined;
      /** Only tasks that this node holds or has completed, or whose last attempt failed at this node. */
      node_id?: string | undefined;
      /** Only tasks that were created with this `creator_node`. */
      creator_node?: string | undefined;
      /** Only tasks of this type. */
      task_type?: string | undefined;
      /** Only tasks of this group. */
      group?: string | undefined;
      /** Only tasks with this tag. One call examines 10,000 tasks; continue with next_cursor. */
      tag?: string | undefined;
      /** Only failed tasks whose last attempt failed at this node. */
      failed_by?: string | undefined;
      /** Only tasks whose last failure is of this kind, or of one of several, comma-separated. */
      failure_kind?: string | undefined;
      /**
       * Only failed tasks of this group of stats/failures, the latest failure first, as with
       * `order=updated`.
       */
      failure_group?: string | undefined;
      /**
       * Words, each of which must begin a word of the failure's message: only failed tasks, the latest
       * failure first.
       */
      failure_q?: string | undefined;
      /** Only tasks whose `updated_at` is not before this time. */
      since?: string | undefined;
      /** Only tasks whose `updated_at` is before this time. */
      until?: string | undefined;
      /**
       * Only open tasks that are held back: for `any` reason, or counted under this code in stats/types;
       * `none`: only open tasks that nothing holds back.
       */
      held?:
        | "any"
        | "none"
        | "paused"
        | "limit"
        | "rate"
        | "budget"
        | "no_node"
        | "nodes_offline"
        | "nodes_draining"
        | "depends_on"
        | "question"
        | "quorum"
        | "not_before"
        | undefined;
      /**
       * Words, each of which must begin a word of the title. One call examines 10,000 tasks; continue with
       * next_cursor.
       */
      q?: string | undefined;
      /**
       * `created` (if left out); `updated`: the last change first, which needs `status=failed` or
       * `failed_by`.
       */
      order?: "created" | "updated" | undefined;
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
      /** The `next_cursor` of the previous page, with the same filters and without `page`. */
      cursor?: string | undefined;
    };
    answer: {
      success: true;
      /** The tasks. */
      tasks: TaskSummary<V>[];
      /** The number of the page, from 1. */
      page: number | null;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** How many tasks match; null if the hub did not count the tasks. */
      total: number | null;
      /** How many pages there are; null if the hub did not count the tasks. */
      pages: number | null;
      /** Send this value as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** How many tasks match the filters of task/list */
  "task/count": {
    request: {
      /**
       * Only tasks of this status, in the words of either variant; also `in_review` (completed, and the
       * result waits for its review) and `cancelled` (failed, because it was cancelled or has expired).
       */
      status?:
        "open" | "assigned" | "pending" | "completed" | "failed" | "in_review" | "cancelled" | undefined;
      /** Only tasks that this node holds or has completed, or whose last attempt failed at this node. */
      node_id?: string | undefined;
      /** Only tasks that were created with this `creator_node`. */
      creator_node?: string | undefined;
      /** Only tasks of this type. */
      task_type?: string | undefined;
      /** Only tasks of this group. */
      group?: string | undefined;
      /** Only tasks with this tag. One call examines 10,000 tasks; continue with next_cursor. */
      tag?: string | undefined;
      /** Only failed tasks whose last attempt failed at this node. */
      failed_by?: string | undefined;
      /** Only tasks whose last failure is of this kind, or of one of several, comma-separated. */
      failure_kind?: string | undefined;
      /**
       * Only failed tasks of this group of stats/failures, the latest failure first, as with
       * `order=updated`.
       */
      failure_group?: string | undefined;
      /**
       * Words, each of which must begin a word of the failure's message: only failed tasks, the latest
       * failure first.
       */
      failure_q?: string | undefined;
      /** Only tasks whose `updated_at` is not before this time. */
      since?: string | undefined;
      /** Only tasks whose `updated_at` is before this time. */
      until?: string | undefined;
      /**
       * Only open tasks that are held back: for `any` reason, or counted under this code in stats/types;
       * `none`: only open tasks that nothing holds back.
       */
      held?:
        | "any"
        | "none"
        | "paused"
        | "limit"
        | "rate"
        | "budget"
        | "no_node"
        | "nodes_offline"
        | "nodes_draining"
        | "depends_on"
        | "question"
        | "quorum"
        | "not_before"
        | undefined;
      /**
       * Words, each of which must begin a word of the title. One call examines 10,000 tasks; continue with
       * next_cursor.
       */
      q?: string | undefined;
    };
    answer: {
      success: true;
      /** How many tasks match. */
      count: number;
      /** False: more tasks may match, because one call examines 50,000 tasks. */
      exact: boolean;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Waits until all, or any, of several tasks are completed or have failed */
  "task/wait": {
    request: {
      /** The ids of 1 to 100 tasks, comma-separated. */
      task_ids: string;
      /** `all` (the default) or `any`: which of the tasks must have ended. */
      until?: "all" | "any" | undefined;
      /** Seconds to wait; 0, the default, returns at once. */
      wait?: number | undefined;
    };
    answer: {
      success: true;
      /** Whether all, or any, of the tasks have ended, as `until` asks. */
      done: boolean;
      /** The state of each task, in the order of `task_ids`. */
      tasks: {
        /** The id of the task. */
        task_id: string;
        /** What to do, in one line. */
        title: string;
        /** The status of the task. task/retry opens a `failed` task again. */
        status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
        /** The node that holds the task, or has completed it. */
        assigned_node: string | null;
        /** The last note of the node that holds the task. */
        progress: string | null;
        /** Why the last attempt, or the task, failed. */
        failure: Failure | null;
        /** When the record last changed. */
        updated_at: string;
      }[];
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The open tasks that a node could claim, best first */
  "task/pull": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** The maximum number to return. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The tasks. */
      tasks: Task<V>[];
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Tasks counted by status, and the nodes that completed the most */
  "task/stats": {
    request: Record<never, never>;
    answer: {
      success: true;
      /** The total number. */
      total: number;
      /** How many tasks there are of each status. */
      by_status: By<
        V,
        {
          /** How many of the tasks are open. */
          open: number;
          /** How many of the tasks are assigned. */
          assigned: number;
          /** How many of the tasks are completed. */
          completed: number;
          /** How many of the tasks have failed. */
          failed: number;
        },
        {
          /** How many of the tasks are open or assigned. */
          pending: number;
          /** How many of the tasks are completed. */
          completed: number;
          /** How many of the tasks have failed. */
          failed: number;
        }
      >;
      /** The nodes that completed most, at most 10. */
      top_nodes: {
        /** The id of the node. */
        node_id: string;
        /** How many tasks the node has completed. */
        completed: number;
        /** LUX that the node earned with completed tasks. */
        lux_earned: number;
      }[];
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** One task; may wait until it is completed or has failed */
  "task/{task_id}": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** Seconds to wait until the task is completed or has failed. */
      wait?: number | undefined;
      /** `1`: the response also has the `context` of the task. */
      context?: "0" | "1" | "true" | "false" | undefined;
    };
    answer: {
      success: true;
      /** The task as it is now. */
      task: TaskDetails<V>;
      /** What other tasks and earlier attempts leave for the worker of the task; absent if there is nothing. */
      context?: Context<V> | undefined;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The tasks on which a task depends, with their results and files */
  "task/{task_id}/inputs": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The `next_cursor` of the page before. */
      cursor?: string | undefined;
      /** The maximum number to return. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The tasks in `depends_on`, in that order. */
      inputs: TaskInput<V>[];
      /** The total number. */
      total: number;
      /** Send this value as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The dependencies of a task, in layers, and the tasks that wait for it */
  "task/{task_id}/graph": {
    request: {
      /** The id of the task. */
      task_id: string;
    };
    answer: {
      success: true;
      /**
       * The task, the tasks that it depends on in up to 3 layers, and the tasks that wait for it in one
       * layer. A layer has up to 50 tasks.
       */
      tasks: {
        /** The id of the task. */
        task_id: string;
        /** What to do, in one line. */
        title: string;
        /** The status of the task. task/retry opens a `failed` task again. */
        status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
        /** The node that holds the task, or has completed it. */
        assigned_node: string | null;
        /** The tasks in `depends_on` that the response has. */
        depends_on: string[];
        /** How many of the tasks in `depends_on` have not ended as this task needs. */
        unmet_count: number;
        /**
         * 0: the task itself; -1: its dependencies; -2, -3: the dependencies of these; 1: tasks that wait for
         * the task, or failed because of it.
         */
        layer: number;
      }[];
      /** How many tasks wait for the task, or failed because of it; at most 10,000 are counted. */
      dependents: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Lessons of completed tasks, newest first; filters by type and words */
  lessons: {
    request: {
      /** Words, each of which must begin a word of the lesson or of the title of its task. */
      q?: string | undefined;
      /** Only lessons of tasks of this `task_type`. */
      type?: string | undefined;
      /** The `next_cursor` of the page before. */
      cursor?: string | undefined;
      /** The maximum number to return. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The newest task first. Lessons that say nothing (none, n/a, -) are left out. */
      lessons: Lesson[];
      /** How many completed tasks this call has examined: at most 10,000. */
      looked: number;
      /** Send this value as `cursor` to examine older tasks; null when all tasks have been examined. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Appends output of a running task */
  "task/output": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The id of the node. */
      node_id: string;
      /** The epoch of the lease: any other than the current epoch returns 409 `stale_lease`. */
      epoch?: number | undefined;
      /**
       * The offset of the first byte of `data` in the output of this attempt, in bytes of UTF-8. A repeat
       * of what was sent changes nothing.
       */
      offset: number;
      /** 1 to 65,536 bytes of text, without NUL. */
      data: string;
    };
    answer: {
      success: true;
      /** The id of the task. */
      task_id: string;
      /** The attempt: the epoch of the lease. */
      attempt: number;
      /** Where the next piece begins. */
      next_offset: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The output of an attempt of a task; may wait for more */
  "task/{task_id}/output": {
    request: {
      /** The id of the task. */
      task_id: string;
      /**
       * The attempt: the epoch of its lease. In a query: if left out, the newest attempt with output; if
       * this attempt has none, the next attempt with output. In a response null: no attempt has output.
       */
      attempt?: number | undefined;
      /** The offset to read from: 0 if left out. */
      from?: number | undefined;
      /** Seconds to wait until there is more, or the attempt or the task has ended. */
      wait?: number | undefined;
    };
    answer: {
      success: true;
      /** The id of the task. */
      task_id: string;
      /** The status of the task. task/retry opens a `failed` task again. */
      status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
      /**
       * The attempt: the epoch of its lease. In a query: if left out, the newest attempt with output; if
       * this attempt has none, the next attempt with output. In a response null: no attempt has output.
       */
      attempt: number | null;
      /** The offset of the first byte of `data`. */
      offset: number;
      /** The text from `offset` on: at most 256 KiB, up to a part that is no longer kept. */
      data: string;
      /** The offset to read from next. */
      next_offset: number;
      /** How many bytes between `from` and `offset` are no longer kept. */
      dropped: number;
      /** The number of bytes. */
      size: number;
      /** Whether this attempt sends no more; without an attempt: whether the task is finished. */
      ended: boolean;
      /** The attempts whose output is kept, oldest first. */
      attempts: OutputAttempt[];
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** A node asks a person, or another agent, about a task that it holds */
  "task/ask": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The id of the node. */
      node_id: string;
      /** The epoch of the lease: any other than the current epoch returns 409 `stale_lease`. */
      epoch?: number | undefined;
      /** What the worker wants to know. */
      question: string;
      /** Answers that the worker suggests; any other answer is possible too. */
      choices?: readonly string[] | undefined;
      /**
       * The JSON Schema (at most 8 KiB) of the answer that the worker expects. The hub shows the schema,
       * but does not enforce it.
       */
      schema?: unknown | undefined;
      /** Seconds until the question times out; a day if left out. */
      within_s?: number | undefined;
      /**
       * Gives the task back in the same commit; this is not an attempt. The task is not ready while a
       * question about it is open.
       */
      park?: boolean | undefined;
      /** Seconds to wait for the answer; 0, the default, returns at once. The wait is no heartbeat. */
      wait?: number | undefined;
    };
    answer: {
      success: true;
      /** The question. */
      question: Question;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Answers a question of a task; the first answer counts */
  "task/answer": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The id of the question. */
      question_id: string;
      /** The answer: any JSON but null, at most 16 KiB. */
      answer: unknown;
      /** The node that answers. */
      node_id?: string | undefined;
    };
    answer: {
      success: true;
      /** The question. */
      question: Question;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Answers a question with a choice, by a token from a notification */
  "task/answer-by-token": {
    request: {
      /** The token of a button in a notification. */
      token: string;
    };
    answer: {
      success: true;
      /** The question. */
      question: Question;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The questions of a task with their answers; may wait until one changes */
  "task/{task_id}/questions": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** Only this question: then `wait` ends when the question is answered or timed out. */
      question_id?: string | undefined;
      /** Seconds to wait until a question is asked, answered or timed out; 0, the default, returns at once. */
      wait?: number | undefined;
      /** The `version` that the caller knows: a wait ends at once if there is a newer version. */
      since?: number | undefined;
      /** The `next_cursor` of the page before. */
      cursor?: string | undefined;
      /** The maximum number to return. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The questions of the task, oldest first. */
      questions: Question[];
      /** How many questions the task has. */
      total: number;
      /** Grows with each question that is asked, answered or timed out. */
      version: number;
      /** Send this value as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The open questions of all tasks, the most urgent first */
  questions: {
    request: {
      /** Only `open`, which is also the default. */
      state?: "open" | undefined;
      /** The `next_cursor` of the page before. */
      cursor?: string | undefined;
      /** The maximum number to return. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The open questions, the most urgent first, with the title and the creator of their tasks. */
      questions: OpenQuestion[];
      /** How many are open, counted up to 10,000. */
      total: number;
      /** Send this value as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Passes or rejects a result: pays the reward, or opens the task again */
  "task/review": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The node that reviews. */
      node_id?: string | undefined;
      /** `pass` pays the reward. `reject` opens the task again, or fails the task after its last attempt. */
      verdict: "pass" | "reject";
      /** For the next worker of the task, who gets the note in `context.review`. */
      note?: string | undefined;
      /** `review.epoch` of the result that was checked: if the task has a newer result, 409 `stale_lease`. */
      epoch?: number | undefined;
    };
    answer: TaskAnswer<V>;
  };

  /** The results that wait for a review, the most urgent first */
  reviews: {
    request: {
      /** The `next_cursor` of the page before. */
      cursor?: string | undefined;
      /** The maximum number to return. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The results that wait, the most urgent first. */
      reviews: PendingReview[];
      /** The total number. */
      total: number;
      /** Send this value as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Sends a message to one node */
  "message/send": {
    request: {
      /** The sender, which need not be registered. */
      from_node: string;
      /** The recipient. */
      to_node: string;
      /** The message itself; at most 256 KiB of UTF-8. */
      content: string;
      /** The kind of message. */
      type?: "text" | "task" | "status" | undefined;
      /**
       * Whether the recipient must acknowledge the message; until then the hub delivers the message again,
       * up to 5 times.
       */
      require_ack?: boolean | undefined;
      /**
       * The id of the message to which this message replies; the sender must have sent or received that
       * message.
       */
      reply_to?: string | undefined;
      /**
       * The conversation: the id of its first message, or a name that the sender gives. A reply continues
       * the conversation of the message to which it replies.
       */
      thread?: string | undefined;
    };
    answer: {
      success: true;
      /** The id of the message. */
      message_id: string;
      /** The transport of messages: `sqlite`, `postgresql` or `redis`. */
      transport: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Takes messages out of a mailbox, oldest first; may wait for the first */
  "message/receive": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** The maximum number to return. */
      count?: number | undefined;
      /** Whether to wait for the first message. */
      blocking?: boolean | undefined;
      /** Seconds to wait. */
      timeout?: number | undefined;
    };
    answer: {
      success: true;
      /** The maximum number to return. */
      count: number;
      /** The messages. */
      messages: ReceivedMessage[];
      /** The transport of messages: `sqlite`, `postgresql` or `redis`. */
      transport: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Sends a message to all online nodes, or to the nodes for a task type */
  "message/broadcast": {
    request: {
      /** The sender, which need not be registered. */
      from_node: string;
      /** The message itself; at most 256 KiB of UTF-8. */
      content: string;
      /** The kind of message. */
      type?: "broadcast" | "alert" | "update" | undefined;
      /** Only to nodes that take tasks of this type: nodes with this capability, or without any. */
      capability?: string | undefined;
      /**
       * The id of the message to which this message replies; the sender must have sent or received that
       * message.
       */
      reply_to?: string | undefined;
      /**
       * The conversation: the id of its first message, or a name that the sender gives. A reply continues
       * the conversation of the message to which it replies.
       */
      thread?: string | undefined;
    };
    answer: {
      success: true;
      /** The recipients of the broadcast. */
      receivers: string[];
      /** The id of the message. */
      message_id: string;
      /** The transport of messages: `sqlite`, `postgresql` or `redis`. */
      transport: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Acknowledges a message */
  "message/ack": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** The id of the message. */
      message_id: string;
    };
    answer: {
      success: true;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The messages that a node sent or got, newest first */
  "message/history": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** The id of a message: only messages before this message. */
      before?: string | undefined;
      /** Only messages of this conversation, among its newest 2,000. */
      thread?: string | undefined;
      /** The maximum number to return. */
      count?: number | undefined;
    };
    answer: {
      success: true;
      /** The maximum number to return. */
      count: number;
      /** The messages. */
      messages: HistoryMessage[];
      /** The transport of messages: `sqlite`, `postgresql` or `redis`. */
      transport: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Dead letters: the messages that nodes never acknowledged, oldest first */
  "message/parked": {
    request: {
      /** The node; if left out, all nodes, or the node that the key is bound to. */
      node_id?: string | undefined;
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /** The messages. */
      messages: HistoryMessage[];
      /** The number of the page, from 1. */
      page: number;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** How many parked messages there are; of all nodes counted up to 100,000. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /** Only without `node_id`: the 50 nodes with the most parked messages. */
      by_node?:
        | {
            /** The id of the node. */
            node_id: string;
            /** How many messages of the node are parked. */
            count: number;
          }[]
        | undefined;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Puts a parked message back into its mailbox, with deliveries 0 */
  "message/redrive": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** The id of the message. */
      message_id: string;
    };
    answer: {
      success: true;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Sends a message to one node */
  "agent/message": {
    request: {
      /** The sender, which need not be registered. */
      from_node: string;
      /** The recipient. */
      to_node: string;
      /** The message itself; at most 256 KiB of UTF-8. */
      content: string;
      /** The kind of message. */
      type?: "text" | "task" | "status" | undefined;
      /**
       * Whether the recipient must acknowledge the message; until then the hub delivers the message again,
       * up to 5 times.
       */
      require_ack?: boolean | undefined;
      /**
       * The id of the message to which this message replies; the sender must have sent or received that
       * message.
       */
      reply_to?: string | undefined;
      /**
       * The conversation: the id of its first message, or a name that the sender gives. A reply continues
       * the conversation of the message to which it replies.
       */
      thread?: string | undefined;
    };
    answer: {
      success: true;
      /** The id of the message. */
      message_id: string;
      /** The transport of messages: `sqlite`, `postgresql` or `redis`. */
      transport: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The messages that a node got, newest first, without taking any out */
  "agent/messages": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** The id of a message: only messages after this message. */
      since?: string | undefined;
      /** The id of a message: only messages before this message. */
      before?: string | undefined;
      /** The maximum number to return. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The maximum number to return. */
      count: number;
      /** The messages. */
      messages: HistoryMessage[];
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Sends a message to all online nodes, or to the nodes for a task type */
  "agent/broadcast": {
    request: {
      /** The sender, which need not be registered. */
      from_node: string;
      /** The message itself; at most 256 KiB of UTF-8. */
      content: string;
      /** The kind of message. */
      type?: "broadcast" | "alert" | "update" | undefined;
      /** Only to nodes that take tasks of this type: nodes with this capability, or without any. */
      capability?: string | undefined;
      /**
       * The id of the message to which this message replies; the sender must have sent or received that
       * message.
       */
      reply_to?: string | undefined;
      /**
       * The conversation: the id of its first message, or a name that the sender gives. A reply continues
       * the conversation of the message to which it replies.
       */
      thread?: string | undefined;
    };
    answer: {
      success: true;
      /** The recipients of the broadcast. */
      receivers: string[];
      /** The id of the message. */
      message_id: string;
      /** The transport of messages: `sqlite`, `postgresql` or `redis`. */
      transport: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Acknowledges a message */
  "agent/ack": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** The id of the message. */
      message_id: string;
    };
    answer: {
      success: true;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Writes a note; with if_version only if the note has that version */
  "note/put": {
    request: {
      /** The name of the note, any text: for example `api/decisions`. */
      key: string;
      /** The content, at most 16 KiB. */
      text: string;
      /** Who writes; if left out, the node of the key. */
      node_id?: string | undefined;
      /**
       * Only if the note has this version; 0: only if there is no note with this key. If left out, any
       * version.
       */
      if_version?: number | undefined;
    };
    answer: {
      success: true;
      /** The note as it is now. */
      note: NoteHead;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** A note with its text */
  "note/get": {
    request: {
      /** The name of the note. */
      key: string;
    };
    answer: {
      success: true;
      /** The note. */
      note: Note;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The notes by key, without their content */
  "note/list": {
    request: {
      /** Only notes whose key begins with this. */
      prefix?: string | undefined;
      /** The `next_cursor` of the previous page, with the same prefix. */
      cursor?: string | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /**
       * The notes by key. A page of a search may have fewer than `per_page` although `next_cursor`
       * continues.
       */
      notes: NoteHead[];
      /** Send this value as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The notes whose key or text has the words of a search, by key */
  "note/search": {
    request: {
      /** Words, each of which must begin a word of the key or the text, ignoring case. */
      q: string;
      /** Only notes whose key begins with this. */
      prefix?: string | undefined;
      /** The `next_cursor` of the previous page, with the same search. */
      cursor?: string | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /**
       * The notes by key. A page of a search may have fewer than `per_page` although `next_cursor`
       * continues.
       */
      notes: FoundNote[];
      /** Send this value as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Deletes a note */
  "note/delete": {
    request: {
      /** The name of the note. */
      key: string;
      /** Who deletes the note; if left out, the node of the key. */
      node_id?: string | undefined;
      /**
       * Only if the note has this version; 0: only if there is no note with this key. If left out, any
       * version.
       */
      if_version?: number | undefined;
    };
    answer: {
      success: true;
      /** The note that was deleted. */
      note: NoteHead;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Takes an advisory lease on a name or a glob of paths, or renews it */
  "lease/acquire": {
    request: {
      /**
       * A name, or a path or glob of paths: `*` stands for characters within a segment, a segment `**` for
       * any segments; `src/` is `src/**`.
       */
      name: string;
      /** The node that takes the lease; it must be online. */
      node_id: string;
      /** Seconds until the deadline, at most 86,400; if left out 300, or 30 days with `task_id`. */
      ttl_s?: number | undefined;
      /** Whether other nodes may have a shared lease on the same name; false if left out. */
      shared?: boolean | undefined;
      /** A task that the node holds: the lease ends with it. */
      task_id?: string | undefined;
      /** The `epoch` of the task's lease: an old epoch returns 409 `stale_lease`. */
      epoch?: number | undefined;
    };
    answer: {
      success: true;
      /** The lease. */
      lease: AdvisoryLease;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Moves the deadline of an advisory lease */
  "lease/renew": {
    request: {
      /** The name or glob of lease/acquire. */
      name: string;
      /** The node that has the lease. */
      node_id: string;
      /** Only the lease for this task. */
      task_id?: string | undefined;
      /** The fencing number of the lease that is meant; any if left out. */
      fencing?: number | undefined;
      /** Seconds until the deadline; if left out, the last `ttl_s` of the lease. */
      ttl_s?: number | undefined;
    };
    answer: {
      success: true;
      /** The lease. */
      lease: AdvisoryLease;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Ends an advisory lease */
  "lease/release": {
    request: {
      /** The name or glob of lease/acquire. */
      name: string;
      /** The node that has the lease. */
      node_id: string;
      /** Only the lease for this task. */
      task_id?: string | undefined;
      /** The fencing number of the lease that is meant; any if left out. */
      fencing?: number | undefined;
    };
    answer: {
      success: true;
      /** How many leases ended: 0 for a repeat. */
      released: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The advisory leases that nodes have now, oldest first */
  "lease/list": {
    request: {
      /** Only leases of this node. */
      node_id?: string | undefined;
      /** Only leases for this task. */
      task_id?: string | undefined;
      /** The `next_cursor` of the previous page, with the same filter. */
      cursor?: string | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /** The leases, oldest first. */
      leases: AdvisoryLease[];
      /** Send this value as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Pays a node its daily bonus, once per UTC day */
  signin: {
    request: {
      /** The id of the node. */
      node_id: string;
    };
    answer: {
      success: true;
      /** LUX that this call paid. */
      lux_earned: number;
      /** Whether the node had already signed in on this day (UTC). */
      already_signed_in: boolean;
      /** The sum of the node's ledger entries. */
      lux_balance: number;
      /** The next midnight in UTC. */
      next_signin_at: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The ledger entries of a node, newest first */
  "lux/ledger": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /** The entries. */
      entries: LedgerEntry[];
      /** The number of the page, from 1. */
      page: number;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** The total number. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The nodes that earned the most LUX since a time */
  "lux/top": {
    request: {
      /** Only LUX that was earned from this time on. */
      since: string;
    };
    answer: {
      success: true;
      /** The 50 nodes that earned the most, the most first. */
      nodes: {
        /** The id of the node. */
        node_id: string;
        /** The LUX that the node has earned since then, including daily bonuses. */
        lux_earned: number;
        /** How many ledger entries the node has since then. */
        entries: number;
      }[];
      /** False: there are more entries, because one call examines the newest 200,000. */
      exact: boolean;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The whole ledger after an entry, oldest first, with the hash chain */
  "lux/entries": {
    request: {
      /** The `seq` of the last entry read; 0 if left out. */
      since?: number | undefined;
      /** The maximum number to return. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The entries. */
      entries: LedgerEntry[];
      /** The newest entry of the ledger. */
      head: LedgerHead;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The newest entry of the whole ledger: its number and its hash */
  "lux/head": {
    request: Record<never, never>;
    answer: {
      success: true;
      /** The newest entry of the ledger. */
      head: LedgerHead;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Groups by name, with their counts */
  "group/list": {
    request: {
      /** The beginning of the name. */
      q?: string | undefined;
      /** How many groups to return at most. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page. */
      cursor?: string | undefined;
    };
    answer: {
      success: true;
      /** The groups, by name. */
      groups: {
        /** The name of the group of tasks; NAME/NODE of a group of a node's keys. */
        group: string;
        /** Whether no task of the group is unfinished. */
        done: boolean;
        /** The total number. */
        total: number;
        /**
         * How many tasks of the group have not ended: open and assigned tasks, and results that wait for a
         * review.
         */
        unfinished: number;
        /** How many completed tasks of the group wait for their review; only if there are any. */
        in_review?: number | undefined;
        /**
         * How many tasks were cancelled; of a group also those that expired, which `by_status.failed` leaves
         * out.
         */
        cancelled?: number | undefined;
        /** How many tasks there are of each status. */
        by_status: By<
          V,
          {
            /** How many of the tasks are open. */
            open: number;
            /** How many of the tasks are assigned. */
            assigned: number;
            /** How many of the tasks are completed. */
            completed: number;
            /** How many of the tasks have failed. */
            failed: number;
          },
          {
            /** How many of the tasks are open or assigned. */
            pending: number;
            /** How many of the tasks are completed. */
            completed: number;
            /** How many of the tasks have failed. */
            failed: number;
          }
        >;
        /** When the first task of the group was created. */
        first_created_at: string;
        /** When the last task of the group was created. */
        last_created_at: string;
        /** When a task of the group last changed. */
        last_updated_at: string;
        /** The rewards of all tasks of the group. */
        lux_reward: number;
        /** What the completed tasks of the group have paid; a task that waits for its review has paid nothing. */
        lux_paid: number;
      }[];
      /** Send this value as `cursor` to get the next groups; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** A group of tasks: counts, times, failures; may wait for its end */
  "group/{group}": {
    request: {
      /** The name of the group of tasks; NAME/NODE of a group of a node's keys. */
      group: string;
      /** Seconds to wait until no task of the group is unfinished; 0, the default, returns at once. */
      wait?: number | undefined;
    };
    answer: {
      success: true;
      /** The name of the group of tasks; NAME/NODE of a group of a node's keys. */
      group: string;
      /** Whether no task of the group is unfinished. */
      done: boolean;
      /** The total number. */
      total: number;
      /**
       * How many tasks of the group have not ended: open and assigned tasks, and results that wait for a
       * review.
       */
      unfinished: number;
      /** How many completed tasks of the group wait for their review; only if there are any. */
      in_review?: number | undefined;
      /**
       * How many tasks were cancelled; of a group also those that expired, which `by_status.failed` leaves
       * out.
       */
      cancelled?: number | undefined;
      /** How many tasks there are of each status. */
      by_status: By<
        V,
        {
          /** How many of the tasks are open. */
          open: number;
          /** How many of the tasks are assigned. */
          assigned: number;
          /** How many of the tasks are completed. */
          completed: number;
          /** How many of the tasks have failed. */
          failed: number;
        },
        {
          /** How many of the tasks are open or assigned. */
          pending: number;
          /** How many of the tasks are completed. */
          completed: number;
          /** How many of the tasks have failed. */
          failed: number;
        }
      >;
      /** When the first task of the group was created. */
      first_created_at: string;
      /** When the last task of the group was created. */
      last_created_at: string;
      /** When a task of the group last changed. */
      last_updated_at: string;
      /** The rewards of all tasks of the group. */
      lux_reward: number;
      /** What the completed tasks of the group have paid; a task that waits for its review has paid nothing. */
      lux_paid: number;
      /**
       * What the tasks of the group have used, including deleted tasks; null: no worker has reported any
       * usage.
       */
      usage: Spending | null;
      /** The last 20 failed tasks of the group, the newest first. */
      failures: {
        /** The id of the task. */
        task_id: string;
        /** What to do, in one line. */
        title: string;
        /** The status of the task. task/retry opens a `failed` task again. */
        status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
        /** The node that holds the task, or has completed it. */
        assigned_node: string | null;
        /** The last note of the node that holds the task. */
        progress: string | null;
        /** Why the last attempt, or the task, failed. */
        failure: Failure | null;
        /** When the record last changed. */
        updated_at: string;
      }[];
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Cancels unfinished tasks of a group, which then fail */
  "group/cancel": {
    request: {
      /** The name of the group of tasks; NAME/NODE of a group of a node's keys. */
      group: string;
      /** The node that cancels the tasks. */
      node_id?: string | undefined;
      /** The reason, which the event shows. */
      reason?: string | undefined;
    };
    answer: {
      success: true;
      /** The name of the group of tasks; NAME/NODE of a group of a node's keys. */
      group: string;
      /**
       * How many tasks were cancelled; of a group also those that expired, which `by_status.failed` leaves
       * out.
       */
      cancelled: number;
      /** How many tasks are left, at most 100,000: repeat the call. */
      left: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Opens the failed tasks of a group again */
  "group/retry": {
    request: {
      /** The name of the group of tasks; NAME/NODE of a group of a node's keys. */
      group: string;
      /** The `next_cursor` of the call before. */
      cursor?: string | undefined;
    };
    answer: {
      success: true;
      /** The name of the group of tasks; NAME/NODE of a group of a node's keys. */
      group: string;
      /** How many tasks were opened again. */
      retried: number;
      /** How many failed tasks the call did not examine, at most 100,000. */
      left: number;
      /** Send this value as `cursor` to examine the remaining tasks; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Creates or replaces a schedule, which creates a task at certain times */
  "schedule/put": {
    request: {
      /** The name of the schedule; replaces a schedule of this name. */
      name: string;
      /** A cron expression: minute, hour, day of month, month, day of week; or `@daily` and the like. */
      cron?: string | undefined;
      /** The seconds between two times, instead of `cron`; the first time comes after one interval. */
      every_s?: number | undefined;
      /** The time zone of `cron`, of the IANA database; `UTC` if left out. */
      tz?: string | undefined;
      /** The task to create, as for task/create. */
      task?:
        | {
            /** What to do, in one line. */
            title: string;
            /** What to do; at most 64 KiB of UTF-8. */
            description: string;
            /** The hub compares it with the capabilities of nodes. A task without a type fits every node. */
            task_type?: string | undefined;
            /**
             * The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or `medium` (the
             * default); 2, `p2` or `low`; `p5` is background work.
             */
            priority?: 0 | 1 | 2 | "high" | "medium" | "low" | "p0" | "p1" | "p2" | "p5" | undefined;
            /** LUX for the node that completes the task, with at most 6 decimals. */
            lux_reward?: number | undefined;
            /** The node that created the task; this node need not be registered. */
            creator_node?: string | undefined;
            /** Seconds until the task may be handed out. */
            delay_s?: number | undefined;
            /** Seconds that a node may hold the task without task/extend or task/complete. */
            timeout_s?: number | undefined;
            /** Seconds that one attempt may take in all, extended or not; then the attempt has timed out. */
            max_run_s?: number | undefined;
            /**
             * Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on tasks that
             * were created with it.
             */
            retain_s?: number | undefined;
            /**
             * Who checks the result before the reward is paid: `creator` (without a creator, any node except the
             * worker), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that type for another
             * node.
             */
            review?: string | undefined;
            /** Seconds until the result counts as `on_review_timeout` says; 604,800 (a week) if left out. */
            review_within_s?: number | undefined;
            /** What happens when nobody has reviewed the result in time: `pay` (if left out) or `reject`. */
            on_review_timeout?: "pay" | "reject" | undefined;
            /**
             * Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the
             * maximum number of copies (`results` to 15); if left out, as many as make `results` a majority.
             */
            quorum?:
              | {
                  /** How many results must agree. */
                  results: number;
                  /** How many copies there are at most. */
                  of?: number | undefined;
                  /**
                   * What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON
                   * pointers into the result.
                   */
                  compare?: string | undefined;
                }
              | undefined;
            /**
             * Dollars that all attempts of the task together may cost; the attempt that exceeds this amount ends
             * the task permanently (kind `budget`). Null: no limit.
             */
            max_cost_usd?: number | undefined;
            /** The task fails after this many attempts; by default after 10 failures and timeouts. */
            max_attempts?: number | undefined;
            /**
             * Seconds from a failed attempt until the task is open again (5 by default); doubles with each
             * attempt, up to an hour.
             */
            backoff_s?: number | undefined;
            /** The name of the group of tasks; NAME/NODE of a group of a node's keys. */
            group?: string | undefined;
            /** The words by which to find the task; left out if there are none. */
            tags?: readonly string[] | undefined;
            /** What a node must have to get the task: all words in `capabilities`, and enough of each resource. */
            requires?:
              | {
                  /** Words that must all be among the capabilities of the node. */
                  capabilities?: string | readonly string[] | undefined;
                  /** Up to 16 amounts by name (at most 64 characters), rounded to three decimals. */
                  resources?: Record<string, number> | undefined;
                }
              | undefined;
            /** The key whose limit (limit/set) applies to the task; if left out, the `task_type`. */
            limit_key?: string | undefined;
            /**
             * The trace to which the task belongs (W3C Trace Context), which workers and webhooks get; if left
             * out, that of the request's header `traceparent`.
             */
            traceparent?: string | undefined;
            /** What tracing systems keep beside `traceparent`. */
            tracestate?: string | undefined;
          }
        | undefined;
      /** The tasks to create together, in a group of their own each time, in place of `task`. */
      tasks?:
        | readonly {
            /** The name by which tasks after it need this one. */
            ref: string;
            /** The names of the tasks before it that it waits for. */
            needs?: readonly string[] | undefined;
            /** As for task/create. */
            on_dependency?: "fail" | "run" | undefined;
            /** The task as it is now. */
            task: {
              /** What to do, in one line. */
              title: string;
              /** What to do; at most 64 KiB of UTF-8. */
              description: string;
              /** The hub compares it with the capabilities of nodes. A task without a type fits every node. */
              task_type?: string | undefined;
              /**
               * The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or `medium` (the
               * default); 2, `p2` or `low`; `p5` is background work.
               */
              priority?: 0 | 1 | 2 | "high" | "medium" | "low" | "p0" | "p1" | "p2" | "p5" | undefined;
              /** LUX for the node that completes the task, with at most 6 decimals. */
              lux_reward?: number | undefined;
              /** The node that created the task; this node need not be registered. */
              creator_node?: string | undefined;
              /** Seconds until the task may be handed out. */
              delay_s?: number | undefined;
              /** Seconds that a node may hold the task without task/extend or task/complete. */
              timeout_s?: number | undefined;
              /** Seconds that one attempt may take in all, extended or not; then the attempt has timed out. */
              max_run_s?: number | undefined;
              /**
               * Seconds that the hub keeps the task after its end, instead of `--retain-tasks`; only on tasks that
               * were created with it.
               */
              retain_s?: number | undefined;
              /**
               * Who checks the result before the reward is paid: `creator` (without a creator, any node except the
               * worker), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that type for another
               * node.
               */
              review?: string | undefined;
              /** Seconds until the result counts as `on_review_timeout` says; 604,800 (a week) if left out. */
              review_within_s?: number | undefined;
              /** What happens when nobody has reviewed the result in time: `pay` (if left out) or `reject`. */
              on_review_timeout?: "pay" | "reject" | undefined;
              /**
               * Several nodes do the task. The task completes when `results` (2 to 9) copies agree. `of` is the
               * maximum number of copies (`results` to 15); if left out, as many as make `results` a majority.
               */
              quorum?:
                | {
                    /** How many results must agree. */
                    results: number;
                    /** How many copies there are at most. */
                    of?: number | undefined;
                    /**
                     * What must be equal, as JSON values: `output` (if left out), or `json:` and comma-separated JSON
                     * pointers into the result.
                     */
                    compare?: string | undefined;
                  }
                | undefined;
              /**
               * Dollars that all attempts of the task together may cost; the attempt that exceeds this amount ends
               * the task permanently (kind `budget`). Null: no limit.
               */
              max_cost_usd?: number | undefined;
              /** The task fails after this many attempts; by default after 10 failures and timeouts. */
              max_attempts?: number | undefined;
              /**
               * Seconds from a failed attempt until the task is open again (5 by default); doubles with each
               * attempt, up to an hour.
               */
              backoff_s?: number | undefined;
              /** The name of the group of tasks; NAME/NODE of a group of a node's keys. */
              group?: string | undefined;
              /** The words by which to find the task; left out if there are none. */
              tags?: readonly string[] | undefined;
              /** What a node must have to get the task: all words in `capabilities`, and enough of each resource. */
              requires?:
                | {
                    /** Words that must all be among the capabilities of the node. */
                    capabilities?: string | readonly string[] | undefined;
                    /** Up to 16 amounts by name (at most 64 characters), rounded to three decimals. */
                    resources?: Record<string, number> | undefined;
                  }
                | undefined;
              /** The key whose limit (limit/set) applies to the task; if left out, the `task_type`. */
              limit_key?: string | undefined;
              /**
               * The trace to which the task belongs (W3C Trace Context), which workers and webhooks get; if left
               * out, that of the request's header `traceparent`.
               */
              traceparent?: string | undefined;
              /** What tracing systems keep beside `traceparent`. */
              tracestate?: string | undefined;
            };
          }[]
        | undefined;
      /**
       * What happens at a time when an earlier task is unfinished: no new task (`skip`), or one more
       * (`queue`).
       */
      overlap?: "skip" | "queue" | undefined;
      /**
       * What happens after times at which no hub ran: a task for the last of these times (`one`), or none
       * (`none`).
       */
      catch_up?: "one" | "none" | undefined;
      /** Each task may start up to this many seconds later. */
      jitter_s?: number | undefined;
      /** The schedule creates no task after this time. */
      until?: string | undefined;
      /** Whether the schedule is paused: it creates no tasks until a schedule/put without this field. */
      paused?: boolean | undefined;
    };
    answer: {
      success: true;
      /** The name of the schedule; replaces a schedule of this name. */
      name: string;
      /** The schedule. */
      schedule: Schedule<V>;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** All schedules, by name */
  "schedule/list": {
    request: {
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /** The schedules, by name. */
      schedules: Schedule<V>[];
      /** The number of the page, from 1. */
      page: number;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** The total number. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Creates a task of a schedule now; the next time does not change */
  "schedule/run": {
    request: {
      /** The name of the schedule. */
      name: string;
    };
    answer: {
      success: true;
      /** The id of the task. */
      task_id: string;
      /** The task as it is now. */
      task: Task<V>;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Deletes a schedule; its tasks stay */
  "schedule/delete": {
    request: {
      /** The name of the schedule. */
      name: string;
    };
    answer: {
      success: true;
      /** The name of the schedule. */
      name: string;
      /** The schedule. */
      schedule: Schedule<V>;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Creates or replaces a webhook, which sends events to a URL */
  "webhook/put": {
    request: {
      /** The name of the webhook; replaces a webhook of this name. */
      name: string;
      /** The URL to which the webhook sends: http or https, without a user name, a password and a fragment. */
      url: string;
      /** Only events of these kinds; if left out or empty, all kinds. */
      kinds?: readonly EventKind[] | undefined;
      /** Only events of this task. */
      task_id?: string | undefined;
      /** Only events of this node. */
      node_id?: string | undefined;
      /** Only events of the tasks that this node created. */
      creator_node?: string | undefined;
      /** Only events of the tasks of this group. */
      group?: string | undefined;
      /**
       * What the webhook sends: events as JSON (`luxhub`), notifications (`ntfy`), or the updates of A2A
       * (`a2a`).
       */
      format?: "luxhub" | "a2a" | "ntfy" | undefined;
      /**
       * Signs the messages: `whsec_` and base64; with the format `ntfy`, an access token. If left out, the
       * hub makes a secret for a new webhook; the response has the secret only if the hub made it.
       */
      secret?: string | undefined;
    };
    answer: {
      success: true;
      /** The name of the webhook; replaces a webhook of this name. */
      name: string;
      /** The webhook. */
      webhook: Webhook;
      /**
       * Signs the messages: `whsec_` and base64; with the format `ntfy`, an access token. If left out, the
       * hub makes a secret for a new webhook; the response has the secret only if the hub made it.
       */
      secret?: string | undefined;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** All webhooks, by name, without their secrets */
  "webhook/list": {
    request: {
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /** The webhooks, by name. */
      webhooks: Webhook[];
      /** The number of the page, from 1. */
      page: number;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** The total number. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Sends a test message to a webhook now, and returns the outcome */
  "webhook/test": {
    request: {
      /** The name of the webhook. */
      name: string;
    };
    answer: {
      success: true;
      /** The name of the webhook. */
      name: string;
      /** Whether the receiver returned a status of 200 to 299. */
      delivered: boolean;
      /** The status of the receiver's response; null: there was none. */
      status: number | null;
      /** Why the message was not delivered. */
      error: string | null;
      /** How long the request took, in milliseconds. */
      ms: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Makes a webhook deliver again, from its cursor or from another event */
  "webhook/resume": {
    request: {
      /** The name of the webhook. */
      name: string;
      /** Continues after the event with this id, not after the cursor. */
      after?: number | undefined;
    };
    answer: {
      success: true;
      /** The name of the webhook. */
      name: string;
      /** The webhook. */
      webhook: Webhook;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Deletes a webhook; undelivered events stay in the event log */
  "webhook/delete": {
    request: {
      /** The name of the webhook. */
      name: string;
    };
    answer: {
      success: true;
      /** The name of the webhook. */
      name: string;
      /** The webhook. */
      webhook: Webhook;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** What work has cost, by day, node, creator, type, model or group */
  usage: {
    request: {
      /** What is summed up: `day` if left out. */
      by?: "node" | "creator" | "type" | "model" | "group" | "day" | undefined;
      /** The first day, in UTC; 29 days before `until` if left out. At most 366 days. */
      since?: string | undefined;
      /** The last day, in UTC; today if left out. */
      until?: string | undefined;
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /** What is summed up: `day` if left out. */
      by: string;
      /** The first day, in UTC; 29 days before `until` if left out. At most 366 days. */
      since: string;
      /** The last day, in UTC; today if left out. */
      until: string;
      /** A sum for each name, the most expensive first; of days the newest first. */
      usage: {
        /** Tokens that the model read. */
        input_tokens: number;
        /** Tokens that the model wrote. */
        output_tokens: number;
        /** How many of the input tokens came from a cache. */
        cached_tokens: number;
        /** The sum of the known costs; null if no cost is known. */
        cost_usd: number | null;
        /** How many reports the sum has. */
        reports: number;
        /** How many of the reports had no `cost_usd`. */
        without_cost: number;
        /** The node, creator, type, model, group or day; null for tasks without a creator or a type. */
        name: string | null;
      }[];
      /** The sum of all names. */
      all: Spending;
      /** The number of the page, from 1. */
      page: number;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** The total number. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Takes what a node has reported on a day off all sums and budgets */
  "usage/void": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** The day in UTC; today if left out. */
      day?: string | undefined;
      /** The reason, which the event shows. */
      reason?: string | undefined;
    };
    answer: {
      success: true;
      /** The id of the node. */
      node_id: string;
      /** The day in UTC; today if left out. */
      day: string;
      /** What was taken off the sums. */
      voided: Spending;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Sets a budget: what work may cost in a day, in a month or in total */
  "budget/set": {
    request: {
      /** What the budget is about: the whole hub, or one node, creator, type or group of tasks. */
      scope: "hub" | "node" | "creator" | "type" | "group";
      /**
       * The node, the creator, the type or the group; left out or null: the hub, tasks without a creator,
       * or without a type.
       */
      value?: string | undefined;
      /** The period: a day, a month (both in UTC), or all time. */
      per: "day" | "month" | "total";
      /** Dollars; left out: any. */
      cost_usd?: number | undefined;
      /** Input and output tokens together; null: any. */
      tokens?: number | undefined;
      /**
       * `pause` (if left out): when the budget is used up, the hub hands out no task to which it applies.
       * `warn`: the hub only logs an event.
       */
      on_limit?: "pause" | "warn" | undefined;
    };
    answer: {
      success: true;
      /** The budget, and what is spent of the budget. */
      budget: Budget;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** All budgets, each with what has been spent */
  "budget/list": {
    request: {
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /** All budgets, by scope and value. */
      budgets: Budget[];
      /** The number of the page, from 1. */
      page: number;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** The total number. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Deletes a budget */
  "budget/delete": {
    request: {
      /** What the budget is about: the whole hub, or one node, creator, type or group of tasks. */
      scope: "hub" | "node" | "creator" | "type" | "group";
      /**
       * The node, the creator, the type or the group; left out or null: the hub, tasks without a creator,
       * or without a type.
       */
      value?: string | undefined;
      /** The period: a day, a month (both in UTC), or all time. */
      per: "day" | "month" | "total";
    };
    answer: {
      success: true;
      /** The budget, and what is spent of the budget. */
      budget: Budget;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Pauses the tasks of a type, a limit key or a creator, or all tasks */
  "hub/pause": {
    request: {
      /** The type of the tasks; without `type`, `limit_key` and `creator_node`: all tasks. */
      type?: string | undefined;
      /** The limit key of the tasks. */
      limit_key?: string | undefined;
      /** The creator of the tasks. */
      creator_node?: string | undefined;
      /** Why; everybody who asks why a task does not run can read it. */
      reason?: string | undefined;
    };
    answer: {
      success: true;
      /** What is paused. */
      pause: Pause;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Ends a pause */
  "hub/resume": {
    request: {
      /** The type of the tasks; without `type`, `limit_key` and `creator_node`: all tasks. */
      type?: string | undefined;
      /** The limit key of the tasks. */
      limit_key?: string | undefined;
      /** The creator of the tasks. */
      creator_node?: string | undefined;
    };
    answer: {
      success: true;
      /** What is paused. */
      pause: Pause;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** What is paused */
  "hub/pauses": {
    request: {
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /** What is paused, by scope and value. */
      pauses: Pause[];
      /** The number of the page, from 1. */
      page: number;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** The total number. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Limits how many tasks of a limit key run at once, or start per minute */
  "limit/set": {
    request: {
      /** The limit key; the key of a task is its `limit_key` or, if it has none, its `task_type`. */
      key: string;
      /** How many tasks of the key may be assigned at once; left out: any number. */
      running?: number | undefined;
      /** How many tasks of the key may be handed out in any 60 s; left out: any number. */
      per_minute?: number | undefined;
    };
    answer: {
      success: true;
      /** The limit, and how much of it is used. */
      limit: Limit;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** All limits and holds, each with its current use */
  "limit/list": {
    request: {
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /** All limits and holds, by key. */
      limits: Limit[];
      /** The number of the page, from 1. */
      page: number;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** The total number. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Deletes the limit of a limit key, and ends a hold on the key */
  "limit/delete": {
    request: {
      /** The limit key. */
      key: string;
    };
    answer: {
      success: true;
      /** The limit before the deletion. */
      limit: Limit;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Holds a limit key: none of its tasks is handed out for a time */
  "limit/hold": {
    request: {
      /** The limit key. */
      key: string;
      /**
       * For how many seconds no task of the key is handed out; a longer hold stays. At most 600 with a key
       * that is bound to a node.
       */
      for_s: number;
      /**
       * The node that asks for the hold, which then shows the node as `held_by`. A bound key fills in its
       * node.
       */
      node_id?: string | undefined;
    };
    answer: {
      success: true;
      /** The limit of the key, or only its hold. */
      limit: Limit;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Why a task does not run: all reasons; the position of a ready task */
  "task/{task_id}/explain": {
    request: {
      /** The id of the task. */
      task_id: string;
    };
    answer: {
      success: true;
      /** Whether the task may be handed out to a node that fits. */
      ready: boolean;
      /** All reasons; the last one of a task that is ready is `in_line`. */
      reasons: Reason[];
      /** The position of the task in its lane, up to 1,001; null if the task is not ready. */
      position: number | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** All keys, without their secrets */
  "key/list": {
    request: {
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /** The keys, including the two of the first start; without `page` and `per_page` all of them. */
      keys: Key[];
      /** The number of the page, from 1. */
      page: number;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** The total number. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Creates a key; only this response shows its secret */
  "key/add": {
    request: {
      /** A name that no key has or had. */
      name: string;
      /**
       * What the key may do; `full` if left out. A viewer can read all but message contents; `admin` is for
       * `X-Admin-Key`.
       */
      role?: "full" | "viewer" | "admin" | undefined;
      /** The variant of the responses to requests with the key, on any listener. */
      variant?: "A" | "B" | undefined;
      /**
       * The node that the key is bound to: it acts only for this node. With `.*` at the end also for its
       * sessions, `NODE.2` to `NODE.99`, of which `X-Node-Id` names one.
       */
      node_id?: string | undefined;
      /**
       * LUX that the key may promise per UTC day, as rewards of tasks. null: any amount, or none if the hub
       * is strict and the key is bound to a node.
       */
      mint_per_day?: number | undefined;
      /** When the key expires; at most ten years ahead. */
      expires_at?: string | undefined;
      /** Seconds until the key expires, instead of `expires_at`. */
      expires_in_s?: number | undefined;
    };
    answer: {
      success: true;
      /** A name that no key has or had. */
      name: string;
      /** The secret of the new key. The hub does not store the secret and cannot show it again. */
      secret: string;
      /** The key. */
      key: Key;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Revokes a key permanently; its calls and streams end within a second */
  "key/revoke": {
    request: {
      /** The name of the key. */
      name: string;
    };
    answer: {
      success: true;
      /** The name of the key. */
      name: string;
      /** The key. */
      key: Key;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Task types: counts of tasks, times to start, and nodes for each type */
  "stats/types": {
    request: Record<never, never>;
    answer: {
      success: true;
      /** When the tasks were counted: at most 2 s ago. */
      at: string;
      /** The 100 types with the most tasks, the type with the most first. */
      types: TypeStats[];
      /** How many other types there are. */
      others: number;
      /** What holds open tasks back, the most tasks first. */
      held: HeldStats[];
      /** How many open tasks nothing holds back: as many as task/list lists with `held=none`. */
      free: {
        /** The maximum number to return. */
        count: number;
        /** False: there may be more. */
        exact: boolean;
      };
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Recent failures, grouped by message, and the nodes with the most */
  "stats/failures": {
    request: {
      /** Of how many seconds; 3,600 if left out. */
      last?: number | undefined;
    };
    answer: {
      success: true;
      /** The 50 largest groups of failed tasks, the largest first. */
      failures: FailureGroup[];
      /** The 50 nodes at which the most attempts failed, of the newest 10,000 of each kind. */
      by_node: {
        /** The id of the node. */
        node_id: string;
        /** How many tasks failed at this node. */
        count: number;
        /**
         * How many attempts failed at this node, as the `attempts` of tasks count them: also of tasks that
         * others completed.
         */
        attempts: number;
      }[];
      /** How many failed tasks were examined. */
      total: number;
      /** False: more tasks have failed, because one call examines the newest 10,000. */
      exact: boolean;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The health of the hub, and the numbers of its nodes and tasks */
  status: {
    request: Record<never, never>;
    answer: {
      success: true;
      /** `degraded` while the hub cannot write. */
      status: "ok" | "degraded";
      /** The version of the specification that the variant follows. */
      version: By<V, "1.5", "1.0">;
      /** Seconds since the hub started. */
      uptime: number;
      /** How many nodes are registered. */
      nodes_count: number;
      /** How many tasks there are. */
      tasks_count: number;
      /** The program and its version. */
      software: string;
      /** What people call this hub (`--name`); null for a hub without a name. */
      name: string | null;
      /** The variant of the response. */
      variant: By<V, "A", "B">;
      /** The transport of messages: `sqlite`, `postgresql` or `redis`. */
      transport: string;
      /** What is paused; left out if nothing is. */
      paused?:
        | {
            /** What is paused: the whole hub, or a type, a limit key or a creator of tasks. */
            scope: "hub" | "type" | "limit_key" | "creator";
            /** The type, the limit key or the creator; null: the hub, or tasks without a type. */
            value: string | null;
          }[]
        | undefined;
      /** How much space the hub's data takes. */
      storage: {
        /** The size of the database, at most 10 s old. */
        database_bytes: number;
        /** The bytes of all files. */
        files_bytes: number;
        /** Tasks that are completed or have failed. */
        finished_tasks: number;
        /** Free space on the disk of the data directory; null if the database is on another machine. */
        free_bytes: number | null;
        /** What to do, when the database and the files take half of the disk; else null. */
        warning: string | null;
      };
      /** The second copy of the hub; only if there is one. */
      copy?:
        | {
            /**
             * `first`: it accepts writes; `standby`: a copy, which answers reads; `superseded`: its standby was
             * promoted.
             */
            role: "first" | "standby" | "superseded";
            /** One more than the promotions so far. */
            term: number;
            /** The number of the last entry of the change log; null while none is kept. */
            entry: number | null;
            /** The hub that accepts writes, if it is another one. */
            hub: string | null;
            /** The copies that follow this hub; of a standby, the standby itself. */
            standbys: {
              /** The name of the standby. */
              name: string;
              /** Where it listens; null: it has not said so. */
              url: string | null;
              /** Whether it follows. */
              following: boolean;
              /** How many entries it lacks. */
              lag_entries: number;
              /** The age of the oldest entry that it lacks, in seconds: what may be lost. */
              lag_s: number;
              /** Since when it follows, or does not; null: it never did. */
              since: string | null;
              /** Why it does not follow, as far as this hub knows. */
              fault: string | null;
            }[];
          }
        | undefined;
      /** How many webhooks are suspended; only if there are any. */
      webhooks_suspended?: number | undefined;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The event log after a cursor, oldest first; without one, the newest */
  events: {
    request: {
      /** The id of the last event read; 0: from the beginning; if left out, the newest events. */
      since?: number | undefined;
      /** In place of `since`: only events at or after this time. */
      since_time?: string | undefined;
      /** The maximum number to return. */
      limit?: number | undefined;
      /** Only events of this kind, or of several, comma-separated. */
      kind?: string | undefined;
      /** Only events about this task. */
      task_id?: string | undefined;
      /** Only events about this node. */
      node_id?: string | undefined;
      /** Only events of the tasks of this group, and the end of the group. */
      group?: string | undefined;
      /** Only events of tasks with this tag. */
      tag?: string | undefined;
    };
    answer: EventBatch;
  };

  /** Waits for task events after a cursor */
  poll: {
    request: {
      /** The id of the last event read; if left out, only new events. */
      since?: number | undefined;
      /** Seconds to wait. */
      timeout?: number | undefined;
    };
    answer: EventBatch;
  };

  /** For charts: counts and durations of the last hour, day or month */
  "stats/minutes": {
    request: {
      /** How many minutes, including the current one; 60 if left out. */
      last?: number | undefined;
      /** `hour` (if left out): by minute; `day`: 24 hours by ten minutes; `month`: 30 days by hour. */
      range?: "hour" | "day" | "month" | undefined;
    };
    answer: {
      success: true;
      /** How many seconds each entry takes: 60, 600 or 3,600. */
      step_s: number;
      /** The minutes, oldest first. */
      minutes: Minute[];
      /** The sum of the entries. */
      total: MinutesTotal;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The number of nodes by status, and the sum of their LUX */
  "stats/nodes": {
    request: Record<never, never>;
    answer: {
      success: true;
      /** How many nodes are registered. */
      total: number;
      /** How many nodes there are in each state. */
      by_status: {
        /** Online nodes, including draining ones. */
        online: number;
        /** Nodes that left or whose heartbeats stopped. */
        offline: number;
      };
      /** Online nodes that take no new tasks. */
      draining: number;
      /** The sum of the balances of all nodes. */
      lux_balance: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The state of the hub's store */
  "pg/diagnostic": {
    request: Record<never, never>;
    answer: {
      success: true;
      /** The engine of the store: `sqlite` or `postgresql`. */
      engine: "sqlite" | "postgresql";
      /** Whether the store responds. */
      connected: boolean;
      /** The duration of a read, in milliseconds. */
      latency_ms: number | null;
      /** The version of the store's engine. */
      engine_version: string | null;
      /** How large the database is. */
      size_bytes: number | null;
      /** The version of the schema. */
      migration: number | null;
      /** How many writes wait for their commit; each request of a batch counts. */
      queued: number | null;
      /** What else the engine reports. */
      details: Record<string, string | number | boolean>;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Runs many requests in order and in one transaction */
  batch: {
    request: {
      /**
       * The requests, which run in this order, each as if sent alone; a request that fails does not stop
       * the others.
       */
      requests: readonly {
        /** The path of a POST of JSON without `/api/v1/`, such as `task/claim`. */
        path: string;
        /** The body of the request. */
        body: Record<string, unknown>;
        /**
         * Of a task/create: a name for the new task. Later requests of the batch write `{"$ref": …}` in place
         * of its id.
         */
        ref?: string | undefined;
      }[];
    };
    answer: {
      success: true;
      /** The responses, in the order of the requests. */
      answers: {
        /** The status of the response, as if the request had been sent alone. */
        status: number;
        /** The body of the response. */
        body: Record<string, unknown>;
      }[];
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** This API as an OpenAPI 3.1 document, in the variant of the caller */
  "openapi.json": { request: Record<never, never>; answer: Record<string, unknown> };

  /** Files, newest first; filters by task and by name */
  "file/list": {
    request: {
      /** Only files of this task. */
      task_id?: string | undefined;
      /**
       * Words, each of which must begin a word of the file's name. One call examines 10,000 files; continue
       * with next_cursor.
       */
      q?: string | undefined;
      /** The number of the page, from 1. */
      page?: number | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
      /** The `next_cursor` of the previous page, with the same filter and without `page`. */
      cursor?: string | undefined;
    };
    answer: {
      success: true;
      /** The files. */
      files: FileRecord[];
      /** The number of the page, from 1. */
      page: number | null;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** The total number. */
      total: number | null;
      /** How many pages there are. */
      pages: number | null;
      /** Send this value as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Makes a URL that downloads a file without a secret, for 10 minutes */
  "file/download-url": {
    request: {
      /** The id of the file. */
      file_id: string;
    };
    answer: {
      success: true;
      /** A path that downloads the file without a secret until `expires_at`. */
      url: string;
      /** The method of the request that the URL is for. */
      method: "GET" | "POST";
      /** When the URL stops working. */
      expires_at: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Makes a URL that uploads one file without a secret, for 10 minutes */
  "file/upload-url": {
    request: {
      /** The node of the file; with a key that is bound to a node, that node. */
      node_id?: string | undefined;
      /** The task that the file is attached to. */
      task_id?: string | undefined;
    };
    answer: {
      success: true;
      /** A path that takes one file without a secret until `expires_at`, as multipart form data. */
      url: string;
      /** The method of the request that the URL is for. */
      method: "GET" | "POST";
      /** When the URL stops working. */
      expires_at: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Deletes a file permanently */
  "file/delete": {
    request: {
      /** The id of the file. */
      file_id: string;
    };
    answer: {
      success: true;
      /** The id of the file. */
      file_id: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Deletes a file permanently */
  "file/{file_id}": {
    request: {
      /** The id of the file. */
      file_id: string;
    };
    answer: {
      success: true;
      /** The id of the file. */
      file_id: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Creates an invitation: a line with which the machine of a node joins */
  "invitation/create": {
    request: {
      /** The node that is invited, which need not be registered. */
      node_id: string;
      /** Seconds until the invitation expires, 60 to 604,800; 3,600 if left out. */
      expires_in_s?: number | undefined;
      /** The hub's URL in the line. If a request has no `url`, the hub chooses one of its addresses. */
      url?: string | undefined;
    };
    answer: {
      success: true;
      /** The invitation. */
      invitation: Invitation;
      /** The argument of `luxhub join`: the URL, the token and the hash. The hub cannot show the line again. */
      line: string;
      /** The hub's URL in the line. If a request has no `url`, the hub chooses one of its addresses. */
      url: string;
      /** Other URLs at which the hub may be reached. */
      other_urls: string[];
      /** The SHA-256 of the public key of the hub's own authority, in base64url; null: nothing is pinned. */
      pin: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The invitations, oldest first */
  "invitation/list": {
    request: {
      /** The `next_cursor` of the previous page. */
      cursor?: string | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
    };
    answer: {
      success: true;
      /** The invitations, oldest first. */
      invitations: Invitation[];
      /** Send this value as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Deletes an invitation, so that nobody can join with it */
  "invitation/delete": {
    request: {
      /** The invitation. */
      invitation_id: string;
    };
    answer: {
      success: true;
      /** The invitation. */
      invitation_id: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Turns an invitation into a key for the invited node */
  join: {
    request: {
      /** The token of the invitation: the part of the line after `#join.` */
      token: string;
      /** The SHA-256, in lower-case hex, of the secret that the caller has made for the new key. */
      key_hash: string;
    };
    answer: {
      success: true;
      /** The node that the key is bound to. */
      node_id: string;
      /** The name of the key. */
      key: string;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Makes a key for a standby, and the line with which its machine joins */
  "standby/invite": {
    request: {
      /** The name of the standby, and of its key. */
      name: string;
      /** The hub's URL in the line; if left out, the hub chooses one of its addresses. */
      url?: string | undefined;
    };
    answer: {
      success: true;
      /** The name of the standby, and of its key. */
      name: string;
      /** The argument of `luxhub join`: the URL, the secret and the hash. It is shown only here. */
      line: string;
      /** The hub's URL in the line. */
      url: string;
      /** Other URLs at which the hub may be reached. */
      other_urls: string[];
      /** The SHA-256 of the public key of the hub's own authority; null: nothing is pinned. */
      pin: string | null;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** For a standby: waits for the entries after the last one that it has on its disk */
  "copy/changes": {
    request: {
      /** The last entry that the standby has on its disk. */
      after: number;
      /** When that entry was committed, epoch milliseconds. */
      at: number;
      /** The term of the standby. */
      term: number;
      /** Where the standby listens for variant A. */
      url_a?: string | undefined;
      /** The same, with TLS. */
      url_a_tls?: string | undefined;
      /** Where the standby listens for variant B. */
      url_b?: string | undefined;
      /** The same, with TLS. */
      url_b_tls?: string | undefined;
    };
    answer: {
      success: true;
      /** The next entries, oldest first; none: there was none in time. */
      entries: {
        /** The number of the entry. */
        n: number;
        /** When it was committed, epoch milliseconds. */
        at: number;
        /** Its statements and their parameters, as JSON. */
        body: string;
      }[];
      /** The last entry that there is. */
      n: number;
      /** The term of this hub. */
      term: number;
      /** This hub, then its standbys, one of which may be promoted. */
      hubs: {
        /** The base URL for variant A. */
        A?: unknown | undefined;
        /** The same, with TLS. */
        A_tls?: unknown | undefined;
        /** The base URL for variant B. */
        B?: unknown | undefined;
        /** The same, with TLS. */
        B_tls?: unknown | undefined;
      }[];
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** From a standby that is promoted: this hub accepts no writes any more */
  "copy/promoted": {
    request: {
      /** The new term. */
      term: number;
      /** Where the promoted hub listens, by variant. */
      urls: {
        /** The base URL for variant A. */
        A?: string | undefined;
        /** The same, with TLS. */
        A_tls?: string | undefined;
        /** The base URL for variant B. */
        B?: string | undefined;
        /** The same, with TLS. */
        B_tls?: string | undefined;
      };
      /** What makes this hub its standby: the argument of `luxhub join`. */
      line: string;
    };
    answer: {
      success: true;
      /** The last entry of this hub. */
      n: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Makes this standby the hub that accepts writes */
  promote: {
    request: Record<never, never>;
    answer: {
      success: true;
      /** The last entry that this hub has. */
      entry: number;
      /** When that entry was written, by the clock of the first hub. */
      at: string;
      /** How many entries of the first hub it lacks, as far as it knows; null: the first hub did not answer. */
      missing: number | null;
      /** How far behind it was when it last heard of the first hub, in seconds. */
      lag_s: number;
      /**
       * The first fields of the request that nothing has read, with dots; only if there are any. An ignored
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };
}

/** How the operations are called that are not a POST. */
export const METHODS = {
  "node/list": "GET",
  "node/{node_id}": "GET",
  "task/list": "GET",
  "task/list?fields=summary": "GET",
  "task/count": "GET",
  "task/wait": "GET",
  "task/pull": "GET",
  "task/stats": "GET",
  "task/{task_id}": "GET",
  "task/{task_id}/inputs": "GET",
  "task/{task_id}/graph": "GET",
  lessons: "GET",
  "task/{task_id}/output": "GET",
  "task/{task_id}/questions": "GET",
  questions: "GET",
  reviews: "GET",
  "message/history": "GET",
  "message/parked": "GET",
  "agent/messages": "GET",
  "note/get": "GET",
  "note/list": "GET",
  "note/search": "GET",
  "lease/list": "GET",
  "lux/ledger": "GET",
  "lux/top": "GET",
  "lux/entries": "GET",
  "lux/head": "GET",
  "group/list": "GET",
  "group/{group}": "GET",
  "schedule/list": "GET",
  "webhook/list": "GET",
  usage: "GET",
  "budget/list": "GET",
  "hub/pauses": "GET",
  "limit/list": "GET",
  "task/{task_id}/explain": "GET",
  "key/list": "GET",
  "stats/types": "GET",
  "stats/failures": "GET",
  status: "GET",
  events: "GET",
  poll: "GET",
  "stats/minutes": "GET",
  "stats/nodes": "GET",
  "pg/diagnostic": "GET",
  "openapi.json": "GET",
  "file/list": "GET",
  "file/{file_id}": "DELETE",
  "invitation/list": "GET",
  "copy/changes": "GET",
} as const;

/** The methods of the client, by resource, with their operations. */
export const RESOURCES = {
  nodes: {
    /** Registers a node, or updates it, and puts it online. */
    register: "node/register",
    /** Keeps a node online; returns the number of its tasks and messages. */
    heartbeat: "node/heartbeat",
    /** Puts a node offline at once and gives its tasks back. */
    leave: "node/leave",
    /** Drains a node, so that it gets no new tasks, or ends a drain. */
    drain: "node/drain",
    /** Deletes a node; its tasks are open again, its ledger and messages stay. */
    delete: "node/delete",
    /**
     * All nodes, or a page; filters by state, name and capability. All nodes; with any of the fields, a
     * page.
     */
    list: "node/list",
    /** One node. */
    get: "node/{node_id}",
    /** The number of nodes by status, and the sum of their LUX. */
    stats: "stats/nodes",
  },
  tasks: {
    /** Creates a task; on B the hub assigns it at once if a node is available. */
    create: "task/create",
    /** Hands a worker its next task, and may wait for one. Waits for `wait` seconds, however long that is. */
    next: "task/next",
    /** Assigns an open task to a node. */
    assign: "task/assign",
    /** A node claims an open task. */
    claim: "task/claim",
    /** Completes a task with its result and pays its reward. */
    complete: "task/complete",
    /** A node gives back a task that it holds. */
    release: "task/release",
    /** A node reports that its attempt at a task failed. */
    fail: "task/fail",
    /** Extends the lease of a task; can report progress, a checkpoint, usage. */
    extend: "task/extend",
    /** Opens a failed task again; can also open its failed dependents. */
    retry: "task/retry",
    /** Cancels an unfinished task, which then fails. */
    cancel: "task/cancel",
    /** Changes a task that nobody holds. */
    update: "task/update",
    /** Takes a task back from its node, or gives it to another. */
    revoke: "task/revoke",
    /** A: assigns each task of a list; B: lets the balancer assign open tasks. */
    batchAssign: "task/batch-assign",
    /** Deletes a task permanently. */
    delete: "task/delete",
    /** Tasks, newest first; filters by state, node, type, title and more. */
    list: "task/list",
    /**
     * Tasks, newest first; filters by state, node, type, title and more. The tasks without their
     * descriptions, results and other long texts.
     */
    summaries: "task/list?fields=summary",
    /** How many tasks match the filters of task/list. */
    count: "task/count",
    /**
     * Waits until all, or any, of several tasks are completed or have failed. Waits for `wait` seconds,
     * however long that is.
     */
    wait: "task/wait",
    /** The open tasks that a node could claim, best first. */
    pull: "task/pull",
    /** Tasks counted by status, and the nodes that completed the most. */
    stats: "task/stats",
    /**
     * One task; may wait until it is completed or has failed. Waits for `wait` seconds, however long that
     * is.
     */
    get: "task/{task_id}",
    /** The tasks on which a task depends, with their results and files. */
    inputs: "task/{task_id}/inputs",
    /** The dependencies of a task, in layers, and the tasks that wait for it. */
    graph: "task/{task_id}/graph",
    /** Lessons of completed tasks, newest first; filters by type and words. */
    lessons: "lessons",
    /** Appends output of a running task. The handler of a worker has `output`, which keeps the offsets. */
    output: "task/output",
    /**
     * The output of an attempt of a task; may wait for more. Waits for `wait` seconds, however long that
     * is, for more output.
     */
    readOutput: "task/{task_id}/output",
    /**
     * A node asks a person, or another agent, about a task that it holds. Waits for `wait` seconds,
     * however long that is.
     */
    ask: "task/ask",
    /** Answers a question of a task; the first answer counts. */
    answer: "task/answer",
    /**
     * The questions of a task with their answers; may wait until one changes. With `wait` it waits, at
     * most 300 seconds, until one changes.
     */
    questions: "task/{task_id}/questions",
    /** The open questions of all tasks, the most urgent first. */
    openQuestions: "questions",
    /** Passes or rejects a result: pays the reward, or opens the task again. */
    review: "task/review",
    /** The results that wait for a review, the most urgent first. */
    inReview: "reviews",
    /** Why a task does not run: all reasons; the position of a ready task. */
    explain: "task/{task_id}/explain",
    /** Task types: counts of tasks, times to start, and nodes for each type. */
    byType: "stats/types",
    /** Recent failures, grouped by message, and the nodes with the most. */
    failures: "stats/failures",
  },
  messages: {
    /** Sends a message to one node. */
    send: "message/send",
    /**
     * Takes messages out of a mailbox, oldest first; may wait for the first. With `blocking` it waits for
     * `timeout` seconds, however long that is.
     */
    receive: "message/receive",
    /** Sends a message to all online nodes, or to the nodes for a task type. */
    broadcast: "message/broadcast",
    /** Acknowledges a message. */
    ack: "message/ack",
    /** The messages that a node sent or got, newest first. */
    history: "message/history",
    /** Dead letters: the messages that nodes never acknowledged, oldest first. */
    parked: "message/parked",
    /** Puts a parked message back into its mailbox, with deliveries 0. */
    redrive: "message/redrive",
    /** The messages that a node got, newest first, without taking any out. */
    mailbox: "agent/messages",
  },
  notes: {
    /** Writes a note; with if_version only if the note has that version. */
    put: "note/put",
    /** A note with its text. */
    get: "note/get",
    /** The notes by key, without their content. */
    list: "note/list",
    /** The notes whose key or text has the words of a search, by key. */
    search: "note/search",
    /** Deletes a note. */
    delete: "note/delete",
  },
  leases: {
    /** Takes an advisory lease on a name or a glob of paths, or renews it. */
    acquire: "lease/acquire",
    /** Moves the deadline of an advisory lease. */
    renew: "lease/renew",
    /** Ends an advisory lease. */
    release: "lease/release",
    /** The advisory leases that nodes have now, oldest first. */
    list: "lease/list",
  },
  lux: {
    /** Pays a node its daily bonus, once per UTC day. */
    signIn: "signin",
    /** The ledger entries of a node, newest first. */
    ledger: "lux/ledger",
    /** The nodes that earned the most LUX since a time. */
    top: "lux/top",
    /** The whole ledger after an entry, oldest first, with the hash chain. */
    entries: "lux/entries",
    /** The newest entry of the whole ledger: its number and its hash. */
    head: "lux/head",
  },
  groups: {
    /** Groups by name, with their counts. */
    list: "group/list",
    /**
     * A group of tasks: counts, times, failures; may wait for its end. Waits for `wait` seconds, however
     * long that is, until no task is unfinished.
     */
    get: "group/{group}",
    /**
     * Cancels unfinished tasks of a group, which then fail. Cancels up to 1,000 tasks: repeat it while
     * `left` is not 0.
     */
    cancel: "group/cancel",
    /**
     * Opens the failed tasks of a group again. Opens up to 1,000 tasks: repeat it with `next_cursor`
     * while there is one.
     */
    retry: "group/retry",
  },
  schedules: {
    /** Creates or replaces a schedule, which creates a task at certain times. */
    put: "schedule/put",
    /** All schedules, by name. */
    list: "schedule/list",
    /** Creates a task of a schedule now; the next time does not change. */
    run: "schedule/run",
    /** Deletes a schedule; its tasks stay. */
    delete: "schedule/delete",
  },
  webhooks: {
    /**
     * Creates or replaces a webhook, which sends events to a URL. Not repeated after a fault: the hub
     * shows a secret only once.
     */
    put: "webhook/put",
    /** All webhooks, by name, without their secrets. */
    list: "webhook/list",
    /** Sends a test message to a webhook now, and returns the outcome. */
    test: "webhook/test",
    /** Makes a webhook deliver again, from its cursor or from another event. */
    resume: "webhook/resume",
    /** Deletes a webhook; undelivered events stay in the event log. */
    delete: "webhook/delete",
  },
  costs: {
    /** What work has cost, by day, node, creator, type, model or group. */
    usage: "usage",
    /** Takes what a node has reported on a day off all sums and budgets. */
    voidUsage: "usage/void",
    /** Sets a budget: what work may cost in a day, in a month or in total. */
    setBudget: "budget/set",
    /** All budgets, each with what has been spent. */
    budgets: "budget/list",
    /** Deletes a budget. */
    deleteBudget: "budget/delete",
  },
  limits: {
    /** Pauses the tasks of a type, a limit key or a creator, or all tasks. */
    pause: "hub/pause",
    /** Ends a pause. */
    resume: "hub/resume",
    /** What is paused. */
    pauses: "hub/pauses",
    /** Limits how many tasks of a limit key run at once, or start per minute. */
    set: "limit/set",
    /** All limits and holds, each with its current use. */
    list: "limit/list",
    /** Deletes the limit of a limit key, and ends a hold on the key. */
    delete: "limit/delete",
    /** Holds a limit key: none of its tasks is handed out for a time. */
    hold: "limit/hold",
  },
  keys: {
    /** All keys, without their secrets. */
    list: "key/list",
    /**
     * Creates a key; only this response shows its secret. Not repeated after a fault: the hub keeps no
     * secret that it could answer again.
     */
    add: "key/add",
    /** Revokes a key permanently; its calls and streams end within a second. */
    revoke: "key/revoke",
  },
  files: {
    /** Files, newest first; filters by task and by name. */
    list: "file/list",
    /** Makes a URL that downloads a file without a secret, for 10 minutes. */
    downloadUrl: "file/download-url",
    /** Makes a URL that uploads one file without a secret, for 10 minutes. */
    uploadUrl: "file/upload-url",
    /** Deletes a file permanently. */
    delete: "file/delete",
  },
  invitations: {
    /**
     * Creates an invitation: a line with which the machine of a node joins. Not repeated after a fault:
     * only its answer has the line.
     */
    create: "invitation/create",
    /** The invitations, oldest first. */
    list: "invitation/list",
    /** Deletes an invitation, so that nobody can join with it. */
    delete: "invitation/delete",
  },
} as const;

/** The fields of each request, with those of the objects in it; 0: anything. */
export type Shape = { readonly [field: string]: Shape } | 0;
export const FIELDS: { readonly [operation: string]: Shape } = {
  "node/register": {
    node_id: 0,
    name: 0,
    host: 0,
    port: 0,
    capabilities: 0,
    resources: 0,
    max_tasks: 0,
    auto_assign: 0,
  },
  "node/heartbeat": { node_id: 0 },
  "node/leave": { node_id: 0 },
  "node/drain": { node_id: 0, drain: 0 },
  "node/delete": { node_id: 0 },
  "node/list": { status: 0, q: 0, capability: 0, order: 0, tasks: 0, page: 0, per_page: 0, cursor: 0 },
  "node/{node_id}": { node_id: 0 },
  "task/create": {
    title: 0,
    description: 0,
    task_type: 0,
    priority: 0,
    lux_reward: 0,
    creator_node: 0,
    for_node: 0,
    files: 0,
    depends_on: 0,
    on_dependency: 0,
    unique_key: 0,
    unique_for_s: 0,
    delay_s: 0,
    not_before: 0,
    expires_at: 0,
    timeout_s: 0,
    max_run_s: 0,
    retain_s: 0,
    review: 0,
    review_within_s: 0,
    on_review_timeout: 0,
    quorum: { results: 0, of: 0, compare: 0 },
    max_cost_usd: 0,
    max_attempts: 0,
    backoff_s: 0,
    group: 0,
    tags: 0,
    requires: { capabilities: 0, resources: 0 },
    limit_key: 0,
    traceparent: 0,
    tracestate: 0,
  },
  "task/next": { node_id: 0, wait: 0, task_types: 0, resume: 0 },
  "task/assign": { task_id: 0, node_id: 0 },
  "task/claim": { task_id: 0, node_id: 0 },
  "task/complete": {
    task_id: 0,
    node_id: 0,
    epoch: 0,
    result: 0,
    usage: { seq: 0, model: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 },
  },
  "task/release": {
    task_id: 0,
    node_id: 0,
    epoch: 0,
    reason: 0,
    checkpoint: 0,
    usage: { seq: 0, model: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 },
    hold_s: 0,
  },
  "task/fail": {
    task_id: 0,
    node_id: 0,
    epoch: 0,
    error: 0,
    kind: 0,
    retry: 0,
    checkpoint: 0,
    usage: { seq: 0, model: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 },
    hold_s: 0,
  },
  "task/extend": {
    task_id: 0,
    node_id: 0,
    epoch: 0,
    note: 0,
    checkpoint: 0,
    usage: { seq: 0, model: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 },
  },
  "task/retry": { task_id: 0, with_dependents: 0, keep_checkpoint: 0, max_cost_usd: 0 },
  "task/cancel": { task_id: 0, node_id: 0, reason: 0 },
  "task/update": {
    task_id: 0,
    title: 0,
    description: 0,
    priority: 0,
    lux_reward: 0,
    not_before: 0,
    expires_at: 0,
    tags: 0,
    limit_key: 0,
  },
  "task/revoke": { task_id: 0, node_id: 0, reason: 0 },
  "task/batch-assign": { assignments: { task_id: 0, node_id: 0 } },
  "task/delete": { task_id: 0 },
  "task/list": {
    status: 0,
    node_id: 0,
    creator_node: 0,
    task_type: 0,
    group: 0,
    tag: 0,
    failed_by: 0,
    failure_kind: 0,
    failure_group: 0,
    failure_q: 0,
    since: 0,
    until: 0,
    held: 0,
    q: 0,
    order: 0,
    page: 0,
    per_page: 0,
    cursor: 0,
  },
  "task/list?fields=summary": {
    status: 0,
    node_id: 0,
    creator_node: 0,
    task_type: 0,
    group: 0,
    tag: 0,
    failed_by: 0,
    failure_kind: 0,
    failure_group: 0,
    failure_q: 0,
    since: 0,
    until: 0,
    held: 0,
    q: 0,
    order: 0,
    page: 0,
    per_page: 0,
    cursor: 0,
  },
  "task/count": {
    status: 0,
    node_id: 0,
    creator_node: 0,
    task_type: 0,
    group: 0,
    tag: 0,
    failed_by: 0,
    failure_kind: 0,
    failure_group: 0,
    failure_q: 0,
    since: 0,
    until: 0,
    held: 0,
    q: 0,
  },
  "task/wait": { task_ids: 0, until: 0, wait: 0 },
  "task/pull": { node_id: 0, limit: 0 },
  "task/stats": {},
  "task/{task_id}": { task_id: 0, wait: 0, context: 0 },
  "task/{task_id}/inputs": { task_id: 0, cursor: 0, limit: 0 },
  "task/{task_id}/graph": { task_id: 0 },
  lessons: { q: 0, type: 0, cursor: 0, limit: 0 },
  "task/output": { task_id: 0, node_id: 0, epoch: 0, offset: 0, data: 0 },
  "task/{task_id}/output": { task_id: 0, attempt: 0, from: 0, wait: 0 },
  "task/ask": {
    task_id: 0,
    node_id: 0,
    epoch: 0,
    question: 0,
    choices: 0,
    schema: 0,
    within_s: 0,
    park: 0,
    wait: 0,
  },
  "task/answer": { task_id: 0, question_id: 0, answer: 0, node_id: 0 },
  "task/answer-by-token": { token: 0 },
  "task/{task_id}/questions": { task_id: 0, question_id: 0, wait: 0, since: 0, cursor: 0, limit: 0 },
  questions: { state: 0, cursor: 0, limit: 0 },
  "task/review": { task_id: 0, node_id: 0, verdict: 0, note: 0, epoch: 0 },
  reviews: { cursor: 0, limit: 0 },
  "message/send": { from_node: 0, to_node: 0, content: 0, type: 0, require_ack: 0, reply_to: 0, thread: 0 },
  "message/receive": { node_id: 0, count: 0, blocking: 0, timeout: 0 },
  "message/broadcast": { from_node: 0, content: 0, type: 0, capability: 0, reply_to: 0, thread: 0 },
  "message/ack": { node_id: 0, message_id: 0 },
  "message/history": { node_id: 0, before: 0, thread: 0, count: 0 },
  "message/parked": { node_id: 0, page: 0, per_page: 0 },
  "message/redrive": { node_id: 0, message_id: 0 },
  "agent/message": { from_node: 0, to_node: 0, content: 0, type: 0, require_ack: 0, reply_to: 0, thread: 0 },
  "agent/messages": { node_id: 0, since: 0, before: 0, limit: 0 },
  "agent/broadcast": { from_node: 0, content: 0, type: 0, capability: 0, reply_to: 0, thread: 0 },
  "agent/ack": { node_id: 0, message_id: 0 },
  "note/put": { key: 0, text: 0, node_id: 0, if_version: 0 },
  "note/get": { key: 0 },
  "note/list": { prefix: 0, cursor: 0, per_page: 0 },
  "note/search": { q: 0, prefix: 0, cursor: 0, per_page: 0 },
  "note/delete": { key: 0, node_id: 0, if_version: 0 },
  "lease/acquire": { name: 0, node_id: 0, ttl_s: 0, shared: 0, task_id: 0, epoch: 0 },
  "lease/renew": { name: 0, node_id: 0, task_id: 0, fencing: 0, ttl_s: 0 },
  "lease/release": { name: 0, node_id: 0, task_id: 0, fencing: 0 },
  "lease/list": { node_id: 0, task_id: 0, cursor: 0, per_page: 0 },
  signin: { node_id: 0 },
  "lux/ledger": { node_id: 0, page: 0, per_page: 0 },
  "lux/top": { since: 0 },
  "lux/entries": { since: 0, limit: 0 },
  "lux/head": {},
  "group/list": { q: 0, limit: 0, cursor: 0 },
  "group/{group}": { group: 0, wait: 0 },
  "group/cancel": { group: 0, node_id: 0, reason: 0 },
  "group/retry": { group: 0, cursor: 0 },
  "schedule/put": {
    name: 0,
    cron: 0,
    every_s: 0,
    tz: 0,
    task: {
      title: 0,
      description: 0,
      task_type: 0,
      priority: 0,
      lux_reward: 0,
      creator_node: 0,
      delay_s: 0,
      timeout_s: 0,
      max_run_s: 0,
      retain_s: 0,
      review: 0,
      review_within_s: 0,
      on_review_timeout: 0,
      quorum: { results: 0, of: 0, compare: 0 },
      max_cost_usd: 0,
      max_attempts: 0,
      backoff_s: 0,
      group: 0,
      tags: 0,
      requires: { capabilities: 0, resources: 0 },
      limit_key: 0,
      traceparent: 0,
      tracestate: 0,
    },
    tasks: {
      ref: 0,
      needs: 0,
      on_dependency: 0,
      task: {
        title: 0,
        description: 0,
        task_type: 0,
        priority: 0,
        lux_reward: 0,
        creator_node: 0,
        delay_s: 0,
        timeout_s: 0,
        max_run_s: 0,
        retain_s: 0,
        review: 0,
        review_within_s: 0,
        on_review_timeout: 0,
        quorum: { results: 0, of: 0, compare: 0 },
        max_cost_usd: 0,
        max_attempts: 0,
        backoff_s: 0,
        group: 0,
        tags: 0,
        requires: { capabilities: 0, resources: 0 },
        limit_key: 0,
        traceparent: 0,
        tracestate: 0,
      },
    },
    overlap: 0,
    catch_up: 0,
    jitter_s: 0,
    until: 0,
    paused: 0,
  },
  "schedule/list": { page: 0, per_page: 0 },
  "schedule/run": { name: 0 },
  "schedule/delete": { name: 0 },
  "webhook/put": {
    name: 0,
    url: 0,
    kinds: 0,
    task_id: 0,
    node_id: 0,
    creator_node: 0,
    group: 0,
    format: 0,
    secret: 0,
  },
  "webhook/list": { page: 0, per_page: 0 },
  "webhook/test": { name: 0 },
  "webhook/resume": { name: 0, after: 0 },
  "webhook/delete": { name: 0 },
  usage: { by: 0, since: 0, until: 0, page: 0, per_page: 0 },
  "usage/void": { node_id: 0, day: 0, reason: 0 },
  "budget/set": { scope: 0, value: 0, per: 0, cost_usd: 0, tokens: 0, on_limit: 0 },
  "budget/list": { page: 0, per_page: 0 },
  "budget/delete": { scope: 0, value: 0, per: 0 },
  "hub/pause": { type: 0, limit_key: 0, creator_node: 0, reason: 0 },
  "hub/resume": { type: 0, limit_key: 0, creator_node: 0 },
  "hub/pauses": { page: 0, per_page: 0 },
  "limit/set": { key: 0, running: 0, per_minute: 0 },
  "limit/list": { page: 0, per_page: 0 },
  "limit/delete": { key: 0 },
  "limit/hold": { key: 0, for_s: 0, node_id: 0 },
  "task/{task_id}/explain": { task_id: 0 },
  "key/list": { page: 0, per_page: 0 },
  "key/add": { name: 0, role: 0, variant: 0, node_id: 0, mint_per_day: 0, expires_at: 0, expires_in_s: 0 },
  "key/revoke": { name: 0 },
  "stats/types": {},
  "stats/failures": { last: 0 },
  status: {},
  events: { since: 0, since_time: 0, limit: 0, kind: 0, task_id: 0, node_id: 0, group: 0, tag: 0 },
  poll: { since: 0, timeout: 0 },
  "stats/minutes": { last: 0, range: 0 },
  "stats/nodes": {},
  "pg/diagnostic": {},
  batch: { requests: { path: 0, body: 0, ref: 0 } },
  "openapi.json": {},
  "file/list": { task_id: 0, q: 0, page: 0, per_page: 0, cursor: 0 },
  "file/download-url": { file_id: 0 },
  "file/upload-url": { node_id: 0, task_id: 0 },
  "file/delete": { file_id: 0 },
  "file/{file_id}": { file_id: 0 },
  "invitation/create": { node_id: 0, expires_in_s: 0, url: 0 },
  "invitation/list": { cursor: 0, per_page: 0 },
  "invitation/delete": { invitation_id: 0 },
  join: { token: 0, key_hash: 0 },
  "standby/invite": { name: 0, url: 0 },
  "copy/changes": { after: 0, at: 0, term: 0, url_a: 0, url_a_tls: 0, url_b: 0, url_b_tls: 0 },
  "copy/promoted": { term: 0, urls: { A: 0, A_tls: 0, B: 0, B_tls: 0 }, line: 0 },
  promote: {},
};
