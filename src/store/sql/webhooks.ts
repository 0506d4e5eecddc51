/** The reads of webhooks, in the SQL that SQLite 3.35+ and PostgreSQL 15+ share. */
import type { Webhook } from "../../domain/model.ts";
import type { WebhookCounts } from "../../domain/webhook.ts";
import type { Query } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { count, many, one, query } from "./query.ts";
import { toWebhook } from "./rows.ts";

export function webhookByName(name: string): Query<Webhook | null> {
  return one(`SELECT * FROM webhooks WHERE name = $1`, [name], toWebhook, [keyOf.webhook(name)]);
}

/** By name. */
export function webhookPage(limit: number, offset: number): Query<readonly Webhook[]> {
  const sql = `SELECT * FROM webhooks ORDER BY name LIMIT $1 OFFSET $2`;
  return many(sql, [limit, offset], toWebhook, ["webhooks"]);
}

/** By name, those after a name. */
export function webhooksAfter(name: string, limit: number): Query<readonly Webhook[]> {
  const sql = `SELECT * FROM webhooks WHERE name > $1 ORDER BY name LIMIT $2`;
  return many(sql, [name, limit], toWebhook, ["webhooks"]);
}

export function webhookCount(): Query<number> {
  return count(`SELECT count(*) AS n FROM webhooks`, [], ["webhooks"]);
}

/** How many webhooks of each sort there are; `taskId`: of whose push configs. */
export function webhookCounts(taskId: string | null): Query<WebhookCounts> {
  const sql = `
    SELECT count(*) AS n, count(push_task_id) AS pushes, count(CASE WHEN push_task_id = $1 THEN 1 END) AS of_task
    FROM webhooks`;
  const toCounts = (rows: Parameters<Query<WebhookCounts>["shape"]>[0]): WebhookCounts => ({
    own: Number(rows[0]?.["n"]) - Number(rows[0]?.["pushes"]),
    pushes: Number(rows[0]?.["pushes"]),
    ofTask: Number(rows[0]?.["of_task"]),
  });
  return query(sql, [taskId], toCounts, ["webhooks"]);
}

/** The push configs of a task, by name. */
export function pushConfigsOf(taskId: string): Query<readonly Webhook[]> {
  const sql = `SELECT * FROM webhooks WHERE push_task_id = $1 ORDER BY name`;
  return many(sql, [taskId], toWebhook, ["webhooks"]);
}

export function suspendedCount(): Query<number> {
  return count(`SELECT count(*) AS n FROM webhooks WHERE state = 'suspended'`, [], ["webhooks"]);
}
