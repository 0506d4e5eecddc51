/** Maps errors to problems (RFC 9457): the domain's rejection codes, and the errors that the ports and services throw. */
import { BlobsFull } from "../blobs/blobs.ts";
import { type QuotaFault, Rejection, type RejectionCode } from "../domain/decision.ts";
import { QUOTA_RETRY_AFTER_SECONDS } from "../domain/limits.ts";
import { Problem, type ProblemExtras } from "../http/problem.ts";
import { AcquireTimeout } from "../lib/semaphore.ts";
import { PagesBusy } from "../service/scan.ts";
import { MailBusy } from "../mail/mail.ts";
import { WaitAborted } from "../service/waiters.ts";
import { encodeAdvisoryLease } from "./response-schemas.ts";
import { OutcomeUnknown, StoreBusy, StoreFull, StoreReadOnly, StoreUnavailable } from "../store/store.ts";

const KEY_OF_ANOTHER_NODE = "Key bound to another node";

export const REJECTIONS: Readonly<Record<RejectionCode, readonly [status: number, title: string]>> = {
  node_not_found: [404, "Node not found"],
  task_not_found: [404, "Task not found"],
  message_not_found: [404, "Message not found"],
  question_not_found: [404, "Question not found"],
  file_not_found: [404, "File not found"],
  key_not_found: [404, "Key not found"],
  note_not_found: [404, "Note not found"],
  not_assigned_to_node: [403, "Not your task"],
  not_your_message: [403, "Not your message"],
  key_bound_to_other_node: [403, KEY_OF_ANOTHER_NODE],
  lower_reward: [403, "Lower reward"],
  own_work: [403, "Own work"],
  not_reviewer: [403, "Not the reviewer"],
  not_in_review: [409, "Not in review"],
  review_decided: [409, "Review decided already"],
  verdict_missing: [409, "Verdict missing"],
  compared_value_missing: [409, "Compared value missing"],
  task_sealed: [409, "Task sealed"],
  node_excluded: [409, "Node excluded"],
  task_not_open: [409, "Task not open"],
  task_not_assigned: [409, "Task not assigned"],
  task_completed: [409, "Task completed"],
  task_failed: [409, "Task failed"],
  task_not_failed: [409, "Task not failed"],
  task_not_ready: [409, "Task not ready"],
  stale_lease: [409, "Stale lease"],
  wrong_offset: [409, "Wrong offset"],
  node_offline: [409, "Node offline"],
  node_draining: [409, "Node draining"],
  message_not_parked: [409, "Message not parked"],
  note_version_conflict: [409, "Note has another version"],
  notes_limit: [409, "Note limit reached"],
  lease_conflict: [409, "Lease conflict"],
  lease_lost: [409, "Lease lost"],
  leases_limit: [409, "Lease limit reached"],
  nodes_limit: [409, "Node limit reached"],
  lux_balance_limit: [409, "LUX balance limit reached"],
  task_files_limit: [409, "File limit of the task reached"],
  question_answered: [409, "Question answered already"],
  question_timed_out: [409, "Question timed out"],
  questions_limit: [409, "Question limit of the task reached"],
  schedule_not_found: [404, "Schedule not found"],
  group_not_found: [404, "Group not found"],
  schedules_limit: [409, "Schedule limit reached"],
  graph_too_large: [413, "Graph too large"],
  webhook_not_found: [404, "Webhook not found"],
  webhooks_limit: [409, "Webhook limit reached"],
  usage_limit: [409, "Usage limit of the task reached"],
  usage_not_found: [404, "Usage not found"],
  budget_exceeded: [409, "Budget exceeded"],
  budget_not_found: [404, "Budget not found"],
  budgets_limit: [409, "Maximum number of budgets reached"],
  paused: [409, "Paused"],
  pause_not_found: [404, "Pause not found"],
  pauses_limit: [409, "Maximum number of pauses reached"],
  limit_reached: [409, "Limit reached"],
  limit_not_found: [404, "Limit not found"],
  limits_limit: [409, "Maximum number of limits reached"],
  too_many_lanes: [409, "Too many lanes"],
  gifts_limit: [409, "Maximum number of tasks for the node reached"],
  requirements_not_met: [409, "Requirements not met"],
  key_exists: [409, "Key exists"],
  keys_limit: [409, "Key limit reached"],
  invitation_not_found: [404, "Invitation not found"],
  invitation_used: [409, "Invitation used already"],
  invitation_expired: [409, "Invitation expired"],
  invitations_limit: [409, "Maximum number of invitations reached"],
  entries_missing: [410, "Entries missing"],
  stale_term: [409, "Stale term"],
  not_a_standby: [409, "Not a standby"],
  quota_exceeded: [429, "Quota exceeded"],
  mint_limit: [403, "Right to mint used up"],
};

