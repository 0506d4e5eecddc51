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
  | "transport.changed";

export type ErrorCode = Problem["error"];

export interface Lease {
  /**
   * The fencing token: counts the dispatches of the task and its returns to open. Send it with
   * complete, fail, release and extend.
   */
  epoch: number;
  /**
   * When the hub takes the task back, unless task/extend or task/complete comes first; null without a
   * `timeout_s` and a `max_run_s`. No extend moves it past the end of `max_run_s`.
   */
  expires_at: string | null;
}

export interface Failure {
  /**
   * `failed`, `timed_out`, `offline`: why an attempt ended; `cancelled`, `expired`, `dependency`: why
   * the task ended.
   */
  kind:
    | "failed"
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
  /** The node that held the task or, if it was cancelled, the node that cancelled it. */
  node_id: string | null;
  /** When it happened. */
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
  /** Those of the input tokens that came from a cache. */
  cached_tokens: number;
  /** The sum of the costs that are known; null if there is none. */
  cost_usd: number | null;
  /** How many reports these are. */
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
   * `pause` (if left out): nothing that the budget is about is handed out once it is used up. `warn`:
   * only an event.
   */
  on_limit: "pause" | "warn";
  /** `warning` from 80 % on, `exceeded` when it is used up. */
  state: "open" | "warning" | "exceeded";
  /** Whether it keeps tasks back now. */
  paused: boolean;
  /** The first day of its period; null if that is all time. */
  since: string | null;
  /**
   * What was spent in its period. Reports without a cost count for no dollars: `without_cost` says how
   * many.
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
  /** Until then none of its tasks is handed out; null: it is not held. */
  held_until: string | null;
  /** How many are assigned; 0 without `running`. */
  running_now: number;
  /** How many were handed out in the last minute; 0 without `per_minute`. */
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
  /** The same in a sentence. */
  detail: string;
  /** When time alone ends it; null: nobody knows. */
  until: string | null;
  /** Of `depends_on`: the first 20 tasks that it waits for. */
  task_ids?: string[] | undefined;
  /** Of `no_node`: what the node lacks that comes closest. */
  missing?: string[] | undefined;
}

export interface Requirements {
  /** All of them must be among the capabilities of the node. */
  capabilities: string[];
  /** Amounts by name, with three decimals. */
  resources: Record<string, number>;
}

export interface InputFile {
  /** The id of the file. */
  file_id: string;
  /** The name that people see. */
  name: string;
  /** Bytes. */
  size: number;
  /**
   * What the file is for its task: `output` if its node was the `assigned_node` of the task when it was
   * attached, else `input`; null for a file of no task.
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
  /** The node that holds the task, or completed it. */
  assigned_node: string | null;
  /** Null if the task has none, or `omitted` is true. */
  result: TaskResult | null;
  /** Whether the result came with a key that is bound to the node that completed the task. */
  result_verified: boolean;
  /** The files. */
  files: InputFile[];
  /** True if the result or some of the files were left out, because there was no room for them. */
  omitted?: true | undefined;
}

export interface Checkpoint {
  /** As the worker sent it. */
  data: unknown;
  /** The epoch of the lease in which it was sent. */
  epoch: number;
  /** The node that sent it. */
  node_id: string;
  /** When it happened. */
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
  /** The node that sent it. */
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
  /** The JSON Schema of the answer that the worker expects; the hub shows it and does not enforce it. */
  schema: Record<string, unknown> | null;
  /** The node that asked. */
  asked_by: string;
  /** When it was asked. */
  asked_at: string;
  /** When it times out without an answer. */
  until: string;
  /** `timed_out`: its deadline has passed, or its task ended first. */
  state: "open" | "answered" | "timed_out";
  /** The answer; null if there is none. */
  answer: unknown;
  /** The node that answered; null if the answer named none. */
  answered_by: string | null;
  /** When it was answered or timed out; null while it is open. */
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
  /** The JSON Schema of the answer that the worker expects; the hub shows it and does not enforce it. */
  schema: Record<string, unknown> | null;
  /** The node that asked. */
  asked_by: string;
  /** When it was asked. */
  asked_at: string;
  /** When it times out without an answer. */
  until: string;
  /** `timed_out`: its deadline has passed, or its task ended first. */
  state: "open" | "answered" | "timed_out";
  /** The answer; null if there is none. */
  answer: unknown;
  /** The node that answered; null if the answer named none. */
  answered_by: string | null;
  /** When it was answered or timed out; null while it is open. */
  answered_at: string | null;
  /** Whether the answer came with a key that is bound to `answered_by`. */
  verified: boolean;
  /** The title of the task. */
  task_title: string;
  /** The node that created the task; it need not be registered. */
  creator_node: string | null;
}

export interface Review {
  /** Who checks: `creator`, `node:<node_id>` or `capability:<word>`. */
  by: string;
  /** Seconds that a result waits for its review. */
  within_s: number;
  /** What happens when nobody has reviewed it in time. */
  on_timeout: "pay" | "reject";
  /** The state of the last result; null until there is one. */
  state: "pending" | "passed" | "rejected" | null;
  /** The dispatch whose result it is: send it with task/review. */
  epoch: number | null;
  /** The deadline of the review. */
  until: string | null;
  /** What the reviewer wrote. */
  note: string | null;
  /** The node that reviewed; null: a caller that named none, or the deadline. */
  reviewed_by: string | null;
  /** When it was passed or rejected. */
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
   * `output` (if left out), or `json:` and JSON pointers into the result, separated by commas: what
   * must be equal, as JSON values.
   */
  compare: string;
  /** `failed`: they cannot agree any more. */
  state: "pending" | "agreed" | "failed";
  /** The ids of its copies: tasks with `parent_task`. */
  copies: string[];
  /** The nodes whose results agree, the first to complete first. */
  agreed: string[];
}

export interface PendingReview {
  /** The id of the task. */
  task_id: string;
  /** What to do, in one line. */
  title: string;
  /** The node that created the task; it need not be registered. */
  creator_node: string | null;
  /** The node that holds the task, or completed it. */
  assigned_node: string | null;
  /** The reward that the result waits for. */
  lux_held: number;
  /**
   * Who checks the result before the reward is paid: `creator` (of a task without one: any caller that
   * no key binds to a node), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that
   * type for another node.
   */
  review: Review;
}

