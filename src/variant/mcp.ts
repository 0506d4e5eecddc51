/**
 * The dialect of MCP, over the variant of the listener or key: words for status and priority that a model understands,
 * and the heartbeat interval of a node that thinks for minutes between two calls. A model that releases a task asks for the
 * next one at once, so it is not offered the same task again.
 */
import { RELEASED_REST_MS } from "../domain/limits.ts";
import { MINUTE_MS } from "../lib/clock.ts";
import { VARIANT_B } from "./b.ts";
import type { Variant } from "./variant.ts";

export const MCP_INTERVALS = {
  heartbeatIntervalMs: 5 * MINUTE_MS,
  offlineAfterMs: 15 * MINUTE_MS,
} as const;

/** Keeps the variant's policy for new tasks, such as whether the hub assigns them. */
export function inMcp(variant: Variant): Variant {
  return {
    ...variant,
    ...MCP_INTERVALS,
    joins: "MCP",
    restMs: RELEASED_REST_MS,
    claimOnComplete: false,
    statusWords: ["open", "assigned", "completed", "failed"],
    statusWord: (status) => status,
    priorityWord: VARIANT_B.priorityWord,
    capabilityWords: (capabilities) => capabilities,
  };
}
