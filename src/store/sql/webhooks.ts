/** The reads, writes and facts of webhooks. */
import type { Webhook } from "../../domain/model.ts";
import { soundProgress } from "../../domain/sound.ts";
import type { PushCounts } from "../../domain/webhook.ts";
import type { Query, Row } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { always, count, many, one } from "./query.ts";
import { keptOf } from "./rows.ts";
import { WEBHOOKS } from "./tables.ts";
import type { Writes } from "./write.ts";
import { drop, save, update } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

const readWebhook = WEBHOOKS.reader().to(soundProgress);
const toWebhook = (row: Row): Webhook => ({ ...readWebhook(row), ...keptOf(row) });

export function webhookByName(name: string): Query<Webhook | null> {
  return one(`SELECT * FROM webhooks WHERE name = $1`, [name], toWebhook, [keyOf.webhook(name)]);
}

export function webhookPage(limit: number, offset: number): Query<readonly Webhook[]> {
  const sql = `SELECT * FROM webhooks ORDER BY name LIMIT $1 OFFSET $2`;
  return many(sql, [limit, offset], toWebhook, ["webhooks"]);
}

/** By name. */
export function webhooksAfter(name: string, limit: number): Query<readonly Webhook[]> {
  const sql = `SELECT * FROM webhooks WHERE name > $1 ORDER BY name LIMIT $2`;
  return many(sql, [name, limit], toWebhook, ["webhooks"]);
}

export function webhookCount(): Query<number> {
  return count(`SELECT count(*) AS n FROM webhooks`, [], ["webhooks"]);
}

/** Of administrators. */
export function ownWebhookCount(): Query<number> {
  return count(`SELECT count(*) AS n FROM webhooks WHERE push_task_id IS NULL`, [], ["webhooks"]);
}

/** `taskId`, `nodeId`: whose push configs are counted beside all of them; null: nobody's. */
export function pushCounts(taskId: string | null, nodeId: string | null): Query<PushCounts> {
  const sql = `
    SELECT (SELECT count(*) FROM webhooks WHERE push_task_id IS NOT NULL) AS n,
      (SELECT count(*) FROM webhooks WHERE push_task_id IS NOT NULL AND kept_by = $1) AS of_node,
      (SELECT count(*) FROM webhooks WHERE push_task_id = $2) AS of_task`;
  const toCounts = (row: Row): PushCounts => ({
    all: Number(row["n"]),
    ofNode: Number(row["of_node"]),
    ofTask: Number(row["of_task"]),
  });
  return always(sql, [nodeId, taskId], toCounts, ["webhooks"]);
}

/** By name. */
export function pushConfigsOf(taskId: string): Query<readonly Webhook[]> {
  const sql = `SELECT * FROM webhooks WHERE push_task_id = $1 ORDER BY name`;
  return many(sql, [taskId], toWebhook, ["webhooks"]);
}

export function suspendedCount(): Query<number> {
  return count(`SELECT count(*) AS n FROM webhooks WHERE state = 'suspended'`, [], ["webhooks"]);
}

const PROGRESS = [
  ...(["cursor_id", "state", "attempts", "failing_since", "next_at", "last_error", "delivered_at"] as const),
] as const;

export const WEBHOOK_WRITES = {
  "webhook.saved": {
    row: ({ webhook }) => keyOf.webhook(webhook.name),
    statement: save(WEBHOOKS, ({ webhook }) => webhook, ["created_at"]),
  },
  "webhook.moved": {
    row: ({ name }) => keyOf.webhook(name),
    statement: update(
      "webhooks",
      WEBHOOKS.set((change) => change, "name"),
      WEBHOOKS.set(({ progress }) => progress, ...PROGRESS),
    ),
  },
  "webhook.deleted": { row: ({ name }) => keyOf.webhook(name), statement: drop(WEBHOOKS, ["name"]) },
} satisfies Partial<Writes>;

export const WEBHOOK_FACTS: readonly Fact[] = [
  {
    name: "webhooks",
    holds:
      "every webhook that has failed says since when, one that is suspended waits for nothing, and a push has its task",
    sql: `
      SELECT 'webhook ' || name || ' is ' || state || ' after ' || attempts || ' failed attempts' FROM webhooks
      WHERE state NOT IN ('active', 'suspended') OR (attempts = 0) <> (failing_since IS NULL)
        OR (attempts = 0) <> (last_error IS NULL) OR (next_at IS NOT NULL AND (attempts = 0 OR state = 'suspended'))
        OR (state = 'suspended' AND (attempts = 0 OR push IS NOT NULL))
      UNION ALL
      SELECT 'webhook ' || name || ' is the push of another task than its filter names' FROM webhooks
      WHERE (push IS NULL) <> (push_task_id IS NULL)
        OR (push_task_id IS NOT NULL AND push_task_id IS NOT (filter ->> '$.taskId'))
      LIMIT ${SHOWN}`,
  },
];
