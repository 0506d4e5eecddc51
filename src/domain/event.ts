/**
 * The event log: one append-only sequence of a closed set of kinds (docs/api.md, Events). It never contains the content
 * of a message or a secret.
 */

export const EVENT_KINDS = [
  "node.joined",
  "node.registered",
  "node.updated",
  "node.online",
  "node.offline",
  "node.draining",
  "node.left",
  "node.deleted",
  "task.created",
  "task.assigned",
  "task.stuck",
  "task.requeued",
  "task.revoked",
  "task.released",
  "task.progress",
  "task.asked",
  "task.answered",
  "task.question_timed_out",
  "task.attempt_failed",
  "task.timed_out",
  "task.failed",
  "task.retried",
  "task.updated",
  "task.completed",
  "task.review_requested",
  "task.review_passed",
  "task.review_rejected",
  "task.deleted",
  "group.ended",
  "schedule.saved",
  "schedule.skipped",
  "schedule.deleted",
  "webhook.saved",
  "webhook.deleted",
  "webhook.suspended",
  "webhook.resumed",
  "budget.set",
  "budget.deleted",
  "hub.paused",
  "hub.resumed",
  "limit.set",
  "limit.held",
  "limit.deleted",
  "budget.warning",
  "budget.exceeded",
  "usage.capped",
  "usage.voided",
  "lux.paid",
  "lux.signin",
  "message.sent",
  "message.acked",
  "message.parked",
  "message.expired",
  "file.uploaded",
  "file.deleted",
  "note.changed",
  "note.deleted",
  "hub.started",
  "hub.promoted",
  "standby.following",
  "standby.lost",
  "transport.changed",
] as const;

export type EventKind = (typeof EVENT_KINDS)[number];

export function isEventKind(word: unknown): word is EventKind {
  return EVENT_KINDS.some((kind) => kind === word);
}

export type EventData = Readonly<Record<string, string | number | boolean | null>>;

/** The store assigns the id. */
export type NewEvent = {
  readonly kind: EventKind;
  readonly at: number;
  /** Whom it concerns; of a message the recipient, and null for a broadcast. */
  readonly nodeId: string | null;
  readonly taskId: string | null;
  readonly data: EventData;
  /** The key was bound to the node that acted (actorOf). Default: false. */
  readonly verified?: boolean;
  /** The bytes that count against the quota of a node (quota.ts). Default: 0. */
  readonly keptBytes?: number;
  /** The node against whose quota they count. Default: `nodeId`. */
  readonly keptBy?: string;
};

export type LoggedEvent = NewEvent & { readonly id: number; readonly verified: boolean };

/** Where the node that acted is not its `nodeId`: the field that names it. */
const ACTORS: Partial<Record<EventKind, string>> = {
  "message.sent": "from_node",
  "task.answered": "answered_by",
  "task.review_passed": "reviewed_by",
  "task.review_rejected": "reviewed_by",
};

/** What people do: these events say with which key, if no node acted. */
const AUTHORED: ReadonlySet<EventKind> = new Set([
  ...(["task.created", "task.answered", "task.review_passed", "task.review_rejected"] as const),
  ...(["task.retried", "task.updated", "task.revoked", "task.failed", "task.deleted"] as const),
  ...(["node.draining", "node.deleted", "hub.paused", "hub.resumed", "limit.set", "limit.deleted"] as const),
  ...(["budget.set", "budget.deleted", "usage.voided", "schedule.saved", "schedule.deleted"] as const),
  ...(["webhook.saved", "webhook.deleted", "webhook.resumed", "file.deleted"] as const),
]);

const AUTHOR = "author";

/** `by` of an event: the key, and the person if a proxy has named one. */
export function authorOf({ data }: Pick<NewEvent, "data">): string | null {
  const author = data[AUTHOR];
  return typeof author === "string" ? author : null;
}

export function signed(event: NewEvent, author: string): NewEvent {
  const { kind, nodeId, data } = event;
  const isByNode =
    (kind === "task.created" && nodeId !== null) || (kind === "task.failed" && data["kind"] !== "cancelled");
  if (!AUTHORED.has(kind) || isByNode) return event;
  return { ...event, data: { ...data, [AUTHOR]: author } };
}

const ADMINISTERED: readonly EventKind[] = ["task.revoked", "task.deleted", "node.deleted"];

export function actorOf({ kind, nodeId, data }: Pick<NewEvent, "kind" | "nodeId" | "data">): string | null {
  const field = ACTORS[kind];
  const isGiven = kind === "task.assigned" && (data["by"] === "balancer" || data["by"] === "revoke");
  if (field === undefined) return isGiven || ADMINISTERED.includes(kind) ? null : nodeId;
  const actor = data[field];
  return typeof actor === "string" ? actor : null;
}

/** The event's node holds one task less. */
export const MAKES_ROOM: ReadonlySet<EventKind> = new Set([
  "task.completed",
  "task.attempt_failed",
  "task.released",
  "task.revoked",
  "task.requeued",
  "task.timed_out",
  "task.failed",
  "task.deleted",
]);

/** About the delivery of a message; `data.from_node` names the sender, who is notified. */
export const FATE_KINDS: readonly EventKind[] = ["message.acked", "message.parked", "message.expired"];

export function senderOf({ kind, data }: Pick<NewEvent, "kind" | "data">): string | null {
  const sender = FATE_KINDS.includes(kind) ? data["from_node"] : undefined;
  return typeof sender === "string" ? sender : null;
}

/** The other kinds about tasks name the creator in `data.creator_node`. */
const OF_CREATOR: ReadonlySet<EventKind> = new Set(["task.created", "task.updated", "task.retried"]);

export const isOfCreator = (kind: EventKind): boolean => OF_CREATOR.has(kind);

/** Null: no node created it, or the event is about no task. */
export function creatorOf({ kind, nodeId, data }: Pick<NewEvent, "kind" | "nodeId" | "data">): string | null {
  const creator = isTaskEvent(kind) ? data["creator_node"] : undefined;
  if (typeof creator === "string") return creator;
  return isOfCreator(kind) ? nodeId : null;
}

export function isBroadcast({ kind, nodeId }: Pick<NewEvent, "kind" | "nodeId">): boolean {
  return kind === "message.sent" && nodeId === null;
}

export const TASK_EVENT_KINDS: readonly EventKind[] = EVENT_KINDS.filter((kind) => kind.startsWith("task."));

export function isTaskEvent(kind: EventKind): boolean {
  return kind.startsWith("task.");
}
