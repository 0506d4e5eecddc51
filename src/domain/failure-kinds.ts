/** The kinds of failure of a task. Apart from the model, because the dashboard has them too. */
export const FAILURE_KINDS = [
  "failed",
  "stalled",
  "timed_out",
  "offline",
  "cancelled",
  "expired",
  "dependency",
  "budget",
  "rejected",
  "no_quorum",
] as const;

export type FailureKind = (typeof FAILURE_KINDS)[number];

/** No statistic counts as failed what people, or `expires_at`, asked for. */
export const CANCELLED_KINDS: readonly FailureKind[] = ["cancelled", "expired"];

export function isCancelled(kind: unknown): boolean {
  return CANCELLED_KINDS.some((word) => word === kind);
}