/** Null for a fault of the hub itself. */
export function problemOf(error: unknown): Problem | null {
  if (error instanceof Problem) return error;
  if (error instanceof Rejection) {
    const [status, title] = REJECTIONS[error.code];
    return new Problem(status, error.code, title, error.message, extrasOf(error));
  }
  if (error instanceof StoreBusy || error instanceof MailBusy) return overloaded(error.message);
  if (error instanceof PagesBusy) return overloaded("Too many requests wait for pages far into long lists.");
  if (isOutOfFiles(error)) return overloaded("The hub has reached its limit of open files and connections.");
  if (error instanceof AcquireTimeout) return overloaded("Too many large responses are unread.");
  if (error instanceof WaitAborted) return clientClosedRequest();
  if (error instanceof StoreUnavailable) return unavailable();
  if (error instanceof StoreReadOnly) return readOnly(error, null);
  if (error instanceof OutcomeUnknown) {
    const detail =
      "The commit failed, and the hub cannot tell whether the write is stored. Check before you repeat it.";
    return new Problem(500, "outcome_unknown", "Outcome unknown", detail);
  }
  if (error instanceof StoreFull || error instanceof BlobsFull) {
    const detail = "The hub's disk is full and nothing was written. Try again when the disk has room.";
    return new Problem(507, "insufficient_storage", "Insufficient storage", detail);
  }
  return null;
}

const READ_ONLY: Readonly<Record<StoreReadOnly["code"], readonly [status: number, title: string]>> = {
  standby: [503, "Standby"],
  superseded: [503, "Superseded"],
  no_standby: [503, "No standby"],
};

/** @param hub the URL of the hub that accepts writes */
export function readOnly({ code, message }: StoreReadOnly, hub: string | null): Problem {
  const extras = { headers: { "Retry-After": "1" }, ...(hub !== null && { members: { hub } }) };
  const advice = code === "no_standby" ? "" : ` Call ${hub ?? "the hub that accepts writes"}.`;
  const [status, title] = READ_ONLY[code];
  return new Problem(status, code, title, message + advice, extras);
}

function extrasOf({ quota, expected, version, conflict }: Rejection): ProblemExtras | undefined {
  if (expected !== undefined) return { members: { expected } };
  if (version !== undefined) return { members: { version } };
  if (conflict) {
    const { holders, at } = conflict;
    return { members: { holders: holders.map((lease) => encodeAdvisoryLease(lease, at)) } };
  }
  return quota && ofQuota(quota);
}

function ofQuota({ used, allowed }: QuotaFault): ProblemExtras {
  return { members: { used, allowed }, headers: { "Retry-After": String(QUOTA_RETRY_AFTER_SECONDS) } };
}

/** When a module fails to load, Bun sets only the message. */
function isOutOfFiles(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return /^E[MN]FILE\b/.test(String("code" in error ? error.code : error.message));
}

export function overloaded(what: string): Problem {
  const headers = { "Retry-After": "1" };
  return new Problem(503, "overloaded", "Service unavailable", `${what} Try again in a second.`, { headers });
}

export function refusedBefore(): Problem {
  const detail =
    "The request of this batch that has the ref returned an error, so there is no such task. Correct that request, and send all requests again that returned an error, with the ids of the tasks that exist.";
  return new Problem(409, "ref_refused", "Reference to a refused request", detail);
}

export function batchIsFull(): Problem {
  const detail =
    "The requests before this one used up the time of a batch, or what it may read, write and return, so this request was not run. Send it in another batch.";
  return new Problem(503, "batch_full", "Batch full", detail);
}

export function tooManyCalls(what: string): Problem {
  const detail = `${what} Try again when one of these has ended.`;
  const headers = { "Retry-After": "1" };
  return new Problem(429, "too_many_calls", "Too many requests", detail, { headers });
}

/** 499, as in nginx: the caller does not read this answer, but the access log shows why the wait ended. */
function clientClosedRequest(): Problem {
  const detail = "The client hung up while its call waited.";
  return new Problem(499, "client_closed_request", "Client closed request", detail);
}

export function unauthorized(detail: string): Problem {
  const headers = { "WWW-Authenticate": 'Bearer realm="luxhub", X-Matrix-Secret realm="luxhub"' };
  return new Problem(401, "unauthorized", "Unauthorized", detail, { headers });
}

export function keyLost(): Problem {
  return unauthorized("The secret was revoked or has expired.");
}

function unavailable(): Problem {
  const detail = "The hub cannot reach its database and nothing was written. Try again in two seconds.";
  const headers = { "Retry-After": "2" };
  return new Problem(503, "database_unavailable", "Service unavailable", detail, { headers });
}

export function viewerNotAllowed(what: string): Problem {
  const detail = `A viewer key cannot ${what}. Use a key of the role full.`;
  return new Problem(403, "viewer_not_allowed", "Viewer key is read-only", detail);
}

export function keyBoundElsewhere(nodeId: string): Problem {
  const detail = `This key acts for ${nodeId} only. Use a key of the node that the request names.`;
  return new Problem(403, "key_bound_to_other_node", KEY_OF_ANOTHER_NODE, detail);
}

/** 403, with --signin bound. */
export function keyNotOwn(nodeId: string): Problem {
  const detail = `On this hub a node needs a key of its own for the daily bonus. Use a key that is bound to ${nodeId} (luxhub keys add NAME --node ${nodeId}).`;
  return new Problem(403, "key_not_bound", "Key not bound to the node", detail);
}

export function keyNotBound(nodeId: string, isForAdministrators: boolean): Problem {
  const how = `Use a key that is bound to ${nodeId} (luxhub keys add NAME --node ${nodeId})`;
  const orElse = isForAdministrators ? ", or send the administrator key in the header X-Admin-Key too" : "";
  const detail = `This hub is strict, and this key is bound to no node. ${how}${orElse}.`;
  return new Problem(403, "key_not_bound", "Key not bound to the node", detail);
}
