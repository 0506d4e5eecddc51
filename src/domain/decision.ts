/** What a rule returns. */
import type { Change } from "./change.ts";
import type { Lease, Moment } from "./model.ts";

/** api/error-table.ts maps each to an HTTP status. */
export const REJECTION_CODES = [
  "node_not_found",
  "task_not_found",
  "message_not_found",
  "question_not_found",
  "file_not_found",
  "key_not_found",
  "task_not_open",
  "task_not_assigned",
  "task_completed",
  "task_failed",
  "task_not_failed",
  "task_not_ready",
  "stale_lease",
  "wrong_offset",
  "node_offline",
  "node_draining",
  "not_assigned_to_node",
  "key_bound_to_other_node",
  "lower_reward",
  "own_work",
  "not_reviewer",
  "not_in_review",
  "review_decided",
  "verdict_missing",
  "compared_value_missing",
  "task_sealed",
  "node_excluded",
  "not_your_message",
  "message_not_parked",
  "nodes_limit",
  "lux_balance_limit",
  "task_files_limit",
  "question_answered",
  "question_timed_out",
  "questions_limit",
  "schedule_not_found",
  "group_not_found",
  "schedules_limit",
  "graph_too_large",
  "webhook_not_found",
  "webhooks_limit",
  "usage_limit",
  "usage_not_found",
  "budget_exceeded",
  "budget_not_found",
  "budgets_limit",
  "paused",
  "pause_not_found",
  "pauses_limit",
  "limit_reached",
  "limit_not_found",
  "limits_limit",
  "too_many_lanes",
  "gifts_limit",
  "requirements_not_met",
  "note_not_found",
  "note_version_conflict",
  "notes_limit",
  "lease_conflict",
  "lease_lost",
  "leases_limit",
  "key_exists",
  "keys_limit",
  "invitation_not_found",
  "invitation_used",
  "invitation_expired",
  "invitations_limit",
  "entries_missing",
  "stale_term",
  "not_a_standby",
  "quota_exceeded",
  "mint_limit",
] as const;

export type RejectionCode = (typeof REJECTION_CODES)[number];

export type Accepted<A> = {
  readonly kind: "accepted";
  readonly answer: A;
  readonly changes: readonly Change[];
  /** For a repeat (Idempotency-Key). Left out: if there are changes. */
  readonly isStored?: boolean;
};

/** `detail` is a sentence that tells the caller what to do. */
export type Rejected = {
  readonly kind: "rejected";
  readonly code: RejectionCode;
  readonly detail: string;
  /** Only what stores the answer for a repeat. */
  readonly changes?: readonly Change[];
  readonly isStored?: boolean;
  readonly quota?: QuotaFault;
  /** Of wrong_offset: the offset that is expected. */
  readonly expected?: number;
  /** 0: there is no such note. */
  readonly version?: number;
  readonly conflict?: LeaseConflict;
};

/** `at`: the time at which they are in the way. */
type LeaseConflict = { readonly holders: readonly Lease[]; readonly at: Moment };

/** Both in tasks, or both in bytes. */
export type QuotaFault = { readonly used: number; readonly allowed: number };

/** An empty mailbox, or rows that must be loaded first: nothing is written. */
export type Undecided = { readonly kind: "undecided" };

export type Decision<A> = Accepted<A> | Rejected;

export function accept<A>(answer: A, changes: readonly Change[] = []): Accepted<A> {
  return { kind: "accepted", answer, changes };
}

export function preceded<A>(before: readonly Change[], decision: Accepted<A>): Accepted<A> {
  return { ...decision, changes: [...before, ...decision.changes] };
}

export function isStored(decision: Decision<unknown>): boolean {
  return decision.isStored ?? (decision.kind === "rejected" || decision.changes.length > 0);
}

export function reject(code: RejectionCode, detail: string): Rejected {
  return { kind: "rejected", code, detail };
}

export function changesOf(decision: Decision<unknown> | Undecided): readonly Change[] {
  return decision.kind === "undecided" ? [] : (decision.changes ?? []);
}

export const UNDECIDED: Undecided = { kind: "undecided" };

/** For the use case: what to do next, or what to load instead. Nothing of it is sent. */
export type Also<E> = { readonly also: E };

export function also<D extends Decision<unknown> | Undecided, E>(decision: D, value: E): D & Also<E> {
  return { ...decision, also: value };
}

export class Rejection extends Error {
  readonly code: RejectionCode;
  readonly quota: QuotaFault | undefined;
  readonly expected: number | undefined;
  readonly version: number | undefined;
  readonly conflict: LeaseConflict | undefined;

  constructor(rejected: Rejected) {
    super(rejected.detail);
    this.name = "Rejection";
    this.code = rejected.code;
    this.quota = rejected.quota;
    this.expected = rejected.expected;
    this.version = rejected.version;
    this.conflict = rejected.conflict;
  }
}

export function nodeNotFound(nodeId: string): Rejected {
  return reject(
    "node_not_found",
    `No node is registered as ${nodeId}. Register it with POST /api/v1/node/register.`,
  );
}

/** Others could read what it takes from its worker. */
export function taskSealed({ taskId }: { readonly taskId: string }): Rejected {
  const detail = `Several nodes do task ${taskId}, and nobody may see what the others make: send all of the result with POST /api/v1/task/complete.`;
  return reject("task_sealed", detail);
}

export function taskNotFound(taskId: string): Rejected {
  return reject("task_not_found", `There is no task ${taskId}. Look its id up with GET /api/v1/task/list.`);
}
