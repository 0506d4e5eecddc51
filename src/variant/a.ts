/** Variant A: hub version 1.5. Reads are public, priorities are integers, capabilities one string, nodes claim tasks. */
import { PER_PAGE_DEFAULT } from "../domain/limits.ts";
import { MINUTE_MS } from "../lib/clock.ts";
import type { Variant } from "./variant.ts";

export const VARIANT_A: Variant = {
  name: "A",
  version: "1.5",
  publicEndpoints: true,
  joins: "A",
  heartbeatIntervalMs: 1 * MINUTE_MS,
  offlineAfterMs: 3 * MINUTE_MS,
  autoAssign: false,
  restMs: 0,
  claimOnComplete: false,
  listedBatch: true,
  unpaged: PER_PAGE_DEFAULT,
  unfinishedFirst: false,
  statusWords: ["open", "assigned", "completed", "failed"],
  statusWord: (status) => status,
  priorityWord: (priority) => (priority === 5 ? 2 : priority), // A has no word for background work
  capabilityWords: (capabilities) => capabilities.join(","),
};
