/**
 * The event log: one append-only sequence of a closed set of kinds (docs/api.md, Events).
 * An event says what happened and to whom. It never contains the content of a message or a secret.
 */

export const EVENT_KINDS = [
  "node.registered",
  "node.online",
  "node.offline",
  "task.created",
  "task.assigned",
  "task.requeued",
  "task.revoked",
  "task.completed",
  "task.deleted",
  "lux.paid",
  "lux.signin",
  "message.sent",
  "message.acked",
  "message.parked",
  "file.uploaded",
  "file.deleted",
  "hub.started",
  "transport.changed",
] as const;

export type EventKind = (typeof EVENT_KINDS)[number];

export type EventData = Readonly<Record<string, string | number | boolean | null>>;

/** An event as a rule returns it; the store assigns the next id of the log. */
export type NewEvent = {
  readonly kind: EventKind;
  /** Epoch milliseconds, wall clock. */
  readonly at: number;
  /** The node that it concerns; for a message, its recipient. */
  readonly nodeId: string | null;
  readonly taskId: string | null;
  readonly data: EventData;
};

export type LoggedEvent = NewEvent & { readonly id: number };

/** The kinds that GET poll waits for. */
export const TASK_EVENT_KINDS: readonly EventKind[] = EVENT_KINDS.filter((kind) => kind.startsWith("task."));

export function isTaskEvent(kind: EventKind): boolean {
  return kind.startsWith("task.");
}
