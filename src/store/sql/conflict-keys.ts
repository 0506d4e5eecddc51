/**
 * Conflict keys: a query names what it reads (its read set) and a change what it writes (its write set). A key is a
 * table, or the rows of a table that belong to one id. An engine that loads several transactions before it decides them
 * patches or reloads a query when an earlier transaction has written one of its keys.
 *
 * Invariant: the write set of a change has every key that a query may declare for the rows it writes.
 */
import type { BudgetKey, PauseKey } from "../../domain/model.ts";
import type { TableName } from "./tables.ts";

/** A row of these belongs to a task, so that for conflicts it is one of the table of tasks. */
export const PARTS_OF_TASKS = ["task_specs", "task_results", "task_features"] as const;
export type Table = Exclude<TableName, (typeof PARTS_OF_TASKS)[number]>;

export type ConflictKey =
  | Table
  | `${Table | "registrations" | "held"} ${string}`
  | "registrations"
  | "publications"
  | "dependents"
  | typeof EVERYTHING;

/** The rows of a change cannot be named: every query is reloaded. */
export const EVERYTHING = "everything";

export const keyOf = {
  node: (nodeId: string): ConflictKey => `nodes ${nodeId}`,
  /** Existence only: heartbeats and counters do not invalidate it. */
  registration: (nodeId: string): ConflictKey => `registrations ${nodeId}`,
  registrations: "registrations",
  publications: "publications",
  broadcast: (seq: number): ConflictKey => `broadcasts ${seq}`,
  broadcastOf: (messageId: string): ConflictKey => `broadcasts of ${messageId}`,
  task: (taskId: string): ConflictKey => `tasks ${taskId}`,
  /** The unfinished tasks of a node: whether it has started them. That it has them at all is a change of the node. */
  held: (nodeId: string): ConflictKey => `held ${nodeId}`,
  dependents: "dependents",
  dependencies: (taskId: string): ConflictKey => `dependencies ${taskId}`,
  checkpoint: (taskId: string): ConflictKey => `checkpoints ${taskId}`,
  outputs: (taskId: string): ConflictKey => `outputs ${taskId}`,
  questions: (taskId: string): ConflictKey => `questions ${taskId}`,
  reports: (taskId: string): ConflictKey => `usage_reports ${taskId}`,
  nodeSums: (nodeId: string, day: number): ConflictKey => `node_sums ${nodeId} ${day}`,
  nodeSum: (nodeId: string, scope: string, value: string, day: number): ConflictKey =>
    `node_sums ${nodeId} ${day} ${scope} ${value}`,
  spending: (scope: string, value: string, day: number): ConflictKey => `usage_sums ${scope} ${value} ${day}`,
  budget: ({ scope, value, per }: BudgetKey): ConflictKey => `budgets ${scope} ${per} ${value}`,
  pause: ({ scope, value }: PauseKey): ConflictKey => `pauses ${scope} ${value}`,
  limit: (key: string): ConflictKey => `limits ${key}`,
  limitUses: (key: string, second: number): ConflictKey => `limit_uses ${second} ${key}`,
  settlement: (taskId: string): ConflictKey => `settlements ${taskId}`,
  group: (group: string): ConflictKey => `group_totals ${group}`,
  groupEnding: (group: string): ConflictKey => `group_endings ${group}`,
  family: (taskId: string): ConflictKey => `family_checks ${taskId}`,
  file: (fileId: string): ConflictKey => `files ${fileId}`,
  filesOfTask: (taskId: string): ConflictKey => `files of ${taskId}`,
  ledger: (nodeId: string): ConflictKey => `ledger of ${nodeId}`,
  ledgerHead: "ledger head",
  message: (messageId: string): ConflictKey => `messages ${messageId}`,
  /** Includes the messages, which never change and are removed only after their deliveries. */
  mailbox: (nodeId: string): ConflictKey => `deliveries ${nodeId}`,
  delivery: (nodeId: string, messageId: string): ConflictKey => `deliveries ${nodeId} ${messageId}`,
  note: (key: string): ConflictKey => `notes ${key}`,
  leases: (nodeId: string, name: string): ConflictKey => `leases ${nodeId} ${name}`,
  mint: (keyId: string, day: number): ConflictKey => `mints ${day} ${keyId}`,
  minute: (at: number, hub: string): ConflictKey => `minutes ${at} ${hub}`,
  period: (stepMs: number, at: number): ConflictKey => `periods ${stepMs} ${at}`,
  answer: (scope: string): ConflictKey => `answers ${scope}`,
  answersOf: (keyId: string | null): ConflictKey => `answers of ${keyId ?? ""}`,
  schedule: (name: string): ConflictKey => `schedules ${name}`,
  webhook: (name: string): ConflictKey => `webhooks ${name}`,
  key: (keyId: string): ConflictKey => `keys ${keyId}`,
  invitation: (tokenHash: string): ConflictKey => `invitations ${tokenHash}`,
  charge: (taskId: string, nodeId: string): ConflictKey => `task_charges ${taskId} ${nodeId}`,
  usage: (nodeId: string): ConflictKey => `quota_usage ${nodeId}`,
} as const;
