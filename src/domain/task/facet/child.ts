/**
 * Facet: a task that the hub creates for another one, its parent (../family.ts): it checks the result of the parent, or is
 * one of its copies. The parent waits for the end of its children. A node gets only one copy of a task.
 */
import { must } from "../../../lib/assert.ts";
import type { Change } from "../../change.ts";
import { missingIn } from "../../compare.ts";
import type { Rejected } from "../../decision.ts";
import { isUnpaid } from "../../lux.ts";
import { type Child, type Task, type TaskResult, VERDICTS, type Verdict } from "../../model.ts";
import { touchedFamily } from "../log.ts";
import * as refuse from "../refusals.ts";
import { isFinished } from "../state.ts";
import type { Completing, Facet } from "./facet.ts";

export const child: Facet = {
  name: "child",
  created: (task) => (task.child === null ? null : { changes: [related(task, task.child)] }),
  dispatched(before, { assignedNode: nodeId }) {
    const { child: relation, taskId, status } = before;
    if (relation?.as !== "copy" || status !== "open" || nodeId === null) return null;
    return { changes: [{ kind: "copies.excluded", of: relation.of, taskId, nodeId }] };
  },
  completing: (task, completing) => (task.child === null ? null : unfitResult(task, task.child, completing)),
  ended(before, _after, _at, { completing }) {
    const relation = before.child;
    if (relation === null || isFinished(before)) return null;
    const touched = touchedFamily(relation.of);
    // Its share is due when the quorum is decided.
    const isUnpaidCopy =
      relation.as === "copy" && completing && isUnpaid(before, completing.node, completing.request);
    if (!isUnpaidCopy) return { changes: [touched] };
    return { changes: [related(before, { ...relation, unpaid: true }), touched] };
  },
};

export function related({ taskId, notNodes }: Task, relation: Child): Change {
  return { kind: "task.related", taskId, child: relation, notNodes };
}

function unfitResult(task: Task, relation: Child, { request }: Completing): Rejected | null {
  const { result, keyId = null } = request;
  if (relation.as === "copy") {
    const missing = missingIn(result, must(relation.compare, "a copy has what is compared"));
    return missing === null ? null : refuse.comparedValueMissing(task, missing);
  }
  if (relation.notKey !== null && relation.notKey === keyId) return refuse.ownWork(relation.of);
  return verdictOf(result) === null ? refuse.verdictMissing(task, relation.of) : null;
}

/** Null: the result has no verdict. */
export function verdictOf({ extra }: TaskResult): { verdict: Verdict; note: string | null } | null {
  const fields = extra === null ? {} : Object(JSON.parse(extra));
  // Some workers (MCP, commands) can send nothing beside `output`.
  for (const { verdict: word, note } of [fields, Object(fields.output)]) {
    const verdict = VERDICTS.find((known) => known === word);
    if (verdict) return { verdict, note: typeof note === "string" && note !== "" ? note : null };
  }
  return null;
}
