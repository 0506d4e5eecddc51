/**
 * A variant is a dialect of the API: its policy (intervals, access, paging) and its encoding of status, priority and
 * capabilities. It translates; it never decides, and never changes what is stored.
 */
import { CANCELLED_KINDS } from "../domain/failure-kinds.ts";
import type { JoinedThrough, Priority, TaskStatus, VariantName } from "../domain/model.ts";

export interface Variant {
  readonly name: VariantName;
  readonly version: "1.5" | "1.0";
  /** Whether the endpoints with `auth: "public"` need no secret. */
  readonly publicEndpoints: boolean;
  readonly joins: JoinedThrough;
  readonly heartbeatIntervalMs: number;
  readonly offlineAfterMs: number;
  /** Also the default of a new node's `auto_assign`. */
  readonly autoAssign: boolean;
  /** How long task/next does not offer a node what it gave back, or what was taken from it; 0: not at all. */
  readonly restMs: number;
  /** Whether task/complete also claims an open task. */
  readonly claimOnComplete: boolean;
  readonly listedBatch: boolean;
  readonly unpaged: number;
  /** Whether a page of tasks without `per_page` begins with the unfinished ones. */
  readonly unfinishedFirst: boolean;
  /** In the order in which task/stats shows them. */
  readonly statusWords: readonly string[];
  statusWord(status: TaskStatus): string;
  priorityWord(priority: Priority): number | string;
  capabilityWords(capabilities: readonly string[]): string | readonly string[];
}

/**
 * By status word of either variant; both filters take both. Results in review are completed, and cancelled tasks have
 * failed: only as filters they have words of their own.
 */
export const STATUS_FILTERS = {
  open: { statuses: ["open"] },
  assigned: { statuses: ["assigned"] },
  pending: { statuses: ["open", "assigned"] },
  completed: { statuses: ["completed"] },
  failed: { statuses: ["failed"] },
  in_review: { statuses: ["completed"], inReview: true },
  cancelled: { statuses: ["failed"], failureKinds: CANCELLED_KINDS },
} satisfies Readonly<Record<string, StatusFilter>>;

export type StatusFilter = {
  readonly statuses: readonly TaskStatus[];
  readonly inReview?: true;
  readonly failureKinds?: typeof CANCELLED_KINDS;
};

export const PRIORITY_WORDS = {
  high: 0,
  medium: 1,
  low: 2,
  p0: 0,
  p1: 1,
  p2: 2,
  p5: 5,
} as const satisfies Readonly<Record<string, Priority>>;
