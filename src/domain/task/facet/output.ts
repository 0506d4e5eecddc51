/** Facet: what the attempts of a task have sent as output (../output.ts) is deleted with the task. */
import type { Change } from "../../change.ts";
import type { Facet } from "./facet.ts";

const REMOVALS = ["output.refunded", "output.removed", "output.erased"] as const;

export const output: Facet = {
  name: "output",
  ended({ taskId, hasOutput, epoch: upTo }, after) {
    if (!hasOutput || after !== null) return null;
    return { changes: REMOVALS.map((kind): Change => ({ kind, taskId, upTo })) };
  },
};
