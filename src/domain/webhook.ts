/**
 * Webhook rules: a subscription to the event log, delivered to a URL (docs/webhooks.md).
 *
 *             put              410, or failing for a day
 *   (none) ---------> active ----------------------------> suspended
 *                        ^                                     |
 *                        +-------------------------------------+
 *                                resume, or a put that changes it
 *
 * The event log is the outbox: `cursor` is the id of the last event that needs no delivery any more. It moves only after
 * the receiver has answered with a 2xx, so that a message is sent at least once, and in the order of the log.
 *
 * A webhook with `push` is a push notification config of A2A. It is deleted after the last update of its task, and where
 * another one is suspended.
 *
 * Invariant: a delivery changes a webhook only if nothing else has changed it since it was read (isSame): neither an
 * administrator nor another hub.
 */
import { assert } from "../lib/assert.ts";
import type { Change } from "./change.ts";
import { type Accepted, type Decision, type Rejected, accept, reject, taskNotFound } from "./decision.ts";
import { type EventData, type EventKind, type NewEvent, creatorOf } from "./event.ts";
import {
  PUSH_CONFIGS_OF_TASK_MAX,
  WEBHOOK_RETRY_AFTER_MAX_MS,
  WEBHOOK_RETRY_MAX_MS,
  WEBHOOK_RETRY_MIN_MS,
  WEBHOOK_SUSPEND_AFTER_MS,
  WEBHOOK_SUSPEND_ATTEMPTS_MIN,
} from "./limits.ts";
import { HUB_LIMITS, type HubCounts, refusesMore } from "./shares.ts";
import type { PushConfig, Task, Webhook, WebhookDraft, WebhookFilter, WebhookProgress } from "./model.ts";
import { refund } from "./quota.ts";
import { hasEnded } from "./task/state.ts";

export type PushCounts = HubCounts & { readonly ofTask: number };

type WebhookIssue = {
  readonly webhookId: string;
  readonly secret: string | null;
  /** Only later events are sent. */
  readonly lastEventId: number;
};

/** To be shown once; null: the hub made none. */
export type PutWebhook = { readonly webhook: Webhook; readonly secret: string | null };

const PROGRESS_AT_START: Omit<WebhookProgress, "cursor"> = {
  state: "active",
  attempts: 0,
  failingSince: null,
  nextAt: null,
  lastError: null,
  deliveredAt: null,
};

/** A replaced webhook goes on from its cursor. `secret`: the caller's choice; null: keep the one there is. */
export function putWebhook(
  draft: WebhookDraft,
  secret: string | null,
  before: Webhook | null,
  webhookCount: number,
  issue: WebhookIssue,
  now: number,
): Decision<PutWebhook> {
  const refused = before ? null : refusesMore(HUB_LIMITS.webhooks, { all: webhookCount, ofNode: 0 }, null);
  return refused ?? save(draft, secret, before, issue, now);
}

function save(
  draft: WebhookDraft,
  secret: string | null,
  before: Webhook | null,
  issue: WebhookIssue,
  now: number,
): Accepted<PutWebhook> {
  const keptSecret = before?.format === draft.format ? before.secret : null;
  const made = secret === null && keptSecret === null ? issue.secret : null;
  const terms = { ...draft, secret: secret ?? keptSecret ?? made };
  if (before && Bun.deepEquals({ ...before, ...terms }, before, true))
    return accept({ webhook: before, secret: null });
  const webhook: Webhook = {
    ...terms,
    ...PROGRESS_AT_START,
    cursor: before?.cursor ?? issue.lastEventId,
    deliveredAt: before?.deliveredAt ?? null,
    webhookId: before?.webhookId ?? issue.webhookId,
    revision: (before?.revision ?? 0) + 1,
    createdAt: before?.createdAt ?? now,
    updatedAt: now,
  };
  return accept({ webhook, secret: made }, [...refund(before), ...saved(webhook, "webhook.saved", now)]);
}

/** Only while the task, which the caller created, is unfinished. `boundTo`: the node of the caller's key. */
export function putPush(
  draft: WebhookDraft,
  task: Task | null,
  before: Webhook | null,
  counts: PushCounts,
  boundTo: string | null,
  issue: WebhookIssue & { readonly endEventId: number },
  now: number,
): Decision<PutWebhook> {
  if (!task) return taskNotFound(String(draft.filter.taskId));
  const isFull = before === null && counts.ofTask >= PUSH_CONFIGS_OF_TASK_MAX;
  if (isFull)
    return reject(
      "webhooks_limit",
      `The task has ${counts.ofTask} push configs, which is the limit. Delete one of them.`,
    );
  const refused = before ? null : refusesMore(HUB_LIMITS.pushes, counts, boundTo);
  const lastEventId = hasEnded(task) ? Math.max(issue.endEventId - 1, 0) : issue.lastEventId;
  return refused ?? save(draft, null, before, { ...issue, lastEventId }, now);
}

export function deleteWebhook(name: string, webhook: Webhook | null, now: number): Decision<Webhook> {
  if (!webhook) return webhookNotFound(name);
  return accept(webhook, removed(webhook, now, "deleted"));
}

export function resumeWebhook(
  name: string,
  webhook: Webhook | null,
  after: number | null,
  now: number,
): Decision<Webhook> {
  if (!webhook) return webhookNotFound(name);
  const resumed: Webhook = {
    ...webhook,
    ...PROGRESS_AT_START,
    cursor: after ?? webhook.cursor,
    deliveredAt: webhook.deliveredAt,
    revision: webhook.revision + 1,
    updatedAt: now,
  };
  return accept(resumed, saved(resumed, "webhook.resumed", now, { cursor: resumed.cursor }));
}

const FORWARD = "only resume moves the cursor of a webhook back";