export interface Context<V extends Variant = "A"> {
  /**
   * The tasks in `depends_on`, in that order. Their results have at most 256 KiB together;
   * task/<task_id>/inputs has all of them.
   */
  inputs?: TaskInput<V>[] | undefined;
  /** What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last one counts. */
  checkpoint?: Checkpoint | undefined;
  /** The newest questions about the task with their answers, oldest first: at most 20. */
  answers?: Question[] | undefined;
  /** Why the last result was rejected. */
  review?:
    | {
        /** The progress of the work; the task shows it as `progress`. */
        note: string | null;
        /** The node that reviewed; null: a caller that named none, or the deadline. */
        reviewed_by: string | null;
        /** When it was passed or rejected. */
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
  /** The node that created the task; it need not be registered. */
  creator_node: string | null;
  /** Whether the task was created with a key that is bound to its `creator_node`. */
  creator_verified: boolean;
  /** The status of the task. task/retry opens a `failed` task again. */
  status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
  /** LUX for the node that completes the task, with at most 6 decimals. */
  lux_reward: number;
  /** The node that holds the task, or completed it. */
  assigned_node: string | null;
  /** As the node sent it; null until the task is completed. */
  result: TaskResult | null;
  /** Whether the result came with a key that is bound to the node that completed the task. */
  result_verified: boolean;
  /** The number of the ledger entry that paid the task; left out if nothing was paid. */
  paid_seq?: number | undefined;
  /** Whether the task is open and may be handed out now. */
  ready: boolean;
  /**
   * Attempts without a result: failures, timeouts, nodes that went offline and, with `max_attempts`,
   * restarts.
   */
  attempts: number;
  /** The task fails after this many attempts; by default after 10 failures and timeouts. */
  max_attempts: number | null;
  /**
   * How often task/next has handed the task out again with `resume`, because its worker ended. With
   * `max_attempts` each counts as an attempt.
   */
  restarts: number;
  /** Seconds that a node may hold the task without task/extend or task/complete. */
  timeout_s: number | null;
  /** Seconds that one attempt may take in all, extended or not; then it has timed out. */
  max_run_s: number | null;
  /**
   * Dollars that all attempts of the task together may cost; the attempt that passes it ends the task
   * permanently (kind `budget`). Null: any.
   */
  max_cost_usd: number | null;
  /**
   * Seconds that the task is kept after its end, instead of `--retain-tasks`; only on tasks with their
   * own.
   */
  retain_s?: number | undefined;
  /**
   * What the attempts of the task have used, all together, as their workers reported it; null without
   * any report.
   */
  usage: Spending | null;
  /** The task is not handed out before this time. */
  not_before: string | null;
  /** If the task is not completed by this time, it fails. */
  expires_at: string | null;
  /** The ids of the tasks that must be completed first. */
  depends_on: string[];
  /** When the node started the task. */
  started_at: string | null;
  /** The last note of the node that holds it. */
  progress: string | null;
  /**
   * `answer` while a question about the task is open, `review` while its result waits for one; else
   * null.
   */
  waiting_for: "answer" | "review" | null;
  /** How its results are checked; only on tasks with a review. */
  review?: Review | undefined;
  /** How many do it, and whether they agree; only on such tasks. */
  quorum?: Quorum | undefined;
  /** The task for which the hub created this one; only on such tasks. */
  parent_task?: string | undefined;
  /**
   * `review`: it checks the result of `parent_task`, and its own result needs a `verdict`. `copy`: it
   * is one of several.
   */
  made_for?: "review" | "copy" | undefined;
  /** Nobody can read what its worker has sent, until the quorum is decided; only on such tasks. */
  sealed?: true | undefined;
  /** Why the last attempt, or the task, failed. */
  failure: Failure | null;
  /** The ids of the files that are attached to the task, oldest first. */
  files: string[];
  /** Those of `files` that came with the task or were attached by others than the node that holds it. */
  inputs: string[];
  /** Those of `files` that were attached by the node that holds the task, or held it. */
  outputs: string[];
  /** The schedule that created the task; only on such tasks. */
  schedule?:
    | {
        /** The name that people see. */
        name: string;
        /** When it happened. */
        at: string | null;
      }
    | undefined;
  /** The group of the task; only on a task of a group. */
  group?: string | undefined;
  /** The words to find the task by; left out if it has none. */
  tags?: string[] | undefined;
  /**
   * What a node must have to get the task: all the words in `capabilities`, and of each resource as
   * much as it says.
   */
  requires?: Requirements | undefined;
  /** The key whose limit (limit/set) applies to the task; left out: its `task_type`. */
  limit_key?: string | undefined;
  /**
   * While an unfinished task has this key, task/create makes no other, and answers with that one
   * (`deduplicated`).
   */
  unique_key?: string | undefined;
  /** The task holds its `unique_key` at least until then. */
  unique_until?: string | undefined;
  /**
   * `fail` (if left out): the task fails when one that it depends on fails or is deleted. `run`: it
   * starts when all have ended, however.
   */
  on_dependency?: "run" | undefined;
  /** When the task was created. */
  created_at: string;
  /** When the task last changed. */
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
  /** The node that created the task; it need not be registered. */
  creator_node: string | null;
  /** The status of the task. task/retry opens a `failed` task again. */
  status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
  /** LUX for the node that completes the task, with at most 6 decimals. */
  lux_reward: number;
  /** The node that holds the task, or completed it. */
  assigned_node: string | null;
  /** Whether the task is open and may be handed out now. */
  ready: boolean;
  /**
   * Attempts without a result: failures, timeouts, nodes that went offline and, with `max_attempts`,
   * restarts.
   */
  attempts: number;
  /** The task fails after this many attempts; by default after 10 failures and timeouts. */
  max_attempts: number | null;
  /** The task is not handed out before this time. */
  not_before: string | null;
  /** If the task is not completed by this time, it fails. */
  expires_at: string | null;
  /** How many of the tasks that it depends on are not completed yet. */
  unmet_count: number;
  /** When the node started the task. */
  started_at: string | null;
  /** The first line of the last note, at most 200 characters. */
  progress: string | null;
  /**
   * `answer` while a question about the task is open, `review` while its result waits for one; else
   * null.
   */
  waiting_for: "answer" | "review" | null;
  /** The task for which the hub created this one; only on such tasks. */
  parent_task?: string | undefined;
  /**
   * `review`: it checks the result of `parent_task`, and its own result needs a `verdict`. `copy`: it
   * is one of several.
   */
  made_for?: "review" | "copy" | undefined;
  /** Why the last attempt, or the task, failed. */
  failure: Failure | null;
  /** The schedule that created the task; only on such tasks. */
  schedule?:
    | {
        /** The name that people see. */
        name: string;
        /** When it happened. */
        at: string | null;
      }
    | undefined;
  /** The group of the task; only on a task of a group. */
  group?: string | undefined;
  /** The words to find the task by; left out if it has none. */
  tags?: string[] | undefined;
  /** When the task was created. */
  created_at: string;
  /** When the task last changed. */
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
  /** The node that created the task; it need not be registered. */
  creator_node: string | null;
  /** Whether the task was created with a key that is bound to its `creator_node`. */
  creator_verified: boolean;
  /** The status of the task. task/retry opens a `failed` task again. */
  status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
  /** LUX for the node that completes the task, with at most 6 decimals. */
  lux_reward: number;
  /** The node that holds the task, or completed it. */
  assigned_node: string | null;
  /** As the node sent it; null until the task is completed. */
  result: TaskResult | null;
  /** Whether the result came with a key that is bound to the node that completed the task. */
  result_verified: boolean;
  /** The number of the ledger entry that paid the task; left out if nothing was paid. */
  paid_seq?: number | undefined;
  /** Whether the task is open and may be handed out now. */
  ready: boolean;
  /**
   * Attempts without a result: failures, timeouts, nodes that went offline and, with `max_attempts`,
   * restarts.
   */
  attempts: number;
  /** The task fails after this many attempts; by default after 10 failures and timeouts. */
  max_attempts: number | null;
  /**
   * How often task/next has handed the task out again with `resume`, because its worker ended. With
   * `max_attempts` each counts as an attempt.
   */
  restarts: number;
  /** Seconds that a node may hold the task without task/extend or task/complete. */
  timeout_s: number | null;
  /** Seconds that one attempt may take in all, extended or not; then it has timed out. */
  max_run_s: number | null;
  /**
   * Dollars that all attempts of the task together may cost; the attempt that passes it ends the task
   * permanently (kind `budget`). Null: any.
   */
  max_cost_usd: number | null;
  /**
   * Seconds that the task is kept after its end, instead of `--retain-tasks`; only on tasks with their
   * own.
   */
  retain_s?: number | undefined;
  /**
   * What the attempts of the task have used, all together, as their workers reported it; null without
   * any report.
   */
  usage: Spending | null;
  /** The task is not handed out before this time. */
  not_before: string | null;
  /** If the task is not completed by this time, it fails. */
  expires_at: string | null;
  /** The ids of the tasks that must be completed first. */
  depends_on: string[];
  /** When the node started the task. */
  started_at: string | null;
  /** The last note of the node that holds it. */
  progress: string | null;
  /**
   * `answer` while a question about the task is open, `review` while its result waits for one; else
   * null.
   */
  waiting_for: "answer" | "review" | null;
  /** How its results are checked; only on tasks with a review. */
  review?: Review | undefined;
  /** How many do it, and whether they agree; only on such tasks. */
  quorum?: Quorum | undefined;
  /** The task for which the hub created this one; only on such tasks. */
  parent_task?: string | undefined;
  /**
   * `review`: it checks the result of `parent_task`, and its own result needs a `verdict`. `copy`: it
   * is one of several.
   */
  made_for?: "review" | "copy" | undefined;
  /** Nobody can read what its worker has sent, until the quorum is decided; only on such tasks. */
  sealed?: true | undefined;
  /** Why the last attempt, or the task, failed. */
  failure: Failure | null;
  /** The ids of the files that are attached to the task, oldest first. */
  files: string[];
  /** Those of `files` that came with the task or were attached by others than the node that holds it. */
  inputs: string[];
  /** Those of `files` that were attached by the node that holds the task, or held it. */
  outputs: string[];
  /** The schedule that created the task; only on such tasks. */
  schedule?:
    | {
        /** The name that people see. */
        name: string;
        /** When it happened. */
        at: string | null;
      }
    | undefined;
  /** The group of the task; only on a task of a group. */
  group?: string | undefined;
  /** The words to find the task by; left out if it has none. */
  tags?: string[] | undefined;
  /**
   * What a node must have to get the task: all the words in `capabilities`, and of each resource as
   * much as it says.
   */
  requires?: Requirements | undefined;
  /** The key whose limit (limit/set) applies to the task; left out: its `task_type`. */
  limit_key?: string | undefined;
  /**
   * While an unfinished task has this key, task/create makes no other, and answers with that one
   * (`deduplicated`).
   */
  unique_key?: string | undefined;
  /** The task holds its `unique_key` at least until then. */
  unique_until?: string | undefined;
  /**
   * `fail` (if left out): the task fails when one that it depends on fails or is deleted. `run`: it
   * starts when all have ended, however.
   */
  on_dependency?: "run" | undefined;
  /** When the task was created. */
  created_at: string;
  /** When the task last changed. */
  updated_at: string;
  /** The tasks in `depends_on` that are not completed yet. */
  unmet: {
    /** How many they are. */
    count: number;
    /** The ids of the first 20, oldest first. */
    task_ids: string[];
  };
}

export interface Node<V extends Variant = "A"> {
  /** The id of the node. */
  node_id: string;
  /** The name that people see. */
  name: string;
  /** `offline` when its heartbeats stopped or it left. */
  status: "online" | "offline";
  /** Where people can reach the node: the hub does not use it. */
  host: string | null;
  /** Where people can reach the node: the hub does not use it. */
  port: number | null;
  /** The task types that the node takes; empty means all. */
  capabilities: By<V, string, string[]>;
  /** What the node has; left out if it has said nothing. */
  resources?: Record<string, number> | undefined;
  /** What its unfinished tasks use of it. */
  resources_used?: Record<string, number> | undefined;
  /** The balancer assigns the node no more unfinished tasks than this; null means any number. */
  max_tasks: number | null;
  /** Whether the balancer may assign the node tasks. */
  auto_assign: boolean;
  /** Whether the node drains: it gets no new tasks. */
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
  /** The sender; it need not be registered. */
  from_node: string;
  /** The recipient; null for a broadcast. */
  to_node: string | null;
  /** The message itself; at most 256 KiB of UTF-8. */
  content: string;
  /** The kind of message. */
  type: "text" | "task" | "status" | "broadcast" | "alert" | "update";
  /**
   * Whether the recipient must confirm the message; until then the hub delivers it again, up to 5
   * times.
   */
  require_ack: boolean;
  /** The id of the message that this one answers; null if it answers none. */
  reply_to: string | null;
  /**
   * The conversation: the id of its first message, or a name that the sender gives. A reply continues
   * the conversation of the message that it answers.
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
  /** The sender; it need not be registered. */
  from_node: string;
  /** The recipient. */
  to_node: string | null;
  /** The message itself; at most 256 KiB of UTF-8. */
  content: string;
  /** The kind of message. */
  type: "text" | "task" | "status" | "broadcast" | "alert" | "update";
  /**
   * Whether the recipient must confirm the message; until then the hub delivers it again, up to 5
   * times.
   */
  require_ack: boolean;
  /** The id of the message that this one answers; the sender must have sent or received it. */
  reply_to: string | null;
  /**
   * The conversation: the id of its first message, or a name that the sender gives. A reply continues
   * the conversation of the message that it answers.
   */
  thread: string;
  /** Whether the message came with a key that is bound to its sender. */
  verified: boolean;
  /** When the message was sent. */
  sent_at: string;
  /** Whether it was delivered before. */
  redelivered: boolean;
  /** How often it was delivered. */
  deliveries: number;
}

export interface HistoryMessage {
  /** The id of the message: `message_id` in the response to the send, and in the ACK. */
  id: string;
  /** The sender; it need not be registered. */
  from_node: string;
  /** The recipient. */
  to_node: string | null;
  /** The message itself; at most 256 KiB of UTF-8. */
  content: string;
  /** The kind of message. */
  type: "text" | "task" | "status" | "broadcast" | "alert" | "update";
  /**
   * Whether the recipient must confirm the message; until then the hub delivers it again, up to 5
   * times.
   */
  require_ack: boolean;
  /** The id of the message that this one answers; the sender must have sent or received it. */
  reply_to: string | null;
  /**
   * The conversation: the id of its first message, or a name that the sender gives. A reply continues
   * the conversation of the message that it answers.
   */
  thread: string;
  /** Whether the message came with a key that is bound to its sender. */
  verified: boolean;
  /** When the message was sent. */
  sent_at: string;
  /** The delivery status: `waiting`, `delivered`, `acked` or `parked`. */
  state: "waiting" | "delivered" | "acked" | "parked" | null;
  /** How often it was delivered. */
  deliveries: number | null;
  /** The recipients of a broadcast that the node sent, counted by state; null for every other message. */
  recipients: {
    /** How many have not received it yet. */
    waiting: number;
    /** How many have received it. */
    delivered: number;
    /** How many have confirmed it. */
    acked: number;
    /** How many never confirmed it. */
    parked: number;
  } | null;
}

export interface NoteHead {
  /** The name of the note. */
  key: string;
  /** 1 for a new note; each write adds 1. */
  version: number;
  /** Who wrote this version; null: the request named no node. */
  node_id: string | null;
  /** Whether it was written with a key that is bound to `node_id`. */
  verified: boolean;
  /** Of the key and the text together, in UTF-8. */
  bytes: number;
  /** When version 1 was written. */
  created_at: string;
  /** When this version was written. */
  updated_at: string;
}

export interface Note {
  /** The name of the note. */
  key: string;
  /** 1 for a new note; each write adds 1. */
  version: number;
  /** Who wrote this version; null: the request named no node. */
  node_id: string | null;
  /** Whether it was written with a key that is bound to `node_id`. */
  verified: boolean;
  /** Of the key and the text together, in UTF-8. */
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
  /** 1 for a new note; each write adds 1. */
  version: number;
  /** Who wrote this version; null: the request named no node. */
  node_id: string | null;
  /** Whether it was written with a key that is bound to `node_id`. */
  verified: boolean;
  /** Of the key and the text together, in UTF-8. */
  bytes: number;
  /** When version 1 was written. */
  created_at: string;
  /** When this version was written. */
  updated_at: string;
  /** The line of the text in which a word was found, or its beginning; at most 200 characters. */
  excerpt: string;
}

export interface AdvisoryLease {
  /** The name or glob. */
  name: string;
  /** The node that has the lease. */
  node_id: string;
  /** The task that the lease ends with; null: none. */
  task_id: string | null;
  /** Whether others may have a shared lease on the same. */
  shared: boolean;
  /**
   * The fencing number: larger than that of every earlier lease. Send it along to what the lease
   * protects, which refuses smaller ones.
   */
  fencing: number;
  /** Seconds from an acquire or renew to the deadline. */
  ttl_s: number;
  /** When the lease was acquired. */
  acquired_at: string;
  /** The deadline: from then on the lease counts for nothing. */
  until: string;
}

export interface LedgerEntry {
  /** The number of the entry in the ledger of all nodes: 1, 2, 3, … */
  seq: number;
  /** The id of the entry. */
  id: string;
  /** The node that was paid; null: the entry goes to another account. */
  node_id: string | null;
  /** The account that it comes from: `treasury`, or `held:` and the task_id. */
  from: string;
  /** The account that it goes to: `node:` and the node_id, `held:` and the task_id, or `treasury`. */
  to: string;
  /** LUX, exact to 6 decimals. */
  amount: number;
  /**
   * `reward` of a task, `signin`, `hold` (a reward is held back) or `return` (a reward that was held
   * back goes back to the treasury).
   */
  kind: "reward" | "signin" | "hold" | "return";
  /** The task of a reward; null for a daily bonus. */
  task_id: string | null;
  /** When it happened. */
  at: string;
  /** The hash of the entry before it, 64 zeros for the first; null: it is older than the hash chain. */
  prev_hash: string | null;
  /**
   * SHA-256 of the entry and of `prev_hash`, as hex (docs/concepts.md has its bytes); null: it is older
   * than the hash chain.
   */
  hash: string | null;
}

export interface LedgerHead {
  /** Its number; 0: the ledger has no entry. */
  seq: number;
  /** Its hash; null: it is older than the hash chain, or there is no entry. */
  hash: string | null;
}

export interface Receipt {
  /** The id of the ledger entry. */
  entry_id: string;
  /** LUX that were paid. */
  amount: number;
  /**
   * The hash of the ledger entry: the ledger cannot be changed up to it without changing this. null:
   * the entry is older than the hash chain.
   */
  hash: string | null;
}

export interface FileRecord {
  /** The id of the file. */
  file_id: string;
  /** The last part of the uploaded name. */
  name: string;
  /** Bytes. */
  size: number;
  /** SHA-256 of the bytes, in hexadecimal digits. */
  sha256: string;
  /** As uploaded; `application/octet-stream` if that was invalid. */
  content_type: string;
  /** As uploaded, numbers included; empty if there was none. */
  metadata: Record<string, unknown>;
  /** The node that the file is attached to. */
  node_id: string | null;
  /** Whether the file was uploaded with a key that is bound to its node. */
  verified: boolean;
  /** The task that the file is attached to. */
  task_id: string | null;
  /**
   * What the file is for its task: `output` if its node was the `assigned_node` of the task when it was
   * attached, else `input`; null for a file of no task.
   */
  attached: "input" | "output" | null;
  /** When the file was uploaded. */
  uploaded_at: string;
  /** The path for its download. */
  url: string;
}

export interface Schedule<V extends Variant = "A"> {
  /** The name of the schedule. */
  name: string;
  /** A cron expression: minute, hour, day of month, month, day of week; or `@daily` and the like. */
  cron: string | null;
  /** The time zone of `cron`, of the IANA database; `UTC` if left out. */
  tz: string | null;
  /** The seconds between two times, instead of `cron`; the first comes after so many seconds. */
  every_s: number | null;
  /** The task that it creates. */
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
    /** The node that created the task; it need not be registered. */
    creator_node: string | null;
    /** LUX for the node that completes the task, with at most 6 decimals. */
    lux_reward: number;
    /** The task fails after this many attempts; by default after 10 failures and timeouts. */
    max_attempts: number | null;
    /**
     * Seconds from a failed attempt until the task is open again (5 by default); doubles with each
     * attempt, up to an hour.
     */
    backoff_s: number;
    /** Seconds that a node may hold the task without task/extend or task/complete. */
    timeout_s: number | null;
    /** Seconds that one attempt may take in all, extended or not; then it has timed out. */
    max_run_s: number | null;
    /**
     * Dollars that all attempts of the task together may cost; the attempt that passes it ends the task
     * permanently (kind `budget`). Null: any.
     */
    max_cost_usd: number | null;
    /**
     * Seconds that the task is kept after its end, instead of `--retain-tasks`; only on tasks with their
     * own.
     */
    retain_s: number | null;
    /**
     * Who checks the result before the reward is paid: `creator` (of a task without one: any caller that
     * no key binds to a node), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that
     * type for another node.
     */
    review?: string | undefined;
    /** Seconds until the result counts as `on_review_timeout` says; 604,800 (a week) if left out. */
    review_within_s?: number | undefined;
    /** What happens when nobody has reviewed the result in time: `pay` (if left out) or `reject`. */
    on_review_timeout?: "pay" | "reject" | undefined;
    /**
     * Several nodes do the task, and it completes when `results` (2 to 9) of at most `of` (`results` to
     * 15; as many as make `results` a majority if left out) copies agree.
     */
    quorum?:
      | {
          /** The result of each assignment, in the same order. */
          results: number;
          /** How many copies there are at most. */
          of: number;
          /**
           * `output` (if left out), or `json:` and JSON pointers into the result, separated by commas: what
           * must be equal, as JSON values.
           */
          compare: string;
        }
      | undefined;
    /** Seconds until the task may be handed out. */
    delay_s: number;
    /** The name of the group of tasks. */
    group?: string | undefined;
    /** The words to find the task by; left out if it has none. */
    tags?: string[] | undefined;
    /**
     * What a node must have to get the task: all the words in `capabilities`, and of each resource as
     * much as it says.
     */
    requires?: Requirements | undefined;
    /** The key whose limit (limit/set) applies to the task; left out: its `task_type`. */
    limit_key?: string | undefined;
  };
  /** At a time when an earlier task is unfinished: no new task (`skip`), or one more (`queue`). */
  overlap: "skip" | "queue";
  /** After times at which no hub ran: a task for the last of them (`one`), or for none (`none`). */
  catch_up: "one" | "none";
  /** Each task may start up to so many seconds later. */
  jitter_s: number;
  /** No time comes after this. */
  until: string | null;
  /** Whether no time comes until it is saved without this. */
  paused: boolean;
  /** The next time; null while it is paused, and after the last. */
  next_at: string | null;
  /** The last task that it created. */
  last_task_id: string | null;
  /** When it created that task. */
  last_at: string | null;
  /** When the task was created. */
  created_at: string;
  /** When the task last changed. */
  updated_at: string;
}

