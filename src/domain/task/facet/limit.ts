/**
 * Facet: a task counts for the limit of its key while it runs, and each dispatch for the rate of the key (gate.ts says what
 * a limit closes). It counts under the key that it was dispatched with (`countsFor`).
 */
import { countedFor } from "../../gate.ts";
import type { Facet } from "./facet.ts";

export const limit: Facet = {
  name: "limit",
  dispatched(before, after, at) {
    if (!at.gate && before.countsFor === null) return null;
    const { countsFor, changes } = countedFor(at.gate, after, at.now);
    // A node that starts what it holds was counted for the rate before.
    return { patch: { countsFor }, changes: before.status === "open" ? changes : [] };
  },
};