/** Or needs no delivery. `isEnd`: the task of a push config has ended. */
export function delivered(
  webhook: Webhook,
  cursor: number,
  isEnd: boolean,
  now: number,
): Accepted<Webhook | null> {
  assert(cursor >= webhook.cursor, FORWARD);
  if (isEnd && webhook.push) return ended(webhook, "ended", now);
  const progress: WebhookProgress = { ...PROGRESS_AT_START, cursor, deliveredAt: now };
  return accept({ ...webhook, ...progress }, [moved(webhook, progress)]);
}

/** Also when its events are no longer in the log, or the key that saved it is lost. */
export function ended(
  webhook: Webhook,
  reason: "ended" | "gap" | "key_revoked",
  now: number,
): Accepted<null> {
  return accept(null, removed(webhook, now, reason));
}

/** The log had nothing to send up to the event `cursor`. */
export function passed(webhook: Webhook, cursor: number): Accepted<Webhook> {
  assert(cursor >= webhook.cursor, FORWARD);
  const progress: WebhookProgress = { ...progressOf(webhook), cursor };
  return accept({ ...webhook, cursor }, [moved(webhook, progress)]);
}

/** `error`: one line, without the URL. `random`: from 0 to 1. */
type FailedDelivery = {
  readonly error: string;
  readonly isGone: boolean;
  readonly retryAfterMs: number | null;
  readonly random: number;
};

export function failed(webhook: Webhook, failure: FailedDelivery, now: number): Accepted<Webhook | null> {
  const attempts = webhook.attempts + 1;
  const failingSince = webhook.failingSince ?? now;
  const isTooLong =
    now - failingSince >= WEBHOOK_SUSPEND_AFTER_MS && attempts >= WEBHOOK_SUSPEND_ATTEMPTS_MIN;
  const isEnd = failure.isGone || isTooLong;
  const reason = failure.isGone ? "gone" : "failing";
  if (isEnd && webhook.push) return accept(null, removed(webhook, now, reason));
  const progress: WebhookProgress = {
    cursor: webhook.cursor,
    state: isEnd ? "suspended" : "active",
    attempts,
    failingSince,
    nextAt: isEnd ? null : now + retryDelay(attempts, failure),
    lastError: failure.error,
    deliveredAt: webhook.deliveredAt,
  };
  const suspension = isEnd ? [logged(webhook, "webhook.suspended", now, { reason, attempts })] : [];
  return accept({ ...webhook, ...progress }, [moved(webhook, progress), ...suspension]);
}

/** Doubles from WEBHOOK_RETRY_MIN_MS to WEBHOOK_RETRY_MAX_MS, up to a half longer by chance; or the receiver's wish. */
function retryDelay(attempts: number, { retryAfterMs, random }: FailedDelivery): number {
  const doubled = WEBHOOK_RETRY_MIN_MS * 2 ** Math.min(attempts - 1, 30);
  const delay = Math.min(doubled * (1 + random / 2), WEBHOOK_RETRY_MAX_MS);
  return Math.round(Math.max(delay, Math.min(retryAfterMs ?? 0, WEBHOOK_RETRY_AFTER_MAX_MS)));
}

export function isSame(known: Webhook | null, other: Webhook): known is Webhook {
  return (
    known !== null &&
    known.webhookId === other.webhookId &&
    known.revision === other.revision &&
    known.cursor === other.cursor &&
    known.attempts === other.attempts
  );
}

/** Or the node that this key is bound to. */
export function callerOf({ caller }: PushConfig): {
  readonly keyId: string | null;
  readonly nodeId: string | null;
} {
  const [kind, name = null] = caller.split(" ");
  return kind === "node" ? { keyId: null, nodeId: name } : { keyId: name, nodeId: null };
}

export function passes(
  event: NewEvent,
  { kinds, taskId, nodeId, creatorNode, group }: WebhookFilter,
): boolean {
  return (
    (kinds.length === 0 || kinds.includes(event.kind)) &&
    (taskId === null || taskId === event.taskId) &&
    (nodeId === null || nodeId === event.nodeId) &&
    (group === null || group === event.data["group"]) &&
    (creatorNode === null || creatorNode === creatorOf(event))
  );
}

export const TASK_ENDS: readonly EventKind[] = [
  "task.completed",
  "task.review_passed",
  "task.failed",
  "task.deleted",
];

// ---- Refusals, changes and events

export function webhookNotFound(name: string): Rejected {
  return reject(
    "webhook_not_found",
    `There is no webhook ${name}. Look its name up with GET /api/v1/webhook/list.`,
  );
}

function saved(
  webhook: Webhook,
  kind: "webhook.saved" | "webhook.resumed",
  now: number,
  data: EventData = {},
): readonly Change[] {
  return [{ kind: "webhook.saved", webhook }, logged(webhook, kind, now, data)];
}

function removed(webhook: Webhook, now: number, reason: string): readonly Change[] {
  return [
    ...refund(webhook),
    { kind: "webhook.deleted", name: webhook.name },
    logged(webhook, "webhook.deleted", now, { reason }),
  ];
}

function moved({ name }: Webhook, progress: WebhookProgress): Change {
  return { kind: "webhook.moved", name, progress };
}

function progressOf(webhook: Webhook): WebhookProgress {
  const { cursor, state, attempts, failingSince, nextAt, lastError, deliveredAt } = webhook;
  return { cursor, state, attempts, failingSince, nextAt, lastError, deliveredAt };
}

/** Never the URL, which may have a secret. */
function logged({ name, push, filter }: Webhook, kind: EventKind, now: number, data: EventData): Change {
  const taskId = push === null ? null : filter.taskId;
  return { kind: "event.logged", event: { kind, at: now, nodeId: null, taskId, data: { name, ...data } } };
}
