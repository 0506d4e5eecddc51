/**
 * Consistency checks: the facts of all features. SQLite's integrity check covers pages and indexes; only these say whether
 * a balance is the sum of its payments.
 */
import type { Fact } from "./fact.ts";
import { EVENT_FACTS } from "./events.ts";
import { GROUP_FACTS } from "./groups.ts";
import { INVITATION_FACTS } from "./invitations.ts";
import { LEASE_FACTS } from "./leases.ts";
import { LEDGER_FACTS } from "./lux.ts";
import { MESSAGE_FACTS } from "./messages.ts";
import { NODE_FACTS } from "./nodes.ts";
import { OUTPUT_FACTS } from "./output.ts";
import { QUESTION_FACTS } from "./questions.ts";
import { ANSWER_FACTS } from "./retention.ts";
import { REVIEW_FACTS } from "./reviews.ts";
import { SPENDING_FACTS } from "./spending.ts";
import { CHECKPOINT_FACTS } from "./task-context.ts";
import { GRAPH_FACTS } from "./task-graph.ts";
import { TASK_FACTS } from "./task-writes.ts";
import { QUOTA_FACTS } from "./usage.ts";
import { WEBHOOK_FACTS } from "./webhooks.ts";

export const FACTS: readonly Fact[] = [
  ...LEDGER_FACTS,
  ...NODE_FACTS,
  ...TASK_FACTS,
  ...GROUP_FACTS,
  ...CHECKPOINT_FACTS,
  ...OUTPUT_FACTS,
  ...QUESTION_FACTS,
  ...REVIEW_FACTS,
  ...SPENDING_FACTS,
  ...LEASE_FACTS,
  ...WEBHOOK_FACTS,
  ...GRAPH_FACTS,
  ...MESSAGE_FACTS,
  ...QUOTA_FACTS,
  ...ANSWER_FACTS,
  ...EVENT_FACTS,
  ...INVITATION_FACTS,
];

/** Epoch milliseconds. */
export const LATEST_TIME = `
  SELECT max(at) FROM (
    SELECT max(at) AS at FROM events UNION ALL SELECT max(at) FROM ledger UNION ALL
    SELECT max(updated_at) FROM task_rows UNION ALL SELECT max(uploaded_at) FROM files)`;
