/**
 * A variant is a dialect of the hub: what it asks of a request and how it words an answer. It translates; it never
 * decides, and never changes what is stored (decisions.md, Which variant answers).
 */
import type { Priority, TaskStatus, VariantName } from "../domain/model.ts";

export interface Variant {
  readonly name: VariantName;
  /** What status shows as the hub's version. */
  readonly version: "1.5" | "1.0";
  /** Whether the endpoints that the specification calls Public are open without a secret. */
  readonly publicEndpoints: boolean;
  readonly heartbeatIntervalMs: number;
  readonly offlineAfterMs: number;
  /** Whether the hub gives a new task to a node by itself. */
  readonly autoAssign: boolean;
  /** Whether complete takes an open task for the node that completes it. */
  readonly claimOnComplete: boolean;
  /** Whether batch-assign names its assignments; otherwise it starts the balancer. */
  readonly listedBatch: boolean;
  /** How many one page of a list holds when the caller says nothing of paging. */
  readonly unpaged: number;
  /** The words for task status, in the order stats shows them. */
  readonly statusWords: readonly string[];
  statusWord(status: TaskStatus): string;
  priorityWord(priority: Priority): number | string;
  capabilityWords(capabilities: readonly string[]): string | readonly string[];
}

/** The stored states behind each status word of either variant; both filters take both. */
export const STATUS_FILTERS = {
  open: ["open"],
  assigned: ["assigned"],
  pending: ["open", "assigned"],
  completed: ["completed"],
} as const satisfies Readonly<Record<string, readonly TaskStatus[]>>;

/** The words for priority that both variants read. */
export const PRIORITY_WORDS = {
  high: 0,
  medium: 1,
  low: 2,
  p0: 0,
  p1: 1,
  p2: 2,
  p5: 5,
} as const satisfies Readonly<Record<string, Priority>>;
