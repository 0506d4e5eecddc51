/**
 * Facet: the advisory leases for a task (domain/lease.ts) end with the attempt for which its holder has taken them.
 */
import type { Change } from "../../change.ts";
import type { Effect, Facet } from "./facet.ts";
import type { Task } from "../../model.ts";

export const advisoryLeases: Facet = { name: "advisory leases", opened: release, ended: release };

function release({ taskId, hasLeases }: Task, after: Task | null): Effect | null {
  if (!hasLeases) return null;
  const released: Change = { kind: "leases.released", taskId };
  if (after === null) return { changes: [released] };
  return {
    patch: { hasLeases: false },
    changes: [released, { kind: "task.leased", taskId, hasLeases: false }],
  };
}