export interface Webhook {
  /** The name of the webhook; that of a push notification config of A2A begins with `a2a:`. */
  name: string;
  /** The URL to which it sends. */
  url: string;
  /** What it sends: events as JSON (`luxhub`), notifications (`ntfy`), or the updates of A2A (`a2a`). */
  format: "luxhub" | "a2a" | "ntfy";
  /** Only events of these kinds; without any, of all kinds. */
  kinds: EventKind[];
  /** Only events of this task. */
  task_id: string | null;
  /** Only events of this node. */
  node_id: string | null;
  /** Only events of the tasks that this node created. */
  creator_node: string | null;
  /** Only events of the tasks of this group. */
  group: string | null;
  /** `suspended`: it sends nothing until webhook/resume. */
  state: "active" | "suspended";
  /** The id of the last event that needs no delivery any more. */
  cursor: number;
  /** How often the delivery has failed since the last success. */
  attempts: number;
  /** When the first of these attempts was; null: the last one succeeded. */
  failing_since: string | null;
  /** When it tries again. */
  next_attempt_at: string | null;
  /** Why the last attempt failed. */
  last_error: string | null;
  /** When it last delivered a message. */
  last_delivered_at: string | null;
  /** When the task was created. */
  created_at: string;
  /** When the task last changed. */
  updated_at: string;
}

export interface Key {
  /** The name of the key. */
  name: string;
  /** What the key may do. A viewer can read all but message contents; `admin` is for `X-Admin-Key`. */
  role: "full" | "viewer" | "admin";
  /** Whether the key is `valid`, `expired` or `revoked`. */
  state: "valid" | "expired" | "revoked";
  /** The variant of the responses to its requests; null: that of the listener. */
  variant: "A" | "B" | null;
  /** The node that the key is bound to: it acts only for this node. */
  node_id: string | null;
  /**
   * LUX that the key may promise per UTC day, as rewards of tasks; null: any amount, or none if the hub
   * is strict and the key bound to a node.
   */
  mint_per_day: number | null;
  /** When it was made; null for the keys of the first start. */
  created_at: string | null;
  /** When it ends; null: never. */
  expires_at: string | null;
  /** When it was revoked. */
  revoked_at: string | null;
  /**
   * What counts against the quotas of its node. Only in key/list, for a key of the role `full` that is
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
  /** When it was made. */
  created_at: string;
  /** When it ends, by the hub's clock. */
  expires_at: string;
  /** When a machine joined with it. */
  used_at: string | null;
  /** The name of the key that was made from it; null until then. */
  key: string | null;
}

export interface Event {
  /** Increases with each commit. */
  id: number;
  /** The kind of event. */
  kind: EventKind;
  /** When it happened. */
  at: string;
  /** The node that the event is about. */
  node_id: string | null;
  /** The task that the event is about. */
  task_id: string | null;
  /**
   * Whether the request came with a key that is bound to the acting node: `node_id`, or of
   * `message.sent` the sender.
   */
  verified: boolean;
  /** Further fields, which depend on the kind. */
  data: Record<string, string | number | boolean | null>;
}

export interface Durations {
  /** How many durations. */
  count: number;
  /** Their sum, in seconds. */
  sum_s: number;
  /** The median in seconds, estimated; null without durations. */
  p50_s: number | null;
  /** The 95th percentile in seconds, estimated; null without durations. */
  p95_s: number | null;
}

export interface TypeStats {
  /** The type; null for tasks without one. */
  task_type: string | null;
  /**
   * Tasks that may be handed out now, counted up to 50,000; without those beyond 1,000 types, and
   * beyond 1,000 lanes of tasks with requirements or a limit key of their own.
   */
  open: number;
  /** Since when the oldest of them may be handed out; null without any. */
  oldest_open_at: string | null;
  /**
   * Open tasks that wait for their time, other tasks or an answer; of all types together counted up to
   * 50,000.
   */
  waiting: number;
  /** Tasks that a node holds; of all types together counted up to 50,000. */
  assigned: number;
  /** Tasks completed in the last hour. */
  completed: number;
  /** Tasks that failed in the last hour. */
  failed: number;
  /** How long tasks waited until they were handed out, each time, in the last hour. */
  time_to_start: Durations;
  /** Nodes that could take such a task now: online, not draining and with room. */
  takers: number;
  /** Online nodes that take tasks of this type. */
  nodes_online: number;
  /** Nodes, online or not, that take tasks of this type. */
  nodes_registered: number;
}

