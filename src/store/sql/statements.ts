/**
 * All write statements: for each change of domain/change.ts, how it is written. The file of a feature declares its own;
 * the compiler checks that none is missing.
 */
import type { Change } from "../../domain/change.ts";
import { A2A_WRITES } from "./a2a.ts";
import { EVENT_WRITES } from "./events.ts";
import { FILE_WRITES } from "./files.ts";
import { GATE_WRITES } from "./gate.ts";
import { GROUP_WRITES } from "./groups.ts";
import { INVITATION_WRITES } from "./invitations.ts";
import { KEY_WRITES } from "./keys.ts";
import { LEASE_WRITES } from "./leases.ts";
import { LEDGER_WRITES } from "./lux.ts";
import { MESSAGE_WRITES } from "./messages.ts";
import { MINT_WRITES } from "./mints.ts";
import { MINUTE_WRITES } from "./minutes.ts";
import { NODE_WRITES } from "./nodes.ts";
import { NOTE_WRITES } from "./notes.ts";
import { OUTPUT_WRITES } from "./output.ts";
import { QUESTION_WRITES } from "./questions.ts";
import { RETENTION_WRITES } from "./retention.ts";
import { REVIEW_WRITES } from "./reviews.ts";
import { SCHEDULE_WRITES } from "./schedules.ts";
import { SPENDING_WRITES } from "./spending.ts";
import { CHECKPOINT_WRITES } from "./task-context.ts";
import { GRAPH_WRITES } from "./task-graph.ts";
import { TASK_WRITES } from "./task-writes.ts";
import { QUOTA_WRITES } from "./usage.ts";
import { WEBHOOK_WRITES } from "./webhooks.ts";
import { type ConflictKey, EVERYTHING } from "./conflict-keys.ts";
import type { Write, Writes } from "./write.ts";
import type { Statement } from "./write-statement.ts";

const WRITES: Writes = {
  ...A2A_WRITES,
  ...EVENT_WRITES,
  ...FILE_WRITES,
  ...GATE_WRITES,
  ...GROUP_WRITES,
  ...INVITATION_WRITES,
  ...KEY_WRITES,
  ...LEASE_WRITES,
  ...LEDGER_WRITES,
  ...MESSAGE_WRITES,
  ...MINT_WRITES,
  ...MINUTE_WRITES,
  ...NODE_WRITES,
  ...NOTE_WRITES,
  ...OUTPUT_WRITES,
  ...QUESTION_WRITES,
  ...RETENTION_WRITES,
  ...REVIEW_WRITES,
  ...SCHEDULE_WRITES,
  ...SPENDING_WRITES,
  ...CHECKPOINT_WRITES,
  ...GRAPH_WRITES,
  ...TASK_WRITES,
  ...QUOTA_WRITES,
  ...WEBHOOK_WRITES,
};

export function writeOf(change: Change): Write<Change> {
  return WRITES[change.kind]; // Its functions take only changes of this kind.
}

/** In order, and which of them writes the row of the change. */
export function statementsOf(change: Change): {
  readonly all: readonly Statement<Change>[];
  readonly own: number;
} {
  const { statement, instead, beside } = writeOf(change);
  const main = instead?.(change) ?? statement;
  if (beside === undefined) return { all: [main], own: 0 };
  const used = beside.filter(({ when }) => when?.(change) ?? true);
  const before = used.flatMap(({ isFirst, statement }) => (isFirst ? [statement] : []));
  const after = used.flatMap(({ isFirst, statement }) => (isFirst ? [] : [statement]));
  return { all: [...before, main, ...after], own: before.length };
}

/** A caller that knows the row of the change (`Write.row`) passes it. */
export function writeSetOf(change: Change, row = writeOf(change).row?.(change)): readonly ConflictKey[] {
  const write = writeOf(change);
  if (write.isSweep) return [EVERYTHING];
  const set: ConflictKey[] = [write.statement.table];
  if (row !== undefined) set.push(row);
  if (write.keys) set.push(...write.keys(change));
  return set;
}
