/** Variant B: hub version 1.0. Every endpoint needs the secret, priorities are words, the hub assigns tasks. */
import { WHOLE_PAGE } from "../domain/limits.ts";
import type { Priority } from "../domain/model.ts";
import { SECOND_MS } from "../lib/clock.ts";
import type { Variant } from "./variant.ts";

const WORDS: Readonly<Record<Priority, string>> = { 0: "high", 1: "medium", 2: "low", 5: "p5" };

export const VARIANT_B: Variant = {
  name: "B",
  version: "1.0",
  publicEndpoints: false,
  joins: "B",
  heartbeatIntervalMs: 30 * SECOND_MS,
  offlineAfterMs: 90 * SECOND_MS,
  autoAssign: true,
  restMs: 0,
  claimOnComplete: true,
  listedBatch: false,
  unpaged: WHOLE_PAGE,
  unfinishedFirst: true, // nodes of B search the list for their tasks, which must not be behind finished ones
  statusWords: ["pending", "completed", "failed"],
  statusWord: (status) => (status === "open" || status === "assigned" ? "pending" : status),
  priorityWord: (priority) => WORDS[priority],
  capabilityWords: (capabilities) => capabilities,
};