export interface StuckStats {
  /** The hub compares it with the capabilities of nodes. A task without a type fits every node. */
  task_type: string | null;
  /** How many may be handed out now; counted up to 50,000. */
  open: number;
  /** Since when the oldest of them may be handed out. */
  oldest_open_at: string | null;
  /** Offline nodes that have what the tasks require. */
  nodes_registered: number;
  /**
   * What the registered node that comes closest lacks; null: an offline node has it all, or no node is
   * registered.
   */
  missing: string | null;
  /** The task of them that would be handed out first. */
  task_id: string | null;
}

export interface FailureGroup {
  /** The id of the group: `failure_group` of task/list and task/count selects its tasks. */
  group: string;
  /** The type of its tasks; null without one. */
  task_type: string | null;
  /** The kind of the failures. */
  kind:
    | "failed"
    | "timed_out"
    | "offline"
    | "cancelled"
    | "expired"
    | "dependency"
    | "budget"
    | "rejected"
    | "no_quorum";
  /** The first line of the newest message. The messages of a group are the same but for numbers and ids. */
  message: string;
  /** How many tasks have failed so. */
  count: number;
  /** At how many nodes. */
  nodes: number;
  /** The first 5 of these nodes, those with the most failures first. */
  node_ids: string[];
  /** When the last one failed. */
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
  /** How many tasks failed permanently. */
  tasks_failed: number;
  /** LUX paid, including sign-ins. */
  lux_paid: number;
  /** How many messages were sent; a broadcast is one. */
  messages_sent: number;
  /** The time to start: from when a task became ready until it was first handed out. */
  time_to_start: Durations;
  /** The time from when a task could be handed out to its completion. */
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
  /** How many tasks failed permanently. */
  tasks_failed: number;
  /** LUX paid, including sign-ins. */
  lux_paid: number;
  /** How many messages were sent; a broadcast is one. */
  messages_sent: number;
  /** The time to start: from when a task became ready until it was first handed out. */
  time_to_start: Durations;
  /** The time from when a task could be handed out to its completion. */
  time_to_finish: Durations;
}

export interface TaskAnswer<V extends Variant = "A"> {
  success: true;
  /** The id of the task. */
  task_id: string;
  /** The status of the task. task/retry opens a `failed` task again. */
  status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
  /** The node that holds the task, or completed it. */
  assigned_node: string | null;
  /** The node's hold on the task. */
  lease: Lease;
  /** The task as it is now. */
  task: Task<V>;
  /**
   * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
   * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
    | "limit_not_found"
    | "note_not_found"
    | "key_not_found"
    | "invitation_not_found"
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
    | "schedule_not_found"
    | "group_not_found"
    | "schedules_limit"
    | "webhook_not_found"
    | "webhooks_limit"
    | "usage_limit"
    | "budget_exceeded"
    | "budgets_limit"
    | "paused"
    | "pauses_limit"
    | "limit_reached"
    | "limits_limit"
    | "too_many_lanes"
    | "requirements_not_met"
    | "key_exists"
    | "keys_limit"
    | "invitation_used"
    | "invitation_expired"
    | "invitations_limit"
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
      /** The id of the node, which it chooses: 1 to 128 characters of `A-Z a-z 0-9 . _ : -`. */
      node_id: string;
      /** The name that people see. */
      name: string;
      /** Where people can reach the node: the hub does not use it. */
      host?: string | undefined;
      /** Where people can reach the node: the hub does not use it. */
      port?: number | undefined;
      /** The task types that the node takes; without any it takes all. Comma-separated, or an array. */
      capabilities?: string | readonly string[] | undefined;
      /** What the node has, as amounts by name, rounded to three decimals; tasks may require some of it. */
      resources?: Record<string, number> | undefined;
      /** The balancer assigns the node no more unfinished tasks than this; null means any number. */
      max_tasks?: number | undefined;
      /** Whether the balancer may assign the node tasks. */
      auto_assign?: boolean | undefined;
    };
    answer: {
      success: true;
      /** The id of the node, which it chooses: 1 to 128 characters of `A-Z a-z 0-9 . _ : -`. */
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** Whether the node drains: it finishes its tasks and gets no new ones. */
      drain: boolean;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Drains a node (it finishes its tasks, gets no new ones), or ends that */
  "node/drain": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** Whether the node drains: it finishes its tasks and gets no new ones. */
      drain: boolean;
    };
    answer: {
      success: true;
      /** The id of the node. */
      node_id: string;
      /** Whether the node drains: it finishes its tasks and gets no new ones. */
      drain: boolean;
      /** How many unfinished tasks the node has. */
      tasks_assigned: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** All nodes, or a page of them: by state, name, capability and order */
  "node/list": {
    request: {
      /** Only nodes in this state; `online` includes draining nodes. */
      status?: "online" | "draining" | "offline" | undefined;
      /** Only nodes whose node_id or name begins with this, in upper or lower case. */
      q?: string | undefined;
      /** Only nodes that take tasks of this type: it is among their capabilities, or they have none. */
      capability?: string | undefined;
      /**
       * `id` (the default); `busy`: most unfinished tasks first, offline nodes last; `lux`: highest balance
       * first.
       */
      order?: "id" | "busy" | "lux" | undefined;
      /**
       * In the query `1`: the response also has, of each node of the page, the first 3 tasks that it holds,
       * the oldest first.
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
      /**
       * In the query `1`: the response also has, of each node of the page, the first 3 tasks that it holds,
       * the oldest first.
       */
      tasks?: TaskSummary<V>[] | undefined;
      /** The number of the page, from 1. */
      page?: number | null | undefined;
      /** Rows on a page; above 50 is read as 50. */
      per_page?: number | undefined;
      /** How many nodes match; null if they were not counted. */
      total?: number | null | undefined;
      /** How many pages there are; null if they were not counted. */
      pages?: number | null | undefined;
      /** Send it as `cursor` to get the next page; null at the end. */
      next_cursor?: string | null | undefined;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** The node that created the task; it need not be registered. */
      creator_node?: string | undefined;
      /** LUX for the node that completes the task, with at most 6 decimals. */
      lux_reward?: number | undefined;
      /** The task fails after this many attempts; by default after 10 failures and timeouts. */
      max_attempts?: number | undefined;
      /**
       * Seconds from a failed attempt until the task is open again (5 by default); doubles with each
       * attempt, up to an hour.
       */
      backoff_s?: number | undefined;
      /** Seconds that a node may hold the task without task/extend or task/complete. */
      timeout_s?: number | undefined;
      /** Seconds that one attempt may take in all, extended or not; then it has timed out. */
      max_run_s?: number | undefined;
      /**
       * Dollars that all attempts of the task together may cost; the attempt that passes it ends the task
       * permanently (kind `budget`). Null: any.
       */
      max_cost_usd?: number | undefined;
      /**
       * Seconds that the task is kept after its end, instead of `--retain-tasks`; only on tasks with their
       * own.
       */
      retain_s?: number | undefined;
      /**
       * Who checks the result before the reward is paid: `creator` (of a task without one: any caller that
       * no key binds to a node), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that
       * type for another node.
       */
      review?: string | undefined;
      /** Seconds until the result counts as `on_review_timeout` says; 604,800 (a week) if left out. */
      review_within_s?: number | undefined;
      /** What happens when nobody has reviewed the result in time: `pay` (if left out) or `reject`. */
      on_review_timeout?: "pay" | "reject" | undefined;
      /**
       * Several nodes do the task, and it completes when `results` (2 to 9) of at most `of` (`results` to
       * 15; as many as make `results` a majority if left out) copies agree.
       */
      quorum?:
        | {
            /** The result of each assignment, in the same order. */
            results: number;
            /** How many copies there are at most. */
            of?: number | undefined;
            /**
             * `output` (if left out), or `json:` and JSON pointers into the result, separated by commas: what
             * must be equal, as JSON values.
             */
            compare?: string | undefined;
          }
        | undefined;
      /** Seconds until the task may be handed out. */
      delay_s?: number | undefined;
      /** The task is not handed out before this time. */
      not_before?: string | undefined;
      /** If the task is not completed by this time, it fails. */
      expires_at?: string | undefined;
      /** The ids of the tasks that must be completed first. */
      depends_on?: readonly string[] | undefined;
      /**
       * `fail` (if left out): the task fails when one that it depends on fails or is deleted. `run`: it
       * starts when all have ended, however.
       */
      on_dependency?: "fail" | "run" | undefined;
      /**
       * The ids of uploaded files that belong to no task: they become inputs of the task in the same
       * commit.
       */
      files?: readonly string[] | undefined;
      /** The group that the task joins. A group is its tasks: it begins with the first one. */
      group?: string | undefined;
      /** Up to 16 words to find the task by, none with a comma. */
      tags?: readonly string[] | undefined;
      /**
       * What a node must have to get the task: all the words in `capabilities`, and of each resource as
       * much as it says.
       */
      requires?:
        | {
            /** All of them must be among the capabilities of the node. */
            capabilities?: string | readonly string[] | undefined;
            /** Amounts by name, rounded to three decimals. */
            resources?: Record<string, number> | undefined;
          }
        | undefined;
      /** The key whose limit (limit/set) applies to the task; left out: its `task_type`. */
      limit_key?: string | undefined;
      /**
       * Assigns the task to this node, which must be online. The task must be ready. If the node gives it
       * back or goes offline, other nodes may take it.
       */
      for_node?: string | undefined;
      /**
       * While an unfinished task has this key, task/create makes no other, and answers with that one
       * (`deduplicated`).
       */
      unique_key?: string | undefined;
      /** Seconds from the creation for which the task holds its `unique_key`, finished or not. */
      unique_for_s?: number | undefined;
    };
    answer: {
      success: true;
      /** The id of the task. */
      task_id: string;
      /** The status of the task. task/retry opens a `failed` task again. */
      status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
      /** The node that holds the task, or completed it. */
      assigned_node: string | null;
      /** The node's hold on the task. */
      lease: Lease;
      /** The task as it is now. */
      task: Task<V>;
      /** Only if true: no task was created, because this one has the `unique_key`. */
      deduplicated?: true | undefined;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only open tasks of these types; tasks that are already assigned to the node are handed out whatever
       * their type.
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
      /** The node's hold on it; null without a task. */
      lease: Lease | null;
      /** Whether the node drains: it gets no new tasks. */
      drain: boolean;
      /** What other tasks and earlier attempts leave for the worker of the task; absent if there is nothing. */
      context?: Context<V> | undefined;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** The node that holds the task, or completed it. */
      assigned_node: string | null;
      /** The node's hold on the task. */
      lease: Lease;
      /** The task as it is now. */
      task: Task<V>;
      /** What other tasks and earlier attempts leave for the worker of the task; absent if there is nothing. */
      context?: Context<V> | undefined;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** The epoch of the lease: any but the current one returns 409 `stale_lease`. */
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
            /** Those of the input tokens that came from a cache. */
            cached_tokens?: number | null | undefined;
            /** Dollars, rounded to a millionth. Left out or null: the worker does not know it, which is not zero. */
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
      /** The reward while the result waits for its review; only of tasks with a review. */
      lux_held?: number | undefined;
      /** The entry of the ledger that paid it; null if nothing was paid. A repeat gets the same receipt. */
      receipt: Receipt | null;
      /** The id of the task. */
      task_id: string;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** The epoch of the lease: any but the current one returns 409 `stale_lease`. */
      epoch?: number | undefined;
      /** The reason, which the event shows. */
      reason?: string | undefined;
      /** What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last one counts. */
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
            /** Those of the input tokens that came from a cache. */
            cached_tokens?: number | null | undefined;
            /** Dollars, rounded to a millionth. Left out or null: the worker does not know it, which is not zero. */
            cost_usd?: number | null | undefined;
          }[]
        | undefined;
      /** Also holds the limit key of the task for so many seconds, as limit/hold does. */
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
      /** The epoch of the lease: any but the current one returns 409 `stale_lease`. */
      epoch?: number | undefined;
      /** What went wrong. */
      error: string;
      /** Whether the task may be tried again. */
      retry?: boolean | undefined;
      /** What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last one counts. */
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
            /** Those of the input tokens that came from a cache. */
            cached_tokens?: number | null | undefined;
            /** Dollars, rounded to a millionth. Left out or null: the worker does not know it, which is not zero. */
            cost_usd?: number | null | undefined;
          }[]
        | undefined;
      /** Also holds the limit key of the task for so many seconds, as limit/hold does. */
      hold_s?: number | undefined;
    };
    answer: TaskAnswer<V>;
  };

  /** Extends the lease of a task; may note progress, a checkpoint, usage */
  "task/extend": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The id of the node. */
      node_id: string;
      /** The epoch of the lease: any but the current one returns 409 `stale_lease`. */
      epoch?: number | undefined;
      /** The progress of the work; the task shows it as `progress`. */
      note?: string | undefined;
      /** What a worker leaves for the next attempt: any JSON, at most 64 KiB. The last one counts. */
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
            /** Those of the input tokens that came from a cache. */
            cached_tokens?: number | null | undefined;
            /** Dollars, rounded to a millionth. Left out or null: the worker does not know it, which is not zero. */
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
      /** The node that holds the task, or completed it. */
      assigned_node: string | null;
      /** The node's hold on the task. */
      lease: Lease;
      /** The task as it is now. */
      task: Task<V>;
      /** What the task may still cost; null without `max_cost_usd`. */
      budget_left_usd: number | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Opens a failed task again, and what failed only because of it */
  "task/retry": {
    request: {
      /** The id of the task. */
      task_id: string;
      /**
       * Opens again, in the same commit, also what failed only because of this task: up to 1,000 tasks, the
       * oldest first. A task that is not failed any more stays as it is.
       */
      with_dependents?: boolean | undefined;
      /** False: the checkpoint of earlier attempts is removed. True if left out. */
      keep_checkpoint?: boolean | undefined;
      /** Replaces that of the task: needed if the task has cost more than its own already. */
      max_cost_usd?: number | undefined;
    };
    answer: {
      success: true;
      /** The id of the task. */
      task_id: string;
      /** The status of the task. task/retry opens a `failed` task again. */
      status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
      /** The node that holds the task, or completed it. */
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
            /** How many are left, at most 100,000: repeat the call for the next ones. */
            left: number;
          }
        | undefined;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Ends an unfinished task: it fails */
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
      /** It can only grow, unless the request has the administrator key too. */
      lux_reward?: number | undefined;
      /** The task is not handed out before this time; one in the past, or null: at once. */
      not_before?: string | null | undefined;
      /** If the task is not completed by this time, it fails; null: it expires no more. */
      expires_at?: string | null | undefined;
      /** The key whose limit applies to the task; null: its `task_type`. */
      limit_key?: string | null | undefined;
      /** Its tags from now on, in place of all that it has; `[]`: none. */
      tags?: readonly string[] | undefined;
    };
    answer: TaskAnswer<V>;
  };

  /** Takes a task back from its node, or gives it to another */
  "task/revoke": {
    request: {
      /** The id of the task. */
      task_id: string;
      /** The node that gets the task; without it the task is open again. */
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
         * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
         * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Tasks, newest first; by state, node, type, group, failure, time, title */
  "task/list": {
    request: {
      /** Only tasks of this status, in the words of either variant. */
      status?: "open" | "assigned" | "pending" | "completed" | "failed" | undefined;
      /** Only tasks that this node holds or completed. */
      node_id?: string | undefined;
      /** Only tasks that were created with this `creator_node`. */
      creator_node?: string | undefined;
      /** Only tasks of this type. */
      task_type?: string | undefined;
      /** Only tasks of this group. */
      group?: string | undefined;
      /** Only tasks with this tag. One call looks at 10,000 tasks; continue with next_cursor. */
      tag?: string | undefined;
      /** Only failed tasks whose last attempt failed at this node. */
      failed_by?: string | undefined;
      /** Only tasks whose last failure is of this kind. */
      failure_kind?:
        | "failed"
        | "timed_out"
        | "offline"
        | "cancelled"
        | "expired"
        | "dependency"
        | "budget"
        | "rejected"
        | "no_quorum"
        | undefined;
      /**
       * Only failed tasks of this group of stats/failures, those that failed last first, as with
       * `order=updated`.
       */
      failure_group?: string | undefined;
      /** Only tasks whose `updated_at` is not before this time. */
      since?: string | undefined;
      /** Only tasks whose `updated_at` is before this time. */
      until?: string | undefined;
      /** `1`: only open tasks that may be handed out now; `0`: only open tasks that wait for something. */
      ready?: "0" | "1" | "true" | "false" | undefined;
      /**
       * Only open tasks that wait: for `any` reason, for their `time`, for other `tasks` or for an
       * `answer`.
       */
      waiting?: "any" | "time" | "tasks" | "answer" | undefined;
      /**
       * Only tasks whose title has, for each of these words, a word that begins with it. One call looks at
       * 10,000 tasks; continue with next_cursor.
       */
      q?: string | undefined;
      /**
       * `created` (if left out); `updated`: those that changed last first, which needs `status=failed` or
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
      /** How many there are in all; null if they were not counted. */
      total: number | null;
      /** How many pages there are; null if they were not counted. */
      pages: number | null;
      /** Send it as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Tasks, newest first; by state, node, type, group, failure, time, title */
  "task/list?fields=summary": {
    request: {
      /** Only tasks of this status, in the words of either variant. */
      status?: "open" | "assigned" | "pending" | "completed" | "failed" | undefined;
      /** Only tasks that this node holds or completed. */
      node_id?: string | undefined;
      /** Only tasks that were created with this `creator_node`. */
      creator_node?: string | undefined;
      /** Only tasks of this type. */
      task_type?: string | undefined;
      /** Only tasks of this group. */
      group?: string | undefined;
      /** Only tasks with this tag. One call looks at 10,000 tasks; continue with next_cursor. */
      tag?: string | undefined;
      /** Only failed tasks whose last attempt failed at this node. */
      failed_by?: string | undefined;
      /** Only tasks whose last failure is of this kind. */
      failure_kind?:
        | "failed"
        | "timed_out"
        | "offline"
        | "cancelled"
        | "expired"
        | "dependency"
        | "budget"
        | "rejected"
        | "no_quorum"
        | undefined;
      /**
       * Only failed tasks of this group of stats/failures, those that failed last first, as with
       * `order=updated`.
       */
      failure_group?: string | undefined;
      /** Only tasks whose `updated_at` is not before this time. */
      since?: string | undefined;
      /** Only tasks whose `updated_at` is before this time. */
      until?: string | undefined;
      /** `1`: only open tasks that may be handed out now; `0`: only open tasks that wait for something. */
      ready?: "0" | "1" | "true" | "false" | undefined;
      /**
       * Only open tasks that wait: for `any` reason, for their `time`, for other `tasks` or for an
       * `answer`.
       */
      waiting?: "any" | "time" | "tasks" | "answer" | undefined;
      /**
       * Only tasks whose title has, for each of these words, a word that begins with it. One call looks at
       * 10,000 tasks; continue with next_cursor.
       */
      q?: string | undefined;
      /**
       * `created` (if left out); `updated`: those that changed last first, which needs `status=failed` or
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
      /** How many there are in all; null if they were not counted. */
      total: number | null;
      /** How many pages there are; null if they were not counted. */
      pages: number | null;
      /** Send it as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** How many tasks match the filters of task/list */
  "task/count": {
    request: {
      /** Only tasks of this status, in the words of either variant. */
      status?: "open" | "assigned" | "pending" | "completed" | "failed" | undefined;
      /** Only tasks that this node holds or completed. */
      node_id?: string | undefined;
      /** Only tasks that were created with this `creator_node`. */
      creator_node?: string | undefined;
      /** Only tasks of this type. */
      task_type?: string | undefined;
      /** Only tasks of this group. */
      group?: string | undefined;
      /** Only tasks with this tag. One call looks at 10,000 tasks; continue with next_cursor. */
      tag?: string | undefined;
      /** Only failed tasks whose last attempt failed at this node. */
      failed_by?: string | undefined;
      /** Only tasks whose last failure is of this kind. */
      failure_kind?:
        | "failed"
        | "timed_out"
        | "offline"
        | "cancelled"
        | "expired"
        | "dependency"
        | "budget"
        | "rejected"
        | "no_quorum"
        | undefined;
      /**
       * Only failed tasks of this group of stats/failures, those that failed last first, as with
       * `order=updated`.
       */
      failure_group?: string | undefined;
      /** Only tasks whose `updated_at` is not before this time. */
      since?: string | undefined;
      /** Only tasks whose `updated_at` is before this time. */
      until?: string | undefined;
      /** `1`: only open tasks that may be handed out now; `0`: only open tasks that wait for something. */
      ready?: "0" | "1" | "true" | "false" | undefined;
      /**
       * Only open tasks that wait: for `any` reason, for their `time`, for other `tasks` or for an
       * `answer`.
       */
      waiting?: "any" | "time" | "tasks" | "answer" | undefined;
      /**
       * Only tasks whose title has, for each of these words, a word that begins with it. One call looks at
       * 10,000 tasks; continue with next_cursor.
       */
      q?: string | undefined;
    };
    answer: {
      success: true;
      /** How many tasks match. */
      count: number;
      /** False: there are more, because one call looks at 50,000 tasks. */
      exact: boolean;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
        /** The node that holds the task, or completed it. */
        assigned_node: string | null;
        /** The last note of the node that holds it. */
        progress: string | null;
        /** Why the last attempt, or the task, failed. */
        failure: Failure | null;
        /** When the task last changed. */
        updated_at: string;
      }[];
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** How many to return at most. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The tasks. */
      tasks: Task<V>[];
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** How many there are in all. */
      total: number;
      /** How many tasks there are of each status. */
      by_status: By<
        V,
        {
          /** How many tasks are open. */
          open: number;
          /** How many tasks are assigned. */
          assigned: number;
          /** How many tasks are completed; in `top_nodes`, by this node. */
          completed: number;
          /** How many tasks have failed. */
          failed: number;
        },
        {
          /** How many tasks are open or assigned. */
          pending: number;
          /** How many tasks are completed; in `top_nodes`, by this node. */
          completed: number;
          /** How many tasks have failed. */
          failed: number;
        }
      >;
      /** The nodes that completed most, at most 10. */
      top_nodes: {
        /** The id of the node. */
        node_id: string;
        /** How many tasks are completed; in `top_nodes`, by this node. */
        completed: number;
        /** LUX that the node earned with completed tasks. */
        lux_earned: number;
      }[];
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** `1`: the response also has the `context` of the task. */
      context?: Context<V> | undefined;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** How many to return at most. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The tasks in `depends_on`, in that order. */
      inputs: TaskInput<V>[];
      /** How many there are in all. */
      total: number;
      /** Send it as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** What a task depends on, in layers, and what waits for it */
  "task/{task_id}/graph": {
    request: {
      /** The id of the task. */
      task_id: string;
    };
    answer: {
      success: true;
      /**
       * The task, what it depends on and what waits for it: up to 3 layers before it and one after it, of
       * up to 50 tasks.
       */
      tasks: {
        /** The id of the task. */
        task_id: string;
        /** What to do, in one line. */
        title: string;
        /** The status of the task. task/retry opens a `failed` task again. */
        status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
        /** The node that holds the task, or completed it. */
        assigned_node: string | null;
        /** Those of the tasks it depends on that are shown too. */
        depends_on: string[];
        /** How many of the tasks it depends on have not ended as they must. */
        unmet_count: number;
        /**
         * 0: the task itself; -1: what it depends on; -2, -3: what that depends on; 1: tasks that wait for
         * it, or failed because of it.
         */
        layer: number;
      }[];
      /** How many tasks wait for it, or failed because of it; at most 10,000 are counted. */
      dependents: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** What the workers of completed tasks have learned; by type and words */
  lessons: {
    request: {
      /** Only lessons for which each of these words begins a word of the lesson or of the title of its task. */
      q?: string | undefined;
      /** Only lessons of tasks of this `task_type`. */
      type?: string | undefined;
      /** The `next_cursor` of the page before. */
      cursor?: string | undefined;
      /** How many to return at most. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The newest task first. Lessons that say nothing (none, n/a, -) are left out. */
      lessons: Lesson[];
      /** How many completed tasks this call has examined: at most 10,000. */
      looked: number;
      /** Where to go on, to the older tasks that this call has not examined; null if it has examined all. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** The epoch of the lease: any but the current one returns 409 `stale_lease`. */
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * The attempt: the epoch of its lease. In a query the newest that has output if left out, and the
       * next one that has output if this one has none; null if there is none.
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
       * The attempt: the epoch of its lease. In a query the newest that has output if left out, and the
       * next one that has output if this one has none; null if there is none.
       */
      attempt: number | null;
      /** The offset of the first byte of `data`. */
      offset: number;
      /** The text from `offset` on: at most 256 KiB, and up to what is no longer kept. */
      data: string;
      /** The offset to read from next. */
      next_offset: number;
      /** Bytes between `from` and `offset`: they are no longer kept. */
      dropped: number;
      /** Bytes. */
      size: number;
      /** Whether this attempt sends no more; without an attempt: whether the task is finished. */
      ended: boolean;
      /** The attempts whose output is kept, oldest first. */
      attempts: OutputAttempt[];
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** The epoch of the lease: any but the current one returns 409 `stale_lease`. */
      epoch?: number | undefined;
      /** What the worker wants to know. */
      question: string;
      /** Answers that the worker suggests; any other answer is possible too. */
      choices?: readonly string[] | undefined;
      /** The JSON Schema of the answer that the worker expects; the hub shows it and does not enforce it. */
      schema?: unknown | undefined;
      /** Seconds until the question times out; a day if left out. */
      within_s?: number | undefined;
      /**
       * Gives the task back in the same commit, without an attempt. It is not ready until none of its
       * questions is open.
       */
      park?: boolean | undefined;
      /** Seconds to wait for the answer; 0, the default, returns at once. It is no heartbeat. */
      wait?: number | undefined;
    };
    answer: {
      success: true;
      /** What the worker wants to know. */
      question: Question;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** Only this question: then `wait` ends when it is answered or timed out. */
      question_id?: string | undefined;
      /** Seconds to wait until a question is asked, answered or timed out; 0, the default, returns at once. */
      wait?: number | undefined;
      /** The `version` that the caller knows: a wait ends at once if there is a newer one. */
      since?: number | undefined;
      /** The `next_cursor` of the page before. */
      cursor?: string | undefined;
      /** How many to return at most. */
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
      /** Send it as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** How many to return at most. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The open questions, the most urgent first, with the title and the creator of their tasks. */
      questions: OpenQuestion[];
      /** How many are open, counted up to 10,000. */
      total: number;
      /** Send it as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** `pass` pays the reward; `reject` opens the task again, or fails it after its last attempt. */
      verdict: "pass" | "reject";
      /** For the worker who does it again: it gets it in `context.review`. */
      note?: string | undefined;
      /** `review.epoch` of the result that was checked: if there is another since, 409 `stale_lease`. */
      epoch?: number | undefined;
    };
    answer: TaskAnswer<V>;
  };

  /** The results that wait for a review, the most urgent first */
  reviews: {
    request: {
      /** The id of the last event that the hub examined: the next `since`. */
      cursor?: string | undefined;
      /** How many to return at most. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The results that wait, the most urgent first. */
      reviews: PendingReview[];
      /** How many there are in all. */
      total: number;
      /** Send it as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Sends a message to one node */
  "message/send": {
    request: {
      /** The sender; it need not be registered. */
      from_node: string;
      /** The recipient. */
      to_node: string;
      /** The message itself; at most 256 KiB of UTF-8. */
      content: string;
      /** The kind of message. */
      type?: "text" | "task" | "status" | undefined;
      /**
       * Whether the recipient must confirm the message; until then the hub delivers it again, up to 5
       * times.
       */
      require_ack?: boolean | undefined;
      /** The id of the message that this one answers; the sender must have sent or received it. */
      reply_to?: string | undefined;
      /**
       * The conversation: the id of its first message, or a name that the sender gives. A reply continues
       * the conversation of the message that it answers.
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** How many to return at most. */
      count?: number | undefined;
      /** Whether to wait for the first message. */
      blocking?: boolean | undefined;
      /** Seconds to wait. */
      timeout?: number | undefined;
    };
    answer: {
      success: true;
      /** How many to return at most. */
      count: number;
      /** The messages. */
      messages: ReceivedMessage[];
      /** The transport of messages: `sqlite`, `postgresql` or `redis`. */
      transport: string;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Sends a message to the nodes that are online, all or some of them */
  "message/broadcast": {
    request: {
      /** The sender; it need not be registered. */
      from_node: string;
      /** The message itself; at most 256 KiB of UTF-8. */
      content: string;
      /** The kind of message. */
      type?: "broadcast" | "alert" | "update" | undefined;
      /** Only to nodes that take tasks of this type: it is among their capabilities, or they have none. */
      capability?: string | undefined;
      /** The id of the message that this one answers; the sender must have sent or received it. */
      reply_to?: string | undefined;
      /**
       * The conversation: the id of its first message, or a name that the sender gives. A reply continues
       * the conversation of the message that it answers.
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Confirms a message */
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** The id of a message: only those before it. */
      before?: string | undefined;
      /** Only messages of this conversation, among its newest 2,000. */
      thread?: string | undefined;
      /** How many to return at most. */
      count?: number | undefined;
    };
    answer: {
      success: true;
      /** How many to return at most. */
      count: number;
      /** The messages. */
      messages: HistoryMessage[];
      /** The transport of messages: `sqlite`, `postgresql` or `redis`. */
      transport: string;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The messages that a node, or any node, never confirmed, oldest first */
  "message/parked": {
    request: {
      /** The node; without it, all nodes, or the node that the key is bound to. */
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
      /** How many there are; of all nodes counted up to 100,000. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /** Only of all nodes: the 50 nodes with the most parked messages. */
      by_node?:
        | {
            /** The node; without it, all nodes, or the node that the key is bound to. */
            node_id: string;
            /** How many of its messages are parked. */
            count: number;
          }[]
        | undefined;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Puts a parked message back into its mailbox, with no delivery counted */
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Sends a message to one node */
  "agent/message": {
    request: {
      /** The sender; it need not be registered. */
      from_node: string;
      /** The recipient. */
      to_node: string;
      /** The message itself; at most 256 KiB of UTF-8. */
      content: string;
      /** The kind of message. */
      type?: "text" | "task" | "status" | undefined;
      /**
       * Whether the recipient must confirm the message; until then the hub delivers it again, up to 5
       * times.
       */
      require_ack?: boolean | undefined;
      /** The id of the message that this one answers; the sender must have sent or received it. */
      reply_to?: string | undefined;
      /**
       * The conversation: the id of its first message, or a name that the sender gives. A reply continues
       * the conversation of the message that it answers.
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The messages that a node got, newest first; the mailbox keeps them */
  "agent/messages": {
    request: {
      /** The id of the node. */
      node_id: string;
      /** The id of a message: only those after it. */
      since?: string | undefined;
      /** The id of a message: only those before it. */
      before?: string | undefined;
      /** How many to return at most. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** How many to return at most. */
      count: number;
      /** The messages. */
      messages: HistoryMessage[];
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Sends a message to the nodes that are online, all or some of them */
  "agent/broadcast": {
    request: {
      /** The sender; it need not be registered. */
      from_node: string;
      /** The message itself; at most 256 KiB of UTF-8. */
      content: string;
      /** The kind of message. */
      type?: "broadcast" | "alert" | "update" | undefined;
      /** Only to nodes that take tasks of this type: it is among their capabilities, or they have none. */
      capability?: string | undefined;
      /** The id of the message that this one answers; the sender must have sent or received it. */
      reply_to?: string | undefined;
      /**
       * The conversation: the id of its first message, or a name that the sender gives. A reply continues
       * the conversation of the message that it answers.
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Confirms a message */
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Writes a note; with if_version only if it has that version */
  "note/put": {
    request: {
      /** The name of the note, any text: for example `api/decisions`. */
      key: string;
      /** The content, at most 16 KiB. */
      text: string;
      /** Who writes; the node of the key if left out. */
      node_id?: string | undefined;
      /** Only if the note has this version; 0: only if there is no such note. Any version if left out. */
      if_version?: number | undefined;
    };
    answer: {
      success: true;
      /** The note as it is now. */
      note: NoteHead;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** Send it as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** Send it as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** Who deletes it; the node of the key if left out. */
      node_id?: string | undefined;
      /** Only if the note has this version; 0: only if there is no such note. Any version if left out. */
      if_version?: number | undefined;
    };
    answer: {
      success: true;
      /** The note that was deleted. */
      note: NoteHead;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * any segments.
       */
      name: string;
      /** The node that takes the lease; it must be online. */
      node_id: string;
      /** Seconds until the deadline, at most 86,400; 300 if left out. */
      ttl_s?: number | undefined;
      /** Whether others may have a shared lease on the same; false if left out. */
      shared?: boolean | undefined;
      /** A task that the node holds: the lease ends with it. */
      task_id?: string | undefined;
      /** The `epoch` of the task's lease: an old one is refused. */
      epoch?: number | undefined;
    };
    answer: {
      success: true;
      /** The lease. */
      lease: AdvisoryLease;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Begins the time of a lease again */
  "lease/renew": {
    request: {
      /** The name or glob, as it was acquired. */
      name: string;
      /** The node that has the lease. */
      node_id: string;
      /** Only the lease for this task. */
      task_id?: string | undefined;
      /** The fencing number of the lease that is meant; any if left out. */
      fencing?: number | undefined;
      /** Seconds until the deadline; as before if left out. */
      ttl_s?: number | undefined;
    };
    answer: {
      success: true;
      /** The lease. */
      lease: AdvisoryLease;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Ends a lease */
  "lease/release": {
    request: {
      /** The name or glob, as it was acquired. */
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The leases that nodes have now, oldest first */
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
      /** Send it as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Signs a node in for the day and pays it the daily bonus */
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** How many there are in all. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
        /** The LUX that the node has earned since then, sign-ins too. */
        lux_earned: number;
        /** How many ledger entries that were. */
        entries: number;
      }[];
      /** False: there are more entries, because one call looks at the newest 200,000. */
      exact: boolean;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The whole ledger after an entry, oldest first, with the hash chain */
  "lux/entries": {
    request: {
      /** The id of a message: only those after it. */
      since?: number | undefined;
      /** How many to return at most. */
      limit?: number | undefined;
    };
    answer: {
      success: true;
      /** The entries. */
      entries: LedgerEntry[];
      /** The newest entry of the ledger. */
      head: LedgerHead;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** At most so many groups. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page. */
      cursor?: string | undefined;
    };
    answer: {
      success: true;
      /** The groups, by name. */
      groups: {
        /** The name of the group of tasks. */
        group: string;
        /** Whether no task of the group is unfinished. */
        done: boolean;
        /** How many there are in all. */
        total: number;
        /** How many of its tasks are neither completed nor failed. */
        unfinished: number;
        /** Of its completed tasks, those whose result waits for a review; only if there are any. */
        in_review?: number | undefined;
        /** How many tasks there are of each status. */
        by_status: By<
          V,
          {
            /** How many of its tasks are open. */
            open: number;
            /** How many of its tasks are assigned. */
            assigned: number;
            /** How many of its tasks are completed. */
            completed: number;
            /** How many of its tasks have failed. */
            failed: number;
          },
          {
            /** How many of its tasks are open or assigned. */
            pending: number;
            /** How many of its tasks are completed. */
            completed: number;
            /** How many of its tasks have failed. */
            failed: number;
          }
        >;
        /** When its first task was created. */
        first_created_at: string;
        /** When its last task was created. */
        last_created_at: string;
        /** When a task of it last changed. */
        last_updated_at: string;
        /** The rewards of all its tasks. */
        lux_reward: number;
        /** What its completed tasks have paid. */
        lux_paid: number;
      }[];
      /** Send it as `cursor` for the groups after these; null: there are none. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** A group of tasks: counts, times, failures; may wait for its end */
  "group/{group}": {
    request: {
      /** The name of the group of tasks. */
      group: string;
      /** Seconds to wait until no task of the group is unfinished; 0, the default, returns at once. */
      wait?: number | undefined;
    };
    answer: {
      success: true;
      /** The name of the group of tasks. */
      group: string;
      /** Whether no task of the group is unfinished. */
      done: boolean;
      /** How many there are in all. */
      total: number;
      /** How many of its tasks are neither completed nor failed. */
      unfinished: number;
      /** Of its completed tasks, those whose result waits for a review; only if there are any. */
      in_review?: number | undefined;
      /** How many tasks there are of each status. */
      by_status: By<
        V,
        {
          /** How many of its tasks are open. */
          open: number;
          /** How many of its tasks are assigned. */
          assigned: number;
          /** How many of its tasks are completed. */
          completed: number;
          /** How many of its tasks have failed. */
          failed: number;
        },
        {
          /** How many of its tasks are open or assigned. */
          pending: number;
          /** How many of its tasks are completed. */
          completed: number;
          /** How many of its tasks have failed. */
          failed: number;
        }
      >;
      /** When its first task was created. */
      first_created_at: string;
      /** When its last task was created. */
      last_created_at: string;
      /** When a task of it last changed. */
      last_updated_at: string;
      /** The rewards of all its tasks. */
      lux_reward: number;
      /** What its completed tasks have paid; one that waits for a review has paid nothing. */
      lux_paid: number;
      /** What its tasks have used, deleted ones included; null: no worker has reported any usage. */
      usage: Spending | null;
      /** The last 20 tasks of it that failed, newest first. */
      failures: {
        /** The id of the task. */
        task_id: string;
        /** What to do, in one line. */
        title: string;
        /** The status of the task. task/retry opens a `failed` task again. */
        status: By<V, "open" | "assigned" | "completed" | "failed", "pending" | "completed" | "failed">;
        /** The node that holds the task, or completed it. */
        assigned_node: string | null;
        /** The last note of the node that holds it. */
        progress: string | null;
        /** Why the last attempt, or the task, failed. */
        failure: Failure | null;
        /** When the task last changed. */
        updated_at: string;
      }[];
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Ends unfinished tasks of a group: they fail */
  "group/cancel": {
    request: {
      /** The name of the group of tasks. */
      group: string;
      /** Who cancels them. */
      node_id?: string | undefined;
      /** The reason, which the event shows. */
      reason?: string | undefined;
    };
    answer: {
      success: true;
      /** The name of the group of tasks. */
      group: string;
      /** How many tasks were cancelled. */
      cancelled: number;
      /** How many are left, at most 100,000: repeat the call for the next ones. */
      left: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Opens the failed tasks of a group again */
  "group/retry": {
    request: {
      /** The name of the group of tasks. */
      group: string;
      /** The `next_cursor` of the call before. */
      cursor?: string | undefined;
    };
    answer: {
      success: true;
      /** The name of the group of tasks. */
      group: string;
      /** How many tasks were opened again. */
      retried: number;
      /** How many failed tasks were not looked at, at most 100,000. */
      left: number;
      /** Send it as `cursor` to go on with what is left; null: nothing is. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Creates or replaces a schedule, which creates a task at certain times */
  "schedule/put": {
    request: {
      /** The name of the schedule; one of this name is replaced. */
      name: string;
      /** A cron expression: minute, hour, day of month, month, day of week; or `@daily` and the like. */
      cron?: string | undefined;
      /** The seconds between two times, instead of `cron`; the first comes after so many seconds. */
      every_s?: number | undefined;
      /** The time zone of `cron`, of the IANA database; `UTC` if left out. */
      tz?: string | undefined;
      /** The task to create, as for task/create. */
      task: {
        /** What to do, in one line. */
        title: string;
        /** The hub compares it with the capabilities of nodes. A task without a type fits every node. */
        task_type?: string | undefined;
        /**
         * The urgency. In requests 0, `p0` or `high` is the first to be handed out; 1, `p1` or `medium` (the
         * default); 2, `p2` or `low`; `p5` is background work.
         */
        priority?: 0 | 1 | 2 | "high" | "medium" | "low" | "p0" | "p1" | "p2" | "p5" | undefined;
        /** The node that created the task; it need not be registered. */
        creator_node?: string | undefined;
        /** LUX for the node that completes the task, with at most 6 decimals. */
        lux_reward?: number | undefined;
        /** The task fails after this many attempts; by default after 10 failures and timeouts. */
        max_attempts?: number | undefined;
        /**
         * Seconds from a failed attempt until the task is open again (5 by default); doubles with each
         * attempt, up to an hour.
         */
        backoff_s?: number | undefined;
        /** Seconds that a node may hold the task without task/extend or task/complete. */
        timeout_s?: number | undefined;
        /** Seconds that one attempt may take in all, extended or not; then it has timed out. */
        max_run_s?: number | undefined;
        /**
         * Dollars that all attempts of the task together may cost; the attempt that passes it ends the task
         * permanently (kind `budget`). Null: any.
         */
        max_cost_usd?: number | undefined;
        /**
         * Seconds that the task is kept after its end, instead of `--retain-tasks`; only on tasks with their
         * own.
         */
        retain_s?: number | undefined;
        /**
         * Who checks the result before the reward is paid: `creator` (of a task without one: any caller that
         * no key binds to a node), `node:<node_id>`, or `capability:<word>`: the hub creates a task of that
         * type for another node.
         */
        review?: string | undefined;
        /** Seconds until the result counts as `on_review_timeout` says; 604,800 (a week) if left out. */
        review_within_s?: number | undefined;
        /** What happens when nobody has reviewed the result in time: `pay` (if left out) or `reject`. */
        on_review_timeout?: "pay" | "reject" | undefined;
        /**
         * Several nodes do the task, and it completes when `results` (2 to 9) of at most `of` (`results` to
         * 15; as many as make `results` a majority if left out) copies agree.
         */
        quorum?:
          | {
              /** The result of each assignment, in the same order. */
              results: number;
              /** How many copies there are at most. */
              of?: number | undefined;
              /**
               * `output` (if left out), or `json:` and JSON pointers into the result, separated by commas: what
               * must be equal, as JSON values.
               */
              compare?: string | undefined;
            }
          | undefined;
        /** Seconds until the task may be handed out. */
        delay_s?: number | undefined;
        /** The name of the group of tasks. */
        group?: string | undefined;
        /** The words to find the task by; left out if it has none. */
        tags?: readonly string[] | undefined;
        /**
         * What a node must have to get the task: all the words in `capabilities`, and of each resource as
         * much as it says.
         */
        requires?:
          | {
              /** All of them must be among the capabilities of the node. */
              capabilities?: string | readonly string[] | undefined;
              /** Amounts by name, rounded to three decimals. */
              resources?: Record<string, number> | undefined;
            }
          | undefined;
        /** The key whose limit (limit/set) applies to the task; left out: its `task_type`. */
        limit_key?: string | undefined;
        /** What to do; at most 64 KiB of UTF-8. */
        description: string;
      };
      /** At a time when an earlier task is unfinished: no new task (`skip`), or one more (`queue`). */
      overlap?: "skip" | "queue" | undefined;
      /** After times at which no hub ran: a task for the last of them (`one`), or for none (`none`). */
      catch_up?: "one" | "none" | undefined;
      /** Each task may start up to so many seconds later. */
      jitter_s?: number | undefined;
      /** No time comes after this. */
      until?: string | undefined;
      /** Whether no time comes until it is saved without this. */
      paused?: boolean | undefined;
    };
    answer: {
      success: true;
      /** The name of the schedule; one of this name is replaced. */
      name: string;
      /** The schedule. */
      schedule: Schedule<V>;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** How many there are in all. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Creates a task of a schedule now; its next time stays */
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Creates or replaces a webhook, which sends events to a URL */
  "webhook/put": {
    request: {
      /** The name of the webhook; one of this name is replaced. */
      name: string;
      /** The URL to which it sends: of http or https, without a user name, a password and a fragment. */
      url: string;
      /** Only events of these kinds; without any, of all kinds. */
      kinds?: readonly EventKind[] | undefined;
      /** Only events of this task. */
      task_id?: string | undefined;
      /** Only events of this node. */
      node_id?: string | undefined;
      /** Only events of the tasks that this node created. */
      creator_node?: string | undefined;
      /** Only events of the tasks of this group. */
      group?: string | undefined;
      /** What it sends: events as JSON (`luxhub`), notifications (`ntfy`), or the updates of A2A (`a2a`). */
      format?: "luxhub" | "a2a" | "ntfy" | undefined;
      /**
       * Signs the messages: `whsec_` and base64; with the format `ntfy`, its access token. Without one the
       * hub makes one; in the response only if it has.
       */
      secret?: string | undefined;
    };
    answer: {
      success: true;
      /** The name of the webhook; one of this name is replaced. */
      name: string;
      /** The webhook. */
      webhook: Webhook;
      /**
       * Signs the messages: `whsec_` and base64; with the format `ntfy`, its access token. Without one the
       * hub makes one; in the response only if it has.
       */
      secret?: string | undefined;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** How many there are in all. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Sends a test message to a webhook now, and says what came of it */
  "webhook/test": {
    request: {
      /** The name of the webhook. */
      name: string;
    };
    answer: {
      success: true;
      /** The name of the webhook. */
      name: string;
      /** Whether the receiver answered with a status of 200 to 299. */
      delivered: boolean;
      /** The status of the receiver's response; null: there was none. */
      status: number | null;
      /** Why the message was not delivered. */
      error: string | null;
      /** How long that took, in milliseconds. */
      ms: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** A suspended webhook delivers again, from its cursor or another event */
  "webhook/resume": {
    request: {
      /** The name of the webhook. */
      name: string;
      /** Goes on after the event with this id, not after the cursor. */
      after?: number | undefined;
    };
    answer: {
      success: true;
      /** The name of the webhook. */
      name: string;
      /** The webhook. */
      webhook: Webhook;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Deletes a webhook; what it has not delivered stays in the event log */
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
        /** Those of the input tokens that came from a cache. */
        cached_tokens: number;
        /** Dollars, rounded to a millionth. Left out or null: the worker does not know it, which is not zero. */
        cost_usd: number | null;
        /** How many reports these are. */
        reports: number;
        /** How many of the reports had no `cost_usd`. */
        without_cost: number;
        /** The node, creator, type, model, group or day; null for tasks without a creator or a type. */
        name: string | null;
      }[];
      /** The sum of all of them. */
      all: Spending;
      /** The number of the page, from 1. */
      page: number;
      /** Rows on a page; above 50 is read as 50. */
      per_page: number;
      /** How many there are in all. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Sets what work may cost in a day, a month or in all */
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
       * `pause` (if left out): nothing that the budget is about is handed out once it is used up. `warn`:
       * only an event.
       */
      on_limit?: "pause" | "warn" | undefined;
    };
    answer: {
      success: true;
      /** The budget, and what is spent of it. */
      budget: Budget;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** All budgets, and what is spent of them */
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
      /** How many there are in all. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** The budget, and what is spent of it. */
      budget: Budget;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Stops handing out tasks: of a type, a limit key, a creator, or all */
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Ends a pause */
  "hub/resume": {
    request: {
      /** As in hub/pause. */
      type?: string | undefined;
      /** As in hub/pause. */
      limit_key?: string | undefined;
      /** As in hub/pause. */
      creator_node?: string | undefined;
    };
    answer: {
      success: true;
      /** What is paused. */
      pause: Pause;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** How many there are in all. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Limits how many tasks of a key run at once, or start in a minute */
  "limit/set": {
    request: {
      /** The limit key; the key of a task is its `limit_key` or, without one, its `task_type`. */
      key: string;
      /** How many tasks of the key may be assigned at once; left out: any number. */
      running?: number | undefined;
      /** How many tasks of the key may be handed out in any 60 s; left out: any number. */
      per_minute?: number | undefined;
    };
    answer: {
      success: true;
      /** The limit, and what of it is used. */
      limit: Limit;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** All limits and holds, and what is used of them */
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
      /** How many there are in all. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Deletes the limit of a key, and ends its hold */
  "limit/delete": {
    request: {
      /** The limit key. */
      key: string;
    };
    answer: {
      success: true;
      /** The limit as it was. */
      limit: Limit;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Lets a limit key rest: none of its tasks is handed out for a time */
  "limit/hold": {
    request: {
      /** The limit key. */
      key: string;
      /** How many seconds none of its tasks is handed out; a longer hold stays. */
      for_s: number;
      /** The node that asks for the hold; the event names it. */
      node_id?: string | undefined;
    };
    answer: {
      success: true;
      /** The limit of the key, or only its hold. */
      limit: Limit;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Why a task does not run: all reasons, and its position */
  "task/{task_id}/explain": {
    request: {
      /** The id of the task. */
      task_id: string;
    };
    answer: {
      success: true;
      /** Whether it may be handed out to a node that fits. */
      ready: boolean;
      /** All reasons; the last one of a task that is ready is `in_line`. */
      reasons: Reason[];
      /** Its position in its lane, up to 1,001; null if it is not ready. */
      position: number | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** How many there are in all. */
      total: number;
      /** How many pages there are. */
      pages: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** The variant of the responses to its requests, on any listener. */
      variant?: "A" | "B" | undefined;
      /** The node that the key is bound to: it acts only for this node. */
      node_id?: string | undefined;
      /**
       * LUX that the key may promise per UTC day, as rewards of tasks; null: any amount, or none if the hub
       * is strict and the key bound to a node.
       */
      mint_per_day?: number | undefined;
      /** When it ends; at most ten years ahead. */
      expires_at?: string | undefined;
      /** Seconds until it ends, instead of `expires_at`. */
      expires_in_s?: number | undefined;
    };
    answer: {
      success: true;
      /** A name that no key has or had. */
      name: string;
      /** The secret of the new key; the hub does not store it and cannot show it again. */
      secret: string;
      /** The key. */
      key: Key;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Tasks by type: open, waiting, running, last hour, the nodes for them */
  "stats/types": {
    request: Record<never, never>;
    answer: {
      success: true;
      /** When it was counted: at most 2 s ago. */
      at: string;
      /** The 100 types with the most tasks, those with the most first. */
      types: TypeStats[];
      /** How many types there are beside them. */
      others: number;
      /** Open tasks whose capabilities and resources no online node has: the 10 largest lanes of such tasks. */
      stuck: StuckStats[];
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Why tasks failed lately, by message; and the nodes at which they did */
  "stats/failures": {
    request: {
      /** Of how many seconds; 3,600 if left out. */
      last?: number | undefined;
    };
    answer: {
      success: true;
      /** The 50 largest groups of failed tasks, the largest first. */
      failures: FailureGroup[];
      /** The 50 nodes at which most of them failed. */
      by_node: {
        /** The id of the node. */
        node_id: string;
        /** How many of them failed at this node. */
        count: number;
      }[];
      /** How many failed tasks were examined. */
      total: number;
      /** False: more tasks have failed, because one call looks at the newest 10,000. */
      exact: boolean;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The health of the hub, and counts */
  status: {
    request: Record<never, never>;
    answer: {
      success: true;
      /** `degraded` while the hub cannot write. */
      status: "ok" | "degraded";
      /** The version of the variant. */
      version: By<V, "1.5", "1.0">;
      /** Seconds since the hub started. */
      uptime: number;
      /** How many nodes are registered. */
      nodes_count: number;
      /** How many tasks there are. */
      tasks_count: number;
      /** The program and its version. */
      software: string;
      /** What people call this hub (`--name`); null: it has no name. */
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
      /** What the hub's data takes. */
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
      /** How many webhooks are suspended; only if there are any. */
      webhooks_suspended?: number | undefined;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** The event log after a cursor, oldest first; without one, the newest */
  events: {
    request: {
      /** The id of the last event read; 0: from the beginning; without it, the newest events. */
      since?: number | undefined;
      /** How many to return at most. */
      limit?: number | undefined;
      /** Only events of this kind, or of several, comma-separated. */
      kind?: string | undefined;
      /** Only events about this task. */
      task_id?: string | undefined;
      /** Only events about this node. */
      node_id?: string | undefined;
      /** Only events of the tasks of this group, and its end. */
      group?: string | undefined;
      /** Only events of tasks with this tag. */
      tag?: string | undefined;
    };
    answer: EventBatch;
  };

  /** Waits for task events after a cursor */
  poll: {
    request: {
      /** The id of the last event read; without it, only new events. */
      since?: number | undefined;
      /** Seconds to wait. */
      timeout?: number | undefined;
    };
    answer: EventBatch;
  };

  /** Counts and durations of tasks, of an hour, a day or a month for charts */
  "stats/minutes": {
    request: {
      /** How many minutes, including the current one; 60 if left out. */
      last?: number | undefined;
      /** `hour` (if left out): by minute; `day`: 24 hours by ten minutes; `month`: 30 days by hour. */
      range?: "hour" | "day" | "month" | undefined;
    };
    answer: {
      success: true;
      /** How many seconds each of them takes: 60, 600 or 3,600. */
      step_s: number;
      /** The minutes, oldest first. */
      minutes: Minute[];
      /** The sum of these minutes. */
      total: MinutesTotal;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** The sum of their balances. */
      lux_balance: number;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** Writes that wait for their commit. */
      queued: number | null;
      /** What else the engine reports. */
      details: Record<string, string | number | boolean>;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Runs many requests in order and in one transaction */
  batch: {
    request: {
      /**
       * The requests, which run in this order, each as if sent alone; one that fails does not stop the
       * others.
       */
      requests: readonly {
        /** The path of a POST of JSON without `/api/v1/`, such as `task/claim`. */
        path: string;
        /** The body of the request. */
        body: Record<string, unknown>;
        /** Of a task/create: a name for its task, which later requests write as `{"$ref": …}` for the id. */
        ref?: string | undefined;
      }[];
    };
    answer: {
      success: true;
      /** The responses, in the order of the requests. */
      answers: {
        /** The status of the response, as if the request had been sent alone. */
        status: number;
        /** The body of the request. */
        body: Record<string, unknown>;
      }[];
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** This API as an OpenAPI 3.1 document, in the variant of the caller */
  "openapi.json": { request: Record<never, never>; answer: Record<string, unknown> };

  /** Files, newest first; of all tasks or of one, and by name */
  "file/list": {
    request: {
      /** Only files of this task. */
      task_id?: string | undefined;
      /**
       * Only files whose name has, for each of these words, a word that begins with it. One call looks at
       * 10,000 files; continue with next_cursor.
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
      /** How many there are in all. */
      total: number | null;
      /** How many pages there are. */
      pages: number | null;
      /** Send it as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** When the URL ends. */
      expires_at: string;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** When the URL ends. */
      expires_at: string;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Invites a node: the line with which its machine joins */
  "invitation/create": {
    request: {
      /** The node that is invited. It need not be registered. */
      node_id: string;
      /** Seconds until it ends, 60 to 604,800; 3,600 if left out. */
      expires_in_s?: number | undefined;
      /** The hub's URL in the line. In a request: left out, the hub chooses one of its own. */
      url?: string | undefined;
    };
    answer: {
      success: true;
      /** The invitation. */
      invitation: Invitation;
      /** What `luxhub join` takes: the URL, the token and the hash. It cannot be shown again. */
      line: string;
      /** The hub's URL in the line. In a request: left out, the hub chooses one of its own. */
      url: string;
      /** Other URLs at which the hub may be reached. */
      other_urls: string[];
      /** The SHA-256 of the public key of the hub's own authority, in base64url; null: nothing is pinned. */
      pin: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
      /** Send it as `cursor` to get the next page; null at the end. */
      next_cursor: string | null;
      /**
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
       * field may be misspelt.
       */
      ignored?: string[] | undefined;
    };
  };

  /** Turns an invitation into a key for its node */
  join: {
    request: {
      /** The token of the invitation: in its line the part after `#join.` */
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
       * Only if there are any: the first fields of the request that nothing has read, with dots. Such a
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
} as const;
